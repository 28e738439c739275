use sweetspot_statistics::median;
use sweetspot_units::{Bytes, Rate};

use crate::observation::{EchoRecord, LoadRecord, StreamRecord};
use crate::search::RateSearch;
use crate::trend::{MIN_NOISE, trend};
use crate::{Finding, by_idle_time, by_pairs, capacity, serialization};

/// The observations of one direction.
#[derive(Debug, Clone, Default)]
pub(crate) struct Observations {
    /// Trains so short that they fill no buffer.
    pub scouts: Vec<StreamRecord>,
    pub trains: Vec<StreamRecord>,
    /// Small packets with exponential gaps, and pairs of full ones, which disturb nobody.
    pub sparse: Option<StreamRecord>,
    pub pairs: Option<StreamRecord>,
    pub streams: Vec<StreamRecord>,
    pub overloads: Vec<(StreamRecord, EchoRecord)>,
    pub slow: Vec<StreamRecord>,
    /// A stream that is only a little too fast.
    pub slight: Option<StreamRecord>,
    pub load: Option<LoadRecord>,
    pub search: Option<RateSearch>,
    /// Skipped measurements, with reasons.
    pub left_out: Vec<String>,
}

impl Observations {
    /// The capacity that the trains and longer streams so far show.
    pub fn capacity(&self) -> crate::CapacityEstimate {
        let long: Vec<&StreamRecord> = self.trains.iter().chain(self.saturating()).collect();
        // Over so few packets jitter weighs much.
        let trains =
            if long.is_empty() { capacity(&self.scouts) } else { capacity(long.iter().copied()) };
        let heads = || self.scouts.iter().chain(&self.trains);
        let single = self.sparse.as_ref().and_then(|sparse| {
            let single = serialization(sparse, heads());
            // Where jitter hides the packets that found the link idle, the line under them is too high.
            let size = heads().next()?.size.as_f64();
            by_idle_time(single.value()?, sparse, size).value().map(|_| single)
        });
        // No packet is sent faster than the link is: a train that says less shares it with other flows' queues.
        match (trains.capacity.estimate(), single) {
            (Some(shared), Some(single))
                if single.estimate().is_some_and(|single| single.low > shared.high) =>
            {
                crate::CapacityEstimate { capacity: single, ..trains }
            }
            _ => trains,
        }
    }

    /// The available bandwidth as packets saw it that disturbed nobody; `None` where they cannot tell, as behind a token
    /// bucket, which lets them pass whatever others send.
    pub fn undisturbed(&self, packet: Bytes) -> Option<Finding<Rate>> {
        let found = self.capacity();
        let capacity = found.capacity.value().filter(|_| found.burst.is_none())?;
        let idle = self.sparse.as_ref().map(|s| by_idle_time(capacity, s, packet.as_f64()));
        let pairs = self.pairs.as_ref().map(|pairs| by_pairs(capacity, pairs));
        idle.into_iter().chain(pairs).find(|found| found.value().is_some())
    }

    /// The parts of `streams` in which they load the link: a token bucket delays nothing before it is empty.
    pub fn loading(&self, streams: &[StreamRecord]) -> Vec<StreamRecord> {
        match self.capacity().burst {
            Some(_) => streams.iter().map(StreamRecord::later_half).collect(),
            None => streams.to_vec(),
        }
    }

    pub fn saturating(&self) -> impl Iterator<Item = &StreamRecord> {
        self.overloads.iter().map(|(stream, _)| stream)
    }

    /// The one-way delay without a queue of ours: of the streams that were slow enough the least median, so that
    /// jitter counts as it does in any dense stream.
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
