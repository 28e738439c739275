mod card;
mod document;
mod help;
mod outlook;
mod page;
mod path_file;
mod verdict;
mod watch;
mod words;

use std::ffi::OsString;
use std::io::IsTerminal;
use std::net::Ipv6Addr;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::ValueEnum;
use sweetspot_linux::clock;
use sweetspot_measure::{Direction, Discipline, Plan};
use sweetspot_transfer::{Contact, Measured, TransferError, measure, measure_one_sided};
use sweetspot_units::{Bytes, Duration};

use super::transfer::ContactArguments;
use super::{Ending, Fallible};
use crate::ends::has_port;
use sweetspot_program::print::{Shown, wrapped};
use sweetspot_program::progress;
use sweetspot_program::usage_error::UsageError;
use sweetspot_program::whole_file;

/// The shortest interval of --watch; no measurement is shorter.
const MIN_INTERVAL: Duration = Duration::from_secs(1);

/// The reason why HOST:PORT gives no rate, even if `serve` listens there: its ticket grants the right to measure with it.
const NO_RATE: &str = "handshakes show no rate; give the ticket that `sweetspot serve` prints at that host instead of HOST:PORT";

/// Measure the path to a `sweetspot serve`, or the RTT to any HOST:PORT
///
/// Reports, each with its interval: RTT, capacity, available bandwidth, buffer and queue
/// discipline, random loss, reordering, jitter, and delay under load, in both directions. --json and --html also state the methods.
/// Lists each quantity that it could not measure, with the reason. Datagrams go to the same port as TCP.
/// It takes up to three minutes, and fills the path's queue unless --gentle. From any other TCP server,
/// HOST:PORT, it gets the RTT and the options that both kernels agree on. The options marked (ticket) need a ticket.
#[derive(Debug, clap::Args)]
#[command(after_help = help::AFTER)]
pub struct MeasureArguments {
    #[command(flatten)]
    common: SharedArguments,
    /// Never fill a queue, which the full measurement does: no buffer, queue discipline or delay under load. It takes up to two
    /// minutes, most of them for the sparse packets that show random loss (ticket)
    #[arg(long)]
    gentle: bool,
    /// Measure for up to 31 seconds instead of three minutes; each step adds an RTT or two, and rates below 10 Mbit/s take longer.
    /// Print a line for each direction: the rate, the RTT idle and under load, and its grade. A last line is for the direction
    /// measured first: simulated CUBIC with a window of the right size and with the kernel's (ticket, not with --gentle or --watch)
    #[arg(long, conflicts_with_all = ["gentle", "watch"])]
    quick: bool,
    /// Direction to measure; --scenario writes its path (ticket)
    #[arg(long, value_enum, default_value_t = DirectionChoice::Both)]
    direction: DirectionChoice,
    /// Measure gently at this interval and append to --series, until you stop it. Each measurement takes up to 20 seconds, because
    /// it sends fewer packets than --gentle. --scenario then records how the path changes (ticket; needs --series, not with
    /// --quick, --html or --json)
    #[arg(long, value_name = "INTERVAL", requires = "series", conflicts_with_all = ["html", "json"])]
    watch: Option<Duration>,
    /// File for --watch: a JSON line for each measurement
    #[arg(long, value_name = "FILE.jsonl", requires = "watch")]
    series: Option<PathBuf>,
    /// Stop --watch after N measurements
    #[arg(long, value_name = "N", requires = "watch", value_parser = times)]
    times: Option<u64>,
}

#[derive(Debug, clap::Args)]
struct SharedArguments {
    /// The ticket that `sweetspot serve` printed there, or HOST:PORT of any TCP server
    #[arg(value_name = "TICKET|HOST:PORT", value_hint = clap::ValueHint::Hostname)]
    far_end: Option<OsString>,
    #[command(flatten)]
    contact: ContactArguments,
    /// Maximum bytes that both ends send, in total, such as 10MB; measurements that would exceed it are skipped and listed (ticket)
    #[arg(long, value_name = "SIZE")]
    budget: Option<Bytes>,
    /// Write the path as a scenario for `run`, `advise window --path` and `emulate --path` (ticket)
    #[arg(long, value_name = "FILE.toml")]
    scenario: Option<PathBuf>,
    /// Overwrite an existing file of --scenario, which you may have edited
    #[arg(long, requires = "scenario")]
    force: bool,
    /// Write a page with pictures, which loads nothing from elsewhere; it replaces an existing file
    #[arg(long, value_name = "FILE.html")]
    html: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Show no progress, and no line per measurement of --watch
    #[arg(long, short)]
    quiet: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum DirectionChoice {
    /// Upload, from you to the host that runs `serve`
    Up,
    /// Download, from that host to you
    Down,
    /// Download, then upload; --scenario writes the path of the download
    Both,
}

impl DirectionChoice {
    fn directions(self) -> Vec<Direction> {
        match self {
            DirectionChoice::Up => vec![Direction::Up],
            DirectionChoice::Down => vec![Direction::Down],
            DirectionChoice::Both => vec![Direction::Down, Direction::Up],
        }
    }
}

impl MeasureArguments {
    fn plan(&self) -> Plan {
        let plan = match (self.watch.is_some(), self.quick, self.gentle) {
            (true, ..) => Plan::short().gentle(),
            (_, true, _) => Plan::short(),
            (_, _, true) => Plan::full().gentle(),
            _ => Plan::full(),
        };
        Plan { directions: self.direction.directions(), budget: self.common.budget, ..plan }
    }
}

/// Parses a number of measurements.
fn times(text: &str) -> Result<u64, &'static str> {
    match text.parse() {
        Ok(0) | Err(_) => Err("expected a whole number, 1 or more"),
        Ok(times) => Ok(times),
    }
}

pub fn run(arguments: MeasureArguments) -> Ending {
    let common = &arguments.common;
    let planned = arguments.plan();
    if let Some(budget) = common.budget.filter(|budget| *budget < planned.min_budget()) {
        let min = planned.min_budget();
        let wrong = format!("--budget {budget} is too little: the RTT alone needs {min}");
        return Err(UsageError::new(format!("{wrong}; give more, such as 10MB")).into());
    }
    whole_file::check_creatable("--scenario", common.scenario.as_deref())?;
    whole_file::check_overwrite("--scenario", common.scenario.as_deref(), common.force)?;
    whole_file::check_extension("--scenario", common.scenario.as_deref(), &["toml"], "FILE.toml")?;
    whole_file::check_creatable("--html", common.html.as_deref())?;
    whole_file::check_extension("--html", common.html.as_deref(), &["html", "htm"], "FILE.html")?;
    whole_file::check_creatable("--series", arguments.series.as_deref())?;
    if let Some((interval, series)) = arguments.watch.zip(arguments.series.as_ref()) {
        return watched(&arguments, interval, series);
    }
    if arguments.quick {
        return quick(common, planned);
    }
    let (measured, outlook, scenario) = common.measure(planned)?;
    arguments.common.write_page(&measured, &outlook, "measure")?;
    if arguments.common.json {
        out!("{}", serde_json::to_string_pretty(&document::document(&measured, &outlook))?);
    } else {
        card::print(&measured, &outlook);
    }
    scenario.map_err(Into::into).map(|()| ending())
}

/// Success, or the shell's exit code for the signal that ended the measurement early.
fn ending() -> ExitCode {
    progress::stop_code().map_or(ExitCode::SUCCESS, ExitCode::from)
}

/// The progress of `plan` after the time `passed`.
fn position(plan: &Plan, passed: Duration) -> String {
    let [passed, max] = [passed, plan.duration().1].map(Duration::as_secs_f64);
    format!("{passed:.0} s of up to {max:.0} s")
}

/// The duration of a measurement by `plan`, in words.
fn duration_in_words(plan: &Plan) -> String {
    let max = plan.duration().1.as_secs_f64();
    match plan.budget {
        None => format!("this takes up to {max:.0} s, and more over long or slow paths"),
        Some(budget) => format!("this takes up to {max:.0} s, and ends at {budget}"),
    }
}

/// Measures repeatedly, until a signal ends the program.
fn watched(arguments: &MeasureArguments, interval: Duration, file: &Path) -> Ending {
    if interval < MIN_INTERVAL {
        let wrong = format!("--watch {interval} is too short; the minimum is {MIN_INTERVAL}");
        return Err(UsageError::new(wrong).into());
    }
    let common = &arguments.common;
    if common.server().is_some() {
        return Err(UsageError::new(format!("--watch: {NO_RATE}")).into());
    }
    let watch = watch::Watch {
        contact: common.contact()?,
        plan: arguments.plan(),
        interval,
        times: arguments.times,
        series: file,
        scenario: common.scenario.as_deref(),
        is_quiet: common.quiet,
    };
    note!("sweetspot: {}", watch.announced());
    let is_recorded = AtomicBool::new(false);
    progress::until_interrupted(
        || watch.run(&is_recorded),
        || watch.print_interrupted(is_recorded.load(Ordering::Relaxed)),
    )?;
    Ok(ExitCode::SUCCESS)
}

/// Makes a short measurement with one verdict.
fn quick(common: &SharedArguments, plan: Plan) -> Ending {
    let (measured, outlook, scenario) = common.measure(plan)?;
    let verdict = verdict::verdict(&measured, &outlook);
    common.write_page(&measured, &outlook, "measure --quick")?;
    if common.json {
        let mut document = document::document(&measured, &outlook);
        document["verdict"] = verdict.text().into();
        document["verdict_lines"] = verdict.all_lines().into();
        out!("{}", serde_json::to_string_pretty(&document)?);
    } else {
        verdict.print();
        if let Some(why) = &outlook.unknown {
            wrapped(&format!("No window was simulated: {why}."), "");
        }
    }
    scenario.map_err(Into::into).map(|()| ending())
}

impl SharedArguments {
    /// Measures, writes the scenario, and simulates the measured path. If there is no scenario to write, the results still count:
    /// the last value is the error to report after them.
    fn measure(&self, plan: Plan) -> Fallible<(Measured, outlook::Outlook, Result<(), String>)> {
        self.check_port()?;
        if let Some(server) = self.server() {
            let measured = measure_one_sided(&server)?;
            return Ok((measured, outlook::Outlook::of(&Err(NO_RATE.to_owned())), Ok(())));
        }
        let contact = self.contact()?;
        let shown = !self.quiet && std::io::stderr().is_terminal();
        if shown {
            err!("measuring: {}", duration_in_words(&plan));
        }
        let measured = self.until_interrupted(&contact, &plan)?;
        let file = path_file::PathFile::new(&measured);
        let scenario = self.write_scenario(&file);
        let first = measured.report.directions.first();
        let load = first.and_then(|first| first.load.as_ref());
        let has_own_queue = first.is_some_and(|d| d.discipline == Ok(Discipline::PerFlow));
        let carried = load.and_then(|load| load.goodput.value());
        if shown {
            err!("simulating TCP on the measured path");
        }
        let outlook = outlook::Outlook::of(&file).unless_refuted(carried);
        let outlook = match load {
            Some(load) => outlook.compared_with(load, has_own_queue),
            None => outlook,
        };
        Ok((measured, outlook, scenario))
    }

    /// Writes the scenario, if requested.
    fn write_scenario(&self, file: &Result<path_file::PathFile, String>) -> Result<(), String> {
        let Some(path) = &self.scenario else { return Ok(()) };
        let written = file.clone().and_then(|file| {
            whole_file::write(path, file.text.as_bytes()).map_err(|error| error.to_string())
        });
        written.map_err(|why| format!("wrote no {}: {why}", path.shown()))?;
        note!("wrote {}", path.shown());
        Ok(())
    }

    /// Measures. The first signal ends the measurement after its present step; the second ends the program.
    fn until_interrupted(&self, contact: &Contact, plan: &Plan) -> Result<Measured, TransferError> {
        let shown = !self.quiet && std::io::stderr().is_terminal();
        let start = clock::now();
        let mut last = String::new();
        let work = |is_stopped: &AtomicBool| {
            measure(contact, plan.clone(), &mut |what| {
                if is_stopped.load(Ordering::Relaxed) {
                    return ControlFlow::Break(());
                }
                if shown && last != what {
                    err!("measuring: {what}, {}", position(plan, clock::now().since(start)));
                    last = what.to_owned();
                }
                ControlFlow::Continue(())
            })
        };
        let words = "sweetspot: interrupted; after this step, the results so far follow (press Ctrl-C again to quit without them)";
        progress::until_stopped(work, || {
            if !self.quiet {
                err!("{words}");
            }
        })
    }

    /// Writes the page, if requested.
    fn write_page(
        &self,
        measured: &Measured,
        outlook: &outlook::Outlook,
        verb: &str,
    ) -> Fallible<()> {
        if let Some(path) = &self.html {
            let verdict = verdict::verdict(measured, outlook);
            let page = page::page(measured, outlook, &verdict, verb);
            whole_file::write(path, page.as_bytes())?;
            note!("wrote {}", path.shown());
        }
        Ok(())
    }

    /// The host and port, if they were given instead of a ticket.
    fn server(&self) -> Option<String> {
        let typed = self.far_end.as_ref()?.to_string_lossy();
        has_port(&typed).then(|| typed.into_owned())
    }

    /// Rejects a number after the last colon that is not a port. Tickets do not end like this.
    fn check_port(&self) -> Result<(), UsageError> {
        let typed = self.far_end.as_ref().map(|typed| typed.to_string_lossy());
        let port = typed.as_ref().and_then(|typed| typed.rsplit_once(':')).map(|(_, port)| port);
        let is_number = |port: &&str| port.bytes().all(|byte| byte.is_ascii_digit());
        match port.filter(is_number).filter(|port| !port.is_empty()) {
            Some(port) if port.parse::<u16>().ok().is_none_or(|port| port == 0) => {
                Err(UsageError::new(format!("port {port} is out of range; a port is 1 to 65535")))
            }
            _ => self.check_is_not_host(),
        }
    }

    /// Rejects a host or a URL without a port, which is no ticket either.
    fn check_is_not_host(&self) -> Result<(), UsageError> {
        let Some(typed) = self.far_end.as_ref().and_then(|typed| typed.to_str()) else {
            return Ok(());
        };
        match host_without_port(typed) {
            None => Ok(()),
            Some(with_port) => Err(UsageError::new(format!(
                "{typed}: expected HOST:PORT or a ticket; write {with_port}, or give the line that `sweetspot serve` printed"
            ))),
        }
    }

    fn contact(&self) -> Fallible<Contact> {
        let contact = self.contact.contact(self.far_end.as_deref())?;
        let next = "start `sweetspot serve --dir DIR` at the far end and give the line it prints, or give HOST:PORT of any TCP server \
                    (RTT only)";
        Ok(contact.ok_or_else(|| UsageError::new(format!("there is no ticket: {next}")))?)
    }
}

/// HOST:PORT for an argument that is a host without a port, or a URL; `None` if it is neither.
fn host_without_port(typed: &str) -> Option<String> {
    let (scheme, rest) = typed.split_once("://").unwrap_or(("", typed));
    let host = rest.split('/').next().unwrap_or_default();
    if !scheme.is_empty() && has_port(host) {
        return Some(host.to_owned());
    }
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    if bare.parse::<Ipv6Addr>().is_ok() {
        return Some(format!("[{bare}]:443"));
    }
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
    let port = if scheme == "http" { 80 } else { 443 };
    (!host.is_empty() && host.bytes().all(is_name)).then(|| format!("{host}:{port}"))
}

#[cfg(test)]
mod tests {
    use clap::Args;

    use super::*;

    #[test]
    fn a_host_without_a_port_is_recognised() {
        for (typed, with_port) in [
            ("127.0.0.1", Some("127.0.0.1:443")),
            ("example.org", Some("example.org:443")),
            ("http://example.org/index.html", Some("example.org:80")),
            ("https://example.org:8443/", Some("example.org:8443")),
            ("[2001:db8::7]", Some("[2001:db8::7]:443")),
            ("weetspot1:abc", None),
            ("sweetspot1:abc", None),
            ("42-crisp lemon", None),
            ("", None),
        ] {
            assert_eq!(host_without_port(typed).as_deref(), with_port, "{typed}");
        }
    }

    fn rounded(plan: &Plan, unit: f64) -> f64 {
        (plan.duration().1.as_secs_f64() / unit).round()
    }

    #[test]
    fn the_help_and_the_page_state_the_duration_of_each_plan() {
        assert_eq!(rounded(&Plan::full(), 60.0), 3.0);
        assert_eq!(rounded(&Plan::short(), 1.0), 31.0);
        assert_eq!(rounded(&Plan::full().gentle(), 60.0), 2.0);
        assert_eq!(rounded(&Plan::short().gentle(), 10.0), 2.0);
        let mut command = MeasureArguments::augment_args(clap::Command::new("measure"));
        let help = command.render_long_help().to_string();
        let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(help.contains("It takes up to three minutes"), "{help}");
        assert!(help.contains("Measure for up to 31 seconds"), "{help}");
        assert!(help.contains("It takes up to two minutes"), "{help}");
        assert!(help.contains("Each measurement takes up to 20 seconds"), "{help}");
        let page = include_str!("../../../../../docs/measure-a-path.md");
        assert!(page.contains("A full measurement takes up to three minutes"));
    }

    #[test]
    fn progress_shows_elapsed_and_expected_time() {
        let max = Plan::full().duration().1.as_secs_f64();
        let words = position(&Plan::full(), Duration::from_secs(12));
        assert_eq!(words, format!("12 s of up to {max:.0} s"));
    }

    #[test]
    fn a_measurement_announces_its_duration_and_budget() {
        let max = Plan::full().duration().1.as_secs_f64();
        let words = duration_in_words(&Plan::full());
        assert!(words.starts_with(&format!("this takes up to {max:.0} s, and more")), "{words}");
        let budget = Some(Bytes::new(10_000_000));
        let words = duration_in_words(&Plan { budget, ..Plan::full() });
        assert_eq!(words, format!("this takes up to {max:.0} s, and ends at 10 MB"));
    }
}
