use sweetspot_tcp::congestion::{
    AckSample, CongestionConfig, CongestionControl, CongestionEvent, Growth, Reno,
};

use crate::harness::{ack, at, config, event};

fn ns2() -> CongestionConfig {
    CongestionConfig { growth: Growth::PerAck, ..config() }
}

fn feed(reno: &mut Reno, acks: u32) {
    for _ in 0..acks {
        reno.handle_ack(&ack(at(0)));
    }
}

#[test]
fn slow_start_adds_one_packet_per_ack_until_ssthresh() {
    let mut reno = Reno::new(&CongestionConfig { initial_ssthresh: 8.0, ..ns2() });
    // 2 + 6 ACKs = 8; the next one adds 1/8.
    feed(&mut reno, 6);
    assert_eq!(reno.cwnd(), 8.0);
    feed(&mut reno, 1);
    assert_eq!(reno.cwnd(), 8.125);
}

#[test]
fn congestion_avoidance_adds_about_one_packet_per_window_of_acks() {
    let mut reno =
        Reno::new(&CongestionConfig { initial_window: 10.0, initial_ssthresh: 10.0, ..ns2() });
    feed(&mut reno, 10);
    // Sum of 1/cwnd over ten ACKs, cwnd growing from 10: the exact window obeys
    // cwnd^2 ~ 100 + 2 * 10, so 10.954.
    assert!((reno.cwnd() - 10.954).abs() < 0.01, "{}", reno.cwnd());
}

#[test]
fn a_delayed_ack_counts_once_in_ns2_and_twice_in_linux() {
    let two = AckSample { acked: 2, delivered: 2, ..ack(at(0)) };
    let mut reno = Reno::new(&ns2());
    reno.handle_ack(&two);
    assert_eq!(reno.cwnd(), 3.0);
    let mut reno = Reno::new(&config());
    reno.handle_ack(&two);
    assert_eq!(reno.cwnd(), 4.0);
}

#[test]
fn packets_beyond_ssthresh_count_in_congestion_avoidance() {
    let mut reno = Reno::new(&CongestionConfig { initial_ssthresh: 3.0, ..config() });
    // Two packets: one takes the window from 2 to 3, the other adds 1/3.
    reno.handle_ack(&AckSample { acked: 2, delivered: 2, ..ack(at(0)) });
    assert!((reno.cwnd() - (3.0 + 1.0 / 3.0)).abs() < 1e-12);
}

#[test]
fn cwnd_grows_while_not_the_limit_in_ns2_but_not_in_linux() {
    let limited = AckSample { cwnd_limited: false, ..ack(at(0)) };
    let mut reno = Reno::new(&ns2());
    reno.handle_ack(&limited);
    assert_eq!(reno.cwnd(), 3.0);
    let mut reno = Reno::new(&config());
    reno.handle_ack(&limited);
    assert_eq!(reno.cwnd(), 2.0);
}

#[test]
fn a_loss_halves_the_window_in_use() {
    // ns-2: cwnd 45, wnd_ 25: windowd() = 25; cwnd 12.5, ssthresh (int) 12.5 = 12.
    let mut reno = Reno::new(&CongestionConfig { initial_window: 45.0, ..ns2() });
    reno.handle_recovery(&CongestionEvent { window: 25.0, ..event(at(0)) });
    assert_eq!((reno.cwnd(), reno.ssthresh()), (12.5, 12.0));
}

#[test]
fn linux_halves_cwnd_and_not_the_window_in_use() {
    // tcp_reno_ssthresh: 45 >> 1 = 22.
    let mut reno = Reno::new(&CongestionConfig { initial_window: 45.0, ..config() });
    reno.handle_recovery(&CongestionEvent { window: 25.0, ..event(at(0)) });
    assert_eq!((reno.cwnd(), reno.ssthresh()), (22.0, 22.0));
}

#[test]
fn a_timeout_sets_cwnd_to_one_and_ssthresh_to_half() {
    let mut reno = Reno::new(&CongestionConfig { initial_window: 45.0, ..ns2() });
    reno.handle_timeout(&event(at(0)));
    assert_eq!((reno.cwnd(), reno.ssthresh()), (1.0, 22.0));
    // A second timeout finds a window of 1: the threshold stays at its floor of 2.
    reno.handle_timeout(&event(at(0)));
    assert_eq!((reno.cwnd(), reno.ssthresh()), (1.0, 2.0));
}

#[test]
fn duplicate_acks_and_acks_in_recovery_do_not_grow_cwnd() {
    let mut reno = Reno::new(&ns2());
    reno.handle_ack(&AckSample { acked: 0, ..ack(at(0)) });
    reno.handle_ack(&AckSample { recovering: true, ..ack(at(0)) });
    assert_eq!(reno.cwnd(), 2.0);
}

#[test]
fn a_restart_after_idle_resets_cwnd_to_the_initial_window() {
    let mut reno = Reno::new(&ns2());
    feed(&mut reno, 20);
    reno.handle_restart(at(1000));
    assert_eq!(reno.cwnd(), 2.0);
}

#[test]
fn a_configured_backoff_keeps_its_share_of_the_window() {
    // Three quarters of 100 packets.
    let full = CongestionConfig { initial_window: 100.0, initial_ssthresh: 50.0, ..ns2() };
    let mut reno = Reno::new(&CongestionConfig { backoff: 0.75, ..full });
    reno.handle_recovery(&CongestionEvent { window: 100.0, ..event(at(0)) });
    assert_eq!((reno.cwnd(), reno.ssthresh()), (75.0, 75.0));
}
