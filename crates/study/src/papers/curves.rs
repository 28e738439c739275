//! Figures 3 to 7 of the SOBAS paper: R(S) for five kinds of cross traffic and three buffers.

use core::fmt::Write;

use sweetspot_scenario::{Engine, Outcome, Scenario};

use super::published::Published;
use super::scenarios::{FIGURE_3, FIGURE_4, FIGURE_5, FIGURE_6, FIGURE_7, PaperScenario, seeded};
use crate::markdown::MarkdownTable;
use crate::play::{goodput, play_all, with_window};
use crate::{Bounds, StudyError, Workers, find_mft};

/// B_t = C T_m / 2, C T_m, 2 C T_m.
pub(super) const BUFFERS: [u64; 3] = [313, 625, 1250];

/// Where the curves are drawn, packets; the last is beyond every congestion window.
const WINDOWS: [u64; 13] = [25, 50, 100, 150, 191, 250, 350, 450, 625, 938, 1250, 1875, 4000];

struct Figure {
    item: &'static str,
    title: &'static str,
    scenario: PaperScenario,
    /// As the published table calls it.
    quantity: &'static str,
    /// Runs whose mean is taken: more where losses are drawn by lot.
    seeds: u64,
}

const FIGURES: [Figure; 5] = [
    Figure {
        item: "fig3",
        title: "Figure 3: rate-controlled UDP",
        scenario: FIGURE_3,
        quantity: "MFT",
        seeds: 2,
    },
    Figure {
        item: "fig4",
        title: "Figure 4: window-limited elephants",
        scenario: FIGURE_4,
        quantity: "MFT simulated",
        seeds: 1,
    },
    Figure { item: "fig5", title: "Figure 5: mice", scenario: FIGURE_5, quantity: "MFT", seeds: 1 },
    Figure {
        item: "fig6",
        title: "Figure 6: elephants that congest the path",
        scenario: FIGURE_6,
        quantity: "MFT",
        seeds: 3,
    },
    Figure {
        item: "fig7",
        title: "Figure 7: mice that congest the path",
        scenario: FIGURE_7,
        quantity: "MFT",
        seeds: 1,
    },
];

/// Plays the five figures and writes their tables.
pub(super) fn figures<E: Engine + Sync>(
    engine: &E,
    published: &mut Published,
    workers: Workers,
) -> Result<String, StudyError> {
    let mut text = String::new();
    for figure in &FIGURES {
        let _ = writeln!(
            text,
            "### {}\n\n`{}`; goodput in Mbit/s, mean over {} seed(s).\n",
            figure.title, figure.scenario.file, figure.seeds
        );
        curve_table(&mut text, engine, figure, published, workers)?;
    }
    Ok(text)
}

fn curve_table<E: Engine + Sync>(
    text: &mut String,
    engine: &E,
    figure: &Figure,
    published: &mut Published,
    workers: Workers,
) -> Result<(), StudyError> {
    let mut columns = Vec::new();
    for buffer in BUFFERS {
        let overrides = [format!("path.buffer={buffer}pkt")];
        let scenario = figure.scenario.with(&overrides)?;
        let curve = curve(engine, &scenario, figure.seeds, workers)?;
        let found = find_mft(engine, &scenario, Bounds::around(&scenario), figure.seeds, workers)?;
        put(published, figure, buffer, &curve, (found.rate_bps / 1e6, found.window));
        let mut column: Vec<String> =
            curve.iter().map(|point| format!("{:.2}", point.goodput_mbps)).collect();
        column.push(format!("**{:.2} @ {}**", found.rate_bps / 1e6, found.window));
        columns.push(column);
    }
    let mut table = MarkdownTable::new(&["S, packets", "B_t = 313", "B_t = 625", "B_t = 1250"]);
    let names = WINDOWS.iter().map(u64::to_string).chain(["MFT @ S".to_owned()]);
    for (i, name) in names.enumerate() {
        table.row(&[&name, &columns[0][i], &columns[1][i], &columns[2][i]]);
    }
    let _ = writeln!(text, "{table}");
    Ok(())
}

/// A point of R(S), mean over seeds.
struct Point {
    goodput_mbps: f64,
    loss: f64,
    rtt_ms: f64,
}

fn curve<E: Engine + Sync>(
    engine: &E,
    scenario: &Scenario,
    seeds: u64,
    workers: Workers,
) -> Result<Vec<Point>, StudyError> {
    let windows = WINDOWS.iter().flat_map(|window| seeded(&with_window(scenario, *window), seeds));
    let runs: Vec<Scenario> = windows.collect();
    let outcomes = play_all(engine, &runs, workers)?;
    Ok(outcomes.chunks(seeds as usize).map(Point::of).collect())
}

impl Point {
    fn of(outcomes: &[Outcome]) -> Point {
        let mean = |of: &dyn Fn(&Outcome) -> f64| {
            outcomes.iter().map(of).sum::<f64>() / outcomes.len() as f64
        };
        let propagation_and_queues = |outcome: &Outcome| {
            // Both directions carry the same, so both queue alike.
            0.1 + 2.0 * outcome.bottleneck.queue_delay_mean_s
        };
        Point {
            goodput_mbps: mean(&goodput) / 1e6,
            loss: mean(&|outcome| outcome.bottleneck.loss_rate),
            rtt_ms: mean(&propagation_and_queues) * 1e3,
        }
    }
}

fn put(
    published: &mut Published,
    figure: &Figure,
    buffer: u64,
    curve: &[Point],
    (mft, window): (f64, u64),
) {
    let key = ("sobas", figure.item);
    let case = format!("B={buffer} pkt");
    published.put(key, &[&case, figure.quantity], mft);
    published.put_text(key, &[&case, "optimal S"], &window.to_string());
    if let Some(last) = curve.last() {
        published.put(key, &[&case, "loss"], last.loss * 100.0);
        published.put(key, &[&case, "mean RTT"], last.rtt_ms);
        if figure.item == "fig6" && buffer == 625 {
            // The paper gives one number for all three buffers.
            published.put(key, &["any B"], last.goodput_mbps);
        }
    }
    if figure.item == "fig4" {
        published.put(key, &[&case, "eq 8"], equation_8(buffer));
    }
}

/// R^ = A (T_ct + B/A) / (T_ct + B/C), equation (8), with A = 15 Mbit/s, C = 50 Mbit/s,
/// T_ct = 100 ms and the buffer in seconds of each rate, Mbit/s.
fn equation_8(buffer: u64) -> f64 {
    let (available, capacity, rtt) = (15e6, 50e6, 0.1);
    let bits = buffer as f64 * 8000.0;
    available * (rtt + bits / available) / (rtt + bits / capacity) / 1e6
}
