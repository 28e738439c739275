use super::bandwidth::Bandwidth;
use crate::congestion::AckSample;

/// Whether Startup has filled the pipe: three round trips in which the bandwidth grew by less
/// than a quarter (section 4.3.2.2, BBRCheckFullPipe).
#[derive(Debug, Clone, Default)]
pub(super) struct FullPipe {
    filled: bool,
    bandwidth: f64,
    flat_rounds: u32,
}

const FULL_PIPE_GROWTH: f64 = 1.25;
const FLAT_ROUNDS: u32 = 3;

impl FullPipe {
    pub(super) fn filled(&self) -> bool {
        self.filled
    }

    pub(super) fn handle_ack(&mut self, ack: &AckSample, bandwidth: &Bandwidth) {
        let starved = ack.rate.is_none_or(|sample| sample.app_limited);
        if self.filled || !bandwidth.round_start() || starved {
            return;
        }
        if bandwidth.get() >= self.bandwidth * FULL_PIPE_GROWTH {
            self.bandwidth = bandwidth.get();
            self.flat_rounds = 0;
            return;
        }
        self.flat_rounds += 1;
        self.filled = self.flat_rounds >= FLAT_ROUNDS;
    }
}
