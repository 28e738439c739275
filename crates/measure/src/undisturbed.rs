//! Available bandwidth from packets too few to disturb cross traffic: they cause it neither losses nor delay. Traffic that
//! yields to a measurement therefore does not count as free bandwidth.

use sweetspot_statistics::{Sorted, dependent_mean_interval};
use sweetspot_units::{Rate, Time};

use crate::finding::Finding;
use crate::observation::{Arrival, StreamRecord};

/// Number of parts of the stream. Their differences give the interval.
const PARTS: usize = 12;
/// Minimum number of packets, or pairs, in one part.
const MIN_SAMPLES_PER_PART: usize = 16;
/// A packet found the link idle if it waited for less than this share of a full packet's time on it. The first share above the
/// noise of clocks and schedulers is used.
const NO_WAIT: [f64; 3] = [1.0 / 32.0, 1.0 / 16.0, 1.0 / 8.0];
/// A link idle for less than this share of the time cannot be distinguished from a busy one.
const MIN_IDLE: f64 = 0.02;
/// Minimum half-width of the interval, as a share of the capacity.
const MIN_HALF_WIDTH: f64 = 0.01;
/// Pairs are closer together than they can be only through noise of clocks and schedulers. If that exceeds this share of a
/// packet's time on the link, clipping biases their mean.
const MAX_PAIR_NOISE: f64 = 0.75;

/// The available bandwidth of a link of `capacity`, from the share of time in which it is idle. `sparse` are small packets with
/// exponential gaps; `full_packet` is the path's largest packet size, bytes.
///
/// Poisson arrivals see time averages (Wolff 1982). If the link carries X of cross traffic and R of the measurement, a share P
/// = 1 - (X + R)/C of the packets finds it idle, so A = C - X = C P + R.
pub fn by_idle_time(capacity: Rate, sparse: &StreamRecord, full_packet: f64) -> Finding<Rate> {
    let packet_s = full_packet * 8.0 / capacity.as_f64();
    let waits = waits(sparse);
    let Some(parts) = in_parts(&waits) else {
        return Finding::unknown(format!("{} sparse packets arrived: too few", waits.len()));
    };
    let all: Vec<f64> = waits.iter().map(|(_, wait)| *wait).collect();
    let Some(bound) = NO_WAIT.iter().map(|part| part * packet_s).find(|b| resolves(&all, *b))
    else {
        return Finding::unknown(format!(
            "delays of packets that found no queue vary by more than the {:.0} us that a packet takes on the link",
            packet_s * 1e6
        ));
    };
    let own = own_rate(sparse);
    let shares: Vec<f64> = parts.iter().map(|part| idle_share(part, bound)).collect();
    // A packet dropped by a full buffer found the link busy; a random loss tells nothing.
    let lost = f64::from(sparse.lost()) / f64::from(sparse.sent.max(1));
    let max = capacity.as_f64();
    let how = format!("share of {} sparse packets that found the link idle (PASTA)", waits.len());
    interval(max, &shares, |share| max * share + own, max * lost, how)
}

/// The available bandwidth, from the spacing of pairs of full packets sent closer together than the link's serialisation time
/// (Strauss, Katabi, Kaashoek 2003, "A measurement study of available bandwidth estimation tools", equation 2).
///
/// The first packet keeps the link busy until the second arrives, so their spacing after the link consists of one packet and
/// the cross traffic in between: C t_out = L + X t_in.
pub fn by_pairs(capacity: Rate, pairs: &StreamRecord) -> Finding<Rate> {
    let bits = pairs.size.as_f64() * 8.0;
    let packet_s = bits / capacity.as_f64();
    let gaps: Vec<(f64, f64)> =
        gaps(pairs).into_iter().filter(|(t_in, _)| *t_in > 0.0 && *t_in <= packet_s).collect();
    let Some(parts) = in_parts(&gaps) else {
        return Finding::unknown(format!("{} pairs arrived: too few", gaps.len()));
    };
    let out: Sorted = gaps.iter().map(|(_, t_out)| *t_out).collect();
    let closest = out.quantile(0.05).unwrap_or(0.0);
    if closest < packet_s * (1.0 - MAX_PAIR_NOISE) {
        return Finding::unknown("pairs arrive closer together than the link can send them");
    }
    let max = capacity.as_f64();
    let others: Vec<f64> = parts
        .iter()
        .map(|part| {
            let (t_in, t_out) = part.iter().fold((0.0, 0.0), |sum, g| (sum.0 + g.0, sum.1 + g.1));
            (max * t_out - bits * part.len() as f64) / t_in
        })
        .collect();
    let how = format!("the spacing of {} packet pairs on arrival", gaps.len());
    interval(max, &others, |others| max - others, 0.0, how)
}

fn interval(
    capacity: f64,
    samples: &[f64],
    available: impl Fn(f64) -> f64,
    less: f64,
    how: String,
) -> Finding<Rate> {
    let Some((mean, half)) = dependent_mean_interval(samples) else {
        return Finding::unknown("too few packets arrived");
    };
    let (one, other) = (available(mean - half), available(mean + half));
    let min = capacity * MIN_HALF_WIDTH;
    let bound = |rate: f64| Rate::from_f64(rate.clamp(0.0, capacity).round());
    // An estimate below zero or above the capacity is one of these, with an error.
    let value = available(mean).clamp(0.0, capacity);
    let low = one.min(other).min(value - min) - less;
    Finding::known(bound(value), bound(low), bound(one.max(other).max(value + min)), how)
}

/// The share of packets that did not wait: those with a wait below `bound`, minus those that met the end of a service time.
/// There are as many of the latter between `bound` and twice `bound`.
fn idle_share(part: &[(f64, f64)], bound: f64) -> f64 {
    let below = |bound: f64| part.iter().filter(|(_, wait)| *wait < bound).count() as f64;
    ((2.0 * below(bound) - below(2.0 * bound)) / part.len() as f64).clamp(0.0, 1.0)
}

/// Whether noise stays below `bound`, so that packets that found the link idle stand out. Waits of packets that met another in
/// service are evenly distributed, so there must be no more waits from 0.5 to 1 `bound` than from 1 to 1.5. Most packets below
/// `bound` must have found the link idle.
fn resolves(waits: &[f64], bound: f64) -> bool {
    let between =
        |low: f64, high: f64| waits.iter().filter(|w| (low..high).contains(*w)).count() as f64;
    let (noisy, free) = (between(0.5 * bound, bound), between(bound, 1.5 * bound));
    let (below, above) = (between(f64::NEG_INFINITY, bound), between(bound, 2.0 * bound));
    // Three standard deviations, and 1 % of the packets below `bound`.
    noisy <= free + 3.0 * (noisy + free).sqrt() + 0.01 * below
        && below > 2.0 * above
        && below - above > MIN_IDLE * waits.len() as f64
}

/// Sending time and wait of each packet, in order of sending. The wait is the delay above the lower line under all delays,
/// which represents the path without queues and the clocks' drift.
fn waits(stream: &StreamRecord) -> Vec<(f64, f64)> {
    let points = points(stream, None);
    let (intercept, slope) = lower_line(&points);
    points.iter().map(|(x, y)| (*x, (y - intercept - slope * x).max(0.0))).collect()
}

/// Sending time since `origin` or the first packet, and delay of each packet, in seconds, in order of sending.
pub(crate) fn points(stream: &StreamRecord, origin: Option<Time>) -> Vec<(f64, f64)> {
    let ordered = ordered(stream);
    let first = ordered.first().map_or(Time::ZERO, |arrival| arrival.sent);
    let origin = origin.unwrap_or(first).as_nanos();
    let at = |arrival: &Arrival| arrival.sent.as_nanos().wrapping_sub(origin) as i64 as f64 / 1e9;
    ordered.iter().map(|a| (at(a), a.delay_s())).collect()
}

/// The closest line below all points: the edge of their lower hull at their mean time (Moon, Skelly, Towsley 1999, "Estimation
/// and removal of clock skew from network delay measurements").
pub(crate) fn lower_line(points: &[(f64, f64)]) -> (f64, f64) {
    let mut hull: Vec<(f64, f64)> = Vec::new();
    for point in points {
        while let [.., a, b] = hull[..] {
            let cross = (b.0 - a.0) * (point.1 - a.1) - (b.1 - a.1) * (point.0 - a.0);
            if cross > 0.0 {
                break;
            }
            hull.pop();
        }
        hull.push(*point);
    }
    let mean = points.iter().map(|(x, _)| x).sum::<f64>() / points.len().max(1) as f64;
    let edge = hull.windows(2).find(|two| two[1].0 >= mean);
    let Some([a, b]) = edge.and_then(|two| <[_; 2]>::try_from(two).ok()) else {
        return (hull.first().map_or(0.0, |point| point.1), 0.0);
    };
    let slope = if b.0 > a.0 { (b.1 - a.1) / (b.0 - a.0) } else { 0.0 };
    (a.1 - slope * a.0, slope)
}

/// The gaps between the packets of each pair, when sent and when received.
fn gaps(stream: &StreamRecord) -> Vec<(f64, f64)> {
    let ordered = ordered(stream);
    let pairs = ordered.windows(2);
    pairs
        .filter(|two| two[0].index.is_multiple_of(2) && two[1].index == two[0].index + 1)
        .map(|two| {
            let sent = two[1].sent.since(two[0].sent).as_secs_f64();
            (sent, sent + two[1].delay_s() - two[0].delay_s())
        })
        .collect()
}

fn ordered(stream: &StreamRecord) -> Vec<Arrival> {
    let mut ordered = stream.arrivals.clone();
    ordered.sort_unstable_by_key(|arrival| arrival.index);
    ordered.dedup_by_key(|arrival| arrival.index);
    ordered
}

/// The stream's sending rate.
fn own_rate(stream: &StreamRecord) -> f64 {
    crate::dispersion(stream).map_or(0.0, |found| found.rate_in.as_f64())
}

fn in_parts<T>(samples: &[T]) -> Option<Vec<&[T]>> {
    (samples.len() >= PARTS * MIN_SAMPLES_PER_PART)
        .then(|| samples.chunks_exact(samples.len() / PARTS).take(PARTS).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use sweetspot_path::Random;
    use sweetspot_units::{Bytes, Duration};

    /// Packets of `size` over a link of 10 Mbit/s that also carries Poisson packets of 1000 bytes, a share `load` of it. The
    /// receiver's clock gains `skew`.
    fn stream(due: &[f64], size: f64, load: f64, skew: f64) -> StreamRecord {
        const RATE: f64 = 1e7;
        let mut random = Random::new(3);
        let mut gap = || -8000.0 / (RATE * load) * (1.0 - random.unit()).ln();
        let (mut free_at, mut cross) = (0.0f64, if load > 0.0 { gap() } else { f64::INFINITY });
        let at = |s: f64| Time::ZERO + Duration::from_secs_f64(s);
        let arrivals = due.iter().enumerate().map(|(n, due)| {
            while cross < *due {
                free_at = free_at.max(cross) + 8000.0 / RATE;
                cross += gap();
            }
            free_at = free_at.max(*due) + size * 8.0 / RATE;
            let received = (free_at + 0.02) * (1.0 + skew);
            Arrival { index: n as u32, sent: at(*due), received: at(received) }
        });
        let arrivals = arrivals.collect();
        StreamRecord { sent: due.len() as u32, size: Bytes::new(size as u64), arrivals }
    }

    fn due(spacing: crate::Spacing, gap_us: u64, packets: usize) -> Vec<f64> {
        let due = spacing.due(Duration::from_micros(gap_us), 11).take(packets);
        due.map(|due| due.as_secs_f64()).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        /// 100 bytes every 0.8 ms are a tenth of 10 Mbit/s.
        #[test]
        fn idle_time_gives_the_available_bandwidth_despite_clock_drift(
            load in 0.0..0.7f64, skew in -1e-4..1e-4f64,
        ) {
            let sparse = stream(&due(crate::Spacing::Poisson, 800, 15_000), 100.0, load, skew);
            let found = by_idle_time(Rate::from_f64(1e7), &sparse, 1500.0);
            let found = found.estimate().unwrap();
            let truth = 1e7 * (1.0 - load);
            prop_assert!((found.value.as_f64() - truth).abs() < 4e5, "{found:?} of {truth}");
        }

        #[test]
        fn packet_pairs_give_the_available_bandwidth(load in 0.0..0.7f64) {
            let within = Duration::from_micros(1080);
            let due = due(crate::Spacing::PoissonPairs(within), 12_000, 4000);
            let found = by_pairs(Rate::from_f64(1e7), &stream(&due, 1500.0, load, 0.0));
            let found = found.estimate().unwrap();
            let truth = 1e7 * (1.0 - load);
            prop_assert!((found.value.as_f64() - truth).abs() < 7e5, "{found:?} of {truth}");
        }
    }

    /// Packets that never meet find a link of 10 Mbit/s always idle, and are 1 Mbit/s themselves: 11.
    #[test]
    fn an_idle_link_still_has_an_error_interval() {
        let sparse = stream(&due(crate::Spacing::Even, 800, 15_000), 100.0, 0.0, 0.0);
        let found = by_idle_time(Rate::from_f64(1e7), &sparse, 1500.0).estimate().unwrap();
        assert_eq!((found.value.as_f64(), found.high.as_f64()), (1e7, 1e7));
        assert!(found.low.as_f64() <= 1e7 * (1.0 - MIN_HALF_WIDTH), "{found:?}");
    }

    #[test]
    fn jitter_longer_than_a_packet_time_leaves_both_estimates_unknown() {
        let mut random = Random::new(9);
        let mut sparse = stream(&due(crate::Spacing::Poisson, 800, 15_000), 100.0, 0.3, 0.0);
        for arrival in &mut sparse.arrivals {
            arrival.received += Duration::from_secs_f64(0.002 * random.unit());
        }
        let found = by_idle_time(Rate::from_f64(1e7), &sparse, 1500.0);
        assert!(found.value().is_none(), "{found:?}");
        let within = Duration::from_micros(1080);
        let mut pairs =
            stream(&due(crate::Spacing::PoissonPairs(within), 12_000, 2000), 1500.0, 0.3, 0.0);
        let mut latest = Time::ZERO;
        for arrival in &mut pairs.arrivals {
            latest = latest.max(arrival.received + Duration::from_secs_f64(0.01 * random.unit()));
            arrival.received = latest;
        }
        assert!(by_pairs(Rate::from_f64(1e7), &pairs).value().is_none());
    }
}
