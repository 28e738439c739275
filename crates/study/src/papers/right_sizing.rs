//! Figures 2, 3, 5 to 8 and Table I of the Dynamic Right-Sizing paper.

use core::fmt::Write;

use sweetspot_scenario::{Engine, Outcome, Scenario, Ties};
use sweetspot_sizing::Sizing;
use sweetspot_units::Volume;

use super::published::Published;
use super::scenarios::{DRS_2, DRS_3, DRS_5, DRS_6, DRS_7, DRS_8, PaperScenario};
use crate::csv::Table;
use crate::markdown::MarkdownTable;
use crate::play::play_all;
use crate::{StudyError, Workers};

/// Packets of the static window: 64 kB.
const STATIC: Sizing = Sizing::Fixed(Volume::Packets(44));

struct Figure {
    title: &'static str,
    scenario: PaperScenario,
    queues: &'static [u64],
    /// maxwnd, packets.
    windows: &'static [u64],
}

const WINDOWS: [u64; 14] = [50, 100, 150, 200, 250, 300, 350, 400, 450, 500, 550, 600, 650, 700];

const FIGURES: [Figure; 5] = [
    Figure {
        title: "Figure 3: one static flow, one dynamic",
        scenario: DRS_3,
        queues: &[100, 500],
        windows: &WINDOWS,
    },
    Figure {
        title: "Figure 5: ten static flows, one dynamic",
        scenario: DRS_5,
        queues: &[100, 500, 16_384],
        windows: &WINDOWS,
    },
    Figure {
        title: "Figure 6: five static flows, five dynamic",
        scenario: DRS_6,
        queues: &[100, 500, 16_384],
        windows: &WINDOWS,
    },
    Figure {
        title: "Figure 7: five static flows, five dynamic at 1 Gbit/s",
        scenario: DRS_7,
        queues: &[100, 16_384],
        windows: &[500, 1000, 2000, 4000, 6000, 6500, 7000],
    },
    Figure {
        title: "Figure 8: ten dynamic flows",
        scenario: DRS_8,
        queues: &[100, 16_384],
        windows: &WINDOWS,
    },
];

/// What the flows of a run achieved: thousand packets acknowledged, mean per kind.
#[derive(Debug, Clone, Copy, Default)]
struct Kinds {
    fixed: f64,
    dynamic: f64,
    utilisation: f64,
}

/// Plays the figures and writes their tables.
pub(super) fn figures<E: Engine + Sync>(
    engine: &E,
    published: &mut Published,
    workers: Workers,
) -> Result<String, StudyError> {
    let mut text = String::new();
    figure_two(&mut text, engine, workers)?;
    let truth = Truth::read()?;
    for figure in &FIGURES {
        let _ = writeln!(
            text,
            "### {}\n\n`{}`; thousand packets acknowledged in 200 s, mean over the flows of a kind. \
             *measured*: the dynamic flows' receivers really run Dynamic Right-Sizing and maxwnd \
             is what their host allows.\n",
            figure.title, figure.scenario.file
        );
        for queue in figure.queues {
            one_queue(&mut text, engine, figure, *queue, &truth, published, workers)?;
        }
    }
    table_one(&mut text, engine, published, workers)?;
    Ok(text)
}

fn figure_two<E: Engine + Sync>(
    text: &mut String,
    engine: &E,
    workers: Workers,
) -> Result<(), StudyError> {
    let scenario = DRS_2.with(&[])?;
    let outcome = play_all(engine, std::slice::from_ref(&scenario), workers)?;
    let acknowledged = outcome.first().map_or(0.0, |outcome| kinds(&scenario, outcome).fixed);
    let _ = writeln!(
        text,
        "### Figure 2: one static flow\n\n`{}`: {:.1} thousand packets acknowledged in 200 s \
         whatever maxwnd is, 8.7 % of the link; the paper prints 145 527, ns-2.35 145 484.\n",
        DRS_2.file, acknowledged
    );
    Ok(())
}

fn one_queue<E: Engine + Sync>(
    text: &mut String,
    engine: &E,
    figure: &Figure,
    queue: u64,
    truth: &Truth,
    published: &mut Published,
    workers: Workers,
) -> Result<(), StudyError> {
    let base = figure.scenario.with(&[format!("path.buffer={queue}pkt")])?;
    let fixed = |window: &u64| dynamic(&base, Sizing::Fixed(Volume::Packets(*window)), *window);
    let measured = |window: &u64| dynamic(&base, Sizing::RightSizing, *window);
    let runs: Vec<Scenario> =
        figure.windows.iter().map(fixed).chain(figure.windows.iter().map(measured)).collect();
    let outcomes = play_all(engine, &runs, workers)?;
    let results: Vec<Kinds> = runs.iter().zip(&outcomes).map(|(s, o)| kinds(s, o)).collect();
    let (windowed, measured) = results.split_at(figure.windows.len());

    let heads = [
        "maxwnd",
        "static, ns-2",
        "static, here",
        "dynamic, ns-2",
        "dynamic, here",
        "static, measured",
        "dynamic, measured",
        "used",
    ];
    let mut table = MarkdownTable::new(&heads);
    let flows = (count(&base, true), count(&base, false));
    for (i, window) in figure.windows.iter().enumerate() {
        let theirs = truth.find(flows, queue, *window);
        let number = |n: f64| format!("{n:.1}");
        let known = |n: Option<f64>| n.map_or(String::new(), number);
        table.row(&[
            window.to_string(),
            known(theirs.map(|t| t.0).filter(|_| flows.0 > 0)),
            if flows.0 > 0 { number(windowed[i].fixed) } else { String::new() },
            known(theirs.map(|t| t.1)),
            number(windowed[i].dynamic),
            if flows.0 > 0 { number(measured[i].fixed) } else { String::new() },
            number(measured[i].dynamic),
            format!("{:.1} %", windowed[i].utilisation * 100.0),
        ]);
    }
    let _ = writeln!(text, "Q = {queue}\n\n{table}");
    put(published, figure, queue, windowed);
    Ok(())
}

fn put(published: &mut Published, figure: &Figure, queue: u64, results: &[Kinds]) {
    let Some(last) = results.last() else { return };
    let mbps = |kpkt: f64| kpkt * 1e3 * 1500.0 * 8.0 / 200.0 / 1e6;
    match (figure.scenario.file, queue) {
        (file, 500) if file == DRS_3.file => {
            published.put(("drs", "fig3"), &["dynamic goodput"], mbps(last.dynamic));
            let alone = results.first().map_or(0.0, |first| first.fixed);
            published.put(("drs", "fig3"), &["static flow"], mbps(alone));
        }
        (file, 100) if file == DRS_3.file => {
            let falls = results.windows(2).position(|pair| pair[1].dynamic < pair[0].dynamic);
            if let Some(at) = falls {
                published.put(("drs", "fig3"), &["losses start"], figure.windows[at + 1] as f64);
            }
        }
        (file, 16_384) if file == DRS_5.file => {
            published.put(("drs", "fig5"), &["over static"], last.dynamic / last.fixed);
            published.put(("drs", "fig5"), &["utilisation"], last.utilisation * 100.0);
        }
        (file, 16_384) if file == DRS_6.file => {
            published.put(("drs", "fig6"), &["dynamic flow"], last.dynamic);
            published.put(("drs", "fig6"), &["static flow"], last.fixed);
        }
        (file, 16_384) if file == DRS_7.file => {
            published.put(("drs", "fig7"), &["over static"], last.dynamic / last.fixed);
            published.put(("drs", "fig7"), &["utilisation"], last.utilisation * 100.0);
        }
        _ => {}
    }
}

/// Table I: who gets what where packets arrive at the same time.
fn table_one<E: Engine + Sync>(
    text: &mut String,
    engine: &E,
    published: &mut Published,
    workers: Workers,
) -> Result<(), StudyError> {
    let base = dynamic(&DRS_6.with(&[])?, Sizing::Fixed(Volume::Packets(650)), 650);
    let seeds = (1..=4).map(|seed| Scenario { seed, ties: Ties::Seeded, ..base.clone() });
    let runs: Vec<Scenario> = core::iter::once(base.clone()).chain(seeds).collect();
    let outcomes = play_all(engine, &runs, workers)?;
    let _ = writeln!(
        text,
        "### Table I: five static flows, five dynamic, Q = 100, maxwnd = 650\n\n`{}`; thousand \
         packets acknowledged per flow. In the paper one dynamic flow gets ten times what another \
         gets, because packets that reach the router at the same time are queued by the number of \
         their link. With `ties = \"declared\"` who was declared first goes first; with \
         `ties = \"seeded\"` a lot decides, so that the order favours nobody.\n",
        DRS_6.file
    );
    let mut table = MarkdownTable::new(&["ties", "static 1-5", "dynamic 1-5"]);
    for (run, outcome) in runs.iter().zip(&outcomes) {
        let ties = match run.ties {
            Ties::Declared => "declared".to_owned(),
            Ties::Seeded => format!("seeded, seed {}", run.seed),
        };
        let (fixed, dynamic) = (flows(run, outcome, true), flows(run, outcome, false));
        if run.ties == Ties::Declared {
            published.put_text(("drs", "table1"), &["static flows"], &fixed);
            published.put_text(("drs", "table1"), &["dynamic flows"], &dynamic);
        }
        table.row(&[ties, fixed, dynamic]);
    }
    let _ = writeln!(text, "{table}");
    Ok(())
}

fn flows(scenario: &Scenario, outcome: &Outcome, fixed: bool) -> String {
    let of = scenario.transfers.iter().zip(&outcome.transfers);
    let numbers = of
        .filter(|(transfer, _)| (transfer.sizing == STATIC) == fixed)
        .map(|(_, flow)| format!("{:.0}", kilopackets(scenario, flow.goodput_bps)));
    numbers.collect::<Vec<_>>().join(" ")
}

/// `scenario` with another sizing for the dynamic flows, whose host allows `most` packets.
fn dynamic(scenario: &Scenario, sizing: Sizing, most: u64) -> Scenario {
    let mut scenario = scenario.clone();
    for transfer in &mut scenario.transfers {
        if transfer.sizing != STATIC {
            transfer.sizing = sizing;
            transfer.tcp.max_window = Volume::Packets(most);
        }
    }
    scenario
}

fn count(scenario: &Scenario, fixed: bool) -> u64 {
    scenario.transfers.iter().filter(|t| (t.sizing == STATIC) == fixed).count() as u64
}

fn kinds(scenario: &Scenario, outcome: &Outcome) -> Kinds {
    let mean = |fixed: bool| {
        let of = scenario.transfers.iter().zip(&outcome.transfers);
        let of = of.filter(|(transfer, _)| (transfer.sizing == STATIC) == fixed);
        let (sum, count) =
            of.fold((0.0, 0), |(sum, count), (_, flow)| (sum + flow.goodput_bps, count + 1));
        if count == 0 { 0.0 } else { kilopackets(scenario, sum / f64::from(count)) }
    };
    Kinds { fixed: mean(true), dynamic: mean(false), utilisation: outcome.bottleneck.utilisation }
}

fn kilopackets(scenario: &Scenario, bps: f64) -> f64 {
    bps * scenario.duration.as_secs_f64() / 8.0 / scenario.path.packet.as_f64() / 1e3
}

/// What ns-2 did on the same work.
struct Truth(Vec<Known>);

/// One run of ns-2.
struct Known {
    flows: (u64, u64),
    queue: u64,
    window: u64,
    /// Thousand packets per static and per dynamic flow.
    acknowledged: (f64, f64),
}

impl Truth {
    fn read() -> Result<Truth, StudyError> {
        let table = Table::parse("drs_ns2.csv", include_str!("../../data/drs_ns2.csv"))?;
        let rows = table.rows().map(|row| {
            Ok(Known {
                flows: (row.whole("static_flows")?, row.whole("dynamic_flows")?),
                queue: row.whole("queue_pkt")?,
                window: row.whole("max_window_pkt")?,
                acknowledged: (row.number("static_kpkt")?, row.number("dynamic_kpkt")?),
            })
        });
        Ok(Truth(rows.collect::<Result<_, StudyError>>()?))
    }

    fn find(&self, flows: (u64, u64), queue: u64, window: u64) -> Option<(f64, f64)> {
        let same =
            |known: &&Known| (known.flows, known.queue, known.window) == (flows, queue, window);
        self.0.iter().find(same).map(|known| known.acknowledged)
    }
}
