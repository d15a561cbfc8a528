//! The plan: everything that running a model needs decided, as a value.
//!
//! A pure function of the bound model, the inventory and the options; it touches no device. It says which card computes what, names the arenas, where
//! every weight, expert, buffer and piece of state lies in them, the kernel modules, and each layer's operations in order. `exec` does what it says and
//! decides nothing but which experts are resident.

mod arena;
mod estimate;
mod fit;
mod inventory;
mod json;
mod layers;
mod memory;
mod route;
mod scratch;
mod steps;
mod text;
mod traffic;

use std::collections::BTreeSet;
use std::ops::Range;

pub use arena::{ARENA_BYTES_MAX, ArenaKind, Ledger, Region, Slab};
pub use estimate::{CardEstimate, Estimate};
pub use inventory::{CardFacts, HostFacts, Inventory, InventoryError, Rate, RateSource};
pub use layers::{plan_entries_max, plan_slots_at};
pub use memory::{Change, MemoryTable};
pub use route::{Launch, kind_name};
pub use steps::{ActKind, AttentionOp, Buffer, Buffers, GatesIn, GatherPart, Op, Rows, SparseOp, Step};
pub use traffic::{Traffic, traffic};

use crate::model::{Bound, KvType, LayerKind, Spec, TensorRef, VectorRef};
use crate::quant::Format;

/// Tokens of a prompt that are computed together unless the user says otherwise.
pub const DEFAULT_CHUNK: usize = 256;
/// Most tokens that are computed together.
const CHUNK_MAX: usize = 4096;
/// Rows of logits that are computed together.
pub const LOGIT_ROWS: usize = 16;
/// Rows that a many-row matrix kernel computes together.
pub const ROWS_PER_GROUP: usize = 8;
/// Most experts that the routing kernels hold.
pub const EXPERTS_MAX: usize = 1024;
/// Memory that stays free on a device beside a plan.
pub const RESERVE_BYTES: u64 = 256 << 20;

/// What the user chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Tokens of context; at most the model's.
    pub context: usize,
    /// Most tokens computed together; a plan that reads experts from the file may lower it.
    pub chunk: usize,
    pub kv: KvType,
    /// How several cards share the work; without it the plan's own estimate decides, or the usual way if the inventory lacks rates.
    pub split: Option<Split>,
    /// Most bytes of each card for routed experts; without it all that is left.
    pub expert_bytes: Option<u64>,
    /// Most bytes of pinned host memory for routed experts; without it all that the inventory has.
    pub host_expert_bytes: Option<u64>,
    /// Bytes of each card for snapshots of sequences.
    pub bank_bytes: u64,
    /// Bytes of pinned host memory for them, on all cards together.
    pub host_bank_bytes: u64,
    /// Tokens of a prompt after which a snapshot is taken; 0: only behind turns and at its end.
    pub bank_every: usize,
}

impl Options {
    /// Options that leave all else to the plan.
    pub fn new(context: usize, chunk: usize, kv: KvType) -> Options {
        Options {
            context,
            chunk,
            kv,
            split: None,
            expert_bytes: None,
            host_expert_bytes: None,
            bank_bytes: 0,
            host_bank_bytes: 0,
            bank_every: 0,
        }
    }
}

/// How several cards share the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Split {
    /// Each card computes layers that follow each other.
    Layer,
    /// Each card computes some output rows of every large matrix, and all else like the others.
    Tensor,
}

impl Split {
    pub(crate) const fn other(self) -> Split {
        match self {
            Split::Layer => Split::Tensor,
            Split::Tensor => Split::Layer,
        }
    }

    pub const fn name(self) -> &'static str {
        match self {
            Split::Layer => "layer",
            Split::Tensor => "tensor",
        }
    }
}

/// Where a matrix lies on the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Region(Region),
    /// Matrix `matrix` of an expert of the card's expert layer `layer`, as [`ExpertLayer`] says.
    Experts {
        layer: usize,
        matrix: usize,
    },
}

/// A matrix of weights, or the rows of it that the card computes.
#[derive(Clone, Debug, PartialEq)]
pub struct Weight {
    pub tensor: TensorRef,
    /// `None`: of the head.
    pub layer: Option<usize>,
    pub place: Place,
    /// Packed bytes of one matrix: of one expert, or of all rows without experts.
    pub matrix_bytes: u64,
}

/// Where the routed experts of a layer lie: each slot holds all matrices of one expert.
#[derive(Clone, Debug, PartialEq)]
pub struct ExpertLayer {
    /// Of the model.
    pub layer: usize,
    /// Gate, up and down, of the card's weights.
    pub weights: [usize; 3],
    /// Where each begins in a slot.
    pub offsets: [u64; 3],
    /// Experts on the card. As many slots as experts: all are resident.
    pub slots: Slab,
    /// All experts in pinned host memory, if not all are resident and the host has room.
    pub mirror: Option<Slab>,
    /// Addresses of the three matrices of every expert, u64 [3][experts].
    pub table: Region,
}

/// Where a card finds the experts that it has no slot for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misses {
    /// There are none: all experts are resident.
    None,
    /// In the mirrors in pinned host memory.
    Mirror,
    /// In the file: they are read into the card's host slots before the layer's experts run.
    File,
}

impl Misses {
    pub const fn name(self) -> &'static str {
        match self {
            Misses::None => "none",
            Misses::Mirror => "host memory",
            Misses::File => "file",
        }
    }
}

/// Where a vector of f32 lies on the device, and what fills it.
#[derive(Clone, Debug, PartialEq)]
pub struct Vector {
    pub values: VectorRef,
    /// `None`: of the head.
    pub layer: Option<usize>,
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
    pub extent: Extent,
    pub region: Region,
}

/// How much of a piece of state a sequence of some length has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// The same bytes at every position, all of which may change with every token.
    Fixed { bytes: u64 },
    /// A row after every so many tokens; what was written never changes.
    Rows { row_bytes: u64, tokens_per_row: usize },
}

impl Extent {
    /// Bytes that a sequence of `tokens` has; of rows, those of complete groups of tokens.
    pub const fn bytes_at(self, tokens: usize) -> u64 {
        match self {
            Extent::Fixed { bytes } => bytes,
            Extent::Rows { row_bytes, tokens_per_row } => row_bytes * (tokens / tokens_per_row) as u64,
        }
    }
}

/// What a piece of state is; shapes slowest dimension first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
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

impl StateKind {
    pub const fn name(self) -> &'static str {
        match self {
            StateKind::ConvWindow => "convolution window",
            StateKind::Matrix => "delta net matrices",
            StateKind::Keys => "keys",
            StateKind::Values => "values",
            StateKind::PooledKeys => "pooled index keys",
            StateKind::IndexTail => "raw index keys",
            StateKind::PleHistory => "n-gram history",
        }
    }
}

/// Equal pages for snapshots of sequences, those on the card first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BankPages {
    pub on_card: Slab,
    pub on_host: Slab,
}

impl BankPages {
    pub fn page_bytes(&self) -> u64 {
        self.on_card.slot_bytes
    }

    pub fn count(&self) -> usize {
        self.on_card.count + self.on_host.count
    }

    /// # Panics
    /// If there is no such page.
    pub fn page(&self, index: usize) -> Region {
        match index.checked_sub(self.on_card.count) {
            None => self.on_card.slot(index),
            Some(index) => self.on_host.slot(index),
        }
    }
}

/// A kernel module that the plan uses, as it is named in the build.
pub type ModuleName = String;

/// A plan that fits what it was made for.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    pub options: Options,
    pub spec: Spec,
    pub inventory: Inventory,
    /// With one card, [`Split::Layer`].
    pub split: Split,
    /// Why this split.
    pub split_reason: String,
    pub misses: Misses,
    pub cards: Vec<CardPlan>,
}

/// What one card holds and does.
#[derive(Clone, Debug, PartialEq)]
pub struct CardPlan {
    /// Layers that it computes, all or a part of each.
    pub range: Range<usize>,
    pub ledger: Ledger,
    pub weights: Vec<Weight>,
    pub vectors: Vec<Vector>,
    pub codebooks: Vec<Codebook>,
    pub experts: Vec<ExpertLayer>,
    /// Slots in pinned host memory for experts that are read from the file, for all layers together.
    pub host_slots: Option<Slab>,
    pub state: Vec<StateItem>,
    pub bank: BankPages,
    pub buffers: Buffers,
    /// From the embedding to the first layer, if the card has it.
    pub start: Vec<Step>,
    pub layers: Vec<LayerPlan>,
    /// From the last layer to logits, if the card has it.
    pub head: Vec<Step>,
    /// Columns of the logits that the card computes.
    pub logit_range: Range<usize>,
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
    #[error("{what}: one piece needs {bytes} bytes, and an arena holds at most {max}; {change}")]
    Piece { what: String, bytes: u64, max: u64, change: Change },
    #[error("the inventory names no card: expected at least one")]
    NoCards,
    #[error("{cards} cards: expected at most {max}, {why}")]
    Cards { cards: usize, max: usize, why: &'static str },
    #[error("card {card} ({name}): sub-groups: expected 16 or 32 lanes among them, got {got:?}")]
    SubGroups { card: usize, name: String, got: Vec<u32> },
    /// `budget_bytes`: what the user allows of `host_bytes`.
    #[error(
        "the routed experts do not fit: {card_bytes} bytes of them have no place on the cards, {}, and at least {least_bytes} are needed to read them \
         from the file; the smallest change that fits: {}",
        host_share(*.host_bytes, *.budget_bytes),
        host_change(*.host_bytes, *.budget_bytes, *.least_bytes)
    )]
    HostMemory { card_bytes: u64, host_bytes: u64, budget_bytes: Option<u64>, least_bytes: u64 },
    #[error("the plan takes {needed_bytes} bytes of host memory, and {free_bytes} are free; {change}")]
    Host { needed_bytes: u64, free_bytes: u64, change: Change },
    #[error("{place}: expected a budget of at most {max} bytes, which are free, got {bytes}")]
    BankBudget { place: &'static str, bytes: u64, max: u64 },
    #[error("snapshots: one takes at least {least} bytes of card {card}'s part, and the budgets give it {bytes}")]
    BankSmall { card: usize, bytes: u64, least: u64 },
    #[error("{}", .0)]
    Memory(Box<MemoryTable>),
    /// With the split that was asked for there is a problem, and with the other one there is none.
    #[error("{problem}\nthe other split fits: --split {}", .fits.name())]
    Split { fits: Split, problem: Box<PlanError> },
}

fn host_share(host_bytes: u64, budget_bytes: Option<u64>) -> String {
    match budget_bytes.filter(|budget| *budget < host_bytes) {
        Some(budget) => format!("--host-expert-budget allows {budget} bytes of the host for them"),
        None => format!("the host has {host_bytes} bytes for them"),
    }
}

fn host_change(host_bytes: u64, budget_bytes: Option<u64>, least_bytes: u64) -> String {
    let memory = (host_bytes < least_bytes).then(|| format!("{least_bytes} bytes of host memory"));
    let budget = budget_bytes.filter(|budget| *budget < least_bytes);
    let budget = budget.map(|_| format!("--host-expert-budget {least_bytes}"));
    memory.into_iter().chain(budget).collect::<Vec<_>>().join(" and ")
}

impl Plan {
    /// Plans a model for one card without limits.
    ///
    /// # Errors
    /// When an option is out of range, the model has a dimension that the kernels do not take, or a single piece is larger than an arena.
    pub fn new(bound: &Bound, options: Options) -> Result<Plan, PlanError> {
        Plan::fit(bound, options, &Inventory::unlimited(1))
    }

    /// Plans a model for the cards of an inventory.
    ///
    /// # Errors
    /// As [`Plan::new`], and when memory is short, with what would fit.
    pub fn fit(bound: &Bound, options: Options, inventory: &Inventory) -> Result<Plan, PlanError> {
        let spec = &bound.spec;
        if options.context == 0 || options.context > spec.context_length {
            return Err(PlanError::Context { max: spec.context_length, got: options.context });
        }
        if options.chunk == 0 || options.chunk > CHUNK_MAX {
            return Err(PlanError::Chunk { max: CHUNK_MAX, got: options.chunk });
        }
        check_kernels(spec)?;
        check_inventory(inventory)?;
        fit::fit(bound, options, inventory)
    }

    /// The file's matrices that are held as BF16 where it has F32, and the bytes that saves on all cards.
    pub fn narrowed(&self) -> (usize, u64) {
        let tensors = self.cards.iter().flat_map(|card| &card.weights).map(|weight| &weight.tensor);
        let narrowed: Vec<&TensorRef> = tensors.filter(|tensor| tensor.stored_format() != tensor.format).collect();
        // Parts of a matrix may be on several cards.
        let names: BTreeSet<&str> = narrowed.iter().map(|tensor| tensor.name()).collect();
        (names.len(), narrowed.iter().map(|tensor| tensor.bytes()).sum())
    }

    /// Cards whose work on a chunk follows each other's: one card each, or all cards together.
    pub fn stages(&self) -> Vec<Range<usize>> {
        match self.split {
            Split::Layer => (0..self.cards.len()).map(|card| card..card + 1).collect(),
            Split::Tensor => std::iter::once(0..self.cards.len()).collect(),
        }
    }
}

impl CardPlan {
    /// Whether every expert of every layer has a slot.
    pub fn all_resident(&self) -> bool {
        self.experts.iter().all(|layer| layer.mirror.is_none()) && self.host_slots.is_none()
    }

    /// All steps of a chunk but the head's, with their layers.
    pub fn steps(&self) -> impl Iterator<Item = (&Step, Option<usize>)> {
        let start = self.start.iter().map(|step| (step, None));
        start.chain(self.layers.iter().flat_map(|layer| layer.steps.iter().map(|step| (step, Some(layer.index)))))
    }
}

fn check_inventory(inventory: &Inventory) -> Result<(), PlanError> {
    if inventory.cards.is_empty() {
        return Err(PlanError::NoCards);
    }
    for (card, facts) in inventory.cards.iter().enumerate() {
        if !facts.sub_groups.iter().any(|lanes| [16, 32].contains(lanes)) {
            return Err(PlanError::SubGroups { card, name: facts.name.clone(), got: facts.sub_groups.clone() });
        }
    }
    Ok(())
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
