use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use sweetspot_research::notes;

use super::Ending;
use crate::bench::speed::{
    MeasurementInfo, Scheduler, SpeedBenchmark, SpeedCase, SpeedResults, build_ns3, document,
    simulate,
};
use sweetspot_comparison::machine;

#[derive(Debug, clap::Args)]
pub struct SimArguments {
    /// Repetitions of everything; the document has medians
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..))]
    repetitions: u16,
    /// The document
    #[arg(long, value_name = "FILE", default_value = "docs/results/speed.md")]
    out: PathBuf,
    /// The Tcl script for ns-2
    #[arg(long, value_name = "FILE", default_value = "bench/ns2/dumbbell.tcl")]
    script: PathBuf,
    /// Our program for ns-3
    #[arg(long, value_name = "FILE", default_value = "bench/ns3/dumbbell.cc")]
    ns3: PathBuf,
    /// Run one case in this process and print its cost: elephants, mice, sack, flows-N
    #[arg(long, value_name = "CASE")]
    run: Option<SpeedCase>,
    /// The event queue
    #[arg(long, value_enum, default_value_t = Scheduler::Usual, requires = "run")]
    scheduler: Scheduler,
    /// Number of runs, one after the other, with seeds from 1 on
    #[arg(long, value_name = "N", default_value_t = 1, requires = "run")]
    runs: u64,
}

/// Runs one case, or runs all of them in separate processes and writes the document.
pub fn run(arguments: SimArguments) -> Ending {
    if let Some(case) = arguments.run {
        let cost = simulate(case, arguments.scheduler, arguments.runs)?;
        out!("{}", serde_json::to_string(&cost)?);
        return Ok(ExitCode::SUCCESS);
    }
    let program = std::env::current_exe()?;
    let benchmark = SpeedBenchmark {
        program: &program,
        script: &arguments.script,
        ns3: build_ns3(&arguments.ns3),
        repetitions: usize::from(arguments.repetitions),
    };
    let findings = SpeedResults::of(&benchmark)?;
    let out = &arguments.out;
    let header = MeasurementInfo {
        command: format!("make bench-sim ARGS=\"--repetitions {}\"", arguments.repetitions),
        machine: format!("{}, {}", machine::machine(), machine::kernel()),
        date: machine::date(),
    };
    let earlier = fs::read_to_string(out).unwrap_or_default();
    fs::write(out, document(&header, &findings, &notes::kept(&earlier)))
        .map_err(|e| format!("cannot write {}: {e}", out.display()))?;
    out!("wrote {}", out.display());
    Ok(ExitCode::SUCCESS)
}
