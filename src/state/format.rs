//! The format of saved sessions: headers of files and sections. `docs/sessions.md` describes it.

use std::fmt;
use std::path::Path;

use super::codec::Encoding;
use super::disk::ReadFile;
use super::identity::Identity;
use super::{Piece, SessionError};
use crate::plan::{Extent, StateKind};

/// What a file begins with.
pub const MAGIC: [u8; 8] = *b"BSession";
/// What its end mark begins with.
pub const END_MAGIC: [u8; 8] = *b"BSessEnd";
/// The version that is written, and the only one that is read.
pub const FORMAT_VERSION: u32 = 1;
/// Most bytes of [`SectionKind::Notes`].
pub const NOTES_BYTES_MAX: usize = 16 << 20;
/// Most bytes of a header behind the prefix.
const HEADER_BYTES_MAX: usize = 64 << 10;
pub(super) const SECTIONS_MAX: u32 = 1 << 16;
/// Most fields of an identity, and most bytes of a name and of a value.
const FIELDS_MAX: usize = 64;
const NAME_BYTES_MAX: usize = 64;
const VALUE_BYTES_MAX: usize = 512;

/// Name and bytes of a field. The tables below are the format: code finds fields by these names.
pub type Field = (&'static str, usize);

pub const PREFIX: [Field; 4] = [("magic", 8), ("version", 4), ("header bytes", 4), ("header checksum", 32)];
pub const HEADER: [Field; 7] = [
    ("snapshot id", 32),
    ("parent id", 32),
    ("position", 8),
    ("from", 8),
    ("created", 8),
    ("sections", 4),
    ("identity fields", 4),
];
pub const IDENTITY_FIELD: [Field; 2] = [("name bytes", 2), ("value bytes", 2)];
pub const SECTION: [Field; 7] = [
    ("kind", 2),
    ("extent", 1),
    ("encoding", 1),
    ("layer", 4),
    ("stored bytes", 8),
    ("raw bytes", 8),
    ("section checksum", 32),
];
pub const END: [Field; 5] =
    [("end magic", 8), ("sections", 4), ("reserved", 4), ("file bytes", 8), ("structure checksum", 32)];

const PREFIX_BYTES: usize = bytes_of(&PREFIX);
const HEADER_BYTES: usize = bytes_of(&HEADER);
pub(super) const SECTION_BYTES: usize = bytes_of(&SECTION);
pub(super) const END_BYTES: usize = bytes_of(&END);

const fn bytes_of(table: &[Field]) -> usize {
    let (mut sum, mut i) = (0, 0);
    while i < table.len() {
        sum += table[i].1;
        i += 1;
    }
    sum
}

/// A record of one of the tables.
pub(super) struct Record<'a> {
    table: &'a [Field],
    pub bytes: Vec<u8>,
}

impl<'a> Record<'a> {
    pub fn new(table: &'a [Field]) -> Record<'a> {
        Record { table, bytes: vec![0; bytes_of(table)] }
    }

    pub fn range(&self, name: &str) -> std::ops::Range<usize> {
        let at = self.table.iter().position(|(known, _)| *known == name).expect("a field of the table");
        let start = bytes_of(&self.table[..at]);
        start..start + self.table[at].1
    }

    pub fn bytes(&self, name: &str) -> &[u8] {
        &self.bytes[self.range(name)]
    }

    pub fn number(&self, name: &str) -> u64 {
        self.bytes(name).iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
    }

    pub fn hash(&self, name: &str) -> [u8; 32] {
        self.bytes(name).try_into().expect("a field of 32 bytes")
    }

    pub fn set(&mut self, name: &str, value: &[u8]) {
        let range = self.range(name);
        self.bytes[range].copy_from_slice(value);
    }

    pub fn set_number(&mut self, name: &str, value: u64) {
        let bytes = self.range(name).len();
        self.set(name, &value.to_le_bytes()[..bytes]);
    }
}

/// Names the exact state of a sequence: the same for the same identity, tokens, fixed state and logits, whatever file holds it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SnapshotId(pub [u8; 32]);

impl fmt::Display for SnapshotId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for SnapshotId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl SnapshotId {
    /// Of 64 hexadecimal digits, as it is shown.
    pub fn parse(text: &str) -> Option<SnapshotId> {
        blake3::Hash::from_hex(text).ok().map(|hash| SnapshotId(*hash.as_bytes()))
    }
}

/// What a section holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SectionKind {
    Ids,
    Text,
    Notes,
    Logits,
    Piece(StateKind),
}

impl SectionKind {
    pub const ALL: [SectionKind; 11] = [
        SectionKind::Ids,
        SectionKind::Text,
        SectionKind::Notes,
        SectionKind::Logits,
        SectionKind::Piece(StateKind::ConvWindow),
        SectionKind::Piece(StateKind::Matrix),
        SectionKind::Piece(StateKind::Keys),
        SectionKind::Piece(StateKind::Values),
        SectionKind::Piece(StateKind::PooledKeys),
        SectionKind::Piece(StateKind::IndexTail),
        SectionKind::Piece(StateKind::PleHistory),
    ];

    /// As files have it. Sections of a layer are in the order of these numbers.
    pub const fn number(self) -> u16 {
        match self {
            SectionKind::Ids => 1,
            SectionKind::Text => 2,
            SectionKind::Notes => 3,
            SectionKind::Logits => 4,
            SectionKind::Piece(StateKind::ConvWindow) => 16,
            SectionKind::Piece(StateKind::Matrix) => 17,
            SectionKind::Piece(StateKind::Keys) => 18,
            SectionKind::Piece(StateKind::Values) => 19,
            SectionKind::Piece(StateKind::PooledKeys) => 20,
            SectionKind::Piece(StateKind::IndexTail) => 21,
            SectionKind::Piece(StateKind::PleHistory) => 22,
        }
    }

    pub const fn name(self) -> &'static str {
        match self {
            SectionKind::Ids => "ids",
            SectionKind::Text => "text",
            SectionKind::Notes => "notes",
            SectionKind::Logits => "logits",
            SectionKind::Piece(kind) => kind.name(),
        }
    }

    fn from_number(number: u64) -> Option<SectionKind> {
        SectionKind::ALL.into_iter().find(|kind| u64::from(kind.number()) == number)
    }
}

/// How a section's bytes grow with the sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SectionExtent {
    /// It is no piece of state.
    None,
    Fixed,
    Rows,
}

impl SectionExtent {
    pub const ALL: [SectionExtent; 3] = [SectionExtent::None, SectionExtent::Fixed, SectionExtent::Rows];

    pub const fn number(self) -> u8 {
        self as u8
    }

    pub const fn name(self) -> &'static str {
        match self {
            SectionExtent::None => "none",
            SectionExtent::Fixed => "fixed",
            SectionExtent::Rows => "rows",
        }
    }

    pub(super) fn of(piece: &Piece) -> SectionExtent {
        match piece.extent {
            Extent::Fixed { .. } => SectionExtent::Fixed,
            Extent::Rows { .. } => SectionExtent::Rows,
        }
    }
}

/// A section of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    pub kind: SectionKind,
    pub extent: SectionExtent,
    pub encoding: Encoding,
    /// 0 if it is no piece of state.
    pub layer: u32,
    pub stored_bytes: u64,
    pub raw_bytes: u64,
    pub(super) checksum: [u8; 32],
    /// Where its stored bytes begin.
    pub(super) offset: u64,
}

impl Section {
    /// A section before its bytes are known.
    pub(super) fn new(kind: SectionKind, extent: SectionExtent, layer: u32) -> Section {
        let encoding = Encoding::Raw;
        Section { kind, extent, encoding, layer, stored_bytes: 0, raw_bytes: 0, checksum: [0; 32], offset: 0 }
    }

    /// `keys of layer 3`.
    pub fn title(&self) -> String {
        title(self.kind, self.layer)
    }

    /// Sections are in ascending order of it, so that none is there twice.
    pub(super) fn rank(&self) -> (bool, u32, u16) {
        (matches!(self.kind, SectionKind::Piece(_)), self.layer, self.kind.number())
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut record = Record::new(&SECTION);
        record.set_number("kind", self.kind.number().into());
        record.set_number("extent", self.extent.number().into());
        record.set_number("encoding", self.encoding.number().into());
        record.set_number("layer", self.layer.into());
        record.set_number("stored bytes", self.stored_bytes);
        record.set_number("raw bytes", self.raw_bytes);
        record.set("section checksum", &self.checksum);
        record.bytes
    }
}

pub(super) fn title(kind: SectionKind, layer: u32) -> String {
    match kind {
        SectionKind::Piece(_) => format!("{} of layer {layer}", kind.name()),
        _ => kind.name().to_owned(),
    }
}

/// What a file says of itself in front of its sections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub id: SnapshotId,
    /// The snapshot that has the rows before `from`.
    pub parent: Option<SnapshotId>,
    pub position: u64,
    pub from: u64,
    /// Seconds since 1970.
    pub created: u64,
    pub sections: u32,
    pub identity: Identity,
}

impl Header {
    /// Prefix and header, if the identity has no more than a file can hold.
    pub fn encode(&self) -> Result<Vec<u8>, String> {
        let fields = self.identity.fields();
        let mut record = Record::new(&HEADER);
        record.set("snapshot id", &self.id.0);
        record.set("parent id", &self.parent.map_or([0; 32], |id| id.0));
        record.set_number("position", self.position);
        record.set_number("from", self.from);
        record.set_number("created", self.created);
        record.set_number("sections", self.sections.into());
        record.set_number("identity fields", fields.len() as u64);
        let mut header = record.bytes;
        if fields.len() > FIELDS_MAX {
            return Err(format!("{} fields, of at most {FIELDS_MAX}", fields.len()));
        }
        for (name, value) in fields {
            if name.is_empty() || name.len() > NAME_BYTES_MAX || value.len() > VALUE_BYTES_MAX {
                return Err(format!("field {name:?} of {} and {} bytes", name.len(), value.len()));
            }
            let mut record = Record::new(&IDENTITY_FIELD);
            record.set_number("name bytes", name.len() as u64);
            record.set_number("value bytes", value.len() as u64);
            header.extend([&record.bytes, name.as_bytes(), value.as_bytes()].concat());
        }
        let mut prefix = Record::new(&PREFIX);
        prefix.set("magic", &MAGIC);
        prefix.set_number("version", FORMAT_VERSION.into());
        prefix.set_number("header bytes", header.len() as u64);
        let checksum = header_checksum(&prefix, &header);
        prefix.set("header checksum", &checksum);
        Ok([prefix.bytes, header].concat())
    }

    /// Reads prefix and header, with the bytes of both.
    pub fn read(file: &dyn ReadFile, path: &Path) -> Result<(Header, Vec<u8>), SessionError> {
        let io = |cause| SessionError::io("read", path, cause);
        let damaged = |what: &str, expected: String, found: String| SessionError::damaged(path, what, expected, found);
        let file_bytes = file.bytes().map_err(io)?;
        let cut = || damaged("header", "a whole one".to_owned(), format!("{file_bytes} bytes of file"));
        let mut prefix = Record::new(&PREFIX);
        if file_bytes < PREFIX_BYTES as u64 {
            return Err(cut());
        }
        file.read(0, &mut prefix.bytes).map_err(io)?;
        if prefix.bytes("magic") != MAGIC {
            let found = String::from_utf8_lossy(prefix.bytes("magic")).into_owned();
            return Err(damaged("start of a saved session", "\"BSession\"".to_owned(), format!("{found:?}")));
        }
        let version = prefix.number("version") as u32;
        if version != FORMAT_VERSION {
            return Err(SessionError::Version { path: path.into(), expected: FORMAT_VERSION, found: version });
        }
        let header_bytes = prefix.number("header bytes") as usize;
        if !(HEADER_BYTES..=HEADER_BYTES_MAX).contains(&header_bytes) {
            let expected = format!("{HEADER_BYTES} to {HEADER_BYTES_MAX}");
            return Err(damaged("header bytes", expected, header_bytes.to_string()));
        }
        if file_bytes < (PREFIX_BYTES + header_bytes) as u64 {
            return Err(cut());
        }
        let mut bytes = vec![0; header_bytes];
        file.read(PREFIX_BYTES as u64, &mut bytes).map_err(io)?;
        check_hash(path, "header checksum", prefix.hash("header checksum"), header_checksum(&prefix, &bytes))?;

        let (fixed, mut rest) = bytes.split_at(HEADER_BYTES);
        let record = Record { table: &HEADER, bytes: fixed.to_vec() };
        let mut fields = Vec::new();
        let bad_field =
            |index: usize| damaged("identity fields", "whole texts".to_owned(), format!("no field {index}"));
        for index in 0..record.number("identity fields") as usize {
            let head = rest.split_at_checked(bytes_of(&IDENTITY_FIELD)).filter(|_| index < FIELDS_MAX);
            let Some((head, behind)) = head else { return Err(bad_field(index)) };
            let head = Record { table: &IDENTITY_FIELD, bytes: head.to_vec() };
            let mut left = behind;
            let mut text = |name: &str| {
                let (text, behind) = left.split_at_checked(head.number(name) as usize)?;
                left = behind;
                String::from_utf8(text.to_vec()).ok()
            };
            let field = text("name bytes").zip(text("value bytes"));
            fields.push(field.ok_or_else(|| bad_field(index))?);
            rest = left;
        }
        if !rest.is_empty() {
            return Err(damaged("header", "its end".to_owned(), format!("{} bytes more", rest.len())));
        }
        let parent = Some(SnapshotId(record.hash("parent id"))).filter(|id| id.0 != [0; 32]);
        let (position, from) = (record.number("position"), record.number("from"));
        let fits = if parent.is_some() { from > 0 && from < position } else { from == 0 };
        if !fits {
            let expected =
                if parent.is_some() { format!("1 to below {position}") } else { "0 without parent".to_owned() };
            return Err(damaged("from", expected, from.to_string()));
        }
        let header = Header {
            id: SnapshotId(record.hash("snapshot id")),
            parent,
            position,
            from,
            created: record.number("created"),
            sections: record.number("sections") as u32,
            identity: Identity::new(fields),
        };
        Ok((header, [prefix.bytes, bytes].concat()))
    }
}

fn header_checksum(prefix: &Record, header: &[u8]) -> [u8; 32] {
    let mut hash = blake3::Hasher::new();
    hash.update(&prefix.bytes[..prefix.range("header checksum").start]);
    *hash.update(header).finalize().as_bytes()
}

pub(super) fn check_hash(path: &Path, what: &str, expected: [u8; 32], found: [u8; 32]) -> Result<(), SessionError> {
    if expected == found {
        return Ok(());
    }
    Err(SessionError::damaged(path, what, SnapshotId(expected), SnapshotId(found)))
}

/// A section's header, whose stored bytes begin at `offset`.
pub(super) fn section(record: &Record, index: u32, offset: u64, path: &Path) -> Result<Section, SessionError> {
    let damaged = |what: String, expected: &str, found: u64| SessionError::damaged(path, what, expected, found);
    let number = record.number("kind");
    let Some(kind) = SectionKind::from_number(number) else {
        let known = SectionKind::ALL.map(|kind| kind.number().to_string()).join(", ");
        return Err(damaged(format!("section {index}: kind"), &format!("one of {known}"), number));
    };
    let layer = record.number("layer") as u32;
    let title = title(kind, layer);
    let (number, is_piece) = (record.number("extent"), matches!(kind, SectionKind::Piece(_)));
    let extent = SectionExtent::ALL.into_iter().find(|extent| u64::from(extent.number()) == number);
    let Some(extent) = extent.filter(|extent| (*extent != SectionExtent::None) == is_piece) else {
        return Err(damaged(format!("{title}: extent"), if is_piece { "1 or 2" } else { "0" }, number));
    };
    let number = record.number("encoding");
    let encoding = Encoding::from_number(number as u8).filter(|encoding| is_piece || *encoding == Encoding::Raw);
    let Some(encoding) = encoding else {
        return Err(damaged(format!("{title}: encoding"), if is_piece { "0 to 3" } else { "0" }, number));
    };
    if !is_piece && layer != 0 {
        return Err(damaged(format!("{title}: layer"), "0", layer.into()));
    }
    let (stored_bytes, raw_bytes) = (record.number("stored bytes"), record.number("raw bytes"));
    let fits = if encoding == Encoding::Raw { stored_bytes == raw_bytes } else { stored_bytes < raw_bytes };
    if !fits {
        let relation = if encoding == Encoding::Raw { "the raw bytes" } else { "less than the raw bytes" };
        return Err(damaged(format!("{title}: stored bytes"), &format!("{relation}, {raw_bytes}"), stored_bytes));
    }
    let checksum = record.hash("section checksum");
    Ok(Section { kind, extent, encoding, layer, stored_bytes, raw_bytes, checksum, offset })
}
