use sweetspot_units::{Bytes, Duration, Time};

use crate::{Application, Pace};

const PARETO_SHAPE: f64 = 1.5;

/// The times at which an application that is slower than TCP reads or writes, for every engine.
///
/// It moves one portion at a time, at intervals given by its [`Pace`], or all data at once without one, and nothing during a
/// [`Pause`](crate::Pause). It has no clock and no state: it only computes times from times.
#[derive(Debug, Clone, PartialEq)]
pub struct Schedule {
    application: Application,
    start: Time,
    /// Mean time between portions; `None`: everything between pauses.
    gap: Option<Duration>,
}

impl Schedule {
    /// The schedule of an application that moves `portion` at a time, in a transfer that starts at `start`; `None` if only TCP
    /// determines the times.
    pub fn new(application: &Application, start: Time, portion: Bytes) -> Option<Schedule> {
        let gap = application.pace.map(|pace| portion / pace.rate());
        (!application.is_greedy()).then(|| Schedule {
            application: application.clone(),
            start,
            gap,
        })
    }

    /// Whether the application has a rate.
    pub fn is_paced(&self) -> bool {
        self.gap.is_some()
    }

    /// Start of its transfer.
    pub fn start(&self) -> Time {
        self.start
    }

    /// The time of the next portion after one at `from`. `unit` draws a uniform number from 0 to below 1, for random gaps.
    pub fn next_turn(&self, from: Time, unit: impl FnOnce() -> f64) -> Time {
        let gap = self.gap.map_or(Duration::ZERO, |mean| self.draw(mean, unit));
        self.after_pause(from + gap)
    }

    /// The end of the pause that contains `now`.
    pub fn resumes(&self, now: Time) -> Option<Time> {
        self.application.paused_until(now.since(self.start)).map(|until| self.start + until)
    }

    /// The start of the next pause after `now`.
    pub fn next_pause(&self, now: Time) -> Option<Time> {
        let at = now.since(self.start);
        let mut pauses = self.application.pauses.iter().map(|pause| pause.from);
        pauses.find(|from| *from > at).map(|from| self.start + from)
    }

    /// `at`, or the end of the pause that contains it.
    pub fn after_pause(&self, at: Time) -> Time {
        self.resumes(at).unwrap_or(at)
    }

    /// The inverse of the gaps' distribution function, at the value of `unit`.
    fn draw(&self, mean: Duration, unit: impl FnOnce() -> f64) -> Duration {
        let seconds = mean.as_secs_f64();
        // 1 - unit() is in (0, 1].
        let drawn = match self.application.pace {
            Some(Pace::Poisson(_)) => -seconds * libm::log(1.0 - unit()),
            // P(X > x) = (scale / x)^shape, scale = mean (shape - 1) / shape.
            Some(Pace::Pareto(_)) => {
                let scale = seconds * (PARETO_SHAPE - 1.0) / PARETO_SHAPE;
                scale * libm::exp(-libm::log(1.0 - unit()) / PARETO_SHAPE)
            }
            _ => return mean,
        };
        Duration::from_secs_f64(drawn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Time {
        Time::ZERO + Duration::from_millis(millis)
    }

    fn schedule(text: &str) -> Option<Schedule> {
        let application: Application = text.parse().expect("it describes an application");
        Schedule::new(&application, at(1000), Bytes::new(1000))
    }

    #[test]
    fn turns_are_spaced_by_portion_over_rate_and_skip_pauses() {
        // 1000 bytes at 800 kbit/s take 10 ms; pauses are relative to the start at 1000 ms.
        let schedule = schedule("rate=800kbit/s,pause=50ms+100ms").expect("it is slow");
        let turn = |from| schedule.next_turn(at(from), || 0.0);
        assert_eq!((turn(1000), turn(1039)), (at(1010), at(1049)));
        assert_eq!((turn(1040), turn(1150)), (at(1150), at(1160)));
        assert_eq!(
            (schedule.resumes(at(1049)), schedule.resumes(at(1050))),
            (None, Some(at(1150)))
        );
        assert_eq!(
            (schedule.next_pause(at(1049)), schedule.next_pause(at(1050))),
            (Some(at(1050)), None)
        );
    }

    #[test]
    fn random_gaps_invert_their_distribution_function() {
        // At 1 - 1/e an exponential variate equals its mean; at 0 a Pareto variate equals its scale, a third of the mean at
        // shape 1.5.
        let gap = |text: &str, unit: f64| {
            let schedule = schedule(text).expect("it is slow");
            schedule.next_turn(at(1000), || unit).since(at(1000)).as_secs_f64()
        };
        let median = gap("poisson=8Mbit/s", 1.0 - (-1.0_f64).exp());
        assert!((median - 0.001).abs() < 1e-9, "{median}");
        let min = gap("pareto=8Mbit/s", 0.0);
        assert!((min - 0.001 / 3.0).abs() < 1e-9, "{min}");
    }
}
