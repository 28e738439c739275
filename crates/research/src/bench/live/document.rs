use std::collections::BTreeMap;
use std::fmt::Write;

use super::plan::{ALONE, Via, plans};
use super::run::RunOutcome;
use super::targets::{Ratio, Target, percent, ratios, row_of, seconds, targets};
use sweetspot_research::page_abstract::Abstract;

fn page(result: &str) -> Abstract<'_> {
    Abstract {
        question: "what do unmodified programs gain or lose when `sweetspot tune run` sizes their windows?",
        method: "downloads and uploads across an emulated path of 100 Mbit/s and 40 ms, untuned and tuned.",
        result,
        limitation: "one emulated rate and delay, on one machine.",
        command: "`make bench-live`",
    }
}

/// The document from the available outcomes, by run name; `facts` describes the machine, `notes` is
/// the hand-written section. A mechanism without outcomes has no columns.
pub fn document(outcomes: &BTreeMap<String, RunOutcome>, facts: &str, notes: &str) -> String {
    let ways = measured(outcomes);
    let targets: Vec<Vec<Target>> = ways.iter().map(|via| targets(outcomes, *via)).collect();
    let met = ways.iter().zip(&targets).map(|(via, all)| {
        format!("{} of {} via {}", all.iter().filter(|t| t.met).count(), all.len(), via.name())
    });
    let met = met.collect::<Vec<_>>().join(", ");
    let result = format!("targets met: {met}; the table below marks the missed ones.");
    let mut text = format!(
        "# Tuning other programs via {}\n\n{}\
         Downloads and uploads by unmodified programs across 100 Mbit/s and 40 ms (one BDP is 500 kB; TCP's\n\
         payload is at most 96.6 Mbit/s), with CUBIC senders unless a row names another, untuned and tuned by\n\
         `sweetspot tune run`, {} (uploads: `--send`), alternating. Written by\n\
         `make bench-live`.\n\n{facts}\n\n## Targets\n\nTargets met: {met}.\n{notes}",
        joined(&ways, " and ", |via| via.name().to_owned()),
        page(&result),
        joined(&ways, " and ", |via| format!("`--via {}`", via.name())),
    );
    let _ = writeln!(
        text,
        "\n| target | {} |\n|---|{}",
        cells(&ways, |via| format!("via {} |", via.name())),
        "---|---|".repeat(ways.len())
    );
    let words: Vec<&str> = targets.iter().flatten().map(|t| t.words).collect();
    let is_first = |i: &usize| !words[..*i].contains(&words[*i]);
    for words in (0..words.len()).filter(is_first).map(|i| words[i]) {
        let cells = cells(&targets, |all| match all.iter().find(|t| t.words == words) {
            Some(Target { measured, met: true, .. }) => format!("{measured} | met"),
            Some(Target { measured, .. }) => format!("{measured} | **missed**"),
            None => " | ".to_owned(),
        });
        let _ = writeln!(text, "| {words} | {cells} |");
    }
    text += &never_slower(outcomes, &ways);
    text += &second_transfers(outcomes, &ways);
    text += "\n## Runs\n\n\
        *Queue* is the median of the bottleneck's queue after 3 s, *answer* the response time of a second,\n\
        interactive connection after 3 s, and *trust* the emulator's certificate.\n\n\
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

/// The mechanisms with outcomes, or all mechanisms if there are no outcomes.
fn measured(outcomes: &BTreeMap<String, RunOutcome>) -> Vec<Via> {
    let plans = plans();
    let has_outcome = |via: &Via| {
        plans.iter().any(|plan| plan.via == Some(*via) && outcomes.contains_key(&plan.name))
    };
    let ways: Vec<Via> = Via::ALL.into_iter().filter(has_outcome).collect();
    if ways.is_empty() { Via::ALL.to_vec() } else { ways }
}

/// The cells of a table row.
fn cells<T>(all: &[T], cell: impl Fn(&T) -> String) -> String {
    joined(all, " | ", cell)
}

fn joined<T>(all: &[T], between: &str, text: impl Fn(&T) -> String) -> String {
    all.iter().map(text).collect::<Vec<_>>().join(between)
}

/// The performance of a transfer over a path soon after another one.
fn second_transfers(outcomes: &BTreeMap<String, RunOutcome>, ways: &[Via]) -> String {
    let mut rows = String::new();
    for plan in plans() {
        let Some(name) = plan.name.strip_suffix("/alone") else { continue };
        let Some(alone) = seconds(outcomes, name, ALONE) else { continue };
        let tuned = cells(ways, |via| {
            seconds(outcomes, name, via.name()).map_or(" | | ".to_owned(), |(rate, drops)| {
                format!("{:.1} | {} | {drops:.0}", rate / 1e6, percent(rate / alone.0))
            })
        });
        // Writing to a string cannot fail.
        let _ = writeln!(
            rows,
            "| {} | {} | {:.1} | {:.0} | {tuned} |",
            row_of(name),
            plan.client.name(),
            alone.0 / 1e6,
            alone.1,
        );
    }
    if rows.is_empty() {
        return rows;
    }
    format!(
        "\n## The second transfer over a path\n\n\
         Medians: the receiving program's goodput in the first second, tuned also as a share of untuned, and packets that\n\
         the bottleneck dropped since it began.\n\n\
         | row | program | untuned: Mbit/s | drops | {} |\n\
         |---|---|--:|--:|{}\n{rows}",
        cells(ways, |via| format!("{}: Mbit/s | | drops", via.name())),
        "--:|--:|--:|".repeat(ways.len())
    )
}

/// Cost and benefit of tuning in each row.
fn never_slower(outcomes: &BTreeMap<String, RunOutcome>, ways: &[Via]) -> String {
    let all: Vec<Vec<Ratio>> = ways.iter().map(|via| ratios(outcomes, *via)).collect();
    let names = cells(ways, |via| via.name().to_owned());
    let mut text = format!(
        "\n## Never slower than untuned\n\n\
        Medians of each row's runs: goodput, tuned also as a share of untuned, the bottleneck's queue, and\n\
        packets that it dropped.\n\n\
        | row | program | runs | Mbit/s: untuned | {} | queue ms: untuned | {names} | drops: untuned | {names} |\n\
        |---|---|--:|--:|{}--:|--:|\n",
        cells(ways, |via| format!("{} |", via.name())),
        "--:|".repeat(4 * ways.len())
    );
    for plan in plans() {
        let Some(name) = plan.name.strip_suffix("/alone") else { continue };
        let row = all.iter().map(|all| all.iter().find(|ratio| ratio.row == row_of(name)));
        let row: Vec<Option<&Ratio>> = row.collect();
        let Some(any) = row.iter().flatten().next() else { continue };
        let rates = cells(&row, |ratio| {
            ratio.map_or(" | ".to_owned(), |ratio| {
                format!("{:.2} | {}", ratio.sides[1].goodput_bps / 1e6, percent(ratio.ratio()))
            })
        });
        let tuned = |what: fn(&Ratio) -> String| cells(&row, |r| r.map_or(String::new(), what));
        let [alone, _] = any.sides;
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "| {} | {} | {} | {:.2} | {rates} | {:.1} | {} | {:.0} | {} |",
            any.row,
            any.who,
            any.runs,
            alone.goodput_bps / 1e6,
            alone.queue_s * 1e3,
            tuned(|r| format!("{:.1}", r.sides[1].queue_s * 1e3)),
            alone.drops,
            tuned(|r| format!("{:.0}", r.sides[1].drops)),
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::live::run::SecondTransfer;

    /// A document on runs with these name endings, all with the same outcome.
    fn page(ends: &[&str]) -> String {
        let outcome = RunOutcome {
            goodput_bps: 9e7,
            each_bps: vec![9e7],
            retransmitted: 0,
            drops: 0,
            drops_once_held: 0,
            queue_s: 0.002,
            answer_s: [0.04, 0.04, 0.05],
            after_changes: Vec::new(),
            share_beside_rival: None,
            second: Some(SecondTransfer { first_second_bps: 7e7, drops: 0 }),
            tuner_cpu: None,
            trust: true,
        };
        let names = plans().into_iter().map(|plan| plan.name);
        let kept = names.filter(|name| ends.iter().any(|end| name.ends_with(end)));
        document(&kept.map(|name| (name, outcome.clone())).collect(), "", "")
    }

    #[test]
    fn an_unmeasured_mechanism_has_no_columns() {
        let (both, one) = (page(&["/alone", "/pidfd", "/bpf"]), page(&["/alone", "/pidfd"]));
        assert!(both.contains("| target | via pidfd | | via bpf | |\n|---|---|---|---|---|\n"));
        assert!(one.contains("| target | via pidfd | |\n|---|---|---|\n"), "{one}");
        assert!(!one.contains("bpf"), "{one}");
        let empty = |line: &&str| line.ends_with("|  |") || line.ends_with("| | |");
        assert_eq!(one.lines().find(empty), None);
        // Every table row has as many cells as its heading.
        for page in [&both, &one] {
            let cells = |line: &str| line.matches('|').count();
            for pair in page.lines().collect::<Vec<_>>().windows(2) {
                if pair.iter().all(|line| line.starts_with('|')) {
                    assert_eq!(cells(pair[0]), cells(pair[1]), "{pair:?}");
                }
            }
        }
    }
}
