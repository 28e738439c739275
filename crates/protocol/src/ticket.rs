use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use data_encoding::{BASE32_NOPAD, BASE32_NOPAD_NOCASE};
use sweetspot_units::{Duration, Time};
use thiserror::Error;

/// The data needed to reach and authenticate a listener and, with a secret, to be admitted by it.
///
/// ```
/// use sweetspot_protocol::{Secret, Ticket, TicketHost, TicketProof};
/// use sweetspot_units::Time;
///
/// let ticket = Ticket {
///     host: TicketHost::Name("backup.example".into()),
///     port: 7411,
///     fingerprint: [7; 32],
///     proof: TicketProof::Secret {
///         secret: Secret([9; 16]),
///         expires: Time::from_nanos(1_800_000_000_000_000_000),
///     },
/// };
/// let text = ticket.to_string();
/// assert!(text.starts_with("sweetspot1:"));
/// assert_eq!(text.parse(), Ok(ticket));
/// ```
///
/// Its text is `sweetspot1:` and, in base32: the kind of host (4, 6, or 0 for a name; plus 128 without a secret), the host
/// (a name is preceded by its length), the port, the certificate's fingerprint, the secret and its expiry in seconds since
/// 1970 (if there is a secret), and four bytes that detect typing errors. Numbers are big-endian.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ticket {
    /// The host on which the receiver listens, on TCP and UDP.
    pub host: TicketHost,
    /// The port, of TCP and UDP.
    pub port: u16,
    /// BLAKE3 of the receiver's certificate (DER).
    pub fingerprint: [u8; 32],
    /// The connecting end's credential.
    pub proof: TicketProof,
}

/// The connecting end's credential.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TicketProof {
    /// Both ends prove that they know a secret: anyone with the ticket is admitted.
    Secret {
        /// The secret.
        secret: Secret,
        /// Time of expiry, counted from 1970-01-01 UTC; whole seconds.
        expires: Time,
    },
    /// The connecting end's own key, which the listener knows.
    OwnKey,
}

impl Ticket {
    /// The expiry of a credential issued at `now` for `lifetime`: in whole seconds, as in tickets and files of clients.
    pub fn expiry(now: Time, lifetime: Duration) -> Time {
        const SECOND: u64 = 1_000_000_000;
        Time::from_nanos((now + lifetime).as_nanos() / SECOND * SECOND)
    }

    /// The secret, if the ticket has one.
    pub fn secret(&self) -> Option<&Secret> {
        match &self.proof {
            TicketProof::Secret { secret, .. } => Some(secret),
            TicketProof::OwnKey => None,
        }
    }
}

/// A host by address or by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TicketHost {
    /// An address.
    Address(IpAddr),
    /// A DNS name, at most 253 bytes.
    Name(String),
}

/// A secret of 128 random bits. It is printed only inside a ticket; `Debug` hides it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(pub [u8; 16]);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// Why a text is not a ticket.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TicketError {
    /// It does not begin with a ticket's prefix.
    #[error(
        "this is not a ticket: tickets begin with \"{PREFIX}\"; copy the whole line that `sweetspot serve` or `sweetspot send` printed"
    )]
    Prefix,
    /// It is a ticket of another version.
    #[error(
        "this ticket is of version {0}, and this program reads version 1; use the same version of sweetspot on both ends"
    )]
    Version(String),
    /// It has a wrong character, length or checksum.
    #[error(
        "this ticket is damaged ({0}); copy the whole line that `sweetspot serve` or `sweetspot send` printed"
    )]
    Damaged(&'static str),
}

const PREFIX: &str = "sweetspot1:";
/// Flag in the byte for the kind of host: there is no secret.
const NO_SECRET: u8 = 128;
pub(crate) const CHECK_BYTES: usize = 4;
/// The longest DNS name, bytes (RFC 1035, section 2.3.4, without the final dot).
const MAX_HOST_NAME_BYTES: usize = 253;

impl fmt::Display for TicketHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TicketHost::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
            TicketHost::Address(address) => address.fmt(f),
            TicketHost::Name(name) => f.write_str(name),
        }
    }
}

impl TicketHost {
    /// Parses a host as users write it: an address, `[IPv6 address]`, or a DNS name. `None` if it is none of these.
    pub fn parse(text: &str) -> Option<TicketHost> {
        let bare = text.strip_prefix('[').and_then(|t| t.strip_suffix(']')).unwrap_or(text);
        if let Ok(address) = bare.parse() {
            return Some(TicketHost::Address(address));
        }
        is_name(text).then(|| TicketHost::Name(text.to_owned()))
    }
}

fn is_name(text: &str) -> bool {
    (1..=MAX_HOST_NAME_BYTES).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_'))
}

impl fmt::Display for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut bytes = Vec::with_capacity(96);
        let flag = if self.proof == TicketProof::OwnKey { NO_SECRET } else { 0 };
        match &self.host {
            TicketHost::Address(IpAddr::V4(address)) => {
                bytes.push(4 | flag);
                bytes.extend(address.octets());
            }
            TicketHost::Address(IpAddr::V6(address)) => {
                bytes.push(6 | flag);
                bytes.extend(address.octets());
            }
            TicketHost::Name(name) => {
                bytes.push(flag);
                bytes.push(name.len().min(MAX_HOST_NAME_BYTES) as u8);
                bytes.extend(name.bytes().take(MAX_HOST_NAME_BYTES));
            }
        }
        bytes.extend(self.port.to_be_bytes());
        bytes.extend(self.fingerprint);
        if let TicketProof::Secret { secret, expires } = &self.proof {
            bytes.extend(secret.0);
            bytes.extend((expires.as_nanos() / 1_000_000_000).to_be_bytes());
        }
        bytes.extend(check(&bytes));
        write!(f, "{PREFIX}{}", BASE32_NOPAD.encode(&bytes).to_ascii_lowercase())
    }
}

impl FromStr for Ticket {
    type Err = TicketError;

    fn from_str(text: &str) -> Result<Ticket, TicketError> {
        // A terminal may break a long line, which leaves blanks in a copy.
        let text: String = text.split_ascii_whitespace().collect();
        // A QR code of upper-case letters is smaller, so the whole ticket may be upper case.
        let body = match text.split_at_checked(PREFIX.len()) {
            Some((prefix, body)) if prefix.eq_ignore_ascii_case(PREFIX) => body,
            _ => return Err(other_prefix(&text)),
        };
        let bytes = BASE32_NOPAD_NOCASE
            .decode(body.as_bytes())
            .map_err(|_| TicketError::Damaged("a character or the length is wrong"))?;
        let Some((content, given)) = bytes.split_last_chunk::<CHECK_BYTES>() else {
            return Err(TicketError::Damaged("it is too short"));
        };
        if *given != check(content) {
            return Err(TicketError::Damaged("its check does not match"));
        }
        read(content).ok_or(TicketError::Damaged("its content is invalid"))
    }
}

/// The error for a text that is a ticket of another version, or no ticket at all.
fn other_prefix(text: &str) -> TicketError {
    let version = text.strip_prefix("sweetspot").and_then(|t| t.split_once(':')).map(|(v, _)| v);
    match version {
        Some(v) if !v.is_empty() && v.len() < 6 && v.bytes().all(|b| b.is_ascii_digit()) => {
            TicketError::Version(v.to_owned())
        }
        _ => TicketError::Prefix,
    }
}

pub(crate) fn check(content: &[u8]) -> [u8; CHECK_BYTES] {
    let hash = blake3::hash(content);
    let mut check = [0; CHECK_BYTES];
    check.copy_from_slice(&hash.as_bytes()[..CHECK_BYTES]);
    check
}

fn read(mut bytes: &[u8]) -> Option<Ticket> {
    let [kind] = take::<1>(&mut bytes)?;
    let host = match kind & !NO_SECRET {
        4 => TicketHost::Address(IpAddr::V4(Ipv4Addr::from(take::<4>(&mut bytes)?))),
        6 => TicketHost::Address(IpAddr::V6(Ipv6Addr::from(take::<16>(&mut bytes)?))),
        0 => {
            let [length] = take::<1>(&mut bytes)?;
            let (name, rest) = bytes.split_at_checked(length.into())?;
            bytes = rest;
            let name = std::str::from_utf8(name).ok().filter(|name| is_name(name))?;
            TicketHost::Name(name.to_owned())
        }
        _ => return None,
    };
    let port = u16::from_be_bytes(take(&mut bytes)?);
    let fingerprint = take(&mut bytes)?;
    let proof = if kind & NO_SECRET != 0 {
        TicketProof::OwnKey
    } else {
        let secret = Secret(take(&mut bytes)?);
        let seconds = u64::from_be_bytes(take(&mut bytes)?);
        TicketProof::Secret {
            secret,
            expires: Time::from_nanos(seconds.checked_mul(1_000_000_000)?),
        }
    };
    (bytes.is_empty() && port != 0).then_some(Ticket { host, port, fingerprint, proof })
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (head, rest) = bytes.split_first_chunk::<N>()?;
    *bytes = rest;
    Some(*head)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn host() -> impl Strategy<Value = TicketHost> {
        prop_oneof![
            any::<[u8; 4]>().prop_map(|a| TicketHost::Address(a.into())),
            any::<[u8; 16]>().prop_map(|a| TicketHost::Address(a.into())),
            "[a-z][a-z0-9.-]{0,200}"
                .prop_filter("an address is no name", |n| n.parse::<IpAddr>().is_err())
                .prop_map(TicketHost::Name),
        ]
    }

    prop_compose! {
        fn ticket()(
            host in host(),
            port in 1u16..,
            fingerprint: [u8; 32],
            secret: Option<[u8; 16]>,
            seconds in 0u64..1 << 33,
        ) -> Ticket {
            let expires = Time::from_nanos(seconds * 1_000_000_000);
            let with = |secret| TicketProof::Secret { secret: Secret(secret), expires };
            Ticket { host, port, fingerprint, proof: secret.map_or(TicketProof::OwnKey, with) }
        }
    }

    proptest! {
        #[test]
        fn a_printed_ticket_parses_back(ticket in ticket()) {
            prop_assert_eq!(ticket.to_string().parse(), Ok(ticket.clone()));
            let shouted = ticket.to_string().to_ascii_uppercase();
            prop_assert_eq!(format!(" {shouted}\n").parse(), Ok(ticket));
        }

        #[test]
        fn a_ticket_broken_across_lines_parses(ticket in ticket(), width in 1usize..80) {
            let text = ticket.to_string();
            let lines: Vec<&str> =
                text.as_bytes().chunks(width).map(|line| str::from_utf8(line).unwrap()).collect();
            prop_assert_eq!(lines.join("\r\n  ").parse(), Ok(ticket));
        }

        #[test]
        fn a_wrong_character_is_detected(ticket in ticket(), at in 0usize..90, with in "[a-z2-7]") {
            let text = ticket.to_string();
            let at = PREFIX.len() + at % (text.len() - PREFIX.len());
            let wrong = format!("{}{with}{}", &text[..at], &text[at + 1..]);
            prop_assume!(wrong != text);
            prop_assert!(matches!(wrong.parse::<Ticket>(), Err(TicketError::Damaged(_))));
        }

        #[test]
        fn no_text_causes_a_panic(text in "(sweetspot1:)?\\PC*") {
            let _ = text.parse::<Ticket>();
        }
    }

    #[test]
    fn invalid_tickets_get_distinct_errors() {
        assert_eq!("".parse::<Ticket>(), Err(TicketError::Prefix));
        assert_eq!("sweet".parse::<Ticket>(), Err(TicketError::Prefix));
        assert_eq!("sweetspot2:aa".parse::<Ticket>(), Err(TicketError::Version("2".into())));
        assert!(matches!("sweetspot1:".parse::<Ticket>(), Err(TicketError::Damaged(_))));
    }

    #[test]
    fn debug_output_hides_the_secret() {
        assert_eq!(format!("{:?}", Secret([7; 16])), "Secret(..)");
    }
}
