//! The ledger of device memory: pieces are booked when planning, and arenas of at most 4 GB are allocated as booked.

use super::PlanError;

/// Largest arena. Single allocations above it fail on some drivers although the memory is there.
pub const ARENA_BYTES_MAX: u64 = 4_000_000_000;
/// Alignment of every piece.
const ALIGN: u64 = 256;

/// What an arena is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ArenaKind {
    Weights,
    Buffers,
    State,
}

/// A piece of an arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// Index into the ledger's arenas.
    pub arena: usize,
    pub offset: u64,
    pub bytes: u64,
}

/// All arenas, with the bytes booked in each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    pub arenas: Vec<(ArenaKind, u64)>,
}

impl Ledger {
    /// Books a piece in the last arena of its kind, or in a new one.
    ///
    /// # Errors
    /// [`PlanError::Piece`] if it is larger than an arena.
    pub fn book(&mut self, kind: ArenaKind, what: &str, bytes: u64) -> Result<Region, PlanError> {
        let too_large = || PlanError::Piece { what: what.to_owned(), bytes, max: ARENA_BYTES_MAX };
        let padded =
            bytes.checked_next_multiple_of(ALIGN).filter(|padded| *padded <= ARENA_BYTES_MAX).ok_or_else(too_large)?;
        let open = self.arenas.iter().rposition(|(k, used)| *k == kind && used + padded <= ARENA_BYTES_MAX);
        let arena = open.unwrap_or_else(|| {
            self.arenas.push((kind, 0));
            self.arenas.len() - 1
        });
        let offset = self.arenas[arena].1;
        self.arenas[arena].1 += padded;
        Ok(Region { arena, offset, bytes })
    }

    /// Bytes booked for a kind.
    pub fn bytes(&self, kind: ArenaKind) -> u64 {
        self.arenas.iter().filter(|(k, _)| *k == kind).map(|(_, used)| used).sum()
    }
}
