use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode};

use sweetspot_emulator::{Certificate, Emulation, EmulatorError, isolate, self_test};
use sweetspot_linux::signals::{Event, Signal, Supervisor};
use sweetspot_path::PathSpec;

use super::Ending;

/// What a shell reports when a command does not exist.
const COMMAND_NOT_FOUND: u8 = 127;

const EXAMPLES: &str = "\
Examples:
  Ping across 100 ms:
    sweetspot emulate --path \"rate=100Mbit/s rtt=100ms buffer=125kB\" -- \\
      ping -c 3 10.77.0.2

  Two programs, one on each side:
    sweetspot emulate --path \"rate=20Mbit/s rtt=40ms buffer=100pkt loss=0.1%\" \\
      --far 'iperf3 -s -1' -- sh -c 'sleep 0.2; iperf3 -c $SWEETSPOT_FAR'

  An asymmetric line, and a shell to try things in:
    sweetspot emulate --path \"up.rate=10Mbit/s down.rate=100Mbit/s rtt=30ms \\
      buffer=256kB jitter=2ms\" -- bash

  How fast a path this machine can emulate truthfully:
    sweetspot emulate --self-test";

/// Runs COMMAND at the near end (10.77.0.1) of an emulated path, beside this machine's own
/// network, and certifies afterwards how true the emulation was.
///
/// The path joins two network namespaces. Every packet between them waits in a drop-tail
/// buffer, is sent at the given rate and then delayed; both ends use this machine's own kernel.
/// Works as root and, where user namespaces are allowed, without. When COMMAND ends, everything
/// that was started inside ends too. The exit code is COMMAND's.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The path: rate=, rtt= and buffer= are needed; delay=, loss=, jitter=, mtu= and seed= may
    /// be given. up.KEY=... and down.KEY=... set one direction only (up: near to far)
    #[arg(long, value_name = "SPEC", required_unless_present = "self_test")]
    path: Option<PathSpec>,

    /// A shell command to run at the far end (10.77.0.2), started before COMMAND
    #[arg(long, value_name = "SHELL COMMAND")]
    far: Option<String>,

    /// Write the certificate to FILE as JSON
    #[arg(long, value_name = "FILE")]
    certificate: Option<PathBuf>,

    /// Print the certificate as JSON, to standard error like the text it replaces
    #[arg(long)]
    json: bool,

    /// Do not print the certificate unless it says "do not trust"
    #[arg(long, conflicts_with = "json")]
    quiet: bool,

    /// Measure the highest rate that this machine emulates truthfully, and its delay error
    #[arg(long, conflicts_with_all = ["path", "far", "command"])]
    self_test: bool,

    /// The command to run at the near end; it finds both addresses in SWEETSPOT_NEAR and
    /// SWEETSPOT_FAR
    #[arg(last = true, value_name = "COMMAND", required_unless_present = "self_test")]
    command: Vec<String>,
}

pub fn run(arguments: Arguments) -> Ending {
    let story = if arguments.self_test { test_machine } else { play };
    let code = isolate(|| match story(&arguments) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("sweetspot: {error}");
            if let Some(EmulatorError::Command { .. }) = error.downcast_ref() {
                COMMAND_NOT_FOUND
            } else {
                1
            }
        }
    })?;
    Ok(ExitCode::from(code))
}

/// The story inside the namespaces; returns the command's exit code.
fn play(arguments: &Arguments) -> Result<u8, Box<dyn std::error::Error>> {
    let (Some(path), [program, rest @ ..]) = (&arguments.path, &arguments.command[..]) else {
        return Ok(0);
    };
    let mut supervisor = Supervisor::new()?;
    let emulation = Emulation::start(path)?;
    let far = match &arguments.far {
        Some(line) => Some(emulation.far().spawn(Command::new("sh").args(["-c", line]))?),
        None => None,
    };
    let near = emulation.near().spawn(Command::new(program).args(rest))?;
    let code = wait(&mut supervisor, &near, far.as_ref())?;
    let certificate = emulation.finish()?;
    hand_over(arguments, &certificate)?;
    Ok(code)
}

/// Measures the machine and says what it found.
fn test_machine(arguments: &Arguments) -> Result<u8, Box<dyn std::error::Error>> {
    eprintln!("Trying rates on a path of 20 ms with one BDP of buffer; this takes half a minute.");
    let found = self_test(&mut |trial| {
        let verdict = if trial.truthful { "trust" } else { "do not trust" };
        eprintln!("  {:>12}  p99 late {:>8}  {verdict}", trial.rate, trial.p99_lateness);
        trial.reasons.iter().for_each(|reason| eprintln!("                because {reason}"));
    })?;
    if arguments.json {
        println!("{}", serde_json::to_string(&found)?);
        return Ok(0);
    }
    match found.highest {
        Some(rate) => println!("Highest rate emulated truthfully: {rate}"),
        None => println!("No rate was emulated truthfully; is the machine busy?"),
    }
    let error = found.delay_error;
    println!(
        "Delay error: median {}, p99 {}, max {} ({} probes at 100 Mbit/s and 20 ms, {} early)",
        error.median, error.p99, error.max, error.probes, error.early
    );
    Ok(u8::from(found.highest.is_none()))
}

/// Waits for the near command. The first request to end is passed on to it, the second kills
/// it; a far command that fails meanwhile is named, for it may be why the near one never ends.
fn wait(supervisor: &mut Supervisor, near: &Child, far: Option<&Child>) -> std::io::Result<u8> {
    let mut asked = false;
    loop {
        match supervisor.next_event()? {
            Event::ChildEnded { pid, code } if pid == near.id() => return Ok(code),
            Event::ChildEnded { pid, code } => {
                if code != 0 && far.is_some_and(|far| far.id() == pid) {
                    eprintln!("sweetspot: the far command ended early with exit code {code}");
                }
            }
            Event::Told(_) | Event::ToldByTerminal(_) if asked => Signal::KILL.send(near.id()),
            Event::Told(signal) => {
                asked = true;
                signal.send(near.id());
            }
            Event::ToldByTerminal(_) => asked = true,
        }
    }
}

fn hand_over(
    arguments: &Arguments,
    certificate: &Certificate,
) -> Result<(), Box<dyn std::error::Error>> {
    if arguments.json {
        eprintln!("{}", serde_json::to_string(certificate)?);
    } else if !arguments.quiet || !certificate.verdict.trust {
        eprint!("{certificate}");
    }
    if let Some(file) = &arguments.certificate {
        let text = serde_json::to_string_pretty(certificate)? + "\n";
        fs::write(file, text).map_err(|error| {
            format!("cannot write the certificate to {}: {error}", file.display())
        })?;
    }
    Ok(())
}
