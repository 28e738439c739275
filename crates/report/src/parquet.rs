use core::fmt::Write;
use std::sync::Arc;

use parquet::basic::Compression;
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::parser::parse_message_type;

use crate::columns::{Column, Columns};

/// A Parquet file of `columns`: one row group, compressed by Snappy, every column optional, the
/// notes as key-value metadata.
pub fn parquet(columns: &Columns) -> Result<Vec<u8>, ParquetError> {
    let schema = Arc::new(parse_message_type(&schema(columns))?);
    let notes = columns.notes().iter().map(|(k, v)| KeyValue::new(k.clone(), Some(v.clone())));
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_created_by(concat!("sweetspot ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_key_value_metadata(Some(notes.collect()))
        .build();
    let mut bytes = Vec::new();
    let mut file = SerializedFileWriter::new(&mut bytes, schema, Arc::new(properties))?;
    let mut group = file.next_row_group()?;
    for (_, column) in columns.columns() {
        let Some(mut writer) = group.next_column()? else { break };
        match column {
            Column::Real(values) => write::<DoubleType, _>(&mut writer, values, |v| *v)?,
            Column::Whole(values) => write::<Int64Type, _>(&mut writer, values, |v| *v)?,
            Column::Text(values) => {
                write::<ByteArrayType, _>(&mut writer, values, |v| ByteArray::from(v.as_str()))?;
            }
        }
        writer.close()?;
    }
    group.close()?;
    file.close()?;
    Ok(bytes)
}

fn schema(columns: &Columns) -> String {
    let mut schema = String::from("message table {\n");
    for (name, column) in columns.columns() {
        let kind = match column {
            Column::Real(_) => "DOUBLE",
            Column::Whole(_) => "INT64",
            Column::Text(_) => "BINARY",
        };
        let meaning = if kind == "BINARY" { " (STRING)" } else { "" };
        let _ = writeln!(schema, "  OPTIONAL {kind} {name}{meaning};");
    }
    schema.push('}');
    schema
}

/// Values that are there, and for every row whether one is: definition level 1 or 0.
fn write<D: DataType, T>(
    writer: &mut SerializedColumnWriter<'_>,
    values: &[Option<T>],
    convert: impl Fn(&T) -> D::T,
) -> Result<(), ParquetError> {
    let present: Vec<D::T> = values.iter().flatten().map(convert).collect();
    let levels: Vec<i16> = values.iter().map(|value| i16::from(value.is_some())).collect();
    writer.typed::<D>().write_batch(&present, Some(&levels), None)?;
    Ok(())
}
