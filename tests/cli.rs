//! The program as its users meet it: what it prints, where, and with which exit code.

#[path = "support/gguf_writer.rs"]
mod gguf_writer;
#[path = "support/random.rs"]
#[allow(dead_code, reason = "shared with other tests")]
mod random;
#[path = "support/random_model.rs"]
#[allow(dead_code, reason = "shared with other tests")]
mod random_model;

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use gguf_writer::GgufWriter;
use serde_json::Value;

const MODEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/demo/demo-ud.gguf");

fn bankshot(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bankshot"));
    command.args(args).stdin(Stdio::null());
    command
}

fn output(args: &[&str]) -> Output {
    bankshot(args).output().expect("the program starts")
}

fn stdout(args: &[&str]) -> String {
    let output = output(args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// The last line as JSON.
fn json(args: &[&str]) -> Value {
    let text = stdout(args);
    serde_json::from_str(text.lines().last().expect("a line")).expect("JSON")
}

/// The error text of a command that fails with exit code 1.
fn failure(args: &[&str]) -> String {
    let output = output(args);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{args:?}: {text}");
    assert!(!text.contains("panicked"), "{text}");
    text
}

/// libOpenCL names no folder for what it needs. Level Zero's adapters have loaded the same, but not if they are left out.
#[test]
fn the_cpu_is_found_without_level_zero() {
    let output =
        bankshot(&["devices"]).env("ONEAPI_DEVICE_SELECTOR", "opencl:cpu").output().expect("the program starts");
    let text = String::from_utf8_lossy(&output.stdout);
    let devices = text.split("Level Zero").next().unwrap();
    assert!(devices.contains("opencl"), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn demo_answers() {
    let text = stdout(&["demo", "-n", "16"]);
    assert!(text.contains("> What is the capital of France?\nThe capital of France is Paris."), "{text}");
    assert!(text.contains("\nsilver garden tiger\n") && text.contains("device   ") && text.contains("tok/s"), "{text}");
    let demo = json(&["demo", "-n", "4", "--json"]);
    assert_eq!(demo["answers"].as_array().map(Vec::len), Some(4));
    assert_eq!(demo["answers"][0]["finish_reason"], "length");
}

#[test]
fn sums_are_checked_before_loading() {
    let folder = tempfile::tempdir().unwrap();
    let list = folder.path().join("sums");
    let list = list.to_str().unwrap();
    let sum = Command::new("sha256sum").arg(MODEL).output().unwrap().stdout;
    std::fs::write(list, &sum).unwrap();
    let run = ["run", MODEL, "-p", "Once upon a time", "-n", "3", "--check-sums", list];
    assert_eq!(stdout(&run), " there was a\n");
    let mut other = sum;
    other[0] = if other[0] == b'0' { b'1' } else { b'0' };
    std::fs::write(list, &other).unwrap();
    let text = failure(&run);
    assert!(text.contains("--check-sums: the model's files are not those of the list:\n"), "{text}");
    assert!(text.contains("demo-ud.gguf: expected SHA-256 ") && !text.contains("loading onto"), "{text}");
    let text = failure(&["demo", "--check-sums", list]);
    assert!(
        text.contains("--check-sums: expected a model of files whose sums can be checked, found the model"),
        "{text}"
    );
}

#[test]
fn run_gives_text_ids_and_json() {
    let chat = ["run", MODEL, "--chat", "-p", "What is the capital of France?", "-n", "40"];
    let object = json(&[&chat[..], &["--json"]].concat());
    // The template opens a thought, which the model closes.
    assert!(object["text"].as_str().unwrap().contains("The capital of France is Paris."), "{object}");
    assert_eq!(object["finish_reason"], "stop");
    for key in ["prompt_ids", "ids", "timings"] {
        assert!(!object[key].is_null(), "{key}");
    }
    let story = json(&["run", MODEL, "-p", "Once upon a time", "-n", "3", "--json", "--chunk", "1"]);
    assert_eq!(story["ids"], serde_json::json!([495, 323, 258]));
    assert_eq!(stdout(&["run", MODEL, "-p", "Once upon a time", "-n", "3", "--ids"]).trim(), "495 323 258");
    assert_eq!(stdout(&["run", MODEL, "-p", "Once upon a time", "-n", "3"]), " there was a\n");
    assert_eq!(json(&["run", MODEL, "-p", "Once", "-n", "0", "--json"])["ids"], serde_json::json!([]));
    let measured = json(&["run", MODEL, "-p", "Once upon a time", "-n", "3", "--json", "--breakdown"]);
    assert_eq!(measured["ids"], story["ids"]);
    let calls = |part: &str| {
        let ops = measured["breakdown"][part].as_array().unwrap();
        ops.iter().find(|op| op["name"] == "output").unwrap()["calls"].clone()
    };
    assert_eq!((calls("prompt"), calls("answer")), (1.into(), 2.into()));
    let full = json(&["run", MODEL, "-p", "Once upon a time", "-n", "50", "--ctx", "10", "--json"]);
    assert_eq!(full["finish_reason"], "context");
    assert_eq!(full["ids"].as_array().map(Vec::len), Some(7), "six more fit, and the last needs no place");
}

#[test]
fn prompts_come_from_files_and_pipes() {
    let mut child = bankshot(&["run", MODEL, "--prompt-file", "-", "-n", "3", "--ids"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"Once upon a time").unwrap();
    let mut text = String::new();
    child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    assert_eq!(text.trim(), "495 323 258");
    assert!(child.wait().unwrap().success());
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("latin1.txt");
    std::fs::write(&file, b"caf\xe9").unwrap();
    assert!(failure(&["run", MODEL, "--prompt-file", file.to_str().unwrap()]).contains("expected UTF-8 text"));
    assert!(failure(&["run", MODEL, "--prompt-file", "/no/such/file"]).contains("cannot read /no/such/file"));
}

/// Runs `chat` with these lines on a pipe.
fn chat(lines: &str, out: Stdio) -> Output {
    let mut command = bankshot(&["chat", MODEL, "--no-think", "-n", "40"]);
    let mut child = command.stdin(Stdio::piped()).stdout(out).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

#[test]
fn chat_talks_over_a_pipe() {
    let lines =
        "Hello!\nWhat is the capital\\\n of France?\n\n/nonsense\n/reset\nRepeat after me: silver garden tiger\n";
    let output = chat(lines, Stdio::piped());
    assert!(output.status.success(), "{output:?}");
    let expected = "Hello! How can I help you?\nThe capital of France is Paris.\n\
                    `/nonsense` is not a command; /help lists them\nsilver garden tiger\n";
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = chat("Hello!\n", full.into());
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("No space left"), "{output:?}");
}

#[test]
fn inspect_and_tokenize_tell_what_is_there() {
    let text = stdout(&["inspect", MODEL]);
    for part in [
        "qwen4exp.block_count = 8",
        "IQ4_NL",
        "bytes a token",
        "routed experts",
        "6 gated delta net, 2 sparse attention",
    ] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    let object = json(&["inspect", MODEL, "--json", "--tensors"]);
    assert_eq!(object["tensors"].as_array().map(Vec::len), Some(214));
    assert_eq!(object["model"]["layers"]["gated_delta_net"], 6);
    assert_eq!(json(&["tokenize", MODEL, "-p", "Once upon a time", "--json"])["ids"].as_array().map(Vec::len), Some(4));
    let special = json(&["tokenize", MODEL, "-p", "<|im_end|>", "--json"]);
    let plain = json(&["tokenize", MODEL, "-p", "<|im_end|>", "--no-special", "--json"]);
    assert_eq!(special["ids"].as_array().map(Vec::len), Some(1));
    assert!(plain["ids"].as_array().unwrap().len() > 1);
}

#[test]
fn logits_are_stored_for_numpy() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("logits.npy");
    let object = json(&["logits", MODEL, "--ids", "495,323,258", "--out", file.to_str().unwrap(), "--json"]);
    let bytes = std::fs::read(&file).unwrap();
    let header = usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    assert_eq!(&bytes[..8], b"\x93NUMPY\x01\x00");
    assert_eq!((10 + header) % 64, 0);
    let text = String::from_utf8_lossy(&bytes[10..10 + header]).into_owned();
    assert!(text.contains("'descr': '<f4'") && text.contains("'shape': (3, 4096)"), "{text}");
    let values: Vec<f32> =
        bytes[10 + header..].chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
    assert_eq!(values.len(), 3 * 4096);
    let last = &values[2 * 4096..];
    let best = object["argmax"][2].as_u64().unwrap() as usize;
    assert!(last.iter().all(|logit| *logit <= last[best]));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "no partial file is left");
    assert!(failure(&["logits", MODEL, "--ids", "4096"]).contains("token id: expected less than 4096, got 4096"));
    let error = failure(&["logits", MODEL, "--ids", "1", "--out", "/no/such/folder/x.npy"]);
    assert!(error.contains("cannot write /no/such/folder/x.npy"), "{error}");
}

#[test]
fn perplexity_scores_windows() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("text.txt");
    std::fs::write(&file, "Once upon a time there was a quick rabbit named Rose who lived in a cottage. ".repeat(8))
        .unwrap();
    let args = ["perplexity", MODEL, "--text", file.to_str().unwrap(), "--ctx", "32", "--windows", "2", "--json"];
    let object = json(&args);
    assert_eq!((object["windows"].as_u64(), object["scored_tokens"].as_u64()), (Some(2), Some(30)));
    assert!(object["perplexity"].as_f64().unwrap() > 1.0 && object["error"].as_f64().unwrap() > 0.0);
    // The same from the logits that another command stores.
    let ids = json(&["tokenize", MODEL, "--prompt-file", file.to_str().unwrap(), "--json"])["ids"].clone();
    let ids: Vec<usize> = ids.as_array().unwrap().iter().map(|id| id.as_u64().unwrap() as usize).collect();
    let mut sum = 0.0;
    for window in ids.chunks_exact(32).take(2) {
        let out = folder.path().join("w.npy");
        let list = window.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
        stdout(&["logits", MODEL, "--ids", &list, "--out", out.to_str().unwrap()]);
        let bytes = std::fs::read(&out).unwrap();
        let values: Vec<f64> = bytes[bytes.len() - 4 * 32 * 4096..]
            .chunks_exact(4)
            .map(|b| f64::from(f32::from_le_bytes([b[0], b[1], b[2], b[3]])))
            .collect();
        for at in 16..31 {
            let row = &values[at * 4096..][..4096];
            sum += row.iter().map(|logit| logit.exp()).sum::<f64>().ln() - row[window[at + 1]];
        }
    }
    let expected = (sum / 30.0).exp();
    assert!((object["perplexity"].as_f64().unwrap() / expected - 1.0).abs() < 1e-6, "{object}, expected {expected}");
    let error = failure(&["perplexity", MODEL, "--text", file.to_str().unwrap(), "--ctx", "4096"]);
    assert!(error.contains("expected at least one window of 4096 tokens, found"), "{error}");
}

#[test]
fn cards_and_budgets_change_nothing() {
    let logits =
        |options: &[&str]| json(&[&["logits", MODEL, "--ids", "1491,693,258,539", "--json"], options].concat());
    let expected = logits(&[]);
    for options in [
        &["--device", "cpu:2"][..],
        &["--device", "cpu,cpu", "--split", "tensor"],
        &["--device", "cpu:4", "--split", "layer", "--expert-budget", "1M"],
        &["--expert-budget", "2M", "--host-expert-budget", "1M"],
    ] {
        assert_eq!(logits(options), expected, "{options:?}");
    }
    for (options, said) in [
        (&["--device", "cpu:0"][..], "--device: expected 1 to 64 behind the colon, got `cpu:0`"),
        (&["--device", "cpu:x"], "--device: expected 1 to 64 behind the colon, got `cpu:x`"),
        (&["--device", "cpu,nowhere"], "got `nowhere`; devices:"),
        (&["--device", "cpu:9"], "9 cards: expected at most 8, each card of a layer split has at least one layer"),
        (&["--expert-budget", "1000"], "the smallest change that fits: --expert-budget "),
        (&["--expert-budget", "2M", "--host-expert-budget", "1000"], "--host-expert-budget allows 1000 bytes"),
        (&["--save-expert-profile", "profile"], "expected experts that are not all resident"),
        (&["--expert-profile", "/nowhere/profile"], "/nowhere/profile"),
        (&["--routing-trace", "/nowhere/trace"], "/nowhere/trace"),
        (&["--expert-profile", MODEL], "expected an expert profile"),
    ] {
        let split: &[&str] = if options.contains(&"cpu:9") { &["--split", "layer"] } else { &[] };
        let text = failure(&[&["logits", MODEL, "--ids", "1"], options, split].concat());
        assert!(text.contains(said), "{options:?}: {text}");
    }
}

#[test]
fn a_run_has_the_split_that_plan_prints() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("dense.gguf");
    std::fs::write(&file, random_model::random_model("qwen35")).unwrap();
    let model = file.to_str().unwrap();
    // Without an estimate a dense model has a tensor split, whose exchanges take longer than all else of so small a model.
    let plan = json(&["plan", model, "--device", "cpu:2", "--json"]);
    assert_eq!(plan["split"], "layer", "{}", plan["split_reason"]);
    let exchanges = |options: &[&str]| {
        let run = ["run", model, "-p", "a", "-n", "2", "--device", "cpu:2", "--breakdown", "--json"];
        json(&[&run[..], options].concat()).to_string().contains("\"exchange\"")
    };
    assert!(!exchanges(&[]) && exchanges(&["--split", "tensor"]));
}

#[test]
fn profiles_and_traces_are_stored_and_used() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (profile, trace) = (path("profile"), path("trace"));
    let run = ["run", MODEL, "-p", "Once upon a time", "-n", "40", "--json", "--expert-budget", "2M"];
    let first = json(&[&run[..], &["--save-expert-profile", &profile, "--routing-trace", &trace]].concat());
    let second = json(&[&run[..], &["--expert-profile", &profile]].concat());
    assert_eq!(first["ids"], second["ids"]);
    let rate = |answer: &Value| {
        let number = |name: &str| answer["experts"][name].as_u64().unwrap() as f64;
        number("hits") / (number("hits") + number("misses"))
    };
    assert!(rate(&second) > rate(&first), "{first} {second}");
    // 40 tokens and a prompt of 4, the last token computed no more.
    assert_eq!(first["experts"]["steps"], 40);
    let replay = json(&["residency-sim", &trace, "--slots", "4", "--json"]);
    assert!(replay.to_string().contains("optimum"), "{replay}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2, "nothing else is left");
}

#[test]
fn bad_models_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| -> PathBuf {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    };
    let demo = std::fs::read(MODEL).unwrap();
    let cases: [(&Path, &[&str]); 6] = [
        (Path::new("/no/such/model.gguf"), &["/no/such/model.gguf", "No such file"]),
        (folder.path(), &["directory"]),
        (&write("text.gguf", b"this is not a model, it is a letter"), &["GGUF", "text.gguf"]),
        (&write("empty.gguf", b""), &["empty.gguf", "expected"]),
        (&write("cut.gguf", &demo[..demo.len() / 2]), &["cut.gguf", "expected", "found"]),
        (
            &write("other.gguf", &GgufWriter::new("llama").kv_u32("llama.block_count", 1).to_bytes()),
            &["expected qwen35, qwen35moe, qwen3next or qwen4exp", "found llama"],
        ),
    ];
    for (path, parts) in cases {
        for command in [
            &["run", "-p", "x"][..],
            &["tokenize", "-p", "x"],
            &["inspect"],
            &["logits", "--ids", "1"],
            &["perplexity", "--text", MODEL],
        ] {
            let mut args = vec![command[0], path.to_str().unwrap()];
            args.extend(&command[1..]);
            let error = failure(&args);
            for part in parts {
                assert!(error.contains(part), "{args:?}: `{part}` is not in {error}");
            }
            assert!(error.matches("found llama").count() < 2, "{args:?}: said twice in {error}");
        }
    }
}

#[test]
fn bad_arguments_are_named() {
    let error = failure(&["run", MODEL, "-p", "x", "--device", "abacus"]);
    assert!(
        error.contains("--device: expected a number of this list, `cpu` or `gpu`, got `abacus`")
            && error.contains("0: "),
        "{error}"
    );
    assert!(
        failure(&["run", MODEL, "-p", "x", "--ctx", "9000"])
            .contains("context: expected 1 to 8192 tokens (the model's own limit), got 9000")
    );
    assert!(failure(&["run", MODEL, "-p", "x", "--chunk", "0"]).contains("chunk: expected 1 to 4096 tokens, got 0"));
    assert!(failure(&["run", MODEL, "-p", ""]).contains("the prompt is empty"));
    let huge = "word ".repeat(9000);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("huge.txt");
    std::fs::write(&file, huge).unwrap();
    assert!(
        failure(&["run", MODEL, "--prompt-file", file.to_str().unwrap()])
            .contains("expected at most 8192, the context's length")
    );
    for args in [
        &["run", MODEL][..],
        &["run", MODEL, "-p", "x", "--system", "y"],
        &["frobnicate"],
        &["logits", MODEL, "--ids", "one"],
    ] {
        let output = output(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
    }
}

#[test]
fn a_closed_pipe_is_no_error_and_a_full_disk_is() {
    let mut child = bankshot(&["run", MODEL, "-p", "Once upon a time", "-n", "200"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let mut errors = String::new();
    child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
    assert!(child.wait().unwrap().success(), "{errors}");
    assert!(!errors.contains("error"), "{errors}");
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = bankshot(&["run", MODEL, "-p", "Once upon a time", "-n", "3"]).stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("No space left"), "{output:?}");
}

#[test]
fn an_interrupt_ends_the_answer() {
    let mut child = bankshot(&["run", MODEL, "-p", "Once upon a time", "-n", "4000"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut reader = BufReader::new(child.stdout.take().unwrap());
    let mut first = [0; 6];
    reader.read_exact(&mut first).unwrap();
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(child.id() as i32), nix::sys::signal::Signal::SIGINT).unwrap();
    let mut rest = String::new();
    while reader.read_line(&mut rest).unwrap() > 0 {}
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let mut errors = String::new();
    child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
    assert!(errors.contains("ended by interrupted"), "{errors}");
}

#[test]
fn an_interrupt_ends_the_breakdown_and_keeps_the_answer() {
    let mut child = bankshot(&["run", MODEL, "-p", "Once upon a time", "-n", "400", "--breakdown"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut errors = BufReader::new(child.stderr.take().unwrap());
    // The answer is complete, and its tokens are about to be computed again.
    let mut text = String::new();
    while !text.contains("n-gram rows") {
        assert!(errors.read_line(&mut text).unwrap() > 0, "{text}");
    }
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(child.id() as i32), nix::sys::signal::Signal::SIGINT).unwrap();
    errors.read_to_string(&mut text).unwrap();
    let mut answer = String::new();
    child.stdout.take().unwrap().read_to_string(&mut answer).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{text}");
    assert!(answer.starts_with(" there was a quick rabbit") && answer.ends_with('\n'), "{answer}");
    assert!(text.contains("; ended by ") && !text.contains("with a wait after every operation"), "{text}");
}

#[test]
fn two_first_starts_at_once_share_a_cache() {
    let folder = tempfile::tempdir().unwrap();
    let start = || {
        let mut command = bankshot(&["run", MODEL, "-p", "Once upon a time", "-n", "3", "--ids"]);
        command.env("BANKSHOT_CACHE_DIR", folder.path()).stdout(Stdio::piped()).stderr(Stdio::null());
        command.spawn().unwrap()
    };
    let children = [start(), start()];
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success());
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "495 323 258");
    }
    // A cache that cannot be used costs time and nothing else.
    let unusable = folder.path().join("file");
    std::fs::write(&unusable, "").unwrap();
    let output = bankshot(&["tokenize", MODEL, "-p", "x"]).env("BANKSHOT_CACHE_DIR", &unusable).output().unwrap();
    assert!(output.status.success());
}

/// A folder of sessions, with what names it on the command line.
fn sessions() -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("kept").to_str().unwrap().to_owned();
    (folder, dir)
}

#[test]
fn a_saved_run_goes_on_as_if_it_had_not_stopped() {
    let (_folder, dir) = sessions();
    let run = |args: &[&str]| json(&[&["run", MODEL, "--json", "--session-dir", &dir], args].concat());
    let whole = json(&["run", MODEL, "--json", "-p", "Once upon a time", "-n", "24"]);
    let first = run(&["-p", "Once upon a time", "-n", "10", "--save", "first"]);
    assert_eq!(first["saved"]["tokens"], 14);
    let second = run(&["--restore", "first", "-n", "7", "--save", "second", "--compress"]);
    assert_eq!((&second["restored_tokens"], &second["timings"]["prompt_tokens"]), (&14.into(), &0.into()));
    let third = run(&["--restore", "second", "-n", "7", "--device", "cpu:2"]);
    let ids: Vec<Value> =
        [first, second, third].iter().flat_map(|part| part["ids"].as_array().unwrap().clone()).collect();
    assert_eq!(Value::from(ids), whole["ids"]);
    // A prompt that follows a session, and the same at once.
    let more = run(&["--restore", "first", "-p", " The fox", "-n", "4"]);
    let text = format!(
        "Once upon a time{} The fox",
        stdout(&["run", MODEL, "-p", "Once upon a time", "-n", "10"]).trim_end_matches('\n')
    );
    assert_eq!(more["ids"], json(&["run", MODEL, "--json", "-p", &text, "-n", "4"])["ids"]);
    // Saved under its own name: what was a delta of it is in the way.
    let text = failure(&["run", MODEL, "--session-dir", &dir, "--restore", "first", "-n", "2", "--save", "first"]);
    assert!(text.contains("session first: ") && text.contains("second"), "{text}");
    run(&["--restore", "second", "-n", "2", "--save", "second"]);
    run(&["--restore", "first", "-n", "9", "--save", "second", "--replace"]);
    assert_eq!(json(&["session", "inspect", "second", "--session-dir", &dir, "--json"])["tokens"], 23);
}

#[test]
fn sessions_are_looked_at_and_deleted() {
    let (_folder, dir) = sessions();
    let session = |args: &[&str]| stdout(&[&["session"], args, &["--session-dir", &dir]].concat());
    let text = session(&["save", MODEL, "system", "-p", "You are a helpful assistant."]);
    assert!(text.starts_with("saved 'system': ") && text.contains(" bytes, snapshot "), "{text}");
    session(&["save", MODEL, "one", "-p", " One.", "--restore", "system"]);
    session(&["save", MODEL, "two", "-p", " Two.", "--restore", "one", "--compress"]);
    let text = session(&["list"]);
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines.len() == 3 && lines[0].starts_with("one  ") && lines[0].ends_with(", on 'system'"), "{text}");
    let info = json(&["session", "inspect", "two", "--session-dir", &dir, "--model", MODEL, "--verify", "--json"]);
    assert_eq!(
        (&info["taken"], &info["verified"], &info["chain"][1]["name"]),
        (&true.into(), &true.into(), &"system".into())
    );
    assert_eq!(info["text_start"], "You are a helpful assistant. One. Two.");
    let text = session(&["inspect", "two", "--model", MODEL, "--kv", "f32"]);
    assert!(text.contains("does not take it: cache: expected f32, found f16"), "{text}");
    let text = session(&["restore", MODEL, "two"]);
    assert!(text.starts_with("restored 'two': ") && text.contains("most likely next: "), "{text}");
    let text = failure(&["session", "delete", "one", "--session-dir", &dir]);
    assert!(text.contains("session one: ") && text.contains("two"), "{text}");
    session(&["delete", "one", "--reparent"]);
    let text = session(&["list"]);
    assert!(text.lines().count() == 2 && text.contains("on 'system'"), "{text}");
    let text = session(&["prune", "--max-bytes", "0"]);
    assert_eq!(text.lines().count(), 2, "{text}");
    assert_eq!(session(&["list"]), "");
}

#[test]
fn bad_sessions_are_named() {
    let (folder, dir) = sessions();
    let run = |args: &[&str]| failure(&[&["run", MODEL, "--session-dir", &dir], args].concat());
    let text = run(&["--restore", "a"]);
    assert!(text.contains("--session-dir: expected a folder, found none at ") && text.contains(&dir), "{text}");
    assert!(!Path::new(&dir).exists());
    stdout(&["session", "save", MODEL, "a", "-p", "Once upon a time", "--session-dir", &dir]);
    let text = run(&["--restore", "b"]);
    assert!(text.contains("session b: expected a file ") && text.contains("found none"), "{text}");
    let text = run(&["-p", "x", "-n", "1", "--save", "../a"]);
    assert!(text.contains("session name \"../a\": expected "), "{text}");
    for command in ["run", "chat"] {
        let prompt: &[&str] = if command == "run" { &["-p", "x"] } else { &[] };
        let text = failure(&[&[command, MODEL, "--session-dir", &dir, "--save", "a"], prompt].concat());
        assert!(text.contains("session 'a': expected a new name, found one that is there: --restore"), "{text}");
    }
    let text = run(&["--restore", "a", "-n", "1", "--ctx", "3"]);
    assert!(text.contains("the session has ") && text.contains("expected at most 3"), "{text}");
    let text = run(&["--restore", "a", "-n", "1", "--kv", "f32"]);
    assert!(text.contains("session a: cache: expected f32, found f16"), "{text}");
    let text = failure(&["chat", MODEL, "--session-dir", &dir, "--restore", "a"]);
    assert!(text.contains("session 'a': expected the messages of a conversation, found none"), "{text}");
    // Clap's own errors.
    for args in [
        &["run", MODEL, "--save", "a", "-p", "x"][..],
        &["run", MODEL, "--session-dir", &dir],
        &["run", MODEL, "--session-dir", &dir, "--restore", "a", "--chat", "-p", "x"],
        &["session", "list"],
        &["session", "prune", "--session-dir", &dir],
    ] {
        assert_eq!(output(args).status.code(), Some(2), "{args:?}");
    }
    // A damaged file is listed, and refused.
    let path = Path::new(&dir).join("a.bks");
    let mut bytes = std::fs::read(&path).unwrap();
    let half = bytes.len() / 2;
    bytes[half] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    let text = run(&["--restore", "a", "-n", "1"]);
    assert!(text.contains("a.bks': ") && text.contains("checksum"), "{text}");
    std::fs::write(&path, &bytes[..100]).unwrap();
    std::fs::write(Path::new(&dir).join("b.bks"), "text").unwrap();
    let text = stdout(&["session", "list", "--session-dir", &dir]);
    assert!(text.lines().count() == 2 && text.matches("unusable: ").count() == 2, "{text}");
    // No room: a clear error, and what was there stays.
    let small = folder.path().join("small");
    let small = small.to_str().unwrap();
    let save = format!(
        "trap '' XFSZ; ulimit -f 400; exec {} session save {MODEL} big -p 'Once upon a time' --session-dir {small}",
        env!("CARGO_BIN_EXE_bankshot")
    );
    let output = Command::new("sh").args(["-c", &save]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(1) && text.contains("cannot write '") && text.contains("big.bks"), "{text}");
    let left: Vec<_> = std::fs::read_dir(small).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| name == ".lock"), "{left:?}");
}

#[test]
fn a_conversation_survives_a_kill() {
    let (_folder, dir) = sessions();
    let mut child = bankshot(&["chat", MODEL, "--no-think", "--session-dir", &dir, "--save", "talk", "-n", "12"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    writeln!(input, "Repeat after me: silver garden tiger").unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "silver garden tiger");
    let saved = || output(&["session", "inspect", "talk", "--session-dir", &dir, "--json"]);
    let begin = std::time::Instant::now();
    while !saved().status.success() {
        assert!(begin.elapsed().as_secs() < 60, "the turn was not saved");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    // In the middle of the second turn.
    writeln!(input, "Hello!").unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let chat = |args: &[&str], text: &str| {
        let mut child = bankshot(&[&["chat", MODEL, "-n", "12"], args].concat())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success());
        String::from_utf8(output.stdout).unwrap()
    };
    let whole = chat(&["--no-think"], "Repeat after me: silver garden tiger\nHello!\nWhat is the capital of France?\n");
    let rest = chat(
        &["--session-dir", &dir, "--restore", "talk", "--save", "talk"],
        "Hello!\nWhat is the capital of France?\n",
    );
    assert_eq!(format!("silver garden tiger\n{rest}"), whole);
    let info: Value = serde_json::from_slice(&saved().stdout).unwrap();
    assert!(info["text_start"].as_str().unwrap().contains("silver garden tiger"), "{info}");
    assert!(info["notes_bytes"].as_u64().is_some_and(|bytes| bytes > 100), "{info}");
}
