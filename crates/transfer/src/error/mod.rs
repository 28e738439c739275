//! Errors of a transfer or a server, with messages for this end and for the peer.

mod class;
pub(crate) mod for_peer;
mod next_step;

use std::io;
use std::path::PathBuf;

use sweetspot_protocol::{
    CodeError, PathError, PeerText, Printable, ProtocolError, PublicKey, VERSION,
};
use sweetspot_sizing::SizingError;
use sweetspot_units::{Bytes, Duration};
use thiserror::Error;

use crate::limits::{LONGEST_STALL, MEASURE_BYTES, MEASURE_INTERVAL, MEASURE_TIME};
use next_step::{reachable, readable, unavailable, writable};

/// The next step after a transfer that can resume.
const RESUME: &str = "; start the transfer again to resume it";

/// The reason why a clients file cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ClientsFileError {
    /// The file does not exist.
    #[error("it does not exist; `sweetspot serve invite` creates it for the first client")]
    Missing,
    /// The file cannot be opened or read.
    #[error("{}; name a file that can be read", system(.0))]
    Unreadable(#[source] io::Error),
    /// The file is longer than a clients file may be.
    #[error("it is too long for a clients file")]
    TooLong,
    /// The last line is incomplete, and the file has just changed.
    #[error("it looks half-written: its last line has no line break")]
    Unfinished,
    /// Users other than the owner may write to the file.
    #[error("others may write to it; chmod 600 it")]
    OthersMayWrite,
    /// The file contains secrets, and users other than the owner may read it.
    #[error("it holds secrets, and others may read it; chmod 600 it")]
    OthersMayRead,
}

/// The result of an operation of this crate.
pub type Result<T, E = TransferError> = std::result::Result<T, E>;

/// A system error in words, without its number.
pub(crate) fn system(error: &io::Error) -> String {
    let text = error.to_string();
    let number = error.raw_os_error().map(|code| format!(" (os error {code})"));
    number.and_then(|number| text.strip_suffix(&number)).unwrap_or(&text).to_owned()
}

fn nothing_moved(failures: &[String], count: u64) -> String {
    let first = failures.first().map_or("nothing was transferred", String::as_str);
    match count {
        0 | 1 => Printable(first).to_string(),
        _ => {
            format!("nothing was transferred; the first of {count} failures: {}", Printable(first))
        }
    }
}

/// The reason why a transfer or a server failed. The message is one line: the thing that failed, the reason, and the next step.
///
/// For transferred files, variants hold the name that both ends know: relative to the receiver's directory, and escaped for
/// printing. It is not a path to open.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TransferError {
    /// The file to send cannot be read.
    #[error("{}: {}; {}", Printable(.path), system(.source), readable(.source))]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// There is nothing to send.
    #[error("nothing was sent: {0}")]
    NothingToSend(String),
    /// Several things to send have this name.
    #[error("several sources are named {}; move them one at a time, or directories as contents, with a slash at the end", Printable(.0))]
    SameName(PathBuf),
    /// A pattern of excluded names is invalid.
    #[error("\"{pattern}\" is not a valid pattern: {reason}")]
    Pattern {
        /// The pattern.
        pattern: String,
        /// The fault of the pattern.
        reason: String,
    },
    /// The directory to receive into is missing or cannot be read.
    #[error("{}: {}; {}", Printable(.path), system(.source), writable(.source))]
    Directory {
        /// The directory.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The user's target cannot hold the sources.
    #[error("{}: {reason}", Printable(.path))]
    Target {
        /// The target.
        path: PathBuf,
        /// The reason, and the next step.
        reason: &'static str,
    },
    /// The target's parent directory is missing. Holds the target and that directory.
    #[error("{}: its parent directory {} does not exist; create it first", Printable(.0), Printable(.1))]
    NoParent(PathBuf, PathBuf),
    /// The content could not be written.
    #[error("{}: {}; {next}", Printable(.path), system(.source))]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
        /// The next step.
        next: &'static str,
    },
    /// A file of that name exists, and overwriting is off.
    #[error(
        "{} already exists and was left unchanged", Printable(.0)
    )]
    Exists(PathBuf),
    /// Another transfer is writing that file.
    #[error("{} is being written by another transfer; wait for it, or choose another name", Printable(.0))]
    InUse(PathBuf),
    /// Something other than a directory has the name of a directory to be created.
    #[error("{} exists and is not a directory; it was left unchanged; remove it, or choose another name", Printable(.0))]
    NotADirectory(PathBuf),
    /// The sender offers or sends something that this end did not request.
    #[error("{} was not requested; the transfer stops: the sender may be hostile", Printable(.0))]
    NotAskedFor(String),
    /// The name begins with a dot, in a directory that no transfer of this process created.
    #[error(
        "{} was left out: names that begin with a dot may configure programs, so only a directory that this transfer creates may have them",
        Printable(.0)
    )]
    Dotfile(PathBuf),
    /// A symbolic link leads out of the directory.
    #[error("{}: a symbolic link that leads out of the receiver's directory; send the file itself", Printable(.0))]
    LeadsOut(PathBuf),
    /// A hard link to a file that the sender did not send.
    #[error("{}: a hard link to a file that did not arrive; send it by itself", Printable(.0))]
    ForeignLink(PathBuf),
    /// Owners were requested, but this process may not set them.
    #[error(
        "owners and groups can only be set by root at the receiving end; log in as root there, or leave the owners out"
    )]
    OwnersNeedRoot,
    /// Several sources cannot all go to standard output.
    #[error("standard output takes one file, and the sender has several, or a directory")]
    OneOutput,
    /// The receiver ended without confirming this many files.
    #[error("the receiver did not confirm {0} of the files; start the transfer again")]
    Unconfirmed(usize),
    /// No entry was transferred.
    #[error("{}", nothing_moved(.failures, *.count))]
    NothingMoved {
        /// The reasons, one line each; the first hundred.
        failures: Vec<String>,
        /// How many entries failed.
        count: u64,
        /// Whether the peer rejected some of the entries.
        by_peer: bool,
    },
    /// A device, a pipe or a socket has that name, or this end's user named a symbolic link.
    #[error("{} is a {what} and was left unchanged; name another file or directory", Printable(.path))]
    Special {
        /// Its name.
        path: PathBuf,
        /// Its kind.
        what: &'static str,
    },
    /// A directory of that name exists.
    #[error("{} is a directory and was left unchanged; remove it, or choose another name", Printable(.0))]
    IsDirectory(PathBuf),
    /// The sender's name for the file is not allowed.
    #[error(transparent)]
    Path(#[from] PathError),
    /// The server cannot listen on its address.
    #[error("cannot listen on {address}: {}; choose another address or port", system(.source))]
    Listen {
        /// Address and port.
        address: String,
        /// The system's error.
        source: io::Error,
    },
    /// The other end did not answer.
    #[error(
        "cannot reach {address}: {}; {}",
        system(.source),
        reachable(.source)
    )]
    Unreachable {
        /// Address and port.
        address: String,
        /// The system's error.
        source: io::Error,
    },
    /// The other end's certificate is not the one in the ticket. Holds the peer's address.
    #[error(
        "{0} is not the host that this ticket names (another certificate); ask for the ticket that the program running there printed"
    )]
    CertificateMismatch(String),
    /// TLS failed for another reason.
    #[error("no secure connection with {peer}: {reason}")]
    Tls {
        /// The peer's address.
        peer: String,
        /// The reason.
        reason: String,
    },
    /// The peer did not prove the ticket's secret. Holds the peer's address.
    #[error("{0} was rejected: it does not hold this ticket's secret")]
    WrongTicket(String),
    /// No client has the peer's key.
    #[error("{peer} was rejected: its key {key} is not in the clients file")]
    UnknownKey {
        /// The peer's address.
        peer: String,
        /// The peer's key.
        key: PublicKey,
    },
    /// The clients file has the peer's key on an invalid line.
    #[error("{peer} was rejected: the line of its key {key} in the clients file has a mistake")]
    WrongLine {
        /// The peer's address.
        peer: String,
        /// The peer's key.
        key: PublicKey,
    },
    /// The client has no right to this operation.
    #[error("{peer} was rejected: it has no right to {what}")]
    NoRight {
        /// The client's name, if it has one, and its address.
        peer: String,
        /// The refused operation.
        what: &'static str,
    },
    /// The peer's one-time credential has been used. Holds the peer's address.
    #[error("{0} was rejected: its one-time ticket or code has already been used")]
    UsedUp(String),
    /// Another transfer is using the peer's one-time credential. Holds the peer's address.
    #[error("{0} was rejected: another transfer with its one-time ticket is running")]
    InTurn(String),
    /// There is no such code, or it has already been tried. Holds the peer's address.
    #[error("{0} was rejected: there is no such code, or a wrong attempt has invalidated it")]
    NoCode(String),
    /// The peer's code was wrong, and its only attempt is used. Holds the peer's address.
    #[error("{0} was rejected: its code is wrong, and that attempt has invalidated the code")]
    WrongCode(String),
    /// A wrong attempt invalidated the only code of this server.
    #[error("a wrong attempt has invalidated the code; start again for a new one")]
    CodeEnded,
    /// The other end disconnected while a code was being checked. Holds its address.
    #[error(
        "{0} disconnected while the code was checked, which invalidates the code; ask for a new one"
    )]
    CodeCut(String),
    /// The server or the client has reached its maximum of sessions or connections. Holds the peer's address.
    #[error("{peer} was rejected: {what}")]
    Full {
        /// The peer's address.
        peer: String,
        /// The exhausted resource.
        what: &'static str,
    },
    /// The client's measurements have used up the traffic or time that this end allows.
    #[error(
        "this end sends at most {MEASURE_BYTES}, for at most {MEASURE_TIME}, to measure with one client per {MEASURE_INTERVAL}; measure again later"
    )]
    MeasuredEnough,
    /// The peer did not prove a credential in time.
    #[error("{peer} was rejected: it did not prove a ticket, a key or a code within {patience}")]
    NotProved {
        /// The peer's address.
        peer: String,
        /// The time limit.
        patience: Duration,
    },
    /// The peer sends more slowly than the slowest usable path. Holds its address.
    #[error("{0} sends too slowly; start the transfer again to resume it")]
    TooSlow(String),
    /// The peer keeps its session alive but transfers nothing. Holds its address.
    #[error(
        "{0} moved neither a byte nor a file for {LONGEST_STALL}; start the transfer again to resume it"
    )]
    Stalled(String),
    /// All code numbers are in use.
    #[error("all 99 codes are taken; remove used ones from the clients file")]
    NoCodeFree,
    /// The code is invalid.
    #[error(transparent)]
    Code(#[from] CodeError),
    /// The client's directory would exceed its quota.
    #[error("{} does not fit in the quota of {quota} ({used} used); remove something there, or ask for more", Printable(.path))]
    Quota {
        /// The name that does not fit.
        path: PathBuf,
        /// The quota.
        quota: Bytes,
        /// The used part of the quota.
        used: Bytes,
    },
    /// An entry exceeds one of a transfer's limits.
    #[error("{}: {reason}", Printable(.path))]
    TooMuch {
        /// The name that does not fit.
        path: PathBuf,
        /// The exceeded limit, and the alternative.
        reason: &'static str,
    },
    /// The clients file cannot be used.
    #[error("{}: {reason}", Printable(.path))]
    Clients {
        /// The file.
        path: PathBuf,
        /// The reason.
        #[source]
        reason: ClientsFileError,
    },
    /// The identity file cannot be read or written.
    #[error("{}: {}", Printable(.path), system(.source))]
    Identity {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The file of used credentials cannot be read or written.
    #[error("{}: {}; no client is admitted until it can be read and written", Printable(.path), system(.source))]
    State {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The ticket has expired. Holds the peer's address.
    #[error("{0} was rejected: its ticket has expired")]
    Expired(String),
    /// The only ticket or code of this server has expired, and no transfer runs. Holds `ticket` or `code`.
    #[error("the {0} has expired; start again for a new one")]
    TicketExpired(&'static str),
    /// The connection belongs to a transfer that does not run here. Holds the peer's address.
    #[error("{0} was rejected: its transfer is not running here")]
    NoTransfer(String),
    /// Both ends would send, or both receive. Holds the peer's address.
    #[error("{0} was rejected: both ends want to {what}", what = .1)]
    SameRole(String, &'static str),
    /// The server accepts one transfer, and already has it. Holds the peer's address.
    #[error("{0} was rejected: this server accepts one transfer, which is already running")]
    Taken(String),
    /// The peer uses another version of the protocol.
    #[error(
        "{peer} uses protocol version {theirs}, and this program uses version {VERSION}; use the same version of sweetspot on both ends"
    )]
    Version {
        /// The peer's address.
        peer: String,
        /// The peer's version.
        theirs: u32,
    },
    /// The peer rejected the transfer. Holds its reason.
    #[error("the other end refused: {0}")]
    Refused(PeerText),
    /// No datagram reached the server. Holds its address.
    #[error("no datagram reaches {0}, and measuring needs UDP; allow UDP to the same port as TCP")]
    NoDatagrams(String),
    /// The far end disconnected during a measurement. Holds its address.
    #[error(
        "{0} disconnected during the measurement; check that `sweetspot serve` still runs there, and measure again"
    )]
    MeasurementCut(String),
    /// A server did not answer a one-sided measurement.
    #[error(
        "cannot connect to {address}: {}; name a TCP port that is open there, as HOST:PORT",
        system(.source)
    )]
    NoAnswer {
        /// Host and port.
        address: String,
        /// The system's error.
        source: io::Error,
    },
    /// The peer failed. Holds its reason.
    #[error("the other end gave up: {0}")]
    PeerFailed(PeerText),
    /// The connection ended during the transfer.
    #[error("{peer} disconnected after {done}; start the transfer again to resume it")]
    PeerGone {
        /// The peer's address.
        peer: String,
        /// The content transferred so far.
        done: Bytes,
    },
    /// The peer sent nothing for too long.
    #[error("{peer} was silent for {patience}; start the transfer again to resume it")]
    Silent {
        /// The peer's address.
        peer: String,
        /// The time limit.
        patience: Duration,
    },
    /// The peer broke the protocol.
    #[error("{error} and was dropped")]
    Protocol {
        /// How it broke the protocol.
        #[from]
        error: ProtocolError,
    },
    /// The received content differs from the sent content.
    #[error(
        "the content's hash does not match: sent {sent}, received {received}; start the transfer again"
    )]
    WrongHash {
        /// BLAKE3 at the sender.
        sent: String,
        /// BLAKE3 at the receiver.
        received: String,
    },
    /// The sizing is not available.
    #[error(transparent)]
    Sizing(#[from] SizingError),
    /// The congestion control is not available.
    #[error(
        "congestion control \"{}\"{}: {}; {hint}",
        Printable(.name),
        if *.by_peer { ", which the receiver asks for" } else { "" },
        unavailable(.source)
    )]
    Congestion {
        /// The congestion control's name.
        name: String,
        /// Whether the receiver requested it, and not this end's user.
        by_peer: bool,
        /// The system's error.
        source: io::Error,
        /// The alternative.
        hint: String,
    },
    /// The listener refuses connections: its program has ended, and its key with it. Holds its address.
    #[error(
        "the program that listened at {0} has ended; received data is kept: start the transfer again to resume, with a new ticket if it \
         had one"
    )]
    Gone(String),
    /// The path broke, and no new connection succeeded in time. The reason is the last one.
    #[error(
        "{reason}; gave up {patience} after the last data{}; start the transfer again to resume it",
        kept.map(|kept| format!(", with {kept} received and kept")).unwrap_or_default()
    )]
    GaveUp {
        /// The reason why the last attempt failed.
        reason: String,
        /// How long the program tried to reconnect.
        patience: Duration,
        /// The content that the receiver keeps, if known.
        kept: Option<Bytes>,
    },
    /// This end was stopped, and its ticket with it. This message is sent to the peer.
    #[error(
        "it was stopped, and its ticket ended with it; received data is kept: ask for a new ticket to resume"
    )]
    Stopped,
    /// The transfer was interrupted.
    #[error("interrupted; start the transfer again to resume it")]
    Interrupted,
    /// Another call to the operating system failed.
    #[error("{what}: {}", system(.source))]
    System {
        /// The purpose of the call.
        what: &'static str,
        /// The system's error.
        source: io::Error,
    },
}

impl TransferError {
    /// The message without the advice to restart, for a transfer that resumes by itself.
    pub fn without_restart(&self) -> String {
        if let TransferError::Unreachable { address, source } = self {
            return format!("cannot reach {address}: {}", system(source));
        }
        let line = self.to_string();
        line.strip_suffix(RESUME).map_or(line.clone(), str::to_owned)
    }

    /// The message for a sender of standard input, if the error advises a restart: a stream cannot resume.
    pub fn for_a_stream(&self) -> Option<String> {
        let line = self.to_string();
        let what = line.strip_suffix(RESUME)?;
        Some(format!("{what}; start again, with standard input from its beginning"))
    }
}
