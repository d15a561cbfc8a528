//! The bank's bookkeeping against a naive model of it: a list of sequences, searched from end to end.

#[path = "support/random.rs"]
#[allow(dead_code, reason = "shared with other tests")]
mod random;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bankshot::state::{Bank, BankShape, CardShape, Restore, Take};
use random::Random;

fn shape() -> BankShape {
    // The second card has a piece that grows by four tokens; the third only rows, the fourth only a fixed part.
    let cards =
        [(40, 300, vec![(16, 1), (16, 1)]), (30, 100, vec![(64, 4)]), (24, 0, vec![(8, 1), (20, 4)]), (9, 99, vec![])];
    let card = |(pages, fixed_bytes, rows)| CardShape { pages, fixed_bytes, rows };
    BankShape { page_bytes: 100, cards: cards.into_iter().map(card).collect() }
}

fn fixed_pages() -> Vec<usize> {
    shape().cards.iter().map(|card| card.fixed_bytes.div_ceil(100) as usize).collect()
}

fn row_pages(from: usize, to: usize) -> Vec<usize> {
    let bytes = |card: &CardShape| -> u64 {
        card.rows.iter().map(|(bytes, tokens)| bytes * (to / tokens) as u64 - bytes * (from / tokens) as u64).sum()
    };
    shape().cards.iter().map(|card| bytes(card).div_ceil(100) as usize).collect()
}

#[derive(Clone, Debug)]
struct Kept {
    logits: bool,
    uses: u64,
    value: f64,
    used: u64,
}

/// By tokens: where the rows begin, and the snapshot if it was not evicted.
#[derive(Default)]
struct Naive {
    nodes: BTreeMap<Vec<u32>, (usize, Option<Kept>)>,
    clock: f64,
    uses: u64,
    evicted: Vec<Vec<u32>>,
    refused: u64,
}

impl Naive {
    fn find(&self, ids: &[u32]) -> Option<usize> {
        let usable = |(known, (_, kept)): (&Vec<u32>, &(usize, Option<Kept>))| {
            let kept = kept.as_ref()?;
            (ids.starts_with(known) && (known.len() < ids.len() || kept.logits)).then_some(known.len())
        };
        self.nodes.iter().filter_map(usable).max()
    }

    fn used_pages(&self) -> Vec<usize> {
        let mut sums = vec![0; 4];
        for (ids, (from, kept)) in &self.nodes {
            let rows = row_pages(*from, ids.len());
            for card in 0..4 {
                sums[card] += rows[card] + if kept.is_some() { fixed_pages()[card] } else { 0 };
            }
        }
        sums
    }

    fn use_of(&mut self, ids: &[u32]) {
        self.uses += 1;
        // Only snapshots on the way to the root count.
        let (mut at, mut nearest) = (self.nodes[ids].0, 0);
        while at > 0 {
            let (from, kept) = &self.nodes[&ids[..at]];
            if kept.is_some() {
                nearest = at;
                break;
            }
            at = *from;
        }
        let size: usize =
            row_pages(self.nodes[ids].0, ids.len()).iter().sum::<usize>() + fixed_pages().iter().sum::<usize>();
        let (clock, used) = (self.clock, self.uses);
        let kept = self.nodes.get_mut(ids).unwrap().1.as_mut().unwrap();
        kept.uses += 1;
        kept.used = used;
        kept.value = clock + kept.uses as f64 * (ids.len() - nearest) as f64 / size as f64;
    }

    /// Removes what nothing needs, but for the nodes of lengths `but` that are beginnings of `ids`.
    fn prune(&mut self, ids: &[u32], but: &[usize]) {
        loop {
            let needless = self.nodes.iter().find(|(known, (_, kept))| {
                let is_parent = |(other, (from, _)): (&Vec<u32>, &(usize, Option<Kept>))| {
                    other.len() > known.len() && other[..*from] == known[..]
                };
                let kept_back = but.contains(&known.len()) && ids.starts_with(known);
                kept.is_none() && !self.nodes.iter().any(is_parent) && !kept_back
            });
            let Some(ids) = needless.map(|(ids, _)| ids.clone()) else { return };
            self.nodes.remove(&ids);
        }
    }

    fn take(&mut self, ids: &[u32], logits: bool) -> &'static str {
        if let Some((_, Some(kept))) = self.nodes.get_mut(ids) {
            kept.logits |= logits;
            self.use_of(ids);
            return "known";
        }
        let from = (1..=ids.len()).rev().find(|to| self.nodes.contains_key(&ids[..*to])).unwrap_or(0);
        let need: Vec<usize> =
            row_pages(from, ids.len()).iter().zip(fixed_pages()).map(|(rows, fixed)| rows + fixed).collect();
        let mut path = vec![0; 4];
        let (mut at, mut way) = (from, Vec::new());
        while at > 0 {
            way.push(at);
            let begin = self.nodes[&ids[..at]].0;
            row_pages(begin, at).iter().zip(&mut path).for_each(|(pages, sum)| *sum += pages);
            at = begin;
        }
        let pages: Vec<usize> = shape().cards.iter().map(|card| card.pages).collect();
        if (0..4).any(|card| need[card] + path[card] > pages[card]) {
            self.refused += 1;
            return "refused";
        }
        while (0..4).any(|card| need[card] + self.used_pages()[card] > pages[card]) {
            let kept = self.nodes.iter().filter_map(|(ids, (_, kept))| Some((ids, kept.as_ref()?)));
            let least = kept.min_by(|(_, a), (_, b)| a.value.total_cmp(&b.value).then(a.used.cmp(&b.used)));
            let (victim, value) = least.map(|(ids, kept)| (ids.clone(), kept.value)).unwrap();
            self.clock = self.clock.max(value);
            self.nodes.get_mut(&victim).unwrap().1 = None;
            self.evicted.push(victim);
            self.prune(ids, &way);
        }
        let from = self.nodes.get(ids).map_or(from, |(from, _)| *from);
        self.nodes.insert(ids.to_vec(), (from, Some(Kept { logits, uses: 0, value: 0.0, used: 0 })));
        self.use_of(ids);
        "stored"
    }
}

/// Pages are as many as their bytes need, and segments follow each other from the first token on.
fn check_restore(restore: &Restore, position: usize, seen: &mut [BTreeMap<u32, (usize, usize)>; 4]) {
    assert_eq!(restore.position, position);
    let mut at = 0;
    for segment in &restore.segments {
        assert_eq!(segment.from, at);
        at = segment.to;
        let counts: Vec<usize> = segment.pages.iter().map(Vec::len).collect();
        assert_eq!(counts, row_pages(segment.from, segment.to));
        for (card, pages) in segment.pages.iter().enumerate() {
            for page in pages {
                let owner = (segment.from, segment.to);
                assert_eq!(*seen[card].entry(*page).or_insert(owner), owner, "page {page} of card {card}");
            }
        }
    }
    assert_eq!(at, position);
    assert_eq!(restore.fixed.iter().map(Vec::len).collect::<Vec<_>>(), fixed_pages());
    for (card, pages) in restore.fixed.iter().enumerate() {
        for page in pages {
            assert!((*page as usize) < shape().cards[card].pages);
            assert_eq!(seen[card].insert(*page, (usize::MAX, position)), None, "page {page} of card {card}");
        }
    }
}

#[test]
fn the_bank_follows_a_naive_model() {
    for seed in 0..6 {
        let (mut bank, mut naive, mut random) = (Bank::new(shape()), Naive::default(), Random(seed));
        let mut draw = move |below: usize| (random.next() % below as u64) as usize;
        let (mut stored, mut most) = (0, 0);
        for step in 0..1500 {
            // Few tokens, so that sequences share beginnings of all lengths.
            let known = naive.nodes.keys().nth(draw(naive.nodes.len().max(1))).cloned().unwrap_or_default();
            let mut ids = known[..draw(known.len() + 1)].to_vec();
            // Now and then one that can have no room.
            let more = if draw(20) == 0 { 130 } else { 1 + draw(12) };
            ids.extend((0..more).map(|_| draw(2) as u32));
            match draw(10) {
                0..5 => {
                    let logits = draw(2) == 0;
                    let given: Option<Arc<[f32]>> = logits.then(|| vec![ids.len() as f32].into());
                    let before = bank.counters().used_pages;
                    let taken = match bank.take(&ids, given) {
                        Take::Known => "known",
                        Take::Refused => {
                            assert_eq!(bank.counters().used_pages, before);
                            "refused"
                        }
                        Take::Stored { rows_from, rows, fixed } => {
                            assert_eq!(rows.iter().map(Vec::len).collect::<Vec<_>>(), row_pages(rows_from, ids.len()));
                            assert_eq!(fixed.iter().map(Vec::len).collect::<Vec<_>>(), fixed_pages());
                            stored += 1;
                            "stored"
                        }
                    };
                    assert_eq!(taken, naive.take(&ids, logits), "seed {seed}, step {step}");
                }
                5..8 => {
                    let found = bank.find(&ids);
                    assert_eq!(found.map(|found| found.position), naive.find(&ids), "seed {seed}, step {step}");
                    if let Some(found) = found {
                        let restore = bank.restore(found.node);
                        let ids = &ids[..found.position];
                        naive.use_of(ids);
                        assert_eq!(restore.logits.is_some(), naive.nodes[ids].1.as_ref().unwrap().logits);
                        check_restore(&restore, found.position, &mut Default::default());
                    }
                }
                8 => {
                    bank.forget(&known);
                    if let Some((_, kept)) = naive.nodes.get_mut(&known) {
                        *kept = None;
                        naive.prune(&[], &[]);
                    }
                }
                _ => {
                    // All of them: no page is in two places.
                    let mut seen = Default::default();
                    let kept = naive.nodes.iter().filter(|(_, (_, kept))| kept.is_some());
                    let all: Vec<Vec<u32>> = kept.map(|(ids, _)| ids.clone()).collect();
                    for ids in &all {
                        let longer: Vec<u32> = ids.iter().copied().chain([9]).collect();
                        let found = bank.find(&longer).unwrap();
                        assert_eq!(found.position, ids.len());
                        check_restore(&bank.restore(found.node), ids.len(), &mut seen);
                        naive.use_of(ids);
                    }
                }
            }
            let counters = bank.counters();
            assert_eq!(
                counters.used_pages,
                naive.used_pages().iter().sum::<usize>() as u64,
                "seed {seed}, step {step}"
            );
            let snapshots = naive.nodes.values().filter(|(_, kept)| kept.is_some()).count() as u64;
            assert_eq!((counters.snapshots, counters.evicted), (snapshots, naive.evicted.len() as u64));
            assert_eq!((counters.taken, counters.refused, counters.pages), (stored, naive.refused, 103));
            most = most.max(snapshots);
        }
        assert!(
            naive.evicted.len() > 100 && naive.refused > 10 && most > 5,
            "seed {seed}: {:?}, {most}",
            bank.counters()
        );
    }
}

#[test]
fn what_is_used_often_and_costs_most_stays() {
    // Ten pages of one card, two a snapshot; a token's row takes nothing.
    let shape = BankShape { page_bytes: 10, cards: vec![CardShape { pages: 10, fixed_bytes: 20, rows: vec![(0, 1)] }] };
    let mut bank = Bank::new(shape);
    let ids = |stem: u32, tokens: usize| vec![stem; tokens];
    for (stem, tokens) in [(1, 10), (2, 40), (3, 30), (4, 20), (5, 50)] {
        assert!(matches!(bank.take(&ids(stem, tokens), None), Take::Stored { rows_from: 0, .. }));
    }
    // The cheapest was used three times: worth 30 then, more than the two of 20 and 25.
    for _ in 0..2 {
        let found = bank.find(&ids(1, 11)).unwrap();
        bank.restore(found.node);
    }
    assert!(matches!(bank.take(&ids(6, 25), None), Take::Stored { .. }));
    assert!(matches!(bank.take(&ids(7, 60), None), Take::Stored { .. }));
    let left: BTreeSet<u32> = (1..8).filter(|stem| bank.find(&ids(*stem, 61)).is_some()).collect();
    assert_eq!(left, BTreeSet::from([1, 2, 5, 6, 7]));
    assert_eq!(bank.counters().evicted, 2);
}

#[test]
fn long_conversations_have_many_snapshots() {
    // 256 snapshots of each of two conversations with 262,144 tokens, and branches with one token behind each.
    let shape = BankShape {
        page_bytes: 1 << 20,
        cards: vec![CardShape { pages: 4096, fixed_bytes: 1 << 20, rows: vec![(1024, 1)] }],
    };
    let mut bank = Bank::new(shape);
    let conversation = |stem: u32| -> Vec<u32> { (0..262_144).map(|i| if i == 0 { stem } else { i }).collect() };
    for stem in [1, 2] {
        let ids = conversation(stem);
        for to in (1024..=ids.len()).step_by(1024) {
            assert!(matches!(bank.take(&ids[..to], None), Take::Stored { .. }));
            let branch: Vec<u32> = ids[..to].iter().copied().chain([stem + 7]).collect();
            assert!(matches!(bank.take(&branch, None), Take::Stored { .. }));
        }
    }
    let found = bank.find(&conversation(2)).unwrap();
    assert_eq!(found.position, 261_120);
    let restore = bank.restore(found.node);
    assert_eq!(restore.segments.len(), 255);
    assert_eq!(bank.counters().evicted, 0);
}
