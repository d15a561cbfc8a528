//! What there is to plan for: cards and the host, from the devices or from a file.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// Cards and host memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Inventory {
    pub cards: Vec<CardFacts>,
    pub host: HostFacts,
}

/// One card.
#[derive(Clone, Debug, PartialEq)]
pub struct CardFacts {
    pub name: String,
    /// Bytes that may be allocated now.
    pub free_bytes: u64,
    /// Largest single allocation.
    pub allocation_bytes_max: u64,
    pub sub_groups: Vec<u32>,
    /// Whether the card's memory is the host's, as that of a part of the processor.
    pub in_host_memory: bool,
    /// Of the card's memory.
    pub memory: Option<Rate>,
    /// Between the card and pinned host memory.
    pub link: Option<Rate>,
    /// From a card's last write to another card's first read of what they exchange, apart from the bytes.
    pub exchange_us: Option<f64>,
}

/// Memory of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostFacts {
    /// Bytes that may be pinned now.
    pub free_bytes: u64,
    /// Largest single pinned allocation.
    pub allocation_bytes_max: u64,
}

/// Bytes a second, and where the figure comes from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    pub bytes_per_s: f64,
    pub source: RateSource,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateSource {
    Measured,
    /// By whoever wrote the inventory.
    Stated,
}

impl RateSource {
    pub const fn name(self) -> &'static str {
        match self {
            RateSource::Measured => "measured",
            RateSource::Stated => "stated",
        }
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.1} GB/s ({})", self.bytes_per_s / 1e9, self.source.name())
    }
}

/// Why a file is no inventory.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InventoryError {
    #[error("cannot read {path}: {cause}")]
    Read { path: PathBuf, cause: std::io::Error },
    #[error("{path}: {problem}")]
    Toml { path: PathBuf, problem: String },
    #[error("{path}: {field}: expected {expected}, got {got}")]
    Value { path: PathBuf, field: String, expected: &'static str, got: String },
}

/// The file's form; `docs/architecture.md` has an example.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct InventoryFile {
    host: HostTable,
    card: Vec<CardTable>,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct HostTable {
    memory_mib: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    allocation_mib: Option<u64>,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct CardTable {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<usize>,
    memory_mib: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    allocation_mib: Option<u64>,
    sub_group_sizes: Vec<u32>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    in_host_memory: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    memory_gb_per_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    link_gb_per_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exchange_us: Option<f64>,
}

/// Most cards of an inventory.
const CARDS_MAX: usize = 64;

impl Inventory {
    /// Cards that hold anything.
    pub fn unlimited(cards: usize) -> Inventory {
        let card = CardFacts {
            name: "a card without limits".to_owned(),
            free_bytes: u64::MAX,
            allocation_bytes_max: u64::MAX,
            sub_groups: vec![16],
            in_host_memory: false,
            memory: None,
            link: None,
            exchange_us: None,
        };
        let host = HostFacts { free_bytes: u64::MAX, allocation_bytes_max: u64::MAX };
        Inventory { cards: vec![card; cards], host }
    }

    /// Reads an inventory in TOML.
    ///
    /// # Errors
    /// When the file cannot be read, is no such TOML, or holds a value that no card has.
    pub fn read(path: &Path) -> Result<Inventory, InventoryError> {
        let text =
            std::fs::read_to_string(path).map_err(|cause| InventoryError::Read { path: path.to_owned(), cause })?;
        Inventory::parse(&text, path)
    }

    /// As [`Inventory::read`] does with the file's text; `path` is for errors.
    ///
    /// # Errors
    /// As [`Inventory::read`].
    pub fn parse(text: &str, path: &Path) -> Result<Inventory, InventoryError> {
        let toml = |error: toml::de::Error| InventoryError::Toml { path: path.to_owned(), problem: error.to_string() };
        let file: InventoryFile = toml::from_str(text).map_err(toml)?;
        let value = |field: String, expected: &'static str, got: String| InventoryError::Value {
            path: path.to_owned(),
            field,
            expected,
            got,
        };
        let bytes = |field: String, mib: u64| {
            let bytes = mib.checked_mul(1 << 20).filter(|bytes| *bytes > 0);
            bytes.ok_or_else(|| value(field, "1 to 2^44-1 MiB", mib.to_string()))
        };
        let positive = |field: String, number: Option<f64>| match number {
            Some(number) if !(1e-3..=1e9).contains(&number) => {
                Err(value(field, "a number from 0.001 to 1e9", number.to_string()))
            }
            number => Ok(number),
        };
        let rate = |field: String, number: Option<f64>| {
            let number = positive(field, number)?;
            Ok(number.map(|gb_per_s| Rate { bytes_per_s: gb_per_s * 1e9, source: RateSource::Stated }))
        };
        let mut cards = Vec::new();
        for (i, card) in file.card.iter().enumerate() {
            let field = |name: &str| format!("card {i}: {name}");
            let count = card.count.unwrap_or(1);
            if count == 0 || cards.len() + count > CARDS_MAX {
                return Err(value(field("count"), "1 or more, and at most 64 cards in all", count.to_string()));
            }
            if card.sub_group_sizes.is_empty() {
                return Err(value(field("sub_group_sizes"), "at least one size", "none".to_owned()));
            }
            let free_bytes = bytes(field("memory_mib"), card.memory_mib)?;
            let allocation = card.allocation_mib.map(|mib| bytes(field("allocation_mib"), mib)).transpose()?;
            let facts = CardFacts {
                name: card.name.clone(),
                free_bytes,
                allocation_bytes_max: allocation.unwrap_or(free_bytes),
                sub_groups: card.sub_group_sizes.clone(),
                in_host_memory: card.in_host_memory,
                memory: rate(field("memory_gb_per_s"), card.memory_gb_per_s)?,
                link: rate(field("link_gb_per_s"), card.link_gb_per_s)?,
                exchange_us: positive(field("exchange_us"), card.exchange_us)?,
            };
            cards.extend(std::iter::repeat_n(facts, count));
        }
        if cards.is_empty() {
            return Err(value("card".to_owned(), "at least one", "none".to_owned()));
        }
        let free_bytes = bytes("host: memory_mib".to_owned(), file.host.memory_mib)?;
        let allocation =
            file.host.allocation_mib.map(|mib| bytes("host: allocation_mib".to_owned(), mib)).transpose()?;
        let host = HostFacts { free_bytes, allocation_bytes_max: allocation.unwrap_or(free_bytes) };
        Ok(Inventory { cards, host })
    }

    /// The inventory as a file that [`Inventory::read`] takes.
    pub fn to_toml(&self) -> String {
        let thousandths = |number: f64| ((number * 1e3).round() / 1e3).max(1e-3);
        let gb = |rate: Option<Rate>| rate.map(|rate| thousandths(rate.bytes_per_s / 1e9));
        let card = |facts: &CardFacts| CardTable {
            name: facts.name.clone(),
            count: None,
            memory_mib: facts.free_bytes >> 20,
            allocation_mib: Some(facts.allocation_bytes_max >> 20),
            sub_group_sizes: facts.sub_groups.clone(),
            in_host_memory: facts.in_host_memory,
            memory_gb_per_s: gb(facts.memory),
            link_gb_per_s: gb(facts.link),
            exchange_us: facts.exchange_us.map(thousandths),
        };
        let host = HostTable {
            memory_mib: self.host.free_bytes >> 20,
            allocation_mib: Some(self.host.allocation_bytes_max >> 20),
        };
        let file = InventoryFile { host, card: self.cards.iter().map(card).collect() };
        toml::to_string(&file).unwrap_or_default()
    }
}
