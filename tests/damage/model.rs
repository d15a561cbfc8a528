//! Damages of what the keys and tensors mean. The container is whole.

use super::Damage;
use super::text::vocabulary;
use crate::shapes::Value::{self, Flags, Float, Int, Ints, Longs, Text};
use crate::tiny_model::Tiny;

fn model(name: impl Into<String>, tiny: &Tiny, says: &[&str]) -> Damage {
    Damage::new(name, vocabulary(tiny.writer()).to_bytes(), says)
}

/// The tiny `qwen4exp` with another value of one key, which is the only problem.
fn key(name: &str, key: &'static str, value: Value, says: &str) -> Damage {
    let key_says = format!("key `qwen4exp.{key}`: {says}");
    model(name, &Tiny::new().key(key, value), &["the model has 1 problem(s):", &key_says])
}

fn without(name: &str, key: &'static str, says: &str) -> Damage {
    let key_says = format!("key `qwen4exp.{key}`: {says}, found no such key");
    model(name, &Tiny::new().without_key(key), &[&key_says])
}

pub fn keys() -> Vec<Damage> {
    let mut all = trunk();
    all.extend(attention());
    all.extend(delta_net_and_experts());
    all.extend(streams_and_n_grams());
    all
}

fn trunk() -> Vec<Damage> {
    let interval = |blocks| {
        let tiny = Tiny::of("qwen35").without_key("attention.recurrent_layers").key("full_attention_interval", Int(2));
        tiny.key("block_count", Int(blocks))
    };
    let mut unnamed = vocabulary(Tiny::new().writer()).without("general.architecture");
    let no_architecture = Damage::new(
        "no architecture",
        unnamed.to_bytes(),
        &["architecture: expected qwen35, qwen35moe, qwen3next or qwen4exp, found no key `general.architecture`"],
    );
    unnamed = unnamed.kv_u32("general.architecture", 35);
    vec![
        no_architecture,
        Damage::new(
            "a number as the architecture",
            unnamed.to_bytes(),
            &["metadata key 'general.architecture': expected a string, found u32 35"],
        ),
        model("another architecture", &Tiny { arch: "llama", ..Tiny::new() }, &["qwen3next or qwen4exp, found llama"]),
        key("no blocks", "block_count", Int(0), "expected 1 to 1024, found 0"),
        key("too many blocks", "block_count", Int(1025), "expected 1 to 1024, found 1025"),
        model(
            "a block more than there are",
            &interval(3),
            &["tensor `blk.2.attn_norm.weight`: expected shape {32}, found no such tensor", "`blk.2.attn_qkv.weight`"],
        ),
        model(
            "a block less than there are",
            &interval(1),
            &["key `qwen35.block_count`: expected a count above 1, the last block that has tensors, found 1"],
        ),
        model(
            "a layer that is counted as one for further tokens",
            &interval(2).key("nextn_predict_layers", Int(1)),
            &[
                "key `qwen35.nextn_predict_layers`: expected a count that leaves out block 1, which has no tensor `nextn.*`, found 1",
            ],
        ),
        key("only blocks for further tokens", "nextn_predict_layers", Int(2), "expected 0 to 1, found 2"),
        key("no context", "context_length", Int(0), "expected 1 to 16777216, found 0"),
        key("a context of 2^25", "context_length", Int(1 << 25), "expected 1 to 16777216, found 33554432"),
        key("an odd width", "embedding_length", Int(33), "expected a multiple of 32, found 33"),
        key("no width", "embedding_length", Int(0), "expected 32 to 65536, found 0"),
        key(
            "a norm's epsilon of 0",
            "attention.layer_norm_rms_epsilon",
            Float(0.0),
            "expected 7.888609e-31 to 1e0, found 0e0",
        ),
        key(
            "a norm's epsilon that is no number",
            "attention.layer_norm_rms_epsilon",
            Float(f32::NAN),
            "expected 7.888609e-31 to 1e0, found NaN",
        ),
        key(
            "an endless norm's epsilon",
            "attention.layer_norm_rms_epsilon",
            Float(f32::INFINITY),
            "expected 7.888609e-31 to 1e0, found inf",
        ),
        without("no norm's epsilon", "attention.layer_norm_rms_epsilon", "expected 7.888609e-31 to 1e0"),
        without("no count of blocks", "block_count", "expected 1 to 1024"),
        without("no context length", "context_length", "expected 1 to 16777216"),
    ]
}

fn attention() -> Vec<Damage> {
    let sections = "expected three counts that add up to 4, then 0, found";
    vec![
        key("no heads", "attention.head_count", Int(0), "expected 1 to 1024, found 0"),
        key("key heads that do not divide the heads", "attention.head_count_kv", Int(3), "expected a divisor of the 2 heads, found 3"),
        key("heads for another number of layers", "attention.head_count", Ints(vec![2; 3]), "")
            .says(&["'qwen4exp.attention.head_count'", "an array of 2 of them (one for each layer), found array of u32 with 3 elements"]),
        key("keys of an odd length", "attention.key_length", Int(24), "expected a multiple of 16, found 24"),
        key("keys of 1024", "attention.key_length", Int(1024), "expected 16 to 512, found 1024"),
        key("values of another length than keys", "attention.value_length", Int(32), "expected the key length 16, found 32"),
        key("flags for another number of layers", "attention.recurrent_layers", Flags(vec![true]), "expected 2 flags, one for each block, found 1"),
        key("a flag of 2", "attention.recurrent_layers", Ints(vec![1, 2]), "")
            .says(&["'qwen4exp.attention.recurrent_layers': expected an array of bool, or of integers 0 and 1, found element 1 = 2"]),
        key("an odd number of rotated dimensions", "rope.dimension_count", Int(7), "expected a multiple of 2, found 7"),
        key("more rotated dimensions than a head has", "rope.dimension_count", Int(32), "expected at most 16, the shorter head, found 32"),
        key("a base of 0", "rope.freq_base", Float(0.0), "expected 1e0 to 1e12, found 0e0"),
        key("stretched angles", "rope.scaling.type", Text("yarn"), "expected none, found yarn"),
        key("stretched angles of no type", "rope.scaling.factor", Float(4.0), "expected 1, found 4"),
        key("sections that are too many", "rope.dimension_sections", Ints(vec![2, 1, 2, 0]), &format!("{sections} [2, 1, 2, 0]")),
        key("sections that are too few", "rope.dimension_sections", Ints(vec![1, 1, 1, 0]), &format!("{sections} [1, 1, 1, 0]")),
        key("a section that does not turn", "rope.dimension_sections", Ints(vec![2, 1, 0, 1]), &format!("{sections} [2, 1, 0, 1]")),
        key("sections that overflow", "rope.dimension_sections", Longs(vec![u64::MAX, 5, 0, 0]), &format!("{sections} [18446744073709551615, 5, 0, 0]")),
    ]
}

fn delta_net_and_experts() -> Vec<Damage> {
    vec![
        key("a delta net's head of 272", "ssm.state_size", Int(272), "expected 16 to 256, found 272"),
        key("no key heads of the delta net", "ssm.group_count", Int(0), "expected 1 to 1024, found 0"),
        model(
            "value heads that key heads do not divide",
            &Tiny::of("qwen35").key("ssm.time_step_rank", Int(3)).key("ssm.inner_size", Int(48)),
            &["key `qwen35.ssm.time_step_rank`: expected a multiple of the 2 key heads, found 3"],
        ),
        key(
            "another inner size than that of the heads",
            "ssm.inner_size",
            Int(31),
            "expected 2 value heads of 16, found 31",
        ),
        key("a convolution of one tap", "ssm.conv_kernel", Int(1), "expected 2 to 8, found 1"),
        key("a convolution of nine taps", "ssm.conv_kernel", Int(9), "expected 2 to 8, found 9"),
        without("no taps", "ssm.conv_kernel", "expected 2 to 8"),
        key("no experts", "expert_count", Int(0), "expected 1 to 4096, found 0"),
        key("2^32 - 1 experts", "expert_count", Int(u32::MAX), "expected 1 to 4096, found 4294967295"),
        key("no expert used", "expert_used_count", Int(0), "expected 1 to 4, found 0"),
        key("more experts used than there are", "expert_used_count", Int(5), "expected 1 to 4, found 5"),
        key("experts of odd width", "expert_feed_forward_length", Int(40), "expected a multiple of 32, found 40"),
        key("experts of no width", "expert_feed_forward_length", Int(0), "expected 32 to 131072, found 0"),
        without("no width of the experts", "expert_feed_forward_length", "expected 32 to 131072"),
        model(
            "feed-forwards of different widths",
            &Tiny::of("qwen35").key("feed_forward_length", Ints(vec![64, 32])),
            &["key `qwen35.feed_forward_length`: expected one value for all layers, found 64 and 32"],
        ),
    ]
}

fn streams_and_n_grams() -> Vec<Damage> {
    let ratios = "attention.compress_ratios";
    let tiny_table = "tensor `per_layer_token_embd.weight`: expected at least 18446744073709551615 rows, found 8";
    vec![
        key("one stream", "hyper_connection.count", Int(1), "expected 2 to 8, found 1"),
        key("a low rank of 0", "hyper_connection.low_rank", Int(0), "expected 32 to 65536, found 0"),
        key("an indexer without heads", "attention.indexer.head_count", Int(0), "expected 1 to 1024, found 0"),
        key("no budget", "attention.indexer.top_k", Int(0), "expected 1 to 16777216, found 0"),
        key("ratios for another number of layers", ratios, Ints(vec![0, 2, 0]), "").says(&[
            "'qwen4exp.attention.compress_ratios'",
            "an array of 2 of them (one for each layer), found array of u32 with 3 elements",
        ]),
        key(
            "a ratio that does not divide the budget",
            ratios,
            Ints(vec![0, 3]),
            "expected a divisor above 1 of the budget 4, found 3",
        ),
        key("a ratio of 1", ratios, Ints(vec![0, 1]), "expected a divisor above 1 of the budget 4, found 1"),
        key("a ratio of a recurrent layer", ratios, Ints(vec![2, 2]), "expected 0 for the recurrent layer 0, found 2"),
        without("no ratios", ratios, "expected 2 integers, one for each block"),
        key(
            "an n-gram embedding behind the last layer",
            "ple.layers",
            Ints(vec![2]),
            "expected at most one layer below 2, found [2]",
        ),
        key(
            "two n-gram embeddings",
            "ple.layers",
            Ints(vec![0, 1]),
            "expected at most one layer below 2, found [0, 1]",
        ),
        key("1-grams", "ple.ngram_size", Int(1), "expected 2 to 8, found 1"),
        key("no heads of n-grams", "ple.heads_per_ngram", Int(0), "expected 1 to 64, found 0"),
        key("an end of n-grams outside of the vocabulary", "ple.eos_token_id", Int(8), "expected 0 to 7, found 8"),
        key(
            "too few multipliers",
            "ple.layer_multipliers",
            Longs(vec![3]),
            "expected at least 2 integers, found 1 integers",
        ),
        without("no multipliers", "ple.layer_multipliers", "expected at least 2 integers"),
        key(
            "no offsets of the n-gram heads",
            "ple.head_offsets",
            Longs(vec![]),
            "expected at least 1 integers, found 0 integers",
        ),
        key("a table of no rows", "ple.head_vocab_sizes", Longs(vec![0]), "expected sizes above 0, found 0"),
        model(
            "rows behind the n-gram table",
            &Tiny::new().key("ple.head_offsets", Longs(vec![2])),
            &["tensor `per_layer_token_embd.weight`: expected at least 9 rows, found 8"],
        ),
        model("rows that overflow", &Tiny::new().key("ple.head_offsets", Longs(vec![u64::MAX])), &[tiny_table]),
    ]
}

pub fn tensors() -> Vec<Damage> {
    let tensor = |name: &str, tensor: &str, dims: &[u64], ggml_type: u32, says: &str| {
        let says = format!("tensor `{tensor}`: {says}");
        model(name, &Tiny::new().tensor(tensor, dims, ggml_type), &["the model has 1 problem(s):", &says])
    };
    let no_modifier = "expected no tensor that scales weights or rotary angles, found one";
    let unusable = |name: &str, ggml_type: u32| {
        let (tensor, cols) = ("blk.1.attn_k.weight", 256);
        let found = format!(", found {name} (type {ggml_type})");
        let tiny = Tiny::new().tensor(tensor, &[cols, 16], ggml_type);
        model(format!("a matrix of {name}"), &tiny, &["`blk.1.attn_k.weight`: expected a format of F32, F16", &found])
    };
    let mut all = vec![
        tensor(
            "an embedding of another width",
            "token_embd.weight",
            &[64, 8],
            0,
            "expected shape {32,8}, found {64,8}",
        ),
        tensor(
            "a projection with a row less",
            "blk.0.ssm_out.weight",
            &[32, 31],
            0,
            "expected shape {32,32}, found {32,31}",
        ),
        tensor("a matrix on its side", "blk.0.ffn_gate_inp.weight", &[4, 32], 0, "expected shape {32,4}, found {4,32}"),
        tensor(
            "experts without the dimension of experts",
            "blk.0.ffn_up_exps.weight",
            &[32, 32],
            0,
            "expected shape {32,32,4}, found {32,32}",
        ),
        tensor(
            "an expert less",
            "blk.0.ffn_up_exps.weight",
            &[32, 32, 3],
            0,
            "expected shape {32,32,4}, found {32,32,3}",
        ),
        tensor("a norm that is quantised", "output_hc_norm.weight", &[64], 8, "expected F32, F16 or BF16, found Q8_0"),
        tensor("a norm that is too long", "blk.1.attn_q_norm.weight", &[17], 0, "expected shape {16}, found {17}"),
        tensor("a tensor that scales another", "blk.1.attn_k.scale", &[1], 0, no_modifier),
        tensor("a tensor that scales angles", "rope_freqs.weight", &[4], 0, no_modifier),
        model(
            "no tensors",
            &Tiny { tensors: Vec::new(), ..Tiny::new() },
            &["tensor `token_embd.weight`: expected 1 to 16777216 rows"],
        ),
    ];
    for (id, name) in [
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
    ] {
        all.push(unusable(name, id));
    }
    all
}

/// Every key that is needed, as text.
pub fn wrong_types() -> Vec<Damage> {
    let keys = Tiny::new().keys.into_iter().map(|(key, _)| key);
    keys.map(|key| {
        let says = [&format!("metadata key 'qwen4exp.{key}': expected"), "found string \"wrong\""];
        model(format!("text as {key}"), &Tiny::new().key(key, Text("wrong")), &says)
    })
    .collect()
}

/// Every tensor that is needed, left out. Without `output.weight` the embedding takes its place.
pub fn missing_tensors() -> Vec<Damage> {
    let names = Tiny::new().tensors.into_iter().map(|(name, ..)| name).filter(|name| name != "output.weight");
    names
        .map(|name| {
            let says = format!("tensor `{name}`: expected");
            model(format!("{name} missing"), &Tiny::new().without(&name), &[&says, "found no such tensor"])
        })
        .collect()
}
