use sweetspot_units::{Duration, Rate};

use crate::finding::{Estimate, Finding};

/// Cross traffic below this share does not matter: its queue is short.
const MIN_SHARE: f64 = 0.05;

/// The share of a link's capacity that cross traffic uses, and its interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CrossTraffic {
    /// The share, from 0 to 1.
    pub share: Estimate<f64>,
    /// The mean wait of this host's threads for a CPU, if it is long enough to resemble cross traffic.
    pub cpu_wait: Option<Duration>,
}

impl CrossTraffic {
    /// The part of `capacity` that is not `available`. Each end of the interval takes the worst case of both errors.
    pub(crate) fn of(
        capacity: &Finding<Rate>,
        available: &Finding<Rate>,
        cpu_wait: Option<Duration>,
    ) -> Option<CrossTraffic> {
        let (capacity, available) = (capacity.estimate()?, available.estimate()?);
        let share = |available: Rate, capacity: Rate| {
            (1.0 - available.as_f64() / capacity.as_f64().max(1.0)).clamp(0.0, 1.0)
        };
        let value = share(available.value, capacity.value);
        let (low, high) =
            (share(available.high, capacity.low), share(available.low, capacity.high));
        Some(CrossTraffic { share: Estimate { value, low, high }, cpu_wait })
    }

    /// Whether the share is large enough to matter, if there is cross traffic.
    pub fn matters(&self) -> bool {
        self.share.value > MIN_SHARE
    }

    /// Whether the interval excludes a link without cross traffic.
    pub fn is_certain(&self) -> bool {
        self.share.low > 0.0
    }

    /// The finding as text, to begin a sentence.
    pub fn words(&self) -> String {
        let [value, low, high] =
            [self.share.value, self.share.low, self.share.high].map(|share| share * 100.0);
        match (self.is_certain(), self.cpu_wait) {
            (false, Some(wait)) => format!(
                "this host was busy (its threads waited {wait} for a CPU), so cross traffic may use none of the link, or up to {high:.0} %"
            ),
            (true, _) => {
                format!("cross traffic uses {value:.0} % of the link ({low:.0} to {high:.0} %)")
            }
            (false, None) => {
                format!(
                    "cross traffic may use {value:.0} % of the link, or none of it (0 to {high:.0} %)"
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found([low, value, high]: [u64; 3]) -> Finding<Rate> {
        let [low, value, high] = [low, value, high].map(Rate::from_mbit_per_second);
        Finding::known(value, low, high, "")
    }

    /// 1 - 80/100 = 20 %; in the worst case 1 - 90/96 = 6 % and 1 - 70/104 = 33 %.
    #[test]
    fn cross_traffic_is_certain_if_the_worst_case_leaves_some() {
        let cross = CrossTraffic::of(&found([96, 100, 104]), &found([70, 80, 90]), None).unwrap();
        assert!(cross.is_certain() && cross.matters());
        assert_eq!(cross.words(), "cross traffic uses 20 % of the link (6 to 33 %)");
    }

    /// 98 of 96 is everything, so 0 %; the other end is 1 - 52/104 = 50 %.
    #[test]
    fn cross_traffic_is_uncertain_if_its_interval_includes_zero() {
        let cross = CrossTraffic::of(&found([96, 100, 104]), &found([52, 80, 98]), None).unwrap();
        assert!(!cross.is_certain() && cross.matters());
        assert_eq!(
            cross.words(),
            "cross traffic may use 20 % of the link, or none of it (0 to 50 %)"
        );
    }

    #[test]
    fn cross_traffic_on_a_busy_host_is_reported_with_its_cpu_wait() {
        let wait = Some(Duration::from_micros(1500));
        let cross = CrossTraffic::of(&found([96, 100, 104]), &found([52, 69, 100]), wait).unwrap();
        let words = "this host was busy (its threads waited 1.5 ms for a CPU), so cross traffic may use none of the link, or up to 50 %";
        assert_eq!(cross.words(), words);
    }

    #[test]
    fn cross_traffic_within_the_error_does_not_matter() {
        let cross = CrossTraffic::of(&found([99, 100, 101]), &found([95, 96, 100]), None).unwrap();
        assert!(!cross.matters());
    }
}
