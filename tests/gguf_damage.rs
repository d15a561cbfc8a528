//! Damaged files: each gives an error that names what was expected and what was found, and none a panic.

#[path = "support/gguf_writer.rs"]
mod gguf_writer;

use std::path::Path;

use bankshot::gguf::{Array, GgufError, GgufFile, Value};
use bankshot::quant::{Format, decode_row};
use gguf_writer::{ARRAY, BOOL, GgufWriter, Marks, STRING, U8, U32, U64};

/// Type ids of ggml.
const F32: u32 = 0;
const Q8_0: u32 = 8;
const TQ2_0: u32 = 35;

/// Every value type, and tensors of a plain, a quantised and an unsupported type. All data ends on the alignment, so
/// that no cut of the file leaves it complete.
fn small() -> GgufWriter {
    GgufWriter::new("qwen35")
        .kv_u8("t.u8", 200)
        .kv_i8("t.i8", -3)
        .kv_u16("t.u16", 60_000)
        .kv_i16("t.i16", -300)
        .kv_u32("t.u32", 4_000_000_000)
        .kv_i32("t.i32", -70_000)
        .kv_u64("t.u64", u64::MAX)
        .kv_i64("t.i64", i64::MIN)
        .kv_f32("t.f32", 1e-6)
        .kv_f64("t.f64", 0.5)
        .kv_bool("t.bool", true)
        .kv_str("t.str", "héllo")
        .kv_i32_array("t.sections", &[11, 11, 10, 0])
        .kv_u64_array("t.multipliers", &[23_703_573_157_769, 1, u64::MAX])
        .kv_bool_array("t.recurrent", &[true, false])
        .kv_str_array("t.tokens", &["a", "", "Ġb"])
        .tensor_f32("norm.weight", &[8], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0])
        .tensor("proj.weight", &[32, 16], Q8_0, &[1; 34 * 16])
        .tensor("unused.weight", &[256, 16], TQ2_0, &[2; 66 * 16])
}

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

/// Writes the small file, lets `damage` change it, and expects an error with all `parts`.
#[track_caller]
fn reject_damaged(damage: impl FnOnce(&mut Vec<u8>, &Marks), parts: &[&str]) {
    let (mut bytes, marks) = small().to_bytes_with_marks();
    damage(&mut bytes, &marks);
    reject(bytes, parts);
}

fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    bytes[at..at + value.len()].copy_from_slice(value);
}

/// Position of the data offset field, the last of an entry.
fn offset_field(marks: &Marks, tensor: usize) -> usize {
    marks.tensors[tensor + 1] - 8
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
fn headers() {
    reject_damaged(|b, _| put(b, 0, b"GGML"), &["not a GGUF file", "47 47 55 46", "found 47 47 4d 4c (\"GGML\")"]);
    reject_damaged(|b, _| put(b, 4, &3_u32.to_be_bytes()), &["little-endian", "big-endian version bytes 00 00 00 03"]);
    reject_damaged(|b, _| put(b, 4, &[0; 4]), &["version 2 or 3 at byte 4", "found version 0"]);
    reject_damaged(|b, _| put(b, 4, &[1, 0, 0, 0]), &["version 2 or 3", "found version 1"]);
    reject_damaged(|b, _| put(b, 4, &[99, 0, 0, 0]), &["version 2 or 3", "found version 99"]);
    let huge = 1_u64 << 40;
    reject_damaged(
        |b, _| put(b, 8, &huge.to_le_bytes()),
        &["tensor count at byte 8", "at most 131072", "found 1099511627776"],
    );
    reject_damaged(
        |b, _| put(b, 8, &[255; 8]),
        &["tensor count at byte 8", "at most 131072", "found 18446744073709551615"],
    );
    reject_damaged(|b, _| put(b, 16, &[255; 8]), &["metadata pair count at byte 16", "at most 65536"]);
    reject_damaged(
        |b, _| put(b, 16, &60_000_u64.to_le_bytes()),
        &["metadata key 18", "expected a name, found an empty string"],
    );
}

#[test]
fn cuts_in_every_section() {
    let (bytes, marks) = small().to_bytes_with_marks();
    let cut = |at: usize, parts: &[&str]| reject(bytes[..at].to_vec(), parts);
    cut(0, &["expected 47 47 55 46", "found an empty file"]);
    cut(3, &["expected 47 47 55 46", "found 47 47 55 (\"GGU\")"]);
    cut(6, &["version at byte 4: expected 4 bytes, found 2"]);
    cut(15, &["tensor count at byte 8: expected 8 bytes, found 7"]);
    cut(20, &["metadata pair count at byte 16: expected 8 bytes, found 4"]);
    cut(30, &["metadata key 0 at byte 24: expected 8 bytes, found 6"]);
    cut(34, &["metadata key 0 at byte 32: expected 20 bytes, found 2"]);
    cut(marks.types[0] + 2, &["value type of 'general.architecture'", "expected 4 bytes, found 2"]);
    cut(marks.types[7] + 5, &["value of 't.u64'", "expected 8 bytes, found 1"]);
    cut(marks.types[13] + 20, &["array elements of 't.sections'", "expected 16 bytes, found 4"]);
    cut(marks.tensors[1] - 4, &["data offset of tensor 0", "expected 8 bytes, found 4"]);
    cut(marks.dims[1] + 6, &["dimensions of tensor 1", "expected 8 bytes, found 2"]);
    let end = bytes.len();
    let (to, all) = (format!("data up to byte {end}"), format!("a file of {} bytes", marks.data));
    cut(marks.data, &["tensor 'norm.weight'", &to, &all, "leaves 3 of the tensors"]);
    cut(end - 1, &["tensor 'unused.weight'", &to, "leaves 1 of the tensors incomplete"]);
}

#[test]
fn metadata_damages() {
    reject_damaged(
        |b, m| put(b, m.pairs[2], &[255; 8]),
        &["length of the metadata key 2", "expected at most 65535, found 18446744073709551615"],
    );
    reject_damaged(
        |b, m| put(b, m.types[12] + 4, &(1_u64 << 50).to_le_bytes()),
        &["length of the value of 't.str'", "expected at most 16777216, found 1125899906842624"],
    );
    reject_damaged(
        |b, m| put(b, m.types[12] + 4, &60_000_u64.to_le_bytes()),
        &["value of 't.str'", "expected 60000 bytes, found"],
    );
    reject_damaged(|b, m| put(b, m.types[12] + 13, b"x\xff"), &["value of 't.str'", "expected UTF-8", "found ff"]);
    reject_damaged(|b, m| put(b, m.pairs[3] + 8, b"\xc0"), &["metadata key 3", "expected UTF-8", "found c0"]);
    reject_damaged(|b, m| b[m.types[11] + 4] = 2, &["value of 't.bool'", "a bool, 0 or 1, found 2"]);
    reject_damaged(|b, m| b[m.types[15] + 17] = 9, &["array element 1 of 't.recurrent'", "0 or 1, found 9"]);
    reject_damaged(|b, m| b[m.types[5]] = 13, &["value type of 't.u32'", "a value type from 0 to 12, found 13"]);
    reject_damaged(
        |b, m| put(b, m.types[13] + 4, &77_u32.to_le_bytes()),
        &["array element type of 't.sections'", "from 0 to 12, found 77"],
    );
    reject_damaged(
        |b, m| put(b, m.types[13] + 8, &[255; 8]),
        &["array length of 't.sections'", "expected at most 4194304, found 18446744073709551615"],
    );
    reject_damaged(
        |b, m| put(b, m.types[14] + 8, &4_000_000_u64.to_le_bytes()),
        &["array elements of 't.multipliers'", "expected 32000000 bytes, found"],
    );
    reject_damaged(
        |b, m| put(b, m.types[16] + 16, &[255; 8]),
        &["length of the array element 0 of 't.tokens'", "expected at most 16777216"],
    );

    let nested = [ARRAY.to_le_bytes().as_slice(), &1_u64.to_le_bytes(), &U8.to_le_bytes(), &[0; 8]].concat();
    reject(
        small().kv_raw("t.nested", ARRAY, &nested).to_bytes(),
        &["array element type of 't.nested'", "expected a scalar or string type, found 9 (a nested array)"],
    );
    reject(
        small().kv_u32("t.u32", 1).to_bytes(),
        &["metadata key 17", "a key that occurs once, found 't.u32' again, which is also key 5"],
    );
    reject(small().kv_u32("", 1).to_bytes(), &["metadata key 17", "expected a name, found an empty string"]);
    reject(small().kv_raw("t.cut", BOOL, &[]).to_bytes(), &["value of 't.cut'", "0 or 1, found 11"]);
}

#[test]
fn alignments() {
    for (alignment, found) in [(0, "found 0"), (3, "found 3"), (1 << 21, "found 2097152")] {
        let bytes = small().kv_u32("general.alignment", alignment).to_bytes();
        reject(bytes, &["'general.alignment': expected a power of two of at most 1048576", found]);
    }
    let text = small().kv_raw("general.alignment", STRING, &[0; 8]).to_bytes();
    reject(text, &["'general.alignment': expected an integer of at least 0, found string"]);
    let file = open(small().alignment(4096).to_bytes()).unwrap();
    assert!(file.tensors().iter().all(|tensor| tensor.offset.is_multiple_of(4096)));
    let disagreeing = small().kv_raw("general.alignment", U64, &64_u64.to_le_bytes()).to_bytes();
    reject(disagreeing, &["tensor 'proj.weight'", "data offset", "a multiple of the alignment 64, found 32"]);
}

#[test]
fn tensor_names() {
    let twice = small().tensor_f32("norm.weight", &[8], &[0.0; 8]).to_bytes();
    reject(twice, &["tensor 'norm.weight'", "a name that occurs once", "found tensor 0 and tensor 3"]);
    let empty = small().tensor_f32("", &[8], &[0.0; 8]).to_bytes();
    reject(empty, &["tensor ''", "name: expected 1 to 63 bytes, found 0 bytes"]);
    let long = small().tensor_f32(&"n".repeat(64), &[8], &[0.0; 8]).to_bytes();
    reject(long, &["name: expected 1 to 63 bytes, found 64 bytes"]);
    reject_damaged(|b, m| b[m.tensors[1] + 10] = 0xfe, &["name: expected UTF-8, found fe", "at byte 2 of the name"]);
    reject_damaged(
        |b, m| put(b, m.tensors[1], &[255; 8]),
        &["length of the name of tensor 1", "expected at most 65535, found 18446744073709551615"],
    );
}

#[test]
fn tensor_shapes_and_types() {
    let with = |dims: &[u64], ggml_type| small().tensor("t", dims, ggml_type, &[0; 32]).to_bytes();
    reject(with(&[], F32), &["tensor 't'", "dimension count: expected 1 to 4, found 0"]);
    reject(with(&[8, 1, 1, 1, 1], F32), &["dimension count: expected 1 to 4, found 5"]);
    reject_damaged(
        |b, m| put(b, m.dims[0], &1_000_000_u32.to_le_bytes()),
        &["dimension count of tensor 0", "expected 1 to 4, found 1000000"],
    );
    reject(with(&[8, 0], F32), &["dimensions: expected each at least 1, found [8, 0]"]);
    reject(with(&[1 << 32, 1 << 32], F32), &["a product of at most 9223372036854775807, found [4294967296, "]);
    reject(with(&[u64::MAX], F32), &["a product of at most 9223372036854775807, found [18446744073709551615]"]);
    reject(with(&[i64::MAX as u64], F32), &["a size below 2^64 bytes, found [9223372036854775807]"]);
    reject(with(&[(1 << 62) - 8], F32), &["data: expected an end below 2^64, found"]);
    reject(with(&[1 << 40], F32), &["data: expected data up to byte 4398", "found a file of"]);
    reject(with(&[8], 77), &["type: expected a known ggml type id, found 77"]);
    reject(with(&[8], 31), &["type: expected a known ggml type id, found 31"]);
    reject(with(&[33], Q8_0), &["row length: expected a multiple of 32, the block length of Q8_0, found 33"]);
    reject(with(&[128, 2], TQ2_0), &["a multiple of 256, the block length of TQ2_0, found 128"]);
}

#[test]
fn tensor_offsets() {
    let second = "32, where the previous tensor ends, found";
    reject_damaged(
        |b, m| put(b, offset_field(m, 1), &33_u64.to_le_bytes()),
        &["tensor 'proj.weight'", "data offset: expected a multiple of the alignment 32, found 33"],
    );
    reject_damaged(|b, m| put(b, offset_field(m, 1), &64_u64.to_le_bytes()), &["1 problem", second, "found 64"]);
    reject_damaged(|b, m| put(b, offset_field(m, 1), &0_u64.to_le_bytes()), &["1 problem", second, "found 0"]);
    reject_damaged(
        |b, m| put(b, offset_field(m, 0), &32_u64.to_le_bytes()),
        &["'norm.weight'", "data offset: expected 0, where the first tensor starts, found 32"],
    );
    reject_damaged(
        |b, m| put(b, offset_field(m, 1), &(u64::MAX - 31).to_le_bytes()),
        &[
            "data offset: expected 32, ",
            "found 18446744073709551584",
            "data: expected data up to byte 18446744073709551615",
        ],
    );
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
