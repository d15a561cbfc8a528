//! Reading weights in blocks on several threads: the bytes, errors, bounds; and sums of a model's files.

#[path = "support/gguf_writer.rs"]
mod gguf_writer;
#[path = "support/random.rs"]
#[allow(dead_code, reason = "shared with other tests")]
mod random;
#[path = "support/random_model.rs"]
mod random_model;

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bankshot::gguf::GgufFile;
use bankshot::load::pack::{Layout, pack_matrix};
use bankshot::load::{Job, LoadError, Model, Packed, Progress, ReadAt, Sources, StreamOptions, check_sums, stream};
use bankshot::model::{KvType, RowMap, TensorRef};
use bankshot::plan::{Options, Plan};
use bankshot::quant::Format;
use gguf_writer::GgufWriter;
use random_model::random_model;
use tempfile::TempDir;

const THREADS: [usize; 4] = [0, 1, 2, 5];

/// A model whose F32 matrices hold BF16 values.
fn model_bytes(arch: &str) -> Vec<u8> {
    let mut bytes = random_model(arch);
    let file = GgufFile::from_static(bytes.clone().leak()).unwrap();
    for info in file.tensors().iter().filter(|info| info.format() == Some(Format::F32) && info.dims.len() > 1) {
        let range = info.offset as usize..(info.offset + info.bytes) as usize;
        bytes[range].as_chunks_mut::<4>().0.iter_mut().for_each(|value| value[..2].fill(0));
    }
    bytes
}

fn written(folder: &TempDir, name: &str, bytes: &[u8]) -> PathBuf {
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    path
}

/// Every matrix that the model's plan has, then other rows of each of them.
fn tensors(model: &Model) -> Vec<TensorRef> {
    let options = Options::new(64, 16, KvType::F16);
    let plan = Plan::new(model.bound(), options).unwrap();
    let whole: Vec<TensorRef> = plan.cards[0].weights.clone().into_iter().map(|weight| weight.tensor).collect();
    let mapped = whole.iter().filter(|tensor| tensor.rows > 3).map(|tensor| {
        let ranges = vec![tensor.rows / 3..tensor.rows - 1, 1..2, 0..tensor.rows / 2];
        let rows = ranges.iter().map(ExactSizeIterator::len).sum();
        TensorRef { rows, rows_from: Some(RowMap { stored: tensor.rows, ranges }), ..tensor.clone() }
    });
    [&whole[..], &mapped.collect::<Vec<_>>()].concat()
}

fn matrices(tensors: &[TensorRef]) -> Vec<(&TensorRef, usize)> {
    tensors.iter().flat_map(|tensor| (0..tensor.experts.unwrap_or(1)).map(move |expert| (tensor, expert))).collect()
}

fn packed_bytes(tensor: &TensorRef) -> usize {
    Layout::of(tensor.format).matrix_bytes(tensor.rows, tensor.cols)
}

#[test]
fn streamed_matrices_are_packed_as_whole_ones_are() {
    let folder = tempfile::tempdir().unwrap();
    for arch in ["qwen35", "qwen35moe", "qwen3next", "qwen4exp"] {
        let bytes = model_bytes(arch);
        let path = written(&folder, "m.gguf", &bytes);
        let models =
            [Model::open(&path), Model::from_static(bytes.leak())].map(|model| model.unwrap().narrowed().unwrap());
        let tensors = tensors(&models[0]);
        assert!(tensors.iter().any(|tensor| tensor.format != tensor.stored_format()), "{arch}: none is narrowed");
        assert!(arch == "qwen35" || tensors.iter().any(|tensor| tensor.experts.is_some()), "{arch}: no experts");
        let matrices = matrices(&tensors);
        let expected = matrices.iter().map(|(tensor, expert)| {
            let mut packed = vec![0; packed_bytes(tensor)];
            let rows = tensor.matrix(models[0].file(), *expert);
            pack_matrix(tensor.format, tensor.rows, tensor.cols, &rows, &mut packed);
            packed
        });
        let expected: Vec<Vec<u8>> = expected.collect();
        for (model, threads) in models.iter().flat_map(|model| THREADS.map(|threads| (model, threads))) {
            for (block_bytes, in_flight_bytes) in [(1, 1), (20_000, 100_000), (4 << 20, 256 << 20)] {
                let options = StreamOptions { threads, block_bytes, in_flight_bytes };
                // Every other matrix is packed where the caller wants it.
                let mut given: Vec<Vec<u8>> = expected.iter().map(|packed| vec![0xa5; packed.len()]).collect();
                let targets = given.iter_mut().enumerate().map(|(i, packed)| (i % 2 == 0).then_some(&mut packed[..]));
                let jobs = matrices.iter().zip(targets);
                let jobs = jobs.map(|((tensor, expert), target)| Job { tensor, expert: *expert, target }).collect();
                let mut taken: Vec<Vec<(usize, Vec<u8>)>> = vec![Vec::new(); expected.len()];
                let sources = Sources::open(model.file()).unwrap();
                stream(&sources, jobs, options, |Packed { job, offset, bytes }| {
                    taken[job].push((offset, bytes.to_vec()));
                    Ok::<(), LoadError>(())
                })
                .unwrap();
                for (i, mut pieces) in taken.into_iter().enumerate() {
                    let of = format!("{arch}, {}, expert {}, {options:?}", matrices[i].0.name(), matrices[i].1);
                    pieces.sort();
                    let ends = pieces.iter().map(|(offset, bytes)| offset + bytes.len());
                    let starts: Vec<usize> = std::iter::once(0).chain(ends).collect();
                    let offsets: Vec<usize> = pieces.iter().map(|(offset, _)| *offset).collect();
                    assert_eq!(offsets, starts[..offsets.len()], "{of}: pieces side by side");
                    let found: Vec<u8> = pieces.into_iter().flat_map(|(_, bytes)| bytes).collect();
                    assert!(found == expected[i], "{of}");
                    assert!(i % 2 == 1 || given[i] == expected[i], "{of}: the target");
                }
                let stored = matrices.iter().map(|(tensor, _)| tensor.rows * tensor.stored_row_bytes());
                assert_eq!(sources.read_bytes(), stored.sum::<usize>() as u64);
            }
        }
    }
}

/// A model's bytes that counts what is asked of it, and fails at one of the reads.
struct Counted {
    bytes: &'static [u8],
    reads: AtomicU64,
    forgotten_bytes: AtomicU64,
    /// From 1; 0 for none.
    fails_at: u64,
}

impl Counted {
    fn new(bytes: &'static [u8], fails_at: u64) -> Arc<Counted> {
        Arc::new(Counted { bytes, reads: AtomicU64::new(0), forgotten_bytes: AtomicU64::new(0), fails_at })
    }

    fn reads(&self) -> u64 {
        self.reads.load(Ordering::SeqCst)
    }

    fn sources(self: &Arc<Counted>, forget: bool) -> Sources {
        Sources::new(vec![(PathBuf::from("counted.gguf"), Arc::<Counted>::clone(self))], forget)
    }
}

impl ReadAt for Counted {
    fn read_at_once(&self, _: u64, _: &mut [u8]) -> bool {
        false
    }

    fn read(&self, offset: u64, to: &mut [u8]) -> io::Result<()> {
        if self.reads.fetch_add(1, Ordering::SeqCst) + 1 == self.fails_at {
            return Err(io::Error::other("the disk is gone"));
        }
        self.bytes.read(offset, to)
    }

    fn forget(&self, _: u64, bytes: u64) {
        self.forgotten_bytes.fetch_add(bytes, Ordering::SeqCst);
    }
}

/// One matrix of 100 tiles of 2048 bytes, in the file and packed.
fn hundred_tiles() -> (&'static [u8], TensorRef) {
    let values: Vec<f32> = (0..100 * 16 * 32).map(|i| i as f32).collect();
    let bytes: &[u8] = GgufWriter::new("none").tensor_f32("tiles", &[32, 1600], &values).to_bytes().leak();
    let info = GgufFile::from_static(bytes).unwrap().tensors()[0].clone();
    (bytes, TensorRef { info, format: Format::F32, rows: 1600, cols: 32, experts: None, rows_from: None })
}

/// A tile a block.
fn tile_by_tile(threads: usize, in_flight_bytes: usize) -> StreamOptions {
    StreamOptions { threads, block_bytes: 2048, in_flight_bytes }
}

fn job(tensor: &TensorRef) -> Vec<Job<'_>> {
    vec![Job { tensor, expert: 0, target: None }]
}

#[test]
fn bytes_in_flight_are_bounded() {
    let (bytes, tensor) = hundred_tiles();
    // Threads, room in tiles, and how many are read before the first is given back: a tile each thread, the rest buffers.
    for (threads, room, ahead) in [(2, 10, 10), (5, 10, 10), (9, 10, 10), (3, 1, 2), (0, 10, 1)] {
        let source = Counted::new(bytes, 0);
        let mut taken = 0;
        stream(&source.sources(false), job(&tensor), tile_by_tile(threads, room * 2048), |_| {
            if taken == 0 {
                let begin = Instant::now();
                while source.reads() < ahead && begin.elapsed() < Duration::from_secs(60) {
                    std::thread::sleep(Duration::from_millis(1));
                }
                // Time for a read too many.
                std::thread::sleep(Duration::from_millis(30));
                assert_eq!(source.reads(), ahead, "{threads} threads, room for {room}");
            }
            assert!(source.reads() <= taken + ahead, "{} reads, {taken} taken", source.reads());
            taken += 1;
            Ok::<(), LoadError>(())
        })
        .unwrap();
        assert_eq!((taken, source.reads()), (100, 100));
    }
}

#[test]
fn what_was_read_is_forgotten_where_that_is_wanted() {
    let (bytes, tensor) = hundred_tiles();
    for (forget, expected) in [(false, 0), (true, 100 * 2048)] {
        let source = Counted::new(bytes, 0);
        stream(&source.sources(forget), job(&tensor), StreamOptions::default(), |_| Ok::<(), LoadError>(())).unwrap();
        assert_eq!(source.forgotten_bytes.load(Ordering::SeqCst), expected);
        assert_eq!(source.reads(), 1, "what lies together is read together");
    }
}

#[test]
fn a_read_that_fails_ends_the_loading() {
    let (bytes, tensor) = hundred_tiles();
    for threads in THREADS {
        let source = Counted::new(bytes, 7);
        let mut taken = 0;
        let result = stream(&source.sources(false), job(&tensor), tile_by_tile(threads, 1 << 20), |_| {
            taken += 1;
            Ok::<(), LoadError>(())
        });
        let text = result.unwrap_err().to_string();
        assert!(text.starts_with("counted.gguf: tensor tiles: cannot read 2048 bytes at offset "), "{text}");
        assert!(text.ends_with(": the disk is gone"), "{text}");
        // Each of the other threads may have been about to read.
        assert!(source.reads() <= 7 + threads as u64, "{} reads with {threads} threads", source.reads());
        assert!(taken < 7 + threads, "{taken}");
    }
}

#[derive(Debug)]
enum Stop {
    Wanted,
    #[allow(dead_code, reason = "shown when a test fails")]
    Load(LoadError),
}

impl From<LoadError> for Stop {
    fn from(error: LoadError) -> Stop {
        Stop::Load(error)
    }
}

#[test]
fn a_taker_that_fails_ends_the_loading() {
    let (bytes, tensor) = hundred_tiles();
    for threads in THREADS {
        for room in [1, 6, 12] {
            let source = Counted::new(bytes, 0);
            let run = |panics: bool| {
                let mut taken = 0;
                let result = stream(&source.sources(false), job(&tensor), tile_by_tile(threads, room * 2048), |_| {
                    taken += 1;
                    assert!(!panics, "as the test wants it");
                    if taken == 3 { Err(Stop::Wanted) } else { Ok(()) }
                });
                (taken, result)
            };
            let (taken, result) = run(false);
            assert!(matches!((taken, &result), (3, Err(Stop::Wanted))), "{taken} {result:?}");
            assert!(source.reads() <= 3 + room as u64 + threads as u64, "{} reads", source.reads());
            assert!(catch_unwind(AssertUnwindSafe(|| run(true))).is_err());
        }
    }
}

#[test]
fn a_file_cut_after_opening_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = written(&folder, "cut.gguf", hundred_tiles().0);
    let tensor = hundred_tiles().1;
    let file = GgufFile::open(&path).unwrap();
    let sources = Sources::open(&file).unwrap();
    // Within the third tile.
    let end = tensor.info.offset + 2 * 2048 + 100;
    std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(end).unwrap();
    let error = stream(&sources, job(&tensor), tile_by_tile(0, 1 << 20), |_| Ok::<(), LoadError>(())).unwrap_err();
    let expected = format!(
        "{}: tensor tiles: cannot read 2048 bytes at offset {}: expected 2048 bytes, got 100 before the file's end",
        path.display(),
        tensor.info.offset + 2 * 2048
    );
    assert_eq!(error.to_string(), expected);
    let text = sources.tensor(&tensor.info).unwrap_err().to_string();
    assert!(text.contains("expected 204800 bytes, got 4196 before the file's end"), "{text}");

    std::fs::remove_file(&path).unwrap();
    let text = Sources::open(&file).map(|_| ()).unwrap_err().to_string();
    assert!(text.starts_with(&format!("{}: cannot open the file a second time: ", path.display())), "{text}");
}

/// The path of each part of a split model, with one tensor in each.
fn split_model(folder: &TempDir) -> Vec<PathBuf> {
    let part = |i: usize| {
        let writer = GgufWriter::new("qwen35").kv_u16("split.no", i as u16).kv_u16("split.count", 3);
        let values = vec![i as f32; 32 * (16 + i)];
        let bytes = writer.kv_i32("split.tensors.count", 3).tensor_f32(&format!("t{i}"), &[32, 16 + i as u64], &values);
        written(folder, &format!("m-{:05}-of-00003.gguf", i + 1), &bytes.to_bytes())
    };
    (0..3).map(part).collect()
}

#[test]
fn parts_of_a_split_model_are_read_from_their_files() {
    let folder = tempfile::tempdir().unwrap();
    let file = GgufFile::open(&split_model(&folder)[1]).unwrap();
    let tensors: Vec<TensorRef> = file
        .tensors()
        .iter()
        .map(|info| {
            let (info, rows) = (info.clone(), info.dims[1] as usize);
            TensorRef { info, format: Format::F32, rows, cols: 32, experts: None, rows_from: None }
        })
        .collect();
    let jobs = tensors.iter().map(|tensor| Job { tensor, expert: 0, target: None }).collect();
    let mut sums = [0.0; 3];
    stream(&Sources::open(&file).unwrap(), jobs, StreamOptions::default(), |packed| {
        let values = packed.bytes.as_chunks::<4>().0.iter().map(|value| f32::from_le_bytes(*value));
        sums[packed.job] += values.sum::<f32>();
        Ok::<(), LoadError>(())
    })
    .unwrap();
    assert_eq!(sums, [0.0, 32.0 * 17.0, 2.0 * 32.0 * 18.0]);
}

/// What `sha256sum` prints of files.
fn sha256sum(arguments: &[&str], paths: &[PathBuf]) -> String {
    let output = Command::new("sha256sum").args(arguments).args(paths).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[track_caller]
fn refuse(file: &GgufFile, list: &Path, parts: &[&str]) {
    let text = check_sums(file, list, &mut |_| {}).unwrap_err().to_string();
    for part in parts {
        assert!(text.contains(part), "expected {part:?} in: {text}");
    }
}

#[test]
fn sums_of_all_files_are_compared() {
    let folder = tempfile::tempdir().unwrap();
    let mut parts = split_model(&folder);
    // Larger than a block, and not a multiple of it.
    let large = vec![0.5; 32 * 50_000];
    let bytes = GgufWriter::new("qwen35").tensor_f32("large", &[32, 50_000], &large).to_bytes();
    let whole = written(&folder, "whole.gguf", &bytes);
    let (split, single) = (GgufFile::open(&parts[0]).unwrap(), GgufFile::open(&whole).unwrap());
    parts.push(whole.clone());

    let (text, binary) = (sha256sum(&[], &parts), sha256sum(&["--binary"], &parts));
    assert!(text.contains("  /") && binary.contains(" */"), "{text}{binary}");
    let bare = text.replace(&format!("{}/", folder.path().display()), "");
    for form in [&text, &binary, &bare, &text.replace('\n', "\r\n"), text.trim_end(), &format!("{text}{bare}")] {
        let list = written(&folder, "sums", form.as_bytes());
        for file in [&split, &single] {
            let mut last = None;
            check_sums(file, &list, &mut |progress| last = Some(progress)).unwrap_or_else(|error| panic!("{error}"));
            let total = file.file_bytes();
            assert_eq!(last, Some(Progress::Sums { done: total, total }));
        }
    }

    let list = written(&folder, "sums", text.as_bytes());
    let expected: Vec<&str> = text.lines().map(|line| &line[..64]).collect();
    for i in [1, 2] {
        let mut bytes = std::fs::read(&parts[i]).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        std::fs::write(&parts[i], bytes).unwrap();
    }
    let changed = sha256sum(&[], &parts);
    let found: Vec<&str> = changed.lines().map(|line| &line[..64]).collect();
    let line = |i: usize| format!("{}: expected SHA-256 {}, found {}", parts[i].display(), expected[i], found[i]);
    refuse(&split, &list, &[&format!("not those of the list:\n  {}\n  {}", line(1), line(2))]);
    check_sums(&single, &list, &mut |_| {}).unwrap();

    std::fs::OpenOptions::new().write(true).open(&whole).unwrap().set_len(4_500_000).unwrap();
    refuse(&single, &list, &["whole.gguf: SHA-256 sum: cannot read ", "at offset 4194304", "got 305696 before"]);
}

#[test]
fn bad_lists_of_sums_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let parts = split_model(&folder);
    let file = GgufFile::open(&parts[0]).unwrap();
    let text = sha256sum(&[], &parts);
    let lines: Vec<&str> = text.lines().collect();
    let list = |text: &str| written(&folder, "sums", text.as_bytes());

    refuse(
        &file,
        &list(lines[1]),
        &["sums: expected a sum for every file", "m-00001-of-00003.gguf', '", "00003-of-00003"],
    );
    refuse(&file, &list(""), &["m-00001-of-00003.gguf", "m-00002-of-00003.gguf", "m-00003-of-00003.gguf"]);
    refuse(&file, &folder.path().join("none"), &["none: cannot read the list of sums: "]);
    refuse(&file, folder.path(), &["cannot read the list of sums: "]);
    let long = "0".repeat((1 << 20) + 1);
    refuse(&file, &list(&long), &["sums: expected a list of sums of at most 1048576 bytes, found more"]);
    let sum = &lines[1][..64];
    for bad in [
        "",
        "# sums",
        &lines[1][1..],
        &lines[1].replace("  ", " "),
        &lines[1].replace("  ", "\t"),
        &format!("g{}", &lines[1][1..]),
        sum,
        &format!("{sum}  "),
        &format!("{sum}  folder/"),
        &format!("SHA256 ({}) = {sum}", parts[1].display()),
        &format!("{}  x", "\u{e9}".repeat(32)),
    ] {
        let path = list(&format!("{}\n{bad}\n{}\n", lines[0], lines[2]));
        refuse(&file, &path, &["sums: line 2: expected 64 hexadecimal digits", "found '"]);
    }
    let other = format!("{text}{}  elsewhere/m-00002-of-00003.gguf\n", "0".repeat(64));
    refuse(&file, &list(&other), &["sums: line 4: expected one sum", "for 'm-00002-of-00003.gguf' than in line 2"]);

    let embedded = GgufFile::from_static(hundred_tiles().0).unwrap();
    refuse(&embedded, &list(&text), &["found the model that is part of the program"]);
}
