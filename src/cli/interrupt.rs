//! Ctrl-C: the first asks the running command to stop at the next token, the second ends the process.

use std::sync::atomic::{AtomicBool, Ordering};

use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};

static ASKED: AtomicBool = AtomicBool::new(false);

extern "C" fn note(_: i32) {
    ASKED.store(true, Ordering::Relaxed);
}

/// Starts listening anew. The handler is taken away by the first signal, so that the second one has its default effect.
pub fn listen() {
    ASKED.store(false, Ordering::Relaxed);
    let action =
        SigAction::new(SigHandler::Handler(note), SaFlags::SA_RESETHAND | SaFlags::SA_RESTART, SigSet::empty());
    // SAFETY: the handler only stores to an atomic, which is allowed in a signal handler.
    let result = unsafe { sigaction(Signal::SIGINT, &action) };
    if let Err(error) = result {
        tracing::warn!("Ctrl-C will end the program at once: {error}");
    }
}

/// Whether Ctrl-C was pressed.
pub fn asked() -> bool {
    ASKED.load(Ordering::Relaxed)
}
