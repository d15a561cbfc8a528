//! Status numbers, and the one table from errors to them.

use std::io;

use crate::device::{CardsError, DeviceError, Status};
use crate::exec::EngineError;
use crate::gguf::GgufError;
use crate::load::LoadError;
use crate::plan::PlanError;
use crate::residency::ProfileError;
use crate::session::Error;
use crate::state::SessionError;
use crate::text::TextError;

/// What a call returns: BANKSHOT_OK, or the number of an error. Later versions may have more numbers; none is ever
/// changed.
pub type bankshot_status = i32;

/// The call did what it says.
pub const BANKSHOT_OK: i32 = 0;
/// 1-9 are the caller's mistakes. A pointer that is needed is null.
pub const BANKSHOT_ERR_NULL: i32 = 1;
/// A value is out of range, a text is not UTF-8, a token is not in the vocabulary.
pub const BANKSHOT_ERR_VALUE: i32 = 2;
/// A struct_size is not one that this library knows.
pub const BANKSHOT_ERR_STRUCT: i32 = 3;
/// Known or set by a newer header, and not possible in this version or on this device.
pub const BANKSHOT_ERR_UNSUPPORTED: i32 = 4;
/// No file, device or saved session of that name.
pub const BANKSHOT_ERR_NOT_FOUND: i32 = 5;
/// Not now: the engine is still loading or closed, the answer has ended, another saved session needs this one.
pub const BANKSHOT_ERR_STATE: i32 = 6;
/// 10-19 are resources. The host has not enough memory.
pub const BANKSHOT_ERR_MEMORY: i32 = 10;
/// A card has not enough memory.
pub const BANKSHOT_ERR_DEVICE_MEMORY: i32 = 11;
/// The context has no place for so many tokens.
pub const BANKSHOT_ERR_CONTEXT: i32 = 12;
/// The caller's buffer is too small.
pub const BANKSHOT_ERR_BUFFER: i32 = 13;
/// A file cannot be read or written.
pub const BANKSHOT_ERR_IO: i32 = 14;
/// The disk is full.
pub const BANKSHOT_ERR_DISK: i32 = 15;
/// 20-29 are the device. An operation failed, or code did not build; the engine stops working.
pub const BANKSHOT_ERR_DEVICE: i32 = 20;
/// A device is lost.
pub const BANKSHOT_ERR_DEVICE_LOST: i32 = 21;
/// The engine stopped working after an earlier error, or the handle did after BANKSHOT_ERR_INTERNAL. Destroy it and
/// open another one.
pub const BANKSHOT_ERR_POISONED: i32 = 22;
/// 30-39 are files. A model's file is damaged, incomplete or not supported.
pub const BANKSHOT_ERR_MODEL: i32 = 30;
/// A saved session is damaged, of another version, or another model's.
pub const BANKSHOT_ERR_SESSION: i32 = 31;
/// The model's chat template failed.
pub const BANKSHOT_ERR_TEMPLATE: i32 = 32;
/// The call was cancelled.
pub const BANKSHOT_ERR_CANCELLED: i32 = 40;
/// What was waited for did not happen in time.
pub const BANKSHOT_ERR_TIMEOUT: i32 = 41;
/// 90 and above are mistakes of this library.
pub const BANKSHOT_ERR_INTERNAL: i32 = 90;

/// Why a call has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    pub status: bankshot_status,
    pub text: String,
}

impl Failure {
    pub fn new(status: bankshot_status, text: impl Into<String>) -> Failure {
        Failure { status, text: text.into() }
    }

    /// A value that is not what the header allows.
    pub fn value(what: &str, expected: &str, got: impl std::fmt::Display) -> Failure {
        Failure::new(BANKSHOT_ERR_VALUE, format!("{what}: expected {expected}, got {got}"))
    }

    pub fn null(what: &str) -> Failure {
        Failure::new(BANKSHOT_ERR_NULL, format!("{what}: expected a pointer, got null"))
    }
}

impl<E: Into<Error>> From<E> for Failure {
    fn from(error: E) -> Failure {
        let error = error.into();
        Failure { status: status_of(&error), text: error.to_string() }
    }
}

/// The status of an error.
pub fn status_of(error: &Error) -> bankshot_status {
    match error {
        Error::Cards(error) => of_cards(error),
        Error::Load(error) => of_load(error),
        Error::Plan(error) => of_plan(error),
        Error::Profile(ProfileError::Read { cause, .. } | ProfileError::Write { cause, .. }) => of_io(cause),
        Error::Profile(_) => BANKSHOT_ERR_MODEL,
        Error::NoExperts | Error::Keep { .. } => BANKSHOT_ERR_VALUE,
        Error::Text(error) => of_text(error),
        Error::NoTemplate { .. } => BANKSHOT_ERR_NOT_FOUND,
        Error::Engine(error) => of_engine(error),
        Error::Saved(error) => of_saved(error),
        Error::Empty | Error::Closed => BANKSHOT_ERR_STATE,
        Error::Cancelled { .. } => BANKSHOT_ERR_CANCELLED,
        Error::Busy { .. } => BANKSHOT_ERR_TIMEOUT,
    }
}

fn of_io(cause: &io::Error) -> bankshot_status {
    match cause.kind() {
        io::ErrorKind::NotFound => BANKSHOT_ERR_NOT_FOUND,
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => BANKSHOT_ERR_DISK,
        io::ErrorKind::OutOfMemory => BANKSHOT_ERR_MEMORY,
        _ => BANKSHOT_ERR_IO,
    }
}

fn of_device(error: &DeviceError) -> bankshot_status {
    match error.status {
        Status::HOST_MEMORY => BANKSHOT_ERR_MEMORY,
        Status::DEVICE_MEMORY => BANKSHOT_ERR_DEVICE_MEMORY,
        Status::UNSUPPORTED => BANKSHOT_ERR_UNSUPPORTED,
        Status::BUILD | Status::DEVICE => BANKSHOT_ERR_DEVICE,
        Status::DEVICE_LOST => BANKSHOT_ERR_DEVICE_LOST,
        _ => BANKSHOT_ERR_INTERNAL,
    }
}

fn of_cards(error: &CardsError) -> bankshot_status {
    match error {
        CardsError::Unknown { .. } | CardsError::NoDevice { .. } => BANKSHOT_ERR_NOT_FOUND,
        CardsError::Count { .. } | CardsError::Gpus { .. } => BANKSHOT_ERR_VALUE,
        CardsError::Device(error) => of_device(error),
    }
}

fn of_load(error: &LoadError) -> bankshot_status {
    match error {
        LoadError::File(GgufError::Open { cause, .. })
        | LoadError::Reopen { cause, .. }
        | LoadError::Read { cause, .. } => of_io(cause),
        LoadError::NoTable { .. } => BANKSHOT_ERR_VALUE,
        _ => BANKSHOT_ERR_MODEL,
    }
}

fn of_plan(error: &PlanError) -> bankshot_status {
    match error {
        PlanError::Kernel { .. } | PlanError::SubGroups { .. } => BANKSHOT_ERR_UNSUPPORTED,
        PlanError::HostMemory { .. } | PlanError::Host { .. } => BANKSHOT_ERR_MEMORY,
        PlanError::Memory(_) | PlanError::Piece { .. } => BANKSHOT_ERR_DEVICE_MEMORY,
        PlanError::Split { problem, .. } => of_plan(problem),
        _ => BANKSHOT_ERR_VALUE,
    }
}

fn of_text(error: &TextError) -> bankshot_status {
    match error {
        TextError::NoByteToken { .. } => BANKSHOT_ERR_VALUE,
        TextError::Bpe { .. } => BANKSHOT_ERR_INTERNAL,
        TextError::TemplateSyntax { .. } | TextError::TemplateTime { .. } | TextError::TemplateRender { .. } => {
            BANKSHOT_ERR_TEMPLATE
        }
        _ => BANKSHOT_ERR_MODEL,
    }
}

fn of_engine(error: &EngineError) -> bankshot_status {
    match error {
        EngineError::Plan(error) => of_plan(error),
        EngineError::Load(error) => of_load(error),
        EngineError::Device(problem) | EngineError::Card { problem, .. } | EngineError::Step { problem, .. } => {
            of_device(problem)
        }
        EngineError::Cards { .. } | EngineError::Token { .. } | EngineError::NoTokens => BANKSHOT_ERR_VALUE,
        EngineError::Admission { .. } | EngineError::ImageMemory { .. } => BANKSHOT_ERR_MEMORY,
        EngineError::Kernel { .. } => BANKSHOT_ERR_UNSUPPORTED,
        EngineError::Row(error) => of_io(&error.cause),
        EngineError::ContextFull { .. } => BANKSHOT_ERR_CONTEXT,
        EngineError::Image => BANKSHOT_ERR_SESSION,
        EngineError::Restless { .. } => BANKSHOT_ERR_TIMEOUT,
        EngineError::Poisoned(_) => BANKSHOT_ERR_POISONED,
        EngineError::Beginning { .. } => BANKSHOT_ERR_INTERNAL,
    }
}

fn of_saved(error: &SessionError) -> bankshot_status {
    match error {
        SessionError::Name { .. } | SessionError::Refused { .. } => BANKSHOT_ERR_VALUE,
        SessionError::NotFound { .. } => BANKSHOT_ERR_NOT_FOUND,
        SessionError::Io { cause, .. } => of_io(cause),
        SessionError::Locked { .. } => BANKSHOT_ERR_TIMEOUT,
        SessionError::Version { .. }
        | SessionError::Damaged { .. }
        | SessionError::Identity { .. }
        | SessionError::Parent { .. } => BANKSHOT_ERR_SESSION,
        SessionError::Context { .. } => BANKSHOT_ERR_CONTEXT,
        SessionError::Memory { .. } => BANKSHOT_ERR_MEMORY,
        SessionError::Needed { .. } => BANKSHOT_ERR_STATE,
        SessionError::Limit { .. } => BANKSHOT_ERR_DISK,
    }
}
