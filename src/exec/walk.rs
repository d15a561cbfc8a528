//! Walking through the steps of a stage's cards, side by side.

use std::ops::Range;
use std::sync::Arc;

use super::launch::{Launcher, Window};
use super::{Breakdown, Engine, EngineError};
use crate::device::Graph;
use crate::plan::{CardPlan, GatherPart, Misses, Op, Step};

/// What a walk covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// From the embedding, or from what the stage before left, to the card's last layer.
    Layers,
    /// From the last layer to logits.
    Head,
}

impl Part {
    /// Groups of steps that follow each other, with their layers.
    fn groups(self, card: &CardPlan) -> impl Iterator<Item = (&[Step], Option<usize>)> {
        let (start, layers, head) = match self {
            Part::Layers => (&card.start[..], &card.layers[..], &[][..]),
            Part::Head => (&[][..], &[][..], &card.head[..]),
        };
        let layers = layers.iter().map(|layer| (&layer.steps[..], Some(layer.index)));
        std::iter::once((start, None)).chain(layers).chain(std::iter::once((head, None)))
    }
}

impl Engine {
    pub(super) fn launcher(&self, card: usize) -> Launcher<'_> {
        self.cards[card].launcher(&self.plan, card)
    }

    /// Launches the steps of all cards of a stage. The cards' steps have the same order and differ in their regions alone.
    pub(super) fn walk(
        &mut self,
        cards: Range<usize>,
        part: Part,
        window: Window,
        mut breakdown: Option<&mut Breakdown>,
        chunk: usize,
    ) -> Result<(), EngineError> {
        let plan = Arc::clone(&self.plan);
        for (group, (steps, layer)) in part.groups(&plan.cards[cards.start]).enumerate() {
            for (index, first) in steps.iter().enumerate() {
                for card in cards.clone() {
                    let step = match card == cards.start {
                        true => first,
                        false => part.groups(&plan.cards[card]).nth(group).map_or(first, |(steps, _)| &steps[index]),
                    };
                    match breakdown.as_deref_mut() {
                        Some(breakdown) => self.measure(card, step, layer, window, chunk, breakdown)?,
                        None => self.launcher(card).step(step, layer, window)?,
                    }
                    if let (Op::MoeRoute { layer, .. }, Misses::File) = (&step.op, plan.misses) {
                        self.fetch_experts(card, *layer, window.count)?;
                    }
                }
                if let Op::Gather(_) = &first.op {
                    match breakdown.as_deref_mut() {
                        Some(breakdown) => {
                            breakdown.host("exchange", || self.exchange(cards.clone(), part, (group, index), window))?
                        }
                        None => self.exchange(cards.clone(), part, (group, index), window)?,
                    }
                }
            }
        }
        Ok(())
    }

    /// The parts of an exchange that a card has.
    pub(super) fn gather_step(card: &CardPlan, part: Part, (group, index): (usize, usize)) -> &[GatherPart] {
        match part.groups(card).nth(group).map(|(steps, _)| &steps[index].op) {
            Some(Op::Gather(parts)) => parts,
            _ => &[],
        }
    }

    /// Launches a card's step of one token, with logits if the card has them. It is recorded once: everything that changes from one to the next lies in
    /// device memory.
    pub(super) fn launch_recorded(&mut self, card: usize) -> Result<(), EngineError> {
        if self.cards[card].decode.is_none() {
            let graph = self.record(card)?;
            self.cards[card].decode = Some(graph);
        }
        self.cards[card].launch_decode()
    }

    fn record(&self, card: usize) -> Result<Graph, EngineError> {
        let run = &self.cards[card];
        run.begin_graph()?;
        let launcher = self.launcher(card);
        let window = Window { first: 0, count: 1 };
        let plan = &self.plan.cards[card];
        let steps = plan.steps().chain(plan.head.iter().map(|step| (step, None)));
        let mut recorded = Ok(());
        for (step, layer) in steps {
            recorded = recorded.and_then(|()| launcher.step(step, layer, window));
        }
        let graph = run.end_graph();
        recorded?;
        graph
    }
}
