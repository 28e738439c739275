use serde::ser::{Serialize, SerializeMap, Serializer};
use sweetspot_units::Duration;

use crate::Class;

/// How a connection's time divides among the classes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Limits {
    times: [Duration; Class::ALL.len()],
}

impl Limits {
    /// Adds `time` to `class`.
    pub fn add(&mut self, class: Class, time: Duration) {
        self.times[class as usize] += time;
    }

    /// Adds all of `other`.
    pub fn extend(&mut self, other: &Limits) {
        Class::ALL.into_iter().for_each(|class| self.add(class, other.time(class)));
    }

    /// The time of `class`.
    pub fn time(&self, class: Class) -> Duration {
        self.times[class as usize]
    }

    /// All time.
    pub fn total(&self) -> Duration {
        Duration::from_nanos(self.times.iter().map(|time| time.as_nanos()).sum())
    }

    /// The share of `class`, 0 to 1; zero where there is no time at all.
    pub fn share(&self, class: Class) -> f64 {
        let total = self.total().as_nanos();
        if total == 0 { 0.0 } else { self.time(class).as_nanos() as f64 / total as f64 }
    }

    /// The class with the most time; unknown where there is none.
    pub fn dominant(&self) -> Class {
        let most = Class::ALL.into_iter().rev().max_by_key(|class| self.time(*class));
        most.filter(|class| self.time(*class) > Duration::ZERO).unwrap_or(Class::Unknown)
    }

    /// The classes that have a share, the largest first.
    pub fn shares(&self) -> Vec<(Class, f64)> {
        let mut shares: Vec<_> = Class::ALL.into_iter().map(|c| (c, self.share(c))).collect();
        shares.retain(|(_, share)| *share > 0.0);
        shares.sort_by(|a, b| b.1.total_cmp(&a.1));
        shares
    }
}

impl Serialize for Limits {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(Class::ALL.len()))?;
        for class in Class::ALL {
            // Four digits: a share is no more exact than that.
            map.serialize_entry(class.name(), &((self.share(class) * 1e4).round() / 1e4))?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_class_with_the_most_time_wins() {
        let mut limits = Limits::default();
        assert_eq!(limits.dominant(), Class::Unknown);
        limits.add(Class::Congestion, Duration::from_secs(1));
        limits.add(Class::Bandwidth, Duration::from_secs(3));
        assert_eq!(limits.dominant(), Class::Bandwidth);
        assert_eq!(limits.share(Class::Congestion), 0.25);
        assert_eq!(limits.shares()[0], (Class::Bandwidth, 0.75));
    }
}
