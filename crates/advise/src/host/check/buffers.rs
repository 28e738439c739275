//! Socket buffers that are too small for the path.

use sweetspot_units::Bytes;

use crate::host::caps;
use crate::host::target::PathTarget;
use crate::host::{Finding, PathEnd, Snapshot};

pub(super) fn check(host: &Snapshot, end: PathEnd, target: &PathTarget, found: &mut Vec<Finding>) {
    receive(host, end, target, found);
    send(host, end, target, found);
    explicit(host, end, target, found);
}

fn receive(host: &Snapshot, end: PathEnd, target: &PathTarget, found: &mut Vec<Finding>) {
    let s = &host.sysctls;
    let (Some([min, first, max]), Some(kernel)) = (s.triple("net.ipv4.tcp_rmem"), host.kernel)
    else {
        return;
    };
    let window = caps::autotuned(host, end)
        .filter(|cap| cap.what == "net.ipv4.tcp_rmem")
        .map(|cap| cap.window);
    let wanted = kernel.era().memory_for(target.window, None);
    if let Some(window) = window.filter(|w| *w < target.filled()) {
        let why = format!(
            "autotuning stops at a window of {window}: {} over {}",
            target.carried(window),
            target.rtt()
        );
        found.push(
            Finding::sysctl(
                end,
                "net.ipv4.tcp_rmem",
                format!("{min} {first} {max}"),
                format!("{min} {first} {}", wanted.get().max(max)),
                why,
            )
            .gains(target.gain_over(window))
            .costs(memory(wanted, Bytes::new(max), target)),
        );
    }
}

fn send(host: &Snapshot, end: PathEnd, target: &PathTarget, found: &mut Vec<Finding>) {
    let Some([min, first, max]) = host.sysctls.triple("net.ipv4.tcp_wmem") else { return };
    let buffer = target.send_buffer(Bytes::new(max));
    let window = buffer.window();
    if window >= target.filled() {
        return;
    }
    let wanted = target.send_memory();
    let why = format!(
        "programs refill a send buffer when a third of it is free, so a paced sender has a window of {window}, {} over {}; one that \
         sends in bursts has {} on average",
        target.carried(window),
        target.rtt(),
        buffer.window_of_bursts()
    );
    found.push(
        Finding::sysctl(
            end,
            "net.ipv4.tcp_wmem",
            format!("{min} {first} {max}"),
            format!("{min} {first} {wanted}", wanted = wanted.get()),
            why,
        )
        .gains(target.gain_over(window))
        .costs(memory(wanted, Bytes::new(max), target)),
    );
}

/// A program that sets SO_RCVBUF turns autotuning off, and its request is cut to rmem_max.
fn explicit(host: &Snapshot, end: PathEnd, target: &PathTarget, found: &mut Vec<Finding>) {
    let s = &host.sysctls;
    let Some(kernel) = host.kernel else { return };
    for (name, option) in [("net.core.rmem_max", "SO_RCVBUF"), ("net.core.wmem_max", "SO_SNDBUF")] {
        let Some(max) = s.bytes(name) else { continue };
        // The kernel doubles both requests.
        let doubled = max.saturating_add(max);
        let (wanted, window) = match option {
            "SO_RCVBUF" => (
                kernel.era().so_rcvbuf_for(target.window, None),
                kernel.era().window(doubled, None),
            ),
            _ => (
                Bytes::new(target.send_memory().get().div_ceil(2)),
                target.send_buffer(doubled).window(),
            ),
        };
        if max >= wanted || window >= target.filled() {
            continue;
        }
        let why = format!(
            "programs that set {option} (iperf3 -w and many transfer tools) turn autotuning off \
             and are cut to this: {} over {}",
            target.carried(window),
            target.rtt()
        );
        found.push(
            Finding::sysctl(end, name, max.get(), wanted.get(), why)
                .gains(target.gain_over(window))
                .costs(Some(Bytes::ZERO)),
        );
    }
}

fn memory(wanted: Bytes, now: Bytes, target: &PathTarget) -> Option<Bytes> {
    Some(Bytes::new(wanted.saturating_sub(now).get().saturating_mul(target.connections)))
}
