//! Output of `ss -ti` (iproute2) as people paste it: once or again and again, with the time or without, with `-n` or names of
//! services, on one line (`-O`) or two, from `watch`, behind `ts`.

mod account;
mod stamp;

use std::net::SocketAddr;

use sweetspot_units::{Bytes, Duration, Time};

use super::{Recorded, Recording};
use crate::live::Sample;
use account::{Account, account};
use stamp::Stamp;
pub use stamp::iso as moment;

/// A connection while its readings are collected.
struct Collected {
    ends: [SocketAddr; 2],
    accounts: Vec<Account>,
}

/// A line with the addresses of a connection; its account may follow on the next line.
struct Heading<'a> {
    ends: [SocketAddr; 2],
    queues: [Bytes; 2],
    timer: Option<&'a str>,
}

pub fn read(text: &str) -> Result<Recorded, String> {
    let mut collected: Vec<Collected> = Vec::new();
    let mut not_understood = Vec::new();
    let (mut now, mut heading) = (None, None);
    for line in text.lines() {
        let (stamp, line) = stamp::strip(line);
        if let Stamp::At(time) = stamp {
            now = Some(time);
        }
        if is_account(line) && heading.is_some() {
            let Some(Heading { ends, queues, timer }) = heading.take() else { continue };
            add(&mut collected, ends, account(line, timer, now.unwrap_or(Time::ZERO), queues));
        } else if let Some(found) = connection(line) {
            if is_account(line) {
                // `ss -O` has all of it on one line.
                let at = now.unwrap_or(Time::ZERO);
                add(&mut collected, found.ends, account(line, found.timer, at, found.queues));
            } else {
                heading = Some(found);
            }
        } else if looks_like_connection(line) {
            heading = None;
            not_understood.push(line.trim().to_owned());
        }
    }
    if collected.is_empty() && not_understood.is_empty() {
        let what = "expected a capture, the output of ss -ti, NDT7's JSON or iperf3's";
        return Err(format!("{what}; log with: while sleep 0.1; do date +%s.%N; ss -tin; done"));
    }
    let shows_windows = |c: &Collected| c.accounts.iter().any(|account| account.has_peer_window);
    let shows_windows = collected.iter().any(shows_windows);
    let has_time = now.is_some();
    let recordings = collected.into_iter().filter_map(|c| recording(c, has_time, shows_windows));
    Ok(Recorded { recordings: recordings.collect(), not_understood })
}

/// Adds a reading. Counters that went back belong to a new connection on the same ports.
fn add(collected: &mut Vec<Collected>, ends: [SocketAddr; 2], account: Account) {
    let goes_on = |c: &&mut Collected| {
        c.ends == ends
            && c.accounts.last().is_none_or(|last| {
                let (last, now) = (&last.sample, &account.sample);
                now.acked >= last.acked
                    && now.received >= last.received
                    && now.segments >= last.segments
            })
    };
    match collected.iter_mut().rfind(goes_on) {
        Some(known) => known.accounts.push(account),
        None => collected.push(Collected { ends, accounts: vec![account] }),
    }
}

/// The samples of a connection, with the times that its readings leave open; `None` if they say nothing of any time.
fn recording(collected: Collected, has_time: bool, shows_windows: bool) -> Option<Recording> {
    let Collected { ends, mut accounts } = collected;
    if !has_time {
        // Without a time the last reading has the most: totals over the connection's life.
        accounts.drain(..accounts.len() - 1);
    }
    let has_busy = accounts.iter().all(|account| account.has_busy);
    for account in &mut accounts {
        let leaves_out_zero = shows_windows && !account.has_peer_window;
        if account.persists || leaves_out_zero {
            account.sample.peer_window = Some(Bytes::ZERO);
        }
    }
    if let [only] = &accounts[..] {
        let waits = only.persists && only.sample.queued > Bytes::ZERO;
        if waits && only.since_ack > Duration::ZERO {
            return Some(shut_since(ends, only));
        }
        return has_busy.then(|| life(ends, only.sample)).flatten();
    }
    let (mut busy, mut shut) = (Duration::ZERO, Duration::ZERO);
    let mut samples = vec![accounts[0].sample];
    for pair in accounts.windows(2) {
        let (last, mut now) = (&pair[0].sample, pair[1].sample);
        let time = now.at.since(last.at);
        let waits = |sample: &Sample| sample.under_way > 0 || sample.queued > Bytes::ZERO;
        // A kernel that does not count the time is busy while something is unacknowledged.
        if !has_busy && waits(last) && waits(&now) {
            busy += time;
        }
        // Nothing moves behind a window that is closed: the kernel counts that only when it opens.
        let is_shut = [last, &now].iter().all(|s| s.peer_window == Some(Bytes::ZERO) && waits(s));
        if is_shut && now.acked == last.acked {
            let counted = now.window_limited.saturating_sub(last.window_limited);
            shut += time.saturating_sub(counted);
            if has_busy {
                busy += time.saturating_sub(now.busy.saturating_sub(last.busy));
            }
        }
        now.busy += busy;
        now.window_limited += shut;
        samples.push(now);
    }
    Some(Recording { ends, samples })
}

/// The time since the last acknowledgement of a connection that waits for its peer to open the window.
fn shut_since(ends: [SocketAddr; 2], only: &Account) -> Recording {
    let begun = Sample { at: Time::ZERO, ..only.sample };
    let ended = Sample {
        at: Time::ZERO + only.since_ack,
        busy: begun.busy + only.since_ack,
        window_limited: begun.window_limited + only.since_ack,
        ..only.sample
    };
    Recording { ends, samples: vec![begun, ended] }
}

/// The totals of one reading as a recording of the connection's life: the time in which it had data under way.
fn life(ends: [SocketAddr; 2], sample: Sample) -> Option<Recording> {
    let begun = Sample {
        at: Time::ZERO,
        acked: Bytes::ZERO,
        received: Bytes::ZERO,
        delivered: 0,
        busy: Duration::ZERO,
        window_limited: Duration::ZERO,
        buffer_limited: Duration::ZERO,
        segments: 0,
        resent: 0,
        timeouts: 0,
        out_of_order: 0,
        ..sample
    };
    let ended = Sample { at: Time::ZERO + sample.busy, ..sample };
    (sample.busy > Duration::ZERO).then(|| Recording { ends, samples: vec![begun, ended] })
}

/// Whether a line has words of an account: names with numbers that every version of ss prints.
fn is_account(line: &str) -> bool {
    line.split_whitespace().any(|word| {
        ["rto:", "cwnd:", "rtt:", "mss:", "bytes_acked:"].iter().any(|name| {
            word.strip_prefix(name)
                .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        })
    })
}

const STATES: [&str; 12] = [
    "ESTAB",
    "ESTABLISHED",
    "SYN-SENT",
    "SYN-RECV",
    "FIN-WAIT-1",
    "FIN-WAIT-2",
    "TIME-WAIT",
    "CLOSE-WAIT",
    "LAST-ACK",
    "CLOSING",
    "UNCONN",
    "CLOSED",
];

/// Whether ss printed this about a connection, understood or not.
fn looks_like_connection(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let state = words.find(|word| *word != "tcp");
    state.is_some_and(|word| STATES.contains(&word)) && words.count() >= 2
}

/// The two addresses of a line, the two numbers before them, and the timer behind.
fn connection(line: &str) -> Option<Heading<'_>> {
    if line.starts_with([' ', '\t']) {
        return None;
    }
    let words: Vec<&str> = line.split_whitespace().collect();
    let is_pair = |pair: &[&str]| end(pair[0]).is_some() && end(pair[1]).is_some();
    let first = words.windows(2).position(is_pair)?;
    let ends = [end(words[first])?, end(words[first + 1])?];
    let queue = |back: usize| {
        let word = first.checked_sub(back).and_then(|at| words.get(at));
        word.and_then(|word| word.parse().ok()).map(Bytes::new)
    };
    let timer = words[first + 2..].iter().find_map(|word| word.strip_prefix("timer:"));
    Some(Heading { ends, queues: [queue(2)?, queue(1)?], timer })
}

/// Ports that ss prints by name without `-n`, from IANA's registry as /etc/services has it.
const SERVICES: [(&str, u16); 34] = [
    ("ftp-data", 20),
    ("ftp", 21),
    ("ssh", 22),
    ("telnet", 23),
    ("smtp", 25),
    ("domain", 53),
    ("http", 80),
    ("www", 80),
    ("kerberos", 88),
    ("pop3", 110),
    ("sunrpc", 111),
    ("imap2", 143),
    ("imap", 143),
    ("bgp", 179),
    ("ldap", 389),
    ("https", 443),
    ("microsoft-ds", 445),
    ("submission", 587),
    ("ldaps", 636),
    ("rsync", 873),
    ("imaps", 993),
    ("pop3s", 995),
    ("ms-sql-s", 1433),
    ("nfs", 2049),
    ("iscsi-target", 3260),
    ("mysql", 3306),
    ("ms-wbt-server", 3389),
    ("postgresql", 5432),
    ("amqp", 5672),
    ("x11", 6000),
    ("redis", 6379),
    ("http-alt", 8080),
    ("https-alt", 8443),
    ("mongodb", 27017),
];

/// An address as ss writes it, perhaps with the name of a device behind a percent sign, and of a service.
fn end(word: &str) -> Option<SocketAddr> {
    let (address, port) = word.rsplit_once(':')?;
    let (address, device) = address.split_once('%').unwrap_or((address, ""));
    let bracket = if device.ends_with(']') { "]" } else { "" };
    let named = SERVICES.iter().find(|(name, _)| *name == port).map(|(_, port)| port.to_string());
    let port = named.as_deref().unwrap_or(port);
    let address = format!("{address}{bracket}");
    // Older versions print IPv6 addresses without brackets.
    let bare = || format!("[{address}]:{port}").parse().ok();
    format!("{address}:{port}").parse().ok().or_else(bare)
}
