//! Scalar functions of the contract (N1): fma, multiply, add and exact bit operations only.

// Constants stand as on the page of the contract.
#![allow(clippy::excessive_precision, clippy::approx_constant)]

/// `1/x` for 2^-120 <= x <= 2^124.
#[inline(always)]
pub fn recip(x: f32) -> f32 {
    let mut y = f32::from_bits(0x7EF3_11C7u32.wrapping_sub(x.to_bits()));
    for _ in 0..4 {
        let e = (-x).mul_add(y, 1.0);
        y = y.mul_add(e, y);
    }
    y
}

/// `1/sqrt(x)` for 2^-120 <= x <= 2^124.
#[inline(always)]
pub fn rsqrt(x: f32) -> f32 {
    let mut y = f32::from_bits(0x5F37_5A86u32.wrapping_sub(x.to_bits() >> 1));
    for _ in 0..4 {
        let t = x * y;
        let e = (-t).mul_add(y, 1.0);
        y = (0.5 * y).mul_add(e, y);
    }
    y
}

/// `sqrt(x)` over the range of [`rsqrt`].
#[inline(always)]
pub fn sqrt(x: f32) -> f32 {
    x * rsqrt(x)
}

/// `e^x`, the argument clamped to [-87, 88].
#[inline(always)]
pub fn exp(x: f32) -> f32 {
    const ROUND: f32 = 12_582_912.0; // 1.5 * 2^23: adding it rounds to an integer
    let x = x.clamp(-87.0, 88.0);
    let n = x.mul_add(1.442_695_04, ROUND) - ROUND;
    let r = n.mul_add(-0.693_145_752, x);
    let r = n.mul_add(-1.428_606_77e-6, r);
    let mut p = 1.987_569_15e-4f32;
    for c in [1.398_199_95e-3, 8.333_451_86e-3, 4.166_579_62e-2, 1.666_666_57e-1, 0.5] {
        p = p.mul_add(r, c);
    }
    let q = p.mul_add(r * r, r) + 1.0;
    f32::from_bits(q.to_bits().wrapping_add((n as i32 as u32) << 23))
}

/// `ln y` of a normal y > 0.
#[inline(always)]
pub fn log(y: f32) -> f32 {
    let e = (y.to_bits().wrapping_sub(0x3F35_04F3) as i32) >> 23;
    let m = f32::from_bits(y.to_bits().wrapping_sub((e as u32) << 23));
    let f = m - 1.0;
    let z = f * f;
    let mut p = 7.037_683_629_2e-2f32;
    for c in [
        -1.151_461_031_0e-1,
        1.167_699_874_0e-1,
        -1.242_014_084_6e-1,
        1.424_932_278_7e-1,
        -1.666_805_766_5e-1,
        2.000_071_476_5e-1,
        -2.499_999_399_3e-1,
        3.333_333_117_4e-1,
    ] {
        p = p.mul_add(f, c);
    }
    let exponent = e as f32;
    let r = (f * z) * p;
    let r = exponent.mul_add(-2.121_944_40e-4, r);
    let r = (-0.5f32).mul_add(z, r);
    let r = f + r;
    exponent.mul_add(0.693_359_375, r)
}

/// `ln(1 + u)` for 0 <= u <= 2^30.
#[inline(always)]
pub fn log1p(u: f32) -> f32 {
    let y = 1.0 + u;
    let c = (u - (y - 1.0)) * recip(y);
    log(y) + c
}

/// E and `recip(1 + E)` with E = e^-x, shared by the two gates.
#[inline(always)]
fn gate(x: f32) -> (f32, f32) {
    let e = exp((-x).clamp(-80.0, 80.0));
    (e, recip(1.0 + e))
}

/// Logistic function. The last step takes back the rounding of `1 + E`.
#[inline(always)]
pub fn sigmoid(x: f32) -> f32 {
    let (exponential, y) = gate(x);
    let e = (-exponential).mul_add(y, 1.0) - y;
    y.mul_add(e, y)
}

/// `x * sigmoid(x)`, as a quotient with one correction.
#[inline(always)]
pub fn silu(x: f32) -> f32 {
    let (exponential, y) = gate(x);
    let q = x * y;
    let e = (-q).mul_add(exponential, x) - q;
    e.mul_add(y, q)
}

/// `ln(1 + e^x)`.
#[inline(always)]
pub fn softplus(x: f32) -> f32 {
    if x > 20.0 { x } else { log1p(exp(x)) }
}

/// `1/n` of a dimension, in f64 and rounded once: the contract's `c(1/n)`.
pub fn inverse(n: usize) -> f32 {
    (1.0 / n as f64) as f32
}

/// `1/sqrt(n)` of a dimension; f64 division and square root are exactly rounded everywhere.
pub fn inverse_sqrt(n: usize) -> f32 {
    (1.0 / (n as f64).sqrt()) as f32
}
