//! Lookup tables of the codebook formats.
//!
//! `codebooks.bin` holds published constants of the formats, taken as data from the grids of the `gguf` Python package:
//! 1024 x 8 bytes for IQ2_S, then 256 x 4 for IQ3_XXS, 512 x 4 for IQ3_S, 256 x 8 for IQ2_XXS, 512 x 8 for IQ2_XS and
//! 2048 x 8 for IQ1_S and IQ1_M, first element first.

const BYTES: &[u8; 33792] = include_bytes!("codebooks.bin");
const IQ3_XXS_AT: usize = 1024 * 8;
const IQ3_S_AT: usize = IQ3_XXS_AT + 256 * 4;
const IQ2_XXS_AT: usize = IQ3_S_AT + 512 * 4;
const IQ2_XS_AT: usize = IQ2_XXS_AT + 256 * 8;
const IQ1_AT: usize = IQ2_XS_AT + 512 * 8;

/// IQ2_S rows of 8 unsigned elements; element 0 is the least significant byte.
pub static IQ2_S_GRID: [u64; 1024] = grid_of_8(0);

/// IQ2_XXS rows of 8 unsigned elements; element 0 is the least significant byte.
pub static IQ2_XXS_GRID: [u64; 256] = grid_of_8(IQ2_XXS_AT);

/// IQ2_XS rows of 8 unsigned elements; element 0 is the least significant byte.
pub static IQ2_XS_GRID: [u64; 512] = grid_of_8(IQ2_XS_AT);

/// IQ1_S and IQ1_M rows of 8 signed elements, each -1, 0 or 1; element 0 is the least significant byte.
pub static IQ1_GRID: [u64; 2048] = grid_of_8(IQ1_AT);

/// IQ3_XXS rows of 4 unsigned elements; element 0 is the least significant byte.
pub static IQ3_XXS_GRID: [u32; 256] = grid_of_4(IQ3_XXS_AT);

/// IQ3_S rows of 4 unsigned elements; element 0 is the least significant byte.
pub static IQ3_S_GRID: [u32; 512] = grid_of_4(IQ3_S_AT);

/// The sixteen levels of IQ4_NL and IQ4_XS.
pub const IQ4_NL_VALUES: [i8; 16] = [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113];

/// The sixteen levels of MXFP4 and NVFP4: a sign, two bits of exponent and one of mantissa, doubled.
pub const FP4_VALUES: [i8; 16] = [0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12];

const fn grid_of_8<const ROWS: usize>(at: usize) -> [u64; ROWS] {
    let mut grid = [0; ROWS];
    let mut row = 0;
    while row < ROWS {
        grid[row] = element_word(at + row * 8, 8);
        row += 1;
    }
    grid
}

const fn grid_of_4<const ROWS: usize>(at: usize) -> [u32; ROWS] {
    let mut grid = [0; ROWS];
    let mut row = 0;
    while row < ROWS {
        grid[row] = element_word(at + row * 4, 4) as u32;
        row += 1;
    }
    grid
}

const fn element_word(at: usize, bytes: usize) -> u64 {
    let mut word = 0;
    let mut i = 0;
    while i < bytes {
        word |= (BYTES[at + i] as u64) << (8 * i);
        i += 1;
    }
    word
}
