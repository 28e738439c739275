//! The conduit behaves as a link with a drop-tail queue, followed by a pipe.

use proptest::prelude::*;
use sweetspot_path::{Conduit, DirectionSpec, DropTail, Link, Packet, Pipe, Propagation};
use sweetspot_units::{Bytes, Duration, Rate, Time, Volume};

#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Sized(u64, usize);

impl Packet for Sized {
    fn wire_size(&self) -> Bytes {
        Bytes::new(self.0)
    }
}

/// The slow reference: every departure is processed one by one.
struct Chain {
    link: Link<Sized, DropTail<Sized>>,
    pipe: Pipe<Sized>,
    propagation: Propagation,
    last: Time,
    packet_time: u128,
    byte_time: u128,
}

impl Chain {
    fn observe(&mut self, now: Time) {
        let elapsed = u128::from(now.since(self.last).as_nanos());
        self.packet_time += u128::from(self.link.waiting_packets()) * elapsed;
        self.byte_time += u128::from(self.link.waiting_bytes()) * elapsed;
        self.last = now;
    }

    fn advance(&mut self, now: Time, past: impl Fn(Time) -> bool) {
        while let Some(end) = self.link.poll_timeout().filter(|end| past(*end)) {
            self.observe(end);
            if let Some((left, packet)) = self.link.poll_departure(end, &mut |_| {}) {
                self.pipe.handle_entry(self.propagation.handle_departure(left), packet);
            }
        }
        self.observe(now);
    }

    fn exits(&mut self, now: Time) -> Vec<(Time, Sized)> {
        self.advance(now, |end| end <= now);
        std::iter::from_fn(|| self.pipe.poll_exit(now)).collect()
    }
}

fn limits() -> impl Strategy<Value = Volume> {
    prop_oneof![
        (1u64..8).prop_map(Volume::Packets),
        (1500u64..9000).prop_map(|b| Volume::Bytes(Bytes::new(b))),
    ]
}

proptest! {
    #[test]
    fn a_conduit_equals_a_queue_a_link_and_a_pipe_in_series(
        limit in limits(),
        // At 40 Mbit/s every packet takes a multiple of 8 us, so that arrivals coincide with
        // departures.
        rate in prop_oneof![1_000_000u64..100_000_000, Just(40_000_000)],
        delay in 0u64..3_000_000,
        jitter in prop_oneof![Just(0), 0u64..3_000_000],
        arrivals in prop::collection::vec((0u64..50, 1u64..38), 1..120),
    ) {
        let rate = Rate::from_bits_per_second(rate);
        let (delay, jitter) = (Duration::from_nanos(delay), Duration::from_nanos(jitter));
        let spec = DirectionSpec { jitter, ..DirectionSpec::new(rate, delay, limit) };
        let propagation = Propagation::new(&spec, 1);
        let mut conduit = Conduit::new(rate, limit, propagation.clone());
        let mut chain = Chain {
            link: Link::new(rate, DropTail::new(limit)),
            pipe: Pipe::default(),
            propagation,
            last: Time::ZERO,
            packet_time: 0,
            byte_time: 0,
        };
        let mut now = Time::ZERO;
        let last = arrivals.len() - 1;
        for (number, (gap, size)) in arrivals.iter().copied().enumerate() {
            now += Duration::from_nanos(gap * 8_000);
            let packet = Sized(size * 40, number);
            chain.advance(now, |end| end < now);
            let accepted = conduit.handle_arrival(now, &packet);
            prop_assert_eq!(accepted, chain.link.handle_arrival(now, packet).is_ok());
            if number < last && arrivals[number + 1].0 == 0 {
                // All arrivals at an instant are handled before its departures.
                continue;
            }
            let out: Vec<_> = std::iter::from_fn(|| conduit.poll_exit(now)).collect();
            prop_assert_eq!(out, chain.exits(now));
            prop_assert_eq!(conduit.backlog_packets(now), chain.link.backlog_packets());
            prop_assert!(conduit.counters().conserved());
            let waits = conduit.waits(now);
            prop_assert_eq!(waits.packet_time, chain.packet_time);
            prop_assert_eq!(waits.byte_time, chain.byte_time);
        }
        let end = now + Duration::from_secs(60);
        let rest: Vec<_> = std::iter::from_fn(|| conduit.poll_exit(end)).collect();
        prop_assert_eq!(rest, chain.exits(end));
        prop_assert_eq!(conduit.counters().queued, 0);
    }
}

proptest! {
    #[test]
    fn a_passing_packet_exits_when_a_stored_one_would(
        limit in limits(),
        arrivals in prop::collection::vec((0u64..400_000, 40u64..1500), 1..120),
    ) {
        let (rate, delay) = (Rate::from_bits_per_second(20_000_000), Duration::from_millis(1));
        let mut keeps = Conduit::new(rate, limit, delay);
        let mut passes: Conduit<Sized> = Conduit::new(rate, limit, delay);
        let (mut kept, mut passed) = (Vec::new(), Vec::new());
        let mut now = Time::ZERO;
        for (number, (gap, size)) in arrivals.into_iter().enumerate() {
            now += Duration::from_nanos(gap);
            kept.extend(std::iter::from_fn(|| keeps.poll_exit(now)).map(|(out, _)| out));
            let accepted = keeps.handle_arrival(now, &Sized(size, number));
            let out = passes.handle_passage(now, Bytes::new(size));
            prop_assert_eq!(out.is_some(), accepted);
            passed.extend(out);
            prop_assert_eq!(passes.backlog_packets(now), keeps.backlog_packets(now));
            prop_assert_eq!(passes.waits(now), keeps.waits(now));
            prop_assert!(passes.counters().conserved());
        }
        kept.extend(std::iter::from_fn(|| keeps.poll_exit(Time::MAX)).map(|(out, _)| out));
        prop_assert_eq!(passed, kept);
    }
}

proptest! {
    #[test]
    fn reading_the_backlog_does_not_change_the_counters(
        limit in limits(),
        // Sizes take multiples of 8 us, so that arrivals coincide with departures.
        arrivals in prop::collection::vec((0u64..50, 1u64..38), 1..120),
    ) {
        let (rate, delay) = (Rate::from_bits_per_second(20_000_000), Duration::from_millis(1));
        let mut queried: Conduit<Sized> = Conduit::new(rate, limit, delay);
        let mut left_alone: Conduit<Sized> = Conduit::new(rate, limit, delay);
        let mut now = Time::ZERO;
        for (number, (gap, size)) in arrivals.into_iter().enumerate() {
            if number == 60 {
                queried.reset_max(now);
                left_alone.reset_max(now);
            }
            now += Duration::from_nanos(gap * 8_000);
            queried.backlog_packets(now);
            queried.waits(now);
            let out = queried.handle_passage(now, Bytes::new(size * 40));
            prop_assert_eq!(left_alone.handle_passage(now, Bytes::new(size * 40)), out);
        }
        prop_assert_eq!(left_alone.counters(), queried.counters());
        prop_assert_eq!(left_alone.waits(now), queried.waits(now));
        prop_assert_eq!(left_alone.backlog_packets(now), queried.backlog_packets(now));
    }
}

#[test]
fn a_packet_departs_with_its_last_bit() {
    // 600 B at 8.9 Mbit/s take 4,800,000,000 / 8,900 = 539,325.84... ns. The n-th packet of a busy
    // period has left at n times that, rounded up to a whole nanosecond.
    let rate = Rate::from_bits_per_second(8_900_000);
    let left = |n: u64| Time::ZERO + Duration::from_nanos((n * 4_800_000_000).div_ceil(8_900));
    let mut conduit = Conduit::new(rate, Volume::Packets(9), Duration::ZERO);
    let mut link = Link::new(rate, DropTail::new(Volume::Packets(9)));
    for number in 0..9 {
        assert!(conduit.handle_arrival(Time::ZERO, &Sized(600, number)));
        assert!(link.handle_arrival(Time::ZERO, Sized(600, number)).is_ok());
    }
    for n in 1..=9 {
        let (at, _) = conduit.poll_exit(left(9)).unwrap();
        let (same, _) = link.poll_departure(left(9), &mut |_| {}).unwrap();
        assert_eq!((at, same), (left(n), left(n)));
    }
}

#[test]
fn an_arrival_does_not_reduce_the_bits_sent() {
    // 1000 B at 3 Gbit/s take 2666.67 ns, rounded up to 2667: 8001 bits.
    let rate = Rate::from_mbit_per_second(3000);
    let mut conduit: Conduit<Sized> = Conduit::new(rate, Volume::Packets(9), Duration::ZERO);
    let mut now = Time::ZERO;
    for n in 0..5 {
        assert_eq!(conduit.sent_bits(now), n * 8000);
        assert!(conduit.handle_passage(now, Bytes::new(1000)).is_some());
        assert_eq!(conduit.sent_bits(now), n * 8000);
        now += Duration::from_micros(10);
    }
}
