//! Hand-made layouts and states, a second reader and writer of the format, and a disk that fails.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use bankshot::plan::{Extent, StateKind};
use bankshot::state::{
    Disk, Extras, Identity, Image, Layout, Loaded, Lock, Piece, ReadFile, RealDisk, SessionError, SnapshotId, Store,
    WriteFile,
};

use super::random::Random;

pub const CONTEXT: usize = 4096;
pub const LOGITS: usize = 6;

/// All seven kinds in three layers, with rows of numbers of so many bytes.
pub fn layout(number_bytes: u64) -> Layout {
    let fixed = |layer, kind, bytes| Piece { layer, kind, extent: Extent::Fixed { bytes } };
    let rows = |layer, kind, numbers, tokens_per_row| Piece {
        layer,
        kind,
        extent: Extent::Rows { row_bytes: numbers * number_bytes, tokens_per_row },
    };
    Layout::new(vec![
        fixed(0, StateKind::ConvWindow, 24),
        fixed(0, StateKind::Matrix, 64),
        fixed(0, StateKind::PleHistory, 16),
        fixed(1, StateKind::Matrix, 128),
        rows(2, StateKind::Keys, 3, 1),
        rows(2, StateKind::Values, 2, 1),
        rows(2, StateKind::PooledKeys, 5, 4),
        fixed(2, StateKind::IndexTail, 40),
    ])
}

pub fn identity(number_bytes: u64) -> Identity {
    let cache = if number_bytes == 2 { "f16" } else { "f32" };
    let values = ["qwen4exp", "1", cache, "a tokenizer", "none", "a model", "a layout"];
    Identity::new(
        Identity::FIELDS.iter().zip(values).map(|(name, value)| (name.to_string(), value.to_owned())).collect(),
    )
}

fn hash(seed: u64, ids: &[u32]) -> u64 {
    ids.iter().fold(Random(seed).next(), |hash, id| Random(hash ^ u64::from(*id)).next())
}

/// Bytes of coarse f32, so that they can be compressed.
fn bytes(seed: u64, count: u64) -> Vec<u8> {
    let mut random = Random(seed);
    let mut bytes: Vec<u8> =
        (0..count.div_ceil(4)).flat_map(|_| ((random.uniform() * 8.0).round() / 8.0).to_le_bytes()).collect();
    bytes.truncate(count as usize);
    bytes
}

/// The state after these tokens, a function of them: a row is one of the tokens up to it, all else of all tokens.
pub fn image(layout: &Layout, ids: &[u32], from: usize, logits: bool) -> Image {
    let pieces = layout.pieces().iter().map(|piece| {
        let seed = piece.layer as u64 * 100 + piece.kind as u64;
        match piece.extent {
            Extent::Fixed { bytes: count } => bytes(hash(seed, ids), count),
            Extent::Rows { row_bytes, tokens_per_row } => {
                let rows = from / tokens_per_row..ids.len() / tokens_per_row;
                rows.flat_map(|row| bytes(hash(seed, &ids[..(row + 1) * tokens_per_row]), row_bytes)).collect()
            }
        }
    });
    let pieces = pieces.collect();
    let logits = logits.then(|| (0..LOGITS as u64).map(|i| Random(hash(7, ids) + i).uniform()).collect());
    Image { ids: ids.to_vec(), from, logits, pieces }
}

pub fn ids(seed: u64, count: usize) -> Vec<u32> {
    let mut random = Random(seed);
    (0..count).map(|_| random.next() as u32 % 250_000).collect()
}

pub fn text_of(ids: &[u32]) -> String {
    ids.iter().map(|id| format!("{id} ä")).collect()
}

/// A folder of sessions of one model.
pub struct Sessions {
    pub store: Store,
    pub layout: Layout,
    pub identity: Identity,
}

impl Sessions {
    pub fn open(dir: &Path) -> Sessions {
        Sessions::with(Store::open(dir).unwrap())
    }

    pub fn with(store: Store) -> Sessions {
        Sessions { store, layout: layout(2), identity: identity(2) }
    }

    pub fn save(
        &self,
        name: &str,
        ids: &[u32],
        from: usize,
        parent: Option<SnapshotId>,
    ) -> Result<SnapshotId, SessionError> {
        let (text, image) = (text_of(ids), image(&self.layout, ids, from, true));
        let extras = Extras { text: &text, compress: ids.len() % 2 == 1, ..Extras::default() };
        Ok(self.store.save(name, &self.identity, &self.layout, &image, extras, parent)?.id)
    }

    pub fn load(&self, name: &str) -> Result<Loaded, SessionError> {
        self.store.load(name, &self.identity, &self.layout, CONTEXT)
    }

    /// Asserts that a name holds the whole state of these tokens.
    #[track_caller]
    pub fn assert_holds(&self, name: &str, ids: &[u32]) {
        let loaded = self.load(name).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(loaded.image, image(&self.layout, ids, 0, true), "{name}");
        assert_eq!(loaded.text, text_of(ids), "{name}");
    }
}

/// A file taken apart as `docs/sessions.md` describes it, without the product's code.
#[derive(Clone, Debug, PartialEq)]
pub struct Parts {
    pub header: Vec<u8>,
    pub sections: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// Without the checksum.
    pub head: [u8; 24],
    pub stored: Vec<u8>,
}

pub fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

impl Part {
    pub fn kind(&self) -> u64 {
        number(&self.head[..2])
    }

    pub fn layer(&self) -> u64 {
        number(&self.head[4..8])
    }
}

impl Parts {
    pub fn read(bytes: &[u8]) -> Parts {
        let header_bytes = number(&bytes[12..16]) as usize;
        let header = bytes[48..48 + header_bytes].to_vec();
        let mut rest = &bytes[48 + header_bytes..];
        let sections = (0..number(&header[88..92])).map(|_| {
            let (head, behind) = rest.split_at(56);
            let (stored, behind) = behind.split_at(number(&head[8..16]) as usize);
            rest = behind;
            Part { head: head[..24].try_into().unwrap(), stored: stored.to_vec() }
        });
        let sections = sections.collect();
        Parts { header, sections }
    }

    /// The file with all checksums and counts right.
    pub fn write(&self) -> Vec<u8> {
        let mut header = self.header.clone();
        header[88..92].copy_from_slice(&(self.sections.len() as u32).to_le_bytes());
        self.write_with(&header)
    }

    /// The file with all checksums right, and this header.
    pub fn write_with(&self, header: &[u8]) -> Vec<u8> {
        let start = [&b"BSession"[..], &1u32.to_le_bytes(), &(header.len() as u32).to_le_bytes()].concat();
        let mut structure = [&start[..], blake3::hash(&[&start, header].concat()).as_bytes(), header].concat();
        let mut file = structure.clone();
        for part in &self.sections {
            let head = [&part.head[..], blake3::hash(&part.stored).as_bytes()].concat();
            structure.extend(&head);
            file.extend(head);
            file.extend(&part.stored);
        }
        let count = number(&header[88..92]) as u32;
        let mut end =
            [&b"BSessEnd"[..], &count.to_le_bytes(), &[0; 4], &(file.len() as u64 + 56).to_le_bytes()].concat();
        structure.extend(&end);
        end.extend(blake3::hash(&structure).as_bytes());
        [file, end].concat()
    }
}

pub fn path(store: &Store, name: &str) -> PathBuf {
    store.dir().join(format!("{name}.bks"))
}

/// Contents of all files of a folder but the lock.
pub fn contents(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let files = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let files = files.filter(|path| !path.ends_with(".lock"));
    files.map(|path| (path.file_name().unwrap().to_str().unwrap().to_owned(), fs::read(&path).unwrap())).collect()
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fault {
    /// The program ends: this operation and all later ones do nothing.
    Kill,
    /// The same, but a write or an fsync in the middle has left half.
    Torn,
    /// From this operation on nothing can be written any more, but all else works.
    Full,
    /// This operation fails, once.
    Once,
}

struct Plan {
    fault: Fault,
    at: usize,
    done: usize,
}

/// Counts operations, and lets one of them and perhaps those after it fail.
#[derive(Clone)]
pub struct FaultyDisk(Arc<Mutex<Plan>>);

impl FaultyDisk {
    pub fn new(fault: Fault, at: usize) -> FaultyDisk {
        FaultyDisk(Arc::new(Mutex::new(Plan { fault, at, done: 0 })))
    }

    /// Whether the fault was met.
    pub fn met(&self) -> bool {
        let plan = self.0.lock().unwrap();
        plan.done > plan.at
    }

    fn next(&self, writes: bool) -> io::Result<()> {
        let mut plan = self.0.lock().unwrap();
        if plan.fault == Fault::Full && !writes {
            return Ok(());
        }
        plan.done += 1;
        let fails = match plan.fault {
            Fault::Once => plan.done == plan.at + 1,
            _ => plan.done > plan.at,
        };
        match plan.fault {
            _ if !fails => Ok(()),
            Fault::Full => Err(io::ErrorKind::StorageFull.into()),
            _ => Err(io::Error::other("a fault of the test")),
        }
    }

    fn tears(&self) -> bool {
        let plan = self.0.lock().unwrap();
        plan.done == plan.at + 1 && matches!(plan.fault, Fault::Torn | Fault::Full)
    }
}

struct FaultyFile(FaultyDisk, Box<dyn WriteFile>);

impl WriteFile for FaultyFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let next = self.0.next(true);
        if next.is_err() && self.0.tears() {
            self.1.write(&bytes[..bytes.len() / 2])?;
        }
        next?;
        self.1.write(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.0.next(true)?;
        self.1.sync()
    }
}

impl Disk for FaultyDisk {
    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        RealDisk.create_dir(dir)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        self.next(false)?;
        RealDisk.list(dir)
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn ReadFile>> {
        self.next(false)?;
        RealDisk.open(path)
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn WriteFile>> {
        self.next(true)?;
        Ok(Box::new(FaultyFile(self.clone(), RealDisk.create(path)?)))
    }

    fn set_modified(&self, path: &Path, time: SystemTime) -> io::Result<()> {
        self.next(false)?;
        RealDisk.set_modified(path, time)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.next(false)?;
        RealDisk.rename(from, to)
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.next(false)?;
        RealDisk.link(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.next(false)?;
        RealDisk.remove(path)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.next(false)?;
        RealDisk.sync_dir(dir)
    }

    fn lock(&self, path: &Path) -> io::Result<Option<Lock>> {
        self.next(false)?;
        RealDisk.lock(path)
    }
}
