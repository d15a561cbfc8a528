//! Faults that a test sets, and counts of what is alive: an aid for tests, see `include/xk.h`.

use super::status::check;
use super::sys;

/// What fails. Faults are of the whole process: tests that set them take turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Fault {
    /// An arena: out of device memory, or of host memory for pinned arenas.
    Allocation = sys::XK_FAULT_ALLOCATION,
    /// A launch of a kernel or a graph.
    Launch = sys::XK_FAULT_LAUNCH,
    /// A copy or a fill.
    Copy = sys::XK_FAULT_COPY,
    /// The device is lost at a launch.
    Lost = sys::XK_FAULT_LOST,
    /// From a launch on, no queue becomes idle and no event done.
    Stall = sys::XK_FAULT_STALL,
    /// Copies between cards write wrong bytes and succeed.
    Peer = sys::XK_FAULT_PEER,
    /// A question whether a queue is idle.
    Idle = sys::XK_FAULT_IDLE,
}

/// Lets operation `after` of that kind fail, where 0 is the next one, and starts to count.
pub fn set(fault: Fault, after: u64) {
    // SAFETY: the call takes numbers only.
    check(unsafe { sys::xk_fault_set(fault as u32, after) }).expect("every kind is known");
}

/// Sets no fault, and counts no more.
pub fn clear() {
    // SAFETY: the call takes numbers only.
    check(unsafe { sys::xk_fault_set(sys::XK_FAULT_NONE, 0) }).expect("no fault can always be set");
}

/// How many operations of that kind there were since [`set`].
pub fn count(fault: Fault) -> u64 {
    let mut n = 0;
    // SAFETY: the pointer is to a live number.
    check(unsafe { sys::xk_fault_count(fault as u32, &mut n) }).expect("every kind is known");
    n
}

/// Objects of the C ABI that are not destroyed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Live {
    pub cards: u64,
    pub arenas: u64,
    pub arena_bytes: u64,
    pub queues: u64,
    pub events: u64,
    pub modules: u64,
    pub graphs: u64,
}

/// What is alive in the process now.
pub fn live() -> Live {
    let mut raw = sys::xk_live { struct_size: size_of::<sys::xk_live>() as u32, ..Default::default() };
    // SAFETY: the struct is live and says its own size.
    check(unsafe { sys::xk_live_objects(&mut raw) }).expect("the struct is known");
    Live {
        cards: raw.cards,
        arenas: raw.arenas,
        arena_bytes: raw.arena_bytes,
        queues: raw.queues,
        events: raw.events,
        modules: raw.modules,
        graphs: raw.graphs,
    }
}
