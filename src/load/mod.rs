//! From a file to a device: opening and checking a model, and repacking its weights into device memory.

mod model;
pub mod pack;
mod rows;
mod weights;

pub use model::{LoadError, Model, vocab_source};
pub use rows::{ReadAt, RowCounters, RowError, RowTable, TableOptions, Tables};
pub use weights::upload;

/// What loading has done so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Kernel modules that are ready.
    Kernels { done: usize, total: usize },
    /// Weight bytes on the device.
    Weights { done: u64, total: u64 },
}
