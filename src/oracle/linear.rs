//! Matrix times vector (N4), straight from the blocks of the file.

use std::borrow::Cow;

use super::scalar::recip;
use crate::gguf::GgufFile;
use crate::model::TensorRef;
use crate::quant::{
    FP4_VALUES, Format, IQ1_GRID, IQ2_S_GRID, IQ2_XS_GRID, IQ2_XXS_GRID, IQ3_S_GRID, IQ3_XXS_GRID, IQ4_NL_VALUES,
    even_signs, iq1_m_scale, iq1_m_step, iq4_xs_scale, k_scale_and_min, mxfp4_scale, nvfp4_scale, q3_k_scale,
};

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
                        if has_second_term(format) {
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
            Format::Q4_1 => rows(Format::Q4_1, w, x),
            Format::Q5_0 => rows(Format::Q5_0, w, x),
            Format::Q5_1 => rows(Format::Q5_1, w, x),
            Format::IQ4_NL => rows(Format::IQ4_NL, w, x),
            Format::MXFP4 => rows(Format::MXFP4, w, x),
            Format::NVFP4 => rows(Format::NVFP4, w, x),
            Format::Q2_K => rows(Format::Q2_K, w, x),
            Format::Q3_K => rows(Format::Q3_K, w, x),
            Format::Q4_K => rows(Format::Q4_K, w, x),
            Format::Q5_K => rows(Format::Q5_K, w, x),
            Format::Q6_K => rows(Format::Q6_K, w, x),
            Format::IQ4_XS => rows(Format::IQ4_XS, w, x),
            Format::IQ1_S => rows(Format::IQ1_S, w, x),
            Format::IQ1_M => rows(Format::IQ1_M, w, x),
            Format::IQ2_XXS => rows(Format::IQ2_XXS, w, x),
            Format::IQ2_XS => rows(Format::IQ2_XS, w, x),
            Format::IQ2_S => rows(Format::IQ2_S, w, x),
            Format::IQ3_S => rows(Format::IQ3_S, w, x),
            Format::IQ3_XXS => rows(Format::IQ3_XXS, w, x),
            Format::F32 | Format::F16 | Format::BF16 => unreachable!("float formats take their own way"),
        }
    }
}

/// Whether the blocks of 32 have two products: for a minimum, or for the scales of two halves.
#[inline(always)]
fn has_second_term(format: Format) -> bool {
    matches!(format, Format::Q4_1 | Format::Q5_1 | Format::Q2_K | Format::Q4_K | Format::Q5_K | Format::NVFP4)
}

/// The term of the 32 weights `g` of a block.
#[inline(always)]
fn term(format: Format, block: &[u8], g: usize, q: &[i8; BLOCK]) -> Term {
    match format {
        Format::Q8_0 => q8_0(block, q),
        Format::Q4_0 => q4_0(block, q),
        Format::Q4_1 => q4_1(block, q),
        Format::Q5_0 => q5_0(block, q),
        Format::Q5_1 => q5_1(block, q),
        Format::IQ4_NL => iq4_nl(block, q),
        Format::MXFP4 => mxfp4(block, q),
        Format::NVFP4 => nvfp4(block, g, q),
        Format::Q2_K => q2_k(block, g, q),
        Format::Q3_K => q3_k(block, g, q),
        Format::Q4_K => q4_k(block, g, q),
        Format::Q5_K => q5_k(block, g, q),
        Format::Q6_K => q6_k(block, g, q),
        Format::IQ4_XS => iq4_xs(block, g, q),
        Format::IQ1_S => iq1_s(block, g, q),
        Format::IQ1_M => iq1_m(block, g, q),
        Format::IQ2_XXS => iq2_xxs(block, g, q),
        Format::IQ2_XS => iq2_xs(block, g, q),
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

#[inline(always)]
fn total(q: &[i8]) -> i32 {
    q.iter().map(|q| i32::from(*q)).sum()
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

/// d, m, nibbles [16].
#[inline(always)]
fn q4_1(block: &[u8], q: &[i8; BLOCK]) -> Term {
    let w = nibbles(&block[4..20], i32::from);
    Term { i: dot(&w, q), dw: f16(block), j: total(q), mw: f16(&block[2..]) }
}

/// Fifth bits [4], in the order of the elements, nibbles [16].
#[inline(always)]
fn five_bits(bytes: &[u8]) -> [i32; BLOCK] {
    let mut w = nibbles(&bytes[4..20], i32::from);
    for (e, w) in w.iter_mut().enumerate() {
        *w |= i32::from(bytes[e / 8] >> (e % 8) & 1) << 4;
    }
    w
}

/// d, fifth bits [4], nibbles [16].
#[inline(always)]
fn q5_0(block: &[u8], q: &[i8; BLOCK]) -> Term {
    plain(dot(&five_bits(&block[2..22]).map(|w| w - 16), q), f16(block))
}

/// d, m, fifth bits [4], nibbles [16].
#[inline(always)]
fn q5_1(block: &[u8], q: &[i8; BLOCK]) -> Term {
    Term { i: dot(&five_bits(&block[4..24]), q), dw: f16(block), j: total(q), mw: f16(&block[2..]) }
}

#[inline(always)]
fn fp4(code: u8) -> i32 {
    i32::from(FP4_VALUES[usize::from(code)])
}

/// Exponent, nibbles [16].
#[inline(always)]
fn mxfp4(block: &[u8], q: &[i8; BLOCK]) -> Term {
    plain(dot(&nibbles(&block[1..17], fp4), q), mxfp4_scale(block[0]))
}

/// Scales [4] of 16 elements each, nibbles [4][8].
#[inline(always)]
fn nvfp4(block: &[u8], g: usize, q: &[i8; BLOCK]) -> Term {
    let half = |h: usize| {
        let mut w = [0; 16];
        for (e, w) in w.iter_mut().enumerate() {
            *w = fp4(block[4 + 16 * g + 8 * h + e % 8] >> (e / 8 * 4) & 15);
        }
        (dot(&w, &q[16 * h..]), nvfp4_scale(block[2 * g + h]))
    };
    let ((i, dw), (j, mw)) = (half(0), half(1));
    Term { i, dw, j, mw }
}

/// Bit pairs [2][32] of four sub-blocks each.
#[inline(always)]
fn bit_pairs(bytes: &[u8], g: usize) -> [i32; BLOCK] {
    let mut w = [0; BLOCK];
    for (w, byte) in w.iter_mut().zip(&bytes[32 * (g / 4)..]) {
        *w = i32::from(byte >> (2 * (g % 4)) & 3);
    }
    w
}

/// Scales with minima above them [16], bit pairs [64], d, dmin.
#[inline(always)]
fn q2_k(block: &[u8], g: usize, q: &[i8; BLOCK]) -> Term {
    let (w, (first, second)) = (bit_pairs(&block[16..80], g), q.split_at(16));
    let (low, high) = (i32::from(block[2 * g]), i32::from(block[2 * g + 1]));
    Term {
        i: (low & 15) * dot(&w[..16], first) + (high & 15) * dot(&w[16..], second),
        dw: f16(&block[80..]),
        j: (low >> 4) * total(first) + (high >> 4) * total(second),
        mw: -f16(&block[82..]),
    }
}

/// Third bits [32] of all sub-blocks, bit pairs [64], packed scales [12], d.
#[inline(always)]
fn q3_k(block: &[u8], g: usize, q: &[i8; BLOCK]) -> Term {
    let mut w = bit_pairs(&block[32..96], g);
    for (w, third) in w.iter_mut().zip(block) {
        *w += i32::from(third >> g & 1) * 4 - 4;
    }
    let scale = |h: usize| i32::from(q3_k_scale(&block[96..108], 2 * g + h));
    plain(scale(0) * dot(&w[..16], &q[..16]) + scale(1) * dot(&w[16..], &q[16..]), f16(&block[108..]))
}

/// d, dmin, packed scales [12], nibbles [4][32] of two sub-blocks each.
#[inline(always)]
fn q4_k(block: &[u8], g: usize, q: &[i8; BLOCK]) -> Term {
    let (scale, minimum) = k_scale_and_min(&block[4..16], g);
    let mut w = [0; BLOCK];
    for (w, byte) in w.iter_mut().zip(&block[16 + 32 * (g / 2)..]) {
        *w = i32::from(byte >> (g % 2 * 4) & 15);
    }
    Term { i: i32::from(scale) * dot(&w, q), dw: f16(block), j: i32::from(minimum) * total(q), mw: -f16(&block[2..]) }
}

/// d, high pairs of scales [2], low nibbles of scales [4], nibbles [8][16].
#[inline(always)]
fn iq4_xs(block: &[u8], g: usize, q: &[i8; BLOCK]) -> Term {
    let w = nibbles(&block[8 + 16 * g..24 + 16 * g], |n| i32::from(IQ4_NL_VALUES[usize::from(n)]));
    plain(i32::from(iq4_xs_scale(block, g)) * dot(&w, q), f16(block))
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
    let (scale, minimum) = k_scale_and_min(&block[4..16], g);
    let (fifth, low) = (&block[16..48], &block[48 + 32 * (g / 2)..][..32]);
    let mut w = [0; BLOCK];
    for ((w, low), fifth) in w.iter_mut().zip(low).zip(fifth) {
        *w = i32::from((low >> (g % 2 * 4)) & 15 | (fifth >> g & 1) << 4);
    }
    Term { i: i32::from(scale) * dot(&w, q), dw: f16(block), j: i32::from(minimum) * total(q), mw: -f16(&block[2..]) }
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

/// Sum of q times the row's eight values and their offset, in eighths.
#[inline(always)]
fn dot_ternary(index: usize, below: bool, q: &[i8]) -> i32 {
    let offset = if below { -1 } else { 1 };
    let codes = IQ1_GRID[index].to_le_bytes();
    codes.iter().zip(q).map(|(code, q)| (8 * i32::from(*code as i8) + offset) * i32::from(*q)).sum()
}

/// d, indices [32], words [8]: three more index bits four times, a 3-bit scale, and the sign of the offset.
#[inline(always)]
fn iq1_s(block: &[u8], g: usize, q: &[i8; BLOCK]) -> Term {
    let word = u16::from_le_bytes([block[34 + 2 * g], block[35 + 2 * g]]);
    let mut sum = 0;
    for t in 0..4 {
        let index = usize::from(block[2 + 4 * g + t]) | usize::from(word >> (3 * t) & 7) << 8;
        sum += dot_ternary(index, word >> 15 != 0, &q[8 * t..8 * t + 8]);
    }
    plain((2 * i32::from(word >> 12 & 7) + 1) * sum, f16(block) * 0.125)
}

/// Indices [32], nibbles [32] of three more index bits and the sign of the offset, words [4]: four 3-bit scales, and a
/// nibble of d.
#[inline(always)]
fn iq1_m(block: &[u8], g: usize, q: &[i8; BLOCK]) -> Term {
    let words = &block[48..56];
    let mut halves = [0; 2];
    for t in 0..4 {
        let high = block[32 + 2 * g + t / 2] >> (t % 2 * 4) & 15;
        let index = usize::from(block[4 * g + t]) | usize::from(high & 7) << 8;
        halves[t / 2] += dot_ternary(index, high & 8 != 0, &q[8 * t..8 * t + 8]);
    }
    let scale = |h: usize| 2 * i32::from(iq1_m_step(words, 2 * g + h)) + 1;
    let d = half::f16::from_bits(iq1_m_scale(words)).to_f32_const();
    plain(scale(0) * halves[0] + scale(1) * halves[1], d * 0.125)
}

/// d, per sub-block [8]: indices [4], a word of four sign masks of 7 bits, the eighth makes the count even, and the
/// scale on top.
#[inline(always)]
fn iq2_xxs(block: &[u8], g: usize, q: &[i8; BLOCK]) -> Term {
    let (indices, word) = block[2 + 8 * g..10 + 8 * g].split_at(4);
    let word = u32::from_le_bytes([word[0], word[1], word[2], word[3]]);
    let mut sum = 0;
    for (t, index) in indices.iter().enumerate() {
        sum += dot_signed(IQ2_XXS_GRID[usize::from(*index)], even_signs(word >> (7 * t)), &q[8 * t..8 * t + 8]);
    }
    plain((2 * (word >> 28) as i32 + 1) * sum, f16(block) * 0.125)
}

/// d, words [32] of a 9-bit index and a sign mask of 7 bits, pairs of scales [8].
#[inline(always)]
fn iq2_xs(block: &[u8], g: usize, q: &[i8; BLOCK]) -> Term {
    let mut halves = [0; 2];
    for t in 0..4 {
        let at = 2 + 8 * g + 2 * t;
        let word = u16::from_le_bytes([block[at], block[at + 1]]);
        let values = IQ2_XS_GRID[usize::from(word & 511)];
        halves[t / 2] += dot_signed(values, even_signs(u32::from(word >> 9)), &q[8 * t..8 * t + 8]);
    }
    let (low, high) = (i32::from(block[66 + g] & 15), i32::from(block[66 + g] >> 4));
    plain((2 * low + 1) * halves[0] + (2 * high + 1) * halves[1], f16(block) * 0.125)
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
        let values = pair(value(2 * t), value(2 * t + 1));
        sum += dot_signed(values, even_signs(word >> (7 * t)), &q[8 * t..8 * t + 8]);
    }
    plain((2 * (word >> 28) as i32 + 1) * sum, f16(block) * 0.25)
}
