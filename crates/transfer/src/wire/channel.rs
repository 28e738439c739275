use std::io::{self, BufRead, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use rustls::{ClientConnection, Connection, ServerConfig, ServerConnection};
use sweetspot_linux::event_fd::is_hung_up;
use sweetspot_linux::{clock, tcp};
use sweetspot_protocol::record::Record;
use sweetspot_protocol::{EXPORTER_LABEL, EXPORTER_LENGTH, Message, PublicKey, Secret, Session};
use sweetspot_units::{Bytes, Duration, Rate, Time};

use crate::limits::{PARTING_TIMEOUT, PEER_TIMEOUT};
use crate::lock::lock;
use crate::wire::first_segments::FirstSegments;
use crate::wire::handshake::{handshake, is_disconnect, tls_error};
use crate::wire::identity::{self, Identity};
use crate::wire::pace::{self, ApplicationPace};
use crate::{Result, TransferError};

/// How often a call that waits for the peer looks whether it is still there.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// How often a call that has closed its direction looks whether the peer has.
const LINGER_INTERVAL: Duration = Duration::from_millis(2);
/// How many bytes are read from the socket at a time.
pub(crate) const SOCKET_READ_BYTES: usize = 256 << 10;
/// Bytes to encrypt before each write: few enough to stay in the processor's cache.
const WRITE_BYTES: usize = 64 << 10;
/// IPv4's and UDP's headers; IPv6's are 20 bytes longer.
const UDP_IPV4_HEADERS: Bytes = Bytes::new(28);
const UDP_IPV6_HEADERS: Bytes = Bytes::new(48);

/// The unsent data that a slowly writing application may leave in the kernel.
const LOW_WATER: Bytes = Bytes::new(128 << 10);

/// The time of the peer's last data on any of the connections with it: a transfer's connections share it, since one of them may
/// rest while another works.
#[derive(Debug, Clone, Default)]
pub(crate) struct LastReceived(Arc<AtomicU64>);

impl LastReceived {
    fn now(&self) {
        self.0.store(clock::now().as_nanos(), Ordering::Relaxed);
    }

    fn at(&self) -> Time {
        Time::from_nanos(self.0.load(Ordering::Relaxed))
    }

    fn is_silent(&self) -> bool {
        clock::now().since(self.at()) >= PEER_TIMEOUT
    }
}

/// A TLS connection that one thread reads while others write.
pub(crate) struct Channel {
    socket: TcpStream,
    peer: SocketAddr,
    /// Held only while bytes are encrypted or decrypted, never across a call that may block.
    tls: Mutex<Connection>,
    last_received: Mutex<LastReceived>,
    /// Plain text that came with the handshake's last packet.
    early: Mutex<Vec<u8>>,
    /// Frames that go out before the next that is written.
    pending: Mutex<Vec<u8>>,
    /// Held across the writing of a record, so that records leave in the order of encryption.
    outgoing: Mutex<Vec<u8>>,
    /// The application that reads, if it is slow, and the one that writes.
    reader: OnceLock<Arc<dyn ApplicationPace>>,
    writer: OnceLock<Arc<dyn ApplicationPace>>,
    /// Whether this end was stopped, and its ticket with it.
    stopped: AtomicBool,
}

impl Channel {
    /// The listening side of a connection. TLS must be up before `deadline`.
    pub fn accept(
        socket: TcpStream,
        config: &Arc<ServerConfig>,
        deadline: Time,
    ) -> Result<Channel> {
        let tls = ServerConnection::new(Arc::clone(config));
        Channel::shake_hands(socket, tls.map(Connection::from), deadline)
    }

    /// Connects to the peer with the `expected` certificate, or any. Shows `own` if the peer asks for one. TLS must be up
    /// before `deadline`.
    pub fn connect(
        socket: TcpStream,
        expected: Option<[u8; 32]>,
        own: Option<&Identity>,
        deadline: Time,
    ) -> Result<Channel> {
        let tls = identity::connecting(expected, own)
            .and_then(|config| ClientConnection::new(config, identity::server_name()?));
        Channel::shake_hands(socket, tls.map(Connection::from), deadline)
    }

    fn shake_hands(
        socket: TcpStream,
        tls: Result<Connection, rustls::Error>,
        deadline: Time,
    ) -> Result<Channel> {
        let peer =
            socket.peer_addr().map_err(TransferError::system("reading the peer's address"))?;
        let peer = canonical(peer);
        let mut tls = tls.map_err(|e| tls_error(peer, &e))?;
        // The end of the handshake and the first message are two small writes: Nagle's algorithm
        // would hold the second back for a round trip and a delayed ACK.
        socket.set_nodelay(true).map_err(TransferError::system("TCP_NODELAY"))?;
        // No limit: the buffer holds one frame, which is written out at once.
        tls.set_buffer_limit(None);
        let result = handshake(&mut tls, &socket, peer, deadline);
        if result.is_err() {
            // The alert that says why, if there is one.
            let _ = tls.write_tls(&mut &socket);
        }
        result?;
        // No TCP_USER_TIMEOUT: it would end a connection while the receiver waits for its disk.
        let setup = || {
            socket.set_read_timeout(Some(LOOK_INTERVAL.into()))?;
            socket.set_write_timeout(Some(LOOK_INTERVAL.into()))
        };
        setup().map_err(TransferError::system("setting up the connection"))?;
        let mut early = Vec::new();
        drain(&mut tls, peer, |chunk| early.extend_from_slice(chunk))?;
        let (tls, early) = (Mutex::new(tls), Mutex::new(early));
        let last_received = LastReceived::default();
        last_received.now();
        let last_received = Mutex::new(last_received);
        let (pending, outgoing) = (Mutex::default(), Mutex::default());
        let (reader, writer) = (OnceLock::new(), OnceLock::new());
        let stopped = AtomicBool::new(false);
        Ok(Channel {
            socket,
            peer,
            tls,
            last_received,
            early,
            pending,
            outgoing,
            reader,
            writer,
            stopped,
        })
    }

    /// The peer's identity by its certificate, if it showed one.
    pub fn peer_key(&self) -> Option<PublicKey> {
        let tls = lock(&self.tls);
        tls.peer_certificates().and_then(<[_]>::first).map(identity::fingerprint)
    }

    /// A value known to both ends of this connection only: a [`Session`] is derived from it.
    pub fn exporter(&self) -> Result<[u8; EXPORTER_LENGTH]> {
        lock(&self.tls)
            .export_keying_material([0; EXPORTER_LENGTH], EXPORTER_LABEL, None)
            .map_err(|e| tls_error(self.peer, &e))
    }

    /// The proofs and keys that both ends derive from this connection and the secret.
    pub fn session(&self, secret: Option<&Secret>) -> Result<Session> {
        Ok(Session::new(secret, &self.exporter()?))
    }

    /// Bytes of IP and UDP headers before a datagram on this connection's path.
    pub fn udp_headers(&self) -> Bytes {
        // An IPv4 address in IPv6 form travels as IPv4.
        if self.peer.ip().to_canonical().is_ipv4() { UDP_IPV4_HEADERS } else { UDP_IPV6_HEADERS }
    }

    /// When the peer's last data arrived.
    pub fn last_received(&self) -> Time {
        lock(&self.last_received).at()
    }

    /// Shares the time of the peer's last data with another connection of the transfer.
    pub fn share_last_received(&self, other: &Channel) {
        *lock(&self.last_received) = lock(&other.last_received).clone();
    }

    /// From now on reads as slowly as `pace` allows.
    pub fn read_slowly(&self, pace: Arc<dyn ApplicationPace>) {
        let _ = self.reader.set(pace);
    }

    /// From now on everything is written as slowly as `pace` says, and little waits in the kernel to be sent.
    pub fn write_slowly(&self, pace: Arc<dyn ApplicationPace>) -> Result<()> {
        tcp::options::set_notsent_low_water(&self.socket, LOW_WATER)
            .map_err(TransferError::system("TCP_NOTSENT_LOWAT"))?;
        let _ = self.writer.set(pace);
        Ok(())
    }

    /// From now on writes at most at `rate`, the first segments included. Further calls change only the rate of the others.
    pub fn limit_rate(&self, rate: Rate) -> Result<()> {
        tcp::options::set_max_pacing_rate(&self.socket, Some(rate))
            .map_err(TransferError::system("SO_MAX_PACING_RATE"))?;
        if self.writer.get().is_none() {
            let socket = self.socket.try_clone();
            let socket = socket.map_err(TransferError::system("duplicating a socket"))?;
            let _ = self.writer.set(Arc::new(FirstSegments::new(socket, rate)));
        }
        Ok(())
    }

    /// The socket, for its options.
    pub fn socket(&self) -> &TcpStream {
        &self.socket
    }

    pub fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// Plain text that came with the handshake, to be taken before anything else.
    pub fn take_early(&self) -> Vec<u8> {
        std::mem::take(&mut lock(&self.early))
    }

    /// Waits for data, still encrypted; `None` if the peer closed the connection. The error is `Silent` at the `deadline`;
    /// without one, after [`PEER_TIMEOUT`] without data on any connection of the transfer. It is `Stopped` after
    /// [`Channel::stop`].
    pub fn read(&self, raw: &mut [u8], deadline: Option<Time>) -> Result<Option<usize>> {
        loop {
            let read = self.read_socket(raw);
            // The peer may send all the time.
            if self.is_stopped() {
                return Err(TransferError::Stopped);
            }
            match read {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => match deadline {
                    Some(deadline) if clock::now() >= deadline => {
                        return Err(self.silent(LOOK_INTERVAL));
                    }
                    None if lock(&self.last_received).is_silent() => {
                        return Err(self.silent(PEER_TIMEOUT));
                    }
                    _ => {}
                },
                Err(e) if is_disconnect(&e) => return Ok(None),
                Err(e) => return Err(TransferError::System { what: "reading", source: e }),
                Ok(0) => return Ok(None),
                Ok(n) => {
                    lock(&self.last_received).now();
                    return Ok(Some(n));
                }
            }
        }
    }

    /// Takes data off the front of `raw` until there is some plain text. Its first bytes, at most `max`, are appended to
    /// `piece`, and the rest to `plain`.
    pub fn decrypt(
        &self,
        raw: &mut &[u8],
        (piece, mut max): (&mut Vec<u8>, usize),
        plain: &mut Vec<u8>,
    ) -> Result<()> {
        let mut tls = lock(&self.tls);
        let before = (piece.len(), plain.len());
        while (piece.len(), plain.len()) == before && !raw.is_empty() {
            tls.read_tls(raw).map_err(TransferError::system("reading"))?;
            let closed = drain(&mut tls, self.peer, |chunk| {
                let (first, rest) = chunk.split_at(max.min(chunk.len()));
                piece.extend_from_slice(first);
                plain.extend_from_slice(rest);
                max -= first.len();
            })?;
            if closed {
                // Nothing counts after the peer's last record.
                *raw = &[];
            }
        }
        Ok(())
    }

    /// Writes `parts` one after the other. Waits while the send buffer is full.
    pub fn write(&self, parts: &[&[u8]]) -> Result<()> {
        self.write_until(lock(&self.outgoing), parts, None)
    }

    fn write_until(
        &self,
        mut outgoing: MutexGuard<'_, Vec<u8>>,
        parts: &[&[u8]],
        deadline: Option<Time>,
    ) -> Result<()> {
        let pending = std::mem::take(&mut *lock(&self.pending));
        for part in [&pending[..]].iter().chain(parts) {
            for slice in part.chunks(WRITE_BYTES) {
                if outgoing.len() >= WRITE_BYTES {
                    self.write_out(&mut outgoing, deadline)?;
                }
                self.encrypt(slice, &mut outgoing)?;
            }
        }
        self.write_out(&mut outgoing, deadline)
    }

    fn encrypt(&self, plain: &[u8], outgoing: &mut Vec<u8>) -> Result<()> {
        let mut tls = lock(&self.tls);
        let mut encrypt = || {
            tls.writer().write_all(plain)?;
            while tls.wants_write() {
                tls.write_tls(outgoing)?;
            }
            Ok(())
        };
        encrypt().map_err(TransferError::system("writing"))
    }

    /// Writes the contents of `outgoing` to the socket, and empties it. With a `deadline` the error is `Silent` from then on.
    fn write_out(&self, outgoing: &mut Vec<u8>, deadline: Option<Time>) -> Result<()> {
        let (mut rest, mut acked) = (&outgoing[..], None);
        while !rest.is_empty() {
            if deadline.is_some_and(|deadline| clock::now() >= deadline) {
                return Err(self.silent(PARTING_TIMEOUT));
            }
            match self.write_socket(rest) {
                Ok(0) => return Err(self.disconnected(Bytes::ZERO)),
                Ok(n) => rest = &rest[n..],
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    // A slow path is not a silent peer: earlier data still arrive. Nor is a peer silent that reports a stalled
                    // disk.
                    let (last_data, now) = (lock(&self.last_received).clone(), self.acked());
                    if acked.replace(now).is_none_or(|before| now > before) {
                        last_data.now();
                    } else if last_data.is_silent() {
                        return Err(self.silent(PEER_TIMEOUT));
                    }
                }
                Err(e) if is_disconnect(&e) => return Err(self.disconnected(Bytes::ZERO)),
                Err(e) => return Err(TransferError::System { what: "writing", source: e }),
            }
        }
        outgoing.clear();
        Ok(())
    }

    fn read_socket(&self, raw: &mut [u8]) -> io::Result<usize> {
        let Some(pace) = self.reader.get() else { return (&self.socket).read(raw) };
        match pace::wait_to_read(&**pace, &self.socket, raw.len()) {
            0 => Err(io::ErrorKind::WouldBlock.into()),
            max => {
                let n = (&self.socket).read(&mut raw[..max])?;
                pace.handle_moved(Bytes::new(n as u64));
                Ok(n)
            }
        }
    }

    fn write_socket(&self, rest: &[u8]) -> io::Result<usize> {
        let Some(pace) = self.writer.get() else { return (&self.socket).write(rest) };
        let max = pace::wait_to_write(&**pace, rest.len());
        let n = (&self.socket).write(&rest[..max])?;
        pace.handle_moved(Bytes::new(n as u64));
        Ok(n)
    }

    /// The bytes that the peer's kernel has acknowledged.
    pub fn acked(&self) -> Bytes {
        tcp::Info::read(&self.socket).map_or(Bytes::ZERO, |info| info.bytes_acked)
    }

    pub fn send_record(&self, record: &Record) -> Result<()> {
        self.write(&[&record.to_frame()])
    }

    pub fn send_message(&self, message: &Message) -> Result<()> {
        self.write(&[&message.to_frame()])
    }

    /// Writes one message without waiting for another writer: at once, or before the next write.
    pub fn queue_message(&self, message: &Message) -> Result<()> {
        lock(&self.pending).extend(message.to_frame());
        let Ok(outgoing) = self.outgoing.try_lock() else { return Ok(()) };
        self.write_until(outgoing, &[], None)
    }

    /// Sends the last message `parting` if possible, and closes the connection.
    pub fn hang_up(&self, parting: &Message) {
        let _ = self.socket.set_write_timeout(Some(PARTING_TIMEOUT.into()));
        let deadline = clock::now() + PARTING_TIMEOUT;
        let _ = self.write_until(lock(&self.outgoing), &[&parting.to_frame()], Some(deadline));
        let _ = self.socket.shutdown(Shutdown::Write);
        // Closing with unread data would send a reset, which destroys the parting words: it is read and dropped, for a while.
        let _ = self.socket.set_read_timeout(Some(std::time::Duration::from_millis(200)));
        // A process that was stopped has no more time.
        let until =
            if self.is_stopped() { deadline } else { clock::now() + Duration::from_secs(2) };
        let mut scratch = [0; 4096];
        while clock::now() < until {
            match (&self.socket).read(&mut scratch) {
                Ok(n) if n > 0 => {}
                // This end has stopped reading, and the peer may still write.
                Ok(_) if self.waits_for_fin() => clock::sleep_until(clock::now() + LINGER_INTERVAL),
                _ => break,
            }
        }
    }

    /// Whether this end has closed its direction and the peer has not (RFC 9293 §3.3.2).
    fn waits_for_fin(&self) -> bool {
        const FIN_WAIT: [u8; 2] = [4, 5];
        tcp::Info::read(&self.socket).is_ok_and(|info| FIN_WAIT.contains(&info.state))
    }

    /// Ends the connection because of `error`, and reports the reason to the peer, unless the peer caused it or is gone.
    pub fn part(&self, error: &TransferError) {
        let error = if self.is_stopped() { &TransferError::Stopped } else { error };
        if !error.is_caused_by_peer() {
            self.hang_up(&Message::Failed { reason: error.for_peer().into() });
        }
        self.sever();
    }

    /// Whether nothing can be written any more: this end shut the connection down, or the peer reset it.
    pub fn is_down(&self) -> bool {
        is_hung_up(self.socket.as_fd())
    }

    /// This end ends, and its ticket with it: wakes the thread that reads, which parts from the peer.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
        self.stop_reading();
    }

    fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    /// Reads nothing more: wakes every thread that reads.
    pub fn stop_reading(&self) {
        let _ = self.socket.shutdown(Shutdown::Read);
    }

    /// Shuts the connection down at once. Wakes every thread that waits for it.
    pub fn sever(&self) {
        let _ = self.socket.shutdown(Shutdown::Both);
    }

    /// The error for a peer that closed the connection.
    pub fn disconnected(&self, done: Bytes) -> TransferError {
        TransferError::PeerGone { peer: self.peer.to_string(), done }
    }

    /// The error for a peer that sent nothing for `patience`.
    pub fn silent(&self, patience: Duration) -> TransferError {
        TransferError::Silent { peer: self.peer.to_string(), patience }
    }
}

/// The address as people write it: IPv4 in IPv6 form becomes IPv4.
pub(crate) fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// Decrypts the bytes read into `tls` and hands them to `take`. Returns whether the peer closed.
fn drain(tls: &mut Connection, peer: SocketAddr, mut take: impl FnMut(&[u8])) -> Result<bool> {
    let state = tls.process_new_packets().map_err(|e| tls_error(peer, &e))?;
    let mut reader = tls.reader();
    let mut left = state.plaintext_bytes_to_read();
    while left > 0 {
        let chunk = reader.fill_buf().map_err(TransferError::system("reading"))?;
        take(chunk);
        let consumed = chunk.len();
        reader.consume(consumed);
        left = left.saturating_sub(consumed);
    }
    Ok(state.peer_has_closed())
}
