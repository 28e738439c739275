//! Connections captured at their receivers.

use sweetspot_diagnose::Class;
use sweetspot_trace::packet::{Flags, Options, Segment, Timestamps};

use crate::captured::{self, Captured, offer, sent, syn};

const MSS: u32 = 1448;
/// The serialisation time of 1500 bytes at 2 Mbit/s.
const SPACING: u64 = 6;
/// The round trip of the empty path.
const ROUND_TRIP: u64 = 30;

/// A connection captured at its receiver, which answers at once.
struct AtReceiver {
    captured: Captured,
    timestamps: bool,
}

impl AtReceiver {
    fn open(timestamps: bool) -> AtReceiver {
        let mut open = AtReceiver { captured: Captured::default(), timestamps };
        let mut offer = captured::offer(MSS + 12);
        offer.timestamps = Some(Timestamps { value: 1, echo: 0 });
        open.take(0, Segment { seq: 0, options: offer, flags: syn(), ..sent() });
        open.take(0, Segment { options: offer, flags: Flags { ack: true, ..syn() }, ..back(1, 1) });
        open.take(ROUND_TRIP, Segment { seq: 1, options: echo(1), ..sent() });
        open
    }

    fn take(&mut self, ms: u64, segment: Segment) {
        let mut options = segment.options;
        options.timestamps = options.timestamps.filter(|_| self.timestamps);
        self.captured.take(ms * 1000, Segment { options, ..segment });
    }

    /// Segment `n` arrives. Its sender had received the receiver's acknowledgement of time `echoed`.
    fn arrive(&mut self, ms: u64, n: u32, echoed: u64) {
        let options = echo(echoed as u32 + 1);
        self.take(ms, Segment { seq: 1 + n * MSS, payload: MSS, options, ..sent() });
        self.take(ms, back(1 + (n + 1) * MSS, ms as u32 + 1));
    }

    fn class(self) -> Class {
        self.captured.flow().verdict.class
    }
}

/// The receiver's acknowledgement of everything before `ack`, with the timestamp `clock`.
fn back(ack: u32, clock: u32) -> Segment {
    let mut options = Options::default();
    options.timestamps = Some(Timestamps { value: clock, echo: 1 });
    Segment { options, ..captured::back(ack, 1) }
}

fn echo(clock: u32) -> Options {
    let mut options = Options::default();
    options.timestamps = Some(Timestamps { value: 1, echo: clock });
    options
}

#[test]
fn gaps_from_a_slow_bottleneck_are_not_program_pauses() {
    // 25 segments are in flight, 5 of them on the path and 20, or 120 ms, in its buffer. Each is sent when the 25th before
    // it is acknowledged, and arrives after the queue.
    let mut flow = AtReceiver::open(true);
    let at = |n: u64| ROUND_TRIP + SPACING * (n + 1);
    for n in 0..400 {
        flow.arrive(at(n), n as u32, n.checked_sub(25).map_or(0, at));
    }
    assert_eq!(flow.class(), Class::Bandwidth);
}

#[test]
fn a_timestamp_echo_frozen_by_a_middlebox_proves_no_pause() {
    // Flights of ten segments, each sent after the acknowledgements of the previous one. The timestamps do not show that.
    let mut flow = AtReceiver::open(true);
    for n in 0..1000_u64 {
        flow.arrive(ROUND_TRIP * (n / 10 + 2) + n % 10, n as u32, 0);
    }
    assert_eq!(flow.class(), Class::SenderWindow);
}

#[test]
fn small_writes_show_program_pauses_on_a_slow_path_too() {
    // Four segments every 100 ms, which take 24 ms at the bottleneck. All are sent after the acknowledgements of the
    // previous four.
    let mut flow = AtReceiver::open(true);
    let at = |n: u64| ROUND_TRIP + n / 4 * 100 + SPACING * (n % 4 + 1);
    for n in 0..200 {
        flow.arrive(at(n), n as u32, (n / 4 * 4).checked_sub(1).map_or(0, at));
    }
    assert_eq!(flow.class(), Class::Application);
}

#[test]
fn evenly_spaced_data_shows_a_link_at_capacity() {
    // As above, but without timestamps nothing shows that the sender waited: the RTT seems to be 30 ms.
    let mut flow = AtReceiver::open(false);
    let at = |n: u64| ROUND_TRIP + SPACING * (n + 1);
    for n in 0..400 {
        flow.arrive(at(n), n as u32, 0);
    }
    assert_eq!(flow.class(), Class::Bandwidth);
}

#[test]
fn flights_with_pauses_do_not_show_a_link_at_capacity() {
    // Three segments per round trip, which could carry five: a window holds the sender.
    let mut flow = AtReceiver::open(false);
    let at = |n: u64| ROUND_TRIP * (1 + n / 3) + SPACING * (n % 3 + 1);
    for n in 0..400 {
        flow.arrive(at(n), n as u32, 0);
    }
    assert_ne!(flow.class(), Class::Bandwidth);
}

/// The receiver resets the connection 36 ms after its first packet. The reset does not reach the sender, which retransmits
/// twice more.
#[test]
fn a_receiver_that_reset_the_connection_is_not_called_silent() {
    let judged = |resets: bool| {
        let mut captured = Captured::default();
        let syn = syn();
        captured.take(0, Segment { flags: syn, options: offer(1448), ..sent() });
        let answer = Flags { ack: true, ..syn };
        captured
            .take(10_000, Segment { flags: answer, options: offer(1448), ..captured::back(1, 0) });
        captured.take(10_100, Segment { seq: 1, ..sent() });
        captured.take(10_200, Segment { seq: 1, payload: 1000, ..sent() });
        if resets {
            let flags = Flags { rst: true, ack: true, ..Flags::default() };
            captured.take(36_000, Segment { flags, ..captured::back(1, 1) });
        }
        for ms in [230, 650] {
            captured.take(ms * 1000, Segment { seq: 1, payload: 1000, ..sent() });
        }
        captured.flow().verdict
    };
    let [silent, reset] = [false, true].map(judged);
    assert_eq!([silent.class, reset.class], [Class::Stalled; 2], "{silent:?} {reset:?}");
    assert!(
        reset.words.contains("the receiver reset the connection 36 ms after"),
        "{}",
        reset.words
    );
    assert!(reset.words.contains("retransmitted twice"), "{}", reset.words);
    assert!(!reset.words.contains("silent") && silent.words.contains("silent"), "{silent:?}");
}
