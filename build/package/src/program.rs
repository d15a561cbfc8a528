use std::process::ExitCode;

fn main() -> ExitCode {
    bankshot::cli::main()
}
