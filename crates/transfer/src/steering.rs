use std::collections::VecDeque;

use sweetspot_sizing::{Controller, Output, Phase, Train, TrainRequest};
use sweetspot_units::{Bytes, Duration, Rate, Time};

use crate::measured::{Measured, RoundTrips};
use crate::outcome::{Probes, RttSource};
use crate::probe::{Packet, Prober, Seal, Trains};
use crate::protocol::Message;
use crate::series::{Line, Mark, Row};

/// How often the window is read back and the limit held: what the kernel overwrote stands no
/// longer than this even when nothing is read.
pub const CONTROL_INTERVAL: Duration = Duration::from_millis(10);
/// Between two rows of the series: fine enough for a ramp on a path of 20 ms.
pub const ROW_INTERVAL: Duration = Duration::from_millis(50);
/// Bytes of a probe on the wire (section VII-A of the SOBAS paper).
pub const PROBE_SIZE: Bytes = Bytes::new(100);

/// The loop around a controller at the receiver, without its I/O: measurements go in with their
/// time, effects come out.
///
/// **Contract.** `now` never goes backwards. After every `handle_*` call the caller performs the
/// effects of [`Steering::poll_effect`] until there are none; at [`Steering::poll_timeout`] it
/// calls [`Steering::handle_timeout`] with what the kernel says.
pub struct Steering {
    controller: Box<dyn Controller + Send>,
    start: Time,
    effects: VecDeque<Effect>,
    next_tick: Time,
    row: RowInProgress,
    content: Bytes,
    window: Option<Bytes>,
    /// What the controller last wanted, once it wanted anything.
    limit: Option<Option<Bytes>>,
    pacing: Option<Rate>,
    /// The phase that the sender was told last.
    told: Option<Phase>,
    probing: Option<Probing>,
    kernel_rtt: Duration,
    by_probes: RoundTrips,
    by_kernel: RoundTrips,
}

/// The out-of-band half.
struct Probing {
    seal: Seal,
    /// IP and UDP headers.
    headers: Bytes,
    prober: Prober,
    trains: Trains,
    /// Trains asked for before the sender could be reached.
    waiting: Vec<TrainRequest>,
    said_blocked: bool,
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
    Record(Line),
    /// Tell whoever asked for detail.
    Note(&'static str),
}

/// What the kernel says of the receiving socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KernelView {
    /// The window advertised last, where it tells.
    pub window: Option<Bytes>,
    /// Its receiver-side estimate of the round-trip time; zero where it has none.
    pub rtt: Duration,
}

#[derive(Debug)]
struct RowInProgress {
    since: Time,
    content: Bytes,
}

impl Steering {
    /// The loop of one transfer that began at `start`. With a `seal` it probes, with packets
    /// that have `headers` bytes of IP and UDP headers.
    pub fn new(
        controller: Box<dyn Controller + Send>,
        start: Time,
        now: Time,
        seal: Option<Seal>,
        headers: Bytes,
    ) -> Steering {
        Steering {
            controller,
            start,
            effects: VecDeque::new(),
            next_tick: now,
            row: RowInProgress { since: now, content: Bytes::ZERO },
            content: Bytes::ZERO,
            window: None,
            limit: None,
            pacing: None,
            told: None,
            probing: seal.map(|seal| Probing {
                seal,
                headers,
                prober: Prober::new(now),
                trains: Trains::default(),
                waiting: Vec::new(),
                said_blocked: false,
            }),
            kernel_rtt: Duration::ZERO,
            by_probes: RoundTrips::default(),
            by_kernel: RoundTrips::default(),
        }
    }

    /// `bytes` were read from the connection, and `unread` were left in the receive buffer.
    pub fn handle_data(&mut self, now: Time, bytes: Bytes, unread: Bytes) {
        self.controller.handle_data(now, bytes, unread);
        self.drain(now);
    }

    /// Of what was read, so much turned out to be the file's.
    pub fn handle_content(&mut self, content: Bytes) {
        self.content += content;
    }

    /// Datagrams can be sent to the sender from now on.
    pub fn handle_reachable(&mut self, now: Time) {
        let Some(probing) = &mut self.probing else { return };
        probing.prober.start(now);
        for request in std::mem::take(&mut probing.waiting) {
            self.ask_train(now, &request);
        }
    }

    /// A datagram arrived. What the sender did not seal is ignored.
    pub fn handle_datagram(&mut self, now: Time, arrived: Time, datagram: &[u8]) {
        let Some(probing) = &mut self.probing else { return };
        match probing.seal.open(datagram) {
            Some(Packet::Answer(answer)) => {
                if let Some(probe) = probing.prober.handle_answer(arrived, &answer) {
                    self.by_probes.record(probe.rtt);
                    self.controller.handle_probe(now, &probe);
                }
            }
            Some(Packet::Train(packet)) => {
                let size = Bytes::new(datagram.len() as u64) + probing.headers;
                probing.trains.handle_packet(arrived, size, packet);
                self.end_trains(now);
            }
            Some(Packet::Punch | Packet::Probe { .. }) | None => {}
        }
        self.drain(now);
    }

    /// The time that [`Steering::poll_timeout`] named has come.
    pub fn handle_timeout(&mut self, now: Time, kernel: &KernelView) {
        if let Some(probing) = &mut self.probing
            && let Some(sequence) = probing.prober.handle_timeout(now)
        {
            let size = PROBE_SIZE.saturating_sub(probing.headers);
            let datagram = probing.seal.close(&Packet::Probe { sequence }, size);
            self.effects.push_back(Effect::Send(datagram));
        }
        if now >= self.next_tick {
            self.next_tick = now + CONTROL_INTERVAL;
            self.handle_kernel(now, kernel);
            self.end_trains(now);
        }
        if self.controller.poll_timeout().is_some_and(|due| due <= now) {
            self.controller.handle_timeout(now);
        }
        self.drain(now);
        if now >= self.row.since + ROW_INTERVAL {
            self.end_row(now);
        }
    }

    /// When [`Steering::handle_timeout`] next wants to be called.
    pub fn poll_timeout(&self) -> Time {
        let probe = self.probing.as_ref().and_then(|p| p.prober.poll_timeout());
        let others = [self.controller.poll_timeout(), probe];
        others.into_iter().flatten().fold(self.next_tick, Time::min)
    }

    /// The next thing to do, until `None`.
    pub fn poll_effect(&mut self) -> Option<Effect> {
        self.effects.pop_front()
    }

    /// What was measured so far.
    pub fn measured(&self) -> Measured {
        let probes = self.probing.as_ref().map(|p| p.prober.counts());
        let (rtt, rtt_source) = match (self.by_probes.quantiles(), self.by_kernel.quantiles()) {
            (Some(rtt), _) => (Some(rtt), RttSource::Probes),
            (None, Some(rtt)) => (Some(rtt), RttSource::Kernel),
            (None, None) => (None, RttSource::Nobody),
        };
        let probes = probes.unwrap_or(Probes { fallback: true, ..Probes::default() });
        Measured { rtt, rtt_source, probes, window: self.window }
    }

    /// The window that the controller wants; `None` while it wants none in particular.
    pub fn wanted(&self) -> Option<Bytes> {
        self.limit.flatten()
    }

    fn handle_kernel(&mut self, now: Time, kernel: &KernelView) {
        if let Some(window) = kernel.window {
            self.window = Some(window);
            self.controller.handle_window(now, window);
        }
        self.kernel_rtt = kernel.rtt;
        let blocked = match &mut self.probing {
            None => true,
            Some(probing) => probing.prober.is_blocked(now, kernel.rtt),
        };
        if !blocked {
            return;
        }
        if kernel.rtt > Duration::ZERO {
            self.by_kernel.record(kernel.rtt);
            self.controller.handle_kernel_rtt(now, kernel.rtt);
        }
        let Some(probing) = &mut self.probing else { return };
        if !std::mem::replace(&mut probing.said_blocked, true) {
            self.effects.push_back(Effect::Note(
                "probes do not come back (UDP blocked?): the kernel's estimate of the RTT stands in",
            ));
        }
        for request in std::mem::take(&mut probing.waiting) {
            self.controller.handle_train(now, &lost(&request));
        }
    }

    fn drain(&mut self, now: Time) {
        while let Some(output) = self.controller.poll_output() {
            match output {
                Output::Window(limit) => {
                    self.limit = Some(limit);
                    self.effects.push_back(Effect::Limit(limit));
                    self.tell_steer();
                }
                Output::Pacing(rate) => {
                    self.pacing = rate;
                    self.tell_steer();
                }
                Output::Train(request) => self.handle_request(now, request),
                Output::Event(event) => {
                    let mark = Mark::new(&event, self.start);
                    self.effects.push_back(Effect::Record(Line::Event(mark)));
                }
            }
        }
        if self.told != Some(self.controller.phase()) {
            self.tell_steer();
        }
    }

    fn tell_steer(&mut self) {
        // A wish that a newer one overtook before it was said need not be said.
        self.effects.retain(|e| !matches!(e, Effect::Tell(Message::Steer { .. })));
        let phase = self.controller.phase();
        self.told = Some(phase);
        self.effects.push_back(Effect::Tell(Message::Steer {
            pacing_bps: self.pacing.map(Rate::bits_per_second),
            window: match self.limit {
                None => None,
                Some(None) => Some(u64::MAX),
                Some(Some(window)) => Some(window.get()),
            },
            phase: phase.to_string(),
        }));
    }

    fn handle_request(&mut self, now: Time, request: TrainRequest) {
        match &mut self.probing {
            None => self.controller.handle_train(now, &lost(&request)),
            Some(probing) if !probing.prober.is_started() => probing.waiting.push(request),
            Some(_) => self.ask_train(now, &request),
        }
    }

    fn ask_train(&mut self, now: Time, request: &TrainRequest) {
        let Some(probing) = &mut self.probing else { return };
        let payload = request.size.saturating_sub(probing.headers);
        self.effects.push_back(Effect::Tell(Message::Train {
            id: probing.trains.ask(now, request),
            packets: request.packets,
            payload_bytes: u32::try_from(payload.get()).unwrap_or(u32::MAX),
        }));
    }

    fn end_trains(&mut self, now: Time) {
        let Some(probing) = &mut self.probing else { return };
        while let Some(train) = probing.trains.poll(now) {
            self.controller.handle_train(now, &train);
        }
    }

    fn end_row(&mut self, now: Time) {
        let prober = self.probing.as_ref().map(|p| &p.prober);
        let report = prober.and_then(Prober::report);
        let kernel_rtt = Some(self.kernel_rtt).filter(|rtt| *rtt > Duration::ZERO);
        let rtt = prober.and_then(Prober::rtt).or(kernel_rtt);
        let goodput = (self.content - self.row.content) / now.since(self.row.since);
        self.effects.push_back(Effect::Record(Line::Row(Row {
            t_s: now.since(self.start).as_secs_f64(),
            bytes: self.content.get(),
            goodput_bps: goodput.as_f64(),
            window_bytes: self.window.map(Bytes::get),
            rtt_s: rtt.map(Duration::as_secs_f64),
            phase: Some(self.controller.phase().to_string()),
            pacing_bps: self.pacing.map(Rate::as_f64),
            cwnd_bytes: report.map(|r| r.cwnd.get()),
            retransmitted: report.map(|r| r.retransmitted),
            segments: None,
            timeouts: None,
        })));
        self.row = RowInProgress { since: now, content: self.content };
    }
}

/// A train that could not even be asked for.
fn lost(request: &TrainRequest) -> Train {
    let (bytes_after_first, dispersion) = (Bytes::ZERO, Duration::ZERO);
    Train { sent: request.packets, received: 0, bytes_after_first, dispersion }
}
