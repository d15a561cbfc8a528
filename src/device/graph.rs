//! Recorded work.

use super::queue::Kept;
use super::sys;
use std::ptr::NonNull;

/// Work that was recorded once and can be launched often; keeps the memory and the kernels that it uses.
#[derive(Debug)]
pub struct Graph {
    raw: NonNull<sys::xk_graph>,
    _kept: Kept,
}

// SAFETY: the ABI ties no graph to a thread; it asks for one call at a time, which `!Sync` gives.
unsafe impl Send for Graph {}

impl Graph {
    pub(super) fn new(raw: NonNull<sys::xk_graph>, kept: Kept) -> Self {
        Self { raw, _kept: kept }
    }

    pub(super) fn raw(&self) -> *mut sys::xk_graph {
        self.raw.as_ptr()
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        // SAFETY: the handle is ours and is used no more; the call waits for runs in flight, and what the graph keeps
        // is dropped after it.
        unsafe { sys::xk_graph_destroy(self.raw.as_ptr()) };
    }
}
