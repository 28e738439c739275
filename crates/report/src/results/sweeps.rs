use sweetspot_experiment::plot::{Axis, Curve, MarkPosition, Plot, PublishedMark, Table};
use sweetspot_experiment::{Advantage, Fastest, KeyNumbers, KeyUnit, Metric, Spread, SweepPoint};

use super::comparison::{CLOSE_SHARE, MIN_POINTS_FOR_SPREAD};
use super::engines::origin;
use super::sheet::{Sheet, distribution, picture_title, spread_out, titled};
use crate::sweep::{SweepFile, SweepFilePoint};

/// A sweep: each quantity against a numeric key, with a line per combination of the other keys.
pub fn sheets(index: usize, file: &str, sweep: &SweepFile) -> Vec<Sheet> {
    let points: Vec<Point> = sweep.points.iter().map(Point::of).collect();
    let mut plots = Vec::new();
    if let Some((key, axis)) = numeric_key(sweep).or_else(|| named_key(sweep)) {
        for (metric, label, scale) in QUANTITIES {
            plots.push(against(sweep, &points, (key, &axis), (metric, label, scale)));
        }
        let band = sweet_spot(sweep, key, &axis.unit).filter(|band| agrees(band, &plots[0]));
        plots.iter_mut().for_each(|plot| plot.band.clone_from(&band));
    }
    if sweep.points.iter().any(|point| point.outcomes.len() > 2) {
        plots.extend(goodput_over_seeds(sweep, &points));
    }
    let (title, others) = message(sweep, &points);
    vec![Sheet {
        name: format!("sweep-{index}"),
        title,
        about: others + &about(file, sweep),
        plots,
        tables: vec![table(sweep, &points)],
    }]
}

fn about(file: &str, sweep: &SweepFile) -> String {
    let over = sweep.keys.join(" and ");
    match sweep.command.as_str() {
        "" => format!("Sweep over {over}: `{file}`"),
        command => format!("Sweep over {over}: `{command}` (`{file}`)"),
    }
}

/// Summarises the sweep: the best values for the first transfer, or the fastest and, for each group of other keys, a sentence
/// about the values that may be as fast.
fn message(sweep: &SweepFile, points: &[Point]) -> (String, String) {
    let Some(fastest) = Fastest::of(points.iter().map(|point| &point.statistics)) else {
        return (format!("Sweep over {}", sweep.keys.join(" and ")), String::new());
    };
    let name = |place: usize| {
        let values = sweep.keys.iter().zip(&points[place].values);
        values.map(|(key, value)| format!("{key} {value}")).collect::<Vec<_>>().join(", ")
    };
    let show = |place: usize, goodput_bps: f64| {
        let goodput = metric("goodput_bps");
        let spread = goodput.and_then(|m| points[place].statistics.spread(m, 0));
        let half = spread.and_then(|spread| spread.half_width);
        let half = plus_minus(half.map(|half| half / 1e6), 2);
        let rtt = points[place].statistics.rtt().map_or(String::new(), |rtt| format!(" at {rtt}"));
        format!("{}, {:.2}{half} Mbit/s{rtt}", name(place), goodput_bps / 1e6)
    };
    let first = show(fastest.place, fastest.goodput_bps);
    let values: Vec<&[String]> = points.iter().map(|point| point.values.as_slice()).collect();
    let rtts: Vec<_> = points.iter().map(|point| point.statistics.rtt()).collect();
    let (place, goodput_bps, advantage) = fastest.best(&values, &rtts);
    let because = match advantage {
        Advantage::SmallestWindow => "the smallest window that is as fast as",
        Advantage::ShortestRtt => "the shortest RTT of those that are as fast as",
        Advantage::Rate => {
            let others = fastest.others_in_words(name);
            let title = match points.len() {
                1 => first,
                count if fastest.unsure.is_empty() => format!("Fastest of {count}: {first}"),
                count => format!("No clear winner of {count}; highest mean: {first}"),
            };
            return (title, others.iter().map(|clause| sentence(clause)).collect());
        }
    };
    let best = show(place, goodput_bps);
    (format!("Best of {}: {best}, {because} {first}", points.len()), String::new())
}

/// Turns a clause into a sentence, with a leading space.
fn sentence(clause: &str) -> String {
    let mut letters = clause.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    first.into_iter().chain(letters).collect::<String>() + ". "
}

/// Metric, name of its axis, and factor to its unit.
type SweptQuantity = (&'static str, &'static str, f64);

const QUANTITIES: [SweptQuantity; 3] = [
    ("goodput_bps", "goodput, Mbit/s", 1e-6),
    ("rtt_mean_s", "mean RTT, ms", 1e3),
    ("queue_delay_mean_s", "mean queueing delay, ms", 1e3),
];

fn metric(name: &str) -> Option<Metric> {
    Metric::ALL.into_iter().find(|metric| metric.name == name)
}

/// A variant with its statistics.
struct Point {
    values: Vec<String>,
    statistics: SweepPoint,
}

impl Point {
    fn of(point: &SweepFilePoint) -> Point {
        let values = point.values.clone();
        let outcomes = point.outcomes.clone();
        Point { values: values.clone(), statistics: SweepPoint { values, outcomes } }
    }
}

impl Point {
    /// The mean goodput of the first transfer over the seeds, in bit/s.
    fn mean_goodput(&self) -> f64 {
        let spread = metric("goodput_bps").and_then(|m| self.statistics.spread(m, 0));
        spread.map_or(0.0, |spread| spread.mean)
    }
}

/// The positions of a key's values on an axis, a number for each point: the numbers as written if all have one unit.
struct KeyAxis {
    unit: String,
    numbers: Vec<Option<f64>>,
    /// The values themselves, if the positions only count them from one.
    names: Vec<String>,
}

impl KeyAxis {
    fn of(sweep: &SweepFile, key: usize) -> Option<KeyAxis> {
        let values: Vec<&str> =
            sweep.points.iter().map(|point| point.values[key].as_str()).collect();
        let found = KeyNumbers::of(values.iter().copied())?;
        let written: Vec<Option<(f64, &str)>> = values
            .iter()
            .zip(&found.numbers)
            .map(|(value, number)| number.and_then(|_| as_written(value)))
            .collect();
        let unit = written.iter().flatten().next()?.1;
        if written.iter().flatten().all(|(_, other)| *other == unit) {
            let numbers = written.iter().map(|written| written.map(|(number, _)| number)).collect();
            return Some(KeyAxis { unit: unit.to_owned(), numbers, names: Vec::new() });
        }
        let unit = match found.unit {
            KeyUnit::Packets => "pkt",
            KeyUnit::Bytes => "B",
            KeyUnit::BitsPerSecond => "bit/s",
            KeyUnit::Seconds => "s",
            _ => "",
        };
        Some(KeyAxis { unit: unit.to_owned(), numbers: found.numbers, names: Vec::new() })
    }

    /// An axis with the values of a key side by side.
    fn of_names(sweep: &SweepFile, key: usize) -> KeyAxis {
        let mut names: Vec<String> = Vec::new();
        let mut number = |point: &SweepFilePoint| {
            let value = &point.values[key];
            let place = names.iter().position(|name| name == value).unwrap_or_else(|| {
                names.push(value.clone());
                names.len() - 1
            });
            Some(place as f64 + 1.0)
        };
        let numbers = sweep.points.iter().map(&mut number).collect();
        KeyAxis { unit: String::new(), numbers, names }
    }

    /// The number of distinct positions.
    fn different(&self) -> usize {
        let mut numbers: Vec<f64> = self.numbers.iter().copied().flatten().collect();
        numbers.sort_by(f64::total_cmp);
        numbers.dedup();
        numbers.len()
    }
}

/// The number at the end of a value and its unit, e.g. 625 and `pkt` in `fixed:625pkt`.
fn as_written(value: &str) -> Option<(f64, &str)> {
    let quantity = value.rsplit(':').next().unwrap_or(value).trim();
    let unit_at = quantity.find(|c: char| !(c.is_ascii_digit() || "+-.eE".contains(c)));
    let (number, unit) = quantity.split_at(unit_at.unwrap_or(quantity.len()));
    Some((number.trim_end().parse().ok()?, unit))
}

/// The key with the most distinct numbers, if it has three or more.
fn numeric_key(sweep: &SweepFile) -> Option<(usize, KeyAxis)> {
    let keys = (0..sweep.keys.len()).filter_map(|key| Some((key, KeyAxis::of(sweep, key)?)));
    keys.max_by_key(|(_, axis)| axis.different()).filter(|(_, axis)| axis.different() >= 3)
}

/// The key with the most distinct values, if their names fit side by side.
fn named_key(sweep: &SweepFile) -> Option<(usize, KeyAxis)> {
    /// More names would overlap.
    const MAX_NAMES: usize = 6;
    let keys = (0..sweep.keys.len()).map(|key| (key, KeyAxis::of_names(sweep, key)));
    let fit = keys.filter(|(_, axis)| (2..=MAX_NAMES).contains(&axis.names.len()));
    fit.max_by_key(|(_, axis)| axis.names.len())
}

/// The spread of the quantity `name` for each transfer of `point`, with the transfer's place among all of them.
fn spreads(point: &Point, name: &str) -> Vec<((usize, usize), Spread)> {
    let transfers = point.statistics.outcomes.first().map_or(0, |o| o.transfers.len());
    let spread =
        |transfer| Some(((transfer, transfers), point.statistics.spread(metric(name)?, transfer)?));
    (0..transfers).filter_map(spread).collect()
}

fn against(
    sweep: &SweepFile,
    points: &[Point],
    (axis, KeyAxis { unit, numbers, names }): (usize, &KeyAxis),
    (name, label, scale): SweptQuantity,
) -> Plot {
    let of = if unit.is_empty() { String::new() } else { format!(", {unit}") };
    let key = &sweep.keys[axis];
    let title = picture_title(label, &format!(" by {key}"));
    let across = match names.as_slice() {
        [] => Axis::new(format!("{key}{of}")),
        names => Axis::named(key, names.to_vec()),
    };
    let mut plot = Plot::new(title, across, Axis::new(label));
    let mut curves: Vec<Curve> = Vec::new();
    for (point, x) in points.iter().zip(numbers) {
        let Some(x) = *x else { continue };
        for (place, spread) in spreads(point, name) {
            let label = label_of(sweep, point, axis, place);
            let at = curves.iter().position(|curve| curve.label == label).unwrap_or_else(|| {
                let engine = point.statistics.outcomes.first().map_or("", |o| o.engine.as_str());
                let (origin, group) = (origin(engine), curves.len());
                let (points, half_widths) = (Vec::new(), Vec::new());
                curves.push(Curve { label, origin, group, points, half_widths });
                curves.len() - 1
            });
            curves[at].points.push((x, spread.mean * scale));
            curves[at].half_widths.push(spread.half_width.unwrap_or(0.0) * scale);
        }
    }
    for curve in &mut curves {
        sort(curve);
    }
    plot.x.logarithmic =
        names.is_empty() && in_equal_ratios(curves.iter().flat_map(|curve| &curve.points));
    plot.marks = levels(sweep, points, (axis, numbers), (name, scale), curves.len());
    plot.curves = curves;
    plot
}

/// The points without a position on the axis, such as `sobas` among windows in packets. Each is a level in its own colour.
fn levels(
    sweep: &SweepFile,
    points: &[Point],
    (axis, numbers): (usize, &[Option<f64>]),
    (name, scale): (&str, f64),
    first_group: usize,
) -> Vec<PublishedMark> {
    let mut marks = Vec::new();
    for (point, _) in points.iter().zip(numbers).filter(|(_, number)| number.is_none()) {
        for (place, spread) in spreads(point, name) {
            let others = label_of(sweep, point, axis, place);
            let label = match sweep.keys.len() > 1 || place.1 > 1 {
                true => format!("{}, {others}", point.values[axis]),
                false => point.values[axis].clone(),
            };
            let (group, place) =
                (first_group + marks.len(), MarkPosition::Level(spread.mean * scale));
            marks.push(PublishedMark { label, group, place });
        }
    }
    marks
}

/// Whether the x axis has four or more values in equal ratios, for which only a logarithmic axis is clear. Rounding to whole
/// packets may slightly change a ratio.
fn in_equal_ratios<'a>(points: impl Iterator<Item = &'a (f64, f64)>) -> bool {
    let mut values: Vec<f64> = points.map(|point| point.0).collect();
    values.sort_by(f64::total_cmp);
    values.dedup();
    let (Some(first), Some(last)) = (values.first(), values.last()) else { return false };
    if values.len() < 4 || *first <= 0.0 {
        return false;
    }
    let mean = (last / first).ln() / (values.len() - 1) as f64;
    values.windows(2).all(|pair| ((pair[1] / pair[0]).ln() / mean - 1.0).abs() < 0.1)
}

fn sort(curve: &mut Curve) {
    let mut both: Vec<((f64, f64), f64)> =
        curve.points.iter().copied().zip(curve.half_widths.iter().copied()).collect();
    both.sort_by(|a, b| a.0.0.total_cmp(&b.0.0));
    (curve.points, curve.half_widths) = both.into_iter().unzip();
}

/// The values of the other keys, and the transfer if there are several.
fn label_of(
    sweep: &SweepFile,
    point: &Point,
    axis: usize,
    (transfer, transfers): (usize, usize),
) -> String {
    let others = sweep.keys.iter().zip(&point.values).enumerate();
    let mut words: Vec<String> = others
        .filter(|(key, _)| *key != axis)
        .map(|(_, (key, value))| format!("{} {value}", key.rsplit('.').next().unwrap_or(key)))
        .collect();
    if transfers > 1 {
        words.push(format!("transfer {transfer}"));
    }
    if words.is_empty() {
        let first = point.statistics.outcomes.first();
        return first.map_or(String::new(), |outcome| titled(&outcome.scenario).to_owned());
    }
    words.join(", ")
}

/// The sweet spot by closed form, including the effect of cross traffic. `None` unless the axis is a window, a closed form exists, and all
/// points have the same sweet spot.
fn sweet_spot(sweep: &SweepFile, axis: usize, unit: &str) -> Option<(String, f64, f64)> {
    let path = sweep.points.first()?.path;
    let window = sweep.keys[axis].ends_with("sizing");
    if !window || sweep.points.iter().any(|point| point.path != path) {
        return None;
    }
    let one = match unit {
        "pkt" => path.packet_bytes as f64,
        "B" => 1.0,
        "kB" => 1e3,
        "MB" => 1e6,
        _ => return None,
    };
    let (low, high) = path.sweet_spot_bytes?;
    Some(("sweet spot, in theory".to_owned(), low as f64 / one, high as f64 / one))
}

/// Whether the points in `band` have the highest goodput of their curve, as a sweet spot promises. They do not if a larger window
/// displaces other transfers, or if the buffer overflows earlier than in the closed form.
fn agrees((_, from, to): &(String, f64, f64), goodput: &Plot) -> bool {
    goodput.curves.iter().all(|curve| {
        let highest = curve.points.iter().map(|point| point.1).fold(0.0, f64::max);
        let mut points = curve.points.iter().zip(&curve.half_widths);
        points.all(|(&(window, mean), half)| {
            let is_inside = (*from..=*to).contains(&window);
            !is_inside || mean + half >= highest * (1.0 - CLOSE_SHARE)
        })
    })
}

/// The distribution of goodput over the seeds of each variant; with many variants, of the fastest. `None` if all seeds give the
/// same goodput, or there are too few.
fn goodput_over_seeds(sweep: &SweepFile, points: &[Point]) -> Option<Plot> {
    /// With more lines than colours, lines cannot be distinguished.
    const MAX_VARIANTS: usize = 7;
    /// The number of variants shown if there are more than `MAX_VARIANTS`.
    const FASTEST: usize = 4;
    let mut shown: Vec<(f64, &Point)> = points.iter().map(|p| (p.mean_goodput(), p)).collect();
    let label = "goodput, Mbit/s";
    let mut title = "Distribution of goodput over seeds (CDF)".to_owned();
    if shown.len() > MAX_VARIANTS {
        shown.sort_by(|a, b| b.0.total_cmp(&a.0));
        shown.truncate(FASTEST);
        title += &format!(", {FASTEST} fastest variants");
    }
    let share = Axis::new("share of seeds").between(0.0, 1.0);
    let mut plot = Plot::new(title, Axis::new(label), share);
    for (group, (_, point)) in shown.into_iter().enumerate() {
        let rates = point.statistics.outcomes.iter().filter_map(|o| o.transfers.first());
        let rates = rates.map(|transfer| transfer.goodput_bps / 1e6);
        let engine = point.statistics.outcomes.first().map_or("", |o| o.engine.as_str());
        let name = label_of(sweep, point, usize::MAX, (0, 1));
        plot.curve(name, origin(engine), group, distribution(rates));
    }
    let differs = |points: &[(f64, f64)]| {
        points.len() >= MIN_POINTS_FOR_SPREAD && points.windows(2).any(|pair| pair[0].0 < pair[1].0)
    };
    plot.curves.iter().any(|curve| differs(&curve.points)).then(|| spread_out(plot))
}

/// Half an interval, as text to follow a mean; empty if it rounds to zero.
fn plus_minus(half: Option<f64>, decimals: usize) -> String {
    let half = half.map(|half| format!("{half:.decimals$}"));
    let shown = half.filter(|half| half.contains(|digit: char| ('1'..='9').contains(&digit)));
    shown.map_or(String::new(), |half| format!(" ± {half}"))
}

fn table(sweep: &SweepFile, points: &[Point]) -> Table {
    let mut heads = sweep.keys.clone();
    let quantities = ["goodput, Mbit/s", "RTT, ms", "loss, %", "queue, ms", "utilisation, %"];
    heads.push("transfer".to_owned());
    heads.extend(quantities.map(str::to_owned));
    let scales = [1e-6, 1e3, 100.0, 1e3, 100.0];
    let title = match points.iter().any(|point| point.statistics.outcomes.len() > 1) {
        true => "Mean over seeds ± half the 95 % confidence interval",
        false => "One run of each combination",
    };
    let mut table = Table::new(title, &heads);
    for point in points {
        let transfers = point.statistics.outcomes.first().map_or(0, |o| o.transfers.len());
        for transfer in 0..transfers {
            let mut row = point.values.clone();
            row.push(transfer.to_string());
            for (metric, scale) in Metric::ALL.into_iter().zip(scales) {
                let spread = point.statistics.spread(metric, transfer);
                row.push(spread.map_or(String::new(), |spread| {
                    let half = plus_minus(spread.half_width.map(|half| half * scale), 3);
                    format!("{:.3}{half}", spread.mean * scale)
                }));
            }
            table.rows.push(row);
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn geometric_values_are_distinguished_from_arithmetic_ones() {
        let across = |values: &[f64]| {
            let points: Vec<(f64, f64)> = values.iter().map(|x| (*x, 0.0)).collect();
            in_equal_ratios(points.iter())
        };
        // 50..2000 in eight steps, each a ratio of 40^(1/7) = 1.694, rounded to whole packets.
        assert!(across(&[50.0, 85.0, 143.0, 243.0, 412.0, 697.0, 1181.0, 2000.0]));
        assert!(!across(&[100.0, 200.0, 300.0, 400.0]));
        assert!(!across(&[0.0, 1.0, 10.0, 100.0]));
        assert!(!across(&[1.0, 10.0, 100.0]));
    }
}
