//! A tiny model of each architecture, to be spoilt.

// Each test program uses a part of it.
#![allow(dead_code)]

use std::collections::HashMap;
use std::ops::Range;

use bankshot::gguf::GgufFile;
use bankshot::model::{Bound, ModelError};
use bankshot::quant::ggml_type_layout;

use super::gguf_writer::GgufWriter;

pub enum Value {
    Int(u32),
    Float(f32),
    Text(&'static str),
    Flags(Vec<bool>),
    Ints(Vec<u32>),
    Longs(Vec<u64>),
}
pub use Value::{Flags, Float, Int, Ints, Longs, Text};

/// Sizes of a model.
#[derive(Clone, Copy)]
pub struct Shape {
    pub arch: &'static str,
    pub layers: u32,
    pub hidden: u32,
    pub vocab: u32,
    pub heads: [u32; 2],
    pub head_dim: u32,
    pub rope: u32,
    pub gdn_heads: [u32; 2],
    pub gdn_dim: u32,
    /// Experts, used, widths of one and of the shared one.
    pub experts: [u32; 4],
    pub ff: u32,
    /// Streams and low rank.
    pub streams: [u32; 2],
    /// Heads, their width, budget, ratio.
    pub indexer: [u32; 4],
    pub ple: PleShape,
}

#[derive(Clone, Copy)]
pub struct PleShape {
    pub layer: u32,
    pub ngram: u32,
    pub heads: u32,
    pub taps: u32,
    pub row: u32,
    pub rows: u32,
}

/// A model of two layers, the first a delta net, the second attention; of `qwen4exp` the first with the embedding of
/// n-grams, the second sparse.
pub fn tiny(arch: &'static str) -> Shape {
    Shape {
        arch,
        layers: 2,
        hidden: 32,
        vocab: 8,
        heads: [2, 1],
        head_dim: 16,
        rope: 8,
        gdn_heads: if arch == "qwen4exp" { [1, 2] } else { [2, 4] },
        gdn_dim: 16,
        experts: [4, 2, 32, 32],
        ff: 64,
        streams: [2, 32],
        indexer: [2, 16, 4, 2],
        ple: PleShape { layer: 0, ngram: 2, heads: 1, taps: 2, row: 32, rows: 8 },
    }
}

impl Shape {
    /// Every fourth layer is attention, and the last one.
    pub fn is_gdn(&self, layer: u32) -> bool {
        layer % 4 != 3 && layer + 1 != self.layers
    }

    pub fn has_experts(&self) -> bool {
        self.arch != "qwen35"
    }

    pub fn has_streams(&self) -> bool {
        self.arch == "qwen4exp"
    }

    pub fn keys(&self) -> Vec<(&'static str, Value)> {
        let mut keys = vec![
            ("block_count", Int(self.layers)),
            ("context_length", Int(64)),
            ("embedding_length", Int(self.hidden)),
            ("attention.head_count", Int(self.heads[0])),
            ("attention.head_count_kv", Int(self.heads[1])),
            ("attention.key_length", Int(self.head_dim)),
            ("attention.value_length", Int(self.head_dim)),
            ("attention.layer_norm_rms_epsilon", Float(1e-6)),
            ("attention.recurrent_layers", Flags((0..self.layers).map(|i| self.is_gdn(i)).collect())),
            ("rope.freq_base", Float(1e4)),
            ("rope.dimension_count", Int(self.rope)),
            ("ssm.conv_kernel", Int(4)),
            ("ssm.state_size", Int(self.gdn_dim)),
            ("ssm.group_count", Int(self.gdn_heads[0])),
            ("ssm.time_step_rank", Int(self.gdn_heads[1])),
            ("ssm.inner_size", Int(self.gdn_heads[1] * self.gdn_dim)),
        ];
        if self.has_experts() {
            let [count, used, ff, shared] = self.experts;
            keys.extend([
                ("expert_count", Int(count)),
                ("expert_used_count", Int(used)),
                ("expert_feed_forward_length", Int(ff)),
                ("expert_shared_feed_forward_length", Int(shared)),
            ]);
        } else {
            keys.push(("feed_forward_length", Int(self.ff)));
        }
        if self.has_streams() {
            let [heads, dim, budget, ratio] = self.indexer;
            let ratios = (0..self.layers).map(|i| if self.is_gdn(i) { 0 } else { ratio }).collect();
            let (ngrams, size) = (self.ple.ngram - 1, (self.ple.rows - 1) / ((self.ple.ngram - 1) * self.ple.heads));
            let heads_of_ple = u64::from(ngrams * self.ple.heads);
            keys.extend([
                ("attention.compress_ratios", Ints(ratios)),
                ("attention.indexer.head_count", Int(heads)),
                ("attention.indexer.key_length", Int(dim)),
                ("attention.indexer.top_k", Int(budget)),
                ("hyper_connection.count", Int(self.streams[0])),
                ("hyper_connection.low_rank", Int(self.streams[1])),
                ("ple.layers", Ints(vec![self.ple.layer])),
                ("ple.ngram_size", Int(self.ple.ngram)),
                ("ple.heads_per_ngram", Int(self.ple.heads)),
                ("ple.conv_kernel", Int(self.ple.taps)),
                ("ple.eos_token_id", Int(0)),
                ("embedding_length_per_layer_input", Int(self.ple.row)),
                ("ple.layer_multipliers", Longs((0..u64::from(self.ple.ngram)).map(|i| 3 + 2 * i).collect())),
                ("ple.head_offsets", Longs((0..heads_of_ple).map(|i| 1 + i * u64::from(size)).collect())),
                ("ple.head_vocab_sizes", Longs(vec![size.into(); heads_of_ple as usize])),
            ]);
        }
        keys
    }

    /// Name, and dimensions with the fastest first.
    pub fn tensors(&self) -> Vec<(String, Vec<u64>)> {
        let mut tensors = Vec::new();
        let mut add = |name: &str, dims: &[u32]| {
            tensors.push((name.to_owned(), dims.iter().map(|n| u64::from(*n)).collect()));
        };
        let (d, [streams, rank]) = (self.hidden, self.streams);
        let wide = d * streams;
        add("token_embd.weight", &[d, self.vocab]);
        add("output.weight", &[d, self.vocab]);
        let mut norms = vec![("output_hc".to_owned(), "output_norm".to_owned())];
        for i in 0..self.layers {
            norms.push((format!("blk.{i}.hc_attn"), format!("blk.{i}.attn_norm")));
            norms.push((format!("blk.{i}.hc_ffn"), format!("blk.{i}.post_attention_norm")));
        }
        for (mixer, norm) in norms {
            if !self.has_streams() {
                add(&format!("{norm}.weight"), &[d]);
                continue;
            }
            add(&format!("{mixer}_norm.weight"), &[wide]);
            add(&format!("{mixer}_down.weight"), &[wide, rank]);
            add(&format!("{mixer}_up.weight"), &[rank, wide]);
            if mixer != "output_hc" {
                add(&format!("{mixer}_inject.weight"), &[wide, streams]);
            }
        }
        if self.has_streams() {
            add("per_layer_token_embd.weight", &[self.ple.row, self.ple.rows]);
            let width = (self.ple.ngram - 1) * self.ple.heads * self.ple.row;
            for (name, dims) in [
                ("key", &[width, wide][..]),
                ("value", &[width, d]),
                ("conv1d", &[self.ple.taps, wide]),
                ("norm_key", &[wide]),
                ("norm_query", &[wide]),
                ("norm_conv", &[wide]),
            ] {
                add(&format!("blk.{}.ple_{name}.weight", self.ple.layer), dims);
            }
        }
        for i in 0..self.layers {
            if self.is_gdn(i) {
                self.gdn(|name, dims| add(&format!("blk.{i}.{name}"), dims));
            } else {
                self.attention(|name, dims| add(&format!("blk.{i}.{name}.weight"), dims));
            }
            self.feed_forward(|name, dims| add(&format!("blk.{i}.ffn_{name}.weight"), dims));
        }
        tensors
    }

    pub fn gdn(&self, mut add: impl FnMut(&str, &[u32])) {
        let (d, [keys, values], dim) = (self.hidden, self.gdn_heads, self.gdn_dim);
        let channels = (2 * keys + values) * dim;
        add("attn_qkv.weight", &[d, channels]);
        add("attn_gate.weight", &[d, values * dim]);
        if self.arch == "qwen3next" {
            add("ssm_ba.weight", &[d, 2 * values]);
        } else {
            add("ssm_beta.weight", &[d, values]);
            add("ssm_alpha.weight", &[d, values]);
        }
        add("ssm_conv1d.weight", &[4, channels]);
        add("ssm_dt.bias", &[values]);
        add("ssm_a", &[values, 1]);
        add("ssm_norm.weight", &[dim]);
        add("ssm_out.weight", &[values * dim, d]);
    }

    pub fn attention(&self, mut add: impl FnMut(&str, &[u32])) {
        let (d, [heads, kv_heads], dim) = (self.hidden, self.heads, self.head_dim);
        add("attn_q", &[d, 2 * heads * dim]);
        add("attn_k", &[d, kv_heads * dim]);
        add("attn_v", &[d, kv_heads * dim]);
        add("attn_output", &[heads * dim, d]);
        add("attn_q_norm", &[dim]);
        add("attn_k_norm", &[dim]);
        if self.has_streams() {
            let [heads, dim, ..] = self.indexer;
            add("indexer.q_proj", &[d, heads * dim]);
            add("indexer.k_proj", &[d, dim]);
            add("indexer.q_norm", &[dim]);
            add("indexer.k_norm", &[dim]);
        }
    }

    pub fn feed_forward(&self, mut add: impl FnMut(&str, &[u32])) {
        let d = self.hidden;
        if !self.has_experts() {
            add("gate", &[d, self.ff]);
            add("up", &[d, self.ff]);
            add("down", &[self.ff, d]);
            return;
        }
        let [count, _, ff, shared] = self.experts;
        add("gate_inp", &[d, count]);
        add("gate_exps", &[d, ff, count]);
        add("up_exps", &[d, ff, count]);
        add("down_exps", &[ff, d, count]);
        add("gate_inp_shexp", &[d]);
        add("gate_shexp", &[d, shared]);
        add("up_shexp", &[d, shared]);
        add("down_shexp", &[shared, d]);
    }
}

/// A small model to be spoilt.
pub struct Tiny {
    pub arch: &'static str,
    pub keys: Vec<(&'static str, Value)>,
    /// Name, dimensions with the fastest first, ggml type.
    pub tensors: Vec<(String, Vec<u64>, u32)>,
    /// Values of tensors that do not have random ones.
    pub values: HashMap<String, Vec<f32>>,
}

pub fn with_keys(arch: &str, keys: &[(&'static str, Value)]) -> GgufWriter {
    keys.iter().fold(GgufWriter::new(arch), |writer, (key, value)| {
        let key = format!("{arch}.{key}");
        match value {
            Int(value) => writer.kv_u32(&key, *value),
            Float(value) => writer.kv_f32(&key, *value),
            Text(value) => writer.kv_str(&key, value),
            Flags(values) => writer.kv_bool_array(&key, values),
            Ints(values) => writer.kv_u32_array(&key, values),
            Longs(values) => writer.kv_u64_array(&key, values),
        }
    })
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
