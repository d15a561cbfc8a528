//! What cards hand each other: a layer split's hop from stage to stage, and the parts of products that cards computed apart.
//!
//! Everything goes through pinned host memory of each card, except hops between cards whose direct copies were checked by data when the engine was
//! opened: what drivers report about such copies is not to be relied on.

use std::ops::Range;
use std::sync::Arc;

use super::card::CardRun;
use super::launch::Window;
use super::walk::Part;
use super::{Engine, EngineError};
use crate::device::{self, PeerError};
use crate::plan::{Buffer, GatherPart, Plan, Region, Split};

/// How a card gets what the card before it hands over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Link {
    /// From the other card's memory.
    Peer,
    /// Through pinned host memory.
    Host,
}

/// The links into every card but the first.
pub(super) fn links(plan: &Plan, cards: &[CardRun]) -> Result<Vec<Link>, EngineError> {
    if plan.split == Split::Tensor {
        return Ok(Vec::new());
    }
    let link = |pair: &[CardRun]| {
        let works = device::peer_works(pair[1].queue(), pair[0].queue()).map_err(|error| match error {
            PeerError::From(problem) => EngineError::Card { card: pair[0].number, problem },
            PeerError::To(problem) => EngineError::Card { card: pair[1].number, problem },
        })?;
        Ok(if works { Link::Peer } else { Link::Host })
    };
    cards.windows(2).map(link).collect()
}

pub(super) fn route(plan: &Plan, links: &[Link]) -> Option<&'static str> {
    match (plan.cards.len(), links) {
        (1, _) => None,
        (_, links) if !links.is_empty() && links.iter().all(|link| *link == Link::Peer) => Some("direct copies"),
        (_, links) if links.contains(&Link::Peer) => Some("direct copies and pinned host memory"),
        _ => Some("pinned host memory"),
    }
}

/// A buffer's rows of a window.
fn rows(buffer: Buffer, window: Window) -> Region {
    let offset = buffer.region.offset + window.first as u64 * buffer.row_bytes;
    Region { offset, bytes: window.count as u64 * buffer.row_bytes, ..buffer.region }
}

/// The part of a region from `offset` on.
fn at(region: Region, offset: u64, bytes: u64) -> Region {
    Region { offset: region.offset + offset, bytes, ..region }
}

impl Engine {
    fn staging(&self, card: usize) -> [Region; 2] {
        self.plan.cards[card].buffers.staging.expect("a plan for several cards has staging memory")
    }

    /// Enqueues the copies that make a stage's output ready for the next one.
    pub(super) fn stage_out(&self, stage: usize, count: usize) -> Result<(), EngineError> {
        if self.links.get(stage) != Some(&Link::Host) {
            return Ok(());
        }
        let [out, _] = self.staging(stage);
        let mut offset = 0;
        for buffer in self.plan.cards[stage].buffers.hop() {
            let from = rows(buffer, Window { first: 0, count });
            self.cards[stage].copy(at(out, offset, from.bytes), from)?;
            offset += from.bytes;
        }
        Ok(())
    }

    /// Gives a stage's output, which is complete, to the next stage, if there is one.
    pub(super) fn hand_over(&mut self, stage: usize, chunk: usize) -> Result<(), EngineError> {
        let Some(link) = self.links.get(stage) else { return Ok(()) };
        let window = Window { first: 0, count: self.input(chunk).count };
        let plan = Arc::clone(&self.plan);
        let (from, to) = (plan.cards[stage].buffers.hop(), plan.cards[stage + 1].buffers.hop());
        if *link == Link::Peer {
            let (source, target) = (&self.cards[stage], &self.cards[stage + 1]);
            for (from, to) in from.into_iter().zip(to) {
                let (from, to) = (rows(from, window), rows(to, window));
                let (from, to) = (source.span(from, from.bytes)?, target.span(to, to.bytes)?);
                target.named(target.queue().copy_from_peer(&to, &from))?;
            }
            // The next chunk overwrites what was copied.
            return target.wait();
        }
        let bytes = (window.count as u64 * plan.cards[stage].buffers.hop_row_bytes()) as usize;
        let ([out, _], [_, into]) = (self.staging(stage), self.staging(stage + 1));
        let (sources, targets) = self.cards.split_at_mut(stage + 1);
        targets[0].host_mut(into, bytes)?.copy_from_slice(sources[stage].host(out, bytes)?);
        let mut offset = 0;
        for buffer in to {
            let to = rows(buffer, window);
            self.cards[stage + 1].copy(to, at(into, offset, to.bytes))?;
            offset += to.bytes;
        }
        Ok(())
    }

    /// Puts the parts that cards computed together, and gives all of them the whole.
    pub(super) fn exchange(
        &mut self,
        cards: Range<usize>,
        part: Part,
        step: (usize, usize),
        window: Window,
    ) -> Result<(), EngineError> {
        let plan = Arc::clone(&self.plan);
        for card in cards.clone() {
            let [out, _] = self.staging(card);
            let mut offset = 0;
            for gather in Engine::gather_step(&plan.cards[card], part, step) {
                let from = rows(gather.part, window);
                self.cards[card].copy(at(out, offset, from.bytes), from)?;
                offset += from.bytes;
            }
        }
        for card in cards.clone() {
            self.cards[card].wait()?;
        }
        for to in cards.clone() {
            self.assemble(&plan, cards.clone(), to, part, step, window)?;
            let [_, into] = self.staging(to);
            let mut offset = 0;
            for gather in Engine::gather_step(&plan.cards[to], part, step) {
                let whole = rows(gather.whole, window);
                self.cards[to].copy(whole, at(into, offset, whole.bytes))?;
                offset += whole.bytes;
            }
        }
        Ok(())
    }

    /// Writes the whole of every part to the memory that card `to` reads it from.
    fn assemble(
        &mut self,
        plan: &Plan,
        cards: Range<usize>,
        to: usize,
        part: Part,
        step: (usize, usize),
        window: Window,
    ) -> Result<(), EngineError> {
        let parts = |card: usize| -> &[GatherPart] { Engine::gather_step(&plan.cards[card], part, step) };
        let bytes = |buffer: Buffer| window.count * buffer.row_bytes as usize;
        let total: usize = parts(to).iter().map(|gather| bytes(gather.whole)).sum();
        let ([_, into], mut whole) = (self.staging(to), Vec::new());
        // The first card's whole is built from all parts; the others copy it.
        if to == cards.start {
            whole.resize(total, 0);
            let mut whole_at = 0;
            let mut part_at = vec![0; cards.len()];
            for index in 0..parts(to).len() {
                for (place, card) in cards.clone().enumerate() {
                    let gather = &parts(card)[index];
                    let [out, _] = self.staging(card);
                    let from = self.cards[card].host(out, part_at[place] + bytes(gather.part))?;
                    let columns = &gather.ranges[place];
                    let row_bytes = gather.whole.row_bytes as usize / gather.rows_per_token;
                    let part_row_bytes = 4 * columns.len();
                    let rows = from[part_at[place]..].chunks_exact(part_row_bytes);
                    for (row, values) in rows.enumerate() {
                        let at = whole_at + row * row_bytes + 4 * columns.start;
                        whole[at..at + part_row_bytes].copy_from_slice(values);
                    }
                    part_at[place] += bytes(gather.part);
                }
                whole_at += bytes(parts(to)[index].whole);
            }
            self.cards[to].host_mut(into, total)?.copy_from_slice(&whole);
            return Ok(());
        }
        let [_, first] = self.staging(cards.start);
        let (sources, targets) = self.cards.split_at_mut(cards.start + 1);
        let from = sources[cards.start].host(first, total)?;
        targets[to - cards.start - 1].host_mut(into, total)?.copy_from_slice(from);
        Ok(())
    }
}
