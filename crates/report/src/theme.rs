//! The medium of a page or a picture.

/// Light or dark, as the reader's system is set, or white.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Theme {
    /// Light or dark, as the reader's system is set.
    #[default]
    Screen,
    /// White, for paper and for programs that know no media queries.
    Print,
}
