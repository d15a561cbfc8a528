//! The ledger of a card's memory: pieces are booked when planning, and arenas of at most 4 GB are allocated as booked.

use super::{Change, PlanError};

/// Largest arena. Single allocations above it fail on some drivers although the memory is there.
pub const ARENA_BYTES_MAX: u64 = 4_000_000_000;
/// Alignment of every piece.
const ALIGN: u64 = 256;

/// What an arena is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ArenaKind {
    Weights,
    /// Slots of resident experts.
    Experts,
    Buffers,
    State,
    /// Snapshots of sequences.
    Bank,
    /// Experts in pinned host memory.
    HostExperts,
    /// Snapshots of sequences, in pinned host memory.
    HostBank,
    /// What cards hand each other, in pinned host memory.
    Staging,
}

impl ArenaKind {
    pub const ALL: [ArenaKind; 8] = [
        ArenaKind::Weights,
        ArenaKind::Experts,
        ArenaKind::Buffers,
        ArenaKind::State,
        ArenaKind::Bank,
        ArenaKind::HostExperts,
        ArenaKind::HostBank,
        ArenaKind::Staging,
    ];

    /// Whether it is pinned host memory.
    pub const fn on_host(self) -> bool {
        matches!(self, ArenaKind::HostExperts | ArenaKind::HostBank | ArenaKind::Staging)
    }

    pub const fn name(self) -> &'static str {
        match self {
            ArenaKind::Weights => "weights",
            ArenaKind::Experts => "experts",
            ArenaKind::Buffers => "buffers",
            ArenaKind::State => "state",
            ArenaKind::Bank => "snapshots",
            ArenaKind::HostExperts => "host experts",
            ArenaKind::HostBank => "host snapshots",
            ArenaKind::Staging => "staging",
        }
    }
}

/// A piece of an arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Region {
    /// Index into the ledger's arenas.
    pub arena: usize,
    pub offset: u64,
    pub bytes: u64,
}

/// Slots of one size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slab {
    /// Slots of each region but the last, which may have fewer.
    per_region: usize,
    regions: Vec<Region>,
    pub slot_bytes: u64,
    pub count: usize,
}

impl Slab {
    /// No slots yet.
    pub(super) fn empty(slot_bytes: u64) -> Slab {
        Slab { per_region: 1, regions: Vec::new(), slot_bytes: slot_bytes.next_multiple_of(ALIGN), count: 0 }
    }

    /// # Panics
    /// If there is no such slot.
    pub fn slot(&self, index: usize) -> Region {
        assert!(index < self.count, "slot {index} of {}", self.count);
        let region = self.regions[index / self.per_region];
        Region {
            offset: region.offset + (index % self.per_region) as u64 * self.slot_bytes,
            bytes: self.slot_bytes,
            ..region
        }
    }

    pub fn bytes(&self) -> u64 {
        self.slot_bytes * self.count as u64
    }
}

/// All arenas of a card, with the bytes booked in each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ledger {
    pub arenas: Vec<(ArenaKind, u64)>,
    device_arena_bytes_max: u64,
    host_arena_bytes_max: u64,
}

impl Ledger {
    /// With arenas that the card and the host can allocate.
    pub fn new(device_allocation_bytes_max: u64, host_allocation_bytes_max: u64) -> Ledger {
        Ledger {
            arenas: Vec::new(),
            device_arena_bytes_max: device_allocation_bytes_max.min(ARENA_BYTES_MAX),
            host_arena_bytes_max: host_allocation_bytes_max.min(ARENA_BYTES_MAX),
        }
    }

    fn arena_bytes_max(&self, kind: ArenaKind) -> u64 {
        if kind.on_host() { self.host_arena_bytes_max } else { self.device_arena_bytes_max }
    }

    /// Books a piece in the last arena of its kind, or in a new one.
    ///
    /// # Errors
    /// [`PlanError::Piece`] if it is larger than an arena.
    pub fn book(&mut self, kind: ArenaKind, what: &str, bytes: u64) -> Result<Region, PlanError> {
        let max = self.arena_bytes_max(kind);
        let too_large = || PlanError::Piece { what: what.to_owned(), bytes, max, change: Change::None };
        let padded = bytes.checked_next_multiple_of(ALIGN).filter(|padded| *padded <= max).ok_or_else(too_large)?;
        let open = self.arenas.iter().rposition(|(k, used)| *k == kind && used + padded <= max);
        let arena = open.unwrap_or_else(|| {
            self.arenas.push((kind, 0));
            self.arenas.len() - 1
        });
        let offset = self.arenas[arena].1;
        self.arenas[arena].1 += padded;
        Ok(Region { arena, offset, bytes })
    }

    /// Books slots, in as few regions as arenas allow.
    ///
    /// # Errors
    /// [`PlanError::Piece`] if one is larger than an arena.
    pub fn book_slab(&mut self, kind: ArenaKind, what: &str, slot_bytes: u64, count: usize) -> Result<Slab, PlanError> {
        let slot_bytes = slot_bytes.next_multiple_of(ALIGN);
        let per_region = (self.arena_bytes_max(kind) / slot_bytes.max(1)).clamp(1, count.max(1) as u64) as usize;
        let mut regions = Vec::with_capacity(count.div_ceil(per_region));
        for first in (0..count).step_by(per_region) {
            let slots = per_region.min(count - first);
            regions.push(self.book(kind, what, slot_bytes * slots as u64)?);
        }
        Ok(Slab { per_region, regions, slot_bytes, count })
    }

    /// Bytes booked for a kind.
    pub fn bytes(&self, kind: ArenaKind) -> u64 {
        self.arenas.iter().filter(|(k, _)| *k == kind).map(|(_, used)| used).sum()
    }

    /// Bytes booked on the card, or in pinned host memory.
    pub fn total(&self, on_host: bool) -> u64 {
        self.arenas.iter().filter(|(kind, _)| kind.on_host() == on_host).map(|(_, used)| used).sum()
    }
}
