//! The steady state that a formula describes.

use sweetspot_scenario::AppliedFormula;
use sweetspot_units::{Bytes, Duration, Rate};

use crate::path::Path;
use crate::path::sawtooth::Sawtooth;

/// The steady state of one transfer, in bytes on the wire.
#[derive(Debug, Clone, Copy)]
pub(super) struct SteadyFlow {
    pub rate: Rate,
    pub window: Bytes,
    pub rtt_mean: Duration,
    pub rtt_p99: Duration,
    pub loss: f64,
}

/// The transfers and their effect on the link.
#[derive(Debug)]
pub(super) struct Steady {
    pub flows: Vec<SteadyFlow>,
    /// The remaining rate of the cross traffic.
    pub cross: Rate,
    /// The mean and the largest backlog.
    pub backlog: (Bytes, Bytes),
    pub formulas: Vec<AppliedFormula>,
    pub assumptions: Vec<String>,
}

pub(super) fn formula(what: &str, rule: &str, numbers: String, source: &str) -> AppliedFormula {
    AppliedFormula {
        what: what.to_owned(),
        rule: rule.to_owned(),
        numbers,
        source: source.to_owned(),
    }
}

pub(super) const SOBAS: &str = "Jain, Prasad, Dovrolis, The TCP Bandwidth-Delay Product revisited";

// SOBAS appendix: a round with window w sends w packets and lasts max(T_m, w/C).
/// Mean RTT over the packets of a sawtooth. Rounds with larger windows have more weight than in the mean over
/// rounds.
pub(super) fn mean_packet_rtt(path: &Path, tooth: &Sawtooth, packet: Bytes) -> Duration {
    // The mean backlog over time, multiplied by the time, equals its sum over packets multiplied by a packet's
    // service time.
    let sent = packet.as_f64() * tooth.packets.get() * 8.0 / path.capacity().as_f64();
    let share = tooth.period.as_secs_f64() / sent;
    path.minimum_rtt() + (tooth.mean_backlog / path.capacity()).scaled(share)
}

/// The 99th percentile of the RTTs of a sawtooth's packets. Windows grow linearly from W/2 to W, so the share of
/// packets sent up to window w is (w^2 - W^2/4) / (3/4 W^2).
pub(super) fn late_packet_rtt(path: &Path, tooth: &Sawtooth, packet: Bytes) -> Duration {
    let window = packet.scaled(tooth.peak.get() * libm::sqrt(0.25 + 0.75 * 0.99));
    path.minimum_rtt().max(window / path.capacity())
}
