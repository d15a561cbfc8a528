//! Looking tensors up by name, with their shapes and formats checked.

use std::collections::HashSet;

use super::Problem;
use crate::gguf::{GgufFile, TensorInfo};
use crate::quant::{Format, decode_row};

/// A matrix, or one matrix for each expert: rows (outputs) of cols (inputs).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorRef {
    pub info: TensorInfo,
    pub format: Format,
    pub rows: usize,
    /// A multiple of 32, and of the format's block.
    pub cols: usize,
    pub experts: Option<usize>,
}

impl TensorRef {
    pub fn name(&self) -> &str {
        &self.info.name
    }

    /// Bytes of one row.
    pub fn row_bytes(&self) -> usize {
        self.cols / self.format.block_elements() * self.format.block_bytes()
    }

    /// Bytes of one matrix: of one expert, or of the whole tensor without experts.
    pub fn matrix_bytes(&self) -> usize {
        self.rows * self.row_bytes()
    }

    /// All bytes, from the file the model was bound to.
    pub fn data<'a>(&self, file: &'a GgufFile) -> &'a [u8] {
        file.data(&self.info)
    }

    /// The matrix of one expert; empty for an expert that does not exist.
    pub fn expert<'a>(&self, file: &'a GgufFile, expert: usize) -> &'a [u8] {
        let size = self.matrix_bytes();
        let range = expert.checked_mul(size).and_then(|start| Some(start..start.checked_add(size)?));
        range.and_then(|range| self.data(file).get(range)).unwrap_or_default()
    }

    /// One row of a matrix without experts; empty for a row that does not exist.
    pub fn row<'a>(&self, file: &'a GgufFile, row: usize) -> &'a [u8] {
        let size = self.row_bytes();
        let range = row.checked_mul(size).and_then(|start| Some(start..start.checked_add(size)?));
        range.and_then(|range| self.data(file).get(range)).unwrap_or_default()
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
        let mut values = vec![0.0; self.len];
        // The length was checked when the tensor was bound, so a failure can only be a file that is not the same.
        match decode_row(self.format, file.data(&self.info), &mut values) {
            Ok(()) => values,
            Err(_) => vec![f32::NAN; self.len],
        }
    }
}

/// Hands out tensors and remembers which were asked for.
///
/// What is wrong is noted and a placeholder is handed out, so that one pass finds everything; binding fails at its end
/// if anything was noted, so a placeholder is never used.
pub(super) struct Binder<'a> {
    file: &'a GgufFile,
    claimed: HashSet<String>,
    pub(super) problems: Vec<Problem>,
}

impl<'a> Binder<'a> {
    pub(super) fn new(file: &'a GgufFile, problems: Vec<Problem>) -> Binder<'a> {
        Binder { file, claimed: HashSet::new(), problems }
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.file.tensor(name).is_some()
    }

    pub(super) fn claimed(&self, name: &str) -> bool {
        self.claimed.contains(name)
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
        TensorRef { info, format: format.unwrap_or(Format::F32), rows, cols, experts }
    }

    fn find(&mut self, name: &str, dims: &[usize]) -> (TensorInfo, Option<Format>) {
        self.claimed.insert(name.to_owned());
        let Some(info) = self.file.tensor(name) else {
            let expected = shape(dims.iter().map(|n| *n as u64));
            self.problem(name, format!("shape {expected}"), self.instead(name));
            let (name, dims) = (name.to_owned(), Vec::new());
            return (TensorInfo { name, dims, ggml_type: 0, offset: 0, bytes: 0 }, None);
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

    /// What a file has in place of a missing tensor.
    fn instead(&self, name: &str) -> String {
        let fused = name.replace("ffn_gate_exps", "ffn_gate_up_exps").replace("ffn_up_exps", "ffn_gate_up_exps");
        if fused != name && self.has(&fused) {
            return format!("only the fused `{fused}`");
        }
        "no such tensor".to_owned()
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
