//! What profiles and traces need of a file: to appear when they are complete, and to be known as unchanged.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// A file that appears under its name when it is complete. Until then, and if it is dropped, the name holds what it held.
pub(super) struct PartialFile {
    file: BufWriter<File>,
    path: PathBuf,
    partial: PathBuf,
}

impl PartialFile {
    pub fn create(path: &Path) -> io::Result<PartialFile> {
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{}.partial", std::process::id()));
        let partial = path.with_file_name(name);
        let file = BufWriter::new(File::create(&partial)?);
        Ok(PartialFile { file, path: path.to_owned(), partial })
    }

    pub fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)
    }

    /// Gives the file its name, after its bytes are on the disk.
    pub fn finish(mut self) -> io::Result<()> {
        self.file.flush()?;
        self.file.get_ref().sync_all()?;
        std::fs::rename(&self.partial, &self.path)
    }
}

impl Drop for PartialFile {
    fn drop(&mut self) {
        // After a finished write there is nothing left under this name.
        let _ = std::fs::remove_file(&self.partial);
    }
}

/// FNV-1a of 64 bits. Each step is a bijection, so that no change of a single byte goes unseen.
#[derive(Clone, Copy)]
pub(super) struct Checksum(pub u64);

impl Checksum {
    pub const fn new() -> Checksum {
        Checksum(0xcbf2_9ce4_8422_2325)
    }

    pub fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}
