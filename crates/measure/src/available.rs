//! Available bandwidth: the part of the narrow link's capacity that cross traffic leaves.

use sweetspot_statistics::{mean_interval, median};
use sweetspot_units::{Duration, Rate};

use crate::dispersion::dispersion;
use crate::finding::Finding;
use crate::observation::StreamRecord;
use crate::trend::{OVERFLOW_SHARE, Trend, growth, trend};

/// Minimum half-width of the interval as a share of the capacity, due to clocks and the capacity's own error.
const MIN_HALF_WIDTH: f64 = 0.01;

/// A stream is well above the available bandwidth if it exceeds it by this share of the capacity.
const CLEAR_EXCESS: f64 = 0.15;

/// The available bandwidth of a link of `capacity`, from `streams` with known rates. A growth of delays by less than `noise`
/// over a stream counts as none.
///
/// A stream of rate R above the available bandwidth A builds a queue at R - A, so its delays grow by (R - A) / C per second.
/// Each gives the estimate A = R - C x growth; the result is the mean over those well above A. Streams without growth are
/// lower bounds.
pub fn available_bandwidth(
    capacity: Rate,
    streams: &[StreamRecord],
    noise: Duration,
) -> Finding<Rate> {
    let (mut judged, mut steady, mut min_above) = (Vec::new(), 0.0f64, f64::INFINITY);
    for stream in streams {
        let Some(rate) = dispersion(stream).map(|found| found.rate_in.as_f64()) else { continue };
        let trend = trend(stream, noise);
        match trend {
            Some(Trend::Increasing) => min_above = min_above.min(rate),
            Some(Trend::Steady) => steady = steady.max(rate),
            _ => {}
        }
        judged.extend(from_one(capacity.as_f64(), stream).map(|found| (rate, found, trend)));
    }
    let found = well_above(capacity.as_f64(), &judged);
    let max = capacity.as_f64();
    let half_min = max * MIN_HALF_WIDTH;
    let bound = |rate: f64| Rate::from_f64(rate.clamp(0.0, max).round());
    match mean_interval(&found) {
        Some((mean, half)) => {
            let half = half.max(half_min);
            // Cross traffic that yields to one stream may not yield to another, so the available bandwidth is between their
            // estimates.
            let range = found.iter().fold((mean - half, mean + half), |range, one| {
                (range.0.min(*one), range.1.max(*one))
            });
            let how = format!(
                "growth of delays in {} self-loading streams, of {} sent",
                found.len(),
                streams.len()
            );
            Finding::known(bound(mean), bound(range.0), bound(range.1), how)
        }
        None if steady > 0.0 => Finding::known(
            bound(steady.min(min_above)),
            bound(steady.min(min_above)),
            bound(min_above),
            "the fastest stream whose delays did not grow",
        ),
        None => Finding::unknown("every stream lost too many packets to judge its delays"),
    }
}

/// The estimates of streams with a rate well above the available bandwidth. They certainly keep the link busy, so the
/// selection adds no bias.
fn well_above(capacity: f64, judged: &[(f64, f64, Option<Trend>)]) -> Vec<f64> {
    let grew = judged.iter().filter(|(.., trend)| *trend == Some(Trend::Increasing));
    let grew: Vec<f64> = grew.map(|(_, found, _)| *found).collect();
    let Some(first) = median(grew.iter().copied()) else { return grew };
    let clear = judged.iter().filter(|(rate, ..)| *rate >= first + capacity * CLEAR_EXCESS);
    let clear: Vec<f64> = clear.map(|(_, found, _)| *found).collect();
    if clear.len() >= 2 { clear } else { grew }
}

/// The estimate of one stream above the available bandwidth. If the buffer overflowed, delays stop growing, and the arrival
/// rate C R / (R + X) gives the estimate instead.
fn from_one(capacity: f64, stream: &StreamRecord) -> Option<f64> {
    let found = dispersion(stream)?;
    let rate = found.rate_in.as_f64();
    let growth = if f64::from(stream.lost()) > f64::from(stream.sent) * OVERFLOW_SHARE {
        rate / found.rate_out.as_f64() - 1.0
    } else {
        growth(stream)?
    };
    Some(rate - capacity * growth)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observation::Arrival;
    use proptest::prelude::*;
    use sweetspot_units::{Bytes, Time};

    /// 200 packets of 1250 bytes at `rate` over a link of `capacity` with an available bandwidth of `available`.
    fn fluid(rate: f64, capacity: f64, available: f64) -> StreamRecord {
        let growth = ((rate - available) / capacity).max(0.0);
        let arrivals = (0..200u32).map(|n| {
            let sent = f64::from(n) * 1e4 / rate;
            Arrival {
                index: n,
                sent: Time::ZERO + Duration::from_secs_f64(sent),
                received: Time::ZERO + Duration::from_secs_f64(5.0 + sent * (1.0 + growth)),
            }
        });
        StreamRecord { sent: 200, size: Bytes::new(1250), arrivals: arrivals.collect() }
    }

    proptest! {
        #[test]
        fn streams_above_the_available_bandwidth_reveal_it(
            capacity in 1e6..1e9, share in 0.0..1.0f64, excess in proptest::collection::vec(0.1..0.6f64, 2..6),
        ) {
            let truth = share * capacity;
            let streams: Vec<_> =
                excess.iter().map(|e| fluid(truth + e * capacity, capacity, truth)).collect();
            let noise = Duration::from_micros(1);
            let found = available_bandwidth(Rate::from_f64(capacity), &streams, noise);
            let found = found.value().unwrap().as_f64();
            prop_assert!((found - truth).abs() < 0.002 * capacity, "{found} of {truth}");
        }
    }

    #[test]
    fn streams_without_growing_delays_give_a_lower_bound() {
        let streams = [fluid(4e7, 1e8, 7e7), fluid(6e7, 1e8, 7e7)];
        let found = available_bandwidth(Rate::from_f64(1e8), &streams, Duration::from_millis(1));
        assert!((found.value().unwrap().as_f64() - 6e7).abs() < 1e5, "{found:?}");
        assert_eq!(found.estimate().unwrap().high, Rate::from_f64(1e8));
    }
}
