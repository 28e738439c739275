use core::fmt::Write;

use super::population::Population;
use super::report::{GauntletReport, Quantiles, VariantResult};
use super::table::verdict;
use crate::markdown::MarkdownTable;
use crate::page_abstract::Abstract;

const NOTES: &str = include_str!("../../data/gauntlet_notes.md");

/// The content of a document besides the reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentInfo {
    /// The command that regenerates the document.
    pub command: String,
    /// The machine, its kernel and the date.
    pub machine: String,
    /// The seeds of the populations used to choose parameters.
    pub chosen_on: Vec<u64>,
    /// The directory of the pictures, relative to the document.
    pub pictures: String,
}

/// The reports as a Markdown document; [`picture_name`] names the pictures.
pub fn document(reports: &[GauntletReport], info: &DocumentInfo) -> String {
    let result = result(reports);
    let page = Abstract {
        question: "how do goodput and delay change on random paths when Sweetspot sizes the window instead of the kernel?",
        method: "random paths, each with both sizings under the same seeds; the *null* repeats the kernel's sizing \
            under other seeds.",
        result: &result,
        limitation: "a population is drawn from ranges that we chose; it does not represent the Internet.",
        command: "in the line below; `make bench-gauntlet` writes the main tables.",
    };
    let again = reports.iter().all(|report| report.population == Population::Again);
    let title = if again { "Second transfers on random paths" } else { "Sizings on random paths" };
    let mut text = format!(
        "# {title}\n\n{page}Written by `{}` on {}; do not edit.\n\n{NOTES}\n",
        info.command, info.machine
    );
    let mut measured: Vec<u64> = reports.iter().map(|report| report.seed).collect();
    measured.dedup();
    let chosen = match info.chosen_on.as_slice() {
        [] => String::new(),
        seeds => format!(
            " Parameters were chosen on populations of seed {}: a seed used to choose a parameter is never used \
                to measure it.",
            listed(seeds)
        ),
    };
    let _ = writeln!(text, "Measured here: populations of seed {}.{chosen}", listed(&measured));
    for report in reports {
        let _ = writeln!(
            text,
            "\n## {}\n\n{} paths, the first of them number {}; {} seeds each; transfers of {} s at most.",
            report.population.name(),
            report.paths,
            report.first_path,
            report.seeds,
            report.duration_s
        );
        let mut drawn: Vec<&str> = Vec::new();
        for result in &report.variants {
            if !drawn.contains(&result.congestion) {
                drawn.push(result.congestion);
                let _ = writeln!(
                    text,
                    "\n### {}\n\n{}\n![Distributions]({}/{})",
                    result.congestion,
                    verdicts(report, result.congestion),
                    info.pictures,
                    picture_name(report, result.congestion)
                );
            }
            section(&mut text, result);
        }
    }
    text
}

/// A list of the sizings' results with one congestion control.
fn verdicts(report: &GauntletReport, congestion: &str) -> String {
    let with = report.variants.iter().filter(|result| result.congestion == congestion);
    let verdicts = with.filter_map(|result| verdict(report, result));
    verdicts.map(|sentences| format!("* {}\n", sentences.join(" "))).collect()
}

/// The first verdict, and where to find the others.
fn result(reports: &[GauntletReport]) -> String {
    let first = reports.first().and_then(|report| {
        let words = report.variants.iter().find_map(|result| verdict(report, result))?.join(" ");
        Some(format!("on the paths of `{}`, {words} ", report.population.name()))
    });
    format!("{}Each section begins with its own result.", first.unwrap_or_default())
}

/// The file name of a report's picture.
pub fn picture_name(report: &GauntletReport, congestion: &str) -> String {
    format!("{}-{congestion}.svg", report.population.name())
}

fn section(text: &mut String, result: &VariantResult) {
    let mut goodput = MarkdownTable::new(&[
        &*result.sizing,
        "paths",
        "1 %",
        "5 %",
        "25 %",
        "50 %",
        "75 %",
        "95 %",
        "mean",
        "surely worse",
    ]);
    let mut others = MarkdownTable::new(&[
        &*result.sizing,
        "delay, median",
        "delay, sums",
        "retransmitted, sums",
        "timeouts, sums",
        "rivals 5 %",
        "rivals 50 %",
        "rivals 95 %",
    ]);
    for class in &result.classes {
        let name = class.class.name().to_owned();
        let Quantiles { p1, p5, p25, p50, p75, p95 } = class.goodput;
        let mut cells = vec![name.clone(), class.paths.to_string()];
        cells.extend([p1, p5, p25, p50, p75, p95, class.goodput_mean].map(number));
        cells.push(class.surely_worse.map_or("-".to_owned(), |w| format!("{:.1} %", w * 100.0)));
        goodput.row(&cells);
        let Quantiles { p5, p50, p95, .. } = class.rivals;
        let mut cells = vec![name];
        let ratios =
            [class.delay_median, class.delay, class.retransmitted, class.timeouts, p5, p50, p95];
        cells.extend(ratios.map(number));
        others.row(&cells);
    }
    let _ = write!(text, "\nGoodput over the kernel's:\n\n{goodput}");
    let _ = write!(text, "\nThe rest over the kernel's:\n\n{others}");
}

fn number(value: Option<f64>) -> String {
    value.map_or("-".to_owned(), |value| format!("{value:.3}"))
}

fn listed(seeds: &[u64]) -> String {
    seeds.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")
}
