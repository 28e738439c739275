use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use sweetspot_control::{
    AppliedChange, Goal, IgnoredLimit, NotLimited, PacedUpload, PathGroup, TuneEvent,
    TuneEventKind, receiver_config,
};
use sweetspot_linux::clock;
use sweetspot_sizing::{Reason, SavedWindow};
use sweetspot_units::{Bytes, Duration, Rate, Time};

use crate::connection::TunedConnection;
use crate::guard::Leases;
use crate::handle::Sampled;
use crate::options::TunerOptions;
use crate::sample::KernelReport;

/// Effects of a change are read after two RTTs plus this time.
const SETTLING_TIME: Duration = Duration::from_millis(20);

/// The shortest time between two rounds.
const MIN_ROUND: Duration = Duration::from_micros(1);

/// Connections without a sample for this long count as stalled. Linux delays an ACK, and with it a sample, by at most 40 ms
/// (RFC 9293, section 3.8.6.3, allows 500 ms).
const MIN_SILENCE: Duration = Duration::from_millis(60);

/// Samples per controller reading of an upload, if BPF programs take the samples: then the latest sample is almost as new as a
/// direct reading.
const UPLOAD_SAMPLES_PER_READING: u64 = 4;

/// A path group and the connections in it.
pub struct TunedPath {
    pub group: PathGroup,
    pub connections: BTreeMap<u64, TunedConnection>,
    pub next_round: Time,
    /// The time of the last round.
    last_round: Time,
    /// The saved parameters of finished uploads on this path.
    upload_memory: Option<Option<SavedWindow>>,
    /// Events to report once their change has taken effect, each with that time.
    pending: Vec<(Time, TuneEvent)>,
    /// The ended connections that were never limited, with their peers; [`TunedPath::take_unlimited`] empties the list.
    unlimited: Vec<(NotLimited, SocketAddr)>,
}

impl TunedPath {
    /// A path without connections. `seen` is the first sample of its first connection.
    pub fn new(now: Time, goal: Goal, seen: &KernelReport, options: &TunerOptions) -> TunedPath {
        let config = receiver_config(seen.advertised_mss, options.max_window);
        let controller = match options.dry_run {
            true => goal.rehearsal(&config),
            false => goal.controller(&config),
        };
        TunedPath::again(now, PathGroup::new(controller, config.mss))
    }

    /// A path without connections, with the group of an earlier path.
    pub fn again(now: Time, group: PathGroup) -> TunedPath {
        TunedPath {
            group,
            connections: BTreeMap::new(),
            next_round: now,
            last_round: now,
            upload_memory: None,
            pending: Vec::new(),
            unlimited: Vec::new(),
        }
    }

    /// Adds a connection with its first sample.
    pub fn add(&mut self, now: Time, connection: TunedConnection, seen: &KernelReport) {
        let cookie = connection.handle.cookie();
        self.group.add(now, cookie, seen.sample);
        self.next_round = now;
        self.connections.insert(cookie, connection);
    }

    /// The current window limits; none in a dry run.
    pub fn limits(&self) -> impl Iterator<Item = Bytes> {
        let limited = self.connections.iter().filter(|(_, connection)| connection.limited);
        limited.filter_map(|(cookie, _)| self.group.limit(*cookie))
    }

    /// The current rate and RTT of each connection, by cookie.
    pub fn readings(&self) -> impl Iterator<Item = (u64, Rate, Duration)> {
        self.connections.iter().map(|(cookie, connection)| {
            let is_upload =
                connection.upload.pace().is_some() && self.group.limit(*cookie).is_none();
            let (rate, rtt) = match is_upload {
                true => connection.upload_rate(),
                false => (self.group.connection_rate(*cookie), self.group.round_trips().0),
            };
            (*cookie, rate, rtt)
        })
    }

    /// The changed parameters to save for the next upload on the path, if any.
    pub fn poll_upload_memory(&mut self) -> Option<Option<SavedWindow>> {
        self.upload_memory.take()
    }

    /// The never-limited connections that ended since the last call, with their peers.
    pub fn take_unlimited(&mut self) -> Vec<(NotLimited, SocketAddr)> {
        std::mem::take(&mut self.unlimited)
    }

    /// Ends tuning: counts the connections that were never limited, and returns the events to report.
    pub fn end(&mut self, uploads: bool) -> Vec<TuneEvent> {
        let unlimited = &mut self.unlimited;
        let count = |connection| count_unlimited(unlimited, connection, uploads);
        self.connections.values().filter_map(count).collect()
    }

    /// Samples every connection and applies the controller's decisions. Returns the events to report.
    pub fn round(&mut self, options: &TunerOptions, leases: &mut Leases) -> Vec<TuneEvent> {
        let (mut events, shown) = self.sample(options, leases);
        if self.connections.is_empty() {
            events.extend(self.take_ripe(|_| true));
            return events;
        }
        let now = clock::now();
        // If BPF programs take the samples, a round may have none. Then only the elapsed time shows that a connection stalls.
        if shown.is_empty() {
            if now.since(self.last_round) < MIN_SILENCE {
                return events;
            }
            self.handle_round(now);
        }
        self.group.handle_dry_run(options.dry_run);
        for samples in rounds(&shown) {
            let latest = samples.iter().map(|(_, seen)| seen.at).max().unwrap_or(now);
            for (cookie, seen) in samples {
                self.group.handle_sample(seen.at, cookie, seen.sample);
            }
            self.handle_round(latest);
        }
        while let Some(refusal) = self.group.poll_ignored_limit() {
            events.extend(self.refused(&refusal));
        }
        self.act(leases, options.dry_run, &mut events);
        let now = clock::now();
        events.extend(self.take_ripe(|(next_upload, _)| *next_upload <= now));
        events
    }

    /// Schedules the next round after one that took `took` of CPU time: the pause is at least `cpu_budget` times as long.
    pub fn rest(&mut self, done: Time, took: Duration, cpu_budget: u64, uploads: bool) {
        let cpu_budget = took * cpu_budget;
        let mut pause = self.group.pause(done, cpu_budget);
        if uploads {
            pause = pause.min(PacedUpload::SAMPLE_INTERVAL.max(cpu_budget));
        }
        let next_upload =
            self.connections.values().map(TunedConnection::upload_due).fold(Time::MAX, Time::min);
        self.next_round = next_upload.max(done + cpu_budget).min(done + pause);
        let interval = if uploads { pause / UPLOAD_SAMPLES_PER_READING } else { pause };
        self.connections.values().for_each(|connection| connection.handle.set_interval(interval));
    }

    /// Lifts all limits. Returns the events to report.
    pub fn lift(&mut self, why: &str, leases: &mut Leases) -> Vec<TuneEvent> {
        let mut events = self.take_ripe(|_| true);
        for (cookie, connection) in &mut self.connections {
            if !connection.touched() {
                continue;
            }
            let has_limits = connection.has_limits();
            connection.undo();
            // If the guardian is gone, there is nothing to release.
            let _ = leases.release(*cookie);
            if !has_limits {
                continue;
            }
            let (from, rates) = (self.group.limit(*cookie), rates(&self.group, *cookie));
            events.push(connection.end_event(TuneEventKind::Lifted, why, from, rates));
        }
        events
    }

    /// Ends a round at `at`. Samples of several connections may arrive in any order, but rounds advance in time.
    fn handle_round(&mut self, at: Time) {
        self.last_round = at.max(self.last_round + MIN_ROUND);
        self.group.handle_round(self.last_round);
    }

    /// Samples every connection. Returns the events to report, and the samples of each connection, oldest first.
    fn sample(
        &mut self,
        options: &TunerOptions,
        leases: &mut Leases,
    ) -> (Vec<TuneEvent>, Vec<(u64, Vec<KernelReport>)>) {
        let (mut closed, mut events, mut shown) = (Vec::new(), Vec::new(), Vec::new());
        for (cookie, connection) in &mut self.connections {
            let now = clock::now();
            match connection.sample(leases, self.group.limit(*cookie)) {
                Sampled::KernelReport(all) => {
                    for seen in all.iter().filter(|_| options.uploads) {
                        events.extend(connection.handle_upload(seen, leases, options.dry_run));
                    }
                    if let Some(seen) = all.last() {
                        connection.note(seen);
                        shown.push((*cookie, all));
                    }
                }
                Sampled::Nothing => {}
                Sampled::Closed => {
                    closed.push(*cookie);
                    continue;
                }
            }
            if options.uploads {
                events.extend(connection.handle_upload_timeout(now, leases, options.dry_run));
            }
        }
        for cookie in closed {
            events.extend(self.forget(cookie, options.uploads, leases));
        }
        (events, shown)
    }

    /// Removes a connection that is over. Returns the events to report.
    fn forget(&mut self, cookie: u64, uploads: bool, leases: &mut Leases) -> Vec<TuneEvent> {
        let mut events = self.take_ripe(|(_, event)| event.connection_owner.cookie == cookie);
        let (from, rates) = (self.group.limit(cookie), rates(&self.group, cookie));
        self.group.remove(clock::now(), cookie);
        let Some(mut connection) = self.connections.remove(&cookie) else { return events };
        let why = "the connection has ended";
        let closed = connection.end_event(TuneEventKind::Gone, why, from, rates);
        self.upload_memory = connection.upload.end(clock::now()).or(self.upload_memory);
        connection.handle.forget();
        events.extend(count_unlimited(&mut self.unlimited, &connection, uploads));
        if connection.touched() {
            let _ = leases.release(cookie);
        }
        if connection.claimed || connection.touched() {
            events.push(closed);
        }
        events
    }

    /// Reports a connection that ignores its limit.
    fn refused(&self, refusal: &IgnoredLimit) -> Option<TuneEvent> {
        let connection = self.connections.get(&refusal.cookie)?;
        let why = refusal.to_string();
        let advertised = connection.advertised;
        let change = AppliedChange::Window {
            from: Some(refusal.limit),
            to: None,
            clamp: connection.handle.clamp(),
            advertised,
        };
        Some(event(&self.group, connection, TuneEventKind::Refused, &why, change))
    }

    /// Applies the decisions of a round. Every limit change belongs to an event.
    fn act(&mut self, leases: &mut Leases, dry_run: bool, events: &mut Vec<TuneEvent>) {
        let group_events: Vec<_> = std::iter::from_fn(|| self.group.poll_event()).collect();
        let reason = self.group.take_window_reason();
        let is_refusal = |event: &&TuneEvent| event.kind == TuneEventKind::Refused;
        let mut refused: BTreeSet<u64> =
            events.iter().filter(is_refusal).map(|event| event.connection_owner.cookie).collect();
        let mut before = BTreeMap::new();
        while let Some(change) = self.group.poll_limit_change() {
            let Some(connection) = self.connections.get_mut(&change.cookie) else { continue };
            let from = *before.entry(change.cookie).or_insert(change.before);
            if dry_run {
                continue;
            }
            if let Err(refusal) = connection.limit(leases, change.limit) {
                let (why, advertised) = (refusal.to_string(), connection.advertised);
                let change_made = AppliedChange::Window { from, to: None, clamp: None, advertised };
                events.push(event(
                    &self.group,
                    connection,
                    TuneEventKind::Refused,
                    &why,
                    change_made,
                ));
                self.group.leave(change.cookie);
                refused.insert(change.cookie);
            }
        }
        // Events are reported in the order in which they happened.
        let last = self.pending.last().map_or(Time::ZERO, |(next_upload, _)| *next_upload);
        let next_upload = (clock::now() + self.group.round_trips().0 * 2 + SETTLING_TIME).max(last);
        for (cookie, connection) in &mut self.connections {
            let to = self.group.limit(*cookie);
            let from = before.get(cookie).copied().unwrap_or(to);
            let actions = actions(connection.claimed, (from, to), reason, &group_events);
            connection.claimed |= to.is_some();
            if refused.contains(cookie) {
                continue;
            }
            let mut before = from;
            for (place, (kind, why)) in actions.iter().enumerate() {
                let makes_change = *kind == TuneEventKind::Taken || place + 1 == actions.len();
                let to = if makes_change { to } else { before };
                let from = std::mem::replace(&mut before, to);
                let change = AppliedChange::Window { from, to, clamp: None, advertised: None };
                self.pending
                    .push((next_upload, event(&self.group, connection, *kind, why, change)));
            }
        }
    }

    /// Removes the pending events that are `take_ripe`, and returns them with the state that the kernel reports. If a
    /// limit has changed again, its event gets no such state, because that state belongs to the newer limit.
    fn take_ripe(&mut self, take_ripe: impl Fn(&(Time, TuneEvent)) -> bool) -> Vec<TuneEvent> {
        let (take_ripe, pending) = self.pending.drain(..).partition(take_ripe);
        self.pending = pending;
        let mut take_ripe: Vec<TuneEvent> =
            Vec::into_iter(take_ripe).map(|(_, event)| event).collect();
        for event in &mut take_ripe {
            let connection = self.connections.get(&event.connection_owner.cookie);
            if let (AppliedChange::Window { to, clamp, advertised, .. }, Some(connection)) =
                (&mut event.change, connection)
                && *to == self.group.limit(event.connection_owner.cookie)
            {
                *clamp = connection.handle.clamp();
                *advertised = connection.advertised;
            }
        }
        take_ripe
    }
}

/// The actions on a connection in a round that changed its limit from the first to the second of `limits`, for the controller's
/// `reason` if it has one. `group_events` are the controller's events on the path. A first limit, or else the last action, makes the
/// change.
fn actions(
    claimed: bool,
    (from, to): (Option<Bytes>, Option<Bytes>),
    reason: Option<Reason>,
    group_events: &[(TuneEventKind, String)],
) -> Vec<(TuneEventKind, String)> {
    let why = || reason.map_or("newer measurements of the path".to_owned(), |r| r.to_string());
    let adjusted = || (TuneEventKind::Adjusted, why());
    let taken = || {
        let why = reason.map_or(String::new(), |reason| format!("; {reason}"));
        (TuneEventKind::Taken, format!("a bulk transfer{why}"))
    };
    match claimed {
        false if to.is_some() => {
            std::iter::once(taken()).chain(group_events.iter().cloned()).collect()
        }
        false => Vec::new(),
        true if group_events.is_empty() => (from != to).then(adjusted).into_iter().collect(),
        true => group_events.to_vec(),
    }
}

/// Groups the connections' samples into rounds with at most one sample per connection, aligned at the latest samples. So a late
/// host still replays the samples in order, with their own times.
fn rounds<S>(shown: &[(u64, Vec<S>)]) -> impl Iterator<Item = Vec<(u64, &S)>> {
    let max = shown.iter().map(|(_, all)| all.len()).max().unwrap_or(0);
    (0..max).rev().map(|after| {
        let of_each = shown.iter().filter_map(move |(cookie, all)| {
            let place = all.len().checked_sub(after + 1)?;
            Some((*cookie, &all[place]))
        });
        of_each.collect()
    })
}

/// Counts a connection that was never limited. Returns the event to report, if any.
fn count_unlimited(
    unlimited: &mut Vec<(NotLimited, SocketAddr)>,
    connection: &TunedConnection,
    uploads: bool,
) -> Option<TuneEvent> {
    let why = connection.not_limited(uploads)?;
    unlimited.push((why, connection.connection_owner.remote));
    connection.not_limited_event(why)
}

fn event(
    group: &PathGroup,
    connection: &TunedConnection,
    kind: TuneEventKind,
    why: &str,
    change: AppliedChange,
) -> TuneEvent {
    let (rate, rtt) = rates(group, connection.handle.cookie());
    connection.event(kind, why, change, rate, rtt)
}

/// The rate of a download, and the latest RTT and the minimum one of its path group.
fn rates(group: &PathGroup, cookie: u64) -> (Rate, (Duration, Option<Duration>)) {
    (group.connection_rate(cookie), group.round_trips())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_change_of_a_limit_is_part_of_an_action() {
        let group_events = vec![(TuneEventKind::Held, "known".to_owned())];
        let limits = [None, Some(Bytes::new(100_000)), Some(Bytes::new(200_000))];
        for (from, to) in limits.into_iter().flat_map(|from| limits.map(|to| (from, to))) {
            for group_events in [&group_events[..], &[]] {
                let actions = actions(true, (from, to), None, group_events);
                assert!(from == to || !actions.is_empty(), "{from:?} {to:?}");
                let adjusts = actions.iter().any(|(kind, _)| *kind == TuneEventKind::Adjusted);
                assert_eq!(adjusts, group_events.is_empty() && from != to);
            }
            // The first limit precedes the controller's events of its round.
            let first = actions(false, (None, to), None, &group_events);
            let kinds: Vec<_> = first.iter().map(|(kind, _)| *kind).collect();
            let expected = [TuneEventKind::Taken, TuneEventKind::Held];
            assert_eq!(kinds, if to.is_some() { &expected[..] } else { &[] });
        }
    }

    #[test]
    fn a_limit_that_follows_the_controller_has_its_reason() {
        let limits = (Some(Bytes::new(200_000)), Some(Bytes::new(100_000)));
        let why = |claimed, reason| actions(claimed, limits, reason, &[]).remove(0).1;
        assert_eq!(why(true, None), "newer measurements of the path");
        let slowdown = Some(Reason::Slowdown);
        assert_eq!(why(true, slowdown), Reason::Slowdown.to_string());
        assert_eq!(why(false, slowdown), format!("a bulk transfer; {}", Reason::Slowdown));
    }

    #[test]
    fn samples_are_grouped_into_rounds_from_the_latest_backwards() {
        let shown = [(1, vec!["a", "b", "c"]), (2, vec!["d"]), (3, vec!["e", "f"])];
        let rounds: Vec<_> = rounds(&shown).collect();
        let expected =
            [vec![(1, &"a")], vec![(1, &"b"), (3, &"e")], vec![(1, &"c"), (2, &"d"), (3, &"f")]];
        assert_eq!(rounds, expected);
        assert_eq!(super::rounds::<u8>(&[]).count(), 0);
    }
}
