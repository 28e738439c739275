//! The certificate at the end of an emulation.

mod text;

use serde::Serialize;
use sweetspot_path::{DirectionSpec, PathSpec};
use sweetspot_units::{Bytes, Duration, Rate, Volume};

use crate::counters::DirectionCounters;
use crate::packet_loop::PacketLoopReport;
use crate::path_direction::narrow;
use crate::serial::{bits_per_second, bytes, maybe_bits_per_second, maybe_seconds, seconds, shown};
use crate::verdict::MIN_BACKLOGGED_TIME;
use crate::{CertificateVerdict, Lateness};

/// The accuracy of an emulation. Serialised, times are in seconds, rates in bit/s and sizes in bytes.
#[derive(Debug, Clone, Serialize)]
pub struct Certificate {
    /// Whether the emulation can be trusted.
    pub verdict: CertificateVerdict,
    /// The path in the notation of [`PathSpec`], each direction on its own; several hops are separated by `|`.
    pub path: String,
    /// How long packets were emulated.
    #[serde(rename = "duration_s", serialize_with = "seconds")]
    pub duration: Duration,
    /// Whether the loop ran with real-time priority.
    pub real_time_priority: bool,
    /// From near to far.
    pub up: DirectionCertificate,
    /// From far to near.
    pub down: DirectionCertificate,
}

/// One direction of a [`Certificate`]. Packets and bytes are counted as IP packets.
#[derive(Debug, Clone, Serialize)]
pub struct DirectionCertificate {
    /// Packets that arrived.
    pub packets_in: u64,
    /// Bytes that arrived.
    #[serde(serialize_with = "bytes")]
    pub bytes_in: Bytes,
    /// Packets released.
    pub packets_out: u64,
    /// Bytes released.
    #[serde(serialize_with = "bytes")]
    pub bytes_out: Bytes,
    /// Packets still on the path at the end.
    pub packets_held: u64,
    /// Packets dropped by the full buffer.
    pub dropped_by_buffer: u64,
    /// Packets lost at random, as configured.
    pub dropped_at_random: u64,
    /// Packets dropped by the policer.
    pub dropped_by_policer: u64,
    /// Packets that the machine lost. The certificate of an emulation with such losses is not trusted.
    pub lost_by_machine: MachineLosses,
    /// The bottleneck's configured rate.
    #[serde(rename = "asked_bps", serialize_with = "bits_per_second")]
    pub configured: Rate,
    /// The rate of releases while the bottleneck was backlogged; `None` if that was less than half a second.
    #[serde(rename = "achieved_bps", serialize_with = "maybe_bits_per_second")]
    pub achieved: Option<Rate>,
    /// The configured rate during that time, on average. A trace or a change makes it differ from `configured`.
    #[serde(rename = "due_bps", serialize_with = "maybe_bits_per_second")]
    pub configured_mean: Option<Rate>,
    /// Time in which the bottleneck was backlogged.
    #[serde(rename = "backlogged_s", serialize_with = "seconds")]
    pub backlogged: Duration,
    /// The configured buffer.
    #[serde(serialize_with = "shown")]
    pub buffer: Volume,
    /// The same for packets of the path's MTU.
    #[serde(serialize_with = "bytes")]
    pub buffer_bytes: Bytes,
    /// The mean backlog over the whole duration, from samples every 10 ms.
    #[serde(rename = "queue_mean_bytes", serialize_with = "bytes")]
    pub queue_mean: Bytes,
    /// The maximum backlog.
    #[serde(rename = "queue_max_bytes", serialize_with = "bytes")]
    pub queue_max: Bytes,
    /// Delay of releases after their due time.
    pub lateness: LatenessCertificate,
    /// Arrivals processed after a decision that should have included them. They were treated as if they had arrived at the time
    /// of that decision.
    pub stale_stamps: u64,
    /// The maximum time by which such an arrival was late.
    #[serde(rename = "stalest_s", serialize_with = "seconds")]
    pub stalest: Duration,
}

/// Packets lost by the machine, not by the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct MachineLosses {
    /// Packets that found the receive ring full.
    pub ring: u64,
    /// Packets that the kernel dropped between a side and this process.
    pub link: u64,
    /// Packets that the kernel rejected when they were due.
    pub release: u64,
    /// Packets longer than the MTU.
    pub oversized: u64,
}

impl MachineLosses {
    /// The sum of all losses.
    pub fn total(&self) -> u64 {
        self.ring + self.link + self.release + self.oversized
    }
}

/// Delay of releases: the time from when a packet was due until the kernel accepted it. The quantiles are `None` if nothing was
/// released.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LatenessCertificate {
    /// The median, rounded up by at most a sixteenth.
    #[serde(rename = "p50_s", serialize_with = "maybe_seconds")]
    pub p50: Option<Duration>,
    /// The 99th percentile, rounded up by at most a sixteenth.
    #[serde(rename = "p99_s", serialize_with = "maybe_seconds")]
    pub p99: Option<Duration>,
    /// The maximum.
    #[serde(rename = "max_s", serialize_with = "maybe_seconds")]
    pub max: Option<Duration>,
    /// The histogram's buckets.
    pub buckets: Vec<LatenessBucket>,
}

/// One bucket of the histogram.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct LatenessBucket {
    /// The upper end of the bucket; `None` for the last one.
    #[serde(rename = "up_to_s", serialize_with = "maybe_seconds")]
    pub up_to: Option<Duration>,
    /// The number of releases in the bucket.
    pub packets: u64,
}

/// Upper ends of the histogram's buckets, microseconds.
const BORDERS_US: [u64; 9] = [10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000];

impl Certificate {
    pub(crate) fn new(hops: &[PathSpec], report: &PacketLoopReport) -> Certificate {
        let up: Vec<DirectionSpec> = hops.iter().map(|hop| hop.up).collect();
        let down: Vec<DirectionSpec> = hops.iter().map(|hop| hop.down).collect();
        let path: Vec<String> = hops.iter().map(PathSpec::to_string).collect();
        Certificate {
            verdict: CertificateVerdict::of(hops, report),
            path: path.join(" | "),
            duration: report.ran,
            real_time_priority: report.real_time,
            up: DirectionCertificate::new((hops, &up), &report.up),
            down: DirectionCertificate::new((hops, &down), &report.down),
        }
    }

    /// The 99th percentile of the lateness, in the worse direction; zero if nothing was released.
    pub fn p99_lateness(&self) -> Duration {
        self.up.lateness.p99.max(self.down.lateness.p99).unwrap_or(Duration::ZERO)
    }
}

impl DirectionCertificate {
    fn new(
        (hops, specs): (&[PathSpec], &[DirectionSpec]),
        counters: &DirectionCounters,
    ) -> DirectionCertificate {
        let hop = narrow(specs);
        let spec = &specs[hop];
        DirectionCertificate {
            packets_in: counters.packets_in,
            bytes_in: counters.bytes_in,
            packets_out: counters.packets_out,
            bytes_out: counters.bytes_out,
            packets_held: counters.held,
            dropped_by_buffer: counters.buffer_drops,
            dropped_at_random: counters.random_losses,
            dropped_by_policer: counters.policer_drops,
            lost_by_machine: MachineLosses {
                ring: counters.ring_losses,
                link: counters.cable_losses,
                release: counters.send_failures,
                oversized: counters.oversized,
            },
            configured: spec.rate,
            achieved: (counters.backlogged_due >= MIN_BACKLOGGED_TIME)
                .then(|| counters.backlogged_bytes / counters.backlogged_time),
            configured_mean: (counters.backlogged_due >= MIN_BACKLOGGED_TIME)
                .then(|| counters.backlogged_bytes / counters.backlogged_due),
            backlogged: counters.backlogged_time,
            buffer: spec.buffer,
            buffer_bytes: spec.buffer.in_bytes(hops[hop].mtu),
            queue_mean: Bytes::new(counters.backlog_sum.get() / counters.backlog_samples.max(1)),
            queue_max: counters.backlog_max,
            lateness: LatenessCertificate::new(&counters.lateness),
            stale_stamps: counters.stale_stamps,
            stalest: counters.stalest,
        }
    }
}

impl LatenessCertificate {
    fn new(lateness: &Lateness) -> LatenessCertificate {
        let mut before = 0;
        let mut bar = |up_to: Option<Duration>, until: u64| {
            let packets = until - before;
            before = until;
            LatenessBucket { up_to, packets }
        };
        let mut buckets: Vec<_> = BORDERS_US
            .map(Duration::from_micros)
            .into_iter()
            .map(|border| bar(Some(border), lateness.at_most(border)))
            .collect();
        buckets.push(bar(None, lateness.total()));
        let known = |value: Duration| (lateness.total() > 0).then_some(value);
        LatenessCertificate {
            p50: known(lateness.quantile(0.5)),
            p99: known(lateness.quantile(0.99)),
            max: known(lateness.max()),
            buckets,
        }
    }
}
