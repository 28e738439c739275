//! What a loss means.

use sweetspot_units::{Duration, Time};

use super::share::HALVED;
use super::{Sobas, State};
use crate::sobas::epoch::Epoch;
use crate::sobas::sharing::Sharing;

/// Lost probes that make a path congested rather than unlucky.
const CONGESTED_LOSSES: u64 = 2;

impl Sobas {
    /// Tells three kinds of loss apart; whether this one called for action. Behind our own queue
    /// and at our own limits it is an overflow. Behind a queue while congestion control holds us
    /// back, with probes lost too, the path is congested by others. Without a queue it is
    /// random, and no reason to go slower.
    pub(super) fn reacts_to_loss(&mut self, now: Time, epoch: &Epoch, base: Duration) -> bool {
        let queue_rose = self.has_queue(epoch.highest_rtt, base);
        let heralded = match self.state {
            State::Sharing(sharing) => self.herald.is_some() || sharing.is_deaf(),
            _ => false,
        };
        if !queue_rose || heralded || self.state == State::Congested {
            return false;
        }
        if let State::Sharing(sharing) = self.state
            && self.matters()
        {
            return self.sharing_lost(now, epoch, sharing);
        }
        let others = self.congestion.is_congested() && self.congestion.losses() >= CONGESTED_LOSSES;
        // In slow start the congestion window passes the limits a round trip before the data does.
        let arrived = self.limits.bind(self.lately, epoch.rtt);
        if arrived && self.matters() && (self.is_alone(epoch) || self.window_binds(epoch)) {
            return self.retreat(now, epoch, base);
        }
        if others || !self.matters() {
            self.leave_to_congestion_control(now);
            return true;
        }
        false
    }

    /// Whether a loss on a path that others share called for action: where what was in flight was
    /// near the window, it was too much, whichever of the two windows allowed it. What is lost
    /// further below is a recovery's.
    fn sharing_lost(&mut self, now: Time, epoch: &Epoch, sharing: Sharing) -> bool {
        let window = self.limits.window_or_max();
        let in_flight = epoch.cwnd.map_or(window, |cwnd| cwnd.min(window));
        let overflowed = in_flight >= window.scaled(HALVED);
        if !overflowed || sharing.is_settling() && sharing.is_full() {
            return false;
        }
        self.overflow(now, epoch, sharing, in_flight);
        true
    }

    /// The transfer overflowed the buffer at its own limits. Whether that called for action.
    fn retreat(&mut self, now: Time, epoch: &Epoch, base: Duration) -> bool {
        let mut hold = match self.state {
            State::Holding(hold) if hold.is_settling() => return false,
            State::Holding(hold) => hold,
            _ => self.begin_hold(epoch.rate, base),
        };
        // What comes after the loss says nothing of what the path bears.
        let epoch = Epoch { rate: self.lately, ..*epoch };
        hold.retreat(&mut self.limits, now, &epoch, base);
        self.state = State::Holding(hold);
        true
    }
}
