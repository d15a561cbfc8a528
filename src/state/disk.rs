//! The file operations that saved sessions need, so that tests can let each of them fail.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::Path;
use std::time::SystemTime;

/// What a folder of sessions asks of the operating system.
pub trait Disk: Send + Sync {
    /// Creates a folder that only its owner can read, and those above it, if they are missing.
    fn create_dir(&self, dir: &Path) -> io::Result<()>;
    /// Names of all that is in a folder; those that are not UTF-8 are left out.
    fn list(&self, dir: &Path) -> io::Result<Vec<String>>;
    /// Opens a regular file to be read. Must not wait for a writer, as a pipe would.
    fn open(&self, path: &Path) -> io::Result<Box<dyn ReadFile>>;
    /// Creates a file that only its owner can read, or empties it.
    fn create(&self, path: &Path) -> io::Result<Box<dyn WriteFile>>;
    fn set_modified(&self, path: &Path, time: SystemTime) -> io::Result<()>;
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Gives a file a second name. An error if there is something of this name.
    fn link(&self, from: &Path, to: &Path) -> io::Result<()>;
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Brings names in a folder to the disk.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;
    /// Takes a lock that no other process or thread has then; `None` if one has it.
    fn lock(&self, path: &Path) -> io::Result<Option<Lock>>;
}

/// A file that is read by position.
pub trait ReadFile: Send + Sync {
    fn bytes(&self) -> io::Result<u64>;
    fn modified(&self) -> io::Result<SystemTime>;
    /// Fills `to` from `offset`; an error if the file ends before.
    fn read(&self, offset: u64, to: &mut [u8]) -> io::Result<()>;
}

/// A file that is written from its start.
pub trait WriteFile: Send {
    /// Writes all of the bytes.
    fn write(&mut self, bytes: &[u8]) -> io::Result<()>;
    /// Brings what was written to the disk.
    fn sync(&mut self) -> io::Result<()>;
}

/// Held until it is dropped.
#[derive(Debug)]
pub struct Lock(#[expect(dead_code, reason = "kept open")] File);

/// The operating system's own files.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealDisk;

impl Disk for RealDisk {
    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        if dir.is_dir() {
            return Ok(());
        }
        fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
        match dir.parent() {
            Some(parent) if parent != Path::new("") => self.sync_dir(parent),
            _ => self.sync_dir(Path::new(".")),
        }
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let names = fs::read_dir(dir)?.map(|entry| Ok(entry?.file_name().into_string().ok()));
        names.filter_map(Result::transpose).collect()
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn ReadFile>> {
        if !fs::metadata(path)?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "expected a regular file"));
        }
        Ok(Box::new(File::open(path)?))
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn WriteFile>> {
        let mut options = File::options();
        Ok(Box::new(options.write(true).create(true).truncate(true).mode(0o600).open(path)?))
    }

    fn set_modified(&self, path: &Path, time: SystemTime) -> io::Result<()> {
        // Times of a file that cannot be written can be set by its owner.
        File::open(path)?.set_modified(time)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::hard_link(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        File::open(dir)?.sync_all()
    }

    fn lock(&self, path: &Path) -> io::Result<Option<Lock>> {
        let file = File::options().write(true).create(true).truncate(false).open(path)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Lock(file))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

impl ReadFile for File {
    fn bytes(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn modified(&self) -> io::Result<SystemTime> {
        self.metadata()?.modified()
    }

    fn read(&self, offset: u64, to: &mut [u8]) -> io::Result<()> {
        self.read_exact_at(to, offset)
    }
}

impl WriteFile for File {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write_all(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_all()
    }
}
