//! What every exported function goes through: no panic leaves it, and a failure leaves its text.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use super::borrow::Handle;
use super::status::{BANKSHOT_ERR_INTERNAL, BANKSHOT_ERR_POISONED, BANKSHOT_OK, Failure, bankshot_status};

thread_local! {
    static LAST_ERROR: RefCell<String> = const { RefCell::new(String::new()) };
    /// Whether this thread is inside a call, so that a panic is told to nobody but the caller.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
    static PANIC: RefCell<String> = const { RefCell::new(String::new()) };
    static PANIC_NEXT: Cell<bool> = const { Cell::new(false) };
}

/// Whether a handle stopped working, because a call on it ended by a panic.
#[derive(Debug, Default)]
pub struct Broken(AtomicBool);

/// What stands behind a handle.
pub trait Guarded {
    /// For messages.
    const NAME: &str;

    fn broken(&self) -> &Broken;
}

/// Runs a call that has no handle.
pub fn call(name: &str, work: impl FnOnce() -> Result<(), Failure>) -> bankshot_status {
    finish(name, caught(work))
}

/// Runs a call on a handle, unless that is null or stopped working.
pub fn call_on<H: Guarded>(
    name: &str,
    handle: Handle<'_, H>,
    work: impl FnOnce(&H) -> Result<(), Failure>,
) -> bankshot_status {
    let handle = match handle.get() {
        Some(handle) => handle,
        None => return finish(name, Err(Failure::null(H::NAME))),
    };
    if handle.broken().0.load(Ordering::SeqCst) {
        let text = "the handle stopped working after an earlier call, which gave BANKSHOT_ERR_INTERNAL";
        return finish(name, Err(Failure::new(BANKSHOT_ERR_POISONED, text)));
    }
    let result = caught(|| work(handle));
    if let Err(Failure { status: BANKSHOT_ERR_INTERNAL, .. }) = &result {
        handle.broken().0.store(true, Ordering::SeqCst);
    }
    finish(name, result)
}

/// Runs work of this library; a panic becomes an error, and prints nothing.
pub fn caught<T>(work: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    quiet_hook();
    let before = INSIDE.replace(true);
    let work = || {
        assert!(!PANIC_NEXT.take(), "a test asked for this panic");
        work()
    };
    let result = catch_unwind(AssertUnwindSafe(work));
    INSIDE.set(before);
    result.unwrap_or_else(|_| {
        let text = PANIC.take();
        Err(Failure::new(BANKSHOT_ERR_INTERNAL, format!("a mistake of this library: {text}")))
    })
}

fn finish(name: &str, result: Result<(), Failure>) -> bankshot_status {
    match result {
        Ok(()) => BANKSHOT_OK,
        Err(failure) => {
            LAST_ERROR.set(format!("{name}: {}", failure.text));
            failure.status
        }
    }
}

/// Text of this thread's last call that failed.
pub fn last_error() -> String {
    LAST_ERROR.with_borrow(String::clone)
}

/// Keeps panics inside of calls for their callers; all others are reported as before.
fn quiet_hook() {
    static ONCE: Once = Once::new();
    if std::thread::panicking() {
        return;
    }
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if INSIDE.get() {
                PANIC.set(info.to_string());
            } else {
                before(info);
            }
        }));
    });
}

/// Lets this thread's next call panic, for tests.
#[doc(hidden)]
pub fn panic_next() {
    PANIC_NEXT.set(true);
}
