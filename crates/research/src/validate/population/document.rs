use core::fmt::Write;

use super::{
    Agreement, ComparedValue, EnginePair, GOODPUT_MEDIAN, GOODPUT_NINE_OF_TEN,
    RETRANSMISSIONS_MEDIAN,
};
use crate::markdown::MarkdownTable;
use crate::page_abstract::Abstract;

const NOTES: &str = include_str!("../../../data/population_notes.md");

/// The document's text other than the numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PopulationInfo {
    /// The command that regenerates the document.
    pub command: String,
    /// The machine, its kernel and the date.
    pub machine: String,
    /// Runs without a valid certificate, with the reason.
    pub left_out: Vec<String>,
}

/// The comparison as a Markdown document.
pub fn population_document(pairs: &[EnginePair], info: &PopulationInfo) -> String {
    let result = verdict(pairs);
    let page = Abstract {
        question: "does the simulator's Linux agree with the kernel on random paths?",
        method: "each path runs once on the kernel, across the emulator, and under several seeds in the simulator.",
        result: &result,
        limitation: "one transfer over one link; no cross traffic.",
        command: "`sweetspot-research validate --population`",
    };
    let mut text = format!(
        "# The simulator's Linux and the kernel on random paths\n\n{page}Written by `{}` on {}; do not edit.\n\n{NOTES}\n\
         ## Agreement\n\n{}\n",
        info.command,
        info.machine,
        summary(pairs)
    );
    let larger = larger(pairs).map_or("None.\n".to_owned(), |table| table.to_string());
    let _ = writeln!(text, "## Larger differences\n\n{larger}");
    if !info.left_out.is_empty() {
        text.push_str("## Left out: not certified\n\n");
        for line in &info.left_out {
            let _ = writeln!(text, "* {line}");
        }
        text.push('\n');
    }
    let _ = write!(text, "## Every pair\n\n{}", every_pair(pairs));
    text
}

/// The comparison for a terminal, without the individual pairs.
pub fn population_text(pairs: &[EnginePair], left_out: &[String]) -> String {
    let mut text = format!("Result: {}\n", verdict(pairs));
    if !pairs.is_empty() {
        let _ = write!(
            text,
            "\nDifferences of the simulator from the kernel: half of the pairs differ by less than \"median\", nine of \
             ten by less than \"90 %\".\n{}",
            summary(pairs).aligned()
        );
    }
    if let Some(larger) = larger(pairs) {
        let bound = 100.0 * GOODPUT_NINE_OF_TEN;
        let _ = write!(text, "\nGoodput differs by more than {bound:.0} %:\n{}", larger.aligned());
    }
    for line in left_out {
        let _ = write!(text, "\nLeft out, because the emulation cannot be trusted: {line}");
    }
    text
}

/// The differences with their bounds.
fn verdict(pairs: &[EnginePair]) -> String {
    let Some(all) = Agreement::of(pairs) else {
        return "no pair of runs could be compared.".to_owned();
    };
    let words = all.kept().map(|kept| if kept { "kept" } else { "missed" });
    format!(
        "goodput differs by {:.1} % in the median (bound {:.0} %: {}) and by at most {:.1} % in nine of ten pairs (bound \
         {:.0} %: {}); packets sent again by a factor of {:.2} in the median (bound {RETRANSMISSIONS_MEDIAN}: {}).",
        100.0 * all.goodput[0],
        100.0 * GOODPUT_MEDIAN,
        words[0],
        100.0 * all.goodput[1],
        100.0 * GOODPUT_NINE_OF_TEN,
        words[1],
        all.retransmissions[0],
        words[2],
    )
}

/// Medians and 90 % quantiles: overall, by congestion control and by sizing.
fn summary(pairs: &[EnginePair]) -> MarkdownTable {
    let mut table = MarkdownTable::new(&[
        "",
        "pairs",
        "goodput, median",
        "90 %",
        "sent again, median",
        "90 %",
        "mean RTT, median",
        "90 %",
    ]);
    let mut row = |name: &str, chosen: &dyn Fn(&&EnginePair) -> bool| {
        let Some(of) = Agreement::of(pairs.iter().filter(chosen)) else { return };
        let percent = |[median, max]: [f64; 2]| {
            [format!("{:.1} %", 100.0 * median), format!("{:.1} %", 100.0 * max)]
        };
        let mut cells = vec![name.to_owned(), of.pairs.to_string()];
        cells.extend(percent(of.goodput));
        cells.extend(of.retransmissions.map(|factor| format!("{factor:.2}")));
        cells.extend(percent(of.rtt));
        table.row(&cells);
    };
    row("all", &|_| true);
    for name in names(pairs, |pair| &pair.congestion) {
        row(name, &|pair| pair.congestion == name);
    }
    for name in names(pairs, |pair| &pair.sizing) {
        row(name, &|pair| pair.sizing == name);
    }
    row("without random loss", &|pair| pair.loss == 0.0);
    row("with random loss", &|pair| pair.loss > 0.0);
    table
}

fn names(pairs: &[EnginePair], of: impl Fn(&EnginePair) -> &String) -> Vec<&str> {
    let mut names = Vec::new();
    for pair in pairs {
        let name = of(pair).as_str();
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// The pairs beyond the bound for nine of ten, with the known facts about each.
fn larger(pairs: &[EnginePair]) -> Option<MarkdownTable> {
    let mut table = MarkdownTable::new(&["run", "kernel", "simulator", "explained by"]);
    let is_larger =
        |pair: &&EnginePair| pair.difference(ComparedValue::Goodput) > GOODPUT_NINE_OF_TEN;
    let mut found = pairs.iter().filter(is_larger).peekable();
    found.peek()?;
    for pair in found {
        let mbit = |bps: f64| format!("{:.2} Mbit/s", bps / 1e6);
        table.row(&[
            name(pair),
            mbit(pair.lab.goodput_bps),
            mbit(pair.simulated(ComparedValue::Goodput)),
            reason(pair),
        ]);
    }
    Some(table)
}

fn reason(pair: &EnginePair) -> String {
    let runs: Vec<String> =
        pair.lab_again.iter().map(|run| format!("{:.2}", run.goodput_bps / 1e6)).collect();
    let again = match runs.is_empty() {
        true => String::new(),
        false => format!(" (again: {} Mbit/s)", runs.join(", ")),
    };
    if pair.is_chance(ComparedValue::Goodput) {
        "chance: the simulator's own runs with other seeds lie on both sides".to_owned()
    } else if pair.is_kernels_chance(ComparedValue::Goodput) {
        format!("chance: the kernel's own runs lie on both sides{again}")
    } else {
        format!("not understood{again}")
    }
}

fn name(pair: &EnginePair) -> String {
    let EnginePair { path, congestion, sizing, .. } = pair;
    format!("path {path}, {congestion}, {sizing}")
}

fn every_pair(pairs: &[EnginePair]) -> MarkdownTable {
    let mut table = MarkdownTable::new(&[
        "run",
        "Mbit/s",
        "RTT ms",
        "buffer pkt",
        "BDP",
        "loss %",
        "goodput: kernel",
        "sim",
        "off",
        "sent again: kernel",
        "sim",
        "mean RTT ms: kernel",
        "sim",
    ]);
    for pair in pairs {
        let of = |value| pair.simulated(value);
        table.row(&[
            name(pair),
            format!("{:.1}", pair.rate_mbit),
            format!("{:.1}", pair.rtt_ms),
            pair.buffer_packets.to_string(),
            format!("{:.2}", pair.buffer_bdp),
            format!("{:.3}", 100.0 * pair.loss),
            format!("{:.2}", pair.lab.goodput_bps / 1e6),
            format!("{:.2}", of(ComparedValue::Goodput) / 1e6),
            format!("{:+.1} %", 100.0 * (pair.ratio(ComparedValue::Goodput) - 1.0)),
            format!("{:.0}", pair.lab.retransmitted),
            format!("{:.0}", of(ComparedValue::Retransmissions)),
            format!("{:.1}", 1e3 * pair.lab.rtt_s),
            format!("{:.1}", 1e3 * of(ComparedValue::Rtt)),
        ]);
    }
    table
}
