//! Embedding of n-grams.

use super::linear::{Matrix, matvec};
use super::scalar::{inverse_sqrt, sigmoid, silu, sqrt};
use super::sums::{dot16, rms_norm, rms_norm_rows};
use crate::gguf::GgufFile;
use crate::model::{Ple, PleSpec};

/// Weights of the embedding's layer.
pub struct PleWeights<'a> {
    pub key: Matrix<'a>,
    pub value: Matrix<'a>,
    /// [streams][hidden]
    pub norm_key: Vec<f32>,
    /// [streams][hidden]
    pub norm_query: Vec<f32>,
    /// [streams][hidden]
    pub norm_conv: Vec<f32>,
    /// [streams * hidden][taps]
    pub conv: Vec<f32>,
}

impl<'a> PleWeights<'a> {
    pub fn new(file: &'a GgufFile, ple: &Ple) -> PleWeights<'a> {
        PleWeights {
            key: Matrix::new(file, &ple.key),
            value: Matrix::new(file, &ple.value),
            norm_key: ple.norm_key.load(file),
            norm_query: ple.norm_query.load(file),
            norm_conv: ple.norm_conv.load(file),
            conv: ple.conv.load(file),
        }
    }
}

/// Past inputs of the convolution, [history][streams * hidden] with the oldest first; zeros before the start.
#[derive(Clone, Debug, PartialEq)]
pub struct PleState {
    pub history: Vec<f32>,
}

impl PleState {
    pub fn new(spec: &PleSpec, wide: usize) -> PleState {
        PleState { history: vec![0.0; spec.history() * wide] }
    }
}

/// Adds the embedding e [width] of the token's n-grams to the residual [streams][hidden].
pub fn step(
    spec: &PleSpec,
    w: &PleWeights<'_>,
    state: &mut PleState,
    e: &[f32],
    residual: &mut [f32],
    hidden: usize,
    eps: f32,
) {
    let keys = rms_norm_rows(&matvec(&w.key, e), &w.norm_key, hidden, eps);
    let queries = rms_norm_rows(residual, &w.norm_query, hidden, eps);
    let value = matvec(&w.value, e);
    let gates: Vec<f32> = keys.chunks(hidden).zip(queries.chunks(hidden)).map(|(k, q)| gate(k, q)).collect();
    let gated: Vec<f32> = gates.iter().flat_map(|g| value.iter().map(move |v| g * v)).collect();
    let normed: Vec<f32> = gated
        .chunks(hidden)
        .zip(w.norm_conv.chunks(hidden))
        .flat_map(|(gated, norm)| rms_norm(gated, norm, eps))
        .collect();
    let convolved = convolve(&mut state.history, &w.conv, &normed, spec.ngram);
    for ((r, g), c) in residual.iter_mut().zip(&gated).zip(&convolved) {
        *r = (*r + g) + c;
    }
}

/// How far a stream takes the value in.
pub fn gate(key: &[f32], query: &[f32]) -> f32 {
    let s = dot16(key, query) * inverse_sqrt(key.len());
    let t = sqrt(s.abs().max(1e-6));
    sigmoid(if s > 0.0 {
        t
    } else if s < 0.0 {
        -t
    } else {
        0.0
    })
}

with_fma! {
    /// Depthwise convolution with a dilation over the history and `n`, then silu; the history moves on by one.
    pub fn convolve(history: &mut [f32], taps: &[f32], n: &[f32], dilation: usize) -> Vec<f32> {
        let channels = n.len();
        let count = taps.len() / channels;
        let mut y = vec![0f32; channels];
        for (c, y) in y.iter_mut().enumerate() {
            let taps = &taps[c * count..][..count];
            let mut acc = 0f32;
            for (tap, past) in taps.iter().zip(history.chunks(channels).step_by(dilation)) {
                acc = tap.mul_add(past[c], acc);
            }
            *y = silu(taps[count - 1].mul_add(n[c], acc));
        }
        history.copy_within(channels.., 0);
        let newest = history.len() - channels;
        history[newest..].copy_from_slice(n);
        y
    }
}
