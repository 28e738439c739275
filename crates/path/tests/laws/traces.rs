//! Links that follow a trace.

use proptest::prelude::*;
use sweetspot_path::{DeliveryTrace, DropTail, Link, RateTrace, Trace, TraceError};
use sweetspot_units::{Duration, Rate, Time, Volume};

use crate::elements::{Numbered, at_us};

/// A byte takes 1 us here.
const BYTE_PER_US: Rate = Rate::from_mbit_per_second(8);

/// The departure times in milliseconds of packets of `sizes` that arrive at `when` at a link with `trace`.
fn follow(trace: &str, when: u64, sizes: &[u64]) -> Vec<u64> {
    let mut link = Link::new(BYTE_PER_US, DropTail::new(Volume::Packets(100)));
    link.follow(DeliveryTrace::parse(trace).unwrap());
    for (n, size) in sizes.iter().enumerate() {
        link.handle_arrival(at_us(when * 1000), Numbered(n as u64, *size)).unwrap();
    }
    std::iter::from_fn(|| link.poll_departure(Time::MAX, &mut |_| {}))
        .map(|(left, _)| left.as_nanos() / 1_000_000)
        .collect()
}

#[test]
fn each_opportunity_carries_1504_bytes_and_the_trace_repeats() {
    assert_eq!(follow("1\n1\n5\n", 0, &[1504; 6]), [1, 1, 5, 6, 6, 10]);
    assert_eq!(follow("1\n1\n5\n", 0, &[752; 6]), [1, 1, 1, 1, 5, 5]);
    // 3008 bytes take both opportunities at 1 ms; 1505 bytes take the one at 5 ms and a byte of the one at 6.
    assert_eq!(follow("1\n1\n5\n", 0, &[3008, 1505]), [1, 6]);
}

#[test]
fn unused_delivery_opportunities_are_lost() {
    // At 7 ms the opportunities of 6 ms are over; the next one is at 10.
    assert_eq!(follow("1\n1\n5\n", 7, &[1504, 1504]), [10, 11]);
    // The same is true a day later: 86,400,000 ms are 17,280,000 periods.
    assert_eq!(follow("1\n1\n5\n", 86_400_002, &[1504, 1504]), [86_400_005, 86_400_006]);
}

#[test]
fn an_invalid_trace_is_rejected_with_its_line() {
    let refused = |text| DeliveryTrace::parse(text).unwrap_err();
    assert_eq!(refused("1\nx\n"), TraceError::NotATime { line: 2, text: "x".into() });
    assert_eq!(refused("3\n2\n"), TraceError::Backwards(2));
    assert_eq!(refused("0\n0\n"), TraceError::Empty);
    // 12,032 bits need 12,032 s for a mean of 1 bit/s.
    let period = Duration::from_secs(12_033);
    assert_eq!(refused("12033000\n"), TraceError::TooSlow { opportunities: 1, period });
    assert_eq!(
        DeliveryTrace::parse("12032000\n").unwrap().mean_rate(),
        Rate::from_bits_per_second(1)
    );
    // 3 x 1504 B in 5 ms.
    let rate = DeliveryTrace::parse("1\n1\n5\n").unwrap().mean_rate();
    assert_eq!(rate, Rate::from_bits_per_second(3 * 1504 * 8 * 1000 / 5));
}

proptest! {
    #[test]
    fn parsing_never_panics_or_yields_a_zero_rate(text in "[0-9 \n.-]{0,40}") {
        if let Ok(trace) = DeliveryTrace::parse(&text) {
            prop_assert!(trace.mean_rate() > Rate::ZERO);
        }
    }
}

/// The work in bit/s x ns between two times in nanoseconds, for steps of (milliseconds, kbit/s) that repeat.
fn integral(steps: &[(u64, u64)], from: u64, until: u64) -> u128 {
    let (mut sum, mut begins) = (0, 0);
    for (ms, kbit) in steps.iter().cycle() {
        let ends = begins + ms * 1_000_000;
        let shared = until.min(ends).saturating_sub(from.max(begins));
        sum += u128::from(shared) * u128::from(kbit * 1000);
        begins = ends;
        if begins >= until {
            return sum;
        }
    }
    sum
}

/// The trace of these steps. The last rate is valid for as long as the one before it.
fn rates(steps: &[(u64, u64)]) -> RateTrace {
    let mut from = Duration::ZERO;
    let rates: Vec<_> = steps
        .iter()
        .map(|(ms, kbit)| {
            let step = (from, Rate::from_bits_per_second(kbit * 1000));
            from += Duration::from_millis(*ms);
            step
        })
        .collect();
    RateTrace::new(&rates).unwrap()
}

fn steps() -> impl Strategy<Value = Vec<(u64, u64)>> {
    let step = (1_u64..40, prop_oneof![Just(0_u64), 1_u64..20_000]);
    let some = prop::collection::vec(step, 2..8);
    some.prop_filter_map("one sends, and the last two are of one length", |mut steps| {
        let length = steps[steps.len() - 2].0;
        steps.last_mut()?.0 = length;
        steps.iter().any(|(_, kbit)| *kbit > 0).then_some(steps)
    })
}

proptest! {
    /// In a busy period, all packets up to any one leave exactly in the nanosecond in which the rate's integral since
    /// the start has reached their total size.
    #[test]
    fn a_busy_link_sends_the_integral_of_its_trace(
        steps in steps(), arrivals in prop::collection::vec((0_u64..20_000, 40_u64..1500), 1..60),
    ) {
        let mut link: Link<Numbered, _> = Link::new(BYTE_PER_US, DropTail::new(Volume::Packets(100)));
        link.follow(rates(&steps));
        let (mut now, mut arrived, mut left) = (0, Vec::new(), Vec::new());
        for (n, (gap, size)) in (0_u64..).zip(arrivals) {
            now += gap;
            while let Some((at, packet)) = link.poll_departure(at_us(now), &mut |_| {}) {
                left.push((at.as_nanos(), packet.1));
            }
            prop_assert!(link.handle_arrival(at_us(now), Numbered(n, size)).is_ok());
            arrived.push(now * 1000);
        }
        while let Some((at, packet)) = link.poll_departure(Time::MAX, &mut |_| {}) {
            left.push((at.as_nanos(), packet.1));
        }
        prop_assert_eq!(left.len(), arrived.len());
        let (mut begun, mut before, mut sizes) = (0, 0, 0_u128);
        for (arrived, (left, size)) in arrived.iter().zip(&left) {
            if *arrived > before || before == 0 {
                (begun, sizes) = (*arrived, 0);
            }
            sizes += u128::from(*size) * 8_000_000_000;
            prop_assert!(integral(&steps, begun, *left) >= sizes);
            prop_assert!(integral(&steps, begun, *left - 1) < sizes);
            before = *left;
        }
    }

    #[test]
    fn a_constant_trace_equals_a_link_of_that_rate(
        kbit in 1_u64..10_000_000, arrivals in prop::collection::vec((0_u64..3000, 40_u64..1500), 1..60),
    ) {
        let run = |trace: Option<RateTrace>| {
            let rate = Rate::from_bits_per_second(kbit * 1000);
            let mut link: Link<Numbered, _> = Link::new(rate, DropTail::new(Volume::Packets(100)));
            trace.into_iter().for_each(|trace| link.follow(trace));
            let (mut now, mut left) = (0, Vec::new());
            for (gap, size) in &arrivals {
                now += gap;
                while let Some((at, _)) = link.poll_departure(at_us(now), &mut |_| {}) {
                    left.push(at);
                }
                let _ = link.handle_arrival(at_us(now), Numbered(0, *size));
            }
            left.extend(std::iter::from_fn(|| link.poll_departure(Time::MAX, &mut |_| {})).map(|(at, _)| at));
            left
        };
        prop_assert_eq!(run(Some(rates(&[(7, kbit), (7, kbit)]))), run(None));
    }

    #[test]
    fn a_printed_trace_parses_back_unchanged(steps in steps(), opportunities in prop::collection::vec(0_u64..30, 1..20)) {
        let trace = Trace::Rates(rates(&steps));
        prop_assert_eq!(Trace::parse(&trace.to_string()), Ok(trace));
        let times = opportunities.iter().scan(1, |at, gap| { *at += gap; Some(*at) });
        let text: String = times.map(|at| format!("{at}\n")).collect();
        prop_assert_eq!(Trace::parse(&text).unwrap().to_string(), text);
    }

    #[test]
    fn the_mean_rate_is_the_integral_divided_by_the_interval(
        steps in steps(), from in 0_u64..300_000_000, length in 1_u64..300_000_000,
    ) {
        let [start, end] = [from, from + length].map(Duration::from_nanos);
        let mean = rates(&steps).mean_rate_between(start, end).bits_per_second();
        let min = integral(&steps, from, from + length) / u128::from(length);
        prop_assert_eq!(u128::from(mean), min);
    }
}

#[test]
fn the_csv_parser_accepts_units_and_headings() {
    let read = |text: &str| Trace::parse(text).unwrap();
    let expected = read("0,8000000\n0.5,0\n1,2e6\n");
    // Times are relative to the first.
    assert_eq!(read("time,rate\n100s, 8Mbit/s\n100.5s, 0bit/s\n101s, 2Mbit/s\n"), expected);
    // 8, 0 and 2 Mbit/s for half a second each: 5 Mbit in 1.5 s.
    assert_eq!(expected.mean_rate(), Rate::from_bits_per_second(5_000_000 * 2 / 3));
    let refused = |text: &str| Trace::parse(text).unwrap_err();
    assert_eq!(
        refused("0,1Mbit/s\n1,fast\n"),
        TraceError::NotARate { line: 2, text: "1,fast".into() }
    );
    assert_eq!(refused("0,-5\n"), TraceError::NotARate { line: 1, text: "0,-5".into() });
    assert_eq!(refused("0,1Mbit/s\n0,2Mbit/s\n"), TraceError::Backwards(2));
    assert_eq!(refused("0,0\n1,0\n"), TraceError::NeverSends);
    // 1 bit/s for one second of two.
    assert_eq!(refused("0,1bit/s\n1,0\n"), TraceError::NeverSends);
}

#[test]
fn packets_held_by_an_outage_leave_after_it() {
    let mut link = Link::new(BYTE_PER_US, DropTail::new(Volume::Packets(100)));
    // 1 ms at a byte per us, then 9 ms of outage, repeatedly.
    link.follow(rates(&[(1, 8000), (9, 0), (9, 0)]));
    for n in 0..3 {
        link.handle_arrival(at_us(0), Numbered(n, 600)).unwrap();
    }
    let left = std::iter::from_fn(|| link.poll_departure(Time::MAX, &mut |_| {}));
    // 600, 1200 = 1000 + 200 after 19 ms, 1800.
    assert_eq!(left.map(|(at, _)| at).collect::<Vec<_>>(), [600, 19_200, 19_800].map(at_us));
}
