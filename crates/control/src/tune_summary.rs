//! The closing summary of tuning: the tuned connections, with the time for which each was limited and held.

use serde::Serialize;
use sweetspot_units::{Duration, Rate, Significant};

use crate::event::{AppliedChange, TuneEvent, TuneEventKind};
use crate::readings::{Measured, Readings};
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

#[derive(Debug, Clone, Default, PartialEq)]
struct TunedConnection {
    cookie: u64,
    name: String,
    limited: Span,
    reduced: Span,
    yielded: Span,
    held: Span,
    is_paced: bool,
    /// The connection's last limit, in words.
    last: Option<String>,
    /// At its first reduction or hold.
    before: Option<Measured>,
    /// Before that, and after its limit was lifted.
    while_free: Readings,
    /// While reduced or held.
    while_bound: Readings,
    while_yielding: Readings,
}

impl TunedConnection {
    /// Handles an event that leaves it with a limit or without one.
    fn handle(&mut self, event: &TuneEvent, has_limit: bool) {
        let (kind, at) = (event.kind, event.wall_s);
        // A download is limited far above its need at first; an upload that is to drain a queue, below its rate.
        let slows_down =
            matches!(event.change, AppliedChange::Pace { to: Some(to), .. } if to < event.rate);
        self.is_paced = matches!(event.change, AppliedChange::Pace { .. });
        let has_effect = kind.reduces() || kind == TuneEventKind::Taken && slows_down;
        if has_effect {
            self.before = self.before.or(Measured::of(event.rate, event.rtt.0));
        }
        match kind {
            TuneEventKind::Advised | TuneEventKind::Switched | TuneEventKind::NotLimited => {}
            TuneEventKind::Adjusted => self.limited.set(has_limit, at),
            TuneEventKind::LetGo => {
                // The readings of a trial that failed are not an effect of tuning.
                if self.held.until(at) <= 0.0 && self.yielded.until(at) <= 0.0 {
                    (self.before, self.while_bound) = (None, Readings::default());
                }
                self.limited.set(has_limit, at);
                let spans = [&mut self.reduced, &mut self.yielded, &mut self.held];
                spans.into_iter().for_each(|span| span.set(false, at));
            }
            TuneEventKind::Lifted | TuneEventKind::Refused | TuneEventKind::Gone => {
                let spans =
                    [&mut self.limited, &mut self.reduced, &mut self.yielded, &mut self.held];
                spans.into_iter().for_each(|span| span.set(false, at));
            }
            TuneEventKind::Taken
            | TuneEventKind::Tightened
            | TuneEventKind::Yielded
            | TuneEventKind::Reopened
            | TuneEventKind::Held => {
                let (holds, yields) = (kind == TuneEventKind::Held, kind == TuneEventKind::Yielded);
                self.limited.set(has_limit, at);
                self.held.set(has_limit && holds, at);
                self.yielded.set(has_limit && yields, at);
                self.reduced.set(has_limit && has_effect && !holds && !yields, at);
            }
        }
    }

    /// The effect of tuning until `end_s`, in words.
    fn words(&self, end_s: f64) -> String {
        let [limited, reduced, yielded, held] =
            [self.limited, self.reduced, self.yielded, self.held].map(|span| span.until(end_s));
        if limited <= 0.0 {
            return format!("  {}: never limited{}", self.name, self.effect());
        }
        let mut words = format!("  {}: limited for {}", self.name, seconds(limited));
        // The trials of a connection that was also held took little of its time.
        let is_trial = held <= 0.0 && reduced > 0.0;
        let spans = [(held > 0.0, "held", held), (is_trial, "reduced", reduced)];
        for (is_shown, what, span) in
            spans.into_iter().chain([(yielded > 0.0, "yielding", yielded)])
        {
            if is_shown {
                words += &format!(", {what} for {}", seconds(span));
            }
        }
        if held <= 0.0 && yielded <= 0.0 {
            words += ", never held";
            if self.is_paced && reduced > 0.0 {
                words += " because its queue did not drain";
            }
        }
        if let Some(last) = &self.last {
            words += &format!(", last {last}");
        }
        words + &self.effect()
    }

    /// The rate and the RTT, from before its first reduction or hold to those since, then those while it yielded; empty without
    /// a measurement.
    fn effect(&self) -> String {
        let yielding = self.while_yielding.typical().map_or(String::new(), |yielding| {
            format!(", while yielding rate {}, RTT {}", yielding.rate, yielding.rtt)
        });
        let alone = match (self.before, self.while_bound.typical(), self.while_free.typical()) {
            (Some(before), Some(since), _) => {
                let (rates, rtts) = ([before.rate, since.rate], [before.rtt, since.rtt]);
                format!(", rate {}, RTT {}", arrow(rates), arrow(rtts))
            }
            (_, Some(all), _) | (Some(all), None, None) | (_, None, Some(all)) => {
                format!(", rate {}, RTT {}", all.rate, all.rtt)
            }
            (None, None, None) => String::new(),
        };
        alone + &yielding
    }
}

/// Both values, or one if they look the same.
fn arrow<T: ToString>(values: [T; 2]) -> String {
    let [before, since] = values.map(|value| value.to_string());
    if before == since { before } else { format!("{before} -> {since}") }
}

fn seconds(length: f64) -> String {
    match length < 0.001 {
        true => "less than 1 ms".to_owned(),
        false => format!("{} s", Significant::<3>(length)),
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

    fn is_on(self) -> bool {
        self.since.is_some()
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
        let connection_owner = &event.connection_owner;
        let known =
            self.connections.iter_mut().position(|known| known.cookie == connection_owner.cookie);
        let at = known.unwrap_or_else(|| {
            let name = connection_owner.to_string();
            let cookie = connection_owner.cookie;
            self.connections.push(TunedConnection { cookie, name, ..TunedConnection::default() });
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
        let has_limit = limit.is_some();
        // Once an upload is held, its trials and their queues change the pacing rate for moments.
        let is_trial =
            event.kind == TuneEventKind::Adjusted && connection.is_paced && connection.held.is_on();
        let last = limit.filter(|_| !is_trial);
        connection.last = last.or(connection.last.take());
        connection.handle(event, has_limit);
        // A daemon sees an unlimited number of connections, so ended ones are not kept.
        if event.kind == TuneEventKind::Gone && at >= MAX_LISTED {
            self.connections.remove(at);
            self.dropped += 1;
        }
    }

    /// Handles the current rate and RTT of a connection, measured at regular times after its events.
    pub fn read(&mut self, cookie: u64, rate: Rate, rtt: Duration) {
        let of = self.connections.iter_mut().find(|known| known.cookie == cookie);
        let (Some(of), Some(measured)) = (of, Measured::of(rate, rtt)) else { return };
        let readings = match (of.yielded.is_on(), of.held.is_on() || of.reduced.is_on()) {
            (true, _) => &mut of.while_yielding,
            (false, true) => &mut of.while_bound,
            (false, false) => &mut of.while_free,
        };
        readings.add(measured);
    }

    /// The number of connections that were tuned.
    pub fn connections(&self) -> usize {
        self.connections.len() + self.dropped
    }

    /// The lines of the summary: the time since `start_s` and the number of connections, then a line per connection; none if no
    /// connection was tuned. Times are seconds on the clock of [`TuneEvent::wall_s`].
    pub fn lines(&self, start_s: f64, end_s: f64) -> Vec<String> {
        let took = seconds((end_s - start_s).max(0.0));
        let count = self.connections();
        let first = match count {
            0 => return Vec::new(),
            1 => format!("tuned 1 connection in {took}:"),
            _ => format!("tuned {count} connections in {took}:"),
        };
        let mut lines = vec![first];
        let listed = self.connections.iter().take(MAX_LISTED);
        lines.extend(listed.map(|connection| connection.words(end_s)));
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
    use crate::connection_owner::ConnectionOwner;
    use crate::unlimited::NotLimited;

    fn event(cookie: u64, wall_s: f64, kind: TuneEventKind, to: Option<u64>) -> TuneEvent {
        TuneEvent {
            wall_s,
            connection_owner: ConnectionOwner::example("curl", 443, cookie),
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
    fn each_connection_shows_how_long_it_was_limited_and_held() {
        let mut summary = TuneSummary::default();
        for event in [
            event(1, 101.0, TuneEventKind::Taken, Some(900_000)),
            event(1, 102.0, TuneEventKind::Held, Some(500_000)),
            event(2, 103.0, TuneEventKind::Refused, None),
            // Its limit grows on.
            event(1, 104.0, TuneEventKind::LetGo, Some(900_000)),
            event(1, 105.0, TuneEventKind::Held, Some(500_000)),
            event(1, 106.0, TuneEventKind::LetGo, None),
            event(1, 108.0, TuneEventKind::Held, Some(500_000)),
        ] {
            summary.add(&event);
        }
        // The first is limited from 101 to 106 and from 108 on, and held from 102 to 104, from 105
        // to 106 and from 108 on.
        let expected = [
            "tuned 2 connections in 10 s:",
            "  curl[7] 192.0.2.2:443: limited for 7 s, held for 5 s, last window 500 kB",
            "  curl[7] 192.0.2.2:443: never limited",
        ];
        assert_eq!(summary.lines(100.0, 110.0), expected);
    }

    #[test]
    fn a_limit_that_is_lifted_at_once_shows_no_microseconds() {
        let mut summary = TuneSummary::default();
        summary.add(&event(1, 1.0, TuneEventKind::Taken, Some(9_000)));
        summary.add(&event(1, 1.000_003, TuneEventKind::LetGo, None));
        let line = summary.lines(0.0, 2.0).remove(1);
        assert!(line.contains(": limited for less than 1 ms, never held"), "{line}");
    }

    /// The effect in the summary of these steps: an event, then readings of the rate and the RTT.
    fn effect(steps: &[(TuneEventKind, &[(u64, u64)])]) -> String {
        let mut summary = TuneSummary::default();
        let measured = |(mbit, ms)| (Rate::from_mbit_per_second(mbit), Duration::from_millis(ms));
        for (kind, readings) in steps {
            // At each event, 47 Mbit/s and 124 ms.
            let (rate, rtt) = measured((47, 124));
            let event = event(1, 1.0, *kind, Some(500_000));
            summary.add(&TuneEvent { rate, rtt: (rtt, None), ..event });
            for reading in *readings {
                let (rate, rtt) = measured(*reading);
                summary.read(1, rate, rtt);
            }
        }
        let line = summary.lines(0.0, 2.0).remove(1);
        line.split_once("last window 500 kB").unwrap().1.to_owned()
    }

    #[test]
    fn a_held_connection_shows_rate_and_rtt_before_and_after() {
        use TuneEventKind::{Held, Taken, Tightened};
        let before = (Taken, &[(40, 80)][..]);
        let trial = (Tightened, &[(30, 60)][..]);
        // The queue drains; the median is one of three equal readings among five.
        let held = (Held, &[(20, 90), (49, 41), (49, 41), (49, 41)][..]);
        let expected = ", rate 47 Mbit/s -> 49 Mbit/s, RTT 124 ms -> 41 ms";
        assert_eq!(effect(&[before, trial, held]), expected);
        // The end of a transfer drains: of a hundred readings, the median has its rate.
        let many = [vec![(48, 41); 99], vec![(17, 41)]].concat();
        let expected = ", rate 47 Mbit/s -> 48 Mbit/s, RTT 124 ms -> 41 ms";
        assert_eq!(effect(&[before, (Held, &many)]), expected);
        assert_eq!(effect(&[before, (Held, &[(47, 124)])]), ", rate 47 Mbit/s, RTT 124 ms");
    }

    #[test]
    fn the_rate_of_a_connection_that_yields_is_no_effect_on_its_own_rate() {
        use TuneEventKind::{Held, Reopened, Taken, Yielded};
        let (taken, held) = ((Taken, &[(40, 80)][..]), (Held, &[(46, 70)][..]));
        let yielded = (Yielded, &[(1, 104), (1, 104), (1, 104)][..]);
        let yielding = ", while yielding rate 1 Mbit/s, RTT 104 ms";
        let expected = format!(", rate 47 Mbit/s -> 46 Mbit/s, RTT 124 ms -> 70 ms{yielding}");
        assert_eq!(effect(&[taken, held, yielded]), expected);
        // It never held: before and after it yielded, nothing bound it.
        let reopened = (Reopened, &[(40, 80)][..]);
        let expected = format!(", rate 40 Mbit/s, RTT 80 ms{yielding}");
        assert_eq!(effect(&[taken, yielded, reopened]), expected);
    }

    #[test]
    fn a_connection_that_was_never_held_has_its_rate_and_rtt_too() {
        use TuneEventKind::{LetGo, Taken, Tightened};
        let free = (Taken, &[(40, 80), (45, 90), (45, 90)][..]);
        assert_eq!(effect(&[free]), ", rate 45 Mbit/s, RTT 90 ms");
        let trial = (Tightened, &[(46, 43)][..]);
        let expected = ", rate 47 Mbit/s -> 46 Mbit/s, RTT 124 ms -> 43 ms";
        assert_eq!(effect(&[free, trial]), expected);
        // A trial that failed has no lasting effect.
        let failed = (LetGo, &[(45, 90)][..]);
        assert_eq!(effect(&[free, trial, failed]), ", rate 45 Mbit/s, RTT 90 ms");
        // Nothing was read: before a download's first reduction, its events have no typical rate.
        assert_eq!(effect(&[(Taken, &[])]), "");
        // Nothing moved.
        assert_eq!(effect(&[(Taken, &[(0, 80)])]), "");
    }

    #[test]
    fn the_time_of_a_trial_is_shown_without_a_hold_and_that_of_yielding_always() {
        use TuneEventKind::{Held, Reopened, Taken, Tightened, Yielded};
        let words = |kinds: &[TuneEventKind]| {
            let mut summary = TuneSummary::default();
            // One event a second, and the end a second after the last.
            for (at, kind) in kinds.iter().enumerate() {
                summary.add(&event(1, at as f64, *kind, Some(500_000)));
            }
            let line = summary.lines(0.0, kinds.len() as f64).remove(1);
            line.split_once("443: ").unwrap().1.to_owned()
        };
        let last = "last window 500 kB";
        let expected = format!("limited for 3 s, reduced for 2 s, never held, {last}");
        assert_eq!(words(&[Taken, Tightened, Tightened]), expected);
        let expected = format!("limited for 3 s, held for 1 s, {last}");
        assert_eq!(words(&[Taken, Tightened, Held]), expected);
        let expected = format!("limited for 3 s, yielding for 1 s, {last}");
        assert_eq!(words(&[Taken, Yielded, Reopened]), expected);
        let expected = format!("limited for 3 s, held for 1 s, yielding for 1 s, {last}");
        assert_eq!(words(&[Taken, Held, Yielded]), expected);
    }

    #[test]
    fn an_upload_shows_the_pacing_rate_that_was_lifted_and_why_it_was_never_held() {
        use TuneEventKind::{Adjusted, Held, Lifted, Taken};
        // An event a second of an upload that delivers 20 Mbit/s, with its pacing rate from then on.
        let words = |events: &[(TuneEventKind, Option<u64>)]| {
            let mut summary = TuneSummary::default();
            for (at, (kind, to)) in events.iter().enumerate() {
                let (rate, to) =
                    (Rate::from_mbit_per_second(20), to.map(Rate::from_mbit_per_second));
                let change = AppliedChange::Pace { from: None, to, kernel: to };
                summary.add(&TuneEvent { change, rate, ..event(1, at as f64, *kind, None) });
            }
            let line = summary.lines(0.0, events.len() as f64).remove(1);
            line.split_once("443: ").unwrap().1.split_once(" Mbit/s").unwrap().0.to_owned()
        };
        let tried = [(Taken, Some(9)), (Held, Some(20)), (Adjusted, Some(24)), (Lifted, None)];
        assert_eq!(words(&tried), "limited for 3 s, held for 2 s, last pacing rate 20");
        let why = "reduced for 1 s, never held because its queue did not drain";
        assert_eq!(
            words(&[(Taken, Some(9))]),
            format!("limited for 1 s, {why}, last pacing rate 9")
        );
        // A rate above the upload's own reduces nothing.
        let expected = "limited for 1 s, never held, last pacing rate 40";
        assert_eq!(words(&[(Taken, Some(40))]), expected);
    }

    #[test]
    fn a_never_limited_connection_is_counted_only_under_its_reason() {
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
    fn no_connections_print_no_lines_and_excess_ones_are_counted() {
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
