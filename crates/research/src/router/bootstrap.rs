//! The effect of chance on a fit: the same fit to resampled seeds.

use sweetspot_path::Random;
use sweetspot_scenario::Scenario;
use sweetspot_theory::router::capacity_ratio::Form;
use sweetspot_theory::router::optimum::Best;

use super::analysis::{Fits, Objective};
use sweetspot_experiment::router::measure::BufferMeasured;
use sweetspot_statistics::Sorted;

/// Fits to samples of the seeds, drawn with replacement, the same for every buffer (Efron and
/// Tibshirani, "An Introduction to the Bootstrap", 1993).
#[derive(Debug, Clone, PartialEq)]
pub struct Bootstrap {
    fits: Vec<Fits>,
    drawn: usize,
}

/// Number of samples drawn.
const SAMPLES: usize = 200;

/// The distribution of a form's best buffer over the samples.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BestOfSamples {
    /// 2.5 and 97.5 % quantiles in packets, with no buffer counted as 0; `None` if most samples are
    /// unbounded.
    pub interval: Option<(f64, f64)>,
    /// Fraction of samples in which throughput grows with the buffer without limit.
    pub unbounded: f64,
}

/// `measured` with the runs in `picks`, each as often as it was picked.
fn resampled(measured: &BufferMeasured, picks: &[usize]) -> BufferMeasured {
    let runs = picks.iter().filter_map(|pick| measured.runs.get(*pick)).cloned().collect();
    BufferMeasured::of(measured.buffer, runs)
}

impl Bootstrap {
    /// Draws samples of the seeds of `measured`; `None` for fewer than three seeds, which are too few
    /// to resample.
    pub fn of(scenario: &Scenario, measured: &[BufferMeasured]) -> Option<Bootstrap> {
        let seeds = measured.iter().map(|m| m.runs.len()).min().filter(|seeds| *seeds > 2)?;
        let mut random = Random::new(1);
        let fits = (0..SAMPLES).filter_map(|_| {
            let picks: Vec<usize> =
                (0..seeds).map(|_| (random.unit() * seeds as f64) as usize).collect();
            let sample: Vec<BufferMeasured> =
                measured.iter().map(|m| resampled(m, &picks)).collect();
            Fits::of(scenario, &sample).ok()
        });
        Some(Bootstrap { fits: fits.collect(), drawn: SAMPLES })
    }

    /// Fraction of samples to which the forms could be fitted.
    pub fn fitted(&self) -> f64 {
        self.fits.len() as f64 / self.drawn as f64
    }

    /// 2.5 and 97.5 % quantiles of `of` over the fits.
    pub fn interval(&self, of: impl Fn(&Fits) -> f64) -> Option<(f64, f64)> {
        interval(self.fits.iter().map(of).collect())
    }

    /// Fraction of samples in which `form` fits significantly better.
    pub fn better(&self, form: Form) -> f64 {
        let count = self.fits.iter().filter(|fits| fits.comparison.better == Some(form)).count();
        count as f64 / self.fits.len().max(1) as f64
    }

    /// The best buffer for the flows of `objective`, according to `form`.
    pub fn best(&self, form: Form, objective: Objective) -> BestOfSamples {
        let all: Vec<Best> =
            self.fits.iter().filter_map(|fits| fits.best(form, objective).ok()).collect();
        let bounded: Sorted = all
            .iter()
            .filter_map(|best| match best {
                Best::Zero => Some(0.0),
                Best::At(buffer) => Some(buffer.get()),
                Best::Unbounded => None,
            })
            .collect();
        let unbounded = 1.0 - bounded.len() as f64 / all.len().max(1) as f64;
        let interval = if unbounded > 0.5 { None } else { interval(bounded) };
        BestOfSamples { interval, unbounded }
    }
}

fn interval(values: Sorted) -> Option<(f64, f64)> {
    values.quantiles([0.025, 0.975]).map(|[low, high]| (low, high))
}

#[cfg(test)]
mod tests {
    use super::super::setup::POWER_LAW;
    use super::*;
    use sweetspot_experiment::router::run::Run;

    fn run(loss: f64, delay_s: f64) -> Run {
        Run { loss, delay_s, ..Run::default() }
    }

    #[test]
    fn the_interval_is_narrow_only_if_the_seeds_agree() {
        let scenario = POWER_LAW.scenario().unwrap();
        let at = |spread: f64| -> Vec<BufferMeasured> {
            let buffers = [10u64, 20, 50, 100, 200, 400];
            let of = |b: u64| {
                let loss = 0.3 * libm::pow(b as f64, -0.5);
                let runs = [-1.0, 0.0, 1.0].map(|s| {
                    // Steeper and flatter power laws through the same point.
                    let tilt = libm::pow(b as f64 / 100.0, spread * s);
                    run(loss * tilt, 0.4 * b as f64 * 240e-6)
                });
                BufferMeasured::of(b, runs.to_vec())
            };
            buffers.map(of).to_vec()
        };
        let b = |fits: &Fits| fits.power_law.b.value;
        let (low, high) = Bootstrap::of(&scenario, &at(0.0)).unwrap().interval(b).unwrap();
        assert!((low - 0.5).abs() < 1e-9 && (high - 0.5).abs() < 1e-9);
        let (low, high) = Bootstrap::of(&scenario, &at(0.1)).unwrap().interval(b).unwrap();
        // Each of the three is drawn alone once in 27 times, so 0.4 and 0.6 are near the ends.
        assert!(low < 0.45 && high > 0.55 && low >= 0.4 - 1e-9 && high <= 0.6 + 1e-9);
        let two: Vec<BufferMeasured> = at(0.1).iter().map(|m| resampled(m, &[0, 1])).collect();
        assert_eq!(Bootstrap::of(&scenario, &two), None);
    }
}
