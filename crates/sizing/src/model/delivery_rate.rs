use std::collections::VecDeque;

use sweetspot_units::{Bytes, Duration, Rate, Time};

/// Payload that one ACK may cover: the largest segment that Linux passes to a network device (`GSO_LEGACY_MAX_SIZE`). With
/// less payload, a rate would only measure a burst or a pause.
pub(crate) const BURST: Bytes = Bytes::new(65_536);

/// Pacing rate that leaves no queue, as a share of the path's rate. The remaining 1 % is the price of an empty buffer. If the
/// window is to stay the limit, the pacing rate exceeds the path's rate by 1 % instead.
pub(crate) const PACE_SHARE: f64 = 0.99;

/// The delivery rate over recent spans of time. A span without deliveries has no rate: an outage
/// says nothing about the path's capacity.
#[derive(Debug, Default)]
pub(crate) struct DeliveryRate {
    total: Bytes,
    deliveries: VecDeque<(Time, Bytes)>,
}

impl DeliveryRate {
    /// `bytes` were delivered since the last call. Drops records older than `kept`, but keeps at least a burst.
    pub(crate) fn handle_delivery(&mut self, now: Time, bytes: Bytes, kept: Duration) {
        self.total += bytes;
        self.deliveries.push_back((now, self.total));
        let suffices =
            |(at, total): &(Time, Bytes)| now.since(*at) >= kept && *total + BURST <= self.total;
        while self.deliveries.get(1).is_some_and(suffices) {
            self.deliveries.pop_front();
        }
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

    /// The rate over at least the last `span` and the last burst; `None` until deliveries cover both.
    pub(crate) fn over(&self, span: Duration) -> Option<Rate> {
        let last = self.deliveries.back()?;
        let suffices =
            |first: &(Time, Bytes)| last.0.since(first.0) >= span && last.1 >= first.1 + BURST;
        let first = self.deliveries.iter().rev().find(|first| suffices(first))?;
        rate(first, last)
    }
}

fn rate((begin, before): &(Time, Bytes), (end, total): &(Time, Bytes)) -> Option<Rate> {
    (end > begin)
        .then(|| total.saturating_sub(*before) / end.since(*begin))
        .filter(|r| *r > Rate::ZERO)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_measured_between_two_deliveries() {
        let at = |ms: u64| Time::from_nanos(ms * 1_000_000);
        let mut delivered = DeliveryRate::default();
        assert_eq!(delivered.over(Duration::from_millis(40)), None);
        // 1 kB per ms until 100, then 2 kB per ms.
        for ms in (20..=200).step_by(20) {
            let bytes = if ms <= 100 { 20_000 } else { 40_000 };
            delivered.handle_delivery(at(ms), Bytes::new(bytes), Duration::MAX);
        }
        // From 170 on: 40 kB between 180 and 200.
        assert_eq!(delivered.since(at(170)), Some(Rate::from_mbit_per_second(16)));
        // At least 150 ms: 60 ms at 1 kB (from 40 on) and 100 ms at 2 kB make 260 kB in 160 ms.
        let rate = delivered.over(Duration::from_millis(150));
        assert_eq!(rate, Some(Rate::from_mbit_per_second(13)));
        // No data arrived after 200 ms; the last burst was delivered from 160 ms on.
        assert_eq!(delivered.since(at(201)), None);
        delivered.handle_delivery(at(300), Bytes::ZERO, Duration::MAX);
        let rate = delivered.over(Duration::from_millis(50));
        assert_eq!(rate, Some(Bytes::new(80_000) / Duration::from_millis(140)));
    }

    #[test]
    fn a_delivery_rate_is_never_measured_over_a_pause_alone() {
        let at = |ms: u64| Time::from_nanos(ms * 1_000_000);
        let (kept, mut delivered) = (Duration::from_millis(40), DeliveryRate::default());
        for ms in 0..=1000 {
            // 1 kB per ms, and a hundredth of that after 500 ms.
            let bytes = if ms <= 500 { 1000 } else { 10 };
            delivered.handle_delivery(at(ms), Bytes::new(bytes), kept);
        }
        // 5 kB in 500 ms, and 61 kB in the 61 ms before.
        assert_eq!(delivered.over(kept), Some(Bytes::new(66_000) / Duration::from_millis(561)));
        assert_eq!(delivered.deliveries.len(), 562);
        for ms in 1001..=1200 {
            delivered.handle_delivery(at(ms), Bytes::new(2000), kept);
        }
        // Neither rate needs older deliveries: 40 ms hold more than a burst.
        assert_eq!(delivered.deliveries.len(), 41);
    }
}
