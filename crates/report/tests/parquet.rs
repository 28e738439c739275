//! What is written is what a reader finds.

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use sweetspot_report::{Column, Columns, parquet as encode};

#[test]
fn numbers_texts_gaps_and_notes_are_read_back() {
    let mut table = Columns::default();
    table.push("real", Column::Real(vec![Some(1.5), None, Some(f64::INFINITY)]));
    table.push("whole", Column::Whole(vec![None, Some(-7), Some(i64::MAX)]));
    table.push("text", Column::Text(vec![Some("a".into()), Some(String::new()), None]));
    table.note("seed", "1");
    let bytes = encode(&table).unwrap();
    let path = std::env::temp_dir().join(format!("sweetspot-columns-{}", std::process::id()));
    std::fs::write(&path, bytes).unwrap();
    let reader = SerializedFileReader::new(std::fs::File::open(&path).unwrap()).unwrap();
    std::fs::remove_file(&path).unwrap();
    let rows: Vec<Vec<Field>> = reader
        .get_row_iter(None)
        .unwrap()
        .map(|row| row.unwrap().get_column_iter().map(|(_, field)| field.clone()).collect())
        .collect();
    let text = |text: &str| Field::Str(text.into());
    assert_eq!(rows[0], [Field::Double(1.5), Field::Null, text("a")]);
    assert_eq!(rows[1], [Field::Null, Field::Long(-7), text("")]);
    assert_eq!(rows[2], [Field::Double(f64::INFINITY), Field::Long(i64::MAX), Field::Null]);
    let notes = reader.metadata().file_metadata().key_value_metadata().unwrap();
    assert!(notes.iter().any(|note| note.key == "seed" && note.value.as_deref() == Some("1")));
}

#[test]
fn a_table_without_rows_is_a_file() {
    let mut table = Columns::default();
    table.push("real", Column::Real(Vec::new()));
    assert!(encode(&table).unwrap().ends_with(b"PAR1"));
}
