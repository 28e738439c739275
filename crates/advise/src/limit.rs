use sweetspot_units::Bytes;

/// The first few percent of queue cost 1/20 of an RTT, and a slightly wrong estimate of rate or RTT costs nothing.
const MARGIN: f64 = 1.05;

/// TCP's largest window: 16 bits, shifted by at most 14 (RFC 7323, section 2.3).
pub(crate) const LARGEST_WINDOW: Bytes = Bytes::new(65_535 << 14);

/// A little more than the window that just fills a path.
pub(crate) fn with_margin(window: Bytes) -> Bytes {
    window.scaled(MARGIN)
}
