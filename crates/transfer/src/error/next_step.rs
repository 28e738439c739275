//! The next step after a system error.

use std::io;
use std::path::PathBuf;

use super::TransferError;

/// The next step for a file that cannot be read.
pub(super) fn readable(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => "name a file that you may read",
        _ => "check the path",
    }
}

/// The next step for a peer that cannot be reached.
pub(super) fn reachable(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => {
            "check that the program that printed the ticket or code still runs there; some exit after one transfer"
        }
        // Errors of the resolver have no error number.
        _ if error.raw_os_error().is_none() && !is_late(error) => "check the host's name",
        _ => "check that firewalls let TCP through to that address",
    }
}

fn is_late(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock)
}

/// The reason why a congestion control cannot be set. The kernel's own message for an unknown name
/// is about a file.
pub(super) fn unavailable(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "not available on this host".to_owned(),
        _ => super::system(error),
    }
}

/// The next step for a directory that cannot be used.
pub(super) fn writable(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound => "create it first",
        io::ErrorKind::NotADirectory => "name a directory",
        _ => "name a directory that you may write to",
    }
}

impl TransferError {
    /// Converts the error of a system call for `what`, for `map_err`.
    pub(crate) fn system(what: &'static str) -> impl FnOnce(io::Error) -> TransferError {
        move |source| TransferError::System { what, source }
    }

    /// Converts the error of a write to `path`.
    pub(crate) fn write(path: PathBuf, source: io::Error) -> TransferError {
        let next = match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                "free some space, or choose another directory"
            }
            io::ErrorKind::FileTooLarge => "raise the limit on file sizes (ulimit -f)",
            io::ErrorKind::PermissionDenied => "choose a directory that you may write to",
            io::ErrorKind::NotFound => "create its directory first, or choose another name",
            io::ErrorKind::BrokenPipe => "the program that read standard output has ended",
            _ => "check the disk, or choose another directory",
        };
        TransferError::Write { path, source, next }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stream cannot be read from the middle. Only messages that advise to resume change.
    #[test]
    fn stream_errors_advise_to_restart_from_the_beginning() {
        let peer = || "192.0.2.1:5".to_owned();
        for error in [TransferError::Interrupted, TransferError::TooSlow(peer())] {
            let line = error.for_a_stream().unwrap();
            assert!(
                line.ends_with("; start again, with standard input from its beginning"),
                "{line}"
            );
            assert!(!line.contains("resume"), "{line}");
        }
        assert_eq!(TransferError::Taken(peer()).for_a_stream(), None);
    }
}
