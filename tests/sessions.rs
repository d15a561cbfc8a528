//! Sequences that are taken apart and put together again: by snapshots in the bank, by files, over several cards and after a kill. The oracle is a run
//! that was never interrupted, bit for bit.

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

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use bankshot::cli::DEMO_MODEL;
use bankshot::device::{Card, Part};
use bankshot::exec::{Engine, EngineError, argmax};
use bankshot::load::{Model, TableOptions, Tables};
use bankshot::model::KvType;
use bankshot::plan::{Options, PlanError, Split};
use bankshot::quant::Format;
use bankshot::session::{KeepError, Keeper, Sessions, SessionsOptions, TurnFile};
use bankshot::state::{Store, marks};
use bankshot::text::{Message, RenderOptions};
use device_choice::test_device;
use random::Random;

const MODELS: [&str; 5] = ["qwen35", "qwen35moe", "qwen3next", "qwen4exp", "demo"];
/// Formats of the random models: few, so that few kernels are built.
const FORMATS: [Format; 3] = [Format::Q4_K, Format::Q6_K, Format::BF16];
const CONTEXT: usize = 512;

fn model(name: &str) -> Arc<Model> {
    let bytes = match name {
        "demo" => DEMO_MODEL,
        arch => random_model::random_model_of(arch, &FORMATS).leak(),
    };
    Arc::new(Model::from_static(bytes).unwrap())
}

fn cards(count: usize) -> Vec<Card> {
    let index = test_device().index;
    match count {
        1 => vec![Card::open(index).unwrap()],
        _ => (0..count as u32)
            .map(|part| Card::open_part(index, Part { index: part, count: count as u32 }).unwrap())
            .collect(),
    }
}

fn engine_on(model: &Arc<Model>, count: usize, options: Options) -> Engine {
    let cards = cards(count);
    let plan = Engine::plan_for(model, &cards, options).unwrap();
    let tables = Tables::open(model.file(), model.bound(), &TableOptions::default()).unwrap();
    Engine::open(Arc::clone(model), tables, cards, plan, None, &mut |_| {}).unwrap()
}

fn options(kv: KvType) -> Options {
    Options { bank_every: 32, ..Options::new(CONTEXT, 48, kv) }
}

fn engine(model: &Arc<Model>) -> Engine {
    engine_on(model, 1, options(KvType::F16))
}

/// With room for so many snapshots in device memory and as many in the host's, of about 100 tokens each.
fn with_bank(model: &Arc<Model>, count: usize, split: Option<Split>, snapshots: u64) -> Engine {
    let mut probe = engine_on(model, 1, options(KvType::F16));
    probe.feed(&[1]).unwrap();
    let one = probe.layout().fixed_bytes() + probe.layout().row_bytes(0, 100) + (1 << 17);
    let bank_bytes = one * snapshots;
    engine_on(
        model,
        count,
        Options { bank_bytes, host_bank_bytes: bank_bytes * count as u64, split, ..options(KvType::F16) },
    )
}

fn prompt(seed: u32, count: usize) -> Vec<u32> {
    (0..count as u32).map(|i| if i % 41 == 40 { 7 } else { (i * i * 31 + i * seed) % 263 }).collect()
}

fn bits(logits: &[f32]) -> Vec<u32> {
    logits.iter().map(|logit| logit.to_bits()).collect()
}

fn logits(engine: &Engine) -> Vec<u32> {
    bits(engine.logits().expect("the logits after the last token are known"))
}

/// Continues greedily: each token with the bits of the logits that chose it.
fn greedy(engine: &mut Engine, count: usize) -> Vec<(u32, Vec<u32>)> {
    let mut steps = Vec::new();
    for _ in 0..count {
        let chosen = argmax(engine.logits().unwrap());
        steps.push((chosen, logits(engine)));
        engine.feed(&[chosen]).unwrap();
    }
    steps
}

/// What a fresh engine computes for a sequence.
fn fresh(model: &Arc<Model>, ids: &[u32]) -> Vec<u32> {
    let mut engine = engine(model);
    engine.feed(ids).unwrap();
    logits(&engine)
}

fn keeper(folder: &Path, engine: &Engine) -> Keeper {
    Keeper::new(Store::open(folder).unwrap(), engine).unwrap()
}

const CHILD: &str = "KILLED_CHILD";

/// Not a test of its own: the process that `what_was_saved_survives_a_kill` kills.
#[test]
fn child_that_is_killed() {
    let Ok(task) = std::env::var(CHILD) else { return };
    let (name, folder) = task.split_once(' ').unwrap();
    let mut engine = engine(&model(name));
    engine.prompt(&prompt(3, 70)).unwrap();
    greedy(&mut engine, 20);
    keeper(Path::new(folder), &engine).save(&mut engine, "kept", Some(b"notes"), false, None).unwrap();
    println!("saved");
    // Until the parent kills it, in the middle of a step or of the next save.
    let mut file = TurnFile::new("kept", false, None);
    let keeper = keeper(Path::new(folder), &engine);
    loop {
        greedy(&mut engine, 1);
        if engine.position().is_multiple_of(8) {
            file.save(&keeper, &mut engine, Some(b"notes")).unwrap();
        }
        if engine.position() + 1 >= CONTEXT {
            engine.reset().unwrap();
            engine.prompt(&prompt(3, 70)).unwrap();
            greedy(&mut engine, 20);
        }
    }
}

#[test]
fn what_was_saved_survives_a_kill() {
    for name in MODELS {
        let folder = tempfile::tempdir().unwrap();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "child_that_is_killed", "--nocapture"])
            .env(CHILD, format!("{name} {}", folder.path().display()))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap().contains("saved")), "{name}: the child ended");
        std::thread::sleep(Duration::from_millis(150));
        child.kill().unwrap();
        child.wait().unwrap();

        let model = model(name);
        let mut restored = engine(&model);
        let keeper = keeper(folder.path(), &restored);
        let found = keeper.restore(&mut restored, "kept").unwrap();
        assert_eq!(found.notes.as_deref(), Some(&b"notes"[..]));
        let position = restored.position();
        assert!(position >= 90, "{name}: {position}");

        let mut whole = engine(&model);
        whole.prompt(&prompt(3, 70)).unwrap();
        greedy(&mut whole, position - 70);
        assert_eq!(restored.ids(), whole.ids(), "{name}");
        let more = 200.min(CONTEXT - position);
        assert!(greedy(&mut restored, more) == greedy(&mut whole, more), "{name}: after {position} tokens");
    }
}

#[test]
fn chains_of_deltas_give_the_state_of_one_run() {
    for name in MODELS {
        let folder = tempfile::tempdir().unwrap();
        let model = model(name);
        let mut engine = engine_on(&model, 1, options(KvType::F32));
        let keeper = keeper(folder.path(), &engine);
        let ids = prompt(5, 130);
        let mut base = None;
        for (turn, to) in [50, 51, 93, 130].into_iter().enumerate() {
            let from = engine.position();
            engine.feed(&ids[from..to]).unwrap();
            let saved = keeper.save(&mut engine, &format!("turn{turn}"), None, turn % 2 == 1, base.as_ref()).unwrap();
            base = Some(bankshot::session::Base { id: saved.id, ids: engine.ids().to_vec() });
            let info = keeper.store().inspect(&format!("turn{turn}"), true).unwrap();
            assert_eq!((info.from, info.chain.len()), (from as u64, turn), "{name}");
        }
        let expected = greedy(&mut engine, 20);
        engine.feed(&[1]).unwrap();
        keeper.restore(&mut engine, "turn3").unwrap();
        assert!(greedy(&mut engine, 20) == expected, "{name}");
        // Two branches from one node, each a delta of the same state.
        for (branch, id) in [("left", 11), ("right", 12)] {
            let base = keeper.restore(&mut engine, "turn1").unwrap().base;
            engine.feed(&[id, 13]).unwrap();
            keeper.save(&mut engine, branch, None, false, Some(&base)).unwrap();
        }
        for (branch, id) in [("right", 12), ("left", 11)] {
            keeper.restore(&mut engine, branch).unwrap();
            let expected: Vec<u32> = ids[..51].iter().copied().chain([id, 13]).collect();
            assert_eq!(engine.ids(), expected, "{name}");
            let mut other = engine_on(&model, 1, options(KvType::F32));
            other.feed(&expected).unwrap();
            assert!(logits(&engine) == logits(&other), "{name}: {branch}");
        }
    }
}

#[test]
fn the_bank_gives_the_bits_of_a_fresh_run() {
    for name in MODELS {
        let model = model(name);
        for (count, split) in [(1, None), (2, Some(Split::Layer)), (2, Some(Split::Tensor))] {
            let what = format!("{name}, {count} cards, {split:?}");
            let mut engine = with_bank(&model, count, split, 4);
            let ids = prompt(7, 100);
            assert_eq!(engine.prompt(&ids).unwrap(), 0, "{what}");
            let expected = logits(&engine);
            assert!(expected == fresh(&model, &ids), "{what}");
            greedy(&mut engine, 3);
            // The identical prompt: its logits are there, and nothing is computed.
            assert_eq!(engine.prompt(&ids).unwrap(), 100, "{what}");
            assert!(logits(&engine) == expected, "{what}: identical prompt");
            // It goes on from there.
            let mut whole = engine_on(&model, 1, options(KvType::F16));
            whole.feed(&ids).unwrap();
            assert!(greedy(&mut engine, 20) == greedy(&mut whole, 20), "{what}: behind the identical prompt");
            // Another last token, and one in the middle: the last snapshot before the difference.
            for (at, known) in [(99, 96), (70, 64), (31, 0)] {
                let mut other = ids.clone();
                other[at] = 200;
                assert_eq!(engine.prompt(&other).unwrap(), known, "{what}: another token at {at}");
                assert!(logits(&engine) == fresh(&model, &other), "{what}: another token at {at}");
            }
            // Two branches from one node.
            for id in [8, 9, 8, 9] {
                let branch: Vec<u32> = ids[..96].iter().copied().chain([id, 5]).collect();
                engine.prompt(&branch).unwrap();
                assert!(logits(&engine) == fresh(&model, &branch), "{what}: branch {id}");
            }
            let counters = engine.bank_counters().unwrap();
            assert!(counters.hits >= 5 && counters.taken > counters.evicted, "{what}: {counters:?}");
        }
    }
}

#[test]
fn random_prompts_have_the_bits_of_fresh_runs_whatever_was_evicted() {
    for name in ["qwen35", "qwen4exp"] {
        let model = model(name);
        let mut engine = with_bank(&model, 2, Some(Split::Layer), 2);
        let mut reference = engine_on(&model, 1, options(KvType::F16));
        let mut random = Random(17);
        let stems: Vec<Vec<u32>> = (0..4).map(|seed| prompt(seed, 120)).collect();
        for round in 0..60 {
            let mut draw = |below: usize| (random.next() % below as u64) as usize;
            let mut ids = stems[draw(4)][..20 + draw(100)].to_vec();
            if draw(3) > 0 {
                let other = &stems[draw(4)];
                ids.extend(&other[..1 + draw(40)]);
            }
            let known = engine.prompt(&ids).unwrap();
            reference.reset().unwrap();
            reference.feed(&ids).unwrap();
            assert!(logits(&engine) == logits(&reference), "{name}, round {round}: {known} of {} known", ids.len());
            if draw(2) == 0 {
                let steps = draw(12);
                assert!(greedy(&mut engine, steps) == greedy(&mut reference, steps), "{name}, round {round}");
                engine.snapshot().unwrap();
            }
        }
        let counters = engine.bank_counters().unwrap();
        assert!(counters.evicted > 20 && counters.hits >= 20, "{name}: {counters:?}");
    }
}

#[test]
fn interleaved_conversations_do_not_touch_each_other() {
    for name in MODELS {
        let model = model(name);
        for snapshots in [0, 3] {
            let folder = tempfile::tempdir().unwrap();
            let engine = if snapshots > 0 { with_bank(&model, 1, None, snapshots) } else { engine(&model) };
            let keeper = keeper(folder.path(), &engine);
            let idle = SessionsOptions { idle: Duration::ZERO, compress: false };
            let mut sessions = Sessions::new(engine, keeper, idle);
            let mut all = [prompt(1, 60), prompt(2, 75)];
            for turn in 0..6 {
                for (who, ids) in ["anna", "bert"].into_iter().zip(&mut all) {
                    ids.extend(prompt(turn + 20, 9));
                    sessions.prompt(who, ids).unwrap();
                    for _ in 0..3 {
                        let id = argmax(sessions.engine().logits().unwrap());
                        ids.push(id);
                        sessions.step(who, id).unwrap();
                    }
                    assert!(logits(sessions.engine()) == fresh(&model, ids), "{name}, {who}, turn {turn}");
                    sessions.end_turn(who, Some(format!("turn {turn}").as_bytes())).unwrap();
                }
                if turn == 3 {
                    assert_eq!(sessions.park_idle(), ["anna", "bert"]);
                    assert_eq!(sessions.ids("anna"), None);
                    assert!(sessions.open("bert").unwrap());
                    assert_eq!(sessions.notes("bert"), Some(&b"turn 3"[..]));
                    assert!(!sessions.open("carl").unwrap());
                }
            }
            // Turn by turn in the middle of an answer of the other one.
            for round in 0..4 {
                for (who, ids) in ["anna", "bert"].into_iter().zip(&mut all) {
                    ids.push(40 + round);
                    sessions.step(who, 40 + round).unwrap();
                    assert!(logits(sessions.engine()) == fresh(&model, ids), "{name}, {who}, round {round}");
                }
            }
            // A crash loses the turn in flight and nothing before it.
            let engine = sessions.into_engine();
            let keeper = Keeper::new(Store::open(folder.path()).unwrap(), &engine).unwrap();
            let mut sessions = Sessions::new(engine, keeper, idle);
            for (who, ids) in ["anna", "bert"].into_iter().zip(&all) {
                assert!(sessions.open(who).unwrap());
                assert_eq!(sessions.ids(who), Some(&ids[..ids.len() - 4]), "{name}, {who}");
                let known = sessions.prompt(who, ids).unwrap();
                assert!(known >= ids.len() - 4 && logits(sessions.engine()) == fresh(&model, ids), "{name}, {who}");
            }
            sessions.delete("anna").unwrap();
            assert!(!sessions.open("anna").unwrap());
            let left: Vec<String> =
                sessions.keeper().store().list().unwrap().into_iter().map(|entry| entry.name).collect();
            assert!(left.iter().all(|file| file.starts_with("bert")) && left.contains(&"bert".to_owned()), "{left:?}");
        }
    }
}

#[test]
fn a_file_does_not_know_how_many_cards_wrote_it() {
    for name in MODELS {
        let folder = tempfile::tempdir().unwrap();
        let model = model(name);
        let ids = prompt(9, 83);
        let mut expected = None;
        for (count, split) in [(2, Some(Split::Layer)), (2, Some(Split::Tensor)), (1, None)] {
            let what = format!("{name}, {count} cards, {split:?}");
            let mut engine = engine_on(&model, count, Options { split, ..options(KvType::F16) });
            let keeper = keeper(folder.path(), &engine);
            engine.feed(&ids).unwrap();
            let saved =
                keeper.save(&mut engine, &format!("of{count}{split:?}").replace(['(', ')'], "-"), None, false, None);
            // The same state, and so the same snapshot.
            let id = saved.unwrap().id;
            assert_eq!(*expected.get_or_insert(id), id, "{what}");
        }
        let mut one = engine_on(&model, 1, Options { chunk: 7, context: 300, ..options(KvType::F16) });
        let mut whole = engine_on(&model, 1, options(KvType::F16));
        whole.feed(&ids).unwrap();
        let expected = greedy(&mut whole, 50);
        for entry in Store::open(folder.path()).unwrap().list().unwrap() {
            keeper(folder.path(), &one).restore(&mut one, &entry.name).unwrap();
            assert!(greedy(&mut one, 50) == expected, "{name}: {}", entry.name);
        }
        let mut two = engine_on(&model, 2, Options { split: Some(Split::Layer), ..options(KvType::F16) });
        keeper(folder.path(), &two).restore(&mut two, "ofNone1".trim_end_matches("None1")).unwrap_err();
        keeper(folder.path(), &two).restore(&mut two, "of1None").unwrap();
        assert!(greedy(&mut two, 50) == expected, "{name}: of one card on two");
    }
}

#[test]
fn what_is_refused_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let model = model("qwen4exp");
    let mut engine = engine(&model);
    let keeper_of = |engine: &Engine| keeper(folder.path(), engine);
    let keeper = keeper_of(&engine);
    engine.feed(&prompt(4, 60)).unwrap();
    keeper.save(&mut engine, "a", None, false, None).unwrap();
    let expected = {
        engine.reset().unwrap();
        engine.feed(&prompt(6, 33)).unwrap();
        logits(&engine)
    };
    let refused = |engine: &mut Engine, name: &str, text: &str| {
        let error = keeper_of(engine).restore(engine, name).unwrap_err().to_string();
        assert!(error.contains(text), "{error}");
        assert!(engine.ids() == prompt(6, 33) && logits(engine) == expected, "{text}");
    };
    refused(&mut engine, "b", "session b: expected a file");
    let path = folder.path().join("a.bks");
    let bytes = std::fs::read(&path).unwrap();
    let mut damaged = bytes.clone();
    damaged[bytes.len() / 2] ^= 4;
    std::fs::write(&path, damaged).unwrap();
    refused(&mut engine, "a", "checksum");
    std::fs::write(&path, &bytes).unwrap();
    // Another type of cache, another model of the same shape, less context.
    let mut other = engine_on(&model, 1, options(KvType::F32));
    other.feed(&prompt(6, 33)).unwrap();
    let error = keeper_of(&other).restore(&mut other, "a").unwrap_err().to_string();
    assert!(error.contains("cache: expected f32, found f16"), "{error}");
    let mut changed = random_model::random_model_of("qwen4exp", &FORMATS);
    let half = changed.len() / 2;
    changed[half..].iter_mut().for_each(|byte| *byte ^= 1);
    let changed = Arc::new(Model::from_static(changed.leak()).unwrap());
    let mut other = engine_on(&changed, 1, options(KvType::F16));
    let error = keeper_of(&other).restore(&mut other, "a").unwrap_err().to_string();
    assert!(error.contains("model: expected "), "{error}");
    let mut short = engine_on(&model, 1, Options { context: 59, ..options(KvType::F16) });
    let error = keeper_of(&short).restore(&mut short, "a").unwrap_err().to_string();
    assert!(error.contains("expected at most 59 tokens of context, found 60"), "{error}");
    assert_eq!(short.position(), 0);
    // Images that are not this engine's.
    let image = engine.image(0).unwrap();
    for change in [
        |image: &mut bankshot::state::Image| image.from = 4,
        |image: &mut bankshot::state::Image| drop(image.pieces.pop()),
        |image: &mut bankshot::state::Image| image.pieces[0].push(0),
        |image: &mut bankshot::state::Image| image.logits = Some(vec![0.0; 3]),
    ] {
        let mut changed = image.clone();
        change(&mut changed);
        assert!(matches!(engine.restore(&changed), Err(EngineError::Image)));
    }
    let mut changed = image.clone();
    changed.ids[3] = 999_999;
    assert!(matches!(engine.restore(&changed), Err(EngineError::Token { id: 999_999, .. })));
    assert!(matches!(engine.image(34), Err(EngineError::Beginning { from: 34, position: 33 })));
    assert!(logits(&engine) == expected);
    assert!(engine.prompt(&[]).is_err() && engine.prompt(&[999_999]).is_err());
    assert!(logits(&engine) == expected);
    assert!(matches!(
        keeper.restore(&mut engine, "../a"),
        Err(KeepError::Session(bankshot::state::SessionError::Name { .. }))
    ));
}

#[test]
fn banks_that_cannot_be_are_refused_by_name() {
    let model = model("qwen35");
    let plan = |options: Options| Engine::plan_for(&model, &cards(1), options).unwrap_err();
    let error = plan(Options { bank_bytes: 8192, ..options(KvType::F16) });
    assert!(matches!(error, PlanError::BankSmall { card: 0, bytes: 8192, .. }), "{error}");
    let error = plan(Options { host_bank_bytes: u64::MAX, ..options(KvType::F16) });
    assert!(matches!(error, PlanError::BankBudget { .. }), "{error}");
}

#[test]
fn snapshots_are_taken_behind_turns() {
    let ends = [9];
    let mut ids = vec![1; 300];
    for at in [10, 30, 99, 200, 220, 230] {
        ids[at] = 9;
    }
    // The last turn's end counts, however near it is; of the others those that are 64 tokens apart.
    assert_eq!(marks(&ids, 0, &ends, None), [100, 201, 231]);
    assert_eq!(marks(&ids, 0, &ends, Some(50)), [50, 100, 150, 200, 231, 281]);
    assert_eq!(marks(&ids, 150, &ends, None), [221, 231]);
    assert_eq!(marks(&ids[..1], 0, &ends, Some(1)), [0; 0]);
    assert_eq!(marks(&[], 0, &ends, Some(1)), [0; 0]);
}

#[test]
fn a_system_prompt_is_computed_once() {
    let model = model("demo");
    let template = model.chat_template().unwrap().unwrap();
    let message = |role: &str, content: &str| Message { role: role.to_owned(), content: content.to_owned() };
    let system = message("system", &"You are a careful assistant who answers in one sentence. ".repeat(8));
    let prompt = |turns: &[Message]| {
        let messages: Vec<Message> = [&system].into_iter().chain(turns).cloned().collect();
        let options = RenderOptions { add_generation_prompt: true, enable_thinking: Some(false) };
        model.tokenizer().encode(&template.render(&messages, options).unwrap(), true).unwrap()
    };
    let bank = Options { host_bank_bytes: 32 << 20, bank_every: 0, ..options(KvType::F16) };
    let mut engine = engine_on(&model, 1, bank);
    let first = prompt(&[message("user", "Hello!")]);
    assert_eq!(engine.prompt(&first).unwrap(), 0);
    let end = first.iter().position(|id| model.tokenizer().stop_ids().contains(id)).unwrap() + 1;
    assert!(end > 64, "{end}");
    // Another user: the system prompt is there. The same one goes on: all but what stands behind the last turn is.
    let other = prompt(&[message("user", "Repeat after me: silver garden tiger")]);
    assert_eq!(engine.prompt(&other).unwrap(), end);
    assert!(logits(&engine) == fresh(&model, &other));
    let turns = [message("user", "Hello!"), message("assistant", "Hello!"), message("user", "Hello again!")];
    let second = prompt(&turns);
    let last = first.iter().rposition(|id| model.tokenizer().stop_ids().contains(id)).unwrap() + 1;
    assert!(engine.prompt(&second).unwrap() >= last && last > end);
    assert!(logits(&engine) == fresh(&model, &second));
}

/// Names in a folder of sessions.
fn names(folder: &Path) -> Vec<String> {
    Store::open(folder).unwrap().list().unwrap().into_iter().map(|entry| entry.name).collect()
}

#[test]
fn turns_are_saved_whatever_became_of_the_files() {
    let model = model("qwen35");
    let mut engine = engine(&model);
    let turn = |engine: &mut Engine| {
        let more = prompt(engine.position() as u32, 3);
        engine.feed(&more).unwrap();
    };
    let check = |engine: &Engine, keeper: &Keeper, name: &str| {
        let loaded = keeper.store().load(name, keeper.identity(), engine.layout(), CONTEXT).unwrap();
        assert_eq!(loaded.image.ids, engine.ids(), "{name}");
    };
    let begin = |engine: &mut Engine| {
        let folder = tempfile::tempdir().unwrap();
        let keeper = keeper(folder.path(), engine);
        engine.reset().unwrap();
        engine.feed(&prompt(1, 20)).unwrap();
        (folder, keeper)
    };
    // Many turns: deltas, and a whole state now and then. What nothing needs is deleted.
    let (folder, keeper) = begin(&mut engine);
    let mut file = TurnFile::new("talk", false, None);
    let mut most = 0;
    for _ in 0..12 {
        turn(&mut engine);
        file.save(&keeper, &mut engine, None).unwrap();
        check(&engine, &keeper, "talk");
        most = most.max(names(folder.path()).len());
    }
    assert_eq!(most, 5);
    // What another session needs of it stays, and neither is in the other's way.
    let fork = TurnFile::restore(&keeper, &mut engine, "talk", false).unwrap().1.base;
    let (mut file, talk) = (TurnFile::restore(&keeper, &mut engine, "talk", true).unwrap().0, fork.ids.clone());
    turn(&mut engine);
    TurnFile::new("fork", false, Some(fork)).save(&keeper, &mut engine, None).unwrap();
    let forked = engine.ids().to_vec();
    for _ in 0..7 {
        engine.prompt(&[&talk[..], &[9]].concat()).unwrap();
        turn(&mut engine);
        file.save(&keeper, &mut engine, None).unwrap();
        check(&engine, &keeper, "talk");
        // Another branch each time, so that what is saved is no delta.
        engine.reset().unwrap();
    }
    keeper.restore(&mut engine, "fork").unwrap();
    assert_eq!(engine.ids(), forked);
    // Left over from a kill between a whole state and the deletion of what it replaced.
    let (folder, keeper) = begin(&mut engine);
    let mut file = TurnFile::new("talk", false, None);
    for _ in 0..4 {
        turn(&mut engine);
        file.save(&keeper, &mut engine, None).unwrap();
    }
    keeper.store().duplicate("talk", "talk.turn-7").unwrap();
    let (mut file, _) = TurnFile::restore(&keeper, &mut engine, "talk", false).unwrap();
    for _ in 0..8 {
        turn(&mut engine);
        file.save(&keeper, &mut engine, None).unwrap();
        check(&engine, &keeper, "talk");
    }
    assert!(names(folder.path()).len() <= 5);
    // Deleted meanwhile: the whole state is written again. Saved by another program: nothing of it is lost.
    TurnFile::delete(&keeper, "talk").unwrap();
    assert_eq!(names(folder.path()), [""; 0]);
    turn(&mut engine);
    file.save(&keeper, &mut engine, None).unwrap();
    check(&engine, &keeper, "talk");
    let base = keeper.restore(&mut engine, "talk").unwrap().base;
    let (mut other, _) = TurnFile::restore(&keeper, &mut engine, "talk", false).unwrap();
    turn(&mut engine);
    other.save(&keeper, &mut engine, None).unwrap();
    let theirs = engine.ids().to_vec();
    turn(&mut engine);
    let error = file.save(&keeper, &mut engine, None).unwrap_err();
    assert!(matches!(error, KeepError::Changed { .. }), "{error}");
    keeper.restore(&mut engine, "talk").unwrap();
    assert_eq!(engine.ids(), theirs);
    assert!(base.is_beginning_of(&theirs));
    // A name too long for a second one, and names that only these files have.
    let name = "n".repeat(125);
    let mut file = TurnFile::new(&name, false, None);
    for _ in 0..3 {
        turn(&mut engine);
        file.save(&keeper, &mut engine, None).unwrap();
        check(&engine, &keeper, &name);
    }
    let error = keeper.save(&mut engine, "talk.turn-3", None, false, None).unwrap_err();
    assert!(matches!(error, KeepError::Reserved { .. }), "{error}");
    // What has not grown is saved whole.
    let base = keeper.restore(&mut engine, "talk").unwrap().base;
    keeper.save(&mut engine, "copy", None, false, Some(&base)).unwrap();
    assert_eq!(keeper.store().inspect("copy", false).unwrap().from, 0);
}

#[test]
fn sessions_that_change_their_mind_are_not_mixed_up() {
    let (folder, model) = (tempfile::tempdir().unwrap(), model("qwen35"));
    let engine = with_bank(&model, 1, None, 3);
    let keeper = keeper(folder.path(), &engine);
    let mut sessions = Sessions::new(engine, keeper, SessionsOptions { idle: Duration::ZERO, compress: false });
    let ids = prompt(5, 100);
    sessions.prompt("a", &ids).unwrap();
    sessions.end_turn("a", None).unwrap();
    // Shorter than what is saved, twice; and as long again, which is no saved turn.
    let mut edited = [&ids[..60], &[250, 251]].concat();
    sessions.prompt("a", &edited).unwrap();
    edited.extend(prompt(6, 38));
    sessions.prompt("a", &edited).unwrap();
    assert_eq!((edited.len(), sessions.park_idle()), (100, Vec::new()));
    assert!(logits(sessions.engine()) == fresh(&model, &edited));
    // Another session that was never saved can be deleted, and be no name of a turn.
    sessions.prompt("b", &ids[..50]).unwrap();
    sessions.delete("b").unwrap();
    assert!(sessions.ids("b").is_none());
    let error = sessions.prompt("a.turn-1", &ids).unwrap_err();
    assert!(matches!(error, KeepError::Reserved { .. }), "{error}");
    sessions.end_turn("a", None).unwrap();
    assert_eq!(sessions.park_idle(), ["a"]);
    sessions.step("a", 7).unwrap();
    edited.push(7);
    assert!(logits(sessions.engine()) == fresh(&model, &edited));
}

#[test]
fn a_snapshot_has_one_id_however_it_was_computed() {
    let (folder, model) = (tempfile::tempdir().unwrap(), model("qwen4exp"));
    let mut engine = with_bank(&model, 1, None, 3);
    let keeper = keeper(folder.path(), &engine);
    for tokens in [10, 11, 12, 13] {
        let ids = prompt(8, tokens);
        let mut found = Vec::new();
        for way in 0..3 {
            engine.reset().unwrap();
            match way {
                0 => {
                    engine.feed(&ids).unwrap();
                }
                1 => {
                    for id in &ids {
                        engine.feed(&[*id]).unwrap();
                    }
                }
                _ => {
                    // From a snapshot, after another sequence left its own index keys.
                    engine.prompt(&ids[..9]).unwrap();
                    engine.prompt(&prompt(3, 7)).unwrap();
                    engine.prompt(&ids).unwrap();
                }
            }
            found.push(keeper.save(&mut engine, &format!("{tokens}-{way}"), None, false, None).unwrap().id);
        }
        assert!(found.iter().all(|id| *id == found[0]), "{tokens} tokens: {found:?}");
    }
}
