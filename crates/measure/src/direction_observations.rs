use sweetspot_statistics::median;
use sweetspot_units::{Bytes, Duration, Rate};

use crate::observation::{EchoRecord, LoadRecord, StreamRecord};
use crate::search::RateSearch;
use crate::skipped::{Purpose, SkippedSteps};
use crate::trend::{MIN_NOISE, trend};
use crate::{Finding, by_idle_time, by_pairs, capacity, serialization};

/// The observations of one direction.
#[derive(Debug, Clone, Default)]
pub(crate) struct Observations {
    /// Trains short enough to fit into any buffer.
    pub scouts: Vec<StreamRecord>,
    pub trains: Vec<StreamRecord>,
    /// Small packets with exponential gaps, and pairs of full packets, too few to disturb other traffic.
    pub sparse: Option<StreamRecord>,
    pub pairs: Option<StreamRecord>,
    pub streams: Vec<StreamRecord>,
    pub overloads: Vec<(StreamRecord, EchoRecord)>,
    pub slow: Vec<StreamRecord>,
    /// A stream only slightly above the available bandwidth.
    pub slight: Option<StreamRecord>,
    pub load: Option<LoadRecord>,
    pub search: Option<RateSearch>,
    /// Skipped measurements, with the reasons.
    pub left_out: SkippedSteps,
}

impl Observations {
    /// The capacity, from the trains and longer streams so far.
    pub fn capacity(&self) -> crate::CapacityEstimate {
        let long: Vec<&StreamRecord> = self.trains.iter().chain(self.saturating()).collect();
        // Jitter distorts the rate of so few packets.
        let trains =
            if long.is_empty() { capacity(&self.scouts) } else { capacity(long.iter().copied()) };
        let heads = || self.scouts.iter().chain(&self.trains);
        let single = self.sparse.as_ref().and_then(|sparse| {
            let single = serialization(sparse, heads());
            // If jitter hides the packets that found the link idle, the lower line under the delays is too high.
            let size = heads().next()?.size.as_f64();
            by_idle_time(single.value()?, sparse, size).value().map(|_| single)
        });
        // No single packet is faster than the link. If a train shows a lower rate, it shares the link with other flows'
        // queues.
        match (trains.capacity.estimate(), single) {
            (Some(shared), Some(single))
                if single.estimate().is_some_and(|single| single.low > shared.high) =>
            {
                crate::CapacityEstimate { capacity: single, ..trains }
            }
            _ => trains,
        }
    }

    /// The reason why no train was sent, if none was.
    pub fn why_no_trains(&self) -> Option<&str> {
        let none = self.scouts.is_empty() && self.trains.is_empty();
        let trains = [Purpose::RoughCapacity, Purpose::Capacity];
        self.left_out.why_none(&trains).filter(|_| none)
    }

    /// The reason for a quantity that needs the capacity, which is unknown.
    pub fn lacks_capacity(&self) -> String {
        self.why_no_trains().unwrap_or("it needs the capacity, which is unknown").to_owned()
    }

    /// The reason why no small packet counted losses or delays, if none did.
    pub fn why_no_small_packets(&self, capacity: Option<Rate>) -> Option<String> {
        if self.sparse.is_some() || !self.slow.is_empty() {
            return None;
        }
        match capacity {
            None => Some(self.lacks_capacity()),
            Some(_) => {
                let steps = [Purpose::Available, Purpose::RandomLoss];
                self.left_out.why_none(&steps).map(str::to_owned)
            }
        }
    }

    /// The reason why the available bandwidth is unknown, if a step for it was skipped.
    pub fn why_no_available(&self) -> Option<&str> {
        let steps = [Purpose::Available, Purpose::AvailableByPairs, Purpose::AvailableByStreams];
        match self.streams.is_empty() {
            true => self.left_out.why_none(&steps),
            false => self.left_out.why(&steps),
        }
    }

    /// The reason why the queue is unknown or only bounded, if a step for it was skipped.
    pub fn why_no_queue(&self) -> Option<&str> {
        match self.overloads.is_empty() {
            true => self.left_out.why_none(&[Purpose::Queue]).or(self.why_no_trains()),
            false => self.left_out.why(&[Purpose::Queue]),
        }
    }

    /// TCP's payload rate, a lower bound for the rate of IP packets.
    pub fn goodput(&self) -> Option<Rate> {
        let load = self.load.as_ref().filter(|load| load.elapsed > Duration::ZERO)?;
        Some(load.content / load.elapsed)
    }

    /// The available bandwidth from packets that did not disturb other traffic. `None` if they cannot show it, as behind
    /// a token bucket, which lets them pass whatever the load.
    pub fn undisturbed(&self, packet: Bytes) -> Option<Finding<Rate>> {
        let found = self.capacity();
        let capacity = found.capacity.value().filter(|_| found.burst.is_none())?;
        let idle = self.sparse.as_ref().map(|s| by_idle_time(capacity, s, packet.as_f64()));
        let pairs = self.pairs.as_ref().map(|pairs| by_pairs(capacity, pairs));
        idle.into_iter().chain(pairs).find(|found| found.value().is_some())
    }

    /// The parts of `streams` that load the link. A token bucket delays nothing until it is empty, so with one the first
    /// half is left out.
    pub fn loading(&self, streams: &[StreamRecord]) -> Vec<StreamRecord> {
        match self.capacity().burst {
            Some(_) => streams.iter().map(StreamRecord::later_half).collect(),
            None => streams.to_vec(),
        }
    }

    pub fn saturating(&self) -> impl Iterator<Item = &StreamRecord> {
        self.overloads.iter().map(|(stream, _)| stream)
    }

    /// One-way delay without the measurement's own queue: the smallest median of the streams that were slow enough. A
    /// median includes the same jitter as in any dense stream.
    pub fn reference_s(&self) -> Option<f64> {
        let slow = self.streams.iter().filter(|s| trend(s, MIN_NOISE).is_some());
        let medians = slow
            .chain(&self.slow)
            .chain(&self.sparse)
            .filter_map(|s| median(s.arrivals.iter().map(|arrival| arrival.delay_s())));
        let min = medians.fold(f64::INFINITY, f64::min);
        min.is_finite().then_some(min)
    }
}
