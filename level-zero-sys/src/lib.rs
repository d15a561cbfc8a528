//! Bindings of Level Zero: the core and sysman functions that Bankshot calls, and their types.
//!
//! [`LevelZero`] holds a function pointer for each, resolved when the loader's library is opened. One that a loader lacks
//! is an error in its field, so look there before a call: the methods panic without it.

#[allow(clippy::all, missing_debug_implementations, non_camel_case_types, non_snake_case, non_upper_case_globals)]
mod bindings;

pub use bindings::*;
