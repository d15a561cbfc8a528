//! Where a step's time goes: every operation launched alone, waited for and timed.

use std::collections::BTreeSet;
use std::fmt;
use std::time::{Duration, Instant};

use super::launch::Window;
use super::{Engine, EngineError};
use crate::plan::{Op, Region, Step, Traffic, traffic};
use crate::quant::Format;

/// One row of a [`Breakdown`]: an operation over all layers that have it with the same matrix.
#[derive(Clone, Debug, PartialEq)]
pub struct OpTime {
    /// The step's name in the plan, or what the host does.
    pub name: &'static str,
    /// Format, rows and columns of its matrix.
    pub matrix: Option<(Format, usize, usize)>,
    /// Bytes of the file that the calls read as weights: of experts those that were chosen, of tables the rows.
    pub weight_bytes: u64,
    /// Bytes that the calls move at least: weights as they lie on the device, activations, state.
    pub bytes: u64,
    /// Multiplications with a weight.
    pub products: u64,
    /// Of each call.
    pub times: Vec<Duration>,
}

impl OpTime {
    pub fn calls(&self) -> usize {
        self.times.len()
    }

    /// The median call's time for every call: what other programs take from the device would else count for the operation
    /// that it fell on.
    pub fn time(&self) -> Duration {
        let mut times = self.times.clone();
        times.sort_unstable();
        times.get(times.len() / 2).map_or(Duration::ZERO, |median| *median * times.len() as u32)
    }
}

/// Times of all operations of one or more calls, in the order of their first launch.
///
/// Waiting after each operation costs time that a step otherwise does not have, so the sum is above the step's own time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Breakdown {
    ops: Vec<OpTime>,
}

impl Breakdown {
    pub fn ops(&self) -> &[OpTime] {
        &self.ops
    }

    /// Sum over all operations.
    pub fn time(&self) -> Duration {
        self.ops.iter().map(|op| op.time()).sum()
    }

    /// Bytes of the file that all operations read as weights.
    pub fn weight_bytes(&self) -> u64 {
        self.ops.iter().map(|op| op.weight_bytes).sum()
    }

    /// Times work of the host.
    pub fn host<T>(&mut self, name: &'static str, work: impl FnOnce() -> T) -> T {
        self.host_reading(name, 0, work)
    }

    /// Times work of the host that reads rows of a table.
    pub fn host_reading<T>(&mut self, name: &'static str, row_bytes: u64, work: impl FnOnce() -> T) -> T {
        let begin = Instant::now();
        let result = work();
        let times = vec![begin.elapsed()];
        self.add(OpTime { name, matrix: None, weight_bytes: row_bytes, bytes: row_bytes, products: 0, times });
        result
    }

    fn add(&mut self, new: OpTime) {
        match self.ops.iter_mut().find(|op| op.name == new.name && op.matrix == new.matrix) {
            Some(op) => {
                op.weight_bytes += new.weight_bytes;
                op.bytes += new.bytes;
                op.products += new.products;
                op.times.extend(new.times);
            }
            None => self.ops.push(new),
        }
    }
}

impl fmt::Display for Breakdown {
    /// A table, the longest time first.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut ops: Vec<&OpTime> = self.ops.iter().collect();
        ops.sort_by_key(|op| std::cmp::Reverse(op.time()));
        let total = self.time().as_secs_f64().max(1e-9);
        let line = |f: &mut fmt::Formatter<'_>,
                    name: &str,
                    matrix: &str,
                    calls: usize,
                    bytes: u64,
                    products: u64,
                    time: f64| {
            let rate = |count: u64| match count {
                0 => "-".to_owned(),
                count => format!("{:.2}", count as f64 / time.max(1e-9) / 1e9),
            };
            writeln!(
                f,
                "{name:<20} {matrix:<20} {calls:>6} {:>9.2} {:>9.2} {:>7} {:>10} {:>5.1} %",
                bytes as f64 / 1e6,
                time * 1e3,
                rate(bytes),
                rate(products),
                100.0 * time / total
            )
        };
        writeln!(
            f,
            "{:<20} {:<20} {:>6} {:>9} {:>9} {:>7} {:>10} {:>7}",
            "operation", "matrix", "calls", "MB", "ms", "GB/s", "Gproduct/s", "share"
        )?;
        for op in &ops {
            let matrix = op
                .matrix
                .map_or(String::new(), |(format, rows, columns)| format!("{} {rows} x {columns}", format.name()));
            line(f, op.name, &matrix, op.calls(), op.bytes, op.products, op.time().as_secs_f64())?;
        }
        let sum = |count: fn(&OpTime) -> u64| ops.iter().map(|op| count(op)).sum::<u64>();
        let calls = ops.iter().map(|op| op.calls()).sum();
        line(f, "all", "", calls, sum(|op| op.bytes), sum(|op| op.products), total)
    }
}

impl Engine {
    /// Launches one step of a card, waits for it and notes its time.
    pub(super) fn measure(
        &mut self,
        card: usize,
        step: &Step,
        layer: Option<usize>,
        window: Window,
        chunk: usize,
        breakdown: &mut Breakdown,
    ) -> Result<(), EngineError> {
        if matches!(step.op, Op::Gather(_)) {
            return Ok(());
        }
        let begin = Instant::now();
        self.launcher(card).step(step, layer, window)?;
        self.cards[card].wait()?;
        let times = vec![begin.elapsed()];
        if let Op::MoeRoute { plan, .. } = &step.op {
            self.cards[card].experts_chosen = self.chosen_experts(card, *plan)?;
        }
        let plan = &self.plan;
        let position = self.input(chunk).position + window.first;
        let experts = self.cards[card].experts_chosen;
        let Traffic { weight_bytes, bytes, products, matrix } =
            traffic((&plan.spec, &plan.options, &plan.cards[card]), &step.op, window.count, position, experts);
        breakdown.add(OpTime { name: step.name, matrix, weight_bytes, bytes, products, times });
        Ok(())
    }

    /// Different experts in a layer's expert plan: i32, a count at 0, and from 4 on (expert, first slot, slots) each.
    fn chosen_experts(&self, card: usize, plan: Region) -> Result<usize, EngineError> {
        let mut bytes = vec![0; plan.bytes as usize];
        self.cards[card].get(&mut bytes, plan)?;
        let (words, _) = bytes.as_chunks::<4>();
        let entries = words.first().map_or(0, |count| i32::from_le_bytes(*count) as usize);
        let experts = words.get(4..).unwrap_or_default().chunks_exact(3).take(entries).map(|entry| entry[0]);
        Ok(experts.collect::<BTreeSet<_>>().len())
    }
}
