use std::collections::BTreeMap;
use std::fmt::Write;

use super::plan::{ALONE, Via, plans};
use super::run::RunOutcome;
use super::targets::{Ratio, Target, percent, ratios, row_of, seconds, targets};
use sweetspot_research::page_abstract::Abstract;

const ABSTRACT: Abstract<'_> = Abstract {
    question: "what do unmodified programs gain or lose when `sweetspot tune run` sizes their windows?",
    method: "downloads and uploads across an emulated path of 100 Mbit/s and 40 ms, untuned and tuned.",
    result: "the section *Targets* counts the targets met; its table marks the missed ones.",
    limitation: "one emulated rate and delay, on one machine.",
    command: "`make bench-live`",
};

/// The document, from the outcomes there are, by the names of their runs; `facts` name the
/// machine, `notes` is the section of hand-written ones.
pub fn document(outcomes: &BTreeMap<String, RunOutcome>, facts: &str, notes: &str) -> String {
    let mut text = format!(
        "# Measured on live connections of other programs\n\n{ABSTRACT}\
         Downloads and uploads by unmodified programs across 100 Mbit/s and 40 ms (one BDP is 500 kB; TCP's\n\
         payload is at most 96.6 Mbit/s), CUBIC senders unless a row names another, untuned and with\n\
         `sweetspot tune run --via pidfd` and `--via bpf` (uploads: `--send`), alternating. Written by\n\
         `make bench-live`.\n\n{facts}\n\n## Targets\n\n"
    );
    let targets = Via::ALL.map(|via| targets(outcomes, via));
    let met = |all: &[Target]| format!("{} of {}", all.iter().filter(|t| t.met).count(), all.len());
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "Via pidfd {} targets are met, via bpf {}.",
        met(&targets[0]),
        met(&targets[1])
    );
    text += notes;
    text += "\n| target | via pidfd | | via bpf | |\n|---|---|---|---|---|\n";
    let [pidfd, bpf] = targets;
    let words: Vec<&str> = pidfd.iter().chain(&bpf).map(|t| t.words).collect();
    let is_first = |i: &usize| !words[..*i].contains(&words[*i]);
    for words in (0..words.len()).filter(is_first).map(|i| words[i]) {
        let cells = [&pidfd, &bpf].map(|all| match all.iter().find(|t| t.words == words) {
            Some(Target { measured, met: true, .. }) => format!("{measured} | met"),
            Some(Target { measured, .. }) => format!("{measured} | **missed**"),
            None => " | ".to_owned(),
        });
        let _ = writeln!(text, "| {words} | {} |", cells.join(" | "));
    }
    text += &never_slower(outcomes);
    text += &second_transfers(outcomes);
    text += "\n## Runs\n\n\
        *Queue* is the median of the bottleneck's after 3 s; *answer* the time to an answer of a second,\n\
        interactive connection after 3 s; *trust* the emulator's certificate.\n\n\
        | run | program | goodput Mbit/s | retransmitted | drops | of these after 3 s | queue ms | answer ms: median | p99 | tuner's CPU | trust |\n\
        |---|---|--:|--:|--:|--:|--:|--:|--:|--:|---|\n";
    for plan in plans() {
        let Some(o) = outcomes.get(&plan.name) else { continue };
        let cpu = o.tuner_cpu.map_or(String::new(), |share| format!("{:.2} %", share * 100.0));
        let _ = writeln!(
            text,
            "| {} | {} | {:.2} | {} | {} | {} | {:.2} | {:.1} | {:.1} | {cpu} | {} |",
            plan.name,
            plan.client.name(),
            o.goodput_bps / 1e6,
            o.retransmitted,
            o.drops,
            o.drops_once_held,
            o.queue_s * 1e3,
            o.answer_s[1] * 1e3,
            o.answer_s[2] * 1e3,
            if o.trust { "yes" } else { "no" },
        );
    }
    text
}

/// The performance of a transfer over a path soon after another one.
fn second_transfers(outcomes: &BTreeMap<String, RunOutcome>) -> String {
    let mut rows = String::new();
    for plan in plans() {
        let Some(name) = plan.name.strip_suffix("/alone") else { continue };
        let Some(alone) = seconds(outcomes, name, ALONE) else { continue };
        let tuned = Via::ALL.map(|via| seconds(outcomes, name, via.name()));
        let cells = tuned.map(|second| {
            second.map_or(" | | ".to_owned(), |(rate, drops)| {
                format!("{:.1} | {} | {drops:.0}", rate / 1e6, percent(rate / alone.0))
            })
        });
        // Writing to a string cannot fail.
        let _ = writeln!(
            rows,
            "| {} | {} | {:.1} | {:.0} | {} |",
            row_of(name),
            plan.client.name(),
            alone.0 / 1e6,
            alone.1,
            cells.join(" | ")
        );
    }
    if rows.is_empty() {
        return rows;
    }
    format!(
        "\n## The second transfer over a path\n\n\
         Medians: the receiving program's goodput in the first second, tuned also as a share of untuned, and packets that\n\
         the bottleneck dropped since it began.\n\n\
         | row | program | untuned: Mbit/s | drops | pidfd: Mbit/s | | drops | bpf: Mbit/s | | drops |\n\
         |---|---|--:|--:|--:|--:|--:|--:|--:|--:|\n{rows}"
    )
}

/// Cost and gain of tuning in each row.
fn never_slower(outcomes: &BTreeMap<String, RunOutcome>) -> String {
    let [pidfd, bpf] = Via::ALL.map(|via| ratios(outcomes, via));
    let mut text = "\n## Never slower than untuned\n\n\
        Medians of each row's runs: goodput, tuned also as a share of untuned, the bottleneck's queue, and\n\
        packets that it dropped.\n\n\
        | row | program | runs | Mbit/s: untuned | pidfd | | bpf | | queue ms: untuned | pidfd | bpf | drops: untuned | pidfd | bpf |\n\
        |---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n"
        .to_owned();
    for plan in plans() {
        let Some(name) = plan.name.strip_suffix("/alone") else { continue };
        let both = [&pidfd, &bpf].map(|all| all.iter().find(|ratio| ratio.row == row_of(name)));
        let Some(any) = both.iter().flatten().next() else { continue };
        let rates = both.map(|ratio| {
            ratio.map_or(" | ".to_owned(), |ratio| {
                format!("{:.2} | {}", ratio.sides[1].goodput_bps / 1e6, percent(ratio.ratio()))
            })
        });
        let tuned = |what: fn(&Ratio) -> String| both.map(|r| r.map_or(String::new(), what));
        let [alone, _] = any.sides;
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "| {} | {} | {} | {:.2} | {} | {:.1} | {} | {:.0} | {} |",
            any.row,
            any.who,
            any.runs,
            alone.goodput_bps / 1e6,
            rates.join(" | "),
            alone.queue_s * 1e3,
            tuned(|r| format!("{:.1}", r.sides[1].queue_s * 1e3)).join(" | "),
            alone.drops,
            tuned(|r| format!("{:.0}", r.sides[1].drops)).join(" | "),
        );
    }
    text
}
