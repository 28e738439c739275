use core::fmt::Write;

use super::EngineComparison;
use crate::markdown::MarkdownTable;

impl EngineComparison {
    /// The comparison in Markdown: result, broken assumptions, numbers.
    pub fn markdown(&self) -> String {
        format!("{}\n{}", self.words(), self.table())
    }

    /// The comparison for a terminal.
    pub fn text(&self) -> String {
        format!("{}\n{}", self.words(), self.table().aligned())
    }

    fn words(&self) -> String {
        let mut text = format!("{}\n", self.summary());
        for finding in &self.findings {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "* {}: {}", finding.assumption, finding.words);
        }
        text
    }

    fn table(&self) -> MarkdownTable {
        let mut columns = vec![""];
        columns.extend(self.engines.iter().map(String::as_str));
        columns.push("gap");
        let mut table = MarkdownTable::new(&columns);
        for row in &self.rows {
            let mut cells = vec![row.name.clone()];
            cells.extend(row.values.iter().map(|value| value.map_or("-".to_owned(), number)));
            cells.push(row.gap().map_or(String::new(), |gap| format!("{:.1} %", gap * 100.0)));
            table.row(&cells);
        }
        table
    }
}

/// Formats small values with three decimals, others with two.
fn number(value: f64) -> String {
    if value.abs() < 1.0 { format!("{value:.3}") } else { format!("{value:.2}") }
}
