//! Several cards, and experts that are not all resident: the bits of one card that holds everything.
//!
//! Cards are parts of the CPU device.

#[path = "support/device.rs"]
mod device_choice;
#[path = "support/gguf_writer.rs"]
mod gguf_writer;
#[path = "support/random.rs"]
#[allow(dead_code, reason = "shared with other tests")]
mod random;
#[path = "support/random_model.rs"]
mod random_model;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use bankshot::cli::DEMO_MODEL;
use bankshot::device::{Card, Part};
use bankshot::exec::{Breakdown, Engine};
use bankshot::load::{Model, Progress, TableOptions, Tables};
use bankshot::model::KvType;
use bankshot::plan::{Misses, Options, Place, Plan, Split};
use device_choice::test_device;

fn cards(count: usize) -> Vec<Card> {
    let index = test_device().index;
    (0..count as u32).map(|part| Card::open_part(index, Part { index: part, count: count as u32 }).unwrap()).collect()
}

fn open(model: &Arc<Model>, count: usize, options: Options) -> Engine {
    let cards = cards(count);
    let plan = Engine::plan_for(model, &cards, options).unwrap();
    engine(model, cards, plan)
}

fn engine(model: &Arc<Model>, cards: Vec<Card>, plan: Plan) -> Engine {
    let tables = Tables::open(model.file(), model.bound(), &TableOptions::default()).unwrap();
    Engine::open(Arc::clone(model), tables, cards, plan, None, &mut |_| {}).unwrap()
}

fn random(arch: &str) -> Arc<Model> {
    Arc::new(Model::from_static(random_model::random_model(arch).leak()).unwrap())
}

fn demo() -> Arc<Model> {
    Arc::new(Model::from_static(DEMO_MODEL).unwrap())
}

fn all_logits(engine: &mut Engine, ids: &[u32]) -> Vec<Vec<u32>> {
    let mut rows = Vec::new();
    let first = engine.position();
    engine
        .feed_each(ids, |position, logits| {
            assert_eq!(position, first + rows.len());
            rows.push(bits(logits));
        })
        .unwrap();
    rows
}

fn bits(logits: &[f32]) -> Vec<u32> {
    logits.iter().map(|logit| logit.to_bits()).collect()
}

fn ids(count: u32) -> Vec<u32> {
    (0..count).map(|i| if i == 40 { 7 } else { i * i * 31 % 263 }).collect()
}

/// Compares a prompt in chunks, and single steps behind one, with the rows of one card.
fn same_bits(engine: &mut Engine, ids: &[u32], expected: &[Vec<u32>], what: &str) {
    let rows = all_logits(engine, ids);
    assert_eq!(rows.iter().zip(expected).position(|(a, b)| a != b), None, "{what}: first position that differs");
    engine.reset().unwrap();
    let prompt = ids.len() * 3 / 4;
    assert!(bits(engine.feed(&ids[..prompt]).unwrap()) == expected[prompt - 1], "{what}: prompt");
    for (at, id) in ids.iter().enumerate().skip(prompt) {
        assert!(bits(engine.feed(&[*id]).unwrap()) == expected[at], "{what}: step at {at}");
    }
    engine.reset().unwrap();
    let mut breakdown = Breakdown::default();
    assert!(bits(engine.feed_measured(ids, &mut breakdown).unwrap()) == expected[ids.len() - 1], "{what}: measured");
}

#[test]
fn cards_do_not_change_bits() {
    for arch in ["qwen35", "qwen35moe", "qwen3next", "qwen4exp"] {
        let (model, ids) = (random(arch), ids(75));
        // A state that is divided over cards does not depend on its type; each is tried with some of the ways.
        for (kv, chunk) in [(KvType::F16, 9), (KvType::F32, 75)] {
            let expected = all_logits(&mut open(&model, 1, Options::new(80, 75, kv)), &ids);
            for (count, split) in [(2, Split::Layer), (4, Split::Layer), (2, Split::Tensor), (4, Split::Tensor)] {
                let options = Options { split: Some(split), ..Options::new(80, chunk, kv) };
                let mut engine = open(&model, count, options);
                assert_eq!(engine.plan().split, split);
                let what = format!("{arch}, {count} cards, {} split, chunks of {chunk}, {kv:?}", split.name());
                same_bits(&mut engine, &ids, &expected, &what);
            }
        }
    }
}

/// A plan of the demo model with `slots` experts a layer on each card.
fn with_slots(model: &Model, cards: &[Card], slots: u64, options: Options) -> Options {
    let whole = Engine::plan_for(model, cards, options).unwrap();
    // The fullest card decides; the others hold more experts than asked for.
    let layer_bytes =
        |card: &bankshot::plan::CardPlan| card.experts.iter().map(|layer| layer.slots.slot_bytes).sum::<u64>();
    let most = whole.cards.iter().map(layer_bytes).max().unwrap();
    Options { expert_bytes: Some(most * slots), ..options }
}

#[test]
fn resident_experts_do_not_change_bits() {
    let (model, ids) = (demo(), ids(75));
    let base = Options::new(96, 32, KvType::F16);
    let expected = all_logits(&mut open(&model, 1, base), &ids);
    for (count, split) in [(1, None), (2, Some(Split::Layer)), (2, Some(Split::Tensor))] {
        for slots in [1, 6, 15, 16] {
            for from_file in [false, true] {
                let cards = cards(count);
                let options = with_slots(&model, &cards, slots, Options { split, ..base });
                let least = host_bytes(&model, &cards, options);
                let options = Options { host_expert_bytes: from_file.then_some(least), ..options };
                let plan = Engine::plan_for(&model, &cards, options).unwrap();
                let misses = match (slots, from_file) {
                    (16, _) => Misses::None,
                    (_, false) => Misses::Mirror,
                    (_, true) => Misses::File,
                };
                let what = format!("{count} cards, {split:?}, {slots} experts a layer, misses in {}", misses.name());
                assert_eq!(plan.misses, misses, "{what}");
                let mut engine = engine(&model, cards, plan);
                same_bits(&mut engine, &ids, &expected, &what);
                // Again, with other experts in the slots.
                engine.reset().unwrap();
                same_bits(&mut engine, &ids, &expected, &what);
                assert_eq!(engine.expert_counters().is_some(), misses != Misses::None);
            }
        }
    }
}

/// Host memory for a few more experts than a token uses, which makes chunks small.
fn host_bytes(model: &Model, cards: &[Card], options: Options) -> u64 {
    let plan = Engine::plan_for(model, cards, options).unwrap();
    let slot = plan.cards.iter().flat_map(|card| &card.experts).map(|layer| layer.slots.slot_bytes).max().unwrap();
    9 * slot * cards.len() as u64
}

#[test]
fn the_progress_of_a_load_ends_at_its_total() {
    let (model, base) = (demo(), Options::new(96, 32, KvType::F16));
    for (count, split) in [(1, None), (2, Some(Split::Layer)), (2, Some(Split::Tensor))] {
        let all = cards(count);
        let some = with_slots(&model, &all, 5, Options { split, ..base });
        let from_file = Options { host_expert_bytes: Some(host_bytes(&model, &all, some)), ..some };
        for (options, misses) in
            [(Options { split, ..base }, Misses::None), (some, Misses::Mirror), (from_file, Misses::File)]
        {
            let plan = Engine::plan_for(&model, &all, options).unwrap();
            assert_eq!(plan.misses, misses);
            // Every matrix that has a place, and the vectors and tables of formats beside them.
            let mut expected = 0;
            for card in &plan.cards {
                for weight in &card.weights {
                    let copies = match weight.place {
                        Place::Region(_) => 1,
                        Place::Experts { .. } if misses != Misses::File => 16,
                        Place::Experts { layer, .. } => card.experts[layer].slots.count as u64,
                    };
                    expected += copies * weight.matrix_bytes;
                }
                expected += card.vectors.iter().map(|vector| vector.region.bytes).sum::<u64>();
                expected += card.codebooks.iter().map(|codebook| codebook.region.bytes).sum::<u64>();
            }
            let mut steps = Vec::new();
            let tables = Tables::open(model.file(), model.bound(), &TableOptions::default()).unwrap();
            let cards = cards(count);
            let mut progress = |step| {
                if let Progress::Weights { done, total, .. } = step {
                    steps.push((done, total));
                }
            };
            drop(Engine::open(Arc::clone(&model), tables, cards, plan, None, &mut progress).unwrap());
            let what = format!("{count} cards, {split:?}, misses in {}", misses.name());
            assert_eq!(steps.last(), Some(&(expected, expected)), "{what}");
            assert!(steps.is_sorted() && steps.iter().all(|(_, total)| *total == expected), "{what}");
        }
    }
}

/// What the routers of one chunk chose: position, tokens, ids of each layer.
type Routed = (usize, usize, Vec<Vec<u32>>);

fn recorded(engine: &mut Engine) -> Arc<Mutex<Vec<Routed>>> {
    let routed = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&routed);
    engine.record_routing(Box::new(move |position, tokens, layers| {
        sink.lock().unwrap().push((position, tokens, layers.iter().map(|ids| ids.to_vec()).collect()));
    }));
    routed
}

fn different(ids: &[u32]) -> BTreeSet<u32> {
    ids.iter().copied().collect()
}

#[test]
fn routing_is_the_same_on_all_cards() {
    let (model, ids) = (demo(), ids(40));
    let mut expected = None;
    for (count, split) in [(1, None), (2, Some(Split::Layer)), (4, Some(Split::Layer)), (2, Some(Split::Tensor))] {
        let mut engine = open(&model, count, Options { split, ..Options::new(64, 16, KvType::F16) });
        let routed = recorded(&mut engine);
        engine.feed(&ids).unwrap();
        engine.feed(&ids[..1]).unwrap();
        let routed = std::mem::take(&mut *routed.lock().unwrap());
        let places: Vec<(usize, usize)> = routed.iter().map(|(position, tokens, _)| (*position, *tokens)).collect();
        assert_eq!(places, [(0, 16), (16, 16), (32, 8), (40, 1)]);
        let experts = model.bound().spec.experts.as_ref().unwrap();
        for (_, tokens, layers) in &routed {
            assert_eq!(layers.len(), model.bound().layers.len());
            for ids in layers {
                assert_eq!(ids.len(), tokens * experts.used);
                // A token's experts are different ones.
                assert!(ids.chunks(experts.used).all(|ids| different(ids).len() == experts.used));
            }
        }
        assert!(expected.get_or_insert_with(|| routed.clone()) == &routed, "{count} cards, {split:?}");
    }
}

#[test]
fn counters_count_what_was_routed() {
    let (model, ids) = (demo(), ids(75));
    let (base, all) = (Options::new(96, 32, KvType::F16), cards(1));
    let options = with_slots(&model, &all, 5, base);
    let plan = Engine::plan_for(&model, &all, options).unwrap();
    let layers = plan.cards[0].experts.clone();
    let mut first = engine(&model, all, plan.clone());
    let routed = recorded(&mut first);
    first.feed(&ids[..32]).unwrap();
    // Nothing was moved before the first chunk: the experts with the lowest ids were resident.
    let (mut hits, mut misses, mut miss_bytes) = (0, 0, 0);
    for (ids, layer) in routed.lock().unwrap()[0].2.iter().zip(&layers) {
        let resident = different(ids).iter().filter(|id| (**id as usize) < layer.slots.count).count() as u64;
        hits += resident;
        misses += different(ids).len() as u64 - resident;
        miss_bytes += (different(ids).len() as u64 - resident) * layer.slots.slot_bytes;
    }
    let counters = first.expert_counters().unwrap();
    assert_eq!((counters.steps, counters.hits, counters.misses), (1, hits, misses));
    assert_eq!(counters.miss_bytes, miss_bytes);
    assert!(hits > 0 && misses > 0);
    // Afterwards every expert of every chunk is either a hit or a miss, and swaps have happened.
    first.feed(&ids[32..]).unwrap();
    for id in &ids[..20] {
        first.feed(&[*id]).unwrap();
    }
    let chosen: usize =
        routed.lock().unwrap().iter().flat_map(|(_, _, layers)| layers).map(|ids| different(ids).len()).sum();
    let counters = first.expert_counters().unwrap();
    assert_eq!(counters.hits + counters.misses, chosen as u64);
    assert_eq!(counters.steps, 23);
    assert!(counters.swaps > 0 && counters.swap_bytes > 0, "{counters}");

    // What was used most is resident from the start when an engine is opened with the profile.
    let profile = first.expert_profile().unwrap();
    drop(first);
    let tables = Tables::open(model.file(), model.bound(), &TableOptions::default()).unwrap();
    let mut second = Engine::open(Arc::clone(&model), tables, cards(1), plan, Some(&profile), &mut |_| {}).unwrap();
    let routed = recorded(&mut second);
    second.feed(&ids[..32]).unwrap();
    let routed = routed.lock().unwrap()[0].2.clone();
    let hits = routed.iter().zip(&layers).zip(profile.counts()).map(|((ids, layer), counts)| {
        let mut ranked: Vec<u32> = (0..counts.len() as u32).collect();
        ranked.sort_by_key(|id| std::cmp::Reverse(counts[*id as usize]));
        let resident: BTreeSet<u32> = ranked[..layer.slots.count].iter().copied().collect();
        different(ids).intersection(&resident).count() as u64
    });
    assert_eq!(second.expert_counters().unwrap().hits, hits.sum::<u64>());
}
