//! Matrix times vector (N4), straight from the blocks of the file.

use super::scalar::recip;
use crate::gguf::GgufFile;
use crate::model::TensorRef;
use crate::quant::{Format, IQ2_S_GRID, IQ3_S_GRID, IQ3_XXS_GRID, IQ4_NL_VALUES};

/// Elements that share an activation scale.
pub const BLOCK: usize = 32;

/// A matrix in the layout of the file: rows one after another.
#[derive(Clone, Copy, Debug)]
pub struct Matrix<'a> {
    pub format: Format,
    pub rows: usize,
    /// A multiple of 32, and of the format's block.
    pub cols: usize,
    pub data: &'a [u8],
}

impl<'a> Matrix<'a> {
    /// A tensor without experts.
    pub fn new(file: &'a GgufFile, tensor: &TensorRef) -> Matrix<'a> {
        Matrix { format: tensor.format, rows: tensor.rows, cols: tensor.cols, data: tensor.data(file) }
    }

    /// The matrix of each expert.
    pub fn experts(file: &'a GgufFile, tensor: &TensorRef) -> Vec<Matrix<'a>> {
        let matrix = Matrix::new(file, tensor);
        matrix.data.chunks_exact(tensor.matrix_bytes()).map(|data| Matrix { data, ..matrix }).collect()
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
        (x.map(|x| (x * inverse).round_ties_even() as i8), d)
    }
}

/// `W x`, quantising x first where the format asks for it.
pub fn matvec(w: &Matrix<'_>, x: &[f32]) -> Vec<f32> {
    if w.format.is_quantised() { quantised(w, &quantise(x)) } else { float(w, x) }
}

/// Start of each segment of a row of `blocks` blocks, which is [start, the next start).
#[inline(always)]
fn segment_blocks(blocks: usize) -> usize {
    8 * blocks.div_ceil(64)
}

with_fma! {
    fn float(w: &Matrix<'_>, x: &[f32]) -> Vec<f32> {
        #[inline(always)]
        fn rows(w: &Matrix<'_>, x: &[f32], size: usize, widen: impl Fn(&[u8]) -> f32) -> Vec<f32> {
            let segment = segment_blocks(w.cols / BLOCK) * BLOCK;
            let row = |row: &[u8]| {
                sum_segments(row.chunks(segment * size).zip(x.chunks(segment)).map(|(w, x)| {
                    w.chunks_exact(size).zip(x).fold(0f32, |acc, (w, x)| widen(w).mul_add(*x, acc))
                }))
            };
            w.data.chunks_exact(w.row_bytes()).map(row).collect()
        }
        match w.format {
            Format::BF16 => rows(w, x, 2, |w| f32::from_bits(u32::from(u16::from_le_bytes([w[0], w[1]])) << 16)),
            Format::F16 => rows(w, x, 2, f16),
            _ => rows(w, x, 4, |w| f32::from_le_bytes([w[0], w[1], w[2], w[3]])),
        }
    }
}

/// `y = seg_0; y = y + seg_s` ascending.
#[inline(always)]
fn sum_segments(segments: impl Iterator<Item = f32>) -> f32 {
    segments.reduce(|y, segment| y + segment).unwrap_or(0.0)
}

/// What a block of 32 weights adds: `i * dw` and `j * mw`, both still to be multiplied by the activation's scale.
struct Term {
    i: i32,
    dw: f32,
    j: i32,
    mw: f32,
}

with_fma! {
    /// `W x` for a quantised format.
    pub fn quantised(w: &Matrix<'_>, x: &Quantised) -> Vec<f32> {
        #[inline(always)]
        fn rows(w: &Matrix<'_>, x: &Quantised, term: impl Fn(&[u8], usize, &[i8; BLOCK]) -> Term, minimum: bool) -> Vec<f32> {
            let (blocks, super_block) = (w.cols / BLOCK, w.format.block_elements() / BLOCK);
            let segment = segment_blocks(blocks);
            let row = |row: &[u8]| {
                sum_segments((0..blocks).step_by(segment).map(|start| {
                    let mut acc = 0f32;
                    for b in start..blocks.min(start + segment) {
                        let bytes = &row[b / super_block * w.format.block_bytes()..][..w.format.block_bytes()];
                        let t = term(bytes, b % super_block, &x.q[b]);
                        acc = (t.i as f32).mul_add(t.dw * x.d[b], acc);
                        if minimum {
                            acc = (t.j as f32).mul_add(t.mw * x.d[b], acc);
                        }
                    }
                    acc
                }))
            };
            w.data.chunks_exact(w.row_bytes()).map(row).collect()
        }
        match w.format {
            Format::Q8_0 => rows(w, x, q8_0, false),
            Format::Q4_0 => rows(w, x, q4_0, false),
            Format::IQ4_NL => rows(w, x, iq4_nl, false),
            Format::Q6_K => rows(w, x, q6_k, false),
            Format::Q5_K => rows(w, x, q5_k, true),
            Format::IQ2_S => rows(w, x, iq2_s, false),
            Format::IQ3_S => rows(w, x, iq3_s, false),
            Format::IQ3_XXS => rows(w, x, iq3_xxs, false),
            Format::F32 | Format::F16 | Format::BF16 => Vec::new(),
        }
    }
}

#[inline(always)]
fn f16(bytes: &[u8]) -> f32 {
    half::f16::from_le_bytes([bytes[0], bytes[1]]).to_f32_const()
}

#[inline(always)]
fn dot(w: &[i32], q: &[i8]) -> i32 {
    w.iter().zip(q).map(|(w, q)| w * i32::from(*q)).sum()
}

/// Nibble i of 16 bytes: all low ones, then all high ones.
#[inline(always)]
fn nibble(bytes: &[u8], i: usize) -> usize {
    usize::from(if i < 16 { bytes[i] & 15 } else { bytes[i - 16] >> 4 })
}

#[inline(always)]
fn plain(i: i32, dw: f32) -> Term {
    Term { i, dw, j: 0, mw: 0.0 }
}

#[inline(always)]
fn q8_0(block: &[u8], _: usize, q: &[i8; BLOCK]) -> Term {
    let w: [i32; BLOCK] = std::array::from_fn(|i| i32::from(block[2 + i] as i8));
    plain(dot(&w, q), f16(block))
}

#[inline(always)]
fn q4_0(block: &[u8], _: usize, q: &[i8; BLOCK]) -> Term {
    let w: [i32; BLOCK] = std::array::from_fn(|i| nibble(&block[2..18], i) as i32 - 8);
    plain(dot(&w, q), f16(block))
}

#[inline(always)]
fn iq4_nl(block: &[u8], _: usize, q: &[i8; BLOCK]) -> Term {
    let w: [i32; BLOCK] = std::array::from_fn(|i| i32::from(IQ4_NL_VALUES[nibble(&block[2..18], i)]));
    plain(dot(&w, q), f16(block))
}

/// Low bits [2][64] of two sub-blocks each, high bits [2][32] of four each, i8 scales [16], d.
#[inline(always)]
fn q6_k(block: &[u8], g: usize, q: &[i8; BLOCK]) -> Term {
    let (half, j) = (g / 4, g % 4);
    let (low, high) = (&block[64 * half + 32 * (j & 1)..][..32], &block[128 + 32 * half..][..32]);
    let w: [i32; BLOCK] = std::array::from_fn(|l| {
        let low = if j < 2 { low[l] & 15 } else { low[l] >> 4 };
        let high = (high[l] >> (2 * j)) & 3;
        i32::from(low | high << 4) - 32
    });
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
    let w: [i32; BLOCK] = std::array::from_fn(|l| {
        let low = if g.is_multiple_of(2) { low[l] & 15 } else { low[l] >> 4 };
        i32::from(low | (fifth[l] >> g & 1) << 4)
    });
    let total: i32 = q.iter().map(|q| i32::from(*q)).sum();
    Term { i: i32::from(scale) * dot(&w, q), dw: f16(block), j: i32::from(minimum) * total, mw: -f16(&block[2..]) }
}

/// Eight codebook values, negated where the mask has a bit.
#[inline(always)]
fn signed(values: u64, mask: u8) -> [i32; 8] {
    std::array::from_fn(|e| {
        let value = i32::from((values >> (8 * e)) as u8);
        if mask >> e & 1 == 1 { -value } else { value }
    })
}

#[inline(always)]
fn pair(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

/// d, indices [32], sign masks [32], two more index bits each [8], pairs of scales [8].
#[inline(always)]
fn iq2_s(block: &[u8], g: usize, q: &[i8; BLOCK]) -> Term {
    let half = |h: usize| -> i32 {
        (2 * h..2 * h + 2)
            .map(|t| {
                let high = usize::from(block[66 + g] >> (2 * t) & 3);
                let values = IQ2_S_GRID[usize::from(block[2 + 4 * g + t]) | high << 8];
                dot(&signed(values, block[34 + 4 * g + t]), &q[8 * t..8 * t + 8])
            })
            .sum()
    };
    let scales = block[74 + g];
    let (low, high) = (i32::from(scales & 15), i32::from(scales >> 4));
    plain((2 * low + 1) * half(0) + (2 * high + 1) * half(1), f16(block) * 0.125)
}

/// d, indices [64], ninth index bits [8], sign masks [32], scales [4] of two sub-blocks each.
#[inline(always)]
fn iq3_s(block: &[u8], g: usize, q: &[i8; BLOCK]) -> Term {
    let value = |u: usize| {
        let high = usize::from(block[66 + g] >> u & 1);
        IQ3_S_GRID[usize::from(block[2 + 8 * g + u]) | high << 8]
    };
    let sum: i32 = (0..4)
        .map(|t| {
            let w = signed(pair(value(2 * t), value(2 * t + 1)), block[74 + 4 * g + t]);
            dot(&w, &q[8 * t..8 * t + 8])
        })
        .sum();
    let scale = i32::from(block[106 + g / 2] >> (4 * (g % 2)) & 15);
    plain((2 * scale + 1) * sum, f16(block))
}

/// d, indices [64], words [8]: four sign masks of 7 bits, the eighth makes the count even, and the scale on top.
#[inline(always)]
fn iq3_xxs(block: &[u8], g: usize, q: &[i8; BLOCK]) -> Term {
    let at = 66 + 4 * g;
    let word = u32::from_le_bytes([block[at], block[at + 1], block[at + 2], block[at + 3]]);
    let value = |u: usize| IQ3_XXS_GRID[usize::from(block[2 + 8 * g + u])];
    let sum: i32 = (0..4)
        .map(|t| {
            let seven = (word >> (7 * t) & 127) as u8;
            let mask = seven | (seven.count_ones() as u8 & 1) << 7;
            dot(&signed(pair(value(2 * t), value(2 * t + 1)), mask), &q[8 * t..8 * t + 8])
        })
        .sum();
    plain((2 * (word >> 28) as i32 + 1) * sum, f16(block) * 0.25)
}
