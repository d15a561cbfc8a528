//! Status codes and the text behind them.

use super::sys;
use std::fmt;
use std::sync::OnceLock;

/// A status of the C ABI. A number, not an enum: a later library may know more of them.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Status(pub i32);

macro_rules! statuses {
    ($($name:ident = $value:ident, $text:literal;)*) => {
        impl Status {
            $(pub const $name: Status = Status(sys::$value as i32);)*

            fn name(self) -> Option<&'static str> {
                match self { $(Status::$name => Some($text),)* _ => None }
            }
        }
    };
}

statuses! {
    OK = XK_OK, "ok";
    NULL = XK_ERR_NULL, "null pointer";
    VALUE = XK_ERR_VALUE, "value out of range";
    STRUCT = XK_ERR_STRUCT, "unknown struct size";
    UNSUPPORTED = XK_ERR_UNSUPPORTED, "unsupported";
    NOT_FOUND = XK_ERR_NOT_FOUND, "not found";
    STATE = XK_ERR_STATE, "wrong state";
    HOST_MEMORY = XK_ERR_HOST_MEMORY, "out of host memory";
    DEVICE_MEMORY = XK_ERR_DEVICE_MEMORY, "out of device memory";
    BUILD = XK_ERR_BUILD, "device code did not build";
    DEVICE = XK_ERR_DEVICE, "device error";
    DEVICE_LOST = XK_ERR_DEVICE_LOST, "device lost";
    INTERNAL = XK_ERR_INTERNAL, "internal error";
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(f, "{name}"),
            None => write!(f, "status {}", self.0),
        }
    }
}

impl fmt::Debug for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Status({}: {self})", self.0)
    }
}

/// A failed call of the C ABI. The text names the call and says what was expected and what was found.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{status}: {text}")]
pub struct DeviceError {
    pub status: Status,
    pub text: String,
}

/// Turns a status into a result, with the text that the call left on this thread.
pub fn check(status: sys::xk_status) -> Result<(), DeviceError> {
    let status = Status(status);
    if status == Status::OK { Ok(()) } else { Err(DeviceError { status, text: last_error() }) }
}

fn last_error() -> String {
    // SAFETY: a null buffer of no bytes asks for the length only.
    let bytes = unsafe { sys::xk_last_error(std::ptr::null_mut(), 0) };
    let mut text = vec![0u8; bytes + 1];
    // SAFETY: the buffer has as many bytes as it says.
    unsafe { sys::xk_last_error(text.as_mut_ptr().cast(), text.len()) };
    text.truncate(bytes);
    String::from_utf8_lossy(&text).into_owned()
}

/// Compares the library's version with the one these bindings were made for; every first call goes through here.
pub fn handshake() -> Result<(), DeviceError> {
    static DONE: OnceLock<Result<(), DeviceError>> = OnceLock::new();
    DONE.get_or_init(|| {
        let (mut major, mut minor) = (0, 0);
        // SAFETY: both pointers are to live numbers.
        check(unsafe { sys::xk_abi_version(&mut major, &mut minor) })?;
        let (want_major, want_minor) = (sys::XK_ABI_MAJOR, sys::XK_ABI_MINOR);
        if major != want_major || minor < want_minor {
            let text = format!(
                "xk_abi_version: expected {want_major}.{want_minor} or a later minor version, got {major}.{minor}"
            );
            return Err(DeviceError { status: Status::UNSUPPORTED, text });
        }
        Ok(())
    })
    .clone()
}
