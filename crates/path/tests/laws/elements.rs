//! Queue, link, pipe, and all three in series.

use proptest::prelude::*;
use sweetspot_path::{
    Direction, DirectionSpec, DropReason, DropTail, Dropped, Fan, Jitter, Link, Packet, Pipe,
    PolicerSpec, Propagation, QueueDiscipline, Random, RandomLoss,
};
use sweetspot_units::{Bytes, Duration, Probability, Rate, Time, Volume};

/// A packet with a number and a size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Numbered(pub u64, pub u64);

impl Packet for Numbered {
    fn wire_size(&self) -> Bytes {
        Bytes::new(self.1)
    }
}

/// 1500 B take 120 us here.
const RATE: Rate = Rate::from_mbit_per_second(100);

pub fn at_us(us: u64) -> Time {
    Time::ZERO + Duration::from_micros(us)
}

pub fn spec() -> DirectionSpec {
    DirectionSpec::new(RATE, Duration::from_millis(10), Volume::Packets(10))
}

/// All packets that ever come out, with their times.
fn drain(direction: &mut Direction<Numbered>) -> Vec<(Time, u64)> {
    std::iter::from_fn(|| direction.poll_delivery(Time::MAX)).map(|(due, p)| (due, p.0)).collect()
}

#[test]
fn a_packet_takes_its_serialisation_time_plus_the_delay() {
    let mut direction = Direction::new(&spec(), Bytes::new(1500), 1);
    direction.handle_arrival(at_us(1000), Numbered(0, 1500)).unwrap();
    // 1000 us + 1500 B x 8 / 100 Mbit/s = 120 us + 10,000 us.
    assert_eq!(direction.poll_timeout(), Some(at_us(11_120)));
    assert_eq!(direction.poll_delivery(at_us(11_119)), None);
    assert_eq!(direction.poll_delivery(at_us(11_120)), Some((at_us(11_120), Numbered(0, 1500))));
}

#[test]
fn drop_threshold_is_independent_of_delay() {
    for delay_ms in [0, 1, 10, 100, 1000] {
        let delay = Duration::from_millis(delay_ms);
        let mut direction = Direction::new(&DirectionSpec { delay, ..spec() }, Bytes::new(1500), 1);
        // 30 packets at once: the buffer of ten holds one in service and nine behind it.
        let accepted = (0..30)
            .filter(|&n| direction.handle_arrival(Time::ZERO, Numbered(n, 1500)).is_ok())
            .count();
        assert_eq!(accepted, 10, "with a delay of {delay}");
        // 120 us later one packet has left the buffer, though it is still on the wire: exactly one
        // more fits.
        assert!(direction.handle_arrival(at_us(120), Numbered(30, 1500)).is_ok());
        assert!(direction.handle_arrival(at_us(120), Numbered(31, 1500)).is_err());
    }
}

#[test]
fn a_buffer_in_bytes_includes_the_packet_in_service() {
    let buffer = Volume::Bytes(Bytes::new(4500));
    let mut direction = Direction::new(&DirectionSpec { buffer, ..spec() }, Bytes::new(1500), 1);
    // 1500 on the link, 1500 + 1000 waiting: 4000 of 4500. 501 do not fit, 500 do.
    for (n, size) in [1500, 1500, 1000].into_iter().enumerate() {
        direction.handle_arrival(Time::ZERO, Numbered(n as u64, size)).unwrap();
    }
    let refused = Err(Dropped { packet: Numbered(3, 501), reason: DropReason::Queue });
    assert_eq!(direction.handle_arrival(Time::ZERO, Numbered(3, 501)), refused);
    direction.handle_arrival(Time::ZERO, Numbered(4, 500)).unwrap();
    assert_eq!(direction.link().backlog(), Bytes::new(4500));
}

#[test]
fn a_busy_link_accumulates_no_rounding_error() {
    // 1500 B at 7 Mbit/s take 1,714,285.714... ns. Rounding down to whole nanoseconds would lose 5
    // of them in every 7 packets.
    let rate = Rate::from_mbit_per_second(7);
    let mut link = Link::new(rate, DropTail::new(Volume::Packets(100_001)));
    for n in 0..70_000 {
        link.handle_arrival(Time::ZERO, Numbered(n, 1500)).unwrap();
    }
    let mut last = Time::ZERO;
    while let Some((left, _)) = link.poll_departure(Time::MAX, &mut |_| {}) {
        last = left;
    }
    // 70,000 x 12,000 bit / 7,000,000 bit/s = 120 s.
    assert_eq!(last, Time::ZERO + Duration::from_secs(120));
}

#[test]
fn a_new_rate_applies_only_to_unsent_bits() {
    let mut link = Link::new(RATE, DropTail::new(Volume::Packets(10)));
    link.handle_arrival(Time::ZERO, Numbered(0, 1500)).unwrap();
    link.handle_arrival(Time::ZERO, Numbered(1, 1500)).unwrap();
    // Half of the first packet has left after 60 us. At half the rate the other half takes 120 us,
    // and the second packet 240 us.
    link.set_rate(at_us(60), Rate::from_mbit_per_second(50));
    let left = |l: &mut Link<_, _>| l.poll_departure(Time::MAX, &mut |_| {}).unwrap().0;
    assert_eq!(left(&mut link), at_us(180));
    assert_eq!(left(&mut link), at_us(420));
}

#[test]
fn a_pipe_does_not_reorder() {
    let mut pipe = Pipe::default();
    pipe.handle_entry(at_us(20), 'a');
    pipe.handle_entry(at_us(10), 'b');
    assert_eq!(pipe.poll_exit(at_us(19)), None);
    assert_eq!(pipe.poll_exit(at_us(20)), Some((at_us(20), 'a')));
    assert_eq!(pipe.poll_exit(at_us(20)), Some((at_us(20), 'b')));
}

#[test]
fn random_loss_drops_the_configured_share() {
    let mut loss = RandomLoss::new(Probability::new(0.02).unwrap(), 7);
    let lost = (0..100_000).filter(|_| loss.takes_next()).count() as f64;
    // Binomial: mean 2000, standard deviation sqrt(100,000 x 0.02 x 0.98) = 44; the tolerance is
    // five of these.
    assert!((lost - 2000.0).abs() < 5.0 * 44.3, "{lost}");
}

#[test]
fn the_same_seed_gives_the_same_losses() {
    let fates = [5, 5, 6].map(|seed| {
        let mut loss = RandomLoss::new(Probability::new(0.5).unwrap(), seed);
        std::array::from_fn::<bool, 64, _>(|_| loss.takes_next())
    });
    assert_eq!(fates[0], fates[1]);
    assert_ne!(fates[1], fates[2]);
}

#[test]
fn jitter_stays_between_zero_and_its_maximum() {
    let max = Duration::from_millis(3);
    let mut jitter = Jitter::new(max, 1);
    let delays: Vec<_> = (0..10_000).map(|_| jitter.next_delay()).collect();
    assert!(delays.iter().all(|d| *d <= max));
    // Uniform: the mean is 1.5 ms, with a standard error of 3 ms / sqrt(12 x 10,000) = 9 us.
    let mean = delays.iter().map(|d| d.as_secs_f64()).sum::<f64>() / 1e4;
    assert!((mean - 1.5e-3).abs() < 5.0 * 9e-6, "{mean}");
}

proptest! {
    #[test]
    fn jitter_neither_reorders_nor_exceeds_its_maximum(
        delay in 0u64..3000,
        jitter in 0u64..3000,
        gaps in prop::collection::vec(0u64..500, 1..100),
    ) {
        let (delay, jitter) = (Duration::from_micros(delay), Duration::from_micros(jitter));
        let mut propagation = Propagation::new(&DirectionSpec { delay, jitter, ..spec() }, 1);
        let (mut left, mut latest) = (Time::ZERO, Time::ZERO);
        for gap in gaps {
            left += Duration::from_micros(gap);
            let out = propagation.handle_departure(left);
            prop_assert!(out >= latest && out >= left + delay);
            prop_assert!(out <= left + delay + jitter);
            latest = out;
        }
    }
}

#[test]
fn the_generator_matches_the_published_xoshiro256() {
    // SplitMix64's first outputs from seed 0 are e220a8397b1dcdaf, 6e789e6aa1b965f4,
    // 06c45d188009454f, f88bb8a8724c81ec (Vigna's splitmix64.c); xoshiro256++ then returns
    // rotl(s0 + s3, 23) + s0.
    let (s0, s3) = (0xe220_a839_7b1d_cdaf_u64, 0xf88b_b8a8_724c_81ec_u64);
    let expected = s0.wrapping_add(s3).rotate_left(23).wrapping_add(s0);
    assert_eq!(Random::new(0).bits(), expected);
}

/// Arrivals: gaps in microseconds and sizes in bytes.
fn arrivals() -> impl Strategy<Value = Vec<(u64, u64)>> {
    prop::collection::vec((0_u64..400, 40_u64..1500), 1..200)
}

/// A direction of any kind.
fn directions() -> impl Strategy<Value = DirectionSpec> {
    let buffer = prop_oneof![
        (1_u64..20).prop_map(Volume::Packets),
        (1500_u64..20_000).prop_map(|b| Volume::Bytes(Bytes::new(b)))
    ];
    let plain = (1_u64..200, 0_u64..5_000, buffer, 0.0..0.3, 0_u64..2_000);
    let policer = prop::option::of((1_u64..50, 1500_u64..30_000));
    let others = (prop::sample::select(vec![0, 5000]), policer, 1_u32..5, 0_u64..3000);
    (plain, others).prop_map(
        |((mbit, delay_us, buffer, loss, jitter_us), (burst, policer, loss_burst, grant_us))| {
            DirectionSpec {
                loss: Probability::new(loss).unwrap(),
                jitter: Duration::from_micros(jitter_us),
                burst: Bytes::new(burst),
                policer: policer.map(|(mbit, burst)| PolicerSpec {
                    rate: Rate::from_mbit_per_second(mbit),
                    burst: Bytes::new(burst),
                }),
                loss_burst,
                aggregation: Duration::from_micros(grant_us),
                ..DirectionSpec::new(
                    Rate::from_mbit_per_second(mbit),
                    Duration::from_micros(delay_us),
                    buffer,
                )
            }
        },
    )
}

/// A direction with any queue discipline.
fn managed() -> impl Strategy<Value = DirectionSpec> {
    let queues = QueueDiscipline::CHOICES.map(|(_, queue)| queue);
    let slow = (directions(), 1_u64..5, proptest::sample::select(queues.to_vec()));
    slow.prop_map(|(spec, mbit, queue)| DirectionSpec {
        // A rate low enough for queues to stand longer than CoDel's interval.
        rate: Rate::from_mbit_per_second(mbit),
        queue,
        ..spec
    })
}

/// The fate of each arrival, and the exits with their times.
type Fates = (Vec<Option<DropReason>>, Vec<(Time, u64)>);

/// Passes in `arrivals`. `polls` gives the arrivals at which the caller also polls for deliveries,
/// and how late (in microseconds, up to the delay) that poll is.
fn run(spec: &DirectionSpec, arrivals: &[(u64, u64)], polls: &[(bool, u64)]) -> Fates {
    let mut direction = Direction::new(spec, Bytes::new(1500), 3);
    let (mut now, mut refusals, mut out) = (Time::ZERO, Vec::new(), Vec::new());
    for (n, &(gap, size)) in arrivals.iter().enumerate() {
        now += Duration::from_micros(gap);
        let fate = direction.handle_arrival(now, Numbered(n as u64, size));
        refusals.push(fate.err().map(|dropped| dropped.reason));
        assert!(direction.counters().conserved());
        let (poll, late_us) = polls[n % polls.len()];
        if poll {
            let seen = now + Duration::from_micros(late_us).min(spec.delay);
            while let Some((due, packet)) = direction.poll_delivery(seen) {
                assert!(due <= seen);
                out.push((due, packet.0));
            }
        }
    }
    out.extend(drain(&mut direction));
    refusals.extend(std::iter::from_fn(|| direction.poll_dropped()).map(|d| Some(d.reason)));
    let counters = direction.counters();
    assert!(counters.conserved() && counters.queued == 0);
    (refusals, out)
}

proptest! {
    #[test]
    fn every_packet_is_delivered_or_dropped(spec in managed(), arrivals in arrivals()) {
        let (refusals, out) = run(&spec, &arrivals, &[(false, 0)]);
        let dropped = refusals.iter().flatten().count();
        prop_assert_eq!(arrivals.len(), out.len() + dropped);
    }

    #[test]
    fn packets_of_a_flow_leave_in_order_of_arrival(spec in managed(), arrivals in arrivals()) {
        let (_, out) = run(&spec, &arrivals, &[(false, 0)]);
        prop_assert!(out.windows(2).all(|w| w[0].0 <= w[1].0 && w[0].1 < w[1].1));
    }

    #[test]
    fn late_polling_changes_no_departure_and_no_drop(
        spec in managed(),
        arrivals in arrivals(),
        polls in prop::collection::vec((any::<bool>(), 0_u64..10_000), 1..50),
    ) {
        prop_assert_eq!(run(&spec, &arrivals, &[(true, 0)]), run(&spec, &arrivals, &polls));
    }

    #[test]
    fn no_packet_arrives_before_its_serialisation_time_plus_delay(
        spec in directions(),
        arrivals in arrivals(),
    ) {
        let (_, out) = run(&spec, &arrivals, &[(false, 0)]);
        let mut arrived = Time::ZERO;
        let arrived: Vec<_> = arrivals
            .iter()
            .map(|(gap, _)| { arrived += Duration::from_micros(*gap); arrived })
            .collect();
        for (due, n) in out {
            let (_, size) = arrivals[n as usize];
            // A bucket may already hold the tokens.
            let sending =
                if spec.burst == Bytes::ZERO { Bytes::new(size) / spec.rate } else { Duration::ZERO };
            prop_assert!(due >= arrived[n as usize] + sending + spec.delay);
        }
    }

    #[test]
    fn the_backlog_never_exceeds_the_buffer(spec in directions(), arrivals in arrivals()) {
        let mut direction = Direction::new(&spec, Bytes::new(1500), 3);
        let mut now = Time::ZERO;
        for (n, &(gap, size)) in arrivals.iter().enumerate() {
            now += Duration::from_micros(gap);
            let _ = direction.handle_arrival(now, Numbered(n as u64, size));
            let link = direction.link();
            match spec.buffer {
                Volume::Bytes(room) => prop_assert!(link.backlog() <= room),
                Volume::Packets(room) => prop_assert!(link.backlog_packets() <= room),
            }
        }
    }
}

#[test]
fn a_fan_lets_only_shorter_paths_overtake() {
    let mut fan = Fan::default();
    for (due, number) in [(50, 0), (20, 1), (20, 2), (30, 3)] {
        fan.handle_entry(at_us(due), number);
    }
    assert_eq!(fan.poll_timeout(), Some(at_us(20)));
    assert_eq!(fan.poll_exit(at_us(19)), None);
    let out: Vec<_> = std::iter::from_fn(|| fan.poll_exit(at_us(30))).map(|(_, n)| n).collect();
    assert_eq!(out, [1, 2, 3]);
    assert_eq!((fan.counters().queued, fan.counters().conserved()), (1, true));
}
