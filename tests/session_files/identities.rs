//! The identity of a model's state follows from what changes its bits, and from nothing else.

use std::fs;

use bankshot::cli::DEMO_MODEL;
use bankshot::gguf::GgufFile;
use bankshot::load::Model;
use bankshot::model::KvType;
use bankshot::plan::{Inventory, Options, Plan, Split};
use bankshot::quant::Format;
use bankshot::state::Identity;
use tempfile::tempdir;

use super::random_model::random_model_of;

fn plan(model: &Model, kv: KvType) -> Plan {
    Plan::new(model.bound(), Options::new(64, 16, kv)).unwrap()
}

fn identity_of(bytes: Vec<u8>) -> Identity {
    let model = Model::from_static(bytes.leak()).unwrap();
    Identity::of(&model, &plan(&model, KvType::F16)).unwrap()
}

/// Fields that are not the same.
fn changed(first: &Identity, second: &Identity) -> Vec<String> {
    let pairs = first.fields().iter().zip(second.fields());
    pairs.filter(|(first, second)| first != second).map(|(first, _)| first.0.clone()).collect()
}

fn small(arch: &str) -> Vec<u8> {
    random_model_of(arch, &[Format::Q8_0])
}

#[test]
fn the_path_does_not_matter_and_the_file_does() {
    let (dir, bytes) = (tempdir().unwrap(), small("qwen4exp"));
    let embedded = identity_of(bytes.clone());
    for name in ["a.gguf", "b.gguf"] {
        let path = dir.path().join(name);
        fs::write(&path, &bytes).unwrap();
        let model = Model::open(&path).unwrap();
        assert_eq!(Identity::of(&model, &plan(&model, KvType::F16)).unwrap(), embedded);
    }
    let names: Vec<&str> = embedded.fields().iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, Identity::FIELDS);
    assert_eq!(embedded.field("architecture"), Some("qwen4exp"));
    assert_eq!((embedded.field("contract"), embedded.field("cache")), (Some("1"), Some("f16")));
    for hash in ["tokenizer", "model", "layout"] {
        let value = embedded.field(hash).unwrap();
        assert!(value.len() == 64 && value.bytes().all(|c| c.is_ascii_hexdigit()), "{hash}: {value}");
    }
    for (at, first) in ["qwen35", "qwen35moe", "qwen3next"].into_iter().enumerate() {
        let first = identity_of(small(first));
        assert_eq!(embedded.difference(&first).unwrap().field, "architecture", "{at}");
    }
}

#[test]
fn every_tensor_is_sampled() {
    let bytes = small("qwen35");
    let first = identity_of(bytes.clone());
    let file = GgufFile::from_static(bytes.clone().leak()).unwrap();
    for tensor in file.tensors() {
        let mut other = bytes.clone();
        other[(tensor.offset + tensor.bytes / 2) as usize] ^= 1;
        assert_eq!(changed(&first, &identity_of(other)), ["model"], "{}", tensor.name);
        let mut other = bytes.clone();
        other[tensor.offset as usize] ^= 1;
        // Of large ones only the middle is read.
        let expected: &[&str] = if tensor.bytes <= 4096 { &["model"] } else { &[] };
        assert_eq!(changed(&first, &identity_of(other)), expected, "{}", tensor.name);
    }
    let mut longer = bytes;
    longer.push(0);
    assert_eq!(changed(&first, &identity_of(longer)), ["model"]);
}

#[test]
fn tokenizer_and_template_have_their_own_fields() {
    let first = identity_of(DEMO_MODEL.to_vec());
    let change = |text: &[u8], by: &[u8]| {
        let mut bytes = DEMO_MODEL.to_vec();
        let at = bytes.windows(text.len()).position(|window| window == text).unwrap_or_else(|| panic!("{text:?}"));
        bytes[at..at + by.len()].copy_from_slice(by);
        changed(&first, &identity_of(bytes))
    };
    let source = bankshot::load::vocab_source(GgufFile::from_static(DEMO_MODEL).unwrap().metadata()).unwrap();
    let template = source.chat_template.unwrap();
    assert_ne!(first.field("template"), Some("none"));
    let whole = [&template.as_bytes()[..template.len() - 1], b" "].concat();
    assert_eq!(change(template.as_bytes(), &whole), ["template", "model"]);
    // The last merge but for its rank is the first one, and so on: two of the same length change places.
    let pairs: Vec<&String> = source.merges.iter().filter(|merge| merge.len() == 3).take(2).collect();
    let (one, two) = (pairs[0].as_bytes(), pairs[1].as_bytes());
    let with_length = |text: &[u8]| [&3u64.to_le_bytes(), text].concat();
    let mut bytes = DEMO_MODEL.to_vec();
    let at = |text: &[u8]| DEMO_MODEL.windows(11).position(|window| window == with_length(text)).unwrap() + 8;
    let (first_at, second_at) = (at(one), at(two));
    bytes[first_at..first_at + 3].copy_from_slice(two);
    bytes[second_at..second_at + 3].copy_from_slice(one);
    assert_eq!(changed(&first, &identity_of(bytes)), ["tokenizer", "model"]);
    assert_eq!(identity_of(small("qwen35")).field("template"), Some("none"));
}

#[test]
fn the_cache_matters_and_context_chunk_and_cards_do_not() {
    let model = Model::from_static(small("qwen4exp").leak()).unwrap();
    let of = |options: Options, cards| {
        let plan = Plan::fit(model.bound(), options, &Inventory::unlimited(cards)).unwrap();
        Identity::of(&model, &plan).unwrap()
    };
    let first = of(Options::new(64, 16, KvType::F16), 1);
    assert_eq!(of(Options::new(512, 7, KvType::F16), 1), first);
    for split in [Split::Layer, Split::Tensor] {
        assert_eq!(of(Options { split: Some(split), ..Options::new(128, 16, KvType::F16) }, 2), first);
    }
    let other = of(Options::new(64, 16, KvType::F32), 1);
    assert_eq!(changed(&first, &other), ["cache", "layout"]);
    assert_eq!(first.difference(&other).unwrap().to_string(), "cache: expected f16, found f32");
}
