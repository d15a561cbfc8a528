//! A model's files against a list of their SHA-256 sums.

use std::collections::HashMap;
use std::fmt::Write;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use sha2::{Digest, Sha256};

use super::gather::gather;
use super::{LoadError, Progress, Sources};
use crate::gguf::{GgufFile, shorten};

/// A list is much shorter; a model that is given as its own list is not read.
const LIST_BYTES_MAX: u64 = 1 << 20;
const BLOCK_BYTES: u64 = 4 << 20;

/// Why a model's files are not known to be what a list says.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SumsError {
    #[error("expected a model of files whose sums can be checked, found the model that is part of the program")]
    Embedded,
    #[error("{path}: cannot read the list of sums: {cause}")]
    List { path: PathBuf, cause: io::Error },
    #[error("{path}: expected a list of sums of at most {LIST_BYTES_MAX} bytes, found more")]
    Long { path: PathBuf },
    #[error(
        "{path}: line {line}: expected 64 hexadecimal digits, two spaces or a space and `*`, and a file name, \
         found '{found}'"
    )]
    Line { path: PathBuf, line: usize, found: String },
    #[error(
        "{path}: line {line}: expected one sum for a file name, found another one for '{name}' than in line {first}"
    )]
    Twice { path: PathBuf, line: usize, first: usize, name: String },
    #[error("{path}: expected a sum for every file of the model, found none for {}", .names.join(", "))]
    Missing { path: PathBuf, names: Vec<String> },
    #[error("the model's files are not those of the list:{}", lines(.0))]
    Different(Vec<Difference>),
    #[error(transparent)]
    Load(#[from] LoadError),
}

/// A file with another sum than expected, both in hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    pub path: PathBuf,
    pub expected: String,
    pub found: String,
}

fn lines(differences: &[Difference]) -> String {
    let line = |Difference { path, expected, found }: &Difference| {
        format!("\n  {}: expected SHA-256 {expected}, found {found}", path.display())
    };
    differences.iter().map(line).collect()
}

/// Hashes all files of a model, and compares their SHA-256 sums with a list as `sha256sum` prints it. Entries belong to
/// the files of the same name, whatever folder they name.
///
/// # Errors
/// When a file has another sum, the list lacks one, or either cannot be read.
pub fn check_sums(file: &GgufFile, list: &Path, progress: &mut dyn FnMut(Progress)) -> Result<(), SumsError> {
    let parts = file.parts();
    if parts.iter().any(|part| part.embedded().is_some()) {
        return Err(SumsError::Embedded);
    }
    let sums = read_list(list)?;
    let sum_of = |path: &Path| path.file_name().and_then(|name| sums.get(name.as_bytes()));
    let missing = parts.iter().filter(|part| sum_of(part.path()).is_none());
    let names: Vec<String> = missing.map(|part| format!("'{}'", part.path().display())).collect();
    if !names.is_empty() {
        return Err(SumsError::Missing { path: list.to_owned(), names });
    }

    let sources = Sources::open(file)?;
    let (next, total) = (AtomicUsize::new(0), file.file_bytes());
    let work = |emit: &mut dyn FnMut(Result<Option<Difference>, LoadError>) -> bool| {
        let mut block = vec![0; BLOCK_BYTES as usize];
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(part) = parts.get(index) else { return };
            let mut hash = Sha256::new();
            for offset in (0..part.file_bytes()).step_by(BLOCK_BYTES as usize) {
                let block = &mut block[..BLOCK_BYTES.min(part.file_bytes() - offset) as usize];
                let read = sources.read(index, offset, block, "SHA-256 sum");
                hash.update(block);
                if !emit(read.map(|()| None)) {
                    return;
                }
            }
            let found = hex(&hash.finalize());
            let Some((_, expected)) = sum_of(part.path()).filter(|(_, sum)| *sum != found) else { continue };
            let difference = Difference { path: part.path().to_owned(), expected: expected.clone(), found };
            if !emit(Ok(Some(difference))) {
                return;
            }
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(parts.len());
    let mut differences = Vec::new();
    gather(threads, &work, |item: Result<Option<Difference>, LoadError>| {
        differences.extend(item?);
        progress(Progress::Sums { done: sources.read_bytes(), total });
        Ok::<(), LoadError>(())
    })?;
    differences.sort_by(|a, b| a.path.cmp(&b.path));
    if differences.is_empty() { Ok(()) } else { Err(SumsError::Different(differences)) }
}

/// Line and sum of every file name.
fn read_list(path: &Path) -> Result<HashMap<Vec<u8>, (usize, String)>, SumsError> {
    let mut text = Vec::new();
    let read = std::fs::File::open(path).and_then(|file| file.take(LIST_BYTES_MAX + 1).read_to_end(&mut text));
    let bytes = read.map_err(|cause| SumsError::List { path: path.to_owned(), cause })?;
    if bytes as u64 > LIST_BYTES_MAX {
        return Err(SumsError::Long { path: path.to_owned() });
    }
    let mut sums = HashMap::new();
    for (line, text) in (1..).zip(text.split_inclusive(|byte| *byte == b'\n')) {
        let text = text.strip_suffix(b"\n").unwrap_or(text);
        let text = text.strip_suffix(b"\r").unwrap_or(text);
        let Some((sum, name)) = entry(text) else {
            let found = shorten(&String::from_utf8_lossy(text));
            return Err(SumsError::Line { path: path.to_owned(), line, found });
        };
        let (first, known) = sums.entry(name.to_vec()).or_insert_with(|| (line, sum.clone()));
        if *known != sum {
            let name = String::from_utf8_lossy(name).into_owned();
            return Err(SumsError::Twice { path: path.to_owned(), line, first: *first, name });
        }
    }
    Ok(sums)
}

/// Sum and file name of a line.
fn entry(line: &[u8]) -> Option<(String, &[u8])> {
    let (sum, rest) = line.split_at_checked(64)?;
    let path = rest.strip_prefix(b"  ").or_else(|| rest.strip_prefix(b" *"))?;
    let name = path.rsplit(|byte| *byte == b'/').next().filter(|name| !name.is_empty())?;
    let sum = std::str::from_utf8(sum).ok().filter(|sum| sum.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
    Some((sum.to_ascii_lowercase(), name))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
