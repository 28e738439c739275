use super::report::{GauntletReport, Quantiles, VariantResult};

/// A report as text tables of at most 80 columns.
pub fn table(report: &GauntletReport) -> String {
    let mut lines = vec![format!(
        "{} paths of the population {}, seed {}, from {} on; {} seeds each, {} s",
        report.paths,
        report.population.name(),
        report.seed,
        report.first_path,
        report.seeds,
        report.duration_s
    )];
    for result in &report.variants {
        lines.extend(tested(result));
    }
    lines.iter().map(|line| line.trim_end().to_owned() + "\n").collect()
}

const NAME: usize = 16;

fn tested(result: &VariantResult) -> Vec<String> {
    let who = format!("{}, {}", result.sizing, result.congestion);
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
    lines.push(format!("{who}: delay, retransmissions and rivals over those of the kernel"));
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
    let cells: String = cells.iter().map(|cell| format!(" {cell:>6}")).collect();
    format!("{name:NAME$}{cells}")
}

/// A ratio in six columns; a dash where there is none.
fn number(value: Option<f64>) -> String {
    match value {
        None => "-".to_owned(),
        Some(value) if value < 99.0 => format!("{value:.3}"),
        Some(value) => format!("{value:.0}"),
    }
}
