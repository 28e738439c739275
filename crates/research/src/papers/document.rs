use core::fmt::Write;

use super::catalogue::catalogue;
use super::claims;
use super::comparison::PublishedComparison;
use super::figure::{Figure, Paper};
use crate::markdown::MarkdownTable;
use crate::page_abstract::Abstract;
use sweetspot_experiment::plot::{Origin, Table};

const ABSTRACT: Abstract<'_> = Abstract {
    question: "can the claims, figures and tables of the five papers be reproduced?",
    method: "each figure's scenario runs on the engines named below; printed numbers are compared, curves are not digitised.",
    result: "the first table counts the verdicts for each paper; each claim has our number, a verdict and, for a \
        miss, the reason.",
    limitation: "the papers leave some parameters open, so each scenario file states the values chosen here.",
    command: "in the line below; `sweetspot-research reproduce all --careful` runs every figure.",
};

const NOTES: &str = include_str!("../../data/papers_notes.md");

/// The claims and figures as a Markdown document. `pictures` is the directory of their SVG files, relative to it; `made`
/// names the command, the machine and the date.
pub fn markdown(figures: &[Figure], pictures: &str, made: &str) -> String {
    let mut text = format!(
        "# The papers, claim by claim\n\n{ABSTRACT}\
         {made} Do not edit. Every scenario is a file in \
         `scenarios/papers/` for `sweetspot run`, e.g. `sweetspot sweep \
         scenarios/papers/sobas-fig4-elephants.toml --find-best --set path.buffer=1250pkt`.\n\n",
    );
    let mut papers: Vec<Paper> = Vec::new();
    for figure in figures {
        if papers.last() != Some(&figure.paper) {
            papers.push(figure.paper);
        }
    }
    // Claims in words and the notes refer to all figures.
    let complete = figures.len() == catalogue().count();
    text.push_str(&claims::summary(&papers, figures, complete));
    if complete {
        let _ = write!(text, "\n{NOTES}");
    }
    for paper in papers {
        let _ = writeln!(text, "\n## {}", paper.title());
        let _ = writeln!(text, "\n### Claims\n\n{}", claims::table(paper, figures, complete));
        for figure in figures.iter().filter(|figure| figure.paper == paper) {
            section(&mut text, figure, pictures);
        }
    }
    text
}

fn section(text: &mut String, figure: &Figure, pictures: &str) {
    let _ = writeln!(text, "\n### {}\n\n{}\n", figure.title, figure.about);
    if !figure.plots.is_empty() {
        let _ = writeln!(text, "![{}]({pictures}/{}.svg)\n", figure.title, figure.name);
    }
    if !figure.comparisons.is_empty() {
        let _ = writeln!(text, "{}", compared(&figure.comparisons));
    }
    for table in &figure.tables {
        if !table.title.is_empty() {
            let _ = writeln!(text, "{}:\n", table.title);
        }
        let _ = writeln!(text, "{}", written(table));
    }
}

/// Published numbers, ours by engine, and the deviations.
fn compared(comparisons: &[PublishedComparison]) -> MarkdownTable {
    let mut origins: Vec<Origin> = Vec::new();
    for ours in comparisons.iter().flat_map(|comparison| &comparison.ours) {
        if !origins.contains(&ours.origin) {
            origins.push(ours.origin);
        }
    }
    let mut heads = vec!["quantity", "unit", "published"];
    heads.extend(origins.iter().flat_map(|origin| [origin.name(), ""]));
    let mut table = MarkdownTable::new(&heads);
    for comparison in comparisons {
        let mut row = vec![&*comparison.what, comparison.unit, comparison.published];
        for origin in &origins {
            let ours = comparison.ours.iter().find(|ours| ours.origin == *origin);
            row.push(ours.map_or("-", |ours| &ours.value));
            row.push(ours.map_or("", |ours| &ours.deviation));
        }
        table.row(&row);
    }
    table
}

fn written(table: &Table) -> MarkdownTable {
    let heads: Vec<&str> = table.heads.iter().map(String::as_str).collect();
    let mut written = MarkdownTable::new(&heads);
    for row in &table.rows {
        written.row(row);
    }
    written
}
