//! Two files of runs beside one another: how each is distributed, and how they differ pair by pair.

use std::collections::BTreeMap;

use sweetspot_experiment::Spread;
use sweetspot_experiment::plot::{Axis, MarkPosition, Origin, Plot, QuantileBox, Table};
use sweetspot_scenario::{Outcome, TransferOutcome};

use super::file::ResultFile;
use super::sheet::{DISTRIBUTION, Sheet, distribution, picture_title, spread_out};

/// Metric of a transfer, its name with the unit, the factor to it, decimals.
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
    ComparedQuantity {
        label: "99 % of RTTs below",
        unit: "ms",
        of: |t, _| t.rtt_p99_s * 1e3,
        decimals: 2,
    },
    ComparedQuantity { label: "loss", unit: "%", of: |t, _| t.loss_rate * 100.0, decimals: 4 },
    ComparedQuantity {
        label: "queueing delay",
        unit: "ms",
        of: |_, outcome| outcome.bottleneck.queue_delay_mean_s * 1e3,
        decimals: 2,
    },
];

/// Fewer values make no box with whiskers: a twentieth of them is not one.
const FEWEST_FOR_A_BOX: usize = 5;
/// Fewer values make no distribution.
const FEWEST_FOR_A_CURVE: usize = 3;

/// A transfer of a run, and its identity in its file.
struct Measured<'a> {
    key: Vec<String>,
    transfer: &'a TransferOutcome,
    outcome: &'a Outcome,
}

/// A file and its transfers.
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
            ResultFile::Demo(_) | ResultFile::Series(_) => return None,
        };
        let mut measured = Vec::new();
        for (variant, outcome) in outcomes {
            for (number, transfer) in outcome.transfers.iter().enumerate() {
                let (scenario, seed) = (outcome.scenario.clone(), outcome.seed.to_string());
                let key = vec![variant.clone(), scenario, seed, number.to_string()];
                measured.push(Measured { key, transfer, outcome });
            }
        }
        (!measured.is_empty()).then_some(Side { name, measured })
    }

    /// Whether all transfers have the same part `part` of their keys.
    fn is_constant(&self, part: usize) -> bool {
        self.measured.windows(2).all(|pair| pair[0].key[part] == pair[1].key[part])
    }

    fn values<'b>(&'b self, quantity: &'b ComparedQuantity) -> impl Iterator<Item = f64> + 'b {
        self.measured.iter().map(|m| (quantity.of)(m.transfer, m.outcome))
    }

    fn mean(&self, quantity: &ComparedQuantity) -> f64 {
        self.values(quantity).sum::<f64>() / self.measured.len() as f64
    }
}

/// Parts of a key in which two files may differ and still be compared pair by pair, if each has one value:
/// the variant and the scenario's title. The seed is none of them.
const MAY_DIFFER: [usize; 2] = [0, 1];

/// Transfers of both files with the same variant, scenario, seed and number.
fn pairs<'a>(a: &'a Side<'a>, b: &'a Side<'a>) -> Vec<(&'a Measured<'a>, &'a Measured<'a>)> {
    let ignored: Vec<usize> = MAY_DIFFER
        .into_iter()
        .filter(|part| a.is_constant(*part) && b.is_constant(*part))
        .collect();
    let identity = |measured: &Measured<'_>| -> Vec<String> {
        let parts = measured.key.iter().enumerate();
        parts.filter(|(part, _)| !ignored.contains(part)).map(|(_, word)| word.clone()).collect()
    };
    // Runs of one identity, by several engines for example, are paired in order.
    let mut waiting: BTreeMap<Vec<String>, Vec<&Measured<'_>>> = BTreeMap::new();
    for measured in a.measured.iter().rev() {
        waiting.entry(identity(measured)).or_default().push(measured);
    }
    let partner =
        |theirs: &'a Measured<'a>| Some((waiting.get_mut(&identity(theirs))?.pop()?, theirs));
    b.measured.iter().filter_map(partner).collect()
}

/// How the second of exactly two files with runs differs from the first.
pub fn sheets(findings: &[(String, ResultFile)]) -> Option<Sheet> {
    let [first, second] = findings else { return None };
    let (a, b) = (Side::of(first)?, Side::of(second)?);
    let pairs = pairs(&a, &b);
    let differences: Vec<Vec<f64>> = QUANTITIES
        .iter()
        .map(|quantity| {
            let of = |m: &Measured<'_>| (quantity.of)(m.transfer, m.outcome);
            pairs.iter().map(|(a, b)| of(b) - of(a)).collect()
        })
        .collect();
    let mut plots = Vec::new();
    for (quantity, differences) in QUANTITIES.iter().zip(&differences).take(2) {
        plots.extend(boxes(&a, &b, quantity));
        plots.extend(distributions(&a, &b, quantity));
        plots.extend(paired(&a, &b, quantity, differences));
    }
    Some(Sheet {
        name: "comparison".into(),
        title: message(&a, &b, &differences),
        about: about(&a, &b, pairs.len()),
        plots,
        tables: vec![table(&a, &b, &differences)],
    })
}

/// Rates of a single pair within this share of one another do not tell which file is faster: another seed may reverse them.
const CLOSE: f64 = 0.02;

/// The second's goodput and RTT relative to the first's.
fn message(a: &Side<'_>, b: &Side<'_>, differences: &[Vec<f64>]) -> String {
    let [goodput, rtt] = [0, 1].map(|i| difference(&QUANTITIES[i], &differences[i]));
    let count = differences[0].len();
    let (Some(goodput), Some(rtt)) = (goodput, rtt) else {
        // A mean over several variants is the rate of none.
        if ![a, b].iter().all(|side| MAY_DIFFER.iter().all(|part| side.is_constant(*part))) {
            return format!("{} and {}: no transfers to compare pair by pair", a.name, b.name);
        }
        let [before, after] = [a, b].map(|side| side.mean(&QUANTITIES[0]));
        return format!("{} {before:.2} Mbit/s, {} {after:.2} Mbit/s", a.name, b.name);
    };
    let pairs = if count == 1 { "one pair".to_owned() } else { format!("{count} pairs") };
    let [of_goodput, of_rtt] = [0, 1].map(|i| QUANTITIES[i].unit);
    let numbers =
        format!("{} {of_goodput}, mean RTT {} {of_rtt} in {pairs}", goodput.words, rtt.words);
    if !goodput.beyond_chance {
        return format!(
            "{} and {}: no difference in goodput beyond chance ({numbers})",
            a.name, b.name
        );
    }
    // One pair has no interval.
    if count == 1 && goodput.mean.abs() < CLOSE * a.mean(&QUANTITIES[0]) {
        return format!(
            "{} and {}: goodput within {} % ({numbers})",
            a.name,
            b.name,
            CLOSE * 100.0
        );
    }
    let faster = if goodput.mean > 0.0 { "faster" } else { "slower" };
    format!("{} is {faster} than {}: {numbers}", b.name, a.name)
}

/// The mean of the differences of pairs.
struct MeanDifference {
    mean: f64,
    words: String,
    /// Whether its interval leaves out zero; of one pair, whether it shows at all.
    beyond_chance: bool,
}

fn difference(quantity: &ComparedQuantity, differences: &[f64]) -> Option<MeanDifference> {
    let ComparedQuantity { decimals, .. } = *quantity;
    let spread = Spread::of(differences)?;
    let half = spread.half_width.map_or(String::new(), |half| format!(" ± {half:.decimals$}"));
    // The least that the digits show.
    let seen = 0.5 * 10_f64.powi(-(decimals as i32));
    Some(MeanDifference {
        mean: spread.mean,
        words: format!("{:+.decimals$}{half}", spread.mean),
        beyond_chance: spread.mean.abs() > spread.half_width.unwrap_or(0.0).max(seen),
    })
}

fn about(a: &Side<'_>, b: &Side<'_>, pairs: usize) -> String {
    let left = a.measured.len() + b.measured.len() - 2 * pairs;
    let how = "A pair is a transfer of each file with the same variant, scenario, seed and number.";
    match (pairs, left) {
        (0, _) => format!(
            "{how} There is none, so that the files are compared as wholes: run both with the same seeds."
        ),
        (_, 0) => how.to_owned(),
        (_, left) => format!("{how} {left} transfers have no partner."),
    }
}

fn named(quantity: &ComparedQuantity) -> String {
    format!("{}, {}", quantity.label, quantity.unit)
}

fn boxes(a: &Side<'_>, b: &Side<'_>, quantity: &ComparedQuantity) -> Option<Plot> {
    if a.measured.len().min(b.measured.len()) < FEWEST_FOR_A_BOX {
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
    // Boxes have no area that would need a zero.
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
    if a.measured.len().min(b.measured.len()) < FEWEST_FOR_A_CURVE {
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

/// How the differences of pairs are distributed, with the interval of their mean.
fn paired(
    a: &Side<'_>,
    b: &Side<'_>,
    quantity: &ComparedQuantity,
    differences: &[f64],
) -> Option<Plot> {
    if differences.len() < FEWEST_FOR_A_CURVE {
        return None;
    }
    let words = format!("{} − {}: {}", b.name, a.name, named(quantity));
    let title = picture_title(quantity.label, ": differences of pairs, share of values below");
    let share = Axis::new("share of pairs").between(0.0, 1.0);
    let mut plot = Plot::new(title, Axis::new(words), share);
    plot.curve("pairs", Origin::Recorded, 1, distribution(differences.iter().copied()));
    plot.mark("no difference", 6, MarkPosition::Span(0.0, 0.0));
    let interval = Spread::of(differences).and_then(|s| Some((s.mean, s.half_width?)));
    plot.band =
        interval.map(|(mean, half)| ("mean, 95 % interval".to_owned(), mean - half, mean + half));
    Some(plot)
}

fn table(a: &Side<'_>, b: &Side<'_>, differences: &[Vec<f64>]) -> Table {
    let heads = ["mean of", a.name, b.name, "difference in pairs"];
    // One pair has no interval.
    let title = if differences.iter().any(|of| of.len() > 1) {
        "Differences with the 95 % confidence interval of their mean"
    } else {
        "Differences"
    };
    let mut table = Table::new(title, &heads);
    for (quantity, differences) in QUANTITIES.iter().zip(differences) {
        let decimals = quantity.decimals;
        let difference = difference(quantity, differences)
            .map_or("–".to_owned(), |difference| difference.words);
        let mean = |side: &Side<'_>| format!("{:.decimals$}", side.mean(quantity));
        table.rows.push(vec![named(quantity), mean(a), mean(b), difference]);
    }
    table
}
