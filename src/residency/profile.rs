//! How often a model's experts were used, and the file that keeps it.

use std::io::{self, Read};
use std::ops::Range;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::file::{Checksum, PartialFile};
use super::{Trace, USE};
use crate::gguf::quoted;

const FORMAT: &str = "bankshot-expert-profile";
const VERSION: usize = 1;
/// Bytes of a file: three times what the largest counts of the largest shape take, at 21 bytes each.
const FILE_BYTES_MAX: u64 = 256 << 20;

/// Use counts of experts, [layer][expert]. Only their proportions within a layer matter, but for counts so small that
/// they come from few tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    identity: String,
    experts: usize,
    counts: Vec<Vec<u64>>,
}

/// Why there is no profile.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// The file cannot be read.
    #[error("cannot read '{}': {cause}", .path.display())]
    Read { path: Box<Path>, cause: io::Error },
    /// The file cannot be written.
    #[error("cannot write '{}': {cause}", .path.display())]
    Write { path: Box<Path>, cause: io::Error },
    /// The file is larger than any profile.
    #[error("'{}': expected an expert profile of at most {FILE_BYTES_MAX} bytes, found more", .path.display())]
    Size { path: Box<Path> },
    /// The file is not JSON, or has other fields.
    #[error("'{}': expected an expert profile, found: {cause}", .path.display())]
    Json { path: Box<Path>, cause: serde_json::Error },
    /// A field has another value than it must have.
    #[error("'{}': {what}: expected {expected}, found {found}", .path.display())]
    Invalid { path: Box<Path>, what: String, expected: String, found: String },
    /// There is nothing to join.
    #[error("expected use counts of at least one expert layer, found none: no card counts uses")]
    Empty,
    /// Parts of one profile are of different models.
    #[error("expert profiles to join: expected {expected} experts in each layer, found {found}")]
    Join { expected: usize, found: usize },
}

/// The file, field by field.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    format: String,
    version: usize,
    model: String,
    layers: usize,
    experts: usize,
    counts: Vec<Vec<u64>>,
    /// FNV-1a of the model's name, a zero byte, and all counts as little-endian 64-bit integers; 16 hexadecimal digits.
    checksum: String,
}

impl Profile {
    pub(super) fn new(identity: String, experts: usize, counts: Vec<Vec<u64>>) -> Profile {
        Profile { identity, experts, counts }
    }

    /// Counts the uses of a whole trace.
    pub fn of_trace(trace: &Trace) -> Profile {
        let shape = trace.shape();
        let mut counts = vec![vec![0; shape.experts]; shape.expert_bytes.len()];
        for step in trace.steps() {
            for (layer, counts) in counts.iter_mut().enumerate() {
                for expert in step.layer(layer) {
                    counts[usize::from(*expert)] += USE;
                }
            }
        }
        Profile::new(trace.identity().to_owned(), shape.experts, counts)
    }

    /// What model it is of.
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// Use counts in units of 1/[`USE`], [layer][expert].
    pub fn counts(&self) -> &[Vec<u64>] {
        &self.counts
    }

    /// The part of some layers. Layers that it does not have are left out.
    pub fn layers(&self, range: Range<usize>) -> Profile {
        let counts = self.counts.iter().take(range.end).skip(range.start).cloned().collect();
        Profile::new(self.identity.clone(), self.experts, counts)
    }

    /// The profile of a model, from parts that have its layers in their order.
    ///
    /// # Errors
    /// If the parts have no layers, or different numbers of experts.
    pub fn join(identity: &str, parts: impl Iterator<Item = Profile>) -> Result<Profile, ProfileError> {
        let mut joined: Option<Profile> = None;
        for part in parts {
            match &mut joined {
                None => joined = Some(Profile::new(identity.to_owned(), part.experts, part.counts)),
                Some(joined) if joined.experts == part.experts => joined.counts.extend(part.counts),
                Some(joined) => return Err(ProfileError::Join { expected: joined.experts, found: part.experts }),
            }
        }
        joined.filter(|joined| !joined.counts.is_empty()).ok_or(ProfileError::Empty)
    }

    fn checksum(&self) -> String {
        let mut checksum = Checksum::new();
        checksum.add(self.identity.as_bytes());
        checksum.add(&[0]);
        self.counts.iter().flatten().for_each(|count| checksum.add(&count.to_le_bytes()));
        format!("{:016x}", checksum.0)
    }

    /// Writes the file beside its name and renames it, so that a failure leaves what was there.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn save(&self, path: &Path) -> Result<(), ProfileError> {
        let stored = Stored {
            format: FORMAT.to_owned(),
            version: VERSION,
            model: self.identity.clone(),
            layers: self.counts.len(),
            experts: self.experts,
            counts: self.counts.clone(),
            checksum: self.checksum(),
        };
        let write = || {
            let mut file = PartialFile::create(path)?;
            file.put(&serde_json::to_vec(&stored)?)?;
            file.put(b"\n")?;
            file.finish()
        };
        write().map_err(|cause| ProfileError::Write { path: path.into(), cause })
    }

    /// Reads the profile of a model with so many expert layers, and experts in each.
    ///
    /// # Errors
    /// If the file cannot be read, is no whole profile, or is one of another model.
    pub fn load(path: &Path, identity: &str, layers: usize, experts: usize) -> Result<Profile, ProfileError> {
        let read = || {
            let mut bytes = Vec::new();
            std::fs::File::open(path)?.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes)?;
            Ok(bytes)
        };
        let bytes = read().map_err(|cause| ProfileError::Read { path: path.into(), cause })?;
        if bytes.len() as u64 > FILE_BYTES_MAX {
            return Err(ProfileError::Size { path: path.into() });
        }
        let stored: Stored =
            serde_json::from_slice(&bytes).map_err(|cause| ProfileError::Json { path: path.into(), cause })?;
        let check = |what: &str, fits: bool, expected: String, found: String| match fits {
            true => Ok(()),
            false => Err(ProfileError::Invalid { path: path.into(), what: what.to_owned(), expected, found }),
        };
        let text =
            |what: &str, expected: &str, found: &str| check(what, expected == found, quoted(expected), quoted(found));
        let number = |what: &str, expected: usize, found: usize| {
            check(what, expected == found, expected.to_string(), found.to_string())
        };
        text("format", FORMAT, &stored.format)?;
        number("version", VERSION, stored.version)?;
        text("model", identity, &stored.model)?;
        number("layers", layers, stored.layers)?;
        number("experts", experts, stored.experts)?;
        number("layers of counts", layers, stored.counts.len())?;
        for (layer, counts) in stored.counts.iter().enumerate() {
            number(&format!("counts of layer {layer}"), experts, counts.len())?;
        }
        let profile = Profile::new(stored.model, stored.experts, stored.counts);
        text("checksum", &profile.checksum(), &stored.checksum)?;
        Ok(profile)
    }
}
