use sweetspot_advise::Kernel;
use sweetspot_advise::window::{Cross, Question, advise};
use sweetspot_units::{Bytes, Duration, Probability, Rate};

use super::Manner;
use crate::verbs::Ending;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  sweetspot advise window --rate 10Gbit/s --rtt 80ms
  sweetspot advise window --rate 1Gbit/s --rtt 40ms --buffer 500kB --cross mice:30% --explain")]
pub struct Arguments {
    /// Capacity of the path's narrowest link
    #[arg(long, allow_hyphen_values = true, value_name = "10Gbit/s")]
    rate: Rate,
    /// Round-trip time without queues
    #[arg(long, allow_hyphen_values = true, value_name = "80ms")]
    rtt: Duration,
    /// Buffer of that link
    #[arg(long, allow_hyphen_values = true, value_name = "12MB")]
    buffer: Option<Bytes>,
    /// Cross traffic and its share: udp, elephants or mice
    #[arg(long, value_name = "udp:30%")]
    cross: Option<Cross>,
    /// Random loss, or that of a path that is congested already
    #[arg(long, allow_hyphen_values = true, value_name = "1e-5")]
    loss: Option<Probability>,
    /// The largest packet
    #[arg(long, allow_hyphen_values = true, value_name = "1500B", default_value = "1500B")]
    mtu: Bytes,
    /// The receiver's kernel, if it is not this one
    #[arg(long, value_name = "6.18")]
    kernel: Option<Kernel>,
    #[command(flatten)]
    manner: Manner,
}

pub fn run(a: Arguments) -> Ending {
    let question = Question {
        rate: a.rate,
        rtt: a.rtt,
        buffer: a.buffer,
        cross: a.cross,
        loss: a.loss,
        mtu: a.mtu,
        kernel: super::kernel(a.kernel)?,
    };
    let advice = advise(&question)?;
    a.manner.show(|explain| advice.text(explain), || advice.json())
}
