use std::collections::VecDeque;

use sweetspot_units::{Bytes, Duration, Time};

use crate::ControllerConfig;
use crate::advertised::{Advertised, RightSizer};
use crate::max_window::MaxWindow;
use crate::reception::{Reception, Round};

/// Dynamic Right-Sizing (Gardner, Feng, Fisk: section II of the DRS paper). The receiver infers the sender's congestion window
/// from the arrivals per RTT. It advertises twice that window while the sender is in slow start, and one segment more
/// afterwards.
#[derive(Debug)]
pub struct RightSizing {
    mss: Bytes,
    rtt: Option<Duration>,
    bytes_read: Bytes,
    reception: Reception,
    /// The windows wanted in the last round trips, the newest last.
    requested: VecDeque<Bytes>,
    last_cwnd: Option<Bytes>,
    slow_start: bool,
    /// The heuristic for the largest window, if enabled.
    limit: Option<MaxWindow>,
    advertised: Advertised,
}

/// The initial window: the common static window of the time (section III).
const INITIAL: Bytes = Bytes::new(65_535);

/// A sender is in slow start if its window grows by more than this factor per RTT. Slow start's factor is 1.5 or 2 (with and
/// without delayed ACKs); otherwise the window grows by a segment.
const SLOW_START_GROWTH: f64 = 1.25;

/// "awnd can be reduced a few RTTs after a multiplicative decrease is detected (enough time for
/// packets buffered in the network to reach the receiver)."
const KEPT_WINDOWS: usize = 4;

impl RightSizing {
    /// A controller before the first byte.
    pub fn new(config: &ControllerConfig) -> RightSizing {
        RightSizing {
            mss: config.mss,
            rtt: None,
            bytes_read: Bytes::ZERO,
            reception: Reception::default(),
            requested: VecDeque::with_capacity(KEPT_WINDOWS),
            last_cwnd: None,
            slow_start: true,
            limit: None,
            advertised: Advertised::new(config),
        }
    }

    /// A controller before the first byte, with the heuristic over the largest window.
    pub fn with_heuristic(config: &ControllerConfig) -> RightSizing {
        let limit = Some(MaxWindow::new(config.mss, config.max_window));
        RightSizing { limit, ..RightSizing::new(config) }
    }

    /// Infers the sender's window from the mean rate over the round and the round-trip time.
    fn infer_cwnd(&mut self, now: Time, round: Round, rtt: Duration) {
        let cwnd = self.whole_segments((round.bytes / round.lasted) * rtt);
        if let Some(last) = self.last_cwnd {
            self.slow_start = cwnd.as_f64() >= last.as_f64() * SLOW_START_GROWTH;
        }
        self.last_cwnd = Some(cwnd);
        // awnd >= 2 cwnd in slow start, awnd >= cwnd + 1 in additive increase.
        let requested = if self.slow_start { cwnd * 2 } else { cwnd + self.mss };
        if self.requested.len() == KEPT_WINDOWS {
            self.requested.pop_front();
        }
        self.requested.push_back(requested);
        let limit = self.limit.as_mut().map_or(Bytes::MAX, |limit| {
            if self.slow_start {
                limit.handle_slow_start();
            } else {
                limit.handle_round(now, round.bytes, cwnd);
            }
            limit.get()
        });
        if let Some(max) = self.requested.iter().max() {
            self.advertised.set(now, (*max).min(limit));
        }
    }
}

impl RightSizing {
    /// `bytes` rounded up to whole segments, in which senders count their window. If rounding left the product of a rate and a
    /// time one byte short, the receiver would advertise the window that the sender already has.
    fn whole_segments(&self, bytes: Bytes) -> Bytes {
        self.mss * bytes.get().div_ceil(self.mss.get().max(1))
    }
}

impl RightSizer for RightSizing {
    fn handle_data(&mut self, now: Time, bytes: Bytes, unread: Bytes) {
        self.begin(now);
        self.bytes_read += bytes;
        self.reception.handle_total(self.bytes_read + unread);
        let Some(rtt) = self.rtt else { return };
        if let Some(round) = self.reception.poll_round(now, rtt) {
            self.infer_cwnd(now, round, rtt);
        }
    }
    fn handle_rtt(&mut self, now: Time, rtt: Duration) {
        self.begin(now);
        self.rtt = Some(rtt);
        self.reception.begin(now);
    }
    fn begin(&mut self, now: Time) {
        if !self.advertised.is_set() {
            self.advertised.set(now, INITIAL);
        }
    }
    fn advertised(&self) -> &Advertised {
        &self.advertised
    }
    fn advertised_mut(&mut self) -> &mut Advertised {
        &mut self.advertised
    }
    fn is_growing(&self) -> bool {
        self.slow_start
    }
}
