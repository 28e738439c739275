//! A controller with scripted measurements. The path carries C = 100 Mbit/s of payload over T = 100 ms. The target queue q, 3 %
//! of T, is 3 ms, and an epoch lasts a round trip.

use sweetspot_sizing::{
    CongestionChoice, Controller, EventKind, Input, Output, Probe, Reason, SenderReport, Sizing,
    SizingPhase, Train,
};
use sweetspot_units::{Bytes, Duration, Rate, Time};

use crate::fluid::{MSS, PACKET, controller};

/// Payload bytes that the path carries per second.
pub(crate) const C: f64 = 12.5e6;
pub(crate) const T: f64 = 0.1;
pub(crate) const Q: f64 = 0.003;
pub(crate) const BDP: f64 = C * T;

/// A controller with scripted measurements, and its requests.
pub(crate) struct Script {
    pub(crate) controller: Box<dyn Controller + Send>,
    pub(crate) probes: bool,
    pub(crate) ms: u64,
    /// The trains' rate relative to the path's, and the extra factor of every second train.
    pub(crate) train_error: f64,
    pub(crate) train_spread: f64,
    pub(crate) trains: u64,
    pub(crate) windows: Vec<(f64, f64)>,
    pub(crate) pacing: Option<Rate>,
    pub(crate) congestion: CongestionChoice,
    pub(crate) entered: Vec<(f64, SizingPhase, Reason)>,
    pub(crate) saved: Option<f64>,
}

impl Script {
    pub(crate) fn new(sizing: Sizing) -> Script {
        let mut controller = controller(sizing, 33_554_432);
        let began = Time::from_nanos(1);
        controller.handle(began, &Input::MinimumRtt(Duration::from_secs_f64(T)));
        Script {
            controller,
            probes: sizing == Sizing::Sobas,
            ms: 0,
            train_error: 1.0,
            train_spread: 1.0,
            trains: 0,
            windows: Vec::new(),
            pacing: None,
            congestion: CongestionChoice::Own,
            entered: Vec::new(),
            saved: None,
        }
    }

    /// A controller that has held the window at the capacity, with the queue q, since about 0.4 s.
    pub(crate) fn held() -> Script {
        let mut script = Script::new(Sizing::Sobas);
        script.run(2.0, 1.0, Q, 0);
        assert_eq!(script.phase(), Some(SizingPhase::Holding));
        script
    }

    pub(crate) fn now(&self) -> Time {
        Time::from_nanos(self.ms * 1_000_000 + 1)
    }

    pub(crate) fn seconds(&self) -> f64 {
        self.ms as f64 / 1e3
    }

    /// Reports this many retransmissions since the beginning, with a congestion window of `cwnd` after slow start.
    pub(crate) fn report(&mut self, retransmitted: u64, cwnd: f64) {
        let cwnd = Bytes::from_f64(cwnd);
        let ssthresh = Some(cwnd);
        self.handle(&Input::Sender(SenderReport {
            cwnd,
            ssthresh,
            retransmitted,
            ..SenderReport::default()
        }));
    }

    /// Lets `share` of the capacity arrive for `seconds`, with a queue of `queue` seconds. The first probe finds `lost` packets
    /// lost.
    pub(crate) fn run(&mut self, seconds: f64, share: f64, queue: f64, lost: u64) {
        let (mut lost, steps) = (lost, (seconds * 1e3).round() as u64);
        for _ in 0..steps {
            self.ms += 1;
            let bytes = Bytes::from_f64(share * C / 1e3);
            self.handle(&Input::Data { bytes, unread: Bytes::ZERO });
            if self.ms.is_multiple_of(20) {
                let rtt = Duration::from_secs_f64(T + queue);
                let forward_lost = std::mem::take(&mut lost);
                if self.probes {
                    self.handle(&Input::Probe(Probe { rtt, forward_lost }));
                } else {
                    self.handle(&Input::KernelRtt(rtt));
                    if forward_lost > 0 {
                        self.handle(&Input::OutOfOrder { segments: forward_lost });
                    }
                }
            }
            if self.controller.poll_timeout().is_some_and(|due| due <= self.now()) {
                self.handle(&Input::Timeout);
            }
        }
    }

    pub(crate) fn handle(&mut self, input: &Input) {
        self.controller.handle(self.now(), input);
        while let Some(output) = self.controller.poll_output() {
            match output {
                Output::Window(window) => {
                    let window = window.map_or(f64::INFINITY, Bytes::as_f64);
                    self.windows.push((self.seconds(), window));
                }
                Output::Pacing(pacing) => self.pacing = pacing,
                Output::Congestion(choice) => self.congestion = choice,
                Output::Saved(saved) => self.saved = saved.map(|saved| saved.window.as_f64()),
                Output::Train(request) => {
                    self.trains += 1;
                    let gaps = f64::from(request.packets - 1) * request.size.as_f64();
                    let spread =
                        if self.trains.is_multiple_of(2) { self.train_spread } else { 1.0 };
                    let wire = C * PACKET / MSS * self.train_error * spread;
                    let train = Train {
                        sent: request.packets,
                        received: request.packets,
                        bytes_after_first: Bytes::from_f64(gaps),
                        dispersion: Duration::from_secs_f64(gaps / wire),
                    };
                    self.handle(&Input::Train(train));
                }
                Output::Event(event) => {
                    if let EventKind::Entered { phase, reason } = event.kind {
                        self.entered.push((self.seconds(), phase, reason));
                    }
                }
                other => panic!("no row for {other:?}"),
            }
        }
    }

    pub(crate) fn phase(&self) -> Option<SizingPhase> {
        self.entered.last().map(|(_, phase, _)| *phase)
    }

    pub(crate) fn window(&self) -> f64 {
        self.windows.last().expect("a limit").1
    }

    /// The time in epochs after `since` at which the path was opened, and the reason.
    pub(crate) fn opened(&self, since: f64) -> Option<(f64, Reason)> {
        let opens = |entered: &&(f64, SizingPhase, Reason)| {
            entered.0 > since && entered.1 == SizingPhase::Open
        };
        self.entered.iter().find(opens).map(|(at, _, reason)| ((at - since) / T, *reason))
    }
}

/// Compares to within a segment: rates are whole bits, times whole nanoseconds.
pub(crate) fn assert_near(found: f64, expected: f64) {
    assert!((found - expected).abs() <= MSS, "{found} for {expected}");
}

pub(crate) fn assert_pace(script: &Script, share: f64) {
    let pace = script.pacing.expect("a pace").as_f64() / 8.0;
    assert!((pace / (share * C) - 1.0).abs() < 0.002, "{pace}");
}
