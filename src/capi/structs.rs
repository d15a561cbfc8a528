//! Structs and numbers of the header.

use std::ffi::c_char;

use super::borrow::Sized32;

/// Version of this header. A library of the same major and a higher minor version can be used with it.
pub const BANKSHOT_ABI_MAJOR: u32 = 1;
/// Goes up when functions, fields or statuses are added.
pub const BANKSHOT_ABI_MINOR: u32 = 0;

/// As a time: without a limit. As a number of bytes or tokens where 0 is the default: none.
pub const BANKSHOT_NONE: u64 = u64::MAX;

/// Type of cached keys and values: 16 bits, the default.
pub const BANKSHOT_KV_F16: u32 = 1;
/// 32 bits.
pub const BANKSHOT_KV_F32: u32 = 2;

/// How several cards share the work: each computes some layers. Without a wish the plan's own estimate decides.
pub const BANKSHOT_SPLIT_LAYER: u32 = 1;
/// Each computes some rows of every large matrix.
pub const BANKSHOT_SPLIT_TENSOR: u32 = 2;

/// The model is the small one that is part of the library; there is no path then.
pub const BANKSHOT_ENGINE_DEMO: u32 = 1;

/// The file and the devices are being looked at.
pub const BANKSHOT_STAGE_OPENING: u32 = 0;
/// Kernels are built and weights are uploaded.
pub const BANKSHOT_STAGE_LOADING: u32 = 1;
/// The engine can be used.
pub const BANKSHOT_STAGE_READY: u32 = 2;
/// The engine could not be opened; bankshot_engine_wait says why.
pub const BANKSHOT_STAGE_FAILED: u32 = 3;
/// The engine was closed.
pub const BANKSHOT_STAGE_CLOSED: u32 = 4;

/// The answer goes on.
pub const BANKSHOT_FINISH_NONE: u32 = 0;
/// The model chose a token that ends its turn.
pub const BANKSHOT_FINISH_STOP: u32 = 1;
/// As many tokens as were asked for.
pub const BANKSHOT_FINISH_LENGTH: u32 = 2;
/// The context is full.
pub const BANKSHOT_FINISH_CONTEXT: u32 = 3;

/// Put the beginning-of-sequence token in front, where the model asks for one.
pub const BANKSHOT_TOKENIZE_BEGIN: u32 = 1;
/// Read names of special tokens as these tokens.
pub const BANKSHOT_TOKENIZE_SPECIAL: u32 = 2;
/// Write names of special tokens, which are left out otherwise.
pub const BANKSHOT_DETOKENIZE_SPECIAL: u32 = 1;

/// End with the opening of the assistant's turn.
pub const BANKSHOT_RENDER_ANSWER: u32 = 1;
/// Ask the template for thoughts.
pub const BANKSHOT_RENDER_THINK: u32 = 2;
/// Ask the template to leave thoughts out. With neither the choice is the template's.
pub const BANKSHOT_RENDER_NO_THINK: u32 = 4;

/// Keep the logits that each token is chosen from.
pub const BANKSHOT_SESSION_LOGITS: u32 = 1;
/// Go on behind tokens that end the model's turn.
pub const BANKSHOT_SESSION_IGNORE_STOP: u32 = 2;

/// Compress the file.
pub const BANKSHOT_SAVE_COMPRESS: u32 = 1;
/// Write only what the session has more than when it was last saved or restored, if that was in the same folder.
pub const BANKSHOT_SAVE_DELTA: u32 = 2;
/// Read the whole file and compare all sums.
pub const BANKSHOT_INSPECT_VERIFY: u32 = 1;
/// Give its rows to sessions that are deltas of it, before it is deleted.
pub const BANKSHOT_DELETE_REPARENT: u32 = 1;

/// Where and how a model runs. Set struct_size to sizeof(bankshot_engine_options) and all else to 0, then what is
/// wanted.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct bankshot_engine_options {
    pub struct_size: u32,
    /// 0 or BANKSHOT_ENGINE_DEMO.
    pub flags: u32,
    /// GGUF file of the model, the first one of several.
    pub model_path: *const c_char,
    pub model_path_bytes: u64,
    /// Cards: numbers of devices, "cpu" or "gpu", with commas between them; "gpu:2" are the first two GPUs. Null: the
    /// first GPU, else the CPU.
    pub device: *const c_char,
    pub device_bytes: u64,
    /// GGUF file whose n-gram table is read instead of the model's, or null.
    pub ngram_path: *const c_char,
    pub ngram_path_bytes: u64,
    /// Profile of the experts that are used most, or null.
    pub expert_profile_path: *const c_char,
    pub expert_profile_path_bytes: u64,
    /// Tokens of context. 0: the model's own, at most 8192.
    pub context: u64,
    /// Most tokens that are computed together. 0: the default. Results do not depend on it.
    pub chunk: u64,
    /// 0 or a BANKSHOT_KV number.
    pub kv: u32,
    /// 0 or a BANKSHOT_SPLIT number.
    pub split: u32,
    /// Most bytes of each card for routed experts. 0: all that are left.
    pub expert_bytes: u64,
    /// Most bytes of host memory for routed experts. 0: all that are free.
    pub host_expert_bytes: u64,
    /// Bytes of each card for snapshots of sequences; 0 or BANKSHOT_NONE: none.
    pub bank_bytes: u64,
    /// Bytes of host memory for them; BANKSHOT_NONE: none. 0: none if bank_bytes is not 0, else up to 1 GiB.
    pub host_bank_bytes: u64,
    /// Tokens of a prompt after which a snapshot is taken. 0: 2048. BANKSHOT_NONE: only behind turns and at its end.
    pub bank_every: u64,
    /// Most bytes of the n-gram table's rows in memory. 0: 64 MiB. BANKSHOT_NONE: none.
    pub ngram_cache_bytes: u64,
}

/// What opening an engine has done so far. Set struct_size before the call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct bankshot_progress {
    pub struct_size: u32,
    /// A BANKSHOT_STAGE number.
    pub stage: u32,
    /// Kernel modules that are ready, and all.
    pub kernels_done: u64,
    pub kernels_total: u64,
    /// Bytes of weights that are on the cards, and all.
    pub weight_bytes_done: u64,
    pub weight_bytes_total: u64,
    /// Bytes that were read from the model's files.
    pub read_bytes: u64,
}

/// Sizes of an engine that is ready. Set struct_size before the call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct bankshot_info {
    pub struct_size: u32,
    pub cards: u32,
    /// Tokens that a session can have.
    pub context: u64,
    /// Token ids are less than this; so many logits has a token.
    pub vocabulary: u64,
    /// Most tokens that are computed together.
    pub chunk: u64,
}

/// A turn of a conversation. Its size is fixed for all versions.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct bankshot_message {
    /// "system", "user", "assistant" or what else the template knows.
    pub role: *const c_char,
    pub role_bytes: u64,
    pub content: *const c_char,
    pub content_bytes: u64,
}

/// How a session answers. Set struct_size, and all else to 0, then what is wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct bankshot_session_options {
    pub struct_size: u32,
    /// BANKSHOT_SESSION flags.
    pub flags: u32,
    /// Most tokens of an answer. 0: as many as the context holds.
    pub max_tokens: u64,
}

/// A token that was chosen. Set struct_size before the call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct bankshot_event {
    pub struct_size: u32,
    pub id: u32,
    /// A BANKSHOT_FINISH number: why the answer ends with this token.
    pub finish: u32,
    /// 0.
    pub reserved: u32,
    /// Bytes that bankshot_session_text has for this token; none if they end inside a character, or the token has no
    /// text.
    pub text_bytes: u64,
    /// Tokens of the session, this one among them.
    pub tokens: u64,
}

/// What a session has needed so far. Set struct_size before the call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct bankshot_stats {
    pub struct_size: u32,
    /// Why the answer has ended, a BANKSHOT_FINISH number.
    pub finish: u32,
    /// Tokens of the session.
    pub tokens: u64,
    /// Tokens that were computed, some of them perhaps more than once.
    pub computed_tokens: u64,
    /// Tokens that were not computed, because their state was known.
    pub recalled_tokens: u64,
    /// Tokens that were chosen.
    pub chosen_tokens: u64,
    /// How often the session had to make the engine its own.
    pub switches: u64,
}

// SAFETY: `repr(C)`, no padding (checked below), `struct_size` first, and all fields are numbers or pointers that may be null.
unsafe impl Sized32 for bankshot_engine_options {
    const LEAST: usize = 144;
}
// SAFETY: as above.
unsafe impl Sized32 for bankshot_progress {
    const LEAST: usize = 48;
}
// SAFETY: as above.
unsafe impl Sized32 for bankshot_info {
    const LEAST: usize = 32;
}
// SAFETY: as above.
unsafe impl Sized32 for bankshot_session_options {
    const LEAST: usize = 16;
}
// SAFETY: as above.
unsafe impl Sized32 for bankshot_event {
    const LEAST: usize = 32;
}
// SAFETY: as above.
unsafe impl Sized32 for bankshot_stats {
    const LEAST: usize = 48;
}

/// Sizes without padding: the sums of the fields.
const _: () = {
    assert!(size_of::<bankshot_engine_options>() == 2 * 4 + 8 * 8 + 2 * 8 + 2 * 4 + 6 * 8);
    assert!(size_of::<bankshot_progress>() == 2 * 4 + 5 * 8);
    assert!(size_of::<bankshot_info>() == 2 * 4 + 3 * 8);
    assert!(size_of::<bankshot_message>() == 4 * 8);
    assert!(size_of::<bankshot_session_options>() == 2 * 4 + 8);
    assert!(size_of::<bankshot_event>() == 4 * 4 + 2 * 8);
    assert!(size_of::<bankshot_stats>() == 2 * 4 + 5 * 8);
};
