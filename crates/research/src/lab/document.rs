use std::fmt::Write;

use sweetspot_units::{Bytes, Duration, Percent, grouped};

use super::targets::{LabTarget, targets};
use super::{Cell, LabBench, cpu_per_gb};
use crate::page_abstract::Abstract;
use sweetspot_report::VariantOutcome;

fn page(result: &str) -> Abstract<'_> {
    Abstract {
        question: "how do Sweetspot's windows perform on a real kernel?",
        method: "one transfer at a time over the demo's path and a matrix of emulated paths, compared with the \
            kernel and with fixed windows.",
        result,
        limitation: "unshared paths on one machine; a run without a trusted certificate carries a mark.",
        command: "`make bench-lab`",
    }
}

/// The benchmark as Markdown. It names missing measurements and missed targets.
pub fn markdown(bench: &LabBench) -> String {
    let sections = [
        head(bench),
        verdict(bench),
        bench.demo.as_ref().map_or(String::new(), demo),
        matrix(bench),
        cpu(bench),
        self_test(bench),
        certificates(bench),
    ];
    let mut text = sections
        .iter()
        .filter(|s| !s.is_empty())
        .fold(String::new(), |text, section| text + section.trim_end() + "\n\n");
    text.truncate(text.trim_end().len());
    text + "\n"
}

fn cells(bench: &LabBench) -> impl Iterator<Item = &Cell> {
    bench.demo.iter().chain(&bench.matrix)
}

fn head(bench: &LabBench) -> String {
    let all = targets(bench);
    let met = all.iter().filter(|target| target.met).count();
    let result = format!(
        "{met} of {} targets are met; the section *Targets* lists the missed ones.",
        all.len()
    );
    let mut text = format!(
        "# Measured on emulated paths\n\n{}\
        This machine's own kernel TCP, one transfer at a time, over a path emulated between two network\n\
        namespaces. Written by `make bench-lab`.\n\n",
        page(&result)
    );
    let _ = writeln!(text, "| | |\n|---|---|\n| command | `{}` |", bench.command);
    let _ = writeln!(text, "| program | {} |", bench.build);
    // Cells may come from different dates and machines: each combination is listed once.
    let mut seen = Vec::new();
    for cell in cells(bench) {
        let o = &cell.outcome;
        let place = format!(
            "| measured on | {}, {}, {} |",
            o.machine,
            o.kernel,
            o.date.split('T').next().unwrap_or_default()
        );
        if !seen.contains(&place) {
            let _ = writeln!(text, "{place}");
            seen.push(place);
        }
    }
    text
}

fn verdict(bench: &LabBench) -> String {
    let all = targets(bench);
    let missed: Vec<&LabTarget> = all.iter().filter(|t| !t.met).collect();
    let mut text = format!(
        "## Targets\n\n{} of {} targets are met; {} of {} cells of the matrix were measured.\n",
        all.len() - missed.len(),
        all.len(),
        bench.matrix.len(),
        bench.matrix_size
    );
    if !missed.is_empty() {
        text += "\nMissed:\n\n";
        for target in &missed {
            let _ = writeln!(text, "- {}: **{}**", target.what, target.measured);
        }
    }
    for cell in cells(bench).filter(|cell| !cell.not_measured.is_empty()) {
        let _ = writeln!(text, "\nNot measured: {}: {}", cell.name, cell.not_measured.join(", "));
    }
    text += &bench.notes;
    text += "\n| target | measured | |\n|---|---|---|\n";
    for target in &all {
        let verdict = if target.met { "met" } else { "**missed**" };
        let _ = writeln!(text, "| {} | {} | {verdict} |", target.what, target.measured);
    }
    text
}

fn demo(cell: &Cell) -> String {
    let o = &cell.outcome;
    let mut text = format!(
        "## The demonstration's path\n\n{} over {}, {}, buffer {} ({:.2} BDP).\n\n",
        o.file.size,
        o.path.rate,
        o.path.rtt,
        o.path.buffer,
        o.path.buffer.as_f64() / o.path.bdp.as_f64(),
    );
    text += "| transfer | goodput Mbit/s | of capacity | retransmitted | | drops | RTT median ms | p99 ms | 90 % after s |\n\
             |---|--:|--:|--:|--:|--:|--:|--:|--:|\n";
    for c in &o.variants {
        text += &demo_row(c);
    }
    text
}

fn demo_row(c: &VariantOutcome) -> String {
    if let Some(why) = &c.failure {
        return format!("| {} | failed: {why} | | | | | | | |\n", c.name());
    }
    let ms = |t: Duration| format!("{:.1}", t.as_secs_f64() * 1e3);
    format!(
        "| {} | {} | {} | {} | {} | {} | {} | {} | {} |\n",
        name(c),
        show(c.goodput, |g| format!("{:.1}", g.as_f64() / 1e6)),
        show(c.share_of_capacity, |s| format!("{:.1}", Percent(s))),
        show(c.retransmitted_segments, grouped),
        show(c.retransmitted_share(), |s| format!("{:.3} %", s * 100.0)),
        show(c.bottleneck_drops, grouped),
        show(c.rtt_median, ms),
        show(c.rtt_p99, ms),
        show(c.time_to_90_percent, |t| format!("{:.1}", t.as_secs_f64())),
    )
}

fn matrix(bench: &LabBench) -> String {
    let mut names: Vec<String> = Vec::new();
    for c in bench.matrix.iter().flat_map(|cell| &cell.outcome.variants) {
        if !names.contains(&c.name()) {
            names.push(c.name());
        }
    }
    if names.is_empty() {
        return String::new();
    }
    let mut text = "## Matrix\n\nGoodput over the whole transfer as a share of the path's payload capacity, and in brackets the\n\
        retransmitted share of segments. A run whose certificate says not to trust it carries a (!).\n\n"
        .to_owned();
    let _ = writeln!(text, "| path | file | {} |", names.join(" | "));
    let _ = writeln!(text, "|---|--:|{}", "--:|".repeat(names.len()));
    for cell in &bench.matrix {
        let of = |name: &String| cell.outcome.variants.iter().find(|c| c.name() == *name);
        let results: Vec<String> =
            names.iter().map(|name| of(name).map_or("-".to_owned(), matrix_result)).collect();
        let _ = writeln!(
            text,
            "| {} | {} | {} |",
            cell.name,
            cell.outcome.file.size,
            results.join(" | ")
        );
    }
    text
}

fn matrix_result(c: &VariantOutcome) -> String {
    let mark = if c.distrust().is_some() { " (!)" } else { "" };
    match (c.share_of_capacity, c.retransmitted_share()) {
        _ if c.failure.is_some() => "failed".to_owned(),
        (Some(share), Some(again)) => {
            format!("{:.1} ({:.3}){mark}", Percent(share), Percent(again))
        }
        (Some(share), None) => format!("{:.1}{mark}", Percent(share)),
        (None, _) => "-".to_owned(),
    }
}

fn cpu(bench: &LabBench) -> String {
    let measured: Vec<&Cell> = cells(bench).filter(|c| c.reference.is_some()).collect();
    if measured.is_empty() {
        return String::new();
    }
    let mut text = "## CPU per GB\n\nCPU seconds, user and system, per 10^9 bytes of payload. Sweetspot encrypts (TLS 1.3), hashes (BLAKE3)\n\
        and reads and writes files; iperf3 sends one buffer again and again and keeps nothing.\n\n\
        | path | program | goodput Mbit/s | sender s/GB | receiver s/GB |\n|---|---|--:|--:|--:|\n"
        .to_owned();
    for cell in measured {
        let size = cell.outcome.file.size;
        for c in &cell.outcome.variants {
            let program = format!("sweetspot {}", name(c));
            let goodput = show(c.goodput, |g| format!("{:.1}", g.as_f64() / 1e6));
            cpu_row(
                &mut text,
                &cell.name,
                &program,
                &goodput,
                size,
                (c.sender_cpu, c.receiver_cpu),
            );
        }
        if let Some(r) = &cell.reference {
            let program = format!("{} ({})", r.program, r.congestion);
            let goodput = format!("{:.1}", r.goodput.as_f64() / 1e6);
            let used = (Some(r.sender_cpu), Some(r.receiver_cpu));
            cpu_row(&mut text, &cell.name, &program, &goodput, r.size, used);
        }
    }
    text
}

fn cpu_row(
    text: &mut String,
    cell: &str,
    program: &str,
    goodput: &str,
    size: Bytes,
    (sender, receiver): (Option<Duration>, Option<Duration>),
) {
    let per_gb = |cpu| show(cpu, |cpu| format!("{:.2}", cpu_per_gb(cpu, size)));
    let (sender, receiver) = (per_gb(sender), per_gb(receiver));
    let _ = writeln!(text, "| {cell} | {program} | {goodput} | {sender} | {receiver} |");
}

fn self_test(bench: &LabBench) -> String {
    match &bench.self_test {
        None => String::new(),
        Some(text) => format!(
            "## The emulator on this machine\n\n`sweetspot emulate --self-test` says:\n\n```text\n{}\n```\n",
            text.trim_end()
        ),
    }
}

fn certificates(bench: &LabBench) -> String {
    if cells(bench).next().is_none() {
        return String::new();
    }
    let mut text = "## Certificates\n\n| path | transfer | verdict | late p50 us | p99 us | max us | drops |\n|---|---|---|--:|--:|--:|---|\n".to_owned();
    for cell in cells(bench) {
        for c in &cell.outcome.variants {
            text += &certificate_row(&cell.name, c);
        }
    }
    text
}

fn certificate_row(cell: &str, c: &VariantOutcome) -> String {
    let Some(k) = &c.certificate else {
        return format!("| {cell} | {} | none: the run failed | | | | |\n", c.name());
    };
    let us = |t: Duration| format!("{:.0}", t.as_secs_f64() * 1e6);
    let drops: Vec<String> = k.drops.iter().map(|(why, n)| format!("{why}: {n}")).collect();
    format!(
        "| {cell} | {} | {} | {} | {} | {} | {} |\n",
        c.name(),
        c.distrust().map_or("trust".to_owned(), |why| format!("**do not trust**: {why}")),
        us(k.lateness_p50),
        us(k.lateness_p99),
        us(k.lateness_max),
        drops.join(", "),
    )
}

fn name(c: &VariantOutcome) -> String {
    let mark = if c.distrust().is_some() { " (!)" } else { "" };
    c.name() + mark
}

fn show<T>(value: Option<T>, text: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| "-".to_owned(), text)
}
