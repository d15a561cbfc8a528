//! A thousand random operations, and a model in memory that says what each has to do.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::time::{Duration, SystemTime};

use bankshot::state::{SessionError, SnapshotId};
use tempfile::tempdir;

use super::random::Random;
use super::support::{Sessions, contents, path};

const OPERATIONS: usize = 1000;
const NAMES: u64 = 9;
/// Between two uses, so that the clock's steps do not matter.
const TICK: Duration = Duration::from_secs(10);

#[derive(Clone, Debug)]
struct Known {
    ids: Vec<u32>,
    from: usize,
    /// Tokens of the parent, which stand for its snapshot.
    parent: Option<Vec<u32>>,
    used: u32,
}

type Folder = BTreeMap<String, Known>;

/// Whether a name can be put together, by trying all ways.
fn whole(folder: &Folder, name: &str) -> bool {
    let known = &folder[name];
    match &known.parent {
        None => true,
        Some(parent) => folder.iter().any(|(other, candidate)| candidate.ids == *parent && whole(folder, other)),
    }
}

/// Names that are whole, and would not be without `name`, or with another session in its place.
fn lost(folder: &Folder, name: &str, new: Option<&Known>) -> Vec<String> {
    let mut after = folder.clone();
    after.remove(name);
    if let Some(new) = new {
        after.insert(name.to_owned(), new.clone());
    }
    after
        .keys()
        .filter(|other| !whole(&after, other) && (!folder.contains_key(*other) || whole(folder, other)))
        .cloned()
        .collect()
}

struct Follow {
    it: Sessions,
    folder: Folder,
    snapshots: BTreeMap<Vec<u32>, SnapshotId>,
    random: Random,
    start: SystemTime,
    tick: u32,
    counts: BTreeMap<&'static str, usize>,
}

impl Follow {
    fn below(&mut self, bound: usize) -> usize {
        (self.random.next() % bound as u64) as usize
    }

    fn time(&self, tick: u32) -> SystemTime {
        self.start + TICK * tick
    }

    fn use_now(&mut self, name: &str) {
        self.tick += 1;
        let file = File::open(path(&self.it.store, name)).unwrap();
        file.set_modified(self.time(self.tick)).unwrap();
        self.folder.get_mut(name).unwrap().used = self.tick;
    }

    fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }

    fn some_name(&mut self) -> Option<String> {
        let at = self.below(self.folder.len().max(1));
        self.folder.keys().nth(at).cloned()
    }

    fn save(&mut self, is_delta: bool) {
        let name = format!("s{}", self.random.next() % NAMES);
        let parent = if is_delta { self.some_name() } else { None };
        let before = parent.as_ref().map_or(Vec::new(), |parent| self.folder[parent].ids.clone());
        let more = 1 + self.below(6);
        // Few different tokens, so that snapshots come again.
        let mut ids = before.clone();
        ids.extend((0..more).map(|_| (self.random.next() % 2) as u32));
        let from = if before.is_empty() { 0 } else { before.len() };
        let parent = (from > 0).then(|| before.clone());
        let new = Known { ids: ids.clone(), from, parent: parent.clone(), used: 0 };
        let lost = lost(&self.folder, &name, Some(&new));
        let result = self.it.save(&name, &ids, from, parent.map(|parent| self.snapshots[&parent]));
        match result {
            Ok(id) => {
                assert!(lost.is_empty(), "{name}: {lost:?}");
                assert_eq!(*self.snapshots.entry(ids).or_insert(id), id);
                self.folder.insert(name.clone(), new);
                self.use_now(&name);
                self.count(if is_delta { "deltas" } else { "bases" });
            }
            Err(SessionError::Needed { by, .. }) => {
                assert_eq!(by, lost, "{name}");
                self.count("refused replacements");
            }
            Err(error) => panic!("{name}: {error}"),
        }
    }

    fn load(&mut self) {
        let Some(name) = self.some_name() else { return };
        self.it.assert_holds(&name, &self.folder[&name].ids);
        self.use_now(&name);
        self.count("loads");
    }

    fn delete(&mut self, reparent: bool) {
        let Some(name) = self.some_name() else { return };
        let lost = lost(&self.folder, &name, None);
        match self.it.store.delete(&name, reparent) {
            Ok(()) if lost.is_empty() => {
                self.folder.remove(&name);
                self.count("deletions");
            }
            Ok(()) => {
                assert!(reparent, "{name}: {lost:?}");
                let gone = self.folder.remove(&name).unwrap();
                let children = self.folder.values_mut().filter(|known| known.parent.as_ref() == Some(&gone.ids));
                for child in children {
                    (child.from, child.parent) = (gone.from, gone.parent.clone());
                }
                self.count("reparentings");
            }
            Err(SessionError::Needed { by, .. }) => {
                assert!(!reparent);
                assert_eq!(by, lost);
                self.count("refused deletions");
            }
            Err(error) => panic!("{name}: {error}"),
        }
    }

    fn prune(&mut self) {
        let bytes = |name: &String| fs::metadata(path(&self.it.store, name)).unwrap().len();
        let mut sizes: BTreeMap<String, u64> = self.folder.keys().map(|name| (name.clone(), bytes(name))).collect();
        let total: u64 = sizes.values().sum();
        let most = self.random.next().is_multiple_of(2).then(|| total * (3 + self.random.next() % 2) / 5);
        let ticks = self.tick.saturating_sub(15 + (self.random.next() % 20) as u32);
        let oldest = self.time(ticks) + TICK / 2;
        let age = self.random.next().is_multiple_of(2).then(|| SystemTime::now().duration_since(oldest).unwrap());
        let mut expected = Vec::new();
        loop {
            let too_many = most.is_some_and(|most| sizes.values().sum::<u64>() > most);
            let mut order: Vec<(u32, String)> =
                self.folder.iter().map(|(name, known)| (known.used, name.clone())).collect();
            order.sort();
            let goes = |(used, name): &&(u32, String)| {
                (too_many || age.is_some() && *used <= ticks) && lost(&self.folder, name, None).is_empty()
            };
            let Some((_, name)) = order.iter().find(goes) else { break };
            self.folder.remove(name);
            sizes.remove(name);
            expected.push(name.clone());
        }
        assert_eq!(self.it.store.prune(most, age).unwrap(), expected);
        self.count("prunings");
        *self.counts.entry("pruned").or_default() += expected.len();
    }

    fn damage(&mut self) {
        let Some(name) = self.some_name() else { return };
        let path = path(&self.it.store, &name);
        let good = fs::read(&path).unwrap();
        let mut bytes = good.clone();
        let at = self.below(bytes.len());
        match self.random.next() % 2 {
            0 => bytes[at] ^= 1 << (self.random.next() % 8),
            _ => bytes.truncate(at),
        }
        fs::write(&path, &bytes).unwrap();
        assert!(self.it.load(&name).is_err());
        let mut without = self.folder.clone();
        without.remove(&name);
        for (other, known) in &without {
            match self.it.load(other) {
                Ok(_) => self.it.assert_holds(other, &known.ids),
                Err(_) => assert!(!whole(&without, other), "{other} does not need {name}"),
            }
            assert_eq!(self.it.load(other).is_ok(), whole(&without, other), "{other} without {name}");
        }
        fs::write(&path, &good).unwrap();
        for name in self.folder.keys() {
            let file = File::open(super::support::path(&self.it.store, name)).unwrap();
            file.set_modified(self.time(self.folder[name].used)).unwrap();
        }
        self.count("damages");
    }

    fn check(&self) {
        let found: BTreeSet<String> = contents(self.it.store.dir()).into_keys().collect();
        assert_eq!(found, self.folder.keys().map(|name| format!("{name}.bks")).collect());
        for entry in self.it.store.list().unwrap() {
            let (info, known) = (entry.info.unwrap(), &self.folder[&entry.name]);
            assert_eq!((info.position, info.from), (known.ids.len() as u64, known.from as u64), "{}", entry.name);
            assert_eq!((info.id, info.broken), (self.snapshots[&known.ids], None));
            assert_eq!(info.parent, known.parent.as_ref().map(|parent| self.snapshots[parent]));
            assert_eq!(info.last_used, self.time(known.used), "{}", entry.name);
        }
    }
}

#[test]
fn random_operations_follow_a_naive_model() {
    let dir = tempdir().unwrap();
    let mut follow = Follow {
        it: Sessions::open(dir.path()),
        folder: Folder::new(),
        snapshots: BTreeMap::new(),
        random: Random(3),
        start: SystemTime::now() - TICK * 2 * OPERATIONS as u32,
        tick: 0,
        counts: BTreeMap::new(),
    };
    for _ in 0..OPERATIONS {
        match follow.below(20) {
            0..3 => follow.save(false),
            3..10 => follow.save(true),
            10..13 => follow.load(),
            13..15 => follow.delete(false),
            15..17 => follow.delete(true),
            17 => follow.prune(),
            _ => follow.damage(),
        }
        follow.check();
    }
    for name in follow.folder.keys() {
        follow.it.assert_holds(name, &follow.folder[name].ids);
    }
    let least = follow.counts.values().min().unwrap();
    assert!(follow.counts.len() == 10 && *least >= 15, "{:?}", follow.counts);
}
