//! Losses that come without a queue, and whether they come in bursts.

use sweetspot_units::Probability;

use crate::finding::Finding;
use crate::observation::StreamRecord;
use crate::statistics::{mean_interval, wilson};

/// The fewest losses from which a rate is more than an upper bound.
const LEAST_LOSSES: u64 = 5;
/// The fewest bursts of which a mean length is told.
const LEAST_BURSTS: usize = 8;

/// Losses of streams below the available bandwidth.
#[derive(Debug, Clone, PartialEq)]
pub struct LossEstimate {
    /// The share of packets lost.
    pub rate: Finding<Probability>,
    /// How many packets in a row are lost, on average; 1 / (1 - rate) if they are lost independently. A burst ends with
    /// probability r in the model of Gilbert (1960, "Capacity of a burst-noise channel"), and this is 1/r.
    pub burst: Finding<f64>,
    /// Packets sent.
    pub sent: u64,
    /// Packets lost.
    pub lost: u64,
}

/// The losses of `streams`.
pub fn losses<'a>(streams: impl IntoIterator<Item = &'a StreamRecord>) -> LossEstimate {
    let (mut sent, mut lost, mut bursts) = (0, 0, Vec::new());
    for stream in streams {
        sent += u64::from(stream.sent);
        lost += u64::from(stream.lost());
        bursts.extend(burst_lengths(stream));
    }
    LossEstimate { rate: rate(sent, lost), burst: burst(&bursts), sent, lost }
}

fn rate(sent: u64, lost: u64) -> Finding<Probability> {
    let (low, high) = wilson(lost, sent);
    let share = |p: f64| Probability::new(p).unwrap_or(Probability::ZERO);
    match lost {
        _ if sent == 0 => Finding::unknown("no packets were sent for it"),
        0 => Finding::known(
            Probability::ZERO,
            Probability::ZERO,
            share(high),
            format!("none of {sent} packets was lost"),
        ),
        1..LEAST_LOSSES => Finding::known(
            share(lost as f64 / sent as f64),
            share(low),
            share(high),
            format!("{lost} of {sent} packets: too few for more than a bound"),
        ),
        _ => Finding::known(
            share(lost as f64 / sent as f64),
            share(low),
            share(high),
            format!("{lost} of {sent} packets, sent slower than the path has room for"),
        ),
    }
}

fn burst(lengths: &[f64]) -> Finding<f64> {
    match mean_interval(lengths) {
        Some((mean, half)) if lengths.len() >= LEAST_BURSTS => Finding::known(
            mean,
            (mean - half).max(1.0),
            mean + half,
            format!("{} gaps in the numbers of the packets", lengths.len()),
        ),
        _ => Finding::unknown(format!(
            "{} losses apart from one another; it takes {LEAST_BURSTS}",
            lengths.len()
        )),
    }
}

/// The lengths of the runs of packets that did not arrive.
fn burst_lengths(stream: &StreamRecord) -> Vec<f64> {
    let mut came = vec![false; stream.sent as usize];
    for arrival in &stream.arrivals {
        if let Some(place) = came.get_mut(arrival.index as usize) {
            *place = true;
        }
    }
    came.chunk_by(|a, b| a == b).filter(|run| !run[0]).map(|run| run.len() as f64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observation::Arrival;
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
        fn the_interval_holds_the_share_that_was_lost(
            came in proptest::collection::vec(proptest::bool::weighted(0.9), 1..2000),
        ) {
            let lost = came.iter().filter(|came| !**came).count();
            let found = losses([&stream(&came)]);
            prop_assert_eq!(found.lost as usize, lost);
            let estimate = found.rate.estimate().unwrap();
            prop_assert_eq!(estimate.value.get(), lost as f64 / came.len() as f64);
            prop_assert!(estimate.low.get() <= estimate.value.get() + 1e-12);
            prop_assert!(estimate.value.get() <= estimate.high.get() + 1e-12);
        }
    }

    #[test]
    fn bursts_of_three_have_a_mean_length_of_three() {
        let came: Vec<bool> = (0..1000).map(|n| n % 100 >= 3).collect();
        assert_eq!(losses([&stream(&came)]).burst.value(), Some(3.0));
    }

    #[test]
    fn a_packet_that_comes_twice_hides_no_loss() {
        let mut doubled = stream(&[true, false, true]);
        doubled.arrivals.push(doubled.arrivals[0]);
        assert_eq!(losses([&doubled]).lost, 1);
    }
}
