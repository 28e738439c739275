//! The outcome of a transfer in words.

use sweetspot_control::TransferSummary;
use sweetspot_units::{Bytes, Duration, Rate};

/// The number of skipped names in the line.
const MAX_NAMED: usize = 3;

/// A number of things: `1 file`, `2 files`.
fn counted(n: u64, thing: &str) -> String {
    format!("{n} {thing}{}", if n == 1 { "" } else { "s" })
}

fn dry_in_words(outcome: &TransferSummary) -> &'static str {
    let files = outcome.files;
    match (outcome.would_move.is_empty(), outcome.deleted.is_empty()) {
        (true, true) if files.unchanged > 0 && files.failed == 0 => {
            "dry run, nothing would be moved"
        }
        (_, true) => "dry run, nothing was moved",
        (_, false) => "dry run, nothing was moved or deleted",
    }
}

/// The outcome of a transfer in words. `leaves_existing`: existing files were left alone, whatever they hold.
pub fn in_words(outcome: &TransferSummary, leaves_existing: bool) -> String {
    let rate = Rate::from_f64(outcome.goodput_bps);
    let mut line = format!("{}: ", outcome.name);
    if outcome.dry_run {
        return line + dry_in_words(outcome);
    }
    let files = outcome.files;
    if outcome.hash.is_none() {
        line += &format!("{}, ", counted(files.written, "file"));
    }
    if files.deleted > 0 {
        line += &format!("{} deleted, ", files.deleted);
    }
    if files.written == 0 && files.unchanged > 0 && outcome.bytes == 0 && files.deleted == 0 {
        return line.clone()
            + if leaves_existing {
                "everything already exists there and was left alone"
            } else {
                "unchanged, the receiver already has everything"
            };
    }
    if files.unchanged > 0 {
        let how = if leaves_existing { "left alone" } else { "unchanged" };
        line += &format!("{} {how}, ", files.unchanged);
    }
    line += &format!(
        "{} in {:.2} s, {rate}, sizing {}",
        Bytes::new(outcome.bytes),
        outcome.seconds,
        outcome.sizing
    );
    if outcome.saved_bytes > 0 {
        line += &format!(", {} saved by compression", Bytes::new(outcome.saved_bytes));
    }
    if outcome.streams > 1 {
        line += &format!(", {} connections", outcome.streams);
    }
    if outcome.reconnects > 0 {
        line += &format!(", resumed {}", counted(outcome.reconnects.into(), "time"));
    }
    if let (Some(congestion), Some(n)) = (&outcome.congestion, outcome.retransmitted_segments) {
        line += &format!(", {congestion}, {} retransmitted", counted(n, "segment"));
    }
    if let Some(rtt) = outcome.rtt_median_s {
        line += &format!(", median RTT {}", Duration::from_micros((rtt * 1e6) as u64));
    }
    line
}

/// The pipes, sockets and devices that were not moved, in one line; `None` if there are none.
pub fn skipped(names: &[String]) -> Option<String> {
    let named = &names[..names.len().min(MAX_NAMED)];
    let more = match names.len() - named.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let which = named.join(", ");
    (!names.is_empty()).then(|| format!("skipped pipes, sockets and devices: {which}{more}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_skipped_names_are_told_and_the_others_counted() {
        let names = ["a", "b", "c", "d", "e"].map(str::to_owned);
        let line = |n: usize| skipped(&names[..n]);
        assert_eq!(line(0), None);
        assert_eq!(line(1).unwrap(), "skipped pipes, sockets and devices: a");
        assert_eq!(line(5).unwrap(), "skipped pipes, sockets and devices: a, b, c and 2 more");
    }
}
