//! Files on their way out: what the receiver wants is read, hashed and put into frames.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, mpsc};

use crossbeam_channel::{Receiver, Sender};
use sweetspot_linux::clock;
use sweetspot_linux::event_fd::{is_readable, wait_readable};
use sweetspot_protocol::frame::{FRAME_HEADER_BYTES, PIECE_HEADER_BYTES, PieceHeader};
use sweetspot_protocol::hash_tree::{
    self, PIECE_BYTES, PieceHash, piece_hash, piece_length, pieces,
};
use sweetspot_protocol::record::{Answer, FileEnd, FileResult, Record};
use sweetspot_protocol::{FileCounts, Printable, ProtocolError};
use sweetspot_units::{Bytes, Duration};

use super::channel::{Channel, lock};
use super::failures::Failures;
use super::source::{SourceFile, next_data};
use crate::TransferError;
use crate::observer::{FileLog, FileRecord};

/// Bytes before a piece's content.
const HEADERS: usize = FRAME_HEADER_BYTES + PIECE_HEADER_BYTES;
/// Small files are collected until they make a write of this size, bytes.
const SMALL_BATCH_BYTES: usize = 128 << 10;
/// A file that changes while it is read is read again so often; then it is left as it is.
const MAX_PASSES: u32 = 4;
/// How often a reader that waits for standard input looks whether the transfer is over.
const INPUT_INTERVAL: Duration = Duration::from_millis(200);
/// Small files are handed to a reader together: no more than so many, nor than so many bytes.
const BATCH_FILES: usize = 64;
const BATCH_BYTES: u64 = 1 << 20;
/// Entries that are listed ahead of those that are done.
const MAX_AHEAD: u64 = 16 << 10;

/// All files of a transfer at its sender.
pub(crate) struct OutgoingFiles {
    /// Only what would be sent is to be found out.
    dry_run: bool,
    /// Who learns of each file.
    log: Option<Arc<dyn FileLog>>,
    state: Mutex<State>,
    changed: Condvar,
}

/// A file that was sent and not confirmed.
struct Unconfirmed {
    hash: [u8; 32],
    /// Path and length, where somebody wants to learn of it.
    logged: Option<(PathBuf, u64)>,
}

#[derive(Default)]
struct State {
    /// Listed and not answered, in order; `None` for what has no content.
    unanswered: VecDeque<Option<SourceFile>>,
    next_answer: u32,
    /// Where the receiver's hashes of a file go.
    hashes: HashMap<u32, mpsc::Sender<(u32, Vec<PieceHash>)>>,
    /// Files that the receiver gave up.
    given_up: HashSet<u32>,
    /// Hashes of what was sent and not confirmed.
    unconfirmed: HashMap<u32, Unconfirmed>,
    /// Entries that are listed and not yet answered and read.
    unresolved: u64,
    /// Buffers that are on their way to a connection.
    queued: u64,
    bytes: Bytes,
    files: u64,
    totals: Option<(u64, Bytes)>,
    failures: Failures,
    refused: bool,
    would_move: Vec<String>,
    over: bool,
}

/// A file that the receiver wants.
pub(crate) struct Want {
    entry: u32,
    file: SourceFile,
    /// The hashes of what the receiver has.
    hashes: Option<KnownHashes>,
    /// Only the hash is wanted.
    compare_only: bool,
}

/// Hashes that arrive while they are used.
struct KnownHashes {
    arriving: mpsc::Receiver<(u32, Vec<PieceHash>)>,
    pieces: u32,
    have: Vec<PieceHash>,
}

impl KnownHashes {
    /// The receiver's hash of piece number `piece`, waiting for it if need be; `None` if it has none.
    fn of(&mut self, piece: u32) -> Option<PieceHash> {
        while piece < self.pieces && self.have.len() <= piece as usize {
            let (first, hashes) = self.arriving.recv().ok()?;
            if first as usize != self.have.len() {
                return None;
            }
            self.have.extend(hashes);
        }
        self.have.get(piece as usize).copied()
    }
}

impl OutgoingFiles {
    pub fn new(dry_run: bool, log: Option<Arc<dyn FileLog>>) -> OutgoingFiles {
        OutgoingFiles { dry_run, log, state: Mutex::default(), changed: Condvar::new() }
    }

    fn unconfirmed(&self, path: &Path, size: u64, hash: [u8; 32]) -> Unconfirmed {
        let logged = self.log.as_ref().map(|_| (path.to_owned(), size));
        Unconfirmed { hash, logged }
    }

    fn log(&self, sent: Unconfirmed, outcome: Result<(), &str>) {
        if let (Some(log), Some((path, size))) = (&self.log, sent.logged) {
            let outcome = outcome.map(|()| (blake3::Hash::from_bytes(sent.hash), true));
            log.file(&FileRecord { path: &path, size: Some(Bytes::new(size)), outcome });
        }
    }

    /// What would have been sent.
    pub fn would_move(&self) -> Vec<String> {
        std::mem::take(&mut lock(&self.state).would_move)
    }

    /// Notes entries that are about to be listed, waiting while the receiver is far behind. Returns false if the
    /// transfer is over.
    pub fn listing(&self, entries: impl ExactSizeIterator<Item = Option<SourceFile>>) -> bool {
        let mut state = lock(&self.state);
        while state.unresolved > MAX_AHEAD && !state.over {
            state = wait(&self.changed, state);
        }
        state.unresolved += entries.len() as u64;
        state.unanswered.extend(entries);
        !state.over
    }

    /// The list is whole: so many files with so many bytes.
    pub fn listed(&self, files: u64, bytes: Bytes) {
        lock(&self.state).totals = Some((files, bytes));
    }

    /// The receiver answered the next entries: what it wants goes to `wants`.
    pub fn answered(
        &self,
        answers: Vec<Answer>,
        wants: &Sender<Vec<Want>>,
    ) -> Result<(), TransferError> {
        let mut state = lock(&self.state);
        let (mut batch, mut bytes) = (Vec::new(), 0);
        for answer in answers {
            let entry = state.next_answer;
            state.next_answer += 1;
            let Some(file) = state.unanswered.pop_front() else {
                return Err(ProtocolError::NoEntry(entry).into());
            };
            let known = |state: &mut State, pieces| {
                let (sender, arriving) = mpsc::channel();
                state.hashes.insert(entry, sender);
                Some(KnownHashes { arriving, pieces, have: Vec::new() })
            };
            let (hashes, compare_only) = match (answer, &file) {
                (Answer::Nothing, _) => {
                    state.unresolved -= 1;
                    state.files += u64::from(file.is_some());
                    continue;
                }
                (Answer::Refused { reason }, _) => {
                    state.unresolved -= 1;
                    state.refused = true;
                    state.failures.add(Printable(&reason).to_string());
                    continue;
                }
                (Answer::All, Some(file)) if self.dry_run => {
                    let size = file.size.map_or(String::new(), |n| format!(" ({})", Bytes::new(n)));
                    let line = format!("{}{size}", Printable(&file.path.to_string_lossy()));
                    state.would_move.push(line);
                    state.unresolved -= 1;
                    continue;
                }
                (Answer::All, Some(_)) => (None, false),
                (Answer::Different { pieces }, Some(_)) => (known(&mut state, pieces), false),
                (Answer::Compare { pieces }, Some(_)) => (known(&mut state, pieces), true),
                (_, None) => return Err(ProtocolError::NoEntry(entry).into()),
            };
            if let Some(file) = file {
                bytes += file.size.unwrap_or(BATCH_BYTES);
                batch.push(Want { entry, file, hashes, compare_only });
                if batch.len() >= BATCH_FILES || bytes >= BATCH_BYTES {
                    let _ = wants.send(std::mem::take(&mut batch));
                    bytes = 0;
                }
            }
        }
        if !batch.is_empty() {
            let _ = wants.send(batch);
        }
        self.changed.notify_all();
        Ok(())
    }

    /// Hashes of what the receiver has of an entry.
    pub fn hashes(&self, entry: u32, first: u32, hashes: Vec<PieceHash>) {
        // An entry that is done needs them no more.
        if let Some(sender) = lock(&self.state).hashes.get(&entry) {
            let _ = sender.send((first, hashes));
        }
    }

    /// What became of files at the receiver.
    pub fn results(&self, results: Vec<FileResult>) -> Result<(), TransferError> {
        let mut state = lock(&self.state);
        for FileResult { entry, outcome } in results {
            let sent = state.unconfirmed.remove(&entry);
            match outcome {
                Ok(received) => {
                    state.files += 1;
                    let Some(sent) = sent else { continue };
                    if sent.hash != received {
                        let hex = |hash| blake3::Hash::from_bytes(hash).to_string();
                        return Err(TransferError::WrongHash {
                            sent: hex(sent.hash),
                            received: hex(received),
                        });
                    }
                    self.log(sent, Ok(()));
                }
                Err(reason) => {
                    state.given_up.insert(entry);
                    state.refused = true;
                    state.failures.add(Printable(&reason).to_string());
                    if let Some(sent) = sent {
                        self.log(sent, Err(&reason));
                    }
                }
            }
        }
        Ok(())
    }

    /// Reads from `input` until `buffer` is full or the input ends. Whoever feeds it may take long: the error is
    /// `Interrupted` if the transfer ends meanwhile.
    fn fill(&self, mut input: &File, buffer: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        while filled < buffer.len() {
            while !is_readable(input.as_fd()) {
                if lock(&self.state).over {
                    return Err(io::ErrorKind::Interrupted.into());
                }
                wait_readable(&[input.as_fd()], clock::now() + INPUT_INTERVAL)?;
            }
            match input.read(&mut buffer[filled..]) {
                Ok(0) => break,
                Ok(n) => filled += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(filled)
    }

    /// Something cannot be sent, for this reason.
    pub fn left_out(&self, reason: String) {
        lock(&self.state).failures.add(reason);
    }

    /// Waits until everything that the receiver wanted was handed to the kernel. Returns false if the transfer ended
    /// early.
    pub fn wait_until_sent(&self) -> bool {
        let mut state = lock(&self.state);
        while (state.unresolved > 0 || state.queued > 0) && !state.over {
            state = wait(&self.changed, state);
        }
        !state.over
    }

    /// Ends all waiting.
    pub fn end(&self) {
        let mut state = lock(&self.state);
        state.over = true;
        state.hashes.clear();
        self.changed.notify_all();
    }

    /// Content that was handed to the kernel, or is just being, the files that are whole at the receiver, and how many there are.
    pub fn so_far(&self) -> (Bytes, u64, Option<(u64, Bytes)>) {
        let state = lock(&self.state);
        (state.bytes, state.files, state.totals)
    }

    /// A buffer with so much content is about to be written to a connection.
    pub fn writing(&self, content: Bytes) {
        lock(&self.state).bytes += content;
    }

    /// That buffer was written.
    pub fn written(&self) {
        let mut state = lock(&self.state);
        state.queued -= 1;
        if state.queued == 0 {
            self.changed.notify_all();
        }
    }

    /// The end of the transfer, by what the receiver `counts`: what was not sent, or the error if nothing was.
    pub fn conclude(&self, counts: &mut FileCounts) -> Result<Vec<String>, TransferError> {
        let state = lock(&self.state);
        if !state.unconfirmed.is_empty() {
            return Err(TransferError::Unconfirmed(state.unconfirmed.len()));
        }
        counts.failed = counts.failed.max(state.failures.count);
        match &state.failures.lines[..] {
            [reason, ..] if counts.written + counts.unchanged == 0 => Err(if state.refused {
                TransferError::Refused(reason.clone())
            } else {
                TransferError::NothingMoved(reason.clone())
            }),
            failures => Ok(failures.to_vec()),
        }
    }

    /// Whether nothing more of a file is wanted.
    pub fn is_given_up(&self, entry: u32) -> bool {
        let state = lock(&self.state);
        state.over || state.given_up.contains(&entry)
    }

    fn resolved(&self, entry: u32) {
        let mut state = lock(&self.state);
        state.unresolved -= 1;
        state.hashes.remove(&entry);
        // Waking those that wait takes a system call: only where what they wait for has come.
        if state.unresolved == 0 || state.unresolved == MAX_AHEAD {
            self.changed.notify_all();
        }
    }
}

fn wait<'a>(
    changed: &Condvar,
    state: std::sync::MutexGuard<'a, State>,
) -> std::sync::MutexGuard<'a, State> {
    changed.wait(state).unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Frames with so many bytes of content, ready for any connection.
pub(crate) struct Frames {
    pub bytes: Vec<u8>,
    pub content: Bytes,
    /// The file that all of it belongs to, if it is of one.
    pub entry: Option<u32>,
}

/// A thread that reads and hashes what is wanted.
pub(crate) struct FileReader<'a> {
    pub files: &'a OutgoingFiles,
    pub channel: &'a Channel,
    pub out: Sender<Frames>,
    pub spent: Receiver<Vec<u8>>,
    pub small: Vec<u8>,
    pub small_content: u64,
}

impl FileReader<'_> {
    /// Reads what `wants` bring, until there are no more.
    pub fn run(&mut self, wants: &Receiver<Vec<Want>>) -> Result<(), TransferError> {
        loop {
            let batch = match wants.try_recv() {
                Ok(batch) => batch,
                // Nothing waits: what was collected goes out.
                Err(_) => {
                    self.flush()?;
                    let Ok(batch) = wants.recv() else { return Ok(()) };
                    batch
                }
            };
            for want in batch {
                let entry = want.entry;
                if let Err(reason) = self.deliver(want)?
                    && !self.files.is_given_up(entry)
                {
                    self.files.left_out(reason.clone());
                    self.channel.tell(&Record::Gone { entry, reason })?;
                }
                self.files.resolved(entry);
            }
        }
    }

    /// Sends what is wanted of a file. The inner error is why the file cannot be sent.
    fn deliver(&mut self, want: Want) -> Result<Result<(), String>, TransferError> {
        let shown = want.file.path.display().to_string();
        let Some(size) = want.file.size else { return self.deliver_stream(want.entry) };
        let file = match want.file.open() {
            Ok(file) => file,
            Err(error) => return Ok(Err(format!("{shown}: {error}"))),
        };
        if want.hashes.is_none() && pieces(size) == 1 {
            return self.deliver_small(want.entry, &want.file, &file, size);
        }
        self.deliver_pieces(want, &file, size)
    }

    /// A file of one piece that is wanted whole: its piece tells that it is whole.
    fn deliver_small(
        &mut self,
        entry: u32,
        source: &SourceFile,
        file: &File,
        size: u64,
    ) -> Result<Result<(), String>, TransferError> {
        let at = self.small.len();
        self.small.resize(at + HEADERS + size as usize, 0);
        for _ in 0..MAX_PASSES {
            let content = &mut self.small[at + HEADERS..];
            if let Err(error) = file.read_exact_at(content, 0) {
                self.small.truncate(at);
                return Ok(Err(changed(source, &error)));
            }
            if source.is_unchanged(file).unwrap_or(false) {
                break;
            }
        }
        let hash = piece_hash(0, true, &self.small[at + HEADERS..]);
        let header = PieceHeader { entry, piece: 0, hash, length: size as u32 };
        self.small[at..at + HEADERS].copy_from_slice(&header.to_bytes());
        self.small_content += size;
        {
            let mut state = lock(&self.files.state);
            state.unconfirmed.insert(entry, self.files.unconfirmed(&source.path, size, hash));
            // What is collected is on its way already: the end must not overtake it.
            state.queued += u64::from(at == 0);
        }
        if self.small.len() >= SMALL_BATCH_BYTES {
            self.flush()?;
        }
        Ok(Ok(()))
    }

    fn deliver_pieces(
        &mut self,
        mut want: Want,
        file: &File,
        size: u64,
    ) -> Result<Result<(), String>, TransferError> {
        let (entry, count) = (want.entry, pieces(size) as u32);
        let mut hashes: Vec<PieceHash> = Vec::with_capacity(count as usize);
        let mut pieces_sent = 0;
        for pass in 0..MAX_PASSES {
            let mut run = HoleRun { first: 0, pieces: 0 };
            let (mut data, mut any_sent) = (0, false);
            for piece in 0..count {
                if self.files.is_given_up(entry) {
                    return Ok(Err("given up".into()));
                }
                let (offset, length) =
                    (u64::from(piece) * PIECE_BYTES, piece_length(size, piece) as usize);
                if want.file.sparse && data <= offset {
                    data = next_data(file, offset, size);
                }
                let is_hole = want.file.sparse && data >= offset + length as u64;
                let mut buffer = self.spent.try_recv().unwrap_or_default();
                // What was in it is written over.
                buffer.resize(HEADERS + length, 0);
                if is_hole {
                    buffer[HEADERS..].fill(0);
                } else if let Err(error) = file.read_exact_at(&mut buffer[HEADERS..], offset) {
                    return Ok(Err(changed(&want.file, &error)));
                }
                let hash = piece_hash(piece, count == 1, &buffer[HEADERS..]);
                let known = match pass {
                    0 => {
                        hashes.push(hash);
                        want.hashes.as_mut().and_then(|hashes| hashes.of(piece))
                    }
                    _ => Some(std::mem::replace(&mut hashes[piece as usize], hash)),
                };
                if known == Some(hash) || want.compare_only {
                    continue;
                }
                any_sent = true;
                pieces_sent += 1;
                if is_hole {
                    if !run.add(piece) {
                        run.tell(entry, self.channel)?;
                        run = HoleRun { first: piece, pieces: 1 };
                    }
                    continue;
                }
                let header = PieceHeader { entry, piece, hash, length: length as u32 };
                buffer[..HEADERS].copy_from_slice(&header.to_bytes());
                self.push(buffer, entry, length as u64)?;
            }
            run.tell(entry, self.channel)?;
            if want.file.is_unchanged(file).unwrap_or(false) || pass > 0 && !any_sent {
                let hash = *hash_tree::root(&hashes).as_bytes();
                let end = FileEnd { entry, size, pieces_sent, hash };
                return self.end(end, &want.file.path);
            }
        }
        Ok(Err(format!(
            "{} kept changing while it was being sent; send it again once it is at rest",
            want.file.path.display()
        )))
    }

    /// Standard input: pieces in order, until it ends.
    fn deliver_stream(&mut self, entry: u32) -> Result<Result<(), String>, TransferError> {
        let failed = |error: io::Error| Ok(Err(format!("standard input: {error}")));
        let input = match io::stdin().as_fd().try_clone_to_owned() {
            Ok(input) => File::from(input),
            Err(error) => return failed(error),
        };
        let files = self.files;
        let read = |buffer: &mut Vec<u8>| -> io::Result<usize> {
            buffer.resize(HEADERS + PIECE_BYTES as usize, 0);
            let length = files.fill(&input, &mut buffer[HEADERS..])?;
            buffer.truncate(HEADERS + length);
            Ok(length)
        };
        let (mut hashes, mut size, mut next) = (Vec::new(), 0, Vec::new());
        let mut length = match read(&mut next) {
            Ok(length) => length,
            Err(error) => return failed(error),
        };
        while length > 0 {
            if self.files.is_given_up(entry) {
                return Ok(Err("given up".into()));
            }
            // One ahead, because the hash of an only piece is another.
            let mut buffer = std::mem::take(&mut next);
            let following = match read(&mut next) {
                Ok(following) => following,
                Err(error) => return failed(error),
            };
            let piece = hashes.len() as u32;
            let only = piece == 0 && following == 0;
            let hash = piece_hash(piece, only, &buffer[HEADERS..]);
            let header = PieceHeader { entry, piece, hash, length: length as u32 };
            buffer[..HEADERS].copy_from_slice(&header.to_bytes());
            hashes.push(hash);
            size += length as u64;
            self.push(buffer, entry, length as u64)?;
            length = following;
        }
        let (pieces_sent, hash) = (hashes.len() as u32, *hash_tree::root(&hashes).as_bytes());
        self.end(FileEnd { entry, size, pieces_sent, hash }, Path::new("-"))
    }

    fn end(&mut self, end: FileEnd, path: &Path) -> Result<Result<(), String>, TransferError> {
        let sent = self.files.unconfirmed(path, end.size, end.hash);
        {
            let mut state = lock(&self.files.state);
            // The receiver may have given it up already, and says nothing more of it.
            if !state.given_up.contains(&end.entry) {
                state.unconfirmed.insert(end.entry, sent);
            }
        }
        self.channel.tell(&Record::Ends(vec![end]))?;
        Ok(Ok(()))
    }

    fn flush(&mut self) -> Result<(), TransferError> {
        if self.small.is_empty() {
            return Ok(());
        }
        let room = self.spent.try_recv().unwrap_or_default();
        let mut full = std::mem::replace(&mut self.small, room);
        self.small.clear();
        full.shrink_to(SMALL_BATCH_BYTES * 4);
        let content = std::mem::take(&mut self.small_content);
        self.hand_over(full, None, content)
    }

    fn push(&mut self, bytes: Vec<u8>, entry: u32, content: u64) -> Result<(), TransferError> {
        lock(&self.files.state).queued += 1;
        self.hand_over(bytes, Some(entry), content)
    }

    fn hand_over(
        &mut self,
        bytes: Vec<u8>,
        entry: Option<u32>,
        content: u64,
    ) -> Result<(), TransferError> {
        let frames = Frames { bytes, content: Bytes::new(content), entry };
        self.out.send(frames).map_err(|_| TransferError::Interrupted)
    }
}

/// Neighbouring pieces that are holes.
struct HoleRun {
    first: u32,
    pieces: u32,
}

impl HoleRun {
    /// Adds a piece if it is the next; returns whether it was.
    fn add(&mut self, piece: u32) -> bool {
        if self.pieces == 0 {
            self.first = piece;
        }
        let next = self.first + self.pieces == piece;
        self.pieces += u32::from(next);
        next
    }

    fn tell(&self, entry: u32, channel: &Channel) -> Result<(), TransferError> {
        match self.pieces {
            0 => Ok(()),
            pieces => channel.tell(&Record::Holes { entry, first: self.first, pieces }),
        }
    }
}

fn changed(source: &SourceFile, error: &io::Error) -> String {
    let shown = source.path.display();
    match error.kind() {
        io::ErrorKind::UnexpectedEof => {
            format!("{shown} shrank while it was being sent; send it again once it is at rest")
        }
        _ => format!("{shown}: {error}"),
    }
}
