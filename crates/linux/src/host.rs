//! This host's settings, memory and devices. Nothing here writes; an unreadable value is `None`.

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::path::Path;

use sweetspot_units::{Bytes, Rate};

use crate::route::RouteNetlink;
use crate::{ethtool, qdisc, sockopt};

/// A network device.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NetworkDevice {
    /// Its name.
    pub name: String,
    /// Its speed; `None` for virtual devices.
    pub speed: Option<Rate>,
    /// The device's MTU: the largest IP packet.
    pub mtu: Option<Bytes>,
    /// `txqueuelen`, in packets.
    pub queue_length: Option<u64>,
    /// Whether the driver uses byte queue limits (BQL); `None` if unknown.
    pub byte_queue_limits: Option<bool>,
    /// The kind of its root queueing discipline.
    pub qdisc: Option<String>,
    /// Its descriptor rings; `None` if the driver has none.
    pub rings: Option<ethtool::Rings>,
    /// Its offloads.
    pub offloads: ethtool::Offloads,
}

/// The kernel's release, as `uname -r` prints it.
pub fn kernel_release() -> Option<String> {
    text("/proc/sys/kernel/osrelease")
}

/// The major and minor version of a release such as "6.18.44".
pub fn version_of(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => Some((major, minor)),
        _ => None,
    }
}

/// A setting by its dotted name, such as `net.ipv4.tcp_rmem`, in this network namespace.
pub fn sysctl(name: &str) -> Option<String> {
    text(Path::new("/proc/sys").join(name.replace('.', "/")))
}

/// The host's physical memory.
pub fn memory() -> Option<Bytes> {
    let info = text("/proc/meminfo")?;
    let line = info.lines().find_map(|l| l.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(Bytes::new(kib * 1024))
}

/// The size of a memory page.
pub fn page() -> Option<Bytes> {
    Some(Bytes::new(rustix::param::page_size() as u64))
}

/// The device of the default IPv4 route.
pub fn default_device() -> Option<NetworkDevice> {
    let routes = text("/proc/net/route")?;
    let name = routes.lines().skip(1).find_map(|line| {
        let mut words = line.split_whitespace();
        let (name, destination) = (words.next()?, words.next()?);
        (destination == "00000000").then_some(name)
    })?;
    Some(device(name))
}

/// The device through which packets to `host` leave; the loopback device for this host's own addresses. Sends nothing.
pub fn device_to(host: IpAddr) -> io::Result<NetworkDevice> {
    RouteNetlink::new()?.device_to(host).map(|name| device(&name))
}

/// The largest packet that the kernel would send to `host` now: the device's MTU, or a smaller path MTU if discovery found one
/// (RFC 1191, RFC 8201). Sends nothing.
pub fn path_mtu(host: IpAddr) -> io::Result<Bytes> {
    let own: IpAddr = match host {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((own, 0))?;
    // The discard port; connecting a datagram socket only looks up the route.
    socket.connect((host, 9))?;
    let mtu: libc::c_int = match host {
        IpAddr::V4(_) => sockopt::get(&socket, libc::IPPROTO_IP, libc::IP_MTU)?,
        IpAddr::V6(_) => sockopt::get(&socket, libc::IPPROTO_IPV6, libc::IPV6_MTU)?,
    };
    Ok(Bytes::new(mtu.max(0) as u64))
}

/// The device called `name`; its fields are empty if there is none.
pub fn device(name: &str) -> NetworkDevice {
    let folder = Path::new("/sys/class/net").join(name);
    let number = |file: &str| text(folder.join(file)).and_then(|t| t.parse::<i64>().ok());
    let positive = |file: &str| number(file).and_then(|n| u64::try_from(n).ok());
    NetworkDevice {
        name: name.to_owned(),
        // In Mbit/s; -1 if the driver does not know it.
        speed: positive("speed").filter(|n| *n > 0).map(Rate::from_mbit_per_second),
        mtu: positive("mtu").map(Bytes::new),
        queue_length: positive("tx_queue_len"),
        byte_queue_limits: byte_queue_limits(&folder),
        qdisc: positive("ifindex").and_then(|index| qdisc::root(index as i32).ok().flatten()),
        rings: ethtool::rings(name).ok(),
        offloads: ethtool::offloads(name),
    }
}

/// Whether the driver uses byte queue limits (BQL). The limit of an idle queue is the last one computed. A driver without
/// BQL leaves it at zero on every queue forever, so zero means "no" only once the device has sent data.
fn byte_queue_limits(folder: &Path) -> Option<bool> {
    let sent: u64 = text(folder.join("statistics/tx_packets"))?.parse().ok()?;
    let queues = fs::read_dir(folder.join("queues")).ok()?.flatten().map(|queue| queue.path());
    let limits = queues.filter_map(|queue| text(queue.join("byte_queue_limits/limit")));
    // The driver chooses which queues to use: a single queue with a limit shows that it uses BQL.
    let limit: u64 = limits.filter_map(|limit| limit.parse().ok()).max()?;
    match (limit, sent) {
        (0, 0..1000) => None,
        (limit, _) => Some(limit > 0),
    }
}

fn text(path: impl AsRef<Path>) -> Option<String> {
    Some(fs::read_to_string(path).ok()?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Linux routes packets to its own addresses through the loopback device, which every namespace has.
    #[test]
    fn the_device_to_a_local_address_is_loopback() {
        let to = |address: &str| device_to(address.parse().unwrap());
        assert_eq!(to("127.0.0.1").unwrap().name, "lo");
        // 192.0.2.0/24 is reserved for documentation (RFC 5737): if there is a default route, packets to it leave through its
        // device.
        if let Some(default) = default_device() {
            assert_eq!(to("192.0.2.1").unwrap().name, default.name);
        }
    }

    #[test]
    fn every_host_reports_kernel_release_memory_and_page_size() {
        assert!(kernel_release().is_some_and(|r| !r.is_empty()));
        assert!(memory().is_some_and(|m| m > Bytes::new(1 << 20)));
        assert!(page().is_some_and(|p| p.get().is_power_of_two()));
    }

    #[test]
    fn the_kernel_version_is_the_first_two_numbers_of_the_release() {
        assert_eq!(version_of("6.18.44-cloud"), Some((6, 18)));
        assert_eq!(version_of("7.1-rc3"), Some((7, 1)));
        assert_eq!(version_of(""), None);
        assert_eq!(version_of("linux"), None);
    }

    #[test]
    fn a_setting_is_read_by_its_dotted_name() {
        assert_eq!(sysctl("net.ipv4.tcp_rmem").map(|t| t.split_whitespace().count()), Some(3));
        assert_eq!(sysctl("net.ipv4.no_such_setting"), None);
    }

    #[test]
    fn the_path_mtu_to_this_host_is_the_loopback_mtu() {
        // The IPv4 length field has 16 bits, so a packet is one byte shorter than Linux's usual loopback MTU.
        let loopback = device("lo").mtu.map(|mtu| mtu.min(Bytes::new(0xffff)));
        assert_eq!(path_mtu(Ipv4Addr::LOCALHOST.into()).ok(), loopback);
    }

    #[test]
    fn a_missing_device_has_no_properties_and_loopback_has_an_mtu() {
        assert!(device("lo").mtu.is_some());
        let none = device("no-such-device0");
        assert_eq!((none.mtu, none.speed, none.qdisc, none.rings), (None, None, None, None));
    }
}
