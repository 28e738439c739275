//! Windows of unknown scale: the handshake is not in the capture.

use sweetspot_trace::flow::{Stream, Vantage};
use sweetspot_units::Bytes;

/// The window that flights stand still at, if the handshake is missing: nobody sends beyond the window,
/// so that its scale is one at which the largest flight fits, and at the least of these the flight
/// fills a window that hardly changes. A flight held by anything else would seldom end there.
pub fn filled_window(stream: &Stream) -> Option<Bytes> {
    let (low, high) = min_windows(stream)?;
    let (flight, largest) = (stream.flight()?.get(), stream.largest_flight().get());
    if low == 0 || varies((low, high)) || flight < 4 * stream.mss() {
        return None;
    }
    // A full window has no room for another segment at one time at least, and for two or a sixteenth in most rounds.
    let spare = (2 * stream.mss()).max(high / 16);
    let full = high.saturating_sub(largest) < stream.mss() && flight + spare >= high;
    full.then(|| Bytes::new(high))
}

/// Whether windows between `low` and `high` are more than one and its rounding.
pub fn varies((low, high): (u64, u64)) -> bool {
    const CONSTANT: f64 = 1.05;
    high as f64 > low as f64 * CONSTANT
}

/// Whether the window had room for another segment all the time though its scale is unknown: at the least scale that
/// the largest flight allows, and so at any other.
pub fn has_room(stream: &Stream) -> bool {
    let largest = stream.largest_flight().get();
    min_windows(stream).is_some_and(|(low, _)| low > largest + 2 * stream.mss())
}

/// The windows that a tenth, and nine tenths, of all did not exceed, at the least scale at which the largest flight
/// fits, where the handshake is missing.
pub fn min_windows(stream: &Stream) -> Option<(u64, u64)> {
    const LARGEST_SCALE: u32 = 14;
    let windows = &stream.counts().windows;
    let vantage = stream.round_trips().vantage();
    if stream.counts().window_known || stream.is_blind() || vantage == Vantage::Unknown {
        return None;
    }
    let (low, high) = (windows.quantile(0.1)?, windows.quantile(0.9)?);
    let most = windows.largest()?;
    // The least that can have been in flight.
    let flight = stream.largest_flight().get().saturating_sub(stream.flight_error());
    let scale = (0..=LARGEST_SCALE).find(|scale| most << scale >= flight)?;
    Some((low << scale, high << scale))
}
