use sweetspot_units::{Bytes, Duration, Rate, Time};

use crate::{Output, Setting, Train, TrainRequest};

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

/// How much faster than a train the transfer must have been for others to have slowed the train:
/// more than clock and jitter blur it by.
const SLOWED: f64 = 1.1;

/// How many times as fast as their median the fastest train is where the path jitters by more than a
/// train lasts: what waits behind a late first packet comes all at once. Others' packets in between
/// make trains slower than the path, never faster, and leave fewer of them slow.
const BLURRED: f64 = 2.5;

/// How many times as fast as what they say the fastest train is where that may be jitter's doing:
/// others' packets made the trains of one in twenty of Table I's runs differ by so much.
const DOUBTFUL: f64 = 1.8;

/// Idle time between two trains, in dispersions, so that one is out of the bottleneck before the
/// next comes and the transfer's own data passes between them.
const IDLE: u64 = 1;

/// How long to wait for a train: far beyond any round trip on which SOBAS pays.
const PATIENCE: Duration = Duration::from_millis(600);

/// Five packet trains: a short one or two to learn the rate roughly, then those of the length that can
/// be timed well at that rate.
#[derive(Debug)]
pub(super) struct Trains {
    packet: Bytes,
    length: u32,
    /// Whether that is the length that can be timed well.
    settled: bool,
    gap: Duration,
    asked: usize,
    heard: Vec<Rate>,
    /// The two fastest heralds.
    heralds: [Rate; 2],
    next_request: Option<Time>,
    deadline: Option<Time>,
}

impl Trains {
    pub(super) fn new(setting: &Setting) -> Trains {
        Trains {
            packet: setting.packet,
            length: FIRST_LENGTH,
            settled: false,
            gap: Duration::ZERO,
            asked: 0,
            heard: Vec::with_capacity(TRAINS),
            heralds: [Rate::ZERO; 2],
            next_request: None,
            deadline: None,
        }
    }

    /// The transfer's first data came: from now on trains are waited for, with patience.
    pub(super) fn handle_data(&mut self, now: Time) {
        self.deadline.get_or_insert(now + PATIENCE);
    }

    /// A probe came back. The first train waits for that: before, it would meet the connection's
    /// first flight, a burst, in the bottleneck's buffer.
    pub(super) fn handle_probe(&mut self, now: Time) {
        if self.asked == 0 {
            self.next_request.get_or_insert(now);
        }
    }

    /// When the next train is to be asked for, or the waiting ends.
    pub(super) fn poll_timeout(&self) -> Option<Time> {
        self.next_request.or(self.deadline)
    }

    /// The request that is due by `now`.
    pub(super) fn poll_request(&mut self, now: Time) -> Option<Output> {
        if self.next_request? > now {
            return None;
        }
        self.asked += 1;
        // The first train of a length is waited for, the others only for their gap.
        let more = self.settled && self.asked < TRAINS;
        self.next_request = more.then_some(now + self.gap);
        self.deadline = Some(now + PATIENCE);
        Some(Output::Train(TrainRequest { packets: self.length, size: self.packet }))
    }

    /// A train arrived over a path of round trip `rtt`.
    pub(super) fn handle_train(&mut self, now: Time, train: &Train, rtt: Duration) {
        let Some(rate) = train.rate() else { return };
        if !self.settled {
            let longest = (rate * DISPERSION).min((rate * rtt).scaled(SHARE_OF_BDP));
            let packets = longest.get() / self.packet.get().max(1);
            let wanted = (packets as u32).clamp(FIRST_LENGTH, LONGEST);
            let most = self.length * LONGER;
            self.settled = wanted <= most;
            self.length = wanted.min(most);
            self.gap = (self.packet * u64::from(self.length) / rate) * (1 + IDLE);
            self.next_request = Some(now);
        }
        self.heard.push(rate);
    }

    /// The estimate so far: the first train's until the others are in, then the median of those,
    /// which one train that met cross traffic or an interrupt does not move.
    pub(super) fn estimate(&self) -> Option<Rate> {
        let rates = sorted(match &self.heard[..] {
            [_, others @ ..] if !others.is_empty() => others,
            all => all,
        });
        // Of an even number the lower middle: too low a first limit costs a round trip, too high
        // a one may cost a buffer.
        rates.get(rates.len().saturating_sub(1) / 2).copied()
    }

    /// Whether the path jitters so much that trains tell nothing of its capacity.
    pub(super) fn are_blurred(&self) -> bool {
        let rates = sorted(&self.heard);
        let median = rates.get(rates.len() / 2);
        rates.last().zip(median).is_some_and(|(fastest, median)| *fastest > median.scaled(BLURRED))
    }

    /// Whether they differ by more than others' packets make them, so that jitter may have.
    pub(super) fn are_doubtful(&self) -> bool {
        let known = self.fastest().zip(self.estimate());
        known.is_none_or(|(fastest, estimate)| fastest > estimate.scaled(DOUBTFUL))
    }

    /// A herald arrived: a train, too, and often a longer one.
    pub(super) fn handle_herald(&mut self, herald: &Train) {
        let whole = herald.received == herald.sent;
        let Some(rate) = herald.rate().filter(|_| whole) else { return };
        let [first, second] = self.heralds;
        self.heralds = if rate > first { [rate, first] } else { [first, second.max(rate)] };
    }

    /// The fastest train, or a rate that two heralds reached. Others' packets between its own slow
    /// every train, so that five short ones may all be too slow; of two, one may be too fast by chance.
    pub(super) fn fastest(&self) -> Option<Rate> {
        let [_, second] = self.heralds;
        self.heard.iter().max().map(|fastest| second.max(*fastest))
    }

    /// The highest rate that two trains agree on. Others' packets between its own make a train too
    /// slow, and may meet most of them; what makes one too fast, a late first packet, is chance.
    fn agreed(&self) -> Option<Rate> {
        let rates = sorted(&self.heard);
        rates.iter().rev().nth(1).or(rates.first()).copied()
    }

    /// That rate, or the fastest train's where a transfer of `rate` shows that both were slowed.
    pub(super) fn agreed_beside(&self, rate: Rate) -> Option<Rate> {
        self.agreed().filter(|agreed| rate <= agreed.scaled(SLOWED)).or(self.fastest())
    }

    /// A transfer of `rate` has the path to itself: what the trains said counts for nothing if it was
    /// less.
    pub(super) fn doubt(&mut self, rate: Rate) {
        if self.agreed().is_some_and(|agreed| rate > agreed.scaled(SLOWED)) {
            self.forget();
        }
    }

    /// What the trains said counts for nothing.
    pub(super) fn forget(&mut self) {
        self.heard.clear();
    }

    /// Whether no more trains are to be expected.
    pub(super) fn are_over(&self, now: Time) -> bool {
        let waited = self.next_request.is_none() && self.deadline.is_some_and(|d| now >= d);
        self.heard.len() >= TRAINS || waited
    }
}

/// The same from the slowest to the fastest.
fn sorted(rates: &[Rate]) -> Vec<Rate> {
    let mut rates = rates.to_vec();
    rates.sort_unstable();
    rates
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(100);

    fn trains() -> Trains {
        Trains::new(&Setting {
            mss: Bytes::new(1448),
            packet: Bytes::new(1500),
            max_window: Bytes::new(1 << 25),
            path: None,
        })
    }

    /// Asks for all that may be asked for before another one comes; the lengths.
    fn ask(trains: &mut Trains) -> Vec<u32> {
        trains.handle_probe(Time::ZERO);
        let length = |output| match output {
            Output::Train(request) => request.packets,
            other => panic!("{other:?}"),
        };
        let mut lengths = Vec::new();
        while let Some(due) = trains.next_request {
            lengths.extend(trains.poll_request(due).map(length));
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
    fn trains_that_come_far_too_fast_are_blurred_and_slow_ones_are_not() {
        let heard = |rates: [u64; 5]| {
            let mut trains = trains();
            rates.iter().for_each(|mbit| hear(&mut trains, 5, Rate::from_mbit_per_second(*mbit)));
            trains.are_blurred()
        };
        // Compressed and stretched by jitter around 96 Mbit/s.
        assert!(heard([3_000, 72, 24, 116, 80]));
        // 50 Mbit/s, of which others' packets took up to two thirds: in Table I of the paper.
        assert!(!heard([15, 23, 50, 44, 22]));
    }

    #[test]
    fn trains_are_doubted_by_a_transfer_that_is_faster_or_by_one_another() {
        let heard = |rates: [u64; 5]| {
            let mut trains = trains();
            rates.iter().for_each(|mbit| hear(&mut trains, 5, Rate::from_mbit_per_second(*mbit)));
            trains
        };
        // The median of the last four, 44, and 100.
        let mut jittered = heard([60, 44, 40, 100, 46]);
        assert!(jittered.are_doubtful());
        // Two agreed on 60.
        jittered.doubt(Rate::from_mbit_per_second(65));
        assert!(jittered.estimate().is_some());
        jittered.doubt(Rate::from_mbit_per_second(97));
        assert_eq!(jittered.estimate(), None);
        assert!(!heard([50, 44, 40, 50, 30]).are_doubtful());
    }
}
