//! What JavaScript calls. Texts are UTF-8 in this module's memory: [`question`] makes room for one,
//! the caller writes it there, [`answer`] reads it and tells how long the answer is, which then
//! stands at [`text`].

#![allow(unsafe_code)] // Only `no_mangle`, see Cargo.toml.

use std::cell::RefCell;

thread_local! {
    static TEXT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Room for a question of so many bytes.
#[unsafe(no_mangle)]
pub extern "C" fn question(bytes: usize) -> *mut u8 {
    TEXT.with_borrow_mut(|text| {
        *text = vec![0; bytes];
        text.as_mut_ptr()
    })
}

/// Answers it; returns how many bytes the answer has.
#[unsafe(no_mangle)]
pub extern "C" fn answer() -> usize {
    TEXT.with_borrow_mut(|text| {
        *text = crate::answer(&String::from_utf8_lossy(text)).into_bytes();
        text.len()
    })
}

/// Where the answer stands, until the next question.
#[unsafe(no_mangle)]
pub extern "C" fn text() -> *const u8 {
    TEXT.with_borrow(|text| text.as_ptr())
}
