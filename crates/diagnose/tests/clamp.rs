//! A clamp on the receiver's window, which is not its buffer.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use sweetspot_diagnose::{Class, Evidence, Flow, Limits, WindowClamp};
use sweetspot_units::{Bytes, Duration, Rate};

/// The verdict and the fix if a window of 51,000 bytes at 40 ms allows 10.2 Mbit/s, and the goodput
/// is 10 Mbit/s.
fn judged(clamp: Option<(u64, bool)>) -> (String, String) {
    let mut evidence = Evidence::default();
    evidence.goodput = Rate::from_mbit_per_second(10);
    evidence.window = Some(Bytes::new(51_000));
    evidence.rtt = Some(Duration::from_millis(40));
    evidence.clamp =
        clamp.map(|(size, is_of_tuner)| WindowClamp { size: Bytes::new(size), is_of_tuner });
    let limits = Limits::only(Class::ReceiverWindow, Duration::from_secs(10));
    let end = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 1);
    let flow = Flow::new(end, end, limits, &evidence);
    assert_eq!(flow.verdict.class, Class::ReceiverWindow);
    (flow.verdict.words, flow.fix)
}

#[test]
fn a_tuners_clamp_is_named_without_buffer_advice() {
    let (words, fix) = judged(Some((51_000, true)));
    assert!(words.contains("sweetspot tune holds the window at 51,000 bytes"), "{words}");
    assert!(fix.contains("stop the tuner") && fix.contains("sweetspot tune undo"), "{fix}");
    assert!(!fix.contains("SO_RCVBUF") && !fix.contains("tcp_rmem"), "{fix}");
}

#[test]
fn a_clamp_of_unknown_origin_is_named_without_buffer_advice() {
    let (words, fix) = judged(Some((51_000, false)));
    assert!(words.contains("A clamp of 51,000 bytes (TCP_WINDOW_CLAMP)"), "{words}");
    assert!(fix.contains("find the program that sets TCP_WINDOW_CLAMP"), "{fix}");
    assert!(!fix.contains("SO_RCVBUF") && !fix.contains("tcp_rmem"), "{fix}");
}

#[test]
fn a_window_far_below_its_clamp_is_limited_by_the_buffer() {
    // The window is only half of the clamp of 102,000 bytes.
    for clamp in [None, Some((102_000, true))] {
        let (words, fix) = judged(clamp);
        assert!(!words.contains("tune") && fix.contains("SO_RCVBUF"), "{words} {fix}");
    }
}
