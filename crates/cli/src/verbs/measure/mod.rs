mod card;
mod document;
mod outlook;
mod path_file;
mod verdict;

use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::ValueEnum;
use sweetspot_measure::{Direction, Plan};
use sweetspot_transfer::{Contact, Measured, measure, measure_one_sided};
use sweetspot_units::Bytes;

use super::Ending;
use super::transfer::ContactArguments;
use crate::whole_file;

const MEASURE_EXAMPLES: &str = "\
Examples:
  At the far end:
    sweetspot serve --dir /tmp
  Here, with the ticket that it printed:
    sweetspot measure sweetspot1:...
    sweetspot measure sweetspot1:... --scenario path.toml
    sweetspot emulate --path path.toml -- ping -c 3 10.77.0.2
    sweetspot run path.toml
  Without ever filling a queue, or with few bytes:
    sweetspot measure sweetspot1:... --gentle
    sweetspot measure sweetspot1:... --budget 10MB
  What any TCP server shows by its handshakes:
    sweetspot measure example.org:443";

/// Measure the path to a host that runs `sweetspot serve`
///
/// Reports, each with its interval and how it was found: round trip, capacity, available
/// bandwidth, buffer and queue discipline, random loss, reordering, jitter, and delay under
/// load, in both directions. What cannot be told is said to be so, and why. Datagrams go to the
/// same port as TCP. It takes about a minute, and fills the path's queue unless --gentle. Of a TCP
/// server that does not run this program, HOST:PORT, the round trip and what both kernels agree on
/// are found.
#[derive(Debug, clap::Args)]
#[command(after_help = MEASURE_EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    common: Common,
    /// Never fill a queue: neither buffer, discipline nor delay under load are measured
    #[arg(long)]
    gentle: bool,
    /// The direction whose path --scenario writes
    #[arg(long, value_enum, default_value_t = Way::Both)]
    direction: Way,
}

/// Measure the path to a host that runs `sweetspot serve` in about 20 seconds, with one verdict
///
/// The verdict: the rate, the round trip idle and under load, its grade, and what a window of the
/// right size would make of it, by simulation of the path as measured.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  sweetspot test sweetspot1:...
  sweetspot test --ticket-file ticket --json")]
pub struct TestArguments {
    #[command(flatten)]
    common: Common,
}

#[derive(Debug, clap::Args)]
struct Common {
    /// The ticket that `sweetspot serve` printed there, or HOST:PORT of any TCP server
    #[arg(value_name = "TICKET|HOST:PORT", value_hint = clap::ValueHint::Hostname)]
    far_end: Option<OsString>,
    #[command(flatten)]
    contact: ContactArguments,
    /// The most bytes to put on the path; what they do not suffice for is left out, and said
    #[arg(long, value_name = "SIZE")]
    budget: Option<Bytes>,
    /// Write the path as a scenario that run, validate and `emulate --path` take
    #[arg(long, value_name = "FILE.toml")]
    scenario: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Show no progress
    #[arg(long, short)]
    quiet: bool,
}

/// Which directions are measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Way {
    /// From here to the far end
    Up,
    /// From the far end to here
    Down,
    /// One after the other; --scenario takes that from the far end
    Both,
}

impl Way {
    fn directions(self) -> Vec<Direction> {
        match self {
            Way::Up => vec![Direction::Up],
            Way::Down => vec![Direction::Down],
            Way::Both => vec![Direction::Down, Direction::Up],
        }
    }
}

pub fn run(arguments: Arguments) -> Ending {
    let full = Plan::full();
    let plan = if arguments.gentle { full.gentle() } else { full };
    let plan = Plan { directions: arguments.direction.directions(), ..plan };
    let (measured, outlook) = arguments.common.measure(plan)?;
    if arguments.common.json {
        out!("{}", serde_json::to_string_pretty(&document::document(&measured, &outlook))?);
    } else {
        card::print(&measured, &outlook);
    }
    Ok(ExitCode::SUCCESS)
}

pub fn run_test(arguments: TestArguments) -> Ending {
    let (measured, outlook) = arguments.common.measure(Plan::short())?;
    let verdict = verdict::verdict(&measured, &outlook);
    if arguments.common.json {
        let mut document = document::document(&measured, &outlook);
        document["verdict"] = verdict.text().into();
        out!("{}", serde_json::to_string_pretty(&document)?);
    } else {
        verdict.print();
    }
    Ok(ExitCode::SUCCESS)
}

impl Common {
    /// Measures, writes the scenario, and simulates the path as it was measured.
    fn measure(
        &self,
        plan: Plan,
    ) -> Result<(Measured, outlook::Outlook), Box<dyn std::error::Error>> {
        if let Some(server) = self.server() {
            let measured = measure_one_sided(&server)?;
            let why = "that host does not run `sweetspot serve`: its handshakes show no rate";
            if self.scenario.is_some() {
                return Err(format!("--scenario: {why}").into());
            }
            return Ok((measured, outlook::Outlook::of(&Err(why.to_owned()))));
        }
        let contact = self.contact()?;
        let plan = Plan { budget: self.budget, ..plan };
        let shown = !self.quiet && std::io::stderr().is_terminal();
        let mut last = String::new();
        let measured = measure(&contact, plan, &mut |what| {
            if shown && last != what {
                err!("measuring: {what}");
                last = what.to_owned();
            }
        })?;
        let file = path_file::PathFile::new(&measured);
        if let Some(path) = &self.scenario {
            whole_file::write(path, file.clone()?.text.as_bytes())?;
        }
        let outlook = outlook::Outlook::of(&file);
        Ok((measured, outlook))
    }

    /// The host and port, if no ticket was given but those.
    fn server(&self) -> Option<String> {
        let typed = self.far_end.as_ref()?.to_string_lossy().into_owned();
        let (host, port) = typed.rsplit_once(':')?;
        (!host.is_empty() && port.parse::<u16>().is_ok()).then(|| typed.clone())
    }

    fn contact(&self) -> Result<Contact, Box<dyn std::error::Error>> {
        let contact = self.contact.contact(self.far_end.as_deref())?;
        let next = "start `sweetspot serve --dir DIR` at the far end and give the line it prints";
        Ok(contact.ok_or_else(|| format!("there is no ticket: {next}"))?)
    }
}
