use core::fmt::Write;

use sweetspot_scenario::Engine;

use super::agreement::{Ns2Comparison, Ns2Maximum, compare, maxima, spread};
use super::case::{Ns2Setting, cases};
use crate::markdown::{MarkdownTable, deviation};
use crate::page_abstract::Abstract;
use sweetspot_experiment::{SearchBounds, StudyError, Workers, find_mft};

const ABSTRACT: Abstract<'_> = Abstract {
    question: "does the simulator agree with ns-2?",
    method: "the simulator repeats every case that ns-2.35 ran, with the same number of seeds; the means are \
        compared.",
    result: "the tables compare each family of cases with its bounds; the section on differences explains the rest.",
    limitation: "random numbers differ from ns-2's, so cases that depend on a single burst differ as much as two \
        seeds do.",
    command: "`sweetspot-research reproduce ns2 --out docs/results`",
};

/// Maximum allowed median deviation of goodput.
pub const MAX_MEDIAN_DEVIATION: f64 = 0.05;
/// Maximum allowed deviation of goodput in one case.
pub const MAX_DEVIATION: f64 = 0.12;
/// Maximum allowed deviation of the Maximum Feasible Throughput and of its window.
pub const MAX_MAXIMUM_DEVIATION: f64 = 0.08;

/// Settings that are reported together.
struct SettingFamily {
    title: &'static str,
    /// Whether the bounds apply to it.
    is_target: bool,
    belongs: fn(&Ns2Setting) -> bool,
}

const FAMILIES: [SettingFamily; 10] = [
    SettingFamily {
        title: "no cross traffic, Reno and NewReno",
        is_target: true,
        belongs: |s| s.cross == "none" && !s.congestion.starts_with("sack"),
    },
    SettingFamily {
        title: "no cross traffic, SACK of ns-2 (`sack1`)",
        is_target: true,
        belongs: |s| s.cross == "none" && s.congestion == "sack1",
    },
    SettingFamily {
        title: "the same, here by RFC 6675 (`sack`)",
        is_target: true,
        belongs: |s| s.cross == "none" && s.congestion == "sack",
    },
    SettingFamily {
        title: "elephants, ns-2.35's defaults",
        is_target: true,
        belongs: |s| s.cross == "elephants" && s.flavour == "2.35" && s.congestion == "reno",
    },
    SettingFamily {
        title: "elephants, delayed ACKs and initial window 1",
        is_target: true,
        belongs: |s| s.cross == "elephants" && s.flavour == "2002",
    },
    SettingFamily {
        title: "elephants, NewReno and SACK targets",
        is_target: true,
        belongs: |s| s.cross == "elephants" && s.congestion != "reno",
    },
    SettingFamily {
        title: "pareto, ns-2.35's defaults",
        is_target: true,
        belongs: |s| s.cross == "pareto" && s.flavour == "2.35",
    },
    SettingFamily {
        title: "pareto, delayed ACKs and initial window 1",
        is_target: true,
        belongs: |s| s.cross == "pareto" && s.flavour == "2002",
    },
    SettingFamily {
        title: "congested elephants (2 Mbit/s, noisy)",
        is_target: false,
        belongs: |s| s.cross == "elephants-congested",
    },
    SettingFamily {
        title: "mice (not asked for, sleeps set for 70 % and for congestion)",
        is_target: false,
        belongs: |s| s.cross.starts_with("mice"),
    },
];

const NOTES: &str = include_str!("../../data/ns2_notes.md");

/// Runs all cases and writes docs/results/ns2.md.
pub fn document<E: Engine + Sync>(
    engine: &E,
    workers: Workers,
    made: &str,
) -> Result<String, StudyError> {
    let comparisons = compare(engine, &cases()?, workers)?;
    let mut text = format!(
        "# Agreement with ns-2\n\n{ABSTRACT}\
         Written by `sweetspot-research reproduce ns2` on {made}; do not edit. Every case that ns-2.35 ran \
         (`crates/research/data/ns2.csv`) runs here, too, with the same number of seeds, and the means are \
         compared. Random numbers differ from ns-2's. If the outcome depends on the time of a random \
         burst, two runs differ as two seeds of ns-2 do.\n\n",
    );
    text.push_str(NOTES);
    summary(&mut text, &comparisons);
    maximum_table(&mut text, engine, &comparisons, workers)?;
    full_tables(&mut text, &comparisons);
    Ok(text)
}

fn summary(text: &mut String, comparisons: &[Ns2Comparison]) {
    let _ = writeln!(
        text,
        "\n## Goodput\n\nTarget: the median within {:.0} %, the worst within {:.0} %.\n",
        MAX_MEDIAN_DEVIATION * 100.0,
        MAX_DEVIATION * 100.0
    );
    let columns = ["cases", "windows", "median", "worst", "where", "target"];
    let mut table = MarkdownTable::new(&columns);
    for family in &FAMILIES {
        let belongs = |c: &Ns2Comparison| (family.belongs)(&c.setting);
        let Some(spread) = spread(comparisons, belongs) else { continue };
        let worst = comparisons
            .iter()
            .filter(|c| belongs(c))
            .max_by(|a, b| a.deviation().abs().total_cmp(&b.deviation().abs()));
        let place = worst.map_or(String::new(), |c| {
            format!("{} B={} S={}", c.setting.congestion, c.setting.buffer, c.window)
        });
        let met = spread.median <= MAX_MEDIAN_DEVIATION && spread.worst <= MAX_DEVIATION;
        table.row(&[
            family.title.to_owned(),
            spread.count.to_string(),
            format!("{:.2} %", spread.median * 100.0),
            format!("{:.1} %", spread.worst * 100.0),
            place,
            verdict(family.is_target, met).to_owned(),
        ]);
    }
    let _ = writeln!(text, "{table}");
}

fn verdict(is_target: bool, met: bool) -> &'static str {
    match (is_target, met) {
        (false, _) => "-",
        (true, true) => "met",
        (true, false) => "**missed**",
    }
}

/// Whether a setting has a clear maximum, that is, no loss from other causes.
fn has_peak(setting: &Ns2Setting) -> bool {
    setting.congestion == "reno" && matches!(setting.cross, "elephants" | "pareto" | "mice")
}

fn maximum_table<E: Engine + Sync>(
    text: &mut String,
    engine: &E,
    comparisons: &[Ns2Comparison],
    workers: Workers,
) -> Result<(), StudyError> {
    let _ = writeln!(
        text,
        "## Maximum Feasible Throughput\n\nThe best of the windows that ns-2 ran, Mbit/s at S \
         in packets, and the result of the bracketing search, which chooses the windows itself. \
         Target for elephants and pareto: MFT and S within {:.0} %.\n",
        MAX_MAXIMUM_DEVIATION * 100.0
    );
    let columns =
        ["setting", "B_t", "ns-2", "here, same windows", "MFT", "S", "target", "here, search"];
    let mut table = MarkdownTable::new(&columns);
    for maximum in maxima(comparisons).iter().filter(|maximum| has_peak(&maximum.setting)) {
        let setting = &maximum.setting;
        let scenario = setting.scenario(2, 1)?;
        let found = find_mft(engine, &scenario, SearchBounds::around(&scenario), 1, workers)?;
        let is_target = setting.cross != "mice";
        table.row(&[
            name(setting),
            setting.buffer.to_string(),
            at(maximum.theirs),
            at(maximum.ours),
            deviation(maximum.ours.0, maximum.theirs.0),
            deviation(maximum.ours.1 as f64, maximum.theirs.1 as f64),
            verdict(is_target, agrees(maximum)).to_owned(),
            at((found.rate_bps / 1e6, found.window)),
        ]);
    }
    let _ = writeln!(text, "{table}");
    Ok(())
}

/// Whether this simulator's maximum is close enough to ns-2's.
pub(super) fn agrees(maximum: &Ns2Maximum) -> bool {
    let close = |ours: f64, theirs: f64| (ours / theirs - 1.0).abs() <= MAX_MAXIMUM_DEVIATION;
    close(maximum.ours.0, maximum.theirs.0) && close(maximum.ours.1 as f64, maximum.theirs.1 as f64)
}

fn at((mbps, window): (f64, u64)) -> String {
    format!("{mbps:.2} @ {window}")
}

fn name(setting: &Ns2Setting) -> String {
    let mut name = format!("{}, {}", setting.cross, setting.congestion);
    match setting.flavour {
        "2002" if setting.target_delays_acks => name.push_str(", delayed ACKs, IW 1"),
        "2002" => name.push_str(", others' ACKs delayed, IW 1"),
        _ => {}
    }
    if setting.queue == "bytes" {
        name.push_str(", buffer in bytes");
    }
    if setting.reverse == "clean" {
        name.push_str(", clean reverse path");
    }
    if !setting.sleep.is_empty() {
        let _ = write!(name, ", sleep {} s", setting.sleep);
    }
    name
}

fn full_tables(text: &mut String, comparisons: &[Ns2Comparison]) {
    let _ = writeln!(
        text,
        "## Every case\n\nGoodput in Mbit/s; loss of all packets at the bottleneck in %; queue as the mean \
         number of waiting packets; ns-2 first, then this simulator.\n"
    );
    let mut titled = None;
    let mut table: Option<MarkdownTable> = None;
    for comparison in comparisons {
        let setting = &comparison.setting;
        let title = name(setting);
        if titled.as_ref() != Some(&title) {
            flush(text, table.take());
            let _ = writeln!(text, "### {title}\n");
            let columns = ["B_t", "S", "ns-2", "here", "", "loss", "loss", "queue", "queue"];
            table = Some(MarkdownTable::new(&columns));
            titled = Some(title);
        }
        let (theirs, ours) = (&comparison.theirs, &comparison.ours);
        if let Some(table) = &mut table {
            table.row(&[
                setting.buffer.to_string(),
                comparison.window.to_string(),
                format!("{:.2}", theirs.goodput_mbps),
                format!("{:.2}", ours.goodput_mbps),
                deviation(ours.goodput_mbps, theirs.goodput_mbps),
                format!("{:.3}", theirs.loss * 100.0),
                format!("{:.3}", ours.loss * 100.0),
                format!("{:.0}", theirs.queue_packets),
                format!("{:.0}", ours.queue_packets),
            ]);
        }
    }
    flush(text, table);
}

fn flush(text: &mut String, table: Option<MarkdownTable>) {
    if let Some(table) = table {
        let _ = writeln!(text, "{table}");
    }
}
