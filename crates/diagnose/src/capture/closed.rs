//! Windows that were closed before the capture began.

use sweetspot_trace::flow::{Connection, Ending};
use sweetspot_units::Duration;

/// The side that probes its peer's closed window, and for how long, in a connection that moves no data.
pub fn probes_window(connection: &Connection) -> Option<(usize, Duration)> {
    let moves = connection.streams.iter().any(|stream| {
        let counts = stream.counts();
        counts.bytes > 0 || counts.acked > 0
    });
    // A reset has a window of zero, too.
    if moves || connection.ending == Ending::Reset {
        return None;
    }
    (0..2).find_map(|side| {
        let probes = connection.streams[1 - side].counts().acks;
        let closed_for = connection.last.since(connection.streams[side].closed_since()?);
        (probes > 0 && closed_for > Duration::ZERO).then_some((side, closed_for))
    })
}
