use sweetspot_units::{Duration, Time};

use crate::Histogram;

/// The totals of a stream.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Counts {
    /// Segments with payload.
    pub data_segments: u64,
    /// Payload sent for the first time.
    pub bytes: u64,
    /// Payload acknowledged.
    pub acked: u64,
    /// Acknowledgements heard.
    pub acks: u64,
    /// Segments that came out of order, without having been sent again.
    pub out_of_order: u64,
    /// Payload acknowledged that the capture never saw: it lost packets.
    pub unseen: u64,
    /// Times the receiver closed its window.
    pub zero_windows: u64,
    /// Probes of a closed window (RFC 9293 §3.8.6.1).
    pub window_probes: u64,
    /// Keep-alives (RFC 9293 §3.8.4).
    pub keep_alives: u64,
    /// Segments with more payload than a packet holds: the capture point lies before segmentation or after reassembly by a
    /// network card.
    pub offloaded: u64,
    /// The most payload of a segment.
    pub largest_segment: u64,
    /// Segments that were captured twice; they were sent once.
    pub copies: u64,
    /// The windows advertised.
    pub windows: Histogram,
    /// The largest of them.
    pub largest_window: u64,
    /// The most bytes sent at once.
    pub largest_burst: u64,
    /// When data first passed.
    pub first_data: Option<Time>,
    /// When an acknowledgement first told of data that the capture had not shown.
    pub first_unseen: Option<Time>,
    /// When data last passed.
    pub last_data: Option<Time>,
    /// When an acknowledgement last passed.
    pub last_ack: Option<Time>,
    /// Whether the receiver's window can be known: its scale is in the handshake, or a kernel reported it.
    pub window_known: bool,
    /// Whether the round trip of the handshake was longer than the data's can have been.
    pub handshake_was_slow: bool,
    /// Whether the receiver echoed timestamps.
    pub timestamps: bool,
    /// Segments of the receiver after its SYN without timestamps.
    pub without_timestamps: u64,
    /// The same with timestamps.
    pub with_timestamps: u64,
    /// Acknowledgements with SACK blocks far from all data.
    pub foreign_sacks: u64,
    /// Times the receiver took back a part of its window (RFC 7323 §2.4).
    pub shrunk_windows: u64,
    /// Small segments that left only when a delayed acknowledgement of the small segment before them came (Nagle's
    /// algorithm, RFC 1122 §4.2.3.4).
    pub nagle_waits: u64,
    /// The time that they waited.
    pub nagle_time: Duration,
    /// The largest payload of an acknowledged segment.
    pub largest_acked: u64,
    /// The smallest payload of a segment that was sent again twice or more without an answer.
    pub smallest_lost: Option<u64>,
}
