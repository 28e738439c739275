//! Held by its pace under BBR, where losses without a queue keep the sender's own congestion control below the capacity.

use sweetspot_units::{Duration, Rate, Time};

use super::climb::cycle_epochs;
use super::held::{Hold, KEEPS_EPOCHS, in_a_row, is_foreign, others_rate};
use super::performance::Traffic;
use super::state::State;
use super::{NO_CHANCE, SETTLING_EPOCHS, Sobas};
use crate::Reason;
use crate::model::{CHANGE, Epoch, Share};

/// Paced at a capacity.
#[derive(Debug, Clone, Copy)]
pub(super) struct Paced {
    /// The capacity at the beginning.
    found: Rate,
    /// Losses while the path was not full, and in the epochs of the present cycle.
    free: Share,
    lost: Share,
    epochs: u64,
    last_loss: Time,
    /// Epochs in a row with a queue of other traffic, and with a rate far below the capacity.
    others: u32,
    collapsed: u32,
}

impl Paced {
    /// Paced from `now` on, at a capacity of `found` that lost a share of `free`.
    pub(super) fn new(now: Time, found: Rate, free: Share) -> Paced {
        Paced {
            found,
            free,
            lost: Share::default(),
            epochs: 0,
            last_loss: now,
            others: 0,
            collapsed: 0,
        }
    }
}

impl Sobas {
    /// Evaluates an epoch in which the sender's congestion control ignores losses: other traffic must not suffer from that.
    pub(super) fn check_paced(
        &mut self,
        now: Time,
        epoch: &Epoch,
        base: Duration,
        traffic: Traffic,
    ) {
        let State::Held(held) = &mut self.state else { return };
        let Hold::Paced(paced) = &mut held.hold else { return };
        if epoch.losses > 0 {
            paced.last_loss = now;
        }
        if held.ignores(epoch) {
            return;
        }
        let (capacity, kept) = (held.capacity, held.queue);
        let Hold::Paced(paced) = &mut held.hold else { return };
        let queue = epoch.rtt.saturating_sub(base);
        paced.lost.add(traffic.retransmitted, traffic.delivered);
        paced.others = in_a_row(paced.others, is_foreign(queue, kept));
        paced.collapsed = in_a_row(paced.collapsed, epoch.rate < others_rate(capacity));
        if paced.others >= NO_CHANCE {
            return self.open(now, Reason::OthersQueue);
        }
        if paced.collapsed >= KEEPS_EPOCHS {
            if paced.lost.exceeds(paced.free) {
                // More was sent and lost, and less arrived: others have the rest. Trains would find the same capacity again.
                (self.is_shared, self.measured_again) = (true, NO_CHANCE);
            }
            return self.open(now, Reason::RateFell);
        }
        if now.since(paced.last_loss) >= self.limits.loss_free(capacity * base) {
            held.become_steady();
            return self.apply_hold(now);
        }
        paced.epochs += 1;
        if paced.epochs < cycle_epochs() {
            return;
        }
        paced.epochs = 0;
        let (lost, found) = (std::mem::take(&mut paced.lost), paced.found);
        if lost.exceeds(paced.free) {
            // A buffer that holds less than the queue overflows without a longer one.
            if held.shorten_queue() {
                held.become_steady();
                return self.apply_hold(now);
            }
            if capacity < others_rate(found) {
                return self.open(now, Reason::OthersQueue);
            }
            held.capacity = capacity.scaled(1.0 - CHANGE);
            held.settling = SETTLING_EPOCHS;
            self.apply_hold(now);
        }
    }
}
