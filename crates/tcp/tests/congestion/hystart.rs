use sweetspot_tcp::congestion::{AckSample, HyStart, SlowStart};
use sweetspot_units::Duration;

use crate::harness::{ack, at};

/// One round of `acks` ACKs with an RTT of `rtt` ms: una runs through the round, nxt is the next round's end.
fn round(hystart: &mut HyStart, una: &mut u64, acks: u64, rtt: u64) -> Vec<SlowStart> {
    let nxt = *una + 2 * acks;
    (0..acks)
        .map(|_| {
            *una += 1;
            let rtt = Some(Duration::from_millis(rtt));
            hystart.handle_ack(&AckSample { rtt, una: *una, nxt, ..ack(at(0)) }, 1.0)
        })
        .collect()
}

#[test]
fn a_steady_rtt_never_ends_slow_start() {
    let (mut hystart, mut una) = (HyStart::default(), 0);
    for _ in 0..20 {
        assert!(round(&mut hystart, &mut una, 16, 100).iter().all(|s| *s == SlowStart::Grow(1.0)));
    }
}

#[test]
fn an_rtt_rise_of_an_eighth_slows_growth_after_eight_samples() {
    let (mut hystart, mut una) = (HyStart::default(), 0);
    round(&mut hystart, &mut una, 16, 100);
    // Threshold: clamp(100 / 8 = 12.5, 4, 16) = 12.5 ms; 113 > 112.5. The round's end is two
    // windows after its start here, so the samples of the new round begin with the 17th ACK.
    round(&mut hystart, &mut una, 17, 100);
    let rise = round(&mut hystart, &mut una, 64, 113);
    assert!(rise.contains(&SlowStart::Grow(0.25)));
    assert!(!rise.contains(&SlowStart::Exit));
}

#[test]
fn an_rtt_rise_below_the_threshold_is_ignored() {
    let (mut hystart, mut una) = (HyStart::default(), 0);
    round(&mut hystart, &mut una, 16, 100);
    for _ in 0..10 {
        let rise = round(&mut hystart, &mut una, 16, 112);
        assert!(rise.iter().all(|s| *s == SlowStart::Grow(1.0)));
    }
}

#[test]
fn five_conservative_rounds_end_slow_start() {
    let (mut hystart, mut una) = (HyStart::default(), 0);
    let mut steps = Vec::new();
    for rtt in [100, 100, 120, 120, 120, 120, 120, 120, 120, 120, 120, 120, 120, 120, 120] {
        steps.extend(round(&mut hystart, &mut una, 16, rtt));
    }
    let exit = steps.iter().position(|s| *s == SlowStart::Exit).expect("it ends");
    let first = steps.iter().position(|s| *s == SlowStart::Grow(0.25)).expect("it slows down");
    // A round lasts from 16 to 32 ACKs here; there are five, including the partial first one.
    assert!((4 * 16..=5 * 32).contains(&(exit - first)), "{first} {exit}");
    assert!(steps[first..exit].iter().all(|s| *s == SlowStart::Grow(0.25)));
}

#[test]
fn slow_start_resumes_after_a_brief_rtt_spike() {
    let (mut hystart, mut una) = (HyStart::default(), 0);
    for rtt in [100, 100, 120, 120, 100, 100, 100] {
        round(&mut hystart, &mut una, 16, rtt);
    }
    let steps = round(&mut hystart, &mut una, 16, 100);
    assert!(steps.iter().all(|s| *s == SlowStart::Grow(1.0)), "{steps:?}");
}

#[test]
fn a_large_ack_counts_at_most_eight_packets() {
    let mut hystart = HyStart::default();
    assert_eq!(
        hystart.handle_ack(&AckSample { una: 1, nxt: 9, ..ack(at(0)) }, 40.0),
        SlowStart::Grow(8.0)
    );
}
