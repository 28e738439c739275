//! A search for the best window, from `sweep --find-best --out`.

use serde::Deserialize;
use sweetspot_experiment::plot::{Axis, MarkPosition, Origin, Plot, Table};

use super::sheet::{Sheet, picture_title, titled};

/// The windows that a search tried. Sizes are in packets, rates in bit/s, times in seconds.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct SearchFile {
    /// The title of its scenario.
    pub scenario: String,
    /// The highest mean rate over the seeds, in bit/s.
    pub mft_bps: f64,
    /// The window with this rate.
    pub window_packets: u64,
    /// The smallest window that is as fast.
    pub smallest_window_packets: Option<u64>,
    /// The number of seeds per trial.
    pub seeds: u64,
    /// The warning that a slightly larger window is much slower.
    #[serde(default)]
    pub caution: Option<String>,
    /// All windows tried, the smallest first.
    pub trials: Vec<SearchTrial>,
}

/// A window with its rate and RTT.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct SearchTrial {
    /// The window.
    pub window_packets: u64,
    /// The goodput, in bit/s.
    pub goodput_bps: f64,
    /// The mean RTT, in seconds.
    pub rtt_mean_s: f64,
    /// Whether the bottleneck dropped nothing during the measured time.
    pub lossless: bool,
    /// Whether the flow filled the window; if not, cwnd limited it. `None` if unknown.
    #[serde(default)]
    pub window_filled: Option<bool>,
}

/// Pictures of the search, and a table with a row per window.
pub fn sheet(index: usize, file: &str, search: &SearchFile) -> Sheet {
    let best = search.smallest_window_packets.unwrap_or(search.window_packets);
    let chosen = search.trials.iter().find(|trial| trial.window_packets == best);
    let found = chosen.map_or(String::new(), |trial| {
        format!(", {:.2} Mbit/s at {:.1} ms", trial.goodput_bps / 1e6, trial.rtt_mean_s * 1e3)
    });
    let draw = |label: &str, of: fn(&SearchTrial) -> f64| {
        let across = Axis::new("window, packets").logarithmic();
        let mut plot = Plot::new(picture_title(label, " by window"), across, Axis::new(label));
        let points = search.trials.iter().map(|trial| (trial.window_packets as f64, of(trial)));
        plot.curve(titled(&search.scenario), Origin::Sim, 0, points.collect());
        if let Some(trial) = chosen {
            let at = MarkPosition::Point(best as f64, of(trial));
            plot.mark("smallest window as fast as any", 1, at);
        }
        plot
    };
    let mut table = Table::new(
        "Every window tried",
        &[
            "window, packets",
            "goodput, Mbit/s",
            "mean RTT, ms",
            "limited by",
            "dropped in the measured time",
        ],
    );
    table.rows.extend(search.trials.iter().map(|trial| {
        vec![
            trial.window_packets.to_string(),
            format!("{:.2}", trial.goodput_bps / 1e6),
            format!("{:.2}", trial.rtt_mean_s * 1e3),
            limit(trial).to_owned(),
            if trial.lossless { "no" } else { "yes" }.to_owned(),
        ]
    }));
    let seeds = if search.seeds == 1 { "one seed" } else { "the mean over seeds" };
    let caution = search.caution.iter().map(|words| format!("*{words}*\n"));
    let by_cwnd = match search.trials.iter().any(|trial| trial.window_filled == Some(false)) {
        true => {
            " Where cwnd limited the flow, the window was not full; if losses before the measured time lowered \
             cwnd, a longer warm-up shows the effect of the window."
        }
        false => "",
    };
    let caution: String = caution.collect();
    Sheet {
        name: format!("search-{index}"),
        title: format!("{}: best window {best} packets{found}", titled(&search.scenario)),
        about: format!(
            "{caution}Search for the best window: `{file}`; each rate is of {seeds}.{by_cwnd}"
        ),
        plots: vec![
            draw("goodput, Mbit/s", |trial| trial.goodput_bps / 1e6),
            draw("mean RTT, ms", |trial| trial.rtt_mean_s * 1e3),
        ],
        tables: vec![table],
    }
}

/// The limit of the flow with a window.
fn limit(trial: &SearchTrial) -> &'static str {
    match trial.window_filled {
        Some(true) => "window",
        Some(false) => "cwnd",
        None => "–",
    }
}
