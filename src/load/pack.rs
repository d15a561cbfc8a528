//! Repacking of a matrix from GGUF blocks into the tiles that the kernels read.
//!
//! A tile is 16 rows, so that each of 16 lanes owns one. It is a run of units of 32 or 256 columns. A unit holds, for each of its 32-bit words, the
//! 16 rows' words side by side, then the 16 rows' f16 scales. `docs/formats.md` says what each word of a format holds; `sycl-kernels/common/formats.hpp` reads it.
//! Rows that a last tile lacks are zero.

use crate::quant::{Format, IQ2_S_GRID, IQ3_S_GRID, IQ3_XXS_GRID, IQ4_NL_VALUES};

/// Rows of a tile.
pub const TILE_ROWS: usize = 16;

/// How a format's units look on the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Columns of a unit.
    pub columns: usize,
    /// 32-bit words of a row in a unit.
    pub words: usize,
    /// f16 scales of a row in a unit.
    pub scales: usize,
}

impl Layout {
    /// The layout of a format.
    pub const fn of(format: Format) -> Layout {
        let (columns, words, scales) = match format {
            Format::F32 => (32, 32, 0),
            Format::F16 | Format::BF16 => (32, 16, 0),
            Format::Q8_0 => (32, 8, 1),
            Format::Q4_0 | Format::IQ4_NL => (32, 4, 1),
            Format::Q6_K => (256, 52, 1),
            Format::Q5_K => (256, 44, 2),
            Format::IQ2_S => (256, 20, 1),
            Format::IQ3_S => (256, 27, 1),
            Format::IQ3_XXS => (256, 24, 1),
        };
        Layout { columns, words, scales }
    }

    /// Bytes of a unit of a tile.
    pub const fn unit_bytes(&self) -> usize {
        TILE_ROWS * (4 * self.words + 2 * self.scales)
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
            let (word_plane, scale_plane) = packed.split_at_mut(TILE_ROWS * 4 * layout.words);
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
                    let at = (i * TILE_ROWS + lane) * 2;
                    scale_plane[at..at + 2].copy_from_slice(&scale.to_le_bytes());
                }
            }
        }
    }
}

/// The table that a format's kernel looks values up in, as little-endian words.
pub fn codebook(format: Format) -> Option<Vec<u32>> {
    match format {
        // Entry b holds the values of b's low nibble (bits 0 to 7) and of its high nibble (bits 16 to 23).
        Format::IQ4_NL => {
            let value = |nibble: u32| u32::from(IQ4_NL_VALUES[nibble as usize] as u8);
            Some((0..256).map(|byte| value(byte & 15) | value(byte >> 4) << 16).collect())
        }
        Format::IQ2_S => Some(IQ2_S_GRID.iter().flat_map(|row| [*row as u32, (*row >> 32) as u32]).collect()),
        Format::IQ3_S => Some(IQ3_S_GRID.to_vec()),
        Format::IQ3_XXS => Some(IQ3_XXS_GRID.to_vec()),
        _ => None,
    }
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
        Format::Q6_K => unpack_q6_k(block, words, scales),
        Format::Q5_K => unpack_q5_k(block, words, scales),
        Format::IQ2_S => {
            scales[0] = u16_at(block, 0);
            copy_words(&block[2..82], &mut words[..20]);
        }
        Format::IQ3_S => {
            scales[0] = u16_at(block, 0);
            copy_words(&block[2..66], &mut words[..16]);
            copy_words(&block[74..106], &mut words[16..24]);
            copy_words(&block[66..74], &mut words[24..26]);
            copy_words(&block[106..110], &mut words[26..27]);
        }
        Format::IQ3_XXS => {
            scales[0] = u16_at(block, 0);
            copy_words(&block[2..98], &mut words[..24]);
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
            words[4 * g + i] = nibble_word(&values, i);
        }
        for h in 0..2 {
            words[32 + 2 * g + h] = (0..2).fold(0, |word, k| {
                let i = 2 * h + k;
                (0..4).fold(word, |word, b| {
                    let (low, high) = (u32::from(values[4 * i + b] >> 4), u32::from(values[16 + 4 * i + b] >> 4));
                    word | (low << (4 * k) | high << (4 * k + 2)) << (8 * b)
                })
            });
        }
    }
    copy_words(&block[192..208], &mut words[48..52]);
    scales[0] = u16_at(block, 208);
}

fn unpack_q5_k(block: &[u8], words: &mut [u32; 64], scales: &mut [u16; 2]) {
    scales[0] = u16_at(block, 0);
    scales[1] = u16_at(block, 2);
    let (sc, qh, qs) = (&block[4..16], &block[16..48], &block[48..176]);
    let mut bytes = [0u8; 16];
    for g in 0..8 {
        let (scale, minimum) = if g < 4 {
            (sc[g] & 63, sc[g + 4] & 63)
        } else {
            ((sc[g + 4] & 15) | (sc[g - 4] >> 6) << 4, (sc[g + 4] >> 4) | (sc[g] >> 6) << 4)
        };
        bytes[g] = scale;
        bytes[8 + g] = minimum;
        let mut values = [0u8; 32];
        for (l, value) in values.iter_mut().enumerate() {
            let byte = qs[32 * (g / 2) + l];
            let low = if g % 2 == 0 { byte & 15 } else { byte >> 4 };
            *value = low | ((qh[l] >> g) & 1) << 4;
        }
        let mut fifth = 0u32;
        for i in 0..4 {
            words[4 * g + i] = nibble_word(&values, i);
            for b in 0..4 {
                let (low, high) = (u32::from(values[4 * i + b] >> 4), u32::from(values[16 + 4 * i + b] >> 4));
                fifth |= (low << (2 * i) | high << (2 * i + 1)) << (8 * b);
            }
        }
        words[32 + g] = fifth;
    }
    copy_words(&bytes, &mut words[40..44]);
}
