//! Readings of the connections: all of them at each interval, and the busiest receivers in between.

use sweetspot_diagnose::live::SAMPLE_INTERVAL;
use sweetspot_linux::clock;
use sweetspot_linux::diag::{Detail, DiagConnection};
use sweetspot_units::Time;
use sweetspot_watch::{ConnectionList, NamespaceConnections};

use super::record::Recording;

/// Maximum number of connections sampled as often as in `diagnose`: at 10 µs each, a thousand samples per second cost 1 % of a
/// core. Only receivers need this, because their kernel does not keep the sender's chronographs.
const SAMPLED: usize = 100;

/// Reads connections, and records them if requested.
pub struct Readings {
    host: NamespaceConnections,
    recording: Option<Recording>,
    /// The busiest receivers in the last reading.
    busiest: Vec<DiagConnection>,
    next_due: Time,
}

impl Readings {
    pub fn new(host: NamespaceConnections, recording: Option<Recording>) -> Readings {
        Readings { host, recording, busiest: Vec::new(), next_due: Time::ZERO }
    }

    pub fn recording(&self) -> Option<&Recording> {
        self.recording.as_ref()
    }

    /// Whether connections of this process's network namespace are read.
    pub fn is_own_namespace(&self) -> bool {
        self.host.is_own()
    }

    /// Reads all connections into `table`.
    ///
    /// # Errors
    /// If they cannot be read or recorded. If only recording fails, `table` still has them.
    pub fn all(&mut self, table: &mut ConnectionList) -> Result<(), String> {
        let connections = self.host.read(Detail::ALL).map_err(|error| error.to_string())?;
        let now = clock::now();
        let written = self.recording.as_mut().map(|recording| recording.write(now, &connections));
        table.handle(now, connections);
        self.busiest = table.busiest_receivers(SAMPLED);
        self.next_due = now + SAMPLE_INTERVAL;
        written.unwrap_or(Ok(()))
    }

    /// The time of the next sample of the busiest receivers.
    pub fn next_due(&self) -> Time {
        self.next_due
    }

    /// Samples the busiest receivers for `table`. A connection that has ended, or cannot be read, waits for the next reading.
    pub fn busiest(&mut self, table: &mut ConnectionList) {
        for connection in &self.busiest {
            if let Ok(Some(seen)) = self.host.read_again(connection, Detail::ALL) {
                table.handle_sample(clock::now(), &seen);
            }
        }
        self.leave_out_busiest();
    }

    /// Skips this sample of the busiest receivers.
    pub fn leave_out_busiest(&mut self) {
        self.next_due = clock::now() + SAMPLE_INTERVAL;
    }
}
