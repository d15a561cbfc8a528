//! The library's way to use a model: sessions that share an engine. The oracle is an engine that one sequence has for itself.

#[path = "support/device.rs"]
mod device_choice;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bankshot::demo::MODEL;
use bankshot::device::Card;
use bankshot::exec::{Engine, EngineError, argmax};
use bankshot::load::{Model, Progress, TableOptions, Tables};
use bankshot::model::KvType;
use bankshot::plan::Options;
use bankshot::session::{
    Canceller, Error, Event, Finish, OpenOptions, SaveOptions, Session, SessionOptions, SharedEngine,
};
use bankshot::state::SessionError;
use bankshot::text::{Message, RenderOptions};
use device_choice::test_device;

/// Handles can go to other threads; a shared engine and a canceller can be used by several at once.
const _: () = {
    const fn is_send<T: Send>() {}
    const fn is_sync<T: Sync>() {}
    is_send::<SharedEngine>();
    is_sync::<SharedEngine>();
    is_send::<Canceller>();
    is_sync::<Canceller>();
    is_send::<Session>();
    is_send::<Error>();
    is_sync::<Error>();
};

const STORY: &str = "Once upon a time";
const OTHER: &str = "The old man";

fn options(context: usize) -> OpenOptions {
    let mut options = OpenOptions::default();
    options.device = Some(test_device().index.to_string());
    options.context = Some(context);
    options.chunk = 16;
    options
}

fn open(options: OpenOptions) -> SharedEngine {
    SharedEngine::open_static(MODEL, options, &mut |_| {}).unwrap()
}

/// What an engine of its own chooses after a text, with the logits.
fn alone(ids: &[u32], n: usize) -> Vec<(u32, Vec<f32>)> {
    let model = Arc::new(Model::from_static(MODEL).unwrap());
    let cards = vec![Card::open(test_device().index).unwrap()];
    let plan = Engine::plan_for(&model, &cards, Options::new(512, 64, KvType::F16)).unwrap();
    let tables = Tables::open(model.file(), model.bound(), &TableOptions::default()).unwrap();
    let mut engine = Engine::open(model, tables, cards, plan, None, &mut |_| {}).unwrap();
    let mut row = engine.feed(ids).unwrap().to_vec();
    let mut chosen = Vec::new();
    for _ in 0..n {
        let id = argmax(&row);
        let next = engine.feed(&[id]).unwrap().to_vec();
        chosen.push((id, std::mem::replace(&mut row, next)));
    }
    chosen
}

fn ids_of(chosen: &[(u32, Vec<f32>)]) -> Vec<u32> {
    chosen.iter().map(|(id, _)| *id).collect()
}

fn with_logits() -> SessionOptions {
    let mut options = SessionOptions::default();
    options.logits = true;
    options.ignore_stop = true;
    options
}

/// The session's next tokens are these, with the same bits.
fn follows(session: &mut Session, expected: &[(u32, Vec<f32>)]) {
    for (at, (id, row)) in expected.iter().enumerate() {
        let event = session.next().unwrap().expect("an event");
        assert_eq!(event.id, *id, "token {at}");
        let logits = event.logits.expect("they are asked for");
        assert!(logits.iter().zip(row).all(|(a, b)| a.to_bits() == b.to_bits()), "logits of token {at}");
    }
}

#[test]
fn sessions_share_an_engine_without_a_change_of_bits() {
    for bank in [None, Some(0)] {
        let mut options = options(256);
        options.host_bank_bytes = bank;
        let engine = open(options);
        let mut first = engine.session(with_logits());
        let mut second = engine.session(with_logits());
        let tokenizer = engine.tokenizer();
        let long = STORY.repeat(16);
        let (a, b) = (tokenizer.encode_prompt(&long).unwrap(), tokenizer.encode_prompt(OTHER).unwrap());
        assert!(a.len() > 3 * 16, "several chunks");
        let (want_a, want_b) = (alone(&a, 8), alone(&b, 8));
        first.feed_text(&long).unwrap();
        second.feed(&b).unwrap();
        for at in (0..8).step_by(2) {
            follows(&mut first, &want_a[at..at + 2]);
            follows(&mut second, &want_b[at..at + 2]);
        }
        assert_eq!(first.ids(), [&a[..], &ids_of(&want_a)].concat());
        assert_eq!(second.ids(), [&b[..], &ids_of(&want_b)].concat());
        // With room for snapshots nothing is computed twice; without, all is, each time.
        let again = first.stats().computed_tokens as usize;
        match bank {
            None => assert_eq!(again, a.len() + 7, "the last token is chosen alone"),
            Some(_) => assert!(again > 3 * a.len(), "{again}"),
        }
    }
}

#[test]
fn threads_take_turns() {
    let engine = open(options(128));
    let texts = [STORY, OTHER, "A cat", "In the morning"];
    let want: Vec<_> =
        texts.iter().map(|text| ids_of(&alone(&engine.tokenizer().encode_prompt(text).unwrap(), 12))).collect();
    let got: Vec<Vec<u32>> = std::thread::scope(|scope| {
        let run = |text: &'static str| {
            let mut session = engine.session(with_logits());
            move || {
                session.feed_text(text).unwrap();
                session.tokens(12).map(|event| event.unwrap().id).collect()
            }
        };
        let threads: Vec<_> = texts.iter().map(|text| scope.spawn(run(text))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(got, want);
}

#[test]
fn answers_end_as_they_should() {
    let engine = open(options(10));
    let mut session = engine.session(SessionOptions::default());
    assert!(matches!(session.next(), Err(Error::Empty)));
    session.feed_text(STORY).unwrap();
    let count = session.ids().len();
    let events: Vec<Event> = session.tokens(50).collect::<Result<_, _>>().unwrap();
    assert_eq!(events.len(), 10 - count + 1, "the last needs no place");
    assert_eq!(events.last().unwrap().finish, Some(Finish::Context));
    assert!(session.next().unwrap().is_none());
    assert!(matches!(session.feed(&[1]), Err(Error::Engine(EngineError::ContextFull { .. }))));
    // What went before is still there.
    session.truncate(count).unwrap();
    let mut options = SessionOptions::default();
    options.max_tokens = Some(2);
    session.set_options(options);
    let again: Vec<Event> = session.tokens(50).collect::<Result<_, _>>().unwrap();
    assert_eq!(again.iter().map(|event| event.finish).collect::<Vec<_>>(), [None, Some(Finish::Length)]);
    assert_eq!(again[0].id, events[0].id);
    options.max_tokens = Some(0);
    session.set_options(options);
    assert!(session.next().unwrap().is_none());
    assert!(matches!(session.truncate(50), Err(Error::Keep { tokens: 6, keep: 50 })));

    let engine = open(self::options(256));
    let mut session = engine.session(SessionOptions::default());
    let message = Message { role: "user".to_owned(), content: "What is the capital of France?".to_owned() };
    let render = RenderOptions { add_generation_prompt: true, enable_thinking: Some(false) };
    session.feed_text(&engine.render(&[message], render).unwrap()).unwrap();
    let events: Vec<Event> = session.tokens(100).collect::<Result<_, _>>().unwrap();
    let text: String = events.iter().map(|event| event.text.as_str()).collect();
    assert_eq!(text, "The capital of France is Paris.");
    let last = events.last().unwrap();
    assert_eq!(last.finish, Some(Finish::Stop));
    assert!(engine.tokenizer().stop_ids().contains(&last.id));
}

#[test]
fn refused_calls_change_nothing() {
    let engine = open(options(64));
    let mut session = engine.session(SessionOptions::default());
    session.feed_text(STORY).unwrap();
    let (ids, vocab) = (session.ids().to_vec(), engine.plan().spec.vocab as u32);
    assert!(matches!(session.feed(&[]), Err(Error::Engine(EngineError::NoTokens))));
    assert!(matches!(session.feed(&[1, vocab]), Err(Error::Engine(EngineError::Token { id, .. })) if id == vocab));
    assert!(matches!(session.feed(&vec![1; 61]), Err(Error::Engine(EngineError::ContextFull { .. }))));
    assert!(matches!(session.prompt(&[vocab]), Err(Error::Engine(EngineError::Token { .. }))));
    assert_eq!(session.ids(), ids);
    let want = ids_of(&alone(&ids, 3));
    assert_eq!(session.tokens(3).map(|event| event.unwrap().id).collect::<Vec<_>>(), want);
    // Another sequence with the same beginning.
    let other = [&ids[..], &want[..1], &[5, 6]].concat();
    session.prompt(&other).unwrap();
    assert_eq!(session.ids(), other);
    assert_eq!(session.next().unwrap().unwrap().id, alone(&other, 1)[0].0);
}

#[test]
fn a_cancelled_prompt_goes_on_where_it_was() {
    let engine = open(options(256));
    let mut session = engine.session(with_logits());
    let ids = engine.tokenizer().encode_prompt(&STORY.repeat(20)).unwrap();
    // Another session is at work with a chunk, while this one is told to stop before its first.
    session.canceller().cancel();
    let Err(Error::Cancelled { computed: 0, tokens }) = session.feed(&ids) else { panic!("expected to be cancelled") };
    assert_eq!((tokens, session.ids()), (ids.len(), &ids[..]));
    // From another thread, until it hits the middle of the prompt.
    let canceller = session.canceller();
    let stop = AtomicBool::new(false);
    let results = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                canceller.cancel();
                std::thread::sleep(Duration::from_micros(300));
            }
        });
        let mut results = Vec::new();
        for _ in 0..10_000 {
            let result = session.next();
            let goes_on = matches!(&result, Err(Error::Cancelled { computed: 0, .. }));
            results.push(result);
            if !goes_on {
                break;
            }
        }
        stop.store(true, Ordering::Relaxed);
        results
    });
    let Some(Err(Error::Cancelled { computed: middle, .. })) = results.last() else { panic!("{:?}", results.last()) };
    assert!(*middle > 0 && *middle < ids.len(), "{middle}");
    assert_eq!(middle % 16, 0, "it was cancelled between chunks");
    // The last call of the other thread may have come too late for that call.
    if session.next().is_err() {
        assert_eq!(session.ids(), ids);
    } else {
        session.truncate(ids.len()).unwrap();
    }
    follows(&mut session, &alone(&ids, 4));
    assert_eq!(session.stats().recalled_tokens as usize % 16, 0);
}

#[test]
fn saved_sessions_go_on_with_the_same_bits() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(options(128));
    let folder = engine.folder(dir.path()).unwrap();
    let mut session = engine.session(with_logits());
    assert!(matches!(session.save(&folder, "a", SaveOptions::default()), Err(Error::Empty)));
    session.feed_text(STORY).unwrap();
    let ids = session.ids().to_vec();
    let want = alone(&ids, 10);
    follows(&mut session, &want[..4]);
    let mut save = SaveOptions::default();
    save.notes = Some(b"turn 1");
    let whole = session.save(&folder, "a", save).unwrap();
    follows(&mut session, &want[4..6]);
    save.delta = true;
    let delta = session.save(&folder, "b", save).unwrap();
    assert!(delta.bytes < whole.bytes + 6 * 4224, "rows of two tokens, not of all");
    assert_eq!(folder.store().inspect("b", true).unwrap().chain.len(), 1);
    // A delta cannot replace what it is a delta of.
    session.save(&folder, "b", save).unwrap();
    assert!(folder.store().inspect("b", true).unwrap().broken.is_none());
    drop(session);
    let other = open(options(64));
    let folder = other.folder(dir.path()).unwrap();
    let mut session = other.session(with_logits());
    assert_eq!(session.restore(&folder, "b").unwrap().as_deref(), Some(&b"turn 1"[..]));
    assert_eq!(session.ids(), [&ids[..], &ids_of(&want[..6])].concat());
    follows(&mut session, &want[6..]);
    session.restore(&folder, "a").unwrap();
    follows(&mut session, &want[4..]);
    let before = session.ids().to_vec();
    assert!(matches!(session.restore(&folder, "none"), Err(Error::Saved(SessionError::NotFound { .. }))));
    assert_eq!(session.ids(), before);
    let small = open(options(6));
    let error = small.session(with_logits()).restore(&folder, "b").unwrap_err();
    assert!(matches!(error, Error::Saved(SessionError::Context { expected: 6, .. })), "{error}");
}

#[test]
fn a_closed_engine_is_noticed() {
    let engine = open(options(64));
    let mut session = engine.session(SessionOptions::default());
    session.feed_text(STORY).unwrap();
    engine.close(Duration::from_secs(30)).unwrap();
    engine.close(Duration::from_secs(30)).unwrap();
    assert!(engine.is_closed());
    assert!(matches!(session.next(), Err(Error::Closed)));
    assert!(matches!(session.feed(&[1]), Err(Error::Closed)));
    assert!(matches!(engine.counters(), Err(Error::Closed)));
    assert!(!session.ids().is_empty(), "they stay readable");
}

#[test]
fn opening_says_what_is_wrong() {
    let fail = |options| SharedEngine::open_static(MODEL, options, &mut |_| {}).unwrap_err();
    let with = |change: fn(&mut OpenOptions)| {
        let mut options = options(64);
        change(&mut options);
        options
    };
    let error = fail(with(|options| options.device = Some("abacus".to_owned())));
    assert!(error.to_string().contains("expected a number of this list, `cpu` or `gpu`, got `abacus`"), "{error}");
    let error = fail(with(|options| options.context = Some(0)));
    assert!(matches!(error, Error::Plan(_)), "{error}");
    let error = fail(with(|options| options.expert_profile = Some("/nowhere/profile".into())));
    assert!(matches!(error, Error::Profile(_)), "{error}");
    let error = SharedEngine::open("/nowhere/model.gguf".as_ref(), options(64), &mut |_| {}).unwrap_err();
    assert!(error.to_string().contains("/nowhere/model.gguf"), "{error}");
    let mut ready = false;
    SharedEngine::open_static(MODEL, options(64), &mut |progress| {
        ready |= matches!(progress, Progress::Weights { done, total, .. } if done == total);
    })
    .unwrap();
    assert!(ready, "progress is told until the end");
}
