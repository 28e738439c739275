//! This host's settings, in the form needed by `advise`.

use std::net::IpAddr;

use sweetspot_advise::host::{Device, Listener, Snapshot, Sysctls};
use sweetspot_linux::diag::{Detail, Diag, TcpState};
use sweetspot_linux::host;

/// The sysctls that are checked.
const SYSCTL_NAMES: [&str; 15] = [
    "net.core.rmem_max",
    "net.core.wmem_max",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
    "net.ipv4.tcp_mem",
    "net.ipv4.tcp_adv_win_scale",
    "net.ipv4.tcp_available_congestion_control",
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_moderate_rcvbuf",
    "net.ipv4.tcp_mtu_probing",
    "net.ipv4.tcp_no_metrics_save",
    "net.ipv4.tcp_no_ssthresh_metrics_save",
    "net.ipv4.tcp_sack",
    "net.ipv4.tcp_timestamps",
    "net.ipv4.tcp_window_scaling",
];

/// The sysctls, memory, listening sockets, and the device towards `peer` (or of the default route) of this host and network
/// namespace. Nothing is changed, and anything that cannot be read is left out.
pub fn settings(peer: Option<IpAddr>) -> Snapshot {
    let mut sysctls = Sysctls::default();
    for name in SYSCTL_NAMES {
        if let Some(value) = host::sysctl(name) {
            sysctls.insert(name, &value);
        }
    }
    Snapshot {
        kernel: host::kernel_release().and_then(|r| r.parse().ok()),
        sysctls,
        memory: host::memory(),
        page: host::page(),
        device: peer
            .map_or_else(host::default_device, |peer| host::device_to(peer).ok())
            .map(device),
        asked_receive_buffer: None,
        listeners: listeners(),
    }
}

/// Listening sockets of this network namespace; empty if the kernel does not list them.
fn listeners() -> Vec<Listener> {
    let mut all = Vec::new();
    let detail = Detail { memory: true, ..Detail::NONE };
    let listed = Diag::open().and_then(|mut diag| {
        diag.connections(&[TcpState::Listen], detail, |connection| {
            let address = connection.local.to_string();
            let receive_buffer = connection.memory.map(|memory| memory.receive_buffer);
            all.extend(receive_buffer.map(|receive_buffer| Listener { address, receive_buffer }));
        })
    });
    if listed.is_err() { Vec::new() } else { all }
}

fn device(d: host::NetworkDevice) -> Device {
    Device {
        name: d.name,
        speed: d.speed,
        mtu: d.mtu,
        queue_length: d.queue_length,
        byte_queue_limits: d.byte_queue_limits,
        qdisc: d.qdisc,
        receive_ring: d.rings.map(|r| (r.receive, r.receive_max)),
        transmit_ring: d.rings.map(|r| (r.transmit, r.transmit_max)),
        tso: d.offloads.tso,
        gso: d.offloads.gso,
        gro: d.offloads.gro,
    }
}
