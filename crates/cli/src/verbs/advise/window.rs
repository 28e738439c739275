use std::cell::Cell;
use std::process::ExitCode;

use sweetspot_advise::window::{
    COMMON_MTU, CrossShare, LossResponse, WindowAdvice, WindowQuestion, advise,
};
use sweetspot_advise::{AdviceError, Kernel};
use sweetspot_experiment::Workers;
use sweetspot_experiment::window::{packets, runs, seeds, try_windows};
use sweetspot_sim::Simulator;
use sweetspot_units::{BufferSize, Bytes, Duration, Probability, Rate};

use super::path::{DirectionChoice, left_out, read_path};
use super::{Detail, OutputOptions, Verify};
use crate::verbs::Ending;
use sweetspot_program::print;
use sweetspot_program::progress::{self, CountingEngine};
use sweetspot_program::scenario_file::Parallel;
use sweetspot_program::usage_error;
use sweetspot_program::values;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Six windows are called the bandwidth-delay product. --json lists them; so does
--explain when there is cross traffic. C is the capacity, A the available
bandwidth; T_m is the RTT without queues, T_e the RTT before the transfer.

bdp1 is C x T_m, bdp2 C x T_e, bdp3 A x T_m, and bdp4 A x T_e. bdp5 is the rate
of an unlimited window times its mean RTT. bdp6 is more than path and buffer
hold, so that the congestion window decides alone.

Examples:
  sweetspot advise window --rate 10Gbit/s --rtt 80ms
  sweetspot advise window --path path.toml
  sweetspot advise window --path 'rate=50Mbit/s rtt=40ms buffer=1bdp'
  sweetspot advise window --path @lte --direction down
  sweetspot advise window --rate 1Gbit/s --rtt 40ms --buffer 500kB \\
      --cross mice:30% --explain

`sweetspot emulate --list` lists the named paths, `sweetspot run @` the named
scenarios.

Members of --json, in bytes of payload for one of the connections:
  connections        number of connections that share the path
  recommended_bytes, half_bytes, double_bytes
                     the window, and about half and twice that
  sweet_spot_low_bytes, sweet_spot_high_bytes, bdp1_bytes to bdp6_bytes
                     other windows, as above
  expected_bps, expected_by
                     rate of these windows, and its source
  added_delay_s      queueing delay of the first and the double window
  loss_limited, congestion, closed_form_bps
                     loss limits the rate; by cubic or reno; the closed form's
                     rate if the simulation refutes it
  fills_path         if loss keeps the rate below 95 %, the remedies:
    loss_rate, connections, bbr
  simulated          the simulated windows, or null
  settings           for the kernel; granularity_bytes: the step between
                     windows with that window_scale
  warnings, assumptions, formulas, sources
docs/formats.md has all members.")]
pub struct AdviseWindowArguments {
    /// Capacity of the bottleneck link
    #[arg(long, allow_hyphen_values = true, value_name = "10Gbit/s")]
    rate: Option<Rate>,
    /// Round-trip time without queues
    #[arg(long, allow_hyphen_values = true, value_name = "80ms")]
    rtt: Option<Duration>,
    /// Take rate, RTT with jitter, buffer and loss from a path, written as for `emulate`, or from a scenario: a file, such as `measure
    /// --scenario` writes, or a name, such as @elephants. Other options override it, or add to it
    #[arg(long, value_name = "SPEC|@NAME|FILE.toml")]
    path: Option<String>,
    /// Direction of the data on --path: up (from near to far) or down [default: up, or the scenario's direction]
    #[arg(
        long,
        value_enum,
        requires = "path",
        value_name = "up|down",
        hide_possible_values = true
    )]
    direction: Option<DirectionChoice>,
    /// Buffer of the bottleneck: a size, packets (100pkt) or a multiple of rate x RTT (0.5bdp)
    #[arg(long, allow_hyphen_values = true, value_name = "12MB")]
    buffer: Option<BufferSize>,
    /// Cross traffic and its share of the capacity: udp, elephants (long flows limited by their windows) or mice (short flows)
    #[arg(long, value_name = "udp:30%")]
    cross: Option<CrossShare>,
    /// Loss rate: random loss, or the loss of an already congested path
    #[arg(long, allow_hyphen_values = true, value_name = "1e-5")]
    loss: Option<Probability>,
    /// Congestion control of the sender, which decides the rate under loss: cubic or reno [default: cubic]
    #[arg(long, value_name = "NAME", default_value_t, hide_possible_values = true)]
    #[arg(hide_default_value = true)]
    #[arg(value_parser = values::words::<LossResponse>(&["cubic", "reno"]))]
    congestion: LossResponse,
    /// MTU of the path; a number without a unit is in bytes [default: 1500B]
    #[arg(long, allow_hyphen_values = true, value_name = "1500B", value_parser = super::bytes)]
    mtu: Option<Bytes>,
    /// Kernel version of the receiver, if it differs from this one
    #[arg(long, value_name = "6.18")]
    kernel: Option<Kernel>,
    /// Whether to simulate windows if no closed form gives the best one (cross traffic or loss, and a known buffer) [default: sim
    /// up to 400 million packets, about a minute on two cores]
    #[arg(long, value_name = "sim|none")]
    verify: Option<Verify>,
    #[command(flatten)]
    parallel: Parallel,
    #[command(flatten)]
    output: OutputOptions,
}

/// The largest simulation without --verify: 40 s at 10 million packets per second on one core (docs/results/speed.md). The limit
/// is in packets, not in time, so that every machine gives the same answer.
const MAX_UNASKED_PACKETS: f64 = 400e6;

pub fn run(a: AdviseWindowArguments) -> Ending {
    let given = [
        ("rate", a.rate.map(|rate| format!("{}bit/s", rate.bits_per_second()))),
        ("rtt", a.rtt.map(|rtt| format!("{}us", rtt.as_secs_f64() * 1e6))),
        // Any size: the option overrides it.
        ("buffer", a.buffer.map(|_| "1bdp".to_owned())),
    ];
    let given: Vec<_> = given.into_iter().filter_map(|(key, value)| Some((key, value?))).collect();
    let path = a.path.as_deref().map(|path| read_path(path, a.direction, &given)).transpose()?;
    let cross = path.as_ref().and_then(|path| path.cross.clone()).filter(|_| a.cross.is_none());
    let of_path = path.as_ref().and_then(|path| left_out(&path.direction));
    let warnings: Vec<String> = cross.into_iter().chain(of_path).collect();
    for warning in &warnings {
        err!("sweetspot: {warning}");
    }
    let mtu = a.mtu.or(path.as_ref().map(|path| path.mtu)).unwrap_or(COMMON_MTU);
    let rate = a.rate.or(path.as_ref().map(|path| path.direction.lasting_rate()));
    let rtt = a.rtt.or(path.as_ref().map(|path| path.rtt));
    let Some((rate, rtt)) = rate.zip(rtt) else {
        return Ok(usage_error::reject("give --rate and --rtt, or --path; try '--help'"));
    };
    let buffer = a.buffer.map(|size| size.on(rate, rtt));
    let buffer = buffer.map(|buffer| buffer.in_bytes(mtu));
    // A scenario's buffer counts packets of the scenario's size.
    let buffer = buffer.or(path.as_ref().map(|path| path.direction.buffer.in_bytes(path.mtu)));
    let loss =
        path.as_ref().map(|path| path.direction.loss).filter(|loss| *loss > Probability::ZERO);
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
        // This is an answer, not a failure.
        Err(error @ AdviceError::NoWindowHelps { .. }) => return print_no_advice(a.output, &error),
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

/// Prints the answer for a path on which no window helps.
fn print_no_advice(output: OutputOptions, why: &AdviceError) -> Ending {
    if output.json {
        let answer = serde_json::json!({ "recommended_bytes": null, "why": why.to_string() });
        out!("{}", serde_json::to_string_pretty(&answer)?);
    } else {
        print::wrapped(&format!("Leave the window to the kernel: {why}."), "");
    }
    Ok(ExitCode::SUCCESS)
}

/// `advice`, decided by a simulation if wanted.
fn verified(
    mut advice: WindowAdvice,
    verify: Option<Verify>,
    workers: Workers,
    output: OutputOptions,
) -> Result<WindowAdvice, Box<dyn std::error::Error>> {
    let question = advice.question;
    if let Some(why) = advice.untried().filter(|_| verify == Some(Verify::Sim)) {
        warn(&mut advice, format!("--verify sim has no effect: {why}"));
    }
    let Some(windows) = advice.windows_to_try().filter(|_| verify != Some(Verify::None)) else {
        return Ok(advice);
    };
    let work = packets(&question, windows.len());
    if verify.is_none() && work > MAX_UNASKED_PACKETS {
        warn(&mut advice, closed_form_alone(work, question.cross.is_some()));
        return Ok(advice);
    }
    let counting = CountingEngine::new(&Simulator);
    let total = runs(&question, windows.len());
    let interrupted = || {
        let _ = show(&WindowAdvice { is_interrupted: true, ..advice.clone() }, output);
        let done = counting.done();
        err!("sweetspot: interrupted after {done} of {total} simulations; this is the closed form");
    };
    // Printed before the first progress bar, so that an interruption still leaves the closed form.
    let announcement = Cell::new(advice.recommended.window.zip(advice.recommended.rate));
    let done = || {
        if let Some((window, rate)) = announcement.take() {
            note!(
                "sweetspot: the closed form's best: {window}, {rate}; simulating {} windows",
                windows.len()
            );
        }
        counting.done()
    };
    let seeds = seeds(&question, windows.len());
    let work = || try_windows(&counting, &question, &windows, seeds.clone(), workers);
    let tried = progress::run_with_progress(work, done, total, interrupted);
    let known = advice.warnings.len();
    let advice = advice.decided_by(tried?)?;
    for warning in &advice.warnings[known..] {
        err!("sweetspot: {warning}");
    }
    Ok(advice)
}

fn warn(advice: &mut WindowAdvice, words: String) {
    err!("sweetspot: {words}");
    advice.warnings.push(words);
}

/// The warning that only a closed form was used, which may recommend a window near an overflow, or one that stalls recoveries.
fn closed_form_alone(work: f64, is_shared: bool) -> String {
    let why = match is_shared {
        true => "a slightly smaller window is safer",
        false => "as bursts after recoveries may overflow the buffer",
    };
    format!(
        "closed form only, as a simulation would take {:.0} million packets, more than the limit of {:.0} million (--verify sim \
         lifts it); the rate may be too high, {why}",
        work / 1e6,
        MAX_UNASKED_PACKETS / 1e6
    )
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_advice_names_the_most_streams_that_the_protocol_has() {
        let most = sweetspot_advise::window::MOST_STREAMS;
        assert_eq!(most, u64::from(sweetspot_protocol::MAX_STREAMS));
    }
}
