//! Handlers of signals. The compiler inside the OpenCL CPU driver sets its own for signals that end a program, when it builds or loads its first
//! kernel. A library must not change what its program does with signals, so they are taken away again.

use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::sync::{Mutex, PoisonError};

/// What the driver's library is called.
const DRIVER: &[u8] = b"libintelocl.so";
/// The signals that handlers can be set for, without those of real time.
const SIGNALS: std::ops::Range<i32> = 1..32;

struct Kept {
    users: usize,
    before: Vec<(i32, libc::sigaction)>,
}

static KEPT: Mutex<Kept> = Mutex::new(Kept { users: 0, before: Vec::new() });

/// As long as it lives the driver may set handlers; at its end the program's are put back, and no others are touched.
#[derive(Debug)]
pub struct KeptHandlers(());

impl KeptHandlers {
    pub fn begin() -> KeptHandlers {
        let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.users == 0 {
            kept.before = SIGNALS.filter_map(|signal| Some((signal, action(signal)?))).collect();
        }
        kept.users += 1;
        KeptHandlers(())
    }
}

impl Drop for KeptHandlers {
    fn drop(&mut self) {
        let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
        kept.users -= 1;
        for (signal, before) in &kept.before {
            if action(*signal).is_some_and(|now| is_drivers(now.sa_sigaction)) && !is_drivers(before.sa_sigaction) {
                // SAFETY: the action is one that this signal had, and the old one is not asked for.
                unsafe { libc::sigaction(*signal, before, std::ptr::null_mut()) };
            }
        }
    }
}

/// What a signal does now, if it can be asked.
fn action(signal: i32) -> Option<libc::sigaction> {
    let mut now = MaybeUninit::uninit();
    // SAFETY: without a new action only the place is written.
    let asked = unsafe { libc::sigaction(signal, std::ptr::null(), now.as_mut_ptr()) } == 0;
    // SAFETY: it was written if the call succeeded.
    asked.then(|| unsafe { now.assume_init() })
}

/// Whether a handler is a function of the driver's library.
fn is_drivers(handler: libc::sighandler_t) -> bool {
    if handler == libc::SIG_DFL || handler == libc::SIG_IGN {
        return false;
    }
    let mut info = MaybeUninit::<libc::Dl_info>::uninit();
    // SAFETY: any address can be asked for, and only the place is written.
    if unsafe { libc::dladdr(handler as *const libc::c_void, info.as_mut_ptr()) } == 0 {
        return false;
    }
    // SAFETY: it was written, as the call succeeded.
    let name = unsafe { info.assume_init() }.dli_fname;
    if name.is_null() {
        return false;
    }
    // SAFETY: the loader's text ends with a zero, and lives as long as its library.
    let path = unsafe { CStr::from_ptr(name) }.to_bytes();
    path.rsplit(|byte| *byte == b'/').next().is_some_and(|name| name.starts_with(DRIVER))
}
