//! What the kernels become: the operations in their SPIR-V, and the instructions that the B70's own compiler makes.
//!
//! The second test needs Intel's offline compiler, which no B70 is needed for: `BANKSHOT_OCLOC` names the program (or a
//! script that starts it). Without it the test says so and passes. `docs/kernels.md` tells what was seen.

use bankshot::device::kernels::{MODULES, ModuleCode};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::Command;

/// An unrolled attention had 10,800 instructions of up to 16 bytes, more than an instruction cache holds. This bound is a
/// choice, not a measured size; the largest kernel stays below half of it.
const MOST_INSTRUCTIONS: usize = 4_000;

/// The module whose division is the point.
const SELFTEST: &str = "selftest";

fn variants(module: &ModuleCode) -> impl Iterator<Item = &'static [u8]> {
    std::iter::once(module.spirv).chain(module.card_spirv)
}

/// Every instruction of a SPIR-V module: its opcode and its operand words.
fn instructions(spirv: &[u8]) -> Vec<(u16, Vec<u32>)> {
    let words: Vec<u32> = spirv.as_chunks().0.iter().map(|b| u32::from_le_bytes(*b)).collect();
    let mut out = Vec::new();
    let mut at = 5;
    while at < words.len() {
        let length = (words[at] >> 16) as usize;
        assert!(length > 0 && at + length <= words.len(), "word {at} starts no instruction");
        out.push((words[at] as u16, words[at + 1..at + length].to_vec()));
        at += length;
    }
    out
}

/// `docs/numerics.md` lets kernels use sums, products, fma, fabs and rint, and nothing that devices may round in their
/// own way.
#[test]
fn kernels_use_no_operation_that_devices_round_differently() {
    const EXT_INST: u16 = 12;
    const DIVISIONS: [u16; 3] = [136, 140, 141];
    const ALLOWED: [u32; 3] = [23, 26, 53]; // fabs, fma, rint
    for module in MODULES.iter().filter(|m| m.name != SELFTEST) {
        for code in variants(module) {
            for (opcode, operands) in instructions(code) {
                assert!(!DIVISIONS.contains(&opcode), "{}: a division of floats (opcode {opcode})", module.name);
                let allowed = opcode != EXT_INST || ALLOWED.contains(&operands[3]);
                assert!(allowed, "{}: OpenCL function {}", module.name, operands[3]);
            }
        }
    }
}

/// What `.ze_info` says of one kernel, and what its listing holds.
#[derive(Debug, Default)]
struct Seen {
    values: BTreeMap<String, u64>,
    instructions: usize,
    dp4a: usize,
    divisions: usize,
}

impl Seen {
    fn get(&self, key: &str) -> u64 {
        self.values.get(key).copied().unwrap_or(0)
    }
}

/// The numbers under `execution_env` of every kernel, and its memory a thread as `scratch`. The text is YAML, but written by one program in one style.
fn read_ze_info(text: &str) -> BTreeMap<String, Seen> {
    let mut kernels: BTreeMap<String, Seen> = BTreeMap::new();
    let (mut current, mut section, mut top) = (String::new(), String::new(), String::new());
    for line in text.lines() {
        let indent = line.len() - line.trim_start().len();
        let Some((key, value)) = line.trim_start().trim_start_matches("- ").split_once(':') else { continue };
        let value = value.trim();
        match indent {
            0 => key.clone_into(&mut top),
            _ if top != "kernels" => {}
            2 if key == "name" => value.clone_into(&mut current),
            4 => key.clone_into(&mut section),
            6 if section == "execution_env" => {
                if let Ok(number) = value.parse() {
                    kernels.entry(current.clone()).or_default().values.insert(key.to_owned(), number);
                }
            }
            // Spills and private arrays both end here.
            8 if section == "per_thread_memory_buffers" && key == "size" => {
                let values = &mut kernels.entry(current.clone()).or_default().values;
                *values.entry("scratch".to_owned()).or_default() += value.parse().unwrap_or(1);
            }
            _ => {}
        }
    }
    kernels
}

fn run(ocloc: &OsStr, folder: &Path, args: &[&str]) -> String {
    let output = Command::new(ocloc).args(args).current_dir(folder).output().expect("BANKSHOT_OCLOC starts");
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "ocloc {}: {text}", args.join(" "));
    text
}

/// Compiles and takes apart one module.
fn inspect(ocloc: &OsStr, module: &ModuleCode) -> (BTreeMap<String, Seen>, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    std::fs::write(path.join("module.spv"), module.spirv_for(false)).expect("written");
    let log = run(
        ocloc,
        path,
        &["compile", "-spirv_input", "-file", "module.spv", "-device", "bmg-g31", "-output", "module"],
    );
    let made = std::fs::read_dir(path).expect("a folder").flatten().map(|e| e.file_name());
    let made: Vec<OsString> = made.filter(|n| Path::new(n).extension() == Some("bin".as_ref())).collect();
    let [binary] = made.as_slice() else { panic!("{}: ocloc made {made:?}, not one binary: {log}", module.name) };
    let binary = binary.to_str().expect("a name of ASCII");
    run(ocloc, path, &["disasm", "-file", binary, "-dump", "parts", "-device", "bmg-g31"]);
    let parts = path.join("parts");
    let mut kernels = read_ze_info(&std::fs::read_to_string(parts.join(".ze_info")).expect(".ze_info"));
    for (name, seen) in &mut kernels {
        let listing = std::fs::read_to_string(parts.join(format!(".text.{name}.asm"))).expect("a listing");
        // Integer divisions are made of math.inv too; roots and float divisions have names of their own.
        let words =
            listing.lines().map(|l| l.split_whitespace().find(|w| w.starts_with(|c: char| c.is_ascii_lowercase())));
        for word in words.flatten().take_while(|word| *word != "illegal") {
            seen.instructions += 1;
            seen.dp4a += usize::from(word == "dp4a");
            seen.divisions +=
                usize::from(["math.sqt", "math.rsqt", "math.rsqtm", "math.fdiv", "math.invm"].contains(&word));
        }
    }
    let kernels = kernels.into_iter().map(|(n, s)| (n.trim_start_matches("__sycl_kernel_").to_owned(), s)).collect();
    (kernels, log)
}

#[test]
fn the_b70_compiler_makes_what_the_kernels_were_written_for() {
    let Some(ocloc) = std::env::var_os("BANKSHOT_OCLOC").filter(|v| !v.is_empty()) else {
        println!("skipped: BANKSHOT_OCLOC names no ocloc");
        return;
    };
    let mut refusals = Vec::new();
    println!(
        "| module | kernel | SIMD | registers | spill | scratch | local memory | barriers | instructions | dp4a |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    for module in MODULES {
        let (kernels, log) = inspect(&ocloc, module);
        // The compiler's own warnings are of spills, and of compiling again because of them.
        for line in log.lines().filter(|line| line.to_ascii_lowercase().contains("warning")) {
            refusals.push(format!("{}: {}", module.name, line.trim()));
        }
        for kernel in module.kernels {
            let Some(seen) = kernels.get(*kernel) else {
                refusals.push(format!("{} {kernel}: not in the binary", module.name));
                continue;
            };
            let [simd, grf, spill, scratch, slm, barriers] =
                ["simd_size", "grf_count", "spill_size", "scratch", "slm_size", "barrier_count"].map(|k| seen.get(k));
            let (name, count, dp4a) = (module.name, seen.instructions, seen.dp4a);
            println!(
                "| {name} | {kernel} | {simd} | {grf} | {spill} | {scratch} | {slm} | {barriers} | {count} | {dp4a} |"
            );
            let mut refuse = |bad: bool, why: &str| {
                if bad {
                    refusals.push(format!("{name} {kernel}: {why}"));
                }
            };
            refuse(simd != 16, &format!("SIMD{simd}, where a team of lanes is 16"));
            refuse(spill > 0 || scratch > 0, &format!("{spill} bytes spilled, {scratch} bytes of scratch memory"));
            refuse(count > MOST_INSTRUCTIONS, &format!("{count} instructions"));
            refuse(module.card_spirv.is_some() && dp4a == 0, "no dp4a");
            refuse(name != SELFTEST && seen.divisions > 0, "a root or a division of floats");
        }
    }
    assert!(refusals.is_empty(), "{}", refusals.join("\n"));
}
