//! The SYCL runtime: which of the toolchain's files a program loads, and their copies.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::built::Built;
use crate::output::Folder;
use crate::tools;

/// Where packages keep the runtime.
pub const FOLDER: &str = "lib/bankshot";

/// What is opened by name while a program runs: adapters, the OpenCL loader with the CPU's driver, TBB's allocator.
const OPENED: [&str; 5] = [
    "libur_adapter_level_zero.so.0",
    "libur_adapter_level_zero_v2.so.0",
    "libOpenCL.so.1",
    "libintelocl.so",
    "libtbbmalloc.so.2",
];

/// What the CPU's driver reads beside itself, by the beginnings of names: functions for each instruction set.
const DATA: [&str; 4] = ["cl.cfg", "clbltfn", "cllibrary", "libocl_svml_"];

/// What every Linux with glibc and a C++ program has. libz is the one that a bare system may lack.
const SYSTEM: [&str; 10] = [
    "ld-linux-x86-64.so.2",
    "libc.so.6",
    "libdl.so.2",
    "libgcc_s.so.1",
    "libm.so.6",
    "libpthread.so.0",
    "librt.so.1",
    "libstdc++.so.6",
    "libutil.so.1",
    "libz.so.1",
];

/// The libraries that an ELF file names.
fn needed(path: &Path) -> Result<Vec<String>> {
    let text = tools::output(tools::command("readelf").arg("--dynamic").arg("--wide").arg(path))?;
    let names = text.lines().filter(|line| line.contains("(NEEDED)"));
    Ok(names.filter_map(|line| Some(line.split_once('[')?.1.split(']').next()?.to_owned())).collect())
}

/// libsycl as the program names it.
pub fn libsycl(built: &Built) -> Result<String> {
    let names = needed(&built.program)?;
    let name = names.into_iter().find(|name| name.starts_with("libsycl.so"));
    name.with_context(|| format!("{} does not need libsycl", built.program.display()))
}

/// Names of all files that the program may load from the toolchain.
pub fn files(built: &Built) -> Result<BTreeSet<String>> {
    let folder = &built.runtime;
    let mut found = BTreeSet::new();
    let mut open = vec![(libsycl(built)?, "the program".to_owned())];
    open.extend(OPENED.map(|name| (name.to_owned(), "libsycl".to_owned())));
    let mut missing = BTreeSet::new();
    while let Some((name, user)) = open.pop() {
        if found.contains(&name) || SYSTEM.contains(&name.as_str()) {
            continue;
        }
        let path = folder.join(&name);
        if !path.exists() {
            missing.insert(format!("  {name}, needed by {user}"));
            continue;
        }
        open.extend(needed(&path)?.into_iter().map(|library| (library, name.clone())));
        found.insert(name);
    }
    let names: Vec<String> = fs::read_dir(folder)
        .with_context(|| folder.display().to_string())?
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    for start in DATA {
        let before = found.len();
        found.extend(names.iter().filter(|name| name.starts_with(start)).cloned());
        if found.len() == before {
            missing.insert(format!("  {start}*, needed by libintelocl.so"));
        }
    }
    if !missing.is_empty() {
        let lines: Vec<_> = missing.into_iter().collect();
        bail!("the SYCL runtime in {} lacks\n{}", folder.display(), lines.join("\n"));
    }
    Ok(found)
}

pub fn lay_out(built: &Built, folder: &Folder) -> Result<()> {
    for name in files(built)? {
        folder.copy(&built.runtime.join(&name), &format!("{FOLDER}/{name}"))?;
    }
    Ok(())
}
