/// A table of columns of equal length, with notes: the content of a column file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Columns {
    columns: Vec<(String, Column)>,
    notes: Vec<(String, String)>,
}

/// The values of a column; `None` in a row without a value.
#[derive(Debug, Clone, PartialEq)]
pub enum Column {
    /// Numbers.
    Real(Vec<Option<f64>>),
    /// Whole numbers.
    Integer(Vec<Option<i64>>),
    /// Texts.
    Text(Vec<Option<String>>),
}

impl Column {
    /// The number of rows.
    pub fn len(&self) -> usize {
        match self {
            Column::Real(values) => values.len(),
            Column::Integer(values) => values.len(),
            Column::Text(values) => values.len(),
        }
    }

    /// The number in this row; `None` without a value or for text.
    pub fn number(&self, row: usize) -> Option<f64> {
        match self {
            Column::Real(values) => *values.get(row)?,
            Column::Integer(values) => values.get(row)?.map(|n| n as f64),
            Column::Text(_) => None,
        }
    }

    /// The whole number in this row; `None` if there is none or it is negative.
    pub fn count(&self, row: usize) -> Option<u64> {
        match self {
            Column::Integer(values) => values.get(row)?.and_then(|n| u64::try_from(n).ok()),
            _ => None,
        }
    }

    /// The text in this row; `None` without a value or for numbers.
    pub fn text(&self, row: usize) -> Option<&str> {
        match self {
            Column::Text(values) => values.get(row)?.as_deref(),
            _ => None,
        }
    }

    /// The value of this row as text, whatever its type; `None` without a value.
    pub fn words(&self, row: usize) -> Option<String> {
        match self {
            Column::Real(values) => values.get(row)?.map(|n| n.to_string()),
            Column::Integer(values) => values.get(row)?.map(|n| n.to_string()),
            Column::Text(values) => values.get(row)?.clone(),
        }
    }

    /// Whether the column has no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Columns {
    /// Adds a column to the right. The name must be new: letters, digits and `_`.
    ///
    /// # Panics
    /// If its length differs from the others'.
    pub fn push(&mut self, name: &str, column: Column) {
        assert!(
            self.columns.first().is_none_or(|(_, first)| first.len() == column.len()),
            "column {name} has {} rows, but the others have {}",
            column.len(),
            self.rows()
        );
        self.columns.push((name.to_owned(), column));
    }

    /// Adds a note about the table, such as its origin.
    pub fn note(&mut self, key: &str, value: impl Into<String>) {
        self.notes.push((key.to_owned(), value.into()));
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, |(_, column)| column.len())
    }

    /// The columns, left to right.
    pub fn columns(&self) -> &[(String, Column)] {
        &self.columns
    }

    /// The column with this name.
    pub fn named(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|(known, _)| known == name).map(|(_, column)| column)
    }

    /// The note with this key.
    pub fn noted(&self, key: &str) -> Option<&str> {
        self.notes.iter().find(|(known, _)| known == key).map(|(_, value)| value.as_str())
    }

    /// The notes about the table.
    pub fn notes(&self) -> &[(String, String)] {
        &self.notes
    }
}
