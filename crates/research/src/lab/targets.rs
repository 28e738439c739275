use super::{Cell, LabBench};
use sweetspot_report::VariantOutcome;

/// A target and its measurement.
pub struct LabTarget {
    /// The path and the target, in words.
    pub what: String,
    /// The measurement, in words.
    pub measured: String,
    /// Whether the target is met.
    pub met: bool,
}

/// Minimum fraction of the payload capacity that SOBAS must reach over the whole transfer.
const MIN_CAPACITY_SHARE: f64 = 0.90;
/// Maximum fraction of segments retransmitted on the demonstration's path.
const MAX_RETRANSMITTED_SHARE: f64 = 0.0005;
/// Maximum median RTT on the demonstration's path, relative to the propagation delay.
const MAX_MEDIAN_RTT_RATIO: f64 = 1.10;
/// Minimum goodput of SOBAS relative to the best other variant.
const MIN_SHARE_OF_BEST: f64 = 0.97;
/// Maximum 99th percentile of the emulator's lateness at 100 Mbit/s, microseconds.
const MAX_LATENESS_US: f64 = 200.0;

/// Every target with a measured cell, in document order.
pub fn targets(bench: &LabBench) -> Vec<LabTarget> {
    let mut all = bench.demo.as_ref().map(demo).unwrap_or_default();
    all.extend(bench.matrix.iter().flat_map(matrix_cell));
    all
}

fn demo(cell: &Cell) -> Vec<LabTarget> {
    let mut all = vec![share(cell)];
    let sobas = sobas(cell);
    let retransmitted = sobas.and_then(VariantOutcome::retransmitted_share);
    all.push(LabTarget {
        what: format!(
            "{}: segments retransmitted <= {} %",
            cell.name,
            MAX_RETRANSMITTED_SHARE * 100.0
        ),
        measured: words(retransmitted, |share| format!("{:.4} %", share * 100.0)),
        met: retransmitted.is_some_and(|share| share <= MAX_RETRANSMITTED_SHARE),
    });
    let min = cell.outcome.path.rtt.as_secs_f64();
    let median = sobas.and_then(|c| c.rtt_median).map(|rtt| rtt.as_secs_f64() / min);
    all.push(LabTarget {
        what: format!("{}: median RTT <= {MAX_MEDIAN_RTT_RATIO:.2} x T_m", cell.name),
        measured: words(median, |ratio| format!("{ratio:.3} x T_m")),
        met: median.is_some_and(|ratio| ratio <= MAX_MEDIAN_RTT_RATIO),
    });
    let certificates = cell.outcome.variants.iter().filter_map(|c| c.certificate.as_ref());
    let worst = certificates.map(|k| k.lateness_p99.as_secs_f64() * 1e6).reduce(f64::max);
    all.push(LabTarget {
        what: format!("{}: p99 lateness of every run < {MAX_LATENESS_US} us", cell.name),
        measured: words(worst, |us| format!("{us:.0} us in the worst run")),
        met: worst.is_some_and(|us| us < MAX_LATENESS_US),
    });
    all
}

fn matrix_cell(cell: &Cell) -> Vec<LabTarget> {
    vec![share(cell), beside_the_best(cell)]
}

fn share(cell: &Cell) -> LabTarget {
    let share = sobas(cell).and_then(|c| c.share_of_capacity);
    LabTarget {
        what: format!(
            "{}: sobas >= {:.0} % of the payload capacity",
            cell.name,
            MIN_CAPACITY_SHARE * 100.0
        ),
        measured: words(share, |share| format!("{:.1} %", share * 100.0)),
        met: share.is_some_and(|share| share >= MIN_CAPACITY_SHARE),
    }
}

fn beside_the_best(cell: &Cell) -> LabTarget {
    let best = cell
        .outcome
        .variants
        .iter()
        .filter(|c| c.sizing != "sobas")
        .filter_map(|c| Some((c.goodput?, c)))
        .max_by_key(|(goodput, _)| *goodput);
    let own = sobas(cell).and_then(|c| c.goodput);
    let ratio = best.zip(own).map(|((best, c), own)| (own.as_f64() / best.as_f64(), c));
    LabTarget {
        what: format!(
            "{}: sobas >= {:.0} % of the best other",
            cell.name,
            MIN_SHARE_OF_BEST * 100.0
        ),
        measured: words(ratio, |(ratio, c)| format!("{:.1} % of {}", ratio * 100.0, c.name())),
        met: ratio.is_some_and(|(ratio, _)| ratio >= MIN_SHARE_OF_BEST),
    }
}

fn sobas(cell: &Cell) -> Option<&VariantOutcome> {
    cell.outcome.variants.iter().find(|c| c.sizing == "sobas")
}

fn words<T>(value: Option<T>, text: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| "not measured".to_owned(), text)
}
