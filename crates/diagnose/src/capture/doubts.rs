//! Limits that a capture does not show, with the reasons.

use sweetspot_trace::flow::{Account, Connection, HISTORY, Hold, Stream};
use sweetspot_units::Duration;

use super::classifier::{StreamSummary, class};
use crate::Class;

/// Whether the capture lacks the beginning, and has too few rounds of the data that `side` sent to compare them.
pub fn is_brief(connection: &Connection, side: usize) -> bool {
    let rtt = connection.streams[side].round_trips().median();
    let spans_rounds = rtt.is_some_and(|rtt| connection.lasted() >= rtt * HISTORY as u64);
    connection.handshake.offers[0].is_none() && !spans_rounds
}

/// The reason for the largest part of the unknown time.
pub fn doubt(stream: &Stream, summary: &StreamSummary) -> Option<&'static str> {
    let held = |holds: &[Hold]| stream.accounts().held(holds);
    let (pauses, flat, unseen) = (held(&PAUSES), held(&[Hold::Flat]), held(&[Hold::Unseen]));
    let flat_is = class(&Account { hold: Hold::Flat, queue: false, rate: 0 }, summary);
    match () {
        () if summary.blind => Some(UNKNOWN_DISTANCE),
        () if summary.may_fill && pauses.max(flat) > unseen => {
            Some(if pauses > flat { UNSCALED_PAUSES } else { UNKNOWN_SCALE })
        }
        () if flat_is == Class::Unknown && !summary.may_fill && flat > unseen => Some(VARYING_RTT),
        () if summary.is_brief => Some(TOO_BRIEF),
        () if unseen > Duration::ZERO && stream.counts().unseen > 0 => Some(MISSING_PACKETS),
        () => None,
    }
}

/// The reason if the distance from the sender is unknown.
const UNKNOWN_DISTANCE: &str = "the capture is far from the sender, and has neither the handshake nor timestamps to say how far";

/// The reason if there are too few rounds.
const TOO_BRIEF: &str = "the capture lacks its beginning, and has fewer than twelve round trips, too few to compare flights";

/// The reason if the flight does not grow and the windows are known.
const VARYING_RTT: &str = "the flight did not grow while the RTT varied: the send buffer bounds it, or losses before the capture began";

/// The reason if the capture misses packets, which makes pauses unreliable.
const MISSING_PACKETS: &str =
    "the capture misses packets, so that its pauses prove nothing (a display filter, or drops)";

/// The reason if the flight does not grow and the window scale is unknown.
const UNKNOWN_SCALE: &str = "the handshake is not in the capture, and without the scale of its windows they may be full or not";

/// Pauses of the sender.
const PAUSES: [Hold; 3] = [Hold::Idle, Hold::IdleOrFull, Hold::Pausing];

/// The reason for pauses if the window scale is unknown.
const UNSCALED_PAUSES: &str = "it is the sending application or the receiver's window; which of them, the scale of its windows in \
     the handshake would tell, and that is not in the capture";
