//! The packages that `build/package` makes, as others would use them: libraries in programs in C, the program from its
//! archive.

#[path = "support/packaged.rs"]
mod packaged;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;

use packaged::{flags, package};
use regex::Regex;

/// What names the cache folder.
const CACHE: [&str; 3] = ["BANKSHOT_CACHE_DIR", "XDG_CACHE_HOME", "HOME"];
const DIGITS_BELOW_1000: u32 = 10 + 2 * 90 + 3 * 900;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// An empty folder, the same in each run, so that runs do not add up.
fn empty(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("package").join(name);
    if path.exists() {
        fs::remove_dir_all(&path).unwrap();
    }
    fs::create_dir_all(&path).unwrap();
    path
}

fn output(command: &mut Command) -> Output {
    command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"))
}

fn stdout(command: &mut Command) -> String {
    let output = output(command);
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn error(command: &mut Command) -> String {
    let output = output(command);
    assert!(!output.status.success(), "{command:?} succeeds");
    String::from_utf8(output.stderr).unwrap()
}

/// The libraries, moved after they were laid out.
static LIBRARIES: LazyLock<PathBuf> = LazyLock::new(|| {
    let folder = empty("libraries");
    let printed = stdout(&mut package("lib", &folder.join("before")));
    assert!(printed.contains("  lib/libbankshot.a\n"), "no size of the library: {printed}");
    fs::rename(folder.join("before"), folder.join("moved")).unwrap();
    folder.join("moved")
});

/// The unpacked archive.
static PROGRAM: LazyLock<PathBuf> = LazyLock::new(|| {
    let folder = empty("program");
    let archive = folder.join("bankshot.tar.gz");
    stdout(&mut package("tar", &archive));
    stdout(Command::new("tar").arg("xzf").arg(&archive).current_dir(&folder));
    fs::remove_file(archive).unwrap();
    let entries: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(entries.len(), 1, "one folder, and nothing of the work left: {entries:?}");
    entries[0].clone()
});

fn all(pattern: &str, text: &str) -> BTreeSet<String> {
    Regex::new(pattern).unwrap().captures_iter(text).map(|found| found[1].to_owned()).collect()
}

/// Functions that the header declares.
fn declared() -> BTreeSet<String> {
    let text = fs::read_to_string(LIBRARIES.join("include/bankshot.h")).unwrap();
    let text = Regex::new(r"(?s)/\*.*?\*/|//[^\n]*|(?m:^#[^\n]*)").unwrap().replace_all(&text, "");
    all(r"\b(bankshot_\w+)\s*\(", &text)
}

/// Names of libraries that were loaded, by what the dynamic linker says.
fn loaded(command: &mut Command) -> BTreeSet<PathBuf> {
    let output = output(command.env("LD_DEBUG", "libs"));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {text}");
    let paths = all(r"(?m)calling init: (.+)$", &text);
    paths.iter().map(|path| Path::new(path).canonicalize().unwrap()).collect()
}

/// All that was loaded is in the package, or the system's and nothing that the package has.
fn assert_self_contained(paths: &BTreeSet<PathBuf>, package: &Path) {
    let package = package.canonicalize().unwrap();
    for path in paths.iter().filter(|path| !path.starts_with(&package)) {
        let is_system = path.starts_with("/lib") || path.starts_with("/lib64") || path.starts_with("/usr/lib");
        assert!(is_system, "{} is loaded", path.display());
        let own = package.join("lib/bankshot").join(path.file_name().unwrap());
        assert!(!own.exists(), "{} is loaded instead of {}", path.display(), own.display());
    }
}

fn file_names(paths: &BTreeSet<PathBuf>) -> Vec<&str> {
    paths.iter().map(|path| path.file_name().unwrap().to_str().unwrap()).collect()
}

#[test]
fn both_libraries_export_what_the_header_declares() {
    let declared = declared();
    assert!(!declared.is_empty());
    let lib = LIBRARIES.join("lib");
    for (file, option) in [("libbankshot.a", "--extern-only"), ("libbankshot.so", "--dynamic")] {
        let text = stdout(Command::new("nm").args([option, "--defined-only"]).arg(lib.join(file)));
        assert_eq!(all(r"(?m)^[0-9a-f]+ \w (\S+)$", &text), declared, "{file}");
    }
    let text = stdout(Command::new("ar").arg("t").arg(lib.join("libbankshot.a")));
    assert_eq!(text, "bankshot.o\n");
}

#[test]
fn a_program_has_the_library_another_rust_library_and_cpp() {
    let folder = empty("links");
    let at = |name: &str| folder.join(name);
    let parts = root().join("tests/package");
    let names = declared();
    let api: String = names.iter().map(|name| format!("(function *)&{name},\n")).collect();
    fs::write(at("api.inc"), api).unwrap();
    let mut rustc = Command::new("rustc");
    rustc
        .args(["--edition=2024", "--crate-type=staticlib"])
        .arg(parts.join("other.rs"))
        .arg("-o")
        .arg(at("libother.a"));
    stdout(&mut rustc);
    let mut cxx = Command::new("g++");
    cxx.args(["-std=c++17", "-O0", "-c"]).arg(parts.join("other.cpp")).arg("-o").arg(at("other.o"));
    stdout(&mut cxx);

    for name in ["bankshot", "bankshot-shared"] {
        let program = at(name);
        // The other parts first: the linker prefers what it saw first wherever it finds the same name twice.
        let mut cc = Command::new("cc");
        cc.args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-I"]).arg(&folder).arg(parts.join("program.c"));
        cc.arg(at("other.o")).arg(at("libother.a")).args(flags(&LIBRARIES, name)).arg("-lstdc++");
        stdout(cc.arg("-o").arg(&program));
        let run = || {
            let mut command = Command::new(&program);
            // Kernels are built once for all tests; a program in C has no processes of its own for that.
            command.env_clear().envs(std::env::vars().filter(|(name, _)| CACHE.contains(&name.as_str())));
            command
        };
        let numbers = format!("{} {DIGITS_BELOW_1000} {DIGITS_BELOW_1000} 1", names.len());
        let text = stdout(&mut run());
        assert_eq!(text.lines().nth(1), Some(numbers.as_str()), "{name}: {text}");
        assert_eq!(text.lines().next(), Some(version().as_str()), "{name}: {text}");
        // What libsycl throws is caught by what was made local.
        let text = error(run().env("ONEAPI_DEVICE_SELECTOR", "nonsense"));
        assert!(text.starts_with("bankshot_engine_open: ") && text.contains("nonsense"), "{name}: {text}");
        let paths = loaded(&mut run());
        let libraries = file_names(&paths);
        assert!(libraries.contains(&"libintelocl.so"), "{name}: {libraries:?}");
        let shared = libraries.iter().filter(|library| library.starts_with("libbankshot.so")).count();
        assert_eq!(shared, usize::from(name == "bankshot-shared"), "{name}: {libraries:?}");
        assert_self_contained(&paths, &LIBRARIES);
    }
    let library = fs::read(LIBRARIES.join("lib/libbankshot.so")).unwrap();
    assert!(!String::from_utf8_lossy(&library).contains("libraries/before"), "the library knows where it was laid out");
}

/// The interface's version, by the name of the shared library's file.
fn version() -> String {
    let file = LIBRARIES.join("lib/libbankshot.so").canonicalize().unwrap();
    let name = file.file_name().unwrap().to_str().unwrap();
    let version = name.strip_prefix("libbankshot.so.").unwrap().to_owned();
    let about = stdout(Command::new("readelf").arg("-d").arg(&file));
    let major = version.split('.').next().unwrap();
    assert!(about.contains(&format!("Library soname: [libbankshot.so.{major}]")), "{about}");
    version
}

/// The answers of the demo, without the speeds below them.
fn answers(command: &mut Command) -> String {
    let text = stdout(command.args(["demo", "-n", "4"]));
    text.split("\ndevice ").next().unwrap().to_owned()
}

#[test]
fn the_archive_runs_alone() {
    let program = PROGRAM.join("bin/bankshot");
    let (folder, cache) = (empty("runs"), empty("cache"));
    let expected = answers(Command::new(env!("CARGO_BIN_EXE_bankshot")).env("BANKSHOT_CACHE_DIR", &cache));
    assert!(expected.contains("The capital of Fr"), "{expected}");
    assert_eq!(answers(Command::new(&program).current_dir(&folder).env_clear()), expected);
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0, "nothing is written without a cache folder");

    // With one kind of device alone, fewer libraries are there that could bring what others lack.
    for devices in ["*:*", "opencl:cpu"] {
        let mut command = Command::new(&program);
        command.current_dir(&folder).env_clear().args(["demo", "-n", "1"]);
        command.env("BANKSHOT_CACHE_DIR", &cache).env("ONEAPI_DEVICE_SELECTOR", devices);
        let paths = loaded(&mut command);
        let names = file_names(&paths);
        assert!(names.contains(&"libintelocl.so") && names.contains(&"libOpenCL.so.1"), "{devices}: {names:?}");
        assert_self_contained(&paths, &PROGRAM);
    }
}

#[test]
fn the_archive_has_the_licences_of_what_is_in_it() {
    let place = PROGRAM.join("share/doc/bankshot");
    let read = |name: &str| {
        let bytes = fs::read(place.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        String::from_utf8_lossy(&bytes).into_owned()
    };
    assert_eq!(read("LICENSE"), fs::read_to_string(root().join("LICENSE")).unwrap());
    let crates = read("third-party/rust-crates.txt");
    assert!(crates.contains("\nblake3 1.8.7: "), "a crate is missing");
    assert!(crates.contains("\nzstd-sys ") && crates.contains("zstd/LICENSE\n"), "zstd itself is missing");
    assert!(!crates.contains("\nserde_derive ") && !crates.contains("\ntempfile "), "not in the program");
    let files = read("third-party/sycl-runtime/FILES.txt");
    for entry in fs::read_dir(PROGRAM.join("lib/bankshot")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(files.contains(&format!("\n  {name}\n")), "{name} has no licence");
    }
    for licence in all(r"licence in (.+):", &files) {
        assert!(read(&format!("third-party/sycl-runtime/{licence}")).len() > 1000, "{licence}");
    }
}

#[test]
fn a_path_with_spaces_is_named_where_the_driver_needs_one_without() {
    let folder = empty("with spaces");
    for part in ["bin", "lib/bankshot"] {
        fs::create_dir_all(folder.join(part)).unwrap();
        for entry in fs::read_dir(PROGRAM.join(part)).unwrap() {
            let path = entry.unwrap().path();
            fs::hard_link(&path, folder.join(part).join(path.file_name().unwrap())).unwrap();
        }
    }
    let bankshot = || {
        let mut command = Command::new(folder.join("bin/bankshot"));
        command.current_dir(&folder).env_clear();
        command
    };
    let model = root().join("src/demo/demo-ud.gguf");
    let tokens = stdout(bankshot().arg("tokenize").arg(model).args(["-p", "Once upon a time"]));
    assert!(tokens.contains("1491"), "{tokens}");
    let text = error(bankshot().args(["demo", "-n", "1", "--device", "cpu"]));
    let driver = folder.join("lib/bankshot/libintelocl.so");
    assert!(text.contains("path of the OpenCL CPU driver") && text.contains("without spaces"), "{text}");
    assert!(text.contains(driver.to_str().unwrap()), "{text}");
}

#[test]
fn what_packaging_lacks_is_named() {
    let folder = empty("lacks");
    let runtime = stdout(Command::new("readelf").arg("-d").arg(env!("CARGO_BIN_EXE_bankshot")));
    let runtime =
        all(r"path: \[(.+)\]", &runtime).into_iter().next().expect("the program names the toolchain's folder");
    let lacking = folder.join("runtime/lib");
    fs::create_dir_all(&lacking).unwrap();
    let files = fs::read_dir(runtime).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_file());
    for path in files {
        std::os::unix::fs::symlink(&path, lacking.join(path.file_name().unwrap())).unwrap();
    }
    let target = folder.join("target");
    let text = error(package("tar", &target).arg("--runtime").arg(&lacking));
    assert!(text.contains("no licences of the SYCL runtime") && !target.exists(), "{text}");

    for entry in fs::read_dir(&lacking).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if name == "libtbb.so.12" || name.starts_with("clbltfn") {
            fs::remove_file(&path).unwrap();
        }
    }
    let text = error(package("lib", &target).arg("--runtime").arg(&lacking));
    assert!(text.contains("libtbb.so.12, needed by libintelocl.so"), "{text}");
    assert!(text.contains("clbltfn*") && text.contains(lacking.to_str().unwrap()), "{text}");

    let path = folder.join("path");
    fs::create_dir(&path).unwrap();
    let folders = std::env::var_os("PATH").unwrap();
    for tool in ["cargo", "rustc", "cc", "ar", "readelf"] {
        let found = std::env::split_paths(&folders).map(|folder| folder.join(tool)).find(|path| path.exists());
        std::os::unix::fs::symlink(found.unwrap(), path.join(tool)).unwrap();
    }
    let text = error(package("lib", &target).env("PATH", &path));
    assert!(text.contains("not found on PATH") && text.contains("  ld (") && text.contains("  objcopy ("), "{text}");
    assert!(!text.contains("  readelf ("), "{text}");

    let text = error(&mut package("zip", &target));
    assert!(text.contains("there is no command zip"), "{text}");
}
