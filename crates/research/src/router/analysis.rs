use sweetspot_scenario::Scenario;
use sweetspot_theory::reno::s_model::ShortFlow;
use sweetspot_theory::router::capacity_ratio::Form;
use sweetspot_theory::router::fit::{self, Estimate, LossFit, LossPoint};
use sweetspot_theory::router::form_test::{self, FormComparison};
use sweetspot_theory::router::optimum::{Best, optimum};
use sweetspot_theory::router::per_flow::{Favoured, Router, RouterLink};
use sweetspot_theory::{Packets, TheoryError};
use sweetspot_units::{Bytes, Duration, Probability, Rate};

use sweetspot_experiment::StudyError;
use sweetspot_experiment::router::measure::{BufferMeasured, MedianThroughput};

/// The fitted loss forms and delay slope of a set of measurements.
#[derive(Debug, Clone, PartialEq)]
pub struct Fits {
    /// The largest buffer at which the queueing delay still grows in proportion to the buffer (section VI-A).
    pub cutoff: u64,
    /// Number of measurements between the smallest usable buffer and the cutoff.
    pub points: usize,
    /// Power law: p = a B^-b.
    pub power_law: LossFit,
    /// Exponential: p = a e^(-bB).
    pub exponential: LossFit,
    /// The slope f in d = f B / C.
    pub delay: Estimate,
    /// Which form fits better.
    pub comparison: FormComparison,
    /// The link, with that f.
    pub link: RouterLink,
}

/// Confidence of the intervals, and of the test.
const CONFIDENCE: f64 = 0.95;

/// Section VI-B: the forms hold for buffers that are "sufficiently large", here from this number of packets on.
const SMALLEST: u64 = 5;

/// Section VI-A: up to the cutoff, delay grows almost linearly; d C / B there is this fraction of its maximum.
const LINEAR: f64 = 0.75;

impl Fits {
    /// Fits both forms to `measured`, sorted by buffer, in `scenario`.
    ///
    /// # Errors
    /// With fewer than four lossy buffers below the cutoff.
    pub fn of(scenario: &Scenario, measured: &[BufferMeasured]) -> Result<Fits, StudyError> {
        let path = &scenario.path;
        Fits::of_link(path.narrow().rate, path.rtt, path.packet, measured)
    }

    /// The same for a link of `rate` and flows with base RTT `rtt`.
    pub(super) fn of_link(
        rate: Rate,
        rtt: Duration,
        packet: Bytes,
        measured: &[BufferMeasured],
    ) -> Result<Fits, StudyError> {
        let packet_time = packet.as_f64() * 8.0 / rate.as_f64();
        let slope = |m: &BufferMeasured| m.delay_s / (m.buffer as f64 * packet_time);
        let steepest = measured.iter().map(slope).fold(0.0, f64::max);
        let linear = |m: &&BufferMeasured| slope(m) >= LINEAR * steepest;
        let cutoff = measured.iter().filter(linear).map(|m| m.buffer).max().unwrap_or(0);
        let points = measured
            .iter()
            .filter(|m| (SMALLEST..=cutoff).contains(&m.buffer))
            .map(point)
            .collect::<Result<Vec<LossPoint>, TheoryError>>()?;
        // Any f serves to compute the buffer's delay; the final link uses the fitted f.
        let link = RouterLink::new(rate, rtt, packet, 1.0)?;
        let delay = fit::delay_slope(&points, &link, CONFIDENCE)?;
        Ok(Fits {
            cutoff,
            points: points.len(),
            power_law: fit::loss(&points, Form::PowerLaw, CONFIDENCE)?,
            exponential: fit::loss(&points, Form::Exponential, CONFIDENCE)?,
            delay,
            comparison: form_test::compare(&points, 1.0 - CONFIDENCE)?,
            link: RouterLink::new(rate, rtt, packet, delay.value.min(1.0))?,
        })
    }

    /// The fit of `form`.
    pub fn loss(&self, form: Form) -> &LossFit {
        match form {
            Form::PowerLaw => &self.power_law,
            Form::Exponential => &self.exponential,
        }
    }

    /// The best buffer for the flows of `objective`, according to `form` with the fitted parameters.
    ///
    /// # Errors
    /// If the form gives a loss rate above 1 there.
    pub fn best(&self, form: Form, objective: Objective) -> Result<Best, StudyError> {
        Ok(optimum(&self.router(form, objective)?)?.best)
    }

    /// The link with its loss form and objective.
    ///
    /// # Errors
    /// If the packet is empty, which no scenario allows.
    pub fn router(&self, form: Form, objective: Objective) -> Result<Router, StudyError> {
        let packet = self.link.packet();
        let favoured = match objective {
            Objective::Long => Favoured::Long,
            Objective::Short => Favoured::Short(ShortFlow::new(packet * SHORT_PACKETS, packet)?),
        };
        Ok(Router { link: self.link, loss: self.loss(form).form, favoured })
    }
}

/// Section VII-C: s = 30 packets.
pub(super) const SHORT_PACKETS: u64 = 30;

/// The flows that the buffer should serve best.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Objective {
    /// Flows of thirty packets.
    Short,
    /// Flows in congestion avoidance.
    Long,
}

fn point(m: &BufferMeasured) -> Result<LossPoint, TheoryError> {
    Ok(LossPoint {
        buffer: Packets::new(m.buffer as f64)?,
        loss: Probability::new(m.loss).unwrap_or(Probability::ZERO),
        delay: Duration::from_secs_f64(m.delay_s),
    })
}

/// The best of the measured buffers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SimulatedBest {
    /// The buffer with the highest median.
    pub best: u64,
    /// The smallest and largest buffers with a median that is not significantly lower, that is, by less than two standard
    /// errors of the difference.
    pub tied: (u64, u64),
    /// Whether the largest buffer tried is among them, so that there is no clear maximum.
    pub at_end: bool,
    /// The median at the best buffer, bit/s.
    pub median_bps: f64,
}

/// Minimum number of flows for a meaningful median.
pub(super) const ENOUGH_FLOWS: u64 = 30;

/// The buffer that maximises the median throughput of `flows`; `None` where too few finished.
pub fn simulated(
    measured: &[BufferMeasured],
    flows: impl Fn(&BufferMeasured) -> &MedianThroughput,
) -> Option<SimulatedBest> {
    let counted: Vec<(u64, &MedianThroughput)> = measured
        .iter()
        .map(|m| (m.buffer, flows(m)))
        .filter(|(_, throughput)| throughput.flows >= ENOUGH_FLOWS)
        .collect();
    // Among equals, the smallest buffer (section VII: "the minimum value of B").
    let (best, top) = counted
        .iter()
        .copied()
        .reduce(|a, b| if b.1.median_bps > a.1.median_bps { b } else { a })?;
    let is_tied = |t: &MedianThroughput| {
        let error = libm::hypot(t.error_bps, top.error_bps);
        t.median_bps >= top.median_bps - 2.0 * error
    };
    let mut tied = counted.iter().filter(|(_, t)| is_tied(t)).map(|(buffer, _)| *buffer);
    let low = tied.next()?;
    let high = tied.next_back().unwrap_or(low);
    let last = counted.last().map(|(buffer, _)| *buffer);
    Some(SimulatedBest {
        best,
        tied: (low, high),
        at_end: last == Some(high),
        median_bps: top.median_bps,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::router::TABLE_1;

    fn measured(buffer: u64, loss: f64, delay_s: f64, median_bps: f64) -> BufferMeasured {
        let short = MedianThroughput { median_bps, error_bps: 1.0, flows: 100 };
        BufferMeasured { loss, delay_s, short, ..BufferMeasured::of(buffer, Vec::new()) }
    }

    #[test]
    fn exact_measurements_recover_their_parameters() {
        // 50 Mbit/s: 240 us per packet; f = 0.4 up to 400 packets, constant delay beyond.
        let scenario = TABLE_1[3].scenario().unwrap();
        let points: Vec<BufferMeasured> = [2, 10, 20, 50, 100, 200, 400, 800, 1600]
            .map(|b| {
                let delay = 0.4 * (b as f64).min(400.0) * 240e-6;
                measured(b, 0.3 * libm::pow(b as f64, -0.5), delay, 0.0)
            })
            .to_vec();
        let fits = Fits::of(&scenario, &points).unwrap();
        // At 800 packets the slope is halved; two packets are too few.
        assert_eq!((fits.cutoff, fits.points), (400, 6));
        assert!((fits.power_law.b.value - 0.5).abs() < 1e-9);
        assert!((fits.delay.value - 0.4).abs() < 1e-9);
        assert_eq!(fits.comparison.better, Some(Form::PowerLaw));
        // Eq. (11): 0.5 / (0.4 x 1.5) x 250 = 208.33.
        let Best::At(best) = fits.best(Form::PowerLaw, Objective::Long).unwrap() else { panic!() };
        assert!((best.get() - 208.333).abs() < 0.01);
    }

    #[test]
    fn the_smallest_best_buffer_wins_and_those_within_the_error_tie() {
        let flat = [(2, 50.0), (4, 99.0), (8, 100.0), (16, 100.0), (32, 98.0), (64, 90.0)];
        let all: Vec<BufferMeasured> = flat.map(|(b, bps)| measured(b, 0.1, 0.0, bps)).to_vec();
        // Two standard errors of sqrt(1 + 1) are 2.83: 98 is tied, 90 is not.
        let found = simulated(&all, |m| &m.short).unwrap();
        assert_eq!((found.best, found.tied, found.at_end), (8, (4, 32), false));
        assert!(simulated(&all[..4], |m| &m.short).unwrap().at_end);
        assert_eq!(simulated(&all, |m| &m.long), None);
    }
}
