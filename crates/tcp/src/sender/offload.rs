use super::Sender;

/// Linux's `sk_pacing_shift` of 10: a segment holds 1/1024 s of the pacing rate.
const SEGMENTS_PER_SECOND: f64 = 1024.0;
/// `tcp_min_tso_segs`.
const MIN_PACKETS: u64 = 2;
/// Packets of 1448 bytes in the largest segment, `sk_gso_max_size` of 64 KiB.
const MAX_PACKETS: u64 = 45;

impl Sender {
    /// A paced sender's packet leaves: the rest of its segment follows without a pause.
    #[inline]
    pub(super) fn continue_segment(&mut self) {
        if self.burst == 0 {
            self.burst = (self.limit - self.next).min(self.segment_packets()) as u32;
        }
        self.burst -= 1;
    }

    /// `tcp_tso_autosize`: number of packets in a full segment.
    pub(super) fn segment_packets(&self) -> u64 {
        let by_window = || self.rtt.smoothed().map(|smoothed| self.window_rate(smoothed));
        let Some(rate) = self.pacing_rate().or_else(by_window) else { return MIN_PACKETS };
        let packets = rate.as_f64() / 8.0 / self.options.packet.as_f64() / SEGMENTS_PER_SECOND;
        (packets as u64).clamp(MIN_PACKETS, MAX_PACKETS)
    }
}
