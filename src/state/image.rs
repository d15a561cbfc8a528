//! A sequence's state in the host's memory.

use super::{Layout, Piece};

/// The exact state of a sequence after `ids`, or what it has more than one of its beginnings: fixed pieces whole, rows from `from` on.
#[derive(Clone, Debug, PartialEq)]
pub struct Image {
    /// All tokens, from the sequence's first one.
    pub ids: Vec<u32>,
    /// Rows of tokens before it are not in the image; 0 for a whole one.
    pub from: usize,
    /// After the last token, if they were computed.
    pub logits: Option<Vec<f32>>,
    /// In the layout's order.
    pub pieces: Vec<Vec<u8>>,
}

impl Image {
    /// Tokens in the sequence.
    pub fn position(&self) -> usize {
        self.ids.len()
    }

    /// Whether every piece has the bytes that the layout says.
    pub fn fits(&self, layout: &Layout) -> bool {
        let bytes = |piece: &Piece| piece.bytes(self.from, self.position());
        self.from <= self.position()
            && self.pieces.len() == layout.pieces().len()
            && self.pieces.iter().zip(layout.pieces()).all(|(have, piece)| have.len() as u64 == bytes(piece))
    }
}
