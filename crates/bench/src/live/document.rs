use std::collections::BTreeMap;
use std::fmt::Write;

use sweetspot_report::{NOTES_BEGIN, NOTES_END};

use super::plan::plans;
use super::play::RunOutcome;
use super::targets::{Target, percent, ratios, targets};

/// The document, from the outcomes there are, by the names of their runs; `facts` name the
/// machine, `notes` were written by hand.
pub fn document(
    outcomes: &BTreeMap<String, RunOutcome>,
    via: &str,
    facts: &str,
    notes: &str,
) -> String {
    let mut text = format!(
        "# Measured on live connections of other programs\n\n\
         Downloads and uploads by unmodified programs across 100 Mbit/s and 40 ms (one BDP is 500 kB; TCP's\n\
         payload is at most 96.6 Mbit/s), senders by cubic, with and without `sweetspot tune run --via {via}`\n\
         (uploads: `--send`). Written by `make bench-live`.\n\n{facts}\n\n## Targets\n\n"
    );
    let targets = targets(outcomes);
    let met = targets.iter().filter(|t| t.met).count();
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{met} of {} targets are met.\n", targets.len());
    if !notes.is_empty() {
        let _ = writeln!(text, "{NOTES_BEGIN}\n\n{notes}\n\n{NOTES_END}\n");
    }
    text += "| target | measured | |\n|---|---|---|\n";
    for Target { words, measured, met } in &targets {
        let _ = writeln!(
            text,
            "| {words} | {measured} | {} |",
            if *met { "met" } else { "**missed**" }
        );
    }
    text += &left_alone(outcomes);
    text += "\n## Runs\n\n\
        *Queue* is the median of the bottleneck's after 3 s; *answer* the time to an answer of a second,\n\
        interactive connection after 3 s; *trust* the emulator's certificate.\n\n\
        | run | who | goodput Mbit/s | resent | drops | of these after 3 s | queue ms | answer ms: median | p99 | tuner's CPU | trust |\n\
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

/// Cost or gain of tuning under conditions where it can gain little.
fn left_alone(outcomes: &BTreeMap<String, RunOutcome>) -> String {
    let ratios = ratios(outcomes);
    if ratios.is_empty() {
        return String::new();
    }
    let mut text = "\n## Never slower than left alone\n\n\
        Goodput tuned as a share of goodput left alone, under conditions in which a limit has little to win;\n\
        of runs made several times the medians.\n\n\
        | condition | who | alone Mbit/s | tuned Mbit/s | ratio | queue ms: alone | tuned |\n\
        |---|---|--:|--:|--:|--:|--:|\n"
        .to_owned();
    for ratio in ratios {
        let [alone, tuned] = ratio.sides;
        let times = if ratio.runs > 1 { format!(", {} times", ratio.runs) } else { String::new() };
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "| {} | {}{times} | {:.2} | {:.2} | {} | {:.1} | {:.1} |",
            ratio.condition,
            ratio.who,
            alone.goodput_bps / 1e6,
            tuned.goodput_bps / 1e6,
            percent(ratio.ratio()),
            alone.queue_s * 1e3,
            tuned.queue_s * 1e3,
        );
    }
    text
}
