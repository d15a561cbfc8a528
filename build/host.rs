//! The C++ behind `include/xk.h`: compiled file by file, and only what changed.

use crate::toolchain::Toolchain;
use crate::util::{self, Hash};
use std::fs;
use std::path::{Path, PathBuf};

/// All files in a folder that pass, in a fixed order.
fn files(folder: &Path, pass: impl Fn(&str) -> bool) -> Result<Vec<PathBuf>, String> {
    let entries = fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut found: Vec<_> = entries
        .flatten()
        .map(|e| e.path())
        .filter(|p| p.file_name().and_then(|n| n.to_str()).is_some_and(&pass))
        .collect();
    found.sort();
    Ok(found)
}

pub fn compile(root: &Path, out: &Path, toolchain: &Toolchain) -> Result<(), String> {
    let kernels = root.join("sycl-kernels");
    let mut sources = files(&kernels.join("runtime"), |n| n.ends_with(".cpp"))?;
    sources.extend(files(&kernels.join("ops"), |n| n.ends_with("_launch.cpp"))?);
    let mut headers = files(&root.join("include"), |n| n.starts_with("xk") && n.ends_with(".h"))?;
    headers.extend(files(&kernels.join("runtime"), |n| n.ends_with(".hpp"))?);
    headers.extend(files(&kernels.join("ops"), |n| n.ends_with("_launch.hpp"))?);

    let mut build = cc::Build::new();
    build.cpp(true).std("c++17").cargo_metadata(false).warnings(true).extra_warnings(true);
    build.opt_level(2).pic(true).include(root.join("include"));
    build.define("SYCL_DISABLE_FSYCL_SYCLHPP_WARNING", None).flag("-fvisibility=hidden");
    // Unique symbols cannot be made local, as they are in the static library.
    build.flag_if_supported("-fno-gnu-unique");
    for include in toolchain.include() {
        build.flag("-isystem").flag(include);
    }
    let compiler = build.get_compiler();

    let mut common = Hash::new();
    common.add(&toolchain.version).add(format!("{:?}", compiler.to_command()));
    for header in &headers {
        common.add(fs::read(header).map_err(|e| format!("{}: {e}", header.display()))?);
    }
    let common = common.hex();

    let folder = out.join("host");
    fs::create_dir_all(&folder).map_err(|e| format!("cannot create {}: {e}", folder.display()))?;
    let objects = util::in_parallel(&sources, |source| {
        let text = fs::read(source).map_err(|e| format!("{}: {e}", source.display()))?;
        let hash = Hash::new().add(&common).add(text).hex();
        let stem = source.file_stem().and_then(|s| s.to_str()).unwrap_or("unit");
        let object = folder.join(format!("{stem}-{hash}.o"));
        if !object.exists() {
            let part = object.with_extension("o.part");
            let log = util::run(compiler.to_command().arg("-c").arg(source).arg("-o").arg(&part))
                .map_err(|text| format!("{} did not compile:\n{text}", source.display()))?;
            for line in log.lines() {
                println!("cargo:warning={line}");
            }
            fs::rename(&part, &object).map_err(|e| format!("{}: {e}", object.display()))?;
        }
        Ok(object)
    })?;
    for file in fs::read_dir(&folder).into_iter().flatten().flatten() {
        if !objects.contains(&file.path()) {
            let _ = fs::remove_file(file.path());
        }
    }
    let mut archive = cc::Build::new();
    archive.objects(&objects).cargo_metadata(false);
    archive.try_compile("bankshot_xk").map_err(|e| format!("the archive of the runtime could not be made: {e}"))?;
    println!("cargo:rustc-link-search=native={}", out.display());
    println!("cargo:rustc-link-lib=static=bankshot_xk");
    Ok(())
}

pub fn link(toolchain: &Toolchain) {
    let lib = toolchain.lib();
    println!("cargo:rustc-link-search=native={}", lib.display());
    println!("cargo:rustc-link-lib=dylib=sycl");
    println!("cargo:rustc-link-lib=dylib=stdc++");
    println!("cargo:rustc-link-lib=dylib=dl");
    // The old kind of rpath also serves the libraries that libOpenCL needs, which names no folder itself.
    println!("cargo:rustc-link-arg=-Wl,--disable-new-dtags,-rpath,{}", lib.display());
    // Link arguments reach this package only. A build script of a program that uses the library finds the folder in
    // DEP_BANKSHOT_XK_LIB.
    println!("cargo:lib={}", lib.display());
}
