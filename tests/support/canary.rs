//! The canary kernel, and what it must compute.

use bankshot::device::{self, Arena, Card, MemoryKind, Module, Queue, Span, kernels};

pub fn module(card: &Card) -> Module {
    Module::new(card, kernels::find("selftest").expect("the selftest module"), None).expect("a module")
}

fn bytes_of(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_ne_bytes()).collect()
}

fn floats_of(bytes: &[u8]) -> Vec<f32> {
    bytes.chunks_exact(4).map(|b| f32::from_ne_bytes(b.try_into().expect("four bytes"))).collect()
}

/// Finite numbers of many sizes, denormals and zeros among them.
fn inputs(n: usize, mut seed: u32) -> Vec<f32> {
    let mut values = vec![0.0, -0.0, 1.0, f32::MIN_POSITIVE, 1e-45, -1e-40, 65504.0, 65520.0];
    while values.len() < n {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let value = f32::from_bits(seed);
        if value.is_finite() && value.abs() < 1e18 {
            values.push(value);
        }
    }
    values
}

/// What the canary kernel computes, in Rust's own arithmetic.
fn expected(a: &[f32], b: &[f32]) -> Vec<f32> {
    let mut out = Vec::new();
    out.extend(a.iter().zip(b).map(|(x, y)| x.mul_add(*y, *x)));
    out.extend(a.iter().zip(b).map(|(x, y)| x * y + x));
    out.extend(a.iter().zip(b).map(|(x, y)| x / y));
    out.extend(a.iter().map(|x| half::f16::from_f32(*x).to_f32()));
    for lanes in a.chunks(16) {
        let mut team = lanes.to_vec();
        for distance in [8, 4, 2, 1] {
            team = (0..16).map(|i| team[i] + team[i ^ distance]).collect();
        }
        out.extend(team);
    }
    for group in b.chunks(64) {
        let sum = group.iter().fold(0.0f32, |sum, y| sum + y);
        out.extend(std::iter::repeat_n(sum, group.len()));
    }
    out
}

pub struct Canary {
    pub n: usize,
    pub a: Span,
    pub b: Span,
    pub out: Span,
    pub values: [Vec<f32>; 2],
}

impl Canary {
    pub fn new(card: &Card, queue: &Queue, n: usize, seed: u32) -> Self {
        let values = [inputs(n, seed), inputs(n, seed ^ 0x5bd1_e995).into_iter().rev().collect()];
        let bytes = n as u64 * 4;
        let arena = Arena::new(card, bytes * 8, MemoryKind::Device).expect("an arena");
        let span = |index: u64, count: u64| arena.span(bytes * index, bytes * count).expect("a span");
        let canary = Canary { n, a: span(0, 1), b: span(1, 1), out: span(2, 6), values };
        canary.load(queue);
        canary
    }

    fn load(&self, queue: &Queue) {
        queue.upload(&self.a, &bytes_of(&self.values[0])).expect("an upload");
        queue.upload(&self.b, &bytes_of(&self.values[1])).expect("an upload");
    }

    pub fn enqueue(&self, queue: &Queue, module: &Module) {
        let kernel = module.kernel("canary").expect("the kernel");
        device::canary(queue, &kernel, self.n as u32, &self.a, &self.b, &self.out).expect("a launch");
    }

    pub fn check(&self, queue: &Queue) {
        let mut bytes = vec![0; self.n * 4 * 6];
        queue.download(&mut bytes, &self.out).expect("a download");
        let want = expected(&self.values[0], &self.values[1]);
        for (i, (got, want)) in floats_of(&bytes).iter().zip(&want).enumerate() {
            let same = got.to_bits() == want.to_bits() || (got.is_nan() && want.is_nan());
            assert!(same, "output {} element {}: {got:e} instead of {want:e}", i / self.n, i % self.n);
        }
    }
}
