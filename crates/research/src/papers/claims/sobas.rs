//! Jain, Prasad, Dovrolis: claims in words.

use super::{Claim, no, part, yes};

pub(super) const CLAIMS: &[Claim] = &[
    yes(
        (
            "II, eqs (1) to (3)",
            "the send window is the least of congestion window, advertised window and send buffer, and R = W/T",
        ),
        ("equal by hand", ""),
        &[
            "crates/theory/src/path/window.rs::the_smallest_of_three_limits_sets_the_send_window",
            "crates/theory/src/path/window.rs::window_and_rate_convert_both_ways",
        ],
    ),
    yes(
        ("II", "without cross traffic S = C T_m saturates the tight link and does not congest it"),
        ("within 1 % of C", ""),
        &[
            "crates/sim/tests/closed_forms.rs::below_and_inside_the_sweet_spot_throughput_follows_equation_4",
        ],
    ),
    yes(
        (
            "II",
            "six readings of the bandwidth-delay product: C T_m, C T_e, A T_m, A T_e, BTC T_a, infinity",
        ),
        ("equal by hand", ""),
        &[
            "crates/theory/src/path/six_bdps.rs::the_six_bdps_match_a_hand_calculation",
            "crates/sizing/tests/simple.rs::the_six_definitions_match_the_papers_products",
        ],
    ),
    yes(
        ("II", "BTC T_a is related to the mean congestion window"),
        ("equal by hand", ""),
        &["crates/theory/src/path/six_bdps.rs::bdp5_is_the_mean_congestion_window"],
    ),
    yes(
        ("III", "the Work Around Daemon attempts to set C T_m"),
        ("0.92 to 1.00 of C T_m, measured by itself", ""),
        &[
            "crates/sim/tests/right_sizing.rs::wad_and_nlanr_measure_the_bdps_that_the_sobas_paper_states",
        ],
    ),
    yes(
        ("III", "NLANR's automatic tuning, the median of its measurements, is closer to C T_e"),
        (
            "0.99 to 1.01 of C T_e on one hop",
            "cross traffic that stretches the trains takes up to a fifth of both across three hops",
        ),
        &[
            "crates/sim/tests/right_sizing.rs::wad_and_nlanr_measure_the_bdps_that_the_sobas_paper_states",
        ],
    ),
    yes(
        ("III", "TCP-LP takes the excess bandwidth that others leave"),
        ("75 % of an idle link and more, less than 10 % beside a Reno flow", ""),
        &[
            "crates/sim/tests/low_priority.rs::a_lone_lp_flow_uses_three_quarters_of_the_link",
            "crates/sim/tests/low_priority.rs::beside_a_reno_flow_an_lp_flow_takes_less_than_a_tenth",
        ],
    ),
    yes(
        ("III", "automatic buffer tuning shares a server's memory fairly among its connections"),
        ("62 Mbit/s per MB, Jain's index 1.00", ""),
        &["drs-memory", "crates/sim/tests/applications.rs::senders_share_a_pool_max_min_fairly"],
    ),
    part(
        (
            "III",
            "right-sizing cannot in general find the best socket buffer, because the present one may limit it",
        ),
        (
            "drs 91 of 94 Mbit/s",
            "a receiver that advertises twice what arrives is never the limit for long; the queue that it then fills is the cost",
        ),
        &[
            "drs-memory",
            "crates/sizing/tests/receivers/drs.rs::drs_never_limits_slow_start_or_additive_increase",
        ],
    ),
    yes(
        ("III", "Linux advertises a small window that grows with each segment"),
        ("two segments for each in order", ""),
        &[
            "crates/sizing/tests/receivers/linux.rs::the_window_grows_by_two_bytes_per_byte_received",
        ],
    ),
    yes(
        ("IV, eq. (4)", "R = S / T_m up to C T_m"),
        ("within 1 %", ""),
        &[
            "crates/theory/src/path/saturation.rs::below_the_bdp_throughput_is_window_over_rtt",
            "crates/sim/tests/closed_forms.rs::below_and_inside_the_sweet_spot_throughput_follows_equation_4",
        ],
    ),
    yes(
        ("IV, eq. (4)", "R = C between C T_m and C T_m + B_t, whatever the buffer"),
        ("within 1 %", ""),
        &[
            "crates/theory/src/path/saturation.rs::the_sweet_spot_saturates_the_path_with_any_buffer",
        ],
    ),
    yes(
        ("IV, eq. (4)", "above C T_m + B_t an under-buffered path stays below C"),
        ("within 2 % of the sawtooth's mean", ""),
        &[
            "crates/sim/tests/closed_forms.rs::well_above_the_sweet_spot_throughput_follows_the_sawtooth",
        ],
    ),
    part(
        ("IV, eq. (4)", "just above C T_m + B_t the transfer gets the sawtooth's mean"),
        (
            "31 to 42 of 50 Mbit/s",
            "a window-limited Reno loses bursts there and does worse than with a very large S, in ns-2.35, too",
        ),
        &[
            "crates/sim/tests/closed_forms.rs::just_above_the_sweet_spot_window_limited_reno_loses_throughput",
        ],
    ),
    yes(
        ("IV, eq. (5)", "an over-buffered path is saturated by any S above C T_m"),
        ("continuous with eq. (4)", ""),
        &["crates/theory/src/path/saturation.rs::throughput_is_continuous_at_a_buffer_of_one_bdp"],
    ),
    yes(
        ("IV", "without a buffer 75 % of the tight link are left"),
        ("0.750", ""),
        &["crates/theory/tests/published/sobas.rs::section_4_leaves_75_percent_without_a_buffer"],
    ),
    yes(
        ("IV", "whether a path is under-buffered depends on the transfer's RTT"),
        ("eqs (4) and (5)", ""),
        &["crates/theory/src/path/sawtooth.rs::the_backlog_is_continuous_at_a_buffer_of_one_bdp"],
    ),
    yes(
        (
            "IV",
            "a limited socket buffer improves throughput if it saturates the path and does not congest it",
        ),
        ("93.7 against 86.0 Mbit/s", ""),
        &["bdp-fig1"],
    ),
    yes(
        ("IV", "470 kB lose nothing"),
        (
            "no loss from B_t = 120 packets on",
            "slow start's bursts lose packets in smaller buffers",
        ),
        &["bdp-fig1"],
    ),
    yes(
        ("V", "C = 50 Mbit/s and T_m = 100 ms are 625 packets"),
        ("625", ""),
        &["crates/theory/tests/published/sobas.rs::section_5_has_a_bdp_of_625_packets"],
    ),
    yes(
        ("V-A", "against rate-controlled traffic the MFT is at most A"),
        ("12.9, 14.7 and 15.0 of 15 Mbit/s", ""),
        &["bdp-fig3"],
    ),
    yes(
        ("V-A", "A T_e is 191 packets"),
        ("191", ""),
        &["crates/theory/tests/published/sobas.rs::figure_3_text_has_an_optimum_of_191_packets"],
    ),
    yes(
        ("V-A", "with less buffer the MFT falls below A, and the best S is smaller"),
        ("12.9 at 179, 14.7 at 251, 15.0 Mbit/s at 371 packets", ""),
        &["bdp-fig3"],
    ),
    part(
        ("V-A", "the best S is closer to A T_e (empty buffer) than to A T_e + B_t (full)"),
        (
            "179, 251 and 371 of 191 to 504, 816 and 1441",
            "true of all three; at B_t = 313 it even lies below A T_e",
        ),
        &["bdp-fig3"],
    ),
    yes(
        ("V-B, eq. (6)", "the backlog takes throughput from window-limited elephants"),
        ("equal by hand", ""),
        &[
            "crates/theory/src/path/elephants.rs::a_backlog_shifts_rate_from_the_elephants_to_the_target",
        ],
    ),
    yes(
        ("V-B, eqs (7), (8)", "the MFT is larger than A and grows with the buffer"),
        ("22.8, 29.2 and 35.6 of A = 15 Mbit/s", ""),
        &[
            "bdp-fig4",
            "crates/theory/src/path/elephants.rs::the_optimum_matches_a_hand_calculation",
        ],
    ),
    part(
        ("V-B", "the best S is R T_e + B_t"),
        (
            "385, 638 and 1231 packets",
            "with the backlog Q shared, the transfer's window holds only its own part of it: R (T_e + Q/C)",
        ),
        &[
            "bdp-fig4",
            "crates/theory/src/path/elephants.rs::the_window_contains_only_the_targets_share_of_the_backlog",
        ],
    ),
    yes(
        ("V-B", "the model overestimates the MFT"),
        ("26.7, 32.5 and 38.3 by equation (8), 22.8, 29.2 and 35.6 simulated", ""),
        &[
            "bdp-fig4",
            "crates/theory/tests/published/sobas.rs::figures_4_and_5_stay_below_the_fluid_models_bound",
        ],
    ),
    yes(
        ("V-B", "22 packets of 20 Reno sources at 100 ms use 70 % of the link"),
        ("70 %", ""),
        &["bdp-fig4"],
    ),
    no(
        ("V-C", "2000 mice that sleep 4.25 to 4.75 s use 70 % of the link"),
        (
            "78 % here, 82 % in ns-2.35",
            "a transfer of 10 to 15 packets takes 0.9 s; the scenarios let them sleep 0.6 s longer",
        ),
        &["bdp-fig5"],
    ),
    yes(
        ("V-C", "R(S) rises linearly, then more slowly, then falls to the BTC"),
        ("the curve of Figure 5", ""),
        &["bdp-fig5"],
    ),
    yes(
        ("V-C", "with mice the MFT is close to A, between UDP's and the elephants'"),
        ("14.8, 15.6 and 17.4 Mbit/s", ""),
        &["bdp-fig5", "crates/theory/src/path/mice.rs::mice_lie_between_udp_and_elephants"],
    ),
    yes(
        ("VI, eq. (9)", "on a congested path a limited socket buffer can only reduce throughput"),
        ("R(S) never above S = inf beyond its error", ""),
        &[
            "bdp-fig6",
            "crates/theory/src/reno/pftk.rs::on_a_congested_path_a_socket_buffer_only_lowers_the_rate",
        ],
    ),
    yes(
        ("VI-A", "from about 100 packets on the transfer is limited by congestion"),
        ("flat from 99 to 138 packets on", ""),
        &["bdp-fig6"],
    ),
    yes(
        ("VI-A", "below that, a larger buffer lowers the throughput of a limited window"),
        ("1.47, 1.20 and 0.84 Mbit/s at 26 packets", ""),
        &["bdp-fig6"],
    ),
    part(
        ("VI-A", "the model predicts the BTC of 2.4 Mbit/s from loss and RTT"),
        ("2.08 Mbit/s", "2.4 lies between one and two segments per ACK"),
        &[
            "bdp-fig6",
            "crates/theory/tests/published/sobas.rs::figure_6_text_has_2_4_mbit_between_the_two_ack_rates",
        ],
    ),
    yes(
        ("VI-B", "with mice practically any socket buffer is limited by congestion"),
        ("0.36 Mbit/s from 37 packets on at B_t = 313", ""),
        &["bdp-fig7"],
    ),
    yes(
        ("VI-B", "mice lose more than elephants and leave less"),
        ("2.0 against 0.08 % at B_t = 313; 0.35 to 1.4 against 2.2 Mbit/s", ""),
        &["bdp-fig6", "bdp-fig7"],
    ),
    no(
        ("VI-B", "sleeping 2 to 2.75 s the mice saturate the link with 1.5 % of loss"),
        ("7 % in ns-2.35", "0.6 s more brings the loss near the printed one"),
        &["bdp-fig7"],
    ),
    yes(
        ("VII-A", "probes of 100 bytes every 20 ms, 40 kbit/s"),
        ("the same", ""),
        &[
            "crates/sizing/tests/sobas/paper.rs::a_lost_probe_among_the_last_1000_leaves_the_window_unlimited",
        ],
    ),
    yes(
        ("VII-A", "five packet trains set the initial limit C~ T~"),
        ("the same", "their length is ours; the text gives none"),
        &[
            "crates/sizing/tests/sobas/paper.rs::the_initial_limit_is_the_train_capacity_times_the_rtt",
        ],
    ),
    yes(
        ("VII-A", "beyond it the window grows by two segments per round trip"),
        ("the same", ""),
        &[
            "crates/sizing/tests/sobas/paper.rs::beyond_the_initial_limit_the_window_grows_by_two_segments_per_rtt",
        ],
    ),
    part(
        ("VII-A", "rate saturation: the slope of the last five seconds is approximately zero"),
        (
            "below 1 % a second over five; below half of congestion avoidance's climb over up to twenty where that is slow",
            "by the text alone Reno's climb after a loss passes for saturation: over 200 drawn paths alone 0.40 of the link at the fifth percentile, 0.55 here",
        ),
        &[
            "crates/sizing/tests/sobas/paper.rs::saturation_needs_five_flat_seconds_and_sets_rate_times_rtt",
            "crates/sizing/src/paper/saturation.rs::a_slow_climb_is_judged_over_more_measurements",
            "crates/sizing/src/paper/saturation.rs::a_peak_is_not_a_plateau",
        ],
    ),
    yes(
        ("VII-A", "SOBAS sets S = R T once, and does not readjust it"),
        ("the same", ""),
        &["crates/sizing/tests/sobas/paper.rs::the_limit_is_set_once_and_never_readjusted"],
    ),
    part(
        ("VII-A", "if any of the last 1000 probes was lost, the buffer is not reduced"),
        (
            "the same, and the initial limit is lifted",
            "a transfer on a congested path is to be limited by congestion alone",
        ),
        &[
            "crates/sizing/tests/sobas/paper.rs::a_lost_probe_among_the_last_1000_leaves_the_window_unlimited",
        ],
    ),
    yes(
        ("VII-A", "over-buffered, the initial limit avoids slow start's losses"),
        ("none before saturation", ""),
        &["bdp-fig8"],
    ),
    yes(
        ("VII-A", "under-buffered, it fails to avoid them"),
        ("losses at the end of slow start", ""),
        &["bdp-fig8"],
    ),
    yes(
        ("VII-A", "after saturation SOBAS loses nothing"),
        ("flat after saturation", ""),
        &["bdp-fig8"],
    ),
    part(
        ("VII-B", "SOBAS is close to the MFT, typically within 5 to 10 %"),
        ("see the sentences under Table I", "holds at 30 % load; cross traffic is ours"),
        &["bdp-table1"],
    ),
    part(
        ("VII-B", "under-buffered, SOBAS stays up to 15 to 20 % below the MFT"),
        ("see the sentences under Table I", "holds where its slow start overflows only once"),
        &["bdp-table1"],
    ),
    no(
        ("VII-B", "on non-congested paths SOBAS beats the six static schemes but in one case"),
        (
            "see the sentences under Table I",
            "C T_m, C T_e and infinity come as close to the MFT in most cells",
        ),
        &["bdp-table1"],
    ),
    part(
        ("VII-B", "in congested paths the schemes differ little"),
        (
            "see the sentences under Table I",
            "BTC T_a has half of the others, in the printed table, too",
        ),
        &["bdp-table1"],
    ),
    yes(
        ("VII-B", "SOBAS needs no prior information about the path"),
        ("it is given none", ""),
        &["bdp-table1"],
    ),
    yes(
        (
            "VII-C",
            "SOBAS finds saturation some five seconds after the start, at about the static C T_m's throughput",
        ),
        ("85.9 against 93.5 Mbit/s", "its slow start overflows the 120 packets that are simulated"),
        &["bdp-fig10"],
    ),
    yes(
        ("VII-C", "the window of 559 kB lies in the sweet spot"),
        ("436 to 620 kB", ""),
        &["crates/theory/tests/published/sobas.rs::figure_10s_window_lies_in_the_sweet_spot"],
    ),
    yes(
        ("Appendix, eqs (10) to (17)", "the sawtooth's period, packets and loss rate"),
        ("within 5 % simulated, equal by hand", ""),
        &[
            "crates/sim/tests/closed_forms.rs::the_sawtooths_period_and_loss_rate_follow_equations_12_to_16",
            "crates/theory/src/path/sawtooth.rs::packets_per_period_give_the_throughput_of_equation_17",
        ],
    ),
    part(
        ("VIII", "open: active queues, several connections, no probes"),
        ("the table of conditions", "the paper has no numbers"),
        &["bdp-beyond"],
    ),
];
