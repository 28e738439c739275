//! Steps of a measurement, and the observations of each.

use serde::{Deserialize, Serialize};
use sweetspot_units::{Bytes, Duration, Rate, Time};

use crate::spacing::Spacing;

/// One way of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// From the end that measures to the far end.
    Up,
    /// From the far end to the end that measures.
    Down,
}

impl Direction {
    /// In one word.
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
    /// Its place in the stream, from 0.
    pub index: u32,
    /// When it was sent, on the sender's clock.
    pub sent: Time,
    /// When it was received, on the receiver's clock.
    pub received: Time,
}

impl Arrival {
    /// The one-way delay in seconds, with the unknown offset between the clocks: only differences mean something.
    pub fn delay_s(&self) -> f64 {
        // The difference of two counters is right whichever is ahead.
        let nanos = self.received.as_nanos().wrapping_sub(self.sent.as_nanos()) as i64;
        nanos as f64 / 1e9
    }
}

/// A stream of packets of one size in one direction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamRecord {
    /// How many packets were sent.
    pub sent: u32,
    /// The size of each on the wire, IP header included.
    pub size: Bytes,
    /// The packets that arrived, in the order of arrival.
    pub arrivals: Vec<Arrival>,
}

impl StreamRecord {
    /// The stream without the first half of what was sent.
    pub(crate) fn later_half(&self) -> StreamRecord {
        let first = self.sent / 2;
        let arrivals = self.arrivals.iter().copied().filter(|arrival| arrival.index >= first);
        StreamRecord { sent: self.sent - first, size: self.size, arrivals: arrivals.collect() }
    }

    /// How many packets did not arrive. A packet that arrived twice counts once.
    pub fn lost(&self) -> u32 {
        let mut indices: Vec<u32> = self.arrivals.iter().map(|arrival| arrival.index).collect();
        indices.sort_unstable();
        indices.dedup();
        self.sent.saturating_sub(indices.len() as u32)
    }
}

/// A packet that the far end sent back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Echo {
    /// When it was sent, on the clock of the end that measures.
    pub sent: Time,
    /// When the far end received it, on its clock.
    pub reflected: Time,
    /// How long the far end held it.
    pub held: Duration,
    /// When it was back.
    pub received: Time,
}

impl Echo {
    /// The round trip, without the time at the far end.
    pub fn round_trip(&self) -> Duration {
        self.received.since(self.sent).saturating_sub(self.held)
    }
}

/// Packets that the far end was asked to send back.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EchoRecord {
    /// How many were sent.
    pub sent: u32,
    /// The size of each on the wire, IP header included.
    pub size: Bytes,
    /// The echoes that came back.
    pub echoes: Vec<Echo>,
}

/// Counts while TCP filled the path.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadRecord {
    /// Payload that the receiver read.
    pub content: Bytes,
    /// The time within which it did.
    pub elapsed: Duration,
    /// Round trips of the loading connections as their sender's kernel smoothed them.
    pub round_trips: Vec<Duration>,
    /// Segments that were sent again.
    pub retransmitted: u64,
    /// The congestion control of the sender.
    pub congestion: String,
    /// Packets of another flow, echoed meanwhile.
    pub echoes: EchoRecord,
}

/// The next action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Ask for echoes.
    Echo {
        /// How many.
        packets: u32,
        /// The time between two.
        interval: Duration,
        /// The size of each on the wire.
        size: Bytes,
    },
    /// Send a stream one way.
    Stream {
        /// Which way.
        direction: Direction,
        /// How many packets.
        packets: u32,
        /// The size of each on the wire.
        size: Bytes,
        /// The mean time between two; zero: back to back.
        gap: Duration,
        /// How they lie in time.
        spacing: Spacing,
        /// Whether echoes are asked for meanwhile.
        echoes: bool,
    },
    /// Fill the path by TCP.
    Load {
        /// Which way.
        direction: Direction,
        /// For how long.
        duration: Duration,
        /// The most payload.
        max: Bytes,
    },
}

impl Step {
    /// The bytes that the step puts on the path, as far as that is decided by it; of a load the most.
    pub fn cost(&self) -> Bytes {
        match *self {
            // There and back.
            Step::Echo { packets, size, .. } => size * (2 * u64::from(packets)),
            Step::Stream { packets, size, .. } => size * u64::from(packets),
            Step::Load { max, .. } => max,
        }
    }
}

/// The result of a step.
#[derive(Debug, Clone, PartialEq)]
pub enum StepResult {
    /// Of echoes.
    Echo(EchoRecord),
    /// Of a stream, and the echoes beside it.
    Stream(StreamRecord, EchoRecord),
    /// Of a load.
    Load(LoadRecord),
    /// It could not be done. Holds the reason.
    Failed(String),
}

/// The time between packets of `size` at `rate`.
pub(crate) fn gap(size: Bytes, rate: Rate) -> Duration {
    size / rate
}
