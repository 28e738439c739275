use std::collections::VecDeque;

use sweetspot_units::{Bytes, Duration, Time};

use crate::model::Trains;
use crate::{
    Controller, ControllerConfig, EventKind, Input, Needs, Output, Probing, SizingEvent,
    SizingPhase,
};

/// A static scheme that measures its own bandwidth-delay product once, at the start, and keeps that window.
///
/// The schemes measure with their own programs before the transfer. Here, five packet trains and probes measure during its first
/// window.
#[derive(Debug)]
pub struct MeasuredBdp {
    config: ControllerConfig,
    scheme: StaticScheme,
    trains: Trains,
    latest_rtt: Option<Duration>,
    minimum_rtt: Option<Duration>,
    /// For each train, its rate times the RTT at that time, in bytes.
    products: Vec<Bytes>,
    state: SchemeState,
    outputs: VecDeque<Output>,
}

/// A static scheme of the SOBAS paper's section II.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StaticScheme {
    /// `wad`: the Work Around Daemon (Dunigan, Mathis, Tierney 2002): the minimum RTT by ping times the capacity by pipechar.
    Wad,
    /// `nlanr`: NLANR's automatically tuned FTP: the median of several bandwidth-delay products.
    Nlanr,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SchemeState {
    New,
    Measuring,
    /// The window is set for good, or nothing could be measured.
    Decided,
}

/// The window until then: the common default of the time.
const INITIAL: Bytes = Bytes::new(65_535);

impl StaticScheme {
    /// The name, as in `--sizing`.
    pub fn name(self) -> &'static str {
        match self {
            StaticScheme::Wad => "wad",
            StaticScheme::Nlanr => "nlanr",
        }
    }
}

impl MeasuredBdp {
    /// A controller before the first byte.
    pub fn new(config: &ControllerConfig, scheme: StaticScheme) -> MeasuredBdp {
        MeasuredBdp {
            config: *config,
            scheme,
            trains: Trains::new(config),
            latest_rtt: None,
            minimum_rtt: None,
            products: Vec::new(),
            state: SchemeState::New,
            outputs: VecDeque::new(),
        }
    }

    fn limit(&mut self, now: Time, window: Bytes) {
        // A window below one segment would stop the sender.
        let min = self.config.mss.min(self.config.max_window);
        let window = window.clamp(min, self.config.max_window);
        self.outputs.push_back(Output::Window(Some(window)));
        let kind = EventKind::Limited { window };
        self.outputs.push_back(Output::Event(SizingEvent { at: now, kind }));
    }

    fn handle_rtt(&mut self, rtt: Duration) {
        self.latest_rtt = Some(rtt);
        self.minimum_rtt = Some(self.minimum_rtt.map_or(rtt, |min| min.min(rtt)));
    }

    fn advance(&mut self, now: Time) {
        if self.state == SchemeState::New {
            self.state = SchemeState::Measuring;
            self.limit(now, INITIAL);
        }
        if self.state != SchemeState::Measuring {
            return;
        }
        while let Some(request) = self.trains.poll_request(now) {
            self.outputs.push_back(Output::Train(request));
        }
        if self.trains.are_over(now) {
            self.state = SchemeState::Decided;
            if let Some(window) = self.product() {
                self.limit(now, window);
            }
        }
    }

    /// The scheme's bandwidth-delay product; `None` if too little could be measured.
    fn product(&mut self) -> Option<Bytes> {
        match self.scheme {
            StaticScheme::Wad => Some(self.trains.estimate()? * self.minimum_rtt?),
            StaticScheme::Nlanr => {
                self.products.sort_unstable();
                self.products.get(self.products.len() / 2).copied()
            }
        }
    }
}

impl Controller for MeasuredBdp {
    fn handle(&mut self, now: Time, input: &Input) {
        match *input {
            Input::Data { .. } => self.trains.handle_data(now),
            Input::Probe(probe) => {
                self.handle_rtt(probe.rtt);
                self.trains.handle_probe(now);
            }
            Input::KernelRtt(rtt) => self.handle_rtt(rtt),
            Input::Train(train) => {
                if let Some((rate, rtt)) = train.rate().zip(self.latest_rtt) {
                    self.products.push(rate * rtt);
                }
                let rtt = self.latest_rtt.unwrap_or(Duration::MAX);
                self.trains.handle_train(now, &train, rtt);
            }
            Input::Timeout => {}
            Input::End => {
                *self = MeasuredBdp::new(&self.config, self.scheme);
                self.outputs.push_back(Output::Window(None));
                return;
            }
            Input::Sender(_)
            | Input::MinimumRtt(_)
            | Input::OutOfOrder { .. }
            | Input::Window { .. } => return,
        }
        self.advance(now);
    }

    fn poll_timeout(&self) -> Option<Time> {
        match self.state {
            SchemeState::New => Some(Time::ZERO),
            SchemeState::Measuring => self.trains.poll_timeout(),
            SchemeState::Decided => None,
        }
    }

    fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    fn needs(&self) -> Needs {
        let probes =
            if self.state == SchemeState::Decided { Probing::Never } else { Probing::Periodic };
        Needs { probes, trains: true, data: true, ..Needs::NOTHING }
    }

    fn phase(&self) -> SizingPhase {
        match self.state {
            SchemeState::New | SchemeState::Measuring => SizingPhase::Measuring,
            SchemeState::Decided => SizingPhase::Holding,
        }
    }
}
