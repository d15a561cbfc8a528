//! Documents and sources say the same: paths, invariants, decisions, commands, settings, constants; and a few rules of style.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use regex::Regex;

/// Files over [`MOST_LINES`] that may be: generated.
const LONG: [&str; 2] = ["src/device/sys.rs", "level-zero-sys/src/bindings.rs"];
const MOST_LINES: usize = 800;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).unwrap()
}

/// Path and text of every file below these places that has one of these extensions.
fn files(places: &[&str], extensions: &[&str]) -> Vec<(String, String)> {
    let mut open: Vec<PathBuf> = places.iter().map(|place| root().join(place)).collect();
    let mut found = Vec::new();
    while let Some(path) = open.pop() {
        if path.is_dir() {
            open.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        } else if path.extension().is_some_and(|e| extensions.iter().any(|known| e == *known)) {
            let name = path.strip_prefix(root()).unwrap().to_str().unwrap().to_owned();
            found.push((name, fs::read_to_string(&path).unwrap()));
        }
    }
    found.sort();
    found
}

fn documents() -> Vec<(String, String)> {
    files(&["README.md", "CHANGELOG.md", "docs", "fuzz/README.md", "tests"], &["md"])
}

fn sources() -> Vec<(String, String)> {
    let fuzz = ["fuzz/bankshot.rs", "fuzz/fuzz_targets", "fuzz/seeds.rs", "fuzz/targets.rs"];
    let places = ["build.rs", "build", "include", "level-zero-sys/src", "src", "sycl-kernels", "tests"];
    files(&[&places[..], &fuzz].concat(), &["rs", "h", "hpp", "cpp", "txt"])
}

/// All first groups of a pattern, or whole matches if it has none.
fn all<'a>(pattern: &str, text: &'a str) -> Vec<&'a str> {
    regex(pattern).captures_iter(text).map(|c| c.get(1).unwrap_or_else(|| c.get(0).unwrap()).as_str()).collect()
}

/// Fails with every complaint, not the first one.
fn assert_none(complaints: Vec<String>) {
    assert!(complaints.is_empty(), "{} complaint(s)\n{}", complaints.len(), complaints.join("\n"));
}

/// Names of all test functions.
fn tests() -> BTreeSet<String> {
    let sources = files(&["src", "tests"], &["rs"]);
    let functions = sources.iter().flat_map(|(_, text)| all(r"#\[test\]\s+fn (\w+)\(", text));
    functions.map(str::to_owned).collect()
}

#[test]
fn paths_in_documents_exist() {
    let folders = r"(?:^|[^\w/.-])((?:src|docs|tests|build|fuzz|include|level-zero-sys|sycl-kernels|\.ci)/[\w./-]*|[\w-]+\.(?:rs|md|toml))";
    let mut complaints = Vec::new();
    for (name, text) in documents() {
        let own = Path::new(&name).parent().unwrap().to_owned();
        for path in all(folders, &text).into_iter().chain(all(r"\]\(([^)#:]+)\)", &text)) {
            let path = path.trim_end_matches(['.', '/']);
            if !root().join(path).exists() && !root().join(&own).join(path).exists() {
                complaints.push(format!("{name} names {path}, which does not exist"));
            }
        }
    }
    for (name, text) in sources() {
        let missing = all(r"\bdocs/[a-z]+\.md\b", &text).into_iter().filter(|path| !root().join(path).exists());
        complaints.extend(missing.map(|path| format!("{name} names {path}, which does not exist")));
    }
    assert_none(complaints);
}

#[test]
fn invariants_name_tests_that_exist() {
    let (text, tests) = (read("docs/architecture.md"), tests());
    let mut known = BTreeSet::new();
    let mut complaints = Vec::new();
    for entry in text.split("\n- **I-").skip(1) {
        let entry = entry.split("\n\n").next().unwrap();
        let id = format!("I-{}", entry.split("**").next().unwrap());
        let words = entry.split_whitespace().collect::<Vec<_>>().join(" ");
        let shown = words.split_once("Shown by").map_or("", |(_, shown)| shown);
        let named = all(r"`(\w+)`", shown);
        if named.is_empty() {
            complaints.push(format!("{id} names no test"));
        }
        complaints.extend(
            named.iter().filter(|test| !tests.contains(**test)).map(|test| format!("{id}: there is no test {test}")),
        );
        if !known.insert(id.clone()) {
            complaints.push(format!("{id} is there twice"));
        }
    }
    assert!(known.len() > 10, "{known:?}");
    for (name, text) in documents().into_iter().chain(sources()) {
        let cited = all(r"\bI-[A-Z]+-\d+\b", &text);
        let unknown = cited.into_iter().filter(|id| !known.contains(*id));
        complaints.extend(unknown.map(|id| format!("{name} cites {id}, which is not in docs/architecture.md")));
    }
    assert_none(complaints);
}

#[test]
fn decisions_are_numbered_and_dated() {
    let text = read("docs/decisions.md");
    let known = all(r"(?m)^## (D-\d{3}) .+ \(\d{4}-\d\d-\d\d\)$", &text);
    let expected: Vec<String> = (1..=text.matches("\n## ").count()).map(|n| format!("D-{n:03}")).collect();
    assert_eq!(known, expected, "headings are `## D-001 Title (date)`, in order");
    let mut complaints = Vec::new();
    for (name, text) in documents().into_iter().chain(sources()) {
        let unknown = all(r"\bD-\d{3}\b", &text).into_iter().filter(|id| !known.contains(id));
        complaints.extend(unknown.map(|id| format!("{name} cites {id}, which is not in docs/decisions.md")));
    }
    assert_none(complaints);
}

/// Runs a line of shell at the repository's root with the program on the path.
fn shell(line: &str) -> String {
    let folder = Path::new(env!("CARGO_BIN_EXE_bankshot")).parent().unwrap();
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    let output = Command::new("sh").args(["-c", line]).current_dir(root()).env("PATH", path).output().unwrap();
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn commands_and_options_in_documents_exist() {
    let help = shell("bankshot --help");
    let commands = all(r"(?m)^  ([a-z-]+)  ", &help);
    assert!(commands.contains(&"demo") && commands.contains(&"logits"), "{commands:?}");
    let mut complaints = Vec::new();
    for (name, text) in documents() {
        let inline = all(r"`(bankshot [^`\n]+)`", &text);
        let fenced = text.split("```").skip(1).step_by(2).flat_map(str::lines);
        for line in fenced.chain(inline) {
            let line = line.trim_start_matches("$ ");
            let called = line.strip_prefix("bankshot ").or_else(|| line.strip_prefix("cargo run --release -- "));
            let Some((command, rest)) = called.map(|call| call.split_once(' ').unwrap_or((call, ""))) else { continue };
            if !commands.contains(&command) {
                complaints.push(format!("{name}: there is no command {command}: {line}"));
                continue;
            }
            let mut help = shell(&format!("bankshot {command} --help"));
            let word = rest.split_whitespace().next().unwrap_or_default();
            if all(r"(?m)^  ([a-z-]+)  ", &help).contains(&word) {
                help = shell(&format!("bankshot {command} {word} --help"));
            }
            let options = all(r"(?:^|\s)(--?[a-z][a-z-]*)", &help);
            let unknown = all(r"(?:^|\s)(--?[a-z][a-z-]*)", rest).into_iter().filter(|o| !options.contains(o));
            complaints.extend(unknown.map(|option| format!("{name}: {command} has no {option}: {line}")));
        }
    }
    assert_none(complaints);
}

#[test]
fn readme_shows_what_the_program_prints() {
    let text = read("README.md");
    let blocks: Vec<&str> = text.split("```console\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert!(blocks.len() >= 5, "{} blocks", blocks.len());
    for block in blocks {
        let (command, shown) = block.strip_prefix("$ ").and_then(|block| block.split_once('\n')).expect("a command");
        let output = shell(command);
        let mut lines = output.lines();
        for line in shown.lines().filter(|line| *line != "...") {
            assert!(lines.any(|printed| printed == line), "{command} does not print {line:?} there:\n{output}");
        }
    }
}

#[test]
fn settings_are_in_the_readme() {
    let names =
        |pattern: &str, text: &str| -> BTreeSet<String> { all(pattern, text).into_iter().map(str::to_owned).collect() };
    // The C API's constants begin alike.
    let others = sources().into_iter().filter(|(name, _)| !name.contains("capi"));
    let code: BTreeSet<String> = others.flat_map(|(_, text)| names("\"(BANKSHOT_[A-Z_]+[A-Z])\"", &text)).collect();
    assert_eq!(names(r"\b(BANKSHOT_[A-Z_]+[A-Z])\b", &read("README.md")), code);
}

/// The numbers of a piece of code, without signs, as f32 bits.
fn numbers(text: &str) -> BTreeSet<u32> {
    let text = regex("//.*").replace_all(text, "");
    let parse = |number: &str| {
        let plain = number.replace('_', "");
        match plain.strip_prefix("0x") {
            Some(hex) => u32::from_str_radix(hex, 16).unwrap(),
            None => plain.parse::<f32>().unwrap().to_bits(),
        }
    };
    all(r"\b(0x[0-9A-F_]+|\d[\d_]*(?:\.[\d_]+)?(?:e-?\d+)?)", &text).into_iter().map(parse).collect()
}

#[test]
fn constants_are_those_of_the_contract() {
    let page = read("docs/numerics.md");
    for name in ["exp", "log"] {
        let row = page.lines().find(|line| line.starts_with(&format!("| `{name}("))).expect("a row of N1");
        let expected = numbers(row.split(" | ").nth(1).unwrap());
        assert!(expected.len() > 10, "{name}: {row}");
        for (file, start) in [
            ("src/oracle/scalar.rs", format!("pub fn {name}(")),
            ("sycl-kernels/common/math.hpp", format!("static inline float xk_{name}(")),
        ] {
            let text = read(file);
            let body = text.split_once(&start).unwrap_or_else(|| panic!("{file} has no {start}")).1;
            let found = numbers(body.split_once('{').unwrap().1.split("\n}").next().unwrap());
            let show = |bits: &u32| format!("{:e} ({bits:#x})", f32::from_bits(*bits));
            let differ: Vec<String> = expected.symmetric_difference(&found).map(show).collect();
            assert!(differ.is_empty(), "{name} of {file} and docs/numerics.md differ in {differ:?}");
        }
    }
}

#[test]
fn sources_keep_to_the_style() {
    // Written so that they do not match themselves.
    let leftover = regex(r"TO{1}DO|FIX{1}ME|X{3}\b|db{1}g!|tod{1}o!|unimplemente{1}d!");
    let block = regex(r"\bunsafe (?:\{|impl\b)");
    let mut complaints = Vec::new();
    for (name, text) in sources().into_iter().chain(documents()) {
        let lines: Vec<&str> = text.lines().collect();
        if lines.len() > MOST_LINES && !LONG.contains(&name.as_str()) {
            complaints.push(format!("{name} has {} lines, more than {MOST_LINES}", lines.len()));
        }
        for (at, line) in lines.iter().enumerate() {
            if leftover.is_match(line) {
                complaints.push(format!("{name}:{}: {}", at + 1, line.trim()));
            }
            let is_ours = name.starts_with("src/") && name.ends_with(".rs") && !LONG.contains(&name.as_str());
            // Of the three lines above, those that do not belong to another block.
            let mut above = lines[at.saturating_sub(3)..at].iter().rev().take_while(|line| !block.is_match(line));
            let mut is_safe = || above.any(|line| line.contains("// SAFETY: "));
            if is_ours && block.is_match(line.split("//").next().unwrap()) && !is_safe() {
                complaints.push(format!("{name}:{}: `unsafe` without a SAFETY comment", at + 1));
            }
        }
    }
    assert_none(complaints);
}
