use sweetspot_units::{Bytes, Duration, Rate, Time};

/// "Counting the amount of bytes received in every second" (section VII-A).
const THROUGHPUT_PERIOD: Duration = Duration::from_secs(1);

/// "The slope of the last five receive-throughput measurements" (section VII-A).
const SLOPE_MEASUREMENTS: usize = 5;

/// The paper's "approximately zero": less than this share of the mean per measurement. Two segments per RTT beyond the initial
/// limit raise the rate of a 100 Mbit/s, 100 ms path by 2.3 % a second, so 1 % separates rising from flat there.
const MAX_FLAT_SLOPE: f64 = 0.01;

/// A departure from the paper: with five measurements and 1 %, a slow climb of congestion avoidance after a loss looks flat, or
/// noise hides it. If the window climbs by less than this share per measurement, the detector takes more measurements, and
/// the slope must be below half of the climb.
const STEEP_CLIMB: f64 = 4.0 * MAX_FLAT_SLOPE;

/// The largest scatter of measurements about their line, as a share of their mean. A peak is no plateau, although a line
/// through both of its sides is level.
const MAX_SCATTER: f64 = 0.1;

const MAX_MEASUREMENTS: usize = 20;

/// The paper's rate saturation detector: receive throughput per second, and the slope of the
/// last five.
#[derive(Debug, Default)]
pub(crate) struct RateSaturation {
    period: Option<(Time, Bytes)>,
    stalled: bool,
    rates: Vec<f64>,
}

impl RateSaturation {
    /// Payload reached the application.
    pub(crate) fn handle_data(&mut self, now: Time, bytes: Bytes) {
        let (_, sum) = self.period.get_or_insert((now, Bytes::ZERO));
        *sum += bytes;
    }

    /// The application did not keep up in this second, so this second does not measure the path.
    pub(crate) fn handle_stall(&mut self) {
        self.stalled = true;
    }

    /// The end of the current second.
    pub(crate) fn poll_timeout(&self) -> Option<Time> {
        self.period.map(|(since, _)| since + THROUGHPUT_PERIOD)
    }

    /// Ends the second that is over by `now`; returns its rate.
    pub(crate) fn poll_measurement(&mut self, now: Time) -> Option<Rate> {
        let (since, bytes) = self.period?;
        if now < since + THROUGHPUT_PERIOD {
            return None;
        }
        self.period = Some((now, Bytes::ZERO));
        if std::mem::take(&mut self.stalled) {
            self.rates.clear();
            return None;
        }
        let rate = bytes / now.since(since);
        if self.rates.len() == MAX_MEASUREMENTS {
            self.rates.remove(0);
        }
        self.rates.push(rate.as_f64());
        Some(rate)
    }

    /// Whether the slope of the last measurements is about zero, if congestion avoidance raises the sender's window by a share
    /// of `climb` per measurement. Checks five measurements against 1 %, and proportionally more for a slower climb. Seconds
    /// without data are no saturation.
    pub(crate) fn is_saturated(&self, climb: f64) -> bool {
        let slower = (STEEP_CLIMB / climb.max(f64::MIN_POSITIVE)).max(1.0);
        let wanted =
            (SLOPE_MEASUREMENTS as f64 * slower).ceil().min(MAX_MEASUREMENTS as f64) as usize;
        let Some(first) = self.rates.len().checked_sub(wanted) else { return false };
        let rates = &self.rates[first..];
        let mean = rates.iter().sum::<f64>() / wanted as f64;
        let slope = slope(rates);
        mean > 0.0
            && (slope / mean).abs() < MAX_FLAT_SLOPE.min(climb / 2.0)
            && scatter(rates, mean, slope) < (MAX_SCATTER * mean).powi(2)
    }
}

/// Least-squares slope per measurement.
fn slope(rates: &[f64]) -> f64 {
    let middle = (rates.len() as f64 - 1.0) / 2.0;
    let (mut weighted, mut squares) = (0.0, 0.0);
    for (i, rate) in rates.iter().enumerate() {
        let x = i as f64 - middle;
        weighted += x * rate;
        squares += x * x;
    }
    weighted / squares
}

/// The variance of `rates` about the line of this slope through their mean.
fn scatter(rates: &[f64], mean: f64, slope: f64) -> f64 {
    let middle = (rates.len() as f64 - 1.0) / 2.0;
    let square = |(i, rate): (usize, &f64)| (rate - mean - slope * (i as f64 - middle)).powi(2);
    let squares: f64 = rates.iter().enumerate().map(square).sum();
    squares / (rates.len() as f64 - 2.0).max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A climb steep enough for the paper's rule to apply unchanged.
    const STEEP: f64 = 1.0;

    fn saturated(rates: &[f64], climb: f64) -> bool {
        let saturation = RateSaturation { rates: rates.to_vec(), ..RateSaturation::default() };
        saturation.is_saturated(climb)
    }

    #[test]
    fn a_peak_is_not_a_plateau() {
        // Least squares: (-2 x 20 - 28 + 28 + 2 x 20) / 10 = 0.
        assert!(!saturated(&[20.0, 28.0, 34.0, 28.0, 20.0], STEEP));
        assert!(saturated(&[26.0, 26.1, 25.9, 26.0, 26.0], STEEP));
    }

    #[test]
    fn a_slow_climb_is_judged_over_more_measurements() {
        // 0.8 % a second is flat by the paper's 1 %. But a sender that climbs by 0.8 % in congestion avoidance is still rising:
        // flat would be half of that over 5 x 4 / 0.8 = 25 seconds; 20 are kept.
        let rising: Vec<f64> = (0..20).map(|i| 10.0 * 1.008_f64.powi(i)).collect();
        assert!(saturated(&rising, STEEP));
        assert!(!saturated(&rising, 0.008));
        assert!(saturated(&[10.0; 20], 0.008));
        assert!(!saturated(&[10.0; 19], 0.008));
    }
}
