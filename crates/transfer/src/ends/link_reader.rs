//! Reads a receiver's connections, and passes their messages and content on.

use std::sync::Arc;

use crossbeam_channel::Sender;
use sweetspot_linux::clock;
use sweetspot_linux::tcp::options;
use sweetspot_protocol::frame::{FramePart, PieceHeader};
use sweetspot_protocol::{ProtocolError, ReceiverOrder, SenderItem, SenderSummary};
use sweetspot_units::{Bytes, Duration};

use crate::control::receiver_control::ReceiverControl;
use crate::files::incoming::{EntryQueue, IncomingFiles, Job};
use crate::wire::channel::Channel;
use crate::wire::frame_reader::FrameReader;
use crate::{Result, TransferError};

/// Pieces shorter than this are passed on in batches, bytes.
const SMALL_PIECE_BYTES: usize = 32 << 10;
/// Time limit for the sender's summary.
const SENDER_SUMMARY_TIMEOUT: Duration = Duration::from_secs(10);

/// Destinations of the messages and content from a connection.
#[derive(Clone)]
pub(crate) struct Inbox<'a, 'b> {
    pub files: &'a IncomingFiles,
    pub listed: &'a EntryQueue,
    pub control: &'a ReceiverControl<'b>,
    pub jobs: Sender<Job>,
    /// Buffers that the writers have finished with.
    pub empty: crossbeam_channel::Receiver<Vec<u8>>,
}

impl Inbox<'_, '_> {
    fn send(&self, job: Job) -> Result<()> {
        self.jobs.send(job).map_err(|_| TransferError::Interrupted)
    }
}

/// The reader's next step after a part of the stream.
enum ReaderStep {
    /// A piece begins, with this length on the wire.
    Piece(PieceHeader, u32),
    /// Read the next part. The present part held this much content.
    Next(Bytes),
    End,
}

/// A piece that is being received, compressed or not. `length` is its length on the wire.
struct Arriving {
    header: PieceHeader,
    length: usize,
    bytes: Vec<u8>,
}

pub(crate) struct LinkReader<'a, 'b> {
    inbox: Inbox<'a, 'b>,
    channel: Arc<Channel>,
    frames: FrameReader,
    piece: Option<Arriving>,
    small: Vec<(PieceHeader, Vec<u8>)>,
}

impl<'a, 'b> LinkReader<'a, 'b> {
    pub fn new(
        inbox: Inbox<'a, 'b>,
        channel: Arc<Channel>,
        frames: FrameReader,
    ) -> LinkReader<'a, 'b> {
        LinkReader { inbox, channel, frames, piece: None, small: Vec::new() }
    }

    /// Reads the first connection, which carries the control messages, until the sender reports that everything was sent.
    pub fn read_first(&mut self, order: &mut ReceiverOrder) -> Result<()> {
        self.read_parts(|inbox, part| {
            match order.handle(part)? {
                SenderItem::Piece(header, length) => return Ok(ReaderStep::Piece(header, length)),
                SenderItem::Entries(first, list) => inbox.listed.push(first, list)?,
                SenderItem::Early(entry, bytes) => {
                    let length = Bytes::new(bytes.len() as u64);
                    inbox.files.take_early(entry, bytes);
                    return Ok(ReaderStep::Next(length));
                }
                SenderItem::Listed { files, bytes, left_out } => {
                    inbox.files.list_ended(left_out);
                    inbox.control.totals(u64::from(files), Bytes::new(bytes));
                }
                SenderItem::Holes(entry, first, pieces) => {
                    inbox.send(Job::Holes(entry, first, pieces))?;
                }
                SenderItem::Ends(ends) => {
                    ends.iter().try_for_each(|end| inbox.files.take_end(end))?;
                }
                SenderItem::Gone(entry, reason) => inbox.files.handle_gone(entry, &reason)?,
                SenderItem::SenderLimit(_, each) => inbox.control.handle_sender_limit(each),
                SenderItem::End => return Ok(ReaderStep::End),
                SenderItem::Failed(reason) => return Err(TransferError::PeerFailed(reason)),
                SenderItem::Busy
                | SenderItem::Content(_)
                | SenderItem::Offer(_)
                | SenderItem::Refused(_)
                | SenderItem::SenderSummary(_) => {}
            }
            Ok(ReaderStep::Next(Bytes::ZERO))
        })
    }

    /// Reads a further connection, which carries only pieces, until it is closed.
    pub fn read_further(&mut self) -> Result<()> {
        self.read_parts(|_, part| match part {
            FramePart::Piece(header, length) => Ok(ReaderStep::Piece(header, length)),
            FramePart::Content(_) => Ok(ReaderStep::Next(Bytes::ZERO)),
            FramePart::Message(_) | FramePart::Record(_) => {
                let (what, when) = ("words", "on a connection for content");
                Err(ProtocolError::OutOfOrder { what, when }.into())
            }
        })
    }

    /// Reads until `handle` finds the end, or the connection closes.
    fn read_parts(
        &mut self,
        mut handle: impl FnMut(&Inbox<'_, '_>, FramePart<'_>) -> Result<ReaderStep>,
    ) -> Result<()> {
        loop {
            let mut content = Bytes::ZERO;
            loop {
                content += self.take_content()?;
                let Some(part) = self.frames.next_part()? else { break };
                match handle(&self.inbox, part)? {
                    ReaderStep::Next(early) => content += early,
                    ReaderStep::Piece(header, length) => {
                        self.piece = Some(begin(header, length, &self.inbox.empty));
                    }
                    ReaderStep::End => return self.flush(),
                }
            }
            self.read(content)?;
        }
    }

    /// Appends the data read to the piece being received, and passes the piece on once it is complete. Returns the number of
    /// bytes.
    fn take_content(&mut self) -> Result<Bytes> {
        let Some(Arriving { length, bytes, .. }) = &mut self.piece else { return Ok(Bytes::ZERO) };
        let received = Bytes::new(self.frames.fill(bytes)? as u64);
        if bytes.len() == *length
            && let Some(Arriving { header, bytes, .. }) = self.piece.take()
        {
            if bytes.len() < SMALL_PIECE_BYTES {
                self.small.push((header, bytes));
            } else {
                self.inbox.send(Job::Piece(header, bytes))?;
            }
        }
        Ok(received)
    }

    fn read(&mut self, content: Bytes) -> Result<()> {
        let control = self.inbox.control;
        self.flush()?;
        if content > Bytes::ZERO {
            control.handle_content(content);
        }
        let Some(read) = self.frames.read(None)? else {
            let so_far = self.inbox.files.so_far().0;
            return Err(self.channel.disconnected(so_far));
        };
        let failed = TransferError::system("SIOCINQ");
        let unread = options::unread(self.channel.socket()).map_err(failed)?;
        control.handle_data(&self.channel, read, unread)
    }

    /// Passes on the small pieces in halves, so that several threads have work.
    fn flush(&mut self) -> Result<()> {
        while !self.small.is_empty() {
            let rest = self.small.split_off(self.small.len().min(self.small.len() / 2 + 8));
            let pieces = std::mem::replace(&mut self.small, rest);
            self.inbox.send(Job::Pieces(pieces))?;
        }
        Ok(())
    }

    /// The reason why the transfer broke: the sender's own, if it gave one.
    pub fn cause(&mut self, error: TransferError) -> TransferError {
        self.frames.cause(error)
    }

    /// The sender's summary, if one arrives in time. The content is complete without it.
    pub fn sender_summary(&mut self, order: &mut ReceiverOrder) -> Option<SenderSummary> {
        let deadline = clock::now() + SENDER_SUMMARY_TIMEOUT;
        let summary = self.frames.wait_for(deadline, |part| match order.handle(part) {
            Ok(SenderItem::SenderSummary(summary)) => Ok(Some(summary)),
            _ => Ok(None),
        });
        summary.ok()
    }
}

/// Begins a piece of `length` bytes, in a used buffer if one is free.
fn begin(
    header: PieceHeader,
    length: u32,
    empty: &crossbeam_channel::Receiver<Vec<u8>>,
) -> Arriving {
    let length = length as usize;
    let mut bytes = match length {
        // Small pieces must not occupy large buffers.
        length if length < SMALL_PIECE_BYTES => Vec::new(),
        _ => empty.try_recv().unwrap_or_default(),
    };
    bytes.reserve_exact(length);
    Arriving { header, length, bytes }
}
