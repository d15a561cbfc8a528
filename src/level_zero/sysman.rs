//! Sysman: the part of Level Zero that measures.

use super::api::{entry, get, handles, init, list, roots};
use super::{Reported, pci_address, sys};
use serde::Serialize;
use std::time::Duration;

/// What one device reports about itself.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Measures {
    pub link_at_device: DeviceLink,
    pub memory_modules: Reported<Vec<MemoryModule>>,
    pub ecc: Reported<Ecc>,
    pub power_domains: Reported<Vec<PowerDomain>>,
    pub temperatures: Reported<Vec<Temperature>>,
}

/// The PCI link as the device's own end gives it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DeviceLink {
    pub current: Reported<LinkSpeed>,
    pub max: Reported<LinkSpeed>,
}

/// `None` is what the driver says it does not know.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LinkSpeed {
    pub generation: Option<u32>,
    pub lanes: Option<u32>,
    /// Of all lanes.
    pub bytes_per_s: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MemoryModule {
    /// Such as `GDDR6`.
    pub kind: Reported<String>,
    pub state: Reported<MemoryState>,
    pub max_bytes_per_s: Reported<u64>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MemoryState {
    pub total_bytes: u64,
    pub free_bytes: u64,
    pub health: String,
}

/// Error correction of the card's memory: `enabled`, `disabled` or `unavailable`, now and after the next reset.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Ecc {
    pub current: String,
    pub pending: String,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PowerDomain {
    /// Such as `card`, `package` or `memory`.
    pub domain: Reported<String>,
    /// Mean between two readings of the energy counter.
    pub power_w: Reported<f64>,
    pub limits: Reported<Vec<PowerLimit>>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PowerLimit {
    /// Over which time it holds: `sustained`, `burst`, `peak` or `instantaneous`.
    pub level: String,
    pub limit_w: Reported<f64>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Temperature {
    /// Such as `GPU` or `memory`.
    pub sensor: Reported<String>,
    pub celsius: Reported<f64>,
}

const MEMORY_KINDS: [&str; 20] = [
    "HBM", "DDR", "DDR3", "DDR4", "DDR5", "LPDDR", "LPDDR3", "LPDDR4", "LPDDR5", "SRAM", "L1", "L3", "GRF", "SLM",
    "GDDR4", "GDDR5", "GDDR5X", "GDDR6", "GDDR6X", "GDDR7",
];
const HEALTHS: [&str; 5] = ["unknown", "ok", "degraded", "critical", "replace"];
const ECC_STATES: [&str; 3] = ["unavailable", "enabled", "disabled"];
const POWER_DOMAINS: [&str; 6] = ["unknown", "card", "package", "stack", "memory", "GPU"];
const POWER_LEVELS: [&str; 5] = ["unknown", "sustained", "burst", "peak", "instantaneous"];
const SENSORS: [&str; 9] = [
    "global",
    "GPU",
    "memory",
    "global, least",
    "GPU, least",
    "memory, least",
    "board",
    "board, least",
    "voltage regulator",
];

/// A later driver may have values that have no name here.
fn name(names: &[&str], value: u32) -> String {
    names.get(value as usize).map_or_else(|| format!("value {value}"), |name| (*name).to_owned())
}

/// All devices of the interface. Its handles are not those of the core, so devices are found by PCI address.
pub(super) struct Sysman {
    api: &'static sys::LevelZero,
    devices: Vec<(Result<String, String>, sys::zes_device_handle_t)>,
}

impl Sysman {
    pub(super) fn open(api: &'static sys::LevelZero) -> Result<Sysman, String> {
        init(entry!(api, zesInit), 0).map_err(|why| match api.zesInit {
            Ok(_) => why,
            Err(_) => format!("{why}, which came with Level Zero 1.5"),
        })?;
        let mut devices = Vec::new();
        for driver in roots(entry!(api, zesDriverGet))? {
            for handle in handles(entry!(api, zesDeviceGet), driver)? {
                let address = pci_properties(api, handle)
                    .map(|p| pci_address(p.address.domain, p.address.bus, p.address.device, p.address.function));
                devices.push((address, handle));
            }
        }
        Ok(Sysman { api, devices })
    }

    pub(super) fn find(&self, address: &str) -> Result<sys::zes_device_handle_t, String> {
        if let Some((_, handle)) = self.devices.iter().find(|(found, _)| found.as_deref() == Ok(address)) {
            return Ok(*handle);
        }
        let unknown = self.devices.iter().filter_map(|(found, _)| found.as_deref().err());
        let unknown: String = unknown.map(|why| format!("; one of its devices has no address: {why}")).collect();
        Err(format!("sysman knows no device at {address}{unknown}"))
    }

    pub(super) fn measure(&self, device: sys::zes_device_handle_t, energy_pause: Duration) -> Measures {
        let api = self.api;
        let state = sys::zes_pci_state_t { stype: sys::ZES_STRUCTURE_TYPE_PCI_STATE, ..Default::default() };
        let ecc = sys::zes_device_ecc_properties_t {
            stype: sys::ZES_STRUCTURE_TYPE_DEVICE_ECC_PROPERTIES,
            ..Default::default()
        };
        let memories = handles(entry!(api, zesDeviceEnumMemoryModules), device);
        let domains = handles(entry!(api, zesDeviceEnumPowerDomains), device);
        let sensors = handles(entry!(api, zesDeviceEnumTemperatureSensors), device);
        Measures {
            link_at_device: DeviceLink {
                current: get(entry!(api, zesDevicePciGetState), device, state).map(|s| link_speed(s.speed)).into(),
                max: pci_properties(api, device).map(|p| link_speed(p.maxSpeed)).into(),
            },
            memory_modules: memories.map(|all| all.into_iter().map(|h| memory_module(api, h)).collect()).into(),
            ecc: get(entry!(api, zesDeviceGetEccState), device, ecc)
                .map(|e| Ecc { current: name(&ECC_STATES, e.currentState), pending: name(&ECC_STATES, e.pendingState) })
                .into(),
            power_domains: domains
                .map(|all| all.into_iter().map(|h| power_domain(api, h, energy_pause)).collect())
                .into(),
            temperatures: sensors.map(|all| all.into_iter().map(|h| temperature(api, h)).collect()).into(),
        }
    }
}

fn pci_properties(
    api: &'static sys::LevelZero,
    device: sys::zes_device_handle_t,
) -> Result<sys::zes_pci_properties_t, String> {
    let empty = sys::zes_pci_properties_t { stype: sys::ZES_STRUCTURE_TYPE_PCI_PROPERTIES, ..Default::default() };
    get(entry!(api, zesDevicePciGetProperties), device, empty)
}

/// Unknown is -1.
fn link_speed(speed: sys::zes_pci_speed_t) -> LinkSpeed {
    LinkSpeed {
        generation: speed.gen_.try_into().ok(),
        lanes: speed.width.try_into().ok(),
        bytes_per_s: speed.maxBandwidth.try_into().ok(),
    }
}

fn memory_module(api: &'static sys::LevelZero, handle: sys::zes_mem_handle_t) -> MemoryModule {
    let properties = sys::zes_mem_properties_t { stype: sys::ZES_STRUCTURE_TYPE_MEM_PROPERTIES, ..Default::default() };
    let state = sys::zes_mem_state_t { stype: sys::ZES_STRUCTURE_TYPE_MEM_STATE, ..Default::default() };
    MemoryModule {
        kind: get(entry!(api, zesMemoryGetProperties), handle, properties).map(|p| name(&MEMORY_KINDS, p.type_)).into(),
        state: get(entry!(api, zesMemoryGetState), handle, state)
            .map(|s| MemoryState { total_bytes: s.size, free_bytes: s.free, health: name(&HEALTHS, s.health) })
            .into(),
        max_bytes_per_s: get(entry!(api, zesMemoryGetBandwidth), handle, sys::zes_mem_bandwidth_t::default())
            .and_then(|b| match b.maxBandwidth {
                0 => Err("zesMemoryGetBandwidth: 0 as the maximum".to_owned()),
                bytes_per_s => Ok(bytes_per_s),
            })
            .into(),
    }
}

fn power_domain(api: &'static sys::LevelZero, handle: sys::zes_pwr_handle_t, energy_pause: Duration) -> PowerDomain {
    // An older driver leaves the extension alone, and its domain unknown.
    let mut extension =
        sys::zes_power_ext_properties_t { stype: sys::ZES_STRUCTURE_TYPE_POWER_EXT_PROPERTIES, ..Default::default() };
    let properties = sys::zes_power_properties_t {
        stype: sys::ZES_STRUCTURE_TYPE_POWER_PROPERTIES,
        pNext: (&raw mut extension).cast(),
        ..Default::default()
    };
    let domain = get(entry!(api, zesPowerGetProperties), handle, properties);
    let limit =
        sys::zes_power_limit_ext_desc_t { stype: sys::ZES_STRUCTURE_TYPE_POWER_LIMIT_EXT_DESC, ..Default::default() };
    PowerDomain {
        domain: domain.map(|_| name(&POWER_DOMAINS, extension.domain)).into(),
        power_w: power_w(api, handle, energy_pause).into(),
        limits: list(entry!(api, zesPowerGetLimitsExt), handle, limit)
            .map(|all| all.iter().map(power_limit).collect())
            .into(),
    }
}

/// Microjoules by microseconds are watts.
fn power_w(api: &'static sys::LevelZero, handle: sys::zes_pwr_handle_t, pause: Duration) -> Result<f64, String> {
    let read = || get(entry!(api, zesPowerGetEnergyCounter), handle, sys::zes_power_energy_counter_t::default());
    let first = read()?;
    std::thread::sleep(pause);
    let second = read()?;
    let energy_uj = second.energy.checked_sub(first.energy);
    let time_us = second.timestamp.checked_sub(first.timestamp).filter(|time_us| *time_us > 0);
    match (energy_uj, time_us) {
        (Some(energy_uj), Some(time_us)) => Ok(energy_uj as f64 / time_us as f64),
        _ => Err("zesPowerGetEnergyCounter: the counter or its time did not go forward".to_owned()),
    }
}

fn power_limit(limit: &sys::zes_power_limit_ext_desc_t) -> PowerLimit {
    let limit_w = match limit.limitUnit {
        sys::ZES_LIMIT_UNIT_POWER => Ok(f64::from(limit.limit) / 1000.0),
        sys::ZES_LIMIT_UNIT_CURRENT => Err(format!("it is a current, {} mA", limit.limit)),
        unit => Err(format!("it is {} of unknown unit {unit}", limit.limit)),
    };
    PowerLimit { level: name(&POWER_LEVELS, limit.level), limit_w: limit_w.into() }
}

fn temperature(api: &'static sys::LevelZero, handle: sys::zes_temp_handle_t) -> Temperature {
    let properties =
        sys::zes_temp_properties_t { stype: sys::ZES_STRUCTURE_TYPE_TEMP_PROPERTIES, ..Default::default() };
    Temperature {
        sensor: get(entry!(api, zesTemperatureGetProperties), handle, properties)
            .map(|p| name(&SENSORS, p.type_))
            .into(),
        celsius: get(entry!(api, zesTemperatureGetState), handle, 0.0)
            .and_then(|t: f64| {
                if t.is_finite() { Ok(t) } else { Err(format!("zesTemperatureGetState: {t} as the temperature")) }
            })
            .into(),
    }
}
