//! An archive with the same bytes for the same contents, whenever and by whomever it is made.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use flate2::{Compression, GzBuilder};
use tar::{Builder, EntryType, Header};

/// The time of every entry: 1980, since some programs complain of earlier ones.
const TIME_S: u64 = 315_532_800;

/// A folder beside the target that is removed at the end.
pub struct Scratch(PathBuf);

impl Scratch {
    pub fn beside(target: &Path) -> Result<Self> {
        let parent = target.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        fs::create_dir_all(parent).with_context(|| format!("cannot create {}", parent.display()))?;
        let path = parent.join(format!(".bankshot-package-{}", std::process::id()));
        fs::create_dir(&path).with_context(|| format!("cannot create {}", path.display()))?;
        Ok(Self(path))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Files below a folder with their paths in it, in the order of names.
fn files(folder: &Path, inside: &str) -> Result<Vec<(PathBuf, String)>> {
    let mut entries = fs::read_dir(folder)
        .and_then(|entries| entries.collect::<Result<Vec<_>, _>>())
        .with_context(|| folder.display().to_string())?;
    entries.sort_by_key(fs::DirEntry::file_name);
    let mut found = Vec::new();
    for entry in entries {
        let name = format!("{inside}/{}", entry.file_name().to_string_lossy());
        match entry.path().is_dir() {
            true => found.extend(files(&entry.path(), &name)?),
            false => found.push((entry.path(), name)),
        }
    }
    Ok(found)
}

/// Packs a folder of plain files under a name.
pub fn write(target: &Path, folder: &Path, name: &str) -> Result<()> {
    let part = folder.with_file_name("archive.part");
    let file = File::create(&part).with_context(|| format!("cannot create {}", part.display()))?;
    let gzip = GzBuilder::new().mtime(0).operating_system(255).write(BufWriter::new(file), Compression::default());
    let mut archive = Builder::new(gzip);
    for (path, name) in files(folder, name)? {
        use std::os::unix::fs::PermissionsExt;
        let mut file = File::open(&path).with_context(|| path.display().to_string())?;
        let about = file.metadata().with_context(|| path.display().to_string())?;
        let mut header = Header::new_gnu();
        header.set_entry_type(EntryType::Regular);
        header.set_size(about.len());
        header.set_mode(about.permissions().mode() & 0o755);
        header.set_mtime(TIME_S);
        header.set_uid(0);
        header.set_gid(0);
        archive.append_data(&mut header, &name, &mut file).with_context(|| path.display().to_string())?;
    }
    let written = || -> std::io::Result<()> { archive.into_inner()?.finish()?.into_inner()?.flush() };
    written().with_context(|| format!("cannot write {}", part.display()))?;
    fs::rename(&part, target).with_context(|| format!("cannot write {}", target.display()))?;
    let bytes = fs::metadata(target).with_context(|| target.display().to_string())?.len();
    println!("{}\n{bytes:>12}  bytes", target.display());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_files_give_the_same_bytes() {
        let scratch = Scratch::beside(&std::env::temp_dir().join("x")).unwrap();
        let mut archives = Vec::new();
        for (round, order) in [["b", "a/c"], ["a/c", "b"]].into_iter().enumerate() {
            let folder = scratch.path().join(round.to_string()).join("files");
            fs::create_dir_all(folder.join("a")).unwrap();
            for name in order {
                fs::write(folder.join(name), name).unwrap();
            }
            let old = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000 * round as u64);
            File::options().write(true).open(folder.join("b")).unwrap().set_modified(old).unwrap();
            let target = scratch.path().join(format!("{round}.tar.gz"));
            write(&target, &folder, "top").unwrap();
            archives.push(fs::read(target).unwrap());
        }
        assert_eq!(archives[0], archives[1]);
        let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(&archives[0][..]));
        let names: Vec<_> = archive.entries().unwrap().map(|e| e.unwrap().path().unwrap().into_owned()).collect();
        assert_eq!(names, [Path::new("top/a/c"), Path::new("top/b")]);
    }
}
