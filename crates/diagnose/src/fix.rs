//! The remedies of limits, as sentences.

use sweetspot_units::{Bytes, Duration};

use crate::evidence::Failure;
use crate::quantities::in_bytes;
use crate::recorded::ONE_INTERVAL;
use crate::words::{has_nagle, standing};
use crate::{Class, Evidence, Reader, WindowClamp};

/// The remedy, as a sentence.
pub fn fix(class: Class, e: &Evidence) -> String {
    let words = match class {
        Class::Opportunity => {
            "Nothing is wrong. Fewer, longer connections (keep-alive) avoid repeated handshakes and slow starts."
        }
        Class::Congestion => {
            "Find where packets are lost. If a buffer is too small for bursts, pace the sender (SO_MAX_PACING_RATE, bbr, \
             or sweetspot send). If losses are random, repair the link."
        }
        Class::Transport => {
            "Wait, or use a congestion control on the sender that grows faster (cubic, bbr)."
        }
        Class::ReceiverWindow => {
            if let Some(clamp) = WindowClamp::binding(e) {
                return clamp.fix().to_owned();
            }
            return receiver_window_fix(e);
        }
        Class::ReceiverApplication => {
            "On the receiver: make the program read faster (check its disk and CPU, or read in a separate thread)."
        }
        Class::SenderWindow => {
            let now = e.flight.zip(e.flight_round.or(e.rtt));
            return format!("On the sender: {}", window_fix("SO_SNDBUF", "tcp_wmem", now, e));
        }
        Class::Bandwidth => return bandwidth_fix(e),
        Class::Application if has_nagle(e) || e.holds_small => {
            "In the sending program: set TCP_NODELAY, or write each message with one call (writev, MSG_MORE)."
        }
        Class::Application => {
            "On the sender: find out what the program waits for before it writes (disk, CPU, requests one at a time)."
        }
        Class::WaitingForPeer if e.granted.is_some() => {
            "In the receiving program: raise the window of its protocol, as tcp_wmem and tcp_rmem do not matter here. \
             HTTP/2: SETTINGS_INITIAL_WINDOW_SIZE (Go: MaxUploadBufferPerStream; gRPC: InitialWindowSize; HAProxy: \
             tune.h2.initial-window-size). SSH: more channels or hpn-ssh. SFTP: more and larger requests (sftp -R, -B)."
        }
        Class::WaitingForPeer => {
            "In the program that asks: send the next request before the last answer has arrived (pipelining, several \
             connections), or find out what the receiver's program waits for."
        }
        Class::Idle => "Nothing to mend: the connection was kept open without data to send.",
        Class::Pacing => "On the sender: raise or lift SO_MAX_PACING_RATE.",
        Class::Stalled => return stalled_fix(e),
        Class::NeverEstablished if e.failure == Some(Failure::Refused) => {
            "Start the program that should listen there, or correct the address or the filter that sent the reset."
        }
        Class::NeverEstablished => {
            "Look for a filter on the way, or a host that is down; capture at the other end."
        }
        // For a live connection's receiver: a capture knows the retransmissions.
        Class::Unknown if e.retransmitted.is_none() => {
            "Diagnose it at the sending end: run sweetspot diagnose there, or on a capture from there (tcpdump -s 96)."
        }
        Class::Unknown if e.unknown_because == Some(ONE_INTERVAL) => {
            "Log readings while it runs: while sleep 0.1; do date +%s.%N; ss -tin; done"
        }
        Class::Unknown => {
            "Capture again: from before the connection begins, both directions, 96 bytes of each packet or more."
        }
    };
    words.to_owned()
}

/// A window that suffices at the RTT in the verdict, and exceeds the one of `now`, which was too small.
fn window_fix(option: &str, sysctl: &str, now: Option<(Bytes, Duration)>, e: &Evidence) -> String {
    let wanted = wanted(now, e);
    let size = match (wanted, now) {
        (Some(bytes), Some((now, _))) if bytes > now => format!("at least {bytes}"),
        (_, Some((now, _))) => format!("more than today's {}", in_bytes(now)),
        (_, None) => "the bandwidth-delay product".to_owned(),
    };
    format!(
        "do not set {option}, and let net.ipv4.{sysctl} allow {size} in its third value (twice that in buffer)."
    )
}

/// The window that the path's capacity takes at the RTT of `now`.
fn wanted(now: Option<(Bytes, Duration)>, e: &Evidence) -> Option<Bytes> {
    e.capacity.zip(now).map(|(capacity, (_, rtt))| capacity * rtt)
}

/// A small buffer and a slow reader both make a window small, and a larger buffer helps one of them only.
fn receiver_window_fix(e: &Evidence) -> String {
    let now = e.window.zip(e.window_round.or(e.rtt));
    // The largest window without a scale (RFC 9293, section 3.1).
    let most = Bytes::new(u16::MAX.into());
    let buffer = match now {
        Some((window, _)) if e.unscaled && window.saturating_add(e.mss * 2) > most => {
            "let it and the sender agree on window scaling (net.ipv4.tcp_window_scaling=1 at both, and no device on the way that \
             removes the option): no buffer makes a larger window without it."
                .to_owned()
        }
        _ => window_fix("SO_RCVBUF", "tcp_rmem", now, e),
    };
    match e.reader {
        Reader::Prompt => format!("On the receiver: {buffer}"),
        Reader::Unknown => format!(
            "On the receiver, look at Recv-Q (ss -t). If it stays near 0, {buffer} If data wait there, the program reads too slowly: \
             make it read faster, as a larger buffer would only fill up."
        ),
        Reader::Late => format!(
            "On the receiver: first make the program read faster, as unread data also filled the buffer. If Recv-Q (ss -t) then stays \
             near 0, {buffer}"
        ),
    }
}

fn bandwidth_fix(e: &Evidence) -> String {
    if e.paced || (e.even && standing(e).is_none()) {
        return "Only a faster path would help. If a shaper on the sender's own device (tc qdisc show) or its program \
                sets the rate, raise that."
            .to_owned();
    }
    let needed = e.capacity.zip(e.rtt_min.or(e.rtt)).map(|(capacity, rtt)| capacity * rtt);
    match needed {
        // A window below two segments would wait for delayed acknowledgements (RFC 9293, section 3.8.6.3).
        Some(bytes) if bytes >= e.mss * 2 => format!(
            "Only a faster path would help. A window of {bytes} on the receiver (sweetspot tune) keeps the rate and empties the \
             queue."
        ),
        _ if standing(e).is_some() => "Only a faster path would help. An AQM at the bottleneck (fq_codel) would keep its queue \
                                       short."
            .to_owned(),
        _ => "Only a faster path would help.".to_owned(),
    }
}

fn stalled_fix(e: &Evidence) -> String {
    match e.passes {
        Some(passes) => format!(
            "Let ICMP \"fragmentation needed\" and \"packet too big\" through to the sender, or lower the MSS to {} \
             (iptables TCPMSS --clamp-mss-to-pmtu, ip route ... advmss), or set net.ipv4.tcp_mtu_probing=1 there.",
            passes.get()
        ),
        None => "Find the cause: capture at both ends, and look for a firewall or a NAT that forgot the connection, a host \
                 that is down, or a broken path."
            .to_owned(),
    }
}
