//! Connections of a growing capture: the activity of each since the last sample.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};

use serde::Serialize;
use sweetspot_trace::flow::{Connection, Deliveries, Ending, Table, Vantage};
use sweetspot_units::{Bytes, Duration, Time};

use crate::capture::{is_brief, shows_at_once};
use crate::flow::{Traits, brief};
use crate::{Class, Evidence, LimitVerdict, Limits, capture, shared};

/// A connection's activity since the last sample.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RecentFlow {
    /// The address of the end that sent most of the data.
    pub source: SocketAddr,
    /// The receiver's address.
    pub destination: SocketAddr,
    /// Payload acknowledged since the last sample, or since the connection began if that was later, in bits per second. Unknown
    /// in the first sample.
    pub goodput_bps: Option<f64>,
    /// The latest RTT, if the capture shows the whole round trip.
    pub rtt_s: Option<f64>,
    /// A lower bound of the latest RTT, if only the part behind the capture is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rtt_at_least_s: Option<f64>,
    /// Payload acknowledged since the connection began or was first seen.
    pub bytes: u64,
    /// Segments retransmitted since then.
    pub retransmitted_segments: u64,
    /// The limit since the last sample, or an earlier one if that is not known yet.
    pub limited_by: Class,
    /// That limit's share of the time.
    pub share_of_time: f64,
    /// `limited_by` in 14 characters at most, for a table.
    #[serde(skip)]
    pub brief: &'static str,
    /// The capture joined it in mid-connection, too short a time ago to know its limit: `limited_by` is unknown.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub measuring: bool,
    /// How it ended; such a connection is in one sample only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<Ended>,
}

/// How a connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// Both ends closed it.
    Closed,
    /// One end reset it.
    Reset,
}

impl Ended {
    /// The connection's end, if it has ended.
    fn of(connection: &Connection) -> Option<Ended> {
        connection.has_ended().then_some(match connection.ending {
            Ending::Reset => Ended::Reset,
            _ => Ended::Closed,
        })
    }

    /// The name in a table.
    pub fn brief(self) -> &'static str {
        match self {
            Ended::Closed => "closed",
            Ended::Reset => "reset",
        }
    }
}

/// The state of a connection from sample to sample.
#[derive(Debug, Clone, Copy)]
struct Earlier {
    acked: u64,
    traits: Traits,
    limits: Limits,
    /// The limits of the interval before, which stay until a packet shows others.
    shown: Limits,
}

/// The connection's ends, its beginning, and the index of the stream.
type Key = ([SocketAddr; 2], Time, usize);

/// Samples the connections of a table repeatedly.
#[derive(Debug, Default)]
pub struct Following {
    before: HashMap<Key, Earlier>,
    last: Option<Time>,
}

impl Following {
    /// The activity of the connections in `table` since the last sample, the fastest first; `now` is on the capture's clock.
    pub fn sample(&mut self, table: &Table, now: Time) -> Vec<RecentFlow> {
        let since = self.last.replace(now);
        let mut seen = HashMap::new();
        let together = together(table);
        let fills = |connection: &Connection, evidence: &Evidence| {
            let together = together.get(&hosts(connection, main_side(connection)));
            let span = [connection.begun, connection.last];
            together.is_some_and(|together| shared::fills_path(span, evidence, together))
        };
        let mut flows: Vec<RecentFlow> = table
            .iter()
            .filter(|connection| {
                let was_reported = since.is_some_and(|since| connection.last <= since);
                !(was_reported && connection.has_ended())
            })
            .map(|connection| self.recent(connection, (since, now), &fills, &mut seen))
            .collect();
        self.before = seen;
        flows.sort_by(|a, b| {
            let rate = |flow: &RecentFlow| flow.goodput_bps.unwrap_or(0.0);
            rate(b).total_cmp(&rate(a)).then_with(|| b.bytes.cmp(&a.bytes))
        });
        flows
    }

    fn recent(
        &self,
        connection: &Connection,
        (since, now): (Option<Time>, Time),
        fills_with_others: &dyn Fn(&Connection, &Evidence) -> bool,
        seen: &mut HashMap<Key, Earlier>,
    ) -> RecentFlow {
        let side = main_side(connection);
        let stream = &connection.streams[side];
        let acked = stream.counts().acked;
        let key = (connection.ends, connection.begun, side);
        let before = self.before.get(&key);
        // No packet passed since the last sample: its limit is unchanged.
        let quiet = since.is_some_and(|since| connection.last < since);
        let (limits, evidence) = match before.filter(|_| quiet) {
            Some(before) => (before.limits, None),
            None => {
                let (mut limits, mut evidence, classifier) = capture::judge(connection, side);
                if fills_with_others(connection, &evidence) {
                    limits = classifier.on_full_path().limits(stream);
                    evidence.capacity = Some(evidence.goodput);
                    // The path that they fill spaces their segments.
                    (evidence.even, evidence.paced) = (false, false);
                }
                (limits, Some(evidence))
            }
        };
        let mut fresh = before.map_or(limits, |before| limits.since(&before.limits));
        if before.is_some()
            && fresh.total() == Duration::ZERO
            && let Some(since) = since
            && let Some(quiet) = without_progress(connection, side, (since, now))
        {
            fresh = quiet;
        }
        let shown = match fresh.total() {
            Duration::ZERO => before.map_or(limits, |before| before.shown),
            _ => fresh,
        };
        let known = evidence.as_ref().map(Traits::of).or(before.map(|before| before.traits));
        let traits = known.unwrap_or_default();
        let limited_by = match evidence {
            _ if capture::fails_to_open(connection) => Class::NeverEstablished,
            // A limit that does not account for the rate is not reported here either.
            Some(evidence) if before.is_none() => LimitVerdict::new(&limits, &evidence).cause,
            _ => shown.leading(shown.dominant()),
        };
        let measuring = !shows_at_once(limited_by) && is_brief(connection, side);
        let limited_by = if measuring { Class::Unknown } else { limited_by };
        let carried = Bytes::new(acked - before.map_or(0, |b| b.acked.min(acked)));
        let from = since.map(|since| since.max(connection.begun)).filter(|from| now > *from);
        let rate = from.map(|from| (carried / now.since(from)).as_f64());
        seen.insert(key, Earlier { acked, traits, limits, shown });
        let trips = stream.round_trips();
        let shows_all = trips.vantage() != Vantage::Unknown;
        let rtt = trips.latest().map(Duration::as_secs_f64);
        RecentFlow {
            source: connection.ends[side],
            destination: connection.ends[1 - side],
            goodput_bps: rate,
            rtt_s: rtt.filter(|_| shows_all),
            rtt_at_least_s: rtt.filter(|_| !shows_all),
            bytes: acked,
            retransmitted_segments: stream.retransmissions().segments(),
            limited_by,
            brief: brief(limited_by, traits),
            share_of_time: match limited_by {
                Class::NeverEstablished => 1.0,
                limit => crate::limits::rounded(shown.share(limit)),
            },
            measuring,
            ended: Ended::of(connection),
        }
    }
}

/// The limit of an interval in which nothing was acknowledged, if that shows: data that waits for an acknowledgement for longer than
/// an RTT, or nothing to acknowledge. A receiver does not see what waits at the sender. A closed window explains itself.
fn without_progress(
    connection: &Connection,
    side: usize,
    (since, now): (Time, Time),
) -> Option<Limits> {
    let stream = &connection.streams[side];
    let trips = stream.round_trips();
    let (interval, is_shut) = (now.since(since), stream.closed_since().is_some());
    if is_shut || trips.latest()? > interval {
        return None;
    }
    let class = match (stream.unacknowledged(), trips.vantage()) {
        (0, Vantage::Receiver) => return None,
        (0, _) => Class::Idle,
        _ => Class::Stalled,
    };
    Some(Limits::only(class, interval))
}

/// The index of the stream that delivered more, or that waits at a closed window.
fn main_side(connection: &Connection) -> usize {
    if let Some((side, _)) = capture::probes_window(connection) {
        return side;
    }
    let acked = |side: usize| connection.streams[side].counts().acked;
    usize::from(acked(1) > acked(0))
}

/// The hosts of the stream that `side` sent: sender, receiver.
fn hosts(connection: &Connection, side: usize) -> [IpAddr; 2] {
    [side, 1 - side].map(|side| connection.ends[side].ip())
}

/// The summed deliveries between each pair of hosts that has several connections.
fn together(table: &Table) -> HashMap<[IpAddr; 2], Deliveries> {
    let mut series: HashMap<_, Vec<&Deliveries>> = HashMap::new();
    for connection in table.iter() {
        let side = main_side(connection);
        let deliveries = connection.streams[side].deliveries();
        series.entry(hosts(connection, side)).or_default().push(deliveries);
    }
    series.retain(|_, series| series.len() > 1);
    shared::sums(series)
}

#[cfg(test)]
mod tests {
    use sweetspot_trace::flow::HISTORY;
    use sweetspot_trace::packet::{Flags, Options, Segment};

    use super::*;

    /// A connection captured from the middle on, after `n` round trips of 100 ms with ten full segments each.
    fn after(n: u64) -> RecentFlow {
        let now = Time::ZERO + Duration::from_millis(n * 100);
        Following::default().sample(&table_after(n), now).remove(0)
    }

    fn ends() -> [SocketAddr; 2] {
        [1, 2].map(|n| SocketAddr::from(([192, 0, 2, n], 5000)))
    }

    /// An acknowledgement after `ms` by the end with the index `from`.
    fn segment(ms: u64, from: usize, seq: u64, ack: u64) -> Segment {
        Segment {
            time: Time::ZERO + Duration::from_millis(ms),
            source: ends()[from],
            destination: ends()[1 - from],
            seq: seq as u32,
            ack: ack as u32,
            flags: Flags { ack: true, ..Flags::default() },
            window: 65_535,
            payload: 0,
            header: 20,
            options: Options::default(),
            id: None,
            ttl: 64,
        }
    }

    fn table_after(n: u64) -> Table {
        let mut table = Table::default();
        let mut take = |ms: u64, from: usize, seq: u64, ack: u64, payload: u32| {
            table.take(&Segment { payload, ..segment(ms, from, seq, ack) });
        };
        for round in 0..n {
            let first = 1 + round * 10_000;
            (0..10).for_each(|n| take(round * 100, 0, first + n * 1000, 1, 1000));
            take(round * 100 + 100, 1, 1, first + 10_000, 0);
        }
        table
    }

    #[test]
    fn a_connection_followed_for_a_few_rounds_has_no_limit_yet() {
        let early = after(HISTORY as u64 - 2);
        assert!(early.measuring && early.limited_by == Class::Unknown, "{early:?}");
        assert!(!after(HISTORY as u64).measuring);
        // Neither a handshake nor timestamps show how far the sender is.
        assert_eq!((early.rtt_s, early.rtt_at_least_s), (None, Some(0.1)));
    }

    /// The answer to a first SYN may still come; a repeated SYN had no answer.
    #[test]
    fn a_connection_whose_syn_is_repeated_never_opened() {
        let mut table = Table::default();
        let mut limit_after = |seconds: u64| {
            let flags = Flags { syn: true, ..Flags::default() };
            let syn = Segment { flags, header: 24, ..segment(1000 * seconds, 0, 1, 0) };
            table.take(&syn);
            let flow = Following::default().sample(&table, syn.time).remove(0);
            (flow.limited_by, flow.share_of_time)
        };
        assert_ne!(limit_after(0).0, Class::NeverEstablished);
        assert_eq!(limit_after(1), (Class::NeverEstablished, 1.0));
    }

    /// The sender probes a window that was closed before: an empty segment before its next byte (tcp_write_wakeup), 0, 1 and 3 s
    /// after the first, each answered after 40 ms.
    #[test]
    fn a_window_closed_before_the_capture_is_the_receiving_programs() {
        let mut table = Table::default();
        for ms in [0, 1000, 3000] {
            table.take(&segment(ms, 1, 999, 1));
            table.take(&Segment { window: 0, ..segment(ms + 40, 0, 1, 1000) });
        }
        let now = Time::ZERO + Duration::from_millis(3040);
        let flow = Following::default().sample(&table, now).remove(0);
        assert_eq!((flow.source, flow.limited_by), (ends()[1], Class::ReceiverApplication));
        assert_eq!((flow.share_of_time, flow.measuring), (1.0, false));
        let connection = table.drain().unwrap();
        let flow = capture::flows(&connection).remove(0);
        assert_eq!((flow.source, flow.verdict.class), (ends()[1], Class::ReceiverApplication));
        assert!(flow.verdict.words.contains("window"), "{flow:?}");
    }

    #[test]
    fn a_connection_that_was_reset_is_listed_once_more() {
        let (mut following, mut table) = (Following::default(), table_after(10));
        let at = |ms: u64| Time::ZERO + Duration::from_millis(ms);
        let mut ended = |table: &Table, ms| {
            let flows = following.sample(table, at(ms));
            flows.into_iter().map(|flow| flow.ended).collect::<Vec<_>>()
        };
        assert_eq!(ended(&table, 1000), [None]);
        let flags = Flags { rst: true, ..Flags::default() };
        table.take(&Segment { flags, ..segment(1500, 1, 1, 0) });
        assert_eq!(ended(&table, 2000), [Some(Ended::Reset)]);
        assert_eq!(ended(&table, 3000), []);
    }

    #[test]
    fn an_interval_without_acknowledgements_is_stalled_or_idle() {
        let at = |ms: u64| Time::ZERO + Duration::from_millis(ms);
        for (unanswered, expected) in [(true, Class::Stalled), (false, Class::Idle)] {
            let (mut following, mut table) = (Following::default(), table_after(10));
            let full = following.sample(&table, at(1000)).remove(0).limited_by;
            if unanswered {
                let mut more = segment(1001, 0, 100_001, 1);
                more.payload = 1000;
                table.take(&more);
            }
            following.sample(&table, at(1100));
            let quiet = following.sample(&table, at(2100)).remove(0);
            assert_ne!(full, expected);
            assert_eq!((quiet.limited_by, quiet.share_of_time), (expected, 1.0));
        }
    }

    /// Ten segments of 1 kB in each round trip of 100 ms are 100 kB/s, whenever the previous sample was.
    #[test]
    fn a_new_connections_rate_covers_its_lifetime() {
        let mut following = Following::default();
        assert_eq!(after(1).goodput_bps, None);
        following.sample(&Table::default(), Time::ZERO);
        let table = table_after(10);
        let flows = following.sample(&table, Time::ZERO + Duration::from_secs(1));
        assert_eq!(flows[0].goodput_bps, Some(800_000.0));
    }
}
