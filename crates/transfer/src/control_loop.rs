use std::collections::VecDeque;

use sweetspot_sizing::{
    CONTROL_INTERVAL, CongestionChoice, Controller, Driver, Effect as Wish, KernelView, Means,
    PROBE_SIZE, Phase, Prober,
};
use sweetspot_units::{Bytes, Duration, Rate, Time};

use crate::measured::{Measured, RoundTrips};
use crate::outcome::{Probes, RttSource};
use crate::probe::{Packet, PacketAuthenticator};
use crate::protocol::Message;
use crate::series::{Row, SeriesEvent, SeriesRecord};

/// Between two rows of the series: fine enough for a ramp on a path of 20 ms.
pub const ROW_INTERVAL: Duration = Duration::from_millis(50);

/// [`Driver`] at the receiving end of a transfer, without its I/O: what it wants goes out as
/// datagrams and messages, what was measured is kept for the outcome and the series.
///
/// **Contract.** `now` never goes backwards. After every `handle_*` call the caller performs the
/// effects of [`ControlLoop::poll_effect`] until there are none; at [`ControlLoop::poll_timeout`] it
/// calls [`ControlLoop::handle_timeout`] with what the kernel says.
pub struct ControlLoop {
    driver: Driver,
    out_of_band: Option<OutOfBand>,
    start: Time,
    effects: VecDeque<Effect>,
    next_tick: Time,
    row: RowInProgress,
    content: Bytes,
    window: Option<Bytes>,
    /// What the controller last wanted, once it wanted anything.
    limit: Option<Option<Bytes>>,
    pacing: Option<Rate>,
    congestion: CongestionChoice,
    /// The phase that the sender was told last.
    last_control: Option<Phase>,
    kernel_rtt: Duration,
    by_probes: RoundTrips,
    by_kernel: RoundTrips,
}

/// How datagrams are made.
struct OutOfBand {
    authenticator: PacketAuthenticator,
    /// IP and UDP headers.
    headers: Bytes,
}

/// What the loop wants done.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Limit the receive window, or lift the limit.
    Limit(Option<Bytes>),
    /// Say this to the sender.
    Tell(Message),
    /// Send this datagram to the sender.
    Send(Vec<u8>),
    /// Record this.
    Record(SeriesRecord),
    /// Tell whoever asked for detail.
    Note(&'static str),
}

#[derive(Debug)]
struct RowInProgress {
    since: Time,
    content: Bytes,
}

impl ControlLoop {
    /// The loop of one transfer that began at `start`. With a `authenticator` it probes, with packets
    /// that have `headers` bytes of IP and UDP headers, if the controller needs that.
    pub fn new(
        controller: Box<dyn Controller + Send>,
        start: Time,
        now: Time,
        authenticator: Option<PacketAuthenticator>,
        headers: Bytes,
    ) -> ControlLoop {
        let means = if authenticator.is_some() { Means::OutOfBand } else { Means::Kernel };
        ControlLoop {
            driver: Driver::new(controller, now, means),
            out_of_band: authenticator.map(|authenticator| OutOfBand { authenticator, headers }),
            start,
            effects: VecDeque::new(),
            next_tick: now,
            row: RowInProgress { since: now, content: Bytes::ZERO },
            content: Bytes::ZERO,
            window: None,
            limit: None,
            pacing: None,
            congestion: CongestionChoice::Own,
            last_control: None,
            kernel_rtt: Duration::ZERO,
            by_probes: RoundTrips::default(),
            by_kernel: RoundTrips::default(),
        }
    }

    /// `bytes` were read from the connection, and `unread` were left in the receive buffer.
    pub fn handle_data(&mut self, now: Time, bytes: Bytes, unread: Bytes) {
        self.driver.handle_data(now, bytes, unread);
        self.drain();
    }

    /// Of what was read, so much turned out to be the file's.
    pub fn handle_content(&mut self, content: Bytes) {
        self.content += content;
    }

    /// Datagrams can be sent to the sender from now on.
    pub fn handle_reachable(&mut self, now: Time) {
        self.driver.handle_reachable(now);
        self.drain();
    }

    /// A datagram arrived. What the sender did not authenticate is ignored.
    pub fn handle_datagram(&mut self, now: Time, arrived: Time, datagram: &[u8]) {
        let Some(out_of_band) = &self.out_of_band else { return };
        match out_of_band.authenticator.open(datagram) {
            Some(Packet::Answer(answer)) => {
                if let Some(rtt) = self.driver.handle_answer(now, arrived, &answer) {
                    self.by_probes.record(rtt);
                }
            }
            Some(Packet::Train(packet)) => {
                let size = Bytes::new(datagram.len() as u64) + out_of_band.headers;
                self.driver.handle_train_packet(now, arrived, size, packet);
            }
            Some(Packet::Punch | Packet::Probe { .. }) | None => {}
        }
        self.drain();
    }

    /// The time that [`ControlLoop::poll_timeout`] named has come.
    pub fn handle_timeout(&mut self, now: Time, kernel: &KernelView) {
        self.driver.handle_timeout(now, kernel);
        if now >= self.next_tick {
            self.next_tick = now + CONTROL_INTERVAL;
            self.window = kernel.window.or(self.window);
            self.kernel_rtt = kernel.rtt;
            if kernel.rtt > Duration::ZERO {
                self.by_kernel.record(kernel.rtt);
            }
        }
        self.drain();
        if now >= self.row.since + ROW_INTERVAL {
            self.end_row(now);
        }
    }

    /// When [`ControlLoop::handle_timeout`] next wants to be called: often enough that what the kernel
    /// overwrote of a limit does not stand for long, even when nothing is read.
    pub fn poll_timeout(&self) -> Time {
        self.driver.poll_timeout().min(self.next_tick)
    }

    /// The next thing to do, until `None`.
    pub fn poll_effect(&mut self) -> Option<Effect> {
        self.effects.pop_front()
    }

    /// What was measured so far.
    pub fn measured(&self) -> Measured {
        let (rtt, rtt_source) = match (self.by_probes.quantiles(), self.by_kernel.quantiles()) {
            (Some(rtt), _) => (Some(rtt), RttSource::Probes),
            (None, Some(rtt)) => (Some(rtt), RttSource::Kernel),
            (None, None) => (None, RttSource::Nobody),
        };
        let none = Probes { fallback: true, ..Probes::default() };
        let probes = self.driver.prober().map_or(none, |prober| prober.counts().into());
        Measured { rtt, rtt_source, probes, window: self.window }
    }

    /// The window that the controller wants; `None` while it wants none in particular.
    pub fn wanted(&self) -> Option<Bytes> {
        self.limit.flatten()
    }

    fn drain(&mut self) {
        while let Some(wish) = self.driver.poll_effect() {
            match wish {
                Wish::Window(limit) => {
                    self.limit = Some(limit);
                    self.effects.push_back(Effect::Limit(limit));
                    self.update_steering();
                }
                Wish::Pacing(rate) => {
                    self.pacing = rate;
                    self.update_steering();
                }
                Wish::Congestion(choice) => {
                    self.congestion = choice;
                    self.update_steering();
                }
                Wish::Probe { sequence } => {
                    let packet = Packet::Probe { sequence };
                    self.effects.extend(self.out_of_band.as_ref().map(|out_of_band| {
                        let size = PROBE_SIZE.saturating_sub(out_of_band.headers);
                        Effect::Send(out_of_band.authenticator.close(&packet, size))
                    }));
                }
                Wish::Train { id, request } => {
                    self.effects.extend(self.out_of_band.as_ref().map(|out_of_band| {
                        let payload = request.size.saturating_sub(out_of_band.headers);
                        Effect::Tell(Message::Train {
                            id,
                            packets: request.packets,
                            payload_bytes: u32::try_from(payload.get()).unwrap_or(u32::MAX),
                        })
                    }));
                }
                Wish::Event(event) => {
                    let mark = SeriesEvent::new(&event, self.start);
                    self.effects.push_back(Effect::Record(SeriesRecord::Event(mark)));
                }
                Wish::ProbesBlocked => self.effects.push_back(Effect::Note(
                    "probes do not come back (UDP blocked?): the kernel's estimate of the RTT stands in",
                )),
            }
        }
        if self.last_control != Some(self.driver.phase()) {
            self.update_steering();
        }
    }

    fn update_steering(&mut self) {
        // A wish that a newer one overtook before it was said need not be said.
        self.effects.retain(|e| !matches!(e, Effect::Tell(Message::Steer { .. })));
        let phase = self.driver.phase();
        self.last_control = Some(phase);
        self.effects.push_back(Effect::Tell(Message::Steer {
            pacing_bps: self.pacing.map(Rate::bits_per_second),
            window: match self.limit {
                None => None,
                Some(None) => Some(u64::MAX),
                Some(Some(window)) => Some(window.get()),
            },
            congestion: self.congestion.into(),
            phase: phase.to_string(),
        }));
    }

    fn end_row(&mut self, now: Time) {
        let prober = self.driver.prober();
        let report = prober.and_then(Prober::report);
        let kernel_rtt = Some(self.kernel_rtt).filter(|rtt| *rtt > Duration::ZERO);
        let rtt = prober.and_then(Prober::rtt).or(kernel_rtt);
        let goodput = (self.content - self.row.content) / now.since(self.row.since);
        self.effects.push_back(Effect::Record(SeriesRecord::Row(Row {
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
        self.row = RowInProgress { since: now, content: self.content };
    }
}
