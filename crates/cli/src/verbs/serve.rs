use std::fs;
use std::io::ErrorKind;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use sweetspot_linux::signals::{ProcessEvent, Supervisor};
use sweetspot_linux::{clock, process};
use sweetspot_protocol::{TicketHost, TransferSummary};
use sweetspot_sizing::Sizing;
use sweetspot_transfer::{
    Purpose, ReceiveOptions, ServeOptions, Server, ServerObserver, Target, TransferError,
    TransferObserver,
};
use sweetspot_units::{Duration, Time};

use super::Ending;
use super::transfer::{PathArguments, TransferReporter, ending, streams};

/// `sweetspot serve` as typed.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  sweetspot serve --dir incoming
      listens on port 7411 and prints a ticket; send it to the sender
  sweetspot serve --dir incoming --listen 192.0.2.7:9000 --once --json
      receives one transfer, then prints the outcome as JSON
  sweetspot serve --stdout | tar x
      writes what one sender brings to standard output")]
pub struct Arguments {
    /// Directory for received files; made if it is missing
    #[arg(long, value_name = "DIR", required_unless_present = "stdout")]
    dir: Option<PathBuf>,
    /// Write what one sender brings to standard output; the ticket goes to standard error
    #[arg(long, conflicts_with_all = ["dir", "json", "force"])]
    stdout: bool,
    /// Address and port to listen on, TCP and UDP; port 0 picks a free one
    #[arg(long, value_name = "ADDR:PORT", default_value = "[::]:7411", value_parser = listening)]
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
    /// Connections to use [default: what the sender asks for, else as many as pay]
    #[arg(long, value_name = "N", value_parser = streams)]
    streams: Option<u32>,
    #[command(flatten)]
    path: PathArguments,
    /// How long a transfer may go on after its path broke (with --once)
    #[arg(long, value_name = "DURATION", default_value = "15min")]
    retry_for: Duration,
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
    let reporter = TransferReporter::new(
        arguments.series.as_deref(),
        arguments.json,
        arguments.verbose,
        false,
    )?;
    if let Some(dir) = &arguments.dir {
        make_directory(dir)?;
    }
    serve(resolve(arguments)?, reporter)
}

/// Serves until the end or a signal.
pub fn serve(options: ServeOptions, reporter: TransferReporter) -> Ending {
    process::report_file_size_limit();
    // Signals are blocked before any thread starts, so that only the waiting thread gets them.
    let signals = Supervisor::new()?;
    let (lifetime, sends) = (options.lifetime, matches!(options.purpose, Purpose::Send(_)));
    let to_output =
        matches!(&options.purpose, Purpose::Receive(receive) if receive.target == Target::Output);
    let server = Arc::new(Server::bind(options)?);
    // The ticket is the first line, flushed at once, because a caller may wait for it.
    if to_output {
        err!("{}", server.ticket());
    } else {
        out!("{}", server.ticket());
    }
    greet(&reporter, &server, lifetime, sends)?;
    if let Some(clamp_method) = server.clamp_method() {
        reporter.detail(&format!("the receive window is steered by {clamp_method}"));
    }
    let stopped = Arc::clone(&server);
    // Not waited for: it ends with the process.
    thread::spawn(move || stop_on_signal(&stopped, signals));
    match server.run(&ServerReporter { reporter, turned_away: Mutex::default() }) {
        Ok(Some(outcome)) => Ok(ending(&outcome)),
        Ok(None) => Ok(ExitCode::SUCCESS),
        Err(TransferError::Interrupted) => Ok(ExitCode::from(INTERRUPTED as u8)),
        // The reporter has reported it already.
        Err(_) => Ok(ExitCode::FAILURE),
    }
}

/// Prints how to use the ticket.
fn greet(
    reporter: &TransferReporter,
    server: &Server,
    lifetime: Duration,
    sends: bool,
) -> std::io::Result<()> {
    let (address, ticket) = (server.address()?, server.ticket());
    let command = if sends { "sweetspot receive TICKET" } else { "sweetspot send FILE... TICKET" };
    reporter.print(&format!(
        "listening on {address}; within {} run elsewhere: {command}",
        indicatif::HumanDuration(lifetime.into())
    ));
    let hidden = matches!(ticket.host, TicketHost::Address(ip) if ip.is_loopback());
    if hidden && !address.ip().is_loopback() {
        reporter.print(
            "this host has no address that others could reach, so the ticket names loopback; \
             give --advertise HOST for others elsewhere",
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
    let (target, once) = match arguments.dir {
        Some(dir) => (Target::Into(dir), arguments.once),
        None => (Target::Output, true),
    };
    let receive = ReceiveOptions {
        overwrite: arguments.force,
        sizing: arguments.sizing,
        congestion: arguments.congestion,
        path: arguments.path.resolve()?,
        probes: !arguments.no_probes,
        streams: arguments.streams,
        retry_for: arguments.retry_for,
        ..ReceiveOptions::at(target)
    };
    Ok(ServeOptions {
        purpose: Purpose::Receive(receive),
        listen: arguments.listen,
        advertise: arguments.advertise.as_deref().map(advertised).transpose()?,
        once,
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
pub fn listening(text: &str) -> Result<SocketAddr, String> {
    const EXAMPLES: &str = "write it like 0.0.0.0:7411, localhost:7411, 192.0.2.7:0 or [::]:7411";
    let with_port = |(host, port): (&str, &str)| !host.is_empty() && port.parse::<u16>().is_ok();
    if !text.rsplit_once(':').is_some_and(with_port) {
        return Err(format!("it is no address with a port; {EXAMPLES}"));
    }
    let mut found = text.to_socket_addrs().map_err(|error| format!("{error}; {EXAMPLES}"))?;
    found.next().ok_or_else(|| format!("that name has no address; {EXAMPLES}"))
}

/// `HOST`, `HOST:PORT`, `[v6 address]:PORT` or a bare v6 address.
pub fn advertised(text: &str) -> Result<(TicketHost, Option<u16>), String> {
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
struct ServerReporter {
    reporter: TransferReporter,
    turned_away: Mutex<TurnedAway>,
}

/// Connections that were refused lately: strangers do not fill the log.
#[derive(Default)]
struct TurnedAway {
    since: Time,
    lines: u32,
    unsaid: u64,
}

/// So many refused connections are reported in [`REFUSAL_INTERVAL`], the rest as a number.
const MAX_REFUSALS: u32 = 10;
const REFUSAL_INTERVAL: Duration = Duration::from_secs(60);

impl TurnedAway {
    /// Whether one more is reported, and how many were not since the last.
    fn note(&mut self, now: Time) -> (bool, u64) {
        if now.since(self.since) >= REFUSAL_INTERVAL || self.lines == 0 {
            (self.since, self.lines) = (now, 0);
        }
        if self.lines >= MAX_REFUSALS {
            self.unsaid += 1;
            return (false, 0);
        }
        self.lines += 1;
        (true, std::mem::take(&mut self.unsaid))
    }
}

impl ServerReporter {
    fn print(&self, line: &str) {
        self.reporter.print(line);
    }
}

impl Drop for ServerReporter {
    fn drop(&mut self) {
        let turned_away = self.turned_away.get_mut().unwrap_or_else(PoisonError::into_inner);
        if turned_away.unsaid > 0 {
            let line = format!("{} more connections were turned away", turned_away.unsaid);
            self.reporter.print(&line);
        }
    }
}

impl ServerObserver for ServerReporter {
    fn admitted(&self, number: u64, _peer: SocketAddr) -> Box<dyn TransferObserver> {
        self.reporter.observer(number)
    }

    fn ended(&self, _number: u64, result: &Result<TransferSummary, TransferError>) {
        match result {
            Ok(outcome) => self.reporter.outcome(outcome),
            Err(error) => {
                self.print(&error.to_string());
                self.reporter.failure(error);
            }
        }
    }

    fn interrupted(&self, _number: u64, error: &TransferError) {
        self.print(&format!("{error} (waiting for it)"));
    }

    fn measured(&self, peer: SocketAddr, result: &Result<(), TransferError>) {
        match result {
            Ok(()) => self.reporter.detail(&format!("{peer} measured the path")),
            Err(error) => self.print(&error.to_string()),
        }
    }

    fn turned_away(&self, error: &TransferError) {
        let mut turned_away = self.turned_away.lock().unwrap_or_else(PoisonError::into_inner);
        let (said, unsaid) = turned_away.note(clock::now());
        drop(turned_away);
        if said && unsaid > 0 {
            self.print(&format!("{unsaid} more connections were turned away"));
        }
        if said {
            self.print(&error.to_string());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strangers_do_not_fill_the_log() {
        let mut turned_away = TurnedAway::default();
        let at = |seconds: u64| Time::ZERO + Duration::from_secs(100 + seconds);
        let said = (0..1000).filter(|_| turned_away.note(at(0)).0).count();
        assert_eq!(said, MAX_REFUSALS as usize);
        assert_eq!(turned_away.note(at(60)), (true, u64::from(1000 - MAX_REFUSALS)));
        assert_eq!(turned_away.note(at(61)), (true, 0));
    }

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
