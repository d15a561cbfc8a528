//! Matrix times vector (N4), straight from the blocks of the file.

use std::borrow::Cow;

use super::scalar::recip;
use crate::gguf::GgufFile;
use crate::model::TensorRef;
use crate::quant::{Format, IQ2_S_GRID, IQ3_S_GRID, IQ3_XXS_GRID, IQ4_NL_VALUES};

/// Elements that share an activation scale.
pub const BLOCK: usize = 32;

/// A matrix in the layout of the file: rows one after another.
#[derive(Clone, Debug)]
pub struct Matrix<'a> {
    pub format: Format,
    pub rows: usize,
    /// A multiple of 32, and of the format's block.
    pub cols: usize,
    pub data: Cow<'a, [u8]>,
}

impl<'a> Matrix<'a> {
    /// A tensor without experts.
    pub fn new(file: &'a GgufFile, tensor: &TensorRef) -> Matrix<'a> {
        Matrix::expert(file, tensor, 0)
    }

    /// The matrix of each expert.
    pub fn experts(file: &'a GgufFile, tensor: &TensorRef) -> Vec<Matrix<'a>> {
        (0..tensor.experts.unwrap_or(1)).map(|expert| Matrix::expert(file, tensor, expert)).collect()
    }

    fn expert(file: &'a GgufFile, tensor: &TensorRef, expert: usize) -> Matrix<'a> {
        let TensorRef { format, rows, cols, .. } = *tensor;
        Matrix { format, rows, cols, data: tensor.matrix(file, expert) }
    }

    fn row_bytes(&self) -> usize {
        self.cols / self.format.block_elements() * self.format.block_bytes()
    }
}

/// An activation as quantised matrices read it.
#[derive(Clone, Debug, PartialEq)]
pub struct Quantised {
    /// [K/32][32], from -127 to 127.
    pub q: Vec<[i8; BLOCK]>,
    /// [K/32]
    pub d: Vec<f32>,
}

/// Quantises an activation in blocks of 32.
pub fn quantise(x: &[f32]) -> Quantised {
    let (blocks, _) = x.as_chunks::<BLOCK>();
    let (q, d) = blocks.iter().map(quantise_block).unzip();
    Quantised { q, d }
}

with_fma! {
    fn quantise_block(x: &[f32; BLOCK]) -> ([i8; BLOCK], f32) {
        let amax = x.iter().fold(0f32, |amax, x| amax.max(x.abs()));
        if amax < f32::from_bits(27 << 23) {
            return ([0; BLOCK], 0.0); // below 2^-100
        }
        let d = amax * (1.0f64 / 127.0) as f32;
        let inverse = recip(d);
        let mut q = [0; BLOCK];
        for (q, x) in q.iter_mut().zip(x) {
            *q = (x * inverse).round_ties_even() as i8;
        }
        (q, d)
    }
}

/// `W x`, quantising x first where the format asks for it.
pub fn matvec(w: &Matrix<'_>, x: &[f32]) -> Vec<f32> {
    if w.format.is_quantised() { quantised(w, &quantise(x)) } else { float(w, x) }
}

/// Blocks of a full segment of a row of `blocks` blocks.
#[inline(always)]
fn segment_blocks(blocks: usize) -> usize {
    8 * blocks.div_ceil(64)
}

with_fma! {
    fn float(w: &Matrix<'_>, x: &[f32]) -> Vec<f32> {
        #[inline(always)]
        fn rows<const SIZE: usize>(w: &Matrix<'_>, x: &[f32], widen: impl Fn(&[u8; SIZE]) -> f32) -> Vec<f32> {
            let segment = segment_blocks(w.cols / BLOCK) * BLOCK;
            let mut all = Vec::with_capacity(w.rows);
            for row in w.data.chunks_exact(w.row_bytes()) {
                let (row, _) = row.as_chunks::<SIZE>();
                let mut y = None;
                for (w, x) in row.chunks(segment).zip(x.chunks(segment)) {
                    let mut acc = 0f32;
                    for (w, x) in w.iter().zip(x) {
                        acc = widen(w).mul_add(*x, acc);
                    }
                    y = Some(add_segment(y, acc));
                }
                all.push(y.unwrap_or(0.0));
            }
            all
        }
        match w.format {
            Format::BF16 => rows::<2>(w, x, |w| f32::from_bits(u32::from(u16::from_le_bytes(*w)) << 16)),
            Format::F16 => rows::<2>(w, x, |w| f16(w)),
            _ => rows::<4>(w, x, |w| f32::from_le_bytes(*w)),
        }
    }
}

/// `y = seg_0; y = y + seg_s` ascending.
#[inline(always)]
fn add_segment(y: Option<f32>, segment: f32) -> f32 {
    match y {
        Some(y) => y + segment,
        None => segment,
    }
}

/// What a block of 32 weights adds: `i * dw` and `j * mw`, both still to be multiplied by the activation's scale.
struct Term {
    i: i32,
    dw: f32,
    j: i32,
    mw: f32,
}

with_fma! {
    fn quantised(w: &Matrix<'_>, x: &Quantised) -> Vec<f32> {
        #[inline(always)]
        fn rows(format: Format, w: &Matrix<'_>, x: &Quantised) -> Vec<f32> {
            let (blocks, block_bytes) = (w.cols / BLOCK, format.block_bytes());
            let sub_blocks = format.block_elements() / BLOCK;
            let segment = segment_blocks(blocks);
            let mut all = Vec::with_capacity(w.rows);
            for row in w.data.chunks_exact(w.row_bytes()) {
                let mut y = None;
                for start in (0..blocks).step_by(segment) {
                    let mut acc = 0f32;
                    for b in start..blocks.min(start + segment) {
                        let block = &row[b / sub_blocks * block_bytes..][..block_bytes];
                        let t = term(format, block, b % sub_blocks, &x.q[b]);
                        acc = (t.i as f32).mul_add(t.dw * x.d[b], acc);
                        if format == Format::Q5_K {
                            acc = (t.j as f32).mul_add(t.mw * x.d[b], acc);
                        }
                    }
                    y = Some(add_segment(y, acc));
                }
                all.push(y.unwrap_or(0.0));
            }
            all
        }
        // With the format as a constant each arm becomes a loop of its own.
        match w.format {
            Format::Q8_0 => rows(Format::Q8_0, w, x),
            Format::Q4_0 => rows(Format::Q4_0, w, x),
            Format::IQ4_NL => rows(Format::IQ4_NL, w, x),
            Format::Q6_K => rows(Format::Q6_K, w, x),
            Format::Q5_K => rows(Format::Q5_K, w, x),
            Format::IQ2_S => rows(Format::IQ2_S, w, x),
            Format::IQ3_S => rows(Format::IQ3_S, w, x),
            Format::IQ3_XXS => rows(Format::IQ3_XXS, w, x),
            Format::F32 | Format::F16 | Format::BF16 => unreachable!("float formats take their own way"),
        }
    }
}

/// The term of the 32 weights `g` of a block.
#[inline(always)]
fn term(format: Format, block: &[u8], g: usize, q: &[i8; BLOCK]) -> Term {
    match format {
        Format::Q8_0 => q8_0(block, q),
        Format::Q4_0 => q4_0(block, q),
        Format::IQ4_NL => iq4_nl(block, q),
        Format::Q6_K => q6_k(block, g, q),
        Format::Q5_K => q5_k(block, g, q),
        Format::IQ2_S => iq2_s(block, g, q),
        Format::IQ3_S => iq3_s(block, g, q),
        Format::IQ3_XXS => iq3_xxs(block, g, q),
        Format::F32 | Format::F16 | Format::BF16 => unreachable!("float formats take their own way"),
    }
}

#[inline(always)]
fn f16(bytes: &[u8]) -> f32 {
    half::f16::from_le_bytes([bytes[0], bytes[1]]).to_f32_const()
}

#[inline(always)]
fn dot(w: &[i32], q: &[i8]) -> i32 {
    let mut sum = 0;
    for (w, q) in w.iter().zip(q) {
        sum += w * i32::from(*q);
    }
    sum
}

/// 16 bytes of nibbles: all low ones, then all high ones.
#[inline(always)]
fn nibbles(bytes: &[u8], value: impl Fn(u8) -> i32) -> [i32; BLOCK] {
    let mut w = [0; BLOCK];
    let (low, high) = w.split_at_mut(16);
    for ((low, high), byte) in low.iter_mut().zip(high).zip(bytes) {
        (*low, *high) = (value(byte & 15), value(byte >> 4));
    }
    w
}

#[inline(always)]
fn plain(i: i32, dw: f32) -> Term {
    Term { i, dw, j: 0, mw: 0.0 }
}

#[inline(always)]
fn q8_0(block: &[u8], q: &[i8; BLOCK]) -> Term {
    let mut w = [0; BLOCK];
    for (w, byte) in w.iter_mut().zip(&block[2..34]) {
        *w = i32::from(*byte as i8);
    }
    plain(dot(&w, q), f16(block))
}

#[inline(always)]
fn q4_0(block: &[u8], q: &[i8; BLOCK]) -> Term {
    plain(dot(&nibbles(&block[2..18], |n| i32::from(n) - 8), q), f16(block))
}

#[inline(always)]
fn iq4_nl(block: &[u8], q: &[i8; BLOCK]) -> Term {
    plain(dot(&nibbles(&block[2..18], |n| i32::from(IQ4_NL_VALUES[usize::from(n)])), q), f16(block))
}

/// Low bits [2][64] of two sub-blocks each, high bits [2][32] of four each, i8 scales [16], d.
#[inline(always)]
fn q6_k(block: &[u8], g: usize, q: &[i8; BLOCK]) -> Term {
    let (half, j) = (g / 4, g % 4);
    let (low, high) = (&block[64 * half + 32 * (j & 1)..][..32], &block[128 + 32 * half..][..32]);
    let mut w = [0; BLOCK];
    for ((w, low), high) in w.iter_mut().zip(low).zip(high) {
        *w = i32::from((low >> (j / 2 * 4)) & 15 | ((high >> (2 * j)) & 3) << 4) - 32;
    }
    let scale = |i: usize| i32::from(block[192 + 2 * g + i] as i8);
    plain(scale(0) * dot(&w[..16], &q[..16]) + scale(1) * dot(&w[16..], &q[16..]), f16(&block[208..]))
}

/// d, dmin, packed scales [12], fifth bits [32] of all sub-blocks, low bits [4][32] of two sub-blocks each.
#[inline(always)]
fn q5_k(block: &[u8], g: usize, q: &[i8; BLOCK]) -> Term {
    let packed = &block[4..16];
    let (scale, minimum) = if g < 4 {
        (packed[g] & 63, packed[g + 4] & 63)
    } else {
        (packed[g + 4] & 15 | packed[g - 4] >> 6 << 4, packed[g + 4] >> 4 | packed[g] >> 6 << 4)
    };
    let (fifth, low) = (&block[16..48], &block[48 + 32 * (g / 2)..][..32]);
    let (mut w, mut total) = ([0; BLOCK], 0);
    for (((w, low), fifth), q) in w.iter_mut().zip(low).zip(fifth).zip(q) {
        *w = i32::from((low >> (g % 2 * 4)) & 15 | (fifth >> g & 1) << 4);
        total += i32::from(*q);
    }
    Term { i: i32::from(scale) * dot(&w, q), dw: f16(block), j: i32::from(minimum) * total, mw: -f16(&block[2..]) }
}

/// Sum of q times eight codebook values, which are negated where the mask has a bit.
#[inline(always)]
fn dot_signed(values: u64, mask: u8, q: &[i8]) -> i32 {
    let mut sum = 0;
    for (e, (value, q)) in values.to_le_bytes().iter().zip(q).enumerate() {
        let negative = i32::from(mask >> e & 1);
        // A complement and one more: the value's negative, without a branch.
        sum += ((i32::from(*value) ^ -negative) + negative) * i32::from(*q);
    }
    sum
}

#[inline(always)]
fn pair(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

/// d, indices [32], sign masks [32], two more index bits each [8], pairs of scales [8].
#[inline(always)]
fn iq2_s(block: &[u8], g: usize, q: &[i8; BLOCK]) -> Term {
    let mut halves = [0; 2];
    for t in 0..4 {
        let high = usize::from(block[66 + g] >> (2 * t) & 3);
        let values = IQ2_S_GRID[usize::from(block[2 + 4 * g + t]) | high << 8];
        halves[t / 2] += dot_signed(values, block[34 + 4 * g + t], &q[8 * t..8 * t + 8]);
    }
    let (low, high) = (i32::from(block[74 + g] & 15), i32::from(block[74 + g] >> 4));
    plain((2 * low + 1) * halves[0] + (2 * high + 1) * halves[1], f16(block) * 0.125)
}

/// d, indices [64], ninth index bits [8], sign masks [32], scales [4] of two sub-blocks each.
#[inline(always)]
fn iq3_s(block: &[u8], g: usize, q: &[i8; BLOCK]) -> Term {
    let value = |u: usize| {
        let high = usize::from(block[66 + g] >> u & 1);
        IQ3_S_GRID[usize::from(block[2 + 8 * g + u]) | high << 8]
    };
    let mut sum = 0;
    for t in 0..4 {
        let values = pair(value(2 * t), value(2 * t + 1));
        sum += dot_signed(values, block[74 + 4 * g + t], &q[8 * t..8 * t + 8]);
    }
    let scale = i32::from(block[106 + g / 2] >> (4 * (g % 2)) & 15);
    plain((2 * scale + 1) * sum, f16(block))
}

/// d, indices [64], words [8]: four sign masks of 7 bits, the eighth makes the count even, and the scale on top.
#[inline(always)]
fn iq3_xxs(block: &[u8], g: usize, q: &[i8; BLOCK]) -> Term {
    let at = 66 + 4 * g;
    let word = u32::from_le_bytes([block[at], block[at + 1], block[at + 2], block[at + 3]]);
    let value = |u: usize| IQ3_XXS_GRID[usize::from(block[2 + 8 * g + u])];
    let mut sum = 0;
    for t in 0..4 {
        let seven = (word >> (7 * t) & 127) as u8;
        let mask = seven | (seven.count_ones() as u8 & 1) << 7;
        sum += dot_signed(pair(value(2 * t), value(2 * t + 1)), mask, &q[8 * t..8 * t + 8]);
    }
    plain((2 * (word >> 28) as i32 + 1) * sum, f16(block) * 0.25)
}
