//! Steps of a measurement, and their observations.

use serde::{Deserialize, Serialize};
use sweetspot_units::{Bytes, Duration, Rate, Time};

use crate::spacing::Spacing;

/// A direction of the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// From the measuring end to the far end.
    Up,
    /// From the far end to the measuring end.
    Down,
}

impl Direction {
    /// The direction as one word.
    pub fn name(self) -> &'static str {
        match self {
            Direction::Up => "up",
            Direction::Down => "down",
        }
    }
}

/// A packet of a stream that arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// The packet's index in the stream, from 0.
    pub index: u32,
    /// Sending time, on the sender's clock.
    pub sent: Time,
    /// Arrival time, on the receiver's clock.
    pub received: Time,
}

impl Arrival {
    /// The one-way delay plus the unknown offset between the clocks, seconds: only differences are meaningful.
    pub fn delay_s(&self) -> f64 {
        // The difference of two counters is correct whichever is ahead.
        let nanos = self.received.as_nanos().wrapping_sub(self.sent.as_nanos()) as i64;
        nanos as f64 / 1e9
    }
}

/// A stream of packets of one size in one direction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamRecord {
    /// Number of packets sent.
    pub sent: u32,
    /// The size of each packet on the wire, including the IP header.
    pub size: Bytes,
    /// The packets that arrived, in the order of arrival.
    pub arrivals: Vec<Arrival>,
}

impl StreamRecord {
    /// The second half of the stream, by order of sending.
    pub(crate) fn later_half(&self) -> StreamRecord {
        let first = self.sent / 2;
        let arrivals = self.arrivals.iter().copied().filter(|arrival| arrival.index >= first);
        StreamRecord { sent: self.sent - first, size: self.size, arrivals: arrivals.collect() }
    }

    /// Number of packets that did not arrive. A packet that arrived twice counts once.
    pub fn lost(&self) -> u32 {
        let mut indices: Vec<u32> = self.arrivals.iter().map(|arrival| arrival.index).collect();
        indices.sort_unstable();
        indices.dedup();
        self.sent.saturating_sub(indices.len() as u32)
    }
}

/// A packet that the far end returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Echo {
    /// Sending time, on the measuring end's clock.
    pub sent: Time,
    /// Arrival time at the far end, on its clock.
    pub reflected: Time,
    /// Time that the far end held it.
    pub held: Duration,
    /// Time of its return.
    pub received: Time,
}

impl Echo {
    /// The RTT, without the time at the far end.
    pub fn round_trip(&self) -> Duration {
        self.received.since(self.sent).saturating_sub(self.held)
    }
}

/// Packets that the far end was asked to return.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EchoRecord {
    /// Number of packets sent.
    pub sent: u32,
    /// The size of each packet on the wire, including the IP header.
    pub size: Bytes,
    /// The packets that returned.
    pub echoes: Vec<Echo>,
}

/// Observations while TCP filled the path.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadRecord {
    /// Payload that the receiver read.
    pub content: Bytes,
    /// Time in which the receiver read it.
    pub elapsed: Duration,
    /// RTTs of the loading connection, as smoothed by its sender's kernel.
    pub round_trips: Vec<Duration>,
    /// Number of retransmitted segments.
    pub retransmitted: u64,
    /// The sender's congestion control.
    pub congestion: String,
    /// Echoes of another flow during the load.
    pub echoes: EchoRecord,
}

/// The next action of a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Request echoes.
    Echo {
        /// Number of echoes.
        packets: u32,
        /// Interval between requests.
        interval: Duration,
        /// The size of each packet on the wire.
        size: Bytes,
    },
    /// Send a stream in one direction.
    Stream {
        /// The direction.
        direction: Direction,
        /// Number of packets.
        packets: u32,
        /// The size of each packet on the wire.
        size: Bytes,
        /// The mean gap between packets; zero: back to back.
        gap: Duration,
        /// The distribution of the gaps.
        spacing: Spacing,
        /// Whether to request echoes during the stream.
        echoes: bool,
    },
    /// Fill the path with TCP.
    Load {
        /// The direction.
        direction: Direction,
        /// The duration.
        duration: Duration,
        /// Maximum payload.
        max: Bytes,
    },
}

impl Step {
    /// The bytes that the step sends over the path, if it determines them; for a load, the maximum.
    pub fn cost(&self) -> Bytes {
        match *self {
            // In both directions.
            Step::Echo { packets, size, .. } => size * (2 * u64::from(packets)),
            Step::Stream { packets, size, .. } => size * u64::from(packets),
            Step::Load { max, .. } => max,
        }
    }
}

/// The result of a step.
#[derive(Debug, Clone, PartialEq)]
pub enum StepResult {
    /// The result of echoes.
    Echo(EchoRecord),
    /// The result of a stream, and the echoes during it.
    Stream(StreamRecord, EchoRecord),
    /// The result of a load.
    Load(LoadRecord),
    /// The step failed. Holds the reason.
    Failed(String),
}

/// The gap between packets of `size` at `rate`.
pub(crate) fn gap(size: Bytes, rate: Rate) -> Duration {
    size / rate
}
