//! Experiments on this machine's kernel. If it offers no namespaces, they are skipped with the
//! reason.

mod applications;
mod isolation;
mod scenarios;

use std::process::ExitCode;

use sweetspot_lab::{LabError, isolated};

/// A test with its name. Tests run one after the other, because the process must be
/// single-threaded.
type Law = (&'static str, fn());

const LAWS: &[Law] = &[
    (
        "a_window_of_half_a_bdp_carries_half_the_rate_at_most",
        scenarios::a_window_of_half_a_bdp_carries_half_the_rate_at_most,
    ),
    (
        "a_send_buffer_of_the_scenario_holds_the_sender_back",
        scenarios::a_send_buffer_of_the_scenario_holds_the_sender_back,
    ),
    (
        "a_slow_reader_sets_the_rate_and_the_window_closes",
        applications::a_slow_reader_sets_the_rate_and_the_window_closes,
    ),
    (
        "a_reader_that_stops_closes_the_window_and_opens_it_again",
        applications::a_reader_that_stops_closes_the_window_and_opens_it_again,
    ),
    ("a_paced_writer_sets_the_rate", applications::a_paced_writer_sets_the_rate),
    (
        "after_a_pause_slow_start_restarts_where_the_scenario_says_so",
        applications::after_a_pause_slow_start_restarts_where_the_scenario_says_so,
    ),
    ("every_kind_of_cross_traffic_crosses", scenarios::every_kind_of_cross_traffic_crosses),
    (
        "a_datagram_that_is_under_way_at_the_end_is_not_lost",
        scenarios::a_datagram_that_is_under_way_at_the_end_is_not_lost,
    ),
    (
        "a_path_that_changes_carries_what_it_has_left",
        scenarios::a_path_that_changes_carries_what_it_has_left,
    ),
    (
        "several_hops_each_way_and_a_trace_are_run",
        scenarios::several_hops_each_way_and_a_trace_are_run,
    ),
    ("what_the_machine_lacks_is_refused", scenarios::what_the_machine_lacks_is_refused),
    ("nothing_stays_behind", scenarios::nothing_stays_behind),
    ("an_error_inside_comes_back_in_its_own_words", isolation::an_error_inside_comes_back),
];

fn main() -> ExitCode {
    // Like libtest: the first argument that is not a flag selects tests by name.
    let name_filter = std::env::args().skip(1).find(|a| !a.starts_with('-')).unwrap_or_default();
    match isolated(|| Ok(())) {
        Err(LabError::Isolation(error)) => {
            sweetspot_testing::skipped(format!("all laws of the lab: {error}"));
            return ExitCode::SUCCESS;
        }
        other => other.unwrap(),
    }
    let mut failed = 0;
    for (name, law) in LAWS.iter().filter(|(name, _)| name.contains(&name_filter)) {
        let held = std::panic::catch_unwind(law).is_ok();
        println!("test {name} ... {}", if held { "ok" } else { "FAILED" });
        failed += usize::from(!held);
    }
    println!("test result: {failed} failed");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
