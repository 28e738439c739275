//! The amount and rate of the data that a measurement sends.

use sweetspot_units::{Bytes, Duration};

use crate::Measurement;
use crate::observation::Direction;

/// Pause between steps, in which their queues drain.
pub const PAUSE: Duration = Duration::from_millis(50);
/// Interval between echoes on an idle path.
pub(crate) const ECHO_INTERVAL: Duration = Duration::from_millis(20);
/// Duration of the first stream that should fill the buffer. If the buffer is not full at its end, the next one is
/// longer by `OVERLOAD_GROWTH`.
pub(crate) const FIRST_OVERLOAD: Duration = Duration::from_millis(400);
pub(crate) const OVERLOAD_GROWTH: u64 = 3;
/// Maximum number of streams that count losses.
pub(crate) const MAX_SLOW_STREAMS: usize = 3;
/// Maximum duration of a stream that counts losses, and the maximum packet rate that a host sends evenly, packets per
/// second.
pub(crate) const LONGEST_LOSS: Duration = Duration::from_secs(12);
pub(crate) const LOSS_PACKETS_PER_SECOND: f64 = 4000.0;

/// The limits of a measurement.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The directions to measure, in this order.
    pub directions: Vec<Direction>,
    /// The largest packet on the wire.
    pub packet: Bytes,
    /// Number of echoes on the idle path.
    pub echoes: u32,
    /// Number of trains short enough for a buffer of a few packets. They show roughly the path's rate.
    pub scouts: u32,
    /// Duration of sparse packets, which sample whether the link is idle, and of packet pairs, which show how far the
    /// link spreads them.
    pub sparse: Duration,
    /// Number of trains sent back to back, per direction.
    pub trains: u32,
    /// Packets in each train.
    pub train_packets: u32,
    /// Maximum number of streams that search for the available bandwidth.
    pub bounding: u32,
    /// Number of streams above the available bandwidth that are averaged.
    pub averaged: u32,
    /// Duration of each of these streams.
    pub stream: Duration,
    /// Maximum duration of a stream that fills the buffer; `None`: the queue is never filled.
    pub overload: Option<Duration>,
    /// Duration of a stream slightly above the available bandwidth; `None`: no such stream.
    pub slight: Option<Duration>,
    /// Number of small packets sent to count losses.
    pub loss_packets: u32,
    /// Duration of the TCP load; `None`: no load.
    pub load: Option<Duration>,
    /// Maximum bytes sent over the path; `None`: unlimited.
    pub budget: Option<Bytes>,
}

impl Plan {
    /// A full measurement of both directions.
    pub fn full() -> Plan {
        Plan {
            directions: vec![Direction::Down, Direction::Up],
            packet: Bytes::new(1500),
            echoes: 60,
            scouts: 12,
            sparse: Duration::from_secs(12),
            trains: 12,
            train_packets: 120,
            bounding: 8,
            averaged: 16,
            stream: Duration::from_millis(250),
            overload: Some(Duration::from_secs(6)),
            slight: Some(Duration::from_secs(5)),
            loss_packets: 20_000,
            load: Some(Duration::from_secs(8)),
            budget: None,
        }
    }

    /// A short measurement.
    pub fn short() -> Plan {
        Plan {
            echoes: 20,
            scouts: 8,
            sparse: Duration::from_secs(3),
            trains: 6,
            bounding: 4,
            averaged: 4,
            stream: Duration::from_millis(150),
            overload: Some(Duration::from_secs(2)),
            slight: None,
            loss_packets: 0,
            load: Some(Duration::from_secs(3)),
            ..Plan::full()
        }
    }

    /// The same plan without filling any queue: short trains, streams that end the search when delays grow, no
    /// overload, no TCP.
    #[must_use]
    pub fn gentle(self) -> Plan {
        Plan {
            train_packets: self.train_packets.min(16),
            trains: self.trains * 2,
            averaged: 0,
            overload: None,
            slight: None,
            load: None,
            ..self
        }
    }

    /// The bytes of the first step, the RTT. No smaller budget shows anything.
    pub fn min_budget(&self) -> Bytes {
        let unlimited = Plan { budget: None, ..self.clone() };
        Measurement::new(unlimited).poll_step().map_or(Bytes::ZERO, |first| first.cost())
    }

    /// Bounds on the duration of the steps including the pauses. Below 10 Mbit/s trains take longer, and each step
    /// waits for round trips. A budget may end the measurement earlier.
    pub fn duration(&self) -> (Duration, Duration) {
        let echoes = ECHO_INTERVAL * (2 * u64::from(self.echoes));
        let (min, max) = self.direction();
        let directions = self.directions.len() as u64;
        (echoes + PAUSE * 2 + min * directions, echoes + PAUSE * 2 + max * directions)
    }

    /// The bounds for one direction. In the shortest case, sparse packets show the available bandwidth, and the first
    /// overload fills the buffer.
    fn direction(&self) -> (Duration, Duration) {
        let fixed = self.sparse
            + self.slight.unwrap_or(Duration::ZERO)
            + self.load.unwrap_or(Duration::ZERO);
        let once = [self.overload.is_some(), self.slight.is_some(), self.load.is_some()];
        let once = once.into_iter().filter(|is_planned| *is_planned).count() as u64;
        let steps = u64::from(self.scouts) + u64::from(self.trains) + 1 + once;
        let fastest =
            Duration::from_secs_f64(f64::from(self.loss_packets) / LOSS_PACKETS_PER_SECOND);
        let (slow, counts) = (MAX_SLOW_STREAMS as u64, u64::from(self.loss_packets > 0));
        let overloads = self.overload.map_or_else(Vec::new, overloads);
        let streams = u64::from(self.bounding) + u64::from(self.averaged);
        let first = overloads.first().copied().unwrap_or(Duration::ZERO);
        let min = fixed + fastest + first + PAUSE * (steps + counts);
        let all = overloads.iter().fold(Duration::ZERO, |sum, length| sum + *length);
        let more = streams + slow * counts + (overloads.len() as u64).saturating_sub(1) + 1;
        let max = fixed
            + self.sparse
            + self.stream * streams
            + LONGEST_LOSS * (slow * counts)
            + all
            + PAUSE * (steps + more);
        (min, max)
    }
}

/// Durations of the streams that fill the buffer, each longer than the previous one.
fn overloads(longest: Duration) -> Vec<Duration> {
    let mut lengths = vec![FIRST_OVERLOAD.min(longest)];
    while let Some(last) = lengths.last().filter(|last| **last < longest) {
        lengths.push((*last * OVERLOAD_GROWTH).min(longest));
    }
    lengths
}
