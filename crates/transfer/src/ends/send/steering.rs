//! Obeys the receiver: its connections, pace, window and congestion control.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;

use crossbeam_channel::{Receiver, Sender};
use sweetspot_linux::tcp::{MIN_PACE, options};
use sweetspot_protocol::{Message, ProtocolError, ReceiverItem, ReceiverSummary};
use sweetspot_sizing::CongestionChoice;
use sweetspot_units::{Bytes, Rate};

use super::Sending;
use crate::control::sender_link::SenderLink;
use crate::files::file_reader::Frames;
use crate::files::outgoing::FileRequest;
use crate::limits::MAX_PHASE_LENGTH;
use crate::lock::lock;
use crate::wire::channel::Channel;
use crate::wire::frame_reader::FrameReader;
use crate::wire::link::FurtherLinks;
use crate::{Result, TransferError};

/// Faster than any path, yet finite: a socket that was paced once is paced for good, then at twice
/// cwnd per round trip in slow start (tcp_update_pacing_rate, net/ipv4/tcp_input.c).
const UNLIMITED_PACE: Rate = Rate::from_mbit_per_second(1_000_000);

/// The content of the receiver's last steering message.
#[derive(Default, Clone)]
pub(super) struct LastControl {
    pub pacing: Option<Rate>,
    pub window: Option<Bytes>,
    pub congestion: CongestionChoice,
    pub phase: Option<String>,
}

impl Sending<'_> {
    /// Makes the connections that the receiver wants, where this end connects, and takes in those that arrive.
    pub(super) fn join_links(
        &self,
        further: &FurtherLinks<'_>,
        ready: &Receiver<Frames>,
        spent: &Sender<Vec<u8>>,
    ) {
        thread::scope(|scope| {
            let requested = || self.streams.load(Ordering::Acquire);
            further.run(&self.over, requested, |link| {
                let channel = link.channel;
                channel.share_last_received(self.channel);
                if self.add_link(&channel).is_ok() {
                    scope.spawn(move || self.write(&channel, ready, spent));
                }
            });
        });
    }

    pub(super) fn add_link(&self, channel: &Arc<Channel>) -> Result<()> {
        self.set_named_congestion(channel.socket())?;
        let link = SenderLink::new(channel, self.is_congestion_named(), self.options.send_buffer)?;
        if self.options.compress {
            link.bound_first_unsent();
        }
        // Held meanwhile, as in `steer`: the new connection gets the newest control, and no other one an older.
        let control = lock(&self.last_control);
        lock(&self.links).push(Arc::new(link));
        self.apply(&control, &control)
    }

    /// Steers every connection as the receiver asks for.
    fn steer(&self, control: LastControl) -> Result<()> {
        let mut last = lock(&self.last_control);
        let before = std::mem::replace(&mut *last, control);
        self.apply(&before, &last)
    }

    /// Carries out the receiver's messages until its summary, which it returns.
    pub(super) fn listen(
        &self,
        mut frames: FrameReader,
        requests: &Sender<Vec<FileRequest>>,
    ) -> Result<ReceiverSummary> {
        loop {
            let mut control = None;
            while let Some(part) = frames.next_part()? {
                let item = lock(&self.order).handle(part)?;
                match item {
                    ReceiverItem::Answers(answers) => self.files.answered(answers, requests)?,
                    ReceiverItem::Hashes(entry, first, hashes) => {
                        self.files.hashes(entry, first, hashes)?;
                    }
                    ReceiverItem::Results(results) => self.files.results(results)?,
                    ReceiverItem::Deleted(names, failures) => self.files.deleted(&names, &failures),
                    ReceiverItem::Message(Message::ReceiverSummary(summary)) => return Ok(summary),
                    ReceiverItem::Message(message) => {
                        control = self.handle_message(message)?.or(control);
                    }
                }
            }
            // Only the last of several messages counts: however often a receiver steers, each read costs one change.
            if let Some(control) = control {
                self.steer(control)?;
            }
            if frames.read(None)?.is_none() {
                let peer = self.channel.peer().to_string();
                return Err(TransferError::PeerGone { peer, done: self.files.so_far().0 });
            }
        }
    }

    /// Carries out one message. Returns how the receiver steers, if it says so.
    fn handle_message(&self, message: Message) -> Result<Option<LastControl>> {
        match message {
            Message::Steer { pacing_bps, window, congestion, phase } => {
                return Ok(Some(LastControl {
                    pacing: pacing_bps.map(Rate::from_bits_per_second),
                    window: window.map(Bytes::new),
                    congestion: congestion.into(),
                    phase: Some(phase.to_string().chars().take(MAX_PHASE_LENGTH).collect()),
                }));
            }
            Message::Train { id, packets, payload_bytes } => {
                if let Some(probe_responder) = self.probe_responder() {
                    probe_responder.send_train(id, packets, payload_bytes);
                }
            }
            Message::Streams { count } => {
                let count = count.min(sweetspot_protocol::MAX_STREAMS);
                self.streams.store(count, Ordering::Release);
            }
            Message::Failed { reason } => return Err(TransferError::PeerFailed(reason)),
            Message::Busy => {}
            other => {
                let (what, when) = (other.kind(), "while content was still due");
                return Err(ProtocolError::OutOfOrder { what, when }.into());
            }
        }
        Ok(None)
    }

    /// Gives every connection its share of the receiver's request.
    fn apply(&self, before: &LastControl, control: &LastControl) -> Result<()> {
        let links = lock(&self.links).clone();
        let n = links.len() as u64;
        for link in &links {
            let socket = link.channel.socket();
            let pacing = |control: &LastControl| (control.pacing, control.congestion);
            link.congestion.follow(socket, pacing(before), pacing(control));
            let (requested, max) = (control.pacing, self.options.rate_limit);
            if requested.is_some() || before.pacing.is_some() || max.is_some() {
                let pace = requested.into_iter().chain(max).min();
                let pace = pace.map_or(UNLIMITED_PACE, |pace| pace.scaled(1.0 / n as f64));
                let pace = pace.max(MIN_PACE);
                match max {
                    Some(_) => link.channel.limit_rate(pace)?,
                    None => options::set_max_pacing_rate(socket, Some(pace))
                        .map_err(TransferError::system("SO_MAX_PACING_RATE"))?,
                }
            }
            if let Some(window) = control.window {
                link.send_buffer.make(Bytes::new(window.get() / n))?;
            }
        }
        Ok(())
    }
}
