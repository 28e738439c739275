//! A journal of finished runs on disk, from which a killed program resumes.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use sweetspot_experiment::{Journal, JournalError, ResultStore, RunKey};
use sweetspot_scenario::Outcome;

use crate::print::Shown;
use crate::whole_file;

/// An open journal.
pub struct ResultJournal {
    path: PathBuf,
    version: String,
    kept: Mutex<JournalState>,
}

struct JournalState {
    file: File,
    runs: BTreeMap<RunKey, Outcome>,
    summaries: BTreeMap<RunKey, Value>,
    /// The first error while writing a run.
    failure: Option<String>,
}

/// How to handle a journal of another version or build.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnVersionMismatch {
    /// Fail: its runs may be the only copy.
    Refuse,
    /// Replace it: it only saves time.
    Replace,
}

impl ResultJournal {
    /// Opens the journal at `path`, or creates it, for this `version`.
    pub fn open(
        path: &Path,
        version: &str,
        on_mismatch: OnVersionMismatch,
    ) -> Result<ResultJournal, String> {
        let blame = |error: &dyn std::fmt::Display| format!("{}: {error}", path.shown());
        let hint = |error: io::Error| blame(&format!("{error}; choose another place with --out"));
        // Appending keeps lines complete even if two programs use the same journal.
        let mut file =
            OpenOptions::new().read(true).append(true).create(true).open(path).map_err(hint)?;
        if !file.metadata().map_err(hint)?.is_file() {
            return Err(blame(&"it is a device or a pipe; choose another place with --out"));
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(hint)?;
        let text = String::from_utf8_lossy(&bytes);
        let journal = match Journal::parse(&text, version) {
            Err(JournalError::OtherVersion { .. }) if on_mismatch == OnVersionMismatch::Replace => {
                Journal::default()
            }
            other => other.map_err(|error| blame(&error))?,
        };
        // Removes the incomplete last line of a killed program.
        file.set_len(journal.whole as u64).map_err(hint)?;
        if journal.whole == 0 {
            file.write_all(Journal::head(version).as_bytes()).map_err(hint)?;
        }
        let Journal { runs, summaries, .. } = journal;
        let kept = JournalState { file, runs, summaries, failure: None };
        Ok(ResultJournal {
            path: path.to_owned(),
            version: version.to_owned(),
            kept: Mutex::new(kept),
        })
    }

    /// Removes the selected runs, so that they are repeated.
    pub fn forget(&self, which: impl Fn(&RunKey, &Outcome) -> bool) -> Result<(), String> {
        let blame = |error: io::Error| format!("{}: {error}", self.path.shown());
        let mut kept = self.kept();
        kept.runs.retain(|key, outcome| !which(key, outcome));
        let entries = kept.runs.iter().map(|(key, outcome)| Journal::entry(key, outcome));
        let summaries = kept.summaries.iter().map(|(key, json)| Journal::summary(key, json));
        let head = std::iter::once(Journal::head(&self.version));
        let text: String = head.chain(entries).chain(summaries).collect();
        whole_file::write(&self.path, text.as_bytes())?;
        kept.file = OpenOptions::new().append(true).open(&self.path).map_err(blame)?;
        Ok(())
    }

    /// Writes the lines that [`Journal::plan`] makes of a sweep.
    pub fn announce(&self, plan: &str) {
        self.kept().append(plan);
    }

    /// Number of runs in the journal.
    pub fn runs(&self) -> usize {
        let kept = self.kept();
        kept.runs.len() + kept.summaries.len()
    }

    /// The reason why a finished run could not be written, if that failed.
    pub fn failure(&self) -> Option<String> {
        let failure = self.kept().failure.clone()?;
        Some(format!("{}: {failure}; free some space and start again", self.path.shown()))
    }

    /// A panic in another run leaves no inconsistent state here.
    fn kept(&self) -> MutexGuard<'_, JournalState> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ResultStore for ResultJournal {
    fn get(&self, key: &RunKey) -> Option<Outcome> {
        self.kept().runs.get(key).cloned()
    }

    fn put(&self, key: &RunKey, outcome: &Outcome) {
        let mut kept = self.kept();
        kept.runs.insert(key.clone(), outcome.clone());
        kept.append(&Journal::entry(key, outcome));
    }

    fn summary(&self, key: &RunKey) -> Option<Value> {
        self.kept().summaries.get(key).cloned()
    }

    fn keep_summary(&self, key: &RunKey, summary: &Value) {
        let mut kept = self.kept();
        kept.summaries.insert(key.clone(), summary.clone());
        kept.append(&Journal::summary(key, summary));
    }
}

impl JournalState {
    fn append(&mut self, line: &str) {
        if self.failure.is_some() {
            return;
        }
        let before = self.file.metadata().map(|metadata| metadata.len());
        if let Err(error) = self.file.write_all(line.as_bytes()) {
            // A full disk may have written part of the line. Remove it, so that the next line is
            // valid.
            if let Ok(before) = before {
                let _ = self.file.set_len(before);
            }
            self.failure = Some(error.to_string());
        }
    }
}
