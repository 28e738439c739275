//! Table I of the SOBAS paper: nine cells, six static schemes, SOBAS, the MFT.

use core::fmt::Write;

use sweetspot_scenario::{Engine, Scenario};
use sweetspot_sizing::{BdpDefinition, Sizing};

use super::curves::BUFFERS;
use super::scenarios::{PaperScenario, TABLE_1, seeded};
use crate::csv::Table;
use crate::markdown::MarkdownTable;
use crate::play::{goodput, play_all};
use crate::{Bounds, Mft, StudyError, Workers, find_mft};

/// Seeds of a cell: on the congested path goodput differs by a fifth between two of them.
fn seeds(percent: u64) -> u64 {
    if percent == 100 { 4 } else { 1 }
}

/// What default SOBAS is to reach of the MFT.
const SHARE_ASKED: f64 = 0.97;
/// How close the paper's variant is to come to what the paper printed.
const CLOSENESS_ASKED: f64 = 0.10;

/// One cell as printed, Mbit/s; the columns' names are those of the file.
struct Printed {
    schemes: [Option<f64>; 6],
    sobas: f64,
    mft: f64,
}

/// One cell as played, Mbit/s.
struct Played {
    schemes: [f64; 6],
    paper: f64,
    sobas: f64,
    mft: Mft,
}

/// Plays the table and writes it beside the printed one.
pub(super) fn table<E: Engine + Sync>(engine: &E, workers: Workers) -> Result<String, StudyError> {
    let columns = [
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
    let mut table = MarkdownTable::new(&columns);
    let printed = printed()?;
    let mut cells = printed.iter();
    for (percent, scenario) in TABLE_1 {
        for buffer in BUFFERS {
            let played = play_cell(engine, percent, scenario, buffer, workers)?;
            if let Some(printed) = cells.next() {
                rows(&mut table, &format!("{percent} %, {buffer}"), printed, &played);
            }
        }
    }
    let mut text = String::new();
    let _ = writeln!(text, "{table}");
    let _ = writeln!(
        text,
        "Targets: sobas at {:.0} % of the MFT or more; sobas:paper within {:.0} % of what the paper \
         printed for SOBAS. Missed ones are marked *.\n",
        SHARE_ASKED * 100.0,
        CLOSENESS_ASKED * 100.0
    );
    Ok(text)
}

fn printed() -> Result<Vec<Printed>, StudyError> {
    let table = Table::parse("sobas_table1.csv", include_str!("../../data/sobas_table1.csv"))?;
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

fn play_cell<E: Engine + Sync>(
    engine: &E,
    percent: u64,
    scenario: PaperScenario,
    buffer: u64,
    workers: Workers,
) -> Result<Played, StudyError> {
    let scenario = scenario.with(&[format!("path.hop.1.buffer={buffer}pkt")])?;
    let seeds = seeds(percent);
    let sized = |sizing: Sizing| {
        let mut scenario = scenario.clone();
        scenario.transfers[0].sizing = sizing;
        seeded(&scenario, seeds)
    };
    let sizings = BdpDefinition::ALL.map(Sizing::BdpBy).into_iter();
    let sizings = sizings.chain([Sizing::SobasPaper, Sizing::Sobas]);
    let runs: Vec<Scenario> = sizings.flat_map(sized).collect();
    let outcomes = play_all(engine, &runs, workers)?;
    let mean = |i: usize| {
        let of = &outcomes[i * seeds as usize..(i + 1) * seeds as usize];
        of.iter().map(goodput).sum::<f64>() / seeds as f64 / 1e6
    };
    let bounds = Bounds { tolerance: 0.02, ..Bounds::around(&scenario) };
    Ok(Played {
        schemes: core::array::from_fn(mean),
        paper: mean(6),
        sobas: mean(7),
        mft: find_mft(engine, &scenario, bounds, seeds, workers)?,
    })
}

fn rows(table: &mut MarkdownTable, name: &str, printed: &Printed, played: &Played) {
    let number = |n: f64| format!("{n:.1}");
    let mut cells = vec![name.to_owned(), "paper".to_owned()];
    cells.extend(printed.schemes.iter().map(|s| s.map_or("NA".to_owned(), number)));
    let share = |n: f64, mft: f64| format!("{:.0} %", n / mft * 100.0);
    cells.extend([
        number(printed.sobas),
        String::new(),
        number(printed.mft),
        share(printed.sobas, printed.mft),
    ]);
    table.row(&cells);

    let mft = played.mft.rate_bps / 1e6;
    let mark = |missed: bool| if missed { "*" } else { "" };
    let far = (played.paper / printed.sobas - 1.0).abs() > CLOSENESS_ASKED;
    let low = played.sobas < SHARE_ASKED * mft;
    let mut cells = vec![name.to_owned(), "here".to_owned()];
    cells.extend(played.schemes.iter().map(|s| number(*s)));
    cells.extend([
        format!("{}{}", number(played.paper), mark(far)),
        number(played.sobas),
        format!("{mft:.1} @ {}", played.mft.window),
        format!("{}{}", share(played.sobas, mft), mark(low)),
    ]);
    table.row(&cells);
}
