//! Figures 1 and 2: time-sequence graphs.

use sweetspot_scenario::{Engine, Outcome, Sample, Scenario};
use sweetspot_units::Duration;

use super::super::comparison::Comparisons;
use super::super::figure::{Figure, Stage};
use super::super::scenarios::{HEFFNER_1, HEFFNER_2};
use super::super::time::TransferSeries;
use super::{ENTRY_1, ENTRY_2};
use sweetspot_experiment::StudyError;
use sweetspot_experiment::plot::{Axis, Origin, Plot, Table};

/// Acknowledged sequence numbers and the right edge of the advertised window over time.
pub(super) fn figure_1(stage: &Stage<'_>) -> Result<Figure, StudyError> {
    let mut published = Comparisons::of("heffner", "fig1")?;
    let mut plot =
        Plot::new("", Axis::new("time, s").between(0.0, 2.0), Axis::new("sequence number, MB"));
    let scenario = HEFFNER_1.with(&[])?;
    let bdp = scenario.path.bdp().as_f64();
    for (origin, engine) in [(Origin::Sim, stage.sim), (Origin::Lab, stage.lab)] {
        let Some(engine) = engine else { continue };
        let (outcome, _) = draw_sequence(engine, origin, &scenario, &mut plot)?;
        if let Some(transfer) = outcome.transfers.first() {
            let ratio = transfer.window_final_bytes as f64 / bdp;
            published.put(origin, &["window over BDP"], ratio);
        }
    }
    let mut figure = ENTRY_1.figure(format!(
        "`{}`: 100 Mbit/s, 70 ms. In the paper's picture the advertised window doubles every round \
         trip until the link limits the sender, and then stays at twice the BDP: twice the receive \
         space is advertised, as section 4.2.1 has it (`heffner:twice`, run here). Section 6.6 \
         words it as once (`heffner`), which adds four segments per round trip.",
        HEFFNER_1.file
    ));
    figure.plots.push(plot);
    figure.comparisons = published.finish();
    Ok(figure)
}

/// Draws the acknowledged sequence numbers and the right edge of the advertised window.
fn draw_sequence(
    engine: &(dyn Engine + Sync),
    origin: Origin,
    scenario: &Scenario,
    plot: &mut Plot,
) -> Result<(Outcome, TransferSeries), StudyError> {
    let (outcome, watch) = TransferSeries::run(engine, scenario, 0, Duration::from_millis(10))?;
    let edge = |s: &Sample| (s.at_s, (s.acked_bytes + s.window_bytes) as f64 / 1e6);
    let acked = |s: &Sample| (s.at_s, s.acked_bytes as f64 / 1e6);
    plot.curve("advertised edge", origin, 0, watch.samples.iter().map(edge).collect());
    plot.curve("acknowledged", origin, 1, watch.samples.iter().map(acked).collect());
    Ok((outcome, watch))
}

/// The pause of Figure 2's reader: start and end, seconds.
const PAUSE: (f64, f64) = (2.0, 3.0);

/// Like Figure 1, with a receiving application that stops for a second.
pub(super) fn figure_2(stage: &Stage<'_>) -> Result<Figure, StudyError> {
    let mut plot =
        Plot::new("", Axis::new("time, s").between(0.0, 5.0), Axis::new("sequence number, MB"));
    let scenario = HEFFNER_2.with(&[])?;
    let mut figure = ENTRY_2.figure(format!(
        "`{}`. The paper's text: the window shrinks to zero while the application does not read; when it \
         resumes, rcv_space has shrunk, and grows again until it is of an appropriate size. It prints no number.",
        HEFFNER_2.file
    ));
    for (origin, engine) in [(Origin::Sim, stage.sim), (Origin::Lab, stage.lab)] {
        let Some(engine) = engine else { continue };
        let (_, watch) = draw_sequence(engine, origin, &scenario, &mut plot)?;
        figure.tables.push(stop_and_go(origin, &watch.samples));
    }
    figure.plots.push(plot);
    Ok(figure)
}

/// The window before, during and after the pause.
fn stop_and_go(origin: Origin, samples: &[Sample]) -> Table {
    let between =
        |from: f64, until: f64| samples.iter().filter(move |s| s.at_s >= from && s.at_s < until);
    let max = |from, until| between(from, until).map(|s| s.window_bytes).max().unwrap_or_default();
    let min = |from, until| between(from, until).map(|s| s.window_bytes).min().unwrap_or_default();
    let (stop, go) = PAUSE;
    let before = max(stop - 0.5, stop);
    let recovered = samples.iter().find(|s| s.at_s > go && 10 * s.window_bytes >= 9 * before);
    let mut table = Table::new(origin.name(), &["advertised window", "kB"]);
    let mut row = |what: &str, bytes: u64| {
        table.rows.push(vec![what.to_owned(), format!("{:.0}", bytes as f64 / 1e3)]);
    };
    row("before the pause", before);
    row("at the end of the pause", min(go - 0.2, go));
    row("within 200 ms of its end, at least", min(go + 0.01, go + 0.2));
    table.rows.push(vec![
        "nine tenths of what it was, after".to_owned(),
        recovered.map_or("-".to_owned(), |s| format!("{:.0} ms", (s.at_s - go) * 1e3)),
    ]);
    table
}
