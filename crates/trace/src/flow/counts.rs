use sweetspot_units::Time;

/// What a stream adds up to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
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
    /// The largest window advertised.
    pub largest_window: u64,
    /// The most sent at once.
    pub largest_burst: u64,
    /// When data first passed.
    pub first_data: Option<Time>,
    /// When data last passed.
    pub last_data: Option<Time>,
    /// When an acknowledgement last passed.
    pub last_ack: Option<Time>,
    /// Whether the receiver's window can be known: its scale is in the handshake.
    pub window_known: bool,
    /// Whether the receiver echoed timestamps.
    pub timestamps: bool,
}
