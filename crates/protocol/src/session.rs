use subtle::ConstantTimeEq;

use crate::peer_text::PeerText;
use crate::ticket::Secret;

/// The label of the TLS exporter (RFC 8446, section 7.5) to which proofs and probe keys are bound.
pub const EXPORTER_LABEL: &[u8] = b"EXPERIMENTAL sweetspot 1";
/// The number of bytes drawn from the TLS exporter.
pub const EXPORTER_LENGTH: usize = 32;

/// The shared state of a connection's two ends after the TLS handshake. It holds the proofs of the ticket, and the numbers and
/// keys of the connection's probes and of the streams that measure its path.
///
/// The proofs are keyed hashes of the TLS exporter under the ticket's secret. A proof seen on one connection is not valid on
/// another, so a man in the middle cannot forward it.
#[derive(Clone)]
pub struct Session {
    dialer_proof: blake3::Hash,
    listener_proof: blake3::Hash,
    probe_id: [u8; 4],
    probe_key: [u8; 32],
    stream_id: [u8; 4],
    stream_key: [u8; 32],
    further_secret: [u8; 32],
}

impl Session {
    /// Derives the proofs and keys from the secret and the TLS exporter's output. Without a secret, only TLS authenticates both
    /// ends, by their certificates.
    pub fn new(secret: Option<&Secret>, exporter: &[u8; EXPORTER_LENGTH]) -> Session {
        let derive = |purpose: &str| {
            let mut material = [0; 16 + EXPORTER_LENGTH];
            material[..16].copy_from_slice(secret.map_or(&[0; 16], |secret| &secret.0));
            material[16..].copy_from_slice(exporter);
            blake3::derive_key(purpose, &material)
        };
        let id = |purpose: &str| {
            let [a, b, c, d, ..] = derive(purpose);
            [a, b, c, d]
        };
        Session {
            dialer_proof: derive("sweetspot 4 proof of the ticket by who connects").into(),
            listener_proof: derive("sweetspot 4 proof of the ticket by who listens").into(),
            probe_id: id("sweetspot 1 probe session"),
            probe_key: derive("sweetspot 1 probe authentication"),
            stream_id: id("sweetspot 5 measuring streams"),
            stream_key: derive("sweetspot 5 authentication of measuring streams"),
            further_secret: derive("sweetspot 4 secret for further connections"),
        }
    }

    /// The connecting end's proof, in hexadecimal, as [`Hello`](crate::Hello) carries it.
    pub fn dialer_proof(&self) -> PeerText {
        self.dialer_proof.to_hex().as_str().into()
    }

    /// The listener's proof, in hexadecimal, as [`Welcome`](crate::Message::Welcome) carries it.
    pub fn listener_proof(&self) -> PeerText {
        self.listener_proof.to_hex().as_str().into()
    }

    /// Whether `given` is the connecting end's proof. The comparison takes constant time.
    pub fn is_dialer_proof(&self, given: &PeerText) -> bool {
        same(&self.dialer_proof, given)
    }

    /// Whether `given` is the listener's proof. The comparison takes constant time.
    pub fn is_listener_proof(&self, given: &PeerText) -> bool {
        same(&self.listener_proof, given)
    }

    /// A secret for further connections between the same two ends, because a code is valid only once.
    pub fn further_secret(&self) -> Secret {
        let mut secret = [0; 16];
        secret.copy_from_slice(&self.further_secret[..16]);
        Secret(secret)
    }

    /// The connection number in the connection's probe packets.
    pub fn probe_id(&self) -> [u8; 4] {
        self.probe_id
    }

    /// The key that authenticates the connection's probe packets.
    pub fn probe_key(&self) -> &[u8; 32] {
        &self.probe_key
    }

    /// The connection number in the packets of streams.
    pub fn stream_id(&self) -> [u8; 4] {
        self.stream_id
    }

    /// The key that authenticates the packets of streams.
    pub fn stream_key(&self) -> &[u8; 32] {
        &self.stream_key
    }
}

fn same(expected: &blake3::Hash, given: &PeerText) -> bool {
    match blake3::Hash::from_hex(given.raw()) {
        Ok(given) => expected.as_bytes().ct_eq(given.as_bytes()).into(),
        Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proof_is_valid_only_for_its_side_secret_and_connection() {
        let session = |secret, exporter| Session::new(Some(&Secret([secret; 16])), &[exporter; 32]);
        let (here, other_secret, other_connection) = (session(1, 1), session(2, 1), session(1, 2));
        assert!(here.is_dialer_proof(&here.dialer_proof()));
        assert!(here.is_listener_proof(&here.listener_proof()));
        assert!(!here.is_dialer_proof(&here.listener_proof()));
        assert!(!here.is_listener_proof(&here.dialer_proof()));
        assert!(!here.is_dialer_proof(&other_secret.dialer_proof()));
        assert!(!here.is_dialer_proof(&other_connection.dialer_proof()));
        for garbage in ["", "00", "zz", &*"0".repeat(64), &*"0".repeat(1000)] {
            assert!(!here.is_dialer_proof(&garbage.into()));
        }
    }
}
