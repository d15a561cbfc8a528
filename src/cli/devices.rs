//! `devices`: what can be computed on, and what Level Zero and the kernel report about GPUs.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::Done;
use super::args::DevicesArgs;
use super::cards::{choose_cards, choose_device};
use super::output::Output;
use crate::device::{DeviceInfo, devices as sycl_devices};
use crate::exec;
use crate::level_zero::{Bridge, Device, Driver, Inventory, LOADER, LinkSpeed, Measures, Reported, Sources};

/// Long enough for a driver's energy counter to move.
const ENERGY_PAUSE: Duration = Duration::from_millis(100);

pub fn devices(args: &DevicesArgs, output: &mut Output) -> Result<Done> {
    if let Some(cards) = &args.cards {
        let cards = choose_cards(Some(cards))?;
        output.text(&exec::measured(exec::inventory(&cards), &cards)?.to_toml())?;
        return Ok(Done::Finished);
    }
    let loader = match &args.loader {
        // A name without a folder would be looked for where the system keeps libraries.
        Some(file) => std::path::absolute(file).with_context(|| format!("--loader {}", file.display()))?,
        None => PathBuf::from(LOADER),
    };
    // Before the SYCL runtime, which initialises Level Zero in a way of its own.
    let inventory = Inventory::read(&Sources { loader: &loader, root: &args.root, energy_pause: ENERGY_PAUSE });
    let sycl = sycl_devices()?;
    if args.json {
        let sycl: Value = sycl.iter().map(describe).collect();
        output.json(&json!({ "sycl": sycl, "level_zero": inventory }))?;
        return Ok(Done::Finished);
    }
    output.line("SYCL devices")?;
    for device in &sycl {
        print_sycl(device, output)?;
    }
    if sycl.is_empty() {
        output.line("  none")?;
    }
    output.line(format_args!("Level Zero, by {}", inventory.loader))?;
    for line in lines(&inventory) {
        output.line(format_args!("  {line}"))?;
    }
    Ok(Done::Finished)
}

/// The values of `--device` that choose this device, and whether it is chosen without.
fn choices(device: &DeviceInfo) -> (Vec<String>, bool) {
    let chosen_by = |wanted| choose_device(wanted).is_ok_and(|chosen| chosen.index == device.index);
    let words = ["gpu", "cpu"].into_iter().filter(|word| chosen_by(Some(word))).map(str::to_owned);
    ([device.index.to_string()].into_iter().chain(words).collect(), chosen_by(None))
}

fn describe(device: &DeviceInfo) -> Value {
    let (chosen_by, default) = choices(device);
    json!({
        "chosen_by": chosen_by,
        "default": default,
        "name": device.name,
        "vendor": device.vendor,
        "driver": device.driver,
        "backend": device.backend,
        "compute_units": device.compute_units,
        "sub_group_sizes": device.sub_group_sizes,
        "memory_bytes": device.global_bytes,
        "max_allocation_bytes": device.max_alloc_bytes,
        "local_memory_bytes": device.local_bytes,
    })
}

fn print_sycl(device: &DeviceInfo, output: &mut Output) -> Result<()> {
    let (chosen_by, default) = choices(device);
    let default = if default { ", the default" } else { "" };
    output.line(format_args!(
        "  {} ({}): --device {}{default}",
        device.name,
        device.backend,
        chosen_by.join(" or ")
    ))?;
    output.line(format_args!("    driver       {} of {}", device.driver, device.vendor))?;
    output.line(format_args!(
        "    memory       {} bytes, at most {} in one allocation; {} bytes of local memory",
        device.global_bytes, device.max_alloc_bytes, device.local_bytes
    ))?;
    let sizes: Vec<String> = device.sub_group_sizes.iter().map(u32::to_string).collect();
    let sizes = sizes.join(", ");
    output.line(format_args!("    compute      {} units, sub-groups of {sizes} lanes", device.compute_units))
}

/// A value as text, or why there is none.
fn show<T>(reported: &Reported<T>, text: impl Fn(&T) -> String) -> String {
    match reported {
        Reported::Value(value) => text(value),
        Reported::Missing { not_reported } => format!("not reported ({not_reported})"),
    }
}

fn plain<T: ToString>(reported: &Reported<T>) -> String {
    show(reported, T::to_string)
}

/// A line for each item, or one that says why there is none or that there are none.
fn each<T>(label: &str, reported: &Reported<Vec<T>>, mut text: impl FnMut(&T) -> String) -> Vec<String> {
    let line = |text: String| format!("{label:<12} {text}");
    match reported {
        Reported::Value(items) if items.is_empty() => vec![line("none".to_owned())],
        Reported::Value(items) => items.iter().map(|item| line(text(item))).collect(),
        Reported::Missing { .. } => vec![line(show(reported, |_| String::new()))],
    }
}

fn indented(lines: Vec<String>) -> impl Iterator<Item = String> {
    lines.into_iter().map(|line| format!("  {line}"))
}

fn lines(inventory: &Inventory) -> Vec<String> {
    let mut lines = match &inventory.drivers {
        Reported::Value(drivers) => drivers.iter().flat_map(driver_lines).collect(),
        Reported::Missing { not_reported } => vec![format!("missing: {not_reported}")],
    };
    lines.extend(each("render node", &inventory.render_nodes, |node| match &node.problem {
        None => format!("{}, can be opened", node.path),
        Some(problem) => format!("{} cannot be opened: {problem}", node.path),
    }));
    lines
}

fn driver_lines(driver: &Driver) -> Vec<String> {
    let version = plain(&driver.driver_version);
    let mut lines = vec![format!("driver {version}, Level Zero {}", plain(&driver.api_version))];
    match &driver.devices {
        Reported::Value(devices) if !devices.is_empty() => lines.extend(devices.iter().flat_map(device_lines)),
        devices => lines.extend(indented(each("devices", devices, |_| String::new()))),
    }
    lines
}

fn device_lines(device: &Device) -> Vec<String> {
    let identity = show(&device.identity, |id| format!("{}, PCI id {}:{}", id.name, id.vendor_id, id.device_id));
    let mut facts = vec![format!("{:<12} {}", "PCI address", plain(&device.pci_address))];
    facts.extend(each("memory", &device.memory_total_bytes, |bytes| format!("{bytes} bytes")));
    facts.extend(each("bridge", &device.bridges, bridge));
    match &device.sysman {
        Reported::Value(measures) => facts.extend(measure_lines(measures)),
        sysman => facts.push(format!("{:<12} {}", "sysman", show(sysman, |_| String::new()))),
    }
    std::iter::once(identity).chain(indented(facts)).map(|line| format!("  {line}")).collect()
}

fn bridge(bridge: &Bridge) -> String {
    let lanes = |lanes: &Reported<u32>| show(lanes, |lanes| format!("x{lanes}"));
    let speed = |speed: &Reported<f64>| show(speed, |speed| format!("{speed} GT/s"));
    format!(
        "{}: {} {}, at most {} {}",
        bridge.pci_address,
        speed(&bridge.current_gt_per_s),
        lanes(&bridge.current_lanes),
        speed(&bridge.max_gt_per_s),
        lanes(&bridge.max_lanes)
    )
}

fn link(link: &LinkSpeed) -> String {
    let known = |value: Option<String>| value.unwrap_or_else(|| "unknown".to_owned());
    format!(
        "generation {}, {} lanes, {} bytes/s",
        known(link.generation.map(|n| n.to_string())),
        known(link.lanes.map(|n| n.to_string())),
        known(link.bytes_per_s.map(|n| n.to_string()))
    )
}

fn measure_lines(measures: &Measures) -> Vec<String> {
    let own = &measures.link_at_device;
    let mut lines =
        vec![format!("{:<12} {}, at most {}", "device link", show(&own.current, link), show(&own.max, link))];
    lines.extend(each("module", &measures.memory_modules, |module| {
        let state = show(&module.state, |state| {
            format!("{} of {} bytes free, health {}", state.free_bytes, state.total_bytes, state.health)
        });
        let bandwidth = show(&module.max_bytes_per_s, |bytes| format!("{bytes} bytes/s"));
        format!("{}: {state}, at most {bandwidth}", plain(&module.kind))
    }));
    let ecc = show(&measures.ecc, |ecc| format!("{}, after the next reset {}", ecc.current, ecc.pending));
    lines.push(format!("{:<12} {ecc}", "ECC"));
    lines.extend(each("power", &measures.power_domains, |domain| {
        let watts = |watts: &Reported<f64>| show(watts, |watts| format!("{watts:.1} W"));
        let limits = show(&domain.limits, |limits| {
            let each = limits.iter().map(|limit| format!("{} {}", limit.level, watts(&limit.limit_w)));
            if limits.is_empty() { "none".to_owned() } else { each.collect::<Vec<_>>().join(", ") }
        });
        format!("{}: {}; limits: {limits}", plain(&domain.domain), watts(&domain.power_w))
    }));
    lines.extend(each("temperature", &measures.temperatures, |sensor| {
        format!(
            "{}: {}",
            plain(&sensor.sensor),
            show(&sensor.celsius, |celsius| format!("{celsius:.1} degrees Celsius"))
        )
    }));
    lines
}
