use std::os::fd::AsFd;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use sweetspot_linux::clock;
use sweetspot_linux::event_fd::{EventFd, wait_readable};
use sweetspot_linux::tcp::{Info, options};
use sweetspot_protocol::series::{SeriesRecord, SeriesRow};
use sweetspot_protocol::{Message, ROW_INTERVAL, ReceiverSummary, frame};
use sweetspot_sizing::CongestionChoice;
use sweetspot_units::{Bytes, Rate, Time};

use super::channel::{Channel, PEER_TIMEOUT, lock};
use super::control_stream::ControlStream;
use super::file_source::{FileSource, ReadAhead};
use super::probe_responder::ProbeResponder;
use super::send_buffer::SendBuffer;
use super::sender_congestion::SenderCongestion;
use crate::TransferError;
use crate::observer::TransferObserver;

/// Faster than any path, yet finite: a socket that was paced once is paced for good, then at twice
/// cwnd per round trip in slow start (tcp_update_pacing_rate, net/ipv4/tcp_input.c).
const UNLIMITED_PACE: Rate = Rate::from_mbit_per_second(1_000_000);

/// The slowest pace: one full packet per second.
const MIN_PACE: Rate = Rate::from_bits_per_second(12_000);

/// The sender's threads: one writes content, one carries out the receiver's messages, one answers probes, one samples
/// the time series.
pub(crate) struct SenderTask<'a> {
    channel: &'a Channel,
    probe_responder: Option<ProbeResponder<'a>>,
    send_buffer: SendBuffer<'a>,
    start: Time,
    /// The receiver's last steering message.
    last_control: Mutex<LastControl>,
    congestion: SenderCongestion,
    /// Content handed to the kernel so far.
    done: AtomicU64,
    /// The end was sent.
    ended: AtomicBool,
    /// The transfer is over.
    over: AtomicBool,
    event_fd: EventFd,
}

/// The content of the receiver's last steering message.
#[derive(Default)]
struct LastControl {
    pacing: Option<Rate>,
    congestion: CongestionChoice,
    phase: Option<String>,
}

impl<'a> SenderTask<'a> {
    /// A task that answers probes where it is given the means. `start` is when the connection
    /// began.
    pub fn new(
        channel: &'a Channel,
        congestion: SenderCongestion,
        start: Time,
        probe_responder: Option<ProbeResponder<'a>>,
        send_buffer: SendBuffer<'a>,
    ) -> Result<SenderTask<'a>, TransferError> {
        Ok(SenderTask {
            channel,
            start,
            probe_responder,
            send_buffer,
            last_control: Mutex::default(),
            congestion,
            done: AtomicU64::new(0),
            ended: AtomicBool::new(false),
            over: AtomicBool::new(false),
            event_fd: EventFd::new().map_err(TransferError::system("making an eventfd"))?,
        })
    }

    /// Delivers all of `source`; returns the receiver's summary.
    pub fn run(
        &self,
        source: FileSource,
        control_stream: ControlStream<'_>,
        observer: &mut dyn TransferObserver,
    ) -> Result<ReceiverSummary, TransferError> {
        let ahead = source.read_ahead()?;
        thread::scope(|scope| {
            if let Some(probe_responder) = &self.probe_responder {
                scope.spawn(|| probe_responder.run());
            }
            scope.spawn(|| self.sample(observer));
            let listener = scope.spawn(|| {
                let heard = self.listen(control_stream);
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
            self.over.store(true, Ordering::Release);
            self.event_fd.signal();
            if let Some(probe_responder) = &self.probe_responder {
                probe_responder.done();
            }
            match (written, heard) {
                (Ok(()), heard) => heard,
                // The receiver hung up on the writer: what it said before tells why.
                (Err(TransferError::PeerGone { .. }), Err(cause)) => Err(cause),
                (Err(cause), _) => Err(cause),
            }
        })
    }

    /// Limits of this host that held the transfer back.
    pub fn limits(&self) -> Vec<String> {
        self.send_buffer.limits()
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

    /// Notes that the connection ran dry: all that was written before has left already.
    fn note_if_dry(&self) {
        let Some(probe_responder) = &self.probe_responder else { return };
        let begun = self.done.load(Ordering::Relaxed) > 0;
        if begun && options::unsent(self.channel.socket()).is_ok_and(|n| n == Bytes::ZERO) {
            probe_responder.starved();
        }
    }

    /// Carries out the receiver's messages until its summary, which it returns.
    fn listen(
        &self,
        mut control_stream: ControlStream<'_>,
    ) -> Result<ReceiverSummary, TransferError> {
        let mut acked = Bytes::ZERO;
        loop {
            let message =
                match control_stream.next(|| PEER_TIMEOUT, || self.ended.load(Ordering::Acquire)) {
                    // While content flows the receiver has no need to speak; a dead one shows when
                    // writing.
                    Err(TransferError::Silent { .. }) if !self.ended.load(Ordering::Acquire) => {
                        continue;
                    }
                    // Nor while a slow path still carries what was written.
                    Err(TransferError::Silent { .. }) if self.channel.acked() > acked => {
                        acked = self.channel.acked();
                        continue;
                    }
                    Err(TransferError::PeerGone { peer, .. }) => {
                        let done = Bytes::new(self.done.load(Ordering::Relaxed));
                        return Err(TransferError::PeerGone { peer, done });
                    }
                    other => other?,
                };
            match message {
                Message::Steer { pacing_bps, window, congestion, phase } => {
                    let pacing = pacing_bps.map(Rate::from_bits_per_second);
                    self.steer(LastControl {
                        pacing,
                        congestion: congestion.into(),
                        phase: Some(phase),
                    })?;
                    if let Some(window) = window {
                        self.send_buffer.make(Bytes::new(window))?;
                    }
                }
                Message::Train { id, packets, payload_bytes } => {
                    if let Some(probe_responder) = &self.probe_responder {
                        probe_responder.send_train(id, packets, payload_bytes);
                    }
                }
                Message::ReceiverSummary(summary) => return Ok(summary),
                Message::Failed { reason } => return Err(TransferError::PeerFailed(reason)),
                _ => {}
            }
        }
    }

    fn steer(&self, last_control: LastControl) -> Result<(), TransferError> {
        let (pacing, congestion) = (last_control.pacing, last_control.congestion);
        let before = std::mem::replace(&mut *lock(&self.last_control), last_control);
        if congestion != before.congestion {
            self.congestion.switch(self.channel.socket(), congestion);
        }
        if pacing != before.pacing {
            self.pace(pacing.unwrap_or(UNLIMITED_PACE))?;
        }
        Ok(())
    }

    fn pace(&self, rate: Rate) -> Result<(), TransferError> {
        options::set_max_pacing_rate(self.channel.socket(), Some(rate.max(MIN_PACE)))
            .map_err(TransferError::system("SO_MAX_PACING_RATE"))
    }

    /// Emits a row of the time series every [`ROW_INTERVAL`] while content flows.
    fn sample(&self, observer: &mut dyn TransferObserver) {
        let (mut due, mut last) = (clock::now() + ROW_INTERVAL, (clock::now(), Bytes::ZERO));
        while !self.over.load(Ordering::Acquire) {
            if wait_readable(&[self.event_fd.as_fd()], due).is_err() {
                return;
            }
            due += ROW_INTERVAL;
            let Ok(info) = Info::read(self.channel.socket()) else { return };
            let now = clock::now();
            let acked = info.bytes_acked.min(Bytes::new(self.done.load(Ordering::Relaxed)));
            let goodput = acked.saturating_sub(last.1) / now.since(last.0);
            last = (now, acked);
            let last_control = lock(&self.last_control);
            observer.line(&SeriesRecord::Row(SeriesRow {
                t_s: now.since(self.start).as_secs_f64(),
                bytes: acked.get(),
                goodput_bps: goodput.as_f64(),
                window_bytes: info.snd_wnd.map(Bytes::get),
                rtt_s: Some(info.rtt.as_secs_f64()),
                phase: last_control.phase.clone(),
                pacing_bps: last_control.pacing.map(Rate::as_f64),
                cwnd_bytes: Some(info.cwnd().get()),
                retransmitted: Some(info.total_retrans.into()),
                segments: Some(info.data_segs_out.into()),
                timeouts: info.total_rto.map(u64::from),
            }));
        }
    }
}
