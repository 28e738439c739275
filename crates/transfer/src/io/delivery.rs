use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use sweetspot_linux::tcp::{Info, options};
use sweetspot_units::{Bytes, Rate};

use super::channel::{Channel, PATIENCE};
use super::source::{ReadAhead, Source};
use super::talk::Talk;
use crate::TransferError;
use crate::observer::Observer;
use crate::protocol::{Closing, Message, Verdict, frame};

/// The sender's two threads: one writes content, one listens to the receiver and does as told.
pub(crate) struct Delivery<'a> {
    channel: &'a Channel,
    /// Content handed to the kernel so far.
    done: AtomicU64,
    /// The end was sent.
    ended: AtomicBool,
}

impl<'a> Delivery<'a> {
    pub fn new(channel: &'a Channel, _observer: &'a mut dyn Observer) -> Delivery<'a> {
        Delivery { channel, done: AtomicU64::new(0), ended: AtomicBool::new(false) }
    }

    /// Delivers all of `source`; returns the receiver's verdict and the own numbers.
    pub fn run(&self, source: Source, talk: Talk<'_>) -> Result<(Verdict, Closing), TransferError> {
        let ahead = source.read_ahead()?;
        let verdict = thread::scope(|scope| {
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
            match (written, heard) {
                (Ok(()), heard) => heard,
                // The receiver hung up on the writer: what it said before tells why.
                (Err(TransferError::PeerGone { .. }), Err(cause)) => Err(cause),
                (Err(cause), _) => Err(cause),
            }
        })?;
        let closing = self.closing()?;
        self.channel.say(&Message::Closing(closing.clone()))?;
        Ok((verdict, closing))
    }

    fn write_all(&self, ahead: ReadAhead) -> Result<(), TransferError> {
        while let Some(block) = ahead.next() {
            let header = frame::content_header(block.len() as u32);
            self.channel.write(&[&header, &block])?;
            self.done.fetch_add(block.len() as u64, Ordering::Relaxed);
            ahead.reuse(block);
        }
        let hash = ahead.finish()?.to_hex().to_string();
        self.ended.store(true, Ordering::Release);
        self.channel.say(&Message::End { hash })
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
                Message::Steer { pacing_bps, window_bytes } => {
                    self.steer(pacing_bps, window_bytes)?;
                }
                Message::Verdict(verdict) => return Ok(verdict),
                Message::Failed { reason } => return Err(TransferError::PeerFailed(reason)),
                _ => {}
            }
        }
    }

    fn steer(&self, pacing: Option<u64>, _window: Option<u64>) -> Result<(), TransferError> {
        if let Some(bps) = pacing {
            let rate = Some(Rate::from_bits_per_second(bps));
            options::set_max_pacing_rate(self.channel.socket(), rate)
                .map_err(TransferError::system("SO_MAX_PACING_RATE"))?;
        }
        Ok(())
    }

    fn closing(&self) -> Result<Closing, TransferError> {
        let failed = || TransferError::system("TCP_INFO");
        let info = Info::read(self.channel.socket()).map_err(failed())?;
        Ok(Closing {
            congestion: options::congestion(self.channel.socket()).map_err(failed())?,
            segments: info.data_segs_out.into(),
            retransmitted_segments: info.total_retrans.into(),
            limits: Vec::new(),
        })
    }
}
