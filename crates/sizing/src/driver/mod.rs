//! The loop around a controller: probes, trains, the kernel's view, timers, effects.

mod prober;
mod train_collector;

use std::collections::VecDeque;

use sweetspot_units::{Bytes, Duration, Rate, Time};

pub use prober::{PROBE_INTERVAL, PROBE_SIZE, ProbeAnswer, ProbeCounts, Prober};
pub(crate) use train_collector::TRAIN_TIMEOUT;
pub use train_collector::{TrainCollector, TrainPacket};

use crate::Reason;
use crate::contract::{
    CongestionChoice, Controller, Input, Needs, Output, Probing, SavedWindow, SenderReport,
    SizingEvent, SizingPhase, Train, TrainRequest,
};

/// Interval between two readings of the kernel's view: half of [`PROBE_INTERVAL`], so each probe's RTT has its own
/// reading.
pub const CONTROL_INTERVAL: Duration = Duration::from_millis(10);

/// Drives a controller: measurements go in with their time, effects come out. Simulator, transfer,
/// tuner and Python run this same loop; they differ in how they perform an [`Effect`].
///
/// **Contract.** `now` never goes backwards; arrival times may be earlier. After every
/// `handle_*`
/// call the caller performs the effects of [`Driver::poll_effect`] until there are none; at
/// [`Driver::poll_timeout`] it calls [`Driver::handle_timeout`].
pub struct Driver {
    controller: Box<dyn Controller + Send>,
    needs: Needs,
    out_of_band: Option<OutOfBand>,
    /// When the kernel's view is read next; `None`: the caller reads it by itself, or never.
    next_tick: Option<Time>,
    /// All connections have ended: the controller is not called until data arrives again.
    ended: bool,
    kernel: KernelView,
    effects: VecDeque<Effect>,
}

/// Probes and trains.
struct OutOfBand {
    prober: Prober,
    trains: TrainCollector,
    /// Trains requested before the sender could be reached.
    waiting: Vec<TrainRequest>,
    has_reported_block: bool,
}

/// An action for the caller.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Effect {
    /// Limit the advertised window; `None`: the largest the host allows.
    Window(Option<Bytes>),
    /// Ask the sender to pace at this rate; `None`: no pacing.
    Pacing(Option<Rate>),
    /// Ask the sender for this congestion control.
    Congestion(CongestionChoice),
    /// The start values for the next transfer over the same path; `None`: the path is unknown.
    Saved(Option<SavedWindow>),
    /// Send the sender a probe of [`PROBE_SIZE`] bytes.
    Probe {
        /// The probe's number.
        sequence: u32,
    },
    /// Ask the sender for a train.
    Train {
        /// The train's number, which its packets carry.
        id: u32,
        /// The train's length and packet size.
        request: TrainRequest,
    },
    /// Record this event.
    Event(SizingEvent),
    /// Probes are not answered: the kernel's RTT estimate replaces them.
    ProbesBlocked,
}

/// The local kernel's view of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct KernelView {
    /// The last advertised window; `None` if unknown.
    pub window: Option<Bytes>,
    /// The kernel's RTT estimate, see [`Input::KernelRtt`]; `None` if it has none.
    pub rtt: Option<Duration>,
    /// The min RTT of this end's own segments; `None` if unknown.
    pub minimum_rtt: Option<Duration>,
    /// Segments that arrived ahead of a missing one, since the connection began.
    pub out_of_order: u64,
}

/// Where a driver gets its controller's inputs from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputSource {
    /// The sender answers probes and sends trains as soon as it can be reached.
    OutOfBand,
    /// Only the receiving kernel.
    Kernel,
    /// This end's kernel, read by the caller ([`Driver::handle_kernel`], and at the sender
    /// [`Driver::handle_sender`]).
    Caller,
    /// As [`InputSource::Caller`] at the receiver, and the sender answers probes and sends trains as soon as it
    /// can be reached.
    CallerAndOutOfBand,
}

impl Driver {
    /// A driver of a connection that starts at `now`.
    pub fn new(controller: Box<dyn Controller + Send>, now: Time, means: InputSource) -> Driver {
        let needs = controller.needs();
        let (is_out_of_band, reads_itself) = match means {
            InputSource::OutOfBand => (true, true),
            InputSource::Kernel => (false, true),
            InputSource::Caller => (false, false),
            InputSource::CallerAndOutOfBand => (true, false),
        };
        let probes = is_out_of_band && (needs.probes != Probing::Never || needs.trains);
        Driver {
            controller,
            needs,
            out_of_band: probes.then(|| OutOfBand {
                prober: Prober::new(now, needs.probes),
                trains: TrainCollector::default(),
                waiting: Vec::new(),
                has_reported_block: false,
            }),
            next_tick: (needs.any() && reads_itself).then_some(now),
            ended: false,
            kernel: KernelView::default(),
            effects: VecDeque::new(),
        }
    }

    /// The inputs that the controller needs.
    pub fn needs(&self) -> &Needs {
        &self.needs
    }

    /// The controller's phase.
    pub fn phase(&self) -> SizingPhase {
        self.controller.phase()
    }

    /// Why the controller set its latest window, if it has a reason of its own.
    pub fn window_reason(&self) -> Option<Reason> {
        self.controller.window_reason()
    }

    /// The periodic probes, if there are any.
    pub fn prober(&self) -> Option<&Prober> {
        self.out_of_band.as_ref().map(|o| &o.prober)
    }

    /// `bytes` of payload were read from the connection, and `unread` bytes were left in its buffer. At the
    /// sender, `bytes` of payload were delivered.
    #[inline]
    pub fn handle_data(&mut self, now: Time, bytes: Bytes, unread: Bytes) {
        if let Some(out_of_band) = &mut self.out_of_band {
            out_of_band.prober.handle_data(bytes);
        }
        self.ended &= bytes == Bytes::ZERO;
        if self.needs.data {
            self.give(now, &Input::Data { bytes, unread });
        }
    }

    /// From now on the sender can be reached out of band.
    pub fn handle_reachable(&mut self, now: Time) {
        let Some(out_of_band) = &mut self.out_of_band else { return };
        out_of_band.prober.start(now);
        for request in std::mem::take(&mut out_of_band.waiting) {
            self.ask_train(now, request);
        }
    }

    /// Handles an answer to a probe. Returns the probe's RTT, or `None` if the answer was not valid.
    pub fn handle_answer(
        &mut self,
        now: Time,
        arrived: Time,
        answer: &ProbeAnswer,
    ) -> Option<Duration> {
        let probe = self.out_of_band.as_mut()?.prober.handle_answer(arrived, answer)?;
        self.give(now, &Input::Sender(answer.report));
        self.give(now, &Input::Probe(probe));
        Some(probe.rtt)
    }

    /// Handles the sender's own view, read on this host.
    pub fn handle_sender(&mut self, now: Time, report: &SenderReport) {
        self.give(now, &Input::Sender(*report));
    }

    /// A packet of a train, of `size` bytes on the wire, arrived.
    pub fn handle_train_packet(
        &mut self,
        now: Time,
        arrived: Time,
        size: Bytes,
        packet: TrainPacket,
    ) {
        let Some(out_of_band) = &mut self.out_of_band else { return };
        out_of_band.trains.handle_packet(arrived, size, packet);
        self.end_trains(now);
    }

    /// The kernel's view was read.
    pub fn handle_kernel(&mut self, now: Time, kernel: &KernelView) {
        if self.ended {
            return;
        }
        self.needs = self.controller.needs();
        if let Some(out_of_band) = &mut self.out_of_band {
            out_of_band.prober.set_probing(self.needs.probes);
        }
        let before = std::mem::replace(&mut self.kernel, *kernel);
        let needs = self.needs;
        if let Some(advertised) = kernel.window.filter(|_| needs.window) {
            self.give(now, &Input::Window { advertised });
        }
        if let Some(minimum) = kernel.minimum_rtt
            && needs.minimum_rtt
            && before.minimum_rtt != Some(minimum)
        {
            self.give(now, &Input::MinimumRtt(minimum));
        }
        let segments = kernel.out_of_order.saturating_sub(before.out_of_order);
        if needs.out_of_order && segments > 0 {
            self.give(now, &Input::OutOfOrder { segments });
        }
        let blocked = self.detect_blocked_probes(now, kernel.rtt);
        let stands_in = blocked && needs.probes != Probing::Never;
        if let Some(rtt) = kernel.rtt
            && (needs.kernel_rtt || stands_in)
        {
            self.give(now, &Input::KernelRtt(rtt));
        }
    }

    /// The time of [`Driver::poll_timeout`] has come; `kernel` is the kernel's view now.
    pub fn handle_timeout(&mut self, now: Time, kernel: &KernelView) {
        if let Some(out_of_band) = &mut self.out_of_band
            && let Some(sequence) = out_of_band.prober.handle_timeout(now)
        {
            self.effects.push_back(Effect::Probe { sequence });
        }
        if self.next_tick.is_some_and(|due| due <= now) {
            self.next_tick = Some(now + CONTROL_INTERVAL);
            self.handle_kernel(now, kernel);
        }
        self.end_trains(now);
        if self.controller_due().is_some_and(|due| due <= now) {
            self.give(now, &Input::Timeout);
        }
    }

    /// All connections of the path have ended: every limit is lifted until data arrives again.
    pub fn handle_end(&mut self, now: Time) {
        self.give(now, &Input::End);
        self.ended = true;
        // A new connection's handshake is a new sample, even if it takes equally long.
        self.kernel.minimum_rtt = None;
    }

    /// When to call [`Driver::handle_timeout`] next; [`Time::MAX`]: never.
    pub fn poll_timeout(&self) -> Time {
        let probe = self.out_of_band.as_ref().and_then(|o| o.prober.poll_timeout());
        let train = self.out_of_band.as_ref().and_then(|o| o.trains.poll_timeout());
        let dues = [self.controller_due(), self.next_tick, probe, train];
        dues.into_iter().flatten().fold(Time::MAX, Time::min)
    }

    /// The next effect; `None` if there are no more.
    #[inline]
    pub fn poll_effect(&mut self) -> Option<Effect> {
        self.effects.pop_front()
    }

    fn controller_due(&self) -> Option<Time> {
        if self.ended { None } else { self.controller.poll_timeout() }
    }

    fn give(&mut self, now: Time, input: &Input) {
        if self.ended {
            return;
        }
        self.controller.handle(now, input);
        while let Some(output) = self.controller.poll_output() {
            match output {
                Output::Window(limit) => self.effects.push_back(Effect::Window(limit)),
                Output::Pacing(rate) => self.effects.push_back(Effect::Pacing(rate)),
                Output::Congestion(choice) => self.effects.push_back(Effect::Congestion(choice)),
                Output::Saved(saved) => self.effects.push_back(Effect::Saved(saved)),
                Output::Event(event) => self.effects.push_back(Effect::Event(event)),
                Output::Train(request) => self.request_train(now, request),
            }
        }
    }

    fn request_train(&mut self, now: Time, request: TrainRequest) {
        match &mut self.out_of_band {
            None => self.controller.handle(now, &Input::Train(Train::lost(&request))),
            Some(o) if !o.prober.is_started() => o.waiting.push(request),
            Some(_) => self.ask_train(now, request),
        }
    }

    fn ask_train(&mut self, now: Time, request: TrainRequest) {
        let Some(out_of_band) = &mut self.out_of_band else { return };
        let id = out_of_band.trains.register(now, &request);
        self.effects.push_back(Effect::Train { id, request });
    }

    fn end_trains(&mut self, now: Time) {
        while let Some(train) = self.out_of_band.as_mut().and_then(|o| o.trains.poll(now)) {
            self.give(now, &Input::Train(train));
        }
    }

    /// Whether probes are blocked. If so, trains that wait for probes are given up.
    fn detect_blocked_probes(&mut self, now: Time, kernel_rtt: Option<Duration>) -> bool {
        let Some(out_of_band) = &mut self.out_of_band else { return true };
        if !out_of_band.prober.is_blocked(now, kernel_rtt) {
            return false;
        }
        if !std::mem::replace(&mut out_of_band.has_reported_block, true) {
            self.effects.push_back(Effect::ProbesBlocked);
        }
        for request in std::mem::take(&mut out_of_band.waiting) {
            self.give(now, &Input::Train(Train::lost(&request)));
        }
        true
    }
}
