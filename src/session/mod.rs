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
    #[error("session '{name}': expected the name of a session, found none of this name")]
    Unknown { name: String },
}
