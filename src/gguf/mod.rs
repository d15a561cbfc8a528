//! Reading of GGUF model files, versions 2 and 3.
//!
//! Opening a file reads its header, metadata and tensor directory and checks all of it: every count, length and offset
//! is compared with a cap and with the size of the file before it is used. Tensor data stays in the mapped file and is
//! handed out as byte slices; it is not interpreted here, and the file is never written to.
//!
//! A model that is split over several files is opened by any of them and is then one [`GgufFile`].

mod directory;
mod error;
pub mod limits;
mod metadata;
mod reader;
mod split;
mod value;

use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};

pub use directory::TensorInfo;
pub use error::{GgufError, PartProblems, TensorProblem, TensorProblems};
pub use metadata::Metadata;
pub use value::{Array, Value};

use limits::{DEFAULT_ALIGNMENT, MAX_ALIGNMENT, MAX_PAIRS, MAX_TENSORS};
pub(crate) use reader::shorten;
use reader::{Field, Reader, hex};
pub(crate) use value::quoted;

/// An open model file, or all files of a split model, whose metadata and tensor directory have been checked.
#[derive(Debug)]
pub struct GgufFile {
    path: PathBuf,
    parts: Vec<Part>,
    version: u32,
    alignment: u64,
    metadata: Metadata,
    tensors: Vec<TensorInfo>,
    index: HashMap<String, usize>,
}

/// One of the files that a model consists of.
#[derive(Debug)]
pub struct Part {
    path: PathBuf,
    bytes: Bytes,
}

impl Part {
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Size of this file in bytes.
    pub fn file_bytes(&self) -> u64 {
        self.bytes.get().len() as u64
    }

    /// The bytes of a file that is part of the program.
    pub fn embedded(&self) -> Option<&'static [u8]> {
        match self.bytes {
            Bytes::Mapped(_) => None,
            Bytes::Static(bytes) => Some(bytes),
        }
    }
}

#[derive(Debug)]
enum Bytes {
    Mapped(memmap2::Mmap),
    Static(&'static [u8]),
}

impl Bytes {
    fn get(&self) -> &[u8] {
        match self {
            Bytes::Mapped(map) => map,
            Bytes::Static(bytes) => bytes,
        }
    }
}

impl GgufFile {
    /// Maps the file at `path` and checks everything but the tensor data. A file that is a part of a split model, which
    /// its `split.*` keys say, is opened together with the other parts beside it.
    ///
    /// The file must not be changed or cut while it is open: the data is read from the mapping.
    ///
    /// # Errors
    /// When the path cannot be read, is no GGUF file, or is damaged, or when parts are missing or do not belong together.
    /// The message names the place, what was expected and what was found; problems of several tensors or parts are
    /// reported together.
    pub fn open(path: &Path) -> Result<GgufFile, GgufError> {
        split::open(path)
    }

    /// Opens one file, whether or not it is all of a model; else as [`open`](Self::open).
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    pub fn open_part(path: &Path) -> Result<GgufFile, GgufError> {
        let failed = |cause| GgufError::Open { path: path.into(), cause };
        // Asked before opening, because opening a pipe would wait for a writer.
        let kind = std::fs::metadata(path).map_err(failed)?;
        if !kind.is_file() {
            let found = if kind.is_dir() { "a directory" } else { "a device, pipe or socket" };
            return Err(GgufError::NotAFile { path: path.into(), found });
        }
        let file = File::open(path).map_err(failed)?;
        // An empty file cannot be mapped everywhere.
        if file.metadata().map_err(failed)?.len() == 0 {
            return GgufFile::parse(path.to_owned(), Bytes::Static(&[]));
        }
        // SAFETY: the mapping is read-only and this process never writes to model files. Another process that changes
        // one while it is open breaks the documented requirement; file bytes are only ever read as plain integers, for
        // which every bit pattern is valid, and no check relies on reading the same data bytes twice.
        let map = unsafe { memmap2::Mmap::map(&file) }.map_err(failed)?;
        GgufFile::parse(path.to_owned(), Bytes::Mapped(map))
    }

    /// Reads a file that is part of the program. [`path`](Self::path) is then `(embedded)`.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    pub fn from_static(bytes: &'static [u8]) -> Result<GgufFile, GgufError> {
        split::alone(GgufFile::parse(PathBuf::from("(embedded)"), Bytes::Static(bytes))?)
    }

    fn parse(path: PathBuf, bytes: Bytes) -> Result<GgufFile, GgufError> {
        let mut reader = Reader::new(&path, bytes.get());
        let version = read_version(&mut reader)?;
        let tensor_count = reader.count(MAX_TENSORS, Field::new("tensor count"))?;
        let pair_count = reader.count(MAX_PAIRS, Field::new("metadata pair count"))?;
        let metadata = Metadata::read(&mut reader, pair_count)?;
        let alignment = alignment(&metadata)?;
        let directory = directory::read(&mut reader, tensor_count, alignment)?;
        let (tensors, index) = (directory.tensors, directory.index);
        let parts = vec![Part { path: path.clone(), bytes }];
        Ok(GgufFile { path, parts, version, alignment, metadata, tensors, index })
    }

    /// Where the file was opened; of a split model, the part that was asked for.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The files that the model consists of, in their order.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// Size of all files in bytes.
    pub fn file_bytes(&self) -> u64 {
        self.parts.iter().map(Part::file_bytes).sum()
    }

    /// Container version, 2 or 3, of the first part.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// Alignment of the tensor data in bytes, a power of two, of the first part.
    pub fn alignment(&self) -> u64 {
        self.alignment
    }

    /// The key-value section; of a split model, that of the first part.
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// All tensors in file order, part after part.
    pub fn tensors(&self) -> &[TensorInfo] {
        &self.tensors
    }

    /// The tensor of this name.
    pub fn tensor(&self, name: &str) -> Option<&TensorInfo> {
        self.index.get(name).map(|i| &self.tensors[*i])
    }

    /// The data of one of this file's tensors, `info.bytes` long: rows of `dims[0]` elements, slowest dimension
    /// outermost. An `info` that reaches beyond this file is not of this file and gives an empty slice.
    pub fn data(&self, info: &TensorInfo) -> &[u8] {
        let range = || {
            let start = usize::try_from(info.offset).ok()?;
            let end = start.checked_add(usize::try_from(info.bytes).ok()?)?;
            self.parts.get(info.part)?.bytes.get().get(start..end)
        };
        range().unwrap_or_default()
    }
}

/// Checks the magic bytes and gives the version.
fn read_version(reader: &mut Reader<'_>) -> Result<u32, GgufError> {
    let magic = reader.peek(4);
    if magic != b"GGUF" {
        return Err(GgufError::Magic { path: reader.path(), found: other_kind(reader) });
    }
    reader.take(4, Field::new("magic"))?;
    let bytes = reader.peek(4);
    let version = reader.u32(Field::new("version"))?;
    match version {
        2 | 3 => Ok(version),
        // Real versions are small, so empty low halves mean that the bytes are swapped.
        _ if version != 0 && version & 0xffff == 0 => {
            Err(GgufError::ByteOrder { path: reader.path(), found: hex(bytes) })
        }
        found => Err(GgufError::Version { path: reader.path(), found }),
    }
}

/// What a file starts with that is no GGUF file, and what it seems to be.
fn other_kind(reader: &Reader<'_>) -> String {
    let start = reader.peek(16);
    let kind = match start {
        [] => return "an empty file".to_owned(),
        [b'P', b'K', 3, 4, ..] => "a zip archive, as PyTorch writes",
        [b'l', b'm', b'g', b'g', ..] | [b't' | b'f' | b'a', b'j' | b'm' | b'l', b'g', b'g', ..] => {
            "a file of the containers before GGUF"
        }
        [_, _, _, _, _, 0, 0, 0, b'{', ..] => "a safetensors file",
        _ if start.starts_with(b"version https://") => "a Git LFS pointer in place of the file",
        _ if start.starts_with(b"<!DOCTYPE") || start.starts_with(b"<html") => "a web page",
        _ => return hex(reader.peek(4)),
    };
    format!("{}, {kind}", hex(reader.peek(4)))
}

fn alignment(metadata: &Metadata) -> Result<u64, GgufError> {
    const KEY: &str = "general.alignment";
    let alignment = metadata.u64(KEY)?.unwrap_or(DEFAULT_ALIGNMENT);
    if !alignment.is_power_of_two() || alignment > MAX_ALIGNMENT {
        let expected = format!("a power of two of at most {MAX_ALIGNMENT}");
        return Err(metadata.error(KEY, expected, alignment.to_string()));
    }
    Ok(alignment)
}
