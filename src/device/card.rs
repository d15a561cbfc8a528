//! Devices and cards.

use super::status::{check, handshake};
use super::{DeviceError, host_free_bytes, sys};
use std::ffi::c_char;
use std::ptr::{NonNull, null_mut};
use std::sync::Arc;

/// Facts about a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceInfo {
    /// For [`Card::open`].
    pub index: u32,
    pub name: String,
    pub vendor: String,
    pub driver: String,
    /// `opencl`, `level_zero` or `cuda`.
    pub backend: String,
    pub is_cpu: bool,
    pub compute_units: u32,
    /// Supported widths, ascending, up to 32.
    pub sub_group_sizes: Vec<u32>,
    pub global_bytes: u64,
    /// Largest single allocation that the driver promises.
    pub max_alloc_bytes: u64,
    pub local_bytes: u64,
    /// Device memory that was free when this was asked; none if the driver does not say, see `xk.h`.
    pub free_bytes: Option<u64>,
}

/// Part `index` of `count` of a device: a sub-device of some compute units, or one that it shares with other parts if
/// the device has fewer units than `count` or cannot be split; see `xk.h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    pub index: u32,
    pub count: u32,
}

/// All usable devices: GPUs first, then the CPU.
pub fn devices() -> Result<Vec<DeviceInfo>, DeviceError> {
    handshake()?;
    let mut count = 0;
    // SAFETY: the pointer is to a live number.
    check(unsafe { sys::xk_device_count(&mut count) })?;
    (0..count).map(device).collect()
}

fn device(index: u32) -> Result<DeviceInfo, DeviceError> {
    // SAFETY: all fields are numbers, for which zero bytes are a value.
    let mut raw: sys::xk_device_info = unsafe { std::mem::zeroed() };
    raw.struct_size = size_of::<sys::xk_device_info>() as u32;
    // SAFETY: the struct is live and says its own size.
    check(unsafe { sys::xk_device_info_get(index, &mut raw) })?;
    let mut sub_group_sizes: Vec<u32> = (1..32).filter(|n| raw.sub_group_sizes >> n & 1 == 1).collect();
    if raw.has_sub_group_32 == 1 {
        sub_group_sizes.push(32);
    }
    Ok(DeviceInfo {
        index,
        name: text(&raw.name),
        vendor: text(&raw.vendor),
        driver: text(&raw.driver),
        backend: text(&raw.backend),
        is_cpu: raw.is_cpu == 1,
        compute_units: raw.compute_units,
        sub_group_sizes,
        global_bytes: raw.global_bytes,
        max_alloc_bytes: raw.max_alloc_bytes,
        local_bytes: raw.local_bytes,
        free_bytes: (raw.free_bytes != 0).then_some(raw.free_bytes),
    })
}

/// The text of a field of fixed size, up to its zero or its end.
pub(crate) fn text(field: &[c_char]) -> String {
    let bytes: Vec<u8> = field.iter().take_while(|c| **c != 0).map(|c| *c as u8).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

#[derive(Debug)]
pub(super) struct CardInner {
    raw: NonNull<sys::xk_card>,
    info: DeviceInfo,
}

// SAFETY: the ABI lets any thread make arenas, queues and modules of a card at any time; nothing else uses the handle.
unsafe impl Send for CardInner {}
// SAFETY: as above.
unsafe impl Sync for CardInner {}

impl Drop for CardInner {
    fn drop(&mut self) {
        // SAFETY: the handle is ours and is used no more.
        unsafe { sys::xk_card_destroy(self.raw.as_ptr()) };
    }
}

/// One device with a context of its own. Clones are the same card.
#[derive(Debug, Clone)]
pub struct Card(Arc<CardInner>);

impl Card {
    pub fn open(index: u32) -> Result<Self, DeviceError> {
        Self::open_part(index, Part { index: 0, count: 1 })
    }

    /// Opens a part of a device as a card of its own, as tests of several cards on one processor do.
    pub fn open_part(index: u32, part: Part) -> Result<Self, DeviceError> {
        handshake()?;
        let info = device(index)?;
        let desc = sys::xk_card_desc {
            struct_size: size_of::<sys::xk_card_desc>() as u32,
            device_index: index,
            part_count: part.count,
            part_index: part.index,
        };
        let mut raw = null_mut();
        // SAFETY: the struct is live and says its own size, and the out-pointer is to a live pointer.
        check(unsafe { sys::xk_card_create(&desc, &mut raw) })?;
        let raw = NonNull::new(raw).expect("xk_card_create gives a card with XK_OK");
        Ok(Self(Arc::new(CardInner { raw, info })))
    }

    pub fn info(&self) -> &DeviceInfo {
        &self.0.info
    }

    /// Memory that is free now: what the driver says, for the CPU device what the host has, else all of the device's.
    pub fn free_bytes(&self) -> u64 {
        let now = if self.0.info.is_cpu {
            host_free_bytes()
        } else {
            device(self.0.info.index).ok().and_then(|info| info.free_bytes)
        };
        now.unwrap_or(self.0.info.global_bytes)
    }

    /// Whether a queue of this card may name device memory of another in [`Queue::copy_from_peer`]; see `xk_card_peer`.
    ///
    /// [`Queue::copy_from_peer`]: super::Queue::copy_from_peer
    pub(super) fn may_copy_from(&self, from: &Card) -> Result<bool, DeviceError> {
        let mut possible = 0;
        // SAFETY: both cards are live and the out-pointer is to a live number.
        check(unsafe { sys::xk_card_peer(self.raw(), from.raw(), &mut possible) })?;
        Ok(possible == 1)
    }

    /// Whether two values are the same card.
    pub fn is(&self, other: &Card) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    pub(super) fn raw(&self) -> *mut sys::xk_card {
        self.0.raw.as_ptr()
    }
}
