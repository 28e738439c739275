//! The attributes of a received file: owner, permissions, times, extended attributes.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::ffi::OsStrExt;

use rustix::fs::{AtFlags, FileType, Gid, Mode, Stat, Timespec, Timestamps, Uid, XattrFlags};
use rustix::io::Errno;
use sweetspot_linux::process;
use sweetspot_protocol::record::Entry;

use crate::limits::MAX_ATTRIBUTE_BYTES;

pub(crate) struct FileStatus {
    pub mode: u32,
    /// Time of the last change; `None`: the file keeps its own.
    pub modified: Option<(i64, u32)>,
    /// User and group, if this end accepts owners.
    pub owner: Option<(u32, u32)>,
    pub attributes: Vec<(Vec<u8>, Vec<u8>)>,
}

/// Attributes of an existing file that differ from the wanted ones.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Differences {
    owner: bool,
    mode: bool,
    time: bool,
    /// Indices of extended attributes to set, and names of those to remove.
    set: Vec<usize>,
    remove: Vec<Vec<u8>>,
}

impl Differences {
    pub fn is_empty(&self) -> bool {
        *self == Differences::default()
    }
}

impl FileStatus {
    /// The attributes of an entry with existing content.
    pub fn of(entry: &Entry) -> FileStatus {
        FileStatus {
            mode: entry.mode,
            modified: Some(entry.modified),
            owner: entry.owner.as_ref().map(|owner| (owner.user, owner.group)),
            attributes: entry.attributes.clone(),
        }
    }

    /// The differences visible in `stat`: owner, permissions and time.
    pub fn differences_from(&self, stat: &Stat) -> Differences {
        let time = (stat.st_mtime, stat.st_mtime_nsec as u32);
        Differences {
            owner: self.owner.is_some_and(|owner| owner != (stat.st_uid, stat.st_gid)),
            mode: stat.st_mode & 0o777 != permissions(self.mode).as_raw_mode(),
            time: self.modified.is_some_and(|modified| modified != time),
            ..Differences::default()
        }
    }

    /// All differences of an existing file, which may be open with `O_PATH` only. `exact`: the file should have no other
    /// extended attributes (`user.*`).
    pub fn differences(&self, file: &File, exact: bool) -> io::Result<Differences> {
        let stat = rustix::fs::fstat(file)?;
        // Another file may have taken this one's place.
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(Errno::LOOP.into());
        }
        let mut differences = self.differences_from(&stat);
        if exact || !self.attributes.is_empty() {
            let there = attributes_of(file)?;
            let lacks = |n: &usize| !there.contains(&self.attributes[*n]);
            differences.set = (0..self.attributes.len()).filter(lacks).collect();
            let is_extra = |name: &[u8]| !self.attributes.iter().any(|(own, _)| own == name);
            let extra = there.into_iter().map(|(name, _)| name);
            differences.remove = extra.filter(|name| exact && is_extra(name)).collect();
        }
        Ok(differences)
    }

    /// Corrects these differences of an existing file, which may be open with `O_PATH` only.
    pub fn mend(&self, file: &File, differences: &Differences) -> io::Result<()> {
        let path = by_number(file);
        let Differences { owner, mode, time, set, remove } = differences;
        if !set.is_empty() || !remove.is_empty() {
            let held = rustix::fs::fstat(file)?.st_mode;
            // Setting an attribute needs permission to write to the file.
            rustix::fs::chmod(&*path, Mode::from_raw_mode(held & 0o777 | 0o600))?;
            for (name, value) in set.iter().map(|n| &self.attributes[*n]) {
                rustix::fs::setxattr(&*path, OsStr::from_bytes(name), value, XattrFlags::empty())?;
            }
            for name in remove {
                rustix::fs::removexattr(&*path, OsStr::from_bytes(name))?;
            }
        }
        if let (true, Some((user, group))) = (owner, self.owner) {
            let (user, group) = (Some(Uid::from_raw(user)), Some(Gid::from_raw(group)));
            rustix::fs::chownat(file, "", user, group, AtFlags::EMPTY_PATH)?;
        }
        // A new owner or extended attribute may have changed the mode.
        if *mode || *owner || !set.is_empty() || !remove.is_empty() {
            rustix::fs::chmod(&*path, permissions(self.mode))?;
        }
        if let (true, Some(modified)) = (time, self.modified) {
            rustix::fs::utimensat(rustix::fs::CWD, &*path, &times(modified), AtFlags::empty())?;
        }
        Ok(())
    }

    /// Gives `file` these extended attributes, owner, permissions and time of the last change.
    pub fn give(&self, file: &File) -> io::Result<()> {
        let flags = XattrFlags::empty();
        for (name, value) in &self.attributes {
            rustix::fs::fsetxattr(file, OsStr::from_bytes(name), value, flags)?;
        }
        set_owner_mode_and_time(file, self)
    }
}

/// The path of an open file through /proc: some calls reject `O_PATH` descriptors.
fn by_number(file: &File) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

/// The extended attributes (`user.*`) of an existing file.
fn attributes_of(file: &File) -> io::Result<Vec<(Vec<u8>, Vec<u8>)>> {
    let path = by_number(file);
    let mut names = vec![0u8; MAX_ATTRIBUTE_BYTES];
    let length = match rustix::fs::listxattr(&*path, &mut names[..]) {
        Err(Errno::OPNOTSUPP) => return Ok(Vec::new()),
        length => length?,
    };
    let mut value = vec![0u8; MAX_ATTRIBUTE_BYTES];
    let mut all = Vec::new();
    for name in names[..length].split(|byte| *byte == 0).filter(|name| name.starts_with(b"user.")) {
        let length = rustix::fs::getxattr(&*path, OsStr::from_bytes(name), &mut value[..])?;
        all.push((name.to_vec(), value[..length].to_vec()));
    }
    Ok(all)
}

/// Sets the permissions, and the owner and the time of the last change if they are known.
fn set_owner_mode_and_time(file: &File, status: &FileStatus) -> io::Result<()> {
    set_owner(file, status.owner)?;
    rustix::fs::fchmod(file, permissions(status.mode))?;
    let Some(modified) = status.modified else { return Ok(()) };
    Ok(rustix::fs::futimens(file, &times(modified))?)
}

pub(super) fn set_owner(file: impl AsFd, owner: Option<(u32, u32)>) -> io::Result<()> {
    let Some((user, group)) = owner else { return Ok(()) };
    Ok(rustix::fs::fchown(file, Some(Uid::from_raw(user)), Some(Gid::from_raw(group)))?)
}

/// The permissions for the peer's `mode`: without set-user-ID, set-group-ID and sticky bits, and reduced by the umask.
pub(super) fn permissions(mode: u32) -> Mode {
    Mode::from_raw_mode(mode & 0o777 & !process::umask())
}

pub(super) fn times((seconds, nanoseconds): (i64, u32)) -> Timestamps {
    let modified = Timespec { tv_sec: seconds, tv_nsec: nanoseconds.min(999_999_999).into() };
    let unchanged = Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_OMIT };
    Timestamps { last_access: unchanged, last_modification: modified }
}
