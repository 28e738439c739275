use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;

use sweetspot_emulator::EmulatorError;
use sweetspot_units::{Bytes, Duration};
use thiserror::Error;

/// The reason why a transfer of a comparison failed, or the file for it could not be created.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ComparisonError {
    /// Temporary files could not be created.
    #[error("no place for temporary files in {}: {source}; set TMPDIR to another directory", .place.display())]
    Scratch {
        /// The directory for them.
        place: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The file to transfer cannot be written.
    #[error("cannot write {size} to {}: {source}; set TMPDIR to a directory with enough space", .directory.display())]
    Write {
        /// Its size.
        size: Bytes,
        /// Its directory.
        directory: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The file to transfer cannot be read.
    #[error("cannot read {}: {source}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The kernel does not have the congestion control.
    #[error(
        "congestion control {name} is not loaded (there are {}); load it with: sudo modprobe tcp_{name}",
        .available.join(", ")
    )]
    Congestion {
        /// Its name.
        name: String,
        /// The names of the available congestion controls.
        available: Vec<String>,
    },
    /// The path could not be emulated, or a program could not be started on it.
    #[error("{0}")]
    Emulator(#[from] EmulatorError),
    /// A system call failed.
    #[error("{0}")]
    System(#[from] io::Error),
    /// A program failed. Holds the last line of its standard error.
    #[error("{0}")]
    Program(String),
    /// A program failed and printed no reason.
    #[error("it ended with {0}")]
    Ended(ExitStatus),
    /// The receiver printed neither a ticket nor an error.
    #[error("the receiver is silent")]
    Silent,
    /// The transfer took fifty times as long as the path allows.
    #[error("given up after {0}: not even 2 % of the path's rate")]
    TooSlow(Duration),
    /// The receiver's time series cannot be read.
    #[error("series: {0}")]
    Series(#[source] io::Error),
    /// A program's report cannot be read.
    #[error("the {end} did not report its result: {source}")]
    NoReport {
        /// The sender or the receiver.
        end: &'static str,
        /// The fault.
        source: serde_json::Error,
    },
    /// The received file cannot be read.
    #[error("{}: {source}", .path.display())]
    Arrived {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The received file has another hash.
    #[error("the received file differs")]
    Differs,
}
