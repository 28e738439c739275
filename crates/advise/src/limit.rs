use sweetspot_units::{Bytes, Duration, Rate};

/// How far above C x T the limits of hosts stand, so that a slightly wrong estimate of rate or round
/// trip costs nothing: a limit is no target.
const LIMIT_MARGIN: f64 = 1.05;

/// TCP's largest window: 16 bits, shifted by at most 14 (RFC 7323, section 2.3).
pub(crate) const LARGEST_WINDOW: Bytes = Bytes::new(65_535 << 14);

/// The window that the settings of hosts should allow one connection on a path of `rate` and `rtt`.
pub(crate) fn window_to_allow(rate: Rate, rtt: Duration) -> Bytes {
    (rate * rtt).scaled(LIMIT_MARGIN)
}
