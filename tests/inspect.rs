//! `inspect` on files of the published models' headers, with their mixes of formats, and on files that look wrong.

#[path = "support/gguf_writer.rs"]
mod gguf_writer;
#[path = "support/shapes.rs"]
mod shapes;

use std::path::Path;
use std::process::Command;

use serde_json::Value;
use shapes::{HeaderOnly, Shape, header_only, published, tiny};

const Q4_0: u32 = 2;
const Q8_0: u32 = 8;
const Q6_K: u32 = 14;
const IQ4_NL: u32 = 20;
const IQ2_S: u32 = 22;
const BF16: u32 = 30;

fn inspect(path: &Path, json: bool) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bankshot"));
    command.arg("inspect").arg(path);
    if json {
        command.arg("--json");
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn model(file: &HeaderOnly) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.gguf");
    file.write(&path);
    let mut value: Value = serde_json::from_str(&inspect(&path, true)).unwrap();
    value["model"].take()
}

#[track_caller]
fn assert_near(value: &Value, expected: f64, tolerance: f64, what: &str) {
    let value = value.as_u64().unwrap_or_else(|| panic!("{what}: {value}")) as f64;
    assert!((value / expected - 1.0).abs() <= tolerance, "{what}: {value}, expected {expected}");
}

#[test]
fn published_models_in_one_format_have_their_known_bytes() {
    // Gigabytes that a token reads, at 4.5 and 8.5 bits a weight: parameters times bits, norms being a small rest.
    let expected = [(3.753, 7.088), (14.41, 27.23), (1.657, 3.131), (2.005, 3.786)];
    // All parameters but the n-gram table.
    let parameters = [125.744e9, 26.896e9, 34.661e9, 79.674e9];
    for ((shape, (four, eight)), parameters) in published().iter().zip(expected).zip(parameters) {
        for (format, bits, gigabytes) in [(Q4_0, 4.5, four), (Q8_0, 8.5, eight)] {
            let model = model(&header_only(shape, |_| format));
            let what = format!("{} at {bits} bits", shape.arch);
            assert_near(&model["bytes_per_token"], gigabytes * 1e9, 0.003, &what);
            let held = model["resident_bytes"].as_u64().unwrap() + model["embedding_bytes"].as_u64().unwrap();
            assert_near(&held.into(), parameters * bits / 8.0, 0.003, &what);
        }
    }
}

/// The mix of a published file of about 3 bits. Rows of 640, 320 and 160 have no formats of 256 columns.
fn three_bits(name: &str) -> u32 {
    let has = |part: &str| name.contains(part);
    match () {
        () if has("ffn_gate_exps") || has("ffn_up_exps") => IQ2_S,
        () if has("ffn_down_exps") || has("per_layer_token_embd") => IQ4_NL,
        () if has("ffn_gate_inp") => 0,
        () if has("indexer") => BF16,
        () if has("hc_") || has("ple_") || has("shexp") => Q8_0,
        () if has("token_embd") || name == "output.weight" => Q6_K,
        () if ["attn_q.", "attn_qkv", "attn_gate", "attn_output", "ssm_out"].iter().any(|part| has(part)) => Q6_K,
        () => Q8_0,
    }
}

#[test]
fn the_published_mix_of_three_bits_reads_what_others_counted() {
    let [flash, ..] = published();
    let model = model(&header_only(&flash, three_bits));
    // Others counted 4.95 GB a token, 0.95 of it experts.
    assert_near(&model["bytes_per_token"], 4.95e9, 0.005, "all");
    let parts = &model["bytes_per_token_by_part"];
    assert_near(&parts["routed experts"], 0.946e9, 0.001, "experts");
    // Routers in F32: 48 of 512 x 2560.
    assert_near(&parts["router"], f64::from(48 * 512 * 2560 * 4), 0.01, "routers");
    assert_eq!(model["ngram_table_bytes"], 320_001_536u64 * 90);
    assert_eq!(model["ngram_bytes_per_token"], 16 * 90);
    assert_eq!(model["embedding_bytes"], 248_320u64 * 2560 / 256 * 210);
    assert_eq!(model["state_fixed_bytes"], 118_056_968);
    assert_eq!(model["state_bytes_per_token_f16"], 24_576 + 768);
}

/// A tokenizer of eight tokens.
fn with_tokenizer(file: HeaderOnly, eos: u32, template: bool) -> HeaderOnly {
    let tokens = ["a", "b", "<|im_end|>", "<|endoftext|>", "c", "d", "e", "f"];
    let writer = file.0.kv_str_array("tokenizer.ggml.tokens", &tokens).kv_u32("tokenizer.ggml.eos_token_id", eos);
    HeaderOnly(if template { writer.kv_str("tokenizer.chat_template", "{{ messages }}") } else { writer })
}

#[test]
fn what_looks_wrong_is_said() {
    let advice = |file: HeaderOnly| -> Vec<String> {
        let list = model(&file)["advice"].take();
        list.as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
    };
    let of = |ple_eos: u32, ratio: u32| -> Shape {
        let mut shape = tiny("qwen4exp");
        shape.indexer[3] = ratio;
        shape.ple_eos = ple_eos;
        shape
    };
    let plain = |shape: &Shape| header_only(shape, |_| 0);
    assert_eq!(advice(with_tokenizer(plain(&of(3, 2)), 2, true)), Vec::<String>::new());
    let ends_a_turn = |id, text| {
        format!(
            "key `qwen4exp.ple.eos_token_id` is {id} (`{text}`), which ends a turn: n-grams start anew at every turn of a \
             chat, where the published models have the id of `<|endoftext|>`"
        )
    };
    assert_eq!(advice(with_tokenizer(plain(&of(2, 2)), 3, true)), [ends_a_turn(2, "<|im_end|>")]);
    assert_eq!(advice(with_tokenizer(plain(&of(4, 2)), 4, true)), [ends_a_turn(4, "c")]);
    let dense = advice(with_tokenizer(plain(&of(3, 0)), 2, true));
    assert!(
        dense.len() == 1 && dense[0].contains("`qwen4exp.attention.compress_ratios` is 0 for every layer"),
        "{dense:?}"
    );
    let template = "key `tokenizer.chat_template` is missing: `chat` and `run --chat` do not work";
    assert_eq!(advice(with_tokenizer(plain(&of(3, 2)), 2, false)), [template]);
    let bare = advice(plain(&tiny("qwen35")));
    assert_eq!(bare.len(), 3, "{bare:?}");
    assert!(
        bare[0].contains("`tokenizer.ggml.tokens` is missing") && bare[2].contains("`tokenizer.ggml.eos_token_id`")
    );
}

#[test]
fn words_say_what_numbers_say() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.gguf");
    let [flash, ..] = published();
    header_only(&flash, three_bits).write(&path);
    let text = inspect(&path, false);
    for line in [
        "layers   48: 36 gated delta net, 12 sparse attention, 0 dense attention; 0 blocks for further tokens are not used",
        "in the file  521472000 bytes of embedding",
        "in the file  28800138240 bytes of n-gram table, of which a token reads 1440",
        "state a sequence  118056968 bytes and 25344 bytes a token (f16), 50688 (f32)",
        "advice  key `tokenizer.chat_template` is missing: `chat` and `run --chat` do not work",
    ] {
        assert!(text.lines().any(|found| found == line), "expected the line `{line}` in:\n{text}");
    }
    header_only(&tiny("qwen35"), |_| 0).write(&path);
    let text = inspect(&path, false);
    let line =
        "on the device  no kernels for this model: gated delta net head size: the kernels take 128, the model has 16";
    assert!(text.lines().any(|found| found == line), "{text}");
}
