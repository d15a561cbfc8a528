//! A sequence's state, taken and put back: in pages of the bank, and as an image in the host's memory.

use std::sync::Arc;

use super::card::CardRun;
use super::{Engine, EngineError};
use crate::plan::{CardPlan, Extent, Plan, Region, StateItem, StateKind};
use crate::state::{Bank, BankShape, CardShape, Image, Layout, Take, marks};

/// The bank of a plan, if it books pages for one.
pub(super) fn bank(plan: &Plan) -> Option<Bank> {
    let page_bytes = plan.cards.iter().map(|card| card.bank.page_bytes()).max()?;
    let shape = |card: &CardPlan| {
        let rows = card.state.iter().filter_map(|item| match item.extent {
            Extent::Fixed { .. } => None,
            Extent::Rows { row_bytes, tokens_per_row } => Some((row_bytes, tokens_per_row)),
        });
        let fixed = card.state.iter().filter(|item| is_fixed(item)).map(|item| item.extent.bytes_at(0)).sum();
        CardShape { pages: card.bank.count(), fixed_bytes: fixed, rows: rows.collect() }
    };
    let has_pages = plan.cards.iter().all(|card| card.bank.count() > 0);
    has_pages.then(|| Bank::new(BankShape { page_bytes, cards: plan.cards.iter().map(shape).collect() }))
}

const fn is_fixed(item: &StateItem) -> bool {
    matches!(item.extent, Extent::Fixed { .. })
}

/// The bytes of a piece between two positions.
fn between(item: &StateItem, from: usize, to: usize) -> Region {
    let begin = if is_fixed(item) { 0 } else { item.extent.bytes_at(from) };
    Region { offset: item.region.offset + begin, bytes: item.extent.bytes_at(to) - begin, ..item.region }
}

impl Engine {
    /// Which pieces a sequence's state has.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Logits after the last token, if they were computed.
    pub fn logits(&self) -> Option<&[f32]> {
        self.logits_known.then(|| &self.logits[..self.plan.spec.vocab])
    }

    /// What the bank has given and taken; `None` without one.
    pub fn bank_counters(&self) -> Option<crate::state::BankCounters> {
        self.bank.as_ref().map(|bank| bank.counters())
    }

    /// How many of `ids` need not be computed: the live sequence's, if it is a beginning of them, or those of the bank's deepest snapshot.
    pub fn known(&self, ids: &[u32]) -> usize {
        let found = self.bank.as_ref().and_then(|bank| bank.find(ids));
        self.live(ids).max(found.map_or(0, |found| found.position))
    }

    /// How many of `ids` the live sequence has, if they continue it.
    fn live(&self, ids: &[u32]) -> usize {
        let continues = ids.starts_with(&self.ids) && (self.ids.len() < ids.len() || self.logits_known);
        if continues { self.ids.len() } else { 0 }
    }

    /// Drops the bank's snapshot behind exactly these tokens, if it has one.
    pub fn forget(&mut self, ids: &[u32]) {
        if let Some(bank) = &mut self.bank {
            bank.forget(ids);
        }
    }

    /// Makes `ids` the sequence, computes as little of it as possible, and returns how many tokens were known. What continues from here is the live
    /// sequence if it is a beginning of `ids`, or the bank's deepest snapshot of one. Logits after the last token are known then. Snapshots are taken
    /// behind turns, after every so many tokens as the options say, and at the end.
    ///
    /// # Errors
    /// As [`Engine::feed`]; when an id is refused, the sequence is as it was.
    pub fn prompt(&mut self, ids: &[u32]) -> Result<usize, EngineError> {
        let known = self.recall(ids)?;
        if known < ids.len() {
            for end in self.prompt_marks(ids) {
                let begin = self.ids.len();
                self.append(&ids[begin..end], super::Want::None, None)?;
                self.snapshot()?;
            }
            let begin = self.ids.len();
            self.feed(&ids[begin..])?;
        }
        self.snapshot()?;
        Ok(known)
    }

    /// Makes the longest known beginning of `ids` the sequence, computes nothing, and returns its length. If that is all of `ids`, logits after the
    /// last token are known.
    ///
    /// # Errors
    /// As [`Engine::prompt`].
    pub fn recall(&mut self, ids: &[u32]) -> Result<usize, EngineError> {
        self.guarded(|_| Ok(()))?;
        self.check_ids(0, ids)?;
        let live = self.live(ids);
        let found = self.bank.as_ref().and_then(|bank| bank.find(ids)).filter(|found| found.position > live);
        if let Some(bank) = &mut self.bank {
            bank.count(found.as_ref().map_or(live, |found| found.position), ids.len());
        }
        match found {
            Some(found) => self.enter(found.node, ids)?,
            None if live == 0 => self.reset()?,
            None => {}
        }
        Ok(self.ids.len())
    }

    /// Positions behind the sequence's at which a prompt is worth a snapshot; none without a bank.
    pub fn prompt_marks(&self, ids: &[u32]) -> Vec<usize> {
        let every = Some(self.plan.options.bank_every).filter(|every| *every > 0);
        match &self.bank {
            Some(_) => marks(ids, self.ids.len(), self.model.tokenizer().stop_ids(), every),
            None => Vec::new(),
        }
    }

    /// As [`Engine::feed`], without the logits, which are not known then.
    ///
    /// # Errors
    /// As [`Engine::feed`].
    pub fn feed_silently(&mut self, ids: &[u32]) -> Result<(), EngineError> {
        self.append(ids, super::Want::None, None)
    }

    /// Takes a snapshot of the sequence into the bank. False if there is no bank, or no room for it.
    ///
    /// # Errors
    /// When a device fails.
    pub fn snapshot(&mut self) -> Result<bool, EngineError> {
        if self.bank.is_none() || self.ids.is_empty() {
            return Ok(false);
        }
        self.guarded(|engine| {
            let logits: Option<Arc<[f32]>> = engine.logits().map(Arc::from);
            let Some(bank) = &mut engine.bank else { return Ok(false) };
            let (taken, to) = (bank.take(&engine.ids, logits), engine.ids.len());
            let (rows_from, rows, fixed) = match taken {
                Take::Known => return Ok(true),
                Take::Refused => return Ok(false),
                Take::Stored { rows_from, rows, fixed } => (rows_from, rows, fixed),
            };
            for (card, run) in engine.cards.iter().enumerate() {
                let plan = &engine.plan.cards[card];
                let (fixed, rows) = (Pages::of(plan, &fixed[card]), Pages::of(plan, &rows[card]));
                fixed.copy(run, plan.state.iter().filter(|item| is_fixed(item)).map(|item| (item.region, 0)), true)?;
                let items = plan.state.iter().filter(|item| !is_fixed(item));
                rows.copy(run, items.map(|item| (between(item, rows_from, to), 0)), true)?;
            }
            Ok(true)
        })
    }

    /// Makes a snapshot of a beginning of `ids` the sequence.
    fn enter(&mut self, node: crate::state::NodeId, ids: &[u32]) -> Result<(), EngineError> {
        self.guarded(|engine| {
            let Some(bank) = &mut engine.bank else { return Ok(()) };
            let restore = bank.restore(node);
            // Rows of the same beginning are there already.
            let shared = engine.ids.iter().zip(ids).take_while(|(have, want)| have == want).count();
            for (card, run) in engine.cards.iter().enumerate() {
                let plan = &engine.plan.cards[card];
                for segment in restore.segments.iter().filter(|segment| segment.to > shared) {
                    let from = segment.from.max(shared);
                    let items = plan.state.iter().filter(|item| !is_fixed(item)).map(|item| {
                        let skipped = item.extent.bytes_at(from) - item.extent.bytes_at(segment.from);
                        (between(item, from, segment.to), skipped)
                    });
                    Pages::of(plan, &segment.pages[card]).copy(run, items, false)?;
                }
                let items = plan.state.iter().filter(|item| is_fixed(item)).map(|item| (item.region, 0));
                Pages::of(plan, &restore.fixed[card]).copy(run, items, false)?;
            }
            engine.ids.clear();
            engine.ids.extend_from_slice(&ids[..restore.position]);
            engine.logits_known = restore.logits.is_some();
            if let Some(logits) = restore.logits {
                engine.logits[..logits.len()].copy_from_slice(&logits);
            }
            Ok(())
        })
    }

    /// The sequence's exact state in the host's memory, without the rows of its first `from` tokens.
    ///
    /// # Errors
    /// When the sequence has fewer tokens, the host has no room, or a device fails.
    pub fn image(&mut self, from: usize) -> Result<Image, EngineError> {
        let position = self.ids.len();
        if from > position {
            return Err(EngineError::Beginning { from, position });
        }
        let needed_bytes = self.layout.fixed_bytes() + self.layout.row_bytes(from, position);
        let free_bytes = crate::device::host_free_bytes().unwrap_or(u64::MAX);
        if needed_bytes > free_bytes {
            return Err(EngineError::ImageMemory { needed_bytes, free_bytes });
        }
        self.guarded(|engine| {
            let mut pieces = Vec::with_capacity(engine.layout.pieces().len());
            for piece in engine.layout.pieces() {
                let holds = |item: &&StateItem| item.layer == piece.layer && item.kind == piece.kind;
                // Of cards that hold the same, any will do.
                let held = engine.plan.cards.iter().enumerate();
                let (card, item) = held
                    .filter_map(|(card, plan)| Some((card, plan.state.iter().find(holds)?)))
                    .next()
                    .expect("the layout was made of this plan");
                let region = between(item, from, position);
                let mut bytes = vec![0; region.bytes as usize];
                if !bytes.is_empty() {
                    engine.cards[card].get(&mut bytes, region)?;
                }
                if piece.kind == StateKind::IndexTail {
                    // Rows that the open block does not have yet are left from an earlier one.
                    let ratio = engine.layout.block_tokens(piece.layer).max(1);
                    let used = bytes.len() / ratio * (position % ratio);
                    bytes[used..].fill(0);
                }
                pieces.push(bytes);
            }
            let logits = engine.logits().map(<[f32]>::to_vec);
            Ok(Image { ids: engine.ids.clone(), from, logits, pieces })
        })
    }

    /// Makes a whole image the sequence.
    ///
    /// # Errors
    /// When the image is not one of this engine's layout, or longer than the context; the sequence is as it was then. When a device fails.
    pub fn restore(&mut self, image: &Image) -> Result<(), EngineError> {
        let vocab = self.plan.spec.vocab;
        if image.from > 0
            || !image.fits(&self.layout)
            || image.logits.as_ref().is_some_and(|logits| logits.len() != vocab)
        {
            return Err(EngineError::Image);
        }
        let context = self.plan.options.context;
        if image.position() > context {
            return Err(EngineError::ContextFull { position: 0, more: image.position(), context });
        }
        if let Some(id) = image.ids.iter().find(|id| **id as usize >= vocab) {
            return Err(EngineError::Token { id: *id, vocab });
        }
        self.guarded(|engine| {
            for (run, plan) in engine.cards.iter().zip(&engine.plan.cards) {
                for (piece, bytes) in
                    engine.layout.pieces().iter().zip(&image.pieces).filter(|(_, bytes)| !bytes.is_empty())
                {
                    let holds = |item: &&StateItem| item.layer == piece.layer && item.kind == piece.kind;
                    if let Some(item) = plan.state.iter().find(holds) {
                        run.put(item.region, bytes)?;
                    }
                }
            }
            engine.ids.clone_from(&image.ids);
            engine.logits_known = image.logits.is_some();
            if let Some(logits) = &image.logits {
                engine.logits[..vocab].copy_from_slice(logits);
            }
            Ok(())
        })
    }
}

/// Pages of a card's bank that hold pieces one after another.
struct Pages {
    regions: Vec<Region>,
    page_bytes: u64,
}

impl Pages {
    fn of(plan: &CardPlan, pages: &[u32]) -> Pages {
        let regions = pages.iter().map(|page| plan.bank.page(*page as usize)).collect();
        Pages { regions, page_bytes: plan.bank.page_bytes() }
    }

    /// Enqueues copies of regions into the pages, or out of them. Before each region so many bytes of the pages are passed over.
    fn copy(&self, run: &CardRun, regions: impl Iterator<Item = (Region, u64)>, into: bool) -> Result<(), EngineError> {
        let mut at = 0;
        for (region, skipped) in regions {
            at += skipped;
            let mut done = 0;
            while done < region.bytes {
                let page = self.regions[(at / self.page_bytes) as usize];
                let offset = at % self.page_bytes;
                let bytes = (self.page_bytes - offset).min(region.bytes - done);
                let page = Region { offset: page.offset + offset, bytes, ..page };
                let part = Region { offset: region.offset + done, bytes, ..region };
                match into {
                    true => run.copy(page, part)?,
                    false => run.copy(part, page)?,
                }
                (at, done) = (at + bytes, done + bytes);
            }
        }
        Ok(())
    }
}
