use std::collections::BTreeMap;

use super::plan::{ALONE, CONDITION, Via, plans};
use super::run::RunOutcome;
use sweetspot_statistics::median;

/// A target, the measured value, and whether it is met.
pub struct Target {
    /// The target.
    pub words: &'static str,
    /// The measurement.
    pub measured: String,
    /// Whether the target is met.
    pub met: bool,
}

/// The targets for tuning with `via` that have outcomes.
pub fn targets(outcomes: &BTreeMap<String, RunOutcome>, via: Via) -> Vec<Target> {
    let mut all = Vec::new();
    let tuned = |name: &str| format!("{name}/{}", via.name());
    let sides = |outcomes, name| sides(outcomes, name, via);
    if let Some(sides) = sides(outcomes, "deep/curl") {
        all.extend(deep(&sides));
        let dropped: u64 = runs(outcomes, &tuned("deep/curl")).map(|o| o.drops_once_held).sum();
        let words = "buffer 2 BDP: no drops once held";
        all.push(target(words, dropped.to_string(), dropped == 0));
    }
    if let Some(sides) = sides(outcomes, "small/curl") {
        all.extend(small(&sides));
    }
    let words = [
        "rate halves: within 5 % of the new optimum in 20 RTT",
        "rate doubles: within 5 % of the new optimum in 20 RTT",
    ];
    all.extend(follows(words, runs(outcomes, &tuned("change/curl"))));
    let fairness = |name: &str| median(runs(outcomes, name).map(|o| jain(&o.each_bps)));
    let five = |side| fairness(&format!("five/curl/{side}"));
    if let Some((before, after)) = five(ALONE).zip(five(via.name())) {
        let measured = format!("{after:.3} (untuned {before:.3})");
        all.push(target("five downloads share within Jain 0.95", measured, after >= 0.95));
    }
    if let Some(cpu) = outcomes.get(&tuned("hundred/iperf3")).and_then(|o| o.tuner_cpu) {
        all.push(target("under 1 % of a core for 100 connections", percent(cpu), cpu < 0.01));
    }
    all.extend(second_transfers(outcomes, via));
    if let Some(sides) = sides(outcomes, "upload/deep") {
        all.extend(upload(&sides));
    }
    let words = [
        "upload, rate halves: within 5 % of the new optimum in 20 RTT",
        "upload, rate doubles: within 5 % of the new optimum in 20 RTT",
    ];
    all.extend(follows(words, runs(outcomes, &tuned("upload/change"))));
    all.extend(never_slower(&ratios(outcomes, via)));
    all
}

/// Targets for the start of a second transfer over a saved path.
fn second_transfers(outcomes: &BTreeMap<String, RunOutcome>, via: Via) -> Vec<Target> {
    let mut all = Vec::new();
    let second = |name| {
        let [alone, tuned] = [ALONE, via.name()].map(|side| seconds(outcomes, name, side));
        Some([alone?, tuned?])
    };
    for (name, words) in [
        ("again/deep", "second download, buffer 2 BDP: no drops"),
        ("again/small", "second download, buffer 0.25 BDP: no drops"),
        ("again/upload-small", "second upload, buffer 0.25 BDP: no drops"),
        ("again/upload-100-ms", "second upload, 100 ms, 0.25 BDP: no drops"),
        ("again/upload-long", "second upload, 200 ms, 0.25 BDP: no drops"),
    ] {
        if let Some([(_, before), (_, after)]) = second(name) {
            all.push(target(words, format!("{after:.0} (untuned {before:.0})"), after == 0.0));
        }
    }
    for (name, words) in [
        ("again/upload-100-ms", "second upload, 100 ms: 1.3 times the first second"),
        ("again/upload-long", "second upload, 200 ms: 1.3 times the first second"),
    ] {
        if let Some([(before, _), (after, _)]) = second(name) {
            all.push(target(words, percent(after / before), after >= 1.3 * before));
        }
    }
    all
}

/// Untuned and tuned runs of one row.
pub struct Ratio {
    /// Its name.
    pub row: String,
    /// The client.
    pub who: String,
    /// Number of tuned runs.
    pub runs: usize,
    /// Medians of the untuned and of the tuned runs.
    pub sides: [RunMedians; 2],
}

/// Medians of several runs.
#[derive(Clone, Copy)]
pub struct RunMedians {
    pub goodput_bps: f64,
    pub retransmitted: f64,
    pub queue_s: f64,
    pub drops: f64,
    /// Minimum, median and 99th percentile, each as the median over the runs.
    answer_s: [f64; 3],
    pub share_beside_rival: Option<f64>,
}

impl Ratio {
    /// Goodput of tuned runs relative to untuned runs.
    pub fn ratio(&self) -> f64 {
        self.sides[1].goodput_bps / self.sides[0].goodput_bps
    }
}

/// The row to which the run `name` belongs.
pub fn row_of(name: &str) -> &str {
    name.strip_prefix(CONDITION).unwrap_or(name)
}

/// All rows with outcomes.
pub fn ratios(outcomes: &BTreeMap<String, RunOutcome>, via: Via) -> Vec<Ratio> {
    let mut all = Vec::new();
    for plan in plans() {
        let Some(name) = plan.name.strip_suffix("/alone") else { continue };
        if let Some(sides) = sides(outcomes, name, via) {
            let row = row_of(name).to_owned();
            let runs = runs(outcomes, &format!("{name}/{}", via.name())).count();
            all.push(Ratio { row, who: plan.client.name(), runs, sides });
        }
    }
    all
}

/// The first run of that name and its repetitions.
fn runs<'a>(
    outcomes: &'a BTreeMap<String, RunOutcome>,
    first: &str,
) -> impl Iterator<Item = &'a RunOutcome> {
    let repeats = format!("{first}/");
    let is_one = move |run: &str| run == first || run.starts_with(&repeats);
    outcomes.iter().filter(move |(run, _)| is_one(run)).map(|(_, outcome)| outcome)
}

/// The medians of the untuned and of the tuned runs.
fn sides(outcomes: &BTreeMap<String, RunOutcome>, name: &str, via: Via) -> Option<[RunMedians; 2]> {
    let side = |side| side_of(&runs(outcomes, &format!("{name}/{side}")).collect::<Vec<_>>());
    Some([side(ALONE)?, side(via.name())?])
}

fn side_of(runs: &[&RunOutcome]) -> Option<RunMedians> {
    let answer = |quantile: usize| median(runs.iter().map(|o| o.answer_s[quantile]));
    Some(RunMedians {
        goodput_bps: median(runs.iter().map(|o| o.goodput_bps))?,
        retransmitted: median(runs.iter().map(|o| o.retransmitted as f64))?,
        queue_s: median(runs.iter().map(|o| o.queue_s))?,
        drops: median(runs.iter().map(|o| o.drops as f64))?,
        answer_s: [answer(0)?, answer(1)?, answer(2)?],
        share_beside_rival: median(runs.iter().filter_map(|o| o.share_beside_rival)),
    })
}

/// For the second transfers of a row: the medians of the first second's rate, in bit/s, and of the packets
/// dropped.
pub fn seconds(
    outcomes: &BTreeMap<String, RunOutcome>,
    name: &str,
    side: &str,
) -> Option<(f64, f64)> {
    let runs: Vec<_> =
        runs(outcomes, &format!("{name}/{side}")).filter_map(|run| run.second).collect();
    let rate = median(runs.iter().map(|second| second.first_second_bps))?;
    Some((rate, median(runs.iter().map(|second| second.drops as f64))?))
}

/// With a competing flow there are two targets: as much as untuned, and at least a fair half.
fn never_slower(ratios: &[Ratio]) -> Vec<Target> {
    let by_ratio = |a: &&Ratio, b: &&Ratio| a.ratio().total_cmp(&b.ratio());
    let Some(worst) = ratios.iter().min_by(by_ratio) else { return Vec::new() };
    let in_words = |r: &Ratio| format!("{} ({})", percent(r.ratio()), r.row);
    let is_rival = |r: &&Ratio| r.sides[1].share_beside_rival.is_some();
    let mut measured = format!("at worst {}", in_words(worst));
    if is_rival(&worst)
        && let Some(other) = ratios.iter().filter(|r| !is_rival(r)).min_by(by_ratio)
    {
        measured += &format!(", then {}", in_words(other));
    }
    let words = "at most 2 % slower than untuned";
    let mut all = vec![target(words, measured, worst.ratio() >= 0.98)];
    for [alone, tuned] in ratios.iter().map(|r| r.sides) {
        if let Some((before, after)) = alone.share_beside_rival.zip(tuned.share_beside_rival) {
            let measured = format!("{} (untuned {})", percent(after), percent(before));
            all.push(target("with a rival: its fair half", measured, after >= 0.5));
        }
    }
    all
}

/// A path with a rate that is halved and then doubled again: medians over the runs.
fn follows<'a>(
    words: [&'static str; 2],
    runs: impl Iterator<Item = &'a RunOutcome>,
) -> impl Iterator<Item = Target> {
    // TCP's payload share of a packet: 1448 of 1500 bytes.
    let optima = [50e6, 100e6].map(|rate| rate * 1448.0 / 1500.0);
    let runs: Vec<_> = runs.collect();
    (0..).zip(words).zip(optima).filter_map(move |((change, words), optimum)| {
        let after = || runs.iter().filter_map(|run| run.after_changes.get(change));
        let share = median(after().map(|(rate, _)| rate / optimum))?;
        let queue = median(after().map(|(_, queue)| *queue))?;
        let measured = format!("{} of its payload, queue {:.1} ms", percent(share), queue * 1e3);
        Some(target(words, measured, share >= 0.95))
    })
}

fn upload(sides: &[RunMedians; 2]) -> [Target; 2] {
    let words = [
        "upload, buffer 2 BDP: goodput within 2 % of untuned",
        "upload, buffer 2 BDP: standing queue cut by 80 %",
    ];
    empties(words, sides)
}

fn deep(sides: &[RunMedians; 2]) -> [Target; 3] {
    let words = [
        "buffer 2 BDP: curl's goodput within 2 % of untuned",
        "buffer 2 BDP: standing queue cut by 80 %",
    ];
    let [goodput, queue] = empties(words, sides);
    let [alone, tuned] = sides.map(|side| side.answer_s);
    // The response time above its minimum is the queueing delay.
    let min = alone[0].min(tuned[0]);
    let p99 = cut(alone[2] - min, tuned[2] - min);
    [
        goodput,
        queue,
        target(
            "buffer 2 BDP: interactive p99 above the minimum cut by 80 %",
            format!("{} (p99 {:.1} -> {:.1} ms)", percent(p99), alone[2] * 1e3, tuned[2] * 1e3),
            p99 >= 0.8,
        ),
    ]
}

fn small([alone, tuned]: &[RunMedians; 2]) -> [Target; 2] {
    let ratio = tuned.goodput_bps / alone.goodput_bps;
    let cut = cut(alone.retransmitted, tuned.retransmitted);
    let fell = format!("{} ({} -> {})", percent(cut), alone.retransmitted, tuned.retransmitted);
    [
        target("buffer 0.25 BDP: at least the untuned goodput", percent(ratio), ratio >= 1.0),
        target("buffer 0.25 BDP: retransmissions cut by 90 %", fell, cut >= 0.9),
    ]
}

/// A deep buffer is emptied, at almost no cost in goodput.
fn empties(words: [&'static str; 2], [alone, tuned]: &[RunMedians; 2]) -> [Target; 2] {
    let ratio = tuned.goodput_bps / alone.goodput_bps;
    let queue = cut(alone.queue_s, tuned.queue_s);
    let fell =
        format!("{} ({:.1} -> {:.1} ms)", percent(queue), alone.queue_s * 1e3, tuned.queue_s * 1e3);
    [target(words[0], percent(ratio), ratio >= 0.98), target(words[1], fell, queue >= 0.8)]
}

fn target(words: &'static str, measured: String, met: bool) -> Target {
    Target { words, measured, met }
}

fn cut(before: f64, after: f64) -> f64 {
    if before > 0.0 { 1.0 - after / before } else { 0.0 }
}

/// A share as a percentage.
pub fn percent(share: f64) -> String {
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
    fn jains_index_ranges_from_one_nth_to_one() {
        assert_eq!(jain(&[2.0, 2.0, 2.0]), 1.0);
        assert_eq!(jain(&[5.0, 0.0, 0.0, 0.0, 0.0]), 0.2);
        assert_eq!(jain(&[]), 0.0);
    }
}
