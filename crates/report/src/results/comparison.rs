//! Compares two files of runs: distributions, and differences between paired runs.

use std::collections::BTreeMap;

use sweetspot_experiment::Spread;
use sweetspot_experiment::plot::{Axis, MarkPosition, Origin, Plot, QuantileBox, Table};
use sweetspot_scenario::{Outcome, TransferOutcome};
use sweetspot_units::Significant;

use super::file::ResultFile;
use super::sheet::{DISTRIBUTION, Sheet, distribution, picture_title, spread_out};

/// A metric of a transfer: its name with the unit, the factor to that unit, and its decimals.
struct ComparedQuantity {
    label: &'static str,
    unit: &'static str,
    of: fn(&TransferOutcome, &Outcome) -> f64,
    decimals: usize,
}

const QUANTITIES: [ComparedQuantity; 5] = [
    ComparedQuantity {
        label: "goodput",
        unit: "Mbit/s",
        of: |t, _| t.goodput_bps / 1e6,
        decimals: 2,
    },
    ComparedQuantity { label: "mean RTT", unit: "ms", of: |t, _| t.rtt_mean_s * 1e3, decimals: 2 },
    ComparedQuantity { label: "RTT p99", unit: "ms", of: |t, _| t.rtt_p99_s * 1e3, decimals: 2 },
    ComparedQuantity { label: "loss", unit: "%", of: |t, _| t.loss_rate * 100.0, decimals: 4 },
    ComparedQuantity {
        label: "queueing delay",
        unit: "ms",
        of: |_, outcome| outcome.bottleneck.queue_delay_mean_s * 1e3,
        decimals: 2,
    },
];

/// With fewer values, no box plot or distribution is drawn.
pub const MIN_POINTS_FOR_SPREAD: usize = 5;

/// Indices of the parts of a transfer's key.
const VARIANT: usize = 0;
const SCENARIO: usize = 1;
const SEED: usize = 2;
const NUMBER: usize = 3;

/// A transfer of a run, with its key in its file.
struct Measured<'a> {
    key: [String; 4],
    transfer: &'a TransferOutcome,
    outcome: &'a Outcome,
}

impl ComparedQuantity {
    fn measured(&self, measured: &Measured<'_>) -> f64 {
        (self.of)(measured.transfer, measured.outcome)
    }
}

struct Side<'a> {
    name: &'a str,
    measured: Vec<Measured<'a>>,
}

impl<'a> Side<'a> {
    /// `None` if the file has no runs.
    fn of((name, file): &'a (String, ResultFile)) -> Option<Side<'a>> {
        let outcomes: Vec<(String, &Outcome)> = match file {
            ResultFile::Runs(runs) => {
                runs.iter().map(|run| (String::new(), &run.outcome)).collect()
            }
            ResultFile::Sweep(sweep) => {
                let points = sweep.points.iter();
                let each = points.map(|p| p.outcomes.iter().map(|o| (p.values.join(", "), o)));
                each.flatten().collect()
            }
            ResultFile::Demo(_) | ResultFile::Search(_) | ResultFile::Series(_) => return None,
        };
        let mut measured = Vec::new();
        for (variant, outcome) in outcomes {
            for (number, transfer) in outcome.transfers.iter().enumerate() {
                let (scenario, seed) = (outcome.scenario.clone(), outcome.seed.to_string());
                let key = [variant.clone(), scenario, seed, number.to_string()];
                measured.push(Measured { key, transfer, outcome });
            }
        }
        (!measured.is_empty()).then_some(Side { name, measured })
    }

    /// Whether all transfers have the same `part` of the key.
    fn is_constant(&self, part: usize) -> bool {
        self.measured.windows(2).all(|pair| pair[0].key[part] == pair[1].key[part])
    }

    fn values<'b>(&'b self, quantity: &'b ComparedQuantity) -> impl Iterator<Item = f64> + 'b {
        self.measured.iter().map(|measured| quantity.measured(measured))
    }
}

/// The transfers of both files with the same variant, scenario and number. If each file has only one variant, or one
/// scenario, it may differ between the files. Cases are kept apart, because a mean over several would describe none of them.
struct Case<'a> {
    /// The parts of the key in which this case differs from the others; empty for a single case.
    name: String,
    sides: [Vec<&'a Measured<'a>>; 2],
    /// Pairs of transfers with the same seed, one from each file.
    pairs: Vec<(&'a Measured<'a>, &'a Measured<'a>)>,
}

impl<'a> Case<'a> {
    /// All cases, in the order of the files.
    fn all(a: &'a Side<'a>, b: &'a Side<'a>) -> Vec<Case<'a>> {
        let varies = |part: &usize| !(a.is_constant(*part) && b.is_constant(*part));
        let parts: Vec<usize> = [VARIANT, SCENARIO, NUMBER].into_iter().filter(varies).collect();
        let mut cases: Vec<Case<'a>> = Vec::new();
        for (place, side) in [a, b].into_iter().enumerate() {
            for measured in &side.measured {
                let words = parts.iter().map(|part| match *part {
                    NUMBER => format!("transfer {}", measured.key[NUMBER]),
                    part => measured.key[part].clone(),
                });
                let name = words.collect::<Vec<_>>().join(", ");
                let at = cases.iter().position(|case| case.name == name).unwrap_or_else(|| {
                    cases.push(Case { name, sides: [Vec::new(), Vec::new()], pairs: Vec::new() });
                    cases.len() - 1
                });
                cases[at].sides[place].push(measured);
            }
        }
        for case in &mut cases {
            case.pairs = Case::paired(&case.sides);
        }
        cases
    }

    fn paired([a, b]: &[Vec<&'a Measured<'a>>; 2]) -> Vec<(&'a Measured<'a>, &'a Measured<'a>)> {
        // Runs with the same seed, for example of several engines, are paired in order.
        let mut waiting: BTreeMap<&str, Vec<&'a Measured<'a>>> = BTreeMap::new();
        for measured in a.iter().rev() {
            waiting.entry(&measured.key[SEED]).or_default().push(measured);
        }
        let partner = |theirs: &&'a Measured<'a>| {
            Some((waiting.get_mut(theirs.key[SEED].as_str())?.pop()?, *theirs))
        };
        b.iter().filter_map(partner).collect()
    }

    fn is_in_both(&self) -> bool {
        !self.sides.iter().any(Vec::is_empty)
    }

    /// The differences of its pairs, the second file's less the first's.
    fn differences(&self, quantity: &ComparedQuantity) -> Vec<f64> {
        self.pairs.iter().map(|(a, b)| quantity.measured(b) - quantity.measured(a)).collect()
    }

    /// The mean of one file, over its paired transfers if there are pairs; `None` if the file does not have this case.
    fn mean(&self, side: usize, quantity: &ComparedQuantity) -> Option<f64> {
        let of_pairs = self.pairs.iter().map(|(a, b)| if side == 0 { *a } else { *b });
        let of_all = self.sides[side].iter().copied().filter(|_| self.pairs.is_empty());
        let values = of_pairs.chain(of_all).map(|measured| quantity.measured(measured));
        Spread::of(&values.collect::<Vec<_>>()).map(|spread| spread.mean)
    }
}

/// Compares the second of exactly two files of runs with the first.
pub fn sheets(findings: &[(String, ResultFile)]) -> Option<Sheet> {
    let [first, second] = findings else { return None };
    let (a, b) = (Side::of(first)?, Side::of(second)?);
    let cases = Case::all(&a, &b);
    let is_compared = cases.iter().any(Case::is_in_both);
    let mut plots = Vec::new();
    for quantity in QUANTITIES.iter().take(2).filter(|_| is_compared) {
        plots.extend(boxes(&a, &b, quantity));
        plots.extend(distributions(&a, &b, quantity));
        plots.extend(paired(&a, &b, quantity, &cases));
    }
    Some(Sheet {
        name: "comparison".into(),
        title: match different_scenarios(&a, &b) {
            None => title([a.name, b.name], &cases),
            Some(_) => format!("Different scenarios: {}", title([a.name, b.name], &cases)),
        },
        about: about(&a, &b, &cases),
        plots,
        tables: is_compared.then(|| table([a.name, b.name], &cases)).into_iter().collect(),
    })
}

/// The scenarios of two files, if each has a single one and they differ.
fn different_scenarios<'a>(a: &'a Side<'_>, b: &'a Side<'_>) -> Option<[&'a str; 2]> {
    let only = |side: &'a Side<'_>| {
        let first = side.measured.first().filter(|_| side.is_constant(SCENARIO))?;
        Some(first.key[SCENARIO].as_str())
    };
    let both = [only(a)?, only(b)?];
    (both[0] != both[1]).then_some(both)
}

/// Two runs with rates within this share of each other do not show which is faster: another seed may reverse them.
pub const CLOSE_SHARE: f64 = 0.02;

/// The goodput of the second file relative to the first.
fn title([a, b]: [&str; 2], cases: &[Case<'_>]) -> String {
    if let [case] = cases {
        return title_of_one([a, b], case);
    }
    let verdicts: Vec<Verdict> = cases.iter().filter_map(Verdict::of).collect();
    let [faster, slower] = [Verdict::Faster, Verdict::Slower]
        .map(|wanted| verdicts.iter().filter(|verdict| **verdict == wanted).count());
    match (verdicts.len(), faster, slower) {
        (0, ..) => format!("{a} and {b}: no transfers to compare pair by pair"),
        (all, 0, 0) => {
            let cases = if all == 1 { "case" } else { "cases" };
            format!("{a} and {b}: no difference in goodput beyond chance in {all} {cases}")
        }
        (all, faster, slower) => {
            format!("{b} is faster than {a} in {faster} of {all} cases, and slower in {slower}")
        }
    }
}

/// Which file is faster, in one case.
#[derive(PartialEq)]
enum Verdict {
    /// The second file.
    Faster,
    /// The first file.
    Slower,
    /// Neither: the difference may be chance.
    Level,
    /// Neither: the only pair has a small difference.
    Close,
}

impl Verdict {
    /// `None` without pairs.
    fn of(case: &Case<'_>) -> Option<Verdict> {
        let quantity = &QUANTITIES[0];
        let differences = case.differences(quantity);
        let goodput = difference(quantity, &differences)?;
        // A single pair has no confidence interval.
        let is_close = differences.len() == 1
            && goodput.mean.abs() < CLOSE_SHARE * case.mean(0, quantity).unwrap_or(0.0);
        Some(match goodput.mean > 0.0 {
            _ if !goodput.beyond_chance => Verdict::Level,
            _ if is_close => Verdict::Close,
            true => Verdict::Faster,
            false => Verdict::Slower,
        })
    }
}

/// The title for a single case: goodput and RTT of the second file relative to the first.
fn title_of_one([a, b]: [&str; 2], case: &Case<'_>) -> String {
    let [goodput, rtt, p99] =
        [0, 1, 2].map(|i| difference(&QUANTITIES[i], &case.differences(&QUANTITIES[i])));
    let (Some(verdict), Some(goodput), Some(rtt), Some(p99)) =
        (Verdict::of(case), goodput, rtt, p99)
    else {
        let [before, after] = [0, 1].map(|side| case.mean(side, &QUANTITIES[0]).unwrap_or(0.0));
        return format!("{a} {before:.2} Mbit/s, {b} {after:.2} Mbit/s");
    };
    let pairs = match case.pairs.len() {
        1 => "one pair".to_owned(),
        count => format!("{count} pairs"),
    };
    let [of_goodput, of_rtt] = [0, 1].map(|i| QUANTITIES[i].unit);
    let beside = |how| {
        let longer = |rtt: MeanDifference| match (rtt.beyond_chance, rtt.mean > 0.0) {
            (false, _) => "alike".to_owned(),
            (true, true) => format!("{} {of_rtt} longer", rtt.size()),
            (true, false) => format!("{} {of_rtt} shorter", rtt.size()),
        };
        let goodput = goodput.size();
        let (rtt, p99) = (longer(rtt), longer(p99));
        format!("{b} is {goodput} {of_goodput} {how} than {a}; mean RTT {rtt}, p99 {p99} ({pairs})")
    };
    // If the rates are alike, the RTTs distinguish the files.
    let [before, after] = [0, 1].map(|side| case.mean(side, &QUANTITIES[1]).unwrap_or(0.0));
    let rtts = match format!("{before:.0}") == format!("{after:.0}") {
        true => format!("mean RTT {after:.1} {of_rtt} in both"),
        false => format!("mean RTT {after:.0} {of_rtt} instead of {before:.0} {of_rtt}"),
    };
    match verdict {
        // A single pair says nothing about chance.
        Verdict::Level if case.pairs.len() == 1 => {
            format!("{b} and {a}: the same goodput, {rtts} ({pairs})")
        }
        Verdict::Level => {
            format!("{b} and {a}: no difference in goodput beyond chance, {rtts} ({pairs})")
        }
        Verdict::Close => {
            format!("{b}: goodput within {} % of {a}, {rtts} ({pairs})", CLOSE_SHARE * 100.0)
        }
        Verdict::Faster => beside("faster"),
        Verdict::Slower => beside("slower"),
    }
}

struct MeanDifference {
    mean: f64,
    half_width: Option<f64>,
    words: String,
    /// Whether the interval excludes zero; for a single pair, whether the digits show a difference.
    beyond_chance: bool,
}

impl MeanDifference {
    /// The size of the difference and half its interval, for a sentence: the table has more digits.
    fn size(&self) -> String {
        let half = self.half_width.filter(|half| *half > 1e-9);
        let half = half.map(|half| format!(" ± {}", Significant::<2>(half)));
        format!("{}{}", Significant::<3>(self.mean.abs()), half.unwrap_or_default())
    }
}

fn difference(quantity: &ComparedQuantity, differences: &[f64]) -> Option<MeanDifference> {
    let ComparedQuantity { decimals, .. } = *quantity;
    let spread = Spread::of(differences)?;
    let half = spread.half_width.map_or(String::new(), |half| format!(" ± {half:.decimals$}"));
    // Half of the last digit: the smallest difference that the digits show.
    let seen = 0.5 * 10_f64.powi(-(decimals as i32));
    Some(MeanDifference {
        mean: spread.mean,
        half_width: spread.half_width,
        // Never -0.00.
        words: format!(
            "{:+.decimals$}{half}",
            if spread.mean.abs() < seen { 0.0 } else { spread.mean }
        ),
        beyond_chance: spread.mean.abs() > spread.half_width.unwrap_or(0.0).max(seen),
    })
}

fn about(a: &Side<'_>, b: &Side<'_>, cases: &[Case<'_>]) -> String {
    let pairs: usize = cases.iter().map(|case| case.pairs.len()).sum();
    let left = a.measured.len() + b.measured.len() - 2 * pairs;
    let mut how =
        "A pair is a transfer of each file with the same variant, scenario, seed and number."
            .to_owned();
    if cases.len() > 1 {
        how += " A case is all pairs that differ in their seeds alone.";
    }
    if let Some([first, second]) = different_scenarios(a, b) {
        how += &format!(
            " The files ran different scenarios, \"{first}\" and \"{second}\", so a difference need not come from the \
             transfers."
        );
    }
    match (pairs, left) {
        (0, _) if !cases.iter().any(Case::is_in_both) => format!(
            "{how} No variant of one file is in the other, so nothing is compared: the parts below show each file."
        ),
        (0, _) => format!(
            "{how} These files have no pair, so their means are compared; for pairs, run both with the same seeds."
        ),
        (_, 0) => how,
        (_, 1) => format!("{how} 1 transfer has no partner."),
        (_, left) => format!("{how} {left} transfers have no partner."),
    }
}

fn named(quantity: &ComparedQuantity) -> String {
    format!("{}, {}", quantity.label, quantity.unit)
}

fn boxes(a: &Side<'_>, b: &Side<'_>, quantity: &ComparedQuantity) -> Option<Plot> {
    if a.measured.len().min(b.measured.len()) < MIN_POINTS_FOR_SPREAD {
        return None;
    }
    let names = [a, b].map(|side| side.name.to_owned()).to_vec();
    let mut plot = Plot::new(
        picture_title(quantity.label, " of the transfers"),
        Axis::named("file", names),
        Axis::new(named(quantity)),
    );
    for (group, side) in [a, b].into_iter().enumerate() {
        let at = group as f64 + 1.0;
        plot.boxes.extend(QuantileBox::of(side.name, (group, at), side.values(quantity)));
    }
    // Box plots have no area, so the axis needs no zero.
    let ends = plot.boxes.iter().flat_map(|each| [each.quantiles[0], each.quantiles[4]]);
    let (low, high) =
        ends.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), y| (low.min(y), high.max(y)));
    if low < high {
        let room = 0.1 * (high - low);
        plot.y = plot.y.between(low - room, high + room);
    }
    Some(plot)
}

fn distributions(a: &Side<'_>, b: &Side<'_>, quantity: &ComparedQuantity) -> Option<Plot> {
    if a.measured.len().min(b.measured.len()) < MIN_POINTS_FOR_SPREAD {
        return None;
    }
    let share = Axis::new("share of transfers").between(0.0, 1.0);
    let title = picture_title(quantity.label, DISTRIBUTION);
    let mut plot = Plot::new(title, Axis::new(named(quantity)), share);
    for (group, side) in [a, b].into_iter().enumerate() {
        plot.curve(side.name, Origin::Recorded, group, distribution(side.values(quantity)));
    }
    Some(spread_out(plot))
}

/// The distribution of the paired differences, with the interval of their mean if all belong to one case.
fn paired(
    a: &Side<'_>,
    b: &Side<'_>,
    quantity: &ComparedQuantity,
    cases: &[Case<'_>],
) -> Option<Plot> {
    let differences: Vec<f64> = cases.iter().flat_map(|case| case.differences(quantity)).collect();
    if differences.len() < MIN_POINTS_FOR_SPREAD {
        return None;
    }
    let words = format!("{} − {}: {}", b.name, a.name, named(quantity));
    let title = picture_title(quantity.label, ": differences of pairs, share of values below");
    let share = Axis::new("share of pairs").between(0.0, 1.0);
    let mut plot = Plot::new(title, Axis::new(words), share);
    plot.curve("pairs", Origin::Recorded, 1, distribution(differences.iter().copied()));
    plot.mark("no difference", 6, MarkPosition::Span(0.0, 0.0));
    let interval = Spread::of(&differences).and_then(|s| Some((s.mean, s.half_width?)));
    plot.band = interval
        .filter(|_| cases.len() == 1)
        .map(|(mean, half)| ("mean, 95 % interval".to_owned(), mean - half, mean + half));
    Some(plot)
}

fn table(names: [&str; 2], cases: &[Case<'_>]) -> Table {
    let [a, b] = names;
    let heads = ["case", "mean of", a, b, "difference in pairs"];
    // A single case has no name.
    let first = usize::from(cases.len() == 1);
    // A single pair has no interval.
    let title = match cases.iter().any(|case| case.pairs.len() > 1) {
        true => "Differences with the 95 % confidence interval of their mean",
        false => "Differences",
    };
    let mut table = Table::new(title, &heads[first..]);
    for case in cases {
        for quantity in &QUANTITIES {
            let decimals = quantity.decimals;
            let difference = difference(quantity, &case.differences(quantity));
            let mean = |side| case.mean(side, quantity).map(|mean| format!("{mean:.decimals$}"));
            let cells = [mean(0), mean(1), difference.map(|difference| difference.words)];
            let cells = cells.map(|cell| cell.unwrap_or_else(|| "–".to_owned()));
            let row = [case.name.clone(), named(quantity)].into_iter().chain(cells);
            table.rows.push(row.skip(first).collect());
        }
    }
    table
}
