//! Connections that share a path: one controller sizes them together.

mod division;
mod pause;
mod words;

pub use division::MIN_SHARE_SEGMENTS;

use std::collections::{BTreeMap, VecDeque};

use sweetspot_sizing::{
    Controller, ControllerConfig, Driver, Effect, InputSource, KernelView, ProbeAnswer, Reason,
    SavedWindow, SizingPhase, TrainPacket,
};
use sweetspot_units::{Bytes, Duration, Rate, Time};

use crate::clamp_check::{ClampCheck, IgnoredLimit};
use crate::event::TuneEventKind;
use crate::sender_help::{HELP_BYTES, SenderHelp, SenderRequest};
use sweetspot_sizing::share::max_min;
use words::words;

/// A connection counts as a bulk transfer, and may be limited, once it has received this much: about four initial windows (RFC
/// 6928), too few to overflow a buffer.
pub const BULK_BYTES: Bytes = Bytes::new(60_000);

/// The time over which a connection's rate is averaged to estimate its demand.
const RATE_AVERAGING_TIME: Duration = Duration::from_millis(200);

/// A connection that uses at least this share of its window counts as limited by it.
const WINDOW_BOUND_SHARE: f64 = 0.7;

/// A connection that uses less may have this multiple of its current use.
const DEMAND_HEADROOM: f64 = 1.5;

/// All connections between two hosts, sized by one controller. They share a path, and thus its known properties and its
/// capacity (RFC 9040, "ensemble sharing"). The controller's window is divided max-min fair.
///
/// **Contract.** `now` never goes backwards. In each round the caller passes the new samples of every connection to
/// [`PathGroup::handle_sample`], calls [`PathGroup::handle_round`] once, and then polls limit changes, ignored limits and
/// events until there are none.
pub struct PathGroup {
    driver: Driver,
    /// Requests to the sender; `None` if the sender does not cooperate.
    help: Option<SenderHelp>,
    mss: Bytes,
    members: BTreeMap<u64, Member>,
    round: RoundTotals,
    last_round: Option<Time>,
    rtt: Duration,
    minimum: Option<Duration>,
    /// Segments that arrived ahead of a missing one, summed over all connections so far.
    out_of_order: u64,
    /// The highest rate of the current run of bulk transfers.
    capacity: Rate,
    /// When the current run of bulk transfers began.
    bulk_since: Option<Time>,
    /// When the first connection was added to the empty group.
    added: Option<Time>,
    /// The controller's window for all connections together; `None` until it set or lifted one.
    window: Option<Option<Bytes>>,
    /// The memory budget of all connections together.
    ceiling: Option<Bytes>,
    /// The parameters that the last bulk transfer saved, until they are polled.
    memory: Option<Option<SavedWindow>>,
    /// Why the controller entered its phase.
    reason: Option<Reason>,
    /// Why the controller last set its window, until that is polled.
    window_reason: Option<Reason>,
    limit_changes: VecDeque<LimitChange>,
    events: VecDeque<(TuneEventKind, String)>,
    ignored_limits: VecDeque<IgnoredLimit>,
    is_dry_run: bool,
    /// Whether a dry run has reached a decision with an unknown effect.
    is_decided: bool,
    /// Whether the window was held or reduced, and not released since.
    is_bound: bool,
}

/// A sample of a connection. Counters start when the connection begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionSample {
    /// Payload received in order.
    pub received: Bytes,
    /// The part of `received` that the application has not read yet.
    pub unread: Bytes,
    /// The receiver's RTT estimate, if it has one.
    pub rtt: Option<Duration>,
    /// The min RTT of this end's own segments, if it has one.
    pub minimum_rtt: Option<Duration>,
    /// Segments that arrived out of order.
    pub out_of_order: u64,
    /// The last advertised window; `None` on kernels before 6.2.
    pub advertised: Option<Bytes>,
}

/// A change of a connection's window limit, which the caller must apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LimitChange {
    /// The connection's cookie.
    pub cookie: u64,
    /// The limit before; `None`: no limit.
    pub before: Option<Bytes>,
    /// The limit from now on; `None`: no limit.
    pub limit: Option<Bytes>,
}

/// The MSS that every host must be able to receive over IPv4 (RFC 9293, section 3.7.1).
const MIN_MSS: Bytes = Bytes::new(536);
/// The length of the IPv4 and TCP headers with timestamps.
const TCP_IP_HEADERS: Bytes = Bytes::new(52);

/// The configuration of a controller at a live receiver, for a connection that advertised this MSS.
pub fn receiver_config(advertised_mss: Bytes, max_window: Bytes) -> ControllerConfig {
    let mss = advertised_mss.max(MIN_MSS);
    ControllerConfig { mss, packet: mss + TCP_IP_HEADERS, max_window, size: None, path: None }
}

#[derive(Debug)]
struct Member {
    last: ConnectionSample,
    rate: Rate,
    arrived: Bytes,
    /// Whether this round has a sample.
    is_sampled: bool,
    limit: Option<Bytes>,
    /// The window advertised when the connection was first limited.
    first: Bytes,
    clamp_check: ClampCheck,
    /// Whether the connection is left alone because limits have no effect.
    refuses: bool,
}

/// The totals of the samples in the current round.
#[derive(Debug, Default)]
struct RoundTotals {
    bytes_read: Bytes,
    unread: Bytes,
    rtts: Vec<Duration>,
}

impl PathGroup {
    /// A group without connections, sized by `controller`. Its segments carry at most `mss`.
    pub fn new(controller: Box<dyn Controller + Send>, mss: Bytes) -> PathGroup {
        // This group calls the driver, at its own times.
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
            capacity: Rate::ZERO,
            bulk_since: None,
            added: None,
            window: None,
            ceiling: None,
            memory: None,
            reason: None,
            window_reason: None,
            limit_changes: VecDeque::new(),
            events: VecDeque::new(),
            ignored_limits: VecDeque::new(),
            is_dry_run: false,
            is_decided: false,
            is_bound: false,
        }
    }

    /// A group of one connection with a sender that cooperates: it answers probes, sends trains and obeys steering
    /// ([`PathGroup::poll_request`]). The controller waits until the sender can be reached.
    pub fn with_help(controller: Box<dyn Controller + Send>, mss: Bytes) -> PathGroup {
        let driver = Driver::new(controller, Time::ZERO, InputSource::CallerAndOutOfBand);
        PathGroup::with(driver, Some(SenderHelp::default()), mss)
    }

    /// Sets whether this is a dry run, in which the caller applies no limits. A window above its limit is then not the kernel's
    /// fault. The first decision to hold or reduce the window is the last, because its effect is unknown.
    pub fn handle_dry_run(&mut self, is_dry_run: bool) {
        self.is_dry_run = is_dry_run;
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

    /// Removes a connection that is over. When the last bulk transfer ends, all limits are lifted, and the path's parameters
    /// are kept for the next transfer.
    pub fn remove(&mut self, now: Time, cookie: u64) {
        let removed = self.members.remove(&cookie);
        if removed.is_some_and(|m| m.is_bulk()) && !self.members.values().any(Member::is_bulk) {
            self.driver.handle_end(now);
            self.drain();
            (self.window, self.minimum, self.bulk_since) = (None, None, None);
            self.capacity = Rate::ZERO;
            (self.is_decided, self.is_bound) = (false, false);
        }
    }

    /// Handles a sample of a connection.
    pub fn handle_sample(&mut self, now: Time, cookie: u64, sample: ConnectionSample) {
        let Some(member) = self.members.get_mut(&cookie) else { return };
        let bytes_read = |sample: &ConnectionSample| sample.received.saturating_sub(sample.unread);
        let arrived = sample.received.saturating_sub(member.last.received);
        self.round.bytes_read += bytes_read(&sample).saturating_sub(bytes_read(&member.last));
        self.round.unread += sample.unread;
        let gaps = sample.out_of_order.saturating_sub(member.last.out_of_order);
        self.out_of_order += gaps;
        // Without new data, an RTT estimate is an old one.
        if arrived > Bytes::ZERO && member.is_bulk() {
            self.round.rtts.extend(sample.rtt);
        }
        self.minimum = [self.minimum, sample.minimum_rtt].into_iter().flatten().min();
        member.last = sample;
        member.arrived = arrived;
        member.is_sampled = true;
        // The rate never exceeds window / RTT. If the kernel does not report the window, it was at least rate * RTT.
        let shown = sample.advertised.or_else(|| Some(member.rate * self.minimum?));
        if let Some((limit, window)) = member.limit.zip(shown)
            && !member.refuses
            && !self.is_dry_run
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

    /// Stops limiting this connection for good, because limits have no effect on it.
    pub fn leave(&mut self, cookie: u64) {
        let Some(member) = self.members.get_mut(&cookie) else { return };
        member.refuses = true;
        if let Some(before) = member.limit.take() {
            self.limit_changes.push_back(LimitChange { cookie, before: Some(before), limit: None });
        }
    }

    /// Ends a round. A connection without a sample received nothing in it.
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
            self.capacity = self.capacity.max(self.rate());
        }
        self.last_round = Some(now);
        if !self.begins(now) {
            return self.divide();
        }
        round.rtts.sort_unstable();
        let mut kernel = KernelView {
            window: self.members.values().map(|member| member.last.advertised).sum(),
            minimum_rtt: self.minimum,
            out_of_order: self.out_of_order,
            ..KernelView::default()
        };
        if let Some(rtt) = round.rtts.get(round.rtts.len() / 2) {
            self.rtt = *rtt;
            let min = self.minimum.unwrap_or(*rtt);
            kernel.rtt = Some(rtt.saturating_sub(self.floor_queue()).max(min.min(*rtt)));
        }
        self.driver.handle_kernel(now, &kernel);
        // If nothing arrives, the path is the cause only while there is a bulk transfer.
        if round.bytes_read > Bytes::ZERO || self.bulk_since.is_some() {
            self.driver.handle_data(now, round.bytes_read, round.unread);
        }
        self.driver.handle_timeout(now, &kernel);
        self.drain();
        self.divide();
    }

    /// Whether the controller runs in this round.
    fn begins(&mut self, now: Time) -> bool {
        if self.is_decided {
            return false;
        }
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

    /// The next event of the controller; `None` once there are no more.
    pub fn poll_event(&mut self) -> Option<(TuneEventKind, String)> {
        self.events.pop_front()
    }

    /// Why the controller has set its window since the last call; `None` if it has not, or only because of new measurements.
    pub fn take_window_reason(&mut self) -> Option<Reason> {
        self.window_reason.take()
    }

    /// The next connection that ignores its limit; `None` once there are no more.
    pub fn poll_ignored_limit(&mut self) -> Option<IgnoredLimit> {
        self.ignored_limits.pop_front()
    }

    /// The controller's phase.
    pub fn phase(&self) -> SizingPhase {
        self.driver.phase()
    }

    /// Why the controller entered its phase; `None` in the first phase.
    pub fn reason(&self) -> Option<Reason> {
        self.reason
    }

    /// The parameters to save for the path, whenever its last bulk transfer has ended; `Some(None)`: delete them.
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

    /// Sets the max window of all connections together, whatever the controller decides. Takes effect at the next round.
    pub fn set_ceiling(&mut self, ceiling: Option<Bytes>) {
        self.ceiling = ceiling;
    }

    /// Divides a budget of `memory` max-min fair among `groups`, each given with its number of connections; `None` lifts their
    /// ceilings. In a group without a window, each connection may take `max_window`.
    pub fn share_memory<'a>(
        memory: Option<Bytes>,
        max_window: Bytes,
        groups: impl Iterator<Item = (&'a mut PathGroup, usize)>,
    ) {
        let Some(memory) = memory else {
            return groups.for_each(|(group, _)| group.set_ceiling(None));
        };
        let demand = |(group, connections): (&'a mut PathGroup, usize)| {
            let demand = group.window().unwrap_or(max_window * connections as u64);
            (group, demand)
        };
        let (groups, demands): (Vec<_>, Vec<Bytes>) = groups.map(demand).unzip();
        for ((group, share), demand) in
            groups.into_iter().zip(max_min(memory, &demands)).zip(demands)
        {
            // The kernel's own maximum is no limit to report.
            let is_free = group.window().is_none() && share == demand;
            group.set_ceiling((!is_free).then_some(share));
        }
    }

    /// The rate at which all connections together receive.
    pub fn rate(&self) -> Rate {
        self.members.values().fold(Rate::ZERO, |sum, member| sum + member.rate)
    }

    /// The rate at which one connection receives, averaged over 200 ms.
    pub fn connection_rate(&self, cookie: u64) -> Rate {
        self.members.get(&cookie).map_or(Rate::ZERO, |member| member.rate)
    }

    /// The latest RTT, and the min RTT if known.
    pub fn round_trips(&self) -> (Duration, Option<Duration>) {
        (self.rtt, self.minimum)
    }

    fn drain(&mut self) {
        while let Some(effect) = self.driver.poll_effect() {
            match effect {
                Effect::Window(window) => {
                    self.window = Some(window);
                    self.window_reason = self.driver.window_reason();
                }
                Effect::Saved(saved) => self.memory = Some(saved),
                Effect::Event(event) => {
                    self.reason = event.kind.reason().or(self.reason);
                    if let Some((kind, why)) = words(&event.kind)
                        && self.reports(kind)
                    {
                        self.events.push_back((kind, why));
                    }
                }
                for_sender => self.send_request(&for_sender),
            }
        }
    }

    /// Passes a request on to the sender, if it cooperates.
    fn send_request(&mut self, effect: &Effect) {
        let Some(help) = &mut self.help else { return };
        match *effect {
            Effect::Probe { sequence } => help.send_request(SenderRequest::Probe { sequence }),
            Effect::Train { id, request } => {
                help.send_request(SenderRequest::Train { id, request })
            }
            Effect::Pacing(pacing) => help.steer(|steering| steering.pacing = pacing),
            Effect::Congestion(choice) => help.steer(|steering| steering.congestion = choice),
            // If probes are blocked, the kernel's RTT estimate replaces them.
            _ => {}
        }
    }
}

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
