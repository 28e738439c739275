//! Windows of unknown scale: the handshake is not in the capture.

use sweetspot_trace::flow::{Stream, Vantage};
use sweetspot_units::Bytes;

/// The window that flights fill, if the handshake is missing. A sender never exceeds the window, so the largest
/// flight must fit at the true scale. The window counts as filled if flights fill it at the smallest such scale and
/// the window hardly changes. A flight with another limit would seldom end there.
pub fn filled_window(stream: &Stream) -> Option<Bytes> {
    let (low, high) = min_windows(stream)?;
    let (flight, largest) = (stream.flight()?.get(), stream.largest_flight().get());
    if low == 0 || varies((low, high)) || flight < 4 * stream.mss() {
        return None;
    }
    // A full window once has less than a segment left, and in most rounds no more than two segments or a sixteenth.
    let spare = (2 * stream.mss()).max(high / 16);
    let full = high.saturating_sub(largest) < stream.mss() && flight + spare >= high;
    full.then(|| Bytes::new(high))
}

/// Whether `low` and `high` differ by more than rounding.
pub fn varies((low, high): (u64, u64)) -> bool {
    const ROUNDING_FACTOR: f64 = 1.05;
    high as f64 > low as f64 * ROUNDING_FACTOR
}

/// Whether the window always had space for another segment at the smallest scale that the largest flight allows, and
/// so at any possible scale.
pub fn has_room(stream: &Stream) -> bool {
    let largest = stream.largest_flight().get();
    min_windows(stream).is_some_and(|(low, _)| low > largest + 2 * stream.mss())
}

/// The 10th and 90th percentiles of the windows at the smallest scale at which the largest flight fits, if the
/// handshake is missing.
pub fn min_windows(stream: &Stream) -> Option<(u64, u64)> {
    const LARGEST_SCALE: u32 = 14;
    let windows = &stream.counts().windows;
    let vantage = stream.round_trips().vantage();
    if stream.counts().window_known || stream.is_blind() || vantage == Vantage::Unknown {
        return None;
    }
    let (low, high) = (windows.quantile(0.1)?, windows.quantile(0.9)?);
    let most = windows.largest()?;
    // The minimum that can have been in flight.
    let flight = stream.largest_flight().get().saturating_sub(stream.flight_error());
    let scale = (0..=LARGEST_SCALE).find(|scale| most << scale >= flight)?;
    Some((low << scale, high << scale))
}
