use std::net::SocketAddr;

use serde::Serialize;
use sweetspot_units::{Duration, Rate, Time};

use crate::capture::Classifier;
use crate::joined::Joined;
use crate::limits::rounded;
use crate::path::{NoReplay, PathEstimate, Replay, Simulation};
use crate::{Class, Evidence, Facts, LimitVerdict, Limits, SharedPath, in_rate};

/// The diagnosis of a flow: the data that one end of a connection sent.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Flow {
    /// The sender's address.
    pub source: SocketAddr,
    /// The receiver's address.
    pub destination: SocketAddr,
    /// The limit.
    pub verdict: LimitVerdict,
    /// Each class's share of the time.
    pub limits: Limits,
    /// The parts of the application's share.
    pub application_time: ApplicationTime,
    /// Shortest round trip.
    pub rtt_min_s: Option<f64>,
    /// Median RTT; for a live connection, of the smoothed RTT while data were in flight.
    pub rtt_median_s: Option<f64>,
    /// Payload per second while it lasted, or if [one reading](Evidence::is_one_reading) shows no more, while data was in flight.
    pub goodput_bps: f64,
    /// Whether it is the latter.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub goodput_is_while_sending: bool,
    /// Payload.
    pub bytes: u64,
    /// Segments sent more than once.
    pub retransmitted_segments: u64,
    /// Whether they are known: a receiver's kernel does not count them.
    #[serde(skip)]
    pub counts_retransmissions: bool,
    /// The most that is gained without the limit; unknown without the capacity, and where another limit comes first.
    pub expected_gain_bps: Option<f64>,
    /// The fix.
    pub fix: String,
    /// Further remarks.
    pub remarks: Vec<String>,
    /// Times the receiver closed its window.
    pub zero_windows: u64,
    /// The connections that shared its path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shared_path: Option<SharedPath>,
    /// From when to when its rate is the mean, where that is known.
    #[serde(skip)]
    pub span: Option<(Time, Time)>,
    #[serde(skip)]
    pub(crate) evidence: Evidence,
    /// When it was seen in the capture.
    #[serde(skip)]
    pub seen: Option<Seen>,
    /// Figures from a capture; live connections have none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub facts: Option<Facts>,
    /// The path as a capture shows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<PathEstimate>,
    /// How to run the transfer again with its limit and without, or why that cannot be.
    #[serde(skip)]
    pub replay: Option<Result<Replay, NoReplay>>,
    /// Findings from two captures of the connection together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub joined: Option<Joined>,
    /// The transfer as a simulator ran it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub simulated: Option<Simulation>,
}

/// The part of a capture that shows a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// Its first packet.
    pub begun: Time,
    /// Its last packet.
    pub last: Time,
    /// All its packets, copies left out.
    pub packets: u64,
    /// The class of each piece of the sender's time.
    pub(crate) classifier: Classifier,
}

/// Shares of the time in which the sender had nothing to send.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ApplicationTime {
    /// It was its turn.
    pub own: f64,
    /// It was the receiver's turn.
    pub waiting_for_peer: f64,
    /// Nobody had anything to send.
    pub idle: f64,
}

impl Flow {
    /// The rate in words.
    pub fn rate(&self) -> String {
        let rate = in_rate(Rate::from_f64(self.goodput_bps));
        if self.goodput_is_while_sending { format!("{rate} while it was sending") } else { rate }
    }

    /// The diagnosis of the data from `source` to `destination`.
    pub fn new(
        source: SocketAddr,
        destination: SocketAddr,
        limits: Limits,
        evidence: &Evidence,
    ) -> Flow {
        let verdict = LimitVerdict::new(&limits, evidence);
        let share = |class| rounded(limits.share(class));
        Flow {
            source,
            destination,
            limits,
            application_time: ApplicationTime {
                own: share(Class::Application),
                waiting_for_peer: share(Class::WaitingForPeer),
                idle: share(Class::Idle),
            },
            rtt_min_s: evidence.rtt_min.map(Duration::as_secs_f64),
            rtt_median_s: evidence.rtt.map(Duration::as_secs_f64),
            goodput_bps: evidence.goodput.as_f64(),
            goodput_is_while_sending: evidence.is_one_reading,
            bytes: evidence.bytes.get(),
            retransmitted_segments: evidence.retransmitted.unwrap_or(0),
            counts_retransmissions: evidence.retransmitted.is_some(),
            expected_gain_bps: verdict.gain.map(Rate::as_f64),
            fix: verdict.fix.clone(),
            remarks: Vec::new(),
            zero_windows: evidence.zero_windows,
            shared_path: None,
            span: None,
            evidence: *evidence,
            seen: None,
            facts: None,
            path: None,
            replay: None,
            joined: None,
            simulated: None,
            verdict,
        }
    }
}
