//! Complete paths with policing, shaping, reordering, turns and PIE.

mod common;

use common::{DUMBBELL, simulate};

/// A window well below the BDP, so that congestion control has no influence: 50 packets of 1000 bytes per 100 ms are
/// 4 Mbit/s.
const SMALL_WINDOW: &str = "transfer.sizing=fixed:50pkt";

#[test]
fn a_policer_passes_exactly_its_rate_of_unresponsive_traffic() {
    let udp = "\n[[cross]]\nkind = \"poisson\"\ncount = 10\nrate = \"2Mbit/s\"\n";
    let set = ["path.policer=10Mbit/s", "path.policer_burst=100kB", "path.reverse=clean"];
    let scenario = DUMBBELL.replace("[[transfer]]\n    sizing = \"fixed:450pkt\"", udp);
    let outcome = simulate(&scenario, &set);
    // 20 Mbit/s arrive for 40 s; the initial burst is 0.1 % of the passed bytes.
    let cross = &outcome.cross[0];
    assert!((cross.goodput_bps / 1e7 - 1.0).abs() < 0.005, "{}", cross.goodput_bps);
    // 100,000 packets of a Poisson process: half are lost, to within five times sqrt(100,000) / 100,000.
    assert!((cross.loss_rate - 0.5).abs() < 0.016, "{}", cross.loss_rate);
    // No queue forms behind it: the link is five times as fast.
    assert!(outcome.bottleneck.queue_max_packets < 15, "{:?}", outcome.bottleneck);
}

#[test]
fn a_policed_transfer_gets_most_of_the_policers_rate_and_no_more() {
    for (congestion, min) in [("reno", 0.6), ("cubic", 0.6), ("bbr", 0.7)] {
        let congestion = format!("transfer.congestion={congestion}");
        let set = [
            "path.policer=10Mbit/s",
            "path.policer_burst=125kB",
            "transfer.sizing=max",
            "tcp.flavour=linux",
            &congestion,
        ];
        let goodput = simulate(DUMBBELL, &set).transfers[0].goodput_bps;
        assert!(goodput <= 10.01e6 && goodput > min * 10e6, "{congestion}: {goodput}");
    }
}

#[test]
fn a_shaper_sends_its_burst_at_once_and_keeps_its_mean_rate() {
    let rate = |burst: &str| {
        let burst = format!("path.burst={burst}");
        simulate(DUMBBELL, &[&burst, "transfer.sizing=max"]).transfers[0].goodput_bps
    };
    // On a saturated link, the bucket is empty and the rate is the link's.
    let (constant, shaped) = (rate("0B"), rate("50kB"));
    assert!((shaped / constant - 1.0).abs() < 0.01, "{constant} {shaped}");
    // A window of 50 packets never waits for tokens; on the constant link each packet waits for at most 49 others.
    let mean = |burst: &str| {
        let burst = format!("path.burst={burst}");
        simulate(DUMBBELL, &[&burst, SMALL_WINDOW]).transfers[0].rtt_mean_s
    };
    assert!(mean("100kB") <= mean("0B"));
}

#[test]
fn reordering_by_three_packets_causes_spurious_retransmissions() {
    let set = ["path.reorder=1%", "path.reorder_by=30ms", "path.reverse=clean"];
    let reordered = simulate(DUMBBELL, &set);
    assert_eq!(reordered.bottleneck.loss_rate, 0.0);
    assert!(reordered.transfers[0].retransmitted_packets > 0);
    // A packet held back for less than the 160 us of a packet is overtaken by at most one, so there are never three
    // duplicate ACKs.
    let little = ["path.reorder=1%", "path.reorder_by=150us", "path.reverse=clean"];
    assert_eq!(simulate(DUMBBELL, &little).transfers[0].retransmitted_packets, 0);
}

#[test]
fn aggregation_adds_at_most_one_interval_per_direction_to_the_rtt() {
    let rtt = |turn: &str| {
        let turn = format!("path.aggregation={turn}");
        simulate(DUMBBELL, &[&turn, SMALL_WINDOW]).transfers[0].rtt_mean_s
    };
    // The delay added is between zero and two whole turns.
    let (plain, turns) = (rtt("0ms"), rtt("7ms"));
    assert!(turns >= plain && turns <= plain + 0.014, "{plain} {turns}");
}

#[test]
fn bursty_losses_also_hit_retransmissions() {
    // Within a burst, each packet, including retransmissions, is lost with probability 2/3 instead of 1/100, so
    // recovery needs a timeout.
    let timeouts = |burst: u32| {
        let burst = format!("path.loss_burst={burst}");
        let set = ["path.loss=1%", "transfer.sizing=max", "tcp.flavour=linux", &burst];
        simulate(DUMBBELL, &set).transfers[0].timeouts
    };
    let (alone, bursts) = (timeouts(1), timeouts(3));
    assert!(bursts > alone, "{alone} {bursts}");
}

#[test]
fn pie_keeps_the_queue_short_where_drop_tail_fills_it() {
    let outcome = |queue: &str| {
        let queue = format!("path.queue={queue}");
        let set = ["transfer.sizing=max", "transfer.count=4", "path.buffer=1000pkt", &queue];
        simulate(DUMBBELL, &set)
    };
    let (drop_tail, pie) = (outcome("drop-tail"), outcome("pie"));
    // PIE's target is 15 ms; drop-tail's 1000 packets are 160 ms.
    let delay = pie.bottleneck.queue_delay_mean_s;
    assert!(delay < 0.020, "{delay}");
    assert!(delay < 0.3 * drop_tail.bottleneck.queue_delay_mean_s);
    assert!(pie.bottleneck.utilisation > 0.85, "{}", pie.bottleneck.utilisation);
}

#[test]
fn pie_marks_instead_of_dropping_for_ecn_capable_senders() {
    let set = ["path.queue=pie", "transfer.sizing=max", "transfer.count=4", "tcp.ecn=true"];
    let marked = simulate(DUMBBELL, &set);
    let dropped = simulate(DUMBBELL, &set[..3]);
    let retransmitted = |outcome: &sweetspot_scenario::Outcome| -> u64 {
        outcome.transfers.iter().map(|t| t.retransmitted_packets).sum()
    };
    assert!(
        retransmitted(&marked) < retransmitted(&dropped) / 4,
        "{} {}",
        retransmitted(&marked),
        retransmitted(&dropped)
    );
}
