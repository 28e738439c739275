use serde::ser::{Serialize, SerializeMap, Serializer};
use sweetspot_units::Duration;

use crate::Class;

/// Minimum share of the time at which the verdict mentions a slow receiving program, even if another limit has more time.
pub const FREQUENT_SHARE: f64 = 0.1;

/// Shares below this are not printed.
pub const MIN_PRINTED_SHARE: f64 = 0.005;

/// How a connection's time divides among the classes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Limits {
    times: [Duration; Class::ALL.len()],
}

impl Limits {
    /// Attributes all of `time` to `class`.
    pub fn only(class: Class, time: Duration) -> Limits {
        let mut limits = Limits::default();
        limits.add(class, time);
        limits
    }

    /// Adds `time` to `class`.
    pub fn add(&mut self, class: Class, time: Duration) {
        self.times[class as usize] += time;
    }

    /// Adds the times of `other`.
    pub fn extend(&mut self, other: &Limits) {
        Class::ALL.into_iter().for_each(|class| self.add(class, other.time(class)));
    }

    /// The time since `before`, an earlier state of these limits.
    pub fn since(&self, before: &Limits) -> Limits {
        let mut limits = Limits::default();
        for class in Class::ALL {
            limits.add(class, self.time(class).saturating_sub(before.time(class)));
        }
        limits
    }

    /// Moves `times`, which are part of these limits, to `class`.
    pub(crate) fn attribute(&mut self, times: &Limits, class: Class) {
        for (all, part) in self.times.iter_mut().zip(times.times) {
            *all = all.saturating_sub(part);
        }
        self.add(class, times.total());
    }

    /// Moves the time of `class` to [`Class::Unknown`].
    pub fn reassign_to_unknown(&mut self, class: Class) {
        self.reassign(class, Class::Unknown);
    }

    /// Moves the time of `class` to `other`.
    pub(crate) fn reassign(&mut self, class: Class, other: Class) {
        let time = std::mem::take(&mut self.times[class as usize]);
        self.add(other, time);
    }

    /// The time of `class`.
    pub fn time(&self, class: Class) -> Duration {
        self.times[class as usize]
    }

    /// The total time.
    pub fn total(&self) -> Duration {
        Duration::from_nanos(self.times.iter().map(|time| time.as_nanos()).sum())
    }

    /// The share of `class`, 0 to 1; zero if the total time is zero.
    pub fn share(&self, class: Class) -> f64 {
        self.part(self.time(class))
    }

    /// The share of all classes in the family of `class`, 0 to 1.
    pub fn family_share(&self, class: Class) -> f64 {
        self.part(self.family_time(class))
    }

    /// The family with the most time; [`Class::Unknown`] if the total time is zero.
    pub fn dominant(&self) -> Class {
        let families = Class::ALL.into_iter().filter(|class| class.family() == *class);
        let longest = families.rev().max_by_key(|class| self.family_time(*class));
        longest.filter(|class| self.family_time(*class) > Duration::ZERO).unwrap_or(Class::Unknown)
    }

    /// The class with the most time in the family of `class`.
    pub fn leading(&self, class: Class) -> Class {
        let members = Class::ALL.into_iter().filter(|member| member.family() == class.family());
        members.rev().max_by_key(|member| self.time(*member)).unwrap_or(class)
    }

    /// The classes with a share above zero, the largest share first.
    pub fn shares(&self) -> Vec<(Class, f64)> {
        let mut shares: Vec<_> = Class::ALL.into_iter().map(|c| (c, self.share(c))).collect();
        shares.retain(|(_, share)| *share > 0.0);
        shares.sort_by(|a, b| b.1.total_cmp(&a.1));
        shares
    }

    /// The shares as a list in words, the largest first, without those below 0.5 %.
    pub fn words(&self) -> String {
        self.words_as(Class::words)
    }

    /// As [`words`](Limits::words), with other names for the classes.
    pub(crate) fn words_as(&self, name: impl Fn(Class) -> &'static str) -> String {
        let shares = self.shares().into_iter().filter(|(_, share)| *share >= MIN_PRINTED_SHARE);
        let words = shares.map(|(class, share)| format!("{} {:.0} %", name(class), percent(share)));
        words.collect::<Vec<_>>().join(", ")
    }

    fn family_time(&self, class: Class) -> Duration {
        let members = Class::ALL.into_iter().filter(|member| member.family() == class.family());
        Duration::from_nanos(members.map(|member| self.time(member).as_nanos()).sum())
    }

    fn part(&self, time: Duration) -> f64 {
        let total = self.total().as_nanos();
        if total == 0 { 0.0 } else { time.as_nanos() as f64 / total as f64 }
    }
}

/// One share per family; the shares add up to 1.
impl Serialize for Limits {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for class in Class::ALL.into_iter().filter(|class| class.family() == *class) {
            map.serialize_entry(class.name(), &rounded(self.family_share(class)))?;
        }
        map.end()
    }
}

/// Rounds a share to four decimal places, which is as exact as it is.
pub(crate) fn rounded(share: f64) -> f64 {
    (share * 1e4).round() / 1e4
}

/// A share in whole per cent. A share already rounded to four decimal places gives the same number.
pub fn percent(share: f64) -> f64 {
    (rounded(share) * 100.0).round()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_a_share_keeps_its_percentage() {
        // 70.499 % is 70.5 % to four digits.
        for share in [0.70499, 0.705, 0.704951, 0.28499, 0.005] {
            assert_eq!(percent(share), percent(rounded(share)), "{share}");
        }
        assert_eq!(percent(0.70499), 71.0);
        assert_eq!(percent(0.7044), 70.0);
    }

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

    #[test]
    fn idle_and_waiting_time_count_as_one_application_family() {
        let mut limits = Limits::only(Class::Congestion, Duration::from_secs(4));
        limits.add(Class::Idle, Duration::from_secs(3));
        limits.add(Class::WaitingForPeer, Duration::from_secs(3));
        assert_eq!(limits.dominant(), Class::Application);
        assert_eq!(limits.leading(Class::Application), Class::WaitingForPeer);
        assert_eq!(limits.family_share(Class::Application), 0.6);
    }
}
