//! Binding of model files: hyper-parameters, roles, and what is said about a file that cannot be used.
//!
//! A tiny model is written here, and spoilt in many ways. Some tests read the files under `BANKSHOT_FIXTURES`, without
//! which they say so and pass.

#[path = "support/gguf_writer.rs"]
mod gguf_writer;

use std::path::PathBuf;

use bankshot::gguf::GgufFile;
use bankshot::model::{Block, Bound, Census, KvType, LayerKind, ModelError};
use bankshot::oracle::OracleSession;
use gguf_writer::GgufWriter;

enum Value {
    Int(u32),
    Float(f32),
    Text(&'static str),
    Flags(Vec<bool>),
    Ints(Vec<u32>),
    Longs(Vec<u64>),
}
use Value::{Flags, Float, Int, Ints, Longs, Text};

/// A model of two layers, the first with the n-gram embedding and a delta net, the second with sparse attention.
struct Tiny {
    keys: Vec<(&'static str, Value)>,
    /// Name, dimensions with the fastest first, ggml type.
    tensors: Vec<(String, Vec<u64>, u32)>,
}

impl Tiny {
    fn new() -> Tiny {
        let keys = vec![
            ("block_count", Int(2)),
            ("context_length", Int(64)),
            ("embedding_length", Int(32)),
            ("attention.head_count", Int(2)),
            ("attention.head_count_kv", Int(1)),
            ("attention.key_length", Int(16)),
            ("attention.value_length", Int(16)),
            ("attention.layer_norm_rms_epsilon", Float(1e-6)),
            ("attention.recurrent_layers", Flags(vec![true, false])),
            ("attention.compress_ratios", Ints(vec![0, 2])),
            ("attention.indexer.head_count", Int(2)),
            ("attention.indexer.key_length", Int(16)),
            ("attention.indexer.top_k", Int(4)),
            ("rope.freq_base", Float(1e4)),
            ("rope.dimension_count", Int(8)),
            ("ssm.conv_kernel", Int(4)),
            ("ssm.state_size", Int(16)),
            ("ssm.group_count", Int(1)),
            ("ssm.time_step_rank", Int(2)),
            ("ssm.inner_size", Int(32)),
            ("expert_count", Int(4)),
            ("expert_used_count", Int(2)),
            ("expert_feed_forward_length", Int(32)),
            ("expert_shared_feed_forward_length", Int(32)),
            ("hyper_connection.count", Int(2)),
            ("hyper_connection.low_rank", Int(32)),
            ("ple.layers", Ints(vec![0])),
            ("ple.ngram_size", Int(2)),
            ("ple.heads_per_ngram", Int(1)),
            ("ple.conv_kernel", Int(2)),
            ("ple.eos_token_id", Int(0)),
            ("embedding_length_per_layer_input", Int(32)),
            ("ple.layer_multipliers", Longs(vec![3, 5])),
            ("ple.head_offsets", Longs(vec![1])),
            ("ple.head_vocab_sizes", Longs(vec![7])),
        ];
        let mut tensors: Vec<(String, Vec<u64>, u32)> = Vec::new();
        let mut add = |name: &str, dims: &[u64]| tensors.push((name.to_owned(), dims.to_vec(), 0));
        add("token_embd.weight", &[32, 8]);
        add("output.weight", &[32, 8]);
        add("per_layer_token_embd.weight", &[32, 8]);
        for (stem, inject) in [("blk.0.hc_attn", true), ("blk.0.hc_ffn", true), ("blk.1.hc_attn", true)]
            .into_iter()
            .chain([("blk.1.hc_ffn", true), ("output_hc", false)])
        {
            add(&format!("{stem}_norm.weight"), &[64]);
            add(&format!("{stem}_down.weight"), &[64, 32]);
            add(&format!("{stem}_up.weight"), &[32, 64]);
            if inject {
                add(&format!("{stem}_inject.weight"), &[64, 2]);
            }
        }
        for (name, dims) in [("key", &[32, 64][..]), ("value", &[32, 32]), ("conv1d", &[2, 64])].into_iter().chain([
            ("norm_key", &[64][..]),
            ("norm_query", &[64]),
            ("norm_conv", &[64]),
        ]) {
            add(&format!("blk.0.ple_{name}.weight"), dims);
        }
        for (name, dims) in [
            ("attn_qkv.weight", &[32, 64][..]),
            ("attn_gate.weight", &[32, 32]),
            ("ssm_beta.weight", &[32, 2]),
            ("ssm_alpha.weight", &[32, 2]),
            ("ssm_conv1d.weight", &[4, 64]),
            ("ssm_dt.bias", &[2]),
            ("ssm_a", &[2, 1]),
            ("ssm_norm.weight", &[16]),
            ("ssm_out.weight", &[32, 32]),
        ] {
            add(&format!("blk.0.{name}"), dims);
        }
        for (name, dims) in [
            ("attn_q", &[32, 64][..]),
            ("attn_k", &[32, 16]),
            ("attn_v", &[32, 16]),
            ("attn_output", &[32, 32]),
            ("attn_q_norm", &[16]),
            ("attn_k_norm", &[16]),
            ("indexer.q_proj", &[32, 32]),
            ("indexer.k_proj", &[32, 16]),
            ("indexer.q_norm", &[16]),
            ("indexer.k_norm", &[16]),
        ] {
            add(&format!("blk.1.{name}.weight"), dims);
        }
        for layer in 0..2 {
            for (name, dims) in [
                ("gate_inp", &[32, 4][..]),
                ("gate_exps", &[32, 32, 4]),
                ("up_exps", &[32, 32, 4]),
                ("down_exps", &[32, 32, 4]),
                ("gate_inp_shexp", &[32]),
                ("gate_shexp", &[32, 32]),
                ("up_shexp", &[32, 32]),
                ("down_shexp", &[32, 32]),
            ] {
                add(&format!("blk.{layer}.ffn_{name}.weight"), dims);
            }
        }
        Tiny { keys, tensors }
    }

    fn key(mut self, key: &'static str, value: Value) -> Tiny {
        self.keys.retain(|(other, _)| *other != key);
        self.keys.push((key, value));
        self
    }

    fn without_key(mut self, key: &str) -> Tiny {
        self.keys.retain(|(other, _)| *other != key);
        self
    }

    fn tensor(mut self, name: &str, dims: &[u64], ggml_type: u32) -> Tiny {
        self.tensors.retain(|(other, ..)| other != name);
        self.tensors.push((name.to_owned(), dims.to_vec(), ggml_type));
        self
    }

    fn without(mut self, name: &str) -> Tiny {
        self.tensors.retain(|(other, ..)| other != name);
        self
    }

    /// Writes the model with small numbers in all tensors.
    fn open(&self) -> GgufFile {
        let mut writer = GgufWriter::new("qwen4exp");
        for (key, value) in &self.keys {
            let key = format!("qwen4exp.{key}");
            writer = match value {
                Int(value) => writer.kv_u32(&key, *value),
                Float(value) => writer.kv_f32(&key, *value),
                Text(value) => writer.kv_str(&key, value),
                Flags(values) => writer.kv_bool_array(&key, values),
                Ints(values) => writer.kv_u32_array(&key, values),
                Longs(values) => writer.kv_u64_array(&key, values),
            };
        }
        let mut n = 0u32;
        let mut number = || {
            n = n.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (n >> 8) as f32 / (1 << 24) as f32 - 0.5
        };
        for (name, dims, ggml_type) in &self.tensors {
            let elements = dims.iter().product::<u64>() as usize;
            writer = match ggml_type {
                0 => writer.tensor_f32(name, dims, &(0..elements).map(|_| number()).collect::<Vec<f32>>()),
                1 => writer.tensor(name, dims, 1, &vec![0; 2 * elements]),
                3 => writer.tensor(name, dims, 3, &vec![0; elements / 32 * 20]),
                8 => writer.tensor(name, dims, 8, &vec![0; elements / 32 * 34]),
                other => panic!("type {other}"),
            };
        }
        GgufFile::from_static(writer.to_bytes().leak()).unwrap()
    }

    fn bind(&self) -> Bound {
        Bound::new(&self.open()).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Every problem as text.
    fn problems(&self) -> Vec<String> {
        match Bound::new(&self.open()) {
            Err(ModelError::Problems(problems)) => problems.iter().map(ToString::to_string).collect(),
            Err(other) => panic!("{other}"),
            Ok(_) => panic!("bound"),
        }
    }
}

#[test]
fn a_tiny_model_binds_and_runs() {
    let file = Tiny::new().open();
    let bound = Bound::new(&file).unwrap();
    assert_eq!(bound.warnings, Vec::<String>::new());
    assert_eq!(bound.spec.kinds, [LayerKind::Gdn, LayerKind::Attention { ratio: 2 }]);
    assert_eq!(bound.ple_table.as_ref().unwrap().rows, 8);
    let mut session = OracleSession::new(&file, &bound, KvType::F16);
    let tokens = [1, 2, 0, 3, 4, 5, 6, 7, 7, 7, 7];
    let first: Vec<Vec<f32>> = tokens.iter().map(|token| session.step(*token)).collect();
    assert!(first.iter().flatten().all(|logit| logit.is_finite()));
    session.reset();
    let mut names = Vec::new();
    let again: Vec<Vec<f32>> = tokens
        .iter()
        .map(|token| session.step_traced(*token, &mut |name, layer, _| names.push((name.to_owned(), layer))))
        .collect();
    assert_eq!(first, again);
    assert_eq!(names[..4], [("embed".into(), 2), ("ple".into(), 0), ("mix".into(), 0), ("weights".into(), 0)]);
}

#[test]
fn variants_bind() {
    let tied = Tiny::new().without("output.weight").bind();
    assert_eq!(tied.output, tied.embed);
    let interval = Tiny::new().without_key("attention.recurrent_layers").key("full_attention_interval", Int(2)).bind();
    assert_eq!(interval.spec.kinds, Tiny::new().bind().spec.kinds);
    let mtp = Tiny::new()
        .key("block_count", Int(3))
        .key("nextn_predict_layers", Int(1))
        .key("attention.recurrent_layers", Flags(vec![true, false, false]))
        .key("attention.compress_ratios", Ints(vec![0, 2, 0]))
        .tensor("blk.2.nextn.eh_proj.weight", &[64, 32], 0)
        .tensor("blk.2.attn_q.scale", &[1], 0)
        .bind();
    assert_eq!((mtp.spec.layers, mtp.spec.mtp_blocks, mtp.warnings.len()), (2, 1, 0));
    let taps = Tiny::new().tensor("blk.0.ple_conv1d.weight", &[2, 64], 1).bind();
    assert_eq!(taps.layers[0].ple.as_ref().unwrap().conv.len, 128);
    let plain = Tiny::new().key("ple.layers", Ints(vec![])).bind();
    assert!(plain.ple_table.is_none() && plain.layers[0].ple.is_none());
    assert_eq!(plain.warnings.len(), 7, "{:?}", plain.warnings);
}

#[test]
fn oddities_are_warned_of() {
    let dense = Tiny::new().key("attention.compress_ratios", Ints(vec![0, 0])).bind();
    assert!(matches!(&dense.layers[1].block, Block::Attention(attention) if attention.indexer.is_none()));
    assert!(dense.warnings.len() == 1 && dense.warnings[0].contains("attention is dense"), "{:?}", dense.warnings);
    let extra = Tiny::new().tensor("blk.0.unheard_of.weight", &[4], 0).bind();
    assert_eq!(extra.warnings, ["tensor `blk.0.unheard_of.weight` is not used"]);
}

#[test]
fn bad_keys_are_named() {
    let cases = [
        ("attention.key_length", Int(24), "`qwen4exp.attention.key_length`: expected a multiple of 16, found 24"),
        ("attention.value_length", Int(32), "expected the key length 16, found 32"),
        ("attention.head_count_kv", Int(3), "expected a divisor of the 2 heads, found 3"),
        ("attention.layer_norm_rms_epsilon", Float(0.0), "found 0e0"),
        ("attention.layer_norm_rms_epsilon", Float(f32::NAN), "found NaN"),
        ("attention.recurrent_layers", Flags(vec![true]), "expected 2 flags, one for each block, found 1"),
        ("attention.compress_ratios", Ints(vec![0, 3]), "expected a divisor above 1 of the budget 4, found 3"),
        ("attention.compress_ratios", Ints(vec![2, 2]), "expected 0 for the recurrent layer 0, found 2"),
        ("attention.indexer.head_count", Text("two"), "attention.indexer.head_count"),
        ("rope.dimension_count", Int(32), "expected at most 16, the shorter head, found 32"),
        ("rope.scaling.type", Text("yarn"), "expected none, found yarn"),
        ("ssm.conv_kernel", Int(9), "expected 2 to 8, found 9"),
        ("ssm.state_size", Int(272), "expected 16 to 256, found 272"),
        ("ssm.inner_size", Int(31), "expected 2 value heads of 16, found 31"),
        ("expert_used_count", Int(5), "expected 1 to 4, found 5"),
        ("hyper_connection.count", Int(1), "expected 2 to 8, found 1"),
        ("embedding_length", Int(48), "expected a multiple of 32, found 48"),
        ("context_length", Int(1 << 25), "found 33554432"),
        ("ple.layers", Ints(vec![2]), "expected at most one layer below 2, found [2]"),
        ("ple.layers", Ints(vec![0, 1]), "found [0, 1]"),
        ("ple.eos_token_id", Int(8), "expected 0 to 7, found 8"),
        ("ple.head_vocab_sizes", Longs(vec![0]), "expected sizes above 0, found 0"),
        ("ple.layer_multipliers", Longs(vec![3]), "expected at least 2 integers, found 1 integers"),
        ("nextn_predict_layers", Int(2), "expected 0 to 1, found 2"),
    ];
    for (key, value, expected) in cases {
        let problems = Tiny::new().key(key, value).problems();
        assert!(problems.len() == 1 && problems[0].contains(expected), "{key}: {problems:?}");
    }
    let keys: Vec<&str> = Tiny::new().keys.iter().map(|(key, _)| *key).collect();
    // These have defaults, of which those for a head's length do not fit here.
    let optional = ["rope.freq_base", "rope.dimension_count", "attention.key_length", "attention.value_length"];
    for key in keys.into_iter().filter(|key| !optional.contains(key)) {
        let spoilt = Tiny::new().without_key(key);
        match key {
            "attention.recurrent_layers" | "ple.layers" | "attention.head_count_kv" => {}
            _ => assert!(spoilt.problems()[0].contains(&format!("`qwen4exp.{key}`")), "{key}"),
        }
    }
}

#[test]
fn bad_tensors_are_named_together() {
    let problems = Tiny::new()
        .without("blk.1.attn_q_norm.weight")
        .without("blk.0.ffn_up_exps.weight")
        .tensor("blk.0.ffn_gate_up_exps.weight", &[32, 64, 4], 0)
        .tensor("blk.0.ssm_out.weight", &[32, 31], 0)
        .tensor("blk.1.ffn_down_exps.weight", &[32, 32, 4], 3)
        .tensor("output_hc_norm.weight", &[64], 8)
        .tensor("per_layer_token_embd.weight", &[32, 7], 0)
        .tensor("blk.1.attn_k.scale", &[1], 0)
        .tensor("rope_freqs.weight", &[4], 0)
        .problems();
    let expected = [
        "tensor `blk.1.attn_k.scale`: expected no tensor that scales weights or rotary angles, found one",
        "tensor `rope_freqs.weight`: expected no tensor that scales weights or rotary angles, found one",
        "tensor `per_layer_token_embd.weight`: expected at least 8 rows, found 7",
        "tensor `blk.0.ssm_out.weight`: expected shape {32,32}, found {32,31}",
        "tensor `blk.0.ffn_up_exps.weight`: expected shape {32,32,4}, found only the fused `blk.0.ffn_gate_up_exps.weight`",
        "tensor `blk.1.attn_q_norm.weight`: expected shape {16}, found no such tensor",
        "tensor `blk.1.ffn_down_exps.weight`: expected a format of F32, F16, Q4_0, Q8_0, Q5_K, Q6_K, IQ3_XXS, IQ4_NL, \
         IQ3_S, IQ2_S, BF16, found Q4_1",
        "tensor `output_hc_norm.weight`: expected F32, F16 or BF16, found Q8_0",
    ];
    assert_eq!(problems, expected);
}

#[test]
fn a_missing_embedding_is_reported_with_bad_keys() {
    let problems = Tiny::new().without("token_embd.weight").key("ssm.conv_kernel", Int(1)).problems();
    assert!(problems.iter().any(|problem| problem.contains("token_embd.weight")), "{problems:?}");
    assert!(problems.iter().any(|problem| problem.contains("ssm.conv_kernel")), "{problems:?}");
}

#[test]
fn a_file_without_a_trunk_is_told_apart() {
    let mut companion = Tiny::new()
        .key("block_count", Int(3))
        .key("nextn_predict_layers", Int(1))
        .tensor("blk.2.nextn.eh_proj.weight", &[64, 32], 0)
        .tensor("blk.2.attn_norm.weight", &[32], 0);
    companion.tensors.retain(|(name, ..)| !name.starts_with("blk.0.") && !name.starts_with("blk.1."));
    let error = Bound::new(&companion.open()).unwrap_err();
    assert!(matches!(error, ModelError::OnlyPredictors { first: 2 }), "{error}");
    let text = error.to_string();
    for part in
        ["from block 0 on, found only those that predict further tokens, from block 2 on", "beside a model file"]
    {
        assert!(text.contains(part), "expected {part:?} in: {text}");
    }

    // A trunk of which only a part is there is a damaged model, of which every gap is named.
    let mut damaged = companion.tensor("blk.1.attn_q.weight", &[32, 64], 0);
    damaged = damaged.key("attention.recurrent_layers", Flags(vec![true, false, false]));
    let problems = damaged.key("attention.compress_ratios", Ints(vec![0, 2, 0])).problems();
    assert!(problems.iter().any(|problem| problem.contains("blk.0.ssm_out.weight")), "{problems:?}");
}

fn models() -> Option<PathBuf> {
    match std::env::var_os("BANKSHOT_FIXTURES") {
        Some(root) => Some(PathBuf::from(root).join("models")),
        None => {
            println!("skipped: BANKSHOT_FIXTURES is not set");
            None
        }
    }
}

#[test]
fn qwen4exp_files_bind_without_warnings() {
    let Some(models) = models() else { return };
    for name in ["demo-ud", "qwen4exp-BF16", "qwen4exp-UDMIX", "qwen4exp-IQ3_XXS"] {
        let file = GgufFile::open(&models.join(name).with_extension("gguf")).unwrap();
        let bound = Bound::new(&file).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(bound.warnings, Vec::<String>::new(), "{name}");
        assert_eq!(bound.spec.layers, 8);
        assert_eq!(bound.spec.kinds[3], LayerKind::Attention { ratio: 4 });
        assert!(matches!(bound.layers[2].block, Block::Gdn(_)));
        assert!(bound.layers[1].ple.is_some());
        let census = Census::of(&bound);
        println!("{name}: {census:?} {}", census.active_bytes_total());
        let bytes: u64 = file.tensors().iter().map(|tensor| tensor.bytes).sum();
        assert_eq!(census.bytes_by_format.values().sum::<u64>(), bytes, "{name}");
        assert_eq!(census.state.per_token_f16, 2 * (2 * 2 * 256 * 2 + 128 * 2 / 4));
    }
}

#[test]
fn other_architectures_are_named() {
    let Some(models) = models() else { return };
    let file = GgufFile::open(&models.join("qwen35-BF16.gguf")).unwrap();
    let error = Bound::new(&file).unwrap_err();
    assert_eq!(error.to_string(), "architecture: expected qwen4exp, found qwen35");
}

#[test]
fn unusable_formats_are_all_listed() {
    let Some(models) = models() else { return };
    let file = GgufFile::open(&models.join("qwen4exp-MTP-IQ2_XXS.gguf")).unwrap();
    let Err(ModelError::Problems(problems)) = Bound::new(&file) else { panic!("bound") };
    let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
    for name in ["IQ2_XXS", "Q2_K", "Q4_K"] {
        assert!(problems.iter().any(|problem| problem.ends_with(&format!("found {name}"))), "{name}: {problems:?}");
    }
    assert!(problems.len() > 100 && problems.iter().all(|problem| problem.contains("expected a format of")));
    // The ninth block is not part of the trunk.
    assert!(!problems.iter().any(|problem| problem.contains("blk.8")), "{problems:?}");
}
