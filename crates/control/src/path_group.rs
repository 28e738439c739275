use std::collections::{BTreeMap, VecDeque};
use std::fmt;

use sweetspot_sizing::{
    Controller, ControllerConfig, Driver, Effect, EventKind, InputSource, KernelView,
    PROBE_INTERVAL, ProbeAnswer, Reason, SavedWindow, SizingPhase, TIMESTAMP_TICK, TrainPacket,
};
use sweetspot_units::{Bytes, Duration, Rate, Time};

use crate::clamp_check::ClampCheck;
use crate::event::TuneEventKind;
use crate::sender_help::{HELP_BYTES, SenderHelp, SenderRequest};
use sweetspot_sizing::share::max_min;

/// A connection counts as a bulk transfer, and may be limited, once it has received this much: four initial
/// windows (RFC 6928), with which no buffer overflows yet.
pub const BULK_BYTES: Bytes = Bytes::new(60_000);

/// The time over which a connection's rate is averaged to estimate its demand.
const RATE_AVERAGING_TIME: Duration = Duration::from_millis(200);

/// A connection that uses this share of its window counts as limited by it.
const WINDOW_BOUND_SHARE: f64 = 0.7;

/// A connection that uses less may have this multiple of its use.
const DEMAND_HEADROOM: f64 = 1.5;

/// The min share, segments: fast retransmit needs this many (RFC 5681).
const MIN_SHARE_SEGMENTS: u64 = 4;

/// Limits that change by less than this share are not set again.
const MIN_LIMIT_CHANGE: f64 = 0.02;

/// All connections between two hosts, sized by one controller. They share a path, and so its known properties and its capacity
/// (RFC 9040, "ensemble sharing"). The controller's window is divided max-min fair.
///
/// **Contract.** `now` never goes backwards. In each round the caller passes the news of every connection to
/// [`PathGroup::handle_sample`], calls [`PathGroup::handle_round`] once, and then polls limit changes, ignored limits and
/// events until there are none.
pub struct PathGroup {
    driver: Driver,
    /// Requests to the sender; `None` if it cannot help.
    help: Option<SenderHelp>,
    mss: Bytes,
    members: BTreeMap<u64, Member>,
    round: RoundTotals,
    last_round: Option<Time>,
    rtt: Duration,
    minimum: Option<Duration>,
    /// Segments that arrived ahead of a missing one, over all connections there were.
    out_of_order: u64,
    /// When the first bulk transfer was seen.
    bulk_since: Option<Time>,
    /// When the first connection came, after a time without any.
    added: Option<Time>,
    /// The controller's window for all connections together; `None` until it set or lifted one.
    window: Option<Option<Bytes>>,
    /// The memory budget of all connections together.
    ceiling: Option<Bytes>,
    /// The parameters saved by the last bulk transfer, once.
    memory: Option<Option<SavedWindow>>,
    /// Why the controller entered its phase.
    reason: Option<Reason>,
    limit_changes: VecDeque<LimitChange>,
    events: VecDeque<(TuneEventKind, String)>,
    ignored_limits: VecDeque<IgnoredLimit>,
}

/// One sample of a connection. Counters run from the connection's beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionSample {
    /// Payload received in order.
    pub received: Bytes,
    /// The part of it that the application has not read.
    pub unread: Bytes,
    /// The receiver's estimate of the round-trip time; zero for none.
    pub rtt: Duration,
    /// The min RTT of this end's own segments; zero for none.
    pub minimum_rtt: Duration,
    /// Segments that arrived out of order.
    pub out_of_order: u64,
    /// The window advertised last; `None` on kernels before 6.2.
    pub advertised: Option<Bytes>,
}

/// A change of a connection's window limit, to be applied by the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LimitChange {
    /// The connection's cookie.
    pub cookie: u64,
    /// The limit before; `None`: no limit.
    pub before: Option<Bytes>,
    /// The limit from now on; `None`: no limit.
    pub limit: Option<Bytes>,
}

/// A connection with a window that the kernel does not keep to its limit. The tuner leaves it alone from then on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IgnoredLimit {
    /// The connection's cookie.
    pub cookie: u64,
    /// The limit that is ignored.
    pub limit: Bytes,
    /// The window beyond it.
    pub window: Bytes,
}

impl fmt::Display for IgnoredLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let IgnoredLimit { limit, window, .. } = self;
        write!(
            f,
            "this kernel does not keep to the limit: a window of {window} under one of {limit}; left alone"
        )
    }
}

/// The MSS that every host must be able to receive (RFC 9293, section 3.7.1).
const MIN_MSS: Bytes = Bytes::new(536);
/// IPv4 and TCP headers with timestamps.
const TCP_IP_HEADERS: Bytes = Bytes::new(52);

/// The configuration of a live receiver's controller, on a connection that advertised this MSS.
pub fn receiver_config(advertised_mss: Bytes, max_window: Bytes) -> ControllerConfig {
    let mss = advertised_mss.max(MIN_MSS);
    ControllerConfig { mss, packet: mss + TCP_IP_HEADERS, max_window, size: None, path: None }
}

#[derive(Debug)]
struct Member {
    last: ConnectionSample,
    rate: Rate,
    arrived: Bytes,
    /// Whether there was a sample in this round.
    is_sampled: bool,
    limit: Option<Bytes>,
    /// The window that it advertised when it was first limited.
    first: Bytes,
    clamp_check: ClampCheck,
    /// Whether it is left alone because limits do not reach it.
    refuses: bool,
}

/// The sums over the samples of the current round.
#[derive(Debug, Default)]
struct RoundTotals {
    taken: Bytes,
    unread: Bytes,
    rtts: Vec<Duration>,
}

impl PathGroup {
    /// A group without connections, sized by `controller`. Its segments carry at most `mss`.
    pub fn new(controller: Box<dyn Controller + Send>, mss: Bytes) -> PathGroup {
        // Called in this group's own time.
        PathGroup::with(Driver::new(controller, Time::ZERO, InputSource::Caller), None, mss)
    }

    fn with(driver: Driver, help: Option<SenderHelp>, mss: Bytes) -> PathGroup {
        PathGroup {
            driver,
            help,
            mss,
            members: BTreeMap::new(),
            round: RoundTotals::default(),
            last_round: None,
            rtt: Duration::ZERO,
            minimum: None,
            out_of_order: 0,
            bulk_since: None,
            added: None,
            window: None,
            ceiling: None,
            memory: None,
            reason: None,
            limit_changes: VecDeque::new(),
            events: VecDeque::new(),
            ignored_limits: VecDeque::new(),
        }
    }

    /// A group of one connection. As soon as its sender can be reached it answers probes, sends trains and is steered
    /// ([`PathGroup::poll_request`]); the controller waits for that.
    pub fn with_help(controller: Box<dyn Controller + Send>, mss: Bytes) -> PathGroup {
        let driver = Driver::new(controller, Time::ZERO, InputSource::CallerAndOutOfBand);
        PathGroup::with(driver, Some(SenderHelp::default()), mss)
    }

    /// The sender can be reached.
    pub fn handle_reachable(&mut self) {
        if let Some(help) = &mut self.help {
            help.is_reachable = true;
        }
    }

    /// The sender answered a probe.
    pub fn handle_answer(&mut self, now: Time, arrived: Time, answer: &ProbeAnswer) {
        self.driver.handle_answer(now, arrived, answer);
        self.drain();
    }

    /// A packet of a train, of `size` bytes on the wire, arrived.
    pub fn handle_train_packet(
        &mut self,
        now: Time,
        arrived: Time,
        size: Bytes,
        packet: TrainPacket,
    ) {
        self.driver.handle_train_packet(now, arrived, size, packet);
        self.drain();
    }

    /// The next request to the sender; `None` if there are no more.
    pub fn poll_request(&mut self) -> Option<SenderRequest> {
        self.help.as_mut()?.poll()
    }

    /// Adds a connection with its first sample.
    pub fn add(&mut self, now: Time, cookie: u64, sample: ConnectionSample) {
        if self.members.is_empty() {
            self.added = Some(now);
        }
        let member = Member {
            last: sample,
            rate: Rate::ZERO,
            arrived: Bytes::ZERO,
            is_sampled: false,
            limit: None,
            first: Bytes::ZERO,
            clamp_check: ClampCheck::default(),
            refuses: false,
        };
        self.members.insert(cookie, member);
    }

    /// Removes a connection that is over. After the last bulk transfer the limits are lifted; the path's parameters are kept
    /// for the next one.
    pub fn remove(&mut self, now: Time, cookie: u64) {
        let gone = self.members.remove(&cookie);
        if gone.is_some_and(|m| m.is_bulk()) && !self.members.values().any(Member::is_bulk) {
            self.driver.handle_end(now);
            self.drain();
            (self.window, self.minimum, self.bulk_since) = (None, None, None);
        }
    }

    /// Takes a sample of a connection.
    pub fn handle_sample(&mut self, now: Time, cookie: u64, sample: ConnectionSample) {
        let Some(member) = self.members.get_mut(&cookie) else { return };
        let taken = |sample: &ConnectionSample| sample.received.saturating_sub(sample.unread);
        let arrived = sample.received.saturating_sub(member.last.received);
        self.round.taken += taken(&sample).saturating_sub(taken(&member.last));
        self.round.unread += sample.unread;
        let gaps = sample.out_of_order.saturating_sub(member.last.out_of_order);
        self.out_of_order += gaps;
        // An estimate is only as new as the data that it was made from.
        if arrived > Bytes::ZERO && sample.rtt > Duration::ZERO && member.is_bulk() {
            self.round.rtts.push(sample.rtt);
        }
        let minimum = Some(sample.minimum_rtt).filter(|rtt| *rtt > Duration::ZERO);
        if let Some(minimum) = minimum.filter(|m| self.minimum.is_none_or(|min| *m < min)) {
            self.minimum = Some(minimum);
        }
        member.last = sample;
        member.arrived = arrived;
        member.is_sampled = true;
        // A rate never exceeds window over round trip: where the kernel does not tell the window,
        // it was at least this.
        let shown = sample.advertised.or_else(|| Some(member.rate * self.minimum?));
        if let Some((limit, window)) = member.limit.zip(shown)
            && !member.refuses
            && member.clamp_check.is_broken(now, limit, window, arrived)
        {
            self.ignored_limits.push_back(IgnoredLimit { cookie, limit, window });
            self.leave(cookie);
        }
        let Some(member) = self.members.get(&cookie) else { return };
        if member.is_bulk() {
            self.bulk_since.get_or_insert(now);
        }
    }

    /// Leaves a connection that cannot be limited alone from now on.
    pub fn leave(&mut self, cookie: u64) {
        let Some(member) = self.members.get_mut(&cookie) else { return };
        member.refuses = true;
        if let Some(before) = member.limit.take() {
            self.limit_changes.push_back(LimitChange { cookie, before: Some(before), limit: None });
        }
    }

    /// Ends a round. Nothing has arrived for a connection without a sample.
    pub fn handle_round(&mut self, now: Time) {
        let mut round = std::mem::take(&mut self.round);
        for member in self.members.values_mut() {
            if !std::mem::take(&mut member.is_sampled) {
                member.arrived = Bytes::ZERO;
            }
        }
        if let Some(span) = self.last_round.map(|last| now.since(last)) {
            let gain = (span.as_secs_f64() / RATE_AVERAGING_TIME.as_secs_f64()).min(1.0);
            for member in self.members.values_mut() {
                let rate = (member.arrived / span).as_f64();
                let moved = member.rate.as_f64() + gain * (rate - member.rate.as_f64());
                member.rate = Rate::from_f64(moved);
            }
        }
        self.last_round = Some(now);
        if !self.begins(now) {
            return self.divide();
        }
        round.rtts.sort_unstable();
        let mut kernel = KernelView {
            minimum_rtt: self.minimum.unwrap_or(Duration::ZERO),
            out_of_order: self.out_of_order,
            ..KernelView::default()
        };
        if let Some(rtt) = round.rtts.get(round.rtts.len() / 2) {
            self.rtt = *rtt;
            let min = self.minimum.unwrap_or(*rtt);
            kernel.rtt = rtt.saturating_sub(self.floor_queue()).max(min.min(*rtt));
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

    /// Whether the controller runs.
    fn begins(&mut self, now: Time) -> bool {
        let Some(help) = &mut self.help else { return true };
        let sends = self.members.values().any(|member| member.last.received >= HELP_BYTES);
        if !help.has_begun && help.is_reachable && sends {
            help.has_begun = true;
            self.driver.handle_reachable(now);
            self.drain();
        }
        self.is_helped()
    }

    /// Whether the controller runs with the sender's help.
    fn is_helped(&self) -> bool {
        self.help.as_ref().is_some_and(|help| help.has_begun)
    }

    /// The next limit to apply; `None` once there are no more.
    pub fn poll_limit_change(&mut self) -> Option<LimitChange> {
        self.limit_changes.pop_front()
    }

    /// The next thing that the controller has to say, until `None`.
    pub fn poll_event(&mut self) -> Option<(TuneEventKind, String)> {
        self.events.pop_front()
    }

    /// The next connection that ignores its limit; `None` once there are no more.
    pub fn poll_ignored_limit(&mut self) -> Option<IgnoredLimit> {
        self.ignored_limits.pop_front()
    }

    /// Where the controller stands.
    pub fn phase(&self) -> SizingPhase {
        self.driver.phase()
    }

    /// Why the controller entered that phase; `None` if it is still in its first.
    pub fn reason(&self) -> Option<Reason> {
        self.reason
    }

    /// How long to wait until the next round: short enough for the controller, and at least `cpu_budget` unless a
    /// transfer has just begun.
    pub fn pause(&self, now: Time, cpu_budget: Duration) -> Duration {
        if self.is_helped() {
            let due = self.driver.poll_timeout().since(now).min(PROBE_INTERVAL);
            return due.max(cpu_budget);
        }
        if self.members.values().all(|m| m.arrived == Bytes::ZERO && m.rate < IDLE_RATE) {
            let is_young = self.added.is_some_and(|added| now.since(added) < YOUNG_AGE);
            return if is_young {
                YOUNG_PAUSE.max(cpu_budget / YOUNG_COST_FACTOR)
            } else {
                IDLE_PAUSE.max(cpu_budget)
            };
        }
        let opens = match self.phase() {
            SizingPhase::Measuring
            | SizingPhase::Ramping
            | SizingPhase::Trying
            | SizingPhase::Open => true,
            SizingPhase::HandsOff | SizingPhase::Holding | SizingPhase::Congested => false,
        };
        // Bursts of a short path cannot be timed.
        let is_timed = self.minimum.is_none_or(|rtt| rtt >= TIMESTAMP_TICK);
        if opens && is_timed && self.bulk_since.is_none_or(|since| now.since(since) < OPENING_TIME)
        {
            return OPENING_PAUSE.max(cpu_budget / OPENING_COST_FACTOR);
        }
        (self.rtt / 2).clamp(Duration::from_millis(5), IDLE_PAUSE).max(cpu_budget)
    }

    /// The parameters to save for the path, each time its last bulk transfer has ended; `Some(None)`: delete them.
    pub fn poll_memory(&mut self) -> Option<Option<SavedWindow>> {
        self.memory.take()
    }

    /// The current limit of a connection; `None`: no limit.
    pub fn limit(&self, cookie: u64) -> Option<Bytes> {
        self.members.get(&cookie)?.limit
    }

    /// The controller's window for all connections together; `None`: no limit.
    pub fn window(&self) -> Option<Bytes> {
        self.window.flatten()
    }

    /// The max window of all connections together, whatever the controller says; takes effect at the next round.
    pub fn set_ceiling(&mut self, ceiling: Option<Bytes>) {
        self.ceiling = ceiling;
    }

    /// Divides a budget of `memory` max-min fair among `groups`, each with the number of its connections. A connection of a
    /// group without a window may take `max_window`.
    pub fn share_memory<'a>(
        memory: Bytes,
        max_window: Bytes,
        groups: impl Iterator<Item = (&'a mut PathGroup, usize)>,
    ) {
        let demand = |(group, connections): (&'a mut PathGroup, usize)| {
            let demand = group.window().unwrap_or(max_window * connections as u64);
            (group, demand)
        };
        let (groups, demands): (Vec<_>, Vec<Bytes>) = groups.map(demand).unzip();
        for (group, share) in groups.into_iter().zip(max_min(memory, &demands)) {
            group.set_ceiling(Some(share));
        }
    }

    /// The rate at which all connections together receive.
    pub fn rate(&self) -> Rate {
        self.members.values().fold(Rate::ZERO, |sum, member| sum + member.rate)
    }

    /// The rate at which one connection receives, averaged over a fifth of a second.
    pub fn connection_rate(&self, cookie: u64) -> Rate {
        self.members.get(&cookie).map_or(Rate::ZERO, |member| member.rate)
    }

    /// The latest round-trip time, and the minimum one if known.
    pub fn round_trips(&self) -> (Duration, Option<Duration>) {
        (self.rtt, self.minimum)
    }

    fn drain(&mut self) {
        while let Some(effect) = self.driver.poll_effect() {
            match effect {
                Effect::Window(window) => self.window = Some(window),
                Effect::Saved(saved) => self.memory = Some(saved),
                Effect::Event(event) => {
                    self.reason = event.kind.reason().or(self.reason);
                    self.events.extend(words(&event.kind));
                }
                for_sender => self.ask(&for_sender),
            }
        }
    }

    /// Passes a request on to the sender, if it helps.
    fn ask(&mut self, effect: &Effect) {
        let Some(help) = &mut self.help else { return };
        match *effect {
            Effect::Probe { sequence } => help.ask(SenderRequest::Probe { sequence }),
            Effect::Train { id, request } => help.ask(SenderRequest::Train { id, request }),
            Effect::Pacing(pacing) => help.steer(|steering| steering.pacing = pacing),
            Effect::Congestion(choice) => help.steer(|steering| steering.congestion = choice),
            // Where probes are blocked, the kernel's estimate of the round trip stands in.
            _ => {}
        }
    }

    /// The queue due to the minimum share of each connection. The controller cannot drain it, and must not take it
    /// for cross traffic.
    fn floor_queue(&self) -> Duration {
        let Some(window) = self.window.flatten() else { return Duration::ZERO };
        let held = self.members.values().filter(|m| m.limit.is_some()).count() as u64;
        let over = (self.mss * MIN_SHARE_SEGMENTS * held).saturating_sub(window);
        if over == Bytes::ZERO { Duration::ZERO } else { over / self.rate() }
    }

    /// Divides the window among the bulk transfers.
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
                let min = self.mss * MIN_SHARE_SEGMENTS;
                let demands: Vec<Bytes> =
                    bulk.iter().map(|c| self.members[c].demand(window, self.rtt)).collect();
                let shares = max_min(window, &demands);
                // A connection that wants less now may want more in a moment. It may have an equal part,
                // which costs nothing while it is not used.
                let equal = window / bulk.len().max(1) as u64;
                shares.into_iter().map(|share| Some(share.max(equal).max(min))).collect()
            }
        };
        // A receiver does not take back an advertised window (RFC 9293 section 3.8.6): while the path is open, a limit below it
        // would only stop new data once that window is used up.
        let is_open = matches!(self.phase(), SizingPhase::Measuring | SizingPhase::Open)
            && self.ceiling.is_none();
        for (cookie, limit) in bulk.into_iter().zip(limits) {
            let Some(member) = self.members.get_mut(&cookie) else { continue };
            if member.limit.is_none() {
                member.first = member.last.advertised.unwrap_or(Bytes::ZERO);
            }
            let limit = limit.map(|limit| if is_open { limit.max(member.first) } else { limit });
            if differs(member.limit, limit) {
                let before = std::mem::replace(&mut member.limit, limit);
                self.limit_changes.push_back(LimitChange { cookie, before, limit });
            }
        }
    }
}

/// The age up to which a group counts as young: the time that a connection may take until its first data, ...
const YOUNG_AGE: Duration = Duration::from_secs(1);
/// ... between two rounds of a young group: four round trips after the first data, slow start has filled the path
/// and a small buffer ...
const YOUNG_PAUSE: Duration = Duration::from_millis(10);
/// ... while samples may take this multiple of their usual share of a core.
const YOUNG_COST_FACTOR: u64 = 8;

/// How long windows open after the first bulk transfer began: slow start and its aftermath.
const OPENING_TIME: Duration = Duration::from_secs(3);
/// The time between two rounds meanwhile, so that a burst that can be timed is seen twice, ...
const OPENING_PAUSE: Duration = Duration::from_millis(3);
/// ... while samples may take this multiple of their usual share of a core.
const OPENING_COST_FACTOR: u64 = 25;
/// The longest time between two rounds.
const IDLE_PAUSE: Duration = Duration::from_millis(50);

/// A group that receives less than this is idle.
const IDLE_RATE: Rate = Rate::from_bits_per_second(80_000);

impl Member {
    fn is_bulk(&self) -> bool {
        self.last.received >= BULK_BYTES
    }

    /// The window that the connection would use.
    fn demand(&self, window: Bytes, rtt: Duration) -> Bytes {
        let used = self.rate * rtt;
        match self.limit {
            Some(limit) if used < limit.scaled(WINDOW_BOUND_SHARE) => used.scaled(DEMAND_HEADROOM),
            _ => window,
        }
    }
}

fn differs(before: Option<Bytes>, after: Option<Bytes>) -> bool {
    match (before, after) {
        (Some(before), Some(after)) => {
            (after.as_f64() - before.as_f64()).abs() > before.as_f64() * MIN_LIMIT_CHANGE
        }
        _ => before != after,
    }
}

/// The event for users, with its reason in words; `None` for events that are not reported.
fn words(kind: &EventKind) -> Option<(TuneEventKind, String)> {
    match kind {
        EventKind::Entered { phase, reason } => match phase {
            SizingPhase::Holding => Some((TuneEventKind::Held, reason.to_string())),
            SizingPhase::Open => Some((TuneEventKind::LetGo, reason.to_string())),
            SizingPhase::Trying => {
                Some((TuneEventKind::Tightened, format!("tries a smaller window: {reason}")))
            }
            SizingPhase::HandsOff
            | SizingPhase::Measuring
            | SizingPhase::Ramping
            | SizingPhase::Congested => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_controller_enters_is_told_with_its_reason() {
        let told = |phase, reason| words(&EventKind::Entered { phase, reason });
        let held = told(SizingPhase::Holding, Reason::CapacityKnown);
        assert_eq!(held, Some((TuneEventKind::Held, "the path's capacity is known".to_owned())));
        let (kind, why) = told(SizingPhase::Trying, Reason::RateInelastic).unwrap();
        assert_eq!(kind, TuneEventKind::Tightened);
        assert!(why.starts_with("tries a smaller window: a queue stands"), "{why}");
        assert_eq!(told(SizingPhase::Open, Reason::TrialFailed).unwrap().0, TuneEventKind::LetGo);
        assert_eq!(told(SizingPhase::HandsOff, Reason::Ended), None);
        assert_eq!(words(&EventKind::Lifted), None);
    }
}
