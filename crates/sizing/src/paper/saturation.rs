use sweetspot_units::{Bytes, Duration, Rate, Time};

/// "Counting the amount of bytes received in every second" (section VII-A).
const THROUGHPUT_PERIOD: Duration = Duration::from_secs(1);

/// "The slope of the last five receive-throughput measurements" (section VII-A).
const SLOPE_MEASUREMENTS: usize = 5;

/// The paper's "approximately zero": less than this share of the mean per measurement. Two segments per RTT beyond the initial
/// limit raise the rate of a 100 Mbit/s, 100 ms path by 2.3 % a second, so 1 % separates rising from flat there.
const MAX_FLAT_SLOPE: f64 = 0.01;

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

    /// The application did not keep up in this second, so the second is no measurement of the path.
    pub(crate) fn handle_stall(&mut self) {
        self.stalled = true;
    }

    /// When the present second ends.
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
        if self.rates.len() == SLOPE_MEASUREMENTS {
            self.rates.remove(0);
        }
        self.rates.push(rate.as_f64());
        Some(rate)
    }

    /// Whether the slope of the last five measurements is about zero. Seconds without data do not
    /// count as saturation.
    pub(crate) fn is_saturated(&self) -> bool {
        if self.rates.len() < SLOPE_MEASUREMENTS {
            return false;
        }
        let mean = self.rates.iter().sum::<f64>() / SLOPE_MEASUREMENTS as f64;
        mean > 0.0 && (self.slope() / mean).abs() < MAX_FLAT_SLOPE
    }

    /// Least-squares slope per measurement, in bit/s.
    fn slope(&self) -> f64 {
        // With x = -2..2: slope = sum(x y) / sum(x^2), and sum(x^2) = 10.
        let weighted = self.rates.iter().zip([-2.0, -1.0, 0.0, 1.0, 2.0]);
        weighted.map(|(y, x)| x * y).sum::<f64>() / 10.0
    }
}
