//! The architectures, and what of them no key of a file says.

use super::spec::{GdnGate, HeadOrder};

/// A family of models with one set of keys and tensors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Architecture {
    /// Delta nets, sparse attention, experts, several residual streams, embedding of n-grams.
    Qwen4Exp,
    /// Delta nets, attention, a dense feed-forward.
    Qwen35,
    /// Delta nets, attention, experts.
    Qwen35Moe,
    /// Delta nets whose heads stay in groups, attention, experts.
    Qwen3Next,
}

impl Architecture {
    pub const ALL: [Architecture; 4] =
        [Architecture::Qwen35, Architecture::Qwen35Moe, Architecture::Qwen3Next, Architecture::Qwen4Exp];

    /// As `general.architecture` has it, and its keys start.
    pub const fn name(self) -> &'static str {
        match self {
            Architecture::Qwen4Exp => "qwen4exp",
            Architecture::Qwen35 => "qwen35",
            Architecture::Qwen35Moe => "qwen35moe",
            Architecture::Qwen3Next => "qwen3next",
        }
    }

    /// The architecture of this name.
    pub fn from_name(name: &str) -> Option<Architecture> {
        Architecture::ALL.into_iter().find(|arch| arch.name() == name)
    }

    /// All names in a sentence.
    pub(super) fn names() -> String {
        let [first @ .., last] = Architecture::ALL.map(Architecture::name);
        format!("{} or {last}", first.join(", "))
    }

    /// Several residual streams, with the indexer and the embedding of n-grams that come with them.
    pub(super) const fn has_streams(self) -> bool {
        matches!(self, Architecture::Qwen4Exp)
    }

    /// Experts in place of a dense feed-forward.
    pub(super) const fn has_experts(self) -> bool {
        !matches!(self, Architecture::Qwen35)
    }

    pub(super) const fn gdn_gate(self) -> GdnGate {
        match self {
            Architecture::Qwen4Exp => GdnGate::Sigmoid,
            _ => GdnGate::Silu,
        }
    }

    pub(super) const fn gdn_heads(self) -> HeadOrder {
        match self {
            Architecture::Qwen3Next => HeadOrder::Grouped,
            _ => HeadOrder::Tiled,
        }
    }
}
