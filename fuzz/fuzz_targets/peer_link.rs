#![no_main]

#[path = "../peer_link.rs"]
mod entry;

libfuzzer_sys::fuzz_target!(|data: &[u8]| entry::peer_link(data));
