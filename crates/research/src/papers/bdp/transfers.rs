//! Figures 1, 8 and 10: one transfer's rate over time.

use sweetspot_scenario::{Engine, Outcome, Scenario};
use sweetspot_sizing::Sizing;
use sweetspot_theory::path::Path;
use sweetspot_theory::path::saturation::throughput;
use sweetspot_units::{Bytes, Duration, Rate, Volume};

use super::super::comparison::Comparisons;
use super::super::figure::{Entry, Figure, Stage};
use super::super::scenarios::{
    PaperScenario, TABLE_1, TRANSFER_1, TRANSFER_8_ONE_HOP, TRANSFER_10,
};
use super::super::time::TransferSeries;
use super::{ENTRY_1, ENTRY_8, ENTRY_10};
use sweetspot_experiment::StudyError;
use sweetspot_experiment::plot::{Axis, MarkPosition, Origin, Plot, Table};
use sweetspot_experiment::run::{goodput, run_all, with_sizing};

/// Interval of the figures' throughput.
const SECOND: Duration = Duration::from_secs(1);

/// Goodput of a 1 GB transfer with S = 470 kB and 950 kB.
pub(super) fn figure_1(stage: &Stage<'_>) -> Result<Figure, StudyError> {
    let cases = [("S=470 kB", kilobytes(470)), ("S=950 kB", kilobytes(950))];
    let about = format!(
        "`{}`. The paper does not print B_t; any value between 34 and 514 kB agrees with the text. We simulate \
         120 packets, and the table has other values. Theory: equation (4), less frames and headers.",
        TRANSFER_1.file
    );
    let mut figure = real_path(stage, &ENTRY_1, "fig1", TRANSFER_1, &cases, about)?;
    if let Some(engine) = stage.sim {
        figure.tables.push(by_buffer(engine, stage, &cases)?);
    }
    Ok(figure)
}

/// Goodput of Figure 1's transfers with various buffers, which the paper does not specify.
fn by_buffer(
    engine: &(dyn Engine + Sync),
    stage: &Stage<'_>,
    cases: &[(&str, Sizing)],
) -> Result<Table, StudyError> {
    const BUFFERS: [u64; 9] = [15, 23, 30, 45, 60, 90, 120, 200, 340];
    let mut runs = Vec::new();
    for buffer in BUFFERS {
        let scenario = TRANSFER_1.with(&[format!("path.buffer={buffer}pkt")])?;
        runs.extend(cases.iter().map(|(_, sizing)| with_sizing(&scenario, *sizing)));
    }
    let outcomes = run_all(engine, &runs, stage.workers)?;
    let mut heads = vec!["B_t, packets".to_owned()];
    heads.extend(cases.iter().map(|(case, _)| format!("{case}: Mbit/s")));
    let heads: Vec<&str> = heads.iter().map(String::as_str).collect();
    let mut table = Table::new("Goodput by the buffer of the tight link", &heads);
    for (buffer, outcomes) in BUFFERS.iter().zip(outcomes.chunks(cases.len())) {
        let rates = outcomes.iter().map(|outcome| format!("{:.1}", goodput(outcome) / 1e6));
        table.rows.push([buffer.to_string()].into_iter().chain(rates).collect());
    }
    Ok(table)
}

/// Goodput of an 800 MB transfer with SOBAS and with two static sizes.
pub(super) fn figure_10(stage: &Stage<'_>) -> Result<Figure, StudyError> {
    let cases = [
        ("SOBAS; paper", Sizing::SobasPaper),
        ("SOBAS; default", Sizing::Sobas),
        ("static 450 kB", kilobytes(450)),
        ("static 950 kB", kilobytes(950)),
    ];
    let about = format!(
        "`{}`. The paper does not print B_t: its 559 kB lost nothing, so it was at least 97 kB; \
         120 packets are simulated. Theory: equation (4), less frames and headers.",
        TRANSFER_10.file
    );
    real_path(stage, &ENTRY_10, "fig10", TRANSFER_10, &cases, about)
}

const fn kilobytes(n: u64) -> Sizing {
    Sizing::Fixed(Volume::Bytes(Bytes::new(n * 1000)))
}

/// Transfers one after the other over the same path, each with another sizing.
fn real_path(
    stage: &Stage<'_>,
    entry: &Entry,
    item: &str,
    file: PaperScenario,
    cases: &[(&str, Sizing)],
    about: String,
) -> Result<Figure, StudyError> {
    let mut published = Comparisons::of("sobas", item)?;
    let mut plot =
        Plot::new("", Axis::new("time, s"), Axis::new("goodput, Mbit/s").between(0.0, 100.0));
    for (group, (case, sizing)) in cases.iter().enumerate() {
        let scenario = with_sizing(&file.with(&[])?, *sizing);
        let end = scenario.duration.as_secs_f64();
        if stage.theory
            && let Some(rate) = closed_form(&scenario)?
        {
            published.put(Origin::Theory, &[case, "goodput"], rate);
            plot.curve(*case, Origin::Theory, group, vec![(0.0, rate), (end, rate)]);
        }
        for (origin, engine) in [(Origin::Sim, stage.sim), (Origin::Lab, stage.lab)] {
            let Some(engine) = engine else { continue };
            let (outcome, watch) = TransferSeries::run(engine, &scenario, 0, SECOND)?;
            plot.curve(*case, origin, group, watch.goodput(Duration::ZERO));
            if let Some(transfer) = outcome.transfers.first() {
                published.put(origin, &[case, "goodput"], transfer.goodput_bps / 1e6);
                let window = transfer.window_final_bytes as f64 / 1e3;
                published.put(origin, &[case, "receive buffer"], window);
            }
        }
        if let Some(rate) = published.published(&[case, "goodput"]) {
            plot.mark(format!("published mean, {case}"), group, MarkPosition::Level(rate));
        }
    }
    let mut figure = entry.figure(about);
    figure.plots.push(plot);
    figure.comparisons = published.finish();
    Ok(figure)
}

/// Goodput by equation (4) with a fixed window, Mbit/s, minus headers and framing.
fn closed_form(scenario: &Scenario) -> Result<Option<f64>, StudyError> {
    let Some(transfer) = scenario.transfers.first() else { return Ok(None) };
    let Sizing::Fixed(window) = transfer.sizing else { return Ok(None) };
    let hop = scenario.path.narrow();
    let packet = scenario.path.packet;
    let path = Path::new(hop.rate, scenario.path.rtt, hop.buffer.in_bytes(packet))?;
    let payload = (packet.as_f64() - transfer.tcp.header.as_f64()) / packet.as_f64();
    let on_the_wire = window.in_bytes(packet).scaled(1.0 / payload);
    Ok(Some(throughput(&path, on_the_wire)?.rate.as_f64() * payload / 1e6))
}

/// Receive throughput with SOBAS, over-buffered and under-buffered.
pub(super) fn figure_8(stage: &Stage<'_>) -> Result<Figure, StudyError> {
    let (_, file) = TABLE_1[1];
    let mut published = Comparisons::of("sobas", "fig8")?;
    let mut figure = ENTRY_8.figure(format!(
        "`{}` (the paper does not say which path it shows; this is Table I's at 70 %). Marks are \
         the rates at which the paper's SOBAS detected saturation. In the lab, which emulates one \
         hop: `{}`, the tight link alone.",
        file.file, TRANSFER_8_ONE_HOP.file
    ));
    let cases = [("over-buffered", 1250), ("under-buffered", 313)];
    for (case, buffer) in cases {
        let mut plot = Plot::new(
            format!("{case}, B_t = {buffer}"),
            Axis::new("time since the transfer's start, s"),
            Axis::new("receive throughput, Mbit/s").between(0.0, 40.0),
        );
        let whole = file.with(&[format!("path.hop.1.buffer={buffer}pkt")])?;
        let one_hop = TRANSFER_8_ONE_HOP.with(&[format!("path.buffer={buffer}pkt")])?;
        let engines = [(Origin::Sim, stage.sim, &whole), (Origin::Lab, stage.lab, &one_hop)];
        for (origin, engine, scenario) in engines {
            if let Some(engine) = engine {
                draw_sobas(engine, origin, scenario, case, &mut plot, &mut published)?;
            }
        }
        if let Some(rate) = published.published(&[case]) {
            plot.mark("published rate at saturation", 0, MarkPosition::Level(rate));
        }
        figure.plots.push(plot);
    }
    figure.comparisons = published.finish();
    Ok(figure)
}

fn draw_sobas(
    engine: &(dyn Engine + Sync),
    origin: Origin,
    scenario: &Scenario,
    case: &str,
    plot: &mut Plot,
    published: &mut Comparisons,
) -> Result<(), StudyError> {
    let variants = [("SOBAS, paper", Sizing::SobasPaper), ("SOBAS, default", Sizing::Sobas)];
    for (group, (name, sizing)) in variants.into_iter().enumerate() {
        let scenario = with_sizing(scenario, sizing);
        let start = scenario.transfers.first().map_or(Duration::ZERO, |t| t.start);
        let (outcome, watch) = TransferSeries::run(engine, &scenario, 0, SECOND)?;
        plot.curve(name, origin, group, watch.goodput(start));
        if sizing == Sizing::SobasPaper
            && let Some(rate) = saturation(&outcome)
        {
            published.put(origin, &[case], rate.as_f64() / 1e6);
        }
    }
    Ok(())
}

/// The rate at which the first transfer's controller detected saturation.
fn saturation(outcome: &Outcome) -> Option<Rate> {
    let events = outcome.transfers.first().map(|transfer| transfer.events.as_slice())?;
    let saturated = events.iter().find(|event| event.kind == "saturated")?;
    saturated.rate_bps.map(Rate::from_f64)
}
