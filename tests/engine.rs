//! Whole models on the CPU device: the scalar reference bit for bit, whatever the chunks, and figures of llama.cpp.
//!
//! `tests/data/demo/oracle.json` holds, for five prompts of the demo model, llama.cpp's token ids, most likely tokens and greedy continuation with float
//! activations, and how far its own quantised arithmetic lies from that; `last_logits.f32` the logits of each prompt's last position, in the file's order.

#[path = "support/device.rs"]
mod device_choice;
#[path = "support/gguf_writer.rs"]
mod gguf_writer;
#[path = "support/random.rs"]
#[allow(dead_code, reason = "shared with other tests")]
mod random;
#[path = "support/random_model.rs"]
mod random_model;

use std::sync::{Arc, OnceLock};

use bankshot::cli::DEMO_MODEL;
use bankshot::device::Card;
use bankshot::exec::{Breakdown, Engine, EngineError, argmax};
use bankshot::load::{Model, TableOptions, Tables};
use bankshot::model::{Census, KvType};
use bankshot::oracle::OracleSession;
use bankshot::plan::{ArenaKind, Change, Inventory, Options, Plan, PlanError, RESERVE_BYTES, StateKind, Weight};
use device_choice::test_device;

fn demo() -> Arc<Model> {
    static MODEL: OnceLock<Arc<Model>> = OnceLock::new();
    Arc::clone(MODEL.get_or_init(|| Arc::new(Model::from_static(DEMO_MODEL).unwrap())))
}

fn engine(model: Arc<Model>, context: usize, chunk: usize, kv: KvType) -> Engine {
    let cards = vec![Card::open(test_device().index).unwrap()];
    let plan = Engine::plan_for(&model, &cards, Options::new(context, chunk, kv)).unwrap();
    let tables = Tables::open(model.file(), model.bound(), &TableOptions::default()).unwrap();
    Engine::open(model, tables, cards, plan, None, &mut |_| {}).unwrap()
}

fn all_logits(engine: &mut Engine, ids: &[u32]) -> Vec<Vec<u32>> {
    let mut rows = Vec::new();
    engine
        .feed_each(ids, |position, logits| {
            assert_eq!(position, rows.len());
            rows.push(logits.iter().map(|logit| logit.to_bits()).collect());
        })
        .unwrap();
    rows
}

struct Prompt {
    name: String,
    text: String,
    ids: Vec<u32>,
    argmax: Vec<u32>,
    greedy: Vec<u32>,
    native_rms: f64,
    native_agreement: f64,
    last_logits: Vec<f32>,
}

fn prompts() -> Vec<Prompt> {
    let json: serde_json::Value = serde_json::from_slice(include_bytes!("data/demo/oracle.json")).unwrap();
    let last = include_bytes!("data/demo/last_logits.f32");
    let mut last = last.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes));
    let ids =
        |value: &serde_json::Value| value.as_array().unwrap().iter().map(|id| id.as_u64().unwrap() as u32).collect();
    // The logits lie in alphabetical order of the prompts, as the map iterates.
    json.as_object()
        .unwrap()
        .iter()
        .map(|(name, p)| Prompt {
            name: name.clone(),
            text: p["text"].as_str().unwrap().to_owned(),
            ids: ids(&p["ids"]),
            argmax: ids(&p["argmax"]),
            greedy: ids(&p["greedy"]),
            native_rms: p["native_rms"].as_f64().unwrap(),
            native_agreement: p["native_agreement"].as_f64().unwrap(),
            last_logits: last.by_ref().take(4096).collect(),
        })
        .collect()
}

#[test]
fn chunks_do_not_change_bits_and_the_reference_has_them() {
    // Selection is sparse from token 132 on; the end-of-sequence token 4072 inside cuts the n-grams.
    let mut ids: Vec<u32> = prompts().into_iter().find(|p| p.name == "long").unwrap().ids[..170].to_vec();
    ids[150] = 4072;
    for kv in [KvType::F16, KvType::F32] {
        let whole = all_logits(&mut engine(demo(), 192, 192, kv), &ids);
        assert_eq!(whole.len(), ids.len());
        for chunk in [64, 7, 1] {
            let mut engine = engine(demo(), 192, chunk, kv);
            let rows = all_logits(&mut engine, &ids);
            assert!(rows == whole, "chunks of {chunk}, {kv:?} cache");
            // The recorded step of one token, behind a prompt.
            engine.reset().unwrap();
            engine.feed(&ids[..140]).unwrap();
            for (at, id) in ids.iter().enumerate().skip(140) {
                let logits: Vec<u32> = engine.feed(&[*id]).unwrap().iter().map(|logit| logit.to_bits()).collect();
                assert!(logits == whole[at], "step at {at}, chunks of {chunk}, {kv:?} cache");
            }
        }
        let model = demo();
        let mut oracle = OracleSession::new(model.file(), model.bound(), kv);
        for (at, id) in ids.iter().enumerate() {
            let logits: Vec<u32> = oracle.step(*id).iter().map(|logit| logit.to_bits()).collect();
            assert!(logits == whole[at], "reference at {at}, {kv:?} cache");
        }
    }
}

#[test]
fn measuring_changes_no_bits_and_counts_what_is_read() {
    let ids: Vec<u32> = prompts().into_iter().find(|p| p.name == "long").unwrap().ids[..40].to_vec();
    let (mut usual, mut measured) = (engine(demo(), 64, 16, KvType::F16), engine(demo(), 64, 16, KvType::F16));
    let (mut prompt, mut step) = (Breakdown::default(), Breakdown::default());
    assert_eq!(usual.feed(&ids).unwrap(), measured.feed_measured(&ids, &mut prompt).unwrap());
    assert_eq!(usual.feed(&ids[..1]).unwrap(), measured.feed_measured(&ids[..1], &mut step).unwrap());
    assert_eq!(usual.ids(), measured.ids());

    let (plan, card) = (usual.plan(), &usual.plan().cards[0]);
    let experts = plan.spec.experts.as_ref().unwrap();
    // A token reads every matrix once, of experts those it uses.
    let used = |weight: &Weight| weight.tensor.experts.map_or(1, |_| experts.used as u64);
    // What a step reads is what the header says a token reads.
    assert_eq!(step.weight_bytes(), Census::of(usual.model().bound()).active_bytes_total());
    let state: u64 =
        card.state.iter().filter(|item| item.kind == StateKind::Matrix).map(|item| item.region.bytes).sum();
    let weights: u64 = card.weights.iter().map(|weight| used(weight) * weight.matrix_bytes).sum();
    assert!(step.ops().iter().map(|op| op.bytes).sum::<u64>() > weights + state);
    let elements = |weight: &Weight| (weight.tensor.rows * weight.tensor.cols) as u64;
    let products = |breakdown: &Breakdown| breakdown.ops().iter().map(|op| op.products).sum::<u64>();
    assert_eq!(products(&step), card.weights.iter().map(|weight| used(weight) * elements(weight)).sum::<u64>());
    // All rows of the prompt go through all matrices but the last, which has the last row alone.
    let head = (plan.spec.vocab * plan.spec.hidden) as u64;
    let mixer: u64 = card.weights.iter().rev().skip(1).take(2).map(elements).sum();
    assert_eq!(products(&prompt), 40 * (products(&step) - head - mixer) + head + mixer);
    // The demo chooses 4 of 16 experts: 16 tokens cannot do with 4, and no chunk reads one twice.
    for op in prompt.ops().iter().filter(|op| op.name.starts_with("expert_") && op.matrix.is_some()) {
        let one = card.weights.iter().find(|weight| {
            weight.tensor.experts.is_some()
                && Some((weight.tensor.format, weight.tensor.rows, weight.tensor.cols)) == op.matrix
        });
        let read = op.weight_bytes / one.unwrap().tensor.matrix_bytes() as u64;
        assert!(read > 4 * op.calls() as u64 && read <= 16 * op.calls() as u64, "{}: {read} experts", op.name);
    }
    assert_eq!(prompt.ops().iter().find(|op| op.name == "expert_down").unwrap().calls(), 3 * card.layers.len());
}

#[test]
fn every_architecture_has_the_bits_of_the_reference() {
    for arch in ["qwen35", "qwen35moe", "qwen3next", "qwen4exp"] {
        let model = Arc::new(Model::from_static(random_model::random_model(arch).leak()).unwrap());
        assert_eq!(model.bound().warnings, Vec::<String>::new(), "{arch}");
        let ids: Vec<u32> = (0..75u32).map(|i| if i == 40 { 7 } else { i * i * 31 % 263 }).collect();
        for kv in [KvType::F16, KvType::F32] {
            let mut oracle = OracleSession::new(model.file(), model.bound(), kv);
            let expected: Vec<Vec<f32>> = ids.iter().map(|id| oracle.step(*id)).collect();
            assert!(expected.iter().flatten().all(|logit| logit.is_finite()), "{arch}");
            let expected: Vec<Vec<u32>> =
                expected.iter().map(|row| row.iter().map(|logit| logit.to_bits()).collect()).collect();
            for chunk in [75, 9, 1] {
                let rows = all_logits(&mut engine(Arc::clone(&model), 80, chunk, kv), &ids);
                let differs = rows.iter().zip(&expected).position(|(a, b)| a != b);
                assert_eq!(differs, None, "{arch}, chunks of {chunk}, {kv:?} cache: first position that differs");
            }
        }
    }
}

#[test]
fn demo_model_follows_llama_cpp() {
    let model = demo();
    let mut engine = engine(Arc::clone(&model), 1400, 256, KvType::F32);
    let (mut ours, mut native, mut agreed, mut native_agreed, mut positions) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for prompt in prompts() {
        assert_eq!(model.tokenizer().encode(&prompt.text, true).unwrap(), prompt.ids, "{}", prompt.name);
        engine.reset().unwrap();
        let mut choices = Vec::new();
        let mut last = Vec::new();
        engine
            .feed_each(&prompt.ids, |_, logits| {
                choices.push(argmax(logits));
                last = logits.to_vec();
            })
            .unwrap();
        let squares = last.iter().zip(&prompt.last_logits).map(|(a, b)| f64::from(a - b).powi(2)).sum::<f64>();
        let rms = (squares / last.len() as f64).sqrt();
        println!("{}: rms {rms:.5}, llama.cpp's own {:.5}", prompt.name, prompt.native_rms);
        assert!(rms <= 1.1 * prompt.native_rms, "{}: rms {rms}, llama.cpp's own {}", prompt.name, prompt.native_rms);
        let n = choices.len() as f64;
        agreed += choices.iter().zip(&prompt.argmax).filter(|(a, b)| a == b).count() as f64;
        native_agreed += prompt.native_agreement * n;
        positions += n;
        ours += rms * rms;
        native += prompt.native_rms * prompt.native_rms;

        let mut next = argmax(&last);
        for (at, expected) in prompt.greedy.iter().enumerate() {
            // The fourth token of the story is a choice between logits 0.001 apart, where llama.cpp's own two ways of computing differ too.
            if prompt.name == "story" && at == 3 {
                break;
            }
            assert_eq!(next, *expected, "{} token {at}", prompt.name);
            if model.tokenizer().stop_ids().contains(&next) {
                break;
            }
            next = argmax(engine.feed(&[next]).unwrap());
        }
    }
    assert!(ours <= 1.1 * 1.1 * native);
    assert!(
        agreed / positions >= native_agreed / positions - 0.01,
        "agreement {} of {positions}, llama.cpp's own {native_agreed}",
        agreed
    );
}

#[test]
fn what_cannot_be_computed_is_refused_and_nothing_is_lost() {
    let mut engine = engine(demo(), 16, 4, KvType::F16);
    let before = engine.feed(&[1, 2, 3]).unwrap().to_vec();
    assert!(matches!(engine.feed(&[]), Err(EngineError::NoTokens)));
    assert!(matches!(engine.feed(&[5, 4096]), Err(EngineError::Token { id: 4096, vocab: 4096 })));
    let error = engine.feed(&[1; 14]).unwrap_err();
    assert_eq!(error.to_string(), "context is full: 3 tokens are in it, 14 more were asked for, and it holds 16");
    assert_eq!(engine.position(), 3);
    // The state is as it was: the same tokens again give the same logits.
    engine.feed(&[4; 13]).unwrap();
    assert_eq!(engine.position(), 16);
    engine.reset().unwrap();
    assert_eq!(engine.feed(&[1, 2, 3]).unwrap(), before);
}

#[test]
fn plans_say_what_does_not_fit() {
    let model = demo();
    let options = Options::new(8192, 256, KvType::F16);
    let fit = |options: Options, free_bytes: u64| {
        let mut inventory = Inventory::unlimited(1);
        inventory.cards[0].free_bytes = free_bytes;
        // No room for experts beside the card.
        inventory.host.free_bytes = 0;
        Plan::fit(model.bound(), options, &inventory)
    };
    let plan = Plan::new(model.bound(), options).unwrap();
    assert_eq!(plan, Plan::new(model.bound(), options).unwrap(), "planning is pure");
    let needed = plan.cards[0].ledger.total(false) + RESERVE_BYTES;
    let fitted = fit(options, needed).unwrap();
    assert_eq!(fitted.cards, plan.cards);
    // With less, fewer experts are resident, and the host has no room for the others.
    let Err(PlanError::HostMemory { host_bytes: 0, least_bytes, .. }) = fit(options, needed - 1) else {
        panic!("fits")
    };
    assert!(least_bytes > 0);
    let experts = plan.cards[0].ledger.bytes(ArenaKind::Experts);
    let fewest = needed - experts + experts / 16;
    let mut inventory = Inventory::unlimited(1);
    inventory.cards[0].free_bytes = fewest - (1 << 20);
    let Err(PlanError::Memory(table)) = Plan::fit(model.bound(), options, &inventory) else { panic!("fits") };
    let Change::Chunk { from: 256, to } = table.change else { panic!("{table}") };
    assert!(Plan::fit(model.bound(), Options { chunk: to, ..options }, &inventory).is_ok());
    assert!(Plan::fit(model.bound(), Options { chunk: 2 * to, ..options }, &inventory).is_err());
    // Where the chunk cannot be smaller, the context has to be shorter.
    let options = Options { chunk: 1, ..options };
    let plan = Plan::new(model.bound(), options).unwrap();
    let experts = plan.cards[0].ledger.bytes(ArenaKind::Experts);
    let fewest = plan.cards[0].ledger.total(false) + RESERVE_BYTES - experts + experts / 16;
    inventory.cards[0].free_bytes = fewest - (1 << 20);
    let Err(PlanError::Memory(table)) = Plan::fit(model.bound(), options, &inventory) else { panic!("fits") };
    let Change::Context { from: 8192, to } = table.change else { panic!("{table}") };
    assert!(to > 7000 && to < 8192, "{table}");
    assert!(Plan::fit(model.bound(), Options { context: to, ..options }, &inventory).is_ok());
    assert!(Plan::fit(model.bound(), Options { context: to + 1, ..options }, &inventory).is_err());
    inventory.cards[0].free_bytes = 1 << 20;
    let Err(PlanError::Memory(table)) = Plan::fit(model.bound(), options, &inventory) else { panic!("fits") };
    assert!(table.to_string().contains("neither a smaller --chunk nor a shorter --ctx is enough"), "{table}");
    let error = Plan::new(model.bound(), Options { context: 8193, ..options }).unwrap_err();
    assert_eq!(error.to_string(), "context: expected 1 to 8192 tokens (the model's own limit), got 8193");
}
