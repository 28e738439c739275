//! The record of a service for its operator: an audit log and metrics.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::fs::File;
use std::io::Write;
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};
use sweetspot_control::PeerLabels;
use sweetspot_control::TransferSummary;
use sweetspot_linux::clock;
use sweetspot_protocol::Role;
use sweetspot_protocol::clients::rfc3339;
use sweetspot_transfer::{AdmittedTransfer, FileLog, FileRecord, TransferError};
use sweetspot_tune::Exporter;

use sweetspot_program::print::{Harmless, Shown, system};

/// The audit log and the metrics of a service, as far as requested.
#[derive(Clone, Default)]
pub struct ServiceLog(Arc<Kept>);

#[derive(Default)]
struct Kept {
    audit: Option<Mutex<File>>,
    exporter: Option<Exporter>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    running: HashMap<u64, Transfer>,
    counts: Counts,
}

#[derive(Clone)]
struct Transfer {
    /// The client's name; `None` for the holder of the ticket.
    client: Option<String>,
    peer: SocketAddr,
    role: Role,
}

/// The name of the client, if it has one, and its address, for a transfer that began.
pub type Began = (Option<String>, SocketAddr);

impl Transfer {
    fn began(self) -> Began {
        (self.client, self.peer)
    }
}

/// The counters since the start.
#[derive(Debug, Clone, Default)]
struct Counts {
    done: u64,
    failed: u64,
    refused: u64,
    received: Moved,
    sent: Moved,
    /// Bytes moved, by a label for the client's network.
    by_peer: BTreeMap<String, u64>,
    labels: PeerLabels,
}

#[derive(Debug, Clone, Copy, Default)]
struct Moved {
    bytes: u64,
    files: u64,
}

/// The parts of the record that were requested.
#[derive(Debug, Clone, Default)]
pub struct LogOptions {
    pub audit: Option<PathBuf>,
    /// The address for serving metrics.
    pub metrics: Option<SocketAddr>,
}

impl ServiceLog {
    /// Opens the audit log, and starts a thread that serves metrics.
    pub fn start(options: &LogOptions) -> Result<ServiceLog, String> {
        let LogOptions { audit, metrics } = options;
        let open = |path: &Path| {
            let opened = File::options().create(true).append(true).mode(0o600).open(path);
            opened.map(Mutex::new).map_err(|error| {
                let (path, why) = (path.shown(), system(&error));
                format!("{path}: {why}; give --audit a file that you may write to")
            })
        };
        let export = |address| {
            Exporter::start(address).map_err(|error| {
                let why = system(&error);
                format!("cannot serve metrics at {address}: {why}; choose another port")
            })
        };
        let audit = audit.as_deref().map(open).transpose()?;
        let exporter = metrics.map(export).transpose()?;
        let log = ServiceLog(Arc::new(Kept { audit, exporter, state: Mutex::default() }));
        log.change(|_| {});
        Ok(log)
    }

    /// Notes that a client's transfer began. Returns the log of its files, if there is an audit
    /// log.
    pub fn began(&self, transfer: AdmittedTransfer<'_>, role: Role) -> Option<Arc<dyn FileLog>> {
        let AdmittedTransfer { number, peer, client } = transfer;
        let transfer = Transfer { client: client.map(str::to_owned), peer, role };
        self.write("transfer begins", number, &transfer, json!({}));
        self.change(|state| {
            state.running.insert(number, transfer.clone());
        });
        // Without an audit file, no transfer waits for the log.
        let audit = self.0.audit.as_ref();
        audit.map(|_| Arc::new(Files { log: self.clone(), number, transfer }) as Arc<dyn FileLog>)
    }

    /// Notes that the path of a transfer broke. It may resume over another connection, under
    /// another number.
    pub fn interrupted(&self, number: u64, error: &TransferError) -> Option<Began> {
        let mut transfer = None;
        self.change(|state| transfer = state.running.remove(&number));
        let transfer = transfer?;
        let about = json!({ "error": error.to_string() });
        self.write("transfer interrupted", number, &transfer, about);
        Some(transfer.began())
    }

    /// Notes that a transfer ended.
    pub fn ended(
        &self,
        number: u64,
        result: &Result<TransferSummary, TransferError>,
    ) -> Option<Began> {
        let mut transfer = None;
        self.change(|state| {
            transfer = state.running.remove(&number);
            match result {
                Ok(_) => state.counts.done += 1,
                Err(_) => state.counts.failed += 1,
            }
            if let (Ok(summary), Some(Transfer { role, peer, .. })) = (result, &transfer) {
                let counts = &mut state.counts;
                let moved = match role {
                    Role::Receiver => &mut counts.received,
                    Role::Sender => &mut counts.sent,
                };
                moved.bytes += summary.bytes;
                moved.files += summary.files.written;
                counts.labels.learn(peer.ip());
                let label = counts.labels.of(peer.ip()).to_owned();
                *counts.by_peer.entry(label).or_default() += summary.bytes;
            }
        });
        let transfer = transfer?;
        let about = match result {
            Ok(summary) => json!({
                "bytes": summary.bytes,
                "files": summary.files.written,
                "unchanged": summary.files.unchanged,
                "updated": summary.files.updated,
                "failed": summary.files.failed,
                "seconds": summary.seconds,
            }),
            Err(error) => json!({ "error": error.to_string() }),
        };
        self.write("transfer ends", number, &transfer, about);
        Some(transfer.began())
    }

    /// Notes a refused connection; `client` is `None` if the peer proved no name.
    pub fn refused(&self, peer: SocketAddr, client: Option<&str>, error: &TransferError) {
        self.change(|state| state.counts.refused += 1);
        self.append(json!({
            "time": rfc3339(clock::wall()),
            "event": "refused",
            "client": client,
            "peer": peer.to_string(),
            "error": error.to_string(),
        }));
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.0.state.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut state);
        if let Some(exporter) = &self.0.exporter {
            exporter.publish(prometheus(state.running.len(), &state.counts));
        }
    }

    fn write(&self, event: &str, number: u64, transfer: &Transfer, about: Value) {
        let direction = match transfer.role {
            Role::Receiver => "received",
            Role::Sender => "sent",
        };
        let mut line = json!({
            "time": rfc3339(clock::wall()),
            "event": event,
            "transfer": number,
            // null stands for the holder of the ticket.
            "client": transfer.client,
            "peer": transfer.peer.to_string(),
            "direction": direction,
        });
        if let (Some(line), Value::Object(about)) = (line.as_object_mut(), about) {
            line.extend(about);
        }
        self.append(line);
    }

    fn append(&self, line: Value) {
        let Some(audit) = &self.0.audit else { return };
        // A single write, so that lines stay whole.
        let mut file = audit.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) =
            file.write_all(format!("{}\n", Harmless(format_args!("{line}"))).as_bytes())
        {
            err!("sweetspot: a line is missing from the audit log: {error}");
        }
    }
}

struct Files {
    log: ServiceLog,
    number: u64,
    transfer: Transfer,
}

impl FileLog for Files {
    fn file(&self, record: &FileRecord<'_>) {
        let about = match record.outcome {
            Ok((hash, written)) => json!({
                "path": record.path.to_string_lossy(),
                "bytes": record.size.map(|size| size.get()),
                "blake3": hash.to_string(),
                "written": written,
            }),
            Err(error) => json!({ "path": record.path.to_string_lossy(), "error": error }),
        };
        self.log.write("file", self.number, &self.transfer, about);
    }
}

/// The metrics in Prometheus's text format 0.0.4.
fn prometheus(running: usize, counts: &Counts) -> String {
    let mut text = String::new();
    let mut family = |name: &str, kind: &str, help: &str, samples: &[(&str, u64)]| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
        for (labels, value) in samples {
            let _ = writeln!(text, "{name}{labels} {value}");
        }
    };
    let (received, sent) = (counts.received, counts.sent);
    let directions = ["{direction=\"received\"}", "{direction=\"sent\"}"];
    let both = |received, sent| [(directions[0], received), (directions[1], sent)];
    family("sweetspot_transfers_running", "gauge", "Running transfers.", &[("", running as u64)]);
    family(
        "sweetspot_transfers_total",
        "counter",
        "Ended transfers.",
        &[("{result=\"done\"}", counts.done), ("{result=\"failed\"}", counts.failed)],
    );
    let bytes = both(received.bytes, sent.bytes);
    family("sweetspot_transfer_bytes_total", "counter", "Content moved.", &bytes);
    let files = both(received.files, sent.files);
    family("sweetspot_transfer_files_total", "counter", "Files moved.", &files);
    let labels: Vec<(String, u64)> = counts
        .by_peer
        .iter()
        .map(|(peer, bytes)| (format!("{{peer=\"{peer}\"}}"), *bytes))
        .collect();
    let by_peer: Vec<(&str, u64)> =
        labels.iter().map(|(label, bytes)| (label.as_str(), *bytes)).collect();
    let help = "Content moved, by the client's network.";
    family("sweetspot_transfer_peer_bytes_total", "counter", help, &by_peer);
    let refused = [("", counts.refused)];
    family("sweetspot_refused_total", "counter", "Connections rejected.", &refused);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metric_follows_its_type_line() {
        let counts = Counts {
            done: 2,
            refused: 7,
            received: Moved { bytes: 1_000_000, files: 3 },
            by_peer: BTreeMap::from([("192.0.2.0/24".to_owned(), 1_000_000)]),
            ..Counts::default()
        };
        let text = prometheus(1, &counts);
        for line in [
            "# TYPE sweetspot_transfers_running gauge\nsweetspot_transfers_running 1\n",
            "sweetspot_transfers_total{result=\"done\"} 2\n",
            "sweetspot_transfer_bytes_total{direction=\"received\"} 1000000\n",
            "sweetspot_transfer_files_total{direction=\"sent\"} 0\n",
            "sweetspot_transfer_peer_bytes_total{peer=\"192.0.2.0/24\"} 1000000\n",
            "# TYPE sweetspot_refused_total counter\nsweetspot_refused_total 7\n",
        ] {
            assert!(text.contains(line), "{text}");
        }
    }

    /// The metric names in `text` that only a service has.
    fn ours(text: &str) -> Vec<&str> {
        let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let ours = ["sweetspot_transfer", "sweetspot_refused"];
        let mut names: Vec<&str> =
            words.filter(|word| ours.iter().any(|begin| word.starts_with(begin))).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    #[test]
    fn the_dashboard_and_the_alerts_use_exported_metrics() {
        let text = prometheus(0, &Counts::default());
        assert_eq!(
            ours(include_str!("../../../../../packaging/grafana-dashboard.json")),
            ours(&text)
        );
        let alerts = ours(include_str!("../../../../../packaging/alerts.yml"));
        assert!(alerts.len() >= 3, "{alerts:?}");
        for name in alerts {
            assert!(ours(&text).contains(&name), "{name}");
        }
    }
}
