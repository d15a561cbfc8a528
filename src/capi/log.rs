//! The one place that the C library's log can go to.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use tracing::level_filters::LevelFilter;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::{Layer, filter, fmt, registry};

use super::guard::call;
use super::status::{BANKSHOT_ERR_STATE, Failure, bankshot_status};
use crate::state::SessionError;

/// Nothing is written.
pub const BANKSHOT_LOG_OFF: u32 = 0;
/// What went wrong.
pub const BANKSHOT_LOG_ERROR: u32 = 1;
/// And what may go wrong.
pub const BANKSHOT_LOG_WARN: u32 = 2;
/// And what happens.
pub const BANKSHOT_LOG_INFO: u32 = 3;
/// And details.
pub const BANKSHOT_LOG_DEBUG: u32 = 4;

const LEVELS: [LevelFilter; 5] =
    [LevelFilter::OFF, LevelFilter::ERROR, LevelFilter::WARN, LevelFilter::INFO, LevelFilter::DEBUG];

static LEVEL: AtomicU32 = AtomicU32::new(BANKSHOT_LOG_OFF);
static SINK: Mutex<Option<File>> = Mutex::new(None);

/// Lines to the sink, each by one write. What cannot be written is lost: a log must not stop the engine.
struct Sink;

impl Write for Sink {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if let Some(file) = &mut *SINK.lock().unwrap_or_else(PoisonError::into_inner) {
            let _ = file.write_all(line);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Sink {
    type Writer = Sink;

    fn make_writer(&'a self) -> Sink {
        Sink
    }
}

/// Begins to listen to what the library tells, once.
fn listen() -> Result<(), Failure> {
    static DONE: OnceLock<bool> = OnceLock::new();
    let done = *DONE.get_or_init(|| {
        let level = || LEVELS[LEVEL.load(Ordering::Relaxed) as usize];
        let passes = filter::dynamic_filter_fn(move |event, _| *event.level() <= level());
        let lines = fmt::layer().with_writer(|| Sink).with_ansi(false).without_time().with_filter(passes);
        tracing::subscriber::set_global_default(registry().with(lines)).is_ok()
    });
    match done {
        true => Ok(()),
        false => Err(Failure::new(BANKSHOT_ERR_STATE, "expected no other listener in this process, found one")),
    }
}

/// Lets the library write lines of a level and below to a file descriptor; without this call it writes nothing. A
/// further call changes both; BANKSHOT_LOG_OFF ends it, whatever the descriptor. BANKSHOT_ERR_STATE: a program in Rust
/// has its own listener.
/// Ownership: the library makes a descriptor of its own for the same file, so that the caller may close the given one.
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bankshot_log_to_fd(fd: i32, level: u32) -> bankshot_status {
    call("bankshot_log_to_fd", || {
        if level as usize >= LEVELS.len() {
            return Err(Failure::value("level", &format!("0 to {}", LEVELS.len() - 1), level));
        }
        let mut file = None;
        if level != BANKSHOT_LOG_OFF {
            if fd < 0 {
                return Err(Failure::value("fd", "an open file descriptor", fd));
            }
            listen()?;
            // SAFETY: not negative, and by the header open during the call.
            let given = unsafe { BorrowedFd::borrow_raw(fd) };
            let own = rustix::io::fcntl_dupfd_cloexec(given, 3).map_err(|error| SessionError::Io {
                what: "use the file descriptor",
                path: std::path::Path::new(&fd.to_string()).into(),
                cause: error.into(),
            })?;
            file = Some(File::from(own));
        }
        *SINK.lock().unwrap_or_else(PoisonError::into_inner) = file;
        LEVEL.store(level, Ordering::Relaxed);
        Ok(())
    })
}
