//! The attributes that a file gets: owner, permissions, times, extended attributes.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;

use rustix::fs::{Gid, Mode, Timespec, Timestamps, Uid};
use sweetspot_linux::process;

pub(crate) struct FileStatus {
    pub mode: u32,
    /// Time of the last change; without one the file keeps its own.
    pub modified: Option<(i64, u32)>,
    /// User and group, where this end takes them.
    pub owner: Option<(u32, u32)>,
    pub attributes: Vec<(Vec<u8>, Vec<u8>)>,
}

impl FileStatus {
    /// Gives `file` these extended attributes, owner, permissions and time of the last change.
    pub fn give(&self, file: &File) -> io::Result<()> {
        let flags = rustix::fs::XattrFlags::empty();
        for (name, value) in &self.attributes {
            rustix::fs::fsetxattr(file, OsStr::from_bytes(name), value, flags)?;
        }
        set_owner_mode_and_time(file, self)
    }
}

/// Sets owner and time of the last change if there are any, and permissions.
pub(crate) fn set_owner_mode_and_time(file: &File, status: &FileStatus) -> io::Result<()> {
    set_owner(file, status.owner)?;
    rustix::fs::fchmod(file, permissions(status.mode))?;
    let Some(modified) = status.modified else { return Ok(()) };
    Ok(rustix::fs::futimens(file, &times(modified))?)
}

pub(super) fn set_owner(file: impl AsFd, owner: Option<(u32, u32)>) -> io::Result<()> {
    let Some((user, group)) = owner else { return Ok(()) };
    Ok(rustix::fs::fchown(file, Some(Uid::from_raw(user)), Some(Gid::from_raw(group)))?)
}

/// The permissions that a file of the peer's `mode` gets: never set-id or sticky bits, and less the umask.
pub(super) fn permissions(mode: u32) -> Mode {
    Mode::from_raw_mode(mode & 0o777 & !process::umask())
}

pub(super) fn times((seconds, nanoseconds): (i64, u32)) -> Timestamps {
    let modified = Timespec { tv_sec: seconds, tv_nsec: nanoseconds.min(999_999_999).into() };
    let unchanged = Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_OMIT };
    Timestamps { last_access: unchanged, last_modification: modified }
}
