//! Every status is produced once, by what a caller can do or by a fault of the device.

use std::collections::BTreeMap;
use std::ptr::null_mut;

use bankshot::capi::*;
use bankshot::demo::MODEL;
use bankshot::device::fault::Fault;
use regex::Regex;

use super::faults::Turn;
use super::header::root;
use super::support::*;

const STORY: &str = "Once upon a time";

/// Numbers and names of all errors that the header has.
fn errors() -> BTreeMap<bankshot_status, String> {
    let text = std::fs::read_to_string(root().join("include/bankshot.h")).unwrap();
    let pattern = Regex::new(r"(?m)^#define (BANKSHOT_ERR_\w+) (\d+)$").unwrap();
    pattern.captures_iter(&text).map(|found| (found[2].parse().unwrap(), found[1].to_owned())).collect()
}

/// Opens a file, and says how that ended.
fn opened(path: &str) -> bankshot_status {
    let mut options = options();
    options.flags = 0;
    options.model_path = path.as_ptr().cast();
    options.model_path_bytes = path.len() as u64;
    begin(&options).map_or_else(|status| status, |engine| wait(&engine))
}

/// What feeding ends with when a fault is set, and what two sessions say after that.
fn faulty(turn: &Turn, fault: Fault) -> bankshot_status {
    let engine = open(&options());
    let (first, second) = (session(&engine, 0, 0), session(&engine, 0, 0));
    ok(feed_text(&second, STORY));
    turn.set(fault, 0);
    // Another text: of the same one all is known, and nothing would be launched.
    let status = feed_text(&first, "The old man");
    turn.clear();
    let said = last_error();
    for session in [&first, &second] {
        fails(next(session).unwrap_err(), BANKSHOT_ERR_POISONED, "stopped working after an earlier error");
    }
    assert!(said.starts_with("bankshot_session_feed_text: "), "{said}");
    assert!(!ids(&first).is_empty() && !ids(&second).is_empty(), "they stay readable");
    status
}

/// The statuses that opening ends with when one allocation after another fails.
fn allocations(turn: &Turn) -> Vec<bankshot_status> {
    let count = turn.count(Fault::Allocation, || drop(open(&options())));
    assert!(count > 3, "{count}");
    let fail = |n| {
        turn.set(Fault::Allocation, n);
        let status = begin(&options()).map_or_else(|status| status, |engine| wait(&engine));
        turn.clear();
        status
    };
    (0..count).map(fail).collect()
}

#[test]
fn every_status_is_produced() {
    let turn = Turn::take();
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().to_str().unwrap();
    let engine = open(&options());
    let mut found: BTreeMap<bankshot_status, String> = BTreeMap::new();
    let mut note = |status: bankshot_status| {
        let text = if status == BANKSHOT_OK { "fine".to_owned() } else { last_error() };
        found.insert(status, text);
    };
    // The caller's mistakes.
    note(feed(&Session(null_mut()), &[1]));
    let one = session(&engine, 0, 0);
    note(feed(&one, &[u32::MAX]));
    let mut small = options();
    small.struct_size -= 1;
    note(begin(&small).err().unwrap());
    let mut flagged = options();
    flagged.flags |= 1 << 31;
    note(begin(&flagged).err().unwrap());
    note(opened("/nowhere/model.gguf"));
    note(next(&one).unwrap_err());
    // Resources.
    note(feed(&one, &[1; 200]));
    ok(feed_text(&one, STORY));
    let (mut buffer, mut needed) = ([0u32; 2], 7);
    // SAFETY: the handle is live, and the buffer has as many places.
    note(unsafe { bankshot_session_ids(one.0, 0, buffer.as_mut_ptr(), buffer.len(), &mut needed) });
    assert_eq!((buffer, needed), ([0; 2], 7), "out-parameters are written only on success");
    note(save(&one, "/dev/null/folder", "name", 0));
    for status in allocations(&turn) {
        note(status);
    }
    // Files.
    note(opened(root().join("Cargo.toml").to_str().unwrap()));
    ok(save(&one, place, "saved", 0));
    let file = folder.path().join("saved.bks");
    let mut bytes = std::fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    note(restore(&one, place, "saved"));
    let mut bytes = MODEL.to_vec();
    let template = bytes.windows(4).position(|window| window == b"{%- ").expect("the template begins a block");
    bytes[template..template + 4].copy_from_slice(b"{%%%");
    let broken = folder.path().join("broken.gguf");
    std::fs::write(&broken, bytes).unwrap();
    note(rendered(broken.to_str().unwrap()));
    // Another thread's wish, and time.
    // SAFETY: the handle is live.
    ok(unsafe { bankshot_session_cancel(one.0) });
    note(next(&one).unwrap_err());
    let loading = begin(&options()).unwrap();
    // SAFETY: the handle is live.
    note(unsafe { bankshot_engine_wait(loading.0, 0) });
    // Faults of the device.
    note(faulty(&turn, Fault::Launch));
    note(faulty(&turn, Fault::Lost));
    note(BANKSHOT_ERR_POISONED);
    // A mistake of the library.
    panic_next();
    note(next(&one).unwrap_err());

    let mut missing = errors();
    missing.retain(|status, _| !found.contains_key(status));
    // `a_full_disk_has_its_status_and_the_session_goes_on` produces this one.
    assert_eq!(missing.remove(&BANKSHOT_ERR_DISK).as_deref(), Some("BANKSHOT_ERR_DISK"));
    assert_eq!(missing, BTreeMap::new(), "found {found:?}");
    found.retain(|status, _| !errors().contains_key(status));
    assert_eq!(found, BTreeMap::new(), "all are in the header");
}

/// How a render of a model with a broken template ends.
fn rendered(path: &str) -> bankshot_status {
    let mut options = options();
    options.flags = 0;
    options.model_path = path.as_ptr().cast();
    options.model_path_bytes = path.len() as u64;
    let engine = open(&options);
    let mut needed = 0;
    // SAFETY: the handle is live, there are no messages, and the count has a place.
    unsafe { bankshot_engine_render(engine.0, nothing(), 0, 0, null_mut(), 0, &mut needed) }
}

/// The ranges of docs/capi.md, and that no number has two names.
#[test]
fn statuses_are_in_their_ranges() {
    let text = std::fs::read_to_string(root().join("include/bankshot.h")).unwrap();
    let errors = errors();
    assert_eq!(errors.len(), text.matches("#define BANKSHOT_ERR_").count(), "a number is there twice");
    for (number, name) in errors {
        let fits = match name.trim_start_matches("BANKSHOT_ERR_") {
            "NULL" | "VALUE" | "STRUCT" | "UNSUPPORTED" | "NOT_FOUND" | "STATE" => 1..10,
            "MEMORY" | "DEVICE_MEMORY" | "CONTEXT" | "BUFFER" | "IO" | "DISK" => 10..20,
            "DEVICE" | "DEVICE_LOST" | "POISONED" => 20..30,
            "MODEL" | "SESSION" | "TEMPLATE" => 30..40,
            "CANCELLED" | "TIMEOUT" => 40..50,
            "INTERNAL" => 90..100,
            _ => panic!("{name} is new: say here where it belongs"),
        };
        assert!(fits.contains(&number), "{name} is {number}");
    }
}
