//! Reports failed entries and failed transfers.

use std::error::Error;
use std::net::SocketAddr;
use std::process::ExitCode;

use sweetspot_control::TransferSummary;
use sweetspot_program::usage_error::UsageError;
use sweetspot_transfer::TransferError;

use super::{TransferReporter, ending};
use crate::option_hints::{self, with_options};
use crate::verbs::{Ending, Fallible};

impl TransferReporter {
    /// Prints entries that failed, and counts the rest of `count`; each line begins with `label`.
    pub(super) fn failed_entries(&self, label: &str, lines: &[String], count: u64) {
        lines.iter().for_each(|line| self.print(&format!("{label}{line}")));
        match count.saturating_sub(lines.len() as u64) {
            0 => {}
            1 => self.print(&format!("{label}and 1 more that was not transferred")),
            more => self.print(&format!("{label}and {more} more that were not transferred")),
        }
    }

    /// If `error` says that several entries failed and no others arrived, prints them and returns their number in words; each
    /// line begins with `label`.
    pub fn all_failed(&self, label: &str, error: &(dyn Error + 'static)) -> Option<String> {
        match error.downcast_ref() {
            Some(TransferError::NothingMoved { failures, count, .. }) if *count > 1 => {
                self.failed_entries(label, failures, *count);
                Some(format!("nothing was transferred: {count} failed"))
            }
            _ => None,
        }
    }

    /// Reports the result of a transfer, and returns the verb's ending.
    pub fn finish(&self, result: Fallible<TransferSummary>) -> Ending {
        match result {
            Ok(outcome) => {
                let printed = self.outcome(&outcome);
                let unreported = !printed && outcome.failures.is_empty();
                Ok(if unreported { ExitCode::FAILURE } else { ending(&outcome) })
            }
            Err(error) => {
                self.failure(error.as_ref());
                match self.all_failed("", error.as_ref()) {
                    Some(counted) => Err(counted.into()),
                    None => Err(self.classed(error)),
                }
            }
        }
    }

    /// The text of `error`, with the option that fixes it.
    pub fn hinted(&self, error: &TransferError) -> String {
        option_hints::of(error, self.screen.hint_verb)
    }

    /// Returns `error` as a usage error if an argument is at fault.
    fn classed(&self, error: Box<dyn Error>) -> Box<dyn Error> {
        match error.downcast_ref::<TransferError>() {
            Some(wrong) if wrong.is_wrong_usage() => UsageError::new(self.hinted(wrong)).into(),
            _ => error,
        }
    }

    /// Prints the failure of a transfer as JSON, if requested.
    pub fn failure(&self, error: &(dyn Error + 'static)) {
        if self.json {
            self.json(&self.error_object(error));
        }
    }

    /// Prints the failure of a server's transfer as JSON, if requested, with the client's name and address if it `began`.
    pub fn failure_of(&self, error: &TransferError, began: Option<(Option<String>, SocketAddr)>) {
        let Some((client, peer)) = began else { return self.failure(error) };
        if self.json {
            let mut object = self.error_object(error);
            object["client"] = client.into();
            object["peer"] = peer.to_string().into();
            self.json(&object);
        }
    }

    /// The error as JSON, with the individual reasons if everything failed.
    fn error_object(&self, error: &(dyn Error + 'static)) -> serde_json::Value {
        let hint_verb = self.screen.hint_verb;
        let mut object = serde_json::json!({ "error": option_hints::of(error, hint_verb) });
        if let Some(TransferError::NothingMoved { failures, count, .. }) = error.downcast_ref() {
            let lines = failures.iter().map(|line| with_options(line, hint_verb).into_owned());
            object["failures"] = lines.collect();
            object["failed"] = (*count).into();
        }
        object
    }
}
