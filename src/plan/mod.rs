//! The plan: everything that running a model needs decided, as a value.
//!
//! A pure function of the bound model and the options; it touches no device. It names the arenas, where every weight, buffer and piece of state lies in
//! them, the kernel modules, and each layer's operations in order. `exec` does what it says and decides nothing.

mod arena;
mod layers;
mod scratch;
mod steps;

use std::collections::BTreeSet;

pub use arena::{ARENA_BYTES_MAX, ArenaKind, Ledger, Region};
pub use layers::{plan_entries_max, plan_slots_at};
pub use steps::{ActKind, AttentionOp, Buffer, Buffers, GatesIn, Op, Rows, SparseOp, Step};

use crate::model::{Bound, KvType, LayerKind, Spec, TensorRef, VectorRef};
use crate::quant::Format;

/// Tokens of a prompt that are computed together unless the user says otherwise.
pub const DEFAULT_CHUNK: usize = 256;
/// Rows of logits that are computed together.
pub const LOGIT_ROWS: usize = 16;
/// Rows that a many-row matrix kernel computes together.
pub const ROWS_PER_GROUP: usize = 8;
/// Most experts that the routing kernels hold.
pub const EXPERTS_MAX: usize = 1024;

/// What the user chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Tokens of context; at most the model's.
    pub context: usize,
    /// Most tokens computed together.
    pub chunk: usize,
    pub kv: KvType,
}

/// Where a matrix lies on the device.
#[derive(Clone, Debug, PartialEq)]
pub struct Weight {
    pub tensor: TensorRef,
    pub region: Region,
    /// Bytes from one expert to the next.
    pub expert_bytes: u64,
}

/// Where a vector of f32 lies on the device, and what fills it.
#[derive(Clone, Debug, PartialEq)]
pub struct Vector {
    pub values: VectorRef,
    pub region: Region,
}

/// A codebook on the device.
#[derive(Clone, Debug, PartialEq)]
pub struct Codebook {
    pub format: Format,
    pub region: Region,
}

/// One piece of a sequence's state.
#[derive(Clone, Debug, PartialEq)]
pub struct StateItem {
    pub layer: usize,
    pub kind: StateKind,
    pub region: Region,
}

/// What a piece of state is; shapes slowest dimension first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateKind {
    /// Last inputs of the convolution, f32 [taps-1][channels].
    ConvWindow,
    /// The delta net's matrices, f32 [value_heads][128][128].
    Matrix,
    /// [context][kv_heads][head_dim]
    Keys,
    /// [context][kv_heads][head_dim]
    Values,
    /// [context/ratio][index_dim]
    PooledKeys,
    /// Raw index keys of the block that is not complete, f32 [ratio][index_dim].
    IndexTail,
    /// Past vectors of the n-gram convolution, f32 [(taps-1)*ngram][streams*hidden], oldest first.
    PleHistory,
}

/// A kernel module that the plan uses, as it is named in the build.
pub type ModuleName = String;

/// A plan that fits what it was made for.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    pub options: Options,
    pub spec: Spec,
    pub ledger: Ledger,
    pub weights: Vec<Weight>,
    pub vectors: Vec<Vector>,
    pub codebooks: Vec<Codebook>,
    pub state: Vec<StateItem>,
    pub buffers: Buffers,
    /// From the embedding to the first layer.
    pub start: Vec<Step>,
    pub layers: Vec<LayerPlan>,
    /// From the last layer to logits.
    pub head: Vec<Step>,
    pub modules: BTreeSet<ModuleName>,
}

/// One layer's operations in order.
#[derive(Clone, Debug, PartialEq)]
pub struct LayerPlan {
    pub index: usize,
    pub kind: LayerKind,
    pub steps: Vec<Step>,
}

/// Why there is no plan.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    #[error("context: expected 1 to {max} tokens (the model's own limit), got {got}")]
    Context { max: usize, got: usize },
    #[error("chunk: expected 1 to {max} tokens, got {got}")]
    Chunk { max: usize, got: usize },
    #[error("{what}: the kernels take {expected}, the model has {got}")]
    Kernel { what: &'static str, expected: String, got: usize },
    #[error("{what}: one piece needs {bytes} bytes, and an arena holds at most {max}")]
    Piece { what: String, bytes: u64, max: u64 },
    #[error("{}", .0)]
    Memory(MemoryTable),
}

/// What a plan needs against what a device has, with the smallest change that would fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryTable {
    pub weights: u64,
    pub state: u64,
    pub buffers: u64,
    pub reserve: u64,
    pub free: u64,
    pub context: usize,
    /// The longest context that fits, 0 if none does.
    pub context_that_fits: usize,
}

impl MemoryTable {
    pub fn needed(&self) -> u64 {
        self.weights.saturating_add(self.state).saturating_add(self.buffers).saturating_add(self.reserve)
    }
}

impl std::fmt::Display for MemoryTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "the model does not fit the device's memory:")?;
        let mib = |bytes: u64| bytes.div_ceil(1 << 20);
        for (name, bytes) in [
            ("weights", self.weights),
            ("state", self.state),
            ("buffers", self.buffers),
            ("reserve", self.reserve),
            ("needed", self.needed()),
            ("free", self.free),
        ] {
            writeln!(f, "  {name:<8} {:>10} MiB", mib(bytes))?;
        }
        match self.context_that_fits {
            0 => write!(f, "no context fits; the weights and buffers alone need more than is free"),
            n => write!(f, "the smallest change that fits: --ctx {n} instead of {}", self.context),
        }
    }
}

impl Plan {
    /// Plans a model.
    ///
    /// # Errors
    /// When an option is out of range, the model has a dimension that the kernels do not take, or a single piece is larger than an arena.
    pub fn new(bound: &Bound, options: Options) -> Result<Plan, PlanError> {
        let spec = &bound.spec;
        if options.context == 0 || options.context > spec.context_length {
            return Err(PlanError::Context { max: spec.context_length, got: options.context });
        }
        let chunk_max = 4096;
        if options.chunk == 0 || options.chunk > chunk_max {
            return Err(PlanError::Chunk { max: chunk_max, got: options.chunk });
        }
        check_kernels(spec)?;
        layers::plan(bound, options)
    }

    /// Plans a model for a device with `free` bytes, of which `reserve` stay free.
    ///
    /// # Errors
    /// As [`Plan::new`], and [`PlanError::Memory`] with what would fit.
    pub fn fit(bound: &Bound, options: Options, free: u64, reserve: u64) -> Result<Plan, PlanError> {
        let plan = Plan::new(bound, options)?;
        let mut table = plan.memory(free, reserve);
        if table.needed() <= free {
            return Ok(plan);
        }
        // Needs grow with the context, so that bisection finds the longest one that fits.
        let (mut fits, mut fails) = (0, options.context);
        while fails - fits > 1 {
            let context = fits + (fails - fits) / 2;
            let smaller = Plan::new(bound, Options { context, ..options })?;
            if smaller.memory(free, reserve).needed() <= free {
                fits = context;
            } else {
                fails = context;
            }
        }
        table.context_that_fits = fits;
        Err(PlanError::Memory(table))
    }

    /// Matrices that are held as BF16 where the file has F32, and the bytes that saves.
    pub fn narrowed(&self) -> (usize, u64) {
        let narrowed = self.weights.iter().filter(|weight| weight.tensor.stored_format() != weight.tensor.format);
        narrowed.fold((0, 0), |(count, bytes), weight| (count + 1, bytes + weight.tensor.bytes()))
    }

    /// What the plan needs on a device with `free` bytes.
    pub fn memory(&self, free: u64, reserve: u64) -> MemoryTable {
        MemoryTable {
            weights: self.ledger.bytes(ArenaKind::Weights),
            state: self.ledger.bytes(ArenaKind::State),
            buffers: self.ledger.bytes(ArenaKind::Buffers),
            reserve,
            free,
            context: self.options.context,
            context_that_fits: 0,
        }
    }
}

/// Dimensions that kernels were compiled for or hold in registers.
fn check_kernels(spec: &Spec) -> Result<(), PlanError> {
    let refuse = |what, expected: &str, got| Err(PlanError::Kernel { what, expected: expected.to_owned(), got });
    if spec.gdn.head_dim != 128 {
        return refuse("gated delta net head size", "128", spec.gdn.head_dim);
    }
    if spec.attention_layers() > 0 && spec.head_dim != 256 {
        return refuse("attention head size", "256", spec.head_dim);
    }
    if !spec.rope_dims.is_multiple_of(32) {
        return refuse("rotated dimensions", "a multiple of 32", spec.rope_dims);
    }
    if let Some(experts) = spec.experts.as_ref().filter(|experts| experts.count > EXPERTS_MAX) {
        return refuse("experts", &format!("at most {EXPERTS_MAX}"), experts.count);
    }
    Ok(())
}
