//! Tables of reference numbers compiled into the program: comma-separated, with a line of column
//! names, comments after `#`, and no quotes.

use sweetspot_experiment::StudyError;

/// A table of reference numbers.
#[derive(Debug, Clone)]
pub struct ReferenceTable {
    name: &'static str,
    columns: Vec<&'static str>,
    rows: Vec<(usize, Vec<&'static str>)>,
}

/// A row of a [`ReferenceTable`].
#[derive(Debug, Clone, Copy)]
pub struct ReferenceRow<'a> {
    table: &'a ReferenceTable,
    line: usize,
    fields: &'a [&'static str],
}

impl ReferenceTable {
    /// Parses `text`, which error messages call `name`.
    pub fn parse(name: &'static str, text: &'static str) -> Result<ReferenceTable, StudyError> {
        let lines = text.lines().enumerate().map(|(index, line)| (index + 1, line));
        let mut lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        let columns: Vec<&str> =
            lines.next().map(|(_, line)| line.split(',').collect()).unwrap_or_default();
        let mut rows = Vec::new();
        for (line, text) in lines {
            let fields: Vec<&str> = text.split(',').collect();
            if fields.len() != columns.len() {
                let reason = format!("{} fields, {} columns", fields.len(), columns.len());
                return Err(StudyError::Reference { table: name, line, reason });
            }
            rows.push((line, fields));
        }
        Ok(ReferenceTable { name, columns, rows })
    }

    /// Its rows.
    pub fn rows(&self) -> impl Iterator<Item = ReferenceRow<'_>> {
        self.rows.iter().map(|(line, fields)| ReferenceRow { table: self, line: *line, fields })
    }
}

impl ReferenceRow<'_> {
    /// The text in `column`.
    pub fn text(&self, column: &str) -> Result<&'static str, StudyError> {
        let at = self.table.columns.iter().position(|name| *name == column);
        at.map(|at| self.fields[at])
            .ok_or_else(|| self.wrong(format!("there is no column {column}")))
    }

    /// The number in `column`.
    pub fn number(&self, column: &str) -> Result<f64, StudyError> {
        let text = self.text(column)?;
        text.parse().map_err(|_| self.wrong(format!("{column} = \"{text}\" is not a number")))
    }

    /// The whole number in `column`.
    pub fn integer(&self, column: &str) -> Result<u64, StudyError> {
        let text = self.text(column)?;
        text.parse().map_err(|_| self.wrong(format!("{column} = \"{text}\" is not a whole number")))
    }

    fn wrong(&self, reason: String) -> StudyError {
        StudyError::Reference { table: self.table.name, line: self.line, reason }
    }
}
