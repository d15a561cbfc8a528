//! NumPy's file format, version 1.0, for one float32 matrix: a magic, a header of 64-byte multiples, rows.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// Writes a matrix `[rows][columns]` row by row. The file appears under its name when it is complete.
pub struct NpyWriter {
    file: BufWriter<File>,
    path: PathBuf,
    partial: PathBuf,
}

impl NpyWriter {
    pub fn create(path: &Path, rows: usize, columns: usize) -> Result<NpyWriter> {
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{}.partial", std::process::id()));
        let partial = path.with_file_name(name);
        let file = File::create(&partial).with_context(|| format!("cannot write {}", path.display()))?;
        let mut writer = NpyWriter { file: BufWriter::new(file), path: path.to_owned(), partial };
        let mut header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({rows}, {columns}), }}");
        let unpadded = 10 + header.len() + 1;
        header.push_str(&" ".repeat(unpadded.next_multiple_of(64) - unpadded));
        header.push('\n');
        writer.put(b"\x93NUMPY\x01\x00")?;
        writer.put(&(header.len() as u16).to_le_bytes())?;
        writer.put(header.as_bytes())?;
        Ok(writer)
    }

    pub fn row(&mut self, values: &[f32]) -> Result<()> {
        for value in values {
            self.put(&value.to_le_bytes())?;
        }
        Ok(())
    }

    pub fn finish(mut self) -> Result<()> {
        let written = self.file.flush().and_then(|()| std::fs::rename(&self.partial, &self.path));
        self.explain(written)
    }

    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        let written = self.file.write_all(bytes);
        self.explain(written)
    }

    fn explain(&self, result: io::Result<()>) -> Result<()> {
        result.with_context(|| format!("cannot write {}", self.path.display()))
    }
}

impl Drop for NpyWriter {
    fn drop(&mut self) {
        // After a finished write there is nothing left under this name.
        let _ = std::fs::remove_file(&self.partial);
    }
}
