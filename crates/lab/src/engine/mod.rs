//! The lab engine: runs a scenario on this machine's kernel.

mod application;
mod bottleneck;
mod memory;
mod outcome;
mod rehearsal;
mod stage;
mod target;

use std::path::Path;

use serde::{Deserialize, Serialize};
use sweetspot_linux::sysctl;
use sweetspot_scenario::{Engine, EngineError, EngineResult, Outcome, Recorder, Sample, Scenario};
use sweetspot_units::Duration;

use crate::error::Doing;
use crate::plan::{LabPlan, congestion_controls, refusals};
use crate::{Certificate, LabError, isolated, scratch};

/// An engine that runs scenarios on this machine's kernel, across an emulated path.
///
/// The calling process must be single-threaded.
#[derive(Debug, Clone, Copy, Default)]
pub struct Lab;

/// The engine's name, as in `--engine`.
const NAME: &str = "lab";

/// The result of a run: its outcome, the emulator's certificate and the time series.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LabRun {
    /// The outcome, in the form common to all engines.
    pub outcome: Outcome,
    /// The emulator's certificate.
    pub certificate: Certificate,
    /// The transfers' time series.
    pub series: Vec<LabSeriesRow>,
}

/// A sample of a transfer, about every 50 ms.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LabSeriesRow {
    /// Seconds since the start of the run.
    pub at_s: f64,
    /// The transfer's index, from 0.
    pub transfer: usize,
    /// Congestion window, bytes.
    pub cwnd_bytes: u64,
    /// Advertised window, bytes.
    pub window_bytes: u64,
    /// Content acknowledged since the transfer started, bytes.
    pub acked_bytes: u64,
    /// Packets queued at the bottleneck.
    pub queue_packets: u64,
    /// Packets dropped at the bottleneck so far.
    pub dropped_packets: u64,
    /// Bytes carried by the bottleneck so far.
    pub carried_bytes: u64,
}

impl Lab {
    /// Runs `scenario` in real time.
    ///
    /// # Errors
    /// If this machine cannot emulate the scenario accurately, or the run fails.
    pub fn run(&self, scenario: &Scenario) -> Result<LabRun, LabError> {
        self.run_in(scenario, &scratch::place())
    }

    /// Runs `scenario` in real time and reports the elapsed time to `progress` several times a second. `progress` runs in a
    /// separate process, which ends with the run.
    ///
    /// # Errors
    /// Like [`Lab::run`].
    pub fn run_watched(
        &self,
        scenario: &Scenario,
        progress: &mut dyn FnMut(Duration),
    ) -> Result<LabRun, LabError> {
        run_in(scenario, &scratch::place(), progress)
    }

    /// Runs `scenario` with its temporary files in `place`; they are removed when it returns.
    ///
    /// # Errors
    /// Like [`Lab::run`].
    pub fn run_in(&self, scenario: &Scenario, place: &Path) -> Result<LabRun, LabError> {
        run_in(scenario, place, &mut |_| {})
    }
}

fn run_in(
    scenario: &Scenario,
    place: &Path,
    progress: &mut dyn FnMut(Duration),
) -> Result<LabRun, LabError> {
    // Checked in the initial namespace, where the kernel can still load a module.
    for name in congestion_controls(scenario) {
        sysctl::offers_congestion_control(name).doing("ask for a congestion control")?;
    }
    let controls =
        sysctl::available_congestion_controls().doing("read the kernel's congestion controls")?;
    let reasons = refusals(scenario, &controls);
    if !reasons.is_empty() {
        return Err(LabError::Refused(reasons.join("; ")));
    }
    let plan = LabPlan::new(scenario);
    // Created and removed in this process, which survives the isolated one.
    let scratch = scratch::make(place)
        .doing("make a directory for files; set TMPDIR to another directory")?;
    if let Some(reason) = isolated(|| rehearsal::rehearse(&plan))? {
        return Err(LabError::Refused(reason));
    }
    isolated(|| stage::run(scenario, &plan, scratch.path(), progress))
}

impl Engine for Lab {
    fn name(&self) -> &'static str {
        NAME
    }

    fn run(&self, scenario: &Scenario, recorder: &mut dyn Recorder) -> EngineResult {
        let finished = self.run(scenario).map_err(EngineError::from)?;
        finished.record(scenario, recorder);
        Ok(finished.outcome)
    }
}

impl LabRun {
    /// Passes the time series to `recorder`.
    pub fn record(&self, scenario: &Scenario, recorder: &mut dyn Recorder) {
        let Some(interval) = recorder.interval() else { return };
        let mut last: Vec<Option<&LabSeriesRow>> = vec![None; scenario.transfers.len()];
        for row in &self.series {
            let before = &mut last[row.transfer];
            // No finer than the rows: values between two rows are not interpolated.
            if before.is_none_or(|before| row.at_s >= before.at_s + interval.as_secs_f64()) {
                recorder.record(&sample(row, *before, scenario));
                *before = Some(row);
            }
        }
    }
}

fn sample(row: &LabSeriesRow, before: Option<&LabSeriesRow>, scenario: &Scenario) -> Sample {
    let used = |before: &LabSeriesRow| {
        let bits = row.carried_bytes.saturating_sub(before.carried_bytes) as f64 * 8.0;
        bits / (row.at_s - before.at_s) / scenario.path.narrow().rate.as_f64()
    };
    Sample {
        at_s: row.at_s,
        transfer: row.transfer,
        cwnd_packets: row.cwnd_bytes as f64 / scenario.path.packet.as_f64(),
        // A sender's series does not contain ssthresh.
        ssthresh_packets: f64::NAN,
        window_bytes: row.window_bytes,
        acked_bytes: row.acked_bytes,
        // It does not contain the RTT either.
        rtt_s: None,
        queue_packets: row.queue_packets,
        dropped_packets: row.dropped_packets,
        utilisation: before.map(used),
    }
}

impl From<LabError> for EngineError {
    fn from(error: LabError) -> EngineError {
        match error {
            LabError::Refused(reason) => EngineError::Unsupported { engine: NAME, reason },
            other => EngineError::Failed {
                engine: NAME,
                reason: other.to_string().trim_start_matches("lab: ").to_owned(),
            },
        }
    }
}
