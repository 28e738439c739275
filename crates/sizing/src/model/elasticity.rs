use std::collections::VecDeque;

use sweetspot_units::{Bytes, Duration, Rate};

use super::samples::Samples;

/// Minimum number of epochs in a fit; a fit over recent epochs holds exactly this number.
const FITTED_EPOCHS: usize = 12;

/// Elasticity of the rate: d ln R / d ln W over epochs, by least squares. It is about 1 if
/// the window is the limit (R = W / T), about 0 if the path is full, and between if cross traffic
/// yields to a queue (eqs 6 to 8 of the paper).
#[derive(Debug)]
pub(crate) struct Elasticity {
    /// The epochs of a fit over the last few; a fit over all keeps its sums only.
    last: Option<VecDeque<EpochSample>>,
    fit: Fit,
}

#[derive(Debug, Clone, Copy)]
struct EpochSample {
    window: f64,
    rate: f64,
    rtt: f64,
}

/// The sums of a regression of ln R on ln W, as in [`Samples`].
#[derive(Debug, Clone, Copy, Default)]
struct Fit {
    ln_window: Samples,
    ln_rate: Samples,
    /// The sum of the products of both differences from the mean.
    products: f64,
    rate: Samples,
    rtt: Samples,
    smallest: Option<f64>,
    largest: f64,
}

impl Fit {
    fn add(&mut self, sample: EpochSample) {
        let (x, y) = (sample.window.ln(), sample.rate.ln());
        let from_mean = x - self.ln_window.mean();
        self.ln_window.add(x);
        self.ln_rate.add(y);
        self.products += from_mean * (y - self.ln_rate.mean());
        self.rate.add(sample.rate);
        self.rtt.add(sample.rtt);
        self.smallest = Some(self.smallest.unwrap_or(sample.window).min(sample.window));
        self.largest = self.largest.max(sample.window);
    }
}

/// The estimate over the last epochs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ElasticityEstimate {
    /// d ln R / d ln W.
    pub slope: f64,
    pub error: f64,
    /// Ratio of the largest to the smallest window, minus one.
    pub moved: f64,
    /// Standard deviation of the rate divided by its mean.
    pub varied: f64,
    pub rate: Rate,
    /// Mean round trip.
    pub rtt: Duration,
}

impl Elasticity {
    /// A fit over the last few epochs.
    pub(crate) fn lately() -> Elasticity {
        Elasticity { last: Some(VecDeque::new()), fit: Fit::default() }
    }

    /// A fit over all epochs since it was cleared, in which even a slowly growing window moves far
    /// enough.
    pub(crate) fn throughout() -> Elasticity {
        Elasticity { last: None, fit: Fit::default() }
    }

    /// Adds an epoch's `window` in flight, `rate` and round trip.
    pub(crate) fn handle_epoch(&mut self, window: Bytes, rate: Rate, rtt: Duration) {
        let (window, rate) = (window.as_f64().max(1.0), rate.as_f64().max(1.0));
        let sample = EpochSample { window, rate, rtt: rtt.as_secs_f64() };
        let Some(last) = &mut self.last else { return self.fit.add(sample) };
        last.push_back(sample);
        if last.len() > FITTED_EPOCHS {
            last.pop_front();
        }
        self.fit = Fit::default();
        last.iter().for_each(|sample| self.fit.add(*sample));
    }

    pub(crate) fn clear(&mut self) {
        self.last.iter_mut().for_each(VecDeque::clear);
        self.fit = Fit::default();
    }

    /// The current estimate; `None` until there are enough epochs.
    pub(crate) fn answer(&self) -> Option<ElasticityEstimate> {
        let fit = &self.fit;
        if fit.rate.count() < FITTED_EPOCHS as u64 {
            return None;
        }
        let n = fit.rate.count() as f64;
        let (xx, yy, xy) = (fit.ln_window.squares(), fit.ln_rate.squares(), fit.products);
        let slope = if xx > 0.0 { xy / xx } else { 1.0 };
        let residual = (yy - slope * xy).max(0.0) / (n - 2.0);
        let error = if xx > 0.0 { (residual / xx).sqrt() } else { f64::INFINITY };
        Some(ElasticityEstimate {
            slope,
            error,
            moved: fit.largest / fit.smallest? - 1.0,
            varied: (fit.rate.squares() / (n - 1.0)).sqrt() / fit.rate.mean(),
            rate: Rate::from_f64(fit.rate.mean()),
            rtt: Duration::from_secs_f64(fit.rtt.mean()),
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
    fn the_rate_follows_a_limiting_window_but_not_on_a_full_path() {
        // 155 kB in 40 ms are 31 Mbit/s.
        assert!((answer(40e6).slope - 1.0).abs() < 1e-6);
        // 100 kB in 40 ms are 20 Mbit/s already.
        let full = answer(20e6);
        assert!(full.slope.abs() < 1e-6 && full.error < 1e-6, "{full:?}");
        assert!((full.moved - 0.55).abs() < 1e-6 && full.varied < 1e-6, "{full:?}");
    }

    #[test]
    fn too_few_epochs_give_no_answer() {
        let mut elasticity = Elasticity::lately();
        elasticity.handle_epoch(Bytes::new(1), Rate::from_f64(1.0), Duration::ZERO);
        assert_eq!(elasticity.answer(), None);
    }
}
