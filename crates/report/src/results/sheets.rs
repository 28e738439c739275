use serde::Serialize;
use sweetspot_scenario::Outcome;
use sweetspot_study::plot::{Plot, Table};

use super::file::ResultFile;
use super::{engines, over_time, sweeps};

/// A part of the page.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Sheet {
    /// The name of its files, e.g. `sweep-goodput`.
    pub name: String,
    /// Its heading.
    pub title: String,
    /// What is shown.
    pub about: String,
    /// Pictures.
    pub plots: Vec<Plot>,
    /// Tables.
    pub tables: Vec<Table>,
}

/// What the files named in `findings` have to show.
pub fn sheets(findings: &[(String, ResultFile)]) -> Vec<Sheet> {
    let mut sheets = Vec::new();
    let runs: Vec<&Outcome> = findings
        .iter()
        .filter_map(|(_, finding)| match finding {
            ResultFile::Runs(runs) => Some(runs),
            _ => None,
        })
        .flatten()
        .collect();
    if !runs.is_empty() {
        sheets.extend(engines::sheets(&runs));
    }
    for (i, (name, finding)) in findings.iter().enumerate() {
        match finding {
            ResultFile::Runs(_) => {}
            ResultFile::Sweep(sweep) => sheets.extend(sweeps::sheets(i, name, sweep)),
            ResultFile::Demo(demo) => sheets.extend(over_time::demonstration(i, name, demo)),
            ResultFile::Series(_) => {}
        }
    }
    let series: Vec<_> = findings
        .iter()
        .filter_map(|(name, finding)| match finding {
            ResultFile::Series(series) => Some((name.as_str(), series.rows.as_slice())),
            _ => None,
        })
        .collect();
    sheets.extend(over_time::series(&series));
    sheets
}

/// The share of `values` up to each of them: points of a cumulative distribution.
pub fn distribution(values: impl IntoIterator<Item = f64>) -> Vec<(f64, f64)> {
    let mut values: Vec<f64> = values.into_iter().filter(|value| value.is_finite()).collect();
    values.sort_by(f64::total_cmp);
    let count = values.len() as f64;
    values.into_iter().enumerate().map(|(i, value)| (value, (i + 1) as f64 / count)).collect()
}
