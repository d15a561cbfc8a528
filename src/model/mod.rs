//! What a model file means: hyper-parameters, and tensor names bound to their roles.
//!
//! [`Bound::new`] either gives a model in which every tensor that computation needs is present, with its shape and a
//! format the engine computes with, or reports everything that is wrong with the file at once.

mod advice;
mod architecture;
mod bind;
mod census;
mod layers;
mod spec;

pub use advice::advice;
pub use architecture::Architecture;
pub use bind::{RowMap, TensorRef, VectorRef};
pub use census::{Census, Part, StateSize};
pub use layers::{
    Attention, Block, Bound, FeedForward, Gdn, GdnGates, Indexer, Layer, Mixer, Moe, Ple, PreNorm, Swiglu,
};
pub use spec::{
    ExpertSpec, GdnGate, GdnSpec, HeadOrder, HyperConnectionSpec, IndexerSpec, LayerKind, MAX_CONTEXT,
    MAX_EXPERTS_USED, MAX_FF, MAX_GDN_HEAD_DIM, MAX_HEAD_DIM, MAX_STREAMS, MAX_TAPS, PleSpec, Spec,
};

use crate::gguf::GgufError;

/// One thing that keeps a file from being used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    #[error(transparent)]
    Metadata(#[from] GgufError),
    #[error("key `{key}`: expected {expected}, found {found}")]
    Key { key: String, expected: String, found: String },
    #[error("tensor `{name}`: expected {expected}, found {found}")]
    Tensor { name: String, expected: String, found: String },
}

/// Why a file cannot be used as a model.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    #[error("architecture: expected {}, found {found}", Architecture::names())]
    Architecture { found: String },
    #[error(
        "expected the blocks of a model from block 0 on, found only those that predict further tokens, from block {first} \
         on: this file belongs beside a model file and does not run by itself"
    )]
    OnlyPredictors { first: usize },
    #[error("the model has {} problem(s):{}", .0.len(), listed(.0))]
    Problems(Vec<Problem>),
}

/// A file that lacks all tensors of many layers has thousands of problems; the first ones tell what it lacks.
fn listed(problems: &[Problem]) -> String {
    const SHOWN: usize = 100;
    let shown: String = problems.iter().take(SHOWN).map(|problem| format!("\n  {problem}")).collect();
    match problems.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown}\n  and {more} more"),
    }
}

/// The type in which keys, values and pooled index keys are kept. Part of a run's identity: results depend on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum KvType {
    #[default]
    F16,
    F32,
}

impl KvType {
    pub const fn name(self) -> &'static str {
        match self {
            KvType::F16 => "f16",
            KvType::F32 => "f32",
        }
    }

    /// Bytes of a value.
    pub const fn bytes(self) -> usize {
        match self {
            KvType::F16 => 2,
            KvType::F32 => 4,
        }
    }

    /// The value as the cache gives it back.
    pub fn round(self, x: f32) -> f32 {
        match self {
            KvType::F16 => half::f16::from_f32(x).to_f32(),
            KvType::F32 => x,
        }
    }
}
