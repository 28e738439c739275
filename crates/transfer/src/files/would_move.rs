//! The words for the lines of a dry run, at both ends.

/// A directory that would be made.
pub(crate) const DIRECTORY: &str = "directory";
/// A symbolic link that would be made or changed.
pub(crate) const SYMLINK: &str = "symbolic link";
/// A further name of a file.
pub(crate) const HARD_LINK: &str = "hard link";
/// Something that only gets another mode or owner, or other extended attributes.
pub(crate) const ATTRIBUTES: &str = "attributes only";
