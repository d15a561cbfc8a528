#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| bankshot::targets::gguf_directory(data));
