//! From a captured connection to verdicts: one per direction that carried data.

use sweetspot_trace::flow::{Account, Connection, Hold, Stream};
use sweetspot_units::{Bytes, Duration, Rate};

use crate::{Class, Evidence, Flow, Limits};

/// The share of the capacity at which a path counts as full.
const FULL: f64 = 0.9;
/// The same where a queue stands and the window stands still.
const NEARLY_FULL: f64 = 0.7;
/// The same where nothing but the rate shows it.
const QUITE_FULL: f64 = 0.95;

/// What limits the data of `stream`, in `limits`, and what that rests on.
pub fn judge(stream: &Stream, lasted: Duration) -> (Limits, Evidence) {
    let capacity = capacity(stream);
    let facts = Facts {
        capacity,
        window_known: stream.counts().window_known,
        // In a smaller flight every train of acknowledgements reaches over a pause.
        trains_tell: stream.flight().unwrap_or(stream.largest_flight())
            >= Bytes::new(10 * stream.mss()),
    };
    let mut limits = Limits::default();
    for (account, time) in stream.accounts().iter() {
        limits.add(class(&account, &facts), time);
    }
    let evidence = evidence(stream, capacity, lasted);
    if evidence.unknown_because.is_some() {
        let time = limits.total().max(Duration::from_nanos(1));
        limits = Limits::default();
        limits.add(Class::Unknown, time);
    }
    (limits, evidence)
}

/// What the path can deliver: what trains of acknowledgements show.
fn capacity(stream: &Stream) -> Option<Rate> {
    stream.train_rate()
}

/// What the whole of a stream says, by which each of its accounts is judged.
struct Facts {
    capacity: Option<Rate>,
    window_known: bool,
    /// Whether trains show the path's capacity and not the sender's rate.
    trains_tell: bool,
}

/// The rules: what held a sender, and in what circumstances, to the class that this means.
fn class(account: &Account, facts: &Facts) -> Class {
    let reaches = |share: f64| {
        facts.capacity.is_some_and(|capacity| account.rate as f64 >= capacity.as_f64() * share)
    };
    let full = account.queue && reaches(FULL);
    match account.hold {
        Hold::Opening => Class::Opportunity,
        // A slow bottleneck sets segments apart as pauses do, but behind a queue.
        Hold::Pausing if full && facts.trains_tell => Class::Bandwidth,
        Hold::Idle | Hold::Pausing => Class::Application,
        Hold::WindowShut => Class::ReceiverApplication,
        Hold::WindowFull if full => Class::Bandwidth,
        Hold::WindowFull => Class::ReceiverWindow,
        Hold::Doubling if full => Class::Bandwidth,
        Hold::Doubling => Class::Opportunity,
        Hold::AfterLoss if full || reaches(QUITE_FULL) => Class::Bandwidth,
        Hold::AfterLoss => Class::Congestion,
        Hold::Growing if full => Class::Bandwidth,
        Hold::Growing => Class::Transport,
        // A paced sender at capacity has no queue; one held by its buffer sends bursts, faster
        // than its average.
        Hold::Flat if facts.trains_tell && reaches(FULL) => Class::Bandwidth,
        Hold::Flat if account.queue && reaches(NEARLY_FULL) => Class::Bandwidth,
        Hold::Flat if facts.window_known => Class::SenderWindow,
        Hold::Flat => Class::Unknown,
    }
}

fn evidence(stream: &Stream, capacity: Option<Rate>, lasted: Duration) -> Evidence {
    let counts = stream.counts();
    let resent = stream.resent();
    let active = counts.first_data.zip(counts.last_ack.max(counts.last_data));
    let active = active.map_or(Duration::ZERO, |(first, last)| last.since(first));
    let unknown_because =
        if counts.acks == 0 { Some("the capture has only one direction of it") } else { None };
    Evidence {
        goodput: if active > Duration::ZERO {
            Bytes::new(counts.acked) / active
        } else {
            Rate::ZERO
        },
        capacity,
        rtt_min: stream.round_trips().least(),
        rtt: stream.round_trips().median(),
        window: stream.full_window(),
        scale: None,
        flight: stream.flight(),
        mss: Bytes::new(stream.mss()),
        segments: counts.data_segments,
        resent: Some(resent.segments()),
        loss_events: resent.events,
        timeouts: resent.timeouts,
        zero_windows: counts.zero_windows,
        lasted,
        bytes: Bytes::new(counts.bytes),
        unknown_because,
    }
}

/// The flows of a connection: the direction with more data, and the other one if it had a tenth
/// as much.
pub fn flows(connection: &Connection) -> Vec<Flow> {
    let bytes = |side: usize| connection.streams[side].counts().bytes;
    let main = usize::from(bytes(1) > bytes(0));
    let told = |side: usize| bytes(side) > 0 && (side == main || bytes(side) * 10 >= bytes(main));
    [main, 1 - main].into_iter().filter(|s| told(*s)).map(|side| flow(connection, side)).collect()
}

fn flow(connection: &Connection, side: usize) -> Flow {
    let stream = &connection.streams[side];
    let (limits, mut evidence) = judge(stream, connection.lasted());
    evidence.scale = connection.handshake.scale(1 - side);
    Flow::new(connection.ends[side], connection.ends[1 - side], limits, &evidence)
}
