//! Damages of the tensor directory, and of the data behind it.

use super::{Damage, F32, Q8_0, TQ2_0, cut, put, small, spoilt};
use crate::gguf_writer::Marks;

/// The small file with one more tensor, whose data has 32 bytes.
fn with(name: &str, dims: &[u64], ggml_type: u32, says: &[&str]) -> Damage {
    Damage::new(name, small().tensor("t", dims, ggml_type, &[0; 32]).to_bytes(), &[&["tensor 't'"], says].concat())
}

fn named(name: &str, tensor: &str, says: &[&str]) -> Damage {
    Damage::new(name, small().tensor_f32(tensor, &[8], &[0.0; 8]).to_bytes(), says)
}

pub fn damages() -> Vec<Damage> {
    let mut all = names();
    all.extend(shapes());
    all.extend(offsets());
    all
}

fn names() -> Vec<Damage> {
    let length =
        |name: &str, length: u64, says: &[&str]| spoilt(name, |b, m| put(b, m.tensors[1], &length.to_le_bytes()), says);
    vec![
        named(
            "a tensor twice",
            "norm.weight",
            &["tensor 'norm.weight'", "a name that occurs once, found tensor 0 and tensor 3"],
        ),
        named("a tensor without a name", "", &["tensor ''", "name: expected 1 to 63 bytes, found 0 bytes"]),
        named("a name of 64 bytes", &"n".repeat(64), &["tensor 'nnnn", "name: expected 1 to 63 bytes, found 64 bytes"]),
        named(
            "a name of 60000 bytes",
            &"n".repeat(60_000),
            &["nnn…'", "name: expected 1 to 63 bytes, found 60000 bytes"],
        ),
        spoilt(
            "a name that is no UTF-8",
            |b, m| b[m.tensors[1] + 10] = 0xfe,
            &["name: expected UTF-8, found fe (\".\") at byte 2 of the name"],
        ),
        length(
            "a name of 2^64 - 1 bytes",
            u64::MAX,
            &["length of the name of tensor 1", "at most 65535, found 18446744073709551615"],
        ),
        length(
            "a name of 2^63 bytes",
            1 << 63,
            &["length of the name of tensor 1", "at most 65535, found 9223372036854775808"],
        ),
        length("a name beyond the end of the file", 60_000, &["name of tensor 1", "expected 60000 bytes, found"]),
    ]
}

fn shapes() -> Vec<Damage> {
    let count = |name: &str, count: u32, found: &str| {
        let says = ["dimension count of tensor 0", "expected 1 to 4, found", found];
        spoilt(name, |b, m| put(b, m.dims[0], &count.to_le_bytes()), &says)
    };
    let product = "dimensions: expected a product of at most 9223372036854775807, found [";
    let size = "dimensions: expected a size below 2^64 bytes, found [";
    vec![
        with("no dimensions", &[], F32, &["dimension count: expected 1 to 4, found 0"]),
        with("5 dimensions", &[8, 1, 1, 1, 1], F32, &["dimension count: expected 1 to 4, found 5"]),
        with("16 dimensions", &[1; 16], F32, &["dimension count: expected 1 to 4, found 16"]),
        count("17 dimensions", 17, "found 17"),
        count("a million dimensions", 1_000_000, "found 1000000"),
        count("2^32 - 1 dimensions", u32::MAX, "found 4294967295"),
        with("a dimension of 0", &[8, 0], F32, &["dimensions: expected each at least 1, found [8, 0]"]),
        with("a first dimension of 0", &[0, 8], Q8_0, &["dimensions: expected each at least 1, found [0, 8]"]),
        with("a product of 2^64", &[1 << 32, 1 << 32], F32, &[product, "[4294967296, 4294967296]"]),
        with("a product of 2^256", &[1 << 63; 4], F32, &[product, "[9223372036854775808, 9223372036854775808, "]),
        with("a dimension of 2^64 - 1", &[u64::MAX], F32, &[product, "[18446744073709551615]"]),
        with("a dimension of 2^63", &[1 << 63], F32, &[product, "[9223372036854775808]"]),
        with("more bytes than 2^64", &[i64::MAX as u64], F32, &[size, "[9223372036854775807]"]),
        with(
            "an end beyond 2^64",
            &[(1 << 62) - 8],
            F32,
            &["data: expected an end below 2^64, found 18446744073709551584 bytes from"],
        ),
        with("data of 4 TiB", &[1 << 40], F32, &["data: expected data up to byte 4398", "found a file of"]),
        with(
            "half a block",
            &[33],
            Q8_0,
            &["row length: expected a multiple of 32, the block length of Q8_0, found 33"],
        ),
        with(
            "half a block in each row",
            &[128, 2],
            TQ2_0,
            &["row length: expected a multiple of 256, the block length of TQ2_0, found 128"],
        ),
    ]
}

fn offsets() -> Vec<Damage> {
    let offset = |name: &str, tensor: usize, offset: u64, says: &[&str]| {
        spoilt(name, |b, m| put(b, m.offsets[tensor], &offset.to_le_bytes()), says)
    };
    let (proj, second) = ("tensor 'proj.weight'", "data offset: expected 32, where the previous tensor ends, found");
    let aligned = "data offset: expected a multiple of the alignment 32, found";
    vec![
        offset("an offset that is not aligned", 1, 33, &[proj, aligned, "found 33"]),
        offset("an offset of 2^64 - 1", 1, u64::MAX, &[proj, aligned, "found 18446744073709551615"]),
        offset("a gap between tensors", 1, 64, &["1 problem in", proj, second, "found 64"]),
        offset("tensors that overlap", 1, 0, &["1 problem in", proj, second, "found 0"]),
        offset(
            "tensors that overlap in part",
            2,
            544,
            &["tensor 'unused.weight'", "expected 576, where the previous tensor ends, found 544"],
        ),
        offset(
            "an offset in the middle of the file",
            0,
            32,
            &["tensor 'norm.weight'", "expected 0, where the first tensor starts, found 32"],
        ),
        offset("an offset beyond the end of the file", 1, 1 << 40, &[proj, second, "found 1099511627776"]),
        offset("an offset of 2^63", 1, 1 << 63, &[proj, second, "found 9223372036854775808"]),
        offset(
            "the last aligned offset",
            1,
            u64::MAX - 31,
            &[proj, second, "found 18446744073709551584", "data: expected data up to byte 18446744073709551615"],
        ),
        Damage::new(
            "tensors in another order than their data",
            {
                let (mut bytes, marks) = small().to_bytes_with_marks();
                put(&mut bytes, marks.offsets[0], &32_u64.to_le_bytes());
                put(&mut bytes, marks.offsets[1], &0_u64.to_le_bytes());
                bytes
            },
            &["2 problems in", "'norm.weight'", "where the first tensor starts, found 32", proj, "found 0"],
        ),
    ]
}

/// Ids that no file may have.
pub fn types() -> Vec<Damage> {
    let withdrawn = [
        (4, "Q4_2"),
        (5, "Q4_3"),
        (31, "Q4_0_4_4"),
        (32, "Q4_0_4_8"),
        (33, "Q4_0_8_8"),
        (36, "IQ4_NL_4_4"),
        (37, "IQ4_NL_4_8"),
        (38, "IQ4_NL_8_8"),
    ];
    let expected = "type: expected a known ggml type id, found";
    let mut all: Vec<Damage> = withdrawn
        .map(|(id, name)| {
            let found = format!("{id} ({name}, which was withdrawn)");
            with(&format!("the withdrawn type {name}"), &[256], id, &[expected, &found])
        })
        .into();
    all.extend(
        [43, 77, 255, 1 << 16, u32::MAX]
            .map(|id| with(&format!("type {id}"), &[256], id, &[expected, &format!("found {id}")])),
    );
    all
}

pub fn cuts() -> Vec<Damage> {
    let data = |name: &str, at: fn(&Marks) -> usize, says: &[&str]| {
        let end = small().to_bytes().len();
        cut(name, at, &[&[format!("data: expected data up to byte {end}, found a file of").as_str()], says].concat())
    };
    vec![
        cut("the place before the directory", |m| m.directory, &["name of tensor 0", "expected 8 bytes, found 0"]),
        cut("the length of a name", |m| m.tensors[2] + 4, &["name of tensor 2", "expected 8 bytes, found 4"]),
        cut("a name", |m| m.tensors[1] + 9, &["name of tensor 1", "expected 11 bytes, found 1"]),
        cut("a dimension count", |m| m.dims[1] + 2, &["dimension count of tensor 1", "expected 4 bytes, found 2"]),
        cut("the dimensions", |m| m.dims[1] + 6, &["dimensions of tensor 1", "expected 8 bytes, found 2"]),
        cut("a type", |m| m.tensors[1] - 10, &["type of tensor 0", "expected 4 bytes, found 2"]),
        cut("an offset", |m| m.tensors[1] - 4, &["data offset of tensor 0", "expected 8 bytes, found 4"]),
        data(
            "the padding before the data",
            |m| m.dims[2] + 32,
            &["tensor 'norm.weight'", "leaves 3 of the tensors incomplete"],
        ),
        data("the place before the data", |m| m.data, &["tensor 'norm.weight'", "leaves 3 of the tensors incomplete"]),
        data(
            "the first tensor's data",
            |m| m.data + 31,
            &["tensor 'norm.weight'", "leaves 3 of the tensors incomplete"],
        ),
        data(
            "the second tensor's data",
            |m| m.data + 33,
            &["tensor 'proj.weight'", "leaves 2 of the tensors incomplete"],
        ),
        data(
            "the last tensor's data",
            |m| m.data + 577,
            &["tensor 'unused.weight'", "leaves 1 of the tensors incomplete"],
        ),
    ]
}
