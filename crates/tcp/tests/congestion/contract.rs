//! Invariants of every congestion control.

use proptest::prelude::*;
use sweetspot_tcp::congestion::{
    AckSample, Algorithm, Congestion, CongestionConfig, CongestionControl, CongestionEvent, Growth,
};
use sweetspot_units::Duration;

use crate::harness::{Flow, ack, at, config, event};

const ALL: [Algorithm; 5] =
    [Algorithm::Reno, Algorithm::Cubic, Algorithm::Vegas, Algorithm::Bbr, Algorithm::Lp];

#[derive(Debug, Clone)]
enum Step {
    Ack { acked: u32, rtt: u64, limited: bool },
    Recovery { window: f64 },
    Timeout { window: f64 },
    Ecn { window: f64 },
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        20 => (0u32..4, 1u64..400, any::<bool>())
            .prop_map(|(acked, rtt, limited)| Step::Ack { acked, rtt, limited }),
        1 => (1.0..1000.0).prop_map(|window| Step::Recovery { window }),
        1 => (1.0..1000.0).prop_map(|window| Step::Timeout { window }),
        1 => (1.0..1000.0).prop_map(|window| Step::Ecn { window }),
        1 => Just(Step::Restart),
    ]
}

fn simulate(control: &mut Congestion, now: u64, una: &mut u64, step: &Step) {
    let now = at(now);
    let limited_by = |window: f64| CongestionEvent { window, in_flight: 3, ..event(now) };
    match *step {
        Step::Ack { acked, rtt, limited } => {
            *una += u64::from(acked);
            control.handle_ack(&AckSample {
                acked,
                delivered: acked,
                rtt: Some(Duration::from_millis(rtt)),
                una: *una,
                nxt: *una + 5,
                in_flight: 5,
                cwnd_limited: limited,
                ..ack(now)
            });
        }
        Step::Recovery { window } => {
            control.handle_recovery(&limited_by(window));
            control.handle_recovered(now);
        }
        Step::Timeout { window } => control.handle_timeout(&limited_by(window)),
        Step::Ecn { window } => control.handle_ecn(&limited_by(window)),
        Step::Restart => control.handle_restart(now),
    }
}

proptest! {
    #[test]
    fn cwnd_is_finite_and_at_least_one_packet(
        steps in prop::collection::vec(step(), 1..300),
        per_ack in any::<bool>(),
    ) {
        let growth = if per_ack { Growth::PerAck } else { Growth::PerPacket };
        for algorithm in ALL {
            let mut control = Congestion::new(algorithm, &CongestionConfig { growth, ..config() });
            let mut una = 0;
            for (i, step) in steps.iter().enumerate() {
                simulate(&mut control, 20 * i as u64, &mut una, step);
                let cwnd = control.cwnd();
                prop_assert!(cwnd.is_finite() && cwnd >= 1.0, "{algorithm:?} {cwnd} after {step:?}");
                prop_assert!(control.ssthresh() >= 2.0, "{algorithm:?}");
            }
        }
    }

    #[test]
    fn acks_never_shrink_a_loss_based_cwnd_and_losses_never_grow_it(
        steps in prop::collection::vec(step(), 1..300),
    ) {
        for algorithm in [Algorithm::Reno, Algorithm::Cubic] {
            let mut control = Congestion::new(algorithm, &config());
            let mut una = 0;
            for (i, step) in steps.iter().enumerate() {
                let before = control.cwnd();
                simulate(&mut control, 20 * i as u64, &mut una, step);
                match step {
                    Step::Ack { .. } => prop_assert!(control.cwnd() >= before),
                    // The threshold's floor is two packets (RFC 5681 equation (4)).
                    _ => prop_assert!(control.cwnd() <= before.max(2.0)),
                }
            }
        }
    }
}

#[test]
fn every_control_but_lp_fills_a_link_with_an_unbounded_queue() {
    for algorithm in ALL.into_iter().filter(|algorithm| *algorithm != Algorithm::Lp) {
        let control = Congestion::new(algorithm, &config());
        let mut flow = Flow::new(control, 1000.0, Duration::from_millis(50));
        flow.run_until(at(8_000));
        let delivered = flow.run_until(at(9_900));
        assert!(delivered >= 1880, "{algorithm:?}: {delivered} of 1900");
    }
}

#[test]
fn only_bbr_sets_a_pacing_rate() {
    for algorithm in ALL {
        let control = Congestion::new(algorithm, &config());
        let mut flow = Flow::new(control, 1000.0, Duration::from_millis(50));
        flow.run_until(at(1000));
        assert_eq!(flow.control.pacing_rate().is_some(), algorithm == Algorithm::Bbr);
        assert_eq!(algorithm.needs_delivery_rate(), algorithm == Algorithm::Bbr);
    }
}

#[test]
fn congestion_state_fits_in_40_bytes() {
    // Reno is inline, at most five words; the others are behind a pointer.
    assert!(size_of::<Congestion>() <= 40, "{}", size_of::<Congestion>());
}
