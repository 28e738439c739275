//! The figures and tables of two papers, played again, with the published numbers beside ours.

mod convergence;
mod curves;
mod published;
mod right_sizing;
mod scenarios;
mod table_one;

use sweetspot_scenario::Engine;

use crate::{StudyError, Workers};
use published::Published;

const NOTES: &str = include_str!("../../data/papers_notes.md");

/// Plays all figures and tables and writes docs/results/papers.md.
pub fn document<E: Engine + Sync>(engine: &E, workers: Workers) -> Result<String, StudyError> {
    let mut published = Published::read()?;
    let curves = curves::figures(engine, &mut published, workers)?;
    let convergence = convergence::figure(engine, &mut published)?;
    let table = table_one::table(engine, workers)?;
    let right_sizing = right_sizing::figures(engine, &mut published, workers)?;

    let mut text = String::from(
        "# The papers' figures, played again\n\n\
         Written by `sweetspot reproduce papers`; do not edit. Every scenario is a file in \
         `scenarios/papers/` that `sweetspot run` plays, e.g. `sweetspot mft \
         scenarios/papers/sobas-fig4-elephants.toml --set path.buffer=1250pkt`.\n\n",
    );
    text.push_str(NOTES);
    text.push_str("\n## SOBAS: published and here\n\n");
    published.write(&mut text, "sobas");
    text.push_str("## SOBAS: Table I\n\n");
    text.push_str(&table);
    text.push_str("## SOBAS: the figures\n\n");
    text.push_str(&curves);
    text.push_str(&convergence);
    text.push_str("## Dynamic Right-Sizing: published and here\n\n");
    published.write(&mut text, "drs");
    text.push_str("## Dynamic Right-Sizing: the figures\n\n");
    text.push_str(&right_sizing);
    Ok(text)
}
