//! Section 4.2.1: the receive window of an application slower than the path.

use sweetspot_scenario::Sample;

use super::super::figure::{Figure, Stage};
use super::super::scenarios::HEFFNER_SLOW;
use super::super::time::TransferSeries;
use super::ENTRY_SLOW;
use sweetspot_experiment::StudyError;
use sweetspot_experiment::plot::{Axis, MarkPosition, Origin, Plot, Table};
use sweetspot_sizing::{HeffnerVariant, LinuxRule, Sizing};
use sweetspot_units::{Duration, Rate};

/// The rate of the reading application in the scenario.
const READS: Rate = Rate::from_mbit_per_second(5);

/// The sizings, and whether the picture shows their windows.
const SIZINGS: [(Sizing, bool); 5] = [
    (Sizing::Heffner(HeffnerVariant::Once), false),
    (Sizing::Heffner(HeffnerVariant::Twice), true),
    (Sizing::RightSizing, false),
    (Sizing::Linux(LinuxRule::NEWEST), false),
    (Sizing::Heffner(HeffnerVariant::Read), true),
];

pub(super) fn figure(stage: &Stage<'_>) -> Result<Figure, StudyError> {
    let scenario = HEFFNER_SLOW.with(&[])?;
    let mut plot =
        Plot::new("", Axis::new("time, s").between(10.0, 20.0), Axis::new("advertised window, kB"));
    let per_round_trip = (READS * scenario.path.rtt).as_f64() / 1e3;
    plot.mark("read in a round trip", 2, MarkPosition::Level(per_round_trip));
    let mut figure = ENTRY_SLOW.figure(format!(
        "`{}`: the application reads {READS} of 100 Mbit/s. The paper's text: \"in the steady state, the receive window will be \
         the amount of data read per round trip by the application\", {per_round_trip:.0} kB here, and as much waits to be read. \
         The text is at fault, not its implementation: a space of k times the *arrivals* has that steady state, but leaves it. \
         With a the arrivals and u the unread data of a round trip, less what is read, a' = k a - u and u' = k a: disturbances \
         grow by the square root of k each round trip, by 1.41 for k = 2, and go round in eight; with k = 1 they neither grow \
         nor fade. Then the window swings between zero and several times what is read, and the reader waits. If the receiver \
         counts what the application *read* (`heffner:read`, and Linux since 2.6), k a is a constant and the steady state \
         is reached in one round trip.",
        HEFFNER_SLOW.file
    ));
    for (origin, engine) in [(Origin::Sim, stage.sim), (Origin::Lab, stage.lab)] {
        let Some(engine) = engine else { continue };
        let heads =
            ["sizing", "rate / reader's", "window, least kB", "window, mean kB", "window, most kB"];
        let mut table = Table::new(origin.name(), &heads);
        for (group, (sizing, shown)) in SIZINGS.into_iter().enumerate() {
            let mut scenario = scenario.clone();
            for transfer in &mut scenario.transfers {
                transfer.sizing = sizing;
            }
            let interval = Duration::from_millis(10);
            let (outcome, watch) = TransferSeries::run(engine, &scenario, 0, interval)?;
            if shown {
                let points = watch.samples.iter().map(|s| (s.at_s, kilobytes(s)));
                plot.curve(sizing.to_string(), origin, group, points.collect());
            }
            let start = scenario.warmup.as_secs_f64();
            let windows: Vec<f64> =
                watch.samples.iter().filter(|s| s.at_s >= start).map(kilobytes).collect();
            let rate = outcome.transfers.first().map_or(0.0, |t| t.goodput_bps);
            let min = windows.iter().copied().fold(f64::INFINITY, f64::min);
            let max = windows.iter().copied().fold(0.0, f64::max);
            let mean = windows.iter().sum::<f64>() / windows.len().max(1) as f64;
            table.rows.push(vec![
                sizing.to_string(),
                format!("{:.2}", rate / READS.as_f64()),
                format!("{min:.0}"),
                format!("{mean:.0}"),
                format!("{max:.0}"),
            ]);
        }
        figure.tables.push(table);
    }
    figure.plots.push(plot);
    Ok(figure)
}

fn kilobytes(sample: &Sample) -> f64 {
    sample.window_bytes as f64 / 1e3
}
