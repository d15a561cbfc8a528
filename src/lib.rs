//! Bankshot: an inference engine for Qwen's hybrid models with SYCL kernels.
//!
//! Data flows one way: [`gguf`] checks a file, [`model`] binds it to roles, [`plan`] decides everything as a value, [`load`] fills the device, and
//! [`exec`] runs the plan. [`oracle`] computes the same bits slowly. `docs/architecture.md` has the whole picture.

pub mod capi;
pub mod cli;
pub mod demo;
pub mod device;
pub mod exec;
pub mod gguf;
pub mod level_zero;
pub mod load;
pub mod model;
pub mod ops;
pub mod oracle;
pub mod plan;
pub mod quant;
pub mod residency;
pub mod rope;
pub mod session;
pub mod state;
pub mod text;
