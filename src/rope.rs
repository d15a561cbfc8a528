//! Rotary angles: cosines and sines made with exactly rounded operations only, so that every machine has the same bits.

use std::f64::consts::FRAC_2_PI;
use std::ops::Range;

/// pi/2 in three parts. The first two have 28 bits, so that their products with a quadrant number are exact.
const HALF_PI: [f64; 3] = [
    f64::from_bits(0x3FF9_21FB_5400_0000),
    f64::from_bits(0x3E11_0B46_1000_0000),
    f64::from_bits(0x3C5A_6263_3145_C06E),
];

/// Makes the rows of cosines and sines that a rotation of `2 * pairs` dimensions reads.
#[derive(Clone, Debug, PartialEq)]
pub struct RopeTable {
    pairs: usize,
    /// From the angle of one pair to that of the next.
    factor: f32,
}

impl RopeTable {
    /// For `dims` rotated dimensions, an even number above 0, and a base above 1.
    pub fn new(dims: usize, base: f32) -> RopeTable {
        let pairs = dims / 2;
        RopeTable { pairs, factor: inverse_root(f64::from(base), pairs) as f32 }
    }

    /// Length of a row: as many cosines, then as many sines, as there are pairs.
    pub fn row_len(&self) -> usize {
        2 * self.pairs
    }

    /// [position][cosines, then sines]. Positions up to 2^24 are exact.
    pub fn rows(&self, positions: Range<usize>) -> Vec<f32> {
        let mut rows = Vec::with_capacity(positions.len() * self.row_len());
        for position in positions {
            let start = rows.len();
            rows.resize(start + self.row_len(), 0.0);
            let (cosines, sines) = rows[start..].split_at_mut(self.pairs);
            let mut angle = position as f32;
            for (cosine, sine) in cosines.iter_mut().zip(sines) {
                let (c, s) = cos_sin(f64::from(angle));
                (*cosine, *sine) = (c as f32, s as f32);
                angle *= self.factor;
            }
        }
        rows
    }
}

/// `base^(-1/n)` by bisection, until the interval holds no further number.
fn inverse_root(base: f64, n: usize) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    loop {
        let middle = (low + high) * 0.5;
        if middle <= low || middle >= high {
            return high;
        }
        if power(middle, n) * base < 1.0 {
            low = middle;
        } else {
            high = middle;
        }
    }
}

fn power(x: f64, n: usize) -> f64 {
    let (mut result, mut square, mut n) = (1.0, x, n);
    while n > 0 {
        if n & 1 == 1 {
            result *= square;
        }
        square *= square;
        n >>= 1;
    }
    result
}

/// Cosine and sine of an `f32` angle from 0 to 2^24; the error is far below the later rounding to `f32`.
fn cos_sin(x: f64) -> (f64, f64) {
    const ROUND: f64 = 6_755_399_441_055_744.0; // 1.5 * 2^52: adding it rounds to an integer
    let n = (x * FRAC_2_PI + ROUND) - ROUND;
    let r = ((x - n * HALF_PI[0]) - n * HALF_PI[1]) - n * HALF_PI[2];
    let z = r * r;
    // Taylor series, good to 5e-17 on [-pi/4, pi/4].
    let (mut cosine, mut sine) = (0.0, 0.0);
    for k in (1..=8).rev() {
        let k = f64::from(k);
        cosine = (1.0 - cosine) * z / ((2.0 * k - 1.0) * (2.0 * k));
        sine = (1.0 - sine) * z / ((2.0 * k) * (2.0 * k + 1.0));
    }
    let (cosine, sine) = (1.0 - cosine, r - r * sine);
    match n as u64 & 3 {
        0 => (cosine, sine),
        1 => (-sine, cosine),
        2 => (-cosine, -sine),
        _ => (sine, -cosine),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ulps(value: f64, reference: f64) -> f64 {
        let exponent = reference.abs().max(2f64.powi(-126)).log2().floor() as i32;
        (value - reference).abs() / 2f64.powi(exponent - 23)
    }

    #[test]
    fn parts_of_half_pi_add_up() {
        let [first, second, third] = HALF_PI;
        for part in [first, second] {
            assert_eq!(part.to_bits() & 0x1FF_FFFF, 0);
        }
        // The rest of pi/2 beyond f64 is 6.123233995736766e-17.
        assert_eq!(((std::f64::consts::FRAC_PI_2 - first) - second) - third, -6.123_233_995_736_766e-17);
    }

    #[test]
    fn rows_are_within_one_ulp_of_f64_functions() {
        let mut worst = 0f64;
        for (base, dims) in [(1e7f32, 64), (1e4, 64), (5e5, 24), (1e6, 128)] {
            let table = RopeTable::new(dims, base);
            let factor = f64::from(base).powf(-2.0 / dims as f64);
            assert!(ulps(f64::from(table.factor), factor) <= 0.5001);
            for start in [0, 1000, 77_777, 262_000, 1 << 20, (1 << 24) - 300] {
                let rows = table.rows(start..start + 300);
                for (i, row) in rows.chunks(dims).enumerate() {
                    let mut angle = (start + i) as f32;
                    for j in 0..dims / 2 {
                        let (sine, cosine) = f64::from(angle).sin_cos();
                        worst =
                            worst.max(ulps(f64::from(row[j]), cosine)).max(ulps(f64::from(row[dims / 2 + j]), sine));
                        angle *= table.factor;
                    }
                }
            }
        }
        println!("worst {worst} ulp");
        assert!(worst <= 0.501, "{worst}");
    }
}
