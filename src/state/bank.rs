//! Which snapshots are kept in memory, in which pages: a tree over token prefixes, without a device.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::Serialize;

/// What a card's bank has room for, and what a snapshot takes there.
#[derive(Clone, Debug)]
pub struct CardShape {
    pub pages: usize,
    /// Of the fixed pieces of state together.
    pub fixed_bytes: u64,
    /// Bytes of a row, and tokens after which there is another, of each piece that grows.
    pub rows: Vec<(u64, usize)>,
}

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
        let bytes = |(bytes, tokens): &(u64, usize)| bytes * (to / tokens - from / tokens) as u64;
        card.rows.iter().map(bytes).sum::<u64>().div_ceil(self.page_bytes) as usize
    }
}

/// A place in the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(usize);

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
    /// There is no room for it, even without all others.
    Refused,
}

/// What a bank did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct BankCounters {
    /// Prompts of which a beginning was known, and others.
    pub hits: u64,
    pub misses: u64,
    /// Tokens that were not computed again.
    pub hit_tokens: u64,
    pub prompt_tokens: u64,
    pub taken: u64,
    pub evicted: u64,
    pub refused: u64,
    /// Snapshots that are there.
    pub snapshots: u64,
    pub used_pages: u64,
    pub pages: u64,
}

impl std::fmt::Display for BankCounters {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} of {} prompt tokens known; {} snapshots in {} of {} pages; {} taken, {} evicted, {} without room",
            self.hit_tokens,
            self.prompt_tokens,
            self.snapshots,
            self.used_pages,
            self.pages,
            self.taken,
            self.evicted,
            self.refused
        )
    }
}

/// A node: the rows behind its parent, and a snapshot unless that was evicted.
#[derive(Debug)]
struct Node {
    parent: Option<NodeId>,
    /// Tokens behind the parent's.
    ids: Vec<u32>,
    position: usize,
    children: Vec<NodeId>,
    rows: Vec<Vec<u32>>,
    snapshot: Option<Snapshot>,
}

#[derive(Debug)]
struct Snapshot {
    fixed: Vec<Vec<u32>>,
    logits: Option<Arc<[f32]>>,
    uses: u64,
    /// What it is worth to keep it.
    value: f64,
    /// When it was used last, of the uses of all.
    used: u64,
}

/// A bounded set of snapshots.
///
/// What is evicted first is decided by Greedy-Dual-Size-Frequency (L. Cherkasova, "Improving WWW Proxies Performance with Greedy-Dual-Size-Frequency
/// Caching Policy", HP Laboratories 1998): the least `clock + uses * cost / size`, where cost is the tokens to be computed again without the snapshot,
/// size the pages that it takes, and the clock the value of what was evicted last.
#[derive(Debug)]
pub struct Bank {
    shape: BankShape,
    nodes: Vec<Option<Node>>,
    /// Nodes without a parent.
    roots: Vec<NodeId>,
    /// Free pages of each card.
    free: Vec<BTreeSet<u32>>,
    clock: f64,
    uses: u64,
    counters: BankCounters,
}

impl Bank {
    pub fn new(shape: BankShape) -> Bank {
        let free = shape.cards.iter().map(|card| (0..card.pages as u32).collect()).collect();
        let pages = shape.cards.iter().map(|card| card.pages as u64).sum();
        let counters = BankCounters { pages, ..BankCounters::default() };
        Bank { shape, nodes: Vec::new(), roots: Vec::new(), free, clock: 0.0, uses: 0, counters }
    }

    /// The deepest snapshot of a beginning of `ids`; one of all of them only with its logits, as nothing can be computed from it without a further token.
    pub fn find(&self, ids: &[u32]) -> Option<Found> {
        let usable = |node: &Node| {
            let snapshot = node.snapshot.as_ref();
            snapshot.is_some_and(|snapshot| node.position < ids.len() || snapshot.logits.is_some())
        };
        self.prefixes(ids)
            .into_iter()
            .filter(|node| usable(self.node(*node)))
            .map(|node| Found { node, position: self.node(node).position })
            .max_by_key(|found| found.position)
    }

    /// All nodes that are a beginning of `ids`.
    fn prefixes(&self, ids: &[u32]) -> Vec<NodeId> {
        let (mut found, mut next) = (Vec::new(), self.roots.clone());
        while let Some(id) = next.pop() {
            let node = self.node(id);
            let from = node.position - node.ids.len();
            if ids.get(from..node.position).is_some_and(|ids| ids == node.ids) {
                found.push(id);
                next.extend(&node.children);
            }
        }
        found
    }

    /// Where a snapshot lies. That is a use of it.
    ///
    /// # Panics
    /// If the node has no snapshot; [`Bank::find`] gives one that has.
    pub fn restore(&mut self, node: NodeId) -> Restore {
        self.used(node);
        let mut segments = Vec::new();
        let mut at = Some(node);
        while let Some(id) = at {
            let node = self.node(id);
            let (from, to) = (node.position - node.ids.len(), node.position);
            segments.push(Segment { from, to, pages: node.rows.clone() });
            at = node.parent;
        }
        segments.reverse();
        let node = self.node(node);
        let snapshot = node.snapshot.as_ref().expect("the node was found with its snapshot");
        let (fixed, logits) = (snapshot.fixed.clone(), snapshot.logits.clone());
        Restore { position: node.position, segments, fixed, logits }
    }

    /// Counts a prompt of `tokens`, of which `known` need not be computed.
    pub fn count(&mut self, known: usize, tokens: usize) {
        let counter = if known > 0 { &mut self.counters.hits } else { &mut self.counters.misses };
        *counter += 1;
        self.counters.hit_tokens += known as u64;
        self.counters.prompt_tokens += tokens as u64;
    }

    pub fn counters(&self) -> BankCounters {
        let free: usize = self.free.iter().map(BTreeSet::len).sum();
        let snapshots = self.nodes.iter().flatten().filter(|node| node.snapshot.is_some()).count() as u64;
        BankCounters { snapshots, used_pages: self.counters.pages - free as u64, ..self.counters }
    }

    /// Makes room for a snapshot of the state after `ids`, which the caller copies right away.
    pub fn take(&mut self, ids: &[u32], logits: Option<Arc<[f32]>>) -> Take {
        let deepest = self.prefixes(ids).into_iter().max_by_key(|node| self.node(*node).position);
        let same = deepest.filter(|node| self.node(*node).position == ids.len());
        if let Some(node) = same
            && let Some(snapshot) = &mut self.node_mut(node).snapshot
        {
            snapshot.logits = logits.or(snapshot.logits.take());
            self.used(node);
            return Take::Known;
        }
        let rows_from = deepest.map_or(0, |node| self.node(node).position);
        let needs: Vec<(usize, usize)> = {
            let shape = &self.shape;
            let need = |card| (shape.row_pages(card, rows_from, ids.len()), shape.fixed_pages(card));
            shape.cards.iter().map(need).collect()
        };
        if !self.make_room(&needs, deepest) {
            self.counters.refused += 1;
            return Take::Refused;
        }
        self.counters.taken += 1;
        let mut rows = Vec::with_capacity(needs.len());
        let mut fixed = Vec::with_capacity(needs.len());
        for (card, (row_pages, fixed_pages)) in needs.into_iter().enumerate() {
            let mut pages = || self.free[card].pop_first().expect("room was made");
            rows.push((0..row_pages).map(|_| pages()).collect::<Vec<u32>>());
            fixed.push((0..fixed_pages).map(|_| pages()).collect::<Vec<u32>>());
        }
        let snapshot = Some(Snapshot { fixed: fixed.clone(), logits, uses: 0, value: 0.0, used: 0 });
        let node = match same {
            Some(node) => {
                self.node_mut(node).snapshot = snapshot;
                node
            }
            None => {
                let own = ids[rows_from..].to_vec();
                let node = Node {
                    parent: deepest,
                    ids: own,
                    position: ids.len(),
                    children: Vec::new(),
                    rows: rows.clone(),
                    snapshot,
                };
                self.insert(node)
            }
        };
        self.used(node);
        Take::Stored { rows_from, rows, fixed }
    }

    /// Drops the snapshot after exactly these tokens, if there is one.
    pub fn forget(&mut self, ids: &[u32]) {
        let same = self.prefixes(ids).into_iter().find(|node| self.node(*node).position == ids.len());
        if let Some(node) = same {
            self.drop_snapshot(node);
            self.prune(node, None);
        }
    }

    fn node(&self, id: NodeId) -> &Node {
        self.nodes[id.0].as_ref().expect("ids of the tree are of nodes that are in it")
    }

    fn node_mut(&mut self, id: NodeId) -> &mut Node {
        self.nodes[id.0].as_mut().expect("ids of the tree are of nodes that are in it")
    }

    fn insert(&mut self, node: Node) -> NodeId {
        let parent = node.parent;
        let empty = self.nodes.iter().position(Option::is_none);
        let id = NodeId(empty.unwrap_or(self.nodes.len()));
        match empty {
            Some(at) => self.nodes[at] = Some(node),
            None => self.nodes.push(Some(node)),
        }
        self.siblings(parent).push(id);
        id
    }

    fn siblings(&mut self, parent: Option<NodeId>) -> &mut Vec<NodeId> {
        match parent {
            Some(parent) => &mut self.node_mut(parent).children,
            None => &mut self.roots,
        }
    }

    /// Counts a use of a snapshot, and values it anew.
    fn used(&mut self, id: NodeId) {
        self.uses += 1;
        let node = self.node(id);
        let mut above = node.parent;
        while let Some(parent) = above
            && self.node(parent).snapshot.is_none()
        {
            above = self.node(parent).parent;
        }
        let cost = node.position - above.map_or(0, |above| self.node(above).position);
        let pages = |pages: &[Vec<u32>]| pages.iter().map(Vec::len).sum::<usize>();
        let rows = pages(&node.rows);
        let (clock, used) = (self.clock, self.uses);
        if let Some(snapshot) = &mut self.node_mut(id).snapshot {
            snapshot.uses += 1;
            snapshot.used = used;
            let size = (rows + pages(&snapshot.fixed)).max(1);
            snapshot.value = clock + snapshot.uses as f64 * cost as f64 / size as f64;
        }
    }

    /// Evicts until every card has so many pages free for rows and fixed pieces, but no rows of `keep` and of what is above it. Evicts nothing if that is
    /// not enough.
    fn make_room(&mut self, needs: &[(usize, usize)], keep: Option<NodeId>) -> bool {
        let mut kept = BTreeSet::new();
        let mut at = keep;
        while let Some(id) = at {
            kept.insert(id);
            at = self.node(id).parent;
        }
        let kept_pages = |card: usize| kept.iter().map(|id| self.node(*id).rows[card].len()).sum::<usize>();
        let mut fits = needs.iter().enumerate().map(|(card, (rows, fixed))| (card, rows + fixed));
        if fits.any(|(card, need)| need + kept_pages(card) > self.shape.cards[card].pages) {
            return false;
        }
        let lacks = |bank: &Bank| needs.iter().zip(&bank.free).any(|((rows, fixed), free)| rows + fixed > free.len());
        while lacks(self) {
            let snapshots = self
                .nodes
                .iter()
                .enumerate()
                .filter_map(|(id, node)| Some((NodeId(id), node.as_ref()?.snapshot.as_ref()?)));
            let least = snapshots.min_by(|(_, a), (_, b)| a.value.total_cmp(&b.value).then(a.used.cmp(&b.used)));
            let (victim, value) = least.map(|(id, snapshot)| (id, snapshot.value)).expect("what is not kept is enough");
            self.clock = self.clock.max(value);
            self.counters.evicted += 1;
            self.drop_snapshot(victim);
            self.prune(victim, Some(&kept));
        }
        true
    }

    fn drop_snapshot(&mut self, id: NodeId) {
        if let Some(snapshot) = self.node_mut(id).snapshot.take() {
            self.give_back(snapshot.fixed);
        }
    }

    /// Removes nodes that nothing needs, from `id` upwards.
    fn prune(&mut self, mut id: NodeId, kept: Option<&BTreeSet<NodeId>>) {
        loop {
            let node = self.node(id);
            if node.snapshot.is_some() || !node.children.is_empty() || kept.is_some_and(|kept| kept.contains(&id)) {
                return;
            }
            let parent = node.parent;
            self.siblings(parent).retain(|child| *child != id);
            if let Some(node) = self.nodes[id.0].take() {
                self.give_back(node.rows);
            }
            let Some(parent) = parent else { return };
            id = parent;
        }
    }

    fn give_back(&mut self, pages: Vec<Vec<u32>>) {
        for (free, pages) in self.free.iter_mut().zip(pages) {
            free.extend(pages);
        }
    }
}
