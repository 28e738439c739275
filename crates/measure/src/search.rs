//! The rates of the streams that search for the available bandwidth.

use sweetspot_units::Rate;

use crate::trend::Trend;

/// The search ends when the bounds differ by less than this share of the capacity.
const RESOLUTION: f64 = 0.1;
/// Streams for averaging exceed the middle of the bounds by this share of the capacity, so that the link is never
/// idle during a stream.
const AVERAGING_EXCESS: f64 = 0.3;

/// A stream's verdict on its rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The rate is above the available bandwidth.
    Above,
    /// The rate is below it.
    Below,
    /// The stream does not tell.
    Unclear,
}

impl From<Option<Trend>> for Verdict {
    fn from(trend: Option<Trend>) -> Verdict {
        match trend {
            Some(Trend::Increasing) => Verdict::Above,
            Some(Trend::Steady) => Verdict::Below,
            _ => Verdict::Unclear,
        }
    }
}

/// Narrows the range of the available bandwidth by bisection, one stream at a time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RateSearch {
    capacity: Rate,
    low: f64,
    high: f64,
    streams: u32,
}

impl RateSearch {
    /// A search between zero and `capacity`.
    pub fn new(capacity: Rate) -> RateSearch {
        RateSearch { capacity, low: 0.0, high: capacity.as_f64(), streams: 0 }
    }

    /// The rate of the next stream; `None` once the bounds are close, or after `max` streams.
    pub fn next_rate(&self, max: u32) -> Option<Rate> {
        let close = self.high - self.low <= self.capacity.as_f64() * RESOLUTION;
        (!close && self.streams < max).then(|| Rate::from_f64((self.low + self.high) / 2.0))
    }

    /// Handles the verdict on a stream of `rate`. An unclear stream is close, so the range shrinks from both sides.
    pub fn handle(&mut self, rate: Rate, verdict: Verdict) {
        self.streams += 1;
        let (low, high) = (self.low, self.high);
        match verdict {
            Verdict::Above => self.high = rate.as_f64().clamp(low, high),
            Verdict::Below => self.low = rate.as_f64().clamp(low, high),
            Verdict::Unclear => {
                self.low = (low + rate.as_f64().clamp(low, high)) / 2.0;
                self.high = (high + rate.as_f64().clamp(low, high)) / 2.0;
            }
        }
    }

    /// The bounds so far.
    pub fn bounds(&self) -> (Rate, Rate) {
        (Rate::from_f64(self.low), Rate::from_f64(self.high))
    }

    /// The rate of the streams for averaging.
    pub fn averaging_rate(&self) -> Rate {
        let middle = (self.low + self.high) / 2.0;
        Rate::from_f64(middle + self.capacity.as_f64() * AVERAGING_EXCESS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn correct_verdicts_bracket_the_truth_within_a_tenth_of_the_capacity(
            share in 0.0..1.0f64, capacity in 1e6..1e10,
        ) {
            let mut search = RateSearch::new(Rate::from_f64(capacity));
            let truth = share * capacity;
            while let Some(rate) = search.next_rate(20) {
                let above = rate.as_f64() > truth;
                search.handle(rate, if above { Verdict::Above } else { Verdict::Below });
            }
            let (low, high) = search.bounds();
            prop_assert!(low.as_f64() <= truth + 1.0 && truth <= high.as_f64() + 1.0);
            prop_assert!(high.as_f64() - low.as_f64() <= capacity * 0.1 + 1.0);
        }
    }
}
