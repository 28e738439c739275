use subtle::ConstantTimeEq;

use crate::ticket::Secret;

/// Label of the TLS exporter (RFC 8446, section 7.5) that everything below is bound to.
pub const EXPORTER_LABEL: &[u8] = b"EXPERIMENTAL sweetspot 1";
/// Bytes taken from the exporter.
pub const EXPORTER_LENGTH: usize = 32;

/// What one connection's two ends share once TLS is up: their proofs of the ticket, and the
/// identity and key of its probes.
///
/// The proofs are keyed hashes of the TLS exporter under the ticket's secret, so a proof seen on
/// one connection is worth nothing on another, and a man in the middle cannot pass one on.
#[derive(Clone)]
pub struct Session {
    sender_proof: blake3::Hash,
    receiver_proof: blake3::Hash,
    probe_id: [u8; 4],
    probe_key: [u8; 32],
}

impl Session {
    /// Derives it from the ticket's secret and what the TLS exporter gave.
    pub fn new(secret: &Secret, exporter: &[u8; EXPORTER_LENGTH]) -> Session {
        let derive = |purpose: &str| {
            let mut material = [0; 16 + EXPORTER_LENGTH];
            material[..16].copy_from_slice(&secret.0);
            material[16..].copy_from_slice(exporter);
            blake3::derive_key(purpose, &material)
        };
        let id = derive("sweetspot 1 probe session");
        let [a, b, c, d, ..] = id;
        Session {
            sender_proof: derive("sweetspot 1 sender's proof of the ticket").into(),
            receiver_proof: derive("sweetspot 1 receiver's proof of the ticket").into(),
            probe_id: [a, b, c, d],
            probe_key: derive("sweetspot 1 probe authentication"),
        }
    }

    /// The sender's proof, as its message carries it.
    pub fn sender_proof(&self) -> String {
        self.sender_proof.to_hex().to_string()
    }

    /// The receiver's proof, as its message carries it.
    pub fn receiver_proof(&self) -> String {
        self.receiver_proof.to_hex().to_string()
    }

    /// Whether this is the sender's proof; takes the same time whatever is wrong with it.
    pub fn is_sender_proof(&self, given: &str) -> bool {
        same(&self.sender_proof, given)
    }

    /// Whether this is the receiver's proof; takes the same time whatever is wrong with it.
    pub fn is_receiver_proof(&self, given: &str) -> bool {
        same(&self.receiver_proof, given)
    }

    /// What the connection's probes are told apart by.
    pub fn probe_id(&self) -> [u8; 4] {
        self.probe_id
    }

    /// What the connection's probes are authenticated with.
    pub fn probe_key(&self) -> &[u8; 32] {
        &self.probe_key
    }
}

fn same(expected: &blake3::Hash, given: &str) -> bool {
    match blake3::Hash::from_hex(given) {
        Ok(given) => expected.as_bytes().ct_eq(given.as_bytes()).into(),
        Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proof_holds_for_its_side_its_secret_and_its_connection_only() {
        let session = |secret, exporter| Session::new(&Secret([secret; 16]), &[exporter; 32]);
        let (here, other_secret, other_connection) = (session(1, 1), session(2, 1), session(1, 2));
        assert!(here.is_sender_proof(&here.sender_proof()));
        assert!(here.is_receiver_proof(&here.receiver_proof()));
        assert!(!here.is_sender_proof(&here.receiver_proof()));
        assert!(!here.is_receiver_proof(&here.sender_proof()));
        assert!(!here.is_sender_proof(&other_secret.sender_proof()));
        assert!(!here.is_sender_proof(&other_connection.sender_proof()));
        for garbage in ["", "00", "zz", &"0".repeat(64), &"0".repeat(1000)] {
            assert!(!here.is_sender_proof(garbage));
        }
    }
}
