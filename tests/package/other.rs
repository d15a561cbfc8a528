//! A second static library in Rust, with a copy of the standard library of its own.

/// Digits of all numbers below `end`, counted on another thread.
#[unsafe(no_mangle)]
pub extern "C" fn other_digits(end: u32) -> u32 {
    let count = move || (0..end).map(|number| number.to_string().len() as u32).sum();
    std::thread::spawn(count).join().unwrap_or(0)
}

/// Whether a panic is caught.
#[unsafe(no_mangle)]
pub extern "C" fn other_catches() -> bool {
    std::panic::set_hook(Box::new(|_| {}));
    std::panic::catch_unwind(|| panic!("on purpose")).is_err()
}
