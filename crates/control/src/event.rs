use std::fmt;

use serde::Serialize;
use sweetspot_units::{Bytes, Duration, Rate};

use crate::CongestionName;
use crate::connection_owner::ConnectionOwner;

/// An action on a connection, its reason, and its effect in the kernel.
#[derive(Debug, Clone, PartialEq)]
pub struct TuneEvent {
    /// The time of the event, seconds since 1970-01-01 UTC.
    pub wall_s: f64,
    /// The connection and its owner.
    pub connection_owner: ConnectionOwner,
    /// The kind of event.
    pub kind: TuneEventKind,
    /// Why, in words.
    pub why: String,
    /// The change, and the kernel's report after it.
    pub change: AppliedChange,
    /// The rate at which the connection receives, or sends if its upload is paced.
    pub rate: Rate,
    /// The latest RTT, and the min RTT if known.
    pub rtt: (Duration, Option<Duration>),
}

/// A change of a limit; `None` stands for no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AppliedChange {
    /// The limit of a download's window.
    Window {
        /// The limit before the change.
        from: Option<Bytes>,
        /// The limit after the change.
        to: Option<Bytes>,
        /// The kernel's clamp after the change; `None` if it was not read.
        clamp: Option<Bytes>,
        /// The window advertised after the change; `None` on kernels before 6.2.
        advertised: Option<Bytes>,
    },
    /// The limit of an upload's pacing rate.
    Pace {
        /// The limit before the change.
        from: Option<Rate>,
        /// The limit after the change.
        to: Option<Rate>,
        /// The kernel's limit after the change.
        kernel: Option<Rate>,
    },
    /// The connection's congestion control.
    Congestion {
        /// The chosen congestion control.
        to: CongestionName,
    },
}

/// The kinds of [`TuneEvent`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TuneEventKind {
    /// A bulk transfer's window was limited for the first time.
    Taken,
    /// The window or pacing rate was set to the path's capacity.
    Held,
    /// An upload's pacing rate increases again, or a window that yielded.
    Reopened,
    /// The window or pacing rate was reduced.
    Tightened,
    /// A less-than-best-effort transfer makes way for cross traffic.
    Yielded,
    /// A hold or a trial ended because it does not help: a window's limit grows again, a pacing rate's is lifted.
    LetGo,
    /// All limits were lifted because tuning ends.
    Lifted,
    /// The connection could not be limited, or the kernel ignores the limit.
    Refused,
    /// The connection is over.
    Gone,
    /// Advice on a change that would help an upload.
    Advised,
    /// The connection got another congestion control.
    Switched,
    /// The limit followed the controller's window or pacing rate, without another reason.
    Adjusted,
    /// A bulk transfer ended, or tuning ends, and it was never limited.
    NotLimited,
}

impl TuneEventKind {
    /// All kinds.
    pub const ALL: [TuneEventKind; 13] = [
        TuneEventKind::Taken,
        TuneEventKind::Held,
        TuneEventKind::Reopened,
        TuneEventKind::Tightened,
        TuneEventKind::Yielded,
        TuneEventKind::LetGo,
        TuneEventKind::Lifted,
        TuneEventKind::Refused,
        TuneEventKind::Gone,
        TuneEventKind::Advised,
        TuneEventKind::Switched,
        TuneEventKind::Adjusted,
        TuneEventKind::NotLimited,
    ];

    /// The name of the kind in JSON.
    pub fn name(self) -> &'static str {
        match self {
            TuneEventKind::Taken => "taken",
            TuneEventKind::Held => "held",
            TuneEventKind::Reopened => "reopened",
            TuneEventKind::Tightened => "tightened",
            TuneEventKind::Yielded => "yielded",
            TuneEventKind::LetGo => "let_go",
            TuneEventKind::Lifted => "lifted",
            TuneEventKind::Refused => "refused",
            TuneEventKind::Gone => "gone",
            TuneEventKind::Advised => "advised",
            TuneEventKind::Switched => "switched",
            TuneEventKind::Adjusted => "adjusted",
            TuneEventKind::NotLimited => "not_limited",
        }
    }

    /// Whether a limit begins to have an effect.
    pub fn reduces(self) -> bool {
        matches!(self, TuneEventKind::Held | TuneEventKind::Tightened | TuneEventKind::Yielded)
    }

    /// The kind in words, for a line that users read.
    pub fn words(self) -> &'static str {
        match self {
            TuneEventKind::Taken => "limited",
            TuneEventKind::Held => "held",
            TuneEventKind::Reopened => "growing again",
            TuneEventKind::Tightened => "reduced",
            TuneEventKind::Yielded => "yielding",
            TuneEventKind::LetGo => "released",
            TuneEventKind::Lifted => "lifted",
            TuneEventKind::Refused => "cannot be limited",
            TuneEventKind::Gone => "closed",
            TuneEventKind::Advised => "advice",
            TuneEventKind::Switched => "switched",
            TuneEventKind::Adjusted => "adjusted",
            TuneEventKind::NotLimited => "not limited",
        }
    }
}

#[derive(Serialize)]
struct JsonLine<'a> {
    t_s: f64,
    event: &'static str,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    dry_run: bool,
    why: &'a str,
    #[serde(flatten)]
    connection_owner: &'a ConnectionOwner,
    #[serde(flatten)]
    change: ChangeRecord,
    goodput_bps: Option<f64>,
    rtt_s: Option<f64>,
    rtt_min_s: Option<f64>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum ChangeRecord {
    Window {
        from_bytes: Option<u64>,
        to_bytes: Option<u64>,
        clamp_bytes: Option<u64>,
        advertised_bytes: Option<u64>,
    },
    Pace {
        pace_from_bps: Option<u64>,
        pace_to_bps: Option<u64>,
        pace_kernel_bps: Option<u64>,
    },
    Congestion {
        congestion_to: String,
    },
}

impl From<AppliedChange> for ChangeRecord {
    fn from(change: AppliedChange) -> ChangeRecord {
        let bytes = |b: Option<Bytes>| b.map(Bytes::get);
        let bits = |r: Option<Rate>| r.map(Rate::bits_per_second);
        match change {
            AppliedChange::Window { from, to, clamp, advertised } => ChangeRecord::Window {
                from_bytes: bytes(from),
                to_bytes: bytes(to),
                clamp_bytes: bytes(clamp),
                advertised_bytes: bytes(advertised),
            },
            AppliedChange::Pace { from, to, kernel } => ChangeRecord::Pace {
                pace_from_bps: bits(from),
                pace_to_bps: bits(to),
                pace_kernel_bps: bits(kernel),
            },
            AppliedChange::Congestion { to } => {
                ChangeRecord::Congestion { congestion_to: to.to_string() }
            }
        }
    }
}

impl TuneEvent {
    /// The event as a line of JSON, without a line break. An event of a dry run has `"dry_run": true`.
    pub fn json(&self, dry_run: bool) -> String {
        // Both are zero until the first measurement.
        let has_rtt = self.rtt.0 > Duration::ZERO;
        let line = JsonLine {
            t_s: self.wall_s,
            event: self.kind.name(),
            dry_run,
            why: &self.why,
            connection_owner: &self.connection_owner,
            change: self.change.into(),
            goodput_bps: (has_rtt || self.rate > Rate::ZERO).then(|| self.rate.as_f64()),
            rtt_s: has_rtt.then(|| self.rtt.0.as_secs_f64()),
            rtt_min_s: self.rtt.1.map(Duration::as_secs_f64),
        };
        // It has only numbers and strings, so this cannot fail.
        serde_json::to_string(&line).unwrap_or_default()
    }

    /// The event of a dry run in the conditional: the action that a real run would take.
    pub fn conditional(&self) -> String {
        let (would, now) = match self.change {
            AppliedChange::Window { from, to, advertised, .. } => {
                let now = advertised.map_or(String::new(), |now| format!(" (advertised {now})"));
                (self.would_limit(from, to), now)
            }
            AppliedChange::Pace { from, to, .. } if from != to => {
                let would = to
                    .map_or("would not pace it".to_owned(), |to| format!("would pace it at {to}"));
                (Some(would), String::new())
            }
            AppliedChange::Congestion { to } if self.kind == TuneEventKind::Switched => {
                (Some(format!("would switch to {to}")), String::new())
            }
            AppliedChange::Pace { .. } | AppliedChange::Congestion { .. } => (None, String::new()),
        };
        let Some(would) = would else { return self.to_string() };
        format!("{}: {would}{now}: {}{}", self.connection_owner, self.why, self.rule())
    }

    /// The action on a window that a real run would take; `None` if it would take none.
    fn would_limit(&self, from: Option<Bytes>, to: Option<Bytes>) -> Option<String> {
        let before = from.map_or(String::new(), |from| format!(" from {from}"));
        Some(match (self.kind, to) {
            (TuneEventKind::Taken, Some(to)) => format!("would limit its window to {to}"),
            (TuneEventKind::Held, Some(to)) => format!("would hold its window at {to}"),
            (TuneEventKind::Tightened, Some(to)) => {
                format!("would reduce its window{before} to {to}")
            }
            (TuneEventKind::Yielded, Some(to)) => format!("would yield, with a window of {to}"),
            (TuneEventKind::Reopened, Some(_)) => "would let its window grow again".to_owned(),
            (TuneEventKind::Adjusted, to) => {
                format!("would change its limit{before} to {}", limit(to))
            }
            _ => return None,
        })
    }

    /// The rule that decides about the connection, in brackets.
    fn rule(&self) -> String {
        self.connection_owner.rule.map_or(String::new(), |rule| format!(" ({rule})"))
    }
}

impl fmt::Display for TuneEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let (TuneEventKind::Refused, AppliedChange::Congestion { to }) = (self.kind, self.change)
        {
            // Only the switch is refused, not a limit.
            return write!(
                f,
                "{}: not switched to {to}: {}{}",
                self.connection_owner,
                self.why,
                self.rule()
            );
        }
        write!(f, "{}: {}", self.connection_owner, self.kind.words())?;
        let is_shown = |changes: bool, has_limit: bool| match self.kind {
            TuneEventKind::Held => changes || has_limit,
            _ => changes,
        };
        match self.change {
            // The connection has ended, so nothing limits it.
            _ if self.kind == TuneEventKind::Gone => {}
            AppliedChange::Window { from, to, advertised, .. } => {
                // A window yields in many steps, and grows again in many.
                let is_step = matches!(self.kind, TuneEventKind::Yielded | TuneEventKind::Reopened);
                let from = if is_step { to } else { from };
                if is_shown(from != to, to.is_some()) || is_step {
                    write!(f, ", window {}", change(from, to))?;
                }
                if let Some(advertised) = advertised {
                    match to > Some(advertised) {
                        true => write!(f, " (no effect yet: {advertised} is advertised)")?,
                        false => write!(f, " (advertised {advertised})")?,
                    }
                }
            }
            AppliedChange::Pace { from, to, .. } if is_shown(from != to, to.is_some()) => {
                write!(f, ", pacing rate {}", change(from, to))?;
            }
            AppliedChange::Pace { .. } => {}
            AppliedChange::Congestion { to } => write!(f, ", congestion control {to}")?,
        }
        write!(f, ": {}{}", self.why, self.rule())
    }
}

fn limit(limit: Option<impl fmt::Display>) -> String {
    limit.map_or("unlimited".to_owned(), |limit| limit.to_string())
}

/// A change in words; it may be too small to be seen.
fn change(from: Option<impl fmt::Display>, to: Option<impl fmt::Display>) -> String {
    let (from, to) = (limit(from), limit(to));
    if from == to { to } else { format!("{from} -> {to}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::MatchedRule;

    fn event(change: AppliedChange) -> TuneEvent {
        TuneEvent {
            wall_s: 1.5,
            connection_owner: ConnectionOwner::example("rsync", 873, 9),
            kind: TuneEventKind::Held,
            why: "its queue is gone".to_owned(),
            change,
            rate: Rate::from_mbit_per_second(95),
            rtt: (Duration::from_millis(41), Some(Duration::from_millis(40))),
        }
    }

    #[test]
    fn formats_md_lists_every_event_name_with_its_words() {
        let page = include_str!("../../../docs/formats.md");
        for kind in TuneEventKind::ALL {
            let entry = format!("`{}` ({})", kind.name(), kind.words());
            assert!(page.contains(&entry), "{entry}");
        }
    }

    #[test]
    fn text_and_json_report_the_pacing_rate() {
        let to = Some(Rate::from_mbit_per_second(94));
        let event = event(AppliedChange::Pace { from: None, to, kernel: to });
        let words =
            "rsync[7] 192.0.2.2:873: held, pacing rate unlimited -> 94 Mbit/s: its queue is gone";
        assert_eq!(event.to_string(), words);
        let json: serde_json::Value = serde_json::from_str(&event.json(false)).unwrap();
        assert_eq!(json["pace_from_bps"], serde_json::Value::Null);
        assert_eq!(json["pace_kernel_bps"], 94_000_000);
        assert_eq!(json["event"], "held");
        assert!(json.get("dry_run").is_none());
        let rehearsed: serde_json::Value = serde_json::from_str(&event.json(true)).unwrap();
        assert_eq!(rehearsed["dry_run"], true);
    }

    #[test]
    fn a_change_has_one_value_if_it_is_too_small_to_be_seen_or_one_of_many_steps() {
        let [from, to] = [94_000_000, 94_000_100].map(|r| Some(Rate::from_bits_per_second(r)));
        let pace = event(AppliedChange::Pace { from, to, kernel: to }).to_string();
        assert_eq!(pace, "rsync[7] 192.0.2.2:873: held, pacing rate 94 Mbit/s: its queue is gone");
        let [from, to] = [90_000, 9_000].map(|bytes| Some(Bytes::new(bytes)));
        let window = event(AppliedChange::Window { from, to, clamp: None, advertised: None });
        let yielding = TuneEvent { kind: TuneEventKind::Yielded, ..window }.to_string();
        assert_eq!(yielding, "rsync[7] 192.0.2.2:873: yielding, window 9 kB: its queue is gone");
    }

    #[test]
    fn the_closed_event_of_a_paced_upload_names_no_window() {
        let from = Some(Rate::from_mbit_per_second(94));
        let change = AppliedChange::Pace { from, to: None, kernel: None };
        let closed = TuneEvent { kind: TuneEventKind::Gone, ..event(change) };
        assert_eq!(closed.to_string(), "rsync[7] 192.0.2.2:873: closed: its queue is gone");
        let json: serde_json::Value = serde_json::from_str(&closed.json(false)).unwrap();
        assert_eq!(json["pace_from_bps"], 94_000_000);
        assert!(json.get("from_bytes").is_none() && json.get("advertised_bytes").is_none());
    }

    #[test]
    fn events_name_the_congestion_control() {
        let event = event(AppliedChange::Congestion { to: "bbr".parse().unwrap() });
        let said = event.to_string();
        assert!(said.contains("held, congestion control bbr: its queue"), "{said}");
        let json: serde_json::Value = serde_json::from_str(&event.json(false)).unwrap();
        assert_eq!(json["congestion_to"], "bbr");
        assert!(json.get("to_bytes").is_none() && json.get("pace_to_bps").is_none());
    }

    #[test]
    fn a_dry_run_reports_window_actions_in_the_conditional() {
        let window = |kind, to| {
            let advertised = Some(Bytes::new(2_000_000));
            let change = AppliedChange::Window { from: None, to, clamp: None, advertised };
            TuneEvent { kind, why: "why".to_owned(), ..event(change) }.conditional()
        };
        let to = Some(Bytes::new(500_000));
        for (kind, to, would) in [
            (TuneEventKind::Taken, to, "would limit its window to 500 kB"),
            (TuneEventKind::Tightened, to, "would reduce its window to 500 kB"),
            (TuneEventKind::Held, to, "would hold its window at 500 kB"),
            (TuneEventKind::Yielded, to, "would yield, with a window of 500 kB"),
            (TuneEventKind::Reopened, to, "would let its window grow again"),
        ] {
            let words = format!("rsync[7] 192.0.2.2:873: {would} (advertised 2 MB): why");
            assert_eq!(window(kind, to), words);
        }
        assert!(window(TuneEventKind::Gone, None).contains(": closed: why"));
        let from = Some(Bytes::new(900_000));
        let change = AppliedChange::Window { from, to, clamp: None, advertised: None };
        let reduced = TuneEvent { kind: TuneEventKind::Tightened, ..event(change) }.conditional();
        assert!(reduced.contains("would reduce its window from 900 kB to 500 kB:"), "{reduced}");
    }

    #[test]
    fn a_dry_run_reports_pacing_and_congestion_control_in_the_conditional() {
        let to = Some(Rate::from_mbit_per_second(94));
        let pace = |from, to| event(AppliedChange::Pace { from, to, kernel: None }).conditional();
        let start = "rsync[7] 192.0.2.2:873: would";
        assert_eq!(pace(None, to), format!("{start} pace it at 94 Mbit/s: its queue is gone"));
        assert_eq!(pace(to, None), format!("{start} not pace it: its queue is gone"));
        let change = AppliedChange::Congestion { to: "bbr".parse().unwrap() };
        let switched = TuneEvent { kind: TuneEventKind::Switched, ..event(change) };
        assert_eq!(switched.conditional(), format!("{start} switch to bbr: its queue is gone"));
    }

    #[test]
    fn text_and_json_name_the_matched_rule() {
        let to = Some(Rate::from_mbit_per_second(94));
        let mut event = event(AppliedChange::Pace { from: None, to, kernel: to });
        let json = |event: &TuneEvent| -> serde_json::Value {
            serde_json::from_str(&event.json(false)).unwrap()
        };
        assert!(json(&event).get("rule").is_none());
        let goal = Some(crate::Goal::Throughput);
        event.connection_owner.rule = Some(MatchedRule { number: 1, line: 2, goal });
        let end = ": its queue is gone (rule 1, line 2: throughput)";
        assert!(event.to_string().ends_with(end), "{event}");
        assert!(event.conditional().ends_with(end), "{}", event.conditional());
        let rule = serde_json::json!({ "number": 1, "line": 2, "goal": "throughput" });
        assert_eq!(json(&event)["rule"], rule);
    }

    #[test]
    fn unmeasured_values_are_null_rather_than_zero() {
        let change = AppliedChange::Congestion { to: "bbr".parse().unwrap() };
        let unknown = TuneEvent { rate: Rate::ZERO, rtt: (Duration::ZERO, None), ..event(change) };
        let stalled = TuneEvent { rate: Rate::ZERO, ..event(change) };
        let [unknown, stalled]: [serde_json::Value; 2] =
            [unknown, stalled].map(|event| serde_json::from_str(&event.json(false)).unwrap());
        assert!(unknown["goodput_bps"].is_null() && unknown["rtt_s"].is_null(), "{unknown}");
        assert_eq!(
            (stalled["goodput_bps"].as_f64(), stalled["rtt_s"].as_f64()),
            (Some(0.0), Some(0.041))
        );
    }

    #[test]
    fn window_events_include_the_advertised_window() {
        let (from, to) = (Some(Bytes::new(900_000)), Some(Bytes::new(500_000)));
        let advertised = Some(Bytes::new(500_224));
        let event = event(AppliedChange::Window { from, to, clamp: to, advertised });
        let said = event.to_string();
        assert!(said.contains("window 900 kB -> 500 kB (advertised 500.2 kB)"), "{said}");
        // A hold at the current limit states that limit.
        let change = AppliedChange::Window { from: to, to, clamp: to, advertised };
        let held = TuneEvent { change, ..event.clone() }.to_string();
        assert!(held.contains(": held, window 500 kB (advertised 500.2 kB): "), "{held}");
        let json: serde_json::Value = serde_json::from_str(&event.json(false)).unwrap();
        assert_eq!(json["advertised_bytes"], 500_224);
    }
}
