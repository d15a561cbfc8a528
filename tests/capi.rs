//! The C API: the header is what the library says, C and C++ programs get the ids that Rust and the command line get, and every misuse that can be
//! noticed is.
//!
//! After a change of `src/capi`, `BLESS=1 cargo test --release --test capi header` writes the header anew; read the difference.
//!
//! Some tests set faults, which are of the whole process, so that all tests that compute take turns.

#[path = "support/faults.rs"]
#[allow(dead_code, reason = "shared with other tests")]
mod faults;
#[path = "capi/header.rs"]
mod header;
#[path = "capi/misuse.rs"]
mod misuse;
#[path = "support/packaged.rs"]
mod packaged;
#[path = "capi/programs.rs"]
mod programs;
#[path = "capi/statuses.rs"]
mod statuses;
#[path = "capi/support.rs"]
mod support;
