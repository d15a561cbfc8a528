//! The key-value section: an ordered map with typed access.

use std::collections::HashMap;
use std::path::PathBuf;

use super::error::GgufError;
use super::limits::MAX_KEY_BYTES;
use super::reader::{Field, Reader, shorten};
use super::value::{Array, Value};

/// The metadata of a file, in file order.
///
/// Every typed getter gives `Ok(None)` for an absent key and an error that names the key, the expected and the found
/// type for a value of another kind. Integer getters accept every integer width, since writers differ in their choice.
#[derive(Clone, Debug, Default)]
pub struct Metadata {
    path: PathBuf,
    pairs: Vec<(String, Value)>,
    index: HashMap<String, usize>,
}

impl Metadata {
    pub(super) fn read(reader: &mut Reader<'_>, count: u64) -> Result<Metadata, GgufError> {
        let mut metadata = Metadata { path: reader.path().into(), ..Metadata::default() };
        for i in 0..count {
            let offset = reader.offset();
            let field = Field::new("metadata key").at(i);
            let key = reader.string(MAX_KEY_BYTES, field)?;
            if key.is_empty() {
                return Err(reader.invalid(field, offset, "a name", "an empty string"));
            }
            if let Some(first) = metadata.index.insert(key.clone(), metadata.pairs.len()) {
                let found = format!("'{}' again, which is also key {first}", shorten(&key));
                return Err(reader.invalid(field, offset, "a key that occurs once", found));
            }
            let value = Value::read(reader, &key)?;
            metadata.pairs.push((key, value));
        }
        Ok(metadata)
    }

    /// Number of pairs.
    pub fn len(&self) -> usize {
        self.pairs.len()
    }

    /// True for a file without metadata.
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    /// All pairs in file order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.pairs.iter().map(|(key, value)| (key.as_str(), value))
    }

    /// The value of `key`, whatever its type.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.index.get(key).map(|i| &self.pairs[*i].1)
    }

    /// `general.architecture`.
    ///
    /// # Errors
    /// When the key is absent or no string. Parts of a split file after the first have no such key.
    pub fn architecture(&self) -> Result<&str, GgufError> {
        const KEY: &str = "general.architecture";
        self.str(KEY)?.ok_or_else(|| self.missing(KEY, "a string"))
    }

    /// The error for a key that has to be there and is not.
    pub fn missing(&self, key: &str, expected: &str) -> GgufError {
        self.error(key, expected, "no such key")
    }

    /// An integer of any width that is not negative.
    pub fn u64(&self, key: &str) -> Result<Option<u64>, GgufError> {
        self.typed(key, "an integer of at least 0", |value| u64::try_from(value.integer()?).ok())
    }

    /// An integer of any width up to `i64::MAX`.
    pub fn i64(&self, key: &str) -> Result<Option<i64>, GgufError> {
        self.typed(key, "an integer of at most 63 bits", |value| i64::try_from(value.integer()?).ok())
    }

    /// An `f32`, or an `f64` rounded to one.
    pub fn f32(&self, key: &str) -> Result<Option<f32>, GgufError> {
        self.typed(key, "a floating-point number", |value| match value {
            Value::F32(v) => Some(*v),
            Value::F64(v) => Some(*v as f32),
            _ => None,
        })
    }

    /// A bool.
    pub fn bool(&self, key: &str) -> Result<Option<bool>, GgufError> {
        self.typed(key, "a bool", |value| if let Value::Bool(v) = value { Some(*v) } else { None })
    }

    /// A string.
    pub fn str(&self, key: &str) -> Result<Option<&str>, GgufError> {
        self.typed(key, "a string", |value| if let Value::String(v) = value { Some(v.as_str()) } else { None })
    }

    /// An array of strings.
    pub fn str_array(&self, key: &str) -> Result<Option<&[String]>, GgufError> {
        self.typed(key, "an array of string", |value| match value {
            Value::Array(Array::String(v)) => Some(v.as_slice()),
            _ => None,
        })
    }

    /// An array of `f32`.
    pub fn f32_array(&self, key: &str) -> Result<Option<&[f32]>, GgufError> {
        self.typed(key, "an array of f32", |value| match value {
            Value::Array(Array::F32(v)) => Some(v.as_slice()),
            _ => None,
        })
    }

    /// An array of integers of any width, none of them negative.
    pub fn u64_array(&self, key: &str) -> Result<Option<Vec<u64>>, GgufError> {
        self.integers(key, "an array of integers of at least 0")
    }

    /// An array of integers of any width up to `i64::MAX`.
    pub fn i64_array(&self, key: &str) -> Result<Option<Vec<i64>>, GgufError> {
        self.integers(key, "an array of integers of at most 63 bits")
    }

    /// An array of flags, written as bools or as integers 0 and 1.
    pub fn bool_array(&self, key: &str) -> Result<Option<Vec<bool>>, GgufError> {
        const EXPECTED: &str = "an array of bool, or of integers 0 and 1";
        if let Some(Value::Array(Array::Bool(flags))) = self.get(key) {
            return Ok(Some(flags.clone()));
        }
        let Some(flags) = self.integers::<u64>(key, EXPECTED)? else { return Ok(None) };
        match flags.iter().position(|flag| *flag > 1) {
            Some(i) => Err(self.error(key, EXPECTED, format!("element {i} = {}", flags[i]))),
            None => Ok(Some(flags.iter().map(|flag| *flag == 1).collect())),
        }
    }

    /// One value for each of `layers` layers: an array of exactly that length, or a scalar that holds for all.
    pub fn u64_per_layer(&self, key: &str, layers: usize) -> Result<Option<Vec<u64>>, GgufError> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let expected = || format!("an integer of at least 0, or an array of {layers} of them (one for each layer)");
        match value {
            Value::Array(array) if array.len() != layers => {
                Err(self.error(key, expected(), format!("{} with {} elements", array.type_name(), array.len())))
            }
            Value::Array(_) => self.integers(key, &expected()),
            _ => {
                Ok(self.typed(key, &expected(), |value| u64::try_from(value.integer()?).ok())?.map(|v| vec![v; layers]))
            }
        }
    }

    /// The error for a key whose value is not what was asked for.
    pub(crate) fn error(&self, key: &str, expected: impl Into<String>, found: impl Into<String>) -> GgufError {
        let (path, key) = (self.path.as_path().into(), shorten(key));
        GgufError::Metadata { path, key, expected: expected.into(), found: found.into() }
    }

    fn typed<'a, T>(
        &'a self,
        key: &str,
        expected: &str,
        convert: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Result<Option<T>, GgufError> {
        let Some(value) = self.get(key) else { return Ok(None) };
        match convert(value) {
            Some(converted) => Ok(Some(converted)),
            None => Err(self.error(key, expected, described(value))),
        }
    }

    fn integers<T: TryFrom<i128>>(&self, key: &str, expected: &str) -> Result<Option<Vec<T>>, GgufError> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let Value::Array(array) = value else { return Err(self.error(key, expected, described(value))) };
        match array.integers() {
            Some(Ok(elements)) => Ok(Some(elements)),
            Some(Err((i, element))) => Err(self.error(key, expected, format!("element {i} = {element}"))),
            None => Err(self.error(key, expected, described(value))),
        }
    }
}

fn described(value: &Value) -> String {
    format!("{} {}", value.type_name(), value.summary())
}
