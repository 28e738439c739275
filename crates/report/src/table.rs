use crate::headline::milliseconds;
use crate::outcome::{DemoOutcome, VariantOutcome};
use crate::wrap::wrapped;

/// The meaning of the columns of [`table`] that their heads do not tell.
pub const TABLE_LEGEND: &str = "retx: retransmitted segments, and their share of all. share: of the path's payload capacity. drops: by the bottleneck's full buffer. RTT: the median, and the 99th percentile. 90 % \
    at s: when goodput over half a second first reached 90 % of that capacity; -: never. Each variant made one transfer. trust: whether the emulation was accurate.";

/// The outcome as a text table of at most 80 columns. A row shows whether its variant failed or cannot be trusted.
pub fn table(outcome: &DemoOutcome) -> String {
    let widest = outcome.variants.iter().map(|c| c.name().chars().count()).max();
    let name_width = widest.unwrap_or(0).max("variant".len());
    let heading = |name, cells: [&str; 9]| columns(name_width, name, cells.map(str::to_owned));
    let mut lines = vec![
        heading("", ["rate", "share", "retx", "retx", "drops", "RTT", "p99", "90 %", ""]),
        heading("variant", ["Mbit/s", "%", "segs", "%", "pkts", "ms", "ms", "at s", "trust"]),
    ];
    for variant in &outcome.variants {
        lines.push(row(name_width, variant));
        if let Some(why) = variant.distrust() {
            let why = wrapped(&format!("do not trust this row: {why}"), 76);
            lines.extend(why.iter().map(|line| format!("    {line}")));
        }
    }
    let mut text = String::new();
    for line in lines {
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// Widths of the columns, including a gap of two spaces at which a narrow terminal can divide the table.
const WIDTHS: [usize; 9] = [8, 7, 7, 7, 7, 7, 7, 6, 7];

fn columns(name_width: usize, name: &str, cells: [String; 9]) -> String {
    let mut line = format!("{name:name_width$}");
    for (cell, width) in cells.iter().zip(WIDTHS) {
        line.push_str(&format!("{cell:>width$}"));
    }
    line
}

fn row(name_width: usize, c: &VariantOutcome) -> String {
    let name = c.name();
    if let Some(why) = &c.failure {
        let indent = format!("\n{:1$}", "", name_width + 2);
        let lines = wrapped(&format!("failed: {why}"), 78_usize.saturating_sub(name_width));
        return format!("{name:name_width$}  {}", lines.join(&indent));
    }
    columns(name_width, &name, cells(c))
}

/// The cells of a variant: rate, share of the capacity, retransmissions and their share, drops, median and 99th
/// percentile of the RTT, time to 90 % of the capacity, and whether the emulator trusts the run.
pub fn cells(c: &VariantOutcome) -> [String; 9] {
    [
        show(c.goodput, |rate| format!("{:.1}", rate.as_f64() / 1e6)),
        show(c.share_of_capacity, |share| format!("{:.1}", share * 100.0)),
        show(c.retransmitted_segments, |n| n.to_string()),
        show(c.retransmitted_share(), |share| format!("{:.3}", share * 100.0)),
        show(c.bottleneck_drops, |n| n.to_string()),
        show(c.rtt_median, milliseconds),
        show(c.rtt_p99, milliseconds),
        show(c.time_to_90_percent, |t| format!("{:.1}", t.as_secs_f64())),
        show(c.certificate.as_ref(), |k| if k.trust { "yes" } else { "NO" }.to_owned()),
    ]
}

/// The value as text, or a dash if it was not measured.
fn show<T>(value: Option<T>, text: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| "-".to_owned(), text)
}
