use std::collections::VecDeque;

use sweetspot_units::{Bytes, Duration, Rate, Time};

/// For how long looks are kept: a few of the longest round trips.
const KEPT: Duration = Duration::from_secs(2);

/// What was delivered, look by look, of late.
#[derive(Debug, Default)]
pub struct Recent {
    looks: VecDeque<(Time, Bytes)>,
}

impl Recent {
    /// By `now` so much had been delivered.
    pub fn handle_look(&mut self, now: Time, delivered: Bytes) {
        self.looks.push_back((now, delivered));
        while self.looks.front().is_some_and(|(at, _)| now.since(*at) > KEPT) {
            self.looks.pop_front();
        }
    }

    /// The rate from the first look at or after `since` to the last one.
    pub fn rate_since(&self, since: Time) -> Option<Rate> {
        let (end, total) = *self.looks.back()?;
        let (begin, before) = *self.looks.iter().find(|(at, _)| *at >= since)?;
        (end > begin).then(|| total.saturating_sub(before) / end.since(begin))
    }

    /// The rate between the first look after `since` and the last one before `until`; `None` where
    /// nobody looked for the better part of that time.
    pub fn rate_between(&self, since: Time, until: Time) -> Option<Rate> {
        let mut within = self.looks.iter().filter(|(at, _)| (since..=until).contains(at));
        let (begin, before) = *within.next()?;
        let (end, total) = *within.next_back()?;
        let span = end.since(begin);
        (span * 2 > until.since(since)).then(|| total.saturating_sub(before) / span)
    }

    /// The rate over the last `span`, at least; `None` until so much is known.
    pub fn rate_over(&self, span: Duration) -> Option<Rate> {
        let (end, total) = *self.looks.back()?;
        let old_enough = |(at, _): &&(Time, Bytes)| end.since(*at) >= span;
        let (begin, before) = *self.looks.iter().rev().find(old_enough)?;
        Some(total.saturating_sub(before) / end.since(begin))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_that_between_two_looks() {
        let at = |ms: u64| Time::from_nanos(ms * 1_000_000);
        let mut recent = Recent::default();
        assert_eq!(recent.rate_over(Duration::from_millis(40)), None);
        // 1 kB per ms until 100, then 2 kB per ms.
        for ms in (0..=200).step_by(20) {
            recent.handle_look(at(ms), Bytes::new(1000 * ms + 1000 * ms.saturating_sub(100)));
        }
        // From 170 on: 40 kB between the looks at 180 and at 200.
        assert_eq!(recent.rate_since(at(170)), Some(Rate::from_mbit_per_second(16)));
        // At least 150 ms: 50 ms at 1 kB (from 40 on) and 100 ms at 2 kB make 260 kB in 160 ms.
        assert_eq!(
            recent.rate_over(Duration::from_millis(150)),
            Some(Rate::from_mbit_per_second(13))
        );
        // Nobody looked since.
        assert_eq!(recent.rate_since(at(201)), None);
    }
}
