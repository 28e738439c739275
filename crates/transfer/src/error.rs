use std::io;
use std::path::PathBuf;

use sweetspot_sizing::SizingError;
use sweetspot_units::{Bytes, Duration};
use thiserror::Error;

use sweetspot_protocol::ProtocolError;
use sweetspot_protocol::{NameError, Printable};

/// Why a transfer, or the server, did not do what it was asked. Each is one line that names the
/// thing, the reason and the next step.
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
    /// The file to send is a directory, a device, a pipe.
    #[error("{} is not a regular file; pack it first, for example with tar", .0.display())]
    NotAFile(PathBuf),
    /// The file changed under the transfer.
    #[error("{} {what} while it was being sent; send it again once it is at rest", .path.display())]
    SourceChanged {
        /// The file.
        path: PathBuf,
        /// How.
        what: &'static str,
    },
    /// The directory to serve into is none, or not ours.
    #[error("{}: {source}; give --dir a directory that you may write to", .path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Writing what arrives failed.
    #[error("{}: {source}; {next}", .path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
        /// The next step.
        next: &'static str,
    },
    /// A file of that name exists.
    #[error(
        "{} exists already and was left alone; start serve with --force to overwrite, or send under another --name", .0.display()
    )]
    Exists(PathBuf),
    /// A directory of that name exists, which no file overwrites.
    #[error("{} is a directory and was left alone; send under another --name", .0.display())]
    IsDirectory(PathBuf),
    /// The sender's name for the file would leave the directory.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The address to listen on cannot be had.
    #[error("cannot listen on {address}: {source}; choose another with --listen ADDR:PORT")]
    Listen {
        /// Address and port.
        address: String,
        /// Why.
        source: io::Error,
    },
    /// The receiver cannot be reached.
    #[error(
        "cannot reach {address}: {source}; is `sweetspot serve` still running there, and does a firewall let TCP through?"
    )]
    Unreachable {
        /// Address and port.
        address: String,
        /// Why.
        source: io::Error,
    },
    /// The other end is not who the ticket says.
    #[error(
        "{0} is not the receiver that this ticket names (another certificate); ask for the ticket that the running `sweetspot serve` printed"
    )]
    CertificateMismatch(String),
    /// TLS failed otherwise.
    #[error("no secure connection with {peer}: {reason}")]
    Tls {
        /// The other end.
        peer: String,
        /// Why.
        reason: String,
    },
    /// The sender did not prove the ticket.
    #[error("{0} was turned away: it does not hold this ticket's secret")]
    WrongTicket(String),
    /// The sender came too late.
    #[error(
        "{0} was turned away: the ticket has expired; start serve again for a new one, or give it longer with --lifetime"
    )]
    Expired(String),
    /// Too many came at once that had proved nothing yet.
    #[error("{0} was turned away: too many unproven connections at once; let it try again later")]
    Crowded(String),
    /// A server that takes one transfer has one already.
    #[error("{0} was turned away: this serve takes one transfer (--once) and has it")]
    Taken(String),
    /// The other end speaks another version.
    #[error(
        "{peer} speaks version {theirs} of the protocol and this program version 1; use the same version of sweetspot on both ends"
    )]
    Version {
        /// The other end.
        peer: String,
        /// Its version.
        theirs: u32,
    },
    /// The receiver refused, and said why.
    #[error("the receiver refused: {}", Printable(.0))]
    Refused(String),
    /// The other end gave up, and said why.
    #[error("the other end gave up: {}", Printable(.0))]
    PeerFailed(String),
    /// The connection ended in the middle.
    #[error("{peer} went away after {done} of content; nothing was kept, start the transfer again")]
    PeerGone {
        /// The other end.
        peer: String,
        /// Content moved so far.
        done: Bytes,
    },
    /// The connection stands still.
    #[error(
        "nothing heard from {peer} for {patience}; the connection is given up, start the transfer again"
    )]
    Silent {
        /// The other end.
        peer: String,
        /// For how long.
        patience: Duration,
    },
    /// The other end breaks the protocol.
    #[error("{error} and was dropped")]
    Protocol {
        /// How.
        #[from]
        error: ProtocolError,
    },
    /// What arrived is not what was sent.
    #[error(
        "the content's hash does not match: sent {sent}, received {received}; nothing was kept, start the transfer again"
    )]
    WrongHash {
        /// BLAKE3 at the sender.
        sent: String,
        /// BLAKE3 at the receiver.
        received: String,
    },
    /// A sizing that cannot be had.
    #[error(transparent)]
    Sizing(#[from] SizingError),
    /// A congestion control that cannot be had.
    #[error("congestion control \"{}\": {source}; this kernel offers {available}", Printable(.name))]
    Congestion {
        /// Which.
        name: String,
        /// Why.
        source: io::Error,
        /// What there is instead.
        available: String,
    },
    /// Told to stop.
    #[error("interrupted; nothing was kept")]
    Interrupted,
    /// Any other failing of the operating system.
    #[error("{what}: {source}")]
    System {
        /// While doing what.
        what: &'static str,
        /// Why.
        source: io::Error,
    },
}

impl TransferError {
    /// For `map_err`: an operating system's failing while doing `what`.
    pub(crate) fn system(what: &'static str) -> impl FnOnce(io::Error) -> TransferError {
        move |source| TransferError::System { what, source }
    }

    /// A failing of the disk that content is written to.
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
