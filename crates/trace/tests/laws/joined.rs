//! Captures that begin while data are in flight.

use sweetspot_trace::flow::{Connection, Hold, Stream};
use sweetspot_trace::packet::{Options, Segment};
use sweetspot_units::{Bytes, Duration};

use crate::script::{MSS, Script, receiver, segment, sender};

/// The number of full segments in flight when the capture begins.
const FLIGHT: u32 = 10;

/// An acknowledgement every 10 ms releases a segment 1 ms later; the RTT is 100 ms.
fn bulk(is_ack_first: bool, segments: u32) -> Script {
    let mut script = Script::new();
    for n in 0..segments {
        let at = 1000 + u64::from(n) * 10;
        if n > 0 || is_ack_first {
            script.ack(at, n + 1);
        }
        script.send(at + 1, FLIGHT + n + 1);
    }
    script
}

fn stream(connection: &Connection) -> &Stream {
    connection.streams.iter().max_by_key(|stream| stream.counts().data_segments).unwrap()
}

#[test]
fn data_in_flight_before_the_capture_is_not_unseen() {
    for is_ack_first in [true, false] {
        let connection = bulk(is_ack_first, 200).end();
        let stream = stream(&connection);
        assert_eq!(stream.counts().unseen, 0, "{is_ack_first}");
        assert_eq!(stream.accounts().held(&[Hold::Unseen, Hold::Idle]), Duration::ZERO);
        // Ten segments are in flight from an acknowledgement until the segment that it releases.
        assert_eq!(stream.largest_flight(), Bytes::new(u64::from((FLIGHT + 1) * MSS)));
    }
}

#[test]
fn a_flight_constant_from_the_first_round_is_not_slow_start() {
    let connection = bulk(true, 200).end();
    assert_eq!(stream(&connection).accounts().held(&[Hold::Doubling]), Duration::ZERO);
}

#[test]
fn a_segment_missing_later_is_counted_as_unseen() {
    let mut script = bulk(true, 20);
    // After segment 30, the capture has segment 32.
    script.send(1300, FLIGHT + 22);
    script.ack(1400, FLIGHT + 23);
    assert_eq!(stream(&script.end()).counts().unseen, u64::from(MSS));
}

/// The capture begins during the repair of segment 1, with the retransmission or with an acknowledgement. Of the 14 segments
/// after it, the receiver has ten.
#[test]
fn a_repair_at_the_start_does_not_reveal_where_the_data_starts() {
    let ends = [1 + 2 * MSS, 1 + 12 * MSS].map(u32::to_be_bytes);
    let options = Options::read(&[&[1, 1, 5, 10][..], &ends.concat()].concat());
    for is_ack_first in [true, false] {
        let mut script = Script::new();
        let ack = Segment { seq: 1, ack: 1 + MSS, options, ..segment() };
        if is_ack_first {
            script.receive(1000, ack);
        }
        script.send(1001, 1);
        if !is_ack_first {
            script.receive(1002, ack);
        }
        script.send(1003, 16);
        script.ack(1101, 17);
        let connection = script.end();
        let stream = stream(&connection);
        assert_eq!(stream.counts().unseen, 0, "{is_ack_first}");
        // If the retransmission passes first, it is not recognized as one.
        let retransmitted = u64::from(is_ack_first);
        assert_eq!(stream.retransmissions().segments(), retransmitted, "{is_ack_first}");
    }
}

#[test]
fn lone_acks_imply_data_missed_by_the_capture() {
    let mut script = Script::new();
    (0..5).for_each(|n| script.ack(1000 + n * 100, n as u32));
    let connection = script.end();
    let side = usize::from(connection.ends[1] == sender());
    assert_eq!(connection.ends[1 - side], receiver());
    let stream = &connection.streams[side];
    assert_eq!(stream.counts().unseen, u64::from(4 * MSS));
    assert_eq!(stream.accounts().held(&[Hold::Unseen]), Duration::from_millis(400));
}
