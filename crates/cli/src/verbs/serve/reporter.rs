//! Reports a server's transfers, and the connections that it refuses.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use sweetspot_control::TransferSummary;
use sweetspot_diagnose::counted;
use sweetspot_linux::clock;
use sweetspot_protocol::Role;
use sweetspot_transfer::{
    AdmittedTransfer, FileLog, ServerObserver, TransferError, TransferObserver,
};
use sweetspot_units::{Duration, Time};

use super::log::{Began, ServiceLog};
use crate::verbs::transfer::TransferReporter;

pub(super) struct ServerReporter {
    reporter: TransferReporter,
    log: ServiceLog,
    rejected: Mutex<RejectedConnections>,
}

/// Counts recently refused connections, so that strangers cannot fill the log.
#[derive(Default)]
struct RejectedConnections {
    since: Time,
    /// The lines printed since then, without the port of the peer.
    reported: Vec<String>,
    suppressed: u64,
}

/// The number of refused connections that are reported individually per [`REFUSAL_INTERVAL`]; repeats and the others are
/// counted.
const MAX_REFUSALS: usize = 10;
const REFUSAL_INTERVAL: Duration = Duration::from_secs(60);

impl RejectedConnections {
    /// Whether to report this refusal, and how many were not reported since the last report.
    fn note(&mut self, now: Time, line: String) -> (bool, u64) {
        if now.since(self.since) >= REFUSAL_INTERVAL || self.reported.is_empty() {
            self.since = now;
            self.reported.clear();
        }
        if self.reported.len() >= MAX_REFUSALS || self.reported.contains(&line) {
            self.suppressed += 1;
            return (false, 0);
        }
        self.reported.push(line);
        (true, std::mem::take(&mut self.suppressed))
    }
}

impl ServerReporter {
    pub fn new(reporter: TransferReporter, log: ServiceLog) -> ServerReporter {
        ServerReporter { reporter, log, rejected: Mutex::default() }
    }

    fn print(&self, line: &str) {
        self.reporter.print(line);
    }

    /// Prints the result of a server that failed without a transfer, as JSON.
    pub fn failed(&self, error: &TransferError) {
        self.reporter.failure(error);
    }
}

/// `line` about a transfer, after its client's name and address. Some errors already begin with the address.
fn labelled(began: Option<&Began>, line: String) -> String {
    let Some((Some(client), peer)) = began else { return line };
    let label = format!("{client} at {peer}");
    match line.strip_prefix(&peer.to_string()) {
        Some(rest) if rest.starts_with(' ') => label + rest,
        _ if line.starts_with(&label) => line,
        _ => format!("{label}: {line}"),
    }
}

fn suppressed_note(count: u64) -> String {
    format!("{} not admitted", counted(count, "more connection was", "more connections were"))
}

impl Drop for ServerReporter {
    fn drop(&mut self) {
        let rejected = self.rejected.get_mut().unwrap_or_else(PoisonError::into_inner);
        if rejected.suppressed > 0 {
            self.reporter.print(&suppressed_note(rejected.suppressed));
        }
    }
}

impl ServerObserver for ServerReporter {
    fn admitted(&self, transfer: AdmittedTransfer<'_>) -> Box<dyn TransferObserver> {
        let AdmittedTransfer { number, peer, client } = transfer;
        let client = client.map(|client| format!("{client} at {peer}"));
        if let Some(client) = &client {
            self.reporter.detail(&format!("{client}: transfer {number}"));
        }
        self.reporter.observer_of(number, client)
    }

    fn file_log(&self, transfer: AdmittedTransfer<'_>, role: Role) -> Option<Arc<dyn FileLog>> {
        self.log.began(transfer, role)
    }

    fn ended(&self, number: u64, result: &Result<TransferSummary, TransferError>) {
        let began = self.log.ended(number, result);
        match result {
            Ok(outcome) => {
                let client = began.and_then(|(client, _)| client);
                self.reporter.outcome(&TransferSummary { client, ..outcome.clone() });
            }
            Err(error) => {
                let label = labelled(began.as_ref(), String::new());
                let counted = self.reporter.all_failed(&label, error);
                let line = counted.unwrap_or_else(|| error.to_string());
                self.print(&labelled(began.as_ref(), line));
                self.reporter.failure_of(error, began);
            }
        }
    }

    fn interrupted(&self, number: u64, error: &TransferError) {
        let began = self.log.interrupted(number, error);
        let line = format!("{} (waiting for it)", error.without_restart());
        self.print(&labelled(began.as_ref(), line));
    }

    fn refused(&self, number: u64, error: &TransferError) {
        self.log.interrupted(number, error);
        let why = self.reporter.hinted(error);
        self.print(&format!("{why}; waiting for another try with this ticket"));
    }

    fn tried(&self, number: u64, result: &Result<TransferSummary, TransferError>) {
        self.ended(number, result);
        self.reporter.remark("waiting for another try with this ticket");
    }

    fn measured(&self, peer: SocketAddr, client: Option<&str>, result: &Result<(), TransferError>) {
        let began = (client.map(str::to_owned), peer);
        let line = |line| labelled(Some(&began), line);
        match result {
            Ok(()) => self.reporter.remark(&line(format!("{peer} measured the path"))),
            Err(error) => self.print(&line(error.to_string())),
        }
    }

    fn warned(&self, warning: &str) {
        self.print(warning);
    }

    fn rejected(&self, peer: SocketAddr, client: Option<&str>, error: &TransferError) {
        self.log.refused(peer, client, error);
        let mut rejected = self.rejected.lock().unwrap_or_else(PoisonError::into_inner);
        let line = error.to_string();
        let host = peer.ip().to_string();
        let (reported, suppressed) =
            rejected.note(clock::now(), line.replacen(&peer.to_string(), &host, 1));
        drop(rejected);
        if reported && suppressed > 0 {
            self.print(&suppressed_note(suppressed));
        }
        if reported {
            self.print(&line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_names_the_client_once() {
        let peer: SocketAddr = "192.0.2.1:5".parse().unwrap();
        let named = (Some("ann".to_owned()), peer);
        for (line, labelled_line) in [
            ("a: not found", "ann at 192.0.2.1:5: a: not found"),
            ("192.0.2.1:5 disconnected", "ann at 192.0.2.1:5 disconnected"),
            ("ann at 192.0.2.1:5 was rejected", "ann at 192.0.2.1:5 was rejected"),
            ("192.0.2.1:54 is another peer", "ann at 192.0.2.1:5: 192.0.2.1:54 is another peer"),
        ] {
            assert_eq!(labelled(Some(&named), line.to_owned()), labelled_line);
            assert_eq!(labelled(Some(&(None, peer)), line.to_owned()), line);
        }
    }

    #[test]
    fn rejected_connections_do_not_flood_the_log() {
        let mut rejected = RejectedConnections::default();
        let at = |seconds: u64| Time::ZERO + Duration::from_secs(100 + seconds);
        let from = |host: usize| format!("host {host} disconnected");
        let reported = (0..1000).filter(|host| rejected.note(at(0), from(*host)).0).count();
        assert_eq!(reported, MAX_REFUSALS);
        assert_eq!(rejected.note(at(60), from(0)), (true, 1000 - MAX_REFUSALS as u64));
        assert_eq!(rejected.note(at(61), from(1)), (true, 0));
        // `measure HOST:PORT` connects twenty times.
        assert_eq!(rejected.note(at(62), from(1)), (false, 0));
        assert_eq!(rejected.note(at(63), from(2)), (true, 1));
    }
}
