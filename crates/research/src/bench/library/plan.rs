use sweetspot_path::PathSpec;
use sweetspot_units::{Duration, Rate};

use super::example::Example;
use crate::bench::live::{Client, RunPlan};

/// Repetitions of each run. The number of a repetition seeds loss and jitter, identically for both sides.
pub const REPEATS: usize = 5;

/// The name of the sized runs, and their sizing policy.
pub const SIZED: (&str, &str) = ("sized", "sobas:live");
/// The name of the unsized runs. The library watches them without setting anything.
pub const ALONE: (&str, &str) = ("alone", "kernel");

/// The condition under which every example runs.
const MAIN: &str = "deep";

/// Conditions: name, path, length in seconds, and start of a competing flow.
const CONDITIONS: [(&str, &str, u64, Option<u64>); 5] = [
    (MAIN, "buffer=1MB", 10, None),
    ("small", "buffer=125kB", 10, None),
    ("loss", "buffer=1MB loss=0.01%", 10, None),
    ("jitter", "buffer=1MB jitter=4ms", 10, None),
    ("rival", "buffer=1MB", 15, Some(4)),
];

/// One run of an example.
pub struct LibraryPlan {
    pub run: RunPlan,
    pub example: Example,
    /// The sizing policy, in the example's syntax.
    pub sizing: &'static str,
}

/// All rows: condition, the servers' congestion control, and example. The first two examples run under all
/// conditions, the others under the main one.
pub fn rows() -> impl Iterator<Item = (&'static str, &'static str, Example)> {
    let (thorough, others) = Example::ALL.split_at(2);
    let conditions = ["cubic", "bbr"].into_iter().flat_map(move |congestion| {
        CONDITIONS.iter().flat_map(move |condition| {
            thorough.iter().map(move |example| (condition.0, congestion, *example))
        })
    });
    conditions.chain(others.iter().map(|example| (MAIN, "cubic", *example)))
}

/// All runs; the two sides of a repetition run one after the other.
pub fn plans() -> Vec<LibraryPlan> {
    let repeats =
        |row| (1..=REPEATS).flat_map(move |n| [ALONE, SIZED].map(|side| plan(row, side, n)));
    rows().flat_map(repeats).collect()
}

/// The name of a run.
pub fn name(
    (condition, congestion, example): (&str, &str, Example),
    side: &str,
    repeat: usize,
) -> String {
    format!("{condition}/{congestion}/{}/{side}/{repeat}", example.name())
}

fn plan(
    row: (&'static str, &'static str, Example),
    (side, sizing): (&str, &'static str),
    repeat: usize,
) -> LibraryPlan {
    let (condition, congestion, example) = row;
    let &(_, path, seconds, rival) =
        CONDITIONS.iter().find(|c| c.0 == condition).unwrap_or(&CONDITIONS[0]);
    let words = format!("rate=100Mbit/s rtt=40ms {path} seed={repeat}");
    // The paths are constants: `the_paths_can_be_read` checks that they parse.
    let path: PathSpec = words.parse().unwrap_or_else(|e| unreachable!("{words}: {e}"));
    let client = if example == Example::Receive { Client::Plain } else { Client::Curl(1) };
    let run = RunPlan {
        name: name(row, side, repeat),
        path,
        congestion,
        client,
        via: None,
        length: Duration::from_secs(seconds),
        changes: Vec::<(Duration, Rate)>::new(),
        rival: rival.map(Duration::from_secs),
    };
    LibraryPlan { run, example, sizing }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_parse_names_are_unique_and_sizings_alternate() {
        let all = plans();
        let names: std::collections::BTreeSet<_> = all.iter().map(|plan| &plan.run.name).collect();
        assert_eq!(names.len(), all.len());
        for pair in all.chunks(2) {
            assert_eq!([pair[0].sizing, pair[1].sizing], ["kernel", "sobas:live"]);
            assert_eq!(pair[0].run.path.seed, pair[1].run.path.seed);
        }
    }

    #[test]
    fn every_example_runs_under_the_main_condition() {
        for example in Example::ALL.iter().copied() {
            assert!(rows().any(|row| row == (MAIN, "cubic", example)), "{}", example.name());
        }
    }
}
