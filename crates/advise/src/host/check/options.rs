//! TCP options, and the metrics that TCP caches from earlier connections.

use sweetspot_theory::host::right_sizing::convergence_time;
use sweetspot_units::Bytes;

use crate::host::caps::default_adv_win_scale;
use crate::host::target::PathTarget;
use crate::host::{Finding, PathEnd, Snapshot};

const SIXTEEN_BITS: Bytes = Bytes::new(65_535);
/// Payload of a full Ethernet packet with timestamps.
const SEGMENT: Bytes = Bytes::new(1448);

pub(super) fn check(
    host: &Snapshot,
    end: PathEnd,
    target: Option<&PathTarget>,
    found: &mut Vec<Finding>,
) {
    let s = &host.sysctls;
    let off = |name: &str| s.number(name) == Some(0);
    let gain = |window| target.and_then(|t| t.gain_over(window));

    if off("net.ipv4.tcp_window_scaling") {
        let name = "net.ipv4.tcp_window_scaling";
        let why = "no window above 65,535 B can be advertised, in either direction";
        found.push(Finding::sysctl(end, name, 0, 1, why).gains(gain(SIXTEEN_BITS)));
    }
    if off("net.ipv4.tcp_moderate_rcvbuf") {
        let name = "net.ipv4.tcp_moderate_rcvbuf";
        let why = "receive buffers do not grow: each connection keeps tcp_rmem[1]";
        let window = s.triple("net.ipv4.tcp_rmem").zip(host.kernel);
        let window = window.map(|(rmem, k)| k.era().window(Bytes::new(rmem[1]), None));
        found.push(Finding::sysctl(end, name, 0, 1, why).gains(window.and_then(gain)));
    }
    if off("net.ipv4.tcp_sack") {
        let why = "without SACK, several losses in a window cost an RTT each, or a timeout";
        found.push(Finding::sysctl(end, "net.ipv4.tcp_sack", 0, 1, why));
    }
    if off("net.ipv4.tcp_timestamps") {
        let why = "without timestamps, the receiver cannot measure the RTT well, so its buffer \
                   grows late, and sequence numbers wrap unprotected on fast paths (RFC 7323)";
        found.push(Finding::sysctl(end, "net.ipv4.tcp_timestamps", 0, 1, why));
    }
    // Linux 5.6 added this separate setting: tcp_no_ssthresh_metrics_save, 1 by default, drops ssthresh and keeps the
    // other metrics.
    let ssthresh = "net.ipv4.tcp_no_ssthresh_metrics_save";
    let saved_by =
        if s.number(ssthresh).is_some() { ssthresh } else { "net.ipv4.tcp_no_metrics_save" };
    if off("net.ipv4.tcp_no_metrics_save") && off(saved_by) {
        let why = "the ssthresh of one bad connection is cached for the next ones to that host";
        found.push(Finding::sysctl(end, saved_by, 0, 1, why));
    }
    if let (Some(scale), Some(kernel)) = (s.number("net.ipv4.tcp_adv_win_scale"), host.kernel) {
        let usual = default_adv_win_scale(kernel.era());
        if scale != usual && !kernel.era().obeys_adv_win_scale() {
            let why = format!(
                "it was changed, but kernel {kernel} ignores it; remove it from your files"
            );
            found.push(Finding::sysctl(end, "net.ipv4.tcp_adv_win_scale", scale, usual, why));
        }
    }
    small_clamp(host, end, target, found);
    slow_control(host, end, target, found);
}

/// With a maximum buffer below 64 KiB, the handshake offers a window scale of 0.
fn small_clamp(
    host: &Snapshot,
    end: PathEnd,
    target: Option<&PathTarget>,
    found: &mut Vec<Finding>,
) {
    let s = &host.sysctls;
    let Some([min, first, max]) = s.triple("net.ipv4.tcp_rmem") else { return };
    let Some(rmem_max) = s.bytes("net.core.rmem_max") else { return };
    if max.max(rmem_max.get()) > SIXTEEN_BITS.get() || target.is_some() {
        // With a target, the buffer is already a finding.
        return;
    }
    let why = "buffers below 64 KiB make every handshake offer a window scale of 0: no window \
               above 65,535 B for the life of the connection";
    let now = format!("{min} {first} {max}");
    let wanted = format!("{min} {first} 6291456");
    found.push(Finding::sysctl(end, "net.ipv4.tcp_rmem", now, wanted, why));
}

/// Growth by one segment per RTT is slow on a path with a large BDP.
fn slow_control(
    host: &Snapshot,
    end: PathEnd,
    target: Option<&PathTarget>,
    found: &mut Vec<Finding>,
) {
    let s = &host.sysctls;
    let name = "net.ipv4.tcp_congestion_control";
    let offered = s.text("net.ipv4.tcp_available_congestion_control").unwrap_or_default();
    let cubic = offered.split_whitespace().any(|c| c == "cubic");
    let (Some("reno"), true, Some(target)) = (s.text(name), cubic, target) else { return };
    let Ok(time) = convergence_time(target.window, SEGMENT, target.rtt()) else { return };
    let why = format!("after a loss, Reno needs {time} on this path to fill its window again");
    found.push(Finding::sysctl(end, name, "reno", "cubic", why));
}
