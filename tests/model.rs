//! Binding of model files: hyper-parameters, roles, and what is said about a file that cannot be used.
//!
//! Tiny models are spoilt in many ways. `tests/model_files.rs` reads whole files.

#[path = "support/gguf_writer.rs"]
mod gguf_writer;
#[path = "support/shapes.rs"]
mod shapes;
#[path = "support/tiny_model.rs"]
mod tiny_model;

use bankshot::gguf::GgufFile;
use bankshot::model::{Block, Bound, Census, GdnGate, GdnGates, KvType, LayerKind, ModelError, Part, PreNorm};
use bankshot::oracle::OracleSession;
use bankshot::oracle::gdn::unpack_gates;
use shapes::Value::{Flags, Float, Int, Ints, Longs, Text};
use shapes::{Shape, header_only, published};
use tiny_model::Tiny;

/// Bits of the logits after each of a few tokens.
fn run(tiny: &Tiny) -> Vec<Vec<u32>> {
    let file = tiny.open();
    let bound = Bound::new(&file).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(bound.warnings, Vec::<String>::new());
    let bytes: u64 = file.tensors().iter().map(|tensor| tensor.bytes).sum();
    let census = Census::of(&bound);
    assert_eq!(census.bytes_by_format.values().sum::<u64>(), bytes, "every byte is counted once");
    let mut session = OracleSession::new(&file, &bound, KvType::F16);
    let logits = [1, 2, 0, 3, 4, 5, 6, 7, 7].map(|token| session.step(token));
    assert!(logits.iter().flatten().all(|logit| logit.is_finite()));
    logits.iter().map(|logits| logits.iter().map(|logit| logit.to_bits()).collect()).collect()
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
fn every_architecture_binds_and_runs() {
    for arch in ["qwen35", "qwen35moe", "qwen3next"] {
        let tiny = Tiny::of(arch);
        run(&tiny);
        let bound = tiny.bind();
        let spec = &bound.spec;
        assert_eq!(spec.arch.name(), arch);
        assert_eq!((spec.wide(), spec.streams(), spec.ple.is_none()), (32, 1, true));
        assert_eq!(spec.experts.is_none(), arch == "qwen35");
        assert_eq!(spec.dense_ff, (arch == "qwen35").then_some(64));
        let key_heads: Vec<usize> = (0..4).map(|head| spec.gdn.key_head(head)).collect();
        assert_eq!(key_heads, if arch == "qwen3next" { [0, 0, 1, 1] } else { [0, 1, 0, 1] });
        assert_eq!(spec.gdn.gate, GdnGate::Silu);
        assert!(matches!(&bound.final_mix, PreNorm::Norm(norm) if norm.name() == "output_norm.weight"));
        let tied = Tiny::of(arch).without("output.weight");
        run(&tied);
        assert_eq!(tied.bind().output, tied.bind().embed);
        let mtp = Tiny::of(arch)
            .key("block_count", Int(3))
            .key("nextn_predict_layers", Int(1))
            .key("attention.recurrent_layers", Flags(vec![true, false, false]))
            .tensor("blk.2.nextn.eh_proj.weight", &[64, 32], 0)
            .tensor("blk.2.ffn_up.scale", &[1], 0)
            .bind();
        assert_eq!((mtp.spec.layers, mtp.spec.mtp_blocks, mtp.warnings.len()), (2, 1, 0));
        let scaled = Tiny::of(arch).tensor("blk.1.attn_q.scale", &[1], 0).problems();
        assert!(scaled.len() == 1 && scaled[0].contains("`blk.1.attn_q.scale`"), "{scaled:?}");
    }
    let Block::Gdn(gdn) = &Tiny::of("qwen3next").bind().layers[0].block.clone() else { panic!("a delta net") };
    assert!(matches!(&gdn.gates, GdnGates::Packed(both) if both.rows == 8));
    let (b, a) = unpack_gates(&[0.0, 1.0, 10.0, 11.0, 2.0, 3.0, 12.0, 13.0], 2);
    assert_eq!((b, a), (vec![0.0, 1.0, 2.0, 3.0], vec![10.0, 11.0, 12.0, 13.0]));
}

#[test]
fn fused_tensors_are_the_same_model() {
    let attention = |tiny: Tiny| {
        let rows = [("blk.1.attn_q.weight", 0..64), ("blk.1.attn_k.weight", 0..16), ("blk.1.attn_v.weight", 0..16)];
        tiny.fused("blk.1.attn_qkv.weight", &[32, 96], &rows)
    };
    let experts = |tiny: Tiny| {
        let (gate, up) = ("blk.0.ffn_gate_exps.weight", "blk.0.ffn_up_exps.weight");
        let each = |e: usize| [(gate, e * 32..(e + 1) * 32), (up, e * 32..(e + 1) * 32)];
        tiny.fused("blk.0.ffn_gate_up_exps.weight", &[32, 64, 4], &(0..4).flat_map(each).collect::<Vec<_>>())
    };
    for arch in ["qwen35", "qwen35moe", "qwen3next", "qwen4exp"] {
        let plain = run(&Tiny::of(arch));
        assert!(run(&attention(Tiny::of(arch))) == plain, "{arch}, attention");
        if arch != "qwen35" {
            assert!(run(&experts(Tiny::of(arch))) == plain, "{arch}, experts");
        }
    }
    // For each of two key heads of 16: query, key, and 32 rows each of values and gate.
    let (qkv, z) = ("blk.0.attn_qkv.weight", "blk.0.attn_gate.weight");
    let each = |h: usize| {
        let values = 64 + h * 32..96 + h * 32;
        [(qkv, h * 16..16 + h * 16), (qkv, 32 + h * 16..48 + h * 16), (qkv, values), (z, h * 32..32 + h * 32)]
    };
    let rows: Vec<_> = (0..2).flat_map(each).collect();
    let legacy = Tiny::of("qwen3next").fused("blk.0.ssm_in.weight", &[32, 192], &rows);
    assert!(run(&legacy) == run(&Tiny::of("qwen3next")));
    let bound = legacy.bind();
    let Block::Gdn(gdn) = &bound.layers[0].block else { panic!("a delta net") };
    let file = legacy.open();
    assert_eq!((gdn.qkv.rows, gdn.gate.rows, gdn.qkv.bytes()), (128, 64, 128 * 32 * 4));
    assert_eq!(gdn.qkv.matrix(&file, 0).len() as u64, gdn.qkv.bytes());
    let (first, all) = (gdn.gate.row(&file, 32), gdn.gate.matrix(&file, 0));
    assert!(first == &all[32 * 128..33 * 128] && first.len() == 128);
    assert!(gdn.gate.row(&file, 64).is_empty() && gdn.gate.matrix(&file, 1).is_empty());
    // Others have no such order of heads.
    let problems = Tiny::of("qwen35").fused("blk.0.ssm_in.weight", &[32, 192], &rows).problems();
    assert!(problems.len() == 2 && problems[0].contains("`blk.0.attn_qkv.weight`"), "{problems:?}");
    let short = attention(Tiny::of("qwen35")).tensor("blk.1.attn_qkv.weight", &[32, 95], 0).problems();
    assert_eq!(short, ["tensor `blk.1.attn_qkv.weight`: expected shape {32,96}, found {32,95}"]);
}

#[test]
fn missing_keys_have_defaults() {
    let moe = |used| {
        Tiny::of("qwen3next")
            .without_key("expert_feed_forward_length")
            .without_key("expert_shared_feed_forward_length")
            .key("expert_used_count", Int(used))
            .key("feed_forward_length", Int(32))
    };
    let experts = moe(1).bind().spec.experts.unwrap();
    assert_eq!((experts.ff, experts.shared_ff), (32, 32));
    let problems = moe(2).problems();
    assert_eq!(problems, ["key `qwen3next.expert_feed_forward_length`: expected 32 to 131072, found 16"]);
    let heads = Tiny::of("qwen35")
        .without_key("attention.head_count_kv")
        .without_key("attention.key_length")
        .without_key("attention.value_length")
        .without_key("rope.dimension_count")
        .tensor("blk.1.attn_k.weight", &[32, 32], 0)
        .tensor("blk.1.attn_v.weight", &[32, 32], 0)
        .bind();
    assert_eq!((heads.spec.kv_heads, heads.spec.head_dim, heads.spec.rope_dims), (2, 16, 16));
    let arrays = Tiny::of("qwen35")
        .key("attention.head_count", Ints(vec![0, 2]))
        .key("attention.head_count_kv", Ints(vec![0, 1]))
        .key("feed_forward_length", Ints(vec![64, 64]));
    assert!(run(&arrays) == run(&Tiny::of("qwen35")));
    let problems = Tiny::of("qwen35").key("feed_forward_length", Ints(vec![64, 32])).problems();
    assert_eq!(problems, ["key `qwen35.feed_forward_length`: expected one value for all layers, found 64 and 32"]);
    let problems = Tiny::of("qwen35").without_key("feed_forward_length").problems();
    assert_eq!(problems, ["key `qwen35.feed_forward_length`: expected 32 to 131072, found no such key"]);
}

/// Counts a model whose matrices are all Q8_0.
fn counted(shape: &Shape) -> Census {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.gguf");
    header_only(shape, |_| 8).write(&path);
    Census::of(&Bound::new(&GgufFile::open(&path).unwrap()).unwrap_or_else(|error| panic!("{error}")))
}

#[test]
fn published_sizes_give_their_parameters() {
    let [flash, dense, moe, next] = published();
    // In millions: all, active, and bytes of state in all and for each token.
    let cases = [
        (moe, 34_661, 2_946, 62_914_560 + 2_949_120, 20_480),
        (next, 79_674, 3_564, 75_497_472 + 3_538_944, 24_576),
        (dense, 26_896, 25_625, 150_994_944 + 5_898_240, 65_536),
        (flash, 125_744 + 51_200, 6_671, 113_246_208 + 4_423_680 + 368_640 + 8 + 12 * 3 * 128 * 4, 24_576 + 768),
    ];
    for (shape, total, active, fixed, per_token) in cases {
        let census = counted(&shape);
        let millions = |n: u64| (n + 500_000) / 1_000_000;
        assert_eq!(millions(census.parameters_total), total, "{}", shape.arch);
        assert_eq!(millions(census.parameters_active), active, "{}", shape.arch);
        assert_eq!((census.state.fixed, census.state.per_token_f16), (fixed, per_token), "{}", shape.arch);
        let share = |part| census.active_bytes.get(&part).map(|bytes| millions(bytes / 34 * 32));
        match shape.arch {
            // One more than there are: norms are F32, which counts them nearly four times.
            "qwen35" => assert_eq!((share(Part::FeedForward), share(Part::Experts)), (Some(17_113 + 1), None)),
            "qwen35moe" => assert_eq!((share(Part::Experts), share(Part::SharedExperts)), (Some(1_007), Some(126))),
            "qwen3next" => assert_eq!((share(Part::Experts), share(Part::Head)), (Some(1_510), Some(311))),
            _ => assert_eq!((share(Part::Experts), share(Part::SharedExperts)), (Some(2_359), Some(236))),
        }
    }
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
        .tensor("blk.0.ssm_out.weight", &[32, 31], 0)
        .tensor("blk.1.ffn_down_exps.weight", &[32, 32, 4], 9)
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
        "tensor `blk.0.ffn_up_exps.weight`: expected shape {32,32,4}, found no such tensor",
        "tensor `blk.1.attn_q_norm.weight`: expected shape {16}, found no such tensor",
        "tensor `blk.1.ffn_down_exps.weight`: expected a format of F32, F16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q2_K, \
         Q3_K, Q4_K, Q5_K, Q6_K, IQ2_XXS, IQ2_XS, IQ3_XXS, IQ1_S, IQ4_NL, IQ3_S, IQ2_S, IQ4_XS, IQ1_M, BF16, MXFP4, \
         NVFP4, found Q8_1 (type 9)",
        "tensor `output_hc_norm.weight`: expected F32, F16 or BF16, found Q8_0",
    ];
    assert_eq!(problems, expected);
}

#[test]
fn unknown_architectures_are_named() {
    let error = Bound::new(&Tiny { arch: "qwen2", ..Tiny::new() }.open()).unwrap_err();
    assert_eq!(error.to_string(), "architecture: expected qwen35, qwen35moe, qwen3next or qwen4exp, found qwen2");
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

#[test]
fn every_unusable_format_is_named() {
    let types = [
        (9, "Q8_1"),
        (15, "Q8_K"),
        (24, "I8"),
        (25, "I16"),
        (26, "I32"),
        (27, "I64"),
        (28, "F64"),
        (34, "TQ1_0"),
        (35, "TQ2_0"),
        (41, "Q1_0"),
        (42, "Q2_0"),
    ];
    for (id, name) in types {
        let problems = Tiny::new().tensor("blk.1.attn_k.weight", &[256, 16], id).problems();
        let expected = format!(", found {name} (type {id})");
        assert!(problems.iter().any(|problem| problem.ends_with(&expected)), "{name}: {problems:?}");
    }
}
