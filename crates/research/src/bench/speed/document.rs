use std::fmt::Write;

use super::{RunCosts, Scheduler, Sharing, SpeedBenchmark, SpeedCase};
use sweetspot_research::page_abstract::Abstract;
use sweetspot_statistics::median;

const ABSTRACT: Abstract<'_> = Abstract {
    question: "how fast is the simulator, compared with ns-2 and ns-3?",
    method: "the same cases in turn, on one core, each in a separate process; medians.",
    result: "the table of targets has each ratio and says whether it meets its target.",
    limitation: "one machine; neighbours on a shared host can change a ratio.",
    command: "`make bench-sim`",
};

/// Machine, date and command of the measurement.
pub struct MeasurementInfo {
    pub command: String,
    pub machine: String,
    pub date: String,
}

/// All results of the benchmark.
pub struct SpeedResults {
    elephants: (RunCosts, Result<RunCosts, String>),
    mice: (RunCosts, Result<RunCosts, String>),
    sack: RunCosts,
    /// Each of [`AT_NS3`] in ns-3, for [`SpeedCase::ns3_seconds`].
    ns3: Vec<(SpeedCase, Result<RunCosts, String>)>,
    /// [`RUNS`] runs on one worker, on two, and in two processes.
    sharing: Vec<Sharing>,
    /// The cost per packet against the number of flows.
    curve: Vec<(u64, RunCosts)>,
    /// Each of [`COMPARED`] on each of [`SCHEDULERS`].
    schedulers: Vec<(SpeedCase, Vec<RunCosts>)>,
}

const FLOW_COUNTS: [u64; 5] = [10, 100, 1_000, 10_000, 100_000];
const COMPARED: [SpeedCase; 4] =
    [SpeedCase::Sack, SpeedCase::Elephants, SpeedCase::Mice, SpeedCase::Flows(10_000)];
const AT_NS3: [SpeedCase; 3] = [SpeedCase::Elephants, SpeedCase::Mice, SpeedCase::Sack];
const SCHEDULERS: [Scheduler; 3] = [Scheduler::Wheel, Scheduler::Heap, Scheduler::BinaryHeap];
/// Number of runs in a sweep.
const RUNS: u64 = 8;

impl SpeedResults {
    /// Measures all cases.
    pub fn of(benchmark: &SpeedBenchmark<'_>) -> Result<SpeedResults, String> {
        let usual = |case| -> Result<RunCosts, String> {
            Ok(benchmark.schedulers(case, &[Scheduler::Usual])?.swap_remove(0))
        };
        Ok(SpeedResults {
            elephants: benchmark.against_ns2(SpeedCase::Elephants)?,
            mice: benchmark.against_ns2(SpeedCase::Mice)?,
            sack: usual(SpeedCase::Sack)?,
            ns3: AT_NS3.map(|case| (case, benchmark.ns3(case))).into(),
            sharing: benchmark.sharing(RUNS)?,
            curve: FLOW_COUNTS
                .into_iter()
                .map(|flows| Ok((flows, usual(SpeedCase::Flows(flows))?)))
                .collect::<Result<_, String>>()?,
            schedulers: COMPARED
                .into_iter()
                .map(|case| Ok((case, benchmark.schedulers(case, &SCHEDULERS)?)))
                .collect::<Result<_, String>>()?,
        })
    }
}

/// The document, with the hand-written notes of the previous version.
pub fn document(header: &MeasurementInfo, findings: &SpeedResults, notes: &str) -> String {
    let mut text = format!(
        "# How fast the simulator is\n\n{ABSTRACT}\
         One core, each run in a separate process, this simulator and ns-2 in turn; medians. \
         Written by `make bench-sim`.\n\n\
         | | |\n|---|---|\n| command | `{}` |\n| program | sweetspot {} |\n\
         | ns-2 | {} |\n| ns-3 | {} |\n| measured on | {}, {} |\n\n",
        header.command,
        env!("CARGO_PKG_VERSION"),
        version_of("ns2"),
        ns3(findings),
        header.machine,
        header.date,
    );
    targets(&mut text, findings);
    text += notes;
    beside_peers(&mut text, findings);
    curve(&mut text, findings);
    schedulers(&mut text, findings);
    text
}

/// The installed version, according to the package manager.
fn version_of(package: &str) -> String {
    let query =
        std::process::Command::new("dpkg-query").args(["-W", "-f", "${Version}", package]).output();
    match query {
        Ok(output) if output.status.success() => {
            String::from_utf8_lossy(&output.stdout).into_owned()
        }
        _ => "not installed by the package manager".to_owned(),
    }
}

/// The ns-3 used, or why there is none.
fn ns3(f: &SpeedResults) -> String {
    match f.ns3.iter().find_map(|(_, costs)| costs.as_ref().err()) {
        Some(why) => format!("not measured: {why}"),
        None => format!("{}, the library as packaged", version_of("libns3-dev")),
    }
}

fn targets(text: &mut String, f: &SpeedResults) {
    text.push_str("## Targets\n\n| target | measured | |\n|---|---|---|\n");
    let mut row = |target: &str, measured: String, met: Option<bool>| {
        let outcome = match met {
            Some(true) => "met",
            Some(false) => "**missed**",
            None => "not measured",
        };
        let _ = writeln!(text, "| {target} | {measured} | {outcome} |");
    };
    for (name, case, min) in
        [("elephants", &f.elephants, 8.0), ("2000 mice each way", &f.mice, 50.0)]
    {
        let target = format!("{name}: {min} times ns-2");
        match speedup(case) {
            Ok(times) => row(&target, format!("{times:.1} times"), Some(times >= min)),
            Err(why) => row(&target, why, None),
        }
    }
    // Every data packet causes an ACK.
    let data = f.sack.packets_per_second() / 2.0;
    let measured = format!("{:.1} million/s", data / 1e6);
    row(
        "one SACK flow, 1 Gbit/s: 9 million data packets per wall second",
        measured,
        Some(data >= 9e6),
    );
    let (mouse, elephant) = (f.mice.0.nanos_per_packet(), f.elephants.0.nanos_per_packet());
    let measured = format!("{mouse:.0} ns against {elephant:.0} ns");
    row(
        "mice: no slower per packet than twice the elephants",
        measured,
        Some(mouse <= 2.0 * elephant),
    );
    let peak = f.mice.0.peak_mb();
    row("mice: memory below 200 MB", format!("{peak:.1} MB"), Some(peak < 200.0));
    let of = |time: fn(&Sharing) -> f64| median(f.sharing.iter().map(time)).unwrap_or(f64::NAN);
    let two = of(|s| s.two);
    // Ratios per round, because the machine's speed drifts.
    for (target, share, beside) in [
        ("95 % of twice one worker's speed", of(|s| s.one / s.two / 2.0), of(|s| s.one)),
        ("95 % of two processes side by side", of(|s| s.processes / s.two), of(|s| s.processes)),
    ] {
        let target = format!("{RUNS} runs on two workers: {target}");
        let measured = format!("{:.1} % ({two:.2} s, {beside:.2} s)", share * 100.0);
        row(&target, measured, Some(share >= 0.95));
    }
}

fn speedup((ours, theirs): &(RunCosts, Result<RunCosts, String>)) -> Result<f64, String> {
    Ok(ours.packets_per_second() / theirs.as_ref().map_err(String::clone)?.packets_per_second())
}

fn beside_peers(text: &mut String, f: &SpeedResults) {
    text.push_str(
        "\n## Compared with ns-2 and ns-3\n\n\
         The same windows, round trips, timers and buffers (bench/ns2/dumbbell.tcl, and \
         bench/ns3/dumbbell.cc, which says what differs); packets that the link between the routers \
         forwarded, both ways. ns-3 runs less of the same.\n\n\
         | case | program | packets | wall s (range) | million packets/s | ns per packet | memory MB |\n\
         |---|---|--:|--:|--:|--:|--:|\n",
    );
    let mut row = |case: &str, program: &str, costs: &RunCosts| {
        let (min, max) = costs.range_s();
        let _ = writeln!(
            text,
            "| {case} | {program} | {:.0} | {:.3} ({min:.3}-{max:.3}) | {:.2} | {:.0} | {:.1} |",
            costs.0.first().map_or(0.0, |cost| cost.packets),
            costs.wall_s(),
            costs.packets_per_second() / 1e6,
            costs.nanos_per_packet(),
            costs.peak_mb(),
        );
    };
    for (name, (ours, theirs)) in
        [("elephants, 215 s", &f.elephants), ("2000 mice each way, 115 s", &f.mice)]
    {
        row(name, "sweetspot", ours);
        if let Ok(theirs) = theirs {
            row(name, "ns-2", theirs);
        }
    }
    row("one SACK flow, 40 s", "sweetspot", &f.sack);
    for (case, costs) in &f.ns3 {
        if let Ok(costs) = costs {
            row(&format!("{case}, {} s", case.ns3_seconds()), "ns-3", costs);
        }
    }
}

fn curve(text: &mut String, f: &SpeedResults) {
    text.push_str(
        "\n## The cost per packet against the number of flows\n\n\
         bench/scenarios/flows.toml: each flow has a window of ten packets and its share of the link.\n\n\
         | flows | packets | wall s | ns per packet | memory MB |\n|--:|--:|--:|--:|--:|\n",
    );
    for (flows, costs) in &f.curve {
        let _ = writeln!(
            text,
            "| {flows} | {:.0} | {:.3} | {:.0} | {:.1} |",
            costs.0.first().map_or(0.0, |cost| cost.packets),
            costs.wall_s(),
            costs.nanos_per_packet(),
            costs.peak_mb(),
        );
    }
}

fn schedulers(text: &mut String, f: &SpeedResults) {
    text.push_str(
        "\n## Schedulers\n\n\
         The same outcome on each, to the byte; ns per packet. The simulator uses the wheel if there is cross \
         traffic, otherwise the heap.\n\n\
         | case | timing wheel | heap with four children | the standard library's heap |\n\
         |---|--:|--:|--:|\n",
    );
    for (case, costs) in &f.schedulers {
        let costs: Vec<String> =
            costs.iter().map(|costs| format!("{:.0}", costs.nanos_per_packet())).collect();
        let _ = writeln!(text, "| {case} | {} |", costs.join(" | "));
    }
}
