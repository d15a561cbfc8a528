//! Damages of the key-value section.

use super::{Damage, cut, put, small, spoilt};
use crate::gguf_writer::{ARRAY, BOOL, F32, I32, STRING, U8, U32, U64};

/// The small file with one more pair of these bytes.
fn with_pair(name: &str, key: &str, value_type: u32, value: &[u8], says: &[&str]) -> Damage {
    Damage::new(name, small().kv_raw(key, value_type, value).to_bytes(), says)
}

fn array(element_type: u32, count: u64, elements: &[u8]) -> Vec<u8> {
    [&element_type.to_le_bytes()[..], &count.to_le_bytes(), elements].concat()
}

pub fn damages() -> Vec<Damage> {
    let mut all = keys();
    all.extend(strings());
    all.extend(types_and_arrays());
    all.extend(alignments());
    all
}

fn keys() -> Vec<Damage> {
    vec![
        spoilt(
            "a key of 2^64 - 1 bytes",
            |b, m| put(b, m.pairs[2], &[255; 8]),
            &["length of the metadata key 2", "expected at most 65535, found 18446744073709551615"],
        ),
        spoilt(
            "a key of 2^63 bytes",
            |b, m| put(b, m.pairs[2], &(1_u64 << 63).to_le_bytes()),
            &["length of the metadata key 2", "expected at most 65535, found 9223372036854775808"],
        ),
        spoilt(
            "a key beyond the end of the file",
            |b, m| put(b, m.pairs[2], &60_000_u64.to_le_bytes()),
            &["metadata key 2", "expected 60000 bytes, found"],
        ),
        Damage::new(
            "a key of 65536 bytes",
            small().kv_u8(&"k".repeat(65_536), 0).to_bytes(),
            &["length of the metadata key 17", "expected at most 65535, found 65536"],
        ),
        spoilt(
            "a key that is no UTF-8",
            |b, m| put(b, m.pairs[3] + 8, b"\xc0"),
            &["metadata key 3", "expected UTF-8, found c0"],
        ),
        Damage::new(
            "an empty key",
            small().kv_u32("", 1).to_bytes(),
            &["metadata key 17", "expected a name, found an empty string"],
        ),
        Damage::new(
            "a key twice",
            small().kv_u32("t.u32", 1).to_bytes(),
            &["metadata key 17", "expected a key that occurs once, found 't.u32' again, which is also key 5"],
        ),
        Damage::new(
            "the architecture twice",
            small().kv_str("general.architecture", "qwen4exp").to_bytes(),
            &["metadata key 17", "found 'general.architecture' again, which is also key 0"],
        ),
    ]
}

fn strings() -> Vec<Damage> {
    let length = |name: &str, length: u64, says: &[&str]| {
        spoilt(name, |b, m| put(b, m.types[12] + 4, &length.to_le_bytes()), says)
    };
    let what = "length of the value of 't.str'";
    vec![
        length("a string of 2^50 bytes", 1 << 50, &[what, "expected at most 16777216, found 1125899906842624"]),
        length("a string of 2^63 bytes", 1 << 63, &[what, "expected at most 16777216, found 9223372036854775808"]),
        length(
            "a string of 2^64 - 1 bytes",
            u64::MAX,
            &[what, "expected at most 16777216, found 18446744073709551615"],
        ),
        length("a string beyond the end of the file", 60_000, &["value of 't.str'", "expected 60000 bytes, found"]),
        spoilt(
            "a string that is no UTF-8",
            |b, m| put(b, m.types[12] + 13, b"x\xff"),
            &["value of 't.str'", "expected UTF-8, found ff"],
        ),
        spoilt(
            "a string with half a character",
            |b, m| put(b, m.types[12] + 12, b"hello\xc3"),
            &["value of 't.str'", "expected UTF-8, found c3"],
        ),
        spoilt(
            "a string of an array beyond the end of the file",
            |b, m| put(b, m.types[16] + 16, &60_000_u64.to_le_bytes()),
            &["array element 0 of 't.tokens'", "expected 60000 bytes, found"],
        ),
        spoilt(
            "a string of an array of 2^64 - 1 bytes",
            |b, m| put(b, m.types[16] + 16, &[255; 8]),
            &["length of the array element 0 of 't.tokens'", "expected at most 16777216"],
        ),
        spoilt(
            "a string of an array that is no UTF-8",
            |b, m| b[m.types[16] + 24] = 0xf8,
            &["array element 0 of 't.tokens'", "expected UTF-8, found f8"],
        ),
    ]
}

fn types_and_arrays() -> Vec<Damage> {
    let value_type = |name: &str, id: u32, found: &str| {
        spoilt(
            name,
            |b, m| put(b, m.types[5], &id.to_le_bytes()),
            &["value type of 't.u32'", "expected a value type from 0 to 12, found", found],
        )
    };
    let count = |name: &str, count: u64, says: &[&str]| {
        spoilt(name, |b, m| put(b, m.types[13] + 8, &count.to_le_bytes()), says)
    };
    let too_many = "array length of 't.sections'";
    let deep = array(ARRAY, 1, &[]).repeat(1000);
    let nested = "expected a scalar or string type, found 9 (a nested array)";
    vec![
        value_type("value type 13", 13, "found 13"),
        value_type("value type 255", 255, "found 255"),
        value_type("value type 2^32 - 1", u32::MAX, "found 4294967295"),
        spoilt(
            "an element type of 77",
            |b, m| put(b, m.types[13] + 4, &77_u32.to_le_bytes()),
            &["array element type of 't.sections'", "expected a value type from 0 to 12, found 77"],
        ),
        with_pair(
            "a nested array",
            "t.nested",
            ARRAY,
            &array(ARRAY, 1, &array(U8, 1, &[0])),
            &["array element type of 't.nested'", nested],
        ),
        with_pair("a deeply nested array", "t.deep", ARRAY, &deep, &["array element type of 't.deep'", nested]),
        count("an array of 2^64 - 1", u64::MAX, &[too_many, "expected at most 4194304, found 18446744073709551615"]),
        count(
            "an array whose bytes overflow",
            1 << 62,
            &[too_many, "expected at most 4194304, found 4611686018427387904"],
        ),
        count("an array of one too many", 4_194_305, &[too_many, "expected at most 4194304, found 4194305"]),
        count(
            "an array beyond the end of the file",
            4_000_000,
            &["array elements of 't.sections'", "expected 16000000 bytes, found"],
        ),
        spoilt(
            "an array of strings beyond the end of the file",
            |b, m| put(b, m.types[16] + 8, &4_194_304_u64.to_le_bytes()),
            &["array elements of 't.tokens'", "expected 33554432 bytes, found"],
        ),
        spoilt(
            "a bool of 2",
            |b, m| b[m.types[11] + 4] = 2,
            &["value of 't.bool'", "expected a bool, 0 or 1, found 2"],
        ),
        spoilt(
            "a bool of an array of 9",
            |b, m| b[m.types[15] + 17] = 9,
            &["array element 1 of 't.recurrent'", "expected a bool, 0 or 1, found 9"],
        ),
        // The next byte is then the length of a tensor's name.
        with_pair(
            "a bool without its byte",
            "t.cut",
            BOOL,
            &[],
            &["value of 't.cut'", "expected a bool, 0 or 1, found 11"],
        ),
    ]
}

fn alignments() -> Vec<Damage> {
    let what = "metadata key 'general.alignment': expected";
    let power = "expected a power of two of at most 1048576, found";
    let u32 = |name: &str, alignment: u32, found: &str| {
        Damage::new(name, small().kv_u32("general.alignment", alignment).to_bytes(), &[what, power, found])
    };
    let raw =
        |name: &str, kind: u32, value: &[u8], says: &[&str]| with_pair(name, "general.alignment", kind, value, says);
    vec![
        u32("an alignment of 0", 0, "found 0"),
        u32("an alignment of 3", 3, "found 3"),
        u32("an alignment of 33", 33, "found 33"),
        u32("an alignment of 2^21", 1 << 21, "found 2097152"),
        raw("an alignment of 2^63", U64, &(1_u64 << 63).to_le_bytes(), &[what, power, "found 9223372036854775808"]),
        raw("a negative alignment", I32, &(-32_i32).to_le_bytes(), &[what, "an integer of at least 0, found i32 -32"]),
        raw(
            "an alignment with a point",
            F32,
            &32_f32.to_le_bytes(),
            &[what, "an integer of at least 0, found f32 32.0"],
        ),
        raw("an alignment in letters", STRING, &[0; 8], &[what, "an integer of at least 0, found string \"\""]),
        raw(
            "an array of alignments",
            ARRAY,
            &array(U32, 1, &[32, 0, 0, 0]),
            &[what, "an integer of at least 0, found array of u32 [32]"],
        ),
        raw(
            "an alignment that the offsets do not keep",
            U64,
            &64_u64.to_le_bytes(),
            &["tensor 'proj.weight'", "data offset: expected a multiple of the alignment 64, found 32"],
        ),
    ]
}

pub fn cuts() -> Vec<Damage> {
    vec![
        cut("the length of a key", |m| m.pairs[1] + 3, &["metadata key 1", "expected 8 bytes, found 3"]),
        cut("a key", |m| m.pairs[0] + 10, &["metadata key 0 at byte 32: expected 20 bytes, found 2"]),
        cut("a value type", |m| m.types[0] + 2, &["value type of 'general.architecture'", "expected 4 bytes, found 2"]),
        cut("the place before a value", |m| m.types[1] + 4, &["value of 't.u8'", "expected 1 bytes, found 0"]),
        cut("a number", |m| m.types[7] + 5, &["value of 't.u64'", "expected 8 bytes, found 1"]),
        cut("the length of a string", |m| m.types[12] + 7, &["value of 't.str'", "expected 8 bytes, found 3"]),
        cut("a string", |m| m.types[12] + 14, &["value of 't.str'", "expected 6 bytes, found 2"]),
        cut(
            "an element type",
            |m| m.types[13] + 5,
            &["array element type of 't.sections'", "expected 4 bytes, found 1"],
        ),
        cut(
            "the length of an array",
            |m| m.types[13] + 10,
            &["array length of 't.sections'", "expected 8 bytes, found 2"],
        ),
        cut(
            "an array of numbers",
            |m| m.types[13] + 20,
            &["array elements of 't.sections'", "expected 16 bytes, found 4"],
        ),
        cut(
            "an array of bools",
            |m| m.types[15] + 17,
            &["array elements of 't.recurrent'", "expected 2 bytes, found 1"],
        ),
        cut(
            "an array of strings",
            |m| m.types[16] + 30,
            &["array elements of 't.tokens'", "expected 24 bytes, found 14"],
        ),
        cut(
            "the last string of an array",
            |m| m.directory - 1,
            &["array element 2 of 't.tokens'", "expected 3 bytes, found 2"],
        ),
    ]
}
