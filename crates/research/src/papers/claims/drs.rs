//! Weigle, Feng: claims in words.

use super::{Claim, no, part, yes};

pub(super) const CLAIMS: &[Claim] = &[
    yes(
        ("I-B", "56 kbit/s x 5 ms are 36 bytes, 622 Mbit/s x 100 ms 7.8 MB"),
        ("35 B, 7.776 MB", ""),
        &[
            "crates/theory/tests/published/right_sizing.rs::section_1b_has_bdps_of_36_bytes_and_7_8_megabytes",
        ],
    ),
    yes(
        ("I-B, footnote 2", "a window of 8 MB takes 266 s to converge"),
        ("266.7 s", "for 8,000,000 bytes; the footnote's own 1024-based megabytes make 279.6 s"),
        &[
            "crates/theory/tests/published/right_sizing.rs::footnote_2_has_266_seconds_of_convergence",
        ],
    ),
    yes(
        ("II", "fwnd = min(cwnd, awnd, maxwnd)"),
        ("equal by hand", ""),
        &["crates/theory/src/host/right_sizing.rs::the_administrators_limit_binds_last"],
    ),
    yes(
        ("II", "awnd is at least twice cwnd in slow start"),
        ("twice", ""),
        &[
            "crates/sizing/tests/receivers/drs.rs::in_slow_start_the_window_is_twice_the_arrivals_per_rtt",
        ],
    ),
    yes(
        ("II", "awnd is at least cwnd + 1 in additive increase"),
        ("cwnd + 1", ""),
        &[
            "crates/sizing/tests/receivers/drs.rs::in_additive_increase_the_window_exceeds_arrivals_by_a_segment",
        ],
    ),
    yes(
        ("II", "the receiver infers the congestion window from arrivals over round trips"),
        ("never the limit of a sender that doubles or adds one", ""),
        &["crates/sizing/tests/receivers/drs.rs::drs_never_limits_slow_start_or_additive_increase"],
    ),
    yes(
        ("II", "awnd is reduced a few RTTs after a multiplicative decrease"),
        ("after four", ""),
        &[
            "crates/sizing/tests/receivers/drs.rs::the_window_shrinks_once_four_rtts_agree_on_a_decrease",
        ],
    ),
    yes(
        ("II-A", "right-sizing serves more connections from the same memory"),
        ("38.9 against 29.9 Mbit/s per MB of static 64 kB", ""),
        &["drs-memory"],
    ),
    yes(
        ("II-A", "a firewall that splits connections is their bottleneck, whatever the hosts have"),
        ("17.4 Mbit/s with dynamic hosts and a static firewall", ""),
        &["drs-split"],
    ),
    yes(("II-A", "right-sizing in the firewall removes that"), ("99.8 Mbit/s", ""), &["drs-split"]),
    part(
        ("II-A", "flows get bandwidth in proportion to the memory they dedicate"),
        (
            "15.9 for 16 times the memory",
            "only while the queue holds everything; at Q = 100 losses decide",
        ),
        &[
            "drs-fig5",
            "crates/theory/src/host/right_sizing.rs::memory_shares_add_up_to_the_link_rate",
        ],
    ),
    no(
        ("III", "RED does not noticeably change the results"),
        (
            "144 ± 1 of 192 ± 1 thousand packets, Q = 100",
            "its average lies below the queue that windows of 650 packets keep",
        ),
        &["drs-remarks"],
    ),
    yes(
        ("III", "Poisson sources make no significant difference"),
        ("192 ± 1 of 192 ± 1", "the window is the limit, not they"),
        &["drs-remarks"],
    ),
    yes(
        ("III", "Pareto sources make no significant difference"),
        ("192 ± 1 of 192 ± 1", ""),
        &["drs-remarks"],
    ),
    yes(
        ("III", "reverse traffic makes no significant difference"),
        ("172 ± 1 of 192 ± 1 with 10 % of load each way", "as much less as that load takes"),
        &["drs-remarks"],
    ),
    yes(
        ("IV-A", "a static flow gets 8.7 % of 100 Mbit/s and 0.55 % of 1 Gbit/s"),
        ("8.7 Mbit/s; 44 packets per 96 ms are 5.5 Mbit/s", ""),
        &[
            "drs-fig2",
            "crates/theory/tests/published/right_sizing.rs::section_4a_has_8_8_percent_for_a_window_of_64_kilobytes",
        ],
    ),
    yes(("IV-A", "its performance does not depend on maxwnd"), ("flat", ""), &["drs-fig2"]),
    yes(
        ("IV-B", "the dynamic flow delivers over 90 Mbit/s while the static one is unaffected"),
        ("91.6 and 8.1 Mbit/s at maxwnd 500", "a queue takes some from the static flow"),
        &["drs-fig3"],
    ),
    yes(
        (
            "IV-B",
            "with Q = 100 large windows overflow the queue and the static flow regains some bandwidth",
        ),
        ("78.6 and 8.4 at maxwnd 700", ""),
        &["drs-fig3"],
    ),
    part(
        ("IV-B", "at maxwnd 650 the congestion window backs off and starts slowly, over and over"),
        (
            "one timeout in 200 s",
            "the first overflow costs most; afterwards additive increase takes longer than the run",
        ),
        &["drs-fig4"],
    ),
    yes(
        ("IV-B, first solution", "larger queues avoid the losses"),
        ("1562 of 1270 ± 28 thousand packets, no loss", ""),
        &["drs-solutions"],
    ),
    yes(
        ("IV-B, second solution", "resetting the congestion window to another fraction helps"),
        (
            "1484 ± 9 at 0.875, 1461 ± 32 at 0.75, 1270 ± 28 at 0.5",
            "planned in the paper, without numbers",
        ),
        &["drs-solutions"],
    ),
    yes(
        ("IV-B, second solution", "avoiding losses as Vegas does is even better"),
        ("1513 ± 1", ""),
        &["drs-solutions"],
    ),
    part(
        ("IV-B, third solution", "a heuristic over maxwnd is effective"),
        (
            "1287 ± 60 of 1270 ± 28; with SACK 1379 ± 32",
            "a Reno that waits for its timer gives it too few round trips to learn from",
        ),
        &["drs-solutions"],
    ),
    yes(
        (
            "IV-C",
            "with Q = 16384 the dynamic flow gets 16 times a static one and the link is used to 99 %",
        ),
        ("15.9, 99.8 %", ""),
        &["drs-fig5"],
    ),
    no(
        ("IV-C", "with Q = 100 static flows outperform the dynamic one"),
        ("the dynamic one stays ahead at every maxwnd", "in ns-2.35, too"),
        &["drs-fig5"],
    ),
    yes(
        ("IV-C", "with Q = 500 the dynamic flow performs well until 600"),
        ("600", ""),
        &["drs-fig5"],
    ),
    yes(
        ("IV-C", "queueing raises the RTT and lowers static flows"),
        ("8.7 to 5.9 Mbit/s beside maxwnd 700 at Q = 500", ""),
        &["drs-fig3"],
    ),
    yes(
        ("IV-D", "memory shares give 18.38 kbit/s per kilobyte"),
        ("18.38", ""),
        &["crates/theory/tests/published/right_sizing.rs::section_4d_has_18_38_kbit_per_kilobyte"],
    ),
    yes(
        ("IV-D", "18,820 and 1,176 kbit/s per connection"),
        ("18,823 and 1,176", ""),
        &[
            "crates/theory/tests/published/right_sizing.rs::section_4d_has_18820_and_1176_kbit_per_connection",
        ],
    ),
    yes(
        ("IV-D", "314,000 and 19,600 packets in 200 s"),
        ("314,000 and 19,600", ""),
        &[
            "crates/theory/tests/published/right_sizing.rs::section_4d_has_314000_and_19600_packets_in_200_seconds",
        ],
    ),
    part(
        ("IV-D", "the order among simultaneous packets decides each flow's share"),
        (
            "1.11 between the largest and the smallest dynamic flow",
            "the order matters, far less than printed",
        ),
        &["drs-table1"],
    ),
    part(
        (
            "IV-D",
            "random order and random packet sizes reduce the effect but produce other patterns",
        ),
        (
            "1.27, 1.21 and 1.24 instead of 1.11",
            "there is little to reduce here; chance adds differences of its own",
        ),
        &["drs-table1"],
    ),
    yes(
        ("IV-D", "at 1 Gbit/s ten static flows would use less than 6 % of the link"),
        ("5.5 %", "44 packets per 96 ms, ten times"),
        &["drs-fig7"],
    ),
    part(
        ("IV-E", "ten dynamic flows with a large queue share the link equally at any maxwnd"),
        (
            "flat until the queue overflows",
            "at Q = 100 the real right-sizer holds 164 thousand where a fixed maxwnd falls to 142",
        ),
        &["drs-fig8"],
    ),
    part(
        ("V", "Vegas is better than Reno and depends less on the queue"),
        (
            "194 and 198 of 192 and 247 thousand packets",
            "less dependent, and not better with the larger queue",
        ),
        &["drs-remarks"],
    ),
    no(
        ("V", "spacing removes Vegas's dependence on the queue"),
        ("191 ± 1 and 219 ± 8", "the larger queue still brings more"),
        &["drs-remarks"],
    ),
    yes(
        ("V, future work", "right-sizing with FACK"),
        (
            "205 ± 1 of 200 ± 3 thousand packets, Q = 100",
            "as much as SACK: neither waits for timers",
        ),
        &["drs-future"],
    ),
    yes(
        ("V, future work", "right-sizing with paced Reno"),
        ("194 ± 1 of 200 ± 3, and half of the loss", ""),
        &["drs-future"],
    ),
    yes(
        ("V, future work", "right-sizing with ECN"),
        ("loss of 0.007 in place of 0.068 % under RED, 2 to 3 % more throughput", ""),
        &["drs-future"],
    ),
    yes(
        ("V, future work", "right-sizing with BLUE"),
        ("145 ± 1 of 200 ± 3, Q = 100", "its drops cost more than the full queue does"),
        &["drs-future"],
    ),
];
