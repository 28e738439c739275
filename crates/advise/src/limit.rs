use sweetspot_units::Bytes;

/// Ratio of the recommended window to the BDP. Its queue adds only 1/20 of an RTT, and compensates for a slightly
/// wrong rate or RTT.
const MARGIN: f64 = 1.05;

/// TCP's largest window: 16 bits, shifted by at most 14 (RFC 7323, section 2.3).
pub(crate) const LARGEST_WINDOW: Bytes = Bytes::new(65_535 << 14);

/// Packets of TCP's initial window (RFC 6928, section 2; Linux's TCP_INIT_CWND). With fewer in flight, a transfer waits for
/// delayed ACKs, and often for an RTO after a loss.
pub(crate) const INITIAL_WINDOW_PACKETS: u64 = 10;

/// A window with a margin above `window`, which just fills the path.
pub(crate) fn with_margin(window: Bytes) -> Bytes {
    window.scaled(MARGIN)
}
