//! Benchmark: what it takes to read a sequence again, to restore it from a file, and to take it back from the bank.
//!
//! `cargo test --release --test session_bench -- --nocapture` prints the table. It measures and asserts nothing about time.

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

use std::sync::Arc;
use std::time::Instant;

use bankshot::cli::DEMO_MODEL;
use bankshot::device::Card;
use bankshot::exec::Engine;
use bankshot::load::{Model, TableOptions, Tables};
use bankshot::model::KvType;
use bankshot::plan::Options;
use bankshot::quant::Format;
use bankshot::session::Keeper;
use bankshot::state::Store;
use device_choice::test_device;

/// Repetitions of what is fast, the median of which counts.
const REPETITIONS: usize = 5;

fn ms(engine: &mut Engine, work: impl FnOnce(&mut Engine)) -> f64 {
    let begin = Instant::now();
    work(engine);
    1e3 * begin.elapsed().as_secs_f64()
}

fn median_ms(engine: &mut Engine, prepare: impl Fn(&mut Engine), mut work: impl FnMut(&mut Engine)) -> f64 {
    let mut once = || {
        prepare(engine);
        ms(engine, &mut work)
    };
    let mut times: Vec<f64> = (0..REPETITIONS).map(|_| once()).collect();
    times.sort_by(f64::total_cmp);
    times[REPETITIONS / 2]
}

#[test]
fn reading_again_against_restoring() {
    let long = random_model::random_model_with_context("qwen4exp", &[Format::Q4_K, Format::Q6_K, Format::BF16], 32768);
    let models = [("demo", DEMO_MODEL, &[1024, 8192][..]), ("four random layers", long.leak(), &[1024, 8192, 32768])];
    println!("device: {}", test_device().name);
    println!("times in ms; all results have the same bits");
    println!(
        "{:<20}{:>7} {:>11} {:>10} {:>9} {:>9} {:>9}",
        "model", "tokens", "bytes", "read again", "save", "restore", "bank"
    );
    for (name, bytes, lengths) in models {
        let model = Arc::new(Model::from_static(bytes).unwrap());
        for tokens in lengths.iter().copied() {
            let host_bank_bytes = 64 << 20 << (tokens / 16384);
            let options = Options { host_bank_bytes, ..Options::new(tokens, 256, KvType::F16) };
            let cards = vec![Card::open(test_device().index).unwrap()];
            let plan = Engine::plan_for(&model, &cards, options).unwrap();
            let tables = Tables::open(model.file(), model.bound(), &TableOptions::default()).unwrap();
            let mut engine = Engine::open(Arc::clone(&model), tables, cards, plan, None, &mut |_| {}).unwrap();
            let ids: Vec<u32> = (0..tokens as u32).map(|i| (i * i * 31 + i / 7) % 251 + 10).collect();
            engine.feed(&ids[..64]).unwrap();
            engine.reset().unwrap();
            let read = ms(&mut engine, |engine| {
                engine.feed(&ids).unwrap();
            });
            let expected: Vec<u32> = engine.logits().unwrap().iter().map(|logit| logit.to_bits()).collect();

            let folder = tempfile::tempdir().unwrap();
            let keeper = Keeper::new(Store::open(folder.path()).unwrap(), &engine).unwrap();
            let mut bytes = 0;
            let save = median_ms(
                &mut engine,
                |_| {},
                |engine| bytes = keeper.save(engine, "a", None, false, None).unwrap().bytes,
            );
            let check = |engine: &mut Engine, what: &str| {
                let found: Vec<u32> = engine.logits().unwrap().iter().map(|logit| logit.to_bits()).collect();
                assert!(found == expected && engine.ids() == ids, "{name}, {tokens} tokens: {what}");
            };
            // Rows that are there already would not be copied.
            let other = |engine: &mut Engine| {
                engine.reset().unwrap();
                engine.feed(&[5]).unwrap();
            };
            let restore = median_ms(&mut engine, other, |engine| {
                keeper.restore(engine, "a").unwrap();
            });
            check(&mut engine, "restored");
            assert!(engine.snapshot().unwrap(), "{name}, {tokens} tokens: the bank has room");
            let bank = median_ms(&mut engine, other, |engine| assert_eq!(engine.prompt(&ids).unwrap(), tokens));
            check(&mut engine, "from the bank");
            println!("{name:<20}{tokens:>7} {bytes:>11} {read:>10.1} {save:>9.1} {restore:>9.1} {bank:>9.1}");
        }
    }
}
