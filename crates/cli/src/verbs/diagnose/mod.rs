mod capture;
mod live;
mod show;
mod target;

use std::path::PathBuf;
use std::process::ExitCode;

use sweetspot_units::Duration;

use self::target::DiagnosisTarget;
use super::Ending;

const EXAMPLES: &str = "\
Examples:
  A running program, watched for ten seconds:
    sweetspot diagnose 4711

  A connection, by either end:
    sweetspot diagnose 192.0.2.7:443 --for 30s

  A capture, from either end or in between:
    tcpdump -s 96 -w slow.pcap tcp port 443
    sweetspot diagnose slow.pcap

  For a script:
    sweetspot diagnose slow.pcapng --json";

/// Find what limits a connection, why, and what to do about it
///
/// A live connection is watched from outside, without effect on its program. The sending side knows
/// most; the receiving side knows its own window, its reader, and queues on the path.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// A process, an end of a connection (`ADDRESS:PORT`, `[V6ADDRESS]:PORT`), or a capture
    #[arg(value_name = "PID|ADDR:PORT|FILE", required_unless_present = "file")]
    target: Option<DiagnosisTarget>,
    /// A capture to read, pcap or pcapng, whatever its name
    #[arg(long, value_name = "FILE", conflicts_with_all = ["target", "watch_for", "netns"])]
    file: Option<PathBuf>,
    /// Time for which live connections are watched
    #[arg(long = "for", value_name = "TIME", default_value = "10s")]
    watch_for: Duration,
    /// Network namespace NAME (ip-netns(8)); that of a process is found automatically
    #[arg(long, value_name = "NAME")]
    netns: Option<String>,
    /// Show the N flows with the most payload
    #[arg(long, value_name = "N", default_value_t = 20)]
    flows: usize,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: Arguments) -> Ending {
    let report = match (&arguments.file, &arguments.target) {
        (Some(file), _) | (None, Some(DiagnosisTarget::Capture(file))) => {
            capture::read(file, arguments.flows)?
        }
        (None, Some(DiagnosisTarget::Live(target))) => {
            live::watch(*target, arguments.netns.as_deref(), arguments.watch_for, arguments.flows)?
        }
        (None, None) => return Err("name a process, an end of a connection, or --file".into()),
    };
    if arguments.json {
        out!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        show::report(&report);
    }
    Ok(ExitCode::SUCCESS)
}
