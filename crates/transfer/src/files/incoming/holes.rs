//! Holes: a few bytes of a record may represent terabytes of zeros, which take time to hash. One thread hashes them while
//! the others continue to read, and it stops when the transfer ends.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};

use crossbeam_channel::{Receiver, Sender};
use rustix::fs::FallocateFlags;
use sweetspot_protocol::hash_tree::{self, PIECE_BYTES};
use sweetspot_protocol::{ProtocolError, ZeroTree};

use super::file::{Content, IncomingFile};
use super::{Destination, IncomingFiles};
use crate::files::source::next_data;
use crate::files::target;
use crate::limits::{FREE_HOLE_PIECES, HOLES_PER_PIECE, MAX_HOLE_RUNS, MAX_WAITING_HOLES};
use crate::lock::lock;
use crate::{Result, TransferError};

/// Hashes of zeros, shared by all transfers of this process, so that each subtree is hashed only once.
static ZEROS: LazyLock<ZeroTree> = LazyLock::new(ZeroTree::default);

/// Length of one write of zeros, where a hole cannot be punched, bytes.
const ZERO_BYTES: usize = 64 << 10;

enum HoleJob {
    /// Hash a run of holes before its file is complete: first piece, number of pieces.
    Hash(u32, u32),
    Finish(Arc<IncomingFile>),
    /// No more jobs.
    End,
}

/// Queue and costs of the thread that hashes holes.
pub(super) struct HoleWork {
    jobs: Sender<HoleJob>,
    queued_jobs: Receiver<HoleJob>,
    runs: AtomicUsize,
    /// Hole pieces hashed early, and hole pieces of complete files.
    early: AtomicU64,
    finished: AtomicU64,
}

impl Default for HoleWork {
    fn default() -> HoleWork {
        let (jobs, queued_jobs) = crossbeam_channel::unbounded();
        let (runs, early, finished) = Default::default();
        HoleWork { jobs, queued_jobs, runs, early, finished }
    }
}

impl HoleWork {
    /// Leaves a complete file to the thread. At most all open files are queued.
    pub fn finish_later(&self, file: Arc<IncomingFile>) {
        // `self` keeps a receiver, so the channel is never disconnected.
        let _ = self.jobs.send(HoleJob::Finish(file));
    }

    /// Ends [`IncomingFiles::hash_holes`].
    pub fn end(&self) {
        let _ = self.jobs.send(HoleJob::End);
    }

    /// Updates the number of runs of holes for a file. Returns false if all files together have too many.
    fn count_runs(&self, content: &mut Content) -> bool {
        let (before, now) = (content.hole_runs, content.progress.hole_runs());
        content.hole_runs = now;
        let all = self.runs.fetch_add(now, Ordering::AcqRel) + now;
        self.runs.fetch_sub(before, Ordering::AcqRel);
        all - before <= MAX_HOLE_RUNS
    }

    /// Removes a closed file's runs of holes from the count.
    pub fn forget(&self, content: &mut Content) {
        self.runs.fetch_sub(std::mem::take(&mut content.hole_runs), Ordering::AcqRel);
    }
}

impl IncomingFiles {
    /// Hashes holes, and finishes files with holes, until the transfer ends.
    pub fn hash_holes(&self) -> Result<()> {
        while self.holes.queued_jobs.recv().is_ok_and(|job| self.do_hole_job(job)) {}
        Ok(())
    }

    /// Runs a job. Returns false if it was the last one.
    fn do_hole_job(&self, job: HoleJob) -> bool {
        match job {
            HoleJob::Hash(first, pieces) => self.hash_early(first, pieces),
            HoleJob::Finish(file) => self.finish_now(&file),
            HoleJob::End => return false,
        }
        true
    }

    /// Runs the queued jobs.
    #[cfg(test)]
    pub fn hash_waiting_holes(&self) {
        while self.holes.queued_jobs.try_recv().is_ok_and(|job| self.do_hole_job(job)) {}
    }

    /// Number of hole pieces that this transfer may cause to be hashed.
    fn allowed_holes(&self) -> u64 {
        let content = lock(&self.state).content.get();
        FREE_HOLE_PIECES + hash_tree::pieces(content) * HOLES_PER_PIECE
    }

    /// Hashes the subtrees that make up a run, so that they are ready for the file's hash.
    fn hash_early(&self, first: u32, pieces: u32) {
        let early = self.holes.early.fetch_add(pieces.into(), Ordering::AcqRel);
        if early + u64::from(pieces) > self.allowed_holes() {
            return;
        }
        let (mut at, end) = (first, first + pieces);
        while at < end {
            let level = at.trailing_zeros().min((end - at).ilog2());
            if ZEROS.subtree(at, level, &|| !self.is_over()).is_none() {
                return;
            }
            at += 1 << level;
        }
    }

    /// The hash of a complete file, and the sender's. `None` if it cannot be computed; the file then fails, unless the
    /// transfer is over.
    pub(super) fn hash(
        &self,
        file: &Arc<IncomingFile>,
    ) -> Option<(blake3::Hash, Option<blake3::Hash>)> {
        // Taken out, so that no thread waits for the lock meanwhile.
        let empty = sweetspot_protocol::FileProgress::new(file.size);
        let progress = std::mem::replace(&mut lock(&file.content).progress, empty);
        let holes = u64::from(progress.hole_pieces());
        let finished = self.holes.finished.fetch_add(holes, Ordering::AcqRel) + holes;
        let may = holes == 0 || finished <= self.allowed_holes();
        let hash = if may { progress.hash(&ZEROS, &|| !self.is_over()) } else { None };
        let (sent, is_whole) = (progress.hash_sent(), progress.is_whole());
        lock(&file.content).progress = progress;
        match hash {
            Some(hash) => return Some((hash, sent)),
            None if self.is_over() => {}
            None if !is_whole => {
                self.differs(file, None, "pieces of it are missing; send it again")
            }
            None => {
                let reason = "its holes exceed the limit of one transfer; send it by itself, or \
                    in an archive";
                self.give_up(file, reason);
            }
        }
        None
    }

    pub(super) fn take_holes(&self, entry: u32, first: u32, pieces: u32) -> Result<()> {
        let Some(file) = self.file(entry)? else { return Ok(()) };
        let Some(size) = file.size else { return Err(ProtocolError::NoEntry(entry).into()) };
        let queued_jobs = {
            let mut content = lock(&file.content);
            if content.closed {
                return Ok(());
            }
            if content.finishing {
                let what = "after the end of its file";
                return Err(ProtocolError::Piece { piece: first, what }.into());
            }
            if matches!(self.destination, Destination::Output)
                && first != content.progress.pieces_came()
            {
                let what = "out of order, which standard output cannot take";
                return Err(ProtocolError::Piece { piece: first, what }.into());
            }
            content.progress.handle_holes(first, pieces)?;
            if self.holes.count_runs(&mut content) {
                self.make_holes(&file, &mut content, first, pieces)
            } else {
                let path = file.path.to_string().into();
                let reason = "it has too many holes; send it in an archive";
                Err(TransferError::TooMuch { path, reason })
            }
        };
        if let Err(error) = queued_jobs {
            self.give_up(&file, &error);
            return Ok(());
        }
        // The last piece may be short; it is hashed with its file.
        let whole = pieces.min((size / PIECE_BYTES).saturating_sub(first.into()) as u32);
        if self.holes.jobs.len() < MAX_WAITING_HOLES {
            let _ = self.holes.jobs.send(HoleJob::Hash(first, whole));
        }
        if file.becomes_complete(&mut lock(&file.content)) {
            self.finish(&file);
        }
        Ok(())
    }

    /// Makes these holes of the file read as zeros.
    fn make_holes(
        &self,
        file: &IncomingFile,
        content: &mut Content,
        first: u32,
        pieces: u32,
    ) -> Result<()> {
        let from = u64::from(first) * PIECE_BYTES;
        let to = (from + u64::from(pieces) * PIECE_BYTES).min(file.size.unwrap_or(0));
        let go_on = || !self.is_over();
        let resumed = content.exists();
        let made = match self.temp_file(file, content)? {
            Some(temp_file) if resumed => clear(&temp_file.file, from, to, &go_on),
            Some(_) => Ok(()),
            None => write_zeros(&mut io::stdout(), to - from, &go_on),
        };
        made.map_err(|error| target::failed(&file.path, error))
    }
}

fn write_zeros(output: &mut impl Write, length: u64, go_on: &dyn Fn() -> bool) -> io::Result<()> {
    let zeros = vec![0; ZERO_BYTES];
    let mut left = length;
    while left > 0 && go_on() {
        let n = left.min(ZERO_BYTES as u64);
        output.write_all(&zeros[..n as usize])?;
        left -= n;
    }
    Ok(())
}

/// Makes a range of a file read as zeros.
fn clear(file: &File, from: u64, to: u64, go_on: &dyn Fn() -> bool) -> io::Result<()> {
    let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    if from >= to || rustix::fs::fallocate(file, punch, from, to - from).is_ok() {
        return Ok(());
    }
    // Nothing beyond the end or in existing holes needs to be written.
    let end = to.min(file.metadata()?.len());
    let zeros = vec![0; ZERO_BYTES];
    let mut at = next_data(file, from, end);
    while at < end && go_on() {
        let n = (end - at).min(ZERO_BYTES as u64);
        file.write_all_at(&zeros[..n as usize], at)?;
        at = next_data(file, at + n, end);
    }
    Ok(())
}
