use sweetspot_scenario::{Engine, Scenario};
use sweetspot_units::Duration;

use super::analysis::Fits;
use super::drawing::{FigureData, logarithmic, straight};
use super::measure::{BufferMeasured, measure};
use super::setup::{EXPONENTIAL, EXPONENTIAL_BUSY, POWER_LAW, Setup, TABLE_1, ladder};
use super::simulations::by_size;
use super::{formulas, simulations};
use crate::{StudyError, Workers};

/// The amount of simulation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StudyEffort {
    /// Seconds that are measured of each run; of links of 100 Mbit/s a third.
    pub seconds: u64,
    /// Runs per buffer.
    pub seeds: u64,
    /// Buffers per row of Table I.
    pub buffers: usize,
    /// Seconds of the testbed's gigabit link.
    pub testbed_seconds: u64,
}

impl StudyEffort {
    /// The effort of docs/results/router.md.
    pub const DOCUMENT: StudyEffort =
        StudyEffort { seconds: 300, seeds: 3, buffers: 20, testbed_seconds: 45 };
}

/// A row of Table I with everything measured.
#[derive(Debug)]
pub struct PlayedRow {
    /// Which row.
    pub setup: Setup,
    /// Its scenario.
    pub scenario: Scenario,
    /// In rising order of the buffer.
    pub measured: Vec<BufferMeasured>,
    /// The fits, or why there are none.
    pub fits: Result<Fits, StudyError>,
}

impl PlayedRow {
    /// Plays `setup` with buffers from two packets to four times C T_o, 50 at least.
    ///
    /// # Errors
    /// If the engine cannot play it.
    pub fn new<E: Engine + Sync + ?Sized>(
        engine: &E,
        setup: Setup,
        scale: StudyEffort,
        workers: Workers,
        watch: &(dyn Fn(usize, usize) + Sync),
    ) -> Result<PlayedRow, StudyError> {
        let mut scenario = setup.scenario()?;
        let fast = scenario.path.narrow().rate.as_f64() > 75e6;
        let seconds = if fast { scale.seconds.div_ceil(3) } else { scale.seconds };
        scenario.duration = Duration::from_secs(seconds);
        let bdp = scenario.path.bdp().get() / scenario.path.packet.get();
        let buffers = ladder((4 * bdp).max(50), scale.buffers);
        let measured = measure(engine, &scenario, &buffers, scale.seeds, workers, watch)?;
        let fits = Fits::of(&scenario, &measured);
        Ok(PlayedRow { setup, scenario, measured, fits })
    }
}

/// The simulations of Table I.
#[derive(Debug)]
pub struct Study {
    /// Its eight rows.
    pub rows: Vec<PlayedRow>,
    /// Every figure that can be drawn of them, in the paper's order.
    pub drawings: Vec<FigureData>,
}

impl Study {
    /// Plays all rows; calls `watch` after every run with the row, the number of finished runs and
    /// of all.
    ///
    /// # Errors
    /// If the engine cannot play a row.
    pub fn new<E: Engine + Sync + ?Sized>(
        engine: &E,
        scale: StudyEffort,
        workers: Workers,
        watch: &(dyn Fn(&Setup, usize, usize) + Sync),
    ) -> Result<Study, StudyError> {
        let play = |setup: &Setup| {
            PlayedRow::new(engine, *setup, scale, workers, &|done, all| watch(setup, done, all))
        };
        let rows = TABLE_1.iter().map(play).collect::<Result<Vec<PlayedRow>, StudyError>>()?;
        let mut drawings = by_size(engine, scale.testbed_seconds, workers)?;
        drawings.push(formulas::figure_11()?);
        for row in &rows {
            drawings.extend(row.drawings()?);
        }
        drawings.push(formulas::figure_19()?);
        Ok(Study { rows, drawings })
    }
}

impl PlayedRow {
    /// The paper's figures that show this row; none where nothing could be fitted.
    ///
    /// # Errors
    /// If a formula does not hold.
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
