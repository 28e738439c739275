//! The medium of a page or a picture.

/// The colours of a page or picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Theme {
    /// Light or dark, following the reader's system setting.
    #[default]
    Screen,
    /// White, for paper and for programs without media queries.
    Print,
}
