//! The closing summary of tuning: the tuned connections, with the time for which each was limited and held.

use serde::Serialize;
use sweetspot_units::{Duration, Rate, Significant};

use crate::event::{AppliedChange, TuneEvent, TuneEventKind};
use crate::unlimited::{UnlimitedConnections, UnlimitedRecord};

/// Connections beyond this number are counted, but not listed.
const MAX_LISTED: usize = 8;

/// The effect of tuning on each connection, collected from its events.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TuneSummary {
    connections: Vec<TunedConnection>,
    /// The number of ended connections that are only counted.
    dropped: usize,
}

#[derive(Debug, Clone, PartialEq)]
struct TunedConnection {
    cookie: u64,
    name: String,
    limited: Span,
    held: Span,
    /// The connection's last limit, in words.
    last: Option<String>,
    /// Before its first reduction or hold.
    before: Option<Measured>,
    holds: Holds,
}

/// The measurements of a connection's holds: all of them at first, then every second, every fourth and so on.
#[derive(Debug, Clone, Default, PartialEq)]
struct Holds {
    kept: Vec<Measured>,
    seen: usize,
    /// Of 2^`halvings` measurements, one is kept.
    halvings: u32,
}

/// The most measurements kept for each connection.
const MAX_KEPT: usize = 64;

impl Holds {
    fn add(&mut self, measured: Measured) {
        if self.seen.is_multiple_of(1 << self.halvings) {
            self.kept.push(measured);
        }
        self.seen += 1;
        if self.kept.len() > MAX_KEPT {
            let mut is_kept = false;
            self.kept.retain(|_| {
                is_kept = !is_kept;
                is_kept
            });
            self.halvings += 1;
        }
    }

    /// The medians. A transfer that drains at its end hardly changes them.
    fn typical(&self) -> Option<Measured> {
        let middle = self.kept.len() / 2;
        let mut rates: Vec<Rate> = self.kept.iter().map(|each| each.rate).collect();
        let mut rtts: Vec<Duration> = self.kept.iter().map(|each| each.rtt).collect();
        rates.sort_unstable();
        rtts.sort_unstable();
        Some(Measured { rate: *rates.get(middle)?, rtt: *rtts.get(middle)? })
    }
}

/// The rate and the RTT of an event, or the medians of several.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Measured {
    rate: Rate,
    rtt: Duration,
}

impl Measured {
    /// `None` if the event came before the first measurement, or while nothing moved.
    fn of(event: &TuneEvent) -> Option<Measured> {
        let (rate, (rtt, _)) = (event.rate, event.rtt);
        (rate > Rate::ZERO && rtt > Duration::ZERO).then_some(Measured { rate, rtt })
    }
}

impl TunedConnection {
    fn measure(&mut self, event: &TuneEvent) {
        // A download is limited far above its need at first, an upload at once.
        let has_effect = match event.kind {
            TuneEventKind::Taken => matches!(event.change, AppliedChange::Pace { .. }),
            kind => matches!(kind, TuneEventKind::Tightened | TuneEventKind::Held),
        };
        if has_effect {
            self.before = self.before.or(Measured::of(event));
        }
        if event.kind == TuneEventKind::Held {
            Measured::of(event).into_iter().for_each(|measured| self.holds.add(measured));
        }
    }

    /// The effect on the rate and the RTT, if it was held; otherwise empty.
    fn effect(&self) -> String {
        let (Some(before), Some(held)) = (self.before, self.holds.typical()) else {
            return String::new();
        };
        if before == held {
            return format!(", rate {}, RTT {}", held.rate, held.rtt);
        }
        format!(", rate {} -> {}, RTT {} -> {}", before.rate, held.rate, before.rtt, held.rtt)
    }
}

/// The total length of intervals, in seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Span {
    since: Option<f64>,
    total: f64,
}

impl Span {
    /// Starts or ends an interval at time `at`.
    fn set(&mut self, is_on: bool, at: f64) {
        match (self.since, is_on) {
            (None, true) => self.since = Some(at),
            (Some(since), false) => {
                self.total += (at - since).max(0.0);
                self.since = None;
            }
            _ => {}
        }
    }

    /// The total length up to time `end`.
    fn until(self, end: f64) -> f64 {
        self.total + self.since.map_or(0.0, |since| (end - since).max(0.0))
    }
}

impl TuneSummary {
    /// Handles an event of any connection. Times must not decrease.
    pub fn add(&mut self, event: &TuneEvent) {
        if event.kind == TuneEventKind::NotLimited {
            return;
        }
        let who = &event.who;
        let known = self.connections.iter_mut().position(|known| known.cookie == who.cookie);
        let at = known.unwrap_or_else(|| {
            self.connections.push(TunedConnection {
                cookie: who.cookie,
                name: format!("{}[{}] {}", who.program, who.pid, who.remote),
                limited: Span::default(),
                held: Span::default(),
                last: None,
                before: None,
                holds: Holds::default(),
            });
            self.connections.len() - 1
        });
        let limit = match event.change {
            AppliedChange::Window { to, advertised, .. } => to.map(|window| {
                let below = advertised.filter(|advertised| *advertised < window);
                let below = below.map_or(String::new(), |below| format!(", advertised {below}"));
                format!("window {window}{below}")
            }),
            AppliedChange::Pace { to, .. } => to.map(|rate| format!("pacing rate {rate}")),
            // The limit does not change.
            AppliedChange::Congestion { .. } => return,
        };
        let connection = &mut self.connections[at];
        connection.measure(event);
        let has_limit = limit.is_some();
        // A trial of a faster pace is no hold.
        let is_trial = matches!(event.change, AppliedChange::Pace { .. })
            && event.kind == TuneEventKind::Adjusted;
        if !is_trial {
            connection.last = limit.or(connection.last.take());
        }
        match event.kind {
            TuneEventKind::Taken | TuneEventKind::Tightened | TuneEventKind::Reopened => {
                connection.limited.set(has_limit, event.wall_s);
                connection.held.set(false, event.wall_s);
            }
            TuneEventKind::Held => {
                connection.limited.set(has_limit, event.wall_s);
                connection.held.set(has_limit, event.wall_s);
            }
            TuneEventKind::LetGo
            | TuneEventKind::Lifted
            | TuneEventKind::Refused
            | TuneEventKind::Gone => {
                connection.limited.set(false, event.wall_s);
                connection.held.set(false, event.wall_s);
            }
            TuneEventKind::Adjusted => connection.limited.set(has_limit, event.wall_s),
            TuneEventKind::Advised | TuneEventKind::Switched | TuneEventKind::NotLimited => {}
        }
        // A daemon sees an unlimited number of connections, so ended ones are not kept.
        if event.kind == TuneEventKind::Gone && at >= MAX_LISTED {
            self.connections.remove(at);
            self.dropped += 1;
        }
    }

    /// The number of connections that were tuned.
    pub fn connections(&self) -> usize {
        self.connections.len() + self.dropped
    }

    /// The lines of the summary: the time since `begun_s` and the number of connections, then a line per connection; none if no
    /// connection was tuned. Times are seconds on the clock of [`TuneEvent::wall_s`].
    pub fn lines(&self, begun_s: f64, end_s: f64) -> Vec<String> {
        let seconds = |length: f64| format!("{} s", Significant::<3>(length));
        let took = seconds((end_s - begun_s).max(0.0));
        let count = self.connections();
        let first = match count {
            0 => return Vec::new(),
            1 => format!("tuned 1 connection in {took}:"),
            _ => format!("tuned {count} connections in {took}:"),
        };
        let line = |connection: &TunedConnection| {
            let [limited, held] =
                [connection.limited, connection.held].map(|span| span.until(end_s));
            let what = match (limited > 0.0, held > 0.0) {
                (false, _) => "never limited".to_owned(),
                (true, false) => format!("limited for {}, never held", seconds(limited)),
                (true, true) => {
                    format!("limited for {}, held for {}", seconds(limited), seconds(held))
                }
            };
            let last = connection.last.as_ref().filter(|_| limited > 0.0);
            let last = last.map_or(String::new(), |last| format!(", last {last}"));
            format!("  {}: {what}{last}{}", connection.name, connection.effect())
        };
        let mut lines = vec![first];
        lines.extend(self.connections.iter().take(MAX_LISTED).map(line));
        if count > MAX_LISTED {
            lines.push(format!("  and {} more", count - MAX_LISTED));
        }
        lines
    }
}

/// The last line of `--events`.
#[derive(Serialize)]
struct EndedLine<'a> {
    t_s: f64,
    event: &'static str,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    dry_run: bool,
    why: Option<&'a str>,
    tuned: usize,
    not_limited: Vec<UnlimitedRecord>,
}

/// The line of JSON that ends the events at `wall_s`, on the clock of [`TuneEvent::wall_s`]. It has the number of `tuned`
/// connections, those never limited, and the reason `why` in words.
pub fn ended_line(
    wall_s: f64,
    dry_run: bool,
    why: Option<&str>,
    tuned: usize,
    unlimited: &UnlimitedConnections,
) -> String {
    let (event, not_limited) = ("ended", unlimited.records());
    let line = EndedLine { t_s: wall_s, event, dry_run, why, tuned, not_limited };
    // It has only numbers and strings, so this cannot fail.
    serde_json::to_string(&line).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use sweetspot_units::Bytes;

    use super::*;
    use crate::event::ConnectionOwner;
    use crate::unlimited::NotLimited;

    fn event(cookie: u64, wall_s: f64, kind: TuneEventKind, to: Option<u64>) -> TuneEvent {
        TuneEvent {
            wall_s,
            who: ConnectionOwner {
                pid: 7,
                program: "curl".to_owned(),
                local: "192.0.2.1:50000".parse().unwrap(),
                remote: "192.0.2.2:443".parse().unwrap(),
                cookie,
                rule: None,
            },
            kind,
            why: String::new(),
            change: AppliedChange::Window {
                from: None,
                to: to.map(Bytes::new),
                clamp: None,
                advertised: None,
            },
            rate: Rate::ZERO,
            rtt: (Duration::ZERO, None),
        }
    }

    #[test]
    fn each_connection_has_the_time_of_its_limit_and_of_its_hold() {
        let mut summary = TuneSummary::default();
        for event in [
            event(1, 101.0, TuneEventKind::Taken, Some(900_000)),
            event(1, 102.0, TuneEventKind::Held, Some(500_000)),
            event(2, 103.0, TuneEventKind::Refused, None),
            event(1, 106.0, TuneEventKind::LetGo, None),
            event(1, 108.0, TuneEventKind::Held, Some(500_000)),
        ] {
            summary.add(&event);
        }
        // The first is limited from 101 to 106 and from 108 on, and held from 102 to 106 and from 108 on.
        let expected = [
            "tuned 2 connections in 10 s:",
            "  curl[7] 192.0.2.2:443: limited for 7 s, held for 6 s, last window 500 kB",
            "  curl[7] 192.0.2.2:443: never limited",
        ];
        assert_eq!(summary.lines(100.0, 110.0), expected);
    }

    #[test]
    fn a_held_connection_has_its_rate_and_rtt_before_and_since() {
        let measured = |kind, mbit, ms| TuneEvent {
            rate: Rate::from_mbit_per_second(mbit),
            rtt: (Duration::from_millis(ms), None),
            ..event(1, 1.0, kind, Some(500_000))
        };
        let effect = |events: &[TuneEvent]| {
            let mut summary = TuneSummary::default();
            events.iter().for_each(|event| summary.add(event));
            let line = summary.lines(0.0, 2.0).remove(1);
            line.split_once("last window 500 kB").unwrap().1.to_owned()
        };
        let taken = measured(TuneEventKind::Taken, 3, 40);
        let tightened = measured(TuneEventKind::Tightened, 47, 124);
        let [early, late] =
            [(48, 60), (49, 41)].map(|(m, ms)| measured(TuneEventKind::Held, m, ms));
        // The medians of three holds.
        let all = [taken.clone(), tightened.clone(), early.clone(), late.clone(), late];
        assert_eq!(effect(&all), ", rate 47 Mbit/s -> 49 Mbit/s, RTT 124 ms -> 41 ms");
        assert_eq!(effect(&[taken.clone(), early]), ", rate 48 Mbit/s, RTT 60 ms");
        // A trial without a hold has no known effect.
        assert_eq!(effect(&[taken.clone(), tightened.clone()]), "");
        // The end of an upload drains: of a hundred holds, the median has its rate.
        let mut held = vec![taken, tightened];
        held.extend(vec![measured(TuneEventKind::Held, 48, 41); 99]);
        held.push(measured(TuneEventKind::Held, 17, 41));
        assert_eq!(effect(&held), ", rate 47 Mbit/s -> 48 Mbit/s, RTT 124 ms -> 41 ms");
    }

    #[test]
    fn a_connection_that_was_never_limited_is_counted_with_its_reason_alone() {
        let mut summary = TuneSummary::default();
        summary.add(&event(1, 1.0, TuneEventKind::NotLimited, None));
        assert_eq!(summary.connections(), 0);
        let mut unlimited = UnlimitedConnections::default();
        unlimited.add(NotLimited::NoStandingQueue, "192.0.2.2:443".parse().unwrap());
        let line = ended_line(2.0, false, Some("why"), 0, &unlimited);
        let expected = serde_json::json!({
            "t_s": 2.0, "event": "ended", "why": "why", "tuned": 0, "not_limited": [
                { "reason": "no_standing_queue", "connections": 1, "peer": "192.0.2.2:443" }
            ]
        });
        assert_eq!(serde_json::from_str::<serde_json::Value>(&line).unwrap(), expected);
    }

    #[test]
    fn without_a_connection_there_is_no_line_and_many_are_counted() {
        assert!(TuneSummary::default().lines(0.0, 3.0).is_empty());
        let mut many = TuneSummary::default();
        (0..10).for_each(|cookie| many.add(&event(cookie, 1.0, TuneEventKind::Taken, Some(9_000))));
        let lines = many.lines(0.0, 2.0);
        assert_eq!(lines.len(), 1 + MAX_LISTED + 1);
        assert_eq!(lines.last().unwrap(), "  and 2 more");
        // An ended connection beyond the listed ones is only counted.
        (0..10).for_each(|cookie| many.add(&event(cookie, 2.0, TuneEventKind::Gone, None)));
        assert_eq!((many.connections.len(), many.connections()), (MAX_LISTED, 10));
        assert_eq!(many.lines(0.0, 2.0).last().unwrap(), "  and 2 more");
        assert!(lines[1].ends_with(": limited for 1 s, never held, last window 9 kB"), "{lines:?}");
    }
}
