//! The windows that a host's settings allow.

use sweetspot_theory::host::advertised_window::Era;
use sweetspot_theory::host::window_scale::WindowScale;
use sweetspot_units::Bytes;

use super::target::PathTarget;
use super::{PathEnd, Snapshot, Sysctls};
use crate::Kernel;

/// Sending or receiving.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlowRole {
    /// The sender.
    Sender,
    /// The receiver.
    Receiver,
}

/// A setting that limits a flow's window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cap {
    /// The name of the setting.
    pub what: String,
    /// The host with this setting.
    pub end: PathEnd,
    /// The role in which the setting limits the host.
    pub side: FlowRole,
    /// The largest window it allows.
    pub window: Bytes,
}

/// The name of the limit of a program that sets its own receive buffer.
pub(super) const PROGRAM_BUFFER: &str = "SO_RCVBUF of the program";

/// The limits of `host` as a receiver, smallest window first. Settings that could not be read are left out.
pub(super) fn receiver(host: &Snapshot, end: PathEnd) -> Vec<Cap> {
    let s = &host.sysctls;
    let cap = |what: &str, window| receiver_cap(what, end, window);
    let mut all: Vec<Cap> = unscaled(host, end, FlowRole::Receiver).into_iter().collect();
    // Setting the buffer in a program turns autotuning off.
    all.extend(asked(host, end).or_else(|| autotuned(host, end)));
    let maxima = (s.triple("net.ipv4.tcp_rmem"), s.bytes("net.core.rmem_max"));
    if let (Some(rmem), Some(max), Some(_)) = (maxima.0, maxima.1, host.kernel) {
        let scale = WindowScale::of_linux(Bytes::new(rmem[2]), max, None);
        all.push(cap("the window scale of tcp_rmem and rmem_max", scale.largest_window()));
    }
    all.sort_by_key(|c| c.window);
    all
}

/// The limit of a host that neither offers nor accepts window scaling: both SYNs must have the option (RFC 7323, section
/// 2.2).
fn unscaled(host: &Snapshot, end: PathEnd, side: FlowRole) -> Option<Cap> {
    let what = "net.ipv4.tcp_window_scaling";
    let window = WindowScale::NONE.largest_window();
    (host.sysctls.number(what) == Some(0)).then(|| Cap { what: what.to_owned(), end, side, window })
}

fn receiver_cap(what: &str, end: PathEnd, window: Bytes) -> Cap {
    Cap { what: what.to_owned(), end, side: FlowRole::Receiver, window }
}

/// The limit of autotuning, or of the initial buffer if autotuning is off.
pub(super) fn autotuned(host: &Snapshot, end: PathEnd) -> Option<Cap> {
    let s = &host.sysctls;
    let [_, first, max] = s.triple("net.ipv4.tcp_rmem")?;
    let (what, memory) = match s.number("net.ipv4.tcp_moderate_rcvbuf") {
        Some(0) => ("net.ipv4.tcp_moderate_rcvbuf", first),
        _ => ("net.ipv4.tcp_rmem", max),
    };
    Some(receiver_cap(what, end, window_of(Bytes::new(memory), host.kernel?, s)))
}

// Linux sock_setsockopt(): the kernel cuts the request to rmem_max, then doubles it.
/// The receive buffer granted for the program's SO_RCVBUF request.
pub(super) fn granted(host: &Snapshot) -> Option<Bytes> {
    let asked = host.asked_receive_buffer?;
    Some(host.sysctls.bytes("net.core.rmem_max").map_or(asked, |max| asked.min(max)))
}

/// The limit of the program's SO_RCVBUF, if it sets one.
pub(super) fn asked(host: &Snapshot, end: PathEnd) -> Option<Cap> {
    let window = host.kernel?.era().window(granted(host)? * 2, None);
    Some(receiver_cap(PROGRAM_BUFFER, end, window))
}

/// The limits of `host` as a sender on the path of `target`, smallest window first.
pub(super) fn sender(host: &Snapshot, end: PathEnd, target: &PathTarget) -> Vec<Cap> {
    let side = FlowRole::Sender;
    let wmem = host.sysctls.triple("net.ipv4.tcp_wmem").map(|[_, _, max]| Cap {
        what: "net.ipv4.tcp_wmem".to_owned(),
        end,
        side,
        window: target.send_buffer(Bytes::new(max)).window(),
    });
    let memory = shared_memory(host, end, side, target);
    let unscaled = unscaled(host, end, side);
    let mut all: Vec<Cap> = unscaled.into_iter().chain(wmem).chain(memory).collect();
    all.sort_by_key(|c| c.window);
    all
}

/// The limit of the memory shared by all connections, if it cannot hold the target window for each.
pub(super) fn shared_memory(
    host: &Snapshot,
    end: PathEnd,
    side: FlowRole,
    target: &PathTarget,
) -> Option<Cap> {
    let [_, pressure] = lacking_memory(host, target)?;
    let window = host.kernel?.era().window(pressure / target.connections, None);
    Some(Cap { what: "net.ipv4.tcp_mem".to_owned(), end, side, window })
}

/// The memory that all connections need for the target window, and the smaller `tcp_mem` pressure threshold, above which the
/// kernel shrinks buffers; `None` if the threshold suffices.
pub(super) fn lacking_memory(host: &Snapshot, target: &PathTarget) -> Option<[Bytes; 2]> {
    let [_, pressure, _] = host.sysctls.triple("net.ipv4.tcp_mem")?;
    let each = host.kernel?.era().memory_for(target.window, None);
    let all = Bytes::new(each.get().saturating_mul(target.connections));
    let pressure = Bytes::new(host.page?.get().saturating_mul(pressure));
    (all > pressure).then_some([all, pressure])
}

// Linux before 6.6, tcp_win_from_space(): this sysctl sets the ratio; its default depends on the era.
/// The window that `memory` holds, by the host's `tcp_adv_win_scale` if its kernel uses that setting.
fn window_of(memory: Bytes, kernel: Kernel, sysctls: &Sysctls) -> Bytes {
    let era = kernel.era();
    let edited = sysctls.number("net.ipv4.tcp_adv_win_scale").filter(|_| era.obeys_adv_win_scale());
    match edited {
        Some(scale @ 1..=30) => memory - Bytes::new(memory.get() >> scale),
        Some(scale @ -30..=0) => Bytes::new(memory.get() >> -scale),
        _ => era.window(memory, None),
    }
}

/// The default `tcp_adv_win_scale` of a kernel of `era`.
pub(super) fn default_adv_win_scale(era: Era) -> i64 {
    if era == Era::ThreeQuarters { 2 } else { 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(kernel: &str, settings: &str) -> Snapshot {
        Snapshot {
            kernel: kernel.parse().ok(),
            sysctls: Sysctls::read(settings).unwrap(),
            ..Snapshot::default()
        }
    }

    const RMEM: &str = "net.ipv4.tcp_rmem = 4096 131072 8000000\nnet.core.rmem_max = 212992\n";

    #[test]
    fn half_of_the_largest_buffer_is_window_on_current_kernels() {
        let caps = receiver(&host("6.18", RMEM), PathEnd::Here);
        assert_eq!(caps[0].what, "net.ipv4.tcp_rmem");
        assert_eq!(caps[0].window, Bytes::new(4_000_000));
    }

    #[test]
    fn without_autotuning_the_initial_buffer_is_the_cap() {
        let off = format!("{RMEM}net.ipv4.tcp_moderate_rcvbuf = 0\n");
        let caps = receiver(&host("6.18", &off), PathEnd::Here);
        assert_eq!(
            (caps[0].what.as_str(), caps[0].window.get()),
            ("net.ipv4.tcp_moderate_rcvbuf", 65_536)
        );
    }

    #[test]
    fn without_window_scaling_the_window_is_16_bits() {
        let off = format!("{RMEM}net.ipv4.tcp_window_scaling = 0\n");
        assert_eq!(receiver(&host("6.18", &off), PathEnd::Here)[0].window, Bytes::new(65_535));
    }

    #[test]
    fn so_rcvbuf_caps_the_window_whatever_autotuning_allows() {
        let host =
            Snapshot { asked_receive_buffer: Some(Bytes::new(500_000)), ..host("6.18", RMEM) };
        // rmem_max cuts the request to 212,992 and the kernel doubles it; half of the result is window.
        let caps = receiver(&host, PathEnd::Here);
        assert_eq!(caps[0].what, "SO_RCVBUF of the program");
        assert_eq!(caps[0].window, Bytes::new(212_992));
        assert!(caps.iter().all(|cap| cap.what != "net.ipv4.tcp_rmem"));
    }

    #[test]
    fn adv_win_scale_applies_only_up_to_kernel_6_5() {
        let edited = format!("{RMEM}net.ipv4.tcp_adv_win_scale = 3\n");
        // The window is 7/8 of 8 MB on 5.15, and half of it on 6.18.
        assert_eq!(receiver(&host("5.15", &edited), PathEnd::Here)[0].window.get(), 7_000_000);
        assert_eq!(receiver(&host("6.18", &edited), PathEnd::Here)[0].window.get(), 4_000_000);
    }

    #[test]
    fn unread_settings_do_not_cap_the_window() {
        assert!(receiver(&Snapshot::default(), PathEnd::Here).is_empty());
    }
}
