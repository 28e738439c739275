use sweetspot_units::{Duration, Rate, Time};

use super::{AckSample, CongestionConfig, CongestionControl, CongestionEvent, Reno};

/// TCP-LP (Kuzmanovic and Knightly, "TCP-LP: a distributed algorithm for low priority data transfer",
/// INFOCOM 2003): Reno that yields when delay shows that a queue builds up, before packets are lost.
///
/// An early congestion indication is a smoothed delay above the minimum delay and [`Lp::DELTA`] of its range. It halves the
/// window and begins an inference phase in which the window does not grow. Another indication within that phase means that
/// cross traffic keeps the queue, and the window becomes one packet.
///
/// The paper's delay is one-way, from timestamps of two clocks. This sender knows only the RTT, which includes the queues of
/// the reverse path and a receiver's delayed ACK (RFC 1122, section 4.2.3.2). It therefore samples the shortest RTT of each
/// round trip: of two segments that arrive together, a receiver acknowledges the second at once.
#[derive(Debug, Clone)]
pub struct Lp {
    reno: Reno,
    smoothed: Option<Duration>,
    min: Duration,
    max: Duration,
    /// When the inference phase ends.
    inference: Option<Time>,
    /// SND.NXT at the last indication: one reaction per round trip.
    reacted: u64,
    /// The current round trip: SND.NXT at its beginning, the segments in flight then, and the shortest RTT so far.
    round_end: u64,
    round_segments: u64,
    shortest: Duration,
}

/// The weight of a new sample in the moving average of the delay (section III-A).
const GAMMA: f64 = 1.0 / 8.0;
/// Round trips that an inference phase lasts, as in Linux (`tcp_lp.c`: inference = 3 * delta).
const INFERENCE_ROUND_TRIPS: u64 = 3;

impl Lp {
    /// The share of the range of delay above which the queue counts as growing (section III-A: 0.15).
    pub const DELTA: f64 = 0.15;

    /// The congestion control at the start of a connection.
    pub fn new(config: &CongestionConfig) -> Lp {
        Lp {
            reno: Reno::new(config),
            smoothed: None,
            min: Duration::MAX,
            max: Duration::ZERO,
            inference: None,
            reacted: 0,
            round_end: 0,
            round_segments: 0,
            shortest: Duration::MAX,
        }
    }

    /// The shortest RTT and the number of segments of the round trip that `ack` ends. `None` if only one segment was in flight:
    /// the receiver's ACK timer may have delayed its ACK. The timer may also delay the last ACK of an odd number.
    fn path_rtt(&mut self, ack: &AckSample) -> Option<(Duration, u64)> {
        self.shortest = self.shortest.min(ack.rtt.unwrap_or(Duration::MAX));
        if ack.una < self.round_end {
            return None;
        }
        let is_measured = self.round_segments > 1 && self.shortest < Duration::MAX;
        let shortest = is_measured.then_some((self.shortest, self.round_segments));
        self.shortest = Duration::MAX;
        self.round_segments = ack.nxt.saturating_sub(ack.una);
        self.round_end = ack.nxt;
        shortest
    }

    /// Adds the delay of `segments` segments; returns the moving average, weighted as if each segment were a sample.
    fn measure(&mut self, rtt: Duration, segments: u64) -> Duration {
        self.min = self.min.min(rtt);
        self.max = self.max.max(rtt);
        let kept = libm::pow(1.0 - GAMMA, segments as f64);
        let smoothed = match self.smoothed {
            Some(before) => before.scaled(kept) + rtt.scaled(1.0 - kept),
            None => rtt,
        };
        self.smoothed = Some(smoothed);
        smoothed
    }

    /// Section III-A, equation (2): sd > dmin + (dmax - dmin) delta.
    fn indicates_congestion(&self, smoothed: Duration) -> bool {
        smoothed > self.min + (self.max - self.min).scaled(Lp::DELTA)
    }

    /// Section III-B: half the window, or one packet if congestion persists.
    fn back_off(&mut self, ack: &AckSample, rtt: Duration) {
        let persists = self.inference.is_some_and(|until| ack.now < until);
        let window = if persists { 1.0 } else { self.reno.cwnd() / 2.0 };
        self.reno.restart_from(window.max(1.0));
        self.inference = Some(ack.now + rtt * INFERENCE_ROUND_TRIPS);
        self.reacted = ack.nxt;
        // The segments in flight were sent before the reaction, so their round trip does not show its effect.
        self.round_segments = 0;
        self.forget_range();
    }

    /// Restarts the average after a reaction: data sent since then show whether congestion persists. Linux sets owd_max to
    /// twice the smoothed delay (`tcp_lp_pkts_acked`). Otherwise, if only the flow's own packets set the range, it would yield to
    /// itself forever.
    fn forget_range(&mut self) {
        if let Some(smoothed) = self.smoothed.take() {
            self.max = smoothed * 2;
        }
    }
}

impl CongestionControl for Lp {
    fn handle_ack(&mut self, ack: &AckSample) {
        if let Some((rtt, segments)) = self.path_rtt(ack) {
            let smoothed = self.measure(rtt, segments);
            if ack.una >= self.reacted && self.indicates_congestion(smoothed) {
                self.back_off(ack, rtt);
            }
        }
        if self.inference.is_none_or(|until| ack.now >= until) {
            self.reno.handle_ack(ack);
        }
    }

    fn handle_recovery(&mut self, event: &CongestionEvent) {
        self.reno.handle_recovery(event);
    }

    fn handle_recovered(&mut self, now: Time) {
        self.reno.handle_recovered(now);
    }

    fn handle_timeout(&mut self, event: &CongestionEvent) {
        self.reno.handle_timeout(event);
    }

    fn handle_ecn(&mut self, event: &CongestionEvent) {
        self.reno.handle_ecn(event);
    }

    fn handle_restart(&mut self, now: Time) {
        self.reno.handle_restart(now);
    }

    fn cwnd(&self) -> f64 {
        self.reno.cwnd()
    }

    fn ssthresh(&self) -> f64 {
        self.reno.ssthresh()
    }

    fn pacing_rate(&self) -> Option<Rate> {
        None
    }
}
