//! The limits that shape BBR's model of the path.

use sweetspot_units::{Duration, Time};

use super::{Sample, Step};

/// The share of the busy time from which a limit shapes BBR's model. Less is a few full windows in a long life.
const SHAPES_MODEL: f64 = 0.1;
/// Round trips for which BBR keeps the highest bandwidth that it measured (bbr_bw_rtts).
const MODEL_ROUNDS: u64 = 10;

/// A limit that is not the path's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shaper {
    PeerWindow,
    SendBuffer,
}

/// When each of these limits last held the sender for more than moments.
#[derive(Debug, Clone, Copy, Default)]
pub struct ModelHistory {
    window: Option<Time>,
    buffer: Option<Time>,
}

impl ModelHistory {
    pub fn learn(&mut self, step: &Step) {
        let (last, now) = (&step.last, &step.sample);
        let grew = |of: fn(&Sample) -> Duration| of(now).saturating_sub(of(last));
        let enough = grew(|s| s.busy).min(step.time).scaled(SHAPES_MODEL);
        let shapes = |held: Duration| held > Duration::ZERO && held >= enough;
        self.window = if shapes(grew(|s| s.window_limited)) { Some(now.at) } else { self.window };
        self.buffer = if shapes(grew(|s| s.buffer_limited)) { Some(now.at) } else { self.buffer };
    }

    /// The limit that shaped the model as it is now: BBR paces at the rate that this limit let through, in the time between, too.
    pub fn shaper(&self, now: &Sample) -> Option<Shaper> {
        let lasts =
            |at: Option<Time>| at.is_some_and(|at| now.at.since(at) <= now.rtt * MODEL_ROUNDS);
        match now.model_based {
            true if lasts(self.window) => Some(Shaper::PeerWindow),
            true if lasts(self.buffer) => Some(Shaper::SendBuffer),
            _ => None,
        }
    }
}
