//! What a loss means.

use sweetspot_units::{Duration, Time};

use super::{MANNER, Sobas, State};
use crate::EventKind;
use crate::sobas::epoch::Epoch;
use crate::sobas::hold::Hold;

/// Lost probes that make a path congested rather than unlucky.
const CONGESTED_LOSSES: u64 = 2;

impl Sobas {
    /// Tells three kinds of loss apart; whether this one called for action. Behind our own queue
    /// and at our own limits it is an overflow. Behind a queue while congestion control holds us
    /// back, with probes lost too, the path is congested by others. Without a queue it is
    /// random, and no reason to go slower.
    pub(super) fn reacts_to_loss(&mut self, now: Time, epoch: &Epoch, base: Duration) -> bool {
        let queue_rose = epoch.highest_rtt > base + MANNER.queue_aim(base);
        let heralded = match self.state {
            State::Sharing(sharing) => self.herald.is_some() || sharing.is_deaf(),
            _ => false,
        };
        if !queue_rose || heralded || self.state == State::Congested {
            return false;
        }
        let others = self.congestion.is_congested() && self.congestion.losses() >= CONGESTED_LOSSES;
        // In slow start the congestion window passes the limits a round trip before the data does.
        let arrived = self.limits.bind(self.lately, epoch.rtt);
        if arrived && self.matters() && (self.is_alone(epoch) || self.window_binds(epoch)) {
            return self.retreat(now, epoch, base);
        }
        let shared = matches!(self.state, State::Sharing(_));
        if others && !shared || !self.matters() {
            self.limits.lift(now);
            self.limits.emit(now, EventKind::Congested);
            self.state = State::Congested;
            return true;
        }
        false
    }

    /// The transfer overflowed the buffer at its own limits. Whether that called for action.
    fn retreat(&mut self, now: Time, epoch: &Epoch, base: Duration) -> bool {
        let mut hold = match self.state {
            State::Holding(hold) if hold.is_settling() => return false,
            State::Sharing(sharing) if sharing.is_settling() && sharing.is_full() => return false,
            State::Sharing(sharing) => {
                self.overflow(now, epoch, sharing);
                return true;
            }
            State::Holding(hold) => hold,
            _ => Hold::new(&MANNER, epoch.rate, base),
        };
        // What comes after the loss says nothing of what the path bears.
        let epoch = Epoch { rate: self.lately, ..*epoch };
        hold.retreat(&mut self.limits, now, &epoch, base);
        self.state = State::Holding(hold);
        true
    }
}
