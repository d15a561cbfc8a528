//! The C API from Rust, as a C program would call it, with a little comfort.

use std::ffi::c_char;
use std::ptr::{null, null_mut};

use bankshot::capi::*;

/// A zeroed struct that says its size, as C programs begin.
macro_rules! sized {
    ($name:ident) => {{
        // SAFETY: all fields are numbers or pointers that may be null.
        let mut value: $name = unsafe { std::mem::zeroed() };
        value.struct_size = size_of::<$name>() as u32;
        value
    }};
}
pub(crate) use sized;

pub fn last_error() -> String {
    // SAFETY: the length alone is asked for.
    let bytes = unsafe { bankshot_last_error(null_mut(), 0) };
    let mut text = vec![0u8; bytes + 1];
    // SAFETY: the buffer has as many bytes.
    assert_eq!(unsafe { bankshot_last_error(text.as_mut_ptr().cast(), text.len()) }, bytes);
    assert_eq!(text.pop(), Some(0));
    String::from_utf8(text).expect("UTF-8")
}

/// The call succeeds.
#[track_caller]
pub fn ok(status: bankshot_status) {
    assert_eq!(status, BANKSHOT_OK, "{}", last_error());
}

/// The call fails with this status and a text that says so.
#[track_caller]
pub fn fails(status: bankshot_status, expected: bankshot_status, text: &str) {
    let said = if status == BANKSHOT_OK { String::new() } else { last_error() };
    assert_eq!(status, expected, "{said}");
    assert!(said.starts_with("bankshot_") && said.contains(text), "expected {text:?} in {said:?}");
}

/// All values of a buffer call.
pub fn values<T: Copy + Default>(
    mut call: impl FnMut(*mut T, usize, *mut usize) -> bankshot_status,
) -> Result<Vec<T>, bankshot_status> {
    let mut needed = 0;
    match call(null_mut(), 0, &mut needed) {
        BANKSHOT_OK => {}
        status => return Err(status),
    }
    let mut values = vec![T::default(); needed];
    let mut got = 0;
    match call(values.as_mut_ptr(), values.len(), &mut got) {
        BANKSHOT_OK => assert_eq!(got, needed),
        status => return Err(status),
    }
    Ok(values)
}

/// All text of a buffer call.
#[track_caller]
pub fn text(mut call: impl FnMut(*mut c_char, usize, *mut usize) -> bankshot_status) -> String {
    let bytes = values::<u8>(|buffer, cap, needed| call(buffer.cast(), cap, needed));
    String::from_utf8(bytes.unwrap_or_else(|status| panic!("{status}: {}", last_error()))).expect("UTF-8")
}

/// An engine, destroyed at its end.
pub struct Engine(pub *mut bankshot_engine);

// SAFETY: the header lets any thread use a handle.
unsafe impl Sync for Engine {}

impl Drop for Engine {
    fn drop(&mut self) {
        // SAFETY: the handle is live, and used no more.
        unsafe { bankshot_engine_destroy(self.0) };
    }
}

/// A session, destroyed at its end.
pub struct Session(pub *mut bankshot_session);

// SAFETY: handles may go to other threads.
unsafe impl Send for Session {}
// SAFETY: calls on one handle wait for each other.
unsafe impl Sync for Session {}

impl Drop for Session {
    fn drop(&mut self) {
        // SAFETY: the handle is live, and used no more.
        unsafe { bankshot_session_destroy(self.0) };
    }
}

/// Options of the demo model on the CPU.
pub fn options() -> bankshot_engine_options {
    let mut options = sized!(bankshot_engine_options);
    options.flags = BANKSHOT_ENGINE_DEMO;
    options.device = c"cpu".as_ptr();
    options.device_bytes = 3;
    options.context = 128;
    options.chunk = 16;
    options
}

/// Begins to open an engine.
pub fn begin(options: &bankshot_engine_options) -> Result<Engine, bankshot_status> {
    let mut engine = null_mut();
    // SAFETY: both pointers are to live values.
    match unsafe { bankshot_engine_open(options, &mut engine) } {
        BANKSHOT_OK => Ok(Engine(engine)),
        status => {
            assert!(engine.is_null(), "out-parameters are written only on success");
            Err(status)
        }
    }
}

pub fn wait(engine: &Engine) -> bankshot_status {
    // SAFETY: the handle is live.
    unsafe { bankshot_engine_wait(engine.0, BANKSHOT_NONE) }
}

#[track_caller]
pub fn open(options: &bankshot_engine_options) -> Engine {
    let engine = begin(options).unwrap_or_else(|status| panic!("{status}: {}", last_error()));
    ok(wait(&engine));
    engine
}

#[track_caller]
pub fn session(engine: &Engine, flags: u32, max_tokens: u64) -> Session {
    let mut options = sized!(bankshot_session_options);
    (options.flags, options.max_tokens) = (flags, max_tokens);
    let mut session = null_mut();
    // SAFETY: the handle and both pointers are live.
    ok(unsafe { bankshot_session_create(engine.0, &options, &mut session) });
    Session(session)
}

pub fn feed(session: &Session, ids: &[u32]) -> bankshot_status {
    // SAFETY: the handle is live, and the ids are as many.
    unsafe { bankshot_session_feed(session.0, ids.as_ptr(), ids.len() as u64) }
}

pub fn feed_text(session: &Session, text: &str) -> bankshot_status {
    // SAFETY: the handle is live, and the bytes are as many.
    unsafe { bankshot_session_feed_text(session.0, text.as_ptr().cast(), text.len() as u64) }
}

pub fn next(session: &Session) -> Result<bankshot_event, bankshot_status> {
    let mut event = sized!(bankshot_event);
    // SAFETY: the handle and the event are live.
    match unsafe { bankshot_session_next(session.0, &mut event) } {
        BANKSHOT_OK => Ok(event),
        status => Err(status),
    }
}

pub fn ids(session: &Session) -> Vec<u32> {
    // SAFETY: the handle is live, and the buffer has as many places.
    values(|ids, cap, needed| unsafe { bankshot_session_ids(session.0, 0, ids, cap, needed) })
        .expect("they are readable")
}

/// The ids and the text that an answer has.
#[track_caller]
pub fn answer(session: &Session) -> (Vec<u32>, String, u32) {
    let (mut ids, mut all) = (Vec::new(), String::new());
    loop {
        let event = next(session).unwrap_or_else(|status| panic!("{status}: {}", last_error()));
        ids.push(event.id);
        // SAFETY: the handle is live, and the buffer has as many bytes.
        let piece = text(|buffer, cap, needed| unsafe { bankshot_session_text(session.0, buffer, cap, needed) });
        assert_eq!(piece.len() as u64, event.text_bytes);
        all.push_str(&piece);
        if event.finish != BANKSHOT_FINISH_NONE {
            return (ids, all, event.finish);
        }
    }
}

/// Saves into a folder under a name.
pub fn save(session: &Session, folder: &str, name: &str, flags: u32) -> bankshot_status {
    let (bytes, name_bytes) = (folder.len() as u64, name.len() as u64);
    // SAFETY: the handle is live, and the texts have as many bytes.
    unsafe { bankshot_session_save(session.0, folder.as_ptr().cast(), bytes, name.as_ptr().cast(), name_bytes, flags) }
}

pub fn restore(session: &Session, folder: &str, name: &str) -> bankshot_status {
    let (bytes, name_bytes) = (folder.len() as u64, name.len() as u64);
    // SAFETY: the handle is live, and the texts have as many bytes.
    unsafe { bankshot_session_restore(session.0, folder.as_ptr().cast(), bytes, name.as_ptr().cast(), name_bytes) }
}

pub fn tokenize(engine: &Engine, text: &str, flags: u32) -> Result<Vec<u32>, bankshot_status> {
    let (first, bytes) = (text.as_ptr().cast(), text.len() as u64);
    // SAFETY: the handle is live, the text has as many bytes, and the buffer as many places.
    values(|ids, cap, needed| unsafe { bankshot_engine_tokenize(engine.0, first, bytes, flags, ids, cap, needed) })
}

/// No pointer at all.
pub fn nothing<T>() -> *const T {
    null()
}
