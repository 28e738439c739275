//! Losses that no queue causes, and whether they come in bursts.

use sweetspot_statistics::{mean_interval, wilson, wilson_of_clusters};
use sweetspot_units::Probability;

use crate::finding::{Bound, Finding};
use crate::observation::{Arrival, StreamRecord};

/// Minimum number of separate losses for a rate; with fewer there is only an upper bound.
const MIN_LOSSES: usize = 5;
/// Minimum number of bursts for a mean length.
const MIN_BURSTS: usize = 8;
/// A queue is short, and drops nothing, below this share of the wait at which it drops.
const SHORT_QUEUE_SHARE: f64 = 0.5;
/// Minimum share of packets that met a short queue. With fewer, all packets count.
const MIN_SHORT_QUEUE_SHARE: f64 = 0.5;

/// Share of packets that count as next to the longest waits.
const LONGEST_WAITS_SHARE: f64 = 0.2;

/// Losses of streams below the available bandwidth.
#[derive(Debug, Clone, PartialEq)]
pub struct LossEstimate {
    /// The share of packets lost; an upper bound if a queue may have dropped them.
    pub rate: Finding<Probability>,
    /// Mean number of packets lost in a row; 1 / (1 - rate) if losses are independent. In the model of Gilbert (1960,
    /// "Capacity of a burst-noise channel"), a burst ends with probability r, and this is 1/r.
    pub burst: Finding<f64>,
    /// Packets counted.
    pub sent: u64,
    /// Lost packets among them.
    pub lost: u64,
    /// Whether packets that a queue may have dropped are left out.
    pub without_queue: bool,
}

/// A queue that drops packets.
#[derive(Debug, Clone, Copy)]
pub struct DroppingQueue {
    /// The wait at which it drops, seconds.
    pub wait_s: f64,
    /// The delay without a queue, on the scale of [`Arrival::delay_s`].
    pub reference_s: f64,
}

/// The losses of `streams`, without those that `queue` may have dropped. Either cross traffic filled it, or a sender
/// that was held up and caught up.
pub fn losses<'a>(
    streams: impl IntoIterator<Item = &'a StreamRecord>,
    queue: Option<DroppingQueue>,
) -> LossEstimate {
    let (mut all, mut clear) = (LossCount::default(), LossCount::default());
    let (mut beside_all, mut beside_clear) =
        (LossesBesideWaits::default(), LossesBesideWaits::default());
    for stream in streams {
        let fates = fates(stream, queue);
        all.add(fates.iter().map(|fate| Some(fate.came)));
        clear.add(fates.iter().map(|fate| fate.is_clear.then_some(fate.came)));
        beside_all.add(&fates, |_| true);
        beside_clear.add(&fates, |fate| fate.is_clear);
    }
    let enough = clear.sent as f64 >= all.sent as f64 * MIN_SHORT_QUEUE_SHARE;
    let without_queue = queue.is_some() && enough;
    let counted = if without_queue { clear } else { all };
    // A buffer that holds a number of packets, however small, drops some of them after a short wait.
    let mut beside = if without_queue { beside_clear } else { beside_all };
    let (rate, burst) = match beside.are_of_a_queue() {
        true => {
            let rate = bounded_rate(&counted);
            let burst = Finding::unknown(rate.how());
            (rate, burst)
        }
        false => (rate(&counted, without_queue), burst(&counted.bursts)),
    };
    LossEstimate { rate, burst, sent: counted.sent, lost: counted.lost, without_queue }
}

#[derive(Debug, Default)]
struct LossCount {
    sent: u64,
    lost: u64,
    bursts: Vec<f64>,
}

impl LossCount {
    /// Counts a stream's packets in order: whether each arrived; `None`: it is left out.
    fn add(&mut self, came: impl Iterator<Item = Option<bool>>) {
        let came: Vec<Option<bool>> = came.collect();
        self.sent += came.iter().flatten().count() as u64;
        for run in came.chunk_by(|a, b| a == b).filter(|run| run[0] == Some(false)) {
            self.lost += run.len() as u64;
            self.bursts.push(run.len() as f64);
        }
    }
}

/// Losses and the waits of the packets beside them. Random loss strikes whatever the queue, but a full queue drops packets beside
/// those that waited longest.
#[derive(Debug, Default)]
struct LossesBesideWaits {
    /// The longer delay beside each packet, seconds.
    beside_packets: Vec<f64>,
    /// The same beside each run of lost packets.
    beside_losses: Vec<f64>,
}

impl LossesBesideWaits {
    fn add(&mut self, fates: &[Fate], counts: impl Fn(&Fate) -> bool) {
        let beside = |fate: &Fate| fate.beside_s.filter(|_| counts(fate));
        self.beside_packets.extend(fates.iter().filter_map(beside));
        let runs = fates.chunk_by(|a, b| a.came == b.came).filter(|run| !run[0].came);
        self.beside_losses.extend(runs.filter_map(|run| beside(&run[0])));
    }

    /// Whether more losses than by chance are beside the longest waits. One loss shows nothing.
    fn are_of_a_queue(&mut self) -> bool {
        self.beside_packets.sort_by(f64::total_cmp);
        let shorter = (self.beside_packets.len() as f64 * (1.0 - LONGEST_WAITS_SHARE)) as usize;
        let Some(&long) = self.beside_packets.get(shorter) else { return false };
        let all = self.beside_losses.len() as u64;
        let beside_long = self.beside_losses.iter().filter(|beside| **beside > long).count();
        all > 1 && wilson(beside_long as u64, all).0 > LONGEST_WAITS_SHARE
    }
}

/// The fate of a packet.
struct Fate {
    came: bool,
    /// The longer delay of the arrivals before and after it, seconds, on the scale of [`Arrival::delay_s`].
    beside_s: Option<f64>,
    /// Whether `queue` was too short to drop it.
    is_clear: bool,
}

fn fates(stream: &StreamRecord, queue: Option<DroppingQueue>) -> Vec<Fate> {
    let mut by_index: Vec<Option<Arrival>> = vec![None; stream.sent as usize];
    for arrival in &stream.arrivals {
        if let Some(place) = by_index.get_mut(arrival.index as usize) {
            place.get_or_insert(*arrival);
        }
    }
    // The next arrival after each packet, from the end.
    let mut next = None;
    let mut after: Vec<Option<Arrival>> = Vec::with_capacity(by_index.len());
    for arrival in by_index.iter().rev() {
        after.push(next);
        next = arrival.or(next);
    }
    after.reverse();
    let mut before = None;
    let fates = by_index.iter().zip(after).map(|(arrival, after)| {
        let is_clear = match (queue, before, after) {
            (Some(queue), Some(before), Some(after)) => met_short_queue(&before, &after, queue),
            _ => true,
        };
        let both = before.zip(after);
        let beside_s = both.map(|(before, after)| before.delay_s().max(after.delay_s()));
        before = arrival.or(before);
        Fate { came: arrival.is_some(), beside_s, is_clear }
    });
    fates.collect()
}

/// Whether a packet between these two met a short queue: a wait cannot shrink faster than time passes.
fn met_short_queue(before: &Arrival, after: &Arrival, queue: DroppingQueue) -> bool {
    let wait = after.delay_s() - queue.reference_s;
    let at_most = wait + after.sent.since(before.sent).as_secs_f64();
    at_most < queue.wait_s * SHORT_QUEUE_SHARE
}

/// An upper bound of random loss, if a queue may have dropped packets.
fn bounded_rate(count: &LossCount) -> Finding<Probability> {
    let (_, high) = interval(count);
    let why = format!(
        "{} of {} packets were lost beside those that waited longest, so a queue may have dropped them",
        count.lost, count.sent
    );
    Finding::bounded(Bound::AtMost(share(high)), why)
}

/// The 95 % interval of the loss rate. Packets lost in a row are one event.
fn interval(count: &LossCount) -> (f64, f64) {
    let squares: f64 = count.bursts.iter().map(|length| length * length).sum();
    let inflation = squares.max(1.0) / count.lost.max(1) as f64;
    wilson_of_clusters(count.lost, count.sent, inflation)
}

fn share(p: f64) -> Probability {
    Probability::new(p).unwrap_or(Probability::ZERO)
}

fn rate(count: &LossCount, without_queue: bool) -> Finding<Probability> {
    let (sent, lost, bursts) = (count.sent, count.lost, count.bursts.len());
    let (low, high) = interval(count);
    let which = match without_queue {
        true => "packets that found a short queue or none",
        false => "packets",
    };
    match lost {
        _ if sent == 0 => Finding::unknown("no packets were sent to measure it"),
        0 => Finding::known(
            Probability::ZERO,
            Probability::ZERO,
            share(high),
            format!("none of {sent} {which} was lost"),
        ),
        _ if bursts < MIN_LOSSES => Finding::known(
            share(lost as f64 / sent as f64),
            share(low),
            share(high),
            format!(
                "{lost} of {sent} {which}, {}: too few for more than a bound",
                separate(bursts)
            ),
        ),
        _ => Finding::known(
            share(lost as f64 / sent as f64),
            share(low),
            share(high),
            format!("{lost} of {sent} {which}, sent below the available bandwidth"),
        ),
    }
}

fn burst(lengths: &[f64]) -> Finding<f64> {
    match mean_interval(lengths) {
        Some((mean, half)) if lengths.len() >= MIN_BURSTS => Finding::known(
            mean,
            (mean - half).max(1.0),
            mean + half,
            format!("{} gaps in the packets' sequence numbers", lengths.len()),
        ),
        _ => {
            let found = separate(lengths.len());
            Finding::unknown(format!("{found}; at least {MIN_BURSTS} are needed"))
        }
    }
}

fn separate(losses: usize) -> String {
    let separate = if losses == 1 { "separate loss" } else { "separate losses" };
    format!("{losses} {separate}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use sweetspot_units::{Bytes, Time};

    fn stream(came: &[bool]) -> StreamRecord {
        let arrived = came.iter().enumerate().filter(|(_, came)| **came);
        let arrivals = arrived.map(|(n, _)| Arrival {
            index: n as u32,
            sent: Time::ZERO,
            received: Time::ZERO,
        });
        StreamRecord {
            sent: came.len() as u32,
            size: Bytes::new(100),
            arrivals: arrivals.collect(),
        }
    }

    proptest! {
        #[test]
        fn the_interval_contains_the_measured_loss_rate(
            came in proptest::collection::vec(proptest::bool::weighted(0.9), 1..2000),
        ) {
            let lost = came.iter().filter(|came| !**came).count();
            let found = losses([&stream(&came)], None);
            prop_assert_eq!(found.lost as usize, lost);
            let estimate = found.rate.estimate().unwrap();
            prop_assert_eq!(estimate.value.get(), lost as f64 / came.len() as f64);
            prop_assert!(estimate.low.get() <= estimate.value.get() + 1e-12);
            prop_assert!(estimate.value.get() <= estimate.high.get() + 1e-12);
        }
    }

    #[test]
    fn losses_near_a_full_queue_do_not_count_as_random_loss() {
        // A packet per millisecond: 1 % are lost at random, and every 200 ms a queue of 12 ms drops ten in a row.
        let queue = DroppingQueue { wait_s: 0.012, reference_s: 0.0 };
        let stream = beside_a_queue(|ms| ms % 100 == 50 || (95..105).contains(&(ms % 200)));
        let all = losses([&stream], None);
        assert_eq!(all.lost, 200 + 1000);
        let found = losses([&stream], Some(queue));
        assert_eq!(found.lost, 200);
        // Packets are left out if the next one waited at least 4 ms, or was lost: 17 of 200.
        assert_eq!(found.sent, 18_300);
        // If it is unknown when the queue is short, all packets count.
        let short = DroppingQueue { wait_s: 0.001, ..queue };
        assert_eq!(losses([&stream], Some(short)).lost, all.lost);
    }

    /// A packet per millisecond and, every 200 ms, a queue that grows to 12 ms. `lost` says which of the packets are lost.
    fn beside_a_queue(lost: impl Fn(u64) -> bool) -> StreamRecord {
        let waits = |ms: u64| 12_u64.saturating_sub((ms % 200).abs_diff(100));
        let arrivals = (0..20_000_u64).filter(|ms| !lost(*ms)).map(|ms| Arrival {
            index: ms as u32,
            sent: Time::from_nanos(ms * 1_000_000),
            received: Time::from_nanos((ms + waits(ms)) * 1_000_000),
        });
        StreamRecord { sent: 20_000, size: Bytes::new(100), arrivals: arrivals.collect() }
    }

    #[test]
    fn losses_of_an_unknown_queue_only_bound_random_loss() {
        // One packet is lost at the peak of each of four queues: too few for an interval, and each beside the longest waits.
        let by_queue = losses([&beside_a_queue(|ms| ms % 5000 == 100)], None);
        let Finding::Bounded { bound: Bound::AtMost(most), .. } = by_queue.rate else {
            panic!("{by_queue:?}")
        };
        assert_eq!(most.get(), wilson(4, 20_000).1);
        assert!(by_queue.burst.value().is_none());
        // The same if the overload showed a queue that drops after a much longer wait: this buffer holds a number of packets.
        let queue = DroppingQueue { wait_s: 1.0, reference_s: 0.0 };
        let by_packets = losses([&beside_a_queue(|ms| ms % 5000 == 100)], Some(queue));
        assert!(by_packets.without_queue && by_packets.rate.value().is_none(), "{by_packets:?}");
        // Of 20 losses whatever the queue, three are beside a wait.
        let at_random = losses([&beside_a_queue(|ms| ms % 1010 == 100)], None);
        assert_eq!(at_random.rate.value().map(Probability::get), Some(20.0 / 20_000.0));
        // One loss may be beside a long wait by chance.
        let one = losses([&beside_a_queue(|ms| ms == 100)], None);
        assert_eq!(one.rate.value().map(Probability::get), Some(1.0 / 20_000.0));
    }

    /// One event in 1340 groups of 50 may be a rate between a quarter and five times as high.
    #[test]
    fn consecutive_losses_are_one_event() {
        let one_burst: Vec<bool> = (0..67_000).map(|n| !(30_000..30_050).contains(&n)).collect();
        let found = losses([&stream(&one_burst)], None);
        let estimate = found.rate.estimate().unwrap();
        assert_eq!(estimate.value.get(), 50.0 / 67_000.0);
        let (low, high) = sweetspot_statistics::wilson(1, 1340);
        assert!((estimate.low.get() - low).abs() < 1e-9, "{estimate:?}");
        assert!((estimate.high.get() - high).abs() < 1e-9, "{estimate:?}");
        let alone: Vec<bool> = (0..67_000).map(|n| n % 1340 != 0).collect();
        let found = losses([&stream(&alone)], None);
        let estimate = found.rate.estimate().unwrap();
        assert_eq!(
            (estimate.low.get(), estimate.high.get()),
            sweetspot_statistics::wilson(50, 67_000)
        );
    }

    #[test]
    fn bursts_of_three_have_a_mean_length_of_three() {
        let came: Vec<bool> = (0..1000).map(|n| n % 100 >= 3).collect();
        assert_eq!(losses([&stream(&came)], None).burst.value(), Some(3.0));
    }

    #[test]
    fn a_duplicate_packet_hides_no_loss() {
        let mut doubled = stream(&[true, false, true]);
        doubled.arrivals.push(doubled.arrivals[0]);
        assert_eq!(losses([&doubled], None).lost, 1);
    }
}
