//! Estimates the path from a capture, writes it as a scenario, and prepares simulations of the transfer with and
//! without its limit.

mod error;
mod replay;
mod scenario;
mod simulation;

use serde::Serialize;
use sweetspot_measure::Finding;
use sweetspot_trace::flow::{Stream, Vantage};
use sweetspot_units::{Bytes, Duration, Probability, Rate};

pub use error::{NoReplay, UnknownPath};
pub use replay::Replay;
pub use simulation::{Curve, Simulated, Simulation};

/// Bytes of IPv4 and TCP headers, the additional bytes of IPv6, and the timestamps option (RFC 7323 appendix A).
pub(crate) const HEADERS: u64 = 40;
pub(crate) const IPV6_MORE: u64 = 20;
pub(crate) const TIMESTAMPS: u64 = 12;
/// Minimum number of full segments in timed trains.
const MIN_SEGMENTS: u64 = 100;
/// Rates agree if they are within this factor of the reported one. `MIN_AGREEING_SHARE` is the share of the bytes that must agree.
const AGREEMENT_FACTOR: f64 = 1.25;
const MIN_AGREEING_SHARE: f64 = 0.5;
/// Behind a link that is slower than the sender, at least this share of the bytes waits in a queue: BBR fills one in one RTT of eight
/// (bbr_pacing_gain).
const MIN_QUEUED_SHARE: f64 = 0.1;
/// A loss counts as one at a full queue if the queueing delay before it was at least this share of the longest one.
const AT_FULL: f64 = 0.6;
/// Any burst makes queues shorter than this many segments, so they do not count.
const BURST_SEGMENTS: u64 = 4;
/// A queue of this many segments is not merely an effect of delayed acknowledgements.
const MIN_QUEUE_SEGMENTS: u64 = 8;
/// Rates within this factor belong to one link.
const SAME_LINK_FACTOR: f64 = 1.1;

/// Why a capture does not show the capacity, and how to capture so that it does.
struct NoCapacity {
    why: String,
    next_step: &'static str,
    /// The rate that bursts reached, with headers.
    carries: Option<Rate>,
}

impl NoCapacity {
    fn new(why: impl Into<String>, next_step: &'static str) -> NoCapacity {
        NoCapacity { why: why.into(), next_step, carries: None }
    }
}

const CAPTURE_LONGER: &str = "Capture a transfer of some megabytes, from before it begins.";
const FILL_THE_PATH: &str = "Capture a transfer that fills the path.";
const AT_SENDER: &str = "Capture at the sender, which sees how long data waits.";
const AVOID_CROSS_TRAFFIC: &str = "Other traffic shares the path, or its rate varies: capture a transfer while nothing else uses it.";

/// Properties of the path from one end to the other, as a capture shows them.
///
/// Rates count IP packets. Each finding is `{"value", "low", "high", "how"}` in JSON, or `{"unknown"}` with the reason.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PathEstimate {
    /// The rate of the bottleneck.
    pub capacity_bps: Finding<Rate>,
    /// The RTT without queueing delay.
    pub rtt_s: Finding<Duration>,
    /// The size of the bottleneck's buffer.
    pub buffer_bytes: Finding<Bytes>,
    /// How to capture so that more is known.
    #[serde(skip)]
    pub next_step: &'static str,
    /// A rate that bursts reached, if a pacing sender may have set it.
    #[serde(skip)]
    pub carries: Option<Rate>,
    /// Queueing delays at the bottleneck.
    #[serde(skip)]
    pub waits: Waits,
    /// The share of packets lost for other reasons than a full queue.
    pub loss: Finding<Probability>,
    /// Payload of a full segment.
    pub segment_bytes: u64,
    /// Headers of a full segment.
    pub header_bytes: u64,
}

/// Queueing delays at the bottleneck.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Waits {
    /// The maximum, without the highest 1 %.
    longest: Duration,
    /// The median just before a loss at a full queue, if there was one.
    full: Option<Duration>,
}

impl PathEstimate {
    /// The longest queue that was seen, a lower bound of the buffer.
    pub fn queued(&self) -> Bytes {
        self.capacity_bps.value().map_or(Bytes::ZERO, |capacity| capacity * self.waits.longest)
    }

    /// Sets the capacity to `together`, the payload rate of all connections on the path while they filled it.
    pub(crate) fn share(&mut self, together: Rate) {
        let rate = together.scaled(1.0 / self.payload_share());
        let how = "the rate of all connections between these hosts together, which filled the path, with their headers";
        self.capacity_bps = Finding::known(rate, rate, rate, how);
        self.buffer_bytes = buffer(Some(rate), self.waits, self.packet_bytes());
    }

    /// The size of a full packet.
    fn packet_bytes(&self) -> u64 {
        self.segment_bytes + self.header_bytes
    }

    /// The part of a full packet that is payload.
    fn payload_share(&self) -> f64 {
        self.segment_bytes as f64 / self.packet_bytes().max(1) as f64
    }

    /// The path of `stream`, which delivered `goodput`; `ipv6` decides the size of its headers.
    pub fn new(stream: &Stream, goodput: Rate, ipv6: bool) -> PathEstimate {
        let clock = if stream.counts().timestamps { TIMESTAMPS } else { 0 };
        let header = HEADERS + clock + if ipv6 { IPV6_MORE } else { 0 };
        let seen = PathEvidence::new(stream, header);
        let (capacity, next_step, carries) = match seen.capacity(goodput) {
            Ok(capacity) => (capacity, CAPTURE_LONGER, None),
            Err(NoCapacity { why, next_step, carries }) => {
                (Finding::unknown(why), next_step, carries)
            }
        };
        PathEstimate {
            next_step,
            carries,
            rtt_s: seen.round_trip(),
            buffer_bytes: buffer(capacity.value(), seen.waits, seen.mss + header),
            waits: seen.waits,
            loss: seen.loss(),
            capacity_bps: capacity,
            segment_bytes: seen.mss,
            header_bytes: header,
        }
    }
}

/// Whether most losses of `stream` came while no queue was full.
pub(crate) fn loses_elsewhere(stream: &Stream) -> bool {
    let seen = PathEvidence::new(stream, 0);
    2 * seen.at_full < seen.losses
}

/// The evidence for the findings.
struct PathEvidence<'a> {
    stream: &'a Stream,
    mss: u64,
    header: u64,
    base: Option<Duration>,
    waits: Waits,
    /// Loss events, and the number that occurred at a full queue.
    losses: u64,
    at_full: u64,
}

impl<'a> PathEvidence<'a> {
    fn new(stream: &'a Stream, header: u64) -> PathEvidence<'a> {
        let trips = stream.round_trips();
        let base = trips.min();
        let wait = |trip: Duration| trip.saturating_sub(base.unwrap_or(trip));
        let queue = trips.quantile(0.99).map_or(Duration::ZERO, wait);
        let mss = stream.mss();
        let mut waits: Vec<(Duration, u64)> = stream
            .before_losses()
            .iter()
            .map(|(nanos, n)| (wait(Duration::from_nanos(nanos)), n))
            .filter(|(wait, _)| queue > Duration::ZERO && *wait >= queue.scaled(AT_FULL))
            .collect();
        waits.sort_unstable();
        let at_full = waits.iter().map(|(_, n)| n).sum();
        let mut seen = 0;
        let middle = waits.iter().find(|(_, n)| {
            seen += n;
            2 * seen >= at_full
        });
        PathEvidence {
            stream,
            mss,
            header,
            base,
            waits: Waits { longest: queue, full: middle.map(|(wait, _)| *wait) },
            losses: stream.retransmissions().events,
            at_full,
        }
    }

    /// A payload rate with the headers of full segments added.
    fn wire(&self, rate: Rate) -> Rate {
        rate.scaled((self.mss + self.header) as f64 / self.mss as f64)
    }

    fn capacity(&self, goodput: Rate) -> Result<Finding<Rate>, NoCapacity> {
        let rates = self.stream.train_rates();
        let Some(rate) = self.stream.train_rate() else {
            return Err(NoCapacity::new(
                "no full segments were acknowledged one behind the other",
                CAPTURE_LONGER,
            ));
        };
        if rates.total() < MIN_SEGMENTS * self.mss {
            let why = format!(
                "fewer than {MIN_SEGMENTS} full segments were acknowledged one behind the other"
            );
            return Err(NoCapacity::new(why, CAPTURE_LONGER));
        }
        if rate < goodput.scaled(0.95) {
            let why = "what was acknowledged one behind the other came with pauses";
            return Err(NoCapacity::new(why, FILL_THE_PATH));
        }
        let near = |at: u64| {
            (rate.as_f64() / AGREEMENT_FACTOR..=rate.as_f64() * AGREEMENT_FACTOR)
                .contains(&(at as f64))
        };
        let agreed: u64 = rates.iter().filter(|(at, _)| near(*at)).map(|(_, bytes)| bytes).sum();
        if (agreed as f64) < rates.total() as f64 * MIN_AGREEING_SHARE {
            let why = "acknowledgements of full segments came at rates that do not agree";
            return Err(NoCapacity::new(why, AVOID_CROSS_TRAFFIC));
        }
        // A sender that paces below the path's rate shows its own rate. Without a queue of several segments, only a
        // rate that hardly varies is a link's.
        let quantile = |share| rates.quantile(share).unwrap_or(0) as f64;
        let steady = quantile(0.9) <= quantile(0.25) * SAME_LINK_FACTOR;
        let segment = Bytes::new(self.mss) / rate;
        let queue = self.waits.longest;
        let long = queue >= segment * 2 && (steady || queue >= segment * MIN_QUEUE_SEGMENTS);
        let queued = self.stream.queued_train_rates().iter();
        let queued: u64 = queued.filter(|(at, _)| near(*at)).map(|(_, bytes)| bytes).sum();
        // A delayed acknowledgement waits, too, but at the receiver.
        let spaced_by_queue = match self.stream.round_trips().vantage() {
            Vantage::Sender | Vantage::Unknown => queued as f64 >= agreed as f64 * MIN_QUEUED_SHARE,
            Vantage::Receiver | Vantage::Middle => true,
        };
        let waited = long && spaced_by_queue;
        if !waited && self.stream.round_trips().vantage() == Vantage::Receiver {
            let why = "no data waited on the way, as far as a capture at the receiver shows";
            return Err(NoCapacity::new(why, AT_SENDER));
        }
        if !waited {
            let rate = self.wire(rate);
            let why = format!(
                "data hardly waited on the way, which carries at least {rate}, from burst spacing, which a pacing sender may set"
            );
            return Err(NoCapacity { carries: Some(rate), ..NoCapacity::new(why, FILL_THE_PATH) });
        }
        let bound = |share| {
            let rate = rates.quantile(share).map_or(rate, Rate::from_bits_per_second);
            self.wire(rate)
        };
        Ok(Finding::known(
            self.wire(rate),
            bound(0.25).min(self.wire(rate)),
            bound(0.9).max(self.wire(rate)),
            "the rate at which full segments were acknowledged one behind the other, with their headers",
        ))
    }

    fn round_trip(&self) -> Finding<Duration> {
        let trips = self.stream.round_trips();
        let Some(base) = self.base.filter(|base| *base > Duration::ZERO) else {
            return Finding::unknown("no round trip could be measured");
        };
        let low = trips.quantile(0.05).unwrap_or(base).max(base);
        if trips.vantage() == Vantage::Unknown {
            let high = trips.median().unwrap_or(base);
            let how = "the shortest from data to its acknowledgement; how far the capture is from \
                       the sender is unknown, and taken as nothing";
            return Finding::known(base, base, high, how);
        }
        if trips.is_guessed() {
            let how = "how soon a request was answered; it may be shorter";
            return Finding::known(base, Duration::ZERO, low, how);
        }
        Finding::known(base, base, low, "the shortest round trip")
    }

    fn loss(&self) -> Finding<Probability> {
        let segments = self.stream.counts().bytes / self.mss.max(1);
        if segments == 0 {
            return Finding::unknown("no full segment was sent");
        }
        let random = self.losses.saturating_sub(self.at_full) as f64;
        let share = |n: f64| Probability::new((n / segments as f64).clamp(0.0, 1.0));
        // Two standard deviations of a Poisson count; for a count of zero, up to three (95 %).
        let (low, high) = match random {
            0.0 => (0.0, 3.0),
            n => ((n - 2.0 * n.sqrt()).max(0.0), n + 2.0 * n.sqrt()),
        };
        match (share(random), share(low), share(high)) {
            (Some(value), Some(low), Some(high)) => {
                Finding::known(value, low, high, "losses while no full queue stood")
            }
            _ => Finding::unknown("the counts contradict one another"),
        }
    }
}

/// The size of the bottleneck's buffer, from its `capacity` and the queueing delays of packets of up to `packet` bytes.
fn buffer(capacity: Option<Rate>, waits: Waits, packet: u64) -> Finding<Bytes> {
    let Some(capacity) = capacity else {
        return Finding::unknown("it shows only where the capacity does");
    };
    let seen = capacity * waits.longest;
    let is_burst = waits.longest <= Bytes::new(BURST_SEGMENTS * packet) / capacity;
    let Some(full) = waits.full.filter(|_| !is_burst) else {
        return Finding::unknown(format!(
            "nothing was lost at a full queue; it holds {seen} or more"
        ));
    };
    let held = capacity * full;
    let how = "how long data waited just before what was lost, at the capacity";
    Finding::known(held, held.scaled(0.8), seen.max(held), how)
}
