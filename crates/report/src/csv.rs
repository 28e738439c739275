//! Comma-separated values (RFC 4180). The first line names the columns; unknown values are empty.

use thiserror::Error;

use crate::columns::{Column, Columns};

/// Columns as comma-separated values (RFC 4180); unknown values are empty.
pub fn csv(columns: &Columns) -> String {
    let mut text = csv::Writer::from_writer(Vec::new());
    // Writing to memory does not fail.
    let _ = text.write_record(columns.columns().iter().map(|(name, _)| name));
    for row in 0..columns.rows() {
        let cells = columns.columns().iter().map(|(_, column)| match column {
            Column::Text(values) => values[row].clone().unwrap_or_default(),
            Column::Integer(values) => values[row].map_or(String::new(), |n| n.to_string()),
            Column::Real(values) => values[row].map_or(String::new(), |n| n.to_string()),
        });
        let _ = text.write_record(cells);
    }
    String::from_utf8(text.into_inner().unwrap_or_default()).unwrap_or_default()
}

/// An error in comma-separated values.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CsvError {
    /// A row that has more or fewer cells than there are columns.
    #[error("row {row} has {cells} cells, but there are {columns} columns")]
    Ragged {
        /// The number of the row; the row of names is 1.
        row: usize,
        /// The number of cells in the row.
        cells: usize,
        /// The number of columns.
        columns: usize,
    },
    /// A quote that is never closed.
    #[error("a quoted cell is not closed")]
    OpenQuote,
}

/// Parses the columns of `text`. A column holds whole numbers if all its cells are whole numbers,
/// numbers if all are numbers, and otherwise texts.
///
/// # Errors
/// If rows differ in length, or a quote is never closed.
pub fn from_csv(text: &str) -> Result<Columns, CsvError> {
    // Quotes enclose a cell and are doubled inside, so their number is even (RFC 4180, section 2).
    if text.matches('"').count() % 2 == 1 {
        return Err(CsvError::OpenQuote);
    }
    let mut rows = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .from_reader(text.as_bytes())
        .into_records()
        // A text is UTF-8, and rows of any length are allowed, so reading cannot fail.
        .flatten();
    let names = rows.next().unwrap_or_default();
    let mut cells: Vec<Vec<String>> = vec![Vec::new(); names.len()];
    for (index, row) in rows.enumerate() {
        if row.len() != names.len() {
            let (row, cells) = (index + 2, row.len());
            return Err(CsvError::Ragged { row, cells, columns: names.len() });
        }
        for (column, cell) in cells.iter_mut().zip(&row) {
            column.push(cell.to_owned());
        }
    }
    let mut columns = Columns::default();
    for (name, cells) in names.iter().zip(cells) {
        columns.push(name, column(cells));
    }
    Ok(columns)
}

fn column(cells: Vec<String>) -> Column {
    fn parsed<T: std::str::FromStr>(cells: &[String]) -> Option<Vec<Option<T>>> {
        let cell = |cell: &String| match cell.as_str() {
            "" => Some(None),
            text => text.parse().ok().map(Some),
        };
        cells.iter().map(cell).collect()
    }
    if let Some(numbers) = parsed(&cells) {
        return Column::Integer(numbers);
    }
    if let Some(numbers) = parsed(&cells) {
        return Column::Real(numbers);
    }
    Column::Text(cells.into_iter().map(|cell| Some(cell).filter(|cell| !cell.is_empty())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_columns_parse_back() {
        let mut columns = Columns::default();
        columns.push("count", Column::Integer(vec![Some(-3), None]));
        columns.push("share", Column::Real(vec![Some(0.25), Some(1e-9)]));
        let words = vec![Some("a, \"b\"\nc".to_owned()), None];
        columns.push("words", Column::Text(words));
        assert_eq!(from_csv(&csv(&columns)), Ok(columns));
    }

    #[test]
    fn ragged_rows_and_open_quotes_are_rejected() {
        let ragged = CsvError::Ragged { row: 3, cells: 1, columns: 2 };
        assert_eq!(from_csv("a,b\r\n1,2\r\n3\r\n"), Err(ragged));
        assert_eq!(from_csv("a\n\"x"), Err(CsvError::OpenQuote));
    }
}
