//! Licences of what a package holds that is not Bankshot's own.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::built::Built;
use crate::output::Folder;
use crate::{runtime, tools};

const PLACE: &str = "share/doc/bankshot/third-party";

/// Licence files begin so, in capitals or not.
const NAMES: [&str; 6] = ["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE", "UNLICENSE"];

pub fn lay_out(built: &Built, folder: &Folder) -> Result<()> {
    folder.write(&format!("{PLACE}/rust-crates.txt"), &crates(&built.metadata)?)?;
    // Rust's own notices are there if its documents were installed.
    let rust = tools::output(tools::command("rustc").args(["--print", "sysroot"]))?;
    let rust = Path::new(rust.trim()).join("share/doc/rust/COPYRIGHT-library.html");
    if rust.exists() {
        folder.copy(&rust, &format!("{PLACE}/rust-standard-library.html"))?;
    }
    runtime_licences(built, folder)
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    let mut paths: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    Ok(paths)
}

/// Every file below a folder; none if there is no folder.
fn below(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for path in if folder.is_dir() { entries(folder)? } else { Vec::new() } {
        match path.is_dir() {
            true => found.extend(below(&path)?),
            false => found.push(path),
        }
    }
    Ok(found)
}

/// Licences of the SYCL runtime: those of the wheels that its files came in, and what lies in the toolchain's folders.
fn runtime_licences(built: &Built, folder: &Folder) -> Result<()> {
    let root = built.runtime.parent().context("the runtime's folder has no parent")?;
    let files = runtime::files(built)?;
    let mut about = "The SYCL runtime in lib/bankshot is Intel's. Its files are unchanged:\n".to_owned();
    let mut found = 0;
    let mut unnamed: BTreeSet<&String> = files.iter().collect();
    for wheel in wheels(&built.runtime)? {
        let list = wheel.join("RECORD");
        let record = fs::read_to_string(&list).with_context(|| list.display().to_string())?;
        let paths: BTreeSet<&str> = record.lines().filter_map(|line| line.split(',').next()).collect();
        let own: Vec<_> = files.iter().filter(|name| paths.contains(format!("../../{name}").as_str())).collect();
        let (Some(name), false) = (wheel.file_stem().and_then(|name| name.to_str()), own.is_empty()) else { continue };
        let _ = writeln!(about, "\nfrom the wheel {name}, licence in {name}/LICENSE.txt:");
        for file in own {
            let _ = writeln!(about, "  {file}");
            unnamed.remove(file);
        }
        folder.copy(&wheel.join("LICENSE.txt"), &format!("{PLACE}/sycl-runtime/{name}/LICENSE.txt"))?;
        found += 1;
    }
    if !unnamed.is_empty() {
        let _ = writeln!(about, "\nfrom a oneAPI toolkit, licences in the folders beside this file:");
        for file in unnamed {
            let _ = writeln!(about, "  {file}");
        }
    }
    for part in ["licensing", "share/doc"] {
        for path in below(&root.join(part))? {
            let inside = path.strip_prefix(root).expect("a path below the folder").to_string_lossy().into_owned();
            folder.copy(&path, &format!("{PLACE}/sycl-runtime/{inside}"))?;
            found += 1;
        }
    }
    if found == 0 {
        bail!("{} has no licences of the SYCL runtime; it cannot be passed on without them", root.display());
    }
    folder.write(&format!("{PLACE}/sycl-runtime/FILES.txt"), &about)
}

/// Folders with what pip noted about each wheel; none in a oneAPI toolkit.
fn wheels(lib: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for python in entries(lib)?.into_iter().map(|path| path.join("site-packages")).filter(|path| path.is_dir()) {
        let folders = entries(&python)?.into_iter();
        found.extend(folders.filter(|path| path.extension().is_some_and(|e| e == "dist-info")));
    }
    Ok(found)
}

/// Crates that are compiled in, and each of their licence texts once.
fn crates(metadata: &Value) -> Result<String> {
    let mut list =
        "Bankshot contains Rust's standard library (MIT OR Apache-2.0, https://www.rust-lang.org) and these \
                    crates.\n\n"
            .to_owned();
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for package in linked(metadata)? {
        let (name, version) = (text(package, "name")?, text(package, "version")?);
        let licence = package["license"].as_str().unwrap_or("see its licence file");
        let _ = writeln!(list, "{name} {version}: {licence}");
        let folder = Path::new(text(package, "manifest_path")?).parent().context("a manifest without a folder")?;
        // Also what lies one folder deeper: libraries in C that a crate brings.
        let mut files = entries(folder)?;
        for inner in files.clone().iter().filter(|path| path.is_dir()) {
            files.extend(entries(inner)?);
        }
        let is_licence = |path: &PathBuf| {
            let name = path.file_name().unwrap_or_default().to_string_lossy().to_uppercase();
            path.is_file() && NAMES.iter().any(|start| name.starts_with(start))
        };
        for file in files.into_iter().filter(is_licence) {
            let bytes = fs::read(&file).with_context(|| file.display().to_string())?;
            let inside = file.strip_prefix(folder).expect("a path below the folder").display();
            let holder = format!("{name} {version}, {inside}");
            texts.entry(String::from_utf8_lossy(&bytes).trim_end().to_owned()).or_default().push(holder);
        }
    }
    let mut texts: Vec<_> = texts.into_iter().collect();
    texts.sort_by(|a, b| a.1.cmp(&b.1));
    for (text, holders) in texts {
        let _ = write!(list, "\n{}\n{}\n\n{text}\n", "-".repeat(79), holders.join("\n"));
    }
    Ok(list)
}

fn text<'a>(value: &'a Value, key: &str) -> Result<&'a str> {
    value[key].as_str().with_context(|| format!("cargo metadata has no {key}"))
}

/// Packages of others that the main crate is linked from: neither build tools nor macros.
fn linked(metadata: &Value) -> Result<Vec<&Value>> {
    let list = |value: &'_ Value| -> Vec<Value> { value.as_array().cloned().unwrap_or_default() };
    let packages = metadata["packages"].as_array().context("cargo metadata has no packages")?;
    let packages: BTreeMap<&str, &Value> = packages.iter().filter_map(|p| Some((p["id"].as_str()?, p))).collect();
    let nodes = list(&metadata["resolve"]["nodes"]);
    let nodes: BTreeMap<&str, &Value> = nodes.iter().filter_map(|n| Some((n["id"].as_str()?, n))).collect();
    let root = packages.iter().find(|(_, p)| p["name"] == "bankshot").context("cargo metadata has no bankshot")?;
    let (mut open, mut seen) = (vec![(*root.0).to_owned()], BTreeSet::new());
    while let Some(id) = open.pop() {
        let is_macro = |package: &Value| {
            let kinds = list(&package["targets"]).iter().flat_map(|target| list(&target["kind"])).collect::<Vec<_>>();
            kinds.iter().any(|kind| kind == "proc-macro")
        };
        let Some(node) = nodes.get(id.as_str()) else { continue };
        if packages.get(id.as_str()).is_none_or(|package| is_macro(package)) || !seen.insert(id.clone()) {
            continue;
        }
        for dependency in list(&node["deps"]) {
            let is_linked = list(&dependency["dep_kinds"]).iter().any(|kind| kind["kind"].is_null());
            if let (true, Some(id)) = (is_linked, dependency["pkg"].as_str()) {
                open.push(id.to_owned());
            }
        }
    }
    // Packages of this repository have no source.
    let mut found: Vec<&Value> = packages.values().filter(|p| !p["source"].is_null()).copied().collect();
    found.retain(|package| package["id"].as_str().is_some_and(|id| seen.contains(id)));
    found.sort_by_key(|package| (package["name"].to_string(), package["version"].to_string()));
    Ok(found)
}
