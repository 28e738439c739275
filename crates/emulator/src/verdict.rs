//! Decides whether an emulation was accurate.

use serde::Serialize;
use sweetspot_path::{DirectionSpec, PathSpec};
use sweetspot_units::Duration;

use crate::counters::DirectionCounters;
use crate::packet_loop::PacketLoopReport;

/// Half of a typical network card's interrupt moderation (about 200 us). Real hosts do not see more exact timing than this, so
/// less lateness does not matter.
const UNNOTICED_LATENESS: Duration = Duration::from_micros(100);
/// One release in a hundred may be late by this share of the time in which the bottleneck drains its full buffer. Packets
/// released L late leave in a burst, and so do their ACKs. The burst of data that these trigger is L x rate long, and must fit
/// into the buffer easily.
const MAX_SHARE_OF_BUFFER: f64 = 0.1;
/// One release in a hundred may also be late by this share of the propagation RTT, so that the RTT is accurate to a few percent.
const MAX_SHARE_OF_RTT: f64 = 0.05;
/// The achieved rate may differ from the configured one by this share.
const RATE_TOLERANCE: f64 = 0.01;
/// Minimum backlogged time for a verdict on the rate. A shorter time measures the lateness of two packets more than the rate.
pub(crate) const MIN_BACKLOGGED_TIME: Duration = Duration::from_millis(500);

/// Maximum share of arrivals that were seen too late by more than [`UNNOTICED_LATENESS`], so that the queue is accurate.
const MAX_STALE_SHARE: f64 = 1e-3;

/// Whether an emulation is trusted, and the reasons against it. In serialised form, `trust` is null if nothing crossed the path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(into = "VerdictRecord")]
pub struct CertificateVerdict {
    /// Whether there is no reason against the emulation.
    pub trust: bool,
    /// Whether any packet crossed the path; otherwise there is nothing to judge.
    pub carried: bool,
    /// The reasons against the emulation, one line each; empty if it is trusted.
    pub reasons: Vec<String>,
}

#[derive(Serialize)]
struct VerdictRecord {
    trust: Option<bool>,
    carried: bool,
    reasons: Vec<String>,
}

impl From<CertificateVerdict> for VerdictRecord {
    fn from(verdict: CertificateVerdict) -> VerdictRecord {
        let trust = (!verdict.is_empty()).then_some(verdict.trust);
        VerdictRecord { trust, carried: verdict.carried, reasons: verdict.reasons }
    }
}

impl CertificateVerdict {
    /// Whether nothing crossed the path, and nothing failed.
    pub fn is_empty(&self) -> bool {
        self.trust && !self.carried
    }

    pub(crate) fn of(hops: &[PathSpec], report: &PacketLoopReport) -> CertificateVerdict {
        let mut reasons = Vec::new();
        let up = LatenessLimits::of(hops, |hop| &hop.up);
        judge("up", &up, &report.up, &mut reasons);
        let down = LatenessLimits::of(hops, |hop| &hop.down);
        judge("down", &down, &report.down, &mut reasons);
        let carried = report.up.packets_in + report.down.packets_in > 0;
        CertificateVerdict { trust: reasons.is_empty(), carried, reasons }
    }
}

struct LatenessLimits {
    p99: Limit,
    max: Limit,
}

/// A limit on the lateness, and its origin as text.
#[derive(Clone, Copy)]
struct Limit {
    time: Duration,
    origin: &'static str,
}

impl Limit {
    /// This limit, but at least `min`.
    fn at_least(self, min: Duration) -> Limit {
        match self.time < min {
            true => Limit { time: min, origin: "the least that a real host notices" },
            false => self,
        }
    }
}

impl LatenessLimits {
    /// The limits follow from the hop with the buffer that drains fastest, which is the most sensitive one.
    fn of(hops: &[PathSpec], direction: fn(&PathSpec) -> &DirectionSpec) -> LatenessLimits {
        let drain = |hop: &PathSpec| {
            let direction = direction(hop);
            direction.buffer.in_bytes(hop.mtu) / direction.rate
        };
        let drain = hops.iter().map(drain).min().unwrap_or(Duration::ZERO);
        let rtt = hops.iter().fold(Duration::ZERO, |sum, hop| sum + hop.rtt());
        let of_buffer = Limit {
            time: drain.scaled(MAX_SHARE_OF_BUFFER),
            origin: "10 % of the time in which the full buffer drains",
        };
        let of_rtt = Limit { time: rtt.scaled(MAX_SHARE_OF_RTT), origin: "5 % of the RTT" };
        let is_rtt = rtt > Duration::ZERO && of_rtt.time < of_buffer.time;
        let p99 = if is_rtt { of_rtt } else { of_buffer };
        // A single stall longer than this can overflow an empty buffer.
        let max = Limit { time: drain, origin: "the time in which the full buffer drains" };
        LatenessLimits {
            p99: p99.at_least(UNNOTICED_LATENESS),
            max: max.at_least(UNNOTICED_LATENESS * 10),
        }
    }
}

fn judge(
    name: &str,
    limits: &LatenessLimits,
    counters: &DirectionCounters,
    reasons: &mut Vec<String>,
) {
    let mut object = |wrong: bool, reason: String| {
        if wrong {
            reasons.push(format!("{name}: {reason}"));
        }
    };
    let p99 = counters.lateness.quantile(0.99);
    let Limit { time, origin } = limits.p99;
    object(p99 > time, format!("p99 lateness {p99} exceeds {time}, {origin}"));
    let max = counters.lateness.max();
    let Limit { time, origin } = limits.max;
    object(max > time, format!("the latest release, {max}, exceeds {time}, {origin}"));
    for (count, what) in [
        (counters.ring_losses, "overflowed the ring"),
        (counters.cable_losses, "were lost on the way to or from the path"),
        (counters.send_failures, "could not be released"),
        (counters.oversized, "were longer than the MTU"),
    ] {
        object(count > 0, format!("{count} packets {what}"));
    }
    if let Some(error) = rate_error(counters) {
        let percent = 100.0 * error;
        let reason = format!("the rate was off by {percent:+.2} % while backlogged");
        object(error.abs() > RATE_TOLERANCE, reason);
    }
    let (stale, stalest) = (counters.stale_stamps, counters.stalest);
    let many = stale as f64 > MAX_STALE_SHARE * counters.packets_in as f64;
    let (arrivals, were) = if stale == 1 { ("arrival", "was") } else { ("arrivals", "were") };
    let reason = format!("{stale} {arrivals} {were} seen up to {stalest} too late");
    object(many && stalest > UNNOTICED_LATENESS, reason);
    object(!counters.conserved(), "packets in do not equal packets out, dropped and held".into());
}

/// The ratio of the achieved to the configured rate, minus one, while the bottleneck was backlogged.
fn rate_error(counters: &DirectionCounters) -> Option<f64> {
    if counters.backlogged_due < MIN_BACKLOGGED_TIME {
        return None;
    }
    Some(counters.backlogged_due.as_secs_f64() / counters.backlogged_time.as_secs_f64() - 1.0)
}

#[cfg(test)]
mod tests {
    use sweetspot_units::Bytes;

    use super::*;

    /// 125 kB at 100 Mbit/s drain in 10 ms: p99 may be 1 ms, the maximum 10 ms.
    const PATH: &str = "rate=100Mbit/s rtt=100ms buffer=125kB";

    fn verdict(path: &str, up: DirectionCounters) -> CertificateVerdict {
        let report = PacketLoopReport {
            up,
            down: DirectionCounters::default(),
            real_time: true,
            ran: Duration::from_secs(10),
        };
        CertificateVerdict::of(&[path.parse().unwrap()], &report)
    }

    /// Counters of `count` packets, each released `late`.
    fn late(count: u64, late: Duration) -> DirectionCounters {
        let mut counters = DirectionCounters {
            packets_in: count,
            packets_out: count,
            ..DirectionCounters::default()
        };
        (0..count).for_each(|_| counters.lateness.record(late));
        counters
    }

    fn objection(path: &str, up: DirectionCounters) -> String {
        let verdict = verdict(path, up);
        assert!(!verdict.trust && verdict.reasons.len() == 1, "{verdict:?}");
        verdict.reasons[0].clone()
    }

    #[test]
    fn an_idle_run_without_losses_gives_no_verdict() {
        let (empty, one) = (DirectionCounters::default(), late(1, Duration::ZERO));
        let [empty, one] = [empty, one].map(|up| verdict(PATH, up));
        assert!(!empty.carried && one.carried);
        let trust = |verdict| serde_json::to_value(verdict).unwrap()["trust"].as_bool();
        assert_eq!((trust(empty), trust(one)), (None, Some(true)));
        let lost = DirectionCounters { cable_losses: 1, ..DirectionCounters::default() };
        assert_eq!(trust(verdict(PATH, lost)), Some(false));
    }

    #[test]
    fn packets_on_time_are_trusted() {
        assert!(verdict(PATH, late(1000, Duration::from_micros(900))).trust);
    }

    #[test]
    fn lateness_above_a_tenth_of_the_buffers_drain_time_is_not_trusted() {
        let message = objection(PATH, late(1000, Duration::from_micros(1100)));
        assert!(
            message.starts_with("up: p99 lateness 1.1 ms exceeds 1 ms, 10 % of the time"),
            "{message}"
        );
    }

    #[test]
    fn lateness_above_a_twentieth_of_the_rtt_is_not_trusted() {
        // A deep buffer on a short path: 5 % of 10 ms are 0.5 ms.
        let path = "rate=100Mbit/s rtt=10ms buffer=10MB";
        assert!(verdict(path, late(1000, Duration::from_micros(450))).trust);
        let message = objection(path, late(1000, Duration::from_micros(550)));
        assert!(message.ends_with("exceeds 500 us, 5 % of the RTT"), "{message}");
    }

    #[test]
    fn lateness_below_100_us_is_trusted_even_for_tiny_buffers() {
        // 15 kB at 1 Gbit/s drain in 120 us.
        let path = "rate=1Gbit/s rtt=1ms buffer=15kB";
        assert!(verdict(path, late(1000, Duration::from_micros(90))).trust);
        objection(path, late(1000, Duration::from_micros(110)));
    }

    #[test]
    fn a_stall_longer_than_the_buffers_drain_time_is_not_trusted() {
        let mut counters = late(1000, Duration::ZERO);
        counters.lateness.record(Duration::from_millis(11));
        counters.packets_in += 1;
        counters.packets_out += 1;
        let message = objection(PATH, counters);
        assert!(message.contains("the latest release, 11 ms, exceeds 10 ms"), "{message}");
    }

    #[test]
    fn a_single_ring_loss_is_not_trusted() {
        let counters = DirectionCounters { ring_losses: 1, ..late(1000, Duration::ZERO) };
        assert!(objection(PATH, counters).contains("1 packets overflowed the ring"));
    }

    #[test]
    fn too_many_stale_arrival_timestamps_are_not_trusted() {
        let stale = |stale_stamps, micros| DirectionCounters {
            stale_stamps,
            stalest: Duration::from_micros(micros),
            ..late(10_000, Duration::ZERO)
        };
        assert!(verdict(PATH, stale(10, 110)).trust);
        assert!(verdict(PATH, stale(11, 90)).trust);
        assert!(objection(PATH, stale(11, 110)).contains("11 arrivals were seen"));
    }

    #[test]
    fn a_rate_error_above_one_percent_is_not_trusted() {
        let backlogged = |actual_ms| DirectionCounters {
            backlogged_bytes: Bytes::new(12_500_000),
            backlogged_due: Duration::from_millis(1000),
            backlogged_time: Duration::from_millis(actual_ms),
            ..late(1000, Duration::ZERO)
        };
        assert!(verdict(PATH, backlogged(1009)).trust);
        // 1000 / 1012 - 1 = -1.19 %.
        assert!(objection(PATH, backlogged(1012)).contains("off by -1.19 %"));
    }

    #[test]
    fn counters_that_do_not_add_up_are_not_trusted() {
        let counters = DirectionCounters { packets_in: 1001, ..late(1000, Duration::ZERO) };
        assert!(objection(PATH, counters).contains("packets in do not equal packets out"));
    }
}
