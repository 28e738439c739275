//! The base RTT and the variation of RTTs.

use sweetspot_statistics::Sorted;
use sweetspot_units::{Duration, Rate, Time};

use crate::finding::{Estimate, Finding};
use crate::observation::{Echo, EchoRecord};

/// RTTs of single packets on an otherwise idle path.
#[derive(Debug, Clone, PartialEq)]
pub struct RoundTrip {
    /// Propagation and processing: the min RTT, less the packet's serialisation time.
    pub base: Finding<Duration>,
    /// The median RTT.
    pub median: Finding<Duration>,
    /// The difference between the 5th and the 95th percentile.
    pub variation: Finding<Duration>,
}

impl RoundTrip {
    /// No RTT, because of `why`.
    pub(crate) fn unknown(why: &str) -> RoundTrip {
        RoundTrip {
            base: Finding::unknown(why),
            median: Finding::unknown(why),
            variation: Finding::unknown(why),
        }
    }
}

/// The minimum delay that two hosts' schedulers and network cards add to an RTT; wake-ups on Linux take about 0.1 ms.
const HOST_DELAY: Duration = Duration::from_micros(100);
/// Minimum number of echoes for a variation.
const MIN_ECHOES: usize = 10;

/// The RTT from `records`; the first precedes all other steps. If known, the `capacities` of both directions give a
/// packet's own serialisation time.
pub fn round_trip(records: &[EchoRecord], capacities: [Option<Estimate<Rate>>; 2]) -> RoundTrip {
    let changed = path_change(records).is_some();
    let first = &records[..records.len().min(1)];
    // If the path changed, the result is for its first state.
    let for_base = if changed { first } else { records };
    let own = |record: &EchoRecord, of: fn(Estimate<Rate>) -> Rate| -> f64 {
        capacities.iter().flatten().map(|rate| (record.size / of(*rate)).as_secs_f64()).sum()
    };
    let samples = first.iter().flat_map(|record| {
        let own = own(record, |rate| rate.value);
        record.echoes.iter().map(move |echo| (echo.round_trip().as_secs_f64() - own).max(0.0))
    });
    let samples: Sorted = samples.collect();
    let sent: u32 = first.iter().map(|record| record.sent).sum();
    let at = |share| samples.quantile(share);
    let span = |seconds: f64| Duration::from_secs_f64(seconds.max(0.0));
    let bases = for_base.iter().filter_map(|record| {
        let base = base(record)?;
        let own = [own(record, |c| c.high), own(record, |c| c.value), own(record, |c| c.low)];
        Some([base[0] - own[2], base[1] - own[1], base[2] - own[0]])
    });
    // The measurement's own queue may not have drained when later echoes are sent.
    let min = bases.min_by(|a, b| a[2].total_cmp(&b[2]));
    let (Some([lowest, base, highest]), Some(low), Some(middle), Some(high)) =
        (min, at(0.05), at(0.5), at(0.95))
    else {
        let why = match sent {
            0 => "no echoes were sent".to_owned(),
            sent => format!("none of {sent} echoes came back"),
        };
        return RoundTrip::unknown(&why);
    };
    let how = format!("{} of {sent} echoes answered", samples.len());
    let base = Finding::known(
        span(base),
        span(lowest.min(base - HOST_DELAY.as_secs_f64())),
        span(highest),
        format!("the earliest each way; {how}"),
    );
    let enough = samples.len() >= MIN_ECHOES;
    let few = || Finding::unknown(format!("{how}; at least {MIN_ECHOES} are needed"));
    let median = Finding::known(span(middle), span(low), span(high), how.clone());
    let variation = if enough {
        let max = at(1.0).unwrap_or(high) - at(0.0).unwrap_or(low);
        let quarter = at(0.75).unwrap_or(high) - at(0.25).unwrap_or(low);
        Finding::known(span(high - low), span(quarter), span(max), format!("5 to 95 %; {how}"))
    } else {
        few()
    };
    RoundTrip { base, median, variation }
}

/// F(4, 4) is below this with a probability of 95 %.
const F_4_4: f64 = 6.39;
/// If the difference of the one-way delays has more than this multiple of the variance of their sum, the clocks drifted.
const MAX_CLOCK_SHARE: f64 = 4.0;

/// The min RTT without queues: its lower bound, the value, and its upper bound, seconds.
///
/// The earliest packet of each direction counts, because one echo is rarely early in both; the clocks' offset cancels in the
/// sum. The distributions end before the earliest sample, by about its distance to the second one (Robson, Whitlock 1964,
/// "Estimation of a truncation point"). If the density does not vanish at the end, both gaps are exponential. The ratio of the
/// unseen gaps to the seen ones, each summed over both directions, is then distributed as F(4, 4).
fn base(record: &EchoRecord) -> Option<[f64; 3]> {
    let trips: Sorted = record.echoes.iter().map(|echo| echo.round_trip().as_secs_f64()).collect();
    let forward = ends(record.echoes.iter().map(|echo| (echo.sent, echo.reflected)));
    let reverse =
        ends(record.echoes.iter().map(|echo| (echo.reflected + echo.held, echo.received)));
    match forward.zip(reverse).filter(|_| keeps_time(record)) {
        Some(([min, second], [min_back, second_back])) => {
            let earliest = min + min_back;
            let gaps = second + second_back - earliest;
            Some([earliest - F_4_4 * gaps, earliest - gaps, earliest])
        }
        None => {
            let (min, low) = (trips.quantile(0.0)?, trips.quantile(0.05)?);
            // The minimum of n samples exceeds the base by at most about as much as the 5th percentile exceeds the minimum.
            Some([2.0 * min - low, min, min])
        }
    }
}

/// The two smallest delays, for any clock offset.
fn ends(delays: impl Iterator<Item = (Time, Time)>) -> Option<[f64; 2]> {
    let delay = |(from, to): (Time, Time)| to.as_nanos().wrapping_sub(from.as_nanos()) as i64;
    let mut delays: Vec<i64> = delays.map(delay).collect();
    delays.sort_unstable();
    match delays[..] {
        [first, second, ..] => Some([first as f64 / 1e9, second as f64 / 1e9]),
        _ => None,
    }
}

/// Whether the two clocks ran at the same speed. A drift adds to one direction's delay and subtracts from the other's, so their
/// difference varies and their sum does not. Queues and jitter vary both alike.
fn keeps_time(record: &EchoRecord) -> bool {
    let spread = |of: &dyn Fn(&Echo) -> i64| {
        let values: Vec<i64> = record.echoes.iter().map(of).collect();
        let origin = values.first().copied().unwrap_or(0);
        let values: Vec<f64> = values.iter().map(|v| v.wrapping_sub(origin) as f64).collect();
        let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
        values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>()
    };
    let one_way = |from: Time, to: Time| to.as_nanos().wrapping_sub(from.as_nanos()) as i64;
    let forward = |echo: &Echo| one_way(echo.sent, echo.reflected);
    let reverse = |echo: &Echo| one_way(echo.reflected + echo.held, echo.received);
    let sum = spread(&|echo| forward(echo).wrapping_add(reverse(echo)));
    spread(&|echo| forward(echo).wrapping_sub(reverse(echo))) <= MAX_CLOCK_SHARE * sum
}

/// Base RTTs that differ by more than this, and by more than this share, belong to two different paths.
const OTHER_PATH: Duration = Duration::from_millis(2);
const OTHER_PATH_SHARE: f64 = 0.1;

/// The base RTTs of the first and last record, if their difference shows that the path or a clock changed in between.
pub fn path_change(records: &[EchoRecord]) -> Option<(Duration, Duration)> {
    let min = |record: &EchoRecord| record.echoes.iter().map(|echo| echo.round_trip()).min();
    let (first, last) = (min(records.first()?)?, min(records.last()?)?);
    let apart = first.max(last).saturating_sub(first.min(last));
    (apart > OTHER_PATH.max(first.min(last).scaled(OTHER_PATH_SHARE))).then_some((first, last))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use sweetspot_path::Random;
    use sweetspot_units::Bytes;

    /// Echoes with these RTTs, in milliseconds.
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
    fn a_route_change_is_distinguished_from_queueing() {
        let ms = Duration::from_millis;
        let changed = path_change(&[echoes(&[40, 45, 41]), echoes(&[70, 75, 71])]);
        assert_eq!(changed, Some((ms(40), ms(70))));
        // A queue delays most echoes of the second record, but not all.
        assert_eq!(path_change(&[echoes(&[40, 45]), echoes(&[90, 80, 41])]), None);
        assert_eq!(path_change(&[echoes(&[40]), echoes(&[])]), None);
    }

    proptest! {
        /// 125 bytes take 1 ms at 1 Mbit/s in each direction.
        #[test]
        fn the_base_rtt_is_the_min_rtt_without_transmission_time(
            waits in proptest::collection::vec(0u64..50_000, 10..60), base in 5_000u64..500_000, ahead in 0u64..u64::MAX / 4,
        ) {
            let us = Duration::from_micros;
            let min = waits.iter().min().copied().unwrap_or(0);
            let echoes = waits.iter().enumerate().map(|(n, wait)| {
                let sent = Time::ZERO + us(n as u64 * 1_000_000);
                Echo {
                    sent,
                    // The far end's clock has an offset.
                    reflected: Time::from_nanos(ahead),
                    held: us(300),
                    received: sent + us(2000 + 300 + base + wait),
                }
            });
            let record = EchoRecord { sent: 60, size: Bytes::new(125), echoes: echoes.collect() };
            let rate = Rate::from_mbit_per_second(1);
            let rate = Some(Estimate { value: rate, low: rate, high: rate });
            let found = round_trip(&[record], [rate, rate]).base.estimate().unwrap();
            let off = found.value.as_secs_f64() - us(base + min).as_secs_f64();
            prop_assert!(off.abs() < 2e-9);
            prop_assert!(found.low <= found.value && found.value <= found.high);
        }
    }

    /// Echoes with 40 ms in each direction plus up to `jitter_ms` each. The far end's clock is ahead by `ahead` of the echo's
    /// number.
    fn jittery(seed: u64, jitter_ms: f64, ahead: impl Fn(u64) -> u64) -> EchoRecord {
        let mut random = Random::new(seed);
        let mut way = || Duration::from_secs_f64(0.04 + jitter_ms * 1e-3 * random.unit());
        let echoes = (0..60).map(|n| {
            let sent = Time::ZERO + Duration::from_millis(n * 20);
            let forward = sent + way();
            Echo {
                sent,
                reflected: Time::from_nanos(forward.as_nanos().wrapping_add(ahead(n))),
                held: Duration::ZERO,
                received: forward + way(),
            }
        });
        EchoRecord { sent: 60, size: Bytes::new(100), echoes: echoes.collect() }
    }

    #[test]
    fn base_rtt_intervals_have_95_percent_coverage_under_jitter() {
        let (mut held, mut near) = (0, 0);
        for seed in 0..400 {
            let record = jittery(seed, 5.0, |_| u64::MAX - 5_000_000);
            let found = round_trip(&[record], [None, None]).base.estimate().unwrap();
            let base = Duration::from_millis(80);
            held += u32::from((found.low..=found.high).contains(&base));
            // The expected distance to each direction's minimum is 5 ms / 61.
            near += u32::from((found.value.as_secs_f64() - base.as_secs_f64()).abs() < 0.3e-3);
        }
        // Three standard deviations (400 x 0.95 x 0.05 = 19 is the variance) below 380.
        assert!(held >= 367, "{held} of 400");
        assert!(near >= 360, "{near} of 400");
    }

    #[test]
    fn a_clock_jump_does_not_shorten_the_base_rtt() {
        let jump = |n: u64| if n < 30 { 0 } else { 30_000_000 };
        let found = round_trip(&[jittery(3, 5.0, jump)], [None, None]).base.estimate().unwrap();
        assert!(found.value >= Duration::from_millis(80), "{found:?}");
    }
}
