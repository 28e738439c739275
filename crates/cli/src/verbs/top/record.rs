//! Readings kept in a file.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use sweetspot_diagnose::{counted, recorded};
use sweetspot_linux::diag::DiagConnection;
use sweetspot_program::print::{Shown, system};
use sweetspot_units::Time;
use sweetspot_watch::sample;

/// A file with each reading of all connections, one line per connection.
pub struct Recording {
    path: PathBuf,
    file: BufWriter<File>,
    readings: u64,
}

impl Recording {
    /// Creates the file `path`, or opens the pipe or device of that name. An existing file is not
    /// overwritten.
    pub fn create(path: &Path) -> Result<Recording, String> {
        let is_new = fs::metadata(path).map_or(true, |status| status.is_file());
        let opened = OpenOptions::new().write(true).create_new(is_new).open(path);
        let file = opened.map_err(|error| {
            let step = match error.kind() {
                io::ErrorKind::AlreadyExists => "name a new file, or remove that one",
                _ => "name a file that can be written",
            };
            format!("--record {}: {}; {step}", path.shown(), system(&error))
        })?;
        Ok(Recording { path: path.to_owned(), file: BufWriter::new(file), readings: 0 })
    }

    /// Adds the reading of `connections` at `now`, and flushes it.
    pub fn write(&mut self, now: Time, connections: &[DiagConnection]) -> Result<(), String> {
        self.readings += 1;
        self.try_write(now, connections)
            .map_err(|error| format!("--record {}: {}", self.path.shown(), system(&error)))
    }

    pub fn announce_start(&self) {
        note!("recording to {}; Ctrl-C ends", self.path.shown());
    }

    pub fn announce_end(&self) {
        let (readings, file) = (counted(self.readings, "reading", "readings"), self.path.shown());
        note!("{readings} in {file}; read them with: sweetspot diagnose --tcpinfo {file}");
    }

    fn try_write(&mut self, now: Time, connections: &[DiagConnection]) -> io::Result<()> {
        for connection in connections {
            if let Some(sample) = sample(connection, now) {
                let ends = [connection.local, connection.remote];
                writeln!(self.file, "{}", recorded::written(ends, &sample))?;
            }
        }
        self.file.flush()
    }
}
