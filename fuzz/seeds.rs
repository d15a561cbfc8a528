//! Writes the seeds of the corpus: small valid inputs of every target, from which fuzzing starts.

use std::path::Path;

use bankshot::gguf::GgufFile;
use bankshot::model::Architecture;
use bankshot::targets::FIELD_END;
use bankshot::targets::gguf_writer::GgufWriter;
use bankshot::targets::tiny_model::Tiny;

const DEMO: &[u8] = include_bytes!("../src/demo/demo-ud.gguf");

fn write(target: &str, name: &str, bytes: &[u8]) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join(format!("seed-{name}")), bytes).unwrap();
}

fn fields<S: AsRef<str>>(fields: &[S]) -> Vec<u8> {
    fields.iter().map(|field| field.as_ref().as_bytes()).collect::<Vec<_>>().join(&FIELD_END)
}

/// The demo's header up to its vocabulary, without tensors.
fn demo_header() -> Vec<u8> {
    let file = GgufFile::from_static(DEMO).unwrap();
    let key = "tokenizer.ggml.tokens";
    let pairs = file.metadata().iter().position(|(other, _)| other == key).unwrap();
    let at = DEMO.windows(key.len()).position(|window| window == key.as_bytes()).unwrap();
    let mut bytes = DEMO[..at - 8].to_vec();
    bytes[8..16].fill(0);
    bytes[16..24].copy_from_slice(&(pairs as u64).to_le_bytes());
    bytes
}

/// Every value type.
fn all_types() -> GgufWriter {
    GgufWriter::new("qwen35")
        .kv_u8("u8", 200)
        .kv_i8("i8", -3)
        .kv_u16("u16", 60_000)
        .kv_i16("i16", -300)
        .kv_u32("u32", 4_000_000_000)
        .kv_i32("i32", -70_000)
        .kv_u64("u64", u64::MAX)
        .kv_i64("i64", i64::MIN)
        .kv_f32("f32", 1e-6)
        .kv_f64("f64", 0.5)
        .kv_bool("bool", true)
        .kv_str("str", "héllo")
        .kv_u8_array("u8s", &[1, 2])
        .kv_i8_array("i8s", &[-1])
        .kv_u16_array("u16s", &[1])
        .kv_i16_array("i16s", &[-1])
        .kv_u32_array("u32s", &[1, 2, 3])
        .kv_i32_array("i32s", &[11, 11, 10, 0])
        .kv_u64_array("u64s", &[1, u64::MAX])
        .kv_i64_array("i64s", &[-1])
        .kv_f32_array("f32s", &[1.0])
        .kv_f64_array("f64s", &[1.0])
        .kv_bool_array("bools", &[true, false])
        .kv_str_array("strs", &["a", "", "Ġb"])
        .tensor("t", &[32, 2], 8, &[1; 68])
}

fn with_vocabulary(writer: GgufWriter) -> GgufWriter {
    writer
        .kv_str("tokenizer.ggml.model", "gpt2")
        .kv_str("tokenizer.ggml.pre", "qwen35")
        .kv_str_array("tokenizer.ggml.tokens", &["a", "b", "ab", "Ġ", "<0x0A>", "<|im_end|>", "<think>", "[PAD7]"])
        .kv_i32_array("tokenizer.ggml.token_type", &[1, 1, 1, 1, 6, 3, 4, 5])
        .kv_str_array("tokenizer.ggml.merges", &["a b"])
        .kv_u32("tokenizer.ggml.eos_token_id", 5)
        .kv_bool("tokenizer.ggml.add_bos_token", false)
        .kv_str("tokenizer.chat_template", "{{ messages[0].content }}")
}

/// A part of a split model, with a tensor of this name.
fn part(no: u16, count: u16, tensors: i32, name: &str) -> Vec<u8> {
    let keys = GgufWriter::new("qwen35").kv_u16("split.no", no).kv_u16("split.count", count);
    keys.kv_i32("split.tensors.count", tensors).tensor_f32(name, &[8], &[1.0; 8]).to_bytes()
}

fn main() {
    write("gguf_header", "demo", &demo_header());
    write("gguf_header", "all-types", &all_types().to_bytes());
    write("gguf_header", "version-2", &all_types().version(2).to_bytes());
    for (choice, arch) in (0..).zip(Architecture::ALL) {
        let tiny = Tiny::of(arch.name());
        let keys = with_vocabulary(Tiny { tensors: Vec::new(), ..Tiny::of(arch.name()) }.writer());
        write("gguf_header", arch.name(), &keys.to_bytes());
        let (bytes, marks) = tiny.writer().to_bytes_with_marks();
        let mut directory = vec![4 * choice];
        directory.extend((tiny.tensors.len() as u16).to_le_bytes());
        directory.extend(&bytes[marks.directory..marks.tensors.last().unwrap() + 64]);
        write("gguf_directory", arch.name(), &directory);
    }
    write("split_set", "two", &[&[1][..], &part(0, 2, 2, "a"), &part(1, 2, 2, "b")].concat());
    write("split_set", "three", &[&[0][..], &part(0, 3, 3, "a"), &part(1, 3, 3, "b"), &part(2, 3, 3, "c")].concat());
    write("split_set", "one", &[&[0][..], &part(0, 1, 1, "a")].concat());
    write("split_set", "merged", &[&[0][..], &part(0, 0, 1, "a")].concat());
    write("split_set", "missing", &[&[0x80][..], &part(0, 2, 2, "a")].concat());

    let merges = ["mh e", "ml l", "mhe ll", "mĠ w", "mo r"].map(str::to_owned);
    let tokens = ["1he", "1ll", "1hell", "1Ġw", "1or", "3<|im_end|>", "3<|im_start|>", "4<think>", "5[PAD]", "2<unk>"];
    let texts =
        [">hello world", ">Hé\u{301}llo 世界 🚀\r\n  x", "><|im_start|>hello<think><|im_end|>", ">a\n\n  b\t'S 123"];
    let all: Vec<String> = ["a"].iter().chain(&tokens).chain(&texts).map(|s| (*s).to_owned()).chain(merges).collect();
    write("tokenizer", "words", &fields(&all));
    write("tokenizer", "qwen2", &fields(&["qqwen2", "a", "e5", "t6", "p7", "6<0xFF>", ">I'll 12 \u{300}"]));
    write("tokenizer", "few", &fields(&["1a", "1b", "1ab", "ma b", ">abab", ">c", "b0"]));

    write("tokenizer", "literal", &fields(&["4Ġ", "1a", "4é", "1Ġa", ">Ġaé", "> a"]));

    let conversation =
        ["system", "Be brief.", "user", "<b>2+2?</b>", "assistant", "<think>\nadd\n</think>\n\n4", "tool", "r"];
    write("template", "demo", &[&[0b11][..], &fields(&conversation)].concat());
    for (name, template) in [
        ("loop", "{% for m in messages %}{{ '<|' ~ m.role ~ '|>' ~ m['content'] | trim }}{% endfor %}{{ bos_token }}"),
        (
            "namespace",
            "{% set ns = namespace(x='') %}{% for i in range(9) %}{% set ns.x = ns.x ~ i %}{% endfor %}{{ ns.x }}",
        ),
        ("macro", "{%- macro m(a, b=2) -%}{{ a * b }}{%- endmacro -%}{{ m('ab', b=3) }}{{ m(1) }}"),
        (
            "methods",
            "{{ 'a,b'.split(',') | tojson(indent=2) }}{{ messages[::-1][0].content.strip().replace('a', 'bb') }}",
        ),
        (
            "filters",
            "{{ messages | map(attribute='role') | join(', ') | upper }}{{ {'a': [1, 2.5, none]} | items | list }}",
        ),
        (
            "shared",
            "{% set ns = namespace(x=[1]) %}{% for i in range(60) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x }}",
        ),
        ("width", "{{ '{:>99999999}'.format(1) }}{{ 'a' | indent(99999999) }}"),
        (
            "tests",
            "{% if messages is sequence and x is not defined %}{{ raise_exception('no ' + messages[0].role) }}{% endif %}",
        ),
    ] {
        write("template", name, &[&[0b10010][..], &fields(&[template, "user", "hello", "assistant", "hi"])].concat());
    }
}
