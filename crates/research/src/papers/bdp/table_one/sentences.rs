//! The loads before the transfer, and the statements of section VII-B.

use super::run::RunCell;
use super::{BUFFERS, REVERSE};
use crate::papers::scenarios::TABLE_1;
use sweetspot_experiment::plot::Table;

/// The columns of the six static schemes and of `sobas:paper`.
const STATIC: core::ops::Range<usize> = 0..6;
const PAPER: usize = 6;

/// Loads that congest the path.
const CONGESTED: u64 = 100;

/// Utilisation of the tight link before the transfer. The mirrored reverse path also carries the ACKs of its own
/// traffic.
pub(super) fn loads(both: &[Vec<RunCell>]) -> Table {
    let mut heads = vec!["load, B_t".to_owned()];
    heads.extend(REVERSE.iter().map(|(_, name)| format!("{name} reverse path, %")));
    let heads: Vec<&str> = heads.iter().map(String::as_str).collect();
    let mut table = Table::new("Load of the tight link before the transfer, ACKs included", &heads);
    for cell in 0..TABLE_1.len() * BUFFERS.len() {
        let of = both.iter().filter_map(|finished| finished.get(cell));
        let mut row: Vec<String> = of.clone().take(1).map(|cell| cell.name.clone()).collect();
        row.extend(of.map(|cell| format!("{:.1}", cell.load * 100.0)));
        table.rows.push(row);
    }
    table
}

/// A statement of section VII-B, and a function that checks it against these cells.
type Sentence = (&'static str, fn(&[RunCell]) -> String);

const SENTENCES: [Sentence; 6] = [
    (
        "\"close to the Maximum Feasible Throughput, typically within 5-10 %\" (B_t from C T_m on)",
        close,
    ),
    ("\"up to 15-20 %\" below it with B_t = C T_m / 2", under_buffered),
    (
        "\"a higher throughput than the six static [...] schemes when the path is non-congested (except in one case)\"",
        higher,
    ),
    (
        "\"In congested paths, the throughput difference between these schemes, including SOBAS, is minor\"",
        minor,
    ),
    ("the most competitive schemes are C T_m, C T_e and S = inf", competitive),
    ("SOBAS needs no prior information about the path", |_| "holds: it gets none".to_owned()),
];

/// Which statements hold, for each kind of reverse path.
pub(super) fn sentences(both: &[Vec<RunCell>]) -> Table {
    let mut heads = vec!["section VII-B".to_owned()];
    heads.extend(REVERSE.iter().map(|(_, name)| format!("{name} reverse path")));
    let heads: Vec<&str> = heads.iter().map(String::as_str).collect();
    let mut table = Table::new("The sentences of section VII-B, for sobas:paper", &heads);
    for (sentence, stands) in SENTENCES {
        let stand = both.iter().map(|finished| stands(finished));
        table.rows.push([sentence.to_owned()].into_iter().chain(stand).collect());
    }
    table
}

/// The cells with a given load in per cent and index of the buffer.
fn cells(finished: &[RunCell], wanted: fn(u64, usize) -> bool) -> impl Iterator<Item = &RunCell> {
    let placed = finished.iter().enumerate();
    placed.filter(move |(i, cell)| wanted(cell.percent, i % BUFFERS.len())).map(|(_, cell)| cell)
}

fn share(cell: &RunCell) -> f64 {
    cell.schemes[PAPER] / (cell.best.rate_bps / 1e6)
}

fn counted(holds: usize, all: usize) -> String {
    match holds {
        0 => format!("does not hold: 0 of {all} cells"),
        _ if holds == all => format!("holds: all {all} cells"),
        _ => format!("in part: {holds} of {all} cells"),
    }
}

fn close(finished: &[RunCell]) -> String {
    let shares: Vec<f64> = cells(finished, |_, buffer| buffer > 0).map(share).collect();
    let holds = shares.iter().filter(|share| **share >= 0.9).count();
    format!("{} ({})", counted(holds, shares.len()), percents(&shares))
}

fn under_buffered(finished: &[RunCell]) -> String {
    let shares: Vec<f64> = cells(finished, |_, buffer| buffer == 0).map(share).collect();
    let holds = shares.iter().filter(|share| **share >= 0.8).count();
    format!("{} ({})", counted(holds, shares.len()), percents(&shares))
}

fn percents(shares: &[f64]) -> String {
    let percents: Vec<String> = shares.iter().map(|s| format!("{:.0}", s * 100.0)).collect();
    format!("{} % of the MFT", percents.join(", "))
}

fn higher(finished: &[RunCell]) -> String {
    let open: Vec<&RunCell> = cells(finished, |load, _| load < CONGESTED).collect();
    let best = |cell: &RunCell| cell.schemes[STATIC].iter().copied().fold(0.0, f64::max);
    let holds = open.iter().filter(|cell| cell.schemes[PAPER] >= best(cell)).count();
    counted(holds, open.len())
}

fn minor(finished: &[RunCell]) -> String {
    // A T_m and A T_e are not defined there (NA in the paper); BTC T_a is half of the others in the paper's
    // table, too.
    let spread = |cell: &RunCell| {
        let rates = [0, 1, 5, PAPER].map(|column| cell.schemes[column]);
        let min = rates.iter().copied().fold(f64::INFINITY, f64::min);
        rates.iter().copied().fold(0.0, f64::max) / min
    };
    let ratios: Vec<f64> = cells(finished, |load, _| load >= CONGESTED).map(spread).collect();
    let holds = ratios.iter().filter(|ratio| **ratio < 1.25).count();
    let text: Vec<String> = ratios.iter().map(|ratio| format!("{ratio:.2}")).collect();
    format!(
        "{} (the best over the worst, without BTC T_a: {})",
        counted(holds, ratios.len()),
        text.join(", ")
    )
}

fn competitive(finished: &[RunCell]) -> String {
    let best = |cell: &&RunCell| {
        let order = |a: &usize, b: &usize| cell.schemes[*a].total_cmp(&cell.schemes[*b]);
        STATIC.max_by(order).is_some_and(|column| [0, 1, 5].contains(&column))
    };
    counted(finished.iter().filter(best).count(), finished.len())
}
