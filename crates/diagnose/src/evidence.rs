use serde::Serialize;
use sweetspot_trace::flow::TimerWaits;
use sweetspot_units::{Bytes, Duration, Rate};

use crate::limits::MIN_PRINTED_SHARE;
use crate::{Class, WindowClamp};

/// A time in which nothing was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stall {
    /// How long after the beginning of the connection.
    pub after: Duration,
    /// How long it lasted.
    pub lasted: Duration,
    /// How often something was sent again meanwhile.
    pub repeats: u64,
    /// Whether an answer came after all.
    pub ended: bool,
    /// Whether the acknowledgement passed the capture and was lost beyond it.
    pub beyond: bool,
    /// Whether the capture has no packet of the receiver at all.
    pub unheard: bool,
    /// How long after the beginning the receiver reset the connection, if it did before the sender tried for the last time.
    pub reset: Option<Duration>,
}

impl Stall {
    /// Whether it has a printed share of the time `lasted`, and the sender tried again meanwhile: a closed window is no silence.
    pub(crate) fn matters(&self, lasted: Duration) -> bool {
        let is_long = self.lasted >= lasted.scaled(MIN_PRINTED_SHARE);
        is_long && (self.repeats > 0 || !self.ended) && !self.beyond
    }
}

/// Waits for the sender's retransmission timer, each before a retransmission that was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimerWait {
    /// How many, how long, and how soon the path answered.
    pub waits: TimerWaits,
    /// Whether that is most of the time that losses cost.
    pub leads: bool,
}

/// How a connection failed to open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Failure {
    /// The SYN was answered by a reset.
    Refused,
    /// The SYN was not answered.
    Unanswered,
    /// The answer came and was not confirmed.
    Unconfirmed,
}

/// Whether the receiving program reads data as it arrives. A sender sees only windows, which a small buffer makes as small as
/// unread data in a large one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Reader {
    /// It cannot be told.
    #[default]
    Unknown,
    /// It reads in time: the window never shrank from its beginning on, or next to nothing lay unread.
    Prompt,
    /// It was late for a part of the time.
    Late,
}

/// How data came to a live connection's receiver, which sees neither the sender nor the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Arrivals {
    /// It cannot be told.
    #[default]
    Unknown,
    /// Mostly without pauses, as a full link, a shaper or a sender that paces itself spaces them.
    Steady,
    /// Often with pauses, in which the sender waits.
    Pausing,
}

/// The buffer of an end that is on this host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostBuffer {
    /// Whether its program set the size itself, so that the kernel does not autotune it.
    pub is_set: Option<bool>,
    /// The largest size to which the kernel autotunes buffers: the third value of tcp_rmem or tcp_wmem.
    pub max: Bytes,
}

/// The evidence for a verdict, from whichever source.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub struct Evidence {
    /// Payload delivered per second.
    pub goodput: Rate,
    /// The payload that the path could deliver, where that was seen.
    pub capacity: Option<Rate>,
    /// The capacity rests on too few or too different rates to promise it.
    pub doubts_capacity: bool,
    /// The other connections on the path, if they carried a part of its capacity.
    pub shared: Option<SharedPath>,
    /// The most that was delivered in a round trip.
    pub best: Option<Rate>,
    /// The shortest round trip.
    pub rtt_min: Option<Duration>,
    /// It may contain a queue: the capture began in mid-connection and always has data in flight.
    pub doubts_rtt_min: bool,
    /// The median round trip.
    pub rtt: Option<Duration>,
    /// It is the kernel's smoothed round trip at one moment instead.
    pub rtt_is_smoothed: bool,
    /// Nothing of its data was acknowledged in the capture: `goodput` is the rate of what was sent.
    pub is_unacknowledged: bool,
    /// The mean of the full window.
    pub window: Option<Bytes>,
    /// How long the rounds lasted in which it was full, in the mean.
    pub window_round: Option<Duration>,
    /// The minimum window that the receiver advertised once it had advertised more.
    pub min_window: Option<Bytes>,
    /// The largest window that the receiver advertised.
    pub largest_window: Option<Bytes>,
    /// The clamp on it, where one is known.
    pub clamp: Option<WindowClamp>,
    /// The receiver's buffer, where it is on this host.
    pub receive_buffer: Option<HostBuffer>,
    /// The sender's buffer, likewise.
    pub send_buffer: Option<HostBuffer>,
    /// Its scale, where known.
    pub scale: Option<u8>,
    /// The ends did not agree on window scaling, so that no window exceeds 65,535 bytes (RFC 7323, section 2.2).
    pub unscaled: bool,
    /// Whether the receiving program reads in time.
    pub reader: Reader,
    /// How data came, where only the receiver's kernel was asked.
    pub arrivals: Arrivals,
    /// The sender keeps to a model of the path (bbr).
    pub model_based: bool,
    /// While the path was the limit, the data stood in the sender's own host: its device, or a shaper on it, is the bottleneck.
    pub in_device: bool,
    /// It comes from samples of the kernel's counters rather than from packets.
    pub is_sampled: bool,
    /// The class with most of the time that the verdict leaves out, because it does not account for the rate.
    pub(crate) unexplained: Option<Class>,
    /// The mean flight while no window of the receiver bounded it.
    pub flight: Option<Bytes>,
    /// How long those rounds lasted, in the mean.
    pub flight_round: Option<Duration>,
    /// Payload of a full segment.
    pub mss: Bytes,
    /// Segments sent.
    pub segments: u64,
    /// How many of them more than once; the receiver's kernel does not know.
    pub retransmitted: Option<u64>,
    /// Separate loss events.
    pub loss_events: u64,
    /// Most losses came while the queue was not full, so that it did not cause them.
    pub loses_elsewhere: bool,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Times the receiver closed its window.
    pub zero_windows: u64,
    /// The data that wait unread at the end, where the receiver's kernel was asked.
    pub unread: Option<Bytes>,
    /// Whether the receiver's window is closed at the end.
    pub is_closed: bool,
    /// For how long the receiving program has read nothing at the end, if that is most of the time in which it was the limit.
    pub hangs_for: Option<Duration>,
    /// How long the flow was seen.
    pub lasted: Duration,
    /// Payload in all.
    pub bytes: Bytes,
    /// The longest time without an answer.
    pub stall: Option<Stall>,
    /// The waits for the sender's retransmission timer, if they had a printed share of the time.
    pub timer: Option<TimerWait>,
    /// Why the connection never opened, where it did not.
    pub failure: Option<Failure>,
    /// Its segments come evenly, as a link, a shaper or a sender that paces itself sets them apart.
    pub even: bool,
    /// Its pieces, of different sizes, each take the time of their bytes at the rate of all data, as those do too.
    pub paced: bool,
    /// The largest flight in bursts that small messages of the receiver released: a window above TCP.
    pub granted: Option<Bytes>,
    /// Small segments that waited for a delayed acknowledgement.
    pub nagle: Option<Nagle>,
    /// Less than a segment was mostly found waiting behind one in flight; the waits themselves were not seen.
    pub holds_small: bool,
    /// The largest payload that was acknowledged, if all larger segments vanished.
    pub passes: Option<Bytes>,
    /// All of it comes from the totals of one reading: the time is that with data in flight, and `goodput` the rate meanwhile.
    pub is_one_reading: bool,
    /// The reason why the limit is unknown.
    pub unknown_because: Option<&'static str>,
}

/// A program that reads at all seldom pauses for longer.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

impl Evidence {
    /// Notes that the receiving program, which was the limit for the time `limited`, has read nothing for the time `unread_for`.
    pub(crate) fn note_hang(&mut self, unread_for: Option<Duration>, limited: Duration) {
        let hangs = |time: &Duration| *time >= LONGEST_PAUSE && *time * 2 >= limited;
        self.hangs_for = unread_for.filter(hangs);
    }

    /// The window at which the connection would be as fast with no queue: the path's capacity times the shortest round trip.
    /// Until a standing queue shows the capacity, it is unknown: losses or a program may set the rate.
    /// So is the round trip of a path that was never seen empty.
    pub fn sweet_spot(&self) -> Option<Bytes> {
        let empty = self.rtt_min.filter(|_| !self.doubts_rtt_min)?;
        let spot = self.capacity? * empty;
        // A window below two segments would wait for delayed acknowledgements (RFC 9293, section 3.8.6.3).
        (spot > Bytes::ZERO && spot >= self.mss * 2).then_some(spot)
    }
}

/// The connections that shared a path with another one.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SharedPath {
    /// How many other connections there were between the same hosts at the same time.
    pub others: u64,
    /// The payload per second of all of them together, in bits, during the time of this one.
    pub together_bps: f64,
}

/// Small segments that Nagle's algorithm held until a delayed acknowledgement came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Nagle {
    /// How many.
    pub waits: u64,
    /// How long they waited, all together.
    pub time: Duration,
    /// Whether that is most of the time in which the sending application was the limit.
    pub leads: bool,
}

impl Nagle {
    /// The mean wait.
    pub fn each(&self) -> Duration {
        self.time / self.waits.max(1)
    }
}
