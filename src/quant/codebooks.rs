//! Lookup tables of the codebook formats.
//!
//! `codebooks.bin` holds published constants of the formats, taken as data from the grids of the `gguf` Python package:
//! 1024 x 8 bytes for IQ2_S, then 256 x 4 for IQ3_XXS, then 512 x 4 for IQ3_S, first element first.

const BYTES: &[u8; 11264] = include_bytes!("codebooks.bin");
const IQ3_XXS_AT: usize = 1024 * 8;
const IQ3_S_AT: usize = IQ3_XXS_AT + 256 * 4;

/// IQ2_S rows of 8 unsigned elements; element 0 is the least significant byte.
pub static IQ2_S_GRID: [u64; 1024] = {
    let mut grid = [0; 1024];
    let mut row = 0;
    while row < grid.len() {
        grid[row] = element_word(row * 8, 8);
        row += 1;
    }
    grid
};

/// IQ3_XXS rows of 4 unsigned elements; element 0 is the least significant byte.
pub static IQ3_XXS_GRID: [u32; 256] = grid_of_4(IQ3_XXS_AT);

/// IQ3_S rows of 4 unsigned elements; element 0 is the least significant byte.
pub static IQ3_S_GRID: [u32; 512] = grid_of_4(IQ3_S_AT);

/// The sixteen levels of IQ4_NL.
pub const IQ4_NL_VALUES: [i8; 16] = [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113];

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
