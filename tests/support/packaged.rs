//! The helper of `build/package`, and what programs are linked with.

use std::fs;
use std::path::Path;
use std::process::Command;

/// The helper, to be run.
pub fn package(command: &str, target: &Path) -> Command {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(env!("CARGO_MANIFEST_DIR"));
    cargo.args(["run", "--quiet", "--release", "--locked", "--package", "package", "--", command]).arg(target);
    cargo
}

/// The words that pkg-config gives for a library of a folder.
pub fn flags(libraries: &Path, name: &str) -> Vec<String> {
    let folder = libraries.join("lib/pkgconfig");
    let mut pkg_config = Command::new("pkg-config");
    pkg_config.args(["--cflags", "--libs", "--static", name]).env("PKG_CONFIG_PATH", &folder);
    let text = match pkg_config.output() {
        Ok(output) => String::from_utf8(output.stdout).unwrap(),
        // Without pkg-config, what it does.
        Err(_) => {
            let text = fs::read_to_string(folder.join(format!("{name}.pc"))).unwrap();
            let value = |key: &str| text.lines().find_map(|line| line.strip_prefix(key)).unwrap().to_owned();
            let mut words = value("Cflags: ") + " " + &value("Libs: ");
            for (name, separator) in [("runtimedir", "="), ("includedir", "="), ("libdir", "="), ("prefix", "=")] {
                words = words.replace(&format!("${{{name}}}"), &value(&format!("{name}{separator}")));
            }
            words.replace("${pcfiledir}", folder.to_str().unwrap())
        }
    };
    text.split_whitespace().map(str::to_owned).collect()
}
