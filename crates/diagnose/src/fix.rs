//! The remedies of limits, as sentences.

use sweetspot_units::{Bytes, Duration};

use crate::evidence::Failure;
use crate::quantities::in_bytes;
use crate::recorded::ONE_INTERVAL;
use crate::words::{has_nagle, standing};
use crate::{Class, Evidence, WindowClamp};

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
            let now = e.window.zip(e.window_round.or(e.rtt));
            let fix = window_fix("On the receiver: do not set SO_RCVBUF", "tcp_rmem", now, e);
            return fix + slow_reader(e);
        }
        Class::ReceiverApplication => {
            "On the receiver: make the program read faster (check its disk and CPU, or read in a separate thread)."
        }
        Class::SenderWindow => {
            let now = e.flight.zip(e.flight_round.or(e.rtt));
            return window_fix("On the sender: do not set SO_SNDBUF", "tcp_wmem", now, e);
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
            "Send the next request before the last answer has arrived (pipelining, several connections), or find out \
             what the receiver's program waits for."
        }
        Class::Idle => "Nothing: the connection is kept open and unused.",
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
            "Diagnose it at the sending end: sweetspot diagnose there, or of a capture from there (tcpdump -s 96)."
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
fn window_fix(first: &str, sysctl: &str, now: Option<(Bytes, Duration)>, e: &Evidence) -> String {
    let wanted = e.capacity.zip(now).map(|(capacity, (_, rtt))| capacity * rtt);
    let size = match (wanted, now) {
        (Some(bytes), Some((now, _))) if bytes > now => format!("at least {bytes}"),
        (_, Some((now, _))) => format!("more than today's {}", in_bytes(now)),
        (_, None) => "the bandwidth-delay product".to_owned(),
    };
    format!(
        "{first}, and let net.ipv4.{sysctl} allow {size} in its third value (twice that in buffer)."
    )
}

/// The other cause of a window that was never seen larger than the first of an autotuned buffer, 64 KiB, though it is scaled.
fn slow_reader(e: &Evidence) -> &'static str {
    let is_small = e.largest_window.is_some_and(|largest| largest < Bytes::new(u16::MAX.into()));
    match is_small && e.scale.is_some_and(|scale| scale > 0) {
        true => " If it does not set it, its program reads slowly: sweetspot diagnose there tells.",
        false => "",
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
