use core::fmt::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::Compression;
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::parser::parse_message_type;

use crate::columns::{Column, Columns};

/// A Parquet file of `columns`: one row group with Snappy compression, all columns optional, and
/// the notes as key-value metadata.
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
            Column::Integer(values) => write::<Int64Type, _>(&mut writer, values, |v| *v)?,
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
            Column::Integer(_) => "INT64",
            Column::Text(_) => "BINARY",
        };
        let meaning = if kind == "BINARY" { " (STRING)" } else { "" };
        let _ = writeln!(schema, "  OPTIONAL {kind} {name}{meaning};");
    }
    schema.push('}');
    schema
}

/// Writes the values that exist, and for each row its definition level: 1 with a value, 0 without.
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

/// Reads a Parquet file of numbers and texts, such as the output of [`parquet()`].
///
/// # Errors
/// If the file is not Parquet, is damaged, or has a column of another type.
pub fn from_parquet(bytes: Vec<u8>) -> Result<Columns, ParquetError> {
    // The library panics if a damaged file contradicts itself. No state of this crate is affected.
    let read = catch_unwind(AssertUnwindSafe(|| read_file(bytes)));
    read.unwrap_or_else(|_| Err(ParquetError::General("it contradicts itself".to_owned())))
}

fn read_file(bytes: Vec<u8>) -> Result<Columns, ParquetError> {
    let file = SerializedFileReader::new(Bytes::from(bytes))?;
    let metadata = file.metadata().file_metadata();
    let mut columns = Columns::default();
    for note in metadata.key_value_metadata().into_iter().flatten() {
        columns.note(&note.key, note.value.clone().unwrap_or_default());
    }
    let groups: Vec<_> =
        (0..file.num_row_groups()).map(|i| file.get_row_group(i)).collect::<Result<_, _>>()?;
    for (c, description) in metadata.schema_descr().columns().iter().enumerate() {
        let mut all = None;
        for group in &groups {
            let part = read_column(group.as_ref(), c)?;
            all = Some(match all {
                None => part,
                Some(before) => joined(before, part)?,
            });
        }
        if let Some(column) = all {
            if columns.columns().iter().any(|(_, first)| first.len() != column.len()) {
                return Err(ParquetError::General("its columns differ in length".to_owned()));
            }
            columns.push(description.name(), column);
        }
    }
    Ok(columns)
}

fn read_column(group: &dyn RowGroupReader, index: usize) -> Result<Column, ParquetError> {
    Ok(match group.get_column_reader(index)? {
        ColumnReader::DoubleColumnReader(reader) => Column::Real(values(reader, |v| Ok(*v))?),
        ColumnReader::Int64ColumnReader(reader) => Column::Integer(values(reader, |v| Ok(*v))?),
        ColumnReader::ByteArrayColumnReader(reader) => Column::Text(values(reader, |v| {
            let text = v.as_utf8()?;
            Ok(text.to_owned())
        })?),
        _ => return Err(ParquetError::NYI("a column of neither numbers nor strings".to_owned())),
    })
}

const ROWS_PER_READ: usize = 65_536;

/// The value of each row; `None` at a definition level of 0.
fn values<D: DataType, T>(
    mut reader: ColumnReaderImpl<D>,
    convert: impl Fn(&D::T) -> Result<T, ParquetError>,
) -> Result<Vec<Option<T>>, ParquetError> {
    let mut rows = Vec::new();
    loop {
        let (mut present, mut levels) = (Vec::new(), Vec::new());
        let (records, ..) =
            reader.read_records(ROWS_PER_READ, Some(&mut levels), None, &mut present)?;
        if records == 0 {
            return Ok(rows);
        }
        // A required column, which always has values, has no definition levels.
        levels.resize(records, 1);
        let mut present = present.iter();
        for level in levels {
            let value = if level > 0 { present.next().map(&convert).transpose()? } else { None };
            rows.push(value);
        }
    }
}

fn joined(before: Column, more: Column) -> Result<Column, ParquetError> {
    match (before, more) {
        (Column::Real(mut a), Column::Real(b)) => {
            a.extend(b);
            Ok(Column::Real(a))
        }
        (Column::Integer(mut a), Column::Integer(b)) => {
            a.extend(b);
            Ok(Column::Integer(a))
        }
        (Column::Text(mut a), Column::Text(b)) => {
            a.extend(b);
            Ok(Column::Text(a))
        }
        _ => Err(ParquetError::General("a column changes its type".to_owned())),
    }
}
