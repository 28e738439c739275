//! The changes that a transfer would make, for a dry run.

use rustix::fs::{FileType, Stat};
use sweetspot_control::DryRunKind;
use sweetspot_protocol::RelativePath;
use sweetspot_protocol::record::{Answer, Entry, EntryKind};

use super::IncomingFiles;
use super::existing::followed;
use super::file::IncomingFile;
use super::plan_file::{Planned, is_same};
use super::state::Fate;
use crate::TransferError;
use crate::files::target::status::FileStatus;
use crate::files::target::{self, TargetDirectory};
use crate::lock::lock;

impl IncomingFiles {
    /// The answer to an entry; writes nothing.
    pub(super) fn plan_dry_run(
        &self,
        target: &TargetDirectory,
        number: u32,
        entry: Entry,
    ) -> Planned {
        // Where the directory is not there, nothing in it is.
        let current = target.status(&entry.path).unwrap_or(None);
        self.check_special(target, &entry.path, current.as_ref())?;
        match &entry.kind {
            EntryKind::File { size, .. } => {
                let size = *size;
                self.dry_run_file(target, number, entry, Some(size), current.as_ref())
            }
            EntryKind::Stream => self.dry_run_file(target, number, entry, None, current.as_ref()),
            EntryKind::Directory => self.dry_run_directory(target, &entry, current.as_ref()),
            EntryKind::Symlink { target: to } => {
                let same = current.as_ref().is_some_and(|stat| {
                    target.may_tell(stat) && target.is_symlink_to(&entry.path, to)
                });
                self.dry_run_link(target, &entry.path, same, current.as_ref(), DryRunKind::Symlink)
            }
            EntryKind::HardLink { to } => {
                self.dry_run_hard_link(target, &entry.path, *to, current.as_ref())
            }
            EntryKind::Special => Ok((Answer::Nothing, None)),
        }
    }

    fn dry_run_file(
        &self,
        target: &TargetDirectory,
        number: u32,
        entry: Entry,
        size: Option<u64>,
        current: Option<&Stat>,
    ) -> Planned {
        self.check_directory(target, &entry.path, current)?;
        if self.skips_existing(current) {
            return Ok(self.is_there(Fate::Unchanged));
        }
        let shown = current.filter(|stat| target.may_tell(stat));
        if let Some(stat) = shown.filter(|stat| is_same(stat, size.unwrap_or(0), entry.modified))
            && !self.policy.checksum
        {
            lock(&self.state).whole.insert(number);
            let (status, exact) = (FileStatus::of(&entry), self.policy.exact_attributes);
            let is_outdated = self.may_be_outdated(&status, stat)
                && target.is_outdated(&entry.path, &status, exact).unwrap_or(false);
            return Ok(match is_outdated {
                true => self.would_update(&entry.path),
                false => self.is_there(Fate::Unchanged),
            });
        }
        let regular = shown.is_some_and(|stat| target::is(stat, FileType::RegularFile));
        if regular
            && self.policy.checksum
            && current.is_some_and(|s| s.st_size as u64 == size.unwrap_or(0))
        {
            let mut file = IncomingFile::new(number, entry, Some(size.unwrap_or(0)));
            file.compare_only = true;
            lock(&self.state).may_open(&file)?;
            let compared = self.basis(target, &file)?;
            let pieces = compared.as_ref().map_or(0, |compared| compared.pieces);
            let file = lock(&self.state).open(file);
            return Ok((Answer::Compare { pieces }, followed(compared, file)));
        }
        if current.is_some() && !self.policy.replace {
            return Err(TransferError::Exists(entry.path.to_string().into()));
        }
        lock(&self.state).would_arrive.insert(number);
        Ok(self.would_write(&entry.path, DryRunKind::File, size))
    }

    fn dry_run_directory(
        &self,
        target: &TargetDirectory,
        entry: &Entry,
        current: Option<&Stat>,
    ) -> Planned {
        let owner = entry.owner.as_ref().map(|owner| (owner.user, owner.group));
        match current {
            None => Ok(self.would_write(&entry.path, DryRunKind::Directory, None)),
            Some(stat) if !target::is(stat, FileType::Directory) => {
                self.check_not_directory(target, &entry.path, current)?;
                Ok(self.would_write(&entry.path, DryRunKind::Directory, None))
            }
            Some(stat)
                if self.policy.replace && target::directory_differs(stat, entry.mode, owner) =>
            {
                Ok(self.would_update(&entry.path))
            }
            Some(_) => Ok((Answer::Nothing, None)),
        }
    }

    /// A further name of entry `to`.
    fn dry_run_hard_link(
        &self,
        target: &TargetDirectory,
        path: &RelativePath,
        to: u32,
        current: Option<&Stat>,
    ) -> Planned {
        let (first, arrives) = {
            let state = lock(&self.state);
            // One that is still compared counts as whole: its answer cannot wait for the result.
            let is_kept = state.whole.contains(to) || state.open.contains_key(&to);
            let first = state.names.get(to).filter(|_| is_kept);
            (first, is_kept || state.would_arrive.contains(to))
        };
        let stays = current.is_some() && self.policy.leave;
        if !arrives && !stays {
            return Err(TransferError::ForeignLink(path.to_string().into()));
        }
        let inode = |stat: &Stat| (stat.st_dev, stat.st_ino);
        let first = first.and_then(|(path, _)| target.status(&path).ok().flatten());
        let same = current.is_some_and(|stat| {
            target.may_tell(stat) && first.as_ref().map(inode) == Some(inode(stat))
        });
        self.dry_run_link(target, path, same, current, DryRunKind::HardLink)
    }

    /// A link; `same`: it is there.
    fn dry_run_link(
        &self,
        target: &TargetDirectory,
        path: &RelativePath,
        same: bool,
        current: Option<&Stat>,
        kind: DryRunKind,
    ) -> Planned {
        if same || current.is_some() && self.policy.leave {
            return Ok(self.is_there(Fate::Unchanged));
        }
        if current.is_some() && !self.policy.replace {
            return Err(TransferError::Exists(path.to_string().into()));
        }
        self.check_directory(target, path, current)?;
        Ok(self.would_write(path, kind, None))
    }

    fn is_there<T>(&self, fate: Fate) -> (Answer, Option<T>) {
        lock(&self.state).count(fate);
        (Answer::Nothing, None)
    }

    fn would_write<T>(
        &self,
        path: &RelativePath,
        kind: DryRunKind,
        bytes: Option<u64>,
    ) -> (Answer, Option<T>) {
        self.note_would_write(path, kind, bytes);
        (Answer::All, None)
    }

    pub(super) fn note_would_write(
        &self,
        path: &RelativePath,
        kind: DryRunKind,
        bytes: Option<u64>,
    ) {
        lock(&self.state).dry_run.write(&self.sent_as(path), kind, bytes);
    }

    fn would_update<T>(&self, path: &RelativePath) -> (Answer, Option<T>) {
        lock(&self.state).dry_run.update(&self.sent_as(path));
        (Answer::Attributes, None)
    }
}
