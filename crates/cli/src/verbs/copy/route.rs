//! The routes to the far end: a connection to it, a connection from it, or ssh itself.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;

use sweetspot_control::TransferSummary;
use sweetspot_linux::signals::Signal;
use sweetspot_linux::{clock, interfaces};
use sweetspot_protocol::{Role, Ticket, TicketHost, VERSION};
use sweetspot_transfer::{
    AdmittedTransfer, EndsAfter, ServeOptions, Server, ServerObserver, TransferError,
    TransferObserver, first_reachable,
};
use sweetspot_units::{Bytes, Duration, Time};

use super::CopyArguments;
use super::far_end::{self, FarEnd, Tunnel};
use super::job::{Copied, Job};
use super::messages::{Order, Reply};
use crate::verbs::transfer::TransferReporter;

/// The timeout for a direct connection, in either direction.
pub const DIRECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The time without output from ssh after which this is reported.
const SILENCE: Duration = Duration::from_secs(10);
/// The time allowed for a login, because a user may have to type a password (sshd's LoginGraceTime).
const LOGIN_TIME: Duration = Duration::from_secs(120);
/// The time allowed for reading ssh's configuration after ssh has connected.
const NAME_TIME: Duration = Duration::from_secs(1);
/// After the last data, new connections are tried for this long before ssh is restarted. Up to 30 s of it may pass before the
/// path counts as broken.
const INNER_RETRY: Duration = Duration::from_secs(50);
/// The first pause before ssh is restarted; it doubles each time.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Which connections carry the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Route {
    Auto,
    Direct,
    Reverse,
    Ssh,
}

impl Route {
    fn tries(self, route: Route) -> bool {
        self == Route::Auto || self == route
    }
}

/// Copies between this host and `host`, where the far end has `role`. If ssh itself breaks, it is restarted.
pub fn copy_with(
    job: &Job,
    arguments: &CopyArguments,
    host: &str,
    role: Role,
    reporter: &TransferReporter,
) -> Copied {
    if role == Role::Receiver {
        // Report missing files before ssh asks for a password.
        job.check_sources()?;
    }
    let patience = arguments.connections.retry_for;
    let begin = clock::now();
    let (mut lost, mut kept) = (None, Bytes::ZERO);
    let (mut pause, mut attempts) = (FIRST_PAUSE, 0);
    loop {
        let error = match copy_once(job, arguments, host, role, reporter) {
            Err(Failure { error, path: true }) if attempts > 0 || error.is::<TransferError>() => {
                error
            }
            Err(failure) => return Err(failure.error),
            Ok(outcome) => {
                if attempts == 0 {
                    return Ok(outcome);
                }
                let reconnects = outcome.reconnects + attempts;
                let summary = outcome.after(kept, clock::now().since(begin));
                return Ok(TransferSummary { reconnects, ..summary });
            }
        };
        let path = reporter.take_path();
        if path.moved > Bytes::ZERO {
            // Content moved, so the time limit starts again at the last data.
            (lost, pause) = (path.lost, FIRST_PAUSE);
            kept += path.moved;
        }
        let since = *lost.get_or_insert_with(|| path.lost.unwrap_or_else(clock::now));
        if !job.can_be_repeated() {
            return Err(error);
        }
        let reason = reason_in_copy(error);
        if clock::now() + pause >= since + patience {
            let kept = Some(kept).filter(|kept| *kept > Bytes::ZERO);
            return Err(TransferError::GaveUp { reason, patience, kept }.into());
        }
        reporter.print(&format!("{reason}; restarting ssh in {pause}"));
        clock::sleep_until(clock::now() + pause);
        pause = (pause * 2).min(LONGEST_PAUSE);
        attempts += 1;
    }
}

/// The reason for a new attempt. The wording avoids tickets and a manual restart, which a copy does not need.
fn reason_in_copy(error: Box<dyn std::error::Error>) -> String {
    match error.downcast_ref::<TransferError>() {
        Some(error) if error.is_of_the_program() => {
            "the program at the far end has ended".to_owned()
        }
        Some(error) => error.without_restart(),
        None => error.to_string(),
    }
}

/// The error of a failed attempt, and whether the path caused it.
struct Failure {
    error: Box<dyn std::error::Error>,
    path: bool,
}

impl<E: Into<Box<dyn std::error::Error>>> From<E> for Failure {
    fn from(error: E) -> Failure {
        let error = error.into();
        let path = match error.downcast_ref::<TransferError>() {
            // A new ssh connection starts a new far end.
            Some(error) => error.is_of_the_path() || error.is_of_the_program(),
            None => error
                .downcast_ref::<far_end::SshEnded>()
                .is_some_and(|ended| ended.is_of_the_path()),
        };
        Failure { error, path }
    }
}

fn copy_once(
    job: &Job,
    arguments: &CopyArguments,
    host: &str,
    role: Role,
    reporter: &TransferReporter,
) -> Result<TransferSummary, Failure> {
    let mut far_end =
        FarEnd::start(&arguments.ssh, arguments.jump.as_deref(), host, &arguments.remote_program)?;
    far_end.write_message(&job.request(role, arguments))?;
    let via = arguments.via;
    let Listening { ticket, hosts, client } =
        wait_for_far_end(&mut far_end, arguments, host, reporter)?;
    if via.tries(Route::Direct) {
        let tickets = hosts.into_iter().map(|host| Ticket { host, ..ticket.clone() });
        if let Some(contact) = first_reachable(&tickets.collect::<Vec<_>>(), DIRECT_TIMEOUT) {
            reporter.detail(&format!("connected to {contact}"));
            let inner = INNER_RETRY.min(arguments.connections.retry_for);
            let moved = job.move_over(&contact, role, inner, false, reporter)?;
            far_end.close();
            return Ok(moved);
        }
        if via == Route::Direct {
            return Err(format!(
                "cannot connect to {host} on port {}: open the port in its firewall (--port selects one), or use --via auto",
                ticket.port
            )
            .into());
        }
    }
    if via.tries(Route::Reverse) {
        if let Some(moved) = reverse(job, arguments, &mut far_end, client, role, reporter)? {
            far_end.close();
            return Ok(moved);
        }
        if via == Route::Reverse {
            return Err("the far end cannot connect to this host; use --via auto".into());
        }
    }
    reporter.print(&match via {
        Route::Ssh => {
            "data goes through ssh, as requested; ssh's own window limits the rate on long paths".to_owned()
        }
        _ => format!(
            "no connection to {host} or from it (a firewall?): data goes through ssh, which limits the rate on long \
             paths; open a port there and give it with --port"
        ),
    });
    far_end.write_message(&Order::Tunnel)?;
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

struct Listening {
    ticket: Ticket,
    /// The far end's name and its addresses.
    hosts: Vec<TicketHost>,
    client: Option<IpAddr>,
}

fn wait_for_far_end(
    far_end: &mut FarEnd,
    arguments: &CopyArguments,
    host: &str,
    reporter: &TransferReporter,
) -> Result<Listening, Failure> {
    let name = arguments.via.tries(Route::Direct).then(|| spawn_name_lookup(arguments, host));
    let reply = read_first_reply(far_end, arguments, host, reporter)?;
    let name = name.and_then(|name| name.recv_timeout(NAME_TIME.into()).ok()).flatten();
    match reply {
        Reply::Listening { version, .. } if version != VERSION => {
            Err(TransferError::Version { peer: host.to_owned(), theirs: version }.into())
        }
        Reply::Listening { ticket, addresses, client, .. } => {
            let hosts = name.into_iter().chain(addresses.into_iter().map(TicketHost::Address));
            Ok(Listening { ticket: ticket.parse()?, hosts: hosts.collect(), client })
        }
        Reply::Failed { reason } => Err(TransferError::Refused(reason).into()),
        Reply::Connected => Err("the far end sent an unexpected reply".into()),
    }
}

/// Reads the host's name from ssh's configuration while ssh connects, which takes several RTTs.
fn spawn_name_lookup(arguments: &CopyArguments, host: &str) -> mpsc::Receiver<Option<TicketHost>> {
    let (ssh, jump, host) = (arguments.ssh.clone(), arguments.jump.clone(), host.to_owned());
    let (found, name) = mpsc::channel();
    thread::spawn(move || found.send(far_end::name_of(&ssh, jump.as_deref(), &host)));
    name
}

/// The far end's first message. Reports a silent ssh, and ends it if it stays silent.
fn read_first_reply(
    far_end: &mut FarEnd,
    arguments: &CopyArguments,
    host: &str,
    reporter: &TransferReporter,
) -> Result<Reply, Failure> {
    let (answered, waits) = mpsc::channel::<()>();
    let (id, ssh) = (far_end.ssh_id(), &arguments.ssh);
    let patience = arguments.connections.retry_for.max(LOGIN_TIME);
    let words = format!("ssh to {host} has not started {} there", arguments.remote_program);
    let (reply, gave_up) = thread::scope(|scope| {
        let words = &words;
        let waiting = scope.spawn(move || {
            let is_silent = |time: Duration| {
                waits.recv_timeout(time.into()) == Err(RecvTimeoutError::Timeout)
            };
            if !is_silent(SILENCE) {
                return false;
            }
            reporter.remark(&format!(
                "{words} after {SILENCE}; waiting for up to {patience} (`{ssh} {host}` by itself may show why)"
            ));
            let gives_up = is_silent(patience.saturating_sub(SILENCE));
            if let Some(id) = id.filter(|_| gives_up) {
                Signal::TERMINATE.send(id);
            }
            gives_up
        });
        let reply = far_end.read_message();
        drop(answered);
        (reply, waiting.join().unwrap_or(false))
    });
    if gave_up {
        return Err(format!("{words} within {patience}; try `{ssh} {host}` by itself").into());
    }
    Ok(reply?)
}

/// Makes the far end connect to this one; `None` if it cannot.
fn reverse(
    job: &Job,
    arguments: &CopyArguments,
    far_end: &mut FarEnd,
    client: Option<IpAddr>,
    role: Role,
    reporter: &TransferReporter,
) -> Result<Option<TransferSummary>, Failure> {
    let server = Arc::new(Server::bind(ServeOptions {
        listen: (std::net::Ipv6Addr::UNSPECIFIED, 0).into(),
        ends: EndsAfter::First,
        lifetime: Duration::from_secs(3600),
        ..ServeOptions::new(job.purpose(role, INNER_RETRY.min(arguments.connections.retry_for))?)
    })?);
    let admitted = Arc::new(AtomicBool::new(false));
    let own = interfaces::addresses().unwrap_or_default();
    let addresses = client.into_iter().chain(own);
    let ticket = |address| {
        Ticket { host: TicketHost::Address(address), ..server.ticket().clone() }.to_string()
    };
    far_end.write_message(&Order::Connect { tickets: addresses.map(ticket).collect() })?;
    let server = &server;
    thread::scope(|scope| {
        let observer = OneTransfer { reporter, admitted: &admitted };
        let served = scope.spawn(move || server.run(&observer));
        match far_end.read_message() {
            Ok(Reply::Connected) => {
                reporter.detail("the far end connected to this one");
                // An admitted transfer may resume after its connection breaks, so the server waits as long as that is
                // allowed.
                let (stopped, admitted) = (Arc::clone(server), Arc::clone(&admitted));
                far_end.on_end(move || {
                    if !admitted.load(Ordering::Acquire) {
                        stopped.stop();
                    }
                });
            }
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
        let moved = served.join().unwrap_or(Err(TransferError::Interrupted));
        if !admitted.load(Ordering::Acquire) {
            return Err(far_end.ended().into());
        }
        Ok(Some(moved?))
    })
}

/// Observes the single transfer of a server, for `copy`.
struct OneTransfer<'a> {
    reporter: &'a TransferReporter,
    admitted: &'a AtomicBool,
}

impl ServerObserver for OneTransfer<'_> {
    fn admitted(&self, transfer: AdmittedTransfer<'_>) -> Box<dyn TransferObserver> {
        self.admitted.store(true, Ordering::Release);
        self.reporter.observer(transfer.number)
    }

    fn interrupted(&self, _number: u64, error: &TransferError) {
        let silence = match error {
            TransferError::Silent { patience, .. } => patience.as_nanos(),
            _ => 0,
        };
        let since = clock::now().as_nanos().saturating_sub(silence);
        self.reporter.lost(Time::from_nanos(since));
    }

    fn ended(&self, _number: u64, _result: &Result<TransferSummary, TransferError>) {}

    fn rejected(&self, _peer: SocketAddr, _client: Option<&str>, error: &TransferError) {
        self.reporter.detail(&error.to_string());
    }
}
