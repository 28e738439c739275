//! Tables for the documents that studies write.

use core::fmt::Write;

/// A table under construction.
#[derive(Debug, Clone)]
pub struct MarkdownTable {
    /// All rows, with the headings first.
    rows: Vec<Vec<String>>,
}

impl MarkdownTable {
    /// A table with these columns: the first left-aligned, numbers right-aligned.
    pub fn new(columns: &[&str]) -> MarkdownTable {
        MarkdownTable { rows: vec![columns.iter().map(|name| (*name).to_owned()).collect()] }
    }

    /// Adds a row.
    pub fn row<S: AsRef<str>>(&mut self, cells: &[S]) {
        debug_assert_eq!(cells.len(), self.rows[0].len());
        self.rows.push(cells.iter().map(|cell| cell.as_ref().to_owned()).collect());
    }

    /// The table for a terminal: columns padded with spaces, without rules.
    pub fn aligned(&self) -> String {
        let columns = 0..self.rows[0].len();
        let widths: Vec<usize> = columns
            .map(|i| self.rows.iter().map(|row| row[i].chars().count()).max().unwrap_or(0))
            .collect();
        let mut text = String::new();
        for row in &self.rows {
            let mut line = String::new();
            for (i, (cell, width)) in row.iter().zip(&widths).enumerate() {
                line +=
                    &if i == 0 { format!("{cell:<width$}") } else { format!("  {cell:>width$}") };
            }
            let _ = writeln!(text, "{}", line.trim_end());
        }
        text
    }
}

impl core::fmt::Display for MarkdownTable {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let mut rows = self.rows.iter();
        let Some(headings) = rows.next() else { return Ok(()) };
        let right = "|---:".repeat(headings.len().saturating_sub(1));
        writeln!(f, "| {} |\n|---{right}|", headings.join(" | "))?;
        rows.try_for_each(|row| writeln!(f, "| {} |", row.join(" | ")))
    }
}

/// The deviation of `ours` from `theirs`, signed, in per cent: `+3.1 %`.
pub fn deviation(ours: f64, theirs: f64) -> String {
    if theirs == 0.0 { "-".into() } else { format!("{:+.1} %", (ours / theirs - 1.0) * 100.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_markdown_in_a_document_and_aligned_on_a_terminal() {
        let mut table = MarkdownTable::new(&["", "sim", "lab"]);
        table.row(&["goodput", "9.55", "12.40"]);
        table.row(&["loss", "0", "-"]);
        let markdown =
            "|  | sim | lab |\n|---|---:|---:|\n| goodput | 9.55 | 12.40 |\n| loss | 0 | - |\n";
        assert_eq!(table.to_string(), markdown);
        let aligned = "          sim    lab\ngoodput  9.55  12.40\nloss        0      -\n";
        assert_eq!(table.aligned(), aligned);
    }
}
