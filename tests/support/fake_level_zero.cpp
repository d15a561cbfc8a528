// A Level Zero loader with made-up devices, for tests. It is as strict as the specification allows: a struct of another
// type, a handle of another kind and a sysman call before zesInit are refused.
//
// FAKE_LEVEL_ZERO in the environment holds words: `zeDriverGet=0x78000003` lets a function fail, `zeDeviceGet:grow` and
// others below let an enumeration lie. fake_fail_at lets the n-th call fail.
//
// Built with -DOLD it lacks what later loaders brought; with -DEMPTY it has nothing.
#include "zes_api.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <string>

#ifndef EMPTY

namespace {

struct Handle {
    char kind; // r: driver, d: device, R and D: those of sysman, m: memory, p: power, t: temperature
    uint32_t index;
    uint64_t readings;
};

Handle handles[] = {{'r', 0, 0}, {'R', 0, 0}, {'d', 0, 0}, {'d', 1, 0}, {'D', 0, 0}, {'m', 0, 0},
                    {'m', 1, 0}, {'p', 0, 0}, {'p', 1, 0}, {'t', 0, 0}, {'t', 1, 0}};

bool sysman_is_ready = false;
uint32_t calls = 0;
uint32_t fail_at = 0;
const char *failed = "";

// The rest of the word that starts with `start`, or null.
const char *word(const std::string &start) {
    const char *words = std::getenv("FAKE_LEVEL_ZERO");
    const char *found = words ? std::strstr(words, start.c_str()) : nullptr;
    return found ? found + start.size() : nullptr;
}

ze_result_t enter(const char *name) {
    if (++calls == fail_at) {
        failed = name;
        return ZE_RESULT_ERROR_DEVICE_LOST;
    }
    const char *result = word(std::string(name) + "=");
    if (result) {
        return static_cast<ze_result_t>(std::strtoul(result, nullptr, 16));
    }
    return name[2] == 's' && !sysman_is_ready ? ZE_RESULT_ERROR_UNINITIALIZED : ZE_RESULT_SUCCESS;
}

template <class T> ze_result_t enumerate(const char *name, char kind, uint32_t *count, T **out) {
    const auto lie = [&](const char *what) { return word(std::string(name) + ":" + what) != nullptr; };
    Handle *first = handles;
    while (first->kind != kind) {
        ++first;
    }
    uint32_t there = 0;
    while (first + there < std::end(handles) && first[there].kind == kind) {
        ++there;
    }
    if (lie("none")) {
        there = 0;
    }
    if (out == nullptr) {
        *count = lie("huge") ? 0xffffffffu : there + (lie("shrink") ? 3 : 0);
        return ZE_RESULT_SUCCESS;
    }
    for (uint32_t i = 0; i < *count && i < there; ++i) {
        out[i] = lie("null") ? nullptr : reinterpret_cast<T *>(first + i);
    }
    *count = lie("grow") ? there + 7 : std::min(*count, there);
    return ZE_RESULT_SUCCESS;
}

bool is(const void *handle, char kind) { return static_cast<const Handle *>(handle)->kind == kind; }
uint32_t index(const void *handle) { return static_cast<const Handle *>(handle)->index; }

} // namespace

#define ENTER                                                                                                          \
    if (const ze_result_t result = enter(__func__); result != ZE_RESULT_SUCCESS) {                                     \
        return result;                                                                                                 \
    }
#define REQUIRE(condition, error)                                                                                      \
    if (!(condition)) {                                                                                                \
        return ZE_RESULT_ERROR_INVALID_##error;                                                                        \
    }
#define HANDLE(handle, kind) REQUIRE(is(handle, kind), NULL_HANDLE)
#define STRUCT(pointer, type) REQUIRE((pointer)->stype == type, ARGUMENT)

extern "C" {

void fake_fail_at(uint32_t call) {
    fail_at = call;
    calls = 0;
    failed = "";
    sysman_is_ready = false;
}
const char *fake_failed() { return failed; }

ze_result_t zeInit(ze_init_flags_t flags) {
    ENTER
    REQUIRE(flags == ZE_INIT_FLAG_GPU_ONLY, ENUMERATION)
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeDriverGet(uint32_t *count, ze_driver_handle_t *out) {
    ENTER
    return enumerate(__func__, 'r', count, out);
}

ze_result_t zeDriverGetApiVersion(ze_driver_handle_t driver, ze_api_version_t *version) {
    ENTER
    HANDLE(driver, 'r')
    *version = ZE_API_VERSION_1_6;
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeDriverGetProperties(ze_driver_handle_t driver, ze_driver_properties_t *out) {
    ENTER
    HANDLE(driver, 'r')
    STRUCT(out, ZE_STRUCTURE_TYPE_DRIVER_PROPERTIES)
    out->driverVersion = 17205810;
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeDeviceGet(ze_driver_handle_t driver, uint32_t *count, ze_device_handle_t *out) {
    ENTER
    HANDLE(driver, 'r')
    return enumerate(__func__, 'd', count, out);
}

ze_result_t zeDeviceGetProperties(ze_device_handle_t device, ze_device_properties_t *out) {
    ENTER
    HANDLE(device, 'd')
    STRUCT(out, ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES)
    out->vendorId = 0x8086;
    out->deviceId = 0x0a01 + index(device);
    std::memset(out->name, 'N', sizeof out->name);
    if (!word("long-name")) {
        std::strcpy(out->name, index(device) == 0 ? "Fake GPU" : "Fake GPU without sysman");
    }
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeDeviceGetMemoryProperties(ze_device_handle_t device, uint32_t *count,
                                        ze_device_memory_properties_t *out) {
    ENTER
    HANDLE(device, 'd')
    if (out) {
        STRUCT(out, ZE_STRUCTURE_TYPE_DEVICE_MEMORY_PROPERTIES)
        out->totalSize = index(device) == 0 ? 34242297856u : 1u << 30;
    }
    *count = 1;
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeDevicePciGetPropertiesExt(ze_device_handle_t device, ze_pci_ext_properties_t *out) {
    ENTER
    HANDLE(device, 'd')
    STRUCT(out, ZE_STRUCTURE_TYPE_PCI_EXT_PROPERTIES)
    out->address = index(device) == 0 ? ze_pci_address_ext_t{0, 3, 0, 0} : ze_pci_address_ext_t{0x10000, 0xe4, 0x1f, 7};
    return ZE_RESULT_SUCCESS;
}

#ifndef OLD
ze_result_t zesInit(zes_init_flags_t flags) {
    sysman_is_ready = true;
    ENTER
    REQUIRE(flags == 0, ENUMERATION)
    return ZE_RESULT_SUCCESS;
}
#endif

ze_result_t zesDriverGet(uint32_t *count, zes_driver_handle_t *out) {
    ENTER
    return enumerate(__func__, 'R', count, out);
}

ze_result_t zesDeviceGet(zes_driver_handle_t driver, uint32_t *count, zes_device_handle_t *out) {
    ENTER
    HANDLE(driver, 'R')
    return enumerate(__func__, 'D', count, out);
}

ze_result_t zesDevicePciGetProperties(zes_device_handle_t device, zes_pci_properties_t *out) {
    ENTER
    HANDLE(device, 'D')
    STRUCT(out, ZES_STRUCTURE_TYPE_PCI_PROPERTIES)
    out->address = {0, 3, 0, 0};
    out->maxSpeed = {1, -1, -1};
    return ZE_RESULT_SUCCESS;
}

ze_result_t zesDevicePciGetState(zes_device_handle_t device, zes_pci_state_t *out) {
    ENTER
    HANDLE(device, 'D')
    STRUCT(out, ZES_STRUCTURE_TYPE_PCI_STATE)
    out->speed = {1, 1, 250000000};
    return ZE_RESULT_SUCCESS;
}

ze_result_t zesDeviceGetEccState(zes_device_handle_t device, zes_device_ecc_properties_t *out) {
    ENTER
    HANDLE(device, 'D')
    STRUCT(out, ZES_STRUCTURE_TYPE_DEVICE_ECC_PROPERTIES)
    out->currentState = ZES_DEVICE_ECC_STATE_DISABLED;
    out->pendingState = ZES_DEVICE_ECC_STATE_ENABLED;
    return ZE_RESULT_SUCCESS;
}

ze_result_t zesDeviceEnumMemoryModules(zes_device_handle_t device, uint32_t *count, zes_mem_handle_t *out) {
    ENTER
    HANDLE(device, 'D')
    return enumerate(__func__, 'm', count, out);
}

ze_result_t zesMemoryGetProperties(zes_mem_handle_t memory, zes_mem_properties_t *out) {
    ENTER
    HANDLE(memory, 'm')
    STRUCT(out, ZES_STRUCTURE_TYPE_MEM_PROPERTIES)
    out->type = index(memory) == 0 ? ZES_MEM_TYPE_GDDR6 : static_cast<zes_mem_type_t>(99);
    return ZE_RESULT_SUCCESS;
}

ze_result_t zesMemoryGetState(zes_mem_handle_t memory, zes_mem_state_t *out) {
    ENTER
    HANDLE(memory, 'm')
    STRUCT(out, ZES_STRUCTURE_TYPE_MEM_STATE)
    out->health = index(memory) == 0 ? ZES_MEM_HEALTH_OK : ZES_MEM_HEALTH_REPLACE;
    out->size = index(memory) == 0 ? 34242297856u : 4096u;
    out->free = index(memory) == 0 ? 34000000000u : 0u;
    return ZE_RESULT_SUCCESS;
}

ze_result_t zesMemoryGetBandwidth(zes_mem_handle_t memory, zes_mem_bandwidth_t *out) {
    ENTER
    HANDLE(memory, 'm')
    out->maxBandwidth = index(memory) == 0 ? 600000000000u : 0u;
    return ZE_RESULT_SUCCESS;
}

ze_result_t zesDeviceEnumPowerDomains(zes_device_handle_t device, uint32_t *count, zes_pwr_handle_t *out) {
    ENTER
    HANDLE(device, 'D')
    return enumerate(__func__, 'p', count, out);
}

ze_result_t zesPowerGetProperties(zes_pwr_handle_t power, zes_power_properties_t *out) {
    ENTER
    HANDLE(power, 'p')
    STRUCT(out, ZES_STRUCTURE_TYPE_POWER_PROPERTIES)
    auto *extension = static_cast<zes_power_ext_properties_t *>(out->pNext);
    STRUCT(extension, ZES_STRUCTURE_TYPE_POWER_EXT_PROPERTIES)
    extension->domain = index(power) == 0 ? ZES_POWER_DOMAIN_CARD : ZES_POWER_DOMAIN_MEMORY;
    return ZE_RESULT_SUCCESS;
}

// 2.1 J in 50 ms are 42 W. The second domain's counter stands still.
ze_result_t zesPowerGetEnergyCounter(zes_pwr_handle_t power, zes_power_energy_counter_t *out) {
    ENTER
    HANDLE(power, 'p')
    auto *handle = reinterpret_cast<Handle *>(power);
    handle->readings += index(power) == 0 ? 1 : 0;
    out->energy = 5000000 + 2100000 * handle->readings;
    out->timestamp = 70000 + 50000 * handle->readings;
    return ZE_RESULT_SUCCESS;
}

ze_result_t zesPowerGetLimitsExt(zes_pwr_handle_t power, uint32_t *count, zes_power_limit_ext_desc_t *out) {
    ENTER
    HANDLE(power, 'p')
    *count = index(power) == 0 ? 2 : 0;
    if (out) {
        STRUCT(out, ZES_STRUCTURE_TYPE_POWER_LIMIT_EXT_DESC)
        STRUCT(out + 1, ZES_STRUCTURE_TYPE_POWER_LIMIT_EXT_DESC)
        out[0].level = ZES_POWER_LEVEL_SUSTAINED;
        out[0].limitUnit = ZES_LIMIT_UNIT_POWER;
        out[0].limit = 275500;
        out[1].level = ZES_POWER_LEVEL_PEAK;
        out[1].limitUnit = ZES_LIMIT_UNIT_CURRENT;
        out[1].limit = 9000;
    }
    return ZE_RESULT_SUCCESS;
}

ze_result_t zesDeviceEnumTemperatureSensors(zes_device_handle_t device, uint32_t *count, zes_temp_handle_t *out) {
    ENTER
    HANDLE(device, 'D')
    return enumerate(__func__, 't', count, out);
}

ze_result_t zesTemperatureGetProperties(zes_temp_handle_t sensor, zes_temp_properties_t *out) {
    ENTER
    HANDLE(sensor, 't')
    STRUCT(out, ZES_STRUCTURE_TYPE_TEMP_PROPERTIES)
    out->type = index(sensor) == 0 ? ZES_TEMP_SENSORS_GPU : ZES_TEMP_SENSORS_VOLTAGE_REGULATOR;
    return ZE_RESULT_SUCCESS;
}

ze_result_t zesTemperatureGetState(zes_temp_handle_t sensor, double *celsius) {
    ENTER
    HANDLE(sensor, 't')
    *celsius = index(sensor) == 0 ? 45.5 : NAN;
    return ZE_RESULT_SUCCESS;
}

} // extern "C"

#endif
