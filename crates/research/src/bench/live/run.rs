use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use serde::{Deserialize, Serialize};
use sweetspot_emulator::{Emulation, PathSample};
use sweetspot_linux::{clock, processes};
use sweetspot_statistics::{Sorted, median};
use sweetspot_units::{Bytes, Duration, Time};

use super::interactive::Interactive;
use super::peers::{PeerServer, RIVAL_PORT, client, download_of};
use super::plan::RunPlan;
use super::watch::ConnectionWatch;
use sweetspot_comparison::Program;

/// The result of a run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RunOutcome {
    /// Payload received by the receiving program over the whole run, in bit/s.
    pub goodput_bps: f64,
    /// The same for each connection.
    pub each_bps: Vec<f64>,
    /// Segments retransmitted by the sender.
    pub retransmitted: u64,
    /// Packets dropped because the buffer was full, in total.
    pub drops: u64,
    /// The part of `drops` after the first three seconds.
    pub drops_once_held: u64,
    /// Median of the bottleneck's queue after the first three seconds, in seconds.
    pub queue_s: f64,
    /// Minimum, median and 99th percentile of the interactive flow's response time after the first
    /// three seconds, in seconds.
    pub answer_s: [f64; 3],
    /// For each rate change, over the two seconds that begin 20 RTTs after it: payload in bit/s,
    /// and the median queue.
    pub after_changes: Vec<(f64, f64)>,
    /// With a competing flow: the measured flow's share of the bytes of both flows, from the time
    /// the competing flow began.
    pub share_beside_rival: Option<f64>,
    /// The second transfer, if the program makes one.
    pub second: Option<SecondTransfer>,
    /// CPU time of the tuner, as a fraction of one CPU.
    pub tuner_cpu: Option<f64>,
    /// Whether the emulation can be trusted.
    pub trust: bool,
}

/// A transfer over a path on which another has just ended.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct SecondTransfer {
    /// Payload received by the program in its first second, bit/s.
    pub first_second_bps: f64,
    /// Packets dropped because the buffer was full, since the transfer began.
    pub drops: u64,
}

/// Interval between two samples.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(50);
/// Time by which a window limit is in place, if there is one.
const SETTLING_TIME: Duration = Duration::from_secs(3);
/// The evaluated part of a second transfer.
const FIRST_SECOND: Duration = Duration::from_secs(1);
/// Length of the evaluated interval after a change.
const AFTER_CHANGE: Duration = Duration::from_secs(2);

/// Executes a run, tuned by `tuner` if the plan says so.
pub fn run_plan(
    plan: &RunPlan,
    tuner: &TunerCommand<'_>,
    scratch: &Path,
) -> Result<RunOutcome, String> {
    run_command(plan, scratch, &|emulation| {
        let bare = client(plan, emulation, scratch);
        if plan.via.is_some() { tuner.run(plan, &bare) } else { bare }
    })
}

/// Makes the near side's command for an emulation.
type NearCommand<'a> = &'a dyn Fn(&Emulation) -> Command;

/// Executes a run with this command in place of the plan's client.
pub fn run_command(
    plan: &RunPlan,
    scratch: &Path,
    command: NearCommand<'_>,
) -> Result<RunOutcome, String> {
    let emulation = Emulation::start(&plan.path).map_err(|e| e.to_string())?;
    let finished = run(plan, command, scratch, &emulation);
    let certificate = emulation.finish().map_err(|e| e.to_string())?;
    let mut outcome = finished?;
    outcome.trust = certificate.verdict.trust;
    Ok(outcome)
}

/// Measurements taken during a run.
struct RunObservations {
    started_at: Time,
    ended: Time,
    watch: ConnectionWatch,
    samples: Vec<(Time, PathSample)>,
    /// The rates printed by the client, in bytes per second.
    client_rates: Vec<f64>,
    tuner_cpu: Option<f64>,
}

/// The tuner's command line.
pub struct TunerCommand<'a> {
    /// The program to run.
    pub program: &'a Path,
    /// The file for its events.
    pub events: Option<&'a Path>,
}

fn run(
    plan: &RunPlan,
    command: NearCommand<'_>,
    scratch: &Path,
    emulation: &Emulation,
) -> Result<RunOutcome, String> {
    let server = PeerServer::start(plan, emulation.far(), scratch)?;
    let stop = AtomicBool::new(false);
    let (near, far) = (emulation.near(), emulation.far());
    let (traces, interactive) = thread::scope(|scope| {
        let asking = scope.spawn(|| Interactive::run(near, far, &stop));
        let traces = download(plan, command, emulation);
        stop.store(true, Ordering::Relaxed);
        let answered = asking.join().unwrap_or_else(|_| Err("the interactive flow".to_owned()));
        (traces, answered)
    });
    let last_error = server.stop();
    let traces = traces.map_err(|e| last_error.map_or(e.clone(), |c| format!("{e} ({c})")))?;
    Ok(sum_up(plan, &traces, &interactive?))
}

/// Runs the client for the planned time, changing the rate as planned, and takes samples.
fn download(
    plan: &RunPlan,
    command: NearCommand<'_>,
    emulation: &Emulation,
) -> Result<RunObservations, String> {
    let mut watch = ConnectionWatch::start(emulation, plan.client.sends())?;
    let start = |command: &mut Command| {
        Program::start(emulation.near(), command).map_err(|e| e.to_string())
    };
    let started_at = clock::now();
    let mut started = start(&mut command(emulation))?;
    let (mut rival, mut rival_due) = (None, plan.rival);
    let (mut samples, mut changes) = (Vec::new(), plan.changes.iter().peekable());
    let ended = started_at + plan.length;
    let mut now = started_at;
    while now < ended {
        if let Some((_, rate)) = changes.next_if(|(at, _)| started_at + *at <= now) {
            match plan.client.sends() {
                true => emulation.set_rate_up(*rate),
                false => emulation.set_rate_down(*rate),
            }
        }
        if rival_due.take_if(|at| started_at + *at <= now).is_some() {
            rival = Some(start(&mut download_of("big", RIVAL_PORT, emulation))?);
        }
        watch.sample(now)?;
        samples.extend(emulation.observe().into_iter().map(|sample| (now, sample)));
        clock::sleep_until(now + SAMPLE_INTERVAL);
        now = clock::now();
    }
    let tuner_cpu =
        plan.via.map(|_| cpu_of_tuner(started.id()).as_secs_f64() / plan.length.as_secs_f64());
    let client_rates = started.printed().iter().filter_map(|line| line.parse().ok()).collect();
    // A failed client has received nothing, which the result shows.
    drop((started, rival));
    if watch.between(started_at, now).is_empty() {
        return Err("nothing was received".to_owned());
    }
    Ok(RunObservations { started_at, ended: now, watch, samples, client_rates, tuner_cpu })
}

impl TunerCommand<'_> {
    /// The tuner's command around the client command `bare`.
    fn run(&self, plan: &RunPlan, bare: &Command) -> Command {
        let mut command = Command::new(self.program);
        command
            .args(["tune", "run", "--quiet"])
            .args(plan.via.into_iter().flat_map(|via| ["--via", via.name()]))
            .args(plan.client.sends().then_some("--send"));
        if let Some(file) = self.events {
            command.arg("--events").arg(file);
        }
        command.arg("--").arg(bare.get_program()).args(bare.get_args());
        command
    }
}

/// CPU time of the guardian and its child, the tuner; the child's children are the client command.
fn cpu_of_tuner(guardian: u32) -> Duration {
    let own = |pid: u32| processes::cpu_time(pid).unwrap_or(Duration::ZERO);
    let children = processes::family(guardian).into_iter();
    let tuner = children.filter(|pid| {
        processes::Process::read(*pid).is_ok_and(|p| p.parent == guardian && p.pid != guardian)
    });
    tuner.map(own).fold(own(guardian), |sum, time| sum + time)
}

fn sum_up(plan: &RunPlan, traces: &RunObservations, interactive: &Interactive) -> RunOutcome {
    let RunObservations { started_at, ended, watch, samples, client_rates, tuner_cpu } = traces;
    let bottleneck = |s: &PathSample| if plan.client.sends() { s.up } else { s.down };
    let span = ended.since(*started_at);
    let each: Vec<f64> = watch
        .between(*started_at, *ended)
        .into_iter()
        .map(|bytes| (bytes / span).as_f64())
        .collect();
    // With several consecutive downloads, the rates that the program printed, each from start to
    // end.
    let goodput_bps = match client_rates.len() {
        0 => each.iter().sum(),
        n => client_rates.iter().sum::<f64>() / n as f64 * 8.0,
    };
    let held = *started_at + SETTLING_TIME;
    let queue = |from: Time, to: Time| {
        let within = samples.iter().filter(|(t, _)| (from..to).contains(t));
        median(within.map(|(_, s)| bottleneck(s).queue_delay.as_secs_f64())).unwrap_or(0.0)
    };
    let drops = |at: Time| {
        samples.iter().rev().find(|(t, _)| *t <= at).map_or(0, |(_, s)| bottleneck(s).buffer_drops)
    };
    let answers: Sorted = interactive
        .answers
        .iter()
        .filter(|(answered, _)| (held..*ended).contains(answered))
        .map(|(_, took)| took.as_secs_f64())
        .collect();
    let after = |at: Duration| {
        let from = *started_at + at + plan.path.rtt() * 20;
        let bytes: Bytes = watch.between(from, from + AFTER_CHANGE).into_iter().sum();
        ((bytes / AFTER_CHANGE).as_f64(), queue(from, from + AFTER_CHANGE))
    };
    let second = watch.second_began().map(|began| {
        let bytes: Bytes = watch.between(began, began + FIRST_SECOND).into_iter().sum();
        let drops = drops(*ended) - drops(began);
        SecondTransfer { first_second_bps: (bytes / FIRST_SECOND).as_f64(), drops }
    });
    RunOutcome {
        goodput_bps,
        each_bps: each,
        retransmitted: watch.retransmitted.values().sum(),
        drops: drops(*ended),
        drops_once_held: drops(*ended) - drops(held),
        queue_s: queue(held, *ended),
        answer_s: answers.quantiles([0.0, 0.5, 0.99]).unwrap_or_default(),
        after_changes: plan.changes.iter().map(|(at, _)| after(*at)).collect(),
        share_beside_rival: plan
            .rival
            .and_then(|began| watch.share_beside_rival(*started_at + began, *ended)),
        second: second.filter(|_| plan.client.begins_again()),
        tuner_cpu: *tuner_cpu,
        trust: false,
    }
}
