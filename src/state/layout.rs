//! Which pieces a sequence's state has, whatever cards hold them.

use crate::plan::{Extent, Plan, StateKind};

/// One piece of state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    pub layer: usize,
    pub kind: StateKind,
    pub extent: Extent,
}

impl Piece {
    /// Bytes of an image that begins after `from` tokens and ends after `to`.
    pub const fn bytes(&self, from: usize, to: usize) -> u64 {
        match self.extent {
            Extent::Fixed { bytes } => bytes,
            Extent::Rows { .. } => self.extent.bytes_at(to) - self.extent.bytes_at(from),
        }
    }

    pub const fn is_fixed(&self) -> bool {
        matches!(self.extent, Extent::Fixed { .. })
    }
}

/// All pieces of a sequence's state, by layer and kind. It is a model's, with a type of cached keys and values; context, chunk and cards do not change it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    pieces: Vec<Piece>,
}

impl Layout {
    /// In any order; of several with one layer and kind, one is kept.
    pub fn new(mut pieces: Vec<Piece>) -> Layout {
        pieces.sort_by_key(|piece| (piece.layer, piece.kind));
        pieces.dedup_by_key(|piece| (piece.layer, piece.kind));
        Layout { pieces }
    }

    pub fn of(plan: &Plan) -> Layout {
        let items = plan.cards.iter().flat_map(|card| &card.state);
        Layout::new(items.map(|item| Piece { layer: item.layer, kind: item.kind, extent: item.extent }).collect())
    }

    pub fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// Tokens of a layer's blocks of pooled index keys; 0 if it has none.
    pub fn block_tokens(&self, layer: usize) -> usize {
        let pooled = self.pieces.iter().find(|piece| piece.layer == layer && piece.kind == StateKind::PooledKeys);
        match pooled.map(|piece| piece.extent) {
            Some(Extent::Rows { tokens_per_row, .. }) => tokens_per_row,
            _ => 0,
        }
    }

    /// Bytes of all fixed pieces.
    pub fn fixed_bytes(&self) -> u64 {
        self.pieces.iter().filter(|piece| piece.is_fixed()).map(|piece| piece.bytes(0, 0)).sum()
    }

    /// Bytes of the rows between two positions.
    pub fn row_bytes(&self, from: usize, to: usize) -> u64 {
        self.pieces.iter().filter(|piece| !piece.is_fixed()).map(|piece| piece.bytes(from, to)).sum()
    }
}
