//! What can go wrong with a shared engine and its sessions.

use crate::device::CardsError;
use crate::exec::EngineError;
use crate::load::LoadError;
use crate::plan::PlanError;
use crate::residency::ProfileError;
use crate::state::SessionError;
use crate::text::TextError;

use super::KeepError;

/// Why a call of [`SharedEngine`](super::SharedEngine) or [`Session`](super::Session) gave no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The names of cards lead to none.
    #[error(transparent)]
    Cards(#[from] CardsError),
    /// The model's files cannot be used.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The options do not suit the model, or its plan does not fit.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The profile of experts cannot be used.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// A profile of experts was given for a model that has none.
    #[error("expert profile: expected a model with routed experts, found one without")]
    NoExperts,
    /// A text cannot be spelled, or the chat template failed.
    #[error(transparent)]
    Text(#[from] TextError),
    /// The model's file has no chat template.
    #[error("{path}: expected a key `tokenizer.chat_template`, found none")]
    NoTemplate {
        /// The model's file.
        path: String,
    },
    /// The engine refused something, or failed; after a failure all its sessions get [`EngineError::Poisoned`].
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// A saved session cannot be written, read or used.
    #[error(transparent)]
    Saved(#[from] SessionError),
    /// Nothing can be chosen or saved without tokens.
    #[error("the session has no tokens: expected at least one to be fed before")]
    Empty,
    /// More tokens are to be kept than there are.
    #[error("expected at most {tokens} tokens to keep, which the session has, got {keep}")]
    Keep {
        /// What the session has.
        tokens: usize,
        /// What was asked for.
        keep: usize,
    },
    /// The session's [`Canceller`](super::Canceller) was used.
    #[error("cancelled: {computed} of {tokens} tokens are computed")]
    Cancelled {
        /// Tokens of the session in front of which nothing is left to compute.
        computed: usize,
        /// All tokens of the session.
        tokens: usize,
    },
    /// The engine was closed.
    #[error("the engine is closed")]
    Closed,
    /// A call of another thread did not end in time.
    #[error("the engine was still at work after {seconds} s: expected the running call to end in that time")]
    Busy {
        /// The time that it had.
        seconds: f64,
    },
}

impl From<KeepError> for Error {
    fn from(error: KeepError) -> Error {
        match error {
            KeepError::Engine(error) => error.into(),
            KeepError::Load(error) => error.into(),
            KeepError::Session(error) => error.into(),
            KeepError::Reserved { name } => Error::Saved(SessionError::Name {
                name,
                expected: "another name than those of sessions that are saved turn by turn",
                found: "`.turn-` and a number at its end".to_owned(),
            }),
            KeepError::Changed { name } => Error::Saved(SessionError::Refused {
                session: name,
                what: "state".to_owned(),
                expected: "the one that was saved last".to_owned(),
                found: "another".to_owned(),
            }),
            KeepError::Unknown { name } => Error::Saved(SessionError::Name {
                name,
                expected: "the name of a session",
                found: "none of this name".to_owned(),
            }),
        }
    }
}
