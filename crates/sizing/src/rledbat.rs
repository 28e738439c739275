use std::collections::VecDeque;

use sweetspot_units::{Bytes, Duration, Rate, Time};

use crate::linux::INITIAL_SEGMENTS;
use crate::target_delay::{MIN_SEGMENTS, TARGET_DELAY, TargetDelay};
use crate::{
    CONTROL_INTERVAL, Controller, ControllerConfig, EventKind, Input, Needs, Output, Reason,
    SizingEvent, SizingPhase,
};

/// Slow start ends at this share of the target (LEDBAT++ section 4.4).
const SLOW_START_TARGET_SHARE: f64 = 0.75;

/// Duration of a slowdown in round trips, and time from the end of slow start to the first slowdown (section 4.4).
const SLOWDOWN_ROUNDS: u32 = 2;

/// Time between slowdowns, as a multiple of the last slowdown's duration (section 4.4).
const SLOWDOWN_INTERVAL_FACTOR: u64 = 9;

/// rLEDBAT (RFC 9840): a less-than-best-effort receiver. On an idle path it grows like other transfers. It shrinks as soon as
/// the queueing delay of all traffic exceeds the target, and slows down periodically to measure the path without its own queue.
#[derive(Debug)]
pub struct Rledbat {
    mss: Bytes,
    max: Bytes,
    window: Bytes,
    state: RledbatState,
    base: Option<Duration>,
    lowest: Option<Duration>,
    highest: Option<Duration>,
    lost: bool,
    /// Whether losses lower the target.
    is_background: bool,
    /// Whether it slows down periodically.
    has_slowdowns: bool,
    target: TargetDelay,
    round_ends: Option<Time>,
    round_began: Time,
    /// Payload read in this round.
    arrived: Bytes,
    /// The window that the kernel last advertised; `None` if it does not report that.
    advertised: Option<Bytes>,
    /// The highest rate of a round with a queue above the target: alone, the path's capacity.
    capacity: Rate,
    pressure: Pressure,
    /// Why the latest window was set; `None` before the first.
    reason: Option<Reason>,
    outputs: VecDeque<Output>,
}

/// The queue above the target, as reported by events.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Pressure {
    /// None so far, or a queue of cross traffic has ended.
    None,
    /// A queue that may be this transfer's own.
    Queue,
    /// A queue of cross traffic, to which it yields.
    Cross,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum RledbatState {
    /// Slow start up to `limit`.
    SlowStart { limit: Bytes, since: Time },
    /// Congestion avoidance until the next slowdown.
    Steady { slowdown: Time },
    /// At the smallest window until the `unused` bytes of the window advertised before have arrived, then for `rounds` more
    /// rounds, then slow start up to `back_to`.
    Slowdown { rounds: u32, back_to: Bytes, since: Time, unused: Bytes },
}

impl Rledbat {
    /// A controller before the first byte.
    pub fn new(config: &ControllerConfig) -> Rledbat {
        Rledbat {
            mss: config.mss,
            max: config.max_window,
            window: config.mss * INITIAL_SEGMENTS,
            state: RledbatState::SlowStart { limit: config.max_window, since: Time::ZERO },
            base: None,
            lowest: None,
            highest: None,
            lost: false,
            is_background: false,
            has_slowdowns: true,
            target: TargetDelay::default(),
            round_ends: None,
            round_began: Time::ZERO,
            arrived: Bytes::ZERO,
            advertised: None,
            capacity: Rate::ZERO,
            pressure: Pressure::None,
            reason: None,
            outputs: VecDeque::new(),
        }
    }

    /// A controller that also yields on paths that lose packets before the delay reaches RFC 9840's target. Such a path has a
    /// small buffer, or its queue was never empty during the transfer. A loss lowers the target.
    pub fn background(config: &ControllerConfig) -> Rledbat {
        Rledbat { is_background: true, ..Rledbat::new(config) }
    }

    /// For a dry run, in which a slowdown would drain no queue.
    pub fn without_slowdowns(self) -> Rledbat {
        Rledbat { has_slowdowns: false, ..self }
    }

    /// Starts again, and keeps only the base RTT.
    fn restart(&mut self) {
        self.window = self.mss * INITIAL_SEGMENTS;
        self.state = RledbatState::SlowStart { limit: self.max, since: Time::ZERO };
        (self.lowest, self.highest, self.lost, self.round_ends) = (None, None, false, None);
        (self.target, self.arrived, self.advertised) = (TargetDelay::default(), Bytes::ZERO, None);
        (self.capacity, self.pressure, self.reason) = (Rate::ZERO, Pressure::None, None);
        self.outputs.push_back(Output::Window(None));
    }

    fn min(&self) -> Bytes {
        (self.mss * MIN_SEGMENTS).min(self.max)
    }

    /// The part of the window that the sender may use. The kernel advertises less than the limit if its buffer is smaller.
    fn used(&self) -> Bytes {
        self.advertised.map_or(self.window, |advertised| advertised.min(self.window))
    }

    fn set(&mut self, now: Time, window: Bytes, reason: Reason) {
        let window = window.clamp(self.min(), self.max);
        if window != self.window || self.reason.is_none() {
            (self.window, self.reason) = (window, Some(reason));
            self.outputs.push_back(Output::Window(Some(window)));
            let kind = EventKind::Limited { window };
            self.outputs.push_back(Output::Event(SizingEvent { at: now, kind }));
        }
    }

    /// Reports a queue that exceeds the target, its origin once that is known, and its end. A slowdown drains only this
    /// transfer's own queue, so it ends nothing. Returns whether it reported something.
    fn report(&mut self, now: Time, delay: Duration, rate: Option<Rate>, target: Duration) -> bool {
        if !matches!(self.state, RledbatState::Steady { .. }) {
            return false;
        }
        let is_long = delay > target;
        let is_foreign = rate.filter(|_| is_long).is_some_and(|rate| {
            self.capacity = self.capacity.max(rate);
            // In a FIFO queue, a flow's share of the queue is its share of the rate. The rest is cross traffic's.
            let own = delay.as_secs_f64() * rate.as_f64() / self.capacity.as_f64();
            delay.as_secs_f64() - own > target.as_secs_f64()
        });
        let is_short = delay < target.scaled(SLOW_START_TARGET_SHARE);
        let (pressure, phase, reason) = match self.pressure {
            Pressure::None | Pressure::Queue if is_foreign => {
                (Pressure::Cross, SizingPhase::Holding, Reason::CrossTrafficQueue)
            }
            Pressure::None if is_long => {
                (Pressure::Queue, SizingPhase::Holding, Reason::QueueAboveTarget)
            }
            Pressure::Cross if is_short => {
                (Pressure::None, SizingPhase::Ramping, Reason::QueueGone)
            }
            _ => return false,
        };
        self.pressure = pressure;
        let kind = EventKind::Entered { phase, reason };
        self.outputs.push_back(Output::Event(SizingEvent { at: now, kind }));
        true
    }

    /// Adjusts the window, once per round trip.
    fn round(&mut self, now: Time, delay: Duration, base: Duration, arrived: Bytes, rate: Rate) {
        let lost = std::mem::take(&mut self.lost);
        let target = self.target.get();
        // While a segment is missing, data arrive but are not read.
        let has_reported = self.report(now, delay, (!lost).then_some(rate), target);
        let by_queue = match delay > target {
            true => Reason::QueueAboveTarget,
            false => Reason::QueueBelowTarget,
        };
        // A transfer that is already running keeps its rate.
        let running = if self.reason.is_none() { arrived } else { Bytes::ZERO };
        match self.state {
            RledbatState::SlowStart { limit, since } => {
                if lost || delay > target.scaled(SLOW_START_TARGET_SHARE) || self.window >= limit {
                    // A slowdown's duration includes the slow start back to its old window.
                    let pause = if since == Time::ZERO {
                        base * u64::from(SLOWDOWN_ROUNDS)
                    } else {
                        now.since(since) * SLOWDOWN_INTERVAL_FACTOR
                    };
                    self.state = RledbatState::Steady { slowdown: now + pause };
                    self.window = self.window.max(running);
                    match lost {
                        true => self.set(now, self.used() / 2, Reason::PacketLost),
                        false => self.set(now, self.window, by_queue),
                    }
                } else {
                    let is_first = since == Time::ZERO;
                    let reason = if is_first { by_queue } else { Reason::SlowdownOver };
                    self.set(now, (self.window * 2).max(running).min(limit), reason);
                }
            }
            // The window of a round with a report is the one that the report is about, not a slowdown's.
            RledbatState::Steady { slowdown }
                if now >= slowdown && self.has_slowdowns && !has_reported =>
            {
                // The sender may use all of an advertised window (RFC 9293, section 3.8.6), which allowed at least what arrived.
                let unused = self.advertised.unwrap_or(arrived);
                let (rounds, back_to, since) = (SLOWDOWN_ROUNDS, self.window, now);
                self.state = RledbatState::Slowdown { rounds, back_to, since, unused };
                self.set(now, self.min(), Reason::Slowdown);
            }
            RledbatState::Steady { .. } if lost => {
                self.set(now, self.used() / 2, Reason::PacketLost);
            }
            RledbatState::Steady { .. } => {
                // GAIN = 1 / min(16, ceil(2 TARGET / base)), and the multiplicative decrease
                // W - W (delay / TARGET - 1), at most to half (LEDBAT++ section 4.2).
                let steps = (TARGET_DELAY * 2).as_nanos().div_ceil(base.as_nanos().max(1)).min(16);
                let gain = self.mss.as_f64() / steps as f64;
                let over = (delay.as_secs_f64() / target.as_secs_f64() - 1.0).max(0.0);
                let window = if over > 0.0 { self.used() } else { self.window }.as_f64();
                let change = (gain - window * over).max(-window / 2.0);
                self.set(now, Bytes::from_f64(window + change), by_queue);
            }
            RledbatState::Slowdown { rounds: 0, back_to, since, .. } => {
                self.state = RledbatState::SlowStart { limit: back_to, since };
            }
            RledbatState::Slowdown { rounds, back_to, since, unused } => {
                let unused = unused.saturating_sub(arrived);
                let rounds = rounds - u32::from(unused == Bytes::ZERO);
                self.state = RledbatState::Slowdown { rounds, back_to, since, unused };
            }
        }
    }

    fn advance(&mut self, now: Time) {
        let Some(base) = self.base else { return };
        let length = self.lowest.unwrap_or(base).max(CONTROL_INTERVAL);
        let Some(ends) = self.round_ends else {
            (self.round_began, self.round_ends) = (now, Some(now + length));
            self.arrived = Bytes::ZERO;
            return;
        };
        if now < ends {
            return;
        }
        let began = std::mem::replace(&mut self.round_began, now);
        let arrived = std::mem::take(&mut self.arrived);
        let rate = arrived / now.since(began);
        self.round_ends = Some(now + length);
        let longest = self.highest.take().map(|highest| highest.saturating_sub(base));
        if self.lost && self.is_background {
            self.target.handle_loss(longest);
        }
        if let Some(lowest) = self.lowest.take() {
            self.round(now, lowest.saturating_sub(base), base, arrived, rate);
        }
    }
}

impl Controller for Rledbat {
    fn handle(&mut self, now: Time, input: &Input) {
        match *input {
            Input::KernelRtt(rtt) => {
                self.base = Some(self.base.map_or(rtt, |base| base.min(rtt)));
                self.lowest = Some(self.lowest.map_or(rtt, |lowest| lowest.min(rtt)));
                self.highest = self.highest.max(Some(rtt));
            }
            Input::MinimumRtt(rtt) => {
                self.base = Some(self.base.map_or(rtt, |base| base.min(rtt)));
            }
            Input::OutOfOrder { segments } => self.lost |= segments > 0,
            Input::Data { bytes, .. } => self.arrived += bytes,
            Input::Window { advertised } => {
                self.advertised = Some(advertised);
                return;
            }
            Input::Timeout => {}
            Input::End => return self.restart(),
            Input::Probe(_) | Input::Sender(_) | Input::Train(_) => return,
        }
        self.advance(now);
    }
    fn poll_timeout(&self) -> Option<Time> {
        self.round_ends
    }
    fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }
    fn needs(&self) -> Needs {
        Needs { minimum_rtt: true, out_of_order: true, window: true, ..Needs::KERNEL }
    }
    fn phase(&self) -> SizingPhase {
        match self.state {
            RledbatState::SlowStart { .. } => SizingPhase::Ramping,
            RledbatState::Steady { .. } | RledbatState::Slowdown { .. } => SizingPhase::Holding,
        }
    }
    fn window_reason(&self) -> Option<Reason> {
        self.reason
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1448;

    /// A controller, in rounds.
    struct Rounds {
        controller: Rledbat,
        now: Time,
    }

    impl Rounds {
        fn new(new: fn(&ControllerConfig) -> Rledbat) -> Rounds {
            let (mss, max_window) = (Bytes::new(MSS), Bytes::new(6 << 20));
            let config = ControllerConfig { mss, packet: mss, max_window, size: None, path: None };
            Rounds { controller: new(&config), now: Time::ZERO }
        }

        /// A round of `rtt` milliseconds with `inputs` early in it. Returns the reason for the window.
        fn round(&mut self, rtt: u64, inputs: &[Input]) -> Option<Reason> {
            for input in inputs {
                self.controller.handle(self.now + Duration::from_millis(1), input);
            }
            self.now += Duration::from_millis(rtt);
            self.controller.handle(self.now, &Input::KernelRtt(Duration::from_millis(rtt)));
            self.controller.reason
        }
    }

    /// A round's data at `rate` bytes per millisecond.
    fn data(rtt: u64, rate: u64) -> Input {
        Input::Data { bytes: Bytes::new(rate * rtt), unread: Bytes::ZERO }
    }

    /// Simulates sixty rounds at that RTT; returns the largest window, in segments, of the last twenty. The base RTT is 40 ms.
    /// Before these rounds the window doubled seven times, to 1280 segments, which lost packets at 80 ms.
    fn after_a_loss(new: fn(&ControllerConfig) -> Rledbat, rtt: u64) -> u64 {
        let mut rounds = Rounds::new(new);
        let mut windows = Vec::new();
        for rtt in std::iter::repeat_n(40, 8).chain([80]).chain(std::iter::repeat_n(rtt, 60)) {
            let losses = [Input::OutOfOrder { segments: 1 }];
            rounds.round(rtt, if rtt == 80 { &losses } else { &[] });
            windows.push(rounds.controller.window.get() / MSS);
        }
        assert_eq!(windows[7..9], [1280, 640], "half of the window that lost packets");
        windows.into_iter().rev().take(20).max().unwrap_or_default()
    }

    #[test]
    fn a_background_transfer_yields_when_the_queue_exceeds_half_of_its_max() {
        // 30 of 40 ms are more than half of the full queue and less than RFC 9840's 60 ms. The background target shrinks the
        // window to two segments; the standard target does not.
        assert_eq!(after_a_loss(Rledbat::background, 70), MIN_SEGMENTS);
        assert!(after_a_loss(Rledbat::new, 70) >= 640);
        // 10 of 40 ms are less than half: the queue may be the transfer's own.
        assert!(after_a_loss(Rledbat::background, 50) >= 640);
    }

    #[test]
    fn each_window_has_its_reason() {
        let mut rounds = Rounds::new(Rledbat::new);
        let losses = |segments| [Input::OutOfOrder { segments }];
        // 110 ms are 10 ms above the target. The queue ends slow start and is reported in the next round; the round after that is more
        // than two base RTTs later, so the slowdown begins. The window doubles back in eight rounds at most, and the next slowdown is
        // nine such times away.
        let rtts = [[40; 5].as_slice(), &[110; 3], &[40; 20], &[110]].concat();
        let mut reasons: Vec<_> =
            rtts.into_iter().filter_map(|rtt| rounds.round(rtt, &losses(0))).collect();
        reasons.extend(rounds.round(110, &losses(1)));
        reasons.dedup();
        let expected = [
            Reason::QueueBelowTarget,
            Reason::QueueAboveTarget,
            Reason::Slowdown,
            Reason::SlowdownOver,
            Reason::QueueBelowTarget,
            Reason::QueueAboveTarget,
            Reason::PacketLost,
        ];
        assert_eq!(reasons, expected);
    }

    #[test]
    fn a_slowdown_lasts_until_the_earlier_window_is_used_up() {
        // The earlier window allows five more rounds of 110 ms at the full rate of 5000 bytes per millisecond. If the kernel does
        // not report it, it allowed at least the last round's bytes.
        for (advertised, used_up_after) in [(Some(5 * 110 * 5000), 5), (None, 1)] {
            let mut rounds = Rounds::new(Rledbat::new);
            for (rtt, rate, n) in [(40, 72, 8), (110, 5000, 3), (110, 5000, used_up_after)] {
                for _ in 0..n {
                    let advertised = advertised.map(Bytes::new);
                    let window = advertised.map(|advertised| Input::Window { advertised });
                    let inputs: Vec<_> = window.into_iter().chain([data(rtt, rate)]).collect();
                    rounds.round(rtt, &inputs);
                }
            }
            assert_eq!(rounds.controller.reason, Some(Reason::Slowdown));
            // Two rounds later, slow start leads back.
            let reasons: Vec<_> = (0..5).map(|_| rounds.round(40, &[data(40, 72)])).collect();
            assert_eq!(reasons[1], Some(Reason::Slowdown));
            assert_eq!(reasons[4], Some(Reason::SlowdownOver));
        }
    }

    #[test]
    fn a_transfer_that_is_already_running_keeps_its_rate() {
        let mut rounds = Rounds::new(Rledbat::background);
        // It receives 200 kB in the first round: the window doubles from there.
        rounds.round(40, &[data(40, 5000)]);
        for expected in [200_000, 400_000] {
            rounds.round(40, &[data(40, 5000)]);
            assert_eq!(rounds.controller.window, Bytes::new(expected));
        }
    }

    #[test]
    fn a_reduction_starts_from_the_window_that_the_kernel_advertises() {
        let mut rounds = Rounds::new(Rledbat::new);
        rounds.controller.has_slowdowns = false;
        // Slow start reaches the maximum of 6 MB, but the kernel advertises 1 MB.
        let advertised = Bytes::new(1 << 20);
        for rtt in [40; 12].into_iter().chain([90]) {
            rounds.round(rtt, &[data(rtt, 72), Input::Window { advertised }]);
        }
        assert_eq!(rounds.controller.window, rounds.controller.max);
        rounds.round(90, &[Input::OutOfOrder { segments: 1 }]);
        assert_eq!(rounds.controller.window, advertised / 2);
    }

    #[test]
    fn a_queue_that_dips_does_not_hide_that_it_is_cross_traffics() {
        let mut rounds = Rounds::new(Rledbat::new);
        // The RTT of each round in milliseconds, and the rate in bytes per millisecond: alone until the queue exceeds 60 ms,
        // then beside cross traffic that has three quarters of the rate. The queue dips below the target twice.
        let alone = [(40, 1000); 4].into_iter().chain([(110, 10_000); 30]);
        let beside = [[(160, 2500); 2], [(70, 2500); 2]].concat().repeat(3);
        let mut reasons = Vec::new();
        for (rtt, rate) in alone.chain(beside) {
            rounds.round(rtt, &[data(rtt, rate)]);
            while let Some(output) = rounds.controller.poll_output() {
                if let Output::Event(SizingEvent {
                    kind: EventKind::Entered { reason, .. }, ..
                }) = output
                {
                    reasons.push((rtt, reason));
                }
            }
        }
        let expected = [(110, Reason::QueueAboveTarget), (160, Reason::CrossTrafficQueue)];
        assert!(reasons.starts_with(&expected), "{reasons:?}");
    }
}
