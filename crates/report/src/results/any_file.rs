use super::column_file::read_columns;
use super::file::{ResultFile, read};
use crate::csv::from_csv;
use crate::parquet::from_parquet;

/// The magic number of a Parquet file.
const PARQUET: &[u8] = b"PAR1";

/// Reads a file of results in any format: Parquet by its first bytes, CSV by its `name`, else JSON. `ours` is this version of
/// sweetspot.
///
/// # Errors
/// The fault, in words that begin with the file's name.
pub fn read_file(name: &str, bytes: Vec<u8>, ours: &str) -> Result<ResultFile, String> {
    let blame = |error: &dyn core::fmt::Display| format!("{name}: {error}");
    if bytes.starts_with(PARQUET) {
        let columns = from_parquet(bytes).map_err(|error| {
            let words = format!("it begins like a Parquet file but cannot be read ({error})");
            blame(&format!("{words}; make it again"))
        })?;
        return read_columns(&columns, ours).map_err(|error| blame(&error));
    }
    let text = String::from_utf8(bytes)
        .map_err(|_| blame(&"expected a file of results: JSON, CSV or Parquet"))?;
    if name.ends_with(".csv") {
        let columns = from_csv(&text).map_err(|error| blame(&error))?;
        return read_columns(&columns, ours).map_err(|error| blame(&error));
    }
    read(&text, ours).map_err(|error| blame(&error))
}
