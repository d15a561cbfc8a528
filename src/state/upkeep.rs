//! What becomes of saved sessions: listing, deleting, giving up the least used.

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

use super::codec::Encoding;
use super::disk::WriteFile;
use super::file::{SavedFile, Writer};
use super::format::{Header, Section, SectionExtent};
use super::index::{Index, Node};
use super::store::{Failure, check_name, encoding, io_of};
use super::{Identity, Info, Mismatch, SessionError, Store};
use crate::device::host_free_bytes;

/// A file of the folder.
#[derive(Debug)]
pub struct Entry {
    pub name: String,
    /// Of the file.
    pub bytes: u64,
    /// `None` if the file cannot be opened.
    pub last_used: Option<SystemTime>,
    /// What it says of its session, or what is wrong with it.
    pub info: Result<Info, SessionError>,
}

/// Whether a session is one of this identity.
///
/// # Errors
/// The first field in which it is not.
pub fn would_take(info: &Info, identity: &Identity) -> Result<(), Mismatch> {
    identity.difference(&info.identity).map_or(Ok(()), Err)
}

impl Store {
    /// All sessions by name, damaged ones too. Headers are checked, the sections' bytes are not.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn list(&self) -> Result<Vec<Entry>, SessionError> {
        let index = self.index(&BTreeSet::new())?;
        let entry = |name: String| {
            let info = self.info(&index, &name, false);
            let (bytes, last_used) = self.use_of(&name);
            Entry { name, bytes, last_used, info }
        };
        Ok(self.names()?.into_iter().map(entry).collect())
    }

    fn use_of(&self, name: &str) -> (u64, Option<SystemTime>) {
        let file = self.disk.open(&self.path(name)).ok();
        let of = |file: &dyn super::ReadFile| (file.bytes().unwrap_or(0), file.modified().ok());
        file.map_or((0, None), |file| of(&*file))
    }

    /// Gives a session a second name, under which its snapshot stays when the first one is replaced. What had that name is replaced.
    ///
    /// # Errors
    /// When there is no such session, another one needs what is replaced, or the folder cannot be written.
    pub fn duplicate(&self, name: &str, second: &str) -> Result<(), SessionError> {
        check_name(name)?;
        check_name(second)?;
        let _lock = self.lock()?;
        self.remove_partial_files();
        let index = self.whole_index()?;
        let Some(node) = index.get(name) else { return Err(self.not_found(name)) };
        let needed = self.needed(&index, second, Some(Node { name: second.to_owned(), ..node.clone() }))?;
        if !needed.is_empty() {
            return Err(SessionError::Needed { session: second.to_owned(), by: needed });
        }
        let (from, partial, to) = (self.path(name), self.partial(second), self.path(second));
        self.disk.link(&from, &partial).map_err(|cause| SessionError::io("link", &from, cause))?;
        let renamed = self.disk.rename(&partial, &to).map_err(|cause| SessionError::io("rename", &partial, cause));
        // If both are one file already, renaming does nothing.
        let _ = self.disk.remove(&partial);
        renamed?;
        self.disk.sync_dir(&self.dir).map_err(|cause| SessionError::io("sync", &self.dir, cause))
    }

    /// Deletes a session. Sessions that are deltas of it keep it from that, unless another file has its snapshot, or unless `reparent`: then they get
    /// its rows first. If that ends half-way, all sessions are still readable.
    ///
    /// # Errors
    /// When it is needed, or the folder cannot be written.
    pub fn delete(&self, name: &str, reparent: bool) -> Result<(), SessionError> {
        check_name(name)?;
        let _lock = self.lock()?;
        if !self.names()?.iter().any(|known| known == name) {
            return Err(self.not_found(name));
        }
        let index = self.whole_index()?;
        let mut needed = self.needed(&index, name, None)?;
        if reparent && !needed.is_empty() {
            self.give_rows_to_children(&index, name)?;
            needed = self.needed(&self.whole_index()?, name, None)?;
        }
        if !needed.is_empty() {
            return Err(SessionError::Needed { session: name.to_owned(), by: needed });
        }
        self.remove(name)
    }

    fn remove(&self, name: &str) -> Result<(), SessionError> {
        let path = self.path(name);
        self.disk.remove(&path).map_err(|cause| SessionError::io("remove", &path, cause))?;
        self.disk.sync_dir(&self.dir).map_err(|cause| SessionError::io("sync", &self.dir, cause))
    }

    /// Deletes sessions until what is left is at most `max_bytes`, and those that were not used for longer than `max_age`; the least recently used
    /// first, and none that a session which is left is a delta of. Gives the names of those it deleted, in this order.
    ///
    /// # Errors
    /// When the folder cannot be read or written.
    pub fn prune(&self, max_bytes: Option<u64>, max_age: Option<Duration>) -> Result<Vec<String>, SessionError> {
        let _lock = self.lock()?;
        let now = SystemTime::now();
        let mut left: Vec<(Option<SystemTime>, String, u64)> = self
            .names()?
            .into_iter()
            .map(|name| {
                let (bytes, last_used) = self.use_of(&name);
                (last_used, name, bytes)
            })
            .collect();
        left.sort();
        let mut index = self.whole_index()?;
        let mut deleted = Vec::new();
        loop {
            let total = left.iter().map(|(.., bytes)| bytes).fold(0u64, |sum, bytes| sum.saturating_add(*bytes));
            let too_many = max_bytes.is_some_and(|most| total > most);
            let too_old = |used: SystemTime| {
                let age = now.duration_since(used).unwrap_or_default();
                max_age.is_some_and(|most| age > most)
            };
            let mut found = None;
            for (at, (used, name, _)) in left.iter().enumerate() {
                if used.is_some_and(|used| too_many || too_old(used)) && self.needed(&index, name, None)?.is_empty() {
                    found = Some(at);
                    break;
                }
            }
            let Some(at) = found else { return Ok(deleted) };
            let (_, name, _) = left.remove(at);
            self.remove(&name)?;
            index = index.with(&name, None);
            deleted.push(name);
        }
    }

    /// Rewrites each session that is a delta of this one, so that it is a delta of this one's parent, or whole.
    fn give_rows_to_children(&self, index: &Index, name: &str) -> Result<(), SessionError> {
        let Some(node) = index.get(name) else { return Ok(()) };
        let parent = self.read(name)?;
        parent.verify_all()?;
        let ids = parent.ids()?;
        for child in index.nodes().iter().filter(|child| child.adds_to(node)) {
            let file = self.read(&child.name)?;
            self.give_rows(&parent, &ids, &file, child)?;
        }
        Ok(())
    }

    fn give_rows(&self, parent: &SavedFile, ids: &[u32], file: &SavedFile, child: &Node) -> Result<(), SessionError> {
        let damaged =
            |what: String, expected: String, found: &str| SessionError::damaged(&file.path, what, expected, found);
        if let Some(mismatch) = parent.header.identity.difference(&file.header.identity) {
            return Err(SessionError::Identity { session: child.name.clone(), mismatch });
        }
        let from = file.header.from as usize;
        if file.ids()?.get(..from) != Some(ids) {
            return Err(damaged("ids".to_owned(), format!("{from} of {}", parent.path.display()), "others"));
        }
        let pairs = pairs(parent, file)?;
        let needed = pairs.iter().map(|(section, rows)| {
            let rows = rows.map_or(0, |rows| rows.raw_bytes.saturating_add(rows.stored_bytes));
            section.raw_bytes.saturating_mul(2).saturating_add(rows.saturating_mul(2))
        });
        let (needed, free) = (needed.max().unwrap_or(0), host_free_bytes().unwrap_or(i64::MAX as u64));
        if needed > free {
            return Err(SessionError::Memory { session: child.name.clone(), expected: needed, found: free });
        }
        let header = Header { parent: parent.header.parent, from: parent.header.from, ..file.header.clone() };
        let start = header.encode().map_err(|found| damaged("identity".to_owned(), "fields".to_owned(), &found))?;
        let compress = file.sections.iter().any(|section| section.encoding != Encoding::Raw);
        // It was not used by this.
        let modified = file.file.modified().map_err(|cause| SessionError::io("read", &file.path, cause))?;
        self.put(&child.name, Some(modified), |out| copy(parent, file, &pairs, &start, compress, out))?;
        Ok(())
    }
}

/// The sections of a file, rows with those that come before them.
fn pairs<'a>(
    parent: &'a SavedFile,
    file: &'a SavedFile,
) -> Result<Vec<(&'a Section, Option<&'a Section>)>, SessionError> {
    let pair = |section: &'a Section| {
        if section.extent != SectionExtent::Rows {
            return Ok((section, None));
        }
        let found = parent.sections.iter().find(|rows| rows.rank() == section.rank() && rows.extent == section.extent);
        let missing = || SessionError::damaged(&parent.path, format!("section {}", section.title()), "one", "none");
        found.map(|rows| (section, Some(rows))).ok_or_else(missing)
    };
    file.sections.iter().map(pair).collect()
}

fn copy(
    parent: &SavedFile,
    file: &SavedFile,
    pairs: &[(&Section, Option<&Section>)],
    start: &[u8],
    compress: bool,
    out: &mut dyn WriteFile,
) -> Result<u64, Failure> {
    let mut writer = Writer::new(out, start).map_err(io_of)?;
    for (section, rows) in pairs {
        let written = match rows {
            None => {
                let mut stored = vec![0; section.stored_bytes as usize];
                file.stored(section, &mut stored).map_err(Failure::Error)?;
                writer.stored(section, &stored)
            }
            Some(rows) => {
                let mut bytes = vec![0; (rows.raw_bytes + section.raw_bytes) as usize];
                let (first, second) = bytes.split_at_mut(rows.raw_bytes as usize);
                parent.fill(rows, first).map_err(Failure::Error)?;
                file.fill(section, second).map_err(Failure::Error)?;
                let wanted = if compress { encoding(&file.header.identity, section.extent) } else { Encoding::Raw };
                writer.section((*section).clone(), &bytes, wanted)
            }
        };
        written.map_err(io_of)?;
    }
    writer.finish().map_err(io_of)
}
