//! The pictures of sweeps, with the path's sweet spot.

use sweetspot_experiment::SweepPoint;
use sweetspot_experiment::plot::MarkPosition;
use sweetspot_report::{
    ResultFile, SWEEP_FORMAT, SweepFile, SweepFilePoint, SweepPath, csv, from_csv, read_columns,
    sheets, sweep_columns, sweep_table,
};
use sweetspot_scenario::{Engine, NoRecorder, Scenario};
use sweetspot_sim::Simulator;

fn scenario(cross: &str, window: u64) -> Scenario {
    let text = format!(
        "warmup = \"10s\"\nduration = \"20s\"\n[path]\nrate = \"10Mbit/s\"\nrtt = \"40ms\"\n\
         buffer = \"50pkt\"\npacket = \"1000B\"\nreverse = \"clean\"\n{cross}\n[[transfer]]\n\
         congestion = \"reno\"\nsizing = \"fixed:{window}pkt\""
    );
    Scenario::parse(&text).unwrap()
}

const ELEPHANTS: &str =
    "[[cross]]\nkind = \"elephants\"\ncount = 5\nwindow = \"5pkt\"\nrtt = [\"40ms\", \"40ms\"]";

/// The windows, in packets.
const WINDOWS: [u64; 10] = [5, 10, 20, 30, 40, 60, 70, 74, 80, 120];

fn sweep(cross: &str, windows: &[u64]) -> SweepFile {
    let point = |&window: &u64| {
        let scenario = scenario(cross, window);
        SweepFilePoint {
            values: vec![format!("fixed:{window}pkt")],
            path: SweepPath::of(&scenario),
            outcomes: vec![Simulator.run(&scenario, &mut NoRecorder).unwrap()],
        }
    };
    SweepFile {
        sweetspot_sweep: SWEEP_FORMAT,
        version: "0".to_owned(),
        command: "sweetspot sweep".to_owned(),
        keys: vec!["transfer.sizing".to_owned()],
        points: windows.iter().map(point).collect(),
    }
}

fn band(sweep: SweepFile) -> Option<(f64, f64)> {
    let sheets = sheets(&[("sweep.json".to_owned(), ResultFile::Sweep(sweep))]);
    sheets[0].plots[0].band.as_ref().map(|(_, from, to)| (*from, *to))
}

/// Without cross traffic, every window of the sweet spot fills the path. Beside elephants, goodput rises within it, as a larger
/// window displaces them.
#[test]
fn a_sweet_spot_is_shaded_only_if_its_windows_are_the_fastest() {
    let (from, to) = band(sweep("", &WINDOWS)).unwrap();
    let rates = |cross: &str| {
        let goodput = |point: &SweepFilePoint| point.outcomes[0].transfers[0].goodput_bps;
        let rates: Vec<f64> = sweep(cross, &WINDOWS).points.iter().map(goodput).collect();
        let highest = rates.iter().copied().fold(0.0, f64::max);
        let slowest =
            WINDOWS.iter().zip(rates).filter(|(w, _)| (from..=to).contains(&(**w as f64)));
        (slowest.map(|(_, rate)| rate).fold(highest, f64::min), highest)
    };
    let (slowest, highest) = rates("");
    assert!(slowest >= 0.98 * highest, "{slowest} of {highest}");
    let (slowest, highest) = rates(ELEPHANTS);
    assert!(slowest < 0.98 * highest, "{slowest} of {highest}");
    assert_eq!(band(sweep(ELEPHANTS, &WINDOWS)), None);
}

/// A window without a number has no position on the numeric axis: a level shows it.
#[test]
fn a_non_numeric_value_is_drawn_as_a_level() {
    let mut sweep = sweep("", &WINDOWS);
    sweep.points[0].values = vec!["sobas".to_owned()];
    let rate = sweep.points[0].outcomes[0].transfers[0].goodput_bps / 1e6;
    let sheets = sheets(&[("sweep.json".to_owned(), ResultFile::Sweep(sweep))]);
    let plot = &sheets[0].plots[0];
    let [curve] = plot.curves.as_slice() else { panic!("{:?}", plot.curves) };
    assert_eq!(
        (curve.label.as_str(), curve.points.len()),
        ("Untitled scenario", WINDOWS.len() - 1)
    );
    let [level] = plot.marks.as_slice() else { panic!("{:?}", plot.marks) };
    assert_eq!((level.label.as_str(), level.place), ("sobas", MarkPosition::Level(rate)));
    assert_ne!(level.group, curve.group);
}

/// Without cross traffic, the sweet spot is from C T = 50 packets to C T + B = 100 and the packet in
/// transmission. With elephants, which hold half of the path, it begins at half of C T and ends below C T + B.
#[test]
fn cross_traffic_moves_the_shaded_sweet_spot() {
    let (from, to) = band(sweep("", &WINDOWS)).unwrap();
    assert!((49.0..52.0).contains(&from) && (98.0..102.0).contains(&to), "{from} to {to}");
    // Of these windows, only the fastest is in the sweet spot.
    let (from, to) = band(sweep(ELEPHANTS, &[5, 10, 20, 30])).unwrap();
    assert!((22.0..28.0).contains(&from) && to < 90.0, "{from} to {to}");
}

#[test]
fn nothing_is_shaded_without_a_closed_form() {
    let mice =
        "[[cross]]\nkind = \"mice\"\ncount = 3\npackets = [10, 100]\nsleep = [\"1s\", \"2s\"]";
    assert_eq!(band(sweep(mice, &WINDOWS)), None);
}

#[test]
fn a_sweep_gives_the_same_charts_from_csv_and_json() {
    let sweep = sweep(ELEPHANTS, &WINDOWS);
    let columns = from_csv(&csv(&sweep_columns(&sweep))).unwrap();
    let back = read_columns(&columns, "0").unwrap();
    let ResultFile::Sweep(back) = back else { panic!("{back:?}") };
    assert_eq!(back.keys, sweep.keys);
    let plots = |sweep: SweepFile| {
        sheets(&[("sweep".to_owned(), ResultFile::Sweep(sweep))])[0].plots.clone()
    };
    assert_eq!(plots(back), plots(sweep));
}

fn point(values: [&str; 2], seeds: u64) -> SweepPoint {
    let run = |seed| {
        let scenario = Scenario { seed, ..scenario(ELEPHANTS, 30) };
        Simulator.run(&scenario, &mut NoRecorder).unwrap()
    };
    let outcomes = (1..=seeds).map(run).collect();
    SweepPoint { values: values.map(str::to_owned).to_vec(), outcomes }
}

#[test]
fn a_table_of_two_keys_and_one_seed_fits_into_80_columns() {
    let keys = ["path.buffer", "transfer.sizing"].map(str::to_owned);
    let one = sweep_table(&keys, &[point(["100pkt", "fixed:250pkt"], 1)]);
    // Each column is as wide as its widest cell: 11 + 15 + 8 + 6 + 7 + 7, plus five gaps of two.
    let heading = "path.buffer  transfer.sizing  transfer  Mbit/s  RTT, ms  loss, %\n";
    assert!(one.starts_with(heading) && heading.len() == 65, "{one}");
    assert!(one.lines().all(|line| line.len() == 64), "{one}");
    assert!(sweep_table(&keys, &[point(["100pkt", "sobas"], 3)]).contains(" ± "));
}

#[test]
fn runs_with_one_seed_have_no_interval_in_the_caption() {
    let caption = |seeds: u64| {
        let mut sweep = sweep("", &WINDOWS);
        sweep.points.truncate(1);
        sweep.points[0].outcomes = point(["", ""], seeds).outcomes;
        let sheets = sheets(&[("sweep.json".to_owned(), ResultFile::Sweep(sweep))]);
        sheets[0].tables[0].title.clone()
    };
    assert_eq!(caption(1), "One run of each combination");
    assert_eq!(caption(2), "Mean over seeds ± half the 95 % confidence interval");
}

#[test]
fn values_in_different_units_are_ordered_on_one_axis() {
    let mut sweep = sweep("", &WINDOWS);
    sweep.points.truncate(3);
    for (point, value) in sweep.points.iter_mut().zip(["1MB", "30kB", "200kB"]) {
        point.values = vec![format!("fixed:{value}")];
    }
    let sheets = sheets(&[("sweep.json".to_owned(), ResultFile::Sweep(sweep))]);
    let plot = &sheets[0].plots[0];
    assert_eq!(plot.x.label, "transfer.sizing, B");
    let at: Vec<f64> = plot.curves[0].points.iter().map(|point| point.0).collect();
    // 1 kB = 1000 B.
    assert_eq!(at, [3e4, 2e5, 1e6]);
}

#[test]
fn non_numeric_values_are_columns_and_other_keys_are_curves() {
    let mut sweep = sweep("", &WINDOWS);
    sweep.keys = vec!["transfer.congestion".to_owned(), "transfer.sizing".to_owned()];
    sweep.points.truncate(6);
    let congestion = ["cubic", "bbr"];
    let sizing = ["sobas", "kernel", "drs"];
    let pairs = congestion.iter().flat_map(|first| sizing.map(|second| [*first, second]));
    for (point, values) in sweep.points.iter_mut().zip(pairs) {
        point.values = values.map(str::to_owned).to_vec();
    }
    let sheets = sheets(&[("sweep.json".to_owned(), ResultFile::Sweep(sweep))]);
    let goodput = &sheets[0].plots[0];
    assert_eq!(goodput.x.names, sizing);
    assert_eq!(goodput.curves.len(), congestion.len());
    for curve in &goodput.curves {
        let across: Vec<f64> = curve.points.iter().map(|point| point.0).collect();
        assert_eq!(across, [1.0, 2.0, 3.0], "{}", curve.label);
    }
}
