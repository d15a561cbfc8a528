//! What the host prepares for a chunk: embeddings and n-gram rows, read from the file by row.

use std::ops::Range;

use super::Breakdown;
use crate::load::{RowError, RowTable, Tables};
use crate::model::{PleSpec, Spec};
use crate::plan::Plan;

/// What a chunk begins with.
#[derive(Debug)]
pub(super) struct Inputs {
    /// Of its first token.
    pub position: usize,
    pub count: usize,
    /// [chunk][hidden]
    embedded: Vec<f32>,
    /// [chunk][heads][row_dim]
    ngrams: Vec<f32>,
    /// What the routers chose, ids [expert layer][token][used].
    pub routes: Vec<Vec<u32>>,
    hidden: usize,
    ngram_width: usize,
}

impl Inputs {
    pub fn new(plan: &Plan) -> Inputs {
        let (hidden, chunk) = (plan.spec.hidden, plan.options.chunk);
        let ngram_width = plan.spec.ple.as_ref().map_or(0, |ple| ple.width());
        let (embedded, ngrams) = (vec![0.0; chunk * hidden], vec![0.0; chunk * ngram_width]);
        Inputs { position: 0, count: 0, embedded, ngrams, routes: Vec::new(), hidden, ngram_width }
    }

    /// Embeddings, [count][hidden].
    pub fn embedded(&self) -> &[f32] {
        &self.embedded[..self.count * self.hidden]
    }

    /// N-gram rows, [count][heads][row_dim].
    pub fn ngrams(&self) -> &[f32] {
        &self.ngrams[..self.count * self.ngram_width]
    }

    /// Reads and decodes the rows of `ids[range]`, where `ids` follow `before`.
    pub fn read(
        &mut self,
        spec: &Spec,
        tables: &mut Tables,
        before: &[u32],
        ids: &[u32],
        range: Range<usize>,
        times: &mut Breakdown,
    ) -> Result<(), RowError> {
        let count = range.len();
        let out = &mut self.embedded[..count * spec.hidden];
        times.host("embeddings", || embeddings(&mut tables.embedding, &ids[range.clone()], out))?;
        if let (Some(ple), Some(table)) = (&spec.ple, &mut tables.ngrams) {
            let out = &mut self.ngrams[..count * ple.width()];
            let row_bytes = (count * ple.heads()) as u64 * table.row_bytes() as u64;
            times.host_reading("n-gram rows", row_bytes, || ngrams(table, ple, before, ids, range, out))?;
        }
        Ok(())
    }
}

/// Embeddings of `ids`, f32 [ids][hidden]. The ids are below the vocabulary's size.
fn embeddings(table: &mut RowTable, ids: &[u32], out: &mut [f32]) -> Result<(), RowError> {
    let rows: Vec<u64> = ids.iter().map(|id| u64::from(*id)).collect();
    table.decode(&rows, out)
}

/// N-gram rows of `ids[range]`, f32 [range][heads][row_dim]. `before` holds the tokens in front of `ids`, as many as the sequence has.
fn ngrams(
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
