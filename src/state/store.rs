//! A folder of saved sessions. `docs/sessions.md` says what it promises.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::codec::Encoding;
use super::disk::{Disk, Lock, RealDisk, WriteFile};
use super::file::{SavedFile, Writer};
use super::format::{FORMAT_VERSION, Header, NOTES_BYTES_MAX, Section, SectionExtent, SectionKind, SnapshotId, title};
use super::identity::Hash;
use super::index::{Index, Node};
use super::{CHAIN_MAX, Identity, Image, Layout, Piece, SessionError};
use crate::device::host_free_bytes;

const ENDING: &str = ".bks";
const NAME_CHARS_MAX: usize = 128;
/// How long a writer waits for another one.
const LOCK_WAIT: Duration = Duration::from_secs(10);
const LOCK_PAUSE: Duration = Duration::from_millis(10);
/// A file that was not finished in this time will not be.
const PARTIAL_AGE_MAX: Duration = Duration::from_secs(24 * 3600);
/// Characters of a session's text that are shown, and bytes that are read for them.
const TEXT_START_CHARS: usize = 200;
/// How often a session is looked for in a folder that changes meanwhile.
const TRIES: usize = 4;

/// Sessions in a folder, each a file.
#[derive(Clone)]
pub struct Store {
    pub(super) dir: PathBuf,
    pub(super) disk: Arc<dyn Disk>,
    lock_wait: Duration,
}

/// What is saved beside the state.
#[derive(Clone, Copy, Debug, Default)]
pub struct Extras<'a> {
    /// The text of all tokens.
    pub text: &'a str,
    /// Bytes of the program that uses the engine, at most [`NOTES_BYTES_MAX`].
    pub notes: Option<&'a [u8]>,
    /// Whether the state is stored compressed.
    pub compress: bool,
    pub limits: Limits,
}

/// What a save may take. One that would take more is refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Of the file.
    pub file_bytes: Option<u64>,
    /// Of all sessions of the folder together.
    pub folder_bytes: Option<u64>,
}

/// A session that was saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Saved {
    pub id: SnapshotId,
    /// Of the file.
    pub bytes: u64,
}

/// A session that was read, whole and verified.
#[derive(Clone, Debug, PartialEq)]
pub struct Loaded {
    pub image: Image,
    pub id: SnapshotId,
    pub notes: Option<Vec<u8>>,
    pub text: String,
}

/// What a file says of its session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Info {
    pub name: String,
    pub version: u32,
    pub id: SnapshotId,
    pub parent: Option<SnapshotId>,
    /// What the session is a delta of, and so on to a whole one.
    pub chain: Vec<Link>,
    /// Why it cannot be put together, if it cannot.
    pub broken: Option<String>,
    pub position: u64,
    pub from: u64,
    /// Of the file.
    pub bytes: u64,
    pub sections: Vec<Section>,
    pub created: SystemTime,
    pub last_used: SystemTime,
    pub identity: Identity,
    /// The first characters; only verified when all is.
    pub text_start: String,
    pub text_bytes: u64,
    pub notes_bytes: Option<u64>,
    pub has_logits: bool,
}

/// A step from a session to the one that it is a delta of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    pub id: SnapshotId,
    /// `None` if no file has it.
    pub name: Option<String>,
}

impl Store {
    /// Opens a folder of sessions, and creates it if it is missing.
    ///
    /// # Errors
    /// When it cannot be created.
    pub fn open(dir: &Path) -> Result<Store, SessionError> {
        Store::with_disk(dir, Arc::new(RealDisk))
    }

    /// The same with other file operations.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn with_disk(dir: &Path, disk: Arc<dyn Disk>) -> Result<Store, SessionError> {
        disk.create_dir(dir).map_err(|cause| SessionError::io("create the folder", dir, cause))?;
        Ok(Store { dir: dir.to_owned(), disk, lock_wait: LOCK_WAIT })
    }

    /// How long a writer waits for another one; 10 s unless it is set.
    #[must_use]
    pub fn lock_wait(mut self, wait: Duration) -> Store {
        self.lock_wait = wait;
        self
    }

    /// Whether a session can have this name.
    ///
    /// # Errors
    /// With what is wrong with it.
    pub fn check_name(name: &str) -> Result<(), SessionError> {
        check_name(name)
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Saves the state of a sequence, or what it has more than `parent`. All or nothing: until it is complete, the name holds what it held.
    ///
    /// # Errors
    /// When the image is not the layout's, does not follow its parent, would replace what another session needs or takes more than `extras` allows, or
    /// when the folder cannot be written.
    pub fn save(
        &self,
        name: &str,
        identity: &Identity,
        layout: &Layout,
        image: &Image,
        extras: Extras<'_>,
        parent: Option<SnapshotId>,
    ) -> Result<Saved, SessionError> {
        check_name(name)?;
        check_image(name, layout, image)?;
        let refuse = |what: &str, expected: &str, found: String| SessionError::refused(name, what, expected, found);
        if let Some(notes) = extras.notes.filter(|notes| notes.len() > NOTES_BYTES_MAX) {
            return Err(refuse("notes", &format!("at most {NOTES_BYTES_MAX} bytes"), format!("{}", notes.len())));
        }
        if parent.is_some() != (image.from > 0) {
            let expected = if image.from > 0 { "one, as rows are missing" } else { "none for a whole image" };
            return Err(refuse("parent", expected, parent.map_or("none".to_owned(), |id| id.to_string())));
        }
        let header = Header {
            id: snapshot_id(identity, layout, image),
            parent,
            position: image.position() as u64,
            from: image.from as u64,
            created: SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs(),
            sections: (2
                + usize::from(extras.notes.is_some())
                + usize::from(image.logits.is_some())
                + image.pieces.len()) as u32,
            identity: identity.clone(),
        };
        let node = Node::new(name, &header);
        let start = header.encode().map_err(|found| refuse("identity", "fields that fit a header", found))?;

        let _lock = self.lock()?;
        self.remove_partial_files();
        let replaces = self.names()?.iter().any(|known| known == name);
        let index = if replaces { self.whole_index()? } else { self.index(&BTreeSet::new())? };
        if let Some(parent) = parent {
            self.check_parent(&index, &node, parent, identity, image)?;
        }
        let needed = self.needed(&index, name, Some(node))?;
        if !needed.is_empty() {
            return Err(SessionError::Needed { session: name.to_owned(), by: needed });
        }
        let others = match extras.limits.folder_bytes {
            Some(_) => self.names()?.iter().filter(|other| *other != name).map(|other| self.file_bytes(other)).sum(),
            None => 0,
        };
        let bytes = self.put(name, None, |file| {
            let writer = Writer::new(file, &start).map_err(io_of)?;
            let bytes = write_image(writer, identity, layout, image, &extras).map_err(io_of)?;
            let limit = |what, expected: Option<u64>, found| match expected.filter(|most| found > *most) {
                Some(expected) => {
                    Err(Failure::Error(SessionError::Limit { session: name.to_owned(), what, expected, found }))
                }
                None => Ok(()),
            };
            limit("bytes of the file", extras.limits.file_bytes, bytes)?;
            limit("bytes of all sessions", extras.limits.folder_bytes, others + bytes)?;
            Ok(bytes)
        })?;
        Ok(Saved { id: header.id, bytes })
    }

    /// Reads a session, put together from its file and those that it is a delta of. All or nothing: every checksum of every file is verified.
    ///
    /// # Errors
    /// When a file is missing, damaged, or of another identity, or the state has no room in the context or in the host's memory.
    pub fn load(
        &self,
        name: &str,
        identity: &Identity,
        layout: &Layout,
        context_max: usize,
    ) -> Result<Loaded, SessionError> {
        check_name(name)?;
        let (mut damaged, mut first_error) = (BTreeSet::new(), None);
        let mut tries = TRIES;
        loop {
            let index = self.index(&damaged)?;
            let failed = match self.load_with(&index, name, identity, layout, context_max) {
                Ok(loaded) => {
                    // For the order in which sessions are given up; a folder that is not ours to write is no error.
                    let _ = self.disk.set_modified(&self.path(name), SystemTime::now());
                    return Ok(loaded);
                }
                Err(failed) => failed,
            };
            // Readers hold no lock: a writer may have replaced files since they were listed.
            if tries > 0 && self.index(&damaged)? != index {
                tries -= 1;
                continue;
            }
            let error = first_error.unwrap_or(*failed.error);
            // Another file may have the same snapshot as the damaged one.
            let file = failed.file.filter(|file| file != name);
            match file.filter(|file| damaged.insert(file.clone())) {
                Some(_) => first_error = Some(error),
                None => return Err(error),
            }
        }
    }

    fn load_with(
        &self,
        index: &Index,
        name: &str,
        identity: &Identity,
        layout: &Layout,
        context_max: usize,
    ) -> Result<Loaded, LoadFailed> {
        let Some(node) = index.get(name) else {
            let error = self.read(name).err();
            return Err(error.unwrap_or_else(|| self.not_found(name)).into());
        };
        let Some(chain) = index.chain(name) else {
            let error = index.links(node).1;
            return Err(error.unwrap_or_else(|| self.not_found(name)).into());
        };
        let mut files = Vec::new();
        for node in &chain {
            let file = self.read(&node.name).map_err(|error| LoadFailed::of(error, node))?;
            let error = if let Some(mismatch) = identity.difference(&file.header.identity) {
                Some(SessionError::Identity { session: node.name.clone(), mismatch })
            } else if Node::new(&node.name, &file.header) != **node {
                Some(SessionError::damaged(&file.path, "header", "the same as before", "another one"))
            } else if file.header.position > context_max as u64 {
                // Sizes of pieces are only computed for positions that a context can have.
                let (session, found) = (name.to_owned(), file.header.position);
                Some(SessionError::Context { session, expected: context_max, found })
            } else {
                check_sections(&file, layout).err()
            };
            if let Some(error) = error {
                return Err(LoadFailed::of(error, node));
            }
            files.push(file);
        }
        let position = files[0].header.position;
        let (needed, free) =
            (bytes_to_load(&files, layout, position as usize), host_free_bytes().unwrap_or(i64::MAX as u64));
        if needed > free {
            return Err(SessionError::Memory { session: name.to_owned(), expected: needed, found: free }.into());
        }
        let loaded = merge(&files, layout, position as usize);
        loaded.map_err(|(error, file)| LoadFailed::of(error, chain[file]))
    }

    /// What a file says of its session; needs no model. With `verify` every checksum of the file is compared.
    ///
    /// # Errors
    /// When the file is missing or damaged.
    pub fn inspect(&self, name: &str, verify: bool) -> Result<Info, SessionError> {
        check_name(name)?;
        self.info(&self.index(&BTreeSet::new())?, name, verify)
    }

    pub(super) fn info(&self, index: &Index, name: &str, verify: bool) -> Result<Info, SessionError> {
        let file = self.read(name)?;
        if verify {
            file.verify_all()?;
        }
        let io = |cause| SessionError::io("read", &file.path, cause);
        let text = file.need(SectionKind::Text)?;
        let mut start = vec![0; text.stored_bytes.min(4 * TEXT_START_CHARS as u64) as usize];
        file.file.read(text.offset, &mut start).map_err(io)?;
        let valid = start.utf8_chunks().next().map_or("", |chunk| chunk.valid());
        let header = &file.header;
        let (links, broken) = index.links(&Node::new(name, header));
        let chain = links.into_iter().map(|(id, node)| Link { id, name: node.map(|node| node.name.clone()) });
        Ok(Info {
            name: name.to_owned(),
            version: FORMAT_VERSION,
            id: header.id,
            parent: header.parent,
            chain: chain.collect(),
            broken: broken.map(|error| error.to_string()),
            position: header.position,
            from: header.from,
            bytes: file.bytes,
            created: UNIX_EPOCH.checked_add(Duration::from_secs(header.created)).unwrap_or(UNIX_EPOCH),
            last_used: file.file.modified().map_err(io)?,
            identity: header.identity.clone(),
            text_start: valid.chars().take(TEXT_START_CHARS).collect(),
            text_bytes: text.raw_bytes,
            notes_bytes: file.find(SectionKind::Notes).map(|notes| notes.raw_bytes),
            has_logits: file.find(SectionKind::Logits).is_some(),
            sections: file.sections,
        })
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.dir.join(format!("{name}{ENDING}"))
    }

    /// What a file is called until it is complete.
    pub(super) fn partial(&self, name: &str) -> PathBuf {
        self.dir.join(format!(".{name}.{}.partial", std::process::id()))
    }

    pub(super) fn not_found(&self, name: &str) -> SessionError {
        SessionError::NotFound { session: name.to_owned(), path: self.path(name).into() }
    }

    /// Names of all files that can be sessions, sorted.
    pub(super) fn names(&self) -> Result<Vec<String>, SessionError> {
        let names = self.disk.list(&self.dir).map_err(|cause| SessionError::io("list", &self.dir, cause))?;
        let names = names.iter().filter_map(|name| name.strip_suffix(ENDING));
        let mut names: Vec<String> = names.filter(|name| check_name(name).is_ok()).map(str::to_owned).collect();
        names.sort();
        Ok(names)
    }

    /// All files with a readable header but those of `without`.
    pub(super) fn index(&self, without: &BTreeSet<String>) -> Result<Index, SessionError> {
        Ok(self.index_and_failures(without)?.0)
    }

    /// The same for those who take something away: a file that could not be read may need what they take.
    pub(super) fn whole_index(&self) -> Result<Index, SessionError> {
        match self.index_and_failures(&BTreeSet::new())? {
            (index, None) => Ok(index),
            (_, Some(error)) => Err(error),
        }
    }

    fn index_and_failures(&self, without: &BTreeSet<String>) -> Result<(Index, Option<SessionError>), SessionError> {
        let (mut nodes, mut failure) = (Vec::new(), None);
        for name in self.names()?.into_iter().filter(|name| !without.contains(name)) {
            let path = self.path(&name);
            let header = match self.disk.open(&path) {
                Ok(file) => Header::read(&*file, &path),
                // It is gone meanwhile, or is none of ours.
                Err(error) if [io::ErrorKind::NotFound, io::ErrorKind::InvalidInput].contains(&error.kind()) => {
                    continue;
                }
                Err(error) => Err(SessionError::io("open", &path, error)),
            };
            match header {
                Ok((header, _)) => nodes.push(Node::new(&name, &header)),
                Err(error @ SessionError::Io { .. }) => failure = failure.or(Some(error)),
                // Damaged files need nothing any more.
                Err(_) => {}
            }
        }
        Ok((Index::new(nodes), failure))
    }

    pub(super) fn read(&self, name: &str) -> Result<SavedFile, SessionError> {
        let path = self.path(name);
        match self.disk.open(&path) {
            Ok(file) => SavedFile::read(file, &path),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(self.not_found(name)),
            Err(error) => Err(SessionError::io("open", &path, error)),
        }
    }

    pub(super) fn file_bytes(&self, name: &str) -> u64 {
        self.disk.open(&self.path(name)).and_then(|file| file.bytes()).unwrap_or(0)
    }

    /// Waits until no other writer has the folder.
    pub(super) fn lock(&self) -> Result<Lock, SessionError> {
        let path = self.dir.join(".lock");
        let start = Instant::now();
        loop {
            match self.disk.lock(&path) {
                Ok(Some(lock)) => return Ok(lock),
                Ok(None) if start.elapsed() < self.lock_wait => thread::sleep(LOCK_PAUSE),
                Ok(None) => {
                    return Err(SessionError::Locked { path: path.into(), seconds: self.lock_wait.as_secs() });
                }
                Err(cause) => return Err(SessionError::io("lock", &path, cause)),
            }
        }
    }

    /// Writes a file beside its name and gives it the name when it is on the disk. Whatever fails, nothing is left behind.
    pub(super) fn put(
        &self,
        name: &str,
        modified: Option<SystemTime>,
        write: impl FnOnce(&mut dyn WriteFile) -> Result<u64, Failure>,
    ) -> Result<u64, SessionError> {
        let (path, partial) = (self.path(name), self.partial(name));
        let written = (|| {
            let bytes = write(&mut *self.disk.create(&partial).map_err(io_of)?)?;
            if let Some(time) = modified {
                self.disk.set_modified(&partial, time).map_err(io_of)?;
            }
            self.disk.rename(&partial, &path).map_err(io_of)?;
            Ok(bytes)
        })();
        let bytes = written.map_err(|failure| {
            let _ = self.disk.remove(&partial);
            match failure {
                Failure::Io(cause) => SessionError::io("write", &path, cause),
                Failure::Error(error) => error,
            }
        })?;
        self.disk.sync_dir(&self.dir).map_err(|cause| SessionError::io("sync", &self.dir, cause))?;
        Ok(bytes)
    }

    /// Removes what writers left that were killed. The folder is locked: what this process has there is of an earlier failure.
    pub(super) fn remove_partial_files(&self) {
        for name in self.disk.list(&self.dir).unwrap_or_default() {
            let pid = name.strip_prefix('.').and_then(|name| name.strip_suffix(".partial")?.rsplit_once('.'));
            let Some(pid) = pid.and_then(|(_, pid)| pid.parse::<i32>().ok()) else { continue };
            let path = self.dir.join(&name);
            let old = || {
                let modified = self.disk.open(&path).and_then(|file| file.modified()).ok();
                modified.and_then(|time| time.elapsed().ok()).is_some_and(|age| age > PARTIAL_AGE_MAX)
            };
            let alive =
                || nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), None) != Err(nix::errno::Errno::ESRCH);
            if pid == std::process::id() as i32 || pid <= 0 || !alive() || old() {
                let _ = self.disk.remove(&path);
            }
        }
    }

    /// Finds the parent of a session that is to be saved.
    fn check_parent(
        &self,
        index: &Index,
        node: &Node,
        id: SnapshotId,
        identity: &Identity,
        image: &Image,
    ) -> Result<(), SessionError> {
        let error = |what, expected: String, found: String| SessionError::Parent {
            session: node.name.clone(),
            parent: id.to_string(),
            what,
            expected,
            found,
        };
        if node.from >= node.position {
            return Err(error("position", format!("less than {}", node.position), node.from.to_string()));
        }
        let found = index.nodes().iter().filter(|other| node.adds_to(other));
        let chains = found.clone().filter_map(|other| Some((index.chain(&other.name)?.len(), other)));
        let Some((length, parent)) = chains.min_by_key(|(length, _)| *length) else {
            let mut reasons = found.map(|other| index.links(other).1);
            // Without a file the session's own links say what is missing.
            return Err(reasons
                .next()
                .flatten()
                .or_else(|| index.links(node).1)
                .unwrap_or_else(|| self.not_found(&node.name)));
        };
        if length >= CHAIN_MAX {
            return Err(error("chain", format!("at most {CHAIN_MAX} files"), format!("{}", length + 1)));
        }
        let file = self.read(&parent.name)?;
        if let Some(mismatch) = identity.difference(&file.header.identity) {
            return Err(SessionError::Identity { session: parent.name.clone(), mismatch });
        }
        if file.header.position != node.from || file.ids()?[..] != image.ids[..image.from] {
            return Err(error("ids", format!("the first {} of the session", node.from), "others".to_owned()));
        }
        Ok(())
    }

    /// Sessions that could not be put together any more if a name's file went, or had another snapshot.
    pub(super) fn needed(
        &self,
        index: &Index,
        name: &str,
        replaced: Option<Node>,
    ) -> Result<Vec<String>, SessionError> {
        let Some(old) = index.get(name) else { return Ok(Vec::new()) };
        let after = index.with(name, replaced.clone());
        let mut needed: Vec<String> = index.lost(&after).iter().map(|node| node.name.clone()).collect();
        if replaced.is_some() && after.chain(name).is_none() {
            needed.push(name.to_owned());
        }
        // What takes the snapshot's place has to be whole, which headers do not tell.
        for node in after.nodes().iter().filter(|node| node.adds_to(old)) {
            let Some(chain) = after.chain(&node.name).filter(|chain| chain[1].name != name) else { continue };
            let mut others = chain[1..].iter().filter(|other| other.name != name);
            if others.any(|other| self.read(&other.name).and_then(|file| file.verify_all()).is_err()) {
                needed.push(node.name.clone());
            }
        }
        needed.sort();
        needed.dedup();
        Ok(needed)
    }
}

/// Why a file was not written.
pub(super) enum Failure {
    Io(io::Error),
    Error(SessionError),
}

pub(super) fn io_of(cause: io::Error) -> Failure {
    Failure::Io(cause)
}

/// Why a session was not loaded, and the file that is to blame.
struct LoadFailed {
    error: Box<SessionError>,
    file: Option<String>,
}

impl LoadFailed {
    fn of(error: SessionError, node: &Node) -> LoadFailed {
        LoadFailed { error: Box::new(error), file: Some(node.name.clone()) }
    }
}

impl From<SessionError> for LoadFailed {
    fn from(error: SessionError) -> LoadFailed {
        LoadFailed { error: Box::new(error), file: None }
    }
}

/// Letters, digits, `-`, `_` and `.`, which cannot leave the folder or hide in it.
pub(super) fn check_name(name: &str) -> Result<(), SessionError> {
    let error = |expected, found: String| Err(SessionError::Name { name: name.to_owned(), expected, found });
    let chars = name.chars().count();
    if chars == 0 || chars > NAME_CHARS_MAX {
        return error("1 to 128 characters", chars.to_string());
    }
    if name.starts_with('.') {
        return error("another character than a dot at the start", "a dot".to_owned());
    }
    let foreign = name.chars().find(|c| !(c.is_ascii_alphanumeric() || ['-', '_', '.'].contains(c)));
    foreign.map_or(Ok(()), |found| error("letters, digits, '-', '_' and '.' of ASCII", format!("{found:?}")))
}

fn check_image(name: &str, layout: &Layout, image: &Image) -> Result<(), SessionError> {
    if image.fits(layout) {
        return Ok(());
    }
    let (from, position) = (image.from, image.position());
    if from > position {
        return Err(SessionError::refused(name, "from", format!("at most {position}"), from));
    }
    let (pieces, found) = (layout.pieces(), image.pieces.len());
    let wrong = pieces.iter().zip(&image.pieces).find(|(piece, have)| piece.bytes(from, position) != have.len() as u64);
    Err(match wrong {
        Some((piece, have)) => {
            let what = format!("bytes of {}", title(SectionKind::Piece(piece.kind), piece.layer as u32));
            SessionError::refused(name, what, piece.bytes(from, position), have.len())
        }
        None => SessionError::refused(name, "pieces of state", pieces.len(), found),
    })
}

/// The name of a state: of what it is computed by, its tokens, what is not rows of its tokens, and its logits.
fn snapshot_id(identity: &Identity, layout: &Layout, image: &Image) -> SnapshotId {
    let mut hash = Hash::new("snapshot");
    hash.number(identity.fields().len() as u64);
    for (name, value) in identity.fields() {
        hash.bytes(name.as_bytes());
        hash.bytes(value.as_bytes());
    }
    hash.bytes(&le_bytes(&image.ids, u32::to_le_bytes));
    for (piece, bytes) in layout.pieces().iter().zip(&image.pieces).filter(|(piece, _)| piece.is_fixed()) {
        hash.number(piece.layer as u64);
        hash.number(SectionKind::Piece(piece.kind).number().into());
        hash.bytes(bytes);
    }
    hash.number(image.logits.is_some().into());
    hash.bytes(&le_bytes(image.logits.as_deref().unwrap_or_default(), f32::to_le_bytes));
    SnapshotId(hash.finish())
}

fn le_bytes<T: Copy>(values: &[T], bytes: impl Fn(T) -> [u8; 4]) -> Vec<u8> {
    values.iter().flat_map(|value| bytes(*value)).collect()
}

/// How a piece is stored if it is compressed. Rows are of the cache's type, all else is f32.
pub(super) fn encoding(identity: &Identity, extent: SectionExtent) -> Encoding {
    match extent {
        SectionExtent::Rows if identity.field("cache") == Some("f16") => Encoding::Zstd2,
        _ => Encoding::Zstd4,
    }
}

fn write_image(
    mut writer: Writer<'_>,
    identity: &Identity,
    layout: &Layout,
    image: &Image,
    extras: &Extras<'_>,
) -> io::Result<u64> {
    let ids = le_bytes(&image.ids, u32::to_le_bytes);
    let logits = image.logits.as_ref().map(|logits| le_bytes(logits, f32::to_le_bytes));
    let plain = [
        (SectionKind::Ids, Some(&ids[..])),
        (SectionKind::Text, Some(extras.text.as_bytes())),
        (SectionKind::Notes, extras.notes),
        (SectionKind::Logits, logits.as_deref()),
    ];
    for (kind, bytes) in plain {
        let Some(bytes) = bytes else { continue };
        writer.section(Section::new(kind, SectionExtent::None, 0), bytes, Encoding::Raw)?;
    }
    for (piece, bytes) in layout.pieces().iter().zip(&image.pieces) {
        let extent = SectionExtent::of(piece);
        let section = Section::new(SectionKind::Piece(piece.kind), extent, piece.layer as u32);
        let wanted = if extras.compress { encoding(identity, extent) } else { Encoding::Raw };
        writer.section(section, bytes, wanted)?;
    }
    writer.finish()
}

fn find<'a>(file: &'a SavedFile, piece: &Piece) -> Option<&'a Section> {
    let is =
        |section: &&Section| section.kind == SectionKind::Piece(piece.kind) && section.layer as usize == piece.layer;
    file.sections.iter().find(is)
}

/// Whether a file has each piece of the layout, and no other, with the bytes that the layout says.
fn check_sections(file: &SavedFile, layout: &Layout) -> Result<(), SessionError> {
    let damaged =
        |what: String, expected: String, found: String| SessionError::damaged(&file.path, what, expected, found);
    let (from, position) = (file.header.from, file.header.position);
    for piece in layout.pieces() {
        let what = title(SectionKind::Piece(piece.kind), piece.layer as u32);
        let Some(section) = find(file, piece) else {
            return Err(damaged(format!("section {what}"), "one".to_owned(), "none".to_owned()));
        };
        if section.extent != SectionExtent::of(piece) {
            let expected = SectionExtent::of(piece).name().to_owned();
            return Err(damaged(format!("{what}: extent"), expected, section.extent.name().to_owned()));
        }
        // Positions are not longer than the file's ids.
        let expected = piece.bytes(from as usize, position as usize);
        if section.raw_bytes != expected {
            return Err(damaged(format!("{what}: raw bytes"), expected.to_string(), section.raw_bytes.to_string()));
        }
    }
    let known = |section: &&Section| match section.kind {
        SectionKind::Piece(kind) => {
            layout.pieces().iter().any(|piece| piece.kind == kind && piece.layer as u32 == section.layer)
        }
        _ => true,
    };
    match file.sections.iter().find(|section| !known(section)) {
        Some(section) => Err(damaged(format!("section {}", section.title()), "none".to_owned(), "one".to_owned())),
        None => Ok(()),
    }
}

/// Host memory for the whole image, and for the section that takes the most while it is read.
fn bytes_to_load(files: &[SavedFile], layout: &Layout, position: usize) -> u64 {
    let plain = files[0].sections.iter().filter(|section| !matches!(section.kind, SectionKind::Piece(_)));
    let plain: u64 = plain.map(|section| section.raw_bytes).fold(0, u64::saturating_add);
    let sections = files.iter().flat_map(|file| &file.sections);
    let scratch = sections.map(|section| section.stored_bytes.saturating_add(section.raw_bytes)).max().unwrap_or(0);
    [layout.fixed_bytes(), layout.row_bytes(0, position), plain, scratch].into_iter().fold(0, u64::saturating_add)
}

/// Puts a session together from its files, newest first. An error comes with the file that is to blame.
fn merge(files: &[SavedFile], layout: &Layout, position: usize) -> Result<Loaded, (SessionError, usize)> {
    let newest = &files[0];
    let own = |error| (error, 0);
    let ids = newest.ids().map_err(own)?;
    let mut pieces: Vec<Vec<u8>> =
        layout.pieces().iter().map(|piece| vec![0; piece.bytes(0, position) as usize]).collect();
    for (index, file) in files.iter().enumerate() {
        let blame = |error| (error, index);
        let (from, to) = (file.header.from as usize, file.header.position as usize);
        if index > 0 {
            if file.ids().map_err(blame)?[..] != ids[..to] {
                let expected = format!("the first {to} of {}", newest.path.display());
                return Err(blame(SessionError::damaged(&file.path, "ids", expected, "others")));
            }
            let others = file.sections.iter().filter(|section| section.extent != SectionExtent::Rows);
            others
                .filter(|section| section.kind != SectionKind::Ids)
                .try_for_each(|s| file.verify(s))
                .map_err(blame)?;
        }
        for (piece, whole) in layout.pieces().iter().zip(&mut pieces) {
            let section = find(file, piece).expect("sections were checked");
            match section.extent {
                SectionExtent::Rows => {
                    let range = piece.bytes(0, from) as usize..piece.bytes(0, to) as usize;
                    file.fill(section, &mut whole[range]).map_err(blame)?;
                }
                _ if index == 0 => file.fill(section, whole).map_err(blame)?,
                _ => {}
            }
        }
    }
    let bytes = |kind| newest.find(kind).map(|section| newest.bytes(section)).transpose().map_err(own);
    let text = String::from_utf8(bytes(SectionKind::Text)?.unwrap_or_default());
    let text = text.map_err(|error| own(SessionError::damaged(&newest.path, "text", "UTF-8", error.utf8_error())))?;
    let notes = bytes(SectionKind::Notes)?;
    let floats = |bytes: Vec<u8>| bytes.as_chunks::<4>().0.iter().map(|value| f32::from_le_bytes(*value)).collect();
    let logits = bytes(SectionKind::Logits)?.map(floats);
    let image = Image { ids, from: 0, logits, pieces };
    let (expected, id) = (newest.header.id, snapshot_id(&newest.header.identity, layout, &image));
    if id != expected {
        return Err(own(SessionError::damaged(&newest.path, "snapshot id", expected, id)));
    }
    Ok(Loaded { image, id, notes, text })
}
