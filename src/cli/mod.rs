//! The command line: arguments in, text or JSON out, an exit code.

mod args;
mod cards;
mod chat;
mod demo;
mod devices;
mod engine;
mod generate;
mod inspect;
mod interrupt;
mod logits;
mod npy;
mod output;
mod perplexity;
mod plan;
mod residency_sim;
mod run;
mod session;
mod tokenize;

use std::io::IsTerminal;
use std::process::ExitCode;

use clap::Parser;

use args::{Args, Command};
use output::Output;

pub use crate::demo::MODEL as DEMO_MODEL;

/// Exit code after Ctrl-C, as shells expect it.
const INTERRUPTED: u8 = 130;

/// How a command ended, if not with an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Done {
    Finished,
    Interrupted,
}

/// Runs the program.
pub fn main() -> ExitCode {
    let args = Args::parse();
    let filter = tracing_subscriber::EnvFilter::try_from_env("BANKSHOT_LOG").unwrap_or_else(|_| "warn".into());
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .without_time()
        .init();
    let mut output = Output::new();
    let done = match &args.command {
        Command::Demo(args) => demo::demo(args, &mut output),
        Command::Run(args) => run::run(args, &mut output),
        Command::Chat(args) => chat::chat(args, &mut output),
        Command::Inspect(args) => inspect::inspect(args, &mut output),
        Command::Devices(args) => devices::devices(args, &mut output),
        Command::Plan(args) => plan::plan(args, &mut output),
        Command::Tokenize(args) => tokenize::tokenize(args, &mut output),
        Command::Logits(args) => logits::logits(args, &mut output),
        Command::Perplexity(args) => perplexity::perplexity(args, &mut output),
        Command::Session(command) => session::session(command, &mut output),
        Command::ResidencySim(args) => residency_sim::residency_sim(args, &mut output),
        Command::BuildKernels(args) => engine::build_kernels(args),
    };
    match done {
        Ok(Done::Finished) => ExitCode::SUCCESS,
        Ok(Done::Interrupted) => ExitCode::from(INTERRUPTED),
        // The reader of a pipe has gone away, which is its right.
        Err(error) if output::is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
