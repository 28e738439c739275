use super::class::PathClass;
use super::report::{ClassSummary, GauntletReport, Quantiles, VariantResult};

/// Explanation of the headings.
const READING: &str = "
How to read the tables: every number but paths and worse
is a ratio to the kernel's, under the same seeds.
  1 % to 95 %   quantiles over the paths: of 20 paths one is below the 5 %
  mean          the mean over the paths
  worse         share of paths surely more than 3 % slower than the kernel
  delay         time in queues: the median path's, and the sums over all paths
  retx          retransmitted packets; timeout: retransmission timeouts
  rivals        goodput of the cross traffic, on shared paths
  null          the kernel again, under other seeds: the effect of chance
  -             no path of the class has it
Rows are classes of paths.";

/// A report as text, at most 80 columns wide: the verdicts, the explanation of the headings, the
/// tables.
pub fn table(report: &GauntletReport) -> String {
    let first = match report.first_path {
        0 => String::new(),
        first => format!(", from {first} on"),
    };
    let mut lines = vec![format!(
        "{} random paths ({}, seed {}{first}), {} runs each, {} s at most",
        report.paths,
        report.population.name(),
        report.seed,
        report.seeds,
        report.duration_s
    )];
    for sentences in report.variants.iter().filter_map(|result| verdict(report, result)) {
        lines.push(String::new());
        lines.extend(sentences);
    }
    lines.extend(READING.lines().map(str::to_owned));
    let classes = report.variants.first().map_or(&[][..], |result| &result.classes);
    lines.extend(
        classes.iter().map(|of| format!("  {:NAME$}{}", of.class.name(), of.class.meaning())),
    );
    for result in &report.variants {
        lines.extend(tested(result));
    }
    lines.iter().map(|line| line.trim_end().to_owned() + "\n").collect()
}

const NAME: usize = 16;
const NULL: &str = "null";

fn name(result: &VariantResult) -> String {
    format!("{}, {}", result.sizing, result.congestion)
}

/// The summary over all paths.
fn overall(result: &VariantResult) -> Option<&ClassSummary> {
    result.classes.iter().find(|summary| summary.class == PathClass::All)
}

/// A variant's result in two sentences, compared with chance; `None` for the null variant.
pub(super) fn verdict(report: &GauntletReport, result: &VariantResult) -> Option<[String; 2]> {
    let all = overall(result).filter(|_| result.sizing != NULL)?;
    let is_null =
        |other: &&VariantResult| other.sizing == NULL && other.congestion == result.congestion;
    let chance = report.variants.iter().find(is_null).and_then(overall);
    let chance = chance.and_then(|all| all.surely_worse);
    let percent =
        |share: Option<f64>| share.map_or("-".to_owned(), |s| format!("{:.1} %", s * 100.0));
    Some([
        format!(
            "{}: goodput {} and delay {} of the kernel's (medians).",
            name(result),
            percent(all.goodput.p50),
            percent(all.delay_median)
        ),
        match all.surely_worse.zip(chance) {
            Some((worse, chance)) => format!(
                "Surely slower than the kernel on {} of paths; by chance alone on {}.",
                percent(Some(worse)),
                percent(Some(chance))
            ),
            None => {
                "One seed per path: more --seeds show which paths are surely slower.".to_owned()
            }
        },
    ])
}

fn tested(result: &VariantResult) -> Vec<String> {
    let who = name(result);
    let heads = ["paths", "1 %", "5 %", "25 %", "50 %", "75 %", "95 %", "mean", "worse"];
    let mut lines = vec![String::new(), format!("{who}: goodput over the kernel's")];
    lines.push(row("", &heads.map(str::to_owned)));
    for class in &result.classes {
        let Quantiles { p1, p5, p25, p50, p75, p95 } = class.goodput;
        let ratios = [p1, p5, p25, p50, p75, p95, class.goodput_mean].map(number);
        let mut cells = vec![class.paths.to_string()];
        cells.extend(ratios);
        cells.push(class.surely_worse.map_or("-".to_owned(), |w| format!("{:.1}%", w * 100.0)));
        lines.push(row(class.class.name(), &cells));
    }
    lines.push(String::new());
    lines.push(format!("{who}: delay, retransmissions and rivals over the kernel's"));
    let heads = ["delay", "delay", "retx", "timeout", "rivals", "rivals", "rivals"];
    lines.push(row("", &heads.map(str::to_owned)));
    let heads = ["median", "sums", "sums", "sums", "5 %", "50 %", "95 %"];
    lines.push(row("", &heads.map(str::to_owned)));
    for class in &result.classes {
        let Quantiles { p5, p50, p95, .. } = class.rivals;
        let cells =
            [class.delay_median, class.delay, class.retransmitted, class.timeouts, p5, p50, p95];
        lines.push(row(class.class.name(), &cells.map(number)));
    }
    lines
}

fn row(name: &str, cells: &[String]) -> String {
    // Two spaces before a cell let a narrow terminal wrap the table there.
    let width = if cells.len() > 7 { 7 } else { 9 };
    let cells: String = cells.iter().map(|cell| format!("{cell:>width$}")).collect();
    format!("{name:NAME$}{cells}")
}

/// A ratio, five columns wide; a dash if there is none.
fn number(value: Option<f64>) -> String {
    match value {
        None => "-".to_owned(),
        Some(value) if value < 99.0 => format!("{value:.3}"),
        Some(value) => format!("{value:.0}"),
    }
}
