//! Verdicts on a captured connection, one per direction that carried data.

pub(crate) mod classifier;
mod closed;
mod doubts;
mod opening;

use sweetspot_trace::flow::{Connection, Hold, Silence, Stream, Vantage};
use sweetspot_units::{Bytes, Duration, Rate, Time};

pub use self::classifier::shows_at_once;
use self::classifier::{Classifier, FULL_PATH_SHARE, StreamSummary};
pub use self::closed::probes_window;
use self::doubts::doubt;
pub use self::doubts::is_brief;
pub use self::opening::fails_to_open;
use self::opening::never_established;
use crate::evidence::{Nagle, TimerWait};
use crate::explained::explains;
use crate::flow::OnFullPath;
use crate::limits::{FREQUENT_SHARE, MIN_PRINTED_SHARE};
use crate::live::PROMPT_WINDOW_SHARE;
use crate::path::{PathEstimate, loses_elsewhere};
use crate::quantities::in_rate;
use crate::remarks::{UNKNOWN_SCALE, beside, remarks};
use crate::unscaled::filled_window;
use crate::words::is_noticeable;
use crate::{CaptureExtent, Class, Evidence, Facts, Flow, LimitVerdict, Limits, Reader, Stall};

/// Minimum number of waits for delayed acknowledgements that are attributed to Nagle's algorithm, not to chance.
const NAGLE_WAITS: u64 = 5;

/// Divides the time of the stream that `side` sent. Also returns the evidence, and a classifier for each part of the time.
pub fn judge(connection: &Connection, side: usize) -> (Limits, Evidence, Classifier) {
    let stream = &connection.streams[side];
    let mut evidence = evidence(stream, connection.begun, connection.lasted());
    evidence.stall =
        evidence.stall.map(|stall| Stall { reset: reset(connection, side, &stall), ..stall });
    let begins_midway = connection.handshake.offers[0].is_none();
    evidence.doubts_rtt_min = begins_midway && is_never_empty(stream);
    let is_brief = is_brief(connection, side);
    let mut summary = StreamSummary::new(stream, &evidence, begins_midway, is_brief);
    if let Some(window) = summary.filled {
        (evidence.window, evidence.window_round) = (Some(window), evidence.flight_round);
    }
    let mut limits = Classifier { summary, known: true }.limits(stream);
    evidence.reader = reader(stream, &limits);
    let is_late = evidence.reader == Reader::Late && is_filled_by_unread(&evidence);
    if is_late || stream.reader_is_late() {
        evidence.reader = Reader::Late;
        summary.unread_fills = true;
        limits = Classifier { summary, known: true }.limits(stream);
    }
    let probes = probes_window(connection).filter(|(prober, _)| *prober == side);
    if let Some((_, closed_for)) = probes {
        limits = Limits::only(Class::ReceiverApplication, closed_for);
        (evidence.unknown_because, evidence.reader) = (None, Reader::Late);
    }
    let closed_for = stream.closed_since().map(|since| connection.last.since(since));
    evidence.note_hang(closed_for, limits.time(Class::ReceiverApplication));
    let held = |hold: Hold| stream.accounts().held(&[hold]);
    if held(Hold::Granted) > held(Hold::Waiting) {
        let granted = Evidence { granted: Some(stream.granted_flight()), ..evidence };
        // If the receiving program grants late, the waits are longer than its window explains.
        if explains(Class::WaitingForPeer, limits.family_share(Class::Application), &granted) {
            evidence = granted;
        }
    }
    let time = limits.total().max(Duration::from_nanos(1));
    // A connection without duration on the capture's clock gets no verdict.
    let known = evidence.unknown_because.is_none() && limits.total() > Duration::ZERO;
    evidence.timer = timer(stream, &limits);
    if !known {
        limits = Limits::only(Class::Unknown, time);
    }
    evidence.unknown_because = evidence.unknown_because.or_else(|| doubt(stream, &summary));
    (limits, evidence, Classifier { summary, known })
}

/// Whether the receiving program reads in time. Windows show that if they are known from the beginning and exceeded 64 KiB, the
/// first window of an autotuned buffer: unread data keep such a buffer from growing.
fn reader(stream: &Stream, limits: &Limits) -> Reader {
    let counts = stream.counts();
    let late = limits.share(Class::ReceiverApplication);
    if late >= FREQUENT_SHARE {
        Reader::Late
    } else if late == 0.0 && counts.window_known && counts.largest_window > u16::MAX.into() {
        Reader::Prompt
    } else {
        Reader::Unknown
    }
}

/// Whether unread data kept the windows that were full far below the largest one: a buffer that once held more still does.
fn is_filled_by_unread(e: &Evidence) -> bool {
    let both = e.window.zip(e.largest_window);
    both.is_some_and(|(window, largest)| window <= largest.scaled(PROMPT_WINDOW_SHARE))
}

/// The path's capacity as trains of acknowledgements show it. If it is below the mean delivery rate, the trains span pauses and
/// show nothing. A rate a little above theirs passed the path, too.
fn capacity(stream: &Stream, goodput: Rate) -> Option<Rate> {
    let trains = stream.train_rate().filter(|rate| *rate >= goodput.scaled(0.95));
    trains.map(|rate| rate.max(goodput))
}

/// Whether data arrive with the spacing of a link, a shaper or a pacing sender. Either all segments have the same distance, at
/// any capture point, or train rates are even in a receiver's capture without timestamps, which cannot show whether data
/// queued. If a window or a program held the sender, there would be pauses between flights.
fn arrives_evenly(stream: &Stream) -> bool {
    const MIN_SEGMENTS: u64 = 100;
    const EVEN_RATE_RATIO: f64 = 1.1;
    if stream.is_even() {
        return true;
    }
    let rates = stream.train_rates();
    let unseen = stream.round_trips().vantage() == Vantage::Receiver && !stream.counts().timestamps;
    let quantile = |share| rates.quantile(share).unwrap_or(0) as f64;
    unseen
        && rates.total() >= MIN_SEGMENTS * stream.mss()
        && quantile(0.9) <= quantile(0.25) * EVEN_RATE_RATIO
}

/// Whether pieces of different sizes are paced, and this pace accounts for almost all of the time.
fn is_paced(stream: &Stream, goodput: Rate) -> bool {
    stream.pace().is_some_and(|pace| goodput >= pace.scaled(FULL_PATH_SHARE))
}

fn evidence(stream: &Stream, begun: Time, lasted: Duration) -> Evidence {
    let counts = stream.counts();
    let retransmissions = stream.retransmissions();
    let goodput = goodput(stream, lasted);
    // A round may begin behind data already in flight, and seem short. A flight is acknowledged once per RTT at most.
    let min = stream.round_trips().min().unwrap_or_default();
    let full = stream.full_rounds().mean().map(|(window, round)| (window, round.max(min)));
    // The mean flight; its peaks, which bursts raise, carry no more than that (J. Little's law, as in the live rules).
    let free = stream.free_rounds().mean().map(|(bytes, round)| {
        let round_trip = round.max(min);
        (bytes / round * round_trip, round_trip)
    });
    let (waits, time) = (counts.nagle_waits, counts.nagle_time);
    let own = stream.accounts().held(&[Hold::Idle, Hold::Pausing]);
    let nagle = (waits >= NAGLE_WAITS).then(|| Nagle { waits, time, leads: time * 2 >= own });
    let passes = counts
        .smallest_lost
        .filter(|lost| counts.largest_acked > 0 && counts.largest_acked < *lost)
        .map(|_| Bytes::new(counts.largest_acked));
    Evidence {
        goodput,
        capacity: capacity(stream, goodput),
        best: best(stream).filter(|_| measures_rounds(stream)),
        rtt_min: stream.round_trips().min(),
        rtt: stream.round_trips().median(),
        doubts_queue: stream.round_trips().vantage() == Vantage::Unknown,
        seen_from_receiver: stream.round_trips().vantage() == Vantage::Receiver,
        window: full.map(|(window, _)| window),
        window_round: full.map(|(_, round)| round),
        min_window: counts.windows.min().map(Bytes::new),
        largest_window: counts.windows.largest().map(Bytes::new),
        flight: free.map(|(flight, _)| flight),
        flight_round: free.map(|(_, round)| round),
        mss: Bytes::new(stream.mss()),
        segments: counts.data_segments,
        retransmitted: Some(retransmissions.segments()),
        loss_events: retransmissions.loss_events(),
        loses_elsewhere: loses_elsewhere(stream),
        timeouts: retransmissions.timeouts,
        zero_windows: counts.zero_windows,
        lasted,
        bytes: Bytes::new(counts.bytes),
        stall: stall(stream, begun),
        even: arrives_evenly(stream),
        paced: is_paced(stream, goodput),
        nagle,
        passes,
        is_unacknowledged: counts.acked == 0,
        unknown_because: one_sided(stream),
        ..Evidence::default()
    }
}

/// Payload per second from the first data to the last data or acknowledgement. If both are one moment, the connection's
/// duration `lasted` is used instead.
fn goodput(stream: &Stream, lasted: Duration) -> Rate {
    let counts = stream.counts();
    let first = [counts.first_data, counts.first_unseen].into_iter().flatten().min();
    let active = first.zip(counts.last_ack.max(counts.last_data));
    let active = active.map_or(Duration::ZERO, |(first, last)| last.since(first));
    let active = if active > Duration::ZERO { active } else { lasted };
    // A burst passes the capture point in almost no time, but no transfer takes less than one round trip.
    let active = active.max(stream.round_trips().min().unwrap_or_default());
    // Without acknowledgements, count the bytes sent.
    let bytes = if counts.acked == 0 { counts.bytes } else { counts.acked };
    if active > Duration::ZERO { Bytes::new(bytes) / active } else { Rate::ZERO }
}

/// Whether the duration of rounds is known. At an unknown distance from the sender they seem too short, and below a tick of the
/// capture's clock they take no time.
fn measures_rounds(stream: &Stream) -> bool {
    let trips = stream.round_trips();
    trips.vantage() != Vantage::Unknown && trips.min().is_some_and(|min| min > Duration::ZERO)
}

/// The rate per round trip at or above which the fastest tenth of the bytes was delivered.
fn best(stream: &Stream) -> Option<Rate> {
    let mut accounts: Vec<(u64, f64)> = stream
        .accounts()
        .iter()
        .map(|(account, time)| (account.rate, account.rate as f64 * time.as_secs_f64()))
        .collect();
    accounts.sort_unstable_by_key(|(rate, _)| std::cmp::Reverse(*rate));
    let tenth = accounts.iter().map(|(_, bits)| bits).sum::<f64>() / 10.0;
    let mut above = 0.0;
    let rate = accounts.into_iter().find(|(_, bits)| {
        above += bits;
        above >= tenth
    });
    rate.map(|(rate, _)| Rate::from_bits_per_second(rate)).filter(|rate| *rate > Rate::ZERO)
}

/// The waits for the sender's retransmission timer, if their share of the time in `limits` is printed.
fn timer(stream: &Stream, limits: &Limits) -> Option<TimerWait> {
    let waits = stream.timer_waits();
    let leads = waits.time * 2 > limits.time(Class::Congestion);
    let matters = waits.time >= limits.total().scaled(MIN_PRINTED_SHARE);
    (waits.count > 0 && matters).then_some(TimerWait { waits, leads })
}

fn stall(stream: &Stream, begun: Time) -> Option<Stall> {
    let Silence { since, lasted, repeats, ended, beyond } = stream.silence()?;
    let unheard = stream.counts().acks == 0;
    // Any repair takes a round trip, and the timer before it another.
    let repair = stream.round_trips().median().unwrap_or_default() * 2;
    (!ended || lasted > repair).then_some(Stall {
        after: since.since(begun),
        lasted,
        repeats,
        ended,
        beyond,
        unheard,
        reset: None,
    })
}

/// When the receiver of the data that `side` sent reset the connection, if the sender still retransmitted after that.
fn reset(connection: &Connection, side: usize, stall: &Stall) -> Option<Duration> {
    let reset = connection.resets[1 - side]?.since(connection.begun);
    (!stall.ended && reset < stall.after + stall.lasted).then_some(reset)
}

/// Why a capture with only one side of the connection shows no limit. Retransmissions do show that no answer came.
fn one_sided(stream: &Stream) -> Option<&'static str> {
    let counts = stream.counts();
    let shut = stream.shut() > Duration::ZERO;
    if counts.acks == 0 && stream.silence().is_none() {
        Some("the capture has only one direction of it")
    } else if counts.acked == 0 && counts.data_segments > 1 && stream.silence().is_none() && !shut {
        Some("the capture has no acknowledgement of its data")
    } else if counts.data_segments == 0 && !shut {
        Some("the capture has only the acknowledgements of it")
    } else {
        None
    }
}

/// The flows of a connection: the direction with more data, and the other one if it had at least a tenth as much. A connection
/// that never opened is one flow.
pub fn flows(connection: &Connection) -> Vec<Flow> {
    let bytes = |side: usize| {
        let counts = connection.streams[side].counts();
        counts.bytes.max(counts.acked)
    };
    if bytes(0) == 0 && bytes(1) == 0 {
        let probing = probes_window(connection).map(|(side, _)| flow(connection, side));
        return never_established(connection).or(probing).into_iter().collect();
    }
    let main = usize::from(bytes(1) > bytes(0));
    let is_reported =
        |side: usize| bytes(side) > 0 && (side == main || bytes(side) * 10 >= bytes(main));
    let sides = [main, 1 - main].into_iter().filter(|side| is_reported(*side));
    let mut flows: Vec<Flow> = sides.map(|side| flow(connection, side)).collect();
    if let [one, other] = &mut flows[..] {
        one.answers_late_messages(other);
        other.answers_late_messages(one);
    }
    flows
}

fn flow(connection: &Connection, side: usize) -> Flow {
    let stream = &connection.streams[side];
    let (limits, mut evidence, classifier) = judge(connection, side);
    evidence.scale = connection.handshake.scale(1 - side);
    let offers = connection.handshake.offers;
    let agreed = offers.iter().flatten().all(|offer| offer.scale.is_some());
    evidence.unscaled = evidence.scale.is_some() && !agreed;
    let sack = offers[0].zip(offers[1]).map(|(opener, opened)| opener.sack && opened.sack);
    let path = PathEstimate::new(stream, evidence.goodput, connection.ends[side].is_ipv6());
    evidence.doubts_capacity = path.capacity_bps.value().is_none();
    let mut flow = Flow::new(connection.ends[side], connection.ends[1 - side], limits, &evidence);
    flow.facts = Some(Facts::new(stream, evidence.scale, sack));
    flow.path = Some(path);
    flow.replay();
    flow.on_full_path = Some(OnFullPath {
        limits: classifier.on_full_path().limits(stream),
        deliveries: stream.deliveries().clone(),
    });
    flow.remarks = remarks(connection, side);
    let filled = filled_window(stream);
    if filled.is_some() {
        flow.remarks.retain(|remark| remark != UNKNOWN_SCALE);
    }
    flow.remarks.extend(beside(stream, flow.verdict.cause, &evidence));
    flow.remarks.extend(unknown_gain(&flow));
    if let Some(window) = filled {
        flow.remarks.push(format!(
            "the handshake is not in the capture; the window scale is inferred from the most in flight, {}",
            crate::quantities::in_bytes(window)
        ));
    }
    flow.span = Some((connection.begun, connection.last));
    flow.seen = Some(CaptureExtent {
        begun: connection.begun,
        last: connection.last,
        packets: connection.packets,
        classifier,
    });
    flow
}

/// The rate of bursts, if it would be the capacity without this limit, but a pacing sender may have set it.
fn unknown_gain(flow: &Flow) -> Option<String> {
    let sure = Evidence { doubts_capacity: false, ..flow.evidence };
    let gain = LimitVerdict::new(&flow.limits, &sure).gain?;
    let carries = flow.path.as_ref()?.carries.filter(|_| is_noticeable(gain, &sure))?;
    Some(format!(
        "the path carries at least {}, from burst spacing, which a pacing sender may set; the gain without this limit is unknown",
        in_rate(carries)
    ))
}

/// Whether data was always in flight, so that a queue may have stood all the time. Up to one round trip without data is
/// allowed, because the path also seems empty before the first acknowledgement.
fn is_never_empty(stream: &Stream) -> bool {
    let empty = [Hold::Idle, Hold::IdleOrFull, Hold::Unseen, Hold::Waiting, Hold::Quiet];
    let round_trip = stream.round_trips().min().unwrap_or_default();
    stream.accounts().held(&empty) < round_trip
}
