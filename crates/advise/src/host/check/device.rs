//! The network device: its speed, packets, queue, rings and offloads.

use sweetspot_units::{Bytes, Duration, Rate};

use crate::Kernel;
use crate::host::target::PathTarget;
use crate::host::{Device, Finding, PathEnd, Snapshot};

/// The speed from which on per-packet work matters: offloads, rings and queues.
const FAST_RATE: Rate = Rate::from_mbit_per_second(1000);
const ETHERNET_MTU: Bytes = Bytes::new(1500);

pub(super) fn check(
    host: &Snapshot,
    end: PathEnd,
    target: Option<&PathTarget>,
    found: &mut Vec<Finding>,
) {
    let Some(device) = &host.device else { return };
    if let Some(target) = target {
        speed(device, end, target, found);
    }
    packets(host, device, end, found);
    if device.speed.is_none_or(|s| s >= FAST_RATE) {
        queue(host, device, end, target, found);
        rings(device, end, found);
        offloads(device, end, found);
    }
}

fn speed(device: &Device, end: PathEnd, target: &PathTarget, found: &mut Vec<Finding>) {
    let Some(speed) = device.speed.filter(|s| *s < target.path_rate()) else { return };
    found.push(Finding {
        what: format!("speed of {}", device.name),
        end,
        why: "the device is slower than the path".to_owned(),
        now: speed.to_string(),
        wanted: target.path_rate().to_string(),
        gain: Some(target.each(target.path_rate() - speed)),
        cost: None,
        command: format!("ethtool {}   # shows what the link negotiated", device.name),
    });
}

fn packets(host: &Snapshot, device: &Device, end: PathEnd, found: &mut Vec<Finding>) {
    let probing = host.sysctls.number("net.ipv4.tcp_mtu_probing");
    // The loopback device does not lead to another link.
    let leaves_host = device.name != "lo";
    if leaves_host && device.mtu.is_some_and(|mtu| mtu > ETHERNET_MTU) && probing == Some(0) {
        let why = format!(
            "{} sends packets of {}. If a link on the path takes less and its ICMP message is lost, \
             connections hang; probing finds the size (RFC 4821)",
            device.name,
            device.mtu.unwrap_or(ETHERNET_MTU)
        );
        found.push(Finding::sysctl(end, "net.ipv4.tcp_mtu_probing", 0, 1, why));
    }
}

/// Whether the host's congestion control is paced without the fq qdisc.
fn paces_itself(host: &Snapshot) -> bool {
    // Linux 4.13, 218af599fa63: BBR, which needs pacing, has the TCP stack pace it without fq.
    let bbr = host.sysctls.text("net.ipv4.tcp_congestion_control") == Some("bbr");
    bbr && host.kernel.is_some_and(|kernel| kernel >= Kernel { major: 4, minor: 13 })
}

fn queue(
    host: &Snapshot,
    device: &Device,
    end: PathEnd,
    target: Option<&PathTarget>,
    found: &mut Vec<Finding>,
) {
    let fifo = device.qdisc.as_deref().is_some_and(|q| q.ends_with("fifo") || q == "pfifo_fast");
    let is_replaced = fifo && target.is_some() && !paces_itself(host);
    if is_replaced {
        found.push(Finding {
            what: format!("qdisc of {}", device.name),
            end,
            why: "fq spreads a window over the RTT instead of sending it at line rate, which \
                  small buffers on the path cannot hold"
                .to_owned(),
            now: device.qdisc.clone().unwrap_or_default(),
            wanted: "fq".to_owned(),
            gain: None,
            cost: None,
            command: format!("tc qdisc replace dev {} root fq", device.name),
        });
    }
    // fq has its own limit.
    if let Some(length) = device.queue_length.filter(|n| *n < 1000 && fifo && !is_replaced) {
        found.push(Finding {
            what: format!("txqueuelen of {}", device.name),
            end,
            why: "a short queue drops a sender's own bursts".to_owned(),
            now: length.to_string(),
            wanted: "1000".to_owned(),
            gain: None,
            cost: None,
            command: format!("ip link set {} txqueuelen 1000", device.name),
        });
    }
    if device.byte_queue_limits == Some(false) {
        found.push(Finding {
            what: format!("byte queue limits of {}", device.name),
            end,
            why: "the driver has none: packets in its ring are beyond the qdisc's control, so \
                  other flows wait behind them"
                .to_owned(),
            now: "none".to_owned(),
            wanted: "a driver with BQL".to_owned(),
            gain: None,
            cost: None,
            command: format!("ethtool -G {} tx 256   # a smaller ring bounds it", device.name),
        });
    }
}

fn rings(device: &Device, end: PathEnd, found: &mut Vec<Finding>) {
    transmit_ring(device, end, found);
    if let Some((now, max)) = device.receive_ring.filter(|(now, max)| now < max) {
        found.push(Finding {
            what: format!("receive ring of {}", device.name),
            end,
            why: "a burst that arrives while the CPU is busy is dropped when the ring is full"
                .to_owned(),
            now: now.to_string(),
            wanted: max.to_string(),
            gain: None,
            // A descriptor points at a page or at a packet; 2 KiB is the common size.
            cost: Some(Bytes::new((max - now) * 2048)),
            command: format!("ethtool -G {} rx {max}", device.name),
        });
    }
}

/// The longest time between interrupts that free descriptors (`rx-usecs`, `tx-usecs` of common
/// drivers). A transmit ring that drains faster runs dry.
const INTERRUPT_INTERVAL: Duration = Duration::from_micros(100);

fn transmit_ring(device: &Device, end: PathEnd, found: &mut Vec<Finding>) {
    let (Some((now, max)), Some(speed)) = (device.transmit_ring, device.speed) else { return };
    let packet = device.mtu.unwrap_or(ETHERNET_MTU);
    let lasts = packet * now / speed;
    if lasts >= INTERRUPT_INTERVAL || now >= max {
        return;
    }
    let needed =
        (speed * INTERRUPT_INTERVAL).get().div_ceil(packet.get()).next_power_of_two().min(max);
    found.push(Finding {
        what: format!("transmit ring of {}", device.name),
        end,
        why: format!(
            "{now} packets are sent within {lasts} at {speed}, sooner than the next interrupt may \
             make room: the device idles"
        ),
        now: now.to_string(),
        wanted: needed.to_string(),
        gain: None,
        cost: Some(Bytes::new((needed - now) * 2048)),
        command: format!("ethtool -G {} tx {needed}", device.name),
    });
}

fn offloads(device: &Device, end: PathEnd, found: &mut Vec<Finding>) {
    let all = [("tso", device.tso), ("gso", device.gso), ("gro", device.gro)];
    for (name, _) in all.iter().filter(|(_, on)| *on == Some(false)) {
        found.push(Finding {
            what: format!("{name} of {}", device.name),
            end,
            why: "without it, the CPU handles every packet on its own instead of up to 64 kB at a \
                  time; only measurements of single packets want that"
                .to_owned(),
            now: "off".to_owned(),
            wanted: "on".to_owned(),
            gain: None,
            cost: None,
            command: format!("ethtool -K {} {name} on", device.name),
        });
    }
}
