use serde::Serialize;
use sweetspot_trace::flow::{TimerWaits, has_standing_queue};
use sweetspot_units::{Bytes, Duration, Rate};

use crate::limits::MIN_PRINTED_SHARE;
use crate::{Class, Limits, WindowClamp};

/// A time in which no acknowledgement came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stall {
    /// Its beginning, from the beginning of the connection.
    pub after: Duration,
    /// Its duration.
    pub lasted: Duration,
    /// Number of retransmissions meanwhile.
    pub repeats: u64,
    /// Whether an acknowledgement came in the end.
    pub ended: bool,
    /// Whether the acknowledgement passed the capture and was lost beyond it.
    pub beyond: bool,
    /// Whether the capture has no packet of the receiver at all.
    pub unheard: bool,
    /// When the receiver reset the connection, from its beginning, if the sender still retransmitted after that.
    pub reset: Option<Duration>,
}

impl Stall {
    /// Whether the stall has a printed share of the time `lasted`, and the sender retransmitted or got no answer at all. Waiting
    /// at a closed window is no stall.
    pub(crate) fn matters(&self, lasted: Duration) -> bool {
        let is_long = self.lasted >= lasted.scaled(MIN_PRINTED_SHARE);
        is_long && (self.repeats > 0 || !self.ended) && !self.beyond
    }
}

/// Waits for the sender's retransmission timer, each before a retransmission that was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimerWait {
    /// Their number and time, and how soon the retransmissions were answered.
    pub waits: TimerWaits,
    /// Whether they are more than half of the time in class [`Class::Congestion`].
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
    /// The SYN/ACK came and was not acknowledged.
    Unconfirmed,
}

/// Whether the receiving program reads data as it arrives. The sender sees only the window, which is small if the buffer is
/// small, or if unread data fill a large buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Reader {
    /// The evidence does not show it.
    #[default]
    Unknown,
    /// It reads in time: the window never shrank from the beginning on, or almost no data stayed unread.
    Prompt,
    /// It read too slowly for part of the time.
    Late,
}

/// How data arrived at the receiver of a live connection, which sees neither the sender nor the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Arrivals {
    /// The evidence does not show it.
    #[default]
    Unknown,
    /// Mostly without pauses, as a full link, a shaper or a pacing sender spaces data.
    Steady,
    /// Often with pauses, while the sender waits.
    Pausing,
}

/// The send buffer at the moment of a single reading. The kernel times it only while no data waits behind it, and not for
/// every writer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BufferThen {
    /// It had space, or more data waited than the connection sent.
    #[default]
    NotFull,
    /// It was too full for a writer to continue.
    Full,
    /// The reading lacks it.
    Missing,
}

/// The socket buffer of an end on this host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostBuffer {
    /// Whether the program set the size, which turns the kernel's autotuning off. `None` if unknown.
    pub is_set: Option<bool>,
    /// The largest size to which the kernel autotunes buffers: the third value of tcp_rmem or tcp_wmem.
    pub max: Bytes,
}

/// The evidence for a verdict, from any source.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub struct Evidence {
    /// Payload delivered per second.
    pub goodput: Rate,
    /// The path's capacity in payload per second, if it was seen.
    pub capacity: Option<Rate>,
    /// The capacity comes from too few or too different rates to be promised.
    pub doubts_capacity: bool,
    /// The other connections on the path, if they carried a part of its capacity.
    pub shared: Option<SharedPath>,
    /// At least one of them fills the path's queue, whatever this connection does.
    pub others_fill_path: bool,
    /// While a queue stood, the arrivals of a round trip filled this receiver's window: if others keep the queue, the window is
    /// the limit.
    pub fills_window: bool,
    /// The rate of the fastest round trips.
    pub best: Option<Rate>,
    /// The minimum RTT.
    pub rtt_min: Option<Duration>,
    /// `rtt_min` may contain a queueing delay: the capture began in mid-connection and always has data in flight.
    pub doubts_rtt_min: bool,
    /// The median RTT.
    pub rtt: Option<Duration>,
    /// The distance from the capture to the sender is unknown. Delayed acknowledgements alone may then raise `rtt` above `rtt_min`.
    pub doubts_queue: bool,
    /// The capture is from the receiver, where arrivals do not show what spaced them.
    pub seen_from_receiver: bool,
    /// The peer's window limited it often, so that acknowledgements may have waited for a program that reads.
    pub(crate) held_by_peer: bool,
    /// `rtt` is not a median but the kernel's smoothed RTT at one moment.
    pub rtt_is_smoothed: bool,
    /// The capture has no acknowledgement of the data: `goodput` is the rate at which it was sent.
    pub is_unacknowledged: bool,
    /// The mean window while it was full.
    pub window: Option<Bytes>,
    /// The mean duration of the rounds in which the window was full.
    pub window_round: Option<Duration>,
    /// The minimum window that the receiver advertised after a larger one.
    pub min_window: Option<Bytes>,
    /// The largest window that the receiver advertised.
    pub largest_window: Option<Bytes>,
    /// The clamp on the receiver's window, if one is known.
    pub clamp: Option<WindowClamp>,
    /// The receive buffer, if the receiver is on this host.
    pub receive_buffer: Option<HostBuffer>,
    /// The send buffer, if the sender is on this host.
    pub send_buffer: Option<HostBuffer>,
    /// The shift of the receiver's window scale option, if known.
    pub scale: Option<u8>,
    /// The ends did not agree on window scaling, so that no window exceeds 65,535 bytes (RFC 7323, section 2.2).
    pub unscaled: bool,
    /// Whether the receiving program reads in time.
    pub reader: Reader,
    /// How data arrived, if only the receiver's kernel was sampled.
    pub arrivals: Arrivals,
    /// The longest pause in them, if many outlast a round trip and nothing was lost: the sender's program then writes nothing.
    pub program_pause: Option<Duration>,
    /// The sender keeps to a model of the path (bbr).
    pub model_based: bool,
    /// While the path was the limit, the queue was in the sender's own host: its device, or a shaper on it, is the bottleneck.
    pub in_device: bool,
    /// The evidence comes from samples of the kernel's counters, not from packets.
    pub is_sampled: bool,
    /// The class with the most time among those that the verdict rejects because they do not account for the rate.
    pub(crate) unexplained: Option<Class>,
    /// The mean number of bytes in flight while the receiver's window did not bound it.
    pub flight: Option<Bytes>,
    /// The mean duration of those rounds.
    pub flight_round: Option<Duration>,
    /// Payload of a full segment.
    pub mss: Bytes,
    /// Segments sent.
    pub segments: u64,
    /// Segments retransmitted; `None` from the receiver's kernel, which does not know.
    pub retransmitted: Option<u64>,
    /// Separate loss events.
    pub loss_events: u64,
    /// Most losses came while the bottleneck's queue was not full, so its overflow did not cause them.
    pub loses_elsewhere: bool,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Times the receiver closed its window.
    pub zero_windows: u64,
    /// Data unread at the end, if the receiver's kernel was sampled.
    pub unread: Option<Bytes>,
    /// Whether the receiver's window is closed at the end.
    pub is_closed: bool,
    /// How long the receiving program has read nothing at the end, if that is at least half of the time in which it was the
    /// limit.
    pub hangs_for: Option<Duration>,
    /// The time for which the flow was observed.
    pub lasted: Duration,
    /// Total payload.
    pub bytes: Bytes,
    /// Segments were retransmitted before the observation.
    pub lost_before: bool,
    /// The longest time without an acknowledgement.
    pub stall: Option<Stall>,
    /// The waits for the sender's retransmission timer, if their share of the time is printed.
    pub timer: Option<TimerWait>,
    /// Why the connection never opened, if it did not.
    pub failure: Option<Failure>,
    /// The segments are evenly spaced, as by a link, a shaper or a pacing sender.
    pub even: bool,
    /// Pieces of different sizes, as captured before segmentation offload, each take the time that their bytes need at the
    /// flow's mean rate, as from a shaper or a pacing sender.
    pub paced: bool,
    /// The largest flight in bursts that followed small messages from the receiver: a window above TCP.
    pub granted: Option<Bytes>,
    /// Small segments that waited for a delayed acknowledgement.
    pub nagle: Option<Nagle>,
    /// Most samples found less than a segment waiting behind a single one in flight. The waits themselves were not seen.
    pub holds_partial_segment: bool,
    /// The largest payload that was acknowledged, if all larger segments were lost.
    pub passes: Option<Bytes>,
    /// The evidence comes from the totals of one reading: the time is the time with data in flight, and `goodput` the rate
    /// during it.
    pub is_one_reading: bool,
    /// The send buffer at that reading.
    pub(crate) buffer_then: BufferThen,
    /// The reason why the limit is unknown.
    pub unknown_because: Option<&'static str>,
}

/// A program that is not hanging seldom pauses its reading for longer.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Minimum number of loss events that are not attributed to chance.
const MIN_LOSS_EVENTS: u64 = 5;

/// Minimum ratio of the RTT to the min RTT that shows a standing queue.
pub(crate) const QUEUE: f64 = 1.1;
/// The same ratio after a loss. It is higher, because small buffers also fill before a loss.
pub(crate) const QUEUE_AFTER_LOSS: f64 = 1.25;

/// The reason why the limit is unknown if there is only one reading.
pub(crate) const ONE_INTERVAL: &str =
    "one reading does not show what limited the congestion window; log several with their times";
/// The send buffer stopped the program for a part of the time, and nothing waited to be sent in the rest.
pub(crate) const PROGRAM_OR_BUFFER: &str =
    "the application or the send buffer; one reading does not show which";
/// The send queue never emptied, and the readings lack the size of the send buffer.
pub(crate) const BUFFER_MISSING: &str =
    "the application or the send buffer; ss prints the send buffer only with -m";
/// One reading of a socket that only received, with more unread data than a reader that keeps up leaves.
pub(crate) const UNREAD: &str = "one reading does not show whether it keeps up otherwise";
/// The command that logs everything that a diagnosis uses.
pub(crate) const LOG_COMMAND: &str =
    "while sleep 0.1; do date +%s.%N; ss -tinm dst ADDRESS; done > slow.log";

impl Evidence {
    /// Attributes the time behind the queue of other connections to this receiver's window, if that was full.
    pub(crate) fn attribute_to_window(&mut self, limits: &mut Limits) {
        if self.fills_window {
            limits.reassign(Class::Bandwidth, Class::ReceiverWindow);
            // The others leave as much as they do because of this window.
            self.capacity = None;
        }
    }

    /// Records a hang if the receiving program, the limit for the time `limited`, has read nothing for the time `unread_for`.
    pub(crate) fn note_hang(&mut self, unread_for: Option<Duration>, limited: Duration) {
        let hangs = |time: &Duration| *time >= LONGEST_PAUSE && *time * 2 >= limited;
        self.hangs_for = unread_for.filter(hangs);
    }

    /// Whether the window scale shows a small buffer: the program set it, or a device on the path removed the option.
    pub(crate) fn has_small_buffer(&self) -> bool {
        self.scale == Some(0) && !self.unscaled
    }

    /// Whether only the receiver's kernel was sampled. Only the sender's counts retransmissions.
    pub(crate) fn is_by_receiver(&self) -> bool {
        self.is_sampled && self.retransmitted.is_none()
    }

    /// Whether the unknown time is the sender's or the path's: the receiver's kernel knows its own limits.
    pub fn is_beyond_receiver(&self) -> bool {
        self.is_by_receiver() && self.window.is_some()
    }

    /// Whether the sending application was mostly held by Nagle's algorithm.
    pub(crate) fn has_nagle(&self) -> bool {
        self.nagle.is_some_and(|nagle| nagle.leads)
    }

    /// The minimum and the median RTT if a standing queue accounts for the difference. BBR probes the bandwidth during one RTT in
    /// eight (bbr_pacing_gain), so the queue of its probes does not raise the median.
    pub(crate) fn standing_queue(&self) -> Option<(Duration, Duration)> {
        let known = self.rtt_min.zip(self.rtt).filter(|_| !self.doubts_queue);
        known.filter(|(min, rtt)| has_standing_queue(*rtt, *min))
    }

    /// Whether packets are lost repeatedly at the capacity without a standing queue, as at a policer.
    pub(crate) fn drops_without_queue(&self) -> bool {
        let is_lossy = self.loss_events >= MIN_LOSS_EVENTS;
        let no_queue = self.standing_queue().is_none() && !self.doubts_queue;
        is_lossy && no_queue && !self.model_based && !self.in_device
    }

    /// Whether the sender may pace its segments, or a link spaces them evenly: no queue is visible, and nothing else shows which.
    pub(crate) fn may_be_paced(&self) -> bool {
        let can_be_even = self.even || self.seen_from_receiver;
        let no_queue = self.standing_queue().is_none() && !self.drops_without_queue();
        let is_even = can_be_even && no_queue;
        let is_spaced = self.paced || is_even || self.doubts_queue;
        is_spaced && !self.in_device && !self.model_based && self.shared.is_none()
    }

    /// The window at which the connection would be equally fast without a queue: the path's capacity times the min RTT. It is
    /// unknown until a standing queue shows the capacity, because losses or a program may set the rate. It is also unknown if
    /// the path was never seen empty. There is none beside a connection that keeps the queue full.
    pub fn sweet_spot(&self) -> Option<Bytes> {
        let alone = !self.doubts_rtt_min && !self.others_fill_path;
        let empty = self.rtt_min.filter(|_| alone)?;
        let spot = self.capacity? * empty;
        // A window below two segments would wait for delayed acknowledgements (RFC 9293, section 3.8.6.3).
        (spot > Bytes::ZERO && spot >= self.mss * 2).then_some(spot)
    }
}

/// The other connections on a flow's path.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SharedPath {
    /// Number of other connections between the same hosts at the same time.
    pub others: u64,
    /// Payload rate of all of them together while this connection lasted, in bits per second.
    pub together_bps: f64,
}

/// Small segments that Nagle's algorithm held until a delayed acknowledgement came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Nagle {
    /// Number of segments that waited.
    pub waits: u64,
    /// Their total waiting time.
    pub time: Duration,
    /// Whether `time` is at least half of the time in which the sending application was the limit.
    pub leads: bool,
}

impl Nagle {
    /// The mean wait.
    pub fn each(&self) -> Duration {
        self.time / self.waits.max(1)
    }
}
