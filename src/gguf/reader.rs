//! A cursor over the bytes of a file that checks every read against the end of the file.

use std::fmt;
use std::path::Path;

use super::error::GgufError;

/// What a field is, spelled out only when an error needs it: vocabularies have some hundred thousand elements.
#[derive(Clone, Copy)]
pub(super) struct Field<'a> {
    name: &'a str,
    owner: Option<&'a str>,
    index: Option<u64>,
}

impl<'a> Field<'a> {
    pub(super) fn new(name: &'a str) -> Field<'a> {
        Field { name, owner: None, index: None }
    }

    pub(super) fn of(name: &'a str, owner: &'a str) -> Field<'a> {
        Field { name, owner: Some(owner), index: None }
    }

    pub(super) fn at(self, index: u64) -> Field<'a> {
        Field { index: Some(index), ..self }
    }
}

impl fmt::Display for Field<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)?;
        if let Some(index) = self.index {
            write!(f, " {index}")?;
        }
        if let Some(owner) = self.owner {
            write!(f, " of '{}'", shorten(owner))?;
        }
        Ok(())
    }
}

/// Keeps text from the file short and printable in messages.
pub(crate) fn shorten(text: &str) -> String {
    const SHOWN: usize = 80;
    let mut shown = String::new();
    for char in text.chars().take(SHOWN) {
        match char {
            '\'' => shown.push(char),
            _ => shown.extend(char.escape_debug()),
        }
    }
    if text.chars().nth(SHOWN).is_some() {
        shown.push('…');
    }
    shown
}

/// `23 20 41 ("# A")`, for at most a handful of bytes.
pub(super) fn hex(bytes: &[u8]) -> String {
    let digits: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let text: String = bytes.iter().map(|b| if (32..127).contains(b) { char::from(*b) } else { '.' }).collect();
    format!("{} (\"{text}\")", digits.join(" "))
}

pub(super) struct Reader<'a> {
    path: &'a Path,
    bytes: &'a [u8],
    at: usize,
}

macro_rules! scalars {
    ($($name:ident)*) => {
        $(pub(super) fn $name(&mut self, field: Field<'_>) -> Result<$name, GgufError> {
            const SIZE: usize = size_of::<$name>();
            let mut word = [0; SIZE];
            word.copy_from_slice(self.take(SIZE, field)?);
            Ok($name::from_le_bytes(word))
        })*
    };
}

impl<'a> Reader<'a> {
    pub(super) fn new(path: &'a Path, bytes: &'a [u8]) -> Reader<'a> {
        Reader { path, bytes, at: 0 }
    }

    pub(super) fn offset(&self) -> u64 {
        self.at as u64
    }

    pub(super) fn file_bytes(&self) -> u64 {
        self.bytes.len() as u64
    }

    pub(super) fn path(&self) -> Box<Path> {
        self.path.into()
    }

    fn remaining(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// Up to `count` bytes at the cursor, which stays where it is.
    pub(super) fn peek(&self, count: usize) -> &'a [u8] {
        &self.bytes[self.at..][..count.min(self.remaining())]
    }

    pub(super) fn take(&mut self, count: usize, field: Field<'_>) -> Result<&'a [u8], GgufError> {
        self.need(count as u64, field)?;
        let taken = &self.bytes[self.at..][..count];
        self.at += count;
        Ok(taken)
    }

    scalars!(u8 i8 u16 i16 u32 i32 u64 i64 f32 f64);

    /// A 64-bit count that is no more than `limit`.
    pub(super) fn count(&mut self, limit: u64, field: Field<'_>) -> Result<u64, GgufError> {
        let offset = self.offset();
        let found = self.u64(field)?;
        if found > limit {
            return Err(GgufError::Limit { path: self.path(), what: field.to_string(), offset, limit, found });
        }
        Ok(found)
    }

    /// The bytes of a string, whose length is no more than `limit`.
    pub(super) fn string_bytes(&mut self, limit: u64, field: Field<'_>) -> Result<&'a [u8], GgufError> {
        let offset = self.offset();
        let found = self.u64(field)?;
        if found > limit {
            let what = format!("length of the {field}");
            return Err(GgufError::Limit { path: self.path(), what, offset, limit, found });
        }
        self.need(found, field)?;
        self.take(found as usize, field)
    }

    pub(super) fn string(&mut self, limit: u64, field: Field<'_>) -> Result<String, GgufError> {
        let bytes = self.string_bytes(limit, field)?;
        // Copied before it is checked: the checked bytes are then certain to be those that are kept.
        match String::from_utf8(bytes.to_vec()) {
            Ok(text) => Ok(text),
            Err(error) => {
                let bad = &bytes[error.utf8_error().valid_up_to()..];
                let offset = self.offset() - bad.len() as u64;
                Err(self.invalid(field, offset, "UTF-8", hex(&bad[..bad.len().min(4)])))
            }
        }
    }

    /// Checks that `count` more bytes exist, before anything is allocated for them.
    pub(super) fn need(&self, count: u64, field: Field<'_>) -> Result<(), GgufError> {
        let available = self.remaining() as u64;
        if count > available {
            let (path, what, offset) = (self.path(), field.to_string(), self.offset());
            return Err(GgufError::Truncated { path, what, offset, needed: count, available });
        }
        Ok(())
    }

    pub(super) fn invalid(
        &self,
        field: Field<'_>,
        offset: u64,
        expected: impl Into<String>,
        found: impl Into<String>,
    ) -> GgufError {
        let (what, expected, found) = (field.to_string(), expected.into(), found.into());
        GgufError::Invalid { path: self.path(), what, offset, expected, found }
    }
}
