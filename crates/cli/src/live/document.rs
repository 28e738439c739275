use std::collections::BTreeMap;
use std::fmt::Write;

use sweetspot_report::{NOTES_BEGIN, NOTES_END};

use super::plan::plans;
use super::play::Outcome;

/// A target, what was measured, and whether that meets it.
struct Target {
    words: &'static str,
    measured: String,
    met: bool,
}

/// The document, from the outcomes there are, by the names of their runs; `facts` name the
/// machine, `notes` were written by hand.
pub fn document(outcomes: &BTreeMap<String, Outcome>, facts: &str, notes: &str) -> String {
    let mut text = format!(
        "# Measured on live connections of other programs\n\n\
         Downloads by unmodified programs across 100 Mbit/s and 40 ms (one BDP is 500 kB; TCP's payload\n\
         is at most 96.6 Mbit/s), senders by cubic, with and without `sweetspot tune run`. Written by\n\
         `make bench-live`.\n\n{facts}\n\n## Targets\n\n"
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

fn targets(outcomes: &BTreeMap<String, Outcome>) -> Vec<Target> {
    let mut all = Vec::new();
    let pair = |name: &str| {
        outcomes.get(&format!("{name}/alone")).zip(outcomes.get(&format!("{name}/tuned")))
    };
    if let Some((alone, tuned)) = pair("deep/curl") {
        all.extend(deep(alone, tuned));
    }
    if let Some((alone, tuned)) = pair("small/curl") {
        let ratio = tuned.goodput_bps / alone.goodput_bps;
        all.push(target(
            "buffer 0.25 BDP: goodput at least that of untuned",
            percent(ratio),
            ratio >= 1.0,
        ));
        let cut = cut(alone.retransmitted as f64, tuned.retransmitted as f64);
        let words = "buffer 0.25 BDP: retransmissions cut by 90 %";
        all.push(target(
            words,
            format!("{} ({} -> {})", percent(cut), alone.retransmitted, tuned.retransmitted),
            cut >= 0.9,
        ));
    }
    if let Some(change) = outcomes.get("change/curl/tuned") {
        // TCP's payload on a path of 100 Mbit/s: 1448 of 1500 bytes.
        let optima = [50e6, 100e6].map(|rate| rate * 1448.0 / 1500.0);
        let words = [
            "rate halves: within 5 % of the new optimum in 20 RTT",
            "rate doubles: within 5 % of the new optimum in 20 RTT",
        ];
        for ((words, optimum), (rate, queue)) in
            words.into_iter().zip(optima).zip(&change.after_changes)
        {
            let share = rate / optimum;
            let measured =
                format!("{} of its payload, queue {:.1} ms", percent(share), queue * 1e3);
            all.push(target(words, measured, share >= 0.95));
        }
    }
    if let Some((alone, tuned)) = pair("five/curl") {
        let (before, after) = (jain(&alone.each_bps), jain(&tuned.each_bps));
        let measured = format!("{after:.3} (untuned {before:.3})");
        all.push(target("five downloads share within Jain 0.95", measured, after >= 0.95));
    }
    if let Some(cpu) = outcomes.get("hundred/iperf3/tuned").and_then(|o| o.tuner_cpu) {
        all.push(target("under 1 % of a core for 100 connections", percent(cpu), cpu < 0.01));
    }
    all
}

fn deep(alone: &Outcome, tuned: &Outcome) -> [Target; 4] {
    let ratio = tuned.goodput_bps / alone.goodput_bps;
    // What lies above the least time to an answer is the queue.
    let above = |o: &Outcome, quantile: usize| {
        o.answer_s[quantile] - alone.answer_s[0].min(tuned.answer_s[0])
    };
    let queue = cut(alone.queue_s, tuned.queue_s);
    let p99 = cut(above(alone, 2), above(tuned, 2));
    [
        target("buffer 2 BDP: curl's goodput within 2 % of untuned", percent(ratio), ratio >= 0.98),
        target(
            "buffer 2 BDP: standing queue cut by 80 %",
            format!(
                "{} ({:.1} -> {:.1} ms)",
                percent(queue),
                alone.queue_s * 1e3,
                tuned.queue_s * 1e3
            ),
            queue >= 0.8,
        ),
        target(
            "buffer 2 BDP: interactive p99 above the minimum cut by 80 %",
            format!(
                "{} (p99 {:.1} -> {:.1} ms)",
                percent(p99),
                alone.answer_s[2] * 1e3,
                tuned.answer_s[2] * 1e3
            ),
            p99 >= 0.8,
        ),
        target(
            "buffer 2 BDP: no drops once held",
            tuned.drops_once_held.to_string(),
            tuned.drops_once_held == 0,
        ),
    ]
}

fn target(words: &'static str, measured: String, met: bool) -> Target {
    Target { words, measured, met }
}

fn cut(before: f64, after: f64) -> f64 {
    if before > 0.0 { 1.0 - after / before } else { 0.0 }
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// Jain, Chiu and Hawe 1984: (sum x)^2 / (n sum x^2).
fn jain(rates: &[f64]) -> f64 {
    let sum: f64 = rates.iter().sum();
    let squares: f64 = rates.iter().map(|x| x * x).sum();
    if squares > 0.0 { sum * sum / (rates.len() as f64 * squares) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fairness_is_one_where_all_have_the_same_and_a_nth_where_one_has_all() {
        assert_eq!(jain(&[2.0, 2.0, 2.0]), 1.0);
        assert_eq!(jain(&[5.0, 0.0, 0.0, 0.0, 0.0]), 0.2);
        assert_eq!(jain(&[]), 0.0);
    }
}
