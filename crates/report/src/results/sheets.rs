use sweetspot_scenario::Outcome;

use super::file::ResultFile;
use super::over_time::Recorded;
use super::sheet::Sheet;
use super::{comparison, engines, over_time, search, sweeps};
use crate::run_file::RunFile;

/// The sheets that show the files in `findings`.
pub fn sheets(findings: &[(String, ResultFile)]) -> Vec<Sheet> {
    let mut sheets: Vec<Sheet> = comparison::sheets(findings).into_iter().collect();
    let runs: Vec<(&str, &RunFile)> = findings
        .iter()
        .filter_map(|(name, finding)| match finding {
            ResultFile::Runs(runs) => Some(runs.iter().map(move |run| (name.as_str(), run))),
            _ => None,
        })
        .flatten()
        .collect();
    sheets.extend(of_runs(&runs));
    for (i, (name, finding)) in findings.iter().enumerate() {
        match finding {
            ResultFile::Runs(_) => {}
            ResultFile::Sweep(sweep) => sheets.extend(sweeps::sheets(i, name, sweep)),
            ResultFile::Search(found) => sheets.push(search::sheet(i, name, found)),
            ResultFile::Demo(demo) => sheets.extend(over_time::demonstration(i, name, demo)),
            ResultFile::Series(_) => {}
        }
    }
    let series: Vec<Recorded<'_>> = findings
        .iter()
        .filter_map(|(name, finding)| match finding {
            ResultFile::Series(series) => Some(Recorded {
                name: name.clone(),
                rows: &series.rows,
                path: None,
                sizings: Vec::new(),
            }),
            _ => None,
        })
        .collect();
    if !series.is_empty() {
        sheets.push(over_time::series(&series, None));
    }
    sheets
}

/// The sheets for runs: pictures over time if their files have time series, and tables.
fn of_runs(runs: &[(&str, &RunFile)]) -> Vec<Sheet> {
    if runs.is_empty() {
        return Vec::new();
    }
    let outcomes: Vec<&Outcome> = runs.iter().map(|(_, run)| &run.outcome).collect();
    let with_series = runs.iter().filter(|(_, run)| !run.series.is_empty());
    let recorded: Vec<Recorded<'_>> = with_series
        .map(|(name, run)| Recorded {
            name: (*name).to_owned(),
            rows: &run.series,
            path: run.path,
            sizings: run.outcome.transfers.iter().map(|each| each.sizing.as_str()).collect(),
        })
        .collect();
    let numbers = engines::sheet(&outcomes, recorded.is_empty());
    match (recorded.is_empty(), outcomes.as_slice()) {
        (true, _) => vec![numbers],
        (false, [_]) => {
            let mut sheet = over_time::series(&recorded, Some(numbers.title));
            sheet.tables = numbers.tables;
            vec![sheet]
        }
        (false, _) => vec![over_time::series(&recorded, Some(summary(runs))), numbers],
    }
}

/// The rate and RTT of the first transfer of each run, over the measured time.
fn summary(runs: &[(&str, &RunFile)]) -> String {
    /// Summaries of more runs do not fit into a title.
    const MAX: usize = 3;
    if runs.len() > MAX {
        return format!("{} runs over time", runs.len());
    }
    let each = runs.iter().filter_map(|(name, run)| {
        let first = run.outcome.transfers.first()?;
        let (mbit, ms) = (first.goodput_bps / 1e6, first.rtt_mean_s * 1e3);
        Some(format!("{name}, {}: {mbit:.2} Mbit/s at {ms:.1} ms", first.sizing))
    });
    each.collect::<Vec<_>>().join("; ")
}
