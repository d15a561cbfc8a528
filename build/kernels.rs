//! Kernel modules: manifest, self-contained sources, SPIR-V and the table that embeds them.

use crate::toolchain::Toolchain;
use crate::util::{self, Hash};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

/// How device code is compiled. Contraction is off because a fused step must be one that the source asks for; one
/// module for all kernels of a file, with the arguments as written, so that a name and a list of arguments launch one.
const OPTIONS: &[&str] = &[
    "-O3",
    "-Wall",
    "-Wextra",
    "-Wno-unused-function",
    "-Wno-unused-parameter",
    "-ffp-contract=off",
    "-fsycl-device-code-split=off",
    "-fno-sycl-dead-args-optimization",
];

/// Before every module. The declaration ends the preamble that the compiler keeps precompiled, which all modules can
/// then share whatever they define and include.
const PREAMBLE: &str = "#include <sycl/sycl.hpp>\nstatic_assert(true);\n";

/// One line of the manifest.
struct Entry {
    name: String,
    source: PathBuf,
    defines: Vec<String>,
    /// Whether cards get code of their own, compiled with `XK_CARD`.
    for_cards: bool,
}

/// A compiled module, as files in the output folder.
pub struct Module {
    name: String,
    code: Code,
    card_code: Option<Code>,
}

struct Code {
    hash: String,
    text: PathBuf,
    spirv: PathBuf,
    kernels: Vec<String>,
}

pub fn compile_all(root: &Path, out: &Path, toolchain: &Toolchain) -> Result<Vec<Module>, String> {
    let folder = root.join("sycl-kernels");
    let out = out.join("kernels");
    fs::create_dir_all(&out).map_err(|e| format!("cannot create {}: {e}", out.display()))?;
    let entries = read_manifest(&folder)?;
    let compiler = Compiler::new(root, &out, toolchain)?;
    let modules = util::in_parallel(&entries, |entry| compile(entry, &folder, &out, &compiler))?;
    remove_stale(&out, &modules);
    Ok(modules)
}

fn read_manifest(folder: &Path) -> Result<Vec<Entry>, String> {
    let path = folder.join("kernels.txt");
    let text = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    let mut entries: Vec<Entry> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let mut words = line.split('#').next().unwrap_or_default().split_whitespace().map(str::to_owned);
        let Some(name) = words.next() else { continue };
        let place = format!("{}:{}", path.display(), index + 1);
        let source = words.next().ok_or_else(|| format!("{place}: module {name} names no source file"))?;
        let (marks, defines): (Vec<_>, Vec<_>) = words.partition(|word| word == "+card");
        if let Some(word) = defines.iter().find(|d| !d.starts_with("-D")) {
            return Err(format!("{place}: {word} is not a -D define"));
        }
        if name.chars().any(|c| !c.is_ascii_alphanumeric() && c != '_') {
            return Err(format!("{place}: {name} is not a name of letters, digits and underscores"));
        }
        if entries.iter().any(|e| e.name == name) {
            return Err(format!("{place}: there are two modules named {name}"));
        }
        entries.push(Entry { name, source: folder.join(source), defines, for_cards: !marks.is_empty() });
    }
    Ok(entries)
}

/// The text of a module with its defines and our own headers in place; `<...>` headers come from the compiler.
fn self_contained(entry: &Entry, folder: &Path, card: bool) -> Result<String, String> {
    let mut text = PREAMBLE.to_owned();
    if card {
        text.push_str("#define XK_CARD 1\n");
    }
    for define in &entry.defines {
        let (name, value) = define[2..].split_once('=').unwrap_or((&define[2..], "1"));
        let _ = writeln!(text, "#define {name} {value}");
    }
    expand(&entry.source, folder, &mut BTreeSet::new(), &mut text)?;
    Ok(text)
}

/// Appends a file; every header is taken once, where it is first included, also inside an `#if`.
fn expand(file: &Path, folder: &Path, seen: &mut BTreeSet<PathBuf>, text: &mut String) -> Result<(), String> {
    let source = fs::read_to_string(file).map_err(|e| format!("{}: {e}", file.display()))?;
    let shown = file.strip_prefix(folder.parent().unwrap_or(folder)).unwrap_or(file).display();
    let _ = writeln!(text, "#line 1 \"{shown}\"");
    for (index, line) in source.lines().enumerate() {
        let trimmed = line.trim_start();
        if trimmed.starts_with("#pragma once") {
            text.push('\n');
        } else if let Some(name) = trimmed.strip_prefix("#include \"").and_then(|rest| rest.split('"').next()) {
            let near = file.parent().unwrap_or(folder).join(name);
            let header = normal(&if near.exists() { near } else { folder.join(name) });
            if !header.exists() {
                return Err(format!("{shown}:{}: there is no header {name}", index + 1));
            }
            if seen.insert(header.clone()) {
                expand(&header, folder, seen, text)?;
            }
            let _ = writeln!(text, "#line {} \"{shown}\"", index + 2);
        } else {
            text.push_str(line);
            text.push('\n');
        }
    }
    Ok(())
}

/// The compiler counts the lines of the text it was given (`rtc_0.cpp:75:39`) and not what `#line` says; this puts the
/// file and line that they came from.
fn with_places(log: &str, text: &str) -> String {
    let mut places = vec![(String::new(), 0)];
    for line in text.lines() {
        let (file, number) = places[places.len() - 1].clone();
        places.push((file, number + 1));
        if let Some((number, file)) = line.strip_prefix("#line ").and_then(|rest| rest.split_once(' ')) {
            let last = places.len() - 1;
            places[last] = (file.trim_matches('"').to_owned(), number.parse::<usize>().unwrap_or(1) - 1);
        }
    }
    let mut out = String::new();
    for line in log.lines().map(|l| l.strip_prefix('\t').unwrap_or(l)).filter(|l| !l.trim().is_empty()) {
        let place = line.strip_prefix("rtc_").and_then(|rest| {
            let mut parts = rest.splitn(3, ':');
            let (_, number, rest) = (parts.next()?, parts.next()?, parts.next()?);
            let (file, number) = places.get(number.parse::<usize>().ok()?)?;
            (!file.is_empty()).then(|| format!("{file}:{number}:{rest}"))
        });
        out.push_str(place.as_deref().unwrap_or(line));
        out.push('\n');
    }
    out
}

/// Takes `..` out of a path by its text alone, as a compiler does.
fn normal(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(out.pop()),
            Component::CurDir => {}
            other => out.push(other),
        }
    }
    out
}

/// The host program around the kernel compiler, built when the first module needs it.
struct Compiler<'a> {
    toolchain: &'a Toolchain,
    source: PathBuf,
    program: PathBuf,
    /// Modules and precompiled headers of earlier builds; without a cache folder, only this build's.
    shared: Option<PathBuf>,
    built: std::sync::Mutex<bool>,
}

impl<'a> Compiler<'a> {
    fn new(root: &Path, out: &Path, toolchain: &'a Toolchain) -> Result<Self, String> {
        let source = root.join("sycl-kernels/tools/kernel_compiler.cpp");
        let text = fs::read(&source).map_err(|e| format!("{}: {e}", source.display()))?;
        let key =
            Hash::new().add(text).add(&toolchain.version).add(toolchain.lib().as_os_str().as_encoded_bytes()).hex();
        let shared = util::cache_dir().ok().map(|dir| dir.join("spirv")).filter(|dir| fs::create_dir_all(dir).is_ok());
        Ok(Self { toolchain, source, program: out.join(format!("compiler-{key}")), shared, built: false.into() })
    }

    fn build(&self) -> Result<(), String> {
        let mut built = self.built.lock().unwrap();
        if *built || self.program.exists() {
            return Ok(());
        }
        let part = self.program.with_extension("part");
        let lib = self.toolchain.lib();
        let mut command = cc::Build::new().cpp(true).std("c++17").opt_level(1).debug(false).get_compiler().to_command();
        command.arg("-DSYCL_DISABLE_FSYCL_SYCLHPP_WARNING");
        for include in self.toolchain.include() {
            command.arg("-isystem").arg(include);
        }
        command.arg(&self.source).arg("-o").arg(&part).arg("-L").arg(&lib).args(["-lsycl", "-lOpenCL"]);
        // The old kind of rpath also serves the libraries that libOpenCL needs.
        command.arg(format!("-Wl,-rpath,{},--disable-new-dtags", lib.display()));
        util::run(&mut command).map_err(|text| format!("the kernel compiler program did not build:\n{text}"))?;
        fs::rename(&part, &self.program).map_err(|e| format!("{}: {e}", self.program.display()))?;
        *built = true;
        Ok(())
    }

    fn compile(&self, text: &Path, spirv: &Path, names: &Path) -> Result<String, String> {
        self.build()?;
        let precompiled = self.shared.as_deref().or(text.parent()).unwrap_or(Path::new(".")).join("pch");
        let mut command = Command::new(&self.program);
        command.arg(text).arg(spirv).arg(names).args(OPTIONS);
        command.arg(format!("--persistent-auto-pch={}", precompiled.display()));
        command.env("OCL_ICD_FILENAMES", self.toolchain.lib().join("libintelocl.so"));
        command.env("ONEAPI_DEVICE_SELECTOR", "opencl:cpu").env_remove("OCL_ICD_VENDORS");
        util::run(&mut command)
    }
}

fn compile(entry: &Entry, folder: &Path, out: &Path, compiler: &Compiler) -> Result<Module, String> {
    let code = compile_for(entry, false, folder, out, compiler)?;
    let card_code = entry.for_cards.then(|| compile_for(entry, true, folder, out, compiler)).transpose()?;
    Ok(Module { name: entry.name.clone(), code, card_code })
}

fn compile_for(entry: &Entry, card: bool, folder: &Path, out: &Path, compiler: &Compiler) -> Result<Code, String> {
    let text = self_contained(entry, folder, card)?;
    let mut hash = Hash::new();
    hash.add(&text).add(&compiler.toolchain.version);
    for option in OPTIONS {
        hash.add(option);
    }
    let hash = hash.hex();
    let stem = format!("{}{}-{hash}", entry.name, if card { "-card" } else { "" });
    let text_path = out.join(format!("{stem}.cpp"));
    let spirv = out.join(format!("{stem}.spv"));
    let names = out.join(format!("{stem}.names"));
    let io = |path: &Path, e: std::io::Error| format!("{}: {e}", path.display());

    if !text_path.exists() {
        util::write_atomic(&text_path, text.as_bytes()).map_err(|e| io(&text_path, e))?;
    }
    if !(spirv.exists() && names.exists()) {
        let packed = compiler.shared.as_ref().map(|dir| dir.join(format!("{hash}.module")));
        let earlier = packed.as_deref().and_then(|path| unpack(&fs::read(path).ok()?));
        let (kernel_names, code) = if let Some(earlier) = earlier {
            earlier
        } else {
            let (code_part, names_part) =
                (out.join(format!("{stem}.spv.part")), out.join(format!("{stem}.names.part")));
            let log = compiler
                .compile(&text_path, &code_part, &names_part)
                .map_err(|e| format!("kernel module {} did not compile:\n{}", entry.name, with_places(&e, &text)))?;
            for line in with_places(&log, &text).lines() {
                println!("cargo:warning={line}");
            }
            let code = fs::read(&code_part).map_err(|e| io(&code_part, e))?;
            let kernel_names = fs::read_to_string(&names_part).map_err(|e| io(&names_part, e))?;
            let _ = fs::remove_file(code_part);
            let _ = fs::remove_file(names_part);
            if let Some(path) = packed {
                let _ = util::write_atomic(&path, &pack(&kernel_names, &code));
            }
            (kernel_names, code)
        };
        util::write_atomic(&spirv, &code).map_err(|e| io(&spirv, e))?;
        util::write_atomic(&names, kernel_names.as_bytes()).map_err(|e| io(&names, e))?;
    }
    let listed = fs::read_to_string(&names).map_err(|e| io(&names, e))?;
    let mut kernels: Vec<String> = listed
        .split(';')
        .filter(|n| !n.is_empty())
        .map(|n| n.trim_start_matches("__sycl_kernel_").to_owned())
        .collect();
    kernels.sort();
    if kernels.is_empty() {
        return Err(format!("kernel module {} holds no kernel", entry.name));
    }
    Ok(Code { hash, text: text_path, spirv, kernels })
}

/// A module in one file: a line with the hash of the rest, a line with the kernels' names, the SPIR-V.
fn pack(names: &str, code: &[u8]) -> Vec<u8> {
    let mut packed = format!("{}\n{names}\n", Hash::new().add(names).add(code).hex()).into_bytes();
    packed.extend_from_slice(code);
    packed
}

fn unpack(packed: &[u8]) -> Option<(String, Vec<u8>)> {
    let mut parts = packed.splitn(3, |b| *b == b'\n');
    let hash = parts.next()?;
    let names = String::from_utf8(parts.next()?.to_vec()).ok()?;
    let code = parts.next()?;
    (Hash::new().add(&names).add(code).hex().as_bytes() == hash).then(|| (names, code.to_vec()))
}

/// Drops the files of modules as they were in earlier builds.
fn remove_stale(out: &Path, modules: &[Module]) {
    for file in fs::read_dir(out).into_iter().flatten().flatten() {
        let path = file.path();
        let mut kept = modules.iter().flat_map(|m| std::iter::once(&m.code).chain(&m.card_code));
        let kept = kept.any(|code| path.file_stem() == code.spirv.file_stem());
        if !kept && path.extension().is_some_and(|e| e == "spv" || e == "names" || e == "cpp") {
            let _ = fs::remove_file(path);
        }
    }
}

pub fn write_table(out: &Path, toolchain: &Toolchain, modules: &[Module]) -> Result<(), String> {
    let mut table = String::from("/// What the device code was compiled with.\n");
    let _ = writeln!(table, "pub const TOOLCHAIN: &str = {:?};\n", toolchain.version);
    table.push_str(
        "/// Every module of this build, in the order of the manifest.\npub static MODULES: &[ModuleCode] = &[\n",
    );
    for m in modules {
        let card_spirv =
            m.card_code.as_ref().map_or("None".to_owned(), |c| format!("Some(include_bytes!({:?}))", c.spirv));
        let _ = writeln!(
            table,
            "    ModuleCode {{\n        name: {:?},\n        hash: {:?},\n        kernels: &{:?},\n        \
             spirv: include_bytes!({:?}),\n        card_spirv: {card_spirv},\n        source: include_str!({:?}),\n    }},",
            m.name, m.code.hash, m.code.kernels, m.code.spirv, m.code.text
        );
    }
    table.push_str("];\n");
    let path = out.join("kernels.rs");
    util::write_atomic(&path, table.as_bytes()).map_err(|e| format!("{}: {e}", path.display()))
}
