//! Measures one path.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sweetspot_emulator::Emulation;
use sweetspot_linux::clock;
use sweetspot_units::{Duration, Rate};

use super::cross::beside;
use super::plan::{CrossKind, PathPlan};

/// The true properties of a path, and the measured ones.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PathResult {
    /// Capacity, bit/s.
    pub rate_bps: f64,
    /// Two-way propagation, s.
    pub rtt_s: f64,
    /// Buffer, bytes.
    pub buffer_bytes: f64,
    /// Random loss, as a probability.
    pub loss: f64,
    /// Jitter in each direction, s.
    pub jitter_s: f64,
    /// The queue discipline.
    pub queue: String,
    /// Cross traffic: its kind, and the mean rate that it leaves available, bit/s; for TCP its rate before the
    /// measurement.
    pub cross: Option<String>,
    pub available_bps: f64,
    /// The output of `measure --json`.
    pub measured: Value,
    /// iperf3's throughput over one TCP connection, bit/s of payload.
    pub iperf3_bps: Option<f64>,
    /// Whether the emulator certified the run, and if not, why.
    pub trust: bool,
    pub reasons: Vec<String>,
}

const PORT: u16 = 7000;
/// Duration of the iperf3 run, in seconds.
const IPERF3_SECONDS: &str = "4";
/// Cross traffic starts this long before the measurement, and is measured in that time.
const SETTLING: Duration = Duration::from_secs(1);
const IDLE_TIME: Duration = Duration::from_secs(4);
const TICKET_TIMEOUT: Duration = Duration::from_secs(10);

/// A child process that is killed when dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may already have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Measures the path of `plan` from the far end to the near end with `program`.
pub fn run_plan(plan: &PathPlan, program: &Path, scratch: &Path) -> Result<PathResult, String> {
    let emulation = Emulation::start(&plan.path).map_err(|e| e.to_string())?;
    let finished = beside(plan.cross, emulation.near(), emulation.far(), || {
        let alone = alone(&emulation);
        Ok::<_, String>((measure(program, scratch, &emulation)?, iperf3(&emulation), alone))
    });
    let certificate = emulation.finish().map_err(|e| e.to_string())?;
    let (measured, iperf3_bps, alone) = finished.map_err(|e| format!("other traffic: {e}"))??;
    let down = &plan.path.down;
    let cross_traffic = match plan.cross {
        None => Rate::from_f64(0.0),
        // TCP determines its own rate.
        Some(cross) if cross.kind == CrossKind::Tcp => alone,
        Some(cross) => cross.rate,
    };
    Ok(PathResult {
        rate_bps: down.rate.as_f64(),
        rtt_s: plan.path.rtt().as_secs_f64(),
        buffer_bytes: down.buffer.in_bytes(plan.path.mtu).as_f64(),
        loss: down.loss.get(),
        jitter_s: down.jitter.as_secs_f64(),
        queue: down.queue.name().to_owned(),
        cross: plan.cross.map(|cross| cross.kind.name().to_owned()),
        available_bps: down.rate.saturating_sub(cross_traffic).as_f64(),
        measured,
        iperf3_bps,
        trust: certificate.verdict.trust,
        reasons: certificate.verdict.reasons.iter().map(ToString::to_string).collect(),
    })
}

/// The rate of cross traffic on an otherwise idle path.
fn alone(emulation: &Emulation) -> Rate {
    clock::sleep_until(clock::now() + SETTLING);
    let _ = emulation.observe();
    clock::sleep_until(clock::now() + IDLE_TIME);
    let samples = emulation.observe();
    let (Some(first), Some(last)) = (samples.first(), samples.last()) else {
        return Rate::from_f64(0.0);
    };
    let bytes = last.down.delivered.saturating_sub(first.down.delivered);
    let span = last.at.saturating_sub(first.at).max(Duration::from_millis(1));
    bytes / span
}

fn measure(program: &Path, scratch: &Path, emulation: &Emulation) -> Result<Value, String> {
    let ticket = scratch.join("ticket");
    let output = File::create(&ticket).map_err(|e| format!("{}: {e}", ticket.display()))?;
    let mut serve = Command::new(program);
    serve.arg("serve").arg("--dir").arg(scratch).arg("--listen");
    serve.arg(format!("{}:{PORT}", emulation.far().address())).stdout(output);
    serve.stderr(Stdio::null());
    let serving = emulation.far().spawn(&mut serve).map_err(|e| e.to_string())?;
    let _serving = Running(serving);
    let deadline = clock::now() + TICKET_TIMEOUT;
    while fs::read_to_string(&ticket).unwrap_or_default().lines().next().is_none() {
        if clock::now() > deadline {
            return Err("serve printed no ticket".to_owned());
        }
        clock::sleep_until(clock::now() + Duration::from_millis(50));
    }
    let mut command = Command::new(program);
    command.args(["measure", "--json", "--direction", "down", "--ticket-file"]).arg(&ticket);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let near = emulation.near().spawn(&mut command).map_err(|e| e.to_string())?;
    let output = near.wait_with_output().map_err(|e| e.to_string())?;
    serde_json::from_slice(&output.stdout)
        .map_err(|e| format!("measure: {e}: {}", String::from_utf8_lossy(&output.stderr).trim()))
}

/// iperf3's throughput from the far end; `None` if it is not installed or fails.
fn iperf3(emulation: &Emulation) -> Option<f64> {
    let mut serve = Command::new("iperf3");
    serve.args(["-s", "-1"]).stdout(Stdio::null()).stderr(Stdio::null());
    let _serving = Running(emulation.far().spawn(&mut serve).ok()?);
    clock::sleep_until(clock::now() + Duration::from_millis(300));
    let mut client = Command::new("iperf3");
    client
        .args(["-R", "-J", "-t", IPERF3_SECONDS, "-c"])
        .arg(emulation.far().address().to_string());
    client.stdout(Stdio::piped()).stderr(Stdio::null());
    let output = emulation.near().spawn(&mut client).ok()?.wait_with_output().ok()?;
    let report: Value = serde_json::from_slice(&output.stdout).ok()?;
    report["end"]["sum_received"]["bits_per_second"].as_f64()
}
