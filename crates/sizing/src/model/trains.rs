use sweetspot_units::{Bytes, Duration, Rate, Time};

use crate::{ControllerConfig, Train, TrainRequest};

/// "SOBAS sends five packet trains at the forward path during the first few round-trips of the
/// transfer" (section VII-A).
const TRAINS: usize = 5;

/// Packets in the first train, and in any train at least. The paper gives no length. Five full
/// packets are half of TCP's own initial window (RFC 6928): a buffer that holds a connection's
/// first flight holds them beside the transfer's data.
const FIRST_LENGTH: u32 = 5;

/// How many times as long as the longest that came the next train may be: where a path jitters by
/// more than a train lasts, its rate may be far too high.
const LONGER: u32 = 4;

/// Packets in the longest train.
const LONGEST: u32 = 128;

/// The largest share of a BDP that a train may have, so that it and the data that grows beside it
/// fit into the smallest buffer worth serving, a tenth of a BDP.
const SHARE_OF_BDP: f64 = 0.04;

/// Dispersion aimed for after the first train: below it the receiver's clock and the path's
/// jitter (about 100 us each) blur the rate by more than a tenth.
const DISPERSION: Duration = Duration::from_micros(2_000);

/// How far two trains' rates may lie apart that met nothing but an idle path.
const AGREE: f64 = 0.05;

/// ... besides what the receiver's clock and scheduler blur each train's dispersion by.
const CLOCK: Duration = Duration::from_micros(50);

/// Time over which the trains are spread, a round trip at least: others' traffic comes and goes, and
/// trains close together meet none of it by chance.
const SPREAD: Duration = Duration::from_millis(150);

/// Idle time between two trains, in dispersions, so that one is out of the bottleneck before the
/// next comes and the transfer's own data passes between them.
const IDLE: u64 = 1;

/// How long to wait for a train at the most: far beyond any round trip on which SOBAS pays.
const PATIENCE: Duration = Duration::from_millis(600);

/// Five packet trains: a short one or two to learn the rate roughly, then those of the length that can
/// be timed well at that rate.
#[derive(Debug)]
pub(crate) struct Trains {
    packet: Bytes,
    length: u32,
    /// Whether that is the length that can be timed well.
    settled: bool,
    gap: Duration,
    asked: usize,
    heard: Vec<Heard>,
    next_request: Option<Time>,
    deadline: Option<Time>,
}

/// A train that came.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Heard {
    rate: Rate,
    packets: u32,
}

/// What the trains say of the capacity together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Agreement {
    /// Too few have come.
    Unknown,
    /// Those that could be timed lie close together; the slowest of them.
    Close {
        /// The least rate, on the wire.
        slowest: Rate,
        /// How many.
        trains: usize,
    },
    /// They differ: others' packets lie between them, or jitter.
    Apart,
}

impl Trains {
    pub(crate) fn new(config: &ControllerConfig) -> Trains {
        Trains {
            packet: config.packet,
            length: FIRST_LENGTH,
            settled: false,
            gap: Duration::ZERO,
            asked: 0,
            heard: Vec::with_capacity(TRAINS),
            next_request: None,
            deadline: None,
        }
    }

    /// The transfer's first data came: from now on trains are waited for, with patience.
    pub(crate) fn handle_data(&mut self, now: Time) {
        self.deadline.get_or_insert(now + PATIENCE);
    }

    /// A probe came back. The first train waits for that: before, it would meet the connection's
    /// first flight, a burst, in the bottleneck's buffer.
    pub(crate) fn handle_probe(&mut self, now: Time) {
        if self.asked == 0 {
            self.next_request.get_or_insert(now);
        }
    }

    /// When the next train is to be asked for.
    pub(crate) fn next_request(&self) -> Option<Time> {
        self.next_request
    }

    /// When the next train is to be asked for, or the waiting ends.
    pub(crate) fn poll_timeout(&self) -> Option<Time> {
        self.next_request.or(self.deadline)
    }

    /// The request that is due by `now`.
    pub(crate) fn poll_request(&mut self, now: Time) -> Option<TrainRequest> {
        if self.next_request? > now {
            return None;
        }
        self.asked += 1;
        // The first train of a length is waited for, the others only for their gap.
        let more = self.settled && self.asked < TRAINS;
        self.next_request = more.then_some(now + self.gap);
        self.deadline = Some(now + PATIENCE);
        Some(TrainRequest { packets: self.length, size: self.packet })
    }

    /// A train arrived over a path of round trip `rtt`.
    pub(crate) fn handle_train(&mut self, now: Time, train: &Train, rtt: Duration) {
        let Some(rate) = train.rate() else { return };
        if !self.settled {
            let longest = (rate * DISPERSION).min((rate * rtt).scaled(SHARE_OF_BDP));
            let packets = longest.get() / self.packet.get().max(1);
            let wanted = (packets as u32).clamp(FIRST_LENGTH, LONGEST);
            let most = self.length * LONGER;
            self.settled = wanted <= most;
            self.length = wanted.min(most);
            let apart = self.spread(rtt) / (TRAINS as u64 - 1);
            self.gap = (self.packet * u64::from(self.length) / rate * (1 + IDLE)).max(apart);
            self.next_request = Some(now);
        }
        self.heard.push(Heard { rate, packets: train.received });
    }

    /// The estimate so far: the first train's until the others are in, then the median of those,
    /// which one train that met cross traffic or an interrupt does not move.
    pub(crate) fn estimate(&self) -> Option<Rate> {
        let counted = match &self.heard[..] {
            [_, others @ ..] if !others.is_empty() => others,
            all => all,
        };
        let mut rates: Vec<Rate> = counted.iter().map(|heard| heard.rate).collect();
        rates.sort_unstable();
        // Of an even number the lower middle: too low a first limit costs a round trip, too high
        // a one may cost a buffer.
        rates.get(rates.len().saturating_sub(1) / 2).copied()
    }

    /// The first train's rate, rough as it is.
    pub(crate) fn first(&self) -> Option<Rate> {
        self.heard.first().map(|heard| heard.rate)
    }

    /// Whether those that were long enough to be timed agree. Others' packets and jitter make trains
    /// differ; two that agree by chance are rare, five more so.
    pub(crate) fn agreement(&self) -> Agreement {
        let longest = self.heard.iter().map(|heard| heard.packets).max().unwrap_or(0);
        let timed = self.heard.iter().filter(|heard| heard.packets >= longest / 2);
        let rates: Vec<f64> = timed.map(|heard| heard.rate.as_f64()).collect();
        let (least, most) = rates
            .iter()
            .fold((f64::INFINITY, 0.0_f64), |(least, most), r| (least.min(*r), most.max(*r)));
        let bits = self.packet.as_f64() * 8.0 * f64::from(longest.saturating_sub(1).max(1));
        let blur = CLOCK.as_secs_f64() * least / bits;
        if most > least * (1.0 + AGREE + blur) {
            return Agreement::Apart;
        }
        match rates.len() {
            0 | 1 => Agreement::Unknown,
            trains => Agreement::Close { slowest: Rate::from_f64(least), trains },
        }
    }

    /// The time over which they are spread on a path of round trip `rtt`.
    pub(crate) fn spread(&self, rtt: Duration) -> Duration {
        SPREAD.max(rtt)
    }

    /// Bytes of the longest train asked for.
    pub(crate) fn longest(&self) -> Bytes {
        self.packet * u64::from(self.length)
    }

    /// Bytes of all trains of the present length.
    pub(crate) fn total(&self) -> Bytes {
        self.longest() * TRAINS as u64
    }

    /// Whether the length of trains that can be timed is known.
    pub(crate) fn are_settled(&self) -> bool {
        self.settled
    }

    /// Whether all that were asked for are in.
    pub(crate) fn are_complete(&self) -> bool {
        self.heard.len() >= TRAINS
    }

    /// Whether no more trains are to be expected.
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

    /// Asks for all that may be asked for before another one comes; the lengths.
    fn ask(trains: &mut Trains) -> Vec<u32> {
        trains.handle_probe(Time::ZERO);
        let mut lengths = Vec::new();
        while let Some(due) = trains.next_request {
            lengths.extend(trains.poll_request(due).map(|request| request.packets));
        }
        lengths
    }

    /// A train of so many packets of 1500 bytes comes at `rate`.
    fn hear(trains: &mut Trains, packets: u32, rate: Rate) {
        let bytes_after_first = Bytes::new(u64::from(packets - 1) * 1500);
        let dispersion = bytes_after_first / rate;
        let train = Train { sent: packets, received: packets, bytes_after_first, dispersion };
        trains.handle_train(Time::ZERO, &train, RTT);
    }

    #[test]
    fn no_train_is_far_longer_than_one_that_came() {
        let mut trains = trains();
        assert_eq!(ask(&mut trains), [5]);
        // Compressed by jitter to 3 Gbit/s, at which 2 ms hold 500 packets.
        hear(&mut trains, 5, Rate::from_mbit_per_second(3_000));
        assert_eq!(ask(&mut trains), [20]);
        // At 96 Mbit/s 2 ms hold 16.
        hear(&mut trains, 20, Rate::from_mbit_per_second(96));
        assert_eq!(ask(&mut trains), [16, 16, 16]);
    }

    #[test]
    fn trains_of_an_idle_path_agree_and_those_that_met_others_do_not() {
        let heard = |rates: [u64; 5]| {
            let mut trains = trains();
            rates.iter().for_each(|mbit| hear(&mut trains, 16, Rate::from_mbit_per_second(*mbit)));
            trains.agreement()
        };
        let slowest = Rate::from_mbit_per_second(96);
        assert_eq!(heard([96, 98, 97, 96, 98]), Agreement::Close { slowest, trains: 5 });
        // 50 Mbit/s, of which others' packets took up to two thirds: in Table I of the paper.
        assert_eq!(heard([15, 23, 50, 44, 22]), Agreement::Apart);
        // Compressed and stretched by jitter around 96 Mbit/s.
        assert_eq!(heard([300, 72, 24, 116, 80]), Agreement::Apart);
        assert_eq!(trains().agreement(), Agreement::Unknown);
    }

    #[test]
    fn a_train_too_short_to_be_timed_takes_no_part() {
        let mut trains = trains();
        // Four gaps of 120 us that a clock blurred by 100: 76 Mbit/s. 1.8 ms of the others: 100.
        hear(&mut trains, 5, Rate::from_mbit_per_second(76));
        hear(&mut trains, 16, Rate::from_mbit_per_second(100));
        hear(&mut trains, 16, Rate::from_mbit_per_second(99));
        let Agreement::Close { slowest, trains: 2 } = trains.agreement() else {
            panic!("{trains:?}")
        };
        // A dispersion is a whole number of nanoseconds, of 1.8 million.
        assert!((slowest.as_f64() / 99e6 - 1.0).abs() < 1e-6, "{slowest}");
    }
}
