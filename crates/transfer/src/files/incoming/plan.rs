//! Decides which content of each entry to request.

use std::io;
use std::sync::atomic::Ordering;

use rustix::fs::{FileType, Stat};
use rustix::io::Errno;
use sweetspot_protocol::record::{Answer, Entry, EntryKind, Owner, Record, has_special_bits};
use sweetspot_protocol::{ProtocolError, RelativePath};

use super::existing::Compared;
use super::kept::{LateDirectory, shortened};
use super::name_list::Announced;
use super::plan_file::{Planned, announced, is_same};
use super::state::Fate;
use super::{Answers, Destination, IncomingFiles, Top, exists_or};
use crate::files::quota::room_of;
use crate::files::target::{self, TargetDirectory};
use crate::limits::{MAX_ATTRIBUTE_BYTES, MAX_OPEN_FILES, attribute_bytes};
use crate::lock::lock;
use crate::{Result, TransferError};

impl IncomingFiles {
    /// Decides on the entries from number `first` on, and sends the answers.
    pub fn plan(&self, first: u32, entries: Vec<Entry>, sender: &dyn Answers) -> Result<()> {
        lock(&self.expected).check(&entries)?;
        let mut answers = Vec::with_capacity(entries.len());
        for (number, entry) in (first..).zip(entries) {
            if self.is_over() {
                return Err(TransferError::Interrupted);
            }
            let path = self.placed(&entry.path);
            let planned = self.plan_entry(number, entry);
            self.hand_over_early(number);
            let (answer, compared) = match planned {
                Ok(planned) => planned,
                Err(error) => {
                    self.note_failure(&path.to_string(), &error.to_string());
                    (Answer::Refused { reason: shortened(error.for_peer()).into() }, None)
                }
            };
            answers.push(answer);
            if let Some(Compared { file, current }) = compared {
                sender.send_record(&Record::Answers(std::mem::take(&mut answers)))?;
                self.send_hashes(&file, &current, sender)?;
            }
        }
        if !answers.is_empty() {
            sender.send_record(&Record::Answers(answers))?;
        }
        let full = lock(&self.state).open.len() > MAX_OPEN_FILES;
        let (what, when) = ("entries", "too far ahead of their content");
        if full { Err(ProtocolError::OutOfOrder { what, when }.into()) } else { Ok(()) }
    }

    /// The sender's name of the entry at `path`. A single file that was renamed here keeps the name chosen here.
    pub(super) fn sent_as(&self, path: &RelativePath) -> RelativePath {
        match &self.destination {
            Destination::Directory { top: Top::Below(name), .. } => {
                RelativePath::new(path.as_bytes().get(name.len() + 1..).unwrap_or_default()).ok()
            }
            _ => None,
        }
        .unwrap_or_else(|| path.clone())
    }

    /// This end's name of an entry sent as `path`, for messages.
    fn placed(&self, path: &RelativePath) -> RelativePath {
        let placed = match &self.destination {
            Destination::Directory { top, .. } => top.place(path).ok(),
            Destination::Output => None,
        };
        placed.unwrap_or_else(|| path.clone())
    }

    /// Gives early content to its file, or drops it if the file is not wanted.
    fn hand_over_early(&self, number: u32) {
        let (early, file) = {
            let mut state = lock(&self.state);
            state.planned = number + 1;
            (state.early.remove(&number), state.open.get(&number).cloned())
        };
        if let Some((early, file)) = early.zip(file) {
            lock(&file.content).early = early;
        }
    }

    fn plan_entry(&self, number: u32, mut entry: Entry) -> Planned {
        if !self.policy.attributes && !entry.attributes.is_empty() {
            lock(&self.state).attributes_left_out = true;
            entry.attributes.clear();
        }
        // All other attributes are the system's: capabilities, labels, ACLs.
        entry.attributes.retain(|(name, _)| name.starts_with(b"user."));
        entry.owner = entry.owner.filter(|_| self.policy.owners).map(|owner| {
            let (user, group) = self.accounts.numbers(&owner);
            Box::new(Owner { user, group, ..*owner })
        });
        let Destination::Directory { target, top } = &self.destination else {
            return self.plan_output(number, entry);
        };
        let sent_as = entry.path.clone();
        entry.path = top.place(&sent_as)?;
        if entry.kind == EntryKind::Special {
            self.skip(&entry.path, &sent_as);
            return Ok((Answer::Nothing, None));
        }
        lock(&self.state).special_bits += u64::from(has_special_bits(&entry));
        self.note_listed(&entry.path);
        if let Err(error) = self.check_dotfile(target, &entry.path, top.is_chosen()) {
            return self.plan_unchanged(target, number, &entry).ok_or(error);
        }
        if top.is_chosen() && entry.path.depth() == 0 {
            // If the user's name is a link to a device, the message must name the device, not the link.
            self.check_special(target, &entry.path, target.followed_status(&entry.path).as_ref())?;
            self.check_chosen_link(target, &entry.path)?;
        }
        if attribute_bytes(&entry.attributes) > MAX_ATTRIBUTE_BYTES {
            let reason = "its extended attributes are longer than 64 KiB; send it without them";
            return Err(TransferError::TooMuch { path: entry.path.to_string().into(), reason });
        }
        self.check_outward(&entry, top)?;
        self.remember(number, &entry)?;
        let path = entry.path.clone();
        let planned = match &entry.kind {
            _ if self.policy.dry_run => self.plan_dry_run(target, number, entry),
            EntryKind::Directory => self.plan_directory(target, number, entry),
            EntryKind::Symlink { target: to } => self.plan_symlink(target, &entry, to),
            EntryKind::HardLink { to } => {
                self.take_room(&path, room_of(0))?;
                lock(&self.state).hard_links.push((number, *to));
                Ok((Answer::Nothing, None))
            }
            EntryKind::File { .. } | EntryKind::Stream => self.plan_file(target, number, entry),
            EntryKind::Special => Ok((Answer::Nothing, None)),
        };
        planned.map_err(|error| self.concealed(&path, error))
    }

    /// Rejects a name that begins with a dot in a directory that no transfer of this process created.
    fn check_dotfile(
        &self,
        target: &TargetDirectory,
        path: &RelativePath,
        top_is_chosen: bool,
    ) -> Result<()> {
        if self.policy.dotfiles {
            return Ok(());
        }
        let bytes = path.as_bytes();
        let starts = std::iter::once(0).chain(
            bytes.iter().enumerate().filter_map(|(at, byte)| (*byte == b'/').then_some(at + 1)),
        );
        for start in starts {
            if bytes[start] != b'.' || start == 0 && top_is_chosen {
                continue;
            }
            let parent = (start > 0).then(|| &bytes[..start - 1]);
            let new = parent.is_some_and(|parent| lock(&self.state).made.contains(parent));
            let allowed = new
                || match target.was_made(parent) {
                    Ok(made) => made,
                    // A dry run does not create directories.
                    Err(_) => self.policy.dry_run,
                };
            if !allowed {
                return Err(TransferError::Dotfile(path.to_string().into()));
            }
        }
        Ok(())
    }

    /// The answer to an entry that exists as announced. Nothing is written, so the name needs no permission.
    fn plan_unchanged(
        &self,
        target: &TargetDirectory,
        number: u32,
        entry: &Entry,
    ) -> Option<(Answer, Option<Compared>)> {
        let current = target.status(&entry.path).ok().flatten();
        let current = current.filter(|stat| target.may_tell(stat))?;
        match &entry.kind {
            EntryKind::File { size, .. } => {
                let is_same = !self.policy.checksum && is_same(&current, *size, entry.modified);
                is_same.then_some(())?;
                self.remember(number, entry).ok()?;
                self.unchanged.fetch_add(*size, Ordering::Relaxed);
                // Not added to the complete files: a hard link would give another name to a file that the peer may not
                // write.
                lock(&self.state).count(Fate::Unchanged);
            }
            EntryKind::Symlink { target: to } => {
                target.is_symlink_to(&entry.path, to).then_some(())?;
                lock(&self.state).count(Fate::Unchanged);
            }
            EntryKind::Directory => target::is(&current, FileType::Directory).then_some(())?,
            EntryKind::HardLink { .. } | EntryKind::Stream | EntryKind::Special => return None,
        }
        Some((Answer::Nothing, None))
    }

    /// Rejects a symbolic link that leads out of the directory.
    fn check_outward(&self, entry: &Entry, top: &Top) -> Result<()> {
        let EntryKind::Symlink { target: to } = &entry.kind else { return Ok(()) };
        let depth = entry.path.depth().saturating_sub(usize::from(top.is_chosen()));
        if !self.policy.outward_links && leads_out(to, depth) {
            return Err(TransferError::LeadsOut(entry.path.to_string().into()));
        }
        Ok(())
    }

    /// The error that the peer may see: without the right to read, it must not learn which kind of file is in the way.
    fn concealed(&self, path: &RelativePath, error: TransferError) -> TransferError {
        let reveals = match &error {
            TransferError::IsDirectory(_) | TransferError::NotADirectory(_) => true,
            TransferError::Write { source, .. } => source.raw_os_error().is_some_and(|code| {
                [Errno::NOTDIR, Errno::LOOP, Errno::ISDIR, Errno::XDEV, Errno::ACCESS, Errno::NXIO]
                    .contains(&Errno::from_raw_os_error(code))
            }),
            _ => false,
        };
        if reveals && self.bounds.view.own_only {
            return TransferError::Exists(path.to_string().into());
        }
        error
    }

    /// Keeps the name of an entry, and the announced properties of a file, for later entries that refer to it.
    fn remember(&self, number: u32, entry: &Entry) -> Result<()> {
        let (file, extra) = match &entry.kind {
            EntryKind::File { .. } | EntryKind::Stream => {
                (Some(Announced { size: announced(entry), modified: entry.modified.0 }), 0)
            }
            EntryKind::Directory => (None, size_of::<LateDirectory>()),
            EntryKind::HardLink { .. } => (None, size_of::<(u32, u32)>()),
            EntryKind::Symlink { .. } | EntryKind::Special => return Ok(()),
        };
        if lock(&self.state).names.push(number, &entry.path, file, extra) || file.is_some() {
            // A file can do without the list: only hard links to it will fail.
            return Ok(());
        }
        let reason = "together, the names in this transfer exceed the limit; send it in parts";
        Err(TransferError::TooMuch { path: entry.path.to_string().into(), reason })
    }

    fn plan_directory(&self, target: &TargetDirectory, number: u32, entry: Entry) -> Planned {
        self.take_room(&entry.path, room_of(0))?;
        let new = self.make_directory(target, &entry);
        if !matches!(new, Ok(true)) {
            self.release_room(room_of(0));
        }
        let new = new?;
        if new && !self.policy.dotfiles {
            let noted = target.note_made(Some(entry.path.as_bytes()));
            noted.map_err(|error| target::failed(&entry.path, error))?;
        }
        let mut state = lock(&self.state);
        if new {
            state.made.insert(entry.path.as_bytes());
        }
        // An existing directory keeps its mode and time if nothing may be replaced.
        if new || self.policy.replace {
            let (mode, modified, depth) = (entry.mode, entry.modified, entry.path.depth());
            let owner = entry.owner.map(|owner| (owner.user, owner.group));
            state.directories.push(LateDirectory { number, mode, modified, owner, depth, new });
        }
        Ok((Answer::Nothing, None))
    }

    /// Creates a directory, replacing a file or a link if allowed. Returns false if the directory already existed.
    fn make_directory(&self, target: &TargetDirectory, entry: &Entry) -> Result<bool> {
        let (path, mode) = (&entry.path, entry.mode);
        match target.make_directory(path, mode) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let current = target.status(path).unwrap_or(None);
                self.check_not_directory(target, path, current.as_ref())?;
                self.replacing(target, path, || target.replace_by_directory(path, mode))
                    .map_err(|error| target::failed(path, error))?;
                Ok(true)
            }
            made => made.map_err(|error| target::failed(path, error)),
        }
    }

    fn plan_symlink(&self, target: &TargetDirectory, entry: &Entry, to: &[u8]) -> Planned {
        let path = &entry.path;
        self.take_room(path, room_of(0))?;
        let new = self
            .replacing(target, path, || target.make_symlink(path, to, self.policy.replace))
            .or_else(|error| self.left_alone(error))
            .map_err(|error| self.exists_or(target, path, error));
        if !matches!(new, Ok(true)) {
            self.release_room(room_of(0));
        }
        let new = new?;
        if new {
            target.finish_symlink(path, entry.modified);
        }
        let owned = self.give_owner(target, entry)?;
        let fate = if new { Fate::Written } else { Fate::of_attributes(owned) };
        lock(&self.state).count(fate);
        Ok((Answer::Nothing, None))
    }

    /// Handles a link that was not created because its name exists: no error if existing files are left alone.
    pub(super) fn left_alone(&self, error: io::Error) -> io::Result<bool> {
        let is_left = self.policy.leave && error.kind() == io::ErrorKind::AlreadyExists;
        if is_left { Ok(false) } else { Err(error) }
    }

    /// The error for a link that could not be created.
    pub(super) fn exists_or(
        &self,
        target: &TargetDirectory,
        path: &RelativePath,
        error: io::Error,
    ) -> TransferError {
        let current = target.status(path).unwrap_or(None);
        let special = self.check_special(target, path, current.as_ref());
        special.err().unwrap_or_else(|| exists_or(path, error))
    }

    /// Rejects an entry with the name of a device, a pipe or a socket, unless existing files are left alone.
    pub(super) fn check_special(
        &self,
        target: &TargetDirectory,
        path: &RelativePath,
        current: Option<&Stat>,
    ) -> Result<()> {
        let special = current.and_then(|stat| Some((stat, target::special(stat)?)));
        let Some((stat, what)) = special.filter(|_| !self.policy.leave) else { return Ok(()) };
        let path = path.to_string().into();
        let revealed = target.may_tell(stat);
        Err(if revealed {
            TransferError::Special { path, what }
        } else {
            TransferError::Exists(path)
        })
    }

    /// Rejects a file or a link with the name of a directory, unless that is empty and may be replaced.
    pub(super) fn check_directory(
        &self,
        target: &TargetDirectory,
        path: &RelativePath,
        current: Option<&Stat>,
    ) -> Result<()> {
        let directory = current.filter(|stat| target::is(stat, FileType::Directory));
        match directory.map(|stat| target.may_tell(stat)) {
            None => Ok(()),
            Some(true) if self.policy.other_kinds && target.is_empty(path) => Ok(()),
            Some(true) => Err(TransferError::IsDirectory(path.to_string().into())),
            Some(false) => Err(TransferError::Exists(path.to_string().into())),
        }
    }

    /// Rejects a directory with the name of anything but a file or a link that may be replaced.
    pub(super) fn check_not_directory(
        &self,
        target: &TargetDirectory,
        path: &RelativePath,
        current: Option<&Stat>,
    ) -> Result<()> {
        self.check_special(target, path, current)?;
        let gives_way = |stat: &Stat| {
            target.may_tell(stat)
                && [FileType::RegularFile, FileType::Symlink]
                    .iter()
                    .any(|kind| target::is(stat, *kind))
        };
        match self.policy.other_kinds && current.is_some_and(gives_way) {
            true => Ok(()),
            false => Err(TransferError::NotADirectory(path.to_string().into())),
        }
    }

    /// Rejects a file with the name of a link that this end's user named: replacing /dev/stdout is never the intention.
    fn check_chosen_link(&self, target: &TargetDirectory, path: &RelativePath) -> Result<()> {
        let current = target.status(path).unwrap_or(None);
        if self.policy.leave || !current.is_some_and(|stat| target::is(&stat, FileType::Symlink)) {
            return Ok(());
        }
        let (path, what) = (path.to_string().into(), "symbolic link");
        Err(TransferError::Special { path, what })
    }

    /// Gives a link the sender's owner, if it may be changed. Returns whether the owner was different.
    fn give_owner(&self, target: &TargetDirectory, entry: &Entry) -> Result<bool> {
        let owner = entry.owner.as_ref().filter(|_| self.policy.replace);
        let Some(owner) = owner.map(|owner| (owner.user, owner.group)) else { return Ok(false) };
        target.give_owner(&entry.path, owner).map_err(|error| target::failed(&entry.path, error))
    }
}

/// Whether a symbolic link to `to`, in a directory of this depth, leads out of the target directory. A name within `to` may
/// itself be a link upwards, so `..` is allowed only at the start.
fn leads_out(to: &[u8], depth: usize) -> bool {
    let names: Vec<&[u8]> =
        to.split(|byte| *byte == b'/').filter(|name| !matches!(*name, b"" | b".")).collect();
    let upwards = names.iter().take_while(|name| **name == b"..").count();
    to.starts_with(b"/") || upwards > depth || names[upwards..].contains(&&b".."[..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_outward_if_it_may_resolve_outside_the_directory() {
        // The link's target, the depth of its directory, and whether it leads out.
        for (to, depth, out) in [
            ("/etc", 3, true),
            ("a/b", 0, false),
            ("./a", 0, false),
            ("..", 0, true),
            ("..", 1, false),
            ("../a", 1, false),
            ("./../../a", 1, true),
            ("../../a", 2, false),
            // If "a" is a link to "..", this is above the directory.
            ("a/..", 1, true),
            ("../a/../b", 2, true),
            ("...", 0, false),
        ] {
            assert_eq!(leads_out(to.as_bytes(), depth), out, "{to} at {depth}");
        }
    }
}
