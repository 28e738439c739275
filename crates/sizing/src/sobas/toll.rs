use sweetspot_units::{Duration, Rate, Time};

use super::epoch::Epoch;

/// The share of goodput that losses may cost before the window is let go, half of what tuning may, and
/// over which time.
const SHARE: f64 = 0.01;
const LASTS: Duration = Duration::from_secs(10);

/// What random losses cost a transfer that keeps no queue: its window falls below what fills the
/// path, and comes back slowly. One that is left alone has a queue to live on meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Toll {
    /// Time lost, of late.
    lost: f64,
    /// When the last loss was.
    last_loss: Option<Time>,
}

impl Toll {
    /// An epoch of a path that carries `best`, `bound` if the window held it back and not
    /// congestion control; whether losses cost too much.
    pub(super) fn is_too_high(
        &mut self,
        now: Time,
        epoch: &Epoch,
        bound: bool,
        best: Rate,
    ) -> bool {
        let span = epoch.span.as_secs_f64();
        // A leaky sum: what is older than that counts less and less.
        self.lost /= 1.0 + span / LASTS.as_secs_f64();
        if epoch.losses > 0 {
            self.last_loss = Some(now);
        }
        let lately = self.last_loss.is_some_and(|last| now.since(last) < LASTS);
        if lately && !bound && !epoch.stalled {
            self.lost += span * (1.0 - epoch.rate.as_f64() / best.as_f64()).max(0.0);
        }
        self.lost > LASTS.as_secs_f64() * SHARE
    }
}
