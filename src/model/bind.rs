//! Looking tensors up by name, with their shapes and formats checked.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Range;

use super::Problem;
use crate::gguf::{GgufFile, TensorInfo};
use crate::quant::{Format, decode_row};

/// A matrix, or one matrix for each expert: rows (outputs) of cols (inputs).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorRef {
    pub info: TensorInfo,
    /// As computed with; the file may have F32 where this is BF16.
    pub format: Format,
    pub rows: usize,
    /// A multiple of 32, and of the format's block.
    pub cols: usize,
    pub experts: Option<usize>,
    /// Which of the stored rows these are; `None`: all of them as they stand.
    pub rows_from: Option<RowMap>,
}

/// Rows of a stored matrix that make up another one. With experts, the same of each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowMap {
    /// Rows of the stored matrix.
    pub stored: usize,
    /// Ranges of them, one after another.
    pub ranges: Vec<Range<usize>>,
}

impl TensorRef {
    /// The name of the stored tensor, of which this may be a part.
    pub fn name(&self) -> &str {
        &self.info.name
    }

    /// As in the file.
    pub fn stored_format(&self) -> Format {
        self.info.format().unwrap_or(self.format)
    }

    /// Bytes of one row.
    pub fn row_bytes(&self) -> usize {
        self.cols / self.format.block_elements() * self.format.block_bytes()
    }

    /// Bytes of one row in the file.
    pub fn stored_row_bytes(&self) -> usize {
        let format = self.stored_format();
        self.cols / format.block_elements() * format.block_bytes()
    }

    /// Bytes of one matrix: of one expert, or of all rows without experts.
    pub fn matrix_bytes(&self) -> usize {
        self.rows * self.row_bytes()
    }

    /// Elements of all rows of all experts.
    pub fn elements(&self) -> u64 {
        (self.rows * self.cols) as u64 * self.experts.unwrap_or(1) as u64
    }

    /// Bytes of all rows of all experts.
    pub fn bytes(&self) -> u64 {
        self.matrix_bytes() as u64 * self.experts.unwrap_or(1) as u64
    }

    /// Some of the rows as a matrix of its own; with experts, the same of each.
    pub fn rows_of(&self, rows: Range<usize>) -> TensorRef {
        let (stored, ranges) = match &self.rows_from {
            None => (self.rows, vec![rows.clone()]),
            Some(map) => {
                let mut first = 0;
                let cut = |range: &Range<usize>| {
                    let (from, to) = (rows.start.max(first) - first, rows.end.max(first) - first);
                    first += range.len();
                    range.start + from.min(range.len())..range.start + to.min(range.len())
                };
                (map.stored, map.ranges.iter().map(cut).filter(|range| !range.is_empty()).collect())
            }
        };
        TensorRef { rows: rows.len(), rows_from: Some(RowMap { stored, ranges }), ..self.clone() }
    }

    /// The rows of one matrix, from the file the model was bound to: of an expert, or of matrix 0 without experts. Empty
    /// for one that does not exist.
    pub fn matrix<'a>(&self, file: &'a GgufFile, expert: usize) -> Cow<'a, [u8]> {
        let stored = match self.rows_from.as_ref().map(|map| &map.ranges[..]) {
            None => Cow::Borrowed(self.stored(file, expert, 0..self.rows)),
            Some([range]) => Cow::Borrowed(self.stored(file, expert, range.clone())),
            Some(ranges) => {
                let mut rows = Vec::with_capacity(self.rows * self.stored_row_bytes());
                for range in ranges {
                    rows.extend_from_slice(self.stored(file, expert, range.clone()));
                }
                Cow::Owned(rows)
            }
        };
        self.narrow(stored)
    }

    /// One row of a matrix without experts; empty for a row that does not exist.
    pub fn row<'a>(&self, file: &'a GgufFile, row: usize) -> Cow<'a, [u8]> {
        let stored = match &self.rows_from {
            None => Some(row),
            Some(map) => map.ranges.iter().flat_map(Range::clone).nth(row),
        };
        self.narrow(stored.map(|row| self.stored(file, 0, row..row.saturating_add(1))).unwrap_or_default().into())
    }

    /// Where rows of one matrix lie: byte ranges of the file's part `info.part`, in the order of the rows.
    pub fn file_ranges(&self, expert: usize, rows: Range<usize>) -> Vec<Range<u64>> {
        let row_bytes = self.stored_row_bytes() as u64;
        let whole = 0..self.rows;
        let (stored, ranges) = match &self.rows_from {
            None => (self.rows, std::slice::from_ref(&whole)),
            Some(map) => (map.stored, &map.ranges[..]),
        };
        let at = |row: usize| self.info.offset + (expert * stored + row) as u64 * row_bytes;
        let mut before = 0;
        let mut found = Vec::new();
        for range in ranges {
            let (start, end) = (rows.start.max(before), rows.end.min(before + range.len()));
            if start < end {
                found.push(at(range.start + start - before)..at(range.start + end - before));
            }
            before += range.len();
        }
        found
    }

    /// Bytes as in the file to bytes as computed with.
    pub fn narrow<'a>(&self, stored: Cow<'a, [u8]>) -> Cow<'a, [u8]> {
        if self.stored_format() == self.format {
            return stored;
        }
        stored.as_chunks::<4>().0.iter().flat_map(|value| [value[2], value[3]]).collect::<Vec<u8>>().into()
    }

    fn stored<'a>(&self, file: &'a GgufFile, expert: usize, rows: Range<usize>) -> &'a [u8] {
        let stored = self.rows_from.as_ref().map_or(self.rows, |map| map.stored);
        let at = |row: usize| expert.checked_mul(stored)?.checked_add(row)?.checked_mul(self.stored_row_bytes());
        let range = at(rows.start).zip(at(rows.end)).map(|(start, end)| start..end);
        range.and_then(|range| file.data(&self.info).get(range)).unwrap_or_default()
    }
}

/// Values that are used as `f32` whatever float format they are stored in: norms, biases, convolution taps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VectorRef {
    pub info: TensorInfo,
    pub format: Format,
    pub len: usize,
}

impl VectorRef {
    pub fn name(&self) -> &str {
        &self.info.name
    }

    /// The values, from the file the model was bound to.
    pub fn load(&self, file: &GgufFile) -> Vec<f32> {
        self.values(file.data(&self.info))
    }

    /// The values, from the tensor's bytes; NaN if it has not as many.
    pub fn values(&self, stored: &[u8]) -> Vec<f32> {
        let mut values = vec![0.0; self.len];
        // The length was checked when the tensor was bound, so a failure can only be a file that is not the same.
        match decode_row(self.format, stored, &mut values) {
            Ok(()) => values,
            Err(_) => vec![f32::NAN; self.len],
        }
    }
}

/// The F32 tensors of two or more dimensions whose values are BF16's, so that half the bytes say the same. Reads them.
pub(super) fn exactly_bf16(file: &GgufFile) -> HashSet<String> {
    let wide = |info: &&TensorInfo| info.format() == Some(Format::F32) && info.dims.len() > 1;
    let exact = |info: &&TensorInfo| file.data(info).as_chunks::<4>().0.iter().all(|value| value[..2] == [0, 0]);
    file.tensors().iter().filter(wide).filter(exact).map(|info| info.name.clone()).collect()
}

/// Hands out tensors and remembers which were asked for.
///
/// What is wrong is noted and a placeholder is handed out, so that one pass finds everything; binding fails at its end
/// if anything was noted, so a placeholder is never used.
pub(super) struct Binder<'a> {
    file: &'a GgufFile,
    /// F32 matrices to be computed with as BF16.
    narrowed: &'a HashSet<String>,
    claimed: HashSet<String>,
    pub(super) problems: Vec<Problem>,
}

impl<'a> Binder<'a> {
    pub(super) fn new(file: &'a GgufFile, narrowed: &'a HashSet<String>, problems: Vec<Problem>) -> Binder<'a> {
        Binder { file, narrowed, claimed: HashSet::new(), problems }
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.file.tensor(name).is_some()
    }

    pub(super) fn tensors(&self) -> &'a [TensorInfo] {
        self.file.tensors()
    }

    pub(super) fn claimed(&self, name: &str) -> bool {
        self.claimed.contains(name)
    }

    /// Whether a file has one tensor in place of several.
    pub(super) fn has_fused(&self, fused: &str, separate: &[&str]) -> bool {
        self.has(fused) && !separate.iter().all(|name| self.has(name))
    }

    /// Marks a tensor as known though it is not used.
    pub(super) fn ignore(&mut self, name: &str) {
        self.claimed.insert(name.to_owned());
    }

    pub(super) fn matrix(&mut self, name: &str, rows: usize, cols: usize) -> TensorRef {
        self.tensor(name, &[cols, rows], rows, cols, None)
    }

    pub(super) fn experts(&mut self, name: &str, experts: usize, rows: usize, cols: usize) -> TensorRef {
        self.tensor(name, &[cols, rows, experts], rows, cols, Some(experts))
    }

    /// Parts of one stored matrix of `rows` rows, or of one for each expert.
    pub(super) fn parts<const N: usize>(
        &mut self,
        name: &str,
        (experts, rows, cols): (Option<usize>, usize, usize),
        parts: [Vec<Range<usize>>; N],
    ) -> [TensorRef; N] {
        let whole = match experts {
            Some(experts) => self.experts(name, experts, rows, cols),
            None => self.matrix(name, rows, cols),
        };
        parts.map(|ranges| TensorRef {
            rows: ranges.iter().map(ExactSizeIterator::len).sum(),
            rows_from: Some(RowMap { stored: rows, ranges }),
            ..whole.clone()
        })
    }

    /// A matrix that may have more rows than are used.
    pub(super) fn table(&mut self, name: &str, least_rows: u64, cols: usize) -> TensorRef {
        let found = self.file.tensor(name).and_then(|info| info.dims.get(1).copied()).unwrap_or(1);
        if self.has(name) && found < least_rows {
            self.problem(name, format!("at least {least_rows} rows"), found);
        }
        let rows = usize::try_from(found).unwrap_or(usize::MAX);
        self.matrix(name, rows, cols)
    }

    pub(super) fn vector(&mut self, name: &str, len: usize) -> VectorRef {
        self.floats(name, &[len])
    }

    /// Convolution taps, [channels][taps].
    pub(super) fn taps(&mut self, name: &str, channels: usize, taps: usize) -> VectorRef {
        self.floats(name, &[taps, channels])
    }

    fn floats(&mut self, name: &str, dims: &[usize]) -> VectorRef {
        let (info, format) = self.find(name, dims);
        let format = format.unwrap_or(Format::F32);
        if format.is_quantised() {
            self.problem(name, "F32, F16 or BF16", format.name());
        }
        VectorRef { info, format, len: dims.iter().product() }
    }

    fn tensor(&mut self, name: &str, dims: &[usize], rows: usize, cols: usize, experts: Option<usize>) -> TensorRef {
        let (info, format) = self.find(name, dims);
        if !cols.is_multiple_of(32) {
            self.problem(name, "rows whose length is a multiple of 32", cols);
        }
        let format = match format.unwrap_or(Format::F32) {
            Format::F32 if self.narrowed.contains(name) => Format::BF16,
            format => format,
        };
        TensorRef { info, format, rows, cols, experts, rows_from: None }
    }

    fn find(&mut self, name: &str, dims: &[usize]) -> (TensorInfo, Option<Format>) {
        self.claimed.insert(name.to_owned());
        let Some(info) = self.file.tensor(name) else {
            let expected = shape(dims.iter().map(|n| *n as u64));
            self.problem(name, format!("shape {expected}"), "no such tensor");
            let (name, dims) = (name.to_owned(), Vec::new());
            return (TensorInfo { name, dims, ggml_type: 0, part: 0, offset: 0, bytes: 0 }, None);
        };
        let (expected, found) = (shape(dims.iter().map(|n| *n as u64)), shape(info.dims.iter().copied()));
        if expected != found {
            self.problem(name, format!("shape {expected}"), found);
        }
        let format = info.format();
        if format.is_none() {
            let known: Vec<&str> = Format::ALL.iter().map(|format| format.name()).collect();
            let found = format!("{} (type {})", info.type_name(), info.ggml_type);
            self.problem(name, format!("a format of {}", known.join(", ")), found);
        }
        (info.clone(), format)
    }

    pub(super) fn problem(&mut self, name: &str, expected: impl Into<String>, found: impl ToString) {
        let (name, expected, found) = (name.to_owned(), expected.into(), found.to_string());
        self.problems.push(Problem::Tensor { name, expected, found });
    }
}

/// The shape in the file's order, fastest first, without trailing ones: `{n}` and `{n,1}` are the same.
fn shape(dims: impl Iterator<Item = u64>) -> String {
    let mut dims: Vec<u64> = dims.collect();
    while dims.len() > 1 && dims.last() == Some(&1) {
        dims.pop();
    }
    let dims: Vec<String> = dims.iter().map(u64::to_string).collect();
    format!("{{{}}}", dims.join(","))
}
