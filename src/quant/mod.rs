//! Weight formats: their sizes, and exact decoding of their blocks to `f32`.
//!
//! [`Format`] lists what the engine computes with. [`ggml_type_layout`] knows the sizes of every type a GGUF file may
//! hold, so that a file can be checked from end to end even where it carries tensors that are never used.

mod blocks;
mod codebooks;
mod scales;
mod types;

pub use codebooks::{
    FP4_VALUES, IQ1_GRID, IQ2_S_GRID, IQ2_XS_GRID, IQ2_XXS_GRID, IQ3_S_GRID, IQ3_XXS_GRID, IQ4_NL_VALUES,
};
pub(crate) use scales::{
    even_signs, iq1_m_scale, iq1_m_step, iq4_xs_scale, k_scale_and_min, mxfp4_scale, nvfp4_scale, q3_k_scale,
};
pub(crate) use types::withdrawn_type_name;
pub use types::{ggml_type_layout, ggml_type_name};

/// A weight format that the engine can decode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(non_camel_case_types, reason = "these are the names that model files and their users know")]
pub enum Format {
    F32,
    F16,
    BF16,
    Q8_0,
    Q4_0,
    Q4_1,
    Q5_0,
    Q5_1,
    Q2_K,
    Q3_K,
    Q4_K,
    Q5_K,
    Q6_K,
    IQ4_NL,
    IQ4_XS,
    IQ1_S,
    IQ1_M,
    IQ2_XXS,
    IQ2_XS,
    IQ2_S,
    IQ3_S,
    IQ3_XXS,
    MXFP4,
    NVFP4,
}

/// A row that cannot be decoded: its length does not fit the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum QuantError {
    #[error("{} row: expected a multiple of {block} elements, found {elements}", .format.name())]
    PartialBlock { format: Format, block: usize, elements: usize },
    #[error("{} row of {elements} elements: expected {expected} bytes, found {found}", .format.name())]
    Length { format: Format, elements: usize, expected: u64, found: usize },
}

impl Format {
    /// Every format, in the order of the ggml type ids.
    pub const ALL: [Format; 24] = [
        Format::F32,
        Format::F16,
        Format::Q4_0,
        Format::Q4_1,
        Format::Q5_0,
        Format::Q5_1,
        Format::Q8_0,
        Format::Q2_K,
        Format::Q3_K,
        Format::Q4_K,
        Format::Q5_K,
        Format::Q6_K,
        Format::IQ2_XXS,
        Format::IQ2_XS,
        Format::IQ3_XXS,
        Format::IQ1_S,
        Format::IQ4_NL,
        Format::IQ3_S,
        Format::IQ2_S,
        Format::IQ4_XS,
        Format::IQ1_M,
        Format::BF16,
        Format::MXFP4,
        Format::NVFP4,
    ];

    /// The format with this ggml type id, or `None` if the engine does not compute with it.
    pub fn from_ggml_id(id: u32) -> Option<Format> {
        Format::ALL.into_iter().find(|format| format.ggml_id() == id)
    }

    /// The type id that a GGUF tensor directory uses.
    pub const fn ggml_id(self) -> u32 {
        match self {
            Format::F32 => 0,
            Format::F16 => 1,
            Format::Q4_0 => 2,
            Format::Q4_1 => 3,
            Format::Q5_0 => 6,
            Format::Q5_1 => 7,
            Format::Q8_0 => 8,
            Format::Q2_K => 10,
            Format::Q3_K => 11,
            Format::Q4_K => 12,
            Format::Q5_K => 13,
            Format::Q6_K => 14,
            Format::IQ2_XXS => 16,
            Format::IQ2_XS => 17,
            Format::IQ3_XXS => 18,
            Format::IQ1_S => 19,
            Format::IQ4_NL => 20,
            Format::IQ3_S => 21,
            Format::IQ2_S => 22,
            Format::IQ4_XS => 23,
            Format::IQ1_M => 29,
            Format::BF16 => 30,
            Format::MXFP4 => 39,
            Format::NVFP4 => 40,
        }
    }

    /// The customary name, such as `Q5_K`.
    pub const fn name(self) -> &'static str {
        match self {
            Format::F32 => "F32",
            Format::F16 => "F16",
            Format::BF16 => "BF16",
            Format::Q8_0 => "Q8_0",
            Format::Q4_0 => "Q4_0",
            Format::Q4_1 => "Q4_1",
            Format::Q5_0 => "Q5_0",
            Format::Q5_1 => "Q5_1",
            Format::Q2_K => "Q2_K",
            Format::Q3_K => "Q3_K",
            Format::Q4_K => "Q4_K",
            Format::Q5_K => "Q5_K",
            Format::Q6_K => "Q6_K",
            Format::IQ4_NL => "IQ4_NL",
            Format::IQ4_XS => "IQ4_XS",
            Format::IQ1_S => "IQ1_S",
            Format::IQ1_M => "IQ1_M",
            Format::IQ2_XXS => "IQ2_XXS",
            Format::IQ2_XS => "IQ2_XS",
            Format::IQ2_S => "IQ2_S",
            Format::IQ3_S => "IQ3_S",
            Format::IQ3_XXS => "IQ3_XXS",
            Format::MXFP4 => "MXFP4",
            Format::NVFP4 => "NVFP4",
        }
    }

    /// Elements in one block; 1 for the plain formats.
    pub const fn block_elements(self) -> usize {
        match self {
            Format::F32 | Format::F16 | Format::BF16 => 1,
            Format::Q4_0
            | Format::Q4_1
            | Format::Q5_0
            | Format::Q5_1
            | Format::Q8_0
            | Format::IQ4_NL
            | Format::MXFP4 => 32,
            Format::NVFP4 => 64,
            Format::Q2_K
            | Format::Q3_K
            | Format::Q4_K
            | Format::Q5_K
            | Format::Q6_K
            | Format::IQ2_XXS
            | Format::IQ2_XS
            | Format::IQ3_XXS
            | Format::IQ1_S
            | Format::IQ3_S
            | Format::IQ2_S
            | Format::IQ4_XS
            | Format::IQ1_M => 256,
        }
    }

    /// Bytes of one block.
    pub const fn block_bytes(self) -> usize {
        match self {
            Format::F16 | Format::BF16 => 2,
            Format::F32 => 4,
            Format::MXFP4 => 17,
            Format::Q4_0 | Format::IQ4_NL => 18,
            Format::Q4_1 => 20,
            Format::Q5_0 => 22,
            Format::Q5_1 => 24,
            Format::Q8_0 => 34,
            Format::NVFP4 => 36,
            Format::IQ1_S => 50,
            Format::IQ1_M => 56,
            Format::IQ2_XXS => 66,
            Format::IQ2_XS => 74,
            Format::IQ2_S => 82,
            Format::Q2_K => 84,
            Format::IQ3_XXS => 98,
            Format::Q3_K | Format::IQ3_S => 110,
            Format::IQ4_XS => 136,
            Format::Q4_K => 144,
            Format::Q5_K => 176,
            Format::Q6_K => 210,
        }
    }

    /// Bytes of a row of `elements`, or `None` if they are no whole number of blocks or the size overflows.
    pub const fn row_bytes(self, elements: u64) -> Option<u64> {
        let block = self.block_elements() as u64;
        if !elements.is_multiple_of(block) {
            return None;
        }
        (elements / block).checked_mul(self.block_bytes() as u64)
    }

    /// False for the plain floating-point formats.
    pub const fn is_quantised(self) -> bool {
        !matches!(self, Format::F32 | Format::F16 | Format::BF16)
    }
}

/// Decodes one row of `out.len()` elements.
///
/// The result is exact: every value is the format's formula evaluated in `f32`, products from left to right, so the
/// bits are the same on every machine.
///
/// # Errors
/// When `out.len()` is no whole number of blocks, or `bytes` is not exactly the row's size. `out` is then unchanged.
pub fn decode_row(format: Format, bytes: &[u8], out: &mut [f32]) -> Result<(), QuantError> {
    let elements = out.len();
    let Some(expected) = format.row_bytes(elements as u64) else {
        return Err(QuantError::PartialBlock { format, block: format.block_elements(), elements });
    };
    if bytes.len() as u64 != expected {
        return Err(QuantError::Length { format, elements, expected, found: bytes.len() });
    }
    match format {
        Format::F32 => blocks::rows(bytes, out, blocks::f32),
        Format::F16 => blocks::rows(bytes, out, blocks::f16),
        Format::BF16 => blocks::rows(bytes, out, blocks::bf16),
        Format::Q8_0 => blocks::rows(bytes, out, blocks::q8_0),
        Format::Q4_0 => blocks::rows(bytes, out, blocks::q4_0),
        Format::Q4_1 => blocks::rows(bytes, out, blocks::q4_1),
        Format::Q5_0 => blocks::rows(bytes, out, blocks::q5_0),
        Format::Q5_1 => blocks::rows(bytes, out, blocks::q5_1),
        Format::Q2_K => blocks::rows(bytes, out, blocks::q2_k),
        Format::Q3_K => blocks::rows(bytes, out, blocks::q3_k),
        Format::Q4_K => blocks::rows(bytes, out, blocks::q4_k),
        Format::Q5_K => blocks::rows(bytes, out, blocks::q5_k),
        Format::Q6_K => blocks::rows(bytes, out, blocks::q6_k),
        Format::IQ4_NL => blocks::rows(bytes, out, blocks::iq4_nl),
        Format::IQ4_XS => blocks::rows(bytes, out, blocks::iq4_xs),
        Format::IQ1_S => blocks::rows(bytes, out, blocks::iq1_s),
        Format::IQ1_M => blocks::rows(bytes, out, blocks::iq1_m),
        Format::IQ2_XXS => blocks::rows(bytes, out, blocks::iq2_xxs),
        Format::IQ2_XS => blocks::rows(bytes, out, blocks::iq2_xs),
        Format::IQ2_S => blocks::rows(bytes, out, blocks::iq2_s),
        Format::IQ3_S => blocks::rows(bytes, out, blocks::iq3_s),
        Format::IQ3_XXS => blocks::rows(bytes, out, blocks::iq3_xxs),
        Format::MXFP4 => blocks::rows(bytes, out, blocks::mxfp4),
        Format::NVFP4 => blocks::rows(bytes, out, blocks::nvfp4),
    }
    Ok(())
}

#[cfg(test)]
mod tests;
