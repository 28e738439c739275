//! Applies the rules for live connections to kernel statistics from files: M-Lab's NDT7 measurements, recordings by `top` in the
//! same format, M-Lab's tcp-info archives, output of `ss -ti`, and iperf3 results.

mod error;
mod iperf3;
mod ndt7;
mod ss;
mod tcp_info;

use std::collections::HashSet;
use std::net::SocketAddr;

pub use self::error::RecordingError;
pub use self::ndt7::written;

use sweetspot_units::{Bytes, Duration, Time};

use crate::evidence::{BUFFER_MISSING, BufferThen, ONE_INTERVAL, PROGRAM_OR_BUFFER};
use crate::limits::FREQUENT_SHARE;
use crate::live::{Live, Period, Sample, Side};
use crate::report::{DiagnosisReport, not_judged, rank, still_opening};
use crate::{Class, Flow, name_shared_paths};

/// A connection, with the kernel's statistics over time.
#[derive(Debug, Clone)]
pub struct Recording {
    /// The end that was sampled, then its peer.
    pub ends: [SocketAddr; 2],
    /// The samples, oldest first.
    pub samples: Vec<Sample>,
    /// `samples` are one with all counters at zero, and one with the totals of one reading. The time between them is the time
    /// with data in flight.
    pub is_one_reading: bool,
    /// The counters of the only reading, if `samples` are of the idle time since data last moved.
    pub totals: Option<Sample>,
}

impl Recording {
    /// Samples over time.
    fn new(ends: [SocketAddr; 2], samples: Vec<Sample>) -> Recording {
        Recording { ends, samples, is_one_reading: false, totals: None }
    }

    /// The flow with its verdict and evidence.
    pub fn flow(&self) -> Flow {
        self.judge().0
    }

    /// Whether less than half of the congestion window was in flight on average, so that it was not the limit.
    fn has_room(&self) -> bool {
        let sum = |count: fn(&Sample) -> u32| {
            self.samples.iter().skip(1).map(count).map(u64::from).sum::<u64>()
        };
        2 * sum(|sample| sample.segments_in_flight) < sum(|sample| sample.congestion_window)
    }

    /// Whether the send buffer, which the samples lack, may have stopped the program: data waited nearly all the time.
    fn may_lack_buffer(&self) -> bool {
        let (Some(first), Some(last)) = (self.samples.first(), self.samples.last()) else {
            return false;
        };
        let is_missing = self.samples.iter().all(|sample| sample.send_buffer == Bytes::MAX);
        let busy = last.busy.saturating_sub(first.busy);
        let rest = last.at.since(first.at).saturating_sub(busy);
        let empty = self.samples.iter().filter(|sample| sample.queued == Bytes::ZERO).count();
        is_missing
            && rest <= last.at.since(first.at).scaled(FREQUENT_SHARE)
            && empty as f64 <= FREQUENT_SHARE * self.samples.len() as f64
    }

    /// The send buffer at the only reading. Data that waits behind the flight shows that the buffer holds enough.
    fn buffer_then(&self) -> BufferThen {
        match self.samples.last() {
            Some(sample) if sample.not_sent >= sample.mss => BufferThen::NotFull,
            Some(sample) if sample.send_buffer == Bytes::MAX => BufferThen::Missing,
            Some(sample) if sample.stops_polling_writer() => BufferThen::Full,
            _ => BufferThen::NotFull,
        }
    }

    /// The flow, and whether the sampled end sends or receives.
    fn judge(&self) -> (Flow, Side) {
        let [local, remote] = self.ends;
        let mut live = match self.is_one_reading {
            true => Live::of_one_reading(local.ip(), remote.ip()),
            false => Live::between(local.ip(), remote.ip()),
        };
        let mut last = Time::ZERO;
        for sample in &self.samples {
            last = last.max(sample.at);
            live.handle(Sample { at: last, ..bounded(sample) });
        }
        let period = live.period();
        let Period { direction, mut limits, mut evidence, .. } = period;
        evidence.is_one_reading = self.is_one_reading;
        if self.is_one_reading {
            evidence.unknown_because = Some(ONE_INTERVAL);
            evidence.held_by_peer = limits.share(Class::ReceiverWindow) >= FREQUENT_SHARE;
            // The kernel timed the limits over the whole life, but the flight is that at its end.
            evidence.flight = None;
            evidence.buffer_then = self.buffer_then();
        }
        let sends = direction == Side::Sender;
        // The last rate sample says whether the program had more at that moment, not while the buffer was full.
        let stops_program = limits.share(Class::SenderWindow) >= FREQUENT_SHARE;
        if self.is_one_reading && stops_program && limits.time(Class::Application) > Duration::ZERO
        {
            limits.reassign_to_unknown(Class::Application);
            evidence.unknown_because = Some(PROGRAM_OR_BUFFER);
        }
        if limits.time(Class::Application) > Duration::ZERO && sends && self.may_lack_buffer() {
            limits.reassign_to_unknown(Class::Application);
            evidence.unknown_because = Some(BUFFER_MISSING);
        }
        if let [_, sample] = &self.samples[..]
            && sends
            && limits.time(Class::Opportunity) > sample.rtt * LONGEST_START
        {
            limits.reassign_to_unknown(Class::Opportunity);
            evidence.unknown_because = Some(ONE_INTERVAL);
        }
        let by_window = matches!(limits.dominant(), Class::Opportunity | Class::Transport);
        if sends && by_window && self.has_room() {
            limits.reassign_to_unknown(Class::Opportunity);
            limits.reassign_to_unknown(Class::Transport);
            evidence.unknown_because = Some(WINDOW_HAD_ROOM);
        }
        let (source, destination) = match direction {
            Side::Sender => (local, remote),
            Side::Receiver => (remote, local),
        };
        let flow = Flow::new(source, destination, limits, &evidence);
        let mut flow = flow.with_deliveries(live.deliveries());
        flow.span = Some(period.span()).filter(|_| !self.is_one_reading);
        if let Some(totals) = self.totals.as_ref().map(bounded).filter(|_| sends) {
            flow.take_totals(&totals);
        }
        (flow, direction)
    }
}

/// Slow start cannot last this many round trips, because the window doubles in each.
const LONGEST_START: u64 = 64;
const WINDOW_HAD_ROOM: &str =
    "the congestion window had room, and these counters do not show what else limited the sender";

/// Maximum number of bytes of a connection. More is corrupt data, and would overflow sums.
const MAX_BYTES: Bytes = Bytes::new(1 << 56);
/// Maximum segment size, with offload. More is corrupt data.
const MAX_SEGMENT: Bytes = Bytes::new(1 << 20);
/// Maximum time, in microseconds: 31 years.
const MAX_MICROS: u64 = 1_000_000_000_000_000;

/// A number of microseconds from a file.
fn micros(number: u64) -> Duration {
    Duration::from_micros(number.min(MAX_MICROS))
}

/// `sample` with counters bounded so that no sum overflows.
fn bounded(sample: &Sample) -> Sample {
    Sample {
        acked: sample.acked.min(MAX_BYTES),
        received: sample.received.min(MAX_BYTES),
        delivered: sample.delivered.min(u32::MAX.into()),
        outstanding: sample.outstanding.map(|bytes| bytes.min(MAX_BYTES)),
        not_sent: sample.not_sent.min(MAX_BYTES),
        mss: sample.mss.min(MAX_SEGMENT),
        queued: sample.queued.min(MAX_BYTES),
        in_device: sample.in_device.min(MAX_BYTES),
        peer_window: sample.peer_window.map(|window| window.min(MAX_BYTES)),
        segments: sample.segments.min(MAX_BYTES.get()),
        retransmitted: sample.retransmitted.min(MAX_BYTES.get()),
        timeouts: sample.timeouts.min(u32::MAX.into()),
        window: sample.window.map(|window| window.min(MAX_BYTES)),
        unread: sample.unread.min(MAX_BYTES),
        ..*sample
    }
}

/// The content of a file.
#[derive(Debug, Clone, Default)]
pub struct Recorded {
    /// The connections in the file.
    pub recordings: Vec<Recording>,
    /// Lines about connections that could not be parsed.
    pub not_understood: Vec<String>,
    /// Readings of a connection, if they have no times: only the last of them counts.
    pub without_times: usize,
    /// Connections with repeated, unanswered SYNs.
    pub unanswered: Vec<Flow>,
    /// Connections that only received, with much unread data in their only reading.
    pub unread: Vec<Flow>,
    /// Several readings had the same time in whole seconds.
    pub has_coarse_times: bool,
    /// Connections in the state SYN-SENT or SYN-RECV that may still open.
    pub opening: Vec<[SocketAddr; 2]>,
    /// Number of connections without a verdict, because their readings show no limit.
    pub not_judged: usize,
    /// The text ended within its last reading, which does not count.
    pub is_cut_off: bool,
}

/// The flows of all `recordings`. If both ends of a connection were sampled, only the sender's flow is kept, because a sender
/// knows more. If no data moved, either end's will do.
pub fn flows(recordings: &[Recording]) -> Vec<Flow> {
    let judge: Vec<(Flow, Side)> = recordings.iter().map(Recording::judge).collect();
    let sent: HashSet<[SocketAddr; 2]> = judge
        .iter()
        .filter(|(_, side)| *side == Side::Sender)
        .map(|(flow, _)| [flow.source, flow.destination])
        .collect();
    let known = |(flow, side): &(Flow, Side)| {
        let Flow { source, destination, bytes, .. } = *flow;
        let is_told_by_peer =
            bytes == 0 && destination < source && sent.contains(&[destination, source]);
        match side {
            Side::Sender => !is_told_by_peer,
            Side::Receiver => !sent.contains(&[source, destination]),
        }
    };
    let mut flows: Vec<Flow> = judge.into_iter().filter(known).map(|(flow, _)| flow).collect();
    name_shared_paths(&mut flows);
    flows
}

/// Reads the recordings in `text`.
///
/// ```
/// let log = "1700000000.0\n\
///     ESTAB 0 0 192.0.2.1:443 192.0.2.2:5000\n\
///     \t cubic wscale:7,7 rtt:40/2 mss:1448 cwnd:10 bytes_acked:1 minrtt:40\n\
///     1700000001.0\n\
///     ESTAB 0 0 192.0.2.1:443 192.0.2.2:5000\n\
///     \t cubic wscale:7,7 rtt:40/2 mss:1448 cwnd:10 bytes_acked:100001 busy:100ms minrtt:40\n";
/// let recordings = sweetspot_diagnose::recorded::read(log).unwrap().recordings;
/// assert_eq!(recordings[0].samples.len(), 2);
/// // It had nothing in flight for nine tenths of the second.
/// assert_eq!(recordings[0].flow().verdict.class.name(), "application");
/// ```
pub fn read(text: &str) -> Result<Recorded, RecordingError> {
    let document = text.find("\n{").map_or(text, |at| &text[at + 1..]);
    let recorded = match text.trim_start().chars().next() {
        // iperf3 may print warnings before its result.
        Some('a'..='z') if iperf3::is_result(document) => iperf3::read(document)?,
        Some('[') if text.contains("[ ID]") => {
            return Err(RecordingError::Iperf3Text);
        }
        None => return Err(RecordingError::Empty),
        Some('{' | '[') if iperf3::is_result(text) => iperf3::read(text)?,
        Some('{' | '[') => Recorded { recordings: ndt7::read(text)?, ..Recorded::default() },
        Some(_) => ss::read(text)?,
    };
    if recorded.recordings.iter().all(|recording| recording.samples.len() < 2)
        && recorded.unanswered.is_empty()
        && recorded.unread.is_empty()
    {
        return Err(match recorded.not_understood.first() {
            Some(line) => RecordingError::NotUnderstood(line.clone()),
            None => RecordingError::OneReading,
        });
    }
    Ok(recorded)
}

/// Number of bytes that [`is_text`] needs.
pub const HEAD_BYTES: usize = 64;

/// Whether a file that begins with `head` is text, not a capture: the header of every capture has a zero byte or a byte above
/// 126.
pub fn is_text(head: &[u8]) -> bool {
    let is_printed = |b: &u8| matches!(b, b'\t' | b'\n' | b'\r' | b' '..=b'~');
    !head.is_empty() && head.iter().take(HEAD_BYTES).all(is_printed)
}

/// The report on the recordings in `text`, with the `max` flows with the most payload.
pub fn report(text: &str, max: usize) -> Result<DiagnosisReport, RecordingError> {
    let recorded = read(text)?;
    let others = recorded.unanswered.into_iter().chain(recorded.unread);
    let judged = flows(&recorded.recordings).into_iter().chain(others);
    let mut flows: Vec<_> = judged.map(|flow| (flow.bytes, flow)).collect();
    rank(&mut flows);
    let mut remarks = remarks(&recorded.not_understood);
    remarks.extend(still_opening(&recorded.opening));
    let why = "these readings show no limit; log several with date +%s.%N";
    remarks.extend(not_judged(recorded.not_judged, why));
    if recorded.has_coarse_times {
        let spread =
            "several readings have the same second as their time, and count as evenly spaced in it";
        remarks.push(format!("{spread}; date +%s.%N gives finer times"));
    }
    if recorded.is_cut_off {
        remarks.push("the last reading was cut off, and left out".to_owned());
    }
    if recorded.without_times > 1 {
        remarks.push(format!(
            "{} readings without times: only the last is used; put date +%s.%N before each",
            recorded.without_times
        ));
    }
    let is_named = |end: &SocketAddr| end.port() == 0 && !end.ip().is_unspecified();
    if flows.iter().any(|(_, flow)| is_named(&flow.source) || is_named(&flow.destination)) {
        remarks
            .push("port 0 stands for a service whose number is not known here (ss -n)".to_owned());
    }
    let flows_left_out = flows.len().saturating_sub(max) as u64;
    flows.truncate(max);
    Ok(DiagnosisReport {
        flows: flows.into_iter().map(|(_, flow)| flow).collect(),
        flows_left_out,
        packets: None,
        tcp_segments: None,
        remarks,
    })
}

/// A remark on the lines that could not be parsed, if any.
fn remarks(not_understood: &[String]) -> Vec<String> {
    let Some(first) = not_understood.first() else { return Vec::new() };
    let count = not_understood.len();
    let lines = if count == 1 { "line" } else { "lines" };
    vec![format!("{count} {lines} about connections not understood; the first: {first}")]
}
