#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| bankshot::targets::tokenizer(data));
