mod help;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use sweetspot_emulator::{Certificate, Emulation, EmulatorError, isolate, self_test};
use sweetspot_linux::clock;
use sweetspot_linux::signals::{ProcessEvent, Signal, Supervisor};
use sweetspot_path::{NAMED_PATHS, PathError, Trace, Variation};
use sweetspot_scenario::{HopChain, Scenario};
use sweetspot_units::{Duration, Rate};

use super::{Ending, Fallible};
use sweetspot_program::failed_command;
use sweetspot_program::path_option;
use sweetspot_program::print::{Shown, wrapped};
use sweetspot_program::scenario_file;
use sweetspot_program::text_file;
use sweetspot_program::usage_error::UsageError;
use sweetspot_program::whole_file;

/// A shell's exit code for a command that does not exist.
const COMMAND_NOT_FOUND: u8 = 127;

/// Run a command across an emulated path between two namespaces
///
/// COMMAND runs at the near end (10.77.0.1); the far end is 10.77.0.2. Both use this machine's
/// kernel and are separate from its network. Every packet between them waits in a buffer (drop-tail
/// unless queue= sets another discipline), is sent at the given rate and then delayed. A certificate
/// reports how accurate the emulation was. Rates and buffers count IP packets, without Ethernet's headers.
///
/// Needs root, or a kernel that allows user namespaces. When COMMAND ends, everything started inside
/// ends, too.
#[derive(Debug, clap::Args)]
#[command(
    after_help = help::AFTER,
    override_usage = "sweetspot emulate [OPTIONS] --path <SPEC|@NAME|FILE.toml> -- <COMMAND>...\n       \
                      sweetspot emulate [--json] <--list|--self-test>"
)]
pub struct EmulateArguments {
    /// The path: rate=, rtt= and buffer= are required; mtu= (1500B), seed=, delay=, queue=, loss=, jitter=, policer= with
    /// policer_burst=, and the other keys of a hop are optional (man sweetspot-scenario). up.KEY=... and down.KEY=... set one direction only (up:
    /// near to far). Or a named path, such as @lte (--list). Or a scenario's path: FILE.toml, or a name such as
    /// @elephants (`sweetspot run @`). Its data flow up, or down if its path has forward = "down", as `measure` writes
    /// for downloads; its duration, cross traffic and transfers are ignored
    #[arg(long, value_name = "SPEC|@NAME|FILE.toml", required_unless_present_any = ["self_test", "list"])]
    path: Option<String>,

    /// Rate from near to far, from a trace: each line is a time in milliseconds at which 1504 bytes may
    /// leave (Mahimahi), or seconds,rate (CSV); it repeats, and replaces rate=
    #[arg(long, value_name = "FILE", requires = "path")]
    trace_up: Option<PathBuf>,

    /// Rate from far to near, from a trace as in --trace-up
    #[arg(long, value_name = "FILE", requires = "path")]
    trace_down: Option<PathBuf>,

    /// List the named paths and their sources; with --json, as JSON
    #[arg(long, conflicts_with_all = ["path", "far", "command", "self_test"])]
    list: bool,

    /// A shell command to run at the far end (10.77.0.2); it starts just before COMMAND and is
    /// terminated after it
    #[arg(long, value_name = "SHELL COMMAND")]
    far: Option<String>,

    /// Write the certificate to FILE as JSON
    #[arg(long, value_name = "FILE")]
    certificate: Option<PathBuf>,

    /// Print the certificate as JSON, to standard error like the text it replaces; with --self-test or --list, print the result
    /// as JSON to standard output
    #[arg(long)]
    json: bool,

    /// Do not print the certificate unless it says "do not trust"
    #[arg(long, short)]
    quiet: bool,

    /// Measure the highest rate that this machine emulates accurately, and its delay error
    #[arg(long, conflicts_with_all = ["path", "far", "command"])]
    self_test: bool,

    /// The command to run at the near end; it finds both addresses in SWEETSPOT_NEAR and
    /// SWEETSPOT_FAR
    #[arg(last = true, value_name = "COMMAND", required_unless_present_any = ["self_test", "list"])]
    command: Vec<String>,
}

impl EmulateArguments {
    /// Whether standard output is used by the verb itself, not by COMMAND.
    pub fn prints(&self) -> bool {
        self.self_test || self.list
    }

    /// The files from which the path is read.
    fn files(&self) -> Vec<PathBuf> {
        let scenario = self.path.as_deref().filter(|text| path_option::is_scenario(text));
        let scenario = scenario.map(|text| text_file::scenario_files(Path::new(text)));
        let traces = [&self.trace_up, &self.trace_down].into_iter().flatten().cloned();
        scenario.into_iter().flatten().chain(traces).collect()
    }
}

pub fn run(arguments: EmulateArguments) -> Ending {
    if arguments.list {
        list(arguments.json);
        return Ok(ExitCode::SUCCESS);
    }
    whole_file::check_creatable("--certificate", arguments.certificate.as_deref())?;
    whole_file::check_not_input(
        "--certificate",
        arguments.certificate.as_deref(),
        &arguments.files(),
    )?;
    let path = arguments.path.as_deref().map(|text| resolve(text, &arguments)).transpose()?;
    let story = || match &path {
        Some(path) => run_across(path, &arguments),
        None => test_machine(&arguments),
    };
    let code = isolate(|| match story() {
        Ok(code) => code,
        Err(error) => {
            if let Some(EmulatorError::Command { program, source }) = error.downcast_ref() {
                let (code, message) = failed_command(program, source);
                err!("sweetspot: {message}");
                code
            } else {
                err!("sweetspot: {error}");
                1
            }
        }
    })?;
    Ok(ExitCode::from(code))
}

/// The path as written, or the path of a scenario.
fn resolve(text: &str, arguments: &EmulateArguments) -> Fallible<HopChain> {
    let traces = (trace(&arguments.trace_up)?, trace(&arguments.trace_down)?);
    let mut path = if path_option::is_scenario(text) {
        let scenario = scenario_file::read_path(Path::new(text))?;
        path_of(&scenario).map_err(|why| format!("{text}: {why}"))?
    } else {
        let mut text = text.to_owned();
        for (side, trace) in [("up", &traces.0), ("down", &traces.1)] {
            if let Some(trace) = trace
                && !text.split([' ', ',', '\n', '\t']).any(|word| names_rate(word, side))
                && !text.trim_start().starts_with('@')
            {
                text += &format!(" {side}.rate={}bit/s", trace.mean_rate().bits_per_second());
            }
        }
        let steady = || vec![Variation::default()];
        let wrong = |error: PathError| match (&error, untraced(&traces)) {
            (PathError::Missing(key, _), Some(words)) if key.ends_with("rate") => {
                UsageError::new(words)
            }
            _ => UsageError::new(path_option::wrong_path(&error)),
        };
        let hop = text.parse().map_err(wrong)?;
        HopChain { hops: vec![hop], up: steady(), down: steady() }
    };
    // Traces replace a scenario's own rates, at the hop with the lowest rate.
    let narrow = |rates: Vec<Rate>| (0..rates.len()).min_by_key(|hop| rates[*hop]).unwrap_or(0);
    if let Some(trace) = traces.0 {
        let hop = narrow(path.hops.iter().map(|hop| hop.up.lasting_rate()).collect());
        path.up[hop].trace = Some(trace);
    }
    if let Some(trace) = traces.1 {
        let hop = narrow(path.hops.iter().map(|hop| hop.down.lasting_rate()).collect());
        path.down[hop].trace = Some(trace);
    }
    Ok(path)
}

/// The error that the direction without a trace has no rate; `None` if both directions have a trace, or neither.
fn untraced(traces: &(Option<Trace>, Option<Trace>)) -> Option<&'static str> {
    match traces {
        (Some(_), None) => Some(
            "path: the rate from far to near is missing; add --trace-down FILE, or down.rate=100Mbit/s to --path",
        ),
        (None, Some(_)) => Some(
            "path: the rate from near to far is missing; add --trace-up FILE, or up.rate=100Mbit/s to --path",
        ),
        _ => None,
    }
}

/// Whether `word` sets the rate of direction `side`.
fn names_rate(word: &str, side: &str) -> bool {
    word.starts_with("rate=")
        || word.split_once('.').is_some_and(|(of, rest)| of == side && rest.starts_with("rate="))
}

fn trace(file: &Option<PathBuf>) -> Fallible<Option<Trace>> {
    let Some(file) = file else { return Ok(None) };
    let text = text_file::read(file, "a trace in Mahimahi's format or a CSV of rates")?;
    let trace = Trace::parse(&text);
    Ok(trace.map(Some).map_err(|error| format!("{}: {error}", file.shown()))?)
}

/// The named paths as JSON.
fn named_paths() -> serde_json::Value {
    let paths = NAMED_PATHS.map(|path| {
        serde_json::json!({
            "name": path.name,
            "about": path.about,
            "spec": path.spec,
            "source": path.source,
        })
    });
    serde_json::json!({ "paths": paths })
}

fn list(is_json: bool) {
    if is_json {
        return out!("{}", named_paths());
    }
    for path in NAMED_PATHS {
        out!("@{:<19} {}", path.name, path.about);
        wrapped(path.spec, "  ");
        wrapped(path.source, "  ");
    }
}

/// The path of a scenario, if the emulator can run it.
fn path_of(scenario: &Scenario) -> Result<HopChain, String> {
    let path = &scenario.path;
    // The rest of the RTT is behind the last hop, half of it in each direction.
    let rest = path.rest((0, path.hops.len() - 1), path.rtt);
    let mut chain = path.chain(rest, scenario.seed);
    for hop in &mut chain.hops {
        // Checks the hop like one on the command line, with the same limits.
        *hop = hop.to_string().parse().map_err(|error: PathError| error.to_string())?;
    }
    Ok(if path.is_download { chain.from_the_far_end() } else { chain })
}

/// Runs the commands inside the namespaces, and returns the near command's exit code.
fn run_across(path: &HopChain, arguments: &EmulateArguments) -> Fallible<u8> {
    let (program, rest) = arguments.command.split_first().ok_or("no command was given")?;
    let mut supervisor = Supervisor::new()?;
    let emulation = Emulation::start_chain(&path.hops, &[])?;
    emulation.vary_chain(emulation.started(), path.up.clone(), path.down.clone());
    let far = match &arguments.far {
        Some(line) => {
            let mut shell = Command::new("sh");
            // Only the near command may read from the terminal.
            shell.args(["-c", line]).stdin(Stdio::null());
            Some(emulation.far().spawn(&mut shell)?)
        }
        None => None,
    };
    let near = emulation.near().spawn(Command::new(program).args(rest))?;
    let mut far = far.map(|child| child.id());
    let code = wait_near(&mut supervisor, near.id(), &mut far)?;
    if let Some(far) = far {
        end_far(&mut supervisor, far)?;
    }
    let certificate = emulation.finish()?;
    hand_over(arguments, &certificate)?;
    Ok(code)
}

/// Runs the self-test and prints its result.
fn test_machine(arguments: &EmulateArguments) -> Fallible<u8> {
    note!(
        "Trying rates on a path of 20 ms with one BDP of buffer, for half a minute. They double until two in a row fail; then the \
         gap is halved. A rate fails if two tries do; if its double passes, another program had disturbed them."
    );
    let mut last = None;
    let found = self_test(&mut |trial| {
        let again = if last.replace(trial.rate) == Some(trial.rate) { ", second try" } else { "" };
        let verdict = match trial.truthful {
            true => "trust",
            false if trial.is_only_underloaded() => "not tested",
            false => "do not trust",
        };
        err!("  {:>12}  p99 late {:>8}  {verdict}{again}", trial.rate, trial.p99_lateness);
        trial.reasons.iter().for_each(|reason| err!("                because {reason}"));
    })?;
    if arguments.json {
        out!("{}", serde_json::to_string(&found)?);
        return Ok(0);
    }
    match found.highest {
        Some(rate) => {
            let tries = found.trials.iter().filter(|trial| trial.rate == rate).count();
            let tried = if tries > 1 { format!(" (at try {tries})") } else { String::new() };
            out!("Highest rate emulated accurately: {rate}{tried}");
        }
        None => out!("No rate was emulated accurately; is the machine busy?"),
    }
    if let Some(limit) = found.limit() {
        wrapped(&format!("at {}: {}", limit.rate, limit.reasons.join("; ")), "  ");
    }
    let error = found.delay_error;
    let words = format!(
        "Delay error: median {}, p99 {}, max {} ({} probes at 100 Mbit/s and 20 ms, {} early)",
        error.median, error.p99, error.max, error.probes, error.early
    );
    wrapped(&words, "");
    Ok(u8::from(found.highest.is_none()))
}

/// Waits for the near command, and returns its exit code. The first signal is passed on to it; the second kills it. If the far
/// command fails meanwhile, this is reported, because the near command may wait for it. If the far command was not found, the
/// near command is ended as well.
fn wait_near(supervisor: &mut Supervisor, near: u32, far: &mut Option<u32>) -> std::io::Result<u8> {
    let (mut interrupted, mut is_far_missing) = (false, false);
    loop {
        match supervisor.next_event()? {
            ProcessEvent::ChildEnded { pid, code } if pid == near => {
                return Ok(if is_far_missing { COMMAND_NOT_FOUND } else { code });
            }
            ProcessEvent::ChildEnded { pid, code } => {
                if far.take_if(|far| *far == pid).is_some() && code != 0 {
                    err!("sweetspot: the far command ended early with exit code {code}");
                    if code == COMMAND_NOT_FOUND {
                        is_far_missing = true;
                        Signal::TERMINATE.send(near);
                    }
                }
            }
            ProcessEvent::Signal(_) | ProcessEvent::TerminalSignal(_) if interrupted => {
                Signal::KILL.send(near)
            }
            ProcessEvent::Signal(signal) => {
                interrupted = true;
                signal.send(near);
            }
            ProcessEvent::TerminalSignal(_) => interrupted = true,
        }
    }
}

/// Asks the far command to end, and gives it one second to write its output. After that it is killed with the namespaces.
fn end_far(supervisor: &mut Supervisor, far: u32) -> std::io::Result<()> {
    Signal::TERMINATE.send(far);
    let due = clock::now() + Duration::from_secs(1);
    while let Some(event) = supervisor.next_event_by(due)? {
        if matches!(event, ProcessEvent::ChildEnded { pid, .. } if pid == far) {
            break;
        }
    }
    Ok(())
}

fn hand_over(arguments: &EmulateArguments, certificate: &Certificate) -> Fallible<()> {
    if !arguments.quiet || !certificate.verdict.trust {
        match arguments.json {
            true => err!("{}", serde_json::to_string(certificate)?),
            false => err!("{}", certificate.to_string().trim_end()),
        }
    }
    if let Some(file) = &arguments.certificate {
        let text = serde_json::to_string_pretty(certificate)? + "\n";
        fs::write(file, text).map_err(|error| {
            format!("cannot write the certificate to {}: {error}", file.shown())
        })?;
    }
    Ok(())
}
