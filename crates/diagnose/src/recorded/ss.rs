//! Logs of `ss -ti` (iproute2): for each reading a line with the time, as `date +%s.%N` writes it,
//! then for each connection a line with its ends and one with the kernel's account.

use std::net::SocketAddr;

use sweetspot_units::{Bytes, Duration, Rate, Time};

use super::Recording;
use crate::live::Sample;

pub fn read(text: &str) -> Result<Vec<Recording>, String> {
    let mut recordings: Vec<Recording> = Vec::new();
    let (mut now, mut ends) = (None, None);
    for line in text.lines() {
        if let Some(time) = time(line) {
            now = Some(time);
        } else if let Some(found) = connection(line) {
            ends = Some(found);
        } else if line.starts_with([' ', '\t'])
            && let Some((ends, queues)) = ends.take()
        {
            let at = now.ok_or(
                "no line with the time stands before the first reading; log with: while sleep \
                 0.1; do date +%s.%N; ss -tin; done",
            )?;
            let sample = account(line, at, queues);
            match recordings.iter_mut().find(|recording| recording.ends == ends) {
                Some(recording) => recording.samples.push(sample),
                None => recordings.push(Recording { ends, samples: vec![sample] }),
            }
        }
    }
    if recordings.is_empty() {
        return Err("it is neither NDT7's JSON nor a log of ss -ti".to_owned());
    }
    Ok(recordings)
}

/// A line that is a time in seconds.
fn time(line: &str) -> Option<Time> {
    let seconds: f64 = line.trim().parse().ok()?;
    (seconds.is_finite() && seconds >= 0.0).then(|| Time::from_nanos((seconds * 1e9) as u64))
}

/// What waits to be read, and what waits to be acknowledged.
type Queues = [Bytes; 2];

/// The two addresses of a line, and the two numbers before them.
fn connection(line: &str) -> Option<([SocketAddr; 2], Queues)> {
    if line.starts_with([' ', '\t']) {
        return None;
    }
    let words: Vec<&str> = line.split_whitespace().collect();
    let first = words.iter().position(|word| end(word).is_some())?;
    let ends = [end(words[first])?, end(words.get(first + 1)?)?];
    let queue = |back: usize| {
        let word = first.checked_sub(back).and_then(|at| words.get(at));
        Bytes::new(word.and_then(|word| word.parse().ok()).unwrap_or(0))
    };
    Some((ends, [queue(2), queue(1)]))
}

/// An address as ss writes it, perhaps with the name of a device behind a percent sign.
fn end(word: &str) -> Option<SocketAddr> {
    let (address, port) = word.rsplit_once(':')?;
    let (address, device) = address.split_once('%').unwrap_or((address, ""));
    let bracket = if device.ends_with(']') { "]" } else { "" };
    format!("{address}{bracket}:{port}").parse().ok()
}

fn account(line: &str, at: Time, [unread, queued]: Queues) -> Sample {
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
    // In milliseconds, often with a fraction; the deviation follows behind a slash.
    let millis = |name: &str| {
        let value = text(name).and_then(|value| value.split('/').next()?.parse::<f64>().ok());
        Duration::from_nanos((value.unwrap_or(0.0).max(0.0) * 1e6) as u64)
    };
    let [peer_scale, scale] = text("wscale").and_then(scales).unwrap_or_default();
    let resent = text("retrans").and_then(|value| value.split('/').nth(1)?.parse().ok());
    let under_way = small("unacked")
        .saturating_add(first_of(text("retrans")))
        .saturating_sub(small("sacked").saturating_add(small("lost")));
    Sample {
        at,
        // Linux counts the SYN as a byte acknowledged.
        acked: Bytes::new(count("bytes_acked").saturating_sub(1)),
        received: Bytes::new(count("bytes_received")),
        delivered: count("delivered"),
        busy: Duration::from_millis(count("busy")),
        window_limited: Duration::from_millis(count("rwnd_limited")),
        buffer_limited: Duration::from_millis(count("sndbuf_limited")),
        congestion_window: small("cwnd"),
        // It is not printed while it is not set.
        slow_start_threshold: number("ssthresh").map_or(u32::MAX, |n| n as u32),
        under_way,
        not_sent: Bytes::new(count("notsent")),
        recovering: small("lost") > 0,
        model_based: words.first() == Some(&"bbr"),
        mss: Bytes::new(count("mss")),
        rtt: millis("rtt"),
        rtt_min: millis("minrtt"),
        pacing_limit: pacing_limit(&words),
        starved: words.contains(&"app_limited"),
        queued,
        // ss tells it with -m alone; where it is not known it is never full.
        send_buffer: Bytes::MAX,
        peer_window: number("snd_wnd").map(Bytes::new),
        peer_scale,
        scale,
        segments: count("data_segs_out"),
        resent: resent.unwrap_or(0),
        timeouts: count("total_rto"),
        receiver_rtt: millis("rcv_rtt"),
        window: number("rcv_wnd").map(Bytes::new),
        unread,
        out_of_order: count("rcv_ooopack"),
    }
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
