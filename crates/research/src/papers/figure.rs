//! A figure or table of a paper, and the stage that runs it.

use serde::Serialize;
use sweetspot_experiment::plot::{Curve, Origin, Plot, Table};
use sweetspot_experiment::{ResultStore, StudyError, Workers};
use sweetspot_scenario::Engine;

use super::comparison::PublishedComparison;

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

/// A figure or table of a paper, and the function that reproduces it.
///
/// **To add a paper's figures**: add a module with a list of entries, and one line in `LISTS`.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    /// `paper-item`, e.g. `bdp-fig3`: the name on the command line and of its files.
    pub name: &'static str,
    /// Short names.
    pub aliases: &'static [&'static str],
    /// The paper.
    pub paper: Paper,
    /// Its number and subject.
    pub title: &'static str,
    /// Reproduces it on those engines of the stage that can run it.
    pub run: RunFigure,
}

/// Reproduces a figure on those engines of the stage that can run it.
pub type RunFigure = fn(&Stage<'_>) -> Result<Figure, StudyError>;

impl Paper {
    /// An entry of this paper without short names.
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
    /// The entry with short names added.
    pub(super) const fn also(self, aliases: &'static [&'static str]) -> Entry {
        Entry { aliases, ..self }
    }
}

/// The engines and the effort for reproducing figures.
#[derive(Clone, Copy)]
pub struct Stage<'a> {
    /// Whether closed forms are drawn.
    pub theory: bool,
    /// The simulator, if requested.
    pub sim: Option<&'a (dyn Engine + Sync)>,
    /// This machine's kernel, if requested.
    pub lab: Option<&'a (dyn Engine + Sync)>,
    /// The store for the results of runs with single flows.
    pub store: &'a dyn ResultStore,
    /// Threads for the simulations.
    pub workers: Workers,
    /// The precision.
    pub precision: Precision,
}

impl Stage<'_> {
    /// Threads for an engine's runs: one in the lab, because a run needs the whole machine.
    pub(super) fn workers_of(&self, origin: Origin) -> Workers {
        if origin == Origin::Lab { Workers::ONE } else { self.workers }
    }
}

/// Precision of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precision {
    /// Minutes for all figures: one or two seeds, windows within 2 %.
    Quick,
    /// For the documents in docs/results: more seeds, windows within 0.5 %.
    Careful,
}

impl Precision {
    /// The precision to which a search finds the best window, relative to it.
    pub(super) fn tolerance(self) -> f64 {
        match self {
            Precision::Quick => 0.02,
            Precision::Careful => 0.005,
        }
    }

    /// The number of seeds to average over: `quick` or `careful`.
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
    /// How it was simulated: the scenario file, and the differences from the paper with their
    /// reasons.
    pub about: String,
    /// The pictures.
    pub plots: Vec<Plot>,
    /// Published numbers, with ours.
    pub comparisons: Vec<PublishedComparison>,
    /// Further published numbers that are already in one of the figure's tables, for the table of
    /// claims.
    pub cells: Vec<PublishedComparison>,
    /// The numbers behind the pictures.
    pub tables: Vec<Table>,
}

impl Entry {
    /// A figure without content yet.
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

/// The points of several curves over the same x as one table, with `decimals` decimal places.
pub(super) fn curve_table(x: &str, curves: &[Curve], decimals: usize) -> Table {
    let mut heads = vec![x.to_owned()];
    heads.extend(curves.iter().map(|curve| curve.label.clone()));
    let mut places: Vec<f64> =
        curves.iter().flat_map(|curve| curve.points.iter().map(|point| point.0)).collect();
    places.sort_by(f64::total_cmp);
    places.dedup();
    let mut table = Table::new("", &heads);
    for place in places {
        // Rounds off the errors of binary fractions.
        let mut row = vec![((place * 1e6).round() / 1e6).to_string()];
        row.extend(curves.iter().map(|curve| {
            let found = curve.points.iter().find(|point| point.0 == place);
            found.map_or(String::new(), |point| format!("{:.decimals$}", point.1))
        }));
        table.rows.push(row);
    }
    table
}
