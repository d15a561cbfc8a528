//! One function per format: the values of a single block.
//!
//! Scales are multiplied in a fixed order, `d * scale * q` from the left, because another order rounds differently.

use super::codebooks::{
    FP4_VALUES, IQ1_GRID, IQ2_S_GRID, IQ2_XS_GRID, IQ2_XXS_GRID, IQ3_S_GRID, IQ3_XXS_GRID, IQ4_NL_VALUES,
};
use super::scales::{
    even_signs, iq1_m_scale, iq1_m_step, iq4_xs_scale, k_scale_and_min, mxfp4_scale, nvfp4_scale, q3_k_scale,
};

/// Decodes consecutive blocks. The caller has checked that both lengths are the same whole number of blocks.
pub(super) fn rows<const B: usize, const N: usize>(bytes: &[u8], out: &mut [f32], block: fn(&[u8; B], &mut [f32; N])) {
    for (source, target) in bytes.as_chunks::<B>().0.iter().zip(out.as_chunks_mut::<N>().0) {
        block(source, target);
    }
}

fn half(block: &[u8], at: usize) -> f32 {
    half::f16::from_le_bytes([block[at], block[at + 1]]).to_f32()
}

/// Bit `index` set means minus.
fn sign(mask: u8, index: usize) -> f32 {
    if mask >> index & 1 == 0 { 1.0 } else { -1.0 }
}

/// The 4-bit codes of a 32-element block: low nibbles are the first half, high nibbles the second.
fn nibbles(codes: &[u8], out: &mut [f32; 32], value: impl Fn(u8) -> f32) {
    let (first, second) = out.split_at_mut(16);
    for ((packed, low), high) in codes.iter().zip(first).zip(second) {
        *low = value(packed & 15);
        *high = value(packed >> 4);
    }
}

pub(super) fn f32(block: &[u8; 4], out: &mut [f32; 1]) {
    out[0] = f32::from_le_bytes(*block);
}

pub(super) fn f16(block: &[u8; 2], out: &mut [f32; 1]) {
    out[0] = half(block, 0);
}

pub(super) fn bf16(block: &[u8; 2], out: &mut [f32; 1]) {
    out[0] = f32::from_bits(u32::from(u16::from_le_bytes(*block)) << 16);
}

/// d: f16, q: i8 x 32.
pub(super) fn q8_0(block: &[u8; 34], out: &mut [f32; 32]) {
    let d = half(block, 0);
    for (value, q) in out.iter_mut().zip(&block[2..]) {
        *value = d * f32::from(*q as i8);
    }
}

/// d: f16, nibbles x 32.
pub(super) fn q4_0(block: &[u8; 18], out: &mut [f32; 32]) {
    let d = half(block, 0);
    nibbles(&block[2..], out, |code| d * (f32::from(code) - 8.0));
}

/// d, m: f16, nibbles x 32.
pub(super) fn q4_1(block: &[u8; 20], out: &mut [f32; 32]) {
    let (d, m) = (half(block, 0), half(block, 2));
    nibbles(&block[4..], out, |code| d * f32::from(code) + m);
}

/// Nibbles at `at`, after a word of the fifth bits of the elements in order.
fn five_bits(block: &[u8], at: usize, out: &mut [f32; 32], value: impl Fn(u8) -> f32) {
    let (high, low) = (&block[at - 4..at], &block[at..]);
    for (i, out) in out.iter_mut().enumerate() {
        let fifth = high[i / 8] >> (i % 8) & 1;
        *out = value((low[i % 16] >> (i / 16 * 4) & 15) | fifth << 4);
    }
}

/// d: f16, fifth bits x 32, nibbles x 32.
pub(super) fn q5_0(block: &[u8; 22], out: &mut [f32; 32]) {
    let d = half(block, 0);
    five_bits(block, 6, out, |code| d * (f32::from(code) - 16.0));
}

/// d, m: f16, fifth bits x 32, nibbles x 32.
pub(super) fn q5_1(block: &[u8; 24], out: &mut [f32; 32]) {
    let (d, m) = (half(block, 0), half(block, 2));
    five_bits(block, 8, out, |code| d * f32::from(code) + m);
}

/// d: f16, nibbles x 32 that index the level table.
pub(super) fn iq4_nl(block: &[u8; 18], out: &mut [f32; 32]) {
    let d = half(block, 0);
    nibbles(&block[2..], out, |code| d * f32::from(IQ4_NL_VALUES[usize::from(code)]));
}

/// Exponent, nibbles x 32.
pub(super) fn mxfp4(block: &[u8; 17], out: &mut [f32; 32]) {
    let d = mxfp4_scale(block[0]);
    nibbles(&block[1..], out, |code| d * f32::from(FP4_VALUES[usize::from(code)]));
}

/// Scales of 16 elements x 4, then for each of them nibbles x 16, the low ones first.
pub(super) fn nvfp4(block: &[u8; 36], out: &mut [f32; 64]) {
    for (group, values) in out.as_chunks_mut::<16>().0.iter_mut().enumerate() {
        let d = nvfp4_scale(block[group]);
        for (l, value) in values.iter_mut().enumerate() {
            let code = block[4 + 8 * group + l % 8] >> (l / 8 * 4) & 15;
            *value = d * f32::from(FP4_VALUES[usize::from(code)]);
        }
    }
}

/// Low bit pairs of 256 elements: byte l of 32 holds those of elements l, 32 + l, 64 + l and 96 + l of a half.
fn bit_pair(packed: &[u8], i: usize) -> u8 {
    packed[i / 128 * 32 + i % 32] >> (i / 32 % 4 * 2) & 3
}

/// Scale nibbles with minima above them x 16; bit pairs at 16; d: f16 at 80, dmin at 82.
pub(super) fn q2_k(block: &[u8; 84], out: &mut [f32; 256]) {
    let (d, dmin) = (half(block, 80), half(block, 82));
    for (i, value) in out.iter_mut().enumerate() {
        let packed = block[i / 16];
        let (scale, min) = (d * f32::from(packed & 15), dmin * f32::from(packed >> 4));
        *value = scale * f32::from(bit_pair(&block[16..80], i)) - min;
    }
}

/// Third bits x 32 bytes, bit i of byte l for element 32 i + l; bit pairs at 32; 6-bit scales at 96; d: f16 at 108.
pub(super) fn q3_k(block: &[u8; 110], out: &mut [f32; 256]) {
    let d = half(block, 108);
    for (i, value) in out.iter_mut().enumerate() {
        let scale = d * f32::from(q3_k_scale(&block[96..108], i / 16));
        let code = bit_pair(&block[32..96], i) | (block[i % 32] >> (i / 32) & 1) << 2;
        *value = scale * (f32::from(code) - 4.0);
    }
}

/// d, dmin: f16; 12 bytes of packed 6-bit scales and minima; nibbles at 16.
pub(super) fn q4_k(block: &[u8; 144], out: &mut [f32; 256]) {
    let (d, dmin) = (half(block, 0), half(block, 2));
    for (group, values) in out.as_chunks_mut::<32>().0.iter_mut().enumerate() {
        let (scale, min) = k_scale_and_min(&block[4..16], group);
        let (scale, min) = (d * f32::from(scale), dmin * f32::from(min));
        for (l, value) in values.iter_mut().enumerate() {
            let q = block[16 + 32 * (group / 2) + l] >> (4 * (group & 1)) & 15;
            *value = scale * f32::from(q) - min;
        }
    }
}

/// d, dmin: f16; 12 bytes of packed 6-bit scales and minima; fifth bits at 16; nibbles at 48.
pub(super) fn q5_k(block: &[u8; 176], out: &mut [f32; 256]) {
    let (d, dmin) = (half(block, 0), half(block, 2));
    let (packed, high, low) = (&block[4..16], &block[16..48], &block[48..]);
    for (group, values) in out.as_chunks_mut::<32>().0.iter_mut().enumerate() {
        let (scale, min) = k_scale_and_min(packed, group);
        let (scale, min) = (d * f32::from(scale), dmin * f32::from(min));
        for (l, value) in values.iter_mut().enumerate() {
            let q = (low[32 * (group / 2) + l] >> (4 * (group & 1)) & 15) | ((high[l] >> group & 1) << 4);
            *value = scale * f32::from(q) - min;
        }
    }
}

/// Low nibbles x 128 bytes, high bit pairs at 128, i8 scales x 16 at 192, d: f16 at 208.
pub(super) fn q6_k(block: &[u8; 210], out: &mut [f32; 256]) {
    let (low, high, scales, d) = (&block[..128], &block[128..192], &block[192..208], half(block, 208));
    for (group, values) in out.as_chunks_mut::<32>().0.iter_mut().enumerate() {
        let (n, j) = (group / 4, group % 4);
        for (l, value) in values.iter_mut().enumerate() {
            let lo = low[64 * n + 32 * (j & 1) + l] >> (4 * (j / 2)) & 15;
            let hi = high[32 * n + l] >> (2 * j) & 3;
            let scale = d * f32::from(scales[2 * group + l / 16] as i8);
            *value = scale * (f32::from(lo | hi << 4) - 32.0);
        }
    }
}

/// d: f16; 6-bit scales, high pairs at 2 and low nibbles at 4; nibbles at 8 that index the level table.
pub(super) fn iq4_xs(block: &[u8; 136], out: &mut [f32; 256]) {
    let d = half(block, 0);
    for (group, values) in out.as_chunks_mut::<32>().0.iter_mut().enumerate() {
        let scale = d * f32::from(iq4_xs_scale(block, group));
        let codes = &block[8 + 16 * group..][..16];
        nibbles(codes, values, |code| scale * f32::from(IQ4_NL_VALUES[usize::from(code)]));
    }
}

/// d: f16; 32 index bytes at 2; per group of 32 a u16 at 34: four times three high index bits, a 3-bit scale, and the
/// sign of the offset.
pub(super) fn iq1_s(block: &[u8; 50], out: &mut [f32; 256]) {
    let d = half(block, 0);
    for (row, values) in out.as_chunks_mut::<8>().0.iter_mut().enumerate() {
        let word = u16::from_le_bytes([block[34 + row / 4 * 2], block[35 + row / 4 * 2]]);
        let scale = d * (2.0 * f32::from(word >> 12 & 7) + 1.0);
        let index = usize::from(block[2 + row]) | usize::from(word >> (3 * (row % 4)) & 7) << 8;
        ternary(scale, index, word >> 15 != 0, values);
    }
}

/// 32 index bytes; nibbles at 32 of three high index bits and the sign of the offset; four u16 at 48: four 3-bit scales
/// of 16, and on top a nibble of the f16 d.
pub(super) fn iq1_m(block: &[u8; 56], out: &mut [f32; 256]) {
    let words = &block[48..];
    let d = half::f16::from_bits(iq1_m_scale(words)).to_f32();
    for (row, values) in out.as_chunks_mut::<8>().0.iter_mut().enumerate() {
        let scale = d * (2.0 * f32::from(iq1_m_step(words, row / 2)) + 1.0);
        let high = block[32 + row / 2] >> (4 * (row % 2)) & 15;
        ternary(scale, usize::from(block[row]) | usize::from(high & 7) << 8, high & 8 != 0, values);
    }
}

fn ternary(scale: f32, index: usize, below: bool, out: &mut [f32; 8]) {
    let offset = if below { -0.125 } else { 0.125 };
    for (value, code) in out.iter_mut().zip(IQ1_GRID[index].to_le_bytes()) {
        *value = scale * (f32::from(code as i8) + offset);
    }
}

/// d: f16; per group of 32 at 2: four index bytes, then a word of four 7-bit sign fields and a 4-bit scale.
pub(super) fn iq2_xxs(block: &[u8; 66], out: &mut [f32; 256]) {
    let d = half(block, 0);
    let words = block[2..].as_chunks::<4>().0;
    for (row, values) in out.as_chunks_mut::<8>().0.iter_mut().enumerate() {
        let (group, t) = (row / 4, row % 4);
        let word = u32::from_le_bytes(words[2 * group + 1]);
        let scale = d * (0.5 + (word >> 28) as f32) * 0.25;
        signed_row(scale, IQ2_XXS_GRID[usize::from(words[2 * group][t])], even_signs(word >> (7 * t)), values);
    }
}

/// d: f16; u16 x 32 at 2: 9 index bits, 7 sign bits; scale nibbles of 16 at 66.
pub(super) fn iq2_xs(block: &[u8; 74], out: &mut [f32; 256]) {
    let d = half(block, 0);
    for (row, values) in out.as_chunks_mut::<8>().0.iter_mut().enumerate() {
        let q = u16::from_le_bytes([block[2 + 2 * row], block[3 + 2 * row]]);
        let scale = d * (0.5 + f32::from(block[66 + row / 4] >> (4 * (row / 2 % 2)) & 15)) * 0.25;
        signed_row(scale, IQ2_XS_GRID[usize::from(q & 511)], even_signs(u32::from(q >> 9)), values);
    }
}

/// d: f16; 32 index bytes at 2; 32 sign bytes at 34; high index bits at 66; scale nibbles at 74.
pub(super) fn iq2_s(block: &[u8; 82], out: &mut [f32; 256]) {
    let d = half(block, 0);
    for (row, values) in out.as_chunks_mut::<8>().0.iter_mut().enumerate() {
        let (group, t) = (row / 4, row % 4);
        let index = usize::from(block[2 + row]) | usize::from(block[66 + group] >> (2 * t) & 3) << 8;
        let scale = d * (0.5 + f32::from(block[74 + group] >> (4 * (t / 2)) & 15)) * 0.25;
        signed_row(scale, IQ2_S_GRID[index], block[34 + row], values);
    }
}

/// d: f16; 64 index bytes at 2; per group of 32 a word at 66: four 7-bit sign fields, then a 4-bit scale.
pub(super) fn iq3_xxs(block: &[u8; 98], out: &mut [f32; 256]) {
    let d = half(block, 0);
    let words = block[66..].as_chunks::<4>().0;
    for (row, values) in out.as_chunks_mut::<8>().0.iter_mut().enumerate() {
        let word = u32::from_le_bytes(words[row / 4]);
        let scale = d * (0.5 + (word >> 28) as f32) * 0.5;
        let signs = even_signs(word >> (7 * (row % 4)));
        let code = |at: usize| u64::from(IQ3_XXS_GRID[usize::from(block[at])]);
        signed_row(scale, code(2 + 2 * row) | code(3 + 2 * row) << 32, signs, values);
    }
}

/// d: f16; 64 index bytes at 2; ninth index bits at 66; 32 sign bytes at 74; scale nibbles at 106.
pub(super) fn iq3_s(block: &[u8; 110], out: &mut [f32; 256]) {
    let d = half(block, 0);
    for (row, values) in out.as_chunks_mut::<8>().0.iter_mut().enumerate() {
        let (group, t) = (row / 4, row % 4);
        let nibble = block[106 + group / 2] >> (4 * (group & 1)) & 15;
        let scale = d * (1.0 + 2.0 * f32::from(nibble));
        let code = |u: usize| {
            let ninth = usize::from(block[66 + group] >> u & 1) << 8;
            u64::from(IQ3_S_GRID[usize::from(block[2 + 8 * group + u]) | ninth])
        };
        signed_row(scale, code(2 * t) | code(2 * t + 1) << 32, block[74 + row], values);
    }
}

fn signed_row(scale: f32, codes: u64, signs: u8, out: &mut [f32; 8]) {
    for (e, (value, code)) in out.iter_mut().zip(codes.to_le_bytes()).enumerate() {
        *value = scale * f32::from(code) * sign(signs, e);
    }
}
