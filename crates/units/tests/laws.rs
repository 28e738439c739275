//! Laws of the dimensions.

use proptest::prelude::*;
use sweetspot_units::{BufferSize, Bytes, Deadline, Duration, Probability, Rate, Time, Volume};

fn rate(s: &str) -> Rate {
    s.parse().unwrap()
}

#[test]
fn rate_times_duration_is_bytes() {
    // 100 Mbit/s for 100 ms: 10^8 * 0.1 / 8 = 1.25 MB, the demo path's BDP.
    assert_eq!(rate("100Mbit/s") * Duration::from_millis(100), Bytes::new(1_250_000));
}

#[test]
fn bytes_over_rate_is_duration() {
    // 1500 B at 100 Mbit/s: 12,000 bit / 10^8 = 120 us.
    assert_eq!(Bytes::new(1500) / rate("100Mbit/s"), Duration::from_micros(120));
}

#[test]
fn bytes_over_duration_is_rate() {
    assert_eq!(Bytes::new(1_250_000) / Duration::from_millis(100), rate("100Mbit/s"));
}

#[test]
fn division_by_zero_saturates() {
    assert_eq!(Bytes::new(1) / Rate::ZERO, Duration::MAX);
    assert_eq!(Bytes::new(1) / Duration::ZERO, Rate::MAX);
}

#[test]
fn a_duration_beyond_u64_nanoseconds_saturates() {
    // 2^64 ns are 18,446,744,073.7 s, or 1000 times as many milliseconds, or 10^6 times as many
    // microseconds.
    assert_eq!(Duration::from_secs(18_446_744_074), Duration::MAX);
    assert_eq!(Duration::from_millis(18_446_744_073_710), Duration::MAX);
    assert_eq!(Duration::from_micros(18_446_744_073_709_552), Duration::MAX);
    assert_eq!(Duration::from_secs(18_446_744_073).as_secs_f64(), 18_446_744_073.0);
}

#[test]
fn a_kilobyte_is_1000_bytes_and_a_kibibyte_1024() {
    assert_eq!("1kB".parse(), Ok(Bytes::new(1000)));
    assert_eq!("1KiB".parse(), Ok(Bytes::new(1024)));
    assert_eq!("1kB/s".parse(), Ok(Rate::from_bits_per_second(8000)));
    // 20 x 1,048,576 x 8.
    assert_eq!("20MiB/s".parse(), Ok(Rate::from_bits_per_second(167_772_160)));
}

#[test]
fn a_number_without_a_unit_is_rejected() {
    let e = "100".parse::<Rate>().unwrap_err().to_string();
    assert_eq!(
        e,
        "\"100\" is not a rate: it has no unit; write it like 20Mbit/s, 1.5Gbit/s, 12.5MB/s"
    );
    assert!("100".parse::<Bytes>().is_err());
    assert!("100".parse::<Duration>().is_err());
    assert!("100".parse::<Volume>().is_err());
}

#[test]
fn zero_needs_no_unit() {
    assert_eq!("0".parse(), Ok(Rate::ZERO));
    assert_eq!("0".parse(), Ok(Bytes::ZERO));
    assert_eq!(" 0.0 ".parse(), Ok(Duration::ZERO));
    assert_eq!("0".parse(), Ok(Volume::Bytes(Bytes::ZERO)));
    assert_eq!("0".parse(), Ok(BufferSize::Volume(Volume::Bytes(Bytes::ZERO))));
    assert!("-0.1".parse::<Bytes>().is_err());
}

#[test]
fn rates_and_times_accept_the_notation_of_other_programs() {
    let rate = |text: &str| text.parse::<Rate>().map(Rate::bits_per_second);
    for text in ["10G", "10Gbps", "10gbps", "10gbit", "10Gb/s", "10 Gbit", "10Gbit/s", "1.25GB/s"] {
        assert_eq!(rate(text), Ok(10_000_000_000), "{text}");
    }
    for text in ["5M", "5Mbps", "5mbit", "5000kbit", "5000K"] {
        assert_eq!(rate(text), Ok(5_000_000), "{text}");
    }
    assert_eq!("80msec".parse(), Ok(Duration::from_millis(80)));
    assert_eq!("500µs".parse::<Duration>(), "500usec".parse());
    // These could mean megabits or megabytes.
    assert!("100Mb".parse::<Rate>().is_err() && "100m".parse::<Rate>().is_err());
}

#[test]
fn an_unknown_unit_is_named() {
    let e = "100Mb".parse::<Rate>().unwrap_err().to_string();
    assert!(e.contains("unknown unit \"Mb\" (did you mean Mbit/s or MB/s?)"), "{e}");
    let size = |text: &str| text.parse::<Bytes>().unwrap_err().to_string();
    assert!(size("1M").contains("(did you mean MB or MiB?)"), "{}", size("1M"));
    assert!(size("64KB").contains("(did you mean kB?)"), "{}", size("64KB"));
    let e = "2minutes".parse::<Duration>().unwrap_err().to_string();
    assert!(e.contains("(did you mean min?)"), "{e}");
    let e = "3 horses".parse::<Rate>().unwrap_err().to_string();
    assert!(e.contains("unknown unit \"horses\"; write"), "{e}");
}

#[test]
fn case_does_not_matter_when_bits_are_spelled_out() {
    for text in ["10GBit/s", "10Gbit/s", "10 GBIT", "10gbit/s"] {
        assert_eq!(text.parse(), Ok(Rate::from_mbit_per_second(10_000)), "{text}");
    }
    // For bits and bytes, case does matter.
    assert_ne!("10GB/s".parse::<Rate>(), "10Gb/s".parse());
}

#[test]
fn garbage_is_rejected() {
    for text in [
        "",
        " ",
        "Mbit/s",
        "-1Mbit/s",
        "nan Mbit/s",
        "1e999Mbit/s",
        "1..2kB",
        "--3ms",
        "1e30Mbit/s",
    ] {
        assert!(text.parse::<Rate>().is_err(), "{text}");
        assert!(text.parse::<Bytes>().is_err(), "{text}");
        assert!(text.parse::<Duration>().is_err(), "{text}");
        assert!(text.parse::<Volume>().is_err(), "{text}");
    }
}

#[test]
fn exponents_and_fractions_are_accepted() {
    assert_eq!("1.5ms".parse(), Ok(Duration::from_micros(1500)));
    assert_eq!("1e3B".parse(), Ok(Bytes::new(1000)));
    assert_eq!("1e-5".parse(), Ok(Probability::new(1e-5).unwrap()));
    assert_eq!("2 %".parse(), Ok(Probability::new(0.02).unwrap()));
}

#[test]
fn probabilities_stay_between_0_and_1() {
    assert!("1.1".parse::<Probability>().is_err());
    assert!("101%".parse::<Probability>().is_err());
    assert_eq!(Probability::new(f64::NAN), None);
}

/// 0.07 times 100 would be 7.000000000000001.
#[test]
fn a_percentage_prints_the_digits_of_its_share() {
    for (share, words) in
        [(0.07, "7 %"), (0.005, "0.5 %"), (1e-5, "0.001 %"), (0.0, "0 %"), (1.0, "100 %")]
    {
        assert_eq!(Probability::new(share).unwrap().to_string(), words);
    }
}

#[test]
fn volumes_keep_their_written_unit() {
    assert_eq!("625pkt".parse(), Ok(Volume::Packets(625)));
    assert_eq!("625 kB".parse(), Ok(Volume::Bytes(Bytes::new(625_000))));
    assert!("1.5pkt".parse::<Volume>().is_err());
    assert_eq!(Volume::Packets(625).in_bytes(Bytes::new(1000)), Bytes::new(625_000));
    assert_eq!(Volume::Bytes(Bytes::new(2999)).in_packets(Bytes::new(1000)), 2);
}

#[test]
fn printing_shows_the_unit_and_four_digits() {
    assert_eq!(rate("96.5333Mbit/s").to_string(), "96.53 Mbit/s");
    assert_eq!(Bytes::new(1_250_000).to_string(), "1.25 MB");
    assert_eq!(Duration::from_micros(37_250).to_string(), "37.25 ms");
    assert_eq!(Bytes::ZERO.to_string(), "0 B");
}

#[test]
fn times_subtract_to_durations_and_never_below_zero() {
    let (a, b) = (Time::from_nanos(5), Time::from_nanos(9));
    assert_eq!(b.since(a), Duration::from_nanos(4));
    assert_eq!(a.since(b), Duration::ZERO);
}

proptest! {
    #[test]
    fn printed_values_parse_back_within_their_precision(n in 1u64..1_000_000_000_000) {
        let close = |a: f64, b: f64| (a - b).abs() <= 1e-3 * a;
        let b: Bytes = Bytes::new(n).to_string().parse().unwrap();
        prop_assert!(close(n as f64, b.as_f64()));
        let r: Rate = Rate::from_bits_per_second(n).to_string().parse().unwrap();
        prop_assert!(close(n as f64, r.as_f64()));
        let d: Duration = Duration::from_nanos(n).to_string().parse().unwrap();
        prop_assert!(close(n as f64, d.as_nanos() as f64));
    }

    #[test]
    fn bytes_over_rate_times_rate_gives_the_bytes_back(n in 1u64..1 << 40, bps in 1_000u64..1 << 37) {
        let (bytes, rate) = (Bytes::new(n), Rate::from_bits_per_second(bps));
        let carried = rate * (bytes / rate);
        // Rounding down to a nanosecond loses at most the data of one nanosecond, plus one byte.
        let slack = bps / 8_000_000_000 + 2;
        prop_assert!(carried <= bytes && bytes.get() - carried.get() <= slack);
    }

    #[test]
    fn parsing_never_panics(text in "\\PC*") {
        let _ = text.parse::<Rate>();
        let _ = text.parse::<Bytes>();
        let _ = text.parse::<Duration>();
        let _ = text.parse::<Probability>();
        let _ = text.parse::<Volume>();
    }
}

proptest! {
    #[test]
    fn a_deadline_orders_like_an_optional_time_with_never_last(
        a in prop::option::of(0..u64::MAX), b in prop::option::of(0..u64::MAX), now in any::<u64>(),
    ) {
        let time = |nanos: Option<u64>| nanos.map(Time::from_nanos);
        let (first, second) = (Deadline::from(time(a)), Deadline::from(time(b)));
        prop_assert_eq!(first.time(), time(a));
        prop_assert_eq!(first.is_set(), a.is_some());
        let earlier = [a, b].into_iter().flatten().min();
        prop_assert_eq!(first.min(second).time(), time(earlier));
        let now = Time::from_nanos(now);
        prop_assert_eq!(first.is_before(now), a.is_some_and(|at| Time::from_nanos(at) < now));
    }

    #[test]
    fn a_deadline_passes_at_its_time(at in 0..u64::MAX, now in 0..u64::MAX) {
        let deadline = Deadline::at(Time::from_nanos(at));
        prop_assert_eq!(deadline.has_passed(Time::from_nanos(now)), now >= at);
        prop_assert!(!Deadline::NEVER.has_passed(Time::from_nanos(now)));
    }
}
