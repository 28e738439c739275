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

/// The next step after a transfer that can go on.
const RESUME: &str = "; start the transfer again to resume it";

/// Why a file of clients cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ClientsFileError {
    /// There is no such file.
    #[error("it does not exist; `sweetspot serve invite` creates it for the first client")]
    Missing,
    /// It cannot be opened or read.
    #[error("{}; name a file that can be read", system(.0))]
    Unreadable(#[source] io::Error),
    /// It is longer than a file of clients may be.
    #[error("it is too long for a clients file")]
    TooLong,
    /// Its last line does not end, and it changed just now.
    #[error("it looks half-written: its last line has no line break")]
    Unfinished,
    /// Users other than its owner may write to it.
    #[error("others may write to it; chmod 600 it")]
    OthersMayWrite,
    /// It holds secrets, and users other than its owner may read it.
    #[error("it holds secrets, and others may read it; chmod 600 it")]
    OthersMayRead,
}

/// The result of what a transfer or a server does.
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

/// Why a transfer or a server failed. The message is one line that names the thing, the reason and the next step.
///
/// Of a file that is transferred, a variant holds the name that both ends know, relative to the receiver's directory and escaped for
/// printing. It is not a path to open.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TransferError {
    /// The file to send cannot be read.
    #[error("{}: {}; {}", Printable(.path), system(.source), readable(.source))]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// There is nothing to send.
    #[error("nothing was sent: {0}")]
    NothingToSend(String),
    /// Several things to send have this name.
    #[error("several sources are named {}; move them one at a time, or directories as contents, with a slash at the end", Printable(.0))]
    SameName(PathBuf),
    /// A pattern of names to leave out.
    #[error("\"{pattern}\" is not a valid pattern: {reason}")]
    Pattern {
        /// The pattern.
        pattern: String,
        /// Why.
        reason: String,
    },
    /// The directory to serve into is missing or may not be read.
    #[error("{}: {}; {}", Printable(.path), system(.source), writable(.source))]
    Directory {
        /// The directory.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The user's target cannot take what is sent.
    #[error("{}: {reason}", Printable(.path))]
    Target {
        /// The target.
        path: PathBuf,
        /// Why, and the next step.
        reason: &'static str,
    },
    /// The target's parent directory is missing: the target, and that directory.
    #[error("{}: its parent directory {} does not exist; create it first", Printable(.0), Printable(.1))]
    NoParent(PathBuf, PathBuf),
    /// Writing the content failed.
    #[error("{}: {}; {next}", Printable(.path), system(.source))]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
        /// The next step.
        next: &'static str,
    },
    /// A file of that name exists, and overwriting is off.
    #[error(
        "{} already exists and was left unchanged", Printable(.0)
    )]
    Exists(PathBuf),
    /// Another transfer writes that file.
    #[error("{} is being written by another transfer; wait for it, or choose another name", Printable(.0))]
    InUse(PathBuf),
    /// Something that is not a directory is where a directory is to be.
    #[error("{} exists and is not a directory; it was left unchanged; remove it, or choose another name", Printable(.0))]
    NotADirectory(PathBuf),
    /// The sender offers, or sends, something that this end did not ask for.
    #[error("{} was not requested; the transfer stops: the sender may be hostile", Printable(.0))]
    NotAskedFor(String),
    /// A name begins with a dot, in a directory that no transfer of this process made.
    #[error(
        "{} was left out: a name that begins with a dot may configure programs, unless this transfer creates its directory",
        Printable(.0)
    )]
    Dotfile(PathBuf),
    /// A symbolic link leads out of the directory.
    #[error("{}: a symbolic link that leads out of the receiver's directory; send the file itself", Printable(.0))]
    LeadsOut(PathBuf),
    /// A further name of a file that the sender did not bring.
    #[error("{}: a hard link to a file that did not arrive; send it by itself", Printable(.0))]
    ForeignLink(PathBuf),
    /// Owners were asked for, where this process may not set them.
    #[error(
        "owners and groups can only be set by root at the receiving end; log in as root there, or leave the owners out"
    )]
    OwnersNeedRoot,
    /// Several things were sent to standard output.
    #[error("standard output takes one file, and the sender has several, or a directory")]
    OneOutput,
    /// The receiver ended without confirming this many files.
    #[error("the receiver did not confirm {0} of the files; start the transfer again")]
    Unconfirmed(usize),
    /// Nothing was transferred at all.
    #[error("{}", nothing_moved(.failures, *.count))]
    NothingMoved {
        /// The reasons, one line each; the first hundred.
        failures: Vec<String>,
        /// How many entries failed.
        count: u64,
        /// Whether the peer refused some of them.
        by_peer: bool,
    },
    /// A device, a pipe or a socket has that name; or the user of this end named a symbolic link.
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
    /// The sender's name for the file is refused.
    #[error(transparent)]
    Path(#[from] PathError),
    /// The server cannot listen on its address.
    #[error("cannot listen on {address}: {}; choose another address or port", system(.source))]
    Listen {
        /// Address and port.
        address: String,
        /// Why.
        source: io::Error,
    },
    /// The receiver did not answer.
    #[error(
        "cannot reach {address}: {}; {}",
        system(.source),
        reachable(.source)
    )]
    Unreachable {
        /// Address and port.
        address: String,
        /// Why.
        source: io::Error,
    },
    /// The receiver's certificate is not the ticket's. Holds the peer's address.
    #[error(
        "{0} is not the host that this ticket names (another certificate); ask for the ticket that the program running there printed"
    )]
    CertificateMismatch(String),
    /// TLS failed for another reason.
    #[error("no secure connection with {peer}: {reason}")]
    Tls {
        /// The peer's address.
        peer: String,
        /// Why.
        reason: String,
    },
    /// The sender did not prove the ticket's secret. Holds the peer's address.
    #[error("{0} was turned away: it does not hold this ticket's secret")]
    WrongTicket(String),
    /// The peer's key is not among the clients'.
    #[error("{peer} was turned away: its key {key} is not in the clients file")]
    UnknownKey {
        /// The peer's address.
        peer: String,
        /// Its key.
        key: PublicKey,
    },
    /// The line of the peer's key in the clients file is wrong.
    #[error("{peer} was turned away: the line of its key {key} in the clients file has a mistake")]
    WrongLine {
        /// The peer's address.
        peer: String,
        /// Its key.
        key: PublicKey,
    },
    /// A client without the right to its request.
    #[error("{peer} was turned away: it has no right to {what}")]
    NoRight {
        /// The client's name, if it has one, and its address.
        peer: String,
        /// The refused operation.
        what: &'static str,
    },
    /// The peer's one-time credential has been used. Holds the peer's address.
    #[error("{0} was turned away: its one-time ticket or code has already been used")]
    UsedUp(String),
    /// Another transfer uses the peer's one-time credential at this moment. Holds the peer's address.
    #[error("{0} was turned away: another transfer with its one-time ticket is running")]
    InTurn(String),
    /// There is no such code, or it was tried already. Holds the peer's address.
    #[error("{0} was turned away: there is no such code, or a wrong attempt has invalidated it")]
    NoCode(String),
    /// The code was wrong, and that was its one try. Holds the peer's address.
    #[error("{0} was turned away: its code is wrong, and that attempt has invalidated the code")]
    WrongCode(String),
    /// The only code of a server was tried wrongly.
    #[error("a wrong attempt has invalidated the code; start again for a new one")]
    CodeEnded,
    /// The other end went away while a code was tried. Holds its address.
    #[error(
        "{0} disconnected while the code was checked, which invalidates the code; ask for a new one"
    )]
    CodeCut(String),
    /// The server, or the peer's client, has as many sessions or connections as it may. Holds the peer's address.
    #[error("{peer} was turned away: {what}")]
    Full {
        /// The peer's address.
        peer: String,
        /// The exhausted resource.
        what: &'static str,
    },
    /// A client's measurements made this end send as much as they may.
    #[error(
        "this end sends at most {MEASURE_BYTES}, for at most {MEASURE_TIME}, to measure with one client per {MEASURE_INTERVAL}; measure again later"
    )]
    MeasuredEnough,
    /// The peer did not prove a credential in time.
    #[error("{peer} was turned away: it did not prove a ticket, a key or a code within {patience}")]
    NotProved {
        /// The peer's address.
        peer: String,
        /// The time limit.
        patience: Duration,
    },
    /// The peer sends less than the slowest path would carry. Holds its address.
    #[error("{0} sends too slowly; start the transfer again to resume it")]
    TooSlow(String),
    /// The peer keeps its session alive and moves nothing. Holds its address.
    #[error(
        "{0} moved neither a byte nor a file for {LONGEST_STALL}; start the transfer again to resume it"
    )]
    Stalled(String),
    /// All code numbers are in use.
    #[error("all 99 codes are taken; remove used ones from the clients file")]
    NoCodeFree,
    /// A code is none.
    #[error(transparent)]
    Code(#[from] CodeError),
    /// A client's directory may not hold more.
    #[error("{} does not fit in the quota of {quota} ({used} used); remove something there, or ask for more", Printable(.path))]
    Quota {
        /// The name that does not fit.
        path: PathBuf,
        /// The quota.
        quota: Bytes,
        /// How much of it is used.
        used: Bytes,
    },
    /// An entry would cost more than one transfer may.
    #[error("{}: {reason}", Printable(.path))]
    TooMuch {
        /// The name that does not fit.
        path: PathBuf,
        /// The limit that is exceeded, and the alternative.
        reason: &'static str,
    },
    /// The file of clients cannot be used.
    #[error("{}: {reason}", Printable(.path))]
    Clients {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        reason: ClientsFileError,
    },
    /// The identity file cannot be read or written.
    #[error("{}: {}", Printable(.path), system(.source))]
    Identity {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file of used credentials cannot be used.
    #[error("{}: {}; no client is admitted until it can be read and written", Printable(.path), system(.source))]
    State {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The ticket has expired. Holds the peer's address.
    #[error("{0} was turned away: its ticket has expired")]
    Expired(String),
    /// The only ticket or code of this server has expired, and no transfer runs. Holds the word for it.
    #[error("the {0} has expired; start again for a new one")]
    TicketExpired(&'static str),
    /// A connection for a transfer that does not run here. Holds the peer's address.
    #[error("{0} was turned away: its transfer is not running here")]
    NoTransfer(String),
    /// Both ends would send, or both receive. Holds the peer's address.
    #[error("{0} was turned away: both ends want to {what}", what = .1)]
    SameRole(String, &'static str),
    /// The server takes one transfer and has it already. Holds the peer's address.
    #[error("{0} was turned away: this server takes one transfer, which has begun")]
    Taken(String),
    /// The peer speaks another version of the protocol.
    #[error(
        "{peer} uses protocol version {theirs}, and this program uses version {VERSION}; use the same version of sweetspot on both ends"
    )]
    Version {
        /// The peer's address.
        peer: String,
        /// The peer's version.
        theirs: u32,
    },
    /// The peer refused the transfer, for this reason.
    #[error("the other end refused: {0}")]
    Refused(PeerText),
    /// No datagram reached the server. Holds its address.
    #[error("no datagram reaches {0}, and measuring needs UDP; allow UDP to the same port as TCP")]
    NoDatagrams(String),
    /// The far end went away in the midst of a measurement. Holds its address.
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
        /// Why.
        source: io::Error,
    },
    /// The peer gave up, for this reason.
    #[error("the other end gave up: {0}")]
    PeerFailed(PeerText),
    /// The connection ended in the middle of the transfer.
    #[error("{peer} disconnected after {done}; start the transfer again to resume it")]
    PeerGone {
        /// The peer's address.
        peer: String,
        /// The content moved so far.
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
        /// Its name.
        name: String,
        /// Whether the receiver asked for it, and not this end's user.
        by_peer: bool,
        /// Why.
        source: io::Error,
        /// The alternative.
        hint: String,
    },
    /// The listener at this address refuses connections: it has ended, and its key with it.
    #[error(
        "the program that listened at {0} has ended; received data is kept: start the transfer again to resume, with a new ticket if it \
         had one"
    )]
    Gone(String),
    /// The path broke, and no new connection was made in time. The reason is the last one.
    #[error(
        "{reason}; gave up {patience} after the last data{}; start the transfer again to resume it",
        kept.map(|kept| format!(", with {kept} received and kept")).unwrap_or_default()
    )]
    GaveUp {
        /// Why the last attempt failed.
        reason: String,
        /// How long new connections were tried.
        patience: Duration,
        /// The content that the receiver keeps, if that is known.
        kept: Option<Bytes>,
    },
    /// This end was stopped, and its ticket with it. The peer reads it.
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
        /// Why.
        source: io::Error,
    },
}

impl TransferError {
    /// The message without the advice to start the transfer again, for one that goes on by itself.
    pub fn without_restart(&self) -> String {
        if let TransferError::Unreachable { address, source } = self {
            return format!("cannot reach {address}: {}", system(source));
        }
        let line = self.to_string();
        line.strip_suffix(RESUME).map_or(line.clone(), str::to_owned)
    }

    /// The message for a sender of a stream, if it advises to start again: the stream cannot resume.
    pub fn for_a_stream(&self) -> Option<String> {
        let line = self.to_string();
        let what = line.strip_suffix(RESUME)?;
        Some(format!("{what}; start again, with standard input from its beginning"))
    }
}
