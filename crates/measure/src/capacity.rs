//! Capacity of the narrow link, from streams that keep it busy.

use sweetspot_statistics::{Line, mean_interval};
use sweetspot_units::{Bytes, Rate};

use crate::dispersion::{BUSY_RATIO, Dispersion, dispersion_behind, idle_share, pair_mode};
use crate::finding::{Bound, Finding};
use crate::observation::StreamRecord;
use crate::token_burst::TokenBurst;

/// Minimum half-width of the interval, due to clocks and other packets.
const MIN_HALF_WIDTH: f64 = 0.005;

/// Half-width of the interval, as a share of the rate, if too few streams show their spread.
const DEFAULT_HALF_WIDTH: f64 = 0.1;

/// The capacity and further properties of the narrow link, estimated from streams.
#[derive(Debug, Clone, PartialEq)]
pub struct CapacityEstimate {
    /// The capacity, measured in IP packets.
    pub capacity: Finding<Rate>,
    /// The depth of a token bucket, if one let the beginning of each stream pass faster.
    pub burst: Option<Bytes>,
    /// The mode of the rates of packet pairs.
    pub pair_mode: Option<Rate>,
    /// Whether the receiver got several packets at a time.
    pub coalesced: bool,
    /// The highest rate of any stream sent.
    pub fastest_in: Rate,
}

/// The capacity, from the arrivals of `streams`.
///
/// A stream sent at rate R that keeps a link of capacity C busy, together with cross traffic X, arrives at Ro = C R / (R + X), so
/// 1/Ro = 1/C + (X/C) (1/R): a line over 1/R with the value 1/C at 0 (Melander, Bjorkman, Gunningberg 2000, "A new end-to-end
/// probing and analysis method", equation 3). Streams are weighted by their length. Only the part after a token bucket's burst
/// counts.
pub fn capacity<'a>(
    streams: impl IntoIterator<Item = &'a StreamRecord> + Clone,
) -> CapacityEstimate {
    let burst = TokenBurst::of(streams.clone().into_iter());
    let passed = |stream| burst.map_or(0, |b| b.packets(stream));
    let shown = |stream| Some((stream, dispersion_behind(stream, passed(stream))?));
    let all: Vec<(&StreamRecord, Dispersion)> =
        streams.clone().into_iter().filter_map(shown).collect();
    let fastest_in = all.iter().map(|(_, d)| d.rate_in).max().unwrap_or(Rate::from_f64(0.0));
    let is_busy = |d: &Dispersion| d.rate_in.as_f64() >= d.rate_out.as_f64() * BUSY_RATIO;
    let busy: Vec<_> = all.iter().copied().filter(|(_, d)| is_busy(d)).collect();
    // If the sender paused, the link was idle: such a stream looks like one with cross traffic, and does not show the link's
    // rate.
    let keeps_busy = |stream| idle_share(stream, passed(stream)) <= MIN_HALF_WIDTH;
    let (uninterrupted, paused): (Vec<_>, Vec<_>) =
        busy.iter().copied().partition(|(stream, _)| keeps_busy(*stream));
    let used = if uninterrupted.is_empty() { &busy } else { &uninterrupted };
    let left_out = if uninterrupted.is_empty() { 0 } else { paused.len() };
    let busy: Vec<Dispersion> = used.iter().map(|(_, found)| *found).collect();
    let coalesced = busy.iter().filter(|d| d.coalesced).count() * 2 > busy.len();
    let capacity = match (all.iter().map(|(_, d)| d.rate_out).max(), busy.is_empty()) {
        (None, _) if streams.clone().into_iter().next().is_none() => {
            Finding::unknown("the measurement ended before the packet trains")
        }
        (None, _) => Finding::unknown("too few packets of the trains arrived"),
        (Some(max), true) => sender_too_slow(max),
        (Some(max), false) => {
            let found = fitted(&busy, burst, left_out);
            let is_wrong = found.value().is_some_and(|rate| is_refuted(rate, &all, &busy));
            if is_wrong { sender_too_slow(max) } else { found }
        }
    };
    let burst = burst.map(|bucket| bucket.bytes);
    CapacityEstimate { capacity, burst, pair_mode: pair_mode(streams), coalesced, fastest_in }
}

fn sender_too_slow(min: Rate) -> Finding<Rate> {
    let why = "the sender could not send fast enough to fill the path";
    Finding::bounded(Bound::AtLeast(min), why)
}

/// Whether more packets passed faster than `capacity`, in streams that the path did not slow down, than in the `busy` streams: a
/// busy host then delayed the latter, as on loopback. A path that slows most packets down has no such streams, apart from short
/// ones that the receiver got at once.
fn is_refuted(capacity: Rate, all: &[(&StreamRecord, Dispersion)], busy: &[Dispersion]) -> bool {
    let limit = capacity.as_f64() * BUSY_RATIO;
    let is_faster = |d: &&Dispersion| {
        d.rate_out.as_f64() > limit && d.rate_in.as_f64() < d.rate_out.as_f64() * BUSY_RATIO
    };
    let faster = all.iter().map(|(_, d)| d).filter(is_faster);
    let packets = |d: &Dispersion| d.packets;
    faster.map(packets).sum::<usize>() > busy.iter().map(packets).sum::<usize>()
}

fn fitted(busy: &[Dispersion], burst: Option<TokenBurst>, left_out: usize) -> Finding<Rate> {
    let points: Vec<_> = busy
        .iter()
        .map(|d| (1.0 / d.rate_in.as_f64(), 1.0 / d.rate_out.as_f64(), d.span.as_secs_f64()))
        .collect();
    let total: f64 = points.iter().map(|(.., w)| w).sum();
    let flat = points.iter().map(|(_, y, w)| y * w).sum::<f64>() / total.max(1e-12);
    // The slope is X/C: cross traffic is neither negative nor above the capacity.
    let line = Line::weighted(&points);
    let slope = line.map_or(0.0, |line| line.slope).clamp(0.0, 1.0);
    let mean_x = line.map_or(0.0, |line| line.mean_x);
    let intercept = flat - slope * mean_x;
    if intercept <= 0.0 {
        return Finding::unknown("the trains contradict each other");
    }
    let rate = 1.0 / intercept;
    let own: Vec<f64> = points.iter().map(|(x, y, _)| 1.0 / (y - slope * x).max(1e-15)).collect();
    let half = mean_interval(&own).map_or(DEFAULT_HALF_WIDTH * rate, |(_, half)| half);
    // The slope is uncertain, too: the fewer streams there are, and the more alike their rates.
    let half = line.map_or(half, |line| {
        let of_line = line
            .intercept_half(&points)
            .map_or(DEFAULT_HALF_WIDTH * rate, |half| half * rate * rate);
        half.max(of_line)
    });
    // Arrivals are accurate only to the time of one packet.
    let packets: usize = busy.iter().map(|d| d.packets).sum();
    let half = half.max(rate * MIN_HALF_WIDTH).max(rate / packets.max(1) as f64);
    let mut how = match busy.len() {
        1 => "dispersion of one stream sent faster than the link".to_owned(),
        n => {
            format!("dispersion of {n} streams sent faster than the link, fitted over their rates")
        }
    };
    if let Some(burst) = burst {
        how += &format!(", behind the {} that a token bucket lets pass at once", burst.bytes);
    }
    if left_out > 0 {
        how += &format!("; {left_out} more left out because a busy host paused");
    }
    let bound = |rate: f64| Rate::from_f64(rate.max(0.0).round());
    Finding::known(bound(rate), bound(rate - half), bound(rate + half), how)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observation::Arrival;
    use proptest::prelude::*;
    use sweetspot_units::{Bytes, Duration, Time};

    /// 200 packets of 1250 bytes at `rate_in` through a busy link of `capacity` with cross traffic at rate `other`.
    fn fluid(rate_in: f64, capacity: f64, other: f64) -> StreamRecord {
        let rate_out = (capacity * rate_in / (rate_in + other)).min(rate_in);
        let at = |n: u32, rate: f64| {
            Time::ZERO + Duration::from_secs_f64(1.0 + f64::from(n) * 1e4 / rate)
        };
        let arrivals =
            (0..200).map(|n| Arrival { index: n, sent: at(n, rate_in), received: at(n, rate_out) });
        StreamRecord { sent: 200, size: Bytes::new(1250), arrivals: arrivals.collect() }
    }

    proptest! {
        #[test]
        fn cross_traffic_does_not_bias_the_capacity_estimate(
            capacity in 1e6..1e9, load in 0.0..0.9f64, speeds in proptest::collection::vec(1.5..20f64, 2..8),
        ) {
            let streams: Vec<_> =
                speeds.iter().map(|s| fluid(s * capacity, capacity, load * capacity)).collect();
            prop_assume!(speeds.iter().any(|s| (s - speeds[0]).abs() > 0.5));
            let found = super::capacity(&streams).capacity.value().unwrap().as_f64();
            prop_assert!((found / capacity - 1.0).abs() < 0.002, "{found} of {capacity}");
        }
    }

    /// A train of 10 Gbit/s through 100 Mbit/s, and two with a pause of 30 and 60 ms after half of their packets, which take 10
    /// ms. Their rates would fit a capacity above the link's.
    #[test]
    fn trains_interrupted_by_sender_pauses_are_excluded() {
        let paused = |pause_us: u64| {
            let at = |us: u64| Time::ZERO + Duration::from_micros(us);
            let mut free = 0;
            let arrivals = (0..200).map(|n| {
                let sent = n + if n < 100 { 0 } else { pause_us };
                free = free.max(sent) + 100;
                Arrival { index: n as u32, sent: at(sent), received: at(1000 + free) }
            });
            StreamRecord { sent: 200, size: Bytes::new(1250), arrivals: arrivals.collect() }
        };
        let found = capacity(&[paused(0), paused(30_000), paused(60_000)]).capacity;
        assert_eq!(found.value(), Some(Rate::from_mbit_per_second(100)));
        let Finding::Known { how, .. } = found else { panic!("{found:?}") };
        assert!(how.ends_with("2 more left out because a busy host paused"), "{how}");
        // Without other streams, they are all there is.
        assert!(capacity(&[paused(30_000)]).capacity.value().is_some());
    }

    /// Two streams are sent at 2 C and 3 C, and the slower one arrives at 0.98 C. The line through 1/Ro then rises from 1/C at
    /// 1/(3 C) to 1.0204/C at 1/(2 C), so it begins at (1 - 2 x 0.0204)/C, 4 % off. Two points cannot show that error, so the
    /// interval must be wide enough for it.
    #[test]
    fn two_streams_give_a_wide_capacity_interval() {
        let found = capacity(&[fluid(2e8, 0.98e8, 0.0), fluid(3e8, 1e8, 0.0)]).capacity;
        let found = found.estimate().unwrap();
        let [low, value, high] =
            [found.low, found.value, found.high].map(|rate| rate.as_f64() / 1e8);
        assert!((value - 1.0 / (1.0 - 2.0 * (1.0 / 0.98 - 1.0))).abs() < 0.002, "{value}");
        assert!(low < 1.0 && 1.0 < high, "{low} to {high}");
    }

    /// Six streams of 1 to 1.5 Gbit/s; a busy host delays two of them to 0.2 Gbit/s, as on loopback. The other 800 of 1200 packets
    /// could not have crossed a link of that rate.
    #[test]
    fn streams_that_a_host_delayed_show_no_capacity() {
        let delayed = |rate| fluid(rate, 2e8, 0.0);
        let free = [1e9, 1.1e9, 1.2e9, 1.5e9].map(|rate| fluid(rate, 2e9, 0.0));
        let all = [&[delayed(1e9), delayed(1.4e9)][..], &free[..]].concat();
        let Finding::Bounded { bound, .. } = capacity(&all).capacity else { panic!("a capacity") };
        let Bound::AtLeast(rate) = bound else { panic!("{bound:?}") };
        // Arrivals are in whole nanoseconds.
        assert!((rate.as_f64() / 1.5e9 - 1.0).abs() < 1e-3, "{rate}");
        // One short stream that the receiver got at once does not outweigh two that the link slowed down.
        let mut short = fluid(1e9, 2e9, 0.0);
        short.arrivals.truncate(6);
        let found = capacity(&[delayed(1e9), delayed(1.4e9), short]).capacity.value();
        assert!(found.is_some_and(|rate| (rate.as_f64() / 2e8 - 1.0).abs() < 0.01), "{found:?}");
    }

    #[test]
    fn a_sender_slower_than_the_path_yields_only_a_lower_bound() {
        let found = capacity(&[fluid(5e6, 1e8, 0.0)]).capacity;
        let Finding::Bounded { bound, why } = found else { panic!("{found:?}") };
        assert_eq!(bound, Bound::AtLeast(Rate::from_mbit_per_second(5)));
        assert!(why.contains("the sender could not send fast enough"), "{why}");
    }
}
