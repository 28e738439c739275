use sweetspot_units::{Bytes, Duration, Rate, Time};

/// Receive throughput between two arrivals.
///
/// Data reach the application in blocks. A TLS record is 16 kB, more than a tenth of 50 ms at 20 Mbit/s, so the bytes of a
/// fixed interval are off by up to a block. Between two arrivals the count is exact: all blocks after the first, including the
/// last.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    first: Option<Time>,
    last: Option<Time>,
    bytes: Bytes,
}

impl Meter {
    /// Payload reached the application. If `bytes` is zero, `now` is the time of a sample and not of an arrival.
    pub(crate) fn handle_data(&mut self, now: Time, bytes: Bytes) {
        if bytes == Bytes::ZERO {
            return;
        }
        match self.first {
            None => self.first = Some(now),
            Some(_) => self.bytes += bytes,
        }
        self.last = Some(now);
    }

    /// The time between the first and the last arrival.
    pub(crate) fn span(&self) -> Duration {
        self.first.zip(self.last).map_or(Duration::ZERO, |(first, last)| last.since(first))
    }

    /// Ends the measurement; the next begins with its last arrival. Returns the rate, or `None` with fewer than two arrivals.
    pub(crate) fn take(&mut self) -> Option<Rate> {
        let span = self.span();
        let rate = (span > Duration::ZERO).then(|| self.bytes / span);
        self.first = self.last;
        self.bytes = Bytes::ZERO;
        rate
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_sample_does_not_raise_the_next_rate() {
        let at = |ms: u64| Time::from_nanos(ms * 1_000_000);
        let mut meter = Meter::default();
        meter.handle_data(at(0), Bytes::new(1000));
        meter.handle_data(at(90), Bytes::ZERO);
        assert_eq!((meter.span(), meter.take()), (Duration::ZERO, None));
        meter.handle_data(at(100), Bytes::new(100_000));
        // 100 kB in 100 ms.
        assert_eq!(meter.take(), Some(Rate::from_mbit_per_second(8)));
    }
}
