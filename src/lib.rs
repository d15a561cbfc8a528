//! Bankshot: an inference engine for Qwen's hybrid models with SYCL kernels.
pub mod device;
