//! The errors of the measurements, as a document.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::Value;
use sweetspot_statistics::Sorted;

use super::run::PathResult;
use sweetspot_research::page_abstract::Abstract;

const ABSTRACT: Abstract<'_> = Abstract {
    question: "how close does `sweetspot measure` come to a path's true rate, delay, buffer, loss and queue discipline?",
    method: "random emulated paths, most of them with cross traffic; the emulator's settings are the truth.",
    result: "the first table has the share of paths within the bound of each quantity, and marks missed targets.",
    limitation: "emulated paths with one bottleneck.",
    command: "`make bench-measure`",
};

/// A quantity, its error bound, and the share of paths on which the error must be within the bound.
struct QuantityTarget {
    name: &'static str,
    bound: &'static str,
    share: f64,
    /// The error of the measurement and whether it is within the bound; `None` if the path does not have the
    /// quantity.
    judge: fn(&PathResult) -> Option<Judgement>,
}

enum Judgement {
    /// The error, whether it is within the bound, and whether the interval contains the true value, if an interval
    /// was given.
    Off(f64, bool, Option<bool>),
    /// The measurement reported that it cannot determine the quantity.
    Untold,
}

fn down(result: &PathResult) -> &Value {
    &result.measured["directions"][0]
}

/// The name of a queue discipline, as far as it can be recognised from outside.
fn class(queue: &str) -> &'static str {
    match queue {
        "drop-tail" => "drop-tail",
        "fq-codel" => "per-flow",
        _ => "active-queue-management",
    }
}

/// Whether the measurement says that the buffer is full before an AQM acts.
fn is_open(discipline: &Value) -> bool {
    let why = discipline["unknown"].as_str();
    why.is_some_and(|why| why.starts_with("drop-tail or an active queue management"))
}

fn relative(found: &Value, truth: f64, bound: f64) -> Judgement {
    found["value"].as_f64().map_or(Judgement::Untold, |value| {
        let off = value / truth - 1.0;
        Judgement::Off(off, off.abs() <= bound, holds(found, truth))
    })
}

fn holds(found: &Value, truth: f64) -> Option<bool> {
    let (low, high) = (found["low"].as_f64()?, found["high"].as_f64()?);
    Some((low..=high).contains(&truth))
}

const TARGETS: [QuantityTarget; 7] = [
    QuantityTarget {
        name: "capacity",
        bound: "3 %",
        share: 0.9,
        judge: |r| Some(relative(&down(r)["capacity_bps"], r.rate_bps, 0.03)),
    },
    QuantityTarget {
        name: "available bandwidth, others present",
        bound: "10 %",
        share: 0.8,
        judge: |r| {
            r.cross.as_ref()?;
            Some(relative(&down(r)["available_bps"], r.available_bps, 0.1))
        },
    },
    QuantityTarget {
        name: "buffer, of drop-tail queues",
        bound: "15 %",
        share: 0.9,
        judge: |r| {
            // Other disciplines drop before the buffer is full, or barely fill it.
            let fills = r.queue == "drop-tail";
            fills.then(|| relative(&down(r)["buffer_bytes"], r.buffer_bytes, 0.15))
        },
    },
    QuantityTarget {
        name: "base RTT",
        bound: "0.3 ms",
        share: 0.9,
        judge: |r| {
            let found = &r.measured["round_trip"]["base_s"];
            Some(found["value"].as_f64().map_or(Judgement::Untold, |value| {
                let off = value - r.rtt_s;
                Judgement::Off(off, off.abs() <= 0.3e-3, holds(found, r.rtt_s))
            }))
        },
    },
    QuantityTarget {
        name: "random loss, if there is some",
        bound: "a factor of 1.5",
        share: 0.9,
        judge: |r| {
            let found = &down(r)["loss"];
            (r.loss > 0.0).then(|| {
                found["value"].as_f64().map_or(Judgement::Untold, |value| {
                    let off = value / r.loss - 1.0;
                    let within = (1.0 / 1.5 - 1.0..=0.5).contains(&off);
                    Judgement::Off(off, within, holds(found, r.loss))
                })
            })
        },
    },
    QuantityTarget {
        name: "queue discipline, if it can show",
        bound: "right",
        share: 0.9,
        judge: |r| {
            let found = &down(r)["discipline"];
            match found["value"].as_str() {
                None if is_open(found) => None,
                None => Some(Judgement::Untold),
                Some(found) => Some(Judgement::Off(0.0, found == class(&r.queue), None)),
            }
        },
    },
    QuantityTarget {
        name: "reported as drop-tail or a hidden AQM",
        bound: "right",
        share: 0.9,
        judge: |r| {
            let may = class(&r.queue) != "per-flow";
            is_open(&down(r)["discipline"]).then_some(Judgement::Off(0.0, may, None))
        },
    },
];

/// The document on `results`, by name; `facts` is a table, `notes` holds the hand-written remarks of the previous
/// version.
pub fn document(results: &BTreeMap<String, PathResult>, facts: &str, notes: &str) -> String {
    let trusted = results.values().filter(|result| result.trust).count();
    let mut text = format!(
        "# Measured paths and their true properties\n\n{ABSTRACT}\
         `sweetspot measure --direction down` on {} random paths (2 to 100 Mbit/s, 5 to 200 ms, buffers of 0.1 to 3 BDP, \
         30 % with random loss, 25 % with jitter, 60 % with Poisson, Pareto or TCP traffic of 10 to 70 % of the rate, \
         45 % with RED, CoDel or FQ-CoDel in the place of drop-tail), each run by the emulator; {trusted} of them \
         certified. The truth is the emulator's settings and, for other traffic, its mean rate (for TCP, the rate \
         before the measurement).\n\n{facts}\n\n",
        results.len()
    );
    // Writing to a String cannot fail.
    let _ = write!(
        text,
        "| quantity | within | target share | certified paths | all paths | no result | interval contains it | \
         off by: 10 % | 50 % | 90 % |\n\
         |---|---|--:|--:|--:|--:|--:|--:|--:|--:|\n"
    );
    for target in &TARGETS {
        let _ = writeln!(text, "{}", row(target, results));
    }
    text += "\n*Off by* is signed: quantiles over all paths with a result.\n";
    text += notes;
    text += "\n## Misses\n\n";
    for target in &TARGETS {
        misses(&mut text, target, results);
    }
    every_path(&mut text, results);
    text
}

fn row(target: &QuantityTarget, results: &BTreeMap<String, PathResult>) -> String {
    let judged = |trusted: bool| {
        let counted = results.values().filter(move |result| result.trust || !trusted);
        let all: Vec<Judgement> = counted.filter_map(|result| (target.judge)(result)).collect();
        let hits = all.iter().filter(|judged| matches!(judged, Judgement::Off(_, true, _))).count();
        (hits, all)
    };
    let share = |(hits, all): &(usize, Vec<Judgement>)| {
        if all.is_empty() {
            return "none".to_owned();
        }
        let part = *hits as f64 / all.len() as f64;
        let missed = if part < target.share { ", missed" } else { "" };
        format!("{hits} of {} ({:.0} %{missed})", all.len(), part * 100.0)
    };
    let (certified, all) = (judged(true), judged(false));
    let untold = all.1.iter().filter(|judged| matches!(judged, Judgement::Untold)).count();
    let intervals: Vec<bool> = all
        .1
        .iter()
        .filter_map(|judged| match judged {
            Judgement::Off(.., holds) => *holds,
            Judgement::Untold => None,
        })
        .collect();
    let held = match intervals.len() {
        0 => String::new(),
        n => format!("{} of {n}", intervals.iter().filter(|holds| **holds).count()),
    };
    let off: Sorted = all
        .1
        .iter()
        .filter_map(|judged| match judged {
            Judgement::Off(off, ..) => Some(*off),
            Judgement::Untold => None,
        })
        .collect();
    let quantile = |share: f64| {
        if target.bound == "right" {
            return String::new();
        }
        off.quantile(share).map_or("".to_owned(), |off| shown(target, off))
    };
    format!(
        "| {} | {} | {:.0} % | {} | {} | {untold} | {held} | {} | {} | {} |",
        target.name,
        target.bound,
        target.share * 100.0,
        share(&certified),
        share(&all),
        quantile(0.1),
        quantile(0.5),
        quantile(0.9)
    )
}

fn shown(target: &QuantityTarget, off: f64) -> String {
    match target.bound {
        "right" => "another".to_owned(),
        "0.3 ms" => format!("{:+.2} ms", off * 1e3),
        _ => format!("{:+.1} %", off * 100.0),
    }
}

fn misses(text: &mut String, target: &QuantityTarget, results: &BTreeMap<String, PathResult>) {
    let missed: Vec<String> = results
        .iter()
        .filter_map(|(name, result)| match (target.judge)(result)? {
            Judgement::Off(_, true, _) => None,
            Judgement::Off(off, false, _) => Some(format!("{name} ({})", shown(target, off))),
            Judgement::Untold => Some(format!("{name} (no result)")),
        })
        .collect();
    if !missed.is_empty() {
        let _ = writeln!(text, "- {}: {}", target.name, missed.join(", "));
    }
}

fn every_path(text: &mut String, results: &BTreeMap<String, PathResult>) {
    let _ = write!(
        text,
        "\n## Every path\n\nFound / true. iperf3: payload rate of one TCP connection with the same cross traffic. \
         If that is TCP, or if other flows take a share, iperf3 measures neither the capacity nor the available \
         bandwidth.\n\n\
         | path | capacity, Mbit/s | available, Mbit/s | buffer, kB | base RTT, ms | loss, % | discipline found | iperf3, Mbit/s | certified |\n\
         |---|--:|--:|--:|--:|--:|---|--:|---|\n"
    );
    for (name, r) in results {
        let d = down(r);
        let pair = |found: &Value, truth: f64, scale: f64| {
            let found = found["value"].as_f64();
            let found = found.map_or("-".to_owned(), |f| format!("{:.2}", f / scale));
            format!("{found} / {:.2}", truth / scale)
        };
        let _ = writeln!(
            text,
            "| {name} | {} | {} | {} | {} | {} | {} | {} | {} |",
            pair(&d["capacity_bps"], r.rate_bps, 1e6),
            pair(&d["available_bps"], r.available_bps, 1e6),
            pair(&d["buffer_bytes"], r.buffer_bytes, 1e3),
            pair(&r.measured["round_trip"]["base_s"], r.rtt_s, 1e-3),
            pair(&d["loss"], r.loss, 1e-2),
            d["discipline"]["value"].as_str().unwrap_or("-"),
            r.iperf3_bps.map_or("-".to_owned(), |bps| format!("{:.2}", bps / 1e6)),
            if r.trust { "yes".to_owned() } else { format!("no: {}", r.reasons.join("; ")) },
        );
    }
}
