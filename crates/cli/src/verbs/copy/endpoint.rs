//! The far end of `copy`, started by ssh: it listens, or connects, or lets data through its own standard input and
//! output.

use std::io::{self, BufReader, Read};
use std::net::{IpAddr, Ipv6Addr, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use sweetspot_linux::interfaces;
use sweetspot_protocol::{Role, Ticket, TransferSummary, VERSION};
use sweetspot_transfer::{
    NullObserver, Purpose, ReceiveOptions, SendOptions, ServeOptions, Server, ServerObserver,
    Sources, Target, TransferError, TransferObserver, first_reachable, receive, send,
};
use sweetspot_units::Duration;

use super::DIRECT_TIMEOUT;
use super::far_end::pump_both;
use super::messages::{self, Order, Reply, Request};
use crate::verbs::Ending;

/// `sweetspot endpoint` as typed, by `sweetspot copy`.
#[derive(Debug, clap::Args)]
pub struct Arguments {}

pub fn run(_arguments: Arguments) -> Ending {
    let mut input = BufReader::new(io::stdin());
    let Some(request) = messages::hear::<Request>(&mut input)? else {
        return Err("this is the far end of `sweetspot copy`, which starts it by ssh".into());
    };
    let fail = |error: &dyn std::error::Error| {
        let reason = error.to_string();
        messages::say(io::stdout(), &Reply::Failed { reason })
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
    let (client, own) = ssh_addresses();
    let mut addresses: Vec<IpAddr> = own.into_iter().collect();
    addresses.extend(interfaces::addresses().unwrap_or_default());
    let ticket = server.ticket().to_string();
    messages::say(io::stdout(), &Reply::Listening { version: VERSION, ticket, addresses, client })?;
    let admitted = AtomicBool::new(false);
    let connected = Mutex::new(None);
    let served = thread::scope(|scope| {
        // Not joined at the end of a transfer: standard input may stay open.
        let (server, admitted, connected) = (&server, &admitted, &connected);
        let listener = scope.spawn(move || {
            let outcome = obey(&mut input, server, &request);
            match outcome {
                Some(outcome) => {
                    *connected.lock().unwrap_or_else(PoisonError::into_inner) = Some(outcome);
                    server.stop();
                }
                // ssh ended. A transfer that runs may go on without it.
                None if !admitted.load(Ordering::Acquire) => server.stop(),
                None => {}
            }
        });
        let served = server.run(&Admissions(admitted));
        if !listener.is_finished()
            && connected.lock().unwrap_or_else(PoisonError::into_inner).is_none()
        {
            std::process::exit(i32::from(served.is_err()));
        }
        served
    });
    let moved = match connected.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(moved) => moved,
        None => served.is_ok(),
    };
    Ok(if moved { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Does what it is told after it listens. `None`: nothing more comes. Else whether it connected and moved all.
fn obey(input: &mut BufReader<io::Stdin>, server: &Server, request: &Request) -> Option<bool> {
    loop {
        match messages::hear::<Order>(&mut *input).ok().flatten()? {
            Order::Connect { tickets } => {
                let tickets: Vec<Ticket> =
                    tickets.iter().filter_map(|ticket| ticket.parse().ok()).collect();
                match first_reachable(&tickets, DIRECT_TIMEOUT) {
                    Some(ticket) => {
                        let _ = messages::say(io::stdout(), &Reply::Connected);
                        return Some(connect(&ticket, request).is_ok());
                    }
                    None => {
                        let reason = "no connection to the other end".to_owned();
                        let _ = messages::say(io::stdout(), &Reply::Failed { reason });
                    }
                }
            }
            Order::Tunnel => {
                let Ok(address) = server.address() else { return Some(false) };
                let loopback = match address.ip() {
                    IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::LOCALHOST),
                    IpAddr::V4(_) => IpAddr::V4(std::net::Ipv4Addr::LOCALHOST),
                };
                let address = SocketAddr::new(loopback, address.port());
                let Ok(socket) = TcpStream::connect(address) else { return Some(false) };
                // What was read ahead belongs to the connection.
                let ahead = input.buffer().to_vec();
                let from = io::Cursor::new(ahead).chain(io::stdin());
                let _ = pump_both(&socket, from, io::stdout());
                return None;
            }
        }
    }
}

fn listen(request: &Request) -> Result<Server, Box<dyn std::error::Error>> {
    Ok(Server::bind(ServeOptions {
        listen: (Ipv6Addr::UNSPECIFIED, request.port).into(),
        once: true,
        lifetime: Duration::from_secs(3600),
        ..ServeOptions::new(purpose(request)?)
    })?)
}

fn purpose(request: &Request) -> Result<Purpose, Box<dyn std::error::Error>> {
    let sizing = request.sizing.as_deref().map(str::parse).transpose()?;
    let retry_for = Duration::from_secs(request.retry_for_s);
    Ok(match (request.role, &request.target) {
        (Role::Receiver, Some(target)) => Purpose::Receive(ReceiveOptions {
            overwrite: !request.keep_existing,
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
            let sources = Sources {
                paths,
                exclude: request.exclude.clone(),
                attributes: request.attributes,
                ..Sources::default()
            };
            Purpose::Send(Box::new(SendOptions {
                sources,
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
fn connect(ticket: &Ticket, request: &Request) -> Result<(), Box<dyn std::error::Error>> {
    let contact = ticket.clone().into();
    match purpose(request)? {
        Purpose::Clients(_) => return Err("a request is for one transfer".into()),
        Purpose::Receive(options) => receive(&contact, &options, &mut NullObserver)?,
        Purpose::Send(options) => send(&contact, &options, &mut NullObserver)?,
    };
    Ok(())
}

/// Where ssh came from and where to, by what sshd says (`SSH_CONNECTION`: client address and port, server address and
/// port).
fn ssh_addresses() -> (Option<IpAddr>, Option<IpAddr>) {
    let connection = std::env::var("SSH_CONNECTION").unwrap_or_default();
    let mut words = connection.split(' ');
    let client = words.next().and_then(|word| word.parse().ok());
    (client, words.nth(1).and_then(|word| word.parse().ok()))
}

/// Notes that a transfer was admitted.
struct Admissions<'a>(&'a AtomicBool);

impl ServerObserver for Admissions<'_> {
    fn admitted(&self, _number: u64, _peer: SocketAddr) -> Box<dyn TransferObserver> {
        self.0.store(true, Ordering::Release);
        Box::new(NullObserver)
    }

    fn ended(&self, _number: u64, _result: &Result<TransferSummary, TransferError>) {}

    fn turned_away(&self, _error: &TransferError) {}
}
