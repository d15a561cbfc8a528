// Devices, cards and arenas.
#include "objects.hpp"

#include <algorithm>
#include <cstdlib>
#include <dlfcn.h>
#include <fstream>

namespace xk {

const std::string &library_folder() {
    static const std::string folder = [] {
        Dl_info info{};
        // Any symbol that only libsycl defines tells where that library was loaded from.
        void *symbol = dlsym(RTLD_DEFAULT, "_ZN4sycl3_V18platform13get_platformsEv");
        if (symbol == nullptr || dladdr(symbol, &info) == 0 || info.dli_fname == nullptr) {
            return std::string();
        }
        std::unique_ptr<char, void (*)(void *)> real(realpath(info.dli_fname, nullptr), std::free);
        const std::string path = real ? real.get() : info.dli_fname;
        return path.substr(0, path.rfind('/') + 1);
    }();
    return folder;
}

static std::string own_opencl_driver() {
    return library_folder() + "libintelocl.so";
}

// The OpenCL loader knows no driver by default; point it to the one that came with libsycl.
static void choose_opencl_driver() {
    if (std::getenv("OCL_ICD_FILENAMES") != nullptr || std::getenv("OCL_ICD_VENDORS") != nullptr) {
        return;
    }
    const std::string driver = own_opencl_driver();
    if (!library_folder().empty() && std::ifstream(driver).good()) {
        setenv("OCL_ICD_FILENAMES", driver.c_str(), 0);
    }
}

// That driver reads its own path only up to the first space, and then finds none of the files beside it.
static void check_opencl_driver(const sycl::device &device) {
    const char *chosen = std::getenv("OCL_ICD_FILENAMES");
    const std::string driver = own_opencl_driver();
    if (device.get_backend() == sycl::backend::opencl && chosen != nullptr && chosen == driver &&
        driver.find(' ') != std::string::npos) {
        fail(XK_ERR_DEVICE, "path of the OpenCL CPU driver", "one without spaces", driver);
    }
}

static std::vector<sycl::device> find_devices() {
    choose_opencl_driver();
    std::vector<sycl::device> level_zero;
    std::vector<sycl::device> cuda;
    std::vector<sycl::device> cpu;
    for (const auto &platform : sycl::platform::get_platforms()) {
        for (const auto &device : platform.get_devices()) {
            const auto backend = device.get_backend();
            if (backend == sycl::backend::ext_oneapi_level_zero && device.is_gpu()) {
                level_zero.push_back(device);
            } else if (backend == sycl::backend::ext_oneapi_cuda && device.is_gpu()) {
                cuda.push_back(device);
            } else if (backend == sycl::backend::opencl && device.is_cpu() && cpu.empty()) {
                // A second OpenCL driver would only show the same processor again.
                cpu.push_back(device);
            }
        }
    }
    // Two Level Zero adapters in one process would show each GPU twice.
    std::vector<sycl::device> all;
    std::vector<std::array<unsigned char, 16>> seen;
    for (auto &device : level_zero) {
        if (device.has(sycl::aspect::ext_intel_device_info_uuid)) {
            const auto id = device.get_info<sycl::ext::intel::info::device::uuid>();
            if (std::find(seen.begin(), seen.end(), id) != seen.end()) {
                continue;
            }
            seen.push_back(id);
        }
        all.push_back(device);
    }
    all.insert(all.end(), cuda.begin(), cuda.end());
    all.insert(all.end(), cpu.begin(), cpu.end());
    return all;
}

const std::vector<sycl::device> &devices() {
    static const std::vector<sycl::device> all = find_devices();
    return all;
}

static const sycl::device &device_at(uint32_t index) {
    const auto &all = devices();
    if (index >= all.size()) {
        fail(XK_ERR_NOT_FOUND, "device index", "less than " + std::to_string(all.size()), index);
    }
    return all[index];
}

static const char *backend_name(sycl::backend backend) {
    switch (backend) {
    case sycl::backend::ext_oneapi_level_zero:
        return "level_zero";
    case sycl::backend::ext_oneapi_cuda:
        return "cuda";
    default:
        return "opencl";
    }
}

template <size_t N> static void put(char (&field)[N], const std::string &text) {
    size_t bytes = std::min(text.size(), N - 1);
    // Do not cut through a UTF-8 sequence.
    while (bytes > 0 && bytes < text.size() && (static_cast<unsigned char>(text[bytes]) & 0xC0) == 0x80) {
        --bytes;
    }
    std::memcpy(field, text.data(), bytes);
}

static xk_device_info describe(const sycl::device &device) {
    namespace info = sycl::info::device;
    xk_device_info out{};
    out.is_cpu = device.is_cpu() ? 1 : 0;
    out.compute_units = device.get_info<info::max_compute_units>();
    for (const size_t lanes : device.get_info<info::sub_group_sizes>()) {
        if (lanes < 32) {
            out.sub_group_sizes |= uint32_t(1) << lanes;
        } else if (lanes == 32) {
            out.has_sub_group_32 = 1;
        }
    }
    out.global_bytes = device.get_info<info::global_mem_size>();
    out.max_alloc_bytes = device.get_info<info::max_mem_alloc_size>();
    out.local_bytes = device.get_info<info::local_mem_size>();
    put(out.name, device.get_info<info::name>());
    put(out.vendor, device.get_info<info::vendor>());
    put(out.driver, device.get_info<info::driver_version>());
    put(out.backend, backend_name(device.get_backend()));
    if (device.has(sycl::aspect::ext_intel_free_memory)) {
        try {
            out.free_bytes = device.get_info<sycl::ext::intel::info::device::free_memory>();
        } catch (const sycl::exception &) {
            // A driver that can say it in principle, and not now.
        }
    }
    return out;
}

Card::Card(const sycl::device &d)
    : device(d), context(d), name(d.get_info<sycl::info::device::name>()),
      driver(d.get_info<sycl::info::device::driver_version>()), backend(d.get_backend()) {}

void Card::wait_all() noexcept {
    std::lock_guard lock(queues_mutex);
    for (auto &queue : queues) {
        try {
            queue.wait();
        } catch (...) {
            // A queue that records has nothing in flight; a broken one reports at its own next call.
        }
    }
}

static sycl::device part_of(const sycl::device &device, uint32_t count, uint32_t index) {
    namespace info = sycl::info::device;
    constexpr auto equally = sycl::info::partition_property::partition_equally;
    if (count <= 1) {
        return device;
    }
    if (index >= count) {
        fail(XK_ERR_VALUE, "part_index", "less than part_count " + std::to_string(count), index);
    }
    const auto ways = device.get_info<info::partition_properties>();
    const uint32_t units = device.get_info<info::max_compute_units>();
    if (units == 1 || std::find(ways.begin(), ways.end(), equally) == ways.end()) {
        return device;
    }
    const uint32_t units_each = std::max(units / count, 1u);
    return device.create_sub_devices<equally>(units_each).at(index % units);
}

static bool can_copy(const Card &to, const Card &from) {
    if (&to == &from) {
        return true;
    }
    if (to.backend != from.backend) {
        return false;
    }
    switch (to.backend) {
    case sycl::backend::opencl:
        // One processor, one address space.
        return to.device.is_cpu() && from.device.is_cpu();
    case sycl::backend::ext_oneapi_cuda:
        // Asking is not for other backends: OpenCL's ends the process.
        return to.device == from.device || sycl::device(to.device).ext_oneapi_can_access_peer(from.device);
    default:
        return false;
    }
}

} // namespace xk

using namespace xk;

xk_status xk_device_count(uint32_t *count) {
    return guard("xk_device_count", [&] {
        require(count, "count");
        *count = static_cast<uint32_t>(devices().size());
    });
}

xk_status xk_device_info_get(uint32_t index, xk_device_info *info) {
    return guard("xk_device_info_get", [&] {
        require(info, "info");
        write_struct(describe(device_at(index)), info, "info", offsetof(xk_device_info, free_bytes));
    });
}

xk_status xk_card_create(const xk_card_desc *desc, xk_card **out) {
    return guard("xk_card_create", [&] {
        const auto d = read_struct(desc, "desc");
        require(out, "out");
        check_opencl_driver(device_at(d.device_index));
        const auto device = part_of(device_at(d.device_index), d.part_count, d.part_index);
        *out = new xk_card{std::make_shared<Card>(device)};
    });
}

void xk_card_destroy(xk_card *card) {
    if (card != nullptr) {
        card->card->wait_all();
        delete card;
    }
}

xk_status xk_card_peer(xk_card *to, xk_card *from, uint32_t *possible) {
    return guard("xk_card_peer", [&] {
        require(to, "to");
        require(from, "from");
        require(possible, "possible");
        *possible = can_copy(*to->card, *from->card) ? 1 : 0;
    });
}

xk_status xk_arena_create(xk_card *card, uint64_t bytes, uint32_t kind, xk_arena **out) {
    return guard("xk_arena_create", [&] {
        require(card, "card");
        require(out, "out");
        if (kind != XK_MEMORY_DEVICE && kind != XK_MEMORY_HOST) {
            fail(XK_ERR_VALUE, "kind", "XK_MEMORY_DEVICE or XK_MEMORY_HOST", kind);
        }
        Card &c = *card->card;
        const uint64_t most = c.device.get_info<sycl::info::device::global_mem_size>();
        if (bytes == 0) {
            fail(XK_ERR_VALUE, "bytes", "more than 0", bytes);
        }
        // Some drivers accept more than there is and fail, or swap, at first use.
        if (kind == XK_MEMORY_DEVICE && bytes > most) {
            fail(XK_ERR_DEVICE_MEMORY, "bytes", "at most the card's " + std::to_string(most), bytes);
        }
        auto arena = std::make_unique<xk_arena>(xk_arena{card->card, nullptr, Live(figures.arena_bytes, bytes)});
        const auto usm = kind == XK_MEMORY_DEVICE ? sycl::usm::alloc::device : sycl::usm::alloc::host;
        try {
            if (!fault_hits(Operation::allocation)) {
                arena->base = sycl::aligned_alloc(64, bytes, c.device, c.context, usm);
            }
        } catch (const sycl::exception &e) {
            if (status_of(e) == XK_ERR_DEVICE_LOST) {
                throw;
            }
        }
        if (arena->base == nullptr) {
            const uint64_t single = c.device.get_info<sycl::info::device::max_mem_alloc_size>();
            fail(kind == XK_MEMORY_DEVICE ? XK_ERR_DEVICE_MEMORY : XK_ERR_HOST_MEMORY, "bytes",
                 "what is free (a single allocation is promised up to " + std::to_string(single) + ")", bytes);
        }
        *out = arena.release();
    });
}

xk_status xk_arena_base(const xk_arena *arena, void **out) {
    return guard("xk_arena_base", [&] {
        require(arena, "arena");
        require(out, "out");
        *out = arena->base;
    });
}

void xk_arena_destroy(xk_arena *arena) {
    if (arena != nullptr) {
        arena->card->wait_all();
        guard("xk_arena_destroy", [&] { sycl::free(arena->base, arena->card->context); });
        delete arena;
    }
}
