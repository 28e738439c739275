//! Invariants of the emulator on the real kernel, each in its own namespaces.
//!
//! They need root or user namespaces. Without these they are skipped with a message.

mod laws;
mod leftovers;

use std::process::ExitCode;

use sweetspot_emulator::{IsolationError, isolate};

/// A law: an invariant, and the code that panics if it does not hold.
type Law = (&'static str, fn());

const INSIDE: &[Law] = &[
    (
        "a_flow_with_a_queue_of_its_own_does_not_wait_for_another",
        laws::a_flow_with_a_queue_of_its_own_does_not_wait_for_another,
    ),
    ("a_round_trip_takes_the_delay_of_both_ways", laws::a_round_trip_takes_the_delay_of_both_ways),
    ("a_burst_fills_the_buffer_and_no_more", laws::a_burst_fills_the_buffer_and_no_more),
    ("tcp_packets_stay_mtu_sized", laws::tcp_packets_stay_mtu_sized),
    ("only_rates_that_need_it_have_super_frames", laws::only_rates_that_need_it_have_super_frames),
    (
        "the_packets_of_a_super_frame_are_packets_of_their_own",
        laws::the_packets_of_a_super_frame_are_packets_of_their_own,
    ),
    (
        "packets_of_a_super_frame_are_dropped_one_by_one",
        laws::packets_of_a_super_frame_are_dropped_one_by_one,
    ),
    ("random_loss_is_counted_as_such", laws::random_loss_is_counted_as_such),
    ("each_direction_is_its_own", laws::each_direction_is_its_own),
    ("the_rate_can_change_midway", laws::the_rate_can_change_midway),
    (
        "a_policer_drops_what_its_bucket_does_not_hold",
        laws::a_policer_drops_what_its_bucket_does_not_hold,
    ),
    ("a_path_varies_as_it_is_told", laws::a_path_varies_as_it_is_told),
    ("an_aqm_marks_where_both_hosts_understand", laws::an_aqm_marks_where_both_hosts_understand),
    ("emulations_follow_one_another", laws::emulations_follow_one_another),
    (
        "host_pairs_share_the_bottleneck_and_have_round_trips_of_their_own",
        laws::host_pairs_share_the_bottleneck_and_have_round_trips_of_their_own,
    ),
    (
        "hops_follow_one_another_and_each_has_its_own_queue",
        laws::hops_follow_one_another_and_each_has_its_own_queue,
    ),
    (
        "a_host_pair_crosses_the_hops_that_it_names_alone",
        laws::a_host_pair_crosses_the_hops_that_it_names_alone,
    ),
    ("too_many_host_pairs_are_refused", laws::too_many_host_pairs_are_refused),
    ("commands_run_on_the_side_they_were_given_to", laws::commands_run_on_their_side),
    (
        "hosts_receive_on_other_processors_than_the_one_that_carries",
        laws::hosts_receive_on_other_processors_than_the_one_that_carries,
    ),
    ("a_missing_command_is_named", laws::a_missing_command_is_named),
    ("the_certificate_is_stable_json", laws::the_certificate_is_stable_json),
];

const OUTSIDE: &[Law] = &[
    ("the_worker_s_exit_code_comes_back", leftovers::the_worker_s_exit_code_comes_back),
    ("a_panic_inside_ends_inside", leftovers::a_panic_inside_ends_inside),
    ("processes_and_namespaces_are_gone", leftovers::processes_and_namespaces_are_gone),
];

fn main() -> ExitCode {
    // As in libtest: a filter for names; flags are for libtest and ignored here.
    let name_filter = std::env::args().skip(1).find(|a| !a.starts_with('-')).unwrap_or_default();
    match isolate(|| 0) {
        Err(error @ IsolationError::NoPermission { .. }) => {
            sweetspot_testing::skipped(format!("all laws of the emulator: {error}"));
            return ExitCode::SUCCESS;
        }
        other => assert_eq!(other.unwrap(), 0),
    }
    let mut failed = 0;
    let mut report = |name: &str, held: bool| {
        println!("test {name} ... {}", if held { "ok" } else { "FAILED" });
        failed += usize::from(!held);
    };
    for (name, law) in INSIDE.iter().filter(|(name, _)| name.contains(&name_filter)) {
        let code = isolate(|| {
            law();
            0
        });
        report(name, code.unwrap() == 0);
    }
    for (name, law) in OUTSIDE.iter().filter(|(name, _)| name.contains(&name_filter)) {
        report(name, std::panic::catch_unwind(law).is_ok());
    }
    println!("test result: {failed} failed");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
