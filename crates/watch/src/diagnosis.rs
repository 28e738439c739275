use sweetspot_diagnose::Flow;
use sweetspot_diagnose::live::{Period, Side};
use sweetspot_linux::diag::DiagConnection;

use super::clamp::window_clamp;
use super::locked::{host_buffer, locked_buffer};

/// The diagnosis of `connection` in `period`, for the direction with most of the data. Names clamps, buffers and settings of
/// the ends on this host, as far as permissions allow.
///
/// `other` is the socket of the other end, if it is on this host, and `pid` returns the process that has a socket open. If
/// `is_own_namespace`, the ends have this process's settings; otherwise settings are left out.
pub fn diagnosis(
    connection: &DiagConnection,
    other: Option<&DiagConnection>,
    period: &Period,
    pid: impl Fn(&DiagConnection) -> Option<u32>,
    is_own_namespace: bool,
) -> Flow {
    let end = |side| if period.direction == side { Some(connection) } else { other };
    let buffer = |side| {
        let end = end(side).filter(|_| is_own_namespace)?;
        host_buffer(end, side, pid(end))
    };
    let mut evidence = period.evidence;
    evidence.clamp = end(Side::Receiver).and_then(|end| window_clamp(end, pid(end)));
    evidence.receive_buffer = buffer(Side::Receiver);
    evidence.send_buffer = buffer(Side::Sender);
    let (source, destination) = match period.direction {
        Side::Sender => (connection.local, connection.remote),
        Side::Receiver => (connection.remote, connection.local),
    };
    let mut flow = Flow::new(source, destination, period.limits, &evidence);
    flow.span = Some(period.span());
    let locked = pid(connection).and_then(|pid| locked_buffer(connection, period.direction, pid));
    flow.remarks.extend(locked);
    flow
}
