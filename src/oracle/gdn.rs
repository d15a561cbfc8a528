//! Gated delta net.

use super::linear::{Matrix, matvec};
use super::scalar::{exp, inverse_sqrt, sigmoid, silu, softplus};
use super::sums::{dot16_inline, l2_norm, rms_norm};
use crate::gguf::GgufFile;
use crate::model::{Gdn, GdnGate, GdnGates, GdnSpec};

/// Weights of one layer.
pub struct GdnWeights<'a> {
    pub qkv: Matrix<'a>,
    pub gate: Matrix<'a>,
    pub gates: GateWeights<'a>,
    /// [channels][taps]
    pub conv: Vec<f32>,
    /// [value_heads]
    pub dt_bias: Vec<f32>,
    /// [value_heads]
    pub a: Vec<f32>,
    /// [head_dim]
    pub norm: Vec<f32>,
    pub out: Matrix<'a>,
}

/// Weights of write strengths and decays.
pub enum GateWeights<'a> {
    Separate { beta: Matrix<'a>, alpha: Matrix<'a> },
    Packed(Matrix<'a>),
}

impl<'a> GdnWeights<'a> {
    pub fn new(file: &'a GgufFile, gdn: &Gdn) -> GdnWeights<'a> {
        GdnWeights {
            qkv: Matrix::new(file, &gdn.qkv),
            gate: Matrix::new(file, &gdn.gate),
            gates: match &gdn.gates {
                GdnGates::Separate { beta, alpha } => {
                    GateWeights::Separate { beta: Matrix::new(file, beta), alpha: Matrix::new(file, alpha) }
                }
                GdnGates::Packed(both) => GateWeights::Packed(Matrix::new(file, both)),
            },
            conv: gdn.conv.load(file),
            dt_bias: gdn.dt_bias.load(file),
            a: gdn.a.load(file),
            norm: gdn.norm.load(file),
            out: Matrix::new(file, &gdn.out),
        }
    }
}

/// What one layer remembers of a sequence.
#[derive(Clone, Debug, PartialEq)]
pub struct GdnState {
    /// [taps - 1][channels], the oldest first: inputs of the convolution.
    pub window: Vec<f32>,
    /// [value_heads][head_dim of values][head_dim of keys]
    pub matrices: Vec<f32>,
}

impl GdnState {
    pub fn new(spec: &GdnSpec) -> GdnState {
        GdnState {
            window: vec![0.0; (spec.conv_taps - 1) * spec.channels()],
            matrices: vec![0.0; spec.value_width() * spec.head_dim],
        }
    }
}

/// One token through the block; m and the result are [hidden].
pub fn step(spec: &GdnSpec, w: &GdnWeights<'_>, state: &mut GdnState, m: &[f32], eps: f32) -> Vec<f32> {
    let z = matvec(&w.gate, m);
    let (b, a) = match &w.gates {
        GateWeights::Separate { beta, alpha } => (matvec(beta, m), matvec(alpha, m)),
        GateWeights::Packed(both) => unpack_gates(&matvec(both, m), spec.group()),
    };
    let mut y = convolve(&mut state.window, &w.conv, &matvec(&w.qkv, m));
    let (qk, v) = y.split_at_mut(2 * spec.key_width());
    for head in qk.chunks_mut(spec.head_dim) {
        l2_norm(head, eps);
    }
    let (q, k) = qk.split_at(spec.key_width());
    let (betas, decays) = gates(&b, &a, &w.dt_bias, &w.a);
    let mut out = Vec::with_capacity(v.len());
    let size = spec.head_dim * spec.head_dim;
    for (h, v) in v.chunks(spec.head_dim).enumerate() {
        let key_head = spec.key_head(h) * spec.head_dim;
        let (q, k) = (&q[key_head..][..spec.head_dim], &k[key_head..][..spec.head_dim]);
        let o = recur(&mut state.matrices[h * size..][..size], q, k, v, betas[h], decays[h]);
        out.extend(gated_norm(&o, &w.norm, &z[h * spec.head_dim..][..spec.head_dim], spec.gate, eps));
    }
    matvec(&w.out, &out)
}

/// Write strengths and decays, of which those of each group of value heads stand together.
pub fn unpack_gates(both: &[f32], group: usize) -> (Vec<f32>, Vec<f32>) {
    let groups = both.chunks(2 * group).map(|both| both.split_at(group));
    let (b, a): (Vec<_>, Vec<_>) = groups.unzip();
    (b.concat(), a.concat())
}

with_fma! {
    /// Depthwise convolution over the window and `u`, both oldest first, then silu; the window moves on by one.
    pub fn convolve(window: &mut [f32], taps: &[f32], u: &[f32]) -> Vec<f32> {
        let channels = u.len();
        let count = taps.len() / channels;
        let mut y = vec![0f32; channels];
        for (c, y) in y.iter_mut().enumerate() {
            let taps = &taps[c * count..][..count];
            let mut acc = 0f32;
            for (tap, past) in taps.iter().zip(window.chunks(channels)) {
                acc = tap.mul_add(past[c], acc);
            }
            *y = silu(taps[count - 1].mul_add(u[c], acc));
        }
        window.copy_within(channels.., 0);
        let newest = window.len() - channels;
        window[newest..].copy_from_slice(u);
        y
    }
}

with_fma! {
    /// The write strength and the decay of each value head.
    pub fn gates(b: &[f32], a: &[f32], dt_bias: &[f32], ssm_a: &[f32]) -> (Vec<f32>, Vec<f32>) {
        let (mut betas, mut decays) = (b.to_vec(), a.to_vec());
        for beta in &mut betas {
            *beta = sigmoid(*beta);
        }
        for ((decay, dt), ssm_a) in decays.iter_mut().zip(dt_bias).zip(ssm_a) {
            *decay = exp(ssm_a * softplus(*decay + dt));
        }
        (betas, decays)
    }
}

with_fma! {
    /// One step of one value head's state [head_dim of v][head_dim of k]; gives the head's output.
    pub fn recur(state: &mut [f32], q: &[f32], k: &[f32], v: &[f32], beta: f32, decay: f32) -> Vec<f32> {
        let scale = inverse_sqrt(k.len());
        let mut o = v.to_vec();
        for (row, o) in state.chunks_mut(k.len()).zip(&mut o) {
            for m in row.iter_mut() {
                *m *= decay;
            }
            let e = beta * (*o - dot16_inline(row, k));
            for (m, k) in row.iter_mut().zip(k) {
                *m = e.mul_add(*k, *m);
            }
            *o = dot16_inline(row, q) * scale;
        }
        o
    }
}

with_fma! {
    /// `rms_norm(o) * act(z)` of one head.
    pub fn gated_norm(o: &[f32], norm: &[f32], z: &[f32], gate: GdnGate, eps: f32) -> Vec<f32> {
        let mut y = rms_norm(o, norm, eps);
        for (y, z) in y.iter_mut().zip(z) {
            *y *= match gate {
                GdnGate::Sigmoid => sigmoid(*z),
                GdnGate::Silu => silu(*z),
            };
        }
        y
    }
}
