use sweetspot_units::{Bytes, Time};

/// The right-sizing paper's heuristic for `maxwnd` (section IV-B, its third solution): "If performance degrades when maxwnd is
/// increased and the congestion window is fluctuating rapidly, we know that we are overshooting available bandwidth and need to
/// decrease maxwnd slightly."
///
/// The paper gives no numbers; those below are ours.
#[derive(Debug)]
pub(crate) struct MaxWindow {
    mss: Bytes,
    /// The host's limit.
    max: Bytes,
    /// maxwnd now.
    cap: Bytes,
    /// Bytes per second in the interval before this one.
    before: Option<f64>,
    /// maxwnd of the last overshoot, and the intervals for which it is not tried again.
    overshot: Option<(Bytes, u32)>,
    interval: Option<Interval>,
}

/// An interval of round trips with one maxwnd.
#[derive(Debug)]
struct Interval {
    since: Time,
    bytes: Bytes,
    rounds: u32,
    /// The smallest and largest inferred congestion windows.
    min: Bytes,
    largest: Bytes,
}

/// Round trips with one maxwnd, to average over.
const AVERAGED_ROUNDS: u32 = 16;

/// A congestion window that fluctuates this much within an interval was cut by a loss: in congestion avoidance it grows by 16
/// segments at most.
const FLUCTUATION: f64 = 1.5;

/// The factor for "decrease maxwnd slightly".
const DECREASE: f64 = 15.0 / 16.0;

/// Intervals until an overshoot is forgotten: conditions change.
const OVERSHOOT_INTERVALS: u32 = 64;

impl MaxWindow {
    pub(crate) fn new(mss: Bytes, max: Bytes) -> MaxWindow {
        MaxWindow { mss, max, cap: max, before: None, overshot: None, interval: None }
    }

    pub(crate) fn get(&self) -> Bytes {
        self.cap
    }

    /// In slow start the window fluctuates by itself.
    pub(crate) fn handle_slow_start(&mut self) {
        self.interval = None;
    }

    /// A round trip outside of slow start brought `bytes`, and the sender's window was `cwnd`.
    pub(crate) fn handle_round(&mut self, now: Time, bytes: Bytes, cwnd: Bytes) {
        let Some(interval) = &mut self.interval else {
            self.interval = Some(Interval {
                since: now,
                bytes: Bytes::ZERO,
                rounds: 0,
                min: cwnd,
                largest: cwnd,
            });
            return;
        };
        interval.bytes += bytes;
        interval.rounds += 1;
        interval.min = interval.min.min(cwnd);
        interval.largest = interval.largest.max(cwnd);
        if interval.rounds < AVERAGED_ROUNDS {
            return;
        }
        if let Some(interval) = self.interval.take() {
            self.judge(now, &interval);
        }
    }

    fn judge(&mut self, now: Time, interval: &Interval) {
        let rate = interval.bytes.as_f64() / now.since(interval.since).as_secs_f64().max(1e-9);
        let fluctuates = interval.largest.as_f64() > FLUCTUATION * interval.min.as_f64().max(1.0);
        // The first interval has no predecessor: the host's limit counts as an increase.
        let degraded = self.before.is_none_or(|before| rate < before);
        self.before = Some(rate);
        self.overshot = self.overshot.and_then(|(cap, left)| Some((cap, left.checked_sub(1)?)));
        if fluctuates && degraded {
            let reached = interval.largest.min(self.cap);
            self.overshot = Some((reached, OVERSHOOT_INTERVALS));
            self.cap = reached.scaled(DECREASE).max(self.mss * 2);
        } else if !fluctuates {
            let limit = self.overshot.map_or(self.max, |(cap, _)| cap.scaled(DECREASE));
            self.cap = (self.cap + self.mss).min(limit).max(self.cap);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sweetspot_units::Duration;

    const MSS: Bytes = Bytes::new(1000);

    /// Runs an interval of 100 ms round trips that alternate between these windows.
    fn pass(limit: &mut MaxWindow, now: &mut Time, windows: [u64; 2]) {
        for i in 0..=AVERAGED_ROUNDS {
            *now += Duration::from_millis(100);
            let cwnd = MSS * windows[(i % 2) as usize];
            limit.handle_round(*now, cwnd, cwnd);
        }
    }

    #[test]
    fn a_fluctuating_window_lowers_maxwnd_to_15_16ths_unless_the_rate_rose() {
        let mut now = Time::ZERO;
        let mut limit = MaxWindow::new(MSS, MSS * 1000);
        pass(&mut limit, &mut now, [640, 320]);
        assert_eq!(limit.get(), MSS * 600);
        // Fluctuating windows are no reason to decrease maxwnd if the rate rose: here 480 segments on average.
        pass(&mut limit, &mut now, [600, 390]);
        assert_eq!(limit.get(), MSS * 600);
    }

    #[test]
    fn a_steady_window_raises_maxwnd_by_segments_up_to_the_last_overshoot() {
        let mut now = Time::ZERO;
        let mut limit = MaxWindow::new(MSS, MSS * 1000);
        pass(&mut limit, &mut now, [640, 320]);
        pass(&mut limit, &mut now, [600, 300]);
        // 600 x 15/16: the overshoot was at a window of 600.
        assert_eq!(limit.get().get(), 562_500);
        for _ in 0..20 {
            pass(&mut limit, &mut now, [560, 560]);
        }
        assert_eq!(limit.get().get(), 562_500);
        // After `OVERSHOOT_INTERVALS` intervals the overshoot is forgotten.
        for _ in 0..OVERSHOOT_INTERVALS {
            pass(&mut limit, &mut now, [560, 560]);
        }
        assert!(limit.get().get() > 562_500);
    }

    #[test]
    fn without_an_overshoot_the_hosts_limit_applies() {
        let mut now = Time::ZERO;
        let mut limit = MaxWindow::new(MSS, MSS * 500);
        for _ in 0..10 {
            pass(&mut limit, &mut now, [500, 500]);
        }
        assert_eq!(limit.get(), MSS * 500);
    }
}
