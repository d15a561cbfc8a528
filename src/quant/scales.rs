//! Scales and signs that formats store in pieces.

/// Seven stored sign bits; the eighth makes the number of set bits even.
pub(crate) fn even_signs(bits: u32) -> u8 {
    let low = (bits & 0x7f) as u8;
    low | ((low.count_ones() as u8 & 1) << 7)
}

/// Q4_K and Q5_K: the 6-bit scale and minimum of the 32 elements `group`.
pub(crate) fn k_scale_and_min(packed: &[u8], group: usize) -> (u8, u8) {
    if group < 4 {
        (packed[group] & 63, packed[group + 4] & 63)
    } else {
        let both = packed[group + 4];
        ((both & 15) | (packed[group - 4] >> 6 << 4), (both >> 4) | (packed[group] >> 6 << 4))
    }
}

/// Q3_K: the scale, -32 to 31, of the 16 elements `group`.
pub(crate) fn q3_k_scale(packed: &[u8], group: usize) -> i8 {
    let low = packed[group % 8] >> (4 * (group / 8)) & 15;
    let high = packed[8 + group % 4] >> (2 * (group / 4)) & 3;
    (low | high << 4) as i8 - 32
}

/// IQ4_XS: the scale, -32 to 31, of the 32 elements `group`, from the block.
pub(crate) fn iq4_xs_scale(block: &[u8], group: usize) -> i8 {
    let low = block[4 + group / 2] >> (4 * (group % 2)) & 15;
    let high = block[2 + group / 4] >> (2 * (group % 4)) & 3;
    (low | high << 4) as i8 - 32
}

/// IQ1_M: the bits of the f16 scale, one nibble on top of each of four words.
pub(crate) fn iq1_m_scale(words: &[u8]) -> u16 {
    (0..4).fold(0, |bits, i| bits | u16::from(words[2 * i + 1] >> 4) << (4 * i))
}

/// IQ1_M: the 3-bit scale of the 16 elements `group`.
pub(crate) fn iq1_m_step(words: &[u8], group: usize) -> u8 {
    let at = group / 4 * 2;
    (u16::from_le_bytes([words[at], words[at + 1]]) >> (3 * (group % 4)) & 7) as u8
}

/// MXFP4: 2^(e - 128). The two lowest are subnormal.
pub(crate) fn mxfp4_scale(e: u8) -> f32 {
    f32::from_bits(if e < 2 { 0x0020_0000 << e } else { u32::from(e - 1) << 23 })
}

/// NVFP4: half of an unsigned E4M3 number, whose top bit is unused and whose 0x7f is zero.
pub(crate) fn nvfp4_scale(byte: u8) -> f32 {
    let (exponent, mantissa) = (byte >> 3 & 15, f32::from(byte & 7));
    if byte == 0x7f {
        0.0
    } else if exponent == 0 {
        mantissa * (1.0 / 1024.0)
    } else {
        // From 1/8 of 2^(exponent - 8).
        (8.0 + mantissa) * f32::from_bits((u32::from(exponent) + 116) << 23)
    }
}
