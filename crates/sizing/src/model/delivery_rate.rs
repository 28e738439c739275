use std::collections::VecDeque;

use sweetspot_units::{Bytes, Duration, Rate, Time};

/// Deliveries are kept for this time: a few of the longest round trips.
const DELIVERY_HISTORY: Duration = Duration::from_secs(2);

/// The delivery rate over recent spans of time. A span without deliveries has no rate: an outage
/// says nothing about the path's capacity.
#[derive(Debug, Default)]
pub(crate) struct DeliveryRate {
    total: Bytes,
    /// Total delivered by each time.
    deliveries: VecDeque<(Time, Bytes)>,
}

impl DeliveryRate {
    /// `bytes` were delivered since the last call.
    pub(crate) fn handle_delivery(&mut self, now: Time, bytes: Bytes) {
        self.total += bytes;
        self.deliveries.push_back((now, self.total));
        while self.deliveries.front().is_some_and(|(at, _)| now.since(*at) > DELIVERY_HISTORY) {
            self.deliveries.pop_front();
        }
    }

    /// Total delivered.
    pub(crate) fn total(&self) -> Bytes {
        self.total
    }

    /// The rate from the first delivery at or after `since` to the last one.
    pub(crate) fn since(&self, since: Time) -> Option<Rate> {
        let first = self.deliveries.iter().find(|(at, _)| *at >= since)?;
        rate(first, self.deliveries.back()?)
    }

    /// The rate between the first delivery after `since` and the last one before `until`; `None` if
    /// they do not span most of that time.
    pub(crate) fn between(&self, since: Time, until: Time) -> Option<Rate> {
        let mut within = self.deliveries.iter().filter(|(at, _)| (since..=until).contains(at));
        let (first, last) = (within.next()?, within.next_back()?);
        (last.0.since(first.0) * 2 > until.since(since)).then(|| rate(first, last))?
    }

    /// The rate over at least the last `span`; `None` until deliveries span that time.
    pub(crate) fn over(&self, span: Duration) -> Option<Rate> {
        let last = self.deliveries.back()?;
        let first = self.deliveries.iter().rev().find(|(at, _)| last.0.since(*at) >= span)?;
        rate(first, last)
    }
}

fn rate((begin, before): &(Time, Bytes), (end, total): &(Time, Bytes)) -> Option<Rate> {
    (end > begin && total > before).then(|| total.saturating_sub(*before) / end.since(*begin))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_that_between_two_deliveries() {
        let at = |ms: u64| Time::from_nanos(ms * 1_000_000);
        let mut delivered = DeliveryRate::default();
        assert_eq!(delivered.over(Duration::from_millis(40)), None);
        // 1 kB per ms until 100, then 2 kB per ms.
        for ms in (20..=200).step_by(20) {
            let bytes = if ms <= 100 { 20_000 } else { 40_000 };
            delivered.handle_delivery(at(ms), Bytes::new(bytes));
        }
        // From 170 on: 40 kB between 180 and 200.
        assert_eq!(delivered.since(at(170)), Some(Rate::from_mbit_per_second(16)));
        // At least 150 ms: 60 ms at 1 kB (from 40 on) and 100 ms at 2 kB make 260 kB in 160 ms.
        let rate = delivered.over(Duration::from_millis(150));
        assert_eq!(rate, Some(Rate::from_mbit_per_second(13)));
        // Nothing came since, and then nothing for long.
        assert_eq!(delivered.since(at(201)), None);
        delivered.handle_delivery(at(300), Bytes::ZERO);
        assert_eq!(delivered.over(Duration::from_millis(50)), None);
    }
}
