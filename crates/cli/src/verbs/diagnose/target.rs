use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::ends::{Ends, port_out_of_range};

/// The subject of a diagnosis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DiagnosisTarget {
    /// An existing file: a capture.
    Capture(PathBuf),
    /// An existing directory of captures.
    Directory(PathBuf),
    /// A capture on standard input.
    StandardInput,
    /// Live connections.
    Live(LiveTarget),
}

/// Selects live connections.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LiveTarget {
    /// All connections of a process and its descendants.
    Process(u32),
    /// All connections with this end, local or remote.
    End(Ends),
}

#[cfg(not(target_os = "linux"))]
impl std::fmt::Display for LiveTarget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            LiveTarget::Process(pid) => write!(f, "{pid}"),
            LiveTarget::End(end) => write!(f, "{end}"),
        }
    }
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
        if Path::new(typed).is_file() {
            return Ok(DiagnosisTarget::Capture(PathBuf::from(typed)));
        }
        if Path::new(typed).is_dir() {
            return Ok(DiagnosisTarget::Directory(PathBuf::from(typed)));
        }
        if Path::new(typed).exists() {
            return Err(format!(
                "{typed} is a device, a pipe or a socket, not a file; read it from standard input: sweetspot diagnose - < {typed}"
            ));
        }
        if looks_like_path(typed) {
            return Err(format!(
                "there is no file {typed}; name one that is there, or an end of a connection as HOST:PORT"
            ));
        }
        let ends: Result<Ends, String> = typed.parse();
        ends.map(|ends| DiagnosisTarget::Live(LiveTarget::End(ends))).map_err(|error| {
            match port_out_of_range(typed) {
                Some(_) => error,
                None => format!(
                    "it is neither a process number such as 4711 nor a file or a directory; {error}"
                ),
            }
        })
    }
}

/// Whether `typed` looks like a file name, not like an end of a connection with its port.
fn looks_like_path(typed: &str) -> bool {
    let has_extension = Path::new(typed).extension().is_some() && typed.parse::<IpAddr>().is_err();
    !typed.contains(':') && (typed.contains('/') || has_extension)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_not_reported_as_a_missing_file() {
        let error_of = |typed: &str| typed.parse::<DiagnosisTarget>().err().unwrap_or_default();
        let device = error_of("/dev/null");
        assert!(device.contains("is a device") && device.contains("diagnose - <"), "{device}");
        assert!(error_of("/dev/there-is-none.pcap").contains("there is no file"));
    }
}
