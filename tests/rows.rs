//! Tables that stay in their file: the cache, reads side by side, errors of one request, other files, n-grams at borders.

#[path = "support/device.rs"]
mod device_choice;
#[path = "support/gguf_writer.rs"]
mod gguf_writer;
#[path = "support/random.rs"]
#[allow(dead_code, reason = "shared with other tests")]
mod random;
#[path = "support/random_model.rs"]
mod random_model;

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use bankshot::cli::DEMO_MODEL;
use bankshot::device::Card;
use bankshot::exec::{Engine, EngineError};
use bankshot::load::{LoadError, Model, ReadAt, RowCounters, RowTable, TableOptions, Tables};
use bankshot::model::{Bound, KvType};
use bankshot::oracle::OracleSession;
use bankshot::plan::{Inventory, Options, Plan, Split};
use bankshot::quant::Format;
use device_choice::test_device;

const TABLE: &str = "per_layer_token_embd.weight";
/// What the cache counts beside a row's bytes.
const INDEX_BYTES: u64 = 48;

fn demo() -> Arc<Model> {
    Arc::new(Model::from_static(DEMO_MODEL).unwrap())
}

fn engine_of(model: Arc<Model>, tables: Tables, chunk: usize) -> Engine {
    let cards = vec![Card::open(test_device().index).unwrap()];
    let plan = Engine::plan_for(&model, &cards, Options::new(64, chunk, KvType::F16)).unwrap();
    Engine::open(model, tables, cards, plan, None, &mut |_| {}).unwrap()
}

fn tables(model: &Model, options: &TableOptions) -> Tables {
    Tables::open(model.file(), model.bound(), options).unwrap()
}

fn all_bits(engine: &mut Engine, ids: &[u32]) -> Vec<Vec<u32>> {
    let mut rows = Vec::new();
    engine.feed_each(ids, |_, logits| rows.push(logits.iter().map(|logit| logit.to_bits()).collect())).unwrap();
    rows
}

/// A table of the demo model read from its own bytes through `source`.
fn demo_rows(source: Arc<dyn ReadAt>, cache_bytes: u64) -> RowTable {
    let model = demo();
    let table = model.bound().ple_table.as_ref().unwrap();
    RowTable::new(source, Path::new("table.gguf"), table.info.offset, table, cache_bytes)
}

fn decode(table: &mut RowTable, rows: &[u64]) -> Vec<f32> {
    let mut out = vec![f32::NAN; rows.len() * demo().bound().ple_table.as_ref().unwrap().cols];
    table.decode(rows, &mut out).unwrap();
    out
}

#[test]
fn rows_are_the_files_whatever_the_cache_holds() {
    let model = demo();
    let table = model.bound().ple_table.as_ref().unwrap();
    let (cols, row_bytes) = (table.cols, table.row_bytes() as u64);
    let data = model.file().data(&table.info);
    let mut random = random::Random(3);
    let requests: Vec<Vec<u64>> =
        (0..40).map(|_| (0..random.next() % 70).map(|_| random.next() % 300).collect()).collect();
    // None, one row, some, all.
    for cache_bytes in [0, row_bytes + INDEX_BYTES, 40 * (row_bytes + INDEX_BYTES), u64::MAX] {
        let mut rows = demo_rows(Arc::new(DEMO_MODEL), cache_bytes);
        let mut asked = 0;
        for request in &requests {
            let decoded = decode(&mut rows, request);
            for (row, values) in request.iter().zip(decoded.chunks_exact(cols)) {
                let mut expected = vec![0.0; cols];
                let at = *row as usize * row_bytes as usize;
                let bytes = &data[at..at + row_bytes as usize];
                bankshot::quant::decode_row(table.format, bytes, &mut expected).unwrap();
                assert_eq!(values, expected, "row {row}, cache of {cache_bytes} bytes");
            }
            asked += request.len() as u64;
        }
        let RowCounters { rows, hits, reads, waits, read_bytes } = rows.counters();
        assert_eq!((rows, hits + reads, waits, read_bytes), (asked, asked, 0, reads * row_bytes));
        let mut distinct: Vec<u64> = requests.concat();
        distinct.sort_unstable();
        distinct.dedup();
        match cache_bytes {
            u64::MAX => assert_eq!(reads, distinct.len() as u64, "a row is read once"),
            0 => assert!(reads > 3 * distinct.len() as u64, "nothing is kept"),
            _ => assert!(reads > distinct.len() as u64, "not all is kept"),
        }
    }
}

#[test]
fn rows_in_use_outlive_rows_that_are_not() {
    let row_bytes = demo().bound().ple_table.as_ref().unwrap().row_bytes() as u64;
    let mut rows = demo_rows(Arc::new(DEMO_MODEL), 4 * (row_bytes + INDEX_BYTES));
    // Row 1 is asked for again between rows that are used once.
    for once in 10..40 {
        decode(&mut rows, &[1]);
        decode(&mut rows, &[once]);
    }
    assert_eq!(rows.counters().reads, 31);
}

/// Answers only when several readers wait.
struct Together {
    waiting: Mutex<usize>,
    more: Condvar,
}

impl ReadAt for Together {
    fn read_at_once(&self, _: u64, _: &mut [u8]) -> bool {
        false
    }

    fn read(&self, offset: u64, to: &mut [u8]) -> io::Result<()> {
        let mut waiting = self.waiting.lock().unwrap();
        *waiting += 1;
        self.more.notify_all();
        let (waiting, late) =
            self.more.wait_timeout_while(waiting, Duration::from_secs(20), |waiting| *waiting < 16).unwrap();
        drop(waiting);
        if late.timed_out() { Err(io::Error::other("no other reader came")) } else { DEMO_MODEL.read(offset, to) }
    }
}

#[test]
fn rows_that_need_the_disk_are_read_side_by_side() {
    let source = Arc::new(Together { waiting: Mutex::new(0), more: Condvar::new() });
    let asked: Vec<u64> = (0..40).collect();
    let mut rows = demo_rows(source.clone(), 0);
    assert_eq!(decode(&mut rows, &asked), decode(&mut demo_rows(Arc::new(DEMO_MODEL), 0), &asked));
    assert_eq!(rows.counters().waits, 40);
}

/// Fails the reads that it is told to.
#[derive(Default)]
struct Failing {
    reads: AtomicUsize,
    fails_from: AtomicU64,
}

impl ReadAt for Failing {
    fn read_at_once(&self, _: u64, _: &mut [u8]) -> bool {
        false
    }

    fn read(&self, offset: u64, to: &mut [u8]) -> io::Result<()> {
        let reads = self.reads.fetch_add(1, Ordering::SeqCst) as u64;
        if reads >= self.fails_from.load(Ordering::SeqCst) {
            return Err(io::Error::other("the disk is gone"));
        }
        DEMO_MODEL.read(offset, to)
    }
}

#[test]
fn a_failing_read_ends_its_request_and_nothing_else() {
    let model = demo();
    let table = model.bound().ple_table.as_ref().unwrap();
    let ids: Vec<u32> = (0..40).map(|i| 40 + i * i % 900).collect();
    let expected = all_bits(&mut engine_of(demo(), tables(&model, &TableOptions::default()), 16), &ids);

    let source = Arc::new(Failing::default());
    let ngrams = demo_rows(source.clone(), 0);
    let mut engine = engine_of(demo(), Tables { ngrams: Some(ngrams), ..tables(&model, &TableOptions::default()) }, 16);
    source.fails_from.store(u64::MAX, Ordering::SeqCst);
    engine.feed(&ids[..16]).unwrap();
    let reads_of_a_chunk = engine.ngram_counters().unwrap().reads;
    engine.reset().unwrap();
    // Nothing can be read: nothing is appended.
    source.fails_from.store(0, Ordering::SeqCst);
    let error = engine.feed(&ids).unwrap_err();
    let EngineError::Row(row) = &error else { panic!("{error}") };
    assert_eq!(row.offset, table.info.offset + row.row * table.row_bytes() as u64);
    let bytes = table.row_bytes();
    let expected_text = format!(
        "table.gguf: row {} of tensor {TABLE}: cannot read {bytes} bytes at offset {}: the disk is gone",
        row.row, row.offset
    );
    assert_eq!(error.to_string(), expected_text);
    assert_eq!(engine.position(), 0);
    // The second chunk's rows cannot be read: the first chunk is in the sequence.
    source.reads.store(0, Ordering::SeqCst);
    source.fails_from.store(reads_of_a_chunk + 3, Ordering::SeqCst);
    let before = engine.ngram_counters().unwrap();
    assert!(matches!(engine.feed(&ids), Err(EngineError::Row(_))));
    // What failed is not counted.
    assert_eq!(engine.ngram_counters().unwrap().reads, before.reads + reads_of_a_chunk);
    assert_eq!(engine.ids(), &ids[..16]);
    // The disk is back, and the sequence goes on where it was.
    source.fails_from.store(u64::MAX, Ordering::SeqCst);
    assert_eq!(all_bits(&mut engine, &ids[16..]), expected[16..]);
}

#[test]
fn ngrams_are_the_references_at_every_border() {
    // One of the first two tokens, tokens behind an end of sequence, two of those in a row, and one at a chunk's border.
    let eos = 7;
    let model = Arc::new(Model::from_static(random_model::random_model("qwen4exp").leak()).unwrap());
    let ids: Vec<u32> = (0..33).map(|i| if [0, 5, 6, 15, 16, 24].contains(&i) { eos } else { 3 * i + 1 }).collect();
    let without: Vec<u32> = ids.iter().map(|id| if *id == eos { 9 } else { *id }).collect();
    for ids in [&ids, &without, &ids[1..].to_vec()] {
        let mut oracle = OracleSession::new(model.file(), model.bound(), KvType::F16);
        let expected: Vec<Vec<u32>> =
            ids.iter().map(|id| oracle.step(*id).iter().map(|logit| logit.to_bits()).collect()).collect();
        let row_bytes = model.bound().ple_table.as_ref().unwrap().row_bytes() as u64;
        for (chunk, cache_bytes) in [(33, u64::MAX), (8, row_bytes + INDEX_BYTES), (1, 0), (3, 64 << 20)] {
            let options = TableOptions { ngram_cache_bytes: cache_bytes, ..TableOptions::default() };
            let mut engine = engine_of(Arc::clone(&model), tables(&model, &options), chunk);
            assert_eq!(all_bits(&mut engine, ids), expected, "chunks of {chunk}, cache of {cache_bytes} bytes");
            let counters = engine.ngram_counters().unwrap();
            assert_eq!(counters.rows, 8 * ids.len() as u64);
        }
    }
}

#[test]
fn the_table_may_be_read_from_another_file() {
    let folder = tempfile::tempdir().unwrap();
    let model = demo();
    let ids: Vec<u32> = (0..20).map(|i| 40 + i * i % 900).collect();
    let expected = all_bits(&mut engine_of(demo(), tables(&model, &TableOptions::default()), 16), &ids);
    let table = model.bound().ple_table.as_ref().unwrap();
    let (start, bytes) = (table.info.offset as usize, table.info.bytes as usize);

    // A file of nothing but the table, as a part of a split model may be.
    let path = folder.path().join("table.gguf");
    let write = |name: &str, dims: &[u64], data: &[u8]| {
        let writer = gguf_writer::GgufWriter::new("qwen4exp").tensor(name, dims, table.info.ggml_type, data);
        std::fs::write(&path, writer.to_bytes()).unwrap();
        TableOptions { ngram_file: Some(path.clone()), ..TableOptions::default() }
    };
    let mut data = DEMO_MODEL[start..start + bytes].to_vec();
    let options = write(TABLE, &table.info.dims, &data);
    let mut engine = engine_of(demo(), tables(&model, &options), 16);
    assert_eq!(all_bits(&mut engine, &ids), expected);
    // The file is cut while it is used: an error, and no signal as from a mapping.
    std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(4096).unwrap();
    engine.reset().unwrap();
    let error = engine.feed(&[5, 6, 7]).unwrap_err().to_string();
    assert!(error.starts_with(&format!("{}: row ", path.display())), "{error}");
    assert!(
        error.contains(&format!("of tensor {TABLE}: cannot read {} bytes at offset ", table.row_bytes())),
        "{error}"
    );

    let refused = |options: &TableOptions, expected: &str| {
        let error = Tables::open(model.file(), model.bound(), options).unwrap_err().to_string();
        assert_eq!(error, format!("{}: tensor {TABLE}: {expected}", path.display()));
    };
    let [cols, rows] = table.info.dims[..] else { panic!("a table has two dimensions") };
    let name = table.format.name();
    let shape = format!("{name} of [{cols}, {rows}]");
    let options = write("other.weight", &table.info.dims, &data);
    refused(&options, &format!("expected {shape} as in the model, found no such tensor"));
    let options = write(TABLE, &[cols, rows / 2], &data[..bytes / 2]);
    let half = format!("{name} of [{cols}, {}]", rows / 2);
    refused(&options, &format!("expected {shape} as in the model, found {half}"));
    data[bytes - 1] ^= 1;
    let options = write(TABLE, &table.info.dims, &data);
    refused(&options, &format!("expected the model's row {} as in the model, found other bytes", rows - 1));

    let plain = Model::from_static(random_model::random_model("qwen35").leak()).unwrap();
    let error = Tables::open(plain.file(), plain.bound(), &options).unwrap_err();
    assert!(matches!(error, LoadError::NoTable { .. }), "{error}");
}

#[test]
fn matrices_that_hold_bf16_are_narrowed_without_a_change() {
    let mut bytes = random_model::random_model("qwen4exp");
    let file = bankshot::gguf::GgufFile::from_static(bytes.clone().leak()).unwrap();
    let floats: Vec<_> =
        file.tensors().iter().filter(|t| t.ggml_type == Format::F32.ggml_id() && t.dims.len() > 1).collect();
    // All but the last of them hold BF16 values; of the last, all values but one.
    for info in &floats {
        let range = info.offset as usize..(info.offset + info.bytes) as usize;
        for value in bytes[range].as_chunks_mut::<4>().0 {
            value[..2].fill(0);
        }
    }
    let last = floats.iter().rfind(|info| info.name.starts_with("blk.") && !info.name.contains("conv1d")).unwrap();
    bytes[last.offset as usize] = 1;

    let wide = Arc::new(Model::from_static(bytes.leak()).unwrap());
    let narrow = Arc::new(Model::from_static(wide.file().parts()[0].embedded().unwrap()).unwrap().narrowed().unwrap());
    let ids: Vec<u32> = (0..40).map(|i| i * i * 31 % 263).collect();
    let mut engines =
        [&wide, &narrow].map(|model| engine_of(Arc::clone(model), tables(model, &TableOptions::default()), 16));
    let [expected, found] = engines.each_mut().map(|engine| all_bits(engine, &ids));
    assert_eq!(found, expected);

    let formats = |bound: &Bound| -> Vec<(String, Format)> {
        let mixers = bound.layers.iter().flat_map(|layer| match (&layer.ffn_mix, &layer.ffn) {
            (bankshot::model::PreNorm::Mixer(mixer), bankshot::model::FeedForward::Moe(moe)) => {
                vec![mixer.down.clone(), moe.router.clone(), moe.gate.clone(), moe.down.clone()]
            }
            _ => Vec::new(),
        });
        mixers.map(|tensor| (tensor.name().to_owned(), tensor.format)).collect()
    };
    for ((name, wide), (_, narrow)) in formats(wide.bound()).into_iter().zip(formats(narrow.bound())) {
        let expected = if wide == Format::F32 && name != last.name { Format::BF16 } else { wide };
        assert_eq!(narrow, expected, "{name}");
    }
    let [(none, 0), (count, saved)] = engines.each_ref().map(|engine| engine.plan().narrowed()) else {
        panic!("nothing of the file as it is was narrowed")
    };
    assert!(none == 0 && count > 0);
    let used: u64 = engines[1].plan().cards[0].weights.iter().map(|weight| weight.tensor.info.bytes).sum();
    let held: u64 = engines[1].plan().cards[0].weights.iter().map(|weight| weight.tensor.bytes()).sum();
    assert_eq!(used - held, saved);

    // A matrix that cards divide is one, and those that each has are one too.
    let options = |split| Options { split: Some(split), ..Options::new(64, 16, KvType::F16) };
    for split in [Split::Layer, Split::Tensor] {
        let plan = Plan::fit(narrow.bound(), options(split), &Inventory::unlimited(2)).unwrap();
        assert_eq!(plan.narrowed().0, count, "{split:?}");
        assert!(plan.narrowed().1 >= saved, "{split:?}: what each card has is saved on each");
    }
}
