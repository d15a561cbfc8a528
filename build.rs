//! Builds the device code and its runtime: finds or fetches a SYCL toolchain, compiles the kernel modules to SPIR-V,
//! writes the table that embeds them, and compiles the C++ side of `include/xk.h`.

#[path = "build/host.rs"]
mod host;
#[path = "build/kernels.rs"]
mod kernels;
#[allow(dead_code, reason = "shared with a test")]
#[path = "build/provision.rs"]
mod provision;
#[path = "build/toolchain.rs"]
mod toolchain;
#[path = "build/util.rs"]
mod util;

use std::path::PathBuf;

fn main() {
    // Not the folder `build` itself: changes of `build/package` do not concern this build.
    let modules = ["build/host.rs", "build/kernels.rs", "build/provision.rs", "build/toolchain.rs", "build/util.rs"];
    for watched in ["build.rs", "sycl-kernels", "include/xk.h", "include/xk_ops.h"].iter().chain(&modules) {
        println!("cargo:rerun-if-changed={watched}");
    }
    if let Err(message) = run() {
        eprintln!("\nerror: {message}\n");
        std::process::exit(1);
    }
}

fn run() -> Result<(), String> {
    let root = PathBuf::from(util::env("CARGO_MANIFEST_DIR")?);
    let out = PathBuf::from(util::env("OUT_DIR")?);
    let toolchain = toolchain::find()?;
    println!("cargo:rerun-if-changed={}", toolchain.lib().join("libsycl.so").display());

    let modules = kernels::compile_all(&root, &out, &toolchain)?;
    kernels::write_table(&out, &toolchain, &modules)?;
    host::compile(&root, &out, &toolchain)?;
    host::link(&toolchain);
    Ok(())
}
