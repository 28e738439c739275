use sweetspot_tcp::congestion::{Algorithm, Growth};
use sweetspot_tcp::{ReceiverConfig, RecoveryStyle, SendMemory, Sender, SenderConfig};
use sweetspot_units::{Bytes, Duration, Rate};

use crate::pair::{Pair, RECEIVER, SENDER, ms};

/// The maximum number of packets in flight, from the times of packets and ACKs.
fn max_in_flight(pair: &Pair) -> u64 {
    let mut max = 0;
    for sent in &pair.sent {
        // An ACK sent 20 ms ago has arrived.
        let acknowledgements =
            pair.acks.iter().filter(|(at, _)| *at + Duration::from_millis(20) <= ms(sent.at));
        let una = acknowledgements.map(|(_, ack)| ack.next).max().unwrap_or(0);
        max = max.max((sent.number + 1).saturating_sub(una));
    }
    max
}

#[test]
fn the_flight_fills_the_smallest_of_rwnd_send_buffer_and_data() {
    let flight = |window, send_buffer, packets| {
        let config = SenderConfig { send_buffer, ..SENDER };
        let receiver = ReceiverConfig { window, ..RECEIVER };
        let mut pair = Pair::new(config, receiver, Some(packets));
        pair.run_until(ms(10_000));
        assert!(pair.sender.is_done());
        max_in_flight(&pair)
    };
    assert_eq!(flight(1000, 17, 500), 17);
    assert_eq!(flight(23, 1000, 500), 23);
    assert_eq!(flight(1000, 1000, 10), 10);
}

#[test]
fn limited_transmit_avoids_a_timeout_in_a_window_of_three() {
    // A window of 3 with its first packet lost: two duplicate ACKs, never three. RFC 3042 lets two new packets out; their
    // duplicate ACKs start the repair.
    let simulate = |limited_transmit| {
        let config = SenderConfig { limited_transmit, initial_window: 3, ..SENDER };
        let receiver = ReceiverConfig { sack: false, ..RECEIVER };
        let config = SenderConfig { recovery: RecoveryStyle::NewReno, ..config };
        let mut pair = Pair::new(config, receiver, Some(30)).dropping(&[1]);
        pair.run_until(ms(5000));
        assert!(pair.sender.is_done());
        pair.sender.statistics().timeouts
    };
    assert_eq!(simulate(false), 1);
    assert_eq!(simulate(true), 0);
}

#[test]
fn after_idle_cwnd_restarts_at_the_initial_window_if_configured() {
    let burst = |slow_start_restart| {
        let config = SenderConfig { slow_start_restart, initial_window: 4, ..SENDER };
        let mut pair = Pair::new(config, RECEIVER, Some(200));
        pair.run_until(ms(3000));
        assert!(pair.sender.is_done());
        // An idle time longer than the timeout (RFC 5681 section 4.1).
        pair.sender.offer(100);
        pair.run_until(ms(3001));
        pair.sent.iter().filter(|sent| sent.at >= 3000).count()
    };
    assert_eq!(burst(true), 4);
    assert_eq!(burst(false), 100);
}

#[test]
fn ece_halves_cwnd_once_per_window_of_data() {
    let threshold = |marks: &[u64]| {
        let config = SenderConfig { initial_window: 32, ..SENDER };
        let mut pair = Pair::new(config, RECEIVER, Some(33)).marking(marks);
        pair.run_until(ms(3000));
        pair.sender.ssthresh()
    };
    assert_eq!(threshold(&[]), f64::INFINITY);
    // Slow start has added one packet for each packet before the marked one: 32 + 4, halved.
    assert_eq!(threshold(&[5]), 18.0);
    assert_eq!(threshold(&[5, 6, 9]), 18.0);
}

#[test]
fn with_timestamps_every_ack_is_an_rtt_sample() {
    // Ten packets leave at once and queue for up to 10 ms. With timestamps each of the rising RTTs counts, without them
    // only the first.
    let timeout = |timestamps| {
        let config = SenderConfig { timestamps, min_rto: Duration::from_millis(1), ..SENDER };
        let mut pair = Pair::new(config, RECEIVER, Some(11));
        pair.run_until(ms(90));
        pair.sender.poll_timeout().expect("the last packet is on its way").since(pair.now)
    };
    assert!(timeout(true) != timeout(false));
}

#[test]
fn in_slow_start_linux_grows_a_more_than_half_used_cwnd() {
    // `tcp_is_cwnd_limited`: 6 of 10 in flight are enough in slow start, 5 are not.
    let grown = |window| {
        let config = SenderConfig { growth: Growth::PerPacket, ..SENDER };
        let receiver = ReceiverConfig { window, ..RECEIVER };
        let mut pair = Pair::new(config, receiver, Some(100));
        pair.run_until(ms(5000));
        pair.sender.cwnd()
    };
    assert_eq!(grown(5), 10.0);
    // The window grows until the packets in flight are half of it.
    assert_eq!(grown(6), 12.0);
}

#[test]
fn no_timer_is_due_before_the_syn_is_polled() {
    for (algorithm, pacing) in [(Algorithm::Bbr, false), (Algorithm::Reno, true)] {
        let config = SenderConfig { algorithm, pacing, ..SENDER };
        assert_eq!(Sender::new(&config, Some(10)).poll_timeout(), None, "{algorithm:?}");
    }
}

const LINUX: SenderConfig = SenderConfig {
    recovery: RecoveryStyle::Linux,
    growth: Growth::PerPacket,
    timestamps: true,
    ..SENDER
};

#[test]
fn a_send_buffer_counts_the_kernel_memory_of_its_segments() {
    // 832 bytes of overhead per segment: 100 segments of one packet fit. Twice 500 packets per round trip of 41 ms are
    // 23.8 packets in 1/1024 s. Of segments of 23 packets, 183,200 / 23,832 fit: 176 packets.
    let memory = SendMemory {
        limit: Bytes::new(100 * 1832),
        payload: Bytes::new(1000),
        overhead: Bytes::new(832),
    };
    let max = |offload| {
        let config =
            SenderConfig { initial_window: 500, offload, send_memory: Some(memory), ..LINUX };
        let mut pair = Pair::new(config, RECEIVER, None);
        pair.run_until(ms(2000));
        max_in_flight(&pair)
    };
    assert_eq!(max(false), 100);
    assert_eq!(max(true), 176);
}

#[test]
fn an_application_that_filled_its_buffer_sleeps_until_a_third_is_free() {
    // `sk_stream_write_space`: 100 packets fit; the application writes nothing until only 66 are left.
    let memory = SendMemory {
        limit: Bytes::new(100 * 1832),
        payload: Bytes::new(1000),
        overhead: Bytes::new(832),
    };
    let config = SenderConfig { initial_window: 500, send_memory: Some(memory), ..LINUX };
    let mut pair = Pair::new(config, RECEIVER, None);
    let mut flights = Vec::new();
    for t in 500..2000 {
        pair.run_until(ms(t));
        flights.push(pair.sender.outstanding());
    }
    assert_eq!(flights.iter().max(), Some(&100));
    assert_eq!(flights.iter().min(), Some(&67));
}

#[test]
fn a_paced_sender_with_offload_sends_pairs_and_pauses_for_both() {
    // 1 Mbit/s, packets of 1000 bytes: 8 ms each, so 16 ms after every pair (`tcp_min_tso_segs`).
    let gaps = |offload| {
        let config = SenderConfig { initial_window: 32, offload, ..LINUX };
        let mut pair = Pair::new(config, RECEIVER, None);
        pair.sender.set_pacing(Some(Rate::from_mbit_per_second(1)));
        pair.run_until(ms(2000));
        let times: Vec<u64> =
            pair.sent.iter().map(|sent| sent.at).filter(|at| *at > 1000).collect();
        times.windows(2).map(|pair| pair[1] - pair[0]).collect::<Vec<u64>>()
    };
    assert!(gaps(false).iter().all(|gap| *gap == 8));
    let paired = gaps(true);
    assert!(paired.windows(2).all(|pair| pair == [0, 16] || pair == [16, 0]), "{paired:?}");
}

#[test]
fn the_linux_rto_is_at_least_the_rtt_plus_the_min_rto() {
    // `tcp_rtt_estimator`: rttvar_us >= tcp_rto_min_us. With an RTT of 41 ms the timeout is 241 ms, not 200.
    let timeout = |recovery| {
        let config = SenderConfig { recovery, ..LINUX };
        let mut pair = Pair::new(config, RECEIVER, Some(2));
        pair.run_until(ms(60));
        let due = pair.sender.poll_timeout().expect("packets are on their way");
        let sent = pair.sent.iter().filter(|sent| sent.number > 0).map(|sent| sent.at).max();
        due.since(ms(sent.expect("data was sent"))).as_micros()
    };
    assert!(timeout(RecoveryStyle::Linux) > 240_000);
    assert!(timeout(RecoveryStyle::Sack) < 240_000);
}

/// Twenty-five round trips of two packets each are more than the ten rounds of BBR's bandwidth filter.
#[test]
fn a_trickling_application_does_not_lower_bbrs_bandwidth() {
    let config = SenderConfig { algorithm: Algorithm::Bbr, ..SENDER };
    let mut pair = Pair::new(config, RECEIVER, Some(400));
    pair.run_until(ms(2000));
    assert!(pair.sender.is_done());
    for round in 0..25 {
        pair.sender.offer(2);
        pair.run_until(ms(2000 + 40 * (round + 1)));
    }
    pair.sender.offer(400);
    let began = pair.now;
    while !pair.sender.is_done() {
        pair.run_until(pair.now + Duration::from_millis(1));
    }
    // The link takes 400 ms, and the last packet and its ACK a round trip. BBR paces at 1 % below the bandwidth and may be
    // in its draining phase. Its window may delay it by another round trip.
    let took = pair.now.since(began);
    assert!(took <= Duration::from_millis(400 + 40 + 40 + 40), "{took}");
}
