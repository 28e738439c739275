use serde::{Deserialize, Serialize};

use crate::peer_text::PeerText;

/// Messages on a connection that measures the path. The connecting end gives orders, the listener carries them out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum MeasureMessage {
    /// Listener: whether datagrams from the connecting end have arrived.
    Ready {
        /// Whether they have.
        datagrams: bool,
    },
    /// Order: send a stream of datagrams.
    Send {
        /// The stream's number.
        stream: u32,
        /// How many packets.
        packets: u32,
        /// UDP payload of each, bytes.
        payload_bytes: u32,
        /// The mean time between two, nanoseconds; 0: back to back.
        gap_ns: u64,
        /// Whether the gaps are exponential, by the stream's number as seed, and not even.
        #[serde(default)]
        random: bool,
        /// For exponential gaps: packets go in pairs, this many nanoseconds apart, and the gaps lie between the pairs; 0: they
        /// go one by one.
        #[serde(default)]
        pair_ns: u64,
    },
    /// Listener: the stream was sent.
    Sent {
        /// The stream's number.
        stream: u32,
        /// How many packets.
        packets: u32,
    },
    /// Order: report the arrivals of a stream that was sent; records of them follow.
    Report {
        /// The stream's number.
        stream: u32,
        /// How many packets it had.
        packets: u32,
    },
    /// Listener: all arrivals of the stream were reported.
    Reported {
        /// The stream's number.
        stream: u32,
    },
    /// Order: send content for a while.
    Fill {
        /// For how long, milliseconds.
        duration_ms: u64,
        /// The most content, bytes.
        max_bytes: u64,
    },
    /// Order: read content until [`MeasureMessage::Filled`] comes, and say how much it was.
    Drain,
    /// Reader of content: its count.
    Drained {
        /// Content read, bytes.
        content_bytes: u64,
        /// From the first of it to the last, microseconds.
        elapsed_us: u64,
    },
    /// Sender of content: it is complete.
    Filled {
        /// Content sent, bytes.
        content_bytes: u64,
        /// Smoothed round trips of the connection, as its sender saw them, microseconds.
        round_trips_us: Vec<u32>,
        /// Segments sent again.
        retransmitted: u64,
        /// The sender's congestion control.
        congestion: PeerText,
    },
}

/// The most round trips in one [`MeasureMessage::Filled`]: it fits into a message.
pub const MAX_ROUND_TRIPS: usize = 1024;
