use std::path::Path;

use ::parquet::errors::ParquetError;

use crate::columns::Columns;
use crate::csv::csv;
use crate::parquet::parquet;

/// The format of a file of columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableFormat {
    /// Comma-separated values (RFC 4180).
    Csv,
    /// Apache Parquet.
    Parquet,
}

impl TableFormat {
    /// The format for a file with this extension, if known.
    pub fn of(path: &Path) -> Option<TableFormat> {
        match path.extension()?.to_str()? {
            "csv" => Some(TableFormat::Csv),
            "parquet" => Some(TableFormat::Parquet),
            _ => None,
        }
    }

    /// `columns` in this format.
    ///
    /// # Errors
    /// If `columns` cannot be encoded as a Parquet file.
    pub fn bytes(self, columns: &Columns) -> Result<Vec<u8>, ParquetError> {
        match self {
            TableFormat::Csv => Ok(csv(columns).into_bytes()),
            TableFormat::Parquet => parquet(columns),
        }
    }
}
