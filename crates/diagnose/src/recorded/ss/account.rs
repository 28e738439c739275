//! The words that `ss -i` prints of a connection, read by their names: iproute2 has printed them in several orders, and leaves
//! out those that are zero.

use sweetspot_units::{Bytes, Duration, Rate, Time};

use super::super::{MAX_SEGMENT, micros};
use crate::live::Sample;

/// One reading, and which of its fields ss printed.
pub struct Account {
    pub sample: Sample,
    /// Whether it has the time with data under way (`busy`, Linux 4.9).
    pub has_busy: bool,
    /// Whether it has the peer's window (`snd_wnd`, Linux 5.4); ss leaves it out while it is zero.
    pub has_peer_window: bool,
    /// Whether the persist timer runs: the peer's window is closed (RFC 9293, section 3.8.6.1).
    pub persists: bool,
    /// The time since the last acknowledgement (`lastack`).
    pub since_ack: Duration,
    /// Timeouts in a row without an answer (`backoff`).
    pub backoff: u64,
    /// Whether it has the number of all timeouts (`total_rto`, Linux 6.7).
    pub has_timeouts: bool,
}

/// The words of `line` about a connection with these queues; `timer` is the word that `ss -o` puts behind the addresses.
pub fn account(line: &str, timer: Option<&str>, at: Time, [unread, queued]: [Bytes; 2]) -> Account {
    let words: Vec<&str> = line.split_whitespace().collect();
    let text =
        |name: &str| words.iter().find_map(|word| word.strip_prefix(name)?.strip_prefix(':'));
    let number = |name: &str| {
        let digits = text(name)?;
        let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
        digits[..end].parse::<u64>().ok()
    };
    let count = |name: &str| number(name).unwrap_or(0);
    let small = |name: &str| u32::try_from(count(name)).unwrap_or(u32::MAX);
    let time = |name: &str| micros(count(name).saturating_mul(1000));
    // In milliseconds, often with a fraction; the deviation follows behind a slash.
    let millis = |name: &str| {
        let value = text(name).and_then(|value| value.split('/').next()?.parse::<f64>().ok());
        micros((value.unwrap_or(0.0).max(0.0) * 1e3).round() as u64)
    };
    let [peer_scale, scale] = text("wscale").and_then(scales).unwrap_or_default();
    let retransmitted = text("retrans").and_then(|value| value.split('/').nth(1)?.parse().ok());
    let under_way = small("unacked")
        .saturating_add(first_of(text("retrans")))
        .saturating_sub(small("sacked").saturating_add(small("lost")));
    let mss = Bytes::new(count("mss")).min(MAX_SEGMENT);
    let unacked = small("unacked");
    let has_busy = number("busy").is_some();
    let not_sent = match number("notsent") {
        Some(bytes) => Bytes::new(bytes),
        None if has_busy => Bytes::ZERO,
        // Before Linux 4.6 nothing tells. A sender that fills its congestion window may have more.
        None if unacked > 0 && unacked >= small("cwnd") => mss,
        None => queued.saturating_sub(mss * u64::from(unacked)),
    };
    let memory = |name: char| text("skmem").and_then(|value| socket_memory(value, name));
    let timer = timer.or_else(|| text("timer"));
    // The flag belongs to the last rate sample; unsent bytes are newer.
    let starved = words.contains(&"app_limited") && not_sent < mss;
    let sample = Sample {
        at,
        // Linux counts the SYN as a byte acknowledged.
        acked: Bytes::new(count("bytes_acked").saturating_sub(1)),
        received: Bytes::new(count("bytes_received")),
        delivered: count("delivered"),
        busy: time("busy"),
        window_limited: time("rwnd_limited"),
        buffer_limited: time("sndbuf_limited"),
        congestion_window: small("cwnd"),
        // It is not printed while it is not set.
        slow_start_threshold: number("ssthresh").map_or(u32::MAX, |n| n as u32),
        under_way,
        outstanding: number("bytes_sent").map(|sent| {
            // Linux counts the SYN as a byte acknowledged.
            let acked = count("bytes_acked").saturating_sub(1);
            let bytes = [sent, count("bytes_retrans"), acked].map(Bytes::new);
            Sample::outstanding(bytes, unacked, mss)
        }),
        not_sent,
        recovering: small("lost") > 0,
        model_based: words.iter().any(|word| word.starts_with("bbr")),
        mss,
        rtt: millis("rtt"),
        rtt_min: millis("minrtt"),
        pacing_limit: pacing_limit(&words),
        starved,
        queued: memory('w').unwrap_or(queued),
        // ss prints it with -m alone. A buffer of unknown size is never full.
        send_buffer: text("skmem").and_then(send_buffer).unwrap_or(Bytes::MAX),
        peer_window: number("snd_wnd").map(Bytes::new),
        peer_scale,
        scale,
        segments: number("data_segs_out").unwrap_or_else(|| count("segs_out")),
        retransmitted: retransmitted.unwrap_or(0),
        timeouts: count("total_rto"),
        receiver_rtt: millis("rcv_rtt"),
        window: number("rcv_wnd").map(Bytes::new),
        unread,
        out_of_order: count("rcv_ooopack"),
    };
    Account {
        sample,
        has_busy,
        has_peer_window: number("snd_wnd").is_some(),
        persists: timer.is_some_and(|timer| timer.contains("persist")),
        since_ack: time("lastack"),
        backoff: small("backoff").into(),
        has_timeouts: number("total_rto").is_some(),
    }
}

/// `skmem:(r0,rb131072,t0,tb87040,f0,w4096,o0,bl0,d0)`: the number behind one letter.
fn socket_memory(value: &str, name: char) -> Option<Bytes> {
    let fields = value.trim_start_matches('(').trim_end_matches(')').split(',');
    let mut numbers = fields.filter_map(|field| field.strip_prefix(name)?.parse().ok());
    numbers.next().map(Bytes::new)
}

/// The size of the send buffer in the same list.
fn send_buffer(value: &str) -> Option<Bytes> {
    let mut fields = value.trim_start_matches('(').split(',');
    let size = fields.find_map(|field| field.strip_prefix("tb")?.parse().ok())?;
    Some(Bytes::new(size))
}

/// `retrans:1/5`: under way now, and in all.
fn first_of(value: Option<&str>) -> u32 {
    value.and_then(|value| value.split('/').next()?.parse().ok()).unwrap_or(0)
}

/// `wscale:7,8`: the peer's, and this end's.
fn scales(value: &str) -> Option<[u8; 2]> {
    let (peer, own) = value.split_once(',')?;
    Some([peer.parse().ok()?, own.parse().ok()?])
}

/// `pacing_rate 10Mbps/20Mbps`: the second, if there, was set by the program.
fn pacing_limit(words: &[&str]) -> Option<Rate> {
    let at = words.iter().position(|word| *word == "pacing_rate")?;
    let (_, limit) = words.get(at + 1)?.split_once('/')?;
    let digits = limit.find(|c: char| c.is_ascii_alphabetic())?;
    let value: f64 = limit[..digits].parse().ok()?;
    let unit = match &limit[digits..] {
        "Gbps" => 1e9,
        "Mbps" => 1e6,
        "Kbps" => 1e3,
        _ => 1.0,
    };
    Some(Rate::from_bits_per_second((value * unit) as u64))
}
