//! The history of a connection, for comparison with its next sample.

use sweetspot_units::{Bytes, Duration, Rate, Time};

use super::model::{ModelHistory, Shaper};
use super::sums::{HeldWindows, RecentArrivals, WindowsSeen};
use super::{
    AT_CAPACITY, FULL, LOW_FLIGHT_SHARE, OBSERVATION, SLOW_START_GROWTH, Sample, Side, Step,
};
use crate::evidence::{QUEUE, QUEUE_AFTER_LOSS};

/// Share of the send buffer from which on it counts as full. A writer blocks when its queued data reach the buffer's size
/// (sk_stream_memory_free). A sample may already lack data acknowledged since then.
const FULL_BUFFER_SHARE: f64 = 0.9;

/// A send buffer this full binds. Its chronograph is not enough: it counts only while nothing waits to be sent, which shows 45 %
/// of the time with large writes and none with small ones (measured on Linux 6.18). A blocked writer continues when a third of
/// the buffer is free (sk_stream_min_wspace), but only a full buffer blocks it.
const BUFFER_FULL: f64 = 0.6;

/// Round trips over which a receiver's rate is averaged.
const ARRIVAL_ROUNDS: u64 = 4;

/// A peer that reads at once mostly advertises more than this share of its largest window. The rest are the last data, which may
/// be unread when they are acknowledged.
pub const PROMPT_WINDOW_SHARE: f64 = 2.0 / 3.0;

/// With fewer segments in flight, delayed acknowledgements and small writes add as much as a queue to a receiver's RTT.
const MIN_QUEUE_SEGMENTS: u64 = 8;

/// The kernel's longest tick (CONFIG_HZ=100), the resolution of the time since data last came.
const LONGEST_TICK: Duration = Duration::from_millis(10);

/// Segments that may be missing at once from a steady stream: receive offload delivers several together.
const OFFLOAD_SEGMENTS: u64 = 4;

/// Number of consecutive samples without a pause in the arrivals that rules out a sender which pauses for half of the time. A
/// sample finds such a pause at least every fourth time, so the chance to miss it is 0.75^12 = 3 %.
pub const STEADY: u32 = 12;

/// A reader that keeps up has read all data older than this.
const MAX_READ_DELAY: Duration = Duration::from_millis(20);
/// Unread data below this share of the window do not count.
const NEGLIGIBLE_UNREAD_SHARE: f64 = 1.0 / 16.0;
/// A writer often leaves half of its buffer free if at least one sample in this number found it so.
const SAMPLES_PER_FREE_BUFFER: u64 = 8;
/// A reader is often late if at least one sample in this number found it late.
const SAMPLES_PER_LATE_READ: u32 = 4;

/// State from earlier samples, for comparison with later ones.
#[derive(Debug, Clone, Copy, Default)]
pub struct ConnectionHistory {
    /// There is only one reading, with totals over the connection's life. The state at its end shows nothing about the time
    /// before.
    pub is_one_reading: bool,
    /// Both ends are on one host.
    pub within_host: bool,
    pub peer_windows: WindowsSeen,
    pub own_windows: WindowsSeen,
    /// The peer's windows while they held the sender, and the flights while they did not.
    pub held: HeldWindows,
    pub free: HeldWindows,
    /// The windows at both ends of intervals in which the peer's window held the sender throughout.
    pub full: HeldWindows,
    pub min_receiver_rtt: Option<Duration>,
    pub arrivals: RecentArrivals,
    /// Number of consecutive samples without a pause in the arrivals, and their time.
    pub steady: u32,
    pub steady_for: Duration,
    /// One bit per recent sample at the receiver, the newest lowest: whether the reader was late. Then the number of samples.
    pub late: u16,
    pub receiver_samples: u32,
    /// Number of a receiver's samples that could have found a pause of half an RTT in the arrivals, and of those that did.
    pub arrival_samples: u64,
    pub pauses: u64,
    /// The ones that found a pause longer than a round trip, and the longest pause.
    pub long_pauses: u64,
    pub longest_pause: Duration,
    /// The best rate between two samples.
    pub fastest: Rate,
    /// The rate of the last interval exceeded all earlier ones by so large a factor that the sender is in slow start.
    pub starts: bool,
    /// As `starts`, but also true if there are no earlier intervals.
    pub outdoes: bool,
    /// Data that arrived while a queue stood and more data waited to be sent.
    pub saturated: RecentArrivals,
    /// The rate of `saturated`: the capacity. The highest rate of many short intervals would exceed what the path carries.
    pub capacity: Option<Rate>,
    /// The time in which data queued in the sender's own host.
    pub in_device: Duration,
    /// The time in which a receiver's window was full behind a queue.
    pub filled: Duration,
    /// Number of samples while this end sent, and of those with less than a segment waiting behind a single one in flight.
    pub sent_samples: u64,
    pub held_small: u64,
    /// The rate at which the peer's window last became narrow.
    pub narrowed_at: Option<Rate>,
    /// The rate in the latest interval. `None` before the first interval of a connection that had already moved data.
    pub rate: Option<Rate>,
    /// One bit per recent window of the peer, the newest lowest: whether it was far below the largest. Then the number of
    /// windows.
    pub narrow: u16,
    pub windows: u32,
    /// Loss events: timeouts, and other losses, with all of a round trip as one event. Then the beginning of the latest one.
    pub loss_events: u64,
    pub lost_at: Option<Time>,
    /// Retransmission timeouts since the peer last acknowledged anything.
    pub unanswered: u64,
    /// The time of the last retransmission since the first sample, and whether the peer had withdrawn its window and dropped the
    /// data.
    pub repaired: Option<(Time, bool)>,
    /// The end of the data sent when the peer last withdrew its window.
    pub withdrawn: Bytes,
    /// The send buffer was full at its present size, so the writer blocks.
    pub buffer_was_full: bool,
    /// One bit per recent sample of a sender, the newest lowest: whether at least half of the send buffer was free.
    pub half_free: u16,
    /// One bit per recent sample of a sender, the newest lowest: whether the program had no more to send.
    pub sent_all: u16,
    /// The largest number of bytes in flight.
    pub largest_flight: Bytes,
    /// One bit per recent sample, the newest lowest: whether the flight had drained although the send buffer was full. The queue
    /// before it then belonged to a burst.
    pub drained: u16,
    /// The limits that shaped BBR's model.
    pub model: ModelHistory,
}

impl ConnectionHistory {
    /// Whether a queue stands on the way, by the receiver's own estimate of the round trip. It is the time from an
    /// acknowledgement to the data that echoes it (tcp_rcv_rtt_measure_ts), and so contains the sender's pauses. Only arrivals
    /// without pauses as long as the excess make it a queue.
    pub fn queues_at_receiver(&self, step: &Step) -> bool {
        self.seems_to_queue(step) && self.is_steady(step)
    }

    /// Whether the receiver's RTT estimate exceeds the minimum clearly, by queueing delay or by the sender's pauses. Within a
    /// host there is no path, and so no queue.
    pub fn seems_to_queue(&self, step: &Step) -> bool {
        let rtt = step.sample.receiver_rtt;
        let min = self.min_receiver_rtt.unwrap_or(Duration::ZERO);
        let standing = min.scaled(QUEUE) + Duration::from_millis(1);
        let much = step.rate(Side::Receiver) * rtt >= step.sample.mss * MIN_QUEUE_SEGMENTS;
        let shows = rtt.saturating_sub(min) >= shortest_pause(step) * 2;
        let tells = step.sample.timestamps && self.steady > 0 && !self.within_host;
        min > Duration::ZERO && rtt > standing && much && tells && shows
    }

    /// Whether enough consecutive samples without a pause, over at least a round trip, rule out that the sender pauses in each
    /// round trip.
    pub fn is_steady(&self, step: &Step) -> bool {
        self.steady >= STEADY && self.steady_for >= step.sample.receiver_rtt
    }

    /// Whether `rate` is close to the path's capacity, which a standing queue showed.
    pub fn is_at_capacity(&self, rate: Rate) -> bool {
        self.capacity.is_some_and(|capacity| rate.as_f64() >= AT_CAPACITY * capacity.as_f64())
    }

    /// Whether the reader is often late and its window shrinks. It then holds the sender even at a moment when it has read
    /// everything.
    pub fn reads_late(&self) -> bool {
        let shrinks = self
            .own_windows
            .shrunk_to
            .is_some_and(|w| w <= self.own_windows.largest.scaled(PROMPT_WINDOW_SHARE));
        shrinks && self.often_leaves_unread()
    }

    /// Whether the program often leaves data unread, if enough samples are known.
    pub fn often_leaves_unread(&self) -> bool {
        let known = self.receiver_samples >= SAMPLES_PER_LATE_READ;
        known && SAMPLES_PER_LATE_READ * self.late.count_ones() >= self.receiver_samples
    }

    /// The longest pause in the arrivals that does not explain the receiver's RTT estimate: half of the excess over the minimum.
    /// For a pause that does explain it, half of the samples exceed this length.
    fn short_pause(&self, step: &Step) -> Duration {
        let min = self.min_receiver_rtt.unwrap_or(Duration::ZERO);
        let half = step.sample.receiver_rtt.saturating_sub(min) / 2;
        half.min(LONGEST_TICK).max(shortest_pause(step))
    }

    fn record_arrivals(&mut self, step: &Step) {
        let now = &step.sample;
        let arrived = now.received > step.last.received;
        let steady = arrived && now.last_arrival.is_some_and(|gap| gap <= self.short_pause(step));
        // A sender held by its own window pauses once in a round trip. Half a round trip is long enough to be seen.
        let is_known = now.last_arrival.is_some() && self.short_pause(step) * 2 <= now.receiver_rtt;
        self.arrival_samples += u64::from(is_known);
        self.pauses += u64::from(is_known && !steady);
        // All that was in flight arrives within a round trip.
        let outlasts = |gap: &Duration| {
            let round_trip = self.min_receiver_rtt.unwrap_or_default();
            round_trip > Duration::ZERO && *gap > round_trip + shortest_pause(step)
        };
        if let Some(pause) = now.last_arrival.filter(outlasts).filter(|_| is_known) {
            self.long_pauses += 1;
            self.longest_pause = self.longest_pause.max(pause);
        }
        (self.steady, self.steady_for) = match steady {
            true => (self.steady + 1, self.steady_for + step.time),
            false => (0, Duration::ZERO),
        };
        let is_late = leaves_unread(now.unread, step) || has_waited(step);
        self.late = self.late << 1 | u16::from(is_late);
        self.receiver_samples = (self.receiver_samples + 1).min(u16::BITS);
    }

    /// Records the windows that both ends advertise in a sample, which may be the first one.
    pub fn record_windows(&mut self, now: &Sample) {
        self.own_windows.see(now.window, now.received, now.at);
        self.peer_windows.see(now.peer_window, now.acked, now.at);
        let Some(window) = now.peer_window else { return };
        if now.exceeds_window() {
            self.withdrawn = now.acked.saturating_add(now.outstanding.unwrap_or_default());
        }
        self.narrow = self.narrow << 1 | u16::from(self.is_narrow(window));
        self.windows = (self.windows + 1).min(u16::BITS);
    }

    /// Records an interval in which the peer's window held the sender for the time `bound`, if it did so throughout.
    fn record_full(&mut self, step: &Step, bound: Duration) {
        let (last, now) = (&step.last, &step.sample);
        let Some((before, after)) = last.peer_window.zip(now.peer_window) else { return };
        if bound < step.time.scaled(FULL) || step.repairs() {
            return;
        }
        let rtt = last.rtt.max(now.rtt);
        self.full.add(before / 2 + after / 2, rtt, step.time);
        self.full.acked += now.acked.saturating_sub(last.acked).as_f64();
    }

    /// Whether the flight fills the send buffer, which was full before, so that the writer blocks.
    pub fn fills_buffer(&self, step: &Step) -> bool {
        let now = &step.sample;
        let is_filled = self.buffer_was_full && now.queued >= now.send_buffer.scaled(BUFFER_FULL);
        let is_full = is_filled || (step.last.stops_polling_writer() && now.stops_polling_writer());
        is_full && !now.has_enough_queued() && !self.leaves_buffer_free()
    }

    /// Whether the writer often leaves half of the send buffer free. Such a writer is not held by the buffer: the kernel wakes
    /// writers when a third is free (sk_stream_is_writeable).
    fn leaves_buffer_free(&self) -> bool {
        let samples = self.sent_samples.min(u16::BITS.into());
        SAMPLES_PER_FREE_BUFFER * u64::from(self.half_free.count_ones()) >= samples
    }

    /// Whether the flow sends as fast as its program writes, even if other flows fill the path: mostly nothing waits to be sent,
    /// the data waiting now were just written, and the send buffer is often half free, which holds no writer.
    pub fn keeps_up(&self, step: &Step) -> bool {
        let samples = self.sent_samples.min(u16::BITS.into());
        let mostly = 2 * u64::from(self.sent_all.count_ones()) > samples;
        mostly && step.has_sent_backlog() && step.sample.queued < step.sample.send_buffer / 2
    }

    /// Whether a queue stands at the sample. A queue of bursts cut short by a full send buffer does not count, because it drains
    /// between them.
    pub fn has_standing_queue(&self, now: &Sample) -> bool {
        now.queues(QUEUE) && self.drained == 0
    }

    /// Records the end of a burst. The rate of bursts is not the path's capacity.
    fn record_bursts(&mut self, step: &Step) {
        let now = &step.sample;
        let all_sent = now.not_sent < now.mss && !now.recovering;
        let has_drained = now.has_drained(step.delivery_rate(Side::Sender));
        let burst = all_sent && has_drained && self.fills_buffer(step);
        self.drained = self.drained << 1 | u16::from(burst);
        if burst {
            (self.saturated, self.capacity) = (RecentArrivals::default(), None);
        }
    }

    fn is_narrow(&self, window: Bytes) -> bool {
        window <= self.peer_windows.largest.scaled(PROMPT_WINDOW_SHARE)
    }

    /// Whether the peer's window was limited on purpose: it became narrow, and the flow stayed as fast. If unread data had filled
    /// the peer's buffer instead, the flow would be slower since then by the rate that the buffer no longer takes.
    pub fn is_limited_by_choice(&self, rate: Rate) -> bool {
        // A limit on the window stays; unread data are read sooner or later.
        let stays = self.narrow & 0b11 == 0b11;
        let is_as_fast = |before: Rate| rate.as_f64() >= AT_CAPACITY * before.as_f64();
        stays && self.narrowed_at.is_some_and(is_as_fast)
    }

    /// Records the rate while the peer's window became narrow, if its buffer would have taken a noticeable part of it.
    fn record_narrowing(&mut self, step: &Step) {
        let Some((before, after)) = step.last.peer_window.zip(step.sample.peer_window) else {
            return;
        };
        if self.is_narrow(before) || !self.is_narrow(after) {
            return;
        }
        let rate = step.rate(Side::Sender);
        let filling = before.saturating_sub(after) / step.time;
        let shows = filling.as_f64() >= (1.0 - AT_CAPACITY) * rate.as_f64();
        self.narrowed_at = shows.then_some(rate);
    }

    pub fn learn(&mut self, step: &Step, side: Side) {
        let (last, now) = (&step.last, &step.sample);
        let full = |s: &Sample| s.queued >= s.send_buffer.scaled(FULL_BUFFER_SHARE);
        self.buffer_was_full &= now.send_buffer == last.send_buffer;
        self.buffer_was_full |= full(now) || (full(last) && now.send_buffer == last.send_buffer);
        let rate = step.delivery_rate(side);
        let known = self.fastest.as_f64();
        let grew = rate.as_f64() >= SLOW_START_GROWTH * known;
        self.starts = known > 0.0 && grew;
        self.outdoes = self.rate.is_some() && grew;
        self.fastest = self.fastest.max(rate);
        self.sent_samples += u64::from(side == Side::Sender);
        self.held_small += u64::from(side == Side::Sender && holds_partial_segment(now));
        if let Some(window) = now.peer_window {
            self.held.add(window, now.rtt, now.window_limited.saturating_sub(last.window_limited));
        }
        let busy = now.busy.saturating_sub(last.busy);
        let bound = now.window_limited.saturating_sub(last.window_limited);
        self.record_full(step, bound);
        let flight = now.mss * u64::from(now.segments_in_flight);
        let unbound = busy.saturating_sub(bound);
        self.free.add(flight, now.rtt, unbound);
        if unbound > Duration::ZERO {
            let share = unbound.as_secs_f64() / busy.as_secs_f64();
            self.free.acked += share * now.acked.saturating_sub(last.acked).as_f64();
        }
        self.largest_flight = self.largest_flight.max(flight);
        self.record_narrowing(step);
        // A receiver also knows the RTT of the handshake.
        let known = [now.receiver_rtt, now.rtt_min].into_iter().filter(|t| *t > Duration::ZERO);
        self.min_receiver_rtt = known.chain(self.min_receiver_rtt).min();
        match side {
            Side::Sender => {
                let is_free = now.queued < now.send_buffer / 2;
                self.half_free = self.half_free << 1 | u16::from(is_free);
                self.sent_all = self.sent_all << 1 | u16::from(step.has_sent_all());
                self.record_bursts(step);
                self.model.learn(step);
                if self.saturates(step) {
                    self.record_capacity(rate, step.time);
                }
                if now.queues_in_device() || now.waits_in_host() {
                    self.in_device += step.time;
                }
            }
            Side::Receiver => {
                let min = self.min_receiver_rtt.unwrap_or_default();
                let received = now.received.saturating_sub(last.received);
                let horizon = now.receiver_rtt.max(min) * ARRIVAL_ROUNDS;
                self.arrivals.add(received, step.time, horizon);
                self.record_arrivals(step);
                if self.queues_at_receiver(step) {
                    self.record_capacity(self.arrivals.rate(), step.time);
                }
            }
        }
        let answered = now.acked > last.acked || now.delivered > last.delivered;
        let timeouts = now.timeouts.saturating_sub(last.timeouts);
        self.unanswered = if answered { 0 } else { self.unanswered + timeouts };
        let lost = now.retransmitted > last.retransmitted || now.out_of_order > last.out_of_order;
        // The peer drops everything in flight beyond its window, until all of it has been acknowledged.
        let dropped = last.acked < self.withdrawn;
        let rtt = match side {
            Side::Sender => now.rtt,
            Side::Receiver => self.min_receiver_rtt.unwrap_or_default(),
        };
        let another = self.lost_at.is_none_or(|at| now.at.since(at) >= rtt);
        if lost && !dropped && (another || timeouts > 0) {
            self.loss_events += timeouts.max(1);
            self.lost_at = Some(now.at);
        }
        self.repaired = if lost { Some((now.at, dropped)) } else { self.repaired };
    }

    /// Whether the sender filled the path from one sample to the next: a queue stood at both, and more data waited than the path
    /// took. If a program sends less, or the flow still grows, the rate is only a lower bound of the capacity. The same holds for
    /// BBR, which paces such a program's bursts at the rate that it measured with this program's data.
    fn saturates(&self, step: &Step) -> bool {
        let Step { last, sample: now, time } = step;
        let queued = last.queues(QUEUE_AFTER_LOSS) && now.queues(QUEUE_AFTER_LOSS);
        let waits =
            |s: &Sample| s.not_sent >= s.mss || s.queued >= s.send_buffer.scaled(FULL_BUFFER_SHARE);
        let buffered = now.buffer_limited.saturating_sub(last.buffer_limited);
        // While the peer's window holds the sender, the rate does not show the capacity: a slow reader delays acknowledgements,
        // too.
        let held = now.window_limited.saturating_sub(last.window_limited);
        let is_busy = now.busy.saturating_sub(last.busy) >= held + time.scaled(FULL);
        let has_more = waits(now) || buffered > Duration::ZERO || now.queues_in_device();
        let grows = self.outdoes && !step.is_past_slow_start();
        let sends_less = now.model_based && (last.starved || now.starved);
        let sends_windows = self.model.shaper(now) == Some(Shaper::PeerWindow);
        !self.is_one_reading
            && queued
            && self.drained == 0
            && is_busy
            && has_more
            && !grows
            && !sends_less
            && !sends_windows
    }

    fn record_capacity(&mut self, rate: Rate, time: Duration) {
        self.saturated.add(rate * time, time, OBSERVATION);
        self.capacity = Some(self.saturated.rate());
    }

    /// Whether the peer's window opened and closed: in most of the time in which it held the sender, much less than a window per
    /// RTT was delivered.
    pub fn larger_window_is_slower(&self) -> bool {
        let covers = 2.0 * self.full.seconds >= self.held.seconds;
        covers && self.full.rate_ratio().is_some_and(|ratio| ratio < LOW_FLIGHT_SHARE)
    }

    /// Whether the peer's window is small because data are unread there: mostly far below its earlier size. The right edge does
    /// not move back (RFC 9293, SHLD-14), so the difference was acknowledged and is still in the buffer. A window at the maximum
    /// that its scale allows does not show this.
    pub fn peer_reads_slowly(&self) -> bool {
        2 * self.narrow.count_ones() > self.windows
    }

    /// Whether sent data are unread at the peer. Within a host nothing else delays their acknowledgement.
    pub fn waits_at_reader(&self, now: &Sample) -> bool {
        self.within_host && now.rtt > now.rtt_min.scaled(QUEUE) + Duration::from_millis(1)
    }

    /// Whether anything was retransmitted within the last `time`, since the first sample.
    pub fn has_repaired_within(&self, now: &Sample, time: Duration) -> bool {
        self.repaired.is_some_and(|(then, _)| now.at.since(then) <= time)
    }

    /// Whether the latest retransmission was of data that the peer had dropped after it withdrew its window.
    pub fn was_dropped_by_peer(&self) -> bool {
        self.repaired.is_some_and(|(_, dropped)| dropped)
    }
}

/// The shortest pause in the arrivals that samples show reliably. The kernel measures in ticks, and even a steady stream has
/// short pauses.
fn shortest_pause(step: &Step) -> Duration {
    let rate = step.rate(Side::Receiver);
    let apart =
        if rate > Rate::ZERO { step.sample.mss * OFFLOAD_SEGMENTS / rate } else { Duration::ZERO };
    let tick = step.sample.tick;
    let tick = if tick > Duration::ZERO { tick } else { LONGEST_TICK };
    tick.max(apart)
}

/// Whether a reader that leaves `unread` is late. A reader that keeps up leaves almost nothing, and a late one more than the
/// window has space for.
pub fn leaves_unread(unread: Bytes, step: &Step) -> bool {
    let now = &step.sample;
    let recent = (step.rate(Side::Receiver) * MAX_READ_DELAY).max(negligible(step));
    now.window.is_some_and(|window| now.unread > window) || unread > recent
}

/// Whether the unread data of a sample have waited for longer than with a reader that keeps up.
fn has_waited(step: &Step) -> bool {
    let now = &step.sample;
    now.unread > negligible(step) && now.last_arrival.is_some_and(|ago| ago > MAX_READ_DELAY)
}

/// Unread data that do not count: of a small share of the window or, if that is unknown, the data that arrive together.
fn negligible(step: &Step) -> Bytes {
    match step.sample.window {
        Some(window) => window.scaled(NEGLIGIBLE_UNREAD_SHARE),
        None if step.rate(Side::Receiver) > Rate::ZERO => step.sample.mss * OFFLOAD_SEGMENTS,
        None => Bytes::ZERO,
    }
}

/// Whether less than a segment waits behind a single one in flight, as Nagle's algorithm holds it (RFC 1122, section 4.2.3.4).
fn holds_partial_segment(now: &Sample) -> bool {
    now.segments_in_flight == 1 && now.not_sent > Bytes::ZERO && now.not_sent < now.mss
}
