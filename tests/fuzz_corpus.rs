//! The stored corpus of the fuzz targets, through the same functions. `fuzz/README.md` says how to fuzz.

#[path = "../fuzz/targets.rs"]
mod targets;

use std::path::Path;

type Target = fn(&[u8]);

const TARGETS: [(&str, Target); 5] = [
    ("gguf_directory", targets::gguf_directory),
    ("gguf_header", targets::gguf_header),
    ("split_set", targets::split_set),
    ("template", targets::template),
    ("tokenizer", targets::tokenizer),
];
const MOST_BYTES: usize = 300_000;

/// One test, because the targets count what the whole process allocates.
#[test]
fn the_corpus_passes() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus");
    let mut folders: Vec<_> = std::fs::read_dir(&corpus).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    folders.sort();
    assert_eq!(folders, TARGETS.map(|(name, _)| name), "a folder for each target");
    let mut bytes = 0;
    for (name, target) in TARGETS {
        let mut files: Vec<_> =
            std::fs::read_dir(corpus.join(name)).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        assert!(files.iter().any(|path| path.file_name().unwrap().to_str().unwrap().starts_with("seed-")), "{name}");
        for path in files {
            println!("{}", path.display());
            let data = std::fs::read(path).unwrap();
            bytes += data.len();
            target(&data);
            // A render's thread may still be freeing its values.
            if name == "template" {
                continue;
            }
            target(&data);
            let before = targets::live_bytes();
            target(&data);
            let kept = targets::live_bytes().saturating_sub(before);
            assert!(kept == 0, "{kept} bytes are kept by a third run");
        }
    }
    assert!(bytes < MOST_BYTES, "the corpus has {bytes} bytes, at most {MOST_BYTES} are wanted");
}
