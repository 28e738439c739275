//! Prasad, Dovrolis, Thottan: claims in words.

use super::{Claim, no, part, yes};

pub(super) const CLAIMS: &[Claim] = &[
    yes(
        ("II", "Villamizar and Song: one BDP keeps a link busy for one flow"),
        ("C T", ""),
        &[
            "router-rules",
            "crates/theory/src/router/rules.rs::the_classic_rules_match_a_hand_calculation",
        ],
    ),
    yes(
        ("II", "Appenzeller: C T / sqrt(n) for n unsynchronised flows"),
        ("C T / sqrt(n)", ""),
        &[
            "router-rules",
            "crates/theory/src/router/rules.rs::one_flow_needs_the_bdp_and_four_flows_need_half",
        ],
    ),
    yes(
        ("II", "Dhamdhere: buffers under constraints of use, loss and delay"),
        ("2425 kB for 1000 flows, none for 2000", "use by the square-root rule"),
        &[
            "router-rules",
            "crates/theory/src/router/rules.rs::the_largest_requirement_decides_unless_the_delay_limit_forbids_it",
        ],
    ),
    yes(
        ("II", "Morris: loss grows with the square of the number of flows"),
        ("four times for twice the flows", ""),
        &["crates/theory/src/reno/morris.rs::loss_grows_with_the_square_of_the_number_of_flows"],
    ),
    yes(
        ("II", "Morris: flow-proportional queueing sizes the buffer by the flows"),
        ("8.7 packets per flow for 1 % of loss", ""),
        &[
            "router-rules",
            "crates/theory/src/router/rules.rs::a_thousand_flows_at_one_percent_loss_need_8_7_packets_each",
        ],
    ),
    yes(
        ("III-A", "the longest wait is B / C"),
        ("0.95 to 1.00 of it", ""),
        &[
            "router-fig2",
            "crates/theory/tests/published/router.rs::figure_2s_worst_delay_is_b_over_c",
        ],
    ),
    yes(
        ("III-A", "closed-loop users never offer more than the link carries"),
        ("U S / (T_h + T_t)", ""),
        &["crates/theory/src/router/closed_loop.rs::slower_transfers_lower_the_load"],
    ),
    yes(
        ("III-B1", "use of the link is lost where the buffer is too small"),
        ("9 % with 200 kB in U_3000", ""),
        &["router-fig2"],
    ),
    part(
        ("III-B1", "moderately loaded links are congested for long times"),
        ("5 % of spans of 0.1 s, 0.8 % of 10 s", "rarer than in the paper's one experiment"),
        &["router-fig2"],
    ),
    yes(
        ("III-B2", "large flows want larger buffers than small ones"),
        ("4000 against 450 kB in U_1000", ""),
        &["router-fig2"],
    ),
    yes(
        ("III-B2", "the best buffer grows with the load"),
        (
            "large flows: 4 to 38 MB; small flows: 450 kB to 1 MB",
            "U_1200's small flows are the exception, within their interval",
        ),
        &["router-fig2"],
    ),
    yes(
        ("III-B2", "with a saturated link small flows rise to a maximum and fall"),
        ("at 1 MB", ""),
        &["router-fig2"],
    ),
    yes(
        ("III-B3", "the variation of small flows falls with the buffer"),
        ("0.79 to 0.33", ""),
        &["router-fig2"],
    ),
    part(
        ("III-B3", "the variation of large flows rises with the buffer"),
        (
            "1.18 to 1.00 in U_3000",
            "it rises in U_1000 and U_1200; in U_3000 it falls to 12 MB first, because losses already differ at 30 kB",
        ),
        &["router-fig2"],
    ),
    yes(
        ("IV-A, eq. (1)", "the S-model: slow start takes D(s) round trips and recovery v more"),
        ("equal by hand", ""),
        &["crates/theory/src/reno/s_model.rs::thirty_packets_match_a_hand_calculation"],
    ),
    yes(
        ("IV-A", "in slow start larger flows are faster"),
        ("rising", ""),
        &[
            "crates/theory/src/reno/s_model.rs::larger_flows_are_faster_in_slow_start",
            "router-fig9",
        ],
    ),
    yes(
        ("IV-B, eq. (2)", "the L-model: throughput by the root of loss"),
        ("equal by hand", ""),
        &["crates/theory/src/reno/l_model.rs::four_times_the_loss_halves_the_rate"],
    ),
    yes(
        ("IV-C", "losses within two RTTs are one congestion event, and five make a flow long"),
        ("the same", ""),
        &[
            "crates/theory/src/reno/classify.rs::losses_within_two_rtts_are_one_event",
            "crates/theory/src/reno/classify.rs::the_fifth_event_makes_a_flow_long",
        ],
    ),
    yes(
        ("IV, Figure 9", "with 30 kB throughput levels off with the flow's size"),
        ("levels off from 200 packets on", "middle-sized flows lie above the models"),
        &["router-fig9"],
    ),
    yes(
        ("IV, Figure 10", "with 38 MB it grows with the size, as in the S-model"),
        ("within 15 % of the S-model", ""),
        &["router-fig10"],
    ),
    yes(
        ("V, eqs (4), (5)", "loss 1/B and delay B/2C in heavy load"),
        ("equal to the sum", ""),
        &["crates/theory/src/router/mm1b.rs::at_full_load_the_loss_is_the_papers_one_over_b"],
    ),
    yes(
        ("V, eq. (6)", "the best buffer of short flows grows with the root of the BDP"),
        ("sqrt(2 v M C T_o / D)", ""),
        &["crates/theory/src/router/optimum.rs::short_flows_at_heavy_mm1b_load_have_a_closed_form"],
    ),
    yes(
        ("V, eq. (7)", "the best buffer for long flows is twice the BDP"),
        ("15 MB", ""),
        &["crates/theory/tests/published/router.rs::section_5_has_15_mb_for_long_flows"],
    ),
    yes(
        ("VI", "delay grows linearly with the buffer up to a cutoff"),
        ("f B / C, f = 0.50 (0.47-0.52)", ""),
        &["router-fig14"],
    ),
    yes(
        ("VI", "with Gamma = 0.1 loss falls as a power of the buffer"),
        ("R2 0.967 for 0.888, p = 0.005", ""),
        &["router-fig13"],
    ),
    yes(
        ("VI", "with Gamma = 10 it falls exponentially"),
        ("the exponential wins in the fitted rows", ""),
        &["router-fig15"],
    ),
    yes(
        ("VI", "N_in C_in below C_out needs no buffer"),
        ("refused as a question", ""),
        &["crates/theory/src/router/capacity_ratio.rs::too_few_inputs_never_queue"],
    ),
    yes(
        ("VI-A, Table I", "the eight rows' Gamma are 0.1 and 10"),
        ("equal", ""),
        &["crates/theory/tests/published/router.rs::table_1_has_a_ratio_of_a_tenth_or_ten"],
    ),
    part(
        ("VI-B", "at Gamma = 1 the power law is good for tails below about 1.5"),
        ("R2 0.989 at 1.25, 0.948 at 1.5", "with 1.5 neither form wins"),
        &["router-sec6b"],
    ),
    yes(
        ("VI-B", "with tails close to 2 it is not good even at 0.25"),
        ("R2 0.870 for the exponential's 0.984", ""),
        &["router-sec6b"],
    ),
    yes(
        ("VI-B", "above one the exponential is good even at 1.25"),
        ("R2 0.927 at 2, 0.971 at 4, 0.991 at 10", ""),
        &["router-sec6b"],
    ),
    no(
        ("VI-B", "close to 2, and below but close to 1, neither form is good"),
        ("R2 0.976 to 0.985 for the exponential", "the grey zone is less grey than printed"),
        &["router-sec6b"],
    ),
    yes(
        ("VII-A, eq. (11)", "long flows under a power law: 2 b C T_o / (f (2 - b))"),
        ("equal by hand", ""),
        &[
            "crates/theory/src/router/optimum.rs::long_flows_under_a_power_law_match_a_hand_calculation",
        ],
    ),
    yes(
        ("VII-A", "0.83 of the BDP for typical parameters"),
        ("0.833", ""),
        &[
            "crates/theory/tests/published/router.rs::section_7a_has_0_83_of_the_bdp_for_typical_parameters",
        ],
    ),
    no(
        ("VII-A, Figure 17", "optima of about 100 and 400 packets at C T_o = 250"),
        (
            "55 and 121",
            "they follow neither from the printed typical parameters nor from Table II's for the same link",
        ),
        &[
            "router-fig17",
            "crates/theory/tests/published/router.rs::figure_17s_optima_do_not_follow_from_the_typical_parameters",
        ],
    ),
    yes(
        ("VII-B", "the exponential has no optimum but zero for typical parameters"),
        ("zero", ""),
        &[
            "crates/theory/tests/published/router.rs::table_2_has_a_zero_buffer_under_an_exponential",
        ],
    ),
    no(
        ("VII-C, Table II", "PL-L: 170 packets simulated"),
        (
            "none seen; tied from 126 packets on",
            "flows with more than five losses are ever fewer and larger as the buffer grows",
        ),
        &[
            "crates/research/tests/router.rs::long_flows_need_more_buffer_than_short_ones_and_slow_inputs_least",
        ],
    ),
    part(
        ("VII-C, Table II", "PL-L: 146 packets by analysis"),
        ("121 (109-135)", "from parameters fitted to our own runs; the paper prints none"),
        &[
            "crates/theory/tests/published/router.rs::table_2_has_146_and_47_packets_under_one_power_law",
        ],
    ),
    yes(("VII-C, Table II", "PL-S: 64 packets simulated"), ("55 (36-83)", ""), &["router-fig13"]),
    part(
        ("VII-C, Table II", "PL-S: 47 packets by analysis"),
        ("56 (53-59)", "from parameters fitted to our own runs"),
        &[
            "crates/theory/tests/published/router.rs::table_2_has_146_and_47_packets_under_one_power_law",
        ],
    ),
    no(
        ("VII-C, Table II", "EX-L: 30 packets simulated"),
        ("13 (13-20)", "up to C T_o; with larger buffers no maximum"),
        &["router-fig18"],
    ),
    yes(
        ("VII-C, Table II", "EX-S: 20 packets simulated"),
        ("50 (8-200)", "flat: the interval holds 20"),
        &["router-fig18"],
    ),
    yes(
        ("VII-D, eqs (19), (20)", "a buffer 40 to 60 % off costs less than 15 %"),
        ("4.8 to 9.6 % at 0.4 of the best", "the error does not depend on f or a"),
        &[
            "router-fig19",
            "crates/theory/tests/published/router.rs::section_7d_error_stays_below_15_percent_at_40_percent_buffer",
            "crates/theory/src/router/sensitivity.rs::equation_20_equals_equation_19_and_is_independent_of_f_and_a",
        ],
    ),
    yes(
        ("VII-D", "too small a buffer costs more than too large a one"),
        ("9.6 against 1.3 % for L at b = 1, 0.4 and 1.4 times", ""),
        &[
            "router-fig19",
            "crates/theory/src/router/sensitivity.rs::an_undersized_buffer_costs_more_than_an_oversized_one",
        ],
    ),
];
