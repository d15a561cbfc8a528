//! What a plan needs against what a card has.

use crate::model::KvType;

/// What a plan needs on one card, with the smallest change that would fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryTable {
    /// Number and name of the card; `None` if there is only one.
    pub card: Option<(usize, String)>,
    pub weights: u64,
    /// Of the slots that were asked for, or of the fewest that a plan can have: one a layer.
    pub experts: u64,
    pub state: u64,
    pub buffers: u64,
    /// Of snapshots.
    pub bank: u64,
    pub reserve: u64,
    pub free: u64,
    pub change: Change,
}

/// The smallest change that would fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// No change of an option is enough.
    None,
    Chunk {
        from: usize,
        to: usize,
    },
    Context {
        from: usize,
        to: usize,
    },
    Kv(KvType),
    Bank {
        bytes: u64,
    },
    HostBank {
        bytes: u64,
    },
    ExpertBudget {
        bytes: u64,
    },
}

impl MemoryTable {
    pub fn needed(&self) -> u64 {
        let parts = [self.weights, self.experts, self.state, self.buffers, self.bank, self.reserve];
        parts.into_iter().fold(0, u64::saturating_add)
    }
}

impl std::fmt::Display for MemoryTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Where all of it fits, the experts are those that a plan has at least, and more than the budget.
        match &self.card {
            None if self.needed() <= self.free => {
                writeln!(f, "--expert-budget holds less than one expert of each layer, which a plan needs at least:")?;
            }
            Some((card, name)) if self.needed() <= self.free => writeln!(
                f,
                "--expert-budget holds less than one expert of each layer on card {card} ({name}), which a plan needs at least:"
            )?,
            None => writeln!(f, "the model does not fit the device's memory:")?,
            Some((card, name)) => writeln!(f, "the model's share does not fit the memory of card {card} ({name}):")?,
        }
        let mib = |bytes: u64| bytes.div_ceil(1 << 20);
        let experts = (self.experts > 0).then_some(("experts", self.experts));
        let bank = (self.bank > 0).then_some(("snapshots", self.bank));
        let rows = [("weights", self.weights)]
            .into_iter()
            .chain(experts)
            .chain([("state", self.state), ("buffers", self.buffers)]);
        let rows = rows.chain(bank).chain([("reserve", self.reserve), ("needed", self.needed()), ("free", self.free)]);
        for (name, bytes) in rows {
            writeln!(f, "  {name:<9} {:>9} MiB", mib(bytes))?;
        }
        write!(f, "{}", self.change)
    }
}

impl std::fmt::Display for Change {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match *self {
            Change::None => write!(f, "neither a smaller --chunk nor a shorter --ctx is enough, nor is another --kv"),
            Change::Chunk { from, to } => write!(f, "the smallest change that fits: --chunk {to} instead of {from}"),
            Change::Context { from, to } => write!(f, "the smallest change that fits: --ctx {to} instead of {from}"),
            Change::Kv(kv) => write!(f, "the smallest change that fits: --kv {}", kv.name()),
            Change::Bank { bytes } => write!(f, "the smallest change that fits: --bank-budget {}M", bytes >> 20),
            Change::HostBank { bytes } => {
                write!(f, "the smallest change that fits: --host-bank-budget {}M", bytes >> 20)
            }
            Change::ExpertBudget { bytes } if bytes.is_multiple_of(1 << 20) => {
                write!(f, "the smallest change that fits: --expert-budget {}M", bytes >> 20)
            }
            Change::ExpertBudget { bytes } => write!(f, "the smallest change that fits: --expert-budget {bytes}"),
        }
    }
}
