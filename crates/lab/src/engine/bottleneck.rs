use sweetspot_emulator::{DirectionSample, PathSample};
use sweetspot_scenario::{BottleneckOutcome, Path};
use sweetspot_units::Duration;

/// The emulator's samples of the bottleneck in the forward direction, with times since the start of
/// the run.
pub(super) struct Bottleneck<'a> {
    pub samples: &'a [(Duration, PathSample)],
    pub path: &'a Path,
}

impl Bottleneck<'_> {
    /// The outcome over the measured interval, and before `first`, the start of the first transfer.
    pub fn outcome(
        &self,
        (begin, end): (Duration, Duration),
        first: Duration,
    ) -> BottleneckOutcome {
        let measured = self.within(begin, end);
        let mean = |of: &dyn Fn(&DirectionSample) -> f64| {
            let sum: f64 = measured.iter().map(|(_, sample)| of(&sample.up)).sum();
            if measured.is_empty() { 0.0 } else { sum / measured.len() as f64 }
        };
        let (dropped, arrived) = match (measured.first(), measured.last()) {
            (Some((_, a)), Some((_, b))) => {
                (b.up.dropped() - a.up.dropped(), b.up.arrived - a.up.arrived)
            }
            _ => (0, 0),
        };
        BottleneckOutcome {
            utilisation: self.utilisation(begin, end),
            utilisation_before: self.utilisation(first.scaled(2.0 / 3.0), first),
            loss_rate: if arrived == 0 { 0.0 } else { dropped as f64 / arrived as f64 },
            queue_mean_packets: mean(&|flow| waiting(flow) as f64),
            queue_max_packets: measured.iter().map(|(_, s)| waiting(&s.up)).max().unwrap_or(0),
            queue_delay_mean_s: mean(&|flow| {
                let share = waiting(flow) as f64 / flow.backlog_packets.max(1) as f64;
                flow.queue_delay.as_secs_f64() * share
            }),
        }
    }

    fn within(&self, from: Duration, to: Duration) -> &[(Duration, PathSample)] {
        let first = self.samples.partition_point(|(at, _)| *at < from);
        let last = self.samples.partition_point(|(at, _)| *at <= to);
        &self.samples[first..last.max(first)]
    }

    fn utilisation(&self, from: Duration, to: Duration) -> f64 {
        match self.within(from, to) {
            [(t0, a), .., (t1, b)] => {
                let carried = b.up.delivered.saturating_sub(a.up.delivered) / (*t1 - *t0);
                carried.as_f64() / self.path.mean_rate(*t0, *t1).as_f64()
            }
            _ => 0.0,
        }
    }
}

/// Packets queued, excluding the one in transmission.
pub(super) fn waiting(flow: &DirectionSample) -> u64 {
    flow.backlog_packets.saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sweetspot_units::Bytes;

    fn path() -> Path {
        let text = "duration = '1s'\n[path]\nrate = '10Mbit/s'\nrtt = '10ms'\nbuffer = '9pkt'";
        sweetspot_scenario::Scenario::parse(text).unwrap().path
    }

    /// 10 Mbit/s, half used: 6250 B in 10 ms; five packets in the buffer, a tenth lost.
    fn sample(n: u64) -> (Duration, PathSample) {
        let flow = DirectionSample {
            backlog: Bytes::new(5000),
            backlog_packets: 5,
            queue_delay: Duration::from_millis(4),
            buffer_drops: n,
            random_losses: 0,
            policer_drops: 0,
            arrived: 10 * n,
            delivered: Bytes::new(6250 * n),
        };
        let at = Duration::from_millis(10) * n;
        (at, PathSample { at, up: flow, down: flow })
    }

    #[test]
    fn averages_cover_only_the_measured_interval() {
        let samples: Vec<_> = (0..=100).map(sample).collect();
        let path = path();
        let bottleneck = Bottleneck { samples: &samples, path: &path };
        let second = Duration::from_secs(1);
        let outcome = bottleneck.outcome((second / 2, second), Duration::ZERO);
        assert!((outcome.utilisation - 0.5).abs() < 1e-9);
        assert_eq!((outcome.loss_rate, outcome.utilisation_before), (0.1, 0.0));
        // Four of the five packets wait; 4 ms x 4/5.
        assert_eq!((outcome.queue_mean_packets, outcome.queue_max_packets), (4.0, 4));
        assert!((outcome.queue_delay_mean_s - 0.0032).abs() < 1e-9);
    }

    #[test]
    fn without_samples_the_outcome_is_zero() {
        let path = path();
        let bottleneck = Bottleneck { samples: &[], path: &path };
        let outcome = bottleneck.outcome((Duration::ZERO, Duration::from_secs(1)), Duration::ZERO);
        assert_eq!(
            (outcome.utilisation, outcome.loss_rate, outcome.queue_mean_packets),
            (0.0, 0.0, 0.0)
        );
    }
}
