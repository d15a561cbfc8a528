//! Shapes of models, the published ones among them, and files of their headers.

// Each test program uses a part of it.
#![allow(dead_code)]

use std::path::Path;

use super::gguf_writer::GgufWriter;
use bankshot::quant::ggml_type_layout;

pub enum Value {
    Int(u32),
    Float(f32),
    Text(&'static str),
    Flags(Vec<bool>),
    Ints(Vec<u32>),
    Longs(Vec<u64>),
}
use Value::{Flags, Float, Int, Ints, Longs, Text};

/// Sizes of a model.
#[derive(Clone, Copy)]
pub struct Shape {
    pub arch: &'static str,
    pub layers: u32,
    pub context: u32,
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
    pub ple_eos: u32,
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
        context: 64,
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
        ple_eos: 0,
    }
}

impl Shape {
    /// Every fourth layer is attention, and the last one.
    fn is_gdn(&self, layer: u32) -> bool {
        layer % 4 != 3 && layer + 1 != self.layers
    }

    fn has_experts(&self) -> bool {
        self.arch != "qwen35"
    }

    fn has_streams(&self) -> bool {
        self.arch == "qwen4exp"
    }

    pub fn keys(&self) -> Vec<(&'static str, Value)> {
        let mut keys = vec![
            ("block_count", Int(self.layers)),
            ("context_length", Int(self.context)),
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
                ("ple.eos_token_id", Int(self.ple_eos)),
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

    fn gdn(&self, mut add: impl FnMut(&str, &[u32])) {
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

    fn attention(&self, mut add: impl FnMut(&str, &[u32])) {
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

    fn feed_forward(&self, mut add: impl FnMut(&str, &[u32])) {
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

/// Qwen3.8-Flash-Next, Qwen3.8-27B, Qwen3.5-35B-A3B and Qwen3-Next-80B-A3B.
pub fn published() -> [Shape; 4] {
    let moe = Shape {
        layers: 40,
        context: 262_144,
        hidden: 2048,
        vocab: 248_320,
        heads: [16, 2],
        head_dim: 256,
        rope: 64,
        gdn_heads: [16, 32],
        gdn_dim: 128,
        experts: [256, 8, 512, 512],
        ..tiny("qwen35moe")
    };
    let next = Shape { arch: "qwen3next", layers: 48, vocab: 151_936, experts: [512, 10, 512, 512], ..moe };
    let dense =
        Shape { arch: "qwen35", layers: 64, hidden: 5120, heads: [24, 4], gdn_heads: [16, 48], ff: 17_408, ..moe };
    let flash = Shape {
        arch: "qwen4exp",
        layers: 48,
        hidden: 2560,
        heads: [24, 2],
        gdn_heads: [16, 48],
        experts: [512, 10, 640, 640],
        streams: [4, 320],
        indexer: [4, 128, 2048, 4],
        ple: PleShape { layer: 1, ngram: 3, heads: 8, taps: 4, row: 160, rows: 320_001_536 },
        ..moe
    };
    [flash, dense, moe, next]
}

/// A header and a hole for the data. `format` gives the ggml type of a matrix by its name; all else is F32.
pub fn header_only(shape: &Shape, format: impl Fn(&str) -> u32) -> HeaderOnly {
    let mut writer = with_keys(shape.arch, &shape.keys());
    for (name, dims) in shape.tensors() {
        let elements = dims.iter().product::<u64>();
        let is_matrix = name.ends_with(".weight") && dims.len() > 1 && dims[0].is_multiple_of(32);
        let ggml_type = if is_matrix { format(&name) } else { 0 };
        let (block, bytes) = ggml_type_layout(ggml_type).unwrap();
        assert!(dims[0].is_multiple_of(block), "{name}: rows of {} are no blocks of {block}", dims[0]);
        writer = writer.hole(&name, &dims, ggml_type, (elements / block * bytes) as usize);
    }
    HeaderOnly(writer)
}

pub struct HeaderOnly(pub GgufWriter);

impl HeaderOnly {
    /// Writes the header; the file is as long as with its data, and takes no more of the disk than the header.
    pub fn write(&self, path: &Path) {
        std::fs::write(path, self.0.to_bytes()).unwrap();
        std::fs::File::options().write(true).open(path).unwrap().set_len(self.0.file_bytes()).unwrap();
    }
}
