use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use sweetspot_linux::tcp::options;
use sweetspot_units::{Bytes, Rate};

use super::answering::Answering;
use super::channel::{Channel, PATIENCE};
use super::room::Room;
use super::source::{ReadAhead, Source};
use super::talk::Talk;
use crate::TransferError;
use crate::protocol::{Message, Verdict, frame};

/// The sender's threads: one writes content, one listens to the receiver and does as told, one
/// answers probes.
pub(crate) struct Delivery<'a> {
    channel: &'a Channel,
    answering: Option<Answering<'a>>,
    room: Room<'a>,
    /// Content handed to the kernel so far.
    done: AtomicU64,
    /// The end was sent.
    ended: AtomicBool,
}

impl<'a> Delivery<'a> {
    /// A delivery that answers probes where it is given the means.
    pub fn new(channel: &'a Channel, answering: Option<Answering<'a>>) -> Delivery<'a> {
        let (done, ended) = (AtomicU64::new(0), AtomicBool::new(false));
        Delivery { channel, answering, room: Room::new(channel), done, ended }
    }

    /// Delivers all of `source`; returns the receiver's verdict.
    pub fn run(&self, source: Source, talk: Talk<'_>) -> Result<Verdict, TransferError> {
        let ahead = source.read_ahead()?;
        thread::scope(|scope| {
            if let Some(answering) = &self.answering {
                scope.spawn(|| answering.run());
            }
            let listener = scope.spawn(|| {
                let heard = self.listen(talk);
                if heard.is_err() {
                    // Wakes the writer, which may be waiting for a window that never opens.
                    self.channel.sever();
                }
                heard
            });
            let written = self.write_all(ahead);
            match &written {
                Err(TransferError::PeerGone { .. } | TransferError::Silent { .. }) => {
                    self.channel.sever();
                }
                Err(error) => {
                    self.channel.hang_up(&Message::Failed { reason: error.to_string() });
                    self.channel.sever();
                }
                Ok(()) => {}
            }
            let heard = listener.join().unwrap_or(Err(TransferError::Interrupted));
            if let Some(answering) = &self.answering {
                answering.done();
            }
            match (written, heard) {
                (Ok(()), heard) => heard,
                // The receiver hung up on the writer: what it said before tells why.
                (Err(TransferError::PeerGone { .. }), Err(cause)) => Err(cause),
                (Err(cause), _) => Err(cause),
            }
        })
    }

    /// Limits of this host that were in the way.
    pub fn limits(&self) -> Vec<String> {
        self.room.limits()
    }

    fn write_all(&self, ahead: ReadAhead) -> Result<(), TransferError> {
        while let Some(block) = ahead.next() {
            self.note_if_dry();
            let header = frame::content_header(block.len() as u32);
            self.channel.write(&[&header, &block])?;
            self.done.fetch_add(block.len() as u64, Ordering::Relaxed);
            ahead.reuse(block);
        }
        let hash = ahead.finish()?.to_hex().to_string();
        self.ended.store(true, Ordering::Release);
        self.channel.say(&Message::End { hash })
    }

    /// If all that was written before has left already, the path waited for us.
    fn note_if_dry(&self) {
        let Some(answering) = &self.answering else { return };
        let begun = self.done.load(Ordering::Relaxed) > 0;
        if begun && options::unsent(self.channel.socket()).is_ok_and(|n| n == Bytes::ZERO) {
            answering.starved();
        }
    }

    /// Does what the receiver says, until its verdict.
    fn listen(&self, mut talk: Talk<'_>) -> Result<Verdict, TransferError> {
        loop {
            let message = match talk.next(|| PATIENCE, || self.ended.load(Ordering::Acquire)) {
                // While content flows the receiver has no need to speak; a dead one shows when
                // writing.
                Err(TransferError::Silent { .. }) if !self.ended.load(Ordering::Acquire) => {
                    continue;
                }
                Err(TransferError::PeerGone { peer, .. }) => {
                    let done = Bytes::new(self.done.load(Ordering::Relaxed));
                    return Err(TransferError::PeerGone { peer, done });
                }
                other => other?,
            };
            match message {
                Message::Steer { pacing_bps, window } => self.steer(pacing_bps, window)?,
                Message::Train { id, packets, payload_bytes } => {
                    if let Some(answering) = &self.answering {
                        answering.send_train(id, packets, payload_bytes);
                    }
                }
                Message::Verdict(verdict) => return Ok(verdict),
                Message::Failed { reason } => return Err(TransferError::PeerFailed(reason)),
                _ => {}
            }
        }
    }

    fn steer(&self, pacing_bps: Option<u64>, window: Option<u64>) -> Result<(), TransferError> {
        if let Some(bps) = pacing_bps {
            let rate = Some(Rate::from_bits_per_second(bps));
            options::set_max_pacing_rate(self.channel.socket(), rate)
                .map_err(TransferError::system("SO_MAX_PACING_RATE"))?;
        }
        match window {
            Some(window) => self.room.make(Bytes::new(window)),
            None => Ok(()),
        }
    }
}
