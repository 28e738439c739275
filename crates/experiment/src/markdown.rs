//! Tables for the documents that studies write.

use core::fmt::Write;

/// A Markdown table under construction.
#[derive(Debug, Clone)]
pub struct MarkdownTable {
    columns: usize,
    text: String,
}

impl MarkdownTable {
    /// A table with these columns, the first flush left and numbers flush right.
    pub fn new(columns: &[&str]) -> MarkdownTable {
        let mut text = format!("| {} |\n|---", columns.join(" | "));
        text.push_str(&"|---:".repeat(columns.len().saturating_sub(1)));
        text.push_str("|\n");
        MarkdownTable { columns: columns.len(), text }
    }

    /// One more row.
    pub fn row<S: AsRef<str>>(&mut self, cells: &[S]) {
        debug_assert_eq!(cells.len(), self.columns);
        let cells: Vec<&str> = cells.iter().map(AsRef::as_ref).collect();
        let _ = writeln!(self.text, "| {} |", cells.join(" | "));
    }
}

impl core::fmt::Display for MarkdownTable {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(&self.text)
    }
}

/// How far `ours` lies from `theirs`, signed, in percent: `+3.1 %`.
pub fn deviation(ours: f64, theirs: f64) -> String {
    if theirs == 0.0 { "-".into() } else { format!("{:+.1} %", (ours / theirs - 1.0) * 100.0) }
}
