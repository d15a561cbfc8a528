//! Feed-forward, dense or as a mixture of experts.

use super::linear::{Matrix, matvec};
use super::scalar::{exp, recip, sigmoid, silu};
use super::sums::sum16;
use crate::gguf::GgufFile;
use crate::model::{FeedForward, Moe, Swiglu};

/// Weights of a layer's feed-forward.
pub enum FeedForwardWeights<'a> {
    Dense(ExpertWeights<'a>),
    Moe(MoeWeights<'a>),
}

/// Weights of one expert, or of a dense feed-forward.
pub struct ExpertWeights<'a> {
    pub gate: Matrix<'a>,
    pub up: Matrix<'a>,
    pub down: Matrix<'a>,
}

/// Weights of the experts of one layer.
pub struct MoeWeights<'a> {
    pub router: Matrix<'a>,
    pub experts: Vec<ExpertWeights<'a>>,
    pub shared_gate: Matrix<'a>,
    pub shared: ExpertWeights<'a>,
}

impl<'a> FeedForwardWeights<'a> {
    pub fn new(file: &'a GgufFile, ffn: &FeedForward) -> FeedForwardWeights<'a> {
        match ffn {
            FeedForward::Dense(dense) => FeedForwardWeights::Dense(ExpertWeights::new(file, dense)),
            FeedForward::Moe(moe) => FeedForwardWeights::Moe(MoeWeights::new(file, moe)),
        }
    }

    /// One token through the feed-forward; m and the result are [hidden]. `used` experts take part where there are any.
    pub fn step(&self, used: usize, m: &[f32]) -> Vec<f32> {
        match self {
            FeedForwardWeights::Dense(w) => run_expert(w, m),
            FeedForwardWeights::Moe(w) => step(w, used, m),
        }
    }
}

impl<'a> ExpertWeights<'a> {
    pub fn new(file: &'a GgufFile, expert: &Swiglu) -> ExpertWeights<'a> {
        ExpertWeights {
            gate: Matrix::new(file, &expert.gate),
            up: Matrix::new(file, &expert.up),
            down: Matrix::new(file, &expert.down),
        }
    }
}

impl<'a> MoeWeights<'a> {
    pub fn new(file: &'a GgufFile, moe: &Moe) -> MoeWeights<'a> {
        let (gates, ups) = (Matrix::experts(file, &moe.gate), Matrix::experts(file, &moe.up));
        let downs = Matrix::experts(file, &moe.down);
        let experts = gates.into_iter().zip(ups).zip(downs);
        MoeWeights {
            router: Matrix::new(file, &moe.router),
            experts: experts.map(|((gate, up), down)| ExpertWeights { gate, up, down }).collect(),
            shared_gate: Matrix::new(file, &moe.shared_gate),
            shared: ExpertWeights::new(file, &moe.shared),
        }
    }
}

/// One token through all its experts; m and the result are [hidden].
pub fn step(w: &MoeWeights<'_>, used: usize, m: &[f32]) -> Vec<f32> {
    let mut y = vec![0f32; m.len()];
    for (expert, weight) in route(&matvec(&w.router, m), used) {
        accumulate(&mut y, weight, &run_expert(&w.experts[expert], m));
    }
    let gate = matvec(&w.shared_gate, m)[0];
    accumulate(&mut y, sigmoid(gate), &run_expert(&w.shared, m));
    y
}

/// The `used` experts and their weights, the most probable first and of equals the lowest.
pub fn route(logits: &[f32], used: usize) -> Vec<(usize, f32)> {
    let max = logits.iter().fold(f32::NEG_INFINITY, |max, r| max.max(*r));
    let e: Vec<f32> = logits.iter().map(|r| exp(r - max)).collect();
    let r = recip(sum16(&e));
    let p: Vec<f32> = e.iter().map(|e| e * r).collect();
    let mut order: Vec<usize> = (0..p.len()).collect();
    // A stable sort keeps the lowest of equals in front.
    order.sort_by(|a, b| p[*b].total_cmp(&p[*a]));
    order.truncate(used);
    let total = order.iter().map(|i| p[*i]).reduce(|total, p| total + p).unwrap_or(0.0);
    let r = recip(total.max(1.0 / 16384.0));
    order.into_iter().map(|i| (i, p[i] * r)).collect()
}

/// `down(silu(gate(m)) * up(m))`
pub fn run_expert(w: &ExpertWeights<'_>, m: &[f32]) -> Vec<f32> {
    matvec(&w.down, &gated(&matvec(&w.gate, m), &matvec(&w.up, m)))
}

with_fma! {
    /// `silu(gate) * up`
    pub fn gated(gate: &[f32], up: &[f32]) -> Vec<f32> {
        let mut h = gate.to_vec();
        for (h, up) in h.iter_mut().zip(up) {
            *h = silu(*h) * up;
        }
        h
    }
}

with_fma! {
    /// `acc + weight * y`, fused.
    pub fn accumulate(acc: &mut [f32], weight: f32, y: &[f32]) {
        for (acc, y) in acc.iter_mut().zip(y) {
            *acc = weight.mul_add(*y, *acc);
        }
    }
}
