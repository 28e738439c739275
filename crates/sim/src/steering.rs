use sweetspot_sizing::{
    Controller, Event, Output, Probe, SenderReport, Sizing, Train, TrainRequest,
};
use sweetspot_units::{Bytes, Duration, Rate, Time};

use crate::packet::Packet;

/// The control loop at a simulated receiver: what a real receiver does with its socket and its
/// datagrams, this does with packets of the simulation. The controller is the same.
///
/// **Contract.** `now` never goes backwards. After every `handle_*` call, effects are polled
/// until there are none.
pub(crate) struct Steering {
    controller: Box<dyn Controller + Send>,
    /// What the controller did, for the outcome.
    pub events: Vec<Event>,
    /// When the next probe is due; `None`: this controller has no use for probes.
    next_probe: Option<Time>,
    /// When the kernel's view is next read; `None`: this controller decides once and looks at
    /// nothing.
    next_tick: Option<Time>,
    /// Answers expected next.
    next_answer: u64,
    train: Option<UnderWay>,
    /// The controller is not called again before this, whatever it asks for.
    not_before: Time,
    /// The receiver's own estimate of the round trip.
    pub kernel_rtt: Option<Duration>,
}

/// What a controller looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Interest {
    /// Nothing: it has decided before the first byte.
    Nothing,
    /// What its own kernel knows.
    Kernel,
    /// That and answers to probes.
    Probes,
}

impl Interest {
    /// What the controller of `sizing` looks at.
    pub(crate) fn of(sizing: Sizing) -> Interest {
        match sizing {
            Sizing::Sobas | Sizing::SobasPaper => Interest::Probes,
            Sizing::SobasLive
            | Sizing::Rledbat
            | Sizing::RightSizing
            | Sizing::Heffner
            | Sizing::Linux(_) => Interest::Kernel,
            _ => Interest::Nothing,
        }
    }
}

/// Something to be done for the controller.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Effect {
    /// Limit the advertised window; `None`: the largest there is.
    Window(Option<Bytes>),
    /// Ask the sender for a train.
    Train(TrainRequest),
    /// Tell the sender its pace.
    Pacing(Option<Rate>),
}

/// A train whose packets are coming in.
#[derive(Debug, Clone, Copy)]
struct UnderWay {
    first: Time,
    last: Time,
    sent: u32,
    received: u32,
    bytes_after_first: Bytes,
}

/// Between probes: 20 ms (section VII-A of the SOBAS paper).
const PROBE_INTERVAL: Duration = Duration::from_millis(20);
/// Between looks at what the kernel says.
const TICK: Duration = Duration::from_millis(10);
/// No controller is called more often by its own timers.
const LEAST_PAUSE: Duration = Duration::from_micros(10);
/// A train of which no more arrives for this long is over: what is missing was dropped.
const TRAIN_OVER: Duration = Duration::from_millis(100);

impl Steering {
    /// A loop that begins at `start`.
    pub(crate) fn new(
        controller: Box<dyn Controller + Send>,
        interest: Interest,
        start: Time,
    ) -> Self {
        Steering {
            controller,
            events: Vec::new(),
            next_probe: (interest == Interest::Probes).then_some(start),
            next_tick: (interest != Interest::Nothing).then_some(start),
            next_answer: 0,
            train: None,
            not_before: start,
            kernel_rtt: None,
        }
    }

    /// Whether what arrives is to be handed in.
    pub(crate) fn listens(&self) -> bool {
        self.next_tick.is_some()
    }

    /// The application read `bytes` of payload; it always keeps up.
    pub(crate) fn handle_data(&mut self, now: Time, bytes: Bytes) {
        self.controller.handle_data(now, bytes, Bytes::ZERO);
    }

    /// The answer to a probe arrived: the sender's `number`-th.
    pub(crate) fn handle_answer(&mut self, now: Time, packet: &Packet, report: SenderReport) {
        // Nothing overtakes anything here: a number left out is a packet lost.
        let forward_lost = packet.number.saturating_sub(self.next_answer);
        self.next_answer = packet.number + 1;
        let rtt = now.since(packet.sent);
        self.controller.handle_probe(now, &Probe { rtt, forward_lost, sender: Some(report) });
    }

    /// A packet of a train arrived.
    pub(crate) fn handle_train_packet(&mut self, now: Time, packet: &Packet) {
        if packet.number == 0 || self.train.is_none() {
            self.end_train(now);
            self.train = Some(UnderWay {
                first: now,
                last: now,
                sent: packet.window,
                received: 0,
                bytes_after_first: Bytes::ZERO,
            });
        }
        let Some(train) = &mut self.train else { return };
        if train.received > 0 {
            train.bytes_after_first += Bytes::new(u64::from(packet.size));
        }
        train.received += 1;
        train.last = now;
        if packet.number + 1 == u64::from(packet.window) {
            self.end_train(now);
        }
    }

    fn end_train(&mut self, now: Time) {
        let Some(train) = self.train.take() else { return };
        self.controller.handle_train(
            now,
            &Train {
                sent: train.sent,
                received: train.received,
                bytes_after_first: train.bytes_after_first,
                dispersion: train.last.since(train.first),
            },
        );
    }

    /// When [`Steering::handle_timeout`] next wants to be called.
    pub(crate) fn poll_timeout(&self) -> Time {
        let train = self.train.map(|train| train.last + TRAIN_OVER);
        let dues = [self.controller.poll_timeout(), self.next_probe, train, self.next_tick];
        dues.into_iter().flatten().fold(Time::MAX, Time::min).max(self.not_before)
    }

    /// That time has come. `advertised` is the window that the receiver advertises now. Whether
    /// a probe is to be sent.
    pub(crate) fn handle_timeout(&mut self, now: Time, advertised: Bytes) -> bool {
        if self.train.is_some_and(|train| train.last + TRAIN_OVER <= now) {
            self.end_train(now);
        }
        if self.next_tick.is_some_and(|due| due <= now) {
            self.next_tick = Some(now + TICK);
            self.controller.handle_window(now, advertised);
            if let Some(rtt) = self.kernel_rtt.filter(|_| self.next_probe.is_none()) {
                self.controller.handle_kernel_rtt(now, rtt);
            }
        }
        if self.controller.poll_timeout().is_some_and(|due| due <= now) {
            self.controller.handle_timeout(now);
        }
        self.not_before = now + LEAST_PAUSE;
        let probe = self.next_probe.is_some_and(|due| due <= now);
        if probe {
            self.next_probe = Some(now + PROBE_INTERVAL);
        }
        probe
    }

    /// The next thing to do, until `None`.
    pub(crate) fn poll_effect(&mut self) -> Option<Effect> {
        loop {
            return Some(match self.controller.poll_output()? {
                Output::Window(limit) => Effect::Window(limit),
                Output::Pacing(rate) => Effect::Pacing(rate),
                Output::Train(request) => Effect::Train(request),
                Output::Event(event) => {
                    self.events.push(event);
                    continue;
                }
            });
        }
    }
}
