use std::net::IpAddr;
use std::path::PathBuf;

use sweetspot_advise::Kernel;
use sweetspot_advise::host::{Device, HostQuestion, Listener, Snapshot, Sysctls, advise};
use sweetspot_linux::diag::{Detail, Diag, TcpState};
use sweetspot_linux::host;
use sweetspot_units::{Bytes, Duration, Rate};

use super::OutputOptions;
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
    /// The other end's address: the path's largest packet is then read from this kernel, which
    /// knows it once it has talked to it; nothing is sent
    #[arg(long, value_name = "ADDRESS")]
    peer: Option<IpAddr>,
    /// The largest packet that the path takes, where it is known
    #[arg(long, value_name = "1500B", conflicts_with = "peer")]
    path_mtu: Option<Bytes>,
    /// The largest packet of the other end's device
    #[arg(long, value_name = "9000B")]
    peer_mtu: Option<Bytes>,
    /// What a program sets SO_RCVBUF to
    #[arg(long, value_name = "256KiB")]
    rcvbuf: Option<Bytes>,
    /// Connections at a time
    #[arg(long, value_name = "N", default_value_t = 1)]
    connections: u64,
    /// What `sysctl -a` printed on the other end
    #[arg(long, value_name = "FILE")]
    peer_sysctl: Option<PathBuf>,
    /// The other end's kernel, if it is not this one
    #[arg(long, value_name = "6.18", requires = "peer_sysctl")]
    peer_kernel: Option<Kernel>,
    /// Write the wanted settings as a sysctl.d file; without it nothing is written
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
    #[command(flatten)]
    manner: OutputOptions,
}

/// The settings that are judged.
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
    a.manner.show(|explain| advice.text(explain), || advice.json())
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

/// Programs of this network namespace that wait for connections; none where the kernel does not
/// tell.
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

/// `sysctl -a` names the kernel too; a hand-made file may not, and then this host's is taken.
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
