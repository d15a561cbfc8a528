//! Repacking of a matrix from GGUF blocks into the tiles that the kernels read.
//!
//! A tile is 16 rows, so that each of 16 lanes owns one. It is a run of units of 32, 64 or 256 columns. A unit holds the 16
//! rows' scales, then, for each of its 32-bit words, the 16 rows' words side by side: first what its blocks of 32 columns share, then block after block, so
//! that a unit is read from its start to its end. `docs/formats.md` says what each word of a format holds; `sycl-kernels/common/formats.hpp` reads it.
//! Rows that a last tile lacks are zero.

use std::array::from_fn;

use crate::quant::{
    Format, IQ1_GRID, IQ2_S_GRID, IQ2_XS_GRID, IQ2_XXS_GRID, IQ3_S_GRID, IQ3_XXS_GRID, IQ4_NL_VALUES, iq1_m_scale,
    iq1_m_step, iq4_xs_scale, k_scale_and_min, q3_k_scale,
};

/// Rows of a tile.
pub const TILE_ROWS: usize = 16;

/// How a format's units look on the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Columns of a unit.
    pub columns: usize,
    /// 32-bit words of a row in a unit.
    pub words: usize,
    /// Scales of a row in a unit.
    pub scales: usize,
    /// Bytes of a scale: 2 for f16.
    pub scale_bytes: usize,
}

impl Layout {
    /// The layout of a format.
    pub const fn of(format: Format) -> Layout {
        let (columns, words, scales) = match format {
            Format::F32 => (32, 32, 0),
            Format::F16 | Format::BF16 => (32, 16, 0),
            Format::Q8_0 => (32, 8, 1),
            Format::Q4_0 | Format::IQ4_NL | Format::MXFP4 => (32, 4, 1),
            Format::Q4_1 => (32, 4, 2),
            Format::Q5_0 => (32, 5, 1),
            Format::Q5_1 => (32, 5, 2),
            Format::NVFP4 => (64, 9, 0),
            Format::Q2_K => (256, 20, 2),
            Format::Q3_K => (256, 28, 1),
            Format::Q4_K => (256, 36, 2),
            Format::Q5_K => (256, 44, 2),
            Format::Q6_K => (256, 52, 1),
            Format::IQ4_XS => (256, 34, 1),
            Format::IQ1_S => (256, 12, 1),
            Format::IQ1_M => (256, 14, 1),
            Format::IQ2_XXS => (256, 16, 1),
            Format::IQ2_XS => (256, 18, 1),
            Format::IQ2_S => (256, 20, 1),
            Format::IQ3_S => (256, 27, 1),
            Format::IQ3_XXS => (256, 24, 1),
        };
        // An exponent byte is a scale of its own; as f16 it would add a seventeenth to the matrix.
        let scale_bytes = if matches!(format, Format::MXFP4) { 1 } else { 2 };
        Layout { columns, words, scales, scale_bytes }
    }

    /// Bytes of a unit of a tile.
    pub const fn unit_bytes(&self) -> usize {
        TILE_ROWS * (4 * self.words + self.scale_bytes * self.scales)
    }

    /// Bytes of a matrix of `rows` by `cols`; `cols` is a multiple of `columns`.
    pub const fn matrix_bytes(&self, rows: usize, cols: usize) -> usize {
        rows.div_ceil(TILE_ROWS) * (cols / self.columns) * self.unit_bytes()
    }
}

/// Packs one matrix `[rows][cols]` from its blocks.
///
/// # Panics
/// If `source` or `target` has not the bytes of such a matrix.
pub fn pack_matrix(format: Format, rows: usize, cols: usize, source: &[u8], target: &mut [u8]) {
    let layout = Layout::of(format);
    assert_eq!(
        target.len(),
        layout.matrix_bytes(rows, cols),
        "packed bytes of a {rows} x {cols} {} matrix",
        format.name()
    );
    let units = cols / layout.columns;
    let unit_source = layout.columns / format.block_elements() * format.block_bytes();
    assert_eq!(source.len(), rows * units * unit_source, "bytes of a {rows} x {cols} {} matrix", format.name());

    let mut words = [0u32; 64];
    let mut scales = [0u16; 2];
    let tiles = target.chunks_exact_mut(units * layout.unit_bytes());
    for (tile, packed) in tiles.enumerate() {
        for (unit, packed) in packed.chunks_exact_mut(layout.unit_bytes()).enumerate() {
            let (scale_plane, word_plane) = packed.split_at_mut(TILE_ROWS * layout.scale_bytes * layout.scales);
            for lane in 0..TILE_ROWS {
                let row = tile * TILE_ROWS + lane;
                if row < rows {
                    let at = (row * units + unit) * unit_source;
                    unpack_unit(format, &source[at..at + unit_source], &mut words, &mut scales);
                } else {
                    words = [0; 64];
                    scales = [0; 2];
                }
                for (i, word) in words[..layout.words].iter().enumerate() {
                    let at = (i * TILE_ROWS + lane) * 4;
                    word_plane[at..at + 4].copy_from_slice(&word.to_le_bytes());
                }
                for (i, scale) in scales[..layout.scales].iter().enumerate() {
                    let at = (i * TILE_ROWS + lane) * layout.scale_bytes;
                    let bytes = &scale.to_le_bytes()[..layout.scale_bytes];
                    scale_plane[at..at + layout.scale_bytes].copy_from_slice(bytes);
                }
            }
        }
    }
}

/// The table that a format's kernel looks values up in, as little-endian words.
pub fn codebook(format: Format) -> Option<Vec<u32>> {
    match format {
        // Entry b holds the values of b's low nibble (bits 0 to 7) and of its high nibble (bits 16 to 23).
        Format::IQ4_NL | Format::IQ4_XS => {
            let value = |nibble: u32| u32::from(IQ4_NL_VALUES[nibble as usize] as u8);
            Some((0..256).map(|byte| value(byte & 15) | value(byte >> 4) << 16).collect())
        }
        Format::IQ2_S => Some(rows_of_8(&IQ2_S_GRID)),
        Format::IQ2_XS => Some(rows_of_8(&IQ2_XS_GRID)),
        Format::IQ2_XXS => Some(rows_of_8(&IQ2_XXS_GRID)),
        Format::IQ1_S => Some(rows_of_8(&IQ1_GRID)),
        // Each byte holds 128 + 8 v, so that the offset of an eighth is added to four values at once.
        Format::IQ1_M => {
            let eighths = |word: u32| {
                let bytes = word.to_le_bytes().map(|v| (128 + 8 * i16::from(v as i8)) as u8);
                u32::from_le_bytes(bytes)
            };
            Some(rows_of_8(&IQ1_GRID).into_iter().map(eighths).collect())
        }
        Format::IQ3_S => Some(IQ3_S_GRID.to_vec()),
        Format::IQ3_XXS => Some(IQ3_XXS_GRID.to_vec()),
        _ => None,
    }
}

fn rows_of_8(grid: &[u64]) -> Vec<u32> {
    grid.iter().flat_map(|row| [*row as u32, (*row >> 32) as u32]).collect()
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn copy_words(bytes: &[u8], words: &mut [u32]) {
    for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(4)) {
        *word = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    }
}

/// The words and scales of one row's unit.
fn unpack_unit(format: Format, block: &[u8], words: &mut [u32; 64], scales: &mut [u16; 2]) {
    match format {
        Format::F32 => copy_words(block, &mut words[..32]),
        Format::F16 | Format::BF16 => copy_words(block, &mut words[..16]),
        Format::Q8_0 => {
            scales[0] = u16_at(block, 0);
            copy_words(&block[2..], &mut words[..8]);
        }
        Format::Q4_0 | Format::IQ4_NL => {
            scales[0] = u16_at(block, 0);
            copy_words(&block[2..], &mut words[..4]);
        }
        Format::Q4_1 => {
            *scales = [u16_at(block, 0), u16_at(block, 2)];
            copy_words(&block[4..], &mut words[..4]);
        }
        Format::Q5_0 => {
            scales[0] = u16_at(block, 0);
            unpack_five_bits(&block[2..], words);
        }
        Format::Q5_1 => {
            *scales = [u16_at(block, 0), u16_at(block, 2)];
            unpack_five_bits(&block[4..], words);
        }
        Format::MXFP4 => {
            scales[0] = u16::from(block[0]);
            let values = from_fn(|e| fp4_code(block[1 + e % 16] >> (e / 16 * 4)));
            for (i, word) in words[..4].iter_mut().enumerate() {
                *word = nibble_word(&values, i);
            }
        }
        Format::NVFP4 => unpack_nvfp4(block, words),
        Format::Q2_K => unpack_q2_k(block, words, scales),
        Format::Q3_K => unpack_q3_k(block, words, scales),
        Format::Q4_K => unpack_q4_k(block, words, scales),
        Format::IQ4_XS => unpack_iq4_xs(block, words, scales),
        Format::IQ1_S => {
            scales[0] = u16_at(block, 0);
            copy_words(&block[34..50], &mut words[..4]);
            copy_words(&block[2..34], &mut words[4..12]);
        }
        Format::IQ1_M => {
            scales[0] = iq1_m_scale(&block[48..]);
            let steps: [u8; 8] =
                from_fn(|g| iq1_m_step(&block[48..], 2 * g) | iq1_m_step(&block[48..], 2 * g + 1) << 4);
            copy_words(&steps, &mut words[..2]);
            copy_words(&block[32..48], &mut words[2..6]);
            copy_words(&block[..32], &mut words[6..14]);
        }
        Format::IQ2_XXS => unpack_iq2_xxs(block, words, scales),
        Format::IQ2_XS => unpack_iq2_xs(block, words, scales),
        Format::Q6_K => unpack_q6_k(block, words, scales),
        Format::Q5_K => unpack_q5_k(block, words, scales),
        Format::IQ2_S => {
            scales[0] = u16_at(block, 0);
            copy_words(&block[66..82], &mut words[..4]);
            for g in 0..8 {
                copy_words(&block[2 + 4 * g..], &mut words[4 + 2 * g..][..1]);
                copy_words(&block[34 + 4 * g..], &mut words[5 + 2 * g..][..1]);
            }
        }
        Format::IQ3_S => {
            scales[0] = u16_at(block, 0);
            copy_words(&block[66..74], &mut words[..2]);
            copy_words(&block[106..110], &mut words[2..3]);
            for g in 0..8 {
                copy_words(&block[2 + 8 * g..], &mut words[3 + 3 * g..][..2]);
                copy_words(&block[74 + 4 * g..], &mut words[5 + 3 * g..][..1]);
            }
        }
        Format::IQ3_XXS => {
            scales[0] = u16_at(block, 0);
            for g in 0..8 {
                copy_words(&block[2 + 8 * g..], &mut words[3 * g..][..2]);
                copy_words(&block[66 + 4 * g..], &mut words[3 * g + 2..][..1]);
                words[3 * g + 2] = sign_bytes(words[3 * g + 2]);
            }
        }
    }
}

/// Low nibbles of a 32-element block: word i holds elements 4i.. in the low halves of its bytes and 16 + 4i.. in the high halves.
fn nibble_word(values: &[u8; 32], i: usize) -> u32 {
    (0..4).fold(0, |word, b| {
        let (low, high) = (u32::from(values[4 * i + b] & 15), u32::from(values[16 + 4 * i + b] & 15));
        word | (low | high << 4) << (8 * b)
    })
}

/// The fifth bits of a block's nibble words: bits 2i and 2i + 1 of each byte for the low and high halves of word i.
fn fifth_word(values: &[u8; 32]) -> u32 {
    (0..32).fold(0, |word, e| {
        let (high, i, b) = (e / 16, e % 16 / 4, e % 4);
        word | u32::from(values[e] >> 4 & 1) << (8 * b + 2 * i + high)
    })
}

/// Bit pairs of a block: field f of byte b of word h is that of element 16h + 4f + b.
fn pair_word(values: &[u8; 32], h: usize) -> u32 {
    (0..16).fold(0, |word, e| word | u32::from(values[16 * h + e] & 3) << (8 * (e % 4) + 2 * (e / 4)))
}

/// Minus zero becomes zero, which spares the kernel a case.
fn fp4_code(byte: u8) -> u8 {
    if byte & 15 == 8 { 0 } else { byte & 15 }
}

/// Fifth bits [4], nibbles [16].
fn unpack_five_bits(block: &[u8], words: &mut [u32; 64]) {
    let values: [u8; 32] = from_fn(|e| block[e / 8] >> (e % 8) << 4 & 16);
    copy_words(&block[4..20], &mut words[..4]);
    words[4] = fifth_word(&values);
}

fn unpack_nvfp4(block: &[u8], words: &mut [u32; 64]) {
    for g in 0..2 {
        let values = from_fn(|e| {
            let (h, e) = (e / 16, e % 16);
            fp4_code(block[4 + 16 * g + 8 * h + e % 8] >> (e / 8 * 4))
        });
        for i in 0..4 {
            words[1 + 4 * g + i] = nibble_word(&values, i);
        }
    }
    // 0x7f is zero; 0xff, whose top bit is unused, is the number that 0x7f would be.
    let scale: [u8; 4] = from_fn(|s| if block[s] == 0x7f { 0 } else { block[s] & 0x7f });
    copy_words(&scale, &mut words[..1]);
}

fn unpack_q2_k(block: &[u8], words: &mut [u32; 64], scales: &mut [u16; 2]) {
    *scales = [u16_at(block, 80), u16_at(block, 82)];
    for g in 0..8 {
        let values = from_fn(|l| block[16 + 32 * (g / 4) + l] >> (2 * (g % 4)));
        for h in 0..2 {
            words[4 + 2 * g + h] = pair_word(&values, h);
        }
    }
    copy_words(&block[..16], &mut words[..4]);
}

fn unpack_q3_k(block: &[u8], words: &mut [u32; 64], scales: &mut [u16; 2]) {
    scales[0] = u16_at(block, 108);
    for g in 0..8 {
        let values = from_fn(|l| block[32 + 32 * (g / 4) + l] >> (2 * (g % 4)));
        for h in 0..2 {
            words[4 + 3 * g + h] = pair_word(&values, h);
        }
        // Bit i of byte b: element 4i + b.
        words[6 + 3 * g] = (0..32).fold(0, |word, e| word | u32::from(block[e] >> g & 1) << (8 * (e % 4) + e / 4));
    }
    let bytes: [u8; 16] = from_fn(|g| q3_k_scale(&block[96..108], g) as u8);
    copy_words(&bytes, &mut words[..4]);
}

fn unpack_q4_k(block: &[u8], words: &mut [u32; 64], scales: &mut [u16; 2]) {
    *scales = [u16_at(block, 0), u16_at(block, 2)];
    for g in 0..8 {
        let values = from_fn(|l| block[16 + 32 * (g / 2) + l] >> (4 * (g % 2)));
        for i in 0..4 {
            words[4 + 4 * g + i] = nibble_word(&values, i);
        }
    }
    copy_words(&scale_and_min_bytes(&block[4..16]), &mut words[..4]);
}

/// The scales of eight blocks, then their minimums.
fn scale_and_min_bytes(packed: &[u8]) -> [u8; 16] {
    from_fn(|i| {
        let (scale, minimum) = k_scale_and_min(packed, i % 8);
        if i < 8 { scale } else { minimum }
    })
}

fn unpack_iq4_xs(block: &[u8], words: &mut [u32; 64], scales: &mut [u16; 2]) {
    scales[0] = u16_at(block, 0);
    copy_words(&block[8..136], &mut words[2..34]);
    let bytes: [u8; 8] = from_fn(|g| iq4_xs_scale(block, g) as u8);
    copy_words(&bytes, &mut words[..2]);
}

/// Four masks of seven signs and a scale of four bits: a mask a byte, with a bit of the scale above it.
fn sign_bytes(word: u32) -> u32 {
    (0..4).fold(0, |bytes, t| bytes | (word >> (7 * t) & 127 | (word >> (28 + t) & 1) << 7) << (8 * t))
}

fn unpack_iq2_xxs(block: &[u8], words: &mut [u32; 64], scales: &mut [u16; 2]) {
    scales[0] = u16_at(block, 0);
    copy_words(&block[2..66], &mut words[..16]);
    for g in 0..8 {
        words[2 * g + 1] = sign_bytes(words[2 * g + 1]);
    }
}

fn unpack_iq2_xs(block: &[u8], words: &mut [u32; 64], scales: &mut [u16; 2]) {
    scales[0] = u16_at(block, 0);
    copy_words(&block[66..74], &mut words[..2]);
    for g in 0..8 {
        let row = |t: usize| u16_at(block, 2 + 8 * g + 2 * t);
        let indices: [u8; 4] = from_fn(|t| row(t) as u8);
        let signs: [u8; 4] = from_fn(|t| (row(t) >> 9) as u8 | (row(t) >> 8 << 7) as u8);
        words[2 + 2 * g] = u32::from_le_bytes(indices);
        words[3 + 2 * g] = u32::from_le_bytes(signs);
    }
}

fn unpack_q6_k(block: &[u8], words: &mut [u32; 64], scales: &mut [u16; 2]) {
    let (ql, qh) = (&block[..128], &block[128..192]);
    for g in 0..8 {
        let (n, j) = (g / 4, g % 4);
        let mut values = [0u8; 32];
        for (l, value) in values.iter_mut().enumerate() {
            let byte = ql[64 * n + 32 * (j & 1) + l];
            let low = if j < 2 { byte & 15 } else { byte >> 4 };
            *value = low | ((qh[32 * n + l] >> (2 * j)) & 3) << 4;
        }
        for i in 0..4 {
            words[4 + 6 * g + i] = nibble_word(&values, i);
        }
        for h in 0..2 {
            words[8 + 6 * g + h] = (0..2).fold(0, |word, k| {
                let i = 2 * h + k;
                (0..4).fold(word, |word, b| {
                    let (low, high) = (u32::from(values[4 * i + b] >> 4), u32::from(values[16 + 4 * i + b] >> 4));
                    word | (low << (4 * k) | high << (4 * k + 2)) << (8 * b)
                })
            });
        }
    }
    copy_words(&block[192..208], &mut words[..4]);
    scales[0] = u16_at(block, 208);
}

fn unpack_q5_k(block: &[u8], words: &mut [u32; 64], scales: &mut [u16; 2]) {
    scales[0] = u16_at(block, 0);
    scales[1] = u16_at(block, 2);
    let (sc, qh, qs) = (&block[4..16], &block[16..48], &block[48..176]);
    for g in 0..8 {
        let mut values = [0u8; 32];
        for (l, value) in values.iter_mut().enumerate() {
            let byte = qs[32 * (g / 2) + l];
            let low = if g % 2 == 0 { byte & 15 } else { byte >> 4 };
            *value = low | ((qh[l] >> g) & 1) << 4;
        }
        for i in 0..4 {
            words[4 + 5 * g + i] = nibble_word(&values, i);
        }
        words[8 + 5 * g] = fifth_word(&values);
    }
    copy_words(&scale_and_min_bytes(sc), &mut words[..4]);
}
