//! The receiver's answers, hashes and results.

use crossbeam_channel::Sender;
use sweetspot_control::DryRunKind;
use sweetspot_protocol::hash_tree::{PieceHash, pieces};
use sweetspot_protocol::record::{Answer, FileResult};
use sweetspot_protocol::{PeerText, ProtocolError};
use sweetspot_units::Bytes;

use super::{FileRequest, OutgoingFiles, OutgoingState, Sent, Stage, Unanswered};
use crate::files::arriving_hashes::ArrivingHashes;
use crate::files::source::SourceFile;
use crate::limits::MAX_UNCONFIRMED;
use crate::lock::lock;
use crate::{Result, TransferError};

/// Small files are given to a reader in batches, limited in number and bytes.
const BATCH_FILES: usize = 64;
const BATCH_BYTES: u64 = 1 << 20;

impl OutgoingFiles {
    /// Handles the receiver's answers to the next entries, and sends its requests to `requests`.
    pub fn answered(
        &self,
        answers: Vec<Answer>,
        requests: &Sender<Vec<FileRequest>>,
    ) -> Result<()> {
        let mut state = lock(&self.state);
        // Hashes follow the answer that announced them, so no more will arrive for earlier entries.
        state.arriving = None;
        let (mut batch, mut bytes) = (Vec::new(), 0);
        for answer in answers {
            let Some(request) = self.requested(&mut state, answer)? else { continue };
            bytes += request.file.size().unwrap_or(BATCH_BYTES);
            batch.push(request);
            if batch.len() >= BATCH_FILES || bytes >= BATCH_BYTES {
                let _ = requests.send(std::mem::take(&mut batch));
                bytes = 0;
            }
        }
        if !batch.is_empty() {
            let _ = requests.send(batch);
        }
        self.changed.notify_all();
        Ok(())
    }

    /// The content requested in the answer to the next entry.
    fn requested(&self, state: &mut OutgoingState, answer: Answer) -> Result<Option<FileRequest>> {
        let entry = state.next_answer;
        let unanswered = state.unanswered.pop_front();
        let Unanswered { file, is_file, name } = unanswered.ok_or(ProtocolError::NoEntry(entry))?;
        state.next_answer += 1;
        let early = state.early.remove(&entry).filter(|_| answer == Answer::All);
        if self.dry_run && matches!(answer, Answer::All | Answer::Attributes) {
            let (path, kind, size) = match (&file, name) {
                (Some(file), _) => (file.path().clone(), DryRunKind::File, file.size()),
                (None, Some((path, kind))) => (path, kind, None),
                (None, None) => return Err(ProtocolError::NoEntry(entry).into()),
            };
            match answer {
                Answer::Attributes => state.dry_run.update(&path),
                _ => state.dry_run.write(&path, kind, size),
            }
            state.unresolved -= 1;
            return Ok(None);
        }
        let (announced, compare_only) = match &answer {
            Answer::Nothing => {
                state.unresolved -= 1;
                state.files += u64::from(is_file);
                let length = file.as_ref().and_then(SourceFile::size).unwrap_or(0);
                state.present += Bytes::new(length);
                if let Some(file) = file.filter(|file| self.log.is_some() && file.size() == Some(0))
                {
                    state.empty.insert(entry, file.path().clone());
                }
                return Ok(None);
            }
            Answer::Refused { reason } => {
                state.unresolved -= 1;
                state.refused = true;
                state.failures.add(reason.to_string());
                return Ok(None);
            }
            Answer::All => (None, false),
            Answer::Attributes => {
                let (what, when) = ("a dry run's answer", "outside a dry run");
                return Err(ProtocolError::OutOfOrder { what, when }.into());
            }
            Answer::Different { pieces } => (Some(*pieces), false),
            Answer::Compare { pieces } => (Some(*pieces), true),
        };
        let file = file.ok_or(ProtocolError::NoEntry(entry))?;
        let known = |announced| {
            if u64::from(announced) > file.size().map_or(0, pieces) {
                let (what, when) = ("more hashes", "than a file has pieces");
                return Err(ProtocolError::OutOfOrder { what, when });
            }
            let (arriving, known) = ArrivingHashes::new(entry, announced);
            state.arriving = Some(arriving);
            Ok(known)
        };
        let hashes = announced.map(known).transpose()?;
        state.requested.insert(entry, Stage::Requested);
        let early = early.unwrap_or_default();
        Ok(Some(FileRequest { entry, file, hashes, compare_only, early }))
    }

    /// Handles hashes of the receiver's pieces of an entry. Blocks while too many are unused.
    pub fn hashes(&self, entry: u32, first: u32, hashes: Vec<PieceHash>) -> Result<()> {
        // Without the lock, which readers need to proceed.
        let arriving = lock(&self.state).arriving.take();
        let mut arriving = arriving.ok_or(ProtocolError::NoEntry(entry))?;
        arriving.handle(&self.hashes, (entry, first), hashes)?;
        lock(&self.state).arriving = Some(arriving);
        Ok(())
    }

    /// Handles the receiver's results for files.
    pub fn results(&self, results: Vec<FileResult>) -> Result<()> {
        let mut state = lock(&self.state);
        let before = state.requested.len();
        for FileResult { entry, outcome } in results {
            if u64::from(entry) >= state.listed {
                return Err(ProtocolError::NoEntry(entry).into());
            }
            let stage = state.requested.remove(&entry);
            if matches!(stage, Some(Stage::Requested | Stage::GivenUp)) {
                state.requested.insert(entry, Stage::GivenUp);
                state.arriving.iter_mut().for_each(|arriving| arriving.give_up(entry));
            }
            match (outcome, stage) {
                (Ok(received), Some(Stage::Sent(sent)))
                    if self.dry_run && sent.hash != received =>
                {
                    if let Some((path, size)) = sent.named {
                        state.dry_run.write(&path, DryRunKind::File, Some(size));
                    }
                }
                (Ok(received), Some(Stage::Sent(sent))) if sent.hash != received => {
                    let hex = |hash| blake3::Hash::from_bytes(hash).to_string();
                    let (sent, received) = (hex(sent.hash), hex(received));
                    return Err(TransferError::WrongHash { sent, received });
                }
                (Ok(hash), stage) => {
                    // Directories and links have results, too; empty files were counted with their answer.
                    state.files += u64::from(stage.is_some());
                    let empty = state.empty.remove(&entry);
                    if let Some(Stage::Sent(sent)) = stage {
                        self.log(sent, Ok(()));
                    } else if let Some(path) = empty {
                        self.log(Sent { hash, named: Some((path, 0)) }, Ok(()));
                    }
                }
                (Err(_), Some(Stage::Withheld)) => {}
                (Err(reason), stage) => {
                    state.refused = true;
                    state.failures.add(reason.to_string());
                    if let Some(Stage::Sent(sent)) = stage {
                        self.log(sent, Err(&reason.to_string()));
                    }
                }
            }
        }
        if before > MAX_UNCONFIRMED && state.requested.len() <= MAX_UNCONFIRMED {
            self.changed.notify_all();
        }
        Ok(())
    }

    /// Handles the names that the receiver deleted, or would delete in a dry run, and its failures to
    /// delete.
    pub fn deleted(&self, names: &[PeerText], failures: &[PeerText]) {
        let mut state = lock(&self.state);
        for name in names {
            state.deleted.add(name.to_string());
        }
        failures.iter().for_each(|failure| state.failures.add(failure.to_string()));
    }
}
