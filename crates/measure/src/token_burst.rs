//! The burst that a token bucket lets pass before its rate applies (RFC 3290 §5.1.3; Linux's tbf).

use sweetspot_statistics::{LineSums, median};
use sweetspot_units::{Bytes, Rate};

use crate::dispersion::{BUSY_RATIO, MIN_PACKETS, late_s, rate_in};
use crate::observation::StreamRecord;

/// Minimum number of streams that show a bucket. Without one, breaks are anywhere: two thirds of four or more streams agree
/// on a few of a hundred positions once in a thousand measurements.
const MIN_STREAMS: usize = 4;
const MIN_AGREEING_SHARE: f64 = 2.0 / 3.0;
/// Breaks agree if they are this close to the median: in packets, and as a share of the median due to the rates' errors.
const PACKET_TOLERANCE: f64 = 2.0;
const RELATIVE_TOLERANCE: f64 = 0.1;

/// A token bucket before the link, or instead of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct TokenBurst {
    /// The bucket's depth.
    pub bytes: Bytes,
    rate: f64,
}

impl TokenBurst {
    /// The bucket on which `streams` agree. A stream sent at R drains a bucket of depth b, filled at C, after b / (1 - C/R)
    /// bytes; from then on it arrives at C.
    pub fn of<'a>(streams: impl Iterator<Item = &'a StreamRecord>) -> Option<TokenBurst> {
        let breaks: Vec<(f64, f64, f64)> = streams.filter_map(one_break).collect();
        if breaks.len() < MIN_STREAMS {
            return None;
        }
        let depth = median(breaks.iter().map(|(depth, ..)| *depth))?;
        let agree = |(at, _, packet): &&(f64, f64, f64)| {
            (at - depth).abs() <= (PACKET_TOLERANCE * packet).max(RELATIVE_TOLERANCE * depth)
        };
        let agreeing: Vec<_> = breaks.iter().filter(agree).collect();
        let enough = agreeing.iter().filter(|(depth, ..)| *depth > 0.0).count() as f64;
        if enough < MIN_AGREEING_SHARE * breaks.len() as f64 {
            return None;
        }
        let rate = median(agreeing.iter().map(|(_, rate, _)| *rate))?;
        Some(TokenBurst { bytes: Bytes::new(depth as u64), rate })
    }

    /// Number of packets of `stream` that arrive before the bucket is empty; all of them if it never is.
    pub fn packets(&self, stream: &StreamRecord) -> usize {
        let rate = rate_in(stream).map_or(0.0, Rate::as_f64);
        let drained = 1.0 - self.rate / rate.max(1.0);
        if drained <= 0.0 {
            return stream.arrivals.len();
        }
        (self.bytes.as_f64() / drained / stream.size.as_f64()).ceil() as usize
    }
}

/// The break in a stream's arrivals at which two lines fit best: the depth of a bucket that would explain it (zero if the
/// stream is not slower after it), the rate after it, and the size of a packet.
fn one_break(stream: &StreamRecord) -> Option<(f64, f64, f64)> {
    let late = late_s(stream);
    if late.len() < 4 * MIN_PACKETS {
        return None;
    }
    let mut sums = vec![LineSums::default()];
    for (n, late) in late.iter().enumerate() {
        sums.push(sums[n].and(n as f64, *late));
    }
    let all = sums.last()?;
    let fits = |at: usize| (at, sums[at].fit(), all.without(&sums[at]).fit());
    let places = (MIN_PACKETS..=late.len() - MIN_PACKETS).map(fits);
    let left = |(_, before, after): &(usize, (f64, f64), (f64, f64))| before.1 + after.1;
    let (at, (before, _), (after, _)) = places.min_by(|a, b| left(a).total_cmp(&left(b)))?;
    let packet = stream.size.as_f64();
    let (rate, rate_in) = (packet * 8.0 / after, rate_in(stream)?.as_f64());
    // A stream that the link carries at its sending rate drains nothing.
    if rate_in < rate * BUSY_RATIO {
        return None;
    }
    let drains = after > before * BUSY_RATIO;
    let depth = if drains { at as f64 * packet * (1.0 - rate / rate_in) } else { 0.0 };
    Some((depth, rate, packet))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observation::Arrival;
    use sweetspot_units::{Duration, Time};

    /// A train at 1 Gbit/s over a link of 30 Mbit/s with a bucket of `depth` packets of 1500 bytes: packet n waits until the
    /// link has sent the n - depth packets that exceed the bucket.
    fn train(depth: u64, noise: impl Fn(u64) -> u64) -> StreamRecord {
        let arrivals = (0..120).map(|n| {
            let sent = Time::ZERO + Duration::from_micros(12 * n);
            let tokens = 400 * n.saturating_sub(depth);
            let received = Time::ZERO + Duration::from_micros((12 * n).max(tokens) + noise(n));
            Arrival { index: n as u32, sent, received }
        });
        StreamRecord { sent: 120, size: Bytes::new(1500), arrivals: arrivals.collect() }
    }

    #[test]
    fn the_depth_and_rate_of_a_token_bucket_are_estimated() {
        for depth in [10, 20, 60] {
            let trains: Vec<_> = (0..6).map(|seed| train(depth, |n| (n * 7 + seed) % 30)).collect();
            let found = TokenBurst::of(trains.iter()).unwrap();
            let packets = found.bytes.as_f64() / 1500.0;
            assert!((packets - depth as f64).abs() <= 2.0, "{packets} of {depth}");
            assert!((found.rate / 30e6 - 1.0).abs() < 0.02, "{}", found.rate);
            assert!(found.packets(&trains[0]).abs_diff(depth as usize) <= 3);
        }
    }

    #[test]
    fn cross_traffic_on_a_constant_rate_link_is_not_a_token_bucket() {
        for shift in 0..200 {
            // Cross traffic's packets interrupt each train in a different position.
            let trains: Vec<_> = (0..6u64)
                .map(|seed| {
                    let at = (seed * 31 + shift * 17) % 120;
                    train(0, move |n| if n > at { 2000 + n * 100 } else { 0 })
                })
                .collect();
            assert_eq!(TokenBurst::of(trains.iter()), None, "{shift}");
        }
    }
}
