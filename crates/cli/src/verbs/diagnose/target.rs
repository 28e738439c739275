use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// What to diagnose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DiagnosisTarget {
    /// An existing file: a capture.
    Capture(PathBuf),
    /// A directory that is there: captures.
    Directory(PathBuf),
    /// A capture that standard input brings.
    StandardInput,
    /// Live connections.
    Live(LiveTarget),
}

/// Selects live connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LiveTarget {
    /// All connections of a process.
    Process(u32),
    /// All connections with this end, on this host or the other.
    End(SocketAddr),
}

impl FromStr for DiagnosisTarget {
    type Err = String;

    fn from_str(typed: &str) -> Result<DiagnosisTarget, String> {
        if typed == "-" {
            return Ok(DiagnosisTarget::StandardInput);
        }
        if let Ok(pid) = typed.parse() {
            return Ok(DiagnosisTarget::Live(LiveTarget::Process(pid)));
        }
        // The kernel's table has IPv4 addresses mapped into IPv6 as IPv4 ones, too.
        let end = |typed: SocketAddr| SocketAddr::new(typed.ip().to_canonical(), typed.port());
        if let Ok(address) = typed.parse() {
            return Ok(DiagnosisTarget::Live(LiveTarget::End(end(address))));
        }
        if Path::new(typed).is_file() {
            return Ok(DiagnosisTarget::Capture(PathBuf::from(typed)));
        }
        if Path::new(typed).is_dir() {
            return Ok(DiagnosisTarget::Directory(PathBuf::from(typed)));
        }
        Err("it is neither a process number nor ADDRESS:PORT, e.g. 4711, 192.0.2.7:443 or \
             [2001:db8::7]:443, nor a file or a directory"
            .to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_the_same_however_it_is_written() {
        let plain: DiagnosisTarget = "192.0.2.7:443".parse().unwrap();
        assert_eq!("[::ffff:192.0.2.7]:443".parse(), Ok(plain));
    }
}
