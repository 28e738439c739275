use sweetspot_scenario::Scenario;
use sweetspot_units::Duration;

use super::analysis::Fits;
use super::bootstrap::Bootstrap;
use super::drawing::{FigureData, logarithmic, straight};
use super::effort::StudyEffort;
use super::grid::Grid;
use super::setup::{EXPONENTIAL, EXPONENTIAL_BUSY, POWER_LAW, Setup, TABLE_1};
use super::testbed::Testbed;
use super::{formulas, simulations};
use sweetspot_experiment::StudyError;
use sweetspot_experiment::router::ladder;
use sweetspot_experiment::router::measure::{BufferMeasured, Runner, measure};

/// A row of Table I with all measurements.
#[derive(Debug)]
pub struct RunRow {
    /// The row.
    pub setup: Setup,
    /// The row's scenario.
    pub scenario: Scenario,
    /// Measurements, sorted by buffer.
    pub measured: Vec<BufferMeasured>,
    /// The fits, or the reason why there are none.
    pub fits: Result<Fits, StudyError>,
    /// The fits to resampled seeds; `None` with fewer than three seeds.
    pub bootstrap: Option<Bootstrap>,
}

impl RunRow {
    /// Runs `setup` with buffers from two packets to four times C T_o, but at least 50 packets.
    ///
    /// # Errors
    /// If the engine cannot run the setup.
    pub fn new(
        runner: &Runner<'_>,
        setup: Setup,
        scale: StudyEffort,
    ) -> Result<RunRow, StudyError> {
        let mut scenario = setup.scenario()?;
        let fast = scenario.path.narrow().rate.as_f64() > 75e6;
        let seconds = if fast { scale.seconds.div_ceil(3) } else { scale.seconds };
        scenario.duration = Duration::from_secs(seconds);
        let bdp = scenario.path.bdp().get() / scenario.path.packet.get();
        let buffers = ladder((4 * bdp).max(50), scale.buffers);
        let measured = measure(runner, &scenario, &buffers, scale.seeds)?;
        Ok(RunRow::of(setup, scenario, measured))
    }

    /// The row `setup` from its measurements.
    pub fn of(setup: Setup, scenario: Scenario, measured: Vec<BufferMeasured>) -> RunRow {
        let fits = Fits::of(&scenario, &measured);
        let bootstrap = Bootstrap::of(&scenario, &measured);
        RunRow { setup, scenario, measured, fits, bootstrap }
    }
}

/// The complete results for the paper.
#[derive(Debug)]
pub struct Study {
    /// The paper's testbed.
    pub testbed: Testbed,
    /// The eight rows of the paper's Table I.
    pub rows: Vec<RunRow>,
    /// The paper's section VI-B.
    pub grid: Grid,
    /// Every figure that can be drawn from these results, in the paper's order.
    pub drawings: Vec<FigureData>,
}

impl Study {
    /// Runs all simulations.
    ///
    /// # Errors
    /// If the engine cannot run a row.
    pub fn new(runner: &Runner<'_>, scale: StudyEffort) -> Result<Study, StudyError> {
        let testbed = Testbed::new(runner, scale)?;
        let run = |setup: &Setup| RunRow::new(runner, *setup, scale);
        let rows = TABLE_1.iter().map(run).collect::<Result<Vec<RunRow>, StudyError>>()?;
        let grid = Grid::new(runner, scale)?;
        let mut drawings = testbed.drawings()?;
        drawings.push(formulas::figure_11()?);
        for row in &rows {
            drawings.extend(row.drawings()?);
        }
        drawings.push(formulas::figure_19()?);
        Ok(Study { testbed, rows, grid, drawings })
    }
}

impl RunRow {
    /// The paper's figures for this row; none if the fit failed.
    ///
    /// # Errors
    /// If a formula is not applicable.
    pub fn drawings(&self) -> Result<Vec<FigureData>, StudyError> {
        let Ok(fits) = &self.fits else { return Ok(Vec::new()) };
        let all = &self.measured;
        let packets = "buffer, packets";
        Ok(match self.setup {
            POWER_LAW => vec![
                simulations::loss(
                    "router-fig13",
                    "Figure 13: loss for Gamma = 0.1 (N_in = 20, U = 100)",
                    logarithmic(packets),
                    all,
                    fits,
                ),
                simulations::delay(
                    "router-fig14",
                    "Figure 14: queueing delay for Gamma = 0.1 (N_in = 20, U = 100)",
                    all,
                    fits,
                ),
                simulations::throughput(
                    "router-throughput-pl",
                    "Median per-flow throughput for Gamma = 0.1 (N_in = 20, U = 100)",
                    all,
                ),
                formulas::figure_17(fits)?,
            ],
            EXPONENTIAL => vec![
                simulations::loss(
                    "router-fig15",
                    "Figure 15: loss for Gamma = 10 (N_in = 1000, U = 25)",
                    straight(packets),
                    all,
                    fits,
                ),
                simulations::delay(
                    "router-fig16",
                    "Figure 16: queueing delay for Gamma = 10 (N_in = 1000, U = 25)",
                    all,
                    fits,
                ),
            ],
            EXPONENTIAL_BUSY => vec![
                simulations::throughput(
                    "router-throughput-ex",
                    "Median per-flow throughput for Gamma = 10 (N_in = 1000, U = 500)",
                    all,
                ),
                formulas::figure_18(fits)?,
            ],
            _ => Vec::new(),
        })
    }
}
