//! The journal format, which preserves outcomes if the program is killed: a line with the version,
//! then one JSON object per finished run, each on one line.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sweetspot_scenario::Outcome;
use thiserror::Error;

use crate::{RunKey, Sweep, SweepVariant};

/// The content of a journal.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Journal {
    /// Outcomes by run.
    pub runs: BTreeMap<RunKey, Outcome>,
    /// Summaries that studies made, by run.
    pub summaries: BTreeMap<RunKey, Value>,
    /// Bytes of the text that are complete lines. If the program is killed while writing, a partial
    /// line follows them.
    pub whole: usize,
}

/// The reason why a journal cannot be continued.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum JournalError {
    /// The text is not a journal.
    #[error("it is not a journal of sweetspot runs; name another file, or remove it")]
    Alien,
    /// The journal is from another version, which may have other outcomes.
    #[error(
        "its runs are from sweetspot {theirs}, and this is {ours}; finish it with that version, \
         name another file, or remove it to start over"
    )]
    OtherVersion {
        /// The version that wrote the journal.
        theirs: String,
        /// This version.
        ours: String,
    },
    /// A line before the last one cannot be read.
    #[error("line {line} cannot be read ({reason}); remove that line to repeat its run")]
    Damaged {
        /// Line number, counted from 1.
        line: usize,
        /// The fault.
        reason: String,
    },
}

#[derive(Serialize, Deserialize)]
struct Head {
    sweetspot_journal: u32,
    version: String,
}

#[derive(Serialize, Deserialize)]
struct JournalEntry {
    engine: String,
    scenario: String,
    seed: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    outcome: Option<Outcome>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    summary: Option<Value>,
}

/// The line of a combination that a sweep is about to run. It repeats if the sweep is continued.
#[derive(Serialize)]
struct PlannedEntry<'a> {
    #[serde(flatten)]
    key: JournalEntry,
    planned: Planned<'a>,
}

#[derive(Serialize)]
struct Planned<'a> {
    /// Index of the combination, and the number of combinations.
    place: usize,
    places: usize,
    /// Number of seeds, beginning with the line's own.
    seeds: u64,
    values: Vec<(&'a str, &'a str)>,
}

const JOURNAL_FORMAT: u32 = 1;

impl Journal {
    /// The first line of a new journal of this `version`.
    pub fn head(version: &str) -> String {
        line(&Head { sweetspot_journal: JOURNAL_FORMAT, version: version.to_owned() })
    }

    /// The line of one finished run.
    pub fn entry(key: &RunKey, outcome: &Outcome) -> String {
        let RunKey { engine, scenario, seed } = key.clone();
        let outcome = Some(outcome.clone());
        line(&JournalEntry { engine, scenario, seed, outcome, summary: None })
    }

    /// The line of a study's summary of one run.
    pub fn summary(key: &RunKey, summary: &Value) -> String {
        let RunKey { engine, scenario, seed } = key.clone();
        let summary = Some(summary.clone());
        line(&JournalEntry { engine, scenario, seed, outcome: None, summary })
    }

    /// The lines of the combinations that `sweep` is about to run: they tell a reader which runs in the journal are its own.
    pub fn plan(engine: &str, sweep: &Sweep, variants: &[SweepVariant]) -> String {
        let planned = |(place, variant): (usize, &SweepVariant)| {
            let RunKey { engine, scenario, seed } = RunKey::of(engine, &variant.scenario);
            let keys = sweep.over.iter().map(|over| over.key.as_str());
            line(&PlannedEntry {
                key: JournalEntry { engine, scenario, seed, outcome: None, summary: None },
                planned: Planned {
                    place,
                    places: variants.len(),
                    seeds: sweep.seeds.max(1),
                    values: keys.zip(variant.values.iter().map(String::as_str)).collect(),
                },
            })
        };
        variants.iter().enumerate().map(planned).collect()
    }

    /// Parses the journal of a program of this `version`. An incomplete last line is left out.
    pub fn parse(text: &str, version: &str) -> Result<Journal, JournalError> {
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        let mut lines = text[..whole].lines().enumerate();
        let Some((_, first)) = lines.next() else {
            // The program was killed while it wrote the first line, or the file is not a journal.
            let torn = Journal::head(version).starts_with(text);
            return if torn { Ok(Journal::default()) } else { Err(JournalError::Alien) };
        };
        let head: Head = serde_json::from_str(first).map_err(|_| JournalError::Alien)?;
        if head.sweetspot_journal != JOURNAL_FORMAT || head.version != version {
            return Err(JournalError::OtherVersion {
                theirs: head.version,
                ours: version.to_owned(),
            });
        }
        let (mut runs, mut summaries) = (BTreeMap::new(), BTreeMap::new());
        for (index, text) in lines {
            let entry: JournalEntry = serde_json::from_str(text).map_err(|error| {
                JournalError::Damaged { line: index + 1, reason: error.to_string() }
            })?;
            let JournalEntry { engine, scenario, seed, outcome, summary } = entry;
            let key = RunKey { engine, scenario, seed };
            if let Some(summary) = summary {
                summaries.insert(key.clone(), summary);
            }
            if let Some(outcome) = outcome {
                runs.insert(key, outcome);
            }
        }
        Ok(Journal { runs, summaries, whole })
    }
}

/// The JSON of `value` on one line; these types can always be serialised.
fn line<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value).map_or(String::new(), |json| json + "\n")
}
