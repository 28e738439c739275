use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use data_encoding::HEXLOWER;
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, Connection};
use sweetspot_protocol::frame::{FRAME_HEADER_BYTES, PIECE_HEADER_BYTES};
use sweetspot_protocol::hash_tree::PieceHash;
use sweetspot_protocol::record::Record;
use sweetspot_protocol::{
    EXPORTER_LABEL, Hello, Message, Role, Secret, Session, Ticket, TicketHost, VERSION,
};

use crate::tls::{self, Identity};
use crate::wire::{MESSAGE, RECORD, frame};

/// How long a read or write may block before the result is [`Received::Silent`].
const TIMEOUT: Duration = Duration::from_secs(20);

/// A TLS connection that can send anything.
pub struct Raw {
    /// The proofs and keys of this connection.
    pub session: Session,
    /// The name of the transfer in its hello, 16 bytes in hexadecimal; random at first.
    pub transfer: String,
    tls: Connection,
    socket: TcpStream,
    exporter: [u8; 32],
    /// Decrypted data that has not been consumed.
    buffer: Vec<u8>,
}

/// How to connect, if not only with a ticket.
#[derive(Default)]
pub struct Dial<'a> {
    /// The secret of a line in a clients file, instead of the ticket's.
    pub secret: Option<Secret>,
    /// The client's certificate, presented if the server asks for one.
    pub identity: Option<&'a Identity>,
    /// The port, if it is not the ticket's.
    pub port: Option<u16>,
}

/// The result of reading from the other end.
#[derive(Debug, PartialEq)]
pub enum Received {
    /// A message.
    Message(Message),
    /// A record.
    Record(Record),
    /// A complete piece.
    Piece {
        /// The entry's number.
        entry: u32,
        /// The piece's number.
        piece: u32,
        /// The hash in the piece's header.
        hash: PieceHash,
        /// The content.
        content: Vec<u8>,
    },
    /// Nothing arrived for 20 seconds.
    Silent,
    /// The connection has ended. Holds the error, or is empty after an orderly end.
    Closed(String),
}

impl Received {
    /// The reason in a message of refusal or failure.
    pub fn reason(&self) -> Option<String> {
        match self {
            Received::Message(Message::Refuse { reason } | Message::Failed { reason }) => {
                Some(reason.raw().to_owned())
            }
            _ => None,
        }
    }

    /// Whether the connection has ended.
    pub fn is_closed(&self) -> bool {
        matches!(self, Received::Closed(_))
    }
}

impl Raw {
    /// Connects with the ticket's secret, including the TLS handshake.
    pub fn connect(ticket: &Ticket) -> Raw {
        Raw::dial(ticket, &Dial::default()).unwrap()
    }

    /// Connects, including the TLS handshake.
    pub fn dial(ticket: &Ticket, dial: &Dial<'_>) -> io::Result<Raw> {
        let host = match &ticket.host {
            TicketHost::Address(address) if !address.is_unspecified() => *address,
            _ => IpAddr::V4(Ipv4Addr::LOCALHOST),
        };
        let socket = TcpStream::connect((host, dial.port.unwrap_or(ticket.port)))?;
        let name = ServerName::try_from("sweetspot").expect("a valid name");
        let tls = ClientConnection::new(tls::connecting(dial.identity), name);
        let tls = tls.map_err(io::Error::other)?;
        Raw::shake_hands(tls.into(), socket, dial.secret.as_ref().or(ticket.secret()))
    }

    pub(crate) fn shake_hands(
        mut tls: Connection,
        mut socket: TcpStream,
        secret: Option<&Secret>,
    ) -> io::Result<Raw> {
        socket.set_read_timeout(Some(TIMEOUT))?;
        socket.set_write_timeout(Some(TIMEOUT))?;
        socket.set_nodelay(true)?;
        while tls.is_handshaking() {
            tls.complete_io(&mut socket)?;
        }
        // Sends the end of the handshake.
        while tls.wants_write() {
            tls.write_tls(&mut socket)?;
        }
        let exporter = tls.export_keying_material([0; 32], EXPORTER_LABEL, None);
        let exporter = exporter.map_err(io::Error::other)?;
        let session = Session::new(secret, &exporter);
        let transfer = HEXLOWER.encode(&random::<16>());
        Ok(Raw { session, transfer, tls, socket, exporter, buffer: Vec::new() })
    }

    /// Uses another secret for proofs from now on.
    pub fn use_secret(&mut self, secret: &Secret) {
        self.session = Session::new(Some(secret), &self.exporter);
    }

    /// The socket, for its options, its addresses and [`TcpStream::shutdown`].
    pub fn socket(&self) -> &TcpStream {
        &self.socket
    }

    /// A sender's hello with a valid proof.
    pub fn hello(&self) -> Message {
        self.hello_as(Role::Sender)
    }

    /// A hello with a valid proof.
    pub fn hello_as(&self, role: Role) -> Message {
        self.hello_with(role, false, false)
    }

    /// A hello with a valid proof, which may join a transfer or measure the path.
    pub fn hello_with(&self, role: Role, joins: bool, measures: bool) -> Message {
        Message::Hello(Hello {
            version: VERSION,
            proof: self.session.dialer_proof(),
            role,
            transfer: self.transfer.as_str().into(),
            joins,
            measures,
            early_bytes: 0,
        })
    }

    /// A receiver's hello with a valid proof; it accepts this many bytes of content before it answers.
    pub fn hello_accepting(&self, early_bytes: u32) -> Message {
        match self.hello_as(Role::Receiver) {
            Message::Hello(hello) => Message::Hello(Hello { early_bytes, ..hello }),
            other => other,
        }
    }

    /// Opens a further connection for the same transfer, in the same role.
    pub fn join(&self, ticket: &Ticket, dial: &Dial<'_>, role: Role) -> io::Result<Raw> {
        let mut further = Raw::dial(ticket, dial)?;
        further.transfer.clone_from(&self.transfer);
        let hello = further.hello_with(role, true, false);
        further.try_send(&hello.to_frame())?;
        Ok(further)
    }

    /// Sends a message.
    pub fn send_message(&mut self, message: &Message) {
        self.send(&message.to_frame());
    }

    /// Sends a record.
    pub fn send_record(&mut self, record: &Record) {
        self.send(&record.to_frame());
    }

    /// Sends a message with arbitrary JSON, such as an unknown field or a huge number.
    pub fn send_json(&mut self, value: &serde_json::Value) {
        self.send(&frame(MESSAGE, value.to_string().as_bytes()));
    }

    /// Sends arbitrary bytes.
    pub fn send(&mut self, bytes: &[u8]) {
        self.try_send(bytes).unwrap();
    }

    /// Sends arbitrary bytes. Returns an error if the other end has disconnected.
    pub fn try_send(&mut self, bytes: &[u8]) -> io::Result<()> {
        for part in bytes.chunks(16 << 10) {
            self.tls.writer().write_all(part)?;
            while self.tls.wants_write() {
                self.tls.write_tls(&mut self.socket)?;
            }
        }
        Ok(())
    }

    /// Closes the sending direction, as an honest program does at its end.
    pub fn close(&mut self) {
        self.tls.send_close_notify();
        while self.tls.wants_write() && self.tls.write_tls(&mut self.socket).is_ok() {}
    }

    /// Reads and decrypts more data; false at the end.
    fn fill(&mut self) -> io::Result<bool> {
        let mut bytes = [0; 16 << 10];
        loop {
            match self.tls.reader().read(&mut bytes) {
                Ok(n) => {
                    self.buffer.extend(&bytes[..n]);
                    return Ok(n > 0);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
            if self.tls.read_tls(&mut self.socket)? == 0 {
                return Ok(false);
            }
            self.tls.process_new_packets().map_err(io::Error::other)?;
        }
    }

    /// The kind and body of the next frame; `None` at the end.
    pub fn next_frame(&mut self) -> io::Result<Option<(u8, Vec<u8>)>> {
        loop {
            if let Some((&[kind, a, b, c, d], rest)) =
                self.buffer.split_first_chunk::<FRAME_HEADER_BYTES>()
            {
                let length = u32::from_be_bytes([a, b, c, d]) as usize;
                if let Some(body) = rest.get(..length) {
                    let body = body.to_vec();
                    self.buffer.drain(..FRAME_HEADER_BYTES + length);
                    return Ok(Some((kind, body)));
                }
            }
            if !self.fill()? {
                return Ok(None);
            }
        }
    }

    /// The other end's next frame, parsed.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Received {
        match self.next_frame() {
            Ok(Some((MESSAGE, body))) => {
                let text = || String::from_utf8_lossy(&body).into_owned();
                Received::Message(
                    Message::read(&body).unwrap_or_else(|e| panic!("{e}: {}", text())),
                )
            }
            Ok(Some((RECORD, body))) => Received::Record(Record::read(&body).unwrap()),
            Ok(Some((_, body))) => {
                let (head, content) = body.split_at(PIECE_HEADER_BYTES);
                let number = |at: usize| u32::from_be_bytes([0, 1, 2, 3].map(|i| head[at + i]));
                let hash = head[8..].try_into().unwrap();
                let (entry, piece, content) = (number(0), number(4), content.to_vec());
                Received::Piece { entry, piece, hash, content }
            }
            Ok(None) => Received::Closed(String::new()),
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                Received::Silent
            }
            Err(error) => Received::Closed(error.to_string()),
        }
    }

    /// The first result for which `select` returns a value; earlier ones are dropped. Panics if the
    /// connection ends first.
    pub fn wait_for<T>(&mut self, select: impl Fn(&Received) -> Option<T>) -> T {
        let mut passed = Vec::new();
        loop {
            let received = self.next();
            if let Some(found) = select(&received) {
                return found;
            }
            let ended = matches!(received, Received::Closed(_) | Received::Silent);
            passed.push(received);
            assert!(!ended, "not heard before the end: {passed:?}");
        }
    }

    /// Everything until the connection ends, or until 20 seconds without data.
    pub fn drain(&mut self) -> Vec<Received> {
        let mut all = Vec::new();
        loop {
            all.push(self.next());
            if matches!(all.last(), Some(Received::Closed(_) | Received::Silent)) {
                return all;
            }
        }
    }

    /// Waits for the next record, and returns its body.
    pub fn next_record(&mut self) -> Vec<u8> {
        loop {
            match self.next_frame().unwrap() {
                Some((RECORD, body)) => return body,
                Some(_) => {}
                None => panic!("it hung up"),
            }
        }
    }

    /// The next data as text; empty at the end.
    pub fn read_text(&mut self) -> String {
        if self.buffer.is_empty() {
            let _ = self.fill();
        }
        String::from_utf8_lossy(&std::mem::take(&mut self.buffer)).into_owned()
    }

    /// Everything until the end, as text.
    pub fn read_all_text(&mut self) -> String {
        let mut all = String::new();
        loop {
            let more = self.read_text();
            if more.is_empty() {
                return all;
            }
            all += &more;
        }
    }
}

pub(crate) fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).unwrap();
    bytes
}

/// The listening side of a connection, after the TLS handshake.
pub(crate) fn accept(
    socket: TcpStream,
    config: &Arc<rustls::ServerConfig>,
    secret: &Secret,
) -> io::Result<Raw> {
    let tls = rustls::ServerConnection::new(Arc::clone(config)).map_err(io::Error::other)?;
    Raw::shake_hands(tls.into(), socket, Some(secret))
}
