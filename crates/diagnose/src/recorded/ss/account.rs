//! The words that `ss -i` prints about a connection, found by name: their order depends on the version of iproute2, and words
//! with the value zero are left out.

use std::str::FromStr;

use sweetspot_units::{Bytes, Duration, Rate, Time};

use super::super::{MAX_SEGMENT, micros};
use crate::live::Sample;
use crate::path::{HEADERS, IPV6_MORE, TIMESTAMPS};

/// One reading, with flags for the fields that ss printed.
pub struct Account {
    pub sample: Sample,
    /// Number of times before it in the text.
    pub stamps: u64,
    /// Whether it has the time with data in flight (`busy`, Linux 4.9).
    pub has_busy: bool,
    /// Whether it has the min RTT (`minrtt`, Linux 4.6).
    pub has_rtt_min: bool,
    /// Whether it has the peer's window (`snd_wnd`, Linux 5.4); ss leaves it out while it is zero.
    pub has_peer_window: bool,
    /// Whether it has the window that this end advertises (`rcv_wnd`, Linux 6.2); ss leaves it out while it is zero.
    pub has_window: bool,
    /// Whether the persist timer runs: the peer's window is closed (RFC 9293, section 3.8.6.1). Only that timer backs off while nothing
    /// is in flight.
    pub persists: bool,
    /// The time since the last acknowledgement (`lastack`).
    pub since_ack: Duration,
    /// The time since data was last sent or received, if it exceeds the RTO: the connection is then idle (RFC 5681, section 4.1).
    pub idle_for: Option<Duration>,
    /// Consecutive timeouts without an answer (`backoff`).
    pub backoff: u64,
    /// Whether it has the number of all timeouts (`total_rto`, Linux 6.7).
    pub has_timeouts: bool,
    /// The most that the program read in a round trip (`rcv_space`).
    read_per_round: Option<Bytes>,
}

impl Account {
    /// Whether this end only receives: it has no data of its own on the way.
    pub fn receives(&self) -> bool {
        let Sample { received, acked, queued, segments_in_flight, .. } = self.sample;
        received > acked && queued == Bytes::ZERO && segments_in_flight == 0
    }

    /// The data that wait unread, if a reader that keeps up leaves less: less than the window takes, and less than it reads in a
    /// round trip.
    pub fn unread(&self) -> Option<Bytes> {
        let unread = self.sample.unread;
        let usual = [self.sample.window, self.read_per_round].into_iter().flatten().min()?;
        (unread > usual).then_some(unread)
    }
}

/// Reads the words of `line` about a connection with these queues. `timer` is the word that `ss -o` prints after the addresses.
pub fn account(line: &str, timer: Option<&str>, at: Time, queues: [Bytes; 2]) -> Account {
    let words = Words(line.split_whitespace().collect());
    let timer = timer.or_else(|| words.text("timer"));
    Account {
        sample: words.sample(at, queues),
        stamps: 0,
        has_busy: words.number("busy").is_some(),
        has_rtt_min: words.number("minrtt").is_some(),
        has_peer_window: words.number("snd_wnd").is_some(),
        has_window: words.number("rcv_wnd").is_some(),
        persists: timer.is_some_and(|timer| timer.contains("persist")) || words.probes_window(),
        since_ack: words.time("lastack"),
        idle_for: words.idle_for(),
        backoff: words.small("backoff").into(),
        has_timeouts: words.number("total_rto").is_some(),
        read_per_round: words.number("rcv_space").map(Bytes::new),
    }
}

/// The words of a line, for lookup by name.
struct Words<'a>(Vec<&'a str>);

impl<'a> Words<'a> {
    fn text(&self, name: &str) -> Option<&'a str> {
        self.0.iter().find_map(|word| word.strip_prefix(name)?.strip_prefix(':'))
    }

    fn number(&self, name: &str) -> Option<u64> {
        let digits = self.text(name)?;
        let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
        digits[..end].parse().ok()
    }

    fn count(&self, name: &str) -> u64 {
        self.number(name).unwrap_or(0)
    }

    fn small(&self, name: &str) -> u32 {
        u32::try_from(self.count(name)).unwrap_or(u32::MAX)
    }

    fn time(&self, name: &str) -> Duration {
        micros(self.count(name).saturating_mul(1000))
    }

    /// A value in milliseconds, often with a fraction. The deviation follows after a slash.
    fn millis(&self, name: &str) -> Duration {
        let value = self.text(name).and_then(|value| value.split('/').next()?.parse::<f64>().ok());
        micros((value.unwrap_or(0.0).max(0.0) * 1e3).round() as u64)
    }

    fn idle_for(&self) -> Option<Duration> {
        let since = self.time("lastsnd").min(self.time("lastrcv"));
        (since > self.millis("rto")).then_some(since)
    }

    /// Whether the last rate sample, to which `app_limited` belongs, is about as new as the unsent bytes.
    fn has_fresh_rate(&self) -> bool {
        self.time("lastack") <= self.millis("rto")
    }

    /// Whether segments carry timestamps. ss prints this only with -o. Otherwise compare the MSS with the path MTU: the option
    /// takes 12 bytes (RFC 7323, appendix A) in addition to the headers of IPv4 or IPv6 and TCP.
    fn has_timestamps(&self) -> bool {
        let headers = [HEADERS, HEADERS + IPV6_MORE].map(|headers| headers + TIMESTAMPS);
        let missing = self.count("pmtu").checked_sub(self.count("mss"));
        self.0.contains(&"ts") || missing.is_some_and(|missing| headers.contains(&missing))
    }

    fn probes_window(&self) -> bool {
        self.count("backoff") > 0 && self.count("unacked") == 0 && self.count("notsent") > 0
    }

    /// The window that this end advertises. It is closed once the receive queue has used up the buffer (`__tcp_select_window`).
    fn window(&self) -> Option<Bytes> {
        let [used, size] = ["r", "rb"].map(|name| self.socket_memory(name));
        let is_used_up = used.zip(size).is_some_and(|(used, size)| used >= size);
        let closed = is_used_up.then_some(Bytes::ZERO);
        self.number("rcv_wnd").map(Bytes::new).or(closed)
    }

    /// One number of `skmem:(r0,rb131072,t0,tb87040,f0,w4096,o0,bl0,d0)`.
    fn socket_memory(&self, name: &str) -> Option<Bytes> {
        let value = self.text("skmem")?;
        let mut fields = value.trim_start_matches('(').trim_end_matches(')').split(',');
        fields.find_map(|field| field.strip_prefix(name)?.parse().ok()).map(Bytes::new)
    }

    /// A part of `retrans:1/5`: in flight now, and total.
    fn retransmitted<T: FromStr>(&self, part: usize) -> Option<T> {
        self.text("retrans")?.split('/').nth(part)?.parse().ok()
    }

    /// Payload acknowledged. Linux counts the SYN as an acknowledged byte.
    fn acked(&self) -> Bytes {
        Bytes::new(self.count("bytes_acked").saturating_sub(1))
    }

    fn mss(&self) -> Bytes {
        Bytes::new(self.count("mss")).min(MAX_SEGMENT)
    }

    fn segments_in_flight(&self) -> u32 {
        self.small("unacked")
            .saturating_add(self.retransmitted(0).unwrap_or(0))
            .saturating_sub(self.small("sacked").saturating_add(self.small("lost")))
    }

    fn not_sent(&self, queued: Bytes) -> Bytes {
        let unacked = self.small("unacked");
        match self.number("notsent") {
            Some(bytes) => Bytes::new(bytes),
            None if self.number("busy").is_some() => Bytes::ZERO,
            // Linux before 4.6 does not report it. A sender that fills its congestion window may have more to send.
            None if unacked > 0 && unacked >= self.small("cwnd") => self.mss(),
            None => queued.saturating_sub(self.mss() * u64::from(unacked)),
        }
    }

    fn outstanding(&self) -> Option<Bytes> {
        let sent = Bytes::new(self.number("bytes_sent")?);
        let retransmitted = Bytes::new(self.count("bytes_retrans"));
        let unacked = self.small("unacked");
        Some(Sample::outstanding([sent, retransmitted, self.acked()], unacked, self.mss()))
    }

    /// The word after `name`, which has no colon.
    fn after(&self, name: &str) -> Option<&'a str> {
        let at = self.0.iter().position(|word| *word == name)?;
        self.0.get(at + 1).copied()
    }

    /// The limit in `pacing_rate 10Mbps/20Mbps`: the second rate, if present, which the program set.
    fn pacing_limit(&self) -> Option<Rate> {
        rate(self.after("pacing_rate")?.split_once('/')?.1)
    }

    fn sample(&self, at: Time, [unread, queued]: [Bytes; 2]) -> Sample {
        let [peer_scale, scale] = self.text("wscale").and_then(scales).unwrap_or_default();
        let (mss, not_sent) = (self.mss(), self.not_sent(queued));
        Sample {
            at,
            acked: self.acked(),
            received: Bytes::new(self.count("bytes_received")),
            delivered: self.count("delivered"),
            busy: self.time("busy"),
            window_limited: self.time("rwnd_limited"),
            buffer_limited: self.time("sndbuf_limited"),
            congestion_window: self.small("cwnd"),
            // ss prints it only if it was set.
            slow_start_threshold: self
                .text("ssthresh")
                .map_or(u32::MAX, |_| self.small("ssthresh")),
            segments_in_flight: self.segments_in_flight(),
            outstanding: self.outstanding(),
            not_sent,
            recovering: self.small("lost") > 0,
            model_based: self.0.iter().any(|word| word.starts_with("bbr")),
            mss,
            rtt: self.millis("rtt"),
            rtt_min: self.millis("minrtt"),
            pacing_limit: self.pacing_limit(),
            starved: self.0.contains(&"app_limited") && (not_sent < mss || self.has_fresh_rate()),
            delivery_rate: self.after("delivery_rate").and_then(rate),
            queued: self.socket_memory("w").unwrap_or(queued),
            in_device: self.socket_memory("t").unwrap_or_default(),
            // ss prints it only with -m. A buffer of unknown size is never full.
            send_buffer: self.socket_memory("tb").unwrap_or(Bytes::MAX),
            peer_window: self.number("snd_wnd").map(Bytes::new),
            peer_scale,
            scale,
            segments: self.number("data_segs_out").unwrap_or_else(|| self.count("segs_out")),
            retransmitted: self.retransmitted(1).unwrap_or(0),
            timeouts: self.count("total_rto"),
            backoff: self.count("backoff"),
            receiver_rtt: self.millis("rcv_rtt"),
            timestamps: self.has_timestamps(),
            // ss leaves out a time of 0 ms.
            last_arrival: Some(Duration::from_millis(self.count("lastrcv"))),
            // ss does not print it.
            tick: Duration::ZERO,
            window: self.window(),
            unread,
            out_of_order: self.count("rcv_ooopack"),
        }
    }
}

/// The window scales in `wscale:7,8`: the peer's, then this end's.
fn scales(value: &str) -> Option<[u8; 2]> {
    let (peer, own) = value.split_once(',')?;
    Some([peer.parse().ok()?, own.parse().ok()?])
}

/// A rate such as `10.5Mbps`, or `11334632bps` in newer versions of ss.
fn rate(text: &str) -> Option<Rate> {
    let digits = text.find(|c: char| c.is_ascii_alphabetic())?;
    let value: f64 = text[..digits].parse().ok()?;
    let unit = match &text[digits..] {
        "Gbps" => 1e9,
        "Mbps" => 1e6,
        "Kbps" => 1e3,
        _ => 1.0,
    };
    Some(Rate::from_bits_per_second((value * unit) as u64))
}
