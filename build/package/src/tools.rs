//! Programs that packaging runs.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};

/// Which package has what is missing, on Debian and Ubuntu.
fn origin(tool: &str) -> &'static str {
    match tool {
        "cargo" | "rustc" => "part of Rust",
        "cc" => "Debian and Ubuntu: apt install gcc",
        _ => "Debian and Ubuntu: apt install binutils",
    }
}

/// cargo names itself to what it runs.
fn path(tool: &str) -> Option<PathBuf> {
    let named = (tool == "cargo").then(|| std::env::var_os("CARGO")).flatten().map(PathBuf::from);
    let folders = std::env::var_os("PATH").unwrap_or_default();
    named.or_else(|| std::env::split_paths(&folders).map(|folder| folder.join(tool)).find(|path| path.is_file()))
}

/// Says all that is missing before anything is built.
pub fn need(tools: &[&str]) -> Result<()> {
    let missing: Vec<_> = tools.iter().filter(|tool| path(tool).is_none()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let lines: Vec<_> = missing.iter().map(|tool| format!("  {tool} ({})", origin(tool))).collect();
    bail!("not found on PATH:\n{}", lines.join("\n"))
}

pub fn command(tool: &str) -> Command {
    Command::new(path(tool).unwrap_or_else(|| tool.into()))
}

/// Runs a command to its end and gives its standard output.
pub fn output(command: &mut Command) -> Result<String> {
    let tool = command.get_program().to_string_lossy().into_owned();
    let output = command.output().with_context(|| format!("cannot start {tool}"))?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr);
        let lines: Vec<_> = text.lines().collect();
        bail!("{tool}: {}\n{}", output.status, lines[lines.len().saturating_sub(20)..].join("\n"));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

pub fn run(command: &mut Command) -> Result<()> {
    output(command).map(drop)
}
