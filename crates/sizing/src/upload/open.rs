//! Left to congestion control.

use sweetspot_units::{Rate, Time};

use super::Upload;
use super::params::{KEEPS, LONGEST_OPEN};
use super::state::State;
use crate::Reason;
use crate::model::Epoch;

/// What an upload sends that is free, beside what it was held to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Open {
    until: Time,
    held: Rate,
    /// The sum of the rates of so many epochs.
    sum: Rate,
    epochs: u32,
}

impl Open {
    /// Until a time; before, the upload was held to a rate.
    pub(super) fn new(until: Time, held: Rate) -> Open {
        Open { until, held, sum: Rate::ZERO, epochs: 0 }
    }
}

impl Upload {
    /// Measures again when being free has gained nothing.
    pub(super) fn reconsider(&mut self, now: Time, epoch: &Epoch) {
        let State::Open(open) = &mut self.state else { return };
        open.sum = open.sum + epoch.rate;
        open.epochs += 1;
        if now < open.until {
            return;
        }
        self.open_for = (self.open_for * 2).min(LONGEST_OPEN);
        let (held, free) = (open.held, open.sum.scaled(f64::from(open.epochs).recip()));
        if held >= free.scaled(KEEPS) {
            let measuring = State::Measuring { last: epoch.rate };
            return self.transition_to(now, measuring, Reason::TrialPaid);
        }
        *open = Open::new(now + self.open_for, held);
    }
}
