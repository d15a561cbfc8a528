//! The only place that writes to standard output.

use std::io::{self, StdoutLock, Write};

use anyhow::Result;

/// Standard output.
pub struct Output(StdoutLock<'static>);

impl Output {
    pub fn new() -> Output {
        Output(io::stdout().lock())
    }

    /// Writes text and shows it at once.
    pub fn text(&mut self, text: &str) -> Result<()> {
        self.0.write_all(text.as_bytes())?;
        self.0.flush()?;
        Ok(())
    }

    pub fn line(&mut self, line: impl std::fmt::Display) -> Result<()> {
        writeln!(self.0, "{line}")?;
        self.0.flush()?;
        Ok(())
    }

    /// One JSON object on a line.
    pub fn json(&mut self, value: &serde_json::Value) -> Result<()> {
        self.line(value)
    }
}

/// Whether an error is only that nobody reads the output any more.
pub fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
