use std::fs;
use std::io::ErrorKind;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;

use sweetspot_linux::process;
use sweetspot_linux::signals::{ProcessEvent, Supervisor};
use sweetspot_protocol::{TicketHost, TransferSummary};
use sweetspot_sizing::Sizing;
use sweetspot_transfer::{ServeOptions, Server, ServerObserver, TransferError, TransferObserver};
use sweetspot_units::Duration;

use super::Ending;
use super::transfer::{PathArguments, TransferReporter};

/// `sweetspot serve` as typed.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  sweetspot serve --dir incoming
      listens on port 7411 and prints a ticket; send it to the sender
  sweetspot serve --dir incoming --listen 192.0.2.7:9000 --once --json
      receives one file, then prints the outcome as JSON")]
pub struct Arguments {
    /// Directory for received files; made if it is missing
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
    /// Address and port to listen on, TCP and UDP; port 0 picks a free one
    #[arg(long, value_name = "ADDR:PORT", default_value = "0.0.0.0:7411", value_parser = listening)]
    listen: SocketAddr,
    /// Host name or address in the ticket, if senders reach this host under another address
    #[arg(long, value_name = "HOST[:PORT]")]
    advertise: Option<String>,
    /// End after one transfer
    #[arg(long)]
    once: bool,
    /// Time for which the ticket is valid
    #[arg(long, value_name = "DURATION", default_value = "24h")]
    lifetime: Duration,
    /// Overwrite existing files
    #[arg(long)]
    force: bool,
    /// How the window is sized, whatever the sender asks for: kernel, fixed:SIZE, max, bdp,
    /// sobas or sobas:paper [default: what the sender asks for, else sobas]
    #[arg(long)]
    sizing: Option<Sizing>,
    /// Congestion control at the sender, in place of its choice
    #[arg(long, value_name = "NAME")]
    congestion: Option<String>,
    #[command(flatten)]
    path: PathArguments,
    /// Do not probe the path; round-trip times are then the kernel's estimates
    #[arg(long)]
    no_probes: bool,
    /// Print one JSON object per transfer
    #[arg(long)]
    json: bool,
    /// Write the time series to this file, as JSON lines
    #[arg(long, value_name = "FILE")]
    series: Option<PathBuf>,
    /// Print more detail
    #[arg(long, short)]
    verbose: bool,
}

/// The shell's code for a program that SIGINT ended.
const INTERRUPTED: i32 = 130;

pub fn run(arguments: Arguments) -> Ending {
    let reporter = ServerReporter(TransferReporter::new(
        arguments.series.as_deref(),
        arguments.json,
        arguments.verbose,
    )?);
    process::report_file_size_limit();
    // Signals are blocked before any thread starts, so that only the waiting thread gets them.
    let signals = Supervisor::new()?;
    let lifetime = arguments.lifetime;
    make_directory(&arguments.dir)?;
    let server = Arc::new(Server::bind(resolve(arguments)?)?);
    // The ticket is the first line, flushed at once, because a caller may wait for it.
    out!("{}", server.ticket());
    greet(&reporter.0, &server, lifetime)?;
    reporter.0.detail(&format!("the receive window is steered by {}", server.clamp_method()));
    let ending = Arc::clone(&server);
    // Not waited for: it ends with the process.
    thread::spawn(move || stop_on_signal(&ending, signals));
    match server.run(&reporter) {
        Ok(_) => Ok(ExitCode::SUCCESS),
        Err(TransferError::Interrupted) => Ok(ExitCode::from(INTERRUPTED as u8)),
        // The reporter has reported it already.
        Err(_) => Ok(ExitCode::FAILURE),
    }
}

/// Prints how to use the ticket.
fn greet(watch: &TransferReporter, server: &Server, lifetime: Duration) -> std::io::Result<()> {
    let (address, ticket) = (server.address()?, server.ticket());
    watch.print(&format!(
        "listening on {address}; within {} run elsewhere: sweetspot send FILE TICKET",
        indicatif::HumanDuration(lifetime.into())
    ));
    let hidden = matches!(ticket.host, TicketHost::Address(ip) if ip.is_loopback());
    if hidden && !address.ip().is_loopback() {
        watch.print(
            "this host has no address that others could reach, so the ticket names loopback; \
             give --advertise HOST for senders elsewhere",
        );
    }
    Ok(())
}

/// Ends the transfers in an orderly way on the first signal, and at once on the second.
fn stop_on_signal(server: &Server, mut signals: Supervisor) {
    let mut ending = false;
    while let Ok(event) = signals.next_event() {
        match event {
            ProcessEvent::ChildEnded { .. } => {}
            ProcessEvent::Signal(_) | ProcessEvent::TerminalSignal(_) if ending => {
                std::process::exit(INTERRUPTED)
            }
            ProcessEvent::Signal(_) | ProcessEvent::TerminalSignal(_) => {
                ending = true;
                server.stop();
            }
        }
    }
}

fn resolve(arguments: Arguments) -> Result<ServeOptions, Box<dyn std::error::Error>> {
    Ok(ServeOptions {
        directory: arguments.dir,
        listen: arguments.listen,
        advertise: arguments.advertise.as_deref().map(advertised).transpose()?,
        once: arguments.once,
        sizing: arguments.sizing,
        congestion: arguments.congestion,
        path: arguments.path.resolve()?,
        overwrite: arguments.force,
        probes: !arguments.no_probes,
        lifetime: arguments.lifetime,
    })
}

/// Makes the directory if it is missing and its parent exists.
fn make_directory(dir: &Path) -> Result<(), String> {
    match fs::create_dir(dir) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(format!(
            "cannot make the directory {}: {error}; give --dir one that you may write to",
            dir.display()
        )),
        _ => Ok(()),
    }
}

/// An address or a name of this host and a port.
fn listening(text: &str) -> Result<SocketAddr, String> {
    const EXAMPLES: &str = "write it like 0.0.0.0:7411, localhost:7411, 192.0.2.7:0 or [::]:7411";
    let with_port = |(host, port): (&str, &str)| !host.is_empty() && port.parse::<u16>().is_ok();
    if !text.rsplit_once(':').is_some_and(with_port) {
        return Err(format!("it is no address with a port; {EXAMPLES}"));
    }
    let mut found = text.to_socket_addrs().map_err(|error| format!("{error}; {EXAMPLES}"))?;
    found.next().ok_or_else(|| format!("that name has no address; {EXAMPLES}"))
}

/// `HOST`, `HOST:PORT`, `[v6 address]:PORT` or a bare v6 address.
fn advertised(text: &str) -> Result<(TicketHost, Option<u16>), String> {
    let whole = TicketHost::parse(text).map(|host| (host, None));
    whole
        .or_else(|| {
            let (host, port) = text.rsplit_once(':')?;
            Some((TicketHost::parse(host)?, Some(port.parse().ok().filter(|port| *port != 0)?)))
        })
        .ok_or_else(|| {
            format!("--advertise \"{text}\" is no host; write it like example.org, 192.0.2.7:9000 or [2001:db8::7]:9000")
        })
}

/// Reports on the transfers of one server.
struct ServerReporter(TransferReporter);

impl ServerObserver for ServerReporter {
    fn admitted(&self, number: u64, _peer: SocketAddr) -> Box<dyn TransferObserver> {
        self.0.observer(number)
    }

    fn ended(&self, _number: u64, result: &Result<TransferSummary, TransferError>) {
        match result {
            Ok(outcome) => self.0.outcome(outcome),
            Err(error) => {
                self.0.print(&error.to_string());
                self.0.failure(error);
            }
        }
    }

    fn turned_away(&self, error: &TransferError) {
        self.0.print(&error.to_string());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_to_advertise_come_with_and_without_ports() {
        let port = |text: &str| advertised(text).map(|(host, port)| (host.to_string(), port));
        assert_eq!(port("example.org"), Ok(("example.org".into(), None)));
        assert_eq!(port("192.0.2.7:9000"), Ok(("192.0.2.7".into(), Some(9000))));
        assert_eq!(port("2001:db8::7"), Ok(("[2001:db8::7]".into(), None)));
        assert_eq!(port("[2001:db8::7]:9000"), Ok(("[2001:db8::7]".into(), Some(9000))));
        for wrong in ["", "a b", "host:0", "host:99999", "host:"] {
            assert!(advertised(wrong).is_err(), "{wrong}");
        }
    }
}
