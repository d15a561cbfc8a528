//! Microbenchmarks: what each matrix kernel and each operation of a model moves a second, beside what the device itself copies.
//!
//! `cargo test --release --test kernel_bench -- --nocapture` prints the table. It measures and asserts nothing about time.

#[path = "support/device.rs"]
mod device_choice;
#[path = "support/gguf_writer.rs"]
mod gguf_writer;
#[path = "support/random.rs"]
#[allow(dead_code, reason = "shared with other tests")]
mod random;
#[path = "support/random_model.rs"]
#[allow(dead_code, reason = "shared with other tests")]
mod random_model;
#[path = "support/shapes.rs"]
mod shapes;
#[path = "support/test_device.rs"]
#[allow(dead_code, reason = "shared with other tests")]
mod test_device;

use std::sync::Arc;
use std::time::{Duration, Instant};

use bankshot::exec::{Breakdown, Engine};
use bankshot::load::{Model, TableOptions, Tables};
use bankshot::model::KvType;
use bankshot::ops;
use bankshot::plan::Options;
use bankshot::quant::Format;
use random::{Random, random_rows};
use test_device::{TestDevice, matmul_args, pack};

/// Outputs and inputs of the matrix, as large layers have them.
const SHAPE: (usize, usize) = (2048, 2560);
/// Bytes of weights that are walked through, so that they come from memory and not from a cache.
const WALKED_BYTES: usize = 192 << 20;
/// Time a kernel is measured for.
const MEASURED: Duration = Duration::from_millis(200);

/// Seconds of one call, the median over as many as fit the measured time.
fn seconds(device: &TestDevice, mut call: impl FnMut(usize)) -> f64 {
    let mut timed = |index: usize| {
        let begin = Instant::now();
        call(index);
        device.queue.wait().unwrap();
        begin.elapsed().as_secs_f64()
    };
    timed(0);
    let (begin, mut times) = (Instant::now(), Vec::new());
    while begin.elapsed() < MEASURED {
        times.push(timed(times.len()));
    }
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// Gigabytes a second that the device's own copy reads and writes.
fn copy_rate(device: &TestDevice) -> f64 {
    let bytes = 64 << 20;
    let (from, to) = (device.put(&vec![1; bytes]), device.put(&vec![0; bytes]));
    let copy = 2.0 * bytes as f64 / seconds(device, |_| device.queue.copy(&to, &from).unwrap()) / 1e9;
    println!("device  {}", device.card.info().name);
    println!("copy    {copy:.1} GB/s, read and written");
    copy
}

/// A model with the widths of Qwen3.8-Flash-Next, four layers, and few experts and tokens.
fn wide_model() -> Vec<u8> {
    let [flash, ..] = shapes::published();
    let shape = shapes::Shape {
        layers: 4,
        context: 4096,
        vocab: 1024,
        experts: [12, 10, 640, 640],
        ple: shapes::PleShape { rows: 4096, ..flash.ple },
        ..flash
    };
    let mut random = Random(2);
    let block = random_rows(&mut random, Format::Q8_0, 64, 32);
    let mut writer = random_model::tokenizer(shapes::with_keys(shape.arch, &shape.keys()));
    for (name, dims) in shape.tensors() {
        let elements: u64 = dims.iter().product();
        writer = if name.ends_with(".weight") && dims.len() > 1 && dims[0] % 32 == 0 {
            let data: Vec<u8> = block.iter().copied().cycle().take((elements / 32 * 34) as usize).collect();
            writer.tensor(&name, &dims, Format::Q8_0.ggml_id(), &data)
        } else {
            let values: Vec<f32> = (0..elements).map(|_| -0.5 - 0.2 * random.uniform()).collect();
            writer.tensor_f32(&name, &dims, &values)
        };
    }
    writer.to_bytes()
}

#[test]
fn operations() {
    let device = TestDevice::new();
    let copy = copy_rate(&device);
    let model = Arc::new(Model::from_static(wide_model().leak()).unwrap());
    let cards = vec![device.card.clone()];
    let chunk = 128;
    let plan = Engine::plan_for(&model, &cards, Options::new(4096, chunk, KvType::F16)).unwrap();
    let tables = Tables::open(model.file(), model.bound(), &TableOptions::default()).unwrap();
    let mut engine = Engine::open(model, tables, cards, plan, None, &mut |_| {}).unwrap();
    println!("operation            matrix               tokens  calls  bytes a call         us    GB/s  of copy");
    let ids: Vec<u32> = (0..chunk as u32).map(|i| i * i % 264).collect();
    for (tokens, times) in [(chunk, 3), (1, 20)] {
        let mut breakdown = Breakdown::default();
        // The first call finds nothing in any cache.
        engine.feed(&ids[..tokens]).unwrap();
        for _ in 0..times {
            engine.feed_measured(&ids[..tokens], &mut breakdown).unwrap();
        }
        for op in breakdown.ops().iter().filter(|op| op.bytes > 0) {
            let matrix = op.matrix.map_or(String::new(), |(format, n, k)| format!("{} {n} x {k}", format.name()));
            let (calls, time) = (op.calls() as f64, op.time().as_secs_f64());
            let rate = op.bytes as f64 / time / 1e9;
            println!(
                "{:<20} {matrix:<20} {tokens:>6} {calls:>6} {:>13.0} {:>10.1} {rate:>7.2}   {:>4.0} %",
                op.name,
                op.bytes as f64 / calls,
                time / calls * 1e6,
                100.0 * rate / copy
            );
        }
        let counted = |name: &str| breakdown.ops().iter().any(|op| op.name == name && op.calls() > 0);
        for family in
            ["hyper_norm", "hyper_mix", "gdn_conv", "gdn_step", "attention", "moe_route", "moe_combine", "ple"]
        {
            assert!(counted(family), "{family} was not measured");
        }
    }
}

#[test]
fn matrices() {
    let device = TestDevice::new();
    let mut random = Random(1);
    let copy = copy_rate(&device);
    println!("kernel     format    shape          rows       bytes        us    GB/s  of copy");
    let (n, k) = SHAPE;
    for format in Format::ALL {
        let packed = pack(format, n, k, &random_rows(&mut random, format, n, k));
        let copies = (WALKED_BYTES / packed.len()).max(1);
        let weights = device.put(&packed.repeat(copies));
        for rows in [1, 64] {
            let x: Vec<Vec<f32>> = (0..rows).map(|_| random.vector(k)).collect();
            let (mut args, _kernel, _table) = matmul_args(&device, format, n, k, rows);
            let (spans, _spans) = device.rows(&x);
            let y = device.put(&vec![0; 4 * rows * n]);
            args.x = spans;
            args.y = y.ptr().cast();
            let time = seconds(&device, |call| {
                let at = call % copies * packed.len();
                args.weights = weights.span(at as u64, packed.len() as u64).unwrap().ptr();
                // SAFETY: all addresses are of live spans with the shapes of the arguments.
                unsafe { ops::matmul(&device.queue, args) }.unwrap();
            });
            let activations = if format.is_quantised() { rows * (k + k / 8 + k / 8) } else { rows * 4 * k };
            let moved = packed.len() + activations + 4 * rows * n;
            let rate = moved as f64 / time / 1e9;
            println!(
                "matmul_r{} {:<9} {n} x {k}    {rows:>4}  {moved:>10}  {:>8.1}  {rate:>6.2}   {:>4.0} %",
                if rows == 1 { 1 } else { 8 },
                format.name(),
                time * 1e6,
                100.0 * rate / copy
            );
            assert!(device.get(&y).iter().any(|word| *word != 0), "{} computed nothing", format.name());
        }
    }
}
