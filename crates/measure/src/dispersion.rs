//! The spacing of a stream's packets after the narrow link (Dovrolis, Ramanathan, Moore 2004, "Packet-Dispersion Techniques and a
//! Capacity-Estimation Methodology").

use sweetspot_statistics::{Line, Sorted, mean, median};
use sweetspot_units::{Duration, Rate};

use crate::observation::{Arrival, StreamRecord};

/// Minimum number of packets that show a rate.
pub(crate) const MIN_PACKETS: usize = 4;
/// A stream keeps the link busy if its sending rate exceeds its arrival rate by this factor.
pub(crate) const BUSY_RATIO: f64 = 1.05;
/// Gaps below this share of the median belong to one interrupt, in which the receiver's network card or kernel delivers several
/// packets at once.
const COALESCED_GAP: f64 = 0.1;
/// A stream was coalesced if this share of its gaps is that short.
const COALESCED_SHARE: f64 = 0.25;

/// A stream's rates before and after the path.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Dispersion {
    /// The sending rate.
    pub rate_in: Rate,
    /// The arrival rate.
    pub rate_out: Rate,
    /// The time from its first arrival to the last.
    pub span: Duration,
    /// Number of packets that arrived.
    pub packets: usize,
    /// Whether several packets were delivered at a time, so that single gaps mean nothing.
    pub coalesced: bool,
}

/// The rates of `stream`. The arrival rate is a least-squares fit to the bytes received over time, so single late packets have
/// little weight; lost packets are not counted. `None` if too few packets arrived.
pub fn dispersion(stream: &StreamRecord) -> Option<Dispersion> {
    dispersion_behind(stream, 0)
}

/// As [`dispersion`], without the first `passed` packets.
///
/// A stream's first packet is also left out if there are enough others: it wakes up hosts, which handle it later than the
/// following packets, in every stream alike.
pub(crate) fn dispersion_behind(stream: &StreamRecord, passed: usize) -> Option<Dispersion> {
    let passed = passed.max(usize::from(stream.arrivals.len() > MIN_PACKETS));
    let arrivals = stream.arrivals.get(passed..)?;
    if arrivals.len() < MIN_PACKETS {
        return None;
    }
    let (first, last) = (arrivals.first()?.received, arrivals.last()?.received);
    let late = late_s(stream);
    // Time as a function of packets, because the error is in the time.
    let points: Vec<_> =
        late.iter().enumerate().skip(passed).map(|(n, late)| (n as f64, *late)).collect();
    let bits = stream.size.as_f64() * 8.0;
    let per_packet = Line::through(&points)?.slope;
    let rate_in = rate_in(stream)?;
    if per_packet <= 0.0 {
        return None;
    }
    Some(Dispersion {
        rate_in,
        rate_out: Rate::from_f64((bits / per_packet).round()),
        span: last.since(first),
        packets: arrivals.len(),
        coalesced: is_coalesced(stream),
    })
}

/// The share of time in which the link was idle because the sender paused, between the first and the last arrival after the first
/// `passed` packets.
///
/// A packet enters the link its base delay after it was sent, less its time on the link, which is at most the median gap between
/// arrivals. If the previous packet had left by then, the link was idle in between.
pub(crate) fn idle_share(stream: &StreamRecord, passed: usize) -> f64 {
    let arrivals = stream.arrivals.get(passed..).unwrap_or_default();
    let delays = || arrivals.iter().map(Arrival::delay_s);
    let base = delays().fold(f64::INFINITY, f64::min);
    let gap = |two: &[Arrival]| two[1].received.since(two[0].received).as_secs_f64();
    let on_link = median(arrivals.windows(2).map(gap)).unwrap_or(0.0);
    // Time from one arrival to the next packet's entry, less its time on the link. The clocks' offset is part of the base delay.
    let idle = arrivals.windows(2).map(|two| {
        let waited = two[1].delay_s() - base;
        (gap(two) - on_link - waited).max(0.0)
    });
    let span: f64 = arrivals.windows(2).map(gap).sum();
    if span > 0.0 { idle.sum::<f64>() / span } else { 0.0 }
}

/// Arrival time of each packet after the first, seconds.
pub(crate) fn late_s(stream: &StreamRecord) -> Vec<f64> {
    let Some(first) = stream.arrivals.first() else { return Vec::new() };
    let origin = first.received.as_nanos();
    let late = |nanos: u64| nanos.wrapping_sub(origin) as i64 as f64 / 1e9;
    stream.arrivals.iter().map(|arrival| late(arrival.received.as_nanos())).collect()
}

/// The sending rate over all packets, including lost ones, from their indices.
pub(crate) fn rate_in(stream: &StreamRecord) -> Option<Rate> {
    let first = stream.arrivals.iter().min_by_key(|arrival| arrival.index)?;
    let last = stream.arrivals.iter().max_by_key(|arrival| arrival.index)?;
    let bits = stream.size.as_f64() * 8.0 * f64::from(last.index - first.index);
    let span = last.sent.since(first.sent).as_secs_f64();
    Some(Rate::from_f64((bits / span.max(1e-9)).round()))
}

fn is_coalesced(stream: &StreamRecord) -> bool {
    let pairs = stream.arrivals.windows(2);
    let gaps: Vec<f64> =
        pairs.map(|two| two[1].received.since(two[0].received).as_secs_f64()).collect();
    let mean = mean(&gaps).unwrap_or(0.0);
    let short = gaps.iter().filter(|gap| **gap < mean * COALESCED_GAP).count();
    short as f64 > gaps.len() as f64 * COALESCED_SHARE
}

/// The mode of the rates of pairs of neighbouring packets: the half-sample mode (Bickel, Fruehwirth 2006, "On a fast, robust
/// estimator of the mode"). `None` with fewer than twenty pairs.
pub fn pair_mode<'a>(streams: impl IntoIterator<Item = &'a StreamRecord>) -> Option<Rate> {
    const MIN_PAIRS: usize = 20;
    let mut rates = Vec::new();
    for stream in streams {
        let bits = stream.size.as_f64() * 8.0;
        let adjacent = stream.arrivals.windows(2).filter(|two| two[1].index == two[0].index + 1);
        let gaps = adjacent.map(|two| two[1].received.since(two[0].received).as_secs_f64());
        rates.extend(gaps.filter(|gap| *gap > 0.0).map(|gap| bits / gap));
    }
    (rates.len() >= MIN_PAIRS).then(|| half_sample_mode(&rates.into_iter().collect::<Sorted>()))?
}

fn half_sample_mode(sorted: &[f64]) -> Option<Rate> {
    let mut samples = sorted;
    while samples.len() > 3 {
        let half = samples.len().div_ceil(2);
        let width = |start: &usize| {
            let ratio = samples[start + half - 1] / samples[*start];
            (ratio * 1e12) as u64
        };
        let start = (0..=samples.len() - half).min_by_key(width)?;
        samples = &samples[start..start + half];
    }
    median(samples.iter().copied()).map(|rate| Rate::from_f64(rate.round()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observation::Arrival;
    use sweetspot_units::{Bytes, Time};

    /// `n` packets of 1250 bytes, sent every 10 us, with arrival times `received`, in microseconds.
    fn stream(n: u64, received: impl Fn(u64) -> u64) -> StreamRecord {
        let at = |us: u64| Time::ZERO + Duration::from_micros(us);
        let arrivals = (0..n).map(|i| Arrival {
            index: i as u32,
            sent: at(i * 10),
            received: at(1000 + received(i)),
        });
        StreamRecord { sent: n as u32, size: Bytes::new(1250), arrivals: arrivals.collect() }
    }

    #[test]
    fn a_late_first_packet_does_not_bias_the_rate() {
        // A packet every 100 us is 100 Mbit/s; the first waits 40 us for a sleeping host.
        let late = |n| dispersion(&stream(n, |i| if i == 0 { 40 } else { i * 100 })).unwrap();
        assert_eq!(late(6).rate_out, Rate::from_mbit_per_second(100));
        assert_eq!(late(6).packets, 5);
        // With only four packets, all of them count.
        assert_eq!(late(4).packets, 4);
    }

    #[test]
    fn coalesced_packets_are_detected_and_show_the_overall_rate() {
        // A packet every 100 us is 100 Mbit/s; the host delivers four at a time, with the last of them.
        let found = dispersion(&stream(400, |i| (i / 4 * 4 + 3) * 100)).unwrap();
        assert!(found.coalesced);
        let error = found.rate_out.as_f64() / 1e8 - 1.0;
        assert!(error.abs() < 0.01, "{}", found.rate_out);
        assert!(!dispersion(&stream(400, |i| i * 100)).unwrap().coalesced);
    }

    /// 100 packets are sent in 1 ms and take 10 ms on the link, which is idle until the others are sent at 31 ms: for 21 of 41
    /// ms.
    #[test]
    fn a_link_is_idle_if_a_sender_pause_outlasts_the_backlog() {
        let paused = |pause: u64| {
            let mut stream = stream(200, |_| 0);
            let mut free = 0;
            for (n, arrival) in stream.arrivals.iter_mut().enumerate() {
                let sent = n as u64 * 10 + if n < 100 { 0 } else { pause };
                free = free.max(sent) + 100;
                arrival.sent = Time::ZERO + Duration::from_micros(sent);
                arrival.received = Time::ZERO + Duration::from_micros(1000 + free);
            }
            stream
        };
        let share = idle_share(&paused(30_000), 0);
        assert!((share - 21.0 / 41.0).abs() < 0.01, "{share}");
        // The first ones take until 10 ms, and the others are sent at 9 ms.
        assert!(idle_share(&paused(8000), 0) < 0.001);
        assert!(idle_share(&stream(400, |i| i * 100), 0) < 0.001);
    }

    #[test]
    fn the_pair_mode_is_the_link_rate_despite_cross_traffic() {
        let mut late = 0;
        let gaps: Vec<u64> = (0..300)
            .map(|i| {
                late += if i % 3 == 0 { 150 + i } else { 100 };
                late
            })
            .collect();
        let mode = pair_mode([&stream(300, |i| gaps[i as usize])]).unwrap();
        assert_eq!(mode, Rate::from_mbit_per_second(100));
    }
}
