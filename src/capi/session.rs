//! Sessions of the header.

use std::ffi::c_char;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::borrow::{Buffer, Handle, List, Out, Struct};
use super::engine::{bankshot_engine, check_flags};
use super::guard::{Broken, Guarded, call, call_on};
use super::status::{BANKSHOT_ERR_NOT_FOUND, BANKSHOT_ERR_STATE, Failure, bankshot_status};
use super::structs::*;
use crate::session::{Canceller, Finish, Keeper, SaveOptions, Session, SessionOptions};
use crate::state::Store;

/// A sequence of tokens on an engine.
pub struct bankshot_session {
    inner: Mutex<Inner>,
    canceller: Canceller,
    broken: Broken,
}

struct Inner {
    session: Session,
    /// Of the last event.
    text: String,
    logits: Option<Vec<f32>>,
}

impl Guarded for bankshot_session {
    const NAME: &str = "session";

    fn broken(&self) -> &Broken {
        &self.broken
    }
}

impl bankshot_session {
    /// Calls of several threads on one session are a mistake of the caller's, but they harm nothing.
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn forget_event(&mut self) {
        self.text.clear();
        self.logits = None;
    }
}

fn read_options(given: bankshot_session_options) -> Result<SessionOptions, Failure> {
    check_flags(given.flags, BANKSHOT_SESSION_LOGITS | BANKSHOT_SESSION_IGNORE_STOP)?;
    let mut options = SessionOptions::default();
    options.logits = given.flags & BANKSHOT_SESSION_LOGITS != 0;
    options.ignore_stop = given.flags & BANKSHOT_SESSION_IGNORE_STOP != 0;
    // More than the context holds is as many as it holds.
    options.max_tokens = Some(given.max_tokens).filter(|n| *n != 0).map(|n| usize::try_from(n).unwrap_or(usize::MAX));
    Ok(options)
}

const fn finish_number(finish: Option<Finish>) -> u32 {
    match finish {
        None => BANKSHOT_FINISH_NONE,
        Some(Finish::Stop) => BANKSHOT_FINISH_STOP,
        Some(Finish::Length) => BANKSHOT_FINISH_LENGTH,
        Some(Finish::Context) => BANKSHOT_FINISH_CONTEXT,
    }
}

/// Begins a session without tokens; options may be null.
/// Ownership: *out is the caller's, who destroys it; it keeps what it needs of the engine alive. Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bankshot_session_create(
    engine: *const bankshot_engine,
    options: *const bankshot_session_options,
    out: *mut *mut bankshot_session,
) -> bankshot_status {
    // SAFETY: the caller keeps to the header.
    let (engine, options, out) = unsafe { (Handle::new(engine), Struct::new(options.cast_mut()), Out::new(out)) };
    call_on("bankshot_session_create", engine, |engine| {
        out.check("out")?;
        let shared = engine.ready()?;
        let options = match options.is_null() {
            true => SessionOptions::default(),
            false => read_options(options.read("options")?)?,
        };
        let session = shared.session(options);
        let handle = bankshot_session {
            canceller: session.canceller(),
            inner: Mutex::new(Inner { session, text: String::new(), logits: None }),
            broken: Broken::default(),
        };
        out.write("out", Box::into_raw(Box::new(handle)))
    })
}

/// Destroys a session; null does nothing. If its engine's handle is destroyed and this is the last session, the engine
/// is freed, which waits for its devices, 30 s at most.
/// Ownership: the handle is gone, and must not be used again: that cannot be noticed. Threads: any, while no other call
/// uses the handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bankshot_session_destroy(session: *mut bankshot_session) {
    if session.is_null() {
        return;
    }
    call("bankshot_session_destroy", || {
        // SAFETY: by the header it is a handle that bankshot_session_create gave, and is used no more.
        drop(unsafe { Box::from_raw(session) });
        Ok(())
    });
}

/// Begins another answer behind all tokens that there are.
/// Ownership: options are read during the call. Threads: one at a time for each session.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bankshot_session_set_options(
    session: *mut bankshot_session,
    options: *const bankshot_session_options,
) -> bankshot_status {
    // SAFETY: the caller keeps to the header.
    let (session, options) = unsafe { (Handle::new(session.cast_const()), Struct::new(options.cast_mut())) };
    call_on("bankshot_session_set_options", session, |session| {
        let options = read_options(options.read("options")?)?;
        session.lock().session.set_options(options);
        Ok(())
    })
}

/// Appends tokens and computes them; another answer begins behind them. When an id or the number of ids is refused,
/// nothing changes. After BANKSHOT_ERR_CANCELLED and BANKSHOT_ERR_IO all are appended, and the next call computes what
/// is left.
/// Ownership: the ids are read during the call. Threads: one at a time for each session.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bankshot_session_feed(
    session: *mut bankshot_session,
    ids: *const u32,
    count: u64,
) -> bankshot_status {
    // SAFETY: the caller keeps to the header.
    let (session, ids) = unsafe { (Handle::new(session.cast_const()), List::new(ids, count)) };
    call_on("bankshot_session_feed", session, |session| {
        let (session, ids) = (session, ids.get("ids")?);
        let mut inner = session.lock();
        inner.forget_event();
        Ok(inner.session.feed(ids)?)
    })
}

/// Appends a text and computes it, as bankshot_session_feed. Names of special tokens are read as these tokens. If it is
/// the first text, the model's beginning-of-sequence token goes before it where the model asks for that.
/// Ownership: the text is read during the call. Threads: one at a time for each session.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bankshot_session_feed_text(
    session: *mut bankshot_session,
    text: *const c_char,
    text_bytes: u64,
) -> bankshot_status {
    // SAFETY: the caller keeps to the header.
    let (session, text) = unsafe { (Handle::new(session.cast_const()), List::text(text, text_bytes)) };
    call_on("bankshot_session_feed_text", session, |session| {
        let (session, text) = (session, text.utf8("text")?);
        let mut inner = session.lock();
        inner.forget_event();
        Ok(inner.session.feed_text(text)?)
    })
}

/// Makes these the session's tokens and computes what is not known of them, as a conversation needs whose template
/// changes earlier turns. Errors are those of bankshot_session_feed.
/// Ownership: the ids are read during the call. Threads: one at a time for each session.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bankshot_session_prompt(
    session: *mut bankshot_session,
    ids: *const u32,
    count: u64,
) -> bankshot_status {
    // SAFETY: the caller keeps to the header.
    let (session, ids) = unsafe { (Handle::new(session.cast_const()), List::new(ids, count)) };
    call_on("bankshot_session_prompt", session, |session| {
        let (session, ids) = (session, ids.get("ids")?);
        let mut inner = session.lock();
        inner.forget_event();
        Ok(inner.session.prompt(ids)?)
    })
}

/// Keeps the first tokens of the session alone; another answer begins behind them.
/// Ownership: none changes. Threads: one at a time for each session.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bankshot_session_truncate(session: *mut bankshot_session, tokens: u64) -> bankshot_status {
    // SAFETY: the caller keeps to the header.
    let session = unsafe { Handle::new(session.cast_const()) };
    call_on("bankshot_session_truncate", session, |session| {
        let mut inner = session.lock();
        inner.session.truncate(usize::try_from(tokens).unwrap_or(usize::MAX))?;
        inner.forget_event();
        Ok(())
    })
}

/// Chooses the next token, the most likely one, after computing all before it. The event with which an answer ends says
/// why; BANKSHOT_ERR_STATE: it has ended, or there are no tokens. Other errors are those of bankshot_session_feed, and
/// change no token.
/// Ownership: the event is the caller's. Threads: one at a time for each session.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bankshot_session_next(
    session: *mut bankshot_session,
    event: *mut bankshot_event,
) -> bankshot_status {
    // SAFETY: the caller keeps to the header.
    let (session, out) = unsafe { (Handle::new(session.cast_const()), Struct::new(event)) };
    call_on("bankshot_session_next", session, |session| {
        out.size("event")?;
        let mut inner = session.lock();
        let Some(event) = inner.session.next()? else {
            let name = inner.session.finish().map_or("nothing", Finish::name);
            let text = format!("the answer has ended by {name}: expected further tokens, or other options");
            return Err(Failure::new(BANKSHOT_ERR_STATE, text));
        };
        inner.text = event.text;
        inner.logits = event.logits;
        let value = bankshot_event {
            struct_size: 0,
            id: event.id,
            finish: finish_number(event.finish),
            reserved: 0,
            text_bytes: inner.text.len() as u64,
            tokens: inner.session.ids().len() as u64,
        };
        out.write("event", value)
    })
}

/// Text of the last event, in UTF-8 and without a closing zero: whole characters that its token completes.
/// Ownership: the buffer is the caller's. Threads: one at a time for each session.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bankshot_session_text(
    session: *const bankshot_session,
    buffer: *mut c_char,
    cap: usize,
    needed: *mut usize,
) -> bankshot_status {
    // SAFETY: the caller keeps to the header.
    let (session, buffer) = unsafe { (Handle::new(session), Buffer::text(buffer, cap, needed)) };
    call_on("bankshot_session_text", session, |session| buffer.fill(session.lock().text.as_bytes()))
}

/// Logits that the last event's token was chosen from; BANKSHOT_ERR_STATE without BANKSHOT_SESSION_LOGITS or an event.
/// Ownership: the buffer is the caller's. Threads: one at a time for each session.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bankshot_session_logits(
    session: *const bankshot_session,
    buffer: *mut f32,
    cap: usize,
    needed: *mut usize,
) -> bankshot_status {
    // SAFETY: the caller keeps to the header.
    let (session, buffer) = unsafe { (Handle::new(session), Buffer::new(buffer, cap, needed)) };
    call_on("bankshot_session_logits", session, |session| {
        let inner = session.lock();
        match &inner.logits {
            Some(logits) => buffer.fill(logits),
            None => {
                let text = "expected an event, and BANKSHOT_SESSION_LOGITS among the session's flags";
                Err(Failure::new(BANKSHOT_ERR_STATE, text))
            }
        }
    })
}

/// Token ids of the session from number first on: those that were fed, and those that were chosen. They stay readable
/// whatever happens to the engine.
/// Ownership: the buffer is the caller's. Threads: one at a time for each session.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bankshot_session_ids(
    session: *const bankshot_session,
    first: u64,
    ids: *mut u32,
    cap: usize,
    needed: *mut usize,
) -> bankshot_status {
    // SAFETY: the caller keeps to the header.
    let (session, buffer) = unsafe { (Handle::new(session), Buffer::new(ids, cap, needed)) };
    call_on("bankshot_session_ids", session, |session| {
        let inner = session.lock();
        let ids = inner.session.ids();
        match usize::try_from(first).ok().and_then(|first| ids.get(first..)) {
            Some(ids) => buffer.fill(ids),
            None => Err(Failure::value("first", &format!("at most {}", ids.len()), first)),
        }
    })
}

/// Lets the session's running call, or the next one that computes, end with BANKSHOT_ERR_CANCELLED before its next step
/// or chunk. Nothing is lost: a further call goes on.
/// Ownership: none changes. Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bankshot_session_cancel(session: *const bankshot_session) -> bankshot_status {
    // SAFETY: the caller keeps to the header.
    let session = unsafe { Handle::new(session) };
    call_on("bankshot_session_cancel", session, |session| {
        session.canceller.cancel();
        Ok(())
    })
}

/// What the session has needed so far.
/// Ownership: none changes. Threads: one at a time for each session.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bankshot_session_stats(
    session: *const bankshot_session,
    stats: *mut bankshot_stats,
) -> bankshot_status {
    // SAFETY: the caller keeps to the header.
    let (session, out) = unsafe { (Handle::new(session), Struct::new(stats)) };
    call_on("bankshot_session_stats", session, |session| {
        let inner = session.lock();
        let stats = inner.session.stats();
        let value = bankshot_stats {
            struct_size: 0,
            finish: finish_number(inner.session.finish()),
            tokens: inner.session.ids().len() as u64,
            computed_tokens: stats.computed_tokens,
            recalled_tokens: stats.recalled_tokens,
            chosen_tokens: stats.chosen_tokens,
            switches: stats.switches,
        };
        out.write("stats", value)
    })
}

/// Saves the session under a name in a folder, which is created if it is missing. All tokens are computed for that; a
/// last one without a place in the context is not part of the file. Flags are those of BANKSHOT_SAVE.
/// Ownership: the texts are read during the call. Threads: one at a time for each session.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bankshot_session_save(
    session: *mut bankshot_session,
    folder: *const c_char,
    folder_bytes: u64,
    name: *const c_char,
    name_bytes: u64,
    flags: u32,
) -> bankshot_status {
    // SAFETY: the caller keeps to the header.
    let (session, place) = unsafe { (Handle::new(session.cast_const()), List::text(folder, folder_bytes)) };
    // SAFETY: the caller keeps to the header.
    let name = unsafe { List::text(name, name_bytes) };
    call_on("bankshot_session_save", session, |session| {
        check_flags(flags, BANKSHOT_SAVE_COMPRESS | BANKSHOT_SAVE_DELTA)?;
        let (place, name) = (place.named("folder")?, name.named("name")?);
        let mut inner = session.lock();
        let folder = inner.session.engine().folder(Path::new(place))?;
        let mut options = SaveOptions::default();
        options.compress = flags & BANKSHOT_SAVE_COMPRESS != 0;
        options.delta = flags & BANKSHOT_SAVE_DELTA != 0;
        inner.session.save(&folder, name, options)?;
        Ok(())
    })
}

/// Makes a saved session this one. Until all of the file was verified, nothing changes.
/// Ownership: the texts are read during the call. Threads: one at a time for each session.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bankshot_session_restore(
    session: *mut bankshot_session,
    folder: *const c_char,
    folder_bytes: u64,
    name: *const c_char,
    name_bytes: u64,
) -> bankshot_status {
    // SAFETY: the caller keeps to the header.
    let (session, place) = unsafe { (Handle::new(session.cast_const()), List::text(folder, folder_bytes)) };
    // SAFETY: the caller keeps to the header.
    let name = unsafe { List::text(name, name_bytes) };
    call_on("bankshot_session_restore", session, |session| {
        let (place, name) = (existing(place)?, name.named("name")?);
        let mut inner = session.lock();
        let folder: Keeper = inner.session.engine().folder(place)?;
        inner.session.restore(&folder, name)?;
        inner.forget_event();
        Ok(())
    })
}

/// A folder that has to be there.
fn existing<'a>(folder: List<'a, u8>) -> Result<&'a Path, Failure> {
    let path = Path::new(folder.named("folder")?);
    match path.is_dir() {
        true => Ok(path),
        false => {
            let text = format!("expected a folder, found none at {}", path.display());
            Err(Failure::new(BANKSHOT_ERR_NOT_FOUND, text))
        }
    }
}

/// What a saved session says of itself, as JSON; `bankshot session inspect --json` prints the same. Needs no engine.
/// Flags are those of BANKSHOT_INSPECT.
/// Ownership: the texts are read during the call, the buffer is the caller's. Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bankshot_saved_inspect(
    folder: *const c_char,
    folder_bytes: u64,
    name: *const c_char,
    name_bytes: u64,
    flags: u32,
    buffer: *mut c_char,
    cap: usize,
    needed: *mut usize,
) -> bankshot_status {
    // SAFETY: the caller keeps to the header.
    let (place, name) = unsafe { (List::text(folder, folder_bytes), List::text(name, name_bytes)) };
    // SAFETY: the caller keeps to the header.
    let buffer = unsafe { Buffer::text(buffer, cap, needed) };
    call("bankshot_saved_inspect", || {
        buffer.check()?;
        check_flags(flags, BANKSHOT_INSPECT_VERIFY)?;
        let (place, name) = (existing(place)?, name.named("name")?);
        let verify = flags & BANKSHOT_INSPECT_VERIFY != 0;
        let mut object = Store::open(place)?.inspect(name, verify)?.to_json();
        object["verified"] = verify.into();
        buffer.fill(object.to_string().as_bytes())
    })
}

/// Deletes a saved session that no other is a delta of (BANKSHOT_ERR_STATE). Flags are those of BANKSHOT_DELETE.
/// Needs no engine.
/// Ownership: the texts are read during the call. Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bankshot_saved_delete(
    folder: *const c_char,
    folder_bytes: u64,
    name: *const c_char,
    name_bytes: u64,
    flags: u32,
) -> bankshot_status {
    // SAFETY: the caller keeps to the header.
    let (place, name) = unsafe { (List::text(folder, folder_bytes), List::text(name, name_bytes)) };
    call("bankshot_saved_delete", || {
        check_flags(flags, BANKSHOT_DELETE_REPARENT)?;
        let (place, name) = (existing(place)?, name.named("name")?);
        Ok(Store::open(place)?.delete(name, flags & BANKSHOT_DELETE_REPARENT != 0)?)
    })
}
