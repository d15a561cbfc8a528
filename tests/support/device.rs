//! The device that tests run on.

use bankshot::device::{DeviceInfo, devices};

/// The CPU, which every machine with the toolchain has, or the device with the number in `BANKSHOT_TEST_DEVICE`.
pub fn test_device() -> DeviceInfo {
    let found = devices().expect("devices");
    let device = match std::env::var("BANKSHOT_TEST_DEVICE") {
        Ok(number) => found.get(number.parse::<usize>().expect("BANKSHOT_TEST_DEVICE is a number")),
        Err(_) => found.iter().find(|device| device.is_cpu),
    };
    device.unwrap_or_else(|| panic!("the device to test on is not among {found:?}")).clone()
}
