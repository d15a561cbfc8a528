//! Small helpers of the build script.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

pub fn env(name: &str) -> Result<String, String> {
    std::env::var(name).map_err(|_| format!("{name} is not set; run this through cargo"))
}

/// Where downloads and compiled kernels are kept between builds.
pub fn cache_dir() -> Result<PathBuf, String> {
    let set = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    set("BANKSHOT_CACHE_DIR")
        .or_else(|| set("XDG_CACHE_HOME").map(|p| p.join("bankshot")))
        .or_else(|| set("HOME").map(|p| p.join(".cache/bankshot")))
        .ok_or_else(|| "there is no cache folder: set BANKSHOT_CACHE_DIR".into())
}

/// Tells the user about something slow while it runs: cargo shows a script's own output only when it is over.
pub fn say(line: &str) {
    println!("cargo:warning={line}");
    if let Ok(mut tty) = fs::OpenOptions::new().write(true).open("/dev/tty") {
        let _ = writeln!(tty, "   Bankshot {line}");
    } else {
        eprintln!("{line}");
    }
}

/// FNV-1a of 128 bits, fed field by field; only ever compared with itself.
pub struct Hash(u128);

impl Hash {
    pub fn new() -> Self {
        Hash(0x6c62272e07bb014262b821756295c58d)
    }

    pub fn add(&mut self, field: impl AsRef<[u8]>) -> &mut Self {
        let field = field.as_ref();
        // The length first, so that ("ab", "c") and ("a", "bc") differ.
        for byte in (field.len() as u64).to_le_bytes().iter().chain(field) {
            self.0 = (self.0 ^ u128::from(*byte)).wrapping_mul(0x0000000001000000000000000000013b);
        }
        self
    }

    pub fn hex(&self) -> String {
        format!("{:032x}", self.0)
    }
}

/// Writes through a temporary name, so that a build that is stopped half-way leaves no half of a file.
pub fn write_atomic(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let part = path.with_extension(format!("{}.part", std::process::id()));
    fs::write(&part, bytes)?;
    fs::rename(&part, path)
}

/// Runs a command and gives its standard output and error together when it fails.
pub fn run(command: &mut Command) -> Result<String, String> {
    let output =
        command.output().map_err(|e| format!("cannot start {}: {e}", command.get_program().to_string_lossy()))?;
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if output.status.success() { Ok(text) } else { Err(text) }
}

/// Does all jobs on a few threads, and gives the results in order or every error together.
pub fn in_parallel<J: Sync, R: Send>(
    jobs: &[J],
    work: impl Fn(&J) -> Result<R, String> + Sync,
) -> Result<Vec<R>, String> {
    let asked = std::env::var("NUM_JOBS").ok().and_then(|n| n.parse::<usize>().ok()).unwrap_or(2);
    let cores = std::thread::available_parallelism().map_or(2, |n| n.get());
    // A compiler process takes half a gigabyte; more than eight at once gain little.
    let threads = asked.min(cores).clamp(1, 8).min(jobs.len().max(1));
    let next = Mutex::new(0);
    let results: Mutex<Vec<Option<Result<R, String>>>> = Mutex::new(jobs.iter().map(|_| None).collect());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let index = {
                        let mut next = next.lock().unwrap();
                        *next += 1;
                        *next - 1
                    };
                    let Some(job) = jobs.get(index) else { return };
                    let result = work(job);
                    results.lock().unwrap()[index] = Some(result);
                }
            });
        }
    });
    let mut done = Vec::new();
    let mut errors = Vec::new();
    for result in results.into_inner().unwrap().into_iter().flatten() {
        match result {
            Ok(r) => done.push(r),
            Err(e) => errors.push(e),
        }
    }
    if errors.is_empty() { Ok(done) } else { Err(errors.join("\n\n")) }
}
