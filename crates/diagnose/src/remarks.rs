//! Remarks in addition to a verdict.

use sweetspot_trace::flow::{Connection, Hold, Stream, Vantage};
use sweetspot_units::{Bytes, Duration};

use crate::limits::MIN_PRINTED_SHARE;
use crate::quantities::{in_bytes, ms};
use crate::{Class, Evidence, counted, words};

/// Minimum share of segments out of order that gets a remark.
const MIN_REORDERED_SHARE: f64 = 0.01;
/// A clock this coarse, or packets this far out of order, make RTTs inexact.
const COARSE_CLOCK: Duration = Duration::from_millis(1);

/// The remarks on the data that `side` of `connection` sent.
pub fn remarks(connection: &Connection, side: usize) -> Vec<String> {
    let stream = &connection.streams[side];
    let mut remarks = options(connection, stream);
    remarks.extend(vantage(connection, stream));
    remarks.extend(round_trips(connection, stream));
    remarks
}

/// Limits with a part of the time that the shares do not name, besides the verdict's `cause`.
pub fn beside(stream: &Stream, cause: Class, e: &Evidence) -> Vec<String> {
    let accounts = stream.accounts();
    let share = |time: Duration| time.as_secs_f64() / accounts.total().as_secs_f64();
    let nagle = e.nagle.filter(|nagle| cause != Class::Application || !nagle.leads);
    let nagle =
        nagle.map(|nagle| (share(nagle.time), words::nagle_beside(&nagle, share(nagle.time))));
    let is_mentioned = cause == Class::WaitingForPeer && e.granted.is_some();
    let granted = share(accounts.held(&[Hold::Granted]));
    let granted = (granted, words::granted_beside(stream.granted_flight(), granted));
    let granted = Some(granted).filter(|_| !is_mentioned && stream.is_granted_by_rule());
    let both = [nagle, granted].into_iter().flatten();
    let both = both.filter(|(share, _)| *share >= MIN_PRINTED_SHARE).map(|(_, words)| words);
    // The verdicts on stalls and congestion mention the silence themselves.
    let silence = e.stall.filter(|stall| stall.matters(e.lasted));
    let silence = silence.filter(|_| !matches!(cause, Class::Stalled | Class::Congestion));
    both.chain(silence.map(|stall| format!("for {}", words::silence(&stall)))).collect()
}

/// Segments retransmitted because the receiver had withdrawn its window.
fn retransmitted(segments: u64) -> String {
    match segments {
        0 => String::new(),
        1 => "; 1 segment that it no longer took was retransmitted".to_owned(),
        n => format!("; {n} segments that it no longer took were retransmitted"),
    }
}

/// The remark on a capture without the handshake.
pub const UNKNOWN_SCALE: &str =
    "the handshake is not in the capture: whether windows are scaled is unknown";

/// Options missing from the handshake.
fn options(connection: &Connection, stream: &Stream) -> Vec<String> {
    let offers = connection.handshake.offers;
    let [Some(opener), Some(opened)] = offers else {
        let is_known = connection.handshake.reported.is_some();
        return (!is_known).then(|| UNKNOWN_SCALE.to_owned()).into_iter().collect();
    };
    if opener.cut || opened.cut {
        return vec!["options of the handshake were cut off (tcpdump -s 96)".to_owned()];
    }
    let mut remarks = Vec::new();
    let mut missing = |what: &str, effect: &str, had: [bool; 2]| {
        let who = match had {
            [true, true] => return,
            [true, false] => "only the client offered it; a device on the path may have removed it",
            [false, true] => "only the server offered it, which the standard forbids",
            [false, false] => "neither end offered it",
        };
        remarks.push(format!("no {what}: {effect} ({who})"));
    };
    let both = [opener, opened];
    missing(
        "selective acknowledgements",
        "several losses in an RTT are repaired one per RTT",
        both.map(|o| o.sack),
    );
    missing("window scaling", "no window exceeds 65,535 bytes", both.map(|o| o.scale.is_some()));
    // Behind a malformed option in the handshake, the timestamps option cannot be parsed, but later
    // segments show it.
    if stream.counts().with_timestamps == 0 {
        missing("timestamps", "round trips are sampled less often", both.map(|o| o.timestamps));
    }
    remarks
}

/// Effects of the capture point and the capturing program.
fn vantage(connection: &Connection, stream: &Stream) -> Vec<String> {
    let counts = stream.counts();
    let copies = connection.copies + counts.copies;
    let both = connection.handshake.offers.iter().flatten().filter(|o| o.timestamps).count() == 2;
    those_that_hold([
        (
            copies > 0,
            format!(
                "{} counted once",
                counted(copies, "packet was captured twice; it is", "packets were captured twice; each is")
            ),
        ),
        (
            counts.offloaded > 0,
            format!(
                "{} longer than any packet: the capture was taken before the network card splits them, so \
                 the times of single packets are unknown",
                counted(counts.offloaded, "segment is", "segments are")
            ),
        ),
        (
            counts.foreign_sacks > 0,
            format!(
                "{} SACK blocks far from all data: a device on the path changes sequence numbers \
                 but not these blocks, so the sender cannot use them",
                counted(counts.foreign_sacks, "acknowledgement has", "acknowledgements have")
            ),
        ),
        (
            both && counts.without_timestamps > 0 && counts.with_timestamps == 0,
            "both ends agreed on timestamps, but the receiver's segments have none: a device on the path removes the \
             option in one direction"
                .to_owned(),
        ),
        (
            counts.shrunk_windows > 0,
            format!(
                "the receiver took back a part of its window {} (tcp_shrink_window on Linux; some other systems \
                 do it by default){}",
                counted(counts.shrunk_windows, "time", "times"),
                retransmitted(stream.retransmissions().taken_back)
            ),
        ),
        (
            counts.handshake_was_slow,
            "the handshake took longer than later round trips: it does not show how far the sender is"
                .to_owned(),
        ),
        (
            counts.unseen > 0,
            format!(
                "{} acknowledged that the capture missed",
                match counts.unseen {
                    1 => "1 byte was".to_owned(),
                    n => format!("{} were", in_bytes(Bytes::new(n))),
                }
            ),
        ),
        (
            counts.out_of_order as f64 > counts.data_segments as f64 * MIN_REORDERED_SHARE,
            format!(
                "{} of {} segments came out of order",
                counts.out_of_order, counts.data_segments
            ),
        ),
        (
            connection.furthest_back >= COARSE_CLOCK,
            format!(
                "{} a timestamp before that of the previous packet",
                counted(connection.backward, "packet has", "packets have")
            ),
        ),
    ])
}

/// Reasons for an uncertain or a missing RTT.
fn round_trips(connection: &Connection, stream: &Stream) -> Vec<String> {
    let tick = connection.tick();
    let (counts, round_trips) = (stream.counts(), stream.round_trips());
    those_that_hold([
        (
            tick.is_some_and(|tick| tick >= COARSE_CLOCK),
            format!(
                "the capture's clock has ticks of {}: shorter round trips cannot be measured",
                tick.unwrap_or_default()
            ),
        ),
        (
            round_trips.vantage() == Vantage::Unknown && round_trips.samples() > 0,
            "the round trip is uncertain: the distance from the capture to the sender is unknown, and assumed to be zero"
                .to_owned(),
        ),
        (
            round_trips.is_guessed(),
            "the round trip is uncertain: it is inferred from the time to a request's answer, and may be shorter"
                .to_owned(),
        ),
        (
            round_trips.contradicting().is_some(),
            format!(
                "a few round trips seem far shorter than the handshake, down to {}: the capture's timestamps may be late, so these do not \
                 count",
                round_trips.contradicting().map_or(String::new(), ms)
            ),
        ),
        (
            counts.acks > 0 && round_trips.samples() == 0 && counts.bytes > 0,
            "no round trip could be measured".to_owned(),
        ),
    ])
}

fn those_that_hold<const N: usize>(remarks: [(bool, String); N]) -> Vec<String> {
    remarks.into_iter().filter(|(holds, _)| *holds).map(|(_, words)| words).collect()
}
