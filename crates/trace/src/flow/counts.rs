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
    /// Acknowledgements received by the sender.
    pub acks: u64,
    /// Segments that arrived out of order and were not retransmissions.
    pub out_of_order: u64,
    /// Payload that was acknowledged but not captured.
    pub unseen: u64,
    /// The number of times that the receiver closed its window.
    pub zero_windows: u64,
    /// Probes of a closed window (RFC 9293 §3.8.6.1).
    pub window_probes: u64,
    /// Keep-alives (RFC 9293 §3.8.4).
    pub keep_alives: u64,
    /// Segments with more payload than a packet holds: they were captured before segmentation or after reassembly by a network
    /// card.
    pub offloaded: u64,
    /// The largest payload of a segment.
    pub largest_segment: u64,
    /// Segments that were captured twice but sent once.
    pub copies: u64,
    /// The advertised windows.
    pub windows: Histogram,
    /// The largest advertised window.
    pub largest_window: u64,
    /// The largest number of bytes sent in one burst.
    pub largest_burst: u64,
    /// When data were first captured.
    pub first_data: Option<Time>,
    /// When an acknowledgement first covered data that had not been captured.
    pub first_unseen: Option<Time>,
    /// When data were last captured.
    pub last_data: Option<Time>,
    /// When an acknowledgement was last captured.
    pub last_ack: Option<Time>,
    /// Whether the receiver's window is known: its scale is in the handshake, or a kernel reported it.
    pub window_known: bool,
    /// Whether the handshake had a longer RTT than the data can have had.
    pub handshake_was_slow: bool,
    /// Whether the receiver echoed timestamps.
    pub timestamps: bool,
    /// Segments of the receiver without timestamps, after its SYN.
    pub without_timestamps: u64,
    /// Segments of the receiver with timestamps, after its SYN.
    pub with_timestamps: u64,
    /// Acknowledgements with SACK blocks that are far from all data.
    pub foreign_sacks: u64,
    /// The number of times that the receiver shrank its window (RFC 7323 §2.4).
    pub shrunk_windows: u64,
    /// Small segments that waited for the delayed acknowledgement of the small segment before (Nagle's algorithm, RFC 1122
    /// §4.2.3.4).
    pub nagle_waits: u64,
    /// The total time for which they waited.
    pub nagle_time: Duration,
    /// The largest payload of an acknowledged segment.
    pub largest_acked: u64,
    /// The smallest payload of a segment that was retransmitted at least twice without an answer.
    pub smallest_lost: Option<u64>,
}
