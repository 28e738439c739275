use sweetspot_diagnose::live::{Period, Side};
use sweetspot_diagnose::{Class, Flow};
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
    flow.remarks.extend(mutual_wait(connection, period));
    flow
}

/// The remark that two programs may each wait until the other one reads: the peer's program is late, and unread data fill most of this
/// end's buffer, too.
fn mutual_wait(connection: &DiagConnection, period: &Period) -> Option<String> {
    let peer_is_late =
        period.direction == Side::Sender && period.limits.dominant() == Class::ReceiverApplication;
    let window = connection.info.as_ref()?.rcv_wnd?;
    (peer_is_late && connection.unread > window).then(|| {
        format!(
            "the program at this end leaves {} unread, too: each program may be waiting until the other one reads",
            connection.unread
        )
    })
}
