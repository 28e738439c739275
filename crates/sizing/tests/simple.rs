//! Laws of the controllers that decide once, and of the text form of a sizing.

use proptest::prelude::*;
use sweetspot_sizing::{
    BdpDefinition, Controller, ControllerConfig, EventKind, HeffnerVariant, Input, KnownPath,
    LinuxRule, Output, Sizing, SizingError, SizingPhase, StaticScheme,
};
use sweetspot_units::{Bytes, Duration, Rate, Time, Volume};

fn config() -> ControllerConfig {
    ControllerConfig {
        mss: Bytes::new(948),
        packet: Bytes::new(1000),
        max_window: Bytes::new(6_000_000),
        size: None,
        path: None,
    }
}

/// The SOBAS paper's path of Figure 3: C = 50 Mbit/s, T_m = 100 ms, A = 15 Mbit/s, T_e = 102 ms.
/// BTC and T_a are plausible results of an earlier measurement.
fn path() -> KnownPath {
    KnownPath {
        available: Some(Rate::from_mbit_per_second(15)),
        exogenous_rtt: Some(Duration::from_millis(102)),
        bulk_capacity: Some(Rate::from_mbit_per_second(12)),
        loaded_rtt: Some(Duration::from_millis(150)),
        ..KnownPath::new(Rate::from_mbit_per_second(50), Duration::from_millis(100))
    }
}

fn build(text: &str, path: Option<KnownPath>) -> Result<Box<dyn Controller + Send>, SizingError> {
    text.parse::<Sizing>()?.controller(&ControllerConfig { path, ..config() })
}

fn outputs(controller: &mut dyn Controller) -> Vec<Output> {
    core::iter::from_fn(|| controller.poll_output()).collect()
}

/// The window that a controller sets at its first byte. `None`: it leaves the window alone;
/// `Some(None)`: it lifts the limit.
fn first_window(text: &str) -> Option<Option<Bytes>> {
    let mut controller = build(text, Some(path())).unwrap();
    controller.handle(Time::ZERO, &Input::Data { bytes: Bytes::new(948), unread: Bytes::ZERO });
    outputs(&mut *controller).into_iter().find_map(|output| match output {
        Output::Window(window) => Some(window),
        _ => None,
    })
}

fn error(text: &str, path: Option<KnownPath>) -> String {
    build(text, path).err().expect("it is refused").to_string()
}

#[test]
fn kernel_touches_nothing() {
    let mut controller = build("kernel", None).unwrap();
    controller.handle(Time::ZERO, &Input::Data { bytes: Bytes::new(948), unread: Bytes::ZERO });
    controller.handle(Time::ZERO, &Input::Timeout);
    assert_eq!(outputs(&mut *controller), []);
    assert_eq!(controller.phase(), SizingPhase::HandsOff);
}

#[test]
fn max_sets_no_limit() {
    assert_eq!(first_window("max"), Some(None));
}

#[test]
fn fixed_holds_the_given_window_in_bytes_or_packets() {
    assert_eq!(first_window("fixed:450kB"), Some(Some(Bytes::new(450_000))));
    assert_eq!(first_window("fixed:450pkt"), Some(Some(Bytes::new(450_000))));
}

#[test]
fn the_six_definitions_match_the_papers_products() {
    // C T_m = 50e6 * 0.1 / 8 = 625,000; C T_e = 637,500; A T_m = 187,500;
    // A T_e = 191,250 (the paper's "191pkts"); BTC T_a = 12e6 * 0.15 / 8 = 225,000; no limit.
    let windows: Vec<_> = BdpDefinition::ALL.iter().map(|d| first_window(d.name())).collect();
    let limit = |n| Some(Some(Bytes::new(n)));
    let expected = [
        limit(625_000),
        limit(637_500),
        limit(187_500),
        limit(191_250),
        limit(225_000),
        Some(None),
    ];
    assert_eq!(windows, expected);
    assert_eq!(first_window("bdp"), first_window("bdp1"));
}

#[test]
fn a_static_controller_decides_once_with_or_without_data() {
    for text in ["fixed:450pkt", "max", "bdp", "bdp1", "bdp4", "bdp6"] {
        let mut controller = build(text, Some(path())).unwrap();
        assert_eq!(controller.poll_timeout(), Some(Time::ZERO), "{text}");
        controller.handle(Time::ZERO, &Input::Timeout);
        let windows = |outputs: Vec<Output>| {
            outputs.iter().filter(|o| matches!(o, Output::Window(_))).count()
        };
        assert_eq!(windows(outputs(&mut *controller)), 1, "{text}");
        assert_eq!(controller.poll_timeout(), None, "{text}");
        for millis in 0..100 {
            let now = Time::ZERO + Duration::from_millis(millis);
            controller
                .handle(now, &Input::Data { bytes: Bytes::new(100_000), unread: Bytes::ZERO });
            controller.handle(now, &Input::KernelRtt(Duration::from_millis(5)));
            controller.handle(now, &Input::Window { advertised: Bytes::new(1) });
        }
        assert_eq!(outputs(&mut *controller), [], "{text}");
        assert_eq!(controller.phase(), SizingPhase::Holding, "{text}");
    }
}

#[test]
fn a_limit_is_recorded_as_an_event_with_its_time() {
    let mut controller = build("fixed:450pkt", None).unwrap();
    let now = Time::from_nanos(7);
    controller.handle(now, &Input::Data { bytes: Bytes::new(948), unread: Bytes::ZERO });
    let recorded = outputs(&mut *controller).into_iter().find_map(|output| match output {
        Output::Event(event) => Some(event),
        _ => None,
    });
    let event = recorded.expect("an event");
    assert_eq!((event.at, event.kind), (now, EventKind::Limited { window: Bytes::new(450_000) }));
}

#[test]
fn the_error_for_a_missing_quantity_names_its_source() {
    let structure = KnownPath::new(path().rate, path().rtt);
    assert_eq!(
        error("bdp3", Some(structure)),
        "sizing bdp3 needs the available bandwidth A; it is measured on the path before the \
         transfer starts; sobas needs no input"
    );
    for (text, quantity) in [
        ("bdp1", "the capacity C"),
        ("bdp2", "the capacity C"),
        ("bdp3", "the available bandwidth A"),
        ("bdp4", "the available bandwidth A"),
        ("bdp5", "the bulk transfer capacity BTC"),
    ] {
        let message = error(text, None);
        assert!(message.contains(text) && message.contains(quantity), "{message}");
    }
    assert!(error("bdp2", Some(structure)).contains("the exogenous round-trip time T_e"));
    let without_rtt = KnownPath { exogenous_rtt: None, loaded_rtt: None, ..path() };
    assert!(error("bdp4", Some(without_rtt)).contains("T_e"));
    assert!(error("bdp5", Some(without_rtt)).contains("a first pass with sizing bdp6"));
    assert!(error("bdp", None).contains("rate and round-trip time"));
    assert!(build("bdp6", None).is_ok(), "no limit needs no knowledge");
}

#[test]
fn an_unknown_sizing_is_rejected_with_the_known_ones() {
    for text in ["", "bdp0", "bdp7", "BDP1", "fixed", "sobas:fast", "linux6.15", "kernel "] {
        let message = text.parse::<Sizing>().unwrap_err().to_string();
        assert!(message.contains(&format!("\"{text}\"")), "{message}");
        assert!(message.contains("bdp1 to bdp6") && message.contains("heffner"), "{message}");
    }
}

#[test]
fn an_invalid_fixed_size_is_rejected() {
    for text in ["fixed:", "fixed:450", "fixed:1.5pkt", "fixed:-1kB", "fixed:450kbit"] {
        let e = text.parse::<Sizing>().unwrap_err();
        assert!(matches!(e, SizingError::Size(_)), "{text}: {e}");
    }
    for text in ["fixed:0B", "fixed:0pkt"] {
        assert_eq!(text.parse::<Sizing>(), Err(SizingError::Zero));
    }
}

#[test]
fn each_kernel_version_selects_its_rule() {
    for (text, rule) in [
        ("linux:4.4", LinuxRule::UpTo6_15),
        ("linux:6.15", LinuxRule::UpTo6_15),
        ("linux:6.16", LinuxRule::From6_16),
        ("linux:6.17", LinuxRule::From6_16),
        ("linux:6.18", LinuxRule::From6_18),
        ("linux:6.19", LinuxRule::From6_19),
        ("linux:7.1", LinuxRule::From6_19),
        ("linux", LinuxRule::NEWEST),
    ] {
        assert_eq!(text.parse(), Ok(Sizing::Linux(rule)), "{text}");
    }
    for text in ["linux:", "linux:6", "linux:six.one", "linux:6.", "linux:6.15.2"] {
        let e = text.parse::<Sizing>().unwrap_err();
        assert!(matches!(e, SizingError::KernelVersion(_)), "{text}: {e}");
        assert!(e.to_string().contains("linux:6.15"), "{e}");
    }
}

fn any_sizing() -> impl Strategy<Value = Sizing> {
    prop_oneof![
        Just(Sizing::Kernel),
        Just(Sizing::Max),
        Just(Sizing::Bdp),
        Just(Sizing::Measured(StaticScheme::Wad)),
        Just(Sizing::Measured(StaticScheme::Nlanr)),
        Just(Sizing::RightSizing),
        Just(Sizing::RightSizingLimited),
        prop::sample::select(HeffnerVariant::ALL.to_vec()).prop_map(Sizing::Heffner),
        Just(Sizing::Sobas),
        Just(Sizing::SobasPaper),
        (0usize..6).prop_map(|i| Sizing::BdpBy(BdpDefinition::ALL[i])),
        (3u32..8, 0u32..25).prop_map(|(a, b)| Sizing::Linux(LinuxRule::of_version(a, b))),
        (1u64..100_000).prop_map(|n| Sizing::Fixed(Volume::Packets(n))),
        // `Display` keeps four digits.
        (1u64..10_000, 0u32..5)
            .prop_map(|(n, e)| { Sizing::Fixed(Volume::Bytes(Bytes::new(n * 10u64.pow(e)))) }),
    ]
}

proptest! {
    #[test]
    fn a_printed_sizing_parses_back_unchanged(sizing in any_sizing()) {
        prop_assert_eq!(sizing.to_string().parse(), Ok(sizing));
    }

    #[test]
    fn parsing_never_panics_and_every_error_is_one_line(text in "\\PC*") {
        if let Err(e) = text.parse::<Sizing>() {
            prop_assert!(!e.to_string().contains('\n'));
        }
    }

    #[test]
    fn a_fixed_size_is_printed_exactly(size in 1u64..1 << 50) {
        let sizing: Sizing = format!("fixed:{size}B").parse().unwrap();
        prop_assert_eq!(sizing.to_string().parse(), Ok(sizing));
    }

    #[test]
    fn no_argument_causes_a_panic(argument in "\\PC*") {
        let _ = format!("fixed:{argument}").parse::<Sizing>();
        let _ = format!("linux:{argument}").parse::<Sizing>();
    }
}

#[test]
fn a_path_full_of_cross_traffic_still_gets_one_segment() {
    // A = 0 and BTC = 0, so that A x T_m, A x T_e and BTC x T_a are zero.
    let nothing = Some(Rate::ZERO);
    let full = KnownPath { available: nothing, bulk_capacity: nothing, ..path() };
    for text in ["bdp3", "bdp4", "bdp5"] {
        let mut controller = build(text, Some(full)).unwrap();
        controller.handle(Time::ZERO, &Input::Data { bytes: Bytes::new(948), unread: Bytes::ZERO });
        let outputs = outputs(&mut *controller);
        assert!(outputs.contains(&Output::Window(Some(Bytes::new(948)))), "{text}: {outputs:?}");
    }
}
