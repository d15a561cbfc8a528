//! The folder that a package is laid out in.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

pub struct Folder {
    path: PathBuf,
    /// Bytes of what was written, by path; nothing for a link.
    written: RefCell<BTreeMap<String, u64>>,
}

impl Folder {
    pub fn new(path: &Path) -> Result<Self> {
        fs::create_dir_all(path).with_context(|| format!("cannot create {}", path.display()))?;
        let path = path.canonicalize().with_context(|| path.display().to_string())?;
        Ok(Self { path, written: RefCell::default() })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn at(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// A file that `fill` makes under a temporary name, so that a program that uses an earlier package keeps its file.
    pub fn make(&self, name: &str, fill: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
        let path = self.at(name);
        let part = self.at(&format!("{name}.part"));
        let parent = path.parent().expect("a file below the folder has a parent");
        fs::create_dir_all(parent).with_context(|| format!("cannot create {}", parent.display()))?;
        let result = fill(&part).and_then(|()| {
            let file = fs::metadata(&part).with_context(|| part.display().to_string())?;
            let mode = if file.permissions().mode() & 0o100 != 0 { 0o755 } else { 0o644 };
            fs::set_permissions(&part, PermissionsExt::from_mode(mode))?;
            fs::rename(&part, &path).with_context(|| format!("cannot write {}", path.display()))?;
            Ok(file.len())
        });
        if result.is_err() {
            let _ = fs::remove_file(&part);
        }
        let bytes = result.with_context(|| format!("{name} could not be made"))?;
        self.written.borrow_mut().insert(name.to_owned(), bytes);
        Ok(())
    }

    pub fn copy(&self, from: &Path, name: &str) -> Result<()> {
        self.make(name, |to| fs::copy(from, to).map(drop).with_context(|| format!("cannot copy {}", from.display())))
    }

    pub fn write(&self, name: &str, text: &str) -> Result<()> {
        self.make(name, |to| fs::write(to, text).with_context(|| format!("cannot write {}", to.display())))
    }

    pub fn link(&self, name: &str, target: &str) -> Result<()> {
        let path = self.at(name);
        if path.symlink_metadata().is_ok() {
            fs::remove_file(&path).with_context(|| format!("cannot replace {}", path.display()))?;
        }
        std::os::unix::fs::symlink(target, &path).with_context(|| format!("cannot create {}", path.display()))?;
        self.written.borrow_mut().insert(name.to_owned(), 0);
        Ok(())
    }

    /// Sizes of files, those of licences and of the runtime together.
    pub fn print(&self) {
        let mut lines: BTreeMap<&str, u64> = BTreeMap::new();
        let written = self.written.borrow();
        for (name, bytes) in written.iter() {
            let shown = ["lib/bankshot/", "share/"].into_iter().find(|folder| name.starts_with(folder)).unwrap_or(name);
            *lines.entry(shown).or_default() += bytes;
        }
        println!("{}", self.path.display());
        for (name, bytes) in lines {
            println!("{bytes:>12}  {name}");
        }
        println!("{:>12}  bytes in all", written.values().sum::<u64>());
    }
}
