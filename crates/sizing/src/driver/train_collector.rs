use std::collections::VecDeque;

use sweetspot_units::{Bytes, Duration, Time};

use crate::contract::{Train, TrainRequest};
use crate::model::SILENCE;

/// One packet of a train.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrainPacket {
    /// Number of its train.
    pub train: u32,
    /// Index in the train, from 0.
    pub index: u32,
}

/// A train is over if nothing arrives for this long: the rest was dropped.
pub(crate) const TRAIN_TIMEOUT: Duration = Duration::from_millis(100);

/// Collects packet trains at the receiver and measures their dispersion.
///
/// **Contract.** `now` never goes backwards; arrival times may be earlier.
#[derive(Debug, Default)]
pub struct TrainCollector {
    pending: VecDeque<PendingTrain>,
    next_id: u32,
}

#[derive(Debug)]
struct PendingTrain {
    id: u32,
    packets: u32,
    requested: Time,
    seen: Vec<bool>,
    arrivals: Option<Arrivals>,
}

#[derive(Debug)]
struct Arrivals {
    first: Time,
    last: Time,
    received: u32,
    bytes_after_first: Bytes,
}

impl TrainCollector {
    /// A train is asked for; returns its number.
    pub fn register(&mut self, now: Time, request: &TrainRequest) -> u32 {
        let id = self.next_id;
        self.next_id = self.next_id.wrapping_add(1);
        let packets = request.packets;
        let seen = vec![false; packets as usize];
        self.pending.push_back(PendingTrain { id, packets, requested: now, seen, arrivals: None });
        id
    }

    /// A packet of `size` bytes on the wire arrived.
    pub fn handle_packet(&mut self, arrived: Time, size: Bytes, packet: TrainPacket) {
        let Some(train) = self.pending.iter_mut().find(|t| t.id == packet.train) else { return };
        let Some(seen @ false) = train.seen.get_mut(packet.index as usize) else { return };
        *seen = true;
        match &mut train.arrivals {
            None => {
                let bytes_after_first = Bytes::ZERO;
                let (first, last) = (arrived, arrived);
                train.arrivals = Some(Arrivals { first, last, received: 1, bytes_after_first });
            }
            Some(arrivals) => {
                arrivals.last = arrivals.last.max(arrived);
                arrivals.received += 1;
                arrivals.bytes_after_first += size;
            }
        }
    }

    /// When the next outstanding train is given up.
    pub fn poll_timeout(&self) -> Option<Time> {
        self.pending.iter().map(PendingTrain::ends).min()
    }

    /// The next train that is complete or given up.
    pub fn poll(&mut self, now: Time) -> Option<Train> {
        let at = self.pending.iter().position(|t| t.is_over(now))?;
        let train = self.pending.remove(at)?;
        let (received, bytes_after_first, dispersion) = match train.arrivals {
            Some(a) => (a.received, a.bytes_after_first, a.last.since(a.first)),
            None => (0, Bytes::ZERO, Duration::ZERO),
        };
        Some(Train { sent: train.packets, received, bytes_after_first, dispersion })
    }
}

impl PendingTrain {
    fn is_over(&self, now: Time) -> bool {
        let complete = self.arrivals.as_ref().is_some_and(|a| a.received == self.packets);
        complete || now >= self.ends()
    }

    /// When the train is over, complete or not: its request and its first packet may each take as long
    /// as the wait for a packet.
    fn ends(&self) -> Time {
        self.arrivals
            .as_ref()
            .map_or(self.requested + SILENCE * 2, |arrivals| arrivals.last + TRAIN_TIMEOUT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sweetspot_units::Rate;

    const SIZE: Bytes = Bytes::new(1500);
    const REQUEST: TrainRequest = TrainRequest { packets: 5, size: SIZE };

    fn us(n: u64) -> Time {
        Time::ZERO + Duration::from_micros(n)
    }

    #[test]
    fn dispersion_gives_the_bottleneck_rate() {
        let mut trains = TrainCollector::default();
        let train = trains.register(Time::ZERO, &REQUEST);
        // 1500 B every 120 us: 100 Mbit/s.
        for index in 0..5 {
            assert_eq!(trains.poll(us(1000)), None);
            trains.handle_packet(
                us(1000 + 120 * u64::from(index)),
                SIZE,
                TrainPacket { train, index },
            );
        }
        let train = trains.poll(us(1480)).unwrap();
        assert_eq!((train.sent, train.received), (5, 5));
        assert_eq!(train.rate(), Some(Rate::from_mbit_per_second(100)));
        assert_eq!(trains.poll(us(1480)), None);
    }

    #[test]
    fn a_train_with_losses_ends_after_a_timeout() {
        let mut trains = TrainCollector::default();
        let train = trains.register(Time::ZERO, &REQUEST);
        trains.handle_packet(us(1000), SIZE, TrainPacket { train, index: 0 });
        trains.handle_packet(us(1240), SIZE, TrainPacket { train, index: 2 });
        trains.handle_packet(us(1240), SIZE, TrainPacket { train, index: 2 });
        assert_eq!(trains.poll(us(101_239)), None);
        let train = trains.poll(us(101_240)).unwrap();
        assert_eq!((train.received, train.bytes_after_first), (2, SIZE));
    }

    #[test]
    fn a_train_that_never_arrives_is_reported() {
        let mut trains = TrainCollector::default();
        trains.register(Time::ZERO, &REQUEST);
        let train = trains.poll(us(2_000_000)).unwrap();
        assert_eq!((train.sent, train.received, train.rate()), (5, 0, None));
    }

    #[test]
    fn packets_of_unknown_trains_are_ignored() {
        let mut trains = TrainCollector::default();
        let train = trains.register(Time::ZERO, &REQUEST);
        trains.handle_packet(us(1), SIZE, TrainPacket { train: train + 1, index: 0 });
        trains.handle_packet(us(1), SIZE, TrainPacket { train, index: 5 });
        assert_eq!(trains.poll(us(1000)), None);
    }
}
