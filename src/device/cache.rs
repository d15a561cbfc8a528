//! Where device binaries are kept between starts. Only paths are made here; the C side reads and writes the files, and
//! trusts none that it cannot verify.

use super::DeviceInfo;
use super::kernels::ModuleCode;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The cache folder of this user: `BANKSHOT_CACHE_DIR`, else `XDG_CACHE_HOME/bankshot`, else `~/.cache/bankshot`.
pub fn folder() -> Option<PathBuf> {
    folder_from(|name| std::env::var_os(name))
}

/// The same, of any environment.
pub fn folder_from(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let set = |name: &str| variable(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    set("BANKSHOT_CACHE_DIR")
        .or_else(|| set("XDG_CACHE_HOME").map(|p| p.join("bankshot")))
        .or_else(|| set("HOME").map(|p| p.join(".cache/bankshot")))
}

/// `<folder>/kernels/<device and driver>/<module>-<hash>.bin`; a new driver or new code gets a new name.
pub fn module_path(folder: &Path, device: &DeviceInfo, code: &ModuleCode) -> PathBuf {
    let device = fnv1a(&[&device.backend, &device.name, &device.driver]);
    folder.join("kernels").join(format!("{device:016x}")).join(format!("{}-{}.bin", code.name, code.hash))
}

/// FNV-1a with a zero byte after each part. The file holds the names themselves, so that a collision costs a rebuild.
fn fnv1a(parts: &[&str]) -> u64 {
    let bytes = parts.iter().flat_map(|p| p.bytes().chain([0]));
    bytes.fold(0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_variable_that_is_set_decides() {
        let all = [("BANKSHOT_CACHE_DIR", "/a"), ("XDG_CACHE_HOME", "/b"), ("HOME", "/c")];
        let with = |from: usize, empty: bool| {
            folder_from(|name| {
                let index = all.iter().position(|(n, _)| *n == name)?;
                if index < from { empty.then(OsString::new) } else { Some(all[index].1.into()) }
            })
        };
        for empty in [false, true] {
            assert_eq!(with(0, empty), Some("/a".into()));
            assert_eq!(with(1, empty), Some("/b/bankshot".into()));
            assert_eq!(with(2, empty), Some("/c/.cache/bankshot".into()));
            assert_eq!(with(3, empty), None);
        }
    }

    #[test]
    fn parts_do_not_run_together() {
        assert_ne!(fnv1a(&["ab", "c"]), fnv1a(&["a", "bc"]));
    }
}
