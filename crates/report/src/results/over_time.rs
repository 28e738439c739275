use std::collections::BTreeMap;
use std::iter;

use sweetspot_experiment::plot::{Axis, MarkPosition, Origin, Plot, Table};
use sweetspot_units::{Bytes, Duration};

use super::sheet::{DISTRIBUTION, Sheet, distribution, picture_title, spread_out};
use crate::events::rise_in_words;
use crate::outcome::{DemoOutcome, VariantOutcome};
use crate::series_row::SeriesRow;
use crate::sweep::SweepPath;
use crate::table::cells;

type Points = Vec<(f64, f64)>;

/// A demonstration: all variants over time, and the distributions of their RTTs.
pub fn demonstration(index: usize, file: &str, demo: &DemoOutcome) -> Vec<Sheet> {
    let path = &demo.path;
    let seconds =
        |times: &[Duration]| -> Vec<f64> { times.iter().map(|t| t.as_secs_f64()).collect() };
    let over = |times: &[Duration], values: Vec<Option<f64>>| -> Points {
        let points = seconds(times).into_iter().zip(values);
        points.filter_map(|(t, value)| value.map(|value| (t, value))).collect()
    };
    let draw = |label: &str, of: &dyn Fn(&VariantOutcome) -> Points| {
        let mut plot =
            Plot::new(picture_title(label, " over time"), Axis::new("time, s"), Axis::new(label));
        for (group, variant) in demo.variants.iter().enumerate() {
            plot.curve(variant.name(), Origin::Recorded, group, of(variant));
        }
        plot
    };
    let mut goodput = draw("goodput, Mbit/s", &|c| {
        over(&c.series.t, c.series.goodput.iter().map(|g| Some(g.as_f64() / 1e6)).collect())
    });
    let carries = path.payload_capacity.as_f64() / 1e6;
    goodput.mark("what the path can carry", 6, MarkPosition::Level(carries));
    let mut window = draw("advertised window, kB", &|c| {
        let values = c.series.window.iter().map(|w| w.map(|w| w.as_f64() / 1e3));
        over(&c.series.t, values.collect())
    });
    let (full, overflow) = (path.bdp.as_f64() / 1e3, (path.bdp + path.buffer).as_f64() / 1e3);
    window.mark("C T_m: path full", 6, MarkPosition::Level(full));
    window.mark("C T_m + B: path and buffer full", 6, MarkPosition::Level(overflow));
    // Beyond 1.5 times this window, windows do not differ in effect.
    window.y = window.y.between(0.0, overflow * 1.5);
    let rtt = draw("round-trip time, ms", &|c| {
        let values = c.series.rtt.iter().map(|r| r.map(|r| r.as_secs_f64() * 1e3));
        over(&c.series.t, values.collect())
    });
    let queue = draw("bottleneck queue, kB", &|c| {
        let values = c.series.queue.bytes.iter().map(|b| Some(b.as_f64() / 1e3));
        over(&c.series.queue.t, values.collect())
    });
    let mut round_trips = round_trip_plot();
    for (group, variant) in demo.variants.iter().enumerate() {
        let rtts = variant.series.rtts().into_iter().map(|rtt| rtt.as_secs_f64() * 1e3);
        round_trips.curve(variant.name(), Origin::Recorded, group, distribution(rtts));
    }
    let distrusted = demo.variants.iter().filter_map(|variant| {
        Some(format!(" Do not trust {}: {}.", variant.name(), variant.distrust()?))
    });
    vec![Sheet {
        name: format!("demo-{index}"),
        title: format!("Demonstration: {}, {}, {} of buffer", path.rate, path.rtt, path.buffer),
        about: format!("`{file}`, {} on {}; path `{}`.", demo.date, demo.kernel, path.spec)
            + &distrusted.collect::<String>(),
        plots: vec![goodput, window, rtt, queue, spread_out(round_trips)],
        tables: vec![variants(demo)],
    }]
}

/// The results of all variants, as printed by `demo`.
fn variants(demo: &DemoOutcome) -> Table {
    let heads = [
        "variant",
        "rate, Mbit/s",
        "share, %",
        "retransmitted",
        "retransmitted, %",
        "drops",
        "RTT, ms",
        "RTT p99, ms",
        "90 % at, s",
        "trust",
    ];
    let mut table = Table::new("Every variant", &heads);
    for variant in &demo.variants {
        let cells = match &variant.failure {
            Some(why) => iter::once(format!("failed: {why}"))
                .chain(iter::repeat_n(String::new(), 8))
                .collect(),
            None => cells(variant).to_vec(),
        };
        table.rows.push(iter::once(variant.name()).chain(cells).collect());
    }
    table
}

/// A time series with its name, and its path if known.
#[derive(Debug, Clone)]
pub struct Recorded<'a> {
    /// The name of the file or of the run.
    pub name: String,
    /// Its rows.
    pub rows: &'a [SeriesRow],
    /// The path.
    pub path: Option<SweepPath>,
    /// The sizing of each transfer, if known.
    pub sizings: Vec<&'a str>,
}

/// The name of one transfer, and its rows.
type TransferRows<'a> = (String, Vec<&'a SeriesRow>);

/// With more lines than colours, lines cannot be distinguished.
const MAX_TRANSFERS: usize = 7;

fn transfers<'a>(recorded: &[Recorded<'a>]) -> Vec<TransferRows<'a>> {
    let mut all = Vec::new();
    for Recorded { name, rows, sizings, .. } in recorded {
        let mut by_number: BTreeMap<u64, Vec<&SeriesRow>> = BTreeMap::new();
        for row in *rows {
            by_number.entry(row.transfer).or_default().push(row);
        }
        let several = by_number.len() > 1;
        all.extend(by_number.into_iter().map(|(number, rows)| {
            let name = match (several, recorded.len()) {
                (true, 1) => format!("transfer {number}"),
                (true, _) => format!("{name}, transfer {number}"),
                (false, _) => name.clone(),
            };
            let sizing = usize::try_from(number).ok().and_then(|number| sizings.get(number));
            (name + &sizing.map_or(String::new(), |sizing| format!(", {sizing}")), rows)
        }));
    }
    all
}

/// One quantity of the transfers over time, from their starts. Until then, their windows are empty.
fn quantity(all: &[TransferRows<'_>], label: &str, of: impl Fn(&SeriesRow) -> Option<f64>) -> Plot {
    over_time(all, label, |row| row.window_bytes == Some(0.0), of)
}

/// One quantity over time, with a curve per transfer, from the first sample that is not `before`.
fn over_time(
    all: &[TransferRows<'_>],
    label: &str,
    before: impl Fn(&SeriesRow) -> bool,
    of: impl Fn(&SeriesRow) -> Option<f64>,
) -> Plot {
    let mut plot =
        Plot::new(picture_title(label, " over time"), Axis::new("time, s"), Axis::new(label));
    for (group, (name, rows)) in all.iter().enumerate() {
        let samples = rows.iter().filter(|row| row.event.is_none());
        let samples = samples.skip_while(|row| before(row));
        let points = samples.filter_map(|row| of(row).map(|value| (row.t_s, value)));
        plot.curve(name.as_str(), Origin::Recorded, group, points.collect());
    }
    plot
}

/// One quantity of the bottleneck over time, which also exists before a transfer starts.
fn of_bottleneck(
    all: &[TransferRows<'_>],
    label: &str,
    of: impl Fn(&SeriesRow) -> Option<f64>,
) -> Plot {
    over_time(all, label, |_| false, of)
}

/// Summarises the series: each transfer's mean goodput and median RTT. The time before the first byte does not
/// count.
fn message(all: &[TransferRows<'_>]) -> String {
    /// Summaries of more transfers do not fit into a title.
    const MAX: usize = 3;
    let median_rtt = |rows: &[&SeriesRow]| {
        let mut values: Vec<f64> = rows.iter().filter_map(|row| row.rtt_s).collect();
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied()
    };
    let each = all.iter().take(MAX).filter_map(|(name, rows)| {
        let goodput = mean_goodput(rows)? / 1e6;
        let rtt = median_rtt(rows)
            .map_or(String::new(), |rtt| format!(", median RTT {:.1} ms", rtt * 1e3));
        Some(format!("{name}: mean {goodput:.2} Mbit/s{rtt}"))
    });
    let each: Vec<String> = each.collect();
    if each.is_empty() { "Over time".to_owned() } else { each.join("; ") }
}

/// The mean goodput from the first byte on, in bit/s. Each sample is the rate since the previous one.
fn mean_goodput(rows: &[&SeriesRow]) -> Option<f64> {
    let samples = rows.iter().filter_map(|row| Some((row.t_s, row.goodput_bps?)));
    let (mut before, mut bits, mut time) = (0.0, 0.0, 0.0);
    for (at, goodput) in samples {
        if goodput > 0.0 || bits > 0.0 {
            bits += goodput * (at - before);
            time += at - before;
        }
        before = at;
    }
    (time > 0.0).then(|| bits / time)
}

fn round_trip_plot() -> Plot {
    let label = "round-trip time, ms";
    let share = Axis::new("share of samples").between(0.0, 1.0);
    Plot::new(picture_title(label, DISTRIBUTION), Axis::new(label), share)
}

/// The distribution of RTTs.
fn round_trips(all: &[TransferRows<'_>]) -> Plot {
    let mut plot = round_trip_plot();
    for (group, (name, rows)) in all.iter().enumerate() {
        let values = rows.iter().filter(|row| row.event.is_none()).filter_map(|row| row.rtt_s);
        let spread = distribution(values.map(|rtt| rtt * 1e3));
        plot.curve(name.as_str(), Origin::Recorded, group, spread);
    }
    spread_out(plot)
}

/// An event of a transfer, or consecutive events that raise its window.
#[derive(Debug, PartialEq)]
struct Moment {
    t_s: f64,
    words: String,
}

/// The events among `rows`. Several limits in a row that only grow are one event, in the words of `run`.
fn moments(rows: &[&SeriesRow]) -> Vec<Moment> {
    let events: Vec<(&str, &SeriesRow)> =
        rows.iter().filter_map(|row| Some((row.event.as_deref()?, *row))).collect();
    let limit = |event: &(&str, &SeriesRow)| event.1.window_bytes.filter(|_| event.0 == "limited");
    let rises = |a: &(&str, &SeriesRow), b: &(&str, &SeriesRow)| {
        limit(a).zip(limit(b)).is_some_and(|(a, b)| a <= b)
    };
    // The limit of the event before, if that was one.
    let mut before = None;
    let mut moment = |run: &[(&str, &SeriesRow)]| {
        let ((kind, first), last) = (*run.first()?, run.last()?);
        let windows: Vec<f64> = run.iter().filter_map(limit).collect();
        let fell = before.zip(windows.first()).is_some_and(|(before, first)| before > *first);
        before = limit(last);
        let window = first.window_bytes.map(Bytes::from_f64);
        let words = match (fell, windows.as_slice(), window) {
            (false, [_, .., to], _) if *to > windows[0] => {
                format!("raised {}", rise_in_words(&windows, last.1.t_s))
            }
            (true, [from, .., to], _) if to > from => format!(
                "lowered to {}, then raised {}",
                Bytes::from_f64(*from),
                rise_in_words(&windows, last.1.t_s)
            ),
            (true, _, Some(window)) => format!("lowered to {window}"),
            (_, [_, _, ..], _) => format!("{kind} {}", rise_in_words(&windows, last.1.t_s)),
            (_, _, Some(window)) => format!("{kind} {window}"),
            (.., None) => kind.to_owned(),
        };
        Some(Moment { t_s: first.t_s, words: format!("{:.3} s: {words}", first.t_s) })
    };
    events.chunk_by(rises).filter_map(&mut moment).collect()
}

#[derive(Debug)]
struct OverTime {
    goodput: Plot,
    window: Plot,
    cwnd: [Plot; 2],
    rtt: Plot,
    queue: Plot,
}

impl OverTime {
    fn of(all: &[TransferRows<'_>]) -> OverTime {
        let mut window =
            quantity(all, "advertised window, kB", |row| row.window_bytes.map(|w| w / 1e3));
        for (group, (_, rows)) in all.iter().enumerate() {
            for Moment { t_s, words } in moments(rows) {
                window.mark(words, group, MarkPosition::Moment(t_s));
            }
        }
        OverTime {
            goodput: quantity(all, "goodput, Mbit/s", |row| row.goodput_bps.map(|g| g / 1e6)),
            window,
            cwnd: [
                quantity(all, "congestion window, kB", |row| row.cwnd_bytes.map(|c| c / 1e3)),
                quantity(all, "congestion window, packets", |row| row.cwnd_packets),
            ],
            rtt: quantity(all, "round-trip time, ms", |row| row.rtt_s.map(|r| r * 1e3)),
            queue: of_bottleneck(all, "bottleneck queue, packets", |row| row.queue_packets),
        }
    }

    fn levels(&mut self, path: &SweepPath) {
        /// The colour of reference lines.
        const GREY: usize = 6;
        let rate = path.rate_bps as f64;
        let (pipe, buffer) = (rate * path.rtt_s / 8.0, path.buffer_bytes as f64);
        let level = |plot: &mut Plot, words: &str, at: f64| {
            plot.mark(words, GREY, MarkPosition::Level(at));
        };
        level(&mut self.goodput, "C: link rate, headers included", rate / 1e6);
        level(&mut self.window, "C T_m: path full", pipe / 1e3);
        level(&mut self.window, "C T_m + B: path and buffer full", (pipe + buffer) / 1e3);
        level(&mut self.rtt, "T_m: no queue", path.rtt_s * 1e3);
        level(&mut self.rtt, "T_m + B/C: a full buffer", (path.rtt_s + buffer * 8.0 / rate) * 1e3);
        level(&mut self.queue, "B: a full buffer", buffer / path.packet_bytes.max(1) as f64);
        // Beyond 1.5 times this window, windows do not differ in effect.
        let top = (pipe + buffer) * 1.5;
        self.window.y = self.window.y.clone().between(0.0, top / 1e3);
        let [in_bytes, in_packets] = &mut self.cwnd;
        for (plot, top) in
            [(in_bytes, top / 1e3), (in_packets, top / path.packet_bytes.max(1) as f64)]
        {
            let mut points = plot.curves.iter().flat_map(|curve| &curve.points);
            if points.any(|point| point.1 > top) {
                plot.y = plot.y.clone().between(0.0, top);
            }
        }
    }

    /// Explains a goodput above the link rate, if there is one.
    fn goodput_jumps(&self, path: &SweepPath) -> &'static str {
        let rate = path.rate_bps as f64 / 1e6;
        let mut points = self.goodput.curves.iter().flat_map(|curve| &curve.points);
        match points.any(|point| point.1 > rate) {
            true => {
                " Goodput follows cumulative ACKs: it rises above the link rate for a moment when a lost packet arrives at last."
            }
            false => "",
        }
    }
}

/// Time series side by side, with one picture per quantity. `title` replaces the summary.
pub fn series(recorded: &[Recorded<'_>], title: Option<String>) -> Sheet {
    let every = transfers(recorded);
    let all = &every[..every.len().min(MAX_TRANSFERS)];
    let mut over_time = OverTime::of(all);
    let first = recorded.first().and_then(|first| first.path);
    let path = first.filter(|path| recorded.iter().all(|r| r.path == Some(*path)));
    path.iter().for_each(|path| over_time.levels(path));
    let jumps = path.map_or("", |path| over_time.goodput_jumps(&path));
    let OverTime { goodput, window, cwnd: [cwnd, packets], rtt, queue } = over_time;
    let drops = of_bottleneck(all, "dropped so far, packets", |row| row.dropped_packets);
    // A curve at zero would add no information.
    let falls = drops.curves.iter().any(|curve| curve.points.iter().any(|point| point.1 > 0.0));
    let mut plots = vec![goodput, window, rtt, cwnd, packets, queue];
    plots.extend(falls.then_some(drops));
    plots.push(round_trips(all));
    let drawn = |plot: &Plot| plot.curves.iter().any(|curve| !curve.points.is_empty());
    let left_out = match every.len() - all.len() {
        0 => String::new(),
        some => format!(" {some} more transfers are left out."),
    };
    Sheet {
        name: "series".into(),
        title: title.unwrap_or_else(|| message(all)),
        about: format!(
            "Over time. Ticks along the top of the window's picture are actions of the controller; point \
             at one to read it.{jumps}{left_out}"
        ),
        plots: plots.into_iter().filter(drawn).collect(),
        tables: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consecutive_raises_of_a_limit_are_one_moment() {
        let row = |t_s, event: &str, window: Option<f64>| SeriesRow {
            t_s,
            event: Some(event.to_owned()),
            window_bytes: window,
            ..SeriesRow::default()
        };
        let rows = [
            row(1.0, "limited", Some(2000.0)),
            row(2.0, "limited", Some(3000.0)),
            row(3.0, "limited", Some(1000.0)),
            row(4.0, "holding", None),
            row(5.0, "limited", Some(9000.0)),
            row(6.0, "limited", Some(4000.0)),
            row(7.0, "limited", Some(6000.0)),
        ];
        let found = moments(&rows.iter().collect::<Vec<_>>());
        let words: Vec<&str> = found.iter().map(|moment| moment.words.as_str()).collect();
        let expected = [
            "1.000 s: raised from 2 kB to 3 kB at 2.000 s",
            "3.000 s: lowered to 1 kB",
            "4.000 s: holding",
            "5.000 s: limited 9 kB",
            "6.000 s: lowered to 4 kB, then raised from 4 kB to 6 kB at 7.000 s",
        ];
        assert_eq!(words, expected);
    }

    #[test]
    fn mean_goodput_excludes_the_first_byte_wait_and_includes_stalls() {
        let at = |(t_s, mbit): (f64, f64)| SeriesRow {
            t_s,
            goodput_bps: Some(mbit * 1e6),
            ..SeriesRow::default()
        };
        let rows = [(1.0, 0.0), (2.0, 0.0), (3.0, 8.0), (4.0, 0.0), (6.0, 9.0)].map(at);
        // From the first byte on: 8 Mbit/s for 1 s, 0 for 1 s and 9 for 2 s.
        let all = [("one".to_owned(), rows.iter().collect())];
        assert_eq!(message(&all), "one: mean 6.50 Mbit/s");
    }
}
