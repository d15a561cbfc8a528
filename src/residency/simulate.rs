//! Replay of a routing trace: what a choice of resident experts would have had as hits.

use std::collections::BinaryHeap;

use super::{Counters, Profile, Residency, Swap, Trace};

/// How resident experts are chosen. The same rules hold for all: the slots do not change within a step, and after it an
/// expert comes into a slot only if the step chose it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// The most used experts of a profile, for ever.
    Static,
    /// An expert gets the slot of the one that was not used for longest.
    Lru,
    /// The engine's: [`Residency`] itself.
    Lfu,
    /// The most hits that any policy under these rules can have, in each layer: Belady's algorithm with bypass. It knows the
    /// trace, begins with the best contents, keeps what it reads or not without a copy, and has no budget.
    Optimum,
}

impl Policy {
    pub fn name(self) -> &'static str {
        match self {
            Policy::Static => "static profile",
            Policy::Lru => "LRU",
            Policy::Lfu => "LFU with decay",
            Policy::Optimum => "optimum",
        }
    }
}

/// What a policy gave.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    pub policy: Policy,
    pub counters: Counters,
}

/// Replays a trace for each policy, with `slots` in every layer and swaps of at most `budget_bytes` after each step.
/// A copy takes one step: it overlaps the next one, and its expert is resident in the one after.
///
/// LRU and LFU begin with `profile`, or without one with the lowest ids. The static choice is that of `profile`, or
/// without one of the counts of the trace itself, which no engine can know beforehand.
///
/// # Panics
/// Unless `slots` is 1 to the number of experts, and the profile is of the trace's shape.
pub fn simulate(trace: &Trace, slots: usize, budget_bytes: u64, profile: Option<&Profile>) -> Vec<Outcome> {
    let shape = trace.shape();
    let slots = vec![slots; shape.expert_bytes.len()];
    let begin = |profile: Option<&Profile>| Residency::new(shape.clone(), &slots, profile);
    let of_trace = profile.is_none().then(|| Profile::of_trace(trace));
    let fixed = replay(trace, begin(profile.or(of_trace.as_ref())), |_| Vec::new());
    let lru = replay(trace, begin(profile), |online| {
        online.placement.choose(budget_bytes, |_, _, last_step| last_step, |_| 0)
    });
    let lfu = replay(trace, begin(profile), |online| online.choose_swaps(budget_bytes));
    let outcome = |policy, counters| Outcome { policy, counters };
    vec![
        outcome(Policy::Static, fixed),
        outcome(Policy::Lru, lru),
        outcome(Policy::Lfu, lfu),
        outcome(Policy::Optimum, optimum(trace, &slots)),
    ]
}

fn replay(trace: &Trace, mut online: Residency, mut choose: impl FnMut(&mut Residency) -> Vec<Swap>) -> Counters {
    let mut in_flight: Vec<Swap> = Vec::new();
    let mut chosen = Vec::new();
    for step in trace.steps() {
        for layer in 0..trace.shape().expert_bytes.len() {
            chosen.clear();
            chosen.extend(step.layer(layer).iter().map(|expert| u32::from(*expert)));
            online.record(layer, &chosen);
        }
        online.end_step(step.tokens());
        in_flight.iter().for_each(|swap| online.arrived(swap));
        in_flight = choose(&mut online);
    }
    *online.counters()
}

/// Belady's algorithm. A step asks for several experts at once; what is kept after it is chosen from what was kept before
/// it and what it read, and those stay that are asked for again soonest.
fn optimum(trace: &Trace, slots: &[usize]) -> Counters {
    let mut counters = Counters { steps: trace.steps().len() as u64, ..Counters::default() };
    for (layer, slots) in slots.iter().enumerate() {
        let expert_bytes = trace.shape().expert_bytes[layer];
        // Different experts of each step, [step]
        let asked: Vec<Vec<u16>> = trace.steps().iter().map(|step| distinct(step.layer(layer))).collect();
        // Backwards: when each is asked for again, [step][expert]; and at last when it is for the first time.
        let mut next: Vec<Option<usize>> = vec![None; trace.shape().experts];
        let mut again: Vec<Vec<Option<usize>>> = vec![Vec::new(); asked.len()];
        for (step, asked) in asked.iter().enumerate().rev() {
            again[step] = asked.iter().map(|expert| next[usize::from(*expert)].replace(step)).collect();
        }
        let mut kept = Kept { slots: *slots, until: vec![None; next.len()], count: 0, order: BinaryHeap::new() };
        for (expert, first) in next.iter().enumerate() {
            kept.add(expert, *first);
        }
        kept.shrink();
        for (step, asked) in asked.iter().enumerate() {
            for (expert, again) in asked.iter().zip(&again[step]) {
                if kept.until[usize::from(*expert)].is_some() {
                    counters.hits += 1;
                    kept.remove(usize::from(*expert));
                } else {
                    counters.misses += 1;
                    counters.miss_bytes = counters.miss_bytes.saturating_add(expert_bytes);
                }
                kept.add(usize::from(*expert), *again);
            }
            kept.shrink();
        }
    }
    counters
}

fn distinct(ids: &[u16]) -> Vec<u16> {
    let mut ids = ids.to_vec();
    ids.sort_unstable();
    ids.dedup();
    ids
}

/// What the optimum keeps of a layer between two steps.
struct Kept {
    slots: usize,
    /// [expert]: the step for which it is kept; `None` if it is not.
    until: Vec<Option<usize>>,
    count: usize,
    /// (until, expert). Those that were asked for since are still there, but below all that are kept.
    order: BinaryHeap<(usize, usize)>,
}

impl Kept {
    /// One that is not asked for again is not kept.
    fn add(&mut self, expert: usize, until: Option<usize>) {
        if let Some(until) = until {
            self.until[expert] = Some(until);
            self.count += 1;
            self.order.push((until, expert));
        }
    }

    fn remove(&mut self, expert: usize) {
        self.until[expert] = None;
        self.count -= 1;
    }

    /// Gives up those that are asked for last, until the rest fits.
    fn shrink(&mut self) {
        while self.count > self.slots {
            if let Some((_, expert)) = self.order.pop() {
                self.remove(expert);
            }
        }
    }
}
