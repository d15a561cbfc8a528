//! Where a step's time goes: every operation launched alone, waited for and timed.

use std::collections::BTreeSet;
use std::fmt;
use std::time::{Duration, Instant};

use super::launch::{Launcher, Window};
use super::{Engine, EngineError};
use crate::plan::{Op, Region, Step};
use crate::quant::Format;

/// One row of a [`Breakdown`]: an operation over all layers that have it with the same matrix.
#[derive(Clone, Debug, PartialEq)]
pub struct OpTime {
    /// The step's name in the plan, or what the host does.
    pub name: &'static str,
    /// Format, rows and columns of its matrix.
    pub matrix: Option<(Format, usize, usize)>,
    /// Bytes that the calls have to read at least: weights as they lie on the device, of experts those that were chosen,
    /// and the delta net's matrices.
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

    /// Times work of the host.
    pub fn host<T>(&mut self, name: &'static str, work: impl FnOnce() -> T) -> T {
        let begin = Instant::now();
        let result = work();
        let times = vec![begin.elapsed()];
        self.add(OpTime { name, matrix: None, bytes: 0, products: 0, times });
        result
    }

    fn add(&mut self, new: OpTime) {
        match self.ops.iter_mut().find(|op| op.name == new.name && op.matrix == new.matrix) {
            Some(op) => {
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
    /// Computes a chunk of `count` tokens, with a wait after every operation.
    pub(super) fn chunk_measured(
        &mut self,
        count: usize,
        logits: bool,
        breakdown: &mut Breakdown,
    ) -> Result<(), EngineError> {
        breakdown.host("upload", || self.upload_inputs(count))?;
        let window = Window { first: 0, count };
        // Experts that the layer's router chose.
        let mut chosen = 0;
        let plan = &self.plan;
        let start = plan.start.iter().map(|step| (step, None));
        let layers = plan.layers.iter().flat_map(|layer| layer.steps.iter().map(|step| (step, Some(layer.index))));
        for (step, layer) in start.chain(layers) {
            breakdown.add(self.measure(step, layer, window, chosen)?);
            if let Op::MoeRoute { plan, .. } = &step.op {
                chosen = self.chosen_experts(*plan)?;
            }
        }
        if logits {
            let window = Window { first: count - 1, count: 1 };
            for step in &plan.head {
                breakdown.add(self.measure(step, None, window, chosen)?);
            }
            breakdown.host("download", || self.download_logits(1))?;
        }
        Ok(())
    }

    fn measure(&self, step: &Step, layer: Option<usize>, window: Window, chosen: usize) -> Result<OpTime, EngineError> {
        let launcher: Launcher<'_> = self.launcher();
        let begin = Instant::now();
        launcher.step(step, layer, window)?;
        self.queue.wait()?;
        let times = vec![begin.elapsed()];
        let (weight, matrices, uses) = match &step.op {
            Op::Matmul { weight, .. } => (Some(*weight), 1, 1),
            Op::ExpertMatmul { weight, .. } => {
                (Some(*weight), chosen, self.plan.spec.experts.as_ref().map_or(0, |experts| experts.used))
            }
            _ => (None, 0, 0),
        };
        let Some(weight) = weight.map(|weight| &self.plan.weights[weight]) else {
            let bytes = match &step.op {
                Op::GdnStep { matrix, .. } => self.plan.state[*matrix].region.bytes,
                _ => 0,
            };
            return Ok(OpTime { name: step.name, matrix: None, bytes, products: 0, times });
        };
        let (rows, columns) = (weight.tensor.rows, weight.tensor.cols);
        Ok(OpTime {
            name: step.name,
            matrix: Some((weight.tensor.format, rows, columns)),
            bytes: weight.expert_bytes * matrices as u64,
            products: (window.count * uses * rows * columns) as u64,
            times,
        })
    }

    /// Different experts in a layer's expert plan: i32, a count at 0, and from 4 on (expert, first slot, slots) each.
    fn chosen_experts(&self, plan: Region) -> Result<usize, EngineError> {
        let mut bytes = vec![0; plan.bytes as usize];
        self.queue.download(&mut bytes, &self.span(plan, plan.bytes)?)?;
        let (words, _) = bytes.as_chunks::<4>();
        let entries = words.first().map_or(0, |count| i32::from_le_bytes(*count) as usize);
        let experts = words.get(4..).unwrap_or_default().chunks_exact(3).take(entries).map(|entry| entry[0]);
        Ok(experts.collect::<BTreeSet<_>>().len())
    }
}
