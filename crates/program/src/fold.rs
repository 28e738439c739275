//! Folds lines that are wider than the terminal between words, with readable continuations.

use std::borrow::Cow;

use sweetspot_units::parts_unit;

use crate::fold_table::{cells, fold_table, is_table};

/// Commands that Sweetspot tells its user to run. A line that begins with one is meant for pasting, so it is never folded.
const PROGRAMS: [&str; 8] =
    ["sweetspot", "sweetspot-research", "sudo", "sysctl", "ethtool", "tc", "ip", "apt-get"];

/// Additional indentation of continuations.
const HANG: usize = 2;

/// Folds each line of `text` longer than `width`, and each table with such a line. Commands, JSON and single words are not
/// folded.
pub fn fold(text: &str, width: usize) -> Cow<'_, str> {
    let fits = |line: &&str| line.chars().count() <= width;
    let lines: Vec<&str> = text.split('\n').collect();
    if lines.iter().all(fits) {
        return text.into();
    }
    let may_be_row = |line: &str| cells(line).count() > 1 && !is_whole(line);
    let mut folded: Vec<Cow<'_, str>> = Vec::new();
    for block in lines.chunk_by(|a, b| may_be_row(a) && may_be_row(b)) {
        let is_wide_table = is_table(block) && !block.iter().all(fits);
        match is_wide_table.then(|| fold_table(block, width)).flatten() {
            Some(table) => folded.push(table.into()),
            None => folded.extend(block.iter().map(|line| fold_line(line, width))),
        }
    }
    folded.join("\n").into()
}

fn fold_line(line: &str, width: usize) -> Cow<'_, str> {
    if line.chars().count() <= width || is_whole(line) {
        return line.into();
    }
    let words = line.trim_start();
    let indent = line.chars().count() - words.chars().count();
    let cells: Vec<&str> = words.split("  ").filter(|cell| !cell.trim().is_empty()).collect();
    match cells[..] {
        // The explanation after a name continues in its own column.
        [name, _] => {
            let explanation = words[name.len()..].trim_start();
            let column = line.chars().count() - explanation.chars().count();
            let hang = if column <= width / 2 { column } else { indent + HANG };
            fold_words(line, hang, width).into()
        }
        [_, _, _, ..] => {
            // Prose in the last cell continues in its own column, too.
            let last = cells.last().map_or("", |cell| cell.trim());
            let column = line.trim_end().chars().count() - last.chars().count();
            match column <= width / 2 {
                true => fold_words(line, column, width).into(),
                false => fold_row(line, indent + HANG, width).into(),
            }
        }
        _ => fold_words(line, indent + HANG, width).into(),
    }
}

/// Whether a line is meant for pasting or parsing.
pub(crate) fn is_whole(line: &str) -> bool {
    let word = line.split_whitespace().next().unwrap_or_default();
    PROGRAMS.contains(&word) || word.starts_with(['{', '}', '"'])
}

/// Folds prose. Gaps between the words of the first line are kept.
pub(crate) fn fold_words(line: &str, hang: usize, width: usize) -> String {
    let mut out = String::new();
    let mut rest = line.trim_end();
    let mut indent = 0;
    while indent + rest.chars().count() > width {
        let Some((head, tail)) = broken(rest, width.saturating_sub(indent)) else { break };
        out += &format!("{:indent$}{head}\n", "");
        rest = tail;
        // A word that would not fit after the indentation may begin further left.
        let word = rest.split(' ').next().unwrap_or_default().chars().count();
        indent = hang.min(width.saturating_sub(word));
    }
    if indent == 0 {
        let word = rest.trim_start();
        let lead = rest.chars().count() - word.chars().count();
        return out + &" ".repeat(lead.min(width.saturating_sub(word.chars().count()))) + word;
    }
    out + &format!("{:indent$}{rest}", "")
}

/// The words of `text` that fit into `width`, or the first one if it does not fit, and the words after them; `None` for a single
/// word. A number stays next to its unit if possible.
fn broken(text: &str, width: usize) -> Option<(&str, &str)> {
    let lead = text.len() - text.trim_start().len();
    let gaps = text.char_indices().enumerate().filter(|(_, (at, c))| *at >= lead && *c == ' ');
    let (mut at, mut beside_unit) = (None, None);
    for (column, (byte, _)) in gaps {
        if column > width && (at.is_some() || beside_unit.is_some()) {
            break;
        }
        let (before, after) = text.split_at(byte);
        let place = if parts_unit(before, after) { &mut beside_unit } else { &mut at };
        *place = Some(byte);
    }
    let at = at.or(beside_unit)?;
    Some((text[..at].trim_end(), text[at..].trim_start()))
}

/// Folds a row of a table between cells. The cells of a right-aligned column end at the same position, so all rows of a table
/// fold there, and their continuations stay aligned.
fn fold_row(line: &str, indent: usize, width: usize) -> String {
    let chars: Vec<char> = line.trim_end().chars().collect();
    let mut out = String::new();
    let (mut from, mut lead) = (0, 0);
    while chars.len() - from + lead > width {
        let room = width.saturating_sub(lead);
        let is_gap = |at: &usize| chars[*at] == ' ' && chars.get(at + 1) == Some(&' ');
        let fits = from + 1..=(from + room).min(chars.len() - 1);
        let first = (from..chars.len()).find(|at| chars[*at] != ' ').unwrap_or(from);
        let Some(gap) = fits.rev().find(|at| *at > first && is_gap(at)) else { break };
        let cut = (first..gap).rev().find(|at| chars[*at] != ' ').map_or(gap, |last| last + 1);
        let head: String = chars[from..cut].iter().collect();
        out += &format!("{:lead$}{head}\n", "");
        (from, lead) = (cut, indent);
    }
    let rest: String = chars[from..].iter().collect();
    if lead + rest.chars().count() <= width {
        return out + &format!("{:lead$}{rest}", "");
    }
    // A cell that is wider than the screen is prose.
    out + &fold_words(&format!("{:lead$}{}", "", rest.trim_start()), indent, width)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prose_is_folded_between_words_and_indented() {
        assert_eq!(fold("one two three four", 9), "one two\n  three\n  four");
        assert_eq!(fold("  - a bc\nd", 6), "  - a\n    bc\nd");
    }

    #[test]
    fn prose_in_the_last_cell_continues_in_its_column() {
        assert_eq!(fold("ok  a  one two three", 15), "ok  a  one two\n       three");
    }

    #[test]
    fn an_overwide_cell_is_folded_between_words() {
        assert_eq!(fold("  1 s  a  one two three", 11), "  1 s  a\n    one two\n    three");
    }

    #[test]
    fn an_explanation_stays_in_its_column() {
        assert_eq!(fold("why  the path is full", 14), "why  the path\n     is full");
    }

    #[test]
    fn a_number_stays_beside_its_unit() {
        assert_eq!(fold("one at 2.5 Gbit/s now", 12), "one at\n  2.5 Gbit/s\n  now");
        assert_eq!(fold("100 % of", 4), "100\n  %\n  of");
    }

    #[test]
    fn a_table_within_text_keeps_its_headings() {
        let text = "Two rules:\n  rule    full    mean\n  BDP      120       7\nfull, mean: queueing delay";
        let narrow =
            "Two rules:\n  rule  full  mean\n  BDP    120     7\nfull, mean:\n  queueing delay";
        assert_eq!(fold(text, 18), narrow);
    }

    #[test]
    fn rows_printed_one_by_one_fold_at_the_same_column() {
        let rows = ["rule      full   mean     used", "BDP        120      7  100.0 %"];
        let folded = ["rule      full   mean\n       used", "BDP        120      7\n    100.0 %"];
        assert_eq!(rows.map(|row| fold(row, 23).into_owned()), folded);
    }

    #[test]
    fn commands_tickets_and_json_are_not_folded() {
        for line in
            ["  sysctl -w net.core.rmem_max=4096", "{\"a\": 1, \"b\": 2}", "one-long-ticket"]
        {
            assert_eq!(fold(line, 10), line);
        }
    }

    #[test]
    fn a_long_word_moves_left_before_it_overflows_the_line() {
        assert_eq!(fold("      one,two,x", 12), "   one,two,x");
    }

    #[test]
    fn folding_loses_no_word_and_keeps_lines_within_the_width() {
        let text = "  7 % of the time limited by the window: 65,535 bytes at 42 ms allow 12.6 Mbit/s.\n\
            why       100 MB (rate x RTT) fill the path; more would queue\n\
            \x20 tiny              20     30 kB  0.24  0.145  20.34 %   42.6 %  0.539  0.913";
        for width in 24..100 {
            let folded = fold(text, width);
            assert!(folded.lines().all(|line| line.chars().count() <= width), "{width}:\n{folded}");
            let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert_eq!(words(&folded), words(text));
        }
    }
}
