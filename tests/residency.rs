//! Resident experts: placement and swaps against a naive model, the optimum against exhaustive search, damaged files, the command.

#[path = "support/random.rs"]
#[allow(dead_code, reason = "shared with other tests")]
mod random;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use bankshot::residency::{
    Counters, Outcome, Policy, Profile, Residency, Shape, Swap, Trace, TraceError, TraceWriter, simulate,
};
use random::Random;
use serde_json::{Value, json};

/// A use in counts, tokens between two decays, what a decay takes away: as docs/residency.md has them.
const USE: u64 = 65536;
const DECAY_TOKENS: usize = 16;
const DECAY_PART: u64 = 16;

fn below(random: &mut Random, bound: usize) -> usize {
    (random.next() % bound as u64) as usize
}

/// What a profile weighs at first: at most as much as 256 tokens.
fn prior(used: usize, counts: &[u64]) -> Vec<u64> {
    let (sum, most) =
        (counts.iter().map(|count| u128::from(*count)).sum::<u128>(), 256 * used as u128 * u128::from(USE));
    counts.iter().map(|count| (u128::from(*count) * most / sum.max(most)) as u64).collect()
}

#[derive(Clone, Copy, PartialEq)]
enum Rule {
    Lfu,
    Lru,
}

/// The same rules by sets and full enumeration.
struct Naive {
    rule: Rule,
    shape: Shape,
    /// (layer, slot, expert) that may be read.
    resident: BTreeSet<(usize, usize, u32)>,
    /// The same of those on their way.
    coming: BTreeSet<(usize, usize, u32)>,
    slots: Vec<usize>,
    uses: Vec<Vec<u64>>,
    totals: Vec<Vec<u64>>,
    /// Steps that chose (layer, expert).
    history: Vec<BTreeSet<(usize, u32)>>,
    tokens: usize,
    counters: Counters,
}

impl Naive {
    fn new(rule: Rule, shape: &Shape, slots: &[usize], totals: Vec<Vec<u64>>) -> Naive {
        let mut resident = BTreeSet::new();
        for (layer, slots) in slots.iter().enumerate() {
            let mut order: Vec<(std::cmp::Reverse<u64>, u32)> =
                totals[layer].iter().enumerate().map(|(id, uses)| (std::cmp::Reverse(*uses), id as u32)).collect();
            order.sort();
            resident.extend(order[..*slots].iter().enumerate().map(|(slot, (_, id))| (layer, slot, *id)));
        }
        Naive {
            rule,
            shape: shape.clone(),
            resident,
            coming: BTreeSet::new(),
            slots: slots.to_vec(),
            uses: totals.iter().map(|counts| prior(shape.used, counts)).collect(),
            totals,
            history: vec![BTreeSet::new()],
            tokens: 0,
            counters: Counters::default(),
        }
    }

    fn slot(&self, layer: usize, expert: u32) -> Option<usize> {
        self.resident.iter().find(|held| held.0 == layer && held.2 == expert).map(|held| held.1)
    }

    fn step(&mut self, chosen: &[Vec<u32>], tokens: usize) {
        let mut now = BTreeSet::new();
        for (layer, ids) in chosen.iter().enumerate() {
            for id in ids {
                self.uses[layer][*id as usize] += USE;
                self.totals[layer][*id as usize] += USE;
                now.insert((layer, *id));
            }
        }
        for (layer, id) in &now {
            if self.slot(*layer, *id).is_some() {
                self.counters.hits += 1;
            } else {
                self.counters.misses += 1;
                self.counters.miss_bytes += self.shape.expert_bytes[*layer];
            }
        }
        self.history.push(now);
        self.counters.steps += 1;
        let decays = (self.tokens + tokens) / DECAY_TOKENS - self.tokens / DECAY_TOKENS;
        self.tokens += tokens;
        for _ in 0..decays {
            self.uses.iter_mut().flatten().for_each(|uses| *uses -= *uses / DECAY_PART);
        }
    }

    fn score(&self, layer: usize, expert: u32) -> u64 {
        match self.rule {
            Rule::Lfu => self.uses[layer][expert as usize],
            Rule::Lru => self.history.iter().rposition(|step| step.contains(&(layer, expert))).unwrap_or(0) as u64,
        }
    }

    /// Every pair of an expert that the last step chose and a slot, the best first, until nothing fits.
    fn choose(&mut self, mut left: u64) -> Vec<Swap> {
        let mut swaps = Vec::new();
        loop {
            let mut best: Option<(i128, Swap)> = None;
            for (layer, expert) in self.history.last().unwrap().clone() {
                let is_coming = self.coming.iter().any(|held| held.0 == layer && held.2 == expert);
                if self.slot(layer, expert).is_some() || is_coming || self.shape.expert_bytes[layer] > left {
                    continue;
                }
                for (_, slot, evicted) in self.resident.iter().filter(|held| held.0 == layer) {
                    let old = i128::from(self.score(layer, *evicted));
                    let gain = i128::from(self.score(layer, expert)) - old;
                    let margin = if self.rule == Rule::Lfu { 2 * i128::from(USE) + old / 4 } else { 0 };
                    if gain > margin && best.is_none_or(|(most, _)| gain > most) {
                        best = Some((gain, Swap { layer, slot: *slot, evicted: *evicted, expert }));
                    }
                }
            }
            let Some((_, swap)) = best else { return swaps };
            left -= self.shape.expert_bytes[swap.layer];
            self.resident.remove(&(swap.layer, swap.slot, swap.evicted));
            self.coming.insert((swap.layer, swap.slot, swap.expert));
            self.counters.swaps += 1;
            self.counters.swap_bytes += self.shape.expert_bytes[swap.layer];
            swaps.push(swap);
        }
    }

    fn arrived(&mut self, swap: &Swap) {
        let held = (swap.layer, swap.slot, swap.expert);
        if self.coming.remove(&held) {
            self.resident.insert(held);
        }
    }

    fn assert_same(&self, residency: &Residency) {
        let mut held = BTreeSet::new();
        for (layer, slots) in self.slots.iter().enumerate() {
            for expert in 0..self.shape.experts as u32 {
                assert_eq!(residency.resident(layer, expert), self.slot(layer, expert), "layer {layer}, {expert}");
                held.extend(residency.resident(layer, expert).map(|slot| (layer, slot)));
            }
            for slot in 0..*slots {
                let expected = self.resident.iter().find(|held| held.0 == layer && held.1 == slot).map(|held| held.2);
                assert_eq!(residency.expert_in(layer, slot), expected, "layer {layer}, slot {slot}");
            }
            assert_eq!(residency.expert_in(layer, *slots), None);
        }
        assert_eq!(held.len(), self.resident.len(), "no expert in two slots, no slot with two");
        assert_eq!(*residency.counters(), self.counters);
        assert_eq!(residency.profile().counts(), self.totals);
    }
}

fn random_shape(random: &mut Random) -> (Shape, Vec<usize>) {
    let experts = 2 + below(random, 12);
    let layers = 1 + below(random, 4);
    let used = 1 + below(random, experts.min(4));
    let expert_bytes = (0..layers).map(|_| 50 + random.next() % 100).collect();
    let slots = (0..layers).map(|_| 1 + below(random, experts)).collect();
    (Shape { experts, used, expert_bytes }, slots)
}

/// Ids of a step, [layer][token][used]. Some experts are liked more, and others as time goes on.
fn random_step(random: &mut Random, shape: &Shape, tokens: usize, time: usize) -> Vec<Vec<u32>> {
    let mut token = |layer: usize| {
        let mut ids = BTreeSet::new();
        while ids.len() < shape.used {
            let liked =
                below(random, shape.experts).min(below(random, shape.experts)).min(below(random, shape.experts));
            ids.insert(((liked + layer + time / 40) % shape.experts) as u32);
        }
        ids
    };
    (0..shape.expert_bytes.len()).map(|layer| (0..tokens).flat_map(|_| token(layer)).collect()).collect()
}

fn random_tokens(random: &mut Random) -> usize {
    if below(random, 4) == 0 { 1 + below(random, 150) } else { 1 }
}

#[test]
fn residency_follows_a_naive_model() {
    let mut random = Random(1);
    let (mut swapped, mut full) = (0, 0);
    for _ in 0..80 {
        let (shape, slots) = random_shape(&mut random);
        let uses = vec![vec![0; shape.experts]; slots.len()];
        let mut naive = Naive::new(Rule::Lfu, &shape, &slots, uses);
        let mut residency = Residency::new(shape.clone(), &slots, None);
        naive.assert_same(&residency);
        let mut in_flight: Vec<Swap> = Vec::new();
        for time in 0..200 {
            let tokens = random_tokens(&mut random);
            let chosen = random_step(&mut random, &shape, tokens, time);
            chosen.iter().enumerate().for_each(|(layer, ids)| residency.record(layer, ids));
            residency.end_step(tokens);
            naive.step(&chosen, tokens);
            naive.assert_same(&residency);
            // Copies end in any order, some after several steps.
            while !in_flight.is_empty() && below(&mut random, 3) > 0 {
                let swap = in_flight.swap_remove(below(&mut random, in_flight.len()));
                assert_eq!(residency.resident(swap.layer, swap.expert), None, "not readable in flight");
                for residency_call in 0..2 {
                    residency.arrived(&swap);
                    if residency_call == 0 {
                        naive.arrived(&swap);
                    }
                    naive.assert_same(&residency);
                }
            }
            if below(&mut random, 5) > 0 {
                let most = random.next() % 500;
                let swaps = residency.choose_swaps(most);
                assert_eq!(swaps, naive.choose(most));
                assert!(swaps.iter().map(|swap| shape.expert_bytes[swap.layer]).sum::<u64>() <= most);
                assert!(swaps.iter().all(|swap| slots[swap.layer] < shape.experts), "all-resident layers never swap");
                swapped += swaps.len();
                in_flight.extend(swaps);
                naive.assert_same(&residency);
            }
            let unknown = Swap { layer: below(&mut random, 6), slot: below(&mut random, 20), evicted: 0, expert: 77 };
            residency.arrived(&unknown);
            naive.assert_same(&residency);
        }
        full += usize::from(slots.contains(&shape.experts));
    }
    assert!(swapped > 500 && full > 5, "{swapped} swaps, {full} shapes with a layer that is all resident");
}

#[test]
fn only_what_the_last_step_chose_is_swapped_in() {
    let shape = Shape { experts: 4, used: 1, expert_bytes: vec![10] };
    let mut residency = Residency::new(shape, &[1], None);
    residency.record(0, &[2; 9]);
    residency.end_step(9);
    residency.record(0, &[0, 99, u32::MAX]);
    residency.end_step(1);
    assert_eq!(residency.choose_swaps(100), [], "2 leads, but the step did not choose it");
    assert_eq!((residency.counters().hits, residency.counters().misses), (1, 1), "ids beyond the last are left out");
    residency.end_step(1);
    assert_eq!(residency.choose_swaps(100), [], "a step that recorded nothing");
    residency.record(0, &[2]);
    residency.end_step(1);
    assert_eq!(residency.choose_swaps(9), [], "larger than the budget");
    assert_eq!(residency.choose_swaps(10), [Swap { layer: 0, slot: 0, evicted: 0, expert: 2 }]);
    assert_eq!(residency.choose_swaps(10), [], "the only slot is in flight");
}

#[test]
fn counters_add_up_and_print_in_one_line() {
    let mut residency = Residency::new(Shape { experts: 2, used: 1, expert_bytes: vec![5] }, &[1], None);
    residency.record(0, &[0, 1, 1]);
    residency.end_step(3);
    residency.waited(Duration::from_micros(40));
    residency.waited(Duration::from_millis(2));
    let mut sum = *residency.counters();
    sum.add(&Counters { steps: 2, hits: 3, misses: 1, miss_bytes: 7, swaps: 2, swap_bytes: 9, waits: 1, wait_us: 1 });
    let expected =
        Counters { steps: 2, hits: 4, misses: 2, miss_bytes: 12, swaps: 2, swap_bytes: 9, waits: 3, wait_us: 2041 };
    assert_eq!(sum, expected);
    assert_eq!(
        sum.to_string(),
        "2 steps, 4 hits (66.7 %), 2 misses of 12 bytes, 2 swaps of 9 bytes, 3 waits of 2041 us"
    );
    assert_eq!(Counters::default().hit_rate(), 0.0);
}

/// A profile with these counts, by way of a file.
fn profile(folder: &Path, identity: &str, counts: &[Vec<u64>]) -> Profile {
    let mut bytes = [identity.as_bytes(), &[0]].concat();
    bytes.extend(counts.iter().flatten().flat_map(|count| count.to_le_bytes()));
    let object = json!({
        "format": "bankshot-expert-profile", "version": 1, "model": identity,
        "layers": counts.len(), "experts": counts[0].len(), "counts": counts, "checksum": format!("{:016x}", fnv1a(&bytes)),
    });
    let path = folder.join("made.json");
    std::fs::write(&path, object.to_string()).unwrap();
    Profile::load(&path, identity, counts.len(), counts[0].len()).unwrap()
}

fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(14695981039346656037, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(1099511628211))
}

#[test]
fn a_profile_decides_what_is_resident_first() {
    let folder = tempfile::tempdir().unwrap();
    let counts = vec![vec![3, 9, 0, 9, 4], vec![u64::MAX, u64::MAX - 1, u64::MAX, 1, 0]];
    let made = profile(folder.path(), "m", &counts);
    let shape = Shape { experts: 5, used: 2, expert_bytes: vec![1, 1] };
    let residency = Residency::new(shape, &[3, 4], Some(&made));
    let held = |layer: usize, slots: usize| (0..slots).map(|slot| residency.expert_in(layer, slot).unwrap()).collect();
    let held: [Vec<u32>; 2] = [held(0, 3), held(1, 4)];
    assert_eq!(held, [vec![1, 3, 4], vec![0, 2, 1, 3]]);
    assert_eq!(residency.profile().counts(), counts, "counting goes on from there");
}

/// Tokens in a row that choose 1, until it gets the slot of 0.
fn tokens_until_swapped(residency: &mut Residency) -> usize {
    for tokens in 1..10_000 {
        residency.record(0, &[1]);
        residency.end_step(1);
        if !residency.choose_swaps(1).is_empty() {
            return tokens;
        }
    }
    panic!("never swapped");
}

#[test]
fn a_profile_weighs_no_more_than_recent_use() {
    let folder = tempfile::tempdir().unwrap();
    let shape = || Shape { experts: 3, used: 1, expert_bytes: vec![1] };
    let begin = |uses: u64| {
        let made = profile(folder.path(), "m", &[vec![uses, 0, 0]]);
        tokens_until_swapped(&mut Residency::new(shape(), &[1], Some(&made)))
    };
    // More than two uses above nothing; above 4 and a quarter of it, 2 more.
    assert_eq!((begin(0), begin(4 * USE)), (3, 8));
    let many = begin(256 * USE);
    // After k decays 256 r are left, r = (15/16)^k, and of the new uses 240 (1 - r). With t more, 240 (1 - r) + t is above
    // 320 r + 2 first at k = 13 and t = 4: 136.3 + 4 > 138.3 + 2.
    assert_eq!(many, 13 * 16 + 4);
    assert_eq!((begin(300 * USE), begin(u64::MAX)), (many, many));
    let mut without = Residency::new(shape(), &[1], None);
    assert_eq!(tokens_until_swapped(&mut without), 3);
}

#[test]
fn profiles_are_divided_and_joined() {
    let folder = tempfile::tempdir().unwrap();
    let counts = vec![vec![1, 2], vec![3, 4], vec![5, 6]];
    let whole = profile(folder.path(), "m", &counts);
    assert_eq!(whole.layers(1..2).counts(), &counts[1..2]);
    assert_eq!(whole.layers(2..9).counts(), &counts[2..]);
    let joined = Profile::join("m", [whole.layers(0..1), whole.layers(1..3)].into_iter()).unwrap();
    assert_eq!(joined, whole);
    assert_eq!(joined.identity(), "m");
    let error = Profile::join("m", std::iter::empty()).unwrap_err().to_string();
    assert!(error.contains("at least one expert layer, found none"), "{error}");
    let other = profile(folder.path(), "m", &[vec![1, 2, 3]]);
    let error = Profile::join("m", [whole, other].into_iter()).unwrap_err().to_string();
    assert!(error.contains("expected 2 experts in each layer, found 3"), "{error}");
}

/// Tokens and ids of each step, ids [layer][token][used].
type Steps = Vec<(usize, Vec<Vec<u32>>)>;

/// A trace of these steps, by way of a file.
fn trace(folder: &Path, shape: &Shape, steps: &[(usize, Vec<Vec<u32>>)]) -> (PathBuf, Trace) {
    let path = folder.join("made.trace");
    let mut writer = TraceWriter::create(&path, "m 2 tiny", shape).unwrap();
    let mut position = 0;
    for (tokens, layers) in steps {
        let layers: Vec<&[u32]> = layers.iter().map(Vec::as_slice).collect();
        writer.step(position, *tokens, &layers).unwrap();
        position += tokens;
    }
    writer.finish().unwrap();
    let trace = Trace::load(&path).unwrap();
    (path, trace)
}

fn random_trace(random: &mut Random, folder: &Path, shape: &Shape, length: usize) -> (Steps, Trace) {
    let mut steps = Vec::new();
    for time in 0..length {
        let tokens = random_tokens(random);
        steps.push((tokens, random_step(random, shape, tokens, time)));
    }
    let (_, trace) = trace(folder, shape, &steps);
    (steps, trace)
}

fn outcome(outcomes: &[Outcome], policy: Policy) -> Counters {
    outcomes.iter().find(|outcome| outcome.policy == policy).expect("every policy").counters
}

#[test]
fn policies_have_the_counters_of_brute_force() {
    let folder = tempfile::tempdir().unwrap();
    let mut random = Random(2);
    for round in 0..30 {
        let (shape, _) = random_shape(&mut random);
        let layers = shape.expert_bytes.len();
        let (steps, trace) = random_trace(&mut random, folder.path(), &shape, 120);
        let slots = 1 + below(&mut random, shape.experts);
        let budget = random.next() % 400;
        let unit = [USE, 1000 * USE, 1 << 60][round % 3];
        let counts: Vec<Vec<u64>> =
            (0..layers).map(|_| (0..shape.experts).map(|_| random.next() % 5 * unit).collect()).collect();
        let given = (round % 2 == 0).then(|| profile(folder.path(), "m 2 tiny", &counts));
        let outcomes = simulate(&trace, slots, budget, given.as_ref());
        for (rule, policy) in [(Rule::Lru, Policy::Lru), (Rule::Lfu, Policy::Lfu)] {
            let uses = given.as_ref().map_or_else(|| vec![vec![0; shape.experts]; layers], |_| counts.clone());
            let mut naive = Naive::new(rule, &shape, &vec![slots; layers], uses);
            let mut in_flight: Vec<Swap> = Vec::new();
            for (tokens, chosen) in &steps {
                naive.step(chosen, *tokens);
                in_flight.iter().for_each(|swap| naive.arrived(swap));
                in_flight = naive.choose(budget);
            }
            assert_eq!(outcome(&outcomes, policy), naive.counters, "{}", policy.name());
        }
        // The static choice, by counting.
        let mut expected = Counters { steps: 120, ..Counters::default() };
        for layer in 0..layers {
            let all: Vec<u32> = steps.iter().flat_map(|(_, chosen)| chosen[layer].clone()).collect();
            let uses = |id: u32| match &given {
                Some(_) => counts[layer][id as usize],
                None => all.iter().filter(|other| **other == id).count() as u64,
            };
            let is_above = |other: u32, id: u32| uses(other) > uses(id) || (uses(other) == uses(id) && other < id);
            let rank = |id: u32| (0..shape.experts as u32).filter(|other| is_above(*other, id)).count();
            for (_, chosen) in &steps {
                for id in chosen[layer].iter().collect::<BTreeSet<_>>() {
                    if rank(*id) < slots {
                        expected.hits += 1;
                    } else {
                        expected.misses += 1;
                        expected.miss_bytes += shape.expert_bytes[layer];
                    }
                }
            }
        }
        assert_eq!(outcome(&outcomes, Policy::Static), expected);
    }
}

/// Most hits of a layer, over all contents that every step could begin with: any of at most `slots` experts at first, then
/// any of at most `slots` of those that were held or just read.
fn most_hits(experts: usize, slots: usize, steps: &[u32]) -> u32 {
    let fits = |held: &u32| held.count_ones() as usize <= slots;
    // [held]: most hits from here to the end.
    let mut later = vec![0; 1 << experts];
    for chosen in steps.iter().rev() {
        let best = |held: u32| {
            let next = (0..1 << experts).filter(|next| next & !(held | chosen) == 0).filter(fits);
            (held & chosen).count_ones() + next.map(|next| later[next as usize]).max().unwrap()
        };
        later = (0..1 << experts).map(best).collect();
    }
    (0..1 << experts).filter(fits).map(|held| later[held as usize]).max().unwrap()
}

#[test]
fn the_optimum_is_that_of_exhaustive_search() {
    let folder = tempfile::tempdir().unwrap();
    let mut random = Random(3);
    for _ in 0..150 {
        let experts = 2 + below(&mut random, 4);
        let shape = Shape { experts, used: 1 + below(&mut random, experts.min(2)), expert_bytes: vec![3, 5] };
        let mut steps = Vec::new();
        for time in 0..1 + below(&mut random, 14) {
            let tokens = 1 + below(&mut random, 2);
            steps.push((tokens, random_step(&mut random, &shape, tokens, 20 * time)));
        }
        let (_, trace) = trace(folder.path(), &shape, &steps);
        for slots in 1..=experts {
            let mut expected = Counters { steps: steps.len() as u64, ..Counters::default() };
            for layer in 0..2 {
                let mask = |ids: &Vec<u32>| ids.iter().fold(0, |mask, id| mask | 1 << id);
                let masks: Vec<u32> = steps.iter().map(|(_, chosen)| mask(&chosen[layer])).collect();
                let asked: u32 = masks.iter().map(|mask| mask.count_ones()).sum();
                let hits = most_hits(experts, slots, &masks);
                expected.hits += u64::from(hits);
                expected.misses += u64::from(asked - hits);
                expected.miss_bytes += u64::from(asked - hits) * shape.expert_bytes[layer];
            }
            assert_eq!(
                outcome(&simulate(&trace, slots, 0, None), Policy::Optimum),
                expected,
                "{slots} slots: {steps:?}"
            );
        }
    }
}

#[test]
fn no_policy_hits_more_than_the_optimum() {
    let folder = tempfile::tempdir().unwrap();
    let mut random = Random(4);
    let mut equal = 0;
    for _ in 0..60 {
        let (shape, _) = random_shape(&mut random);
        let (_, trace) = random_trace(&mut random, folder.path(), &shape, 60);
        let counts: Vec<Vec<u64>> =
            shape.expert_bytes.iter().map(|_| (0..shape.experts).map(|_| random.next()).collect()).collect();
        let given = profile(folder.path(), "m 2 tiny", &counts);
        for slots in 1..=shape.experts {
            for (budget, start) in [(u64::MAX, None), (u64::MAX, Some(&given)), (200, None)] {
                let outcomes = simulate(&trace, slots, budget, start);
                let most = outcome(&outcomes, Policy::Optimum);
                for Outcome { policy, counters } in &outcomes {
                    assert!(counters.hits <= most.hits, "{}: {counters}; optimum {most}", policy.name());
                    assert_eq!(counters.hits + counters.misses, most.hits + most.misses, "the same reads");
                    equal += usize::from(*policy != Policy::Optimum && counters.hits == most.hits);
                }
                assert!(
                    slots < shape.experts || outcomes.iter().all(|o| o.counters.misses == 0 && o.counters.swaps == 0)
                );
            }
        }
    }
    assert!(equal > 100, "the bound is reached {equal} times");
}

fn small() -> (Shape, Steps) {
    let shape = Shape { experts: 300, used: 2, expert_bytes: vec![1000, 2000] };
    let steps = vec![(2, vec![vec![0, 299, 1, 2], vec![3, 4, 258, 6]]), (1, vec![vec![7, 8], vec![9, 10]])];
    (shape, steps)
}

#[test]
fn a_trace_has_the_bytes_of_its_format() {
    let folder = tempfile::tempdir().unwrap();
    let (shape, steps) = small();
    let (path, trace) = trace(folder.path(), &shape, &steps);
    let mut expected = b"BSroutes".to_vec();
    for number in [1u32, 2, 300, 2, 8] {
        expected.extend(number.to_le_bytes());
    }
    expected.extend(b"m 2 tiny");
    expected.extend([0xe8, 3, 0, 0, 0, 0, 0, 0, 0xd0, 7, 0, 0, 0, 0, 0, 0]);
    expected.extend([0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0]);
    expected.extend([0, 0, 43, 1, 1, 0, 2, 0, 3, 0, 4, 0, 2, 1, 6, 0]);
    expected.extend([2, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0]);
    expected.extend([7, 0, 8, 0, 9, 0, 10, 0]);
    expected.extend([2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    expected.extend(fnv1a(&expected).to_le_bytes());
    assert_eq!(std::fs::read(path).unwrap(), expected);
    assert_eq!((trace.identity(), trace.shape()), ("m 2 tiny", &shape));
    let read: Vec<_> = trace.steps().iter().map(|step| (step.position(), step.tokens())).collect();
    assert_eq!(read, [(0, 2), (2, 1)]);
    assert_eq!((trace.steps()[0].layer(1), trace.steps()[1].layer(0)), (&[3, 4, 258, 6][..], &[7, 8][..]));
}

#[test]
fn what_is_no_step_is_refused_and_nothing_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let (shape, steps) = small();
    let path = folder.path().join("x.trace");
    let mut writer = TraceWriter::create(&path, "m 2 tiny", &shape).unwrap();
    let first = [steps[0].1[0].as_slice(), &steps[0].1[1]];
    for (tokens, layers, part) in [
        (0, &first[..], "tokens of a step: expected 1 to 4294967295, got 0"),
        (2, &first[..1], "layers of a step: expected 2, got 1"),
        (1, &first, "ids of layer 0: expected 2, got 4"),
        (2, &[first[0], &[1, 2, 3, 300]], "id in layer 1: expected less than 300, got 300"),
    ] {
        let error = writer.step(0, tokens, layers).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
    writer.step(0, 2, &first).unwrap();
    assert!(!path.exists(), "not before it is complete");
    writer.finish().unwrap();
    assert_eq!(Trace::load(&path).unwrap().steps().len(), 1);
    let mut dropped = TraceWriter::create(&path, "other", &shape).unwrap();
    dropped.step(0, 2, &first).unwrap();
    drop(dropped);
    assert_eq!(Trace::load(&path).unwrap().identity(), "m 2 tiny", "what was there stays");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "no partial file is left");
    let refused = |identity: &str, shape: Shape, part: &str| {
        let error = TraceWriter::create(&path, identity, &shape).err().expect("an error").to_string();
        assert!(error.contains(part), "{error}");
    };
    refused("m", Shape { experts: 5000, ..shape.clone() }, "experts: expected 1 to 4096, got 5000");
    refused("m", Shape { used: 301, ..shape.clone() }, "used experts: expected 1 to 300, got 301");
    refused("m", Shape { expert_bytes: vec![], ..shape.clone() }, "layers: expected 1 to 1024, got 0");
    refused(&"m".repeat(4097), shape.clone(), "bytes of identity: expected at most 4096, got 4097");
    let error = TraceWriter::create(Path::new("/no/such/folder/x"), "m", &shape).err().expect("an error").to_string();
    assert!(error.contains("cannot write '/no/such/folder/x': No such file"), "{error}");
}

#[test]
fn damaged_traces_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    let (shape, steps) = small();
    let (path, _) = trace(folder.path(), &shape, &steps);
    let whole = std::fs::read(&path).unwrap();
    let damaged = folder.path().join("damaged.trace");
    let error = |bytes: &[u8]| -> TraceError {
        std::fs::write(&damaged, bytes).unwrap();
        Trace::load(&damaged).expect_err("damaged")
    };
    for length in 0..whole.len() {
        assert!(matches!(error(&whole[..length]), TraceError::Truncated { .. }), "cut to {length}");
    }
    for bit in 0..8 * whole.len() {
        let mut bytes = whole.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        error(&bytes);
    }
    let mut random = Random(5);
    for _ in 0..3000 {
        let mut bytes = whole.clone();
        for _ in 0..1 + below(&mut random, 4) {
            bytes[below(&mut random, whole.len())] = random.next() as u8;
        }
        if bytes != whole {
            error(&bytes);
        }
    }
    // Offsets: header of 28 bytes, 8 of identity, 16 of layers; the first step's ids begin at 64.
    let changed = |at: usize, new: &[u8]| {
        let mut bytes = whole.clone();
        bytes[at..at + new.len()].copy_from_slice(new);
        bytes
    };
    let named = |bytes: &[u8], part: &str| {
        let text = error(bytes).to_string();
        assert!(text.contains(part) && text.contains("damaged.trace"), "{part} is not in {text}");
    };
    named(&changed(0, b"GGUF"), "start of a routing trace at byte 0: expected \"BSroutes\", found \"GGUFutes\"");
    named(&changed(8, &[2]), "version at byte 8: expected 1, found 2");
    named(&changed(12, &[0]), "layers at byte 12: expected 1 to 1024, found 0");
    named(&changed(16, &[0xff; 4]), "experts at byte 16: expected 1 to 4096, found 4294967295");
    named(&changed(20, &[0xff; 2]), "used experts at byte 20: expected 1 to 300, found 65535");
    named(&changed(24, &[0xff; 3]), "bytes of identity at byte 24: expected 0 to 4096, found 16777215");
    named(&changed(28, &[0xff]), "identity at byte 28: expected UTF-8 text");
    named(&changed(60, &[0xff; 4]), "ids of step 0 at byte 64: expected 34359738360 bytes, found 56 before");
    named(&changed(66, &[44]), "ids of step 0 at byte 66: expected less than 300, found 300");
    named(&changed(64, &[1]), &format!("checksum at byte {}: expected ", whole.len() - 8));
    named(&changed(whole.len() - 20, &[3]), "number of steps at byte 100: expected 2, found 3");
    named(
        &[&whole[..], &[0]].concat(),
        &format!("end at byte {}: expected the end of the file, found more", whole.len()),
    );
    named(&whole[..50], "bytes of experts at byte 36: expected 16 bytes, found 14 before the end of the file");
    assert!(Trace::load(folder.path()).unwrap_err().to_string().contains("cannot read"));
}

#[test]
fn damaged_profiles_are_errors_or_equal() {
    let folder = tempfile::tempdir().unwrap();
    let counts = vec![vec![1, 2_000_000, 3], vec![0, u64::MAX, 6]];
    let saved = profile(folder.path(), "m \"2\" tiny", &counts);
    let path = folder.path().join("p.json");
    std::fs::write(&path, "older").unwrap();
    saved.save(&path).unwrap();
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2, "no partial file is left");
    let load = |path: &Path| Profile::load(path, "m \"2\" tiny", 2, 3);
    assert_eq!(load(&path).unwrap(), saved);
    assert_eq!(saved.counts(), counts);
    let whole = std::fs::read(&path).unwrap();
    let damaged = folder.path().join("damaged.json");
    let check = |bytes: &[u8]| {
        std::fs::write(&damaged, bytes).unwrap();
        match load(&damaged) {
            Ok(read) => assert_eq!(read, saved, "{}", String::from_utf8_lossy(bytes)),
            Err(error) => assert!(error.to_string().contains("damaged.json"), "{error}"),
        }
    };
    (0..whole.len()).for_each(|length| check(&whole[..length]));
    for bit in 0..8 * whole.len() {
        let mut bytes = whole.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        check(&bytes);
    }
    let mut random = Random(6);
    for _ in 0..3000 {
        let mut bytes = whole.clone();
        for _ in 0..1 + below(&mut random, 4) {
            bytes[below(&mut random, whole.len())] = b" 0123456789abcdef{}[]\",:\\-.e\xff"[below(&mut random, 28)];
        }
        check(&bytes);
    }
    let text = String::from_utf8(whole).unwrap();
    for (from, to, part) in [
        ("bankshot-expert-profile", "gguf", "format: expected \"bankshot-expert-profile\", found \"gguf\""),
        ("\"version\":1", "\"version\":2", "version: expected 1, found 2"),
        ("tiny", "huge", "model: expected \"m \\\"2\\\" tiny\", found \"m \\\"2\\\" huge\""),
        ("\"layers\":2", "\"layers\":3", "layers: expected 2, found 3"),
        ("\"experts\":3", "\"experts\":4", "experts: expected 3, found 4"),
        ("[1,2000000,3]", "[1,2000000]", "counts of layer 0: expected 3, found 2"),
        ("[1,2000000,3],", "", "layers of counts: expected 2, found 1"),
        ("2000000", "2000001", "checksum: expected "),
        ("2000000", "-1", "expected an expert profile, found: invalid value: integer `-1`"),
        ("\"layers\":2", "\"layers\":2,\"more\":2", "unknown field `more`"),
    ] {
        assert!(text.contains(from), "{from} is not in {text}");
        std::fs::write(&damaged, text.replace(from, to)).unwrap();
        let error = load(&damaged).unwrap_err().to_string();
        assert!(error.contains(part) && error.contains("damaged.json"), "`{part}` is not in {error}");
    }
    let huge = std::fs::File::create(&damaged).unwrap();
    huge.set_len((256 << 20) + 1).unwrap();
    let error = load(&damaged).unwrap_err().to_string();
    assert!(error.contains("at most 268435456 bytes, found more"), "{error}");
    assert!(load(Path::new("/no/such.json")).unwrap_err().to_string().contains("cannot read '/no/such.json'"));
    let error = saved.save(Path::new("/no/such/p.json")).unwrap_err().to_string();
    assert!(error.contains("cannot write '/no/such/p.json': No such file"), "{error}");
    let occupied = folder.path().join("folder");
    std::fs::create_dir_all(occupied.join("in")).unwrap();
    assert!(saved.save(&occupied).unwrap_err().to_string().contains("cannot write"));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 4, "no partial file is left");
}

fn bankshot(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bankshot"));
    command.args(args).stdin(Stdio::null()).output().expect("the program starts")
}

/// One layer of four experts, one a token: 0 0 1 1 1 1 0.
fn by_hand(folder: &Path) -> PathBuf {
    let steps: Vec<_> = [0, 0, 1, 1, 1, 1, 0].iter().map(|id| (1, vec![vec![*id]])).collect();
    trace(folder, &Shape { experts: 4, used: 1, expert_bytes: vec![100] }, &steps).0
}

#[test]
fn the_command_prints_what_counting_by_hand_gives() {
    let folder = tempfile::tempdir().unwrap();
    let path = by_hand(folder.path());
    let path = path.to_str().unwrap();
    let run = |args: &[&str]| {
        let output = bankshot(&[&["residency-sim", path], args].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let text = run(&["--slots", "1"]);
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    assert!(text.contains("m 2 tiny") && text.contains("7 steps, 7 tokens; 1 layers of 4 experts"), "{text}");
    assert!(text.contains("67108864 bytes after a step"), "{text}");
    for line in [
        // Expert 1 is used most.
        "static profile of this trace 4 3 57.14 % 300 0 0",
        // 1 is asked for twice before it is there; 0 comes too late.
        "LRU 4 3 57.14 % 300 2 200",
        // Four uses are not two and a half more than two.
        "LFU with decay 3 4 42.86 % 400 0 0",
        "optimum 5 2 71.43 % 200 0 0",
    ] {
        assert!(lines.iter().any(|words| words.join(" ") == line), "{line} is not in\n{text}");
    }
    let object: Value = serde_json::from_str(&run(&["--slots", "1,4", "--budget", "99", "--json"])).unwrap();
    assert_eq!((&object["model"], &object["static_profile"]), (&json!("m 2 tiny"), &json!("this trace")));
    assert_eq!((&object["layers"], &object["experts"], &object["used"]), (&json!(1), &json!(4), &json!(1)));
    assert_eq!((&object["steps"], &object["tokens"], &object["budget_bytes"]), (&json!(7), &json!(7), &json!(99)));
    let lru = &object["runs"][0]["policies"][1];
    // No swap fits, so 0 stays.
    assert_eq!(
        (&lru["policy"], &lru["hits"], &lru["misses"], &lru["miss_bytes"]),
        (&json!("LRU"), &json!(3), &json!(4), &json!(400))
    );
    assert_eq!(object["runs"][1]["slots"], 4);
    assert!(object["runs"][1]["policies"].as_array().unwrap().iter().all(|policy| policy["hit_rate"] == 1.0));
    let object: Value = serde_json::from_str(&run(&["--json"])).unwrap();
    let slots: Vec<_> = object["runs"].as_array().unwrap().iter().map(|run| run["slots"].as_u64().unwrap()).collect();
    assert_eq!(slots, [1, 2, 3], "1/8 of four is one, as is 1/4");
    profile(folder.path(), "m 2 tiny", &[vec![0, 1, 0, 0]]);
    let given = folder.path().join("made.json");
    let text = run(&["--slots", "1", "--profile", given.to_str().unwrap()]);
    let is_static =
        |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ") == "static profile 4 3 57.14 % 300 0 0";
    assert!(text.lines().any(is_static), "{text}");
}

#[test]
fn the_command_names_what_is_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let path = by_hand(folder.path());
    let path = path.to_str().unwrap();
    let other = folder.path().join("made.json");
    let other = other.to_str().unwrap();
    profile(folder.path(), "another model", &[vec![1, 2, 3, 4]]);
    for (args, part) in [
        (&["/no/such/trace"][..], "cannot read '/no/such/trace': No such file"),
        (&[other], "made.json': start of a routing trace at byte 0: expected \"BSroutes\""),
        (&[path, "--slots", "0"], "--slots: expected 1 to 4, the experts of a layer, got 0"),
        (&[path, "--slots", "2,5"], "--slots: expected 1 to 4, the experts of a layer, got 5"),
        (&[path, "--profile", "/no/such/file"], "cannot read '/no/such/file'"),
        (&[path, "--profile", path], "made.trace': expected an expert profile, found: "),
        (&[path, "--profile", other], "model: expected \"m 2 tiny\", found \"another model\""),
    ] {
        let output = bankshot(&[&["residency-sim"], args].concat());
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{args:?}: {text}");
        assert!(text.contains(part) && !text.contains("panicked"), "`{part}` is not in {text}");
    }
    for args in [&[][..], &[path, "--slots", "some"], &[path, "--budget", "much"]] {
        assert_eq!(bankshot(&[&["residency-sim"], args].concat()).status.code(), Some(2), "{args:?}");
    }
}
