//! The functions that JavaScript calls. Texts are UTF-8 in this module's memory: [`question`] allocates a buffer for the
//! caller to fill, [`answer`] reads it and returns the length of the answer, which is at the address [`text`].
//!
//! A diagnosis takes its file in the same way: [`diagnosis_begin`] reads the file's name, and each call of [`diagnosis_take`]
//! one piece of it. [`diagnosis_end`] returns the length of the answer, or 0 if the caller must pass the whole file again.

#![allow(unsafe_code)] // Only `no_mangle`, see Cargo.toml.

use std::cell::RefCell;

use crate::Diagnosis;

thread_local! {
    static TEXT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    static DIAGNOSIS: RefCell<Option<Diagnosis>> = const { RefCell::new(None) };
}

/// Allocates a question of `bytes` bytes and returns its address.
#[unsafe(no_mangle)]
pub extern "C" fn question(bytes: usize) -> *mut u8 {
    TEXT.with_borrow_mut(|text| {
        *text = vec![0; bytes];
        text.as_mut_ptr()
    })
}

/// Answers the question and returns the length of the answer, in bytes.
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

/// Begins the diagnosis of a file; the text is the file's name.
#[unsafe(no_mangle)]
pub extern "C" fn diagnosis_begin() {
    let name = TEXT.with_borrow(|text| String::from_utf8_lossy(text).into_owned());
    DIAGNOSIS.set(Some(Diagnosis::new(&name)));
}

/// Takes the text as the next piece of the file; returns whether further pieces are useful.
#[unsafe(no_mangle)]
pub extern "C" fn diagnosis_take() -> bool {
    TEXT.with_borrow(|piece| {
        DIAGNOSIS.with_borrow_mut(|diagnosis| diagnosis.as_mut().is_some_and(|d| d.take(piece)))
    })
}

/// Ends a pass over the file; returns the length of the JSON answer in bytes, or 0 if the file must be passed again.
#[unsafe(no_mangle)]
pub extern "C" fn diagnosis_end() -> usize {
    let Some(Some(answer)) =
        DIAGNOSIS.with_borrow_mut(|diagnosis| diagnosis.as_mut().map(crate::diagnosed))
    else {
        return 0;
    };
    TEXT.with_borrow_mut(|text| {
        *text = answer.into_bytes();
        text.len()
    })
}
