use sweetspot_units::{Bytes, Duration, Rate};

/// The first few percent of queue cost 1/20 of an RTT, and a slightly wrong estimate of rate or RTT costs nothing.
const MARGIN: f64 = 1.05;

/// TCP's largest window: 16 bits, shifted by at most 14 (RFC 7323, section 2.3).
pub(crate) const LARGEST_WINDOW: Bytes = Bytes::new(65_535 << 14);

/// The window that the settings of hosts should allow one connection on a path of `rate` and `rtt`.
pub(crate) fn window_to_allow(rate: Rate, rtt: Duration) -> Bytes {
    with_margin(rate * rtt)
}

/// A little more than the window that just fills a path.
pub(crate) fn with_margin(window: Bytes) -> Bytes {
    window.scaled(MARGIN)
}
