use super::class::PathClass;
use super::report::{GauntletReport, PathComparison, VariantResult};
use sweetspot_experiment::plot::{Axis, Origin, Plot};

/// The distributions in a report's picture for one congestion control: goodput by class of path, then goodput of the cross
/// traffic, and delay.
pub fn pictures(report: &GauntletReport, congestion: &str) -> Vec<Plot> {
    let of: Vec<&VariantResult> =
        report.variants.iter().filter(|j| j.congestion == congestion).collect();
    let goodput = |path: &PathComparison| Some(path.goodput);
    let classes = [
        PathClass::All,
        PathClass::CleanAlone,
        PathClass::JitterOnly,
        PathClass::RandomLoss,
        PathClass::SharedClean,
        PathClass::SharedLossy,
    ];
    let mut plots: Vec<Plot> = classes
        .into_iter()
        .map(|class| {
            let title = format!("goodput, {}", class.name());
            distribution(&title, "goodput over the kernel's", &of, class, GOODPUT_RATIOS, goodput)
        })
        .collect();
    let rivals = |path: &PathComparison| path.rivals();
    plots.push(distribution(
        "rivals",
        "their goodput over that beside the kernel",
        &of,
        PathClass::All,
        GOODPUT_RATIOS,
        rivals,
    ));
    let delay = |path: &PathComparison| path.delay();
    let over = "queueing delay over the kernel's";
    plots.push(distribution("delay", over, &of, PathClass::All, DELAY_RATIOS, delay));
    plots.retain(|plot| !plot.curves.is_empty());
    plots
}

/// Ranges of the goodput and delay ratios shown.
const GOODPUT_RATIOS: (f64, f64) = (0.2, 5.0);
const DELAY_RATIOS: (f64, f64) = (0.02, 5.0);

/// For each variant, the fraction of a class's paths with a ratio of at most x.
fn distribution(
    title: &str,
    quantity: &str,
    results: &[&VariantResult],
    class: PathClass,
    shown: (f64, f64),
    ratio: impl Fn(&PathComparison) -> Option<f64>,
) -> Plot {
    let x = Axis::new(quantity).logarithmic().between(shown.0, shown.1);
    let mut plot = Plot::new(title, x, Axis::new("share of paths").between(0.0, 1.0));
    for (group, result) in results.iter().enumerate() {
        let paths = result.paths.iter().filter(|path| path.classes.contains(&class));
        let mut ratios: Vec<f64> = paths.filter_map(&ratio).collect();
        ratios.sort_by(f64::total_cmp);
        let count = ratios.len() as f64;
        let points = ratios
            .iter()
            .enumerate()
            .map(|(below, ratio)| (ratio.clamp(shown.0, shown.1), (below as f64 + 0.5) / count));
        plot.curve(&result.sizing, Origin::Sim, group, points.collect());
    }
    plot
}
