mod invite;
pub mod key;
mod log;
mod reporter;

use std::io;
use std::net::{Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread;

use listenfd::ListenFd;
use sweetspot_control::policy::loopback;
use sweetspot_linux::signals::{self, ProcessEvent, Signal, Supervisor};
use sweetspot_linux::{file, process, sysctl};
use sweetspot_protocol::{DEFAULT_PORT, SpokenCode, Ticket, TicketHost, TicketProof};
use sweetspot_sizing::Sizing;
use sweetspot_transfer::{
    EndsAfter, Identity, Purpose, ReceiveOptions, SendOptions, ServeOptions, Server,
    ServiceOptions, Target, TransferError, draw_code,
};
use sweetspot_units::Duration;

use super::transfer::{
    ConnectionArguments, OutputArguments, PathArguments, TransferReporter, TrustArguments, ending,
    members_pointer, progress_help, sizing_of_path, ticket_help, waiting_time,
};
use super::{Ending, Fallible};
use crate::ends::{has_port, port_out_of_range};
use crate::option_hints::HintVerb;
use crate::own_files;
pub use log::LogOptions;
use log::ServiceLog;
use reporter::ServerReporter;
use sweetspot_program::print::{Shown, system};
use sweetspot_program::usage_error::UsageError;

/// Receive files, or serve named clients
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(group = clap::ArgGroup::new("purpose").required(true))]
#[command(after_help = concat!(
    "\
Examples:
  sweetspot serve --dir incoming
      listens on port 7411 and prints a ticket; give it to the sender
  sweetspot serve --dir incoming --listen 192.0.2.7:9000 --once --json
      receives one transfer, then prints the outcome as JSON
  sweetspot serve --stdout | tar x
      writes to standard output, from `tar c photos | sweetspot send - TICKET`
  sweetspot serve --dir incoming --spoken-code
      prints a code to say on the telephone, for one transfer
  sweetspot serve --clients /etc/sweetspot/clients \\
      --audit /var/log/sweetspot.log
      serves each client in the file from its own directory;
      `sweetspot serve invite` adds a line

",
    ticket_help!(),
    "\n\n",
    progress_help!(),
    "\n\n\
Environment: STATE_DIRECTORY or XDG_STATE_HOME sets the default of --state;
LISTEN_FDS, which systemd sets for a socket unit, replaces --listen.

Exit codes: 0 everything arrived, or SIGTERM or the ticket's expiry ended a
server of many transfers; 23 some files did not arrive, and each is named; 1 the
transfer failed, or did not come before the ticket expired; 2 the command line
is wrong; 128+N signal N ended it.\n\n",
    members_pointer!(),
))]
pub struct ServeArguments {
    /// Directory for received files; created if missing
    ///
    /// Each start makes a new key, so its ticket stops working when the program exits.
    #[arg(long, value_name = "DIR", group = "purpose")]
    dir: Option<PathBuf>,
    /// Write a single file or stream of one sender to standard output; the ticket goes to standard error
    #[arg(long, group = "purpose", conflicts_with_all = ["dir", "json", "force", "dotfiles", "xattrs"])]
    stdout: bool,
    /// Serve the clients in this file, one per line: `KEY NAME dir=/ABSOLUTE/DIR [quota=SIZE]
    /// [rights=read,write,overwrite,dotfiles] [expires=2027-01-31T18:00:00Z] [once]`
    ///
    /// `sweetspot serve key` prints KEY; `serve invite` writes secret:... or code:... in its place. Without rights=, a client may
    /// write. A client that may write creates DIR, but not its parent. Changes take effect within a second; an invalid line is
    /// ignored.
    #[arg(long, value_name = "FILE", group = "purpose", conflicts_with_all = ["dir", "stdout", "force", "dotfiles", "once", "lifetime", "spoken_code"])]
    clients: Option<PathBuf>,
    /// Directory for the service's persistent key, and for used quotas and credentials [default:
    /// ~/.local/state/sweetspot]
    #[arg(long, value_name = "DIR", requires = "clients")]
    state: Option<PathBuf>,
    /// Append a JSON line to this file for each transfer, file and refusal
    ///
    /// Lines have time, client, address, path, bytes and BLAKE3 hash, as far as known. A transfer has a line as it begins and as it
    /// ends.
    #[arg(long, value_name = "FILE")]
    audit: Option<PathBuf>,
    /// Serve Prometheus metrics at this loopback address, such as 127.0.0.1:9478
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = loopback)]
    metrics: Option<SocketAddr>,
    /// Print a short code to read out instead of a ticket, for one transfer
    ///
    /// One wrong attempt invalidates it. With --clients, use `serve invite --spoken-code`.
    #[arg(long)]
    spoken_code: bool,
    /// Address and port to listen on, TCP and UDP; port 0 picks a free one
    #[arg(long, value_name = "ADDR:PORT", default_value = "[::]:7411", value_parser = listening)]
    listen: SocketAddr,
    /// Host name or address in the ticket, if senders reach this host at another address
    ///
    /// Add its port unless that is the one of --listen.
    #[arg(long, value_name = "HOST[:PORT]", value_hint = clap::ValueHint::Hostname)]
    advertise: Option<String>,
    /// Exit after one transfer
    ///
    /// Dry runs, and refusals before anything was written, do not count. With --clients, see `once` there.
    #[arg(long)]
    once: bool,
    /// How long the ticket is valid
    ///
    /// Then the server admits nobody else, and exits when the running transfers have ended. After a broken connection, those may
    /// still resume, within --retry-for. With --clients, see `expires` there.
    #[arg(long, value_name = "DURATION", default_value = "24h", value_parser = lifetime)]
    lifetime: Duration,
    /// Overwrite existing files
    ///
    /// With --clients, see `rights` there, also for --dotfiles.
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    trust: TrustArguments,
    /// How to size the window, whatever the sender requests: sobas, sobas:paper, kernel, fixed:SIZE, max or bdp [default: the
    /// sender's request, else sobas]
    ///
    /// sobas limits the window once a measurement shows that this costs no rate; sobas:paper is the published algorithm; kernel
    /// leaves it to autotuning; max is the largest that the kernel allows; bdp is --path-rate times --path-rtt.
    #[arg(long, value_parser = sizing_of_path(), hide_possible_values = true)]
    sizing: Option<Sizing>,
    #[command(flatten)]
    connections: ConnectionArguments,
    #[command(flatten)]
    path: PathArguments,
    /// Do not probe the path; use the kernel's RTT estimates
    #[arg(long)]
    no_probes: bool,
    #[command(flatten)]
    output: OutputArguments,
    #[command(subcommand)]
    clients_of: Option<ServiceVerb>,
}

/// One-time steps for a client of a service and for its owner.
#[derive(Debug, clap::Subcommand)]
enum ServiceVerb {
    /// Print the key that identifies you to a service
    Key(key::ServeKeyArguments),
    /// Admit a client: print a ticket, or a code to read out, and add a line to the clients file
    Invite(invite::ServeInviteArguments),
}

impl ServeArguments {
    /// Whether standard output receives the content.
    pub fn prints_content(&self) -> bool {
        self.stdout
    }
}

/// The exit code after a signal. For a server of many transfers, SIGTERM from a service manager is the regular end.
fn code_after(signal: Signal, once: bool) -> u8 {
    if signal == Signal::TERMINATE && !once { 0 } else { signal.exit_code() }
}

pub fn run(mut arguments: ServeArguments) -> Ending {
    match arguments.clients_of.take() {
        Some(ServiceVerb::Key(arguments)) => return key::run(arguments),
        Some(ServiceVerb::Invite(arguments)) => return invite::run(arguments),
        None => {}
    }
    let hint_verb = if arguments.clients.is_some() { HintVerb::Service } else { HintVerb::Serve };
    let reporter = arguments.output.reporter(hint_verb)?;
    let log = LogOptions { audit: arguments.audit.clone(), metrics: arguments.metrics };
    if let Some(name) = &arguments.connections.congestion
        && !sysctl::offers_congestion_control(name).unwrap_or(true)
    {
        reporter.remark(&format!(
            "--congestion {name:?}: this kernel does not offer it; transfers fail unless the sender's kernel does"
        ));
    }
    let dir = arguments.dir.clone();
    let options = resolve(arguments, hint_verb)?;
    if let Some(dir) = dir {
        file::make_directory(&dir).map_err(|error| {
            let next = match error.kind() {
                io::ErrorKind::NotFound => "create its parent directory first",
                io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists => "name a directory",
                _ => "name one that you may write to",
            };
            format!("--dir {}: {}; {next}", dir.shown(), system(&error))
        })?;
    }
    serve(options, reporter, &log)
}

/// The identity of a service, which persists across restarts.
pub fn service_identity(state: Option<&Path>) -> Fallible<Identity> {
    Ok(Identity::load_or_make(&identity_file(state)?)?)
}

/// The file of a service's identity.
fn identity_file(state: Option<&Path>) -> Result<PathBuf, String> {
    Ok(state_directory(state)?.join("identity.pem"))
}

fn state_directory(state: Option<&Path>) -> Result<PathBuf, String> {
    state.map_or_else(own_files::state_directory, |state| Ok(state.to_owned()))
}

/// A spoken code with the address of its listener.
pub fn code_address(host: &TicketHost, port: u16, code: &SpokenCode) -> String {
    let code = code.password();
    if port == DEFAULT_PORT { format!("{host}/{code}") } else { format!("{host}:{port}/{code}") }
}

/// Serves until all transfers are done or a signal arrives.
pub fn serve(options: ServeOptions, reporter: TransferReporter, log: &LogOptions) -> Ending {
    process::report_file_size_limit();
    // Signals are blocked before any thread starts, so that only the waiting thread gets them.
    let signals = Supervisor::new()?;
    let log = ServiceLog::start(log)?;
    let greeting = Greeting::of(&options);
    let to_output =
        matches!(&options.purpose, Purpose::Receive(receive) if receive.target == Target::Output);
    let once = options.ends != EndsAfter::Never;
    let server = match Server::bind(options) {
        Ok(server) => Arc::new(server),
        Err(error) => return reporter.finish(Err(error.into())),
    };
    // The ticket is the first line, and flushed at once, because a caller may wait for it.
    let invitation = greeting.invitation(server.ticket());
    if to_output {
        err!("{invitation}");
    } else if reporter.prints_json() {
        let name = if greeting.code.is_some() { "code" } else { "ticket" };
        let mut object = serde_json::json!({ name: invitation });
        if let TicketProof::Secret { expires, .. } = server.ticket().proof {
            object["expires_unix_s"] = (expires.as_nanos() / 1_000_000_000).into();
        }
        out!("{object}");
    } else {
        out!("{invitation}");
    }
    greeting.print(&reporter, &server)?;
    if let Some(clamp_method) = server.clamp_method() {
        reporter.detail(&format!("the receive window is limited by {clamp_method}"));
    }
    let (stopped, code) =
        (Arc::clone(&server), Arc::new(AtomicU8::new(Signal::INTERRUPT.exit_code())));
    let signal_code = Arc::clone(&code);
    // This thread is not joined: it ends with the process.
    thread::spawn(move || stop_on_signal(&stopped, signals, once, &signal_code));
    let reporter = ServerReporter::new(reporter, log);
    match server.run(&reporter) {
        Ok(outcome) => Ok(ending(&outcome)),
        Err(TransferError::Interrupted) => Ok(ExitCode::from(code.load(Ordering::Acquire))),
        // For a server of many transfers, this is the intended end.
        Err(TransferError::TicketExpired(_)) if !once => Ok(ExitCode::SUCCESS),
        Err(error @ TransferError::TicketExpired(_)) => {
            reporter.failed(&error);
            Ok(ExitCode::FAILURE)
        }
        // The reporter has reported it already.
        Err(_) => Ok(ExitCode::FAILURE),
    }
}

/// The lines printed at the start.
struct Greeting {
    lifetime: Duration,
    sends: bool,
    is_service: bool,
    code: Option<SpokenCode>,
    is_advertised: bool,
}

impl Greeting {
    fn of(options: &ServeOptions) -> Greeting {
        Greeting {
            lifetime: options.lifetime,
            sends: matches!(options.purpose, Purpose::Send(_)),
            is_service: matches!(options.purpose, Purpose::Clients(_)),
            code: options.code.clone(),
            is_advertised: options.advertise.is_some(),
        }
    }

    fn invitation(&self, ticket: &Ticket) -> String {
        match &self.code {
            Some(code) => code_address(&ticket.host, ticket.port, code),
            None => ticket.to_string(),
        }
    }

    /// Prints how to use the ticket or code.
    fn print(&self, reporter: &TransferReporter, server: &Server) -> std::io::Result<()> {
        let (address, ticket) = (server.address()?, server.ticket());
        let verbs = match (self.sends, &self.code) {
            (true, _) => "receive",
            (false, Some(_)) => "send",
            (false, None) => "send or measure",
        };
        let given = if self.code.is_some() { "--code and this code" } else { "this ticket" };
        reporter.remark(&if self.is_service {
            format!(
                "listening on {address}; clients that the file lists by key can connect with this ticket"
            )
        } else {
            let within = in_whole_units(self.lifetime);
            format!(
                "listening on {address}; run sweetspot {verbs} on the other host within {within}, with {given}"
            )
        });
        let hidden = matches!(ticket.host, TicketHost::Address(ip) if ip.is_loopback());
        if hidden && !address.ip().is_loopback() {
            let what = if self.code.is_some() { "code" } else { "ticket" };
            reporter.remark(&match self.is_advertised {
                true => format!("--advertise names loopback: other hosts cannot use this {what}"),
                false => format!(
                    "this host has no address that other hosts can reach, so the {what} names loopback; name one \
                     with --advertise HOST"
                ),
            });
        } else if address.ip().is_unspecified() && self.code.is_none() && !self.is_advertised {
            // A code shows its host.
            let (host, port) = (&ticket.host, ticket.port);
            reporter.remark(&format!(
                "the ticket names {host}:{port}; --advertise HOST names another address"
            ));
        }
        Ok(())
    }
}

/// On the first signal, ends the transfers cleanly within [`signals::CLEANING_TIME`]; on the second, at once. `code` receives the
/// exit code.
fn stop_on_signal(server: &Server, mut signals: Supervisor, once: bool, code: &AtomicU8) {
    let mut ending = false;
    while let Ok(event) = signals.next_event() {
        match event {
            ProcessEvent::ChildEnded { .. } => {}
            ProcessEvent::Signal(signal) | ProcessEvent::TerminalSignal(signal) if ending => {
                std::process::exit(signal.exit_code().into())
            }
            ProcessEvent::Signal(signal) | ProcessEvent::TerminalSignal(signal) => {
                ending = true;
                code.store(code_after(signal, once), Ordering::Release);
                signals::end_within(signals::CLEANING_TIME, signal.exit_code());
                server.close();
            }
        }
    }
}

fn resolve(arguments: ServeArguments, hint_verb: HintVerb) -> Fallible<ServeOptions> {
    let receive = ReceiveOptions {
        overwrite: arguments.force,
        attributes: arguments.trust.xattrs,
        dotfiles: arguments.trust.dotfiles,
        sizing: arguments.sizing,
        congestion: arguments.connections.congestion,
        path: arguments.path.resolve(arguments.sizing, hint_verb)?,
        probes: !arguments.no_probes,
        streams: arguments.connections.streams,
        retry_for: arguments.connections.retry_for,
        ..ReceiveOptions::at(arguments.dir.map_or(Target::Output, Target::Into))
    };
    let once = arguments.once || arguments.spoken_code || receive.target == Target::Output;
    let (purpose, identity) = match arguments.clients {
        None => (Purpose::Receive(receive), None),
        Some(clients) => {
            let uses = state_directory(arguments.state.as_deref())?.join("uses.json");
            let send = SendOptions { streams: receive.streams, ..SendOptions::default() };
            let service = ServiceOptions { clients, uses, receive, send };
            let identity = service_identity(arguments.state.as_deref())?;
            (Purpose::Clients(Box::new(service)), Some(identity))
        }
    };
    Ok(ServeOptions {
        listen: arguments.listen,
        advertise: advertise(arguments.advertise.as_deref())?,
        ends: if once && identity.is_none() {
            EndsAfter::FirstNotRefused
        } else {
            EndsAfter::Never
        },
        lifetime: arguments.lifetime,
        identity,
        code: arguments.spoken_code.then(|| draw_code(|_| true)).transpose()?,
        listener: ListenFd::from_env().take_tcp_listener(0)?,
        ..ServeOptions::new(purpose)
    })
}

/// A time in the largest unit that divides its whole seconds: a deadline is never rounded up.
fn in_whole_units(time: Duration) -> String {
    let seconds = time.as_nanos() / 1_000_000_000;
    let units = [(86_400, "day"), (3600, "hour"), (60, "minute"), (1, "second")];
    let exact =
        units.into_iter().find(|(unit, _)| seconds >= *unit && seconds.is_multiple_of(*unit));
    let (unit, name) = exact.unwrap_or((1, "second"));
    match seconds / unit {
        1 => format!("1 {name}"),
        count => format!("{count} {name}s"),
    }
}

/// Parses the validity of a ticket; its end is written in whole seconds.
fn lifetime(text: &str) -> Result<Duration, String> {
    match waiting_time(text)? {
        lifetime if lifetime >= Duration::from_secs(1) => Ok(lifetime),
        _ => Err("expected 1 s or more".to_owned()),
    }
}

/// Parses an address or a name of this host, with a port.
pub fn listening(text: &str) -> Result<SocketAddr, String> {
    const EXAMPLES: &str = "write it like 0.0.0.0:7411, localhost:7411, 192.0.2.7:0 or [::]:7411";
    if let Some(port) = port_out_of_range(text) {
        return Err(format!("expected a port from 0 to 65535, not {port}; {EXAMPLES}"));
    }
    if !has_port(text) {
        return Err(format!("expected ADDRESS:PORT; {EXAMPLES}"));
    }
    let mut found = text.to_socket_addrs().map_err(|error| format!("{error}; {EXAMPLES}"))?;
    found.next().ok_or_else(|| format!("that name has no address; {EXAMPLES}"))
}

/// The host and port of `--advertise`, if given.
pub fn advertise(text: Option<&str>) -> Result<Option<(TicketHost, Option<u16>)>, UsageError> {
    text.map(|text| advertised("--advertise", text)).transpose()
}

/// The value of `option`: `HOST`, `HOST:PORT`, `[v6 address]:PORT` or a bare v6 address.
pub fn advertised(option: &str, text: &str) -> Result<(TicketHost, Option<u16>), UsageError> {
    // An IPv6 address without brackets has no port.
    let bare_v6 = text.parse::<Ipv6Addr>().is_ok();
    if let Some(port) = port_out_of_range(text).filter(|_| !bare_v6) {
        let wrong = format!("expected a port from 1 to 65535, not {port}");
        return Err(UsageError::new(format!("{option} {text}: {wrong}")));
    }
    let bare = TicketHost::parse(text).map(|host| (host, None));
    let (host, port) = bare
        .or_else(|| {
            let (host, port) = text.rsplit_once(':')?;
            Some((TicketHost::parse(host)?, Some(port.parse().ok().filter(|port| *port != 0)?)))
        })
        .ok_or_else(|| {
            let example = "example.org, 192.0.2.7:9000 or [2001:db8::7]:9000";
            UsageError::new(format!(
                "{option} \"{text}\": expected a host; write it like {example}"
            ))
        })?;
    if matches!(&host, TicketHost::Address(ip) if ip.is_unspecified()) {
        let wrong = "expected an address that other hosts can reach; name this host";
        return Err(UsageError::new(format!("{option} {text}: {wrong}")));
    }
    Ok((host, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lifetime_is_printed_without_rounding() {
        let words = |text: &str| in_whole_units(text.parse().unwrap());
        assert_eq!(words("90min"), "90 minutes");
        assert_eq!(words("24h"), "1 day");
        assert_eq!(words("36h"), "36 hours");
        assert_eq!(words("720h"), "30 days");
        assert_eq!(words("100s"), "100 seconds");
        assert_eq!(words("1h"), "1 hour");
    }

    #[test]
    fn an_advertised_host_may_have_a_port() {
        let port = |text: &str| {
            advertised("--advertise", text).ok().map(|(host, port)| (host.to_string(), port))
        };
        assert_eq!(port("example.org"), Some(("example.org".into(), None)));
        assert_eq!(port("192.0.2.7:9000"), Some(("192.0.2.7".into(), Some(9000))));
        assert_eq!(port("2001:db8::7"), Some(("[2001:db8::7]".into(), None)));
        assert_eq!(port("[2001:db8::7]:9000"), Some(("[2001:db8::7]".into(), Some(9000))));
        for wrong in ["", "a b", "host:0", "host:99999", "host:", "0.0.0.0", "[::]:9000"] {
            assert_eq!(port(wrong), None, "{wrong}");
        }
    }
}
