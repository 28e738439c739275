//! Variation: token buckets, bursts of loss, reordering, turns, changes.

use proptest::prelude::*;
use sweetspot_path::{
    Change, Direction, DirectionSpec, DropReason, DropTail, Link, Policer, PolicerSpec,
    Propagation, RandomLoss, TokenBucket, Variation,
};
use sweetspot_units::{Bytes, Duration, Probability, Rate, Time, Volume};

use crate::elements::{Numbered, at_us, spec};

/// A byte takes 1 us here.
const BYTE_PER_US: Rate = Rate::from_mbit_per_second(8);

fn arrivals() -> impl Strategy<Value = Vec<(u64, u64)>> {
    prop::collection::vec((0_u64..3000, 40_u64..1500), 1..80)
}

/// Whether the accepted packets and another of `size` at `now` conform: no interval that ends now has more bytes than the
/// depth and the interval's tokens.
fn conforms(sent: &[(u64, u64)], now: u64, size: u64, depth: u64) -> bool {
    let mut sum = size;
    sent.iter().rev().all(|(at, bytes)| {
        sum += bytes;
        sum <= depth + (now - at)
    }) && size <= depth
}

proptest! {
    #[test]
    fn a_policer_admits_exactly_the_conforming_packets(arrivals in arrivals(), depth in 1500_u64..6000) {
        let mut policer = Policer::new(BYTE_PER_US, Bytes::new(depth));
        let (mut now, mut sent) = (0, Vec::new());
        for (gap, size) in arrivals {
            now += gap;
            let admitted = policer.admits(at_us(now), Bytes::new(size));
            prop_assert_eq!(admitted, conforms(&sent, now, size, depth));
            if admitted {
                sent.push((now, size));
            }
        }
    }

    #[test]
    fn a_shaper_releases_packets_as_soon_as_they_conform(
        arrivals in arrivals(),
        depth in 1500_u64..6000,
    ) {
        let bucket = TokenBucket::new(BYTE_PER_US, Bytes::new(depth));
        let mut link = Link::shaper(bucket, DropTail::new(Volume::Packets(1000)));
        let (mut now, mut arrived) = (0, Vec::new());
        let mut out: Vec<(u64, u64)> = Vec::new();
        let mut depart = |link: &mut Link<Numbered, _>, until| {
            while let Some((left, packet)) = link.poll_departure(until, &mut |_| {}) {
                out.push((left.as_nanos() / 1000, packet.1));
            }
        };
        for (n, (gap, size)) in arrivals.into_iter().enumerate() {
            now += gap;
            arrived.push(now);
            depart(&mut link, at_us(now));
            link.handle_arrival(at_us(now), Numbered(n as u64, size)).unwrap();
        }
        depart(&mut link, Time::MAX);
        prop_assert_eq!(out.len(), arrived.len());
        for (n, &(left, size)) in out.iter().enumerate() {
            let first = arrived[n].max(if n > 0 { out[n - 1].0 } else { 0 });
            prop_assert!(left >= first && conforms(&out[..n], left, size, depth));
            prop_assert!(left == first || !conforms(&out[..n], left - 1, size, depth));
        }
    }

    #[test]
    fn a_token_bucket_of_zero_depth_is_a_constant_rate_link(
        arrivals in arrivals(),
        rate in 1_000_000_u64..100_000_000,
    ) {
        let rate = Rate::from_bits_per_second(rate);
        let room = DropTail::new(Volume::Packets(5));
        let mut constant = Link::new(rate, room.clone());
        let mut shaper = Link::shaper(TokenBucket::new(rate, Bytes::ZERO), room);
        let mut now = Time::ZERO;
        for (n, (gap, size)) in arrivals.into_iter().enumerate() {
            now += Duration::from_micros(gap);
            let packet = Numbered(n as u64, size);
            for link in [&mut constant, &mut shaper] {
                while link.poll_timeout().is_some_and(|due| due < now) {
                    link.poll_departure(now, &mut |_| {});
                }
            }
            prop_assert_eq!(constant.poll_timeout(), shaper.poll_timeout());
            let sent = constant.handle_arrival(now, packet);
            prop_assert_eq!(sent, shaper.handle_arrival(now, packet));
        }
    }
}

#[test]
fn a_policer_drops_before_the_queue_and_reports_the_reason() {
    let policer = Some(PolicerSpec { rate: BYTE_PER_US, burst: Bytes::new(1500) });
    let mut direction = Direction::new(&DirectionSpec { policer, ..spec() }, Bytes::new(1500), 1);
    assert!(direction.handle_arrival(at_us(0), Numbered(0, 1500)).is_ok());
    let refused = direction.handle_arrival(at_us(1499), Numbered(1, 1500)).unwrap_err();
    assert_eq!(refused.reason, DropReason::Policer);
    assert!(direction.handle_arrival(at_us(1500), Numbered(2, 1500)).is_ok());
    assert_eq!((direction.counters().dropped, direction.link().counters().dropped), (1, 0));
}

#[test]
fn bursty_loss_has_the_configured_share_and_burst_length() {
    let (share, run, packets) = (0.02, 8, 1_000_000);
    let mut loss = RandomLoss::in_bursts(Probability::new(share).unwrap(), run, 3);
    let fates: Vec<bool> = (0..packets).map(|_| loss.takes_next()).collect();
    let lost = fates.iter().filter(|lost| **lost).count() as f64;
    let runs = fates.windows(2).filter(|pair| pair[0] && !pair[1]).count() as f64;
    // Runs are geometric: their standard deviation is sqrt(run (run - 1)) = 7.5. There are 1e6 x 0.02 / 8 = 2500 runs.
    let deviation = f64::from(run * (run - 1)).sqrt() / 2500_f64.sqrt();
    assert!((lost / runs - f64::from(run)).abs() < 5.0 * deviation, "{}", lost / runs);
    // Both the number and the length of the runs vary.
    let relative = (1.0_f64 / 2500.0 + (deviation / f64::from(run)).powi(2)).sqrt();
    assert!((lost / 20_000.0 - 1.0).abs() < 5.0 * relative, "{lost}");
}

#[test]
fn bursts_of_mean_length_1_over_1_minus_p_equal_independent_loss() {
    // Independent losses of a half have runs of 1 / (1 - 0.5) = 2.
    let mut bursts = RandomLoss::in_bursts(Probability::new(0.5).unwrap(), 2, 9);
    let mut alone = RandomLoss::new(Probability::new(0.5).unwrap(), 9);
    assert!((0..1000).all(|_| bursts.takes_next() == alone.takes_next()));
}

proptest! {
    #[test]
    fn packets_leave_only_at_multiples_of_the_aggregation_interval(
        gaps in prop::collection::vec(0u64..5000, 1..100),
        turn in 1u64..4000,
    ) {
        let aggregation = Duration::from_micros(turn);
        let delay = Duration::from_millis(10);
        let mut line = Propagation::new(&DirectionSpec { aggregation, ..spec() }, 1);
        let mut left = Time::ZERO;
        for gap in gaps {
            left += Duration::from_micros(gap);
            let out = line.handle_departure(left) - delay;
            prop_assert_eq!(out.as_nanos() % aggregation.as_nanos(), 0);
            prop_assert!(out >= left && out.since(left) < aggregation);
        }
    }

    #[test]
    fn reordering_never_delays_beyond_the_configured_maximum(
        gaps in prop::collection::vec(0u64..2000, 1..100),
        jitter in 0u64..3000,
        by in 1u64..3000,
    ) {
        let line = DirectionSpec {
            jitter: Duration::from_micros(jitter),
            jitter_reorders: true,
            reorder: Probability::new(0.3).unwrap(),
            reorder_by: Duration::from_micros(by),
            ..spec()
        };
        let mut direction = Direction::new(&line, Bytes::new(1500), 5);
        let mut now = Time::ZERO;
        let mut arrived = Vec::new();
        for (n, gap) in gaps.iter().enumerate() {
            now += Duration::from_micros(*gap);
            // Small packets: no packet waits in the queue for more than 100 x 4 us.
            if direction.handle_arrival(now, Numbered(n as u64, 50)).is_ok() {
                arrived.push((n as u64, now));
            }
        }
        let out: Vec<_> = std::iter::from_fn(|| direction.poll_delivery(Time::MAX)).collect();
        prop_assert_eq!(out.len(), arrived.len());
        prop_assert!(out.is_sorted_by_key(|(due, _)| *due));
        for (due, packet) in out {
            let (_, arrived) = arrived.iter().find(|(n, _)| *n == packet.0).unwrap();
            let max = Duration::from_micros(jitter + by + 400) + line.delay;
            prop_assert!(due >= *arrived + line.delay && due <= *arrived + max);
        }
    }
}

#[test]
fn a_delayed_packet_is_overtaken_by_packets_within_its_delay() {
    // Each packet is held back with probability 1/2, by 1 ms; packets leave the link every 120 us. A packet that is held
    // back is overtaken by up to 8 others.
    let half = Probability::new(0.5).unwrap();
    let by = Duration::from_millis(1);
    let buffer = Volume::Packets(10_000);
    let line = DirectionSpec { reorder: half, reorder_by: by, buffer, ..spec() };
    let mut direction = Direction::new(&line, Bytes::new(1500), 1);
    for n in 0..2000 {
        direction.handle_arrival(Time::ZERO, Numbered(n, 1500)).unwrap();
    }
    let out: Vec<u64> =
        std::iter::from_fn(|| direction.poll_delivery(Time::MAX)).map(|(_, p)| p.0).collect();
    let late = out.iter().enumerate().map(|(place, n)| place as i64 - *n as i64);
    let max = late.clone().max().unwrap();
    assert!((5..=8).contains(&max), "{max}");
    assert!(late.min().unwrap() < 0);
}

#[test]
fn a_direction_applies_rate_and_delay_changes_on_time() {
    let mut direction = Direction::new(&spec(), Bytes::new(1500), 1);
    let at = Duration::from_millis(1);
    let change = |rate, delay| Change { at, rate, delay };
    let changes =
        vec![change(Some(Rate::from_mbit_per_second(50)), Some(Duration::from_millis(2)))];
    // Time 0 of the changes is 5 ms: at 6 ms the link sends a packet in 240 us, and 2 ms later the packet comes out.
    direction.vary(at_us(5000), &Variation { trace: None, changes });
    for (now, due) in [(1000, 11_120), (5999, 11_120), (6200, 11_120), (17_000, 19_240)] {
        direction.handle_arrival(at_us(now), Numbered(now, 1500)).unwrap();
        let through = direction.poll_delivery(Time::MAX).map(|(due, _)| due);
        // The second and third packets, on the shorter route, wait for the first.
        assert_eq!(through, Some(at_us(due)), "{now}");
    }
}
