//! What can be wrong with a file, with the place, the expectation and the finding.

use std::fmt;
use std::path::Path;

/// Why a file cannot be used. `offset` is always a byte offset from the start of the file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GgufError {
    /// The file cannot be opened or mapped.
    #[error("'{}': expected a readable GGUF file, found: {cause}", .path.display())]
    Open { path: Box<Path>, cause: std::io::Error },
    /// The path leads to something other than a regular file.
    #[error("'{}': expected a GGUF file, found {found}", .path.display())]
    NotAFile { path: Box<Path>, found: &'static str },
    /// The first four bytes are not `GGUF`.
    #[error("'{}': not a GGUF file: expected 47 47 55 46 (\"GGUF\") at byte 0, found {found}", .path.display())]
    Magic { path: Box<Path>, found: String },
    /// The file was written for a big-endian machine.
    #[error("'{}': expected a little-endian GGUF file, found big-endian version bytes {found} at byte 4", .path.display())]
    ByteOrder { path: Box<Path>, found: String },
    /// The container version is none that can be read.
    #[error("'{}': expected GGUF version 2 or 3 at byte 4, found version {found}", .path.display())]
    Version { path: Box<Path>, found: u32 },
    /// The file ends inside a field.
    #[error("'{}': {what} at byte {offset}: expected {needed} bytes, found {available} before the end of the file", .path.display())]
    Truncated { path: Box<Path>, what: String, offset: u64, needed: u64, available: u64 },
    /// A count or length is above its cap.
    #[error("'{}': {what} at byte {offset}: expected at most {limit}, found {found}", .path.display())]
    Limit { path: Box<Path>, what: String, offset: u64, limit: u64, found: u64 },
    /// A field has a value that the format does not allow.
    #[error("'{}': {what} at byte {offset}: expected {expected}, found {found}", .path.display())]
    Invalid { path: Box<Path>, what: String, offset: u64, expected: String, found: String },
    /// The tensor directory is wrong in one or more places.
    #[error("'{}': {}", .path.display(), .problems)]
    Tensors { path: Box<Path>, problems: Box<TensorProblems> },
    /// A metadata key is absent, or its value is not what was asked for.
    #[error("'{}': metadata key '{key}': expected {expected}, found {found}", .path.display())]
    Metadata { path: Box<Path>, key: String, expected: String, found: String },
    /// Parts of a split model are not beside the one that was opened.
    #[error("'{}': expected all {count} parts of the model in one folder, found no {}", .path.display(), list(.missing))]
    MissingParts { path: Box<Path>, count: u64, missing: Vec<String> },
    /// A part of a split model has a name that does not lead to the other parts.
    #[error(
        "'{}': expected the name '<prefix>-{number:05}-of-{count:05}.gguf', as this is part {number} of {count}, found '{found}'",
        .path.display()
    )]
    PartName { path: Box<Path>, number: u64, count: u64, found: String },
    /// Two parts of a split model have a tensor of the same name.
    #[error("'{}': tensor '{tensor}': expected a name that occurs in one part, found it in '{}' too", .path.display(), .other.display())]
    DuplicateTensor { path: Box<Path>, tensor: String, other: Box<Path> },
    /// The parts of a split model do not belong together in more than one way.
    #[error("'{}': {}", .path.display(), .problems)]
    Parts { path: Box<Path>, problems: Box<PartProblems> },
}

/// All names, up to a number that still can be read.
fn list(names: &[String]) -> String {
    const SHOWN: usize = 100;
    let shown = names[..names.len().min(SHOWN)].join(", ");
    if names.len() > SHOWN { format!("{shown} and {} more", names.len() - SHOWN) } else { shown }
}

/// Everything found wrong among the parts of a split model.
#[derive(Debug, Default)]
pub struct PartProblems {
    /// The first problems, at most [`MAX_LISTED_PROBLEMS`](super::limits::MAX_LISTED_PROBLEMS).
    pub listed: Vec<GgufError>,
    /// Problems beyond those listed.
    pub more: usize,
}

impl PartProblems {
    pub(super) fn push(&mut self, problem: GgufError) {
        if self.listed.len() < super::limits::MAX_LISTED_PROBLEMS {
            self.listed.push(problem);
        } else {
            self.more += 1;
        }
    }

    /// An error if there are problems; a single one says all by itself.
    pub(super) fn report(mut self, path: &Path) -> Result<(), GgufError> {
        if self.listed.len() > 1 {
            return Err(GgufError::Parts { path: path.into(), problems: Box::new(self) });
        }
        self.listed.pop().map_or(Ok(()), Err)
    }
}

impl fmt::Display for PartProblems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} problems among the parts of the model", self.listed.len() + self.more)?;
        for problem in &self.listed {
            write!(f, "\n  {problem}")?;
        }
        if self.more > 0 {
            write!(f, "\n  and {} more", self.more)?;
        }
        Ok(())
    }
}

/// Everything found wrong in one tensor directory.
#[derive(Debug, Default)]
pub struct TensorProblems {
    /// The first problems, in file order, at most [`MAX_LISTED_PROBLEMS`](super::limits::MAX_LISTED_PROBLEMS).
    pub listed: Vec<TensorProblem>,
    /// Problems beyond those listed.
    pub more: usize,
    /// The error that ended the reading of the directory, where one did.
    pub stopped: Option<GgufError>,
}

/// One thing wrong with one tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorProblem {
    /// The tensor's name as far as it could be read.
    pub tensor: String,
    /// Byte offset of the directory entry.
    pub offset: u64,
    /// The field concerned.
    pub what: &'static str,
    pub expected: String,
    pub found: String,
}

impl TensorProblems {
    pub(super) fn push(&mut self, problem: TensorProblem) {
        if self.listed.len() < super::limits::MAX_LISTED_PROBLEMS {
            self.listed.push(problem);
        } else {
            self.more += 1;
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.listed.is_empty() && self.stopped.is_none()
    }
}

impl fmt::Display for TensorProblems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.listed.len() + self.more;
        write!(f, "{count} problem{} in the tensor directory", if count == 1 { "" } else { "s" })?;
        for problem in &self.listed {
            write!(f, "\n  {problem}")?;
        }
        if self.more > 0 {
            write!(f, "\n  and {} more", self.more)?;
        }
        if let Some(error) = &self.stopped {
            write!(f, "\n  reading stopped there: {error}")?;
        }
        Ok(())
    }
}

impl fmt::Display for TensorProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TensorProblem { tensor, offset, what, expected, found } = self;
        write!(f, "tensor '{tensor}' (entry at byte {offset}): {what}: expected {expected}, found {found}")
    }
}
