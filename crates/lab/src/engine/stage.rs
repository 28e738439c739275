//! One run: the path, the traffic nodes at its ends, the measured transfers and their samples.

use std::path::Path;
use std::thread::{self, ScopedJoinHandle};

use sweetspot_emulator::{DirectionSample, Emulation, PathSample};
use sweetspot_linux::{clock, process};
use sweetspot_scenario::{Outcome, Scenario};
use sweetspot_sizing::KnownPath;
use sweetspot_units::{Bytes, Duration, Time};

use super::bottleneck::{Bottleneck, waiting};
use super::memory::MemoryWatch;
use super::target::{MeasuredTransfer, TransferTrace};
use super::{LabRun, LabSeriesRow, NAME, outcome};
use crate::error::Doing;
use crate::plan::LabPlan;
use crate::traffic::{LoadTotals, NodeConfig, TrafficNode};
use crate::{Certificate, LabError, settings};

/// Time from the end of the preparations to the start of the run, enough for every thread to be ready.
const START_DELAY: Duration = Duration::from_millis(100);
/// Interval between two readings of the emulator's samples.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(100);

struct RunTraces {
    samples: Vec<(Duration, PathSample)>,
    totals: Vec<LoadTotals>,
    targets: Vec<TransferTrace>,
    memory: MemoryWatch,
}

/// Runs `plan`, made from `scenario`, inside the namespaces.
pub(super) fn run(
    scenario: &Scenario,
    plan: &LabPlan,
    scratch: &Path,
    progress: &mut dyn FnMut(Duration),
) -> Result<LabRun, LabError> {
    process::raise_descriptor_limit().doing("raise the limit on open files")?;
    let emulation = Emulation::start_chain(&plan.chain.hops, &plan.host_pairs)?;
    for side in [emulation.near(), emulation.far()] {
        for (name, value) in &plan.settings {
            settings::set(side, name, value)?;
        }
    }
    let known = KnownPath::new(scenario.path.narrow().rate, scenario.path.rtt);
    let target = |(number, target)| {
        MeasuredTransfer::prepare(target, number, known, emulation.far(), scratch)
    };
    let targets: Vec<MeasuredTransfer<'_>> =
        plan.targets.iter().enumerate().map(target).collect::<Result<_, _>>()?;
    let traces = recorded(plan, &emulation, &targets, progress)?;
    let sizes: Vec<_> = targets.iter().map(MeasuredTransfer::size).collect();
    let certified = emulation.finish()?;

    let measured = (plan.begin, plan.end);
    let first = plan.targets.iter().map(|target| target.start).min().unwrap_or(plan.begin);
    let bottleneck = Bottleneck { samples: &traces.samples, path: &scenario.path };
    // The receiver accepts one and a half RTTs after the sender's SYN.
    let handshake = scenario.path.rtt + scenario.path.rtt / 2;
    let transfers = plan.targets.iter().zip(&traces.targets).zip(sizes);
    let cross = plan.loads.iter().zip(&traces.totals);
    Ok(LabRun {
        outcome: Outcome {
            scenario: scenario.title.clone(),
            engine: NAME.to_owned(),
            seed: scenario.seed,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            transfers: transfers
                .map(|((target, trace), size)| {
                    outcome::transfer(target, trace, size, measured, handshake)
                })
                .collect(),
            cross: cross
                .map(|(load, totals)| outcome::cross(load, totals, plan.end - plan.begin))
                .collect(),
            bottleneck: bottleneck.outcome(measured, first),
            events: 0,
            packets_forwarded: certified.up.packets_out + certified.down.packets_out,
            derivation: None,
            socket_memory: traces.memory.outcome(measured),
            wall_s: 0.0,
        },
        certificate: Certificate::from(&certified),
        series: series(&traces),
    })
}

fn recorded(
    plan: &LabPlan,
    emulation: &Emulation,
    targets: &[MeasuredTransfer<'_>],
    progress: &mut dyn FnMut(Duration),
) -> Result<RunTraces, LabError> {
    let (near, far) = (emulation.near(), emulation.far());
    let ends = [((near, far), 0), ((far, near), 1)];
    let mut nodes = Vec::new();
    for (sides, side) in ends {
        let part =
            NodeConfig { side, sends: side == 0 || plan.mirror, takes: side == 1 || plan.mirror };
        let open = || TrafficNode::open(plan, sides, part);
        nodes.push(sides.0.run(open).and_then(|opened| opened).doing("set up cross traffic")?);
    }
    let mut memory = MemoryWatch::open(emulation, plan).doing("read sockets' memory")?;
    let zero = clock::now() + START_DELAY;
    emulation.vary_chain(zero, plan.chain.up.clone(), plan.chain.down.clone());
    let end = zero + plan.end;
    thread::scope(|scope| {
        let nodes: Vec<_> =
            nodes.into_iter().map(|node| scope.spawn(move || node.run(zero))).collect();
        let receivers: Vec<_> =
            targets.iter().map(|target| scope.spawn(move || target.receive(far))).collect();
        let senders: Vec<_> = targets
            .iter()
            .map(|target| scope.spawn(move || target.send(near, zero, end)))
            .collect();
        let samples = watch(emulation, &mut memory, (zero, end), progress);
        targets.iter().for_each(|target| target.stop(far));
        let mut totals = vec![LoadTotals::default(); plan.loads.len()];
        for (side, node) in nodes.into_iter().enumerate() {
            let counted = joined(node)?.doing("run cross traffic")?;
            for ((sum, more), load) in totals.iter_mut().zip(counted).zip(&plan.loads) {
                // A datagram is counted at its receiver, a segment at its sender.
                let is_reverse = (side == 1) != load.is_udp();
                let delivered_reverse = if is_reverse { more.delivered } else { Bytes::ZERO };
                *sum += LoadTotals { delivered_reverse, ..more };
            }
        }
        let traces = senders.into_iter().map(|sender| joined(sender)?);
        let targets = traces.collect::<Result<Vec<_>, _>>()?;
        for receiver in receivers {
            joined(receiver)??;
        }
        Ok(RunTraces { samples: samples?, totals, targets, memory })
    })
}

/// Collects the emulator's and the sockets' memory samples from `zero` to `end`; their times count from `zero`.
fn watch(
    emulation: &Emulation,
    memory: &mut MemoryWatch,
    (zero, end): (Time, Time),
    progress: &mut dyn FnMut(Duration),
) -> Result<Vec<(Duration, PathSample)>, LabError> {
    let mut samples = Vec::new();
    while clock::now() < end {
        clock::sleep_until((clock::now() + SAMPLE_INTERVAL).min(end));
        let new = emulation.observe().into_iter().filter_map(|sample| {
            let at = emulation.started() + sample.at;
            (at >= zero).then(|| (at.since(zero), sample))
        });
        samples.extend(new);
        if clock::now() >= zero {
            let passed = clock::now().since(zero);
            memory.sample(passed).doing("read sockets' memory")?;
            progress(passed);
        }
    }
    Ok(samples)
}

fn joined<T>(handle: ScopedJoinHandle<'_, T>) -> Result<T, LabError> {
    handle.join().map_err(|_| LabError::Inside("lab: a thread of the run panicked".to_owned()))
}

fn series(traces: &RunTraces) -> Vec<LabSeriesRow> {
    let mut all = Vec::new();
    for (transfer, trace) in traces.targets.iter().enumerate() {
        for row in &trace.rows {
            let at_s = trace.began.as_secs_f64() + row.t_s;
            let seen = traces.samples.partition_point(|(at, _)| at.as_secs_f64() <= at_s);
            let queue = seen.checked_sub(1).map(|i| traces.samples[i].1.up);
            all.push(LabSeriesRow {
                at_s,
                transfer,
                cwnd_bytes: row.cwnd_bytes.unwrap_or(0),
                window_bytes: row.window_bytes.unwrap_or(0),
                acked_bytes: row.bytes,
                queue_packets: queue.as_ref().map_or(0, waiting),
                dropped_packets: queue.as_ref().map_or(0, DirectionSample::dropped),
                carried_bytes: queue.map_or(0, |flow| flow.delivered.get()),
            });
        }
    }
    all.sort_by(|a, b| a.at_s.total_cmp(&b.at_s));
    all
}
