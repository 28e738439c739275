use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use data_encoding::{BASE32_NOPAD, BASE32_NOPAD_NOCASE};
use sweetspot_units::Time;
use thiserror::Error;

/// All that a sender needs to reach one receiver and to authenticate it. Whoever holds
/// the ticket may send.
///
/// Its text is `sweetspot1:` and, in base32: kind of host (4, 6, or 0 for a name), the host (a
/// name with its length before it), the port, the certificate's fingerprint, the secret, the
/// expiry in seconds since 1970, and four bytes that catch typing errors. Numbers are big-endian.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ticket {
    /// Where the receiver listens, TCP and UDP.
    pub host: Host,
    /// On which port.
    pub port: u16,
    /// BLAKE3 of the receiver's certificate (DER).
    pub fingerprint: [u8; 32],
    /// What both ends prove to know.
    pub secret: Secret,
    /// When the receiver stops taking it, counted from 1970-01-01 UTC; whole seconds.
    pub expires: Time,
}

/// A host by address or by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Host {
    /// An address.
    Address(IpAddr),
    /// A DNS name, at most 253 bytes.
    Name(String),
}

/// 128 random bits. Never printed but inside a ticket.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(pub [u8; 16]);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// Why a text is no ticket.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TicketError {
    /// It does not begin like one.
    #[error(
        "this is not a ticket: tickets begin with \"{PREFIX}\"; copy the whole line that `sweetspot serve` printed"
    )]
    Prefix,
    /// It comes from another version.
    #[error(
        "this ticket is of version {0}, and this program reads version 1; use the same version of sweetspot on both ends"
    )]
    Version(String),
    /// A character, the length or the check is wrong.
    #[error("this ticket is damaged ({0}); copy the whole line that `sweetspot serve` printed")]
    Damaged(&'static str),
}

const PREFIX: &str = "sweetspot1:";
/// Bytes of the check at the end.
const CHECK: usize = 4;
/// RFC 1035, section 2.3.4, without the final dot.
const LONGEST_NAME: usize = 253;

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Host::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
            Host::Address(address) => address.fmt(f),
            Host::Name(name) => f.write_str(name),
        }
    }
}

impl Host {
    /// A host as a person writes it: an address, `[v6 address]`, or a DNS name.
    pub fn parse(text: &str) -> Option<Host> {
        let bare = text.strip_prefix('[').and_then(|t| t.strip_suffix(']')).unwrap_or(text);
        if let Ok(address) = bare.parse() {
            return Some(Host::Address(address));
        }
        is_name(text).then(|| Host::Name(text.to_owned()))
    }
}

fn is_name(text: &str) -> bool {
    (1..=LONGEST_NAME).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_'))
}

impl fmt::Display for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut bytes = Vec::with_capacity(96);
        match &self.host {
            Host::Address(IpAddr::V4(address)) => {
                bytes.push(4);
                bytes.extend(address.octets());
            }
            Host::Address(IpAddr::V6(address)) => {
                bytes.push(6);
                bytes.extend(address.octets());
            }
            Host::Name(name) => {
                bytes.push(0);
                bytes.push(name.len().min(LONGEST_NAME) as u8);
                bytes.extend(name.bytes().take(LONGEST_NAME));
            }
        }
        bytes.extend(self.port.to_be_bytes());
        bytes.extend(self.fingerprint);
        bytes.extend(self.secret.0);
        bytes.extend((self.expires.as_nanos() / 1_000_000_000).to_be_bytes());
        bytes.extend(check(&bytes));
        write!(f, "{PREFIX}{}", BASE32_NOPAD.encode(&bytes).to_ascii_lowercase())
    }
}

impl FromStr for Ticket {
    type Err = TicketError;

    fn from_str(text: &str) -> Result<Ticket, TicketError> {
        let text = text.trim();
        let body = match text.strip_prefix(PREFIX) {
            Some(body) => body,
            None => return Err(other_prefix(text)),
        };
        let bytes = BASE32_NOPAD_NOCASE
            .decode(body.as_bytes())
            .map_err(|_| TicketError::Damaged("a character or the length is wrong"))?;
        let Some((content, given)) = bytes.split_last_chunk::<CHECK>() else {
            return Err(TicketError::Damaged("it is too short"));
        };
        if *given != check(content) {
            return Err(TicketError::Damaged("its check does not match"));
        }
        read(content).ok_or(TicketError::Damaged("its content makes no sense"))
    }
}

/// A ticket of another version, or no ticket at all.
fn other_prefix(text: &str) -> TicketError {
    let version = text.strip_prefix("sweetspot").and_then(|t| t.split_once(':')).map(|(v, _)| v);
    match version {
        Some(v) if !v.is_empty() && v.len() < 6 && v.bytes().all(|b| b.is_ascii_digit()) => {
            TicketError::Version(v.to_owned())
        }
        _ => TicketError::Prefix,
    }
}

fn check(content: &[u8]) -> [u8; CHECK] {
    let hash = blake3::hash(content);
    let mut check = [0; CHECK];
    check.copy_from_slice(&hash.as_bytes()[..CHECK]);
    check
}

fn read(mut bytes: &[u8]) -> Option<Ticket> {
    let host = match take::<1>(&mut bytes)? {
        [4] => Host::Address(IpAddr::V4(Ipv4Addr::from(take::<4>(&mut bytes)?))),
        [6] => Host::Address(IpAddr::V6(Ipv6Addr::from(take::<16>(&mut bytes)?))),
        [0] => {
            let [length] = take::<1>(&mut bytes)?;
            let (name, rest) = bytes.split_at_checked(length.into())?;
            bytes = rest;
            let name = std::str::from_utf8(name).ok().filter(|name| is_name(name))?;
            Host::Name(name.to_owned())
        }
        _ => return None,
    };
    let port = u16::from_be_bytes(take(&mut bytes)?);
    let fingerprint = take(&mut bytes)?;
    let secret = Secret(take(&mut bytes)?);
    let seconds = u64::from_be_bytes(take(&mut bytes)?);
    let expires = Time::from_nanos(seconds.checked_mul(1_000_000_000)?);
    (bytes.is_empty() && port != 0).then_some(Ticket { host, port, fingerprint, secret, expires })
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

    fn host() -> impl Strategy<Value = Host> {
        prop_oneof![
            any::<[u8; 4]>().prop_map(|a| Host::Address(a.into())),
            any::<[u8; 16]>().prop_map(|a| Host::Address(a.into())),
            "[a-z][a-z0-9.-]{0,200}"
                .prop_filter("an address is no name", |n| n.parse::<IpAddr>().is_err())
                .prop_map(Host::Name),
        ]
    }

    prop_compose! {
        fn ticket()(
            host in host(),
            port in 1u16..,
            fingerprint: [u8; 32],
            secret: [u8; 16],
            seconds in 0u64..1 << 33,
        ) -> Ticket {
            let expires = Time::from_nanos(seconds * 1_000_000_000);
            Ticket { host, port, fingerprint, secret: Secret(secret), expires }
        }
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read_back(ticket in ticket()) {
            prop_assert_eq!(ticket.to_string().parse(), Ok(ticket.clone()));
            let shouted = ticket.to_string().replace(PREFIX, "").to_ascii_uppercase();
            prop_assert_eq!(format!(" {PREFIX}{shouted}\n").parse(), Ok(ticket));
        }

        #[test]
        fn one_wrong_character_is_noticed(ticket in ticket(), at in 0usize..90, with in "[a-z2-7]") {
            let text = ticket.to_string();
            let at = PREFIX.len() + at % (text.len() - PREFIX.len());
            let wrong = format!("{}{with}{}", &text[..at], &text[at + 1..]);
            prop_assume!(wrong != text);
            prop_assert!(matches!(wrong.parse::<Ticket>(), Err(TicketError::Damaged(_))));
        }

        #[test]
        fn no_text_panics(text in "(sweetspot1:)?\\PC*") {
            let _ = text.parse::<Ticket>();
        }
    }

    #[test]
    fn what_is_no_ticket_is_told_apart() {
        assert_eq!("".parse::<Ticket>(), Err(TicketError::Prefix));
        assert_eq!("sweet".parse::<Ticket>(), Err(TicketError::Prefix));
        assert_eq!("sweetspot2:aa".parse::<Ticket>(), Err(TicketError::Version("2".into())));
        assert!(matches!("sweetspot1:".parse::<Ticket>(), Err(TicketError::Damaged(_))));
    }

    #[test]
    fn a_secret_is_not_printed_by_accident() {
        assert_eq!(format!("{:?}", Secret([7; 16])), "Secret(..)");
    }
}
