mod capture;
mod show;

use std::path::PathBuf;
use std::process::ExitCode;

use super::Ending;

const EXAMPLES: &str = "\
Examples:
  A capture, from either end or in between:
    tcpdump -s 96 -w slow.pcap tcp port 443
    sweetspot diagnose --file slow.pcap

  For a script:
    sweetspot diagnose --file slow.pcapng --json";

/// Say what limits a connection, why, and what to do about it
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// A capture to read, pcap or pcapng
    #[arg(long, value_name = "FILE")]
    file: PathBuf,
    /// Tell of the N flows that carried most
    #[arg(long, value_name = "N", default_value_t = 20)]
    flows: usize,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: Arguments) -> Ending {
    let report = capture::read(&arguments.file, arguments.flows)?;
    if arguments.json {
        tell!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        show::report(&report);
    }
    Ok(ExitCode::SUCCESS)
}
