use std::io;
use std::path::PathBuf;

use sweetspot_protocol::{CodeError, PathError, Printable, ProtocolError, PublicKey, VERSION};
use sweetspot_sizing::SizingError;
use sweetspot_units::{Bytes, Duration};
use thiserror::Error;

/// Why a transfer or a server failed. The message is one line that names the thing, the reason and the next step.
#[derive(Debug, Error)]
pub enum TransferError {
    /// The file to send cannot be read.
    #[error("{}: {source}; name a file that you may read", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// There is nothing to send.
    #[error("there is nothing to send: {0}")]
    NothingToSend(String),
    /// A pattern for what to leave out.
    #[error("--exclude \"{pattern}\" is no pattern: {reason}")]
    Pattern {
        /// The pattern.
        pattern: String,
        /// Why.
        reason: String,
    },
    /// The directory to serve into is missing or may not be read.
    #[error("{}: {source}; name a directory that you may write to", .path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Writing the content failed.
    #[error("{}: {source}; {next}", .path.display())]
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
        "{} exists already and was left alone; start serve with --force to overwrite, or send under another --name", .0.display()
    )]
    Exists(PathBuf),
    /// Another transfer writes that file.
    #[error("{} is being written by another transfer; wait for it, or send under another --name", .0.display())]
    InUse(PathBuf),
    /// Something that is not a directory is where a directory is to be.
    #[error("{} is there and is not a directory; it was left alone; remove it or send under another --name", .0.display())]
    NotADirectory(PathBuf),
    /// Several things were sent to standard output.
    #[error("standard output takes one file; receive into a directory with --dir")]
    OneOutput,
    /// The receiver ended without saying what became of so many files.
    #[error("the receiver did not confirm {0} of the files; start the transfer again")]
    Unconfirmed(usize),
    /// Of all that was to be moved nothing was. Holds the first reason.
    #[error("{}", Printable(.0))]
    NothingMoved(String),
    /// A directory of that name exists.
    #[error("{} is a directory and was left alone; send under another --name", .0.display())]
    IsDirectory(PathBuf),
    /// The sender's name for the file is refused.
    #[error(transparent)]
    Path(#[from] PathError),
    /// The server cannot listen on its address.
    #[error("cannot listen on {address}: {source}; choose another with --listen ADDR:PORT")]
    Listen {
        /// Address and port.
        address: String,
        /// Why.
        source: io::Error,
    },
    /// The receiver did not answer.
    #[error(
        "cannot reach {address}: {source}; is `sweetspot serve` still running there, and does a firewall let TCP through?"
    )]
    Unreachable {
        /// Address and port.
        address: String,
        /// Why.
        source: io::Error,
    },
    /// The receiver's certificate is not the ticket's. Holds the peer's address.
    #[error(
        "{0} is not the receiver that this ticket names (another certificate); ask for the ticket that the running `sweetspot serve` printed"
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
    #[error("{peer} was turned away: its key {key} is not in the file of clients")]
    UnknownKey {
        /// The peer's address.
        peer: String,
        /// Its key.
        key: PublicKey,
    },
    /// A client may not do what it wants to.
    #[error("{peer} was turned away: {name} has no right to {what}")]
    NoRight {
        /// The peer's address.
        peer: String,
        /// The client.
        name: String,
        /// What it wants to do.
        what: &'static str,
    },
    /// What the peer was admitted for, once, is done. Holds the peer's address.
    #[error("{0} was turned away: what it came with was for one transfer, which was made")]
    UsedUp(String),
    /// There is no such code, or it was tried wrongly too often. Holds the peer's address.
    #[error("{0} was turned away: there is no such code, or it was tried wrongly too often")]
    NoCode(String),
    /// All numbers of codes are taken.
    #[error("there are 99 codes already; remove those that are used up from the file of clients")]
    NoCodeFree,
    /// A code is none.
    #[error(transparent)]
    Code(#[from] CodeError),
    /// A client's directory may not hold more.
    #[error("{}: the quota of {quota} is used up; remove something there, or ask for more", .path.display())]
    Quota {
        /// What does not fit.
        path: PathBuf,
        /// The quota.
        quota: Bytes,
    },
    /// The file of clients cannot be used.
    #[error("{}: {reason}; nobody is admitted until it is right", .path.display())]
    Clients {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// The file that holds who this is cannot be used.
    #[error("{}: {source}", .path.display())]
    Identity {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file of what was used up cannot be used.
    #[error("{}: {source}; nobody is admitted until it can be read and written", .path.display())]
    State {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The ticket has expired. Holds the peer's address.
    #[error(
        "{0} was turned away: the ticket has expired; start serve again for a new one, or give it longer with --lifetime"
    )]
    Expired(String),
    /// A connection for a transfer that does not run here. Holds the peer's address.
    #[error("{0} was turned away: its transfer does not run here")]
    NoTransfer(String),
    /// Both ends would send, or both receive. Holds the peer's address.
    #[error("{0} was turned away: it wants to {what}, as this end does", what = .1)]
    SameRole(String, &'static str),
    /// The server takes one transfer and has it already. Holds the peer's address.
    #[error("{0} was turned away: this serve takes one transfer (--once) and has it")]
    Taken(String),
    /// The peer speaks another version of the protocol.
    #[error(
        "{peer} speaks version {theirs} of the protocol and this program version {VERSION}; use the same version of sweetspot on both ends"
    )]
    Version {
        /// The peer's address.
        peer: String,
        /// The peer's version.
        theirs: u32,
    },
    /// The peer refused the transfer, for this reason.
    #[error("the other end refused: {}", Printable(.0))]
    Refused(String),
    /// No datagram reached the server. Holds its address.
    #[error(
        "no datagram reaches {0}, and a measurement takes them; let UDP through to the same port as TCP"
    )]
    NoDatagrams(String),
    /// The far end went away in the midst of a measurement. Holds its address.
    #[error(
        "{0} went away in the midst of the measurement; see whether `sweetspot serve` still runs there, and measure again"
    )]
    MeasurementCut(String),
    /// A server did not answer whose path is measured from one side.
    #[error(
        "cannot connect to {address}: {source}; name a TCP port that is open there, as HOST:PORT"
    )]
    NoAnswer {
        /// Host and port.
        address: String,
        /// Why.
        source: io::Error,
    },
    /// The peer gave up, for this reason.
    #[error("the other end gave up: {}", Printable(.0))]
    PeerFailed(String),
    /// The connection ended in the middle of the transfer.
    #[error(
        "{peer} went away after {done} of content; start the transfer again and it goes on from there"
    )]
    PeerGone {
        /// The peer's address.
        peer: String,
        /// The content moved so far.
        done: Bytes,
    },
    /// The peer sent nothing for too long.
    #[error(
        "nothing heard from {peer} for {patience}; start the transfer again and it goes on from there"
    )]
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
    #[error("congestion control \"{}\": {source}; this kernel offers {available}", Printable(.name))]
    Congestion {
        /// Its name.
        name: String,
        /// Why.
        source: io::Error,
        /// The congestion controls that the kernel offers.
        available: String,
    },
    /// The transfer was told to stop.
    #[error("interrupted; start the transfer again and it goes on from there")]
    Interrupted,
    /// Another call to the operating system failed.
    #[error("{what}: {source}")]
    System {
        /// What the call was for.
        what: &'static str,
        /// Why.
        source: io::Error,
    },
}

impl TransferError {
    /// Whether there is nothing left to say to the peer: it said why it ended, or it is gone.
    pub fn is_peers_doing(&self) -> bool {
        matches!(
            self,
            TransferError::PeerGone { .. }
                | TransferError::Silent { .. }
                | TransferError::PeerFailed(_)
                | TransferError::Refused(_)
        )
    }

    /// Whether the path or the peer failed, so that the transfer may go on over a new connection.
    pub fn is_of_the_path(&self) -> bool {
        matches!(
            self,
            TransferError::PeerGone { .. }
                | TransferError::Silent { .. }
                | TransferError::Unreachable { .. }
                | TransferError::Tls { .. }
        )
    }

    /// For `map_err`: a call to the operating system that was for `what` failed.
    pub(crate) fn system(what: &'static str) -> impl FnOnce(io::Error) -> TransferError {
        move |source| TransferError::System { what, source }
    }

    /// The error for a failed write to `path`.
    pub(crate) fn write(path: PathBuf, source: io::Error) -> TransferError {
        let next = match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                "free some space or serve another --dir"
            }
            io::ErrorKind::FileTooLarge => "raise the limit on file sizes (ulimit -f)",
            io::ErrorKind::PermissionDenied => "serve a --dir that you may write to",
            _ => "check the disk or serve another --dir",
        };
        TransferError::Write { path, source, next }
    }
}
