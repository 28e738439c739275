//! `sobas` where the path jitters by more than a packet train lasts: trains tell nothing of the
//! capacity, and what the round trip is above its lowest is no queue.

mod common;

use common::play;

/// 100 Mbit/s, 40 ms, a BDP of 500 kB, and as much buffer.
const PATH: &str = include_str!("../../../scenarios/jitter.toml");

#[test]
fn a_path_that_jitters_is_found_and_filled_and_not_overflowed() {
    for jitter in [1, 2, 4] {
        let jitter = format!("path.jitter={jitter}ms");
        let transfers = (1..=12).map(|seed| {
            let set = [format!("seed={seed}"), jitter.clone()];
            play(PATH, &set.each_ref().map(String::as_str)).transfers.remove(0)
        });
        let (mut rates, resent): (Vec<f64>, Vec<u64>) =
            transfers.map(|t| (t.goodput_bps / 1e6, t.retransmitted_packets)).unzip();
        rates.sort_by(f64::total_cmp);
        // A quarter more each 60 ms lead from the ten segments of the first round trip, 3 Mbit/s, to
        // the path's 96.5 in ln(33) / ln(1.25) = 16 of them, a second, which ten seconds hold twice
        // where the trains were believed at first.
        assert!(rates[6] > 0.8 * 96.5, "{jitter}: {rates:?}");
        assert!(rates[0] > 0.5 * 96.5, "{jitter}: {rates:?}");
        // Of a BDP of 345 packets; slow start alone loses as much as the path holds.
        assert!(resent.iter().all(|packets| *packets < 345 / 20), "{jitter}: {resent:?}");
    }
}

#[test]
fn what_arrives_behind_a_lost_packet_is_not_all_that_the_path_carries() {
    // The window opens beyond a small buffer, and the epoch that hears of it has received next to
    // nothing: 13 Mbit/s for ten seconds where that was taken for the path's rate.
    for seed in 1..=12 {
        let set = [&*format!("seed={seed}"), "path.jitter=4ms", "path.buffer=200kB"];
        let rate = play(PATH, &set).transfers[0].goodput_bps / 1e6;
        assert!(rate > 0.5 * 96.5, "{seed}: {rate}");
    }
}
