use std::fs;
use std::path::Path;
use std::process::Command;

use serde::{Deserialize, Serialize};

use super::content::Content;

/// A transfer across an emulated path.
#[derive(Debug, Clone)]
pub struct PathCase {
    pub name: &'static str,
    /// The path, in the syntax of `emulate --path`.
    pub path: &'static str,
    /// The path's rate, Mbit/s, and the fraction of packets that it loses.
    pub rate_mbit: f64,
    pub loss: f64,
    pub content: Content,
    pub congestion: &'static str,
}

/// The result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TransferResult {
    pub path: String,
    pub congestion: String,
    pub content: String,
    pub seconds: f64,
    /// The time beyond what the bytes themselves take at the path's rate.
    pub beyond_bytes_s: f64,
    pub goodput_mbit: f64,
    /// Share of the path's payload capacity.
    pub of_path: f64,
    pub streams: u32,
    /// Retransmitted segments beyond those lost on the path, as a fraction of all segments.
    pub sent_again_beyond_loss: f64,
}

/// Payload of a full packet on the wire: 1448 of 1500 bytes.
const PAYLOAD_SHARE: f64 = 1448.0 / 1500.0;

pub fn path_cases() -> Vec<PathCase> {
    let of = |name, path, rate_mbit, loss, content, congestion| PathCase {
        name,
        path,
        rate_mbit,
        loss,
        content,
        congestion,
    };
    let case = |name, path, rate_mbit, loss, size, congestion| {
        of(name, path, rate_mbit, loss, Content::OneFile(size), congestion)
    };
    vec![
        case("demo", "rate=50Mbit/s rtt=100ms buffer=625kB", 50.0, 0.0, 150_000_000, "cubic"),
        case("long", "rate=300Mbit/s rtt=200ms buffer=7.5MB", 300.0, 0.0, 1_500_000_000, "cubic"),
        case("fat", "rate=1Gbit/s rtt=100ms buffer=12.5MB", 1000.0, 0.0, 3_000_000_000, "cubic"),
        case(
            "lossy-0.01",
            "rate=100Mbit/s rtt=50ms buffer=625kB loss=0.0001",
            100.0,
            0.0001,
            600_000_000,
            "cubic",
        ),
        case(
            "lossy-0.1",
            "rate=100Mbit/s rtt=50ms buffer=625kB loss=0.001",
            100.0,
            0.001,
            600_000_000,
            "cubic",
        ),
        case(
            "lossy-1",
            "rate=100Mbit/s rtt=50ms buffer=625kB loss=0.01",
            100.0,
            0.01,
            600_000_000,
            "reno",
        ),
        case(
            "lossy-1-bbr",
            "rate=100Mbit/s rtt=50ms buffer=625kB loss=0.01",
            100.0,
            0.01,
            600_000_000,
            "bbr",
        ),
        of(
            "small-2000",
            "rate=100Mbit/s rtt=262ms buffer=3.3MB",
            100.0,
            0.0,
            Content::SmallFiles(2_000),
            "cubic",
        ),
        of(
            "small-100000",
            "rate=300Mbit/s rtt=100ms buffer=3.75MB",
            300.0,
            0.0,
            Content::SmallFiles(100_000),
            "cubic",
        ),
    ]
}

/// Runs a case with `program` in `scratch`.
pub fn run_path(case: &PathCase, scratch: &Path, program: &Path) -> Result<TransferResult, String> {
    let target = scratch.join("incoming");
    let (source, bytes) = case.content.make(scratch).map_err(|error| error.to_string())?;
    let _ = fs::remove_dir_all(&target);
    let ticket = scratch.join("ticket");
    let _ = fs::remove_file(&ticket);
    let far = format!(
        "{} serve --dir {} --once --listen 10.77.0.2:7411 >{}",
        program.display(),
        target.display(),
        ticket.display()
    );
    let near = format!(
        "until [ -s {0} ]; do sleep 0.1; done; exec {1} send {2} $(head -n 1 {0}) --json --congestion {3}",
        ticket.display(),
        program.display(),
        source.display(),
        case.congestion
    );
    let mut command = Command::new("timeout");
    command.arg("400").arg(program).args(["emulate", "--path", case.path, "--far", &far]);
    command.args(["--", "sh", "-c", &near]);
    let output = command.output().map_err(|e| format!("emulate: {e}"))?;
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    let json = stdout
        .lines()
        .find(|line| line.starts_with('{'))
        .ok_or_else(|| format!("{}: {}", case.name, String::from_utf8_lossy(&output.stderr)))?;
    let outcome: serde_json::Value = serde_json::from_str(json).map_err(|e| e.to_string())?;
    let number = |key: &str| outcome[key].as_f64().unwrap_or(f64::NAN);
    let _ = fs::remove_dir_all(&target);
    if let Content::OneFile(_) = case.content {
        let _ = fs::remove_file(&source);
    }
    let goodput_mbit = number("goodput_bps") / 1e6;
    let carries = case.rate_mbit * PAYLOAD_SHARE * (1.0 - case.loss);
    let (segments, again) = (number("segments"), number("retransmitted_segments"));
    Ok(TransferResult {
        path: case.path.to_owned(),
        congestion: case.congestion.to_owned(),
        content: case.content.in_words(),
        seconds: number("seconds"),
        beyond_bytes_s: number("seconds") - bytes as f64 * 8e-6 / carries,
        goodput_mbit,
        of_path: goodput_mbit / carries,
        streams: number("streams") as u32,
        sent_again_beyond_loss: again / segments - case.loss,
    })
}
