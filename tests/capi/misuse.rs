//! What a caller can do wrong, and what has to happen then.

use std::ffi::c_char;
use std::ptr::{null, null_mut};

use bankshot::capi::*;
use bankshot::exec::argmax;
use bankshot::session::{OpenOptions, SessionOptions, SharedEngine};
use serde_json::Value;

use super::faults::Turn;
use super::support::*;

const STORY: &str = "Once upon a time";

/// Calls of every function with null wherever a pointer is asked for.
#[test]
fn null_pointers_are_refused() {
    let (engine, session) = (null_mut(), null_mut());
    let mut needed = 5usize;
    let count = &raw mut needed;
    let text: *mut c_char = null_mut();
    // SAFETY: null is what the functions have to bear; all else is live.
    let statuses = unsafe {
        [
            bankshot_abi_version(null_mut(), null_mut()),
            bankshot_features(text, 4, count),
            bankshot_features(text, 0, null_mut()),
            bankshot_engine_open(null(), null_mut()),
            bankshot_engine_open(null(), &mut null_mut()),
            bankshot_engine_progress(engine, null_mut()),
            bankshot_engine_wait(engine, 0),
            bankshot_engine_info(engine, null_mut()),
            bankshot_engine_plan(engine, text, 0, count),
            bankshot_engine_counters(engine, text, 0, count),
            bankshot_engine_tokenize(engine, text, 0, 0, null_mut(), 0, count),
            bankshot_engine_detokenize(engine, null(), 0, 0, text, 0, count),
            bankshot_engine_render(engine, null(), 0, 0, text, 0, count),
            bankshot_engine_close(engine, 0),
            bankshot_session_create(engine, null(), &mut null_mut()),
            bankshot_session_set_options(session, null()),
            bankshot_session_feed(session, null(), 0),
            bankshot_session_feed_text(session, text, 0),
            bankshot_session_prompt(session, null(), 0),
            bankshot_session_truncate(session, 0),
            bankshot_session_next(session, null_mut()),
            bankshot_session_text(session, text, 0, count),
            bankshot_session_logits(session, null_mut(), 0, count),
            bankshot_session_ids(session, 0, null_mut(), 0, count),
            bankshot_session_cancel(session),
            bankshot_session_stats(session, null_mut()),
            bankshot_session_save(session, text, 0, text, 0, 0),
            bankshot_session_restore(session, text, 0, text, 0),
            bankshot_saved_inspect(text, 0, text, 0, 0, text, 0, count),
            bankshot_saved_delete(text, 0, text, 0, 0),
        ]
    };
    assert_eq!(statuses, [BANKSHOT_ERR_NULL; 30]);
    assert_eq!(needed, 5, "out-parameters are written only on success");
    fails(BANKSHOT_ERR_NULL, BANKSHOT_ERR_NULL, "expected a pointer, got null");
    // SAFETY: null is no handle, and is to be ignored.
    unsafe {
        bankshot_engine_destroy(engine);
        bankshot_session_destroy(session);
    }
    // With live handles, other pointers are looked at.
    let _turn = Turn::take();
    let engine = open(&options());
    let one = self::session(&engine, 0, 0);
    // SAFETY: the handles are live; null is what the functions have to bear.
    let statuses = unsafe {
        [
            bankshot_engine_progress(engine.0, null_mut()),
            bankshot_engine_info(engine.0, null_mut()),
            bankshot_engine_plan(engine.0, text, 1, count),
            bankshot_engine_tokenize(engine.0, text, 3, 0, null_mut(), 0, count),
            bankshot_engine_detokenize(engine.0, null(), 3, 0, text, 0, count),
            bankshot_engine_render(engine.0, null(), 3, 0, text, 0, count),
            bankshot_session_create(engine.0, null(), null_mut()),
            bankshot_session_feed(one.0, null(), 3),
            bankshot_session_feed_text(one.0, text, 3),
            bankshot_session_next(one.0, null_mut()),
            bankshot_session_text(one.0, text, 0, null_mut()),
            bankshot_session_save(one.0, text, 0, text, 0, 0),
        ]
    };
    assert_eq!(statuses, [BANKSHOT_ERR_NULL; 12]);
    assert_eq!(needed, 5);
}

#[test]
fn sized_structs_are_taken_and_filled_by_their_size() {
    let _turn = Turn::take();
    for (size, status, text) in [
        (0, BANKSHOT_ERR_STRUCT, "struct_size: expected at least 144, got 0"),
        (143, BANKSHOT_ERR_STRUCT, "got 143"),
        (1 << 20, BANKSHOT_ERR_STRUCT, "got 1048576"),
    ] {
        let mut options = options();
        options.struct_size = size;
        fails(begin(&options).err().unwrap(), status, text);
    }
    /// As a later header could have it.
    #[repr(C)]
    struct Later<T> {
        known: T,
        more: [u64; 2],
    }
    let mut later = Later { known: options(), more: [0, 0] };
    later.known.struct_size = size_of_val(&later) as u32;
    let mut engine = null_mut();
    // SAFETY: the struct has as many bytes as it says.
    ok(unsafe { bankshot_engine_open((&raw const later).cast(), &mut engine) });
    let engine = Engine(engine);
    later.more[1] = 1;
    let mut other = null_mut();
    // SAFETY: as above.
    let status = unsafe { bankshot_engine_open((&raw const later).cast(), &mut other) };
    fails(status, BANKSHOT_ERR_UNSUPPORTED, "expected zeros behind the 144 bytes that this version knows");
    assert!(other.is_null());
    ok(wait(&engine));

    let mut later = Later { known: sized!(bankshot_info), more: [9, 9] };
    later.known.struct_size = size_of_val(&later) as u32;
    // SAFETY: as above.
    ok(unsafe { bankshot_engine_info(engine.0, (&raw mut later).cast()) });
    assert_eq!((later.known.context, later.known.cards, later.more), (128, 1, [0, 0]));
    assert_eq!(later.known.struct_size as usize, size_of_val(&later));
    let mut small = sized!(bankshot_event);
    small.struct_size = 16;
    let one = session(&engine, 0, 0);
    ok(feed_text(&one, STORY));
    // SAFETY: the handle and the event are live.
    let status = unsafe { bankshot_session_next(one.0, &mut small) };
    fails(status, BANKSHOT_ERR_STRUCT, "event: struct_size: expected at least 32, got 16");
    assert_eq!(next(&one).unwrap().id, 495, "nothing was chosen by the call that was refused");
}

#[test]
fn wrong_values_are_refused_by_name() {
    let _turn = Turn::take();
    let with = |change: &dyn Fn(&mut bankshot_engine_options), status, text| {
        let mut options = options();
        change(&mut options);
        let got = begin(&options).map_or_else(|status| status, |engine| wait(&engine));
        fails(got, status, text);
    };
    with(&|options| options.kv = 3, BANKSHOT_ERR_UNSUPPORTED, "kv: expected 0 to 2, got 3");
    with(&|options| options.split = 9, BANKSHOT_ERR_UNSUPPORTED, "split: expected 0 to 2, got 9");
    with(&|options| options.flags = 0, BANKSHOT_ERR_NULL, "model_path");
    with(&|options| options.device = c"\xff\xfe\xfd".as_ptr(), BANKSHOT_ERR_VALUE, "device: expected UTF-8");
    with(&|options| options.device = c"tpu".as_ptr(), BANKSHOT_ERR_NOT_FOUND, "got `tpu`");
    with(&|options| options.context = 1 << 40, BANKSHOT_ERR_VALUE, "context: expected 1 to");
    let engine = open(&options());
    let one = session(&engine, 0, 0);
    fails(feed_text(&one, ""), BANKSHOT_ERR_VALUE, "expected at least one");
    ok(feed_text(&one, STORY));
    let before = ids(&one);
    // SAFETY: the handle is live, and the texts have as many bytes.
    let status = unsafe { bankshot_session_feed_text(one.0, c"caf\xe9".as_ptr(), 4) };
    fails(status, BANKSHOT_ERR_VALUE, "text: expected UTF-8, got another byte at 3");
    fails(feed(&one, &[]), BANKSHOT_ERR_VALUE, "expected at least one");
    fails(feed(&one, &[1, 1 << 30]), BANKSHOT_ERR_VALUE, "expected less than");
    fails(feed(&one, &[1; 125]), BANKSHOT_ERR_CONTEXT, "it holds 128");
    // SAFETY: the handle is live; the address is not a multiple of 4, and is not used.
    let status = unsafe { bankshot_session_feed(one.0, before.as_ptr().byte_add(1), 1) };
    fails(status, BANKSHOT_ERR_VALUE, "ids: expected an address that is a multiple of 4");
    // SAFETY: the handle is live; no such list is possible, so that it is not read.
    let status = unsafe { bankshot_session_feed(one.0, before.as_ptr(), u64::MAX) };
    fails(status, BANKSHOT_ERR_VALUE, "ids: expected at most");
    fails(save(&one, "/tmp", "../x", 0), BANKSHOT_ERR_VALUE, "session name");
    fails(save(&one, "/tmp", "x", 8), BANKSHOT_ERR_UNSUPPORTED, "flags");
    fails(restore(&one, "/nowhere", "x"), BANKSHOT_ERR_NOT_FOUND, "expected a folder, found none at /nowhere");
    // SAFETY: the handle is live.
    fails(unsafe { bankshot_session_truncate(one.0, 100) }, BANKSHOT_ERR_VALUE, "expected at most");
    let mut needed = 0;
    // SAFETY: the handle is live, and the count has a place.
    let status = unsafe { bankshot_session_ids(one.0, 50, null_mut(), 0, &mut needed) };
    fails(status, BANKSHOT_ERR_VALUE, "first: expected at most");
    // SAFETY: as above.
    let status = unsafe { bankshot_session_logits(one.0, null_mut(), 0, &mut needed) };
    fails(status, BANKSHOT_ERR_STATE, "BANKSHOT_SESSION_LOGITS");
    assert_eq!(tokenize(&engine, STORY, 4).unwrap_err(), BANKSHOT_ERR_UNSUPPORTED);
    let both = BANKSHOT_RENDER_THINK | BANKSHOT_RENDER_NO_THINK;
    // SAFETY: the handle is live, and the count has a place.
    let status = unsafe { bankshot_engine_render(engine.0, null(), 0, both, null_mut(), 0, &mut needed) };
    fails(status, BANKSHOT_ERR_VALUE, "flags: expected one of");
    assert_eq!(ids(&one), before, "refused calls change nothing");
    assert_eq!(next(&one).unwrap().id, 495);
}

/// What C gets is what Rust gets.
#[test]
fn events_are_those_of_the_rust_api() {
    let _turn = Turn::take();
    let mut open_options = OpenOptions::default();
    open_options.device = Some("cpu".to_owned());
    open_options.context = Some(128);
    let rust = SharedEngine::open_static(bankshot::demo::MODEL, open_options, &mut |_| {}).unwrap();
    let mut wanted = SessionOptions::default();
    wanted.logits = true;
    wanted.max_tokens = Some(9);
    let mut other = rust.session(wanted);
    other.feed_text(STORY).unwrap();

    let engine = open(&options());
    let one = session(&engine, BANKSHOT_SESSION_LOGITS, 9);
    let prompt = tokenize(&engine, STORY, BANKSHOT_TOKENIZE_BEGIN | BANKSHOT_TOKENIZE_SPECIAL).unwrap();
    ok(feed(&one, &prompt));
    for at in 1.. {
        let event = next(&one).unwrap();
        let same = other.next().unwrap().unwrap();
        // SAFETY: the handle is live, and buffers have as many places.
        let piece = text(|buffer, cap, needed| unsafe { bankshot_session_text(one.0, buffer, cap, needed) });
        // SAFETY: as above.
        let row = values(|buffer, cap, needed| unsafe { bankshot_session_logits(one.0, buffer, cap, needed) }).unwrap();
        assert_eq!((event.id, piece, Some(&row)), (same.id, same.text, same.logits.as_ref()));
        assert_eq!((event.id, event.tokens), (argmax(&row), (prompt.len() + at) as u64));
        if event.finish != BANKSHOT_FINISH_NONE {
            assert_eq!((event.finish, at), (BANKSHOT_FINISH_LENGTH, 9));
            break;
        }
    }
    fails(next(&one).unwrap_err(), BANKSHOT_ERR_STATE, "the answer has ended by length");
    assert_eq!(ids(&one), other.ids());
    let mut stats = sized!(bankshot_stats);
    // SAFETY: the handle and the struct are live.
    ok(unsafe { bankshot_session_stats(one.0, &mut stats) });
    assert_eq!(
        (stats.chosen_tokens, stats.finish, stats.tokens),
        (9, BANKSHOT_FINISH_LENGTH, other.ids().len() as u64)
    );
    assert_eq!(stats.computed_tokens, prompt.len() as u64 + 8);
    // SAFETY: the handle is live, and buffers have as many places.
    let plan = text(|buffer, cap, needed| unsafe { bankshot_engine_plan(engine.0, buffer, cap, needed) });
    let plan: Value = serde_json::from_str(&plan).unwrap();
    assert_eq!((&plan["model"]["architecture"], &plan["options"]["context"]), (&"qwen4exp".into(), &128.into()));
    // SAFETY: as above.
    let counters = text(|buffer, cap, needed| unsafe { bankshot_engine_counters(engine.0, buffer, cap, needed) });
    let counters: Value = serde_json::from_str(&counters).unwrap();
    assert!(counters["ngram_rows"]["rows"].as_u64() > Some(0) && counters["bank"]["snapshots"].is_u64(), "{counters}");
    // SAFETY: the buffers have as many places.
    let features = text(|buffer, cap, needed| unsafe { bankshot_features(buffer, cap, needed) });
    let features: Value = serde_json::from_str(&features).unwrap();
    assert_eq!((&features["version"], &features["abi"][0]), (&env!("CARGO_PKG_VERSION").into(), &1.into()));
    let all = ids(&one);
    // SAFETY: the handle is live, the ids are as many, and the buffer has as many places.
    let whole = text(|buffer, cap, needed| unsafe {
        bankshot_engine_detokenize(engine.0, all.as_ptr(), all.len() as u64, 0, buffer, cap, needed)
    });
    assert!(whole.starts_with("Once upon a time there was a"), "{whole}");
}

#[test]
fn a_closed_engine_is_noticed_and_sessions_outlive_handles() {
    let _turn = Turn::take();
    let mut options = options();
    let engine = open(&options);
    let one = session(&engine, 0, 0);
    ok(feed_text(&one, STORY));
    drop(engine);
    assert_eq!(next(&one).unwrap().id, 495, "the session keeps the engine");
    let engine = open(&options);
    let one = session(&engine, 0, 0);
    ok(feed_text(&one, STORY));
    // SAFETY: the handle is live.
    ok(unsafe { bankshot_engine_close(engine.0, 30_000) });
    // SAFETY: as above.
    ok(unsafe { bankshot_engine_close(engine.0, 30_000) });
    fails(next(&one).unwrap_err(), BANKSHOT_ERR_STATE, "the engine is closed");
    fails(feed(&one, &[1]), BANKSHOT_ERR_STATE, "the engine is closed");
    fails(wait(&engine), BANKSHOT_ERR_STATE, "the engine is closed");
    let mut other = null_mut();
    // SAFETY: the handle and the place are live.
    let status = unsafe { bankshot_session_create(engine.0, null(), &mut other) };
    fails(status, BANKSHOT_ERR_STATE, "the engine is closed");
    let mut progress = sized!(bankshot_progress);
    // SAFETY: the handle and the struct are live.
    ok(unsafe { bankshot_engine_progress(engine.0, &mut progress) });
    assert_eq!(progress.stage, BANKSHOT_STAGE_CLOSED);
    assert!(!ids(&one).is_empty(), "they stay readable");
    // While it loads: it is freed at the end of that, and destroying waits for it.
    let engine = begin(&options).unwrap();
    // SAFETY: the handle is live.
    let status = unsafe { bankshot_engine_close(engine.0, 0) };
    fails(status, BANKSHOT_ERR_TIMEOUT, "still loading");
    fails(wait(&engine), BANKSHOT_ERR_STATE, "closed");
    drop(engine);
    drop(begin(&options).unwrap());
    // One that could not be opened says so each time.
    options.expert_profile_path = c"/nowhere".as_ptr();
    options.expert_profile_path_bytes = 8;
    let engine = begin(&options).unwrap();
    for _ in 0..2 {
        fails(wait(&engine), BANKSHOT_ERR_NOT_FOUND, "/nowhere");
    }
    // SAFETY: the handle and the struct are live.
    ok(unsafe { bankshot_engine_progress(engine.0, &mut progress) });
    assert_eq!(progress.stage, BANKSHOT_STAGE_FAILED);
    // SAFETY: the handle is live.
    ok(unsafe { bankshot_engine_close(engine.0, 0) });
}

#[test]
fn progress_leads_to_ready() {
    let _turn = Turn::take();
    let engine = begin(&options()).unwrap();
    let mut progress = sized!(bankshot_progress);
    let mut last = progress;
    while progress.stage != BANKSHOT_STAGE_READY {
        // SAFETY: the handle and the struct are live.
        ok(unsafe { bankshot_engine_progress(engine.0, &mut progress) });
        assert!(progress.stage <= BANKSHOT_STAGE_READY && progress.stage >= last.stage);
        assert!(progress.weight_bytes_done >= last.weight_bytes_done && progress.kernels_done >= last.kernels_done);
        last = progress;
    }
    assert_eq!(progress.weight_bytes_done, progress.weight_bytes_total);
    assert!(progress.weight_bytes_total > 1 << 20 && progress.kernels_total > 3, "{progress:?}");
}

#[test]
fn a_panic_is_a_status_and_the_handle_stops() {
    let _turn = Turn::take();
    let engine = open(&options());
    let (one, two) = (session(&engine, 0, 0), session(&engine, 0, 0));
    ok(feed_text(&one, STORY));
    panic_next();
    fails(next(&one).unwrap_err(), BANKSHOT_ERR_INTERNAL, "a test asked for this panic");
    fails(next(&one).unwrap_err(), BANKSHOT_ERR_POISONED, "the handle stopped working");
    ok(feed_text(&two, STORY));
    assert_eq!(next(&two).unwrap().id, 495, "another session goes on");
    panic_next();
    fails(wait(&engine), BANKSHOT_ERR_INTERNAL, "a mistake of this library");
    fails(wait(&engine), BANKSHOT_ERR_POISONED, "the handle stopped working");
}

#[test]
fn each_thread_has_its_own_error_text() {
    fails(feed(&Session(null_mut()), &[1]), BANKSHOT_ERR_NULL, "bankshot_session_feed: session");
    std::thread::spawn(|| {
        assert_eq!(last_error(), "");
        // SAFETY: null is what the function has to bear.
        let status = unsafe { bankshot_engine_wait(null(), 0) };
        fails(status, BANKSHOT_ERR_NULL, "bankshot_engine_wait: engine");
    })
    .join()
    .unwrap();
    fails(BANKSHOT_ERR_NULL, BANKSHOT_ERR_NULL, "bankshot_session_feed: session");
    let mut small = [b'#' as c_char; 10];
    // SAFETY: the buffer has as many bytes.
    let whole = unsafe { bankshot_last_error(small.as_mut_ptr(), 9) };
    assert_eq!(whole, last_error().len());
    assert_eq!(small.map(|byte| byte as u8), *b"bankshot\0#", "cut, with a closing zero");
}

/// That is the caller's mistake; each call is whole all the same.
#[test]
fn two_threads_on_one_session_corrupt_nothing() {
    let _turn = Turn::take();
    let engine = open(&options());
    let one = session(&engine, BANKSHOT_SESSION_IGNORE_STOP, 0);
    ok(feed_text(&one, STORY));
    let prompt = ids(&one).len();
    let mut got: Vec<(u64, u32)> = std::thread::scope(|scope| {
        let steps = || (0..12).map(|_| next(&one).map(|event| (event.tokens, event.id)).unwrap()).collect::<Vec<_>>();
        let threads = [scope.spawn(steps), scope.spawn(steps)];
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    got.sort_unstable();
    let alone = session(&engine, BANKSHOT_SESSION_IGNORE_STOP, 24);
    ok(feed_text(&alone, STORY));
    let (expected, _, _) = answer(&alone);
    assert_eq!(got.iter().map(|(_, id)| *id).collect::<Vec<_>>(), expected);
    assert_eq!(ids(&one)[prompt..], expected);
}

#[test]
fn cancelling_from_another_thread_ends_a_call_and_loses_nothing() {
    let _turn = Turn::take();
    let mut options = options();
    options.context = 512;
    let engine = open(&options);
    let one = session(&engine, BANKSHOT_SESSION_IGNORE_STOP, 4);
    let long = [1, 2, 3].repeat(150);
    std::thread::scope(|scope| {
        // SAFETY: the handle is live.
        scope.spawn(|| ok(unsafe { bankshot_session_cancel({ &one }.0) }));
    });
    fails(feed(&one, &long), BANKSHOT_ERR_CANCELLED, "cancelled: 0 of 450 tokens are computed");
    assert_eq!(ids(&one), long);
    let got = answer(&one);
    let other = session(&engine, BANKSHOT_SESSION_IGNORE_STOP, 4);
    ok(feed(&other, &long));
    assert_eq!(got, answer(&other));
}

#[test]
fn saved_sessions_are_looked_at_and_deleted() {
    let _turn = Turn::take();
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().to_str().unwrap();
    let engine = open(&options());
    let one = session(&engine, 0, 0);
    ok(feed_text(&one, STORY));
    ok(save(&one, place, "a", BANKSHOT_SAVE_COMPRESS));
    next(&one).unwrap();
    ok(save(&one, place, "b", BANKSHOT_SAVE_DELTA));
    let inspect = |name: &str| -> Value {
        let (bytes, name_bytes) = (place.len() as u64, name.len() as u64);
        // SAFETY: the texts and the buffer have as many bytes.
        let json = text(|buffer, cap, needed| unsafe {
            let (place, name) = (place.as_ptr().cast(), name.as_ptr().cast());
            bankshot_saved_inspect(place, bytes, name, name_bytes, BANKSHOT_INSPECT_VERIFY, buffer, cap, needed)
        });
        serde_json::from_str(&json).unwrap()
    };
    let delete = |name: &str, flags| {
        let (bytes, name_bytes) = (place.len() as u64, name.len() as u64);
        // SAFETY: the texts have as many bytes.
        unsafe { bankshot_saved_delete(place.as_ptr().cast(), bytes, name.as_ptr().cast(), name_bytes, flags) }
    };
    let (a, b) = (inspect("a"), inspect("b"));
    assert_eq!((&a["tokens"], &a["text_start"], &a["verified"]), (&4.into(), &STORY.into(), &true.into()));
    assert_eq!((&b["tokens"], &b["chain"][0]["name"]), (&5.into(), &"a".into()));
    fails(delete("a", 0), BANKSHOT_ERR_STATE, "found b");
    ok(delete("a", BANKSHOT_DELETE_REPARENT));
    fails(delete("a", 0), BANKSHOT_ERR_NOT_FOUND, "a.bks");
    let two = session(&engine, 0, 3);
    ok(restore(&two, place, "b"));
    let one_more = session(&engine, 0, 3);
    ok(feed(&one_more, &ids(&two)));
    assert_eq!(answer(&two), answer(&one_more));
}

#[test]
fn the_log_goes_where_it_is_told() {
    use std::io::Read;
    use std::os::fd::AsRawFd;
    let _turn = Turn::take();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let read = || {
        let mut text = String::new();
        std::fs::File::open(&path).unwrap().read_to_string(&mut text).unwrap();
        text
    };
    let file = std::fs::File::create(&path).unwrap();
    // SAFETY: the descriptor is open; the others are none, and are refused.
    unsafe {
        fails(bankshot_log_to_fd(-1, BANKSHOT_LOG_INFO), BANKSHOT_ERR_VALUE, "fd: expected");
        fails(bankshot_log_to_fd(file.as_raw_fd(), 9), BANKSHOT_ERR_VALUE, "level: expected 0 to 4, got 9");
        fails(bankshot_log_to_fd(1_000_000, BANKSHOT_LOG_INFO), BANKSHOT_ERR_IO, "1000000");
        ok(bankshot_log_to_fd(file.as_raw_fd(), BANKSHOT_LOG_INFO));
    }
    drop(file);
    drop(open(&options()));
    let text = read();
    assert!(text.contains("INFO") && text.contains("the engine is open context=128 cards=1"), "{text}");
    assert!(!text.contains("DEBUG") && !text.contains('\x1b'), "{text}");
    // SAFETY: no descriptor is needed.
    ok(unsafe { bankshot_log_to_fd(-1, BANKSHOT_LOG_OFF) });
    drop(open(&options()));
    assert_eq!(read(), text);
}
