//! The header itself.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use cbindgen::{Builder, Config};
use regex::Regex;

const HEADER: &str = "include/bankshot.h";
/// In the order in which the header has them.
const SOURCES: [&str; 6] = ["status", "structs", "version", "log", "engine", "session"];

pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn text() -> String {
    std::fs::read_to_string(root().join(HEADER)).expect("the header is there")
}

/// Names of all functions that the header declares.
pub fn functions() -> Vec<String> {
    let pattern = Regex::new(r"(?m)^(?:bankshot_status|size_t|void) (bankshot_\w+)\(").unwrap();
    let text = text();
    let names: Vec<String> = pattern.captures_iter(&text).map(|found| found[1].to_owned()).collect();
    assert_eq!(names.len(), names.iter().collect::<BTreeSet<_>>().len(), "declared twice: {names:?}");
    names
}

#[test]
fn header_has_not_drifted() {
    let folder = root().join("src/capi");
    let config = Config::from_file(folder.join("cbindgen.toml")).expect("the configuration");
    let mut builder = Builder::new().with_config(config);
    for source in SOURCES {
        builder = builder.with_src(folder.join(source).with_extension("rs"));
    }
    let mut made = Vec::new();
    builder.generate().expect("bindings").write(&mut made);
    let made = String::from_utf8(made).expect("UTF-8");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(root().join(HEADER), &made).expect("written");
    }
    assert!(made == text(), "{HEADER} is not what src/capi says; run BLESS=1 cargo test --release --test capi header");
}

/// Every exported function of the sources is declared, and no symbol has another prefix.
#[test]
fn the_header_declares_what_is_exported() {
    let exported = Regex::new(r#"(?s)#\[unsafe\(no_mangle\)\]\s*pub unsafe extern "C" fn (\w+)"#).unwrap();
    let mut names = BTreeSet::new();
    for file in std::fs::read_dir(root().join("src/capi")).unwrap() {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        assert_eq!(text.matches("no_mangle").count(), exported.captures_iter(&text).count());
        names.extend(exported.captures_iter(&text).map(|found| found[1].to_owned()));
    }
    assert_eq!(names, functions().into_iter().collect());
    assert!(names.iter().all(|name| name.starts_with("bankshot_")), "{names:?}");
}

#[test]
fn every_function_says_who_owns_what_and_which_threads_may_call_it() {
    let text = text();
    let pattern = Regex::new(r"((?://.*\n)+)(?:bankshot_status|size_t|void) (bankshot_\w+)\(").unwrap();
    let mut documented = 0;
    for found in pattern.captures_iter(&text) {
        for word in ["// Ownership: ", " Threads: "] {
            assert!(found[1].contains(word), "{} does not say {word:?}: {}", &found[2], &found[1]);
        }
        documented += 1;
    }
    assert_eq!(documented, functions().len());
}

/// With the address of every function taken, so that a declaration that is none is noticed.
pub fn all_addresses() -> String {
    let names = functions();
    let list: String = names.iter().map(|name| format!("    (any_function)&{name},\n")).collect();
    format!(
        "#include \"bankshot.h\"\n\ntypedef void (*any_function)(void);\nany_function all_functions[] = {{\n{list}}};\n\
         int function_count = {};\n",
        names.len()
    )
}

#[test]
fn the_header_is_plain_c_and_cpp() {
    let text = text();
    let includes: Vec<&str> = text.lines().filter(|line| line.starts_with("#include")).collect();
    assert_eq!(includes, ["#include <stddef.h>", "#include <stdint.h>"]);
    let folder = tempfile::tempdir().unwrap();
    for (name, compiler, standard) in [("all.c", "gcc", "-std=c11"), ("all.cpp", "g++", "-std=c++17")] {
        let file = folder.path().join(name);
        std::fs::write(&file, all_addresses()).unwrap();
        let output = Command::new(compiler)
            .args([
                standard,
                "-pedantic",
                "-Wall",
                "-Wextra",
                "-Werror",
                "-Wno-cast-function-type",
                "-fsyntax-only",
                "-I",
            ])
            .args([root().join("include"), file])
            .output()
            .expect("a compiler");
        assert!(output.status.success(), "{compiler}: {}", String::from_utf8_lossy(&output.stderr));
    }
}
