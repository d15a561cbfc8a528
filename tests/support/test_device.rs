//! Single kernels on the CPU device: memory, arguments, results.

use bankshot::device::{Arena, Card, Kernel, MemoryKind, Module, Queue, Span, cache, kernels, sys};
use bankshot::load::pack::{Layout, codebook, pack_matrix};
use bankshot::oracle::linear::quantise;
use bankshot::plan::ROWS_PER_GROUP;
use bankshot::quant::Format;

use super::device_choice::test_device;

/// The CPU device with a queue, and what tests of single kernels need around it.
pub struct TestDevice {
    pub card: Card,
    pub queue: Queue,
    /// Whether the CPU runs the code that is meant for cards.
    pub card_code: bool,
}

impl TestDevice {
    pub fn new() -> TestDevice {
        let device = test_device();
        let card = Card::open(device.index).unwrap();
        let queue = Queue::new(&card).unwrap();
        TestDevice { card, queue, card_code: false }
    }

    pub fn kernel(&self, module: &str, name: &str) -> Kernel {
        let mut code = *kernels::find(module).unwrap_or_else(|| panic!("module {module}"));
        if self.card_code {
            code.spirv = code.spirv_for(false);
            code.hash = Box::leak(format!("{}-card", code.hash).into_boxed_str());
        }
        Module::new(&self.card, &code, cache::folder().as_deref()).unwrap().kernel(name).unwrap()
    }

    pub fn put(&self, bytes: &[u8]) -> Span {
        let span = Arena::new(&self.card, bytes.len().max(64) as u64, MemoryKind::Device).unwrap();
        let span = span.span(0, bytes.len() as u64).unwrap();
        self.queue.upload(&span, bytes).unwrap();
        span
    }

    pub fn floats(&self, values: &[f32]) -> Span {
        self.put(&values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>())
    }

    pub fn get(&self, span: &Span) -> Vec<u32> {
        let mut bytes = vec![0; span.bytes() as usize];
        self.queue.download(&mut bytes, span).unwrap();
        bytes.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect()
    }

    /// Rows of activations in the form that matrices read, made on the host by the reference.
    pub fn rows(&self, rows: &[Vec<f32>]) -> (sys::xk_rows, [Span; 4]) {
        let quantised: Vec<_> = rows.iter().map(|row| quantise(row)).collect();
        let q: Vec<u8> = quantised.iter().flat_map(|row| row.q.as_flattened().iter().map(|q| *q as u8)).collect();
        let d: Vec<f32> = quantised.iter().flat_map(|row| row.d.clone()).collect();
        let s =
            quantised.iter().flat_map(|row| row.q.iter().map(|block| block.iter().map(|q| i32::from(*q)).sum::<i32>()));
        let s: Vec<u8> = s.flat_map(|sum| sum.to_le_bytes()).collect();
        let spans = [self.floats(&rows.concat()), self.put(&q), self.floats(&d), self.put(&s)];
        (
            sys::xk_rows {
                x: spans[0].ptr().cast(),
                q: spans[1].ptr().cast(),
                d: spans[2].ptr().cast(),
                s: spans[3].ptr().cast(),
            },
            spans,
        )
    }
}

pub fn matmul_args(
    bench: &TestDevice,
    format: Format,
    n: usize,
    k: usize,
    tokens: usize,
) -> (sys::xk_matmul_args, Vec<Kernel>, Vec<Span>) {
    let rows_per_group = if tokens == 1 { 1 } else { ROWS_PER_GROUP };
    let kernel = bench.kernel(
        &format!("matmul_{}", format.name().to_ascii_lowercase()),
        if tokens == 1 { "matmul_r1" } else { "matmul_r8" },
    );
    let table =
        codebook(format).map(|table| bench.put(&table.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>()));
    let args = sys::xk_matmul_args {
        n: n as u32,
        k: k as u32,
        rows: tokens as u32,
        rows_per_group: rows_per_group as u32,
        kernel: kernel.raw(),
        codebook: table.as_ref().map_or(std::ptr::null_mut(), |table| table.ptr()),
        ..Default::default()
    };
    (args, vec![kernel], table.into_iter().collect())
}

pub fn pack(format: Format, n: usize, k: usize, data: &[u8]) -> Vec<u8> {
    let mut packed = vec![0; Layout::of(format).matrix_bytes(n, k)];
    pack_matrix(format, n, k, data, &mut packed);
    packed
}
