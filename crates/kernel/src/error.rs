use std::io;
use std::path::PathBuf;

use aya::EbpfError;
use aya::maps::MapError;
use aya::programs::ProgramError;
use sweetspot_linux::cgroup::CgroupError;
use thiserror::Error;

use crate::host;

/// Why connections cannot be tuned from inside the kernel.
#[derive(Debug, Error)]
pub enum KernelError {
    /// A missing feature of the host.
    #[error("cannot tune via bpf: {0}")]
    Missing(String),
    /// The cgroup does not exist or cannot be used.
    #[error("{0}")]
    Cgroup(#[from] CgroupError),
    /// The programs or their maps cannot be loaded.
    #[error(
        "the kernel does not load the BPF programs: {0}; sweetspot tune doctor names what is missing"
    )]
    Load(String),
    /// The verifier rejects a program.
    #[error("the kernel refuses the BPF program {program}: {reason}")]
    Refused {
        /// The program.
        program: &'static str,
        /// The last meaningful line of the verifier's log, or the kernel's error.
        reason: String,
    },
    /// The programs cannot be attached to the cgroup.
    #[error(
        "cannot attach to the cgroup {path}: {source} (another program there, or in a cgroup above, \
         may not allow it; bpftool cgroup tree lists them)"
    )]
    Attach {
        /// The cgroup's directory.
        path: PathBuf,
        /// The kernel's reason.
        source: io::Error,
    },
    /// The cgroup's connections are already being tuned.
    #[error(
        "{} in the cgroup {path} (BPF program {program}; `pgrep -a sweetspot` finds it); {}",
        if *dry_run { "a dry run already uses bpf" } else { "another tuner already tunes the connections" },
        if *dry_run { "end it, or add --via pidfd" } else { "end it first" }
    )]
    Busy {
        /// The cgroup's directory.
        path: PathBuf,
        /// The ID of the other tuner's program.
        program: u32,
        /// Whether the other tuner only reports.
        dry_run: bool,
    },
    /// The command map is full.
    #[error("65,536 connections are tuned already; this one is left alone")]
    Full,
    /// A step failed for another reason.
    #[error("{step}: {source}")]
    Failed {
        /// The step.
        step: &'static str,
        /// The kernel's reason.
        source: io::Error,
    },
}

impl From<EbpfError> for KernelError {
    fn from(error: EbpfError) -> KernelError {
        KernelError::Load(chain(&error))
    }
}

impl From<MapError> for KernelError {
    fn from(error: MapError) -> KernelError {
        KernelError::Load(chain(&error))
    }
}

impl KernelError {
    /// For `map_err`: explains why a program was not loaded.
    pub(crate) fn refused(program: &'static str) -> impl FnOnce(ProgramError) -> KernelError {
        move |error| {
            let reason = match &error {
                ProgramError::LoadError { io_error, verifier_log } => {
                    let log = verifier_log.to_string();
                    let said = last_words(&log).unwrap_or("no reason is given");
                    format!("{io_error}: {said}")
                }
                other => chain(other),
            };
            let reason = match host::explanation() {
                Some(explanation) => format!("{reason}; {explanation}"),
                None => reason,
            };
            KernelError::Refused { program, reason }
        }
    }

    /// For `map_err`: adds the failed step.
    pub(crate) fn at(step: &'static str) -> impl FnOnce(io::Error) -> KernelError {
        move |source| KernelError::Failed { step, source }
    }
}

/// An error and its causes, without repetitions.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let said = error.to_string();
        if !words.contains(&said) {
            words = format!("{words}: {said}");
        }
        cause = error.source();
    }
    words
}

/// The last meaningful line of a verifier's log: statistics follow it.
fn last_words(log: &str) -> Option<&str> {
    log.lines().map(str::trim).rfind(|line| {
        !line.is_empty()
            && !line.starts_with("processed ")
            && !line.starts_with("verification time")
            && !line.starts_with("stack depth")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verifier_errors_quote_the_reason_and_not_the_statistics() {
        let log = "0: (79) r6 = *(u64 *)(r1 +184)\nunknown func bpf_skc_to_tcp_sock#137\n\
                   verification time 9 usec\nstack depth 0\nprocessed 2 insns (limit 1000000)\n";
        assert_eq!(last_words(log), Some("unknown func bpf_skc_to_tcp_sock#137"));
        assert_eq!(last_words(""), None);
    }
}
