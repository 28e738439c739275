use std::collections::VecDeque;

use sweetspot_protocol::probe::{PacketAuthenticator, ProbePacket};
use sweetspot_protocol::{Message, ProbeSummary, RttSource};
use sweetspot_sizing::{
    CONTROL_INTERVAL, CongestionChoice, Controller, Driver, Effect, EventKind, InputSource,
    KernelView, PROBE_SIZE, Prober, SizingPhase,
};
use sweetspot_statistics::Histogram;
use sweetspot_units::{Bytes, Duration, Rate, Time};

use crate::series::{SeriesEvent, SeriesRecord, SeriesRow};

/// The time between two rows of the series: short enough to show slow start on a path with an RTT of 20 ms.
pub const ROW_INTERVAL: Duration = Duration::from_millis(50);

/// The loop around a sizing controller at the receiving end of a transfer, without its I/O. It turns [`Driver`]'s requests into
/// datagrams and messages, and keeps the measurements for the outcome and the series.
///
/// **Contract.** `now` never goes backwards. After every `handle_*` call the caller performs the effects of
/// [`ControlLoop::poll_effect`] until there are none; at [`ControlLoop::poll_timeout`] it calls [`ControlLoop::handle_timeout`]
/// with the kernel's view of the connection.
pub struct ControlLoop {
    driver: Driver,
    framing: Option<ProbeFraming>,
    start: Time,
    effects: VecDeque<TransferEffect>,
    next_tick: Time,
    /// Rows so far, and the rows during which the controller wanted probes.
    rows: u64,
    rows_probed: u64,
    row: RowInProgress,
    content: Bytes,
    window: Option<Bytes>,
    /// The controller's last limit; `None` until it sets or lifts one.
    limit: Option<Option<Bytes>>,
    pacing: Option<Rate>,
    congestion: CongestionChoice,
    /// The phase last sent to the sender.
    last_control: Option<SizingPhase>,
    kernel_rtt: Option<Duration>,
    /// The kernel's min RTT (`tcpi_min_rtt`): it has microseconds, while `tcpi_rcv_rtt` counts ticks.
    kernel_minimum: Option<Duration>,
    capacity: Option<Rate>,
    /// Round-trip times, nanoseconds.
    by_probes: Histogram<7>,
    by_kernel: Histogram<7>,
}

/// A receiver's measurements during one transfer.
#[derive(Debug, Clone, PartialEq)]
pub struct ReceiverMeasurements {
    /// Minimum, median and 99th percentile of the round-trip times; `None` if there were none.
    pub rtt: Option<[Duration; 3]>,
    /// The source of the round-trip times.
    pub rtt_source: RttSource,
    /// The number of probes sent, answered and lost.
    pub probes: ProbeSummary,
    /// The last advertised window; `None` on kernels before 6.2.
    pub window: Option<Bytes>,
}

/// How probe packets are sealed and sized.
struct ProbeFraming {
    authenticator: PacketAuthenticator,
    /// The length of the IP and UDP headers.
    headers: Bytes,
}

/// An action for the caller of a [`ControlLoop`].
#[derive(Debug, Clone, PartialEq)]
pub enum TransferEffect {
    /// Limit the receive window, or lift the limit.
    Limit(Option<Bytes>),
    /// Send this message to the sender.
    Tell(Message),
    /// Send this datagram to the sender.
    Send(Vec<u8>),
    /// Add this line to the time series.
    Record(SeriesRecord),
    /// Report this to users that asked for detail.
    Note(&'static str),
}

#[derive(Debug)]
struct RowInProgress {
    since: Time,
    content: Bytes,
    /// The latest RTT that a probe measured in this row.
    rtt: Option<Duration>,
}

impl ControlLoop {
    /// The loop of one transfer that began at `start`. With an `authenticator`, it probes the path if the controller needs
    /// probes; their IP and UDP headers take `headers` bytes.
    pub fn new(
        controller: Box<dyn Controller + Send>,
        start: Time,
        now: Time,
        authenticator: Option<PacketAuthenticator>,
        headers: Bytes,
    ) -> ControlLoop {
        let means =
            if authenticator.is_some() { InputSource::OutOfBand } else { InputSource::Kernel };
        ControlLoop {
            driver: Driver::new(controller, now, means),
            framing: authenticator.map(|authenticator| ProbeFraming { authenticator, headers }),
            start,
            effects: VecDeque::new(),
            next_tick: now,
            rows: 0,
            rows_probed: 0,
            row: RowInProgress { since: now, content: Bytes::ZERO, rtt: None },
            content: Bytes::ZERO,
            window: None,
            limit: None,
            pacing: None,
            congestion: CongestionChoice::Own,
            last_control: None,
            kernel_rtt: None,
            kernel_minimum: None,
            capacity: None,
            by_probes: Histogram::default(),
            by_kernel: Histogram::default(),
        }
    }

    /// `bytes` were read from the connection, and `unread` were left in the receive buffer.
    pub fn handle_data(&mut self, now: Time, bytes: Bytes, unread: Bytes) {
        self.driver.handle_data(now, bytes, unread);
        self.drain();
    }

    /// Counts `content`: the part of the bytes read that belongs to the file.
    pub fn handle_content(&mut self, content: Bytes) {
        self.content += content;
    }

    /// The sender's UDP address is known, so probes can be sent.
    pub fn handle_reachable(&mut self, now: Time) {
        self.driver.handle_reachable(now);
        self.drain();
    }

    /// A datagram arrived at `arrived`. A packet without a valid authentication tag is ignored.
    pub fn handle_datagram(&mut self, now: Time, arrived: Time, datagram: &[u8]) {
        let Some(framing) = &self.framing else { return };
        match framing.authenticator.open(datagram) {
            Some(ProbePacket::Answer(answer)) => {
                if let Some(rtt) = self.driver.handle_answer(now, arrived, &answer) {
                    self.by_probes.add(rtt.as_nanos(), 1);
                    self.row.rtt = Some(rtt);
                }
            }
            Some(ProbePacket::Train(packet)) => {
                let size = Bytes::new(datagram.len() as u64) + framing.headers;
                self.driver.handle_train_packet(now, arrived, size, packet);
            }
            // A receiver handles only answers and trains.
            _ => {}
        }
        self.drain();
    }

    /// Runs the timers that are due at `now`. `kernel` is the kernel's view of the connection.
    pub fn handle_timeout(&mut self, now: Time, kernel: &KernelView) {
        self.driver.handle_timeout(now, kernel);
        if now >= self.next_tick {
            self.next_tick = now + CONTROL_INTERVAL;
            self.window = kernel.window.or(self.window);
            self.kernel_rtt = kernel.rtt;
            let minima = [self.kernel_minimum, kernel.minimum_rtt];
            self.kernel_minimum = minima.into_iter().flatten().min();
            if let Some(rtt) = kernel.rtt {
                self.by_kernel.add(rtt.as_nanos(), 1);
            }
        }
        self.drain();
        if now >= self.row.since + ROW_INTERVAL {
            self.end_row(now);
        }
    }

    /// When to call [`ControlLoop::handle_timeout`] next: often enough to restore a limit soon after the kernel overwrote it,
    /// even when nothing is read.
    pub fn poll_timeout(&self) -> Time {
        self.driver.poll_timeout().min(self.next_tick)
    }

    /// The next effect to perform; `None` once there are no more.
    pub fn poll_effect(&mut self) -> Option<TransferEffect> {
        self.effects.pop_front()
    }

    /// The current RTT: from probes, or the kernel's estimate.
    pub fn rtt(&self) -> Option<Duration> {
        self.rtt_by_probes().or(self.kernel_rtt)
    }

    fn rtt_by_probes(&self) -> Option<Duration> {
        self.driver.prober().and_then(Prober::rtt)
    }

    /// The path's latest capacity estimate, in IP packets; `None` while it is unknown.
    pub fn capacity(&self) -> Option<Rate> {
        self.capacity
    }

    /// The measurements so far.
    pub fn measured(&self) -> ReceiverMeasurements {
        let probes_tell = 2 * self.rows_probed >= self.rows;
        let (rtt, rtt_source) = match (quantiles(&self.by_probes), quantiles(&self.by_kernel)) {
            (Some(rtt), None) => (Some(rtt), RttSource::Probes),
            (Some(rtt), Some(_)) if probes_tell => (Some(rtt), RttSource::Probes),
            (_, Some([least, median, high])) => {
                let least = self.kernel_minimum.map_or(least, |minimum| minimum.min(least));
                (Some([least, median, high]), RttSource::Kernel)
            }
            (None, None) => (None, RttSource::Unmeasured),
        };
        let none = ProbeSummary { fallback: true, ..ProbeSummary::default() };
        let probes = self.driver.prober().map_or(none, |prober| prober.counts().into());
        ReceiverMeasurements { rtt, rtt_source, probes, window: self.window }
    }

    /// The window limit that the controller wants; `None`: no limit.
    pub fn requested_window(&self) -> Option<Bytes> {
        self.limit.flatten()
    }

    fn drain(&mut self) {
        while let Some(effect) = self.driver.poll_effect() {
            match effect {
                Effect::Window(limit) => {
                    self.limit = Some(limit);
                    self.effects.push_back(TransferEffect::Limit(limit));
                    self.update_steering();
                }
                Effect::Pacing(rate) => {
                    self.pacing = rate;
                    self.update_steering();
                }
                Effect::Congestion(choice) => {
                    self.congestion = choice;
                    self.update_steering();
                }
                Effect::Probe { sequence } => {
                    let packet = ProbePacket::Probe { sequence };
                    self.effects.extend(self.framing.as_ref().map(|framing| {
                        let size = PROBE_SIZE.saturating_sub(framing.headers);
                        TransferEffect::Send(framing.authenticator.close(&packet, size))
                    }));
                }
                Effect::Train { id, request } => {
                    self.effects.extend(self.framing.as_ref().map(|framing| {
                        let payload = request.size.saturating_sub(framing.headers);
                        TransferEffect::Tell(Message::Train {
                            id,
                            packets: request.packets,
                            payload_bytes: u32::try_from(payload.get()).unwrap_or(u32::MAX),
                        })
                    }));
                }
                Effect::Event(event) => {
                    if let EventKind::CapacityEstimated { rate, .. } = event.kind {
                        self.capacity = Some(rate);
                    }
                    let mark = SeriesEvent::new(&event, self.start);
                    self.effects.push_back(TransferEffect::Record(SeriesRecord::Event(mark)));
                }
                Effect::ProbesBlocked => self.effects.push_back(TransferEffect::Note(
                    "probes do not return (UDP blocked?): using the kernel's RTT estimate",
                )),
                // A transfer needs no `Saved`: it is one connection from beginning to end.
                _ => {}
            }
        }
        if self.last_control != Some(self.driver.phase()) {
            self.update_steering();
        }
    }

    fn update_steering(&mut self) {
        // A newer steering message replaces an unsent one.
        self.effects.retain(|e| !matches!(e, TransferEffect::Tell(Message::Steer { .. })));
        let phase = self.driver.phase();
        self.last_control = Some(phase);
        self.effects.push_back(TransferEffect::Tell(Message::Steer {
            pacing_bps: self.pacing.map(Rate::bits_per_second),
            window: match self.limit {
                None => None,
                Some(None) => Some(u64::MAX),
                Some(Some(window)) => Some(window.get()),
            },
            congestion: self.congestion.into(),
            phase: phase.to_string().into(),
        }));
    }

    fn end_row(&mut self, now: Time) {
        let report = self.driver.prober().and_then(Prober::report);
        let probes = self.driver.prober().is_some_and(Prober::is_probing);
        self.rows += 1;
        self.rows_probed += u64::from(probes);
        let rtt = match self.rtt_by_probes() {
            Some(_) if probes => self.row.rtt,
            _ => self.row.rtt.or(self.kernel_rtt),
        };
        let goodput = (self.content - self.row.content) / now.since(self.row.since);
        self.effects.push_back(TransferEffect::Record(SeriesRecord::Row(SeriesRow {
            t_s: now.since(self.start).as_secs_f64(),
            bytes: self.content.get(),
            goodput_bps: goodput.as_f64(),
            window_bytes: self.window.map(Bytes::get),
            rtt_s: rtt.map(Duration::as_secs_f64),
            phase: Some(self.driver.phase().to_string()),
            pacing_bps: self.pacing.map(Rate::as_f64),
            cwnd_bytes: report.map(|r| r.cwnd.get()),
            retransmitted: report.map(|r| r.retransmitted),
            segments: None,
            timeouts: None,
        })));
        self.row = RowInProgress { since: now, content: self.content, rtt: None };
    }
}

/// Minimum, median and 99th percentile of round-trip times in nanoseconds; `None` without any.
fn quantiles(rtts: &Histogram<7>) -> Option<[Duration; 3]> {
    Some([rtts.min()?, rtts.quantile(0.5)?, rtts.quantile(0.99)?].map(Duration::from_nanos))
}
