//! Operations as data: what they compute from which regions.

use std::ops::Range;

use super::PlanError;
use super::Region;
use super::arena::{ArenaKind, Ledger};

/// One operation, with the name it has in errors and listings.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    pub name: &'static str,
    pub op: Op,
}

/// A buffer with one row a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffer {
    pub region: Region,
    /// Bytes of a token's row.
    pub row_bytes: u64,
}

/// A matrix of activations with its quantised form, one or more rows a token (docs/numerics.md N4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rows {
    /// Values of a token, over all its rows.
    pub columns: usize,
    /// f32 [token][columns]
    pub x: Buffer,
    /// int8 [token][columns]
    pub q: Buffer,
    /// f32 [token][columns/32]
    pub d: Buffer,
    /// i32 [token][columns/32]
    pub s: Buffer,
}

/// The buffers of a step, shared by all layers.
#[derive(Clone, Debug, PartialEq)]
pub struct Buffers {
    /// Position of the chunk's first token, i32 [1].
    pub start: Region,
    /// cos and sin of every position, f32 [context][rope_dims].
    pub rope: Region,
    /// Embeddings, f32 [token][hidden]; of cards that have the first layer.
    pub embedded: Option<Buffer>,
    /// N-gram rows, f32 [token][width]; of cards that have the n-gram layer.
    pub ngrams: Option<Buffer>,
    /// The residual, f32 [token][streams][hidden].
    pub residual: Buffer,
    /// Output of the block that has just run, f32 [token][hidden].
    pub output: Buffer,
    /// Its stream weights, f32 [token][streams].
    pub stream_weights: Buffer,
    /// f32 [row][columns that the card computes]; of cards that have the head.
    pub logits: Option<Buffer>,
    /// Experts that the routers chose, i32 [expert layer of the card][token][used].
    pub chosen: Option<Region>,
    /// What the card hands to others and what others hand to it, in pinned host memory.
    pub staging: Option<[Region; 2]>,
}

impl Buffers {
    /// What the next card of a layer split needs of a token.
    pub fn hop(&self) -> [Buffer; 3] {
        [self.residual, self.output, self.stream_weights]
    }

    /// Bytes of a token that go to the next card of a layer split.
    pub fn hop_row_bytes(&self) -> u64 {
        self.hop().iter().map(|buffer| buffer.row_bytes).sum()
    }
}

/// A matrix product of which each card has some columns, to be put together on all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GatherPart {
    /// This card's columns, f32 [token][rows_per_token][columns of its range].
    pub part: Buffer,
    /// f32 [token][rows_per_token][columns]
    pub whole: Buffer,
    pub rows_per_token: usize,
    /// Columns of each card, in order and without gaps.
    pub ranges: Vec<Range<usize>>,
}

/// Kinds of element-wise step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ActKind {
    /// silu(a * scale)
    Silu { scale: f32 },
    /// silu(a) * b
    Swiglu { b: Buffer },
    /// a
    Copy,
}

/// Where the delta net's raw gates lie.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum GatesIn {
    /// f32 [token][value_heads] each.
    Separate { beta: Buffer, alpha: Buffer },
    /// f32 [token][key_heads][betas of its value heads, then alphas].
    Packed(Buffer),
}

/// What a step computes. `vector` fields index the plan's vectors, `weight` fields its weights, `state` fields its state.
#[derive(Clone, Debug, PartialEq)]
pub enum Op {
    /// Spreads the embedding over the streams.
    HyperStart,
    /// Adds the pending block output to the residual, then normalises the streams.
    HyperNorm {
        pending: bool,
        norm: usize,
        out: Rows,
    },
    /// y = W x for every token.
    Matmul {
        weight: usize,
        x: Rows,
        y: Buffer,
    },
    /// The same for the experts that the router chose; a token has one row of x (`x_per_slot` false) or one a slot.
    ExpertMatmul {
        weight: usize,
        x: Rows,
        x_per_slot: bool,
        y: Buffer,
        plan: Region,
    },
    /// Element-wise step over all columns of a token.
    Act {
        kind: ActKind,
        a: Buffer,
        out: Rows,
    },
    /// Mean of the gated streams, and the stream weights unless the mixer is the final one.
    HyperMix {
        a: Buffer,
        x: Rows,
        inject: Option<Buffer>,
        out: Rows,
    },
    GdnConv {
        u: Buffer,
        gates_in: GatesIn,
        conv: usize,
        a: usize,
        dt: usize,
        window: usize,
        y: Buffer,
        gates: Buffer,
    },
    GdnStep {
        y: Buffer,
        gates: Buffer,
        u: Buffer,
        window: usize,
        matrix: usize,
        o: Buffer,
    },
    GdnNorm {
        o: Buffer,
        z: Buffer,
        norm: usize,
        out: Rows,
    },
    Attention(Box<AttentionOp>),
    /// `layer` counts the card's expert layers.
    MoeRoute {
        layer: usize,
        logits: Buffer,
        weights: Buffer,
        plan: Region,
    },
    MoeCombine {
        down: Buffer,
        weights: Buffer,
        shared: Buffer,
        shared_gate: Buffer,
    },
    Ple {
        pending: bool,
        key: Buffer,
        value: Buffer,
        norm_key: usize,
        norm_query: usize,
        norm_conv: usize,
        conv: usize,
        n: Buffer,
        history: usize,
    },
    /// Puts together what the cards computed apart.
    Gather(Vec<GatherPart>),
}

impl Op {
    /// Kernels that the operation launches.
    pub fn launches(&self) -> usize {
        match self {
            Op::Attention(op) if op.sparse.is_some() => 5,
            Op::Attention(_) | Op::MoeRoute { .. } | Op::Ple { .. } => 2,
            Op::Gather(_) => 0,
            _ => 1,
        }
    }
}

/// Operands of attention.
#[derive(Clone, Debug, PartialEq)]
pub struct AttentionOp {
    pub qg: Buffer,
    pub k: Buffer,
    pub v: Buffer,
    pub q_norm: usize,
    pub k_norm: usize,
    pub keys: usize,
    pub values: usize,
    /// f32 [token][heads][head_dim]
    pub q: Buffer,
    pub sparse: Option<SparseOp>,
    pub out: Rows,
}

/// Operands of sparse selection.
#[derive(Clone, Debug, PartialEq)]
pub struct SparseOp {
    pub ratio: usize,
    /// Blocks.
    pub budget: usize,
    /// Complete blocks that the context can hold.
    pub max_blocks: usize,
    pub iq_raw: Buffer,
    pub ik_raw: Buffer,
    pub iq_norm: usize,
    pub ik_norm: usize,
    pub pooled: usize,
    pub tail: usize,
    pub iq: Buffer,
    pub mean: Region,
    pub score: Buffer,
    pub selected: Buffer,
}

/// Books buffers of one row a token.
pub(super) struct BufferBook<'a> {
    pub ledger: &'a mut Ledger,
    pub chunk: usize,
}

impl BufferBook<'_> {
    pub fn region(&mut self, what: &str, bytes: usize) -> Result<Region, PlanError> {
        self.ledger.book(ArenaKind::Buffers, what, bytes as u64)
    }

    /// `values` of 4 bytes a token.
    pub fn buffer(&mut self, what: &str, values: usize) -> Result<Buffer, PlanError> {
        self.sized(what, 4 * values)
    }

    pub fn sized(&mut self, what: &str, row_bytes: usize) -> Result<Buffer, PlanError> {
        let bytes = (row_bytes as u64).saturating_mul(self.chunk as u64);
        let region = self.ledger.book(ArenaKind::Buffers, what, bytes)?;
        Ok(Buffer { region, row_bytes: row_bytes as u64 })
    }

    pub fn rows(&mut self, what: &str, columns: usize) -> Result<Rows, PlanError> {
        Ok(Rows {
            columns,
            x: self.sized(what, 4 * columns)?,
            q: self.sized(what, columns)?,
            d: self.sized(what, columns / 8)?,
            s: self.sized(what, columns / 8)?,
        })
    }
}
