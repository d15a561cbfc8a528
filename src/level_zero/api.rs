//! Calls of the Level Zero loader, with what can go wrong in them as text.

use level_zero_sys as sys;
use std::path::Path;

/// Far more than any machine has; guards against a driver that counts wrongly.
const MOST_ITEMS: u32 = 4096;

/// A function of the loader by name, if the loader has it.
pub(super) type Entry<F> = (&'static str, Option<F>);
type Get<H, T> = unsafe extern "C" fn(H, *mut T) -> sys::ze_result_t;
type List<H, T> = unsafe extern "C" fn(H, *mut u32, *mut T) -> sys::ze_result_t;
type Roots<T> = unsafe extern "C" fn(*mut u32, *mut T) -> sys::ze_result_t;
type Init = unsafe extern "C" fn(u32) -> sys::ze_result_t;

macro_rules! entry {
    ($api:expr, $name:ident) => {
        (stringify!($name), $api.$name.as_ref().ok().copied())
    };
}
pub(super) use entry;

/// Loads the loader and never unloads it: drivers may keep threads, and handles have no end then.
///
/// # Errors
/// What the system says when the file is missing or is no library.
pub(super) fn open(path: &Path) -> Result<&'static sys::LevelZero, String> {
    // SAFETY: the library is the system's Level Zero loader or the file that the user names in its place; its
    // initialisers and functions are trusted to be what Level Zero defines.
    let api = unsafe { sys::LevelZero::new(path) }.map_err(|error| error.to_string())?;
    Ok(Box::leak(Box::new(api)))
}

/// Calls an initialiser of the loader.
pub(super) fn init((name, function): Entry<Init>, flags: u32) -> Result<(), String> {
    let function = function.ok_or_else(|| absent(name))?;
    // SAFETY: the library is never unloaded, and these functions take any flags.
    check(name, unsafe { function(flags) })
}

/// What a getter writes into `value`. The handle is one that the same loader gave; a struct says its type, and what it
/// points to is live.
pub(super) fn get<H, T>((name, function): Entry<Get<H, T>>, handle: H, mut value: T) -> Result<T, String> {
    let function = function.ok_or_else(|| absent(name))?;
    // SAFETY: the library and with it the handle live on, and the callers in this module's parent keep to the above.
    check(name, unsafe { function(handle, &mut value) })?;
    Ok(value)
}

/// The items that belong to a handle. The handle and `empty` are as for [`get`].
pub(super) fn list<H: Copy, T: Clone>(
    (name, function): Entry<List<H, T>>,
    handle: H,
    empty: T,
) -> Result<Vec<T>, String> {
    let function = function.ok_or_else(|| absent(name))?;
    // SAFETY: as in `get`; `fill` passes a live number, and null or as many live items.
    fill(name, empty, |count, items| unsafe { function(handle, count, items) })
}

/// The handles below a handle.
pub(super) fn handles<H: Copy, T>(entry: Entry<List<H, *mut T>>, handle: H) -> Result<Vec<*mut T>, String> {
    refuse_null(entry.0, list(entry, handle, std::ptr::null_mut())?)
}

/// The handles that nothing is above of: drivers.
pub(super) fn roots<T>((name, function): Entry<Roots<*mut T>>) -> Result<Vec<*mut T>, String> {
    let function = function.ok_or_else(|| absent(name))?;
    // SAFETY: the library is never unloaded; `fill` passes a live number, and null or as many live items.
    let found = fill(name, std::ptr::null_mut(), |count, items| unsafe { function(count, items) })?;
    refuse_null(name, found)
}

/// Asks how many there are, then for that many. If there are more or fewer the second time, those that were written.
fn fill<T: Clone>(name: &str, empty: T, call: impl Fn(*mut u32, *mut T) -> sys::ze_result_t) -> Result<Vec<T>, String> {
    let mut count = 0;
    check(name, call(&mut count, std::ptr::null_mut()))?;
    if count > MOST_ITEMS {
        return Err(format!("{name}: expected at most {MOST_ITEMS} items, got {count}"));
    }
    let mut items = vec![empty; count as usize];
    if count > 0 {
        check(name, call(&mut count, items.as_mut_ptr()))?;
        items.truncate(count as usize);
    }
    Ok(items)
}

fn refuse_null<T>(name: &str, handles: Vec<*mut T>) -> Result<Vec<*mut T>, String> {
    if handles.iter().any(|handle| handle.is_null()) {
        return Err(format!("{name}: expected {} handles, got a null pointer among them", handles.len()));
    }
    Ok(handles)
}

fn absent(name: &str) -> String {
    format!("the loader has no function `{name}`")
}

macro_rules! results {
    ($($name:ident)*) => {
        fn result_name(result: sys::ze_result_t) -> Option<&'static str> {
            match result { $(sys::$name => Some(stringify!($name)),)* _ => None }
        }
    };
}

results! {
    ZE_RESULT_NOT_READY
    ZE_RESULT_ERROR_DEVICE_LOST
    ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY
    ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY
    ZE_RESULT_ERROR_DEVICE_REQUIRES_RESET
    ZE_RESULT_ERROR_DEVICE_IN_LOW_POWER_STATE
    ZE_RESULT_ERROR_INSUFFICIENT_PERMISSIONS
    ZE_RESULT_ERROR_NOT_AVAILABLE
    ZE_RESULT_ERROR_DEPENDENCY_UNAVAILABLE
    ZE_RESULT_ERROR_UNINITIALIZED
    ZE_RESULT_ERROR_UNSUPPORTED_VERSION
    ZE_RESULT_ERROR_UNSUPPORTED_FEATURE
    ZE_RESULT_ERROR_INVALID_ARGUMENT
    ZE_RESULT_ERROR_INVALID_NULL_HANDLE
    ZE_RESULT_ERROR_UNKNOWN
}

fn check(name: &str, result: sys::ze_result_t) -> Result<(), String> {
    match (result, result_name(result)) {
        (sys::ZE_RESULT_SUCCESS, _) => Ok(()),
        (_, Some(result)) => Err(format!("{name}: {result}")),
        (_, None) => Err(format!("{name}: result {result:#x}")),
    }
}
