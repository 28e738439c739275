//! Derives findings from the settings of both hosts.

use sweetspot_units::{Bytes, Duration, Rate};

use super::caps::{self, Cap, FlowRole};
use super::target::PathTarget;
use super::{Finding, PathEnd, PublishedSettings, Snapshot, check, reference};
use crate::error::possible;
use crate::window::{self, COMMON_MTU, LossResponse, WindowQuestion};
use crate::{AdviceError, Kernel};

/// The hosts, and the path between them.
#[derive(Debug, Clone, PartialEq)]
pub struct HostQuestion {
    /// This host.
    pub here: Snapshot,
    /// The other host, if its settings are known.
    pub peer: Option<Snapshot>,
    /// The path's rate and RTT, if known; without them buffers are not checked.
    pub path: Option<(Rate, Duration)>,
    /// The largest packet that the whole path carries, if known.
    pub path_mtu: Option<Bytes>,
    /// Number of simultaneous connections that share the path, if more than it takes to fill it.
    pub connections: u64,
}

impl HostQuestion {
    /// The largest packet that the path and both devices carry, as far as known.
    pub fn mtu(&self) -> Bytes {
        let all = [self.path_mtu, device_mtu(&self.here), self.peer_mtu()].into_iter().flatten();
        all.filter(|mtu| MTU_RANGE.contains(&mtu.get())).min().unwrap_or(COMMON_MTU)
    }

    fn peer_mtu(&self) -> Option<Bytes> {
        self.peer.as_ref().and_then(device_mtu)
    }
}

/// One direction of data, as seen by this host, and its smallest limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostDirection {
    /// "receiving" or "sending".
    pub name: &'static str,
    /// The smallest limit, if the settings of either host are known.
    pub cap: Option<Cap>,
    /// The rate of one flow.
    pub rate: Rate,
}

/// The host advice.
#[derive(Debug, Clone, PartialEq)]
pub struct HostAdvice {
    /// The hosts and the path.
    pub question: HostQuestion,
    /// The target window, in payload; [`crate::window::advise`] recommends it for this path.
    pub window: Option<Bytes>,
    pub(super) target: Option<PathTarget>,
    /// The rate of one flow in each direction, if the path is known.
    pub directions: Vec<HostDirection>,
    /// The recommended changes, the largest gain first.
    pub findings: Vec<Finding>,
    /// Recommendations published by others.
    pub references: Vec<PublishedSettings>,
    /// Whether a file with this host's sysctls was written.
    pub is_written: bool,
}

fn device_mtu(host: &Snapshot) -> Option<Bytes> {
    host.device.as_ref().and_then(|device| device.mtu)
}

/// Compares the settings of both hosts with the needs of the path.
///
/// # Errors
/// If the path is impossible or there is no connection.
pub fn advise(question: &HostQuestion) -> Result<HostAdvice, AdviceError> {
    let q = question;
    possible(q.connections > 0, "connections", q.connections, "it must be 1 or more")?;
    let requested = q.here.asked_receive_buffer;
    possible(requested != Some(Bytes::ZERO), "rcvbuf", "0 B", "it must be 1 B or more")?;
    for (name, mtu) in [("path_mtu", q.path_mtu), ("peer_mtu", q.peer_mtu())] {
        let mtu = mtu.unwrap_or(COMMON_MTU);
        let why = "it must lie between 576B and 65535B";
        possible(MTU_RANGE.contains(&mtu.get()), name, mtu, why)?;
    }
    let (mtus, packets): (Vec<Bytes>, Vec<Finding>) = packets(q).unzip();
    let target = q.path.map(|path| target(q, path, raised_mtu(q, mtus))).transpose()?;
    let mut findings = check::all(&q.here, PathEnd::Here, target.as_ref());
    findings.extend(packets);
    if let Some(peer) = &q.peer {
        findings.extend(check::all(peer, PathEnd::Peer, target.as_ref()));
    }
    // The sort is stable: with equal gains, this host comes before the peer.
    findings.sort_by_key(|f| core::cmp::Reverse(f.gain));
    Ok(HostAdvice {
        window: target.map(|t| t.window),
        target,
        directions: target.map_or(Vec::new(), |t| directions(q, &t)),
        references: target.map_or(Vec::new(), |t| references(q, &t)),
        findings,
        is_written: false,
        question: q.clone(),
    })
}

/// The largest IPv4 packet, in bytes; a loopback device's packets may be larger.
const LARGEST_PACKET: Bytes = Bytes::new(65_535);
const MTU_RANGE: core::ops::RangeInclusive<u64> = 576..=LARGEST_PACKET.get();

/// The recommended window does not depend on the kernel.
const ANY_KERNEL: Kernel = Kernel { major: 6, minor: 18 };

/// The findings about MTUs, which depend on both ends and the path, with the MTU that each advises.
fn packets(q: &HostQuestion) -> impl Iterator<Item = (Bytes, Finding)> {
    let unlike = q.path_mtu.and_then(|path| Some((path, mtu_unlike(q, path)?)));
    let mismatch = q.peer.as_ref().and_then(|peer| mtu_mismatch(&q.here, peer, q.path_mtu));
    unlike.into_iter().chain(mismatch)
}

/// The MTU once the findings that advise `mtus` are followed.
fn raised_mtu(q: &HostQuestion, mtus: Vec<Bytes>) -> Bytes {
    let advised = mtus.into_iter().filter(|mtu| MTU_RANGE.contains(&mtu.get()));
    advised.fold(q.mtu(), Bytes::max)
}

fn target(
    q: &HostQuestion,
    (rate, rtt): (Rate, Duration),
    raised_mtu: Bytes,
) -> Result<PathTarget, AdviceError> {
    let combined = WindowQuestion {
        rate,
        rtt,
        buffer: None,
        cross: None,
        loss: None,
        congestion: LossResponse::Cubic,
        mtu: raised_mtu,
        kernel: q.here.kernel.unwrap_or(ANY_KERNEL),
    };
    let shares = window::to_hold(&combined)?.connections;
    let connections = q.connections.max(shares);
    let question = WindowQuestion { rate: rate.scaled(1.0 / connections as f64), ..combined };
    let window = window::to_hold(&question)?.window;
    let question = WindowQuestion { mtu: q.mtu(), ..question };
    Ok(PathTarget { question, raised_mtu, connections, window, shares })
}

fn directions(q: &HostQuestion, target: &PathTarget) -> Vec<HostDirection> {
    let both = |receiver: (&Snapshot, PathEnd), sender: Option<(&Snapshot, PathEnd)>| {
        let (host, end) = receiver;
        let mut all = caps::receiver(host, end);
        all.extend(caps::shared_memory(host, end, FlowRole::Receiver, target));
        all.extend(sender.map_or(Vec::new(), |(host, end)| caps::sender(host, end, target)));
        all.into_iter().min_by_key(|c| c.window)
    };
    let peer = q.peer.as_ref().map(|p| (p, PathEnd::Peer));
    let receiving = both((&q.here, PathEnd::Here), peer);
    let sending = match peer {
        Some(peer) => both(peer, Some((&q.here, PathEnd::Here))),
        None => caps::sender(&q.here, PathEnd::Here, target).into_iter().next(),
    };
    let speeds = [Some(&q.here), q.peer.as_ref()];
    let line = speeds.into_iter().flatten().filter_map(|h| h.device.as_ref()?.speed).min();
    let line = line.map(|speed| target.each(speed));
    let max = line.map_or(target.rate(), |speed| speed.min(target.rate()));
    let direction = |name, cap: Option<Cap>| {
        let caps = cap.as_ref().filter(|cap| cap.window < target.filled());
        let rate = caps.map_or(max, |cap| target.carried(cap.window).min(max));
        HostDirection { name, cap, rate }
    };
    vec![direction("receiving", receiving), direction("sending", sending)]
}

fn references(q: &HostQuestion, target: &PathTarget) -> Vec<PublishedSettings> {
    let speed = q.here.device.as_ref().and_then(|d| d.speed).unwrap_or(target.path_rate());
    vec![reference::esnet(speed, target.rtt()), reference::perfsonar(speed)]
}

/// A finding if the device's packets do not fit the path, or are smaller than those that the path and the
/// peer carry.
fn mtu_unlike(q: &HostQuestion, path: Bytes) -> Option<Finding> {
    let device = q.here.device.as_ref()?;
    // This is the longest IP packet (RFC 791), although Linux's loopback device accepts one byte more.
    let ours = device.mtu.map(|ours| ours.min(LARGEST_PACKET)).filter(|ours| *ours != path)?;
    let (now, takes) = (ours.get(), path.get());
    let knows_peer = q.peer.as_ref().is_some_and(|peer| peer.device.is_some());
    let mtu = |what, why, command| Finding {
        what,
        end: PathEnd::Here,
        why,
        now: now.to_string(),
        wanted: takes.to_string(),
        gain: None,
        cost: None,
        command,
    };
    if ours > path {
        // A smaller device MTU would slow down every other path, and IPv6 needs 1280 B (RFC 8200, section 5).
        return Some(mtu(
            "MTU of the route".to_owned(),
            format!(
                "packets of {now} B do not fit the path, which takes {takes} B: each new destination costs a loss and an ICMP \
                 message, and connections hang if that message is filtered"
            ),
            format!(
                "ip route change DEST mtu {takes} via GATEWAY dev {}   # this route alone",
                device.name
            ),
        ));
    }
    // The peer's device decides how much larger they may be.
    (!knows_peer).then(|| {
        mtu(
            format!("MTU of {}", device.name),
            format!(
                "the path takes packets of {takes} B, but the device sends {now} B at most: more packets and more headers for the \
                 same data"
            ),
            format!(
                "ip link set {} mtu {takes}   # if this device and the peer's take it",
                device.name
            ),
        )
    })
}

/// The MTU to which the end with the smaller one should rise, and the finding that advises it.
fn mtu_mismatch(here: &Snapshot, peer: &Snapshot, path: Option<Bytes>) -> Option<(Bytes, Finding)> {
    let mtu = |h: &Snapshot| h.device.as_ref().and_then(|d| d.mtu.map(|m| (d.name.clone(), m)));
    let ((name, ours), (_, theirs)) = (mtu(here)?, mtu(peer)?);
    // The smaller end rises to the larger one, or to the path's own limit, if it does not reach that already.
    let larger = ours.max(theirs);
    let wanted = path.map_or(larger, |path| larger.min(path));
    let helps = path.is_none_or(|path| path > ours.min(theirs));
    if ours == theirs || !helps {
        return None;
    }
    let why = format!(
        "the ends differ: {} B here, {} B at the peer; the smaller one applies",
        ours.get(),
        theirs.get()
    );
    let bytes = wanted.get();
    let (what, end, now, command) = match ours < theirs {
        true => (
            format!("MTU of {name}"),
            PathEnd::Here,
            ours,
            format!("ip link set {name} mtu {bytes}   # if every link between takes it"),
        ),
        // Not lower here: other paths take the packets of this host.
        false => (
            "MTU of its device".to_owned(),
            PathEnd::Peer,
            theirs,
            format!(
                "# raise it to {bytes} B on the peer if you can and every link between takes it"
            ),
        ),
    };
    let now = now.get().to_string();
    let finding =
        Finding { what, end, why, now, wanted: bytes.to_string(), gain: None, cost: None, command };
    Some((wanted, finding))
}
