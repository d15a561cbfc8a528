//! Compares Bankshot on the OpenCL CPU device with llama.cpp's CPU backend: the same file, the same tokens, in turn.

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use bankshot::device::{Card, devices};
use bankshot::exec::{Breakdown, Engine, argmax};
use bankshot::load::{Model, TableOptions, Tables};
use bankshot::model::KvType;
use bankshot::plan::{DEFAULT_CHUNK, Options};
use clap::Parser;
use llama_cpp_2::context::LlamaContext;
use llama_cpp_2::context::params::LlamaContextParams;
use llama_cpp_2::llama_backend::LlamaBackend;
use llama_cpp_2::llama_batch::LlamaBatch;
use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::model::params::LlamaModelParams;
use llama_cpp_2::token::LlamaToken;

/// Bankshot's speed over llama.cpp's that is asked for.
const PROMPT_FLOOR: f64 = 0.4;
const DECODE_FLOOR: f64 = 0.7;
/// Tokens of llama.cpp's physical batch, its own default.
const UBATCH: u32 = 512;

/// Compares the speeds of Bankshot and llama.cpp on this machine's CPU.
#[derive(Parser)]
struct Args {
    /// GGUF file
    model: PathBuf,
    #[arg(long, value_name = "N", default_value_t = 512)]
    prompt_tokens: usize,
    #[arg(long, value_name = "N", default_value_t = 64)]
    decode_tokens: usize,
    /// Threads of llama.cpp; Bankshot uses every core that the process may run on
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Most prompt tokens that Bankshot computes together
    #[arg(long, value_name = "N", default_value_t = DEFAULT_CHUNK)]
    chunk: usize,
    /// How often each engine is measured
    #[arg(long, value_name = "N", default_value_t = 3)]
    rounds: usize,
}

/// Tokens a second.
#[derive(Clone, Copy)]
struct Speed {
    prompt: f64,
    decode: f64,
    /// Of the fastest step, which other programs disturbed least.
    fastest: f64,
    /// Tokens of the prompt and steps for a second of the process's time on cores.
    prompt_cpu: f64,
    decode_cpu: f64,
}

/// Seconds that all threads of the process have spent on cores.
fn cpu_seconds() -> Result<f64> {
    let text = std::fs::read_to_string("/proc/self/stat")?;
    // The name in parentheses may hold spaces; user and system time are fields 14 and 15, in ticks of a hundredth.
    let fields = text.rsplit(')').next().unwrap_or_default().split_whitespace().skip(11).take(2);
    Ok(fields.map(|ticks| ticks.parse::<f64>()).sum::<Result<f64, _>>()? / 100.0)
}

/// A prompt and then greedy steps, each engine's own. `feed` appends tokens and gives the most likely next one.
fn measure(prompt: &[u32], steps: usize, mut feed: impl FnMut(&[u32]) -> Result<u32>) -> Result<Speed> {
    let (begin, cpu) = (Instant::now(), cpu_seconds()?);
    let mut next = feed(prompt)?;
    let tokens = prompt.len() as f64;
    let (prompt, prompt_cpu) = (tokens / begin.elapsed().as_secs_f64(), tokens / (cpu_seconds()? - cpu));
    let (begin, cpu) = (Instant::now(), cpu_seconds()?);
    let mut fastest = f64::INFINITY;
    for _ in 0..steps {
        let begin = Instant::now();
        next = feed(&[next])?;
        fastest = fastest.min(begin.elapsed().as_secs_f64());
    }
    let tokens = steps as f64;
    let (decode, decode_cpu) = (tokens / begin.elapsed().as_secs_f64(), tokens / (cpu_seconds()? - cpu));
    Ok(Speed { prompt, decode, fastest: 1.0 / fastest, prompt_cpu, decode_cpu })
}

fn bankshot(engine: &mut Engine, prompt: &[u32], steps: usize) -> Result<Speed> {
    engine.reset()?;
    measure(prompt, steps, |ids| Ok(argmax(engine.feed(ids)?)))
}

fn llama(context: &mut LlamaContext<'_>, prompt: &[u32], steps: usize) -> Result<Speed> {
    context.clear_kv_cache();
    measure(prompt, steps, |ids| {
        let mut last = 0;
        for ids in ids.chunks(UBATCH as usize) {
            let tokens: Vec<LlamaToken> = ids.iter().map(|id| LlamaToken(*id as i32)).collect();
            context.decode(&mut LlamaBatch::get_one(&tokens)?)?;
            last = argmax(context.get_logits_ith(-1));
        }
        Ok(last)
    })
}

fn open_bankshot(path: &Path, context: usize, chunk: usize) -> Result<Engine> {
    let device = devices()?.into_iter().find(|device| device.is_cpu).context("no OpenCL CPU device")?;
    let cards = vec![Card::open(device.index)?];
    let model = Arc::new(Model::open(path)?);
    let plan = Engine::plan_for(&model, &cards, Options::new(context, chunk.min(context), KvType::F16))?;
    let tables = Tables::open(model.file(), model.bound(), &TableOptions::default())?;
    Ok(Engine::open(model, tables, cards, plan, None, &mut |_| ())?)
}

/// Token ids of the prompt: any of the vocabulary, the same at every run.
fn random_ids(count: usize, vocab: usize) -> Vec<u32> {
    let mut state = 1u64;
    let mut next = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((state >> 33) % vocab as u64) as u32
    };
    (0..count).map(|_| next()).collect()
}

/// The load average of the last minute: whoever else uses the cores slows both engines.
fn load() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().unwrap_or("unknown").to_owned()
}

/// Median, least and greatest.
fn spread(values: impl Iterator<Item = f64>) -> (f64, f64, f64) {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    (values[values.len() / 2], values[0], values[values.len() - 1])
}

fn main() -> Result<()> {
    let args = Args::parse();
    ensure!(args.prompt_tokens > 0 && args.decode_tokens > 0 && args.rounds > 0, "expected counts above 0");
    let cores = std::thread::available_parallelism()?.get();
    let threads = args.threads.unwrap_or(cores);
    if threads != cores {
        bail!("--threads {threads}: Bankshot uses all {cores} cores of the process; choose them with taskset");
    }
    let context_tokens = args.prompt_tokens + args.decode_tokens + 1;

    let mut backend = LlamaBackend::init()?;
    backend.void_logs();
    let model = LlamaModel::load_from_file(&backend, &args.model, &LlamaModelParams::default())?;
    let params = LlamaContextParams::default()
        .with_n_ctx(NonZeroU32::new(context_tokens as u32))
        .with_n_batch(UBATCH)
        .with_n_ubatch(UBATCH)
        .with_n_threads(threads as i32)
        .with_n_threads_batch(threads as i32);
    let mut context = model.new_context(&backend, params)?;
    let mut engine = open_bankshot(&args.model, context_tokens, args.chunk)?;

    let ids = random_ids(args.prompt_tokens, engine.plan().spec.vocab);
    println!("{} on {threads} cores, load {}", args.model.display(), load());
    println!("prompt of {} tokens, then {} steps of one", ids.len(), args.decode_tokens);
    // Both engines touch their memory and the file before they are measured.
    let warm = &ids[..ids.len().min(64)];
    llama(&mut context, warm, 4)?;
    bankshot(&mut engine, warm, 4)?;
    let (mut theirs, mut ours) = (Vec::new(), Vec::new());
    for round in 1..=args.rounds {
        theirs.push(llama(&mut context, &ids, args.decode_tokens)?);
        ours.push(bankshot(&mut engine, &ids, args.decode_tokens)?);
        let (a, b) = (theirs[round - 1], ours[round - 1]);
        println!(
            "round {round}: llama.cpp {:.2} and {:.2} tok/s, Bankshot {:.2} and {:.2} tok/s, load {}",
            a.prompt,
            a.decode,
            b.prompt,
            b.decode,
            load()
        );
    }
    type Figure = fn(&Speed) -> f64;
    let figures: [(&str, &str, f64, Figure); 5] = [
        ("prompt", "a second", PROMPT_FLOOR, |speed| speed.prompt),
        ("prompt", "a CPU second", PROMPT_FLOOR, |speed| speed.prompt_cpu),
        ("decode", "a second", DECODE_FLOOR, |speed| speed.decode),
        ("decode", "a second, fastest step", DECODE_FLOOR, |speed| speed.fastest),
        ("decode", "a CPU second", DECODE_FLOOR, |speed| speed.decode_cpu),
    ];
    println!("\n{:<8} {:<24} {:<10} {:>8} {:>8} {:>8}   ratio", "", "tokens", "", "median", "least", "most");
    for (name, unit, floor, figure) in figures {
        let (a, b) = (spread(theirs.iter().map(figure)), spread(ours.iter().map(figure)));
        println!("{name:<8} {unit:<24} {:<10} {:>8.2} {:>8.2} {:>8.2}", "llama.cpp", a.0, a.1, a.2);
        let ratio = b.0 / a.0;
        let verdict = if ratio >= floor { "has" } else { "misses" };
        println!(
            "{:<33} {:<10} {:>7.2} {:>8.2} {:>8.2}   {ratio:.3}, {verdict} the {floor} asked for",
            "", "Bankshot", b.0, b.1, b.2
        );
    }

    let (mut prompt, mut decode) = (Breakdown::default(), Breakdown::default());
    engine.reset()?;
    let mut next = argmax(engine.feed_measured(&ids, &mut prompt)?);
    for _ in 0..args.decode_tokens {
        let logits = engine.feed_measured(&[next], &mut decode)?;
        next = decode.host("argmax", || argmax(logits));
    }
    let seconds = 1.0 / spread(ours.iter().map(|speed| speed.prompt)).0 * ids.len() as f64;
    println!("\nBankshot's prompt, usually {:.0} ms, with a wait after every operation:\n{prompt}", 1e3 * seconds);
    let seconds = 1.0 / spread(ours.iter().map(|speed| speed.decode)).0 * args.decode_tokens as f64;
    println!("Bankshot's steps, usually {:.0} ms, with a wait after every operation:\n{decode}", 1e3 * seconds);
    Ok(())
}
