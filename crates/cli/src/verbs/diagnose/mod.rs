mod capture;
mod directory;
#[cfg_attr(not(target_os = "linux"), path = "elsewhere/follow.rs")]
mod follow;
#[cfg(target_os = "linux")]
mod followed;
mod html;
#[cfg(target_os = "linux")]
mod in_order;
mod input;
mod joined;
#[cfg_attr(not(target_os = "linux"), path = "elsewhere/live.rs")]
mod live;
mod scenario;
mod short_names;
mod show;
mod target;
mod tcpinfo;

use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use sweetspot_diagnose::live::{OBSERVATION, SAMPLE_INTERVAL};
use sweetspot_diagnose::report::DiagnosisReport;
use sweetspot_units::Duration;

use self::input::Input;
pub use self::short_names::short_names;
use self::target::DiagnosisTarget;
use super::Ending;
use sweetspot_program::print::Shown;
use sweetspot_program::usage_error::UsageError;
use sweetspot_program::whole_file;

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

  The path that it shows, to simulate:
    sweetspot diagnose slow.pcap --scenario path.toml
    sweetspot run path.toml

  A compressed one, one from standard input, all of a directory:
    sweetspot diagnose slow.pcap.gz
    ssh host tcpdump -s 96 -c 50000 -w - tcp | sweetspot diagnose -
    sweetspot diagnose captures/

  Captures at both ends, joined: one-way delays, and where packets were lost:
    sweetspot diagnose --file sender.pcap --file receiver.pcap

  Earlier reports of a kernel, from an NDT7 result or from ss:
    while sleep 0.1; do date +%s.%N; ss -tinm dst 192.0.2.7; done > slow.log
    sweetspot diagnose --tcpinfo slow.log

  What passes a tap, or what tcpdump writes, as it goes on:
    sweetspot diagnose --follow eth1
    sweetspot diagnose --follow /var/captures --for 1h

  For a script:
    sweetspot diagnose slow.pcapng --json

Classes in JSON (class, cause, limits), and their names in the text:
  opportunity           slow start: the handshake, or too short to leave it
  congestion            congestion window after loss
  transport             growing congestion window
  receiver_window       receiver's window: its buffer is small, or its program
                        reads slowly, which the sender cannot know
  receiver_application  receiver's application: it leaves data unread
  sender_window         sender's buffer
  bandwidth             path at capacity; \"link or pacing\" if a link or a
                        pacing sender may space the segments evenly
  application           application: the sending one has nothing to send
  waiting_for_peer      waiting for the peer (only captures show it; elsewhere
                        application): its next request or answer, or a
                        \"window above TCP\" of its protocol
  idle                  idle: neither side has anything to send
  pacing                pacing: SO_MAX_PACING_RATE
  stalled               stalled: retransmissions get no answer
  never_established     never established
  unknown               unknown; the verdict gives the reason
Class application includes the causes waiting_for_peer and idle.
For a live connection that this host receives, the text shows unknown time as
\"sender or path\": the limit is not at this end. Run diagnose at the sender.

Members of --json:
  flows              the flows with the most payload, each with:
    source, destination
                       the sender's address and port, and the receiver's
    verdict            class, cause, share_of_time, allowed_bps (the rate
                       that the limit allows, if known), words
    limits             each class's share of the time
    application_time   parts of the application's share
    rtt_min_s, rtt_median_s, goodput_bps, bytes, retransmitted_segments
    rtt_smoothed_s     instead of the median, if it is of one reading
    goodput_is_while_sending
                       true for one reading: no rate over time is known
    window_above_tcp_bytes
                       the most in flight, where such a window limited it
    expected_gain_bps  the most that the fix can gain, if known
    fix, remarks       the fix, and further findings
    zero_windows       times that the receiver closed its window
    shared_path        connections that fill the path together
    facts              figures from a capture
    path               the path that a capture shows
    joined             findings from two captures together
    simulated          the transfer as the simulator ran it
  flows_left_out, packets, tcp_segments, remarks
                     counts and remarks on the whole
For a directory: captures, each with file and these members, or error.
With --follow, each second has one line with at_s (the end of the time that it
covers, in seconds since 1970), connections_total, lost_packets (that came too
fast to be captured) and connections, each with source, destination, bytes,
goodput_bps, rtt_s or rtt_at_least_s, retransmitted_segments, limited_by,
share_of_time, ended, and measuring: true while it is too young to be judged.
The object above is the last line.

In the table of --follow, - is a rate in the first second or while no packet at
all passes, or a round trip that no packet has shown yet; \u{2265} marks a round
trip without the part between the capture and the sender. A connection that has
ended is shown once more, as closed or reset.";

/// Further short names in tables, of a cause within a class.
const SHORT_CAUSES: &str = "
  link or pacing  path at capacity, or a sender that paces its segments
  wnd above TCP   waiting for the peer: a window of the protocol above TCP
  sender or path  unknown at the receiving end: not limited there";

/// The end of the help.
fn after_help() -> String {
    format!("{EXAMPLES}\n\nShort names in tables:\n{}{SHORT_CAUSES}", short_names())
}

/// Find the limit of a connection, its cause and its fix
///
/// A live connection is watched from outside, without effect on its program. The sending side knows most; the receiving side
/// knows its own window, its reader, and queues on the path.
#[derive(Debug, clap::Args)]
#[command(after_help = after_help())]
pub struct DiagnoseArguments {
    /// A process, with its children; an end of a connection (`ADDRESS:PORT`, `HOST:PORT`); a capture or the output
    /// of `ss -ti`; a directory of captures; or `-` for standard input
    #[arg(value_name = "PID|HOST:PORT|FILE")]
    target: Option<DiagnosisTarget>,
    /// More targets, which a pattern such as `*.pcap` gives: one is diagnosed at a time
    #[arg(hide = true, value_name = "MORE")]
    more: Vec<OsString>,
    /// A capture to read: pcap, pcapng or snoop, plain or compressed by gzip or zstd, whatever its name, or `-`; given
    /// twice, captures of the same connections at two places, which are joined
    #[arg(long, value_name = "FILE", conflicts_with_all = ["target", "watch_for", "netns"])]
    file: Vec<PathBuf>,
    /// Read a kernel's earlier report on connections: the output of `ss -ti`, once or logged with `date +%s.%N`, NDT7's JSON,
    /// M-Lab's tcp-info archives, or the result of `iperf3 --json`; `-` reads standard
    /// input. Also recognised without this option
    #[arg(long, value_name = "FILE", conflicts_with_all = ["target", "file", "watch_for", "netns"])]
    tcpinfo: Option<PathBuf>,
    /// Follow a network device, all devices (`any`), a capture that is being written or replaced, or a directory that new
    /// captures come into; a table each second gives the limit of each connection; at the end of --for or on Ctrl-C, which ends
    /// with exit code 130, the whole diagnosis follows
    #[arg(long, value_name = "DEVICE|FILE|DIRECTORY", conflicts_with_all = ["target", "file", "tcpinfo", "html", "scenario"])]
    follow: Option<PathBuf>,
    /// Observation time [default: 10s; unlimited with --follow]
    #[arg(long = "for", value_name = "TIME", allow_hyphen_values = true)]
    watch_for: Option<Duration>,
    /// Network namespace (ip-netns(8)) [default: the process's, or this one]
    #[arg(long, value_name = "NAME")]
    netns: Option<String>,
    /// Show the N flows with the most payload, each with its details [default: 20, with details of the first 3]
    #[arg(long, value_name = "N")]
    flows: Option<usize>,
    /// Write a page on a capture, which opens in any browser and needs nothing beside it; it replaces an
    /// existing FILE, as --scenario does only with --force
    #[arg(long, value_name = "FILE", conflicts_with_all = ["tcpinfo", "netns"])]
    html: Option<PathBuf>,
    /// Write the path of the largest flow that shows it as a scenario for run, advise and `emulate --path`
    #[arg(long, value_name = "FILE.toml", conflicts_with_all = ["tcpinfo", "netns"])]
    scenario: Option<PathBuf>,
    /// Overwrite an existing file of --scenario
    #[arg(long, requires = "scenario")]
    force: bool,
    /// Print one JSON object; with --follow, one a second on a line of its own, and the whole diagnosis at the end
    #[arg(long)]
    json: bool,
}

const NO_TARGET: &str = "expected a process (PID), an end of a connection (HOST:PORT), a capture or a paste of ss (FILE), \
                         --file or --follow";

/// Default number of flows to show.
const FLOWS: usize = 20;

impl DiagnoseArguments {
    /// The largest number of flows to show.
    fn max_flows(&self) -> usize {
        self.flows.unwrap_or(FLOWS)
    }

    /// Fails if the observation is too short for two intervals between samples.
    fn check_time(&self) -> Result<(), UsageError> {
        let min = SAMPLE_INTERVAL * 2;
        match self.watch_for.filter(|time| *time < min) {
            Some(time) => {
                Err(UsageError::new(format!("--for {time} is too short; the minimum is {min}")))
            }
            None => Ok(()),
        }
    }
}

pub fn run(arguments: DiagnoseArguments) -> Ending {
    let max = arguments.max_flows();
    arguments.check_time()?;
    if let Some(second) = arguments.more.first() {
        let second = Path::new(second).shown();
        let wrong = format!(
            "{second}: expected one target; name the directory for all its captures, or --file twice for \
             two captures of the same connections"
        );
        return Err(UsageError::new(wrong).into());
    }
    if let Some(what) = &arguments.follow {
        return follow::run(what, &arguments);
    }
    let is_live = matches!(arguments.target, None | Some(DiagnosisTarget::Live(_)));
    if !is_live && (arguments.watch_for.is_some() || arguments.netns.is_some()) {
        let wrong =
            "--for and --netns need a live connection or --follow; a recording is read whole";
        return Err(UsageError::new(wrong).into());
    }
    if !is_live {
        print_when_interrupted();
    }
    let Diagnosed { report, not_written, interrupted } =
        match (&arguments.file[..], &arguments.tcpinfo, &arguments.target) {
            ([], None, Some(DiagnosisTarget::Capture(file))) => {
                found(&Input::file(file), &arguments)?
            }
            ([file], ..) => diagnose_file(&named_capture(file)?, &arguments)?,
            ([first, second], ..) => {
                both(&Input::named(first)?, &Input::named(second)?, &arguments)?.into()
            }
            ([_, _, ..], ..) => {
                return Err(
                    UsageError::new("--file: no more than two captures can be joined").into()
                );
            }
            ([], Some(file), _) => tcpinfo::read(&Input::named(file)?, max)?.into(),
            ([], None, Some(DiagnosisTarget::StandardInput)) => {
                found(&Input::standard()?, &arguments)?
            }
            ([], None, Some(DiagnosisTarget::Directory(directory))) => {
                return all(directory, &arguments);
            }
            ([], None, Some(DiagnosisTarget::Live(_)))
                if arguments.html.is_some() || arguments.scenario.is_some() =>
            {
                return Err(
                    UsageError::new("--html and --scenario need a capture; name one").into()
                );
            }
            ([], None, Some(DiagnosisTarget::Live(target))) => {
                let time = arguments.watch_for.unwrap_or(OBSERVATION);
                let netns = arguments.netns.as_deref();
                let (report, interrupted) = live::watch(target, netns, time, max)?;
                Diagnosed { interrupted, ..report.into() }
            }
            ([], None, None) => {
                let is_piped = !std::io::stdin().is_terminal();
                let hint = if is_piped { "; - reads standard input" } else { "" };
                return Err(UsageError::new(format!("{NO_TARGET}{hint}")).into());
            }
        };
    if arguments.json {
        out!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        show::report(&report, arguments.flows);
    }
    match not_written.as_slice() {
        [] => Ok(interrupted.map_or(ExitCode::SUCCESS, ExitCode::from)),
        errors => Err(errors.join("; ").into()),
    }
}

/// Prints on Ctrl-C that a recording was not read to its end.
fn print_when_interrupted() {
    #[cfg(target_os = "linux")]
    sweetspot_linux::signals::print_when_interrupted(
        "sweetspot: interrupted before everything was read; there is no diagnosis\n".to_owned(),
    );
}

/// A diagnosis, and the error if a page or a scenario could not be written.
struct Diagnosed {
    report: DiagnosisReport,
    not_written: Vec<String>,
    /// The exit code after a signal that ended it early.
    interrupted: Option<u8>,
}

impl From<DiagnosisReport> for Diagnosed {
    fn from(report: DiagnosisReport) -> Diagnosed {
        Diagnosed { report, not_written: Vec::new(), interrupted: None }
    }
}

/// The diagnosis of `file`, a recording or a capture.
fn found(
    file: &Input,
    arguments: &DiagnoseArguments,
) -> Result<Diagnosed, Box<dyn std::error::Error>> {
    if !file.is_text()? {
        return diagnose_file(file, arguments);
    }
    if arguments.html.is_some() || arguments.scenario.is_some() {
        let name = file.name();
        let wrong = format!("{name}: it is text; --html and --scenario need a capture");
        return Err(UsageError::new(wrong).into());
    }
    Ok(tcpinfo::read(file, arguments.max_flows())?.into())
}

/// The capture that --file names.
fn named_capture(file: &Path) -> Result<Input, String> {
    let input = Input::named(file)?;
    if input.is_text()? {
        return Err(format!(
            "--file {}: it is text and neither pcap nor pcapng nor snoop; for a log or a paste of ss: sweetspot diagnose --tcpinfo {}",
            input.name(),
            file.shown()
        ));
    }
    Ok(input)
}

/// The diagnosis of the capture `file`; also writes the page and the scenario, if requested.
fn diagnose_file(
    file: &Input,
    arguments: &DiagnoseArguments,
) -> Result<Diagnosed, Box<dyn std::error::Error>> {
    for (option, out) in [("--html", &arguments.html), ("--scenario", &arguments.scenario)] {
        whole_file::check_not_input(option, out.as_deref(), &[file.path()])?;
    }
    whole_file::check_overwrite("--scenario", arguments.scenario.as_deref(), arguments.force)?;
    let mut report = capture::read(file, arguments.max_flows())?;
    sweetspot_wasm::simulate_flows(&mut report.flows);
    let page = arguments.html.as_ref().map(|out| html::write(file, &report, out));
    let scenario = arguments.scenario.as_ref().map(|out| scenario::write(file, &report.flows, out));
    let not_written = page.into_iter().chain(scenario).filter_map(Result::err).collect();
    Ok(Diagnosed { report, not_written, interrupted: None })
}

/// The joint diagnosis of two captures of the same connections.
fn both(
    first: &Input,
    second: &Input,
    arguments: &DiagnoseArguments,
) -> Result<DiagnosisReport, String> {
    if arguments.html.is_some() || arguments.scenario.is_some() {
        return Err("--html and --scenario are of one capture; name the one near the sender".into());
    }
    if is_same_file(first, second) {
        return Err(format!(
            "--file: {} was given twice; name two captures of the same connections",
            first.name()
        ));
    }
    joined::read(first, second, arguments.max_flows())
}

/// Whether two inputs are one file, perhaps by different names.
fn is_same_file(first: &Input, second: &Input) -> bool {
    let [first, second] = [first, second].map(|input| input.path().canonicalize().ok());
    first.is_some() && first == second
}

/// Diagnoses all captures in a directory.
fn all(directory: &Path, arguments: &DiagnoseArguments) -> Ending {
    if arguments.html.is_some() || arguments.scenario.is_some() {
        return Err("--html and --scenario are of one capture; name a file of the directory".into());
    }
    let entries = directory::read(directory, arguments.max_flows())?;
    if arguments.json {
        out!("{}", serde_json::to_string_pretty(&Captures { captures: &entries })?);
    } else {
        entries.iter().for_each(|entry| show::entry(entry, arguments.flows));
    }
    Ok(ExitCode::SUCCESS)
}

/// The diagnoses of a directory's captures.
#[derive(Debug, serde::Serialize)]
struct Captures<'a> {
    captures: &'a [directory::Entry],
}

#[cfg(test)]
mod tests {
    use sweetspot_diagnose::{Class, Evidence, Flow, Limits};

    use super::*;

    /// The members of a flow and of a report are the ones that their structs write.
    #[test]
    fn the_help_and_the_formats_page_list_every_json_member() {
        let end = std::net::SocketAddr::from(([192, 0, 2, 1], 443));
        let limits = Limits::only(Class::Idle, Duration::from_secs(1));
        let flow = Flow::new(end, end, limits, &Evidence::default());
        let report = DiagnosisReport {
            flows: vec![flow.clone()],
            flows_left_out: 0,
            packets: None,
            tcp_segments: None,
            remarks: Vec::new(),
        };
        let written = [serde_json::to_value(&flow), serde_json::to_value(&report)];
        let written = written.map(|value| value.expect("JSON"));
        let written =
            written.iter().filter_map(|value| value.as_object()).flat_map(|all| all.keys());
        // These members are omitted if they have no value.
        let rare = [
            "rtt_smoothed_s",
            "goodput_is_while_sending",
            "window_above_tcp_bytes",
            "shared_path",
            "facts",
            "path",
            "joined",
            "simulated",
        ];
        let (_, members) = EXAMPLES.split_once("Members of --json:").expect("a list");
        let page = include_str!("../../../../../docs/formats.md");
        for name in written.map(String::as_str).chain(rare) {
            let is_word = |text: &str| {
                text.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == name)
            };
            assert!(is_word(members), "the help lacks {name}");
            assert!(is_word(page), "docs/formats.md lacks {name}");
        }
    }

    #[test]
    fn the_help_lists_each_class_with_its_description() {
        for class in Class::ALL {
            let line = EXAMPLES
                .lines()
                .find_map(|line| line.strip_prefix(&format!("  {} ", class.name())));
            let words = line.map(str::trim_start).unwrap_or_default();
            assert!(words.starts_with(class.words()), "{}: {words}", class.name());
        }
    }
}
