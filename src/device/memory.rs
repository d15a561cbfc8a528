//! How much memory the host has to spare.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

/// Bytes of host memory that this process can still take: what the kernel calls available, or less where the limits of
/// the process's control groups leave less. None if the kernel does not say.
pub fn host_free_bytes() -> Option<u64> {
    free_bytes_below(Path::new("/"))
}

/// The same, with the kernel's files below any folder.
fn free_bytes_below(root: &Path) -> Option<u64> {
    let available = field(&root.join("proc/meminfo"), "MemAvailable:")?.checked_mul(1024)?;
    let groups = fs::read(root.join("proc/self/cgroup")).unwrap_or_default();
    // Lines are `hierarchy:controllers:path`, of version 2 `0::path`.
    let limits = groups.split(|byte| *byte == b'\n').filter_map(|line| {
        let mut parts = line.splitn(3, |byte| *byte == b':').skip(1);
        let (controllers, path) = (parts.next()?, Path::new(OsStr::from_bytes(parts.next()?)));
        if controllers.is_empty() {
            least_free(&root.join("sys/fs/cgroup"), path, &VERSION_2)
        } else if controllers.split(|byte| *byte == b',').any(|name| name == b"memory") {
            least_free(&root.join("sys/fs/cgroup/memory"), path, &VERSION_1)
        } else {
            None
        }
    });
    limits.chain([available]).min()
}

/// Names of a control group's files.
struct Files {
    limit: &'static str,
    used: &'static str,
    /// The field of `memory.stat` with the page cache that the kernel takes back first, groups below included.
    cache: &'static str,
}

const VERSION_1: Files =
    Files { limit: "memory.limit_in_bytes", used: "memory.usage_in_bytes", cache: "total_inactive_file" };
const VERSION_2: Files = Files { limit: "memory.max", used: "memory.current", cache: "inactive_file" };

/// The least that the group and those above it leave. In a container the path can be the host's, whose folders are not
/// there; then the mount itself, where the walk ends, is the container's group.
fn least_free(mount: &Path, group: &Path, files: &Files) -> Option<u64> {
    let names = group.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name),
        _ => None,
    });
    let mut folder = mount.to_path_buf();
    folder.extend(names);
    folder.ancestors().take_while(|folder| folder.starts_with(mount)).filter_map(|folder| free(folder, files)).min()
}

/// What one group's limit leaves, if it has one.
fn free(folder: &Path, files: &Files) -> Option<u64> {
    let limit = number(&folder.join(files.limit))?;
    let used = number(&folder.join(files.used)).unwrap_or(0);
    let cache = field(&folder.join("memory.stat"), files.cache).unwrap_or(0);
    Some(limit.saturating_sub(used.saturating_sub(cache)))
}

/// The only number of a file; the limit `max` is none.
fn number(path: &Path) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// The number after a name at the beginning of a line.
fn field(path: &Path, name: &str) -> Option<u64> {
    let text = fs::read_to_string(path).ok()?;
    let mut lines = text.lines().map(str::split_whitespace);
    lines.find_map(|mut words| (words.next() == Some(name)).then(|| words.next())?)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    /// What is free with these files; `proc/meminfo` says 8 GiB unless it is among them.
    fn free_with(files: &[(&str, &str)]) -> Option<u64> {
        let root = tempfile::tempdir().expect("a folder");
        let meminfo = "MemTotal:       16777216 kB\nMemFree:         1048576 kB\nMemAvailable:    8388608 kB\n";
        for (path, text) in [("proc/meminfo", meminfo)].iter().chain(files) {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            fs::write(path, text).expect("written");
        }
        free_bytes_below(root.path())
    }

    #[test]
    fn without_limits_it_is_what_the_kernel_calls_available() {
        assert_eq!(free_with(&[]), Some(8 * GIB));
        assert_eq!(free_with(&[("proc/self/cgroup", "0::/\n")]), Some(8 * GIB));
        let unlimited = [("proc/self/cgroup", "0::/a\n"), ("sys/fs/cgroup/a/memory.max", "max\n")];
        assert_eq!(free_with(&unlimited), Some(8 * GIB));
        let other = [("proc/self/cgroup", "3:cpu,cpuacct:/a\n"), ("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "7")];
        assert_eq!(free_with(&other), Some(8 * GIB));
        for text in ["", "MemFree: 4 kB\n", "MemAvailable:\n", "MemAvailable: much kB\n"] {
            assert_eq!(free_with(&[("proc/meminfo", text)]), None, "{text:?}");
        }
        let huge = [("proc/meminfo", "MemAvailable: 18446744073709551615 kB\n")];
        assert_eq!(free_with(&huge), None);
    }

    #[test]
    fn the_narrowest_group_above_counts_and_its_page_cache_is_free() {
        let group = ("proc/self/cgroup", "0::/a/b/c\n");
        let outer =
            [("sys/fs/cgroup/a/memory.max", "4294967296\n"), ("sys/fs/cgroup/a/memory.current", "1073741824\n")];
        assert_eq!(free_with(&[group, outer[0], outer[1]]), Some(3 * GIB));
        let inner = [
            ("sys/fs/cgroup/a/b/c/memory.max", "3221225472\n"),
            ("sys/fs/cgroup/a/b/c/memory.current", "2147483648\n"),
            ("sys/fs/cgroup/a/b/c/memory.stat", "anon 7\nfile 9\ninactive_file 1000\nactive_file 3\n"),
        ];
        let all = [group, outer[0], outer[1], inner[0], inner[1], inner[2]];
        assert_eq!(free_with(&all), Some(GIB + 1000));
        // The same groups of a process that is in the outer one only.
        assert_eq!(free_with(&[&[("proc/self/cgroup", "0::/a\n")], &all[1..]].concat()), Some(3 * GIB));
        // A group that uses more than its limit, which was lowered, leaves nothing.
        let over = [group, inner[0], ("sys/fs/cgroup/a/b/c/memory.current", "9999999999\n")];
        assert_eq!(free_with(&over), Some(0));
        // More page cache than use is what two files read at two times can say.
        let cache = ("sys/fs/cgroup/a/b/c/memory.stat", "inactive_file 99999999999\n");
        assert_eq!(free_with(&[group, inner[0], inner[1], cache]), Some(3 * GIB));
    }

    #[test]
    fn version_1_has_its_own_files() {
        let group = ("proc/self/cgroup", "12:cpu:/x\n5:hugetlb,memory:/a/b\n0::/a\n");
        let limits = [
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
            ("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "2147483648\n"),
            ("sys/fs/cgroup/memory/a/memory.usage_in_bytes", "1073741824\n"),
            ("sys/fs/cgroup/memory/a/memory.stat", "inactive_file 1\ntotal_inactive_file 50\n"),
            ("sys/fs/cgroup/memory/a/b/memory.limit_in_bytes", "9223372036854771712\n"),
            ("sys/fs/cgroup/memory/x/memory.limit_in_bytes", "5\n"),
        ];
        assert_eq!(free_with(&[&[group], &limits[..]].concat()), Some(GIB + 50));
    }

    #[test]
    fn a_container_sees_its_group_at_the_mount() {
        let limits = [("sys/fs/cgroup/memory.max", "1000\n"), ("sys/fs/cgroup/memory.current", "400\n")];
        for path in ["/", "/docker/0123", "/../../other", ""] {
            let line = format!("0::{path}\n");
            assert_eq!(free_with(&[("proc/self/cgroup", &line), limits[0], limits[1]]), Some(600), "{path}");
        }
        // Without a figure of its use, a limit is all that is known.
        assert_eq!(free_with(&[("proc/self/cgroup", "0::/\n"), limits[0]]), Some(1000));
    }

    #[test]
    fn garbage_limits_nothing() {
        for text in ["", "-1\n", "12 34\n", "much\n", "99999999999999999999999\n"] {
            let files = [("proc/self/cgroup", "0::/a\n"), ("sys/fs/cgroup/a/memory.max", text)];
            assert_eq!(free_with(&files), Some(8 * GIB), "{text:?}");
        }
        for text in ["0", "0:", "::::\n:\n", "\n\n", "0:memory\n"] {
            let files = [("proc/self/cgroup", text), ("sys/fs/cgroup/memory.max", "max")];
            assert_eq!(free_with(&files), Some(8 * GIB), "{text:?}");
        }
    }
}
