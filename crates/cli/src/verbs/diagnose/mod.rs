mod capture;
mod directory;
mod html;
mod input;
mod live;
mod show;
mod target;
mod tcpinfo;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use sweetspot_diagnose::report::DiagnosisReport;
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

  The same with a page to look at:
    sweetspot diagnose slow.pcap --html slow.html

  A compressed one, one from standard input, all of a directory:
    sweetspot diagnose slow.pcap.gz
    ssh host tcpdump -s 96 -c 50000 -w - tcp | sweetspot diagnose -
    sweetspot diagnose captures/

  What a kernel said of connections earlier, as NDT7 keeps it or as ss prints it:
    while sleep 0.1; do date +%s.%N; ss -tin dst 192.0.2.7; done > slow.log
    sweetspot diagnose --tcpinfo slow.log

  For a script:
    sweetspot diagnose slow.pcapng --json";

/// Find what limits a connection, why, and what to do about it
///
/// A live connection is watched from outside, without effect on its program. The sending side knows
/// most; the receiving side knows its own window, its reader, and queues on the path.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// A process, an end of a connection (`ADDRESS:PORT`, `HOST:PORT`), a capture, a
    /// directory of captures, or `-` for a capture on standard input
    #[arg(value_name = "PID|HOST:PORT|FILE", required_unless_present_any = ["file", "tcpinfo"])]
    target: Option<DiagnosisTarget>,
    /// A capture to read, pcap or pcapng, compressed by gzip or zstd or not, whatever its name
    #[arg(long, value_name = "FILE", conflicts_with_all = ["target", "watch_for", "netns"])]
    file: Option<PathBuf>,
    /// Read what a kernel said of connections earlier: NDT7's JSON, or a log of `date +%s.%N` and
    /// `ss -ti`
    #[arg(long, value_name = "FILE", conflicts_with_all = ["target", "file", "watch_for", "netns"])]
    tcpinfo: Option<PathBuf>,
    /// Watch a live connection so long
    #[arg(long = "for", value_name = "TIME", default_value = "10s")]
    watch_for: Duration,
    /// Network namespace NAME (ip-netns(8)); that of a process is found automatically
    #[arg(long, value_name = "NAME")]
    netns: Option<String>,
    /// Show the N flows with the most payload
    #[arg(long, value_name = "N", default_value_t = 20)]
    flows: usize,
    /// Write a page on a capture, which opens in any browser and needs nothing beside it
    #[arg(long, value_name = "FILE", conflicts_with_all = ["tcpinfo", "watch_for", "netns"])]
    html: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: Arguments) -> Ending {
    let most = arguments.flows;
    let report = match (&arguments.file, &arguments.tcpinfo, &arguments.target) {
        (Some(file), ..) | (None, None, Some(DiagnosisTarget::Capture(file))) => {
            told(file, &arguments)?
        }
        (None, Some(file), _) => tcpinfo::read(file, most)?,
        (None, None, Some(DiagnosisTarget::StandardInput)) => {
            told(input::spool()?.path(), &arguments)?
        }
        (None, None, Some(DiagnosisTarget::Directory(directory))) => {
            return all(directory, &arguments);
        }
        (None, None, Some(DiagnosisTarget::Live(_))) if arguments.html.is_some() => {
            return Err("--html shows a capture; name one".into());
        }
        (None, None, Some(DiagnosisTarget::Live(target))) => {
            live::watch(target, arguments.netns.as_deref(), arguments.watch_for, most)?
        }
        (None, None, None) => {
            return Err("name a process, an end of a connection, or --file".into());
        }
    };
    if arguments.json {
        out!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        show::report(&report);
    }
    Ok(ExitCode::SUCCESS)
}

/// What the capture `file` says, on a page, too, if that is asked for.
fn told(file: &Path, arguments: &Arguments) -> Result<DiagnosisReport, String> {
    let report = capture::read(file, arguments.flows)?;
    if let Some(out) = &arguments.html {
        html::write(file, &report, out)?;
    }
    Ok(report)
}

/// All captures of a directory.
fn all(directory: &Path, arguments: &Arguments) -> Ending {
    if arguments.html.is_some() {
        return Err("--html shows one capture; name a file of the directory".into());
    }
    let entries = directory::read(directory, arguments.flows)?;
    if arguments.json {
        out!("{}", serde_json::to_string_pretty(&Captures { captures: &entries })?);
    } else {
        entries.iter().for_each(show::entry);
    }
    Ok(ExitCode::SUCCESS)
}

/// What the captures of a directory say.
#[derive(Debug, serde::Serialize)]
struct Captures<'a> {
    captures: &'a [directory::Entry],
}
