use std::process::Command;

use serde::Deserialize;
use sweetspot_emulator::Emulation;
use sweetspot_linux::clock;
use sweetspot_research::lab::ReferenceTransfer;
use sweetspot_units::{Bytes, Duration, Rate};

use super::CellPlan;
use sweetspot_comparison::Program;

const CONGESTION: &str = "cubic";

/// Runs iperf3 over the same path with the same amount of data and kernel defaults, as the
/// reference for CPU time.
pub fn iperf3(plan: &CellPlan) -> Result<ReferenceTransfer, String> {
    let emulation = Emulation::start(&plan.path).map_err(|e| e.to_string())?;
    let mut serve = Command::new("iperf3");
    serve.args(["--server", "--one-off", "--forceflush"]);
    let mut server = Program::start(emulation.far(), &mut serve)
        .map_err(|e| format!("{e} (sudo apt-get install iperf3)"))?;
    let patience = clock::now() + Duration::from_secs(5);
    while !server.printed().iter().any(|line| line.contains("listening")) {
        if clock::now() > patience {
            return Err("iperf3: the server does not listen".to_owned());
        }
        clock::sleep_until(clock::now() + Duration::from_millis(10));
    }
    let mut send = Command::new("iperf3");
    send.arg("--client").arg(emulation.far().address().to_string());
    send.args(["--json", "--congestion", CONGESTION, "--bytes", &plan.size.get().to_string()]);
    let client = Program::start(emulation.near(), &mut send).map_err(|e| e.to_string())?;
    let report = client.finish().map_err(|why| format!("iperf3: {why}"))?.join("\n");
    let _ = server.stop();
    read(&report)
}

/// The fields used of iperf3's JSON.
#[derive(Deserialize)]
struct Iperf3Report {
    start: Start,
    end: Iperf3End,
}

#[derive(Deserialize)]
struct Start {
    version: String,
}

#[derive(Deserialize)]
struct Iperf3End {
    sum_sent: Sum,
    sum_received: Sum,
    cpu_utilization_percent: Cpu,
}

#[derive(Deserialize)]
struct Sum {
    seconds: f64,
    bytes: u64,
    bits_per_second: f64,
}

/// CPU use over the test, user and system, in per cent of one CPU.
#[derive(Deserialize)]
struct Cpu {
    host_total: f64,
    remote_total: f64,
}

fn read(json: &str) -> Result<ReferenceTransfer, String> {
    let report: Iperf3Report =
        serde_json::from_str(json).map_err(|e| format!("iperf3's report: {e}"))?;
    let Iperf3End { sum_sent, sum_received, cpu_utilization_percent: cpu } = report.end;
    let used = |percent: f64, over: &Sum| Duration::from_secs_f64(percent / 100.0 * over.seconds);
    Ok(ReferenceTransfer {
        program: report.start.version,
        congestion: CONGESTION.to_owned(),
        size: Bytes::new(sum_received.bytes),
        goodput: Rate::from_f64(sum_received.bits_per_second),
        sender_cpu: used(cpu.host_total, &sum_sent),
        receiver_cpu: used(cpu.remote_total, &sum_received),
    })
}
