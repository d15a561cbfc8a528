//! One function per format: the values of a single block.
//!
//! Scales are multiplied in a fixed order, `d * scale * q` from the left, because another order rounds differently.

use super::codebooks::{IQ2_S_GRID, IQ3_S_GRID, IQ3_XXS_GRID, IQ4_NL_VALUES};

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

/// Seven stored sign bits; the eighth makes the number of set bits even.
fn even_signs(bits: u32) -> u8 {
    let low = (bits & 0x7f) as u8;
    low | ((low.count_ones() as u8 & 1) << 7)
}

/// The 4-bit codes of a 32-element block: low nibbles are the first half, high nibbles the second.
fn nibbles(block: &[u8; 18], out: &mut [f32; 32], value: impl Fn(u8) -> f32) {
    let (first, second) = out.split_at_mut(16);
    for ((packed, low), high) in block[2..].iter().zip(first).zip(second) {
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
    nibbles(block, out, |code| d * (f32::from(code) - 8.0));
}

/// d: f16, nibbles x 32 that index the level table.
pub(super) fn iq4_nl(block: &[u8; 18], out: &mut [f32; 32]) {
    let d = half(block, 0);
    nibbles(block, out, |code| d * f32::from(IQ4_NL_VALUES[usize::from(code)]));
}

/// d, dmin: f16; 12 bytes of packed 6-bit scales and minima; fifth bits at 16; nibbles at 48.
pub(super) fn q5_k(block: &[u8; 176], out: &mut [f32; 256]) {
    let (d, dmin) = (half(block, 0), half(block, 2));
    let (packed, high, low) = (&block[4..16], &block[16..48], &block[48..]);
    for (group, values) in out.as_chunks_mut::<32>().0.iter_mut().enumerate() {
        let (scale, min) = if group < 4 {
            (packed[group] & 63, packed[group + 4] & 63)
        } else {
            let both = packed[group + 4];
            ((both & 15) | (packed[group - 4] >> 6 << 4), (both >> 4) | (packed[group] >> 6 << 4))
        };
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

/// d: f16; 32 index bytes at 2; 32 sign bytes at 34; high index bits at 66; scale nibbles at 74.
pub(super) fn iq2_s(block: &[u8; 82], out: &mut [f32; 256]) {
    let d = half(block, 0);
    for (row, values) in out.as_chunks_mut::<8>().0.iter_mut().enumerate() {
        let (group, t) = (row / 4, row % 4);
        let index = usize::from(block[2 + row]) | usize::from(block[66 + group] >> (2 * t) & 3) << 8;
        let scale = d * (0.5 + f32::from(block[74 + group] >> (4 * (t / 2)) & 15)) * 0.25;
        let (codes, signs) = (IQ2_S_GRID[index].to_le_bytes(), block[34 + row]);
        for (e, value) in values.iter_mut().enumerate() {
            *value = scale * f32::from(codes[e]) * sign(signs, e);
        }
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
        let codes = [IQ3_XXS_GRID[usize::from(block[2 + 2 * row])], IQ3_XXS_GRID[usize::from(block[3 + 2 * row])]];
        signed_codes(scale, codes, signs, values);
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
            IQ3_S_GRID[usize::from(block[2 + 8 * group + u]) | ninth]
        };
        signed_codes(scale, [code(2 * t), code(2 * t + 1)], block[74 + row], values);
    }
}

fn signed_codes(scale: f32, codes: [u32; 2], signs: u8, out: &mut [f32; 8]) {
    for (e, value) in out.iter_mut().enumerate() {
        *value = scale * f32::from(codes[e / 4].to_le_bytes()[e % 4]) * sign(signs, e);
    }
}
