//! The tensor directory: names, shapes, types and where the data lies.

use std::collections::HashMap;

use super::error::{GgufError, TensorProblem, TensorProblems};
use super::limits::{MAX_DIMS, MAX_KEY_BYTES, MAX_SKIPPED_DIMS, MAX_TENSOR_ELEMENTS, MAX_TENSOR_NAME_BYTES};
use super::reader::{Field, Reader, hex, shorten};
use crate::quant::{Format, ggml_type_layout, ggml_type_name, withdrawn_type_name};

/// One tensor of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorInfo {
    pub name: String,
    /// One to four dimensions as the file has them, the fastest first: a matrix of `out` rows of length `in` is
    /// `[in, out]`. None is zero and their product fits an `i64`.
    pub dims: Vec<u64>,
    /// A known ggml type id, not necessarily one that the engine computes with.
    pub ggml_type: u32,
    /// Which of the file's [`parts`](super::GgufFile::parts) has the data.
    pub part: usize,
    /// Byte offset of the data from the start of that part.
    pub offset: u64,
    /// Bytes of data; the range lies inside the part.
    pub bytes: u64,
}

impl TensorInfo {
    /// The format to decode it with, or `None` if the engine does not compute with this type.
    pub fn format(&self) -> Option<Format> {
        Format::from_ggml_id(self.ggml_type)
    }

    /// The type's name, also where [`format`](Self::format) is `None`.
    pub fn type_name(&self) -> &'static str {
        ggml_type_name(self.ggml_type).unwrap_or("unknown")
    }

    /// Number of elements.
    pub fn elements(&self) -> u64 {
        self.dims.iter().product()
    }
}

pub(super) struct Directory {
    pub(super) tensors: Vec<TensorInfo>,
    pub(super) index: HashMap<String, usize>,
}

/// One entry as read, before its fields are judged.
struct Entry<'a> {
    at: u64,
    name: &'a [u8],
    dims: Vec<u64>,
    ggml_type: u32,
    offset: u64,
}

/// Reads the directory and checks every entry; all that is wrong with entries that can be read is reported together.
pub(super) fn read(reader: &mut Reader<'_>, count: u64, alignment: u64) -> Result<Directory, GgufError> {
    let mut checker = Checker { alignment, next: Some(0), ..Checker::default() };
    for i in 0..count {
        match read_entry(reader, i) {
            Ok(entry) => checker.entry(i as usize, entry),
            // Without earlier findings the error says all by itself.
            Err(error) if checker.problems.is_empty() => return Err(error),
            Err(error) => {
                checker.problems.stopped = Some(error);
                break;
            }
        }
    }
    checker.finish(reader)
}

fn read_entry<'a>(reader: &mut Reader<'a>, i: u64) -> Result<Entry<'a>, GgufError> {
    let at = reader.offset();
    let name = reader.string_bytes(MAX_KEY_BYTES, Field::new("name of tensor").at(i))?;
    let offset = reader.offset();
    let dims_field = Field::new("dimension count of tensor").at(i);
    let n_dims = reader.u32(dims_field)?;
    if n_dims > MAX_SKIPPED_DIMS {
        return Err(reader.invalid(dims_field, offset, format!("1 to {MAX_DIMS}"), n_dims.to_string()));
    }
    let mut dims = Vec::with_capacity(n_dims as usize);
    for _ in 0..n_dims {
        dims.push(reader.u64(Field::new("dimensions of tensor").at(i))?);
    }
    let ggml_type = reader.u32(Field::new("type of tensor").at(i))?;
    let offset = reader.u64(Field::new("data offset of tensor").at(i))?;
    Ok(Entry { at, name, dims, ggml_type, offset })
}

#[derive(Default)]
struct Checker {
    alignment: u64,
    problems: TensorProblems,
    tensors: Vec<TensorInfo>,
    /// Byte offset of the entry of each of `tensors`.
    entries: Vec<u64>,
    /// Name to position among all entries; with no problems that is the position in `tensors`.
    names: HashMap<String, usize>,
    /// Where the next tensor has to start, from the start of the data; unknown after a tensor of unknown size.
    next: Option<u64>,
}

impl Checker {
    fn entry(&mut self, i: usize, entry: Entry<'_>) {
        let name = match String::from_utf8(entry.name.to_vec()) {
            Ok(name) => name,
            Err(error) => {
                let at = error.utf8_error().valid_up_to();
                let found = format!("{} at byte {at} of the name", hex(&error.as_bytes()[at..][..1]));
                let name = String::from_utf8_lossy(error.as_bytes()).into_owned();
                self.problem(&name, entry.at, "name", "UTF-8", found);
                name
            }
        };
        if !(1..=MAX_TENSOR_NAME_BYTES).contains(&entry.name.len()) {
            let found = format!("{} bytes", entry.name.len());
            self.problem(&name, entry.at, "name", format!("1 to {MAX_TENSOR_NAME_BYTES} bytes"), found);
        }
        if let Some(first) = self.names.insert(name.clone(), i) {
            let found = format!("tensor {first} and tensor {i}");
            self.problem(&name, entry.at, "name", "a name that occurs once", found);
        }
        let bytes = match size(&entry) {
            Ok(bytes) => Some(bytes),
            Err((what, expected, found)) => {
                self.problem(&name, entry.at, what, expected, found);
                None
            }
        };
        self.place(i, &name, &entry, bytes);
        if let Some(bytes) = bytes {
            let Entry { dims, ggml_type, offset, .. } = entry;
            self.entries.push(entry.at);
            self.tensors.push(TensorInfo { name, dims, ggml_type, part: 0, offset, bytes });
        }
    }

    /// Checks that the data starts where the tensor before it ends, rounded up to the alignment.
    fn place(&mut self, i: usize, name: &str, entry: &Entry<'_>, bytes: Option<u64>) {
        let alignment = self.alignment;
        let start = self.next.unwrap_or(entry.offset);
        if !entry.offset.is_multiple_of(alignment) {
            let expected = format!("a multiple of the alignment {alignment}");
            self.problem(name, entry.at, "data offset", expected, entry.offset.to_string());
        } else if entry.offset != start {
            let expected = if i == 0 {
                "0, where the first tensor starts".to_owned()
            } else {
                format!("{start}, where the previous tensor ends")
            };
            self.problem(name, entry.at, "data offset", expected, entry.offset.to_string());
        }
        self.next = None;
        if let Some(bytes) = bytes {
            self.next = start.checked_add(bytes).and_then(|end| end.checked_next_multiple_of(alignment));
            if self.next.is_none() {
                let found = format!("{bytes} bytes from {start}");
                self.problem(name, entry.at, "data", "an end below 2^64", found);
            }
        }
    }

    fn problem(
        &mut self,
        name: &str,
        offset: u64,
        what: &'static str,
        expected: impl Into<String>,
        found: impl Into<String>,
    ) {
        let (tensor, expected, found) = (shorten(name), expected.into(), found.into());
        self.problems.push(TensorProblem { tensor, offset, what, expected, found });
    }

    /// Turns offsets into file positions and checks them against the end of the file.
    fn finish(mut self, reader: &Reader<'_>) -> Result<Directory, GgufError> {
        if self.problems.stopped.is_none() {
            self.locate(reader);
        }
        if !self.problems.is_empty() {
            return Err(GgufError::Tensors { path: reader.path(), problems: Box::new(self.problems) });
        }
        Ok(Directory { tensors: self.tensors, index: self.names })
    }

    /// A file cut short is one finding, not one for each tensor behind the cut.
    fn locate(&mut self, reader: &Reader<'_>) {
        let file = reader.file_bytes();
        let data = reader.offset().checked_next_multiple_of(self.alignment);
        let (mut outside, mut first, mut last_end) = (0_usize, None, 0_u64);
        for (i, tensor) in self.tensors.iter_mut().enumerate() {
            let start = data.and_then(|data| data.checked_add(tensor.offset));
            match start.and_then(|start| Some((start, start.checked_add(tensor.bytes)?))) {
                Some((start, end)) if end <= file => tensor.offset = start,
                range => {
                    outside += 1;
                    first.get_or_insert(i);
                    last_end = last_end.max(range.map_or(u64::MAX, |(_, end)| end));
                }
            }
        }
        if let Some(i) = first {
            let name = self.tensors[i].name.clone();
            let found = format!("a file of {file} bytes, which leaves {outside} of the tensors incomplete");
            self.problem(&name, self.entries[i], "data", format!("data up to byte {last_end}"), found);
        }
    }
}

/// Bytes of the tensor's data, or what about its shape or type is wrong, what was expected, and what was found.
fn size(entry: &Entry<'_>) -> Result<u64, (&'static str, String, String)> {
    if !(1..=MAX_DIMS).contains(&entry.dims.len()) {
        return Err(("dimension count", format!("1 to {MAX_DIMS}"), entry.dims.len().to_string()));
    }
    let shape = || format!("{:?}", entry.dims);
    if entry.dims.contains(&0) {
        return Err(("dimensions", "each at least 1".to_owned(), shape()));
    }
    let product = entry.dims.iter().try_fold(1_u64, |product, dim| product.checked_mul(*dim));
    let Some(elements) = product.filter(|elements| *elements <= MAX_TENSOR_ELEMENTS) else {
        return Err(("dimensions", format!("a product of at most {MAX_TENSOR_ELEMENTS}"), shape()));
    };
    let Some((block, block_bytes)) = ggml_type_layout(entry.ggml_type) else {
        let id = entry.ggml_type;
        let withdrawn = withdrawn_type_name(id).map(|name| format!("{id} ({name}, which was withdrawn)"));
        return Err(("type", "a known ggml type id".to_owned(), withdrawn.unwrap_or_else(|| id.to_string())));
    };
    if !entry.dims[0].is_multiple_of(block) {
        let name = ggml_type_name(entry.ggml_type).unwrap_or("this type");
        let expected = format!("a multiple of {block}, the block length of {name}");
        return Err(("row length", expected, entry.dims[0].to_string()));
    }
    (elements / block)
        .checked_mul(block_bytes)
        .ok_or_else(|| ("dimensions", "a size below 2^64 bytes".to_owned(), shape()))
}
