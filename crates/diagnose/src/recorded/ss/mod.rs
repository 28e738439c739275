//! Parses pasted output of `ss -ti` (iproute2): one reading or many, with or without timestamps, with `-n` or service
//! names, on one line (`-O`) or two, from `watch` or `ts`.

mod account;
mod address;
mod seconds;
mod stamp;
mod wrapped;

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;

use sweetspot_units::{Bytes, Duration, Time};

use super::{Recorded, Recording, RecordingError};
use crate::evidence::UNREAD;
use crate::live::Sample;
use crate::{Class, Evidence, Flow, Limits};
use account::{Account, account};
use address::end;
pub use stamp::iso as moment;

/// A connection while its readings are collected.
struct Collected {
    ends: [SocketAddr; 2],
    accounts: Vec<Account>,
}

/// The connections in the order of their first readings, and the latest one between each pair of ends.
#[derive(Default)]
struct Collection {
    all: Vec<Collected>,
    latest: HashMap<[SocketAddr; 2], usize>,
    /// The latest readings of connections that are not established yet.
    opening: BTreeMap<[SocketAddr; 2], Account>,
    /// The ends of the latest reading.
    last: Option<[SocketAddr; 2]>,
}

impl Collection {
    fn take(&mut self, heading: &Heading, line: &str, (at, stamps): (Time, u64)) {
        let mut account = account(line, heading.timer.as_deref(), at, heading.queues);
        account.stamps = stamps;
        if heading.is_opening {
            self.opening.insert(heading.ends, account);
        } else {
            self.opening.remove(&heading.ends);
            self.last = Some(heading.ends);
            self.add(heading.ends, account);
        }
    }

    /// Removes the latest reading if the text was cut off within it: ss prints the min RTT near the end of a line, and the kernel
    /// never forgets it. Returns whether it did.
    fn remove_cut_off(&mut self) -> bool {
        let Some(ends) = self.last else { return false };
        let Some(&latest) = self.latest.get(&ends) else { return false };
        let is_known = |c: &Collected| c.ends == ends && c.accounts.iter().any(|a| a.has_rtt_min);
        let accounts = &self.all[latest].accounts;
        let lacks_it = accounts.last().is_some_and(|account| !account.has_rtt_min);
        if !lacks_it || !self.all.iter().any(is_known) {
            return false;
        }
        self.all[latest].accounts.pop();
        self.all.retain(|collected| !collected.accounts.is_empty());
        true
    }

    /// Adds a reading. If counters decreased, it belongs to a new connection on the same ports.
    fn add(&mut self, ends: [SocketAddr; 2], account: Account) {
        let latest = self.latest.get(&ends).and_then(|index| self.all.get_mut(*index));
        let goes_on = |c: &&mut Collected| {
            c.accounts.last().is_none_or(|last| {
                let (last, now) = (&last.sample, &account.sample);
                now.acked >= last.acked
                    && now.received >= last.received
                    && now.segments >= last.segments
            })
        };
        match latest.filter(goes_on) {
            Some(known) => known.accounts.push(account),
            None => {
                self.latest.insert(ends, self.all.len());
                self.all.push(Collected { ends, accounts: vec![account] });
            }
        }
    }
}

/// A line with the addresses of a connection; its account may follow on the next line.
struct Heading {
    ends: [SocketAddr; 2],
    queues: [Bytes; 2],
    timer: Option<String>,
    /// Whether its state is SYN-SENT or SYN-RECV.
    is_opening: bool,
    /// Whether its state is FIN-WAIT-2 or TIME-WAIT, for which the kernel may keep no counters.
    is_closing: bool,
}

/// A text, read line by line.
#[derive(Default)]
struct Paste {
    collection: Collection,
    not_understood: Vec<String>,
    /// The latest time in the text.
    now: Option<Time>,
    /// Number of times so far.
    stamps: u64,
    /// The latest heading, while its account may follow.
    heading: Option<Heading>,
    /// Whether all connections with a heading on its own line are closing, if there are any.
    only_closing: Option<bool>,
    /// Whether ss printed the names of its columns.
    has_columns: bool,
}

impl Paste {
    fn take(&mut self, line: &str) {
        let (stamp, line) = stamp::strip(line);
        self.has_columns |= line.contains("Recv-Q") && line.contains("Send-Q");
        self.now = stamp.or(self.now);
        self.stamps += u64::from(stamp.is_some());
        let read_at = (self.now.unwrap_or(Time::ZERO), self.stamps);
        if is_account(line)
            && let Some(found) = self.heading.take()
        {
            self.collection.take(&found, line, read_at);
        } else if let Some(found) = connection(line) {
            if is_account(line) {
                // `ss -O` prints both on one line.
                self.collection.take(&found, line, read_at);
            } else {
                self.only_closing = Some(self.only_closing.unwrap_or(true) && found.is_closing);
                self.heading = Some(found);
            }
        } else if looks_like_connection(line) {
            self.heading = None;
            self.not_understood.push(line.trim().to_owned());
        }
    }

    /// Why the text has no reading of an open connection, unless a line was not understood.
    fn error_without_readings(&self) -> Option<RecordingError> {
        match self.only_closing {
            _ if !self.collection.opening.is_empty() => Some(RecordingError::Opening),
            Some(true) => Some(RecordingError::Closing),
            Some(false) => Some(RecordingError::NoCounters),
            None if !self.not_understood.is_empty() => None,
            None if self.has_columns => Some(RecordingError::NoConnection),
            None => Some(RecordingError::Alien),
        }
    }
}

pub fn read(text: &str) -> Result<Recorded, RecordingError> {
    let mut paste = Paste::default();
    wrapped::lines(text).for_each(|line| paste.take(&line));
    let retransmitted = |(ends, account): (&_, &Account)| (*ends, account.sample.retransmitted);
    let (unanswered, opening) =
        Flow::unanswered(paste.collection.opening.iter().map(retransmitted));
    let is_cut_off = paste.collection.remove_cut_off();
    if paste.collection.all.is_empty()
        && unanswered.is_empty()
        && let Some(error) = paste.error_without_readings()
    {
        return Err(error);
    }
    let Paste { collection: Collection { all: mut collected, .. }, not_understood, now, .. } =
        paste;
    let shows = |has: fn(&Account) -> bool| collected.iter().any(|c| c.accounts.iter().any(has));
    let shows_windows =
        [shows(|account| account.has_window), shows(|account| account.has_peer_window)];
    let has_time = now.is_some();
    let only_received = collected.iter().all(|c| c.accounts.last().is_some_and(Account::receives));
    let has_coarse_times = seconds::spread(collected.iter_mut().map(|c| &mut c.accounts[..]));
    let without_times = match has_time {
        true => 0,
        false => collected.iter().map(|c| c.accounts.len()).max().unwrap_or(0),
    };
    let all = collected.len();
    let (mut recordings, mut unread) = (Vec::new(), Vec::new());
    for each in collected {
        let reader = unread_flow(&each);
        match recording(each, has_time, shows_windows) {
            Some(recording) => recordings.push(recording),
            None => unread.extend(reader),
        }
    }
    let not_judged = all - recordings.len() - unread.len();
    let none = recordings.is_empty() && unanswered.is_empty() && unread.is_empty();
    if none && only_received && not_understood.is_empty() {
        return Err(RecordingError::OnlyReceived);
    }
    Ok(Recorded {
        recordings,
        not_understood,
        without_times,
        unanswered,
        unread,
        has_coarse_times,
        opening,
        not_judged,
        is_cut_off,
    })
}

/// The samples of a connection, with times that its readings lack; `None` if the readings do not show a limit over any time.
/// `shows`: whether this version of ss prints nonzero windows of this end, and of its peer.
fn recording(collected: Collected, has_time: bool, shows: [bool; 2]) -> Option<Recording> {
    let Collected { ends, mut accounts } = collected;
    keep_ordered(&mut accounts, has_time);
    let has_busy = accounts.iter().all(|account| account.has_busy);
    for account in &mut accounts {
        let [shows_own, shows_peer] = shows;
        if account.persists || (shows_peer && !account.has_peer_window) {
            account.sample.peer_window = Some(Bytes::ZERO);
        }
        if shows_own && !account.has_window {
            account.sample.window = Some(Bytes::ZERO);
        }
    }
    if let [only] = &accounts[..] {
        let waits = only.persists && only.sample.queued > Bytes::ZERO;
        if waits && only.since_ack > Duration::ZERO {
            return Some(shut_since(ends, only));
        }
        let is_silent = !only.persists
            && only.backoff >= MIN_UNANSWERED_TIMEOUTS
            && (only.sample.segments_in_flight > 0 || only.sample.queued > Bytes::ZERO);
        if is_silent && only.since_ack > Duration::ZERO {
            return Some(silent_since(ends, only));
        }
        // `busy` counts only while this end sends.
        let sends = only.sample.acked >= only.sample.received;
        let life = (has_busy && sends).then(|| life(ends, only.sample)).flatten();
        let idle = idle_since(ends, only);
        // An idle time since then outweighs a shorter time with data in flight.
        let is_idle = only.idle_for.is_some_and(|time| time > only.sample.busy);
        return if is_idle { idle.or(life) } else { life.or(idle) };
    }
    let (first, before) = (accounts[0].sample, shut_before(&accounts[0]));
    let (mut busy, mut shut, mut timeouts) = (before, before, 0);
    let mut samples = vec![Sample { at: first.at - before, ..first }];
    if before > Duration::ZERO {
        let (busy, window_limited) = (first.busy + before, first.window_limited + before);
        samples.push(Sample { busy, window_limited, ..first });
    }
    for pair in accounts.windows(2) {
        let (last, mut now) = (&pair[0].sample, pair[1].sample);
        let time = now.at.since(last.at);
        let waits = |sample: &Sample| sample.segments_in_flight > 0 || sample.queued > Bytes::ZERO;
        // If the kernel does not count busy time, the connection is busy while data is unacknowledged.
        if !has_busy && waits(last) && waits(&now) {
            busy += time;
        }
        // While the window is closed, nothing moves. The kernel adds this time only when the window opens.
        let is_shut = [last, &now].iter().all(|s| s.peer_window == Some(Bytes::ZERO) && waits(s));
        if is_shut && now.acked == last.acked {
            let counted = now.window_limited.saturating_sub(last.window_limited);
            shut += time.saturating_sub(counted);
            if has_busy {
                busy += time.saturating_sub(now.busy.saturating_sub(last.busy));
            }
        }
        if !pair[1].has_timeouts {
            // Each acknowledgement resets the backoff.
            let (before, backoff) = (pair[0].backoff, pair[1].backoff);
            timeouts += if backoff >= before { backoff - before } else { backoff };
            now.timeouts = timeouts;
        }
        now.busy += busy;
        now.window_limited += shut;
        samples.push(now);
    }
    Some(Recording::new(ends, samples))
}

/// Keeps the readings with a time: a paste cut off at its beginning lacks the first one. Without times, keeps only the last
/// reading, with totals over the connection's life.
fn keep_ordered(accounts: &mut Vec<Account>, has_time: bool) {
    if !has_time {
        accounts.drain(..accounts.len() - 1);
    }
    let has_own_time = |account: &Account| account.sample.at > Time::ZERO;
    if accounts.iter().any(has_own_time) {
        accounts.retain(has_own_time);
    }
}

/// The flow to a socket that only received, if much data lay unread at its last reading.
fn unread_flow(collected: &Collected) -> Option<Flow> {
    let last = collected.accounts.last().filter(|account| account.receives())?;
    let evidence = Evidence {
        unread: Some(last.unread()?),
        bytes: last.sample.received,
        is_sampled: true,
        unknown_because: Some(UNREAD),
        ..Evidence::default()
    };
    let [local, remote] = collected.ends;
    let limits = Limits::only(Class::Unknown, Duration::from_nanos(1));
    Some(Flow::new(remote, local, limits, &evidence))
}

/// The time before the first reading in which its window was closed, as nothing has been acknowledged since.
fn shut_before(first: &Account) -> Duration {
    let waits = first.persists && first.sample.queued > Bytes::ZERO;
    let is_known = first.sample.at.since(Time::ZERO) >= first.since_ack;
    if waits && is_known { first.since_ack } else { Duration::ZERO }
}

/// The time since the last acknowledgement of a connection that waits for its peer to open the window.
fn shut_since(ends: [SocketAddr; 2], only: &Account) -> Recording {
    let beginning = Sample { at: Time::ZERO, ..only.sample };
    let ended = Sample {
        at: Time::ZERO + only.since_ack,
        busy: beginning.busy + only.since_ack,
        window_limited: beginning.window_limited + only.since_ack,
        ..only.sample
    };
    Recording::new(ends, vec![beginning, ended])
}

/// Number of unanswered timeouts from which on the peer counts as silent.
const MIN_UNANSWERED_TIMEOUTS: u64 = 2;

/// A stalled connection since its last acknowledgement.
fn silent_since(ends: [SocketAddr; 2], only: &Account) -> Recording {
    let beginning = Sample { at: Time::ZERO, timeouts: 0, ..only.sample };
    let ended = Sample {
        at: Time::ZERO + only.since_ack,
        busy: beginning.busy + only.since_ack,
        timeouts: only.backoff,
        ..only.sample
    };
    Recording::new(ends, vec![beginning, ended])
}

/// The time since the last data, if it exceeds the RTO and nothing waits to be sent. Data may wait to be read.
fn idle_since(ends: [SocketAddr; 2], only: &Account) -> Option<Recording> {
    let waits = only.sample.segments_in_flight > 0 || only.sample.queued > Bytes::ZERO;
    let idle_for = only.idle_for.filter(|_| !waits)?;
    let [beginning, ended] =
        [Time::ZERO, Time::ZERO + idle_for].map(|at| Sample { at, ..only.sample });
    Some(Recording { totals: Some(only.sample), ..Recording::new(ends, vec![beginning, ended]) })
}

/// The totals of one reading as a recording of the connection's life: the time in which it had data in flight.
fn life(ends: [SocketAddr; 2], sample: Sample) -> Option<Recording> {
    // The last rate sample shows nothing of the whole life, but unsent bytes show that the program had more.
    let starved = sample.starved && sample.not_sent < sample.mss;
    let sample = Sample { starved, ..sample };
    let beginning = Sample {
        at: Time::ZERO,
        acked: Bytes::ZERO,
        received: Bytes::ZERO,
        delivered: 0,
        busy: Duration::ZERO,
        window_limited: Duration::ZERO,
        buffer_limited: Duration::ZERO,
        segments: 0,
        retransmitted: 0,
        timeouts: 0,
        out_of_order: 0,
        ..sample
    };
    let ended = Sample { at: Time::ZERO + sample.busy, ..sample };
    let samples = vec![beginning, ended];
    let recording = Recording { is_one_reading: true, ..Recording::new(ends, samples) };
    // Before the first acknowledgement of data, the totals show neither a rate nor a limit.
    let shows = sample.busy > Duration::ZERO && sample.acked > Bytes::ZERO;
    shows.then_some(recording)
}

/// Whether a line has words with numbers that every version of ss prints.
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

/// The states of connections that are not established yet.
const OPENING: [&str; 2] = ["SYN-SENT", "SYN-RECV"];
/// The states in which the kernel may have freed the counters.
const CLOSING: [&str; 2] = ["FIN-WAIT-2", "TIME-WAIT"];

/// Whether ss printed this about a connection, understood or not.
fn looks_like_connection(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let state = words.find(|word| *word != "tcp");
    state.is_some_and(|word| STATES.contains(&word)) && words.count() >= 2
}

/// The two addresses of a line, the two numbers before them, and the timer after them.
fn connection(line: &str) -> Option<Heading> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let is_pair = |pair: &[&str]| end(pair[0]).is_some() && end(pair[1]).is_some();
    let first = words.windows(2).position(is_pair)?;
    let ends = [end(words[first])?, end(words[first + 1])?];
    let queue = |back: usize| {
        let word = first.checked_sub(back).and_then(|at| words.get(at));
        word.and_then(|word| word.parse().ok()).map(Bytes::new)
    };
    let timer = words[first + 2..].iter().find_map(|word| word.strip_prefix("timer:"));
    let timer = timer.map(str::to_owned);
    let is_in = |states: [&str; 2]| words[..first].iter().any(|word| states.contains(word));
    let (is_opening, is_closing) = (is_in(OPENING), is_in(CLOSING));
    Some(Heading { ends, queues: [queue(2)?, queue(1)?], timer, is_opening, is_closing })
}
