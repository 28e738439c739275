//! Remedies and gains that follow from the evidence of a verdict.

use sweetspot_diagnose::{Class, Evidence, HostBuffer, LimitVerdict, Limits, Reader, Stall};
use sweetspot_units::{Bytes, Duration, Rate};

const SECOND: Duration = Duration::from_secs(1);

/// A window of 65,535 bytes at 50 ms allows 10.5 Mbit/s, and the goodput is 10 Mbit/s.
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

/// 5 s idle and 4 s of waiting are 56 % and 44 % of the applications' time: neither is most of it. 9 s idle are 69 %.
#[test]
fn non_idle_time_gets_a_fix_too() {
    let fix = |idle: u64| {
        let mut limits = Limits::only(Class::Idle, SECOND * idle);
        limits.add(Class::WaitingForPeer, SECOND * 4);
        LimitVerdict::new(&limits, &Evidence::default()).fix
    };
    let both = fix(5);
    assert!(both.starts_with("The idle time needs no fix; the 44 % waiting for the peer may. In the requesting program"), "{both}");
    assert!(fix(9).starts_with("Nothing to fix"), "{}", fix(9));
}

#[test]
fn the_fix_for_a_small_window_depends_on_the_reader() {
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

/// A window scale of 0 shows a buffer of 64 KiB or less, which short pauses of the reader fill.
#[test]
fn the_fix_for_a_tiny_buffer_comes_before_its_late_reader() {
    let mut evidence = held_by_window();
    (evidence.reader, evidence.scale) = (Reader::Late, Some(0));
    let fix = verdict(Class::ReceiverWindow, &evidence).fix;
    let [buffer, reads] = ["SO_RCVBUF", "read faster"].map(|words| fix.find(words));
    assert!(buffer.is_some() && buffer < reads, "{fix}");
}

/// RFC 7323, section 2.2: unless both ends send the option, the window is the field's 16 bits.
#[test]
fn the_fix_for_a_missing_window_scale_is_not_a_larger_buffer() {
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

/// If a limit that held for 3 of 10 seconds is removed, 7 s remain: 10 Mbit/s become 14.3 Mbit/s at most, and a capacity of 100
/// Mbit/s promises nothing. If the limit held all the time, no time remains.
#[test]
fn no_gain_is_promised_if_another_limit_comes_first() {
    let mut limits = Limits::only(Class::Application, SECOND * 3);
    limits.add(Class::Opportunity, SECOND * 2);
    limits.add(Class::Congestion, SECOND * 2);
    limits.add(Class::Transport, SECOND * 2);
    limits.add(Class::Bandwidth, SECOND);
    let evidence = held_by_window();
    let judged = LimitVerdict::new(&limits, &evidence);
    assert_eq!(judged.class, Class::Application);
    assert_eq!(judged.gain, None, "{}", judged.words);
    assert!(!judged.words.contains("Without that"), "{}", judged.words);
    let judged = verdict(Class::Application, &evidence);
    assert_eq!(judged.gain, Some(Rate::from_mbit_per_second(90)));
    assert!(judged.words.contains("up to 100 Mbit/s, the path's capacity"), "{}", judged.words);
}

/// If losses limited a sender all the time, they also limited its best rate, which then does not show the capacity. Without a
/// known capacity there is no gain. With one, the losses do not bound the gain, because they are removed.
#[test]
fn a_best_rate_measured_under_the_limit_promises_no_gain() {
    let mut evidence = held_by_window();
    evidence.capacity = None;
    evidence.best = Some(Rate::from_mbit_per_second(15));
    (evidence.segments, evidence.loss_events) = (70_000, 700);
    let judged = verdict(Class::Congestion, &evidence);
    assert_eq!(judged.gain, None, "{}", judged.words);
    evidence.capacity = Some(Rate::from_mbit_per_second(100));
    let judged = verdict(Class::Congestion, &evidence);
    assert_eq!(judged.gain, Some(Rate::from_mbit_per_second(90)));
}

/// Silences of 2 s and 5 s are 70 % of 10 s, with 3 timeouts in the longer one and 5 in total.
#[test]
fn a_silence_is_reported_with_its_own_numbers() {
    let stall = |seconds: u64| Stall {
        after: SECOND,
        lasted: SECOND * seconds,
        repeats: 3,
        ended: true,
        beyond: false,
        unheard: false,
        reset: None,
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

/// A window of 65,535 bytes needs a buffer of 131,072. 100 Mbit/s at 50 ms need a window of 625 kB and a buffer of 1.25 MB.
/// Linux's default exceeds this, and so does a host with 32 MiB: the remedy must not name a smaller value for either.
#[test]
fn the_fix_for_a_small_buffer_never_lowers_the_host_setting() {
    let fix = |mbit: Option<u64>, receive_buffer| {
        let mut evidence = held_by_window();
        evidence.reader = Reader::Prompt;
        evidence.capacity = mbit.map(Rate::from_mbit_per_second);
        evidence.receive_buffer = receive_buffer;
        verdict(Class::ReceiverWindow, &evidence).fix
    };
    let host = |is_set, max| Some(HostBuffer { is_set, max: Bytes::new(max) });
    for mbit in [None, Some(100)] {
        let set = fix(mbit, host(Some(true), 32 << 20));
        assert!(set.contains("remove the call that sets SO_RCVBUF; "), "{set}");
        assert!(set.contains("33.55 MB, is large enough"), "{set}");
        let default = fix(mbit, None);
        assert!(default.contains("default or above (6.291 MB or more)"), "{default}");
        let free = fix(mbit, host(Some(false), 32 << 20));
        assert!(!free.contains("SO_RCVBUF") && !free.contains("raise"), "{free}");
    }
    let small = fix(Some(100), host(Some(false), 1 << 20));
    assert!(
        small.contains("raise") && small.contains("from 1.049 MB to at least 1.25 MB"),
        "{small}"
    );
    // 1 Gbit/s at 50 ms needs 12.5 MB of buffer, more than the default.
    assert!(fix(Some(1000), None).contains("is at least 12.5 MB"), "{}", fix(Some(1000), None));
}

/// With a min RTT of 40 ms, an RTT of 42 ms shows no queue. 80 ms shows a full queue, and its overflow explains the losses.
#[test]
fn losses_without_a_queue_suggest_a_policer() {
    let mut evidence = held_by_window();
    (evidence.retransmitted, evidence.loss_events, evidence.segments) = (Some(600), 26, 9000);
    evidence.rtt_min = Some(Duration::from_millis(40));
    evidence.is_sampled = true;
    for (rtt, is_policer) in [(42, true), (80, false)] {
        evidence.rtt = Some(Duration::from_millis(rtt));
        evidence.capacity = Some(evidence.goodput);
        let LimitVerdict { words, fix, .. } = verdict(Class::Bandwidth, &evidence);
        assert_eq!(
            [&words, &fix].map(|text| text.contains("policer")),
            [is_policer; 2],
            "{words} {fix}"
        );
        let fix = verdict(Class::Congestion, &evidence).fix;
        assert_eq!(fix.contains("repair the link"), is_policer, "{fix}");
    }
}

/// In a capture the RTTs before the losses show whether a queue was full, whatever the median RTT.
#[test]
fn the_fix_for_captured_losses_follows_the_rtts_before_them() {
    let mut evidence = held_by_window();
    evidence.loss_events = 1;
    for loses_elsewhere in [false, true] {
        evidence.loses_elsewhere = loses_elsewhere;
        let fix = verdict(Class::Congestion, &evidence).fix;
        assert_eq!(fix.contains("its overflow loses packets"), !loses_elsewhere, "{fix}");
        assert_eq!(fix.contains("repair the link"), loses_elsewhere, "{fix}");
    }
}
