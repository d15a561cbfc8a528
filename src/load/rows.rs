//! Tables that stay in their file: rows are read by position, kept in a bounded cache, and decoded on the host.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use rustix::fs::Advice;

use super::{LoadError, ReadAt};
use crate::gguf::{GgufFile, TensorInfo};
use crate::model::{Bound, TensorRef};
use crate::quant::{Format, decode_row};

/// Reads that are under way at a time when rows have to come from the disk.
const READS_IN_FLIGHT: usize = 16;
/// Bytes of the embedding's rows that are kept.
const EMBEDDING_CACHE_BYTES: u64 = 8 << 20;
/// About what the cache needs beside a row's bytes: an entry of the hash table, and the slot's number and mark.
const INDEX_BYTES: u64 = 48;

/// A row that cannot be read. The table can be asked again.
#[derive(Debug, thiserror::Error)]
#[error("{path}: row {row} of tensor {tensor}: cannot read {bytes} bytes at offset {offset}: {cause}")]
pub struct RowError {
    pub path: PathBuf,
    pub tensor: String,
    pub row: u64,
    pub offset: u64,
    pub bytes: usize,
    pub cause: io::Error,
}

/// What a table has given so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct RowCounters {
    /// Rows that were asked for and given.
    pub rows: u64,
    /// Rows that were in the cache, or asked for more than once in a call.
    pub hits: u64,
    /// Rows read from the file.
    pub reads: u64,
    /// Of these, those that had to be waited for.
    pub waits: u64,
    pub read_bytes: u64,
}

impl std::fmt::Display for RowCounters {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let RowCounters { rows, hits, reads, waits, read_bytes } = self;
        write!(
            f,
            "{rows} used, {hits} from the cache, {reads} read ({read_bytes} bytes), of which {waits} had to be waited for"
        )
    }
}

/// A table whose rows are read when they are needed.
pub struct RowTable {
    source: Arc<dyn ReadAt>,
    path: PathBuf,
    tensor: String,
    format: Format,
    /// Where row 0 starts.
    start: u64,
    cols: usize,
    row_bytes: usize,
    cache: RowCache,
    counters: RowCounters,
    /// Rows that the current call reads, and their bytes in the same order.
    missing: Vec<u64>,
    fresh: Vec<u8>,
    /// Where a row lies in `missing`.
    places: HashMap<u64, usize>,
}

impl RowTable {
    /// A table of `table`'s rows from a source that holds row 0 at `start`. At most about `cache_bytes` of them are kept.
    pub fn new(source: Arc<dyn ReadAt>, path: &Path, start: u64, table: &TensorRef, cache_bytes: u64) -> RowTable {
        let row_bytes = table.stored_row_bytes();
        let capacity = (cache_bytes / (row_bytes as u64 + INDEX_BYTES)).min(table.rows as u64) as usize;
        RowTable {
            source,
            path: path.to_owned(),
            tensor: table.name().to_owned(),
            format: table.stored_format(),
            start,
            cols: table.cols,
            row_bytes,
            cache: RowCache::new(capacity, row_bytes),
            counters: RowCounters::default(),
            missing: Vec::new(),
            fresh: Vec::new(),
            places: HashMap::new(),
        }
    }

    fn open(file: &GgufFile, info: &TensorInfo, table: &TensorRef, cache_bytes: u64) -> Result<RowTable, LoadError> {
        let part = &file.parts()[info.part];
        let source: Arc<dyn ReadAt> = match part.embedded() {
            Some(bytes) => Arc::new(bytes),
            None => {
                let path = part.path();
                let file = File::open(path).map_err(|cause| LoadError::Reopen { path: path.to_owned(), cause })?;
                // Rows lie far apart, so that what a reader usually takes beside them is wasted. Only a hint.
                let _ = rustix::fs::fadvise(&file, 0, None, Advice::Random);
                Arc::new(file)
            }
        };
        Ok(RowTable::new(source, part.path(), info.offset, table, cache_bytes))
    }

    /// Decodes rows, f32 [rows][columns]. Rows behind the table's end are errors, as any that cannot be read.
    ///
    /// # Errors
    /// When a row cannot be read; `out` is then not defined.
    pub fn decode(&mut self, rows: &[u64], out: &mut [f32]) -> Result<(), RowError> {
        self.missing.clear();
        self.places.clear();
        for row in rows.iter().filter(|row| !self.cache.has(**row)) {
            self.places.entry(*row).or_insert_with(|| {
                self.missing.push(*row);
                self.missing.len() - 1
            });
        }
        let waits = self.read_missing()?;
        let reads = self.missing.len() as u64;
        self.counters.rows += rows.len() as u64;
        self.counters.hits += rows.len() as u64 - reads;
        self.counters.reads += reads;
        self.counters.waits += waits;
        self.counters.read_bytes += self.fresh.len() as u64;
        for (row, out) in rows.iter().zip(out.chunks_exact_mut(self.cols)) {
            let bytes = match self.places.get(row) {
                Some(place) => &self.fresh[place * self.row_bytes..][..self.row_bytes],
                None => self.cache.get(*row),
            };
            decode_row(self.format, bytes, out).expect("a bound table's rows are whole blocks");
        }
        for (row, bytes) in self.missing.iter().zip(self.fresh.chunks_exact(self.row_bytes)) {
            self.cache.insert(*row, bytes);
        }
        Ok(())
    }

    /// Bytes of a row.
    pub fn row_bytes(&self) -> usize {
        self.row_bytes
    }

    pub fn counters(&self) -> RowCounters {
        self.counters
    }

    /// Fills `fresh` with the missing rows: first with all that need no waiting, then with the others side by side. Gives
    /// the number of the latter.
    fn read_missing(&mut self) -> Result<u64, RowError> {
        self.fresh.resize(self.missing.len() * self.row_bytes, 0);
        let (start, row_bytes) = (self.start, self.row_bytes);
        let offset = |row: u64| start.saturating_add(row.saturating_mul(row_bytes as u64));
        let mut waiting = Vec::new();
        for (row, to) in self.missing.iter().zip(self.fresh.chunks_exact_mut(self.row_bytes)) {
            if !self.source.read_at_once(offset(*row), to) {
                waiting.push((*row, to));
            }
        }
        let waits = waiting.len();
        let (work, failed) = (Mutex::new(waiting.into_iter()), Mutex::new(None));
        let source = &*self.source;
        let next = || work.lock().expect("no reader panics").next();
        let reader = || {
            while let Some((row, to)) = next() {
                if let Err(cause) = source.read(offset(row), to) {
                    failed.lock().expect("no reader panics").get_or_insert((row, cause));
                    return;
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..READS_IN_FLIGHT.min(waits) {
                // Where there are no more threads to be had, those that there are read all.
                if std::thread::Builder::new().spawn_scoped(scope, reader).is_err() {
                    break;
                }
            }
            reader();
        });
        match failed.into_inner().expect("no reader panics") {
            None => Ok(waits as u64),
            Some((row, cause)) => {
                let (path, tensor) = (self.path.clone(), self.tensor.clone());
                Err(RowError { path, tensor, row, offset: offset(row), bytes: row_bytes, cause })
            }
        }
    }
}

impl std::fmt::Debug for RowTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RowTable").field("path", &self.path).field("tensor", &self.tensor).finish_non_exhaustive()
    }
}

/// The rows used last, in the manner of a clock: a row that was used since the hand's last visit stays for another round.
struct RowCache {
    capacity: usize,
    row_bytes: usize,
    slots: HashMap<u64, usize>,
    /// Row and whether it was used, a slot.
    rows: Vec<(u64, bool)>,
    bytes: Vec<u8>,
    hand: usize,
}

impl RowCache {
    fn new(capacity: usize, row_bytes: usize) -> RowCache {
        RowCache { capacity, row_bytes, slots: HashMap::new(), rows: Vec::new(), bytes: Vec::new(), hand: 0 }
    }

    fn has(&self, row: u64) -> bool {
        self.slots.contains_key(&row)
    }

    /// The bytes of a row that is in the cache.
    fn get(&mut self, row: u64) -> &[u8] {
        let slot = self.slots[&row];
        self.rows[slot].1 = true;
        &self.bytes[slot * self.row_bytes..][..self.row_bytes]
    }

    fn insert(&mut self, row: u64, bytes: &[u8]) {
        if self.rows.len() < self.capacity {
            self.slots.insert(row, self.rows.len());
            self.rows.push((row, false));
            self.bytes.extend_from_slice(bytes);
            return;
        }
        if self.capacity == 0 {
            return;
        }
        while std::mem::take(&mut self.rows[self.hand].1) {
            self.hand = (self.hand + 1) % self.capacity;
        }
        self.slots.remove(&self.rows[self.hand].0);
        self.slots.insert(row, self.hand);
        self.rows[self.hand].0 = row;
        self.bytes[self.hand * self.row_bytes..][..self.row_bytes].copy_from_slice(bytes);
        self.hand = (self.hand + 1) % self.capacity;
    }
}

/// Where the tables come from, and how much of them is kept.
#[derive(Clone, Debug)]
pub struct TableOptions {
    /// A GGUF file whose n-gram table is read instead of the model's, a copy on a faster disk.
    pub ngram_file: Option<PathBuf>,
    /// About the most bytes of the n-gram table's rows to keep.
    pub ngram_cache_bytes: u64,
}

impl Default for TableOptions {
    fn default() -> TableOptions {
        TableOptions { ngram_file: None, ngram_cache_bytes: 64 << 20 }
    }
}

/// A model's tables that stay in their file.
#[derive(Debug)]
pub struct Tables {
    pub embedding: RowTable,
    pub ngrams: Option<RowTable>,
}

impl Tables {
    /// Opens the tables of a model.
    ///
    /// # Errors
    /// When a file cannot be opened, or the one that is named has not the model's n-gram table.
    pub fn open(file: &GgufFile, bound: &Bound, options: &TableOptions) -> Result<Tables, LoadError> {
        let embedding = RowTable::open(file, &bound.embed.info, &bound.embed, EMBEDDING_CACHE_BYTES)?;
        let ngrams = match (&bound.ple_table, &options.ngram_file) {
            (None, None) => None,
            (None, Some(path)) => return Err(LoadError::NoTable { path: path.clone() }),
            (Some(table), None) => Some(RowTable::open(file, &table.info, table, options.ngram_cache_bytes)?),
            (Some(table), Some(path)) => {
                let other = GgufFile::open_part(path)?;
                let info = same_tensor(&other, file, table)?;
                Some(RowTable::open(&other, &info, table, options.ngram_cache_bytes)?)
            }
        };
        Ok(Tables { embedding, ngrams })
    }
}

/// Finds the model's table in another file. Rows at 65 places are compared, which tells a copy from another model's table.
fn same_tensor(other: &GgufFile, file: &GgufFile, table: &TensorRef) -> Result<TensorInfo, LoadError> {
    let different = |expected: String, found: String| LoadError::OtherTable {
        path: other.path().to_owned(),
        tensor: table.name().to_owned(),
        expected,
        found,
    };
    let describe = |info: &TensorInfo| format!("{} of {:?}", info.type_name(), info.dims);
    let (name, wanted) = (table.name(), &table.info);
    let Some(info) = other.tensor(name) else { return Err(different(describe(wanted), "no such tensor".to_owned())) };
    if (info.dims.as_slice(), info.ggml_type) != (wanted.dims.as_slice(), wanted.ggml_type) {
        return Err(different(describe(wanted), describe(info)));
    }
    let (ours, theirs) = (file.data(wanted), other.data(info));
    let rows = (0..=64).map(|i| i * (table.rows - 1) / 64);
    for row in rows {
        let range = row * table.stored_row_bytes()..(row + 1) * table.stored_row_bytes();
        if ours.get(range.clone()) != theirs.get(range) {
            return Err(different(format!("the model's row {row}"), "other bytes".to_owned()));
        }
    }
    Ok(info.clone())
}
