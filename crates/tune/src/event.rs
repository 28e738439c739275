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
    pub who: Who,
    /// What.
    pub kind: Kind,
    /// Why, in words.
    pub why: String,
    /// The limit before; `None`: none.
    pub from: Option<Bytes>,
    /// The limit since; `None`: none.
    pub to: Option<Bytes>,
    /// The clamp that the kernel then had; `None` where nothing was asked of it.
    pub clamp: Option<Bytes>,
    /// The window advertised at that time, where the kernel tells.
    pub advertised: Option<Bytes>,
    /// How fast the connection's bundle received.
    pub rate: Rate,
    /// The round trip, and the least one.
    pub rtt: (Duration, Option<Duration>),
}

/// A connection and who holds it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Who {
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
    /// A bulk transfer was found, and its window is opened step by step.
    Taken,
    /// It is held at the sweet spot.
    Held,
    /// Its window grows again.
    Reopened,
    /// Its window was cut.
    Tightened,
    /// It overflowed the bottleneck's buffer.
    Overflowed,
    /// Left alone, because holding it does not help.
    LetGo,
    /// Its limits were lifted because tuning ends.
    Lifted,
    /// It could not be limited.
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
            Kind::Overflowed => "overflowed",
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
    who: &'a Who,
    from_bytes: Option<u64>,
    to_bytes: Option<u64>,
    clamp_bytes: Option<u64>,
    advertised_bytes: Option<u64>,
    goodput_bps: f64,
    rtt_s: f64,
    rtt_min_s: Option<f64>,
}

impl Event {
    /// A line of JSON, without its end.
    pub fn json(&self) -> String {
        let line = Line {
            t_s: self.wall_s,
            event: self.kind.name(),
            why: &self.why,
            who: &self.who,
            from_bytes: self.from.map(Bytes::get),
            to_bytes: self.to.map(Bytes::get),
            clamp_bytes: self.clamp.map(Bytes::get),
            advertised_bytes: self.advertised.map(Bytes::get),
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
        let Who { pid, program, remote, .. } = &self.who;
        write!(f, "{program}[{pid}] {remote}: {}", self.kind.name().replace('_', " "))?;
        let limit = |limit: Option<Bytes>| limit.map_or("no limit".to_owned(), |l| l.to_string());
        if self.from != self.to {
            write!(f, ", window {} -> {}", limit(self.from), limit(self.to))?;
        }
        if let Some(advertised) = self.advertised {
            write!(f, " (advertised {advertised})")?;
        }
        write!(f, ": {}", self.why)
    }
}
