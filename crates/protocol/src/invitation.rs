use std::fmt;

use thiserror::Error;

use crate::probe::PacketAuthenticator;
use crate::ticket::check;

/// The byte string with which one end of a TCP connection invites the other to measure their path together, with datagrams
/// beside the connection.
///
/// | field | bytes |
/// |---|---|
/// | `S` | 1 |
/// | version, 1 | 1 |
/// | UDP port of the host (the inviting end) | 2 |
/// | key | 16 |
/// | check: the first bytes of the BLAKE3 of the above | 4 |
///
/// Anyone with the key can measure the connection's path and control its sender, but only from the peer's own address.
#[derive(Clone, PartialEq, Eq)]
pub struct Invitation {
    /// The port at which the host waits for the guest's datagrams.
    pub port: u16,
    /// The key, known only to both ends.
    pub key: [u8; KEY_BYTES],
}

/// Why a byte string is not an [`Invitation`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum InvitationError {
    /// It is another byte string, or a damaged invitation.
    #[error(
        "expected an invitation of {INVITATION_BYTES} bytes; pass on the peer's invitation unchanged"
    )]
    Damaged,
    /// The invitation has a later version.
    #[error(
        "the invitation has version {0}, and this end supports version {VERSION}; use the same version at both ends"
    )]
    Version(u8),
}

/// The two ends of a connection with an [`Invitation`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inviting {
    /// The end that made the invitation.
    Host,
    /// The end that received it.
    Guest,
}

/// The length of an invitation, bytes.
pub const INVITATION_BYTES: usize = 4 + KEY_BYTES + CHECK_BYTES;
/// The maximum length of an invitation of any version, bytes.
pub const MAX_INVITATION_BYTES: usize = 64;

const MAGIC: u8 = b'S';
const VERSION: u8 = 1;
const KEY_BYTES: usize = 16;
const CHECK_BYTES: usize = 4;

impl Invitation {
    /// The invitation as a byte string.
    pub fn to_bytes(&self) -> [u8; INVITATION_BYTES] {
        let mut bytes = [0; INVITATION_BYTES];
        let (content, checked) = bytes.split_at_mut(INVITATION_BYTES - CHECK_BYTES);
        (content[0], content[1]) = (MAGIC, VERSION);
        content[2..4].copy_from_slice(&self.port.to_be_bytes());
        content[4..].copy_from_slice(&self.key);
        checked.copy_from_slice(&check(content));
        bytes
    }

    /// Parses an invitation from a byte string.
    pub fn from_bytes(bytes: &[u8]) -> Result<Invitation, InvitationError> {
        let (content, checked) =
            bytes.split_last_chunk::<CHECK_BYTES>().ok_or(InvitationError::Damaged)?;
        if bytes.len() > MAX_INVITATION_BYTES || check(content) != *checked {
            return Err(InvitationError::Damaged);
        }
        match *content {
            [MAGIC, VERSION, high, low, ref key @ ..] => {
                let key = key.try_into().map_err(|_| InvitationError::Damaged)?;
                Ok(Invitation { port: u16::from_be_bytes([high, low]), key })
            }
            [MAGIC, version, ..] if version != VERSION => Err(InvitationError::Version(version)),
            _ => Err(InvitationError::Damaged),
        }
    }

    /// The authenticator for packets of the end `of`, which seals them there and opens them at the other end. Each end has
    /// its own, so that no packet can be sent back to its sender.
    pub fn authenticator(&self, of: Inviting) -> PacketAuthenticator {
        PacketAuthenticator::derive(
            match of {
                Inviting::Host => "sweetspot invitation 1 packets of the host",
                Inviting::Guest => "sweetspot invitation 1 packets of the guest",
            },
            &self.key,
        )
    }
}

impl fmt::Debug for Invitation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Invitation").field("port", &self.port).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::ProbePacket;
    use proptest::prelude::*;
    use sweetspot_units::Bytes;

    fn invitation() -> impl Strategy<Value = Invitation> {
        any::<(u16, [u8; 16])>().prop_map(|(port, key)| Invitation { port, key })
    }

    proptest! {
        #[test]
        fn an_invitation_parses_back_and_a_truncated_one_is_rejected(invitation in invitation(), cut in 0..INVITATION_BYTES) {
            let bytes = invitation.to_bytes();
            prop_assert_eq!(Invitation::from_bytes(&bytes), Ok(invitation));
            prop_assert_eq!(Invitation::from_bytes(&bytes[..cut]), Err(InvitationError::Damaged));
        }

        #[test]
        fn a_flipped_bit_is_detected(invitation in invitation(), bit in 0..INVITATION_BYTES * 8) {
            let mut bytes = invitation.to_bytes();
            bytes[bit / 8] ^= 1 << (bit % 8);
            prop_assert_eq!(Invitation::from_bytes(&bytes), Err(InvitationError::Damaged));
        }

        #[test]
        fn garbage_is_rejected(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(Invitation::from_bytes(&bytes).is_err());
        }

        #[test]
        fn a_later_version_is_reported_at_any_length(version in 2u8.., more in proptest::collection::vec(any::<u8>(), 0..=58)) {
            let mut bytes = [&[MAGIC, version], &more[..]].concat();
            bytes.extend(check(&bytes));
            prop_assert_eq!(Invitation::from_bytes(&bytes), Err(InvitationError::Version(version)));
        }

        #[test]
        fn a_packet_from_one_end_is_rejected_as_one_from_the_other(invitation in invitation(), sequence: u32) {
            let [host, guest] = [Inviting::Host, Inviting::Guest].map(|of| invitation.authenticator(of));
            let packet = ProbePacket::Punch { sequence };
            let datagram = host.close(&packet, Bytes::new(52));
            prop_assert_eq!(host.open(&datagram), Some(packet));
            prop_assert_eq!(guest.open(&datagram), None);
        }
    }
}
