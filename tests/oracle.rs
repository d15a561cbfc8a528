//! The scalar reference against f64 arithmetic, and as a whole against figures of llama.cpp.
//!
//! Whole-model checks read the files under `BANKSHOT_FIXTURES`, without which they say so and pass.

#[path = "support/random.rs"]
mod random;

use std::path::PathBuf;

use bankshot::gguf::GgufFile;
use bankshot::model::{Bound, KvType};
use bankshot::oracle::OracleSession;
use bankshot::oracle::linear::{BLOCK, Matrix, matvec, quantise};
use bankshot::oracle::scalar::{exp, log, log1p, recip, rsqrt, sigmoid, silu, softplus, sqrt};
use bankshot::oracle::sums::{dot16, l2_norm, rms_norm, sum16};
use bankshot::quant::{Format, decode_row};
use random::{Random, random_rows};

/// Distance in units of the last place of the f32 nearest the reference, from below at powers of two.
fn ulps(value: f32, reference: f64) -> f64 {
    let exponent = reference.abs().max(2f64.powi(-126)).log2().floor() as i32;
    (f64::from(value) - reference).abs() / 2f64.powi(exponent - 23)
}

/// Largest error over a dense sample of the floats from `low` to `high`, which have one sign.
fn worst(low: f32, high: f32, function: fn(f32) -> f32, reference: fn(f64) -> f64) -> f64 {
    let (from, to) = (low.to_bits().min(high.to_bits()), low.to_bits().max(high.to_bits()));
    // An odd step visits all low bits.
    let step = ((to - from) / 400_000) | 1;
    let samples = (from..=to).step_by(step as usize).chain([to]).map(f32::from_bits);
    samples.map(|x| ulps(function(x), reference(f64::from(x)))).fold(0.0, f64::max)
}

#[test]
fn scalar_functions_are_within_two_ulp() {
    let (low, high) = (2f32.powi(-120), 2f32.powi(124));
    let tiny = 1e-30;
    let sigmoid_reference = |x: f64| 1.0 / (1.0 + (-x).exp());
    let silu_reference = |x: f64| x / (1.0 + (-x).exp());
    let softplus_reference = |x: f64| x.exp().ln_1p();
    type Case = (&'static str, f32, f32, fn(f32) -> f32, fn(f64) -> f64, f64);
    let cases: [Case; 16] = [
        ("recip", low, high, recip, |x| 1.0 / x, 0.51),
        ("rsqrt", low, high, rsqrt, |x| 1.0 / x.sqrt(), 1.1),
        ("sqrt", low, high, sqrt, f64::sqrt, 1.4),
        ("exp", tiny, 88.0, exp, f64::exp, 1.1),
        ("exp", -tiny, -87.0, exp, f64::exp, 1.1),
        ("log", f32::MIN_POSITIVE, f32::MAX, log, f64::ln, 1.0),
        ("log", 0.25, 4.0, log, f64::ln, 1.0),
        ("log1p", tiny, 2f32.powi(30), log1p, f64::ln_1p, 1.4),
        ("log1p", 1e-3, 10.0, log1p, f64::ln_1p, 1.4),
        ("sigmoid", tiny, 80.0, sigmoid, sigmoid_reference, 1.6),
        ("sigmoid", -tiny, -80.0, sigmoid, sigmoid_reference, 1.6),
        ("silu", tiny, 80.0, silu, silu_reference, 1.8),
        ("silu", -tiny, -80.0, silu, silu_reference, 1.8),
        ("softplus", tiny, 100.0, softplus, softplus_reference, 2.0),
        ("softplus", -tiny, -87.0, softplus, softplus_reference, 2.0),
        ("softplus", -0.5, -30.0, softplus, softplus_reference, 2.0),
    ];
    for (name, low, high, function, reference, limit) in cases {
        let worst = worst(low, high, function, reference);
        println!("{name} from {low:e} to {high:e}: {worst:.3} ulp");
        assert!(worst <= limit, "{name} from {low:e} to {high:e}: {worst} ulp, expected {limit}");
    }
}

#[test]
fn scalar_functions_at_their_ends() {
    assert_eq!(exp(0.0), 1.0);
    assert_eq!(exp(-1000.0), exp(-87.0));
    assert_eq!(exp(1000.0), exp(88.0));
    assert!(exp(88.0).is_finite() && exp(-87.0).is_normal());
    assert_eq!((sigmoid(0.0), sigmoid(1e30)), (0.5, 1.0));
    assert!(sigmoid(-1e30) > 0.0 && sigmoid(-1e30) < 1e-34);
    assert_eq!((silu(0.0), silu(1e30)), (0.0, 1e30));
    assert_eq!((softplus(25.0), log1p(0.0), log(1.0)), (25.0, 0.0, 0.0));
    assert_eq!((recip(1.0), rsqrt(4.0), sqrt(9.0)), (1.0, 0.5, 3.0));
}

#[test]
fn sums_and_norms_agree_with_f64() {
    let mut random = Random(1);
    for n in [1, 5, 16, 31, 128, 1000, 4096] {
        let (a, b) = (random.vector(n), random.vector(n));
        let exact: f64 = a.iter().zip(&b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
        let size: f64 = a.iter().zip(&b).map(|(a, b)| f64::from((a * b).abs())).sum();
        // Each partial sum adds n/16 roundings, the tree four.
        let bound = |size: f64| size * (n as f64 / 16.0 + 5.0) * 2f64.powi(-24);
        assert!((f64::from(dot16(&a, &b)) - exact).abs() <= bound(size), "dot16 of {n}");
        let exact: f64 = a.iter().map(|a| f64::from(*a)).sum();
        let size: f64 = a.iter().map(|a| f64::from(a.abs())).sum();
        assert!((f64::from(sum16(&a)) - exact).abs() <= bound(size), "sum16 of {n}");

        let squares: f64 = a.iter().map(|a| f64::from(*a).powi(2)).sum();
        let relative = (n as f64 / 16.0 + 16.0) * 2f64.powi(-24);
        for (y, (a, b)) in rms_norm(&a, &b, 1e-6).iter().zip(a.iter().zip(&b)) {
            let exact = f64::from(*a) / (squares / n as f64 + 1e-6).sqrt() * f64::from(*b);
            assert!((f64::from(*y) - exact).abs() <= relative * exact.abs(), "rms_norm of {n}");
        }
        let mut y = a.clone();
        l2_norm(&mut y, 1e-6);
        for (y, a) in y.iter().zip(&a) {
            let exact = f64::from(*a) / (squares + 1e-6).sqrt();
            assert!((f64::from(*y) - exact).abs() <= relative * exact.abs(), "l2_norm of {n}");
        }
    }
}

/// Of formats whose values are the difference of two products, the larger product's integer at most.
fn largest_offset(format: Format) -> f64 {
    match format {
        Format::Q4_1 => 15.0,
        Format::Q5_1 => 31.0,
        Format::Q2_K => 45.0,
        Format::Q4_K => 15.0 * 63.0,
        Format::Q5_K => 31.0 * 63.0,
        _ => 0.0,
    }
}

#[test]
fn matvec_agrees_with_decoded_rows() {
    let mut random = Random(2);
    for format in Format::ALL {
        // 2560 columns make 80 blocks, in segments of 16; 17,664 make ragged ones.
        for cols in [256, 2560, 17_664] {
            let rows = 5;
            let data = random_rows(&mut random, format, rows, cols);
            let x: Vec<f32> = (0..cols).map(|i| random.uniform() * if i % 64 < 32 { 1.0 } else { 30.0 }).collect();
            let y = matvec(&Matrix { format, rows, cols, data: (&data).into() }, &x);
            assert_eq!(y.len(), rows);
            let scales: Vec<f64> = x
                .chunks(BLOCK)
                .map(|block| f64::from(block.iter().fold(0f32, |max, x| max.max(x.abs()))) / 127.0)
                .collect();
            for (row, y) in data.chunks(data.len() / rows).zip(&y) {
                let mut w = vec![0.0; cols];
                decode_row(format, row, &mut w).unwrap();
                let (mut exact, mut bound) = (0f64, 0f64);
                for (i, (w, x)) in w.iter().zip(&x).enumerate() {
                    let (w, x) = (f64::from(*w), f64::from(*x));
                    exact += w * x;
                    // Half a step of the activation, and roundings of the sum.
                    let step = if format.is_quantised() { scales[i / BLOCK] * 0.501 } else { 0.0 };
                    bound += w.abs() * (step + (x.abs() + step) * (cols as f64 / 32.0 + 40.0) * 2f64.powi(-24));
                }
                // An offset cancels, and is rounded apart from the rest.
                let slack = if largest_offset(format) > 0.0 { 1e-4 * bound.max(1.0) } else { 0.0 };
                let error = (f64::from(*y) - exact).abs();
                assert!(error <= bound + slack, "{}: {error} > {bound}", format.name());
            }
        }
    }
}

#[test]
fn matvec_of_what_survives_quantisation_is_exact() {
    // Activations that are whole steps lose nothing, so only roundings of the sum remain: this catches a wrong element
    // that the bound on activation rounding would hide.
    let mut random = Random(3);
    for format in Format::ALL.into_iter().filter(|format| format.is_quantised()) {
        let (rows, cols) = (4, 512);
        let data = random_rows(&mut random, format, rows, cols);
        for probe in 0..cols {
            let mut x = vec![0f32; cols];
            x[probe] = 127.0;
            let y = matvec(&Matrix { format, rows, cols, data: (&data).into() }, &x);
            for (row, y) in data.chunks(data.len() / rows).zip(&y) {
                let mut w = vec![0.0; cols];
                decode_row(format, row, &mut w).unwrap();
                let exact = f64::from(w[probe]) * 127.0;
                let slack = 127.0 * 0.1 * largest_offset(format) * 3e-7;
                assert!(
                    (f64::from(*y) - exact).abs() <= exact.abs() * 3e-7 + slack,
                    "{} element {probe}: {y} for {exact}",
                    format.name()
                );
            }
        }
    }
}

#[test]
fn quantisation_keeps_zero_blocks_and_rounds_ties_to_even() {
    let mut x = vec![0f32; 64];
    x[0] = 127.0;
    x[1] = 2.5;
    x[2] = -3.5;
    x[40] = 1e-38;
    let quantised = quantise(&x);
    assert_eq!(quantised.q[0][..3], [127, 2, -4]);
    assert_eq!((quantised.d[0], quantised.d[1]), (1.0, 0.0));
    assert_eq!(quantised.q[1], [0; 32]);
}

/// One prompt of a file of llama.cpp's figures: on weights widened to F32, and on the file itself.
struct Prompt {
    name: String,
    ids: Vec<u32>,
    exact: Figures,
    native: Figures,
}

struct Figures {
    /// nll[i] is that of ids[i + 1].
    nll: Vec<f64>,
    argmax: Vec<usize>,
    argmax_logit: Vec<f64>,
    last_logits: Vec<f64>,
    greedy: Vec<u32>,
}

fn fixtures() -> Option<PathBuf> {
    let root = std::env::var_os("BANKSHOT_FIXTURES");
    if root.is_none() {
        println!("skipped: BANKSHOT_FIXTURES is not set");
    }
    root.map(PathBuf::from)
}

fn prompts(root: &std::path::Path, model: &str) -> Vec<Prompt> {
    let path = root.join("oracle").join(model).with_extension("json.gz");
    let output = std::process::Command::new("gzip").arg("-dc").arg(path).output().unwrap();
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let floats = |value: &serde_json::Value| -> Vec<f64> {
        value.as_array().unwrap().iter().map(|value| value.as_f64().unwrap()).collect()
    };
    let ids = |value: &serde_json::Value| -> Vec<u32> { floats(value).iter().map(|id| *id as u32).collect() };
    let figures = |value: &serde_json::Value| Figures {
        nll: floats(&value["nll"]),
        argmax: floats(&value["argmax"]).iter().map(|id| *id as usize).collect(),
        argmax_logit: floats(&value["argmax_logit"]),
        last_logits: floats(&value["last_logits"]),
        greedy: ids(&value["greedy"]),
    };
    let results = document["results"].as_object().unwrap();
    let prompt = |(name, value): (&String, &serde_json::Value)| Prompt {
        name: name.clone(),
        ids: ids(&value["ids"]),
        exact: figures(&value["exact"]),
        native: figures(&value["native"]),
    };
    results.iter().map(prompt).collect()
}

fn argmax(logits: &[f32]) -> usize {
    (1..logits.len()).fold(0, |best, i| if logits[i] > logits[best] { i } else { best })
}

fn nll(logits: &[f32], id: u32) -> f64 {
    let max = logits.iter().fold(f32::NEG_INFINITY, |max, x| max.max(*x));
    let sum: f64 = logits.iter().map(|x| f64::from(x - max).exp()).sum();
    sum.ln() - f64::from(logits[id as usize] - max)
}

fn rms(differences: impl Iterator<Item = f64>) -> f64 {
    let (sum, n) = differences.fold((0.0, 0), |(sum, n), d| (sum + d * d, n + 1));
    (sum / f64::from(n)).sqrt()
}

/// Distances of a run from `exact`, and those of `native` from it.
#[derive(Default)]
struct Distance {
    argmax_logit: f64,
    nll: f64,
    last_logits: f64,
    last_rms: f64,
    native_last_rms: f64,
    positions: usize,
    agreed: usize,
    native_agreed: usize,
    greedy_agreed: usize,
    native_greedy_agreed: usize,
}

fn compare(session: &mut OracleSession<'_>, prompt: &Prompt) -> Distance {
    let mut d = Distance { positions: prompt.ids.len(), ..Distance::default() };
    session.reset();
    let mut logits = Vec::new();
    for (i, id) in prompt.ids.iter().enumerate() {
        logits = session.step(*id);
        let best = argmax(&logits);
        d.agreed += usize::from(best == prompt.exact.argmax[i]);
        d.native_agreed += usize::from(prompt.native.argmax[i] == prompt.exact.argmax[i]);
        d.argmax_logit = d.argmax_logit.max((f64::from(logits[best]) - prompt.exact.argmax_logit[i]).abs());
        if let Some(next) = prompt.ids.get(i + 1) {
            d.nll = d.nll.max((nll(&logits, *next) - prompt.exact.nll[i]).abs());
        }
    }
    let exact = &prompt.exact.last_logits;
    d.last_logits = logits.iter().zip(exact).map(|(a, b)| (f64::from(*a) - b).abs()).fold(0.0, f64::max);
    d.last_rms = rms(logits.iter().zip(exact).map(|(a, b)| f64::from(*a) - b));
    d.native_last_rms = rms(prompt.native.last_logits.iter().zip(exact).map(|(a, b)| a - b));
    for (i, expected) in prompt.exact.greedy.iter().enumerate() {
        let next = argmax(&logits) as u32;
        if next != *expected {
            break;
        }
        d.greedy_agreed = i + 1;
        logits = session.step(next);
    }
    let native = prompt.native.greedy.iter().zip(&prompt.exact.greedy);
    d.native_greedy_agreed = native.take_while(|(a, b)| a == b).count();
    println!(
        "  {:8} {:4} tokens: argmax logit {:.2e}, nll {:.2e}, last logits max {:.2e} rms {:.3e} (native {:.3e}), argmax \
         agreed {} (native {}), greedy {} (native {})",
        prompt.name,
        d.positions,
        d.argmax_logit,
        d.nll,
        d.last_logits,
        d.last_rms,
        d.native_last_rms,
        d.agreed,
        d.native_agreed,
        d.greedy_agreed,
        d.native_greedy_agreed
    );
    d
}

fn compare_model(root: &std::path::Path, model: &str) -> Vec<Distance> {
    let file = GgufFile::open(&root.join("models").join(model).with_extension("gguf")).unwrap();
    let bound = Bound::new(&file).unwrap();
    let mut session = OracleSession::new(&file, &bound, KvType::F32);
    println!("{model}");
    let started = std::time::Instant::now();
    let mut steps = 0;
    let distances = prompts(root, model)
        .iter()
        .map(|prompt| {
            let distance = compare(&mut session, prompt);
            steps += distance.positions + distance.greedy_agreed;
            distance
        })
        .collect();
    println!("  {:.1} tokens/s", f64::from(steps as u32) / started.elapsed().as_secs_f64());
    distances
}

#[test]
fn float_weights_give_the_logits_of_llama_cpp() {
    let Some(root) = fixtures() else { return };
    for model in ["qwen4exp-BF16", "qwen35-BF16", "qwen35moe-BF16", "qwen3next-BF16"] {
        let all = compare_model(&root, model);
        assert_eq!(all.len(), 6, "prompts of {model}");
        for d in all {
            assert!(d.argmax_logit < 1e-3 && d.nll < 1e-3 && d.last_logits < 1e-3, "{model}");
            assert_eq!((d.agreed, d.greedy_agreed), (d.positions, 64), "{model}");
        }
    }
}

/// Every quantised file that has figures.
const QUANTISED: [&str; 11] = [
    "demo-ud",
    "qwen4exp-UDMIX",
    "qwen4exp-IQ3_XXS",
    "qwen4exp-MTP-IQ2_XXS",
    "qwen35-Q8_0",
    "qwen35-Q4_K_M",
    "qwen35-IQ2_XXS",
    "qwen35moe-Q8_0",
    "qwen35moe-IQ3_XXS",
    "qwen3next-IQ4_XS",
    "qwen3next-IQ2_XXS",
];

#[test]
fn quantised_weights_are_as_near_to_exact_as_llama_cpp_is() {
    let Some(root) = fixtures() else { return };
    for model in QUANTISED {
        let all = compare_model(&root, model);
        let mean = |figure: fn(&Distance) -> f64| rms(all.iter().map(figure));
        let (ours, native) = (mean(|d| d.last_rms), mean(|d| d.native_last_rms));
        let agreed: usize = all.iter().map(|d| d.agreed).sum();
        let native_agreed: usize = all.iter().map(|d| d.native_agreed).sum();
        let positions: usize = all.iter().map(|d| d.positions).sum();
        println!(
            "  rms over prompts {ours:.4e}, native {native:.4e}; argmax {agreed} and {native_agreed} of {positions}"
        );
        assert!(ours <= 1.1 * native, "{model}: {ours} against {native}");
        assert!(agreed as f64 >= native_agreed as f64 - 0.01 * positions as f64, "{model}");
    }
}
