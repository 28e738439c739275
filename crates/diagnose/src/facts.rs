use serde::Serialize;
use sweetspot_trace::flow::{Retransmissions, Stream, Vantage};
use sweetspot_units::Duration;

/// Figures from a capture about the data that one end sent.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Facts {
    /// Payload, each byte counted once.
    pub bytes: u64,
    /// Payload acknowledged.
    pub acked_bytes: u64,
    /// Payload that was acknowledged although the capture does not have it.
    pub unseen_bytes: u64,
    /// Segments with payload, including retransmissions.
    pub data_segments: u64,
    /// Retransmitted segments, by cause.
    pub retransmitted: RetransmissionFacts,
    /// Loss events: fast recoveries and timeouts. All losses within a round trip count as one event.
    pub loss_events: u64,
    /// Loss events that were retransmission timeouts.
    pub timeouts: u64,
    /// Segments that came out of order and were not retransmissions.
    pub out_of_order: u64,
    /// Segments that were captured twice and sent once.
    pub captured_twice: u64,
    /// Times the receiver closed its window.
    pub zero_windows: u64,
    /// Probes of a closed window.
    pub window_probes: u64,
    /// Keep-alives.
    pub keep_alives: u64,
    /// Time in which unread data closed the window or left no space for a segment, in seconds.
    pub shut_s: f64,
    /// The windows that the receiver advertised, scaled if the scale is known.
    pub window: WindowFacts,
    /// Payload of a full segment.
    pub mss: u64,
    /// The largest payload of a segment. If it exceeds `mss`, the capture point is before a network card's
    /// segmentation.
    pub largest_segment: u64,
    /// Whether both ends offered selective acknowledgements; unknown without the handshake.
    pub sack: Option<bool>,
    /// Whether the receiver's segments carry timestamps.
    pub timestamps: bool,
    /// Round trips.
    pub rtt: RttFacts,
    /// Capture point, from the sender's side: sender, receiver, middle, unknown.
    pub vantage: &'static str,
    /// The maximum in flight, in bytes.
    pub largest_flight: u64,
    /// The largest burst, in bytes.
    pub largest_burst: u64,
    /// The rate at which back-to-back full segments were delivered, in bits per second.
    pub delivery_bps: Option<f64>,
}

/// Retransmitted segments, by kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct RetransmissionFacts {
    /// After duplicate or selective acknowledgements, or by time together with some of them (RACK, RFC
    /// 8985).
    pub fast: u64,
    /// By the retransmission timer.
    pub timeout: u64,
    /// The tail, to provoke an acknowledgement (tail loss probe, RFC 8985).
    pub tail: u64,
    /// Spuriously: the data had already been acknowledged.
    pub spurious: u64,
    /// Dropped by the receiver, which had withdrawn the window for them.
    pub taken_back: u64,
}

/// Windows in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct WindowFacts {
    /// The minimum.
    pub min: Option<u64>,
    /// The median of all advertisements.
    pub median: Option<u64>,
    /// The largest.
    pub largest: Option<u64>,
    /// The shift of the window scale option; unknown without the handshake.
    pub scale: Option<u8>,
}

/// Round trips in seconds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RttFacts {
    /// The minimum.
    pub min_s: Option<f64>,
    /// The mean.
    pub mean_s: Option<f64>,
    /// The median.
    pub median_s: Option<f64>,
    /// The 99th percentile.
    pub p99_s: Option<f64>,
    /// Number of acknowledgements with an RTT sample.
    pub samples: u64,
    /// The method of measurement, in words.
    pub measured: &'static str,
}

impl Facts {
    /// The facts of `stream`; its receiver advertised the window scale `scale`.
    pub fn new(stream: &Stream, scale: Option<u8>, sack: Option<bool>) -> Facts {
        let counts = stream.counts();
        let retransmissions = stream.retransmissions();
        let seconds = |time: Duration| time.as_secs_f64();
        let trips = stream.round_trips();
        Facts {
            bytes: counts.bytes,
            acked_bytes: counts.acked,
            unseen_bytes: counts.unseen,
            data_segments: counts.data_segments,
            retransmitted: RetransmissionFacts::new(retransmissions),
            loss_events: retransmissions.loss_events(),
            timeouts: retransmissions.timeouts,
            out_of_order: counts.out_of_order,
            captured_twice: counts.copies,
            zero_windows: counts.zero_windows,
            window_probes: counts.window_probes,
            keep_alives: counts.keep_alives,
            shut_s: seconds(stream.shut()),
            window: WindowFacts {
                min: counts.windows.min(),
                median: counts.windows.quantile(0.5),
                largest: counts.windows.largest(),
                scale,
            },
            mss: stream.mss(),
            largest_segment: counts.largest_segment,
            sack,
            timestamps: counts.timestamps,
            rtt: RttFacts {
                min_s: trips.min().map(seconds),
                mean_s: trips.mean().map(seconds),
                median_s: trips.median().map(seconds),
                p99_s: trips.quantile(0.99).map(seconds),
                samples: trips.samples(),
                measured: measured(stream),
            },
            vantage: vantage(trips.vantage()),
            largest_flight: stream.largest_flight().get(),
            largest_burst: counts.largest_burst,
            delivery_bps: stream.train_rate().map(|rate| rate.as_f64()),
        }
    }
}

impl RetransmissionFacts {
    fn new(retransmissions: &Retransmissions) -> RetransmissionFacts {
        RetransmissionFacts {
            fast: retransmissions.fast + retransmissions.selective,
            timeout: retransmissions.timeout,
            tail: retransmissions.probes,
            spurious: retransmissions.needless,
            taken_back: retransmissions.taken_back,
        }
    }
}

fn vantage(vantage: Vantage) -> &'static str {
    match vantage {
        Vantage::Sender => "sender",
        Vantage::Receiver => "receiver",
        Vantage::Middle => "middle",
        Vantage::Unknown => "unknown",
    }
}

fn measured(stream: &Stream) -> &'static str {
    let trips = stream.round_trips();
    match (trips.min(), trips.vantage(), stream.counts().timestamps) {
        (None, ..) => "not at all",
        _ if trips.is_guessed() => {
            "from data to its acknowledgement, and from requests to their answers"
        }
        (Some(_), Vantage::Unknown, _) => "from data to its acknowledgement, one half of the way",
        (Some(_), Vantage::Sender, _) => "from data to its acknowledgement",
        (Some(_), _, true) => "from data to its acknowledgement, and by the echo of timestamps",
        (Some(_), _, false) => {
            "from data to its acknowledgement, and from the handshake to the sender and back"
        }
    }
}
