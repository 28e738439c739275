//! The threads that read and hash requested content, and frame it.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;

use crossbeam_channel::{Receiver, Sender};
use sweetspot_linux::clock;
use sweetspot_linux::event_fd::{is_readable, wait_readable};
use sweetspot_protocol::frame::{FRAME_HEADER_BYTES, PIECE_HEADER_BYTES, PieceHeader};
use sweetspot_protocol::hash_tree::{
    PIECE_BYTES, PieceHash, RootBuilder, piece_hash, piece_length, pieces,
};
use sweetspot_protocol::record::{FileEnd, Record};
use sweetspot_units::{Bytes, Duration};

use crate::files::outgoing::{FileRequest, OutgoingFiles};
use crate::files::packing::{Packer, WAITING_PIECES};
use crate::files::source::{Snapshot, SourceFile, Undelivered, next_data};
use crate::limits::MAX_KEPT_HASHES;
use crate::wire::channel::Channel;
use crate::{Result, TransferError};

/// Bytes in front of a piece's content.
const HEADERS: usize = FRAME_HEADER_BYTES + PIECE_HEADER_BYTES;
/// Small files are collected into writes of this size, bytes.
const SMALL_BATCH_BYTES: usize = 128 << 10;
/// Maximum number of times a changing file is read. After that it is not sent.
const MAX_PASSES: u32 = 4;
/// Interval at which a reader waiting for standard input checks whether the transfer is over.
const INPUT_INTERVAL: Duration = Duration::from_millis(200);
/// Interval at which a reader checks whether the connections' rate is known.
const RATE_INTERVAL: Duration = Duration::from_micros(200);

/// The outer error ends the transfer; the inner one is the reason why this file is not sent.
type Delivered = Result<Result<(), Undelivered>>;

/// Frames with content, ready for any connection.
pub(crate) struct Frames {
    pub bytes: Vec<u8>,
    pub content: Bytes,
    /// The only file in these frames; `None` if there are several.
    pub entry: Option<u32>,
}

/// A thread that reads and hashes requested content.
pub(crate) struct FileReader<'a> {
    pub files: &'a OutgoingFiles,
    pub channel: &'a Channel,
    pub out: Sender<Frames>,
    pub spent: Receiver<Vec<u8>>,
    /// `None` if compression is off or unavailable.
    pub packer: Option<Packer>,
    pub small: Vec<u8>,
    pub small_content: u64,
}

/// A file of several pieces that is being read.
struct Reading<'a> {
    file: &'a File,
    size: u64,
    count: u32,
    /// Hashes of the previous pass; empty if the file has too many pieces to keep them.
    earlier: Vec<PieceHash>,
    pieces_sent: u32,
}

struct Pass {
    hash: blake3::Hash,
    /// Whether any piece differs from the previous pass.
    differs: bool,
}

impl FileReader<'_> {
    /// Reads the files in `requests`, until there are no more.
    pub fn run(&mut self, requests: &Receiver<Vec<FileRequest>>) -> Result<()> {
        loop {
            let batch = match requests.try_recv() {
                Ok(batch) => batch,
                // No request is pending, so the collected frames are sent.
                Err(_) => {
                    self.flush()?;
                    let Ok(batch) = requests.recv() else { return Ok(()) };
                    batch
                }
            };
            for mut request in batch {
                let entry = request.entry;
                if let Err(why) = self.deliver(&mut request)?
                    && !self.files.is_given_up(entry)
                {
                    self.files.withhold(entry, &request.file, &why);
                    self.channel
                        .send_record(&Record::Gone { entry, reason: why.for_peer().into() })?;
                }
                self.files.resolved(entry);
            }
        }
    }

    fn deliver(&mut self, request: &mut FileRequest) -> Delivered {
        let Some(listed) = request.file.listed else { return self.deliver_stream(request) };
        let file = match request.file.open() {
            Ok(file) => file,
            Err(why) => return Ok(Err(why)),
        };
        if request.hashes.is_none() && pieces(listed.size) == 1 {
            return self.deliver_small(request, &file, &listed);
        }
        self.deliver_pieces(request, &file, &listed)
    }

    /// Sends a file of one piece that is requested whole. It needs no record of its end.
    fn deliver_small(
        &mut self,
        request: &FileRequest,
        file: &File,
        listed: &Snapshot,
    ) -> Delivered {
        if !request.early.is_empty() {
            let mut content = vec![0; listed.size as usize];
            if let Err(why) = read_whole(self.files, &request.file, file, &mut content, listed) {
                return Ok(Err(why));
            }
            let hash = piece_hash(0, true, &content);
            self.files.sent(request.entry, &request.file, listed.size, hash);
            return self.follow(request, hash, &content).map(Ok);
        }
        let (at, size) = (self.small.len(), listed.size);
        self.small.resize(at + HEADERS + size as usize, 0);
        let content = &mut self.small[at + HEADERS..];
        if let Err(why) = read_whole(self.files, &request.file, file, content, listed) {
            self.small.truncate(at);
            return Ok(Err(why));
        }
        let hash = piece_hash(0, true, &self.small[at + HEADERS..]);
        let header = PieceHeader { entry: request.entry, piece: 0, hash, length: size as u32 };
        let mut small = std::mem::take(&mut self.small);
        self.frame(&header, &mut small, at);
        self.small = small;
        self.small_content += size;
        self.files.sent(request.entry, &request.file, size, hash);
        if at == 0 {
            // The collected frames count as queued from the first one on: the end must not overtake them.
            self.files.queue();
        }
        if self.small.len() >= SMALL_BATCH_BYTES {
            self.flush()?;
        }
        Ok(Ok(()))
    }

    /// Sends a file of several pieces, or one with pieces to compare with the receiver's.
    fn deliver_pieces(
        &mut self,
        request: &mut FileRequest,
        file: &File,
        listed: &Snapshot,
    ) -> Delivered {
        let (size, entry) = (listed.size, request.entry);
        // Before the first byte is sent.
        let mut before = match snapshot(file, listed) {
            Ok(before) => before,
            Err(why) => return Ok(Err(why)),
        };
        let (count, earlier, pieces_sent) = (pieces(size) as u32, Vec::new(), 0);
        let mut reading = Reading { file, size, count, earlier, pieces_sent };
        let mut shrank = false;
        for pass in 0..MAX_PASSES {
            let settled = before.settle(file);
            let read = match self.read_pieces(request, &mut reading, pass)? {
                Ok(read) => read,
                Err(why) => return Ok(Err(why)),
            };
            let after = match snapshot(file, listed) {
                Ok(after) => after,
                Err(why) => return Ok(Err(why)),
            };
            // Content that reads the same twice existed between the two passes.
            let same = pass > 0 && !read.differs;
            shrank |= before.size < size || after.size < size;
            let grown = same && !shrank && listed.has_grown(&after, request.file.growth);
            if grown || (settled || same) && after == before && after.size == size {
                if grown {
                    self.files.grew(&request.file);
                }
                let (hash, pieces_sent) = (*read.hash.as_bytes(), reading.pieces_sent);
                self.files.sent(entry, &request.file, size, hash);
                return self.end(FileEnd { entry, size, pieces_sent, hash });
            }
            if reading.earlier.is_empty() {
                break;
            }
            before = after;
        }
        Ok(Err(Undelivered::Changed))
    }

    /// Reads all pieces, and sends those that the receiver lacks or that differ from the previous pass.
    fn read_pieces(
        &mut self,
        request: &mut FileRequest,
        reading: &mut Reading<'_>,
        pass: u32,
    ) -> Result<Result<Pass, Undelivered>> {
        let &mut Reading { file, size, count, .. } = reading;
        let (entry, sparse) = (request.entry, request.file.sparse);
        let mut run = HoleRun { first: 0, pieces: 0 };
        let (mut root, mut data, mut differs) = (RootBuilder::default(), 0, false);
        for piece in 0..count {
            if self.files.is_given_up(entry) {
                return Ok(Err(Undelivered::GivenUp));
            }
            let offset = u64::from(piece) * PIECE_BYTES;
            let length = piece_length(size, piece) as usize;
            if sparse && data <= offset {
                data = next_data(file, offset, size);
            }
            let is_hole = sparse && data >= offset + length as u64;
            let mut buffer = self.spent.try_recv().unwrap_or_default();
            // The previous content is overwritten.
            buffer.resize(HEADERS + length, 0);
            if is_hole {
                buffer[HEADERS..].fill(0);
            } else if let Err(error) = file.read_exact_at(&mut buffer[HEADERS..], offset) {
                return Ok(Err(unread(error)));
            }
            let hash = piece_hash(piece, count == 1, &buffer[HEADERS..]);
            root.push(hash);
            let known = match pass {
                0 => request.hashes.as_mut().and_then(|hashes| hashes.next()),
                _ => reading.earlier.get(piece as usize).copied(),
            };
            reading.keep(piece, hash);
            differs |= known != Some(hash);
            if known == Some(hash) || request.compare_only {
                if pass == 0 && !request.compare_only {
                    self.files.note_present(length as u64);
                }
                continue;
            }
            reading.pieces_sent += 1;
            if is_hole {
                if !run.add(piece) {
                    run.send_record(entry, self.channel)?;
                    run = HoleRun { first: piece, pieces: 1 };
                }
                continue;
            }
            if (piece, pass) == (0, 0) && !request.early.is_empty() {
                self.follow(request, hash, &buffer[HEADERS..])?;
                continue;
            }
            let header = PieceHeader { entry, piece, hash, length: length as u32 };
            self.frame(&header, &mut buffer, 0);
            self.push(buffer, entry, length as u64)?;
        }
        run.send_record(entry, self.channel)?;
        Ok(Ok(Pass { hash: root.finish(), differs }))
    }

    /// Sends standard input in order until it ends.
    fn deliver_stream(&mut self, request: &FileRequest) -> Delivered {
        let (entry, files) = (request.entry, self.files);
        let input = match io::stdin().as_fd().try_clone_to_owned() {
            Ok(input) => File::from(input),
            Err(error) => return Ok(Err(Undelivered::Unreadable(error))),
        };
        let read = |buffer: &mut Vec<u8>| -> io::Result<usize> {
            buffer.resize(HEADERS + PIECE_BYTES as usize, 0);
            let length = fill(files, &input, &mut buffer[HEADERS..])?;
            buffer.truncate(HEADERS + length);
            Ok(length)
        };
        let (mut root, mut piece, mut size, mut next) = (RootBuilder::default(), 0, 0, Vec::new());
        let mut length = match read(&mut next) {
            Ok(length) => length,
            Err(error) => return Ok(Err(Undelivered::Unreadable(error))),
        };
        while length > 0 {
            if files.is_given_up(entry) {
                return Ok(Err(Undelivered::GivenUp));
            }
            // Read one piece ahead, because the hash of an only piece is computed differently.
            let mut buffer = std::mem::take(&mut next);
            let following = match read(&mut next) {
                Ok(following) => following,
                Err(error) => return Ok(Err(Undelivered::Unreadable(error))),
            };
            let only = piece == 0 && following == 0;
            let hash = piece_hash(piece, only, &buffer[HEADERS..]);
            let header = PieceHeader { entry, piece, hash, length: length as u32 };
            self.frame(&header, &mut buffer, 0);
            root.push(hash);
            piece += 1;
            size += length as u64;
            self.push(buffer, entry, length as u64)?;
            length = following;
        }
        let hash = *root.finish().as_bytes();
        files.sent(entry, &request.file, size, hash);
        self.end(FileEnd { entry, size, pieces_sent: piece, hash })
    }

    /// Sends the rest of a first piece, without the beginning that was sent early, or the whole piece if the file has changed.
    /// Uses the same connection, so that it arrives after the beginning.
    fn follow(&self, request: &FileRequest, hash: PieceHash, content: &[u8]) -> Result<()> {
        let rest = content.strip_prefix(&request.early[..]).unwrap_or(content);
        let length = rest.len() as u32;
        let header = PieceHeader { entry: request.entry, piece: 0, hash, length };
        self.files.queue();
        self.files.writing(Bytes::new(content.len() as u64), content.len());
        self.channel.write(&[&header.to_bytes(), rest])?;
        self.files.written(clock::now(), rest.len());
        Ok(())
    }

    /// Fills in the header at `at`, in front of the content, which extends to the end of the buffer. Compresses the content if
    /// that saves time.
    fn frame(&mut self, header: &PieceHeader, buffer: &mut Vec<u8>, at: usize) {
        if self.packer.is_some() {
            self.wait_for_the_rate();
        }
        let content = &buffer[at + HEADERS..];
        let (waiting, carried) = (self.out.len(), self.files.carried());
        let packed = self.packer.as_mut().and_then(|packer| {
            let is_worthwhile = packer.is_worthwhile(content.len(), waiting, carried);
            if is_worthwhile { packer.pack(content, clock::now) } else { None }
        });
        match packed {
            Some(packed) => {
                buffer.truncate(at);
                buffer.extend_from_slice(&header.to_packed_bytes(packed.len() as u32));
                buffer.extend_from_slice(packed);
            }
            None => buffer[at..at + HEADERS].copy_from_slice(&header.to_bytes()),
        }
    }

    /// Waits while pieces are queued and the connections' rate is unknown. Otherwise a small transfer would be read completely
    /// before the rate shows whether compression pays. A fast path empties the queue at once.
    fn wait_for_the_rate(&self) {
        while self.out.len() >= WAITING_PIECES
            && self.files.carried().is_none()
            && !self.files.is_over()
        {
            clock::sleep_until(clock::now() + RATE_INTERVAL);
        }
    }

    fn end(&mut self, end: FileEnd) -> Delivered {
        self.channel.send_record(&Record::Ends(vec![end]))?;
        Ok(Ok(()))
    }

    fn flush(&mut self) -> Result<()> {
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

    fn push(&mut self, bytes: Vec<u8>, entry: u32, content: u64) -> Result<()> {
        self.files.queue();
        self.hand_over(bytes, Some(entry), content)
    }

    fn hand_over(&mut self, bytes: Vec<u8>, entry: Option<u32>, content: u64) -> Result<()> {
        let frames = Frames { bytes, content: Bytes::new(content), entry };
        self.out.send(frames).map_err(|_| TransferError::Interrupted)
    }
}

impl Reading<'_> {
    /// Keeps a piece's hash for the next pass, unless the file has too many pieces.
    fn keep(&mut self, piece: u32, hash: PieceHash) {
        if u64::from(self.count) > MAX_KEPT_HASHES {
            return;
        }
        match self.earlier.get_mut(piece as usize) {
            Some(earlier) => *earlier = hash,
            None => self.earlier.push(hash),
        }
    }
}

/// The beginning of a file, at most `max` bytes, to send before the receiver has answered. It leaves at least one byte of the
/// piece, because the rest carries the hash. `None` if the file is empty or has changed since it was listed.
pub(crate) fn beginning(file: &SourceFile, max: u64) -> Option<Vec<u8>> {
    let listed = file.listed.filter(|_| !file.sparse)?;
    let length = max.min(piece_length(listed.size, 0).saturating_sub(1));
    let mut content = vec![0; length as usize];
    let open = file.open().ok()?;
    snapshot(&open, &listed).ok()?;
    open.read_exact_at(&mut content, 0).ok()?;
    Some(content).filter(|content| !content.is_empty())
}

/// The state of an open file, if it is still the listed file.
fn snapshot(file: &File, listed: &Snapshot) -> Result<Snapshot, Undelivered> {
    let now = Snapshot::of(file).map_err(Undelivered::Unreadable)?;
    now.filter(|now| now.is_same_file(listed)).ok_or(Undelivered::Replaced)
}

/// Reads the listed length of the file of `source` in a consistent state, and notes it in `files` if the file has grown since.
fn read_whole(
    files: &OutgoingFiles,
    source: &SourceFile,
    file: &File,
    content: &mut [u8],
    listed: &Snapshot,
) -> Result<(), Undelivered> {
    let (mut before, mut earlier, mut shrank) = (*listed, None, false);
    for _ in 0..MAX_PASSES {
        let settled = before.settle(file);
        let read = file.read_exact_at(content, 0);
        let after = snapshot(file, listed)?;
        shrank |= after.size < listed.size;
        let is_listed = after == before && after.size == listed.size;
        let has_grown = !shrank && listed.has_grown(&after, source.growth);
        match read {
            // The file may be about to grow to its length again.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {}
            Err(error) => return Err(Undelivered::Unreadable(error)),
            Ok(()) if settled && is_listed => return Ok(()),
            // The file was changed in place, or is being rewritten.
            Ok(()) if !is_listed && !has_grown => earlier = None,
            Ok(()) => {
                // The times are inconclusive, but content that reads the same twice existed in between.
                let hash = blake3::hash(content);
                if earlier.replace(hash) == Some(hash) {
                    if has_grown {
                        files.grew(source);
                    }
                    return Ok(());
                }
            }
        }
        before = after;
    }
    Err(if before.size < listed.size { Undelivered::Shrank } else { Undelivered::Changed })
}

/// Reads from `input` until `buffer` is full or the input ends, which may take long. The error is `Interrupted` if the
/// transfer ends meanwhile.
fn fill(files: &OutgoingFiles, mut input: &File, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        while !is_readable(input.as_fd()) {
            if files.is_over() {
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

fn unread(error: io::Error) -> Undelivered {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => Undelivered::Shrank,
        _ => Undelivered::Unreadable(error),
    }
}

struct HoleRun {
    first: u32,
    pieces: u32,
}

impl HoleRun {
    /// Adds `piece` if it is the next one. Returns whether it was added.
    fn add(&mut self, piece: u32) -> bool {
        if self.pieces == 0 {
            self.first = piece;
        }
        let next = self.first + self.pieces == piece;
        self.pieces += u32::from(next);
        next
    }

    fn send_record(&self, entry: u32, channel: &Channel) -> Result<()> {
        match self.pieces {
            0 => Ok(()),
            pieces => channel.send_record(&Record::Holes { entry, first: self.first, pieces }),
        }
    }
}
