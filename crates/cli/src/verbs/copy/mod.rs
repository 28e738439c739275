//! `copy`: files and directories to and from a host that ssh reaches, in scp's and rsync's notation.

mod endpoint;
mod far_end;
mod messages;
mod operand;

use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::thread;

use sweetspot_control::TransferSummary;
use sweetspot_linux::{clock, interfaces};
use sweetspot_protocol::{Role, Ticket, TicketHost, VERSION};
use sweetspot_sizing::Sizing;
use sweetspot_transfer::{
    Asked, Contact, Delete, NamedThings, Purpose, ReceiveOptions, SendOptions, ServeOptions,
    Server, ServerObserver, Sources, Target, TransferError, TransferObserver, first_reachable,
    receive, send,
};
use sweetspot_units::{Duration, Rate};

pub use endpoint::{Arguments as EndpointArguments, run as run_endpoint};
use far_end::{FarEnd, Tunnel};
use messages::{Deletion, Order, PathText, Reply, Request};
pub use operand::Operand;

use super::Ending;
use super::send::ChoiceArguments;
use super::transfer::{ConnectionArguments, OutputArguments, TransferReporter};
use sweetspot_program::{usage_error, values};

/// How long an attempt to connect directly may take, in either direction.
const DIRECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a broken path is waited for before ssh is started anew.
const INNER_RETRY: Duration = Duration::from_secs(20);
/// How long the far end waits for a broken path: longer than this end, which then starts another far end. It ends sooner
/// with its ssh; this is for a path that breaks without a word to either.
const FAR_RETRY: Duration = Duration::from_secs(40);
/// The pause before ssh is started anew; it doubles.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// `sweetspot copy` as typed.
#[derive(Debug, clap::Args)]
#[command(override_usage = "sweetspot copy [OPTIONS] SOURCE... DESTINATION")]
#[command(after_help = "\
Examples:
  sweetspot copy results.tar backup.example.org:
      a file into the home directory there
  sweetspot copy -J gate photos me@nas:archive/
      a directory, by way of a jump host
  sweetspot copy nas:archive/photos/ here
      what is in that directory, into the directory here
  sweetspot copy --dry-run --checksum src host:src
      what would be copied, by contents

The far end needs ssh and sweetspot. Data goes over connections of its own; where
a firewall stops them, the far end connects to this one; where that is stopped,
too, data goes through ssh.

Exit codes: 0 everything is there; 23 some files are not, each named; 1 the copy
failed; 2 the command line is wrong.")]
pub struct Arguments {
    /// Sources, then the destination: PATH, HOST:PATH or USER@HOST:PATH. A directory with `/` at its end stands for its
    /// contents
    #[arg(required = true, num_args = 2.., value_name = "PATH")]
    operands: Vec<OsString>,
    #[command(flatten)]
    choice: ChoiceArguments,
    /// In the copied directories, delete files that the sources lack, once everything has arrived
    #[arg(long, conflicts_with_all = ["files_from", "keep_existing"])]
    delete: bool,
    /// Keep owners and groups, by name where the receiving host knows it; the receiving end must run as root
    #[arg(long)]
    owners: bool,
    /// Never compress; by default pieces that shrink are compressed while the path is slower than this host
    #[arg(long)]
    no_compress: bool,
    /// Most that all connections together may carry, such as 20Mbit/s
    #[arg(long, value_name = "RATE", value_parser = rate_limit)]
    bwlimit: Option<Rate>,
    /// Leave existing files alone
    #[arg(long)]
    keep_existing: bool,
    /// List the files that would be copied, and copy nothing
    #[arg(long, short = 'n')]
    dry_run: bool,
    /// Command that runs ssh, with its options
    #[arg(long, value_name = "COMMAND", default_value = "ssh", env = "SWEETSPOT_SSH")]
    ssh: String,
    /// Jump host, as for ssh
    #[arg(short = 'J', long, value_name = "HOST", value_hint = clap::ValueHint::Hostname)]
    jump: Option<String>,
    /// Command that runs sweetspot at the far end
    #[arg(long, value_name = "COMMAND", default_value = "sweetspot")]
    remote_program: String,
    /// Port that the far end listens on, if only some pass its firewall [default: any]
    #[arg(long, default_value_t = 0, hide_default_value = true)]
    port: u16,
    /// Which connections to try: auto, direct (to the far end), reverse (from it), ssh (through ssh)
    #[arg(long, value_name = "WAY", default_value = "auto")]
    via: Route,
    /// How to size the window: kernel, fixed:SIZE, max, sobas or sobas:paper [default: sobas]
    #[arg(long, value_parser = values::sizing::<Sizing>(), hide_possible_values = true)]
    sizing: Option<Sizing>,
    #[command(flatten)]
    connections: ConnectionArguments,
    #[command(flatten)]
    output: OutputArguments,
}

/// Which connections carry the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Route {
    Auto,
    Direct,
    Reverse,
    Ssh,
}

impl Route {
    fn tries(self, way: Route) -> bool {
        self == Route::Auto || self == way
    }
}

/// One copy, both ends known.
struct Job {
    sources: Sources,
    target: PathBuf,
    /// The requested files, if this end receives.
    asked: Asked,
    delete: Option<Delete>,
    checksum: bool,
    keep_existing: bool,
    dry_run: bool,
    compress: bool,
    rate_limit: Option<Rate>,
    sizing: Option<Sizing>,
    congestion: Option<String>,
    streams: Option<u32>,
}

pub fn run(arguments: Arguments) -> Ending {
    let reporter = arguments.output.reporter()?;
    let operands = arguments.operands.iter().map(|text| Operand::parse(text));
    let mut operands: Vec<Operand> = operands.collect::<Result<_, _>>()?;
    let Some(destination) = operands.pop() else { return Err("name what to copy".into()) };
    let (host, paths) = one_host(operands)?;
    let (far, target) = match (host, destination) {
        (Some(_), Operand::There { .. }) => {
            return Err("both ends are on other hosts: run `sweetspot copy` on one of them".into());
        }
        (Some(host), Operand::Here(target)) => (Some((host, Role::Sender)), target),
        (None, Operand::There { host, path }) => (Some((host, Role::Receiver)), path),
        (None, Operand::Here(target)) => (None, target),
    };
    let asked = match &far {
        Some((_, Role::Sender)) => {
            match NamedThings::at(paths.iter().map(PathBuf::as_path), arguments.dry_run) {
                Ok(things) => Asked::Named(Box::new(things)),
                Err(error) => return Ok(usage_error::said(&error.to_string())),
            }
        }
        _ => Asked::Anything,
    };
    let contents = match &far {
        Some((_, Role::Sender)) => paths.iter().any(|path| NamedThings::stands_for_contents(path)),
        _ => false,
    };
    let sources = Sources { owners: arguments.owners, ..arguments.choice.sources(paths, None)? };
    let delete = arguments.delete.then(|| Delete { contents, keep: sources.exclude.clone() });
    let mut job = Job {
        sources,
        target,
        asked,
        delete,
        checksum: arguments.choice.checksum,
        keep_existing: arguments.keep_existing,
        dry_run: arguments.dry_run,
        compress: !arguments.no_compress,
        rate_limit: arguments.bwlimit,
        sizing: arguments.sizing,
        congestion: arguments.connections.congestion.clone(),
        streams: arguments.connections.streams,
    };
    if let (Some(delete), None | Some((_, Role::Receiver))) = (&mut job.delete, &far) {
        delete.contents = job.sources.are_contents()?;
    }
    let copied = match &far {
        None => job.copy_here(&reporter),
        Some((host, role)) => copy_with(&job, &arguments, host, *role, &reporter)
            .map_err(|error| job.with_target(error, host, *role)),
    };
    for would in copied.iter().flat_map(|outcome| &outcome.would_move) {
        reporter.print(&format!("would copy {would}"));
    }
    for name in copied.iter().flat_map(|outcome| &outcome.deleted) {
        if arguments.dry_run {
            reporter.print(&format!("would delete {name}"));
        } else {
            reporter.detail(&format!("deleted {name}"));
        }
    }
    reporter.finish(copied)
}

/// A limit of the rate.
fn rate_limit(text: &str) -> Result<Rate, String> {
    match text.parse::<Rate>() {
        Ok(rate) if rate > Rate::ZERO => Ok(rate),
        Ok(_) => Err("it must be more than zero".into()),
        Err(error) => Err(error.to_string()),
    }
}

type Copied = Result<TransferSummary, Box<dyn std::error::Error>>;

/// The host that all sources are on, `None` for this one, and their paths.
fn one_host(sources: Vec<Operand>) -> Result<(Option<String>, Vec<PathBuf>), String> {
    let mut hosts = Vec::new();
    let mut paths = Vec::new();
    for source in sources {
        let (host, path) = match source {
            Operand::Here(path) => (None, path),
            Operand::There { host, path } => (Some(host), path),
        };
        hosts.push(host);
        paths.push(path);
    }
    let first = hosts.first().cloned().flatten();
    if hosts.iter().any(|host| *host != first) {
        return Err("the sources are on several hosts: copy from one after the other".into());
    }
    Ok((first, paths))
}

/// Copies between this host and `host`, where the far end has `role`. When ssh itself breaks it is started anew.
fn copy_with(
    job: &Job,
    arguments: &Arguments,
    host: &str,
    role: Role,
    reporter: &TransferReporter,
) -> Copied {
    if role == Role::Receiver {
        // Report missing files before ssh asks for a password.
        job.check_sources()?;
    }
    let mut give_up = clock::now() + arguments.connections.retry_for;
    let (mut pause, mut attempts) = (FIRST_PAUSE, 0);
    loop {
        let started = clock::now();
        let error = match copy_once(job, arguments, host, role, reporter) {
            Err(Failure { error, path: true }) if attempts > 0 || error.is::<TransferError>() => {
                error
            }
            Err(failure) => return Err(failure.error),
            Ok(mut outcome) => {
                outcome.reconnects += attempts;
                return Ok(outcome);
            }
        };
        if clock::now().since(started) > INNER_RETRY * 2 {
            // It moved for a while: the time to go on begins anew.
            (give_up, pause) = (clock::now() + arguments.connections.retry_for, FIRST_PAUSE);
        }
        if clock::now() + pause >= give_up || !job.can_be_repeated() {
            return Err(error);
        }
        reporter.print(&format!("{error}; starting ssh again in {pause}"));
        clock::sleep_until(clock::now() + pause);
        pause = (pause * 2).min(LONGEST_PAUSE);
        attempts += 1;
    }
}

/// Why an attempt failed, and whether the path did.
struct Failure {
    error: Box<dyn std::error::Error>,
    path: bool,
}

impl<E: Into<Box<dyn std::error::Error>>> From<E> for Failure {
    fn from(error: E) -> Failure {
        let error = error.into();
        let path = match error.downcast_ref::<TransferError>() {
            Some(error) => error.is_of_the_path(),
            None => error
                .downcast_ref::<far_end::SshEnded>()
                .is_some_and(|ended| ended.is_of_the_path()),
        };
        Failure { error, path }
    }
}

fn copy_once(
    job: &Job,
    arguments: &Arguments,
    host: &str,
    role: Role,
    reporter: &TransferReporter,
) -> Result<TransferSummary, Failure> {
    let mut far_end =
        FarEnd::start(&arguments.ssh, arguments.jump.as_deref(), host, &arguments.remote_program)?;
    far_end.say(&job.request(role, arguments))?;
    let via = arguments.via;
    let Listening { ticket, hosts, client } = wait_for_far_end(&mut far_end, arguments, host)?;
    if via.tries(Route::Direct) {
        let tickets = hosts.into_iter().map(|host| Ticket { host, ..ticket.clone() });
        if let Some(contact) = first_reachable(&tickets.collect::<Vec<_>>(), DIRECT_TIMEOUT) {
            reporter.detail(&format!("connected to {contact}"));
            let moved = job.move_over(&contact, role, INNER_RETRY, false, reporter)?;
            far_end.close();
            return Ok(moved);
        }
        if via == Route::Direct {
            return Err(format!(
                "no connection to {host} on port {}: open it in its firewall (--port chooses it), or leave --via at auto",
                ticket.port
            )
            .into());
        }
    }
    if via.tries(Route::Reverse) {
        if let Some(moved) = reverse(job, &mut far_end, client, role, reporter)? {
            far_end.close();
            return Ok(moved);
        }
        if via == Route::Reverse {
            return Err("the far end cannot connect to this host; leave --via at auto".into());
        }
    }
    reporter.print(&match via {
        Route::Ssh => {
            "data goes through ssh, as you chose; its own window limits it on long paths".to_owned()
        }
        _ => format!(
            "no connection to {host} or from it (a firewall?): data goes through ssh, whose own window limits it on long \
             paths; open a port there and name it with --port"
        ),
    });
    far_end.say(&Order::Tunnel)?;
    let tunnel = Tunnel::open(far_end)?;
    let ticket = Ticket {
        host: TicketHost::Address(IpAddr::V4(Ipv4Addr::LOCALHOST)),
        port: tunnel.port(),
        ..ticket
    };
    let moved = job.move_over(&ticket.into(), role, Duration::ZERO, true, reporter);
    tunnel.close();
    Ok(moved?)
}

/// A far end that listens.
struct Listening {
    ticket: Ticket,
    /// Its name and its addresses.
    hosts: Vec<TicketHost>,
    /// The address from which ssh came.
    client: Option<IpAddr>,
}

fn wait_for_far_end(
    far_end: &mut FarEnd,
    arguments: &Arguments,
    host: &str,
) -> Result<Listening, Failure> {
    let (ssh, jump) = (&arguments.ssh, arguments.jump.as_deref());
    // While ssh connects, which takes several round trips.
    let (heard, name) = thread::scope(|scope| {
        let is_direct = arguments.via.tries(Route::Direct);
        let name =
            scope.spawn(move || is_direct.then(|| far_end::name_of(ssh, jump, host)).flatten());
        (far_end.hear(), name.join().ok().flatten())
    });
    match heard? {
        Reply::Listening { version, .. } if version != VERSION => {
            Err(TransferError::Version { peer: host.to_owned(), theirs: version }.into())
        }
        Reply::Listening { ticket, addresses, client, .. } => {
            let hosts = name.into_iter().chain(addresses.into_iter().map(TicketHost::Address));
            Ok(Listening { ticket: ticket.parse()?, hosts: hosts.collect(), client })
        }
        Reply::Failed { reason } => Err(TransferError::Refused(reason).into()),
        Reply::Connected => Err("the far end spoke out of turn".into()),
    }
}

/// Lets the far end connect to this one; `None` if it cannot.
fn reverse(
    job: &Job,
    far_end: &mut FarEnd,
    client: Option<IpAddr>,
    role: Role,
    reporter: &TransferReporter,
) -> Result<Option<TransferSummary>, Failure> {
    let server = Server::bind(ServeOptions {
        listen: (std::net::Ipv6Addr::UNSPECIFIED, 0).into(),
        once: true,
        lifetime: Duration::from_secs(3600),
        ..ServeOptions::new(job.purpose(role, INNER_RETRY)?)
    })?;
    let own = interfaces::addresses().unwrap_or_default();
    let addresses = client.into_iter().chain(own);
    let ticket = |address| {
        Ticket { host: TicketHost::Address(address), ..server.ticket().clone() }.to_string()
    };
    far_end.say(&Order::Connect { tickets: addresses.map(ticket).collect() })?;
    thread::scope(|scope| {
        let served = scope.spawn(|| server.run(&OneTransfer(reporter)));
        match far_end.hear() {
            Ok(Reply::Connected) => reporter.detail("the far end connected to this one"),
            Ok(_) => {
                server.stop();
                let _ = served.join();
                return Ok(None);
            }
            Err(error) => {
                server.stop();
                let _ = served.join();
                return Err(error.into());
            }
        }
        let moved = served.join().unwrap_or(Err(TransferError::Interrupted))?;
        Ok(moved)
    })
}

impl Job {
    /// A refusal by the receiver names no path of its host: this end knows which one it asked for.
    fn with_target(
        &self,
        error: Box<dyn std::error::Error>,
        host: &str,
        role: Role,
    ) -> Box<dyn std::error::Error> {
        match error.downcast::<TransferError>().map(|error| *error) {
            Ok(TransferError::Refused(reason)) if role == Role::Receiver => {
                let reason = format!("{host}:{}: {}", self.target.display(), reason.raw());
                TransferError::Refused(reason.into()).into()
            }
            Ok(error) => error.into(),
            Err(error) => error,
        }
    }

    fn can_be_repeated(&self) -> bool {
        !self.sources.paths.iter().any(|path| path == Path::new("-"))
    }

    fn check_sources(&self) -> Result<(), TransferError> {
        self.sources.check()
    }

    fn send_options(&self, retry_for: Duration, tunnelled: bool) -> SendOptions {
        SendOptions {
            sources: self.sources.clone(),
            checksum: self.checksum,
            dry_run: self.dry_run,
            compress: self.compress,
            rate_limit: self.rate_limit,
            sizing: if tunnelled { Some(Sizing::Kernel) } else { self.sizing },
            congestion: self.congestion.clone().filter(|_| !tunnelled),
            streams: if tunnelled { Some(1) } else { self.streams },
            probes: !tunnelled,
            retry_for,
            ..SendOptions::default()
        }
    }

    fn receive_options(&self, retry_for: Duration, tunnelled: bool) -> ReceiveOptions {
        ReceiveOptions {
            asked: self.asked.clone(),
            overwrite: !self.keep_existing,
            attributes: self.sources.attributes,
            owners: self.sources.owners,
            delete: self.delete.clone(),
            dotfiles: true,
            outward_links: true,
            sizing: if tunnelled { Some(Sizing::Kernel) } else { self.sizing },
            streams: if tunnelled { Some(1) } else { self.streams },
            retry_for,
            ..ReceiveOptions::at(Target::At(self.target.clone()))
        }
    }

    /// The role of this end while it listens.
    fn purpose(&self, far: Role, retry_for: Duration) -> Result<Purpose, TransferError> {
        Ok(match far {
            Role::Receiver => Purpose::Send(Box::new(self.send_options(retry_for, false))),
            Role::Sender => Purpose::Receive(self.receive_options(retry_for, false)),
        })
    }

    /// Moves everything over a connection to `contact`; `far` is the role of its peer.
    fn move_over(
        &self,
        contact: &Contact,
        far: Role,
        retry_for: Duration,
        tunnelled: bool,
        reporter: &TransferReporter,
    ) -> Result<TransferSummary, TransferError> {
        let mut observer = reporter.observer(1);
        match far {
            Role::Receiver => {
                send(contact, &self.send_options(retry_for, tunnelled), observer.as_mut())
            }
            Role::Sender => {
                receive(contact, &self.receive_options(retry_for, tunnelled), observer.as_mut())
            }
        }
    }

    fn request(&self, role: Role, arguments: &Arguments) -> Request {
        let sends = role == Role::Sender;
        let sources = self.sources.paths.iter().filter(|_| sends);
        let only = self.sources.only.as_ref().filter(|_| sends);
        Request {
            version: VERSION,
            role,
            sources: sources.map(|path| PathText::from(path.as_path())).collect(),
            only: only.map(|only| only.iter().map(|path| PathText::from(path.as_path())).collect()),
            target: (!sends).then(|| PathText::from(self.target.as_path())),
            exclude: self.sources.exclude.clone(),
            attributes: self.sources.attributes,
            owners: self.sources.owners,
            delete: self
                .delete
                .as_ref()
                .filter(|_| !sends)
                .map(|delete| Deletion { contents: delete.contents }),
            compress: self.compress,
            rate_limit_bps: self.rate_limit.filter(|_| sends).map(Rate::bits_per_second),
            checksum: self.checksum,
            keep_existing: self.keep_existing,
            dry_run: self.dry_run,
            sizing: self.sizing.map(|sizing| sizing.to_string()),
            congestion: self.congestion.clone(),
            streams: self.streams,
            port: arguments.port,
            retry_for_s: arguments.connections.retry_for.min(FAR_RETRY).as_nanos() / 1_000_000_000,
        }
    }

    /// Copies on this host, from one thread to another.
    fn copy_here(&self, reporter: &TransferReporter) -> Copied {
        let options = ServeOptions {
            listen: (Ipv4Addr::LOCALHOST, 0).into(),
            once: true,
            lifetime: Duration::from_secs(60),
            ..ServeOptions::new(self.purpose(Role::Sender, Duration::ZERO)?)
        };
        let server = Server::bind(options)?;
        thread::scope(|scope| {
            let served = scope.spawn(|| server.run(&Unwatched));
            let ticket = server.ticket();
            let contact = ticket.clone().into();
            let moved = self.move_over(&contact, Role::Receiver, Duration::ZERO, false, reporter);
            server.stop();
            let _ = served.join();
            Ok(moved?)
        })
    }
}

/// Watches the one transfer of a server, as `copy` does.
struct OneTransfer<'a>(&'a TransferReporter);

impl ServerObserver for OneTransfer<'_> {
    fn admitted(&self, number: u64, _peer: SocketAddr) -> Box<dyn TransferObserver> {
        self.0.observer(number)
    }

    fn ended(&self, _number: u64, _result: &Result<TransferSummary, TransferError>) {}

    fn turned_away(&self, error: &TransferError) {
        self.0.detail(&error.to_string());
    }
}

/// Watches nothing.
struct Unwatched;

impl ServerObserver for Unwatched {
    fn admitted(&self, _number: u64, _peer: SocketAddr) -> Box<dyn TransferObserver> {
        Box::new(sweetspot_transfer::NullObserver)
    }

    fn ended(&self, _number: u64, _result: &Result<TransferSummary, TransferError>) {}

    fn turned_away(&self, _error: &TransferError) {}
}
