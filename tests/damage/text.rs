//! Damages of the vocabulary.

use super::Damage;
use crate::gguf_writer::{ARRAY, F32, GgufWriter, I32, STRING, U64};
use crate::tiny_model::Tiny;

const MODEL: &str = "tokenizer.ggml.model";
const PRE: &str = "tokenizer.ggml.pre";
const TOKENS: &str = "tokenizer.ggml.tokens";
const TYPES: &str = "tokenizer.ggml.token_type";
const MERGES: &str = "tokenizer.ggml.merges";
const EOS: &str = "tokenizer.ggml.eos_token_id";

/// A token for each row of a tiny model's embedding.
pub fn vocabulary(writer: GgufWriter) -> GgufWriter {
    writer
        .kv_str(MODEL, "gpt2")
        .kv_str(PRE, "qwen35")
        .kv_str_array(TOKENS, &["a", "b", "ab", "Ġ", "<0x0A>", "<|im_end|>", "<think>", "[PAD7]"])
        .kv_i32_array(TYPES, &[1, 1, 1, 1, 6, 3, 4, 5])
        .kv_str_array(MERGES, &["a b"])
        .kv_u32(EOS, 5)
}

fn with(name: &str, change: impl FnOnce(GgufWriter) -> GgufWriter, says: &[&str]) -> Damage {
    Damage::new(name, change(vocabulary(Tiny::new().writer())).to_bytes(), says)
}

/// Another value for a key.
fn set(name: &str, key: &str, kind: u32, value: &[u8], says: &[&str]) -> Damage {
    with(name, |w| w.without(key).kv_raw(key, kind, value), says)
}

fn tokens(name: &str, at: usize, token: &str, kind: i32, says: &[&str]) -> Damage {
    let (mut tokens, mut types) =
        (["a", "b", "ab", "Ġ", "<0x0A>", "<|im_end|>", "<think>", "[PAD7]"], [1, 1, 1, 1, 6, 3, 4, 5]);
    (tokens[at], types[at]) = (token, kind);
    with(name, |w| w.without(TOKENS).without(TYPES).kv_str_array(TOKENS, &tokens).kv_i32_array(TYPES, &types), says)
}

fn merges(name: &str, merges: &[&str], says: &[&str]) -> Damage {
    with(name, |w| w.without(MERGES).kv_str_array(MERGES, merges), says)
}

fn id(name: &str, key: &str, id: u64, says: &[&str]) -> Damage {
    set(name, &format!("tokenizer.ggml.{key}"), U64, &id.to_le_bytes(), says)
}

pub fn damages() -> Vec<Damage> {
    let mut all = keys();
    all.extend(entries());
    all.extend(ids());
    all
}

fn keys() -> Vec<Damage> {
    let absent = |name: &str, key: &str, expected: &str| {
        with(name, |w| w.without(key), &[&format!("metadata key '{key}': expected {expected}, found no such key")])
    };
    let string = [&4_u64.to_le_bytes()[..], b"gpt2"].concat();
    let floats = [&F32.to_le_bytes()[..], &1_u64.to_le_bytes(), &[0; 4]].concat();
    let wrong = |name: &str, key: &str, kind: u32, value: &[u8], says: &str| set(name, key, kind, value, &[key, says]);
    let long = "x".repeat(100_000);
    vec![
        absent("no kind of tokenizer", MODEL, "a string"),
        absent("no pre-tokenizer", PRE, "a string"),
        absent("no tokens", TOKENS, "an array of string"),
        absent("no token types", TYPES, "an array of integers"),
        absent("no merges", MERGES, "an array of string"),
        wrong("a number as the kind of tokenizer", MODEL, F32, &[0; 4], "expected a string, found f32 0.0"),
        wrong("a number as the pre-tokenizer", PRE, I32, &[0; 4], "expected a string, found i32 0"),
        wrong("a string as tokens", TOKENS, STRING, &string, "expected an array of string, found string \"gpt2\""),
        wrong("numbers as tokens", TOKENS, ARRAY, &floats, "expected an array of string, found array of f32 [0.0]"),
        wrong(
            "fractions as token types",
            TYPES,
            ARRAY,
            &floats,
            "expected an array of integers of at most 63 bits, found array of f32",
        ),
        wrong("numbers as merges", MERGES, ARRAY, &floats, "expected an array of string, found array of f32 [0.0]"),
        wrong("a string as an id", EOS, STRING, &string, "expected an integer of at least 0, found string \"gpt2\""),
        wrong("a negative id", EOS, I32, &[255; 4], "expected an integer of at least 0, found i32 -1"),
        wrong("a number as a flag", "tokenizer.ggml.add_bos_token", I32, &[0; 4], "expected a bool, found i32 0"),
        wrong("a number as a template", "tokenizer.chat_template", I32, &[0; 4], "expected a string, found i32 0"),
        with(
            "a tokenizer of another kind",
            |w| w.without(MODEL).kv_str(MODEL, "llama"),
            &["unsupported tokenizer model \"llama\", expected \"gpt2\" (byte-level BPE)"],
        ),
        with(
            "an unknown pre-tokenizer",
            |w| w.without(PRE).kv_str(PRE, "llama-bpe"),
            &["unsupported pre-tokenizer \"llama-bpe\", expected one of \"qwen35\", \"qwen2\""],
        ),
        with(
            "a pre-tokenizer with a very long name",
            |w| w.without(PRE).kv_str(PRE, &long),
            &["unsupported pre-tokenizer \"xxx", "…\" (100000 bytes), expected one of"],
        ),
    ]
}

fn entries() -> Vec<Damage> {
    let long = "x".repeat(1025);
    vec![
        with(
            "an empty vocabulary",
            |w| w.without(TOKENS).kv_str_array::<&str>(TOKENS, &[]),
            &["the vocabulary has 0 tokens, expected 1 to 4294967295"],
        ),
        with(
            "more tokens than rows of the embedding",
            |w| w.without(TOKENS).kv_str_array(TOKENS, &["a", "b", "c", "d", "e", "f", "g", "h", "i"]),
            &["expected at most 8 tokens, one for each row of the embedding, found 9"],
        ),
        with(
            "fewer token types than tokens",
            |w| w.without(TYPES).kv_i32_array(TYPES, &[1; 7]),
            &["the vocabulary has 7 token types, expected 8, one per token"],
        ),
        with(
            "more token types than tokens",
            |w| w.without(TYPES).kv_i32_array(TYPES, &[1; 9]),
            &["the vocabulary has 9 token types, expected 8, one per token"],
        ),
        tokens("a token type of 0", 1, "b", 0, &["token 1 (\"b\") has type 0, expected 1 to 6"]),
        tokens("a token type of 7", 1, "b", 7, &["token 1 (\"b\") has type 7, expected 1 to 6"]),
        tokens("a negative token type", 1, "b", -1, &["token 1 (\"b\") has type -1, expected 1 to 6"]),
        tokens("an empty token", 1, "", 1, &["token 1 is empty, expected at least one character"]),
        tokens("a token twice", 3, "a", 1, &["token 3 (\"a\") repeats token 0, expected distinct texts"]),
        tokens("a control token with the text of another", 5, "a", 3, &["token 5 (\"a\") repeats token 0"]),
        tokens(
            "a token with a space",
            3,
            "a b",
            1,
            &["token 3 (\"a b\") contains ' ', expected characters of the byte-level"],
        ),
        tokens(
            "a byte token without a byte",
            4,
            "<0xGG>",
            6,
            &["byte token 4 is \"<0xGG>\", expected the form \"<0x0A>\""],
        ),
        tokens("a byte token of two bytes", 4, "<0x0A0A>", 6, &["byte token 4 is \"<0x0A0A>\", expected the form"]),
        tokens(
            "a very long control token",
            5,
            &long,
            3,
            &["token 5 (\"xxx", "has 1025 bytes, expected at most 1024 of a control"],
        ),
        merges("a merge of one token", &["ab"], &["merge 0 is \"ab\", expected two tokens separated by one space"]),
        merges("a merge of three tokens", &["a b", "a b a"], &["merge 1 is \"a b a\", expected two tokens"]),
        merges("an empty merge", &[""], &["merge 0 is \"\", expected two tokens"]),
        merges(
            "a merge of an unknown token",
            &["a c"],
            &["merge 0 (\"a c\") needs \"c\", expected a normal or user-defined token"],
        ),
        merges(
            "a merge into an unknown token",
            &["b a"],
            &["merge 0 (\"b a\") needs \"ba\", expected a normal or user-defined token"],
        ),
        merges(
            "a merge twice",
            &["a b", "a b"],
            &["merge 1 (\"a b\") repeats an earlier merge, expected distinct pairs"],
        ),
    ]
}

fn ids() -> Vec<Damage> {
    let of = |key: &str, found: u64| format!("tokenizer.ggml.{key} is {found}, expected an id below 8");
    vec![
        id("an end id one too high", "eos_token_id", 8, &[&of("eos_token_id", 8)]),
        id("an end id of 2^32 - 1", "eos_token_id", u64::from(u32::MAX), &[&of("eos_token_id", u64::from(u32::MAX))]),
        id(
            "an end id of 2^32",
            "eos_token_id",
            1 << 32,
            &["'tokenizer.ggml.eos_token_id': expected an id of 32 bits, found 4294967296"],
        ),
        id("a turn's end id too high", "eot_token_id", 9, &[&of("eot_token_id", 9)]),
        id("a start id too high", "bos_token_id", 10, &[&of("bos_token_id", 10)]),
        id("a padding id too high", "padding_token_id", 11, &[&of("padding_token_id", 11)]),
        with(
            "a start token that is not named",
            |w| w.kv_bool("tokenizer.ggml.add_bos_token", true),
            &["add_bos_token is true but tokenizer.ggml.bos_token_id is absent, expected both"],
        ),
    ]
}
