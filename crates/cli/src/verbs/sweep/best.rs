//! The search for the window that makes a scenario's first transfer fastest.

use std::path::Path;
use std::process::ExitCode;

use sweetspot_experiment::{
    Mft, SearchBounds, StudyError, WindowTrial, find_mft, narrow_lower_edge,
};
use sweetspot_program::engine::EngineName;
use sweetspot_program::print::{self, Shown};
use sweetspot_program::progress;
use sweetspot_program::usage_error::UsageError;
use sweetspot_program::whole_file;
use sweetspot_report::titled;
use sweetspot_scenario::{Reverse, Scenario};
use sweetspot_sim::Simulator;
use sweetspot_statistics::mean_interval;
use sweetspot_units::{Bytes, Duration, Probability, Volume};

use super::SweepArguments;
use super::search_progress::SearchEngine;
use crate::verbs::Ending;

/// Parses the relative distance from the best window at which the search ends.
pub fn tolerance(text: &str) -> Result<f64, String> {
    let share =
        text.parse().ok().map(Probability::get).filter(|share| (1e-4..=1.0).contains(share));
    share.ok_or_else(|| "write a share between 0.0001 and 1, such as 0.005 or 0.5%".to_owned())
}

pub fn run(arguments: &SweepArguments) -> Ending {
    if let Some(out) = &arguments.out {
        check_out(out, arguments)?;
    }
    let scenario = arguments.file.scenario()?;
    let tolerance = arguments.tolerance.unwrap_or(TOLERANCE);
    let bounds = SearchBounds { tolerance, ..SearchBounds::around(&scenario) };
    let workers = arguments.parallel.workers();
    let engine = SearchEngine::new(&Simulator, bounds);
    let interrupted =
        || err!("sweetspot: interrupted after {} runs; there is no result", engine.done());
    let work = || {
        let mut found = find_mft(&engine, &scenario, bounds, arguments.seeds, workers)?;
        if found.rate_bps > 0.0 {
            let how = (arguments.seeds, workers);
            narrow_lower_edge(&engine, &scenario, &mut found, bounds.tolerance, how)?;
        }
        Ok::<Mft, StudyError>(found)
    };
    let found = progress::run_with_timer(work, || engine.in_words(), interrupted)
        .map_err(|error| arguments.file.blame(&error))?;
    if found.rate_bps == 0.0 {
        return Err("no window moved data: do the runs end before the transfer begins? \
                    `sweetspot run` shows when it does"
            .into());
    }
    if arguments.json {
        out!("{}", json(&scenario, &found, arguments.seeds));
    } else {
        print_for_people(&scenario, &found, arguments.seeds);
    }
    if let Some(out) = &arguments.out {
        let text = json(&scenario, &found, arguments.seeds).to_string() + "\n";
        whole_file::write(out, text.as_bytes())?;
        note!("wrote {}", out.shown());
    }
    Ok(ExitCode::SUCCESS)
}

/// Rejects a file name with another format's extension, a file that the search reads, and one that cannot be
/// created.
fn check_out(out: &Path, arguments: &SweepArguments) -> Result<(), Box<dyn std::error::Error>> {
    if out.extension().is_none_or(|extension| extension != "json") {
        let wrong = format!("--out {}: --find-best writes FILE.json", out.shown());
        return Err(UsageError::new(wrong).into());
    }
    whole_file::check_creatable("--out", Some(out))?;
    whole_file::check_not_input("--out", Some(out), &arguments.file.files())?;
    Ok(())
}

/// Default relative distance from the best window at which the search ends.
const TOLERANCE: f64 = 0.005;

/// Rates within this share of the best rate count as equal to it.
const PLATEAU: f64 = 0.02;

/// The uninterrupted ranges of tried windows with rates within [`PLATEAU`] of the best, as first and last window.
fn level_runs(found: &Mft) -> Vec<(u64, u64)> {
    let is_level = |trial: &WindowTrial| trial.rate_bps >= found.rate_bps * (1.0 - PLATEAU);
    let runs = found.trials.chunk_by(|one, next| is_level(one) && is_level(next));
    runs.filter_map(|run| {
        let (first, last) = run.first().zip(run.last())?;
        is_level(first).then_some((first.window, last.window))
    })
    .collect()
}

/// The uninterrupted range that includes the best window.
fn plateau(found: &Mft) -> (u64, u64) {
    let runs = level_runs(found);
    let around = |(from, to): &(u64, u64)| (*from..=*to).contains(&found.window);
    runs.into_iter().find(around).unwrap_or((found.window, found.window))
}

/// A sentence about the other windows with nearly the best rate, and the first window beyond them.
fn level_words(found: &Mft) -> String {
    let percent = PLATEAU * 100.0;
    let runs = level_runs(found);
    let beyond = runs.last().and_then(|(_, last)| {
        let next = found.trials.iter().find(|trial| trial.window > *last)?;
        Some(format!("; beyond them, {} gives {:.2} Mbit/s", next.window, next.rate_bps / 1e6))
    });
    let beyond = beyond.unwrap_or_default();
    if let [(from, to)] = runs.as_slice()
        && from == to
    {
        return format!("No other window tried is within {percent} % of the highest rate{beyond}.");
    }
    let words = |(from, to): &(u64, u64)| match from == to {
        true => from.to_string(),
        false => format!("{from} to {to}"),
    };
    let all = runs.iter().map(words).collect::<Vec<_>>().join(", ");
    format!("Windows tried within {percent} % of the highest rate, in packets: {all}{beyond}.")
}

/// The smallest window that is as fast as the best, and the best window if that is larger.
fn headline(found: &Mft, seeds: u64) -> Vec<String> {
    let show = |place: usize| {
        let trial = &found.trials[place];
        let rtt = Duration::from_secs_f64(found.rtts[place]);
        (trial.window, format!("{:.2} Mbit/s", trial.rate_bps / 1e6), rtt, trial.rate_bps)
    };
    let best = found.trials.iter().position(|trial| trial.window == found.window);
    let Some((best, smallest)) = best.zip(found.smallest_as_fast()) else { return Vec::new() };
    let (window, rate, rtt, smallest_bps) = show(smallest);
    let mut lines = vec![format!("{rate} with a window of {window} packets, RTT {rtt}")];
    if smallest != best {
        let (window, rate, rtt, best_bps) = show(best);
        let gain = (best_bps / smallest_bps - 1.0) * 100.0;
        let within = match gain > 0.5 {
            true => format!("whose rate {seeds} seeds cannot tell from the highest"),
            false => "within 0.5 % of the highest rate".to_owned(),
        };
        lines.push(format!(
            "It is the smallest window {within}. The highest rate is {rate} (+{gain:.2} %), with {window} packets at an RTT of {rtt}."
        ));
    }
    lines
}

/// The warning that the first tried window above the best is only slightly larger, but loses much of the rate.
fn edge_warning(found: &Mft) -> Option<String> {
    let trial = found.trials.iter().find(|trial| trial.window > found.window)?;
    let lost = 1.0 - trial.rate_bps / found.rate_bps;
    let more = trial.window - found.window;
    let is_near = more as f64 <= (PLATEAU * found.window as f64).max(1.0);
    (is_near && lost > PLATEAU).then(|| {
        let packets = if more == 1 { "1 packet" } else { &format!("{more} packets") };
        format!(
            "Caution: {packets} above the fastest window, the rate is {:.1} % lower. Choose a smaller window than these if the \
             path may change.",
            lost * 100.0
        )
    })
}

/// If a flow uses less than this share of its window, something else limits it.
const FILLED: f64 = 0.9;

/// Whether the first transfer used the window of `trial`: by Little's law, rate times RTT bytes are in flight.
fn is_filled(scenario: &Scenario, trial: &WindowTrial, rtt_s: f64) -> bool {
    let header = scenario.transfers.first().map_or(Bytes::ZERO, |transfer| transfer.tcp.header);
    let payload = scenario.path.packet.saturating_sub(header).as_f64();
    trial.rate_bps * rtt_s / 8.0 >= FILLED * trial.window as f64 * payload
}

fn json(scenario: &Scenario, found: &Mft, seeds: u64) -> serde_json::Value {
    let (from, to) = plateau(found);
    let trials = found.trials.iter().zip(&found.rtts).map(|(trial, rtt)| {
        serde_json::json!({
            "window_packets": trial.window,
            "goodput_bps": trial.rate_bps,
            "rtt_mean_s": rtt,
            "lossless": trial.lossless,
            "window_filled": is_filled(scenario, trial, *rtt),
        })
    });
    let smallest = found.smallest_as_fast().map(|place| found.trials[place].window);
    serde_json::json!({
        "scenario": scenario.title,
        "engine": EngineName::Sim.to_string(),
        "seed": scenario.seed,
        "version": env!("CARGO_PKG_VERSION"),
        "goodput_bps": found.rate_bps,
        "mft_bps": found.rate_bps,
        "window_packets": found.window,
        "smallest_window_packets": smallest,
        "plateau_packets": [from, to],
        "caution": edge_warning(found),
        "seeds": seeds,
        "trials": trials.collect::<Vec<_>>(),
    })
}

/// Columns of a line before and between its bars.
const NUMBERS: usize = 29;
/// Columns for half an interval, if there are several seeds.
const SPREAD: usize = 7;
const BETWEEN_BARS: usize = 2;
const LONGEST_BAR: usize = 24;

fn print_for_people(scenario: &Scenario, found: &Mft, seeds: u64) {
    let title = titled(&scenario.title);
    for (i, line) in headline(found, seeds).iter().enumerate() {
        let title = if i == 0 { format!("{title}: ") } else { String::new() };
        print::wrapped(&format!("{title}{line}"), "");
    }
    print::wrapped(&level_words(found), "");
    if let Some(words) = edge_warning(found) {
        print::wrapped(&words, "");
    }
    out!("Windows are in packets of {}.", scenario.path.packet);
    if seeds == 1 {
        out!("One seed: --seeds 8 separates differences from chance.");
    }
    let has_spread = seeds > 1;
    let numbers = if has_spread { NUMBERS + SPREAD } else { NUMBERS };
    // The rest of the line is divided between two bars.
    let longest = (print::width().saturating_sub(numbers + BETWEEN_BARS) / 2).min(LONGEST_BAR);
    let bar = |value: f64, highest: f64| "#".repeat((value / highest * longest as f64) as usize);
    let highest_rtt = found.rtts.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    let mut marks = Vec::new();
    let head = if has_spread { format!("{:SPREAD$}", "") } else { String::new() };
    out!("packets   Mbit/s{head}   RTT, ms    {:longest$}  RTT", "Mbit/s");
    for (place, (trial, rtt)) in found.trials.iter().zip(&found.rtts).enumerate() {
        let mark = match (trial.lossless, is_filled(scenario, trial, *rtt)) {
            (false, _) => '!',
            (true, false) => '~',
            (true, true) => ' ',
        };
        marks.push(mark);
        let (mbit, ms) = (trial.rate_bps / 1e6, rtt * 1e3);
        let [rate, rtt] = [bar(trial.rate_bps, found.rate_bps), bar(*rtt, highest_rtt)];
        let half = mean_interval(&found.rates[place]).filter(|_| has_spread);
        let half = half.map_or(head.clone(), |(_, half)| format!(" ±{:>5.2}", half / 1e6));
        out!("{:>7} {mbit:>8.2}{half}  {ms:>8.2} {mark} {rate:longest$}  {rtt}", trial.window);
    }
    if has_spread {
        print::wrapped(&format!("±: half the 95 % interval of the mean of {seeds} seeds"), "");
    }
    for (mark, words) in [
        ('!', "!: the bottleneck dropped packets in the measured time"),
        (
            '~',
            "~: the window was not full, so cwnd limited the flow; if losses before the measured time \
             lowered it, a longer warm-up shows the effect of the window",
        ),
    ] {
        if marks.contains(&mark) {
            print::wrapped(words, "");
        }
    }
    if let Some(words) = shared_places(scenario) {
        print::wrapped(&words, "");
    }
}

/// The remark that a buffer limited in packets holds fewer data packets if ACKs of reverse traffic share it.
fn shared_places(scenario: &Scenario) -> Option<String> {
    let Volume::Packets(places) = scenario.path.narrow().buffer else { return None };
    let is_shared = scenario.path.reverse == Reverse::Mirror && !scenario.cross.is_empty();
    let bytes = scenario.path.packet * places;
    is_shared.then(|| {
        format!(
            "The buffer takes {places} packets, and each ACK of the reverse traffic counts as one. With the same memory in \
             bytes, path.buffer={}B, larger windows fit.",
            bytes.get()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(trials: &[(u64, f64)], window: u64) -> Mft {
        let trial = |(window, rate_bps): &(u64, f64)| WindowTrial {
            window: *window,
            rate_bps: *rate_bps,
            lossless: true,
        };
        let trials: Vec<WindowTrial> = trials.iter().map(trial).collect();
        let rate_bps = trials.iter().map(|trial| trial.rate_bps).fold(0.0, f64::max);
        let rates = trials.iter().map(|trial| vec![trial.rate_bps]).collect();
        let rtts = trials.iter().map(|trial| trial.window as f64 / 100.0).collect();
        Mft { window, rate_bps, trials, rates, rtts }
    }

    #[test]
    fn the_headline_names_the_smallest_window_among_the_fastest() {
        // 38.55 is 0.03 % less than 38.56; its RTT of 1.62 s shows the shorter queue.
        let several = found(&[(115, 30e6), (162, 38.55e6), (483, 38.56e6), (700, 38e6)], 483);
        let expected = [
            "38.55 Mbit/s with a window of 162 packets, RTT 1.62 s",
            "It is the smallest window within 0.5 % of the highest rate. The highest rate is 38.56 Mbit/s (+0.03 %), with 483 packets at an RTT of 4.83 s.",
        ];
        assert_eq!(headline(&several, 1), expected);
        let json = json(&elephants(&[]), &several, 1);
        assert_eq!(
            (&json["smallest_window_packets"], &json["window_packets"]),
            (&162.into(), &483.into())
        );
        assert_eq!(json["trials"][1]["rtt_mean_s"], 1.62);
        let alone = found(&[(115, 30e6), (162, 38.56e6), (483, 38.55e6)], 162);
        assert_eq!(headline(&alone, 1), ["38.56 Mbit/s with a window of 162 packets, RTT 1.62 s"]);
    }

    /// The scenario @elephants: packets of 1000 B without headers.
    fn elephants(overrides: &[&str]) -> Scenario {
        let overrides: Vec<String> = overrides.iter().map(|o| (*o).to_owned()).collect();
        let path = std::path::Path::new("@elephants");
        sweetspot_program::scenario_file::read(path, &overrides, None).unwrap()
    }

    #[test]
    fn a_tolerance_is_a_fraction_or_a_percentage() {
        assert_eq!(tolerance("0.05"), tolerance("5%"));
        assert_eq!(tolerance("5 %"), Ok(0.05));
        for wrong in ["5", "0", "0%", "%", "500%", "x"] {
            assert!(tolerance(wrong).is_err(), "{wrong}");
        }
    }

    /// 40 Mbit/s times 50 ms is 250 packets of 1000 B.
    #[test]
    fn a_window_counts_as_filled_within_the_tolerance_of_the_bdp() {
        let is_filled = |window| {
            let trial = WindowTrial { window, rate_bps: 40e6, lossless: true };
            super::is_filled(&elephants(&[]), &trial, 0.05)
        };
        assert!(is_filled(250) && is_filled(277));
        assert!(!is_filled(279) && !is_filled(500));
    }

    #[test]
    fn a_remark_warns_that_acks_share_a_buffer_counted_in_packets() {
        let words = |overrides: &[&str]| shared_places(&elephants(overrides));
        // Packets have 1000 B.
        let found = words(&["path.buffer=313pkt"]).unwrap();
        assert!(found.contains("313 packets") && found.contains("path.buffer=313000B"), "{found}");
        assert_eq!(words(&["path.buffer=313kB"]), None);
        assert_eq!(words(&["path.reverse=clean"]), None);
    }

    /// Near means within 2 % of the window, or the next packet; much slower means by more than 2 % of the rate.
    #[test]
    fn a_best_window_next_to_a_much_slower_one_gets_a_warning() {
        let words = |beyond| edge_warning(&found(&[(400, 90e6), (500, 100e6), beyond], 500));
        let near = words((509, 91.5e6)).unwrap();
        assert!(near.starts_with("Caution: 9 packets above") && near.contains("8.5 % lower"));
        assert_eq!(words((511, 91.5e6)), None);
        assert_eq!(words((509, 98.5e6)), None);
        assert_eq!(edge_warning(&found(&[(400, 90e6), (500, 100e6)], 500)), None);
    }

    #[test]
    fn the_result_names_every_window_within_two_percent() {
        // 98 of 100 counts as equal; 97 does not.
        let several =
            found(&[(1, 98.0), (2, 99.0), (3, 97.0), (4, 100.0), (5, 50.0), (6, 98.5)], 4);
        let words = level_words(&several);
        assert_eq!(
            words,
            "Windows tried within 2 % of the highest rate, in packets: 1 to 2, 4, 6."
        );
        let cliff = level_words(&found(&[(1, 99e6), (2, 100e6), (3, 60e6), (4, 70e6)], 2));
        assert!(
            cliff.ends_with("in packets: 1 to 2; beyond them, 3 gives 60.00 Mbit/s."),
            "{cliff}"
        );
        assert_eq!(plateau(&several), (4, 4));
        assert_eq!(
            edge_warning(&several).unwrap().split(". ").next(),
            Some("Caution: 1 packet above the fastest window, the rate is 50.0 % lower")
        );
        let alone = found(&[(1, 50.0), (2, 100.0)], 2);
        assert_eq!(level_words(&alone), "No other window tried is within 2 % of the highest rate.");
    }
}
