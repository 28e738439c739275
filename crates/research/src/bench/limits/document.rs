//! The confusion matrices, as a document.

use std::fmt::Write;

use sweetspot_diagnose::Class;

use super::cause::Cause;
use super::classified::{ClassShares, ClassifiedFlow};
use sweetspot_comparison::machine;
use sweetspot_research::page_abstract::Abstract;

/// Where a flow was observed.
struct VantagePoint {
    name: &'static str,
    opinion: fn(&ClassifiedFlow) -> &ClassShares,
    /// Causes that cannot be recognised from this vantage point.
    leaves_out: &'static [Cause],
    why: &'static str,
}

const VANTAGE_POINTS: [VantagePoint; 4] = [
    VantagePoint {
        name: "Capture at the sender",
        opinion: |j| &j.capture_at_sender,
        leaves_out: &[],
        why: "",
    },
    VantagePoint {
        name: "Capture at the receiver",
        opinion: |j| &j.capture_at_receiver,
        leaves_out: &[Cause::BlackHole],
        why: "Packets in a black hole never reach the receiver.",
    },
    VantagePoint {
        name: "Live at the sender",
        opinion: |j| &j.live_at_sender,
        leaves_out: &[Cause::ShortFlow, Cause::Offload],
        why: "A short flow is over before its second sample, because `diagnose` samples the kernel ten times a \
              second. Offloads change only captures.",
    },
    VantagePoint {
        name: "Live at the receiver",
        opinion: |j| &j.live_at_receiver,
        leaves_out: &[
            Cause::ShortFlow,
            Cause::SmallSendBuffer,
            Cause::SlowWriter,
            Cause::RandomLoss,
            Cause::SmallRouterBuffer,
            Cause::PeerGone,
            Cause::Outage,
            Cause::LostAcks,
            Cause::PingPong,
            Cause::LoopbackRequests,
            Cause::Offload,
            Cause::Shaper,
            Cause::WindowAbove,
            Cause::Nagle,
            Cause::BlackHole,
            Cause::Middlebox,
        ],
        why: "A receiver sees its own window, its reader and queues on the path; it can only guess at the sender \
              and at losses. The table counts only the causes that a receiver can tell apart.",
    },
];

/// The document on `flows`, written by `command`, with the hand-written section `notes`.
pub fn markdown(flows: &[(String, ClassifiedFlow)], command: &str, notes: &str) -> String {
    let first = &VANTAGE_POINTS[0];
    let right = flows.iter().filter(|(_, j)| (first.opinion)(j).is_right(j.right)).count();
    let summary = Abstract {
        question: "how often does `sweetspot diagnose` name the true limit of a flow?",
        method: "flows with deliberate causes, across emulated paths, captured and observed live at both ends.",
        result: &format!(
            "a capture at the sender gives the right limit for {right} of {} flows; the other vantage points follow.",
            flows.len()
        ),
        limitation: "every cause is artificial and lasts for most of a flow; real flows mix several causes.",
        command: "`make bench-limits`",
    };
    let mut text = format!(
        "# Flows of known cause\n\n{summary}\
         `sweetspot diagnose` classified {} flows with known causes: the class with the largest share of the time \
         counts ([the rules](../diagnose.md)). The last five causes are typical of the field; for these, the \
         diagnosis of a capture must also name the kind. The flows crossed emulated paths between two namespaces; the \
         emulator \
         certified {} of them.\n\n\
         Measured on {} on {}, {}, with `{command}`.\n{notes}",
        flows.len(),
        flows.iter().filter(|(_, j)| j.trusted).count(),
        machine::date(),
        machine::machine(),
        machine::kernel(),
    );
    for view in &VANTAGE_POINTS {
        matrix(&mut text, view, flows);
    }
    text
}

fn matrix(text: &mut String, view: &VantagePoint, flows: &[(String, ClassifiedFlow)]) {
    let counted: Vec<_> =
        flows.iter().filter(|(_, j)| !view.leaves_out.contains(&j.cause)).collect();
    let right = counted.iter().filter(|(_, j)| (view.opinion)(j).is_right(j.right)).count();
    let percent = 100.0 * right as f64 / counted.len().max(1) as f64;
    let _ = writeln!(
        text,
        "\n## {}\n\n{right} of {} right: {percent:.0} %. {}",
        view.name,
        counted.len(),
        view.why
    );
    let seen: Vec<Class> = Class::ALL
        .into_iter()
        .filter(|class| counted.iter().any(|(_, j)| (view.opinion)(j).class == *class))
        .collect();
    let headings: Vec<&str> = seen.iter().map(|class| class.words()).collect();
    let _ = writeln!(text, "\n| cause | correct class | {} |", headings.join(" | "));
    let _ = writeln!(text, "|---|---|{}", "--:|".repeat(seen.len()));
    let mut rows: Vec<(Cause, Class)> = counted.iter().map(|(_, j)| (j.cause, j.right)).collect();
    rows.sort_unstable();
    rows.dedup();
    for (cause, right) in rows {
        let of_cause: Vec<_> =
            counted.iter().filter(|(_, j)| (j.cause, j.right) == (cause, right)).collect();
        let cells: Vec<String> = seen
            .iter()
            .map(|class| of_cause.iter().filter(|(_, j)| (view.opinion)(j).class == *class).count())
            .map(|n| if n == 0 { String::new() } else { n.to_string() })
            .collect();
        let _ = writeln!(
            text,
            "| {} | {} | {} |",
            cause.name().replace('-', " "),
            right,
            cells.join(" | ")
        );
    }
    let wrong: Vec<_> =
        counted.iter().filter(|(_, j)| !(view.opinion)(j).is_right(j.right)).collect();
    if !wrong.is_empty() {
        text.push_str("\nWrong:\n\n");
    }
    for (name, classified) in wrong {
        let opinion = (view.opinion)(classified);
        let shares: Vec<String> = opinion
            .shares
            .iter()
            .filter(|(_, share)| *share >= 0.05)
            .map(|(class, share)| format!("{class} {:.0} %", share * 100.0))
            .collect();
        let unsaid = opinion.unsaid.iter().map(|words| format!("; does not mention \"{words}\""));
        let _ = writeln!(text, "- {name}: {}{}", shares.join(", "), unsaid.collect::<String>());
    }
}
