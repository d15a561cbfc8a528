//! Devices and cards as the user names them.

use anyhow::{Result, bail};

use crate::device::{Card, DeviceInfo, Part, devices};

/// Most cards that one name may stand for.
const PARTS_MAX: u32 = 64;

/// One device: a number, `cpu` or `gpu`; without a name the first GPU, else the CPU.
pub fn choose_device(wanted: Option<&str>) -> Result<DeviceInfo> {
    let devices = devices()?;
    match find(&devices, wanted) {
        Some(device) => Ok(device.clone()),
        None => bail!(unknown(&devices, wanted)),
    }
}

/// Cards: names of devices with commas between them. `NAME:N` stands for N of them: the first N GPUs for `gpu`, else N
/// parts of the device.
pub fn choose_cards(wanted: Option<&str>) -> Result<Vec<Card>> {
    let devices = devices()?;
    let mut cards = Vec::new();
    let Some(wanted) = wanted else {
        cards.push(Card::open(choose_device(None)?.index)?);
        return Ok(cards);
    };
    for item in wanted.split(',') {
        let (name, count) = item.split_once(':').map_or((item, None), |(name, count)| (name, Some(count)));
        let count = count.map_or(Some(1), |count| count.parse::<u32>().ok().filter(|n| (1..=PARTS_MAX).contains(n)));
        let Some(count) = count else {
            bail!("--device: expected 1 to {PARTS_MAX} behind the colon, got `{item}`");
        };
        let Some(device) = find(&devices, Some(name)) else { bail!(unknown(&devices, Some(item))) };
        if name == "gpu" {
            let gpus: Vec<&DeviceInfo> = devices.iter().filter(|device| !device.is_cpu).collect();
            if (gpus.len() as u32) < count {
                bail!("--device: expected at most {} GPUs, as many as there are, got `{item}`", gpus.len());
            }
            for gpu in &gpus[..count as usize] {
                cards.push(Card::open(gpu.index)?);
            }
        } else {
            for index in 0..count {
                cards.push(Card::open_part(device.index, Part { index, count })?);
            }
        }
    }
    Ok(cards)
}

/// The cards in words.
pub fn names(cards: &[Card]) -> String {
    let name = |card: &Card| format!("{} ({})", card.info().name, card.info().backend);
    let mut text = String::new();
    let mut rest = cards;
    while let Some(first) = rest.first() {
        let same = rest.iter().take_while(|card| name(card) == name(first)).count();
        let count = if same > 1 { format!("{same} x ") } else { String::new() };
        text += &format!("{}{count}{}", if text.is_empty() { "" } else { ", " }, name(first));
        rest = &rest[same..];
    }
    text
}

fn find<'a>(devices: &'a [DeviceInfo], wanted: Option<&str>) -> Option<&'a DeviceInfo> {
    match wanted {
        None => devices.iter().find(|device| !device.is_cpu).or_else(|| devices.first()),
        Some("cpu") => devices.iter().find(|device| device.is_cpu),
        Some("gpu") => devices.iter().find(|device| !device.is_cpu),
        Some(number) => number.parse::<usize>().ok().and_then(|number| devices.get(number)),
    }
}

fn unknown(devices: &[DeviceInfo], wanted: Option<&str>) -> String {
    let line = |(i, device): (usize, &DeviceInfo)| format!("\n  {i}: {} ({})", device.name, device.backend);
    let list: String = devices.iter().enumerate().map(line).collect();
    let list = if list.is_empty() { "\n  none" } else { &list };
    match wanted {
        Some(wanted) => {
            format!("--device: expected a number of this list, `cpu` or `gpu`, got `{wanted}`; devices:{list}")
        }
        None => {
            format!("no usable device: expected a Level Zero GPU, a CUDA GPU or the OpenCL CPU device, found:{list}")
        }
    }
}
