//! Finds the limits of a live connection from the kernel's counters (`TCP_INFO`, sock_diag).
//!
//! At the sender, the kernel keeps chronographs (Linux commit 05b055e89121): the busy time, and the parts of it in
//! which the receiver's window or the send buffer was the limit. In the rest, the congestion window was the limit, and
//! `sending` finds out why. The receiver's kernel has no chronographs, so `receiving` uses its counters.

mod history;
mod model;
mod period;
mod receiving;
mod sending;
mod sliding;
mod sums;

use std::cmp::Ordering;
use std::net::IpAddr;

use sweetspot_trace::Histogram;
use sweetspot_trace::flow::{Deliveries, has_standing_queue};
use sweetspot_units::{Bytes, Duration, Rate, Time};

use self::history::{ConnectionHistory, STEADY};
use self::period::Totals;
use crate::evidence::QUEUE;
use crate::limits::FREQUENT_SHARE;
use crate::{Class, Evidence, Limits};

pub(crate) use self::history::PROMPT_WINDOW_SHARE;
pub use self::period::Period;
pub use self::sliding::SlidingLive;

/// Interval between the samples of a diagnosis, short enough that shares of samples are shares of time.
pub const SAMPLE_INTERVAL: Duration = Duration::from_millis(100);

/// Default time over which a connection is judged. A compromise with the user's patience: a share of the time from a hundred
/// samples is within ten percentage points of the true one (1.96 binomial standard deviations).
pub const OBSERVATION: Duration = Duration::from_secs(10);

/// The kernel's statistics of a connection at one time. Counters start at its beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sample {
    /// The time of the sample.
    pub at: Time,
    /// Payload acknowledged.
    pub acked: Bytes,
    /// Payload bytes received in order.
    pub received: Bytes,
    /// Segments that reached the peer in any order. `acked` jumps when a hole is filled; this counter does not.
    pub delivered: u64,
    /// Time with data in flight.
    pub busy: Duration,
    /// The part of `busy` limited by the peer's window.
    pub window_limited: Duration,
    /// The part of `busy` limited by the send buffer.
    pub buffer_limited: Duration,
    /// Congestion window, in segments.
    pub congestion_window: u32,
    /// Slow-start threshold, in segments; huge if it was never set.
    pub slow_start_threshold: u32,
    /// Segments in flight.
    pub segments_in_flight: u32,
    /// Bytes sent and not acknowledged, if the kernel reports them.
    pub outstanding: Option<Bytes>,
    /// Bytes that wait to be sent for the first time.
    pub not_sent: Bytes,
    /// Whether a loss is being repaired.
    pub recovering: bool,
    /// Whether the congestion control keeps to a model of the path instead of reacting to loss (bbr).
    pub model_based: bool,
    /// Payload of a full segment.
    pub mss: Bytes,
    /// Smoothed round-trip time.
    pub rtt: Duration,
    /// Minimum RTT, as measured by this end.
    pub rtt_min: Duration,
    /// SO_MAX_PACING_RATE, if set.
    pub pacing_limit: Option<Rate>,
    /// Whether the latest delivery rate was measured while there was nothing more to send (application-limited).
    pub starved: bool,
    /// The kernel's latest delivery rate over a round trip; while `starved`, the highest since then (tcp_rate_gen).
    pub delivery_rate: Option<Rate>,
    /// Packets waiting to be sent or acknowledged, in bytes of memory.
    pub queued: Bytes,
    /// Packets in this host's queues below TCP (queueing discipline and device), in bytes of memory; zero if unknown.
    pub in_device: Bytes,
    /// The size of the send buffer, in bytes of memory.
    pub send_buffer: Bytes,
    /// The window that the peer advertises.
    pub peer_window: Option<Bytes>,
    /// The window scale that the peer advertised.
    pub peer_scale: u8,
    /// The window scale that this end advertised.
    pub scale: u8,
    /// Segments sent with payload, including retransmissions.
    pub segments: u64,
    /// Segments retransmitted.
    pub retransmitted: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Consecutive timeouts without an answer; zero if unknown.
    pub backoff: u64,
    /// RTT as the receiver estimates it; zero if unknown.
    pub receiver_rtt: Duration,
    /// Whether the segments carry timestamps. Without them `receiver_rtt` is the time to receive a window (tcp_rcv_rtt_measure).
    pub timestamps: bool,
    /// Time since data last arrived, in whole kernel ticks; `None` if unknown.
    pub last_arrival: Option<Duration>,
    /// The duration of the kernel's tick; zero if unknown.
    pub tick: Duration,
    /// The window that this end advertises.
    pub window: Option<Bytes>,
    /// Bytes received that the application has not read.
    pub unread: Bytes,
    /// Segments that arrived out of order, behind a lost one.
    pub out_of_order: u64,
}

/// Number of intervals between samples that suffices to prove a queue at the receiver, even if this host pauses once and the
/// count restarts.
pub const ENOUGH_INTERVALS: u64 = STEADY as u64 * 3 / 2;

/// The role of this end: the direction in which most data goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Side {
    /// This end sends.
    #[default]
    Sender,
    /// This end receives.
    Receiver,
}

/// The direction with more bytes of `sent` and `received`, if they differ.
pub fn larger_side(sent: Bytes, received: Bytes) -> Option<Side> {
    match sent.cmp(&received) {
        Ordering::Greater => Some(Side::Sender),
        Ordering::Less => Some(Side::Receiver),
        Ordering::Equal => None,
    }
}

/// Follows a connection from sample to sample.
#[derive(Debug, Clone, Default)]
pub struct Live {
    first: Option<Totals>,
    last: Option<Sample>,
    side: Side,
    /// The division of the time by the sender's rules.
    sending: Limits,
    /// The division of the time by the receiver's rules.
    receiving: Limits,
    /// The part of `receiving` with the latest apparent queue, until enough samples rule out that the sender pauses.
    unproven: Limits,
    /// Number that identifies the latest apparent queue; the next one has another.
    queues: u64,
    /// Whether the arrivals of the latest round trip fill this end's window.
    fills_round: bool,
    /// Whether the latest sample proved the queue of the time before it.
    proves: bool,
    recent: Limits,
    deliveries: Deliveries,
    history: ConnectionHistory,
    /// RTTs while data moved, in microseconds.
    round_trips: Histogram,
}

impl Live {
    /// A connection between these addresses, without samples yet.
    pub fn between(local: IpAddr, remote: IpAddr) -> Live {
        let within_host = local == remote || (local.is_loopback() && remote.is_loopback());
        Live {
            history: ConnectionHistory { within_host, ..ConnectionHistory::default() },
            ..Live::default()
        }
    }

    /// A connection with only one reading: the totals over its life, and its state at the end.
    pub(crate) fn of_one_reading(local: IpAddr, remote: IpAddr) -> Live {
        let mut live = Live::between(local, remote);
        live.history.is_one_reading = true;
        live
    }

    /// Takes the next sample. Times must not decrease.
    pub fn handle(&mut self, sample: Sample) {
        let first = self.first.get_or_insert(Totals::beginning(&sample));
        if first.has_moved_nothing() {
            self.history.rate.get_or_insert(Rate::ZERO);
        }
        self.history.record_windows(&sample);
        if self.last.is_none() {
            let earlier = larger_side(sample.acked, sample.received);
            self.side = sample.waiting_side().or(earlier).unwrap_or_default();
        }
        if let Some(last) = self.last.replace(sample) {
            let time = sample.at.since(last.at);
            let sent = sample.acked.saturating_sub(last.acked);
            let received = sample.received.saturating_sub(last.received);
            let moving = larger_side(sent, received).or_else(|| sample.waiting_side());
            self.side = moving.unwrap_or(self.side);
            self.deliveries.add(sample.at, sent.max(received).get());
            let step = Step { last, sample, time };
            self.history.learn(&step, self.side);
            let sending = sending::divide(&step, &self.history);
            let receiving = receiving::divide(&step, &self.history);
            self.fills_round = receiving::fills_round(&step, &self.history);
            if self.fills_round && self.history.seems_to_queue(&step) {
                self.history.filled += time;
            }
            self.recent = match self.side {
                Side::Sender => sending,
                Side::Receiver => receiving,
            };
            self.history.rate = Some(step.rate(self.side));
            if let Some(rtt) = self.rtt().filter(|_| sent != received) {
                self.round_trips.add(rtt.as_micros(), 1);
            }
            self.sending.extend(&sending);
            self.receiving.extend(&receiving);
            self.prove_queue(&step, &receiving);
        }
    }

    /// Attributes the time of a queue at the receiver to the path once enough samples prove it, including the time before that,
    /// divided as in `latest` and earlier steps. Classes that take precedence over a queue keep their time.
    fn prove_queue(&mut self, step: &Step, latest: &Limits) {
        let seems = self.side == Side::Receiver && self.history.seems_to_queue(step);
        self.proves = false;
        if !seems || receiving::outweighs_queue(latest.dominant()) {
            self.unproven = Limits::default();
            self.queues += 1;
            return;
        }
        self.unproven.extend(latest);
        if self.history.is_steady(step) {
            self.receiving.attribute(&std::mem::take(&mut self.unproven), Class::Bandwidth);
            self.proves = true;
        }
    }

    /// The division of the time since the first sample, by the rules for [`direction`](Live::direction).
    pub fn limits(&self) -> &Limits {
        match self.direction() {
            Side::Sender => &self.sending,
            Side::Receiver => &self.receiving,
        }
    }

    /// The division of the time between the last two samples.
    pub fn recent(&self) -> &Limits {
        &self.recent
    }

    /// The role of this end in the last interval with data.
    pub fn side(&self) -> Side {
        self.side
    }

    /// Whether this end sends most data, and seldom lacked data to send.
    pub fn keeps_data_waiting(&self) -> bool {
        let seldom_lacks = self.sending.family_share(Class::Application) < FREQUENT_SHARE;
        let is_measured = self.sending.total() > Duration::ZERO;
        is_measured && seldom_lacks && self.direction() == Side::Sender
    }

    /// The direction of most data since the first sample, to which [`evidence`](Live::evidence) refers. A few bytes that answer a
    /// download at its end do not change it.
    pub fn direction(&self) -> Side {
        self.first.map_or(self.side, |first| self.totals().direction_since(&first, self.side))
    }

    /// Payload per second between the last two samples.
    pub fn rate(&self) -> Rate {
        self.history.rate.unwrap_or_default()
    }

    /// The latest sample.
    pub fn last(&self) -> Option<&Sample> {
        self.last.as_ref()
    }

    /// The smoothed RTT as this end knows it now.
    pub fn rtt(&self) -> Option<Duration> {
        let rtt = match self.side {
            Side::Sender => self.last?.rtt,
            Side::Receiver => self.last?.receiver_rtt,
        };
        (rtt > Duration::ZERO).then_some(rtt)
    }

    /// The RTT of the path. A receiver's estimate contains the sender's pauses: until enough samples or a full window rule these
    /// out, the RTT is the minimum.
    pub fn path_rtt(&self) -> Option<Duration> {
        let may_pause = self.history.steady < STEADY && !self.fills_round;
        match self.side {
            Side::Receiver if may_pause || !self.last?.timestamps => {
                self.rtt_min_of(Side::Receiver)
            }
            _ => self.rtt(),
        }
    }

    /// Whether [`path_rtt`](Live::path_rtt) is a receiver's estimate above the minimum: queueing delay, or short pauses of the
    /// sender.
    pub fn may_time_pauses(&self) -> bool {
        let both = self.path_rtt().zip(self.rtt_min_of(Side::Receiver));
        self.side == Side::Receiver && both.is_some_and(|(rtt, min)| has_standing_queue(rtt, min))
    }

    /// The minimum RTT known to this end.
    pub fn rtt_min(&self) -> Option<Duration> {
        self.rtt_min_of(self.direction())
    }

    fn rtt_min_of(&self, direction: Side) -> Option<Duration> {
        match direction {
            Side::Sender => self.last.map(|s| s.rtt_min).filter(|t| *t > Duration::ZERO),
            Side::Receiver => self.history.min_receiver_rtt,
        }
    }

    /// Delivered data over time.
    pub fn deliveries(&self) -> &Deliveries {
        &self.deliveries
    }

    /// The evidence for a verdict on the whole time.
    pub fn evidence(&self) -> Evidence {
        self.period().evidence
    }

    /// The whole time since the first sample.
    pub fn period(&self) -> Period {
        let windows = [self.history.own_windows, self.history.peer_windows];
        let median = self.round_trips.quantile(0.5).map(Duration::from_micros);
        self.first.map_or_else(Period::default, |first| self.since(&first, windows, median))
    }
}

/// Two consecutive samples.
#[derive(Debug, Clone, Copy)]
struct Step {
    last: Sample,
    sample: Sample,
    time: Duration,
}

impl Step {
    fn rate(&self, side: Side) -> Rate {
        let bytes = match side {
            Side::Sender => self.sample.acked.saturating_sub(self.last.acked),
            Side::Receiver => self.sample.received.saturating_sub(self.last.received),
        };
        if self.time > Duration::ZERO { bytes / self.time } else { Rate::ZERO }
    }

    /// Whether the program has no more to send.
    fn has_sent_all(&self) -> bool {
        let Step { last, sample: now, .. } = self;
        // While BBR probes the RTT, it marks its own low rate as application-limited until the data in flight are delivered
        // (bbr_update_min_rtt).
        let starved = now.starved && !last.probes_rtt() && !now.probes_rtt();
        // A program with more to send keeps at least a full segment waiting. Less, which Nagle's algorithm may hold, is also the
        // kernel's condition for application-limited (tcp_rate_check_app_limited).
        starved || now.not_sent == Bytes::ZERO || now.not_sent < now.mss
    }

    /// Whether all waiting data were written since the last sample, so that the data waiting then have been sent.
    fn has_sent_backlog(&self) -> bool {
        let written = |s: &Sample| {
            s.acked
                .saturating_add(s.mss * u64::from(s.segments_in_flight))
                .saturating_add(s.not_sent)
        };
        self.sample.not_sent <= written(&self.sample).saturating_sub(written(&self.last))
    }

    /// Whether a loss was being repaired, so that the window filled with data behind a hole.
    fn repairs(&self) -> bool {
        let Step { last, sample: now, .. } = self;
        last.recovering || now.recovering || now.retransmitted > last.retransmitted
    }

    /// Whether a first interval that covers all of a connection's time contains more than slow start: a queue stands, and the
    /// interval is twice as long as doubling from the initial window (RFC 6928) takes for this much data.
    fn is_past_slow_start(&self) -> bool {
        let (now, busy) = (&self.sample, self.sample.busy.saturating_sub(self.last.busy));
        let initial = (now.mss * INITIAL_SEGMENTS).as_f64().max(1.0);
        let rounds = (now.acked.as_f64() / initial + 1.0).log2().ceil();
        self.last.acked == Bytes::ZERO && now.queues(QUEUE) && busy > now.rtt.scaled(2.0 * rounds)
    }

    /// The rate at which data reached the other end.
    fn delivery_rate(&self, side: Side) -> Rate {
        let segments = self.sample.delivered.saturating_sub(self.last.delivered);
        match side {
            Side::Sender if segments > 0 && self.time > Duration::ZERO => {
                self.sample.mss * segments / self.time
            }
            _ => self.rate(side),
        }
    }
}

/// From this share of the capacity on, a rate counts as the capacity: the highest rate of many short intervals exceeds their mean
/// by a tenth.
const AT_CAPACITY: f64 = 0.85;

/// A congestion window this full binds, because the kernel sends several segments at once. A window that binds for this share of
/// an interval counts as binding throughout.
const FULL: f64 = 0.8;

/// Share of a full window below which the data per RTT are much less. Delayed acknowledgements and waiting for a whole segment's
/// space cost less.
const LOW_FLIGHT_SHARE: f64 = 0.5;

/// The segments of the initial window (RFC 6928).
const INITIAL_SEGMENTS: u64 = 10;

/// Minimum growth from sample to sample of a flow in slow start.
const SLOW_START_GROWTH: f64 = 1.25;

impl Sample {
    /// Bytes in flight: `sent` - `again` (retransmitted) - `acked`, and at most `segments` of `mss`.
    pub fn outstanding([sent, again, acked]: [Bytes; 3], segments: u32, mss: Bytes) -> Bytes {
        sent.saturating_sub(again).saturating_sub(acked).min(mss * u64::from(segments))
    }

    /// The direction in which more data waits, for the peer or for this end's program.
    fn waiting_side(&self) -> Option<Side> {
        let segments_in_flight = self.mss * u64::from(self.segments_in_flight);
        larger_side(self.not_sent.saturating_add(segments_in_flight), self.unread)
    }

    /// Whether more is in flight than the peer's window allows, beyond the rounding of its scale: the peer withdrew part of the
    /// window (RFC 7323 §2.4) and drops the data there.
    fn exceeds_window(&self) -> bool {
        let grain = Bytes::new(1 << self.peer_scale.min(14));
        let limit = self.peer_window.map(|window| window.saturating_add(grain));
        self.outstanding.zip(limit).is_some_and(|(outstanding, limit)| outstanding > limit)
    }

    /// Whether most of the data in flight is in this host's queues below TCP, so that the device, or a shaper on it, is slower
    /// than the path. Packets occupy more memory than their payload: an amount of memory equal to the flight holds half of its
    /// packets or more. Packets that wait for their pacing time count, too, but do not lengthen the RTT.
    fn queues_in_device(&self) -> bool {
        self.queues(QUEUE) && self.in_device >= self.mss * u64::from(self.segments_in_flight.max(1))
    }

    /// Whether data waits although neither program, buffer nor cwnd holds it: cwnd has more room than TCP leaves free to send a
    /// larger piece (a third, tcp_tso_should_defer), and more data waits than is in flight.
    fn waits_in_host(&self) -> bool {
        let has_room =
            3 * u64::from(self.segments_in_flight) < 2 * u64::from(self.congestion_window);
        has_room && self.has_enough_queued() && !self.recovering && !self.paces()
    }

    /// Whether poll(2) and epoll(7) report the socket as not writable: less than a third of its buffer is free
    /// (sk_stream_is_writeable). A program that waits for them does not fill it further.
    pub(crate) fn stops_polling_writer(&self) -> bool {
        self.queued > self.send_buffer.scaled(2.0 / 3.0)
    }

    /// Whether the flight is below `rate` * min RTT, which fills the path without a queue: a burst was sent, and part of it has
    /// already arrived.
    fn has_drained(&self, rate: Rate) -> bool {
        (self.mss * u64::from(self.segments_in_flight)).as_f64()
            < AT_CAPACITY * (rate * self.rtt_min).as_f64()
    }

    /// Whether the path delivered a round trip's data clearly faster than `rate`: it has capacity left between bursts.
    fn outruns(&self, rate: Rate) -> bool {
        self.delivery_rate.is_some_and(|path| rate.as_f64() < AT_CAPACITY * path.as_f64())
    }

    /// Whether more data waits than is in flight, so that the send buffer holds enough for the path.
    fn has_enough_queued(&self) -> bool {
        self.not_sent > self.mss * u64::from(self.segments_in_flight)
    }

    /// Whether the sender paces its data, which then waits although cwnd has room.
    fn paces(&self) -> bool {
        self.model_based || self.pacing_limit.is_some()
    }

    /// Whether BBR may be probing the RTT: its cwnd is then 4 (bbr_cwnd_min_target).
    fn probes_rtt(&self) -> bool {
        self.model_based && self.congestion_window <= 4
    }

    /// Whether the sender's RTT exceeds its minimum by `factor`, and by a millisecond.
    fn queues(&self, factor: f64) -> bool {
        // With fewer segments, delayed acknowledgements add as much to the RTT.
        const MIN_QUEUE_SEGMENTS: u32 = 8;
        self.congestion_window >= MIN_QUEUE_SEGMENTS
            && self.rtt_min > Duration::ZERO
            && self.rtt > self.rtt_min.scaled(factor) + Duration::from_millis(1)
    }
}
