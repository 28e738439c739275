use std::collections::{BTreeMap, VecDeque};

use sweetspot_sizing::{Controller, Driver, Effect, Event, KernelView, Means, Phase};
use sweetspot_units::{Bytes, Duration, Rate, Time};

use crate::clamp_check::ClampCheck;
use crate::share::max_min;

/// A connection is a bulk transfer, and is touched, once so much came in over it: four times
/// TCP's initial window (RFC 6928), with which nothing overflows yet.
const BULK: Bytes = Bytes::new(60_000);

/// Over which time a connection's rate is averaged to tell what it would use.
const AVERAGED: Duration = Duration::from_millis(200);

/// Share of its window from which a connection counts as held back by it.
const BOUND: f64 = 0.7;

/// What a connection that uses less is given: half as much again.
const HEADROOM: f64 = 1.5;

/// The least share, in segments: fast retransmit needs as many (RFC 5681).
const LEAST_SEGMENTS: u64 = 4;

/// Changes of a share below this are not worth an action.
const WORTH: f64 = 0.02;

/// All connections between two hosts, sized by one controller: they share a path, so that they
/// share what is known of it and what it carries (RFC 9040, "ensemble sharing"). What the
/// controller allows is divided max-min fair.
///
/// **Contract.** `now` never goes backwards. Every connection is looked at with
/// [`PathGroup::handle_sample`], then [`PathGroup::handle_round`] is called once; then actions and events
/// are polled until there are none.
pub struct PathGroup {
    driver: Driver,
    mss: Bytes,
    members: BTreeMap<u64, Member>,
    round: Round,
    last_round: Option<Time>,
    rtt: Duration,
    minimum: Option<Duration>,
    /// Segments that arrived ahead of a missing one, over all connections there were.
    out_of_order: u64,
    /// When the first bulk transfer was seen.
    bulk_since: Option<Time>,
    /// When the first connection was, after a time without any.
    added: Option<Time>,
    /// What the controller wants in all; `None` while it wants nothing in particular.
    window: Option<Option<Bytes>>,
    /// What memory allows all connections together.
    ceiling: Option<Bytes>,
    actions: VecDeque<Action>,
    events: VecDeque<Event>,
    refusals: VecDeque<Refusal>,
}

/// What one look at a connection showed. Counters run from its beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionSample {
    /// Payload received in order.
    pub received: Bytes,
    /// Of that, what the application has not read.
    pub unread: Bytes,
    /// The receiver's estimate of the round trip; zero for none.
    pub rtt: Duration,
    /// The least round trip of what this end sent; zero for none.
    pub minimum_rtt: Duration,
    /// Segments that arrived ahead of a missing one.
    pub out_of_order: u64,
    /// The window advertised last; `None` on kernels before 6.2, which do not tell.
    pub advertised: Option<Bytes>,
}

/// A limit to be set, or lifted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Action {
    /// The connection's cookie.
    pub cookie: u64,
    /// The limit that was in force.
    pub before: Option<Bytes>,
    /// The most that its window may be; `None`: as the kernel likes.
    pub limit: Option<Bytes>,
}

/// A connection whose window does not keep to its limit, and is left alone from then on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refusal {
    /// The connection's cookie.
    pub cookie: u64,
    /// The limit.
    pub limit: Bytes,
    /// The window in spite of it.
    pub window: Bytes,
}

#[derive(Debug)]
struct Member {
    last: ConnectionSample,
    rate: Rate,
    arrived: Bytes,
    limit: Option<Bytes>,
    clamp_check: ClampCheck,
    /// Whether it is left alone because limits do not reach it.
    refuses: bool,
}

/// What the looks of this round have shown so far.
#[derive(Debug, Default)]
struct Round {
    taken: Bytes,
    unread: Bytes,
    rtts: Vec<Duration>,
}

impl PathGroup {
    /// No connections yet; their segments carry `mss`.
    pub fn new(controller: Box<dyn Controller + Send>, mss: Bytes) -> PathGroup {
        PathGroup {
            // Called in this group's own time.
            driver: Driver::new(controller, Time::ZERO, Means::Caller),
            mss,
            members: BTreeMap::new(),
            round: Round::default(),
            last_round: None,
            rtt: Duration::ZERO,
            minimum: None,
            out_of_order: 0,
            bulk_since: None,
            added: None,
            window: None,
            ceiling: None,
            actions: VecDeque::new(),
            events: VecDeque::new(),
            refusals: VecDeque::new(),
        }
    }

    /// A connection, seen for the first time.
    pub fn add(&mut self, now: Time, cookie: u64, look: ConnectionSample) {
        if self.members.is_empty() {
            self.added = Some(now);
        }
        let member = Member {
            last: look,
            rate: Rate::ZERO,
            arrived: Bytes::ZERO,
            limit: None,
            clamp_check: ClampCheck::default(),
            refuses: false,
        };
        self.members.insert(cookie, member);
    }

    /// A connection is no more. When all bulk transfers are over, what they learnt of the path is
    /// kept for those that come.
    pub fn remove(&mut self, now: Time, cookie: u64) {
        let gone = self.members.remove(&cookie);
        if gone.is_some_and(|m| m.is_bulk()) && !self.members.values().any(Member::is_bulk) {
            self.driver.handle_end(now);
            self.drain();
            (self.window, self.minimum, self.bulk_since) = (None, None, None);
        }
    }

    /// A connection was looked at.
    pub fn handle_sample(&mut self, now: Time, cookie: u64, look: ConnectionSample) {
        let Some(member) = self.members.get_mut(&cookie) else { return };
        let taken = |look: &ConnectionSample| look.received.saturating_sub(look.unread);
        let arrived = look.received.saturating_sub(member.last.received);
        self.round.taken += taken(&look).saturating_sub(taken(&member.last));
        self.round.unread += look.unread;
        let gaps = look.out_of_order.saturating_sub(member.last.out_of_order);
        self.out_of_order += gaps;
        // An estimate is only as new as the data that it was made from.
        if arrived > Bytes::ZERO && look.rtt > Duration::ZERO && member.is_bulk() {
            self.round.rtts.push(look.rtt);
        }
        let minimum = Some(look.minimum_rtt).filter(|rtt| *rtt > Duration::ZERO);
        if let Some(minimum) = minimum.filter(|m| self.minimum.is_none_or(|least| *m < least)) {
            self.minimum = Some(minimum);
        }
        member.last = look;
        member.arrived = arrived;
        // A rate never exceeds window over round trip: where the kernel does not tell the window,
        // it was at least this.
        let shown = look.advertised.or_else(|| Some(member.rate * self.minimum?));
        if let Some((limit, window)) = member.limit.zip(shown)
            && !member.refuses
            && member.clamp_check.is_broken(now, limit, window, arrived)
        {
            self.refusals.push_back(Refusal { cookie, limit, window });
            self.leave(cookie);
        }
        let Some(member) = self.members.get(&cookie) else { return };
        if member.is_bulk() {
            self.bulk_since.get_or_insert(now);
        }
    }

    /// A connection cannot be limited, and is left alone from now on.
    pub fn leave(&mut self, cookie: u64) {
        let Some(member) = self.members.get_mut(&cookie) else { return };
        member.refuses = true;
        if let Some(before) = member.limit.take() {
            self.actions.push_back(Action { cookie, before: Some(before), limit: None });
        }
    }

    /// Every connection was looked at.
    pub fn handle_round(&mut self, now: Time) {
        let mut round = std::mem::take(&mut self.round);
        if let Some(span) = self.last_round.map(|last| now.since(last)) {
            let gain = (span.as_secs_f64() / AVERAGED.as_secs_f64()).min(1.0);
            for member in self.members.values_mut() {
                let rate = (member.arrived / span).as_f64();
                let moved = member.rate.as_f64() + gain * (rate - member.rate.as_f64());
                member.rate = Rate::from_f64(moved);
            }
        }
        self.last_round = Some(now);
        round.rtts.sort_unstable();
        let mut kernel = KernelView {
            minimum_rtt: self.minimum.unwrap_or(Duration::ZERO),
            out_of_order: self.out_of_order,
            ..KernelView::default()
        };
        if let Some(rtt) = round.rtts.get(round.rtts.len() / 2) {
            self.rtt = *rtt;
            let least = self.minimum.unwrap_or(*rtt);
            kernel.rtt = rtt.saturating_sub(self.floor_queue()).max(least.min(*rtt));
        }
        self.driver.handle_kernel(now, &kernel);
        // Where nothing comes, that is the path's doing only while there is a bulk transfer.
        if round.taken > Bytes::ZERO || self.bulk_since.is_some() {
            self.driver.handle_data(now, round.taken, round.unread);
        }
        self.driver.handle_timeout(now, &kernel);
        self.drain();
        self.divide();
    }

    /// The next thing to do, until `None`.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// The next thing that the controller has to say, until `None`.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// The next connection that does not keep to its limit, until `None`.
    pub fn poll_refusal(&mut self) -> Option<Refusal> {
        self.refusals.pop_front()
    }

    /// Where the controller stands.
    pub fn phase(&self) -> Phase {
        self.driver.phase()
    }

    /// How long to wait before the next round: often enough for the controller, and not less than
    /// `cpu_budget` unless a transfer has just begun.
    pub fn pause(&self, now: Time, cpu_budget: Duration) -> Duration {
        if self.members.values().all(|m| m.arrived == Bytes::ZERO && m.rate < IDLE) {
            let is_young = self.added.is_some_and(|added| now.since(added) < YOUNG);
            return if is_young {
                YOUNG_PAUSE.max(cpu_budget / YOUNG_COST)
            } else {
                IDLE_PAUSE.max(cpu_budget)
            };
        }
        let opens = match self.phase() {
            Phase::Measuring | Phase::Ramping | Phase::Trying | Phase::Open => true,
            Phase::HandsOff | Phase::Holding | Phase::Congested => false,
        };
        if opens && self.bulk_since.is_none_or(|since| now.since(since) < OPENING) {
            return OPENING_PAUSE.max(cpu_budget / OPENING_COST);
        }
        (self.rtt / 2).clamp(Duration::from_millis(5), IDLE_PAUSE).max(cpu_budget)
    }

    /// The limit in force on a connection.
    pub fn limit(&self, cookie: u64) -> Option<Bytes> {
        self.members.get(&cookie)?.limit
    }

    /// What the controller allows all connections together; `None`: no limit.
    pub fn window(&self) -> Option<Bytes> {
        self.window.flatten()
    }

    /// What all connections together may have at most, whatever the controller says; acts at the
    /// next round.
    pub fn set_ceiling(&mut self, ceiling: Option<Bytes>) {
        self.ceiling = ceiling;
    }

    /// How fast all connections together receive.
    pub fn rate(&self) -> Rate {
        self.members.values().fold(Rate::ZERO, |sum, member| sum + member.rate)
    }

    /// The latest round trip, and the least one.
    pub fn round_trips(&self) -> (Duration, Option<Duration>) {
        (self.rtt, self.minimum)
    }

    fn drain(&mut self) {
        while let Some(effect) = self.driver.poll_effect() {
            match effect {
                Effect::Window(window) => self.window = Some(window),
                Effect::Event(event) => self.events.push_back(event),
                // Nobody there could be asked, and no probes are sent.
                Effect::Pacing(_)
                | Effect::Congestion(_)
                | Effect::Probe { .. }
                | Effect::Train { .. }
                | Effect::ProbesBlocked => {}
            }
        }
    }

    /// The queue that stands because nobody is held to less than fast retransmit needs: the
    /// controller cannot take it away, and is not to take it for others'.
    fn floor_queue(&self) -> Duration {
        let Some(window) = self.window.flatten() else { return Duration::ZERO };
        let held = self.members.values().filter(|m| m.limit.is_some()).count() as u64;
        let over = (self.mss * LEAST_SEGMENTS * held).saturating_sub(window);
        if over == Bytes::ZERO { Duration::ZERO } else { over / self.rate() }
    }

    /// Divides the window over the bulk transfers.
    fn divide(&mut self) {
        let window = match (self.window, self.ceiling) {
            (None, None) => return,
            (window, None) => window.flatten(),
            (window, Some(ceiling)) => Some(window.flatten().map_or(ceiling, |w| w.min(ceiling))),
        };
        let bulk = self.members.iter().filter(|(_, m)| m.is_bulk() && !m.refuses);
        let bulk: Vec<u64> = bulk.map(|(cookie, _)| *cookie).collect();
        let limits: Vec<Option<Bytes>> = match window {
            None => vec![None; bulk.len()],
            Some(window) => {
                let least = self.mss * LEAST_SEGMENTS;
                let demands: Vec<Bytes> =
                    bulk.iter().map(|c| self.members[c].demand(window, self.rtt)).collect();
                let shares = max_min(window, &demands);
                // Who wants less now may want more in a moment: it is held to no less than an
                // equal part, for it takes nothing by not using it.
                let equal = window / bulk.len().max(1) as u64;
                shares.into_iter().map(|share| Some(share.max(equal).max(least))).collect()
            }
        };
        for (cookie, limit) in bulk.into_iter().zip(limits) {
            let Some(member) = self.members.get_mut(&cookie) else { continue };
            if differs(member.limit, limit) {
                let before = std::mem::replace(&mut member.limit, limit);
                self.actions.push_back(Action { cookie, before, limit });
            }
        }
    }
}

/// How long a connection may take until the first data comes over it, ...
const YOUNG: Duration = Duration::from_secs(1);
/// ... and how long nobody may look meanwhile: slow start has passed the path and a small buffer four
/// round trips after.
const YOUNG_PAUSE: Duration = Duration::from_millis(10);
/// ... while looks take no more than so many times their usual share of a core.
const YOUNG_COST: u64 = 8;

/// How long windows are expected to open: slow start, and what comes of it.
const OPENING: Duration = Duration::from_secs(3);
/// Between two rounds meanwhile: a burst that lasts long enough to be timed is seen twice.
const OPENING_PAUSE: Duration = Duration::from_millis(3);
/// ... but looks at many connections take no more than so many times their usual share of a core.
const OPENING_COST: u64 = 25;
/// Between two rounds at most.
const IDLE_PAUSE: Duration = Duration::from_millis(50);

/// A path group that receives less has nothing to size.
const IDLE: Rate = Rate::from_bits_per_second(80_000);

impl Member {
    fn is_bulk(&self) -> bool {
        self.last.received >= BULK
    }

    /// How much window it would use.
    fn demand(&self, window: Bytes, rtt: Duration) -> Bytes {
        let used = self.rate * rtt;
        match self.limit {
            Some(limit) if used < limit.scaled(BOUND) => used.scaled(HEADROOM),
            _ => window,
        }
    }
}

fn differs(before: Option<Bytes>, after: Option<Bytes>) -> bool {
    match (before, after) {
        (Some(before), Some(after)) => {
            (after.as_f64() - before.as_f64()).abs() > before.as_f64() * WORTH
        }
        _ => before != after,
    }
}
