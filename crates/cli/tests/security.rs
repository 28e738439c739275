//! Every promise in SECURITY.md has a test, and its limits are the code's.

use std::fs;
use std::path::{Path, PathBuf};

use sweetspot_units::grouped;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn document() -> String {
    fs::read_to_string(root().join("SECURITY.md")).unwrap()
}

/// The cells of all rows, from each table with these columns in its header.
fn rows(document: &str, columns: &[&str]) -> Vec<Vec<String>> {
    let cells = |line: &str| -> Vec<String> {
        let line = line.trim().trim_start_matches('|').trim_end_matches('|');
        line.split(" | ").map(|cell| cell.trim().to_owned()).collect()
    };
    let (mut rows, mut within) = (Vec::new(), false);
    for line in document.lines() {
        if !line.starts_with('|') {
            within = false;
        } else if cells(line) == columns {
            within = true;
        } else if within && !line.starts_with("|--") {
            rows.push(cells(line));
        }
    }
    rows
}

#[test]
fn every_promise_names_an_existing_test() {
    let rows = rows(&document(), &["asset", "attacker", "defence", "test"]);
    assert!(rows.len() > 20, "the table has {} rows", rows.len());
    for row in rows {
        let [asset, attacker, defence, tests] = &row[..] else { panic!("not four cells: {row:?}") };
        assert!(![asset, attacker, defence].iter().any(|cell| cell.is_empty()), "{row:?}");
        let names: Vec<&str> = tests.split('`').skip(1).step_by(2).collect();
        assert!(!names.is_empty(), "no test keeps this promise: {row:?}");
        // A test without a file is in the file of the previous test.
        let mut file = "";
        for name in names {
            let test = name.rsplit_once("::").map_or(name, |(named, test)| {
                file = named;
                test
            });
            let text =
                fs::read_to_string(root().join(file)).unwrap_or_else(|e| panic!("{file}: {e}"));
            assert!(text.contains(&format!("fn {test}(")), "{file} has no test {test}");
        }
    }
}

/// Text outside the tables makes no promises, except how to report a problem and the limits of
/// protection.
#[test]
fn prose_between_the_tables_is_short() {
    let prose =
        document().lines().filter(|line| !line.starts_with('|')).map(str::len).sum::<usize>();
    assert!(prose < 4000, "{prose} bytes beside the tables: give a promise a row");
}

#[test]
fn every_limit_on_a_peer_is_listed_with_its_value_and_reason() {
    let mut expected = String::new();
    for (name, value, reason) in limits() {
        expected += &format!("| `{name}` | {value} | {reason} |\n");
    }
    let begin = "| limit | value | reason |\n|---|---|---|\n";
    let document = document();
    let at = document.find(begin).expect("SECURITY.md has a table of limits") + begin.len();
    let table: String = document[at..]
        .lines()
        .take_while(|line| line.starts_with('|'))
        .map(|l| format!("{l}\n"))
        .collect();
    assert!(table == expected, "SECURITY.md should list the limits like this:\n{expected}");
}

/// Name, value and reason of each constant in `crates/transfer/src/limits.rs`, and of those on trains.
fn limits() -> Vec<(String, String, String)> {
    let sources = ["crates/transfer/src/limits.rs", "crates/protocol/src/probe/train_budget.rs"];
    let source = sources.map(|source| fs::read_to_string(root().join(source)).unwrap()).concat();
    let (mut limits, mut reason) = (Vec::new(), Vec::new());
    for line in source.lines() {
        if let Some(words) = line.strip_prefix("/// ") {
            reason.push(words.to_owned());
        } else if let Some((head, value)) = line.split_once(" = ")
            && let Some((name, _)) =
                head.trim_start_matches("pub(crate) ").trim_start_matches("pub ").split_once(':')
            && let Some(name) = name.strip_prefix("const ")
            && name != "_"
        {
            let words = std::mem::take(&mut reason).join(" ").replace("[`", "`").replace("`]", "`");
            limits.push((name.to_owned(), in_words(value.trim_end_matches(';')), words));
        } else {
            reason.clear();
        }
    }
    assert!(limits.len() > 20, "{limits:?}");
    limits
}

/// A value in the form that readers expect: with numbers evaluated, and durations in seconds.
fn in_words(value: &str) -> String {
    let inside = |function: &str| {
        value
            .strip_prefix(&format!("Duration::{function}("))?
            .strip_suffix(')')?
            .trim()
            .parse::<u64>()
            .ok()
    };
    if let Some(seconds) = inside("from_secs") {
        return format!("{seconds} s");
    }
    if let Some(milliseconds) = inside("from_millis") {
        return format!("{milliseconds} ms");
    }
    let number = |text: &str| text.trim().replace('_', "").parse::<u64>().ok();
    let evaluated = number(value).or_else(|| {
        let two = |sign| value.split_once(sign).and_then(|(a, b)| Some((number(a)?, number(b)?)));
        let shifted = two(" << ").map(|(a, b)| a << b);
        shifted
            .or_else(|| two(" * ").map(|(a, b)| a * b))
            .or_else(|| two(" - ").map(|(a, b)| a - b))
    });
    match evaluated {
        Some(number) => grouped(number),
        None => format!("`{value}`"),
    }
}

#[test]
fn limit_values_are_formatted_for_readers() {
    for (value, words) in [
        ("Duration::from_secs(30)", "30 s"),
        ("1 << 16", "65,536"),
        ("4_000_000", "4,000,000"),
        ("9216 - 28", "9,188"),
        ("MAX_AHEAD", "`MAX_AHEAD`"),
    ] {
        assert_eq!(in_words(value), words);
    }
}
