use sweetspot_comparison::machine;

/// A table of the measurement: these rows, then machine and date.
pub fn facts(rows: &[(&str, String)]) -> String {
    let measured = [machine::machine(), machine::kernel(), machine::date()[..10].to_owned()];
    let rows = rows.iter().map(|(name, value)| format!("| {name} | {value} |\n"));
    format!(
        "| | |\n|---|---|\n{}| measured on | {} |",
        rows.collect::<String>(),
        measured.join(", ")
    )
}
