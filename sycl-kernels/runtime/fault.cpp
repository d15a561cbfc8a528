// Faults that a test sets, and counts of what is alive.
#include "objects.hpp"

namespace xk {

std::atomic<uint32_t> fault_kind{XK_FAULT_NONE};
Figures figures;

static std::mutex mutex;
static uint64_t fail_after = 0;
static uint64_t counts[XK_FAULT_IDLE + 1] = {};

// LOST and STALL begin at a launch.
static uint64_t &count_of(uint32_t kind) {
    return counts[kind == XK_FAULT_LOST || kind == XK_FAULT_STALL ? XK_FAULT_LAUNCH : kind];
}

static uint32_t fault_of(Operation operation) {
    switch (operation) {
    case Operation::allocation:
        return XK_FAULT_ALLOCATION;
    case Operation::launch:
        return XK_FAULT_LAUNCH;
    case Operation::copy:
    case Operation::peer_copy:
        return XK_FAULT_COPY;
    case Operation::idle:
        return XK_FAULT_IDLE;
    default:
        return XK_FAULT_NONE;
    }
}

bool fault_hits_counted(Operation operation) {
    const uint32_t counted = fault_of(operation);
    bool hit = false;
    {
        std::lock_guard lock(mutex);
        hit = counted != XK_FAULT_NONE && fault_is(counted) && counts[counted] == fail_after;
        ++counts[counted];
        if (operation == Operation::peer_copy) {
            ++counts[XK_FAULT_PEER];
        }
    }
    if (operation != Operation::allocation) {
        fault_check_lost();
    }
    return hit;
}

bool fault_reached() {
    std::lock_guard lock(mutex);
    return count_of(fault_kind) > fail_after;
}

static sycl::exception exception_of(const char *result) {
    return sycl::exception(sycl::make_error_code(sycl::errc::runtime),
                           std::string("a fault set by a test failed with error: ") + result);
}

void fault_fail() { throw exception_of("21 (UR_RESULT_ERROR_UNKNOWN)"); }

void fault_check_lost() {
    if (fault_is(XK_FAULT_LOST) && fault_reached()) {
        throw exception_of("20 (UR_RESULT_ERROR_DEVICE_LOST)");
    }
}

static void require_kind(uint32_t kind) {
    if (kind > XK_FAULT_IDLE) {
        fail(XK_ERR_VALUE, "kind", "one of XK_FAULT_*", kind);
    }
}

} // namespace xk

using namespace xk;

xk_status xk_fault_set(uint32_t kind, uint64_t after) {
    return guard("xk_fault_set", [&] {
        require_kind(kind);
        std::lock_guard lock(mutex);
        fail_after = after;
        std::fill(std::begin(counts), std::end(counts), 0);
        fault_kind = kind;
    });
}

xk_status xk_fault_count(uint32_t kind, uint64_t *n) {
    return guard("xk_fault_count", [&] {
        require_kind(kind);
        require(n, "n");
        std::lock_guard lock(mutex);
        *n = kind == XK_FAULT_NONE ? 0 : count_of(kind);
    });
}

xk_status xk_live_objects(xk_live *live) {
    return guard("xk_live_objects", [&] {
        xk_live found{};
        found.cards = figures.cards;
        found.arenas = figures.arenas;
        found.arena_bytes = figures.arena_bytes;
        found.queues = figures.queues;
        found.events = figures.events;
        found.modules = figures.modules;
        found.graphs = figures.graphs;
        write_struct(found, live, "live");
    });
}
