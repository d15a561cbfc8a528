//! `bankshot devices` and the inventory behind it, against a fake Level Zero loader and a fake `sys` and `dev`.

use std::ffi::{CStr, c_char};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use bankshot::level_zero::{Inventory, Sources};
use serde_json::{Value, json};
use tempfile::TempDir;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");
const PCI: &str = "sys/devices/pci0000:00/0000:00:01.0";

/// The fake loader in a folder of its own, with `sys` and `dev` beside it.
struct Fake {
    folder: TempDir,
    loader: PathBuf,
}

impl Fake {
    /// Without `sys` and `dev`.
    fn bare(flag: &str) -> Fake {
        let folder = tempfile::tempdir().unwrap();
        let loader = folder.path().join("libfake.so");
        let output = Command::new("g++")
            .args(["-std=c++17", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", flag, "-I"])
            .arg(format!("{ROOT}/level-zero-sys/include"))
            .arg(format!("{ROOT}/tests/support/fake_level_zero.cpp"))
            .arg("-o")
            .arg(&loader)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Fake { folder, loader }
    }

    /// The first device has three bridges above it: a root port, and the two ends of its card's switch.
    fn new() -> Fake {
        let fake = Fake::bare("-O0");
        for (below, speed, lanes) in [
            ("", "Unknown", "16"),
            ("/0000:01:00.0", "32.0 GT/s PCIe", "8"),
            ("/0000:01:00.0/0000:02:01.0", "2.5 GT/s PCIe", "1"),
        ] {
            fake.write(&format!("{PCI}{below}/current_link_speed"), speed);
            fake.write(&format!("{PCI}{below}/current_link_width"), lanes);
            fake.write(&format!("{PCI}{below}/max_link_speed"), "32.0 GT/s PCIe");
            fake.write(&format!("{PCI}{below}/max_link_width"), "16");
        }
        std::fs::remove_file(fake.path().join(format!("{PCI}/max_link_width"))).unwrap();
        let device = format!("{PCI}/0000:01:00.0/0000:02:01.0/0000:03:00.0");
        fake.write(&format!("{device}/current_link_speed"), "2.5 GT/s PCIe");
        fake.write("sys/bus/pci/devices/none", "");
        symlink(format!("../../../../{device}"), fake.path().join("sys/bus/pci/devices/0000:03:00.0")).unwrap();
        fake.write("dev/dri/card0", "");
        fake.write("dev/dri/renderD129", "");
        // Nobody, root included, may write this one.
        symlink("/proc/sys/kernel/version", fake.path().join("dev/dri/renderD128")).unwrap();
        fake
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, format!("{text}\n")).unwrap();
    }

    fn command(&self, words: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bankshot"));
        command.arg("devices").arg("--loader").arg(&self.loader).arg("--root").arg(self.path());
        command.env("FAKE_LEVEL_ZERO", words);
        command
    }

    /// The text from `Level Zero` on, with this fake's folder as `FOLDER`.
    fn text(&self, words: &str) -> String {
        let text = stdout(&mut self.command(words)).replace(self.path().to_str().unwrap(), "FOLDER");
        text[text.find("Level Zero").expect("a part on Level Zero")..].to_owned()
    }

    fn json(&self, words: &str) -> Value {
        serde_json::from_str(&stdout(self.command(words).arg("--json"))).unwrap()
    }

    /// What is said to be missing.
    fn missing(&self, words: &str) -> String {
        let drivers = self.json(words)["level_zero"]["drivers"].take();
        let why = drivers["not_reported"].as_str().unwrap_or_else(|| panic!("{drivers}")).to_owned();
        assert!(self.text(words).contains(&format!("missing: {why}").replace(self.path().to_str().unwrap(), "FOLDER")));
        why
    }
}

fn stdout(command: &mut Command) -> String {
    let output = command.output().expect("the program starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

#[test]
fn what_is_reported_is_printed() {
    let fake = Fake::new();
    let expected = "\
Level Zero, by FOLDER/libfake.so
  driver 17205810, Level Zero 1.6
    Fake GPU, PCI id 0x8086:0x0a01
      PCI address  0000:03:00.0
      memory       34242297856 bytes
      bridge       0000:02:01.0: 2.5 GT/s x1, at most 32 GT/s x16
      bridge       0000:01:00.0: 32 GT/s x8, at most 32 GT/s x16
      bridge       0000:00:01.0: not reported (current_link_speed: expected a number of GT/s, got `Unknown`) x16, at most 32 GT/s not reported (max_link_width: No such file or directory (os error 2))
      device link  generation 1, 1 lanes, 250000000 bytes/s, at most generation 1, unknown lanes, unknown bytes/s
      module       GDDR6: 34000000000 of 34242297856 bytes free, health ok, at most 600000000000 bytes/s
      module       value 99: 0 of 4096 bytes free, health replace, at most not reported (zesMemoryGetBandwidth: 0 as the maximum)
      ECC          disabled, after the next reset enabled
      power        card: 42.0 W; limits: sustained 275.5 W, peak not reported (it is a current, 9000 mA)
      power        memory: not reported (zesPowerGetEnergyCounter: the counter or its time did not go forward); limits: none
      temperature  GPU: 45.5 degrees Celsius
      temperature  voltage regulator: not reported (zesTemperatureGetState: NaN as the temperature)
    Fake GPU without sysman, PCI id 0x8086:0x0a02
      PCI address  10000:e4:1f.7
      memory       1073741824 bytes
      bridge       not reported (FOLDER/sys/bus/pci/devices/10000:e4:1f.7: No such file or directory (os error 2))
      sysman       not reported (sysman knows no device at 10000:e4:1f.7)
  render node  FOLDER/dev/dri/renderD128 cannot be opened: Permission denied (os error 13); users of the GPU have to be in the group `render`
  render node  FOLDER/dev/dri/renderD129, can be opened
";
    let text = fake.text("");
    assert!(text == expected, "{text}");
}

#[test]
fn json_has_the_same_with_units() {
    let fake = Fake::new();
    let object = fake.json("");
    let device = &object["level_zero"]["drivers"][0]["devices"][0];
    assert_eq!(object["level_zero"]["loader"], fake.loader.to_str().unwrap());
    assert_eq!(object["level_zero"]["drivers"][0]["driver_version"], 17205810);
    assert_eq!(device["identity"], json!({ "name": "Fake GPU", "vendor_id": "0x8086", "device_id": "0x0a01" }));
    assert_eq!(device["memory_total_bytes"], json!([34242297856_u64]));
    assert_eq!(
        device["bridges"][1],
        json!({ "pci_address": "0000:01:00.0", "current_gt_per_s": 32.0, "current_lanes": 8, "max_gt_per_s": 32.0, "max_lanes": 16 })
    );
    let why = "zesMemoryGetBandwidth: 0 as the maximum";
    let expected = json!({
        "link_at_device": {
            "current": { "generation": 1, "lanes": 1, "bytes_per_s": 250000000 },
            "max": { "generation": 1, "lanes": null, "bytes_per_s": null },
        },
        "memory_modules": [
            {
                "kind": "GDDR6",
                "state": { "total_bytes": 34242297856_u64, "free_bytes": 34000000000_u64, "health": "ok" },
                "max_bytes_per_s": 600000000000_u64,
            },
            {
                "kind": "value 99",
                "state": { "total_bytes": 4096, "free_bytes": 0, "health": "replace" },
                "max_bytes_per_s": { "not_reported": why },
            },
        ],
        "ecc": { "current": "disabled", "pending": "enabled" },
        "power_domains": [
            {
                "domain": "card",
                "power_w": 42.0,
                "limits": [
                    { "level": "sustained", "limit_w": 275.5 },
                    { "level": "peak", "limit_w": { "not_reported": "it is a current, 9000 mA" } },
                ],
            },
            {
                "domain": "memory",
                "power_w": { "not_reported": "zesPowerGetEnergyCounter: the counter or its time did not go forward" },
                "limits": [],
            },
        ],
        "temperatures": [
            { "sensor": "GPU", "celsius": 45.5 },
            { "sensor": "voltage regulator", "celsius": { "not_reported": "zesTemperatureGetState: NaN as the temperature" } },
        ],
    });
    assert_eq!(device["sysman"], expected);
    let sycl = object["sycl"].as_array().unwrap();
    assert_eq!(sycl.iter().filter(|device| device["default"] == true).count(), 1, "{object}");
    let cpu = sycl.iter().position(|device| device["backend"] == "opencl").expect("the OpenCL CPU device");
    assert_eq!(sycl[cpu]["chosen_by"], json!([cpu.to_string(), "cpu"]));
    assert!(sycl[cpu]["memory_bytes"].as_u64() > Some(0), "{object}");
}

#[test]
fn what_is_missing_is_named() {
    let mut fake = Fake::bare("-DEMPTY");
    assert!(fake.missing("").ends_with("libfake.so is no Level Zero loader: it has no function `zeInit`"));
    assert!(fake.text("").contains("render node  not reported (FOLDER/dev/dri: No such file"), "{}", fake.text(""));
    std::fs::write(&fake.loader, "text").unwrap();
    let why = fake.missing("");
    assert!(why.contains("libfake.so: file too short") && why.contains("libze1"), "{why}");
    fake.loader = PathBuf::from("libze_no_such.so");
    let why = fake.missing("");
    assert!(
        why.starts_with("no Level Zero loader: /") && why.contains("No such file") && why.contains("libze1"),
        "{why}"
    );

    let fake = Fake::bare("-DOLD");
    let why = "the loader has no function `zesInit`, which came with Level Zero 1.5";
    for device in fake.json("")["level_zero"]["drivers"][0]["devices"].as_array().expect("devices") {
        assert_eq!(device["sysman"], json!({ "not_reported": why }));
        assert!(device["identity"]["name"].is_string() && device["memory_total_bytes"][0].is_number(), "{device}");
    }
    for (words, named) in [
        ("zeInit=0x78000001", "zeInit: ZE_RESULT_ERROR_UNINITIALIZED"),
        ("zeDriverGet=0x123", "zeDriverGet: result 0x123"),
        ("zeDriverGet:none", "zeDriverGet: there are 0 drivers"),
    ] {
        let why = fake.missing(words);
        assert_eq!(
            why,
            format!(
                "the loader finds no driver with a GPU: {named}; the driver for Intel's GPUs is in the package libze-intel-gpu1"
            )
        );
    }
    assert!(fake.text("zeDeviceGet:none").contains("\n    devices      none\n"));
}

#[test]
fn odd_answers_do_no_harm() {
    let fake = Fake::new();
    let right = fake.json("");
    for words in ["zeDeviceGet:grow", "zeDeviceGet:shrink", "zesDeviceEnumMemoryModules:grow zesDriverGet:shrink"] {
        assert_eq!(fake.json(words), right, "{words}");
    }
    let devices = |words| fake.json(words)["level_zero"]["drivers"][0]["devices"].take();
    assert_eq!(devices("zeDeviceGet:huge")["not_reported"], "zeDeviceGet: expected at most 4096 items, got 4294967295");
    assert_eq!(
        devices("zeDeviceGet:null")["not_reported"],
        "zeDeviceGet: expected 2 handles, got a null pointer among them"
    );
    assert_eq!(devices("long-name")[0]["identity"]["name"], "N".repeat(256));
}

/// Complains about every value of `spoilt` that is neither that of `right` nor left out because of `why`.
fn compare(spoilt: &Value, right: &Value, why: &str, left_out: &mut usize) {
    match (spoilt, right) {
        (Value::Object(object), _) if object.get("not_reported").is_some() && spoilt != right => {
            assert!(spoilt["not_reported"].as_str().unwrap().contains(why), "{spoilt} instead of {right}, after {why}");
            *left_out += 1;
        }
        (Value::Object(a), Value::Object(b)) => {
            assert!(a.keys().eq(b.keys()), "{spoilt} and {right}");
            a.iter().for_each(|(key, value)| compare(value, &b[key], why, left_out));
        }
        (Value::Array(a), Value::Array(b)) => {
            assert_eq!(a.len(), b.len(), "{spoilt} and {right}");
            a.iter().zip(b).for_each(|(a, b)| compare(a, b, why, left_out));
        }
        _ => assert_eq!(spoilt, right, "after {why}"),
    }
}

#[test]
fn every_failing_call_is_named_and_changes_nothing_else() {
    let fake = Fake::new();
    let sources = Sources { loader: &fake.loader, root: fake.path(), energy_pause: Duration::ZERO };
    let read = || serde_json::to_value(Inventory::read(&sources)).unwrap();
    let right = read();
    // SAFETY: the fake's file is loaded already, so this is the same library, whose functions have these types.
    let library = unsafe { libloading::Library::new(&fake.loader) }.unwrap();
    // SAFETY: as above.
    let fail_at = unsafe { library.get::<unsafe extern "C" fn(u32)>(b"fake_fail_at") }.unwrap();
    // SAFETY: as above.
    let failed = unsafe { library.get::<unsafe extern "C" fn() -> *const c_char>(b"fake_failed") }.unwrap();
    let mut names = Vec::new();
    for call in 1.. {
        // SAFETY: it takes any number, and nothing else uses this copy of the fake.
        unsafe { fail_at(call) };
        let spoilt = read();
        // SAFETY: it gives a text that is never freed.
        let name = unsafe { CStr::from_ptr(failed()) }.to_str().unwrap();
        if name.is_empty() {
            assert_eq!(spoilt, right, "no call failed");
            break;
        }
        let mut left_out = 0;
        compare(&spoilt, &right, &format!("{name}: ZE_RESULT_ERROR_DEVICE_LOST"), &mut left_out);
        assert!(left_out > 0, "{name} failed, and nothing is left out: {spoilt}");
        names.push(name);
    }
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), 25, "each function of the bindings has failed: {names:?}");
}
