//! Damaged files: each gives an error that names what was expected and what was found, and none a panic.

mod damage;
#[path = "support/gguf_writer.rs"]
mod gguf_writer;
#[path = "support/shapes.rs"]
mod shapes;
#[path = "support/tiny_model.rs"]
mod tiny_model;

use std::collections::HashSet;
use std::path::Path;

use bankshot::gguf::{Array, GgufError, GgufFile, Value};
use bankshot::load::Model;
use bankshot::quant::{Format, decode_row};
use damage::{Damage, damages, small, vocabulary};
use gguf_writer::{ARRAY, GgufWriter, STRING, U32};
use tiny_model::Tiny;

fn open(bytes: Vec<u8>) -> Result<GgufFile, GgufError> {
    GgufFile::from_static(Box::leak(bytes.into_boxed_slice()))
}

#[track_caller]
fn reject(bytes: Vec<u8>, parts: &[&str]) {
    let error = open(bytes).map(|_| ()).unwrap_err().to_string();
    for part in parts {
        assert!(error.contains(part), "expected {part:?} in: {error}");
    }
}

#[test]
fn damages_are_named() {
    let (mut complaints, mut names, mut files) = (Vec::new(), HashSet::new(), HashSet::new());
    let damages = damages();
    for Damage { name, file, says } in damages {
        assert!(names.insert(name.clone()), "{name} is there twice");
        assert!(files.insert(file.clone()), "{name} is the same file as another");
        assert!(!says.is_empty(), "{name}");
        match Model::from_static(file.leak()) {
            Ok(_) => complaints.push(format!("{name}: accepted")),
            Err(error) => {
                let text = error.to_string();
                let missing: Vec<&String> = says.iter().filter(|part| !text.contains(*part)).collect();
                if !missing.is_empty() || !text.contains("expected") {
                    complaints.push(format!("{name}: no {missing:?} in: {text}"));
                }
            }
        }
    }
    assert!(complaints.is_empty(), "{} complaint(s)\n{}", complaints.len(), complaints.join("\n"));
    println!("{} damages", names.len());
    assert!(names.len() >= 250);
}

#[test]
fn what_is_damaged_was_whole() {
    for writer in [vocabulary(Tiny::new().writer()), vocabulary(Tiny::of("qwen35").writer())] {
        Model::from_static(writer.to_bytes().leak()).unwrap();
    }
}

#[test]
fn a_valid_file_reads_back() {
    for version in [2, 3] {
        let file = open(small().version(version).to_bytes()).unwrap();
        let metadata = file.metadata();
        assert_eq!((file.version(), file.alignment(), file.path()), (version, 32, Path::new("(embedded)")));
        assert_eq!(metadata.architecture().unwrap(), "qwen35");
        assert_eq!(metadata.len(), 17);
        assert_eq!(metadata.iter().nth(1).unwrap(), ("t.u8", &Value::U8(200)));
        assert_eq!(metadata.u64("t.u8").unwrap(), Some(200));
        assert_eq!(metadata.u64("t.u64").unwrap(), Some(u64::MAX));
        assert_eq!(metadata.i64("t.i16").unwrap(), Some(-300));
        assert_eq!(metadata.i64("t.i64").unwrap(), Some(i64::MIN));
        assert_eq!(metadata.u64("absent").unwrap(), None);
        assert_eq!(metadata.f32("t.f32").unwrap(), Some(1e-6));
        assert_eq!(metadata.f32("t.f64").unwrap(), Some(0.5));
        assert_eq!(metadata.bool("t.bool").unwrap(), Some(true));
        assert_eq!(metadata.str("t.str").unwrap(), Some("héllo"));
        assert_eq!(metadata.u64_array("t.sections").unwrap(), Some(vec![11, 11, 10, 0]));
        assert_eq!(metadata.i64_array("t.sections").unwrap(), Some(vec![11, 11, 10, 0]));
        assert_eq!(metadata.u64_array("t.multipliers").unwrap(), Some(vec![23_703_573_157_769, 1, u64::MAX]));
        assert_eq!(metadata.bool_array("t.recurrent").unwrap(), Some(vec![true, false]));
        assert_eq!(metadata.str_array("t.tokens").unwrap().unwrap(), ["a", "", "Ġb"]);
        assert_eq!(metadata.u64_per_layer("t.u8", 3).unwrap(), Some(vec![200; 3]));
        assert_eq!(metadata.u64_per_layer("t.sections", 4).unwrap(), Some(vec![11, 11, 10, 0]));

        let norm = file.tensor("norm.weight").unwrap();
        assert_eq!((norm.dims.as_slice(), norm.bytes, norm.elements()), ([8].as_slice(), 32, 8));
        let mut row = [0.0; 8];
        decode_row(norm.format().unwrap(), file.data(norm), &mut row).unwrap();
        assert_eq!(row, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]);
        assert_eq!(file.tensors()[1].format(), Some(Format::Q8_0));
        assert_eq!(file.data(&file.tensors()[1]), [1; 34 * 16]);
        let unused = file.tensor("unused.weight").unwrap();
        assert_eq!((unused.format(), unused.type_name()), (None, "TQ2_0"));
        assert_eq!(unused.offset + unused.bytes, file.file_bytes());
        assert!(file.tensor("absent").is_none());
    }
}

#[test]
fn getters_name_key_expected_and_found() {
    let file = open(small().to_bytes()).unwrap();
    let metadata = file.metadata();
    let errors = [
        (metadata.u64("t.str").unwrap_err(), "'t.str': expected an integer of at least 0, found string \"héllo\""),
        (metadata.u64("t.i8").unwrap_err(), "'t.i8': expected an integer of at least 0, found i8 -3"),
        (metadata.i64("t.u64").unwrap_err(), "an integer of at most 63 bits, found u64 18446744073709551615"),
        (metadata.f32("t.u32").unwrap_err(), "a floating-point number, found u32 4000000000"),
        (metadata.bool("t.u8").unwrap_err(), "a bool, found u8 200"),
        (metadata.str("t.tokens").unwrap_err(), "a string, found array of string [\"a\", \"\", \"Ġb\"]"),
        (metadata.str_array("t.str").unwrap_err(), "an array of string, found string"),
        (metadata.f32_array("t.sections").unwrap_err(), "an array of f32, found array of i32 [11, 11, 10, 0]"),
        (metadata.i64_array("t.multipliers").unwrap_err(), "found element 2 = 18446744073709551615"),
        (metadata.u64_array("t.u8").unwrap_err(), "an array of integers of at least 0, found u8 200"),
        (metadata.bool_array("t.sections").unwrap_err(), "or of integers 0 and 1, found element 0 = 11"),
        (metadata.u64_per_layer("t.sections", 5).unwrap_err(), "array of 5 of them (one for each layer), found"),
        (metadata.u64_per_layer("t.sections", 5).unwrap_err(), "array of i32 with 4 elements"),
        (metadata.u64_per_layer("t.bool", 5).unwrap_err(), "found bool true"),
    ];
    for (error, part) in errors {
        assert!(error.to_string().contains(part), "expected {part:?} in: {error}");
    }
    let without = GgufWriter::new("x").kv_u32("other", 1).to_bytes();
    let renamed = without.windows(7).position(|window| window == b"general").unwrap();
    let mut bytes = without;
    bytes[renamed] = b'G';
    let error = open(bytes).unwrap().metadata().architecture().unwrap_err().to_string();
    assert!(error.contains("'general.architecture': expected a string, found no such key"), "{error}");
}

#[test]
fn summaries_are_short() {
    let long = "x".repeat(5000);
    let writer = GgufWriter::new("a").kv_str("s", &long).kv_f32_array("f", &[1.5; 9]).kv_str("n", "two\nlines");
    let file = open(writer.to_bytes()).unwrap();
    let summary = |key: &str| file.metadata().get(key).unwrap().summary();
    assert_eq!(summary("s"), format!("\"{}…\" (5000 bytes)", "x".repeat(80)));
    assert_eq!(summary("f"), "[1.5, 1.5, 1.5, 1.5, 1.5, 1.5, 1.5, 1.5, …] (9 elements)");
    assert_eq!(summary("n"), r#""two\nlines""#);
    assert!(matches!(file.metadata().get("f"), Some(Value::Array(Array::F32(v))) if v.len() == 9));
}

#[test]
fn all_tensor_problems_come_together() {
    let mut writer = small();
    for i in 0..30 {
        writer = writer.tensor(&format!("bad.{i}"), &[8], 100 + i, &[0; 32]);
    }
    reject(writer.to_bytes(), &["30 problems", "'bad.0'", "found 100", "'bad.19'", "found 119", "and 10 more"]);

    let (bytes, marks) = writer.to_bytes_with_marks();
    let cut = bytes[..marks.tensors[5] + 4].to_vec();
    reject(cut, &["2 problems", "'bad.1'", "reading stopped there", "name of tensor 5", "expected 8 bytes, found 4"]);
}

#[test]
fn paths_that_are_no_model() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let error = |path: &Path| GgufFile::open(path).map(|_| ()).unwrap_err().to_string();
    std::fs::write(at("text.gguf"), "# A model card\n").unwrap();
    std::fs::write(at("empty.gguf"), "").unwrap();
    std::fs::write(at("good.gguf"), small().to_bytes()).unwrap();

    let missing = error(&at("missing.gguf"));
    assert!(missing.contains("missing.gguf': expected a readable GGUF file, found: No such file"), "{missing}");
    let directory = error(folder.path());
    assert!(directory.contains("expected a GGUF file, found a directory"), "{directory}");
    let text = error(&at("text.gguf"));
    assert!(text.contains("text.gguf': not a GGUF file: expected 47 47 55 46 (\"GGUF\")"), "{text}");
    assert!(text.contains("found 23 20 41 20 (\"# A \")"), "{text}");
    let empty = error(&at("empty.gguf"));
    assert!(empty.contains("empty.gguf': not a GGUF file"), "{empty}");
    assert!(empty.contains("found an empty file"), "{empty}");

    let file = GgufFile::open(&at("good.gguf")).unwrap();
    assert_eq!(file.path(), at("good.gguf"));
    assert_eq!(file.data(&file.tensors()[1]), [1; 34 * 16]);
    let mut foreign = file.tensors()[2].clone();
    foreign.offset += 1;
    assert_eq!(file.data(&foreign), [0; 0]);
    let wrong_type = file.metadata().u64("t.str").unwrap_err().to_string();
    assert!(wrong_type.contains("good.gguf': metadata key 't.str'"), "{wrong_type}");
}

#[test]
fn every_cut_is_an_error() {
    let bytes: &'static [u8] = Box::leak(small().to_bytes().into_boxed_slice());
    assert!(GgufFile::from_static(bytes).is_ok());
    for length in 0..bytes.len() {
        let error = GgufFile::from_static(&bytes[..length]).map(|_| ()).expect_err("a cut file");
        assert!(error.to_string().contains("found"), "cut at {length}: {error}");
    }
}

#[test]
fn flipped_bytes_never_panic() {
    let (bytes, marks) = small().to_bytes_with_marks();
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 16) as usize % below
    };
    let (mut accepted, mut refused) = (0, 0);
    for _ in 0..6000 {
        let mut damaged = bytes.clone();
        for _ in 0..=random(3) {
            let at = random(marks.data);
            damaged[at] = [random(256) as u8, 0, 0xff, damaged[at] ^ (1 << random(8))][random(4)];
        }
        let Ok(file) = open(damaged) else {
            refused += 1;
            continue;
        };
        accepted += 1;
        for (key, value) in file.metadata().iter() {
            assert!(value.summary().len() < 1000 && !value.type_name().is_empty());
            let _ = (file.metadata().u64_per_layer(key, 4), file.metadata().bool_array(key));
        }
        for tensor in file.tensors() {
            assert_eq!(file.data(tensor).len() as u64, tensor.bytes, "{}", tensor.name);
        }
    }
    assert!(accepted > 100 && refused > 1000, "accepted {accepted}, refused {refused}");
}

#[test]
fn a_huge_count_allocates_nothing() {
    let tokens = [STRING.to_le_bytes().as_slice(), &4_194_304_u64.to_le_bytes(), &[0; 8]].concat();
    reject(
        GgufWriter::new("a").kv_raw("t", ARRAY, &tokens).to_bytes(),
        &["array elements of 't'", "expected 33554432 bytes, found"],
    );
    let numbers = [U32.to_le_bytes().as_slice(), &4_194_305_u64.to_le_bytes()].concat();
    reject(GgufWriter::new("a").kv_raw("t", ARRAY, &numbers).to_bytes(), &["at most 4194304, found 4194305"]);
}
