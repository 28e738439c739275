//! Numbers printed in the papers, compared with our results.

use super::{Line, Verdict, with_runs};
use crate::papers::comparison::{EngineValue, PublishedComparison};
use crate::papers::figure::Figure;
use sweetspot_experiment::plot::Origin;

/// Why a printed number and ours differ, or a judgement if the numbers alone do not decide.
pub(super) struct Reason {
    /// The figure.
    figure: &'static str,
    /// Words that must all occur in the case.
    words: &'static [&'static str],
    /// The verdict, if the printed text is not a number.
    verdict: Option<Verdict>,
    why: &'static str,
    pub(super) shown: &'static [&'static str],
}

const fn reason(
    figure: &'static str,
    words: &'static [&'static str],
    why: &'static str,
    shown: &'static [&'static str],
) -> Reason {
    Reason { figure, words, verdict: None, why, shown }
}

const fn judged(
    figure: &'static str,
    words: &'static [&'static str],
    verdict: Verdict,
    why: &'static str,
) -> Reason {
    Reason { figure, words, verdict: Some(verdict), why, shown: &[] }
}

/// The first entry that matches applies.
pub(super) const REASONS: &[Reason] = &[
    reason(
        "bdp-fig1",
        &["S=950 kB"],
        "one halving per overflow leaves Reno three quarters of the link, 73 Mbit/s, whatever B_t is; so each overflow of the \
         real path cost more than one (the paper: whole bursts), and the path of 2003 is gone. No B_t of the table has both \
         numbers",
        &[
            "bdp-fig1",
            "crates/theory/src/path/saturation.rs::without_a_buffer_three_quarters_of_the_capacity_remain",
        ],
    ),
    reason(
        "bdp-fig10",
        &["static 950 kB"],
        "as in Figure 1: below three quarters of the link, so overflows cost more than one halving each",
        &["bdp-fig1"],
    ),
    reason(
        "bdp-fig3",
        &["B=313", "optimal S"],
        "the paper's grid of windows: at its 150 packets both simulators have 11.6 Mbit/s, and more at 175 to 180",
        &["bdp-fig3"],
    ),
    reason(
        "bdp-fig3",
        &["B=1250", "optimal S"],
        "R(S) is flat there: 267 to 426 packets lie within 1 % of the best",
        &["bdp-fig3"],
    ),
    reason(
        "bdp-fig5",
        &["B=1250"],
        "ns-2.35 has 18.0 on the same scenario: the mice of the paper yielded more than 2000 users at 70 % load do",
        &["bdp-fig5"],
    ),
    reason(
        "bdp-fig7",
        &["loss"],
        "the paper's sleep of 2 to 2.75 s is far beyond saturation (7 % loss in ns-2.35); 0.6 s more brings all three losses \
         within a third",
        &["bdp-fig7"],
    ),
    reason(
        "bdp-fig7",
        &["mean RTT"],
        "the reverse direction's queue is in ours; with the forward queue alone it is 120, 135 and 151 ms. The paper does not say \
         which it counts",
        &["bdp-fig7"],
    ),
    reason(
        "bdp-table1",
        &["BTC T_a", "100 %"],
        "the printed values need windows of 13 to 16 packets, half of BTC T_a as the text defines it",
        &["bdp-table1"],
    ),
    reason(
        "bdp-table1",
        &["100 %"],
        "runs on a congested path differ by a sixth; twelve Reno elephants that lose bursts fill 86 to 89 % of a drop-tail link \
         that counts ACKs",
        &["bdp-table1"],
    ),
    reason(
        "bdp-table1",
        &["70 %"],
        "the reverse path's queue delays ACKs: without traffic on it the numbers come closer (the second table)",
        &["bdp-table1"],
    ),
    reason(
        "bdp-table1",
        &["30 %", "A T_"],
        "the printed values are 0.84 A whatever the buffer, as if the true round trip were 1.19 times the T_m of the formula",
        &["bdp-table1"],
    ),
    reason(
        "bdp-table1",
        &["30 %"],
        "Figure 9 is a drawing without numbers: the topology is ours",
        &["bdp-table1"],
    ),
    reason(
        "drs-fig3",
        &["maxwnd where losses start"],
        "44 + maxwnd exceeds the path's 503 and the queue's 100 packets from 560 on, here and in ns-2.35",
        &["drs-fig3"],
    ),
    reason(
        "drs-fig4",
        &["loss of a burst"],
        "both windows exceed path and queue by 91 of 694 packets, 13 %; the lab's kernel loses 17 % in its worst tenth of a second",
        &["drs-fig4"],
    ),
    reason(
        "drs-fig7",
        &["dynamic over static"],
        "shares of memory give 7000 / 44 = 159, and 93 is the ratio at 4000, before the queue overflows; ns-2.35 has 53.9",
        &["drs-fig7"],
    ),
    judged(
        "drs-table1",
        &["static flows"],
        Verdict::InPart,
        "equal among themselves, as printed, and a quarter higher: no dynamic flow takes most of the link here",
    ),
    judged(
        "drs-table1",
        &["dynamic flows"],
        Verdict::Not,
        "the printed 389 for one flow is an artefact of simultaneous arrivals, as the paper says; neither order nor sizes bring it \
         about here",
    ),
    reason(
        "heffner-fig5",
        &["similarly sized"],
        "the kernel's overheads and the application that writes by thirds; the text's congestion control has no part without \
         loss",
        &["heffner-fig5"],
    ),
    reason(
        "heffner-table1",
        &[],
        "measured over a path of 2002 that is gone; the author himself puts the differences down to chance",
        &["heffner-table1"],
    ),
    reason(
        "router-fig2",
        &["use by"],
        "users that move 80 kB and think for a second offer 640 Mbit/s at most: the printed use takes 1550 and 2000 of them",
        &["router-fig2"],
    ),
    reason(
        "router-fig2",
        &["Figure 4", "95 %"],
        "heavy load is rarer here than in the paper's one experiment; over spans of 0.1 s it is 5 %",
        &["router-fig2"],
    ),
    reason(
        "router-fig2",
        &["Figure 8"],
        "1/T over the four printed round trips alone varies by 0.62; the losses of single flows add to that, by more here",
        &["router-fig2"],
    ),
    judged(
        "router-fig2",
        &["U_3000 uses, with enough buffer"],
        Verdict::Reproduced,
        "the link is saturated",
    ),
    judged(
        "router-fig2",
        &["least buffer for the most use, U_3000"],
        Verdict::InPart,
        "200 kB leave 9 % unused here; the order of the experiments is as printed",
    ),
    judged(
        "router-fig2",
        &["least buffer for the most use"],
        Verdict::Reproduced,
        "less loaded links need more, as printed",
    ),
    judged(
        "router-fig2",
        &["best for small flows, U_1000"],
        Verdict::Reproduced,
        "less than for large flows",
    ),
    judged(
        "router-fig2",
        &["best for large flows, U_1000"],
        Verdict::Reproduced,
        "more than for small flows",
    ),
    judged(
        "router-fig2",
        &["best for small flows, U_1200"],
        Verdict::Not,
        "not above U_1000's, but the curve is flat: their intervals overlap",
    ),
    judged("router-fig2", &["best for large flows, U_1200"], Verdict::Reproduced, "above U_1000's"),
    judged(
        "router-fig2",
        &["best for small flows, U_3000"],
        Verdict::Reproduced,
        "a maximum, then lower",
    ),
    judged(
        "router-fig2",
        &["best for large flows, U_3000"],
        Verdict::InPart,
        "not above U_1200's best, which is the largest buffer tried; their intervals overlap",
    ),
    judged(
        "router-fig2",
        &["Footnote 4"],
        Verdict::Reproduced,
        "the same shapes; at small buffers twice as many flows are active",
    ),
    reason(
        "router-fig11",
        &["s=1 MB"],
        "equation (6) gives 16.3 % of the BDP, 1225 kB, where 15 % is printed",
        &[
            "crates/theory/tests/published/router.rs::section_5_prints_1125_kb_where_its_formula_gives_1225",
        ],
    ),
];

/// Maximum relative deviation from the printed number that counts as reproduced.
const REPRODUCED: f64 = 0.10;
/// Maximum relative deviation that counts as reproduced in part.
const IN_PART: f64 = 0.25;

/// The rows for a figure's printed numbers.
pub(super) fn lines(figure: &Figure) -> impl Iterator<Item = Line> {
    figure.comparisons.iter().chain(&figure.cells).map(|comparison| line(figure, comparison))
}

fn line(figure: &Figure, comparison: &PublishedComparison) -> Line {
    let reason = REASONS.iter().find(|reason| {
        reason.figure == figure.name && reason.words.iter().all(|w| comparison.what.contains(w))
    });
    let ours = chosen(&comparison.ours);
    let by_number = ours.and_then(|ours| judge(comparison.published, &ours.value));
    let verdict = reason.and_then(|reason| reason.verdict).or(by_number).unwrap_or(Verdict::Not);
    let decided = reason.is_some_and(|reason| reason.verdict.is_some());
    let why = match reason {
        Some(reason) if verdict != Verdict::Reproduced || decided => {
            let shown = if reason.shown.is_empty() { &[figure.name][..] } else { reason.shown };
            with_runs(reason.why, shown)
        }
        None if verdict != Verdict::Reproduced => with_runs("no reason known", &[figure.name]),
        _ => with_runs("", &[figure.name]),
    };
    Line {
        section: figure.title.split(':').next().unwrap_or(figure.title).to_owned(),
        text: format!("{}: {} {}", comparison.what, comparison.published, comparison.unit),
        verdict,
        ours: ours.map_or("-".to_owned(), |ours| ours.value.clone()),
        why,
    }
}

/// The simulator's value, or else the first available one.
fn chosen(ours: &[EngineValue]) -> Option<&EngineValue> {
    ours.iter().find(|ours| ours.origin == Origin::Sim).or(ours.first())
}

/// A number with its interval, if any.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Estimate {
    value: f64,
    low: f64,
    high: f64,
}

impl Estimate {
    /// Parses `12`, `12 ± 1`, `12 (11-13)`, `12-14` and `12 to 14`, ignoring any text after that.
    fn read(text: &str) -> Option<Estimate> {
        let (value, rest) = number(text)?;
        let pair = |rest: &str, between: &str| {
            let (low, rest) = number(rest)?;
            let (high, _) = number(rest.strip_prefix(between)?)?;
            Some((low, high))
        };
        if let Some((half, _)) = rest.strip_prefix(" ± ").and_then(number) {
            return Some(Estimate { value, low: value - half, high: value + half });
        }
        if let Some(range) = rest.strip_prefix(" (") {
            let found = pair(range, "-").or_else(|| pair(range, " to "));
            if let Some((low, high)) = found {
                return Some(Estimate { value, low, high });
            }
        }
        for between in ["-", " to "] {
            if let Some((high, _)) = rest.strip_prefix(between).and_then(number) {
                return Some(Estimate { value: (value + high) / 2.0, low: value, high });
            }
        }
        Some(Estimate { value, low: value, high: value })
    }
}

/// The number at the start of a text, and the remaining text.
fn number(text: &str) -> Option<(f64, &str)> {
    let sign = usize::from(text.starts_with('-'));
    let end = text[sign..]
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .map_or(text.len(), |i| i + sign);
    let (digits, rest) = text.split_at(end);
    Some((digits.trim_end_matches('.').parse().ok()?, rest))
}

/// The verdict on two numbers; `None` if either is not a number.
fn judge(published: &str, ours: &str) -> Option<Verdict> {
    let (theirs, ours) = (Estimate::read(published)?, Estimate::read(ours)?);
    let meet = theirs.low <= ours.high && ours.low <= theirs.high;
    let distance = (ours.value - theirs.value).abs() / theirs.value.abs().max(f64::MIN_POSITIVE);
    Some(match distance {
        _ if meet => Verdict::Reproduced,
        d if d <= REPRODUCED => Verdict::Reproduced,
        d if d <= IN_PART => Verdict::InPart,
        _ => Verdict::Not,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn estimates_are_read_with_their_intervals() {
        let read = |text| Estimate::read(text).map(|e| (e.value, e.low, e.high));
        assert_eq!(read("12"), Some((12.0, 12.0, 12.0)));
        assert_eq!(read("2.25 ± 0.25"), Some((2.25, 2.0, 2.5)));
        assert_eq!(read("179 (176 to 180 within 1 %)"), Some((179.0, 176.0, 180.0)));
        assert_eq!(read("0.8 (-1.5-3.1)"), Some((0.8, -1.5, 3.1)));
        assert_eq!(read("60-70"), Some((65.0, 60.0, 70.0)));
        assert_eq!(read("15 to 26.7"), Some((20.85, 15.0, 26.7)));
        assert_eq!(read("saturated"), None);
    }

    #[test]
    fn a_number_is_reproduced_within_10_percent_or_its_interval() {
        use Verdict::{InPart, Not, Reproduced};
        for (published, ours, verdict) in [
            ("10", "10.9", Reproduced),
            ("10", "11.1", InPart),
            ("10", "12.6", Not),
            ("2.4", "2.1 ± 0.3", Reproduced),
            ("60-70", "67.9 (67.0-68.7)", Reproduced),
            ("7", "0.8 (-1.5-3.1)", Not),
        ] {
            assert_eq!(judge(published, ours), Some(verdict), "{published} {ours}");
        }
        assert_eq!(judge("more", "12"), None);
    }
}
