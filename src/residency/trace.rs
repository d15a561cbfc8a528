//! What a model's routers chose, step by step, as a file. `docs/residency.md` has the format.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use super::file::{Checksum, PartialFile};
use super::{EXPERTS_MAX, IDENTITY_BYTES_MAX, LAYERS_MAX, Shape};
use crate::gguf::quoted;

const MAGIC: [u8; 8] = *b"BSroutes";
const VERSION: u32 = 1;
/// Bytes in front of a step's ids.
const STEP_HEAD_BYTES: u64 = 12;

/// Why there is no trace. `offset` counts bytes from the start of the file.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The file cannot be read.
    #[error("cannot read '{}': {cause}", .path.display())]
    Read { path: Box<Path>, cause: io::Error },
    /// The file cannot be written.
    #[error("cannot write '{}': {cause}", .path.display())]
    Write { path: Box<Path>, cause: io::Error },
    /// The file ends inside a field.
    #[error("'{}': {what} at byte {offset}: expected {needed} bytes, found {found} before the end of the file", .path.display())]
    Truncated { path: Box<Path>, what: String, offset: u64, needed: u64, found: u64 },
    /// A field has a value that the format does not allow.
    #[error("'{}': {what} at byte {offset}: expected {expected}, found {found}", .path.display())]
    Invalid { path: Box<Path>, what: String, offset: u64, expected: String, found: String },
    /// What should be written is no trace, or no step of this one.
    #[error("routing trace, {what}: expected {expected}, got {found}")]
    Refused { what: String, expected: String, found: String },
}

fn refuse_unless(fits: bool, what: &str, expected: String, found: usize) -> Result<(), TraceError> {
    match fits {
        true => Ok(()),
        false => Err(TraceError::Refused { what: what.to_owned(), expected, found: found.to_string() }),
    }
}

/// Writes a trace step by step. The file appears under its name when it is complete.
pub struct TraceWriter {
    /// `None` after a failed write: the rest would not follow what is there.
    file: Option<PartialFile>,
    path: Box<Path>,
    shape: Shape,
    steps: u64,
    checksum: Checksum,
}

impl TraceWriter {
    /// Begins the trace of a model, with all of its expert layers.
    ///
    /// # Errors
    /// If the shape or the length of the identity is out of bounds, or the file cannot be written.
    pub fn create(path: &Path, identity: &str, shape: &Shape) -> Result<TraceWriter, TraceError> {
        let (layers, experts, used) = (shape.expert_bytes.len(), shape.experts, shape.used);
        refuse_unless((1..=LAYERS_MAX).contains(&layers), "layers", format!("1 to {LAYERS_MAX}"), layers)?;
        refuse_unless((1..=EXPERTS_MAX).contains(&experts), "experts", format!("1 to {EXPERTS_MAX}"), experts)?;
        refuse_unless((1..=experts).contains(&used), "used experts", format!("1 to {experts}"), used)?;
        let bytes = identity.len();
        refuse_unless(
            bytes <= IDENTITY_BYTES_MAX,
            "bytes of identity",
            format!("at most {IDENTITY_BYTES_MAX}"),
            bytes,
        )?;
        let file = PartialFile::create(path).map_err(|cause| TraceError::Write { path: path.into(), cause })?;
        let mut writer = TraceWriter {
            file: Some(file),
            path: path.into(),
            shape: shape.clone(),
            steps: 0,
            checksum: Checksum::new(),
        };
        let mut header = MAGIC.to_vec();
        for number in [VERSION, layers as u32, experts as u32, used as u32, bytes as u32] {
            header.extend(number.to_le_bytes());
        }
        header.extend(identity.as_bytes());
        header.extend(shape.expert_bytes.iter().flat_map(|bytes| bytes.to_le_bytes()));
        writer.put(&header)?;
        Ok(writer)
    }

    /// Adds a step: the position of its first token, its tokens, and the chosen ids of each layer, [tokens][used].
    ///
    /// # Errors
    /// If these are not a step of the model, which changes nothing, or if the file cannot be written.
    pub fn step(&mut self, position: usize, tokens: usize, layers: &[&[u32]]) -> Result<(), TraceError> {
        let Shape { experts, used, expert_bytes } = &self.shape;
        let most = u32::MAX as usize;
        refuse_unless((1..=most).contains(&tokens), "tokens of a step", format!("1 to {most}"), tokens)?;
        refuse_unless(
            layers.len() == expert_bytes.len(),
            "layers of a step",
            expert_bytes.len().to_string(),
            layers.len(),
        )?;
        let ids = tokens * used;
        let mut step = Vec::with_capacity(STEP_HEAD_BYTES as usize + 2 * ids * layers.len());
        step.extend((position as u64).to_le_bytes());
        step.extend((tokens as u32).to_le_bytes());
        for (layer, chosen) in layers.iter().enumerate() {
            refuse_unless(chosen.len() == ids, &format!("ids of layer {layer}"), ids.to_string(), chosen.len())?;
            for id in *chosen {
                let fits = (*id as usize) < *experts;
                refuse_unless(fits, &format!("id in layer {layer}"), format!("less than {experts}"), *id as usize)?;
                step.extend((*id as u16).to_le_bytes());
            }
        }
        self.put(&step)?;
        self.steps += 1;
        Ok(())
    }

    /// Ends the trace and gives the file its name.
    ///
    /// # Errors
    /// If the file cannot be written, or could not before.
    pub fn finish(mut self) -> Result<(), TraceError> {
        let steps = self.steps.to_le_bytes();
        self.put(&steps)?;
        self.put(&0u32.to_le_bytes())?;
        let checksum = self.checksum.0.to_le_bytes();
        self.put(&checksum)?;
        let finished = self.file.take().map_or(Ok(()), PartialFile::finish);
        finished.map_err(|cause| TraceError::Write { path: self.path.clone(), cause })
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), TraceError> {
        let written = match &mut self.file {
            Some(file) => file.put(bytes),
            None => Err(io::Error::other("an earlier write failed")),
        };
        self.checksum.add(bytes);
        written.map_err(|cause| {
            self.file = None;
            TraceError::Write { path: self.path.clone(), cause }
        })
    }
}

/// What one chunk of tokens chose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    position: u64,
    tokens: usize,
    layers: usize,
    /// [layer][token][used]
    ids: Vec<u16>,
}

impl Step {
    /// Position of the first token in its sequence.
    pub fn position(&self) -> u64 {
        self.position
    }

    pub fn tokens(&self) -> usize {
        self.tokens
    }

    /// What a layer's router chose, [tokens][used].
    pub fn layer(&self, layer: usize) -> &[u16] {
        let ids = self.ids.len() / self.layers;
        &self.ids[layer * ids..][..ids]
    }
}

/// A trace in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    identity: String,
    shape: Shape,
    steps: Vec<Step>,
}

impl Trace {
    /// What model it is of.
    pub fn identity(&self) -> &str {
        &self.identity
    }

    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Reads a whole trace. It takes about as much memory as the file is long.
    ///
    /// # Errors
    /// If the file cannot be read, or is not a whole and unchanged trace.
    pub fn load(path: &Path) -> Result<Trace, TraceError> {
        let file = File::open(path).map_err(|cause| TraceError::Read { path: path.into(), cause })?;
        let mut source = Source { reader: BufReader::new(file), path, offset: 0, checksum: Checksum::new() };
        let magic = source.bytes("start of a routing trace", MAGIC.len() as u64)?;
        source.expect("start of a routing trace", 8, magic == MAGIC, quoted("BSroutes"), || {
            quoted(&String::from_utf8_lossy(&magic))
        })?;
        let version = source.u32("version")?;
        source.expect("version", 4, version == VERSION, VERSION.to_string(), || version.to_string())?;
        let layers = source.number("layers", 1, LAYERS_MAX)?;
        let experts = source.number("experts", 1, EXPERTS_MAX)?;
        let used = source.number("used experts", 1, experts)?;
        let identity_bytes = source.number("bytes of identity", 0, IDENTITY_BYTES_MAX)? as u64;
        let identity = source.bytes("identity", identity_bytes)?;
        let identity = String::from_utf8(identity).map_err(|error| {
            source.invalid("identity", identity_bytes, "UTF-8 text", &error.utf8_error().to_string())
        })?;
        let expert_bytes = source.bytes("bytes of experts", 8 * layers as u64)?;
        let expert_bytes = expert_bytes.as_chunks::<8>().0.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect();
        let mut steps = Vec::new();
        loop {
            let position = source.u64("position of a step, or number of steps")?;
            let tokens = source.u32("tokens of a step, or 0 at the end")?;
            if tokens == 0 {
                let found = steps.len() as u64;
                source.expect("number of steps", STEP_HEAD_BYTES, position == found, found.to_string(), || {
                    position.to_string()
                })?;
                break;
            }
            let what = format!("ids of step {}", steps.len());
            // Below 2^32 * 2^10 * 2^12 * 2.
            let bytes = source.bytes(&what, 2 * layers as u64 * u64::from(tokens) * used as u64)?;
            let ids: Vec<u16> = bytes.as_chunks::<2>().0.iter().map(|id| u16::from_le_bytes(*id)).collect();
            if let Some(at) = ids.iter().position(|id| usize::from(*id) >= experts) {
                let back = bytes.len() as u64 - 2 * at as u64;
                return Err(source.invalid(&what, back, &format!("less than {experts}"), &ids[at].to_string()));
            }
            steps.push(Step { position, tokens: tokens as usize, layers, ids });
        }
        let expected = source.checksum.0;
        let found = source.u64("checksum")?;
        source.expect("checksum", 8, found == expected, format!("{expected:016x}"), || format!("{found:016x}"))?;
        let rest = source.some("end", 1)?;
        source.expect("end", rest.len() as u64, rest.is_empty(), "the end of the file".to_owned(), || {
            "more bytes".to_owned()
        })?;
        Ok(Trace { identity, shape: Shape { experts, used, expert_bytes }, steps })
    }
}

/// A file that is read from its start to its end.
struct Source<'a> {
    reader: BufReader<File>,
    path: &'a Path,
    offset: u64,
    checksum: Checksum,
}

impl Source<'_> {
    /// At most so many bytes. Memory grows with what comes, not with what was asked for.
    fn some(&mut self, what: &str, most: u64) -> Result<Vec<u8>, TraceError> {
        let mut bytes = Vec::new();
        let read = self.reader.by_ref().take(most).read_to_end(&mut bytes);
        read.map_err(|cause| {
            let cause = io::Error::new(cause.kind(), format!("{what} at byte {}: {cause}", self.offset));
            TraceError::Read { path: self.path.into(), cause }
        })?;
        self.checksum.add(&bytes);
        self.offset += bytes.len() as u64;
        Ok(bytes)
    }

    fn bytes(&mut self, what: &str, needed: u64) -> Result<Vec<u8>, TraceError> {
        let offset = self.offset;
        let bytes = self.some(what, needed)?;
        let found = bytes.len() as u64;
        if found < needed {
            return Err(TraceError::Truncated { path: self.path.into(), what: what.to_owned(), offset, needed, found });
        }
        Ok(bytes)
    }

    fn u32(&mut self, what: &str) -> Result<u32, TraceError> {
        let bytes = self.bytes(what, 4)?;
        Ok(bytes.iter().rev().fold(0, |number, byte| number << 8 | u32::from(*byte)))
    }

    fn u64(&mut self, what: &str) -> Result<u64, TraceError> {
        let bytes = self.bytes(what, 8)?;
        Ok(bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    fn number(&mut self, what: &str, least: usize, most: usize) -> Result<usize, TraceError> {
        let number = self.u32(what)? as usize;
        let fits = (least..=most).contains(&number);
        self.expect(what, 4, fits, format!("{least} to {most}"), || number.to_string())?;
        Ok(number)
    }

    /// An error about what began `back` bytes before.
    fn invalid(&self, what: &str, back: u64, expected: &str, found: &str) -> TraceError {
        let (path, what, offset) = (self.path.into(), what.to_owned(), self.offset - back);
        TraceError::Invalid { path, what, offset, expected: expected.to_owned(), found: found.to_owned() }
    }

    fn expect(
        &self,
        what: &str,
        back: u64,
        fits: bool,
        expected: String,
        found: impl Fn() -> String,
    ) -> Result<(), TraceError> {
        if fits { Ok(()) } else { Err(self.invalid(what, back, &expected, &found())) }
    }
}
