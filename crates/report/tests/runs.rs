//! Files of runs, drawn over time and compared with each other.

use sweetspot_experiment::plot::MarkPosition;
use sweetspot_report::{
    ResultFile, RunFile, RunSeries, SeriesRow, Sheet, Theme, read, read_columns, report_page,
    run_file, sheets,
};
use sweetspot_scenario::{Engine, Outcome, Scenario};
use sweetspot_sim::Simulator;
use sweetspot_units::Duration;

/// A path of 10 Mbit/s, 40 ms and 50 packets of 1000 B, so that C T_m is 50 packets.
fn scenario() -> Scenario {
    let text = "title = \"ten\"\nwarmup = \"2s\"\nduration = \"5s\"\n[path]\nrate = \"10Mbit/s\"\nrtt = \"40ms\"\n\
                buffer = \"50pkt\"\npacket = \"1000B\"\n[[transfer]]\nsizing = \"fixed:40pkt\"";
    Scenario::parse(text).unwrap()
}

/// The outcome, the content of its file, and the rows of its time series.
fn finished() -> (Outcome, String, Vec<SeriesRow>) {
    let scenario = scenario();
    let mut recorder = RunSeries::of(&scenario, Duration::from_millis(100)).unwrap();
    let outcome = Simulator.run(&scenario, &mut recorder).unwrap();
    let columns = recorder.columns(&outcome);
    let file = run_file(&outcome, &scenario, Some(&columns)).unwrap();
    let Ok(ResultFile::Series(series)) = read_columns(&columns, "0") else {
        panic!("they are columns of a series")
    };
    (outcome, file.to_string(), series.rows)
}

fn runs(text: &str) -> Vec<RunFile> {
    match read(text, "0") {
        Ok(ResultFile::Runs(runs)) => runs,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_run_reads_back_with_every_row_of_its_series() {
    let (outcome, text, rows) = finished();
    let runs = runs(&text);
    assert_eq!((runs.len(), &runs[0].outcome), (1, &outcome));
    assert_eq!(runs[0].series, rows);
    assert!(rows.len() > 40, "{}", rows.len());
}

#[test]
fn a_run_is_drawn_over_time_with_the_levels_of_its_path() {
    let (_, text, _) = finished();
    let sheets = sheets(&[("run.json".to_owned(), ResultFile::Runs(runs(&text)))]);
    assert_eq!(sheets.len(), 1);
    // 40 of 50 packets carry four fifths of 10 Mbit/s, minus the transmission time of one packet in each RTT.
    let claimed = sheets[0].title.strip_prefix("ten: ").and_then(|words| words.split(' ').next());
    let rate: f64 = claimed.unwrap().parse().unwrap();
    assert!((7.7..8.0).contains(&rate), "{}", sheets[0].title);
    let levels = |label: &str| -> Vec<f64> {
        let plot = sheets[0].plots.iter().find(|plot| plot.y.label.starts_with(label)).unwrap();
        assert!(plot.curves[0].points.len() > 40, "{label}");
        let marks = plot.marks.iter().filter_map(|mark| match mark.place {
            MarkPosition::Level(y) => Some(y),
            _ => None,
        });
        marks.collect()
    };
    assert_eq!(levels("goodput"), [10.0]);
    assert_eq!(levels("advertised window"), [50.0, 100.0]);
    // A full buffer of 50 packets also takes 40 ms.
    assert_eq!(levels("round-trip time"), [40.0, 80.0]);
    assert_eq!(levels("bottleneck queue"), [50.0]);
    assert_eq!(sheets[0].tables[0].rows.len(), 1);
}

/// The transfer starts after 3 of 7 s. The queue has a past, and the window is set at the start.
#[test]
fn nothing_of_a_transfer_is_drawn_before_its_start() {
    let mut scenario = scenario();
    scenario.transfers[0].start = Duration::from_secs(3);
    let mut recorder = RunSeries::of(&scenario, Duration::from_millis(100)).unwrap();
    let outcome = Simulator.run(&scenario, &mut recorder).unwrap();
    let file = run_file(&outcome, &scenario, Some(&recorder.columns(&outcome))).unwrap();
    let runs = runs(&file.to_string());
    let sheets = sheets(&[("run.json".to_owned(), ResultFile::Runs(runs))]);
    let plot = |label: &str| {
        sheets[0].plots.iter().find(|plot| plot.y.label.starts_with(label)).unwrap().clone()
    };
    for (label, begin) in [("goodput", 3.0), ("advertised window", 3.0), ("bottleneck queue", 0.0)]
    {
        let first = plot(label).curves[0].points[0].0;
        assert!((begin..begin + 0.2).contains(&first), "{label}: {first}");
    }
    let window = plot("advertised window");
    let moments = window.marks.iter().filter(|mark| matches!(mark.place, MarkPosition::Moment(_)));
    let moments: Vec<_> = moments.map(|mark| (mark.label.as_str(), mark.place)).collect();
    let [(words, MarkPosition::Moment(at))] = moments.as_slice() else { panic!("{moments:?}") };
    assert_eq!(*at, 3.0);
    assert!(words.starts_with("3.000 s: limited "), "{words}");
}

#[test]
fn a_series_with_columns_of_unequal_length_is_rejected() {
    let (_, text, _) = finished();
    let broken = text.replacen("\"transfer\":[0,", "\"transfer\":[", 1);
    assert_ne!(text, broken);
    let error = read(&broken, "0").expect_err("a column is short").to_string();
    assert!(error.contains("its series has"), "{error}");
}

/// Runs with these `seeds`: all have the rate `base`, plus up to 5 Mbit/s by chance.
fn under_seeds(seeds: std::ops::Range<u64>, base: f64) -> ResultFile {
    let (outcome, ..) = finished();
    let run = |seed: u64| {
        let mut outcome = outcome.clone();
        outcome.seed = seed;
        outcome.transfers[0].goodput_bps = (base + ((seed * 7) % 11) as f64 / 2.0) * 1e6;
        RunFile { outcome, path: None, series: Vec::new() }
    };
    ResultFile::Runs(seeds.map(run).collect())
}

fn compared(a: ResultFile, b: ResultFile) -> Sheet {
    let mut sheets = sheets(&[("a.json".to_owned(), a), ("b.json".to_owned(), b)]);
    let sheet = sheets.remove(0);
    assert_eq!(sheet.name, "comparison");
    sheet
}

#[test]
fn variation_shared_by_two_files_cancels_in_pairs() {
    let sheet = compared(under_seeds(0..11, 20.0), under_seeds(0..11, 22.0));
    // Each pair differs by 2 Mbit/s, although one file's runs differ by 5.
    assert_eq!(
        sheet.title,
        "b.json is 2 Mbit/s faster than a.json; mean RTT alike, p99 alike (11 pairs)"
    );
    assert_eq!(sheet.tables[0].rows[0].last().unwrap(), "+2.00 ± 0.00");
    // Box plots, distributions and differences, each for goodput and RTT.
    assert_eq!(sheet.plots.len(), 6);
    let [a, b] = sheet.plots[0].boxes.as_slice() else { panic!("two boxes") };
    // The median of 0, 0.5, ... 5 is 2.5.
    assert_eq!([a.quantiles[2], b.quantiles[2]], [22.5, 24.5]);
    let differences = &sheet.plots[2].curves[0].points;
    assert!(differences.iter().all(|point| (point.0 - 2.0).abs() < 1e-9), "{differences:?}");
}

#[test]
fn a_difference_within_chance_is_not_reported() {
    let (ResultFile::Runs(mut a), ResultFile::Runs(mut b)) =
        (under_seeds(0..8, 20.0), under_seeds(0..8, 20.0))
    else {
        panic!("they are runs")
    };
    for (n, (a, b)) in a.iter_mut().zip(&mut b).enumerate() {
        let faster = if n % 2 == 0 { a } else { b };
        faster.outcome.transfers[0].goodput_bps += 1e6;
    }
    let sheet = compared(ResultFile::Runs(a), ResultFile::Runs(b));
    assert!(sheet.title.contains("no difference in goodput beyond chance"), "{}", sheet.title);
}

/// 0.3 of 20 Mbit/s is 1.5 %, and 0.5 is 2.5 %.
#[test]
fn one_pair_within_two_percent_counts_as_equal() {
    let title = |rate| compared(under_seeds(0..1, 20.0), under_seeds(0..1, rate)).title;
    // A window of 40 packets of 1000 B on a path that holds 50: no queue, so the RTT is 40 ms plus the time of one
    // packet.
    assert_eq!(
        title(20.3),
        "b.json: goodput within 2 % of a.json, mean RTT 40.8 ms in both (one pair)"
    );
    assert!(title(20.0).starts_with("b.json and a.json: the same goodput"), "{}", title(20.0));
    assert!(title(20.5).starts_with("b.json is 0.5 Mbit/s faster than a.json"), "{}", title(20.5));
    assert!(title(19.5).starts_with("b.json is 0.5 Mbit/s slower than a.json"), "{}", title(19.5));
}

#[test]
fn a_difference_rounded_to_zero_has_no_minus_sign() {
    let words = |rate| {
        let sheet = compared(under_seeds(0..1, 20.0), under_seeds(0..1, rate));
        sheet.tables[0].rows[0].last().unwrap().clone()
    };
    assert_eq!([words(19.996), words(19.994), words(20.004)], ["+0.00", "-0.01", "+0.00"]);
}

#[test]
fn runs_with_different_seeds_are_not_paired() {
    let sheet = compared(under_seeds(0..5, 20.0), under_seeds(5..10, 30.0));
    assert!(!sheet.title.contains("pairs"), "{}", sheet.title);
    assert!(sheet.about.contains("have no pair, so their means are compared"), "{}", sheet.about);
    assert_eq!(sheet.tables[0].rows[0].last().unwrap(), "–");
}

/// Both files have the same rates under each seed. A mean over seeds that only one file has would show a difference
/// that no pair has.
#[test]
fn means_cover_only_the_seeds_in_both_files() {
    let sheet = compared(under_seeds(0..3, 20.0), under_seeds(0..8, 20.0));
    let goodput = &sheet.tables[0].rows[0];
    assert_eq!(goodput[1], goodput[2], "{goodput:?}");
    assert_eq!(goodput[3], "+0.00 ± 0.00");
}

/// A mean over several variants or scenarios describes none of them.
#[test]
fn unpaired_files_are_compared_by_means_only_with_one_case_each() {
    let sheet = compared(under_seeds(0..5, 20.0), under_seeds(5..10, 30.0));
    assert!(
        sheet.title.starts_with("a.json 2") && sheet.title.contains(" Mbit/s, b.json 3"),
        "{}",
        sheet.title
    );
    let ResultFile::Runs(mut runs) = under_seeds(0..5, 20.0) else { panic!("they are runs") };
    for (i, run) in runs.iter_mut().enumerate() {
        run.outcome.scenario = format!("scenario {i}");
    }
    let sheet = compared(under_seeds(5..10, 30.0), ResultFile::Runs(runs));
    assert_eq!(sheet.title, "a.json and b.json: no transfers to compare pair by pair");
    assert!(sheet.about.contains("so nothing is compared"), "{}", sheet.about);
    assert!(sheet.tables.is_empty(), "no row would have both files");
    assert!(sheet.plots.is_empty(), "a picture would compare them");
}

/// `slow` has 10 Mbit/s in both files, and `fast` has 30 and 33: a mean over both would be 20, the rate of neither.
#[test]
fn means_are_compared_within_each_case() {
    let file = |fast: f64| {
        let ResultFile::Runs(mut runs) = under_seeds(0..22, 0.0) else { panic!("they are runs") };
        for (i, run) in runs.iter_mut().enumerate() {
            let (scenario, base) = if i % 2 == 0 { ("slow", 10.0) } else { ("fast", fast) };
            run.outcome.scenario = scenario.to_owned();
            run.outcome.transfers[0].goodput_bps = base * 1e6;
        }
        ResultFile::Runs(runs)
    };
    let sheet = compared(file(30.0), file(33.0));
    assert_eq!(sheet.title, "b.json is faster than a.json in 1 of 2 cases, and slower in 0");
    let table = &sheet.tables[0];
    assert_eq!(table.heads, ["case", "mean of", "a.json", "b.json", "difference in pairs"]);
    let goodput: Vec<&[String]> = table.rows.iter().map(Vec::as_slice).step_by(5).collect();
    assert_eq!(goodput[0], ["slow", "goodput, Mbit/s", "10.00", "10.00", "+0.00 ± 0.00"]);
    assert_eq!(goodput[1], ["fast", "goodput, Mbit/s", "30.00", "33.00", "+3.00 ± 0.00"]);
    // The interval of a mean over both cases would describe neither.
    assert!(sheet.plots.iter().all(|plot| plot.band.is_none()));
}

#[test]
fn a_case_in_only_one_file_has_no_difference() {
    let ResultFile::Runs(mut more) = under_seeds(0..4, 20.0) else { panic!("they are runs") };
    let ResultFile::Runs(mut other) = under_seeds(0..4, 20.0) else { panic!("they are runs") };
    other.iter_mut().for_each(|run| run.outcome.scenario = "other".to_owned());
    more.extend(other);
    let sheet = compared(under_seeds(0..4, 20.0), ResultFile::Runs(more));
    let alone = sheet.tables[0].rows.iter().find(|row| row[0] == "other").unwrap();
    assert_eq!((alone[2].as_str(), alone[4].as_str()), ("–", "–"));
    assert!(sheet.about.ends_with("4 transfers have no partner."), "{}", sheet.about);
    assert!(
        sheet.title.ends_with("no difference in goodput beyond chance in 1 case"),
        "{}",
        sheet.title
    );
}

#[test]
fn a_search_shows_its_caution_and_the_limit_with_each_window() {
    let trial = |window: u64, is_filled: &str| {
        format!(
            "{{\"window_packets\": {window}, \"goodput_bps\": 9e6, \"rtt_mean_s\": 0.04, \"lossless\": true{is_filled}}}"
        )
    };
    let filled = |is_filled: bool| format!(", \"window_filled\": {is_filled}");
    let trials = [trial(50, &filled(true)), trial(51, &filled(false)), trial(52, "")].join(", ");
    let text = format!(
        "{{\"scenario\": \"ten\", \"mft_bps\": 9e6, \"window_packets\": 50, \"seeds\": 1, \
         \"caution\": \"Caution: 1 packet above\", \"trials\": [{trials}]}}"
    );
    let sheets = sheets(&[("best.json".to_owned(), read(&text, "0").unwrap())]);
    let limits: Vec<&str> = sheets[0].tables[0].rows.iter().map(|row| row[3].as_str()).collect();
    assert_eq!(limits, ["window", "cwnd", "–"]);
    assert!(sheets[0].about.contains(" cwnd limited the flow"), "{}", sheets[0].about);
    let page = report_page("best.json", &sheets, &[], "0", Theme::Screen);
    assert!(page.contains("<p><em>Caution: 1\u{a0}packet above</em></p>"), "{page}");
}
