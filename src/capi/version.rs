//! What needs no handle: version, features, the text of the last error.

use std::ffi::c_char;

use serde_json::json;

use super::borrow::{Buffer, Out};
use super::guard::{self, call};
use super::status::bankshot_status;
use super::structs::{BANKSHOT_ABI_MAJOR, BANKSHOT_ABI_MINOR};
use crate::model::Architecture;
use crate::quant::Format;

/// Version of the library's interface.
/// Ownership: none changes. Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bankshot_abi_version(major: *mut u32, minor: *mut u32) -> bankshot_status {
    // SAFETY: the caller keeps to the header.
    let (major, minor) = unsafe { (Out::new(major), Out::new(minor)) };
    call("bankshot_abi_version", || {
        major.check("major")?;
        minor.check("minor")?;
        major.write("major", BANKSHOT_ABI_MAJOR)?;
        minor.write("minor", BANKSHOT_ABI_MINOR)
    })
}

/// What the library is and can do, as JSON: version, architectures, formats of weights.
/// Ownership: the buffer is the caller's. Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bankshot_features(buffer: *mut c_char, cap: usize, needed: *mut usize) -> bankshot_status {
    // SAFETY: the caller keeps to the header.
    let buffer = unsafe { Buffer::text(buffer, cap, needed) };
    call("bankshot_features", || {
        let object = json!({
            "version": env!("CARGO_PKG_VERSION"),
            "abi": [BANKSHOT_ABI_MAJOR, BANKSHOT_ABI_MINOR],
            "architectures": Architecture::ALL.map(Architecture::name),
            "formats": Format::ALL.map(Format::name),
            "choice": ["greedy"],
            "demo": true,
        });
        buffer.fill(object.to_string().as_bytes())
    })
}

/// Copies the text of this thread's last call that failed into a buffer, cut to cap bytes with a closing zero, and
/// returns its whole length without the zero. The buffer may be null when cap is 0.
/// Ownership: the buffer is the caller's. Threads: any; each has its own text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bankshot_last_error(buffer: *mut c_char, cap: usize) -> usize {
    let mut bytes = guard::last_error().into_bytes();
    let whole = bytes.len();
    if cap > 0 && !buffer.is_null() {
        bytes.truncate(cap - 1);
        bytes.push(0);
        let mut needed = 0;
        // SAFETY: the caller keeps to the header, and the length has a place.
        let buffer = unsafe { Buffer::text(buffer, cap, &mut needed) };
        // It has room.
        let _ = buffer.fill(&bytes);
    }
    whole
}
