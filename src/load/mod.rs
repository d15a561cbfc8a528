//! From a file to a device: opening and checking a model, and repacking its weights into device memory.

mod gather;
mod model;
pub mod pack;
mod rows;
mod sources;
mod stream;
mod sums;
mod weights;

pub use model::{LoadError, Model, vocab_source};
pub use rows::{RowCounters, RowError, RowTable, TableOptions, Tables};
pub use sources::{ReadAt, Sources};
pub use stream::{Job, Packed, StreamOptions, stream};
pub use sums::{SumsError, check_sums};
pub use weights::{Target, UploadError, upload};

/// What loading has done so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Kernel modules that are ready.
    Kernels { done: usize, total: usize },
    /// Weight bytes on the device, and bytes read from the files for them.
    Weights { done: u64, total: u64, read_bytes: u64 },
    /// Bytes of the model's files that were hashed.
    Sums { done: u64, total: u64 },
}
