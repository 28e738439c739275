//! The table as printed.

use super::run::RunCell;
use super::{PrintedCell, REQUIRED_CLOSENESS, REQUIRED_SHARE};
use crate::markdown::deviation;
use crate::papers::comparison::{EngineValue, PublishedComparison};
use sweetspot_experiment::plot::Origin;
use sweetspot_experiment::plot::Table;

/// The numbers of each cell, printed and simulated, for the table of claims.
pub(super) fn cells(printed: &[PrintedCell], finished: &[RunCell]) -> Vec<PublishedComparison> {
    let mut all = Vec::new();
    for (theirs, ours) in printed.iter().zip(finished) {
        let mut push = |what: &str, published: Option<&'static str>, value: String| {
            let Some(published) = published else { return };
            all.push(PublishedComparison {
                what: format!("{}: {what}", ours.name),
                unit: "Mbit/s",
                published,
                ours: vec![EngineValue { origin: Origin::Sim, value, deviation: String::new() }],
            });
        };
        let schemes = ours.schemes[..6].iter().zip(ours.half_widths);
        for ((name, published), (mean, half)) in SCHEMES.iter().zip(theirs.texts).zip(schemes) {
            push(name, published, with_error(*mean, half));
        }
        let half = ours.half_widths[6];
        push("SOBAS", Some(theirs.sobas_text), with_error(ours.schemes[6], half));
        push("MFT", Some(theirs.mft_text), format!("{:.1}", ours.best.rate_bps / 1e6));
    }
    all
}

fn with_error(mean: f64, half_width: Option<f64>) -> String {
    half_width.map_or(format!("{mean:.1}"), |half| format!("{mean:.1} ± {half:.1}"))
}

const SCHEMES: [&str; 6] = ["C T_m", "C T_e", "A T_m", "A T_e", "BTC T_a", "S = inf"];

const HEADS: [&str; 12] = [
    "rho, B_t",
    "",
    "C T_m",
    "C T_e",
    "A T_m",
    "A T_e",
    "BTC T_a",
    "S = inf",
    "sobas:paper",
    "sobas",
    "MFT @ S",
    "sobas / MFT",
];

/// Three rows per cell: as printed, as simulated, and the difference. The paper's SOBAS is listed
/// under `sobas:paper`, which is its algorithm, together with its fraction of the MFT.
pub(super) fn rows(printed: &[PrintedCell], finished: &[RunCell]) -> Table {
    let number = |n: f64| format!("{n:.1}");
    let share = |n: f64, mft: f64| format!("{:.0} %", n / mft * 100.0);
    let mark = |missed: bool| if missed { "*" } else { "" };
    let mut table = Table::new("Goodput, Mbit/s", &HEADS);
    for (theirs, ours) in printed.iter().zip(finished) {
        let mut row = vec![ours.name.clone(), "paper".to_owned()];
        row.extend(theirs.schemes.iter().map(|s| s.map_or("NA".to_owned(), number)));
        row.extend([number(theirs.sobas), String::new(), number(theirs.mft)]);
        row.push(share(theirs.sobas, theirs.mft));
        table.rows.push(row);

        let mft = ours.best.rate_bps / 1e6;
        let [.., paper, sobas] = ours.schemes;
        let far = (paper / theirs.sobas - 1.0).abs() > REQUIRED_CLOSENESS;
        let low = sobas < REQUIRED_SHARE * mft;
        let mut row = vec![ours.name.clone(), "here".to_owned()];
        row.extend(ours.schemes[..6].iter().map(|s| number(*s)));
        row.extend([format!("{}{}", number(paper), mark(far)), number(sobas)]);
        row.push(format!("{mft:.1} @ {}", ours.best.window));
        row.push(format!("{}{}", share(sobas, mft), mark(low)));
        table.rows.push(row);

        let mut row = vec![ours.name.clone(), "difference".to_owned()];
        row.extend(
            theirs.schemes.iter().zip(ours.schemes).map(|(theirs, ours)| {
                theirs.map_or(String::new(), |theirs| deviation(ours, theirs))
            }),
        );
        row.extend([deviation(paper, theirs.sobas), String::new(), deviation(mft, theirs.mft)]);
        row.push(String::new());
        table.rows.push(row);
    }
    table
}
