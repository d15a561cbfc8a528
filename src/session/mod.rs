//! Sequences on an engine, and sequences that outlive it.
//!
//! [`SharedEngine`] and [`Session`] are the library's way to use a model; `docs/capi.md` has the same for C. [`Keeper`], [`TurnFile`] and [`Sessions`]
//! save, restore and park sequences of an [`Engine`](crate::exec::Engine) that one program has for itself.

#[warn(missing_docs)]
mod error;
#[warn(missing_docs)]
mod handle;
mod keeper;
#[warn(missing_docs)]
mod open;
mod sessions;
#[warn(missing_docs)]
mod shared;
mod turns;

pub use error::Error;
pub use handle::{Canceller, Event, Finish, SaveOptions, Session, SessionOptions, SessionStats, Tokens};
pub use keeper::{Base, Keeper, Restored};
pub use open::{BANK_EVERY, CONTEXT, OpenOptions};
pub(crate) use open::{Prepared, SpareBank};
pub use sessions::{Sessions, SessionsOptions};
pub use shared::{EngineCounters, SharedEngine};
pub use turns::TurnFile;

use crate::exec::EngineError;
use crate::load::LoadError;
use crate::state::SessionError;

/// What keeps a sequence from being saved, restored or continued.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeepError {
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error(transparent)]
    Session(#[from] SessionError),
    /// Names of the kind that [`TurnFile`] gives.
    #[error(
        "session '{name}': expected another name: those that end with `.turn-` and a number belong to sessions that are saved turn by turn"
    )]
    Reserved { name: String },
    #[error(
        "session '{name}': expected the state that was saved last, found another: a program saved under this name meanwhile"
    )]
    Changed { name: String },
    #[error("session '{name}': expected the name of a session, found none of this name")]
    Unknown { name: String },
}
