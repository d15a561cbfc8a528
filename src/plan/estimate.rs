//! What a step must take at least, from the bytes that it moves and the rates of an inventory. An estimate, never a measurement.

use super::traffic::traffic;
use super::{CardPlan, Op, Plan, Split};

/// Least time of a step of one token.
#[derive(Clone, Debug, PartialEq)]
pub struct Estimate {
    /// Tokens in front of the step.
    pub position: usize,
    pub cards: Vec<CardEstimate>,
    /// How often cards hand each other something, and the bytes that leave or reach a card then.
    pub exchanges: usize,
    pub exchange_bytes: u64,
    pub exchange_us: Option<f64>,
    /// All together; `None` where a rate is not known.
    pub step_us: Option<f64>,
}

/// One card's share of it.
#[derive(Clone, Debug, PartialEq)]
pub struct CardEstimate {
    /// Read and written in the card's memory.
    pub bytes: u64,
    /// Read from the host: of experts that are not resident, if every expert is chosen equally often.
    pub host_bytes: u64,
    pub us: Option<f64>,
}

impl Estimate {
    pub fn of(plan: &Plan, position: usize) -> Estimate {
        let cards: Vec<CardEstimate> = (0..plan.cards.len()).map(|card| card_estimate(plan, card, position)).collect();
        let (exchanges, bytes) = exchanges(plan);
        let facts = &plan.inventory.cards;
        let slowest = |values: Vec<Option<f64>>, least: bool| {
            let values: Option<Vec<f64>> = values.into_iter().collect();
            values.map(|values| {
                values
                    .into_iter()
                    .fold(if least { f64::INFINITY } else { 0.0 }, if least { f64::min } else { f64::max })
            })
        };
        let exchange_us = match exchanges {
            0 => Some(0.0),
            count => {
                let wait = slowest(facts.iter().map(|facts| facts.exchange_us).collect(), false);
                let link = slowest(facts.iter().map(|facts| facts.link.map(|rate| rate.bytes_per_s)).collect(), true);
                wait.zip(link).map(|(wait, link)| count as f64 * wait + bytes as f64 / link * 1e6)
            }
        };
        let times: Option<Vec<f64>> = cards.iter().map(|card| card.us).collect();
        let work_us = times.map(|times| match plan.split {
            Split::Layer => times.iter().sum::<f64>(),
            Split::Tensor => times.into_iter().fold(0.0, f64::max),
        });
        let step_us = work_us.zip(exchange_us).map(|(work, exchange)| work + exchange);
        Estimate { position, cards, exchanges, exchange_bytes: bytes, exchange_us, step_us }
    }
}

impl Estimate {
    /// What the inventory lacks for [`Estimate::step_us`], as an inventory's file calls it.
    pub fn missing(&self, plan: &Plan) -> Vec<String> {
        let mut missing = Vec::new();
        for (number, (facts, card)) in plan.inventory.cards.iter().zip(&self.cards).enumerate() {
            let exchanges = self.exchanges > 0;
            for (name, lacks) in [
                ("memory_gb_per_s", card.bytes > 0 && facts.memory.is_none()),
                ("link_gb_per_s", (card.host_bytes > 0 || exchanges) && facts.link.is_none()),
                ("exchange_us", exchanges && facts.exchange_us.is_none()),
            ] {
                missing.extend(lacks.then(|| format!("{name} of card {number}")));
            }
        }
        missing
    }
}

fn card_estimate(plan: &Plan, card: usize, position: usize) -> CardEstimate {
    let (facts, card) = (&plan.inventory.cards[card], &plan.cards[card]);
    let used = plan.spec.experts.as_ref().map_or(0, |experts| experts.used);
    let (mut bytes, mut host_bytes) = (0, 0);
    for (step, _) in card.steps().chain(card.head.iter().map(|step| (step, None))) {
        let moved = traffic((&plan.spec, &plan.options, card), &step.op, 1, position, used).bytes;
        let missed = match &step.op {
            Op::ExpertMatmul { weight, .. } => missed_bytes(plan, card, *weight),
            // Counted with the exchanges.
            Op::Gather(_) => moved,
            _ => 0,
        };
        bytes += moved - missed;
        host_bytes += if matches!(step.op, Op::Gather(_)) { 0 } else { missed };
    }
    let seconds = |bytes: u64, rate: Option<super::Rate>| match bytes {
        0 => Some(0.0),
        bytes => rate.map(|rate| bytes as f64 / rate.bytes_per_s),
    };
    let us = seconds(bytes, facts.memory).zip(seconds(host_bytes, facts.link)).map(|(card, host)| 1e6 * (card + host));
    CardEstimate { bytes, host_bytes, us }
}

/// Bytes of a matrix product's experts that are not resident, on the average.
fn missed_bytes(plan: &Plan, card: &CardPlan, weight: usize) -> u64 {
    let Some(experts) = &plan.spec.experts else { return 0 };
    let Some(layer) = card.experts.iter().find(|layer| layer.weights.contains(&weight)) else { return 0 };
    let missing = (experts.count - layer.slots.count) as u64;
    card.weights[weight].matrix_bytes * experts.used as u64 * missing / experts.count as u64
}

/// Exchanges of a step, and the bytes that they move over the links one after another.
fn exchanges(plan: &Plan) -> (usize, u64) {
    match plan.split {
        Split::Layer => {
            let hops = plan.cards.len() - 1;
            (hops, 2 * hops as u64 * plan.cards[0].buffers.hop_row_bytes())
        }
        Split::Tensor => {
            let gathers = plan.cards[0].steps().chain(plan.cards[0].head.iter().map(|step| (step, None)));
            let bytes = gathers.filter_map(|(step, _)| match &step.op {
                Op::Gather(parts) => Some(parts.iter().map(|part| part.part.row_bytes + part.whole.row_bytes).sum()),
                _ => None,
            });
            let bytes: Vec<u64> = bytes.collect();
            (bytes.len(), bytes.iter().sum())
        }
    }
}
