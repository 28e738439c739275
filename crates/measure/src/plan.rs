//! How much is sent, and how fast.

use sweetspot_units::{Bytes, Duration};

use crate::observation::Direction;

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
    /// A full measurement of both directions: about a minute.
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

    /// The short form: about fifteen seconds.
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
}
