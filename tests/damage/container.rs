//! What no GGUF file is, and damages of the first 24 bytes.

use super::{Damage, cut, put, small, spoilt};

/// Another file with something of its kind at the start.
fn other(name: &str, start: &[u8], says: &[&str]) -> Damage {
    let mut bytes = small().to_bytes();
    put(&mut bytes, 0, start);
    Damage::new(name, bytes, says)
}

pub fn damages() -> Vec<Damage> {
    let magic = "not a GGUF file: expected 47 47 55 46 (\"GGUF\") at byte 0, found";
    let safetensors = [&0x40_u64.to_le_bytes()[..], b"{\"a\":{\"dtype\":\"F32\""].concat();
    let lfs = b"version https://git-lfs.github.com/spec/v1\noid sha256:0123\nsize 1\n";
    vec![
        Damage::new("an empty file", Vec::new(), &[magic, "found an empty file"]),
        other("a GGML file", b"lmgg", &[magic, "6c 6d 67 67", "a file of the containers before GGUF"]),
        other("a GGJT file", b"tjgg", &[magic, "74 6a 67 67", "a file of the containers before GGUF"]),
        other("a zip archive", b"PK\x03\x04", &[magic, "50 4b 03 04", "a zip archive, as PyTorch writes"]),
        other("a safetensors file", &safetensors, &[magic, "40 00 00 00", "a safetensors file"]),
        other("a web page", b"<!DOCTYPE html>", &[magic, "3c 21 44 4f (\"<!DO\")", "a web page"]),
        Damage::new(
            "a Git LFS pointer",
            lfs.to_vec(),
            &[magic, "76 65 72 73", "a Git LFS pointer in place of the file"],
        ),
        other("a swapped magic number", b"FUGG", &[magic, "46 55 47 47 (\"FUGG\")"]),
        other("nothing but zeros", &[0; 24], &[magic, "00 00 00 00 (\"....\")"]),
        spoilt("version 0", |b, _| put(b, 4, &[0; 4]), &["expected GGUF version 2 or 3 at byte 4, found version 0"]),
        spoilt("version 1", |b, _| b[4] = 1, &["expected GGUF version 2 or 3 at byte 4, found version 1"]),
        spoilt("version 4", |b, _| b[4] = 4, &["expected GGUF version 2 or 3 at byte 4, found version 4"]),
        spoilt("version 259", |b, _| put(b, 4, &[3, 1, 0, 0]), &["version 2 or 3", "found version 259"]),
        spoilt(
            "a big-endian file",
            |b, _| put(b, 4, &3_u32.to_be_bytes()),
            &["expected a little-endian GGUF file, found big-endian version bytes 00 00 00 03"],
        ),
        spoilt(
            "a tensor count of 2^40",
            |b, _| put(b, 8, &(1_u64 << 40).to_le_bytes()),
            &["tensor count at byte 8: expected at most 131072, found 1099511627776"],
        ),
        spoilt(
            "a tensor count of 2^64 - 1",
            |b, _| put(b, 8, &[255; 8]),
            &["tensor count at byte 8: expected at most 131072, found 18446744073709551615"],
        ),
        spoilt(
            "a tensor count of 2^63",
            |b, _| put(b, 8, &(1_u64 << 63).to_le_bytes()),
            &["tensor count at byte 8: expected at most 131072, found 9223372036854775808"],
        ),
        spoilt(
            "one tensor more than there are",
            |b, _| b[8] = 4,
            &["tensor '' (entry at byte", "name: expected 1 to 63 bytes, found 0 bytes"],
        ),
        spoilt(
            "the most tensors there can be",
            |b, _| put(b, 8, &131_072_u64.to_le_bytes()),
            &[
                "tensor '' (entry at byte",
                "reading stopped there",
                "length of the name of tensor 4",
                "expected at most 65535, found",
            ],
        ),
        spoilt(
            "a pair count of 2^64 - 1",
            |b, _| put(b, 16, &[255; 8]),
            &["metadata pair count at byte 16: expected at most 65536, found 18446744073709551615"],
        ),
        spoilt(
            "a pair count of 65537",
            |b, _| put(b, 16, &65_537_u64.to_le_bytes()),
            &["metadata pair count at byte 16: expected at most 65536, found 65537"],
        ),
        spoilt(
            "one pair more than there are",
            |b, _| b[16] = 18,
            &["tensor '' (entry at byte", "name: expected 1 to 63 bytes, found 0 bytes"],
        ),
        spoilt(
            "a pair count of 60000",
            |b, _| put(b, 16, &60_000_u64.to_le_bytes()),
            &["metadata key 18", "expected a name, found an empty string"],
        ),
        spoilt(
            "one pair less than there are",
            |b, _| b[16] = 16,
            &["tensor 't.tokens'", "dimension count: expected 1 to 4, found 9"],
        ),
        spoilt("no pairs", |b, _| b[16] = 0, &["general.architecture"]),
    ]
}

pub fn cuts() -> Vec<Damage> {
    vec![
        cut("the magic number", |_| 3, &["expected 47 47 55 46", "found 47 47 55 (\"GGU\")"]),
        cut("the version", |_| 6, &["version at byte 4: expected 4 bytes, found 2 before the end of the file"]),
        cut("the tensor count", |_| 15, &["tensor count at byte 8: expected 8 bytes, found 7"]),
        cut("the pair count", |_| 20, &["metadata pair count at byte 16: expected 8 bytes, found 4"]),
        cut("the place before the pairs", |_| 24, &["metadata key 0 at byte 24: expected 8 bytes, found 0"]),
    ]
}
