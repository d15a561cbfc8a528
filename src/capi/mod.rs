//! The C API: the functions of `include/bankshot.h`, which cbindgen makes of this module. `docs/capi.md` is its guide.
//!
//! Functions are thin. What C hands over is checked in `borrow`, which has nearly all of the module's `unsafe` code; `guard` lets no panic out and
//! keeps the text of errors; `status` has the table from errors to numbers. What is computed is [`crate::session`]'s.
//!
//! The documentation of what is exported is that of the header, and written for C.

#![allow(non_camel_case_types, reason = "names of C")]
#![allow(clippy::missing_safety_doc, reason = "the header's own text says what a caller has to keep to")]
#![allow(clippy::field_reassign_with_default, reason = "as callers outside of this crate have to")]

mod borrow;
mod engine;
mod guard;
mod log;
mod session;
mod status;
mod structs;
mod version;

pub use engine::*;
#[doc(hidden)]
pub use guard::panic_next;
pub use log::*;
pub use session::*;
pub use status::{
    BANKSHOT_ERR_BUFFER, BANKSHOT_ERR_CANCELLED, BANKSHOT_ERR_CONTEXT, BANKSHOT_ERR_DEVICE, BANKSHOT_ERR_DEVICE_LOST,
    BANKSHOT_ERR_DEVICE_MEMORY, BANKSHOT_ERR_DISK, BANKSHOT_ERR_INTERNAL, BANKSHOT_ERR_IO, BANKSHOT_ERR_MEMORY,
    BANKSHOT_ERR_MODEL, BANKSHOT_ERR_NOT_FOUND, BANKSHOT_ERR_NULL, BANKSHOT_ERR_POISONED, BANKSHOT_ERR_SESSION,
    BANKSHOT_ERR_STATE, BANKSHOT_ERR_STRUCT, BANKSHOT_ERR_TEMPLATE, BANKSHOT_ERR_TIMEOUT, BANKSHOT_ERR_UNSUPPORTED,
    BANKSHOT_ERR_VALUE, BANKSHOT_OK, bankshot_status,
};
#[doc(hidden)]
pub use status::{Failure, status_of};
pub use structs::*;
pub use version::*;
