//! Every allocation, copy and launch of a short run fails in turn: an error that names its place, nothing left over, nothing that hangs.
//!
//! The device is the real one; the runtime behind `include/xk.h` lets one operation fail. That is a state of the process, so the tests take turns.

#[path = "support/device.rs"]
mod device_choice;
#[path = "support/faults.rs"]
#[allow(dead_code, reason = "shared with other tests")]
mod faults;
#[path = "support/gguf_writer.rs"]
mod gguf_writer;
#[path = "support/random.rs"]
#[allow(dead_code, reason = "shared with other tests")]
mod random;
#[path = "support/random_model.rs"]
#[allow(dead_code, reason = "shared with other tests")]
mod random_model;

use std::sync::Arc;
use std::time::{Duration, Instant};

use bankshot::device::fault::{self, Fault};
use bankshot::device::{Card, Part, Status};
use bankshot::exec::{Engine, EngineError};
use bankshot::load::{Model, TableOptions, Tables};
use bankshot::model::KvType;
use bankshot::plan::{ArenaKind, Misses, Options, Plan, Split};
use bankshot::quant::Format;
use device_choice::test_device;
use faults::Turn;

fn card(index: u32, count: u32) -> Card {
    Card::open_part(test_device().index, Part { index, count }).unwrap()
}

struct Setup {
    /// Whether a run also takes its state and puts it back.
    keeps: bool,
    model: Arc<Model>,
    plan: Plan,
}

impl Setup {
    /// Two cards with some of their experts, and room for a snapshot, half of it in the host's memory.
    fn new(split: Split) -> Setup {
        let model =
            Arc::new(Model::from_static(random_model::random_model_of("qwen4exp", &[Format::Q8_0]).leak()).unwrap());
        let cards = [card(0, 2), card(1, 2)];
        let (bank_bytes, host_bank_bytes) = (600 << 10, 1200 << 10);
        let base = Options { split: Some(split), bank_bytes, host_bank_bytes, ..Options::new(32, 8, KvType::F16) };
        let whole = Engine::plan_for(&model, &cards, base).unwrap();
        let layer_bytes =
            whole.cards.iter().map(|card| card.experts.iter().map(|layer| layer.slots.slot_bytes).sum::<u64>());
        let options = Options { expert_bytes: Some(2 * layer_bytes.max().unwrap()), ..base };
        let plan = Engine::plan_for(&model, &cards, options).unwrap();
        assert_eq!(plan.misses, Misses::Mirror);
        Setup { keeps: false, model, plan }
    }

    fn open(&self) -> Result<Engine, EngineError> {
        let tables = Tables::open(self.model.file(), self.model.bound(), &TableOptions::default()).unwrap();
        let cards = vec![card(0, 2), card(1, 2)];
        Engine::open(Arc::clone(&self.model), tables, cards, self.plan.clone(), None, &mut |_| {})
    }

    /// A prompt of two chunks and three steps, the state taken and put back in both ways, and everything freed.
    fn run(&self) -> Result<Vec<u32>, EngineError> {
        let mut engine = self.open()?;
        let mut result = feed(&mut engine);
        if self.keeps && result.is_ok() {
            result = take_and_put_back(&mut engine);
        }
        if let Err(error) = &result {
            // Refused from then on, with the first error; what the host knows stays.
            let again = engine.feed(&[1]).unwrap_err();
            assert!(matches!(again, EngineError::Poisoned(_)), "{again}");
            assert!(again.to_string().contains(&error.to_string()), "{again}");
            assert!(engine.reset().is_err());
            assert!(engine.ids().len() <= IDS.len() && IDS.starts_with(engine.ids()));
        }
        engine.close(Duration::from_secs(10)).unwrap();
        result
    }
}

const IDS: [u32; 13] = [5, 9, 250, 7, 31, 31, 2, 100, 3, 77, 12, 8, 200];

fn feed(engine: &mut Engine) -> Result<Vec<u32>, EngineError> {
    let mut logits: Vec<u32> = engine.feed(&IDS[..10])?.iter().map(|logit| logit.to_bits()).collect();
    for id in &IDS[10..] {
        logits.extend(engine.feed(&[*id])?.iter().map(|logit| logit.to_bits()));
    }
    Ok(logits)
}

/// The sequence's state by way of the bank and of the host's memory.
fn take_and_put_back(engine: &mut Engine) -> Result<Vec<u32>, EngineError> {
    let image = engine.image(0)?;
    assert!(engine.snapshot()?, "the bank has room");
    engine.reset()?;
    assert_eq!(engine.prompt(&IDS)?, IDS.len());
    engine.restore(&image)?;
    Ok(engine.logits().unwrap().iter().map(|logit| logit.to_bits()).collect())
}

/// Lets every operation of a kind fail in turn.
fn walk(setup: &Setup, fault: Fault) {
    fault::clear();
    let expected = setup.run().unwrap();
    let before = fault::live();
    fault::set(fault, u64::MAX);
    assert!(setup.run().unwrap() == expected);
    let operations = fault::count(fault);
    assert!(operations > 10, "{fault:?}: {operations}");
    let mut errors = 0;
    for after in 0..operations {
        fault::set(fault, after);
        let begin = Instant::now();
        let result = setup.run();
        fault::clear();
        match result {
            // The trial of direct copies fails without harm: then the host's memory is the way.
            Ok(logits) => assert!(logits == expected, "{fault:?} {after}"),
            Err(error) => {
                errors += 1;
                let text = error.to_string();
                assert!(text.contains("card ") || text.contains("operation"), "{fault:?} {after}: {text}");
                if fault == Fault::Launch {
                    let named = matches!(error, EngineError::Step { .. }) || text.contains("graph");
                    assert!(named, "{fault:?} {after}: {text}");
                }
            }
        }
        assert!(begin.elapsed() < Duration::from_secs(60), "{fault:?} {after} hung");
        assert_eq!(fault::live(), before, "{fault:?} {after}: something is left");
    }
    println!("{fault:?}: {operations} operations, {errors} errors");
    // The trial of direct copies has twelve of them.
    assert!(errors + 12 >= operations, "{fault:?}: {errors} errors of {operations} faults");
}

#[test]
fn every_allocation_can_fail() {
    let _turn = Turn::take();
    walk(&Setup::new(Split::Layer), Fault::Allocation);
}

#[test]
fn every_copy_can_fail() {
    let _turn = Turn::take();
    walk(&Setup { keeps: true, ..Setup::new(Split::Layer) }, Fault::Copy);
}

#[test]
fn a_lost_device_is_reported_and_freed() {
    let turn = Turn::take();
    let setup = Setup::new(Split::Tensor);
    let expected = setup.run().unwrap();
    let before = turn.live();
    let launches = turn.count(Fault::Launch, || assert!(setup.run().unwrap() == expected));
    for after in [0, 1, launches / 2, launches - 1] {
        turn.set(Fault::Lost, after);
        let error = setup.run().unwrap_err();
        turn.clear();
        assert!(error.to_string().contains("device lost"), "{after}: {error}");
        assert_eq!(turn.live(), before, "{after}");
    }
}

#[test]
fn a_card_that_does_not_come_to_rest_is_left_alone() {
    let turn = Turn::take();
    let setup = Setup::new(Split::Layer);
    let mut engine = setup.open().unwrap();
    turn.set(Fault::Stall, 0);
    feed(&mut engine).unwrap();
    let begin = Instant::now();
    let error = engine.close(Duration::from_millis(300)).unwrap_err();
    assert!(matches!(error, EngineError::Restless { card: 0, .. }), "{error}");
    assert!((Duration::from_millis(300)..Duration::from_secs(5)).contains(&begin.elapsed()));
    // The memory stays: the device might still write it.
    assert!(turn.live().arenas > 0);
}

#[test]
fn a_card_that_cannot_say_whether_it_rests_is_left_alone_with_its_error() {
    let turn = Turn::take();
    let setup = Setup::new(Split::Layer);
    let mut engine = setup.open().unwrap();
    feed(&mut engine).unwrap();
    turn.set(Fault::Idle, 0);
    let error = engine.close(Duration::from_secs(30)).unwrap_err();
    let EngineError::Card { card: 0, problem } = error else { panic!("{error}") };
    assert!(problem.status == Status::DEVICE && problem.text.contains("a fault set by a test"), "{problem}");
    assert!(turn.live().arenas > 0);
}

#[test]
fn the_trial_of_direct_copies_names_the_card_that_fails() {
    let turn = Turn::take();
    let setup = Setup::new(Split::Layer);
    // Its memory on both cards is the last that is allocated, on the card that is copied from first.
    let allocations = turn.count(Fault::Allocation, || drop(setup.open().unwrap()));
    for card in [0, 1] {
        turn.set(Fault::Allocation, allocations - 2 + card as u64);
        let Err(error) = setup.open() else { panic!("nothing failed") };
        assert!(matches!(error, EngineError::Card { card: named, .. } if named == card), "{card}: {error}");
    }
}

#[test]
fn direct_copies_are_not_believed() {
    let turn = Turn::take();
    let setup = Setup::new(Split::Layer);
    let mut engine = setup.open().unwrap();
    assert_eq!(engine.exchange_route(), Some("direct copies"));
    let expected = feed(&mut engine).unwrap();
    drop(engine);
    // The driver says that it copies, and what arrives is something else.
    turn.set(Fault::Peer, 0);
    let mut engine = setup.open().unwrap();
    assert_eq!(engine.exchange_route(), Some("pinned host memory"));
    assert!(feed(&mut engine).unwrap() == expected);
}

#[test]
fn every_launch_can_fail() {
    let _turn = Turn::take();
    walk(&Setup::new(Split::Layer), Fault::Launch);
}

#[test]
fn launches_are_those_of_the_plan() {
    let turn = Turn::take();
    let model =
        Arc::new(Model::from_static(random_model::random_model_of("qwen4exp", &[Format::Q8_0]).leak()).unwrap());
    for split in [Split::Layer, Split::Tensor] {
        let cards = vec![card(0, 2), card(1, 2)];
        let options = Options { split: Some(split), ..Options::new(32, 8, KvType::F16) };
        let plan = Engine::plan_for(&model, &cards, options).unwrap();
        let planned: usize = plan.cards.iter().map(|card| card.launches()).sum();
        let recorded = plan.recorded();
        let tables = Tables::open(model.file(), model.bound(), &TableOptions::default()).unwrap();
        let mut engine = Engine::open(Arc::clone(&model), tables, cards, plan, None, &mut |_| {}).unwrap();
        let mut step = || turn.count(Fault::Launch, || drop(engine.feed(&[5]).unwrap().to_vec())) as usize;
        // The first step of a layer split records its kernels and launches a graph on each card, the next one launches it.
        let expected = if recorded { [planned + 2, 2] } else { [planned; 2] };
        assert_eq!([step(), step()], expected, "{split:?}");
    }
}

#[test]
fn a_plan_that_needs_more_than_is_free_is_not_begun() {
    let turn = Turn::take();
    let setup = Setup::new(Split::Layer);
    let mut plan = setup.plan.clone();
    let before = turn.live();
    plan.cards[1].ledger.arenas.push((ArenaKind::Buffers, 1 << 50));
    let tables = Tables::open(setup.model.file(), setup.model.bound(), &TableOptions::default()).unwrap();
    let allocations = turn.count(Fault::Allocation, || {
        let cards = vec![card(0, 2), card(1, 2)];
        let Err(error) = Engine::open(Arc::clone(&setup.model), tables, cards, plan.clone(), None, &mut |_| {}) else {
            panic!("the plan fits")
        };
        let EngineError::Admission { needed_bytes, free_bytes, .. } = error else { panic!("{error}") };
        assert!(needed_bytes > 1 << 50 && free_bytes < 1 << 50);
    });
    assert_eq!(allocations, 0);
    assert_eq!(turn.live(), before);
    let tables = Tables::open(setup.model.file(), setup.model.bound(), &TableOptions::default()).unwrap();
    let one = Engine::open(Arc::clone(&setup.model), tables, vec![card(0, 2)], setup.plan.clone(), None, &mut |_| {});
    assert_eq!(one.err().unwrap().to_string(), "the plan is for 2 cards, and 1 were given");
}
