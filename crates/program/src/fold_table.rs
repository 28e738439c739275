//! Folds tables that are wider than the terminal. First their gaps shrink. Columns that still do not fit follow
//! below, with the row names repeated, so that each heading stays above its column.

use std::collections::BTreeSet;
use std::ops::Range;

/// The gap between columns of a folded table, and the minimum gap that separates columns.
const GAP: usize = 2;

pub(crate) fn cells(line: &str) -> impl Iterator<Item = &str> {
    line.split("  ").map(str::trim).filter(|cell| !cell.is_empty())
}

/// Whether these lines form a table: two rows with at least three cells.
pub(crate) fn is_table(lines: &[&str]) -> bool {
    lines.iter().filter(|line| cells(line).count() > 2).count() > 1
}

/// The table in `lines`, folded to at most `width` columns; `None` if a name and a column do not fit.
pub(crate) fn fold_table(lines: &[&str], width: usize) -> Option<String> {
    let rows: Vec<Vec<char>> = lines.iter().map(|line| line.chars().collect()).collect();
    let columns = columns(&rows);
    let (names, values) = columns.split_at_checked(names(&rows, &columns))?;
    let mut parts: Vec<Vec<Range<usize>>> = Vec::new();
    for value in values {
        match parts.last_mut() {
            Some(part) if wide(part) + GAP + value.len() <= width => part.push(value.clone()),
            _ => parts.push([names, std::slice::from_ref(value)].concat()),
        }
    }
    if parts.is_empty() || parts.iter().any(|part| wide(part) > width) {
        return None;
    }
    let text = |part: &Vec<Range<usize>>| {
        let lines: Vec<String> = rows.iter().map(|row| line(row, part)).collect();
        lines.join("\n")
    };
    Some(parts.iter().map(text).collect::<Vec<_>>().join("\n\n"))
}

/// The positions of the columns; the first one includes the indentation.
fn columns(rows: &[Vec<char>]) -> Vec<Range<usize>> {
    let end = rows.iter().map(Vec::len).max().unwrap_or(0);
    let is_text = |at: &usize| rows.iter().any(|row| row.get(*at).is_some_and(|c| *c != ' '));
    let mut columns: Vec<Range<usize>> = Vec::new();
    for at in (0..end).filter(is_text) {
        match columns.last_mut() {
            Some(column) if at < column.end + GAP => column.end = at + 1,
            Some(_) => columns.push(at..at + 1),
            None => columns.push(0..at + 1),
        }
    }
    columns
}

/// The number of leading columns that distinguish the rows; 1 if even all columns do not. Heading lines may have no
/// name.
fn names(rows: &[Vec<char>], columns: &[Range<usize>]) -> usize {
    let differ = |count: &usize| {
        let names = rows.iter().map(|row| line(row, &columns[..*count]));
        let names: Vec<String> = names.filter(|name| !name.is_empty()).collect();
        names.iter().collect::<BTreeSet<_>>().len() == names.len()
    };
    (1..columns.len()).find(differ).unwrap_or(1)
}

fn wide(columns: &[Range<usize>]) -> usize {
    columns.iter().map(|column| column.len() + GAP).sum::<usize>().saturating_sub(GAP)
}

fn line(row: &[char], columns: &[Range<usize>]) -> String {
    let cell = |column: &Range<usize>| -> String {
        column.clone().map(|at| row.get(at).copied().unwrap_or(' ')).collect()
    };
    columns.iter().map(cell).collect::<Vec<_>>().join(&" ".repeat(GAP)).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: [&str; 3] = [
        "  rule      full   mean     used",
        "  BDP        120      7  100.0 %",
        "  tiny         2      1   42.6 %",
    ];

    #[test]
    fn gaps_shrink_before_columns_move() {
        let narrow =
            "  rule  full  mean     used\n  BDP    120     7  100.0 %\n  tiny     2     1   42.6 %";
        assert_eq!(fold_table(&TABLE, 27).as_deref(), Some(narrow));
    }

    #[test]
    fn columns_that_do_not_fit_move_below_with_repeated_names() {
        let narrow = "  rule  full  mean\n  BDP    120     7\n  tiny     2     1\n\n\
            \x20 rule     used\n  BDP   100.0 %\n  tiny   42.6 %";
        assert_eq!(fold_table(&TABLE, 26).as_deref(), Some(narrow));
    }

    #[test]
    fn each_part_repeats_the_columns_that_distinguish_its_rows() {
        let headed = ["        ms   ms", "size  mean  max", "big      2    3"];
        let narrow = "        ms\nsize  mean\nbig      2\n\n       ms\nsize  max\nbig     3";
        assert_eq!(fold_table(&headed, 10).as_deref(), Some(narrow));
        let table = ["size  n  mean  max", "big   1     2    3", "big   2     4    5"];
        let narrow = "size  n  mean\nbig   1     2\nbig   2     4\n\n\
            size  n  max\nbig   1    3\nbig   2    5";
        assert_eq!(fold_table(&table, 14).as_deref(), Some(narrow));
    }

    #[test]
    fn a_table_that_cannot_be_split_is_not_folded() {
        assert_eq!(fold_table(&TABLE, 14), None);
        assert_eq!(fold_table(&["one", "two"], 2), None);
    }

    #[test]
    fn names_with_explanations_are_not_a_table() {
        assert!(is_table(&TABLE));
        assert!(!is_table(&["window  636.9 kB", "why     the smallest  of 12"]));
    }
}
