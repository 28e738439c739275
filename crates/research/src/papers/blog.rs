//! Gordon: "Impact of Bandwidth Delay Product on TCP Throughput".

use sweetspot_scenario::Scenario;
use sweetspot_sizing::Sizing;
use sweetspot_theory::host::advertised_window::Era;
use sweetspot_theory::path::window;
use sweetspot_units::{Bytes, Duration, Rate, Volume};

use super::comparison::Comparisons;
use super::figure::{Entry, Figure, Paper, Stage};
use super::scenarios::BLOG_2;
use sweetspot_experiment::StudyError;
use sweetspot_experiment::plot::{Axis, MarkPosition, Origin, Plot};
use sweetspot_experiment::run::{goodput, run_all};

const ENTRY_1: Entry =
    Paper::Blog.entry("blog-table1", "Table 1: receive buffers for four paths", table_1);
const ENTRY_2: Entry =
    Paper::Blog.entry("blog-table2", "Table 2: throughput against iperf's -w", table_2);

/// The post's two tables; its figures are ladder diagrams of the window without numbers.
pub(super) const ENTRIES: &[Entry] = &[ENTRY_1, ENTRY_2];

/// Linux before 3.4: three quarters of a receive buffer are usable as window.
const ERA: Era = Era::ThreeQuarters;

fn table_1(stage: &Stage<'_>) -> Result<Figure, StudyError> {
    let mut published = Comparisons::of("blog", "table1")?;
    let paths = [
        ("Fast Ethernet single link", 100, 1),
        ("Fast Ethernet LAN", 100, 10),
        ("Gigabit Ethernet single link", 1000, 1),
        ("Home ADSL", 6, 50),
    ];
    let mut plot = Plot::new(
        "",
        Axis::new("bandwidth-delay product, kB").between(0.0, 140.0),
        Axis::new("receive buffer, kB").between(0.0, 180.0),
    );
    let mut points = Vec::new();
    for (name, mbit, ms) in paths {
        let bdp = window::needed(Rate::from_mbit_per_second(mbit), Duration::from_millis(ms));
        let buffer = ERA.memory_for(bdp, None);
        points.push((bdp.as_f64() / 1e3, buffer.as_f64() / 1e3));
        if stage.theory {
            published.put(Origin::Theory, &[name, "BDP"], bdp.as_f64());
            published.put(Origin::Theory, &[name, "receive buffer"], buffer.as_f64());
        }
        let at = published.published(&[name, "BDP"]);
        if let (Some(bdp), Some(buffer)) = (at, published.published(&[name, "receive buffer"])) {
            plot.mark(
                format!("published, {name}"),
                0,
                MarkPosition::Point(bdp / 1e3, buffer / 1e3),
            );
        }
    }
    if stage.theory {
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        plot.curve("4/3 BDP", Origin::Theory, 0, points);
    }
    let mut figure = ENTRY_1.figure(
        "The receive buffer whose three quarters hold one bandwidth-delay product, as Linux \
         divided it until 3.3.",
    );
    figure.plots.push(plot);
    figure.comparisons = published.finish();
    Ok(figure)
}

/// The argument of iperf's -w, kB.
const REQUESTED_KB: [u64; 5] = [50, 75, 83, 100, 125];

fn table_2(stage: &Stage<'_>) -> Result<Figure, StudyError> {
    let mut published = Comparisons::of("blog", "table2")?;
    let mut plot = Plot::new(
        "",
        Axis::new("maximum advertised window, kB").between(0.0, 200.0),
        Axis::new("throughput, Mbit/s").between(0.0, 110.0),
    );
    let advertised =
        |asked: u64| ERA.window_of_so_rcvbuf(Bytes::new(asked * 1000), Bytes::MAX, None);
    let windows: Vec<Bytes> =
        REQUESTED_KB.iter().map(|w| advertised(*w)).collect::<Result<_, _>>()?;
    let scenario = BLOG_2.with(&[])?;
    let cases: Vec<String> = REQUESTED_KB.iter().map(|asked| format!("-w {asked} kB")).collect();
    if stage.theory {
        let mut points = Vec::new();
        for (case, window) in cases.iter().zip(&windows) {
            let rate = window::throughput(*window, Duration::from_millis(10))?;
            let rate = rate.min(scenario.path.narrow().rate).as_f64() / 1e6;
            published.put(Origin::Theory, &[case, "measured"], rate);
            points.push((window.as_f64() / 1e3, rate));
        }
        plot.curve("window / RTT, or the link", Origin::Theory, 0, points);
    }
    let runs: Vec<Scenario> = windows.iter().map(|window| sized(&scenario, *window)).collect();
    for (origin, engine) in [(Origin::Sim, stage.sim), (Origin::Lab, stage.lab)] {
        let Some(engine) = engine else { continue };
        let outcomes = run_all(engine, &runs, stage.workers_of(origin))?;
        let mut points = Vec::new();
        for ((case, window), outcome) in cases.iter().zip(&windows).zip(&outcomes) {
            published.put(origin, &[case, "measured"], goodput(outcome) / 1e6);
            points.push((window.as_f64() / 1e3, goodput(outcome) / 1e6));
        }
        plot.curve("payload over 10 s", origin, 1, points);
    }
    for (case, window) in cases.iter().zip(&windows) {
        if let Some(rate) = published.published(&[case, "measured"]) {
            let place = MarkPosition::Point(window.as_f64() / 1e3, rate);
            plot.mark(format!("published, {case}"), 1, place);
        }
    }
    let mut figure = ENTRY_2.figure(format!(
        "`{}`: 100 Mbit/s Ethernet, 10 ms from netem in addition to half a millisecond, 10 s. Theory is the \
         post's \"expected\" column, in which frames and headers are not subtracted.",
        BLOG_2.file
    ));
    figure.plots.push(plot);
    figure.comparisons = published.finish();
    Ok(figure)
}

fn sized(scenario: &Scenario, window: Bytes) -> Scenario {
    let mut scenario = scenario.clone();
    for transfer in &mut scenario.transfers {
        transfer.sizing = Sizing::Fixed(Volume::Bytes(window));
    }
    scenario
}
