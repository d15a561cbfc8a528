//! Microbenchmarks: what each matrix kernel reads a second, beside what the device itself copies.
//!
//! `cargo test --release --test kernel_bench -- --nocapture` prints the table. It measures and asserts nothing about time.

#[path = "support/device.rs"]
mod device_choice;
#[path = "support/random.rs"]
#[allow(dead_code, reason = "shared with other tests")]
mod random;
#[path = "support/test_device.rs"]
#[allow(dead_code, reason = "shared with other tests")]
mod test_device;

use std::time::{Duration, Instant};

use bankshot::ops;
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

#[test]
fn matrices() {
    let device = TestDevice::new();
    let mut random = Random(1);
    let bytes = 64 << 20;
    let (from, to) = (device.put(&vec![1; bytes]), device.put(&vec![0; bytes]));
    // A copy reads and writes.
    let copy = 2.0 * bytes as f64 / seconds(&device, |_| device.queue.copy(&to, &from).unwrap()) / 1e9;
    println!("device  {}", device.card.info().name);
    println!("copy    {copy:.1} GB/s, read and written");
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
