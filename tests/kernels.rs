//! Kernels against the scalar reference, bit for bit, one operation at a time. `tests/engine.rs` does the same for whole models.

#[path = "support/device.rs"]
mod device_choice;
#[path = "support/random.rs"]
mod random;
#[path = "support/test_device.rs"]
mod test_device;

use bankshot::device::{Arena, MemoryKind, Span, kernels, sys};
use bankshot::load::pack::Layout;
use bankshot::ops;
use bankshot::oracle::linear::{Matrix, matvec};
use bankshot::oracle::moe::route;
use bankshot::plan::{ROWS_PER_GROUP, plan_entries_max, plan_slots_at};
use bankshot::quant::Format;
use random::{Random, random_rows, set_scales};
use test_device::{TestDevice, matmul_args, pack};

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

#[test]
fn matrices_of_every_format_equal_the_reference() {
    check_matrices(&TestDevice::new(), &Format::ALL);
}

#[test]
fn matrices_equal_the_reference_in_the_code_for_cards() {
    let own = |format: &Format| {
        let module = kernels::find(&format!("matmul_{}", format.name().to_ascii_lowercase()));
        module.is_some_and(|module| module.card_spirv.is_some())
    };
    let formats: Vec<Format> = Format::ALL.into_iter().filter(own).collect();
    assert_eq!(formats.len(), 21, "{formats:?}");
    check_matrices(&TestDevice { card_code: true, ..TestDevice::new() }, &formats);
}

fn check_matrices(bench: &TestDevice, formats: &[Format]) {
    let mut random = Random(11);
    for format in formats.iter().copied() {
        let wide = [(1, 256), (4, 2560), (37, 512), (64, 4352)];
        let narrow = [(16, 32), (5, 160), (40, 640), (17, 1312), (64, 8224)];
        let pairs = [(16, 64), (5, 192), (40, 640), (17, 1344), (64, 8256)];
        let shapes = match Layout::of(format).columns {
            256 => &wide[..],
            64 => &pairs[..],
            _ => &narrow[..],
        };
        for (n, k) in shapes.iter().copied() {
            let data = random_rows(&mut random, format, n, k);
            for tokens in [1, 2, 8, 9, 19] {
                check_matmul(bench, format, (n, k), &data, &activations(&mut random, tokens, k));
            }
        }
    }
}

/// The kernel's product with the rows `x`, against the reference's.
fn check_matmul(bench: &TestDevice, format: Format, (n, k): (usize, usize), data: &[u8], x: &[Vec<f32>]) {
    let tokens = x.len();
    let matrix = Matrix { format, rows: n, cols: k, data: data.into() };
    let weights = bench.put(&pack(format, n, k, data));
    let expected: Vec<f32> = x.iter().flat_map(|x| matvec(&matrix, x)).collect();
    let (mut args, _kernel, _table) = matmul_args(bench, format, n, k, tokens);
    let (rows, _spans) = bench.rows(x);
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

#[test]
fn codes_at_their_ends_equal_the_reference() {
    // Blocks of one byte, times activations of one size: sums as large as they get, and every code in every place.
    let bench = TestDevice::new();
    let mut random = Random(14);
    let (n, k) = (256, 256);
    for format in Format::ALL.into_iter().filter(|format| format.is_quantised()) {
        let mut data = Vec::new();
        for byte in 0..=255 {
            for _ in 0..k / format.block_elements() {
                let mut block = vec![byte; format.block_bytes()];
                set_scales(&mut random, format, &mut block);
                data.extend(block);
            }
        }
        let alternating = (0..k).map(|i| if i % 2 == 0 { 1.0 } else { -1.0 }).collect();
        check_matmul(&bench, format, (n, k), &data, &[vec![1.0; k], vec![-1.0; k], alternating]);
    }
}

#[test]
fn routing_and_expert_matrices_equal_the_reference() {
    let bench = TestDevice::new();
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
        // Every third expert is in host memory, as one without a slot on the card is.
        let weights = bench.put(&packed);
        let mirror = Arena::new(bench.queue.card(), packed.len() as u64, MemoryKind::Host).unwrap().whole();
        bench.queue.upload(&mirror, &packed).unwrap();
        let address = |expert: usize| {
            let span = if expert % 3 == 1 { &mirror } else { &weights };
            span.ptr().expose_provenance() as u64 + (expert * packed.len() / experts) as u64
        };
        let table = bench.put(&(0..experts).flat_map(|expert| address(expert).to_le_bytes()).collect::<Vec<u8>>());
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
            args.experts = table.ptr().cast();
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
    let bench = TestDevice::new();
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
    let bench = TestDevice::new();
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
