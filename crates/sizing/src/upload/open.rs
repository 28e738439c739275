//! No pacing: the upload is left to congestion control.

use sweetspot_units::{Rate, Time};

use super::Upload;
use super::params::{HELPED_RATE_SHARE, LONGEST_OPEN};
use super::state::State;
use crate::Reason;
use crate::model::Epoch;

/// An unpaced upload, and the rate to which it was paced before.
#[derive(Debug, Clone, Copy)]
pub(super) struct Open {
    until: Time,
    held: Rate,
    /// Sum of the rates of the epochs, and their number.
    sum: Rate,
    epochs: u32,
}

impl Open {
    /// Unpaced until `until`; before, the upload was paced at `held`.
    pub(super) fn new(until: Time, held: Rate) -> Open {
        Open { until, held, sum: Rate::ZERO, epochs: 0 }
    }
}

impl Upload {
    /// Measures again if pacing cost nothing.
    pub(super) fn reconsider(&mut self, now: Time, epoch: &Epoch) {
        let State::Open(open) = &mut self.state else { return };
        open.sum = open.sum + epoch.rate;
        open.epochs += 1;
        if now < open.until {
            return;
        }
        self.open_for = (self.open_for * 2).min(LONGEST_OPEN);
        let (held, free) = (open.held, open.sum.scaled(f64::from(open.epochs).recip()));
        if held >= free.scaled(HELPED_RATE_SHARE) {
            let measuring = State::Measuring { last: epoch.rate };
            return self.transition_to(now, measuring, Reason::TrialPaid);
        }
        *open = Open::new(now + self.open_for, held);
    }
}
