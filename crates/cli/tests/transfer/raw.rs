//! A client that speaks TLS and knows the ticket, and otherwise does what it likes.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, ClientConnection, DigitallySignedStruct, Error, SignatureScheme};
use sweetspot_protocol::frame::{FrameDecoder, FramePart, PieceHeader};
use sweetspot_protocol::hash_tree::piece_hash;
use sweetspot_protocol::record::{Entry, EntryKind, Record};
use sweetspot_protocol::{
    EXPORTER_LABEL, Hello, Message, Offer, RelativePath, Role, Session, Ticket, VERSION,
};

pub struct Raw {
    pub tls: rustls::StreamOwned<ClientConnection, TcpStream>,
    pub session: Session,
}

impl Raw {
    /// Connects and brings TLS up.
    pub fn connect(ticket: &Ticket) -> Raw {
        let socket = TcpStream::connect(("127.0.0.1", ticket.port)).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let provider = Arc::new(ring::default_provider());
        let config = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Anyone(provider)))
            .with_no_client_auth();
        let name = ServerName::try_from("sweetspot").unwrap();
        let connection = ClientConnection::new(Arc::new(config), name).unwrap();
        let mut tls = rustls::StreamOwned::new(connection, socket);
        while tls.conn.is_handshaking() {
            tls.conn.complete_io(&mut tls.sock).unwrap();
        }
        let exporter = tls.conn.export_keying_material([0; 32], EXPORTER_LABEL, None).unwrap();
        Raw { tls, session: Session::new(ticket.secret(), &exporter) }
    }

    /// Connects, sends a hello with a valid proof and an offer, and reads that both are taken.
    pub fn accepted(ticket: &Ticket) -> Raw {
        let mut raw = Raw::connect(ticket);
        raw.say(&raw.hello());
        assert!(raw.hear().contains("\"welcome\""));
        raw.say(&offer());
        let answer = raw.hear();
        assert!(answer.contains("\"accept\""), "{answer}");
        raw
    }

    /// A hello with a good proof.
    pub fn hello(&self) -> Message {
        Message::Hello(Hello {
            version: VERSION,
            proof: self.session.dialer_proof(),
            role: Role::Sender,
            transfer: "00".repeat(16),
            joins: false,
            measures: false,
        })
    }

    /// Lists one file of `size` bytes.
    pub fn list(&mut self, path: &str, size: u64) {
        let entry = Entry {
            path: RelativePath::new(path).unwrap(),
            kind: EntryKind::File { size, sparse: false },
            mode: 0o644,
            modified: (1, 0),
            attributes: vec![],
        };
        self.send(&Record::Entries(vec![entry]).to_frame());
    }

    /// Sends a piece of the first file.
    pub fn piece(&mut self, piece: u32, content: &[u8]) {
        let (hash, length) = (piece_hash(piece, true, content), content.len() as u32);
        let header = PieceHeader { entry: 0, piece, hash, length };
        self.send(&[&header.to_bytes()[..], content].concat());
    }

    pub fn say(&mut self, message: &Message) {
        self.send(&message.to_frame());
    }

    pub fn send(&mut self, bytes: &[u8]) {
        self.tls.write_all(bytes).unwrap();
        self.tls.flush().unwrap();
    }

    /// Waits for the next record, and returns its body.
    pub fn answered(&mut self) -> Vec<u8> {
        let (mut decoder, mut bytes) = (FrameDecoder::default(), [0; 4096]);
        loop {
            let n = self.tls.read(&mut bytes).unwrap();
            assert_ne!(n, 0, "it hung up");
            let mut input = &bytes[..n];
            while let Some(part) = decoder.next(&mut input).unwrap() {
                if let FramePart::Record(body) = part {
                    return body;
                }
            }
        }
    }

    /// What comes next, as text; empty at the end.
    pub fn hear(&mut self) -> String {
        let mut bytes = [0; 4096];
        match self.tls.read(&mut bytes) {
            Ok(n) => String::from_utf8_lossy(&bytes[..n]).into_owned(),
            Err(_) => String::new(),
        }
    }

    /// Everything up to the end.
    pub fn hear_all(&mut self) -> String {
        let mut all = String::new();
        loop {
            let more = self.hear();
            if more.is_empty() {
                return all;
            }
            all += &more;
        }
    }
}

/// Takes any certificate.
#[derive(Debug)]
struct Anyone(Arc<CryptoProvider>);

impl ServerCertVerifier for Anyone {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }
    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }
    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }
    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// An offer of one file.
pub fn offer() -> Message {
    Message::Offer(Offer {
        name: "f".into(),
        one_file: true,
        sizing: Some("kernel".into()),
        ..Offer::default()
    })
}
