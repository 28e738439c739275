//! Table I: nine cells, six static schemes, SOBAS, the Maximum Feasible Throughput.

mod play;
mod rows;
mod unbiased;

use super::super::catalogue::{Figure, Stage};
use super::super::scenarios::TABLE_1;
use super::{BUFFERS, ENTRY_TABLE_1};
use crate::plot::{Axis, Origin, Place, Plot};
use crate::{StudyError, csv};
use play::Played;

/// What default SOBAS is to reach of the MFT.
const SHARE_ASKED: f64 = 0.97;
/// How close the paper's variant is to come to what the paper printed.
const CLOSENESS_ASKED: f64 = 0.10;

/// One cell as printed, Mbit/s.
struct Printed {
    schemes: [Option<f64>; 6],
    sobas: f64,
    mft: f64,
}

/// Plays the table.
pub(super) fn table(stage: &Stage<'_>) -> Result<Figure, StudyError> {
    let mut figure = ENTRY_TABLE_1.figure(about(stage));
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
        let played = play::play(engine, stage)?;
        figure.tables.push(rows::rows(&printed, &played));
        figure.tables.extend(unbiased::table(engine, stage, &played)?);
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

fn about(stage: &Stage<'_>) -> String {
    format!(
        "`{}` and its siblings for 30 and 100 %. *Targets*: sobas at {:.0} % of the MFT or more, \
         sobas:paper within {:.0} % of what the paper printed for SOBAS; what misses them is \
         marked *. Seeds of each cell: {}. *MFT @ S* is the plain maximum over all windows tried. \
         {}",
        TABLE_1[1].1.file,
        SHARE_ASKED * 100.0,
        CLOSENESS_ASKED * 100.0,
        play::seeds(stage),
        unbiased::about(stage.care),
    )
}

fn printed() -> Result<Vec<Printed>, StudyError> {
    let text = include_str!("../../../../data/sobas_table1.csv");
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
