//! Random numbers and random weight blocks for tests, the same in every run.

use bankshot::quant::Format;

/// Numbers for tests: uniform in [-1, 1).
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ z >> 31
    }

    pub fn uniform(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1 << 23) as f32 - 1.0
    }

    pub fn vector(&mut self, n: usize) -> Vec<f32> {
        (0..n).map(|_| self.uniform()).collect()
    }
}

/// Random blocks with scales that are finite and not extreme.
pub fn random_rows(random: &mut Random, format: Format, rows: usize, cols: usize) -> Vec<u8> {
    let mut data = Vec::new();
    for _ in 0..rows * cols / format.block_elements() {
        let mut block: Vec<u8> = (0..format.block_bytes()).map(|_| random.next() as u8).collect();
        set_scales(random, format, &mut block);
        data.extend(block);
    }
    data
}

/// Gives a block scales that are finite and not extreme.
pub fn set_scales(random: &mut Random, format: Format, block: &mut [u8]) {
    let mut scale = || half::f16::from_f32(random.uniform() * 0.1).to_le_bytes();
    let at: &[usize] = match format {
        Format::F32 => return block.copy_from_slice(&random.uniform().to_le_bytes()),
        Format::BF16 => return block.copy_from_slice(&random.uniform().to_le_bytes()[2..]),
        Format::NVFP4 => return,
        Format::MXFP4 => {
            // The two lowest exponents are subnormal.
            block[0] = if block[0] < 32 { block[0] % 3 } else { 118 + block[0] % 8 };
            return;
        }
        Format::IQ1_M => {
            let bits = u16::from_le_bytes(scale());
            for (i, byte) in [49, 51, 53, 55].into_iter().enumerate() {
                block[byte] = (block[byte] & 15) | (bits >> (4 * i) << 4) as u8;
            }
            return;
        }
        Format::Q6_K => &[208],
        Format::Q3_K => &[108],
        Format::Q2_K => &[80, 82],
        Format::Q4_1 | Format::Q5_1 | Format::Q4_K | Format::Q5_K => &[0, 2],
        _ => &[0],
    };
    for at in at {
        block[*at..at + 2].copy_from_slice(&scale());
    }
}
