//! `src/device/sys.rs` and `level-zero-sys/src/bindings.rs` are what bindgen makes of the headers; and our own headers are
//! plain C and plain C++.
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

/// The functions of Level Zero that `src/level_zero` calls.
const LEVEL_ZERO: [&str; 25] = [
    "zeInit",
    "zeDriverGet",
    "zeDriverGetApiVersion",
    "zeDriverGetProperties",
    "zeDeviceGet",
    "zeDeviceGetProperties",
    "zeDeviceGetMemoryProperties",
    "zeDevicePciGetPropertiesExt",
    "zesInit",
    "zesDriverGet",
    "zesDeviceGet",
    "zesDevicePciGetProperties",
    "zesDevicePciGetState",
    "zesDeviceGetEccState",
    "zesDeviceEnumMemoryModules",
    "zesMemoryGetProperties",
    "zesMemoryGetState",
    "zesMemoryGetBandwidth",
    "zesDeviceEnumPowerDomains",
    "zesPowerGetProperties",
    "zesPowerGetEnergyCounter",
    "zesPowerGetLimitsExt",
    "zesDeviceEnumTemperatureSensors",
    "zesTemperatureGetProperties",
    "zesTemperatureGetState",
];

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

/// What both sets of bindings have in common.
fn builder(header: &str) -> bindgen::Builder {
    // The wheel of libclang has no headers of its own; the compiler's stddef.h and stdint.h serve.
    let gcc = Command::new("gcc").arg("-print-file-name=include").output().expect("gcc");
    let builtin = String::from_utf8(gcc.stdout).expect("a path");
    bindgen::builder()
        .header(root().join(header).to_string_lossy())
        .clang_arg(format!("-I{}", builtin.trim()))
        .use_core()
        .layout_tests(true)
        .derive_default(true)
        .rust_target(bindgen::RustTarget::stable(85, 0).expect("a version that bindgen knows"))
        .rust_edition(bindgen::RustEdition::Edition2024)
        .raw_line(format!("// Made by tests/bindings.rs from {header}; see there. Do not edit."))
        .disable_header_comment()
}

fn compare(builder: bindgen::Builder, committed: &str) {
    let made = builder.generate().expect("bindings").to_string();
    let path = root().join(committed);
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &made).expect("written");
    }
    let text = std::fs::read_to_string(&path).expect(committed);
    assert!(text == made, "{committed} is not what the headers say; run BLESS=1 cargo test --test bindings");
}

#[test]
fn bindings_have_not_drifted() {
    choose_libclang();
    let kernels = builder("include/xk_ops.h").allowlist_item("[xX][kK]_.*").merge_extern_blocks(true);
    compare(kernels, "src/device/sys.rs");
    let mut level_zero = builder("level-zero-sys/include/zes_api.h")
        .dynamic_library_name("LevelZero")
        .dynamic_link_require_all(false)
        .prepend_enum_name(false)
        .generate_comments(false)
        .wrap_unsafe_ops(true)
        .allowlist_type("_ze_init_flag_t")
        .allowlist_type("zes_power_ext_properties_t");
    for name in LEVEL_ZERO {
        level_zero = level_zero.allowlist_function(name);
    }
    compare(level_zero, "level-zero-sys/src/bindings.rs");
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
