//! The modules that read what others wrote, compiled without the device code: no SYCL toolchain is needed, and all of it
//! is instrumented.

// The device code uses more of these modules.
#![allow(dead_code, unused_imports)]

extern crate self as bankshot;

#[path = "../src/gguf/mod.rs"]
pub mod gguf;
#[path = "../src/load/model.rs"]
pub mod load;
#[path = "../src/model/mod.rs"]
pub mod model;
#[path = "../src/quant/mod.rs"]
pub mod quant;
pub mod targets;
#[path = "../src/text/mod.rs"]
pub mod text;
