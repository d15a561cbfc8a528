//! Attention, full or over selected blocks.

use super::linear::{Matrix, matvec};
use super::scalar::{exp, inverse, inverse_sqrt, recip, sigmoid};
use super::sums::{dot16, dot16_inline, rms_norm, rope, sum16};
use crate::gguf::GgufFile;
use crate::model::{Attention, Indexer, IndexerSpec, KvType, Spec};

/// Visible positions that are summed up at a time.
pub const PIECE: usize = 64;

/// Weights of one layer.
pub struct AttentionWeights<'a> {
    pub q: Matrix<'a>,
    pub k: Matrix<'a>,
    pub v: Matrix<'a>,
    /// [head_dim]
    pub q_norm: Vec<f32>,
    /// [head_dim]
    pub k_norm: Vec<f32>,
    pub indexer: Option<IndexerWeights<'a>>,
    pub output: Matrix<'a>,
}

/// Weights of the selection of blocks.
pub struct IndexerWeights<'a> {
    pub q_proj: Matrix<'a>,
    pub k_proj: Matrix<'a>,
    /// [indexer head_dim]
    pub q_norm: Vec<f32>,
    /// [indexer head_dim]
    pub k_norm: Vec<f32>,
}

impl<'a> AttentionWeights<'a> {
    pub fn new(file: &'a GgufFile, attention: &Attention) -> AttentionWeights<'a> {
        let indexer = |indexer: &Indexer| IndexerWeights {
            q_proj: Matrix::new(file, &indexer.q_proj),
            k_proj: Matrix::new(file, &indexer.k_proj),
            q_norm: indexer.q_norm.load(file),
            k_norm: indexer.k_norm.load(file),
        };
        AttentionWeights {
            q: Matrix::new(file, &attention.q),
            k: Matrix::new(file, &attention.k),
            v: Matrix::new(file, &attention.v),
            q_norm: attention.q_norm.load(file),
            k_norm: attention.k_norm.load(file),
            indexer: attention.indexer.as_ref().map(indexer),
            output: Matrix::new(file, &attention.output),
        }
    }
}

/// What one layer remembers of a sequence; all but the raw keys are rounded to the cache's type.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AttentionState {
    /// [position][kv_heads][head_dim]
    pub keys: Vec<f32>,
    /// [position][kv_heads][head_dim]
    pub values: Vec<f32>,
    /// [position in the open block][indexer head_dim]
    pub raw: Vec<f32>,
    /// [block][indexer head_dim]
    pub pooled: Vec<f32>,
}

/// Where a token stands, and what is common to all layers.
pub struct Place<'a> {
    pub position: usize,
    /// Rows of the rotary table for positions 0 to `position`: [position][cosines, sines]
    pub rope: &'a [f32],
    pub kv: KvType,
}

impl Place<'_> {
    fn rope_row(&self, spec: &Spec, position: usize) -> &[f32] {
        &self.rope[position * spec.rope_dims..][..spec.rope_dims]
    }
}

/// One token through the block; m and the result are [hidden]. `ratio` is 0 where everything is visible.
pub fn step(
    spec: &Spec,
    ratio: usize,
    w: &AttentionWeights<'_>,
    state: &mut AttentionState,
    m: &[f32],
    place: &Place<'_>,
) -> Vec<f32> {
    let dim = spec.head_dim;
    let table = place.rope_row(spec, place.position);
    let head = |x: &[f32], norm: &[f32]| {
        let mut head = rms_norm(x, norm, spec.rms_eps);
        rope(&mut head, table);
        head
    };
    // [heads][query, gate][head_dim]
    let q = matvec(&w.q, m);
    for key in matvec(&w.k, m).chunks(dim) {
        state.keys.extend(head(key, &w.k_norm).iter().map(|x| place.kv.round(*x)));
    }
    state.values.extend(matvec(&w.v, m).iter().map(|x| place.kv.round(*x)));

    let visible = match (&w.indexer, &spec.indexer) {
        (Some(w), Some(indexer)) if ratio > 0 => visible(spec, (indexer, ratio), w, state, m, place),
        _ => (0..=place.position).collect(),
    };
    let group = spec.heads / spec.kv_heads;
    let width = spec.kv_heads * dim;
    let mut out = Vec::with_capacity(spec.heads * dim);
    for (h, q) in q.chunks(2 * dim).enumerate() {
        let (q, gate) = q.split_at(dim);
        let first = h / group * dim;
        let attended = attend(&head(q, &w.q_norm), &state.keys[first..], &state.values[first..], width, &visible);
        out.extend(gated(&attended, gate));
    }
    matvec(&w.output, &out)
}

/// Notes the token's index key and gives the visible positions in ascending order.
fn visible(
    spec: &Spec,
    (indexer, ratio): (&IndexerSpec, usize),
    w: &IndexerWeights<'_>,
    state: &mut AttentionState,
    m: &[f32],
    place: &Place<'_>,
) -> Vec<usize> {
    let dim = indexer.head_dim;
    state.raw.extend(matvec(&w.k_proj, m));
    let visible = place.position + 1;
    if visible.is_multiple_of(ratio) {
        let mut key = rms_norm(&pool(&state.raw, dim), &w.k_norm, spec.rms_eps);
        rope(&mut key, place.rope_row(spec, visible - ratio));
        state.pooled.extend(key.iter().map(|x| place.kv.round(*x)));
        state.raw.clear();
    }
    let (blocks, budget) = (visible / ratio, indexer.budget_tokens / ratio);
    if blocks <= budget {
        return (0..visible).collect();
    }
    let mut queries = matvec(&w.q_proj, m);
    for query in queries.chunks_mut(dim) {
        query.copy_from_slice(&rms_norm(query, &w.q_norm, spec.rms_eps));
        rope(query, place.rope_row(spec, place.position));
    }
    let chosen = select(&scores(&queries, &state.pooled, dim), budget);
    let tail = blocks * ratio..visible;
    chosen.into_iter().flat_map(|block| block * ratio..(block + 1) * ratio).chain(tail).collect()
}

/// Mean of the raw keys [ratio][dim] of a block.
pub fn pool(raw: &[f32], dim: usize) -> Vec<f32> {
    let mut rows = raw.chunks(dim);
    let mut mean = rows.next().unwrap_or_default().to_vec();
    for row in rows {
        for (mean, x) in mean.iter_mut().zip(row) {
            *mean += x;
        }
    }
    for mean in &mut mean {
        *mean *= inverse(raw.len() / dim);
    }
    mean
}

/// Score of each block: queries [heads][dim], pooled keys [block][dim].
pub fn scores(queries: &[f32], pooled: &[f32], dim: usize) -> Vec<f32> {
    let score = |key: &[f32]| {
        queries.chunks(dim).fold(0f32, |acc, query| {
            let product = dot16(query, key);
            acc + if product > 0.0 { product } else { 0.0 }
        })
    };
    pooled.chunks(dim).map(score).collect()
}

/// The `budget` blocks of greatest score in ascending order; of equal ones the lowest.
pub fn select(scores: &[f32], budget: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..scores.len()).collect();
    // A stable sort keeps the lowest of equals in front.
    order.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]));
    order.truncate(budget);
    order.sort_unstable();
    order
}

with_fma! {
    /// One head's weighted mean of values. Row j of keys and of values starts at `j * stride`.
    pub fn attend(q: &[f32], keys: &[f32], values: &[f32], stride: usize, visible: &[usize]) -> Vec<f32> {
        let dim = q.len();
        let scale = inverse_sqrt(dim);
        let mut merged: Option<(f32, f32, Vec<f32>)> = None;
        for piece in visible.chunks(PIECE) {
            let mut e = Vec::with_capacity(piece.len());
            for j in piece {
                e.push(dot16_inline(q, &keys[j * stride..][..dim]) * scale);
            }
            let m = e.iter().fold(f32::NEG_INFINITY, |m, s| m.max(*s));
            for e in &mut e {
                *e = exp(*e - m);
            }
            let z = sum16(&e);
            let mut o = vec![0f32; dim];
            for (e, j) in e.iter().zip(piece) {
                for (o, v) in o.iter_mut().zip(&values[j * stride..][..dim]) {
                    *o = e.mul_add(*v, *o);
                }
            }
            merged = Some(match merged {
                None => (m, z, o),
                Some((max, sum, mut weighted)) => {
                    let new = max.max(m);
                    let (a, b) = (exp(max - new), exp(m - new));
                    for (w, o) in weighted.iter_mut().zip(&o) {
                        *w = w.mul_add(a, o * b);
                    }
                    (new, sum.mul_add(a, z * b), weighted)
                }
            });
        }
        let Some((_, sum, mut weighted)) = merged else { return vec![0.0; dim] };
        let r = recip(sum);
        for w in &mut weighted {
            *w *= r;
        }
        weighted
    }
}

with_fma! {
    /// `x * sigmoid(gate)`
    pub fn gated(x: &[f32], gate: &[f32]) -> Vec<f32> {
        let mut y = x.to_vec();
        for (y, gate) in y.iter_mut().zip(gate) {
            *y *= sigmoid(*gate);
        }
        y
    }
}
