//! The table of claims: each with its section, a verdict, our number, and the reason with the run that shows it.
//!
//! Printed numbers are judged when their figures are reproduced ([`numbers`]). Claims in words are listed here, in one
//! file per paper, with the figures and tests that decided each.

mod blog;
mod drs;
mod heffner;
mod numbers;
mod router;
mod sobas;

use core::fmt::Write;

use super::figure::{Figure, Paper};
use crate::markdown::MarkdownTable;

/// Whether a claim is reproduced here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The claim holds.
    Reproduced,
    /// The claim holds in part, or the number is close.
    InPart,
    /// The claim does not hold.
    Not,
}

impl Verdict {
    const ALL: [Verdict; 3] = [Verdict::Reproduced, Verdict::InPart, Verdict::Not];

    fn name(self) -> &'static str {
        match self {
            Verdict::Reproduced => "reproduced",
            Verdict::InPart => "in part",
            Verdict::Not => "not",
        }
    }
}

/// A claim in words.
#[derive(Debug, Clone, Copy)]
struct Claim {
    section: &'static str,
    text: &'static str,
    verdict: Verdict,
    /// Our number, with its interval if it has one.
    ours: &'static str,
    /// Why it holds only in part or not at all, or how it was decided.
    why: &'static str,
    /// The evidence: figures and tables of the catalogue, and tests as `file::function`.
    shown: &'static [&'static str],
}

const fn claim(
    verdict: Verdict,
    (section, text): (&'static str, &'static str),
    (ours, why): (&'static str, &'static str),
    shown: &'static [&'static str],
) -> Claim {
    Claim { section, text, verdict, ours, why, shown }
}

/// A claim that holds.
const fn yes(
    paper_claim: (&'static str, &'static str),
    ours: (&'static str, &'static str),
    shown: &'static [&'static str],
) -> Claim {
    claim(Verdict::Reproduced, paper_claim, ours, shown)
}

/// A claim that holds in part.
const fn part(
    paper_claim: (&'static str, &'static str),
    ours: (&'static str, &'static str),
    shown: &'static [&'static str],
) -> Claim {
    claim(Verdict::InPart, paper_claim, ours, shown)
}

/// A claim that does not hold.
const fn no(
    paper_claim: (&'static str, &'static str),
    ours: (&'static str, &'static str),
    shown: &'static [&'static str],
) -> Claim {
    claim(Verdict::Not, paper_claim, ours, shown)
}

fn in_words(paper: Paper) -> &'static [Claim] {
    match paper {
        Paper::Bdp => sobas::CLAIMS,
        Paper::Drs => drs::CLAIMS,
        Paper::Heffner => heffner::CLAIMS,
        Paper::Blog => blog::CLAIMS,
        Paper::Router => router::CLAIMS,
    }
}

/// A row of the table.
#[derive(Debug, Clone)]
struct Line {
    section: String,
    text: String,
    verdict: Verdict,
    ours: String,
    why: String,
}

/// The rows for one paper: numbers from its figures, then claims in words if all figures are present.
fn lines(paper: Paper, figures: &[Figure], complete: bool) -> Vec<Line> {
    let mut lines: Vec<Line> =
        figures.iter().filter(|figure| figure.paper == paper).flat_map(numbers::lines).collect();
    if complete {
        lines.extend(in_words(paper).iter().map(|claim| Line {
            section: claim.section.to_owned(),
            text: claim.text.to_owned(),
            verdict: claim.verdict,
            ours: claim.ours.to_owned(),
            why: with_runs(claim.why, claim.shown),
        }));
    }
    lines
}

/// A reason with the runs that show it.
fn with_runs(why: &str, shown: &[&str]) -> String {
    let runs: Vec<String> = shown.iter().map(|run| format!("`{run}`")).collect();
    let between = if why.is_empty() || runs.is_empty() { "" } else { ": " };
    format!("{why}{between}{}", runs.join(", "))
}

/// The table of one paper's claims.
pub(super) fn table(paper: Paper, figures: &[Figure], complete: bool) -> String {
    let mut table = MarkdownTable::new(&["section", "claim", "verdict", "here", "reason and run"]);
    for line in lines(paper, figures, complete) {
        table.row(&[&*line.section, &line.text, line.verdict.name(), &line.ours, &line.why]);
    }
    table.to_string()
}

/// The number of claims with each verdict, by paper.
pub(super) fn summary(papers: &[Paper], figures: &[Figure], complete: bool) -> String {
    let mut heads = vec!["paper", "claims"];
    heads.extend(Verdict::ALL.map(Verdict::name));
    let mut table = MarkdownTable::new(&heads);
    let mut all = [0; 4];
    for paper in papers {
        let lines = lines(*paper, figures, complete);
        let of = |verdict| lines.iter().filter(|line| line.verdict == verdict).count();
        let counts = [lines.len(), of(Verdict::Reproduced), of(Verdict::InPart), of(Verdict::Not)];
        for (sum, count) in all.iter_mut().zip(counts) {
            *sum += count;
        }
        let mut row = vec![paper.title().to_owned()];
        row.extend(counts.map(|count| count.to_string()));
        table.row(&row);
    }
    let mut row = vec!["all".to_owned()];
    row.extend(all.map(|count| count.to_string()));
    table.row(&row);
    let mut text = String::new();
    let _ = writeln!(
        text,
        "A printed number is *reproduced* if ours lies within 10 % of it or its interval holds it, *in part* within 25 %.\n\n{table}"
    );
    text
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::papers::catalogue;

    const PAPERS: [Paper; 5] = [Paper::Bdp, Paper::Drs, Paper::Heffner, Paper::Blog, Paper::Router];

    /// Whether `run` is the name of a figure, or of a function in a file of the workspace.
    fn exists(run: &str) -> bool {
        let Some((file, function)) = run.split_once("::") else {
            return catalogue().any(|entry| entry.name == run || entry.aliases.contains(&run));
        };
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        std::fs::read_to_string(root.join(file))
            .is_ok_and(|text| text.contains(&format!("fn {function}")))
    }

    #[test]
    fn every_claim_names_a_run_that_exists() {
        for claim in PAPERS.iter().flat_map(|paper| in_words(*paper)) {
            assert!(!claim.shown.is_empty(), "{}", claim.text);
            for run in claim.shown {
                assert!(exists(run), "{run}: {}", claim.text);
            }
        }
        for reason in numbers::REASONS {
            for run in reason.shown {
                assert!(exists(run), "{run}");
            }
        }
    }

    #[test]
    fn a_claim_that_is_not_reproduced_has_a_reason() {
        for claim in PAPERS.iter().flat_map(|paper| in_words(*paper)) {
            assert!(
                claim.verdict == Verdict::Reproduced || !claim.why.is_empty(),
                "{}",
                claim.text
            );
        }
    }

    #[test]
    fn no_claim_is_listed_twice() {
        let mut texts: Vec<(Paper, &str)> = PAPERS
            .iter()
            .flat_map(|paper| in_words(*paper).iter().map(|claim| (*paper, claim.text)))
            .collect();
        let count = texts.len();
        texts.sort_unstable();
        texts.dedup();
        assert_eq!(texts.len(), count);
    }
}
