#![no_main]

#[path = "../driver.rs"]
mod entry;

libfuzzer_sys::fuzz_target!(|data: &[u8]| entry::driver(data));
