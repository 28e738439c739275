//! Connections that do not open.

use sweetspot_trace::flow::{Connection, Ending, Handshake};
use sweetspot_units::Duration;

use crate::{Class, Evidence, Failure, Flow, Limits};

/// Whether the capture has the beginning of a connection's handshake, and nothing after it confirms the connection.
fn is_unconfirmed(handshake: &Handshake) -> bool {
    handshake.offers[0].is_some() && handshake.to_opener.is_none() && !handshake.confirmed
}

/// Whether a connection that may still open does not: it was reset, or its SYN had to be repeated.
pub fn fails_to_open(connection: &Connection) -> bool {
    let handshake = &connection.handshake;
    let repeats = connection.ending == Ending::Reset || handshake.syns > 1;
    let has_data = connection.streams.iter().any(|stream| stream.counts().data_segments > 0);
    is_unconfirmed(handshake) && repeats && !has_data
}

/// The finding for a connection if the capture has its handshake and the handshake failed.
pub fn never_established(connection: &Connection) -> Option<Flow> {
    let handshake = &connection.handshake;
    if !is_unconfirmed(handshake) {
        return None;
    }
    let reset = connection.ending == Ending::Reset;
    let failure = match (handshake.offers[1], reset) {
        (None, true) => Failure::Refused,
        (None, false) => Failure::Unanswered,
        (Some(_), _) => Failure::Unconfirmed,
    };
    let lasted = connection.lasted();
    let evidence = Evidence {
        lasted,
        segments: handshake.syns,
        failure: Some(failure),
        ..Evidence::default()
    };
    let limits = Limits::only(Class::NeverEstablished, lasted.max(Duration::from_nanos(1)));
    Some(Flow::new(connection.ends[0], connection.ends[1], limits, &evidence))
}
