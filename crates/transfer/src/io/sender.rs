//! The sending end of one transfer.

use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::path::Path;

use sweetspot_linux::{clock, process, sysctl, tcp};
use sweetspot_sizing::{KnownPath, Sizing};
use sweetspot_units::{Bytes, Duration};

use super::answering::Answering;
use super::channel::Channel;
use super::congestion::Congestion;
use super::delivery::Delivery;
use super::room::Room;
use super::source::Source;
use super::talk::Talk;
use crate::TransferError;
use crate::observer::{Observer, Opened};
use crate::outcome::{End, Outcome, Role};
use crate::probe::Seal;
use crate::protocol::{Closing, Message, Session};
use crate::ticket::{Host, Ticket};

/// A receiver that does not answer a SYN in this time is not there.
const CONNECT: Duration = Duration::from_secs(10);
/// TLS takes no longer.
const OPENING: Duration = Duration::from_secs(15);

/// What a sender is to do.
#[derive(Debug, Clone, Default)]
pub struct SendOptions {
    /// The name at the receiver, where it differs from the file's own.
    pub name: Option<String>,
    /// Sizing to ask the receiver for.
    pub sizing: Option<Sizing>,
    /// Congestion control.
    pub congestion: Option<String>,
    /// Whether the receiver's sizing may switch it to another all the same.
    pub may_switch: bool,
    /// The path, where it is known.
    pub path: Option<KnownPath>,
    /// Answer probes.
    pub probes: bool,
    /// `SO_SNDBUF`, kept as it is; otherwise the kernel's autotuning, raised where it falls short.
    pub send_buffer: Option<Bytes>,
}

/// Sends `file` to the receiver that `ticket` names.
pub fn send(
    file: &Path,
    ticket: &Ticket,
    options: &SendOptions,
    observer: &mut dyn Observer,
) -> Result<Outcome, TransferError> {
    let source = Source::open(file)?;
    let cpu = process::cpu_time();
    let start = clock::now();
    let socket = connect(ticket, options.congestion.as_deref())?;
    let channel = Channel::connect(socket, ticket.fingerprint, start + OPENING)?;
    let session = channel.session(&ticket.secret)?;
    let name = name(file, options);
    let (size, mut talk) = (source.size(), Talk::new(&channel));
    let answering = answering(&channel, &session, options.probes, observer);
    talk.hello(&session, &name, size, options)?;
    // On the heels of the hello, so that the receiver can probe as soon as it has answered.
    answering.iter().for_each(Answering::punch);
    let accept = talk.answer(&session)?;
    let sizing = accept.sizing.parse::<Sizing>()?;
    if let Some(congestion) = &accept.congestion {
        set_congestion(channel.socket(), congestion)?;
    }
    observer.opened(&Opened { peer: channel.peer(), name: name.clone(), size, sizing });
    let answering = answering.filter(|_| accept.probes);
    let room = Room::new(&channel, options.send_buffer)?;
    let chosen = options.congestion.is_some() && !options.may_switch;
    let named = chosen || accept.congestion.is_some();
    let congestion = Congestion::new(channel.socket(), named);
    let delivery = Delivery::new(&channel, congestion, start, answering, room)?;
    let verdict = delivery.run(source, talk, observer)?;
    let took = clock::now().since(start);
    let closing = closing(&channel, delivery.limits())?;
    // The content is safe, whether or not the receiver hears our numbers.
    let _ = channel.say(&Message::Closing(closing.clone()));
    let end = End {
        role: Role::Sender,
        peer: channel.peer(),
        name: &name,
        sizing: &accept.sizing,
        bytes: size,
        took,
        cpu: process::cpu_time().saturating_sub(cpu),
    };
    Ok(Outcome::new(end, verdict, Some(closing)))
}

/// The means to answer probes, if both ends want that and this host allows it.
fn answering<'a>(
    channel: &'a Channel,
    session: &Session,
    wanted: bool,
    observer: &mut dyn Observer,
) -> Option<Answering<'a>> {
    if !wanted {
        return None;
    }
    let answering = Answering::new(channel, Seal::new(session));
    if let Err(error) = &answering {
        observer.note(&format!("probes cannot be answered: {error}"));
    }
    answering.ok()
}

fn closing(channel: &Channel, limits: Vec<String>) -> Result<Closing, TransferError> {
    let failed = || TransferError::system("TCP_INFO");
    let info = tcp::Info::read(channel.socket()).map_err(failed())?;
    Ok(Closing {
        congestion: tcp::options::congestion(channel.socket()).map_err(failed())?,
        segments: info.data_segs_out.into(),
        retransmitted_segments: info.total_retrans.into(),
        limits,
    })
}

/// Connects to the ticket's receiver with the congestion control already chosen.
fn connect(ticket: &Ticket, congestion: Option<&str>) -> Result<TcpStream, TransferError> {
    let address = format!("{}:{}", ticket.host, ticket.port);
    let cannot = |source| TransferError::Unreachable { address: address.clone(), source };
    let candidates: Vec<SocketAddr> = match &ticket.host {
        Host::Address(ip) => vec![(*ip, ticket.port).into()],
        Host::Name(name) => {
            (name.as_str(), ticket.port).to_socket_addrs().map_err(cannot)?.collect()
        }
    };
    let mut last = std::io::Error::from(std::io::ErrorKind::NotFound);
    for candidate in candidates {
        match TcpStream::connect_timeout(&candidate, CONNECT.into()) {
            Ok(socket) => {
                if let Some(name) = congestion {
                    set_congestion(&socket, name)?;
                }
                return Ok(socket);
            }
            Err(error) => last = error,
        }
    }
    Err(cannot(last))
}

fn set_congestion(socket: &TcpStream, name: &str) -> Result<(), TransferError> {
    tcp::options::set_congestion(socket, name).map_err(|source| TransferError::Congestion {
        name: name.to_owned(),
        source,
        available: sysctl::available_congestion_controls().unwrap_or_default().join(", "),
    })
}

fn name(file: &Path, options: &SendOptions) -> String {
    match &options.name {
        Some(name) => name.clone(),
        None => file.file_name().unwrap_or_default().to_string_lossy().into_owned(),
    }
}
