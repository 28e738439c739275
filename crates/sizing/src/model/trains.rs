use sweetspot_units::{Bytes, Duration, Rate, Time};

use super::delivery_rate::PACE_SHARE;
use super::resolution::{AGREEMENT, RESOLUTION};
use super::round_trip::SILENCE;
use super::samples::Samples;
use crate::linux::INITIAL_SEGMENTS;
use crate::{ControllerConfig, Train, TrainRequest};

/// "SOBAS sends five packet trains at the forward path during the first few round-trips of the
/// transfer" (section VII-A).
const TRAIN_COUNT: usize = 5;

/// A train may have at most this many times the packets of the longest that arrived: if jitter
/// exceeds a train's dispersion, its rate may be far too high.
const MAX_DISPERSION_GROWTH: u32 = 4;

/// Share of a transfer's bytes that probes may add, and again as much for trains: both together cost as much as an empty
/// buffer. A transfer too short for this budget ends before a limit could be worth its cost.
pub(crate) const MEASURING_SHARE: f64 = (1.0 - PACE_SHARE) / 2.0;

/// Error of a time measured at an end, from its clock and scheduler. It applies to the dispersion of a train and to a probe's
/// RTT.
const CLOCK_ERROR: Duration = Duration::from_micros(50);

/// Time over which trains are spread, at least a round trip. Cross traffic is bursty, and trains close together may miss all of
/// it. With 60 ms, goodput relative to the kernel's falls from 0.877 to 0.848 at the fifth percentile (population `changes`,
/// seed 5151).
const TRAIN_SPREAD: Duration = Duration::from_millis(150);

/// Five packet trains: one or two short ones for a rough rate, then trains long enough to be timed accurately at that rate.
#[derive(Debug, Default)]
pub(crate) struct Trains {
    packet: Bytes,
    length: u32,
    /// Whether trains have reached the length that can be timed accurately.
    settled: bool,
    gap: Duration,
    requested: usize,
    received: Vec<ReceivedTrain>,
    next_request: Option<Time>,
    deadline: Option<Time>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct ReceivedTrain {
    rate: Rate,
    packets: u32,
}

/// How well the trains agree on the capacity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Agreement {
    /// Too few trains have arrived.
    Unknown,
    /// The trains that could be timed agree.
    Close {
        /// The lowest rate, on the wire.
        slowest: Rate,
        trains: usize,
    },
    /// They differ, because of jitter or cross traffic between their packets.
    Apart,
}

/// Packets in the first train, the minimum for every train. The paper gives no length. This is half of TCP's own initial window
/// (RFC 6928): a buffer that holds a connection's initial window holds the train beside the transfer's data.
fn first_train_packets() -> u32 {
    INITIAL_SEGMENTS as u32 / 2
}

/// Target dispersion after the first train, 1.7 ms. Below it, the clock error of two compared trains exceeds the tolerated
/// difference.
fn target_dispersion() -> Duration {
    CLOCK_ERROR.scaled(2.0 / AGREEMENT)
}

impl Trains {
    pub(crate) fn new(config: &ControllerConfig) -> Trains {
        Trains {
            packet: config.packet,
            length: first_train_packets(),
            received: Vec::with_capacity(TRAIN_COUNT),
            ..Trains::default()
        }
    }

    /// The transfer's first data arrived: the wait for trains starts.
    pub(crate) fn handle_data(&mut self, now: Time) {
        self.deadline.get_or_insert(now + SILENCE);
    }

    /// A probe was answered. The first train waits for this answer; earlier it would meet the connection's initial burst in the
    /// bottleneck's buffer.
    pub(crate) fn handle_probe(&mut self, now: Time) {
        if self.requested == 0 {
            self.next_request.get_or_insert(now);
        }
    }

    /// Time of the next train request.
    pub(crate) fn next_request(&self) -> Option<Time> {
        self.next_request
    }

    /// Time of the next train request, or of the end of the wait.
    pub(crate) fn poll_timeout(&self) -> Option<Time> {
        self.next_request.or(self.deadline)
    }

    pub(crate) fn poll_request(&mut self, now: Time) -> Option<TrainRequest> {
        if self.next_request? > now {
            return None;
        }
        self.requested += 1;
        // The next request waits for the first train of a new length to arrive; after the others it waits only for the gap.
        let more = self.settled && self.requested < TRAIN_COUNT;
        self.next_request = more.then_some(now + self.gap);
        self.deadline = Some(now + SILENCE);
        Some(TrainRequest { packets: self.length, size: self.packet })
    }

    /// A train arrived over a path of round trip `rtt`.
    pub(crate) fn handle_train(&mut self, now: Time, train: &Train, rtt: Duration) {
        let Some(rate) = train.rate() else { return };
        if !self.settled {
            let longest = (rate * target_dispersion()).min((rate * rtt).scaled(RESOLUTION));
            let packets = longest.get() / self.packet.get().max(1);
            let wanted = u32::try_from(packets).unwrap_or(u32::MAX).max(first_train_packets());
            let max = self.length * MAX_DISPERSION_GROWTH;
            self.settled = wanted <= max;
            self.length = wanted.min(max);
            let apart = self.spread(rtt) / (TRAIN_COUNT as u64 - 1);
            // Twice the dispersion from one train's start to the next: the first train has then left the bottleneck, and the
            // transfer's own data passes between them.
            self.gap = (self.packet * u64::from(self.length) / rate * 2).max(apart);
            self.next_request = Some(now);
        }
        self.received.push(ReceivedTrain { rate, packets: train.received });
    }

    /// The current estimate: the first train's rate until the others have arrived, then the median of the others. Cross traffic
    /// or an interrupt in one train does not move a median.
    pub(crate) fn estimate(&self) -> Option<Rate> {
        let counted = match &self.received[..] {
            [_, others @ ..] if !others.is_empty() => others,
            all => all,
        };
        let mut rates: Vec<Rate> = counted.iter().map(|received| received.rate).collect();
        rates.sort_unstable();
        // The lower middle of an even number: a first limit that is too low costs a round trip, and one that is too high may
        // overflow a buffer.
        rates.get(rates.len().saturating_sub(1) / 2).copied()
    }

    /// The packets of the longest train that arrived.
    fn longest_received(&self) -> u32 {
        self.received.iter().map(|received| received.packets).max().unwrap_or(0)
    }

    /// The rates, in bit/s, of trains long enough to be timed.
    fn timed(&self) -> impl Iterator<Item = f64> {
        let min = self.longest_received() / 2;
        let timed = self.received.iter().filter(move |received| received.packets >= min);
        timed.map(|received| received.rate.as_f64())
    }

    /// The mean of those rates, with its error.
    pub(crate) fn rates(&self) -> Samples {
        let mut rates = Samples::default();
        self.timed().for_each(|rate| rates.add(rate));
        rates
    }

    /// The first train's rate, a rough estimate.
    pub(crate) fn first(&self) -> Option<Rate> {
        self.received.first().map(|received| received.rate)
    }

    /// Whether the trains long enough to be timed agree. Cross traffic and jitter make trains differ; two rarely agree by
    /// chance, and five even less often.
    pub(crate) fn agreement(&self) -> Agreement {
        let (min, max) =
            self.timed().fold((f64::INFINITY, 0.0_f64), |(min, max), r| (min.min(r), max.max(r)));
        let gaps = self.longest_received().saturating_sub(1).max(1);
        let bits = self.packet.as_f64() * 8.0 * f64::from(gaps);
        let blur = CLOCK_ERROR.as_secs_f64() * min / bits;
        if max > min * (1.0 + AGREEMENT + blur) {
            return Agreement::Apart;
        }
        match self.timed().count() {
            0 | 1 => Agreement::Unknown,
            trains => Agreement::Close { slowest: Rate::from_f64(min), trains },
        }
    }

    /// The time over which trains are spread on a path of round trip `rtt`.
    pub(crate) fn spread(&self, rtt: Duration) -> Duration {
        TRAIN_SPREAD.max(rtt)
    }

    pub(crate) fn longest(&self) -> Bytes {
        self.packet * u64::from(self.length)
    }

    /// Bytes of all trains of the current length.
    pub(crate) fn total(&self) -> Bytes {
        self.longest() * TRAIN_COUNT as u64
    }

    /// Whether the length that can be timed accurately is known.
    pub(crate) fn are_settled(&self) -> bool {
        self.settled
    }

    pub(crate) fn are_complete(&self) -> bool {
        self.received.len() >= TRAIN_COUNT
    }

    /// Whether no more trains are expected.
    pub(crate) fn are_over(&self, now: Time) -> bool {
        let waited = self.next_request.is_none() && self.deadline.is_some_and(|d| now >= d);
        self.are_complete() || waited
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(100);

    fn trains() -> Trains {
        Trains::new(&ControllerConfig {
            mss: Bytes::new(1448),
            packet: Bytes::new(1500),
            max_window: Bytes::new(1 << 25),
            size: None,
            path: None,
        })
    }

    /// Requests all trains that may be requested before another arrives; returns their lengths.
    fn request_all(trains: &mut Trains) -> Vec<u32> {
        trains.handle_probe(Time::ZERO);
        let mut lengths = Vec::new();
        while let Some(due) = trains.next_request {
            lengths.extend(trains.poll_request(due).map(|request| request.packets));
        }
        lengths
    }

    /// A train of `packets` packets of 1500 bytes arrives at `rate`.
    fn receive(trains: &mut Trains, packets: u32, rate: Rate) {
        let bytes_after_first = Bytes::new(u64::from(packets - 1) * 1500);
        let dispersion = bytes_after_first / rate;
        let train = Train { sent: packets, received: packets, bytes_after_first, dispersion };
        trains.handle_train(Time::ZERO, &train, RTT);
    }

    #[test]
    fn no_train_is_far_longer_than_the_longest_received() {
        let mut trains = trains();
        assert_eq!(request_all(&mut trains), [5]);
        // Jitter compressed the train to 3 Gbit/s, at which 1.7 ms hold 400 packets.
        receive(&mut trains, 5, Rate::from_mbit_per_second(3_000));
        assert_eq!(request_all(&mut trains), [20]);
        // At 96 Mbit/s 50 us x 2 / 0.06 hold 13.
        receive(&mut trains, 20, Rate::from_mbit_per_second(96));
        assert_eq!(request_all(&mut trains), [13, 13, 13]);
    }

    #[test]
    fn trains_agree_on_an_idle_path_and_not_amid_cross_traffic() {
        let received = |rates: [u64; 5]| {
            let mut trains = trains();
            rates
                .iter()
                .for_each(|mbit| receive(&mut trains, 16, Rate::from_mbit_per_second(*mbit)));
            trains.agreement()
        };
        let slowest = Rate::from_mbit_per_second(96);
        assert_eq!(received([96, 98, 97, 96, 98]), Agreement::Close { slowest, trains: 5 });
        // 50 Mbit/s, up to two thirds of it used by cross traffic: from Table I of the paper.
        assert_eq!(received([15, 23, 50, 44, 22]), Agreement::Apart);
        // Jitter compressed and stretched the trains around 96 Mbit/s.
        assert_eq!(received([300, 72, 24, 116, 80]), Agreement::Apart);
        assert_eq!(trains().agreement(), Agreement::Unknown);
    }

    #[test]
    fn trains_too_short_to_time_are_ignored() {
        let mut trains = trains();
        // Four gaps of 120 us, plus 100 us of clock error: 76 Mbit/s. The others last 1.8 ms: 100 Mbit/s.
        receive(&mut trains, 5, Rate::from_mbit_per_second(76));
        receive(&mut trains, 16, Rate::from_mbit_per_second(100));
        receive(&mut trains, 16, Rate::from_mbit_per_second(99));
        let Agreement::Close { slowest, trains: 2 } = trains.agreement() else {
            panic!("{trains:?}")
        };
        // A dispersion is a whole number of nanoseconds, of 1.8 million.
        assert!((slowest.as_f64() / 99e6 - 1.0).abs() < 1e-6, "{slowest}");
    }
}
