// Faults that a test sets, and counts of what is alive; see xk.h.
#pragma once

#include "xk.h"

#include <atomic>
#include <cstdint>

namespace xk {

enum class Operation { allocation, launch, copy, peer_copy, idle, other };

// The kind of fault that is set. All that the functions below cost a process without one is this load.
extern std::atomic<uint32_t> fault_kind;

inline bool fault_is(uint32_t kind) { return fault_kind.load(std::memory_order_relaxed) == kind; }

// Counts the operation, and says whether it is the one to fail. A device that a fault has lost throws for every
// operation but an allocation.
bool fault_hits_counted(Operation operation);
inline bool fault_hits(Operation operation) { return !fault_is(XK_FAULT_NONE) && fault_hits_counted(operation); }

// Whether the operation that LOST, STALL or PEER waits for has come.
bool fault_reached();
inline bool fault_stalls() { return fault_is(XK_FAULT_STALL) && fault_reached(); }
inline bool fault_spoils_peer_copies() { return fault_is(XK_FAULT_PEER) && fault_reached(); }

// Throws what SYCL throws when a device fails, or when it is lost.
[[noreturn]] void fault_fail();
void fault_check_lost();

struct Figures {
    std::atomic<uint64_t> cards{0}, arenas{0}, arena_bytes{0}, queues{0}, events{0}, modules{0}, graphs{0};
};
extern Figures figures;

// Adds to a figure for as long as it lives.
class Live {
    std::atomic<uint64_t> &figure;
    uint64_t amount;

  public:
    explicit Live(std::atomic<uint64_t> &f, uint64_t n = 1) : figure(f), amount(n) { figure += amount; }
    Live(const Live &other) : Live(other.figure, other.amount) {}
    Live &operator=(const Live &) = delete;
    ~Live() { figure -= amount; }
};

} // namespace xk
