//! Held at the capacity, for as long as the transfer has the path to itself.

use sweetspot_units::{Bytes, Duration, Rate, Time};

use super::limits::{TransferLimits, target_queue};
use super::params::{
    COLLAPSE, COLLAPSE_EPOCHS, FASTER_STEPS, HELD_PACE, KEEPS_EPOCHS, KEPT_RATE_SHARE, LEAST_ROOM,
    LOSS_EPOCHS, LOSSLESS, LOSSY_BDPS, LOSSY_PACE, OTHERS_QUEUE, OTHERS_RATE, PROBE_EPOCHS,
    ROOM_SHARE, SETTLING_EPOCHS,
};
use super::state::State;
use super::{Sensors, Sobas};
use crate::model::Epoch;
use crate::{CongestionChoice, EventKind, PATH_LIFETIME, Reason, SavedWindow, SizingPhase};

/// The window is C x (T + queue).
#[derive(Debug, Clone, Copy)]
pub(super) struct Held {
    /// Payload rate of the path.
    capacity: Rate,
    /// The queueing delay that is kept.
    queue: Duration,
    /// Epochs until the last change takes effect.
    settling: u32,
    /// Epochs in a row, under a limit that binds, with a rate below that of a transfer alone.
    below: u32,
    /// ... with a rate far below it.
    collapsed: u32,
    /// ... with a queue of other traffic.
    others: u32,
    /// ... without a queue at a rate of the capacity.
    idle: u32,
    /// Epochs judged since the last change, and the sum of their rates.
    judged: u32,
    rates: Rate,
    /// The step of the window that is on.
    probe: Option<BandwidthProbe>,
    /// Whether the buffer overflowed by such a step.
    is_shallow: bool,
    /// The sender's congestion control, and when a packet was last lost without a queue.
    congestion: CongestionChoice,
    last_loss: Time,
    /// When the trial that led here began; its cost counts from there.
    tried: Option<Time>,
    /// Whether the queue was halved once.
    halved: bool,
    /// Whether it is a memory of another transfer's, which this one has not confirmed yet; and the epochs that do.
    is_remembered: bool,
    confirmed: u32,
    /// What the buffer of a remembered path surely holds: by so much the flight may grow in a round trip.
    room: Bytes,
    /// Whether the window of a memory is still opened.
    is_opening: bool,
    /// Whether the memory was too low, and the window is wider by the room, to see by how much.
    is_doubted: bool,
}

/// The window is wider than the capacity needs.
#[derive(Debug, Clone, Copy)]
struct BandwidthProbe {
    /// The capacity before the first of the steps.
    known: Rate,
    /// The mean rate before this one, and the multiple to which it widens the window.
    rate: Rate,
    step: f64,
    /// How many before this one the rate has followed, in a row.
    followed: u32,
}

impl Held {
    /// Held at this payload rate and base RTT.
    pub(super) fn new(capacity: Rate, base: Duration) -> Held {
        Held::keeping(capacity, target_queue(base))
    }

    /// Held at the result of a trial that `began` then and cost no rate.
    pub(super) fn after_trial(capacity: Rate, queue: Duration, began: Time) -> Held {
        Held { tried: Some(began), ..Held::keeping(capacity, queue) }
    }

    /// What a path with this round trip and longest queue is remembered by, of which so much was left unused after an overflow.
    pub(super) fn memory(
        &self,
        base: Duration,
        longest_queue: Duration,
        unused: Bytes,
        at: Time,
    ) -> Memory {
        Memory { capacity: self.known(), queue: self.queue, base, longest_queue, unused, at }
    }

    /// When the trial that led here began, if one did.
    pub(super) fn tried(&self) -> Option<Time> {
        self.tried
    }

    /// Held at `capacity` with `queue`.
    fn keeping(capacity: Rate, queue: Duration) -> Held {
        Held {
            capacity,
            queue,
            settling: SETTLING_EPOCHS,
            below: 0,
            collapsed: 0,
            others: 0,
            idle: 0,
            judged: 0,
            rates: Rate::ZERO,
            probe: None,
            is_shallow: false,
            congestion: CongestionChoice::Own,
            last_loss: Time::ZERO,
            tried: None,
            halved: false,
            is_remembered: false,
            confirmed: 0,
            room: Bytes::ZERO,
            is_opening: false,
            is_doubted: false,
        }
    }

    /// Whether the window is still on its way to what is held.
    pub(super) fn is_opening(&self) -> bool {
        self.is_opening
    }

    /// Whether it is held by memory alone.
    pub(super) fn is_remembered(&self) -> bool {
        self.is_remembered
    }

    /// Resets the counters after a change.
    fn restart(&mut self) {
        self.settling = SETTLING_EPOCHS;
        (self.below, self.collapsed, self.others, self.idle) = (0, 0, 0, 0);
        (self.judged, self.rates) = (0, Rate::ZERO);
    }

    /// The rate that the window is for.
    fn probed_rate(&self) -> Rate {
        self.probe.map_or(self.capacity, |probe| self.capacity.scaled(probe.step))
    }

    /// Takes the last step back, and the one before if it was the only one that the rate followed: once may be chance.
    /// Returns whether there was one.
    fn end_probe(&mut self) -> bool {
        self.capacity = self.known();
        self.probe.take().is_some()
    }

    /// The capacity without a step that the rate may have followed by chance.
    fn known(&self) -> Rate {
        self.probe.filter(|probe| probe.followed < 2).map_or(self.capacity, |probe| probe.known)
    }

    /// Takes the rate of an epoch under a limit that binds. Now and then, and where no queue stands, the window is widened
    /// to `step` times its size: the rate of a path that is full does not follow. Returns whether it is to change.
    fn probe_bandwidth(&mut self, rate: Rate, step: f64) -> bool {
        self.judged += 1;
        self.rates = self.rates + rate;
        let mean = self.rates.scaled(1.0 / f64::from(self.judged));
        let Some(probe) = self.probe else {
            let is_due = self.judged >= PROBE_EPOCHS && !self.is_shallow;
            if self.idle < KEEPS_EPOCHS && !is_due {
                if self.judged >= PROBE_EPOCHS {
                    (self.judged, self.rates) = (0, Rate::ZERO);
                }
                return false;
            }
            if self.idle >= KEEPS_EPOCHS {
                // The path carries that without a queue.
                self.capacity = self.capacity.max(mean);
            }
            self.probe =
                Some(BandwidthProbe { known: self.capacity, rate: mean, step, followed: 0 });
            self.restart();
            return true;
        };
        if self.judged < KEEPS_EPOCHS {
            return false;
        }
        // By more than half of the step.
        if mean > probe.rate.scaled((1.0 + probe.step) / 2.0) {
            self.capacity = self.capacity.scaled(probe.step);
            let followed = probe.followed + 1;
            let next = (2.0 * probe.step - 1.0).min(1.0 + LEAST_ROOM).max(step);
            self.probe = Some(BandwidthProbe { rate: mean, step: next, followed, ..probe });
        } else {
            self.end_probe();
        }
        self.restart();
        true
    }
}

/// A path on which a window was held to the end of a transfer, so that it is known to have cost no rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Memory {
    capacity: Rate,
    queue: Duration,
    /// Its round trip without a queue.
    base: Duration,
    /// The longest queue that was seen on it.
    longest_queue: Duration,
    /// What was left unused of it after an overflow.
    unused: Bytes,
    /// When the transfer ended.
    at: Time,
}

impl Memory {
    /// The window with which the next transfer may begin, and its round trip without a queue.
    pub(super) fn saved(&self, limits: &TransferLimits) -> SavedWindow {
        let window = limits.window_for(self.capacity, self.base, self.queue);
        let window = window.min(opened(Bytes::ZERO, self.room()));
        SavedWindow { window: limits.within_bounds(window), minimum_rtt: self.base }
    }

    /// With what was seen in the transfer `before`.
    pub(super) fn with(self, before: Option<Memory>) -> Memory {
        before.map_or(self, |before| Memory {
            longest_queue: self.longest_queue.max(before.longest_queue),
            unused: self.unused.max(before.unused),
            ..self
        })
    }

    /// What the path's buffer surely holds.
    fn room(&self) -> Bytes {
        (self.capacity * self.longest_queue).scaled(ROOM_SHARE)
    }

    /// Whether the window can be opened within a few round trips.
    pub(super) fn has_room(&self) -> bool {
        self.longest_queue >= self.base.scaled(LEAST_ROOM)
    }

    /// Whether opening the window by the room leaves less unused than an overflow did.
    pub(super) fn pays(&self) -> bool {
        self.unused_opening() < self.unused
    }

    /// What the window leaves unused of the path until it is opened, beyond slow start's doubling up to twice the room: in
    /// n steps of the room r to n x r, r x (n - 1)(n - 2) / 2.
    fn unused_opening(&self) -> Bytes {
        let window = self.capacity * (self.base + self.queue);
        let steps = window.as_f64() / self.room().as_f64().max(1.0);
        self.room().scaled((steps - 1.0) * (steps - 2.0).max(0.0) / 2.0)
    }

    /// What to hold from the beginning, if a round trip of `base` at `now` is that of the same path (RFC 9959, section 4.2.1:
    /// more than half of the saved one and no more than ten times it) and it was saved lately.
    pub(super) fn resume(&self, now: Time, base: Duration) -> Option<Held> {
        let is_same = base > self.base / 2 && base <= self.base * 10;
        let is_recent = now.since(self.at) < PATH_LIFETIME;
        (is_same && is_recent).then(|| Held {
            is_remembered: true,
            room: self.room(),
            is_opening: true,
            ..Held::keeping(self.capacity, self.queue)
        })
    }
}

/// The window in which a flight of `arrived` in the last round trip may grow by `room`, which is what then stands in the
/// buffer. Below twice as much, slow start doubles it and adds no more.
fn opened(arrived: Bytes, room: Bytes) -> Bytes {
    (arrived + room).max(room * 2)
}

/// `count` + 1 if the condition holds, else 0.
fn in_a_row(count: u32, holds: bool) -> u32 {
    if holds { count + 1 } else { 0 }
}

impl Sobas {
    /// Sets the window and the pace of the capacity.
    pub(super) fn apply_hold(&mut self, now: Time) {
        let (State::Held(held), Some(base)) = (&mut self.state, self.min_rtt.get()) else { return };
        let mut window = self.limits.window_for(held.probed_rate(), base, held.queue);
        if held.is_opening {
            let opened = opened(self.inflight.largest(), held.room);
            if opened < window {
                window = opened;
            } else {
                held.is_opening = false;
                let (phase, reason) = (SizingPhase::Holding, Reason::PathRemembered);
                self.limits.emit(now, EventKind::Entered { phase, reason });
            }
        }
        self.limits.congestion(now, held.congestion);
        match held.congestion {
            CongestionChoice::Own | CongestionChoice::Reno => {
                self.limits.limit(now, window);
                let pace = held.probed_rate().scaled(HELD_PACE);
                self.limits.pace(Some(pace).filter(|_| self.sensors == Sensors::Probes));
            }
            // Out-of-order data takes room in the window, and retransmissions come on top: the pace
            // is the limit.
            CongestionChoice::Bbr => {
                self.limits.limit(now, window * LOSSY_BDPS);
                self.limits.pace(Some(held.capacity.scaled(LOSSY_PACE)));
            }
        }
    }

    /// Evaluates an epoch in which the sender's congestion control ignores losses: other traffic
    /// must not suffer from that.
    fn check_lossy(&mut self, now: Time, epoch: &Epoch, base: Duration) {
        let State::Held(held) = &mut self.state else { return };
        if epoch.losses > 0 {
            held.last_loss = now;
        }
        if held.settling > 0 || epoch.stalled {
            held.settling = held.settling.saturating_sub(1);
            return;
        }
        let queue = epoch.rtt.saturating_sub(base);
        held.others = in_a_row(held.others, queue > held.queue * OTHERS_QUEUE);
        held.collapsed = in_a_row(held.collapsed, epoch.rate < held.capacity.scaled(OTHERS_RATE));
        if held.others >= COLLAPSE_EPOCHS {
            return self.open(now, Reason::OthersQueue);
        }
        if held.collapsed >= KEEPS_EPOCHS {
            return self.open(now, Reason::RateFell);
        }
        if now.since(held.last_loss) >= LOSSLESS {
            held.congestion = CongestionChoice::Own;
            held.restart();
            self.apply_hold(now);
        }
    }

    /// Evaluates an epoch.
    pub(super) fn check_hold(&mut self, now: Time, epoch: &Epoch, base: Duration) {
        let State::Held(held) = &mut self.state else { return };
        if held.congestion == CongestionChoice::Bbr {
            return self.check_lossy(now, epoch, base);
        }
        if held.settling > 0 {
            held.settling -= 1;
            // Losses now are of packets sent before the last change, unless that was a step up.
            if epoch.losses == 0 || held.probe.is_none() {
                return;
            }
        }
        if held.is_opening() {
            return self.check_opening(now, epoch, base);
        }
        if epoch.losses > 0 {
            return self.check_loss(now, base);
        }
        let Some(window) = self.limits.window() else { return };
        let in_flight = epoch.rate * epoch.highest_rtt;
        // The pace is a limit, too.
        let binds = self.limits.binds(window, in_flight) || epoch.rate > held.capacity;
        if epoch.stalled || !binds {
            return;
        }
        let queue = epoch.rtt.saturating_sub(base);
        if held.is_doubted {
            return self.correct(now, epoch.rate, queue);
        }
        let is_below = |share| epoch.rate < held.capacity.scaled(share);
        let foreign = is_below(OTHERS_RATE) && queue > held.queue * OTHERS_QUEUE;
        // At a lower rate what the window lets in stands in a queue, or it is the sender that sends less.
        let is_short = queue < held.queue / 2;
        held.below = in_a_row(held.below, is_below(KEPT_RATE_SHARE) && !is_short);
        held.collapsed = in_a_row(held.collapsed, is_below(COLLAPSE));
        held.others = in_a_row(held.others, foreign);
        let idle = is_short && !is_below(1.0);
        if held.others >= COLLAPSE_EPOCHS {
            return self.open(now, Reason::OthersQueue);
        }
        if held.collapsed >= COLLAPSE_EPOCHS || held.below >= KEEPS_EPOCHS {
            return self.open(now, Reason::RateFell);
        }
        held.idle = in_a_row(held.idle, idle);
        held.confirmed += u32::from(!idle && !is_below(KEPT_RATE_SHARE));
        held.is_remembered &= held.confirmed < KEEPS_EPOCHS;
        if held.is_remembered && idle {
            return self.doubt(now, base);
        }
        if held.probe_bandwidth(epoch.rate, self.limits.step_of(window)) {
            if held.probe.is_some_and(|probe| probe.followed > FASTER_STEPS) {
                return self.open(now, Reason::PathFaster);
            }
            self.apply_hold(now);
        }
    }

    /// The memory is too low: the window is widened by what the buffer holds, so that nothing is lost whether the path
    /// carries a little more or much more.
    fn doubt(&mut self, now: Time, base: Duration) {
        let State::Held(held) = &mut self.state else { return };
        held.capacity = held.capacity + held.room / base;
        held.is_doubted = true;
        held.restart();
        self.apply_hold(now);
    }

    /// Evaluates an epoch under a window that was widened by what the buffer holds: a queue shows the capacity.
    fn correct(&mut self, now: Time, rate: Rate, queue: Duration) {
        let State::Held(held) = &mut self.state else { return };
        if queue < held.queue / 2 && rate >= held.capacity.scaled(KEPT_RATE_SHARE) {
            return self.open(now, Reason::PathFaster);
        }
        held.capacity = rate;
        held.is_doubted = false;
        held.restart();
        self.apply_hold(now);
    }

    /// Evaluates an epoch in which the window of a memory is opened: nothing may overflow, and no queue stands yet.
    fn check_opening(&mut self, now: Time, epoch: &Epoch, base: Duration) {
        let State::Held(held) = &mut self.state else { return };
        if epoch.losses > 0 {
            return self.open(now, Reason::Overflow);
        }
        let queue = epoch.rtt.saturating_sub(base);
        // By so much the window opens in a round trip, which slow start sends at once.
        let own = held.room / held.capacity;
        held.others = in_a_row(held.others, queue > held.queue * OTHERS_QUEUE + own);
        if held.others >= COLLAPSE_EPOCHS {
            self.open(now, Reason::OthersQueue);
        }
    }

    /// A loss under the limit: random where no queue was seen, else an overflow.
    fn check_loss(&mut self, now: Time, base: Duration) {
        let queue = self.recent_queue(base);
        let State::Held(held) = &mut self.state else { return };
        let was_probing = held.end_probe();
        if queue <= held.queue {
            if self.sensors == Sensors::Kernel {
                return self.open(now, Reason::RandomLoss);
            }
            held.congestion = CongestionChoice::Bbr;
            held.last_loss = now;
        } else if was_probing && !held.is_shallow {
            // The buffer has no room for a step.
            held.is_shallow = true;
        } else if held.halved {
            return self.open(now, Reason::Overflow);
        } else {
            held.halved = true;
            held.queue = held.queue / 2;
        }
        held.restart();
        held.settling += LOSS_EPOCHS as u32;
        self.apply_hold(now);
    }
}
