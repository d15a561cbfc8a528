//! Which snapshots are kept in memory, in which pages: a tree over token prefixes, without a device.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;

use super::pages::{CardPages, FreePages, count};
use super::prefixes::{Node, NodeId, Prefixes};

/// What a card's bank has room for, and what a snapshot takes there.
#[derive(Clone, Debug)]
pub struct CardShape {
    pub pages: usize,
    /// Of the fixed pieces of state together.
    pub fixed_bytes: u64,
    /// Bytes of a row, and tokens after which there is another, of each piece that grows.
    pub rows: Vec<(u64, usize)>,
}

/// Fixed pieces and rows are kept apart, each from the start of a page on: rows may be needed longer.
#[derive(Clone, Debug)]
pub struct BankShape {
    pub page_bytes: u64,
    pub cards: Vec<CardShape>,
}

impl BankShape {
    fn fixed_pages(&self, card: &CardShape) -> usize {
        card.fixed_bytes.div_ceil(self.page_bytes) as usize
    }

    fn row_pages(&self, card: &CardShape, from: usize, to: usize) -> usize {
        let bytes = |(bytes, tokens): &(u64, usize)| bytes.saturating_mul((to / tokens - from / tokens) as u64);
        card.rows.iter().map(bytes).fold(0, u64::saturating_add).div_ceil(self.page_bytes) as usize
    }
}

/// A snapshot of a beginning of what was looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    pub node: NodeId,
    pub position: usize,
}

/// Where the rows of tokens `from..to` lie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    pub from: usize,
    pub to: usize,
    /// [card][page]
    pub pages: Vec<Vec<u32>>,
}

/// Where a snapshot lies.
#[derive(Clone, Debug)]
pub struct Restore {
    pub position: usize,
    /// All rows, ascending.
    pub segments: Vec<Segment>,
    /// Pages of the fixed pieces, [card][page].
    pub fixed: Vec<Vec<u32>>,
    pub logits: Option<Arc<[f32]>>,
}

/// What became of a snapshot that was to be taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Take {
    /// It is there.
    Known,
    /// To be copied: rows from `rows_from` on, and the fixed pieces, into these pages of each card.
    Stored { rows_from: usize, rows: Vec<Vec<u32>>, fixed: Vec<Vec<u32>> },
    /// There is no room for it, even without all others. Nothing was evicted.
    Refused,
}

/// What a bank did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct BankCounters {
    /// Prompts of which a beginning was known.
    pub hits: u64,
    /// Prompts of which none was.
    pub misses: u64,
    /// Tokens that were not computed again.
    pub hit_tokens: u64,
    pub prompt_tokens: u64,
    /// Snapshots that were stored.
    pub taken: u64,
    /// Snapshots that were dropped to make room.
    pub evicted: u64,
    /// Snapshots that there was no room for.
    pub refused: u64,
    /// Snapshots that are there.
    pub snapshots: u64,
    /// Pages of all cards that hold something.
    pub used_pages: u64,
    /// Pages of all cards.
    pub pages: u64,
}

impl fmt::Display for BankCounters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let BankCounters { hits, misses, hit_tokens, prompt_tokens, .. } = self;
        let BankCounters { taken, evicted, refused, snapshots, used_pages, pages, .. } = self;
        write!(
            f,
            "{hits} hits, {misses} misses, {hit_tokens} of {prompt_tokens} prompt tokens known; {snapshots} snapshots in \
             {used_pages} of {pages} pages; {taken} taken, {evicted} evicted, {refused} without room"
        )
    }
}

/// What is kept after a sequence of tokens: the rows behind its parent's, and a snapshot unless that was dropped.
#[derive(Debug)]
struct Kept {
    rows: CardPages,
    snapshot: Option<Snapshot>,
}

/// What the rows alone do not say.
#[derive(Debug)]
struct Snapshot {
    fixed: CardPages,
    logits: Option<Arc<[f32]>>,
    /// How often it was taken and restored.
    uses: u64,
    /// The bank's clock at the last use.
    clock: f64,
    /// That use's number among all of the bank.
    last_use: u64,
}

/// A bounded set of snapshots of sequences.
///
/// Rows of a beginning are the same for all sequences that have it. So a snapshot has only the rows behind its parent, the longest sequence kept then
/// that its own begins with. A snapshot that is dropped leaves its rows as long as others need them.
///
/// What is dropped to make room is decided by Greedy-Dual-Size-Frequency (L. Cherkasova, "Improving WWW Proxies Performance with
/// Greedy-Dual-Size-Frequency Caching Policy", Hewlett-Packard Laboratories, HPL-98-69, 1998): that of the least `clock + uses * cost / size`, ties to
/// the one not used for longest. Cost is how many tokens would have to be computed again, back to the nearest snapshot above it. Size is how many pages
/// it would set free; both as the tree is at that time. The clock is the bank's at the last use, and the bank's rises to the value of what is dropped.
#[derive(Debug)]
pub struct Bank {
    shape: BankShape,
    tree: Prefixes<Kept>,
    free: FreePages,
    clock: f64,
    uses: u64,
    counters: BankCounters,
}

impl Bank {
    /// An empty bank.
    ///
    /// # Panics
    /// Unless pages have bytes, rows have tokens, a card has fewer than 2^32 pages, and some card has fixed pieces: snapshots that take no page would
    /// have no bound.
    pub fn new(shape: BankShape) -> Bank {
        let rows = shape.cards.iter().flat_map(|card| &card.rows);
        assert!(shape.page_bytes > 0 && rows.into_iter().all(|(_, tokens)| *tokens > 0), "pages and rows have a size");
        assert!(shape.cards.iter().any(|card| card.fixed_bytes > 0), "a snapshot takes at least one page");
        let free = FreePages::new(shape.cards.iter().map(|card| card.pages));
        let counters = BankCounters { pages: free.count() as u64, ..BankCounters::default() };
        Bank { shape, tree: Prefixes::new(), free, clock: 0.0, uses: 0, counters }
    }

    /// The deepest snapshot of a beginning of `ids`; one of all of them only with its logits, as nothing can be computed from it without a further token.
    pub fn find(&self, ids: &[u32]) -> Option<Found> {
        let usable = |node: &Node<Kept>| {
            let snapshot = node.value.snapshot.as_ref();
            snapshot.is_some_and(|snapshot| node.position < ids.len() || snapshot.logits.is_some())
        };
        let node = self.tree.deepest(ids, usable)?;
        Some(Found { node, position: self.tree.node(node).position })
    }

    /// Where a snapshot lies. That is a use of it.
    ///
    /// # Panics
    /// If there is none any more. What [`Bank::find`] gives is there until the next call that takes or drops one.
    pub fn restore(&mut self, node: NodeId) -> Restore {
        self.used(node);
        let segment =
            |node: &Node<Kept>| Segment { from: node.from(), to: node.position, pages: node.value.rows.clone() };
        let mut segments: Vec<Segment> = self.tree.upwards(node).map(|(_, node)| segment(node)).collect();
        segments.reverse();
        let node = self.tree.node(node);
        let snapshot = node.value.snapshot.as_ref().expect("the snapshot is there");
        Restore { position: node.position, segments, fixed: snapshot.fixed.clone(), logits: snapshot.logits.clone() }
    }

    /// Counts a prompt of `tokens`, of which `known` need not be computed.
    pub fn count(&mut self, known: usize, tokens: usize) {
        let counter = if known > 0 { &mut self.counters.hits } else { &mut self.counters.misses };
        *counter += 1;
        self.counters.hit_tokens += known as u64;
        self.counters.prompt_tokens += tokens as u64;
    }

    /// What has been counted since the start, and what is there.
    pub fn counters(&self) -> BankCounters {
        let snapshots = self.tree.iter().filter(|(_, node)| node.value.snapshot.is_some()).count() as u64;
        let used_pages = self.counters.pages - self.free.count() as u64;
        BankCounters { snapshots, used_pages, ..self.counters }
    }

    /// Makes room for a snapshot of the state after `ids`, which the caller copies right away. If it is there, that is a use of it, and it gets the logits
    /// unless it has some. The state before the first token is always there.
    pub fn take(&mut self, ids: &[u32], logits: Option<Arc<[f32]>>) -> Take {
        if ids.is_empty() {
            return Take::Known;
        }
        let parent = self.tree.deepest(ids, |_| true);
        let rows_from = parent.map_or(0, |node| self.tree.node(node).position);
        let same = parent.filter(|_| rows_from == ids.len());
        if let Some(node) = same
            && let Some(snapshot) = &mut self.tree.value_mut(node).snapshot
        {
            snapshot.logits = snapshot.logits.take().or(logits);
            self.used(node);
            return Take::Known;
        }
        let row_pages: Vec<usize> =
            self.shape.cards.iter().map(|card| self.shape.row_pages(card, rows_from, ids.len())).collect();
        let fixed_pages: Vec<usize> = self.shape.cards.iter().map(|card| self.shape.fixed_pages(card)).collect();
        let needs: Vec<usize> =
            row_pages.iter().zip(&fixed_pages).map(|(rows, fixed)| rows.saturating_add(*fixed)).collect();
        if !self.make_room(&needs, parent) {
            self.counters.refused += 1;
            return Take::Refused;
        }
        self.counters.taken += 1;
        let rows = self.free.take(row_pages.into_iter());
        let fixed = self.free.take(fixed_pages.into_iter());
        let snapshot = Some(Snapshot { fixed: fixed.clone(), logits, uses: 0, clock: 0.0, last_use: 0 });
        let node = match same {
            Some(node) => {
                self.tree.value_mut(node).snapshot = snapshot;
                node
            }
            None => self.tree.insert(parent, ids, Kept { rows: rows.clone(), snapshot }),
        };
        self.used(node);
        Take::Stored { rows_from, rows, fixed }
    }

    /// Drops the snapshot after exactly these tokens, if there is one.
    pub fn forget(&mut self, ids: &[u32]) {
        let same = |node: &Node<Kept>| node.position == ids.len() && node.value.snapshot.is_some();
        if let Some(node) = self.tree.deepest(ids, same) {
            self.drop_snapshot(node, None);
        }
    }

    /// Drops all snapshots.
    pub fn clear(&mut self) {
        self.tree.clear();
        self.free = FreePages::new(self.shape.cards.iter().map(|card| card.pages));
    }

    /// Counts a use of a snapshot.
    fn used(&mut self, node: NodeId) {
        self.uses += 1;
        if let Some(snapshot) = &mut self.tree.value_mut(node).snapshot {
            snapshot.uses += 1;
            snapshot.clock = self.clock;
            snapshot.last_use = self.uses;
        }
    }

    /// Evicts until every card has so many pages free, but no rows of `pinned` and of what is above it. Evicts nothing if that is not enough.
    fn make_room(&mut self, needs: &[usize], pinned: Option<NodeId>) -> bool {
        let mut most: Vec<usize> = self.shape.cards.iter().map(|card| card.pages).collect();
        for (_, node) in pinned.into_iter().flat_map(|node| self.tree.upwards(node)) {
            most.iter_mut().zip(&node.value.rows).for_each(|(most, rows)| *most -= rows.len());
        }
        if needs.iter().zip(&most).any(|(need, most)| need > most) {
            return false;
        }
        while !self.free.has(needs) {
            let snapshots = self.tree.iter().filter_map(|(id, node)| Some((id, node.value.snapshot.as_ref()?)));
            let values = snapshots.map(|(id, snapshot)| (id, self.worth(id, snapshot, pinned), snapshot.last_use));
            let least = values.min_by(|(_, a, a_use), (_, b, b_use)| a.total_cmp(b).then(a_use.cmp(b_use)));
            let (victim, value, _) = least.expect("without snapshots, only the rows of the pinned path take pages");
            self.clock = self.clock.max(value);
            self.counters.evicted += 1;
            self.drop_snapshot(victim, pinned);
        }
        true
    }

    /// The value by which snapshots are evicted, least first.
    fn worth(&self, id: NodeId, snapshot: &Snapshot, pinned: Option<NodeId>) -> f64 {
        let mut above = self.tree.upwards(id).skip(1).map(|(_, node)| node);
        let base = above.find(|node| node.value.snapshot.is_some()).map_or(0, |node| node.position);
        let cost = self.tree.node(id).position - base;
        let rows = self.unneeded(id, pinned).map(|id| count(&self.tree.node(id).value.rows));
        // Fixed pieces may take no page of the cards that have rows.
        let size = (count(&snapshot.fixed) + rows.sum::<usize>()).max(1);
        snapshot.clock + snapshot.uses as f64 * cost as f64 / size as f64
    }

    /// Nodes, upwards from `id`, whose rows nothing needs without its snapshot.
    fn unneeded(&self, id: NodeId, pinned: Option<NodeId>) -> impl Iterator<Item = NodeId> {
        let path = self.tree.upwards(id).enumerate();
        let unneeded = path.take_while(move |(above, (id, node))| {
            // Above `id`, the child is the one that goes too.
            let (children, snapshot) = if *above == 0 { (0, false) } else { (1, node.value.snapshot.is_some()) };
            node.children == children && !snapshot && Some(*id) != pinned
        });
        unneeded.map(|(_, (id, _))| id)
    }

    /// Drops a snapshot, and the rows that nothing needs then.
    fn drop_snapshot(&mut self, id: NodeId, pinned: Option<NodeId>) {
        let unneeded: Vec<NodeId> = self.unneeded(id, pinned).collect();
        if let Some(snapshot) = self.tree.value_mut(id).snapshot.take() {
            self.free.give_back(snapshot.fixed);
        }
        for id in unneeded {
            self.free.give_back(self.tree.remove(id).value.rows);
        }
    }
}
