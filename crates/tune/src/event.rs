use std::fmt;
use std::net::SocketAddr;

use serde::Serialize;
use sweetspot_units::{Bytes, Duration, Rate};

/// What was done to a connection, why, and what the kernel made of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// Since the epoch, in seconds.
    pub wall_s: f64,
    /// Whose connection.
    pub who: ConnectionOwner,
    /// What.
    pub kind: Kind,
    /// Why, in words.
    pub why: String,
    /// From what to what, and what the kernel then did.
    pub change: Change,
    /// How fast the connection's path group received, or the connection sent.
    pub rate: Rate,
    /// The round trip, and the least one.
    pub rtt: (Duration, Option<Duration>),
}

/// What was changed; `None` is no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// The limit of a download's window.
    Window {
        /// Before.
        from: Option<Bytes>,
        /// Since.
        to: Option<Bytes>,
        /// The clamp that the kernel then had; `None` where nothing was asked of it.
        clamp: Option<Bytes>,
        /// The window advertised at that time, where the kernel tells.
        advertised: Option<Bytes>,
    },
    /// The limit of an upload's pace.
    Pace {
        /// Before.
        from: Option<Rate>,
        /// Since.
        to: Option<Rate>,
        /// The limit that the kernel then had.
        kernel: Option<Rate>,
    },
}

/// A connection and who holds it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ConnectionOwner {
    /// The process.
    pub pid: u32,
    /// What it is called.
    pub program: String,
    /// This end.
    pub local: SocketAddr,
    /// The other end.
    pub remote: SocketAddr,
    /// The socket.
    pub cookie: u64,
}

/// The kinds of [`Event`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A bulk transfer was found, and its window is limited.
    Taken,
    /// It is held at the sweet spot.
    Held,
    /// An upload's pace grows again.
    Reopened,
    /// Its window or pace was cut.
    Tightened,
    /// Left alone, because holding it does not help.
    LetGo,
    /// Its limits were lifted because tuning ends.
    Lifted,
    /// It could not be limited, or its kernel does not keep to the limit.
    Refused,
    /// It is over.
    Gone,
    /// An upload would gain by this.
    Advised,
}

impl Kind {
    /// As it is written in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Taken => "taken",
            Kind::Held => "held",
            Kind::Reopened => "reopened",
            Kind::Tightened => "tightened",
            Kind::LetGo => "let_go",
            Kind::Lifted => "lifted",
            Kind::Refused => "refused",
            Kind::Gone => "gone",
            Kind::Advised => "advised",
        }
    }
}

/// The event as a line of JSON.
#[derive(Serialize)]
struct Line<'a> {
    t_s: f64,
    event: &'static str,
    why: &'a str,
    #[serde(flatten)]
    who: &'a ConnectionOwner,
    #[serde(flatten)]
    change: Changed,
    goodput_bps: f64,
    rtt_s: f64,
    rtt_min_s: Option<f64>,
}

/// The change as it is written in JSON.
#[derive(Serialize)]
#[serde(untagged)]
enum Changed {
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
}

impl From<Change> for Changed {
    fn from(change: Change) -> Changed {
        let bytes = |b: Option<Bytes>| b.map(Bytes::get);
        let bits = |r: Option<Rate>| r.map(Rate::bits_per_second);
        match change {
            Change::Window { from, to, clamp, advertised } => Changed::Window {
                from_bytes: bytes(from),
                to_bytes: bytes(to),
                clamp_bytes: bytes(clamp),
                advertised_bytes: bytes(advertised),
            },
            Change::Pace { from, to, kernel } => Changed::Pace {
                pace_from_bps: bits(from),
                pace_to_bps: bits(to),
                pace_kernel_bps: bits(kernel),
            },
        }
    }
}

impl Event {
    /// A line of JSON, without its end.
    pub fn json(&self) -> String {
        let line = Line {
            t_s: self.wall_s,
            event: self.kind.name(),
            why: &self.why,
            who: &self.who,
            change: self.change.into(),
            goodput_bps: self.rate.as_f64(),
            rtt_s: self.rtt.0.as_secs_f64(),
            rtt_min_s: self.rtt.1.map(Duration::as_secs_f64),
        };
        // Numbers and strings only: this cannot fail.
        serde_json::to_string(&line).unwrap_or_default()
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ConnectionOwner { pid, program, remote, .. } = &self.who;
        write!(f, "{program}[{pid}] {remote}: {}", self.kind.name().replace('_', " "))?;
        match self.change {
            Change::Window { from, to, advertised, .. } => {
                if from != to {
                    write!(f, ", window {} -> {}", limit(from), limit(to))?;
                }
                if let Some(advertised) = advertised {
                    write!(f, " (advertised {advertised})")?;
                }
            }
            Change::Pace { from, to, .. } if from != to => {
                write!(f, ", pace {} -> {}", limit(from), limit(to))?;
            }
            Change::Pace { .. } => {}
        }
        write!(f, ": {}", self.why)
    }
}

fn limit(limit: Option<impl fmt::Display>) -> String {
    limit.map_or("no limit".to_owned(), |limit| limit.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(change: Change) -> Event {
        Event {
            wall_s: 1.5,
            who: ConnectionOwner {
                pid: 7,
                program: "rsync".to_owned(),
                local: "192.0.2.1:50000".parse().unwrap(),
                remote: "192.0.2.2:873".parse().unwrap(),
                cookie: 9,
            },
            kind: Kind::Held,
            why: "its queue is gone".to_owned(),
            change,
            rate: Rate::from_mbit_per_second(95),
            rtt: (Duration::from_millis(41), Some(Duration::from_millis(40))),
        }
    }

    #[test]
    fn a_pace_is_told_in_words_and_in_json() {
        let to = Some(Rate::from_mbit_per_second(94));
        let event = event(Change::Pace { from: None, to, kernel: to });
        let words = "rsync[7] 192.0.2.2:873: held, pace no limit -> 94 Mbit/s: its queue is gone";
        assert_eq!(event.to_string(), words);
        let json: serde_json::Value = serde_json::from_str(&event.json()).unwrap();
        assert_eq!(json["pace_from_bps"], serde_json::Value::Null);
        assert_eq!(json["pace_kernel_bps"], 94_000_000);
        assert_eq!(json["event"], "held");
    }

    #[test]
    fn a_window_is_told_with_what_was_advertised() {
        let (from, to) = (Some(Bytes::new(900_000)), Some(Bytes::new(500_000)));
        let advertised = Some(Bytes::new(500_224));
        let event = event(Change::Window { from, to, clamp: to, advertised });
        let said = event.to_string();
        assert!(said.contains("window 900 kB -> 500 kB (advertised 500.2 kB)"), "{said}");
        let json: serde_json::Value = serde_json::from_str(&event.json()).unwrap();
        assert_eq!(json["advertised_bytes"], 500_224);
    }
}
