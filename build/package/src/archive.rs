//! Bankshot as one archive; `library.rs` makes the libraries from it.

extern crate bankshot as _;
