//! The messages between `copy` and its far end inside ssh: one JSON object per line.

use std::ffi::OsString;
use std::io::{self, BufRead, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize};
use sweetspot_protocol::{PeerText, Role};
use sweetspot_units::Bytes;

/// The longest line, in bytes; it allows for many paths.
const MAX_LINE_BYTES: usize = 4 << 20;

/// The most bytes that a shell may print before the first message; it allows for a long greeting.
const MAX_GREETING_BYTES: usize = 1 << 20;

/// The job of the far end: the first line to it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// The version of the protocol.
    pub version: u32,
    /// Whether the far end sends or receives.
    pub role: Role,
    /// The files to send.
    pub sources: Vec<PathText>,
    /// The names to send below the only source; `None` for all.
    #[serde(default)]
    pub only: Option<Vec<PathText>>,
    /// The target for received files.
    pub target: Option<PathText>,
    /// Patterns of names to leave out.
    pub exclude: Vec<String>,
    /// Whether extended attributes are sent and accepted.
    pub attributes: bool,
    /// Whether owners are sent and accepted.
    #[serde(default)]
    pub owners: bool,
    /// The deletion at the far end, if it receives; `None` if nothing is deleted.
    #[serde(default)]
    pub delete: Option<Deletion>,
    /// Whether the sender compresses data if that is faster.
    #[serde(default)]
    pub compress: bool,
    /// The sender's maximum rate, in bits per second.
    #[serde(default)]
    pub rate_limit_bps: Option<u64>,
    /// Whether contents are compared instead of lengths and times.
    pub checksum: bool,
    /// Whether existing files are kept.
    pub keep_existing: bool,
    /// Whether this is a dry run.
    pub dry_run: bool,
    /// The sizing, as spelled in `--sizing`.
    pub sizing: Option<String>,
    /// The congestion control of the sender.
    pub congestion: Option<String>,
    /// The number of connections.
    pub streams: Option<u32>,
    /// The port to listen on; 0 for any.
    pub port: u16,
    /// How long a broken transfer may try to resume, in seconds.
    pub retry_for_s: u64,
}

/// A deletion of everything at the target that the sources lack, except excluded names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deletion {
    /// Whether the contents of a source go directly into the target.
    pub contents: bool,
}

/// A path in any encoding, written in hexadecimal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PathText(pub PathBuf);

impl From<&Path> for PathText {
    fn from(path: &Path) -> PathText {
        PathText(path.to_owned())
    }
}

impl From<PathText> for String {
    fn from(path: PathText) -> String {
        HEXLOWER.encode(path.0.as_os_str().as_bytes())
    }
}

impl TryFrom<String> for PathText {
    type Error = String;

    fn try_from(text: String) -> Result<PathText, String> {
        let bytes = HEXLOWER.decode(text.as_bytes()).map_err(|error| error.to_string())?;
        Ok(PathText(OsString::from_vec(bytes).into()))
    }
}

/// A later message to the far end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
pub enum Order {
    /// Connect to one of these tickets instead of waiting.
    Connect {
        /// The tickets, one for each address.
        tickets: Vec<String>,
    },
    /// The connection's data follow on this stream.
    Tunnel,
}

/// A message from the far end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum Reply {
    /// The far end listens.
    Listening {
        version: u32,
        ticket: String,
        /// Addresses at which the far end may be reached, the most likely first.
        addresses: Vec<std::net::IpAddr>,
        /// The address from which the ssh connection came.
        client: Option<std::net::IpAddr>,
    },
    /// The far end connected as requested.
    Connected,
    /// The far end cannot carry out the order.
    Failed {
        /// The reason, in one line.
        reason: PeerText,
    },
}

/// Writes one line. If it is too long for the other end, the error is [`io::ErrorKind::InvalidInput`].
pub fn write_message(mut out: impl Write, line: &impl Serialize) -> io::Result<()> {
    let mut text = serde_json::to_vec(line)?;
    text.push(b'\n');
    if text.len() > MAX_LINE_BYTES {
        let max = Bytes::new(MAX_LINE_BYTES as u64 / 2);
        let error = format!("the names of all sources exceed {max}; copy them in several parts");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, error));
    }
    out.write_all(&text)?;
    out.flush()
}

/// Reads one line; `None` at the end. Lines outside the protocol (a shell's greeting) are skipped. If there are too many of
/// them, or a line is too long, the error is [`io::ErrorKind::InvalidData`].
pub fn read_message<T: for<'de> Deserialize<'de>>(
    mut input: impl BufRead,
) -> io::Result<Option<T>> {
    let mut skipped = 0;
    loop {
        let mut line = Vec::new();
        let max = MAX_LINE_BYTES as u64;
        let read = io::Read::take(&mut input, max).read_until(b'\n', &mut line)?;
        if read == 0 {
            return Ok(None);
        }
        if let Ok(message) = serde_json::from_slice(&line) {
            return Ok(Some(message));
        }
        if line.len() == MAX_LINE_BYTES && !line.ends_with(b"\n") {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a line is too long"));
        }
        skipped += line.len();
        if skipped > MAX_GREETING_BYTES {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the greeting is too long"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_greeting_is_skipped() {
        let mut stream = b"Welcome to host\n{}\n".to_vec();
        write_message(&mut stream, &Order::Tunnel).unwrap();
        stream.extend(b"raw bytes");
        let mut input = &stream[..];
        assert_eq!(read_message::<Order>(&mut input).unwrap(), Some(Order::Tunnel));
        // The rest is not read.
        assert_eq!(input, b"raw bytes");
        let mut nothing = &b""[..];
        assert_eq!(read_message::<Order>(&mut nothing).unwrap(), None);
    }

    /// A mebibyte of lines of two bytes is too long for a greeting.
    #[test]
    fn a_shell_that_never_stops_greeting_is_an_error() {
        let greeting =
            |bytes: usize| [b"y\n".repeat(bytes / 2), b"{\"do\":\"tunnel\"}\n".to_vec()].concat();
        assert_eq!(
            read_message::<Order>(&greeting(MAX_GREETING_BYTES)[..]).unwrap(),
            Some(Order::Tunnel)
        );
        let error = read_message::<Order>(&greeting(MAX_GREETING_BYTES + 2)[..]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }

    #[test]
    fn a_line_longer_than_the_peer_reads_is_an_error() {
        // The quotation marks and the line end take three bytes.
        let longest = "x".repeat(MAX_LINE_BYTES - 3);
        let mut stream = Vec::new();
        write_message(&mut stream, &longest).unwrap();
        assert_eq!(read_message::<String>(&stream[..]).unwrap(), Some(longest.clone()));
        let error = write_message(&mut stream, &(longest + "x")).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        let endless = vec![b'x'; MAX_LINE_BYTES + 1];
        assert_eq!(
            read_message::<String>(&endless[..]).unwrap_err().kind(),
            io::ErrorKind::InvalidData
        );
    }

    #[test]
    fn paths_in_any_encoding_round_trip() {
        let path = PathBuf::from(OsString::from_vec(vec![0xff, b'\n', b'"']));
        let text = serde_json::to_string(&PathText(path.clone())).unwrap();
        assert_eq!(serde_json::from_str::<PathText>(&text).unwrap().0, path);
        assert!(serde_json::from_str::<PathText>("\"zz\"").is_err());
    }
}
