/// A table by columns, all of one length, with words about it: what a column file holds.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Columns {
    columns: Vec<(String, Column)>,
    notes: Vec<(String, String)>,
}

/// The values of a column; `None`: there is none in that row.
#[derive(Debug, Clone, PartialEq)]
pub enum Column {
    /// Numbers.
    Real(Vec<Option<f64>>),
    /// Whole numbers.
    Whole(Vec<Option<i64>>),
    /// Texts.
    Text(Vec<Option<String>>),
}

impl Column {
    /// How many rows it has.
    pub fn len(&self) -> usize {
        match self {
            Column::Real(values) => values.len(),
            Column::Whole(values) => values.len(),
            Column::Text(values) => values.len(),
        }
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Columns {
    /// Adds a column to the right. The name must be new: letters, digits and `_`.
    ///
    /// # Panics
    /// If its length is not that of the others.
    pub fn push(&mut self, name: &str, column: Column) {
        assert!(
            self.columns.first().is_none_or(|(_, first)| first.len() == column.len()),
            "column {name} has {} rows, the others have {}",
            column.len(),
            self.rows()
        );
        self.columns.push((name.to_owned(), column));
    }

    /// Adds a word about the table: what it is, where it comes from.
    pub fn note(&mut self, key: &str, value: impl Into<String>) {
        self.notes.push((key.to_owned(), value.into()));
    }

    /// How many rows.
    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, |(_, column)| column.len())
    }

    /// The columns, left to right.
    pub fn columns(&self) -> &[(String, Column)] {
        &self.columns
    }

    /// The words about the table.
    pub fn notes(&self) -> &[(String, String)] {
        &self.notes
    }
}
