//! The libraries for programs in C: one object whose only global symbols are the API's.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::built::Built;
use crate::output::Folder;
use crate::{root, runtime, tools};

/// The system's libraries that the object needs beside libsycl.
const LIBRARIES: [&str; 7] = ["-lstdc++", "-lgcc_s", "-lrt", "-lpthread", "-lm", "-ldl", "-lc"];

/// Names of the API begin so.
const PREFIX: &str = "bankshot_";

pub fn lay_out(built: &Built, folder: &Folder) -> Result<()> {
    let header = root().join("include/bankshot.h");
    let names = exports(&built.archive)?;
    if names.is_empty() {
        bail!("{} exports no function {PREFIX}*", built.archive.display());
    }
    folder.copy(&header, "include/bankshot.h")?;
    let object = prelink(&built.archive, &names)?;
    folder.make("lib/libbankshot.a", |to| {
        // What `ar` finds there is added to.
        let _ = fs::remove_file(to);
        tools::run(tools::command("ar").arg("rcsD").arg(to).arg(&object))
    })?;
    let (major, minor) = abi(&header)?;
    let libsycl = runtime::libsycl(built)?;
    let soname = format!("libbankshot.so.{major}");
    let file = format!("{soname}.{minor}");
    folder.make(&format!("lib/{file}"), |to| share(&object, &soname, &built.runtime.join(&libsycl), to))?;
    folder.link(&format!("lib/{soname}"), &file)?;
    folder.link("lib/libbankshot.so", &soname)?;
    for (name, text) in pkg_config(&built.version, &libsycl) {
        folder.write(&format!("lib/pkgconfig/{name}"), &text)?;
    }
    let manual = root().join("docs/capi.md");
    if manual.exists() {
        folder.copy(&manual, "share/doc/bankshot/capi.md")?;
    }
    Ok(())
}

/// Version of the interface, by the header. A new major version breaks programs, so that the library's name has it.
fn abi(header: &Path) -> Result<(u32, u32)> {
    let text = fs::read_to_string(header).with_context(|| header.display().to_string())?;
    let number = |name: &str| {
        let define = format!("#define BANKSHOT_ABI_{name} ");
        let value = text.lines().find_map(|line| line.strip_prefix(&define)?.trim().parse().ok());
        value.with_context(|| format!("{} has no line `{define}<number>`", header.display()))
    };
    Ok((number("MAJOR")?, number("MINOR")?))
}

/// Global symbols of the API that an archive or object defines.
fn exports(path: &Path) -> Result<BTreeSet<String>> {
    let names = globals(path)?;
    Ok(names.into_iter().filter(|name| name.starts_with(PREFIX)).collect())
}

/// All symbols that other objects see. `nm` would let LLVM's plug-in look at Rust's bitcode, and some versions of that
/// abort.
fn globals(path: &Path) -> Result<BTreeSet<String>> {
    let text = tools::output(tools::command("readelf").arg("--symbols").arg("--wide").arg(path))?;
    let mut names = BTreeSet::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        // Number, value, size, type, binding, visibility, section, name.
        if let [_, _, _, _, binding, _, section, name] = words[..]
            && ["GLOBAL", "WEAK", "UNIQUE"].contains(&binding)
            && section != "UND"
        {
            names.insert(name.to_owned());
        }
    }
    Ok(names)
}

/// Links what the API reaches to one object, and hides everything else in it. Groups of C++ templates are resolved: by
/// their name a linker would take another object's in place of a hidden one.
fn prelink(archive: &Path, names: &BTreeSet<String>) -> Result<PathBuf> {
    let (all, object) = (archive.with_file_name("bankshot-all.o"), archive.with_file_name("bankshot.o"));
    let mut ld = tools::command("ld");
    ld.args(["--relocatable", "--gc-sections", "--force-group-allocation"]);
    for name in names {
        ld.arg("--undefined").arg(name);
    }
    tools::run(ld.arg(archive).arg("-o").arg(&all))?;
    let list = archive.with_file_name("bankshot-exports.txt");
    let lines: String = names.iter().map(|name| format!("{name}\n")).collect();
    fs::write(&list, lines).with_context(|| list.display().to_string())?;
    let mut objcopy = tools::command("objcopy");
    objcopy.args(["--strip-debug", "--strip-unneeded", "--remove-section=.llvmbc", "--remove-section=.llvmcmd"]);
    tools::run(objcopy.arg(format!("--keep-global-symbols={}", list.display())).arg(&all).arg(&object))?;
    fs::remove_file(&all).with_context(|| all.display().to_string())?;

    let found = globals(&object)?;
    let differ: Vec<_> = found.symmetric_difference(names).map(String::as_str).collect();
    if !differ.is_empty() {
        bail!(
            "{} should have {} global symbols, the API's; it differs in {}",
            object.display(),
            names.len(),
            differ.join(", ")
        );
    }
    Ok(object)
}

fn share(object: &Path, soname: &str, libsycl: &Path, to: &Path) -> Result<()> {
    let script = object.with_file_name("bankshot-exports.ld");
    fs::write(&script, format!("{{ global: {PREFIX}*; local: *; }};\n"))
        .with_context(|| script.display().to_string())?;
    let mut cc = tools::command("cc");
    cc.arg("-shared").arg("-o").arg(to).arg(object).arg(libsycl).args(LIBRARIES);
    cc.arg(format!("-Wl,-soname,{soname},--version-script={}", script.display()));
    // The old kind of rpath also serves libraries that are opened later and name no folder.
    cc.arg("-Wl,-z,defs,-z,relro,-z,now,--disable-new-dtags,-rpath,$ORIGIN/bankshot");
    tools::run(&mut cc)
}

/// Two files, since pkg-config cannot take the static library of a name that has both. Paths are relative to the file.
fn pkg_config(version: &str, libsycl: &str) -> [(&'static str, String); 2] {
    let head = format!(
        "prefix=${{pcfiledir}}/../..\nlibdir=${{prefix}}/lib\nincludedir=${{prefix}}/include\n\
         # The SYCL runtime that comes with the libraries.\nruntimedir=${{libdir}}/bankshot\n\n\
         Description: Inference engine for Qwen's hybrid models\nVersion: {version}\nCflags: -I${{includedir}}\n"
    );
    let static_libs = format!(
        "Libs: -L${{libdir}} -l:libbankshot.a -L${{runtimedir}} -l:{libsycl} \
         -Wl,--disable-new-dtags,-rpath,${{runtimedir}} {}\n",
        LIBRARIES.join(" ")
    );
    let shared_libs = "Libs: -L${libdir} -lbankshot -Wl,-rpath,${libdir}\n";
    [
        ("bankshot.pc", format!("{head}Name: bankshot\n{static_libs}")),
        ("bankshot-shared.pc", format!("{head}Name: bankshot-shared\n{shared_libs}")),
    ]
}
