#![no_main]

#[path = "../capture.rs"]
mod entry;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Some((size, capture)) = data.split_first() else { return };
    let _ = entry::capture(capture, usize::from(*size));
});
