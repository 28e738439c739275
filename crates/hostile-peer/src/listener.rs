use std::io;
use std::net::TcpListener;

use sweetspot_protocol::{Hello, Message, Secret, Ticket, TicketHost, TicketProof};
use sweetspot_units::Time;

use crate::raw::{self, Raw, Received};
use crate::tls::Identity;

/// A hostile server on loopback, for any client that uses its ticket.
pub struct Listener {
    listener: TcpListener,
    identity: Identity,
    secret: Secret,
}

impl Listener {
    /// Listens on a free port.
    pub fn start() -> Listener {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        Listener { listener, identity: Identity::fresh(), secret: Secret(raw::random()) }
    }

    /// The ticket for this listener.
    pub fn ticket(&self) -> Ticket {
        let address = self.listener.local_addr().unwrap();
        // 2100-01-01.
        let expires = Time::from_nanos(4_102_444_800 * 1_000_000_000);
        Ticket {
            host: TicketHost::Address(address.ip()),
            port: address.port(),
            fingerprint: self.identity.public_key().0,
            proof: TicketProof::Secret { secret: self.secret.clone(), expires },
        }
    }

    /// The next connection, after the TLS handshake.
    pub fn accept(&self) -> io::Result<Raw> {
        let (socket, _) = self.listener.accept()?;
        raw::accept(socket, &self.identity.listening(), &self.secret)
    }

    /// The next connection and its hello, which is welcomed. The caller plays the opposite role.
    pub fn welcome(&self) -> (Raw, Hello) {
        let mut raw = self.accept().unwrap();
        let hello = match raw.next() {
            Received::Message(Message::Hello(hello)) => hello,
            other => panic!("expected a hello: {other:?}"),
        };
        raw.transfer = hello.transfer.raw().to_owned();
        let proof = raw.session.listener_proof();
        raw.send_message(&Message::Welcome { proof, early_bytes: 0, ends_with_program: false });
        (raw, hello)
    }

    /// Acts as a sender to the next receiver: welcomes it, sends `offer`, and reads the answer.
    pub fn sending(&self, offer: &Message) -> (Raw, Received) {
        let (mut raw, _) = self.welcome();
        raw.send_message(offer);
        let answer = raw.next();
        (raw, answer)
    }
}
