//! Decides how early to set the timer for a release.

use sweetspot_units::{Duration, Time};

/// Step of the estimate, far below the estimated latency of 10 us and more.
const STEP: Duration = Duration::from_nanos(250);

/// The latency from a timer's expiry to the thread's return, learned from each wake-up. A thread is on time if it sets its
/// timer earlier by this latency, and then spins. On a virtual machine, a wake-up takes longer than all the work for a
/// packet.
///
/// The estimate is the 3/4 quantile: a late wake-up adds three steps, an early one subtracts one, and these balance there.
#[derive(Debug, Default)]
pub(crate) struct WakeUp {
    latency: Duration,
}

impl WakeUp {
    /// When to wake up at `now` for work at `due`. It is early, but the sleep lasts at least as long as the spinning: the
    /// kernel suspends a real-time thread that never sleeps (sched_rt_runtime_us).
    pub fn alarm(&self, now: Time, due: Time) -> Time {
        due - self.latency.min(due.since(now).saturating_sub(self.latency))
    }

    /// Notes that the thread woke up at `now`, for a timer at `alarm`. An earlier wake-up had another cause.
    pub fn woke(&mut self, alarm: Time, now: Time) {
        if now < alarm {
            return;
        }
        if now.since(alarm) > self.latency {
            self.latency += STEP * 3;
        } else {
            self.latency = self.latency.saturating_sub(STEP);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_alarm_leads_by_the_75th_percentile_of_the_latency() {
        let mut wake_up = WakeUp::default();
        // Latencies from 0 to 39 us, equally often: 30 us cover three in four.
        for round in 0..4000_u64 {
            let alarm = Time::from_nanos(1_000_000 * (round + 1));
            let latency = Duration::from_micros(round * 7 % 40);
            wake_up.woke(alarm, alarm + latency);
        }
        let (now, due) = (Time::ZERO, Time::from_nanos(10_000_000));
        let lead = due.since(wake_up.alarm(now, due)).as_secs_f64();
        assert!((25e-6..35e-6).contains(&lead), "{lead}");
    }

    #[test]
    fn a_thread_sleeps_at_least_as_long_as_it_may_spin() {
        let mut wake_up = WakeUp::default();
        for _ in 0..1000 {
            wake_up.woke(Time::ZERO, Time::from_nanos(10_000));
        }
        for due in (0..60_000).step_by(500).map(Time::from_nanos) {
            let alarm = wake_up.alarm(Time::ZERO, due);
            let (slept, spun) = (alarm.since(Time::ZERO), due.since(alarm));
            assert!(spun == Duration::ZERO || slept >= spun, "{due:?}");
            // It spins for the latency, or for at most half of the remaining time.
            let expected =
                wake_up.latency.min(due.since(Time::ZERO).saturating_sub(wake_up.latency));
            assert_eq!(spun, expected, "{due:?}");
        }
    }

    #[test]
    fn an_early_wake_up_gives_no_latency_sample() {
        let mut wake_up = WakeUp::default();
        wake_up.woke(Time::from_nanos(1000), Time::ZERO);
        assert_eq!(wake_up.alarm(Time::ZERO, Time::from_nanos(500)), Time::from_nanos(500));
    }
}
