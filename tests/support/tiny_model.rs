//! A tiny model of each architecture, to be spoilt.

// Each test program uses a part of it.
#![allow(dead_code)]

use std::collections::HashMap;
use std::ops::Range;

use bankshot::gguf::GgufFile;
use bankshot::model::{Bound, ModelError};
use bankshot::quant::ggml_type_layout;

use super::gguf_writer::GgufWriter;
use super::shapes::{Value, tiny, with_keys};

/// A small model to be spoilt.
pub struct Tiny {
    pub arch: &'static str,
    pub keys: Vec<(&'static str, Value)>,
    /// Name, dimensions with the fastest first, ggml type.
    pub tensors: Vec<(String, Vec<u64>, u32)>,
    /// Values of tensors that do not have random ones.
    pub values: HashMap<String, Vec<f32>>,
}

/// Small numbers that depend on nothing but the name.
pub fn values_of(name: &str, elements: usize) -> Vec<f32> {
    let mut n = name.bytes().fold(0u32, |n, byte| n.wrapping_mul(31).wrapping_add(byte.into()));
    let mut number = || {
        n = n.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (n >> 8) as f32 / (1 << 24) as f32 - 0.5
    };
    (0..elements).map(|_| number()).collect()
}

impl Tiny {
    pub fn new() -> Tiny {
        Tiny::of("qwen4exp")
    }

    pub fn of(arch: &'static str) -> Tiny {
        let shape = tiny(arch);
        let tensors = shape.tensors().into_iter().map(|(name, dims)| (name, dims, 0)).collect();
        Tiny { arch, keys: shape.keys(), tensors, values: HashMap::new() }
    }

    pub fn key(mut self, key: &'static str, value: Value) -> Tiny {
        self.keys.retain(|(other, _)| *other != key);
        self.keys.push((key, value));
        self
    }

    pub fn without_key(mut self, key: &str) -> Tiny {
        self.keys.retain(|(other, _)| *other != key);
        self
    }

    pub fn tensor(mut self, name: &str, dims: &[u64], ggml_type: u32) -> Tiny {
        self.tensors.retain(|(other, ..)| other != name);
        self.tensors.push((name.to_owned(), dims.to_vec(), ggml_type));
        self
    }

    pub fn without(mut self, name: &str) -> Tiny {
        self.tensors.retain(|(other, ..)| other != name);
        self
    }

    /// Puts one tensor of other shape in place of several, made of ranges of their rows.
    pub fn fused(mut self, name: &str, dims: &[u64], rows: &[(&str, Range<usize>)]) -> Tiny {
        let cols = dims[0] as usize;
        let mut values = Vec::new();
        for (name, range) in rows {
            let (_, dims, _) = self.tensors.iter().find(|(other, ..)| other == name).unwrap();
            let all = values_of(name, dims.iter().product::<u64>() as usize);
            values.extend(&all[range.start * cols..range.end * cols]);
        }
        self.tensors.retain(|(other, ..)| !rows.iter().any(|(name, _)| name == other));
        self.values.insert(name.to_owned(), values);
        self.tensor(name, dims, 0)
    }

    /// The model with small numbers in all tensors.
    pub fn writer(&self) -> GgufWriter {
        let mut writer = with_keys(self.arch, &self.keys);
        for (name, dims, ggml_type) in &self.tensors {
            let elements = dims.iter().product::<u64>() as usize;
            writer = match ggml_type {
                0 => {
                    let values = self.values.get(name).cloned().unwrap_or_else(|| values_of(name, elements));
                    writer.tensor_f32(name, dims, &values)
                }
                other => {
                    let (block, bytes) = ggml_type_layout(*other).unwrap();
                    writer.tensor(name, dims, *other, &vec![0; elements / block as usize * bytes as usize])
                }
            };
        }
        writer
    }

    pub fn open(&self) -> GgufFile {
        GgufFile::from_static(self.writer().to_bytes().leak()).unwrap()
    }

    pub fn bind(&self) -> Bound {
        Bound::new(&self.open()).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Every problem as text.
    pub fn problems(&self) -> Vec<String> {
        match Bound::new(&self.open()) {
            Err(ModelError::Problems(problems)) => problems.iter().map(ToString::to_string).collect(),
            Err(other) => panic!("{other}"),
            Ok(_) => panic!("bound"),
        }
    }
}
