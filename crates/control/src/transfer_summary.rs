use serde::{Deserialize, Serialize};
use sweetspot_protocol::{
    FileCounts, PeerText, ProbeSummary, ReceiverSummary, Role, RttSource, SenderSummary,
};
use sweetspot_units::{Bytes, Duration};

/// The result of one transfer, from either end: the object that `--json` prints.
///
/// Both ends exchange their counts. So their objects differ only in `role`, `seconds`, `goodput_bps`, `cpu_seconds`, `peer` and
/// the fields that only one end knows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TransferSummary {
    /// The end that produced this object.
    pub role: Role,
    /// The address of the other end.
    pub peer: String,
    /// The client's name at a service; only the service knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// The name of the file or directory at the receiver, or their number if there are several.
    pub name: PeerText,
    /// The sizing used, as `--sizing` spells it.
    pub sizing: String,
    /// The sender's congestion control, read back from its socket. `None`, like both segment counts, if the sender disconnected
    /// after the content was verified but before it sent its summary.
    pub congestion: Option<PeerText>,
    /// Content transferred, bytes.
    pub bytes: u64,
    /// The part of `bytes` that compression saved.
    #[serde(default)]
    pub saved_bytes: u64,
    /// Seconds from the start of the connection (the sender's connect, the receiver's accept) until the content
    /// was verified at the receiver and acknowledged.
    pub seconds: f64,
    /// `bytes` over `seconds`, bits per second.
    pub goodput_bps: f64,
    /// Segments with payload that the sender sent, including retransmissions.
    pub segments: Option<u64>,
    /// Retransmissions among those segments (`tcpi_total_retrans`).
    pub retransmitted_segments: Option<u64>,
    /// Min RTT while content was transferred, seconds. If it comes from the kernel, it covers the whole connection.
    pub rtt_min_s: Option<f64>,
    /// Median RTT while content was transferred, seconds.
    pub rtt_median_s: Option<f64>,
    /// 99th percentile of the RTT while content was transferred, seconds.
    pub rtt_p99_s: Option<f64>,
    /// The source of the RTTs.
    pub rtt_source: RttSource,
    /// The number of periodic probes sent, answered and lost.
    pub probes: ProbeSummary,
    /// The last window that the receiver advertised while content was transferred, bytes.
    pub window_final_bytes: Option<u64>,
    /// BLAKE3 hash of the content in hexadecimal, if it was one file.
    pub hash: Option<PeerText>,
    /// Always true: both ends computed the same hash of each file written. A file with different hashes counts as failed.
    pub hash_ok: bool,
    /// Limits of either host that slowed the transfer; each names its sysctl.
    pub limits: Vec<PeerText>,
    /// How the receiver's window was limited; `None` if the kernel sized it.
    pub clamp_method: Option<PeerText>,
    /// CPU time of this end's process during the transfer, user and system, seconds.
    pub cpu_seconds: f64,
    /// The number of files by result.
    pub files: FileCounts,
    /// The maximum number of connections used at once.
    pub streams: u32,
    /// The number of times that the path broke and the transfer resumed.
    pub reconnects: u32,
    /// Why files were not transferred, one line each; at most one hundred.
    pub failures: Vec<String>,
    /// Whether the receiver refused any file; only the sender knows this.
    #[serde(skip)]
    pub some_refused: bool,
    /// Whether this was a dry run, which transfers nothing.
    #[serde(default, skip_serializing_if = "is_false")]
    pub dry_run: bool,
    /// The entries that a transfer would write or update, one line of text each; only in a dry run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub would_move: Vec<String>,
    /// The entries of `would_move`, for programs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub would_change: Vec<DryRunEntry>,
    /// The counts of these entries and of the names to delete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub would: Option<DryRunCounts>,
    /// Names that were deleted at the receiver because the sender lacks them; in a dry run, names that would be.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deleted: Vec<String>,
    /// Pipes, sockets and devices at the sender, which were not transferred.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<String>,
    /// The number of files and directories that lost their set-user-ID, set-group-ID or sticky bits.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub special_bits_dropped: u64,
    /// Content that an interrupted transfer had left at the receiver and that was reused, bytes.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub resumed_bytes: u64,
    /// Content that the receiver had when the last connection began: unchanged files, and equal pieces of others, bytes. Only the
    /// sender knows.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub present_bytes: u64,
    /// Files that grew while they were sent, and arrived with their listed length. Only the sender knows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub grown: Vec<String>,
}

/// The number of changes that a transfer would make, counted by a dry run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DryRunCounts {
    /// Files, directories and links that would be written: the sum of the next three.
    pub write: u64,
    /// Files that would be written.
    #[serde(default)]
    pub files: u64,
    /// Directories that would be made.
    #[serde(default)]
    pub directories: u64,
    /// Symbolic and hard links that would be made or changed.
    #[serde(default)]
    pub links: u64,
    /// Entries that would only get another mode, owner or other extended attributes.
    pub update: u64,
    /// Names that would be deleted at the receiver.
    pub delete: u64,
    /// Content of the files that would be written, bytes.
    pub bytes: u64,
}

impl DryRunCounts {
    /// Counts something that would be written, with this much content, which a peer may claim at will.
    pub fn note_write(&mut self, kind: DryRunKind, bytes: u64) {
        self.write += 1;
        *match kind {
            DryRunKind::File => &mut self.files,
            DryRunKind::Directory => &mut self.directories,
            DryRunKind::Symlink | DryRunKind::HardLink => &mut self.links,
            DryRunKind::Attributes => &mut self.update,
        } += 1;
        self.bytes = self.bytes.saturating_add(bytes);
    }
}

/// An entry that a dry run would write or update.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DryRunEntry {
    /// The entry's name in the transfer.
    pub path: String,
    /// The change.
    pub kind: DryRunKind,
    /// Content of a file that would be written, bytes; `None` for other entries and for standard input.
    pub bytes: Option<u64>,
}

/// The change of one entry in a dry run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DryRunKind {
    /// A file would be written.
    File,
    /// A directory would be created.
    Directory,
    /// A symbolic link would be created or changed.
    Symlink,
    /// A hard link to another file would be created.
    HardLink,
    /// Only mode, owner or extended attributes would change.
    Attributes,
}

fn is_zero(value: &u64) -> bool {
    *value == 0
}

fn is_false(value: &bool) -> bool {
    !value
}

impl TransferSummary {
    /// The result at one end, from its own account and both ends' summaries. `sender` is `None` if the sender disconnected
    /// before it sent its summary.
    pub fn new(
        end: OwnAccount<'_>,
        receiver: ReceiverSummary,
        sender: Option<SenderSummary>,
    ) -> TransferSummary {
        let seconds = end.took.as_secs_f64();
        let rtt = |i: usize| receiver.rtt_s.map(|rtt| rtt[i]);
        let saved_bytes = sender.as_ref().map_or(0, |sender| sender.saved_bytes);
        let (congestion, segments, retransmitted, sender_limits) = match sender {
            Some(c) => {
                (Some(c.congestion), Some(c.segments), Some(c.retransmitted_segments), c.limits)
            }
            None => (None, None, None, Vec::new()),
        };
        TransferSummary {
            role: end.role,
            peer: end.peer.to_string(),
            client: None,
            name: end.name.clone(),
            sizing: end.sizing.to_owned(),
            congestion,
            bytes: end.bytes.get(),
            saved_bytes,
            seconds,
            goodput_bps: (end.bytes / end.took).as_f64(),
            segments,
            retransmitted_segments: retransmitted,
            rtt_min_s: rtt(0),
            rtt_median_s: rtt(1),
            rtt_p99_s: rtt(2),
            rtt_source: receiver.rtt_source,
            probes: receiver.probes,
            window_final_bytes: receiver.window_final_bytes,
            hash: receiver.hash,
            hash_ok: true,
            limits: [receiver.limits, sender_limits].concat(),
            clamp_method: receiver.clamp_method,
            cpu_seconds: end.cpu.as_secs_f64(),
            files: receiver.files,
            streams: receiver.streams,
            reconnects: end.reconnects,
            failures: end.failures.to_vec(),
            some_refused: false,
            dry_run: false,
            would_move: Vec::new(),
            would_change: Vec::new(),
            would: None,
            deleted: Vec::new(),
            skipped: Vec::new(),
            special_bits_dropped: 0,
            resumed_bytes: receiver.resumed_bytes,
            present_bytes: 0,
            grown: Vec::new(),
        }
    }

    /// Adds earlier connections of the same transfer: they carried `bytes` of content, and all connections together took
    /// `took`.
    pub fn after(self, bytes: Bytes, took: Duration) -> TransferSummary {
        let bytes = Bytes::new(self.bytes) + bytes;
        let (seconds, goodput_bps) = (took.as_secs_f64(), (bytes / took).as_f64());
        TransferSummary { bytes: bytes.get(), seconds, goodput_bps, ..self }
    }
}

/// The state of a transfer at one end, without its peer's summary.
#[derive(Debug, Clone, Copy)]
pub struct OwnAccount<'a> {
    /// This end.
    pub role: Role,
    /// The peer's address.
    pub peer: std::net::SocketAddr,
    /// The file's name at the receiver.
    pub name: &'a PeerText,
    /// The sizing used, as `--sizing` spells it.
    pub sizing: &'a str,
    /// The length of the content.
    pub bytes: Bytes,
    /// The time from the start of the connection until the content was verified and acknowledged.
    pub took: Duration,
    /// CPU time of this end's process during the transfer.
    pub cpu: Duration,
    /// The number of times that the path broke and the transfer resumed.
    pub reconnects: u32,
    /// Why files were not transferred.
    pub failures: &'a [String],
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_that_a_peer_claims_cannot_overflow_the_sum() {
        let mut counts = DryRunCounts::default();
        [u64::MAX, 1].into_iter().for_each(|bytes| counts.note_write(DryRunKind::File, bytes));
        assert_eq!((counts.write, counts.bytes), (2, u64::MAX));
    }
}
