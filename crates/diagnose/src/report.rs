//! The report on a whole capture, or on a host's connections, in constant memory.

use std::io::Read;
use std::net::SocketAddr;

use serde::Serialize;
use sweetspot_trace::file::{CaptureError, Pieces, Record};
use sweetspot_trace::flow::{Connection, SenderReport, Table};
use sweetspot_trace::packet::{Dissector, PacketCounts, Segment};

use crate::capture::flows;
use crate::{Flow, counted, name_shared_paths};

/// The remark on a capture without TCP.
pub const NO_TCP: &str = "it has no TCP packets; capture with the filter \"tcp\"";

/// The remark on connections with a single unanswered SYN, between these ends: the answer may still come.
pub fn still_opening(opening: &[[SocketAddr; 2]]) -> Option<String> {
    let [from, to] = opening.first()?;
    let first = if opening.len() > 1 { ", the first" } else { "" };
    let why = format!(
        "still opening{first} from {from} to {to} (1 SYN so far); diagnose again in a few seconds"
    );
    not_judged(opening.len(), &why)
}

/// The remark on `count` connections without a verdict, if there are any.
pub fn not_judged(count: usize, why: &str) -> Option<String> {
    let connections = counted(count as u64, "connection", "connections");
    (count > 0).then(|| format!("{connections} not judged: {why}"))
}

/// Size of the read buffer: large enough for few system calls.
const READ_BUFFER_BYTES: usize = 2 << 20;

/// The diagnosis of a capture or of live connections.
#[derive(Debug, Serialize)]
pub struct DiagnosisReport {
    /// The flows with the most payload, the largest first.
    pub flows: Vec<Flow>,
    /// Number of smaller flows left out.
    pub flows_left_out: u64,
    /// Number of packets in the capture.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packets: Option<u64>,
    /// Number of TCP segments among them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tcp_segments: Option<u64>,
    /// Remarks on the report as a whole.
    pub remarks: Vec<String>,
}

/// Why reading a capture stopped before its end.
#[derive(Debug)]
pub enum PassFailure {
    /// Its bytes could not be read.
    Read(std::io::Error),
    /// The bytes are not a capture, or the capture is damaged at this point.
    Capture(CaptureError),
}

impl core::fmt::Display for PassFailure {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            PassFailure::Read(error) => write!(f, "cannot be read: {error}"),
            PassFailure::Capture(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for PassFailure {}

/// Reads the uncompressed capture `file`, pcap or pcapng, and keeps the `max` flows with the most payload. If the capture is
/// truncated or cannot be read to its end, the report covers what precedes.
///
/// # Errors
/// If the bytes cannot be read, or the capture ends before its first packet.
pub fn read(file: &mut dyn Read, max: usize) -> Result<DiagnosisReport, PassFailure> {
    let mut reading = Reading::new(max);
    match reading.all(file) {
        Ok(()) if reading.packets() == 0 => Err(PassFailure::Capture(CaptureError::NoPacket)),
        Ok(()) => Ok(reading.report(None)),
        Err(failure) if reading.packets() > 0 => Ok(reading.report(Some(failure))),
        Err(failure) => Err(failure),
    }
}

/// A capture that is being read.
#[derive(Debug, Default)]
pub struct Reading {
    dissector: Dissector,
    table: Table,
    max: usize,
    /// The flows kept, with the payload that ranks them.
    kept: Vec<(u64, Flow)>,
    left_out: u64,
}

/// Passes each TCP segment of the capture `file` to `take`.
///
/// # Errors
/// If the bytes cannot be read, or stop being a valid capture.
pub fn segments(
    file: &mut dyn Read,
    dissector: &mut Dissector,
    take: &mut dyn FnMut(&Segment),
) -> Result<(), PassFailure> {
    let mut pieces = Pieces::default();
    let mut buffer = vec![0; READ_BUFFER_BYTES];
    loop {
        let n = match file.read(&mut buffer) {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            other => other.map_err(PassFailure::Read)?,
        };
        if n == 0 {
            return pieces.end().map_err(PassFailure::Capture);
        }
        let mut each = |record: &Record<'_>| {
            if let Ok(segment) = dissector.dissect(record) {
                take(&segment);
            }
        };
        pieces.take(&buffer[..n], &mut each).map_err(PassFailure::Capture)?;
    }
}

impl Reading {
    /// A reading that keeps the `max` flows with the most payload.
    pub fn new(max: usize) -> Reading {
        Reading { max, ..Reading::default() }
    }

    /// Takes a packet.
    pub fn take(&mut self, record: &Record<'_>) {
        if let Ok(segment) = self.dissector.dissect(record)
            && let Some(ended) = self.table.take(&segment)
        {
            keep(&mut self.kept, &mut self.left_out, self.max, &ended);
        }
    }

    /// Sets the window scales of a connection that opened before the capture began, as the kernel reports them.
    pub fn know_scales(&mut self, ends: [SocketAddr; 2], scales: [u8; 2]) {
        self.table.know_scales(ends, scales);
    }

    /// Sets what the kernel at the first of `ends` reports on the data that a connection sends.
    pub fn know_sender(&mut self, ends: [SocketAddr; 2], report: SenderReport) {
        self.table.know_sender(ends, report);
    }

    /// Sets what the kernel at the first of `ends` reports on the program that reads a connection's data.
    pub fn know_reader(&mut self, ends: [SocketAddr; 2], is_late: bool) {
        self.table.know_reader(ends, is_late);
    }

    /// Packets taken so far.
    pub fn packets(&self) -> u64 {
        self.dissector.counts().packets
    }

    /// The connections that have not ended.
    pub fn table(&self) -> &Table {
        &self.table
    }

    fn all(&mut self, file: &mut dyn Read) -> Result<(), PassFailure> {
        let Reading { dissector, table, max, kept, left_out } = self;
        segments(file, dissector, &mut |segment| {
            if let Some(ended) = table.take(segment) {
                keep(kept, left_out, *max, &ended);
            }
        })
    }

    /// The report; `unfinished` is the reason if the capture broke off.
    pub fn report(mut self, unfinished: Option<PassFailure>) -> DiagnosisReport {
        while let Some(connection) = self.table.drain() {
            keep(&mut self.kept, &mut self.left_out, self.max, &connection);
        }
        let PacketCounts { packets, segments, .. } = self.dissector.counts();
        let mut remarks = remarks(&self.dissector.counts(), self.table.evicted(), unfinished);
        if segments > 0 && self.kept.is_empty() && self.left_out == 0 {
            remarks.push("no connection in it carries data; capture while one does".to_owned());
        }
        rank(&mut self.kept);
        let mut flows: Vec<Flow> = self.kept.into_iter().map(|(_, flow)| flow).collect();
        name_shared_paths(&mut flows);
        self.left_out += flows.len().saturating_sub(self.max) as u64;
        flows.truncate(self.max);
        DiagnosisReport {
            flows,
            flows_left_out: self.left_out,
            packets: Some(packets),
            tcp_segments: Some(segments),
            remarks,
        }
    }
}

fn keep(kept: &mut Vec<(u64, Flow)>, left_out: &mut u64, max: usize, connection: &Connection) {
    kept.extend(flows(connection).into_iter().map(|flow| (flow.bytes, flow)));
    // Sort and truncate only occasionally.
    if kept.len() > 2 * max + 1000 {
        rank(kept);
        *left_out += (kept.len() - max) as u64;
        kept.truncate(max);
    }
}

/// Sorts by payload, the largest first. Flows with equal payload stay in the order in which they ended.
pub fn rank(kept: &mut [(u64, Flow)]) {
    kept.sort_by_key(|(bytes, _)| std::cmp::Reverse(*bytes));
}

fn remarks(counts: &PacketCounts, evicted: u64, unfinished: Option<PassFailure>) -> Vec<String> {
    let mut remarks: Vec<String> = unfinished.iter().map(why_unfinished).collect();
    let mut remark = |n: u64, one: &str, more: &str, rest: &str| {
        if n > 0 {
            remarks.push(format!("{} {rest}", counted(n, one, more)));
        }
    };
    remark(
        counts.unknown_link,
        "packet has",
        "packets have",
        "a link layer that sweetspot does not know; capture on an Ethernet or \"any\" device",
    );
    remark(
        counts.cut_short,
        "packet was cut",
        "packets were cut",
        "within the headers and left out; capture 96 bytes of each or more (tcpdump -s 96)",
    );
    remark(
        counts.malformed,
        "packet has headers that contradict one another and was",
        "packets have headers that contradict one another and were",
        "left out",
    );
    remark(
        evicted,
        "connection was silent while thousands of others were open; it was",
        "connections were silent while thousands of others were open; each was",
        "reported as if it had ended then",
    );
    if counts.segments == 0 && unfinished.is_none() {
        remarks.push(NO_TCP.to_owned());
    }
    remarks
}

/// Why a capture was not read to its end.
fn why_unfinished(failure: &PassFailure) -> String {
    match failure {
        PassFailure::Capture(error) => error.to_string(),
        PassFailure::Read(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
            "its compressed content was cut off; everything before the cut was read".to_owned()
        }
        PassFailure::Read(error) => {
            format!("it cannot be read to its end ({error}); everything before that was read")
        }
    }
}
