//! The far end of `copy`, started through ssh: it listens, connects, or passes data through its standard input and output.
//!
//! It ends when its standard input does. The near end closes that when it ends, whatever the signal, and sshd when the
//! connection is lost. An interrupted transfer resumes over a new ssh connection, from the files on disk.

use std::io::{self, BufReader, Read};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{self, ExitCode};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, Scope};

use sweetspot_linux::{interfaces, signals};
use sweetspot_protocol::{Role, Ticket, VERSION};
use sweetspot_transfer::{
    Contact, Delete, EndsAfter, NullObserver, Purpose, ReceiveOptions, SendOptions, ServeOptions,
    Server, Sources, Target, TransferError, first_reachable, receive, send,
};
use sweetspot_units::{Duration, Rate};

use super::far_end::pump_both;
use super::job::Unwatched;
use super::messages::{self, Deletion, Order, Reply, Request};
use super::route::DIRECT_TIMEOUT;
use crate::verbs::{Ending, Fallible};

/// `sweetspot endpoint` as typed, by `sweetspot copy`.
#[derive(Debug, clap::Args)]
pub struct EndpointArguments {}

pub fn run(_arguments: EndpointArguments) -> Ending {
    let mut input = BufReader::new(io::stdin());
    let Some(request) = messages::read_message::<Request>(&mut input)? else {
        return Err("this is the far end of `sweetspot copy`, which starts it by ssh".into());
    };
    let fail = |error: &dyn std::error::Error| {
        let reason = error.to_string().into();
        messages::write_message(io::stdout(), &Reply::Failed { reason })
    };
    if request.version != VERSION {
        fail(&TransferError::Version { peer: "the other end".into(), theirs: request.version })?;
        return Ok(ExitCode::FAILURE);
    }
    let server = match listen(&request) {
        Ok(server) => server,
        Err(error) => {
            fail(error.as_ref())?;
            return Ok(ExitCode::FAILURE);
        }
    };
    // The receiver gets only the number of missing sources; ssh carries their names to the user.
    for why in missing(&request) {
        err!("sweetspot: {why}");
    }
    let (client, own) = ssh_addresses();
    let mut addresses: Vec<IpAddr> = own.into_iter().collect();
    addresses.extend(interfaces::addresses().unwrap_or_default());
    let ticket = server.ticket().to_string();
    messages::write_message(
        io::stdout(),
        &Reply::Listening { version: VERSION, ticket, addresses, client },
    )?;
    // Whether everything was moved over a connection that this end made.
    let connected = Mutex::new(None);
    thread::scope(|scope| {
        let (server, connected, request) = (&server, &connected, &request);
        scope.spawn(move || {
            follow_orders(&mut input, server, request, connected, scope);
            // The near end has ended or has everything it wanted, so this end must not continue.
            signals::end_within(signals::CLEANING_TIME, FAILED);
            server.stop();
        });
        let served = server.run(&Unwatched).is_ok();
        let connected = *connected.lock().unwrap_or_else(PoisonError::into_inner);
        // Standard input may stay open, so its reader is not waited for.
        process::exit(i32::from(!connected.unwrap_or(served)))
    })
}

/// The exit code of a copy that did not move everything.
const FAILED: u8 = 1;

/// Carries out orders until standard input ends. `connected` notes whether everything moved over a connection that this end
/// made.
fn follow_orders<'scope>(
    input: &mut BufReader<io::Stdin>,
    server: &'scope Server,
    request: &'scope Request,
    connected: &'scope Mutex<Option<bool>>,
    scope: &'scope Scope<'scope, '_>,
) {
    while let Some(order) = messages::read_message::<Order>(&mut *input).ok().flatten() {
        match order {
            // A separate thread connects, so that this one notices the end of standard input.
            Order::Connect { tickets } => {
                scope.spawn(move || {
                    if let Some(moved) = connect(&tickets, request) {
                        *connected.lock().unwrap_or_else(PoisonError::into_inner) = Some(moved);
                        server.stop();
                    }
                });
            }
            Order::Tunnel => {
                let socket = match server.address().and_then(connect_here) {
                    Ok(socket) => socket,
                    // ssh carries the message to the user.
                    Err(error) => {
                        return err!(
                            "sweetspot: no connection from ssh to this host's end: {error}"
                        );
                    }
                };
                // Bytes that were read ahead belong to the connection.
                let ahead = input.buffer().to_vec();
                let from = io::Cursor::new(ahead).chain(io::stdin()).chain(EndOfInput);
                let _ = pump_both(&socket, from, io::stdout());
                return;
            }
        }
    }
}

/// Ends the process soon after standard input ends, even if the other direction still waits.
struct EndOfInput;

impl Read for EndOfInput {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        signals::end_within(signals::CLEANING_TIME, FAILED);
        Ok(0)
    }
}

/// Connects to the server on this host that listens at `address`.
fn connect_here(address: SocketAddr) -> io::Result<TcpStream> {
    let v4 = SocketAddr::from((Ipv4Addr::LOCALHOST, address.port()));
    if address.is_ipv4() {
        return TcpStream::connect(v4);
    }
    // A listener at [::] also accepts IPv4, and the host may have no IPv6 address.
    let v6 = SocketAddr::from((Ipv6Addr::LOCALHOST, address.port()));
    TcpStream::connect(v6).or_else(|_| TcpStream::connect(v4))
}

/// Connects to one of these tickets and reports this. Returns whether everything was moved; `None` if no ticket's address can
/// be reached.
fn connect(tickets: &[String], request: &Request) -> Option<bool> {
    let tickets: Vec<Ticket> = tickets.iter().filter_map(|ticket| ticket.parse().ok()).collect();
    match first_reachable(&tickets, DIRECT_TIMEOUT) {
        Some(contact) => {
            let _ = messages::write_message(io::stdout(), &Reply::Connected);
            let moved = move_over(&contact, request);
            if let Err(error) = &moved {
                // ssh carries the message to the user. The protocol reported it only if both ends could speak to each other.
                err!("sweetspot: {error}");
            }
            Some(moved.is_ok())
        }
        None => {
            let reason = "no connection to the other end".into();
            let _ = messages::write_message(io::stdout(), &Reply::Failed { reason });
            None
        }
    }
}

fn listen(request: &Request) -> Fallible<Server> {
    Ok(Server::bind(ServeOptions {
        listen: (Ipv6Addr::UNSPECIFIED, request.port).into(),
        ends: EndsAfter::First,
        lifetime: Duration::from_secs(3600),
        ..ServeOptions::new(purpose(request)?)
    })?)
}

/// The reasons why sources at this end cannot be sent, if others can.
fn missing(request: &Request) -> Vec<String> {
    match purpose(request) {
        Ok(Purpose::Send(options)) => options.sources.missing().unwrap_or_default(),
        _ => Vec::new(),
    }
}

fn purpose(request: &Request) -> Fallible<Purpose> {
    let sizing = request.sizing.as_deref().map(str::parse).transpose()?;
    let retry_for = Duration::from_secs(request.retry_for_s);
    Ok(match (request.role, &request.target) {
        (Role::Receiver, Some(target)) => Purpose::Receive(ReceiveOptions {
            overwrite: !request.keep_existing,
            leave_existing: request.keep_existing,
            attributes: request.attributes,
            owners: request.owners,
            delete: request
                .delete
                .map(|Deletion { contents }| Delete { contents, keep: request.exclude.clone() }),
            // The user of the other end logged in here, and could do the same without this program.
            dotfiles: true,
            other_kinds: true,
            outward_links: true,
            sizing,
            congestion: request.congestion.clone(),
            streams: request.streams,
            retry_for,
            ..ReceiveOptions::at(Target::At(target.0.clone()))
        }),
        (Role::Receiver, None) => return Err("the request names no target".into()),
        (Role::Sender, _) => {
            let paths: Vec<PathBuf> =
                request.sources.iter().map(|source| source.0.clone()).collect();
            let only = request.only.as_ref();
            let sources = Sources {
                paths,
                only: only.map(|only| only.iter().map(|path| path.0.clone()).collect()),
                exclude: request.exclude.clone(),
                attributes: request.attributes,
                owners: request.owners,
                ..Sources::default()
            };
            Purpose::Send(Box::new(SendOptions {
                sources,
                compress: request.compress,
                rate_limit: request.rate_limit_bps.map(Rate::from_bits_per_second),
                checksum: request.checksum,
                dry_run: request.dry_run,
                sizing,
                congestion: request.congestion.clone(),
                streams: request.streams,
                retry_for,
                ..SendOptions::default()
            }))
        }
    })
}

/// Moves everything over a connection that this end makes.
fn move_over(contact: &Contact, request: &Request) -> Fallible<()> {
    match purpose(request)? {
        Purpose::Clients(_) => return Err("a request is for one transfer".into()),
        Purpose::Receive(options) => receive(contact, &options, &mut NullObserver)?,
        Purpose::Send(options) => send(contact, &options, &mut NullObserver)?,
    };
    Ok(())
}

/// The two ends of the ssh connection: client and server address, from sshd's `SSH_CONNECTION`.
fn ssh_addresses() -> (Option<IpAddr>, Option<IpAddr>) {
    let connection = std::env::var("SSH_CONNECTION").unwrap_or_default();
    let mut words = connection.split(' ');
    let client = words.next().and_then(|word| word.parse().ok());
    (client, words.nth(1).and_then(|word| word.parse().ok()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With IPv6 disabled, a listener at [::] can be reached by IPv4. In this test, nothing listens at [::1].
    #[test]
    fn a_host_without_ipv6_reaches_its_own_server() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        assert!(connect_here(SocketAddr::from((Ipv6Addr::UNSPECIFIED, port))).is_ok());
    }
}
