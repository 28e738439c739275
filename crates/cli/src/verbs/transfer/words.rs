//! Describes the outcome of a transfer in words.

use sweetspot_control::{DryRunCounts, TransferSummary};
use sweetspot_protocol::RttSource;
use sweetspot_sizing::Sizing;
use sweetspot_units::{Bytes, Duration, Rate, rounded};

/// The largest number of skipped names in one line.
const MAX_NAMED: usize = 3;

/// A count with its noun: `1 file`, `2 files`, `2 entries`.
fn counted(n: u64, thing: &str) -> String {
    match thing.strip_suffix('y') {
        Some(stem) if n != 1 => format!("{n} {stem}ies"),
        _ => format!("{n} {thing}{}", if n == 1 { "" } else { "s" }),
    }
}

/// The name of an explicitly chosen sizing; `None` for the default.
pub fn chosen(sizing: &str) -> Option<&str> {
    Some(sizing).filter(|sizing| *sizing != Sizing::Sobas.to_string())
}

/// The changes that a dry run found.
fn dry_in_words(outcome: &TransferSummary) -> String {
    let DryRunCounts { files, directories, links, update, delete, bytes, .. } =
        outcome.would.unwrap_or_default();
    let some =
        |verb: &str, n: u64, thing: &str| (n > 0).then(|| format!("{verb} {}", counted(n, thing)));
    // Counted as in a real run, where links are files.
    let write = some("write", files + links, "file");
    let write = write.map(|words| format!("{words} ({})", Bytes::new(bytes)));
    let make = some("make", directories, "directory");
    let attributes = some("update the attributes of", update, "entry");
    let changes: Vec<String> =
        [write, make, attributes, some("delete", delete, "entry")].into_iter().flatten().collect();
    let changes = match changes.is_empty() {
        true => "would change nothing".to_owned(),
        false => format!("would {}", changes.join(", ")),
    };
    match outcome.files.failed {
        0 => format!("dry run, {changes}"),
        failed => format!("dry run, {changes}, {failed} would fail"),
    }
}

/// The outcome of a transfer in words. With `leaves_existing`, existing files were left unchanged, whatever their content.
/// `limit` is the sender's own rate limit.
pub fn in_words(outcome: &TransferSummary, leaves_existing: bool, limit: Option<Rate>) -> String {
    let rate = Rate::from_f64(outcome.goodput_bps);
    let mut line = format!("{}: ", outcome.name);
    if outcome.dry_run {
        return line + &dry_in_words(outcome);
    }
    let files = outcome.files;
    // Only without failures does the receiver have everything.
    if files.present() == files.unchanged
        && files.unchanged > 0
        && files.failed + files.deleted == 0
    {
        return line
            + match leaves_existing {
                true => "everything already exists there and was left alone",
                false => "nothing to send; the receiver is up to date",
            };
    }
    let mut parts = Vec::new();
    let has_other_files = files.updated + files.deleted + files.unchanged + files.failed > 0;
    if outcome.hash.is_none() && (files.written > 0 || !has_other_files) {
        parts.push(counted(files.written, "file"));
    }
    if files.updated > 0 {
        parts.push(format!("attributes of {} updated", counted(files.updated, "entry")));
    }
    let how = if leaves_existing { "left alone" } else { "unchanged" };
    for (n, how) in [(files.deleted, "deleted"), (files.unchanged, how), (files.failed, "failed")] {
        if n > 0 {
            parts.push(format!("{n} {how}"));
        }
    }
    line += &parts.join(", ");
    if outcome.bytes == 0 && files.written == 0 && !parts.is_empty() {
        return line;
    }
    if !parts.is_empty() {
        line += ", ";
    }
    line += &format!("{} in {:.2} s", Bytes::new(outcome.bytes), outcome.seconds);
    // A resumed transfer may need no more content.
    if outcome.bytes > 0 {
        line += &format!(", {rate}");
    }
    if let Some(sizing) = chosen(&outcome.sizing) {
        line += &format!(", sizing {sizing}");
    }
    if let Some(window) = outcome.window_final_bytes {
        line += &format!(", window {}", Bytes::new(window));
    }
    // The user may have meant another unit: rsync's 20M is 168 Mbit/s.
    if let Some(limit) = limit {
        line += &format!(", limited to {limit}");
    }
    if outcome.saved_bytes > 0 {
        line += &format!(", {} saved by compression", Bytes::new(outcome.saved_bytes));
    }
    if outcome.streams > 1 {
        line += &format!(", {} connections", outcome.streams);
    }
    if outcome.resumed_bytes > 0 {
        line += &format!(", resumed at {}", Bytes::new(outcome.resumed_bytes));
    }
    if outcome.reconnects > 0 {
        line += &format!(", reconnected {}", counted(outcome.reconnects.into(), "time"));
    }
    if let (Some(congestion), Some(n)) = (&outcome.congestion, outcome.retransmitted_segments) {
        line += &format!(", {congestion}, {} retransmitted", counted(n, "segment"));
    }
    // The receiving kernel measures RTTs in whole ticks: on a short path, only the minimum is close to the true RTT.
    let (kind, rtt) = match outcome.rtt_source {
        RttSource::Kernel => ("minimum", outcome.rtt_min_s),
        // A histogram's bins of up to 0.8 % resolve three digits.
        _ => ("median", outcome.rtt_median_s.map(|rtt| rounded(rtt, 3))),
    };
    if let Some(rtt) = rtt {
        line += &format!(", {kind} RTT {}", Duration::from_micros((rtt * 1e6) as u64));
    }
    line
}

/// A line about the pipes, sockets and devices that were not copied; `None` if there are none.
pub fn skipped(names: &[String]) -> Option<String> {
    let named = &names[..names.len().min(MAX_NAMED)];
    let more = match names.len() - named.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let which = named.join(", ");
    (!names.is_empty()).then(|| format!("skipped pipes, sockets and devices: {which}{more}"))
}

/// A line about the number of entries that lost special mode bits; `None` if there are none.
pub fn special_bits(entries: u64) -> Option<String> {
    let which = counted(entries, "entry");
    (entries > 0)
        .then(|| format!("set-user-ID, set-group-ID or sticky bits of {which} are not kept"))
}

#[cfg(test)]
pub(super) mod tests {
    use sweetspot_control::OwnAccount;
    use sweetspot_protocol::{FileCounts, ProbeSummary, ReceiverSummary, Role};

    use super::*;

    /// The outcome in words for a directory `d`, after one second and without content.
    fn summary_of(written: u64, unchanged: u64, updated: u64, failed: u64, deleted: u64) -> String {
        let files = FileCounts { written, unchanged, updated, failed, deleted };
        in_words(&outcome(files), false, None)
    }

    pub fn outcome(files: FileCounts) -> TransferSummary {
        let own = OwnAccount {
            role: Role::Sender,
            peer: ([192, 0, 2, 1], 7411).into(),
            name: &"d".into(),
            sizing: "sobas",
            bytes: Bytes::ZERO,
            took: Duration::from_secs(1),
            cpu: Duration::ZERO,
            reconnects: 0,
            failures: &[],
        };
        let receiver = ReceiverSummary {
            hash: None,
            files,
            content_bytes: 0,
            resumed_bytes: 0,
            streams: 1,
            rtt_s: None,
            rtt_source: RttSource::Unmeasured,
            probes: ProbeSummary::default(),
            window_final_bytes: None,
            clamp_method: None,
            limits: Vec::new(),
        };
        TransferSummary::new(own, receiver, None)
    }

    #[test]
    fn the_receiver_is_up_to_date_only_if_nothing_failed_or_changed() {
        assert_eq!(summary_of(0, 3, 0, 0, 0), "d: nothing to send; the receiver is up to date");
        assert_eq!(summary_of(0, 3, 0, 2, 0), "d: 3 unchanged, 2 failed");
        assert_eq!(summary_of(0, 3, 1, 0, 0), "d: attributes of 1 entry updated, 3 unchanged");
        assert_eq!(summary_of(0, 0, 2, 0, 0), "d: attributes of 2 entries updated");
        assert_eq!(summary_of(0, 3, 0, 0, 1), "d: 1 deleted, 3 unchanged");
        assert!(
            summary_of(1, 3, 0, 1, 0)
                .starts_with("d: 1 file, 3 unchanged, 1 failed, 0 B in 1.00 s")
        );
    }

    /// A directory with two files and a link, which a real run counts as three files.
    #[test]
    fn a_dry_run_counts_files_as_a_real_run_does() {
        use sweetspot_control::DryRunKind as Kind;
        let mut would = DryRunCounts::default();
        for (kind, bytes) in
            [(Kind::Directory, 0), (Kind::File, 1500), (Kind::File, 500), (Kind::Symlink, 0)]
        {
            would.note_write(kind, bytes);
        }
        let of_tree = outcome(FileCounts::default());
        let of_tree = TransferSummary { dry_run: true, would: Some(would), ..of_tree };
        let words = in_words(&of_tree, false, None);
        assert_eq!(words, "d: dry run, would write 3 files (2 kB), make 1 directory");
    }

    /// 20M means 20 Mbit/s here, but 20 MiB/s in rsync.
    #[test]
    fn the_rate_limit_is_shown_with_its_unit() {
        let one = FileCounts { written: 1, ..FileCounts::default() };
        let line = in_words(&outcome(one), false, "20M".parse().ok());
        assert!(line.ends_with("1.00 s, limited to 20 Mbit/s"), "{line}");
    }

    #[test]
    fn the_summary_shows_the_window_and_any_nondefault_sizing() {
        let one = FileCounts { written: 1, ..FileCounts::default() };
        let line = |sizing: &str| {
            let sizing = sizing.into();
            let window_final_bytes = Some(1_250_000);
            in_words(&TransferSummary { sizing, window_final_bytes, ..outcome(one) }, false, None)
        };
        assert!(line("sobas").ends_with(" 1.00 s, window 1.25 MB"), "{}", line("sobas"));
        assert!(line("kernel").ends_with(" 1.00 s, sizing kernel, window 1.25 MB"));
    }

    #[test]
    fn the_summary_shows_the_kernel_min_rtt_or_the_median_of_probes() {
        let one = FileCounts { written: 1, ..FileCounts::default() };
        let measured = |rtt_source| TransferSummary {
            rtt_min_s: Some(0.0003),
            rtt_median_s: Some(0.004),
            rtt_source,
            ..outcome(one)
        };
        let by_kernel = in_words(&measured(RttSource::Kernel), false, None);
        assert!(by_kernel.ends_with(", minimum RTT 300 us"), "{by_kernel}");
        let by_probes = in_words(&measured(RttSource::Probes), false, None);
        assert!(by_probes.ends_with(", median RTT 4 ms"), "{by_probes}");
        let rtt_median_s = Some(0.062_521_344);
        let median = TransferSummary { rtt_median_s, ..measured(RttSource::Probes) };
        let median = in_words(&median, false, None);
        assert!(median.ends_with(", median RTT 62.5 ms"), "{median}");
    }

    #[test]
    fn dropped_mode_bits_are_counted_in_one_line() {
        assert_eq!(special_bits(0), None);
        let line = "set-user-ID, set-group-ID or sticky bits of 2 entries are not kept";
        assert_eq!(special_bits(2).as_deref(), Some(line));
    }

    #[test]
    fn the_first_skipped_names_are_listed_and_the_rest_counted() {
        let names = ["a", "b", "c", "d", "e"].map(str::to_owned);
        let line = |n: usize| skipped(&names[..n]);
        assert_eq!(line(0), None);
        assert_eq!(line(1).unwrap(), "skipped pipes, sockets and devices: a");
        assert_eq!(line(5).unwrap(), "skipped pipes, sockets and devices: a, b, c and 2 more");
    }
}
