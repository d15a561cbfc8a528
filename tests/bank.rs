//! The bank of snapshots against a naive model that recomputes everything, and by hand where figures say more.

#[path = "support/random.rs"]
#[allow(dead_code, reason = "shared with other tests")]
mod random;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bankshot::plan::{Extent, StateKind};
use bankshot::state::{Bank, BankCounters, BankShape, CardShape, Found, Piece, Take};
use random::Random;

/// A token that no stored sequence has.
const END: u32 = u32::MAX;

fn below(random: &mut Random, bound: usize) -> usize {
    (random.next() % bound as u64) as usize
}

fn card(pages: usize, fixed_bytes: u64, rows: &[(u64, usize)]) -> CardShape {
    CardShape { pages, fixed_bytes, rows: rows.to_vec() }
}

/// One card, pages of 10 bytes, fixed pieces of one page, and a page of rows for each token.
fn simple(pages: usize) -> BankShape {
    BankShape { page_bytes: 10, cards: vec![card(pages, 10, &[(10, 1)])] }
}

fn logits(value: f32) -> Option<Arc<[f32]>> {
    Some(Arc::from([value]))
}

/// A snapshot of the model.
#[derive(Clone)]
struct Snapshot {
    uses: u64,
    clock: f64,
    last_use: u64,
    logits: Option<f32>,
    /// As the bank gave them, [card][page].
    fixed: Vec<Vec<u32>>,
}

#[derive(Clone)]
struct Kept {
    parent: Option<Vec<u32>>,
    snapshot: Option<Snapshot>,
    rows: Vec<Vec<u32>>,
}

/// The rules again: sequences are whole and looked for one by one, and pages are counted anew for each question.
#[derive(Clone)]
struct Naive {
    shape: BankShape,
    kept: BTreeMap<Vec<u32>, Kept>,
    clock: f64,
    uses: u64,
    counters: BankCounters,
}

impl Naive {
    fn new(shape: &BankShape) -> Naive {
        let pages = shape.cards.iter().map(|card| card.pages as u64).sum();
        let counters = BankCounters { pages, ..BankCounters::default() };
        Naive { shape: shape.clone(), kept: BTreeMap::new(), clock: 0.0, uses: 0, counters }
    }

    fn pages_of_bytes(&self, bytes: u64) -> usize {
        (0..).find(|pages| pages * self.shape.page_bytes >= bytes).unwrap() as usize
    }

    fn fixed_pages(&self, card: usize) -> usize {
        self.pages_of_bytes(self.shape.cards[card].fixed_bytes)
    }

    fn row_pages(&self, card: usize, from: usize, to: usize) -> usize {
        let rows = |tokens: usize| (from + 1..=to).filter(|token| token % tokens == 0).count() as u64;
        self.pages_of_bytes(self.shape.cards[card].rows.iter().map(|(bytes, tokens)| bytes * rows(*tokens)).sum())
    }

    fn from(&self, ids: &[u32]) -> usize {
        self.kept[ids].parent.as_ref().map_or(0, Vec::len)
    }

    /// Pages that each card needs for what is kept.
    fn used(&self) -> Vec<usize> {
        let need = |card: usize, (ids, kept): (&Vec<u32>, &Kept)| {
            let fixed = if kept.snapshot.is_some() { self.fixed_pages(card) } else { 0 };
            self.row_pages(card, self.from(ids), ids.len()) + fixed
        };
        (0..self.shape.cards.len()).map(|card| self.kept.iter().map(|kept| need(card, kept)).sum()).collect()
    }

    fn find(&self, ids: &[u32]) -> Option<usize> {
        let usable = |known: &Vec<u32>, snapshot: &Snapshot| {
            ids.starts_with(known) && (known.len() < ids.len() || snapshot.logits.is_some())
        };
        let snapshots = self.kept.iter().filter_map(|(known, kept)| Some((known, kept.snapshot.as_ref()?)));
        snapshots.filter(|(known, snapshot)| usable(known, snapshot)).map(|(known, _)| known.len()).max()
    }

    fn use_it(&mut self, ids: &[u32]) {
        self.uses += 1;
        let snapshot = self.kept.get_mut(ids).unwrap().snapshot.as_mut().unwrap();
        (snapshot.uses, snapshot.clock, snapshot.last_use) = (snapshot.uses + 1, self.clock, self.uses);
    }

    /// Drops a snapshot, and rows until none are there for nothing.
    fn drop_snapshot(&mut self, ids: &[u32], pinned: Option<&Vec<u32>>) {
        self.kept.get_mut(ids).unwrap().snapshot = None;
        loop {
            let parents: BTreeSet<_> = self.kept.values().filter_map(|kept| kept.parent.clone()).collect();
            let before = self.kept.len();
            let needed = |ids: &Vec<u32>| parents.contains(ids) || Some(ids) == pinned;
            self.kept.retain(|ids, kept| kept.snapshot.is_some() || needed(ids));
            if self.kept.len() == before {
                return;
            }
        }
    }

    fn value(&self, ids: &[u32], pinned: Option<&Vec<u32>>) -> f64 {
        let mut without = self.clone();
        without.drop_snapshot(ids, pinned);
        let size = self.used().iter().sum::<usize>() - without.used().iter().sum::<usize>();
        let mut above = self.kept[ids].parent.clone();
        while let Some(parent) = &above
            && self.kept[parent].snapshot.is_none()
        {
            above = self.kept[parent].parent.clone();
        }
        let cost = ids.len() - above.map_or(0, |above| above.len());
        let snapshot = self.kept[ids].snapshot.as_ref().unwrap();
        snapshot.clock + (snapshot.uses * cost as u64) as f64 / size.max(1) as f64
    }

    fn snapshots(&self) -> Vec<Vec<u32>> {
        self.kept.iter().filter(|(_, kept)| kept.snapshot.is_some()).map(|(ids, _)| ids.clone()).collect()
    }

    fn fits(&self, needs: &[usize]) -> bool {
        let cards = self.used().into_iter().zip(needs).zip(&self.shape.cards);
        cards.into_iter().all(|((used, need), card)| used + need <= card.pages)
    }

    /// The lowest pages of each card that nothing holds.
    fn free_pages(&self, card: usize) -> impl Iterator<Item = u32> {
        let held = |kept: &Kept| {
            let fixed = kept.snapshot.iter().flat_map(|snapshot| snapshot.fixed[card].clone());
            kept.rows[card].iter().copied().chain(fixed).collect::<Vec<u32>>()
        };
        let held: Vec<u32> = self.kept.values().flat_map(held).collect();
        let distinct: BTreeSet<u32> = held.iter().copied().collect();
        assert_eq!(distinct.len(), held.len(), "a page of card {card} is used twice");
        (0..self.shape.cards[card].pages as u32).filter(move |page| !distinct.contains(page))
    }

    fn take(&mut self, ids: &[u32], logits: Option<f32>) -> Take {
        if ids.is_empty() {
            return Take::Known;
        }
        if let Some(Kept { snapshot: Some(snapshot), .. }) = self.kept.get_mut(ids) {
            snapshot.logits = snapshot.logits.or(logits);
            self.use_it(ids);
            return Take::Known;
        }
        let parent = self.kept.keys().filter(|known| ids.starts_with(known)).max_by_key(|known| known.len()).cloned();
        let rows_from = parent.as_ref().map_or(0, Vec::len);
        let cards = 0..self.shape.cards.len();
        let rows: Vec<usize> = cards.clone().map(|card| self.row_pages(card, rows_from, ids.len())).collect();
        let fixed: Vec<usize> = cards.clone().map(|card| self.fixed_pages(card)).collect();
        let needs: Vec<usize> = cards.clone().map(|card| rows[card] + fixed[card]).collect();
        // Evict one by one, and see afterwards whether that was enough.
        let mut after = self.clone();
        while !after.fits(&needs) {
            let order = |ids: &Vec<u32>| (after.value(ids, parent.as_ref()), after.last_use(ids));
            let victim = after.snapshots().into_iter().min_by(|a, b| order(a).partial_cmp(&order(b)).unwrap());
            let Some(victim) = victim else {
                self.counters.refused += 1;
                return Take::Refused;
            };
            after.clock = after.clock.max(after.value(&victim, parent.as_ref()));
            after.counters.evicted += 1;
            after.drop_snapshot(&victim, parent.as_ref());
        }
        *self = after;
        self.counters.taken += 1;
        let (mut row_pages, mut fixed_pages) = (Vec::new(), Vec::new());
        for card in cards {
            let mut free = self.free_pages(card);
            row_pages.push(free.by_ref().take(rows[card]).collect::<Vec<u32>>());
            fixed_pages.push(free.take(fixed[card]).collect::<Vec<u32>>());
        }
        let none = Kept { parent, snapshot: None, rows: row_pages.clone() };
        let kept = self.kept.entry(ids.to_vec()).or_insert(none);
        kept.snapshot = Some(Snapshot { uses: 0, clock: 0.0, last_use: 0, logits, fixed: fixed_pages.clone() });
        self.use_it(ids);
        Take::Stored { rows_from, rows: row_pages, fixed: fixed_pages }
    }

    fn last_use(&self, ids: &[u32]) -> u64 {
        self.kept[ids].snapshot.as_ref().unwrap().last_use
    }

    fn forget(&mut self, ids: &[u32]) {
        if self.kept.get(ids).is_some_and(|kept| kept.snapshot.is_some()) {
            self.drop_snapshot(ids, None);
        }
    }

    fn counters(&self) -> BankCounters {
        let used_pages = self.used().iter().sum::<usize>() as u64;
        BankCounters { snapshots: self.snapshots().len() as u64, used_pages, ..self.counters }
    }

    /// Compares a restored snapshot with what was stored for it and for what is above it.
    fn check_restore(&self, bank: &mut Bank, found: Found, ids: &[u32]) {
        let restore = bank.restore(found.node);
        let known = &ids[..found.position];
        let snapshot = self.kept[known].snapshot.as_ref().unwrap();
        assert_eq!(restore.position, found.position);
        assert_eq!(restore.fixed, snapshot.fixed);
        assert_eq!(restore.logits.as_deref().map(|logits| logits[0]), snapshot.logits);
        let mut to = 0;
        for segment in &restore.segments {
            assert_eq!(segment.from, to, "rows have no gap");
            to = segment.to;
            assert_eq!(segment.pages, self.kept[&ids[..to]].rows);
            for (card, pages) in segment.pages.iter().enumerate() {
                assert_eq!(pages.len(), self.row_pages(card, segment.from, to), "tokens {}..{to}", segment.from);
            }
        }
        assert_eq!(to, found.position, "all rows are there");
        for (card, pages) in restore.fixed.iter().enumerate() {
            assert_eq!(pages.len(), self.fixed_pages(card));
        }
    }
}

/// A sequence over two tokens, often a beginning or a continuation of one that was seen.
fn sequence(random: &mut Random, seen: &[Vec<u32>], longest: usize) -> Vec<u32> {
    let mut ids = match seen.len() {
        0 => Vec::new(),
        some => seen[below(random, some)].clone(),
    };
    ids.truncate(below(random, longest + 1));
    let more = below(random, longest + 1 - ids.len());
    ids.extend((0..more).map(|_| random.next() as u32 % 2));
    ids
}

/// Whether a sequence has a snapshot: behind it, nothing is deeper.
fn has_snapshot(bank: &Bank, ids: &[u32]) -> bool {
    bank.find(&[ids, &[END]].concat()).is_some_and(|found| found.position == ids.len())
}

fn compare(shape: &BankShape, longest: usize, operations: usize, seed: u64) -> BankCounters {
    let mut random = Random(seed);
    let (mut bank, mut naive) = (Bank::new(shape.clone()), Naive::new(shape));
    let mut seen: Vec<Vec<u32>> = Vec::new();
    for operation in 0..operations {
        let ids = sequence(&mut random, &seen, longest);
        let context = format!("{operation} of seed {seed}: {ids:?}");
        match below(&mut random, 20) {
            0..10 => {
                let value = (below(&mut random, 2) == 0).then_some(operation as f32);
                let before = naive.counters();
                let expected = naive.take(&ids, value);
                assert_eq!(bank.take(&ids, value.and_then(logits)), expected, "{context}");
                if expected == Take::Refused {
                    assert_eq!(bank.counters(), BankCounters { refused: before.refused + 1, ..before }, "{context}");
                }
                if !seen.contains(&ids) && !ids.is_empty() {
                    seen.push(ids);
                }
            }
            10..17 => {
                let found = bank.find(&ids);
                assert_eq!(found.map(|found| found.position), naive.find(&ids), "{context}");
                let known = found.map_or(0, |found| found.position);
                bank.count(known, ids.len());
                let counters = &mut naive.counters;
                *(if known > 0 { &mut counters.hits } else { &mut counters.misses }) += 1;
                counters.hit_tokens += known as u64;
                counters.prompt_tokens += ids.len() as u64;
                if let Some(found) = found {
                    naive.check_restore(&mut bank, found, &ids);
                    naive.use_it(&ids[..found.position]);
                }
            }
            17..19 => {
                bank.forget(&ids);
                naive.forget(&ids);
            }
            _ if operation % 16 == 0 => {
                bank.clear();
                naive.kept.clear();
            }
            _ => {}
        }
        assert_eq!(bank.counters(), naive.counters(), "{context}");
        for ids in &seen {
            let expected = naive.kept.get(ids).is_some_and(|kept| kept.snapshot.is_some());
            assert_eq!(has_snapshot(&bank, ids), expected, "{ids:?} after {context}");
        }
    }
    bank.counters()
}

#[test]
fn the_bank_follows_a_naive_model() {
    let shapes = [
        (simple(9), 5),
        (simple(24), 8),
        // Nothing fits; every snapshot alone.
        (BankShape { page_bytes: 4, cards: vec![card(2, 12, &[(4, 1)])] }, 4),
        (BankShape { page_bytes: 4, cards: vec![card(4, 12, &[(1, 1)])] }, 4),
        // Pages that are not filled, rows of groups of tokens, a card without fixed pieces, one without rows.
        (BankShape { page_bytes: 8, cards: vec![card(30, 20, &[(3, 1), (5, 2)]), card(12, 9, &[(7, 3)])] }, 9),
        (BankShape { page_bytes: 8, cards: vec![card(14, 0, &[(5, 1)]), card(5, 3, &[]), card(9, 16, &[(9, 4)])] }, 9),
        (BankShape { page_bytes: 64, cards: vec![card(40, 130, &[(30, 1), (40, 4)]), card(25, 65, &[(33, 1)])] }, 16),
    ];
    let mut all = BankCounters::default();
    for (at, (shape, longest)) in shapes.iter().enumerate() {
        for seed in 0..3 {
            let counters = compare(shape, *longest, 1500, 10 * at as u64 + seed);
            all.hits += counters.hits;
            all.evicted += counters.evicted;
            all.refused += counters.refused;
        }
    }
    // The operations are not all of one kind.
    assert!(all.hits > 2000 && all.evicted > 2000 && all.refused > 1000, "{all}");
}

fn position(bank: &Bank, ids: &[u32]) -> Option<usize> {
    bank.find(ids).map(|found| found.position)
}

fn restored_logits(bank: &mut Bank, ids: &[u32]) -> Option<f32> {
    let node = bank.find(ids).unwrap().node;
    bank.restore(node).logits.map(|logits| logits[0])
}

#[test]
fn the_same_prompt_is_known_with_its_logits_alone() {
    let mut bank = Bank::new(simple(20));
    let stored = |rows_from, rows: &[u32], fixed: u32| Take::Stored {
        rows_from,
        rows: vec![rows.to_vec()],
        fixed: vec![vec![fixed]],
    };
    assert_eq!(bank.take(&[1, 2], None), stored(0, &[0, 1], 2));
    assert_eq!(bank.take(&[1, 2, 3, 4], None), stored(2, &[3, 4], 5));
    assert_eq!(position(&bank, &[1, 2, 3, 4]), Some(2));
    assert_eq!(position(&bank, &[1, 2, 3, 4, 5]), Some(4));
    assert_eq!(bank.take(&[1, 2, 3, 4], logits(1.0)), Take::Known);
    assert_eq!(position(&bank, &[1, 2, 3, 4]), Some(4));
    // They are there, and stay.
    assert_eq!(bank.take(&[1, 2, 3, 4], logits(2.0)), Take::Known);
    assert_eq!(bank.take(&[1, 2, 3, 4], None), Take::Known);
    assert_eq!(restored_logits(&mut bank, &[1, 2, 3, 4]), Some(1.0));
    // They go with the snapshot.
    bank.take(&[1, 2, 3, 4, 5], None);
    bank.forget(&[1, 2, 3, 4]);
    assert_eq!(bank.take(&[1, 2, 3, 4], None), stored(4, &[], 5));
    assert_eq!(position(&bank, &[1, 2, 3, 4]), Some(2));
}

#[test]
fn one_other_token_is_another_sequence() {
    let mut bank = Bank::new(simple(100));
    bank.take(&[5, 6, 7], logits(0.0));
    for other in [[4, 6, 7], [5, 4, 7], [5, 6, 4]] {
        assert_eq!(position(&bank, &other), None);
    }
    assert_eq!(position(&bank, &[5, 6]), None);
    // Two branches share their parent's rows and have their own.
    bank.take(&[5, 6, 7, 1, 2], logits(1.0));
    bank.take(&[5, 6, 7, 1, 3], logits(2.0));
    assert_eq!(bank.counters().used_pages, 3 + 2 + 2 + 3);
    assert_eq!(position(&bank, &[5, 6, 7, 1]), Some(3));
    for (last, expected) in [(2, 1.0), (3, 2.0)] {
        let ids = [5, 6, 7, 1, last];
        assert_eq!(restored_logits(&mut bank, &ids), Some(expected));
        let node = bank.find(&ids).unwrap().node;
        let segments: Vec<_> = bank.restore(node).segments.iter().map(|segment| (segment.from, segment.to)).collect();
        assert_eq!(segments, [(0, 3), (3, 5)]);
    }
    // A snapshot within another's segment is a branch too, and others go on from there.
    assert!(matches!(bank.take(&[5, 6, 7, 1], None), Take::Stored { rows_from: 3, .. }));
    assert_eq!(position(&bank, &[5, 6, 7, 1, 2]), Some(5));
    assert_eq!(position(&bank, &[5, 6, 7, 1, 9]), Some(4));
    assert!(matches!(bank.take(&[5, 6, 7, 1, 9], None), Take::Stored { rows_from: 4, .. }));
}

#[test]
fn rows_stay_as_long_as_they_are_needed() {
    let mut bank = Bank::new(simple(20));
    bank.take(&[1, 2], None);
    bank.take(&[1, 2, 3], None);
    bank.take(&[1, 2, 4], None);
    assert_eq!(bank.counters().used_pages, 2 + 1 + 1 + 3);
    bank.forget(&[1, 2]);
    assert_eq!(bank.counters().used_pages, 2 + 1 + 1 + 2);
    bank.forget(&[1, 2]);
    bank.forget(&[1]);
    bank.forget(&[1, 2, 3, 4]);
    bank.forget(&[1, 2, 3]);
    assert_eq!(bank.counters().used_pages, 2 + 1 + 1);
    let node = bank.find(&[1, 2, 4, 5]).unwrap().node;
    assert_eq!(bank.restore(node).segments.len(), 2);
    bank.forget(&[1, 2, 4]);
    let BankCounters { snapshots, used_pages, evicted, .. } = bank.counters();
    assert_eq!((snapshots, used_pages, evicted), (0, 0, 0));
    bank.take(&[1, 2], None);
    bank.clear();
    assert_eq!(bank.counters().used_pages, 0);
    assert_eq!(position(&bank, &[1, 2, 3]), None);
    assert!(matches!(bank.take(&[1, 2], None), Take::Stored { rows_from: 0, rows, .. } if rows == [[0, 1]]));
}

#[test]
fn what_saves_least_for_its_pages_is_evicted_first() {
    // 12 pages. [1; 4] takes 5 for 4 tokens, twice used; [2; 2] takes 3 for 2; [3] takes 2 for 1.
    let mut bank = Bank::new(simple(12));
    bank.take(&[1; 4], None);
    bank.take(&[2; 2], None);
    bank.take(&[3], None);
    bank.take(&[1; 4], None);
    let there = |bank: &Bank| {
        let sequences: [&[u32]; 5] = [&[1; 4], &[2; 2], &[3], &[4; 3], &[5; 2]];
        sequences.map(|ids| has_snapshot(bank, ids))
    };
    // Values are 8/5, 2/3 and 1/2, and 2 pages are free. The new one needs 4, and its value is 1/2 + 3/4.
    bank.take(&[4; 3], None);
    assert_eq!(there(&bank), [true, true, false, true, false]);
    // No page is free, 3 are needed: 2/3 goes, and the new one's value is 2/3 + 2/3.
    bank.take(&[5; 2], None);
    assert_eq!(there(&bank), [true, false, false, true, true]);
    // Values are 8/5, 5/4 and 4/3.
    bank.take(&[3], None);
    assert_eq!(there(&bank), [true, false, true, false, true]);
    assert_eq!(bank.counters().evicted, 3);
}

#[test]
fn values_follow_the_tree() {
    // A child counts the tokens behind its parent's snapshot alone: 2 tokens for 3 pages, while the parent has 4 tokens for its fixed page.
    let mut bank = Bank::new(simple(11));
    bank.take(&[1; 4], None);
    bank.take(&[1; 6], None);
    bank.take(&[2; 2], None);
    // 2/3 each: of [1; 6] and [2; 2] the one that was used longest ago goes.
    bank.take(&[3], None);
    assert!(!has_snapshot(&bank, &[1; 6]) && has_snapshot(&bank, &[2; 2]) && has_snapshot(&bank, &[1; 4]));
    // Without the parent's snapshot, the child saves all of its tokens: 6/7, against 3/4.
    let mut bank = Bank::new(simple(12));
    bank.take(&[1; 4], None);
    bank.take(&[1; 6], None);
    bank.take(&[2; 3], None);
    bank.forget(&[1; 4]);
    bank.take(&[3], None);
    bank.take(&[4], None);
    assert!(has_snapshot(&bank, &[1; 6]) && !has_snapshot(&bank, &[2; 3]));
}

#[test]
fn what_cannot_fit_evicts_nothing() {
    let mut bank = Bank::new(simple(8));
    bank.take(&[1; 3], None);
    bank.take(&[2; 2], None);
    let before = bank.counters();
    assert_eq!(bank.take(&[3; 8], None), Take::Refused);
    // With the rows above it, 9 pages.
    assert_eq!(bank.take(&[1; 8], None), Take::Refused);
    assert_eq!(bank.counters(), BankCounters { refused: 2, ..before });
    // 8 pages are enough, the parent's fixed one among them.
    assert_eq!(
        bank.take(&[1; 7], None),
        Take::Stored { rows_from: 3, rows: vec![vec![3, 4, 5, 6]], fixed: vec![vec![7]] }
    );
    let BankCounters { snapshots, used_pages, evicted, .. } = bank.counters();
    assert_eq!((snapshots, used_pages, evicted), (1, 8, 2));
    let node = bank.find(&[1; 8]).unwrap().node;
    assert_eq!(bank.restore(node).segments.len(), 2);
}

#[test]
fn pages_are_as_many_as_the_bytes_of_an_image() {
    let extents =
        [(40, 1), (24, 4), (12, 16)].map(|(row_bytes, tokens_per_row)| Extent::Rows { row_bytes, tokens_per_row });
    let pieces = extents.map(|extent| Piece { layer: 0, kind: StateKind::Keys, extent });
    let shape = BankShape { page_bytes: 64, cards: vec![card(1000, 1, &[(40, 1), (24, 4), (12, 16)])] };
    let (mut bank, ids) = (Bank::new(shape), [7; 100]);
    let mut from = 0;
    for to in [1, 3, 4, 17, 31, 32, 64, 100] {
        let Take::Stored { rows_from, rows, .. } = bank.take(&ids[..to], None) else { panic!("there is room") };
        let bytes: u64 = pieces.iter().map(|piece| piece.bytes(from, to)).sum();
        assert_eq!((rows_from, rows[0].len() as u64), (from, bytes.div_ceil(64)), "{from}..{to}");
        from = to;
    }
}

#[test]
fn a_shape_out_of_all_bounds_is_refused_without_a_panic() {
    let cards = vec![card(3, u64::MAX, &[(u64::MAX, 1), (u64::MAX, 2)]), card(0, 0, &[])];
    let mut bank = Bank::new(BankShape { page_bytes: 1, cards });
    assert_eq!(bank.take(&[1, 2, 3], None), Take::Refused);
    assert_eq!(bank.take(&[], None), Take::Known);
    assert_eq!(bank.find(&[]), None);
    assert_eq!(bank.counters(), BankCounters { refused: 1, pages: 3, ..BankCounters::default() });
}

#[test]
fn counters_are_printed_and_serialised() {
    let mut bank = Bank::new(simple(5));
    bank.take(&[1, 2], None);
    bank.take(&[3, 4, 5], None);
    bank.take(&[6; 6], None);
    bank.count(0, 7);
    bank.count(3, 5);
    bank.count(3, 4);
    let counters = bank.counters();
    assert_eq!(
        counters.to_string(),
        "2 hits, 1 misses, 6 of 16 prompt tokens known; 1 snapshots in 4 of 5 pages; 2 taken, 1 evicted, 1 without room"
    );
    assert_eq!(
        serde_json::to_value(counters).unwrap(),
        serde_json::json!({
            "hits": 2, "misses": 1, "hit_tokens": 6, "prompt_tokens": 16, "taken": 2, "evicted": 1, "refused": 1,
            "snapshots": 1, "used_pages": 4, "pages": 5,
        })
    );
}
