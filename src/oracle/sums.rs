//! Sums of the contract (N2), and the norms and the rotation made with them (N3).

use super::scalar::{inverse, rsqrt};

/// Adds sixteen partial sums as a tree.
#[inline(always)]
fn tree(mut p: [f32; 16]) -> f32 {
    for m in [8, 4, 2, 1] {
        // Only the lanes below m reach the result.
        for l in 0..m {
            p[l] += p[l ^ m];
        }
    }
    p[0]
}

#[inline(always)]
pub(super) fn dot16_inline(a: &[f32], b: &[f32]) -> f32 {
    let mut p = [0f32; 16];
    let (a, a_tail) = a.as_chunks::<16>();
    let (b, b_tail) = b.as_chunks::<16>();
    for (a, b) in a.iter().zip(b) {
        for l in 0..16 {
            p[l] = a[l].mul_add(b[l], p[l]);
        }
    }
    for (l, (a, b)) in a_tail.iter().zip(b_tail).enumerate() {
        p[l] = a.mul_add(*b, p[l]);
    }
    tree(p)
}

with_fma! {
    /// Sum of products over the elements that both have.
    pub fn dot16(a: &[f32], b: &[f32]) -> f32 {
        dot16_inline(a, b)
    }
}

/// Sum in the order of [`dot16`].
#[inline(always)]
pub fn sum16(x: &[f32]) -> f32 {
    let mut p = [0f32; 16];
    for chunk in x.chunks(16) {
        for (p, x) in p.iter_mut().zip(chunk) {
            *p += x;
        }
    }
    tree(p)
}

with_fma! {
    /// `x / sqrt(mean(x^2) + eps) * w`
    pub fn rms_norm(x: &[f32], w: &[f32], eps: f32) -> Vec<f32> {
        let s = rsqrt(dot16_inline(x, x).mul_add(inverse(x.len()), eps));
        x.iter().zip(w).map(|(x, w)| (x * s) * w).collect()
    }
}

/// [`rms_norm`] of each row, with the matching row of `w`: both [rows][n].
pub fn rms_norm_rows(x: &[f32], w: &[f32], n: usize, eps: f32) -> Vec<f32> {
    x.chunks(n).zip(w.chunks(n)).flat_map(|(x, w)| rms_norm(x, w, eps)).collect()
}

with_fma! {
    /// `x / sqrt(sum(x^2) + eps)`
    pub fn l2_norm(x: &mut [f32], eps: f32) {
        let s = rsqrt(dot16_inline(x, x) + eps);
        for x in x {
            *x *= s;
        }
    }
}

with_fma! {
    /// Rotates the leading dimensions of a head by one row of the table: cosines, then sines.
    pub fn rope(x: &mut [f32], row: &[f32]) {
        let pairs = row.len() / 2;
        let (cosines, sines) = row.split_at(pairs);
        let (first, rest) = x.split_at_mut(pairs);
        for (((a, b), c), s) in first.iter_mut().zip(rest).zip(cosines).zip(sines) {
            let rotated = (-*b).mul_add(*s, *a * c);
            *b = a.mul_add(*s, *b * c);
            *a = rotated;
        }
    }
}
