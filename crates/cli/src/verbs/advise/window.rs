use std::path::Path;
use std::process::ExitCode;

use clap::ValueEnum;
use sweetspot_advise::window::{
    COMMON_MTU, CrossShare, LossResponse, WindowAdvice, WindowQuestion, advise,
};
use sweetspot_advise::{AdviceError, Kernel};
use sweetspot_experiment::Workers;
use sweetspot_experiment::window::{SEEDS, packets, runs, try_windows};
use sweetspot_path::{DirectionSpec, PathError, PathSpec, QueueDiscipline};
use sweetspot_scenario::Way;
use sweetspot_sim::Simulator;
use sweetspot_units::{BufferSize, Bytes, Duration, Probability, Rate};

use super::{Detail, OutputOptions, Verify};
use crate::verbs::Ending;
use sweetspot_program::path_option;
use sweetspot_program::print;
use sweetspot_program::progress::{self, CountingEngine};
use sweetspot_program::scenario_file::Parallel;
use sweetspot_program::usage_error::{self, UsageError};
use sweetspot_program::values;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  sweetspot advise window --rate 10Gbit/s --rtt 80ms
  sweetspot advise window --path path.toml
  sweetspot advise window --rate 1Gbit/s --rtt 40ms --buffer 500kB \\
      --cross mice:30% --explain")]
pub struct AdviseWindowArguments {
    /// Capacity of the bottleneck link
    #[arg(long, allow_hyphen_values = true, value_name = "10Gbit/s")]
    rate: Option<Rate>,
    /// Round-trip time without queues
    #[arg(long, allow_hyphen_values = true, value_name = "80ms")]
    rtt: Option<Duration>,
    /// Take rate, RTT with jitter, buffer and loss from a path, written as for `emulate`, or from a scenario: a file, such as `measure
    /// --scenario` writes, or a name, such as @elephants. Other options override it
    #[arg(long, value_name = "SPEC|@NAME|FILE.toml")]
    path: Option<String>,
    /// Direction of the data on --path: up (from near to far) or down [default: up]
    #[arg(
        long,
        value_enum,
        requires = "path",
        value_name = "up|down",
        hide_possible_values = true
    )]
    direction: Option<Toward>,
    /// Buffer of the bottleneck, as a size or as a multiple of rate x RTT (0.5bdp)
    #[arg(long, allow_hyphen_values = true, value_name = "12MB")]
    buffer: Option<BufferSize>,
    /// Cross traffic and its share of the capacity: udp, elephants (long flows limited by their windows) or mice (short flows)
    #[arg(long, value_name = "udp:30%")]
    cross: Option<CrossShare>,
    /// Loss rate: random loss, or the loss of an already congested path
    #[arg(long, allow_hyphen_values = true, value_name = "1e-5")]
    loss: Option<Probability>,
    /// Congestion control of the sender, which decides what loss allows: cubic or reno
    #[arg(long, value_name = "NAME", default_value_t, hide_possible_values = true)]
    #[arg(value_parser = values::words::<LossResponse>(&["cubic", "reno"]))]
    congestion: LossResponse,
    /// MTU of the path [default: 1500B]
    #[arg(long, allow_hyphen_values = true, value_name = "1500B", value_parser = super::bytes)]
    mtu: Option<Bytes>,
    /// Kernel version of the receiver, if it differs from this one
    #[arg(long, value_name = "6.18")]
    kernel: Option<Kernel>,
    /// Whether to simulate windows if no closed form gives the best one (cross traffic and a known buffer) [default: sim
    /// up to 300 million packets, about a minute on two cores]
    #[arg(long, value_name = "sim|none")]
    verify: Option<Verify>,
    #[command(flatten)]
    parallel: Parallel,
    #[command(flatten)]
    output: OutputOptions,
}

/// A direction of a path: forward or backward in a scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Toward {
    Up,
    Down,
}

const LEFT_OUT: &str =
    "the scenario's cross traffic is left out; give its share, such as --cross udp:30%";

/// The warning about properties of a path that no formula here knows.
fn left_out(direction: &DirectionSpec) -> Option<String> {
    let properties = [
        (direction.queue != QueueDiscipline::DropTail, "its queue discipline counts as drop-tail"),
        (direction.policer.is_some(), "its policer counts as a link of that rate"),
        (direction.loss_burst > 1, "its losses count as single ones"),
        (direction.reorder > Probability::ZERO, "its reordering is left out"),
    ];
    let all: Vec<&str> =
        properties.into_iter().filter_map(|(is_set, words)| is_set.then_some(words)).collect();
    (!all.is_empty()).then(|| format!("the formulas simplify this path: {}", all.join("; ")))
}

/// The time that jitter and aggregation add to the RTT. Packets wait behind one that is delayed longest, unless they overtake it.
fn variation(direction: &DirectionSpec) -> Duration {
    let share = if direction.jitter_reorders { 0.5 } else { 1.0 };
    direction.jitter.scaled(share) + direction.aggregation
}

/// The bottleneck in the direction of the data, and the RTT.
#[derive(Debug, Clone, Copy)]
struct PathFacts {
    direction: DirectionSpec,
    /// Without queues, but with jitter and aggregation.
    rtt: Duration,
    mtu: Bytes,
    /// Whether a scenario has cross traffic, which a path does not.
    is_shared: bool,
}

/// The path as written or named, or the path of a scenario, for data in one direction.
fn read_path(text: &str, toward: Option<Toward>) -> Result<PathFacts, Box<dyn std::error::Error>> {
    let ([up, down], rtt, mtu, is_shared) = if path_option::is_scenario(text) {
        let scenario = sweetspot_program::scenario_file::read(Path::new(text), &[], None)?;
        let (path, is_shared) = (scenario.path, !scenario.cross.is_empty());
        let backward = path.hops_of(Way::Backward).iter().min_by_key(|hop| hop.lasting_rate());
        let ways = [*path.narrow(), backward.copied().unwrap_or(*path.narrow())];
        (ways, path.rtt, path.packet, is_shared)
    } else {
        let wrong = |error: PathError| UsageError::new(path_option::wrong_path(&error));
        let path: PathSpec = text.parse().map_err(wrong)?;
        ([path.up, path.down], path.rtt(), path.mtu, false)
    };
    let [rate, other] = [up, down].map(|direction| direction.lasting_rate());
    if toward.is_none() && rate != other {
        note!(
            "sweetspot: this is for data from near to far ({rate}); for the other direction ({other}), add --direction down"
        );
    }
    let varied = variation(&up) + variation(&down);
    if varied > Duration::ZERO {
        note!("sweetspot: jitter and aggregation add {varied} to the RTT of {rtt}");
    }
    let direction = if toward == Some(Toward::Down) { down } else { up };
    Ok(PathFacts { direction, rtt: rtt + varied, mtu, is_shared })
}

/// The largest simulation without --verify: half a minute at 10 million packets a second on one core (docs/results/speed.md).
/// Packets, not time, so that every machine gives the same answer.
const MAX_UNASKED_PACKETS: f64 = 300e6;

pub fn run(a: AdviseWindowArguments) -> Ending {
    let path = a.path.as_deref().map(|path| read_path(path, a.direction)).transpose()?;
    let is_left_out = a.cross.is_none() && path.is_some_and(|path| path.is_shared);
    let of_path = path.and_then(|path| left_out(&path.direction));
    let warnings: Vec<String> =
        is_left_out.then(|| LEFT_OUT.to_owned()).into_iter().chain(of_path).collect();
    for warning in &warnings {
        err!("sweetspot: {warning}");
    }
    let mtu = a.mtu.or(path.map(|path| path.mtu)).unwrap_or(COMMON_MTU);
    let rate = a.rate.or(path.map(|path| path.direction.lasting_rate()));
    let rtt = a.rtt.or(path.map(|path| path.rtt));
    let Some((rate, rtt)) = rate.zip(rtt) else {
        return Ok(usage_error::said("give --rate and --rtt, or --path; try '--help'"));
    };
    let buffer = a.buffer.map(|size| size.on(rate, rtt));
    let buffer = buffer.map(|buffer| buffer.in_bytes(mtu));
    // A scenario's buffer counts packets of the scenario.
    let buffer = buffer.or(path.map(|path| path.direction.buffer.in_bytes(path.mtu)));
    let loss = path.map(|path| path.direction.loss).filter(|loss| *loss > Probability::ZERO);
    let question = WindowQuestion {
        rate,
        rtt,
        buffer,
        cross: a.cross,
        loss: a.loss.or(loss),
        congestion: a.congestion,
        mtu,
        kernel: super::kernel(a.kernel)?,
    };
    let advice = match advise(&question) {
        // An answer, not a failure.
        Err(error @ AdviceError::NoWindowHelps { .. }) => return leave_it(a.output, &error),
        other => {
            let mut advice = other?;
            advice.warnings.extend(warnings);
            verified(advice, a.verify, a.parallel.workers(), a.output)?
        }
    };
    show(&advice, a.output)
}

fn show(advice: &WindowAdvice, output: OutputOptions) -> Ending {
    output.show(|detail, width| advice.text(detail == Detail::Explained, width), || advice.json())
}

/// The answer for a path on which no window helps.
fn leave_it(output: OutputOptions, why: &AdviceError) -> Ending {
    if output.json {
        let answer = serde_json::json!({ "recommended_bytes": null, "why": why.to_string() });
        out!("{}", serde_json::to_string_pretty(&answer)?);
    } else {
        print::wrapped(&format!("Leave the window to the kernel: {why}."), "");
    }
    Ok(ExitCode::SUCCESS)
}

/// `advice`, decided by the simulator if wanted.
fn verified(
    mut advice: WindowAdvice,
    verify: Option<Verify>,
    workers: Workers,
    output: OutputOptions,
) -> Result<WindowAdvice, Box<dyn std::error::Error>> {
    let question = advice.question;
    let Some(windows) = advice.windows_to_try().filter(|_| verify != Some(Verify::None)) else {
        return Ok(advice);
    };
    let work = packets(&question, windows.len());
    if verify.is_none() && work > MAX_UNASKED_PACKETS {
        let words = closed_form_alone(work);
        err!("sweetspot: {words}");
        advice.warnings.push(words);
        return Ok(advice);
    }
    let counting = CountingEngine::new(&Simulator);
    let total = runs(windows.len());
    let interrupted = || {
        let _ = show(&advice, output);
        let done = counting.done();
        err!("sweetspot: interrupted after {done} of {total} simulations; this is the closed form");
    };
    let recommended = (advice.recommended.window, advice.recommended.rate);
    let work = || {
        // An interruption after this line leaves the closed form.
        if let (Some(window), Some(rate)) = recommended {
            note!(
                "sweetspot: by closed form {window}, {rate}; simulating {} windows",
                windows.len()
            );
        }
        try_windows(&counting, &question, &windows, SEEDS, workers)
    };
    let tried = progress::while_it_runs(work, || counting.done(), total, interrupted);
    Ok(advice.decided_by(tried?)?)
}

/// The warning about a closed form that may recommend a window at the edge of an overflow.
fn closed_form_alone(work: f64) -> String {
    format!(
        "closed form only, as a simulation would take {:.0} million packets, more than the limit of {:.0} million (--verify sim \
         lifts it); the rate may be too high, and a slightly smaller window is safer",
        work / 1e6,
        MAX_UNASKED_PACKETS / 1e6
    )
}
