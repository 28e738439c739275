use serde::Serialize;
use sweetspot_scenario::{Engine, nearest};

use super::comparison::PublishedComparison;
use super::{bdp, blog, drs, heffner, router};
use sweetspot_experiment::plot::{Origin, Plot, Table};
use sweetspot_experiment::{ResultStore, StudyError, Workers};

/// A paper with reproduced figures and tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Paper {
    /// Jain, Prasad, Dovrolis.
    Bdp,
    /// Weigle, Feng.
    Drs,
    /// Heffner.
    Heffner,
    /// Gordon.
    Blog,
    /// Prasad, Dovrolis, Thottan.
    Router,
}

impl Paper {
    /// Authors and title.
    pub fn title(self) -> &'static str {
        match self {
            Paper::Bdp => {
                "Jain, Prasad, Dovrolis: The TCP Bandwidth-Delay Product revisited: network \
                 buffering, cross traffic, and socket buffer auto-sizing"
            }
            Paper::Drs => "Weigle, Feng: Dynamic Right-Sizing: a simulation study",
            Paper::Heffner => "Heffner: High Bandwidth TCP Queuing",
            Paper::Blog => "Gordon: Impact of Bandwidth Delay Product on TCP Throughput",
            Paper::Router => {
                "Prasad, Dovrolis, Thottan: Router Buffer Sizing for TCP Traffic and the Role of \
                 the Output/Input Capacity Ratio"
            }
        }
    }
}

/// A figure or table of a paper, and how to run it.
///
/// **To add a paper's figures**: a module with a list of these, and one line in `LISTS`.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    /// `paper-item`, e.g. `bdp-fig3`: the name on the command line and of its files.
    pub name: &'static str,
    /// Shorter names.
    pub aliases: &'static [&'static str],
    /// The paper.
    pub paper: Paper,
    /// Its number and subject.
    pub title: &'static str,
    /// Runs it on the engines of the stage that can.
    pub run: RunFigure,
}

/// Runs a figure on the engines of the stage that can.
pub type RunFigure = fn(&Stage<'_>) -> Result<Figure, StudyError>;

impl Paper {
    /// An entry of this paper without shorter names.
    pub(super) const fn entry(
        self,
        name: &'static str,
        title: &'static str,
        run: RunFigure,
    ) -> Entry {
        Entry { name, aliases: &[], paper: self, title, run }
    }
}

impl Entry {
    /// The same with shorter names.
    pub(super) const fn also(self, aliases: &'static [&'static str]) -> Entry {
        Entry { aliases, ..self }
    }
}

/// Every figure and table of every paper.
const LISTS: [&[Entry]; 5] =
    [bdp::ENTRIES, drs::ENTRIES, heffner::ENTRIES, blog::ENTRIES, router::ENTRIES];

/// The engines and the effort with which figures are run.
#[derive(Clone, Copy)]
pub struct Stage<'a> {
    /// Whether closed forms are drawn.
    pub theory: bool,
    /// The simulator, where it is wanted.
    pub sim: Option<&'a (dyn Engine + Sync)>,
    /// This machine's kernel, where it is wanted.
    pub lab: Option<&'a (dyn Engine + Sync)>,
    /// Where the results of runs with single flows are stored.
    pub store: &'a dyn ResultStore,
    /// Threads of the simulations.
    pub workers: Workers,
    /// The precision.
    pub precision: Precision,
}

impl Stage<'_> {
    /// Threads of an engine's runs: in the lab one, because a run needs the machine to itself.
    pub(super) fn workers_of(&self, origin: Origin) -> Workers {
        if origin == Origin::Lab { Workers::ONE } else { self.workers }
    }
}

/// Precision of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precision {
    /// Within minutes for all of them: one or two seeds, windows within 2 %.
    Quick,
    /// For the documents in docs/results: more seeds, windows within 0.5 %.
    Careful,
}

impl Precision {
    /// How close to the best window a search ends, as a share of it.
    pub(super) fn tolerance(self) -> f64 {
        match self {
            Precision::Quick => 0.02,
            Precision::Careful => 0.005,
        }
    }

    /// Seeds to average over: `quick` of them, or `careful`.
    pub(super) fn seeds(self, quick: u64, careful: u64) -> u64 {
        match self {
            Precision::Quick => quick,
            Precision::Careful => careful,
        }
    }
}

/// A reproduced figure or table.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Figure {
    /// The name, as in [`Entry::name`].
    pub name: &'static str,
    /// The paper.
    pub paper: Paper,
    /// Its number and subject.
    pub title: &'static str,
    /// How it was simulated: the scenario's file, the differences from the paper and their reasons.
    pub about: String,
    /// The pictures.
    pub plots: Vec<Plot>,
    /// Published numbers and ours.
    pub comparisons: Vec<PublishedComparison>,
    /// Further ones, which a table of the figure shows already: for the table of claims.
    pub cells: Vec<PublishedComparison>,
    /// The numbers behind the pictures.
    pub tables: Vec<Table>,
}

impl Entry {
    /// An empty figure.
    pub(super) fn figure(&self, about: impl Into<String>) -> Figure {
        Figure {
            name: self.name,
            paper: self.paper,
            title: self.title,
            about: about.into(),
            plots: Vec::new(),
            comparisons: Vec::new(),
            cells: Vec::new(),
            tables: Vec::new(),
        }
    }
}

/// Every figure and table, paper by paper.
pub fn catalogue() -> impl Iterator<Item = &'static Entry> {
    LISTS.into_iter().flatten()
}

/// The entries that `words` name: `all`, a paper (`bdp`), a figure (`bdp-fig3`), or a short
/// name (`fig3`).
pub fn find(words: &[String]) -> Result<Vec<&'static Entry>, StudyError> {
    let mut found: Vec<&Entry> = Vec::new();
    for word in words {
        let prefix = format!("{word}-");
        let named = |entry: &&Entry| {
            word == "all"
                || entry.name == word
                || entry.aliases.contains(&word.as_str())
                || entry.name.starts_with(&prefix)
        };
        let before = found.len();
        found.extend(catalogue().filter(named));
        if found.len() == before {
            let names = catalogue().flat_map(|e| [e.name].into_iter().chain(e.aliases.to_vec()));
            let names: Vec<&str> = names.collect();
            return Err(StudyError::UnknownFigure {
                name: word.clone(),
                nearest: nearest(word, names)
                    .map_or(String::new(), |name| format!("; did you mean {name}?")),
                known: catalogue().map(|entry| entry.name).collect::<Vec<_>>().join(", "),
            });
        }
    }
    let mut seen = Vec::new();
    found.retain(|entry| {
        !seen.contains(&entry.name) && {
            seen.push(entry.name);
            true
        }
    });
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(words: &[&str]) -> Result<Vec<&'static str>, String> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let names = |found: Vec<&Entry>| found.into_iter().map(|entry| entry.name).collect();
        find(&words).map(names).map_err(|error| error.to_string())
    }

    #[test]
    fn no_name_stands_for_two_figures() {
        let mut names: Vec<&str> = catalogue()
            .flat_map(|entry| [entry.name].into_iter().chain(entry.aliases.iter().copied()))
            .collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn short_names_papers_and_all_find_their_figures_once() {
        assert_eq!(named(&["fig3", "bdp-fig3"]), Ok(vec!["bdp-fig3"]));
        assert!(named(&["drs"]).unwrap().iter().all(|name| name.starts_with("drs-")));
        assert_eq!(named(&["all", "fig3"]).unwrap().len(), catalogue().count());
    }

    #[test]
    fn an_unknown_figure_is_answered_with_the_nearest_and_the_list() {
        let error = named(&["bdp-figg3"]).unwrap_err();
        assert!(error.contains("did you mean bdp-fig3?"), "{error}");
        assert!(error.contains("heffner-fig4"), "{error}");
    }
}
