use std::collections::BTreeMap;
use std::fmt::Write;

use sweetspot_research::page_abstract::Abstract;

use super::example::Example;
use super::plan::{ALONE, REPEATS, SIZED, name, rows};
use crate::bench::live::RunOutcome;
use sweetspot_statistics::median;

fn page(result: &str) -> Abstract<'_> {
    Abstract {
        question: "what does a program gain or lose if it sizes its own sockets with the library?",
        method: "the examples download across an emulated path of 100 Mbit/s and 40 ms, with and without sizing.",
        result,
        limitation: "one emulated rate and delay, on one machine.",
        command: "`make bench-library`",
    }
}

/// Limit of a sized download's time, relative to an unsized one.
const MAX_SLOWER: f64 = 1.02;
/// Minimum fraction by which a standing queue must shrink.
const MIN_CUT: f64 = 0.8;
/// A median queue above this counts as standing, in seconds: a tenth of the path's RTT.
const STANDING_QUEUE_S: f64 = 0.004;

/// A row's medians, unsized and sized.
struct Row {
    condition: &'static str,
    congestion: &'static str,
    example: Example,
    runs: usize,
    trusted: usize,
    alone: Medians,
    sized: Medians,
}

struct Medians {
    goodput_bps: f64,
    queue_s: f64,
    /// Median and 99th percentile of the other program's response times.
    answer_s: [f64; 2],
    drops: f64,
    share_beside_rival: Option<f64>,
}

impl Row {
    /// The time of a sized download relative to an unsized one.
    fn time_ratio(&self) -> f64 {
        self.alone.goodput_bps / self.sized.goodput_bps
    }

    /// The fraction of a standing queue that was removed; `None` without a standing queue.
    fn cut(&self) -> Option<f64> {
        (self.alone.queue_s > STANDING_QUEUE_S)
            .then(|| 1.0 - self.sized.queue_s / self.alone.queue_s)
    }
}

/// The document from the available outcomes, by run name; `facts` describes the machine, `notes` was written by
/// hand.
pub fn document(outcomes: &BTreeMap<String, RunOutcome>, facts: &str, notes: &str) -> String {
    let rows: Vec<Row> = rows().filter_map(|row| Row::new(outcomes, row)).collect();
    let fast = rows.iter().filter(|row| row.time_ratio() <= MAX_SLOWER).count();
    let cuts: Vec<f64> = rows.iter().filter_map(Row::cut).collect();
    let short = cuts.iter().filter(|cut| **cut >= MIN_CUT).count();
    let result = format!(
        "{fast} of {} rows are at most 2 % slower than alone; the queue shrinks by 80 % in {short} of {} rows.",
        rows.len(),
        cuts.len()
    );
    let mut text = format!(
        "# Measured on programs that size their own sockets\n\n{}\
         The examples of [library.md](../library.md) download across 100 Mbit/s and 40 ms (one BDP is 500 kB). *Alone* is the\n\
         same program with the sizing `kernel`, which only watches; *sized* has the default, `sobas:live`. The two\n\
         alternate, {REPEATS} times each; a row has their medians. A run takes 10 s (15 s with a rival). The ratio of times\n\
         compares times per byte. Two examples run under all conditions, the others under the main one, to bound the time.\n\n\
         {facts}\n\n## Targets\n\n\
         - At most 2 % slower than alone: {fast} of {} rows.\n\
         - A standing queue shrinks by 80 %: {short} of {} rows in which one stands (a median above 4 ms).\n",
        page(&result),
        rows.len(),
        cuts.len(),
    );
    text += notes;
    text += &table(&rows);
    text
}

fn table(rows: &[Row]) -> String {
    let mut text = "\n## Rows\n\n\
        Buffers are of 2 BDP, *small* of 0.25 BDP; *loss* is 0.01 % at random, *jitter* up to 4 ms; the *rival* is curl, left\n\
        alone, from the fourth second on. *Queue* is the median of the bottleneck's after 3 s. *Ping* is the response time of\n\
        another program's small requests after 3 s. *Trusted* counts the runs of both sides with a certificate of trust.\n\n\
        | path | sender | example | Mbit/s: alone | sized | ratio of times | | queue ms: alone | sized | shrinks by | | \
        ping ms: alone | sized | p99: alone | sized | drops: alone | sized | trusted |\n\
        |---|---|---|--:|--:|--:|---|--:|--:|--:|---|--:|--:|--:|--:|--:|--:|--:|\n"
        .to_owned();
    for row in rows {
        let (alone, sized) = (&row.alone, &row.sized);
        let cut = row.cut().map_or(" | ".to_owned(), |cut| {
            format!("{:.0} % | {}", cut * 100.0, verdict(cut >= MIN_CUT))
        });
        // As above.
        let _ = writeln!(
            text,
            "| {} | {} | {} | {:.2} | {:.2} | {:.3} | {} | {:.1} | {:.1} | {cut} | {:.1} | {:.1} | {:.1} | {:.1} | {:.0} | {:.0} | {} of {} |",
            row.condition,
            row.congestion,
            row.example.name(),
            alone.goodput_bps / 1e6,
            sized.goodput_bps / 1e6,
            row.time_ratio(),
            verdict(row.time_ratio() <= MAX_SLOWER),
            alone.queue_s * 1e3,
            sized.queue_s * 1e3,
            alone.answer_s[0] * 1e3,
            sized.answer_s[0] * 1e3,
            alone.answer_s[1] * 1e3,
            sized.answer_s[1] * 1e3,
            alone.drops,
            sized.drops,
            row.trusted,
            2 * row.runs,
        );
    }
    for row in rows {
        if let Some((alone, sized)) = row.alone.share_beside_rival.zip(row.sized.share_beside_rival)
        {
            let _ = writeln!(
                text,
                "\nIn competition with the rival, {} from {} gets {:.0} % of the path, and {:.0} % if left alone.",
                row.example.name(),
                row.congestion,
                sized * 100.0,
                alone * 100.0
            );
        }
    }
    text
}

fn verdict(is_met: bool) -> &'static str {
    if is_met { "met" } else { "**missed**" }
}

impl Row {
    /// `None` if either side has no outcome.
    fn new(
        outcomes: &BTreeMap<String, RunOutcome>,
        row: (&'static str, &'static str, Example),
    ) -> Option<Row> {
        let runs = |side: &str| -> Vec<&RunOutcome> {
            (1..=REPEATS).filter_map(|repeat| outcomes.get(&name(row, side, repeat))).collect()
        };
        let (alone, sized) = (runs(ALONE.0), runs(SIZED.0));
        let (condition, congestion, example) = row;
        Some(Row {
            condition,
            congestion,
            example,
            runs: alone.len().min(sized.len()),
            trusted: alone.iter().chain(&sized).filter(|run| run.trust).count(),
            alone: Medians::new(&alone)?,
            sized: Medians::new(&sized)?,
        })
    }
}

impl Medians {
    fn new(runs: &[&RunOutcome]) -> Option<Medians> {
        let of = |value: fn(&RunOutcome) -> f64| median(runs.iter().map(|run| value(run)));
        Some(Medians {
            goodput_bps: of(|run| run.goodput_bps)?,
            queue_s: of(|run| run.queue_s)?,
            answer_s: [of(|run| run.answer_s[1])?, of(|run| run.answer_s[2])?],
            drops: of(|run| run.drops as f64)?,
            share_beside_rival: median(runs.iter().filter_map(|run| run.share_beside_rival)),
        })
    }
}
