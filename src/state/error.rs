//! What can be wrong with saved sessions.

use std::io;
use std::path::Path;

use super::identity::Mismatch;

/// Why a session was not saved, read or deleted. `session` is its name.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// A name that no session can have.
    #[error("session name {name:?}: expected {expected}, found {found}")]
    Name { name: String, expected: &'static str, found: String },
    /// There is no file of this name.
    #[error("session {session}: expected a file '{}', found none", .path.display())]
    NotFound { session: String, path: Box<Path> },
    /// The operating system refused something.
    #[error("cannot {what} '{}': {cause}", .path.display())]
    Io { what: &'static str, path: Box<Path>, cause: io::Error },
    /// Another process or thread writes into the folder.
    #[error("'{}': expected the lock within {seconds} s, found it held by another writer", .path.display())]
    Locked { path: Box<Path>, seconds: u64 },
    /// A file of another version.
    #[error("'{}': version: expected {expected}, found {found}", .path.display())]
    Version { path: Box<Path>, expected: u32, found: u32 },
    /// A file that is not what was written, or was never right.
    #[error("'{}': {what}: expected {expected}, found {found}", .path.display())]
    Damaged { path: Box<Path>, what: String, expected: String, found: String },
    /// A session of another model, or of the same one used in another way.
    #[error("session {session}: {}", .mismatch)]
    Identity { session: String, mismatch: Mismatch },
    /// What should be saved is no state that the layout describes.
    #[error("session {session}: {what}: expected {expected}, got {found}")]
    Refused { session: String, what: String, expected: String, found: String },
    /// A longer sequence than there is room for.
    #[error("session {session}: position: expected at most {expected} tokens of context, found {found}")]
    Context { session: String, expected: usize, found: u64 },
    /// The host has not enough memory.
    #[error("session {session}: host memory: expected {expected} bytes, found {found} free")]
    Memory { session: String, expected: u64, found: u64 },
    /// What a session is a delta of is not there, or does not fit.
    #[error("session {session}: parent {parent}: {what}: expected {expected}, found {found}")]
    Parent { session: String, parent: String, what: &'static str, expected: String, found: String },
    /// Other sessions are deltas of this one.
    #[error("session {session}: expected no session to be a delta of it, found {}", .by.join(", "))]
    Needed { session: String, by: Vec<String> },
    /// More bytes than the caller allows.
    #[error("session {session}: {what}: expected at most {expected} bytes, got {found}")]
    Limit { session: String, what: &'static str, expected: u64, found: u64 },
}

impl SessionError {
    pub(super) fn io(what: &'static str, path: &Path, cause: io::Error) -> SessionError {
        SessionError::Io { what, path: path.into(), cause }
    }

    pub(super) fn damaged(
        path: &Path,
        what: impl Into<String>,
        expected: impl ToString,
        found: impl ToString,
    ) -> SessionError {
        let (expected, found) = (expected.to_string(), found.to_string());
        SessionError::Damaged { path: path.into(), what: what.into(), expected, found }
    }

    pub(super) fn refused(
        session: &str,
        what: impl Into<String>,
        expected: impl ToString,
        found: impl ToString,
    ) -> SessionError {
        let (expected, found) = (expected.to_string(), found.to_string());
        SessionError::Refused { session: session.to_owned(), what: what.into(), expected, found }
    }
}
