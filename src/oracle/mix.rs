//! The residual and its streams: making a block's input from them and adding its output to them.

use super::linear::{Matrix, matvec};
use super::scalar::{inverse, sigmoid, silu};
use super::sums::{rms_norm, rms_norm_rows};
use crate::gguf::GgufFile;
use crate::model::{Mixer, PreNorm};

/// Weights of what stands before a block.
pub enum PreNormWeights<'a> {
    Mixer(MixWeights<'a>),
    /// [hidden]
    Norm(Vec<f32>),
}

impl<'a> PreNormWeights<'a> {
    pub fn new(file: &'a GgufFile, norm: &PreNorm) -> PreNormWeights<'a> {
        match norm {
            PreNorm::Mixer(mixer) => PreNormWeights::Mixer(MixWeights::new(file, mixer)),
            PreNorm::Norm(norm) => PreNormWeights::Norm(norm.load(file)),
        }
    }
}

/// A block's input [hidden] and the streams' weights [streams] for its output. A single stream has the weight 1, with
/// which [`add_weighted`] is a plain addition.
pub fn pre_norm(w: &PreNormWeights<'_>, residual: &[f32], streams: usize, eps: f32) -> (Vec<f32>, Vec<f32>) {
    match w {
        PreNormWeights::Mixer(w) => mix(w, residual, streams, eps),
        PreNormWeights::Norm(norm) => (rms_norm(residual, norm, eps), vec![1.0]),
    }
}

/// Weights of a mixer.
pub struct MixWeights<'a> {
    /// [streams][hidden]
    pub norm: Vec<f32>,
    pub down: Matrix<'a>,
    pub up: Matrix<'a>,
    pub inject: Option<Matrix<'a>>,
}

impl<'a> MixWeights<'a> {
    pub fn new(file: &'a GgufFile, mixer: &Mixer) -> MixWeights<'a> {
        MixWeights {
            norm: mixer.norm.load(file),
            down: Matrix::new(file, &mixer.down),
            up: Matrix::new(file, &mixer.up),
            inject: mixer.inject.as_ref().map(|inject| Matrix::new(file, inject)),
        }
    }
}

/// The mixed vector [hidden] and the streams' weights [streams], which are empty without `inject`.
pub fn mix(w: &MixWeights<'_>, residual: &[f32], streams: usize, eps: f32) -> (Vec<f32>, Vec<f32>) {
    let x = rms_norm_rows(residual, &w.norm, residual.len() / streams, eps);
    let low = scaled_silu(&matvec(&w.down, &x), inverse(streams));
    let m = gated_mean(&matvec(&w.up, &low), &x, streams);
    let weights = w.inject.as_ref().map(|inject| stream_weights(&matvec(inject, &x))).unwrap_or_default();
    (m, weights)
}

with_fma! {
    /// `silu(x * scale)`
    pub fn scaled_silu(x: &[f32], scale: f32) -> Vec<f32> {
        let mut y = x.to_vec();
        for y in &mut y {
            *y = silu(*y * scale);
        }
        y
    }
}

with_fma! {
    /// Mean over the streams of `sigmoid(gate) * x`, both [streams][hidden].
    pub fn gated_mean(gate: &[f32], x: &[f32], streams: usize) -> Vec<f32> {
        let hidden = x.len() / streams;
        let mut mean = vec![0f32; hidden];
        for (gate, x) in gate.chunks(hidden).zip(x.chunks(hidden)) {
            for ((acc, gate), x) in mean.iter_mut().zip(gate).zip(x) {
                *acc = sigmoid(*gate).mul_add(*x, *acc);
            }
        }
        for acc in &mut mean {
            *acc *= inverse(streams);
        }
        mean
    }
}

with_fma! {
    /// `2 * sigmoid(inject / streams)` for the outputs of inject, one for each stream.
    pub fn stream_weights(inject: &[f32]) -> Vec<f32> {
        let mut weights = inject.to_vec();
        for w in &mut weights {
            *w = 2.0 * sigmoid(*w * inverse(inject.len()));
        }
        weights
    }
}

with_fma! {
    /// Adds a block's output to every stream of the residual [streams][hidden].
    pub fn add_weighted(residual: &mut [f32], weights: &[f32], y: &[f32]) {
        for (stream, w) in residual.chunks_mut(y.len()).zip(weights) {
            for (r, y) in stream.iter_mut().zip(y) {
                *r = w.mul_add(*y, *r);
            }
        }
    }
}
