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
    let blocks = rows * cols / format.block_elements();
    let mut data = Vec::new();
    for _ in 0..blocks {
        let mut block: Vec<u8> = (0..format.block_bytes()).map(|_| random.next() as u8).collect();
        let scale = half::f16::from_f32(random.uniform() * 0.1).to_le_bytes();
        let at = match format {
            Format::F32 => {
                block = random.uniform().to_le_bytes().to_vec();
                &[][..]
            }
            Format::BF16 => {
                block = ((random.uniform().to_bits() >> 16) as u16).to_le_bytes().to_vec();
                &[]
            }
            Format::F16 => &[0],
            Format::Q6_K => &[208],
            Format::Q5_K => &[0, 2],
            _ => &[0],
        };
        for at in at {
            block[*at..at + 2].copy_from_slice(&scale);
        }
        data.extend(block);
    }
    data
}
