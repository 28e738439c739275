use core::hint::black_box;

use sweetspot_units::{Duration, Time};

/// Estimates the round-trip time and the retransmission timeout (RFC 6298) on a clock that ticks,
/// in Jacobson's integer arithmetic, as BSD and ns-2 do.
#[derive(Debug, Clone)]
#[repr(C)]
pub struct RttEstimator {
    /// The current timeout: every ACK reads it, few change it.
    timeout: Duration,
    /// G of RFC 6298, nanoseconds.
    tick: u64,
    /// The clock's position within a tick at time 0.
    phase: u64,
    min_timeout: Duration,
    /// The minimum variance term added to the smoothed RTT.
    min_variance: Duration,
    /// SRTT in ticks, three bits behind the binary point; 0: no sample yet.
    srtt: i64,
    /// RTTVAR in ticks, two bits behind the binary point.
    rttvar: i64,
    /// The timeout before back-off.
    base: Duration,
    backoff: u32,
}

/// RFC 6298 (2.4) allows a ceiling of 60 s or more.
const MAX_TIMEOUT: Duration = Duration::from_secs(60);

impl RttEstimator {
    /// An estimator without a sample. `phase` is the clock's position within a tick at time 0,
    /// `initial` the timeout before the first sample.
    pub fn new(tick: Duration, phase: Duration, min_timeout: Duration, initial: Duration) -> Self {
        let mut estimator = RttEstimator {
            tick: tick.as_nanos().max(1),
            phase: phase.as_nanos(),
            min_timeout,
            min_variance: Duration::ZERO,
            srtt: 0,
            rttvar: 0,
            base: initial,
            backoff: 1,
            timeout: Duration::ZERO,
        };
        estimator.refresh();
        estimator
    }

    /// Applies the floor as Linux does: not to the timeout itself but to its excess over the RTT (`tcp_rtt_estimator`:
    /// `rttvar_us` is at least `tcp_rto_min_us`).
    #[must_use]
    pub fn with_min_variance(mut self, min: Duration) -> Self {
        self.min_variance = min;
        self
    }

    /// Handles the sample of a packet sent at `sent` and acknowledged at `now`: the number of clock ticks in between
    /// (ns-2 `rtt_update`).
    pub fn handle_timed(&mut self, now: Time, sent: Time) {
        let into_tick = (sent.as_nanos() + self.phase) % self.tick;
        self.backoff = 1;
        self.update((now.since(sent).as_nanos() + into_tick) / self.tick);
    }

    /// Handles the sample of an echoed timestamp (RFC 7323), rounded to the nearest tick.
    pub fn handle_timestamp(&mut self, now: Time, sent: Time) {
        self.update((now.since(sent).as_nanos() + self.tick / 2) / self.tick);
    }

    /// Ends back-off: a packet that was sent once was acknowledged, so the path carries data again.
    pub fn end_backoff(&mut self) {
        if self.backoff > 1 {
            self.backoff = 1;
            self.refresh();
        }
    }

    fn update(&mut self, ticks: u64) {
        let measured = (ticks as i64).max(1);
        if self.srtt == 0 {
            // RFC 6298 (2.2): SRTT = R, RTTVAR = R/2.
            self.srtt = measured << 3;
            self.rttvar = measured << 1;
        } else {
            // RFC 6298 (2.3) with alpha = 1/8, beta = 1/4.
            let delta = measured - (self.srtt >> 3);
            self.srtt = (self.srtt + delta).max(1);
            self.rttvar = (self.rttvar + delta.abs() - (self.rttvar >> 2)).max(1);
        }
        // RTO = SRTT + 4 RTTVAR; RTTVAR is at least a quarter of a tick, so that the term is
        // at least G.
        let ticks = ((self.rttvar << 3) + self.srtt) >> 3;
        let smoothed = Duration::from_nanos((self.srtt >> 3) as u64 * self.tick);
        let base = Duration::from_nanos(ticks as u64 * self.tick);
        self.base = base.max(smoothed + self.min_variance);
        self.refresh();
    }

    fn refresh(&mut self) {
        let timeout = self.base.max(self.min_timeout) * u64::from(self.backoff);
        self.timeout = timeout.min(MAX_TIMEOUT).max(Duration::from_nanos(2 * self.tick));
    }

    /// Doubles the timeout after the timer expired (RFC 6298 (5.5)).
    pub fn back_off(&mut self) {
        if self.timeout < MAX_TIMEOUT {
            self.backoff *= 2;
            self.refresh();
        }
        // The estimate is far off: RFC 6298 section 5 and ns-2 `rtt_backoff` clear it.
        if self.backoff > 8 {
            self.rttvar += self.srtt >> 3;
            self.srtt = 0;
        }
    }

    /// Whether the timer expired and no ACK has ended back-off since.
    pub fn is_backed_off(&self) -> bool {
        self.backoff > 1
    }

    /// The current retransmission timeout.
    #[inline]
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Prefetches the fields that an ACK needs.
    #[inline]
    pub fn read_ahead(&self) {
        black_box((self.tick, self.backoff));
    }

    /// The smoothed round-trip time; `None` before the first sample.
    pub fn smoothed(&self) -> Option<Duration> {
        (self.srtt > 0).then(|| Duration::from_nanos((self.srtt as u64 * self.tick) >> 3))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimator() -> RttEstimator {
        let ms = Duration::from_millis;
        RttEstimator::new(ms(10), Duration::ZERO, ms(200), Duration::from_secs(3))
    }

    fn ms(n: u64) -> Time {
        Time::from_nanos(n * 1_000_000)
    }

    #[test]
    fn the_first_sample_sets_the_rto_to_three_rtts() {
        // RFC 6298 (2.2): RTO = R + 4 * R/2 = 3 R; 100 ms = 10 ticks -> 300 ms.
        let mut rtt = estimator();
        rtt.handle_timed(ms(100), ms(0));
        assert_eq!(rtt.timeout(), Duration::from_millis(300));
        assert_eq!(rtt.smoothed(), Some(Duration::from_millis(100)));
    }

    #[test]
    fn steady_samples_lower_the_rto_to_its_minimum() {
        let mut rtt = estimator();
        for i in 0..50 {
            rtt.handle_timed(ms(100 * (i + 1)), ms(100 * i));
        }
        // RTTVAR decays to its minimum: SRTT + 4 * tick/4 = 110 ms, below 200 ms.
        assert_eq!(rtt.timeout(), Duration::from_millis(200));
    }

    #[test]
    fn each_timeout_doubles_the_rto_up_to_a_minute() {
        let mut rtt = estimator();
        let mut expected = 3;
        for _ in 0..10 {
            assert_eq!(rtt.timeout(), Duration::from_secs(expected.min(60)));
            rtt.back_off();
            expected *= 2;
        }
    }

    #[test]
    fn a_clock_tick_that_starts_during_the_rtt_counts() {
        // Sent 1 ms before a tick, acknowledged 1 ms after the next: 12 ms apart, 2 ticks.
        let mut rtt = estimator();
        rtt.handle_timed(ms(21), ms(9));
        assert_eq!(rtt.smoothed(), Some(Duration::from_millis(20)));
    }
}
