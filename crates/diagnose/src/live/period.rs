//! A part of a connection's time: its division among the classes, and the evidence for a verdict.

use sweetspot_units::{Bytes, Duration, Rate, Time};

use super::history::STEADY;
use super::sums::{HeldWindows, WindowsSeen};
use super::{Live, Sample, Side, larger_side};
use crate::explained::{FACTOR, allowed, explains};
use crate::gain::{outruns_losses, rates_at_losses};
use crate::limits::FREQUENT_SHARE;
use crate::verdict::NamedLimit;
use crate::{Arrivals, Class, Evidence, LimitVerdict, Limits, Reader};

/// A part of a connection's time, from one sample to a later one.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub struct Period {
    /// The direction of most data.
    pub direction: Side,
    /// The division of the time, by the rules for that direction.
    pub limits: Limits,
    /// The evidence for a verdict.
    pub evidence: Evidence,
    /// The time of its last sample.
    pub ended: Time,
}

impl Period {
    /// The beginning and the end.
    pub fn span(&self) -> (Time, Time) {
        (self.ended - self.evidence.lasted, self.ended)
    }

    /// The limit, in words.
    pub fn verdict(&self) -> LimitVerdict {
        LimitVerdict::new(&self.limits, &self.evidence)
    }

    /// The limit of that verdict, without its words.
    pub fn named(&self) -> NamedLimit {
        NamedLimit::new(&self.limits, &self.evidence)
    }

    /// The same period beside a connection that keeps the path's queue: a full window is then the limit, not the path.
    #[must_use]
    pub fn beside_filling_flow(mut self) -> Period {
        self.evidence.attribute_to_window(&mut self.limits);
        self
    }

    /// Whether only a lack of data to send held the connection.
    pub fn is_idle(&self) -> bool {
        let moved = self.evidence.bytes > Bytes::ZERO;
        !moved && matches!(self.named().class, Class::Application | Class::Unknown)
    }
}

/// Sums from the beginning up to a sample. The difference of two belongs to the time between them.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Totals {
    pub at: Time,
    acked: Bytes,
    received: Bytes,
    segments: u64,
    retransmitted: u64,
    timeouts: u64,
    sending: Limits,
    pub receiving: Limits,
    held: HeldWindows,
    free: HeldWindows,
    full: HeldWindows,
    loss_events: u64,
    sent_samples: u64,
    held_small: u64,
    arrival_samples: u64,
    pauses: u64,
    long_pauses: u64,
    in_device: Duration,
    filled: Duration,
}

impl Totals {
    /// The sums at a first sample.
    pub fn beginning(sample: &Sample) -> Totals {
        Totals {
            at: sample.at,
            acked: sample.acked,
            received: sample.received,
            segments: sample.segments,
            retransmitted: sample.retransmitted,
            timeouts: sample.timeouts,
            ..Totals::default()
        }
    }

    pub fn has_moved_nothing(&self) -> bool {
        (self.acked, self.received) == (Bytes::ZERO, Bytes::ZERO)
    }

    /// Payload in each direction since `first`: sent, received.
    pub fn bytes_since(&self, first: &Totals) -> [Bytes; 2] {
        [self.acked.saturating_sub(first.acked), self.received.saturating_sub(first.received)]
    }

    /// The division of the time since `first`, by the rules for `direction`. A time without any data is idle.
    fn limits_since(&self, first: &Totals, direction: Side) -> Limits {
        let mut limits = match direction {
            Side::Sender => self.sending.since(&first.sending),
            Side::Receiver => self.receiving.since(&first.receiving),
        };
        if self.bytes_since(first) == [Bytes::ZERO; 2] {
            limits.reassign(Class::Application, Class::Idle);
        }
        limits
    }

    /// The direction with more payload since `first`; `otherwise` if both are equal.
    pub fn direction_since(&self, first: &Totals, otherwise: Side) -> Side {
        let [sent, received] = self.bytes_since(first);
        larger_side(sent, received).unwrap_or(otherwise)
    }
}

impl Live {
    /// The sums up to the latest sample.
    pub(super) fn totals(&self) -> Totals {
        let begun = self.last.as_ref().map_or_else(Totals::default, Totals::beginning);
        let history = &self.history;
        Totals {
            sending: self.sending,
            receiving: self.receiving,
            held: history.held,
            free: history.free,
            full: history.full,
            loss_events: history.loss_events,
            sent_samples: history.sent_samples,
            held_small: history.held_small,
            arrival_samples: history.arrival_samples,
            pauses: history.pauses,
            long_pauses: history.long_pauses,
            in_device: history.in_device,
            filled: history.filled,
            ..begun
        }
    }

    /// The time since `first`. This end and its peer advertised `windows` in it, and `median` is the median RTT while data moved.
    pub(super) fn since(
        &self,
        first: &Totals,
        windows: [WindowsSeen; 2],
        median: Option<Duration>,
    ) -> Period {
        let Some(last) = self.last else { return Period::default() };
        let now = self.totals();
        let direction = now.direction_since(first, self.side);
        let [sent, received] = now.bytes_since(first);
        let mut limits = now.limits_since(first, direction);
        let reader = reader(direction, &limits);
        let held = now.held.since(&first.held).mean();
        let free = now.free.since(&first.free);
        let (rate, free) = (free.rate(), free.mean());
        let [own, peer] = windows;
        let (bytes, window, windows, scale) = match direction {
            Side::Sender => {
                let full = now.full.since(&first.full).rate();
                let window = held.map(|held| mean_window(held, full, peer.largest));
                let window = window.or(last.peer_window);
                (sent, window, peer, last.peer_scale)
            }
            Side::Receiver => (received, last.window, own, last.scale),
        };
        let lasted = now.at.since(first.at);
        let goodput = if lasted > Duration::ZERO { bytes / lasted } else { Rate::ZERO };
        let mut evidence = Evidence {
            goodput,
            rtt: median.or(self.rtt()),
            rtt_is_smoothed: median.is_none() || self.history.is_one_reading,
            window,
            window_round: held.map(|(_, rtt)| rtt).filter(|_| direction == Side::Sender),
            min_window: windows.shrunk_to,
            largest_window: Some(windows.largest).filter(|largest| *largest > Bytes::ZERO),
            scale: Some(scale),
            reader,
            is_sampled: true,
            flight: free.map(|free| mean_window(free, rate, self.history.largest_flight)),
            flight_round: free.map(|(_, rtt)| rtt),
            mss: last.mss,
            zero_windows: windows.closed,
            is_closed: window == Some(Bytes::ZERO),
            lasted,
            bytes,
            unknown_because: Some(unknown_because(direction)),
            ..Evidence::default()
        };
        evidence.in_device =
            now.in_device.saturating_sub(first.in_device) * 2 > limits.time(Class::Bandwidth);
        let filled = now.filled.saturating_sub(first.filled);
        evidence.fills_window =
            direction == Side::Receiver && filled * 2 > limits.time(Class::Bandwidth);
        self.note_path(direction, &mut evidence);
        note_segments(direction, [first, &now], self.history.longest_pause, &mut evidence);
        match direction {
            Side::Sender => evidence.model_based = last.model_based,
            Side::Receiver => evidence.unread = Some(last.unread),
        }
        account_for_rate(direction, last.timestamps, &mut limits, &mut evidence);
        let keeps_all = bytes == Bytes::ZERO && last.unread > Bytes::ZERO;
        let waits = (direction == Side::Receiver && keeps_all).then_some(lasted);
        let closed_for = windows.closed_since.map(|since| last.at.since(since));
        evidence.note_hang(closed_for.or(waits), limits.time(Class::ReceiverApplication));
        Period { direction, limits, evidence, ended: last.at }
    }

    /// Records the known facts about the path. Its capacity is at least the goodput.
    fn note_path(&self, direction: Side, evidence: &mut Evidence) {
        let goodput = evidence.goodput;
        let capacity = self.history.capacity.filter(|c| *c >= goodput.scaled(0.95));
        evidence.capacity = capacity.map(|capacity| capacity.max(goodput));
        evidence.best = Some(self.history.fastest);
        evidence.rtt_min = self.rtt_min_of(direction);
    }
}

/// Notes the segments, losses and arrivals between two moments, as far as the end that was asked knows them.
fn note_segments(
    direction: Side,
    [first, now]: [&Totals; 2],
    longest: Duration,
    evidence: &mut Evidence,
) {
    evidence.segments = now.segments.saturating_sub(first.segments);
    evidence.loss_events = now.loss_events - first.loss_events;
    evidence.timeouts = now.timeouts.saturating_sub(first.timeouts);
    match direction {
        Side::Sender => {
            evidence.retransmitted = Some(now.retransmitted.saturating_sub(first.retransmitted));
            evidence.lost_before = first.retransmitted > 0;
            let all = now.sent_samples - first.sent_samples;
            evidence.holds_partial_segment =
                mostly_holds_partial_segment([now.held_small - first.held_small, all]);
        }
        Side::Receiver => {
            let all = now.arrival_samples - first.arrival_samples;
            evidence.arrivals = arrivals([now.pauses - first.pauses, all]);
            let is_often = SAMPLES_PER_PAUSE * (now.long_pauses - first.long_pauses) >= all;
            let by_program = is_often && evidence.arrivals == Arrivals::Pausing;
            evidence.program_pause =
                Some(longest).filter(|_| by_program && evidence.loss_events == 0);
        }
    }
}

/// Whether the receiving program reads in time. Its own kernel knows the unread data.
fn reader(direction: Side, limits: &Limits) -> Reader {
    match direction {
        _ if limits.share(Class::ReceiverApplication) >= FREQUENT_SHARE => Reader::Late,
        Side::Receiver => Reader::Prompt,
        Side::Sender => Reader::Unknown,
    }
}

/// Corrects the limits by the evidence of the whole time, which shows more than single intervals.
fn account_for_rate(
    direction: Side,
    has_timestamps: bool,
    limits: &mut Limits,
    evidence: &mut Evidence,
) {
    match direction {
        Side::Sender => account_for_window(limits, evidence),
        Side::Receiver => {
            account_for_losses(limits, evidence);
            // If the sending program is the limit, a receiver's RTT estimate is the time between writes. Without timestamps it is
            // the time in which a window arrives.
            let by_program = limits.dominant() == Class::Application;
            let by_window = limits.dominant() == Class::ReceiverWindow;
            let in_pauses = by_program && evidence.arrivals == Arrivals::Pausing;
            if in_pauses || (!has_timestamps && !by_window) {
                evidence.rtt = None;
            }
        }
    }
}

/// Makes a limit by the peer's window, which the kernel timed, account for the rate. Samples show the window only at moments. If
/// far less than the sampled window was delivered per RTT, it was mostly smaller, because data were unread. If more was
/// delivered, it was mostly larger.
fn account_for_window(limits: &mut Limits, e: &mut Evidence) {
    let share = limits.share(Class::ReceiverWindow);
    let Some(allowed) = allowed(Class::ReceiverWindow, e).map(Rate::as_f64) else { return };
    if limits.dominant() != Class::ReceiverWindow || explains(Class::ReceiverWindow, share, e) {
        return;
    }
    let loses = rates_at_losses(e).is_some_and(|[low, _]| low.as_f64() < allowed);
    if allowed * share > e.goodput.as_f64() && loses {
        limits.reassign_to_unknown(Class::ReceiverWindow);
    } else if allowed * share > e.goodput.as_f64() {
        limits.reassign(Class::ReceiverWindow, Class::ReceiverApplication);
        e.reader = Reader::Late;
    } else {
        e.window = None;
    }
}

/// Makes losses that a receiver saw account for the rate. If a loss-based sender would reach about this rate, its congestion
/// window is the limit between the losses, too. If it would be far slower, the sender does not react to losses.
fn account_for_losses(limits: &mut Limits, e: &Evidence) {
    let Some([low, high]) = rates_at_losses(e) else { return };
    if outruns_losses(e) {
        limits.reassign(Class::Congestion, Class::Unknown);
    } else if low <= e.goodput.scaled(FACTOR) && e.goodput <= high.scaled(FACTOR) {
        limits.reassign(Class::Unknown, Class::Congestion);
    }
}

/// Minimum number of samples with a small waiting segment that is not attributed to chance.
const MIN_HELD_SAMPLES: u64 = 5;

/// Whether less than a segment waited behind a single one in flight in most samples: in `held` of `all`.
fn mostly_holds_partial_segment([held, all]: [u64; 2]) -> bool {
    held >= MIN_HELD_SAMPLES && 2 * held > all
}

fn unknown_because(direction: Side) -> &'static str {
    match direction {
        Side::Sender => "no data was sent while it was watched",
        Side::Receiver => "nothing at this receiver limits it",
    }
}

/// The mean window while it held the sender, from the samples' `mean` window and RTT. The flight never exceeds the window, so the
/// mean window is at least `full`, the rate while the window held the sender, times the RTT (J. Little, "A proof for the queuing
/// formula L = lambda W", Operations Research 9, 1961). Samples in step with a reader that opens the window in jumps find less.
fn mean_window((mean, rtt): (Bytes, Duration), full: Option<Rate>, largest: Bytes) -> Bytes {
    full.map_or(mean, |rate| mean.max((rate * rtt).min(largest)))
}

/// One sample in this number, at least, finds a sender in its pause that pauses for half of the time.
const SAMPLES_PER_PAUSE: u64 = 4;

/// Steady or pausing arrivals, from the number of samples that found a pause and of all. Samples find a sender that pauses for half of
/// the time in a pause at least every fourth time, and [`STEADY`] of them rule it out.
fn arrivals([pauses, all]: [u64; 2]) -> Arrivals {
    let ruled_out = u64::from(STEADY);
    match () {
        () if all < ruled_out => Arrivals::Unknown,
        () if SAMPLES_PER_PAUSE * pauses >= all => Arrivals::Pausing,
        () if ruled_out * pauses <= all => Arrivals::Steady,
        () => Arrivals::Unknown,
    }
}
