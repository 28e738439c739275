use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::ends::Ends;

/// The subject of a diagnosis.
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LiveTarget {
    /// All connections of a process and its descendants.
    Process(u32),
    /// All connections with this end, on this host or the other.
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
        let ends: Result<Ends, String> = typed.parse();
        ends.map(|ends| DiagnosisTarget::Live(LiveTarget::End(ends))).map_err(|error| {
            format!("it is neither a process number such as 4711 nor a file or a directory; as HOST:PORT: {error}")
        })
    }
}
