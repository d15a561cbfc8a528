//! Models whose tensors are spread over several files, named `<prefix>-00001-of-00003.gguf` and so on.

use std::collections::hash_map::Entry;
use std::ffi::{OsStr, OsString};
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::error::{GgufError, PartProblems};
use super::metadata::Metadata;
use super::reader::shorten;
use super::{GgufFile, TensorInfo, Value};

const NO: &str = "split.no";
const COUNT: &str = "split.count";
const TENSORS: &str = "split.tensors.count";
const ARCHITECTURE: &str = "general.architecture";
const NO_KEY: &str = "no such key";

/// What a part says of itself in its metadata.
struct Keys {
    no: u64,
    count: u64,
}

impl Keys {
    /// `None` for a whole file. A file merged from parts may keep the keys, with a count of 0.
    fn read(metadata: &Metadata) -> Result<Option<Keys>, GgufError> {
        let (no, count, tensors) = (metadata.u64(NO)?, metadata.u64(COUNT)?, metadata.u64(TENSORS)?);
        if count == Some(0) || (no, count, tensors) == (None, None, None) {
            return Ok(None);
        }
        let need = |key, value: Option<u64>| {
            value.ok_or_else(|| metadata.error(key, "an integer, as in every part of a split model", NO_KEY))
        };
        need(TENSORS, tensors)?;
        Ok(Some(Keys { no: need(NO, no)?, count: need(COUNT, count)? }))
    }
}

/// What a part's name says of it.
struct Place<'a> {
    path: &'a Path,
    prefix: &'a OsStr,
    /// From 0, unlike in the name.
    index: u64,
    count: u64,
}

impl<'a> Place<'a> {
    /// `None` for a name that is not of a part.
    fn of(path: &'a Path) -> Option<Place<'a>> {
        let stem = path.file_name()?.as_bytes().strip_suffix(b".gguf")?;
        let (prefix, tail) = stem.split_at_checked(stem.len().checked_sub("-00001-of-00003".len())?)?;
        let (number, count) = (tail.get(1..6)?, tail.get(10..)?);
        if tail.first() != Some(&b'-') || tail.get(6..10) != Some(b"-of-") {
            return None;
        }
        let (number, count) = decimal(number).zip(decimal(count))?;
        let index = number.checked_sub(1).filter(|index| *index < count)?;
        Some(Place { path, prefix: OsStr::from_bytes(prefix), index, count })
    }

    fn name(&self, index: u64) -> OsString {
        let mut name = self.prefix.to_owned();
        name.push(format!("-{:05}-of-{:05}.gguf", index + 1, self.count));
        name
    }

    fn sibling(&self, index: u64) -> PathBuf {
        self.path.with_file_name(self.name(index))
    }

    /// Looks for all parts, so that what lacks can be fetched in one go.
    fn check_all_there(&self) -> Result<(), GgufError> {
        let missing: Vec<String> = (0..self.count)
            .filter(|index| is_missing(&self.sibling(*index)))
            .map(|index| format!("'{}'", self.name(index).to_string_lossy()))
            .collect();
        if missing.is_empty() {
            return Ok(());
        }
        Err(GgufError::MissingParts { path: self.path.into(), count: self.count, missing })
    }

    fn has_others(&self) -> bool {
        (0..self.count).any(|index| index != self.index && !is_missing(&self.sibling(index)))
    }
}

fn decimal(digits: &[u8]) -> Option<u64> {
    digits.iter().try_fold(0, |value, byte| byte.is_ascii_digit().then(|| 10 * value + u64::from(byte - b'0')))
}

fn is_missing(path: &Path) -> bool {
    std::fs::metadata(path).is_err_and(|error| error.kind() == ErrorKind::NotFound)
}

/// Opens a whole file, or all parts of the model that the file at `path` is one part of.
pub(super) fn open(path: &Path) -> Result<GgufFile, GgufError> {
    let place = Place::of(path);
    let given = match GgufFile::open_part(path) {
        Ok(given) => given,
        Err(error) => {
            let place = place.filter(|place| is_missing(path) && place.has_others());
            return Err(place.and_then(|place| place.check_all_there().err()).unwrap_or(error));
        }
    };
    let Some(keys) = Keys::read(&given.metadata)? else { return Ok(given) };
    let Some(place) = place else { return alone(given) };
    // The other parts are looked for by this count, so it has to be right before any of them is said to be missing.
    check_count(&given.metadata, place.index, place.count, keys.count)?;
    place.check_all_there()?;
    let mut given = Some(given);
    let mut part = |index: u64| match given.take_if(|_| index == place.index) {
        Some(given) => Ok(given),
        None => GgufFile::open_part(&place.sibling(index)),
    };
    let first = part(0)?;
    let rest = (1..place.count).map(part).collect::<Result<_, _>>()?;
    join(path, first, rest)
}

/// A file whose name says nothing of other parts has to be whole, or the only part.
pub(super) fn alone(file: GgufFile) -> Result<GgufFile, GgufError> {
    match Keys::read(&file.metadata)? {
        None => Ok(file),
        Some(Keys { count: 1, .. }) => {
            let path = file.path.clone();
            join(&path, file, Vec::new())
        }
        Some(Keys { no, count, .. }) => {
            let found = file.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            Err(GgufError::PartName { path: file.path.into(), number: no.saturating_add(1), count, found })
        }
    }
}

/// Makes one file of all the parts, which are in their order.
fn join(path: &Path, first: GgufFile, rest: Vec<GgufFile>) -> Result<GgufFile, GgufError> {
    let count = 1 + rest.len() as u64;
    let mut problems = PartProblems::default();
    for (index, part) in (0..).zip(std::iter::once(&first).chain(&rest)) {
        if let Err(error) = check_part(&first, part, index, count) {
            problems.push(error);
        }
    }
    problems.report(path)?;

    let mut whole = GgufFile { path: path.to_owned(), ..first };
    let mut problems = PartProblems::default();
    for (part, file) in (1..).zip(rest) {
        for tensor in file.tensors {
            match whole.index.entry(tensor.name.clone()) {
                Entry::Vacant(entry) => {
                    entry.insert(whole.tensors.len());
                    whole.tensors.push(TensorInfo { part, ..tensor });
                }
                Entry::Occupied(entry) => {
                    let other = &whole.parts[whole.tensors[*entry.get()].part];
                    let (path, other) = (file.path.as_path().into(), other.path().into());
                    problems.push(GgufError::DuplicateTensor { path, tensor: shorten(&tensor.name), other });
                }
            }
        }
        whole.parts.extend(file.parts);
    }
    problems.report(path)?;

    let (found, total) = (whole.tensors.len() as u64, whole.metadata.u64(TENSORS)?);
    if total.is_some_and(|total| total != found) {
        let expected = format!("{found}, the tensors in the model's parts");
        return Err(whole.metadata.error(TENSORS, expected, shown(&whole.metadata, TENSORS)));
    }
    Ok(whole)
}

/// Checks that a part is the one that its name says, and of the same model as the first.
fn check_part(first: &GgufFile, part: &GgufFile, index: u64, count: u64) -> Result<(), GgufError> {
    let metadata = &part.metadata;
    let Some(keys) = Keys::read(metadata)? else { return check_count(metadata, index, count, 0) };
    check_count(metadata, index, count, keys.count)?;
    if keys.no != index {
        let expected = format!("{index} for part {} of {count}", index + 1);
        return Err(metadata.error(NO, expected, shown(metadata, NO)));
    }
    for key in [TENSORS, ARCHITECTURE] {
        // Parts behind the first need not have all keys. What is wrong with the first is reported for itself.
        let (Some(ours), Some(theirs)) = (metadata.get(key), first.metadata.get(key)) else { continue };
        let same = match (ours.integer(), theirs.integer()) {
            (Some(ours), Some(theirs)) => ours == theirs,
            _ => ours == theirs,
        };
        if !same {
            let expected = format!("{} as in '{}'", theirs.summary(), first.path.display());
            return Err(metadata.error(key, expected, ours.summary()));
        }
    }
    Ok(())
}

fn check_count(metadata: &Metadata, index: u64, count: u64, found: u64) -> Result<(), GgufError> {
    if found == count {
        return Ok(());
    }
    Err(metadata.error(COUNT, format!("{count} for part {} of {count}", index + 1), shown(metadata, COUNT)))
}

fn shown(metadata: &Metadata, key: &str) -> String {
    metadata.get(key).map_or(NO_KEY.to_owned(), Value::summary)
}
