use serde::{Deserialize, Serialize};

use crate::peer_text::PeerText;

/// Messages on a connection that measures the path. The connecting end sends commands, and the listener executes them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum MeasureMessage {
    /// Listener: reports whether datagrams from the connecting end have arrived.
    Ready {
        /// Whether datagrams have arrived.
        datagrams: bool,
    },
    /// Command: send a stream of datagrams.
    Send {
        /// The stream's number.
        stream: u32,
        /// Number of packets.
        packets: u32,
        /// UDP payload of each packet, bytes.
        payload_bytes: u32,
        /// The mean time between two packets, nanoseconds; 0: back to back.
        gap_ns: u64,
        /// Whether the gaps are exponential, with the stream's number as seed, instead of equal.
        #[serde(default)]
        random: bool,
        /// For exponential gaps: packets are sent in pairs, this many nanoseconds apart, and the gaps are between the pairs.
        /// 0: no pairs.
        #[serde(default)]
        pair_ns: u64,
    },
    /// Listener: the stream was sent.
    Sent {
        /// The stream's number.
        stream: u32,
        /// Number of packets.
        packets: u32,
    },
    /// Command: report the arrivals of a stream that was sent, in records that follow.
    Report {
        /// The stream's number.
        stream: u32,
        /// Number of packets of the stream.
        packets: u32,
    },
    /// Listener: all arrivals of the stream were reported.
    Reported {
        /// The stream's number.
        stream: u32,
    },
    /// Command: send content for some time.
    Fill {
        /// Duration, milliseconds.
        duration_ms: u64,
        /// Maximum amount of content, bytes.
        max_bytes: u64,
    },
    /// Command: read content until [`MeasureMessage::Filled`] arrives, and report its amount.
    Drain,
    /// Reader of content: its amount.
    Drained {
        /// Content read, bytes.
        content_bytes: u64,
        /// Time from the first byte to the last, microseconds.
        elapsed_us: u64,
    },
    /// Sender of content: it is complete.
    Filled {
        /// Content sent, bytes.
        content_bytes: u64,
        /// Smoothed RTTs of the connection at the sender, microseconds.
        round_trips_us: Vec<u32>,
        /// Segments retransmitted.
        retransmitted: u64,
        /// The sender's congestion control.
        congestion: PeerText,
    },
}

/// The maximum number of RTTs in one [`MeasureMessage::Filled`], which then fits into a message.
pub const MAX_ROUND_TRIPS: usize = 1024;
