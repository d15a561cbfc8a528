//! What the host prepares for a chunk: embeddings and n-gram rows, read from the file by row.

use crate::gguf::GgufFile;
use crate::model::{Bound, PleSpec, TensorRef};
use crate::quant::{QuantError, decode_row};

/// Decodes one row of a table.
fn read_row(file: &GgufFile, table: &TensorRef, row: usize, out: &mut [f32]) -> Result<(), QuantError> {
    decode_row(table.format, table.row(file, row), out)
}

/// Embeddings of `ids`, f32 [ids][hidden]. The ids are below the vocabulary's size.
pub fn embeddings(file: &GgufFile, bound: &Bound, ids: &[u32], out: &mut [f32]) -> Result<(), QuantError> {
    for (id, row) in ids.iter().zip(out.chunks_exact_mut(bound.spec.hidden)) {
        read_row(file, &bound.embed, *id as usize, row)?;
    }
    Ok(())
}

/// N-gram rows of `ids`, f32 [ids][heads][row_dim]. `before` holds the tokens in front of them, as many as the sequence has.
pub fn ngrams(
    file: &GgufFile,
    table: &TensorRef,
    ple: &PleSpec,
    before: &[u32],
    ids: &[u32],
    out: &mut [f32],
) -> Result<(), QuantError> {
    let mut rows = Vec::with_capacity(ple.heads());
    for (at, out) in out.chunks_exact_mut(ple.width()).enumerate().take(ids.len()) {
        ngram_rows(ple, |back| token_back(before, ids, at, back), &mut rows);
        for (row, out) in rows.iter().zip(out.chunks_exact_mut(ple.row_dim)) {
            read_row(file, table, *row as usize, out)?;
        }
    }
    Ok(())
}

/// The token `back` places before `ids[at]`, if the sequence has one.
fn token_back(before: &[u32], ids: &[u32], at: usize, back: usize) -> Option<u32> {
    match at.checked_sub(back) {
        Some(i) => ids.get(i).copied(),
        None => before.len().checked_sub(back - at).and_then(|i| before.get(i).copied()),
    }
}

/// Table rows of one token, bigram heads first. `token(s)` is the token s places back; a missing one, and all before an end-of-sequence token, count as
/// end-of-sequence.
fn ngram_rows(ple: &PleSpec, token: impl Fn(usize) -> Option<u32>, rows: &mut Vec<u64>) {
    rows.clear();
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
