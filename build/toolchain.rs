//! Which SYCL toolchain to build with.
//!
//! In this order: `BANKSHOT_SYCL_ROOT`; a oneAPI toolkit (`icpx` on `PATH`, then `ONEAPI_ROOT`); the one in the cache
//! folder; a fresh one, fetched into the cache folder.

use crate::{provision, util};
use std::fs;
use std::path::{Path, PathBuf};

/// The oldest libsycl that has all that the build asks of its kernel compiler.
const OLDEST_LIBSYCL: u32 = 9;

pub struct Toolchain {
    root: PathBuf,
    /// Changes whenever the compiler does.
    pub version: String,
}

impl Toolchain {
    pub fn lib(&self) -> PathBuf {
        self.root.join("lib")
    }

    /// Header folders, SYCL's own first.
    pub fn include(&self) -> [PathBuf; 2] {
        [self.root.join("include"), self.root.join("include/sycl")]
    }

    /// Takes a prefix if everything that the build needs is in it.
    fn at(root: &Path) -> Result<Self, String> {
        let root = root.canonicalize().map_err(|e| format!("{}: {e}", root.display()))?;
        let needed = [
            "include/sycl/sycl.hpp",
            "include/sycl/version.hpp",
            "lib/libsycl.so",
            "lib/libsycl-jit.so",
            "lib/libOpenCL.so",
            "lib/libintelocl.so",
        ];
        let missing: Vec<_> = needed.iter().filter(|f| !root.join(f).exists()).copied().collect();
        if !missing.is_empty() {
            return Err(format!("{} has no {}", root.display(), missing.join(", ")));
        }
        let text = fs::read_to_string(root.join("include/sycl/version.hpp")).map_err(|e| e.to_string())?;
        let number = |name: &str| {
            text.lines()
                .find_map(|l| l.strip_prefix("#define ")?.strip_prefix(name)?.trim().parse::<u32>().ok())
                .unwrap_or(0)
        };
        let libsycl = number("__LIBSYCL_MAJOR_VERSION");
        if libsycl < OLDEST_LIBSYCL {
            return Err(format!("{} has libsycl {libsycl}, and {OLDEST_LIBSYCL} or later is needed", root.display()));
        }
        let jit_bytes = fs::metadata(root.join("lib/libsycl-jit.so")).map_err(|e| e.to_string())?.len();
        let version = format!("libsycl {libsycl}, compiler {}, jit {jit_bytes}", number("__SYCL_COMPILER_VERSION"));
        Ok(Self { root, version })
    }
}

/// Prefixes of oneAPI compilers on this machine.
fn toolkits() -> Vec<PathBuf> {
    let mut found = Vec::new();
    for dir in std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()) {
        if let Ok(icpx) = dir.join("icpx").canonicalize() {
            // <prefix>/bin/icpx, or <prefix>/bin/<something>/icpx.
            found.extend(icpx.ancestors().skip(2).take(2).map(Path::to_path_buf));
            break;
        }
    }
    if let Some(root) = std::env::var_os("ONEAPI_ROOT").filter(|v| !v.is_empty()) {
        found.push(PathBuf::from(root).join("compiler/latest"));
    }
    found
}

pub fn find() -> Result<Toolchain, String> {
    for name in ["BANKSHOT_SYCL_ROOT", "ONEAPI_ROOT", "BANKSHOT_CACHE_DIR", "XDG_CACHE_HOME", "HOME"] {
        println!("cargo:rerun-if-env-changed={name}");
    }
    if let Some(root) = std::env::var_os("BANKSHOT_SYCL_ROOT").filter(|v| !v.is_empty()) {
        return Toolchain::at(Path::new(&root)).map_err(|e| format!("BANKSHOT_SYCL_ROOT cannot be used: {e}"));
    }
    let mut refused = Vec::new();
    for root in toolkits() {
        match Toolchain::at(&root) {
            Ok(toolchain) => return Ok(toolchain),
            Err(why) => refused.push(why),
        }
    }
    if let [.., why] = &refused[..] {
        println!("cargo:warning=the oneAPI toolkit on this machine is not used: {why}");
    }
    let root = provision::toolchain(&util::cache_dir()?)?;
    Toolchain::at(&root)
        .map_err(|e| format!("the fetched toolchain is not whole: {e}; delete {} and build again", root.display()))
}
