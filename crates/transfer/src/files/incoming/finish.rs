//! The end of a file: verification, renaming, and closing.

use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;

use sweetspot_control::DryRunKind;
use sweetspot_protocol::hash_tree::PIECE_BYTES;
use sweetspot_protocol::record::FileResult;

use super::file::IncomingFile;
use super::kept::shortened;
use super::state::Fate;
use super::{Destination, IncomingFiles, exists_or};
use crate::lock::lock;
use crate::observer::FileRecord;
use crate::{Result, TransferError};

const UNKNOWN_HASH: blake3::Hash = blake3::Hash::from_bytes([0; 32]);

impl IncomingFiles {
    /// Verifies and renames a complete file. A file with holes is left to the thread that hashes holes.
    pub(super) fn finish(&self, file: &Arc<IncomingFile>) {
        if lock(&file.content).progress.hole_pieces() == 0 {
            self.finish_now(file);
        } else {
            self.holes.finish_later(Arc::clone(file));
        }
    }

    pub(super) fn finish_now(&self, file: &Arc<IncomingFile>) {
        let Some((hash, sent)) = self.hash(file) else { return };
        if sent.is_some_and(|sent| sent != hash) {
            let (sent, received) = (sent.unwrap_or(hash).to_string(), hash.to_string());
            let error = TransferError::WrongHash { sent, received };
            return self.differs(file, Some(hash), &error);
        }
        match self.put_in_place(file, &hash) {
            Ok(fate) => self.close(file, Ok((hash, fate))),
            Err(error) => self.give_up(file, &error),
        }
    }

    /// Handles received or existing content that differs from the sender's. `here` is its hash, if known.
    pub(super) fn differs(
        &self,
        file: &Arc<IncomingFile>,
        here: Option<blake3::Hash>,
        failure: impl Into<Failure>,
    ) {
        let sent = lock(&file.content).progress.hash_sent();
        match sent {
            Some(_) if self.policy.dry_run => {
                self.note_would_write(&file.path, DryRunKind::File, file.size);
                // A hash other than the sender's own tells the sender that the contents differ.
                self.close(file, Ok((here.unwrap_or(UNKNOWN_HASH), Fate::Written)));
            }
            _ if file.compare_only => {
                let path = file.path.to_string().into();
                self.give_up(file, &TransferError::Exists(path));
            }
            _ => self.give_up(file, failure),
        }
    }

    /// Gives a file with this content `hash` its attributes and its final name.
    fn put_in_place(&self, file: &IncomingFile, hash: &blake3::Hash) -> Result<Fate> {
        let failed = |error| exists_or(&file.path, error);
        let Destination::Directory { target, .. } = &self.destination else {
            io::stdout().flush().map_err(failed)?;
            return Ok(Fate::Written);
        };
        let mut content = lock(&file.content);
        if file.compare_only {
            return Ok(Fate::Unchanged);
        }
        if content.progress.pieces_came() == 0
            && content.temp_file.is_none()
            && let Some(id) = content.basis
        {
            let basis = target.open_same(&file.path, id).map_err(failed)?;
            if has_length(&basis, file.size) {
                // The content is the same, but the attributes may differ.
                let exact = self.policy.exact_attributes;
                let differences = file.status.differences(&basis, exact).map_err(failed)?;
                file.status.mend(&basis, &differences).map_err(failed)?;
                return Ok(Fate::of_attributes(!differences.is_empty()));
            }
        }
        let Some(temp_file) = self.temp_file(file, &mut content)? else {
            return Ok(Fate::Written);
        };
        content.basis = None;
        drop(content);
        if let Some(size) = file.size
            && !has_length(&temp_file.file, Some(size))
        {
            temp_file.file.set_len(size).map_err(failed)?;
        }
        file.status.give(&temp_file.file).map_err(failed)?;
        let large = file.is_large();
        if large {
            // Sync the content before the rename, so that a power failure never leaves a name without content.
            temp_file.file.sync_all().map_err(failed)?;
        }
        if large || file.sparse {
            self.settle_room(&mut lock(&file.content), 0);
        }
        let finished = self.replacing(target, &file.path, || {
            target.finish(&temp_file, &file.path, self.policy.replace, || *hash)
        });
        if !finished.map_err(failed)? {
            return Ok(Fate::Unchanged);
        }
        lock(&file.content).room = 0;
        if large {
            target.sync_parent(&file.path).map_err(failed)?;
        } else {
            lock(&self.state).small_files.add(&file.path);
        }
        Ok(Fate::Written)
    }

    pub(super) fn give_up(&self, file: &Arc<IncomingFile>, failure: impl Into<Failure>) {
        self.close(file, Err(failure.into()));
    }

    pub(super) fn close(
        &self,
        file: &Arc<IncomingFile>,
        outcome: Result<(blake3::Hash, Fate), Failure>,
    ) {
        let room = {
            let mut content = lock(&file.content);
            content.closed = true;
            self.holes.forget(&mut content);
            // A partial file kept for a resume keeps its quota, including writes in progress.
            let stays = content.temp_file.as_ref().is_some_and(|temp_file| temp_file.is_of_use());
            if stays {
                let writing = u64::from(content.writing) * PIECE_BYTES;
                self.settle_room(&mut content, writing);
            }
            content.close();
            content.basis = None;
            self.release_promised(&mut content, u64::MAX);
            let room = std::mem::take(&mut content.room);
            if stays { 0 } else { room }
        };
        let mut state = lock(&self.state);
        if state.open.remove(&file.number).is_none() {
            return;
        }
        state.open_bytes -= file.weight();
        self.release_room(room);
        let done = |(hash, fate): &(blake3::Hash, Fate)| {
            (*hash, *fate == Fate::Written && !self.policy.dry_run)
        };
        let logged = outcome.as_ref().map(done).map_err(|failure| &*failure.here);
        self.log(file, logged);
        match &outcome {
            // A dry run does not write it.
            Ok((_, Fate::Written)) if self.policy.dry_run => {}
            Ok((hash, fate)) => {
                state.whole.insert(file.number);
                state.count(*fate);
                state.hash = Some(*hash);
            }
            Err(failure) => {
                state.given_up.insert(file.number);
                state.failures.add(self.failure_line(&file.path.to_string(), &failure.here));
            }
        }
        let outcome = outcome
            .map(|(hash, _)| *hash.as_bytes())
            .map_err(|failure| shortened(failure.for_sender).into());
        state.results.push(FileResult { entry: file.number, outcome });
        if state.open.is_empty() {
            self.idle.notify_all();
        }
    }

    pub(super) fn log(&self, file: &IncomingFile, outcome: Result<(blake3::Hash, bool), &str>) {
        if let Some(log) = &self.bounds.log {
            log.file(&FileRecord::new(&file.path, file.size, outcome));
        }
    }
}

/// The reason why a file cannot be received.
pub(super) struct Failure {
    /// The message for this end.
    here: String,
    /// The message for the sender, without paths and system errors of this host.
    for_sender: String,
}

impl From<&TransferError> for Failure {
    fn from(error: &TransferError) -> Failure {
        Failure { here: error.to_string(), for_sender: error.for_peer() }
    }
}

impl From<&str> for Failure {
    fn from(reason: &str) -> Failure {
        Failure { here: reason.to_owned(), for_sender: reason.to_owned() }
    }
}

fn has_length(file: &File, size: Option<u64>) -> bool {
    size.is_some_and(|size| file.metadata().is_ok_and(|metadata| metadata.len() == size))
}
