//! The functions that JavaScript calls. Texts are UTF-8 in this module's memory: [`question`] allocates one, the caller writes
//! it, [`answer`] reads it and returns the length of the answer, at the address [`text`].

#![allow(unsafe_code)] // Only `no_mangle`, see Cargo.toml.

use std::cell::RefCell;

thread_local! {
    static TEXT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Allocates a question of `bytes` bytes; returns its address.
#[unsafe(no_mangle)]
pub extern "C" fn question(bytes: usize) -> *mut u8 {
    TEXT.with_borrow_mut(|text| {
        *text = vec![0; bytes];
        text.as_mut_ptr()
    })
}

/// Answers the question; returns the length of the answer, bytes.
#[unsafe(no_mangle)]
pub extern "C" fn answer() -> usize {
    TEXT.with_borrow_mut(|text| {
        *text = crate::answer(&String::from_utf8_lossy(text)).into_bytes();
        text.len()
    })
}

/// The address of the answer, valid until the next question.
#[unsafe(no_mangle)]
pub extern "C" fn text() -> *const u8 {
    TEXT.with_borrow(|text| text.as_ptr())
}
