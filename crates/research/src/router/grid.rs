//! Section VI-B: which loss form holds, as a function of the capacity ratio and the tail of the flow
//! sizes.

use sweetspot_theory::router::capacity_ratio::Form;
use sweetspot_units::{Bytes, Duration, Rate};

use super::analysis::Fits;
use super::bootstrap::Bootstrap;
use super::drawing::{FigureData, logarithmic, straight};
use super::effort::StudyEffort;
use sweetspot_experiment::StudyError;
use sweetspot_experiment::router::ladder;
use sweetspot_experiment::router::link::SimulatedLink;
use sweetspot_experiment::router::measure::{BufferMeasured, Runner, measure};

/// One simulated combination of ratio and tail.
#[derive(Debug)]
pub struct GridCell {
    /// C_out / C_in.
    pub gamma: f64,
    /// Shape of the flow sizes' Pareto distribution.
    pub tail_index: f64,
    /// Measurements, sorted by buffer.
    pub measured: Vec<BufferMeasured>,
    /// The fits, or the reason why there are none.
    pub fits: Result<Fits, StudyError>,
    /// The fits to resampled seeds.
    pub bootstrap: Option<Bootstrap>,
}

/// All cells, sorted by tail and then by ratio.
#[derive(Debug)]
pub struct Grid {
    /// The cells.
    pub cells: Vec<GridCell>,
}

impl Grid {
    /// Simulated ratios: those in the paper's text, and values between them.
    pub const GAMMAS: [f64; 7] = [0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 10.0];
    /// Simulated tail indices: the paper's 1.25, 1.5 and "close to 2", and one in between.
    pub const TAILS: [f64; 4] = [1.25, 1.5, 1.75, 1.95];

    /// Runs the link of Table I with N_in = 20 and U = 100, but with a hundred inputs, for each ratio
    /// and each tail.
    ///
    /// # Errors
    /// If the engine cannot run a cell.
    pub fn new(runner: &Runner<'_>, scale: StudyEffort) -> Result<Grid, StudyError> {
        let mut cells = Vec::new();
        for tail_index in Grid::TAILS {
            for gamma in Grid::GAMMAS {
                cells.push(GridCell::new(runner, gamma, tail_index, scale)?);
            }
        }
        Ok(Grid { cells })
    }
}

/// Number of inputs: many and lightly loaded, as section VI-B requires for a ratio above one.
const INPUTS: u64 = 100;
/// Number of users relative to those that fill the link: Table I's 100 at a ratio of a tenth.
const CROWD: f64 = 1.5;
const WARMUP: u64 = 15;
/// Largest buffer in units of C T_o: beyond twice that, the load no longer fills the buffer.
const MAX_BUFFER_BDPS: f64 = 2.0;

impl GridCell {
    fn new(
        runner: &Runner<'_>,
        gamma: f64,
        tail_index: f64,
        scale: StudyEffort,
    ) -> Result<GridCell, StudyError> {
        let link = GridCell::link(gamma, tail_index)?;
        let scenario = link.scenario(WARMUP, scale.grid_seconds)?;
        let buffers = ladder((MAX_BUFFER_BDPS * link.bdp()) as u64, scale.grid_buffers);
        let measured = measure(runner, &scenario, &buffers, scale.grid_seeds)?;
        let fits = Fits::of(&scenario, &measured);
        let bootstrap = Bootstrap::of(&scenario, &measured);
        Ok(GridCell { gamma, tail_index, measured, fits, bootstrap })
    }

    fn link(gamma: f64, tail_index: f64) -> Result<SimulatedLink, StudyError> {
        let rate = Rate::from_mbit_per_second(50);
        let link = SimulatedLink {
            rate,
            rtt: Duration::from_millis(60),
            input_rate: rate.scaled(1.0 / gamma),
            inputs: INPUTS,
            packet: Bytes::new(1500),
            size_mean: Bytes::new(80_000),
            tail_index,
            users: 1,
        };
        Ok(SimulatedLink { users: link.users_for(CROWD)?, ..link })
    }

    /// The form that fits significantly better, if any.
    pub fn better(&self) -> Option<Form> {
        self.fits.as_ref().ok().and_then(|fits| fits.comparison.better)
    }
}

impl Grid {
    /// R2 of each form against the ratio, one figure per tail.
    pub fn drawings(&self) -> Vec<FigureData> {
        let titles = [
            "Section VI-B: how well each form fits, tail index 1.25",
            "Section VI-B: how well each form fits, tail index 1.5",
            "Section VI-B: how well each form fits, tail index 1.75",
            "Section VI-B: how well each form fits, tail index 1.95",
        ];
        let figure = |(tail, title): (&f64, &'static str)| {
            let x = logarithmic("C_out / C_in");
            let mut figure = FigureData::new("router-sec6b", title, x, straight("R2 of ln p"));
            let cells = || self.cells.iter().filter(|cell| cell.tail_index == *tail);
            let of = |r2: fn(&Fits) -> f64| {
                let fitted =
                    cells().filter_map(|cell| Some((cell.gamma, cell.fits.as_ref().ok()?)));
                fitted.map(|(gamma, fits)| (gamma, r2(fits))).collect::<Vec<(f64, f64)>>()
            };
            figure.simulated("PL-form", of(|fits| fits.comparison.power_law_r2));
            figure.simulated("EX-form", of(|fits| fits.comparison.exponential_r2));
            figure
        };
        Grid::TAILS.iter().zip(titles).map(figure).collect()
    }
}
