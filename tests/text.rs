//! Tokenizer, detokenizer and chat template against fixed expectations.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bankshot::text::{ChatTemplate, Detokenizer, Message, RenderOptions, TextError, Tokenizer, VocabSource};
use serde::Deserialize;

const TEMPLATE: &str = include_str!("data/tokenizer/chat_template.jinja");

#[derive(Deserialize)]
struct Vocabulary {
    control: Vec<usize>,
    user_defined: Vec<usize>,
    eos: u32,
    padding: u32,
    tokens: Vec<String>,
    merges: Vec<String>,
}

#[derive(Deserialize)]
struct Vector {
    text: String,
    /// Ids by the reference implementation.
    qwen35: Vec<u32>,
    /// Ids with the other pre-tokenizer, where they differ.
    qwen2: Option<Vec<u32>>,
    /// Ids with the text of control tokens taken literally, where they differ.
    plain: Option<Vec<u32>>,
    /// Whether the text is in canonical composition and so survives a round trip.
    #[serde(default = "yes")]
    nfc: bool,
}

fn yes() -> bool {
    true
}

fn source(pre: &str) -> VocabSource {
    let vocabulary: Vocabulary = serde_json::from_str(include_str!("data/tokenizer/vocabulary.json")).unwrap();
    let mut token_types = vec![1; vocabulary.tokens.len()];
    vocabulary.control.iter().for_each(|&id| token_types[id] = 3);
    vocabulary.user_defined.iter().for_each(|&id| token_types[id] = 4);
    VocabSource {
        model: "gpt2".into(),
        pre: pre.into(),
        tokens: vocabulary.tokens,
        token_types,
        merges: vocabulary.merges,
        eos: Some(vocabulary.eos),
        padding: Some(vocabulary.padding),
        ..VocabSource::default()
    }
}

fn tokenizer(pre: &str) -> Tokenizer {
    Tokenizer::new(source(pre)).unwrap()
}

fn vectors() -> Vec<Vector> {
    serde_json::from_str(include_str!("data/tokenizer/vectors.json")).unwrap()
}

fn decode(tokenizer: &Tokenizer, ids: &[u32], show_special: bool) -> String {
    let mut detokenizer = Detokenizer::new(tokenizer, show_special);
    let mut text: String = ids.iter().map(|&id| detokenizer.push(id)).collect();
    text.push_str(&detokenizer.finish());
    text
}

/// A small generator, so that the tests need no further crate and always see the same numbers.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % bound
    }
}

#[test]
fn vectors_match_the_reference() {
    let vectors = vectors();
    assert_eq!(vectors.len(), 320);
    let (qwen35, qwen2) = (tokenizer("qwen35"), tokenizer("qwen2"));
    for vector in &vectors {
        let text = &vector.text;
        assert_eq!(qwen35.encode(text, true).unwrap(), vector.qwen35, "qwen35 {text:?}");
        let expected = vector.qwen2.as_ref().unwrap_or(&vector.qwen35);
        assert_eq!(&qwen2.encode(text, true).unwrap(), expected, "qwen2 {text:?}");
        if vector.nfc {
            assert_eq!(decode(&qwen35, &vector.qwen35, true), *text);
            let plain = qwen35.encode(text, false).unwrap();
            assert_eq!(&plain, vector.plain.as_ref().unwrap_or(&vector.qwen35), "plain {text:?}");
            assert_eq!(decode(&qwen35, &plain, false), *text);
        }
    }
    assert_eq!(vectors.iter().filter(|vector| vector.qwen2.is_some()).count(), 20);
    assert_eq!(vectors.iter().filter(|vector| !vector.nfc).count(), 19);
}

#[test]
fn facts_of_the_vocabulary() {
    let tokenizer = tokenizer("qwen35");
    assert_eq!(tokenizer.vocab_len(), 2048);
    assert_eq!(tokenizer.id_of("<|im_end|>"), Some(2024));
    assert_eq!(tokenizer.id_of("\u{120}the"), tokenizer.encode(" the", false).unwrap().first().copied());
    assert_eq!(tokenizer.id_of("no such token"), None);
    assert_eq!(tokenizer.token_bytes(220), Some(b" ".as_slice()));
    assert_eq!(tokenizer.token_bytes(2046), Some(b"<think>".as_slice()));
    assert_eq!(tokenizer.token_bytes(2048), None);
    assert!(tokenizer.is_special(2024) && !tokenizer.is_special(2046) && !tokenizer.is_special(u32::MAX));
    assert_eq!(tokenizer.stop_ids(), [2022, 2024, 2041, 2042, 2043]);
    assert_eq!((tokenizer.eos(), tokenizer.bos(), tokenizer.padding()), (Some(2024), None, Some(2022)));
    assert!(!tokenizer.add_bos());
}

#[test]
fn special_tokens_split_leftmost_then_longest() {
    let mut source = source("qwen35");
    source.tokens.extend(["<|im".into(), "<|im_end|>\u{e9}".into(), "[PAD2050]".into(), "<0xFF>".into()]);
    source.token_types.extend([4, 3, 5, 6]);
    let tokenizer = Tokenizer::new(source).unwrap();
    assert_eq!(tokenizer.encode("<|im_end|>\u{e9}<|im<|im_end|>", true).unwrap(), [2049, 2048, 2024]);
    assert_eq!(tokenizer.encode("<|im_end|>", false).unwrap()[0], 2048);
    assert_ne!(tokenizer.encode("[PAD2050]", true).unwrap(), [2050]);
    assert_eq!(tokenizer.token_bytes(2051), Some([0xff].as_slice()));
    assert!(tokenizer.is_special(2050));
}

#[test]
fn long_and_odd_inputs_are_quick() {
    let tokenizer = tokenizer("qwen35");
    let started = Instant::now();
    for unit in [" ", "a", "\n ", "<|im_", "\u{301}", "'s", "\u{0}", "\u{10ffff}", "1", "\r\n"] {
        let text = unit.repeat(200_000);
        let ids = tokenizer.encode(&text, true).unwrap();
        assert_eq!(decode(&tokenizer, &ids, true), text, "{unit:?}");
    }
    assert!(started.elapsed() < Duration::from_secs(60), "took {:?}", started.elapsed());
}

fn fails(change: impl FnOnce(&mut VocabSource)) -> String {
    let mut source = source("qwen35");
    change(&mut source);
    Tokenizer::new(source).unwrap_err().to_string()
}

#[test]
fn inconsistent_vocabularies_are_refused() {
    assert_eq!(
        fails(|s| s.model = "llama".into()),
        "unsupported tokenizer model \"llama\", expected \"gpt2\" (byte-level BPE)"
    );
    assert_eq!(
        fails(|s| s.pre = "default".into()),
        "unsupported pre-tokenizer \"default\", expected one of \"qwen35\", \"qwen2\""
    );
    assert_eq!(fails(|s| s.tokens.clear()), "the vocabulary has 0 tokens, expected 1 to 4294967295");
    assert_eq!(fails(|s| s.token_types.truncate(9)), "the vocabulary has 9 token types, expected 2048, one per token");
    assert_eq!(fails(|s| s.token_types[1] = 0), "token 1 (\"\\\"\") has type 0, expected 1 to 6");
    assert_eq!(fails(|s| s.tokens[300].clear()), "token 300 is empty, expected at least one character");
    assert_eq!(fails(|s| s.tokens[2047] = "A".into()), "token 2047 (\"A\") repeats token 32, expected distinct texts");
    assert_eq!(
        fails(|s| s.tokens[2021] = "a b".into()),
        "token 2021 (\"a b\") contains ' ', expected characters of the byte-level alphabet only"
    );
    let long = fails(|s| s.tokens[2047] = "x".repeat(1025));
    assert!(long.starts_with("token 2047 (\"xxx") && long.ends_with("at most 1024 of a control or user-defined token"));
    assert_eq!(fails(|s| s.token_types[2047] = 6), "byte token 2047 is \"</think>\", expected the form \"<0x0A>\"");
    for merge in ["ab", "a b c", " b", "a ", "", "a  b"] {
        assert_eq!(
            fails(|s| s.merges[3] = merge.into()),
            format!("merge 3 is {merge:?}, expected two tokens separated by one space")
        );
    }
    assert_eq!(
        fails(|s| s.merges.push("zq z".into())),
        "merge 1766 (\"zq z\") needs \"zq\", expected a normal or user-defined token of that text"
    );
    assert_eq!(
        fails(|s| s.merges.push("< |im_end|>".into())),
        "merge 1766 (\"< |im_end|>\") needs \"|im_end|>\", expected a normal or user-defined token of that text"
    );
    assert_eq!(
        fails(|s| s.merges.push(s.merges[0].clone())),
        "merge 1766 (\"\u{120} \u{120}\") repeats an earlier merge, expected distinct pairs"
    );
    assert_eq!(fails(|s| s.eos = Some(2048)), "tokenizer.ggml.eos_token_id is 2048, expected an id below 2048");
    assert_eq!(fails(|s| s.eot = Some(9999)), "tokenizer.ggml.eot_token_id is 9999, expected an id below 2048");
    assert_eq!(
        fails(|s| s.add_bos = true),
        "tokenizer.ggml.add_bos_token is true but tokenizer.ggml.bos_token_id is absent, expected both"
    );
}

#[test]
fn bytes_without_a_token_are_an_error_not_a_loss() {
    let source = VocabSource {
        model: "gpt2".into(),
        pre: "qwen2".into(),
        tokens: vec!["a".into()],
        token_types: vec![1],
        ..VocabSource::default()
    };
    let tokenizer = Tokenizer::new(source).unwrap();
    assert_eq!(tokenizer.encode("aa", true).unwrap(), [0, 0]);
    assert_eq!(tokenizer.encode("ab", true).unwrap_err(), TextError::NoByteToken { byte: b'b' });
    assert!(tokenizer.stop_ids().is_empty());
}

#[test]
fn user_defined_tokens_are_taken_literally() {
    // The first stands for a space in the byte-level alphabet.
    let tokens = ["\u{120}", "a", "é", "<b>"];
    let source = |merges: &[&str]| VocabSource {
        model: "gpt2".into(),
        pre: "qwen35".into(),
        tokens: tokens.map(str::to_owned).into(),
        token_types: vec![4, 1, 4, 4],
        merges: merges.iter().map(|merge| (*merge).to_owned()).collect(),
        ..VocabSource::default()
    };
    let tokenizer = Tokenizer::new(source(&[])).unwrap();
    assert_eq!(tokenizer.encode("a\u{120}aé<b>", false).unwrap(), [1, 0, 1, 2, 3]);
    assert_eq!(decode(&tokenizer, &[1, 0, 1, 2, 3], true), "a\u{120}aé<b>");
    assert_eq!(tokenizer.encode(" ", false).unwrap_err(), TextError::NoByteToken { byte: b' ' });
    assert_eq!((tokenizer.id_of("\u{120}"), tokenizer.id_of("<b>")), (Some(0), Some(3)));
    let error = Tokenizer::new(source(&["\u{120} a"])).unwrap_err().to_string();
    assert!(error.contains("needs \"\u{120}\""), "{error}");
}

#[test]
fn a_vocabulary_of_full_size_builds_quickly() {
    let mut source = source("qwen35");
    // Grow by pairs of what is there until the size of the published vocabulary.
    let normal = 2022;
    let mut known: std::collections::HashSet<String> = source.tokens.iter().cloned().collect();
    'grow: for left in 256..normal {
        for right in 256..normal {
            if source.tokens.len() == 248_320 {
                break 'grow;
            }
            let joined = format!("{}{}", source.tokens[left], source.tokens[right]);
            if known.insert(joined.clone()) {
                source.merges.push(format!("{} {}", source.tokens[left], source.tokens[right]));
                source.tokens.push(joined);
                source.token_types.push(1);
            }
        }
    }
    assert_eq!(source.tokens.len(), 248_320);
    let started = Instant::now();
    let tokenizer = Tokenizer::new(source).unwrap();
    let elapsed = started.elapsed();
    println!("built in {elapsed:?}");
    assert_eq!(tokenizer.vocab_len(), 248_320);
    assert!(elapsed < Duration::from_secs(10), "took {elapsed:?}");
}

#[test]
fn streaming_equals_decoding_at_once() {
    let mut source = source("qwen35");
    source.tokens.extend([0xf0u8, 0x9f, 0xe2, 0x82, 0xc3, 0xff].map(|byte| format!("<0x{byte:02X}>")));
    source.token_types.extend([6; 6]);
    let tokenizer = Arc::new(Tokenizer::new(source).unwrap());
    let count = tokenizer.vocab_len();
    let mut random = Random(7);
    for round in 0..3000 {
        // Half of the rounds keep to single bytes, which make broken characters of every kind.
        let range = if round % 2 == 0 { 0..count } else { 94..256 };
        let ids: Vec<u32> = (0..random.below(40)).map(|_| (range.start + random.below(range.len())) as u32).collect();
        for show in [false, true] {
            let shown = ids.iter().filter(|&&id| show || !tokenizer.is_special(id));
            let bytes: Vec<u8> = shown.flat_map(|&id| tokenizer.token_bytes(id).unwrap()).copied().collect();
            let mut detokenizer = Detokenizer::new(Arc::clone(&tokenizer), show);
            let mut text = String::new();
            for &id in &ids {
                text.push_str(&detokenizer.push(id));
            }
            text.push_str(&detokenizer.finish());
            assert_eq!(text, String::from_utf8_lossy(&bytes), "{ids:?}");
            assert_eq!(detokenizer.finish(), "");
        }
    }
}

#[test]
fn streaming_holds_back_only_what_is_unfinished() {
    let tokenizer = tokenizer("qwen35");
    let mut detokenizer = Detokenizer::new(&tokenizer, false);
    let mut byte = |byte: u8| {
        let id = (0..256).find(|&id| tokenizer.token_bytes(id) == Some(&[byte])).unwrap();
        detokenizer.push(id)
    };
    let pushes: Vec<String> = [0xf0, 0x9f, 0x9a, 0x80, b'a', 0xe2, b'b', 0xff, 0xc3].map(&mut byte).into();
    assert_eq!(pushes, ["", "", "", "\u{1f680}", "a", "", "\u{fffd}b", "\u{fffd}", ""]);
    assert_eq!(detokenizer.push(2024), "");
    assert_eq!(detokenizer.push(u32::MAX), "");
    assert_eq!(detokenizer.finish(), "\u{fffd}");
    assert_eq!(Detokenizer::new(&tokenizer, true).push(2024), "<|im_end|>");
}

fn turn(role: &str, content: &str) -> Message {
    Message { role: role.into(), content: content.into() }
}

fn render(source: &str, messages: &[Message], options: RenderOptions) -> Result<String, TextError> {
    ChatTemplate::new(source, Some("<s>".into()), None)?.render(messages, options)
}

fn prompt(enable_thinking: Option<bool>) -> RenderOptions {
    RenderOptions { add_generation_prompt: true, enable_thinking }
}

#[test]
fn the_demo_template_renders_chatml() {
    let hello = [turn("user", "Hello!")];
    let opening = "<|im_start|>user\nHello!<|im_end|>\n";
    let with = |options| render(TEMPLATE, &hello, options).unwrap();
    assert_eq!(with(prompt(Some(false))), format!("{opening}<|im_start|>assistant\n<think>\n\n</think>\n\n"));
    assert_eq!(with(prompt(Some(true))), format!("{opening}<|im_start|>assistant\n<think>\n"));
    assert_eq!(with(prompt(None)), format!("{opening}<|im_start|>assistant\n<think>\n"));
    assert_eq!(with(RenderOptions::default()), opening);

    let conversation = [
        turn("system", " Be brief. "),
        turn("user", "2+2?"),
        turn("assistant", "<think>\nadd\n</think>\n\n4"),
        turn("user", "<b>&amp;'\"{{ 1 }}</b>"),
    ];
    assert_eq!(
        render(TEMPLATE, &conversation, prompt(None)).unwrap(),
        "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\n2+2?<|im_end|>\n<|im_start|>assistant\n4<|im_end|>\n\
         <|im_start|>user\n<b>&amp;'\"{{ 1 }}</b><|im_end|>\n<|im_start|>assistant\n<think>\n"
    );
    let continued =
        [turn("user", "hi"), turn("assistant", "<think>x</think>y"), turn("tool", "r1"), turn("tool", "r2")];
    assert_eq!(
        render(TEMPLATE, &continued, RenderOptions::default()).unwrap(),
        "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n<think>\nx\n</think>\n\ny<|im_end|>\n\
         <|im_start|>user\n<tool_response>\nr1\n</tool_response>\n<tool_response>\nr2\n</tool_response><|im_end|>\n"
    );
}

#[test]
fn templates_find_what_they_are_written_against() {
    let render = |source: &str| render(source, &[turn("user", "x")], RenderOptions::default()).unwrap();
    assert_eq!(render("{{ bos_token }}|{{ eos_token }}|{{ enable_thinking is defined }}"), "<s>||False");
    assert_eq!(render("  {% if true %}\n a\n  {% endif %}\nb\n"), " a\nb");
    assert_eq!(
        render(
            "{% for i in range(9) %}{% if i == 1 %}{% continue %}{% endif %}{% if i == 3 %}{% break %}{% endif %}{{ i }}{% endfor %}"
        ),
        "02"
    );
    assert_eq!(
        render("{{ ' a,b '.strip().split(',')[1] }}{{ 'ab'.startswith('a') | lower }}{{ messages[::-1][0].role }}"),
        "btrueuser"
    );
    let value = "{'b': [1, 2.5, none, true, {}], 'a': \"<\u{e9}>&'\\n\"}";
    assert_eq!(
        render(&format!("{{{{ {value} | tojson }}}}")),
        "{\"b\": [1, 2.5, null, true, {}], \"a\": \"<\u{e9}>&'\\n\"}"
    );
    assert_eq!(
        render(&format!("{{{{ {value} | tojson(indent=1) }}}}")),
        "{\n \"b\": [\n  1,\n  2.5,\n  null,\n  true,\n  {}\n ],\n \"a\": \"<\u{e9}>&'\\n\"\n}"
    );
    assert_eq!(render("{{ 'no clock' if strftime_now is not defined }}"), "no clock");
}

fn error(source: &str, messages: &[Message]) -> String {
    render(source, messages, prompt(None)).unwrap_err().to_string()
}

#[test]
fn template_errors_name_the_line() {
    assert_eq!(
        error("a\nb {% if %}", &[]),
        "the chat template does not parse, line 2: syntax error: unexpected end of block"
    );
    assert_eq!(
        error("a\n\n{{ raise_exception('No ' + 'way.') }}", &[]),
        "the chat template failed, line 3: invalid operation: No way."
    );
    let late_system = [turn("user", "a"), turn("system", "b")];
    let message = error(TEMPLATE, &late_system);
    assert!(message.ends_with("invalid operation: A system message may only come first."), "{message}");
    assert!(message.starts_with("the chat template failed, line 29:"), "{message}");
    assert!(error(TEMPLATE, &[]).contains("The message list is empty."));
    assert!(error(TEMPLATE, &[turn("bard", "a")]).contains("Unknown role: bard"));
    assert!(error("\n{{ strftime_now('%Y') }}", &[]).starts_with("the chat template failed, line 2: unknown function"));
    assert!(error("{{ missing.field }}", &[]).starts_with("the chat template failed, line 1: undefined value"));
}

#[test]
fn hostile_templates_end() {
    let started = Instant::now();
    let loops = "{% for i in range(99999) %}{% for j in range(99999) %}{{ i }}{% endfor %}{% endfor %}";
    let doubling = "{% set ns = namespace(x='ab') %}{% for i in range(99) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}";
    let laughs = "{% set a = [1] * 999 %}{% set b = [a] * 999 %}{% set c = [b] * 999 %}{{ c | tojson }}";
    let indent = "{{ [1] | tojson(indent=99999999999) }}";
    // Lists that share their elements are far longer than they are large.
    let shared = "{% set ns = namespace(x=[1]) %}{% for i in range(60) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}";
    let printed = format!("{shared}{{{{ ns.x }}}}");
    let compared = "{% set x = 'a' * 1000000 %}{% for i in range(9999) %}{% if x == x ~ '' %}{% endif %}{% endfor %}";
    for source in [loops, doubling, laughs, indent, &printed, compared] {
        let message = error(source, &[]);
        assert!(message.contains("ran out of fuel"), "{message}");
    }
    let nested = "{% set ns = namespace(x=[]) %}{% for i in range(5000) %}{% set ns.x = [ns.x] %}{% endfor %}";
    let outcome = render(nested, &[], prompt(None));
    assert!(outcome.is_ok(), "{outcome:?}");
    // A long conversation pays for more of it, and for the stack to print and drop it.
    let deep = "{% set ns = namespace(x=[]) %}{% for i in range(99999) %}{% set ns.x = [ns.x] %}{% endfor %}{{ ns.x }}";
    let outcome = render(deep, &[turn("user", &"x".repeat(2_000_000))], prompt(None));
    assert!(outcome.as_ref().is_ok_and(|text| text.len() == 200_000), "{}", outcome.unwrap_err());
    assert!(error(&format!("{nested}{{{{ ns.x | tojson }}}}"), &[]).contains("nested deeper than 128 levels"));
    assert!(error("{{ '{:>99999999}'.format(1) }}", &[]).contains("unknown method"));
    let long = error("{{ raise_exception('x' * 99999) }}", &[]);
    assert!(long.ends_with("xxx…") && long.len() < 1100, "{} bytes", long.len());
    let joined = render(&format!("{shared}{{{{ ns.x | join }}}}"), &[], prompt(None));
    assert_eq!(joined, Err(TextError::TemplateTime { seconds: 5 }));
    assert!(error("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", &[]).contains("recursion"));
    assert!(started.elapsed() < Duration::from_secs(60), "took {:?}", started.elapsed());
}

#[test]
fn long_conversations_have_the_fuel_they_need() {
    let pair = [turn("user", &"question ".repeat(20)), turn("assistant", "<think>\nhm\n</think>\n\nanswer")];
    let messages: Vec<Message> = pair.iter().cycle().take(20_000).cloned().collect();
    let text = render(TEMPLATE, &messages, prompt(None)).unwrap();
    assert_eq!(text.matches("<|im_start|>").count(), 20_001);
    let large = [turn("user", &"x".repeat(30_000_000))];
    assert!(render(TEMPLATE, &large, prompt(None)).unwrap().len() > 30_000_000);
}
