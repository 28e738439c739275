use serde_json::Value;
use sweetspot_scenario::Outcome;
use thiserror::Error;

use super::search::SearchFile;
use crate::csv::CsvError;
use crate::outcome::DemoOutcome;
use crate::run_file::{RunFile, read_run};
use crate::series_row::SeriesRow;
use crate::sweep::{SWEEP_FORMAT, SweepFile};

/// The content of a file of results.
#[derive(Debug, Clone, PartialEq)]
pub enum ResultFile {
    /// Outputs of `run --json` or `run --out`.
    Runs(Vec<RunFile>),
    /// Output of `sweep --out FILE.json`.
    Sweep(SweepFile),
    /// Output of `sweep --find-best --out FILE.json`.
    Search(SearchFile),
    /// A demonstration's outcome.json.
    Demo(DemoOutcome),
    /// A time series (`run --series`, `send --series`, `serve --series`).
    Series(SeriesFile),
}

/// The rows of a time series.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SeriesFile {
    /// The version of Sweetspot that wrote it, if noted in the file.
    pub version: Option<String>,
    /// Samples and events in order of time.
    pub rows: Vec<SeriesRow>,
}

/// The reason why a file cannot be shown.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ReadError {
    /// Not JSON.
    #[error(
        "it is neither JSON nor lines of JSON; give the outcome of a run \
         or of a demo, the results of a sweep, or a time series"
    )]
    NoJson,
    /// Truncated or damaged JSON.
    #[error("it begins like JSON but cannot be read ({0}); make it again")]
    DamagedJson(String),
    /// JSON that is not a result.
    #[error(
        "it is JSON that no report shows; give the outcome of a run or of a demo, the results \
         of a sweep, or a time series"
    )]
    Alien,
    /// The output of `measure`, which draws its own page.
    #[error("it is a measured path; `sweetspot measure --html FILE` draws one")]
    MeasuredPath,
    /// A result in a format that this version cannot read.
    #[error(
        "it is a {kind} of sweetspot {theirs}, which sweetspot {ours} cannot read ({reason}); \
         make it again, or use that version"
    )]
    OtherVersion {
        /// The presumed kind of result.
        kind: &'static str,
        /// The version that wrote it.
        theirs: String,
        /// This version.
        ours: String,
        /// The missing or different part.
        reason: String,
    },
    /// A file that is neither Parquet nor text.
    #[error("expected a file of results: JSON, CSV or Parquet")]
    NoText,
    /// A damaged Parquet file.
    #[error("it begins like a Parquet file but cannot be read ({0}); make it again")]
    Parquet(String),
    /// A damaged CSV file.
    #[error("{0}")]
    Csv(#[from] CsvError),
    /// A table that is not a result.
    #[error(
        "it is a table, but not a result of sweetspot; give a time series or the results of a sweep"
    )]
    AlienColumns,
    /// A log of events without samples, such as the output of `tune --events`.
    #[error(
        "it has events but no samples, so there is nothing to draw over time; watch events of tune with \
         sweetspot ui --watch FILE, and record samples with --series"
    )]
    OnlyEvents,
    /// An empty file.
    #[error("it is empty: the command that writes it has not finished; run that again")]
    Empty,
}

impl ResultFile {
    /// The versions of Sweetspot that wrote the results.
    pub fn versions(&self) -> Vec<&str> {
        let mut versions: Vec<&str> = match self {
            ResultFile::Runs(runs) => runs.iter().map(|run| run.outcome.version.as_str()).collect(),
            ResultFile::Sweep(sweep) => {
                Some(sweep.version.as_str()).filter(|known| !known.is_empty()).into_iter().collect()
            }
            ResultFile::Demo(demo) => vec![&demo.version],
            ResultFile::Search(_) => Vec::new(),
            ResultFile::Series(series) => series.version.as_deref().into_iter().collect(),
        };
        versions.dedup();
        versions
    }
}

/// Parses a file of results; `ours` is this version of Sweetspot.
pub fn read(text: &str, ours: &str) -> Result<ResultFile, ReadError> {
    if text.trim().is_empty() {
        return Err(ReadError::Empty);
    }
    let found = match serde_json::from_str::<Value>(text) {
        Ok(value) => one(value, ours),
        Err(error) => lines(text, ours).unwrap_or_else(|| {
            // A lone `[` also begins a table in TOML.
            let text = text.trim_start();
            let begun = text.strip_prefix('[').unwrap_or(text).trim_start();
            Err(match begun.starts_with('{') {
                true => ReadError::DamagedJson(error.to_string()),
                false => ReadError::NoJson,
            })
        }),
    }?;
    match &found {
        ResultFile::Series(series) if series.rows.iter().all(|row| row.event.is_some()) => {
            Err(ReadError::OnlyEvents)
        }
        _ => Ok(found),
    }
}

/// Interprets a file that is a single JSON value.
fn one(value: Value, ours: &str) -> Result<ResultFile, ReadError> {
    let version = value["version"].as_str().unwrap_or("of unknown version").to_owned();
    let other = |kind, reason: String| ReadError::OtherVersion {
        kind,
        theirs: version.clone(),
        ours: ours.to_owned(),
        reason,
    };
    let has = |key: &str| value.get(key).is_some();
    if let Some(format) = value.get("sweetspot_sweep") {
        if *format != SWEEP_FORMAT {
            return Err(other("sweep", format!("its format is {format}, not {SWEEP_FORMAT}")));
        }
        let sweep = serde_json::from_value(value);
        return sweep.map(ResultFile::Sweep).map_err(|error| other("sweep", error.to_string()));
    }
    if has("mft_bps") {
        let search = serde_json::from_value(value);
        return search.map(ResultFile::Search).map_err(|error| other("search", error.to_string()));
    }
    if has("variants") {
        let demo = serde_json::from_value(value);
        return demo
            .map(ResultFile::Demo)
            .map_err(|error| other("demonstration", error.to_string()));
    }
    if has("transfers") && has("engine") {
        return read_run(value)
            .map(|run| ResultFile::Runs(vec![run]))
            .map_err(|error| other("run", error.to_string()));
    }
    if let Value::Array(entries) = value {
        let runs: Result<Vec<ResultFile>, ReadError> =
            entries.into_iter().map(|entry| one(entry, ours)).collect();
        return joined(runs?).ok_or(ReadError::Alien);
    }
    if has("t_s") {
        let row = serde_json::from_value(value).map_err(|_| ReadError::Alien)?;
        return Ok(ResultFile::Series(SeriesFile { version: None, rows: vec![row] }));
    }
    Err(if has("round_trip") && has("directions") {
        ReadError::MeasuredPath
    } else {
        ReadError::Alien
    })
}

/// Interprets a file with one JSON object per line; `None` if it has another form. A partial last
/// line, left by a killed program, is skipped.
fn lines(text: &str, ours: &str) -> Option<Result<ResultFile, ReadError>> {
    let mut findings = Vec::new();
    let mut lines = text.lines().filter(|line| !line.trim().is_empty()).peekable();
    while let Some(line) = lines.next() {
        match serde_json::from_str::<Value>(line) {
            Ok(value) if value.get("outcomes").is_some() => {
                let outcomes: Result<Vec<Outcome>, _> =
                    serde_json::from_value(value["outcomes"].clone());
                let runs = outcomes.map(|outcomes| outcomes.into_iter().map(RunFile::alone));
                let runs = runs.map(|runs| ResultFile::Runs(runs.collect()));
                findings.push(runs.map_err(|_| ReadError::Alien));
            }
            Ok(value) => findings.push(one(value, ours)),
            Err(_) if lines.peek().is_none() && !findings.is_empty() => break,
            Err(_) => return None,
        }
    }
    let findings: Result<Vec<ResultFile>, ReadError> = findings.into_iter().collect();
    Some(findings.and_then(|findings| joined(findings).ok_or(ReadError::Alien)))
}

/// Joins several results of the same kind.
fn joined(findings: Vec<ResultFile>) -> Option<ResultFile> {
    let mut findings = findings.into_iter();
    let first = findings.next()?;
    findings.try_fold(first, |sum, next| match (sum, next) {
        (ResultFile::Runs(mut sum), ResultFile::Runs(next)) => {
            sum.extend(next);
            Some(ResultFile::Runs(sum))
        }
        (ResultFile::Series(mut sum), ResultFile::Series(next)) => {
            sum.rows.extend(next.rows);
            Some(ResultFile::Series(sum))
        }
        _ => None,
    })
}
