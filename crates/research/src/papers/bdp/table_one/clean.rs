//! The row of 70 % load with and without cross traffic on the reverse path, which the paper does not
//! describe.

use sweetspot_scenario::{Engine, Scenario};
use sweetspot_sizing::{BdpDefinition, Sizing};

use super::play::seeds;
use super::{BUFFERS, Printed};
use crate::papers::catalogue::Stage;
use crate::papers::scenarios::{TABLE_1, seeded};
use sweetspot_experiment::StudyError;
use sweetspot_experiment::play::{goodput, play_all, with_sizing};
use sweetspot_experiment::plot::Table;

const HEADS: [&str; 6] =
    ["B_t", "reverse path", "C T_m", "of the printed", "sobas:paper", "of the printed SOBAS"];
const REVERSE: [&str; 2] = ["mirror", "clean"];
const SIZINGS: [Sizing; 2] = [Sizing::BdpBy(BdpDefinition::Bdp1), Sizing::SobasPaper];

/// C T_m and `sobas:paper` at 70 % load, by the traffic on the reverse path.
pub(super) fn table(
    engine: &(dyn Engine + Sync),
    stage: &Stage<'_>,
    printed: &[Printed],
) -> Result<Table, StudyError> {
    let seeds = seeds(stage);
    let mut runs: Vec<Scenario> = Vec::new();
    for buffer in BUFFERS {
        for reverse in REVERSE {
            let overrides =
                [format!("path.hop.1.buffer={buffer}pkt"), format!("path.reverse={reverse}")];
            let scenario = TABLE_1[1].1.with(&overrides)?;
            runs.extend(
                SIZINGS.iter().flat_map(|sizing| seeded(&with_sizing(&scenario, *sizing), seeds)),
            );
        }
    }
    let outcomes = play_all(engine, &runs, stage.workers)?;
    let means: Vec<f64> = outcomes
        .chunks(seeds as usize)
        .map(|of| of.iter().map(goodput).sum::<f64>() / seeds as f64 / 1e6)
        .collect();
    let mut table = Table::new("70 % load by what the reverse path carries, Mbit/s", &HEADS);
    // The second row of loads.
    let printed = &printed[BUFFERS.len()..2 * BUFFERS.len()];
    for ((buffer, theirs), cell) in BUFFERS.iter().zip(printed).zip(means.chunks(4)) {
        for (reverse, ours) in REVERSE.iter().zip(cell.chunks(SIZINGS.len())) {
            let share = |ours: f64, theirs: f64| format!("{:.0} %", ours / theirs * 100.0);
            table.rows.push(vec![
                buffer.to_string(),
                (*reverse).to_owned(),
                format!("{:.1}", ours[0]),
                theirs.schemes[0].map_or(String::new(), |theirs| share(ours[0], theirs)),
                format!("{:.1}", ours[1]),
                share(ours[1], theirs.sobas),
            ]);
        }
    }
    Ok(table)
}
