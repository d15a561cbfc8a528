//! Lays out Bankshot for others: `lib` for programs in C, `tar` for users of the program. `docs/packaging.md` says what
//! is in both.

mod built;
mod library;
mod notices;
mod output;
mod runtime;
mod tarball;
mod tools;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};

use built::Built;
use output::Folder;

const USAGE: &str = "usage:
  package lib DIR [--runtime FOLDER]           libraries, header, pkg-config files and the SYCL runtime, below DIR
  package tar FILE.tar.gz [--runtime FOLDER]   the program and the SYCL runtime, to be unpacked anywhere

--runtime takes the runtime's libraries from FOLDER instead of the toolchain that the build used.";

struct Arguments {
    command: String,
    target: PathBuf,
    runtime: Option<PathBuf>,
}

fn arguments(words: impl Iterator<Item = String>) -> Result<Arguments> {
    let (mut plain, mut runtime) = (Vec::new(), None);
    let mut words = words.peekable();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--runtime" => runtime = Some(words.next().map(PathBuf::from).context("--runtime names no folder")?),
            option if option.starts_with('-') => bail!("there is no option {option}\n{USAGE}"),
            _ => plain.push(word),
        }
    }
    match <[String; 2]>::try_from(plain) {
        Ok([command, target]) => Ok(Arguments { command, target: target.into(), runtime }),
        Err(plain) => bail!("expected a command and a target, found {} words\n{USAGE}", plain.len()),
    }
}

/// The repository, whose documents are part of every package.
fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

fn run() -> Result<()> {
    let arguments = arguments(std::env::args().skip(1))?;
    match arguments.command.as_str() {
        "lib" => {
            tools::need(&["cargo", "rustc", "cc", "ld", "ar", "objcopy", "readelf"])?;
            let built = Built::new(arguments.runtime)?;
            let folder = Folder::new(&arguments.target)?;
            common(&built, &folder)?;
            library::lay_out(&built, &folder)?;
            folder.print();
        }
        "tar" => {
            tools::need(&["cargo", "rustc", "cc", "objcopy", "readelf"])?;
            let built = Built::new(arguments.runtime)?;
            let name = format!("bankshot-{}-linux-x86_64", built.version);
            let scratch = tarball::Scratch::beside(&arguments.target)?;
            let folder = Folder::new(&scratch.path().join(&name))?;
            common(&built, &folder)?;
            folder.make("bin/bankshot", |to| {
                tools::run(tools::command("objcopy").arg("--strip-debug").arg(&built.program).arg(to))
            })?;
            folder.print();
            tarball::write(&arguments.target, folder.path(), &name)?;
        }
        other => bail!("there is no command {other}\n{USAGE}"),
    }
    Ok(())
}

/// What every package has.
fn common(built: &Built, folder: &Folder) -> Result<()> {
    for name in ["README.md", "LICENSE", "CHANGELOG.md"] {
        folder.copy(&root().join(name), &format!("share/doc/bankshot/{name}"))?;
    }
    notices::lay_out(built, folder)?;
    runtime::lay_out(built, folder)
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
