//! A program that writes now and then, on a path of 40 ms, captured at the sender.

use sweetspot_diagnose::{Class, Flow};
use sweetspot_trace::packet::{Flags, Segment};

use crate::captured::{Captured, back, offer, sent, syn};

const MSS: u32 = 1448;
const RTT: u64 = 40_000;
/// The time between two segments at their receiver, in microseconds: 8.9 Mbit/s.
const SPACING: u64 = 1300;
/// An odd number of segments, so that the last acknowledgement is a delayed one.
const SEGMENTS: u64 = 21;
const DELAYED: u64 = 40_000;

/// 30 bursts, one every 500 ms, with `apart` microseconds between two segments.
fn bursts(apart: u64) -> Flow {
    let mut captured = Captured::default();
    let options = offer(MSS as u16 as u32);
    captured.take(0, Segment { options, flags: syn(), ..sent() });
    let answer = Segment { options, flags: Flags { ack: true, ..syn() }, ..back(1, 0) };
    captured.take(RTT, answer);
    captured.take(RTT, Segment { seq: 1, ..sent() });
    for burst in 0..30 {
        let start = 500_000 * (1 + burst);
        let first = burst * SEGMENTS;
        let seq = |n: u64| 1 + (first + n) as u32 * MSS;
        let data = (0..SEGMENTS)
            .map(|n| (start + n * apart, Segment { seq: seq(n), payload: MSS, ..sent() }));
        let acks =
            (1..SEGMENTS).step_by(2).map(|n| (start + RTT + n * SPACING, back(seq(n + 1), 1)));
        let last = start + RTT + (SEGMENTS - 1) * SPACING + DELAYED;
        let mut packets: Vec<(u64, Segment)> =
            data.chain(acks).chain([(last, back(seq(SEGMENTS), 1))]).collect();
        packets.sort_by_key(|(us, _)| *us);
        packets.into_iter().for_each(|(us, segment)| captured.take(us, segment));
    }
    captured.flow()
}

/// Segments that leave faster than they arrive wait at a link. If they leave as they arrive, the sender may have paced them.
#[test]
fn bursts_that_the_sender_spaces_promise_no_gain() {
    let [queued, paced] = [100, SPACING].map(bursts);
    assert_eq!([queued.verdict.class, paced.verdict.class], [Class::Application; 2]);
    assert!(queued.expected_gain_bps.is_some(), "{queued:?}");
    assert_eq!(paced.expected_gain_bps, None, "{paced:?}");
    // With 40 bytes of headers: 9.2 Mbit/s; the histogram's error is 2 %.
    let is_said =
        |flow: &Flow| flow.remarks.iter().any(|remark| remark.contains("carries at least 9."));
    assert!(is_said(&paced) && !is_said(&queued), "{:?}", paced.remarks);
}
