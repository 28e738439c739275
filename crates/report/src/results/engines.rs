use sweetspot_experiment::plot::{Axis, Origin, Plot, Table};
use sweetspot_scenario::{Outcome, TransferOutcome};

use super::sheet::{DISTRIBUTION, Sheet, distribution, picture_title, titled};

/// A table of every run, the engines side by side, and the distributions of goodput and RTT. With `hint`, it
/// also says which files would show more.
pub fn sheet(runs: &[&Outcome], hint: bool) -> Sheet {
    let mut sheet = Sheet {
        name: "runs".into(),
        title: match runs {
            [run] => message(run),
            _ => format!("{} runs", runs.len()),
        },
        about: format!(
            "One row per transfer, over the measured time.{}",
            if hint {
                " For pictures of rate, queue and window over time, give the file of `run --out`."
            } else {
                ""
            }
        ),
        plots: distributions(runs),
        tables: vec![all(runs)],
    };
    if let Some(table) = side_by_side(runs) {
        sheet.tables.insert(0, table);
    }
    sheet
}

/// Summarises a run: its first transfer's rate, RTT and loss, and the queue.
pub fn message(run: &Outcome) -> String {
    let Some(first) = run.transfers.first() else { return titled(&run.scenario).to_owned() };
    let others = match run.transfers.len() - 1 {
        0 => String::new(),
        some => format!(", the first of {}", some + 1),
    };
    format!(
        "{}: {:.2} Mbit/s at {:.1} ms{others}, {:.3} % lost, mean queue {:.0} packets",
        titled(&run.scenario),
        first.goodput_bps / 1e6,
        first.rtt_mean_s * 1e3,
        first.loss_rate * 100.0,
        run.bottleneck.queue_mean_packets,
    )
}

fn all(runs: &[&Outcome]) -> Table {
    let heads = [
        "scenario",
        "engine",
        "seed",
        "transfer",
        "sizing",
        "goodput, Mbit/s",
        "RTT mean, ms",
        "RTT p99, ms",
        "loss, %",
        "retransmitted",
        "timeouts",
        "window at the end, kB",
    ];
    let mut table = Table::new("Every run", &heads);
    for run in runs {
        for (i, t) in run.transfers.iter().enumerate() {
            table.rows.push(vec![
                titled(&run.scenario).to_owned(),
                run.engine.clone(),
                run.seed.to_string(),
                i.to_string(),
                t.sizing.clone(),
                format!("{:.2}", t.goodput_bps / 1e6),
                format!("{:.1}", t.rtt_mean_s * 1e3),
                format!("{:.1}", t.rtt_p99_s * 1e3),
                format!("{:.4}", t.loss_rate * 100.0),
                t.retransmitted_packets.to_string(),
                t.timeouts.to_string(),
                format!("{:.0}", t.window_final_bytes as f64 / 1e3),
            ]);
        }
    }
    table
}

/// Key of a transfer across engines and seeds: scenario, index and sizing.
type TransferCase<'a> = (&'a str, usize, &'a str);

/// Goodput by engine, as means over seeds, if several engines ran a scenario.
fn side_by_side(runs: &[&Outcome]) -> Option<Table> {
    let mut engines: Vec<&str> = Vec::new();
    let mut cases: Vec<TransferCase<'_>> = Vec::new();
    for run in runs {
        if !engines.contains(&run.engine.as_str()) {
            engines.push(&run.engine);
        }
        for (i, transfer) in run.transfers.iter().enumerate() {
            let case = (run.scenario.as_str(), i, transfer.sizing.as_str());
            if !cases.contains(&case) {
                cases.push(case);
            }
        }
    }
    if engines.len() < 2 {
        return None;
    }
    let mut heads = vec!["scenario".to_owned(), "transfer".to_owned(), "sizing".to_owned()];
    heads.extend(engines.iter().map(|engine| format!("{engine}, Mbit/s")));
    let others = engines.iter().skip(1);
    heads.extend(others.map(|engine| format!("{engine} from {}", engines[0])));
    let mut table = Table::new("Engine by engine", &heads);
    for case in cases {
        let rates: Vec<Option<f64>> = engines.iter().map(|e| mean_rate(runs, e, case)).collect();
        let mut row = vec![case.0.to_owned(), case.1.to_string(), case.2.to_owned()];
        let show =
            |rate: &Option<f64>| rate.map_or("–".into(), |rate| format!("{:.2}", rate / 1e6));
        row.extend(rates.iter().map(show));
        row.extend(rates.iter().skip(1).map(|rate| match (rate, rates[0]) {
            (Some(rate), Some(first)) if first > 0.0 => {
                format!("{:+.1} %", (rate / first - 1.0) * 100.0)
            }
            _ => String::new(),
        }));
        table.rows.push(row);
    }
    Some(table)
}

fn mean_rate(
    runs: &[&Outcome],
    engine: &str,
    (scenario, i, sizing): TransferCase<'_>,
) -> Option<f64> {
    let of = |run: &&&Outcome| run.engine == engine && run.scenario == scenario;
    let rates: Vec<f64> = runs
        .iter()
        .filter(of)
        .filter_map(|run| run.transfers.get(i))
        .filter(|transfer| transfer.sizing == sizing)
        .map(|transfer| transfer.goodput_bps)
        .collect();
    (!rates.is_empty()).then(|| rates.iter().sum::<f64>() / rates.len() as f64)
}

/// Cumulative distributions by sizing; empty if there are too few runs.
fn distributions(runs: &[&Outcome]) -> Vec<Plot> {
    let transfers = || runs.iter().flat_map(|run| run.transfers.iter().map(|t| (&run.engine, t)));
    let mut names: Vec<(&str, &str)> = Vec::new();
    for (engine, transfer) in transfers() {
        let name = (engine.as_str(), transfer.sizing.as_str());
        if !names.contains(&name) {
            names.push(name);
        }
    }
    if transfers().count() < 3 {
        return Vec::new();
    }
    let plot = |label: &str, of: &dyn Fn(&TransferOutcome) -> f64| {
        let mut plot = Plot::new(
            picture_title(label, DISTRIBUTION),
            Axis::new(label),
            Axis::new("share of transfers").between(0.0, 1.0),
        );
        for (group, (engine, sizing)) in names.iter().enumerate() {
            let values = transfers()
                .filter(|(e, t)| e == engine && t.sizing == *sizing)
                .map(|(_, transfer)| of(transfer));
            let label = format!("{sizing}, {engine}");
            plot.curve(label, origin(engine), group, distribution(values));
        }
        plot
    };
    vec![
        plot("goodput, Mbit/s", &|t| t.goodput_bps / 1e6),
        plot("mean RTT, ms", &|t| t.rtt_mean_s * 1e3),
    ]
}

/// The line style for an engine.
pub fn origin(engine: &str) -> Origin {
    match engine {
        "theory" => Origin::Theory,
        "lab" => Origin::Lab,
        _ => Origin::Sim,
    }
}
