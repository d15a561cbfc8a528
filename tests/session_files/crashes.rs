//! The program ends, or the disk is full or fails, at any operation: what was saved before is there to the bit, and the folder can be used.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use bankshot::state::{SessionError, Store};
use tempfile::{TempDir, tempdir};

use super::support::{Fault, FaultyDisk, Sessions, contents, ids};

type Operation = (&'static str, fn(&Sessions) -> Result<(), SessionError>);

fn tokens(name: &str) -> Vec<u32> {
    let trunk = ids(8, 30);
    match name {
        "a" => trunk[..5].to_vec(),
        "b" => trunk[..10].to_vec(),
        "c" => trunk,
        "d" => [&trunk[..5], &ids(9, 4)].concat(),
        "e" => ids(10, 12),
        "after" => ids(12, 3),
        "new delta" => [&trunk[..10], &ids(13, 7)].concat(),
        // What operations save anew.
        _ => ids(11, 13),
    }
}

/// A base, a chain of two deltas, a second branch, and another base.
fn prepare(dir: &Path) -> Sessions {
    let it = Sessions::open(dir);
    let a = it.save("a", &tokens("a"), 0, None).unwrap();
    let b = it.save("b", &tokens("b"), 5, Some(a)).unwrap();
    it.save("c", &tokens("c"), 10, Some(b)).unwrap();
    it.save("d", &tokens("d"), 5, Some(a)).unwrap();
    it.save("e", &tokens("e"), 0, None).unwrap();
    it
}

const OPERATIONS: [Operation; 9] = [
    ("save", |it| it.save("new", &tokens("new"), 0, None).map(|_| ())),
    ("replace", |it| it.save("e", &tokens("new"), 0, None).map(|_| ())),
    ("save delta", |it| {
        let b = it.store.inspect("b", false)?.id;
        it.save("new", &tokens("new delta"), 10, Some(b)).map(|_| ())
    }),
    ("delete", |it| it.store.delete("c", false)),
    ("delete b with reparent", |it| it.store.delete("b", true)),
    ("delete a with reparent", |it| it.store.delete("a", true)),
    ("prune", |it| it.store.prune(Some(0), None).map(|_| ())),
    ("duplicate", |it| it.store.duplicate("b", "second")),
    ("load", |it| it.load("c").map(|_| ())),
];

/// Sessions that an operation may take away.
fn may_go(operation: &str) -> &'static [&'static str] {
    match operation {
        "delete" => &["c"],
        "delete b with reparent" => &["b"],
        "delete a with reparent" => &["a"],
        "prune" => &["a", "b", "c", "d", "e"],
        _ => &[],
    }
}

fn copy(from: &BTreeMap<String, Vec<u8>>) -> TempDir {
    let dir = tempdir().unwrap();
    from.iter().for_each(|(name, bytes)| fs::write(dir.path().join(name), bytes).unwrap());
    dir
}

/// Runs all operations with a fault at every place. Gives how many faults there were.
fn with_faults(fault: Fault, check: impl Fn(&str, &Sessions, Option<SessionError>)) -> usize {
    let first = tempdir().unwrap();
    prepare(first.path());
    let files = contents(first.path());
    let mut faults = 0;
    for (name, operation) in OPERATIONS {
        for at in 0.. {
            assert!(at < 1000, "{name} does not end");
            let dir = copy(&files);
            let disk = FaultyDisk::new(fault, at);
            let failed = Store::with_disk(dir.path(), Arc::new(disk.clone()));
            let result = failed.and_then(|store| operation(&Sessions::with(store)));
            if !disk.met() {
                result.unwrap();
                break;
            }
            faults += 1;
            let it = Sessions::open(dir.path());
            check(name, &it, result.err());
            check_all(name, at, &it);
        }
    }
    faults
}

/// Whatever is there is right, only what was meant to go has gone, and the folder can be used.
fn check_all(operation: &str, at: usize, it: &Sessions) {
    let list = it.store.list().unwrap();
    for entry in &list {
        assert!(entry.info.is_ok(), "{operation}, operation {at}: {entry:?}");
    }
    let there: Vec<&str> = list.iter().map(|entry| entry.name.as_str()).collect();
    for name in ["a", "b", "c", "d", "e"] {
        if !there.contains(&name) {
            assert!(may_go(operation).contains(&name), "{operation}, operation {at}: {name} is gone");
        } else if operation == "replace" && name == "e" {
            let found = it.load("e").unwrap().image.ids;
            assert!(found == tokens("e") || found == tokens("new"));
            it.assert_holds("e", &found);
        } else {
            it.assert_holds(name, &tokens(name));
        }
    }
    if there.contains(&"second") {
        it.assert_holds("second", &tokens("b"));
    }
    if there.contains(&"new") {
        let expected = tokens(if operation == "save delta" { "new delta" } else { "new" });
        it.assert_holds("new", &expected);
    }
    it.save("after", &tokens("after"), 0, None).unwrap();
    it.assert_holds("after", &tokens("after"));
    assert!(contents(it.store.dir()).keys().all(|name| name.ends_with(".bks")), "{operation}, operation {at}");
    // The operation can be done again.
    let (_, again) = OPERATIONS.into_iter().find(|(name, _)| *name == operation).unwrap();
    match again(it) {
        Ok(()) | Err(SessionError::NotFound { .. }) => {}
        Err(error) => panic!("{operation}, operation {at}, again: {error}"),
    }
}

#[test]
fn a_program_that_ends_at_any_operation_loses_nothing() {
    let faults = with_faults(Fault::Kill, |_, _, _| {});
    assert!(faults > 150, "{faults}");
}

#[test]
fn a_write_that_is_torn_loses_nothing() {
    with_faults(Fault::Torn, |_, _, _| {});
}

#[test]
fn an_operation_that_fails_once_loses_nothing_and_leaves_nothing() {
    with_faults(Fault::Once, |_, it, _| {
        let names: Vec<String> = contents(it.store.dir()).into_keys().collect();
        let left: Vec<&String> = names.iter().filter(|name| !name.ends_with(".bks")).collect();
        assert!(left.is_empty(), "{left:?}");
    });
}

#[test]
fn a_full_disk_is_named_and_nothing_is_left() {
    let faults = with_faults(Fault::Full, |operation, it, error| {
        let error = error.unwrap_or_else(|| panic!("{operation}: no error")).to_string();
        let name = match operation {
            "replace" => "e",
            "delete b with reparent" => "c",
            "delete a with reparent" if error.contains("b.bks") => "b",
            "delete a with reparent" => "d",
            _ => "new",
        };
        let path = it.store.dir().join(format!("{name}.bks"));
        let expected = format!("cannot write '{}': no storage space", path.display());
        assert_eq!(error, expected, "{operation}");
        assert_eq!(contents(it.store.dir()).len(), 5, "{operation}");
    });
    assert!(faults > 100, "{faults}");
}
