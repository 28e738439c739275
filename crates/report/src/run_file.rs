//! The file of one run: its outcome, its path and its time series.

use std::collections::BTreeMap;

use serde::Serialize;
use serde::de::Error as _;
use serde_json::Value;
use sweetspot_scenario::{Outcome, Scenario};

use crate::columns::{Column, Columns};
use crate::series_row::{SeriesRow, rows_of};
use crate::sweep::SweepPath;

/// A run, and the further contents of its file.
#[derive(Debug, Clone, PartialEq)]
pub struct RunFile {
    /// The result of the run.
    pub outcome: Outcome,
    /// The path of the run, if the file has it.
    pub path: Option<SweepPath>,
    /// The time series, if the file has it.
    pub series: Vec<SeriesRow>,
}

impl RunFile {
    /// A run with only its `outcome`, without path and series.
    pub fn alone(outcome: Outcome) -> RunFile {
        RunFile { outcome, path: None, series: Vec::new() }
    }
}

/// Members of the file in addition to the output of `run --json`.
const PATH: &str = "path";
const SERIES: &str = "series";

/// The content of a run's file: `finished`, the output of `run --json`, with the path of `scenario` as `path` and the time series
/// as `series`, with an array for each column.
///
/// # Errors
/// If `finished` cannot be serialized.
///
/// # Panics
/// If `finished` is not a JSON object.
pub fn run_file(
    finished: &impl Serialize,
    scenario: &Scenario,
    series: Option<&Columns>,
) -> serde_json::Result<Value> {
    let mut file = serde_json::to_value(finished)?;
    file[PATH] = serde_json::to_value(SweepPath::of(scenario))?;
    if let Some(columns) = series {
        let arrays = columns.columns().iter().map(|(name, column)| (name.clone(), array(column)));
        file[SERIES] = Value::Object(arrays.collect());
    }
    Ok(file)
}

fn array(column: &Column) -> Value {
    match column {
        Column::Real(values) => values.iter().map(|value| Value::from(*value)).collect(),
        Column::Integer(values) => values.iter().map(|value| Value::from(*value)).collect(),
        Column::Text(values) => values.iter().map(|value| Value::from(value.clone())).collect(),
    }
}

/// Reads the output of [`run_file`], or only an outcome.
pub fn read_run(mut value: Value) -> serde_json::Result<RunFile> {
    let mut member = |name: &str| value.get_mut(name).map(Value::take);
    let path = member(PATH).map(serde_json::from_value).transpose()?;
    let series = match member(SERIES) {
        None => Vec::new(),
        Some(series) => rows_of(&columns(serde_json::from_value(series)?)?),
    };
    Ok(RunFile { outcome: serde_json::from_value(value)?, path, series })
}

fn columns(arrays: BTreeMap<String, Vec<Value>>) -> serde_json::Result<Columns> {
    let rows = arrays.values().next().map_or(0, Vec::len);
    let mut columns = Columns::default();
    for (name, values) in arrays {
        if values.len() != rows {
            let words = format!("its series has {} values of {name}, not {rows}", values.len());
            return Err(serde_json::Error::custom(words));
        }
        let column = if values.iter().any(Value::is_string) {
            let text = |value: Value| value.as_str().map(str::to_owned);
            Column::Text(values.into_iter().map(text).collect())
        } else if values.iter().all(|value| value.is_null() || value.is_i64()) {
            Column::Integer(values.iter().map(Value::as_i64).collect())
        } else {
            Column::Real(values.iter().map(Value::as_f64).collect())
        };
        columns.push(&name, column);
    }
    Ok(columns)
}
