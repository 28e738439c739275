use sweetspot_units::{Duration, Time};

use crate::congestion::AckSample;

/// ProbeBW's gain cycling: probe for more, drain the resulting queue, cruise (section 4.3.4).
#[derive(Debug, Clone)]
pub(super) struct Cycle {
    phase: usize,
    since: Time,
    /// The state of the generator that draws the first phase.
    random: u64,
}

/// Section 4.3.4.1.
const GAINS: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];

impl Cycle {
    pub(super) fn new(seed: u64) -> Cycle {
        Cycle { phase: 0, since: Time::ZERO, random: seed }
    }

    pub(super) fn gain(&self) -> f64 {
        GAINS[self.phase]
    }

    /// Starts in any phase but the draining one, so that flows do not probe in step
    /// (BBREnterProbeBW: GainCycleLen - 1 - random(0..6), then advance).
    pub(super) fn start(&mut self, now: Time) {
        // SplitMix64 suffices for the few random numbers of a connection.
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        self.phase = GAINS.len() - 1 - ((z ^ (z >> 31)) % 7) as usize;
        self.advance(now);
    }

    pub(super) fn advance(&mut self, now: Time) {
        self.phase = (self.phase + 1) % GAINS.len();
        self.since = now;
    }

    /// BBRIsNextCyclePhase; `inflight` is the target for data in flight at a given gain.
    pub(super) fn phase_is_over(
        &self,
        ack: &AckSample,
        min_rtt: Duration,
        inflight: impl Fn(f64) -> f64,
    ) -> bool {
        let full_length = ack.now.since(self.since) > min_rtt;
        let prior_in_flight = f64::from(ack.in_flight + ack.delivered + ack.lost);
        let gain = self.gain();
        if gain > 1.0 {
            full_length && (ack.lost > 0 || prior_in_flight >= inflight(gain))
        } else if gain < 1.0 {
            full_length || prior_in_flight <= inflight(1.0)
        } else {
            full_length
        }
    }
}
