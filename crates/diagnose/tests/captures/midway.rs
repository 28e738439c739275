//! Captures that begin in mid-connection and never see the path empty.

use sweetspot_diagnose::{Class, Flow};
use sweetspot_trace::flow::SenderReport;
use sweetspot_trace::packet::{Options, Segment, Timestamps};
use sweetspot_units::Rate;

use crate::captured::{Captured, back, sent};

const MSS: u32 = 1448;
/// The serialisation time of a segment at the bottleneck, in microseconds: about 12 Mbit/s.
const SPACING: u64 = 1000;
/// The time from an acknowledgement to the sender's next segment, in microseconds.
const ANSWER: u64 = 50;

/// Timestamps in milliseconds at both ends; each echoes the other's latest.
fn clock(us: u64) -> Options {
    let (value, mut options) = ((us / 1000) as u32, Options::default());
    options.timestamps = Some(Timestamps { value, echo: value });
    options
}

/// Captured at the sender. Every `SPACING` a segment is acknowledged, which releases the next one after `ANSWER`; every 200th
/// acknowledgement releases two. At least 200 segments are in flight, on a path that holds fewer.
fn bulk() -> Flow {
    bulk_of(clock, 200)
}

/// As [`bulk`], with these options, and with a segment more in flight after every `growth` acknowledgements.
fn bulk_of(clock: fn(u64) -> Options, growth: u64) -> Flow {
    let mut captured = Captured::default();
    let mut take = |us: u64, segment: Segment| captured.take(us, segment);
    let mut next = 200_u32;
    for n in 0..6000_u64 {
        let now = n * SPACING;
        let options = clock(now);
        take(now, Segment { options, ..back(1 + n as u32 * MSS, 1) });
        for _ in 0..1 + u32::from(n % growth == growth - 1) {
            take(now + ANSWER, Segment { seq: 1 + next * MSS, payload: MSS, options, ..sent() });
            next += 1;
        }
    }
    captured.flow()
}

#[test]
fn a_window_that_grows_at_the_capacity_is_not_the_limit() {
    let flow = bulk();
    assert_eq!(flow.verdict.class, Class::Bandwidth, "{}", flow.verdict.words);
    assert!(!flow.verdict.words.contains("would do"), "{}", flow.verdict.words);
    assert!(!flow.fix.contains("A window of"), "{}", flow.fix);
}

/// The time to the acknowledgement grows from 200 to 260 ms. Nothing shows how far the sender is from the capture.
#[test]
fn an_uncertain_round_trip_shows_no_queue() {
    let [near, unknown] = [clock, |_| Options::default()].map(|clock| bulk_of(clock, 100));
    assert!(near.verdict.words.contains("standing queue"), "{}", near.verdict.words);
    let Flow { verdict, fix, expected_gain_bps, .. } = &unknown;
    assert_eq!((verdict.class, unknown.brief()), (Class::Bandwidth, "link or pacing"));
    assert!(unknown.time().starts_with("link or pacing"), "{}", unknown.time());
    assert!(!verdict.words.contains("standing queue") && !fix.contains("AQM"), "{verdict:?}");
    assert_eq!(*expected_gain_bps, None);
}

#[test]
fn a_sender_that_answers_at_once_is_at_the_capture_point() {
    // The sender answers within 50 µs, so it cannot be farther away, although its segments are a millisecond apart.
    assert_eq!(bulk().facts.map(|facts| facts.vantage), Some("sender"));
}

/// 30 full segments per round, with an RTT of `rtt` ms in it.
fn level(rounds: u64, rtt: impl Fn(u64) -> u64) -> Flow {
    in_rounds(rounds, |_| 30, rtt).flow()
}

/// `flight` full segments per round, with an RTT of `rtt` ms in it. The windows have space for more at any scale.
fn in_rounds(rounds: u64, flight: impl Fn(u64) -> u64, rtt: impl Fn(u64) -> u64) -> Captured {
    answered_after(ANSWER, rounds, flight, rtt)
}

/// As [`in_rounds`], with data `answer` microseconds after each acknowledgement.
fn answered_after(
    answer: u64,
    rounds: u64,
    flight: impl Fn(u64) -> u64,
    rtt: impl Fn(u64) -> u64,
) -> Captured {
    let mut captured = Captured::default();
    let (mut now, mut next) = (0, 0);
    for round in 0..rounds {
        let options = clock(now);
        for _ in 0..flight(round) {
            captured.take(now, Segment { seq: 1 + next * MSS, payload: MSS, options, ..sent() });
            next += 1;
        }
        now += rtt(round) * 1000;
        captured.take(now, Segment { options: clock(now), ..back(1 + next * MSS, 1) });
        now += answer;
    }
    captured
}

#[test]
fn a_constant_flight_with_a_varying_rtt_is_not_send_buffer_limited() {
    let constant = level(200, |_| 50).verdict;
    assert_eq!(constant.class, Class::SenderWindow, "{}", constant.words);
    let swinging = level(200, |round| if round / 20 % 2 == 0 { 50 } else { 80 }).verdict;
    assert_ne!(swinging.class, Class::SenderWindow, "{}", swinging.words);
    assert!(swinging.words.contains("the send buffer bounds it, or losses"), "{}", swinging.words);
}

/// While the round trip swings, losses before the capture may have set the window; the sender's kernel knows.
#[test]
fn a_level_flight_is_the_send_buffer_s_if_the_kernel_reports_it() {
    let swings = |round| if round / 20 % 2 == 0 { 50 } else { 80 };
    for (is_stopped_by_buffer, class) in [(true, Class::SenderWindow), (false, Class::Unknown)] {
        let mut captured = in_rounds(200, |_| 30, swings);
        captured.know_sender(SenderReport { is_stopped_by_buffer, ..SenderReport::default() });
        let verdict = captured.flow().verdict;
        assert_eq!(verdict.class, class, "{}", verdict.words);
    }
}

/// On a busy host, data leave 10 ms after the acknowledgement that permits them, as if the program had paused. Its kernel knows
/// that the data waited.
#[test]
fn a_slow_host_is_no_pausing_program_if_its_kernel_has_data() {
    let with_data = |keeps_data_waiting| {
        let mut captured = answered_after(10_000, 200, |round| 30 + round, |_| 50);
        captured.know_sender(SenderReport { keeps_data_waiting, ..SenderReport::default() });
        captured.flow().verdict
    };
    assert_eq!(with_data(false).class, Class::Application);
    let verdict = with_data(true);
    assert_eq!(verdict.class, Class::Transport, "{}", verdict.words);
}

/// CUBIC grows by 0.53 segments per RTT at least (RFC 9438, section 4.3).
#[test]
fn a_congestion_window_that_grows_slowly_is_no_send_buffer() {
    let grown = || in_rounds(200, |round| 30 + round * 53 / 100, |_| 50);
    let verdict = grown().flow().verdict;
    assert_ne!(verdict.class, Class::SenderWindow, "{}", verdict.words);
    // The kernel may count a full buffer nevertheless: then the window's growth gains nothing.
    let mut captured = grown();
    captured.know_sender(SenderReport { is_stopped_by_buffer: true, ..SenderReport::default() });
    assert_eq!(captured.flow().verdict.class, Class::SenderWindow);
}

/// Flights are compared over twelve rounds. The last acknowledgement of 11 rounds ends 11 RTTs.
#[test]
fn a_few_mid_connection_rounds_show_no_limit() {
    let verdict = |rounds| level(rounds, |_| 50).verdict;
    assert_eq!(verdict(13).class, Class::SenderWindow, "{}", verdict(13).words);
    let brief = verdict(11);
    assert_eq!(brief.class, Class::Unknown, "{}", brief.words);
    assert!(brief.words.contains("fewer than twelve round trips"), "{}", brief.words);
}

/// Each acknowledgement releases a segment, one per millisecond, so that data is as evenly spaced as over a link. 30 segments are
/// in flight, with the window field `window`.
fn clocked(window: u16) -> Captured {
    const FLIGHT: u32 = 30;
    let mut captured = Captured::default();
    for n in 0..6000_u32 {
        let (now, options) = (u64::from(n) * SPACING, clock(u64::from(n) * SPACING));
        captured.take(now, Segment { options, window, ..back(1 + n * MSS, 1) });
        let seq = 1 + (n + FLIGHT) * MSS;
        captured.take(now + ANSWER, Segment { seq, payload: MSS, options, ..sent() });
    }
    captured
}

#[test]
fn a_flight_that_fills_a_window_of_unknown_scale_is_window_limited() {
    // 31 segments are 44,888 bytes: at a scale of 7, exactly these fit into the first window, and nine more into the second.
    let [full, free] = [351, 450].map(|window| clocked(window).flow().verdict);
    assert_eq!(full.class, Class::ReceiverWindow, "{}", full.words);
    assert_ne!(free.class, Class::ReceiverWindow, "{}", free.words);
}

/// Full segments of 1448 bytes every millisecond are 11.58 Mbit/s, which a limit of 12 Mbit/s explains and one of 24 Mbit/s does not.
#[test]
fn evenly_spaced_segments_are_the_pacing_limit_s_if_the_kernel_reports_it() {
    let verdict = |limit: Option<u64>| {
        let mut captured = clocked(450);
        let pacing_limit = limit.map(Rate::from_mbit_per_second);
        captured.know_sender(SenderReport { pacing_limit, ..SenderReport::default() });
        captured.flow().verdict
    };
    assert_eq!(verdict(Some(12)).class, Class::Pacing, "{}", verdict(Some(12)).words);
    for other in [None, Some(24)] {
        assert_ne!(verdict(other).class, Class::Pacing, "{}", verdict(other).words);
    }
}

/// A receiver that reads 14 segments every 50 ms, and a sender that paces them, captured from the middle on. At a scale of 7,
/// exactly 14 segments fit into the window field of 160; unread data closes it.
fn slow_reader(mut captured: Captured) -> Flow {
    const EACH: u32 = 14;
    for cycle in 0..100 {
        let (start, first) = (u64::from(cycle) * 50_000, 1 + cycle * EACH * MSS);
        let take = |us: u64, segment: Segment| (start + us, segment);
        let window = |segments: u32| (160 - (segments * MSS).div_ceil(128)) as u16;
        let mut packets = vec![take(0, Segment { window: 160, ..back(first, 1) })];
        for n in 0..EACH {
            let sent_at = ANSWER + u64::from(n / 2) * 2000 + u64::from(n % 2);
            packets.push(take(sent_at, Segment { seq: first + n * MSS, payload: MSS, ..sent() }));
            if n % 2 == 1 {
                let ack = Segment { window: window(n + 1), ..back(first + (n + 1) * MSS, 1) };
                packets.push(take(sent_at + 10_000, ack));
            }
        }
        packets.sort_by_key(|(us, _)| *us);
        for (us, segment) in packets {
            captured.take(us, Segment { options: clock(us), ..segment });
        }
    }
    captured.flow()
}

#[test]
fn a_pause_with_unknown_window_scale_is_not_blamed_on_the_sender() {
    let verdict = slow_reader(Captured::default()).verdict;
    assert_eq!(verdict.class, Class::Unknown, "{}", verdict.words);
    assert!(
        verdict.words.contains("the sending application or the receiver's window"),
        "{verdict:?}"
    );
}

#[test]
fn kernel_reported_scales_reveal_the_reader_as_the_limit() {
    let mut captured = Captured::default();
    captured.know_scales([7, 7]);
    let flow = slow_reader(captured);
    assert_eq!(flow.verdict.class, Class::ReceiverApplication, "{}", flow.verdict.words);
    assert!(flow.remarks.iter().all(|remark| !remark.contains("scaled")), "{:?}", flow.remarks);
}
