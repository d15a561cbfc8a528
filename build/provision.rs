//! Fetches pinned wheels into the cache folder. Also used by the test that needs libclang.

use super::util;
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The SYCL runtime with its kernel compiler, and the OpenCL CPU driver: what `dpcpp-cpp-rt` asks for, less OpenMP.
const TOOLCHAIN: &[(&str, &str)] = &[
    ("intel-sycl-rt==2026.2.0", "ad920da1ffcb43edbc03422a7c85094997e6d578f9ab534743442af70bcbfaa1"),
    ("intel-opencl-rt==2026.2.0", "6b6215a420598b4999ee01caca6d5cbe106aa4155c46c52377619c5aafce9f67"),
    ("intel-cmplr-lib-rt==2026.2.0", "9f713083073a820d2496a6da8e8d4f3482aba6640f74521d25ea48dcebe72748"),
    ("intel-cmplr-lib-ur==2026.2.0", "0d0a5099aa2e1e38375b509c2a8182e719ed74aa656b2a800ddf6cfbd3384b80"),
    ("intel-cmplr-lic-rt==2026.2.0", "402d9bc7fd418ab2df7a75b0545cf447bb52e02bedf4e3af0e7d5809b66d749d"),
    ("tbb==2023.2.0", "7d80615b6e970f11671fa05b6eaa9483ac864fbfe525ac280271a78b37870b7c"),
    ("tcmlib==1.6.0", "46c2491988bfd18c4733eeb08aca6a386706a497b92cc51d155f37ddea003c14"),
    ("umf==1.2.0", "238d186fdd9e9c0fe1489da95b19b0b79045fe26c4aa98bd0a022a2a3603c195"),
];

/// For bindgen.
const LIBCLANG: &[(&str, &str)] =
    &[("libclang==18.1.1", "c533091d8a3bbf7460a00cb6c1a71da93bffe148f172c7d03b1c31fbf8aa2a0b")];

/// Parts of the wheels that nothing here loads.
const UNUSED: &[&str] = &[
    "tmp",
    "bin",
    "opt",
    "lib/icx-lto.so",
    "lib/libomptarget.so",
    "lib/libomptarget.sycl.wrap.so",
    "lib/libsycl-preview.so",
    "lib/libsycl-preview.so.9",
    "lib/libsycl-preview.so.9.0.0",
];

/// The prefix of the pinned toolchain, fetched first if it is not there.
pub fn toolchain(cache: &Path) -> Result<PathBuf, String> {
    let target = cache.join("toolchain-2026.2.0");
    if !target.exists() {
        if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
            return Err("the SYCL toolchain exists for Linux on x86-64 only".into());
        }
        fetch(
            &target,
            TOOLCHAIN,
            "the SYCL toolchain (480 MB to download; 2.2 GB of disk while unpacking, 0.7 GB after)",
        )
        .map_err(|why| {
            format!("the SYCL toolchain could not be fetched into {}\n{why}\n{WAYS_OUT}", target.display())
        })?;
    }
    Ok(target)
}

/// The folder of the pinned libclang.so, fetched first if it is not there.
pub fn libclang(cache: &Path) -> Result<PathBuf, String> {
    let target = cache.join("libclang-18.1.1");
    if !target.exists() {
        fetch(&target, LIBCLANG, "libclang for the bindings (25 MB to download)")?;
    }
    python_packages(&target).map(|p| p.join("clang/native"))
}

const WAYS_OUT: &str = "Ways out:
  - build again with network access (the wheels come from the package index that pip is set up for);
  - install Intel's oneAPI DPC++ compiler 2026 or later, and set ONEAPI_ROOT or put icpx on PATH;
  - set BANKSHOT_SYCL_ROOT to a folder with such a compiler's include/ and lib/;
  - set BANKSHOT_CACHE_DIR to a folder with more room.";

fn fetch(target: &Path, wheels: &[(&str, &str)], what: &str) -> Result<(), String> {
    let cache = target.parent().ok_or("the cache folder has no parent")?;
    fs::create_dir_all(cache).map_err(|e| format!("cannot create {}: {e}", cache.display()))?;
    // Two builds at once: the second waits, then finds the work done. The system drops the lock if we die.
    let lock_path = suffixed(target, ".lock");
    let lock = File::create(&lock_path).map_err(|e| format!("cannot create {}: {e}", lock_path.display()))?;
    if lock.try_lock().is_err() {
        util::say(&format!("waiting for another build that is fetching into {}", target.display()));
    }
    lock.lock().map_err(|e| format!("cannot lock {}: {e}", lock_path.display()))?;
    if target.exists() {
        return Ok(());
    }
    util::say(&format!("fetching {what} into {}", target.display()));
    remove_leftovers(target);
    // A name of our own: the pip of a build that was killed may still be writing under its name.
    let part = suffixed(target, &format!(".part-{}", std::process::id()));
    let result = fill(&part, wheels).and_then(|()| {
        fs::rename(&part, target).map_err(|e| format!("cannot rename {} to {}: {e}", part.display(), target.display()))
    });
    if result.is_err() {
        let _ = fs::remove_dir_all(&part);
    }
    result
}

/// Removes what interrupted builds left. Only with the lock, so that nobody is using it.
fn remove_leftovers(target: &Path) {
    let prefix = suffixed(target, ".part-");
    let Some(prefix) = prefix.file_name() else { return };
    for entry in target.parent().into_iter().filter_map(|cache| fs::read_dir(cache).ok()).flatten().flatten() {
        if entry.file_name().as_encoded_bytes().starts_with(prefix.as_encoded_bytes()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

fn fill(part: &Path, wheels: &[(&str, &str)]) -> Result<(), String> {
    util::run(Command::new("python3").args(["-m", "venv"]).arg(part)).map_err(|text| {
        if text.contains("ensurepip") {
            format!("python3 has no venv module (Debian and Ubuntu: apt install python3-venv): {}", last_lines(&text))
        } else {
            format!("python3 could not make a virtual environment: {}", last_lines(&text))
        }
    })?;
    let list = part.join("wheels.txt");
    let lines: String = wheels.iter().map(|(wheel, sha256)| format!("{wheel} --hash=sha256:{sha256}\n")).collect();
    fs::write(&list, lines).map_err(|e| format!("cannot write {}: {e}", list.display()))?;
    // pip's own temporary files go where there must be room anyway.
    let scratch = part.join("tmp");
    fs::create_dir_all(&scratch).map_err(|e| format!("cannot create {}: {e}", scratch.display()))?;
    util::run(
        Command::new(part.join("bin/python3"))
            .args(["-m", "pip", "install", "--quiet", "--no-deps", "--no-cache-dir", "--disable-pip-version-check"])
            .args(["--only-binary", ":all:", "--require-hashes", "--requirement"])
            .arg(&list)
            .env("TMPDIR", &scratch),
    )
    .map_err(|text| {
        if text.contains("No space left on device") {
            format!("the disk is full: {}", last_lines(&text))
        } else {
            format!("pip failed: {}", last_lines(&text))
        }
    })?;
    prune(part).map_err(|e| format!("cannot tidy {}: {e}", part.display()))
}

/// Removes what is not needed, and turns copies of one library under several names into links.
fn prune(root: &Path) -> std::io::Result<()> {
    for name in UNUSED {
        let path = root.join(name);
        if path.is_dir() {
            fs::remove_dir_all(path)?;
        } else if path.exists() {
            fs::remove_file(path)?;
        }
    }
    if let Ok(packages) = python_packages(root) {
        for tool in ["pip", "setuptools", "pkg_resources"] {
            let _ = fs::remove_dir_all(packages.join(tool));
        }
    }
    let mut by_size: HashMap<u64, Vec<PathBuf>> = HashMap::new();
    for entry in fs::read_dir(root.join("lib"))? {
        let entry = entry?;
        let meta = entry.metadata()?;
        if meta.is_file() && meta.size() > 1 << 20 {
            by_size.entry(meta.size()).or_default().push(entry.path());
        }
    }
    for group in by_size.values() {
        for copy in &group[1..] {
            if same_bytes(&group[0], copy)? {
                fs::remove_file(copy)?;
                fs::hard_link(&group[0], copy)?;
            }
        }
    }
    Ok(())
}

fn same_bytes(a: &Path, b: &Path) -> std::io::Result<bool> {
    let (mut a, mut b) = (File::open(a)?, File::open(b)?);
    let mut blocks = [vec![0; 1 << 20], vec![0; 1 << 20]];
    loop {
        let n = a.read(&mut blocks[0])?;
        if n == 0 {
            return Ok(b.read(&mut blocks[1])? == 0);
        }
        let [x, y] = &mut blocks;
        if b.read_exact(&mut y[..n]).is_err() || x[..n] != y[..n] {
            return Ok(false);
        }
    }
}

fn python_packages(root: &Path) -> Result<PathBuf, String> {
    let lib = root.join("lib");
    let entries = fs::read_dir(&lib).map_err(|e| format!("{}: {e}", lib.display()))?;
    entries
        .flatten()
        .map(|e| e.path().join("site-packages"))
        .find(|p| p.is_dir())
        .ok_or_else(|| format!("{} has no site-packages", lib.display()))
}

/// The end of a program's output, without pip's repeated warnings.
fn last_lines(text: &str) -> String {
    let is_retry = |l: &&str| l.contains("WARNING: Retrying");
    let retry = text.lines().find(is_retry);
    let rest = text.lines().filter(|l| !l.trim().is_empty() && !is_retry(l));
    let lines: Vec<_> = retry.into_iter().chain(rest).collect();
    lines[lines.len().saturating_sub(8)..].join("\n  ")
}

/// `toolchain-2026.2.0` has no extension to replace, whatever `with_extension` thinks.
fn suffixed(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}
