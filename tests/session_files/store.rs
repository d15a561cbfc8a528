//! Round trips, chains, names, locks, limits.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::time::{Duration, SystemTime};

use bankshot::plan::Extent;
use bankshot::state::{
    CHAIN_MAX, Encoding, Extras, Identity, Image, Layout, Limits, NOTES_BYTES_MAX, Piece, SectionKind, SessionError,
    SnapshotId, Store, would_take,
};
use tempfile::tempdir;

use super::support::{CONTEXT, Sessions, contents, identity, ids, image, layout, path, text_of};

#[test]
fn what_is_saved_is_loaded() {
    let dir = tempdir().unwrap();
    let store = Store::open(&dir.path().join("a/b")).unwrap();
    let long: Vec<u32> = ids(1, 1000);
    for number_bytes in [2, 4] {
        for tokens in [0, 1, 3, 4, 5, 1000] {
            for (compress, logits, notes) in
                [(false, false, None), (true, true, Some(&b"[1, 2]"[..])), (true, false, Some(&b""[..]))]
            {
                let (layout, identity) = (layout(number_bytes), identity(number_bytes));
                let image = image(&layout, &long[..tokens], 0, logits);
                let text = text_of(&image.ids);
                let extras = Extras { text: &text, notes, compress, limits: Limits::default() };
                let saved = store.save("it", &identity, &layout, &image, extras, None).unwrap();
                let loaded = store.load("it", &identity, &layout, tokens).unwrap();
                assert_eq!(loaded.image, image);
                assert_eq!((loaded.id, loaded.text, loaded.notes.as_deref()), (saved.id, text.clone(), notes));
                assert_eq!(fs::metadata(path(&store, "it")).unwrap().len(), saved.bytes);

                let info = store.inspect("it", true).unwrap();
                assert_eq!((info.id, info.position, info.from, info.parent), (saved.id, tokens as u64, 0, None));
                assert_eq!((info.bytes, &info.identity, info.has_logits), (saved.bytes, &identity, logits));
                assert_eq!((info.chain.len(), info.broken, info.version), (0, None, 1));
                assert_eq!((info.text_bytes, info.notes_bytes), (text.len() as u64, notes.map(|n| n.len() as u64)));
                let start: String = text.chars().take(200).collect();
                assert!(text.starts_with(&info.text_start) && info.text_start.len() >= start.len().min(190));
                let age = SystemTime::now().duration_since(info.created).unwrap();
                assert!(age < Duration::from_secs(600), "{age:?}");
                let shorter = info.sections.iter().any(|section| section.encoding != Encoding::Raw);
                assert!(if compress { shorter || tokens < 1000 } else { !shorter }, "{:?}", info.sections);
                let of_keys = if number_bytes == 2 { Encoding::Zstd2 } else { Encoding::Zstd4 };
                let keys = info.sections.iter().find(|section| section.title() == "keys of layer 2").unwrap();
                assert!(keys.encoding == Encoding::Raw || keys.encoding == of_keys);
                assert_eq!(keys.raw_bytes, 3 * number_bytes * tokens as u64);
            }
        }
    }
}

#[test]
fn a_snapshot_is_named_by_what_it_is() {
    let dir = tempdir().unwrap();
    let it = Sessions::open(dir.path());
    let tokens = ids(1, 20);
    let whole = it.save("whole", &tokens, 0, None).unwrap();
    let base = it.save("base", &tokens[..7], 0, None).unwrap();
    let delta = it.save("delta", &tokens, 7, Some(base)).unwrap();
    assert_eq!(whole, delta);
    assert_ne!(whole, base);
    assert_eq!(SnapshotId::parse(&whole.to_string()), Some(whole));
    assert_eq!(SnapshotId::parse("12"), None);

    let (first, layout) = (image(&it.layout, &tokens, 0, true), &it.layout);
    let id = |identity: &Identity, image: &Image| {
        it.store.save("other", identity, layout, image, Extras::default(), None).unwrap().id
    };
    assert_eq!(id(&it.identity, &first), whole, "text, notes and compression are not of the snapshot");
    let mut others = vec![id(&identity(4), &first)];
    others.push(id(&it.identity, &Image { logits: None, ..first.clone() }));
    let mut logits = first.clone();
    logits.logits.as_mut().unwrap()[2] += 1.0;
    others.push(id(&it.identity, &logits));
    for (piece, of) in it.layout.pieces().iter().enumerate() {
        let mut image = first.clone();
        image.pieces[piece][3] ^= 1;
        let found = id(&it.identity, &image);
        match of.is_fixed() {
            true => others.push(found),
            false => assert_eq!(found, whole),
        }
    }
    let mut other_ids = first;
    other_ids.ids[0] += 1;
    others.push(id(&it.identity, &other_ids));
    others.push(whole);
    let count = others.len();
    others.sort();
    others.dedup();
    assert_eq!(others.len(), count);
}

#[test]
fn chains_and_branches_are_put_together() {
    let dir = tempdir().unwrap();
    let it = Sessions::open(dir.path());
    let tokens = ids(2, 40);
    let a = it.save("a", &tokens[..5], 0, None).unwrap();
    let b = it.save("b", &tokens[..10], 5, Some(a)).unwrap();
    let c = it.save("c", &tokens[..11], 10, Some(b)).unwrap();
    it.save("d", &tokens, 11, Some(c)).unwrap();
    let branch = [&tokens[..5], &ids(3, 9)].concat();
    it.save("e", &branch, 5, Some(a)).unwrap();
    for (name, length) in [("a", 5), ("b", 10), ("c", 11), ("d", 40)] {
        it.assert_holds(name, &tokens[..length]);
    }
    it.assert_holds("e", &branch);
    let info = it.store.inspect("d", false).unwrap();
    let names: Vec<&str> = info.chain.iter().map(|link| link.name.as_deref().unwrap()).collect();
    assert_eq!(names, ["c", "b", "a"]);
    assert_eq!(info.chain.iter().map(|link| link.id).collect::<Vec<_>>(), [c, b, a]);

    fs::remove_file(path(&it.store, "b")).unwrap();
    let error = it.load("d").unwrap_err().to_string();
    assert!(error.contains("session c") && error.contains(&b.to_string()) && error.contains("found none"), "{error}");
    let info = it.store.inspect("d", true).unwrap();
    assert_eq!(info.chain.last().unwrap().name, None);
    assert_eq!(info.broken.unwrap(), error);
    it.assert_holds("e", &branch);
}

#[test]
fn parents_have_to_fit() {
    let dir = tempdir().unwrap();
    let it = Sessions::open(dir.path());
    let tokens = ids(4, 80);
    let a = it.save("a", &tokens[..5], 0, None).unwrap();
    let other = [&[1, 2, 3, 4], &tokens[4..]].concat();
    let reject = |result: Result<SnapshotId, SessionError>, parts: &[&str]| {
        let error = result.unwrap_err().to_string();
        assert!(parts.iter().all(|part| error.contains(part)), "{error}");
        assert_eq!(contents(dir.path()).len(), 1);
    };
    reject(it.save("x", &tokens, 5, None), &["session x", "parent", "expected one", "got none"]);
    reject(it.save("x", &tokens, 0, Some(a)), &["session x", "parent", "expected none", &a.to_string()]);
    reject(it.save("x", &tokens, 4, Some(a)), &["session x", "position", "expected 4, found 5 in a"]);
    reject(it.save("x", &tokens[..5], 5, Some(a)), &["session x", "position", "less than 5", "found 5"]);
    reject(it.save("x", &other, 5, Some(a)), &["session x", "ids", "the first 5"]);
    let unknown = SnapshotId([7; 32]);
    reject(it.save("x", &tokens, 5, Some(unknown)), &["session x", &unknown.to_string(), "found none"]);
    let stranger = Sessions { identity: identity(4), ..Sessions::open(dir.path()) };
    reject(stranger.save("x", &tokens, 5, Some(a)), &["session a", "cache", "expected f32, found f16"]);
    reject(it.save("a", &tokens, 5, Some(a)), &["session a", "expected no session", "found a"]);

    let mut parent = a;
    for length in 6..=68 {
        parent = it.save(&format!("{length}"), &tokens[..length], length - 1, Some(parent)).unwrap();
    }
    assert_eq!(it.store.inspect("68", false).unwrap().chain.len(), CHAIN_MAX - 1);
    it.assert_holds("68", &tokens[..68]);
    let error = it.save("x", &tokens[..69], 68, Some(parent)).unwrap_err().to_string();
    assert!(error.contains("chain: expected at most 64 files, found 65"), "{error}");
}

#[test]
fn what_is_no_state_is_refused() {
    let dir = tempdir().unwrap();
    let it = Sessions::open(dir.path());
    let good = image(&it.layout, &ids(1, 9), 0, false);
    let reject = |image: &Image, extras: Extras<'_>, parts: &[&str]| {
        let error = it.store.save("x", &it.identity, &it.layout, image, extras, None).unwrap_err().to_string();
        assert!(parts.iter().all(|part| error.contains(part)), "{error}");
        assert!(contents(dir.path()).is_empty());
    };
    let mut short = good.clone();
    short.pieces[4].pop();
    reject(&short, Extras::default(), &["bytes of keys of layer 2", "expected 54, got 53"]);
    let mut few = good.clone();
    few.pieces.pop();
    reject(&few, Extras::default(), &["pieces of state: expected 8, got 7"]);
    reject(&Image { from: 10, ..good.clone() }, Extras::default(), &["from: expected at most 9, got 10"]);
    let notes = vec![0; NOTES_BYTES_MAX + 1];
    reject(&good, Extras { notes: Some(&notes), ..Extras::default() }, &["notes: expected at most 16777216"]);
    let limits = Limits { file_bytes: Some(100), folder_bytes: None };
    reject(&good, Extras { limits, ..Extras::default() }, &["bytes of the file", "expected at most 100"]);
    let mut most = Extras { notes: Some(&notes[1..]), ..Extras::default() };
    let bytes = it.store.save("big", &it.identity, &it.layout, &good, most, None).unwrap().bytes;
    most.limits = Limits { file_bytes: Some(bytes), folder_bytes: Some(2 * bytes - 1) };
    let save = |name| it.store.save(name, &it.identity, &it.layout, &good, most, None).map(|_| ());
    let error = save("more").unwrap_err().to_string();
    assert!(error.contains("bytes of all sessions: expected at most"), "{error}");
    assert_eq!(contents(dir.path()).len(), 1);
    save("big").unwrap();
}

#[test]
fn a_state_needs_room() {
    let dir = tempdir().unwrap();
    let it = Sessions::open(dir.path());
    it.save("a", &ids(1, 9), 0, None).unwrap();
    let error = it.store.load("a", &it.identity, &it.layout, 8).unwrap_err().to_string();
    assert!(error.contains("session a: position: expected at most 8") && error.contains("found 9"), "{error}");
}

#[test]
fn names_are_checked() {
    let dir = tempdir().unwrap();
    let it = Sessions::open(dir.path());
    let longest = "n".repeat(128);
    for name in ["a", "A-z_0.9", "x.bks", &longest] {
        it.save(name, &ids(1, 2), 0, None).unwrap();
        it.assert_holds(name, &ids(1, 2));
    }
    assert_eq!(it.store.list().unwrap().len(), 4);
    let too_long = "n".repeat(129);
    for (name, says) in [
        ("", "expected 1 to 128 characters, found 0"),
        (&too_long, "expected 1 to 128 characters, found 129"),
        (".", "dot at the start"),
        (".hidden", "dot at the start"),
        ("a/b", "found '/'"),
        ("../a", "dot at the start"),
        ("a b", "found ' '"),
        ("ä", "found 'ä'"),
        ("a\0", "found '\\0'"),
        ("a\n", "found '\\n'"),
    ] {
        let errors = [
            it.save(name, &ids(1, 2), 0, None).map(|_| ()),
            it.load(name).map(|_| ()),
            it.store.inspect(name, false).map(|_| ()),
            it.store.delete(name, false),
        ];
        for error in errors {
            let error = error.unwrap_err().to_string();
            assert!(error.starts_with("session name ") && error.contains(says), "{name:?}: {error}");
        }
    }
    for error in [it.load("no").map(|_| ()), it.store.inspect("no", true).map(|_| ()), it.store.delete("no", true)] {
        assert!(matches!(error, Err(SessionError::NotFound { .. })));
    }
}

#[test]
fn one_writer_at_a_time() {
    let dir = tempdir().unwrap();
    let it = Sessions::open(dir.path());
    it.save("a", &ids(1, 5), 0, None).unwrap();
    let lock = File::options().write(true).open(dir.path().join(".lock")).unwrap();
    lock.lock().unwrap();
    let other = Sessions::with(it.store.clone().lock_wait(Duration::from_millis(30)));
    let results = [
        other.save("b", &ids(1, 5), 0, None).map(|_| ()),
        other.store.delete("a", false),
        other.store.prune(Some(0), None).map(|_| ()),
    ];
    for result in results {
        assert!(matches!(result, Err(SessionError::Locked { .. })), "{result:?}");
    }
    other.assert_holds("a", &ids(1, 5));
    assert_eq!(other.store.list().unwrap().len(), 1);
    // A writer that waits goes on when the other is done.
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| it.save("b", &ids(1, 6), 0, None));
        lock.unlock().unwrap();
        waiting.join().unwrap().unwrap();
    });
    other.assert_holds("b", &ids(1, 6));
    // Many at once: each finds the others' work whole.
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let dir = dir.path();
            scope.spawn(move || {
                let it = Sessions::open(dir);
                for turn in 0..8 {
                    let name = format!("{}", (writer + turn) % 4);
                    it.save(&name, &ids(writer, 20 + turn as usize), 0, None).unwrap();
                    it.load(&name).unwrap();
                    it.store.list().unwrap().iter().for_each(|entry| assert!(entry.info.is_ok(), "{entry:?}"));
                }
            });
        }
    });
    assert_eq!(it.store.list().unwrap().len(), 6);
}

#[test]
fn needed_sessions_are_not_deleted() {
    let dir = tempdir().unwrap();
    let it = Sessions::open(dir.path());
    let tokens = ids(2, 30);
    let a = it.save("a", &tokens[..5], 0, None).unwrap();
    let b = it.save("b", &tokens[..10], 5, Some(a)).unwrap();
    it.save("c", &tokens, 10, Some(b)).unwrap();
    it.save("d", &tokens[..7], 5, Some(a)).unwrap();
    let needed = |result: Result<(), SessionError>| match result {
        Err(SessionError::Needed { by, .. }) => by,
        other => panic!("{other:?}"),
    };
    assert_eq!(needed(it.store.delete("a", false)), ["b", "c", "d"]);
    assert_eq!(needed(it.store.delete("b", false)), ["c"]);
    assert_eq!(needed(it.save("b", &tokens[..9], 0, None).map(|_| ())), ["c"]);
    // The same snapshot may take the place, in this file or in another one.
    it.save("b", &tokens[..10], 0, None).unwrap();
    it.save("b", &tokens[..10], 5, Some(a)).unwrap();
    it.save("a2", &tokens[..5], 0, None).unwrap();
    it.store.delete("a", false).unwrap();
    for (name, length) in [("b", 10), ("c", 30), ("d", 7)] {
        it.assert_holds(name, &tokens[..length]);
    }
    assert_eq!(needed(it.store.delete("a2", false)), ["b", "c", "d"]);
    // But not if it is damaged where no header tells.
    it.save("a", &tokens[..5], 0, None).unwrap();
    let mut bytes = fs::read(path(&it.store, "a")).unwrap();
    let at = bytes.len() - 60;
    bytes[at] ^= 1;
    fs::write(path(&it.store, "a"), bytes).unwrap();
    assert_eq!(needed(it.store.delete("a2", false)), ["b", "d"]);
    it.assert_holds("c", &tokens);

    let used = fs::metadata(path(&it.store, "b")).unwrap().modified().unwrap();
    it.store.delete("a2", true).unwrap();
    assert_eq!(fs::metadata(path(&it.store, "b")).unwrap().modified().unwrap(), used);
    it.store.delete("a", false).unwrap();
    for (name, length, links) in [("b", 10, 0), ("c", 30, 1), ("d", 7, 0)] {
        it.assert_holds(name, &tokens[..length]);
        assert_eq!(it.store.inspect(name, true).unwrap().chain.len(), links);
    }
    it.store.delete("b", true).unwrap();
    it.assert_holds("c", &tokens);
    assert_eq!(it.store.inspect("c", true).unwrap().id, it.save("whole", &tokens, 0, None).unwrap());
}

#[test]
fn another_file_with_the_snapshot_helps() {
    let dir = tempdir().unwrap();
    let it = Sessions::open(dir.path());
    let tokens = ids(2, 30);
    let a = it.save("a", &tokens[..5], 0, None).unwrap();
    it.save("z", &tokens[..5], 0, None).unwrap();
    it.save("c", &tokens, 5, Some(a)).unwrap();
    for damaged in ["a", "z"] {
        let good = fs::read(path(&it.store, damaged)).unwrap();
        let mut bytes = good.clone();
        let at = bytes.len() - 60;
        bytes[at] ^= 1;
        fs::write(path(&it.store, damaged), &bytes).unwrap();
        assert!(it.load(damaged).is_err());
        it.assert_holds("c", &tokens);
        fs::write(path(&it.store, damaged), good).unwrap();
    }
}

#[test]
fn the_least_recently_used_goes_first() {
    let dir = tempdir().unwrap();
    let it = Sessions::open(dir.path());
    let tokens = ids(2, 30);
    let now = SystemTime::now();
    let a = it.save("a", &tokens[..5], 0, None).unwrap();
    it.save("b", &tokens, 5, Some(a)).unwrap();
    it.save("c", &tokens[..9], 0, None).unwrap();
    it.save("d", &tokens[..8], 0, None).unwrap();
    let age = |name: &str, seconds| {
        let file = File::open(path(&it.store, name)).unwrap();
        file.set_modified(now - Duration::from_secs(seconds)).unwrap();
    };
    let ages = || [("a", 4000), ("b", 1000), ("c", 3000), ("d", 2000)].iter().for_each(|(name, s)| age(name, *s));
    ages();
    assert!(it.store.prune(None, None).unwrap().is_empty());
    assert!(it.store.prune(Some(u64::MAX), Some(Duration::from_secs(5000))).unwrap().is_empty());
    let total: u64 = it.store.list().unwrap().iter().map(|entry| entry.bytes).sum();
    // The oldest is needed by the newest.
    assert_eq!(it.store.prune(Some(total - 1), None).unwrap(), ["c"]);
    assert_eq!(it.store.prune(None, Some(Duration::from_secs(1500))).unwrap(), ["d"]);
    it.assert_holds("b", &tokens);
    ages_of(&it.store, "b", now);
    assert_eq!(it.store.prune(Some(0), None).unwrap(), ["b", "a"]);
    assert!(it.store.list().unwrap().is_empty());

    // To load is to use.
    it.save("x", &tokens, 0, None).unwrap();
    it.save("y", &tokens, 0, None).unwrap();
    age("x", 500);
    age("y", 400);
    it.load("x").unwrap();
    let bytes = fs::metadata(path(&it.store, "x")).unwrap().len();
    assert_eq!(it.store.prune(Some(bytes), None).unwrap(), ["y"]);

    fn ages_of(store: &Store, name: &str, now: SystemTime) {
        let used = store.inspect(name, false).unwrap().last_used;
        assert!(used + Duration::from_secs(5) > now, "{used:?}");
    }
}

#[test]
fn the_list_names_what_is_damaged() {
    let dir = tempdir().unwrap();
    let it = Sessions::open(dir.path());
    it.save("b", &ids(1, 5), 0, None).unwrap();
    it.save("a", &ids(1, 6), 0, None).unwrap();
    fs::write(path(&it.store, "empty"), "").unwrap();
    fs::create_dir(path(&it.store, "folder")).unwrap();
    fs::write(path(&it.store, "not ours"), "").unwrap();
    fs::write(dir.path().join("readme.txt"), "").unwrap();
    symlink("/nowhere", path(&it.store, "link")).unwrap();
    nix::unistd::mkfifo(&path(&it.store, "pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let mut bytes = fs::read(path(&it.store, "a")).unwrap();
    bytes[8] = 9;
    fs::write(path(&it.store, "later"), &bytes).unwrap();
    bytes[8] = 1;
    bytes.pop();
    fs::write(path(&it.store, "cut"), &bytes).unwrap();
    let list = it.store.list().unwrap();
    let shown: Vec<(&str, String)> = list
        .iter()
        .map(|entry| {
            (
                entry.name.as_str(),
                entry.info.as_ref().map_or_else(ToString::to_string, |info| info.position.to_string()),
            )
        })
        .collect();
    let expected = [
        ("a", "6"),
        ("b", "5"),
        ("cut", "end mark: expected 56 bytes, found 55 bytes"),
        ("empty", "header: expected a whole one, found 0 bytes of file"),
        ("folder", "expected a regular file"),
        ("later", "version: expected 1, found 9"),
        ("link", "expected a file"),
        ("pipe", "expected a regular file"),
    ];
    assert_eq!(shown.len(), expected.len(), "{shown:?}");
    for ((name, shown), (expected_name, part)) in shown.iter().zip(expected) {
        assert!(*name == expected_name && shown.contains(part), "{name}: {shown}");
        assert_eq!(it.load(name).is_ok(), name.len() == 1);
    }
    for name in ["cut", "empty", "later", "link"] {
        it.store.delete(name, false).unwrap();
    }
    it.assert_holds("a", &ids(1, 6));
}

#[test]
fn left_over_files_are_removed_when_their_process_is_gone() {
    let dir = tempdir().unwrap();
    let it = Sessions::open(dir.path());
    let mut child = std::process::Command::new("true").spawn().unwrap();
    child.wait().unwrap();
    let alive = std::os::unix::process::parent_id();
    let names = [
        format!(".gone.{}.partial", child.id()),
        format!(".own.with.dots.{}.partial", std::process::id()),
        format!(".alive.{alive}.partial"),
        format!(".old.{alive}.partial"),
        ".other.partial".to_owned(),
    ];
    names.iter().for_each(|name| fs::write(dir.path().join(name), "x").unwrap());
    let old = SystemTime::now() - Duration::from_secs(25 * 3600);
    File::options().write(true).open(dir.path().join(&names[3])).unwrap().set_modified(old).unwrap();
    assert!(it.store.list().unwrap().is_empty());
    assert_eq!(contents(dir.path()).len(), 5);
    it.save("a", &ids(1, 5), 0, None).unwrap();
    let left = contents(dir.path());
    let left: Vec<&str> = left.keys().map(String::as_str).collect();
    assert_eq!(left, [&names[2], ".other.partial", "a.bks"]);
}

#[test]
fn sessions_of_another_identity_are_refused_by_name() {
    let dir = tempdir().unwrap();
    let it = Sessions::open(dir.path());
    let a = it.save("a", &ids(1, 5), 0, None).unwrap();
    it.save("b", &ids(1, 8), 5, Some(a)).unwrap();
    let fields = it.identity.fields().to_vec();
    for (at, (name, value)) in fields.iter().enumerate() {
        let mut others = fields.clone();
        // What comes behind is less telling, and is not named.
        others[at..].iter_mut().for_each(|(_, value)| value.push('!'));
        let other = Identity::new(others);
        let error = it.store.load("b", &other, &it.layout, CONTEXT).unwrap_err().to_string();
        assert_eq!(error, format!("session b: {name}: expected {value}!, found {value}"));
        let info = it.store.inspect("b", false).unwrap();
        assert_eq!(would_take(&info, &other).unwrap_err().field, *name);
        assert_eq!(would_take(&info, &it.identity), Ok(()));
    }
    let mut fewer = fields.clone();
    let (name, _) = fewer.remove(3);
    let mismatch = Identity::new(fewer.clone()).difference(&it.identity).unwrap();
    assert_eq!((mismatch.field, mismatch.expected.as_str()), (name.clone(), "no such field"));
    assert_eq!(it.identity.difference(&Identity::new(fewer)).unwrap().field, name);
    let mut turned = fields;
    turned.swap(0, 1);
    assert_eq!(it.identity.difference(&Identity::new(turned)).unwrap().field, "order of fields");
}

#[test]
fn layouts_that_do_not_fit_are_refused_by_name() {
    let dir = tempdir().unwrap();
    let it = Sessions::open(dir.path());
    it.save("a", &ids(1, 5), 0, None).unwrap();
    for piece in 0..it.layout.pieces().len() {
        let mut pieces: Vec<Piece> = it.layout.pieces().to_vec();
        let title = format!("{} of layer {}", pieces[piece].kind.name(), pieces[piece].layer);
        let load = |pieces: &[Piece]| {
            it.store.load("a", &it.identity, &Layout::new(pieces.to_vec()), CONTEXT).unwrap_err().to_string()
        };
        let more = match pieces[piece].extent {
            Extent::Fixed { bytes } => Extent::Fixed { bytes: bytes + 1 },
            Extent::Rows { row_bytes, tokens_per_row } => Extent::Rows { row_bytes: row_bytes * 2, tokens_per_row },
        };
        pieces[piece].extent = more;
        let error = load(&pieces);
        assert!(error.contains(&format!("{title}: raw bytes: expected")), "{error}");
        pieces[piece].extent = match more {
            Extent::Fixed { bytes } => Extent::Rows { row_bytes: bytes, tokens_per_row: 5 },
            Extent::Rows { row_bytes, .. } => Extent::Fixed { bytes: row_bytes },
        };
        let error = load(&pieces);
        assert!(error.contains(&format!("{title}: extent: expected")), "{error}");
        pieces.remove(piece);
        let error = load(&pieces);
        assert!(error.contains(&format!("section {title}: expected none, found one")), "{error}");
    }
    assert_eq!(SectionKind::ALL.len(), 11);
}
