//! The clients of a service: a text file with a client per line, like `authorized_keys`.
//!
//! ```
//! use sweetspot_protocol::clients::Clients;
//!
//! let clients: Clients = "# credential             name  rights\n\
//!     code:7-crisp-lemon-orbit guest dir=/srv/in/guest quota=10GB once\n".parse()?;
//! assert_eq!(clients.list[0].name, "guest");
//! assert!(clients.list[0].rights.write);
//! # Ok::<(), sweetspot_protocol::clients::ClientsError>(())
//! ```

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use data_encoding::{BASE32_NOPAD, BASE32_NOPAD_NOCASE, HEXLOWER};
use sweetspot_units::{Bytes, Time, UnitError};
use thiserror::Error;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::key::{KeyError, PREFIX, PublicKey};
use crate::spoken_code::{CodeError, SpokenCode};
use crate::ticket::Secret;

/// The clients of a service.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Clients {
    /// The clients, in the order of their lines.
    pub list: Vec<Client>,
}

/// One client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Client {
    /// The credential that proves its identity.
    pub credential: Credential,
    /// The client's name at this server.
    pub name: String,
    /// The directory to which the client is confined.
    pub directory: PathBuf,
    /// The maximum size of its directory; `None`: no limit.
    pub quota: Option<Bytes>,
    /// Its rights.
    pub rights: Rights,
    /// The time after which the client is no longer admitted, on the wall clock.
    pub expires: Option<Time>,
    /// Whether the client is admitted for one transfer only.
    pub once: bool,
}

/// The credential that proves a client's identity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Credential {
    /// The private key of a certificate.
    Key(PublicKey),
    /// The secret in a ticket.
    Secret(Secret),
    /// A code that the client received.
    Code(SpokenCode),
}

/// The rights of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rights {
    /// Fetch files from its directory.
    pub read: bool,
    /// Add new files.
    pub write: bool,
    /// Replace existing files.
    pub overwrite: bool,
    /// Add names that begin with a dot, such as `.bashrc`, to directories that existed before.
    pub dotfiles: bool,
}

/// A fault in a file of clients.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "line {line}: {reason}; a line is KEY NAME dir=/ABSOLUTE/DIR [quota=SIZE] [rights=read,write,overwrite,dotfiles] [expires=TIME] [once]"
)]
pub struct ClientsError {
    /// The line's number, from 1.
    pub line: usize,
    /// The public key in the line, if it begins with one.
    pub key: Option<PublicKey>,
    /// The fault.
    #[source]
    pub reason: ClientError,
}

/// Why a line, or a part of it, does not describe a client.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The line is not UTF-8.
    #[error("it is not UTF-8")]
    NotUtf8,
    /// A quoted word has no closing quote.
    #[error("a quotation mark is missing")]
    OpenQuote,
    /// The line has no credential or no name.
    #[error("it is too short")]
    TooShort,
    /// An earlier line has the same credential.
    #[error("{0} already has this key, or a code with this number")]
    Known(String),
    /// The key is invalid.
    #[error("{0}")]
    Key(#[from] KeyError),
    /// The code is invalid.
    #[error("{0}")]
    Code(#[from] CodeError),
    /// The first word is no credential.
    #[error("KEY must begin with {PREFIX} or secret: or code:")]
    Credential,
    /// The secret is invalid.
    #[error("the secret is damaged")]
    Secret,
    /// The name contains characters that are not allowed.
    #[error("\"{0}\" is not a name: expected 1 to {MAX_NAME_BYTES} letters, digits and . - _ @")]
    Name(String),
    /// An option is unknown, or its value is missing.
    #[error("unknown option \"{0}\"")]
    Option(String),
    /// The directory is missing.
    #[error("dir= is missing")]
    NoDirectory,
    /// The directory is relative. A service's working directory is not its operator's.
    #[error("dir={}: expected an absolute path, such as dir=/srv/in", .0.display())]
    RelativeDirectory(PathBuf),
    /// The quota is not a size.
    #[error("{0}")]
    Quota(#[from] UnitError),
    /// A right is unknown.
    #[error("unknown right \"{0}\"; expected read, write, overwrite or dotfiles")]
    Right(String),
    /// The expiry date is not a time.
    #[error("\"{0}\" is not a time; write it like 2027-01-31T18:00:00Z")]
    Expiry(String),
}

/// The longest name of a client, bytes.
const MAX_NAME_BYTES: usize = 64;

impl Credential {
    /// A stable name for logs that does not reveal the credential.
    pub fn id(&self) -> String {
        let context = "sweetspot 1 name of a credential";
        HEXLOWER.encode(&blake3::derive_key(context, self.to_string().as_bytes())[..16])
    }

    /// A value that only one line of a file may have. A peer identifies a code only by its number.
    fn what_it_answers_to(&self) -> String {
        match self {
            Credential::Code(code) => format!("code:{}", code.number()),
            other => other.to_string(),
        }
    }
}

/// The text of the credential in the file, including secrets.
impl fmt::Display for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Credential::Key(key) => key.fmt(f),
            Credential::Secret(Secret(secret)) => {
                write!(f, "secret:{}", BASE32_NOPAD.encode(secret).to_ascii_lowercase())
            }
            Credential::Code(code) => write!(f, "code:{}", code.password()),
        }
    }
}

impl FromStr for Credential {
    type Err = ClientError;

    fn from_str(text: &str) -> Result<Credential, ClientError> {
        if let Some(code) = text.strip_prefix("code:") {
            return Ok(Credential::Code(code.parse()?));
        }
        if text.starts_with(PREFIX) {
            return Ok(Credential::Key(text.parse()?));
        }
        let secret = text.strip_prefix("secret:").ok_or(ClientError::Credential)?;
        let bytes = BASE32_NOPAD_NOCASE.decode(secret.as_bytes()).ok();
        let secret = bytes.and_then(|bytes| bytes.try_into().ok());
        Ok(Credential::Secret(Secret(secret.ok_or(ClientError::Secret)?)))
    }
}

impl Rights {
    /// Only adding new files.
    pub const WRITE: Rights =
        Rights { read: false, write: true, overwrite: false, dotfiles: false };
}

impl fmt::Display for Rights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = [
            (self.read, "read"),
            (self.write, "write"),
            (self.overwrite, "overwrite"),
            (self.dotfiles, "dotfiles"),
        ];
        let held: Vec<&str> = all.into_iter().filter(|(held, _)| *held).map(|(_, n)| n).collect();
        f.write_str(&held.join(","))
    }
}

impl FromStr for Rights {
    type Err = ClientError;

    fn from_str(text: &str) -> Result<Rights, ClientError> {
        let mut rights = Rights { write: false, ..Rights::WRITE };
        for word in text.split(',') {
            match word {
                "read" => rights.read = true,
                "write" => rights.write = true,
                "overwrite" => (rights.write, rights.overwrite) = (true, true),
                "dotfiles" => (rights.write, rights.dotfiles) = (true, true),
                other => return Err(ClientError::Right(other.to_owned())),
            }
        }
        Ok(rights)
    }
}

impl fmt::Display for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} dir=\"{}\"", self.credential, self.name, self.directory.display())?;
        if let Some(quota) = self.quota {
            write!(f, " quota={}B", quota.get())?;
        }
        write!(f, " rights={}", self.rights)?;
        if let Some(text) = self.expires.and_then(rfc3339) {
            write!(f, " expires={text}")?;
        }
        if self.once { f.write_str(" once") } else { Ok(()) }
    }
}

impl Clients {
    /// Parses the valid lines, and lists the faults of the others. A faulty line admits no client and leaves the other
    /// lines valid.
    pub fn read(text: &[u8]) -> (Clients, Vec<ClientsError>) {
        let (mut list, mut errors) = (Vec::<Client>::new(), Vec::new());
        let mut known = HashMap::<String, usize>::new();
        for (i, line) in text.split(|byte| *byte == b'\n').enumerate() {
            let read = read_line(line).and_then(|client| {
                let Some(client) = client else { return Ok(()) };
                match known.entry(client.credential.what_it_answers_to()) {
                    Entry::Occupied(first) => {
                        Err(ClientError::Known(list[*first.get()].name.clone()))
                    }
                    Entry::Vacant(entry) => {
                        entry.insert(list.len());
                        list.push(client);
                        Ok(())
                    }
                }
            });
            errors.extend(read.err().map(|reason| {
                let key = first_word(line).and_then(|word| word.parse().ok());
                ClientsError { line: i + 1, key, reason }
            }));
        }
        (Clients { list }, errors)
    }
}

/// Succeeds only if all lines are valid.
impl FromStr for Clients {
    type Err = ClientsError;

    fn from_str(text: &str) -> Result<Clients, ClientsError> {
        let (clients, errors) = Clients::read(text.as_bytes());
        errors.into_iter().next().map_or(Ok(clients), Err)
    }
}

/// The client of a line; `None` if the line has only a comment.
fn read_line(line: &[u8]) -> Result<Option<Client>, ClientError> {
    let line = std::str::from_utf8(line).map_err(|_| ClientError::NotUtf8)?;
    let words = words(line)?;
    if words.is_empty() { Ok(None) } else { client(&words).map(Some) }
}

fn first_word(line: &[u8]) -> Option<&str> {
    line.utf8_chunks().next()?.valid().split_whitespace().next()
}

/// Rejects a client's name that cannot be written in a line.
pub fn check_name(name: &str) -> Result<(), ClientError> {
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_' | b'@');
    if (1..=MAX_NAME_BYTES).contains(&name.len()) && name.bytes().all(plain) {
        return Ok(());
    }
    Err(ClientError::Name(name.to_owned()))
}

fn client(words: &[String]) -> Result<Client, ClientError> {
    let [credential, name, options @ ..] = words else { return Err(ClientError::TooShort) };
    let credential = credential.parse()?;
    check_name(name)?;
    let mut directory = None;
    let (mut quota, mut rights, mut expires, mut once) = (None, Rights::WRITE, None, false);
    for option in options {
        match option.split_once('=').unwrap_or((option, "")) {
            ("dir", path) if !path.is_empty() => directory = Some(PathBuf::from(path)),
            ("quota", size) => quota = Some(size.parse()?),
            ("rights", list) => rights = list.parse()?,
            ("expires", time) => expires = Some(instant(time)?),
            ("once", "") => once = true,
            _ => return Err(ClientError::Option(option.clone())),
        }
    }
    let directory = directory.ok_or(ClientError::NoDirectory)?;
    if !directory.has_root() {
        return Err(ClientError::RelativeDirectory(directory));
    }
    Ok(Client { credential, name: name.clone(), directory, quota, rights, expires, once })
}

/// The words of a line, up to a `#`. Double quotes keep blanks within a word.
fn words(line: &str) -> Result<Vec<String>, ClientError> {
    let mut words = Vec::new();
    let (mut word, mut quoted) = (None::<String>, false);
    for c in line.chars() {
        match c {
            '"' => {
                quoted = !quoted;
                word.get_or_insert_default();
            }
            '#' if !quoted && word.is_none() => break,
            c if c.is_whitespace() && !quoted => words.extend(word.take()),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    if quoted { Err(ClientError::OpenQuote) } else { Ok(words) }
}

/// Parses a time in the format of RFC 3339.
fn instant(text: &str) -> Result<Time, ClientError> {
    let wrong = || ClientError::Expiry(text.to_owned());
    let parsed = OffsetDateTime::parse(text, &Rfc3339).map_err(|_| wrong())?;
    u64::try_from(parsed.unix_timestamp_nanos()).map(Time::from_nanos).map_err(|_| wrong())
}

/// A time, counted from 1970 UTC, in the format of RFC 3339.
pub fn rfc3339(at: Time) -> Option<String> {
    let seconds = i64::try_from(at.as_nanos() / 1_000_000_000).ok()?;
    OffsetDateTime::from_unix_timestamp(seconds).ok()?.format(&Rfc3339).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn key() -> String {
        PublicKey([7; 32]).to_string()
    }

    #[test]
    fn a_line_has_credential_name_directory_quota_rights_and_expiry() {
        let text = format!(
            "# comment\n\n{} alice dir=\"/srv/in box\" quota=10GB rights=read,overwrite \
             expires=2027-01-31T18:00:00Z once # more\n",
            key()
        );
        let clients: Clients = text.parse().unwrap();
        let [client] = &clients.list[..] else { panic!("{clients:?}") };
        assert_eq!(client.credential, Credential::Key(PublicKey([7; 32])));
        assert_eq!(client.directory, PathBuf::from("/srv/in box"));
        assert_eq!(client.quota, Some(Bytes::new(10_000_000_000)));
        assert_eq!(client.rights, Rights { read: true, overwrite: true, ..Rights::WRITE });
        // 57 years of 365 days, 14 leap days from 1972 to 2024, 30 days and 18 hours.
        let days = 57 * 365 + 14 + 30;
        let seconds = (days * 24 + 18) * 3600;
        assert_eq!(client.expires, Some(Time::from_nanos(seconds * 1_000_000_000)));
        assert!(client.once);
    }

    #[test]
    fn errors_name_the_fault_and_the_line() {
        let key = key();
        for (text, words) in [
            (format!("\n{key} alice"), "line 2: dir= is missing"),
            (format!("{key}x alice dir=/a"), "line 1: this is not a key"),
            (format!("{key} alice dir=in/a"), "dir=in/a: expected an absolute path"),
            (format!("{key} al/ice dir=/a"), "\"al/ice\" is not a name"),
            (format!("{key} alice dir=/a rights=all"), "unknown right"),
            (format!("{key} alice dir=/a qouta=1GB"), "unknown option"),
            (format!("{key} alice dir=/a expires=soon"), "is not a time"),
            (format!("{key} alice dir=\"/a"), "quotation mark"),
            (format!("{key} a dir=/a\n{key} b dir=/b"), "line 2: a already has this key"),
            ("code:7-a-b-c x dir=/a\ncode:7-c-d-e y dir=/b".to_owned(), "code with this number"),
            ("secret:abc x dir=/a".to_owned(), "damaged"),
            (
                "garbage line here".to_owned(),
                "line 1: KEY must begin with sweetspot-key1: or secret: or code:",
            ),
        ] {
            let error = text.parse::<Clients>().unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn an_invalid_line_admits_no_client_and_leaves_other_lines_valid() {
        let key = key();
        let text =
            format!("{key} alice dir=/a\n{key} mallory dir=/\ncode:7-a-b-c bob dir=/b\nsecret:x");
        let mut bytes = text.into_bytes();
        bytes.extend(b"\n\xff\xfe carol dir=/c\ncode:7-c-d-e dave dir=/d\n");
        let (clients, errors) = Clients::read(&bytes);
        let names: Vec<&str> = clients.list.iter().map(|client| &*client.name).collect();
        // Of two lines with the same key the first is valid; likewise for two codes with the same number.
        assert_eq!(names, ["alice", "bob"]);
        let lines: Vec<usize> = errors.iter().map(|error| error.line).collect();
        assert_eq!(lines, [2, 4, 5, 6]);
        assert_eq!(errors[2].reason, ClientError::NotUtf8);
    }

    proptest! {
        #[test]
        fn a_printed_client_parses_back(
            secret: [u8; 16],
            name in "[a-z][a-z0-9.@_-]{0,30}",
            directory in "/[a-z ]{1,30}",
            quota in proptest::option::of(0u64..1 << 50),
            seconds in proptest::option::of(0u64..1 << 33),
            bits in 0u8..6,
            once: bool,
        ) {
            let client = Client {
                credential: Credential::Secret(Secret(secret)),
                name,
                directory: directory.into(),
                quota: quota.map(Bytes::new),
                rights: Rights {
                    read: bits % 3 > 0,
                    write: true,
                    overwrite: bits % 3 == 2,
                    dotfiles: bits >= 3,
                },
                expires: seconds.map(|s| Time::from_nanos(s * 1_000_000_000)),
                once,
            };
            let read: Clients = client.to_string().parse().unwrap();
            prop_assert_eq!(read.list, vec![client]);
        }

        #[test]
        fn no_text_causes_a_panic(text in "\\PC*") {
            let _ = Clients::read(text.as_bytes());
        }
    }
}
