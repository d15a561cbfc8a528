//! Sequences that outlive an engine: saved, restored, and parked on disk while others are computed.

mod keeper;
mod sessions;
mod turns;

pub use keeper::{Base, Keeper, Restored};
pub use sessions::{Sessions, SessionsOptions};
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
