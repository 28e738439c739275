//! Attempts to use spoken codes, from the connecting side.

use data_encoding::HEXLOWER;
use spake2::{Ed25519Group, Identity, Password, Spake2};
use sweetspot_protocol::{Message, Secret};

use crate::raw::{Raw, Received};

impl Raw {
    /// Exchanges keys for a code under any number. The code, such as `7-crisp-lemon-orbit`, may be wrong. The error is the
    /// server's message if it does not send its own key. The answer to the hello shows whether the code was right.
    pub fn try_code(&mut self, number: u32, code: &str) -> Result<(), Box<Received>> {
        let (exchange, element) = Spake2::<Ed25519Group>::start_a(
            &Password::new(code),
            &Identity::new(b"sweetspot: who connects"),
            &Identity::new(b"sweetspot: who listens"),
        );
        let pake = Message::Pake { code: number, element: HEXLOWER.encode(&element).into() };
        if let Err(error) = self.try_send(&pake.to_frame()) {
            return Err(Box::new(Received::Closed(error.to_string())));
        }
        let element = match self.next() {
            Received::Message(Message::Pake { element, .. }) => element,
            other => return Err(Box::new(other)),
        };
        let key = exchange.finish(&HEXLOWER.decode(element.raw().as_bytes()).unwrap()).unwrap();
        let derived = blake3::derive_key("sweetspot 4 secret from a spoken code", &key);
        let mut secret = [0; 16];
        secret.copy_from_slice(&derived[..16]);
        self.use_secret(&Secret(secret));
        Ok(())
    }
}
