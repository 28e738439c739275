//! The remedies of limits, as sentences.

use sweetspot_units::{Bytes, Duration, Rate};

use crate::evidence::{
    BUFFER_MISSING, Failure, LOG_COMMAND, ONE_INTERVAL, QUEUE_AFTER_LOSS, UNREAD,
};
use crate::quantities::{in_rate, ms};
use crate::{Arrivals, Class, Evidence, HostBuffer, Reader, WindowClamp};

/// The remedy, as a sentence.
pub fn fix(class: Class, e: &Evidence) -> String {
    let words = match class {
        Class::Opportunity => return opportunity_fix(e),
        Class::Congestion => congestion_fix(e),
        Class::Transport if e.doubts_rtt_min => {
            "Capture or follow it from before it begins: its handshake shows the round trip of the path without a queue."
        }
        Class::Transport if e.loss_events > 0 => congestion_fix(e),
        Class::Transport if e.lost_before => {
            "Wait, or use bbr on the sender. If it loses packets again and again (retrans in ss -ti), find where: a policer or a small \
             buffer drops bursts, which pacing avoids."
        }
        Class::Transport => {
            "Wait, or use a congestion control on the sender that grows its window faster: bbr, or cubic if it is reno."
        }
        Class::ReceiverWindow => {
            if let Some(clamp) = WindowClamp::binding(e) {
                return clamp.fix().to_owned();
            }
            return receiver_window_fix(e);
        }
        Class::ReceiverApplication => return receiver_application_fix(e),
        Class::SenderWindow => {
            let now = e.flight.zip(e.flight_round.or(e.rtt));
            return format!("On the sender: {}", SEND_BUFFER.fix(e.send_buffer, now, e));
        }
        Class::Bandwidth => return bandwidth_fix(e),
        Class::Application if e.has_nagle() || e.holds_partial_segment => {
            "In the sending program: set TCP_NODELAY, or write each message with one call (writev, MSG_MORE)."
        }
        Class::Application => {
            "On the sender: find out what the program waits for before it writes (disk, CPU, one request at a time)."
        }
        Class::WaitingForPeer if e.granted.is_some() => {
            "In the receiving program: raise the window of its protocol, as tcp_wmem and tcp_rmem do not matter here. \
             HTTP/2: SETTINGS_INITIAL_WINDOW_SIZE (Go: MaxUploadBufferPerStream; gRPC: InitialWindowSize; HAProxy: \
             tune.h2.initial-window-size). SSH: more channels or hpn-ssh. SFTP: more and larger requests (sftp -R, -B)."
        }
        Class::WaitingForPeer => {
            "In the requesting program: send the next request before the last answer has arrived (pipelining, several \
             connections), or find out what the receiver's program waits for."
        }
        Class::Idle if e.stall.is_some_and(|stall| stall.matters(e.lasted)) => {
            "The idle time needs no fix: the connection was kept open without data to send. For the silence, capture at both ends."
        }
        Class::Idle => "Nothing to fix: the connection was kept open without data to send.",
        Class::Pacing => "On the sender: raise or remove SO_MAX_PACING_RATE.",
        Class::Stalled => return stalled_fix(e),
        Class::NeverEstablished if e.failure == Some(Failure::Refused) => {
            "Start the program that should listen there, or correct the address or the firewall that sent the reset."
        }
        Class::NeverEstablished => {
            "Look for a firewall on the path, a host that is down, or a full accept queue (ss -ltn at the server); capture at the other \
             end."
        }
        Class::Unknown if e.unknown_because.is_some_and(needs_log) => {
            return format!("Log readings while it runs: {LOG_COMMAND}");
        }
        Class::Unknown => unknown_fix(e),
    };
    words.to_owned()
}

/// Whether a queue's overflow lost packets. A capture shows the RTT before each loss. The kernel shows only that the RTT is far
/// above its minimum.
fn overflows(e: &Evidence) -> bool {
    let before_losses = !e.is_sampled && e.loss_events > 0 && !e.loses_elsewhere;
    before_losses || has_queue(e)
}

/// Whether the RTT is far above its minimum.
fn has_queue(e: &Evidence) -> bool {
    let both = e.rtt_min.zip(e.rtt).filter(|_| !e.doubts_queue);
    both.is_some_and(|(min, rtt)| rtt > min.scaled(QUEUE_AFTER_LOSS))
}

/// The handshake takes a round trip, and so does each doubling in slow start, whatever the capacity.
fn opportunity_fix(e: &Evidence) -> String {
    let round_trip = e.rtt_min.or(e.rtt).map_or(String::new(), |rtt| format!(" of {}", ms(rtt)));
    format!(
        "The handshake takes a round trip{round_trip}, and so does each doubling in slow start. Fewer, longer connections (keep-alive) \
         avoid repeated ones; a nearer server shortens them."
    )
}

/// The remedy for losses.
fn congestion_fix(e: &Evidence) -> &'static str {
    match () {
        // The path's own round trip is no longer than the shortest one seen, so a queue that shows is there.
        _ if e.doubts_rtt_min && !has_queue(e) => {
            "Capture or follow it from before it begins: if the RTT is far longer than the handshake's, the losses are a \
             queue's overflow. Otherwise find where packets are lost."
        }
        _ if e.timer.is_some_and(|timer| timer.leads) => {
            "On the sender: repair losses sooner than its timer does, by SACK, RACK and tail loss probes (RFC 2018, RFC 8985; on \
             Linux by default: net.ipv4.tcp_sack, tcp_recovery, tcp_early_retrans). Then find where packets are lost."
        }
        _ if overflows(e) => {
            "Find what fills the bottleneck's queue, because its overflow loses packets: other traffic, or bursts of this \
             connection. To shorten them, pace the sender (SO_MAX_PACING_RATE, bbr, or sweetspot send)."
        }
        _ => {
            "Find where packets are lost. If a policer or a small buffer drops bursts, pace the sender (SO_MAX_PACING_RATE, bbr, \
             or sweetspot send). If losses are random, repair the link."
        }
    }
}

/// Whether readings of ss would show the limit, which is unknown `because` of this.
fn needs_log(because: &str) -> bool {
    [ONE_INTERVAL, BUFFER_MISSING, UNREAD].contains(&because)
}

/// The next step if the limit is not known.
fn unknown_fix(e: &Evidence) -> &'static str {
    match () {
        // For a live connection's receiver: a capture knows the retransmissions.
        _ if e.retransmitted.is_none() && e.arrivals == Arrivals::Steady => {
            "If this is the rate of the link or of a shaper, nothing is wrong. Otherwise run sweetspot diagnose at the sender, or on a \
             capture from there (tcpdump -s 96)."
        }
        _ if e.retransmitted.is_none() => {
            "Run sweetspot diagnose at the sender, or on a capture from there (tcpdump -s 96)."
        }
        _ if e.is_sampled => {
            "Watch or log it for longer, or diagnose a capture from its sender (tcpdump -s 96)."
        }
        _ => {
            "Capture or follow it from before it begins: both directions, 96 bytes of each packet or more. Or run sweetspot diagnose \
             at its sender while it sends."
        }
    }
}

/// How programs and hosts set a kind of buffer.
struct BufferKind {
    option: &'static str,
    sysctl: &'static str,
    /// Linux's smallest default for the third value on hosts with enough memory (tcp_init, net/ipv4/tcp.c).
    default_max: Bytes,
    /// Settings that keep the kernel from growing it.
    growth: &'static str,
}

const RECEIVE_BUFFER: BufferKind = BufferKind {
    option: "SO_RCVBUF",
    sysctl: "net.ipv4.tcp_rmem",
    default_max: Bytes::new(6 << 20),
    growth: "net.ipv4.tcp_moderate_rcvbuf, net.ipv4.tcp_mem",
};

const SEND_BUFFER: BufferKind = BufferKind {
    option: "SO_SNDBUF",
    sysctl: "net.ipv4.tcp_wmem",
    default_max: Bytes::new(4 << 20),
    growth: "net.ipv4.tcp_mem",
};

impl BufferKind {
    /// Advises a buffer for the path's capacity, or one larger than for the window of `now`, which was too small. A buffer is
    /// twice its window. Never advises to lower a host's setting.
    fn fix(
        &self,
        host: Option<HostBuffer>,
        now: Option<(Bytes, Duration)>,
        e: &Evidence,
    ) -> String {
        let BufferKind { option, sysctl, default_max, growth } = self;
        let now_buffer = now.map_or(Bytes::ZERO, |(window, _)| window * 2);
        let least = needed_window(now, e).map_or(Bytes::ZERO, |window| window * 2);
        let suffices = |max: Bytes| max > now_buffer && max >= least;
        let needed = match least > now_buffer {
            true => format!(
                "at least {least}, twice the capacity times the RTT{}",
                factors(e.capacity, now.map(|(_, rtt)| rtt))
            ),
            false => format!("more than {now_buffer}"),
        };
        match host {
            Some(HostBuffer { is_set: Some(false), max }) if suffices(max) => format!(
                "the third value of {sysctl}, {max}, is large enough; check why the kernel does not grow the buffer ({growth})."
            ),
            Some(HostBuffer { is_set: Some(false), max }) => {
                format!("raise the third value of {sysctl} from {max} to {needed}.")
            }
            Some(HostBuffer { is_set, max }) => {
                let call = if is_set.is_some() { "the call" } else { "any call" };
                let limit = match suffices(max) {
                    true => format!("; the third value of {sysctl}, {max}, is large enough"),
                    false => {
                        format!(", and raise the third value of {sysctl} from {max} to {needed}")
                    }
                };
                format!("remove {call} that sets {option}{limit}.")
            }
            None if suffices(*default_max) => format!(
                "remove any call that sets {option}, and leave the third value of {sysctl} at Linux's default or above \
                 ({default_max} or more)."
            ),
            None => format!(
                "remove any call that sets {option}, and check that the third value of {sysctl} is {needed}."
            ),
        }
    }
}

/// The two factors of a window, with which a reader can check it.
fn factors(rate: Option<Rate>, rtt: Option<Duration>) -> String {
    let both = rate.zip(rtt);
    both.map_or(String::new(), |(rate, rtt)| format!(", {} x {}", in_rate(rate), ms(rtt)))
}

/// The window for the path's capacity at the RTT of `now`.
fn needed_window(now: Option<(Bytes, Duration)>, e: &Evidence) -> Option<Bytes> {
    e.capacity.zip(now).map(|(capacity, (_, rtt))| capacity * rtt)
}

/// The remedy for a program that reads too slowly.
fn receiver_application_fix(e: &Evidence) -> String {
    let words = match e.hangs_for {
        Some(_) => {
            "On the receiver: find out why the program hangs (its stack trace, strace -p PID)."
        }
        None => {
            "On the receiver: make the program read faster (check its disk and CPU, or read in a separate thread)."
        }
    };
    let there = match e.is_sampled && e.unread.is_none() {
        true => " Run sweetspot diagnose there: its kernel knows the unread data.",
        false => "",
    };
    format!("{words}{there}")
}

/// A small buffer and a slow reader both make the window small, but a larger buffer helps only against the former.
fn receiver_window_fix(e: &Evidence) -> String {
    let now = e.window.zip(e.window_round.or(e.rtt));
    // The largest window without a scale (RFC 9293, section 3.1).
    let most = Bytes::new(u16::MAX.into());
    let buffer = match now {
        Some((window, _)) if e.unscaled && window.saturating_add(e.mss * 2) > most => {
            "enable window scaling (net.ipv4.tcp_window_scaling=1 at both ends, and no device on the path that removes the \
             option): without it no buffer makes a larger window."
                .to_owned()
        }
        _ => RECEIVE_BUFFER.fix(e.receive_buffer, now, e),
    };
    match e.reader {
        Reader::Prompt => format!("On the receiver: {buffer}"),
        Reader::Unknown => format!(
            "On the receiver, look at Recv-Q (ss -t). If it stays near 0, {buffer} If data waits there, the program reads too slowly: \
             make it read faster, because a larger buffer would only fill up."
        ),
        Reader::Late if e.has_small_buffer() => format!(
            "On the receiver: {buffer} Each short pause of the program fills so small a buffer. If Recv-Q (ss -t) stays high with a \
             larger one, make the program read faster."
        ),
        Reader::Late => format!(
            "On the receiver: first make the program read faster, because unread data filled the buffer. If Recv-Q (ss -t) then stays \
             near 0, {buffer}"
        ),
    }
}

fn bandwidth_fix(e: &Evidence) -> String {
    if !e.paced && e.drops_without_queue() {
        return "If the rate is a policer's, ask the provider for more, or pace the sender just below it to avoid the losses \
                (SO_MAX_PACING_RATE, sweetspot send). Otherwise only a faster path would raise the rate."
            .to_owned();
    }
    if e.may_be_paced() && e.seen_from_receiver {
        return "Run sweetspot diagnose at the sender, or on a capture from there: it shows whether the program, its pacing rate or a shaper on \
                its device sets this rate. Otherwise only a faster path would raise the rate."
            .to_owned();
    }
    if e.may_be_paced() {
        return "On the sender: if its program (pacing_rate in ss -ti) or a shaper on its device (tc qdisc show) sets this rate, raise it \
                there. Otherwise only a faster path would raise the rate."
            .to_owned();
    }
    if e.in_device {
        return "On the sender: the limit is the rate of its own device, or of a shaper on it (tc -s qdisc show). Raise the shaper's \
                rate; without one, only a faster device would help."
            .to_owned();
    }
    match e.sweet_spot() {
        _ if e.others_fill_path && e.standing_queue().is_some() => shared_queue_fix(e),
        Some(window) if e.standing_queue().is_some() => format!(
            "Only a faster path would raise the rate. To shorten the queue at the same rate, set a window of {window} on the receiver \
             (sweetspot tune): the {} times the RTT without the queue{}.",
            if e.shared.is_some() { "connection's rate" } else { "capacity" },
            factors(e.capacity, e.rtt_min)
        ),
        _ if e.standing_queue().is_some() => "Only a faster path would raise the rate. An AQM at the bottleneck (fq_codel) would keep its queue \
                                       short."
            .to_owned(),
        _ => "Only a faster path would raise the rate.".to_owned(),
    }
}

/// The remedy for a queue that several connections fill: less data from one of them leaves room for the others.
fn shared_queue_fix(e: &Evidence) -> String {
    let [others_keep, all] = match e.shared {
        Some(shared) if shared.others > 1 => ["Other connections keep", "all of them"],
        _ => ["The other connection keeps", "both"],
    };
    format!(
        "Only a faster path would raise the rate. {others_keep} the queue full; a smaller window here would only lower this connection's \
         share. To shorten the queue, use an AQM at the bottleneck (fq_codel), or limit {all} (sweetspot tune)."
    )
}

fn stalled_fix(e: &Evidence) -> String {
    match e.passes {
        Some(passes) => format!(
            "Let ICMP \"fragmentation needed\" and \"packet too big\" through to the sender, or lower the MSS to {} \
             (iptables TCPMSS --clamp-mss-to-pmtu, ip route ... advmss), or set net.ipv4.tcp_mtu_probing=1 there.",
            passes.get()
        ),
        None if e.stall.is_some_and(|stall| stall.reset.is_some()) => {
            "On the receiver: find out why its program closed the connection, perhaps with data unread. If resets do not reach the \
             sender, look for the firewall or the NAT that drops them."
                .to_owned()
        }
        None => "Find the cause: capture at both ends, and look for a firewall or a NAT that forgot the connection, a host \
                 that is down, or a broken path."
            .to_owned(),
    }
}
