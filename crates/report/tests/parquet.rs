//! Checks that Parquet files read back exactly as written.

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use proptest::prelude::*;
use sweetspot_report::{Column, Columns, from_parquet, parquet as encode};

#[test]
fn numbers_text_nulls_and_metadata_can_be_read_back() {
    let mut table = Columns::default();
    table.push("real", Column::Real(vec![Some(1.5), None, Some(f64::INFINITY)]));
    table.push("whole", Column::Integer(vec![None, Some(-7), Some(i64::MAX)]));
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
fn an_empty_table_makes_a_valid_file() {
    let mut table = Columns::default();
    table.push("real", Column::Real(Vec::new()));
    assert!(encode(&table).unwrap().ends_with(b"PAR1"));
}

fn table() -> Columns {
    let mut table = Columns::default();
    let real = (0..200).map(|i| (i % 7 > 0).then_some(f64::from(i) * 0.1));
    table.push("real", Column::Real(real.collect()));
    table.push("whole", Column::Integer((0..200).map(|i| (i % 3 > 0).then_some(-i)).collect()));
    let text = (0..200).map(|i| (i % 5 > 0).then(|| format!("word {}", i % 11)));
    table.push("text", Column::Text(text.collect()));
    table.note("seed", "1");
    table
}

#[test]
fn a_table_round_trips_unchanged() {
    let decoded = from_parquet(encode(&table()).unwrap()).unwrap();
    assert_eq!(decoded.columns(), table().columns());
    assert_eq!(decoded.noted("seed"), Some("1"));
}

proptest! {
    #[test]
    fn a_damaged_file_causes_no_panic(
        changes in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..6),
        cut in any::<proptest::sample::Index>(),
    ) {
        let mut bytes = encode(&table()).unwrap();
        for (at, byte) in &changes {
            let at = at.index(bytes.len());
            bytes[at] = *byte;
        }
        let _ = from_parquet(bytes.clone());
        bytes.truncate(cut.index(bytes.len()));
        let _ = from_parquet(bytes);
    }
}
