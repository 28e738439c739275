use serde::Serialize;
use sweetspot_experiment::plot::{Plot, Table};
use sweetspot_scenario::Outcome;
use sweetspot_statistics::Sorted;

use super::file::ResultFile;
use super::over_time::Recorded;
use super::{comparison, engines, over_time, sweeps};
use crate::run_file::RunFile;

/// A part of the page.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Sheet {
    /// The name of its files, e.g. `sweep-goodput`.
    pub name: String,
    /// Its heading.
    pub title: String,
    /// The sheet's subject.
    pub about: String,
    /// Pictures.
    pub plots: Vec<Plot>,
    /// Tables.
    pub tables: Vec<Table>,
}

/// The sheets for the files in `findings`.
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
            ResultFile::Demo(demo) => sheets.extend(over_time::demonstration(i, name, demo)),
            ResultFile::Series(_) => {}
        }
    }
    let series: Vec<Recorded<'_>> = findings
        .iter()
        .filter_map(|(name, finding)| match finding {
            ResultFile::Series(series) => {
                Some(Recorded { name: name.clone(), rows: &series.rows, path: None })
            }
            _ => None,
        })
        .collect();
    if !series.is_empty() {
        sheets.push(over_time::series(&series, None));
    }
    sheets
}

/// Runs over time, where their files have time series, and in tables.
fn of_runs(runs: &[(&str, &RunFile)]) -> Vec<Sheet> {
    if runs.is_empty() {
        return Vec::new();
    }
    let outcomes: Vec<&Outcome> = runs.iter().map(|(_, run)| &run.outcome).collect();
    let with_series = runs.iter().filter(|(_, run)| !run.series.is_empty());
    let recorded: Vec<Recorded<'_>> = with_series
        .map(|(name, run)| Recorded { name: (*name).to_owned(), rows: &run.series, path: run.path })
        .collect();
    let numbers = engines::sheet(&outcomes, recorded.is_empty());
    match (recorded.is_empty(), outcomes.as_slice()) {
        (true, _) => vec![numbers],
        (false, [_]) => {
            let mut sheet = over_time::series(&recorded, Some(numbers.title));
            sheet.tables = numbers.tables;
            vec![sheet]
        }
        (false, _) => vec![over_time::series(&recorded, None), numbers],
    }
}

/// `plot` with an axis across as long as its curves: distributions have no zero to start from.
pub fn spread_out(mut plot: Plot) -> Plot {
    let across = plot.curves.iter().flat_map(|curve| curve.points.iter().map(|point| point.0));
    let (low, high) =
        across.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| (low.min(x), high.max(x)));
    if low < high {
        let room = 0.04 * (high - low);
        plot.x = plot.x.between(low - room, high + room);
    }
    plot
}

/// The cumulative distribution of the finite ones among `values`.
pub fn distribution(values: impl IntoIterator<Item = f64>) -> Vec<(f64, f64)> {
    values.into_iter().filter(|value| value.is_finite()).collect::<Sorted>().distribution()
}

/// The title of a picture: the quantity of an axis without its unit, and how it is shown.
pub fn picture_title(label: &str, how: &str) -> String {
    let quantity = label.split(',').next().unwrap_or(label);
    let mut letters = quantity.chars();
    let first = letters.next().map_or(String::new(), |letter| letter.to_uppercase().to_string());
    format!("{first}{}{how}", letters.as_str())
}

/// How a cumulative distribution is shown.
pub const DISTRIBUTION: &str = ": share of values below";
