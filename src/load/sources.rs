//! The files of a model, read by position.

use std::fs::File;
use std::io::{self, IoSliceMut};
use std::num::NonZeroU64;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::Advice;
use rustix::io::ReadWriteFlags;

use super::LoadError;
use crate::device::host_free_bytes;
use crate::gguf::{GgufFile, TensorInfo};

/// Bytes of a file that can be read by position.
pub trait ReadAt: Send + Sync {
    /// Fills `to` from `offset` if that needs no waiting; `false` leaves it to [`ReadAt::read`].
    fn read_at_once(&self, offset: u64, to: &mut [u8]) -> bool;

    /// Fills `to` from `offset`.
    ///
    /// # Errors
    /// When a read fails, or the bytes end before `to` is full.
    fn read(&self, offset: u64, to: &mut [u8]) -> io::Result<()>;

    /// Says that these bytes need not be kept in memory. Only a hint.
    fn forget(&self, _offset: u64, _bytes: u64) {}
}

impl ReadAt for File {
    fn read_at_once(&self, offset: u64, to: &mut [u8]) -> bool {
        let len = to.len();
        let read = rustix::io::preadv2(self, &mut [IoSliceMut::new(to)], offset, ReadWriteFlags::NOWAIT);
        // Not every file system can tell; `read` finds out what is really wrong.
        read == Ok(len)
    }

    fn read(&self, offset: u64, to: &mut [u8]) -> io::Result<()> {
        let mut got = 0;
        while got < to.len() {
            match self.read_at(&mut to[got..], offset + got as u64) {
                Ok(0) => return Err(short(to.len(), got)),
                Ok(bytes) => got += bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn forget(&self, offset: u64, bytes: u64) {
        // To the kernel, no bytes mean all of the file.
        if let Some(bytes) = NonZeroU64::new(bytes) {
            let _ = rustix::fs::fadvise(self, offset, Some(bytes), Advice::DontNeed);
        }
    }
}

impl ReadAt for &'static [u8] {
    fn read_at_once(&self, offset: u64, to: &mut [u8]) -> bool {
        self.read(offset, to).is_ok()
    }

    fn read(&self, offset: u64, to: &mut [u8]) -> io::Result<()> {
        let bytes = usize::try_from(offset).ok().and_then(|start| self.get(start..)).unwrap_or_default();
        let Some(bytes) = bytes.get(..to.len()) else { return Err(short(to.len(), bytes.len())) };
        to.copy_from_slice(bytes);
        Ok(())
    }
}

fn short(expected: usize, got: usize) -> io::Error {
    let text = format!("expected {expected} bytes, got {got} before the file's end");
    io::Error::new(io::ErrorKind::UnexpectedEof, text)
}

/// A model's parts, opened to be read from start to end once.
pub struct Sources {
    parts: Vec<(PathBuf, Arc<dyn ReadAt>)>,
    /// Whether pages that were read are given up.
    forget: bool,
    read_bytes: AtomicU64,
}

impl Sources {
    /// Opens the files of a model. If they would fill more than half of the memory that is available, the page cache
    /// gives up what was read.
    ///
    /// # Errors
    /// When a file cannot be opened any more.
    pub fn open(file: &GgufFile) -> Result<Sources, LoadError> {
        let parts = file.parts().iter().map(|part| {
            let path = part.path().to_owned();
            let source: Arc<dyn ReadAt> = match part.embedded() {
                Some(bytes) => Arc::new(bytes),
                None => match File::open(&path) {
                    Ok(file) => Arc::new(file),
                    Err(cause) => return Err(LoadError::Reopen { path, cause }),
                },
            };
            Ok((path, source))
        });
        let forget = host_free_bytes().is_some_and(|available| file.file_bytes() > available / 2);
        Ok(Sources::new(parts.collect::<Result<_, _>>()?, forget))
    }

    /// Parts of a model in their order, each with the path that errors name. `forget`: see [`ReadAt::forget`].
    pub fn new(parts: Vec<(PathBuf, Arc<dyn ReadAt>)>, forget: bool) -> Sources {
        Sources { parts, forget, read_bytes: AtomicU64::new(0) }
    }

    /// Fills `to` with bytes of a part. `what` they are is named in an error.
    ///
    /// # Errors
    /// When they cannot be read.
    ///
    /// # Panics
    /// If there is no such part.
    pub fn read(&self, part: usize, offset: u64, to: &mut [u8], what: &str) -> Result<(), LoadError> {
        let (path, source) = &self.parts[part];
        source.read(offset, to).map_err(|cause| {
            let (path, what) = (path.clone(), what.to_owned());
            LoadError::Read { path, what, offset, bytes: to.len(), cause }
        })?;
        if self.forget {
            source.forget(offset, to.len() as u64);
        }
        self.read_bytes.fetch_add(to.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    /// The stored bytes of a tensor.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn tensor(&self, info: &TensorInfo) -> Result<Vec<u8>, LoadError> {
        let mut bytes = vec![0; info.bytes as usize];
        self.read(info.part, info.offset, &mut bytes, &format!("tensor {}", info.name))?;
        Ok(bytes)
    }

    /// Bytes that were read so far.
    pub fn read_bytes(&self) -> u64 {
        self.read_bytes.load(Ordering::Relaxed)
    }
}
