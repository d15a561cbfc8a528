//! What a saved state depends on: it is exact for the same values of these fields, and worthless for any other.

use std::fmt;

use super::{Layout, SectionKind};
use crate::load::{LoadError, Model, Sources, vocab_source};
use crate::plan::{Extent, Plan};
use crate::text::VocabSource;

/// The version of `docs/numerics.md`: of the order of all roundings, and so of the bits of a state.
pub const CONTRACT_VERSION: u32 = 1;

/// Bytes that are hashed of a tensor's data, from its middle.
const SAMPLE_BYTES: u64 = 4096;
/// Bytes that are read at once of a file's header.
const BLOCK_BYTES: u64 = 1 << 20;

/// Named texts, each of which has to be the same for a state to be taken. Where several differ, the first says most.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    fields: Vec<(String, String)>,
}

/// The first field in which two identities differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    pub field: String,
    pub expected: String,
    pub found: String,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: expected {}, found {}", self.field, self.expected, self.found)
    }
}

impl Identity {
    /// The fields of [`Identity::of`], in their order.
    pub const FIELDS: [&str; 7] = ["architecture", "contract", "cache", "tokenizer", "template", "model", "layout"];

    /// Any fields; an identity of a model has those of [`Identity::FIELDS`].
    pub fn new(fields: Vec<(String, String)>) -> Identity {
        Identity { fields }
    }

    /// What the state of a model's sequences depends on. Of the model's files it reads headers and samples.
    ///
    /// # Errors
    /// When the files cannot be read any more.
    pub fn of(model: &Model, plan: &Plan) -> Result<Identity, LoadError> {
        let source = vocab_source(model.file().metadata())?;
        let template = source.chat_template.as_deref().map_or("none".to_owned(), |text| {
            let mut hash = Hash::new("template");
            hash.bytes(text.as_bytes());
            hash.hex()
        });
        let values = [
            plan.spec.arch.name().to_owned(),
            CONTRACT_VERSION.to_string(),
            plan.options.kv.name().to_owned(),
            tokenizer_hash(&source),
            template,
            model_hash(model)?,
            layout_hash(&Layout::of(plan)),
        ];
        Ok(Identity::new(Identity::FIELDS.map(str::to_owned).into_iter().zip(values).collect()))
    }

    pub fn fields(&self) -> &[(String, String)] {
        &self.fields
    }

    /// The value of a field.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find_map(|(known, value)| (known == name).then_some(value.as_str()))
    }

    /// The first field of `found` that is not what it is here.
    pub fn difference(&self, found: &Identity) -> Option<Mismatch> {
        let mismatch = |field: &str, expected: &str, found: &str| Mismatch {
            field: field.to_owned(),
            expected: expected.to_owned(),
            found: found.to_owned(),
        };
        const NONE: &str = "no such field";
        for (name, expected) in &self.fields {
            match found.field(name) {
                Some(value) if value == expected => {}
                value => return Some(mismatch(name, expected, value.unwrap_or(NONE))),
            }
        }
        if let Some((name, value)) = found.fields.iter().find(|(name, _)| self.field(name).is_none()) {
            return Some(mismatch(name, NONE, value));
        }
        let names = |fields: &[(String, String)]| -> String {
            fields.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ")
        };
        (self != found).then(|| mismatch("order of fields", &names(&self.fields), &names(&found.fields)))
    }
}

/// BLAKE3 over parts that each have their length in front, so that no two lists of parts hash the same bytes.
pub(super) struct Hash(blake3::Hasher);

impl Hash {
    /// `what` keeps hashes of different things apart.
    pub fn new(what: &str) -> Hash {
        let mut hash = Hash(blake3::Hasher::new());
        hash.bytes(format!("bankshot {what}").as_bytes());
        hash
    }

    pub fn number(&mut self, number: u64) {
        self.0.update(&number.to_le_bytes());
    }

    pub fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.update(bytes);
    }

    pub fn finish(&self) -> [u8; 32] {
        *self.0.finalize().as_bytes()
    }

    fn hex(&self) -> String {
        self.0.finalize().to_hex().to_string()
    }
}

fn tokenizer_hash(source: &VocabSource) -> String {
    // Every field is named, so that a new one is not forgotten. The template has a field of its own.
    let VocabSource { model, pre, tokens, token_types, merges, eos, eot, bos, padding, add_bos, chat_template: _ } =
        source;
    let mut hash = Hash::new("tokenizer");
    hash.bytes(model.as_bytes());
    hash.bytes(pre.as_bytes());
    for list in [tokens, merges] {
        hash.number(list.len() as u64);
        list.iter().for_each(|text| hash.bytes(text.as_bytes()));
    }
    hash.number(token_types.len() as u64);
    token_types.iter().for_each(|kind| hash.number(*kind as u64));
    for id in [eos, eot, bos, padding] {
        // No id has more than 32 bits.
        hash.number(id.map_or(u64::MAX, u64::from));
    }
    hash.number(u64::from(*add_bos));
    hash.hex()
}

/// Of each file its length, all before the first tensor's data, and a sample of each tensor. Where the files lie does not matter.
fn model_hash(model: &Model) -> Result<String, LoadError> {
    let file = model.file();
    let sources = Sources::open(file)?;
    let mut hash = Hash::new("model");
    hash.number(file.parts().len() as u64);
    let mut block = Vec::new();
    for (index, part) in file.parts().iter().enumerate() {
        let tensors = || file.tensors().iter().filter(|tensor| tensor.part == index);
        let header_bytes = tensors().map(|tensor| tensor.offset).min().unwrap_or(part.file_bytes());
        hash.number(part.file_bytes());
        hash.number(header_bytes);
        let mut offset = 0;
        while offset < header_bytes {
            block.resize(BLOCK_BYTES.min(header_bytes - offset) as usize, 0);
            sources.read(index, offset, &mut block, "header")?;
            hash.0.update(&block);
            offset += block.len() as u64;
        }
        for tensor in tensors() {
            let bytes = tensor.bytes.min(SAMPLE_BYTES);
            block.resize(bytes as usize, 0);
            let middle = tensor.offset + (tensor.bytes - bytes) / 2;
            sources.read(index, middle, &mut block, &format!("tensor {}", tensor.name))?;
            hash.bytes(&block);
        }
    }
    Ok(hash.hex())
}

fn layout_hash(layout: &Layout) -> String {
    let mut hash = Hash::new("layout");
    hash.number(layout.pieces().len() as u64);
    for piece in layout.pieces() {
        hash.number(piece.layer as u64);
        hash.number(u64::from(SectionKind::Piece(piece.kind).number()));
        let (rows, bytes, tokens) = match piece.extent {
            Extent::Fixed { bytes } => (0, bytes, 0),
            Extent::Rows { row_bytes, tokens_per_row } => (1, row_bytes, tokens_per_row as u64),
        };
        [rows, bytes, tokens].into_iter().for_each(|number| hash.number(number));
    }
    hash.hex()
}
