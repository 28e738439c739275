use sweetspot_units::{Bytes, Duration, Time};

use crate::ControllerConfig;
use crate::advertised::{Advertised, RightSizer};

/// Heffner's receiver (Heffner 2002, "High bandwidth TCP queuing", section 6). The receive space is the last RTT's arrivals and
/// four segments. The RTT is the lowest sample, in ticks of the receiver's clock.
///
/// The paper leaves some choices open or contradicts itself; [`HeffnerVariant`] selects a reading.
///
/// The paper's other changes are outside of a controller: here windows are counted in sequence space anyway, and the retransmit
/// queue is separate from the socket's buffer.
#[derive(Debug)]
pub struct Heffner {
    mss: Bytes,
    variant: HeffnerVariant,
    /// rcv_min_rtt, in ticks.
    min_rtt: Option<u64>,
    /// rcv_winest_time in ticks, and rcv_winest_seq.
    measurement: Option<(u64, Bytes)>,
    /// rcv_space.
    space: Bytes,
    bytes_read: Bytes,
    unread: Bytes,
    edge: EdgeTimer,
    advertised: Advertised,
    growing: bool,
}

/// How Heffner's receiver measures, and how much of its receive space it advertises.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeffnerVariant {
    /// `heffner`: the receive space itself, as in section 6.6.
    Once,
    /// `heffner:twice`: twice the space, as in Figure 1 (the window doubles every round trip and ends at twice the BDP) and in
    /// section 4.2.1.
    Twice,
    /// `heffner:read`: twice what the application read in a round trip, instead of what arrived. A slow reader then has the
    /// steady state of section 4.2.1.
    Read,
    /// `heffner:no-timestamps`: as `heffner:twice`, but an RTT is timed from an advertised edge to the first byte beyond it
    /// (sections 4.2.1 and 6.4). These samples are upper bounds, and tight only if the window is the limit.
    NoTimestamps,
}

impl HeffnerVariant {
    /// Every variant.
    pub const ALL: [HeffnerVariant; 4] = [
        HeffnerVariant::Once,
        HeffnerVariant::Twice,
        HeffnerVariant::Read,
        HeffnerVariant::NoTimestamps,
    ];

    /// The name, as in `--sizing`.
    pub fn name(self) -> &'static str {
        match self {
            HeffnerVariant::Once => "heffner",
            HeffnerVariant::Twice => "heffner:twice",
            HeffnerVariant::Read => "heffner:read",
            HeffnerVariant::NoTimestamps => "heffner:no-timestamps",
        }
    }

    fn times(self) -> u64 {
        match self {
            HeffnerVariant::Once => 1,
            HeffnerVariant::Twice | HeffnerVariant::Read | HeffnerVariant::NoTimestamps => 2,
        }
    }
}

/// Section 6.5: "initialized to 4 * MSS", and the 4 MSS on top of the arrivals.
const EXTRA_SEGMENTS: u64 = 4;

/// Section 7.1: the DEC Alpha's clock ticks 1024 times a second. Section 8: "The sink was run on Host A (the Alpha)".
const TICKS_PER_SECOND: u128 = 1024;

/// `nanos` in whole ticks.
fn ticks(nanos: u64) -> u64 {
    (u128::from(nanos) * TICKS_PER_SECOND / 1_000_000_000) as u64
}

/// Times round trips by the window (sections 4.2.1 and 6.4): byte `s + w + 1` leaves the sender no sooner than an
/// acknowledgement that advertises more than `s + w` reaches it.
#[derive(Debug, Default)]
struct EdgeTimer {
    /// The highest edge advertised so far.
    highest: Bytes,
    /// rcv_rtt_seq: the edge that the current measurement waits for.
    edge: Bytes,
    /// rcv_rtt_time.
    since: Time,
}

impl EdgeTimer {
    /// The receiver advertises a window that ends at `edge`.
    fn advertise(&mut self, now: Time, edge: Bytes) {
        if self.highest == Bytes::ZERO {
            (self.edge, self.since) = (edge, now);
        }
        self.highest = self.highest.max(edge);
    }

    /// `total` bytes have arrived in order. Returns the RTT sample if a measurement has ended, and starts the next.
    fn handle_total(&mut self, now: Time, total: Bytes) -> Option<Duration> {
        if total <= self.edge {
            return None;
        }
        let sample = now.since(self.since);
        (self.edge, self.since) = (self.highest, now);
        Some(sample)
    }
}

impl Heffner {
    /// A controller before the first byte.
    pub fn new(config: &ControllerConfig, variant: HeffnerVariant) -> Heffner {
        Heffner {
            mss: config.mss,
            variant,
            min_rtt: None,
            measurement: None,
            space: config.mss * EXTRA_SEGMENTS,
            bytes_read: Bytes::ZERO,
            unread: Bytes::ZERO,
            edge: EdgeTimer::default(),
            advertised: Advertised::new(config),
            growing: true,
        }
    }

    /// Section 6.6: rcv_space is the buffer, and TCP computes rcv_space - rcv_alloc + ofo_alloc. Unread data reduce the
    /// advertised window; out-of-order data do not.
    fn advertise(&mut self, now: Time) {
        let window = self.space * self.variant.times();
        self.advertised.set(now, window);
        self.edge.advertise(now, self.arrived() + window.saturating_sub(self.unread));
    }

    /// rcv_next: bytes read by the application plus bytes waiting for it.
    fn arrived(&self) -> Bytes {
        self.bytes_read + self.unread
    }

    /// The bytes that a window measurement counts.
    fn counted(&self) -> Bytes {
        match self.variant {
            HeffnerVariant::Read => self.bytes_read,
            HeffnerVariant::Once | HeffnerVariant::Twice | HeffnerVariant::NoTimestamps => {
                self.arrived()
            }
        }
    }

    /// Section 6.4: "One tick is added to the sample, because a fractional tick will be truncated."
    fn handle_sample(&mut self, now: Time, rtt: Duration) {
        let sample = ticks(rtt.as_nanos()) + 1;
        self.min_rtt = Some(self.min_rtt.map_or(sample, |min| min.min(sample)));
        let counted = self.counted();
        self.measurement.get_or_insert((ticks(now.as_nanos()), counted));
    }

    /// Section 6.5: once per rcv_min_rtt.
    fn measure(&mut self, now: Time) {
        let Some((min_rtt, (since, before))) = self.min_rtt.zip(self.measurement) else { return };
        let jiffies = ticks(now.as_nanos());
        if jiffies.saturating_sub(since) < min_rtt {
            return;
        }
        let counted = self.counted();
        self.measurement = Some((jiffies, counted));
        let wanted = counted.saturating_sub(before) + self.mss * EXTRA_SEGMENTS;
        let space = self.space;
        // "It is set to no less than half its previous value".
        self.space = wanted.max(space.scaled(0.5));
        self.growing = self.space > space;
    }
}

impl RightSizer for Heffner {
    fn handle_data(&mut self, now: Time, bytes: Bytes, unread: Bytes) {
        self.bytes_read += bytes;
        self.unread = unread;
        let sample = self.edge.handle_total(now, self.arrived());
        if let (HeffnerVariant::NoTimestamps, Some(sample)) = (self.variant, sample) {
            self.handle_sample(now, sample);
        }
        self.measure(now);
        self.advertise(now);
    }
    fn handle_rtt(&mut self, now: Time, rtt: Duration) {
        if self.variant != HeffnerVariant::NoTimestamps {
            self.handle_sample(now, rtt);
        }
    }
    fn begin(&mut self, now: Time) {
        self.advertise(now);
    }
    fn advertised(&self) -> &Advertised {
        &self.advertised
    }
    fn advertised_mut(&mut self) -> &mut Advertised {
        &mut self.advertised
    }
    fn is_growing(&self) -> bool {
        self.growing
    }
}
