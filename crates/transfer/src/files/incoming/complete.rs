//! The end of a transfer at its receiver: creates hard links, finishes directories, and syncs everything to disk.

use sweetspot_protocol::record::FileResult;
use sweetspot_protocol::{DirectoryStatus, ProtocolError, RelativePath};

use super::kept::{LateDirectory, shortened};
use super::name_list::Announced;
use super::state::{Fate, SmallFiles};
use super::{Destination, IncomingFiles};
use crate::error::system;
use crate::files::quota::room_of;
use crate::files::target::{self, TargetDirectory};
use crate::lock::lock;
use crate::{Result, TransferError};

impl IncomingFiles {
    /// Completes the transfer: hard links, deletion, modes and times of directories, and the final sync.
    pub fn complete(&self) -> Result<()> {
        let Destination::Directory { target, .. } = &self.destination else { return Ok(()) };
        let (links, mut directories, listed, small, found) = {
            let mut state = lock(&self.state);
            let alone = state.planned == 1;
            (
                std::mem::take(&mut state.hard_links),
                std::mem::take(&mut state.directories),
                (std::mem::take(&mut state.names), std::mem::take(&mut state.whole)),
                std::mem::take(&mut state.small_files).filter(alone),
                state.counts.unchanged + state.counts.updated > 0 && !self.policy.dry_run,
            )
        };
        let (names, whole) = listed;
        for (number, to) in links {
            let Some((path, _)) = names.get(number).filter(|_| !self.is_over()) else { break };
            let made = match names.get(to) {
                _ if self.policy.leave
                    && target.status(&path).is_ok_and(|current| current.is_some()) =>
                {
                    Ok(false)
                }
                Some((from, Some(announced))) if whole.contains(to) => {
                    self.make_hard_link(target, &from, announced, &path)
                }
                Some(_) => Err(TransferError::ForeignLink(path.to_string().into())),
                None => Err(ProtocolError::NoEntry(to).into()),
            };
            if !matches!(made, Ok(true)) {
                self.release_room(room_of(0));
            }
            match made {
                Ok(new) => lock(&self.state).count(Fate::of_link(new)),
                Err(error) => self.note_late_failure(number, &path, &error),
            }
        }
        self.prune(target);
        // Deepest first, because changes in a directory change its time.
        directories.sort_by_key(|directory| std::cmp::Reverse(directory.depth));
        for LateDirectory { number, mode, modified, owner, new, .. } in directories {
            let Some((path, _)) = names.get(number).filter(|_| !self.is_over()) else { break };
            match target.finish_directory(Some(&path), mode, modified, owner) {
                Ok(true) if !new => lock(&self.state).count(Fate::Updated),
                Ok(_) => {}
                Err(error) => {
                    self.note_late_failure(number, &path, &target::failed(&path, error));
                }
            }
        }
        self.finish_top(target);
        // An earlier transfer may have failed to sync a file that now counts as unchanged.
        let synced = match small {
            // A sync of the whole file system may take long if other programs write, too.
            SmallFiles::One(path) if !found && !target.was_made(None).unwrap_or(true) => {
                target.sync_file(&path)
            }
            SmallFiles::None if !found => Ok(()),
            _ => target.sync(),
        };
        synced.map_err(TransferError::system("writing to disk"))
    }

    /// Notes the failure of an entry that was already answered. The result informs the sender.
    fn note_late_failure(&self, entry: u32, path: &RelativePath, error: &TransferError) {
        self.note_failure(&path.to_string(), &error.to_string());
        let outcome = Err(shortened(error.for_peer()).into());
        lock(&self.state).results.push(FileResult { entry, outcome });
    }

    /// Gives the target directory the sender's time. If a transfer of this process created the directory, it also gets the
    /// mode and owner; an existing directory keeps those, because it may be a home directory.
    fn finish_top(&self, target: &TargetDirectory) {
        let Some(status) = self.top_status.as_ref().filter(|_| !self.is_over()) else { return };
        let DirectoryStatus { mode, modified, owner } = status;
        if target.was_made(None).unwrap_or(false) {
            let owner = owner.as_ref().filter(|_| self.policy.owners);
            let owner = owner.map(|owner| self.accounts.numbers(owner));
            if let Err(error) = target.finish_directory(None, *mode, *modified, owner) {
                self.note_failure(".", &system(&error));
            }
        } else if self.policy.replace {
            // Only the directory's owner may set it, and the files are complete regardless.
            let _ = target.set_time(*modified);
        }
    }

    /// Creates a hard link to a file that this transfer wrote, or that existed as announced.
    fn make_hard_link(
        &self,
        target: &TargetDirectory,
        from: &RelativePath,
        announced: Announced,
        path: &RelativePath,
    ) -> Result<bool> {
        let foreign = || TransferError::ForeignLink(path.to_string().into());
        let found = target.named_file(from).map_err(|_| foreign())?;
        // Another peer may have replaced the file meanwhile.
        let stat = &found.1;
        // Some file systems do not keep nanoseconds.
        let as_announced = announced.size.is_none_or(|size| size == stat.st_size as u64)
            && announced.modified == stat.st_mtime;
        if !as_announced || !target.may_tell(stat) {
            return Err(foreign());
        }
        self.replacing(target, path, || target.make_hard_link(&found, path, self.policy.replace))
            .or_else(|error| self.left_alone(error))
            .map_err(|error| self.exists_or(target, path, error))
    }
}
