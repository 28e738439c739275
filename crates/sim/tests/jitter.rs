//! `sobas` on a path with more jitter than a packet train lasts: trains do not show the capacity, and the RTT's excess over its
//! minimum is not a queue.

mod common;

use common::simulate;

/// 100 Mbit/s, 40 ms, a BDP of 500 kB, and as much buffer.
const PATH: &str = include_str!("../../../scenarios/jitter.toml");

#[test]
fn a_jittery_path_is_left_to_congestion_control() {
    for jitter in [1, 2, 4] {
        let (mut goodput, mut retransmitted) = ([0.0; 2], [0.0; 2]);
        for seed in 1..=12 {
            for (which, sizing) in ["kernel", "sobas"].into_iter().enumerate() {
                let set = [
                    format!("seed={seed}"),
                    format!("path.jitter={jitter}ms"),
                    format!("transfer.sizing={sizing}"),
                ];
                let transfer =
                    simulate(PATH, &set.each_ref().map(String::as_str)).transfers.remove(0);
                goodput[which] += transfer.goodput_bps;
                retransmitted[which] += transfer.retransmitted_packets as f64;
                // Trains differ by more than 5 %, or come too late, so no window is held. A climb may follow.
                let entered: Vec<&str> = transfer
                    .events
                    .iter()
                    .filter(|e| e.reason.is_some())
                    .map(|e| &*e.kind)
                    .collect();
                let first = &entered[..entered.len().min(1)];
                assert_eq!(first, &["open"; 1][..which], "{jitter} ms, {seed}");
            }
        }
        // The first two round trips are limited to 64 kB, as the kernel's are. Of 250 round trips in ten seconds, one may be
        // lost.
        assert!(goodput[1] > 0.996 * goodput[0], "{jitter} ms: {goodput:?}");
        // One overflow of slow start loses between half and all of the capacity of buffer and path (2 x 345 packets). The
        // standard deviation of a seed is a ninth. Three deviations of the difference of two means of twelve seeds are 0.11 x 3
        // x sqrt(2 / 12) = 14 %.
        assert!(retransmitted[1] < 1.14 * retransmitted[0], "{jitter} ms: {retransmitted:?}");
    }
}

#[test]
fn an_epoch_with_an_overflow_does_not_define_the_paths_rate() {
    // The window opens beyond a small buffer, and the epoch that sees the overflow has received almost no data. If that counted
    // as the path's rate, the transfer would have 13 Mbit/s for ten seconds.
    for seed in 1..=12 {
        let set = [&*format!("seed={seed}"), "path.jitter=4ms", "path.buffer=200kB"];
        let rate = simulate(PATH, &set).transfers[0].goodput_bps / 1e6;
        assert!(rate > 0.5 * 96.5, "{seed}: {rate}");
    }
}
