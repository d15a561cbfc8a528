//! Damaged files, in tables: what was done to a file, and what the error has to say.

mod container;
mod directory;
mod metadata;
mod model;
mod text;

use crate::gguf_writer::{GgufWriter, Marks};
pub use text::vocabulary;

/// Type ids of ggml.
const F32: u32 = 0;
const Q8_0: u32 = 8;
const TQ2_0: u32 = 35;

/// A file that has to be refused.
pub struct Damage {
    pub name: String,
    pub file: Vec<u8>,
    /// Parts of the message: what is wrong, what was expected, what was found.
    pub says: Vec<String>,
}

impl Damage {
    fn new(name: impl Into<String>, file: Vec<u8>, says: &[&str]) -> Damage {
        Damage { name: name.into(), file, says: says.iter().map(|part| (*part).to_owned()).collect() }
    }

    fn says(self, says: &[&str]) -> Damage {
        Damage::new(self.name, self.file, says)
    }
}

/// All of them.
pub fn damages() -> Vec<Damage> {
    let mut all = Vec::new();
    for part in [
        container::damages(),
        container::cuts(),
        metadata::damages(),
        metadata::cuts(),
        directory::damages(),
        directory::types(),
        directory::cuts(),
        text::damages(),
        model::keys(),
        model::tensors(),
        model::wrong_types(),
        model::missing_tensors(),
    ] {
        all.extend(part);
    }
    all
}

/// Every value type, and tensors of a plain, a quantised and an unsupported type. All data ends on the alignment, so
/// that no cut of the file leaves it complete.
pub fn small() -> GgufWriter {
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

/// The small file after a change to its bytes.
fn spoilt(name: &str, spoil: impl FnOnce(&mut Vec<u8>, &Marks), says: &[&str]) -> Damage {
    let (mut bytes, marks) = small().to_bytes_with_marks();
    spoil(&mut bytes, &marks);
    Damage::new(name, bytes, says)
}

/// The beginning of the small file.
fn cut(name: &str, at: impl FnOnce(&Marks) -> usize, says: &[&str]) -> Damage {
    spoilt(&format!("cut in {name}"), |bytes, marks| bytes.truncate(at(marks)), says)
}

fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    bytes[at..at + value.len()].copy_from_slice(value);
}
