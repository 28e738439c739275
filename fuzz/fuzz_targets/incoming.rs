#![no_main]

#[path = "../allocator.rs"]
mod allocator;
#[path = "../sessions/mod.rs"]
mod sessions;

libfuzzer_sys::fuzz_target!(
    init: allocator::ignore_broken_pipes(),
    |data: &[u8]| sessions::incoming(data)
);
