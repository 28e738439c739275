//! Throughput gained per megabyte of socket buffer, by sizing, with many transfers on one host.

use sweetspot_scenario::{Engine, Outcome, Scenario};
use sweetspot_sizing::Sizing;
use sweetspot_units::{Bytes, Volume};

use super::super::figure::{Figure, Stage};
use super::super::scenarios::{DRS_MEMORY, DRS_MEMORY_LAB, seeded};
use super::ENTRY_MEMORY;
use sweetspot_experiment::StudyError;
use sweetspot_experiment::plot::{Origin, Table};
use sweetspot_experiment::run::{run_all, with_sizing};
use sweetspot_statistics as statistics;

const HEADS: [&str; 7] = [
    "sizing",
    "goodput, Mbit/s",
    "windows, MB",
    "Mbit/s per MB",
    "fairness (Jain)",
    "loss, %",
    "queue, ms",
];

/// The paper's 64 kB, and a window that a single transfer would need.
const FIXED: [Sizing; 2] = [
    Sizing::Fixed(Volume::Bytes(Bytes::new(65_536))),
    Sizing::Fixed(Volume::Bytes(Bytes::new(12_500_000))),
];

/// The memory pool shared by Semke's senders: C T_m plus the queue.
const POOL: Bytes = Bytes::new(15_500_000);

/// Five hundred transfers with seven ways of sizing their windows.
pub(super) fn table(stage: &Stage<'_>) -> Result<Figure, StudyError> {
    let seeds = stage.precision.seeds(1, 4);
    let mut figure = ENTRY_MEMORY.figure(format!(
        "`{}`: 500 transfers of one host over 1 Gbit/s and 100 ms. *Windows* is the sum of the \
         windows that the receivers advertise at the end, the memory that the host has promised; for Semke's senders \
         (`send_pool`), it is the pool. Seeds: {seeds}. Jain's index is 1 if all get the same. The paper states the principle and prints no number.",
        DRS_MEMORY.file
    ));
    let Some(engine) = stage.sim else { return Ok(figure) };
    let base = DRS_MEMORY.with(&[])?;
    let sizings = FIXED.into_iter().chain([
        Sizing::Kernel,
        Sizing::RightSizing,
        Sizing::Sobas,
        Sizing::SobasLive,
    ]);
    let mut cases: Vec<(String, Scenario)> =
        sizings.map(|sizing| (sizing.to_string(), with_all(&base, sizing))).collect();
    let pooled = Scenario { send_pool: Some(POOL), ..with_all(&base, Sizing::Max) };
    cases.push(("Semke's pool".to_owned(), pooled));
    let all = |(_, scenario): &(String, Scenario)| seeded(scenario, seeds);
    let runs: Vec<Scenario> = cases.iter().flat_map(all).collect();
    let outcomes = run_all(engine, &runs, stage.workers)?;
    let mut table = Table::new("", &HEADS);
    for ((name, scenario), outcomes) in cases.iter().zip(outcomes.chunks(seeds as usize)) {
        table.rows.push(row(name, scenario.send_pool, outcomes));
    }
    figure.tables.push(table);
    if let Some(lab) = stage.lab {
        let (about, table) = in_the_lab(stage, engine, lab)?;
        figure.about += &about;
        figure.tables.push(table);
    }
    Ok(figure)
}

const LAB_HEADS: [&str; 10] = [
    "sizing",
    "engine",
    "goodput, Mbit/s",
    "windows, MB",
    "Mbit/s per MB",
    "fairness (Jain)",
    "loss, %",
    "SO_RCVBUF (rb), MB",
    "Mbit/s per MB",
    "held (r), MB",
];

/// A tenth of the transfers on this host's kernel, beside a simulation of the same. Memory is as accounted
/// by the kernel.
fn in_the_lab(
    stage: &Stage<'_>,
    sim: &(dyn Engine + Sync),
    lab: &(dyn Engine + Sync),
) -> Result<(String, Table), StudyError> {
    let base = DRS_MEMORY_LAB.with(&[])?;
    let alone = Sizing::Fixed(Volume::Bytes(base.path.bdp()));
    let sizings = [FIXED[0], alone, Sizing::Kernel, Sizing::RightSizing, Sizing::Sobas];
    let seeds = stage.precision.seeds(1, 4);
    let scenarios: Vec<Scenario> = sizings.map(|sizing| with_all(&base, sizing)).into();
    let real = run_all(lab, &scenarios, stage.workers_of(Origin::Lab))?;
    let mut table = Table::new("A tenth of it, simulated and on this kernel", &LAB_HEADS);
    for ((sizing, scenario), real) in sizings.iter().zip(&scenarios).zip(&real) {
        let finished = run_all(sim, &seeded(scenario, seeds), stage.workers)?;
        table.rows.push(lab_row(*sizing, Origin::Sim, &finished));
        table.rows.push(lab_row(*sizing, Origin::Lab, core::slice::from_ref(real)));
    }
    let about = format!(
        " *In the lab*: `{}`, {} transfers over {} and {}, which is what a kernel and an emulator can carry here, one run \
         each. `rb` and `r` are ss(8)'s `skmem` of the receiving sockets, summed, means over the measured time: what the \
         kernel lets them hold, bookkeeping included, and what they held. A sizing's limit is a clamp on what is advertised; \
         `rb` is the kernel's own and grows beneath it.",
        DRS_MEMORY_LAB.file,
        base.transfers.len(),
        base.path.narrow().rate,
        base.path.rtt,
    );
    Ok((about, table))
}

fn lab_row(sizing: Sizing, origin: Origin, outcomes: &[Outcome]) -> Vec<String> {
    let mut cells = row(&sizing.to_string(), None, outcomes);
    let goodput = mean_of(outcomes, &goodput_mbit);
    cells.insert(1, origin.name().to_owned());
    // Removes the queue: the lab's table has the kernel's memory in its place.
    cells.pop();
    let memory = outcomes.first().and_then(|outcome| outcome.socket_memory);
    cells.extend(match memory {
        Some(memory) => {
            let max = memory.receive_buffer_bytes / 1e6;
            [
                format!("{max:.1}"),
                format!("{:.1}", goodput / max),
                format!("{:.2}", memory.received_bytes / 1e6),
            ]
        }
        None => Default::default(),
    });
    cells
}

fn mean_of(outcomes: &[Outcome], of: &dyn Fn(&Outcome) -> f64) -> f64 {
    let values: Vec<f64> = outcomes.iter().map(of).collect();
    statistics::mean(&values).unwrap_or_default()
}

fn goodput_mbit(outcome: &Outcome) -> f64 {
    outcome.transfers.iter().map(|t| t.goodput_bps).sum::<f64>() / 1e6
}

/// The scenario with the same sizing for every transfer.
fn with_all(scenario: &Scenario, sizing: Sizing) -> Scenario {
    let mut scenario = with_sizing(scenario, sizing);
    for transfer in &mut scenario.transfers {
        transfer.sizing = sizing;
    }
    scenario
}

fn row(name: &str, pool: Option<Bytes>, outcomes: &[Outcome]) -> Vec<String> {
    let mean = |of: &dyn Fn(&Outcome) -> f64| mean_of(outcomes, of);
    let goodput = mean(&goodput_mbit);
    let windows = mean(&|outcome| {
        outcome.transfers.iter().map(|t| t.window_final_bytes as f64).sum::<f64>() / 1e6
    });
    let windows = pool.map_or(windows, |pool| pool.as_f64() / 1e6);
    vec![
        name.to_owned(),
        format!("{goodput:.0}"),
        format!("{windows:.1}"),
        format!("{:.1}", goodput / windows),
        format!("{:.2}", mean(&jain)),
        format!("{:.2}", mean(&|outcome| outcome.bottleneck.loss_rate * 100.0)),
        format!("{:.1}", mean(&|outcome| outcome.bottleneck.queue_delay_mean_s * 1e3)),
    ]
}

/// Jain's index of fairness: (sum of rates)^2 / (n x sum of their squares).
fn jain(outcome: &Outcome) -> f64 {
    let rates = outcome.transfers.iter().map(|transfer| transfer.goodput_bps);
    let (sum, squares) =
        rates.fold((0.0, 0.0), |(sum, squares), rate| (sum + rate, squares + rate * rate));
    sum * sum / (outcome.transfers.len() as f64 * squares)
}

#[cfg(test)]
mod tests {
    use sweetspot_scenario::NoRecorder;
    use sweetspot_sim::Simulator;

    use super::*;

    #[test]
    fn each_megabyte_of_a_limiting_window_yields_a_megabyte_per_rtt() {
        // Two windows of 10 kB over 100 ms are 1.6 Mbit/s: 80 Mbit/s per MB, shared equally.
        let text = "duration = '5s'\nwarmup = '1s'\n[path]\nrate = '1Gbit/s'\nrtt = '100ms'\nbuffer = '99pkt'\n\
                    [[transfer]]\ncount = 2\nsizing = 'fixed:10kB'";
        let scenario = Scenario::parse(text).expect("it is a scenario");
        let outcome = Simulator.run(&scenario, &mut NoRecorder).expect("it can be run");
        let row = row("fixed", None, &[outcome]);
        let worth: f64 = row[3].parse().expect("it is a number");
        assert!((worth - 80.0).abs() < 1.0, "{row:?}");
        assert_eq!(row[4], "1.00");
    }
}
