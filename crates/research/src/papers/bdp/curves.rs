//! Figures 3 to 7: R(S) for five kinds of cross traffic and three buffers.

use sweetspot_scenario::{Engine, Outcome, Scenario};
use sweetspot_sizing::Sizing;
use sweetspot_units::{Duration, Probability};

use super::super::comparison::Comparisons;
use super::super::figure::{Entry, Figure, Precision, Stage};
use super::super::scenarios::{
    FIGURE_3, FIGURE_4, FIGURE_5, FIGURE_6, FIGURE_7, PaperScenario, seeded,
};
use super::fluid::{self, Prediction};
use super::{BUFFERS, ENTRY_3, ENTRY_4, ENTRY_5, ENTRY_6, ENTRY_7};
use sweetspot_experiment::plot::{Axis, MarkPosition, Origin, Plot, Table};
use sweetspot_experiment::run::{goodput, run_all, with_sizing, with_window};
use sweetspot_experiment::search::{CANDIDATES, RACE_SEEDS, Race, choose, find_mfts, fresh};
use sweetspot_experiment::{Mft, SearchBounds, StudyError};
use sweetspot_statistics as statistics;

/// The largest window tried, packets: beyond every congestion window.
const MAX_WINDOW: u64 = 3750;

/// Number of seeds used to measure the best window, in careful runs.
const FRESH_SEEDS: u64 = 8;
/// Number of seeds for loss, RTT and rate of a congested path, in careful runs: single runs vary by a
/// fifth.
const CONGESTED_SEEDS: u64 = 12;

/// Largest window shown, packets: beyond it the curves are flat.
const SHOWN_WINDOW: f64 = 2000.0;

/// The parameters of one of the five figures.
struct CurveFigure {
    entry: &'static Entry,
    item: &'static str,
    scenario: PaperScenario,
    /// Number of seeds, quick and careful; more if losses are random.
    seeds: (u64, u64),
    /// Whether the path is congested before the transfer starts: then loss and RTT are compared, too.
    congested: bool,
}

/// R(S) with rate-controlled UDP as cross traffic.
pub(super) fn figure_3(stage: &Stage<'_>) -> Result<Figure, StudyError> {
    let kind = CurveFigure {
        entry: &ENTRY_3,
        item: "fig3",
        scenario: FIGURE_3,
        seeds: (1, 2),
        congested: false,
    };
    kind.figure(stage)
}

/// R(S) with elephants as cross traffic.
pub(super) fn figure_4(stage: &Stage<'_>) -> Result<Figure, StudyError> {
    let kind = CurveFigure {
        entry: &ENTRY_4,
        item: "fig4",
        scenario: FIGURE_4,
        seeds: (1, 2),
        congested: false,
    };
    kind.figure(stage)
}

/// R(S) with mice as cross traffic.
pub(super) fn figure_5(stage: &Stage<'_>) -> Result<Figure, StudyError> {
    let kind = CurveFigure {
        entry: &ENTRY_5,
        item: "fig5",
        scenario: FIGURE_5,
        seeds: (1, 1),
        congested: false,
    };
    kind.figure(stage)
}

/// R(S) with elephants that congest the path.
pub(super) fn figure_6(stage: &Stage<'_>) -> Result<Figure, StudyError> {
    let kind = CurveFigure {
        entry: &ENTRY_6,
        item: "fig6",
        scenario: FIGURE_6,
        seeds: (1, 2),
        congested: true,
    };
    kind.figure(stage)
}

/// R(S) with mice that congest the path.
pub(super) fn figure_7(stage: &Stage<'_>) -> Result<Figure, StudyError> {
    let kind = CurveFigure {
        entry: &ENTRY_7,
        item: "fig7",
        scenario: FIGURE_7,
        seeds: (1, 1),
        congested: true,
    };
    kind.figure(stage)
}

impl CurveFigure {
    fn figure(&self, stage: &Stage<'_>) -> Result<Figure, StudyError> {
        let mut published = Comparisons::of("sobas", self.item)?;
        let mut plot = Plot::new(
            "",
            Axis::new("socket buffer size S, packets").between(0.0, SHOWN_WINDOW),
            Axis::new("throughput R(S), Mbit/s"),
        );
        let mut figure = self.entry.figure(self.about(stage));
        if stage.theory {
            self.draw_theory(&mut plot, &mut published)?;
        }
        if stage.sim.is_some() {
            figure.tables.extend(self.draw_simulation(stage, &mut plot, &mut published)?);
        }
        self.mark(&mut plot, &published);
        figure.plots.push(plot);
        figure.comparisons = published.finish();
        Ok(figure)
    }

    /// The Maximum Feasible Throughput as named in the published table, where Figure 4's is printed
    /// twice: as simulated and by equation (8).
    fn quantity(&self, origin: Origin) -> &'static str {
        match (self.item, origin) {
            ("fig4", Origin::Theory) => "MFT eq 8",
            ("fig4", _) => "MFT simulated",
            _ => "MFT",
        }
    }

    fn about(&self, stage: &Stage<'_>) -> String {
        let seeds = stage.precision.seeds(self.seeds.0, self.seeds.1);
        let theory = match self.item {
            "fig3" => "equations (4) and (5) with A for C and T_e for T_m",
            "fig4" => "equations (6) to (8), up to the overflow",
            "fig5" => "only bounds are known (UDP below, elephants above)",
            _ => "equation (9), at the loss and RTT that the paper printed",
        };
        let congested = match (self.congested, stage.precision.seeds(2, CONGESTED_SEEDS)) {
            (true, seeds) => format!(
                " Loss, round trip and the rate for any B: means over {seeds} seeds, ± two standard errors."
            ),
            (false, _) => String::new(),
        };
        let measured = match stage.precision {
            Precision::Quick => String::new(),
            Precision::Careful => format!(
                " Of each curve's best {CANDIDATES} windows a race over up to {RACE_SEEDS} seeds chose one, and {FRESH_SEEDS} \
                 other seeds measured it: the MFT, ± two standard errors (Table I gives the reason)."
            ),
        };
        format!(
            "`{}`; B_t = C T_m / 2, C T_m and 2 C T_m. The simulated curves connect all windows that the search \
             for the maximum tried (seeds: {seeds}).{measured} Theory: {theory}.{congested}",
            self.scenario.file
        )
    }

    fn draw_theory(&self, plot: &mut Plot, published: &mut Comparisons) -> Result<(), StudyError> {
        for (group, buffer) in BUFFERS.into_iter().enumerate() {
            let case = format!("B={buffer} pkt");
            if self.item == "fig5" {
                let (low, high) = fluid::mice_bounds(buffer)?;
                let words = format!("{low:.0} to {high:.1}");
                published.put_text(Origin::Theory, &[&case, "MFT"], &words);
                continue;
            }
            let prediction = self.prediction(buffer, published)?;
            if let Some(mft) = prediction.mft {
                published.put(Origin::Theory, &[&case, self.quantity(Origin::Theory)], mft);
                if buffer == 625 {
                    published.put(Origin::Theory, &["any B"], mft);
                }
            }
            if let Some((low, high)) = prediction.window {
                let words = format!("{low:.0} to {high:.0}");
                published.put_text(Origin::Theory, &[&case, "optimal S"], &words);
            }
            plot.curve(format!("B_t = {buffer}"), Origin::Theory, group, prediction.curve);
        }
        Ok(())
    }

    fn prediction(&self, buffer: u64, published: &Comparisons) -> Result<Prediction, StudyError> {
        let case = format!("B={buffer} pkt");
        Ok(match self.item {
            "fig3" => fluid::udp(buffer, MAX_WINDOW)?,
            "fig4" => fluid::elephants(buffer, MAX_WINDOW)?,
            _ => {
                let loss = published.published(&[&case, "loss"]).unwrap_or_default() / 100.0;
                let rtt = published.published(&[&case, "mean RTT"]).unwrap_or_default() / 1e3;
                let rtt = Duration::from_secs_f64(rtt);
                fluid::congested(Probability::new(loss).unwrap_or_default(), rtt, MAX_WINDOW)?
            }
        })
    }

    fn draw_simulation(
        &self,
        stage: &Stage<'_>,
        plot: &mut Plot,
        published: &mut Comparisons,
    ) -> Result<Option<Table>, StudyError> {
        let Some(engine) = stage.sim else { return Ok(None) };
        let seeds = stage.precision.seeds(self.seeds.0, self.seeds.1);
        let scenarios: Vec<Scenario> = BUFFERS
            .iter()
            .map(|buffer| self.scenario.with(&[format!("path.buffer={buffer}pkt")]))
            .collect::<Result<_, _>>()?;
        let jobs: Vec<(Scenario, SearchBounds)> = scenarios
            .iter()
            .map(|scenario| {
                let tolerance = stage.precision.tolerance();
                (
                    scenario.clone(),
                    SearchBounds { max: MAX_WINDOW, tolerance, ..SearchBounds::around(scenario) },
                )
            })
            .collect();
        let found = find_mfts(engine, &jobs, seeds, stage.workers)?;
        let best = match stage.precision {
            Precision::Quick => found.iter().map(BestBySeed::as_searched).collect(),
            Precision::Careful => measure(engine, stage, &scenarios, &found)?,
        };
        for (group, ((buffer, mft), best)) in BUFFERS.into_iter().zip(&found).zip(&best).enumerate()
        {
            let points = mft.trials.iter().map(|t| (t.window as f64, t.rate_bps / 1e6));
            plot.curve(format!("B_t = {buffer}"), Origin::Sim, group, points.collect());
            let case = format!("B={buffer} pkt");
            published.put_mean(Origin::Sim, &[&case, self.quantity(Origin::Sim)], &best.mbit);
            published.put_text(Origin::Sim, &[&case, "optimal S"], &plateau(best.window, mft));
        }
        if self.congested {
            self.compare_congestion(stage, &scenarios, published)?;
        }
        Ok(Some(rungs(&found, &best)))
    }

    /// Loss and RTT with a transfer limited only by congestion.
    fn compare_congestion(
        &self,
        stage: &Stage<'_>,
        scenarios: &[Scenario],
        published: &mut Comparisons,
    ) -> Result<(), StudyError> {
        let Some(engine) = stage.sim else { return Ok(()) };
        let seeds = stage.precision.seeds(2, CONGESTED_SEEDS);
        let unlimited = |scenario| seeded(&with_sizing(scenario, Sizing::Max), seeds);
        let runs: Vec<Scenario> = scenarios.iter().flat_map(unlimited).collect();
        let outcomes = run_all(engine, &runs, stage.workers)?;
        for (buffer, outcomes) in BUFFERS.iter().zip(outcomes.chunks(seeds as usize)) {
            let samples =
                |of: &dyn Fn(&Outcome) -> f64| -> Vec<f64> { outcomes.iter().map(of).collect() };
            let case = format!("B={buffer} pkt");
            let loss = samples(&|outcome| outcome.bottleneck.loss_rate * 100.0);
            published.put_mean(Origin::Sim, &[&case, "loss"], &loss);
            // Propagation plus both queues: both directions carry the same traffic.
            let rtt = samples(&|outcome| 100.0 + 2e3 * outcome.bottleneck.queue_delay_mean_s);
            published.put_mean(Origin::Sim, &[&case, "mean RTT"], &rtt);
            if *buffer == 625 {
                // The paper gives a single number for all three buffers.
                let rates = samples(&|outcome| goodput(outcome) / 1e6);
                published.put_mean(Origin::Sim, &["any B"], &rates);
            }
        }
        Ok(())
    }

    fn mark(&self, plot: &mut Plot, published: &Comparisons) {
        for (group, buffer) in BUFFERS.into_iter().enumerate() {
            let case = format!("B={buffer} pkt");
            let label = format!("published MFT, B_t = {buffer}");
            let rate = published.published(&[&case, self.quantity(Origin::Sim)]);
            let window = published.published(&[&case, "optimal S"]);
            match (rate, window) {
                (Some(rate), Some(window)) => {
                    plot.mark(label, group, MarkPosition::Point(window, rate))
                }
                (Some(rate), None) => plot.mark(label, group, MarkPosition::Level(rate)),
                _ => {}
            }
        }
        if let Some(rate) = published.published(&["any B", "MFT"]) {
            plot.mark("published MFT, any buffer", 6, MarkPosition::Level(rate));
        }
    }
}

/// The best window and its rate for each seed, Mbit/s.
struct BestBySeed {
    window: u64,
    mbit: Vec<f64>,
}

impl BestBySeed {
    fn as_searched(mft: &Mft) -> BestBySeed {
        BestBySeed { window: mft.window, mbit: vec![mft.rate_bps / 1e6] }
    }
}

/// Chooses the best window of each search by a race, and measures it with seeds that were not used in
/// the choice.
fn measure(
    engine: &(dyn Engine + Sync),
    stage: &Stage<'_>,
    scenarios: &[Scenario],
    found: &[Mft],
) -> Result<Vec<BestBySeed>, StudyError> {
    let pairs: Vec<(&Scenario, &Mft)> = scenarios.iter().zip(found).collect();
    let races = choose(engine, &pairs, stage.workers)?;
    let window = |(race, mft): (&Race, &Mft)| race.best().map_or(mft.window, |best| best.window);
    let windows: Vec<u64> = races.iter().zip(found).map(window).collect();
    let chosen = scenarios.iter().zip(&windows);
    let runs: Vec<Scenario> = chosen
        .flat_map(|(scenario, window)| seeded(&with_window(&fresh(scenario), *window), FRESH_SEEDS))
        .collect();
    let outcomes = run_all(engine, &runs, stage.workers)?;
    let mbit = |of: &[Outcome]| of.iter().map(|o| goodput(o) / 1e6).collect();
    let rates = outcomes.chunks(FRESH_SEEDS as usize).map(mbit);
    Ok(windows
        .iter()
        .zip(rates)
        .map(|(window, mbit)| BestBySeed { window: *window, mbit })
        .collect())
}

/// The best window, and the range of windows over which R(S) is within 1 % of its maximum.
fn plateau(best: u64, mft: &Mft) -> String {
    let close = mft.trials.iter().filter(|trial| trial.rate_bps >= 0.99 * mft.rate_bps);
    let windows: Vec<u64> = close.map(|trial| trial.window).collect();
    match (windows.iter().min(), windows.iter().max()) {
        (Some(min), Some(max)) if min < max => {
            format!("{best} ({min} to {max} within 1 %)")
        }
        _ => best.to_string(),
    }
}

/// A table of the windows tried by all three searches.
fn rungs(found: &[Mft], best: &[BestBySeed]) -> Table {
    let heads = ["S, packets", "B_t = 313", "B_t = 625", "B_t = 1250"];
    let mut table = Table::new("Goodput, Mbit/s", &heads);
    let at = |mft: &Mft, window: u64| mft.trials.iter().find(|t| t.window == window).copied();
    for trial in found.first().map_or(&[][..], |mft| &mft.trials) {
        let trials: Option<Vec<_>> = found.iter().map(|mft| at(mft, trial.window)).collect();
        let Some(trials) = trials else { continue };
        let mut row = vec![trial.window.to_string()];
        row.extend(trials.iter().map(|trial| format!("{:.2}", trial.rate_bps / 1e6)));
        table.rows.push(row);
    }
    let mut row = vec!["MFT @ S".to_owned()];
    row.extend(best.iter().map(|best| {
        format!("{:.2} @ {}", statistics::mean(&best.mbit).unwrap_or_default(), best.window)
    }));
    table.rows.push(row);
    table
}
