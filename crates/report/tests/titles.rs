//! Checks that every picture of a report has a title and named axes.

mod synthetic;

use sweetspot_report::{
    ResultFile, RunFile, RunSeries, SWEEP_FORMAT, Sheet, SweepFile, SweepFilePoint, SweepPath,
    Theme, read, report_page, run_file, sheets,
};
use sweetspot_scenario::{Engine, NoRecorder, Outcome, Scenario};
use sweetspot_sim::Simulator;
use sweetspot_units::Duration;

fn scenario(window: u64) -> Scenario {
    let text = format!(
        "title = \"ten\"\nwarmup = \"2s\"\nduration = \"5s\"\n[path]\nrate = \"10Mbit/s\"\nrtt = \"40ms\"\n\
         buffer = \"50pkt\"\n[[transfer]]\nsizing = \"fixed:{window}pkt\""
    );
    Scenario::parse(&text).unwrap()
}

/// Outcomes with a different rate under each of eleven seeds.
fn under_seeds(window: u64) -> Vec<Outcome> {
    let outcome = Simulator.run(&scenario(window), &mut NoRecorder).unwrap();
    let of = |seed: u64| {
        let mut outcome = Outcome { seed, ..outcome.clone() };
        outcome.transfers[0].goodput_bps += seed as f64 * 1e5;
        outcome
    };
    (0..11).map(of).collect()
}

fn sweep() -> ResultFile {
    let point = |window| SweepFilePoint {
        values: vec![format!("fixed:{window}pkt")],
        path: SweepPath::of(&scenario(window)),
        outcomes: under_seeds(window),
    };
    ResultFile::Sweep(SweepFile {
        sweetspot_sweep: SWEEP_FORMAT,
        version: "0".to_owned(),
        command: "sweetspot sweep".to_owned(),
        keys: vec!["transfer.sizing".to_owned()],
        points: [10, 20, 40].map(point).to_vec(),
    })
}

fn runs(window: u64) -> ResultFile {
    let run = |outcome| RunFile { outcome, path: None, series: Vec::new() };
    ResultFile::Runs(under_seeds(window).into_iter().map(run).collect())
}

fn run_over_time() -> ResultFile {
    let scenario = scenario(40);
    let mut recorder = RunSeries::of(&scenario, Duration::from_millis(100)).unwrap();
    let outcome = Simulator.run(&scenario, &mut recorder).unwrap();
    let columns = recorder.columns(&outcome);
    read(&run_file(&outcome, &scenario, Some(&columns)).unwrap().to_string(), "0").unwrap()
}

#[test]
fn the_heading_names_the_fastest_and_the_text_below_its_equals() {
    // The key is not a window, so the smallest of equal values is not the best.
    let ResultFile::Sweep(mut sweep) = sweep() else { panic!("it is a sweep") };
    sweep.keys = vec!["name".to_owned()];
    sweep.points = ["one", "two"]
        .map(|name| SweepFilePoint { values: vec![name.to_owned()], ..sweep.points[0].clone() })
        .to_vec();
    let sheets = sheets(&[("sweep.json".to_owned(), ResultFile::Sweep(sweep))]);
    let (title, about) = (&sheets[0].title, &sheets[0].about);
    assert!(title.starts_with("Fastest of 2: name "), "{title}");
    assert!(!title.contains(';'), "{title}");
    assert!(about.starts_with("As fast: name "), "{about}");
}

#[test]
fn a_comparison_of_different_scenarios_says_so() {
    let compared = |title: &str| {
        let ResultFile::Runs(mut second) = runs(40) else { panic!("they are runs") };
        second.iter_mut().for_each(|run| run.outcome.scenario = title.to_owned());
        let files =
            [("a.json".to_owned(), runs(20)), ("b.json".to_owned(), ResultFile::Runs(second))];
        sheets(&files).remove(0)
    };
    let other = compared("another");
    assert!(other.title.starts_with("Different scenarios: b.json is "), "{}", other.title);
    assert!(other.about.contains("\"ten\" and \"another\""), "{}", other.about);
    let same = compared("ten");
    assert!(same.title.contains("Mbit/s faster than a.json"), "{}", same.title);
    assert!(!same.about.contains("different scenarios"), "{}", same.about);
}

/// When a lost segment is repaired, the cumulative ACK jumps: 20 Mbit/s on a link of 10.
#[test]
fn goodput_above_the_link_rate_is_explained() {
    let about = |peak_bps: f64| {
        let ResultFile::Runs(mut runs) = run_over_time() else { panic!("it is a run") };
        runs[0].series[5].goodput_bps = Some(peak_bps);
        let sheets = sheets(&[("run.json".to_owned(), ResultFile::Runs(runs))]);
        sheets[0].about.clone()
    };
    assert!(about(20e6).contains("cumulative ACKs"));
    assert!(!about(9e6).contains("cumulative ACKs"));
}

#[test]
fn run_curves_name_their_sizing() {
    let sheets = sheets(&[("run.json".to_owned(), run_over_time())]);
    assert_eq!(sheets[0].plots[0].curves[0].label, "run.json, fixed:40pkt");
}

/// The sheets of all kinds of files.
fn every_kind() -> Vec<Sheet> {
    let named = |files: Vec<ResultFile>| -> Vec<(String, ResultFile)> {
        files.into_iter().enumerate().map(|(i, file)| (format!("{i}.json"), file)).collect()
    };
    let kinds = [
        vec![ResultFile::Demo(synthetic::outcome())],
        vec![sweep()],
        vec![runs(20), runs(40)],
        vec![run_over_time()],
    ];
    kinds.into_iter().flat_map(|files| sheets(&named(files))).collect()
}

/// A table shows the numbers printed by the demonstration: a row per variant, and a cell per column.
#[test]
fn a_demonstration_has_a_table_of_its_variants() {
    let demo = synthetic::outcome();
    let printed = sweetspot_report::table(&demo);
    let files = [("outcome.json".to_owned(), ResultFile::Demo(demo.clone()))];
    let sheets = sheets(&files);
    let [table] = &sheets[0].tables[..] else { panic!("{:?}", sheets[0].tables) };
    assert_eq!(table.rows.len(), demo.variants.len());
    for (row, variant) in table.rows.iter().zip(&demo.variants) {
        assert_eq!((row.len(), &row[0]), (table.heads.len(), &variant.name()));
        let line = printed.lines().find(|line| line.starts_with(&row[0])).expect("its line");
        assert_eq!(line.split_whitespace().collect::<Vec<_>>(), *row);
    }
}

#[test]
fn a_demonstration_explains_each_untrusted_row() {
    let demo = synthetic::outcome();
    let files = [("outcome.json".to_owned(), ResultFile::Demo(demo.clone()))];
    let about = &sheets(&files)[0].about;
    let reasons = demo.variants.iter().filter_map(|variant| Some((variant, variant.distrust()?)));
    let mut count = 0;
    for (variant, why) in reasons {
        assert!(about.contains(&format!("Do not trust {}: {why}.", variant.name())), "{about}");
        count += 1;
    }
    assert!(count > 0 && about.matches("Do not trust").count() == count, "{about}");
}

#[test]
fn every_chart_has_a_title_and_named_axes_with_units() {
    let sheets = every_kind();
    for name in ["demo-0", "sweep-0", "comparison", "series"] {
        assert!(sheets.iter().any(|sheet| sheet.name == name && !sheet.plots.is_empty()), "{name}");
    }
    for sheet in &sheets {
        for plot in &sheet.plots {
            let title = &plot.title;
            assert!(title.starts_with(char::is_uppercase), "{}: {title:?}", sheet.name);
            for axis in [&plot.x, &plot.y] {
                assert!(!axis.label.is_empty(), "{}: {title}", sheet.name);
            }
            let unit = [&plot.x, &plot.y].iter().any(|axis| axis.label.contains(", "));
            assert!(unit, "{}: {title}", sheet.name);
        }
        let page = report_page("files", std::slice::from_ref(sheet), &[], "0", Theme::Screen);
        let pictures = page.matches(r#"class="title""#).count();
        assert!(pictures >= sheet.plots.len(), "{}: {pictures} titles", sheet.name);
    }
}
