//! The man page on scenarios: docs/scenario.md as roff.

use clap_mangen::roff::{Inline, Roff, bold, roman};

/// The chapter of the documentation that becomes the page.
const CHAPTER: &str = include_str!("../../../../../docs/scenario.md");
pub const FILE: &str = "sweetspot-scenario.5";
/// Sections about programs that are not installed.
const NOT_INSTALLED: [&str; 1] = ["Comparing engines"];

/// The man page, with `date` and `source` in its footer.
pub fn text(date: &str, source: &str) -> String {
    let mut page = Roff::new();
    page.control("TH", ["sweetspot-scenario", "5", date, source, "File formats"]);
    page.control("SH", ["NAME"]);
    page.text([roman("sweetspot-scenario - the file that sweetspot run, sweep, emulate and advise read, and measure writes")]);
    page.control("SH", ["DESCRIPTION"]);
    for section in CHAPTER.split("\n## ") {
        let (title, body) = section.split_once('\n').unwrap_or((section, ""));
        if NOT_INSTALLED.contains(&title) {
            continue;
        }
        if !title.starts_with('#') {
            page.control("SH", [heading(title).as_str()]);
        }
        blocks(&mut page, body);
    }
    page.control("SH", ["SEE ALSO"]);
    let others = [
        "sweetspot-run",
        "sweetspot-sweep",
        "sweetspot-emulate",
        "sweetspot-advise-window",
        "sweetspot-measure",
        "sweetspot-report",
    ];
    let names = others.map(|name| vec![bold(name), roman("(1), ")]).concat();
    page.text([names, vec![bold("sweetspot"), roman("(7)")]].concat());
    page.render()
}

/// A title in capitals, unless it is a name from the scenario file.
fn heading(title: &str) -> String {
    if title.contains('`') { title.replace('`', "") } else { title.to_uppercase() }
}

/// Converts paragraphs, lists, tables and examples.
fn blocks(page: &mut Roff, body: &str) {
    let mut lines = body.lines().peekable();
    while let Some(line) = lines.next() {
        if line.starts_with("```") {
            page.control("PP", []);
            page.control("EX", []);
            for line in lines.by_ref().take_while(|line| !line.starts_with("```")) {
                page.text([roman(line)]);
            }
            page.control("EE", []);
        } else if let Some(head) = cells(line) {
            while let Some(row) = lines.next_if(|line| line.starts_with('|')) {
                if let Some(row) = cells(row).filter(|_| !row.starts_with("|---")) {
                    entry(page, &head, &row);
                }
            }
        } else if !line.is_empty() {
            let (control, mut text) = match line.strip_prefix("- ") {
                Some(item) => (("IP", vec!["\\(bu", "2"]), item.to_owned()),
                None => (("PP", Vec::new()), line.to_owned()),
            };
            let goes_on = |line: &&str| {
                !line.is_empty() && !["- ", "|", "```"].iter().any(|mark| line.starts_with(mark))
            };
            while let Some(more) = lines.next_if(goes_on) {
                text = text + " " + more.trim_start();
            }
            page.control(control.0, control.1);
            page.text(inlines(&text));
        }
    }
}

/// The cells of a table row; `None` if the line is not a table row.
fn cells(line: &str) -> Option<Vec<&str>> {
    let row = line.strip_prefix('|')?.strip_suffix('|')?;
    Some(row.split('|').map(str::trim).collect())
}

/// Writes a row as an entry: the first cell is the name and the second its meaning; other cells get
/// the heading of their column.
fn entry(page: &mut Roff, head: &[&str], row: &[&str]) {
    let [name, meaning, ..] = row else { return };
    let mut text = (*meaning).to_owned();
    for (head, cell) in head.iter().zip(row).skip(2).filter(|(_, cell)| !cell.is_empty()) {
        if *cell == "required" {
            text += ". Required";
            continue;
        }
        let mut letters = head.chars();
        let first =
            letters.next().map_or(String::new(), |letter| letter.to_uppercase().to_string());
        text += &format!(". {first}{}: {cell}", letters.as_str());
    }
    page.control("TP", []);
    page.text(inlines(name));
    page.text(inlines(&text));
}

/// Text with its `code` in bold, and a [link](page.md) reduced to its words.
fn inlines(text: &str) -> Vec<Inline> {
    let parts = text.split('`').enumerate();
    parts.map(|(i, part)| if i % 2 == 1 { bold(part) } else { roman(unlinked(part)) }).collect()
}

fn unlinked(text: &str) -> String {
    let link = text
        .split_once("](")
        .and_then(|(before, after)| Some((before.rsplit_once('[')?, after.split_once(')')?.1)));
    match link {
        Some(((before, words), after)) => format!("{before}{words}{}", unlinked(after)),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use sweetspot_scenario::{Scenario, ScenarioError};
    use sweetspot_sizing::{CongestionChoice, EventKind, SizingPhase};
    use sweetspot_units::{Bytes, Duration, Rate};

    use super::*;

    const PATH: &str =
        "duration = \"1s\"\n[path]\nrate = \"1Mbit/s\"\nrtt = \"10ms\"\nbuffer = \"10pkt\"\n";
    const HOP: &str = "duration = \"1s\"\n[path]\nrtt = \"10ms\"\n[[path.hop]]\nrate = \"1Mbit/s\"\nbuffer = \"10pkt\"\n";

    /// The keys that the parser allows in place of the unknown key `wrong` in `text`.
    fn keys(text: &str, wrong: &str) -> Vec<String> {
        match Scenario::parse_with(text, &[format!("{wrong}=1")]) {
            Err(ScenarioError::UnknownKey { allowed, .. }) => {
                allowed.split(", ").map(str::to_owned).collect()
            }
            other => panic!("{wrong}: {other:?}"),
        }
    }

    #[test]
    fn the_page_lists_every_key_that_the_parser_accepts() {
        let mut known: BTreeSet<String> = BTreeSet::new();
        let add = |known: &mut BTreeSet<String>, more: &str, wrong: &str| {
            known.extend(keys(&format!("{PATH}{more}"), wrong));
        };
        for (more, wrong) in [
            ("", "zz"),
            ("", "path.zz"),
            ("[path.backward]\n", "path.backward.zz"),
            ("[[path.change]]\nat = \"1s\"\nrate = \"2Mbit/s\"\n", "path.change.0.zz"),
            ("[[path.trace]]\ncontent = \"0,1Mbit/s\\n1,2Mbit/s\\n\"\n", "path.trace.0.zz"),
            ("[tcp]\n", "tcp.zz"),
            ("[[transfer]]\n", "transfer.0.zz"),
        ] {
            add(&mut known, more, wrong);
        }
        known.extend(keys(HOP, "path.hop.0.zz"));
        for kind in [
            "\"pareto\"\ncount = 1\nrate = \"1Mbit/s\"",
            "\"poisson\"\ncount = 1\nrate = \"1Mbit/s\"",
            "\"elephants\"\ncount = 1",
            "\"mice\"\ncount = 1\npackets = [1, 2]\nsleep = [\"1s\", \"2s\"]",
            "\"closed-loop\"\nusers = 1\nsize_mean = \"10kB\"\nthink_mean = \"1s\"\nsize_shape = 1.5",
            "\"arrivals\"\nrate = \"1Mbit/s\"\nsize_mean = \"10kB\"\nsize_shape = 1.5",
        ] {
            add(&mut known, &format!("[[cross]]\nkind = {kind}\n"), "cross.0.zz");
        }
        // Examples of keys for a hop, TCP, cross traffic, a transfer and a trace.
        for key in ["jitter_order", "min_rto", "think_mean", "sizing", "file"] {
            assert!(known.contains(key), "{key}: {known:?}");
        }
        let page = text("2026-11-30", "sweetspot 0.1.0");
        // Some keys appear with their form, such as `packets = [min, max]`, and tables in brackets.
        let is_there = |key: &&String| {
            let forms = ["\\fB{}\\fR", "\\fB{} = ", "[{}", "path.{}]"];
            forms.iter().any(|form| page.contains(&form.replace("{}", key)))
        };
        let missing: Vec<&String> = known.iter().filter(|key| !is_there(key)).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }

    #[test]
    fn the_page_lists_every_sizing_policy() {
        let page = text("2026-11-30", "sweetspot 0.1.0").replace("\\-", "-");
        // `bdp1 to bdp6` is written as a range.
        for name in sweetspot_sizing::Sizing::NAMES.map(|name| name.split(' ').next()) {
            let name = name.expect("a name");
            assert!(page.contains(&format!("\\fB{name}\\fR")), "{name}: {page}");
        }
    }

    #[test]
    fn the_page_lists_every_controller_event() {
        let (_, events) = CHAPTER.split_once("Sizing controllers emit these events").unwrap();
        let (table, _) = events.split_once("Each bandwidth-delay product").unwrap();
        let (rate, rtt) = (Rate::ZERO, Duration::ZERO);
        let kinds = [
            EventKind::CapacityEstimated { rate, rtt },
            EventKind::Limited { window: Bytes::ZERO },
            EventKind::Lifted,
            EventKind::Saturated { rate, rtt },
            EventKind::Congested,
            EventKind::Switched { to: CongestionChoice::Own },
        ];
        let phases = SizingPhase::ALL.map(SizingPhase::name);
        for name in kinds.iter().map(EventKind::name).chain(phases) {
            assert!(table.contains(&format!("`{name}`")), "{name}: {table}");
        }
    }

    #[test]
    fn the_page_has_the_text_of_the_chapter_without_its_markup() {
        let page = text("2026-11-30", "sweetspot 0.1.0");
        assert!(page.contains(".SH \"TOP LEVEL\"") && page.contains(".SH [path]"), "{page}");
        let seed = ".TP\n\\fBseed\\fR\nseed for all random numbers. Default: 1\n";
        assert!(page.contains(seed), "{page}");
        assert!(page.contains("length of the measurement. Required\n"), "{page}");
        for mark in ["](", "```", "|---", "sweetspot\\-research"] {
            assert!(!page.contains(mark), "{mark}");
        }
        assert_eq!(unlinked("see [a](b.md) and [[cross]], [c](d)."), "see a and [[cross]], c.");
    }

    #[test]
    fn the_example_parses_as_a_scenario() {
        let (_, example) = CHAPTER.split_once("```toml\n").expect("an example");
        let (example, _) = example.split_once("```").expect("its end");
        let scenario = Scenario::parse(example).expect("a scenario");
        assert_eq!((scenario.transfers.len(), scenario.cross.len()), (1, 1));
    }
}
