//! What the host prepares for a chunk: embeddings and n-gram rows, read from the file by row.

use std::ops::Range;

use crate::load::{RowError, RowTable};
use crate::model::PleSpec;

/// Embeddings of `ids`, f32 [ids][hidden]. The ids are below the vocabulary's size.
pub fn embeddings(table: &mut RowTable, ids: &[u32], out: &mut [f32]) -> Result<(), RowError> {
    let rows: Vec<u64> = ids.iter().map(|id| u64::from(*id)).collect();
    table.decode(&rows, out)
}

/// N-gram rows of `ids[range]`, f32 [range][heads][row_dim]. `before` holds the tokens in front of `ids`, as many as the sequence has.
pub fn ngrams(
    table: &mut RowTable,
    ple: &PleSpec,
    before: &[u32],
    ids: &[u32],
    range: Range<usize>,
    out: &mut [f32],
) -> Result<(), RowError> {
    let mut rows = Vec::with_capacity(range.len() * ple.heads());
    for at in range {
        ngram_rows(ple, |back| token_back(before, ids, at, back), &mut rows);
    }
    table.decode(&rows, out)
}

/// The token `back` places before `ids[at]`, if the sequence has one.
fn token_back(before: &[u32], ids: &[u32], at: usize, back: usize) -> Option<u32> {
    match at.checked_sub(back) {
        Some(i) => ids.get(i).copied(),
        None => before.len().checked_sub(back - at).and_then(|i| before.get(i).copied()),
    }
}

/// Adds the table rows of one token, bigram heads first. `token(s)` is the token s places back; a missing one, and all before an end-of-sequence token, count as
/// end-of-sequence.
fn ngram_rows(ple: &PleSpec, token: impl Fn(usize) -> Option<u32>, rows: &mut Vec<u64>) {
    let mut cut = false;
    let mut mixed = u64::from(token(0).unwrap_or(ple.eos)).wrapping_mul(ple.multipliers[0]);
    for back in 1..ple.ngram {
        let found = token(back).filter(|id| *id != ple.eos);
        cut |= found.is_none();
        let id = if cut { ple.eos } else { found.unwrap_or(ple.eos) };
        mixed ^= u64::from(id).wrapping_mul(ple.multipliers[back]);
        for head in (back - 1) * ple.heads_per_ngram..back * ple.heads_per_ngram {
            rows.push(mixed % ple.head_sizes[head] + ple.head_offsets[head]);
        }
    }
}
