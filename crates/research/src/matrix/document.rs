use core::fmt::Write;

use super::{MATRIX, MatrixResult, MatrixTest, VARIANTS};
use crate::markdown::MarkdownTable;
use crate::page_abstract::Abstract;
use crate::welch::welch;
use sweetspot_experiment::plot::{Axis, Origin, Plot};
use sweetspot_statistics::{mean, squared_error};

const ABSTRACT: Abstract<'_> = Abstract {
    question: "how do Sweetspot's windows perform in published tests of congestion control, and how much do they cost others?",
    method: "tests of the BBR team and of the Common TCP Evaluation Suite in the simulator, with and without `sobas`.",
    result: "the first table counts gains and losses relative to plain CUBIC, for the flows under test and for \
        other flows.",
    limitation: "simulated, with BBR version 1 and no ECN.",
    command: "`sweetspot-research bench matrix`",
};

const NOTES: &str = include_str!("../../data/matrix_notes.md");

/// A difference from the first variant counts as a win or a loss if it exceeds this fraction of the first variant's value and the
/// limit below, in standard errors.
const NOTABLE: f64 = 0.05;
const SIGNIFICANT: f64 = 2.0;

/// The document's text other than the numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MatrixInfo {
    /// The command that regenerates the document.
    pub command: String,
    /// The machine, its kernel and the date.
    pub machine: String,
    /// The page of pictures, relative to the document.
    pub page: String,
}

/// Throughput and its cost to others, as a Markdown document.
pub fn matrix_document(results: &[MatrixResult], info: &MatrixInfo) -> String {
    let mut text = format!(
        "# The published matrix\n\n{ABSTRACT}Written by `{}` on {}; do not edit. Pictures: [one page]({}).\n\n{NOTES}\n",
        info.command, info.machine, info.page
    );
    let _ =
        write!(text, "## Wins and losses against {}\n\n{}", VARIANTS[0].name, verdicts(results));
    for test in &MATRIX {
        let _ = write!(
            text,
            "\n## {}\n\n{}. Source: {}; scenarios/matrix/{}.toml.\n\n{}",
            test.name,
            test.title,
            test.source,
            test.name,
            table(test, results)
        );
    }
    text
}

fn of<'a>(
    results: &'a [MatrixResult],
    test: &str,
    case: &str,
    variant: &str,
) -> Option<&'a MatrixResult> {
    results.iter().find(|r| r.test == test && r.case == case && r.variant == variant)
}

/// For each test, the number of cases in which a variant's flows got notably more or less than the first variant's, and the cost
/// to other flows.
fn verdicts(results: &[MatrixResult]) -> MarkdownTable {
    let mut table = MarkdownTable::new(&[
        "test",
        "variant",
        "cases",
        "more goodput",
        "less",
        "others lose",
        "others gain",
        "less queue",
        "more queue",
    ]);
    for test in &MATRIX {
        for variant in &VARIANTS[1..] {
            let pairs: Vec<(&MatrixResult, &MatrixResult)> = test
                .cases
                .iter()
                .filter_map(|case| {
                    let theirs = of(results, test.name, case.name, VARIANTS[0].name)?;
                    Some((of(results, test.name, case.name, variant.name)?, theirs))
                })
                .collect();
            let count = |of: &dyn Fn(&MatrixResult) -> Vec<f64>, more: bool| {
                let counts = |(ours, theirs): &&(&MatrixResult, &MatrixResult)| {
                    is_notable(&of(ours), &of(theirs), more)
                };
                pairs.iter().filter(counts).count().to_string()
            };
            let tested = |r: &MatrixResult| r.tested_runs_bps.clone();
            let others = |r: &MatrixResult| r.others_runs_bps.clone();
            let queue = |r: &MatrixResult| vec![r.queue_delay_s.max(1e-6)];
            table.row(&[
                test.name.to_owned(),
                variant.name.to_owned(),
                pairs.len().to_string(),
                count(&tested, true),
                count(&tested, false),
                count(&others, false),
                count(&others, true),
                count(&queue, false),
                count(&queue, true),
            ]);
        }
    }
    table
}

/// Whether the mean of `ours` is notably higher (or, without `more`, lower) than the mean of `theirs`, beyond chance. False
/// without runs.
fn is_notable(ours: &[f64], theirs: &[f64], more: bool) -> bool {
    let Some(ratio) = mean(ours).zip(mean(theirs)).map(|(ours, theirs)| ours / theirs) else {
        return false;
    };
    let notable = if more { ratio > 1.0 + NOTABLE } else { ratio < 1.0 - NOTABLE };
    notable && welch(ours, theirs).is_none_or(|t| t.abs() > SIGNIFICANT)
}

fn table(test: &MatrixTest, results: &[MatrixResult]) -> MarkdownTable {
    let mut table = MarkdownTable::new(&[
        test.x,
        "variant",
        "runs",
        "goodput Mbit/s",
        "error",
        "others Mbit/s",
        "Jain",
        "sent again %",
        "mean RTT ms",
        "queue ms",
    ]);
    for case in test.cases {
        for variant in &VARIANTS {
            let Some(result) = of(results, test.name, case.name, variant.name) else { continue };
            table.row(&[
                case.name.to_owned(),
                variant.name.to_owned(),
                result.tested_runs_bps.len().to_string(),
                format!("{:.1}", result.tested_bps() / 1e6),
                squared_error(&result.tested_runs_bps)
                    .map_or("-".to_owned(), |squared| format!("{:.1}", squared.sqrt() / 1e6)),
                result.others_bps().map_or("-".to_owned(), |bps| format!("{:.1}", bps / 1e6)),
                format!("{:.2}", result.fairness),
                format!("{:.3}", 100.0 * result.retransmitted),
                format!("{:.1}", 1e3 * result.rtt_s),
                format!("{:.2}", 1e3 * result.queue_delay_s),
            ]);
        }
    }
    table
}

/// For each test: goodput of the flows under test, goodput of other flows, if any, and the mean RTT.
pub fn matrix_pictures(results: &[MatrixResult]) -> Vec<Plot> {
    let mut plots = Vec::new();
    for test in &MATRIX {
        let goodput = |r: &MatrixResult| Some(r.tested_bps() / 1e6);
        plots.push(plot(test, results, "goodput", "Mbit/s", &goodput));
        let others = |r: &MatrixResult| r.others_bps().map(|bps| bps / 1e6);
        plots.push(plot(test, results, "what others get", "Mbit/s", &others));
        plots.push(plot(test, results, "mean round trip", "ms", &|r| Some(1e3 * r.rtt_s)));
    }
    plots.retain(|plot| !plot.curves.is_empty());
    plots
}

fn plot(
    test: &MatrixTest,
    results: &[MatrixResult],
    what: &str,
    unit: &str,
    value: &dyn Fn(&MatrixResult) -> Option<f64>,
) -> Plot {
    let x = Axis::new(test.x);
    let x = if test.logarithmic { x.logarithmic() } else { x };
    let mut plot = Plot::new(format!("{}: {what}", test.name), x, Axis::new(unit));
    for (group, variant) in VARIANTS.iter().enumerate() {
        let points: Vec<(f64, f64)> = test
            .cases
            .iter()
            .filter_map(|case| {
                Some((case.x, value(of(results, test.name, case.name, variant.name)?)?))
            })
            .collect();
        if !points.is_empty() {
            plot.curve(variant.name, Origin::Sim, group, points);
        }
    }
    plot
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_is_notable_beyond_5_percent_and_two_standard_errors() {
        // Means 10 and 9, each with a standard error of 0.1 or 2.
        assert!(is_notable(&[8.9, 9.1], &[9.9, 10.1], false));
        assert!(!is_notable(&[7.0, 11.0], &[8.0, 12.0], false));
        // 3 % less is not notable, however certain.
        assert!(!is_notable(&[9.7, 9.7], &[10.0, 10.0], false));
        // A single run has no error estimate; no runs have no mean.
        assert!(is_notable(&[11.0], &[10.0], true));
        assert!(!is_notable(&[], &[], true));
    }
}
