//! The model that is part of the program and of the library.

/// A trained model of 24 million parameters with every mechanism of the large ones.
pub static MODEL: &[u8] = include_bytes!("demo-ud.gguf");
