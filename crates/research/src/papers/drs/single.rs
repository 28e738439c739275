//! Figures 2 and 4, one run each, and Table I.

use sweetspot_scenario::{Engine, Scenario, Ties};
use sweetspot_sizing::Sizing;
use sweetspot_units::{Bytes, Volume};

use super::super::comparison::Comparisons;
use super::super::figure::{Figure, Stage};
use super::super::scenarios::{DRS_2, DRS_3, DRS_6, seeded};
use super::super::time::TransferSeries;
use super::kinds::{Kinds, STATIC_WINDOW, dynamic, each, kilopackets, spread_of};
use super::{ENTRY_2, ENTRY_4, ENTRY_TABLE_1};
use sweetspot_experiment::StudyError;
use sweetspot_experiment::plot::{Axis, MarkPosition, Origin, Plot, Table};
use sweetspot_experiment::run::run_all;

/// One static flow, independent of maxwnd.
pub(super) fn figure_2(stage: &Stage<'_>) -> Result<Figure, StudyError> {
    let mut published = Comparisons::of("drs", "fig2")?;
    let mut plot = Plot::new(
        "",
        Axis::new("maxwnd, packets").between(0.0, 700.0),
        Axis::new("thousand packets acknowledged").between(0.0, 1666.0),
    );
    let scenario = DRS_2.with(&[])?;
    if stage.theory {
        // Section IV-A: 44 packets per RTT.
        let window = scenario.path.packet * STATIC_WINDOW;
        let packets = kilopackets(&scenario, (window / scenario.path.rtt).as_f64());
        published.put(Origin::Theory, &["acknowledged"], packets);
        plot.curve("static", Origin::Theory, 0, vec![(50.0, packets), (700.0, packets)]);
    }
    if let Some(engine) = stage.sim {
        let fast =
            ["path.rate=1Gbit/s", "path.access_rate=1Gbit/s", "path.delay=16ms", "path.rtt=96ms"];
        let runs = [scenario.clone(), DRS_2.with(&fast.map(str::to_owned))?];
        let outcomes = run_all(engine, &runs, stage.workers)?;
        let packets = Kinds::of(&scenario, &outcomes[0]).fixed;
        published.put(Origin::Sim, &["acknowledged"], packets);
        plot.curve("static", Origin::Sim, 0, vec![(50.0, packets), (700.0, packets)]);
        for (case, outcome) in ["100 Mbit/s", "1 Gbit/s"].iter().zip(&outcomes) {
            let utilisation = outcome.bottleneck.utilisation * 100.0;
            published.put(Origin::Sim, &[case, "utilisation"], utilisation);
        }
    }
    if let Some(packets) = published.published(&["acknowledged"]) {
        plot.mark("published", 0, MarkPosition::Level(packets));
    }
    let mut figure = ENTRY_2.figure(format!(
        "`{}`: a window of 44 packets fills 8.7 % of the link, whatever the host's maximum is. \
         ns-2.35: 145.5 thousand packets. At 1 Gbit/s and 96 ms 44 packets per round trip are \
         0.55 %.",
        DRS_2.file
    ));
    figure.plots.push(plot);
    figure.comparisons = published.finish();
    Ok(figure)
}

/// The congestion windows of one static flow and one dynamic flow; their bursts overflow Q.
pub(super) fn figure_4(stage: &Stage<'_>) -> Result<Figure, StudyError> {
    const MAXWND: u64 = 650;
    let mut plot = Plot::new(
        "Q = 100, maxwnd = 650",
        Axis::new("time, s").between(0.0, 200.0),
        Axis::new("congestion window, packets").between(0.0, 700.0),
    );
    let mut published = Comparisons::of("drs", "fig4")?;
    let base =
        DRS_3.with(&["path.buffer=100pkt".to_owned(), "tcp.slow_start_restart=true".to_owned()])?;
    let scenario = dynamic(&base, Sizing::Fixed(Volume::Packets(MAXWND)), MAXWND);
    let (small, large) = ((0, "static", STATIC_WINDOW), (1, "dynamic", MAXWND));
    // In the lab a run takes as long as in the paper, so it is run once.
    let flows: [(Origin, Option<&(dyn Engine + Sync)>, &[_]); 2] =
        [(Origin::Sim, stage.sim, &[small, large]), (Origin::Lab, stage.lab, &[large])];
    for (origin, engine, flows) in flows {
        let Some(engine) = engine else { continue };
        for (transfer, label, max) in flows {
            let (_, watch) = TransferSeries::run(engine, &scenario, *transfer, scenario.path.rtt)?;
            if *transfer == 1 {
                let max = watch
                    .loss_per_interval(scenario.path.narrow().rate, scenario.path.packet)
                    .fold(0.0, f64::max);
                published.put(origin, &["loss of a burst"], max * 100.0);
            }
            // The effective window: cwnd beyond the receiver's limit has no effect.
            let point = |s: &sweetspot_scenario::Sample| (s.at_s, s.cwnd_packets.min(*max as f64));
            plot.curve(*label, origin, *transfer, watch.samples.iter().map(point).collect());
        }
    }
    let mut figure = ENTRY_4.figure(format!(
        "`{}` with `tcp.slow_start_restart=true`, as the text says. The paper's dynamic flow loses up to \
         27 % of a burst, backs off to nothing and slow-starts again, over and over; the paper prints no other \
         number. Here a burst is the data that reaches the router in a round trip of 60 ms; in the lab, in two \
         rows of its series, 100 ms.",
        DRS_3.file
    ));
    figure.plots.push(plot);
    figure.comparisons = published.finish();
    Ok(figure)
}

/// The shares of flows when packets arrive at the same time.
pub(super) fn table_1(stage: &Stage<'_>) -> Result<Figure, StudyError> {
    let mut published = Comparisons::of("drs", "table1")?;
    let mut figure = ENTRY_TABLE_1.figure(format!(
        "`{}`, Q = 100, maxwnd = 650; thousand packets acknowledged per flow. In the paper one \
         dynamic flow gets ten times what another gets, because packets that reach the router at \
         the same time are queued by the number of their link. With `ties = \"declared\"`, the flow that was \
         declared first goes first; with `ties = \"seeded\"`, the order is random and favours no flow.",
        DRS_6.file
    ));
    if let Some(engine) = stage.sim {
        let base = dynamic(&DRS_6.with(&[])?, Sizing::Fixed(Volume::Packets(650)), 650);
        let seeds = (1..=4).map(|seed| Scenario { seed, ties: Ties::Seeded, ..base.clone() });
        let runs: Vec<Scenario> = core::iter::once(base.clone()).chain(seeds).collect();
        let outcomes = run_all(engine, &runs, stage.workers)?;
        let mut table = Table::new("", &["ties", "static 1-5", "dynamic 1-5"]);
        for (run, outcome) in runs.iter().zip(&outcomes) {
            let (fixed, changing) = (each(run, outcome, true), each(run, outcome, false));
            let ties = match run.ties {
                Ties::Declared => {
                    published.put_text(Origin::Sim, &["static flows"], &fixed);
                    published.put_text(Origin::Sim, &["dynamic flows"], &changing);
                    "declared".to_owned()
                }
                Ties::Seeded => format!("seeded, seed {}", run.seed),
            };
            table.rows.push(vec![ties, fixed, changing]);
        }
        figure.tables.push(table);
        figure.tables.push(unequal_packets(stage, engine, &base)?);
    }
    figure.comparisons = published.finish();
    Ok(figure)
}

/// "Random queueing order and random packet sizes reduce this effect but produce other unusual patterns" (section IV-D): the
/// inequality between flows of one kind.
fn unequal_packets(
    stage: &Stage<'_>,
    engine: &(dyn Engine + Sync),
    base: &Scenario,
) -> Result<Table, StudyError> {
    const SEEDS: u64 = 4;
    const SPREAD: u64 = 500;
    let cases = [
        ("declared order, equal sizes", Ties::Declared, 0),
        ("random order, equal sizes", Ties::Seeded, 0),
        ("declared order, 1000 to 2000 bytes", Ties::Declared, SPREAD),
        ("random order, 1000 to 2000 bytes", Ties::Seeded, SPREAD),
    ];
    let mut table = Table::new(
        "Random order and random packet sizes: the largest flow's share over the smallest one's, means over 4 seeds",
        &["order and sizes", "static flows", "dynamic flows"],
    );
    for (name, ties, spread) in cases {
        let mut scenario = Scenario { ties, ..base.clone() };
        scenario.path.packet_spread = Bytes::new(spread);
        let runs = seeded(&scenario, SEEDS);
        let outcomes = run_all(engine, &runs, stage.workers)?;
        let ratio = |fixed: bool| {
            let ratios =
                runs.iter().zip(&outcomes).map(|(run, outcome)| spread_of(run, outcome, fixed));
            format!("{:.2}", ratios.sum::<f64>() / SEEDS as f64)
        };
        table.rows.push(vec![name.to_owned(), ratio(true), ratio(false)]);
    }
    Ok(table)
}
