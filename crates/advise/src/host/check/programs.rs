//! Programs that set the size of their receive buffer, which turns autotuning off.

use sweetspot_units::Bytes;

use crate::host::caps;
use crate::host::target::PathTarget;
use crate::host::{Finding, PathEnd, Snapshot};

/// The prefix of a change that no command can make.
pub(in crate::host) const IN_PROGRAM: &str = "# in the program: ";

pub(super) fn check(
    host: &Snapshot,
    end: PathEnd,
    target: Option<&PathTarget>,
    found: &mut Vec<Finding>,
) {
    if let Some(asked) = host.asked_receive_buffer {
        requested_buffer(host, end, asked, target, found);
    }
    listeners(host, end, target, found);
}

fn requested_buffer(
    host: &Snapshot,
    end: PathEnd,
    asked: Bytes,
    target: Option<&PathTarget>,
    found: &mut Vec<Finding>,
) {
    let (Some(kernel), Some(target)) = (host.kernel, target) else { return };
    let (Some(granted), Some(cap)) = (caps::granted(host), caps::asked(host, end)) else { return };
    let window = cap.window;
    let Some(gain) = target.gain_over(window) else { return };
    let cut = match granted < asked {
        true => format!(", which rmem_max cuts to {granted},"),
        false => String::new(),
    };
    let wanted = kernel.era().so_rcvbuf_for(target.window, None);
    found.push(Finding {
        what: cap.what,
        end,
        why: format!(
            "it asks for {asked}{cut} and so turns autotuning off: the window stays at \
             {window}, {} over {}",
            target.carried(window),
            target.rtt()
        ),
        now: asked.get().to_string(),
        wanted: "not set".to_owned(),
        gain: Some(gain),
        cost: Some(Bytes::ZERO),
        command: format!(
            "{IN_PROGRAM}do not set SO_RCVBUF, or set {} and raise net.core.rmem_max to it",
            wanted.get()
        ),
    });
}

/// The receive buffer of a listener is tcp_rmem[1] unless its program sets it; accepted connections
/// inherit it.
fn listeners(host: &Snapshot, end: PathEnd, target: Option<&PathTarget>, found: &mut Vec<Finding>) {
    let (Some([_, first, _]), Some(kernel)) =
        (host.sysctls.triple("net.ipv4.tcp_rmem"), host.kernel)
    else {
        return;
    };
    for listener in host.listeners.iter().filter(|l| l.receive_buffer.get() != first) {
        let window = kernel.era().window(listener.receive_buffer, None);
        found.push(Finding {
            what: format!("SO_RCVBUF of the program that listens on {}", listener.address),
            end,
            why: format!(
                "its receive buffer is not tcp_rmem[1], so the program has set it (or tcp_rmem has \
                 changed since it started): autotuning is then off for the connections that it accepts, and \
                 their window stays at {window}"
            ),
            now: listener.receive_buffer.get().to_string(),
            wanted: "not set".to_owned(),
            gain: target.and_then(|target| target.gain_over(window)),
            cost: None,
            command: "# in the program: do not set SO_RCVBUF; or restart it, if tcp_rmem changed"
                .to_owned(),
        });
    }
}
