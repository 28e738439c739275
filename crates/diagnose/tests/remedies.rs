//! Remedies and gains that follow from the evidence of a verdict.

use sweetspot_diagnose::{Class, Evidence, LimitVerdict, Limits, Reader, Stall};
use sweetspot_units::{Bytes, Duration, Rate};

const SECOND: Duration = Duration::from_secs(1);

/// A window of 65,535 bytes at 50 ms allows 10.5 Mbit/s, and 10 arrive.
fn held_by_window() -> Evidence {
    let mut evidence = Evidence::default();
    evidence.goodput = Rate::from_mbit_per_second(10);
    evidence.capacity = Some(Rate::from_mbit_per_second(100));
    evidence.window = Some(Bytes::new(65_535));
    evidence.rtt = Some(Duration::from_millis(50));
    evidence.mss = Bytes::new(1460);
    evidence.bytes = Bytes::new(100_000_000);
    evidence
}

fn verdict(class: Class, evidence: &Evidence) -> LimitVerdict {
    let verdict = LimitVerdict::new(&Limits::only(class, SECOND * 10), evidence);
    assert_eq!(verdict.class, class);
    verdict
}

#[test]
fn the_remedy_of_a_small_window_depends_on_the_reader() {
    let fix = |reader| {
        let mut evidence = held_by_window();
        evidence.reader = reader;
        verdict(Class::ReceiverWindow, &evidence).fix
    };
    let names = |fix: &str| ["SO_RCVBUF", "read faster"].map(|words| fix.contains(words));
    assert_eq!(names(&fix(Reader::Prompt)), [true, false]);
    for reader in [Reader::Unknown, Reader::Late] {
        let fix = fix(reader);
        assert_eq!(names(&fix), [true, true], "{fix}");
        assert!(fix.contains("Recv-Q"), "how to tell: {fix}");
    }
}

/// RFC 7323, section 2.2: without the option at both ends the field's 16 bits are the window.
#[test]
fn no_buffer_is_the_remedy_of_a_window_that_lacks_its_scale() {
    let mut evidence = held_by_window();
    (evidence.scale, evidence.unscaled) = (Some(0), true);
    let judged = verdict(Class::ReceiverWindow, &evidence);
    assert!(
        judged.fix.contains("tcp_window_scaling") && !judged.fix.contains("rmem"),
        "{}",
        judged.fix
    );
    assert!(!judged.words.contains("scale was 0"), "{}", judged.words);
    // A window far below 65,535 bytes has room for a larger buffer.
    evidence.window = Some(Bytes::new(8_760));
    evidence.goodput = Rate::from_mbit_per_second(1);
    let fix = verdict(Class::ReceiverWindow, &evidence).fix;
    assert!(fix.contains("rmem") && !fix.contains("tcp_window_scaling"), "{fix}");
}

/// If a limit that held for 3 of 10 seconds is gone, 7 remain: 10 Mbit/s become 14.3 at most.
#[test]
fn no_gain_exceeds_what_the_other_limits_leave() {
    let mut limits = Limits::only(Class::Application, SECOND * 3);
    limits.add(Class::Opportunity, SECOND * 2);
    limits.add(Class::Congestion, SECOND * 2);
    limits.add(Class::Transport, SECOND * 2);
    limits.add(Class::Bandwidth, SECOND);
    let mut evidence = held_by_window();
    evidence.best = Some(Rate::from_mbit_per_second(100));
    let judged = LimitVerdict::new(&limits, &evidence);
    assert_eq!(judged.class, Class::Application);
    let most = 10e6 * (10.0 / 7.0 - 1.0);
    assert!((judged.gain.as_f64() - most).abs() < 10.0, "{}", judged.gain);
    assert!(judged.words.contains("14.3 Mbit/s expected"), "{}", judged.words);
}

/// Silences of 2 s and 5 s are 70 % of 10 s, with 3 timeouts in the longer one and 5 in all.
#[test]
fn a_silence_is_told_with_its_own_numbers() {
    let stall = |seconds: u64| Stall {
        after: SECOND,
        lasted: SECOND * seconds,
        repeats: 3,
        ended: true,
        beyond: false,
        unheard: false,
    };
    let mut limits = Limits::only(Class::Stalled, SECOND * 7);
    limits.add(Class::Application, SECOND * 3);
    let mut evidence = Evidence::default();
    evidence.lasted = SECOND * 10;
    evidence.timeouts = 5;
    evidence.stall = Some(stall(5));
    let words = LimitVerdict::new(&limits, &evidence).words;
    assert!(
        words.contains("the longest silence of the receiver began 1 s after the beginning"),
        "{words}"
    );
    assert!(
        words.contains("retransmitted 3 times, before an answer came. In all it had 5 re"),
        "{words}"
    );
    evidence.stall = Some(stall(7));
    let words = LimitVerdict::new(&limits, &evidence).words;
    assert!(words.contains("the receiver fell silent 1 s after the beginning"), "{words}");
}
