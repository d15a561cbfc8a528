//! Bankshot: an inference engine for Qwen's hybrid models with SYCL kernels.

pub mod gguf;
pub mod model;
pub mod oracle;
pub mod quant;
pub mod rope;
