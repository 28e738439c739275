//! Estimates the remaining time of running work.

use sweetspot_units::{Duration, Time};

/// Parts that took less than this fraction of their usual time came from stored results and say nothing about
/// speed.
const KNOWN_SHARE: f64 = 0.1;

/// Estimates the remaining time from the usual time of the parts and this machine's speed so far.
#[derive(Debug)]
pub(super) struct Eta {
    usual: Vec<f64>,
    /// Number of finished parts.
    done: usize,
    /// When the current part began.
    began: Time,
    /// Totals over the parts that show the speed: usual time and actual time.
    usual_and_actual: (f64, f64),
}

impl Eta {
    /// An estimate for parts with these usual times, run one after the other from `now` on.
    pub fn new(usual: impl IntoIterator<Item = Duration>, now: Time) -> Eta {
        let usual = usual.into_iter().map(Duration::as_secs_f64).collect();
        Eta { usual, done: 0, began: now, usual_and_actual: (0.0, 0.0) }
    }

    /// Marks the current part as finished; returns how long it took.
    pub fn handle_done(&mut self, now: Time) -> Duration {
        let took = now.since(self.began);
        let usual = self.usual.get(self.done).copied().unwrap_or_default();
        if took.as_secs_f64() > KNOWN_SHARE * usual {
            self.usual_and_actual.0 += usual;
            self.usual_and_actual.1 += took.as_secs_f64();
        }
        (self.done, self.began) = (self.done + 1, now);
        took
    }

    /// The estimated remaining time.
    pub fn left(&self, now: Time) -> Duration {
        let (usual, took) = self.usual_and_actual;
        let pace = if usual > 0.0 { took / usual } else { 1.0 };
        let rest = self.usual.get(self.done..).unwrap_or_default();
        let present = rest
            .first()
            .map_or(0.0, |usual| (usual * pace - now.since(self.began).as_secs_f64()).max(0.0));
        Duration::from_secs_f64(present + rest.iter().skip(1).sum::<f64>() * pace)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Time {
        Time::ZERO + Duration::from_secs(seconds)
    }

    fn eta(usual: &[u64]) -> Eta {
        Eta::new(usual.iter().map(|s| Duration::from_secs(*s)), at(0))
    }

    #[test]
    fn the_remaining_time_shrinks_and_follows_the_machines_speed() {
        let mut eta = eta(&[10, 20, 30]);
        assert_eq!(eta.left(at(0)), Duration::from_secs(60));
        assert_eq!(eta.left(at(4)), Duration::from_secs(56));
        // Twice as slow as usual: 40 s and 60 s are left.
        assert_eq!(eta.handle_done(at(20)), Duration::from_secs(20));
        assert_eq!(eta.left(at(20)), Duration::from_secs(100));
        assert_eq!(eta.left(at(50)), Duration::from_secs(70));
    }

    #[test]
    fn cached_parts_do_not_affect_the_speed_estimate() {
        let mut eta = eta(&[100, 20]);
        eta.handle_done(at(1));
        assert_eq!(eta.left(at(1)), Duration::from_secs(20));
    }

    #[test]
    fn an_overdue_part_leaves_the_time_of_the_others() {
        let mut eta = eta(&[10, 20]);
        assert_eq!(eta.left(at(500)), Duration::from_secs(20));
        eta.handle_done(at(500));
        eta.handle_done(at(900));
        assert_eq!(eta.left(at(901)), Duration::ZERO);
    }
}
