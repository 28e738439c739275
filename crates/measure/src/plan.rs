//! The amount of data to send, and its rate.

use sweetspot_units::{Bytes, Duration};

use crate::observation::Direction;

/// The pause between steps, in which their queues drain.
pub const PAUSE: Duration = Duration::from_millis(50);
/// The time between echoes on an idle path.
pub(crate) const ECHO_INTERVAL: Duration = Duration::from_millis(20);
/// The first stream that fills the buffer; where the buffer is not full at its end, the next is longer by the factor.
pub(crate) const FIRST_OVERLOAD: Duration = Duration::from_millis(400);
pub(crate) const OVERLOAD_GROWTH: u64 = 3;
/// The most streams in which losses are counted.
pub(crate) const MAX_SLOW_STREAMS: usize = 3;
/// The longest that losses are counted in one stream, and the most packets per second, which a host sends evenly.
pub(crate) const LONGEST_LOSS: Duration = Duration::from_secs(12);
pub(crate) const LOSS_PACKETS_PER_SECOND: f64 = 4000.0;

/// The limits of a measurement.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The directions, in this order.
    pub directions: Vec<Direction>,
    /// The largest packet on the wire.
    pub packet: Bytes,
    /// Echoes on the idle path.
    pub echoes: u32,
    /// Trains so short that a buffer of a few packets takes them: they say roughly how fast the path is.
    pub scouts: u32,
    /// For how long sparse packets look whether the link is idle, and pairs of packets how far they come apart.
    pub sparse: Duration,
    /// Trains sent back to back, per direction.
    pub trains: u32,
    /// Packets of each.
    pub train_packets: u32,
    /// The most streams that bound the available bandwidth, and how many are averaged then.
    pub bounding: u32,
    /// How many streams above the available bandwidth are averaged.
    pub averaged: u32,
    /// How long each lasts.
    pub stream: Duration,
    /// The longest stream that fills the buffer; `None`: the queue is never filled.
    pub overload: Option<Duration>,
    /// How long a stream lasts that is only a little too fast; `None`: there is none.
    pub slight: Option<Duration>,
    /// The number of small packets sent to count losses.
    pub loss_packets: u32,
    /// How long TCP fills the path; `None`: not.
    pub load: Option<Duration>,
    /// The most bytes that may be put on the path; `None`: as many as it takes.
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

    /// The short form.
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

    /// The same, but no queue is ever filled: short trains, streams that end the search when delays grow, no overload,
    /// no TCP.
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

    /// Bounds on the time of the steps and the pauses between them. Below 10 Mbit/s trains take longer, and each step
    /// waits for round trips. A budget may end it earlier.
    pub fn duration(&self) -> (Duration, Duration) {
        let echoes = ECHO_INTERVAL * (2 * u64::from(self.echoes));
        let (min, max) = self.direction();
        let directions = self.directions.len() as u64;
        (echoes + PAUSE * 2 + min * directions, echoes + PAUSE * 2 + max * directions)
    }

    /// The same of one direction. In the shortest one, sparse packets show the available bandwidth, and the first
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

/// The streams that fill the buffer, each longer than the one before.
fn overloads(longest: Duration) -> Vec<Duration> {
    let mut lengths = vec![FIRST_OVERLOAD.min(longest)];
    while let Some(last) = lengths.last().filter(|last| **last < longest) {
        lengths.push((*last * OVERLOAD_GROWTH).min(longest));
    }
    lengths
}
