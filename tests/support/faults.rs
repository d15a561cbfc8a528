//! Turns for tests that set faults, which are of the whole process. Such tests have a test binary of their own.

use bankshot::device::fault::{self, Fault, Live};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// One test's turn; its end clears the fault.
pub struct Turn(#[allow(dead_code, reason = "held, not read")] MutexGuard<'static, ()>);

impl Turn {
    pub fn take() -> Turn {
        static LOCK: Mutex<()> = Mutex::new(());
        Turn(LOCK.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub fn set(&self, fault: Fault, after: u64) {
        fault::set(fault, after);
    }

    pub fn clear(&self) {
        fault::clear();
    }

    /// Operations of a kind that some work has.
    pub fn count(&self, fault: Fault, work: impl FnOnce()) -> u64 {
        fault::set(fault, u64::MAX);
        work();
        let n = fault::count(fault);
        fault::clear();
        n
    }

    pub fn live(&self) -> Live {
        fault::live()
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        fault::clear();
    }
}
