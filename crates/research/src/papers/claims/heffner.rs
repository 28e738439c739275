//! Heffner: claims in words.

use super::{Claim, no, part, yes};

pub(super) const CLAIMS: &[Claim] = &[
    yes(
        ("2.3, 4", "throughput is the window over the RTT, and a static buffer bounds it"),
        ("a window per round trip, within 2 %", ""),
        &["heffner-fig5"],
    ),
    yes(
        ("4.1", "an effectively infinite receive buffer breaks flow control for slow applications"),
        ("the unread data are whatever the sender had under way", ""),
        &["crates/sim/tests/applications.rs::a_slow_reader_sets_the_rate_without_losses"],
    ),
    yes(
        (
            "4.2.1",
            "the time from an advertised edge to the first byte beyond it bounds the RTT from above",
        ),
        ("never below the true round trip", ""),
        &[
            "crates/sim/tests/right_sizing.rs::the_window_edge_method_matches_timestamps_once_rwnd_was_the_limit",
        ],
    ),
    yes(
        ("4.2.1", "a window that was the limit doubles in the next round trip"),
        ("doubles", ""),
        &[
            "crates/sizing/tests/receivers/heffner.rs::heffner_twice_doubles_the_window_per_rtt_until_the_link_is_full",
        ],
    ),
    no(
        (
            "4.2.1",
            "with a slow reader the window settles at what is read in a round trip, and as much is buffered",
        ),
        (
            "0 to 227 kB about 44 kB; 75 % of the reader's rate",
            "a window of k times the arrivals leaves that steady state by the root of k per round trip",
        ),
        &[
            "heffner-slow",
            "crates/theory/src/host/heffner.rs::a_slow_readers_window_diverges_at_the_predicted_growth_rate",
        ],
    ),
    yes(
        ("4.2.1, our reading", "counting what the application reads has that steady state"),
        ("39 to 85 kB about 44 kB; 100 % of the reader's rate", ""),
        &[
            "heffner-slow",
            "crates/sim/tests/right_sizing.rs::a_slow_reader_reaches_a_steady_state_only_if_reads_are_counted",
        ],
    ),
    part(
        (
            "4.2.2",
            "without timestamps the measurement is an overestimate unless the window controls the flow",
        ),
        (
            "26 in place of 12 packets at 0.2 Mbit/s; equal otherwise",
            "the window controls the flow while it grows, and the least sample counts",
        ),
        &[
            "heffner-rtt",
            "crates/sim/tests/right_sizing.rs::the_window_edge_method_overestimates_rtt_unless_rwnd_was_the_limit",
        ],
    ),
    yes(
        ("4.2.2", "the buffer stays small where the sender has little to send"),
        ("26 packets", ""),
        &["heffner-rtt"],
    ),
    yes(
        ("4.2.2", "an RTT that is too large makes the buffer proportionally larger"),
        ("2, 4 and 8 times", ""),
        &[
            "heffner-rtt",
            "crates/sizing/tests/receivers/heffner.rs::inflating_every_rtt_inflates_the_window_by_the_same_factor",
        ],
    ),
    yes(
        ("4.2.2", "a malicious sender can drain a receiver's memory by inflating the RTT"),
        ("eight times the window for eight times the RTT", "until one honest sample"),
        &[
            "heffner-rtt",
            "crates/sizing/tests/receivers/heffner.rs::one_honest_sample_ends_the_attack",
        ],
    ),
    yes(
        ("5", "a small send buffer limits throughput"),
        ("5.8 Mbit/s with 128 KiB at 100 ms", ""),
        &["heffner-fig4"],
    ),
    yes(
        ("5", "a retransmit queue apart from the send buffer never limits the window"),
        ("89.2 Mbit/s", "sequence numbers are all that the simulator's sender holds"),
        &["heffner-fig4"],
    ),
    yes(
        ("6.3", "a scale of 7 advertises 8,388,480 bytes, enough for 100 Mbit/s and 70 ms"),
        ("equal by hand", ""),
        &[
            "crates/theory/tests/published/heffner.rs::section_6_3_has_524280_bytes_at_scale_3_and_8388480_at_scale_7",
            "crates/theory/tests/published/heffner.rs::section_6_3_scale_7_exceeds_a_continental_bdp_at_100_mbit",
        ],
    ),
    no(
        ("6.3", "a scale of 7 has a granularity of 256 bytes"),
        ("128 bytes", "2 to the power 7"),
        &[
            "crates/theory/tests/published/heffner.rs::section_6_3_is_wrong_about_the_granularity_of_scale_7",
        ],
    ),
    yes(
        ("6.4", "one tick is added to each sample"),
        ("the same, of 1/1024 s", ""),
        &["crates/sizing/tests/receivers/heffner.rs::the_rtt_is_overestimated_by_at_most_one_tick"],
    ),
    yes(
        ("6.4", "rcv_min_rtt is the least sample"),
        ("the same", ""),
        &["crates/sizing/tests/receivers/heffner.rs::the_min_rtt_sets_the_measurement_interval"],
    ),
    yes(
        ("6.5", "rcv_space starts with 4 MSS"),
        ("the same", ""),
        &["crates/sizing/tests/receivers/heffner.rs::the_window_starts_at_four_segments"],
    ),
    yes(
        ("6.5", "it becomes what a round trip brought and 4 MSS"),
        ("the same", ""),
        &[
            "crates/sizing/tests/receivers/heffner.rs::the_window_is_one_rtts_arrivals_plus_four_segments",
        ],
    ),
    yes(
        ("6.5", "and never less than half of what it was"),
        ("the same", ""),
        &["crates/sizing/tests/receivers/heffner.rs::the_window_never_shrinks_by_more_than_half"],
    ),
    no(
        ("6.5, 6.6", "advertised once, that space lets the window double each round trip"),
        (
            "4 segments per round trip; 63 of 91 Mbit/s at 70 ms",
            "it is the arrivals and 4 MSS; Figure 1's kernel must have advertised twice as much",
        ),
        &["heffner-fig1"],
    ),
    yes(
        ("6.6", "the window is rcv_space - rcv_alloc + ofo_alloc, and never retracts"),
        ("equal by hand", ""),
        &[
            "crates/theory/src/host/heffner.rs::unread_data_reduces_the_window_but_out_of_order_data_does_not",
            "crates/theory/src/host/heffner.rs::an_advertised_window_is_never_retracted",
        ],
    ),
    yes(
        ("6.8", "the window doubles each round trip, then stays at twice the BDP"),
        ("1.90 of what a round trip brings on the wire", "2.00 of its payload"),
        &["heffner-fig1"],
    ),
    yes(
        ("6.8", "a reader that stops for a second shrinks the window to zero"),
        ("0 kB", ""),
        &[
            "heffner-fig2",
            "crates/sim/tests/applications.rs::a_paused_reader_closes_the_window_and_reopens_it",
        ],
    ),
    yes(
        ("6.8", "when it resumes, rcv_space has shrunk and grows again"),
        ("98 kB at first, nine tenths of 1668 kB after 450 ms", ""),
        &["heffner-fig2"],
    ),
    yes(
        ("7.2", "an under-buffered path leaves a flow three quarters of the bandwidth"),
        ("0.750", ""),
        &[
            "crates/theory/tests/published/heffner.rs::section_7_2_has_three_quarters_of_capacity_under_buffered",
        ],
    ),
    yes(
        ("8", "the modified implementation performs well in all tested cases"),
        ("83 to 94 Mbit/s from 1 to 200 ms", ""),
        &["heffner-fig4"],
    ),
    yes(
        ("8", "its throughput falls with the RTT because the ramp takes longer"),
        ("94.1 at 1 ms, 83.4 at 200 ms", ""),
        &["heffner-fig4"],
    ),
    yes(
        ("8", "the standard implementation drops where the buffer is inadequate"),
        ("from 7 ms on with 128 KiB, from 50 ms on with 1 MiB", ""),
        &["heffner-fig4"],
    ),
    part(
        (
            "8",
            "similar send and receive buffers limit at BDPs a factor of two apart, also because of overheads",
        ),
        (
            "1.38",
            "three quarters of a receive buffer, and two thirds of 1448 / 1784 of a send buffer",
        ),
        &["heffner-fig4"],
    ),
    no(
        ("8.1", "on the real path congestion control, not buffers, was the limit"),
        ("-", "the path is gone"),
        &["heffner-table1"],
    ),
];
