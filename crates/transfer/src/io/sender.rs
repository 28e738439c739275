//! The sending end of one transfer.

use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::path::Path;

use sweetspot_linux::{clock, process, sysctl, tcp};
use sweetspot_protocol::probe::PacketAuthenticator;
use sweetspot_protocol::{
    Message, OwnAccount, Role, SenderSummary, Session, Ticket, TicketHost, TransferSummary,
};
use sweetspot_sizing::{KnownPath, Sizing};
use sweetspot_units::{Bytes, Duration};

use super::channel::Channel;
use super::control_stream::ControlStream;
use super::file_source::FileSource;
use super::probe_responder::ProbeResponder;
use super::send_buffer::SendBuffer;
use super::sender_congestion::SenderCongestion;
use super::sender_task::SenderTask;
use crate::TransferError;
use crate::observer::{Agreed, TransferObserver};

/// The time limit for connecting.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The time limit for the TLS handshake, from the start of the connection.
const TLS_TIMEOUT: Duration = Duration::from_secs(15);

/// The options of [`send`].
#[derive(Debug, Clone, Default)]
pub struct SendOptions {
    /// The file's name at the receiver; `None`: its own name.
    pub name: Option<String>,
    /// The sizing to ask the receiver for; `None`: the receiver's choice.
    pub sizing: Option<Sizing>,
    /// The sender's congestion control; `None`: the host's default.
    pub congestion: Option<String>,
    /// Whether the receiver's sizing may switch to another congestion control although one was chosen.
    pub may_switch: bool,
    /// The path's rate and round trip, if known.
    pub path: Option<KnownPath>,
    /// Whether to answer probes.
    pub probes: bool,
    /// A fixed send buffer (`SO_SNDBUF`); `None`: the kernel's autotuning, raised where it is too small.
    pub send_buffer: Option<Bytes>,
}

/// Sends `file` to the receiver that `ticket` names, and waits until the receiver has verified it.
pub fn send(
    file: &Path,
    ticket: &Ticket,
    options: &SendOptions,
    observer: &mut dyn TransferObserver,
) -> Result<TransferSummary, TransferError> {
    let source = FileSource::open(file)?;
    let cpu = process::cpu_time();
    let start = clock::now();
    let socket = connect(ticket, options.congestion.as_deref())?;
    let channel = Channel::connect(socket, ticket.fingerprint, start + TLS_TIMEOUT)?;
    let session = channel.session(&ticket.secret)?;
    let name = name(file, options);
    let (size, mut control_stream) = (source.size(), ControlStream::new(&channel));
    let probe_responder = probe_responder(&channel, &session, options.probes, observer);
    control_stream.hello(&session, &name, size, options)?;
    // On the heels of the hello, so that the receiver can probe as soon as it has answered.
    probe_responder.iter().for_each(ProbeResponder::punch);
    let accept = control_stream.answer(&session)?;
    let sizing = accept.sizing.parse::<Sizing>()?;
    if let Some(congestion) = &accept.congestion {
        set_congestion(channel.socket(), congestion)?;
    }
    observer.opened(&Agreed { peer: channel.peer(), name: name.clone(), size, sizing });
    let probe_responder = probe_responder.filter(|_| accept.probes);
    let send_buffer = SendBuffer::new(&channel, options.send_buffer)?;
    let chosen = options.congestion.is_some() && !options.may_switch;
    let named = chosen || accept.congestion.is_some();
    let congestion = SenderCongestion::new(channel.socket(), named);
    let sender_task = SenderTask::new(&channel, congestion, start, probe_responder, send_buffer)?;
    let summary = sender_task.run(source, control_stream, observer)?;
    let took = clock::now().since(start);
    let closing = closing(&channel, sender_task.limits())?;
    // The content is safe, whether or not the receiver hears our numbers.
    let _ = channel.say(&Message::SenderSummary(closing.clone()));
    let end = OwnAccount {
        role: Role::Sender,
        peer: channel.peer(),
        name: &name,
        sizing: &accept.sizing,
        bytes: size,
        took,
        cpu: process::cpu_time().saturating_sub(cpu),
    };
    Ok(TransferSummary::new(end, summary, Some(closing)))
}

/// Answers probes if `wanted` and if this host allows it.
fn probe_responder<'a>(
    channel: &'a Channel,
    session: &Session,
    wanted: bool,
    observer: &mut dyn TransferObserver,
) -> Option<ProbeResponder<'a>> {
    if !wanted {
        return None;
    }
    let probe_responder = ProbeResponder::new(channel, PacketAuthenticator::new(session));
    if let Err(error) = &probe_responder {
        observer.note(&format!("probes cannot be answered: {error}"));
    }
    probe_responder.ok()
}

fn closing(channel: &Channel, limits: Vec<String>) -> Result<SenderSummary, TransferError> {
    let failed = || TransferError::system("TCP_INFO");
    let info = tcp::Info::read(channel.socket()).map_err(failed())?;
    Ok(SenderSummary {
        congestion: tcp::options::congestion(channel.socket()).map_err(failed())?,
        segments: info.data_segs_out.into(),
        retransmitted_segments: info.total_retrans.into(),
        limits,
    })
}

/// Connects to the ticket's receiver and sets the congestion control.
fn connect(ticket: &Ticket, congestion: Option<&str>) -> Result<TcpStream, TransferError> {
    let address = format!("{}:{}", ticket.host, ticket.port);
    let cannot = |source| TransferError::Unreachable { address: address.clone(), source };
    let candidates: Vec<SocketAddr> = match &ticket.host {
        TicketHost::Address(ip) => vec![(*ip, ticket.port).into()],
        TicketHost::Name(name) => {
            (name.as_str(), ticket.port).to_socket_addrs().map_err(cannot)?.collect()
        }
    };
    let mut last = std::io::Error::from(std::io::ErrorKind::NotFound);
    for candidate in candidates {
        match TcpStream::connect_timeout(&candidate, CONNECT_TIMEOUT.into()) {
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
