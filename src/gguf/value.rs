//! Metadata values and how they are read from a file.

use super::error::GgufError;
use super::limits::{MAX_ARRAY_ELEMENTS, MAX_STRING_BYTES};
use super::reader::{Field, Reader, shorten};

/// One metadata value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    U8(u8),
    I8(i8),
    U16(u16),
    I16(i16),
    U32(u32),
    I32(i32),
    U64(u64),
    I64(i64),
    F32(f32),
    F64(f64),
    Bool(bool),
    String(String),
    Array(Array),
}

/// A metadata array; all elements have one type and arrays do not nest.
#[derive(Clone, Debug, PartialEq)]
pub enum Array {
    U8(Vec<u8>),
    I8(Vec<i8>),
    U16(Vec<u16>),
    I16(Vec<i16>),
    U32(Vec<u32>),
    I32(Vec<i32>),
    U64(Vec<u64>),
    I64(Vec<i64>),
    F32(Vec<f32>),
    F64(Vec<f64>),
    Bool(Vec<bool>),
    String(Vec<String>),
}

const STRING: u32 = 8;
const ARRAY: u32 = 9;
const VALUE_TYPES: &str = "a value type from 0 to 12";

impl Value {
    pub(super) fn read(reader: &mut Reader<'_>, key: &str) -> Result<Value, GgufError> {
        let offset = reader.offset();
        let kind = reader.u32(Field::of("value type", key))?;
        let field = Field::of("value", key);
        Ok(match kind {
            0 => Value::U8(reader.u8(field)?),
            1 => Value::I8(reader.i8(field)?),
            2 => Value::U16(reader.u16(field)?),
            3 => Value::I16(reader.i16(field)?),
            4 => Value::U32(reader.u32(field)?),
            5 => Value::I32(reader.i32(field)?),
            6 => Value::F32(reader.f32(field)?),
            7 => Value::Bool(read_bool(reader, field)?),
            STRING => Value::String(reader.string(MAX_STRING_BYTES, field)?),
            ARRAY => Value::Array(Array::read(reader, key)?),
            10 => Value::U64(reader.u64(field)?),
            11 => Value::I64(reader.i64(field)?),
            12 => Value::F64(reader.f64(field)?),
            _ => return Err(reader.invalid(Field::of("value type", key), offset, VALUE_TYPES, kind.to_string())),
        })
    }

    /// The type's name, such as `u32` or `array of string`.
    pub fn type_name(&self) -> &'static str {
        match self {
            Value::U8(_) => "u8",
            Value::I8(_) => "i8",
            Value::U16(_) => "u16",
            Value::I16(_) => "i16",
            Value::U32(_) => "u32",
            Value::I32(_) => "i32",
            Value::U64(_) => "u64",
            Value::I64(_) => "i64",
            Value::F32(_) => "f32",
            Value::F64(_) => "f64",
            Value::Bool(_) => "bool",
            Value::String(_) => "string",
            Value::Array(array) => array.type_name(),
        }
    }

    /// The value on one line; long strings and arrays are cut, with their full length behind them.
    pub fn summary(&self) -> String {
        match self {
            Value::U8(v) => v.to_string(),
            Value::I8(v) => v.to_string(),
            Value::U16(v) => v.to_string(),
            Value::I16(v) => v.to_string(),
            Value::U32(v) => v.to_string(),
            Value::I32(v) => v.to_string(),
            Value::U64(v) => v.to_string(),
            Value::I64(v) => v.to_string(),
            Value::F32(v) => format!("{v:?}"),
            Value::F64(v) => format!("{v:?}"),
            Value::Bool(v) => v.to_string(),
            Value::String(v) => quoted(v),
            Value::Array(array) => array.summary(),
        }
    }

    /// The value if it is an integer of any width.
    pub(super) fn integer(&self) -> Option<i128> {
        Some(match self {
            Value::U8(v) => i128::from(*v),
            Value::I8(v) => i128::from(*v),
            Value::U16(v) => i128::from(*v),
            Value::I16(v) => i128::from(*v),
            Value::U32(v) => i128::from(*v),
            Value::I32(v) => i128::from(*v),
            Value::U64(v) => i128::from(*v),
            Value::I64(v) => i128::from(*v),
            _ => return None,
        })
    }
}

/// Evaluates one expression for whichever element type the array has.
macro_rules! each {
    ($array:expr, $v:ident => $result:expr) => {
        match $array {
            Array::U8($v) => $result,
            Array::I8($v) => $result,
            Array::U16($v) => $result,
            Array::I16($v) => $result,
            Array::U32($v) => $result,
            Array::I32($v) => $result,
            Array::U64($v) => $result,
            Array::I64($v) => $result,
            Array::F32($v) => $result,
            Array::F64($v) => $result,
            Array::Bool($v) => $result,
            Array::String($v) => $result,
        }
    };
}

impl Array {
    fn read(reader: &mut Reader<'_>, key: &str) -> Result<Array, GgufError> {
        let type_offset = reader.offset();
        let type_field = Field::of("array element type", key);
        let kind = reader.u32(type_field)?;
        let width: u64 = match kind {
            0 | 1 | 7 => 1,
            2 | 3 => 2,
            4..=6 => 4,
            // A string takes at least its length.
            STRING | 10..=12 => 8,
            ARRAY => {
                return Err(reader.invalid(type_field, type_offset, "a scalar or string type", "9 (a nested array)"));
            }
            _ => return Err(reader.invalid(type_field, type_offset, VALUE_TYPES, kind.to_string())),
        };
        let count = reader.count(MAX_ARRAY_ELEMENTS, Field::of("array length", key))?;
        reader.need(count * width, Field::of("array elements", key))?;
        let field = Field::of("array element", key);
        Ok(match kind {
            0 => Array::U8(elements(count, |i| reader.u8(field.at(i)))?),
            1 => Array::I8(elements(count, |i| reader.i8(field.at(i)))?),
            2 => Array::U16(elements(count, |i| reader.u16(field.at(i)))?),
            3 => Array::I16(elements(count, |i| reader.i16(field.at(i)))?),
            4 => Array::U32(elements(count, |i| reader.u32(field.at(i)))?),
            5 => Array::I32(elements(count, |i| reader.i32(field.at(i)))?),
            6 => Array::F32(elements(count, |i| reader.f32(field.at(i)))?),
            7 => Array::Bool(elements(count, |i| read_bool(reader, field.at(i)))?),
            10 => Array::U64(elements(count, |i| reader.u64(field.at(i)))?),
            11 => Array::I64(elements(count, |i| reader.i64(field.at(i)))?),
            12 => Array::F64(elements(count, |i| reader.f64(field.at(i)))?),
            _ => Array::String(elements(count, |i| reader.string(MAX_STRING_BYTES, field.at(i)))?),
        })
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        each!(self, v => v.len())
    }

    /// True for an array without elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The type's name, such as `array of u32`.
    pub fn type_name(&self) -> &'static str {
        match self {
            Array::U8(_) => "array of u8",
            Array::I8(_) => "array of i8",
            Array::U16(_) => "array of u16",
            Array::I16(_) => "array of i16",
            Array::U32(_) => "array of u32",
            Array::I32(_) => "array of i32",
            Array::U64(_) => "array of u64",
            Array::I64(_) => "array of i64",
            Array::F32(_) => "array of f32",
            Array::F64(_) => "array of f64",
            Array::Bool(_) => "array of bool",
            Array::String(_) => "array of string",
        }
    }

    fn summary(&self) -> String {
        const SHOWN: usize = 8;
        let shown: Vec<String> = match self {
            Array::String(v) => v.iter().take(SHOWN).map(|text| quoted(text)).collect(),
            Array::F32(v) => v.iter().take(SHOWN).map(|x| format!("{x:?}")).collect(),
            Array::F64(v) => v.iter().take(SHOWN).map(|x| format!("{x:?}")).collect(),
            other => each!(other, v => v.iter().take(SHOWN).map(ToString::to_string).collect()),
        };
        let shown = shown.join(", ");
        if self.len() > SHOWN { format!("[{shown}, …] ({} elements)", self.len()) } else { format!("[{shown}]") }
    }

    /// The elements as `T`, if they are integers: `Err` holds the first element that does not fit.
    pub(super) fn integers<T: TryFrom<i128>>(&self) -> Option<Result<Vec<T>, (usize, i128)>> {
        Some(match self {
            Array::U8(v) => convert(v),
            Array::I8(v) => convert(v),
            Array::U16(v) => convert(v),
            Array::I16(v) => convert(v),
            Array::U32(v) => convert(v),
            Array::I32(v) => convert(v),
            Array::U64(v) => convert(v),
            Array::I64(v) => convert(v),
            _ => return None,
        })
    }
}

fn convert<S: Copy + Into<i128>, T: TryFrom<i128>>(source: &[S]) -> Result<Vec<T>, (usize, i128)> {
    source
        .iter()
        .enumerate()
        .map(|(i, element)| {
            let element = (*element).into();
            T::try_from(element).map_err(|_| (i, element))
        })
        .collect()
}

/// The caller has checked that the file is long enough for `count` elements of the smallest size.
fn elements<T>(count: u64, mut read: impl FnMut(u64) -> Result<T, GgufError>) -> Result<Vec<T>, GgufError> {
    let mut all = Vec::with_capacity(count as usize);
    for i in 0..count {
        all.push(read(i)?);
    }
    Ok(all)
}

fn read_bool(reader: &mut Reader<'_>, field: Field<'_>) -> Result<bool, GgufError> {
    let offset = reader.offset();
    match reader.u8(field)? {
        0 => Ok(false),
        1 => Ok(true),
        other => Err(reader.invalid(field, offset, "a bool, 0 or 1", other.to_string())),
    }
}

/// The text in quotes, cut if it is long, with its length behind.
pub(crate) fn quoted(text: &str) -> String {
    let short = shorten(text);
    if short.ends_with('…') { format!("\"{short}\" ({} bytes)", text.len()) } else { format!("\"{short}\"") }
}
