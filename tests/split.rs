//! Models split over several files: any part opens all of them, and what does not belong together is named.

#[path = "support/gguf_writer.rs"]
mod gguf_writer;

use std::path::{Path, PathBuf};
use std::process::Command;

use bankshot::gguf::{GgufError, GgufFile};
use gguf_writer::GgufWriter;
use tempfile::TempDir;

const ARCHITECTURE: &str = "general.architecture";

/// A file without `general.architecture`, which the parts behind the first do not have. The key is renamed instead of
/// left out, so that all offsets stay.
fn without_architecture(writer: &GgufWriter) -> Vec<u8> {
    let (mut bytes, marks) = writer.to_bytes_with_marks();
    bytes[marks.pairs[0] + 8..][..ARCHITECTURE.len()].copy_from_slice(b"unheard.of.in.a.part");
    bytes
}

/// The keys of a part, in the types that writers use.
fn part(no: u16, count: u16, tensors: i32) -> GgufWriter {
    GgufWriter::new("qwen35").kv_u16("split.no", no).kv_u16("split.count", count).kv_i32("split.tensors.count", tensors)
}

/// Adds tensors whose data tells them apart, the first element `first` in the first of them and one more in each other.
fn tensors(writer: GgufWriter, names: &[&str], first: f32) -> GgufWriter {
    names.iter().enumerate().fold(writer, |writer, (i, name)| {
        let values: Vec<f32> = (0..8).map(|j| first + i as f32 + j as f32 / 8.0).collect();
        writer.tensor_f32(name, &[8], &values)
    })
}

/// Three parts: metadata alone, two tensors, three tensors. The alignment of the first is its own.
fn three() -> [GgufWriter; 3] {
    [
        part(0, 3, 5).alignment(64).kv_str("general.name", "whole"),
        tensors(part(1, 3, 5), &["a.weight", "b.weight"], 100.0),
        tensors(part(2, 3, 5), &["c.weight", "d.weight", "e.weight"], 200.0),
    ]
}

struct Set {
    folder: TempDir,
}

impl Set {
    /// Writes parts under the names of their places.
    fn new(parts: &[GgufWriter]) -> Set {
        let set = Set { folder: tempfile::tempdir().unwrap() };
        for (i, part) in parts.iter().enumerate() {
            set.put(&name(i, parts.len()), i, part);
        }
        set
    }

    fn put(&self, name: &str, i: usize, part: &GgufWriter) {
        let bytes = if i == 0 { part.to_bytes() } else { without_architecture(part) };
        std::fs::write(self.at(name), bytes).unwrap();
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn of_three(&self, i: usize) -> PathBuf {
        self.at(&name(i, 3))
    }

    /// Expects an error with all `parts`, whichever of the three files is opened.
    #[track_caller]
    fn reject_each(&self, parts: &[&str]) {
        for i in 0..3 {
            reject(&self.of_three(i), parts);
        }
    }
}

fn name(i: usize, count: usize) -> String {
    format!("m-{:05}-of-{count:05}.gguf", i + 1)
}

#[track_caller]
fn reject(path: &Path, parts: &[&str]) -> GgufError {
    let error = GgufFile::open(path).map(|_| ()).unwrap_err();
    let text = error.to_string();
    for part in parts {
        assert!(text.contains(part), "{}: expected {part:?} in: {text}", path.display());
    }
    error
}

#[test]
fn any_part_opens_all() {
    let set = Set::new(&three());
    let first = GgufFile::open(&set.of_three(0)).unwrap();
    for i in 0..3 {
        let file = GgufFile::open(&set.of_three(i)).unwrap();
        assert_eq!(file.path(), set.of_three(i));
        assert_eq!((file.tensors(), file.alignment()), (first.tensors(), 64));
        assert_eq!(file.metadata().architecture().unwrap(), "qwen35");
        assert_eq!(file.metadata().str("general.name").unwrap(), Some("whole"));
        let parts: Vec<_> = file.parts().iter().map(|part| (part.path().to_owned(), part.file_bytes())).collect();
        let size = |i| std::fs::metadata(set.of_three(i)).unwrap().len();
        assert_eq!(parts, [0, 1, 2].map(|i| (set.of_three(i), size(i))));
        assert_eq!(file.file_bytes(), size(0) + size(1) + size(2));
        let order: Vec<_> = file.tensors().iter().map(|tensor| (tensor.name.as_str(), tensor.part)).collect();
        assert_eq!(order, [("a.weight", 1), ("b.weight", 1), ("c.weight", 2), ("d.weight", 2), ("e.weight", 2)]);
        for (name, value) in [("a.weight", 100_f32), ("b.weight", 101.0), ("c.weight", 200.0), ("e.weight", 202.0)] {
            let data = file.data(file.tensor(name).unwrap());
            assert_eq!((data.len(), &data[..4]), (32, value.to_le_bytes().as_slice()), "{name}");
        }
        let mut foreign = file.tensors()[0].clone();
        foreign.part = 3;
        assert_eq!(file.data(&foreign), [0; 0]);
    }
}

#[test]
fn every_integer_type_and_key_order_will_do() {
    let keys =
        |no: i64| GgufWriter::new("a").kv_i64("split.tensors.count", 2).kv_u32("split.count", 2).kv_i64("split.no", no);
    let parts = [tensors(keys(0), &["a"], 0.0), tensors(keys(1), &["b"], 1.0)];
    let set = Set::new(&parts);
    assert_eq!(GgufFile::open(&set.at(&name(1, 2))).unwrap().tensors().len(), 2);
}

#[test]
fn missing_parts_are_all_named() {
    let five: Vec<GgufWriter> = (0..5).map(|i| part(i, 5, 0)).collect();
    let set = Set::new(&five);
    let (gone, given) = ([1, 2, 4].map(|i| name(i, 5)), set.at(&name(3, 5)));
    for name in &gone {
        std::fs::remove_file(set.at(name)).unwrap();
    }
    let list = format!("expected all 5 parts of the model in one folder, found no '{}'", gone.join("', '"));
    let error = reject(&given, &[&name(3, 5), &list]);
    assert!(matches!(error, GgufError::MissingParts { count: 5, missing, .. } if missing.len() == 3));
    // Also where the part asked for is one of them.
    reject(&set.at(&name(4, 5)), &[&list]);
    reject(&set.at("other-00001-of-00005.gguf"), &["expected a readable GGUF file, found: No such file"]);

    std::fs::remove_file(set.at(&name(0, 5))).unwrap();
    reject(&given, &[&name(0, 5), &name(4, 5)]);
    std::fs::rename(&given, set.at("m-00004-of-99999.gguf")).unwrap();
    reject(&set.at("m-00004-of-99999.gguf"), &["'split.count': expected 99999 for part 4 of 99999, found 5"]);
}

#[test]
fn many_missing_parts_are_counted() {
    let set = Set::new(&[]);
    set.put("m-00002-of-09999.gguf", 1, &part(1, 9999, 0));
    reject(&set.at("m-00002-of-09999.gguf"), &["found no 'm-00001-of-09999.gguf', 'm-00003-", " and 9898 more"]);
}

#[test]
fn swapped_parts_are_named() {
    let [a, b, c] = three();
    let (second, third) = (name(1, 3), name(2, 3));
    let set = Set::new(&[a.clone(), c, b]);
    set.reject_each(&[
        "2 problems among the parts",
        &format!("{second}': metadata key 'split.no': expected 1 for part 2 of 3, found 2"),
        &format!("{third}': metadata key 'split.no': expected 2 for part 3 of 3, found 1"),
    ]);

    let [_, b, _] = three();
    let set = Set::new(&[b.clone(), b.clone(), a]);
    set.reject_each(&["expected 0 for part 1 of 3, found 1", "expected 2 for part 3 of 3, found 0"]);
}

#[test]
fn foreign_parts_are_named() {
    let [a, b, c] = three();
    let second = name(1, 3);
    let expected = |what: &str| format!("{second}': metadata key {what}");

    let other_model = tensors(part(1, 3, 9), &["a.weight", "b.weight"], 0.0);
    let total = expected("'split.tensors.count': expected 5 as in '");
    Set::new(&[a.clone(), other_model, c.clone()]).reject_each(&[&total, &name(0, 3), "', found 9"]);

    let other_count = tensors(part(1, 4, 5), &["a.weight", "b.weight"], 0.0);
    let set = Set::new(&[a.clone(), other_count, c.clone()]);
    set.reject_each(&[&expected("'split.count': expected 3 for part 2 of 3, found 4")]);

    let whole = tensors(GgufWriter::new("x").kv_u8("y", 1), &["a.weight", "b.weight"], 0.0);
    let set = Set::new(&[a.clone(), whole, c.clone()]);
    reject(&set.of_three(2), &[&expected("'split.count': expected 3 for part 2 of 3, found no such key")]);
    // By itself it is a model file with an unfortunate name.
    assert_eq!(GgufFile::open(&set.of_three(1)).unwrap().parts().len(), 1);

    let set = Set::new(&[a.clone(), b, c.clone()]);
    let other = GgufWriter::new("llama").kv_u8("split.no", 1).kv_u8("split.count", 3).kv_u8("split.tensors.count", 5);
    let other = tensors(other, &["a.weight", "b.weight"], 0.0);
    std::fs::write(set.of_three(1), other.to_bytes()).unwrap();
    set.reject_each(&[&expected("'general.architecture': expected \"qwen35\" as in '"), "found \"llama\""]);

    std::fs::write(set.of_three(1), "# A model card\n").unwrap();
    reject(&set.of_three(0), &[&second, "not a GGUF file"]);
    std::fs::remove_file(set.of_three(1)).unwrap();
    std::fs::create_dir(set.of_three(1)).unwrap();
    reject(&set.of_three(0), &[&second, "expected a GGUF file, found a directory"]);
}

#[test]
fn names_in_two_parts_are_named_with_both() {
    let [a, b, _] = three();
    let c = tensors(part(2, 3, 5), &["c.weight", "a.weight", "e.weight"], 200.0);
    let set = Set::new(&[a.clone(), b, c]);
    let twice = "tensor 'a.weight': expected a name that occurs in one part, found it in '";
    set.reject_each(&[&format!("{}': {twice}", name(2, 3)), &format!("{}' too", name(1, 3))]);

    let names: Vec<String> = (0..30).map(|i| format!("t.{i}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let set = Set::new(&[0, 1].map(|i| tensors(part(i, 2, 60), &names, 0.0)));
    reject(&set.at(&name(0, 2)), &["30 problems among the parts", "'t.0'", "'t.19'", "and 10 more"]);
}

#[test]
fn the_count_of_tensors_is_checked() {
    let parts = [(0, "a"), (1, "b")].map(|(i, name)| tensors(part(i, 2, 3), &[name], 0.0));
    let expected = "'split.tensors.count': expected 2, the tensors in the model's parts, found 3";
    reject(&Set::new(&parts).at(&name(1, 2)), &[&name(0, 2), expected]);
}

#[test]
fn keys_that_lack_or_are_no_counts_are_named() {
    let keys = ["split.no", "split.count", "split.tensors.count"];
    for missing in keys {
        let mut first = GgufWriter::new("a");
        for key in keys.into_iter().filter(|key| *key != missing) {
            first = first.kv_u16(key, u16::from(key == "split.count"));
        }
        let expected =
            format!("'{missing}': expected an integer, as in every part of a split model, found no such key");
        let set = Set::new(&[first]);
        reject(&set.at(&name(0, 1)), &[&expected]);
    }
    let set = Set::new(&[part(0, 1, -1)]);
    reject(&set.at(&name(0, 1)), &["'split.tensors.count': expected an integer of at least 0, found i32 -1"]);
    let text = GgufWriter::new("a").kv_str("split.no", "0").kv_u16("split.count", 1).kv_u16("split.tensors.count", 0);
    reject(&Set::new(&[text]).at(&name(0, 1)), &["'split.no': expected an integer of at least 0, found string"]);
    let huge = GgufWriter::new("a")
        .kv_u64("split.no", u64::MAX)
        .kv_u64("split.count", u64::MAX)
        .kv_u64("split.tensors.count", 0);
    let set = Set::new(&[huge]);
    reject(&set.at(&name(0, 1)), &["'split.count': expected 1 for part 1 of 1, found 18446744073709551615"]);
    std::fs::rename(set.at(&name(0, 1)), set.at("m.gguf")).unwrap();
    reject(&set.at("m.gguf"), &["as this is part 18446744073709551615 of 18446744073709551615"]);
}

#[test]
fn cut_parts_are_named() {
    let set = Set::new(&three());
    let bytes = std::fs::read(set.of_three(2)).unwrap();
    for length in [bytes.len() - 1, bytes.len() / 2, 30, 0] {
        std::fs::write(set.of_three(2), &bytes[..length]).unwrap();
        set.reject_each(&[&name(2, 3), "expected", "found"]);
    }
    std::fs::write(set.of_three(2), &bytes[..bytes.len() - 1]).unwrap();
    set.reject_each(&["tensor 'e.weight'", "which leaves 1 of the tensors incomplete"]);
}

#[test]
fn names_have_to_follow_the_pattern() {
    let [_, second, _] = three();
    let set = Set::new(&three());
    for name in [
        "model.gguf",
        "m-2-of-3.gguf",
        "m-00002-of-00003",
        "m-00002-of-00003.GGUF",
        "m-00002-of-00003.gguf.gguf",
        "m-00000-of-00003.gguf",
        "m-00004-of-00003.gguf",
        "m-0000x-of-00003.gguf",
        "m-+0002-of-00003.gguf",
        "m_00002-of-00003.gguf",
        "00002-of-00003.gguf",
        "é0002-of-00003.gguf",
    ] {
        set.put(name, 1, &second);
        let found = format!("found '{name}'");
        reject(&set.at(name), &["expected the name '<prefix>-00002-of-00003.gguf', as this is part 2 of 3", &found]);
    }
    let embedded = GgufFile::from_static(without_architecture(&second).leak()).map(|_| ()).unwrap_err();
    assert!(embedded.to_string().contains("'<prefix>-00002-of-00003.gguf'"), "{embedded}");

    set.put("m-00002-of-00004.gguf", 1, &second);
    reject(&set.at("m-00002-of-00004.gguf"), &["'split.count': expected 4 for part 2 of 4, found 3"]);
    // The prefix is no part of what is checked.
    for (i, part) in three().iter().enumerate() {
        set.put(&format!("-{}", &name(i, 3)[2..]), i, part);
        set.put(&format!("m-00001-of-00003-{}", &name(i, 3)[2..]), i, part);
    }
    for name in ["-00003-of-00003.gguf", "m-00001-of-00003-00003-of-00003.gguf"] {
        assert_eq!(GgufFile::open(&set.at(name)).unwrap().tensors().len(), 5, "{name}");
    }
}

#[test]
fn a_single_part_and_a_merged_file_open() {
    let single = tensors(part(0, 1, 1), &["a.weight"], 0.0);
    let set = Set::new(std::slice::from_ref(&single));
    set.put("any.gguf", 0, &single);
    for name in [name(0, 1).as_str(), "any.gguf"] {
        let file = GgufFile::open(&set.at(name)).unwrap();
        assert_eq!((file.tensors().len(), file.parts().len(), file.path()), (1, 1, set.at(name).as_path()));
    }
    assert!(GgufFile::from_static(single.to_bytes().leak()).is_ok());
    set.put("wrong.gguf", 0, &part(1, 1, 0));
    reject(&set.at("wrong.gguf"), &["'split.no': expected 0 for part 1 of 1, found 1"]);
    set.put("wrong.gguf", 0, &part(0, 1, 2));
    reject(&set.at("wrong.gguf"), &["'split.tensors.count': expected 0, the tensors in the model's parts, found 2"]);
    // Merging leaves the keys of the first part with a count of 0.
    set.put("merged.gguf", 0, &tensors(part(0, 0, 1), &["a.weight"], 0.0));
    assert_eq!(GgufFile::open(&set.at("merged.gguf")).unwrap().tensors().len(), 1);
}

#[test]
fn flipped_bytes_never_panic() {
    let set = Set::new(&three());
    let originals = [0, 1, 2].map(|i| std::fs::read(set.of_three(i)).unwrap());
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 16) as usize % below
    };
    let mut refused = 0;
    for _ in 0..1500 {
        let victim = random(3);
        let mut damaged = originals[victim].clone();
        let at = random(damaged.len());
        damaged[at] = [random(256) as u8, 0, 0xff, damaged[at] ^ (1 << random(8))][random(4)];
        std::fs::write(set.of_three(victim), damaged).unwrap();
        match GgufFile::open(&set.of_three(random(3))) {
            Ok(file) => assert!(file.tensors().iter().all(|tensor| file.data(tensor).len() as u64 == tensor.bytes)),
            Err(error) => {
                refused += 1;
                assert!(error.to_string().contains("found"), "{error}");
            }
        }
        std::fs::write(set.of_three(victim), &originals[victim]).unwrap();
    }
    assert!(refused > 300, "{refused}");
}

#[test]
fn inspect_lists_the_parts() {
    let set = Set::new(&three());
    let run = |args: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_bankshot"))
            .arg("inspect")
            .arg(set.of_three(1))
            .args(args)
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let (text, json) = (run(&[]), run(&["--json"]));
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    for i in 0..3 {
        let (path, bytes) = (set.of_three(i), std::fs::metadata(set.of_three(i)).unwrap().len());
        assert!(text.contains(&format!("part   {} ({bytes} bytes)", path.display())), "{text}");
        assert_eq!(json["parts"][i], serde_json::json!({ "path": path.to_str().unwrap(), "bytes": bytes }));
    }
}
