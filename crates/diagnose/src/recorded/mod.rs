//! Kernel statistics of connections from files: the measurements of
//! M-Lab's NDT7, recordings of `top`, which are of the same form, M-Lab's tcp-info archives, output of `ss -ti`, and results
//! of iperf3, through the rules for live connections.

mod iperf3;
mod ndt7;
mod ss;
mod tcp_info;

use std::collections::HashSet;
use std::net::SocketAddr;

pub use self::ndt7::written;

use sweetspot_units::Time;

use crate::live::{Live, Sample, Side};
use crate::report::{DiagnosisReport, rank};
use crate::{Evidence, Flow};

/// A connection and the kernel's statistics of it over time.
#[derive(Debug, Clone)]
pub struct Recording {
    /// The end that was sampled, then its peer.
    pub ends: [SocketAddr; 2],
    /// The samples, oldest first.
    pub samples: Vec<Sample>,
}

impl Recording {
    /// Its verdict and evidence.
    pub fn flow(&self) -> Flow {
        self.told().0
    }

    /// The flow, and whether the sampled end sends or receives.
    fn told(&self) -> (Flow, Side) {
        let [local, remote] = self.ends;
        let mut live = Live::between(local.ip(), remote.ip());
        let mut last = Time::ZERO;
        for sample in &self.samples {
            last = last.max(sample.at);
            live.handle(Sample { at: last, ..*sample });
        }
        let evidence: Evidence = live.evidence();
        let (source, destination) = match live.direction() {
            Side::Sender => (local, remote),
            Side::Receiver => (remote, local),
        };
        (Flow::new(source, destination, *live.limits(), &evidence), live.direction())
    }
}

/// The content of a file.
#[derive(Debug, Clone, Default)]
pub struct Recorded {
    /// Its connections.
    pub recordings: Vec<Recording>,
    /// Lines about connections that could not be read.
    pub not_understood: Vec<String>,
}

/// The flows of all `recordings`. If both ends of a connection were sampled, the sender's verdict counts: it knows more.
pub fn flows(recordings: &[Recording]) -> Vec<Flow> {
    let told: Vec<(Flow, Side)> = recordings.iter().map(Recording::told).collect();
    let sent: HashSet<[SocketAddr; 2]> = told
        .iter()
        .filter(|(_, side)| *side == Side::Sender)
        .map(|(flow, _)| [flow.source, flow.destination])
        .collect();
    told.into_iter()
        .filter(|(flow, side)| {
            *side == Side::Sender || !sent.contains(&[flow.source, flow.destination])
        })
        .map(|(flow, _)| flow)
        .collect()
}

/// Reads the recordings in `text`; the error says what it is not.
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
/// // It had nothing under way for nine tenths of the second.
/// assert_eq!(recordings[0].flow().verdict.class.name(), "application");
/// ```
pub fn read(text: &str) -> Result<Recorded, String> {
    let recorded = match text.trim_start().chars().next() {
        None => return Err("it is empty".to_owned()),
        Some('{' | '[') if iperf3::is_result(text) => iperf3::read(text)?,
        Some('{' | '[') => Recorded { recordings: ndt7::read(text)?, not_understood: vec![] },
        Some(_) => ss::read(text)?,
    };
    if recorded.recordings.iter().all(|recording| recording.samples.len() < 2) {
        return Err(match recorded.not_understood.first() {
            Some(line) => format!("no connection in it was understood; the first is: {line}"),
            None => "expected two readings, or one of a kernel that counts busy time (Linux 4.9): \
                     log with: while sleep 0.1; do date +%s.%N; ss -tin; done"
                .to_owned(),
        });
    }
    Ok(recorded)
}

/// Number of bytes from which [`is_text`] recognises a text.
pub const HEAD_BYTES: usize = 64;

/// Whether a file that begins with `head` holds text rather than a capture: every capture has a zero byte or one above 126 in
/// its header.
pub fn is_text(head: &[u8]) -> bool {
    let is_printed = |b: &u8| matches!(b, b'\t' | b'\n' | b'\r' | b' '..=b'~');
    !head.is_empty() && head.iter().take(HEAD_BYTES).all(is_printed)
}

/// The report on the recordings in `text`, with the `most` flows that carried most; the error says what it is not.
pub fn report(text: &str, most: usize) -> Result<DiagnosisReport, String> {
    let recorded = read(text)?;
    let mut flows: Vec<_> =
        flows(&recorded.recordings).into_iter().map(|flow| (flow.bytes, flow)).collect();
    rank(&mut flows);
    let flows_left_out = flows.len().saturating_sub(most) as u64;
    flows.truncate(most);
    Ok(DiagnosisReport {
        flows: flows.into_iter().map(|(_, flow)| flow).collect(),
        flows_left_out,
        packets: None,
        tcp_segments: None,
        remarks: remarks(&recorded.not_understood),
    })
}

/// Which lines were left out, if any.
fn remarks(not_understood: &[String]) -> Vec<String> {
    let Some(first) = not_understood.first() else { return Vec::new() };
    let count = not_understood.len();
    let lines = if count == 1 { "line" } else { "lines" };
    vec![format!("{count} {lines} about connections not understood; the first: {first}")]
}
