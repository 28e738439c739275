use super::column_file::read_columns;
use super::file::{ReadError, ResultFile, read};
use crate::csv::from_csv;
use crate::parquet::from_parquet;

/// The magic number of a Parquet file.
const PARQUET: &[u8] = b"PAR1";

/// Reads a file of results in any format: Parquet by its magic number, CSV by its `name`, otherwise JSON. `ours` is this
/// version of Sweetspot.
///
/// # Errors
/// If the format is unknown, or the file is not a result of Sweetspot.
pub fn read_file(name: &str, bytes: Vec<u8>, ours: &str) -> Result<ResultFile, ReadError> {
    if bytes.starts_with(PARQUET) {
        let columns = from_parquet(bytes).map_err(|e| ReadError::Parquet(e.to_string()))?;
        return read_columns(&columns, ours);
    }
    let text = String::from_utf8(bytes).map_err(|_| ReadError::NoText)?;
    if name.ends_with(".csv") {
        return read_columns(&from_csv(&text)?, ours);
    }
    read(&text, ours)
}
