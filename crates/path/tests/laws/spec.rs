//! Paths in text form.

use proptest::prelude::*;
use sweetspot_path::{NAMED_PATHS, PathError, PathSpec};
use sweetspot_units::{Bytes, Duration, Rate, Volume};

const DEMO: &str = "rate=100Mbit/s rtt=100ms buffer=125kB loss=0";

fn path(text: &str) -> PathSpec {
    text.parse().unwrap()
}

fn complaint(text: &str) -> String {
    text.parse::<PathSpec>().unwrap_err().to_string()
}

#[test]
fn the_demo_path_parses_to_its_stated_values() {
    let demo = path(DEMO);
    assert_eq!(demo.up, demo.down);
    assert_eq!(demo.up.rate, Rate::from_mbit_per_second(100));
    assert_eq!(demo.up.delay, Duration::from_millis(50));
    assert_eq!(demo.rtt(), Duration::from_millis(100));
    assert_eq!(demo.up.buffer, Volume::Bytes(Bytes::new(125_000)));
    assert_eq!(demo.mtu, Bytes::new(1500));
    // 10^8 bit/s x 0.1 s / 8 = 1.25 MB.
    assert_eq!(demo.bdp(), Bytes::new(1_250_000));
    // 100 Mbit/s x 1448 / 1500.
    assert_eq!(demo.payload_capacity(), Rate::from_bits_per_second(96_533_333));
}

#[test]
fn each_direction_can_be_set_separately() {
    let line = path(
        "up.rate=10Mbit/s down.rate=100Mbit/s up.delay=20ms down.delay=5ms up.buffer=64kB \
         down.buffer=100pkt up.loss=1% down.jitter=2ms",
    );
    assert_eq!(line.up.rate, Rate::from_mbit_per_second(10));
    assert_eq!(line.down.rate, Rate::from_mbit_per_second(100));
    assert_eq!(line.rtt(), Duration::from_millis(25));
    assert_eq!(line.up.buffer, Volume::Bytes(Bytes::new(64_000)));
    assert_eq!(line.down.buffer, Volume::Packets(100));
    assert_eq!((line.up.loss.get(), line.down.loss.get()), (0.01, 0.0));
    assert_eq!((line.up.jitter, line.down.jitter), (Duration::ZERO, Duration::from_millis(2)));
}

#[test]
fn a_directions_key_overrides_the_common_one() {
    let line = path("rate=100Mbit/s up.rate=20Mbit/s rtt=10ms buffer=100pkt");
    assert_eq!(line.up.rate, Rate::from_mbit_per_second(20));
    assert_eq!(line.down.rate, Rate::from_mbit_per_second(100));
}

#[test]
fn the_error_names_an_unknown_unit_and_its_key() {
    assert_eq!(
        complaint("rate=100Mb rtt=100ms buffer=125kB"),
        "path: rate: \"100Mb\" is not a rate: unknown unit \"Mb\" (did you mean Mbit/s or MB/s?); \
         write it like 20Mbit/s, 1.5Gbit/s, 12.5MB/s"
    );
    assert!(complaint("rate=1Mbit/s rtt=100 buffer=125kB").contains("rtt: \"100\""));
    assert!(complaint("rate=1Mbit/s rtt=1ms up.buffer=9kb").contains("up.buffer: \"9kb\""));
}

#[test]
fn a_rate_of_zero_is_rejected() {
    assert_eq!(
        complaint("rate=0Mbit/s rtt=100ms buffer=125kB"),
        "path: rate=0Mbit/s: it must be 1kbit/s or more"
    );
    assert!(complaint("rate=1Mbit/s down.rate=0bit/s rtt=1ms buffer=9kB").contains("down.rate"));
    assert!(complaint("rate=9Tbit/s rtt=1ms buffer=9kB").contains("1Tbit/s or less"));
}

#[test]
fn a_buffer_below_one_packet_is_rejected() {
    for buffer in ["1499B", "0B", "0pkt"] {
        let message = complaint(&format!("rate=1Mbit/s rtt=1ms buffer={buffer}"));
        assert!(message.contains(&format!("buffer={buffer}: ")), "{message}");
        assert!(message.contains("below one packet"), "{message}");
    }
    // The size of one packet depends on the MTU.
    assert!("rate=1Mbit/s rtt=1ms buffer=1500B".parse::<PathSpec>().is_ok());
    assert!(complaint("rate=1Mbit/s rtt=1ms buffer=1500B mtu=9000B").contains("one packet"));
}

#[test]
fn a_missing_key_is_named_with_an_example() {
    assert_eq!(complaint(""), "path: rate is missing; write it like rate=100Mbit/s");
    assert!(complaint("rate=1Mbit/s buffer=9kB").contains("rtt is missing"));
    assert!(complaint("rate=1Mbit/s rtt=1ms").contains("buffer is missing"));
    assert!(complaint("up.rate=1Mbit/s rtt=1ms buffer=9kB").contains("rate is missing"));
}

#[test]
fn unknown_and_duplicate_keys_are_named() {
    let not_a_pair = PathError::NotAPair("fast".into());
    assert_eq!("fast".parse::<PathSpec>(), Err(not_a_pair));
    for key in ["speed", "up.rtt", "sideways.rate", "up.", "="] {
        let message = complaint(&format!("{key}=1 {DEMO}"));
        assert!(message.contains("unknown key"), "{message}");
    }
    assert_eq!(complaint(&format!("{DEMO} rtt=1ms")), "path: rtt is given twice; keep one");
}

#[test]
fn a_typo_gets_a_did_you_mean_hint() {
    for (slip, meant) in [
        ("bufer=9kB", "buffer"),
        ("up.rte=1Mbit/s", "up.rate"),
        ("pu.rate=1Mbit/s", "up.rate"),
        ("queue=fqcodel", "fq-codel"),
        ("lte", "@lte"),
    ] {
        let message = complaint(&format!("{DEMO} {slip}"));
        assert!(message.contains(&format!(" (did you mean {meant}?)")), "{message}");
    }
    assert!(complaint("@lt").contains("\"@lt\" (did you mean @lte?)"));
    // No known word is similar.
    for strange in ["zyxwvut=1", "zyxwvut", "queue=zyxwvut"] {
        assert!(!complaint(&format!("{DEMO} {strange}")).contains("did you mean"), "{strange}");
    }
    assert!(!complaint("@zyxwvut").contains("did you mean"));
}

#[test]
fn out_of_range_values_are_rejected() {
    let with = |words: &str| complaint(&format!("rate=1Mbit/s buffer=9kB {words}"));
    assert!(with("rtt=1ms loss=1").contains("nothing would pass"));
    assert!(with("rtt=1ms loss=1.5").contains("between 0 and 1"));
    assert!(with("rtt=1ms mtu=100B").contains("between 576B and 9000B"));
    assert!(with("rtt=1ms mtu=65535B").contains("between 576B and 9000B"));
    assert!(with("rtt=1h").contains("60s or less"));
    assert!(with("delay=1h").contains("60s or less"));
    assert!(with("rtt=1ms seed=-1").contains("whole number"));
}

proptest! {
    #[test]
    fn parsing_never_panics(text in "\\PC*") {
        let _ = text.parse::<PathSpec>();
    }

    #[test]
    fn no_value_makes_the_parser_panic(
        key in "(up\\.|down\\.)?(rate|rtt|delay|buffer|loss|jitter|mtu|seed)",
        value in "[0-9.e+-]{0,25}(bit/s|Tbit/s|ms|h|B|TB|pkt|%)?",
    ) {
        let _ = format!("{key}={value} rate=1Mbit/s rtt=1ms buffer=9kB").parse::<PathSpec>();
        let _ = format!("{key}={value}").parse::<PathSpec>();
    }

    #[test]
    fn a_printed_path_parses_back_unchanged(
        mbit in 1_u64..900, delay_ms in 0_u64..900, kb in 9_u64..900, loss in 0_u32..100,
        seed: u64,
    ) {
        // `Display` keeps four digits, and these values have no more.
        let text = format!(
            "rate={mbit}Mbit/s delay={delay_ms}ms buffer={kb}kB loss={loss}e-3 seed={seed}"
        );
        let written = path(&text);
        prop_assert_eq!(path(&written.to_string()), written);
    }
}

#[test]
fn every_named_path_parses() {
    for path in NAMED_PATHS {
        let named: PathSpec = format!("@{}", path.name).parse().unwrap();
        assert_eq!(named, path.spec.parse().unwrap(), "{}", path.name);
    }
}

#[test]
fn keys_after_a_named_path_override_its_values() {
    let written = "rate=2Mbit/s rtt=28ms up.buffer=12.5kB down.buffer=62.5kB loss=1%";
    for changed in ["@cable rate=2Mbit/s loss=1%", "@cable,rate=2Mbit/s, loss=1%"] {
        assert_eq!(changed.parse::<PathSpec>(), written.parse(), "{changed}");
    }
    let error = "@nowhere".parse::<PathSpec>().unwrap_err().to_string();
    assert!(error.contains("\"@nowhere\"") && error.contains("@lte"), "{error}");
}

#[test]
fn the_error_for_an_impossible_value_names_its_key() {
    for (words, key) in [
        ("policer=20Mbit/s policer_burst=100B", "policer_burst"),
        ("policer=1bit/s policer_burst=100kB", "policer"),
        ("loss=0.9 loss_burst=2", "loss"),
        ("loss_burst=0", "loss_burst"),
        ("loss_burst=x", "loss_burst"),
        ("reorder=1%", "reorder"),
        ("jitter_order=maybe", "jitter_order"),
        ("aggregation=61s", "aggregation"),
        ("up.queue=fast", "up.queue"),
    ] {
        let text = format!("rate=100Mbit/s rtt=40ms buffer=125kB {words}");
        let Err(PathError::Impossible { key: named, .. }) = text.parse::<PathSpec>() else {
            panic!("{text}");
        };
        assert_eq!(named, key);
    }
    for (words, key) in [
        ("rate=9Mbit/s policer=20Mbit/s", "policer_burst"),
        ("rate=9Mbit/s policer_burst=9kB", "policer"),
        ("up.rate=9Mbit/s", "down.rate"),
        ("mtu=1500B", "rate"),
    ] {
        let text = format!("rtt=40ms buffer=125kB {words}");
        let Err(PathError::Missing(named, _)) = text.parse::<PathSpec>() else { panic!("{text}") };
        assert_eq!(named, key);
    }
}

#[test]
fn commas_and_spaces_both_separate_keys() {
    let spaces: PathSpec = "rate=10Mbit/s rtt=20ms buffer=30kB".parse().unwrap();
    for text in ["rate=10Mbit/s,rtt=20ms,buffer=30kB", " rate=10Mbps, rtt=20msec , buffer=30kB,"] {
        assert_eq!(text.parse(), Ok(spaces.clone()), "{text}");
    }
}

/// 10 Mbit/s x 20 ms = 25 kB, and 50 kB in the other direction, which has twice the rate.
#[test]
fn a_buffer_may_be_a_multiple_of_its_directions_bdp() {
    let path: PathSpec = "rate=10Mbit/s down.rate=20Mbit/s rtt=20ms buffer=1bdp".parse().unwrap();
    assert_eq!(path.up.buffer, Volume::Bytes(Bytes::new(25_000)));
    assert_eq!(path.down.buffer, Volume::Bytes(Bytes::new(50_000)));
    let wrong = "rate=10Mbit/s delay=10ms buffer=1bdp".parse::<PathSpec>().unwrap_err();
    assert!(wrong.to_string().contains("add rtt"), "{wrong}");
}
