//! A client that speaks TLS and knows the ticket, and otherwise does what it likes.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, ClientConnection, DigitallySignedStruct, Error, SignatureScheme};
use sweetspot_protocol::{EXPORTER_LABEL, Hello, Message, Session, Ticket, VERSION};

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
        Raw { tls, session: Session::new(&ticket.secret, &exporter) }
    }

    /// Connects, sends a hello with a valid proof, and reads that it is admitted.
    pub fn accepted(ticket: &Ticket, name: &str, size: u64) -> Raw {
        let mut raw = Raw::connect(ticket);
        raw.say(&raw.hello(name, size));
        let answer = raw.hear();
        assert!(answer.contains("\"accept\""), "{answer}");
        raw
    }

    /// A hello with a good proof.
    pub fn hello(&self, name: &str, size: u64) -> Message {
        Message::Hello(Hello {
            version: VERSION,
            proof: self.session.sender_proof(),
            name: name.to_owned(),
            size,
            sizing: Some("kernel".into()),
            congestion: None,
            path: None,
            probes: false,
        })
    }

    pub fn say(&mut self, message: &Message) {
        self.send(&message.to_frame());
    }

    pub fn send(&mut self, bytes: &[u8]) {
        self.tls.write_all(bytes).unwrap();
        self.tls.flush().unwrap();
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
