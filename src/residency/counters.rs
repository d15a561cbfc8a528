//! What is counted about resident experts.

use std::fmt;

/// Hits, misses and moves of experts. A step reads each different expert of a layer once, and that is one hit or miss.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Counters {
    pub steps: u64,
    /// Experts that were read in their slots.
    pub hits: u64,
    /// Experts that were read elsewhere.
    pub misses: u64,
    pub miss_bytes: u64,
    /// Swaps that were begun.
    pub swaps: u64,
    pub swap_bytes: u64,
    /// How often a step waited for experts.
    pub waits: u64,
    pub wait_us: u64,
}

impl Counters {
    /// Adds what another card counted. Cards take part in the same steps, so the larger number of those stays.
    pub fn add(&mut self, other: &Counters) {
        self.steps = self.steps.max(other.steps);
        self.hits += other.hits;
        self.misses += other.misses;
        self.miss_bytes = self.miss_bytes.saturating_add(other.miss_bytes);
        self.swaps += other.swaps;
        self.swap_bytes = self.swap_bytes.saturating_add(other.swap_bytes);
        self.waits += other.waits;
        self.wait_us += other.wait_us;
    }

    /// Part of reads that were hits, 0 to 1; 0 if there were none.
    pub fn hit_rate(&self) -> f64 {
        self.hits as f64 / (self.hits + self.misses).max(1) as f64
    }
}

impl fmt::Display for Counters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Counters { steps, hits, misses, miss_bytes, swaps, swap_bytes, waits, wait_us } = self;
        write!(
            f,
            "{steps} steps, {hits} hits ({:.1} %), {misses} misses of {miss_bytes} bytes, {swaps} swaps of {swap_bytes} bytes, \
             {waits} waits of {wait_us} us",
            100.0 * self.hit_rate()
        )
    }
}
