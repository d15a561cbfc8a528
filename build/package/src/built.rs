//! What cargo built, and for which toolchain.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::{root, tools};

pub struct Built {
    pub version: String,
    /// The static library as rustc makes it.
    pub archive: PathBuf,
    /// The program, with a search path relative to itself.
    pub program: PathBuf,
    /// The folder of the SYCL runtime's libraries.
    pub runtime: PathBuf,
    /// What `cargo metadata` says about the workspace and everything that it is made of.
    pub metadata: Value,
}

impl Built {
    /// Builds, with cargo's own words on standard error.
    pub fn new(runtime: Option<PathBuf>) -> Result<Self> {
        let mut cargo = tools::command("cargo");
        cargo.current_dir(root()).args(["build", "--release", "--locked", "--package", "package"]);
        cargo.arg("--message-format=json-render-diagnostics").stderr(Stdio::inherit());
        let output = cargo.output().context("cannot start cargo")?;
        if !output.status.success() {
            bail!("cargo build: {}", output.status);
        }
        let text = String::from_utf8_lossy(&output.stdout);
        let messages: Vec<Value> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let file = |target: &str, extension: &str| {
            let artifact = messages.iter().find(|message| message["target"]["name"] == target);
            let files = artifact.and_then(|message| message["filenames"].as_array()).into_iter().flatten();
            let mut paths = files.filter_map(Value::as_str).map(PathBuf::from);
            paths
                .find(|path| path.extension().unwrap_or_default() == extension)
                .with_context(|| format!("cargo names no file of {target}"))
        };
        let runtime = match runtime {
            Some(folder) => folder,
            None => toolchain(&messages).context("the build names no folder with libsycl.so")?,
        };
        let runtime = runtime.canonicalize().with_context(|| runtime.display().to_string())?;
        let metadata = metadata()?;
        let packages = metadata["packages"].as_array().into_iter().flatten();
        let version = packages.filter(|package| package["name"] == "bankshot").find_map(|p| p["version"].as_str());
        Ok(Self {
            version: version.context("cargo metadata has no version of bankshot")?.to_owned(),
            archive: file("bankshot_archive", "a")?,
            program: file("bankshot-packaged", "")?,
            runtime,
            metadata,
        })
    }
}

/// Among the folders that build scripts let the linker search, the toolchain's.
fn toolchain(messages: &[Value]) -> Option<PathBuf> {
    let folders = messages.iter().filter_map(|message| message["linked_paths"].as_array()).flatten();
    let folders = folders.filter_map(|path| Some(Path::new(path.as_str()?.trim_start_matches("native="))));
    folders.filter(|folder| folder.join("libsycl.so").exists()).map(Path::to_path_buf).next()
}

fn metadata() -> Result<Value> {
    let mut cargo = tools::command("cargo");
    cargo.current_dir(root()).args(["metadata", "--format-version=1", "--locked"]);
    cargo.args(["--filter-platform", "x86_64-unknown-linux-gnu"]);
    serde_json::from_str(&tools::output(&mut cargo)?).context("cargo metadata prints no JSON")
}
