//! Table I: nine cells, six static schemes, SOBAS, the Maximum Feasible Throughput.

use sweetspot_scenario::{Engine, Scenario};
use sweetspot_sizing::{BdpDefinition, Sizing};

use super::super::catalogue::{Care, Figure, Stage};
use super::super::scenarios::{TABLE_1, seeded};
use super::{BUFFERS, ENTRY_TABLE_1};
use crate::csv;
use crate::markdown::deviation;
use crate::play::{goodput, play_all};
use crate::plot::{Axis, Origin, Place, Plot, Table};
use crate::search::find_mfts;
use crate::{Bounds, Mft, StudyError};

/// What default SOBAS is to reach of the MFT.
const SHARE_ASKED: f64 = 0.97;
/// How close the paper's variant is to come to what the paper printed.
const CLOSENESS_ASKED: f64 = 0.10;
/// The six schemes, SOBAS as published, SOBAS.
const SIZINGS: usize = 8;

/// One cell as printed, Mbit/s.
struct Printed {
    schemes: [Option<f64>; 6],
    sobas: f64,
    mft: f64,
}

/// One cell as played, Mbit/s.
struct Played {
    name: String,
    schemes: [f64; SIZINGS],
    mft: Mft,
}

/// Plays the table.
pub(super) fn table(stage: &Stage<'_>) -> Result<Figure, StudyError> {
    let mut figure = ENTRY_TABLE_1.figure(format!(
        "`{}` and its siblings for 30 and 100 %. *Targets*: sobas at {:.0} % of the MFT or more, \
         sobas:paper within {:.0} % of what the paper printed for SOBAS; what misses them is \
         marked *. Seeds of each cell: {}.",
        TABLE_1[1].1.file,
        SHARE_ASKED * 100.0,
        CLOSENESS_ASKED * 100.0,
        seeds(stage),
    ));
    let printed = printed()?;
    let buffers = TABLE_1.iter().flat_map(|_| BUFFERS.map(|buffer| buffer.to_string())).collect();
    let mut plot = Plot::new(
        "SOBAS as a share of the MFT",
        Axis::named("B_t in packets, at 30 %, 70 % and 100 % load", buffers),
        Axis::new("share of the MFT, %").between(0.0, 120.0),
    );
    for (i, cell) in printed.iter().enumerate() {
        let share = cell.sobas / cell.mft * 100.0;
        plot.mark(format!("published, cell {}", i + 1), 0, Place::Point(i as f64 + 1.0, share));
    }
    if let Some(engine) = stage.sim {
        let played = play(engine, stage)?;
        figure.tables.push(rows(&printed, &played));
        for (group, (name, column)) in [("sobas:paper", 6), ("sobas", 7)].into_iter().enumerate() {
            let share = |(i, cell): (usize, &Played)| {
                (i as f64 + 1.0, cell.schemes[column] / (cell.mft.rate_bps / 1e6) * 100.0)
            };
            let shares: Vec<(f64, f64)> = played.iter().enumerate().map(share).collect();
            // A line for each load.
            for of_load in shares.chunks(BUFFERS.len()) {
                plot.curve(name, Origin::Sim, group, of_load.to_vec());
            }
        }
    }
    figure.plots.push(plot);
    Ok(figure)
}

fn printed() -> Result<Vec<Printed>, StudyError> {
    let text = include_str!("../../../data/sobas_table1.csv");
    let table = csv::Table::parse("sobas_table1.csv", text)?;
    let names =
        ["bdp1_CxTm", "bdp2_CxTe", "bdp3_AxTm", "bdp4_AxTe", "bdp5_BTCxTa", "bdp6_infinite"];
    let read = table.rows().map(|row| {
        let mut schemes = [None; 6];
        for (scheme, name) in schemes.iter_mut().zip(names) {
            *scheme = match row.text(name)? {
                "" => None,
                _ => Some(row.number(name)?),
            };
        }
        Ok(Printed { schemes, sobas: row.number("sobas")?, mft: row.number("mft")? })
    });
    read.collect()
}

/// Plays the cells, where single runs of one differ by a few per cent, on the congested path by a
/// fifth: more seeds than one where care is asked for.
fn play(engine: &(dyn Engine + Sync), stage: &Stage<'_>) -> Result<Vec<Played>, StudyError> {
    let seeds = seeds(stage);
    let mut names = Vec::new();
    let mut scenarios = Vec::new();
    for (percent, file) in &TABLE_1 {
        for buffer in BUFFERS {
            names.push(format!("{percent} %, {buffer}"));
            scenarios.push(file.with(&[format!("path.hop.1.buffer={buffer}pkt")])?);
        }
    }
    let schemes = BdpDefinition::ALL.map(Sizing::BdpBy).into_iter();
    let sizings: Vec<Sizing> = schemes.chain([Sizing::SobasPaper, Sizing::Sobas]).collect();
    let sized = |scenario: &Scenario, sizing: Sizing| {
        let mut scenario = scenario.clone();
        for transfer in &mut scenario.transfers {
            transfer.sizing = sizing;
        }
        seeded(&scenario, seeds)
    };
    let runs: Vec<Scenario> = scenarios
        .iter()
        .flat_map(|scenario| sizings.iter().flat_map(move |sizing| sized(scenario, *sizing)))
        .collect();
    let outcomes = play_all(engine, &runs, stage.workers)?;
    let seeds_of_one = seeds as usize;
    let jobs: Vec<(Scenario, Bounds)> =
        scenarios.iter().map(|s| (s.clone(), bounds(s, stage.care))).collect();
    let found = find_mfts(engine, &jobs, seeds, stage.workers)?;
    let cells = outcomes.chunks(SIZINGS * seeds_of_one).zip(found).zip(names);
    let cell = |((outcomes, mft), name): ((&[_], Mft), String)| {
        let mean = |i: usize| {
            let of = &outcomes[i * seeds_of_one..(i + 1) * seeds_of_one];
            of.iter().map(goodput).sum::<f64>() / seeds as f64 / 1e6
        };
        Played { name, schemes: core::array::from_fn(mean), mft }
    };
    Ok(cells.map(cell).collect())
}

fn seeds(stage: &Stage<'_>) -> u64 {
    stage.care.seeds(1, 4)
}

/// No best window of the table lies below A T_m, which at 70 % load is 187 packets. A tight link
/// with room to spare makes R flat about its maximum, so that a few per cent of the window are
/// close enough for a few thousandths of the rate.
fn bounds(scenario: &Scenario, care: Care) -> Bounds {
    const LEAST: u64 = 150;
    let tolerance = match care {
        Care::Quick => 0.05,
        Care::Careful => 0.02,
    };
    Bounds { least: LEAST, tolerance, ..Bounds::around(scenario) }
}

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

/// Three rows per cell: as printed, as played, how far they are apart. The paper's SOBAS stands
/// under `sobas:paper`, which is its algorithm; its share of the MFT is that one's.
fn rows(printed: &[Printed], played: &[Played]) -> Table {
    let number = |n: f64| format!("{n:.1}");
    let share = |n: f64, mft: f64| format!("{:.0} %", n / mft * 100.0);
    let mark = |missed: bool| if missed { "*" } else { "" };
    let mut table = Table::new("Goodput, Mbit/s", &HEADS);
    for (theirs, ours) in printed.iter().zip(played) {
        let mut row = vec![ours.name.clone(), "paper".to_owned()];
        row.extend(theirs.schemes.iter().map(|s| s.map_or("NA".to_owned(), number)));
        row.extend([number(theirs.sobas), String::new(), number(theirs.mft)]);
        row.push(share(theirs.sobas, theirs.mft));
        table.rows.push(row);

        let mft = ours.mft.rate_bps / 1e6;
        let [.., paper, sobas] = ours.schemes;
        let far = (paper / theirs.sobas - 1.0).abs() > CLOSENESS_ASKED;
        let low = sobas < SHARE_ASKED * mft;
        let mut row = vec![ours.name.clone(), "here".to_owned()];
        row.extend(ours.schemes[..6].iter().map(|s| number(*s)));
        row.extend([format!("{}{}", number(paper), mark(far)), number(sobas)]);
        row.push(format!("{mft:.1} @ {}", ours.mft.window));
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
