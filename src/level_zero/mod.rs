//! What Level Zero and the kernel report about GPUs, read once into a value.
//!
//! Nothing here is computed with. A figure is one that a driver or the kernel gave; where there is none, its place says
//! why. The SYCL runtime, which runs the kernels, uses Level Zero by itself.

mod api;
mod sysman;
mod system;

use api::{entry, get, handles, init, list, roots};
use level_zero_sys as sys;
use serde::Serialize;
use std::path::Path;
use std::time::Duration;
use sysman::Sysman;

pub use sysman::{
    DeviceLink, Ecc, LinkSpeed, Measures, MemoryModule, MemoryState, PowerDomain, PowerLimit, Temperature,
};
pub use system::{Bridge, RenderNode};

/// The loader's name, as the system looks for it.
pub const LOADER: &str = "libze_loader.so.1";

const LOADER_PACKAGE: &str = "Debian and Ubuntu have the loader in the package libze1";
const DRIVER_PACKAGE: &str = "the driver for Intel's GPUs is in the package libze-intel-gpu1";

/// A value that was reported, or why there is none. As JSON: the value itself, or `{"not_reported": "..."}`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Reported<T> {
    Value(T),
    Missing { not_reported: String },
}

impl<T> From<Result<T, String>> for Reported<T> {
    fn from(result: Result<T, String>) -> Self {
        match result {
            Ok(value) => Reported::Value(value),
            Err(not_reported) => Reported::Missing { not_reported },
        }
    }
}

/// Where [`Inventory::read`] looks.
#[derive(Debug, Clone, Copy)]
pub struct Sources<'a> {
    /// File name or path of the Level Zero loader, usually [`LOADER`].
    pub loader: &'a Path,
    /// The folder that holds `sys` and `dev`, usually `/`.
    pub root: &'a Path,
    /// Time between two readings of an energy counter.
    pub energy_pause: Duration,
}

/// All that was found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Inventory {
    pub loader: String,
    /// Missing when there is no loader, or nothing answers behind it.
    pub drivers: Reported<Vec<Driver>>,
    /// GPUs that the kernel offers to programs.
    pub render_nodes: Reported<Vec<RenderNode>>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Driver {
    /// The driver's own number: a greater one is a later driver.
    pub driver_version: Reported<u32>,
    /// Version of Level Zero, such as `1.6`.
    pub api_version: Reported<String>,
    pub devices: Reported<Vec<Device>>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Device {
    pub identity: Reported<Identity>,
    /// Domain, bus, device and function, as the kernel writes them.
    pub pci_address: Reported<String>,
    /// Each memory's size for programs.
    pub memory_total_bytes: Reported<Vec<u64>>,
    /// The PCI bridges above the device, nearest first. A card with a switch of its own may show the link to the host
    /// only at the switch's upper end, and at the device and the switch's lower end 2.5 GT/s x1.
    pub bridges: Reported<Vec<Bridge>>,
    /// What takes the system management interface.
    pub sysman: Reported<Measures>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Identity {
    pub name: String,
    /// PCI ids, hexadecimal with `0x`.
    pub vendor_id: String,
    pub device_id: String,
}

impl Inventory {
    /// Reads everything. Takes an `energy_pause` for each power domain.
    pub fn read(sources: &Sources) -> Inventory {
        Inventory {
            loader: sources.loader.display().to_string(),
            drivers: drivers(sources).into(),
            render_nodes: system::render_nodes(sources.root).into(),
        }
    }
}

fn drivers(sources: &Sources) -> Result<Vec<Driver>, String> {
    let api = api::open(sources.loader).map_err(|why| format!("no Level Zero loader: {why}; {LOADER_PACKAGE}"))?;
    if api.zeInit.is_err() {
        return Err(format!("{} is no Level Zero loader: it has no function `zeInit`", sources.loader.display()));
    }
    init(entry!(api, zeInit), sys::ZE_INIT_FLAG_GPU_ONLY)
        .and_then(|()| roots(entry!(api, zeDriverGet)))
        .and_then(|found| if found.is_empty() { Err("zeDriverGet: there are 0 drivers".to_owned()) } else { Ok(found) })
        .map(|found| {
            let sysman = Sysman::open(api);
            found.into_iter().map(|handle| driver(api, handle, &sysman, sources)).collect()
        })
        .map_err(|why| format!("the loader finds no driver with a GPU: {why}; {DRIVER_PACKAGE}"))
}

fn driver(
    api: &'static sys::LevelZero,
    handle: sys::ze_driver_handle_t,
    sysman: &Result<Sysman, String>,
    sources: &Sources,
) -> Driver {
    let properties =
        sys::ze_driver_properties_t { stype: sys::ZE_STRUCTURE_TYPE_DRIVER_PROPERTIES, ..Default::default() };
    let found = handles(entry!(api, zeDeviceGet), handle);
    Driver {
        driver_version: get(entry!(api, zeDriverGetProperties), handle, properties).map(|p| p.driverVersion).into(),
        api_version: get(entry!(api, zeDriverGetApiVersion), handle, 0)
            .map(|version| format!("{}.{}", version >> 16, version & 0xffff))
            .into(),
        devices: found.map(|found| found.into_iter().map(|h| device(api, h, sysman, sources)).collect()).into(),
    }
}

fn device(
    api: &'static sys::LevelZero,
    handle: sys::ze_device_handle_t,
    sysman: &Result<Sysman, String>,
    sources: &Sources,
) -> Device {
    let properties =
        sys::ze_device_properties_t { stype: sys::ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES, ..Default::default() };
    let memory = sys::ze_device_memory_properties_t {
        stype: sys::ZE_STRUCTURE_TYPE_DEVICE_MEMORY_PROPERTIES,
        ..Default::default()
    };
    let pci = sys::ze_pci_ext_properties_t { stype: sys::ZE_STRUCTURE_TYPE_PCI_EXT_PROPERTIES, ..Default::default() };
    let address = get(entry!(api, zeDevicePciGetPropertiesExt), handle, pci)
        .map(|p| pci_address(p.address.domain, p.address.bus, p.address.device, p.address.function));
    let by_address = address.as_deref().map_err(Clone::clone);
    let measures = by_address.clone().and_then(|address| {
        let sysman = sysman.as_ref().map_err(Clone::clone)?;
        sysman.find(address).map(|handle| sysman.measure(handle, sources.energy_pause))
    });
    Device {
        identity: get(entry!(api, zeDeviceGetProperties), handle, properties)
            .map(|p| Identity {
                name: crate::device::text(&p.name),
                vendor_id: format!("{:#06x}", p.vendorId),
                device_id: format!("{:#06x}", p.deviceId),
            })
            .into(),
        memory_total_bytes: list(entry!(api, zeDeviceGetMemoryProperties), handle, memory)
            .map(|all| all.iter().map(|memory| memory.totalSize).collect())
            .into(),
        bridges: by_address.and_then(|address| system::bridges(sources.root, address)).into(),
        sysman: measures.into(),
        pci_address: address.into(),
    }
}

/// An address as the kernel writes it.
fn pci_address(domain: u32, bus: u32, device: u32, function: u32) -> String {
    format!("{domain:04x}:{bus:02x}:{device:02x}.{function:x}")
}
