/// How much of the congestion window a sender uses, recorded as in Linux (`tcp_cwnd_validate`): the maximum within each
/// window of data.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct WindowUsage {
    /// SND.NXT at the last record. That window of data is over once this is acknowledged (`cwnd_usage_seq`).
    until: u64,
    /// The maximum number of packets outstanding (`max_packets_out`).
    largest: u64,
    /// Whether the packets in flight reached the window (`is_cwnd_limited`).
    reached: bool,
}

impl WindowUsage {
    /// New data up to `next` were sent. Everything before `una` is acknowledged, and `flight` packets are in flight under
    /// a window of `cwnd`.
    #[inline]
    pub(super) fn handle_sent(&mut self, una: u64, next: u64, flight: u64, cwnd: u64) {
        let (out, reached) = (next - una, flight >= cwnd);
        if una >= self.until || reached || (!self.reached && out > self.largest) {
            *self = WindowUsage { until: next, largest: out, reached };
        }
    }

    /// Whether the window of `cwnd` limits the sender (`tcp_is_cwnd_limited`). While the window `doubles`, this is also
    /// true below twice the maximum number of packets outstanding.
    #[inline]
    pub(super) fn is_limited(self, cwnd: u64, doubles: impl FnOnce() -> bool) -> bool {
        self.reached || (cwnd < 2 * self.largest && doubles())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_of_ten_lets_slow_start_grow_to_twenty() {
        // packetdrill's slow-start-app-limited.pkt: ten packets, each acknowledged, and nothing more to send.
        let (mut usage, mut cwnd) = (WindowUsage::default(), 10);
        (1..=10).for_each(|next| usage.handle_sent(0, next, next, cwnd));
        (0..10).for_each(|_| cwnd += u64::from(usage.is_limited(cwnd, || true)));
        assert_eq!(cwnd, 20);
        // slow-start-app-limited-9-packets-out.pkt: the window was never reached.
        let (mut usage, mut cwnd) = (WindowUsage::default(), 10);
        (1..=9).for_each(|next| usage.handle_sent(0, next, next, cwnd));
        (0..9).for_each(|_| cwnd += u64::from(usage.is_limited(cwnd, || true)));
        assert_eq!(cwnd, 18);
    }

    #[test]
    fn in_congestion_avoidance_an_unfilled_cwnd_does_not_grow() {
        let mut usage = WindowUsage::default();
        (1..=9).for_each(|next| usage.handle_sent(0, next, next, 10));
        assert!(!usage.is_limited(10, || false));
        usage.handle_sent(0, 10, 10, 10);
        assert!(usage.is_limited(10, || false));
        // The next window of data, with less to send.
        usage.handle_sent(10, 11, 1, 11);
        assert!(!usage.is_limited(11, || false));
    }
}
