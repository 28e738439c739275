//! Held at the capacity, as long as no other flow shares the path.

use sweetspot_units::{Bytes, Duration, Rate, Time};

use super::climb::cycle_epochs;
use super::limits::target_queue;
use super::memory::{Memory, opened};
use super::paced::Paced;
use super::performance::{Performance, Traffic};
use super::probing::BandwidthProbe;
use super::state::State;
use super::streaks::Streaks;
use super::{MIN_OBSERVATIONS, SETTLING_EPOCHS, Sensors, Sobas, repair_epochs};
use crate::model::{CHANGE, Epoch, PACE_SHARE, RESOLUTION, Share};
use crate::{CongestionChoice, EventKind, PATH_LIFETIME, Reason, SizingPhase};

/// Epochs needed to distinguish a rate difference of [`RESOLUTION`] from chance
/// (`two_epochs_far_below_capacity_or_four_slightly_below_end_the_hold`).
pub(super) const KEEPS_EPOCHS: u32 = 4;

/// A window held at C x (T + queue).
#[derive(Debug, Clone, Copy)]
pub(super) struct Held {
    /// Payload rate of the path.
    pub(super) capacity: Rate,
    /// The queueing delay to keep.
    pub(super) queue: Duration,
    /// Epochs until the last change takes effect.
    pub(super) settling: u32,
    pub(super) hold: Hold,
    /// The epochs of the current cycle; if their mean rate is below the capacity, also later epochs.
    unused: Performance,
    /// Losses since the hold began, except while a change took effect.
    lost: Share,
    source: Source,
    /// Whether a step of the window overflowed the buffer, and whether another overflow halved the queue.
    pub(super) is_shallow: bool,
    halved: bool,
}

/// How the window is held.
#[derive(Debug, Clone, Copy)]
pub(super) enum Hold {
    /// The window is opening up to the remembered one; `cross_queue_epochs` counts consecutive epochs with a queue of cross traffic.
    Opening { cross_queue_epochs: u32 },
    /// The remembered capacity was too low. The window is wider by the buffer's lower bound, to measure by how much.
    Correcting,
    /// At the capacity.
    Steady(Streaks),
    /// Wider by a step than the capacity needs.
    Probing(Streaks, BandwidthProbe),
    /// A pacing rate keeps the flow at the capacity: packets are lost at random, and BBR ignores these losses.
    Paced(Paced),
}

/// The evidence for the capacity.
#[derive(Debug, Clone, Copy)]
enum Source {
    /// It was measured on this connection.
    Measured,
    /// A trial that began at this time cost no rate.
    Trial { began: Time },
    /// Another transfer measured the capacity, and `confirmed` epochs here confirmed it. `room` is a lower bound of the
    /// path's buffer: data in flight may grow by this in one RTT.
    Memory { room: Bytes, confirmed: u32 },
}

impl Held {
    /// Held at this payload rate and base RTT.
    pub(super) fn new(capacity: Rate, base: Duration) -> Held {
        Held::keeping(capacity, target_queue(base))
    }

    /// Held at the result of a trial that began at `began` and cost no rate.
    pub(super) fn after_trial(capacity: Rate, queue: Duration, began: Time) -> Held {
        Held { source: Source::Trial { began }, ..Held::keeping(capacity, queue) }
    }

    /// Held by a pacing rate, at a capacity that a climb found. Below that capacity, a share of `free` was lost.
    pub(super) fn paced(now: Time, capacity: Rate, free: Share, base: Duration) -> Held {
        let hold = Hold::Paced(Paced::new(now, capacity, free));
        // Congestion control never reached a window of that capacity.
        Held { hold, halved: true, ..Held::keeping(capacity, target_queue(base)) }
    }

    /// Held at another transfer's capacity, on a path with a buffer of at least `room`.
    pub(super) fn remembered(capacity: Rate, queue: Duration, room: Bytes) -> Held {
        Held {
            hold: Hold::Opening { cross_queue_epochs: 0 },
            source: Source::Memory { room, confirmed: 0 },
            ..Held::keeping(capacity, queue)
        }
    }

    /// The window to hold from the beginning, if it was saved recently and `base` at `now` is an RTT of the remembered path:
    /// more than half of the saved RTT, and at most ten times it (RFC 9959, section 4.2.1).
    pub(super) fn resumed(memory: &Memory, now: Time, base: Duration) -> Option<Held> {
        let is_same = base > memory.base / 2 && base <= memory.base * 10;
        let is_recent = now.since(memory.at) < PATH_LIFETIME;
        let held = || Held::remembered(memory.capacity, memory.queue, memory.room());
        (is_same && is_recent).then(held)
    }

    /// The saved parameters of a path with this RTT and longest queue; `unused` bytes were left unused after an overflow.
    pub(super) fn memory(
        &self,
        base: Duration,
        longest_queue: Duration,
        unused: Bytes,
        at: Time,
    ) -> Memory {
        Memory { capacity: self.known(), queue: self.queue, base, longest_queue, unused, at }
    }

    /// When the trial behind this hold began, if there was one.
    pub(super) fn tried(&self) -> Option<Time> {
        match self.source {
            Source::Trial { began } => Some(began),
            Source::Measured | Source::Memory { .. } => None,
        }
    }

    /// Held at `capacity` with `queue`.
    fn keeping(capacity: Rate, queue: Duration) -> Held {
        Held {
            capacity,
            queue,
            settling: SETTLING_EPOCHS,
            hold: Hold::Steady(Streaks::default()),
            unused: Performance::default(),
            lost: Share::default(),
            source: Source::Measured,
            is_shallow: false,
            halved: false,
        }
    }

    /// Whether the window is still on its way to the held one.
    pub(super) fn is_opening(&self) -> bool {
        matches!(self.hold, Hold::Opening { .. })
    }

    /// Whether only a remembered capacity supports the hold.
    pub(super) fn is_remembered(&self) -> bool {
        matches!(self.source, Source::Memory { .. })
    }

    /// A lower bound of the buffer of a remembered path; zero on others.
    fn room(&self) -> Bytes {
        match self.source {
            Source::Memory { room, .. } => room,
            Source::Measured | Source::Trial { .. } => Bytes::ZERO,
        }
    }

    /// A probe was answered on a path of this base RTT.
    pub(super) fn handle_probe(&mut self, rtt: Duration, base: Duration) {
        match &mut self.hold {
            Hold::Paced(paced) if self.settling == 0 => paced.handle_probe(rtt, base),
            // The pacing rate leaves little of the path idle.
            Hold::Paced(_) => {}
            _ => self.unused.handle_probe(rtt, base),
        }
    }

    pub(super) fn hold(&self) -> &Hold {
        &self.hold
    }

    /// Changes or restarts the way of holding; nothing else changes `hold`.
    fn transition_to(&mut self, hold: Hold) {
        debug_assert!(self.hold.may_become(&hold), "{:?} {hold:?}", self.hold);
        self.hold = hold;
    }

    /// As [`Held::transition_to`], with another window, which takes effect within some epochs.
    pub(super) fn change(&mut self, hold: Hold) {
        self.transition_to(hold);
        self.settling = SETTLING_EPOCHS;
    }

    /// Halves the queue; returns false if it was halved before.
    pub(super) fn shorten_queue(&mut self) -> bool {
        if self.halved {
            return false;
        }
        self.halved = true;
        self.queue = self.queue / 2;
        true
    }

    /// Makes the window the limit again.
    pub(super) fn become_steady(&mut self) {
        self.change(Hold::Steady(Streaks::default()));
    }

    /// Whether an epoch under a pacing rate decides nothing, because an application stalled or the last change has not taken
    /// effect.
    pub(super) fn ignores(&mut self, epoch: &Epoch) -> bool {
        let ignores = self.settling > 0 || epoch.stalled;
        if ignores {
            self.settling = self.settling.saturating_sub(1);
        }
        ignores
    }

    /// Slow start is over: its epochs do not show the rate that congestion control will reach.
    pub(super) fn forget_slow_start(&mut self) {
        self.unused = Performance::default();
    }

    /// Whether congestion control has left a part of the capacity unused for a cycle of epochs.
    fn leaves_capacity(&self) -> bool {
        self.unused.rates.count() >= cycle_epochs()
            && self.unused.rate() < others_rate(self.capacity)
    }

    /// Records whether an epoch at a remembered capacity confirms it.
    fn confirm(&mut self, confirms: bool) {
        if let Source::Memory { confirmed, .. } = &mut self.source {
            *confirmed += u32::from(confirms);
            if *confirmed >= KEEPS_EPOCHS {
                self.source = Source::Measured;
            }
        }
    }
}

/// If cross traffic uses a path of this capacity, the rate is below this: lower by twice a change.
pub(super) fn others_rate(capacity: Rate) -> Rate {
    capacity.scaled(1.0 - 2.0 * CHANGE)
}

/// Whether `queue` exceeds twice our `own` queue: then cross traffic has at least as much in it.
pub(super) fn is_foreign(queue: Duration, own: Duration) -> bool {
    queue > own * 2
}

/// `count` + 1 if the condition holds, else 0.
pub(super) fn streak(count: u32, holds: bool) -> u32 {
    if holds { count + 1 } else { 0 }
}

impl Sobas {
    /// Sets the window and the pacing rate for the held capacity.
    pub(super) fn apply_hold(&mut self, now: Time) {
        let (State::Held(held), Some(base)) = (&mut self.state, self.min_rtt.get()) else { return };
        let mut window = self.limits.window_for(held.probed_rate(), base, held.queue);
        if let Hold::Opening { cross_queue_epochs } = held.hold {
            let opened = opened(self.inflight.largest(), held.room());
            if opened < window {
                window = opened;
            } else {
                held.transition_to(Hold::Steady(Streaks {
                    cross_queue_epochs,
                    ..Streaks::default()
                }));
                let (phase, reason) = (SizingPhase::Holding, Reason::PathRemembered);
                self.limits.emit(now, EventKind::Entered { phase, reason });
            }
        }
        if let Hold::Paced(paced) = held.hold {
            self.limits.congestion(now, CongestionChoice::Bbr);
            // The pacing rate is the limit. The window must also hold the out-of-order data of a whole repair.
            self.limits.limit(now, window * u64::from(repair_epochs()));
            return self.limits.pace(Some(held.capacity.scaled(paced.share())));
        }
        self.limits.congestion(now, CongestionChoice::Own);
        self.limits.limit(now, window);
        let pace = held.probed_rate().scaled(2.0 - PACE_SHARE);
        self.limits.pace(Some(pace).filter(|_| self.sensors == Sensors::Probes));
    }

    /// Evaluates an epoch.
    pub(super) fn check_hold(
        &mut self,
        now: Time,
        epoch: &Epoch,
        base: Duration,
        traffic: Traffic,
    ) {
        let State::Held(held) = &mut self.state else { return };
        if let Hold::Paced(_) = held.hold {
            return self.check_paced(now, epoch, base, traffic);
        }
        held.unused.handle_epoch(epoch, traffic);
        if held.unused.rates.count() >= cycle_epochs() && !held.leaves_capacity() {
            held.unused = Performance::default();
        }
        if held.settling > 0 {
            held.settling -= 1;
            // These losses are of packets sent before the last change, unless that was a step up.
            if epoch.losses == 0 || !matches!(held.hold, Hold::Probing(..)) {
                return;
            }
        }
        if let Hold::Opening { .. } = held.hold {
            return self.check_opening(now, epoch, base);
        }
        held.lost.add(traffic.retransmitted, traffic.delivered);
        if epoch.losses > 0 {
            return self.check_loss(now, epoch.rate, base);
        }
        let Some(window) = self.limits.window() else { return };
        let in_flight = epoch.rate * epoch.highest_rtt;
        // The pacing rate is a limit, too.
        let binds = self.limits.binds(window, in_flight) || epoch.rate > held.capacity;
        if epoch.stalled {
            return;
        }
        let queue = epoch.rtt.saturating_sub(base);
        if !binds {
            return self.check_unused(now, epoch.rate, queue);
        }
        match held.hold {
            Hold::Correcting => self.correct(now, epoch.rate, queue),
            _ => self.check_rate(now, epoch.rate, queue, base),
        }
    }

    /// Evaluates an epoch in which the sender's congestion control was the limit. This lasts long after losses in slow start.
    fn check_unused(&mut self, now: Time, rate: Rate, queue: Duration) {
        if self.in_slow_start || self.is_shared || self.sensors == Sensors::Kernel {
            return;
        }
        let State::Held(held) = &mut self.state else { return };
        let is_steady = matches!(held.hold, Hold::Steady(_));
        let is_unused = rate < others_rate(held.capacity) && held.leaves_capacity();
        if is_steady && is_unused && queue <= held.queue {
            self.pace_or_open(now);
        }
    }

    /// Paces at the capacity, because congestion control leaves a part of it unused. Opens the path if cross traffic uses that
    /// part.
    fn pace_or_open(&mut self, now: Time) {
        let State::Held(held) = &mut self.state else { return };
        if held.unused.max_lone_capacity() < held.capacity {
            return self.open(now, Reason::CrossTrafficQueue);
        }
        held.unused = Performance::default();
        held.change(Hold::Paced(Paced::new(now, held.capacity, held.lost)));
        held.settling += repair_epochs();
        self.apply_hold(now);
    }

    /// Evaluates an epoch in which the window was the limit.
    fn check_rate(&mut self, now: Time, rate: Rate, queue: Duration, base: Duration) {
        let Some(window) = self.limits.window() else { return };
        let State::Held(held) = &mut self.state else { return };
        let (capacity, kept) = (held.capacity, held.queue);
        let (Hold::Steady(streaks) | Hold::Probing(streaks, _)) = &mut held.hold else { return };
        let is_below = |share| rate < capacity.scaled(share);
        let foreign = rate < others_rate(capacity) && is_foreign(queue, kept);
        // At a lower rate, the window's excess forms a queue. Without a queue, the sender itself sends less.
        let is_short = queue < kept / 2;
        let idle = is_short && !is_below(1.0);
        streaks.below = streak(streaks.below, is_below(1.0 - RESOLUTION) && !is_short);
        streaks.collapsed = streak(streaks.collapsed, is_below(1.0 - CHANGE));
        streaks.cross_queue_epochs = streak(streaks.cross_queue_epochs, foreign);
        if streaks.cross_queue_epochs >= MIN_OBSERVATIONS {
            return self.open(now, Reason::CrossTrafficQueue);
        }
        if streaks.collapsed >= MIN_OBSERVATIONS || streaks.below >= KEEPS_EPOCHS {
            return self.open(now, Reason::RateFell);
        }
        streaks.idle = streak(streaks.idle, idle);
        held.confirm(!idle && !is_below(1.0 - RESOLUTION));
        if held.is_remembered() && idle {
            return self.widen_to_buffer(now, base);
        }
        if held.probe_bandwidth(rate, self.limits.step_of(window)) {
            if matches!(held.hold, Hold::Probing(_, probe) if probe.followed > MIN_OBSERVATIONS) {
                return self.open(now, Reason::PathFaster);
            }
            self.apply_hold(now);
        }
    }

    /// The remembered capacity is too low: widens the window by the buffer's lower bound. Nothing is lost, no matter how much
    /// more the path carries.
    fn widen_to_buffer(&mut self, now: Time, base: Duration) {
        let State::Held(held) = &mut self.state else { return };
        held.capacity = held.capacity + held.room() / base;
        held.change(Hold::Correcting);
        self.apply_hold(now);
    }

    /// Evaluates an epoch under a window that was widened by the buffer's lower bound: a queue shows the capacity.
    fn correct(&mut self, now: Time, rate: Rate, queue: Duration) {
        let State::Held(held) = &mut self.state else { return };
        if queue < held.queue / 2 && rate >= held.capacity.scaled(1.0 - RESOLUTION) {
            return self.open(now, Reason::PathFaster);
        }
        held.capacity = rate;
        held.change(Hold::Steady(Streaks::default()));
        self.apply_hold(now);
    }

    /// Evaluates an epoch while a remembered window is opened: the buffer must not overflow, and no queue stands yet.
    fn check_opening(&mut self, now: Time, epoch: &Epoch, base: Duration) {
        let State::Held(held) = &mut self.state else { return };
        if epoch.losses > 0 {
            return self.open(now, Reason::Overflow);
        }
        let queue = epoch.rtt.saturating_sub(base);
        // The window's growth in one RTT, which slow start sends as a burst.
        let own = held.room() / held.capacity;
        let foreign = is_foreign(queue.saturating_sub(own), held.queue);
        let Hold::Opening { cross_queue_epochs } = &mut held.hold else { return };
        *cross_queue_epochs = streak(*cross_queue_epochs, foreign);
        if *cross_queue_epochs >= MIN_OBSERVATIONS {
            self.open(now, Reason::CrossTrafficQueue);
        }
    }

    /// Evaluates a loss under the limit. It is random if no queue was seen, otherwise an overflow. A random loss that leaves no
    /// capacity unused changes nothing.
    fn check_loss(&mut self, now: Time, rate: Rate, base: Duration) {
        let queue = self.recent_queue(base);
        let State::Held(held) = &mut self.state else { return };
        let was_probing = matches!(held.hold, Hold::Probing(..));
        held.capacity = held.known();
        held.change(match held.hold {
            Hold::Correcting => Hold::Correcting,
            _ => Hold::Steady(Streaks::default()),
        });
        if was_probing && !held.is_shallow {
            // The step itself may have caused the loss, because the buffer cannot hold it.
            held.is_shallow = true;
        } else if queue <= held.queue {
            if self.sensors == Sensors::Kernel || self.is_shared {
                return self.open(now, Reason::RandomLoss);
            }
            // Under a congestion control that ignores losses, the window limits the rate during a repair.
            let is_unused = self.ignores_losses || held.leaves_capacity();
            if is_unused && rate < others_rate(held.capacity) {
                return self.pace_or_open(now);
            }
        } else if !held.shorten_queue() {
            return self.open(now, Reason::Overflow);
        }
        held.settling += repair_epochs();
        self.apply_hold(now);
    }
}
