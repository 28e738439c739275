//! Error messages for the peer. They contain neither paths nor system errors of this host.

use std::io;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use sweetspot_protocol::Printable;

use super::TransferError;

/// A receiver's message for a target without a parent directory; [`TransferError::NoParent`] has the
/// paths.
pub const NO_PARENT: &str = "the target's parent directory does not exist; create it first";

impl TransferError {
    /// The message for the peer: it reveals neither paths of this host nor other files on it.
    pub(crate) fn for_peer(&self) -> String {
        use TransferError as E;
        match self {
            E::Unreadable { source, .. } => {
                because("the sender cannot read a file to send", source)
            }
            E::NothingToSend(_) => "the sender has nothing to send".into(),
            E::SameName(_) => "several of the sender's files have the same name".into(),
            E::NothingMoved { .. } => {
                "nothing could be transferred; the messages at the other end say why".into()
            }
            E::Pattern { .. } => "the command line at the other end is wrong".into(),
            E::Directory { source, .. } => because("the receiver cannot use its directory", source),
            E::NoParent(..) => NO_PARENT.into(),
            E::Target { reason, .. } => (*reason).into(),
            E::Write { path, source, .. } => {
                let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
                if let (io::ErrorKind::NotFound, Some(parent)) = (source.kind(), parent) {
                    let parent = Printable(&name(parent)).to_string();
                    return format!("there is no directory {parent} there; choose another name");
                }
                because(&format!("{} cannot be written there", Printable(&name(path))), source)
            }
            E::Exists(path) => E::Exists(name(path)).to_string(),
            E::InUse(path) => E::InUse(name(path)).to_string(),
            E::NotADirectory(path) => E::NotADirectory(name(path)).to_string(),
            E::IsDirectory(path) => E::IsDirectory(name(path)).to_string(),
            E::Special { path, what } => E::Special { path: name(path), what }.to_string(),
            E::Dotfile(path) => E::Dotfile(name(path)).to_string(),
            E::LeadsOut(path) => E::LeadsOut(name(path)).to_string(),
            E::ForeignLink(path) => E::ForeignLink(name(path)).to_string(),
            E::Quota { path, quota, used } => {
                E::Quota { path: name(path), quota: *quota, used: *used }.to_string()
            }
            E::TooMuch { path, reason } => E::TooMuch { path: name(path), reason }.to_string(),
            E::Listen { .. } | E::Gone(_) | E::Unreachable { .. } | E::NoAnswer { .. } => {
                "the other end cannot connect".into()
            }
            E::Clients { .. } | E::Identity { .. } | E::State { .. } | E::NoCodeFree => {
                "the other end's own files cannot be used".into()
            }
            E::Congestion { name, .. } => {
                format!("the other end's kernel does not offer congestion control \"{name}\"")
            }
            E::System { what, source } => because(&format!("{what} failed there"), source),
            // The message names the peer itself, which knows its own address.
            E::GaveUp { .. } => "the other end gave up trying to connect".into(),
            E::OneOutput
            | E::OwnersNeedRoot
            | E::NotAskedFor(_)
            | E::CodeEnded
            | E::TicketExpired(_)
            | E::CodeCut(_)
            | E::Full { .. }
            | E::MeasuredEnough
            | E::NotProved { .. }
            | E::TooSlow(_)
            | E::Stalled(_)
            | E::Unconfirmed(_)
            | E::Path(_)
            | E::CertificateMismatch(_)
            | E::Tls { .. }
            | E::WrongTicket(_)
            | E::WrongCode(_)
            | E::UnknownKey { .. }
            | E::WrongLine { .. }
            | E::NoRight { .. }
            | E::UsedUp(_)
            | E::InTurn(_)
            | E::NoCode(_)
            | E::Code(_)
            | E::Expired(_)
            | E::NoTransfer(_)
            | E::SameRole(..)
            | E::Taken(_)
            | E::Version { .. }
            | E::Refused(_)
            | E::NoDatagrams(_)
            | E::MeasurementCut(_)
            | E::PeerFailed(_)
            | E::PeerGone { .. }
            | E::Silent { .. }
            | E::Protocol { .. }
            | E::WrongHash { .. }
            | E::Sizing(_)
            | E::Stopped
            | E::Interrupted => self.to_string(),
        }
    }
}

/// The path as both ends know it. An absolute path is one of this host, so it is replaced.
fn name(path: &Path) -> PathBuf {
    if path.is_absolute() { "what was sent".into() } else { path.to_owned() }
}

fn because(what: &str, error: &io::Error) -> String {
    format!("{what}: {}", plain(error))
}

/// The kernel's error in words, the same on every host.
pub(crate) fn plain(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound => "it does not exist",
        io::ErrorKind::PermissionDenied => "permission denied",
        io::ErrorKind::StorageFull => "No space left on device; free some space there",
        io::ErrorKind::QuotaExceeded => "its disk quota is used up",
        io::ErrorKind::FileTooLarge => "File too large",
        io::ErrorKind::ReadOnlyFilesystem => "its file system is read-only",
        io::ErrorKind::NotADirectory => "part of its path is not a directory",
        io::ErrorKind::AlreadyExists => "it exists and is not a directory",
        io::ErrorKind::BrokenPipe => "the program that reads the receiver's output has exited",
        io::ErrorKind::InvalidFilename => "the name cannot be used there",
        _ if Errno::from_io_error(error) == Some(Errno::LOOP) => {
            "part of its path is a symbolic link"
        }
        _ => "the system call failed",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ClientsFileError;
    use sweetspot_units::{Bytes, Duration};

    /// Each error that contains data of this host, with a mark in each such place.
    fn of_this_host() -> Vec<TransferError> {
        use TransferError as E;
        let (path, text) = (|| PathBuf::from("/home/MARK/x"), || "MARK".to_owned());
        let source = || io::Error::other("MARK");
        let quota = Bytes::new(1);
        vec![
            E::Unreadable { path: path(), source: source() },
            E::NothingToSend(text()),
            E::SameName(path()),
            E::Pattern { pattern: text(), reason: text() },
            E::Directory { path: path(), source: source() },
            E::Write { path: path(), source: source(), next: "MARK" },
            E::Exists(path()),
            E::InUse(path()),
            E::NotADirectory(path()),
            E::NothingMoved { failures: vec![text()], count: 1, by_peer: false },
            E::IsDirectory(path()),
            E::Special { path: path(), what: "device" },
            E::Dotfile(path()),
            E::LeadsOut(path()),
            E::ForeignLink(path()),
            E::Listen { address: text(), source: source() },
            E::Unreachable { address: text(), source: source() },
            E::Gone(text()),
            E::GaveUp { reason: text(), patience: Duration::from_secs(1), kept: None },
            E::Quota { path: path(), quota, used: quota },
            E::TooMuch { path: path(), reason: "too long" },
            E::Clients { path: path(), reason: ClientsFileError::Unreadable(source()) },
            E::Identity { path: path(), source: source() },
            E::State { path: path(), source: source() },
            E::NoAnswer { address: text(), source: source() },
            E::Congestion { name: "bbr".into(), by_peer: false, source: source(), hint: text() },
            E::NoParent(path(), path()),
            E::Target { path: path(), reason: "too long" },
            E::System { what: "reading", source: source() },
        ]
    }

    #[test]
    fn no_error_reveals_local_paths_to_the_peer() {
        for error in of_this_host() {
            assert!(error.to_string().contains("MARK"), "for this end: {error}");
            let message = error.for_peer();
            assert!(!message.is_empty() && !message.contains("MARK"), "{message}");
            assert!(!message.contains('/') && !message.contains("os error"), "{message}");
        }
    }

    #[test]
    fn the_peer_receives_the_relative_name_and_the_kind_of_failure() {
        let source = || io::Error::from_raw_os_error(28);
        let error = TransferError::Write { path: "a/b".into(), source: source(), next: "" };
        let expected =
            "a/b cannot be written there: No space left on device; free some space there";
        assert_eq!(error.for_peer(), expected);
        assert!(TransferError::Exists("a/b".into()).for_peer().starts_with("a/b already exists"));
    }
}
