//! Devices and cards as users name them.

use super::{Card, DeviceError, DeviceInfo, Part, devices};

/// Most cards that one name may stand for.
const PARTS_MAX: u32 = 64;

/// Why names do not lead to cards.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum CardsError {
    /// A name that no device has. The devices are listed in lines of their own.
    #[error("expected a number of this list, `cpu` or `gpu`, got `{got}`; devices:{list}")]
    Unknown { got: String, list: String },
    #[error("no usable device: expected a Level Zero GPU, a CUDA GPU or the OpenCL CPU device, found:{list}")]
    NoDevice { list: String },
    #[error("expected 1 to {PARTS_MAX} behind the colon, got `{got}`")]
    Count { got: String },
    #[error("expected at most {gpus} GPUs, as many as there are, got `{got}`")]
    Gpus { gpus: usize, got: String },
    #[error(transparent)]
    Device(#[from] DeviceError),
}

/// One device: a number, `cpu` or `gpu`; without a name the first GPU, else the CPU.
///
/// # Errors
/// When there is no such device.
pub fn choose_device(wanted: Option<&str>) -> Result<DeviceInfo, CardsError> {
    let devices = devices()?;
    find(&devices, wanted).cloned().ok_or_else(|| unknown(&devices, wanted))
}

/// Cards: names of devices with commas between them. `NAME:N` stands for N of them: the first N GPUs for `gpu`, else N
/// parts of the device. Without names the first GPU, else the CPU.
///
/// # Errors
/// When there is no such device, or one cannot be opened.
pub fn choose_cards(wanted: Option<&str>) -> Result<Vec<Card>, CardsError> {
    let devices = devices()?;
    let mut cards = Vec::new();
    let Some(wanted) = wanted else {
        cards.push(Card::open(choose_device(None)?.index)?);
        return Ok(cards);
    };
    for item in wanted.split(',') {
        let (name, count) = item.split_once(':').map_or((item, None), |(name, count)| (name, Some(count)));
        let count = count.map_or(Some(1), |count| count.parse::<u32>().ok().filter(|n| (1..=PARTS_MAX).contains(n)));
        let Some(count) = count else { return Err(CardsError::Count { got: item.to_owned() }) };
        let Some(device) = find(&devices, Some(name)) else { return Err(unknown(&devices, Some(item))) };
        if name == "gpu" {
            let gpus: Vec<&DeviceInfo> = devices.iter().filter(|device| !device.is_cpu).collect();
            if (gpus.len() as u32) < count {
                return Err(CardsError::Gpus { gpus: gpus.len(), got: item.to_owned() });
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

fn find<'a>(devices: &'a [DeviceInfo], wanted: Option<&str>) -> Option<&'a DeviceInfo> {
    match wanted {
        None => devices.iter().find(|device| !device.is_cpu).or_else(|| devices.first()),
        Some("cpu") => devices.iter().find(|device| device.is_cpu),
        Some("gpu") => devices.iter().find(|device| !device.is_cpu),
        Some(number) => number.parse::<usize>().ok().and_then(|number| devices.get(number)),
    }
}

fn unknown(devices: &[DeviceInfo], wanted: Option<&str>) -> CardsError {
    let line = |(i, device): (usize, &DeviceInfo)| format!("\n  {i}: {} ({})", device.name, device.backend);
    let list: String = devices.iter().enumerate().map(line).collect();
    let list = if list.is_empty() { "\n  none".to_owned() } else { list };
    match wanted {
        Some(wanted) => CardsError::Unknown { got: wanted.to_owned(), list },
        None => CardsError::NoDevice { list },
    }
}
