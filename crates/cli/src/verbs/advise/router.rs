use std::path::{Path, PathBuf};

use clap::ValueEnum;
use sweetspot_advise::AdviceError;
use sweetspot_advise::router::{
    Favour, LinkMeasurement, Mix, Parameters, RouterAdvice, RouterQuestion, advise,
};
use sweetspot_experiment::router::{BufferTrial, Effort, Runner};
use sweetspot_experiment::{NoStore, StudyError, Workers};
use sweetspot_sim::Simulator;
use sweetspot_theory::TheoryError;
use sweetspot_theory::router::capacity_ratio::Form;
use sweetspot_units::{Bytes, Duration, Percent, Probability, Rate, UnitError, Volume};

use super::{Detail, OutputOptions, Verify};
use crate::verbs::Ending;
use sweetspot_program::print::Shown;
use sweetspot_program::progress::{self, CountingEngine};
use sweetspot_program::scenario_file::Parallel;
use sweetspot_program::text_file::is_standard_input;
use sweetspot_program::usage_error::UsageError;
use sweetspot_program::values;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  sweetspot advise router --rate 1Gbit/s --rtt 60ms --input-rate 10Gbit/s
  sweetspot advise router --rate 1Gbit/s --rtt 60ms --input-rate 10Gbit/s \\
      --mix short --load 70%
  sweetspot advise router --rate 50Mbit/s --rtt 60ms --input-rate 500Mbit/s \\
      --verify sim
  sweetspot advise router --rate 50Mbit/s --rtt 60ms --input-rate 500Mbit/s \\
      --fit measured.csv

Members of --json:
  buffer_packets, buffer_bytes, buffer_delay_s
                     the recommended buffer, and its delay when full
  delay_s, loss, utilisation, flow_bps, short_bps, bulk_bps, active_flows
                     its effects; *_error: their standard errors
  source, basis, closed_form, interpolated
                     origin of these numbers, and of the buffer
  rules, available   the other rows of the table. Names in rules: `formula` is
                     the buffer before the simulation, `Cubic` the row Cubic
                     rule, `BBR` the row BBR rule
  two_rules, range_90_percent
                     buffers of both rules for flows that may persist; buffers
                     that keep 90 % of the rate
  gamma, flows, size_mean_bytes, transfer_bytes, maximised, form, form_of_ratio
                     the link and its traffic, as given or assumed
  fit, simulation, outside, warnings, assumptions, formulas, sources
docs/formats.md has all members.")]
pub struct AdviseRouterArguments {
    /// Rate of the output link
    #[arg(long, allow_hyphen_values = true, value_name = "1Gbit/s")]
    rate: Rate,
    /// Round-trip time of the flows without this link's queue
    #[arg(long, allow_hyphen_values = true, value_name = "60ms")]
    rtt: Duration,
    /// Rate of the links that feed it, or of the flows' bottleneck before it
    #[arg(long, allow_hyphen_values = true, value_name = "10Gbit/s")]
    input_rate: Rate,
    /// How many such links [default: enough to exceed --rate]
    #[arg(long, allow_hyphen_values = true, value_name = "N")]
    inputs: Option<u64>,
    /// Flows that are active at a time [default: as many as fill the link]
    #[arg(long, allow_hyphen_values = true, value_name = "N")]
    flows: Option<u64>,
    /// Share of the link that is used in its busy times with ample buffer; for a full or overloaded link, give its --flows instead
    #[arg(long, allow_hyphen_values = true, value_name = "100%", value_parser = share)]
    load: Option<f64>,
    /// Mean size of a transfer, where --mix names no file. The answer has rates for two sizes: the median of all transfers, and the median of
    /// those above eight times the mean [default: 80kB, or more if so few bulk --flows need more to
    /// fill the link]
    #[arg(long, allow_hyphen_values = true, value_name = "80kB")]
    size_mean: Option<Bytes>,
    /// Traffic: bulk, short, or a file with a transfer size and its unit per line (80kB; - reads standard input). The simulation
    /// draws Pareto sizes with the file's mean. Without --flows, bulk and short are the same sizes: short only means --favour short
    #[arg(long, value_name = "short|bulk|FILE", default_value = "bulk")]
    mix: String,
    /// Whom the buffer serves: throughput (long transfers), short (short transfers) or latency (the smallest buffer with which short
    /// transfers keep 90 % of their best rate); short and latency are refused if all --flows persist [default: throughput for --mix bulk, short for --mix short, for a FILE throughput if most bytes are in long transfers]
    #[arg(long, value_name = "throughput|short|latency", hide_possible_values = true)]
    #[arg(value_parser = values::words::<Favour>(&["throughput", "short", "latency"]))]
    favour: Option<Favour>,
    /// The buffer that the device has: 12MB or 8000pkt
    #[arg(long, allow_hyphen_values = true, value_name = "12MB")]
    available: Option<Volume>,
    /// Packet size
    #[arg(long, allow_hyphen_values = true, value_name = "1500B", default_value = "1500B")]
    #[arg(value_parser = super::bytes)]
    packet: Bytes,
    /// Formula for the loss rate with a buffer of B packets, for --loss-a and --loss-b: pl (power law, a B^-b) or ex (exponential, a e^(-bB)).
    /// --fit chooses it from measurements [default: by the capacity ratio]
    #[arg(long, value_enum, value_name = "pl|ex", hide_possible_values = true)]
    loss_form: Option<LossForm>,
    /// Factor a of that formula: the loss rate with a buffer of one packet (pl), or with almost none (ex). --fit measures it; without
    /// --fit, it needs --loss-b
    #[arg(long, allow_hyphen_values = true, value_name = "A")]
    loss_a: Option<f64>,
    /// Exponent b of that formula: how fast the loss falls as the buffer grows. --fit measures it; without --fit, it needs --loss-a
    #[arg(long, allow_hyphen_values = true, value_name = "B")]
    loss_b: Option<f64>,
    /// Mean queue as a share of the buffer, above 0 and at most 1: 0.5 if the buffer is half full on average. --fit measures it
    #[arg(long, allow_hyphen_values = true, value_name = "F")]
    delay_f: Option<f64>,
    /// Pareto tail index of the transfer sizes, above 1: the lower, the more bytes are in a few large transfers [default: 1.5]
    #[arg(long, allow_hyphen_values = true, value_name = "1.5")]
    tail_index: Option<f64>,
    /// Measurements of the link at four buffers or more, a line each: buffer, loss, delay (120pkt, 1.2%, 12ms); - reads standard input. The loss form, a, b and f
    /// are fitted to them and decide; nothing is simulated without --verify sim. --loss-a, --loss-b and --delay-f override the fit
    #[arg(long, value_name = "FILE")]
    fit: Option<PathBuf>,
    /// Check of the advice in the simulator: sim (thorough, up to 30 s of CPU time) or none [default: up to 10 s of CPU time, 20 s
    /// with --flows or --load; none with measurements]. A link above 1 Gbit/s or so is simulated scaled down
    #[arg(long, value_name = "sim|none")]
    verify: Option<Verify>,
    #[command(flatten)]
    parallel: Parallel,
    #[command(flatten)]
    output: OutputOptions,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum LossForm {
    /// a B^-b
    Pl,
    /// a e^(-bB)
    Ex,
}

impl LossForm {
    fn form(self) -> Form {
        match self {
            LossForm::Pl => Form::PowerLaw,
            LossForm::Ex => Form::Exponential,
        }
    }
}

/// Parses a share or a percentage. The advice rejects shares above 100 %.
fn share(text: &str) -> Result<f64, UnitError> {
    let (number, unit) = match text.trim().strip_suffix('%') {
        Some(number) => (number.trim_end(), 0.01),
        None => (text.trim(), 1.0),
    };
    match number.parse::<f64>() {
        Ok(number) if number.is_finite() && number > 1.0 / unit => Ok(number * unit),
        _ => text.parse::<Probability>().map(Probability::get),
    }
}

pub fn run(a: AdviseRouterArguments) -> Ending {
    if let (Some(flows), Some(load)) = (a.flows, a.load.filter(|load| *load < 1.0)) {
        return Err(UsageError::new(format!(
            "--flows {flows} with --load {}: flows that are always active decide the load themselves; leave one of the two out",
            Percent(load)
        ))
        .into());
    }
    let mix = mix(&a)?;
    let measurement = match &a.fit {
        None => None,
        Some(file) => Some(
            LinkMeasurement::read(&super::read(file)?, a.rate, a.packet)
                .map_err(|error| fit_error(file, &error))?,
        ),
    };
    let question = RouterQuestion {
        rate: a.rate,
        rtt: a.rtt,
        input_rate: a.input_rate,
        inputs: a.inputs,
        flows: a.flows,
        load: a.load,
        size_mean: a.size_mean,
        favour: Favour::Throughput,
        mix,
        available: a.available.map(|buffer| match buffer {
            Volume::Bytes(bytes) => bytes,
            Volume::Packets(packets) => a.packet * packets,
        }),
        packet: a.packet,
        parameters: Parameters {
            loss_form: a.loss_form.map(LossForm::form),
            loss_a: a.loss_a,
            loss_b: a.loss_b,
            delay_f: a.delay_f,
            tail_index: a.tail_index,
        },
        measurement,
    };
    let question = question.with_favour(a.favour);
    let answer = |question: &RouterQuestion| -> Result<RouterAdvice, AdviceError> {
        Ok(verified(advise(question)?, a.verify, a.parallel.workers(), a.output))
    };
    let mut advice = answer(&question)?;
    // The simulated loss may tell that other transfers of a file are long.
    let favour = a.favour.unwrap_or_else(|| advice.usual_favour());
    if favour != question.favour {
        advice = answer(&RouterQuestion { favour, ..question })?;
    }
    show(&advice, a.output)
}

/// The sizes that --mix names.
fn mix(a: &AdviseRouterArguments) -> Result<Mix, Box<dyn std::error::Error>> {
    Ok(match a.mix.as_str() {
        "short" => Mix::Short,
        "bulk" => Mix::Bulk,
        file if is_standard_input(Path::new(file)) || Path::new(file).exists() => {
            if let Some(size) = a.size_mean {
                let why = format!(
                    "--size-mean {size} with --mix {file}: the file has the sizes; leave one of the two out"
                );
                return Err(UsageError::new(why).into());
            }
            let sizes = super::read(Path::new(file))?;
            Mix::from_sizes(&sizes).map_err(|error| format!("--mix {file}: {error}"))?
        }
        other => {
            let help = "write short, bulk, or the name of a file with a transfer size per line, such as 80kB";
            let why = format!("--mix {other}: there is no such file; {help}");
            return Err(UsageError::new(why).into());
        }
    })
}

/// The reason why the measurements in `file` fit nothing; a wrong line has its own.
fn fit_error(file: &Path, error: &AdviceError) -> String {
    let next = match error {
        AdviceError::Theory(_) => {
            "; write a line for each buffer, such as 120pkt, 1.2%, 12ms (a first line may name the columns)"
        }
        _ => "",
    };
    format!("{}: {error}{next}", file.shown())
}

fn show(advice: &RouterAdvice, output: OutputOptions) -> Ending {
    let words = |detail, width| match detail {
        Detail::Answer => advice.answer(width),
        Detail::Usual | Detail::Explained => advice.text(detail == Detail::Explained, width),
    };
    output.show(words, || advice.json())
}

/// `advice`, checked by a simulation if wanted and possible.
fn verified(
    advice: RouterAdvice,
    verify: Option<Verify>,
    workers: Workers,
    output: OutputOptions,
) -> RouterAdvice {
    // By default, measurements are not checked: they are better than a simulation, which does not use them.
    let is_wanted = verify.map_or(!advice.question.is_measured(), |verify| verify == Verify::Sim);
    if !is_wanted || !advice.can_be_simulated() {
        return advice;
    }
    let effort = if verify.is_none() { Effort::Quick } else { Effort::Thorough };
    let counting = CountingEngine::new(&Simulator);
    let runner = Runner { engine: &counting, store: &NoStore, workers, watch: &|_, _| {} };
    let simulated = BufferTrial::new(&advice, effort).and_then(|trial| {
        let total = trial.runs();
        let interrupted = || {
            let _ = show(&advice, output);
            let done = counting.done();
            err!("sweetspot: interrupted after {done} of {total} simulations; this is by formulas alone");
        };
        progress::run_with_progress(|| trial.run(&runner), || counting.done(), total, interrupted)
    });
    match simulated {
        Ok(simulated) => advice.decided_by(simulated),
        Err(why) => {
            let why = match why {
                StudyError::Theory(TheoryError::NotCovered { because }) => because.to_owned(),
                other => other.to_string(),
            };
            advice.unsimulated(why)
        }
    }
}
