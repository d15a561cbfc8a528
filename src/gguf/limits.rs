//! Upper bounds on what a file may declare. They lie well above any real model; their purpose is that a damaged or
//! hostile count ends in an error and not in a huge allocation.

/// Key-value pairs in one file.
pub const MAX_PAIRS: u64 = 1 << 16;
/// Tensors in one file.
pub const MAX_TENSORS: u64 = 1 << 17;
/// Bytes of a metadata key.
pub const MAX_KEY_BYTES: u64 = (1 << 16) - 1;
/// Bytes of a metadata string, alone or in an array.
pub const MAX_STRING_BYTES: u64 = 16 << 20;
/// Elements of a metadata array.
pub const MAX_ARRAY_ELEMENTS: u64 = 1 << 22;
/// Bytes of a tensor name.
pub const MAX_TENSOR_NAME_BYTES: usize = 63;
/// Dimensions of a tensor.
pub const MAX_DIMS: usize = 4;
/// Elements of a tensor; ggml counts them in a signed 64-bit integer.
pub const MAX_TENSOR_ELEMENTS: u64 = i64::MAX as u64;
/// Alignment of the tensor data, in bytes.
pub const MAX_ALIGNMENT: u64 = 1 << 20;
/// Alignment of a file that names none, in bytes.
pub const DEFAULT_ALIGNMENT: u64 = 32;
/// Tensor problems that an error lists in full.
pub const MAX_LISTED_PROBLEMS: usize = 20;

/// A tensor directory entry with more dimensions than this is not skipped: its length cannot be trusted.
pub(super) const MAX_SKIPPED_DIMS: u32 = 16;
