//! Joins two captures of one connection: one-way delays between the capture points, and packets lost between them.
//!
//! The clocks of two hosts differ. Let `f` be the delay of forward packets between the captures and `r` the delay of
//! reverse packets, each on the two unsynchronised clocks. The minimum of `f` plus the minimum of `r` is the round trip
//! between the captures, whatever the clocks' offset (RFC 7679 §3.7 on clocks). Its division between the directions
//! cannot be measured, so each gets half.

use std::collections::{HashMap, VecDeque};

use serde::Serialize;
use sweetspot_trace::Histogram;
use sweetspot_trace::packet::Segment;
use sweetspot_units::Time;
use thiserror::Error;

/// Maximum number of packets kept from the first capture.
pub const MAX_PACKETS: usize = 2_000_000;
/// Minimum number of packets of each direction in both captures.
const MIN_PACKETS: usize = 4;

/// Fields that distinguish a packet from all others of its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct PacketKey {
    forward: bool,
    seq: u32,
    ack: u32,
    payload: u32,
    window: u16,
    clock: Option<(u32, u32)>,
    id: Option<u16>,
}

/// A packet and its time in each capture, in nanoseconds.
#[derive(Debug, Clone, Copy)]
struct PacketTimes {
    key: PacketKey,
    first: Option<i64>,
    second: Option<i64>,
}

/// The packets of one connection in two captures.
#[derive(Debug, Default)]
pub struct Joining {
    packets: Vec<PacketTimes>,
    /// Packets of the first capture that are not matched in the second yet, by key.
    waiting: HashMap<PacketKey, VecDeque<usize>>,
    /// The times of the first and last packet, in each capture.
    spans: [Option<(i64, i64)>; 2],
    full: bool,
}

/// Findings from two captures of a connection together, for the data that one end sent.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Joined {
    /// The round trip between the captures without queues.
    pub rtt_s: f64,
    /// How far the clock near the receiver is ahead, assuming equal delays in both directions.
    pub clock_offset_s: f64,
    /// How much that clock gains per second.
    pub clock_drift: f64,
    /// Packets with data.
    pub data: OneWay,
    /// Packets of the other direction.
    pub acks: OneWay,
    /// Whether the first file was captured nearer to the sender of the data.
    pub first_is_nearer: bool,
}

/// Too few packets are in both captures to compare their clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error(
    "only {forward} packets of one direction and {reverse} of the other are the same in both; capture again at the same time, \
     without segmentation offload (ethtool -K DEVICE tso off gso off gro off)"
)]
#[non_exhaustive]
pub struct TooFewPackets {
    /// Packets in both captures that the end under study sent.
    pub forward: usize,
    /// Packets in both captures that its peer sent.
    pub reverse: usize,
}

/// Packets of one direction between the captures.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OneWay {
    /// Packets in the capture that they passed first.
    pub sent: u64,
    /// Packets among them that are missing in the other capture: they were lost between the two.
    pub lost: u64,
    /// Packets that are only in the capture that they passed last: the other one missed them.
    pub missed: u64,
    /// The minimum one-way delay, half of the round trip.
    pub min_s: f64,
    /// The median.
    pub median_s: f64,
    /// The 99th percentile.
    pub p99_s: f64,
}

impl Joining {
    /// Takes a packet of the first capture; `forward` means it came from the end under study.
    pub fn first(&mut self, segment: &Segment, forward: bool) {
        if self.packets.len() >= MAX_PACKETS {
            self.full = true;
            return;
        }
        let (key, at) = (key(segment, forward), nanos(segment.time));
        widen(&mut self.spans[0], at);
        self.waiting.entry(key).or_default().push_back(self.packets.len());
        self.packets.push(PacketTimes { key, first: Some(at), second: None });
    }

    /// Takes a packet of the second capture.
    pub fn second(&mut self, segment: &Segment, forward: bool) {
        let (key, at) = (key(segment, forward), nanos(segment.time));
        widen(&mut self.spans[1], at);
        match self.waiting.get_mut(&key).and_then(VecDeque::pop_front) {
            Some(n) => self.packets[n].second = Some(at),
            None if self.full || self.packets.len() >= MAX_PACKETS => {}
            None => self.packets.push(PacketTimes { key, first: None, second: Some(at) }),
        }
    }

    /// The findings from both captures.
    pub fn joined(&self) -> Result<Joined, TooFewPackets> {
        let both = |forward: bool| {
            let those = self.packets.iter().filter(move |p| p.key.forward == forward);
            those.filter_map(|p| Some((p.first?, p.second? - p.first?)))
        };
        let forward_pairs: Vec<(i64, i64)> = both(true).collect();
        let reverse_pairs: Vec<(i64, i64)> = both(false).map(|(at, later)| (at, -later)).collect();
        if forward_pairs.len().min(reverse_pairs.len()) < MIN_PACKETS {
            return Err(TooFewPackets {
                forward: forward_pairs.len(),
                reverse: reverse_pairs.len(),
            });
        }
        let (mut forward_pairs, mut reverse_pairs) = (forward_pairs, reverse_pairs);
        // The capture nearer to the sender sees data first and acknowledgements last.
        let first_is_nearer = median(&forward_pairs) + median(&reverse_pairs) >= 0;
        if !first_is_nearer {
            forward_pairs
                .iter_mut()
                .chain(&mut reverse_pairs)
                .for_each(|(_, later)| *later = -*later);
        }
        let clocks = Clocks::new(&forward_pairs, &reverse_pairs);
        let direction = |forward: bool, of: &[(i64, i64)]| {
            let mut delays = Histogram::default();
            for (at, later) in of {
                let ahead = clocks.offset + clocks.gained(*at);
                let one_way = if forward { later - ahead } else { later + ahead };
                delays.add(one_way.max(0) as u64, 1);
            }
            let seconds = |nanos: Option<u64>| nanos.unwrap_or(0) as f64 / 1e9;
            OneWay {
                min_s: clocks.round_trip as f64 / 2e9,
                median_s: seconds(delays.quantile(0.5)),
                p99_s: seconds(delays.quantile(0.99)),
                ..self.counted(forward, first_is_nearer, &clocks)
            }
        };
        Ok(Joined {
            rtt_s: clocks.round_trip as f64 / 1e9,
            clock_offset_s: clocks.offset as f64 / 1e9,
            clock_drift: clocks.drift,
            data: direction(true, &forward_pairs),
            acks: direction(false, &reverse_pairs),
            first_is_nearer,
        })
    }

    /// Counts the packets of a direction.
    fn counted(&self, forward: bool, first_is_nearer: bool, clocks: &Clocks) -> OneWay {
        let mut one_way =
            OneWay { sent: 0, lost: 0, missed: 0, min_s: 0.0, median_s: 0.0, p99_s: 0.0 };
        // The capture that this direction passes first, and the other.
        let [before, after] = if forward == first_is_nearer { [0, 1] } else { [1, 0] };
        // From a packet's time in one capture to its expected time in the other.
        let ahead = if forward { clocks.offset } else { -clocks.offset } + clocks.round_trip / 2;
        let slack = 2 * clocks.round_trip;
        let covers = |capture: usize, at: i64| {
            self.spans[capture].is_some_and(|(from, to)| from <= at && at + slack <= to)
        };
        for packet in self.packets.iter().filter(|p| p.key.forward == forward) {
            let at = [packet.first, packet.second];
            match (at[before], at[after]) {
                (Some(_), Some(_)) => one_way.sent += 1,
                // Only while the other capture was running.
                (Some(at), None) if covers(after, at + ahead) => {
                    one_way.sent += 1;
                    one_way.lost += 1;
                }
                (None, Some(at)) if covers(before, at - ahead) => one_way.missed += 1,
                _ => {}
            }
        }
        one_way
    }
}

/// The median delay of packets between the captures, with the clocks' offset.
fn median(of: &[(i64, i64)]) -> i64 {
    let mut later: Vec<i64> = of.iter().map(|(_, later)| *later).collect();
    let middle = later.len() / 2;
    if later.is_empty() { 0 } else { *later.select_nth_unstable(middle).1 }
}

impl Joined {
    /// The findings in two sentences.
    pub fn words(&self) -> String {
        let ms = |s: f64| format!("{:.1} ms", s * 1e3);
        let one_way = |one_way: &OneWay| {
            format!(
                "median {}, 99th percentile {}, {} of {} lost",
                ms(one_way.median_s),
                ms(one_way.p99_s),
                one_way.lost,
                one_way.sent
            )
        };
        format!(
            "Between the captures the round trip is {} without queues. One way, if both are \
             {}: data {}; acknowledgements {}.",
            ms(self.rtt_s),
            ms(self.rtt_s / 2.0),
            one_way(&self.data),
            one_way(&self.acks)
        )
    }
}

/// The offset and drift of the second clock from the first, and the round trip between the captures, in nanoseconds.
#[derive(Debug)]
struct Clocks {
    offset: i64,
    /// Nanoseconds that the second clock gains per nanosecond.
    drift: f64,
    middle: i64,
    round_trip: i64,
}

impl Clocks {
    fn new(forward_pairs: &[(i64, i64)], reverse_pairs: &[(i64, i64)]) -> Clocks {
        let all = forward_pairs.iter().chain(reverse_pairs);
        let from = all.clone().map(|(at, _)| *at).min().unwrap_or(0);
        let to = all.map(|(at, _)| *at).max().unwrap_or(0);
        let middle = from + (to - from) / 2;
        // A drift moves the minimum differences of both directions in opposite senses. A standing queue moves only one
        // of them.
        let min = |of: &[(i64, i64)], late: bool| {
            of.iter().filter(|(at, _)| (*at >= middle) == late).map(|(_, later)| *later).min()
        };
        let halves = min(forward_pairs, false)
            .zip(min(forward_pairs, true))
            .zip(min(reverse_pairs, false).zip(min(reverse_pairs, true)));
        let drift = halves.map_or(0.0, |((f0, f1), (r0, r1))| {
            let (forward_pairs, reverse_pairs) = ((f1 - f0) as f64, (r1 - r0) as f64);
            let opposite = forward_pairs * reverse_pairs < 0.0;
            let gained = if opposite { (forward_pairs - reverse_pairs) / 2.0 } else { 0.0 };
            gained / ((to - from) as f64 / 2.0).max(1.0)
        });
        let mut clocks = Clocks { offset: 0, drift, middle, round_trip: 0 };
        let min = |of: &[(i64, i64)], sign: i64| {
            of.iter().map(|(at, later)| later - sign * clocks.gained(*at)).min().unwrap_or(0)
        };
        let (f, r) = (min(forward_pairs, 1), min(reverse_pairs, -1));
        clocks.offset = (f - r) / 2;
        clocks.round_trip = f + r;
        clocks
    }

    /// The second clock's drift at `at`, relative to the middle.
    fn gained(&self, at: i64) -> i64 {
        ((at - self.middle) as f64 * self.drift) as i64
    }
}

fn key(segment: &Segment, forward: bool) -> PacketKey {
    PacketKey {
        forward,
        seq: segment.seq,
        ack: segment.ack,
        payload: segment.payload,
        window: segment.window,
        clock: segment.options.timestamps.map(|t| (t.value, t.echo)),
        id: segment.id.filter(|id| *id != 0),
    }
}

fn nanos(time: Time) -> i64 {
    i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)
}

fn widen(span: &mut Option<(i64, i64)>, at: i64) {
    let (from, to) = span.unwrap_or((at, at));
    *span = Some((from.min(at), to.max(at)));
}
