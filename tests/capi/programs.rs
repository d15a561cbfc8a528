//! Programs in C and C++, built by plain compilers, linked by the plain linker, and run.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use super::header::{all_addresses, root};
use super::packaged::{flags, package};

/// The command line's ids and texts are the oracle.
fn bankshot(args: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_bankshot")).args(args).output().expect("the program starts");
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

fn model() -> String {
    root().join("src/demo/demo-ud.gguf").to_str().expect("UTF-8").to_owned()
}

fn text_of(prompt: &str, n: usize) -> String {
    let n = n.to_string();
    bankshot(&["run", &model(), "-p", prompt, "-n", &n, "--device", "cpu"]).trim_end_matches('\n').to_owned()
}

fn ids_of(prompt: &str, n: usize) -> String {
    let n = n.to_string();
    bankshot(&["run", &model(), "-p", prompt, "-n", &n, "--device", "cpu", "--ids"]).trim().to_owned()
}

/// The libraries as they are packaged, laid out once.
fn libraries() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("capi");
        let output = package("lib", &folder).output().expect("cargo starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        folder
    })
}

/// A program of one source.
struct Program {
    path: PathBuf,
    folder: tempfile::TempDir,
}

impl Program {
    fn new(compiler: &[&str], source: &Path) -> Program {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("program");
        let output = Command::new(compiler[0])
            .args(&compiler[1..])
            .args(["-g", "-O1", "-pedantic", "-Wall", "-Wextra", "-Wno-cast-function-type", "-Werror"])
            .args([Path::new("-I"), &root().join("include"), Path::new("-o"), &path])
            // What follows is no C++ if the source is.
            .arg(source)
            .args(["-x", "none"])
            .args(flags(libraries(), "bankshot"))
            .output()
            .expect("a compiler");
        assert!(output.status.success(), "{}: {}", source.display(), String::from_utf8_lossy(&output.stderr));
        Program { path, folder }
    }

    fn of(compiler: &[&str], source: &str) -> Program {
        Program::new(compiler, &root().join(source))
    }

    fn run(&self, args: &[&str], input: &str) -> String {
        let (out, err) = self.both(args, input);
        assert_eq!(err, "", "nothing is printed but by the program");
        out
    }

    fn both(&self, args: &[&str], input: &str) -> (String, String) {
        self.start(Command::new(&self.path).args(args), input)
    }

    fn start(&self, command: &mut Command, input: &str) -> (String, String) {
        use std::io::Write;
        let streams = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = streams.spawn().expect("the program starts");
        // A program that ends before it has read all says so by its status.
        let _ = child.stdin.take().expect("a pipe").write_all(input.as_bytes());
        let output = child.wait_with_output().unwrap();
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{:?}: {out}\n{err}", output.status);
        (out.into_owned(), err.into_owned())
    }
}

const C: [&str; 2] = ["gcc", "-std=c11"];
const CPP: [&str; 2] = ["g++", "-std=c++17"];

#[test]
fn every_declared_function_is_linked() {
    let folder = tempfile::tempdir().unwrap();
    let main = "\n#include <stdio.h>\nint main(void) {\n    int there = 0;\n    for (int i = 0; i < function_count; i++) {\n        \
                there += all_functions[i] != NULL;\n    }\n    printf(\"%d\", there - function_count);\n    return 0;\n}\n";
    for (name, compiler) in [("all.c", C), ("all.cpp", CPP)] {
        let source = folder.path().join(name);
        std::fs::write(&source, all_addresses() + main).unwrap();
        assert_eq!(Program::new(&compiler, &source).run(&[], ""), "0");
    }
}

#[test]
fn c_and_cpp_have_the_ids_of_the_command_line() {
    let expected = ids_of("Once upon a time", 12);
    assert!(expected.starts_with("495 323 258 "), "{expected}");
    let source = "tests/capi/ids.c";
    for compiler in [&C[..], &["g++", "-std=c++17", "-x", "c++"]] {
        assert_eq!(Program::of(compiler, source).run(&["Once upon a time", "12"], "").trim(), expected);
    }
}

/// The C side alone is instrumented, with the copies that the library makes: what is given and written is checked at the border. The OpenCL driver
/// cannot be loaded under that sanitizer, so that this program computes nothing.
#[test]
fn a_program_is_clean_under_the_address_sanitizer() {
    let sanitized = ["gcc", "-std=c11", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"];
    let program = Program::of(&sanitized, "tests/capi/border.c");
    assert_eq!(program.run(&[], ""), "clean\n");
}

#[test]
fn the_example_chat_answers() {
    let program = Program::of(&C, "docs/examples/chat.c");
    let questions = "What is the capital of France?\nRepeat after me: silver garden tiger\n";
    let mut chat = Command::new(env!("CARGO_BIN_EXE_bankshot"));
    chat.args(["chat", &model(), "--no-think", "--device", "cpu"]);
    let expected = program.start(&mut chat, questions).0;
    assert!(expected.contains("Paris") && expected.contains("silver garden tiger"), "{expected}");
    let args = [&model()[..], "cpu"];
    assert_eq!(program.run(&args, questions), expected);
    let (_, error) = {
        let output = Command::new(&program.path).args(["/nowhere/model.gguf", "cpu"]).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        (output.stdout, String::from_utf8(output.stderr).unwrap())
    };
    assert!(error.starts_with("error 5: bankshot_engine_wait: ") && error.contains("/nowhere/model.gguf"), "{error}");
}

#[test]
fn the_example_of_two_sessions_goes_on_where_it_was_saved() {
    let program = Program::of(&CPP, "docs/examples/two_sessions.cpp");
    let folder = program.folder.path().join("saved");
    let text = program.run(&[folder.to_str().unwrap()], "");
    let lines: Vec<&str> = text.lines().collect();
    let [first, second, rest] = lines[..] else { panic!("{text}") };
    assert_eq!(first, text_of("Once upon a time", 8));
    assert_eq!(second, text_of("The old man", 16));
    assert_eq!(format!("{first}{rest}"), text_of("Once upon a time", 16));
}

#[test]
fn a_full_disk_has_its_status_and_the_session_goes_on() {
    let program = Program::of(&C, "tests/capi/disk.c");
    let folder = program.folder.path().join("saved");
    // Files of at most 64 KiB, and no signal at the limit.
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' XFSZ; ulimit -f 64; exec \"$0\" \"$1\""]).arg(&program.path).arg(&folder);
    let (_, said) = program.start(&mut command, "");
    assert_eq!(said.trim(), format!("{} 495", bankshot::capi::BANKSHOT_ERR_DISK));
    let left: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().ends_with(".bks")), "{left:?}");
}

#[test]
fn opening_and_closing_a_hundred_times_does_not_grow() {
    let program = Program::of(&C, "tests/capi/hundred.c");
    let text = program.run(&["100"], "");
    let kib: Vec<u64> = text.lines().map(|line| line.parse().unwrap()).collect();
    assert_eq!(kib.len(), 100);
    // The first times fill caches. After that, one engine's weights alone, 12 MiB, would be 1 GiB if they stayed.
    let (warm, last) = (kib[20..30].iter().max().unwrap(), kib[90..].iter().min().unwrap());
    assert!(*last < warm + (16 << 10), "from {warm} KiB to {last} KiB: {kib:?}");
}

#[test]
fn the_example_in_rust_has_the_text_of_the_command_line() {
    let folder = tempfile::tempdir().unwrap();
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(root()).args(["run", "--quiet", "--release", "--locked", "--example", "story", "--"]);
    let output = cargo.arg(folder.path()).output().expect("cargo starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.trim_end_matches('\n'), text_of("Once upon a time", 16));
}

#[test]
fn the_library_changes_nothing_of_the_process_but_two_variables() {
    let program = Program::of(&C, "tests/capi/still.c");
    let changed = |own: &[(&str, &str)]| {
        let mut command = Command::new(&program.path);
        for name in ["OCL_ICD_FILENAMES", "OCL_ICD_VENDORS", "ZES_ENABLE_SYSMAN"] {
            command.env_remove(name);
        }
        program.start(command.envs(own.iter().copied()), "")
    };
    // The second one is set by the SYCL runtime.
    let (said, printed) = changed(&[]);
    assert_eq!((&said[..], &printed[..]), ("environment OCL_ICD_FILENAMES\nenvironment ZES_ENABLE_SYSMAN\n", ""));
    // A program that sets them itself keeps its own.
    let driver = libraries().join("lib/bankshot/libintelocl.so");
    let own = [("OCL_ICD_FILENAMES", driver.to_str().unwrap()), ("ZES_ENABLE_SYSMAN", "1")];
    assert_eq!(changed(&own), (String::new(), String::new()));
}
