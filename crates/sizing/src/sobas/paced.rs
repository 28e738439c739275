//! Held by a pacing rate under BBR, if losses without a queue keep the sender's own congestion control below the
//! capacity.
//!
//! A full buffer that other flows share also loses packets, and if it holds only a few, no queue is visible. But if a flow that
//! nearly fills the path gives up part of its rate, such losses end until the other flows have taken that part. Then no probe
//! finds the path idle, and when the rate returns, so do heavy losses. Random losses do neither, so the controller occasionally
//! tests the path with a lower pacing rate.

use sweetspot_units::{Duration, Rate, Time};

use super::climb::cycle_epochs;
use super::held::{Hold, KEEPS_EPOCHS, is_foreign, others_rate, streak};
use super::limits::{CUBIC_BETA, is_idle, is_used};
use super::performance::Traffic;
use super::state::State;
use super::{MIN_OBSERVATIONS, SETTLING_EPOCHS, Sobas, repair_epochs};
use crate::model::{CHANGE, Epoch, PACE_SHARE, Share};
use crate::{CongestionChoice, Reason};

/// Held at the capacity by a pacing rate.
#[derive(Debug, Clone, Copy)]
pub(super) struct Paced {
    /// The capacity at the start of pacing.
    found: Rate,
    /// Losses while the path was not full, and in the epochs of the current cycle.
    free: Share,
    lost: Share,
    epochs: u64,
    last_loss: Time,
    /// Consecutive epochs with a queue of cross traffic, and with a rate far below the capacity.
    cross_queue_epochs: u32,
    collapsed: u32,
    test: Test,
    /// Since the last test: packets lost at the full pacing rate, epochs with losses, and the number of such epochs that starts
    /// the next test.
    full: Share,
    lossy: Share,
    patience: u64,
    /// Consecutive tests that found cross traffic.
    found_others: u32,
}

/// Epochs with losses before the first test. A test at 0.7 of the rate lasts as long as three more such epochs at the full
/// rate, divided by 0.7. It gives up 0.3 of the rate meanwhile: the data of 1.3 out of about 20 such epochs.
fn first_test() -> u64 {
    cycle_epochs() * 2
}

/// A test of whether losses follow the rate.
#[derive(Debug, Clone, Copy)]
enum Test {
    /// No test at present.
    None,
    /// At a reduced pacing rate, with the lossy epochs and the idle probes since.
    Eased { lossy: Share, idle: Share },
    /// At the full pacing rate again, with the packets lost since.
    Returned(Share),
}

/// Adds an epoch. All losses of an epoch count as one event, because random losses may come in bursts.
fn add_lossy(lossy: &mut Share, traffic: Traffic) {
    lossy.add(u64::from(traffic.retransmitted > 0), traffic.delivered);
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
            cross_queue_epochs: 0,
            collapsed: 0,
            test: Test::None,
            full: Share::default(),
            lossy: Share::default(),
            patience: first_test(),
            found_others: 0,
        }
    }

    /// A probe was answered on a path of this base RTT.
    pub(super) fn handle_probe(&mut self, rtt: Duration, base: Duration) {
        if let Test::Eased { idle, .. } = &mut self.test {
            idle.add(u64::from(is_idle(rtt, base)), 1);
        }
    }

    /// The pacing rate divided by the capacity. A test reduces it as a loss reduces CUBIC's window.
    pub(super) fn share(&self) -> f64 {
        if let Test::Eased { .. } = self.test { CUBIC_BETA } else { PACE_SHARE }
    }
}

impl Sobas {
    /// Evaluates an epoch under a congestion control that ignores losses; cross traffic must not suffer from it.
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
        if let Test::Returned(lost) = &mut paced.test {
            // Cross traffic has not yielded yet.
            lost.add(traffic.retransmitted, traffic.delivered);
        }
        if held.ignores(epoch) {
            return;
        }
        let (capacity, kept) = (held.capacity, held.queue);
        let Hold::Paced(paced) = &mut held.hold else { return };
        let queue = epoch.rtt.saturating_sub(base);
        paced.cross_queue_epochs = streak(paced.cross_queue_epochs, is_foreign(queue, kept));
        if paced.cross_queue_epochs >= MIN_OBSERVATIONS {
            return self.open(now, Reason::CrossTrafficQueue);
        }
        match paced.test {
            Test::None => {}
            Test::Eased { .. } => return self.check_eased(now, traffic),
            Test::Returned(lost) => {
                let found = lost.exceeds(paced.full);
                return self.end_test(now, found);
            }
        }
        paced.lost.add(traffic.retransmitted, traffic.delivered);
        paced.full.add(traffic.retransmitted, traffic.delivered);
        add_lossy(&mut paced.lossy, traffic);
        paced.collapsed = streak(paced.collapsed, epoch.rate < others_rate(capacity));
        if paced.collapsed >= KEEPS_EPOCHS {
            if paced.lost.exceeds(paced.free) {
                // The sender sent more and lost more, but less arrived: cross traffic has the rest. Trains would only find the
                // same capacity again.
                return self.leave_to_congestion_control(now, Reason::RateFell);
            }
            return self.open(now, Reason::RateFell);
        }
        if now.since(paced.last_loss) >= self.limits.loss_free(capacity * base) {
            held.become_steady();
            return self.apply_hold(now);
        }
        if paced.lossy.hits() >= paced.patience {
            return self.ease(now);
        }
        paced.epochs += 1;
        if paced.epochs < cycle_epochs() {
            return;
        }
        paced.epochs = 0;
        let (lost, found) = (std::mem::take(&mut paced.lost), paced.found);
        if lost.exceeds(paced.free) {
            // If the buffer holds less than the kept queue, it overflows before a longer queue becomes visible.
            if held.shorten_queue() {
                held.become_steady();
                return self.apply_hold(now);
            }
            if capacity < others_rate(found) {
                return self.open(now, Reason::CrossTrafficQueue);
            }
            held.capacity = capacity.scaled(1.0 - CHANGE);
            held.settling = SETTLING_EPOCHS;
            self.apply_hold(now);
        }
    }

    fn ease(&mut self, now: Time) {
        let State::Held(held) = &mut self.state else { return };
        let Hold::Paced(paced) = &mut held.hold else { return };
        paced.test = Test::Eased { lossy: Share::default(), idle: Share::default() };
        held.settling = SETTLING_EPOCHS + repair_epochs();
        self.apply_hold(now);
    }

    /// Evaluates an epoch at the reduced pacing rate, until the absence of losses is significant.
    fn check_eased(&mut self, now: Time, traffic: Traffic) {
        let State::Held(held) = &mut self.state else { return };
        let Hold::Paced(paced) = &mut held.hold else { return };
        let Test::Eased { lossy, idle } = &mut paced.test else { return };
        add_lossy(lossy, traffic);
        let (lossy, idle) = (*lossy, *idle);
        let is_over = paced.lossy.exceeds(lossy.without_hits());
        if paced.lossy.exceeds(lossy) || is_over && is_used(idle) {
            self.end_test(now, true);
        } else if is_over {
            paced.test = Test::Returned(Share::default());
            held.settling = SETTLING_EPOCHS + repair_epochs();
            // BBR no longer has the old pacing rate and must start again.
            self.limits.congestion(now, CongestionChoice::Own);
            self.apply_hold(now);
        }
    }

    /// Ends a test. A test that found cross traffic is repeated. After one that did not, the next comes later, so that all
    /// tests together cost little.
    fn end_test(&mut self, now: Time, found: bool) {
        let State::Held(held) = &mut self.state else { return };
        let Hold::Paced(paced) = &mut held.hold else { return };
        paced.test = Test::None;
        if !found {
            (paced.full, paced.lossy) = (Share::default(), Share::default());
            paced.found_others = 0;
            paced.patience *= 2;
            return;
        }
        paced.found_others += 1;
        if paced.found_others >= MIN_OBSERVATIONS {
            self.leave_to_congestion_control(now, Reason::CrossTrafficQueue);
        } else {
            self.ease(now);
        }
    }

    /// Leaves the window to congestion control for the rest of the transfer.
    fn leave_to_congestion_control(&mut self, now: Time, reason: Reason) {
        (self.is_shared, self.measured_again) = (true, MIN_OBSERVATIONS);
        self.open(now, reason);
    }
}
