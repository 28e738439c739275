//! Senders behind their own device, or a shaper on it.

use proptest::prelude::*;
use sweetspot_diagnose::Class;
use sweetspot_diagnose::live::{Live, Sample};
use sweetspot_units::{Bytes, Duration, Rate, Time};

use crate::bulk;

const STEP: Duration = Duration::from_millis(100);

/// A sender for five seconds. `now` gives the state at each sample, to which counters are added. A segment has 1000 bytes.
fn sender(segments: impl Fn(u64) -> u64, now: impl Fn(u64) -> Sample) -> Live {
    let (mut live, mut delivered) = (Live::default(), 0);
    for n in 0..50 {
        delivered += if n == 0 { 0 } else { segments(n) };
        live.handle(Sample {
            at: Time::ZERO + STEP * n,
            busy: STEP * n,
            acked: Bytes::new(delivered * 1000),
            delivered,
            ..now(n)
        });
    }
    live
}

proptest! {
    /// `flight` segments wait behind a shaper in the host, with 2304 bytes of memory each. The send buffer holds little more, or
    /// half as much again. Tokens allow a rate several times as high in the first interval.
    #[test]
    fn behind_a_shaper_on_the_sending_host_no_buffer_is_the_limit(
        flight in 10..200u32,
        unsent in 0..4u64,
        burst in 1..10u64,
        starved: bool,
        was_limited: bool,
    ) {
        let memory = Bytes::new(2304) * u64::from(flight);
        let state = |n: u64| Sample {
            segments_in_flight: flight,
            congestion_window: flight * 2,
            not_sent: Bytes::new(500 * unsent),
            in_device: memory,
            queued: memory,
            send_buffer: memory,
            starved,
            rtt: Duration::from_millis(30),
            rtt_min: Duration::from_micros(10),
            buffer_limited: if was_limited { STEP * n / 3 } else { Duration::ZERO },
            ..bulk()
        };
        let segments = |n: u64| if n == 1 { 166 * burst } else { 160 + n % 7 * 2 };
        let live = sender(segments, state);
        let period = live.period();
        prop_assert_eq!(period.named().class, Class::Bandwidth, "{}", period.limits.words());
        prop_assert!(period.verdict().words.contains("sender's own device"), "{}", period.verdict().words);
        // The same flight on the path, with an RTT of 30 ms, nothing in the device and no queue, fills the buffer.
        let on_path = |n: u64| {
            let rtt = Duration::from_millis(30);
            Sample { in_device: Bytes::ZERO, starved: false, rtt, rtt_min: rtt, ..state(n) }
        };
        let class = sender(|_| u64::from(flight) * 10 / 3, on_path).period().named().class;
        prop_assert_eq!(class, Class::SenderWindow);
    }

    /// Without the device's counters: more data waits than is in flight, and cwnd has room for it.
    #[test]
    fn data_waiting_despite_free_cwnd_and_buffer_is_held_below_tcp(
        flight in 10..100u32,
        room in 1.6..8.0f64,
        waits in 1.1..5.0f64,
    ) {
        let bytes = Bytes::new(1000) * u64::from(flight);
        let state = |_| Sample {
            segments_in_flight: flight,
            congestion_window: (f64::from(flight) * room) as u32 + 1,
            not_sent: bytes.scaled(waits),
            queued: bytes.scaled(1.6 * (1.0 + waits)),
            send_buffer: bytes.scaled(1.6 * (1.0 + waits)),
            ..bulk()
        };
        let period = sender(|_| 166, state).period();
        prop_assert_eq!(period.named().class, Class::Bandwidth, "{}", period.limits.words());
    }

    /// While a queue stands, the rate varies from sample to sample. The capacity is its mean, not its maximum.
    #[test]
    fn the_capacity_never_exceeds_the_delivered_rate(rates in prop::collection::vec(20..200u64, 50)) {
        let state = |_| Sample { rtt: Duration::from_millis(60), ..bulk() };
        let period = sender(|n| rates[n as usize], state).period();
        let best = rates[1..].iter().max().map(|best| Rate::from_bits_per_second(best * 80_000));
        let capacity = period.evidence.capacity;
        prop_assert!(capacity <= best, "{capacity:?} of {best:?}");
        if let Some(capacity) = capacity {
            prop_assert!(capacity >= period.evidence.goodput.scaled(0.95));
        }
    }

    /// Cross traffic's queue lengthens the RTT of a flow that sends everything it has.
    #[test]
    fn an_application_limited_sender_shows_no_capacity(unsent in 0..1000u64, segments in 1..200u64) {
        let state = |_| Sample {
            segments_in_flight: 5,
            not_sent: Bytes::new(unsent),
            queued: Bytes::new(9_000),
            starved: true,
            rtt: Duration::from_millis(60),
            ..bulk()
        };
        let period = sender(|_| segments, state).period();
        prop_assert_eq!(period.evidence.capacity, None);
        prop_assert_eq!(period.evidence.sweet_spot(), None);
    }

    /// The peer's window holds the sender all the time, and only a small part of it is delivered per RTT.
    #[test]
    fn a_mostly_unused_full_window_means_a_slow_reader(
        window in 50_000..1_000_000u64,
        part in 0.01..0.3f64,
        starts in 0..50u64,
    ) {
        let segments = (window as f64 * part / 1000.0 * 2.5) as u64;
        let state = |n: u64| Sample {
            window_limited: STEP * n,
            peer_window: Some(Bytes::new(window)),
            segments_in_flight: 5,
            ..bulk()
        };
        // Samples may be in step with the reader, so in some intervals nothing moves.
        let live = sender(|n| if (n + starts) % 2 == 0 { segments * 2 } else { 0 }, state);
        prop_assert_eq!(live.period().named().class, Class::ReceiverApplication);
    }
}
