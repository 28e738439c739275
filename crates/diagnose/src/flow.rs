use std::net::SocketAddr;

use serde::Serialize;
use sweetspot_units::Duration;

use crate::{Evidence, Limits, Verdict};

/// What is said of a flow: the data that one end of a connection sent.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Flow {
    /// Who sent the data.
    pub source: SocketAddr,
    /// Who received it.
    pub destination: SocketAddr,
    /// What limits it.
    pub verdict: Verdict,
    /// Each class's share of the time.
    pub limits: Limits,
    /// Shortest round trip.
    pub rtt_min_s: Option<f64>,
    /// Median round trip; of a live connection, that of the smoothed ones while data went.
    pub rtt_median_s: Option<f64>,
    /// Payload per second while it lasted.
    pub goodput_bps: f64,
    /// Payload.
    pub bytes: u64,
    /// Segments sent more than once.
    pub retransmitted_segments: u64,
    /// What more it would carry without the limit.
    pub expected_gain_bps: f64,
    /// What to do about it.
    pub fix: String,
}

impl Flow {
    /// What is said of the data from `source` to `destination`.
    pub fn new(
        source: SocketAddr,
        destination: SocketAddr,
        limits: Limits,
        evidence: &Evidence,
    ) -> Flow {
        let verdict = Verdict::new(&limits, evidence);
        Flow {
            source,
            destination,
            limits,
            rtt_min_s: evidence.rtt_min.map(Duration::as_secs_f64),
            rtt_median_s: evidence.rtt.map(Duration::as_secs_f64),
            goodput_bps: evidence.goodput.as_f64(),
            bytes: evidence.bytes.get(),
            retransmitted_segments: evidence.resent.unwrap_or(0),
            expected_gain_bps: verdict.gain.as_f64(),
            fix: verdict.fix.clone(),
            verdict,
        }
    }
}
