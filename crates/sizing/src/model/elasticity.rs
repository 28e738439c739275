use std::collections::VecDeque;

use sweetspot_units::{Bytes, Duration, Rate};

/// The fewest epochs in a fit, and those of a fit over the last few.
const FITTED_EPOCHS: usize = 12;
/// The most that a fit over all epochs keeps: eight seconds of the shortest, as long as CUBIC takes to come back (K of RFC
/// 9438, section 4.1, with a window of 500 segments).
const MOST_EPOCHS: usize = 128;

/// Elasticity of the rate: d ln R / d ln W over the last epochs, by least squares. It is about 1 if
/// the window is the limit (R = W / T), about 0 if the path is full, and between if cross traffic
/// yields to a queue (eqs 6 to 8 of the paper).
#[derive(Debug)]
pub(crate) struct Elasticity {
    samples: VecDeque<EpochSample>,
    most: usize,
}

#[derive(Debug, Clone, Copy)]
struct EpochSample {
    window: f64,
    rate: f64,
    rtt: f64,
}

/// The estimate over the last epochs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ElasticityEstimate {
    /// d ln R / d ln W.
    pub slope: f64,
    /// Its standard error.
    pub error: f64,
    /// Largest over smallest window, less one.
    pub moved: f64,
    /// Standard deviation of the rate over its mean.
    pub varied: f64,
    /// Mean rate.
    pub rate: Rate,
    /// Mean round trip.
    pub rtt: Duration,
}

impl Elasticity {
    /// Over the last few epochs.
    pub(crate) fn lately() -> Elasticity {
        Elasticity { samples: VecDeque::new(), most: FITTED_EPOCHS }
    }

    /// Over all epochs since it was cleared, up to a bound: a window that grows slowly has moved in them.
    pub(crate) fn throughout() -> Elasticity {
        Elasticity { samples: VecDeque::new(), most: MOST_EPOCHS }
    }

    /// Adds an epoch's `window` in flight, `rate` and round trip.
    pub(crate) fn handle_epoch(&mut self, window: Bytes, rate: Rate, rtt: Duration) {
        if self.samples.len() == self.most {
            self.samples.pop_front();
        }
        let (window, rate) = (window.as_f64().max(1.0), rate.as_f64().max(1.0));
        self.samples.push_back(EpochSample { window, rate, rtt: rtt.as_secs_f64() });
    }

    /// Forgets all epochs.
    pub(crate) fn clear(&mut self) {
        self.samples.clear();
    }

    /// The estimate; `None` until there are enough epochs.
    pub(crate) fn answer(&self) -> Option<ElasticityEstimate> {
        if self.samples.len() < FITTED_EPOCHS {
            return None;
        }
        let n = self.samples.len() as f64;
        let mean = |of: fn(&EpochSample) -> f64| self.samples.iter().map(of).sum::<f64>() / n;
        let (x_mean, y_mean) = (mean(|s| s.window.ln()), mean(|s| s.rate.ln()));
        let (rate, rtt) = (mean(|s| s.rate), mean(|s| s.rtt));
        let (mut xx, mut xy, mut yy, mut variance) = (0.0, 0.0, 0.0, 0.0);
        for s in &self.samples {
            let (x, y) = (s.window.ln() - x_mean, s.rate.ln() - y_mean);
            xx += x * x;
            xy += x * y;
            yy += y * y;
            variance += (s.rate - rate) * (s.rate - rate) / (n - 1.0);
        }
        let largest = self.samples.iter().map(|s| s.window).fold(0.0, f64::max);
        let least = self.samples.iter().map(|s| s.window).fold(f64::INFINITY, f64::min);
        let slope = if xx > 0.0 { xy / xx } else { 1.0 };
        let residual = (yy - slope * xy).max(0.0) / (n - 2.0);
        let error = if xx > 0.0 { (residual / xx).sqrt() } else { f64::INFINITY };
        Some(ElasticityEstimate {
            slope,
            error,
            moved: largest / least - 1.0,
            varied: variance.sqrt() / rate,
            rate: Rate::from_f64(rate),
            rtt: Duration::from_secs_f64(rtt),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The estimate for windows from 100 to 155 kB on a path of 40 ms and this capacity.
    fn answer(capacity: f64) -> ElasticityEstimate {
        let mut elasticity = Elasticity::lately();
        for step in 0..12 {
            let window = 100e3 + 5e3 * f64::from(step);
            let rate = (window * 8.0 / 0.04).min(capacity);
            let rtt = Duration::from_secs_f64(window * 8.0 / rate);
            elasticity.handle_epoch(Bytes::from_f64(window), Rate::from_f64(rate), rtt);
        }
        elasticity.answer().unwrap()
    }

    #[test]
    fn a_window_that_is_the_limit_is_followed_and_a_full_path_does_not_answer() {
        // 155 kB in 40 ms are 31 Mbit/s.
        assert!((answer(40e6).slope - 1.0).abs() < 1e-6);
        // 100 kB in 40 ms are 20 Mbit/s already.
        let full = answer(20e6);
        assert!(full.slope.abs() < 1e-6 && full.error < 1e-6, "{full:?}");
        assert!((full.moved - 0.55).abs() < 1e-6 && full.varied < 1e-6, "{full:?}");
    }

    #[test]
    fn too_few_epochs_say_nothing() {
        let mut elasticity = Elasticity::lately();
        elasticity.handle_epoch(Bytes::new(1), Rate::from_f64(1.0), Duration::ZERO);
        assert_eq!(elasticity.answer(), None);
    }
}
