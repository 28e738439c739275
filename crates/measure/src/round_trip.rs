//! The base round trip and its variation.

use sweetspot_units::{Duration, Rate};

use crate::finding::Finding;
use crate::observation::EchoRecord;
use crate::statistics::{quantile, sorted};

/// Round trips of single packets on an otherwise idle path.
#[derive(Debug, Clone, PartialEq)]
pub struct RoundTrip {
    /// Propagation and processing: the least round trip, less what it takes to send the packet.
    pub base: Finding<Duration>,
    /// The median.
    pub median: Finding<Duration>,
    /// From the 5th percentile to the 95th.
    pub variation: Finding<Duration>,
}

/// What two hosts' schedulers and cards add to a round trip at least, as wake-ups of Linux take it: some 0.1 ms.
const HOSTS: Duration = Duration::from_micros(100);
/// The fewest echoes of which a variation is told.
const LEAST_ECHOES: usize = 10;

/// The round trips in `records`. `capacities` of both directions, where known, say how long a packet itself takes.
pub fn round_trip(records: &[EchoRecord], capacities: [Option<Rate>; 2]) -> RoundTrip {
    let samples = sorted(records.iter().flat_map(|record| {
        let own: f64 =
            capacities.iter().flatten().map(|rate| (record.size / *rate).as_secs_f64()).sum();
        record.echoes.iter().map(move |echo| (echo.round_trip().as_secs_f64() - own).max(0.0))
    }));
    let sent: u32 = records.iter().map(|record| record.sent).sum();
    let at = |share| quantile(&samples, share);
    let span = Duration::from_secs_f64;
    let (Some(least), Some(low), Some(middle), Some(high)) = (at(0.0), at(0.05), at(0.5), at(0.95))
    else {
        let why = format!("none of {sent} echoes came back");
        return RoundTrip {
            base: Finding::unknown(why.clone()),
            median: Finding::unknown(why.clone()),
            variation: Finding::unknown(why),
        };
    };
    let how = format!("{} echoes of {sent}", samples.len());
    // The least of n is above the base by about as much as the 5th percentile is above the least, or less, and by what both
    // hosts take between a packet and its time stamp.
    let base = Finding::known(
        span(least),
        span((2.0 * least - low).min(least - HOSTS.as_secs_f64()).max(0.0)),
        span(least),
        format!("the least of {how}"),
    );
    let enough = samples.len() >= LEAST_ECHOES;
    let few = || Finding::unknown(format!("{how}; it takes {LEAST_ECHOES}"));
    let median = Finding::known(span(middle), span(low), span(high), how.clone());
    let variation = if enough {
        let most = at(1.0).unwrap_or(high) - least;
        let quarter = at(0.75).unwrap_or(high) - at(0.25).unwrap_or(low);
        Finding::known(span(high - low), span(quarter), span(most), format!("5 to 95 % of {how}"))
    } else {
        few()
    };
    RoundTrip { base, median, variation }
}

/// Base round trips that differ by this much and by this part are of two paths.
const OTHER_PATH: Duration = Duration::from_millis(2);
const OTHER_PATH_SHARE: f64 = 0.1;

/// The base round trips of the first record and of the last, if they are so far apart that the path, or a clock, changed
/// in between.
pub fn path_change(records: &[EchoRecord]) -> Option<(Duration, Duration)> {
    let least = |record: &EchoRecord| record.echoes.iter().map(|echo| echo.round_trip()).min();
    let (first, last) = (least(records.first()?)?, least(records.last()?)?);
    let apart = first.max(last).saturating_sub(first.min(last));
    (apart > OTHER_PATH.max(first.min(last).scaled(OTHER_PATH_SHARE))).then_some((first, last))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observation::Echo;
    use proptest::prelude::*;
    use sweetspot_units::{Bytes, Time};

    /// Echoes of so many milliseconds.
    fn echoes(round_trips: &[u64]) -> EchoRecord {
        let echoes = round_trips.iter().map(|ms| Echo {
            sent: Time::ZERO,
            reflected: Time::ZERO,
            held: Duration::ZERO,
            received: Time::ZERO + Duration::from_millis(*ms),
        });
        EchoRecord { sent: 10, size: Bytes::new(100), echoes: echoes.collect() }
    }

    #[test]
    fn a_route_that_changed_is_told_from_a_queue() {
        let ms = Duration::from_millis;
        let changed = path_change(&[echoes(&[40, 45, 41]), echoes(&[70, 75, 71])]);
        assert_eq!(changed, Some((ms(40), ms(70))));
        // A queue stands above most echoes of the second, but not above all.
        assert_eq!(path_change(&[echoes(&[40, 45]), echoes(&[90, 80, 41])]), None);
        assert_eq!(path_change(&[echoes(&[40]), echoes(&[])]), None);
    }

    proptest! {
        /// 125 bytes take 1 ms at 1 Mbit/s, each way.
        #[test]
        fn the_base_is_the_least_round_trip_without_the_packets_own_time(
            waits in proptest::collection::vec(0u64..50_000, 10..60), base in 5_000u64..500_000, ahead in 0u64..u64::MAX / 4,
        ) {
            let us = Duration::from_micros;
            let least = waits.iter().min().copied().unwrap_or(0);
            let echoes = waits.iter().enumerate().map(|(n, wait)| {
                let sent = Time::ZERO + us(n as u64 * 1_000_000);
                Echo {
                    sent,
                    // The far end's clock is somewhere else.
                    reflected: Time::from_nanos(ahead),
                    held: us(300),
                    received: sent + us(2000 + 300 + base + wait),
                }
            });
            let record = EchoRecord { sent: 60, size: Bytes::new(125), echoes: echoes.collect() };
            let rate = Some(Rate::from_mbit_per_second(1));
            let found = round_trip(&[record], [rate, rate]).base.estimate().unwrap();
            let off = found.value.as_secs_f64() - us(base + least).as_secs_f64();
            prop_assert!(off.abs() < 2e-9);
            prop_assert!(found.low <= found.value && found.value <= found.high);
        }
    }
}
