//! Events at a receiver or a paced sender, as a function of bytes: whatever a sender, a path and a kernel do, a controller
//! keeps its contract. Run by the fuzz target (`cargo +nightly fuzz run driver`) and by the property tests of
//! `sweetspot-sizing`.

#![allow(dead_code, reason = "a target uses the one half, tests the other")]

use sweetspot_sizing::{
    CongestionChoice, CongestionState, Controller, ControllerConfig, Driver, Effect, Input,
    InputSource, KernelView, Needs, Output, ProbeAnswer, Rledbat, SavedWindow, SenderReport,
    Sizing, SizingPhase, TrainPacket, TrainRequest, Upload,
};
use sweetspot_units::{Bytes, Duration, Rate, Time};

/// The controllers that need no facts about the path: sizings, uploads and background transfers.
pub const SIZINGS: [&str; 21] = [
    "kernel",
    "fixed",
    "max",
    "drs",
    "heffner",
    "heffner:twice",
    "linux:6.15",
    "linux",
    "sobas",
    "sobas:paper",
    "sobas:live",
    "rledbat",
    "upload",
    "upload:resumed",
    "upload:background",
    "heffner:read",
    "heffner:no-timestamps",
    "drs:maxwnd",
    "wad",
    "nlanr",
    "background",
];

/// The sources from which a controller may get its inputs.
pub const MEANS: [InputSource; 4] = [
    InputSource::OutOfBand,
    InputSource::Kernel,
    InputSource::Caller,
    InputSource::CallerAndOutOfBand,
];

/// Maximum windows that hosts allow: almost nothing, less than a segment, the largest window without scaling, the usual, and
/// too much.
pub const WINDOWS: [u64; 5] = [1, 1000, 65_535, 6_000_000, 1 << 40];

const SECOND: Duration = Duration::from_secs(1);

/// Feeds a script to one controller of each kind; the first bytes select the input source and the host.
pub fn driver(data: &[u8]) {
    let [means, window, script @ ..] = data else { return };
    let means = MEANS[usize::from(*means) % MEANS.len()];
    let max_window = WINDOWS[usize::from(*window) % WINDOWS.len()];
    for sizing in SIZINGS {
        simulate(sizing, means, max_window, script);
    }
}

/// Feeds a script to the controller of `sizing`, and returns all of its actions.
pub fn simulate(sizing: &str, means: InputSource, max_window: u64, script: &[u8]) -> Vec<Effect> {
    // A pacing sender has no window of its own: its saved value is the path's rate.
    let max = if sizing.starts_with("upload") { u64::MAX } else { max_window };
    let mut world = World::new(controller(sizing, max_window), means, max);
    let mut script = Script { rest: script };
    while let Some(kind) = script.byte() {
        world.step(kind, &mut script);
    }
    world.end();
    world.done
}

fn controller(sizing: &str, max_window: u64) -> Box<dyn Controller + Send> {
    let config = ControllerConfig {
        mss: Bytes::new(1448),
        packet: Bytes::new(1500),
        max_window: Bytes::new(max_window),
        size: None,
        path: None,
    };
    let sizing: Sizing = match sizing {
        "background" => return Box::new(Rledbat::background(&config)),
        "upload" => return Box::new(Upload::default()),
        "upload:background" => return Box::new(Upload::background(config.mss)),
        "upload:resumed" => {
            let window = Bytes::new(max_window);
            let saved = SavedWindow { window, minimum_rtt: Duration::from_millis(40) };
            return Box::new(Upload::resumed(Time::ZERO, saved));
        }
        "fixed" => format!("fixed:{}B", max_window.div_ceil(2)).parse(),
        other => other.parse(),
    }
    .expect("a sizing");
    sizing.controller(&config).expect("one that needs nothing else")
}

/// Numbers decoded from bytes; after the end all are zero.
struct Script<'a> {
    rest: &'a [u8],
}

impl Script<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (byte, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*byte)
    }

    /// A number from 0 to `max`, with all magnitudes equally likely.
    fn number(&mut self, max: u64) -> u64 {
        let (size, digits) = (self.byte().unwrap_or(0), self.byte().unwrap_or(0));
        (u64::from(digits) << (size % 40)).min(max)
    }

    fn micros(&mut self, max: Duration) -> Duration {
        Duration::from_micros(self.number(max.as_micros()))
    }

    fn report(&mut self) -> SenderReport {
        let flags = self.byte().unwrap_or(0);
        let states = [
            CongestionState::Open,
            CongestionState::Disorder,
            CongestionState::Reduced,
            CongestionState::Recovery,
            CongestionState::Loss,
        ];
        SenderReport {
            retransmitted: self.number(u64::MAX),
            cwnd: Bytes::new(self.number(u64::MAX)),
            ssthresh: (flags & 1 != 0).then(|| Bytes::new(self.number(u64::MAX))),
            in_flight: Bytes::new(self.number(u64::MAX)),
            delivery_rate: Rate::from_bits_per_second(self.number(u64::MAX)),
            app_limited: flags & 2 != 0,
            busy: self.micros(SECOND * 1000),
            window_limited: self.micros(SECOND * 1000),
            minimum_rtt: self.micros(SECOND * 10),
            state: states[usize::from(flags >> 4) % states.len()],
            reordering: self.number(300) as u32,
            dsacks: self.number(1000) as u32,
            marked: self.number(1000) as u32,
            starved: flags & 4 != 0,
        }
    }
}

/// A receiver, its kernel, and the effects of the controller's actions.
struct World {
    driver: Driver,
    now: Time,
    max_window: Bytes,
    kernel: KernelView,
    /// The current limit, once the controller has requested one.
    window: Option<Option<Bytes>>,
    pacing: Option<Option<Rate>>,
    congestion: Option<CongestionChoice>,
    /// Probes and trains sent so far.
    probes: Vec<u32>,
    answers: u32,
    trains: Vec<(u32, TrainRequest)>,
    /// The min RTT measured.
    min_rtt: Duration,
    done: Vec<Effect>,
}

impl World {
    fn new(controller: Box<dyn Controller + Send>, means: InputSource, max_window: u64) -> World {
        let controller = Checked { inner: controller, now: Time::ZERO, timed_out: false };
        World {
            driver: Driver::new(Box::new(controller), Time::ZERO, means),
            now: Time::ZERO,
            max_window: Bytes::new(max_window),
            kernel: KernelView::default(),
            window: None,
            pacing: None,
            congestion: None,
            probes: Vec::new(),
            answers: 0,
            trains: Vec::new(),
            min_rtt: SECOND,
            done: Vec::new(),
        }
    }

    fn step(&mut self, kind: u8, script: &mut Script<'_>) {
        match kind % 11 {
            0 => self.wait(script.micros(SECOND * 5)),
            1 => {
                let bytes = Bytes::new(script.number(1 << 26));
                let unread = Bytes::new(script.number(1 << 26));
                self.driver.handle_data(self.now, bytes, unread);
            }
            2 => {
                let probe = usize::from(script.byte().unwrap_or(0));
                let skipped = u32::from(script.byte().unwrap_or(0) / 64);
                let held = script.micros(SECOND);
                let report = script.report();
                self.answer(probe, skipped, held, report);
            }
            3 => {
                // Part of a packet train.
                let [train, index] = [0; 2].map(|_: u8| script.byte().unwrap_or(0));
                if let Some((id, request)) = self.trains.get(usize::from(train)).copied() {
                    let part = TrainPacket { train: id, index: index.into() };
                    self.driver.handle_train_packet(self.now, self.now, request.size, part);
                }
            }
            4 => {
                // All of the latest train.
                let gap = script.micros(SECOND / 10);
                if let Some((id, request)) = self.trains.last().copied() {
                    for index in 0..request.packets.min(300) {
                        let part = TrainPacket { train: id, index };
                        let arrived = self.now + gap * u64::from(index);
                        self.driver.handle_train_packet(arrived, arrived, request.size, part);
                        self.now = arrived;
                    }
                }
            }
            5 => {
                let flags = script.byte().unwrap_or(0);
                self.kernel.rtt = script.micros(SECOND * 10).nonzero();
                self.kernel.minimum_rtt = script.micros(SECOND * 10).nonzero();
                self.kernel.out_of_order += u64::from(flags);
                self.kernel.window = (flags & 1 != 0).then(|| Bytes::new(script.number(1 << 40)));
                self.driver.handle_kernel(self.now, &self.kernel);
            }
            6 => self.driver.handle_reachable(self.now),
            7 => self.end(),
            8 => self.driver.handle_sender(self.now, &script.report()),
            _ => self.flow(script),
        }
        self.perform();
    }

    /// A regular transfer for a while: data, replies and RTTs as on a real path.
    fn flow(&mut self, script: &mut Script<'_>) {
        let rtt = Duration::from_micros(100) + script.micros(SECOND / 2);
        let queue = script.micros(SECOND / 2);
        let bytes = Bytes::new(script.number(1 << 22));
        let report = script.report();
        let rounds = script.byte().unwrap_or(0);
        self.kernel.rtt = Some(rtt + queue);
        self.kernel.minimum_rtt = Some(rtt);
        for _ in 0..rounds {
            self.driver.handle_sender(self.now, &report);
            self.driver.handle_data(self.now, bytes, Bytes::ZERO);
            self.driver.handle_kernel(self.now, &self.kernel);
            self.perform();
            self.wait(Duration::from_millis(10));
            self.answer(0, 0, Duration::ZERO, report);
        }
    }

    /// Answers the probe sent `before` probes before the last.
    fn answer(&mut self, before: usize, skipped: u32, held: Duration, report: SenderReport) {
        let at = self.probes.len().checked_sub(before + 1);
        let Some(probe) = at.and_then(|at| self.probes.get(at).copied()) else { return };
        let sequence = self.answers + skipped;
        self.answers = sequence + 1;
        let answer = ProbeAnswer { probe, sequence, held, report };
        let rtt = self.driver.handle_answer(self.now, self.now, &answer);
        self.min_rtt = self.min_rtt.min(rtt.unwrap_or(SECOND));
        self.perform();
    }

    /// Lets time pass, without any other event.
    fn wait(&mut self, pause: Duration) {
        self.perform();
        for rtt in [self.kernel.rtt, self.kernel.minimum_rtt].into_iter().flatten() {
            self.min_rtt = self.min_rtt.min(rtt);
        }
        let (until, mut called) = (self.now + pause, 0);
        while self.driver.poll_timeout() <= until {
            self.now = self.now.max(self.driver.poll_timeout());
            self.driver.handle_timeout(self.now, &self.kernel);
            assert!(self.driver.poll_timeout() > self.now, "due again at once");
            self.perform();
            called += 1;
        }
        self.now = until;
        // The kernel is sampled every 10 ms, the sender every 20 ms; a controller has at most two timers per min RTT, here
        // clamped to 20 us to 10 ms.
        let min = self.min_rtt.clamp(Duration::from_micros(20), SECOND / 100);
        let max = 100 + 2 * pause.as_nanos() / min.as_nanos();
        assert!(called <= max, "called {called} times in {} us", pause.as_micros());
    }

    /// All connections have ended: requests are withdrawn, and none follows while nothing arrives.
    fn end(&mut self) {
        self.perform();
        self.driver.handle_end(self.now);
        self.perform();
        self.assert_lifted("at the end");
        self.wait(SECOND * 3);
        self.assert_lifted("after the end");
    }

    fn assert_lifted(&self, when: &str) {
        assert_eq!(self.window.flatten(), None, "a window {when}");
        assert_eq!(self.pacing.flatten(), None, "a pace {when}");
        let own = [None, Some(CongestionChoice::Own)];
        assert!(own.contains(&self.congestion), "{:?} {when}", self.congestion);
    }

    fn perform(&mut self) {
        while let Some(effect) = self.driver.poll_effect() {
            match effect {
                Effect::Window(window) => {
                    if let Some(window) = window {
                        let range = Bytes::new(1)..=self.max_window;
                        assert!(range.contains(&window), "a window of {window}");
                    }
                    self.window = Some(window);
                }
                Effect::Pacing(rate) => {
                    assert!(rate != Some(Rate::ZERO), "a sender that may send nothing");
                    self.pacing = Some(rate);
                }
                Effect::Congestion(choice) => self.congestion = Some(choice),
                Effect::Probe { sequence } => self.probes.push(sequence),
                Effect::Train { id, request } => self.trains.push((id, request)),
                Effect::Saved(saved) => {
                    let range = Bytes::new(1)..=self.max_window;
                    assert!(saved.is_none_or(|saved| range.contains(&saved.window)), "{saved:?}");
                }
                Effect::Event(event) => assert!(event.at <= self.now, "told before it happened"),
                _ => {}
            }
            self.done.push(effect);
        }
    }
}

/// A controller with checked calls and timers.
struct Checked {
    inner: Box<dyn Controller + Send>,
    now: Time,
    timed_out: bool,
}

impl Controller for Checked {
    fn handle(&mut self, now: Time, input: &Input) {
        assert!(now >= self.now, "time goes backwards");
        self.now = now;
        self.timed_out = *input == Input::Timeout;
        self.inner.handle(now, input);
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.inner.poll_timeout()
    }

    fn poll_output(&mut self) -> Option<Output> {
        let output = self.inner.poll_output();
        if output.is_none() && std::mem::take(&mut self.timed_out) {
            let due = self.inner.poll_timeout();
            assert!(due.is_none_or(|due| due > self.now), "due again at once: {due:?}");
        }
        output
    }

    fn needs(&self) -> Needs {
        self.inner.needs()
    }

    fn phase(&self) -> SizingPhase {
        self.inner.phase()
    }
}
