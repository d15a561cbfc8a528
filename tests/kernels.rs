//! Kernels against the scalar reference, bit for bit, one operation at a time. `tests/engine.rs` does the same for whole models.

#[path = "support/device.rs"]
mod device_choice;
#[path = "support/random.rs"]
mod random;

use bankshot::device::{Arena, Card, Kernel, MemoryKind, Module, Queue, Span, cache, kernels, sys};
use bankshot::load::pack::{Layout, codebook, pack_matrix};
use bankshot::ops;
use bankshot::oracle::linear::{Matrix, matvec, quantise};
use bankshot::oracle::moe::route;
use bankshot::plan::{ROWS_PER_GROUP, plan_entries_max, plan_slots_at};
use bankshot::quant::Format;
use device_choice::test_device;
use random::{Random, random_rows};

/// A queue and a bump allocator of device memory.
struct Bench {
    card: Card,
    queue: Queue,
    /// Whether the CPU runs the code that is meant for cards.
    card_code: bool,
}

impl Bench {
    fn new() -> Bench {
        let device = test_device();
        let card = Card::open(device.index).unwrap();
        let queue = Queue::new(&card).unwrap();
        Bench { card, queue, card_code: false }
    }

    fn kernel(&self, module: &str, name: &str) -> Kernel {
        let mut code = *kernels::find(module).unwrap_or_else(|| panic!("module {module}"));
        if self.card_code {
            code.spirv = code.spirv_for(false);
            code.hash = Box::leak(format!("{}-card", code.hash).into_boxed_str());
        }
        Module::new(&self.card, &code, cache::folder().as_deref()).unwrap().kernel(name).unwrap()
    }

    fn put(&self, bytes: &[u8]) -> Span {
        let span = Arena::new(&self.card, bytes.len().max(64) as u64, MemoryKind::Device).unwrap();
        let span = span.span(0, bytes.len() as u64).unwrap();
        self.queue.upload(&span, bytes).unwrap();
        span
    }

    fn floats(&self, values: &[f32]) -> Span {
        self.put(&values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>())
    }

    fn get(&self, span: &Span) -> Vec<u32> {
        let mut bytes = vec![0; span.bytes() as usize];
        self.queue.download(&mut bytes, span).unwrap();
        bytes.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect()
    }

    /// Rows of activations in the form that matrices read, made on the host by the reference.
    fn rows(&self, rows: &[Vec<f32>]) -> (sys::xk_rows, [Span; 4]) {
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

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

/// Rows that are easy to get wrong: zeros, one spike, denormals, huge values, and ordinary ones.
fn activations(random: &mut Random, rows: usize, cols: usize) -> Vec<Vec<f32>> {
    (0..rows)
        .map(|row| {
            let mut x = random.vector(cols);
            match row % 6 {
                1 => x[..32].fill(0.0),
                2 => x.iter_mut().skip(1).for_each(|x| *x *= 1e-3),
                3 => x[..32].iter_mut().for_each(|x| *x *= 1e-40),
                4 => x.iter_mut().for_each(|x| *x *= 1e12),
                _ => {}
            }
            x
        })
        .collect()
}

fn matmul_args(
    bench: &Bench,
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

fn pack(format: Format, n: usize, k: usize, data: &[u8]) -> Vec<u8> {
    let mut packed = vec![0; Layout::of(format).matrix_bytes(n, k)];
    pack_matrix(format, n, k, data, &mut packed);
    packed
}

#[test]
fn matrices_of_every_format_equal_the_reference() {
    check_matrices(&Bench::new(), &Format::ALL);
}

#[test]
fn matrices_equal_the_reference_in_the_code_for_cards() {
    let own = |format: &Format| {
        let module = kernels::find(&format!("matmul_{}", format.name().to_ascii_lowercase()));
        module.is_some_and(|module| module.card_spirv.is_some())
    };
    let formats: Vec<Format> = Format::ALL.into_iter().filter(own).collect();
    assert_eq!(formats.len(), 8, "{formats:?}");
    check_matrices(&Bench { card_code: true, ..Bench::new() }, &formats);
}

fn check_matrices(bench: &Bench, formats: &[Format]) {
    let mut random = Random(11);
    for format in formats.iter().copied() {
        let wide = [(1, 256), (4, 2560), (37, 512), (64, 4352)];
        let narrow = [(16, 32), (5, 160), (40, 640), (17, 1312), (64, 8224)];
        let shapes = if Layout::of(format).columns == 256 { &wide[..] } else { &narrow[..] };
        for (n, k) in shapes.iter().copied() {
            let data = random_rows(&mut random, format, n, k);
            let matrix = Matrix { format, rows: n, cols: k, data: (&data).into() };
            let weights = bench.put(&pack(format, n, k, &data));
            for tokens in [1, 2, 8, 9, 19] {
                let x = activations(&mut random, tokens, k);
                let expected: Vec<f32> = x.iter().flat_map(|x| matvec(&matrix, x)).collect();
                let (mut args, _kernel, _table) = matmul_args(bench, format, n, k, tokens);
                let (rows, _spans) = bench.rows(&x);
                // Guard words behind the output show writes out of bounds.
                let y = bench.put(&vec![0xA5; 4 * (tokens * n + 16)]);
                args.weights = weights.ptr();
                args.x = rows;
                args.y = y.ptr().cast();
                // SAFETY: all addresses are of live spans with the shapes of the arguments.
                unsafe { ops::matmul(&bench.queue, args) }.unwrap();
                let got = bench.get(&y);
                assert_eq!(&got[..tokens * n], bits(&expected), "{} {n} x {k}, {tokens} rows", format.name());
                assert!(
                    got[tokens * n..].iter().all(|word| *word == 0xA5A5_A5A5),
                    "{} {n} x {k}, {tokens} rows wrote behind y",
                    format.name()
                );
            }
        }
    }
}

#[test]
fn routing_and_expert_matrices_equal_the_reference() {
    let bench = Bench::new();
    let mut random = Random(12);
    let (format, n, k) = (Format::IQ4_NL, 48, 160);
    for (experts, used, tokens) in [(4, 1, 1), (16, 4, 1), (16, 4, 7), (33, 10, 40), (512, 10, 64)] {
        let mut logits: Vec<Vec<f32>> = (0..tokens).map(|_| random.vector(experts)).collect();
        // Ties go to the lowest expert.
        logits[0][experts - 1] = logits[0][0];
        let routes: Vec<_> = logits.iter().map(|logits| route(logits, used)).collect();
        let chosen = bench.put(&vec![0; 4 * tokens * used]);
        let weights = bench.put(&vec![0; 4 * tokens * used]);
        let rows_per_group = if tokens == 1 { 1 } else { ROWS_PER_GROUP };
        let entries = plan_entries_max(tokens, used, experts, rows_per_group);
        let slots_at = plan_slots_at(entries);
        let plan = bench.put(&vec![0; 4 * (slots_at + tokens * used)]);
        let logits_span = bench.floats(&logits.concat());
        let (route_kernel, plan_kernel) = (bench.kernel("moe", "moe_route"), bench.kernel("moe", "moe_plan"));
        let args = sys::xk_moe_route_args {
            tokens: tokens as u32,
            experts: experts as u32,
            used: used as u32,
            rows_per_group: rows_per_group as u32,
            slots_at: slots_at as u32,
            route: route_kernel.raw(),
            plan_kernel: plan_kernel.raw(),
            logits: logits_span.ptr().cast(),
            chosen: chosen.ptr().cast(),
            weights: weights.ptr().cast(),
            plan: plan.ptr().cast(),
            ..Default::default()
        };
        // SAFETY: all addresses are of live spans with the shapes of the arguments.
        unsafe { ops::moe_route(&bench.queue, args) }.unwrap();
        let expected_chosen: Vec<u32> = routes.iter().flatten().map(|(expert, _)| *expert as u32).collect();
        let expected_weights: Vec<f32> = routes.iter().flatten().map(|(_, weight)| *weight).collect();
        assert_eq!(bench.get(&chosen), expected_chosen, "{experts} experts, {used} used, {tokens} tokens");
        assert_eq!(bench.get(&weights), bits(&expected_weights), "{experts} experts, {used} used, {tokens} tokens");

        let data: Vec<Vec<u8>> = (0..experts).map(|_| random_rows(&mut random, format, n, k)).collect();
        let packed: Vec<u8> = data.iter().flat_map(|data| pack(format, n, k, data)).collect();
        let weights = bench.put(&packed);
        for x_per_slot in [false, true] {
            let x = activations(&mut random, if x_per_slot { tokens * used } else { tokens }, k);
            let expected: Vec<f32> = (0..tokens * used)
                .flat_map(|slot| {
                    let data = &data[expected_chosen[slot] as usize];
                    matvec(
                        &Matrix { format, rows: n, cols: k, data: data.into() },
                        &x[if x_per_slot { slot } else { slot / used }],
                    )
                })
                .collect();
            let (mut args, _kernel, _table) = matmul_args(&bench, format, n, k, tokens);
            let (rows, _spans) = bench.rows(&x);
            let y = bench.put(&vec![0xA5; 4 * tokens * used * n]);
            args.weights = weights.ptr();
            args.expert_words = (packed.len() / experts / 4) as u64;
            args.x = rows;
            args.y = y.ptr().cast();
            args.plan = plan.ptr().cast();
            args.max_entries = entries as u32;
            args.x_div = if x_per_slot { 1 } else { used as u32 };
            args.slots_at = slots_at as u32;
            // SAFETY: as above.
            unsafe { ops::matmul(&bench.queue, args) }.unwrap();
            assert_eq!(
                bench.get(&y),
                bits(&expected),
                "{experts} experts, {used} used, {tokens} tokens, a row a slot: {x_per_slot}"
            );
        }
    }
}

#[test]
fn activations_are_quantised_as_the_reference_does() {
    let bench = Bench::new();
    let x = activations(&mut Random(13), 12, 320);
    let (_, expected) = bench.rows(&x);
    let a = bench.floats(&x.concat());
    let out: Vec<Span> = expected.iter().map(|span| bench.put(&vec![0xA5; span.bytes() as usize])).collect();
    let kernel = bench.kernel("act", "act_copy");
    let args = sys::xk_act_args {
        kind: sys::XK_ACT_COPY,
        elements: (12 * 320) as u64,
        kernel: kernel.raw(),
        a: a.ptr().cast(),
        out: sys::xk_rows {
            x: out[0].ptr().cast(),
            q: out[1].ptr().cast(),
            d: out[2].ptr().cast(),
            s: out[3].ptr().cast(),
        },
        ..Default::default()
    };
    // SAFETY: all addresses are of live spans with the shapes of the arguments.
    unsafe { ops::act(&bench.queue, args) }.unwrap();
    for (name, (got, expected)) in ["x", "q", "d", "s"].into_iter().zip(out.iter().zip(&expected)) {
        assert_eq!(bench.get(got), bench.get(expected), "{name}");
    }
}

#[test]
fn wrong_arguments_are_refused_by_name() {
    let bench = Bench::new();
    // SAFETY: the call is refused before any address is used.
    let error = unsafe { ops::matmul(&bench.queue, sys::xk_matmul_args::default()) }.unwrap_err();
    assert!(error.text.contains("kernel: expected a pointer, got null"), "{}", error.text);
    let kernel = bench.kernel("matmul_f32", "matmul_r1");
    let x = bench.floats(&[0.0; 64]);
    let rows = sys::xk_rows { x: x.ptr().cast(), ..Default::default() };
    let args = sys::xk_matmul_args {
        kernel: kernel.raw(),
        weights: x.ptr(),
        x: rows,
        y: x.ptr().cast(),
        n: 1,
        k: 33,
        ..Default::default()
    };
    // SAFETY: as above.
    let error = unsafe { ops::matmul(&bench.queue, args) }.unwrap_err();
    assert!(error.text.contains("k: expected a positive multiple of 32, got 33"), "{}", error.text);
}
