//! The search for the best window, advice, the page of results, and the diagnosis of captured connections: the verbs `mft`,
//! `advise`, `report` and `diagnose` without a command line.

use std::io::Cursor;
use std::str::FromStr;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use sweetspot_advise::router::{Favour, Mix, Parameters, RouterQuestion};
use sweetspot_advise::window::WindowQuestion;
use sweetspot_diagnose::report::read as read_capture;
use sweetspot_experiment::window::{seeds, try_windows};
use sweetspot_experiment::{SearchBounds, Spread, Workers, find_mft};
use sweetspot_report::{ResultFile, Theme, read_file, report_page, sheets, svg_file};
use sweetspot_sim::Simulator;

use crate::scenario::{EngineError, Scenario};

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// A window, its goodput in bit/s, and whether it was free of packet loss.
type Trial = (u64, f64, bool);

/// The window, in packets, at which the first transfer is fastest, its goodput, and every window tried. Releases the GIL during
/// the search.
#[pyfunction]
pub fn mft(
    py: Python<'_>,
    scenario: &Bound<'_, Scenario>,
    seeds: u64,
    tolerance: f64,
    workers: usize,
) -> PyResult<(u64, f64, Vec<Trial>)> {
    let scenario = scenario.get().inner.clone();
    let found = py.detach(|| {
        let bounds = SearchBounds { tolerance, ..SearchBounds::around(&scenario) };
        find_mft(&Simulator, &scenario, bounds, seeds, Workers::new(workers))
    });
    let found = found.map_err(|error| EngineError::new_err(error.to_string()))?;
    let trials = found.trials.iter().map(|t| (t.window, t.rate_bps, t.lossless)).collect();
    Ok((found.window, found.rate_bps, trials))
}

/// A path, as strings with units: rate, RTT, buffer, cross traffic, loss, congestion control, MTU.
#[derive(FromPyObject)]
pub struct WindowPath {
    rate: String,
    rtt: String,
    buffer: Option<String>,
    cross: Option<String>,
    loss: Option<String>,
    congestion: String,
    mtu: String,
    kernel: String,
}

/// The report of ``sweetspot advise window``, in words and as JSON. ``simulate``: whether to try windows in the simulator if no
/// closed form gives the best one.
#[pyfunction]
pub fn advise_window(
    py: Python<'_>,
    path: WindowPath,
    simulate: bool,
    workers: usize,
) -> PyResult<(String, String)> {
    let question = WindowQuestion {
        rate: value("rate", &path.rate)?,
        rtt: value("rtt", &path.rtt)?,
        buffer: optional("buffer", path.buffer.as_ref())?,
        cross: optional("cross", path.cross.as_ref())?,
        loss: optional("loss", path.loss.as_ref())?,
        congestion: value("congestion", &path.congestion)?,
        mtu: value("mtu", &path.mtu)?,
        kernel: value("kernel", &path.kernel)?,
    };
    let mut advice = sweetspot_advise::window::advise(&question).map_err(bad)?;
    if let Some(windows) = advice.windows_to_try().filter(|_| simulate) {
        let workers = Workers::new(workers);
        let seeds = seeds(&question, windows.len());
        let tried = py.detach(|| try_windows(&Simulator, &question, &windows, seeds, workers));
        let tried = tried.map_err(|error| EngineError::new_err(error.to_string()))?;
        advice = advice.decided_by(tried).map_err(bad)?;
    }
    Ok((advice.text(false, 80), advice.json().to_string()))
}

/// A link, as strings with units.
#[derive(FromPyObject)]
pub struct RouterLink {
    rate: String,
    rtt: String,
    input_rate: String,
    inputs: Option<u64>,
    flows: Option<u64>,
    load: Option<f64>,
    size_mean: Option<String>,
    mix: String,
    favour: Option<String>,
    available: Option<String>,
    packet: String,
}

/// The report of ``sweetspot advise router --verify none``, in words and as JSON.
#[pyfunction]
pub fn advise_router(link: RouterLink) -> PyResult<(String, String)> {
    let mix = match link.mix.as_str() {
        "short" => Mix::Short,
        "bulk" => Mix::Bulk,
        other => return Err(PyValueError::new_err(format!("mix: {other} is not short or bulk"))),
    };
    let packet = value("packet", &link.packet)?;
    let favour = optional("favour", link.favour.as_ref())?;
    let question = RouterQuestion {
        rate: value("rate", &link.rate)?,
        rtt: value("rtt", &link.rtt)?,
        input_rate: value("input_rate", &link.input_rate)?,
        inputs: link.inputs,
        flows: link.flows,
        load: link.load,
        size_mean: optional("size_mean", link.size_mean.as_ref())?,
        mix,
        favour: Favour::Throughput,
        available: optional("available", link.available.as_ref())?,
        packet,
        parameters: Parameters::default(),
        measurement: None,
    };
    let question = question.with_favour(favour);
    let advice = sweetspot_advise::router::advise(&question).map_err(bad)?;
    Ok((advice.text(false, 80), advice.json().to_string()))
}

/// The page for files of results, each with its name, and the page's pictures as SVG, each with its name.
#[pyfunction]
pub fn report(
    py: Python<'_>,
    files: Vec<(String, Vec<u8>)>,
    printed: bool,
) -> PyResult<(String, Vec<(String, String)>)> {
    let theme = if printed { Theme::Print } else { Theme::Screen };
    py.detach(|| {
        let mut findings: Vec<(String, ResultFile)> = Vec::new();
        for (name, bytes) in files {
            let file = read_file(&name, bytes, VERSION)
                .map_err(|error| PyValueError::new_err(format!("{name}: {error}")))?;
            findings.push((name, file));
        }
        let sheets = sheets(&findings);
        let names: Vec<&str> = findings.iter().map(|(name, _)| name.as_str()).collect();
        let page = report_page(&names.join(", "), &sheets, &[], VERSION, theme);
        let mut pictures = Vec::new();
        for sheet in &sheets {
            for (number, plot) in sheet.plots.iter().enumerate() {
                let svg = svg_file(&sheet.title, std::slice::from_ref(plot), theme);
                pictures.push((format!("{}-{}.svg", sheet.name, number + 1), svg));
            }
        }
        Ok((page, pictures))
    })
}

/// The report of ``sweetspot diagnose --json`` for an uncompressed capture.
#[pyfunction]
pub fn diagnose(py: Python<'_>, capture: Vec<u8>, flows: usize) -> PyResult<String> {
    let report = py.detach(|| read_capture(&mut Cursor::new(capture), flows)).map_err(bad)?;
    serde_json::to_string(&report).map_err(bad)
}

/// Half the width of the 95 % confidence interval of the mean of independent ``values``, by Student's t; None for fewer than
/// two values.
#[pyfunction]
pub fn half_interval(values: Vec<f64>) -> Option<f64> {
    Spread::of(&values)?.half_width
}

/// Parses the quantity in `text`; an error names the argument.
pub(crate) fn value<T: FromStr<Err: std::fmt::Display>>(argument: &str, text: &str) -> PyResult<T> {
    text.parse().map_err(|error| PyValueError::new_err(format!("{argument}: {error}")))
}

pub(crate) fn optional<T: FromStr<Err: std::fmt::Display>>(
    argument: &str,
    text: Option<&String>,
) -> PyResult<Option<T>> {
    text.map(|text| value(argument, text)).transpose()
}

pub(crate) fn bad(error: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}
