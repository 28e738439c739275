use core::fmt::Write;

use crate::StudyError;
use crate::csv::Table;
use crate::markdown::{MarkdownTable, deviation};

/// The numbers that the papers print, and ours beside them.
#[derive(Debug, Clone)]
pub(super) struct Published {
    lines: Vec<Line>,
}

#[derive(Debug, Clone)]
struct Line {
    paper: &'static str,
    item: &'static str,
    case: &'static str,
    quantity: &'static str,
    unit: &'static str,
    value: &'static str,
    ours: Option<String>,
    deviation: String,
}

impl Published {
    /// Before anything was reproduced.
    pub(super) fn read() -> Result<Published, StudyError> {
        let table = Table::parse("published.csv", include_str!("../../data/published.csv"))?;
        let lines = table.rows().map(|row| {
            Ok(Line {
                paper: row.text("paper")?,
                item: row.text("item")?,
                case: row.text("case")?,
                quantity: row.text("quantity")?,
                unit: row.text("unit")?,
                value: row.text("value")?,
                ours: None,
                deviation: String::new(),
            })
        });
        Ok(Published { lines: lines.collect::<Result<_, StudyError>>()? })
    }

    /// Puts our number beside the lines of `paper` and `item` whose case and quantity hold
    /// these words.
    pub(super) fn put(&mut self, (paper, item): (&str, &str), words: &[&str], ours: f64) {
        for line in self.matching(paper, item, words) {
            line.ours = Some(short(ours));
            let theirs = line.value.parse::<f64>();
            line.deviation = theirs.map_or(String::new(), |theirs| deviation(ours, theirs));
        }
    }

    /// The same with a text, where a number would not do.
    pub(super) fn put_text(&mut self, (paper, item): (&str, &str), words: &[&str], ours: &str) {
        for line in self.matching(paper, item, words) {
            line.ours = Some(ours.to_owned());
        }
    }

    fn matching<'a>(
        &'a mut self,
        paper: &'a str,
        item: &'a str,
        words: &'a [&str],
    ) -> impl Iterator<Item = &'a mut Line> {
        self.lines.iter_mut().filter(move |line| {
            let holds = |word: &&str| line.case.contains(*word) || line.quantity.contains(*word);
            line.paper == paper && line.item == item && words.iter().all(holds)
        })
    }

    /// All lines of `paper`, as a table.
    pub(super) fn write(&self, text: &mut String, paper: &str) {
        let mut table = MarkdownTable::new(&["what", "published", "here", "", "unit"]);
        for line in self.lines.iter().filter(|line| line.paper == paper) {
            table.row(&[
                &format!("{}: {}, {}", line.item, line.case, line.quantity),
                line.value,
                line.ours.as_deref().unwrap_or("-"),
                &line.deviation,
                line.unit,
            ]);
        }
        let _ = writeln!(text, "{table}");
    }
}

/// Three significant digits and no more decimals than that takes.
pub(super) fn short(number: f64) -> String {
    match number.abs() {
        n if n >= 100.0 => format!("{number:.0}"),
        n if n >= 10.0 => format!("{number:.1}"),
        n if n >= 0.1 => format!("{number:.2}"),
        _ => format!("{number:.3}"),
    }
}
