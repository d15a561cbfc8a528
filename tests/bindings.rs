//! `src/device/sys.rs` is what bindgen makes of `include/xk_ops.h`; and the headers are plain C and plain C++.
//!
//! After a change of the headers, `BLESS=1 cargo test --test bindings` writes the file anew.

#[path = "../build/provision.rs"]
#[allow(dead_code, reason = "shared with the build script")]
mod provision;
#[path = "../build/util.rs"]
#[allow(dead_code, reason = "shared with the build script")]
mod util;

use std::path::Path;
use std::process::Command;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A libclang of the system's choice, or the pinned one.
fn choose_libclang() {
    if std::env::var_os("LIBCLANG_PATH").is_some() {
        return;
    }
    let folder = util::cache_dir().and_then(|cache| provision::libclang(&cache));
    let folder = folder.expect("no libclang: install it and set LIBCLANG_PATH, or give this machine network access");
    // SAFETY: this binary has one test that touches the environment, before it starts any thread that reads it.
    unsafe { std::env::set_var("LIBCLANG_PATH", folder) };
}

#[test]
fn bindings_have_not_drifted() {
    choose_libclang();
    // The wheel of libclang has no headers of its own; the compiler's stddef.h and stdint.h serve.
    let gcc = Command::new("gcc").arg("-print-file-name=include").output().expect("gcc");
    let builtin = String::from_utf8(gcc.stdout).expect("a path");
    let made = bindgen::builder()
        .header(root().join("include/xk_ops.h").to_string_lossy())
        .clang_arg(format!("-I{}", builtin.trim()))
        .allowlist_item("[xX][kK]_.*")
        .use_core()
        .layout_tests(true)
        .derive_default(true)
        .merge_extern_blocks(true)
        .rust_target(bindgen::RustTarget::stable(85, 0).expect("a version that bindgen knows"))
        .rust_edition(bindgen::RustEdition::Edition2024)
        .raw_line("// Made by tests/bindings.rs from include/xk_ops.h; see there. Do not edit.")
        .disable_header_comment()
        .generate()
        .expect("bindings")
        .to_string();
    let path = root().join("src/device/sys.rs");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &made).expect("written");
    }
    let committed = std::fs::read_to_string(&path).expect("sys.rs");
    assert!(committed == made, "src/device/sys.rs is not what the headers say; run BLESS=1 cargo test --test bindings");
}

#[test]
fn headers_are_plain_c_and_cpp() {
    let include = root().join("include");
    let folder = tempfile::tempdir().expect("a folder");
    for (name, compiler, standard) in [("check.c", "gcc", "-std=c11"), ("check.cpp", "g++", "-std=c++17")] {
        let file = folder.path().join(name);
        std::fs::write(&file, "#include \"xk_ops.h\"\nint main(void) { return 0; }\n").expect("written");
        let output = Command::new(compiler)
            .args([standard, "-pedantic", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-I"])
            .args([&include, &file])
            .output()
            .expect("a compiler");
        assert!(output.status.success(), "{compiler} {standard}: {}", String::from_utf8_lossy(&output.stderr));
    }
}
