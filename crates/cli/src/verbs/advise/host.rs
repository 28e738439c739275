use std::net::IpAddr;
use std::path::PathBuf;

use sweetspot_advise::Kernel;
use sweetspot_advise::host::{Device, HostQuestion, Listener, Snapshot, Sysctls, advise};
use sweetspot_linux::diag::{Detail, Diag, TcpState};
use sweetspot_linux::host;
use sweetspot_units::{Bytes, Duration, Rate};

use super::OutputOptions;
use crate::ends;
use crate::verbs::Ending;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  sweetspot advise host --rate 10Gbit/s --rtt 80ms
  sweetspot advise host --rate 1Gbit/s --rtt 40ms --write 90-sweetspot.conf")]
pub struct Arguments {
    /// Capacity of the path
    #[arg(long, allow_hyphen_values = true, value_name = "10Gbit/s", requires = "rtt")]
    rate: Option<Rate>,
    /// Round-trip time of the path
    #[arg(long, allow_hyphen_values = true, value_name = "80ms", requires = "rate")]
    rtt: Option<Duration>,
    /// Address or name of the other host. The path MTU to it is then read from this kernel's cache; nothing
    /// is sent
    #[arg(long, value_name = "HOST", value_parser = ends::host, value_hint = clap::ValueHint::Hostname)]
    peer: Option<IpAddr>,
    /// Path MTU, if known
    #[arg(long, value_name = "1500B", conflicts_with = "peer")]
    path_mtu: Option<Bytes>,
    /// MTU of the other host's device
    #[arg(long, value_name = "9000B")]
    peer_mtu: Option<Bytes>,
    /// The SO_RCVBUF that a program sets
    #[arg(long, value_name = "256KiB")]
    rcvbuf: Option<Bytes>,
    /// Number of simultaneous connections
    #[arg(long, value_name = "N", default_value_t = 1)]
    connections: u64,
    /// Output of `sysctl -a` on the other host
    #[arg(long, value_name = "FILE")]
    peer_sysctl: Option<PathBuf>,
    /// Kernel version of the other host, if it differs from this one
    #[arg(long, value_name = "6.18", requires = "peer_sysctl")]
    peer_kernel: Option<Kernel>,
    /// Write the recommended settings as a sysctl.d file
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
    #[command(flatten)]
    output: OutputOptions,
}

/// The settings that are checked.
const SYSCTL_NAMES: [&str; 14] = [
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
    "net.ipv4.tcp_sack",
    "net.ipv4.tcp_timestamps",
    "net.ipv4.tcp_window_scaling",
];

pub fn run(a: Arguments) -> Ending {
    let here = Snapshot { asked_receive_buffer: a.rcvbuf, ..snapshot() };
    let mut peer = match &a.peer_sysctl {
        None => None,
        Some(file) => Some(peer(Sysctls::read(&super::read(file)?)?, a.peer_kernel, &here)),
    };
    if let Some(mtu) = a.peer_mtu {
        let device = Device { name: "its device".to_owned(), mtu: Some(mtu), ..Device::default() };
        peer.get_or_insert_default().device = Some(device);
    }
    let path_mtu = match a.peer {
        None => a.path_mtu,
        Some(address) => Some(host::path_mtu(address).map_err(|error| {
            format!("--peer {address}: {error}; name an address that this host has a route to")
        })?),
    };
    let path = a.rate.zip(a.rtt);
    let question = HostQuestion { here, peer, path, path_mtu, connections: a.connections };
    let advice = advise(&question)?;
    if let Some(file) = &a.write {
        std::fs::write(file, advice.sysctl_file())
            .map_err(|e| format!("{}: {e}; name a file that can be written", file.display()))?;
    }
    a.output.show(|explain| advice.text(explain), || advice.json())
}

fn snapshot() -> Snapshot {
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
        device: host::default_device().map(device),
        asked_receive_buffer: None,
        listeners: listeners(),
    }
}

/// Listening sockets of this network namespace; none if the kernel does not list them.
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

/// The other host. `sysctl -a` names its kernel; if a file does not, this host's kernel is assumed.
fn peer(sysctls: Sysctls, named: Option<Kernel>, here: &Snapshot) -> Snapshot {
    let own = sysctls.text("kernel.osrelease").and_then(|r| r.parse().ok());
    Snapshot { kernel: named.or(own).or(here.kernel), sysctls, ..Snapshot::default() }
}

fn device(d: host::NetworkDevice) -> Device {
    Device {
        name: d.name,
        speed: d.speed,
        mtu: d.mtu,
        queue_length: d.queue_length,
        byte_queue_limits: d.byte_queue_limits,
        qdisc: d.qdisc,
        receive_ring: d.rings.map(|r| (r.receive, r.receive_most)),
        transmit_ring: d.rings.map(|r| (r.transmit, r.transmit_most)),
        tso: d.offloads.tso,
        gso: d.offloads.gso,
        gro: d.offloads.gro,
    }
}
