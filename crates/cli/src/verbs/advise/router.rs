use std::path::{Path, PathBuf};

use clap::ValueEnum;
use sweetspot_advise::router::{Favour, LinkMeasurement, Mix, Parameters, RouterQuestion, advise};
use sweetspot_units::{Bytes, Duration, Rate};

use super::{OutputOptions, verify};
use crate::verbs::Ending;
use crate::verbs::scenario_file::Parallel;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  sweetspot advise router --rate 1Gbit/s --rtt 60ms --input-rate 10Gbit/s
  sweetspot advise router --rate 1Gbit/s --rtt 60ms --input-rate 10Gbit/s --mix short --flows 200
  sweetspot advise router --rate 50Mbit/s --rtt 60ms --input-rate 500Mbit/s --verify sim
  sweetspot advise router --rate 50Mbit/s --rtt 60ms --input-rate 500Mbit/s --fit measured.csv")]
pub struct Arguments {
    /// Rate of the output link
    #[arg(long, allow_hyphen_values = true, value_name = "1Gbit/s")]
    rate: Rate,
    /// Round-trip time of the flows without this link's queue
    #[arg(long, allow_hyphen_values = true, value_name = "60ms")]
    rtt: Duration,
    /// Rate of the links that feed it, or of the flows' bottleneck before it
    #[arg(long, allow_hyphen_values = true, value_name = "10Gbit/s")]
    input_rate: Rate,
    /// Number of such links
    #[arg(long, allow_hyphen_values = true, value_name = "N")]
    inputs: Option<u64>,
    /// Number of simultaneous long flows
    #[arg(long, allow_hyphen_values = true, value_name = "N")]
    flows: Option<u64>,
    /// Mix of the traffic: short, bulk, or a file with a transfer size per line
    #[arg(long, value_name = "short|bulk|FILE", default_value = "bulk")]
    mix: String,
    /// Flows that the buffer is sized for: throughput, short or latency [default: by the mix]
    #[arg(long, value_name = "throughput|short|latency")]
    favour: Option<Favour>,
    /// The device's buffer
    #[arg(long, allow_hyphen_values = true, value_name = "12MB")]
    available: Option<Bytes>,
    /// Packet size
    #[arg(long, allow_hyphen_values = true, value_name = "1500B", default_value = "1500B")]
    packet: Bytes,
    /// Factor a of the measured loss form, buffers in packets
    #[arg(long, allow_hyphen_values = true, value_name = "A")]
    loss_a: Option<f64>,
    /// Decay b of the measured loss form
    #[arg(long, allow_hyphen_values = true, value_name = "B")]
    loss_b: Option<f64>,
    /// Share f of the buffer that is full on average
    #[arg(long, allow_hyphen_values = true, value_name = "F")]
    delay_f: Option<f64>,
    /// Pareto tail index of the transfer sizes
    #[arg(long, allow_hyphen_values = true, value_name = "1.5")]
    tail_index: Option<f64>,
    /// Measurements of the link, a line each: buffer, loss, delay (120pkt, 1.2%, 12ms); the loss
    /// form and a, b and f are fitted to them
    #[arg(long, value_name = "FILE")]
    fit: Option<PathBuf>,
    /// Also simulate the link in a closed loop, which takes about half a minute
    #[arg(long, value_enum)]
    verify: Option<By>,
    #[command(flatten)]
    parallel: Parallel,
    #[command(flatten)]
    output: OutputOptions,
}

/// Means of verification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum By {
    /// The packet-level simulator.
    Sim,
}

/// Loss rate assumed for dividing the mix into short and long flows before the loss is known.
const ASSUMED_LOSS: f64 = 1e-3;

pub fn run(a: Arguments) -> Ending {
    let mix = match a.mix.as_str() {
        "short" => Mix::Short,
        "bulk" => Mix::Bulk,
        file if Path::new(file).exists() => Mix::from_sizes(&super::read(&PathBuf::from(file))?)?,
        other => {
            let help = "write short, bulk, or the name of a file with a transfer size per line";
            return Err(format!("--mix {other}: there is no such file; {help}").into());
        }
    };
    let measurement = match &a.fit {
        None => None,
        Some(file) => Some(
            LinkMeasurement::read(&super::read(file)?, a.rate, a.packet)
                .map_err(|error| format!("{}: {error}", file.display()))?,
        ),
    };
    let question = RouterQuestion {
        rate: a.rate,
        rtt: a.rtt,
        input_rate: a.input_rate,
        inputs: a.inputs,
        flows: a.flows,
        favour: a.favour.unwrap_or_else(|| mix.usual_favour(ASSUMED_LOSS, a.packet)),
        mix,
        available: a.available,
        packet: a.packet,
        parameters: Parameters {
            loss_a: a.loss_a,
            loss_b: a.loss_b,
            delay_f: a.delay_f,
            tail_index: a.tail_index,
        },
        measurement,
    };
    let advice = advise(&question)?;
    if a.verify.is_none() {
        return a.output.show(|explain| advice.text(explain), || advice.json());
    }
    let found = verify::simulate(&question, a.parallel.workers())?;
    let shown = a.output.show(
        |explain| advice.text(explain),
        || {
            let mut json = advice.json();
            json["simulation"] = verify::as_json(&question, &found);
            json
        },
    );
    if !a.output.json {
        verify::print_text(&question, &found);
    }
    shown
}
