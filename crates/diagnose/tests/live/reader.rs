//! Peers that read late, as the sender sees them.

use sweetspot_diagnose::Class;
use sweetspot_diagnose::live::{Live, Sample};
use sweetspot_units::{Bytes, Duration, Time};

use crate::{SECOND, after_a_second, bulk, class};

#[test]
fn only_a_shrinking_window_is_blamed_on_the_reader() {
    // Scale 10 allows 65,535 x 1024 = 67 MB, but a small buffer advertises only its own size.
    let small = Sample {
        window_limited: SECOND,
        peer_window: Some(Bytes::new(50_000)),
        peer_scale: 10,
        ..bulk()
    };
    assert_eq!(class(small), Class::ReceiverWindow);
    let mut live = Live::default();
    for (n, window) in (0..).zip([200_000, 120_000, 20_000, 20_000]) {
        let at = Time::ZERO + SECOND * n;
        let window_limited = SECOND * n;
        // The unread part of the window was acknowledged, too.
        let (busy, acked) = (SECOND * n, Bytes::new(400_000 * n + 200_000 - window));
        let peer_window = Some(Bytes::new(window));
        live.handle(Sample { at, window_limited, busy, acked, peer_window, ..small });
    }
    assert_eq!(live.recent().dominant(), Class::ReceiverApplication);
}

#[test]
fn a_window_shrinking_at_full_rate_is_not_blamed_on_the_reader() {
    // 1.25 MB/s at 40 ms; then the window falls from 1 MB to the BDP, 50 kB. A slow reader would leave 950 kB unread.
    let judged = |rate: u64| {
        let mut live = Live::default();
        for n in 0..12 {
            let (time, is_open) = (SECOND * n, n < 4);
            let acked = 1_250_000 * n.min(4) + rate * n.saturating_sub(4);
            live.handle(Sample {
                at: Time::ZERO + time,
                busy: time,
                window_limited: time.saturating_sub(SECOND * 3),
                acked: Bytes::new(acked),
                delivered: acked / 1000,
                peer_window: Some(Bytes::new(if is_open { 1_000_000 } else { rate / 25 })),
                ..bulk()
            });
        }
        live.recent().dominant()
    };
    assert_eq!(judged(1_250_000), Class::ReceiverWindow);
    assert_eq!(judged(300_000), Class::ReceiverApplication);
}

#[test]
fn within_one_host_a_late_ack_means_a_slow_reader() {
    // One segment of 65 kB fits the window; it is acknowledged when it is read, 12 ms later.
    let full = Sample {
        window_limited: SECOND,
        acked: Bytes::new(5_400_000),
        mss: Bytes::new(65_483),
        rtt: Duration::from_millis(12),
        rtt_min: Duration::from_micros(40),
        peer_window: Some(Bytes::new(90_000)),
        ..bulk()
    };
    let between = |remote: [u8; 4], sample: Sample| {
        let mut live = Live::between([192, 0, 2, 1].into(), remote.into());
        let first = Sample { window_limited: Duration::ZERO, busy: Duration::ZERO, ..sample };
        live.handle(Sample { at: Time::ZERO, acked: Bytes::ZERO, ..first });
        live.handle(Sample { at: Time::ZERO + SECOND, ..sample });
        live.recent().dominant()
    };
    assert_eq!(between([192, 0, 2, 1], full), Class::ReceiverApplication);
    // A prompt reader merely has a small buffer, and between hosts a queue delays acknowledgements, too.
    let acked = Bytes::new(1_000_000_000);
    let read = Sample { rtt: Duration::from_micros(60), acked, ..full };
    assert_eq!(between([192, 0, 2, 1], read), Class::ReceiverWindow);
    let queued = Sample { rtt_min: Duration::from_millis(6), acked: Bytes::new(6_400_000), ..full };
    assert_eq!(between([192, 0, 2, 2], queued), Class::ReceiverWindow);
}

#[test]
fn only_a_window_that_stays_reduced_means_a_slow_reader() {
    // At an RTT of 40 ms, 100 ms bring two and a half windows.
    let judged = |windows: &[u64]| {
        let mut live = Live::default();
        let usual = windows[windows.len() - 1];
        let step = Duration::from_millis(100);
        for (n, window) in (0..).zip(windows) {
            live.handle(Sample {
                at: Time::ZERO + step * n,
                window_limited: step * n,
                busy: step * n,
                acked: Bytes::new(usual * 5 / 2 * n + windows[0].saturating_sub(*window)),
                peer_window: Some(Bytes::new(*window)),
                ..bulk()
            });
        }
        live.limits().dominant()
    };
    let mut dips = [30_000; 30];
    (dips[9], dips[21]) = (1_500, 0);
    assert_eq!(judged(&dips), Class::ReceiverWindow);
    // With a steady reader, the window stays as small as the data read per RTT.
    let mut slow = [40_000; 30];
    slow[0] = 65_000;
    assert_eq!(judged(&slow), Class::ReceiverApplication);
}

#[test]
fn a_full_window_not_delivered_once_per_rtt_means_a_slow_reader() {
    // 200 kB every 40 ms are 5 MB in a second, but only 1.25 MB were delivered.
    let slow = Sample { window_limited: SECOND, peer_window: Some(Bytes::new(200_000)), ..bulk() };
    assert_eq!(class(slow), Class::ReceiverApplication);
    let read = Sample { peer_window: Some(Bytes::new(51_000)), ..slow };
    assert_eq!(class(read), Class::ReceiverWindow);
    // A kernel that does not report the window cannot show this.
    assert_eq!(class(Sample { peer_window: None, ..slow }), Class::ReceiverWindow);
}

/// The program reads in bursts: every other sample finds a window of 560 kB, and the others a closed one, 280 kB on average. At
/// 40 ms this allows 7 MB/s. The program reads 3 MB/s, which is less than half, or all of it.
#[test]
fn an_oscillating_window_not_delivered_once_per_rtt_means_a_slow_reader() {
    let judged = |rate: u64| {
        let mut live = Live::default();
        for n in 0..40 {
            let time = Duration::from_millis(100) * n;
            live.handle(Sample {
                at: Time::ZERO + time,
                busy: time,
                window_limited: time,
                acked: Bytes::new(rate * n / 10),
                peer_window: Some(Bytes::new([560_000, 1000][n as usize % 2])),
                ..bulk()
            });
        }
        live.limits().share(Class::ReceiverApplication)
    };
    assert!(judged(3_000_000) > 0.9, "{}", judged(3_000_000));
    assert!(judged(7_000_000) < 0.1, "{}", judged(7_000_000));
}

#[test]
fn retransmissions_of_data_the_peer_dropped_are_blamed_on_its_program() {
    // 50 kB are in flight when the peer withdraws its window. 10 segments are retransmitted in each second.
    let started =
        Sample { outstanding: Some(Bytes::new(50_000)), slow_start_threshold: 30, ..bulk() };
    for (window, dropped) in [(20_000, true), (0, true), (49_990, false), (200_000, false)] {
        let mut live = Live::default();
        live.handle(Sample { at: Time::ZERO, ..started });
        let before = Sample { at: Time::ZERO + SECOND, busy: SECOND * 2, ..started };
        live.handle(Sample { peer_window: Some(Bytes::new(window)), ..before });
        let repairing = Sample {
            at: Time::ZERO + SECOND * 2,
            busy: SECOND * 3,
            retransmitted: 10,
            recovering: true,
            ..started
        };
        live.handle(repairing);
        let class = if dropped { Class::ReceiverApplication } else { Class::Congestion };
        assert_eq!(live.recent().dominant(), class, "{window}");
        // Once all of it is acknowledged, retransmitted data was lost on the path.
        let arrived = Sample {
            at: Time::ZERO + SECOND * 3,
            busy: SECOND * 4,
            acked: started.acked + Bytes::new(60_000),
            ..repairing
        };
        live.handle(arrived);
        live.handle(Sample {
            at: Time::ZERO + SECOND * 4,
            busy: SECOND * 5,
            acked: arrived.acked + Bytes::new(1_000_000),
            retransmitted: 20,
            ..arrived
        });
        assert_eq!(live.recent().dominant(), Class::Congestion, "{window}");
        assert_eq!(live.evidence().loss_events, 2 - u64::from(dropped));
    }
}

#[test]
fn a_window_that_stays_closed_means_unread_data() {
    let closed = Sample { window_limited: SECOND, peer_window: Some(Bytes::ZERO), ..bulk() };
    assert_eq!(after_a_second(closed).recent().dominant(), Class::ReceiverApplication);
}
