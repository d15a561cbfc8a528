//! Which experts of a mixture lie on a card and which are read from host memory, without any device: what was used how often,
//! which experts change places between steps, files of both, and the replay of a routing trace. `docs/residency.md` has
//! the rules and the formats.
//!
//! A *step* is one chunk of tokens. Nothing here changes results: a kernel computes the same wherever an expert lies.

mod counters;
mod file;
mod placement;
mod profile;
mod simulate;
mod trace;

use std::time::Duration;

use placement::Placement;

pub use counters::Counters;
pub use placement::Swap;
pub use profile::{Profile, ProfileError};
pub use simulate::{Outcome, Policy, simulate};
pub use trace::{Step, Trace, TraceError, TraceWriter};

/// Expert layers that a file may have; it lies well above any real model, as do the other bounds.
const LAYERS_MAX: usize = 1024;
/// Experts of a layer.
const EXPERTS_MAX: usize = 4096;
/// Bytes of a model's identity.
const IDENTITY_BYTES_MAX: usize = 4096;

/// One use of an expert, in use counts. They are fixed-point numbers, so that they decay alike on every machine.
pub const USE: u64 = 1 << 16;
/// Tokens after which use counts decay once.
const DECAY_TOKENS: usize = 16;
/// A decay takes away 1/16.
const DECAY_SHIFT: u32 = 4;

/// The experts of a model, or of one card's part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Experts of each layer.
    pub experts: usize,
    /// Experts that a token uses in each layer.
    pub used: usize,
    /// Bytes of one expert's three matrices, for each expert layer.
    pub expert_bytes: Vec<u64>,
}

/// Where a card's experts lie, and how often each has been used lately.
///
/// After each step come [`record`](Residency::record) for every layer, [`end_step`](Residency::end_step),
/// [`arrived`](Residency::arrived) for every copy that is done, and [`choose_swaps`](Residency::choose_swaps).
#[derive(Debug)]
pub struct Residency {
    placement: Placement,
    /// Decayed use counts, [layer][expert], in units of 1/[`USE`].
    uses: Vec<Vec<u64>>,
    /// The same undecayed, from the first profile on: what is liked in the long run.
    totals: Vec<Vec<u64>>,
    /// Tokens since the last decay.
    tokens: usize,
}

impl Residency {
    /// Slots filled with the most used experts of a profile, most used first, ties to the lowest id; without a profile with
    /// the lowest ids. The profile's counts are where counting begins.
    ///
    /// # Panics
    /// Unless there are 1 to `experts` slots for each layer, and the profile is of this shape.
    pub fn new(shape: Shape, slots: &[usize], initial: Option<&Profile>) -> Residency {
        let none = || vec![vec![0; shape.experts]; shape.expert_bytes.len()];
        let totals = initial.map_or_else(none, |profile| profile.counts().to_vec());
        let uses = totals.iter().map(|counts| initial_uses(shape.used, counts)).collect();
        // Scaled counts may tie where the profile's do not.
        let placement = Placement::new(shape, slots, &totals);
        Residency { placement, uses, totals, tokens: 0 }
    }

    /// Slot from which the next step may read an expert.
    pub fn resident(&self, layer: usize, expert: u32) -> Option<usize> {
        self.placement.resident(layer, expert)
    }

    /// The expert that a slot holds; `None` while one is on its way there.
    pub fn expert_in(&self, layer: usize, slot: usize) -> Option<u32> {
        self.placement.expert_in(layer, slot)
    }

    /// Counts what a layer's router chose in the step that has just been done: the ids of all its tokens, with repeats.
    /// Ids that are no expert's are left out.
    pub fn record(&mut self, layer: usize, chosen: &[u32]) {
        for counts in [&mut self.uses[layer], &mut self.totals[layer]] {
            for expert in chosen {
                if let Some(count) = counts.get_mut(*expert as usize) {
                    *count = count.saturating_add(USE);
                }
            }
        }
        self.placement.record(layer, chosen);
    }

    /// Ends a step of so many tokens.
    pub fn end_step(&mut self, tokens: usize) {
        self.placement.end_step();
        self.tokens += tokens;
        while self.tokens >= DECAY_TOKENS {
            self.tokens -= DECAY_TOKENS;
            for count in self.uses.iter_mut().flatten() {
                *count -= *count >> DECAY_SHIFT;
            }
        }
    }

    /// Begins swaps of at most so many bytes: in each, an expert that the last step chose and that is not resident gets the
    /// slot of the layer's least used one, if it has been used more by a margin. The largest difference comes first.
    ///
    /// From here on, the evicted expert is not resident, and the new one is not before [`arrived`](Residency::arrived).
    pub fn choose_swaps(&mut self, max_bytes: u64) -> Vec<Swap> {
        self.placement.choose(max_bytes, |layer, expert, _| self.uses[layer][expert], margin)
    }

    /// Ends a swap whose copy is done. One that was not begun, or has ended, changes nothing.
    pub fn arrived(&mut self, swap: &Swap) {
        self.placement.arrived(swap);
    }

    /// Counts a wait for experts.
    pub fn waited(&mut self, time: Duration) {
        let counters = self.placement.counters_mut();
        counters.waits += 1;
        counters.wait_us += time.as_micros() as u64;
    }

    /// What has been counted since the start.
    pub fn counters(&self) -> &Counters {
        self.placement.counters()
    }

    /// All uses since the start and in the profile given then, of no named model; [`Profile::join`] gives them one.
    pub fn profile(&self) -> Profile {
        Profile::new(String::new(), self.placement.shape().experts, self.totals.clone())
    }
}

/// A layer's counts of a profile, made smaller where they sum up to more than the decayed counts ever do: however long it
/// was counted, it must not outweigh what is used from now on.
fn initial_uses(used: usize, counts: &[u64]) -> Vec<u64> {
    let most = used as u128 * u128::from(USE) * ((DECAY_TOKENS as u128) << DECAY_SHIFT);
    let sum: u128 = counts.iter().map(|count| u128::from(*count)).sum();
    // The product is below 2^64 * 2^40, and the quotient is not above the count.
    let scale = |count: &u64| if sum > most { (u128::from(*count) * most / sum) as u64 } else { *count };
    counts.iter().map(scale).collect()
}

/// By how much a count has to be larger than that of a resident expert: a swap costs a read, which has to come back, and
/// counts that differ by their noise must not swap to and fro.
fn margin(resident: u64) -> u64 {
    2 * USE + resident / 4
}
