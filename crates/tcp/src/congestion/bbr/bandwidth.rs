use crate::congestion::AckSample;

/// BtlBw: the highest delivery rate of the last ten round trips, in packets per second
/// (section 4.1.1).
#[derive(Debug, Clone, Default)]
pub(super) struct Bandwidth {
    /// The three best samples within the window, best first and the others newer (Kathleen Nichols'
    /// windowed filter, as in Linux lib/win_minmax.c).
    best: [BandwidthSample; 3],
    round: u64,
    round_start: bool,
    /// The round ends when a packet sent after this many deliveries is acknowledged.
    round_end: u64,
    delivered: u64,
    /// Values of `delivered` between which our own ProbeRTT kept too few packets in flight.
    starved: Option<(u64, u64)>,
}

#[derive(Debug, Clone, Copy, Default)]
struct BandwidthSample {
    rate: f64,
    round: u64,
}

/// Section 4.1.1.2, BtlBwFilterLen.
const BANDWIDTH_FILTER_ROUNDS: u64 = 10;

impl Bandwidth {
    pub(super) fn get(&self) -> f64 {
        self.best[0].rate
    }

    /// Whether the current ACK began a round trip.
    pub(super) fn round_start(&self) -> bool {
        self.round_start
    }

    /// Packets delivered on the connection so far.
    pub(super) fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Begins a round, which ends when data sent from now on arrive.
    pub(super) fn start_round(&mut self) {
        self.round_end = self.delivered;
    }

    /// Marks the packets now in flight: ProbeRTT limits them, so their samples are no evidence
    /// about the path, as if the application were the limit (section 4.3.5, BBRHandleProbeRTT).
    pub(super) fn starve(&mut self, in_flight: u32) {
        let until = self.delivered + u64::from(in_flight);
        let from = self.starved.map_or(self.delivered, |(from, _)| from);
        self.starved = Some((from, until));
    }

    /// BBRUpdateBtlBw.
    pub(super) fn handle_ack(&mut self, ack: &AckSample) {
        self.round_start = false;
        self.delivered += u64::from(ack.delivered);
        let Some(sample) = ack.rate else { return };
        self.delivered = sample.total_delivered;
        if sample.prior_delivered >= self.round_end {
            self.round_end = self.delivered;
            self.round += 1;
            self.round_start = true;
        }
        let rate = sample.packets_per_second();
        if rate >= self.get() || !(sample.app_limited || self.starved_at(sample.prior_delivered)) {
            self.update_filter(rate);
        }
    }

    fn starved_at(&mut self, sent: u64) -> bool {
        match self.starved {
            Some((_, until)) if sent > until => {
                self.starved = None;
                false
            }
            Some((from, _)) => sent >= from,
            None => false,
        }
    }

    fn update_filter(&mut self, rate: f64) {
        let new = BandwidthSample { rate, round: self.round };
        let age = |sample: &BandwidthSample| new.round - sample.round;
        let best = &mut self.best;
        if rate >= best[0].rate || age(&best[2]) > BANDWIDTH_FILTER_ROUNDS {
            *best = [new; 3];
            return;
        }
        if rate >= best[1].rate {
            best[1] = new;
            best[2] = new;
        } else if rate >= best[2].rate {
            best[2] = new;
        }
        // minmax_subwin_update: drop expired entries, and keep the runners-up apart.
        if age(&best[0]) > BANDWIDTH_FILTER_ROUNDS {
            *best = [best[1], best[2], new];
            if age(&best[0]) > BANDWIDTH_FILTER_ROUNDS {
                *best = [best[1], best[2], new];
            }
        } else if best[1].round == best[0].round && age(&best[1]) > BANDWIDTH_FILTER_ROUNDS / 4 {
            best[1] = new;
            best[2] = new;
        } else if best[2].round == best[1].round && age(&best[2]) > BANDWIDTH_FILTER_ROUNDS / 2 {
            best[2] = new;
        }
    }
}
